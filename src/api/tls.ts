/** The server, over TLS where the configuration has a certificate. */
import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import {
  createServer as createPlain,
  type RequestListener,
  type Server,
  type ServerOptions,
} from 'node:http';
import { createServer as createSecure } from 'node:https';
import type { ApiConfig } from './config.js';

/** Renewed certificates are found within this time. */
const LOOK_MS = 10_000;

export interface Listening {
  server: Server;
  /** Looks no longer for new certificates. */
  close(): void;
}

/**
 * Makes the server. A certificate that has been renewed is taken over for new connections; one that cannot be read leaves the old one in
 * force. Throws when there is none to begin with.
 *
 * @param onReload told of each new certificate, or why it was not taken
 */
export function createHttpServer(
  options: ServerOptions,
  handle: RequestListener,
  tls: ApiConfig['tls'],
  onReload: (error: unknown) => void,
  lookMs = LOOK_MS,
): Listening {
  if (tls === null) return { server: createPlain(options, handle), close: () => {} };
  const read = () => ({
    cert: readFileSync(tls.certFile),
    key: readFileSync(tls.keyFile),
    minVersion: 'TLSv1.2' as const,
  });
  const server = createSecure({ ...options, ...read() }, handle);
  const reload = (): void => {
    try {
      server.setSecureContext(read());
      onReload(null);
    } catch (error) {
      // Perhaps only one of the two files has been written yet.
      onReload(error);
    }
  };
  const files = [tls.certFile, tls.keyFile];
  for (const file of files) watchFile(file, { interval: lookMs, persistent: false }, reload);
  return {
    server,
    close() {
      for (const file of files) unwatchFile(file, reload);
    },
  };
}
