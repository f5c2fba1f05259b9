/**
 * Runs that are handed over as arrays, which an agent writes down in few files, to a scheduler that is a list in memory here: whenever the agent
 * dies, each runs once, none is lost, and none that is over is taken up again. Against real schedulers: test/slurm.
 */
import { execFile } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pLimit from 'p-limit';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  type Capacity,
  type LocalJob,
  type LocalName,
  type LocalScheduler,
  NO_TERMS,
  nameKey,
  RefusedError,
  type Submission,
} from '../../src/agent/external/scheduler.js';
import { batchScript } from '../../src/agent/external/script.js';
import { ExternalRunner } from '../../src/agent/index.js';
import { type Assignment, type EndedReport, type RunReport, runKey } from '../../src/agent/runner.js';
import { PATIENCE_MS } from '../support/patience.js';
import { assignment } from './support.js';

/** More than the scripts of one file. */
const MANY = 104;
const SERVES = { service: 'http://localhost/', site: 'alps' };

interface Job extends LocalJob {
  script: string;
}

/** Jobs start when they are told to. */
class List implements LocalScheduler {
  readonly label = 'List';
  readonly hasAccounts = false;
  readonly prologue = 'local_id=$LOCAL_ID nodes=here element=$ELEMENT';
  readonly tasks = null;
  readonly parts = null;
  readonly jobs: Job[] = [];
  readonly submissions: Submission[] = [];
  /** What becomes of submissions: as it should be; lost before it knows of them; or known, and not answered; `REFUSES`: arrays. */
  does: 'ANSWERS' | 'LOSES' | 'HIDES' | 'REFUSES' = 'ANSWERS';

  async submit(submission: Submission): Promise<string[]> {
    this.submissions.push(submission);
    const { name, elements, script, directory } = submission;
    const never = new Promise<never>(() => {});
    if (this.does === 'LOSES') return never;
    if (this.does === 'REFUSES' && elements !== null) throw new RefusedError('no arrays today');
    const id = String(this.submissions.length);
    const all = Array.from(
      { length: elements ?? 1 },
      (_, i): Job => ({
        ...{ name, element: elements === null ? null : i, id: elements === null ? id : `${id}_${i}` },
        ...{
          phase: 'WAITING',
          words: 'PENDING',
          hopeless: false,
          ended: null,
          directory,
          user: null,
          script,
        },
      }),
    );
    this.jobs.push(...all);
    return this.does === 'HIDES' ? never : all.map((job) => job.id);
  }

  /** Starts those that wait, and answers when they have ended: their exit codes. */
  async run(jobs = this.jobs.filter(({ phase }) => phase === 'WAITING')): Promise<number[]> {
    const inTurn = pLimit(4);
    const start = async (job: Job): Promise<number> => {
      job.phase = 'RUNNING';
      const env = { PATH: process.env.PATH, LOCAL_ID: job.id, ELEMENT: String(job.element ?? '') };
      const code = await new Promise<number>((resolve) => {
        execFile(job.script, { env, cwd: '/' }, (error) => resolve(error === null ? 0 : Number(error.code)));
      });
      job.phase = 'ENDED';
      return code;
    };
    return Promise.all(jobs.map((job) => inTurn(start, job)));
  }

  async find(names: readonly string[]): Promise<LocalJob[]> {
    return this.jobs.filter(({ name }) => names.includes(name));
  }

  async list(prefix: string): Promise<LocalJob[]> {
    return this.jobs.filter(({ name }) => name.startsWith(prefix));
  }

  async cancel(names: readonly LocalName[]): Promise<void> {
    const keys = new Set(names.map(nameKey));
    for (const job of this.jobs)
      if (keys.has(nameKey(job)) && job.phase === 'WAITING')
        Object.assign(job, { phase: 'ENDED', ended: 'CANCELLED', words: 'CANCELLED' });
  }

  async capacity(): Promise<Capacity> {
    const node = { name: 'here', cpus: 8, memoryMb: 8_000, busyCpus: 0, busyMemoryMb: 0 };
    const nodes = [{ ...node, devices: [], labels: [], problem: null }];
    return { nodes, waiting: [], elementsMax: 1_000, takesParts: false, takesDevices: false };
  }
}

/** A state directory with agents that follow one another. */
function site() {
  const dir = mkdtempSync(join(tmpdir(), 'sy-handed-'));
  const state = join(dir, 'agent');
  const ledger = join(dir, 'ledger');
  writeFileSync(ledger, '');
  const scheduler = new List();
  const opened: ExternalRunner[] = [];
  const reports: RunReport[] = [];
  const warnings: string[] = [];
  onTestFinished(() => {
    for (const runner of opened) runner.close();
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  });
  const open = async (): Promise<ExternalRunner> => {
    const often = { pollMs: 50, listMs: 100, submissionsPerS: 1_000 };
    const warn = (fields: object, message: string): void =>
      void warnings.push(`${message} ${JSON.stringify(fields)}`);
    const runner = await ExternalRunner.open({ stateDir: state, scheduler, serves: SERVES, warn, ...often });
    opened.push(runner);
    return runner;
  };
  const run = (i: number, text = 'true'): Assignment => ({
    ...assignment(`job-${i}`, 'sh', '-c', `echo job-${i} >>${ledger}; echo out ${i}; ${text}`),
    ...{ machines: [], launch: 'ONCE', user: 'ann' },
  });
  const take = (runner: ExternalRunner): void => {
    const fresh = runner.reports(10_000);
    reports.push(...fresh);
    if (fresh.length > 0) runner.acknowledge(fresh.at(-1)!.seq);
    const output = runner.freshOutput();
    runner.delivered(
      output,
      output.map(() => 0),
    );
  };
  const standing = (): string =>
    JSON.stringify({
      warnings: warnings.slice(-20),
      reports: reports.map(({ phase, jobId }) => `${phase} ${jobId}`).slice(-20),
      jobs: scheduler.jobs.map(({ id, name, phase }) => `${id} ${name} ${phase}`).slice(-20),
      ...Object.fromEntries(['runs', 'began', 'ended'].map((name) => [name, readdirSync(join(state, name))])),
    });
  const until = async (runner: ExternalRunner, what: string, isSo: () => boolean): Promise<void> => {
    for (const giveUp = Date.now() + PATIENCE_MS; ; await sleep(20)) {
      take(runner);
      if (isSo()) return;
      if (Date.now() > giveUp) throw new Error(`waited in vain for ${what}: ${standing()}`);
    }
  };
  const ofPhase = (phase: RunReport['phase']): RunReport[] => reports.filter((one) => one.phase === phase);
  const ends = (): EndedReport[] => ofPhase('ENDED') as EndedReport[];
  const accepted = (runner: ExternalRunner, count: number): Promise<void> =>
    until(runner, `${count} runs to be accepted`, () => ofPhase('ACCEPTED').length >= count);
  /** Begun runs, sorted. */
  const ran = (): string[] => readFileSync(ledger, 'utf8').split('\n').filter(Boolean).sort();
  /** Files of the only array. */
  const filesOf = (): string[] => {
    const [name = '', ...more] = readdirSync(join(state, 'arrays')).filter((one) => !one.startsWith('.'));
    expect(more).toEqual([]);
    return readdirSync(join(state, 'arrays', name)).sort();
  };
  return { dir, state, scheduler, open, run, until, reports, ends, accepted, ran, filesOf };
}

const namesOf = (runs: readonly Pick<RunReport, 'jobId'>[]): string[] =>
  runs.map(({ jobId }) => jobId).sort();

describe('runs that are handed over together', { timeout: 4 * PATIENCE_MS }, () => {
  it('are written down in few files, and nothing else is made of one before it begins', async () => {
    const { state, scheduler, open, run, until, ends, accepted, ran, filesOf } = site();
    const runner = await open();
    const all = Array.from({ length: MANY }, (_, i) => run(i, `printf '%s\\n' 'a\\nb' "c'd"; exit ${i % 3}`));
    for (const one of all) runner.start(one);
    await accepted(runner, MANY);
    expect(scheduler.submissions.map(({ elements }) => elements)).toEqual([MANY]);
    expect(filesOf()).toEqual(['over', 'runs.0', 'runs.100', 'script', 'scripts.0', 'scripts.100']);
    expect(readdirSync(join(state, 'runs'))).toEqual([]);
    await scheduler.run();
    await until(runner, 'all ends', () => ends().length === MANY);
    expect(ran()).toEqual(namesOf(all));
    for (const { jobId, exitCode, outputs } of ends()) {
      const i = Number(jobId.slice(4));
      const out = outputs.flatMap(({ stream, text }) => (stream === 'STDOUT' ? [text] : [])).join('');
      expect([exitCode, out]).toEqual([i % 3, `out ${i}\na\\nb\nc'd\n`]);
    }
    expect(readdirSync(join(state, 'runs'))).toEqual([]);
  });

  it.each(['LOSES', 'HIDES', 'ANSWERS'] as const)(
    'run once, though the agent dies when they are written down and the scheduler %s',
    async (does) => {
      const { scheduler, open, run, until, ends, ran } = site();
      const first = await open();
      scheduler.does = does;
      const all = Array.from({ length: MANY }, (_, i) => run(i));
      for (const one of all) first.start(one);
      await until(first, 'the submission', () => scheduler.submissions.length === 1);
      first.close();
      scheduler.does = 'ANSWERS';
      const second = await open();
      expect(namesOf(second.runs())).toEqual(namesOf(all));
      await until(second, 'a job for each', () => scheduler.jobs.length >= MANY);
      await scheduler.run();
      await until(second, 'all ends', () => ends().length === MANY);
      expect(scheduler.jobs).toHaveLength(MANY);
      expect(ran()).toEqual(namesOf(all));
      expect(new Set(ends().map(({ cause }) => cause))).toEqual(new Set(['EXITED_ZERO']));
    },
  );

  it('end while there is no agent: the next one tells how', async () => {
    const { scheduler, open, run, until, ends, accepted, ran } = site();
    const first = await open();
    const all = Array.from({ length: MANY }, (_, i) => run(i, `exit ${i % 2}`));
    for (const one of all) first.start(one);
    await accepted(first, MANY);
    first.close();
    await scheduler.run();
    // It has purged them, too.
    scheduler.jobs.length = 0;
    const second = await open();
    await until(second, 'all ends', () => ends().length === MANY);
    expect(ends().filter(({ exitCode }) => exitCode === 1)).toHaveLength(MANY / 2);
    expect(ran()).toEqual(namesOf(all));
  });

  it('are over one by one: these are not taken up again, and never begin, even if nobody else remembers them', async () => {
    const { state, scheduler, open, run, until, ends, accepted, ran } = site();
    const first = await open();
    const all = Array.from({ length: MANY }, (_, i) => run(i));
    for (const one of all) first.start(one);
    await accepted(first, MANY);
    const jobs = scheduler.jobs.slice();
    const [began, cancelled, waits] = [jobs.slice(0, 20), all.slice(20, 40), all.slice(40)];
    await scheduler.run(began);
    for (const one of cancelled) first.cancel(one);
    await until(first, 'their ends', () => ends().length === 40);
    first.close();
    const second = await open();
    expect(namesOf(second.runs())).toEqual(namesOf(waits));
    // Marks of runs are removed after a day.
    for (const key of readdirSync(join(state, 'began')))
      rmSync(join(state, 'began', key), { recursive: true });
    expect(new Set(await scheduler.run(jobs.slice(0, 40)))).toEqual(new Set([75]));
    expect(readdirSync(join(state, 'runs'))).toEqual([]);
    expect(ran()).toHaveLength(20);
    await scheduler.run(jobs.slice(40));
    await until(second, 'the other ends', () => ends().length === MANY);
    expect(ran()).toEqual(namesOf([...all.slice(0, 20), ...waits]));
    expect(new Set(ends().map(({ jobId }) => jobId)).size).toBe(MANY);
  });

  it('start a second time while the first goes on: that leaves nothing behind', async () => {
    const { state, scheduler, open, run, until, ends, accepted, ran } = site();
    const runner = await open();
    const all = Array.from({ length: 10 }, (_, i) =>
      run(i, `while [ ! -e ${state}/go ]; do sleep 0.1; done`),
    );
    for (const one of all) runner.start(one);
    await accepted(runner, 10);
    const [one] = scheduler.jobs;
    const first = scheduler.run([one!]);
    await until(runner, 'its start', () => ran().length === 1);
    const before = readdirSync(join(state, 'runs', runKey(all[0]!))).sort();
    expect(await scheduler.run([{ ...one!, id: '9_0' }])).toEqual([75]);
    expect(readdirSync(join(state, 'runs', runKey(all[0]!))).sort()).toEqual(before);
    writeFileSync(join(state, 'go'), '');
    await first;
    await until(runner, 'its end', () => ends().length === 1);
    expect(ran()).toEqual(['job-0']);
  });

  it('are forgotten by the scheduler: they are submitted again under another name, which the next agent knows, too', async () => {
    const { scheduler, open, run, until, ends, accepted, ran } = site();
    const first = await open();
    const all = Array.from({ length: 20 }, (_, i) => run(i));
    for (const one of all) first.start(one);
    await accepted(first, 20);
    const lost = scheduler.jobs.splice(0);
    await until(first, 'the second submission', () => scheduler.jobs.length === 20);
    first.close();
    const second = await open();
    expect(namesOf(second.runs())).toEqual(namesOf(all));
    // Those that were lost are there again, and are first.
    scheduler.jobs.unshift(...lost);
    await scheduler.run();
    await until(second, 'all ends', () => ends().length === 20);
    expect(scheduler.submissions).toHaveLength(2);
    expect(ran()).toEqual(namesOf(all));
  });

  it('are refused as an array: each is submitted by itself, and one that waits so is found by the next agent', async () => {
    const { scheduler, open, run, until, ends, accepted, ran } = site();
    scheduler.does = 'REFUSES';
    const first = await open();
    const all = Array.from({ length: 10 }, (_, i) => run(i));
    for (const one of all) first.start(one);
    await accepted(first, 10);
    expect(scheduler.jobs.map(({ element }) => element)).toEqual(Array(10).fill(null));
    first.close();
    const second = await open();
    await scheduler.run();
    await until(second, 'all ends', () => ends().length === 10);
    expect(scheduler.jobs).toHaveLength(10);
    expect(ran()).toEqual(namesOf(all));
  });

  it('have a record cut short: nothing of these was submitted, and they can be started anew', async () => {
    const { state, scheduler, open, run, until, ends, ran } = site();
    scheduler.does = 'LOSES';
    const first = await open();
    const all = Array.from({ length: MANY }, (_, i) => run(i));
    for (const one of all) first.start(one);
    await until(first, 'the submission', () => scheduler.submissions.length === 1);
    first.close();
    const [array = ''] = readdirSync(join(state, 'arrays'));
    const last = join(state, 'arrays', array, 'runs.100');
    writeFileSync(last, readFileSync(last, 'utf8').slice(0, -10));
    scheduler.does = 'ANSWERS';
    const second = await open();
    expect(namesOf(second.runs())).toEqual(namesOf(all.slice(0, 100)));
    for (const one of all) second.start(one);
    await until(second, 'a job for each', () => scheduler.jobs.length === MANY);
    await scheduler.run();
    await until(second, 'all ends', () => ends().length === MANY);
    expect(ran()).toEqual(namesOf(all));
  });

  it('were handed over by the release before, with a record each: they are taken up, and end', async () => {
    const { dir, state, scheduler, open, run, until, ends, ran } = site();
    const former = await open();
    const { id } = former;
    former.close();
    // What that wrote: a script and a record for each, and for an array the list of scripts.
    const all = Array.from({ length: 12 }, (_, i) => run(i));
    const probe = run(99);
    const named = await open();
    named.start(probe);
    await until(named, 'a name', () => scheduler.submissions.length === 1);
    named.cancel(probe);
    await until(named, 'its end', () => ends().length === 1);
    named.close();
    expect(named.id).toBe(id);
    const prefix = scheduler.submissions[0]!.name.slice(0, -runKey(probe).length);
    const name = `${prefix}aold.1`;
    const array = join(state, 'arrays', name);
    mkdirSync(array);
    for (const [element, one] of all.entries()) {
      const directory = join(state, 'runs', runKey(one));
      mkdirSync(directory);
      const marks = {
        began: join(state, 'began', runKey(one)),
        ended: join(state, 'ended', runKey(one)),
      };
      const places = { directory, desk: directory, work: join(directory, 'work'), isMade: true, ...marks };
      writeFileSync(join(directory, 'script'), batchScript(one, {}, places, scheduler), { mode: 0o700 });
      const record = { assignment: one, terms: NO_TERMS, owner: null, handedOverMs: Date.now() };
      writeFileSync(join(directory, 'run'), JSON.stringify({ ...record, names: [{ name, element }] }));
    }
    const list = join(array, 'elements');
    writeFileSync(list, all.map((one) => `${join(state, 'runs', runKey(one))}/script\n`).join(''));
    const text = `script=$(sed -n "$((ELEMENT + 1))p" '${list}') && [ -n "$script" ] && exec "$script"\nexit 75\n`;
    writeFileSync(join(array, 'script'), `#!/bin/sh\n${text}`, { mode: 0o700 });
    scheduler.jobs.length = 0;
    const submission = { ...scheduler.submissions[0]!, name, elements: 12, directory: array };
    await scheduler.submit({ ...submission, script: join(array, 'script') });
    // One ended before there was an agent of this release.
    await scheduler.run(scheduler.jobs.slice(0, 1));
    const next = await open();
    expect(namesOf(next.runs())).toEqual(namesOf(all));
    await scheduler.run();
    await until(next, 'all ends', () => ends().length === 13);
    expect(ends().filter(({ cause }) => cause === 'EXITED_ZERO')).toHaveLength(12);
    expect(ran()).toEqual(namesOf(all));
    expect(existsSync(join(dir, 'agent', 'runs', runKey(all[0]!)))).toBe(false);
    expect(scheduler.submissions).toHaveLength(2);
  });
});
