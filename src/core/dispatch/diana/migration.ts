/**
 * Out of congested sites (Anjum et al., sections 6 and 7; exact rules: diana.md, "Congestion and migration"): the groups of
 * jobs submitted together that have jobs in the lowest feedback queue go, each as a whole, to the best peer, if they have
 * fewer jobs ahead of them there and cost less.
 *
 * Decisions. A group is priced and goes from each site by itself, at the priority of its lowest job anywhere; its cost is the
 * mean of the jobs'. Those that would move are not ahead of themselves, nor are those of the group that went to the peer
 * within the hold-off, for they are the same migration. So where nothing else changes a group that went does not come
 * back, and one that is larger than a plan follows itself.
 * Peers are the other sites that are up and can run all of the group's jobs. They are asked once in a pass, and what the
 * pass moves is counted from then on.
 */
import { JobHistory } from '../../data/history.js';
import { Traffic } from '../../data/traffic.js';
import type { Grid, SiteEntry } from '../../grid/grid.js';
import type { DispatchExplanation, Job } from '../../model.js';
import { ReasonCode } from '../../reasons.js';
import { type Eligibility, EligibleSites } from '../../resources/eligibility.js';
import { type Congestion, congestionOf } from '../../terms/congestion.js';
import { workOf } from '../../terms/power.js';
import { levelOf, type Standings } from '../../terms/quota.js';
import type { PlanBuilder } from '../policy.js';
import {
  addTo,
  type Bundle,
  type BundleMember,
  bundlesOf,
  candidatesOf,
  type PassedJobs,
} from './bundles.js';
import type { CostTerms, SiteCosts } from './cost.js';
import type { MetaQueue } from './meta-queues.js';
import type { PassQueues } from './pass-queues.js';
import type { Rules } from './rules.js';

/** What a group finds at the sites that are up and can run all of its jobs, the one where it is among them. */
interface Prospects {
  /** Positions of the sites; the other arrays are aligned with it. */
  indices: readonly number[];
  ineligible: DispatchExplanation['ineligible'];
  queueLength: number[];
  jobsAhead: number[];
}

export class Migration {
  /** By position of the site: those that are congested and have jobs to export. */
  private readonly congested = new Map<number, Congestion>();
  private bundles: Map<number, Bundle>[] = [];
  /** Groups that have recent jobs somewhere. */
  private readonly migrating = new Set<number>();
  private readonly history: JobHistory;

  constructor(
    private readonly grid: Grid,
    private readonly rules: Rules,
    private readonly now: number,
    private readonly costs: SiteCosts,
  ) {
    const traffic = grid.index(Traffic);
    this.history = grid.index(JobHistory);
    grid.sites.forEach(({ site, meta }, index) => {
      if (site.state !== 'UP' || meta.length === 0) return;
      const rates = traffic.of(site.id).rates(now, rules.congestionWindowS);
      const congestion = congestionOf(rates, rules.congestionThreshold);
      if (congestion.congested) this.congested.set(index, congestion);
    });
  }

  get isDue(): boolean {
    return this.congested.size > 0;
  }

  /** `metaQueues`: by position of the site. `passed`: jobs that move no more in this pass. */
  run(
    queues: PassQueues,
    metaQueues: readonly MetaQueue[],
    standings: Standings,
    passed: PassedJobs,
    plan: PlanBuilder,
  ): void {
    if (!this.isDue) return;
    const isHeldOff = ({ migratedAt }: Job): boolean =>
      migratedAt !== null && this.now - migratedAt < this.rules.holdOffS;
    this.bundles = bundlesOf(metaQueues, standings, passed, isHeldOff);
    for (const bundles of this.bundles)
      for (const { groupId, recent } of bundles.values()) if (recent > 0) this.migrating.add(groupId);
    for (const [here, congestion] of this.congested) {
      for (const bundle of candidatesOf(this.bundles[here] as Map<number, Bundle>)) {
        if (plan.full) {
          plan.goesOn();
          return;
        }
        const prospects = this.prospectsOf(bundle, here, queues);
        // Mostly nobody is better off by the queues alone, and then costs need not be known.
        if (best(prospects, here, null) === -1) continue;
        const costs = this.costsOf(bundle, here, prospects, queues);
        const at = best(prospects, here, costs.total);
        if (at === -1) continue;
        const explanation = explain(bundle, prospects, costs, at, congestion, (i) => this.siteId(i));
        this.export(bundle, here, prospects.indices[at] as number, explanation, queues, passed, plan);
      }
    }
  }

  private prospectsOf({ groupId, items, order }: Bundle, here: number, queues: PassQueues): Prospects {
    const { indices, ineligible } = this.sitesFor(items);
    const jobs = queues.jobsFrom(order);
    const { length } = indices;
    const queueLength: number[] = new Array(length);
    const jobsAhead: number[] = new Array(length);
    for (let i = 0; i < length; i++) {
      const index = indices[i] as number;
      queueLength[i] = (queues.local[index] as number) + (queues.meta[index] as number);
      const own = index === here ? items.length : this.recentAt(index, groupId).length;
      jobsAhead[i] = (jobs[index] as number) - own;
    }
    return { indices, ineligible, queueLength, jobsAhead };
  }

  /** What of the group went there lately. */
  private recentAt(index: number, groupId: number): readonly BundleMember[] {
    if (!this.migrating.has(groupId)) return NONE;
    return this.bundles[index]?.get(groupId)?.items.filter(({ recent }) => recent) ?? NONE;
  }

  private sitesFor(items: readonly BundleMember[]): Pick<Eligibility, 'indices' | 'ineligible'> {
    const { sites } = this.grid;
    const eligible = this.grid.index(EligibleSites);
    const [first, ...others] = [...new Set(items.map(({ requirement }) => requirement))].map((each) =>
      eligible.of(each),
    );
    if (others.length === 0) return first as Eligibility;
    const ineligible = Object.assign({}, first?.ineligible, ...others.map((each) => each.ineligible));
    const indices = [...sites.keys()].filter((index) => ineligible[this.siteId(index)] === undefined);
    return { indices, ineligible };
  }

  /** The mean of the jobs' costs. */
  private costsOf(
    { groupId, items, order }: Bundle,
    here: number,
    { indices }: Prospects,
    queues: PassQueues,
  ): CostTerms {
    const workAhead = queues.worksFrom(order);
    for (const index of indices) {
      const own = index === here ? items : this.recentAt(index, groupId);
      for (const { job } of own) (workAhead[index] as number) -= workOf(job);
    }
    const costs = items.map(({ job, requirement }) => {
      const { computation } = this.history.ratioOf(job);
      return this.costs.of(job, requirement, computation, indices, workAhead);
    });
    const mean = (name: keyof CostTerms): number[] =>
      indices.map((_, i) => costs.reduce((sum, terms) => sum + (terms[name][i] as number), 0) / items.length);
    return {
      total: mean('total'),
      network: mean('network'),
      computation: mean('computation'),
      data: mean('data'),
    };
  }

  private export(
    { groupId, items }: Bundle,
    here: number,
    to: number,
    explanation: DispatchExplanation,
    queues: PassQueues,
    passed: PassedJobs,
    plan: PlanBuilder,
  ): void {
    const there = this.bundles[to] as Map<number, Bundle>;
    this.migrating.add(groupId);
    items.sort((a, b) => a.job.submittedAt - b.job.submittedAt || a.job.id - b.job.id);
    for (const bundled of items) {
      const { job, standing } = bundled;
      if (plan.full) {
        plan.goesOn();
        return;
      }
      plan.move({
        jobId: job.id,
        from: this.siteId(here),
        to: this.siteId(to),
        queue: 'META',
        priority: levelOf(standing.priority),
        reason: ReasonCode.EXPORTED,
        explanation,
      });
      passed.add(here, job);
      queues.leaveMeta(here, job);
      queues.enterMeta(to, job);
      addTo(there, { ...bundled, recent: true });
    }
    // They may go on at once, when they are there.
    if ((queues.local[to] as number) < this.rules.queueLimit) plan.goesOn();
  }

  private siteId(index: number): number {
    return (this.grid.sites[index] as SiteEntry).site.id;
  }
}

const NONE: readonly BundleMember[] = [];

function explain(
  { order, items }: Bundle,
  { indices, ineligible, queueLength, jobsAhead }: Prospects,
  costs: CostTerms,
  at: number,
  { arrival, service, value }: Congestion,
  siteId: (index: number) => number,
): DispatchExplanation {
  const sites = indices.map(siteId);
  return {
    sites,
    terms: { queueLength, jobsAhead, ...costs },
    candidates: [sites[at] as number],
    ineligible,
    compared: 3,
    level: levelOf(order),
    priorityTerms: {
      priority: order,
      groupJobs: items.length,
      arrivalRate: arrival,
      serviceRate: service,
      congestion: value,
    },
  };
}

/**
 * The peer of the shortest queue, then the fewest jobs ahead, then the least total cost; −1 unless it has both fewer jobs
 * ahead and a lower cost than the site where the group is. Without costs (null): as far as the queues tell.
 */
function best(
  { indices, queueLength, jobsAhead }: Prospects,
  here: number,
  total: readonly number[] | null,
): number {
  const terms = total === null ? [queueLength, jobsAhead] : [queueLength, jobsAhead, total];
  let at = -1;
  for (let i = 0; i < indices.length; i++)
    if (indices[i] !== here && (at === -1 || compare(terms, i, at) < 0)) at = i;
  if (at === -1) return -1;
  const stay = indices.indexOf(here);
  return terms.every((values) => values === queueLength || (values[at] as number) < (values[stay] as number))
    ? at
    : -1;
}

/** By the first of the terms that differs, the lower one first. */
function compare(terms: readonly (readonly number[])[], a: number, b: number): number {
  for (const values of terms) {
    const difference = (values[a] as number) - (values[b] as number);
    if (difference !== 0) return difference;
  }
  return 0;
}
