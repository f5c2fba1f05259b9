/**
 * Runs that are stopped for maintenance windows and reservations that preempt: chosen in a simulation by the rule by which the service's
 * sweep chooses them (store/upkeep.ts). The sweep looks every few seconds; here each look comes when something may have become due.
 */
import {
  type Grid,
  type Held,
  type Job,
  namedAmounts,
  type Policy,
  type PoolState,
  type RunState,
} from '../core/index.js';
import { type HoldInTheWay, type KeptRun, type StoppedRun, stoppedFor, stopsAhead } from '../store/upkeep.js';

/** A time of a hold that preempts. */
interface Time {
  readonly holdId: number;
  readonly held: Held;
}

/** What is to be done now, and when to look again; Infinity: not before something changes. */
interface Look {
  readonly stopped: readonly StoppedRun[];
  readonly again: number;
}

export class HoldStops {
  /** By site, those that are known and not over, by id. */
  private readonly bySite = new Map<number, Map<number, Time>>();

  constructor(
    private readonly grid: Grid,
    private readonly policy: Policy,
  ) {}

  /** Times become known, or are over. Answers whether there is one of a hold that preempts at the site, or has been until now. */
  change(siteId: number, known: readonly Time[], over: readonly number[]): boolean {
    const times = this.bySite.get(siteId) ?? new Map<number, Time>();
    for (const time of known) times.set(time.held.id, time);
    const isConcerned = times.size > 0;
    for (const id of over) times.delete(id);
    if (times.size === 0) this.bySite.delete(siteId);
    else this.bySite.set(siteId, times);
    return isConcerned;
  }

  /** Whether a hold that preempts is known at the site. */
  concerns(siteId: number): boolean {
    return this.bySite.has(siteId);
  }

  look(siteId: number, now: number): Look {
    const holds = this.holdsAt(siteId);
    if (holds.length === 0) return { stopped: [], again: Infinity };
    const { resources, inside } = this.grid.siteEntry(siteId);
    const { kinds } = this.grid;
    const pools = this.poolsOf(holds);
    const here = [resources, ...inside.map((part) => part.resources)].flatMap((at) => at.runs);
    const others = pools.flatMap(({ holders }) => holders.filter(({ run }) => run.siteId !== siteId));
    const runs = [...here, ...new Set(others)].map((run) => this.kept(run, siteId));
    const machines = resources.machines.map(({ machine: { id, available }, offered }) => ({
      ...{ id, name: String(id), available, has: kinds.named(offered) },
    }));
    const known = pools.map(({ license: { id, kind, copies, siteId: at } }) => ({
      ...{ id, kind, copies, shared: at === null },
    }));
    const stopped = stoppedFor(holds, { policy: this.policy, machines, pools: known, runs }, now);
    let again = Infinity;
    for (const { times } of holds)
      for (const run of runs) {
        const at = stopsAhead(run, (times[0] as Held).from);
        if (!run.stopping && !run.elsewhere && at > now) again = Math.min(again, at);
      }
    return { stopped, again };
  }

  /** Those of which something is held. */
  private poolsOf(holds: readonly HoldInTheWay[]): PoolState[] {
    const ids = new Set(holds.flatMap(({ pools }) => pools.map(({ id }) => id)));
    return [...ids].sort((a, b) => a - b).flatMap((id) => this.grid.pool(id) ?? []);
  }

  private holdsAt(siteId: number): HoldInTheWay[] {
    const byHold = new Map<number, Held[]>();
    for (const { holdId, held } of this.bySite.get(siteId)?.values() ?? [])
      byHold.set(holdId, [...(byHold.get(holdId) ?? []), held]);
    return [...byHold]
      .sort(([a], [b]) => a - b)
      .map(([id, helds]) => {
        const times = helds.sort((a, b) => a.from - b.from || a.id - b.id);
        const { by, machines, pools, siteId: whole = null } = times[0] as Held;
        return {
          ...{ id, kind: by === 'WINDOW' ? 'MAINTENANCE' : 'USER', onConflict: 'PREEMPT', times },
          machines: whole === null ? machines : null,
          // Whoever compares goes by ids.
          pools: pools.map((pool) => ({ ...pool, kind: '' })),
        };
      });
  }

  private kept(run: RunState, siteId: number): KeptRun {
    const { jobId, machines, tasks, run: live } = run;
    const job = this.grid.job(jobId) as Job;
    const { reservationId, restartable, preemptionClass, killGraceS } = job;
    const limit = this.grid.limitOf(jobId);
    return {
      ...{ jobId, epoch: live.epoch, since: live.start, checkpointAt: live.checkpointAt ?? null },
      machineIds: machines.map(({ machine }) => machine.id),
      machineTasks: tasks,
      amounts: {},
      alone: false,
      taken: namedAmounts(run, this.grid.kinds),
      until: limit === Infinity ? null : live.start + limit,
      pools: live.pools,
      ...{ reservationId, restartable, class: job.class, preemptionClass },
      killGraceS,
      stopping: live.stopsAt !== undefined,
      elsewhere: live.siteId !== siteId,
    };
  }
}
