/** What is encrypted for users: with which key it can be read, and by whom. */
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { newSecretsKey, Secrets, secretsKey } from '../../src/platform/secrets.js';

const [one, other] = [randomBytes(32), randomBytes(32)];
const ADA = ['registry', 7, 'ghcr.io', 'ada'] as const;

test('what was sealed is opened for its owner only, and unaltered only', () => {
  const secrets = new Secrets(one);
  for (const text of ['ü'.repeat(8_000), 'two\nlines']) {
    const kept = secrets.seal(text, ADA);
    expect(Buffer.from(kept.sealed).includes(text)).toBe(false);
    expect(secrets.open(kept, ADA)).toBe(text);
    for (const owner of [
      ['registry', 8, 'ghcr.io', 'ada'],
      ['registry', 7, 'ghcr.io:7', 'ada'],
      ['registry', 7, 'ghcr.io', 'bob'],
    ])
      expect(() => secrets.open(kept, owner)).toThrow();
    for (const at of [0, 12, 28]) {
      const altered = Uint8Array.from(kept.sealed);
      altered[at]! ^= 1;
      expect(() => secrets.open({ ...kept, sealed: altered }, ADA)).toThrow();
    }
  }
  expect(secrets.seal('x', ADA).sealed).not.toEqual(secrets.seal('x', ADA).sealed);
});

test('another key opens nothing; a former one goes on to, but seals no more', () => {
  const kept = new Secrets(one).seal('x', ADA);
  expect(() => new Secrets(other).open(kept, ADA)).toThrow(`there is no key ${kept.keyId}`);
  // The name of the key alone does not help.
  expect(() => new Secrets(other).open({ ...kept, keyId: new Secrets(other).keyId }, ADA)).toThrow();
  const rotated = new Secrets(other, [one]);
  expect(rotated.open(kept, ADA)).toBe('x');
  expect(rotated.seal('x', ADA).keyId).toBe(new Secrets(other).keyId);
  expect(kept.keyId).not.toContain(one.toString('hex').slice(0, 8));
});

test('keys are 32 bytes in base64', () => {
  expect(secretsKey(`${one.toString('base64')}\n`)).toEqual(one);
  expect(secretsKey(newSecretsKey())).toHaveLength(32);
  for (const bad of [
    '',
    'x',
    one.toString('hex'),
    randomBytes(31).toString('base64'),
    `!${one.toString('base64')}`,
  ])
    expect(secretsKey(bad)).toBeNull();
});
