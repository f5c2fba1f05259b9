import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { acquireLock, LockHeldError, processIdentity } from '../../src/platform/lockfile.js';
import { temporaryDirectory } from '../support/home.js';

test('one holder at a time; released, it is free', async () => {
  const path = join(temporaryDirectory(), 'x.lock');
  const lock = await acquireLock(path, 'the drawer');
  const second = acquireLock(path, 'the drawer');
  await expect(second).rejects.toThrow(LockHeldError);
  await expect(second).rejects.toThrow(`the drawer is in use by the running process ${process.pid}`);
  lock.release();
  lock.release();
  (await acquireLock(path, 'the drawer')).release();
  expect(existsSync(path)).toBe(false);
});

test('a process is told from a later one with its number', async () => {
  const child = spawn('sleep', ['60']);
  const pid = child.pid ?? 0;
  const identity = processIdentity(pid);
  expect(identity).toBe(processIdentity(pid));
  expect(identity).not.toBe(processIdentity(process.pid));
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(processIdentity(pid)).toBeNull();
});

test.each([
  ['of a dead process', JSON.stringify({ pid: 2 ** 22 + 1, identity: 'x' })],
  ['whose number went to another process', JSON.stringify({ pid: process.pid, identity: 'an earlier one' })],
  ['never written', ''],
  ['of nonsense', '{"pid":'],
])('a lock %s is taken over', async (_, content) => {
  const path = join(temporaryDirectory(), 'x.lock');
  writeFileSync(path, content);
  (await acquireLock(path, 'the drawer')).release();
});

test('of many who take over a stale lock at once exactly one gets it', async () => {
  const dir = temporaryDirectory();
  const path = join(dir, 'x.lock');
  for (let round = 0; round < 20; round++) {
    writeFileSync(path, JSON.stringify({ pid: 2 ** 22 + 1, identity: 'x' }));
    const results = await Promise.allSettled(
      Array.from({ length: 8 }, () => acquireLock(path, 'the drawer')),
    );
    const got = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    expect(got).toHaveLength(1);
    got[0]?.release();
  }
  expect(readdirSync(dir)).toEqual([]);
});
