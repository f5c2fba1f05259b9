/** MCP over standard input and output: one caller, who started this process. */
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import type { Client } from '../client/index.js';
import { Plans } from './plans.js';
import { createServer } from './server.js';

/** Serves until standard input is closed or `signal` is aborted. */
export async function serveStdio(client: Client, allowWrites: boolean, signal: AbortSignal): Promise<void> {
  const server = createServer({ client, plans: new Plans(), allowWrites });
  const ended = new Promise<void>((resolve) => {
    for (const event of ['end', 'close', 'error']) process.stdin.once(event, () => resolve());
    signal.addEventListener('abort', () => resolve());
    // A message longer than the SDK takes closes the transport.
    server.onclose = resolve;
  });
  await server.connect(new StdioServerTransport());
  await ended;
  await server.close();
}
