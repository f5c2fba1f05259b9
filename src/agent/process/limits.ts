/** What runs take of their machine, and who takes more than they may. */
import { availableParallelism } from 'node:os';
import type { Assignment, EndCause } from '../runner.js';
import { roomOf } from './disk.js';
import type { Isolation } from './isolation.js';
import { type Sample, sampleOf } from './measure.js';
import { Members } from './processes.js';
import { nextLookMs, type ProcessRun, type RunRecord } from './run.js';

export interface LimitOptions {
  isolation: Isolation;
  /** Room on disk for the directory of a run, MB; null: as much as there is. */
  diskLimitMb: number | null;
  /** CPU time beyond that of its CPUs which a run may use, where no control group holds it back, seconds; null: any. */
  cpuExcessS: number | null;
  /** The environment entry that only this run has. */
  marker: (run: ProcessRun) => string;
  /** Told of a run that takes more than it may. It may have ended meanwhile. */
  exceeded: (run: ProcessRun, cause: EndCause, message: string) => void;
}

/** Runs that are shorter are not sampled, unless they may take so much memory and no more. */
const SAMPLE_AFTER_MS = 200;
/** Of so many runs at each look, in turn. */
const SAMPLES_PER_LOOK = 64;
/** Between two looks at how much room on disk runs take. */
const DISK_LOOK_MS = 1_000;

const hostOf = (machine?: Assignment['machines'][number]): string | undefined =>
  machine?.host ?? machine?.name;

/**
 * What a run may have of this host: one task for itself, or all that are on machines of it. A job that has its machines to itself may use all of their
 * CPUs, but of their memory what it asks for, as under Slurm.
 */
export function limitsOf(assignment: Assignment): Pick<RunRecord, 'memoryMb' | 'cpus'> {
  const { cpusPerTask, memoryMbPerTask, machines, exclusive } = assignment;
  const host = hostOf(machines[0]);
  const here = machines.filter((machine) => hostOf(machine) === host);
  const tasks =
    assignment.task === undefined ? here.reduce((sum, machine) => sum + machine.tasks, 0) || 1 : 1;
  const cpus = tasks * cpusPerTask;
  return {
    cpus: exclusive === 'MACHINE' ? Math.max(cpus, availableParallelism()) : cpus,
    memoryMb: memoryMbPerTask > 0 ? tasks * memoryMbPerTask : null,
  };
}

export class Limits {
  private readonly members: Members;
  private sampledUpTo = 0;
  private nextDiskMs = 0;

  constructor(private readonly options: LimitOptions) {
    this.members = new Members(options.isolation.hasAccounts);
  }

  /** Samples the processes of runs whose command goes on, and tells of those that take more than they may. */
  look(all: readonly ProcessRun[], now: number): void {
    const old = all.filter((run) => run.memoryMb !== null || now - run.startedUpMs >= SAMPLE_AFTER_MS);
    if (old.length === 0) return;
    const from = this.sampledUpTo % old.length;
    const runs = [...old.slice(from), ...old.slice(0, from)].slice(0, SAMPLES_PER_LOOK);
    this.sampledUpTo = from + runs.length;
    const ungrouped = runs.filter(({ group }) => group === null);
    const asked = ungrouped.map((run) => ({
      ...{ lane: run.slot.lanePid, marker: this.options.marker(run), ownId: run.ownId },
    }));
    const members = asked.length > 0 ? this.members.of(asked, now) : null;
    for (const run of runs) {
      const pids = run.group?.processes() ?? members?.get(run.slot.lanePid) ?? [];
      const samples = pids.map(sampleOf).filter((sample): sample is Sample => sample !== null);
      if (samples.length > 0) this.judge(run, run.meter.take(samples, now), samples, now);
    }
    if (this.options.diskLimitMb !== null && now >= this.nextDiskMs) this.lookAtDisk(runs, now);
  }

  private judge(run: ProcessRun, bytes: number, samples: readonly Sample[], now: number): void {
    const { memoryMb, cpus, meter } = run;
    const { isolation, cpuExcessS, exceeded } = this.options;
    const megabytes = bytes / 1e6;
    if (memoryMb !== null && megabytes > memoryMb) {
      const used = `${Math.ceil(megabytes)} MB, but requested ${memoryMb} MB`;
      exceeded(run, 'MEMORY_LIMIT', `its processes used ${used}`);
      return;
    }
    const threads = samples.reduce((all, sample) => all + sample.threads, 0);
    if (threads > isolation.processes) {
      const most = `at most ${isolation.processes} are allowed (AGENT_RUN_PROCESSES)`;
      exceeded(run, 'PROCESS_LIMIT', `it had ${threads} processes and threads; ${most}`);
      return;
    }
    if (cpuExcessS === null || isolation.cgroups?.controllers.has('cpu')) return;
    const cpuS = run.group?.usage().cpuS ?? meter.cpuS;
    const given = (cpus * (now - run.startedUpMs)) / 1000;
    if (cpuS <= given + cpuExcessS) return;
    const used = `${Math.round(cpuS)} s of CPU time in ${Math.round(given / cpus)} s, but requested ${cpus} CPUs`;
    exceeded(run, 'CPU_LIMIT', `it used ${used}`);
  }

  /** Looks at the directory of one run after another, beside everything else: trees can be large. */
  private lookAtDisk(runs: readonly ProcessRun[], now: number): void {
    this.nextDiskMs = Number.POSITIVE_INFINITY;
    const limit = this.options.diskLimitMb!;
    const look = async (): Promise<void> => {
      for (const run of runs) {
        const megabytes = (await roomOf([run.slot.workDirectory, run.slot.tmpDirectory])) / 1e6;
        if (megabytes <= limit) continue;
        const used = `${Math.ceil(megabytes)} MB in its directory; allowed: ${limit} (AGENT_RUN_DISK_MB)`;
        this.options.exceeded(run, 'DISK_LIMIT', `it had ${used}`);
      }
    };
    void look().finally(() => {
      this.nextDiskMs = nextLookMs(now, DISK_LOOK_MS);
    });
  }
}
