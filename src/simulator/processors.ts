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
    run.allocations.forEach(({ machineId }, i) => {
      if (this.shared.has(machineId)) return;
      this.free.set(machineId, merged(this.freeOn(machineId), taken[i] as readonly Interval[]));
    });
  }

  private freeOn(machineId: number): Interval[] {
    const free = this.free.get(machineId);
    if (free === undefined) throw new Error(`machine ${machineId} was not there at the beginning`);
    return free;
  }
}

/** Two ascending lists as one, adjacent intervals made one. */
function merged(a: readonly Interval[], b: readonly Interval[]): Interval[] {
  const all: Interval[] = [];
  let last: Interval | null = null;
  for (let i = 0, j = 0; i < a.length || j < b.length; ) {
    const next: Interval =
      j === b.length || (i < a.length && (a[i] as Interval)[0] < (b[j] as Interval)[0])
        ? (a[i++] as Interval)
        : (b[j++] as Interval);
    if (last !== null && last[1] + 1 === next[0]) last[1] = next[1];
    else {
      last = [next[0], next[1]];
      all.push(last);
    }
  }
  return all;
}

/** Ascending intervals with adjacent ones made one. */
export const join = (intervals: readonly Interval[]): Interval[] => merged(intervals, []);

/** As Batsim writes a set of processors: `1-2 5 10-50`. */
export function intervalSet(taken: Taken): string {
  const [only] = taken;
  const all =
    taken.length === 1 && only !== undefined ? only : join(taken.flat().sort((a, b) => a[0] - b[0]));
  let text = '';
  for (let i = 0; i < all.length; i++) {
    const [first, last] = all[i] as Interval;
    text += `${i > 0 ? ' ' : ''}${first === last ? first : `${first}-${last}`}`;
  }
  return text;
}
