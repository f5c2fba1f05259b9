/** The packages that `npm start` and `npm test` install, with a real npm and a registry that has three packages. */
import { execFile } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
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
const manifestOf = (name: string): string => join(project, 'node_modules', name, 'package.json');
const installed = manifestOf('small');
/** What the registry knows, by package and version. */
const published: Record<string, Map<string, { tarball: Buffer; integrity: string }>> = {
  small: new Map(),
  builder: new Map(),
  tool: new Map(),
};
/** What it was asked for. */
const asked: string[] = [];
/** The folder of its archives; most registries call it so. */
let archives = '-';
let cache = join(work, 'cache');

const registry = createServer(({ url = '' }, response) => {
  asked.push(url);
  const [, name = '', folder = archives, version] = /^\/(\w+)(?:\/([-\w]+)\/\w+-(.*)\.tgz)?$/.exec(url) ?? [];
  const file = version && folder === archives && published[name]?.get(version);
  if (file) {
    response.end(file.tarball);
    return;
  }
  if (version || !published[name] || folder !== archives) {
    response.writeHead(404).end('{}');
    return;
  }
  const versions = [...published[name]].map(([version, { integrity }]) => [
    version,
    { name, version, dist: { integrity, tarball: `${address()}${name}/${archives}/${name}-${version}.tgz` } },
  ]);
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ name, 'dist-tags': {}, versions: Object.fromEntries(versions) }));
});
const address = () => `http://127.0.0.1:${(registry.address() as AddressInfo).port}/`;

beforeAll(async () => {
  mkdirSync(join(project, 'development'), { recursive: true });
  await new Promise<void>((listening) => registry.listen(0, '127.0.0.1', listening));
});
afterAll(() => {
  registry.close();
  rmSync(work, { recursive: true, force: true });
});

async function publish(version: string, name = 'small'): Promise<void> {
  const source = join(work, `${name}-${version}`);
  mkdirSync(source);
  writeFileSync(join(source, 'package.json'), JSON.stringify({ name, version }));
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', source], { cwd: source });
  const [{ filename, integrity }] = JSON.parse(stdout);
  published[name]!.set(version, { tarball: readFileSync(join(source, filename)), integrity });
}

/** A lock file as ours: without addresses, and with a workspace that asks for `tool`. */
function lock(version: string): void {
  const root = {
    ...{ name: 'project', version: '1.0.0', workspaces: ['development'] },
    dependencies: { small: version },
    devDependencies: { builder: '1.0.0' },
  };
  const development = { name: 'development', devDependencies: { tool: '1.0.0' } };
  writeFileSync(join(project, 'package.json'), JSON.stringify(root));
  writeFileSync(join(project, 'development', 'package.json'), JSON.stringify(development));
  const locked = (name: string, version: string) => ({
    version,
    integrity: published[name]!.get(version)!.integrity,
  });
  const packages = {
    '': root,
    development,
    'node_modules/development': { resolved: 'development', link: true },
    'node_modules/small': locked('small', version),
    'node_modules/builder': { ...locked('builder', '1.0.0'), dev: true },
    'node_modules/tool': { ...locked('tool', '1.0.0'), dev: true },
  };
  writeFileSync(
    join(project, 'package-lock.json'),
    JSON.stringify({ name: 'project', version: '1.0.0', lockfileVersion: 3, requires: true, packages }),
  );
}

const installing = 'installing the packages of package-lock.json …\n';
/** By its command as `npm test` does, or with other options. Resolves to what it says. */
const install = async (call?: string): Promise<string> => {
  const script = packagePath('scripts/packages.mjs');
  const args = call ? ['--input-type=module', '--eval', call] : [script, project];
  const { stderr } = await run(process.execPath, args, {
    env: {
      ...process.env,
      npm_config_registry: address(),
      npm_config_cache: cache,
      npm_config_fetch_retries: '0',
      // The suite itself may be run by `npm run --silent`, which its npm would be told of.
      npm_config_loglevel: 'notice',
    },
  });
  return stderr;
};
/** As `npm start` does. */
const installToStart = () =>
  install(`
    import { installToStart } from ${JSON.stringify(packagePath('scripts/packages.mjs'))};
    const say = (step) => console.error(step + ' …');
    process.exitCode = await installToStart(say, { folder: ${JSON.stringify(project)} });
  `);
const version = () => JSON.parse(readFileSync(installed, 'utf8')).version;

it('are those of the lock file, installed when it asks for others, and only then', async () => {
  await publish('1.0.0');
  await publish('1.0.0', 'builder');
  await publish('1.0.0', 'tool');
  lock('1.0.0');
  expect(await install()).toContain(installing);
  expect(version()).toBe('1.0.0');
  const { ino } = statSync(installed);
  expect(await install()).toBe('');
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

const startPackages = () =>
  [installed, manifestOf('builder'), manifestOf('tool')].map((path) => existsSync(path));

it('are fewer for a start, which tests complete without installing them again', async () => {
  rmSync(join(project, 'node_modules'), { recursive: true });
  expect(await installToStart()).toContain(installing);
  expect(startPackages()).toEqual([true, true, false]);
  expect(readdirSync(join(project, 'node_modules')).sort()).toEqual([
    '.package-lock.json',
    'builder',
    'small',
  ]);
  expect(await installToStart()).toBe('');

  const { ino } = statSync(installed);
  const locked = readFileSync(join(project, 'package-lock.json'), 'utf8');
  expect(await install()).toContain(installing);
  expect(startPackages()).toEqual([true, true, true]);
  expect(statSync(installed).ino).toBe(ino);
  expect(readFileSync(join(project, 'package-lock.json'), 'utf8')).toBe(locked);
  expect(await installToStart()).toBe('');
  expect(await install()).toBe('');
});

it('for a start are fetched without a look at all versions, unless the registry has other addresses', async () => {
  const started = async () => {
    rmSync(join(project, 'node_modules'), { recursive: true });
    cache = mkdtempSync(join(work, 'cache-'));
    asked.length = 0;
    await installToStart();
    expect(startPackages()).toEqual([true, true, false]);
    return asked.toSorted();
  };
  expect(await started()).toEqual(['/builder/-/builder-1.0.0.tgz', '/small/-/small-1.1.0.tgz']);
  archives = 'files';
  expect(await started()).toContain('/small/files/small-1.1.0.tgz');
});

it('are not taken for installed where that failed, and npm says why', async () => {
  published.small!.set('1.2.0', {
    tarball: Buffer.from('no archive'),
    integrity: published.small!.get('1.1.0')!.integrity,
  });
  lock('1.2.0');
  await expect(install()).rejects.toMatchObject({ code: 1, stderr: expect.stringMatching(/EINTEGRITY/) });
});
