/** Events for people: what happened, in order. Users see those of their own jobs and of the grid. */
import type { EventRow } from '../../store/rows.js';
import type { Viewer } from '../auth.js';
import { type Connection, connection, eventCursor, type ForwardArguments, pageSize } from '../connections.js';
import { ApiError } from '../errors.js';
import { guarded, ownerOnly } from './access.js';
import type { ServiceParts } from './parts.js';

export function createEventsService({ queries, limits }: ServiceParts) {
  return guarded({
    async events(viewer: Viewer, { first, after }: ForwardArguments): Promise<Connection<EventRow>> {
      const size = pageSize('first', first, limits);
      const owner = ownerOnly(viewer);
      const cursorOf = (event: EventRow): string => String(event.id);
      const behind = eventCursor('after', after);
      if (behind === null) {
        const rows = await queries.latestEvents(owner, size + 1);
        return connection(rows, size, cursorOf, { backward: true });
      }
      const rows = await queries.events(behind, owner, size + 1);
      if (rows === 'too-old') {
        throw new ApiError(
          'CONFLICT',
          `after: events after ${behind} have been removed; query without \`after\``,
        );
      }
      return connection(rows, size, cursorOf, { continued: behind !== '0' });
    },
    latestCursor: (_viewer: Viewer): Promise<string> => queries.latestCursor(),
  });
}
