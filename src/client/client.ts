/** The client in Node. */
import { WebClient, type WebClientOptions } from './web-client.js';

export type { Document } from './web-client.js';

export interface ClientOptions extends WebClientOptions {
  key: string | null;
}

export class Client extends WebClient {
  declare readonly options: ClientOptions;

  /** Its key stays. */
  constructor(options: ClientOptions) {
    super(options);
  }

  /** Node 20 has no sockets of its own, and those of later versions cannot be given up at once. */
  protected override async webSocket(): Promise<unknown> {
    return (await import('ws')).WebSocket;
  }
}
