import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { ProcessRunner, type ProcessRunnerOptions } from '../../src/agent/process/runner.js';
import type { Assignment, EndedReport, Runner } from '../../src/agent/runner.js';
import { processIdentity } from '../../src/platform/lockfile.js';

/** Generous: only a hang reaches it. */
export const PATIENCE_MS = 60_000;

export function temporaryDirectory(): string {
  const dir = mkdtempSync(join(tmpdir(), 'switchyard-agent-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true, maxRetries: 5 }));
  return dir;
}

export async function openRunner(options: Partial<ProcessRunnerOptions> = {}): Promise<ProcessRunner> {
  const stateDir = options.stateDir ?? temporaryDirectory();
  const runner = await ProcessRunner.open({ ...options, stateDir });
  onTestFinished(async () => {
    for (const run of runner.runs()) runner.cancel(run.jobId, run.epoch, 0);
    await until(() => runner.runs().length === 0, 'the runs to end');
    runner.close();
  });
  return runner;
}

export function assignment(jobId: string, command: string, ...args: string[]): Assignment {
  return {
    jobId,
    epoch: 1,
    command,
    arguments: args,
    environment: {},
    workingDirectory: null,
    tasks: 1,
    cpusPerTask: 1,
    memoryMbPerTask: 1,
    runTimeLimitS: null,
    arrayIndex: null,
    machines: [{ name: 'here', tasks: 1 }],
    plannedS: 1,
    simulatedS: null,
    simulatedIoS: null,
  };
}

/** A shell script as a job. */
export function script(jobId: string, text: string): Assignment {
  return assignment(jobId, '/bin/sh', '-c', text);
}

export async function until(condition: () => boolean, what: string): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await sleep(20);
  }
}

export function ends(runner: Runner): EndedReport[] {
  return runner.reports(1_000_000).filter((report) => report.phase === 'ENDED');
}

export function endOf(runner: Runner, jobId: string): EndedReport | undefined {
  return ends(runner).find((report) => report.jobId === jobId);
}

/** Starts a run and waits for its end. */
export async function complete(runner: Runner, run: Assignment): Promise<EndedReport> {
  runner.start(run);
  await until(() => endOf(runner, run.jobId) !== undefined, `the end of ${run.jobId}`);
  return endOf(runner, run.jobId)!;
}

/** Whether a process exists and is no zombie that only waits to be collected. */
export function lives(pid: number): boolean {
  return processIdentity(pid) !== null;
}
