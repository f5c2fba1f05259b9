/** What time does when nobody reports it: silent machines, lost runs, deadlines, lost wake-ups, stranded jobs, old data. */
import { lateRuns, ROOT, type SiteEntry, schedulerOf, stranded, waiting } from '../core/index.js';
import type { Store } from '../store/store.js';
import type { Cycle, CycleTools } from './cycle.js';
import { countPreempted } from './preempted.js';
import { takeBack } from './returns.js';

export interface SweepSettings {
  /** A run that exceeds its limit by so much, because its agent did not stop it, is ended here. Seconds. */
  runTimeGraceS: number;
  /** Events kept for cursors, days. */
  eventRetentionDays: number;
  /** Ended jobs kept, days. */
  jobRetentionDays: number;
  /** Entries of the audit log, and dead keys, kept, days. */
  auditRetentionDays: number;
  /** Rows changed or deleted by one statement at most. */
  limit: number;
}

/** Pause between two deletions of old data, seconds. */
const PRUNE_EVERY_S = 60;
/** Statements of deletion in one sweep at most; the next goes on. */
const PRUNES_AT_ONCE = 5;
/** Events that a follower has not read are kept so many times as long as others. */
const UNREAD_FACTOR = 2;
/** Processes not seen for so long are forgotten, seconds. */
const FORGET_PROCESS_S = 86_400;

/** Keeps what a process knows between sweeps. */
export class Sweeper {
  private wokenAt = 0;
  private prunedAt = 0;

  constructor(
    private readonly tools: CycleTools,
    private readonly settings: SweepSettings,
  ) {}

  /** One sweep. Throws what the store throws. */
  async run(cycle: Cycle): Promise<void> {
    const { store, mirror } = this.tools;
    const now = this.tools.now();

    // 1. What has run out. The whole of it is found and done by the store; here is only by which rules.
    await cycle.phase('sync', () => mirror.sync());
    const { timers, maxAttempts } = mirror.policy.document;
    const swept = await cycle.phase('expire', () =>
      store.sweep({
        now,
        silentAfterS: timers.agentSilentS,
        lostAfterS: timers.lostAfterS,
        onDeadlinePassed: timers.onDeadlinePassed,
        maxAttempts,
        runTimeGraceS: this.settings.runTimeGraceS,
        limit: this.settings.limit,
      }),
    );
    countPreempted(this.tools.metrics, mirror.policy.document, 'hold', swept.stopped);
    for (const [name, count] of Object.entries(swept)) if (typeof count === 'number') cycle.add(name, count);
    if (swept.touched.length > 0) await this.tools.wake(swept.touched.map(schedulerOf));

    if (now - this.wokenAt >= timers.cycleS) {
      this.wokenAt = now;
      // 2. Jobs in the queue of a site that is not up, or whose machines for them have gone or fallen silent, where cycles missed it.
      const returns = stranded(mirror.grid, this.tools.limits.maxTakenBack);
      if ((await takeBack(cycle, this.tools, returns)) > 0) await this.tools.wake([ROOT]);

      // 3. Wake-ups and alarms that were lost, and what only the passing of time changes (a reservation's instant comes, a
      //    deadline draws near): whoever holds waiting jobs looks again. Only promised starts have exact timers: any other
      //    start that no event announces is late by `cycleS` at the most.
      await this.tools.wake(waiting(mirror.grid));
    }

    // 4. How much there is of everything.
    this.measure();

    // 5. What is older than it is kept.
    if (now - this.prunedAt >= PRUNE_EVERY_S) {
      const more = await cycle.phase('prune', () => this.prune(store, now));
      if (!more) this.prunedAt = now;
    }
  }

  private measure(): void {
    const { metrics, mirror } = this.tools;
    let queued = mirror.grid.root.length + mirror.grid.rootReserved.length;
    let dispatched = 0;
    let live = 0;
    for (const { queue, meta, resources } of mirror.grid.sites) {
      queued += meta.length;
      dispatched += queue.length;
      live += resources.runs.length;
    }
    metrics.jobs.set({ state: 'QUEUED' }, queued);
    metrics.jobs.set({ state: 'DISPATCHED' }, dispatched);
    metrics.jobs.set({ state: 'LIVE' }, live);
    // Sites and kinds that are gone.
    metrics.resources.reset();
    metrics.lateRuns.reset();
    for (const entry of mirror.grid.sites) {
      this.measureResources(entry);
      metrics.lateRuns.set({ site: entry.site.name }, lateRuns(entry.resources, this.tools.now()).length);
    }
    this.measurePools();
  }

  private measureResources({ site, resources }: SiteEntry): void {
    const { metrics, mirror } = this.tools;
    const machines = resources.machines.filter(({ machine }) => machine.available);
    for (let kind = 0; kind < resources.kinds; kind++) {
      const total = machines.reduce((sum, { offered }) => sum + (offered[kind] ?? 0), 0);
      if (!(total > 0 && total < Infinity)) continue;
      const free = machines.reduce(
        (sum, { offset }) => sum + (resources.free.room[offset + kind] as number),
        0,
      );
      const of = { site: site.name, resource: mirror.grid.kinds.name(kind) };
      metrics.resources.set({ ...of, state: 'total' }, total);
      metrics.resources.set({ ...of, state: 'used' }, total - free);
    }
  }

  private measurePools(): void {
    const { metrics, mirror } = this.tools;
    const nameOf = new Map(mirror.grid.sites.map(({ site }) => [site.id, site.name]));
    metrics.pools.reset();
    for (const { license, inUse } of mirror.grid.pools()) {
      const site = license.siteId === null ? '' : (nameOf.get(license.siteId) ?? '');
      const of = { site, kind: license.kind };
      metrics.pools.set({ ...of, state: 'total' }, license.copies);
      metrics.pools.set({ ...of, state: 'used' }, inUse);
    }
    metrics.poolWaiting.reset();
    for (const [kind, amount] of mirror.grid.poolsWaitedFor()) metrics.poolWaiting.set({ kind }, amount);
  }

  private async prune(store: Store, now: number): Promise<boolean> {
    for (let i = 0; i < PRUNES_AT_ONCE; i++) {
      const { more } = await store.prune({
        eventsBefore: now - this.settings.eventRetentionDays * 86_400,
        unreadBefore: now - this.settings.eventRetentionDays * UNREAD_FACTOR * 86_400,
        jobsEndedBefore: now - this.settings.jobRetentionDays * 86_400,
        processesBefore: now - FORGET_PROCESS_S,
        auditsBefore: now - this.settings.auditRetentionDays * 86_400,
        limit: this.settings.limit,
      });
      if (!more) return false;
    }
    return true;
  }
}
