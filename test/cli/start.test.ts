/** The README's `npm start` as a whole: it builds with what it installs, and whatever ends npm ends the service, in order. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packagesToStart } from '../../scripts/packages.mjs';
import { packagePath } from '../../src/platform/paths.js';
import { until } from './service.js';

// A copy of what it needs, as from git: it builds, and other tests run from our own dist/.
const copy = mkdtempSync(join(tmpdir(), 'switchyard-copy-'));
const home = mkdtempSync(join(tmpdir(), 'switchyard-start-'));
let npm: ChildProcess | null = null;

beforeAll(() => {
  const needed = [
    'package.json',
    'package-lock.json',
    'tsconfig.json',
    'tsconfig.build.json',
    'schema.graphql',
    'docs',
    'scripts',
    'prisma',
    'src',
    'web',
  ];
  const ours = (path: string): boolean => !/\.gql\.ts$|\/generated$/.test(path);
  for (const name of needed) cpSync(packagePath(name), join(copy, name), { recursive: true, filter: ours });
  const { packages } = JSON.parse(readFileSync(packagePath('package-lock.json'), 'utf8'));
  for (const path of ['node_modules/.package-lock.json', ...packagesToStart(packages)]) {
    // Packages within packages come with these; those of other platforms are not there.
    if (path.lastIndexOf('node_modules/') > 0 || !existsSync(packagePath(path))) continue;
    mkdirSync(dirname(join(copy, path)), { recursive: true });
    symlinkSync(packagePath(path), join(copy, path));
  }
  expect(existsSync(join(copy, 'node_modules', 'vitest'))).toBe(false);
  // It takes longer than the starts below.
  const build = "import('./scripts/build.mjs').then(({ build }) => build('build', { checked: false }))";
  const built = spawnSync(process.execPath, ['--eval', `${build}.then(process.exit)`], { cwd: copy });
  expect(built.status, String(built.stderr)).toBe(0);
}, 600_000);
afterAll(async () => {
  if (npm?.exitCode === null && npm.signalCode === null) {
    const ended = once(npm, 'exit');
    npm.kill('SIGTERM');
    await ended;
  }
  for (const folder of [copy, home]) rmSync(folder, { recursive: true, force: true });
});

/** Resolves to npm and the service's process, once it serves. */
async function start(): Promise<{ npm: ChildProcess; service: number }> {
  npm = spawn('npm', ['start'], {
    cwd: copy,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, SWITCHYARD_HOME: home, PORT: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [npm.stdout!, npm.stderr!]) {
    stream.on('data', (text) => {
      output += text;
    });
  }
  await until(
    async () => /restart keeps everything/.test(output) || npm?.exitCode !== null,
    (done) => done,
  );
  expect(npm.exitCode, output).toBeNull();
  return { npm, service: JSON.parse(readFileSync(join(home, 'switchyard.lock'), 'utf8')).pid };
}

const lives = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

it.each([
  // npm waits for the service and takes over how it ended; of HUP it dies at once.
  ['SIGTERM', 0, null],
  ['SIGINT', 0, null],
  ['SIGHUP', null, 'SIGHUP'],
  ['SIGKILL', null, 'SIGKILL'],
] as const)('%s to npm ends the service in order', async (signal, code, endedBy) => {
  const { npm, service } = await start();
  expect(lives(service)).toBe(true);
  const ended = once(npm, 'exit');
  npm.kill(signal);
  expect(await ended).toEqual([code, endedBy]);
  await until(
    async () => lives(service),
    (alive) => !alive,
  );
  // The last part to stop is PostgreSQL, and it has.
  expect(existsSync(join(home, 'switchyard.lock'))).toBe(false);
  expect(existsSync(join(home, 'postgres', 'data', 'postmaster.pid'))).toBe(false);
});
