/**
 * Where the tasks of a job go: machines in order of power, ties by id (two-level.md: "a job goes on the first eligible
 * machine of the highest power"). One task goes on the first with room; several fill machine after machine. Time-shared
 * machines are dealt out evenly instead.
 */
import type { Requirement } from '../grid/requirements.js';
import {
  type EligibleMachines,
  type FreeColumns,
  type Hold,
  type LicenseState,
  type MachineState,
  type Placement,
  tasksIn,
} from '../grid/site-resources.js';
import type { Allocation } from '../model.js';

/** Room on machines, by position. */
export type FreeCapacity = Pick<FreeColumns, 'cpus' | 'memoryMb'>;

/** How many tasks of the class fit on a machine in `room`, and beside that in `beside`. */
export function tasksOn(
  requirement: Requirement,
  { position }: MachineState,
  room: FreeCapacity,
  beside: FreeCapacity | null,
): number {
  const tasks = tasksIn(requirement, room.cpus[position] as number, room.memoryMb[position] as number);
  if (tasks === 0 || beside === null) return tasks;
  return Math.min(
    tasks,
    tasksIn(requirement, beside.cpus[position] as number, beside.memoryMb[position] as number),
  );
}

/** The placement of the class on `machines` (in order of placement), null when there is no room for all tasks. */
export function place(
  requirement: Requirement,
  machines: readonly MachineState[],
  room: FreeCapacity,
  beside: FreeCapacity | null = null,
): Placement | null {
  if (requirement.tasks === 1) {
    for (let i = 0; i < machines.length; i++) {
      const state = machines[i] as MachineState;
      if (tasksOn(requirement, state, room, beside) > 0) return state.alone;
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
  free: FreeColumns,
): Placement | null =>
  eligible.shared
    ? placeShared(requirement, eligible.machines, free)
    : place(requirement, eligible.machines, free);

/**
 * On time-shared machines (Santoso et al., section 2: the one with the largest capacity first; exact rules: hierarchical-clusters.md):
 * tasks on different machines, those without room left out. A machine's capacity is what one more task would get of it. Machines of
 * equal power are taken from the first of the largest capacity on, in order and round, as Table 2 was found to come out; others by
 * capacity.
 */
function placeShared(
  requirement: Requirement,
  machines: readonly MachineState[],
  free: FreeColumns,
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
    filling.put(state, Math.min(1, tasksOn(requirement, state, free, null)));
  }
  return filling.placement;
}

const powerOf = ({ machine }: MachineState): number => machine.cpus * machine.benchmark;

/** What a job of the class takes in a placement. */
export function holdOf(
  { tasks: all, oneTask, cpusPerTask, memoryMbPerTask }: Requirement,
  { machines, tasks }: Placement,
  licenses: readonly LicenseState[],
): Hold {
  return all === 1
    ? { machines, cpus: oneTask.cpus, memoryMb: oneTask.memoryMb, licenses }
    : {
        machines,
        cpus: tasks.map((count) => count * cpusPerTask),
        memoryMb: tasks.map((count) => count * memoryMbPerTask),
        licenses,
      };
}

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
const NO_POOLS: LicenseState[] = [];

/** As a plan shows it. */
export function allocationsOf(placement: Placement): Allocation[] {
  const { machines, tasks } = placement;
  placement.allocations ??= machines.map(({ machine: { id: machineId } }, i) => ({
    machineId,
    tasks: tasks[i] as number,
  }));
  return placement.allocations;
}

const NO_IDS: number[] = [];

export const idsOf = (pools: readonly LicenseState[]): number[] =>
  pools.length === 0 ? NO_IDS : pools.map(({ license }) => license.id);
