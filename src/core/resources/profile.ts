/**
 * The availability profile of a site with promises in it: what is free on each machine and in each pool at every later
 * instant, if runs end when they are planned to and promised jobs run as promised. (`Timeline` walks the simpler profile
 * of the runs alone, which only grows.)
 *
 * It is a table: a row for each instant at which something changes, a column for each machine's CPUs, its memory, and each
 * pool's copies; a row holds until the next, the last for ever. With R rows, C columns and k machines and pools taken:
 *
 *   build     R·C, the runs being in order of their ends
 *   take      log R + two rows moved in + k for each row in between
 *   give      the same, and rows that no longer differ go out
 *   earliest  for each able machine at most one pass over the rows for jobs of one task; R·rows·machines for several
 *
 * so R stays below 2 + runs + twice the promises.
 */
import { cpusIn, memoryMbIn, onOne, type Placement } from './placement.js';
import type { Requirement } from './requirements.js';
import {
  type Able,
  freeCopies,
  type LicenseState,
  type MachineState,
  type RunState,
  tasksIn,
} from './site-resources.js';

/** What a run or a promise takes of machines and pools. */
export type Holding = Pick<RunState, 'machines' | 'cpus' | 'memoryMb' | 'licenses'>;

/** What a job of the class takes in a placement. */
export const holdingOf = (
  requirement: Requirement,
  placement: Placement,
  licenses: LicenseState[],
): Holding => ({
  machines: placement.machines,
  cpus: cpusIn(placement, requirement),
  memoryMb: memoryMbIn(placement, requirement),
  licenses,
});

export interface Opening {
  at: number;
  /** When the job ends by its estimate if it starts then. */
  end: number;
  placement: Placement;
  pools: LicenseState[];
}

export class Profile {
  private rows = 0;
  private times = new Float64Array(64);
  private cells: Float64Array;
  private readonly width: number;
  private readonly columnOf = new Map<MachineState | LicenseState, number>();

  /** `runs`: live runs that hold any of it, by planned end. Overdue ones count as ending now. */
  constructor(
    machines: readonly MachineState[],
    pools: readonly LicenseState[],
    runs: readonly RunState[],
    readonly now: number,
  ) {
    this.width = 2 * machines.length + pools.length;
    this.cells = new Float64Array(64 * this.width);
    machines.forEach((state, i) => {
      this.columnOf.set(state, 2 * i);
      this.cells[2 * i] = state.freeCpus;
      this.cells[2 * i + 1] = state.freeMemoryMb;
    });
    pools.forEach((pool, i) => {
      const column = 2 * machines.length + i;
      this.columnOf.set(pool, column);
      this.cells[column] = freeCopies(pool);
    });
    this.times[0] = now;
    this.rows = 1;
    for (const run of runs) {
      if (run.end > (this.times[this.rows - 1] as number)) this.insertRow(this.rows, run.end);
      this.shift(this.rows - 1, run, 1);
    }
  }

  /** Takes room from `at` until `end`. */
  take(holding: Holding, at: number, end: number): void {
    const from = this.rowAt(at);
    const to = this.rowAt(end);
    for (let row = from; row < to; row++) this.shift(row, holding, -1);
  }

  /** Gives back what `take` with the same arguments took. */
  give(holding: Holding, at: number, end: number): void {
    const from = this.rowAt(at);
    const to = this.rowAt(end);
    for (let row = from; row < to; row++) this.shift(row, holding, 1);
    this.dropIfSame(to);
    this.dropIfSame(from);
  }

  /** The earliest instant, from `from` on, from which the room is there for so long; null: none. */
  earliestFor(holding: Holding, from: number, length: number): number | null {
    let at = from;
    for (let row = this.lastRowUpTo(from); ; at = this.times[row] as number) {
      const lacking = this.holdingLacking(holding, row, at + length);
      if (lacking === -1) return at;
      row = lacking + 1;
      if (row >= this.rows) return null;
    }
  }

  /** As `earliest`, now or never. */
  openingNow(requirement: Requirement, able: Able, work: number): Opening | null {
    const found = this.openingAt(0, requirement, able, work);
    return typeof found === 'number' ? null : found;
  }

  /**
   * The earliest instant, ahead of `before`, from which a job of `work` finds its room for as long as it takes. Null: none.
   * A job of one task goes on the first machine in order of placement that has the room then. Decision: one of several
   * tasks asks for its room as long as it would take on the slowest machine that is able, for which it gets is not known.
   */
  earliest(requirement: Requirement, able: Able, work: number, before = Infinity): Opening | null {
    for (let row = 0; row < this.rows && (this.times[row] as number) < before; ) {
      const found = this.openingAt(row, requirement, able, work);
      if (typeof found !== 'number') return found;
      row = found;
    }
    return null;
  }

  private openingAt(row: number, requirement: Requirement, able: Able, work: number): Opening | number {
    return requirement.tasks === 1
      ? this.oneAt(row, requirement, able, work)
      : this.manyAt(row, requirement, able, work);
  }

  /** An opening at the row, or the next row at which it is worth looking. */
  private oneAt(row: number, requirement: Requirement, able: Able, work: number): Opening | number {
    const at = this.times[row] as number;
    const { cpusPerTask, memoryMbPerTask } = requirement;
    let next = this.rows;
    for (const state of able.machines) {
      const end = at + work / state.machine.benchmark;
      const lacking = this.lacking(this.column(state), cpusPerTask, memoryMbPerTask, row, end);
      if (lacking !== -1) {
        if (lacking + 1 < next) next = lacking + 1;
        continue;
      }
      const pools = this.poolsAt(able, row, end);
      if (pools !== null) {
        return { at, end, placement: onOne(state), pools };
      }
      next = row + 1;
    }
    return next;
  }

  private manyAt(row: number, requirement: Requirement, able: Able, work: number): Opening | number {
    const at = this.times[row] as number;
    const slowest = able.machines[able.machines.length - 1]?.machine.benchmark ?? 1;
    const until = at + work / slowest;
    const placement: Placement = { machines: [], tasks: [], benchmark: Infinity, allocations: null };
    let left = requirement.tasks;
    for (let i = 0; i < able.machines.length && left > 0; i++) {
      const state = able.machines[i] as MachineState;
      const tasks = Math.min(left, this.tasksOn(this.column(state), requirement, row, until));
      if (tasks === 0) continue;
      placement.machines.push(state);
      placement.tasks.push(tasks);
      placement.benchmark = Math.min(placement.benchmark, state.machine.benchmark);
      left -= tasks;
    }
    if (left > 0) return row + 1;
    const pools = this.poolsAt(able, row, until);
    return pools === null ? row + 1 : { at, end: at + work / placement.benchmark, placement, pools };
  }

  private tasksOn(column: number, requirement: Requirement, row: number, end: number): number {
    let tasks = Infinity;
    for (let r = row; r < this.rows && tasks > 0 && (r === row || (this.times[r] as number) < end); r++) {
      const cell = r * this.width + column;
      tasks = Math.min(
        tasks,
        tasksIn(requirement, this.cells[cell] as number, this.cells[cell + 1] as number),
      );
    }
    return tasks;
  }

  private poolsAt(able: Able, row: number, end: number): LicenseState[] | null {
    const picked: LicenseState[] = [];
    for (const pools of able.pools) {
      const pool = pools.find((one) => this.copyLacking(this.column(one), row, end) === -1);
      if (pool === undefined) return null;
      picked.push(pool);
    }
    return picked;
  }

  /** The first row before `end`, from `row` on, without the room on a machine; -1: all have it. */
  private lacking(column: number, cpus: number, memoryMb: number, row: number, end: number): number {
    const { cells, width, times, rows } = this;
    for (let r = row; r < rows && (r === row || (times[r] as number) < end); r++) {
      const cell = r * width + column;
      if ((cells[cell] as number) < cpus || (cells[cell + 1] as number) < memoryMb) return r;
    }
    return -1;
  }

  /** The same for everything that is held. */
  private holdingLacking({ machines, cpus, memoryMb, licenses }: Holding, row: number, end: number): number {
    for (let i = 0; i < machines.length; i++) {
      const column = this.column(machines[i] as MachineState);
      const lacking = this.lacking(column, cpus[i] as number, memoryMb[i] as number, row, end);
      if (lacking !== -1) return lacking;
    }
    for (const pool of licenses) {
      const lacking = this.copyLacking(this.column(pool), row, end);
      if (lacking !== -1) return lacking;
    }
    return -1;
  }

  private copyLacking(column: number, row: number, end: number): number {
    for (let r = row; r < this.rows && (r === row || (this.times[r] as number) < end); r++) {
      if ((this.cells[r * this.width + column] as number) < 1) return r;
    }
    return -1;
  }

  private shift(row: number, { machines, cpus, memoryMb, licenses }: Holding, sign: 1 | -1): void {
    const base = row * this.width;
    for (let i = 0; i < machines.length; i++) {
      const cell = base + this.column(machines[i] as MachineState);
      this.cells[cell] = (this.cells[cell] as number) + sign * (cpus[i] as number);
      this.cells[cell + 1] = (this.cells[cell + 1] as number) + sign * (memoryMb[i] as number);
    }
    for (const pool of licenses) {
      const column = this.columnOf.get(pool);
      if (column !== undefined) this.cells[base + column] = (this.cells[base + column] as number) + sign;
    }
  }

  private column(of: MachineState | LicenseState): number {
    return this.columnOf.get(of) as number;
  }

  /** The row that begins at the time, made if there is none; `rows` for Infinity. */
  private rowAt(time: number): number {
    if (time === Infinity) return this.rows;
    const row = this.lastRowUpTo(time);
    if (this.times[row] === time || time < (this.times[0] as number)) return row;
    this.insertRow(row + 1, time);
    return row + 1;
  }

  private lastRowUpTo(time: number): number {
    let low = 0;
    let high = this.rows;
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if ((this.times[middle] as number) <= time) low = middle;
      else high = middle;
    }
    return low;
  }

  /** A copy of the row before it, beginning at `time`. */
  private insertRow(row: number, time: number): void {
    if (this.rows === this.times.length) this.grow();
    const { times, cells, width } = this;
    times.copyWithin(row + 1, row, this.rows);
    cells.copyWithin((row + 1) * width, row * width, this.rows * width);
    cells.copyWithin(row * width, (row - 1) * width, row * width);
    times[row] = time;
    this.rows++;
  }

  private dropIfSame(row: number): void {
    if (row === 0 || row >= this.rows) return;
    const { times, cells, width } = this;
    const base = row * width;
    for (let i = 0; i < width; i++) if (cells[base + i] !== cells[base - width + i]) return;
    times.copyWithin(row, row + 1, this.rows);
    cells.copyWithin(base, base + width, this.rows * width);
    this.rows--;
  }

  private grow(): void {
    const times = new Float64Array(this.times.length * 2);
    times.set(this.times);
    this.times = times;
    const cells = new Float64Array(this.cells.length * 2);
    cells.set(this.cells);
    this.cells = cells;
  }
}
