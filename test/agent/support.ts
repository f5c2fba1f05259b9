import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { ProcessRunner, type ProcessRunnerOptions } from '../../src/agent/process/runner.js';
import type { Assignment, EndedReport, LiveOutput, OutputPiece, Runner } from '../../src/agent/runner.js';
import { processIdentity } from '../../src/platform/lockfile.js';
import { PATIENCE_MS } from '../support/patience.js';

export function temporaryDirectory(): string {
  const dir = mkdtempSync(join(tmpdir(), 'switchyard-agent-'));
  // On a busy machine a lane that is told to end takes its time, and leaves its files until then.
  onTestFinished(() => rmSync(dir, { recursive: true, force: true, maxRetries: 20 }));
  return dir;
}

export async function openRunner(options: Partial<ProcessRunnerOptions> = {}): Promise<ProcessRunner> {
  const stateDir = options.stateDir ?? temporaryDirectory();
  const runner = await ProcessRunner.open({ ...options, stateDir });
  onTestFinished(async () => {
    for (const run of runner.runs()) runner.cancel(run, 0);
    await until(() => runner.runs().length === 0, 'the runs to end');
    runner.close();
  });
  return runner;
}

export function assignment(jobId: string, command: string, ...args: string[]): Assignment {
  return {
    jobId,
    user: 'ada',
    epoch: 1,
    command,
    arguments: args,
    environment: {},
    workingDirectory: null,
    tasks: 1,
    launch: 'EVERY_TASK',
    cpusPerTask: 1,
    memoryMbPerTask: 0,
    resourcesPerTask: [],
    ...{ tasksPerMachine: null, exclusive: null, sameSwitch: null },
    ...{
      project: null,
      siteTerms: null,
      machineConstraint: null,
      image: null,
      licenses: [],
      resources: [],
      nodes: null,
    },
    runTimeLimitS: null,
    ...{ warnS: null, warnSignal: 'SIGTERM', killGraceS: 30 },
    arrayIndex: null,
    machines: [{ name: 'here', tasks: 1 }],
    recalled: false,
    stopGraceS: null,
    plannedS: 1,
    simulatedS: null,
    simulatedIoS: null,
  };
}

/** A shell script as a job. */
export function script(jobId: string, text: string): Assignment {
  return assignment(jobId, '/bin/sh', '-c', text);
}

/** Runs whose exit code tells who has got SIGUSR1, their command or what this has started; `words`: of a process that is there once both listen. */
export const SIGNALLED = (
  [
    ['COMMAND', 3],
    ['OTHERS', 5],
  ] as const
).map(([to, exitCode]) => {
  const name = { jobId: `job_${to}`, epoch: 1 };
  const listens = `0.2${process.pid}${exitCode}`;
  const started = `sh -c "trap 'exit 5' USR1; while :; do sleep ${listens}; done"`;
  return {
    ...{ name, exitCode, words: `sleep\0${listens}\0` },
    run: script(name.jobId, `trap 'exit 3' USR1; ${started} & wait $!`),
    signals: [{ number: 1, signal: 'SIGUSR1' as const, to }],
  };
});

export async function until(condition: () => boolean, what: string): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await sleep(20);
  }
}

/** By runner: what was delivered before the ends. */
const kept = new WeakMap<Runner, LiveOutput[]>();

/** What was kept of a stream, put together as the service does. */
interface Written {
  text: string;
  bytes: number;
  truncated: boolean;
}

/** An end, with what its run wrote as texts. */
export type End = EndedReport & { stdout: Written | null; stderr: Written | null };

function writtenTo(stream: OutputPiece['stream'], pieces: readonly OutputPiece[]): Written | null {
  const own = pieces.filter((piece) => piece.stream === stream);
  if (own.length === 0) return null;
  let end = 0;
  let left = 0;
  const bodies = own.map(({ start, text, base64 }) => {
    const body = base64 === undefined ? Buffer.from(text!) : Buffer.from(base64, 'base64');
    const gap = start - end;
    left += gap;
    end = start + body.length;
    return gap > 0 ? Buffer.concat([Buffer.from(`\n[${gap} bytes left out]\n`), body]) : body;
  });
  return { text: Buffer.concat(bodies).toString(), bytes: own.at(-1)!.bytes, truncated: left > 0 };
}

/** The ends so far. Takes output that goes before them, as an agent would send it and the service keep it. */
export function ends(runner: Runner): End[] {
  const pieces = runner.freshOutput() ?? [];
  kept.set(runner, [...(kept.get(runner) ?? []), ...pieces]);
  runner.delivered(pieces);
  return runner.reports(1_000_000).flatMap((report) => {
    if (report.phase !== 'ENDED') return [];
    const before = (kept.get(runner) ?? []).filter(
      ({ jobId, epoch }) => jobId === report.jobId && epoch === report.epoch,
    );
    const all = [...before, ...report.outputs];
    return [{ ...report, stdout: writtenTo('STDOUT', all), stderr: writtenTo('STDERR', all) }];
  });
}

export function endOf(runner: Runner, jobId: string): End | undefined {
  return ends(runner).find((report) => report.jobId === jobId);
}

/** Starts a run and waits for its end. */
export async function complete(runner: Runner, run: Assignment): Promise<End> {
  runner.start(run);
  await until(() => endOf(runner, run.jobId) !== undefined, `the end of ${run.jobId}`);
  return endOf(runner, run.jobId)!;
}

/** Whether a process exists and is no zombie that only waits to be collected. */
export function lives(pid: number): boolean {
  return processIdentity(pid) !== null;
}

/** The processes of the host with these words on their command line. */
export function withWords(words: string): number[] {
  const pids = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
  return pids.filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(words) && lives(pid);
    } catch {
      return false;
    }
  });
}
