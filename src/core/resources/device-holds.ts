/**
 * Which devices of the machines of a site live runs have, by name. Whoever starts a job now chooses machines by it (resources.md, "Which
 * machines"), and the devices on them by the same rule as whoever carries the start out (`chooseUnits`): where these are named, they are
 * taken as named.
 *
 * Openings of jobs that ask for devices by what they are come when runs have given back such devices, beside what is promised
 * (promised-devices.ts).
 */
import type { TaskAmounts } from '../grid/amounts.js';
import type { Machine } from '../model.js';
import { chooseUnits, deviceKey, type HeldUnit, holdUnits } from './units.js';

export interface OnMachine {
  readonly machine: Pick<Machine, 'id' | 'devices'>;
}

export type Asked = Pick<TaskAmounts, 'further' | 'devices'>;

/** Tasks that are alike, on machines. */
interface TasksThere {
  readonly machines: readonly OnMachine[];
  readonly tasks: readonly number[];
  readonly each: Asked;
}

type Named = readonly (readonly string[])[];

/** Of one machine. */
interface Known {
  readonly machine: OnMachine['machine'];
  readonly held: Map<string, HeldUnit>;
  /** What is compared of it (`deviceKey`), by what a task asks for and the number of tasks; as long as it has the same devices. */
  readonly keys: Map<Asked['further'] | Asked['devices'], (readonly number[] | null | undefined)[]>;
  keysOf: Machine['devices'];
}

/** Classes of jobs whose answers are kept for a machine. */
const KEPT = 64;

export class DeviceHolds {
  private readonly byMachine = new Map<number, Known>();
  private readonly byHolder = new Map<object, [machineId: number, units: readonly string[]][]>();

  /** `beneath`: what is held before this view takes and gives in mind; it stays as it is. */
  constructor(private readonly beneath: DeviceHolds | null = null) {}

  /** A run, or one in mind, has its devices: `named`, by place among all its machines, or else those that are chosen here. */
  take(holder: object, parts: readonly TasksThere[], named: Named | null = null): void {
    const taken: [number, readonly string[]][] = [];
    let place = 0;
    for (const { machines, tasks, each } of parts)
      for (const [i, { machine }] of machines.entries()) {
        const here = this.known(machine);
        const devices = machine.devices ?? [];
        const chosen = () => chooseUnits(devices, here.held, each, tasks[i] as number) ?? [];
        const units = named?.[place++] ?? chosen();
        for (const [unit, held] of holdUnits(devices, units, each, tasks[i] as number))
          here.held.set(unit, held);
        here.keys.clear();
        taken.push([machine.id, units]);
      }
    this.byHolder.set(holder, taken);
  }

  /** It has them no more. */
  give(holder: object): void {
    for (const [machineId, units] of this.takenBy(holder)) {
      const here = this.known({ id: machineId });
      for (const unit of units) here.held.delete(unit);
      here.keys.clear();
    }
    this.byHolder.delete(holder);
  }

  /** A machine that no run is on has left. */
  forget(machineId: number): void {
    this.byMachine.delete(machineId);
  }

  /** `deviceKey` of the machine with so many tasks on it. */
  key({ machine }: OnMachine, asked: Asked, tasks: number): readonly number[] | null {
    const { devices } = machine;
    if (devices === undefined) return asked.devices === null ? NO_DEVICES : null;
    const here = this.seen(machine);
    if (here.keysOf !== devices || here.keys.size > KEPT) {
      here.keys.clear();
      here.keysOf = devices;
    }
    // Each class has its own.
    const by = asked.devices ?? asked.further;
    let keys = here.keys.get(by);
    if (keys === undefined) {
      keys = [];
      here.keys.set(by, keys);
    }
    if (keys[tasks] === undefined) {
      const key = deviceKey(devices, here.held, asked, tasks);
      keys[tasks] = key !== null && this.keeps(machine, here.held, asked, tasks) ? key : null;
    }
    return keys[tasks] as readonly number[] | null;
  }

  /** The most tasks, of so many, that get the devices on the machine that they ask for by what they are. */
  most(on: OnMachine, asked: Asked, tasks: number): number {
    let most = tasks;
    while (most > 0 && this.key(on, asked, most) === null) most--;
    return most;
  }

  takenBy(holder: object): readonly [machineId: number, units: readonly string[]][] {
    return this.byHolder.get(holder) ?? this.beneath?.takenBy(holder) ?? [];
  }

  heldOn(machine: OnMachine['machine']): ReadonlyMap<string, HeldUnit> {
    return this.seen(machine).held;
  }

  /** What is held of the machine where this view begins; null: the same as beneath. */
  protected heldAt(_: Pick<Machine, 'id' | 'devices'>): ReadonlyMap<string, HeldUnit> | null {
    return null;
  }

  /** Whether all that was taken here leaves theirs to those who were promised devices. */
  leavesPromised(): boolean {
    for (const { machine, held } of this.byMachine.values())
      if (this.beneath?.leavesBeside(machine, held) === false) return false;
    return true;
  }

  /** Some are promised, whoever takes amounts only. */
  get besidePromises(): boolean {
    return false;
  }

  /** The same of a machine with these units taken. */
  protected leavesBeside(_machine: OnMachine['machine'], _held: ReadonlyMap<string, HeldUnit>): boolean {
    return true;
  }

  /** Whether so many tasks may have their devices there, beside these, for all that is promised. */
  protected keeps(
    machine: OnMachine['machine'],
    held: ReadonlyMap<string, HeldUnit>,
    asked: Asked,
    tasks: number,
  ): boolean {
    return this.beneath?.keeps(machine, held, asked, tasks) ?? true;
  }

  /** To be read: what this view has not changed is known beneath. */
  private seen(machine: OnMachine['machine']): Known {
    const own = this.byMachine.get(machine.id);
    if (own !== undefined) return own;
    if (this.beneath === null || this.heldAt(machine) !== null) return this.known(machine);
    return this.beneath.seen(machine);
  }

  /** To be changed. */
  private known(machine: OnMachine['machine']): Known {
    let known = this.byMachine.get(machine.id);
    if (known === undefined) {
      const held = new Map(this.heldAt(machine) ?? this.beneath?.seen(machine).held);
      known = { machine, held, keys: new Map(), keysOf: undefined };
      this.byMachine.set(machine.id, known);
    }
    return known;
  }
}

const NO_DEVICES: readonly number[] = [0, 0, 0];
