/** A job of a higher preemption class has a run stopped for it, with real processes; what was stopped runs again to its end. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { endAll, type Service, serve, until } from './service.js';

const home = mkdtempSync(join(tmpdir(), 'switchyard-preemption-'));
let service: Service;

interface Job {
  id: string;
  state: string;
  cause: string | null;
  runs: {
    epoch: number;
    cause: string | null;
    startedAt: string;
    endedAt: string;
    checkpointAt: string | null;
  }[];
}
const job = (id: string) => service.json<Job>('job', id);
const submit = async (...args: string[]): Promise<string> =>
  (await service.json<{ id: string }[]>('submit', '--cpus', String(cpus().length), ...args))[0]!.id;
/** Asks until the job is in one of the states. */
const reaches = (id: string, ...states: string[]): Promise<Job> =>
  until(
    () => job(id),
    ({ state }) => states.includes(state),
  );
/** Its first run lasts until it is stopped, with this file as its sign; the next ends at once. */
const stopped = (file: string, trap = '') =>
  submit('--', 'sh', '-c', `test -e ${file} && exit 0; ${trap} touch ${file}; while :; do sleep 1; done`);

beforeAll(async () => {
  service = await serve(home);
  const { document } = await service.json<{ document: object }>('policy');
  const file = join(home, 'policy.json');
  writeFileSync(file, JSON.stringify({ ...document, preemption: { graceS: 2, exemptS: 0 } }));
  expect(await service.cli('policy', 'set', file, '--reason', 'preemption')).toMatchObject({ code: 0 });
});
afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

it('stops a run of a lower class, by SIGKILL if it must, and starts it again when there is room', async () => {
  for (const trap of ['', 'trap "" TERM;']) {
    const file = join(home, `began${trap.length}`);
    const low = await stopped(file, trap);
    await until(async () => existsSync(file), Boolean);
    await reaches(low, 'RUNNING');
    const high = await submit('--class', '5', '--', 'true');
    const first = await reaches(high, 'COMPLETED');
    const second = await reaches(low, 'COMPLETED');
    expect(second.runs.map(({ cause }) => cause).sort()).toEqual(['EXITED_ZERO', 'PREEMPTED']);
    const preempted = second.runs.find(({ cause }) => cause === 'PREEMPTED');
    expect(Date.parse(first.runs[0]!.startedAt)).toBeGreaterThanOrEqual(Date.parse(preempted!.endedAt));
    expect((await service.cli('why', low)).stdout).toContain('Stopped to make room');
    expect((await service.cli('why', high)).stdout).toContain('stopped for it');
  }
});

it('continues from its checkpoint, which is kept over every stop but not after a good end', async () => {
  const marks = join(home, 'marks');
  // Counts what it has; each run adds one when it is told that it is stopped, and the third ends well.
  const script = `n=$(cat "$SWITCHYARD_CHECKPOINT" 2>/dev/null || echo 0); echo "$n" >> ${marks}; test "$n" -ge 2 && exit 0
    trap 'echo $((n + 1)) > part; mv part state; exit 3' USR1; trap 'exit 4' TERM; while :; do sleep 0.1; done`;
  const low = await submit(
    ...['--checkpoint', 'state', '--checkpoint-signal', 'SIGUSR1', '--', 'sh', '-c', script],
  );
  const begun = (runs: number) =>
    until(
      async () => (existsSync(marks) ? readFileSync(marks, 'utf8').trim().split('\n').length : 0),
      (lines) => lines === runs,
    );
  for (const run of [1, 2]) {
    await begun(run);
    await reaches(low, 'RUNNING');
    const high = await submit('--class', '5', '--', 'true');
    await reaches(high, 'COMPLETED');
  }
  const { runs } = await reaches(low, 'COMPLETED', 'FAILED');
  expect(readFileSync(marks, 'utf8')).toBe('0\n1\n2\n');
  expect(runs.map(({ cause }) => cause).sort()).toEqual(['EXITED_ZERO', 'PREEMPTED', 'PREEMPTED']);
  const key = readFileSync(join(home, 'admin.key'), 'utf8').trim();
  const files = ['1', '2', '3'].map(async (epoch) => {
    const url = new URL(`/jobs/${low}/files/state?epoch=${epoch}`, service.url);
    const answer = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
    return answer.ok ? await answer.text() : answer.status;
  });
  expect(await Promise.all(files)).toEqual([404, '2\n', 404]);
});

it('continues from the directory that it has reported last, not from the one that it was writing', async () => {
  const [marks, ready] = [join(home, 'steps'), join(home, 'ready')];
  // It does nothing when it is stopped.
  const script = `n=$(cat "$SWITCHYARD_CHECKPOINT/sub/n" 2>/dev/null || echo 0); echo "$n" >> ${marks}
    test "$n" -ge 2 && exit 0; mkdir -p step-1/sub step-2/sub; echo $((n + 1)) > step-1/sub/n; echo more > step-1/more
    echo step-1 >> "$SWITCHYARD_CHECKPOINT_REPORT"; echo 99 > step-2/sub/n; touch ${ready}$n; while :; do sleep 0.1; done`;
  const low = await submit('--checkpoint', 'state', '--', 'sh', '-c', script);
  for (const n of [0, 1]) {
    await until(async () => existsSync(`${ready}${n}`), Boolean);
    await until(
      () => job(low),
      ({ state, runs }) =>
        state === 'RUNNING' &&
        runs.some(({ epoch, checkpointAt }) => epoch === n + 1 && checkpointAt !== null),
    );
    await reaches(await submit('--class', '5', '--', 'true'), 'COMPLETED');
  }
  const { runs } = await reaches(low, 'COMPLETED', 'FAILED');
  expect(readFileSync(marks, 'utf8')).toBe('0\n1\n2\n');
  expect(runs.map(({ cause }) => cause).sort()).toEqual(['EXITED_ZERO', 'PREEMPTED', 'PREEMPTED']);
  const key = readFileSync(join(home, 'admin.key'), 'utf8').trim();
  const url = new URL(`/jobs/${low}/files/state?epoch=2`, service.url);
  const kept = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
  const names = execFileSync('tar', ['-tf', '-'], { input: Buffer.from(await kept.arrayBuffer()) });
  expect(String(names).trim().split('\n').sort()).toEqual(['more', 'sub/n']);
});

it('of several tasks each continues from its own file, all from one run', async () => {
  const marks = join(home, 'tasks');
  // In the second run the second task leaves nothing: both go on from the first.
  const script = `n=$(cat "$SWITCHYARD_CHECKPOINT" 2>/dev/null || echo none)
    echo "$SWITCHYARD_EPOCH $SWITCHYARD_TASK_INDEX $n" >> ${marks}; test $SWITCHYARD_EPOCH = 3 && exit 0
    mine=$SWITCHYARD_EPOCH.$SWITCHYARD_TASK_INDEX
    trap 'test $mine != 2.1 && echo $mine > part && mv part state; exit 3' USR1; while :; do sleep 0.1; done`;
  const low = (
    await service.json<{ id: string }[]>(
      ...['submit', '--tasks', '2', '--cpus', '1', '--checkpoint', 'state', '--checkpoint-signal', 'SIGUSR1'],
      ...['--', 'sh', '-c', script],
    )
  )[0]!.id;
  for (const run of [1, 2]) {
    await until(
      async () => (existsSync(marks) ? readFileSync(marks, 'utf8').trim().split('\n').length : 0),
      (lines) => lines === 2 * run,
    );
    await reaches(low, 'RUNNING');
    await reaches(await submit('--class', '5', '--', 'true'), 'COMPLETED');
  }
  await reaches(low, 'COMPLETED', 'FAILED');
  expect(readFileSync(marks, 'utf8').trim().split('\n').sort()).toEqual([
    ...['1 0 none', '1 1 none', '2 0 1.0', '2 1 1.1', '3 0 1.0', '3 1 1.1'],
  ]);
});

it('goes on after the service and its agent were killed in between', async () => {
  const file = join(home, 'killed');
  const low = await stopped(file, 'trap "" TERM;');
  await until(async () => existsSync(file), Boolean);
  await reaches(low, 'RUNNING');
  const high = await submit('--class', '5', '--', 'true');
  // CANCELLING, unless the machine was too busy to see it.
  await until(
    () => job(low),
    ({ state }) => state !== 'RUNNING',
  );
  await service.process.end('SIGKILL');
  service = await serve(home);
  for (const id of [high, low]) await reaches(id, 'COMPLETED');
  expect((await job(low)).runs.map(({ cause }) => cause).sort()).toEqual(['EXITED_ZERO', 'PREEMPTED']);
  expect((await job(high)).runs).toHaveLength(1);
});

it.runIf(cpus().length > 1)(
  'stops the run that has just written its checkpoint, though it has run for longer',
  async () => {
    const all = cpus().length;
    const lost = async () =>
      (await service.json<{ preemptionClass: number; runs: number; cpuS: number }[]>('lost'))[0];
    const before = await lost();
    const [began, go] = [join(home, 'saved'), join(home, 'save')];
    const low = async (share: number, script: string, ...args: string[]): Promise<string> => {
      const command = ['--cpus', String(share), ...args, '--', 'sh', '-c', script];
      const { id } = (await service.json<{ id: string }[]>('submit', ...command))[0]!;
      await reaches(id, 'RUNNING');
      return id;
    };
    const saves = `test -e ${began} && exit 0; until test -e ${go}; do sleep 0.1; done; echo 1 > state; touch ${began}; while :; do sleep 1; done`;
    const saving = await low(Math.ceil(all / 2), saves, '--checkpoint', 'state');
    const other = await low(Math.floor(all / 2), 'while :; do sleep 1; done');
    writeFileSync(go, '');
    const written = await until(
      () => job(saving),
      ({ runs }) => runs[0]?.checkpointAt != null,
    );
    expect(Date.parse(written.runs[0]!.checkpointAt as string)).toBeGreaterThan(
      Date.parse((await job(other)).runs[0]!.startedAt),
    );
    expect((await service.cli('job', saving)).stdout).toContain('run 1: last wrote its checkpoint at ');
    const [high] = await service.json<{ id: string }[]>(
      ...(['submit', '--cpus', String(Math.floor(all / 2)), '--class', '5', '--', 'true'] as const),
    );
    await reaches(high!.id, 'COMPLETED');
    const stoppedRuns = (await reaches(saving, 'COMPLETED')).runs;
    expect(stoppedRuns.map(({ cause }) => cause).sort()).toEqual(['EXITED_ZERO', 'PREEMPTED']);
    expect((await job(other)).runs).toMatchObject([{ cause: null }]);
    // What it had saved is not lost.
    const { checkpointAt, endedAt } = stoppedRuns.find(({ cause }) => cause === 'PREEMPTED')!;
    const after = await lost();
    expect(after).toMatchObject({ preemptionClass: 0, runs: (before?.runs ?? 0) + 1 });
    expect(after!.cpuS - (before?.cpuS ?? 0)).toBeCloseTo(
      (Math.ceil(all / 2) * (Date.parse(endedAt) - Date.parse(checkpointAt as string))) / 1000,
      2,
    );
    expect(await service.cli('cancel', other)).toMatchObject({ code: 0 });
  },
);
