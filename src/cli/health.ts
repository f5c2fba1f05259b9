/** What a process tells of itself to those who run it, on a port of its own: that it lives, what it lacks, and its numbers. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Config } from '../platform/config.js';
import type { Part } from '../platform/lifecycle.js';
import type { Metrics } from '../platform/metrics.js';

/**
 * Answers /healthz, /readyz and /metrics on METRICS_PORT.
 *
 * @param whatIsMissing what stands in the way of the process's work; null: nothing
 */
export function healthPart(
  { config, metrics }: { config: Config; metrics: Metrics },
  whatIsMissing: () => string | null,
): Part {
  const server = createServer(async ({ url }, response) => {
    if (url === '/healthz') response.end('alive\n');
    else if (url === '/readyz') {
      const missing = whatIsMissing();
      response.writeHead(missing === null ? 200 : 503).end(`${missing ?? 'ready'}\n`);
    } else if (url === '/metrics') {
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
