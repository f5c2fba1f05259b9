/** What each isolation costs a run of `true`, beside none. Those that this machine lacks are left out. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Isolation, ProcessRunner } from '../src/agent/index.js';
import { type Bench, type Measured, seconds, sideBySide, sized } from './measure.js';

const KINDS = {
  'isolation-cgroup': { mode: 'none', cgroups: true },
  'isolation-user': { mode: 'user', cgroups: false },
  'isolation-user-cgroup': { mode: 'user', cgroups: true },
  'isolation-sandbox': { mode: 'sandbox', cgroups: false },
  'isolation-sandbox-cgroup': { mode: 'sandbox', cgroups: true },
} as const;
type Kind = (typeof KINDS)[keyof typeof KINDS] | { mode: 'none'; cgroups: false };

const RUNS = sized(500, 8);
const AT_ONCE = 4;

/** Seconds a hundred runs; null: there is no such isolation here. */
async function secondsOfAHundred(kind: Kind): Promise<number | null> {
  const stateDir = mkdtempSync(join(tmpdir(), 'switchyard-bench-'));
  chmodSync(stateDir, 0o755);
  let lacking = false;
  let runner: ProcessRunner | null = null;
  try {
    runner = await ProcessRunner.open({
      stateDir,
      maxRuns: AT_ONCE,
      isolation: (dir, id) => {
        const isolation = Isolation.open(kind, dir, id);
        lacking = kind.cgroups && isolation.cgroups === null;
        return isolation;
      },
    });
    if (lacking) return null;
    const elapsed = await seconds(async () => {
      for (let i = 0; i < RUNS; i++) runner!.start(job(i));
      for (let ended = 0; ended < RUNS; await sleep(5)) {
        const reports = runner!.reports(1_000);
        ended += reports.filter(({ phase }) => phase === 'ENDED').length;
        const last = reports.at(-1);
        if (last) runner!.acknowledge(last.seq);
      }
    });
    return (100 * elapsed) / RUNS;
  } catch {
    return null;
  } finally {
    runner?.close();
    rmSync(stateDir, { recursive: true, force: true });
  }
}

/** A run of `true`. */
export const job = (i: number) => ({
  ...{
    jobId: `job_${i}`,
    user: 'ada',
    epoch: 1,
    command: 'true',
    arguments: [],
    environment: {},
    workingDirectory: null,
  },
  ...{
    tasks: 1,
    launch: 'EVERY_TASK' as const,
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
    warnS: null,
    warnSignal: 'SIGTERM' as const,
    killGraceS: 30,
    arrayIndex: null,
    machines: [],
  },
  ...{ recalled: false, stopGraceS: null, plannedS: 1, simulatedS: null, simulatedIoS: null },
});

export const isolationBench: Bench = {
  names: Object.keys(KINDS),
  async run(only) {
    const results: Measured[] = [];
    for (const [name, kind] of Object.entries(KINDS)) {
      if (!only(name) || (await secondsOfAHundred(kind)) === null) continue;
      const what = `a hundred runs of \`true\` with isolation \`${kind.mode}\`${kind.cgroups ? ' and a control group' : ''}; against \`none\``;
      const none = async (): Promise<number> => (await secondsOfAHundred({ mode: 'none', cgroups: false }))!;
      results.push(
        await sideBySide(
          { name, unit: 's', aim: null, what },
          5,
          async () => (await secondsOfAHundred(kind))!,
          none,
        ),
      );
    }
    return results;
  },
};
