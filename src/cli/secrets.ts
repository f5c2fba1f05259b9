/** The keys with which the service encrypts what it keeps for users, and their change. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../platform/config.js';
import type { Logger } from '../platform/log.js';
import { newSecretsKey, Secrets, secretsKey } from '../platform/secrets.js';
import { ConfigError } from '../platform/variables.js';
import { ownerOf } from '../store/directory/registries.js';
import type { Directory } from '../store/directory.js';
import { writeKey } from './connect.js';

/** In the home, where the database is built in. */
export const SECRETS_KEY_FILE = 'secrets.key';

const BATCH = 500;

type Given = Pick<Config, 'secretsKey' | 'secretsKeysOld' | 'databaseUrl' | 'home'>;

/**
 * null: the operator has given no key. Beside a built-in database one is made when it is missing.
 *
 * @throws ConfigError for a file that has none
 */
export function openSecrets({ secretsKey, secretsKeysOld, databaseUrl, home }: Given): Secrets | null {
  const former = secretsKeysOld.map((written) => keyOf('SECRETS_KEYS_OLD', written));
  if (secretsKey !== null) return new Secrets(keyOf('SECRETS_KEY', secretsKey), former);
  if (databaseUrl !== null) return null;
  const file = join(home, SECRETS_KEY_FILE);
  if (!existsSync(file)) writeKey(file, newSecretsKey());
  return new Secrets(keyOf('SECRETS_KEY', file), former);
}

/** Of a text that is one, or of a file that has it. */
function keyOf(variable: string, written: string): Buffer {
  const given = secretsKey(written);
  if (given !== null) return given;
  const accepted = 'accepted: 32 bytes in base64, or a file that contains them (`openssl rand -base64 32`)';
  let text: string;
  try {
    text = readFileSync(written, 'utf8');
  } catch (error) {
    // What is no path may be a key that was mistyped.
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigError(`${variable}: the file cannot be read (${code}); ${accepted}`);
  }
  const key = secretsKey(text);
  if (key === null)
    throw new ConfigError(`${variable}: the content of ${written} is not accepted; ${accepted}`);
  return key;
}

/** Encrypts with the present key what former ones have encrypted: then those are no longer needed. */
export async function sealAnew(
  secrets: Secrets,
  directory: Pick<Directory, 'sealedOtherwise' | 'sealAnew'>,
  log: Pick<Logger, 'info' | 'error'>,
): Promise<void> {
  const lost = new Set<string>();
  let done = 0;
  for (let afterId = 0; ; ) {
    const found = await directory.sealedOtherwise(secrets.keyId, afterId, BATCH);
    for (const one of found) {
      try {
        const password = secrets.open(one, ownerOf(one));
        await directory.sealAnew(one, secrets.seal(password, ownerOf(one)));
        done++;
      } catch {
        lost.add(one.keyId);
      }
    }
    if (found.length < BATCH) break;
    afterId = found.at(-1)!.id;
  }
  if (done > 0)
    log.info(
      { credentials: done, key: secrets.keyId },
      'registry credentials are now encrypted with SECRETS_KEY',
    );
  if (lost.size > 0)
    log.error(
      { keys: [...lost] },
      'some registry credentials cannot be decrypted: set these keys in SECRETS_KEYS_OLD, or have users store their credentials again',
    );
}
