/** Tokens of a real OpenID Connect provider. */
import { generateKeyPairSync } from 'node:crypto';
import { SignJWT, UnsecuredJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { OidcConfig } from '../../src/api/config.js';
import { createOidc, isToken } from '../../src/api/oidc.js';
import { AUDIENCE, BRIEF, Issuer } from '../support/issuer.js';

let issuer: Issuer;
beforeAll(async () => {
  issuer = await Issuer.start([
    { name: 'alice', groups: ['staff', 'grid-admins'] },
    { name: 'bob', groups: ['students'] },
  ]);
});
afterAll(() => issuer.stop());

const config = (more: Partial<OidcConfig> = {}): OidcConfig => ({
  issuer: issuer.url,
  audience: [AUDIENCE],
  groupsClaim: 'groups',
  roles: new Map([
    ['staff', 'USER'],
    ['grid-admins', 'ADMIN'],
  ]),
  nameClaim: 'preferred_username',
  createUsers: true,
  clockToleranceS: 5,
  ...more,
});
const desk = (more: Partial<OidcConfig> = {}) => createOidc(config(more), () => {});

describe('a token', () => {
  test('tells who it is about, and what their groups may', async () => {
    const token = await issuer.token('alice');
    expect(isToken(token)).toBe(true);
    expect(isToken('swy_abc_def')).toBe(false);
    const identity = await desk().identify(token);
    expect(identity).toMatchObject({ subject: `${issuer.url} alice`, name: 'alice', role: 'ADMIN' });
    expect(identity!.expiresAtMs).toBeGreaterThan(Date.now() + 500_000);
    await expect(desk().identify(await issuer.token('bob'))).rejects.toMatchObject({ code: 'FORBIDDEN' });
    expect(await desk({ roles: new Map() }).identify(await issuer.token('bob'))).toMatchObject({
      role: null,
    });
  });

  test('must be meant for this service, by this issuer, signed, and not have expired', async () => {
    const oidc = desk();
    expect(await oidc.identify(await issuer.token('alice', 'https://elsewhere.example'))).toBeNull();
    const claims = { sub: 'alice', groups: ['grid-admins'] };
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const forged = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'ES256', kid: 'key-1' })
      .setIssuer(issuer.url)
      .setAudience(AUDIENCE)
      .setExpirationTime('1h')
      .sign(privateKey);
    expect(await oidc.identify(forged)).toBeNull();
    const shared = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256', kid: 'key-1' })
      .setIssuer(issuer.url)
      .setAudience(AUDIENCE)
      .setExpirationTime('1h')
      .sign(new TextEncoder().encode('x'.repeat(32)));
    expect(await oidc.identify(shared)).toBeNull();
    const unsigned = new UnsecuredJWT(claims).setIssuer(issuer.url).setAudience(AUDIENCE).encode();
    expect(await oidc.identify(unsigned)).toBeNull();
    const good = await issuer.token('alice');
    const [head, body] = good.split('.') as [string, string];
    expect(await oidc.identify(`${head}.${body}.${'A'.repeat(86)}`)).toBeNull();
    const brief = await issuer.token('alice', BRIEF);
    const strict = desk({ audience: [AUDIENCE, BRIEF], clockToleranceS: 0 });
    expect(await desk({ audience: [BRIEF], clockToleranceS: 60 }).identify(brief)).not.toBeNull();
    await expect.poll(() => strict.identify(brief), { timeout: 10_000 }).toBeNull();
  });

  test('is good after the issuer has changed its keys, and one signed before is not', async () => {
    const oidc = desk();
    const before = await issuer.token('alice');
    expect(await oidc.identify(before)).not.toBeNull();
    issuer.rotate();
    const other = desk();
    expect(await other.identify(before)).toBeNull();
    expect(await other.identify(await issuer.token('alice'))).toMatchObject({ name: 'alice' });
    // Whoever makes up keys does not make us ask for them each time.
    const { fetched } = issuer;
    for (let i = 0; i < 20; i++) {
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const made = await new SignJWT({ sub: 'x' })
        .setProtectedHeader({ alg: 'ES256', kid: `made-up-${i}` })
        .setExpirationTime('1h')
        .sign(privateKey);
      expect(await other.identify(made)).toBeNull();
    }
    expect(issuer.fetched).toBeLessThanOrEqual(fetched + 1);
  });

  test('cannot be judged while the issuer is away, unless its keys are known', async () => {
    const oidc = desk();
    const token = await issuer.token('alice');
    expect(await oidc.identify(token)).not.toBeNull();
    issuer.break();
    expect(await oidc.identify(token)).not.toBeNull();
    await expect(desk().identify(token)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    issuer.rotate();
  });
});
