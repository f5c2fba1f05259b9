import { type ChildProcess, spawn } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { processesOfRun } from '../../src/agent/process/processes.js';
import type { Assignment, RunReport } from '../../src/agent/runner.js';
import { processIdentity } from '../../src/platform/lockfile.js';
import {
  assignment,
  complete,
  endOf,
  ends,
  lives,
  openRunner,
  script,
  temporaryDirectory,
  until,
} from './support.js';

const host = fileURLToPath(new URL('./host.mjs', import.meta.url));

interface Host {
  child: ChildProcess;
  reports: RunReport[];
  start(run: Assignment): void;
  kill(): Promise<void>;
}

async function startHost(stateDir: string): Promise<Host> {
  const child = spawn(process.execPath, [host, stateDir], { stdio: ['pipe', 'pipe', 'inherit'] });
  const gone = new Promise<void>((resolve) => child.on('close', () => resolve()));
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await gone;
  };
  onTestFinished(kill);
  const reports: RunReport[] = [];
  let ready = false;
  createInterface({ input: child.stdout! }).on('line', (line) => {
    const message = JSON.parse(line);
    if (message.ready) ready = true;
    else reports.push(message);
  });
  await until(() => ready || child.exitCode !== null, 'the agent (is dist/ built?)');
  return { child, reports, start: (run) => child.stdin!.write(`${JSON.stringify(run)}\n`), kill };
}

it('a killed agent’s runs go on, and the next one takes them up', async () => {
  const stateDir = temporaryDirectory();
  const dir = temporaryDirectory();
  const first = await startHost(stateDir);
  // One is over before the agent dies, one while there is none, one later.
  first.start(script('job_1', `echo one >> ${dir}/log`));
  first.start(
    script('job_2', `while [ ! -e ${dir}/go2 ]; do sleep 0.02; done; echo two | tee -a ${dir}/log; exit 7`),
  );
  first.start(
    script(
      'job_3',
      `echo $$ > ${dir}/pid; while [ ! -e ${dir}/go3 ]; do sleep 0.02; done; echo three >> ${dir}/log`,
    ),
  );
  first.start({ ...assignment('job_4', 'sleep', '1000'), runTimeLimitS: 5 });
  await until(
    () => first.reports.some((r) => r.jobId === 'job_1' && r.phase === 'ENDED'),
    'the end of job_1',
  );
  await until(() => existsSync(join(dir, 'pid')), 'job_3');
  await first.kill();
  writeFileSync(join(dir, 'go2'), '');
  await until(() => readFileSync(join(dir, 'log'), 'utf8').includes('two'), 'job_2');

  const second = await openRunner({ stateDir });
  expect(lives(Number(readFileSync(join(dir, 'pid'), 'utf8')))).toBe(true);
  await until(() => endOf(second, 'job_2') !== undefined, 'the end of job_2');
  expect(endOf(second, 'job_1')).toMatchObject({ cause: 'EXITED_ZERO' });
  expect(endOf(second, 'job_2')).toMatchObject({
    cause: 'EXITED_NONZERO',
    exitCode: 7,
    stdout: { text: 'two\n' },
  });
  expect(endOf(second, 'job_2')!.cpuS).not.toBeNull();
  expect(second.runs().map((run) => run.jobId)).toContain('job_3');
  // Asked again, it starts none of them again.
  for (const id of ['job_1', 'job_2', 'job_3']) second.start(script(id, `echo again >> ${dir}/log`));
  writeFileSync(join(dir, 'go3'), '');
  await until(() => ends(second).length === 4, 'all ends');
  expect(endOf(second, 'job_3')).toMatchObject({ cause: 'EXITED_ZERO' });
  // The limit holds across the restart.
  expect(endOf(second, 'job_4')).toMatchObject({ cause: 'RUN_TIME_LIMIT' });
  expect(readFileSync(join(dir, 'log'), 'utf8')).toBe('one\ntwo\nthree\n');
  expect(await complete(second, script('job_5', 'echo five'))).toMatchObject({ stdout: { text: 'five\n' } });
});

it('a run that a killed agent has asked to end because of its limit has ended because of it', async () => {
  const stateDir = temporaryDirectory();
  const dir = temporaryDirectory();
  const first = await startHost(stateDir);
  const asked = `touch ${dir}/asked; until [ -e ${dir}/go ]; do sleep 0.02; done; trap - TERM; kill -TERM $$`;
  first.start({
    ...script('job_1', `trap '${asked}' TERM; while :; do sleep 0.02; done`),
    runTimeLimitS: 0.3,
  });
  await until(() => existsSync(join(dir, 'asked')), 'the limit');
  await first.kill();
  writeFileSync(join(dir, 'go'), '');
  const second = await openRunner({ stateDir });
  await until(() => endOf(second, 'job_1') !== undefined, 'the end');
  expect(endOf(second, 'job_1')).toMatchObject({ cause: 'RUN_TIME_LIMIT', signal: 'SIGTERM' });
});

it('a run of a killed agent can be cancelled by the next one', async () => {
  const stateDir = temporaryDirectory();
  const dir = temporaryDirectory();
  const first = await startHost(stateDir);
  first.start(
    script(
      'job_1',
      `sh -c 'trap "" TERM; echo $$ > ${dir}/a; while :; do sleep 0.1; done' & echo $$ > ${dir}/b; wait`,
    ),
  );
  await until(
    () => readdirSync(dir).length === 2 && readFileSync(join(dir, 'a'), 'utf8') !== '',
    'the processes',
  );
  await first.kill();
  const second = await openRunner({ stateDir });
  second.cancel({ jobId: 'job_1', epoch: 1 }, 100);
  await until(() => endOf(second, 'job_1') !== undefined, 'the end');
  expect(endOf(second, 'job_1')).toMatchObject({ cause: 'CANCELLED_BY_USER' });
  const pids = ['a', 'b'].map((name) => Number(readFileSync(join(dir, name), 'utf8')));
  await until(() => !pids.some(lives), 'the processes to go');
});

it('a run whose lane died with the agent is lost, and what is left of it is killed', async () => {
  const stateDir = temporaryDirectory();
  const dir = temporaryDirectory();
  const first = await startHost(stateDir);
  first.start(script('job_1', `echo $PPID > ${dir}/lane; echo $$ > ${dir}/pid; sleep 1000`));
  await until(
    () => existsSync(join(dir, 'pid')) && readFileSync(join(dir, 'pid'), 'utf8') !== '',
    'the process',
  );
  await first.kill();
  process.kill(Number(readFileSync(join(dir, 'lane'), 'utf8')), 'SIGKILL');
  const second = await openRunner({ stateDir });
  await until(() => endOf(second, 'job_1') !== undefined, 'the end');
  expect(endOf(second, 'job_1')).toMatchObject({ cause: 'LOST' });
  expect(lives(Number(readFileSync(join(dir, 'pid'), 'utf8')))).toBe(false);
});

it.each([
  ['of this boot', 'is begun: a pid that went to another process is not taken for its lane'],
  ['of an earlier boot', 'is lost, not repeated: what the lane wrote down may have gone with the power'],
])('a run that was recorded and that no lane began, %s, %s', async (when) => {
  const stateDir = temporaryDirectory();
  const slot = join(stateDir, 'slots', '1');
  mkdirSync(slot, { recursive: true });
  const record = {
    jobId: 'job_1',
    epoch: 1,
    startedAtMs: 1,
    runTimeLimitS: null,
    privateDirectory: true,
    cpuBeforeS: 0,
  };
  writeFileSync(join(slot, 'run'), `# ${JSON.stringify(record)}\nrun='job_1.1'\n`);
  const identity = when === 'of this boot' ? `${processIdentity(process.pid)}0` : 'another';
  writeFileSync(join(slot, 'lane'), JSON.stringify({ pid: process.pid, identity }));
  const runner = await openRunner({ stateDir });
  runner.start(script('job_1', 'echo begun'));
  await until(() => endOf(runner, 'job_1') !== undefined, 'the end');
  expect(endOf(runner, 'job_1')).toMatchObject(
    when === 'of this boot'
      ? { cause: 'EXITED_ZERO', stdout: { text: 'begun\n' } }
      : { cause: 'LOST', stdout: { text: '' } },
  );
  expect(ends(runner)).toHaveLength(1);
});

it('takes no process for one of a run whose lane is not known', () => {
  // The system's own processes, and those from outside a container, are in group and session 0.
  expect(processesOfRun(0, false, 'SWITCHYARD_RUN=of no run')).toEqual([]);
});

it('goes on with the state directory of an earlier release: outputs in slots, lines without checksums', async () => {
  const stateDir = temporaryDirectory();
  const slots = join(stateDir, 'slots');
  const hold = (number: string, jobId: string): string => {
    const slot = join(slots, number);
    mkdirSync(join(slot, 'work'), { recursive: true });
    const record = {
      ...{ jobId, epoch: 1, startedAtMs: Date.now() - 5000, runTimeLimitS: null },
      ...{ privateDirectory: true, cpuBeforeS: 1 },
    };
    writeFileSync(join(slot, 'run'), `# ${JSON.stringify(record)}\nrun='${jobId}.1'\n`);
    writeFileSync(join(slot, 'out'), `${jobId} before\n`);
    writeFileSync(join(slot, 'err'), '');
    writeFileSync(
      join(slot, 'lane'),
      JSON.stringify({ pid: process.pid, identity: 'of an earlier process' }),
    );
    return slot;
  };
  // One ended while no agent was there, and one is lost.
  writeFileSync(join(hold('1', 'job_2'), 'end'), '0m0.000s 0m0.000s\n0m2.000s 0m0.500s\njob_2.1 3\n');
  writeFileSync(join(hold('2', 'job_3'), 'end'), '');
  // One was reported, half acknowledged; and its slot is free.
  const free = hold('3', 'job_1');
  writeFileSync(join(free, 'run'), '#-{}\n');
  const line = (report: object): string => `${JSON.stringify({ epoch: 1, atMs: 1, ...report })}\n`;
  mkdirSync(join(stateDir, 'reports'));
  writeFileSync(
    join(stateDir, 'reports', '1.jsonl'),
    line({ seq: 1, phase: 'STARTED', jobId: 'job_1' }) +
      line({ seq: 2, phase: 'ENDED', jobId: 'job_1', cause: 'EXITED_ZERO', exitCode: 0 }) +
      line({ seq: 3, phase: 'STARTED', jobId: 'job_2' }),
  );
  writeFileSync(join(stateDir, 'reports', 'acknowledged'), '1'.padStart(16));

  const told: object[] = [];
  const runner = await openRunner({ stateDir, warn: (fields) => told.push(fields) });
  await until(() => ends(runner).length === 3, 'the ends');
  expect(told).toEqual([]);
  expect(runner.reports(10).map(({ seq }) => seq)).toEqual([2, 3, 4, 5, 6]);
  expect(endOf(runner, 'job_1')).toMatchObject({ cause: 'EXITED_ZERO' });
  expect(endOf(runner, 'job_2')).toMatchObject({
    ...{ cause: 'EXITED_NONZERO', exitCode: 3, cpuS: 1.5 },
    stdout: { text: 'job_2 before\n' },
  });
  expect(endOf(runner, 'job_3')).toMatchObject({ cause: 'LOST', stdout: { text: 'job_3 before\n' } });
  // Known, so never started again; and new ones run in its place.
  for (const id of ['job_1', 'job_2', 'job_3']) runner.start(script(id, 'echo again'));
  expect(await complete(runner, script('job_4', 'echo new'))).toMatchObject({ stdout: { text: 'new\n' } });
  expect(ends(runner)).toHaveLength(4);
  runner.close();
  const next = await openRunner({ stateDir });
  expect(ends(next)).toHaveLength(4);
});

it('keeps reports until they are acknowledged, over restarts, and a torn last line does no harm', async () => {
  const stateDir = temporaryDirectory();
  const first = await openRunner({ stateDir });
  for (const id of ['job_1', 'job_2', 'job_3']) await complete(first, script(id, `echo ${id}`));
  first.acknowledge(3);
  first.close();
  const segment = readdirSync(join(stateDir, 'reports')).find((name) => name.endsWith('.jsonl'))!;
  appendFileSync(join(stateDir, 'reports', segment), '{"seq":7,"jobId":"job_');
  const second = await openRunner({ stateDir });
  expect(second.reports(10).map(({ seq, jobId, phase }) => `${seq} ${jobId} ${phase}`)).toEqual([
    '4 job_2 ENDED',
    '5 job_3 STARTED',
    '6 job_3 ENDED',
  ]);
  await complete(second, script('job_4', ''));
  expect(second.reports(10).map((report) => report.seq)).toEqual([4, 5, 6, 7, 8]);
  second.acknowledge(8);
  second.close();
  const third = await openRunner({ stateDir });
  expect(third.reports(10)).toEqual([]);
  expect((await complete(third, script('job_5', ''))).seq).toBe(10);
});

it('a spoiled line of the journal costs that report, not those around it', async () => {
  const stateDir = temporaryDirectory();
  const first = await openRunner({ stateDir });
  for (const id of ['job_1', 'job_2', 'job_3']) await complete(first, script(id, `echo ${id}`));
  first.close();
  const reports = join(stateDir, 'reports');
  const segment = join(reports, readdirSync(reports).find((name) => name.endsWith('.jsonl'))!);
  const lines = readFileSync(segment, 'utf8').split('\n');
  // A letter of the fourth is another now: still JSON, but not what was written.
  lines[3] = lines[3]!.replace('job_2', 'job_9');
  // And a power cut left a hole.
  writeFileSync(segment, `${lines.join('\n')}${'\0'.repeat(100)}\n`);
  const told: object[] = [];
  const second = await openRunner({ stateDir, warn: (fields) => told.push(fields) });
  expect(second.reports(10).map(({ jobId, phase }) => `${jobId} ${phase}`)).toEqual([
    'job_1 STARTED',
    'job_1 ENDED',
    'job_2 STARTED',
    'job_3 STARTED',
    'job_3 ENDED',
  ]);
  expect(told).toEqual([{ lines: 2 }]);
  await complete(second, script('job_4', ''));
});

it('one state directory serves one agent', async () => {
  const stateDir = temporaryDirectory();
  await openRunner({ stateDir });
  await expect(openRunner({ stateDir })).rejects.toThrow(`is in use by the running process ${process.pid}`);
});

it('200 processes, many at once, the agent killed three times in between: each runs once and is accounted for', async () => {
  const stateDir = temporaryDirectory();
  const dir = temporaryDirectory();
  const runs = Array.from({ length: 200 }, (_, i) =>
    script(`job_${i}`, `echo ${i} >> ${dir}/log; sleep 0.0${i % 10}; exit ${i % 3}`),
  );
  const atOnce = 20;
  const seen = new Map<string, RunReport>();
  for (let round = 0; seen.size < runs.length; round++) {
    const agent = await startHost(stateDir);
    const collect = (): void => {
      for (const report of agent.reports) if (report.phase === 'ENDED') seen.set(report.jobId, report);
    };
    const begun = new Set<string>();
    const enough = round < 3 ? 40 * (round + 1) : runs.length;
    await until(() => {
      collect();
      // The service sends all that it believes not to have ended, also what the agent before had begun.
      for (const run of runs) {
        if (begun.size - [...begun].filter((id) => seen.has(id)).length >= atOnce) break;
        if (seen.has(run.jobId) || begun.has(run.jobId)) continue;
        begun.add(run.jobId);
        agent.start(run);
      }
      return seen.size >= enough;
    }, 'the ends');
    await agent.kill();
  }
  const log = readFileSync(join(dir, 'log'), 'utf8').trim().split('\n');
  expect(new Set(log).size).toBe(log.length);
  expect(log.length).toBe(runs.length);
  for (const [i, run] of runs.entries()) expect(seen.get(run.jobId)).toMatchObject({ exitCode: i % 3 });
});
