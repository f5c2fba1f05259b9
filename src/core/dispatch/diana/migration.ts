/**
 * Out of congested sites (Anjum et al., sections 6 and 7; exact rules: diana.md, "Congestion and migration"): the groups of
 * jobs submitted together that have jobs in the lowest feedback queue go, each as a whole, to the best of the peers that pass the
 * policy's rule for jobs ahead and cost.
 *
 * Decisions. A group is asked for at each site as if all of it were there, those of its jobs included that went to a peer within the
 * hold-off, for they are the same migration: its priority is that of its lowest job among the jobs of that site's meta-queue, and its
 * own jobs are not ahead of it. Its cost is the mean of the jobs', each behind those of the group that go before it: what a whole group brings
 * counts, and more so where machines are slow. So where nothing else changes a group that went does not come
 * back, and one that is larger than a plan follows itself. A group with jobs that were exported before goes again only to where fewer
 * jobs of others are queued than here: this makes the queues more even each time, so that groups that displace one another come to
 * rest; by the paper's conditions alone two of them can change places for ever.
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
import { levelOf, type Standing } from '../../terms/quota.js';
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
import { comingOf, type SiteQueues } from './pass-queues.js';
import type { Rules } from './rules.js';

/** What a group finds at the sites that are up and can run all of its jobs, the one where it is among them. */
interface Prospects {
  /** Positions of the sites; the other arrays are aligned with it. */
  indices: readonly number[];
  ineligible: DispatchExplanation['ineligible'];
  queueLength: number[];
  /** Jobs queued that are not the group's. */
  others: number[];
  jobsAhead: number[];
  workAhead: number[];
  /** The group's there. */
  priority: number[];
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
    queues: readonly SiteQueues[],
    metaQueues: readonly MetaQueue[],
    passed: PassedJobs,
    plan: PlanBuilder,
  ): void {
    if (!this.isDue) return;
    const isHeldOff = ({ migratedAt }: Job): boolean =>
      migratedAt !== null && this.now - migratedAt < this.rules.holdOffS;
    this.bundles = bundlesOf(metaQueues, queues, passed, isHeldOff);
    for (const bundles of this.bundles)
      for (const { groupId, recent } of bundles.values()) if (recent > 0) this.migrating.add(groupId);
    const { rule } = this.rules.migration;
    for (const [here, congestion] of this.congested) {
      for (const bundle of candidatesOf(this.bundles[here] as Map<number, Bundle>)) {
        if (plan.full) {
          plan.goesOn();
          return;
        }
        const prospects = this.prospectsOf(bundle, here, queues);
        // Mostly nobody is better off by the queues alone, and then costs need not be known.
        const again = bundle.items.some(({ job }) => job.migratedAt !== null);
        if (best(prospects, here, again, rule, null) === -1) continue;
        const costs = this.costsOf(bundle, here, prospects);
        const at = best(prospects, here, again, rule, costs.total);
        if (at === -1) continue;
        const explanation = explain(bundle, prospects, costs, at, congestion, (i) => this.siteId(i));
        this.export(bundle, here, prospects.indices[at] as number, explanation, queues, passed, plan);
      }
    }
  }

  private prospectsOf(bundle: Bundle, here: number, queues: readonly SiteQueues[]): Prospects {
    const { indices, ineligible } = this.sitesFor(bundle.items);
    const prospects: Prospects = {
      indices,
      ineligible,
      queueLength: [],
      others: [],
      jobsAhead: [],
      workAhead: [],
      priority: [],
    };
    const whole = this.wholeOf(bundle, here);
    const jobs = whole.map(({ job }) => job);
    for (const index of indices) {
      const site = queues[index] as SiteQueues;
      const more = whole.filter(({ at }) => at !== index).map(({ job }) => job);
      const { standing, jobsAhead, workAhead } = site.prospect(jobs, comingOf(more));
      const own = whole.filter(({ at }) => at === index);
      prospects.queueLength.push(site.local + site.meta);
      prospects.others.push(site.local + site.meta - own.length);
      prospects.jobsAhead.push(jobsAhead - own.length);
      prospects.workAhead.push(own.reduce((work, { job }) => work - workOf(job), workAhead));
      prospects.priority.push(standing.order);
    }
    return prospects;
  }

  /** The jobs of the group that are here, and those that lately went elsewhere, with the position of the site. */
  private wholeOf({ groupId, items }: Bundle, here: number): { job: Job; at: number }[] {
    const whole = items.map(({ job }) => ({ job, at: here }));
    if (!this.migrating.has(groupId)) return whole;
    this.bundles.forEach((bundles, at) => {
      if (at === here) return;
      for (const { job, recent } of bundles.get(groupId)?.items ?? []) if (recent) whole.push({ job, at });
    });
    return whole;
  }

  private sitesFor(items: readonly BundleMember[]): Pick<Eligibility, 'indices' | 'ineligible'> {
    const { sites } = this.grid;
    const eligible = this.grid.index(EligibleSites);
    const [first, ...others] = new Set(items.map(({ requirement, job }) => eligible.of(requirement, job)));
    if (others.length === 0) return first as Eligibility;
    const ineligible = Object.assign({}, first?.ineligible, ...others.map((each) => each.ineligible));
    const indices = [...sites.keys()].filter((index) => ineligible[this.siteId(index)] === undefined);
    return { indices, ineligible };
  }

  /** The mean of the jobs' costs, as if none of the group were queued. */
  private costsOf(bundle: Bundle, here: number, { indices, workAhead }: Prospects): CostTerms {
    const { items } = bundle;
    const whole = this.wholeOf(bundle, here);
    for (const { job, at } of whole) this.costs.unqueued(job, at);
    // Those of the group that went before are ahead of those that follow.
    let before = whole.reduce((work, { job, at }) => (at === here ? work : work + workOf(job)), 0);
    const costs = items.map(({ job, requirement }) => {
      const { computation } = this.history.ratioOf(job);
      const ahead = workAhead.map((work) => work + before);
      before += workOf(job);
      return this.costs.of(job, requirement, computation, indices, ahead);
    });
    for (const { job, at } of whole) this.costs.queued(job, at);
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
    queues: readonly SiteQueues[],
    passed: PassedJobs,
    plan: PlanBuilder,
  ): void {
    const there = this.bundles[to] as Map<number, Bundle>;
    const [from, target] = [queues[here] as SiteQueues, queues[to] as SiteQueues];
    this.migrating.add(groupId);
    items.sort((a, b) => a.job.submittedAt - b.job.submittedAt || a.job.id - b.job.id);
    // Each has the priority that it will have when all are there.
    const jobs = items.map(({ job }) => job);
    const standings = target.standingsWith(jobs, comingOf(jobs));
    for (const [i, bundled] of items.entries()) {
      const { job } = bundled;
      const standing = standings[i] as Standing;
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
      from.leaveMeta(job);
      target.enterMeta(job);
      this.costs.unqueued(job, here);
      this.costs.queued(job, to);
      addTo(there, { ...bundled, standing, recent: true });
    }
    // They may go on at once, when they are there.
    if (target.local < this.rules.queueLimit) plan.goesOn();
  }

  private siteId(index: number): number {
    return (this.grid.sites[index] as SiteEntry).site.id;
  }
}

function explain(
  { items }: Bundle,
  { indices, ineligible, queueLength, jobsAhead, priority }: Prospects,
  costs: CostTerms,
  at: number,
  { arrival, service, value }: Congestion,
  siteId: (index: number) => number,
): DispatchExplanation {
  const sites = indices.map(siteId);
  const there = priority[at] as number;
  return {
    sites,
    terms: { queueLength, jobsAhead, ...costs, priority },
    candidates: [sites[at] as number],
    ineligible,
    compared: 3,
    level: levelOf(there),
    priorityTerms: {
      priority: there,
      groupJobs: items.length,
      arrivalRate: arrival,
      serviceRate: service,
      congestion: value,
    },
  };
}

/**
 * The best of the peers that pass the policy's rule: of the shortest queue, then the fewest jobs ahead, then the least total cost; −1
 * if none passes. A group that goes `again` has to have fewer jobs of others there. Without costs (null): as far as the queues tell.
 */
function best(
  { indices, queueLength, others, jobsAhead }: Prospects,
  here: number,
  again: boolean,
  rule: Rules['migration']['rule'],
  total: readonly number[] | null,
): number {
  const stay = indices.indexOf(here);
  if (stay === -1) return -1;
  const less = (values: readonly number[], i: number, than: number): boolean =>
    (values[i] as number) < (values[than] as number);
  const passes = (i: number): boolean => {
    if (i === stay || (again && !less(others, i, stay))) return false;
    if (rule === 'BOTH_LOWER') return less(jobsAhead, i, stay) && (total === null || less(total, i, stay));
    return total === null || !(less(jobsAhead, stay, i) && less(total, stay, i));
  };
  const terms = [queueLength, jobsAhead, ...(total === null ? [] : [total])];
  let at = -1;
  for (let i = 0; i < indices.length; i++) if (passes(i) && (at === -1 || compare(terms, i, at) < 0)) at = i;
  return at;
}

/** By the first of the terms that differs, the lower one first. */
function compare(terms: readonly (readonly number[])[], a: number, b: number): number {
  for (const values of terms) {
    const difference = (values[a] as number) - (values[b] as number);
    if (difference !== 0) return difference;
  }
  return 0;
}
