/** The client of the service that the variables name, or of the one that `npm start` runs here. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Client, type ServiceError } from '../client/index.js';
import { loadConfig } from '../platform/config.js';
import { withoutGraphql } from './spoken.js';

/** The administrator's key of a service, in its home. */
export const ADMIN_KEY_FILE = 'admin.key';

/** The key of the agent that runs here for a site, in the home. */
export const agentKeyFile = (home: string, site: string): string => join(home, `agent-${site}.key`);

/** A client by SWITCHYARD_URL and SWITCHYARD_KEY, or by PORT and the key in SWITCHYARD_HOME. */
export function connect(): Client {
  const { url, key, home } = loadConfig();
  return new Client({ url, key: key ?? readKey(join(home, ADMIN_KEY_FILE)) });
}

/** What the service, or its silence, is told as: with the code, and with what can be done about it on this machine. */
export function explained({ message, code, requestId }: ServiceError): string {
  if (code === 'NETWORK') return `${message}: start the service with \`npm start\`, or set SWITCHYARD_URL`;
  if (code.startsWith('HTTP_')) return message;
  const { key, home } = loadConfig();
  const keyFile = join(home, ADMIN_KEY_FILE);
  const hasKey = (key ?? readKey(keyFile)) !== null;
  const what =
    code === 'UNAUTHENTICATED' && !hasKey
      ? `no API key: set SWITCHYARD_KEY (there is none in ${keyFile})`
      : withoutGraphql(message);
  return `${what} (${code}${requestId === null ? '' : `, request ${requestId}`})`;
}

/** Puts a key in a file that only its owner can read: whole, or not at all. */
export function writeKey(path: string, key: string): void {
  mkdirSync(dirname(path), { recursive: true });
  const aside = `${path}.${process.pid}`;
  writeFileSync(aside, `${key}\n`, { mode: 0o600, flush: true });
  renameSync(aside, path);
}

/** The key in a file; null when there is none that we may read. */
export function readKey(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim() || null;
  } catch {
    return null;
  }
}
