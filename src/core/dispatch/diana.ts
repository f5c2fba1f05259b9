/**
 * DIANA (Anjum et al.; exact rules: diana.md). A job goes to the meta-queue of the site where it costs least, waits there by
 * its user's quota, and goes on to the local queue when that has room; congested sites export groups (migration.ts).
 *
 * A cycle feeds local queues, then places what has come, then migrates. Decisions: what is placed in one cycle has come at
 * the same time, so everyone's priority counts all of it; a job moves once in a cycle; one whose site can run it no more
 * goes where a new one would, as soon as there is such a site.
 */
import type { Grid, SiteEntry } from '../grid.js';
import type { DispatchExplanation, Job, Move } from '../model.js';
import type { DianaPolicy, Policy } from '../policy.js';
import { levelOf, type QuotaLedger, quotaKey, type Standing, type Standings } from '../priority/quota.js';
import { ReasonCode } from '../reasons.js';
import { type Eligibility, eligibilityOf } from '../resources/eligibility.js';
import type { Requirement } from '../resources/requirements.js';
import { Settled } from './bundles.js';
import { SiteCosts } from './cost.js';
import type { MetaItem } from './meta-queues.js';
import { Migration } from './migration.js';
import { PassQueues } from './pass-queues.js';
import { type Choice, type DispatchPass, inOrderOfArrival, type PlanBuilder } from './policy.js';

/** A job that has to be placed: from the root, or from the site (its position) that can run it no more. */
interface Newcomer extends MetaItem {
  eligibility: Eligibility;
  from: number | null;
}

/** A job that has left the meta-queue of a site for the local queue. */
interface Fed {
  index: number;
  job: Job;
  priority: number;
}

export class DianaDispatch implements DispatchPass {
  private readonly rules: DianaPolicy;
  private readonly costs: SiteCosts;
  /** As the plan leaves the meta-queues. */
  private readonly ledger: QuotaLedger;
  private readonly settled: Settled;

  constructor(
    private readonly grid: Grid,
    policy: Policy,
    private readonly now: number,
  ) {
    this.rules = policy.dispatch as DianaPolicy;
    this.costs = new SiteCosts(grid, this.rules);
    this.ledger = grid.ledger.copy();
    this.settled = new Settled(grid.sites.length);
  }

  decide(plan: PlanBuilder): void {
    const newcomers = this.strays(plan);
    const fed = this.feed(plan);
    const room = plan.room;
    plan.cut(newcomers.splice(room).length);
    inOrderOfArrival(
      this.grid,
      plan,
      (job, eligibility, requirement) => {
        newcomers.push({ job, eligibility, requirement, from: null });
        this.ledger.add(job);
      },
      () => newcomers.length >= room,
    );
    const migration = new Migration(this.grid, this.rules, this.now, this.costs);
    if (newcomers.length > 0 || migration.isDue) {
      const standings = this.ledger.standings(this.grid.quotas);
      const queues = new PassQueues(this.grid.sites, standings);
      for (const { index, job, priority } of fed) {
        queues.leaveMeta(index, job);
        queues.enterLocal(index, job, priority);
      }
      for (const newcomer of newcomers) this.place(newcomer, queues, standings, plan);
      migration.run(queues, standings, this.settled, plan);
    }
    this.countWaiting(plan);
  }

  choose(job: Job, eligibility: Eligibility): Choice & { site: SiteEntry } {
    const { grid } = this;
    const place = grid.placeOf(job.id);
    const known = place?.at === 'META' ? (grid.job(job.id) as Job) : null;
    const ledger = grid.ledger.copy();
    if (known !== null) ledger.remove(known);
    ledger.add(job);
    const standings = ledger.standings(grid.quotas);
    const queues = new PassQueues(grid.sites, standings);
    if (known !== null && place?.at === 'META')
      queues.leaveMeta(grid.sites.indexOf(grid.siteEntry(place.siteId)), known);
    const requirement = grid.requirementOf(job);
    const { index, explanation, priority } = this.cheapest(job, requirement, eligibility, queues, standings);
    return { site: this.site(index), priority, reason: ReasonCode.LEAST_COST, explanation };
  }

  undo(): void {}

  /** Jobs of meta-queues whose site is up and can run them no more; those that no site can run stay. */
  private strays(plan: PlanBuilder): Newcomer[] {
    const { sites, topology } = this.grid;
    const strays: Newcomer[] = [];
    sites.forEach(({ site, meta }, from) => {
      if (site.state !== 'UP') return;
      const strayed = new Set<Requirement>();
      for (const requirement of meta.classes.keys()) {
        if (eligibilityOf(requirement, sites, topology).ineligible[site.id] !== undefined)
          strayed.add(requirement);
      }
      if (strayed.size === 0) return;
      for (const { job, requirement } of meta.items()) {
        if (!strayed.has(requirement)) continue;
        const eligibility = eligibilityOf(requirement, sites, topology);
        this.settled.add(from, job);
        if (eligibility.waiting !== null) plan.wait(eligibility.waiting);
        else strays.push({ job, requirement, eligibility, from });
      }
    });
    return strays.sort((a, b) => a.job.submittedAt - b.job.submittedAt || a.job.id - b.job.id);
  }

  /** From each meta-queue the next jobs, as long as the local queue has room. */
  private feed(plan: PlanBuilder): Fed[] {
    const fed: Fed[] = [];
    let standings: Standings | null = null;
    for (const [index, { site, queue, meta }] of this.grid.sites.entries()) {
      if (site.state !== 'UP' || meta.length === 0 || queue.length >= this.rules.queueLimit) continue;
      standings ??= this.grid.ledger.standings(this.grid.quotas);
      let queued = queue.length;
      for (const { job } of meta.inOrder(standings)) {
        if (queued >= this.rules.queueLimit) break;
        if (this.settled.has(job)) continue;
        if (plan.full) {
          plan.goesOn();
          return fed;
        }
        const move = this.feeding(job, site.id, queued, standings);
        plan.move(move);
        fed.push({ index, job, priority: move.priority });
        this.settled.add(index, job);
        this.ledger.remove(job);
        queued++;
      }
    }
    return fed;
  }

  private feeding(job: Job, siteId: number, queued: number, standings: Standings): Move {
    const standing = standings.groups.get(quotaKey(job)) as Standing;
    const explanation: DispatchExplanation = {
      sites: [siteId],
      terms: { queued: [queued], room: [this.rules.queueLimit - queued] },
      candidates: [siteId],
      ineligible: {},
      level: levelOf(standing.order),
      priorityTerms: quotaTerms(standing, standings),
    };
    return {
      jobId: job.id,
      from: siteId,
      to: siteId,
      queue: 'LOCAL',
      priority: levelOf(standing.priority),
      reason: ReasonCode.FED_FROM_META,
      explanation,
    };
  }

  private place(newcomer: Newcomer, queues: PassQueues, standings: Standings, plan: PlanBuilder): void {
    const { job, requirement, eligibility, from } = newcomer;
    if (from !== null) queues.leaveMeta(from, job);
    const { index, priority, explanation } = this.cheapest(job, requirement, eligibility, queues, standings);
    plan.move({
      jobId: job.id,
      from: from === null ? null : this.site(from).site.id,
      to: this.site(index).site.id,
      queue: 'META',
      priority,
      reason: from === null ? ReasonCode.LEAST_COST : ReasonCode.LEAST_COST_ELSEWHERE,
      explanation,
    });
    queues.enterMeta(index, job);
    // It may go on at once, when it is there.
    if ((queues.local[index] as number) < this.rules.queueLimit) plan.goesOn();
  }

  /** The site of the least total cost; ties by site order. */
  private cheapest(
    job: Job,
    requirement: Requirement,
    { indices, siteIds, ineligible }: Eligibility,
    queues: PassQueues,
    standings: Standings,
  ): { index: number; priority: number; explanation: DispatchExplanation } {
    const standing = standings.groups.get(quotaKey(job)) as Standing;
    const ratio = this.grid.history.ratioOf(job);
    const workAhead = queues.worksFrom(standing.order);
    const costs = this.costs.of(job, requirement, ratio.computation, indices, workAhead);
    const { total } = costs;
    const priorityTerms = quotaTerms(standing, standings);
    priorityTerms.computation = ratio.computation;
    priorityTerms.dataIntensive = ratio.dataIntensive;
    priorityTerms.runs = ratio.runs;
    let at = 0;
    for (let i = 1; i < total.length; i++) if ((total[i] as number) < (total[at] as number)) at = i;
    return {
      index: indices[at] as number,
      priority: levelOf(standing.priority),
      explanation: {
        sites: siteIds,
        terms: { total, network: costs.network, computation: costs.computation, data: costs.data },
        candidates: [siteIds[at] as number],
        ineligible,
        compared: 1,
        level: levelOf(standing.order),
        priorityTerms,
      },
    };
  }

  private countWaiting(plan: PlanBuilder): void {
    this.grid.sites.forEach(({ site, meta }, index) => {
      const down = site.state === 'DOWN' ? ReasonCode.SITE_DOWN : ReasonCode.SITE_DRAINING;
      plan.wait(site.state === 'UP' ? ReasonCode.META_QUEUE : down, meta.length - this.settled.at(index));
    });
  }

  private site(index: number): SiteEntry {
    return this.grid.sites[index] as SiteEntry;
  }
}

/** What makes up a priority by quota: `Pr`, `N`, the feedback queue, `n`, `t`, `T`, `q` and `Q`. */
export const quotaTerms = (
  { priority, threshold, queue, userJobs, group, quota }: Standing,
  { processors, quotas }: Standings,
): Record<string, number> => ({
  priority,
  threshold,
  queue,
  userJobs,
  processors: group.processors,
  allProcessors: processors,
  quota,
  quotas,
});
