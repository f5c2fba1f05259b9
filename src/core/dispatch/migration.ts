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
import type { Grid, SiteEntry } from '../grid.js';
import type { DispatchExplanation, Job } from '../model.js';
import type { DianaPolicy } from '../policy.js';
import { levelOf, type Standings } from '../priority/quota.js';
import { ReasonCode, type WaitingReason } from '../reasons.js';
import { eligibilityOf } from '../resources/eligibility.js';
import { type Bundle, bundleFor, bundlesOf, candidatesOf, type Settled } from './bundles.js';
import { type Congestion, congestionOf } from './congestion.js';
import type { CostTerms, SiteCosts } from './cost.js';
import type { PassQueues } from './pass-queues.js';
import type { PlanBuilder } from './policy.js';
import { workOf } from './power.js';

/** What a group finds at the sites of `indices`, this one among them. */
interface Prospects {
  indices: number[];
  queueLength: number[];
  jobsAhead: number[];
  /** By position of the site. */
  workAhead: Float64Array;
}

/** Whether a site is congested now. */
export function congestionAt({ traffic }: SiteEntry, rules: DianaPolicy, now: number): Congestion {
  return congestionOf(traffic.rates(now, rules.congestionWindowS), rules.congestionThreshold);
}

export class Migration {
  /** By position of the site: those that are congested and have jobs to export. */
  private readonly congested = new Map<number, Congestion>();
  private bundles: Map<number, Bundle>[] = [];

  constructor(
    private readonly grid: Grid,
    private readonly rules: DianaPolicy,
    private readonly now: number,
    private readonly costs: SiteCosts,
  ) {
    grid.sites.forEach((entry, index) => {
      if (entry.site.state !== 'UP' || entry.meta.length === 0) return;
      const congestion = congestionAt(entry, rules, now);
      if (congestion.congested) this.congested.set(index, congestion);
    });
  }

  get isDue(): boolean {
    return this.congested.size > 0;
  }

  /** `settled`: jobs that move no more in this pass. */
  run(queues: PassQueues, standings: Standings, settled: Settled, plan: PlanBuilder): void {
    if (!this.isDue) return;
    const isHeldOff = ({ migratedAt }: Job): boolean =>
      migratedAt !== null && this.now - migratedAt < this.rules.holdOffS;
    this.bundles = bundlesOf(this.grid.sites, standings, settled, isHeldOff);
    for (const [here, congestion] of this.congested) {
      for (const bundle of candidatesOf(this.bundles[here] as Map<number, Bundle>)) {
        if (plan.full) {
          plan.goesOn();
          return;
        }
        const prospects = this.prospectsOf(bundle, here, queues);
        const costs = this.costsOf(bundle, here, prospects);
        if (costs === null) continue;
        const at = best(prospects, costs.total, here);
        if (at === -1) continue;
        const explanation = this.explain(bundle, prospects, costs, at, congestion);
        this.export(bundle, here, prospects.indices[at] as number, explanation, queues, settled, plan);
      }
    }
  }

  private prospectsOf(bundle: Bundle, here: number, queues: PassQueues): Prospects {
    const { groupId, items, order } = bundle;
    const ineligible = this.ineligibleFor(bundle);
    const { sites } = this.grid;
    const indices = [...sites.keys()].filter((index) => ineligible[this.siteId(index)] === undefined);
    const workAhead = queues.worksFrom(order).slice();
    const jobsAhead = indices.map((index) => {
      const own = index === here ? items : (this.bundles[index]?.get(groupId)?.recent ?? []);
      for (const { job } of own) (workAhead[index] as number) -= workOf(job);
      return queues.jobsFrom(index, order) - own.length;
    });
    const queueLength = indices.map(
      (index) => (queues.local[index] as number) + (queues.meta[index] as number),
    );
    return { indices, queueLength, jobsAhead, workAhead };
  }

  /** Why sites cannot run all of the group's jobs; the others can, and are up. */
  private ineligibleFor({ classes }: Bundle): Record<number, WaitingReason> {
    const { sites, topology } = this.grid;
    return Object.assign({}, ...[...classes].map((each) => eligibilityOf(each, sites, topology).ineligible));
  }

  /** The mean of the jobs' costs; null where they need not be known, for no peer can be better. */
  private costsOf(
    { items }: Bundle,
    here: number,
    { indices, jobsAhead, workAhead }: Prospects,
  ): CostTerms | null {
    const stay = jobsAhead[indices.indexOf(here)] as number;
    if (!jobsAhead.some((jobs) => jobs < stay)) return null;
    const costs = items.map(({ job, requirement }) => {
      const { computation } = this.grid.history.ratioOf(job);
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
    settled: Settled,
    plan: PlanBuilder,
  ): void {
    const { recent } = bundleFor(this.bundles[to] as Map<number, Bundle>, groupId);
    items.sort((a, b) => a.job.submit - b.job.submit || a.job.id - b.job.id);
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
      settled.add(here, job);
      queues.leaveMeta(here, job);
      queues.enterMeta(to, job);
      recent.push(bundled);
    }
    // They may go on at once, when they are there.
    if ((queues.local[to] as number) < this.rules.queueLimit) plan.goesOn();
  }

  private explain(
    bundle: Bundle,
    { indices, queueLength, jobsAhead }: Prospects,
    costs: CostTerms,
    at: number,
    { arrival, service, value }: Congestion,
  ): DispatchExplanation {
    const able = indices.map((index) => this.siteId(index));
    return {
      sites: able,
      terms: { queueLength, jobsAhead, ...costs },
      candidates: [able[at] as number],
      ineligible: this.ineligibleFor(bundle),
      compared: 3,
      level: levelOf(bundle.order),
      priorityTerms: {
        priority: bundle.order,
        groupJobs: bundle.items.length,
        arrivalRate: arrival,
        serviceRate: service,
        congestion: value,
      },
    };
  }

  private siteId(index: number): number {
    return (this.grid.sites[index] as SiteEntry).site.id;
  }
}

/**
 * The peer of the shortest queue, then the fewest jobs ahead, then the least cost; −1 unless it has both fewer jobs ahead
 * and a lower cost than the site where the group is.
 */
function best(
  { indices, queueLength, jobsAhead }: Prospects,
  total: readonly number[],
  here: number,
): number {
  const stay = indices.indexOf(here);
  const terms = [queueLength, jobsAhead, total];
  const peers = [...indices.keys()].filter((i) => i !== stay);
  if (peers.length === 0) return -1;
  const at = peers.reduce((least, i) => (compare(terms, i, least) < 0 ? i : least));
  return [jobsAhead, total].every((values) => (values[at] as number) < (values[stay] as number)) ? at : -1;
}

/** By the first of the terms that differs, the lower one first. */
function compare(terms: readonly (readonly number[])[], a: number, b: number): number {
  for (const values of terms) {
    const difference = (values[a] as number) - (values[b] as number);
    if (difference !== 0) return difference;
  }
  return 0;
}
