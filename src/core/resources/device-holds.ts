/**
 * Which devices of the machines of a site live runs have, by name. Whoever starts a job now chooses machines by it (resources.md, "Which
 * machines"), and the devices on them by the same rule as whoever carries the start out (`chooseUnits`): where these are named, they are
 * taken as named.
 *
 * Decision: only for starts, and for openings of jobs that ask for devices by what they are, which come when runs have given back such
 * devices. Of what is promised amounts are known: which devices those jobs will have is not.
 */
import type { TaskAmounts } from '../grid/amounts.js';
import type { Machine } from '../model.js';
import { chooseUnits, deviceKey, type HeldUnit, holdUnits } from './units.js';

interface OnMachine {
  readonly machine: Pick<Machine, 'id' | 'devices'>;
}

type Asked = Pick<TaskAmounts, 'further' | 'devices'>;

/** Tasks that are alike, on machines. */
interface TasksThere {
  readonly machines: readonly OnMachine[];
  readonly tasks: readonly number[];
  readonly each: Asked;
}

type Named = readonly (readonly string[])[];

/** Of one machine. */
interface Known {
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
        const here = this.known(machine.id);
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
      const here = this.known(machineId);
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
  key({ machine: { id, devices } }: OnMachine, asked: Asked, tasks: number): readonly number[] | null {
    if (devices === undefined) return asked.devices === null ? NO_DEVICES : null;
    const here = this.seen(id);
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
    if (keys[tasks] === undefined) keys[tasks] = deviceKey(devices, here.held, asked, tasks);
    return keys[tasks] as readonly number[] | null;
  }

  /** The most tasks, of so many, that get the devices on the machine that they ask for by what they are. */
  most(on: OnMachine, asked: Asked, tasks: number): number {
    let most = tasks;
    while (most > 0 && this.key(on, asked, most) === null) most--;
    return most;
  }

  private takenBy(holder: object): readonly [machineId: number, units: readonly string[]][] {
    return this.byHolder.get(holder) ?? this.beneath?.takenBy(holder) ?? [];
  }

  /** To be read: what this view has not changed is known beneath. */
  private seen(machineId: number): Known {
    const own = this.byMachine.get(machineId);
    return own ?? this.beneath?.seen(machineId) ?? this.known(machineId);
  }

  /** To be changed. */
  private known(machineId: number): Known {
    let known = this.byMachine.get(machineId);
    if (known === undefined) {
      known = { held: new Map(this.beneath?.seen(machineId).held), keys: new Map(), keysOf: undefined };
      this.byMachine.set(machineId, known);
    }
    return known;
  }
}

const NO_DEVICES: readonly number[] = [0, 0, 0];
