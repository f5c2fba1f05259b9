/**
 * The global scheduler of Santoso et al. (section 2; exact rules: hierarchical-clusters.md): the root holds jobs until a site
 * can start them, or has room in its queue.
 *
 * A site takes a job if nobody waits there and it fits now, or if fewer than `queueLimit` wait there. Of those that can start
 * it now, the one that runs the fewest jobs gets it; else the one with the shortest queue, then the fewest running jobs;
 * then the first.
 *
 * As long as nothing is given back, a class that was refused stays refused, and "scan again after each dispatch" is the
 * same as going through the queues once; classes of requirements are asked, not jobs.
 */
import { z } from 'zod';
import type { SiteEntry } from '../../grid/grid.js';
import type { QueueOrder } from '../../grid/queue.js';
import type { Requirement } from '../../grid/requirements.js';
import { ageBoundS } from '../../local/age.js';
import type { Job } from '../../model.js';
import { ReasonCode } from '../../reasons.js';
import { type Eligibility, EligibleSites, whyBusy } from '../../resources/eligibility.js';
import type { Timeline } from '../../resources/timeline.js';
import { fairness, rootOrder, standingsAtRoot } from '../../terms/order.js';
import { powerOf } from '../../terms/power.js';
import { StartsNow } from '../../terms/starts-now.js';
import { oursAt } from '../../terms/waiting-there.js';
import {
  type Choice,
  type DispatchLook,
  type DispatchPass,
  dispatchKind,
  type PlanBuilder,
  QUEUE_LIMIT,
  QUEUED,
  type Why,
} from '../policy.js';

const schema = z.strictObject({
  kind: z.literal('queues'),
  order: z.enum(['FCFS', 'SJF', 'FF', 'S-SJF', 'L-SJF']).meta({
    title: 'Order',
    description:
      'FCFS: by arrival. SJF: shortest first. FF: by arrival, skipping jobs that do not fit. S-SJF and L-SJF: one queue per number of tasks, shortest first, from the fewest tasks up or from the most down.',
  }),
  queueLimit: z
    .int()
    .min(0)
    .max(1_000_000)
    .meta({
      ...QUEUE_LIMIT,
      description:
        'Maximum number of jobs waiting at a site. 0: a job leaves the root only when it can start.',
    }),
  ageBoundS,
  fairness,
});
export type QueuesPolicy = z.infer<typeof schema>;

export const queues = dispatchKind({
  schema,
  label: 'Queues at the root',
  about: 'Jobs wait at the root until a site has room; then the first in order leaves (Santoso et al.).',
  initial: { kind: 'queues', order: 'FCFS', queueLimit: 0, ageBoundS: 86_400 },
  terms: {
    waits: { label: 'Would wait', about: '0: it can start there immediately', better: 'LOW' },
    queued: QUEUED,
    running: { label: 'Running', about: 'Jobs running there', unit: 'JOBS', better: 'LOW' },
    load: { label: 'Load', about: 'Jobs running there, relative to its capacity', better: 'LOW' },
  },
  begin: (look, rules) => new QueuesPass(look, rules),
  localOrder: () => 'OWN_PRIORITY',
  queueLimit: (rules) => rules.queueLimit,
  standings: standingsAtRoot,
});

const ORDERS: Record<QueuesPolicy['order'], QueueOrder> = {
  FCFS: 'ARRIVAL',
  FF: 'ARRIVAL',
  SJF: 'SHORTEST',
  'S-SJF': 'NARROWEST',
  'L-SJF': 'WIDEST',
};

/** Lanes: jobs wait behind the first of theirs. Beside these, one for each number of tasks. */
const EVERYBODY = 0;
const NOBODY = -1;

/** A site as the pass has left it. */
interface SiteRoom {
  readonly entry: SiteEntry;
  readonly free: Timeline;
  queued: number;
  /** Σ CPUs·benchmark of its machines that take jobs: running jobs are weighed by it. */
  readonly capacity: number;
  /** Counts, from 1, what the pass has taken there. */
  version: number;
  /** CPUs free on the machine with the most of them, at `freeAt`. */
  mostFreeCpus: number;
  freeAt: number;
}

class QueuesPass implements DispatchPass {
  private readonly sites: SiteRoom[];
  /** Jobs submitted before are overtaken no more. */
  private readonly agedBefore: number;
  private readonly eligible: EligibleSites;
  private readonly startsNow: StartsNow;
  /** By class and site: the version at which the class was found to fit. */
  private readonly known = new Map<Requirement, Int32Array>();
  /** By site: 1 where the job that was asked about last could start at once. */
  private readonly starts: Uint8Array;
  /** By lane: the job that holds it up. */
  private readonly heads = new Map<number, number>();

  constructor(
    private readonly look: DispatchLook,
    private readonly rules: QueuesPolicy,
  ) {
    const { grid, now } = look;
    this.agedBefore = rules.ageBoundS === null ? -Infinity : now - rules.ageBoundS;
    this.eligible = grid.index(EligibleSites);
    this.startsNow = new StartsNow(grid, now);
    this.sites = grid.sites.map((entry) => ({
      entry,
      free: this.startsNow.freeAt(entry),
      queued: oursAt(entry),
      capacity: powerOf(entry.resources.machines.filter(({ machine }) => machine.available)),
      version: 1,
      mostFreeCpus: 0,
      freeAt: 0,
    }));
    this.starts = new Uint8Array(this.sites.length);
  }

  decide(plan: PlanBuilder): void {
    const { root } = this.look.grid;
    const slots = this.inOrder(plan);
    let left = slots.length;
    for (const slot of slots) {
      const lane = this.isAged(slot) ? EVERYBODY : this.laneOf(root.requirements[slot] as Requirement);
      if (this.heads.has(lane)) {
        plan.wait(ReasonCode.BEHIND_HEAD);
        left--;
        continue;
      }
      if (plan.full) break;
      left--;
      if (this.move(slot, plan)) continue;
      plan.wait(ReasonCode.NO_SITE_HAS_ROOM);
      if (lane !== NOBODY) this.heads.set(lane, root.ids[slot] as number);
      if (lane === EVERYBODY) break;
    }
    if (plan.full) plan.cut(left);
    else plan.wait(ReasonCode.BEHIND_HEAD, left);
  }

  choose(job: Job, eligibility: Eligibility): Choice {
    const chosen = this.siteFor(job, this.look.grid.requirementOf(job), eligibility);
    return this.choiceOf(job, chosen, eligibility);
  }

  whyWaits(job: Job): Why {
    const requirement = this.look.grid.requirementOf(job);
    const headJob = this.heads.get(EVERYBODY) ?? this.heads.get(this.laneOf(requirement)) ?? job.id;
    const numbers = { queueLimit: this.rules.queueLimit, headJob };
    return {
      code: headJob === job.id ? ReasonCode.NO_SITE_HAS_ROOM : ReasonCode.BEHIND_HEAD,
      numbers,
    };
  }

  /**
   * The jobs that some site can take: those that have waited too long by arrival, then the others in the policy's order. The
   * rest is noted in the plan: nobody waits behind it.
   */
  private inOrder(plan: PlanBuilder): number[] {
    const { grid } = this.look;
    const { root } = grid;
    const { order, fairness } = this.rules;
    const slots = rootOrder(grid, ORDERS[order], fairness);
    const aged: number[] = [];
    const others: number[] = [];
    for (let i = 0; i < slots.length; i++) {
      const slot = slots[i] as number;
      const { waiting } = this.eligibility(slot);
      if (waiting !== null) plan.wait(waiting);
      else if (this.isAged(slot)) aged.push(slot);
      else others.push(slot);
    }
    if (aged.length === 0) return others;
    aged.sort((a, b) => root.compareArrival(a, b));
    // Sorting is stable: among those of one boost, this order stays.
    return aged.concat(others).sort((a, b) => root.compareBoosts(a, b));
  }

  private isAged(slot: number): boolean {
    return (this.look.grid.root.submits[slot] as number) < this.agedBefore;
  }

  private eligibility(slot: number): Eligibility {
    const { root } = this.look.grid;
    return this.eligible.of(root.requirements[slot] as Requirement, root.jobs[slot] as Job);
  }

  /** Who waits behind a job that does not leave. */
  private laneOf({ tasks }: Requirement): number {
    const { order } = this.rules;
    return order === 'FF' ? NOBODY : order === 'S-SJF' || order === 'L-SJF' ? tasks : EVERYBODY;
  }

  /** Moves the job if a site takes it, and counts it in there. */
  private move(slot: number, plan: PlanBuilder): boolean {
    const { root } = this.look.grid;
    const job = root.jobs[slot] as Job;
    const requirement = root.requirements[slot] as Requirement;
    const eligibility = this.eligibility(slot);
    const index = this.siteFor(job, requirement, eligibility);
    if (index === -1) return false;
    plan.take(job, this.choiceOf(job, index, eligibility));
    const site = this.sites[index] as SiteRoom;
    const start = this.starts[index] === 1 ? this.startsNow.of(site.free, job, requirement) : null;
    if (start === null) site.queued++;
    else {
      site.free.start(start);
      site.version++;
      // A copy of a grid-wide pool is missing at every site.
      if (start.licenses.some(({ pool }) => pool.license.siteId === null))
        for (const other of this.sites) other.version++;
    }
    return true;
  }

  /** Index of the site that takes the job, -1: none now. Notes which of the eligible sites could start it at once. */
  private siteFor(job: Job, requirement: Requirement, { indices }: Eligibility): number {
    let known = this.known.get(requirement);
    if (known === undefined) {
      known = new Int32Array(this.sites.length);
      this.known.set(requirement, known);
    }
    let best = -1;
    let bestQueued = Infinity;
    let bestRunning = Infinity;
    for (let i = 0; i < indices.length; i++) {
      const index = indices[i] as number;
      const site = this.sites[index] as SiteRoom;
      const starts = this.canStart(index, known, job, requirement);
      this.starts[index] = starts ? 1 : 0;
      if (!starts && site.queued >= this.rules.queueLimit) continue;
      const queued = starts ? -1 : site.queued;
      const running = site.free.running / site.capacity;
      if (queued > bestQueued || (queued === bestQueued && running >= bestRunning)) continue;
      best = index;
      bestQueued = queued;
      bestRunning = running;
    }
    return best;
  }

  /** What `siteFor` has found, in numbers. */
  private choiceOf(job: Job, chosen: number, eligibility: Eligibility): Choice {
    const { queueLimit } = this.rules;
    const sites: number[] = [];
    const waits: number[] = [];
    const queued: number[] = [];
    const running: number[] = [];
    const load: number[] = [];
    let ineligible: Record<number, ReasonCode> = eligibility.ineligible;
    for (const index of eligibility.indices) {
      const site = this.sites[index] as SiteRoom;
      const { id } = site.entry.site;
      if (this.starts[index] === 0 && site.queued >= queueLimit) {
        if (ineligible === eligibility.ineligible) ineligible = { ...ineligible };
        ineligible[id] = ReasonCode.SITE_QUEUE_FULL;
        continue;
      }
      sites.push(id);
      waits.push(1 - (this.starts[index] as number));
      queued.push(site.queued);
      running.push(site.free.running);
      load.push(site.free.running / site.capacity);
    }
    const site = chosen === -1 ? null : (this.sites[chosen] as SiteRoom).entry;
    const reason = this.starts[chosen] === 1 ? ReasonCode.STARTS_AT_ONCE : ReasonCode.SHORTEST_QUEUE;
    return {
      site,
      priority: 0,
      reason: site === null ? ReasonCode.NO_SITE_HAS_ROOM : reason,
      explanation: {
        sites,
        terms: { waits, queued, load, running },
        compared: 3,
        candidates: site === null ? [] : [site.site.id],
        ineligible,
        level: null,
        priorityTerms: {
          tasks: job.tasks,
          work: job.estimateS * job.benchmark,
          waited: this.look.now - job.submittedAt,
        },
      },
    };
  }

  /** Whether the site could start the job at once: nobody waits there, and it fits. `known`: of its class. */
  private canStart(index: number, known: Int32Array, job: Job, requirement: Requirement): boolean {
    const site = this.sites[index] as SiteRoom;
    const { free, entry } = site;
    if (site.queued > 0 || free.full) return false;
    if (known[index] !== site.version) {
      if (free.hasRefused(requirement)) return false;
      const eligible = entry.resources.eligible(requirement.signature);
      const fits =
        requirement.cpusPerTask <= mostFreeCpus(site) && whyBusy(requirement, eligible, free) === null;
      if (!fits) {
        free.refuse(requirement);
        return false;
      }
      known[index] = site.version;
    }
    return free.dependsOnClass(requirement) || this.startsNow.of(free, job, requirement) !== null;
  }
}

function mostFreeCpus(site: SiteRoom): number {
  if (site.freeAt !== site.version) {
    site.freeAt = site.version;
    site.mostFreeCpus = site.free.mostCpus;
  }
  return site.mostFreeCpus;
}
