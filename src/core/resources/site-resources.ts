/**
 * The machines and licenses of the grid as the schedulers use them: what is free now, who holds it until when, and for
 * each site and signature which machines and pools come into question.
 */
import type { License, Machine, Reservation, Run } from '../model.js';
import type { Placement } from './placement.js';
import type { Requirement, Signature } from './requirements.js';

export interface MachineState {
  machine: Machine;
  /** How many tasks may share it in time; null: it is shared in space. */
  maxTasks: number | null;
  /** Live runs with tasks there; on a time-shared machine each has one. */
  runs: number;
  /** What they ask for: on a time-shared machine it may be more than there is. */
  usedCpus: number;
  usedMemoryMb: number;
  /** What a further task can use: of a time-shared machine all CPUs, as long as it takes one. */
  freeCpus: number;
  freeMemoryMb: number;
  /** Scratch of the cycle going on: what is free at the instant that a timeline has come to. */
  futureCpus: number;
  futureMemoryMb: number;
  /** Scratch of the cycle going on: what the reservation leaves free at its instant. */
  leftCpus: number;
  leftMemoryMb: number;
  /** The placement of one task here (see `onOne`); null: not asked for since the machine was changed. */
  alone: Placement | null;
}

export interface LicenseState {
  license: License;
  /** Live runs that hold a copy. */
  holders: RunState[];
  /** Scratch, as with machines. */
  futureCopies: number;
}

/** What a live run occupies. */
export interface RunState {
  run: Run;
  jobId: number;
  end: number;
  machines: MachineState[];
  /** Aligned with `machines`. */
  cpus: readonly number[];
  memoryMb: readonly number[];
  licenses: LicenseState[];
}

/** Machines and pools of one site for one signature. */
export interface Able {
  /** The site shares machines in time: `placeShared` holds, and at most one task of a job is on a machine. */
  shared: boolean;
  /** Available machines that satisfy it, in order of placement: highest power first, then the lowest id. */
  machines: MachineState[];
  /** For each license kind the pools that serve it, in order of use: the site's own, then the grid's; then by id. */
  pools: LicenseState[][];
  /** What the largest of the machines has. */
  mostCpus: number;
  mostMemoryMb: number;
}

/** Order of placement: highest power first, ties by machine id. */
export const byPower = (a: MachineState, b: MachineState): number =>
  b.machine.benchmark - a.machine.benchmark || a.machine.id - b.machine.id;

/** Copies of a pool that nobody holds. */
export const freeCopies = (pool: LicenseState): number => pool.license.copies - pool.holders.length;

export class SiteResources {
  /** All machines, in order of placement. */
  readonly machines: MachineState[] = [];
  /** Live runs by planned end, then job id. */
  readonly runs: RunState[] = [];
  /** Runs at once at most. */
  maxRuns = Infinity;
  /** Some machine is shared in time. */
  shared = false;
  /** Stands for the run of each start that a cycle is about to decide: of these only the site is known. */
  readonly undecided: Run;
  /** Counts every change of machines, licenses and runs. */
  changes = 0;
  /** Scratch: the reservation that the machines' `left…` speak of, if they do of one that a cycle made. */
  leftBy: Reservation | null = null;
  private readonly ableBySignature = new Map<string, Able>();
  private readonly everAbleBySignature = new Map<string, Able>();
  /** The answer that was asked for last: mostly it is asked for again. */
  private lastSignature: Signature | null = null;
  private lastAble: Able | null = null;
  private best = 0;

  constructor(
    readonly siteId: number,
    private readonly poolsOf: (siteId: number, kind: string) => LicenseState[],
  ) {
    this.undecided = {
      jobId: 0,
      siteId,
      epoch: 0,
      allocations: [],
      licenseIds: [],
      start: 0,
      plannedEnd: 0,
    };
  }

  /** Power of the most powerful machine, available or not; 1 for a site without machines. */
  get bestBenchmark(): number {
    return this.best;
  }

  /** No further run is allowed, whatever is free. */
  get full(): boolean {
    return this.runs.length >= this.maxRuns;
  }

  /**
   * Whether it can be said from planned ends when something will be free. Not where tasks slow each other down, and not under
   * a limit of runs, which the profile does not know.
   */
  get foreseeable(): boolean {
    return !this.shared && this.maxRuns === Infinity;
  }

  /** To be called when machines, licenses or the limit of runs have changed. */
  changed(): void {
    this.changes++;
    this.shared = this.machines.some(({ maxTasks }) => maxTasks !== null);
    this.machines.sort(byPower);
    this.best = this.machines[0]?.machine.benchmark ?? 1;
    this.ableBySignature.clear();
    this.lastSignature = null;
    this.everAbleBySignature.clear();
  }

  /** The machines that are available now. */
  able(signature: Signature): Able {
    if (this.lastSignature === signature) return this.lastAble as Able;
    let able = this.ableBySignature.get(signature.key);
    if (able === undefined) {
      able = this.findAble(signature, (machine) => machine.available);
      this.ableBySignature.set(signature.key, able);
    }
    this.lastSignature = signature;
    this.lastAble = able;
    return able;
  }

  /** As `able`, of all machines whether available or not. */
  everAble(signature: Signature): Able {
    let able = this.everAbleBySignature.get(signature.key);
    if (able === undefined) {
      able = this.findAble(signature, () => true);
      this.everAbleBySignature.set(signature.key, able);
    }
    return able;
  }

  /** Copies of a kind that jobs of this site may hold at once, the grid-wide pool included. */
  copiesOf(kind: string): number {
    return this.poolsOf(this.siteId, kind).reduce((sum, pool) => sum + pool.license.copies, 0);
  }

  addRun(run: RunState): void {
    this.changes++;
    const { runs } = this;
    let low = 0;
    let high = runs.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = runs[middle] as RunState;
      if (other.end < run.end || (other.end === run.end && other.jobId < run.jobId)) low = middle + 1;
      else high = middle;
    }
    // Moved by hand: `splice` would make an array of what it removes at each call.
    runs.push(run);
    for (let i = runs.length - 1; i > low; i--) runs[i] = runs[i - 1] as RunState;
    runs[low] = run;
  }

  removeRun(run: RunState): void {
    this.changes++;
    const { runs } = this;
    for (let i = runs.indexOf(run) + 1; i < runs.length; i++) runs[i - 1] = runs[i] as RunState;
    runs.pop();
  }

  private findAble(signature: Signature, accept: (machine: Machine) => boolean): Able {
    const pools = signature.licenses.map((kind) => this.poolsOf(this.siteId, kind));
    const machines = this.machines.filter(
      ({ machine }) =>
        accept(machine) &&
        (signature.os === null || signature.os === machine.os) &&
        (signature.architecture === null || signature.architecture === machine.architecture) &&
        pools.every((kindPools) => kindPools.some((pool) => machine.licenseIds.includes(pool.license.id))),
    );
    return {
      shared: this.shared,
      machines,
      pools,
      mostCpus: machines.reduce((most, { machine }) => Math.max(most, machine.cpus), 0),
      mostMemoryMb: machines.reduce((most, { machine }) => Math.max(most, machine.memoryMb), 0),
    };
  }
}

/** How many tasks of the class fit in so much room. */
export function tasksIn(requirement: Requirement, cpus: number, memoryMb: number): number {
  const byCpus = Math.floor(cpus / requirement.cpusPerTask);
  if (requirement.memoryMbPerTask === 0) return Math.max(0, byCpus);
  return Math.max(0, Math.min(byCpus, Math.floor(memoryMb / requirement.memoryMbPerTask)));
}

/** Takes what a run occupies. */
export function occupy(run: RunState): void {
  for (let i = 0; i < run.machines.length; i++)
    use(run.machines[i] as MachineState, 1, run.cpus[i] as number, run.memoryMb[i] as number);
  for (const pool of run.licenses) pool.holders.push(run);
}

/** Gives back what a run occupies. */
export function vacate(run: RunState): void {
  for (let i = 0; i < run.machines.length; i++)
    use(run.machines[i] as MachineState, -1, -(run.cpus[i] as number), -(run.memoryMb[i] as number));
  for (const pool of run.licenses) pool.holders.splice(pool.holders.indexOf(run), 1);
}

function use(state: MachineState, runs: 1 | -1, cpus: number, memoryMb: number): void {
  state.runs += runs;
  state.usedCpus += cpus;
  state.usedMemoryMb += memoryMb;
  noteFree(state);
}

/** To be called when the machine or what is used of it has changed. */
export function noteFree(state: MachineState): void {
  const { machine, maxTasks } = state;
  state.freeCpus =
    maxTasks === null ? machine.cpus - state.usedCpus : state.runs < maxTasks ? machine.cpus : 0;
  state.freeMemoryMb = machine.memoryMb - state.usedMemoryMb;
}
