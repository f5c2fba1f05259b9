/**
 * Where the tasks of a job go: machines in order of power, ties by id (two-level.md: "a job goes on the first eligible
 * machine of the highest power"). One task goes on the first with room; several fill machine after machine. Time-shared
 * machines are dealt out evenly instead.
 */
import { fitsIn, type Room, timesIn } from '../grid/amounts.js';
import type { Requirement } from '../grid/requirements.js';
import {
  askedOn,
  type EligibleMachines,
  type Free,
  type Hold,
  type LicenseState,
  type MachineState,
  type Placement,
} from '../grid/site-resources.js';
import type { Allocation } from '../model.js';

/** How many tasks of the class fit on a machine that is shared in space in `room`, and beside that in `beside`. */
function tasksOn({ task }: Requirement, { offset }: MachineState, room: Room, beside: Room | null): number {
  const tasks = timesIn(task, room, offset);
  if (tasks === 0 || beside === null) return tasks;
  return Math.min(tasks, timesIn(task, beside, offset));
}

/** Whether one task of the class does. */
export const oneFits = (
  { task }: Requirement,
  { offset }: MachineState,
  room: Room,
  beside: Room | null,
): boolean => fitsIn(task, 1, room, offset) && (beside === null || fitsIn(task, 1, beside, offset));

/** The placement of the class on `machines` (in order of placement), null when there is no room for all tasks. */
export function place(
  requirement: Requirement,
  machines: readonly MachineState[],
  room: Room,
  beside: Room | null = null,
): Placement | null {
  if (requirement.tasks === 1) {
    for (let i = 0; i < machines.length; i++) {
      const state = machines[i] as MachineState;
      if (oneFits(requirement, state, room, beside)) return state.alone;
    }
    return null;
  }
  const filling = new Filling(requirement.tasks);
  for (let i = 0; i < machines.length && filling.left > 0; i++) {
    const state = machines[i] as MachineState;
    filling.put(state, tasksOn(requirement, state, room, beside));
  }
  return filling.placement;
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
): Placement | null =>
  eligible.shared
    ? placeShared(requirement, eligible.machines, free)
    : place(requirement, eligible.machines, free.room);

/**
 * On time-shared machines (Santoso et al., section 2: the one with the largest capacity first; exact rules: hierarchical-clusters.md):
 * tasks on different machines, those without room left out. A machine's capacity is what one more task would get of it. Machines of
 * equal power are taken from the first of the largest capacity on, in order and round, as Table 2 was found to come out; others by
 * capacity.
 */
function placeShared(
  requirement: Requirement,
  machines: readonly MachineState[],
  free: Free,
): Placement | null {
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
    filling.put(state, Math.min(1, timesIn(askedOn(requirement, state), free.room, state.offset)));
  }
  return filling.placement;
}

const powerOf = ({ machine }: MachineState): number => machine.cpus * machine.benchmark;

/** What a job of the class takes in a placement. */
export const holdOf = (
  each: Requirement,
  { machines, tasks }: Placement,
  licenses: readonly LicenseState[],
): Hold => ({ machines, tasks, each, licenses });

/** The first pool that passes the test for each kind, null when there is none for one. */
export function pickPools(
  { pools }: EligibleMachines,
  test: (pool: LicenseState) => boolean,
): LicenseState[] | null {
  if (pools.length === 0) return NO_POOLS;
  const picked: LicenseState[] = [];
  for (const kind of pools) {
    const pool = kind.find(test);
    if (pool === undefined) return null;
    picked.push(pool);
  }
  return picked;
}

/** Shared by all that need no license: never written to. */
export const NO_POOLS: LicenseState[] = [];

/** As a plan shows it. */
export function allocationsOf(placement: Placement): Allocation[] {
  placement.allocations ??= shown(placement);
  return placement.allocations;
}

const shown = ({ machines, tasks }: Placement): Allocation[] =>
  machines.map(({ machine: { id: machineId } }, i) => ({ machineId, tasks: tasks[i] as number }));

const NO_IDS: number[] = [];

export const idsOf = (pools: readonly LicenseState[]): number[] =>
  pools.length === 0 ? NO_IDS : pools.map(({ license }) => license.id);
