/**
 * Which processors a job sits on. The core counts CPUs of a machine; results want numbers, as Batsim writes them. The CPUs
 * of all machines are numbered through, by site and machine id, and a run gets the lowest free ones of its machines, and
 * all of a time-shared one.
 */
import type { Run } from '../core/index.js';
import type { World } from './engine.js';

/** First and last number. */
export type Interval = [first: number, last: number];

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
  take(run: Run, cpusPerTask: number): Interval[][] {
    return run.allocations.map(({ machineId, tasks }) => {
      const all = this.shared.get(machineId);
      if (all !== undefined) return [all];
      const free = this.freeOn(machineId);
      const taken: Interval[] = [];
      for (let missing = tasks * cpusPerTask; missing > 0; ) {
        const first = free[0];
        if (first === undefined)
          throw new Error(`machine ${machineId} has no processor left for job ${run.jobId}`);
        const count = Math.min(missing, first[1] - first[0] + 1);
        taken.push([first[0], first[0] + count - 1]);
        first[0] += count;
        missing -= count;
        if (first[0] > first[1]) free.shift();
      }
      return taken;
    });
  }

  /** Takes back what `take` gave. */
  give(run: Run, taken: readonly Interval[][]): void {
    run.allocations.forEach(({ machineId }, i) => {
      if (this.shared.has(machineId)) return;
      const merged = [...this.freeOn(machineId), ...(taken[i] as Interval[])].sort((a, b) => a[0] - b[0]);
      this.free.set(machineId, join(merged));
    });
  }

  private freeOn(machineId: number): Interval[] {
    const free = this.free.get(machineId);
    if (free === undefined) throw new Error(`machine ${machineId} was not there at the beginning`);
    return free;
  }
}

/** Ascending intervals with adjacent ones made one. */
export function join(intervals: readonly Interval[]): Interval[] {
  const joined: Interval[] = [];
  for (const [first, last] of intervals) {
    const before = joined[joined.length - 1];
    if (before !== undefined && before[1] + 1 === first) before[1] = last;
    else joined.push([first, last]);
  }
  return joined;
}

/** As Batsim writes a set of processors: `1-2 5 10-50`. */
export function intervalSet(taken: readonly Interval[][]): string {
  return join([...taken.flat()].sort((a, b) => a[0] - b[0]))
    .map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`))
    .join(' ');
}
