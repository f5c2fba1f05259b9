/** `switchyard mcp`: the API as tools for language models (Model Context Protocol). */
import { once } from 'node:events';
import type { Command } from 'commander';
import { parseNumber } from '../../words/values.js';
import { collect, interruption, print } from '../command.js';
import { connect } from '../connect.js';
import { usage } from '../errors.js';

interface McpOptions {
  http?: boolean;
  host: string;
  port: string;
  allowedHost?: string[];
  allowWrites?: boolean;
}

export function addMcp(program: Command): void {
  program
    .command('mcp')
    .description('run an MCP server, which gives language models tools to query jobs and sites')
    .option(
      '--allow-writes',
      'also offer the tools that submit and cancel jobs, after confirmation of a plan',
    )
    .option(
      '--http',
      'serve streamable HTTP at /mcp instead of standard input and output; callers send their own keys',
    )
    .option('--port <port>', 'with --http: the port, 0 for any free one', '4080')
    .option('--host <address>', 'with --http: the address to listen on', '127.0.0.1')
    .option(
      '--allowed-host <names>',
      'with --http: names that clients use for this server, in addition to localhost',
      collect,
    )
    .action(async (options: McpOptions) => {
      const stopped = interruption();
      const client = connect();
      const { serveHttp, serveStdio } = await import('../../mcp/index.js');
      const allowWrites = options.allowWrites === true;
      if (!options.http) return serveStdio(client, allowWrites, stopped);
      const { host, allowedHost: allowedHosts = [] } = options;
      if (!/^(127\.|localhost$|::1$)/.test(host) && allowedHosts.length === 0)
        throw usage(
          '--host',
          host,
          'a loopback address, or any address together with --allowed-host, the names that clients use',
        );
      const port = parseNumber('--port', options.port, { min: 0, max: 65_535, integer: true });
      const { server, address } = await serveHttp({
        url: client.options.url,
        host,
        port,
        allowedHosts,
        allowWrites,
      });
      print(`MCP is served at ${address}`);
      if (!stopped.aborted) await once(stopped, 'abort');
      server.close();
      server.closeAllConnections();
    });
}
