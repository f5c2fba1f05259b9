/** What every resolver is given. One for each request, and for each operation over a WebSocket. */
import type { Logger } from 'pino';
import type { Services } from './services/index.js';
import type { Asker } from './services/parts.js';

export interface Context extends Asker {
  /** In every log line and masked error of the request. */
  requestId: string;
  log: Logger;
  services: Services;
  /** Lists are answered whole, not in turns: whoever executes it does not await what lies in them (subscriptions/compiled.ts). */
  atOnce?: boolean;
}
