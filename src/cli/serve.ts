/**
 * `switchyard serve`: everything in one process. On a small machine the exchange between processes would cost more than
 * it gains, and one Ctrl-C ends all in order. The agent speaks GraphQL over HTTP here too, as it does elsewhere.
 */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import { Client } from '../client/index.js';
import { type Config, VARIABLES } from '../platform/config.js';
import { Lifecycle, type Part } from '../platform/lifecycle.js';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../store/embedded.js';
import { migrate } from '../store/migrate.js';
import { devicesHere, processAgent } from './agents.js';
import { print } from './command.js';
import type { ProcessContext } from './compose.js';
import { ADMIN_KEY_FILE, agentKeyFile, readKey } from './connect.js';
import { demoPart } from './demo.js';
import { CreateKeyDocument, RevokeKeyDocument, ViewerDocument } from './documents.gql.js';
import { installAdministrator, installSite } from './installation.js';
import { keysOf } from './keys.js';
import { whenDatabaseIsThere } from './patiently.js';

/** The site that is this machine. */
const LOCAL_SITE = 'local';

export interface ServeOptions {
  /** null: no demo. */
  demoSpeed: number | null;
}

/** The parts of the process, in the order in which they start. */
export function serveParts(context: ProcessContext, { demoSpeed }: ServeOptions): Part[] {
  const { config, log } = context;
  const { home } = config;
  let url = '';
  let databaseUrl = '';
  let embedded: EmbeddedPostgres | null = null;
  let service: Lifecycle | null = null;

  const parts: Part[] = [
    // The API finds out by itself, but only after a database has been made.
    { name: 'port', start: () => assertPortFree(config) },
    {
      name: 'postgres',
      async start() {
        // To load the service takes about as long as to make a database.
        void import('./compose.js').catch(() => {});
        if (!config.databaseUrl) embedded = await startEmbeddedPostgres({ home, log });
        databaseUrl = config.databaseUrl ?? embedded!.url;
      },
      async stop() {
        // Connections that were about to close anyway would warn that the server ends them.
        if (embedded) log.level = 'error';
        await embedded?.stop();
      },
    },
    {
      name: 'service',
      async start(signal) {
        await whenDatabaseIsThere('the service', async () => void (await migrate(databaseUrl)), log, signal);
        const { openStores, serviceParts } = await import('./compose.js');
        const stores = openStores(context, databaseUrl, 'serve');
        service = new Lifecycle(
          serviceParts(context, { api: true, worker: true }, stores, (address) => {
            url = address.replace('127.0.0.1', 'localhost');
          }),
          config.shutdownTimeoutS * 1000,
          log,
        );
        const at = { ...stores, home };
        await installAdministrator(at);
        await installSite(at, LOCAL_SITE, { devices: () => devicesHere(config) });
        await service.start();
      },
      async stop() {
        const failures = (await service?.stop('serve stops')) ?? [];
        if (failures.length > 0)
          throw new Error(`${failures.map(({ part }) => part).join(', ')} did not stop properly`);
      },
    },
    processAgent(config, log, () => ({
      url,
      key: readKey(agentKeyFile(home, LOCAL_SITE))!,
      site: LOCAL_SITE,
    })),
  ];
  if (demoSpeed !== null) {
    parts.push(
      demoPart({
        log,
        speed: demoSpeed,
        client: () => new Client({ url, key: readKey(join(home, ADMIN_KEY_FILE)) }),
      }),
    );
  }
  parts.push({
    name: 'greeting',
    async start() {
      const link = config.portal ? await signInLink(url, readKey(join(home, ADMIN_KEY_FILE))) : null;
      print(greeting(config, url, demoSpeed, link));
    },
  });
  return parts;
}

/** Throws EADDRINUSE when somebody listens there already. */
async function assertPortFree({ host, port }: Config): Promise<void> {
  const server = createServer().listen(port, host);
  await once(server, 'listening');
  server.close();
  await once(server, 'close');
}

const LINK_NAME = 'sign-in link';
/** How long the link can be used, and how long the session that it began lasts. */
const LINK_MINUTES = 15;
const SESSION_HOURS = 12;

/**
 * The portal's address with a key in its fragment, which no request carries. The portal replaces the
 * key by one of its own, so it signs in once, and it expires within minutes; the link of an earlier start signs in no more.
 */
async function signInLink(url: string, adminKey: string | null): Promise<string> {
  const client = new Client({ url, key: adminKey });
  const { viewer } = await client.request(ViewerDocument, {});
  for (const { id, name, revokedAt } of await keysOf(client, viewer.id)) {
    if (name !== LINK_NAME || revokedAt !== null) continue;
    await client.request(RevokeKeyDocument, { apiKey: id });
  }
  const inMinutes = (minutes: number): string => new Date(Date.now() + minutes * 60_000).toISOString();
  const { createApiKey } = await client.request(CreateKeyDocument, {
    input: {
      name: LINK_NAME,
      expiresAt: inMinutes(LINK_MINUTES),
      sessionExpiresAt: inMinutes(SESSION_HOURS * 60),
    },
  });
  return `${new URL(url).origin}/#sign-in=${createApiKey.apiKey.id}.${createApiKey.secret}`;
}

function greeting(config: Config, url: string, demoSpeed: number | null, link: string | null): string {
  const home = relative('', config.home) || '.';
  // What the other terminal has to know when it is not as by default.
  const usual = url === `http://localhost:${VARIABLES.port.default}/graphql`;
  const address = usual ? '' : `SWITCHYARD_URL=${url} `;
  const where = home === VARIABLES.home.default ? '' : `SWITCHYARD_HOME=${home} `;
  const switchyard = `  ${address}${where}npx switchyard`;
  const local = demoSpeed === null ? '' : '--os linux ';
  return [
    `Switchyard runs at ${url}`,
    `Data in ${config.databaseUrl ? 'the database of DATABASE_URL' : home}, the administrator's key in ${join(home, ADMIN_KEY_FILE)};`,
    `site ${LOCAL_SITE} is this machine (${availableParallelism()} CPUs).`,
    ...(demoSpeed === null
      ? []
      : [`Demo: four sites with simulated machines and a stream of jobs, at ${demoSpeed} times real time.`]),
    ...(link === null
      ? []
      : ['', `Portal, signed in as admin (once, within ${LINK_MINUTES} minutes):`, `  ${link}`]),
    '',
    'In another terminal, in this directory:',
    `${switchyard} submit ${local}-- sh -c 'echo hello'`,
    `${switchyard} watch`,
    `${switchyard} help`,
    '',
    'Ctrl-C stops the service; a restart keeps everything.',
  ].join('\n');
}
