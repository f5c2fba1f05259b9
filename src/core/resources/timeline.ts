/**
 * What comes free at a site if its runs end as planned, walked from one end to the next: the profile of those who look for the start of
 * one job only. Nothing that is not running yet is in it, so nothing has to be built: where one question is put in a cycle, as under
 * EASY, that costs a hundredth of making a `Profile` (`npm run bench -- --only profile-walk`). Overdue runs count as ending now.
 */
import { addTo, fitsIn, type Room } from '../grid/amounts.js';
import type { Requirement } from '../grid/requirements.js';
import type {
  EligibleMachines,
  LicenseState,
  MachineState,
  RunState,
  SiteResources,
} from '../grid/site-resources.js';
import type { FreeResources } from './free.js';

const NO_RUNS: readonly RunState[] = [];
const NO_INSTANTS: readonly number[] = [];

export class Timeline {
  /** The instant it has come to, and what is free then. */
  at = -Infinity;
  readonly room: Room;
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
  ) {
    this.room = free.room.slice();
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
  madeRoomFor({ task }: Requirement): boolean {
    if (this.others.length > 0) return true;
    for (let r = this.stepRun; r < this.nextRun; r++) {
      const { machines } = this.runs[r] as RunState;
      for (let i = 0; i < machines.length; i++) {
        if (fitsIn(task, 1, this.room, (machines[i] as MachineState).offset)) return true;
      }
    }
    return false;
  }

  private giveBack(run: RunState): void {
    const { machines, tasks, each } = run;
    for (let i = 0; i < machines.length; i++)
      addTo(each.task, tasks[i] as number, this.room, (machines[i] as MachineState).offset);
    const { copies } = this;
    if (copies === null) return;
    for (const pool of run.licenses) {
      const free = copies.get(pool);
      if (free !== undefined) copies.set(pool, free + 1);
    }
  }

  private nextTime(): number {
    const { runs, nextRun } = this;
    const end = nextRun < runs.length ? (runs[nextRun] as RunState).end : Infinity;
    if (this.others.length === 0 && this.instants.length === 0) return end;
    return Math.min(
      end,
      this.others[this.nextOther]?.end ?? Infinity,
      this.instants[this.nextInstant] ?? Infinity,
    );
  }
}
