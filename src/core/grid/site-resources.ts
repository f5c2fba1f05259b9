/**
 * The machines and licenses of the grid as the schedulers use them: what is free now, who holds it until when, and for
 * each site and signature which machines and pools come into question.
 */
import type { Allocation, License, Machine, Run } from '../model.js';
import type { Requirement, Signature } from './requirements.js';

export interface MachineState {
  machine: Machine;
  /** Where it stands among the machines of its site, in order of placement: its place in the columns of `FreeColumns`. */
  position: number;
  /** How many tasks may share it in time; null: it is shared in space. */
  maxTasks: number | null;
  /** What live runs ask for: on a time-shared machine it may be more than there is. */
  usedCpus: number;
  usedMemoryMb: number;
  /** A placement of one task here: most jobs have one. */
  alone: Placement;
}

export interface LicenseState {
  license: License;
  /** Live runs that hold a copy. */
  holders: RunState[];
}

/** What a run or a promise takes of machines and pools. */
export interface Hold {
  machines: readonly MachineState[];
  /** Aligned with `machines`. */
  cpus: readonly number[];
  memoryMb: readonly number[];
  licenses: readonly LicenseState[];
}

/** What a live run occupies. */
export interface RunState extends Hold {
  run: Run;
  jobId: number;
  end: number;
}

/** Where the tasks of a job go. */
export interface Placement {
  machines: readonly MachineState[];
  /** Aligned with `machines`. */
  tasks: readonly number[];
  /** Power of the slowest of them: the job ends when its last task does. */
  benchmark: number;
  /** As a plan shows it; null: nobody has asked (see `allocationsOf`). */
  allocations: Allocation[] | null;
}

/** Machines and pools of one site that come into question for one signature. */
export interface EligibleMachines {
  /** The site shares machines in time: at most one task of a job is on a machine. */
  shared: boolean;
  /** In order of placement: highest power first, then the lowest id. */
  machines: MachineState[];
  /** For each license kind the pools that serve it, in order of use: the site's own, then the grid's; then by id. */
  pools: LicenseState[][];
  /** What the largest of the machines has. */
  mostCpus: number;
  mostMemoryMb: number;
}

/** By position of the machine. */
export interface FreeColumns {
  /** What a further task can use: of a time-shared machine all CPUs, as long as it takes one. */
  cpus: number[];
  memoryMb: number[];
  /** Tasks of live runs there; of a run that is alone in space one, however many it has. */
  tasks: number[];
}

/** Order of placement: highest power first, ties by machine id. */
const byPower = (a: MachineState, b: MachineState): number =>
  b.machine.benchmark - a.machine.benchmark || a.machine.id - b.machine.id;

export class SiteResources {
  /** All machines, in order of placement. */
  readonly machines: MachineState[] = [];
  /** What is free on them now. */
  readonly free: FreeColumns = { cpus: [], memoryMb: [], tasks: [] };
  /** Live runs by planned end, then job id. */
  readonly runs: RunState[] = [];
  /** Runs at once at most. */
  maxRuns = Infinity;
  /** Some machine is shared in time. */
  shared = false;
  /** Counts every change of machines, licenses and runs. */
  changes = 0;
  private readonly bySignature = new Map<string, EligibleMachines>();
  private readonly everBySignature = new Map<string, EligibleMachines>();
  /** The answer that was asked for last: mostly it is asked for again. */
  private lastSignature: Signature | null = null;
  private lastEligible: EligibleMachines | null = null;
  private best = 0;

  constructor(
    readonly siteId: number,
    private readonly poolsOf: (siteId: number, kind: string) => LicenseState[],
  ) {}

  /** Power of the most powerful of the machines that take jobs now, where none does of all; 1 for a site without machines. */
  get bestBenchmark(): number {
    return this.best;
  }

  /**
   * Whether it can be said from planned ends when something will be free. Not where tasks slow each other down, and not under
   * a limit of runs, which the profile does not know.
   */
  get foreseeable(): boolean {
    return !this.shared && this.maxRuns === Infinity;
  }

  /** A machine comes to the site. */
  addMachine(state: MachineState): void {
    const { machines, free } = this;
    const behind = machines.findIndex((other) => byPower(state, other) < 0);
    const position = behind === -1 ? machines.length : behind;
    machines.splice(position, 0, state);
    free.tasks.splice(position, 0, 0);
    free.cpus.splice(position, 0, freeCpus(state, 0));
    free.memoryMb.splice(position, 0, state.machine.memoryMb);
    this.number(position);
    this.changed();
  }

  /** One without live runs leaves it. */
  removeMachine({ position }: MachineState): void {
    const { machines, free } = this;
    for (const column of [machines, free.tasks, free.cpus, free.memoryMb]) column.splice(position, 1);
    this.number(position);
    this.changed();
  }

  /** Something is different about one. */
  replaceMachine(state: MachineState, machine: Machine, maxTasks: number | null): void {
    const { machines, free } = this;
    const tasks = free.tasks[state.position] as number;
    for (const column of [machines, free.tasks, free.cpus, free.memoryMb]) column.splice(state.position, 1);
    state.machine = machine;
    state.maxTasks = maxTasks;
    state.alone = aloneOn(state);
    this.addMachine(state);
    free.tasks[state.position] = tasks;
    free.cpus[state.position] = freeCpus(state, tasks);
    free.memoryMb[state.position] = machine.memoryMb - state.usedMemoryMb;
    this.number(0);
  }

  /** To be called when licenses or the limit of runs have changed. */
  changed(): void {
    this.changes++;
    this.shared = this.machines.some(({ maxTasks }) => maxTasks !== null);
    const best = this.machines.find(({ machine }) => machine.available) ?? this.machines[0];
    this.best = best?.machine.benchmark ?? 1;
    this.bySignature.clear();
    this.lastSignature = null;
    this.everBySignature.clear();
  }

  /** Those that are available now. */
  eligible(signature: Signature): EligibleMachines {
    if (this.lastSignature === signature) return this.lastEligible as EligibleMachines;
    let eligible = this.bySignature.get(signature.key);
    if (eligible === undefined) {
      eligible = this.find(signature, (machine) => machine.available);
      this.bySignature.set(signature.key, eligible);
    }
    this.lastSignature = signature;
    this.lastEligible = eligible;
    return eligible;
  }

  /** As `eligible`, of all machines whether available or not. */
  everEligible(signature: Signature): EligibleMachines {
    let eligible = this.everBySignature.get(signature.key);
    if (eligible === undefined) {
      eligible = this.find(signature, () => true);
      this.everBySignature.set(signature.key, eligible);
    }
    return eligible;
  }

  /** A run begins: it takes its machines and licenses. */
  addRun(run: RunState): void {
    this.changes++;
    for (let i = 0; i < run.machines.length; i++)
      this.use(run.machines[i] as MachineState, 1, run.cpus[i] as number, run.memoryMb[i] as number);
    for (const pool of run.licenses) pool.holders.push(run);
    this.sortIn(run);
  }

  /** A run is over. */
  removeRun(run: RunState): void {
    this.changes++;
    for (let i = 0; i < run.machines.length; i++)
      this.use(run.machines[i] as MachineState, -1, -(run.cpus[i] as number), -(run.memoryMb[i] as number));
    for (const pool of run.licenses) pool.holders.splice(pool.holders.indexOf(run), 1);
    this.sortOut(run);
  }

  /** Another end is planned for a run. */
  replan(run: RunState, end: number): void {
    this.changes++;
    this.sortOut(run);
    run.end = end;
    this.sortIn(run);
  }

  private number(from: number): void {
    for (let position = from; position < this.machines.length; position++)
      (this.machines[position] as MachineState).position = position;
  }

  private sortIn(run: RunState): void {
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

  private sortOut(run: RunState): void {
    const { runs } = this;
    for (let i = runs.indexOf(run) + 1; i < runs.length; i++) runs[i - 1] = runs[i] as RunState;
    runs.pop();
  }

  private use(state: MachineState, tasks: 1 | -1, cpus: number, memoryMb: number): void {
    state.usedCpus += cpus;
    state.usedMemoryMb += memoryMb;
    useColumns(this.free, state, tasks, cpus, memoryMb);
  }

  private find(signature: Signature, accept: (machine: Machine) => boolean): EligibleMachines {
    const pools = signature.licenses.map((kind) => this.poolsOf(this.siteId, kind));
    const machines = this.machines.filter(
      ({ machine }) =>
        accept(machine) &&
        (signature.os === null || signature.os === machine.os) &&
        (signature.architecture === null || signature.architecture === machine.architecture) &&
        pools.every((kindPools) => kindPools.some(({ license }) => runsLicense(machine, license.id))),
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

/** Every license of its site and of the grid, unless it is restricted to some. */
export const runsLicense = ({ licenseIds }: Machine, id: number): boolean =>
  licenseIds.length === 0 || licenseIds.includes(id);

/** A machine that nobody uses. */
export function machineState(machine: Machine, maxTasks: number | null): MachineState {
  const state = { machine, maxTasks, position: -1, usedCpus: 0, usedMemoryMb: 0 } as MachineState;
  state.alone = aloneOn(state);
  return state;
}

const aloneOn = (state: MachineState): Placement => ({
  machines: [state],
  tasks: [1],
  benchmark: state.machine.benchmark,
  allocations: null,
});

/** Takes so much on a machine (below 0: gives it back). */
export function useColumns(
  free: FreeColumns,
  state: MachineState,
  tasks: 1 | -1,
  cpus: number,
  memoryMb: number,
): void {
  const { position } = state;
  free.tasks[position] = (free.tasks[position] as number) + tasks;
  free.memoryMb[position] = (free.memoryMb[position] as number) - memoryMb;
  free.cpus[position] =
    state.maxTasks === null
      ? (free.cpus[position] as number) - cpus
      : freeCpus(state, free.tasks[position] as number);
}

const freeCpus = ({ machine, maxTasks, usedCpus }: MachineState, tasks: number): number =>
  maxTasks === null ? machine.cpus - usedCpus : tasks < maxTasks ? machine.cpus : 0;

/** How many tasks of the class fit in so much room. */
export function tasksIn(requirement: Requirement, cpus: number, memoryMb: number): number {
  const byCpus = Math.floor(cpus / requirement.cpusPerTask);
  if (requirement.memoryMbPerTask === 0) return Math.max(0, byCpus);
  return Math.max(0, Math.min(byCpus, Math.floor(memoryMb / requirement.memoryMbPerTask)));
}
