/**
 * The machines and licenses of the grid as the schedulers use them: what is free now, who holds it until when, and for
 * each site and signature which machines and pools come into question.
 */
import {
  type Allocation,
  type License,
  type Machine,
  type Places,
  type PoolAmount,
  placesByPart,
  type Run,
  type SiteLoad,
} from '../model.js';
import { type Labels, satisfies } from '../resources/constraint.js';
import { DeviceHolds } from '../resources/device-holds.js';
import { deviceLabels } from '../resources/units.js';
import {
  type Amounts,
  addTo,
  amountOf,
  CPUS,
  fitsIn,
  NO_KINDS,
  pairsOf,
  type ResourceKinds,
  type Room,
  type TaskAmounts,
  type TasksAlike,
} from './amounts.js';
import type { Requirement, Signature } from './requirements.js';

export interface MachineState {
  machine: Machine;
  /** Where it stands among the machines of its site, in order of placement: its place in
   * what is counted by machine. */
  position: number;
  /** Where it begins in the room of its site. */
  offset: number;
  /** What it offers, by kind; kinds behind the last it does not have. */
  offered: readonly number[];
  /** Of these kinds, what it has by name. */
  devices: ReadonlySet<number>;
  /** All of it, as a job takes it that is to be alone there. */
  whole: Amounts;
  /** It is what is reserved of a machine of which others have the rest: nobody is alone there. */
  isPart: boolean;
  /** Tasks share its CPUs in time: each takes a place. */
  shared: boolean;
  /** The CPUs that live runs ask for: on a time-shared machine it may be more than there are. */
  usedCpus: number;
  /** A placement of one task here: most jobs have one. */
  alone: Placement;
}

export interface PoolState {
  license: License;
  /** Live runs that hold copies. */
  holders: RunState[];
  /** Copies that they hold. */
  inUse: number;
  /** `Grid.returns` when copies were last given back. */
  returnedAt: number;
  holds: TimedHold[];
  /** It is what is reserved of a pool: what others claim of that is no matter here. */
  isPart: boolean;
}

/** So many copies of a pool. */
export interface PoolCopies {
  readonly pool: PoolState;
  readonly copies: number;
}

/** What is held of machines and pools: by a run, a promise, and whatever else a `TimedHold` is of. */
export interface Hold {
  machines: readonly MachineState[];
  /** On each of `machines`. */
  tasks: readonly number[];
  /** What each task takes. */
  each: TaskAmounts;
  licenses: readonly PoolCopies[];
}

/** What a live run holds, until it is expected to end. */
export interface RunState extends Hold {
  run: Run;
  jobId: number;
  end: number;
}

/** What the grid was told that is held for a time: see `Held`. */
export interface TimedHold extends Hold {
  from: number;
  to: number;
  certain: boolean;
  /** The waiting job that has it (`Job.promised`). */
  jobId?: number;
  /** What that job has of pools besides, which these know by holds of their own. */
  copies?: readonly PoolCopies[];
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
  /** The site shares machines in time, some at least: on each of these is at most one task of a job. */
  shared: boolean;
  /** The site's own scheduler chooses among them. */
  ownScheduler: boolean;
  /** It runs jobs of several parts: the service does everywhere, and the site's own scheduler if it says so. */
  takesParts: boolean;
  /** It can be asked for whole devices by kind and model. */
  takesDevices: boolean;
  /** In order of placement: highest power first, then the lowest id. */
  machines: MachineState[];
  /** The same for each part of a job of several; `machines` are then those of any. Null: it has none. */
  parts: readonly (readonly MachineState[])[] | null;
  /** For each kind of license how many copies a job takes, of the pools that serve it, in order of use: the site's own, then the grid's; then by id. */
  pools: PoolsOfKind[];
  /** By kind, what the machine with the most of it has. */
  most: readonly number[];
}

/** How much of a pool it is. */
export const amountIn = ({ pools }: { readonly pools: readonly PoolAmount[] }, id: number): number =>
  pools.find((one) => one.id === id)?.amount ?? 0;

export interface PoolsOfKind {
  readonly of: readonly PoolState[];
  readonly copies: number;
}

/** What is free on the machines of a site. */
export interface Free {
  /** Of a time-shared machine nobody takes CPUs. */
  room: Room;
  /** Tasks of live runs there; of a run that is alone in space one, however many it has. By position. */
  tasks: number[];
}

/** What a task asks for on the machine, whoever else is there. */
export const askedOn = (each: TaskAmounts, state: MachineState): Amounts =>
  each.devices !== null
    ? each.devices.askedOf(state.machine.devices, state.shared)
    : state.shared
      ? each.sharedTask
      : each.task;

/** What is taken of it, so many times (`timesTaken`). */
export const takenOn = (each: TaskAmounts, state: MachineState): Amounts =>
  each.whole
    ? state.whole
    : each.devices !== null
      ? each.devices.takenOf(state.machine.devices, state.shared)
      : state.shared
        ? each.sharedTake
        : each.task;

/** For each task once, or once for all of them. */
export const timesTaken = (each: TaskAmounts, tasks: number): number => (each.whole ? 1 : tasks);

/** Whether what so many tasks, which are alike, hold of the machine is there. */
const holdsOn = (each: TaskAmounts, state: MachineState, tasks: number, room: Room): boolean =>
  fitsIn(each.whole ? state.whole : askedOn(each, state), timesTaken(each, tasks), room, state.offset);

/** Whether what the tasks hold of their machines is there. */
export function holdsIn(hold: TasksOnMachines, room: Room): boolean {
  const { machines, tasks, each } = hold;
  if (each.parts !== null) {
    // One machine may have tasks of several.
    const left = room.slice();
    return takings(hold).every((part) => {
      const fits = holdsIn(part, left);
      if (fits) giveTo(left, part, -1);
      return fits;
    });
  }
  for (let i = 0; i < machines.length; i++)
    if (!holdsOn(each, machines[i] as MachineState, tasks[i] as number, room)) return false;
  return true;
}

/** What is held of machines. */
export type TasksOnMachines = Pick<Hold, 'machines' | 'tasks' | 'each'>;

/** A hold of tasks that are not all alike, as one of each part: their tasks follow one another, and no two have an entry of `machines` in common. */
export function byPart(
  { machines, tasks }: TasksOnMachines,
  parts: readonly TasksAlike[],
): TasksOnMachines[] {
  return placesByPart(parts, tasks).map(({ begin, end }, i) => ({
    ...{ machines: machines.slice(begin, end), tasks: tasks.slice(begin, end) },
    each: parts[i] as TasksAlike,
  }));
}

/** Whether some of the tasks keep their machines for their user. */
export const keepsMachines = ({ onlyUser, parts }: TaskAmounts): boolean =>
  parts === null ? onlyUser !== null : parts.some((part) => part.onlyUser !== null);

/** Whether which devices it has may matter. */
export const holdsByName = ({ further, devices, parts }: TaskAmounts): boolean =>
  further !== null || devices !== null || (parts?.some(holdsByName) ?? false);

/** Whether some of its tasks ask for devices by what they are: amounts alone do not say then that there is room. */
export const asksByName = ({ devices, parts }: TaskAmounts): boolean =>
  devices !== null || (parts?.some(asksByName) ?? false);

/** A hold as holds of tasks that are alike. */
export const alikeIn = (hold: TasksOnMachines): TasksOnMachines[] =>
  hold.each.parts === null ? [hold] : byPart(hold, hold.each.parts);

/**
 * The same of the room that it takes: a machine that a part keeps for its user is taken whole once, and what other tasks of the job have there
 * is of that.
 */
export function takings(hold: TasksOnMachines): TasksOnMachines[] {
  const alike = alikeIn(hold);
  if (hold.each.parts === null || !keepsMachines(hold.each)) return alike;
  const keeper = new Map<MachineState, TasksOnMachines>();
  for (const one of alike)
    if (one.each.onlyUser !== null)
      for (const state of one.machines) if (!keeper.has(state)) keeper.set(state, one);
  return alike.map((one) => {
    const takes = (state: MachineState | undefined): boolean =>
      (keeper.get(state as MachineState) ?? one) === one;
    const tasks = one.tasks.filter((_, i) => takes(one.machines[i]));
    return { ...one, machines: one.machines.filter(takes), tasks };
  });
}

/** What is held of a machine, by name of the kind. `alone`: all of it. */
export interface NamedAmounts {
  readonly amounts: Record<string, number>;
  readonly alone: boolean;
}

/**
 * What is held of each of `machines`. Of a time-shared machine also the CPUs that the tasks ask for, though others use them, too.
 */
export function namedAmounts(hold: TasksOnMachines, kinds: ResourceKinds): NamedAmounts[] {
  return alikeIn(hold).flatMap(({ machines, tasks, each }) =>
    machines.map((state, i) => {
      const taken = state.shared && !each.whole ? askedOn(each, state) : takenOn(each, state);
      const times = timesTaken(each, tasks[i] as number);
      const named = pairsOf(taken).map(([kind, amount]) => [kinds.name(kind), amount * times] as const);
      return { amounts: Object.fromEntries(named), alone: each.whole };
    }),
  );
}

/** Order of placement: highest power first, ties by machine id. */
const byPower = (a: MachineState, b: MachineState): number =>
  b.machine.benchmark - a.machine.benchmark || a.machine.id - b.machine.id;

export class SiteResources {
  /** All machines, in order of placement. */
  readonly machines: MachineState[] = [];
  /** What is free on them now. */
  readonly free: Free = { room: [], tasks: [] };
  /** Live runs by planned end, then job id. */
  readonly runs: RunState[] = [];
  /** What else is held of the machines, now or later. */
  holds: TimedHold[] = [];
  /** Taken of available machines by jobs that the site's own scheduler has placed: they are among the holds. */
  busyCpus = 0;
  /** A label of its machines. */
  siteName = '';
  /** It schedules itself: its scheduler has said what it has. */
  ownScheduler = false;
  /** It runs jobs of several parts. */
  takesParts = true;
  /** Its own scheduler can be asked for whole devices by kind and model. */
  takesDevices = true;
  /** Runs at once at most. */
  maxRuns = Infinity;
  /** Some machine is shared in time. */
  shared = false;
  /** Others are not: which devices are free matters for where any job goes. */
  private mixed = false;
  /** Live runs that keep their machines for their user. */
  keeping = 0;
  /** Which devices runs have; what is reserved of the site shares it. */
  deviceHolds = new DeviceHolds();
  /** Kinds of devices that some machine has by name. */
  private deviceKinds: ReadonlySet<number> = NO_KINDS;
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
    private readonly poolsOf: (siteId: number, kind: string) => PoolState[],
    /** How many kinds of resources there are. */
    public kinds: number,
    /** What jobs of a signature avoid as the grid is now. */
    private readonly avoidedBy: (signature: Signature) => Places | null,
  ) {}

  /** There are so many kinds of resources now. */
  widen(kinds: number): void {
    const { room } = this.free;
    const more = new Array<number>(kinds - this.kinds).fill(0);
    for (let end = room.length; end > 0; end -= this.kinds) room.splice(end, 0, ...more);
    this.kinds = kinds;
    this.number(0);
    this.changed();
  }

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

  /** Work that is planned for a job: no more than its limit lets it do on the most powerful machine. */
  plannedWork(work: number, limitS: number): number {
    return Math.min(work, limitS * this.best);
  }

  /** CPUs of the machines that take jobs now. */
  get availableCpus(): number {
    return this.machines.reduce((sum, { machine }) => sum + (machine.available ? machine.cpus : 0), 0);
  }

  /** When the first machine that takes jobs is not held whole, by certain edges; `now`: one is not. */
  closedUntil(now: number): number {
    let first = Infinity;
    for (const state of this.machines) {
      if (!state.machine.available) continue;
      first = Math.min(first, this.heldUntil(state, now));
      if (first === now) break;
    }
    return this.machines.some(({ machine }) => machine.available) ? first : now;
  }

  private heldUntil(state: MachineState, now: number): number {
    const covers = ({ machines, each, from, to, certain }: TimedHold, at: number): boolean =>
      certain &&
      from <= at &&
      at < to &&
      machines.includes(state) &&
      amountOf(each.task, CPUS) >= (state.offered[CPUS] as number);
    let until = now;
    for (let hold = this.holds.find((one) => covers(one, until)); hold !== undefined; ) {
      until = hold.to;
      const at = until;
      hold = this.holds.find((one) => covers(one, at));
    }
    return until;
  }

  /** A machine comes to the site. */
  addMachine(state: MachineState): void {
    const { machines, free } = this;
    const behind = machines.findIndex((other) => byPower(state, other) < 0);
    const position = behind === -1 ? machines.length : behind;
    machines.splice(position, 0, state);
    free.tasks.splice(position, 0, 0);
    const offered = Array.from({ length: this.kinds }, (_, kind) => state.offered[kind] ?? 0);
    free.room.splice(position * this.kinds, 0, ...offered);
    this.number(position);
    this.changed();
  }

  /** One without live runs leaves it. */
  removeMachine(state: MachineState): void {
    this.takeOut(state);
    this.deviceHolds.forget(state.machine.id);
    this.number(state.position);
    this.changed();
  }

  /** Something is different about one; what live runs hold of it they go on holding. */
  replaceMachine(
    state: MachineState,
    machine: Machine,
    offered: readonly number[],
    devices: ReadonlySet<number>,
  ): void {
    this.takeOut(state);
    state.machine = machine;
    state.offered = offered;
    state.devices = devices;
    state.shared = isShared(machine);
    state.whole = wholeOf(offered, state.shared);
    state.usedCpus = 0;
    state.alone = aloneOn(state);
    this.addMachine(state);
    this.number(0);
    for (const run of this.runs) {
      for (const { machines, tasks, each } of alikeIn(run)) {
        const at = machines.indexOf(state);
        if (at !== -1) this.count(state, tasks[at] as number, each, 1);
      }
      for (const { machines, tasks, each } of takings(run)) {
        const at = machines.indexOf(state);
        if (at === -1) continue;
        addTo(takenOn(each, state), -timesTaken(each, tasks[at] as number), this.free.room, state.offset);
      }
    }
  }

  /** What the site's own scheduler says; null: the service schedules it. To be followed by `changed`. */
  setLoad(load: SiteLoad | null): void {
    this.ownScheduler = load !== null;
    this.takesParts = load === null || load.takesParts === true;
    this.takesDevices = load === null || load.takesDevices === true;
  }

  /** To be called when licenses or the limit of runs have changed. */
  changed(): void {
    this.changes++;
    this.shared = this.machines.some(({ shared }) => shared);
    this.mixed = this.shared && this.machines.some(({ shared }) => !shared);
    const best = this.machines.find(({ machine }) => machine.available) ?? this.machines[0];
    this.best = best?.machine.benchmark ?? 1;
    const named = this.machines.filter(({ devices }) => devices.size > 0);
    this.deviceKinds = named.length === 0 ? NO_KINDS : new Set(named.flatMap(({ devices }) => [...devices]));
    this.bySignature.clear();
    this.lastSignature = null;
    this.everBySignature.clear();
  }

  /** Those that are available now and not to be avoided. */
  eligible(signature: Signature): EligibleMachines {
    if (this.lastSignature === signature) return this.lastEligible as EligibleMachines;
    let eligible = this.bySignature.get(signature.key);
    if (eligible === undefined) {
      eligible = this.findWithout(signature, this.avoidedBy(signature));
      this.bySignature.set(signature.key, eligible);
    }
    this.lastSignature = signature;
    this.lastEligible = eligible;
    return eligible;
  }

  /** As `eligible`, of all machines whether available or not, and whatever failed there. */
  everEligible(signature: Signature): EligibleMachines {
    let eligible = this.everBySignature.get(signature.key);
    if (eligible === undefined) {
      eligible = this.find(signature, () => true);
      this.everBySignature.set(signature.key, eligible);
    }
    return eligible;
  }

  /** Those that are available now, without these. */
  findWithout(signature: Signature, places: Places | null): EligibleMachines {
    if (places === null) return this.find(signature, (machine) => machine.available);
    const { machines, sites } = places;
    const avoided = sites.includes(this.siteId);
    return this.find(signature, ({ id, available }) => available && !avoided && !machines.includes(id));
  }

  /** Which of its devices runs have; null: its machines have none. */
  get devices(): DeviceHolds | null {
    return this.deviceKinds.size === 0 ? null : this.deviceHolds;
  }

  /** Whether it matters which devices are free for where a job of the class starts: it asks for some, or is placed by the rule that looks at them. */
  looksAtDevices({ further, devices, spread, parts, task }: Requirement): boolean {
    const { deviceKinds } = this;
    if (deviceKinds.size === 0) return false;
    if (devices !== null || spread !== null || parts !== null || this.mixed) return true;
    if (further === null) return false;
    for (let i = 0; i < task.length; i += 2) if (deviceKinds.has(task[i] as number)) return true;
    return false;
  }

  /** A run begins: it takes its machines and licenses. */
  addRun(run: RunState): void {
    this.changes++;
    this.useAll(run, 1);
    if (holdsByName(run.each)) this.deviceHolds.take(run, alikeIn(run), run.run.devices);
    const { licenses } = run;
    for (let i = 0; i < licenses.length; i++) {
      const { pool, copies } = licenses[i] as PoolCopies;
      pool.holders.push(run);
      pool.inUse += copies;
    }
    this.sortIn(run);
  }

  /** A run is over. */
  removeRun(run: RunState): void {
    this.changes++;
    this.useAll(run, -1);
    if (holdsByName(run.each)) this.deviceHolds.give(run);
    const { licenses } = run;
    for (let i = 0; i < licenses.length; i++) {
      const { pool, copies } = licenses[i] as PoolCopies;
      pool.holders.splice(pool.holders.indexOf(run), 1);
      pool.inUse -= copies;
    }
    this.sortOut(run);
  }

  /** Another end is planned for a run. */
  replan(run: RunState, end: number): void {
    this.changes++;
    this.sortOut(run);
    run.end = end;
    this.sortIn(run);
  }

  private takeOut({ position, offset }: MachineState): void {
    this.machines.splice(position, 1);
    this.free.tasks.splice(position, 1);
    this.free.room.splice(offset, this.kinds);
  }

  private number(from: number): void {
    for (let position = from; position < this.machines.length; position++) {
      const state = this.machines[position] as MachineState;
      state.position = position;
      state.offset = position * this.kinds;
    }
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

  private useAll(hold: TasksOnMachines, sign: 1 | -1): void {
    this.countAll(hold, sign);
    giveTo(this.free.room, hold, sign > 0 ? -1 : 1);
  }

  private countAll(hold: TasksOnMachines, sign: 1 | -1): void {
    const { machines, tasks, each } = hold;
    if (each.parts !== null) {
      for (const part of byPart(hold, each.parts)) this.countAll(part, sign);
      return;
    }
    if (each.onlyUser !== null) this.keeping += sign;
    for (let i = 0; i < machines.length; i++)
      this.count(machines[i] as MachineState, tasks[i] as number, each, sign);
  }

  private count(state: MachineState, tasks: number, each: TaskAmounts, sign: 1 | -1): void {
    const alone = each.whole && each.onlyUser === null;
    const cpus = alone ? (state.offered[CPUS] as number) : tasks * amountOf(each.task, CPUS);
    state.usedCpus += sign * cpus;
    const { free } = this;
    free.tasks[state.position] = (free.tasks[state.position] as number) + sign;
  }

  private find(signature: Signature, accept: (machine: Machine) => boolean): EligibleMachines {
    const pools = signature.pools.map(({ kind, amount }) => ({
      of: this.poolsOf(this.siteId, kind),
      copies: amount,
    }));
    const { constraint } = signature;
    const machines = this.machines.filter(
      ({ machine }) =>
        accept(machine) &&
        (signature.os === null || signature.os === machine.os) &&
        (signature.architecture === null || signature.architecture === machine.architecture) &&
        (constraint === null || satisfies(labelsOf(machine, this.siteName), constraint.parsed)) &&
        pools.every(({ of }) => of.some(({ license }) => runsLicense(machine, license.id))),
    );
    // Each with what all have in common, the signature of the job.
    const parts = signature.parts?.map((part) => this.find(part, accept).machines) ?? null;
    const all =
      parts === null ? machines : machines.filter((one) => parts.some((part) => part.includes(one)));
    return {
      shared: this.shared,
      ownScheduler: this.ownScheduler,
      takesParts: this.takesParts,
      takesDevices: this.takesDevices,
      machines: all,
      parts,
      pools,
      most: Array.from({ length: this.kinds }, (_, kind) =>
        all.reduce((most, { offered }) => Math.max(most, offered[kind] ?? 0), 0),
      ),
    };
  }
}

/** All that a constraint may ask of a machine: what is said of it, and what everybody can see. */
export const labelsOf = (
  { labels, devices, os, architecture }: Pick<Machine, 'labels' | 'devices' | 'os' | 'architecture'>,
  site: string,
): Labels => ({
  ...labels,
  ...(devices && deviceLabels(devices)),
  ...{ os, architecture, site },
});

/** Every license of its site and of the grid, unless it is restricted to some. */
export const runsLicense = ({ licenseIds }: Machine, id: number): boolean =>
  licenseIds.length === 0 || licenseIds.includes(id);

/** A machine that nobody uses. */
export function machineState(
  machine: Machine,
  offered: readonly number[],
  isPart = false,
  devices: ReadonlySet<number> = NO_KINDS,
): MachineState {
  const state = {
    machine,
    offered,
    devices,
    shared: isShared(machine),
    whole: wholeOf(offered, isShared(machine)),
    isPart,
    position: -1,
    offset: -1,
    usedCpus: 0,
  } as MachineState;
  state.alone = aloneOn(state);
  return state;
}

const isShared = ({ maxTasks }: Machine): boolean => (maxTasks ?? null) !== null;

/** Of a machine that is shared in time nobody takes CPUs: who has all places is alone. */
const wholeOf = (offered: readonly number[], shared: boolean): Amounts =>
  offered.flatMap((amount, kind) => (amount > 0 && !(shared && kind === CPUS) ? [kind, amount] : []));

const aloneOn = (state: MachineState): Placement => ({
  machines: [state],
  tasks: ONE_TASK,
  benchmark: state.machine.benchmark,
  allocations: null,
});
const ONE_TASK: readonly number[] = [1];

/** Gives the room what is held; `sign` below 0: takes it. */
export function giveTo(room: Room, hold: TasksOnMachines, sign: 1 | -1): void {
  const { machines, tasks, each } = hold;
  if (each.parts !== null) {
    for (const part of takings(hold)) giveTo(room, part, sign);
    return;
  }
  for (let i = 0; i < machines.length; i++) {
    const state = machines[i] as MachineState;
    addTo(takenOn(each, state), sign * timesTaken(each, tasks[i] as number), room, state.offset);
  }
}
