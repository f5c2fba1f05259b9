/** What every resolver is given. One for each request, and for each operation over a WebSocket. */
import type { Logger } from 'pino';
import type { Budget } from './admission/budget.js';
import type { Viewer } from './auth.js';
import type { Loaders } from './loaders.js';
import type { Services } from './services/index.js';

export interface Context {
  viewer: Viewer;
  /** In every log line and masked error of the request. */
  requestId: string;
  log: Logger;
  services: Services;
  /** What the operation costs and may cost; of a subscription, the update that is being answered. */
  budget: Budget;
  /** Batches and remembers look-ups of this request; of a subscription, those of the update that is being answered. */
  loaders: Loaders;
}
