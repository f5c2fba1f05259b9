/** A site with simulated machines, made through the API, and its agent in this process. */
import type { Client } from '../client/index.js';
import { loadConfig } from '../platform/config.js';
import { createLogger, type Logger } from '../platform/log.js';
import type { Device } from '../words/index.js';
import { simulatedAgent } from './agents.js';
import type { Named } from './command.js';
import * as documents from './documents.gql.js';
import { agentOf } from './site-agent.js';

const KEY_LIFE_MS = 30 * 86_400_000;

export interface SimulatedMachine {
  name: string;
  cpus: number;
  memoryMb: number;
  benchmark: number;
  os: string;
  architecture: string;
  /** Ids of licenses. */
  licenses?: string[];
  devices?: Device[];
}

export interface SimulatedSite {
  id: string;
  name: string;
  /** Registered now; else it was there. */
  isNew: boolean;
  /** Lets go of the site: its runs stay with the service. */
  close(): Promise<void>;
}

/**
 * Registers the site and its machines, unless there is a site of this name, and serves it with a simulated agent. Needs an
 * administrator's key. The agent's own key is revoked at the end.
 *
 * @param machines asked for only when the site is new
 */
export async function openSimulatedSite(
  client: Client,
  name: string,
  machines: (site: Named) => SimulatedMachine[] | Promise<SimulatedMachine[]>,
  {
    speed,
    log = createLogger({ level: 'warn' }),
    ...place
  }: { speed: number; log?: Logger; latitude?: number; longitude?: number },
): Promise<SimulatedSite> {
  const sites = await client.all(documents.SitesDocument, 'sites', {});
  const existing = sites.find((site) => site.name === name);
  const site = existing ?? (await register(client, name, place));
  if (!existing) {
    const inputs = (await machines(site)).map((machine) => ({ siteId: site.id, ...machine }));
    await client.request(documents.RegisterMachinesDocument, { inputs });
  }
  const agentUser = await agentOf(client, site);
  const key = await makeKey(client, agentUser.id, { name: 'simulated agent', siteId: site.id });
  const agent = simulatedAgent(
    loadConfig(),
    log,
    () => ({ url: client.options.url, key: key.secret, site: name }),
    speed,
  );
  await agent.start?.();
  return {
    id: site.id,
    name,
    isNew: !existing,
    async close() {
      await agent.stop?.();
      await key.revoke();
    },
  };
}

async function register(
  client: Client,
  name: string,
  place: { latitude?: number; longitude?: number },
): Promise<Named> {
  const data = await client.request(documents.RegisterSiteDocument, {
    input: { name, ...place },
  });
  return data.createSite.site;
}

/** A key that is revoked when it is no longer needed, and good for a month at the most. */
export async function makeKey(
  client: Client,
  userId: string,
  purpose: { name: string; siteId?: string },
): Promise<{ secret: string; revoke(): Promise<void> }> {
  const expiresAt = new Date(Date.now() + KEY_LIFE_MS).toISOString();
  const { createApiKey } = await client.request(documents.CreateKeyDocument, {
    input: { userId, expiresAt, ...purpose },
  });
  return {
    secret: createApiKey.secret,
    // When the service is gone already, the key's own end has to do.
    revoke: () =>
      client.request(documents.RevokeKeyDocument, { apiKey: createApiKey.apiKey.id }).then(
        () => {},
        () => {},
      ),
  };
}
