/**
 * Which devices of the machines of a site those will have who are promised a start: found by acting out what is to happen. Runs give back
 * the devices that they have when they are planned to end; at each promised start the job gets its own by the rule of starts
 * (`chooseUnits`), of what is free then. A job finds a place only where it gets its devices and nobody who was promised a start loses
 * theirs by it. So no two that were promised count on one device at one instant.
 *
 * Decision: which devices a start takes is chosen by the rule, whoever else waits. Where the rule would give it one that was promised, the
 * machine is none for it, though another device would do: it is never worse for who was promised. Promises of one instant that are kept from
 * cycle to cycle are acted out with those first that say more of what they want, in whatever order they were made; others in that order.
 */
import type { TaskAmounts } from '../grid/amounts.js';
import { alikeIn, asksByName, type MachineState, type TasksOnMachines } from '../grid/site-resources.js';
import { type Asked, DeviceHolds, type OnMachine } from './device-holds.js';
import { chooseUnits, type HeldUnit, holdUnits } from './units.js';

/** Who has devices now, and until when. */
export interface DevicesNow {
  readonly now: number;
  /** null: there are none to be had by name. */
  readonly devices: DeviceHolds | null;
  /** Runs that may have some, those in mind included. */
  readonly holders: readonly (readonly [holder: object, until: number])[];
}

/** Where somebody is to have devices. */
interface Place {
  /** What the job takes. */
  readonly of: TaskAmounts;
  /** It begins then. */
  readonly at: number;
  /** By its estimate. */
  readonly end: number;
  /** When it is stopped: until then beside what is held for certain. */
  readonly until: number;
  /** Now: runs that are late have their devices still. */
  readonly present: boolean;
}

/** When it comes to somebody, and before whom of those who begin at the same instant. */
interface Turn {
  readonly from: number;
  readonly rank: Rank;
  readonly to: number;
}

interface Promised extends Turn {
  readonly of: TasksOnMachines;
  readonly each: Asked;
  readonly tasks: number;
  readonly certain: boolean;
  readonly byName: boolean;
}

interface Here {
  readonly machine: OnMachine['machine'];
  /** In the order in which they are acted out. */
  readonly promised: Promised[];
  /** Before each of them, and behind the last: as far as it was asked for. */
  readonly states: Held[];
  /** Whether each gets its devices. */
  readonly served: boolean[];
}

/** What is had of the devices of a machine at an instant, and until when. */
class Held {
  constructor(
    private readonly machine: OnMachine['machine'],
    readonly units: Map<string, HeldUnit>,
    readonly until: Map<string, number>,
  ) {}

  copy(): Held {
    return new Held(this.machine, new Map(this.units), new Map(this.until));
  }

  /** Time has come so far. */
  advance(now: number): this {
    for (const [unit, until] of this.until)
      if (until <= now) {
        this.units.delete(unit);
        this.until.delete(unit);
      }
    return this;
  }

  /** So many tasks take what the rule gives them; false: there are not enough, and they take nothing. */
  serve(asked: Asked, tasks: number, to: number): boolean {
    const devices = this.machine.devices ?? [];
    const units = chooseUnits(devices, this.units, asked, tasks);
    if (units === null) return false;
    for (const [unit, held] of holdUnits(devices, units, asked, tasks)) {
      this.units.set(unit, held);
      this.until.set(unit, to);
    }
    return true;
  }

  isSame({ units, until }: Held): boolean {
    return (
      units.size === this.units.size &&
      [...until].every(([unit, to]) => this.until.get(unit) === to) &&
      [...units].every(([unit, { memoryMb, user }]) => {
        const own = this.units.get(unit);
        return own !== undefined && own.memoryMb === memoryMb && own.user === user;
      })
    );
  }
}

export class PromisedDevices {
  private readonly byMachine = new Map<number, Here>();
  /** How many promises there are, and how many of jobs that ask for devices by what they are. */
  private count = 0;
  private byName = 0;
  /** Those of one instant may have been promised, and may start, in any order; else they do in the order in which they were promised. */
  inAnyOrder = false;
  /** By machine, when units are given back that runs have. */
  private givenBack: Map<number, Map<string, number>> | null = null;

  constructor(private source: DevicesNow) {}

  /** Whether it may matter to the place of a job: amounts do for those that are promised if nobody says what devices are to be. */
  mattersTo(each: TaskAmounts): boolean {
    return this.count > 0 && (this.byName > 0 || asksByName(each));
  }

  /** Some are promised to jobs that say what they are to be: counting does not keep them. */
  get someByName(): boolean {
    return this.byName > 0;
  }

  /** Runs have begun or ended, or others are to say who has devices now. */
  changed(source = this.source): void {
    this.source = source;
    this.givenBack = null;
    for (const { states } of this.byMachine.values()) states.length = 0;
  }

  add(hold: TasksOnMachines, from: number, to: number, certain = false): void {
    this.count++;
    if (asksByName(hold.each)) this.byName++;
    const rank = rankOf(hold.each);
    for (const { machines, tasks, each } of alikeIn(hold))
      for (const [i, { machine }] of machines.entries()) {
        const byName = each.devices !== null;
        const known = this.byMachine.get(machine.id);
        const here = known ?? { machine, promised: [], states: [], served: [] };
        if (known === undefined) this.byMachine.set(machine.id, here);
        const one = { of: hold, each, tasks: tasks[i] as number, from, to, rank, certain, byName };
        const at = this.turnIn(here, one);
        here.promised.splice(at, 0, one);
        here.states.length = Math.min(here.states.length, at + 1);
      }
  }

  /** It is promised no more; false: it was not. */
  remove({ machines, tasks, each }: TasksOnMachines, from: number): boolean {
    const isOf = ({ of, from: begin }: Promised): boolean =>
      begin === from && of.machines === machines && of.tasks === tasks && of.each === each;
    // One of several that are alike.
    let which: TasksOnMachines | null = null;
    for (const { machine } of machines as readonly MachineState[]) {
      const here = this.byMachine.get(machine.id);
      for (let i = (here?.promised.length ?? 0) - 1; here !== undefined && i >= 0; i--) {
        const one = here.promised[i] as Promised;
        if (!isOf(one) || one.of !== (which ?? one.of)) continue;
        which = one.of;
        here.promised.splice(i, 1);
        here.states.length = Math.min(here.states.length, i + 1);
      }
    }
    if (which === null) return false;
    this.count--;
    if (asksByName(each)) this.byName--;
    return true;
  }

  /** Which devices a job finds taken that is to be there. */
  view(place: Place): DeviceHolds {
    return new DevicesThen(this, this.source.devices as DeviceHolds, place);
  }

  /** Whether the tasks get their devices there. */
  admits(hold: TasksOnMachines, place: Place): boolean {
    const devices = new DeviceHolds(this.view(place));
    for (const part of alikeIn(hold)) {
      const { machines, tasks, each } = part;
      for (let i = 0; i < machines.length; i++)
        if (devices.key(machines[i] as MachineState, each, tasks[i] as number) === null) return false;
      devices.take(part, [part]);
    }
    return devices.leavesPromised();
  }

  /** As it is now, with all runs that are there. */
  heldNow(machine: OnMachine['machine']): Held {
    const { devices, holders } = this.source;
    if (this.givenBack === null) {
      this.givenBack = new Map();
      for (const [holder, until] of holders)
        for (const [machineId, units] of devices?.takenBy(holder) ?? []) {
          const here = this.givenBack.get(machineId) ?? new Map<string, number>();
          this.givenBack.set(machineId, here);
          for (const unit of units) here.set(unit, until);
        }
    }
    // Of who is no run of the site nobody knows until when.
    const units = new Map(devices?.heldOn(machine));
    return new Held(machine, units, new Map(this.givenBack.get(machine.id)));
  }

  /** null: nobody is promised devices of the machine. */
  on(machineId: number): Here | null {
    const here = this.byMachine.get(machineId);
    return here === undefined || here.promised.length === 0 ? null : here;
  }

  /** Behind all that are not behind it. */
  turnIn({ promised }: Here, one: Turn): number {
    let at = promised.length;
    while (at > 0 && isBefore(one, promised[at - 1] as Turn, this.inAnyOrder)) at--;
    return at;
  }

  /** Before the promise, or behind the last. */
  before(here: Here, position: number): Held {
    const { machine, promised, states, served } = here;
    if (states.length === 0) states.push(this.heldNow(machine));
    while (states.length <= position) {
      const { each, tasks, from, to } = promised[states.length - 1] as Promised;
      const next = (states[states.length - 1] as Held).copy().advance(Math.max(from, this.source.now));
      served[states.length - 1] = next.serve(each, tasks, to);
      states.push(next);
    }
    return states[position] as Held;
  }
}

/** The devices of machines as a job finds them that is to be there: those that it may not have are as good as taken. */
class DevicesThen extends DeviceHolds {
  /** When the job comes, before it takes anything. */
  private readonly before = new Map<number, Held>();

  constructor(
    private readonly plan: PromisedDevices,
    now: DeviceHolds,
    private readonly place: Place,
  ) {
    super(now);
  }

  protected override heldAt(machine: OnMachine['machine']): ReadonlyMap<string, HeldUnit> | null {
    return this.place.present && this.plan.on(machine.id) === null ? null : this.beforeOn(machine).units;
  }

  protected override keeps(
    machine: OnMachine['machine'],
    units: ReadonlyMap<string, HeldUnit>,
    asked: Asked,
    tasks: number,
  ): boolean {
    const here = this.plan.on(machine.id);
    if (here === null) return true;
    // Who is of several parts is looked at with all of them (`leavesPromised`).
    if (this.place.of.parts !== null) return true;
    if (asked.devices === null && !here.promised.some(({ byName }) => byName)) return true;
    const end = this.endOn(here);
    const then = new Held(machine, new Map(units), new Map(this.beforeOn(machine).until));
    return then.serve(asked, tasks, end) && this.leaves(here, then, end);
  }

  override get besidePromises(): boolean {
    return true;
  }

  protected override leavesBeside(
    machine: OnMachine['machine'],
    units: ReadonlyMap<string, HeldUnit>,
  ): boolean {
    const here = this.plan.on(machine.id);
    if (here === null) return true;
    const before = this.beforeOn(machine);
    const end = this.endOn(here);
    const then = new Held(machine, new Map(units), new Map(before.until));
    for (const unit of units.keys()) if (!before.units.has(unit)) then.until.set(unit, end);
    return this.leaves(here, then, end);
  }

  private endOn({ promised }: Here): number {
    const { end, until } = this.place;
    return promised.some(({ certain }) => certain) ? Math.max(end, until) : end;
  }

  /** Whether those who come later get theirs who would without the job, which has its devices until `end`. */
  private leaves(here: Here, then: Held, end: number): boolean {
    const { promised, served } = here;
    for (let i = this.turn(here); i < promised.length; i++) {
      const { each, from, to, tasks } = promised[i] as Promised;
      const without = this.plan.before(here, i);
      if (from >= end && then.advance(from).isSame(without.copy().advance(from))) return true;
      this.plan.before(here, i + 1);
      if (!then.advance(Math.max(from, this.place.at)).serve(each, tasks, to) && served[i]) return false;
    }
    return true;
  }

  private beforeOn(machine: OnMachine['machine']): Held {
    let before = this.before.get(machine.id);
    if (before === undefined) {
      const { at, present } = this.place;
      const here = present ? null : this.plan.on(machine.id);
      before = here === null ? this.plan.heldNow(machine) : this.plan.before(here, this.turn(here)).copy();
      if (!present) before.advance(at);
      this.before.set(machine.id, before);
    }
    return before;
  }

  private turn(here: Here): number {
    const { at, end, of, present } = this.place;
    return present ? 0 : this.plan.turnIn(here, { from: at, rank: rankOf(of), to: end });
  }
}

const isBefore = (a: Turn, b: Turn, ranked: boolean): boolean => {
  if (a.from !== b.from || !ranked) return a.from < b.from;
  return (a.rank.picky - b.rank.picky || compareText(a.rank.text, b.rank.text) || a.to - b.to) < 0;
};

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** The same for all that ask for the same. */
interface Rank {
  /** The less, the more it says of the devices that it wants. */
  readonly picky: number;
  readonly text: string;
}

const ranks = new WeakMap<TaskAmounts, Rank>();

function rankOf(each: TaskAmounts): Rank {
  let rank = ranks.get(each);
  if (rank === undefined) {
    const asked = (each.parts ?? [each]).map(({ further, devices }) => ({
      further,
      requests: devices?.requests ?? [],
      user: devices?.user ?? null,
    }));
    const said = asked.map(({ requests }) =>
      requests.reduce(
        (sum, { model, minMemoryMb }) => sum + 1 + (model === null ? 0 : 4) + (minMemoryMb === null ? 0 : 2),
        0,
      ),
    );
    rank = { picky: -Math.max(...said), text: JSON.stringify(asked) };
    ranks.set(each, rank);
  }
  return rank;
}
