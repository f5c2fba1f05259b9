/** What time does when nobody reports it: silent machines, lost runs, deadlines, lost wake-ups, stranded jobs, old data. */
import type { Grid } from '../core/index.js';
import { eligibilityOf } from '../core/resources/eligibility.js';
import type { Requirement } from '../core/resources/requirements.js';
import type { Store } from '../store/store.js';
import type { Cycle, CycleTools } from './cycle.js';
import type { Scheduler } from './ports.js';

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
    for (const [name, count] of Object.entries(swept)) if (typeof count === 'number') cycle.add(name, count);
    if (swept.touched.length > 0) await this.tools.wake(swept.touched.map((id) => id ?? 'root'));

    if (now - this.wokenAt >= timers.cycleS) {
      this.wokenAt = now;
      // 2. Jobs in the queue of a site whose machines for them have gone or fallen silent: another may run them.
      await cycle.phase('return', () => this.returnStranded(cycle, now));

      // 3. Wake-ups and alarms that were lost, and what only the passing of time changes (a reservation's instant comes, a
      //    deadline draws near): whoever holds waiting jobs looks again. Only promised starts have exact timers: any other
      //    start that no event announces is late by `cycleS` at the most.
      await this.tools.wake(waitingSchedulers(mirror.grid));
    }

    // 4. How much there is of everything.
    this.measure();

    // 5. What is older than it is kept.
    if (now - this.prunedAt >= PRUNE_EVERY_S) {
      const more = await cycle.phase('prune', () => this.prune(store, now));
      if (!more) this.prunedAt = now;
    }
  }

  private async returnStranded(cycle: Cycle, now: number): Promise<void> {
    const { store, mirror, limits } = this.tools;
    const context = cycle.context(mirror.policy.version, now);
    for (const { siteId, reason, jobIds } of strandedJobs(mirror.grid, limits.maxTakenBack)) {
      const returned = await store.returnJobs(siteId, jobIds, reason, context);
      cycle.add('returned', returned.length);
      if (returned.length > 0) await this.tools.wake(['root']);
    }
  }

  private measure(): void {
    const { metrics, mirror } = this.tools;
    let queued = mirror.grid.root.length;
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
  }

  private async prune(store: Store, now: number): Promise<boolean> {
    for (let i = 0; i < PRUNES_AT_ONCE; i++) {
      const { more } = await store.prune({
        eventsBefore: now - this.settings.eventRetentionDays * 86_400,
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

/**
 * Jobs in local queues of sites that are up but can no longer run them, while another site could: by site and reason, at most
 * `limit` in all. Dispatch would not choose their site again as it is now, so they do not come back in a circle; where no
 * site could take them they stay, and keep their place.
 */
export function strandedJobs(
  grid: Grid,
  limit: number,
): { siteId: number; reason: string; jobIds: number[] }[] {
  const groups: { siteId: number; reason: string; jobIds: number[] }[] = [];
  let left = limit;
  for (const { site, queue } of grid.sites) {
    if (site.state !== 'UP') continue;
    const bySiteReason = new Map<string, number[]>();
    for (const slot of queue.window()) {
      const requirement = queue.requirements[slot] as Requirement;
      const { ineligible, siteIds } = eligibilityOf(requirement, grid.sites, grid.topology);
      const reason = ineligible[site.id];
      if (reason === undefined || siteIds.length === 0) continue;
      if (left-- === 0) break;
      const jobIds = bySiteReason.get(reason) ?? [];
      bySiteReason.set(reason, jobIds);
      jobIds.push(queue.ids[slot] as number);
    }
    for (const [reason, jobIds] of bySiteReason) groups.push({ siteId: site.id, reason, jobIds });
    if (left <= 0) break;
  }
  return groups;
}

/** Schedulers that hold jobs which wait. The root's cycle is that of the meta-queues, too. */
export function waitingSchedulers(grid: Grid): Scheduler[] {
  const meta = grid.sites.some((entry) => entry.meta.length > 0);
  const waiting: Scheduler[] = grid.root.length > 0 || meta ? ['root'] : [];
  for (const { site, queue } of grid.sites) if (queue.length > 0) waiting.push(site.id);
  return waiting;
}
