/** The packages that `npm start` and `npm test` install, with a real npm and a registry that has one package. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';

const run = promisify(execFile);
const work = mkdtempSync(join(tmpdir(), 'switchyard-packages-'));
const project = join(work, 'project');
const installed = join(project, 'node_modules', 'small', 'package.json');
/** What the registry knows of the package, by version. */
const published = new Map<string, { tarball: Buffer; integrity: string }>();

const registry = createServer(({ url = '' }, response) => {
  const [, version] = /^\/small\/-\/small-(.*)\.tgz$/.exec(url) ?? [];
  const file = version && published.get(version);
  if (file) {
    response.end(file.tarball);
    return;
  }
  if (url !== '/small') {
    response.writeHead(404).end('{}');
    return;
  }
  const versions = [...published].map(([version, { integrity }]) => [
    version,
    { name: 'small', version, dist: { integrity, tarball: `${address()}small/-/small-${version}.tgz` } },
  ]);
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ name: 'small', 'dist-tags': {}, versions: Object.fromEntries(versions) }));
});
const address = () => `http://127.0.0.1:${(registry.address() as AddressInfo).port}/`;

beforeAll(async () => {
  mkdirSync(project);
  await new Promise<void>((listening) => registry.listen(0, '127.0.0.1', listening));
});
afterAll(() => {
  registry.close();
  rmSync(work, { recursive: true, force: true });
});

async function publish(version: string): Promise<void> {
  const source = join(work, version);
  mkdirSync(source);
  writeFileSync(join(source, 'package.json'), JSON.stringify({ name: 'small', version }));
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', source], { cwd: source });
  const [{ filename, integrity }] = JSON.parse(stdout);
  published.set(version, { tarball: readFileSync(join(source, filename)), integrity });
}

/** A lock file as ours: without addresses. */
function lock(version: string): void {
  const root = { name: 'project', version: '1.0.0', dependencies: { small: version } };
  writeFileSync(join(project, 'package.json'), JSON.stringify(root));
  const small = { version, integrity: published.get(version)!.integrity };
  const packages = { '': root, 'node_modules/small': small };
  writeFileSync(
    join(project, 'package-lock.json'),
    JSON.stringify({ ...root, lockfileVersion: 3, requires: true, packages }),
  );
}

const install = async () =>
  run(process.execPath, [packagePath('scripts/packages.mjs'), project], {
    env: {
      ...process.env,
      npm_config_registry: address(),
      npm_config_cache: join(work, 'cache'),
      npm_config_fetch_retries: '0',
    },
  });
const version = () => JSON.parse(readFileSync(installed, 'utf8')).version;

it('are those of the lock file, installed when it asks for others, and only then', async () => {
  await publish('1.0.0');
  lock('1.0.0');
  expect((await install()).stderr).toContain('installing the packages of package-lock.json …');
  expect(version()).toBe('1.0.0');
  const { ino } = statSync(installed);
  expect((await install()).stderr).toBe('');
  expect(statSync(installed).ino).toBe(ino);

  // npm's cache has only heard of the first version.
  await publish('1.1.0');
  lock('1.1.0');
  await install();
  expect(version()).toBe('1.1.0');

  rmSync(join(project, 'node_modules'), { recursive: true });
  await install();
  expect(version()).toBe('1.1.0');
});

it('are not taken for installed where that failed, and npm says why', async () => {
  published.set('1.2.0', {
    tarball: Buffer.from('no archive'),
    integrity: published.get('1.1.0')!.integrity,
  });
  lock('1.2.0');
  await expect(install()).rejects.toMatchObject({ code: 1, stderr: expect.stringMatching(/EINTEGRITY/) });
});
