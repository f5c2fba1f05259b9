/**
 * What comes free at a site if its runs end as planned, walked from one end to the next: the profile of those who look for the start of
 * one job only. Nothing that is not running yet is in it, so nothing has to be built: where one question is put in a cycle, as under
 * EASY, that costs a hundredth of making a `Profile` (`npm run bench -- --only profile-walk`). Overdue runs count as ending now.
 */
import type { Requirement } from '../grid/requirements.js';
import type {
  EligibleMachines,
  Hold,
  LicenseState,
  MachineState,
  RunState,
  SiteResources,
} from '../grid/site-resources.js';
import type { FreeResources } from './free.js';
import type { FreeCapacity } from './placement.js';

/** Room that is promised for a while. */
export interface Booking {
  at: number;
  end: number;
  hold: Pick<Hold, 'machines' | 'cpus' | 'memoryMb'>;
}

const NO_RUNS: readonly RunState[] = [];
const NO_INSTANTS: readonly number[] = [];

export class Timeline implements FreeCapacity {
  /** The instant it has come to, and what is free then, by position of the machine. */
  at = -Infinity;
  readonly cpus: number[];
  readonly memoryMb: number[];
  private copies: Map<LicenseState, number> | null = null;
  /** Runs that end in the last step begin there. */
  private stepRun = 0;
  private nextRun = 0;
  private nextOther = 0;
  private nextInstant = 0;
  private readonly runs: readonly RunState[];

  /**
   * `others`: runs in mind, and of other sites that hold licenses in question, by planned end. `instants`: further times,
   * ascending, at which the walk is to stop.
   */
  constructor(
    site: SiteResources,
    free: FreeResources,
    eligible: EligibleMachines,
    private readonly now: number,
    private readonly others: readonly RunState[] = NO_RUNS,
    private readonly instants: readonly number[] = NO_INSTANTS,
    private readonly booking: Booking | null = null,
  ) {
    this.cpus = free.cpus.slice();
    this.memoryMb = free.memoryMb.slice();
    this.runs = site.runs;
    for (const kind of eligible.pools) {
      this.copies ??= new Map();
      for (const pool of kind) this.copies.set(pool, free.copies.free(pool));
    }
  }

  /** Free copies of a pool that is in question. */
  copiesOf(pool: LicenseState): number {
    return this.copies?.get(pool) ?? 0;
  }

  /** Goes to the next instant, first to now. False when nothing more will happen. */
  advance(): boolean {
    const next = this.at === -Infinity ? this.now : this.nextTime();
    if (next === Infinity) return false;
    this.applyBooking(this.at, next);
    this.at = next;
    this.stepRun = this.nextRun;
    const { runs, others } = this;
    while (this.nextRun < runs.length && (runs[this.nextRun] as RunState).end <= next)
      this.giveBack(runs[this.nextRun++] as RunState);
    while (this.nextOther < others.length && (others[this.nextOther] as RunState).end <= next)
      this.giveBack(others[this.nextOther++] as RunState);
    while ((this.instants[this.nextInstant] ?? Infinity) <= next) this.nextInstant++;
    return true;
  }

  /** Whether the last step gave some machine room for a task of the class; it need not be an eligible one. */
  madeRoomFor({ cpusPerTask, memoryMbPerTask }: Requirement): boolean {
    if (this.others.length > 0) return true;
    for (let r = this.stepRun; r < this.nextRun; r++) {
      const { machines } = this.runs[r] as RunState;
      for (let i = 0; i < machines.length; i++) {
        const { position } = machines[i] as MachineState;
        if (
          (this.cpus[position] as number) >= cpusPerTask &&
          (this.memoryMb[position] as number) >= memoryMbPerTask
        )
          return true;
      }
    }
    return false;
  }

  private giveBack(run: RunState): void {
    this.shift(run, 1);
    const { copies } = this;
    if (copies === null) return;
    for (const pool of run.licenses) {
      const free = copies.get(pool);
      if (free !== undefined) copies.set(pool, free + 1);
    }
  }

  /** A booking takes its room when the walk passes its beginning, and gives it back at its end. */
  private applyBooking(from: number, to: number): void {
    const { booking } = this;
    if (booking === null) return;
    if (from < booking.at && booking.at <= to) this.shift(booking.hold, -1);
    if (from < booking.end && booking.end <= to) this.shift(booking.hold, 1);
  }

  private shift({ machines, cpus, memoryMb }: Booking['hold'], sign: 1 | -1): void {
    for (let i = 0; i < machines.length; i++) {
      const { position } = machines[i] as MachineState;
      this.cpus[position] = (this.cpus[position] as number) + sign * (cpus[i] as number);
      this.memoryMb[position] = (this.memoryMb[position] as number) + sign * (memoryMb[i] as number);
    }
  }

  private nextTime(): number {
    const { booking, at, runs, nextRun } = this;
    const end = nextRun < runs.length ? (runs[nextRun] as RunState).end : Infinity;
    if (booking === null && this.others.length === 0 && this.instants.length === 0) return end;
    const change =
      booking === null || booking.end <= at ? Infinity : booking.at > at ? booking.at : booking.end;
    return Math.min(
      end,
      change,
      this.others[this.nextOther]?.end ?? Infinity,
      this.instants[this.nextInstant] ?? Infinity,
    );
  }
}
