/**
 * The availability profile of a site: what is free at each later instant, if runs end when they are planned to. It only
 * grows, because nothing that is not running yet is in it. Overdue runs count as ending now.
 *
 * A timeline walks the profile from one release to the next, on scratch fields of the machines and pools; a site has one
 * at a time. A walk costs the number of runs that end on the way.
 */
import type { Requirement } from './requirements.js';
import {
  type Able,
  freeCopies,
  type LicenseState,
  type MachineState,
  type RunState,
  type SiteResources,
} from './site-resources.js';

/** Room on machines that is promised for a while. */
export interface Hold {
  at: number;
  end: number;
  machines: readonly { state: MachineState; cpus: number; memoryMb: number }[];
}

const NO_INSTANTS: readonly number[] = [];
const NO_RUNS: readonly RunState[] = [];

export class Timeline {
  /** The instant it has come to; what is free then is in the scratch fields `future…`. */
  at = -Infinity;
  private readonly runs: readonly RunState[];
  private readonly outside: readonly RunState[];
  private nextRun = 0;
  /** The first of the runs that ended in the last step. */
  private stepRun = 0;
  private nextOutside = 0;
  private nextInstant = 0;

  /** `instants`: further times, ascending, at which the walk is to stop. */
  constructor(
    resources: SiteResources,
    able: Able,
    private readonly now: number,
    private readonly instants: readonly number[] = NO_INSTANTS,
    private readonly hold: Hold | null = null,
  ) {
    for (const state of resources.machines) {
      state.futureCpus = state.freeCpus;
      state.futureMemoryMb = state.freeMemoryMb;
    }
    for (const pools of able.pools) for (const pool of pools) pool.futureCopies = freeCopies(pool);
    this.runs = resources.runs;
    this.outside = able.pools.length === 0 ? NO_RUNS : holdersElsewhere(able, resources.siteId);
  }

  /** Goes to the next instant, first to now. False when nothing more will happen. */
  advance(): boolean {
    const next = this.at === -Infinity ? this.now : this.nextTime();
    if (next === Infinity) return false;
    this.applyHold(this.at, next);
    this.at = next;
    this.stepRun = this.nextRun;
    for (; this.nextRun < this.runs.length; this.nextRun++) {
      const run = this.runs[this.nextRun] as RunState;
      if (run.end > next) break;
      for (let i = 0; i < run.machines.length; i++) {
        const state = run.machines[i] as (typeof run.machines)[number];
        state.futureCpus += run.cpus[i] as number;
        state.futureMemoryMb += run.memoryMb[i] as number;
      }
      for (const pool of run.licenses) pool.futureCopies++;
    }
    for (; this.nextOutside < this.outside.length; this.nextOutside++) {
      const run = this.outside[this.nextOutside] as RunState;
      if (run.end > next) break;
      for (const pool of run.licenses) pool.futureCopies++;
    }
    while ((this.instants[this.nextInstant] ?? Infinity) <= next) this.nextInstant++;
    return true;
  }

  /** Whether the last step gave some machine room for a task of the class; it need not be an able one. */
  madeRoomFor({ cpusPerTask, memoryMbPerTask }: Requirement): boolean {
    for (let r = this.stepRun; r < this.nextRun; r++) {
      const { machines } = this.runs[r] as RunState;
      for (let i = 0; i < machines.length; i++) {
        const { futureCpus, futureMemoryMb } = machines[i] as MachineState;
        if (futureCpus >= cpusPerTask && futureMemoryMb >= memoryMbPerTask) return true;
      }
    }
    return false;
  }

  /** The hold takes its room when the walk passes its beginning, and gives it back at its end. */
  private applyHold(from: number, to: number): void {
    const { hold } = this;
    if (hold === null) return;
    if (from < hold.at && hold.at <= to) shift(hold, -1);
    if (from < hold.end && hold.end <= to) shift(hold, 1);
  }

  private nextTime(): number {
    const { hold, at, runs, nextRun } = this;
    if (hold === null && this.outside.length === 0 && this.instants.length === 0) {
      return nextRun < runs.length ? (runs[nextRun] as RunState).end : Infinity;
    }
    const change = hold === null || hold.end <= at ? Infinity : hold.at > at ? hold.at : hold.end;
    return Math.min(
      change,
      this.runs[this.nextRun]?.end ?? Infinity,
      this.outside[this.nextOutside]?.end ?? Infinity,
      this.instants[this.nextInstant] ?? Infinity,
    );
  }
}

function shift({ machines }: Hold, sign: 1 | -1): void {
  for (const { state, cpus, memoryMb } of machines) {
    state.futureCpus += sign * cpus;
    state.futureMemoryMb += sign * memoryMb;
  }
}

/** Notes on the machines (`left…`) what the hold leaves free at its beginning. */
export function noteLeft(resources: SiteResources, able: Able, now: number, hold: Hold): void {
  const timeline = new Timeline(resources, able, now, NO_INSTANTS, hold);
  while (timeline.advance() && timeline.at < hold.at);
  resources.leftBy = null;
  for (const state of resources.machines) {
    state.leftCpus = state.futureCpus;
    state.leftMemoryMb = state.futureMemoryMb;
  }
}

/** Runs at other sites that hold copies of the grid-wide pools in question. */
function holdersElsewhere(able: Able, siteId: number): RunState[] {
  const found = new Set<RunState>();
  for (const pools of able.pools) {
    for (const pool of pools) {
      if (pool.license.siteId !== null) continue;
      for (const run of pool.holders) if (run.run.siteId !== siteId) found.add(run);
    }
  }
  return [...found].sort((a, b) => a.end - b.end || a.jobId - b.jobId);
}

/** Copies of a pool that are free at a time, by planned ends. */
export function copiesFreeAt(pool: LicenseState, time: number): number {
  let free = pool.license.copies;
  for (const run of pool.holders) if (run.end > time) free--;
  return free;
}
