/** The MCP server, over standard input and output or over HTTP. Whoever needs it loads it when it runs: the SDK takes a while. */
export { type HttpOptions, serveHttp } from './http.js';
export { createServer, listed, TOOLS } from './server.js';
export { serveStdio } from './stdio.js';
