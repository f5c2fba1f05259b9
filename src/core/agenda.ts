/**
 * Who of the schedulers has to look again after which change, and which jobs go back to the root because nobody serves them where they
 * wait. The live engine and the simulator both ask here, so that they act alike.
 *
 *   a job comes to a scheduler     that scheduler
 *   a run ends                     its site's
 *   something of the world changes `concernedBy`
 *   the root has moved jobs        the sites that were given some (`given`)
 *   a site has looked              others that may get a license of it, and the root if it has jobs for it (`Agenda.afterSite`)
 *   a promise comes due            its site's (`SitePlan.wakeAt`)
 *   time passes                    whoever holds waiting jobs (`waiting`), every `timers.cycleS`
 */
import { dispatchKindOf } from './dispatch/registry.js';
import type { Grid, SiteEntry } from './grid/grid.js';
import type { Requirement } from './grid/requirements.js';
import { amountIn } from './grid/site-resources.js';
import type { Job, Move, Reservation, Start } from './model.js';
import type { Policy } from './policy.js';
import { ReasonCode } from './reasons.js';
import { EligibleSites, whyNotUp } from './resources/eligibility.js';
import { LicenseRequests } from './resources/license-requests.js';
import { ROOT, type Scheduler } from './scheduler.js';
import { oursAt } from './terms/waiting-there.js';

/** Jobs that go back to the root, all from one queue and for one reason. */
export interface Return {
  siteId: number;
  reason: ReasonCode;
  jobIds: number[];
}

/** What can change of what schedulers look at, jobs and runs apart. `siteId` of a license is null if the whole grid shares it. */
export type WorldChange =
  | { of: 'SITE' | 'MACHINE'; siteId: number }
  | { of: 'LICENSE'; siteId: number | null }
  | { of: 'DATA' | 'USER' | 'TREE' | 'POLICY' };

/**
 * Who looks after a change; 'ALL': the root and every site. Jobs at other sites that come to be able to run where something has
 * changed are the root's business: see `Agenda.returnsToRoot`.
 */
export function concernedBy(change: WorldChange): Scheduler[] | 'ALL' {
  if (!('siteId' in change)) return change.of === 'POLICY' ? 'ALL' : [ROOT];
  return change.siteId === null ? 'ALL' : [ROOT, change.siteId];
}

/** Sites whose local queues were given jobs. */
export const given = (moves: readonly Move[]): Set<number> =>
  new Set(moves.flatMap(({ queue, to }) => (queue === 'LOCAL' ? [to] : [])));

/** Whether the root's cycle has jobs to decide on. */
export function rootHasJobs({ root, rootReserved, sites }: Grid): boolean {
  if (root.length + rootReserved.length > 0) return true;
  for (let i = 0; i < sites.length; i++) if ((sites[i] as SiteEntry).meta.length > 0) return true;
  return false;
}

/** Schedulers that hold jobs which wait; the root looks after those that sites' own schedulers have, too. */
export function waiting(grid: Grid): Scheduler[] {
  const looks = rootHasJobs(grid) || grid.sites.some(({ handedOver }) => handedOver.jobs > 0);
  const found: Scheduler[] = looks ? [ROOT] : [];
  for (const { site, queue, inside } of grid.sites)
    if (queue.length > 0 || inside.some((part) => part.queue.length > 0)) found.push(site.id);
  return found;
}

/** Jobs of meta-queues that nobody serves: their site is not up, or the policy has no meta-queues. At most `limit` in all. */
function returnsFromMeta(grid: Grid, { dispatch }: Policy, limit: number): Return[] {
  const served = dispatchKindOf(dispatch).servesMeta === true;
  const returns: Return[] = [];
  let left = limit;
  for (const { site, meta } of grid.sites) {
    const reason = whyNotUp(site.state) ?? (served ? null : ReasonCode.NO_META_QUEUES);
    if (meta.length === 0 || left === 0 || reason === null) continue;
    const jobIds: number[] = [];
    for (const slot of meta.inOrder('ARRIVAL').window().subarray(0, left))
      jobIds.push(meta.ids[slot] as number);
    returns.push({ siteId: site.id, reason, jobIds });
    left -= jobIds.length;
  }
  return returns;
}

/**
 * Jobs of a site's local queue that its cycle sends back: all if it is not up, for another may run them; else those that it can run no
 * more while another site can. Dispatch would not choose the site again as it is now, so they do not come back in a circle; where no
 * site could take them they stay, and keep their place.
 */
export function returnsFrom(grid: Grid, { site, queue }: SiteEntry, limit: number): Return[] {
  const byReason = new Map<ReasonCode, Return>();
  const down = whyNotUp(site.state);
  const eligible = grid.index(EligibleSites);
  let left = limit;
  for (const slot of queue.inOrder('ARRIVAL').window()) {
    let reason: ReasonCode | undefined = down ?? undefined;
    if (reason === undefined) {
      const { ineligible, waiting: nowhere } = eligible.of(
        queue.requirements[slot] as Requirement,
        queue.jobs[slot] as Job,
      );
      if (nowhere === null) reason = ineligible[site.id];
    }
    if (reason === undefined) continue;
    if (left-- === 0) break;
    const known = byReason.get(reason);
    const jobId = queue.ids[slot] as number;
    if (known !== undefined) known.jobIds.push(jobId);
    else byReason.set(reason, { siteId: site.id, reason, jobIds: [jobId] });
  }
  return [...byReason.values()];
}

/** `returnsFrom` of all local queues: at most `limit` in all. */
export function stranded(grid: Grid, limit: number): Return[] {
  const returns: Return[] = [];
  let left = limit;
  for (const entry of grid.sites) {
    if (left === 0) break;
    for (const one of returnsFrom(grid, entry, left)) {
      returns.push(one);
      left -= one.jobIds.length;
    }
  }
  return returns;
}

/** What a site's cycle has come to. */
export interface SiteLook {
  entry: SiteEntry;
  /** Its reservation until then; in the grid is the new one. */
  before: Reservation | null;
  /** `Grid.returns` when it planned. */
  returns: number;
  /** Starts that are decided but not in the grid yet, and how many of those that are carried out are not. */
  starts: readonly Start[];
  started: number;
  /** As `queueLimitOf` tells; null: the root never waits for room. */
  queueLimit: number | null;
  /** The policy in force. */
  policy: Pick<Policy, 'dispatch'>;
}

/** What a driver has seen, so that it takes a change, never a state alone, to wake somebody: nobody wakes each other in a circle. */
export class Agenda {
  /** `Grid.returns` as a site has last seen it. */
  private returns = -1;
  /** By site: with which grid, as it then was, its jobs were checked. */
  private readonly checked = new Map<number, number>();
  /** The grid, as it then was, in which no job was stranded. */
  private unstrandedAt = -1;
  private grid: Grid | null = null;

  /**
   * What the root's cycle takes back before it decides, at most `limit` in all: jobs of meta-queues that nobody serves and, if machines,
   * licenses or sites have changed, those that local queues hold in vain.
   */
  returnsToRoot(grid: Grid, policy: Policy, limit: number): Return[] {
    const returns = returnsFromMeta(grid, policy, limit);
    this.look(grid);
    if (this.unstrandedAt === grid.topology) return returns;
    const taken = returns.reduce((sum, { jobIds }) => sum + jobIds.length, 0);
    const local = stranded(grid, limit - taken);
    if (local.length === 0 && taken < limit) this.unstrandedAt = grid.topology;
    return [...returns, ...local];
  }

  /** `returnsFrom`, if machines, licenses or sites have changed since it was asked for last. */
  newReturnsFrom(grid: Grid, entry: SiteEntry, limit: number): Return[] {
    if (entry.queue.length === 0) return NONE;
    this.look(grid);
    const { id } = entry.site;
    if (this.checked.get(id) === grid.topology) return NONE;
    const returns = returnsFrom(grid, entry, limit);
    if (returns.length === 0) this.checked.set(id, grid.topology);
    return returns;
  }

  /** Of another grid nothing is known. */
  private look(grid: Grid): void {
    if (this.grid === grid) return;
    this.grid = grid;
    this.returns = -1;
    this.checked.clear();
    this.unstrandedAt = -1;
  }

  /** Who must look after a site has. */
  afterSite(grid: Grid, look: SiteLook): Scheduler[] {
    const found: Scheduler[] = grid.sharesLicenses ? this.sitesToWake(grid, look) : [];
    const { entry, queueLimit, started, policy } = look;
    if (queueLimit === null) return found;
    const hasRoom = started > 0 || oursAt(entry) < Math.max(1, queueLimit);
    const wakes = dispatchKindOf(policy.dispatch).sitesAsk
      ? rootHasJobs(grid)
      : hasRoom && grid.root.length + entry.meta.length > 0;
    if (wakes) found.push(ROOT);
    return found;
  }

  /**
   * The other sites that ask for a grid-wide license of which a copy may have come free for them: some were given back and a copy is
   * free, or this site's reservation no longer claims it.
   */
  private sitesToWake(grid: Grid, { entry, before, returns, starts }: SiteLook): number[] {
    const kinds: string[] = [];
    this.look(grid);
    const seen = this.returns;
    this.returns = Math.max(seen, returns);
    for (const { license, inUse, returnedAt } of grid.sharedLicenses()) {
      const taken = starts.reduce((sum, start) => sum + amountIn(start, license.id), inUse);
      const released =
        before !== null && !sameClaim(before, entry.reservation) && amountIn(before, license.id) > 0;
      if (taken < license.copies && (returnedAt > seen || released)) kinds.push(license.kind);
    }
    const requests = grid.index(LicenseRequests);
    return grid.sites
      .filter((other) => other !== entry && kinds.some((kind) => requests.of(other.queue).has(kind)))
      .map(({ site }) => site.id);
  }
}

const NONE: Return[] = [];

/** Whether two reservations are for the same job and keep the same licenses from others, now or later. */
function sameClaim(a: Reservation | null, b: Reservation | null): boolean {
  return a?.jobId === b?.jobId && amounts(a) === amounts(b);
}

const amounts = (of: Reservation | null): string =>
  (of?.pools ?? []).map(({ id, amount }) => `${id}:${amount}`).join();

/** Whether other sites can take no notice of the change: without licenses, it is nothing to them when a reservation moves. */
export function sameToOthers(a: Reservation | null, b: Reservation | null): boolean {
  return sameClaim(a, b) && (a === null || a.pools.length === 0 || a.at === b?.at);
}
