/** A run of tests that is interrupted leaves nothing behind: no server, browser, service, agent or job, and no file. */
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { processIdentity } from '../../src/platform/lockfile.js';
import { packagePath } from '../../src/platform/paths.js';
import { until } from '../engine/support.js';
import { temporaryDirectory } from '../support/home.js';
import { redisFound } from '../support/redis.js';
import { chromiumFound } from '../web/browser.js';

/** Where processes are found. */
const here = process.platform === 'linux';

/** A process with all its descendants, as they are now. */
function family(pid: number): { pid: number; identity: string; name: string }[] {
  const children = readdirSync('/proc').filter((name) => {
    try {
      return (
        /^PPid:\s+(\d+)$/m.exec(readFileSync(join('/proc', name, 'status'), 'utf8'))?.[1] === String(pid)
      );
    } catch {
      return false;
    }
  });
  const identity = processIdentity(pid);
  if (identity === null) return [];
  const name = readFileSync(join('/proc', String(pid), 'comm'), 'utf8').trim();
  return [{ pid, identity, name }, ...children.flatMap((child) => family(Number(child)))];
}

test.runIf(here).each(['SIGINT', 'SIGTERM', 'SIGKILL'] as const)(
  'by %s',
  { timeout: 300_000 },
  async (signal) => {
    const ready = join(temporaryDirectory(), 'ready');
    const vitest = packagePath('node_modules', 'vitest', 'vitest.mjs');
    const run = spawn(process.execPath, [vitest, 'run', 'test/interrupted/victim.test.ts'], {
      cwd: packagePath(),
      env: { ...process.env, READY_FILE: ready },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let said = '';
    for (const stream of [run.stdout, run.stderr])
      stream.on('data', (text) => {
        said += text;
      });
    await until('all has been started', () => existsSync(ready) || run.exitCode !== null);
    expect(run.exitCode, said).toBeNull();
    const all = family(run.pid as number);
    const names = new Set(all.map(({ name }) => name));
    const started = [
      'postgres',
      'sleep',
      ...(redisFound ? ['redis-server'] : []),
      ...(chromiumFound ? ['chromium'] : []),
    ];
    expect(started.filter((name) => !names.has(name))).toEqual([]);
    run.kill(signal);
    await until('all have gone', () => all.every(({ pid, identity }) => processIdentity(pid) !== identity));
    expect(existsSync(readFileSync(ready, 'utf8'))).toBe(false);
  },
);
