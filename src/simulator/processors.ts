/**
 * Which processors a job sits on. The core counts CPUs of a machine; results want numbers, as Batsim writes them. The CPUs
 * of all machines are numbered through, by site and machine id, and a run gets the lowest free ones of its machines, and
 * all of a time-shared one.
 */
import { cpusByAllocation, type Job, type Run } from '../core/index.js';
import type { World } from './engine.js';

/**
 * Intervals of processors, ascending, no two adjacent: the first and the last of each, one after the other. An array of numbers costs
 * much less than one of intervals, and there are millions.
 */
export type Intervals = readonly number[];

/** Of a run: the processors of each of its allocations. */
export type Taken = readonly Intervals[];

export class Processors {
  /** By machine: its free ones. */
  private readonly free = new Map<number, number[]>();
  /** By machine that is shared in time: all of them, which no run takes away. */
  private readonly shared = new Map<number, Intervals>();

  constructor(world: World) {
    let next = 0;
    for (const { id, cpus, maxTasks } of [...world.machines].sort(
      (a, b) => a.siteId - b.siteId || a.id - b.id,
    )) {
      const all = [next, next + cpus - 1];
      if (maxTasks) this.shared.set(id, all);
      else this.free.set(id, all);
      next += cpus;
    }
  }

  /** The processors of a starting run, for each of its allocations. */
  take({ jobId, allocations }: Run, job: Job): Taken {
    const cpus = job.parts === null ? null : cpusByAllocation(job.parts, allocations);
    return allocations.map(
      ({ machineId, tasks }, i) =>
        this.shared.get(machineId) ??
        this.lowest(machineId, cpus === null ? tasks * job.cpusPerTask : (cpus[i] as number), jobId),
    );
  }

  /** Takes back what `take` gave. */
  give({ allocations }: Run, taken: Taken): void {
    for (let i = 0; i < taken.length; i++) {
      const { machineId } = allocations[i] as Run['allocations'][number];
      if (!this.shared.has(machineId)) insertAll(this.freeOn(machineId), taken[i] as Intervals);
    }
  }

  private lowest(machineId: number, count: number, jobId: number): Intervals {
    const free = this.freeOn(machineId);
    let missing = count;
    // Most get one interval, and an array that is empty at first makes room for seventeen numbers.
    let taken: number[] | null = null;
    let used = 0;
    while (missing > 0) {
      if (used === free.length)
        throw new Error(`machine ${machineId} has no processor left for job ${jobId}`);
      const first = free[used] as number;
      const last = free[used + 1] as number;
      const end = Math.min(last, first + missing - 1);
      if (taken === null) taken = [first, end];
      else taken.push(first, end);
      missing -= end - first + 1;
      if (end === last) used += 2;
      else free[used] = end + 1;
    }
    if (used > 0) dropFirst(free, used);
    return taken ?? [];
  }

  private freeOn(machineId: number): number[] {
    const free = this.free.get(machineId);
    if (free === undefined) throw new Error(`machine ${machineId} was not there at the beginning`);
    return free;
  }
}

/** As `splice` does, which makes an array of what it removes. */
function dropFirst(numbers: number[], count: number): void {
  for (let i = count; i < numbers.length; i++) numbers[i - count] = numbers[i] as number;
  for (let i = 0; i < count; i++) numbers.pop();
}

/** Inserts ascending intervals into ascending ones, and joins adjacent ones. */
function insertAll(intervals: number[], more: Intervals): void {
  for (let at = 0, i = 0; i < more.length; i += 2)
    at = insert(intervals, more[i] as number, more[i + 1] as number, at);
}

/** Inserts one from a position on. Returns where it is. */
function insert(intervals: number[], first: number, last: number, from: number): number {
  const { length } = intervals;
  let at = from;
  while (at < length && (intervals[at + 1] as number) < first) at += 2;
  const joinsBefore = at > 0 && intervals[at - 1] === first - 1;
  const joinsAfter = at < length && intervals[at] === last + 1;
  if (joinsBefore && joinsAfter) intervals.splice(at - 1, 2);
  else if (joinsBefore) intervals[at - 1] = last;
  else if (joinsAfter) intervals[at] = first;
  else intervals.splice(at, 0, first, last);
  return joinsBefore ? at - 2 : at;
}

/** All processors of a run. */
export function joined(taken: Taken): Intervals {
  const [only, other] = taken;
  if (only !== undefined && other === undefined) return only;
  const all: number[] = [];
  for (const intervals of taken) insertAll(all, intervals);
  return all;
}
