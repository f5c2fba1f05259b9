/** What a process without an API tells of itself: that it lives, and its numbers. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Part } from '../platform/lifecycle.js';
import type { ProcessContext } from './compose.js';

/** Answers /healthz and /metrics on METRICS_PORT. */
export function healthPart({ config, metrics }: ProcessContext): Part {
  const server = createServer(async ({ url }, response) => {
    if (url === '/healthz') response.end('alive\n');
    else if (url === '/metrics') {
      const { body, contentType } = await metrics.expose();
      response.setHeader('content-type', contentType).end(body);
    } else response.writeHead(404).end();
  });
  return {
    name: 'health',
    async start() {
      server.listen(config.metricsPort, config.host);
      await once(server, 'listening');
    },
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}
