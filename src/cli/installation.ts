/**
 * What makes a fresh database usable at once: the first policy and the administrator, whose key is in a file; a site, and the key of its
 * agents in another. All of it may be repeated: what is there stays as it is.
 */
import { join } from 'node:path';
import { hostShape } from '../agent/index.js';
import type { OwnedDevice } from '../core/resources/devices.js';
import type { Change, Directory } from '../store/directory.js';
import type { Queries } from '../store/queries.js';
import { ADMIN_KEY_FILE, agentKeyFile, readKey, writeKey } from './connect.js';
import { CliError } from './errors.js';

export interface Installation {
  directory: Directory;
  queries: Queries;
  /** SWITCHYARD_HOME: where the key files are. */
  home: string;
}

const ACTOR = { userId: null, requestId: null, reason: 'installation' };

/** The first policy, the user `admin`, and a good key of theirs in the home's file. */
export async function installAdministrator(at: Installation): Promise<{ keyFile: string }> {
  const { adminId } = await at.directory.bootstrap();
  const keyFile = join(at.home, ADMIN_KEY_FILE);
  await ensureKey(at, keyFile, ADMIN_KEY_FILE, adminId, null);
  return { keyFile };
}

/**
 * The site of this name, and a good key for its agent in the home's file. `devices`: and this machine, with what they answer, if it has
 * none; null: its agents register their own.
 */
export async function installSite(
  at: Installation,
  name: string,
  { devices }: { devices: (() => Promise<OwnedDevice[]>) | null },
): Promise<{ keyFile: string }> {
  const { directory, queries } = at;
  const site =
    (await queries.siteByName(name)) ??
    done(await directory.registerSite({ name, latitude: null, longitude: null, localPolicy: null }, ACTOR));
  if (devices !== null && (await queries.machines(site.id, null, 1)).length === 0) {
    const machine = { siteId: site.id, ...thisMachine(), devices: await devices() };
    done(await directory.registerMachines([machine], ACTOR));
  }
  const userName = `agent-${name}`;
  const agent =
    (await queries.userByName(userName)) ??
    done(
      await directory.registerUser({ name: userName, class: 'REGULAR', role: 'AGENT', quotaShare: 1 }, ACTOR),
    );
  const keyFile = agentKeyFile(at.home, name);
  await ensureKey(at, keyFile, userName, agent.id, site.id);
  return { keyFile };
}

/** The first machine of a site is its own reference: its power is 100. */
const thisMachine = () => ({ ...hostShape(), benchmark: 100, licenseIds: [] });

/**
 * Makes sure that the file holds a good key of this user. Otherwise all keys made for it before are revoked first, so that
 * a death on the way leaves nothing that works and is not known; the next start begins again.
 */
async function ensureKey(
  at: Installation,
  file: string,
  name: string,
  userId: number,
  siteId: number | null,
): Promise<void> {
  const now = Date.now() / 1000;
  const secret = readKey(file);
  const holder = secret === null ? null : await at.directory.findKey(secret, now);
  if (holder?.userId === userId && holder.siteId === siteId) return;
  for (const { id } of await at.queries.unrevokedKeysNamed(userId, name))
    done(await at.directory.revokeApiKey(id, now, ACTOR));
  const made = done(await at.directory.createApiKey({ userId, name, siteId, expiresAt: null }, ACTOR));
  writeKey(file, made.secret);
}

function done<T>(change: Change<T>): T {
  if (change.kind === 'done') return change.value;
  throw new CliError(`the installation could not be completed: ${change.message} (${change.code})`);
}
