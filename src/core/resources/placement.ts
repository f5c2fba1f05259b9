/**
 * Where the tasks of a job go: machines in order of power, ties by id (two-level.md: "a job goes on the first eligible
 * machine of the highest power"). One task goes on the first with room; several fill machine after machine. Time-shared
 * machines are dealt out evenly instead.
 */
import type { Allocation } from '../model.js';
import type { Requirement } from './requirements.js';
import { type Able, type MachineState, tasksIn } from './site-resources.js';

export interface Placement {
  machines: MachineState[];
  /** Aligned with `machines`. */
  tasks: number[];
  /** Power of the slowest of them: the job ends when its last task does. */
  benchmark: number;
  /** As a plan shows it; null: nobody has asked (see `allocationsOf`). */
  allocations: Allocation[] | null;
}

/** Of which room to speak. */
export const Room = {
  /** Free now. */
  NOW: 0,
  /** Free at the instant that the timeline has come to. */
  FUTURE: 1,
  /** Free now, and left by the reservation at its instant: what can be held for any length of time. */
  BESIDE: 2,
  /** Free at the instant of the timeline, and left by the reservation at its own. */
  FUTURE_BESIDE: 3,
} as const;
export type Room = (typeof Room)[keyof typeof Room];

/** How many tasks of the class the machine has room for. */
export function roomFor(requirement: Requirement, state: MachineState, room: Room): number {
  const free =
    room === Room.NOW || room === Room.BESIDE
      ? tasksIn(requirement, state.freeCpus, state.freeMemoryMb)
      : tasksIn(requirement, state.futureCpus, state.futureMemoryMb);
  if (free === 0 || room === Room.NOW || room === Room.FUTURE) return free;
  return Math.min(free, tasksIn(requirement, state.leftCpus, state.leftMemoryMb));
}

/** The placement of the class on `machines` (in order of placement), null when there is no room for all tasks. */
export function place(
  requirement: Requirement,
  machines: readonly MachineState[],
  room: Room,
): Placement | null {
  if (requirement.tasks === 1) {
    for (let i = 0; i < machines.length; i++) {
      const state = machines[i] as MachineState;
      if (roomFor(requirement, state, room) > 0) return onOne(state);
    }
    return null;
  }
  const placement: Placement = { machines: [], tasks: [], benchmark: Infinity, allocations: null };
  let left = requirement.tasks;
  for (let i = 0; i < machines.length && left > 0; i++) {
    const state = machines[i] as MachineState;
    const tasks = Math.min(left, roomFor(requirement, state, room));
    if (tasks === 0) continue;
    placement.machines.push(state);
    placement.tasks.push(tasks);
    placement.benchmark = Math.min(placement.benchmark, state.machine.benchmark);
    left -= tasks;
  }
  return left === 0 ? placement : null;
}

/** The placement of the class on the able machines of a site now, null when there is no room for all tasks. */
export const placeNow = (requirement: Requirement, able: Able): Placement | null =>
  able.shared ? placeShared(requirement, able.machines) : place(requirement, able.machines, Room.NOW);

/**
 * On time-shared machines (hierarchical-clusters.md): tasks on different machines, from the one with the fewest tasks (the
 * first of equals) on, in order and round, those without room left out.
 */
function placeShared(requirement: Requirement, machines: readonly MachineState[]): Placement | null {
  let least = 0;
  for (let i = 1; i < machines.length; i++) {
    if ((machines[i] as MachineState).runs < (machines[least] as MachineState).runs) least = i;
  }
  const placement: Placement = { machines: [], tasks: [], benchmark: Infinity, allocations: null };
  for (let i = 0; i < machines.length && placement.machines.length < requirement.tasks; i++) {
    const state = machines[(least + i) % machines.length] as MachineState;
    if (roomFor(requirement, state, Room.NOW) === 0) continue;
    placement.machines.push(state);
    placement.tasks.push(1);
    placement.benchmark = Math.min(placement.benchmark, state.machine.benchmark);
  }
  return placement.machines.length === requirement.tasks ? placement : null;
}

/** The placement of a one-task job on a machine: made once, for most jobs are such. */
export function onOne(state: MachineState): Placement {
  state.alone ??= { machines: [state], tasks: [1], benchmark: state.machine.benchmark, allocations: null };
  return state.alone;
}

/** What a job of the class takes of each of the machines. */
export const cpusIn = ({ tasks }: Placement, { cpusPerTask, oneTask, tasks: all }: Requirement) =>
  all === 1 ? oneTask.cpus : tasks.map((count) => count * cpusPerTask);
export const memoryMbIn = ({ tasks }: Placement, { memoryMbPerTask, oneTask, tasks: all }: Requirement) =>
  all === 1 ? oneTask.memoryMb : tasks.map((count) => count * memoryMbPerTask);

/** As a plan shows it. */
export function allocationsOf(placement: Placement): Allocation[] {
  const { machines, tasks } = placement;
  placement.allocations ??= machines.map(({ machine: { id: machineId } }, i) => ({
    machineId,
    tasks: tasks[i] as number,
  }));
  return placement.allocations;
}
