/** What agents take of the steps that `srun` in a run has noted, and what they leave: the job could have written anything. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { notedSteps, STEPS } from '../../src/agent/files/steps.js';
import { MAX } from '../../src/platform/limits.js';
import { type NotedStep, STEP_RECORDS } from '../../src/platform/steps.js';
import { complete, openRunner, script, temporaryDirectory } from './support.js';

const step = (number: number, change: Partial<Record<keyof NotedStep, unknown>> = {}) => ({
  ...{ number, name: `s${number}`, tasks: 1, machines: 1, cpus: 2, startedAtMs: 1000 },
  ...{ endedAtMs: 2000, exitCode: 0, signal: null, ...change },
});
const open = { endedAtMs: null, exitCode: null };
const lines = (...records: readonly unknown[]): string =>
  records.map((one) => `${typeof one === 'string' ? one : JSON.stringify(one)}\n`).join('');

/** A directory of a run with that in its file, and how the agent reads it. */
function noted(text: string) {
  const directory = temporaryDirectory();
  mkdirSync(join(directory, STEPS));
  const path = join(directory, STEPS, STEP_RECORDS);
  writeFileSync(path, text);
  return { directory, path, read: () => notedSteps({ directory, uid: null }) };
}
const readFrom = (text: string): Promise<NotedStep[]> => noted(text).read();

it('reads a step from its start and from its end, in the order of numbers', async () => {
  const killed = { exitCode: 137, signal: 'SIGKILL' };
  const text = lines(step(0, open), step(1, open), step(2, open), step(1, killed), step(0));
  expect(await readFrom(text)).toEqual([step(0), step(1, killed), step(2, open)]);
  // What has ended stays so.
  expect(await readFrom(lines(step(0), step(0, open), step(0, { exitCode: 5 })))).toEqual([step(0)]);
  expect(await notedSteps({ directory: temporaryDirectory(), uid: null })).toEqual([]);
});

it('leaves out what is torn, no step, or beyond what a step can be', async () => {
  const wrong = [
    ...['', 'x', '{', '[]', 'null', '3', '"a"', '{"number":0}'],
    ...[{ number: -1 }, { number: 1.5 }, { number: MAX.integer + 1 }, { number: '1' }, { name: 5 }],
    ...[{ tasks: 0 }, { cpus: 1e30 }, { machines: null }, { startedAtMs: -1 }, { startedAtMs: 1e300 }],
    ...[{ endedAtMs: 'now' }, { exitCode: 256 }, { exitCode: -1 }, { signal: '9' }, { signal: 'SIGx; rm' }],
  ].map((one) => (typeof one === 'string' ? one : step(7, one)));
  const text = lines(...wrong, step(1));
  expect(await readFrom(`${text}${JSON.stringify(step(2))}`)).toEqual([step(1)]);
  const [named] = await readFrom(
    lines({ ...step(0, { name: `a\nb\u001b[31m${'x'.repeat(1e4)}` }), more: 1 }),
  );
  expect(named!.name).toBe(`a?b?[31m${'x'.repeat(1e4)}`.slice(0, MAX.nameChars));
  expect(named).not.toHaveProperty('more');
});

it('reads so many and no more, however large the file is', async () => {
  const many = Array.from({ length: MAX.runSteps + 500 }, (_, number) => step(number, open));
  const ended = step(3, { exitCode: 4 });
  const found = await readFrom(lines(...many.slice(0, MAX.runSteps + 10), ended));
  expect(found).toHaveLength(MAX.runSteps);
  expect(found[3]).toEqual(ended);
  expect(await readFrom(lines(...many.map(() => 'x'), ...many, ended))).toHaveLength(500);
  expect(await readFrom(`${'x'.repeat(2 ** 21)}\n${lines(step(0))}`)).toEqual([]);
  const holes = noted(lines(step(0)));
  truncateSync(holes.path, 2 ** 43);
  expect(await holes.read()).toEqual([]);
});

it('takes no file that is not in the directory of the run, or is none', async () => {
  const elsewhere = noted(lines(step(0)));
  const linked = noted('');
  rmSync(linked.path);
  symlinkSync(elsewhere.path, linked.path);
  expect(await linked.read()).toEqual([]);
  rmSync(join(linked.directory, STEPS), { recursive: true });
  symlinkSync(join(elsewhere.directory, STEPS), join(linked.directory, STEPS));
  expect(await linked.read()).toEqual([]);
  const pipe = noted('');
  rmSync(pipe.path);
  execFileSync('mkfifo', [pipe.path]);
  expect(await pipe.read()).toEqual([]);
  const directory = noted('');
  rmSync(directory.path);
  mkdirSync(directory.path);
  expect(await directory.read()).toEqual([]);
  // Of somebody else.
  const uid = (process.getuid?.() ?? 0) + 1;
  expect(await notedSteps({ directory: elsewhere.directory, uid })).toEqual([]);
});

it('reports them with the end of the run, within it, and nothing of the run before', async () => {
  const runner = await openRunner();
  const file = join(temporaryDirectory(), 'steps');
  const times = { startedAtMs: 5, endedAtMs: 8e15 };
  writeFileSync(file, lines(step(0, times), step(1, { ...open, startedAtMs: 8e15 })));
  const end = await complete(
    runner,
    script('job_1', `mkdir "$SWITCHYARD_STEPS"; cp ${file} "$SWITCHYARD_STEPS/${STEP_RECORDS}"; exit 3`),
  );
  expect(end).toMatchObject({
    exitCode: 3,
    steps: [
      { number: 0, exitCode: 0 },
      { number: 1, ...open },
    ],
  });
  const began = end.steps![0]!.startedAtMs;
  expect(Math.abs(began - Date.now())).toBeLessThan(3_600_000);
  expect(end.steps![0]!.endedAtMs).toBe(end.atMs);
  expect(end.steps![1]!.startedAtMs).toBe(end.atMs);
  const next = await complete(runner, script('job_2', 'ls -A; echo "$SWITCHYARD_STEPS"'));
  expect(next).not.toHaveProperty('steps');
  expect(next.stdout?.text).toMatch(/^\/.*steps\n$/);
  expect(readFileSync(file, 'utf8')).not.toBe('');
});
