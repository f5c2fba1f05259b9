/**
 * Which processors a job sits on. The core counts CPUs of a machine; results want numbers, as Batsim writes them. The CPUs
 * of all machines are numbered through, by site and machine id, and a run gets the lowest free ones of its machines, and
 * all of a time-shared one.
 */
import type { Run } from '../core/index.js';
import type { World } from './engine.js';

/** First and last number. */
export type Interval = [first: number, last: number];

/** Of a run: the processors of each of its allocations, ascending, no two intervals adjacent. */
export type Taken = readonly (readonly Interval[])[];

export class Processors {
  /** By machine: its free ones, ascending, no two adjacent. */
  private readonly free = new Map<number, Interval[]>();
  /** By machine that is shared in time: all of them, which no run takes away. */
  private readonly shared = new Map<number, Interval>();

  constructor(world: World) {
    let next = 0;
    for (const { id, cpus, maxTasks } of [...world.machines].sort(
      (a, b) => a.siteId - b.siteId || a.id - b.id,
    )) {
      if (maxTasks) this.shared.set(id, [next, next + cpus - 1]);
      else this.free.set(id, [[next, next + cpus - 1]]);
      next += cpus;
    }
  }

  /** The processors of a starting run, for each of its allocations. */
  take(run: Run, cpusPerTask: number): Taken {
    return run.allocations.map(({ machineId, tasks }) => {
      const all = this.shared.get(machineId);
      if (all !== undefined) return [all];
      const free = this.freeOn(machineId);
      const taken: Interval[] = [];
      let used = 0;
      for (let missing = tasks * cpusPerTask; missing > 0; ) {
        const first = free[used];
        if (first === undefined)
          throw new Error(`machine ${machineId} has no processor left for job ${run.jobId}`);
        const count = Math.min(missing, first[1] - first[0] + 1);
        taken.push([first[0], first[0] + count - 1]);
        first[0] += count;
        missing -= count;
        if (first[0] > first[1]) used++;
      }
      if (used > 0) free.splice(0, used);
      return taken;
    });
  }

  /** Takes back what `take` gave. */
  give(run: Run, taken: Taken): void {
    for (let i = 0; i < taken.length; i++) {
      const { machineId } = run.allocations[i] as Run['allocations'][number];
      if (this.shared.has(machineId)) continue;
      const free = this.freeOn(machineId);
      const intervals = taken[i] as readonly Interval[];
      for (let at = 0, j = 0; j < intervals.length; j++) at = insert(free, intervals[j] as Interval, at);
    }
  }

  private freeOn(machineId: number): Interval[] {
    const free = this.free.get(machineId);
    if (free === undefined) throw new Error(`machine ${machineId} was not there at the beginning`);
    return free;
  }
}

/** Inserts an interval into ascending ones, from a position on, and joins it with adjacent ones. Returns where it is. */
function insert(intervals: Interval[], [first, last]: Interval, from: number): number {
  let at = from;
  while (at < intervals.length && (intervals[at] as Interval)[1] < first) at++;
  const before = intervals[at - 1];
  const after = intervals[at];
  const joinsAfter = after !== undefined && last + 1 === after[0];
  if (before !== undefined && before[1] + 1 === first) {
    before[1] = joinsAfter ? after[1] : last;
    if (joinsAfter) intervals.splice(at, 1);
    return at - 1;
  }
  if (joinsAfter) after[0] = first;
  else intervals.splice(at, 0, [first, last]);
  return at;
}

/** All processors of a run, ascending, no two intervals adjacent. */
export function joined(taken: Taken): readonly Interval[] {
  const [only, other] = taken;
  if (only !== undefined && other === undefined) return only;
  const all: Interval[] = [];
  let at = 0;
  for (const interval of taken.flat().sort((a, b) => a[0] - b[0])) at = insert(all, interval, at);
  return all;
}
