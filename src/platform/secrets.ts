/** Secrets that are kept for users: encrypted with keys that are not in the database (AES-256-GCM), so that a copy of the database tells none. */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

/** What is stored of a secret. */
export interface Sealed {
  /** Names the key, and tells nothing of it. */
  keyId: string;
  /** Nonce, authentication tag, and the encrypted text. */
  sealed: Uint8Array<ArrayBuffer>;
}

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export class Secrets {
  private readonly keys: ReadonlyMap<string, Buffer>;
  /** Of the key that encrypts. */
  readonly keyId: string;

  /** @param former keys that only decrypt */
  constructor(
    private readonly key: Buffer,
    former: readonly Buffer[] = [],
  ) {
    this.keyId = idOf(key);
    this.keys = new Map([...former, key].map((one) => [idOf(one), one]));
  }

  /** @param owner whose it is and what for: nobody gets it as anything else */
  seal(secret: string, owner: readonly (string | number)[]): Sealed {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.key, nonce).setAAD(aadOf(owner));
    const text = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
    return { keyId: this.keyId, sealed: Buffer.concat([nonce, cipher.getAuthTag(), text]) };
  }

  /** @throws Error where it was sealed with a key that is not here, for another owner, or has been altered */
  open({ keyId, sealed }: Sealed, owner: readonly (string | number)[]): string {
    const key = this.keys.get(keyId);
    if (key === undefined) throw new Error(`there is no key ${keyId}`);
    const tagEnd = NONCE_BYTES + TAG_BYTES;
    const options = { authTagLength: TAG_BYTES };
    const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, NONCE_BYTES), options);
    decipher.setAAD(aadOf(owner)).setAuthTag(sealed.subarray(NONCE_BYTES, tagEnd));
    return Buffer.concat([decipher.update(sealed.subarray(tagEnd)), decipher.final()]).toString('utf8');
  }
}

/** The key that a text has in base64; null: it has none. */
export function secretsKey(text: string): Buffer | null {
  const written = text.trim();
  const key = Buffer.from(written, 'base64');
  return key.length === KEY_BYTES && key.toString('base64') === written ? key : null;
}

/** A new one, as `secretsKey` reads it. */
export const newSecretsKey = (): string => randomBytes(KEY_BYTES).toString('base64');

const idOf = (key: Buffer): string =>
  createHash('sha256').update('switchyard secrets key').update(key).digest('hex').slice(0, 16);

const aadOf = (owner: readonly (string | number)[]): Buffer => Buffer.from(JSON.stringify(owner));
