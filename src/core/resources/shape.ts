/**
 * Jobs of several parts, each of tasks with amounts, devices and conditions on their machines, placed all or none at one instant at one
 * site (resources.md, "A shape" and "How much fits, and what lacks").
 */
import { chooseSpread, narrowToSpread, type Spread, type SpreadCandidate } from './choice.js';
import { type Constraint, type Labels, satisfies } from './constraint.js';
import {
  type Device,
  type DeviceRequest,
  inServingOrder,
  keyOfTaken,
  mostServed,
  serveDevices,
  type Taken,
} from './devices.js';

export interface ShapePart extends Spread {
  readonly tasks: number;
  /** For each task. */
  readonly cpus: number;
  readonly memoryMb: number;
  /** A task has the larger of `memoryMb` and this times its CPUs. */
  readonly memoryMbPerCpu: number;
  readonly devices: readonly DeviceRequest[];
  readonly exclusive: 'NONE' | 'MACHINE' | 'USER';
  /** null: any machine. */
  readonly where: Constraint | null;
}

export interface ShapeAmounts {
  readonly cpus: number;
  readonly memoryMb: number;
  /** null: shared in space. */
  readonly places: number | null;
}

export interface ShapeMachine {
  readonly id: string;
  readonly labels: Labels;
  readonly total: ShapeAmounts;
  readonly free: ShapeAmounts;
  /** Of jobs that run there. */
  readonly users: readonly string[];
  /** It is held for this user; null: for nobody. */
  readonly onlyUser: string | null;
  readonly devices: readonly Device[];
}

export interface PlacedTasks {
  readonly machine: string;
  readonly tasks: number;
  /** What this part takes of each device, by id. */
  readonly devices: readonly Taken[];
}

/** By part, machines by id; or the first thing that lacks. */
export type ShapePlacement =
  | { readonly parts: readonly (readonly PlacedTasks[])[] }
  | { readonly lacks: string; readonly part: number | null };

/** `licenses`: copies of each kind that the job holds. Parts go in the order given, each on what the earlier ones left. */
export function placeShape(
  parts: readonly ShapePart[],
  machines: readonly ShapeMachine[],
  user: string,
  licenses: {
    readonly asked: Readonly<Record<string, number>>;
    readonly free: Readonly<Record<string, number>>;
  },
): ShapePlacement {
  const states = machines.map((machine): MachineState => ({ ...machine, hasTask: false }));
  const placed: PlacedTasks[][] = [];
  for (const [i, part] of parts.entries()) {
    const found = new PartPlacing(part, states, user).place();
    if (typeof found === 'string') return { lacks: found, part: i };
    placed.push(found);
  }
  for (const kind of Object.keys(licenses.asked).sort()) {
    const asked = licenses.asked[kind] as number;
    if (asked > 0 && asked > (licenses.free[kind] ?? 0)) return { lacks: `license:${kind}`, part: null };
  }
  return { parts: placed };
}

/** A machine while a job is placed; `hasTask`: one of the job's is on it, of which it may have one only where it is shared in time. */
type MachineState = { -readonly [K in keyof ShapeMachine]: ShapeMachine[K] } & { hasTask: boolean };

interface Room extends SpreadCandidate {
  readonly state: MachineState;
}

class PartPlacing {
  private readonly requests: readonly DeviceRequest[];
  private readonly memoryMb: number;
  private readonly rooms: Room[];

  constructor(
    private readonly part: ShapePart,
    states: readonly MachineState[],
    private readonly user: string,
  ) {
    this.requests = inServingOrder(part.devices);
    this.memoryMb = Math.max(part.memoryMb, part.memoryMbPerCpu * part.cpus);
    this.rooms = states.map((state) => ({
      id: state.id,
      state,
      labels: state.labels,
      most: part.tasks,
      key: (tasks) => this.keyOf(state, tasks),
    }));
  }

  /** What lacks, or where the tasks go. */
  place(): PlacedTasks[] | string {
    const lacking = this.narrow();
    if (lacking !== null) return lacking;
    const chosen = chooseSpread(this.rooms, this.part.tasks, this.part);
    // A number of tasks between two that can be served cannot always.
    if (chosen === null) return this.requests.at(-1)?.kind ?? 'tasksPerMachine';
    const placed = chosen.map(({ candidate: { state }, tasks }) => {
      const devices = serveDevices(state.devices, this.requests, tasks, this.user) ?? [];
      this.take(state, tasks, devices);
      return {
        machine: state.id,
        tasks,
        devices: devices.sort((a, b) => (a.device.id < b.device.id ? -1 : 1)),
      };
    });
    return placed.sort((a, b) => (a.machine < b.machine ? -1 : 1));
  }

  /** Step by step to the most tasks that each machine holds; the first step after which all together hold too few. */
  private narrow(): string | null {
    const { where, exclusive, cpus, tasks } = this.part;
    const { user, memoryMb, requests } = this;
    const steps: [string, (state: MachineState, most: number) => number][] = [
      ['where', ({ labels }, most) => (where === null || satisfies(labels, where) ? most : 0)],
      ['exclusive', (state, most) => (isOpen(state, exclusive, user) ? most : 0)],
      [
        'cpus',
        ({ free, total }) =>
          free.places === null ? times(free.cpus, cpus) : times(total.cpus, cpus) > 0 ? Infinity : 0,
      ],
      ['memoryMb', ({ free }) => times(free.memoryMb, memoryMb)],
      [
        'places',
        ({ free, hasTask }) => (free.places === null ? Infinity : free.places > 0 && !hasTask ? 1 : 0),
      ],
      ...requests.map(({ kind }, i): [string, (state: MachineState, most: number) => number] => [
        kind,
        ({ devices }, most) => this.served(devices, requests.slice(0, i + 1), most),
      ]),
    ];
    for (const [name, most] of steps) {
      let sum = 0;
      for (const room of this.rooms) {
        if (room.most > 0) room.most = Math.min(room.most, most(room.state, room.most));
        sum += room.most;
      }
      if (sum < tasks) return name;
    }
    return narrowToSpread(this.rooms, tasks, this.part);
  }

  private served(devices: readonly Device[], requests: readonly DeviceRequest[], most: number): number {
    let tasks = Math.min(most, mostServed(devices, requests));
    while (tasks > 0 && serveDevices(devices, requests, tasks, this.user) === null) tasks--;
    return tasks;
  }

  /** Link groups among the devices given, idle devices left of all kinds, free CPUs left; null: its devices cannot serve just so many. */
  private keyOf({ devices, free }: MachineState, tasks: number): number[] | null {
    const taken = serveDevices(devices, this.requests, tasks, this.user);
    if (taken === null) return null;
    const cpus = free.places === null ? free.cpus - tasks * this.part.cpus : free.cpus;
    return [...keyOfTaken(devices, taken), cpus];
  }

  /** Takes it for the parts that follow. */
  private take(state: MachineState, tasks: number, devices: readonly Taken[]): void {
    const { exclusive, cpus } = this.part;
    const whole = exclusive === 'MACHINE';
    const { free } = state;
    const places = free.places === null ? null : whole ? 0 : free.places - tasks;
    state.free = {
      cpus: whole ? 0 : places === null ? free.cpus - tasks * cpus : free.cpus,
      memoryMb: whole ? 0 : free.memoryMb - tasks * this.memoryMb,
      places,
    };
    const takes = new Map(devices.map((one) => [one.device, one]));
    state.devices = state.devices.map((device) => {
      const { shares, memoryMb, user } = device.used;
      const more = takes.get(device);
      if (whole)
        return { ...device, used: { shares: device.shares, memoryMb: device.memoryMb, user: this.user } };
      if (more === undefined) return device;
      const used = {
        shares: shares + more.shares,
        memoryMb: memoryMb + more.memoryMb,
        user: user ?? this.user,
      };
      return { ...device, used };
    });
    state.users = [...state.users, this.user];
    if (exclusive === 'USER') state.onlyUser = this.user;
    state.hasTask = true;
  }
}

/** How often the amount is in what is free; an amount of 0 asks nothing. */
const times = (free: number, amount: number): number =>
  amount === 0 ? Infinity : Math.max(0, Math.floor(free / amount));

function isOpen({ users, onlyUser }: MachineState, exclusive: ShapePart['exclusive'], user: string): boolean {
  if (onlyUser !== null && onlyUser !== user) return false;
  if (exclusive === 'MACHINE') return users.length === 0;
  return exclusive === 'NONE' || users.every((other) => other === user);
}
