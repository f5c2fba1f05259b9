/** The README's `npm start` as a whole: whatever ends npm ends the service, in order. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { until } from './service.js';

// A copy of what it needs: it builds, and other tests run from our own dist/.
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
    // Built already: it is the service that ends here.
    'dist',
  ];
  for (const name of needed) cpSync(packagePath(name), join(copy, name), { recursive: true });
  symlinkSync(packagePath('node_modules'), join(copy, 'node_modules'));
});
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
