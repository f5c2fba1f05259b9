/** That something about sites, machines, licenses or links has changed, at most once a second. */
import { createStore } from '../api/store';

export const gridChanges = createStore(0);
