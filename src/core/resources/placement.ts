/**
 * Where the tasks of a job go: machines in order of power, ties by id (two-level.md: "a job goes on the first eligible
 * machine of the highest power"). One task goes on the first with room; several fill machine after machine. Jobs that ask more of their
 * machines than room for each task, or for devices, are spread by the rule of choice.ts. Time-shared machines are dealt out evenly instead.
 *
 * Which devices are free is known of what starts now (`DeviceHolds`), and of later where somebody asks for devices by what they are. Where
 * `devices` is null they are amounts as all else.
 */
import { amountOf, CPUS, fitsIn, PLACES, type Room, timesIn } from '../grid/amounts.js';
import type { Requirement } from '../grid/requirements.js';
import {
  askedOn,
  asksByName,
  type EligibleMachines,
  type Free,
  giveTo,
  type Hold,
  holdsByName,
  labelsOf,
  type MachineState,
  type Placement,
  type PoolCopies,
  type PoolState,
} from '../grid/site-resources.js';
import { type Allocation, ANY_TASKS_PER_MACHINE, type PoolAmount, SWITCH } from '../model.js';
import { chooseSpread, narrowToSpread, type Spread, type SpreadCandidate } from './choice.js';
import type { Labels } from './constraint.js';
import { DeviceHolds } from './device-holds.js';

/** How many tasks of the class fit on the machine in `room`, and beside that in `beside`. */
export function tasksOn(
  requirement: Requirement,
  state: MachineState,
  room: Room,
  beside: Room | null = null,
): number {
  const { offset, whole } = state;
  if (requirement.whole) {
    const alone = fitsIn(whole, 1, room, offset) && (beside === null || fitsIn(whole, 1, beside, offset));
    return alone ? idleTasksOn(requirement, state) : 0;
  }
  const asked = askedOn(requirement, state);
  const tasks = atMost(requirement, state, timesIn(asked, room, offset));
  if (tasks === 0 || beside === null) return tasks;
  return Math.min(tasks, timesIn(asked, beside, offset));
}

/** The same of a machine that nobody uses. */
export const idleTasksOn = (
  { task, devices, whole }: Pick<Requirement, 'task' | 'devices' | 'whole'>,
  { offered, machine, isPart }: MachineState,
): number => {
  if (whole && isPart) return 0;
  const tasks = timesIn(task, offered, 0);
  return devices === null ? tasks : Math.min(tasks, devices.idleOf(machine.devices));
};

/** Of so many tasks, those that may be of one job: a machine that is shared in time has one. */
export const ofOneJob = ({ shared }: MachineState, tasks: number): number =>
  shared ? Math.min(1, tasks) : tasks;

/** So many tasks, or as many as the devices of the machine can serve. */
export const atMost = (
  { devices }: Pick<Requirement, 'devices'>,
  { machine }: MachineState,
  tasks: number,
): number => (devices === null ? tasks : Math.min(tasks, devices.mostOf(machine.devices)));

/** A site's own scheduler knows its switches, and is told of them; of other labels it knows nothing (null). */
function askedOfScheduler(spread: Spread): Spread | null {
  return spread.allAlike.every((label) => label === SWITCH) ? { ...spread, allAlike: [] } : null;
}

/** Whether the machines, idle, have room for all tasks, spread as they are to be. */
export function hasRoom(
  of: Pick<Requirement, 'tasks' | 'task' | 'devices' | 'spread' | 'whole' | 'parts'>,
  eligible: EligibleMachines,
): boolean {
  const { task, tasks, spread, parts } = of;
  const { machines, most, ownScheduler } = eligible;
  if (timesIn(task, most, 0) === 0) return false;
  if (parts !== null) {
    const room = idleRoom(eligible);
    // Which devices an earlier part takes decides which machines it leaves to a later one: amounts alone may put it on the only ones for that.
    const byName =
      parts.some(asksByName) && placeParts(parts, eligible, room, null, new DeviceHolds()) !== null;
    return byName || placeParts(parts, eligible, room) !== null;
  }
  const idle = (state: MachineState): number => ofOneJob(state, idleTasksOn(of, state));
  if (spread !== null) {
    const asked = ownScheduler ? askedOfScheduler(spread) : spread;
    if (asked === null) return false;
    const candidates = candidatesOf(machines, idle, NO_KEY, asked);
    return narrowToSpread(candidates, tasks, asked) === null;
  }
  let room = 0;
  for (const state of machines) {
    room += idle(state);
    if (room >= tasks) return true;
  }
  return false;
}

/** What is free on the machines when nobody uses them. */
function idleRoom({ machines, most }: EligibleMachines): Room {
  const room: Room = [];
  // As many kinds as there are: some a machine may not have.
  for (const { offered, offset } of machines)
    for (let kind = 0; kind < most.length; kind++) room[offset + kind] = offered[kind] ?? 0;
  return room;
}

/** Whether one task of the class does. */
export const oneFits = (
  { task }: Requirement,
  { offset }: MachineState,
  room: Room,
  beside: Room | null,
): boolean => fitsIn(task, 1, room, offset) && (beside === null || fitsIn(task, 1, beside, offset));

/**
 * The placement of the class on the eligible machines, null when there is no room for all tasks. `devices`: of a class for which it matters
 * which are free (`SiteResources.looksAtDevices`).
 */
export function place(
  requirement: Requirement,
  eligible: EligibleMachines,
  room: Room,
  beside: Room | null = null,
  devices: DeviceHolds | null = null,
): Placement | null {
  const { machines } = eligible;
  if (requirement.parts !== null) return placeParts(requirement.parts, eligible, room, beside, devices);
  if (devices !== null || requirement.devices !== null)
    return placeSpreadIn(requirement, requirement.spread ?? ANY_SPREAD, machines, room, beside, devices);
  if (!requirement.many) {
    for (let i = 0; i < machines.length; i++) {
      const state = machines[i] as MachineState;
      if (oneFits(requirement, state, room, beside)) return state.alone;
    }
    return null;
  }
  if (requirement.spread !== null)
    return placeSpreadIn(requirement, requirement.spread, machines, room, beside, null);
  const filling = new Filling(requirement.tasks);
  for (let i = 0; i < machines.length && filling.left > 0; i++) {
    const state = machines[i] as MachineState;
    filling.put(state, tasksOn(requirement, state, room, beside));
  }
  return filling.placement;
}

const placeSpreadIn = (
  requirement: Requirement,
  spread: Spread,
  machines: readonly MachineState[],
  room: Room,
  beside: Room | null,
  devices: DeviceHolds | null,
): Placement | null =>
  placeSpread(
    requirement,
    spread,
    machines,
    (state) => tasksOn(requirement, state, room, beside),
    leastFreeIn(room, beside),
    devices,
  );

/** Of a kind on a machine. */
const leastFreeIn =
  (room: Room, beside: Room | null) =>
  ({ offset }: MachineState, kind: number): number =>
    Math.min(room[offset + kind] as number, beside?.[offset + kind] ?? Infinity);

/** A part says nothing of how its tasks are spread. They are placed by the same rule: fewest machines, so that more are left for the next. */
export const ANY_SPREAD: Spread = { tasksPerMachine: ANY_TASKS_PER_MACHINE, allAlike: [] };

/** The first part for which there is no room on what those before it leave; null: all have a place. */
export interface LackingPart {
  readonly at: number;
  readonly part: Requirement;
  readonly eligible: EligibleMachines;
  readonly room: Room;
}

/**
 * Where the parts of a job go (resources.md, "Which machines"): in their order, each on what the earlier ones left; null when there is no
 * room for one. The order is not searched, so that an explanation can name one part that lacks (`lackingPart`).
 *
 * What an earlier part takes depends on which devices are free, and so may whether a later one has room. Decision: who has none then goes
 * where amounts alone put it, for those are what plans and explanations are about; unless a part asks for devices by what they are, of which
 * amounts do not say whether there are any.
 */
export function placeParts(
  parts: readonly Requirement[],
  eligible: EligibleMachines,
  room: Room,
  beside: Room | null = null,
  devices: DeviceHolds | null = null,
): Placement | null {
  const found = tryParts(parts, eligible, room, beside, devices);
  if (found === null) return null;
  if (!('at' in found)) return found;
  const isFinal = devices === null || devices.besidePromises || parts.some(asksByName);
  return isFinal ? null : placeParts(parts, eligible, room, beside);
}

export function lackingPart(
  parts: readonly Requirement[],
  eligible: EligibleMachines,
  room: Room | null,
): LackingPart | null {
  const found = tryParts(parts, eligible, room ?? idleRoom(eligible), null, null);
  return found !== null && 'at' in found ? found : null;
}

/** null: all have a place, with devices that are promised to others. */
function tryParts(
  parts: readonly Requirement[],
  eligible: EligibleMachines,
  room: Room,
  beside: Room | null,
  devices: DeviceHolds | null,
): Placement | LackingPart | null {
  // As the job itself finds it: a machine that a part keeps for its user has room for others of the job.
  const left = room.slice();
  const leftBeside = beside === null ? null : beside.slice();
  const devicesLeft = devices && new DeviceHolds(devices);
  const machines: MachineState[] = [];
  const tasks: number[] = [];
  let benchmark = Infinity;
  for (const [at, part] of parts.entries()) {
    let own = eligible.parts?.[at] ?? [];
    // A machine that is shared in time has one task of a job; a scheduler of the site's own gives each part machines of its own.
    if (eligible.shared || eligible.ownScheduler)
      own = own.filter((state) => !machines.includes(state) || !(state.shared || eligible.ownScheduler));
    const spread = part.spread ?? ANY_SPREAD;
    const asked = eligible.ownScheduler ? askedOfScheduler(spread) : spread;
    const among = part.onlyUser === null ? part : { ...part, whole: false, onlyUser: null };
    const isOwn = ({ whole, offset, isPart }: MachineState): boolean =>
      !isPart && fitsIn(whole, 1, room, offset) && (beside === null || fitsIn(whole, 1, beside, offset));
    const most = (state: MachineState): number =>
      among === part || isOwn(state) ? ofOneJob(state, tasksOn(among, state, left, leftBeside)) : 0;
    const placed = asked && placeSpread(part, asked, own, most, leastFreeIn(left, leftBeside), devicesLeft);
    if (placed === null)
      return { at, part, eligible: { ...eligible, machines: [...own], parts: null }, room: left };
    const hold = { ...placed, each: among };
    giveTo(left, hold, -1);
    if (leftBeside !== null) giveTo(leftBeside, hold, -1);
    if (holdsByName(part)) devicesLeft?.take(hold, [hold]);
    machines.push(...placed.machines);
    tasks.push(...placed.tasks);
    benchmark = Math.min(benchmark, placed.benchmark);
  }
  if (devicesLeft?.leavesPromised() === false) return null;
  return { machines, tasks, benchmark, allocations: null };
}

/** One task at most on each machine that is shared in time. */
const placeSharedPart = (
  part: Requirement,
  spread: Spread,
  machines: readonly MachineState[],
  room: Room,
  devices: DeviceHolds | null,
): Placement | null =>
  placeSpread(
    part,
    spread,
    machines,
    (state) => ofOneJob(state, tasksOn(part, state, room)),
    ({ offset }, kind) => room[offset + kind] as number,
    devices,
  );

const NO_LABELS: Labels = {};

interface PlaceCandidate extends SpreadCandidate {
  readonly state: MachineState;
}

const NO_KEY = (): number[] => [];

function candidatesOf(
  machines: readonly MachineState[],
  most: (state: MachineState) => number,
  key: (state: MachineState, tasks: number) => readonly number[] | null,
  { allAlike }: Spread,
): PlaceCandidate[] {
  const alike = allAlike.length > 0;
  const candidates: PlaceCandidate[] = [];
  for (const state of machines) {
    const tasks = most(state);
    if (tasks === 0) continue;
    const { id } = state.machine;
    const labels = alike ? labelsOf(state.machine, '') : NO_LABELS;
    candidates.push({
      ...{ id: String(id).padStart(16, '0'), labels, state, most: tasks },
      key: (gets) => key(state, gets),
    });
  }
  return candidates;
}

/**
 * The placement of a class that is to be spread, in order of placement; null when there is no room for all tasks. Slower machines are used
 * only where the faster ones do not suffice. `most`: tasks that a machine has room for; `left`: what is free there of a kind: among equals
 * those with the least left are taken, first of devices (in few link groups, where it is known which are free), then of what else operators
 * name, then of CPUs.
 */
export function placeSpread(
  requirement: Requirement,
  spread: Spread,
  machines: readonly MachineState[],
  most: (state: MachineState) => number,
  left: (state: MachineState, kind: number) => number,
  devices: DeviceHolds | null,
): Placement | null {
  const { tasks, task } = requirement;
  const candidates = candidatesOf(
    machines,
    devices === null || requirement.devices === null
      ? most
      : (state) => devices.most(state, requirement, Math.min(tasks, most(state))),
    (state, gets) => {
      let further = 0;
      for (let kind = PLACES + 1; kind < state.offered.length; kind++)
        if (devices === null || !state.devices.has(kind))
          further += left(state, kind) - gets * amountOf(task, kind);
      const cpus = left(state, CPUS) - (state.shared ? 0 : gets * amountOf(task, CPUS));
      if (devices === null) return [further, cpus];
      const key = devices.key(state, requirement, gets);
      return key && [...key, further, cpus];
    },
    spread,
  );
  let room = 0;
  for (let i = 0; i < candidates.length; i++) {
    const { most: here, state } = candidates[i] as PlaceCandidate;
    room += here;
    const alike = candidates[i + 1]?.state.machine.benchmark === state.machine.benchmark;
    if (alike || room < tasks) continue;
    const fastest = candidates.slice(0, i + 1);
    if (narrowToSpread(fastest, tasks, spread) !== null) continue;
    const chosen = chooseSpread(fastest, tasks, spread);
    if (chosen === null) continue;
    chosen.sort((a, b) => a.candidate.state.position - b.candidate.state.position);
    const filling = new Filling(tasks);
    for (const { candidate, tasks: gets } of chosen) filling.put(candidate.state, gets);
    return filling.placement;
  }
  return null;
}

/** Where the tasks of the class go, however they are to be spread; null: there is no room for each. */
export const placeAnywhere = (
  requirement: Requirement,
  { machines, shared }: EligibleMachines,
  { room }: Pick<Free, 'room'>,
): Placement | null =>
  shared
    ? placeSharedPart(requirement, ANY_SPREAD, machines, room, null)
    : placeSpreadIn(requirement, ANY_SPREAD, machines, room, null, null);

/** What of the conditions on its machines keeps the class from starting in `free`, if it does not lack room for each task; null: nothing. */
export function lackingSpread(
  requirement: Requirement,
  { machines }: EligibleMachines,
  { room }: Pick<Free, 'room'>,
): 'exclusive' | 'tasksPerMachine' | 'allAlike' | null {
  const { spread, whole, tasks } = requirement;
  if (spread === null) return null;
  const most = (state: MachineState): number => ofOneJob(state, tasksOn(requirement, state, room));
  const candidates = candidatesOf(machines, most, NO_KEY, spread);
  if (whole && candidates.reduce((sum, one) => sum + one.most, 0) < tasks) return 'exclusive';
  return narrowToSpread(candidates, tasks, spread);
}

/** Tasks of a job that go on machine after machine. */
export class Filling {
  private readonly machines: MachineState[] = [];
  private readonly tasks: number[] = [];
  private benchmark = Infinity;

  /** `left`: tasks that have no place yet. */
  constructor(public left: number) {}

  /** As many as are left, `most` at most, go on the machine. */
  put(state: MachineState, most: number): void {
    const tasks = Math.min(this.left, most);
    if (tasks === 0) return;
    this.machines.push(state);
    this.tasks.push(tasks);
    this.benchmark = Math.min(this.benchmark, state.machine.benchmark);
    this.left -= tasks;
  }

  /** Null while tasks are left. */
  get placement(): Placement | null {
    if (this.left > 0) return null;
    return { machines: this.machines, tasks: this.tasks, benchmark: this.benchmark, allocations: null };
  }
}

/** The placement of the class on the eligible machines of a site, null when there is no room for all tasks. */
export const placeNow = (
  requirement: Requirement,
  eligible: EligibleMachines,
  free: Free,
  devices: DeviceHolds | null = null,
): Placement | null =>
  eligible.shared
    ? placeShared(requirement, eligible, free, devices)
    : place(requirement, eligible, free.room, null, devices);

/**
 * On time-shared machines (Santoso et al., section 2: the one with the largest capacity first; exact rules: hierarchical-clusters.md):
 * tasks on different machines, those without room left out. A machine's capacity is what one more task would get of it. Machines of
 * equal power are taken from the first of the largest capacity on, in order and round, as Table 2 was found to come out; others by
 * capacity. Jobs that ask for devices, or for machines that are alike, go by the rule of choice.ts here, too; and so do all where other
 * machines are shared in space.
 */
function placeShared(
  requirement: Requirement,
  eligible: EligibleMachines,
  free: Free,
  devices: DeviceHolds | null,
): Placement | null {
  const { spread, parts } = requirement;
  const { machines } = eligible;
  if (parts !== null) return placeParts(parts, eligible, free.room, null, devices);
  const mixed = someInSpace(machines);
  // One task is on each.
  if (!mixed && (spread?.tasksPerMachine.min ?? 1) > 1) return null;
  if (
    mixed ||
    requirement.devices !== null ||
    (devices !== null && requirement.further !== null) ||
    (spread !== null && spread.allAlike.length > 0)
  )
    return placeSharedPart(requirement, spread ?? ANY_SPREAD, machines, free.room, devices);
  const capacity = machines.map((state) => powerOf(state) / (1 + (free.tasks[state.position] as number)));
  let most = 0;
  for (let i = 1; i < machines.length; i++)
    if ((capacity[i] as number) > (capacity[most] as number)) most = i;
  const order = machines.map((_, i) => (most + i) % machines.length);
  const alike = machines.every((state) => powerOf(state) === powerOf(machines[0] as MachineState));
  if (!alike) order.sort((a, b) => (capacity[b] as number) - (capacity[a] as number) || a - b);
  const filling = new Filling(requirement.tasks);
  for (let i = 0; i < machines.length && filling.left > 0; i++) {
    const state = machines[order[i] as number] as MachineState;
    filling.put(state, Math.min(1, tasksOn(requirement, state, free.room)));
  }
  return filling.placement;
}

/** Some of them are not shared in time. */
export const someInSpace = (machines: readonly MachineState[]): boolean =>
  machines.some(({ shared }) => !shared);

const powerOf = ({ machine }: MachineState): number => machine.cpus * machine.benchmark;

/** What a job of the class takes in a placement. */
export const holdOf = (
  each: Requirement,
  { machines, tasks }: Placement,
  licenses: readonly PoolCopies[],
): Hold => ({ machines, tasks, each, licenses });

/** The copies of each kind, of its pools in turn what is free of them; null when there are too few of one. */
export function pickPools(
  { pools }: EligibleMachines,
  free: (pool: PoolState) => number,
): PoolCopies[] | null {
  if (pools.length === 0) return NO_POOLS;
  const picked: PoolCopies[] = [];
  for (const { of, copies: asked } of pools) {
    let left = asked;
    for (let i = 0; i < of.length && left > 0; i++) {
      const pool = of[i] as PoolState;
      const copies = Math.min(left, free(pool));
      if (copies < 1) continue;
      picked.push({ pool, copies });
      left -= copies;
    }
    if (left > 0) return null;
  }
  return picked;
}

/** Shared by all that need no license: never written to. */
export const NO_POOLS: PoolCopies[] = [];

/** As a plan shows it. */
export function allocationsOf(placement: Placement): Allocation[] {
  placement.allocations ??= shown(placement);
  return placement.allocations;
}

const shown = ({ machines, tasks }: Placement): Allocation[] =>
  machines.map(({ machine: { id: machineId } }, i) => ({ machineId, tasks: tasks[i] as number }));

const NONE_TAKEN: readonly PoolAmount[] = [];

/** As a plan shows them. */
export const amountsOf = (pools: readonly PoolCopies[]): readonly PoolAmount[] =>
  pools.length === 0
    ? NONE_TAKEN
    : pools.map(({ pool, copies }) => ({ id: pool.license.id, amount: copies }));
