/** The file system that nodes share with the agent, which hangs where a pipe is opened that nobody writes into. */
import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { HangError, Notes, SharedFiles } from '../../src/agent/external/shared.js';
import { temporaryDirectory, until } from './support.js';

function shared() {
  const dir = temporaryDirectory();
  const files = new SharedFiles();
  onTestFinished(() => files.close());
  const pipe = join(dir, 'pipe');
  execFileSync('mkfifo', [pipe]);
  /** Lets go whoever has opened the pipe. */
  const release = (): void => closeSync(openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK));
  return { dir, files, pipe, release };
}

it('answers as the file system does, with its errors', async () => {
  const { dir, files } = shared();
  const { calls } = files;
  const file = join(dir, 'file');
  calls.writeFileSync(file, 'some text', { mode: 0o600 });
  const fd = calls.openSync(file, constants.O_RDWR, 0o600);
  const into = Buffer.alloc(9, '.');
  expect([calls.readSync(fd, into, 2, 4, 5), into.toString()]).toEqual([4, '..text...']);
  expect(calls.fstatSync(fd).size).toBe(9);
  calls.closeSync(fd);
  expect(() => calls.readFileSync(join(dir, 'none'), 'utf8')).toThrow(
    expect.objectContaining({ code: 'ENOENT' }),
  );
  expect(calls.textIn(dir, 'file')).toBe('some text');
  expect(calls.take(join(dir, 'draft'), 'who', 'me', join(dir, 'place'))).toBe(true);
  expect(calls.take(join(dir, 'draft'), 'who', 'you', join(dir, 'place'))).toBe(false);
  expect(calls.textIn(join(dir, 'place'), 'who')).toBe('me');
  const notes = new Notes();
  notes.calls.mkdirSync(join(dir, 'more'), { recursive: true });
  notes.calls.rmdirSync(join(dir, 'none'));
  notes.calls.mkdirSync(join(dir, 'never'), { recursive: true });
  const rest = new Notes();
  rest.calls.writeFileSync(join(dir, 'more', 'b'), 'b', { mode: 0o600 });
  const problems = await files.later([notes.noted, rest.noted]);
  expect(problems).toEqual([expect.stringContaining('ENOENT'), null]);
  expect(readdirSync(dir).sort()).toEqual(['file', 'more', 'pipe', 'place']);
});

it('gives up what hangs, and all behind it until that answers; what was asked for is done in its order', async () => {
  const { dir, files, pipe, release } = shared();
  const { calls } = files;
  const file = join(dir, 'file');
  expect(() => calls.readFileSync(pipe, 'utf8')).toThrow(HangError);
  expect(files.hangs).toBe(true);
  // At once, and without being asked for.
  expect(() => calls.writeFileSync(file, 'never', { mode: 0o600 })).toThrow(HangError);
  await expect(files.later([[['writeFileSync', file, 'late', { mode: 0o600 }]]])).rejects.toThrow(HangError);
  release();
  await until(() => !files.hangs, 'an answer');
  calls.writeFileSync(`${file}.2`, 'now', { mode: 0o600 });
  // It was given up in mind only.
  expect([readFileSync(file, 'utf8'), readFileSync(`${file}.2`, 'utf8')]).toEqual(['late', 'now']);
});

it('closes a file that is opened for nobody any more', async () => {
  const { files, pipe, release } = shared();
  const open = (): string[] => readdirSync('/proc/self/fd');
  const before = open().length;
  expect(() => files.calls.openSync(pipe, constants.O_RDONLY, 0o600)).toThrow(HangError);
  release();
  await until(() => !files.hangs && open().length <= before, 'an answer');
});

it('lets many calls take their time, as long as each is done', async () => {
  const { dir, files } = shared();
  writeFileSync(join(dir, 'one'), '');
  const groups = Array.from({ length: 5_000 }, (_, i) => {
    const { noted, calls } = new Notes();
    calls.writeFileSync(join(dir, `f${i}`), 'x', { mode: 0o600 });
    return noted;
  });
  const done = files.later(groups);
  // Behind all of these, and answered nevertheless.
  expect(files.calls.readdirSync(dir)).toHaveLength(5_002);
  expect((await done).every((problem) => problem === null)).toBe(true);
});
