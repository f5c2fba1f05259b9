/**
 * What is free at a site, as it is seen by somebody who has taken some of it in mind: a pass that decides on starts. The grid stays
 * as it is; columns are copied when the first start is taken.
 */
import { addTo, CPUS, PLACES, type Room } from '../grid/amounts.js';
import type { Requirement } from '../grid/requirements.js';
import {
  type EligibleMachines,
  type Free,
  type LicenseState,
  type MachineState,
  type Placement,
  type RunState,
  type SiteResources,
  useIn,
} from '../grid/site-resources.js';
import type { Run } from '../model.js';

/** Of a start that nobody has accepted yet. */
const UNDECIDED: Run = Object.freeze({
  jobId: 0,
  siteId: 0,
  epoch: 0,
  allocations: [],
  licenseIds: [],
  start: 0,
  plannedEnd: 0,
});

/** What a job of the class occupies that starts in mind only. */
export const runInMind = (
  each: Requirement,
  { machines, tasks }: Placement,
  licenses: readonly LicenseState[],
  jobId: number,
  end: number,
): RunState =>
  // In one literal: a simulation makes millions.
  ({ run: UNDECIDED, jobId, end, machines, tasks, each, licenses });

/** Copies of licenses that are taken in mind; of a pass over several sites they share one. */
export class LicenseCopies {
  /** Counts what was taken. */
  takes = 0;
  private taken: Map<LicenseState, RunState[]> | null = null;

  /** Copies of a pool that nobody holds. */
  free(pool: LicenseState): number {
    return pool.license.copies - pool.holders.length - (this.taken?.get(pool)?.length ?? 0);
  }

  /** Copies that are free at a time, by planned ends. */
  freeAt(pool: LicenseState, time: number): number {
    let free = pool.license.copies;
    for (const run of pool.holders) if (run.end > time) free--;
    for (const run of this.takers(pool)) if (run.end > time) free--;
    return free;
  }

  /** Who holds copies in mind. */
  takers(pool: LicenseState): readonly RunState[] {
    return this.taken?.get(pool) ?? NOBODY;
  }

  take(run: RunState): void {
    this.takes++;
    for (const pool of run.licenses) {
      this.taken ??= new Map();
      const takers = this.taken.get(pool);
      if (takers === undefined) this.taken.set(pool, [run]);
      else takers.push(run);
    }
  }
}

const NOBODY: readonly RunState[] = [];

export class FreeResources implements Free {
  room: Room = [];
  tasks: number[] = [];
  /** Runs, those in mind included. */
  running = 0;
  private copied = false;
  /** The copies, made over and over: a simulation begins millions of times. */
  private readonly own: Free = { room: [], tasks: [] };
  private copiesIfAsked: LicenseCopies | null = null;

  /** `shared`: the copies, with other sites; unless given, its own. */
  constructor(
    readonly site: SiteResources,
    private readonly shared: LicenseCopies | null = null,
  ) {
    this.begin();
  }

  /** Nothing is taken in mind any more. */
  begin(): void {
    const { free, runs } = this.site;
    this.room = free.room;
    this.tasks = free.tasks;
    this.running = runs.length;
    this.copied = false;
    this.copiesIfAsked = this.shared;
  }

  get copies(): LicenseCopies {
    this.copiesIfAsked ??= new LicenseCopies();
    return this.copiesIfAsked;
  }

  /** No further run is allowed, whatever is free. */
  get full(): boolean {
    return this.running >= this.site.maxRuns;
  }

  /** CPUs that a further task could have on the machine: of a time-shared one all, as long as it has a place. */
  cpusOn({ offset, shared }: MachineState): number {
    if (shared && (this.room[offset + PLACES] as number) <= 0) return 0;
    return this.room[offset + CPUS] as number;
  }

  /** The same of the machine with the most of them. */
  get mostCpus(): number {
    let most = 0;
    const { machines } = this.site;
    for (let i = 0; i < machines.length; i++) most = Math.max(most, this.cpusOn(machines[i] as MachineState));
    return most;
  }

  /** The run begins. */
  take(run: RunState): void {
    if (!this.copied) {
      this.copied = true;
      const { own } = this;
      this.room = copyInto(own.room, this.room);
      // Where machines are not shared nobody asks how many tasks they have.
      if (this.site.shared) this.tasks = copyInto(own.tasks, this.tasks);
    }
    const { machines, tasks, each } = run;
    for (let i = 0; i < machines.length; i++) {
      const state = machines[i] as MachineState;
      if (this.site.shared) useIn(this, state, tasks[i] as number, each, 1);
      else addTo(each.task, -(tasks[i] as number), this.room, state.offset);
    }
    if (run.licenses.length > 0) this.copies.take(run);
    this.running++;
  }
}

function copyInto(copy: number[], column: readonly number[]): number[] {
  // To set a length costs, even to what it is.
  if (copy.length !== column.length) copy.length = column.length;
  for (let i = 0; i < column.length; i++) copy[i] = column[i] as number;
  return copy;
}

/** Whether each kind has a pool with a free copy. */
export const hasCopies = ({ pools }: EligibleMachines, free: FreeResources): boolean =>
  pools.length === 0 || pools.every((kind) => kind.some((pool) => free.copies.free(pool) > 0));
