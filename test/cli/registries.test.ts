/** `switchyard registries` with a real private registry: from the password on standard input to the job in the image. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openSecrets } from '../../src/cli/secrets.js';
import { newSecretsKey } from '../../src/platform/secrets.js';
import { runsImages } from '../support/image.js';
import { PATIENCE_MS } from '../support/patience.js';
import { hasRegistry, type Registry, startRegistry, USER } from '../support/registry.js';
import { endAll, run, type Service, serve } from './service.js';

const home = mkdtempSync('/tmp/switchyard-registries-');
// Accounts of jobs have to get to what is below.
chmodSync(home, 0o755);
let registry: Registry;
let service: Service;
const keys: Record<string, string> = {};

const hasSandbox = runsImages('sandbox');
const ready = hasRegistry && hasSandbox;

beforeAll(async () => {
  if (!ready) return;
  registry = await startRegistry(true, 'tools/own:1');
  service = await serve(home, [], '0', {
    ...{
      SWITCHYARD_ISOLATION: 'sandbox',
      AGENT_IMAGE_REGISTRIES: registry.host,
      AGENT_IMAGE_TOOLS: 'podman',
    },
  });
  for (const user of ['ada', 'bob']) {
    await service.cli('users', 'add', user);
    keys[user] = (await service.json<{ secret: string }>('keys', 'add', 'k', '--user', user)).secret;
  }
}, 300_000);
afterAll(async () => {
  await endAll();
  registry?.close();
  rmSync(home, { recursive: true, force: true });
});

const as = (user: string, args: string[], stdin = '') =>
  run(args, { SWITCHYARD_URL: service.url, SWITCHYARD_KEY: keys[user]! }, stdin);
const runIn = (user: string) =>
  as(user, ['run', '--image', `${registry.host}/tools/own:1`, '--', 'cat', '/etc/told']);
const add = (user: string, password: string) =>
  as(user, ['registries', 'add', registry.host, '--username', USER.username], `${password}\n`);

test.runIf(ready)(
  'a job in a private image runs with the credential that its user has stored, and no other',
  async () => {
    // The agent says that it runs images when it registers.
    await expect
      .poll(() => service.cli('machines', '--json'), { timeout: PATIENCE_MS })
      .toMatchObject({ stdout: expect.stringContaining('containers') });
    const without = await runIn('ada');
    expect(without.code).not.toBe(0);
    expect(without.stdout + without.stderr).toContain(
      `ada has stored no credential for ${registry.host} (\`switchyard registries add ${registry.host} --username USER\`)`,
    );
    const wrong = await add('ada', 'wrong-7');
    expect(wrong).toMatchObject({ code: 0, stdout: expect.stringContaining(registry.host) });
    const refused = await runIn('ada');
    expect(refused.stdout + refused.stderr).toMatch(/unauthorized.*with the credential of ada for/s);

    expect((await add('ada', USER.password)).stdout).not.toContain(USER.password);
    const with_ = await runIn('ada');
    expect(with_).toMatchObject({ code: 0, stdout: expect.stringContaining('of the registry') });
    const { code, stdout } = await as('ada', ['registries', '--json']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual([
      {
        ...{ registry: registry.host, username: USER.username },
        ...{ setAt: expect.any(String), lastUsedAt: expect.any(String) },
      },
    ]);
    // The image is on the machine now, and still ada's alone.
    const other = await runIn('bob');
    expect(other.stdout + other.stderr).toContain('bob has stored no credential');
    expect((await service.cli('registries')).stdout).not.toContain(registry.host);
    expect(await as('ada', ['registries', 'remove', registry.host])).toMatchObject({
      code: 0,
      stdout: `the credential for ${registry.host} is removed\n`,
    });
    expect((await as('ada', ['registries', 'remove', registry.host])).code).toBe(5);
    // The key is there for its owner only, and is what the next start uses.
    expect(statSync(join(home, 'secrets.key')).mode & 0o777).toBe(0o600);
    const log = service.process.output;
    expect(log.stdout + log.stderr).not.toContain(USER.password);
  },
  300_000,
);

test('the key: made once beside a built-in database, otherwise given; a file may have it', () => {
  const dir = mkdtempSync('/tmp/switchyard-secrets-');
  try {
    const given = { secretsKey: null, secretsKeysOld: [], databaseUrl: null, home: dir };
    const made = openSecrets(given)!;
    expect(openSecrets(given)!.keyId).toBe(made.keyId);
    const file = join(dir, 'secrets.key');
    const ownDatabase = { ...given, databaseUrl: 'postgresql://x/y' };
    expect(openSecrets(ownDatabase)).toBeNull();
    for (const secretsKey of [file, readFileSync(file, 'utf8').trim()])
      expect(openSecrets({ ...ownDatabase, secretsKey })!.keyId).toBe(made.keyId);
    const next = openSecrets({ ...ownDatabase, secretsKey: newSecretsKey(), secretsKeysOld: [file] })!;
    expect(next.open(made.seal('x', [1]), [1])).toBe('x');
    expect(() => openSecrets({ ...ownDatabase, secretsKey: 'no-key' })).toThrow(
      /^SECRETS_KEY: the file cannot be read \(ENOENT\); accepted: 32 bytes in base64/,
    );
    expect(() => openSecrets({ ...given, secretsKeysOld: ['/dev/null'] })).toThrow(
      /^SECRETS_KEYS_OLD: the content of \/dev\/null is not accepted/,
    );
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
