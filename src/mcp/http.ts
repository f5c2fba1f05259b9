/**
 * MCP over streamable HTTP, without sessions: each request has its own server, whose client has the key of the request. This process has no key
 * of its own to give.
 */
import { once } from 'node:events';
import { createServer as createHttpServer, type Server as HttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { NextFunction, Request, Response } from 'express';
import { Client } from '../client/index.js';
import { Plans } from './plans.js';
import { createServer } from './server.js';

/** Requests at the same time, and connections. A request may wait for a job for most of a minute. */
const REQUESTS_MAX = 100;
const CONNECTIONS_MAX = 200;
/** For a request to arrive. */
const ARRIVAL_MS = 30_000;

const LOOPBACK: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

export interface HttpOptions {
  /** Of the API. */
  url: string;
  host: string;
  port: number;
  /** Names of this server, as clients call it, beside those of the loopback. */
  allowedHosts: readonly string[];
  allowWrites: boolean;
}

const refuse = (response: Response, status: number, message: string): void =>
  void response.status(status).json({ jsonrpc: '2.0', error: { code: -32_000, message }, id: null });

/** Listens, and gives the server and its address. */
export async function serveHttp({
  url,
  host,
  port,
  allowedHosts,
  allowWrites,
}: HttpOptions): Promise<{ server: HttpServer; address: string }> {
  const plans = new Plans();
  let requests = 0;
  const names = [...LOOPBACK, ...allowedHosts];
  // It refuses requests whose Host is none of these: a page whose name leads here (DNS rebinding).
  const app = createMcpExpressApp({ host, allowedHosts: names });
  app.use((request: Request, response: Response, next: NextFunction) => {
    const { origin } = request.headers;
    // A browser names the page that asks; programs name none.
    if (origin === undefined || (URL.canParse(origin) && names.includes(new URL(origin).hostname))) next();
    else refuse(response, 403, 'Origin: requests from pages of other servers are not accepted');
  });
  app.post('/mcp', async (request: Request, response: Response) => {
    const key = /^Bearer ([\x21-\x7e]+)$/i.exec(request.headers.authorization ?? '')?.[1];
    if (key === undefined) {
      response.setHeader('WWW-Authenticate', 'Bearer');
      return refuse(
        response,
        401,
        'Authorization: is missing; accepted: Bearer and an API key of Switchyard',
      );
    }
    if (Array.isArray(request.body))
      return refuse(response, 400, 'a list of messages is not accepted; send one');
    if (requests >= REQUESTS_MAX)
      return refuse(response, 503, 'too many requests at the same time; try again');
    requests++;
    const server = createServer({ client: new Client({ url, key }), plans, allowWrites });
    response.once('close', () => {
      requests--;
      // Ends what still runs for it.
      void server.close();
    });
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
    await server.connect(transport);
    await transport.handleRequest(request, response, request.body);
  });
  app.use((_: Request, response: Response) => refuse(response, 405, 'accepted: POST /mcp'));
  const server = createHttpServer({ requestTimeout: ARRIVAL_MS, headersTimeout: ARRIVAL_MS }, app);
  server.maxConnections = CONNECTIONS_MAX;
  server.listen(port, host);
  await once(server, 'listening');
  const { address, family, port: bound } = server.address() as AddressInfo;
  return { server, address: `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}/mcp` };
}
