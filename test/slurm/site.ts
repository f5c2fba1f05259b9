/** A site with a real Slurm (test/support/slurm.sh) and the agent's runner, for tests of what goes wrong there. */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import type { ExternalRunnerOptions } from '../../src/agent/external/runner.js';
import { ExternalRunner, type LocalScheduler, Slurm } from '../../src/agent/index.js';
import type { Accounts } from '../../src/agent/process/accounts.js';
import type { Assignment, EndedReport, LiveOutput, RunReport } from '../../src/agent/runner.js';
import { hostEnvironment } from '../../src/platform/environment.js';
import { assignment } from '../agent/support.js';
import { PATIENCE_MS } from '../support/patience.js';
import { slurmCluster } from '../support/slurm.js';

/** Looks of the runner, more often than at a site. */
const OFTEN = { pollMs: 200, listMs: 1_000 };
const SERVES = { service: 'http://localhost/', site: 'alps' };

export const options = (environment: Record<string, string>) => ({
  ...{ partition: null, account: null, options: [], environment },
});

/** Starts it before the tests of a file and ends it after them; each test begins with an empty queue. `variables`: of slurm.sh. */
export function slurmSite(variables: Record<string, string> = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'sy-faults-'));
  const cluster = join(dir, 'cluster');
  const conf = join(cluster, 'slurm.conf');
  const ledger = join(dir, 'ledger');
  const bin = join(dir, 'bin');
  const runners: ExternalRunner[] = [];
  const reports: RunReport[] = [];
  /** Of output, that came before the ends. */
  const pieces: LiveOutput[] = [];
  let jobs = 0;
  let warnings: string[] = [];

  const environment = (): Record<string, string> => {
    const own = hostEnvironment();
    return { ...own, SLURM_CONF: conf, PATH: `${bin}${delimiter}${own.PATH}` };
  };
  const cli = (program: string, ...words: string[]): string =>
    execFileSync(program, words, { env: { ...process.env, SLURM_CONF: conf }, encoding: 'utf8' });
  const control = slurmCluster(cluster, variables);
  /**
   * A slurmctld that has forgotten jobs would give their ids again, which a node that still has them in mind refuses: that is what the random
   * kills of slurm.test and federation.test are for, and would fail tests here now and then. One test has it give them again.
   */
  let kills = 0;
  const slurm = (verb: 'start' | 'stop' | 'kill', ...words: string[]): void => {
    if (verb === 'kill') kills++;
    control(verb, ...words, ...(verb === 'start' && kills > 0 ? [String(kills * 1_000)] : []));
  };
  /** slurmctld's files are gone, and nobody knows its jobs; `from`: it gives ids from there on, which jobs had before. */
  const forget = (from?: number): void => {
    slurm('kill');
    rmSync(join(cluster, 'state'), { recursive: true, force: true });
    mkdirSync(join(cluster, 'state'), { mode: 0o700 });
    if (from === undefined) slurm('start');
    else control('start', String(from));
  };
  /** What slurmctld has saved, once that knows the run; what is given puts it back, and slurmctld is down then. */
  const saved = async (runner: ExternalRunner, { jobId }: Assignment): Promise<() => void> => {
    const [state, older] = [join(cluster, 'state'), join(dir, 'older')];
    const knows = (): boolean => readFileSync(join(state, 'job_state'), 'latin1').includes(`${jobId}.1`);
    await until(runner, 'its state to be saved', () => (knows() ? true : null));
    // slurmctld exchanges its files: of a copy in which one was missing that moment another is made.
    await until(runner, 'a copy of its state', () => {
      rmSync(older, { recursive: true, force: true });
      try {
        cpSync(state, older, { recursive: true });
        return true;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
        throw error;
      }
    });
    return () => {
      slurm('kill');
      rmSync(state, { recursive: true });
      renameSync(older, state);
    };
  };
  const resume = (): void => {
    // Ids that are given twice drain nodes of this Slurm: its administrator has to look.
    spawnSync('scontrol', ['update', 'nodename=n[1-3]', 'state=resume'], {
      env: { ...process.env, SLURM_CONF: conf },
    });
  };
  /** Instead of a program of Slurm's. */
  const instead = (program: string, text: string): void => {
    const real = cli('sh', '-c', `command -v ${program}`).trim();
    writeFileSync(join(bin, program), `#!/bin/sh\nreal=${real}\n${text}\n`);
    chmodSync(join(bin, program), 0o755);
  };

  /** Has calls of programs of Slurm's counted; answers with those that there were since: their words, and when they began (ms). */
  const counted = (...programs: string[]): (() => { words: string; atMs: number }[]) => {
    const calls = join(dir, 'counted');
    rmSync(calls, { force: true });
    for (const program of programs)
      instead(program, `echo "$(date +%s%3N) ${program} $*" >>${calls}; exec "$real" "$@"`);
    return () =>
      (existsSync(calls) ? readFileSync(calls, 'utf8') : '')
        .split('\n')
        .filter(Boolean)
        .map((line) => ({ atMs: Number(line.split(' ', 1)[0]), words: line.replace(/^\d+ /, '') }));
  };

  const open = async (
    state = 'agent',
    scheduler: LocalScheduler = new Slurm(options(environment())),
    accounts: Accounts | null = null,
    more: Partial<ExternalRunnerOptions> = {},
  ): Promise<ExternalRunner> => {
    const runner = await ExternalRunner.open({
      ...{ stateDir: join(dir, state), scheduler, accounts, serves: SERVES, ...OFTEN },
      warn: (fields, message) => warnings.push(`${message} ${JSON.stringify(fields)}`),
      ...more,
    });
    runners.push(runner);
    return runner;
  };
  const run = (text: string, more: Partial<Assignment> = {}): Assignment => {
    const jobId = `job-${++jobs}`;
    return {
      ...assignment(jobId, 'sh', '-c', `echo ${jobId} >>${ledger}; ${text}`),
      ...{ machines: [], launch: 'ONCE', memoryMbPerTask: 10, killGraceS: 10, plannedS: 5, user: 'ann' },
      ...more,
    };
  };
  /** Takes the reports, as a service does. */
  const take = (runner: ExternalRunner): void => {
    const fresh = runner.reports(1_000);
    reports.push(...fresh);
    if (fresh.length > 0) runner.acknowledge(fresh.at(-1)!.seq);
    const output = runner.freshOutput();
    pieces.push(...output);
    runner.delivered(
      output,
      output.map(() => 0),
    );
  };
  const until = async <T>(
    runner: ExternalRunner,
    what: string,
    ask: () => T | null | undefined,
  ): Promise<T> => {
    for (const deadline = Date.now() + 2 * PATIENCE_MS; ; await sleep(100)) {
      take(runner);
      const answer = ask();
      if (answer !== null && answer !== undefined) return answer;
      if (Date.now() > deadline)
        throw new Error(
          `waited in vain for ${what}\n${JSON.stringify(reports)}\n${warnings.join('\n')}\n${cli('squeue')}`,
        );
    }
  };
  const reported = (
    runner: ExternalRunner,
    phase: RunReport['phase'],
    { jobId }: Assignment,
  ): Promise<RunReport> =>
    until(runner, `${phase} of ${jobId}`, () =>
      reports.find((one) => one.phase === phase && one.jobId === jobId),
    );
  const end = async (runner: ExternalRunner, assignment: Assignment): Promise<EndedReport> =>
    (await reported(runner, 'ENDED', assignment)) as EndedReport;
  /** What a run that has ended has written. */
  const written = async (runner: ExternalRunner, assignment: Assignment): Promise<string> => {
    const { outputs } = await end(runner, assignment);
    const before = pieces.filter(({ jobId }) => jobId === assignment.jobId);
    return [...before, ...outputs].map(({ text = '' }) => text).join('');
  };
  const localId = async (runner: ExternalRunner, assignment: Assignment): Promise<string> =>
    ((await reported(runner, 'ACCEPTED', assignment)) as { local?: { id: string | null } }).local
      ?.id as string;
  const ran = ({ jobId }: Assignment): number =>
    (existsSync(ledger) ? readFileSync(ledger, 'utf8') : '').split('\n').filter((line) => line === jobId)
      .length;
  /** Takes all CPUs until it is cancelled. */
  const block = async (runner: ExternalRunner): Promise<Assignment> => {
    const long = run('sleep 600', { tasks: 3, cpusPerTask: 8 });
    runner.start(long);
    await reported(runner, 'STARTED', long);
    return long;
  };

  beforeAll(() => {
    mkdirSync(bin);
    // slurmrestd is another account's.
    chmodSync(dir, 0o755);
    slurm('start');
  });
  beforeEach(() => {
    reports.length = 0;
    pieces.length = 0;
    warnings = [];
  });
  afterEach(() => {
    for (const runner of runners.splice(0)) runner.close();
    for (const state of ['agent', 'other']) rmSync(join(dir, state), { recursive: true, force: true });
    rmSync(bin, { recursive: true, force: true });
    mkdirSync(bin);
    slurm('start');
    cli('scancel', '--user=root');
    resume();
  });
  afterAll(() => {
    slurm('stop');
    rmSync(dir, { recursive: true, force: true });
  });

  return {
    ...{
      dir,
      cluster,
      conf,
      ledger,
      bin,
      environment,
      cli,
      slurm,
      forget,
      saved,
      resume,
      instead,
      counted,
      open,
      run,
      take,
      until,
      reported,
      end,
      written,
      localId,
      ran,
      block,
      reports,
    },
  };
}
