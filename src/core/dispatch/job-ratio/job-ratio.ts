/**
 * JBMS (AL-Khateeb et al.; exact rules: job-ratio.md): jobs go in batches to the sites that rank best for their share of
 * computation and data access, while the sites' queues have room; the others wait for the next round.
 *
 * Decision: as in the paper, all jobs of a round are ranked before any is submitted, so the queue ratio counts what was
 * queued when the round began; what the round itself sends is counted by the room.
 */
import { z } from 'zod';
import { JobHistory, type JobRatio } from '../../data/history.js';
import type { SiteEntry } from '../../grid/grid.js';
import type { Job } from '../../model.js';
import { ReasonCode } from '../../reasons.js';
import type { Eligibility } from '../../resources/eligibility.js';
import { fairness, forEachAtRoot, standingsAtRoot } from '../../terms/order.js';
import { SitePowers } from '../../terms/power.js';
import { inRankOrder, ranksOf, restsOf, sharesOf } from '../../terms/site-rank.js';
import { Transfers } from '../../terms/transfers.js';
import { oursAt, waitingThere } from '../../terms/waiting-there.js';
import {
  type Choice,
  type DispatchLook,
  type DispatchPass,
  dispatchKind,
  type PlanBuilder,
  QUEUE_LIMIT,
  ROOM,
} from '../policy.js';
import { Batcher } from './batches.js';

const schema = z.strictObject({
  kind: z.literal('job-ratio'),
  queueLimit: z.int().min(1).max(1_000_000).default(100).meta(QUEUE_LIMIT),
  fairness,
});
type Rules = z.infer<typeof schema>;

export const jobRatio = dispatchKind({
  schema,
  label: 'Job ratio',
  about: 'Batches of jobs go to the sites that rank best by power, data and queue (AL-Khateeb et al.).',
  terms: {
    rank: {
      ...{
        label: 'Rank',
        about: 'Power and data access weighted by the job ratio, and the queue',
        better: 'HIGH',
      },
    },
    ppr: { label: 'Power', about: "The site's fraction of all power (PPR)", better: 'HIGH' },
    dpr: {
      label: 'Data',
      about: "1 minus the site's fraction of all data access cost (DPR)",
      better: 'HIGH',
    },
    qr: { label: 'Queue', about: "1 minus the site's fraction of all queued jobs (QR)", better: 'HIGH' },
    dataAccessCost: {
      label: 'Data access',
      about: 'Time to bring the inputs and the image there',
      unit: 'S',
      better: 'LOW',
    },
    room: ROOM,
    dataIntensive: { label: 'Data access fraction', unit: 'SHARE' },
  },
  begin: (look, rules) => new JobRatioPass(look, rules),
  localOrder: () => 'OWN_PRIORITY',
  queueLimit: (rules) => rules.queueLimit,
  inBatches: true,
  learns: true,
  standings: standingsAtRoot,
});

/** What the jobs of a class have in common, by eligible site. */
interface ClassFacts {
  ppr: number[];
  qr: number[];
  /** Of jobs that read nothing: no cost, and what follows from it. */
  noCost: number[];
  noCostDpr: number[];
  /** By their share of computation, the only thing that still tells their ranks apart. */
  readingNothing: Map<number, Ranked['terms']>;
}

interface Ranked {
  ratio: JobRatio;
  /** By eligible site. */
  terms: Record<'rank' | 'ppr' | 'dpr' | 'qr' | 'dataAccessCost', number[]>;
}

class JobRatioPass implements DispatchPass {
  private readonly batcher: Batcher;
  private readonly powers: SitePowers;
  private readonly transfers: Transfers;
  private readonly history: JobHistory;
  private readonly classes = new Map<Eligibility, ClassFacts>();

  constructor(
    private readonly look: DispatchLook,
    private readonly rules: Rules,
  ) {
    const { grid } = look;
    const { sites } = grid;
    this.batcher = new Batcher(sites.map((entry) => Math.max(0, rules.queueLimit - oursAt(entry))));
    this.powers = new SitePowers(sites);
    this.history = grid.index(JobHistory);
    this.transfers = new Transfers(grid, look.now);
  }

  decide(plan: PlanBuilder): void {
    const { room } = this.batcher;
    forEachAtRoot(this.look.grid, plan, this.rules, (job, eligibility) => {
      // Whoever finds every door closed need not be ranked.
      if (!eligibility.indices.some((index) => (room[index] as number) > 0)) {
        plan.wait(ReasonCode.QUEUES_FULL);
        return;
      }
      const ranked = this.rank(job, eligibility);
      const site = this.siteFor(ranked, eligibility);
      plan.take(job, this.choice(job, site, ranked, eligibility));
      this.batcher.take(site);
    });
  }

  choose(job: Job, eligibility: Eligibility): Choice {
    const ranked = this.rank(job, eligibility);
    return this.choice(job, this.siteFor(ranked, eligibility), ranked, eligibility);
  }

  /** Index into the grid's sites; −1: none has room. */
  private siteFor({ terms }: Ranked, { indices }: Eligibility): number {
    return this.batcher.siteFor(inRankOrder(terms.rank, indices));
  }

  private choice(job: Job, site: number, { ratio, terms }: Ranked, eligibility: Eligibility): Choice {
    const { siteIds, indices, ineligible } = eligibility;
    const { computation, dataIntensive, runs } = ratio;
    const { room } = this.batcher;
    const entry = site === -1 ? null : (this.look.grid.sites[site] as SiteEntry);
    return {
      site: entry,
      priority: 0,
      reason: reasonOf(site, terms.rank, indices),
      explanation: {
        sites: siteIds,
        terms: { ...terms, room: indices.map((index) => room[index] as number) },
        candidates: entry === null ? [] : [entry.site.id],
        ineligible,
        highestFirst: true,
        compared: 1,
        level: null,
        priorityTerms: { computation, dataIntensive, runs },
        ...this.transfers.imageOf(job),
      },
    };
  }

  private rank(job: Job, eligibility: Eligibility): Ranked {
    const facts = this.factsFor(job, eligibility);
    const ratio = this.history.ratioOf(job);
    if (job.image !== null || (job.data !== null && job.data.inputs.length > 0)) {
      const access = this.transfers.accessS(job);
      const costs = eligibility.indices.map((index) => access[index] as number);
      return rankedBy(ratio, facts, costs, restsOf(costs));
    }
    const known = facts.readingNothing.get(ratio.computation);
    if (known !== undefined) return { ratio, terms: known };
    const ranked = rankedBy(ratio, facts, facts.noCost, facts.noCostDpr);
    facts.readingNothing.set(ratio.computation, ranked.terms);
    return ranked;
  }

  private factsFor(job: Job, eligibility: Eligibility): ClassFacts {
    let facts = this.classes.get(eligibility);
    if (facts === undefined) {
      const { indices } = eligibility;
      const { total } = this.powers.of(this.look.grid.requirementOf(job).signature);
      const noCost = indices.map(() => 0);
      facts = {
        ppr: sharesOf(indices.map((index) => total[index] as number)),
        qr: restsOf(
          indices.map((index) => queuedAt(this.look.grid.sites[index] as SiteEntry, this.look.now)),
        ),
        noCost,
        noCostDpr: restsOf(noCost),
        readingNothing: new Map(),
      };
      this.classes.set(eligibility, facts);
    }
    return facts;
  }
}

/** Jobs that wait at the site, with its own scheduler too: the paper's rank counts jobs, not how long they take. */
const queuedAt = (entry: SiteEntry, now: number): number =>
  entry.queue.length + waitingThere(entry, now, null).jobs;

function rankedBy(ratio: JobRatio, { ppr, qr }: ClassFacts, dataAccessCost: number[], dpr: number[]): Ranked {
  return { ratio, terms: { rank: ranksOf(ratio, ppr, dpr, qr), ppr, dpr, qr, dataAccessCost } };
}

function reasonOf(site: number, rank: readonly number[], indices: readonly number[]): ReasonCode {
  if (site === -1) return ReasonCode.QUEUES_FULL;
  const [best] = inRankOrder(rank, indices);
  return site === best ? ReasonCode.BEST_RANK : ReasonCode.BEST_RANK_WITH_ROOM;
}
