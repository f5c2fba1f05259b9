/**
 * DIANA (Anjum et al.; exact rules: diana.md). A job goes to the meta-queue of the site where it costs least, waits there by
 * its user's quota, and goes on to the local queue when that has room; congested sites export groups (migration.ts).
 *
 * Every site's meta-scheduler has a queue and priorities of its own: what a job's priority would be at a site is worked out there.
 * A cycle feeds local queues, then places what has come, one job after the other, then migrates. Decisions: a job moves once in a
 * cycle; one whose site can run it no more goes where a new one would, as soon as there is such a site.
 */
import { JobHistory } from '../../data/history.js';
import { Shares } from '../../data/shares.js';
import { Traffic } from '../../data/traffic.js';
import type { SiteEntry } from '../../grid/grid.js';
import type { Requirement } from '../../grid/requirements.js';
import { cpusOf, type DispatchExplanation, type Job, type Move } from '../../model.js';
import { ReasonCode } from '../../reasons.js';
import { type Eligibility, EligibleSites, longestAt, whyNotUp } from '../../resources/eligibility.js';
import { congestionOf } from '../../terms/congestion.js';
import { forEachAtRoot } from '../../terms/order.js';
import { levelOf, ORDERS, quotaKey, quotaTerms, type Standing, type Standings } from '../../terms/quota.js';
import { oursAt } from '../../terms/waiting-there.js';
import {
  type Choice,
  type DispatchLook,
  type DispatchPass,
  dispatchKind,
  type PlanBuilder,
  QUEUED,
  ROOM,
  type Why,
} from '../policy.js';
import { PassedJobs } from './bundles.js';
import { SiteCosts } from './cost.js';
import { type MetaItem, type MetaQueue, MetaQueues } from './meta-queues.js';
import { Migration } from './migration.js';
import { OriginStarts } from './origin-starts.js';
import { comingOf, SiteQueues } from './pass-queues.js';
import { type Rules, schema } from './rules.js';

export const diana = dispatchKind({
  schema,
  label: 'DIANA',
  about:
    "Jobs go where network, computation and data cost least, are ordered by their users' quotas, and move from congested sites in groups (Anjum et al.).",
  terms: {
    total: {
      ...{ label: 'Total cost', about: 'Network, computation and data, weighted by the kind of job' },
      ...{ unit: 'S', better: 'LOW' },
    },
    network: { label: 'Network', about: 'Cost of moving the sandbox', unit: 'S', better: 'LOW' },
    computation: {
      ...{
        label: 'Computation',
        about: 'Cost of the jobs ahead, the run time and the load',
        unit: 'S',
        better: 'LOW',
      },
    },
    data: { label: 'Data', about: 'Cost of moving inputs, image and output', unit: 'S', better: 'LOW' },
    room: ROOM,
    queued: QUEUED,
    queueLength: { label: 'Queue', about: 'Jobs in its meta-queue', unit: 'JOBS', better: 'LOW' },
    jobsAhead: { label: 'Ahead', about: 'Jobs ahead of the group there', unit: 'JOBS', better: 'LOW' },
  },
  begin: (look, rules) => new DianaPass(look, rules),
  localOrder: () => 'PRIORITY',
  queueLimit: (rules) => rules.queueLimit,
  servesMeta: true,
  learns: true,
  // Time alone changes rates and ends hold-offs.
  restlessS: (rules) => rules.congestionWindowS + rules.holdOffS,
  congestion: (rules) => ({ windowS: rules.congestionWindowS, threshold: rules.congestionThreshold }),
  standings: (grid, { metaOrder }) => {
    const queues = grid.index(MetaQueues);
    const shares = grid.index(Shares);
    return grid.sites.map(({ site, meta }) => ({
      siteId: site.id,
      standings: queues.of(meta).ledger.standings(shares, ORDERS[metaOrder]),
    }));
  },
});

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

class DianaPass implements DispatchPass {
  private readonly costs: SiteCosts;
  private readonly eligible: EligibleSites;
  private readonly history: JobHistory;
  private readonly shares: Shares;
  /** Null: costs alone decide. */
  private readonly originStarts: OriginStarts | null;
  /** By position of the site. */
  private readonly metaQueues: readonly MetaQueue[];
  private readonly passed: PassedJobs;
  /** Of one job, while it is placed: by eligible site. */
  private readonly workAhead: number[] = [];
  private readonly elsewhere = new Map<number, number[]>();

  constructor(
    private readonly look: DispatchLook,
    private readonly rules: Rules,
  ) {
    const { grid } = look;
    this.costs = new SiteCosts(grid, rules, look.now);
    this.eligible = grid.index(EligibleSites);
    this.history = grid.index(JobHistory);
    this.shares = grid.index(Shares);
    const metaQueues = grid.index(MetaQueues);
    this.metaQueues = grid.sites.map(({ meta }) => metaQueues.of(meta));
    this.passed = new PassedJobs(grid.sites.length);
    this.originStarts = rules.placement === 'ORIGIN_FIRST' ? new OriginStarts(grid, look.now) : null;
  }

  decide(plan: PlanBuilder): void {
    const newcomers = this.strays(plan);
    const fed = this.feed(plan);
    const room = plan.room;
    plan.cut(newcomers.splice(room).length);
    forEachAtRoot(
      this.look.grid,
      plan,
      {},
      (job, eligibility, requirement) => {
        newcomers.push({ job, eligibility, requirement, from: null });
      },
      () => newcomers.length >= room,
    );
    const { grid, now } = this.look;
    const migration = new Migration(grid, this.rules, now, this.costs);
    if (newcomers.length > 0 || migration.isDue) {
      const queues = this.siteQueues();
      for (const { index, job, priority } of fed) {
        queues[index]?.leaveMeta(job);
        queues[index]?.enterLocal(job, priority);
      }
      for (const newcomer of newcomers) this.place(newcomer, queues, plan);
      migration.run(queues, this.metaQueues, this.passed, plan);
    }
    this.countWaiting(plan);
  }

  choose(job: Job, eligibility: Eligibility): Choice & { site: SiteEntry } {
    const { grid } = this.look;
    const place = grid.placeOf(job.id);
    const queues = this.siteQueues();
    if (place?.at === 'META') {
      const known = grid.job(job.id) as Job;
      const index = grid.sites.indexOf(grid.siteEntry(place.siteId));
      queues[index]?.leaveMeta(known);
      this.costs.unqueued(known, index);
    }
    const { index, explanation, priority } = this.cheapest(job, grid.requirementOf(job), eligibility, queues);
    return { site: this.site(index), priority, reason: ReasonCode.LEAST_COST, explanation };
  }

  whyInMeta(job: Job, entry: SiteEntry): Why {
    const { site, meta } = entry;
    const queued = oursAt(entry);
    const { grid, now } = this.look;
    const { rules } = this;
    const own = grid.index(MetaQueues).of(meta);
    const standings = own.ledger.standings(this.shares, ORDERS[rules.metaOrder]);
    const rates = grid.index(Traffic).of(site.id).rates(now, rules.congestionWindowS);
    const { arrival, service, value, congested } = congestionOf(rates, rules.congestionThreshold);
    const heldOff = job.migratedAt !== null && now - job.migratedAt < rules.holdOffS;
    const ahead = own.aheadOf(job, standings);
    const standing = standings.groups.get(quotaKey(job)) as Standing;
    const numbers = {
      ...quotaTerms(standing, standings),
      ahead,
      queued,
      queueLimit: rules.queueLimit,
      metaQueued: meta.length,
      arrivalRate: arrival,
      serviceRate: service,
      congestion: value,
      congested: congested ? 1 : 0,
      ...(heldOff ? { heldOffUntil: (job.migratedAt as number) + rules.holdOffS } : {}),
    };
    const eligibility = this.eligible.of(grid.requirementOf(job), job);
    const strays = eligibility.ineligible[site.id] !== undefined;
    if (strays || ahead < rules.queueLimit - queued) return { code: ReasonCode.READY, numbers };
    const changes: string[] = [];
    if (standing.userJobs > 1)
      changes.push(
        "Other jobs of its user leave the meta-queue, or the user's quota is raised, which raises its priority.",
      );
    if (heldOff) changes.push('Its hold-off ends; then it may migrate again.');
    else if (congested)
      changes.push(
        rules.migration.rule === 'BOTH_LOWER'
          ? 'Another site has fewer jobs ahead of it and a lower cost; then it migrates there.'
          : 'Another site has no more jobs ahead of it, or no higher cost; then it migrates there.',
      );
    return { code: ReasonCode.META_QUEUE, numbers, changes };
  }

  /** Jobs of meta-queues whose site is up and can run them no more; those that no site can run stay. */
  private strays(plan: PlanBuilder): Newcomer[] {
    const { eligible } = this;
    const strays: Newcomer[] = [];
    this.look.grid.sites.forEach(({ site }, from) => {
      if (site.state !== 'UP') return;
      const meta = this.metaQueues[from] as MetaQueue;
      const strayed = new Set<Requirement>();
      for (const requirement of meta.classes.keys()) {
        if (eligible.of(requirement, null).ineligible[site.id] !== undefined) strayed.add(requirement);
      }
      if (strayed.size === 0 && longestAt(site) === Infinity) return;
      for (const { job, requirement } of meta.items()) {
        const eligibility = eligible.of(requirement, job);
        if (eligibility.ineligible[site.id] === undefined) continue;
        this.passed.add(from, job);
        if (eligibility.waiting !== null) plan.wait(eligibility.waiting);
        else strays.push({ job, requirement, eligibility, from });
      }
    });
    return strays.sort((a, b) => this.look.grid.arrival.compare(a.job, b.job));
  }

  /** From each meta-queue the next jobs, as long as the local queue has room. */
  private feed(plan: PlanBuilder): Fed[] {
    const fed: Fed[] = [];
    for (const [index, entry] of this.look.grid.sites.entries()) {
      const { site } = entry;
      const meta = this.metaQueues[index] as MetaQueue;
      let queued = oursAt(entry);
      if (site.state !== 'UP' || meta.length === 0 || queued >= this.rules.queueLimit) continue;
      const standings = meta.ledger.standings(this.shares, ORDERS[this.rules.metaOrder]);
      for (const { job } of meta.inOrder(standings)) {
        if (queued >= this.rules.queueLimit) break;
        if (this.passed.has(job)) continue;
        if (plan.full) {
          plan.goesOn();
          return fed;
        }
        const move = this.feeding(job, site.id, queued, standings);
        plan.move(move);
        fed.push({ index, job, priority: move.priority });
        this.passed.add(index, job);
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
      reason: ReasonCode.NEXT_IN_META_QUEUE,
      explanation,
    };
  }

  private place(newcomer: Newcomer, queues: readonly SiteQueues[], plan: PlanBuilder): void {
    const { job, requirement, eligibility, from } = newcomer;
    if (from !== null) {
      queues[from]?.leaveMeta(job);
      this.costs.unqueued(job, from);
    }
    const { index, priority, explanation } = this.cheapest(job, requirement, eligibility, queues);
    plan.move({
      jobId: job.id,
      from: from === null ? null : this.site(from).site.id,
      to: this.site(index).site.id,
      queue: 'META',
      priority,
      reason: from === null ? ReasonCode.LEAST_COST : ReasonCode.LEAST_COST_ELSEWHERE,
      explanation,
    });
    const there = queues[index] as SiteQueues;
    this.originStarts?.placed(job, requirement, index, there);
    there.enterMeta(job);
    this.costs.queued(job, index);
    // It may go on at once, when it is there.
    if (there.local < this.rules.queueLimit) plan.goesOn();
  }

  /**
   * The site of the least total cost; ties by the site of submission, which is asked first (section 2), then in site order. Under
   * `ORIGIN_FIRST` no other is asked about a job that would start there at once.
   */
  private cheapest(
    job: Job,
    requirement: Requirement,
    { indices, siteIds, ineligible }: Eligibility,
    queues: readonly SiteQueues[],
  ): { index: number; priority: number; explanation: DispatchExplanation } {
    const ratio = this.history.ratioOf(job);
    const alone = { job, processors: cpusOf(job), quota: this.shares.of(job.userId) };
    const priority: number[] = new Array(indices.length);
    const workAhead = this.workAhead;
    const finds = { order: priority, workAhead };
    for (let i = 0; i < indices.length; i++)
      (queues[indices[i] as number] as SiteQueues).findsAlone(alone, finds, i);
    const costs = this.costs.of(job, requirement, ratio.computation, indices, workAhead);
    const { total } = costs;
    const origin = job.data === null ? -1 : siteIds.indexOf(job.data.originSiteId ?? Number.NaN);
    let at = Math.max(0, origin);
    const stays =
      origin !== -1 &&
      this.originStarts?.allows(job, requirement, indices[origin] as number, queues) === true;
    if (!stays)
      for (let i = 0; i < total.length; i++) if ((total[i] as number) < (total[at] as number)) at = i;
    const prospect = (queues[indices[at] as number] as SiteQueues).prospect([job], comingOf([job]));
    const { standing } = prospect;
    const priorityTerms = quotaTerms(standing, prospect);
    priorityTerms.computation = ratio.computation;
    priorityTerms.dataIntensive = ratio.dataIntensive;
    priorityTerms.runs = ratio.runs;
    const elsewhere = origin === -1 ? null : this.elsewhereOf(origin, indices.length);
    return {
      index: indices[at] as number,
      priority: levelOf(standing.priority),
      explanation: {
        sites: siteIds,
        terms: {
          ...(stays && elsewhere !== null ? { waits: elsewhere } : {}),
          total,
          ...(elsewhere === null ? {} : { elsewhere }),
          network: costs.network,
          computation: costs.computation,
          data: costs.data,
          priority,
        },
        candidates: [siteIds[at] as number],
        ineligible,
        compared: stays || elsewhere === null ? 1 : 2,
        level: levelOf(standing.order),
        priorityTerms,
        ...this.costs.imageOf(job),
      },
    };
  }

  /** 0 for the site at this position, 1 for each other of so many; shared by all jobs. */
  private elsewhereOf(origin: number, sites: number): readonly number[] {
    let known = this.elsewhere.get(origin);
    if (known?.length !== sites) {
      known = new Array<number>(sites).fill(1);
      known[origin] = 0;
      this.elsewhere.set(origin, known);
    }
    return known;
  }

  /** As the sites' queues are now, by position of the site. */
  private siteQueues(): SiteQueues[] {
    return this.look.grid.sites.map(
      (entry, i) =>
        new SiteQueues(
          entry,
          this.metaQueues[i] as MetaQueue,
          this.shares,
          ORDERS[this.rules.metaOrder],
          this.look.now,
        ),
    );
  }

  private countWaiting(plan: PlanBuilder): void {
    this.look.grid.sites.forEach(({ site, meta }, index) => {
      const reason = whyNotUp(site.state) ?? ReasonCode.META_QUEUE;
      plan.wait(reason, meta.length - this.passed.at(index));
    });
  }

  private site(index: number): SiteEntry {
    return this.look.grid.sites[index] as SiteEntry;
  }
}
