/** The client of the service that the variables name, or of the one that `npm start` runs here. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../platform/config.js';
import { Client } from './client.js';

/** The administrator's key of a service, in its home. */
export const ADMIN_KEY_FILE = 'admin.key';

/** The key of the agent that runs here for a site, in the home. */
export const agentKeyFile = (home: string, site: string): string => join(home, `agent-${site}.key`);

/** A client by SWITCHYARD_URL and SWITCHYARD_KEY, or by PORT and the key in SWITCHYARD_HOME. */
export function connect(): Client {
  const { url, key, home } = loadConfig();
  const keyFile = join(home, ADMIN_KEY_FILE);
  return new Client({ url, key: key ?? readKey(keyFile), keySource: keyFile });
}

/** The key in a file; null when there is none that we may read. */
export function readKey(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim() || null;
  } catch {
    return null;
  }
}
