/**
 * The one vector of amounts: what machines offer, tasks ask for, runs hold and is free are numbers by kind of resource. A grid has a
 * table of its kinds (`ResourceKinds`); everything behind it knows kinds by their index there and none by name, so that a GPU or a
 * tape drive is data. CPUs, memory and places of time-shared machines are kinds like any other, with an index that is always the same.
 *
 * What is free at a site is one array, machine after machine (`Room`). What is asked for is sparse: most tasks ask for one or two kinds,
 * and loops are as long as that.
 */
import type { Job, Machine } from '../model.js';
import type { DeviceRequest, OwnedDevice } from '../resources/devices.js';

export const CPUS = 0;
export const MEMORY = 1;
/** On a time-shared machine every task takes one. */
export const PLACES = 2;

/** Amounts above 0: kind, amount, kind, amount, in the order in which kinds are looked at. */
export type Amounts = readonly number[];

/** Devices that a task asks for by what they are, beside amounts, and both together as amounts of a machine with these devices (resources/asked-devices.ts). */
export interface DevicesAsked {
  readonly requests: readonly DeviceRequest[];
  /** Whose task it is; null: it asks for whole devices, which nobody shares. */
  readonly user: string | null;
  /** What it asks for of the machine; more than any has, where the devices do not serve it. */
  askedOf(devices: readonly OwnedDevice[] | undefined, shared: boolean): Amounts;
  /** What it takes of it. */
  takenOf(devices: readonly OwnedDevice[] | undefined, shared: boolean): Amounts;
  /** Tasks that these devices serve at most. */
  mostOf(devices: readonly OwnedDevice[] | undefined): number;
  /**
   * Tasks that they serve when nobody has any of them. Devices are served greedily, so that it may be less: who writes the less picky request
   * first may find what is left of the devices to suit only while others have some.
   */
  idleOf(devices: readonly OwnedDevice[] | undefined): number;
  /** The same devices for a task that asks for something else beside them. */
  besides(task: Amounts): DevicesAsked;
}

/** What one task asks for (resources.md, "Amounts"). */
export interface TaskAmounts {
  /** Of a machine that is shared in space. */
  readonly task: Amounts;
  /** What must be there on one that is shared in time: a place, too. */
  readonly sharedTask: Amounts;
  /** What it takes of that: no CPUs. */
  readonly sharedTake: Amounts;
  /** Of it, all that may be devices, by name; null: CPUs and memory are all. */
  readonly further: Readonly<Record<string, number>> | null;
  /** Devices that it asks for beside all of this by what they are: how much of each kind that is differs by machine (`askedOn`); null: none. */
  readonly devices: DevicesAsked | null;
  /** Its tasks together have all that each of their machines offers, beside nobody. */
  readonly whole: boolean;
  /** Beside nobody but jobs of this user, which may join it when they start (resources/joining.ts); null: all that is whole is. */
  readonly onlyUser: number | null;
  /** Of a job whose tasks are not all alike: so many of the first kind, then of the next; null: each takes the above. */
  readonly parts: readonly TasksAlike[] | null;
}

/** So many tasks that take the same. */
export interface TasksAlike extends TaskAmounts {
  readonly tasks: number;
}

/**
 * Amounts by machine, and on a machine by kind: what a machine has of a kind is at its `offset` + kind. Below 0 where more is taken than
 * there is.
 */
export type Room = number[];

/** The kinds of a grid. They are known as soon as a machine offers or a job asks for one, and stay known. */
export class ResourceKinds {
  private readonly names: string[] = ['cpus', 'memoryMb', 'places'];
  private readonly byName = new Map(this.names.map((name, index) => [name, index]));

  get size(): number {
    return this.names.length;
  }

  name(kind: number): string {
    return this.names[kind] as string;
  }

  index(name: string): number {
    let index = this.byName.get(name);
    if (index === undefined) {
      index = this.names.push(name) - 1;
      this.byName.set(name, index);
    }
    return index;
  }

  /** Amounts by kind; kinds behind the last that is given are left out. */
  vector(named: Readonly<Record<string, number>>): number[] {
    const vector: number[] = [];
    for (const [name, amount] of Object.entries(named)) {
      const kind = this.index(name);
      while (vector.length <= kind) vector.push(0);
      vector[kind] = amount;
    }
    return vector;
  }

  /** What is there of amounts by name, or of all that a machine offers. */
  amounts(of: Readonly<Record<string, number>> | readonly number[]): Amounts {
    const vector = Array.isArray(of) ? (of as readonly number[]) : this.vector(of as Record<string, number>);
    return vector.flatMap((amount, kind) => (amount > 0 ? [kind, amount] : []));
  }

  /** The same by name. */
  named(vector: readonly number[]): Record<string, number> {
    return Object.fromEntries(vector.map((amount, kind) => [this.name(kind), amount]));
  }

  /** By name, of amounts: what is neither CPUs nor memory nor a place. */
  further(amounts: Amounts): Record<string, number> {
    const found: Record<string, number> = {};
    for (let i = 0; i < amounts.length; i += 2) {
      const kind = amounts[i] as number;
      if (kind > PLACES) found[this.name(kind)] = amounts[i + 1] as number;
    }
    return found;
  }

  /** Of what a machine offers, what it has by name. */
  devicesOf({ devices }: Machine): ReadonlySet<number> {
    return devices === undefined || devices.length === 0
      ? NO_KINDS
      : new Set(devices.map(({ kind }) => this.index(kind)));
  }

  /** What a machine offers. */
  offeredBy({ cpus, memoryMb, maxTasks, resources }: Machine): number[] {
    return this.vector({ ...resources, cpus, memoryMb, places: maxTasks ?? 0 });
  }

  /** What a task of the job asks for, devices that it asks for by what they are apart. Further kinds in order of name, so that it does not matter which of them came first. */
  askedBy({ userId, cpusPerTask, memoryMbPerTask, resourcesPerTask, exclusive }: Job): TaskAmounts {
    const cpus = [CPUS, cpusPerTask];
    const rest = memoryMbPerTask > 0 ? [MEMORY, memoryMbPerTask] : [];
    const further = furtherIn(resourcesPerTask);
    for (const [name, amount] of further) rest.push(this.index(name), amount);
    return {
      task: [...cpus, ...rest],
      sharedTask: [PLACES, 1, ...cpus, ...rest],
      sharedTake: [PLACES, 1, ...rest],
      further: further.length === 0 ? null : resourcesPerTask,
      devices: null,
      whole: exclusive !== null,
      onlyUser: exclusive === 'USER' ? userId : null,
      parts: null,
    };
  }
}

export const NO_KINDS: ReadonlySet<number> = new Set();

/** Amounts besides CPUs and memory, in order of name; kinds of which there is nothing are left out. */
export const furtherIn = (asked: Job['resourcesPerTask']): [name: string, amount: number][] =>
  asked === null
    ? []
    : Object.entries(asked)
        .filter(([, amount]) => amount > 0)
        .sort(([a], [b]) => (a < b ? -1 : 1));

/** The same of any machine. */
export const eachTakes = (task: Amounts): TaskAmounts => ({
  ...{ task, sharedTask: task, sharedTake: task },
  further: null,
  devices: null,
  whole: false,
  onlyUser: null,
  parts: null,
});
export const NO_AMOUNTS: TaskAmounts = eachTakes([]);

/** Kinds and amounts in pairs, for those who are in no hurry. */
export const pairsOf = (amounts: Amounts): [kind: number, amount: number][] =>
  amounts.flatMap((kind, i) => (i % 2 === 0 ? [[kind, amounts[i + 1] as number]] : []));

/** How much of a kind it is. */
export function amountOf(amounts: Amounts, kind: number): number {
  for (let i = 0; i < amounts.length; i += 2) if (amounts[i] === kind) return amounts[i + 1] as number;
  return 0;
}

/** How many times the amounts are in the room that begins at `offset`: of a machine, or all that one offers. */
export function timesIn(amounts: Amounts, room: readonly number[], offset: number): number {
  let times = Infinity;
  for (let i = 0; i < amounts.length; i += 2) {
    const free = room[offset + (amounts[i] as number)] ?? 0;
    const amount = amounts[i + 1] as number;
    if (free < amount) return 0;
    times = Math.min(times, free / amount);
  }
  return Math.floor(times);
}

/** Whether so many times the amounts are there. */
export function fitsIn(amounts: Amounts, times: number, room: Room, offset: number): boolean {
  for (let i = 0; i < amounts.length; i += 2)
    if ((room[offset + (amounts[i] as number)] as number) < times * (amounts[i + 1] as number)) return false;
  return true;
}

/** Adds so many times the amounts to the room; below 0: takes them. */
export function addTo(amounts: Amounts, times: number, room: Room, offset: number): void {
  for (let i = 0; i < amounts.length; i += 2) {
    const at = offset + (amounts[i] as number);
    room[at] = (room[at] as number) + times * (amounts[i + 1] as number);
  }
}

/** Makes the one equal to the other; gives it. */
export function copyInto(copy: number[], column: readonly number[]): number[] {
  // To set a length costs, even to what it is.
  if (copy.length !== column.length) copy.length = column.length;
  for (let i = 0; i < column.length; i++) copy[i] = column[i] as number;
  return copy;
}
