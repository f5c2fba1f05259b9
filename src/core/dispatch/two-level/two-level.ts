/**
 * The Meta-Scheduler of Pasquali et al. (section 4; exact rules: two-level.md, "Level 1"): each job gets a priority, and goes
 * to the site with the least queued work of at least that priority (Load), then the fewest such jobs (Ordering), then by
 * draw.
 */
import { z } from 'zod';
import { MAX_WINDOW, Margins, marginOf } from '../../data/margins.js';
import type { SiteEntry } from '../../grid/grid.js';
import type { LocalOrder } from '../../local/policy.js';
import { effectivePriority, type Job, MAX_PRIORITY, type MsTerms } from '../../model.js';
import { draw } from '../../random.js';
import { ReasonCode } from '../../reasons.js';
import type { Eligibility } from '../../resources/eligibility.js';
import { RankedSums } from '../../structures/ranked-sums.js';
import { forEachAtRoot } from '../../terms/order.js';
import { waitingThere } from '../../terms/waiting-there.js';
import {
  type Choice,
  type DispatchLook,
  type DispatchPass,
  dispatchKind,
  type PlanBuilder,
} from '../policy.js';
import { highestPriority, meanOf, msPriority } from './priority.js';
import { QueuedWork } from './queued-work.js';

const weight = (title: string, description: string) =>
  z.number().min(0).max(MAX_PRIORITY).meta({ title, description });
const delta = z.int().min(0).max(64);
const deltas = z
  .record(z.string().min(1).max(200), delta)
  .refine((values) => Object.keys(values).length <= 1000, 'must not list more than 1000 names')
  .default({});

const schema = z
  .strictObject({
    kind: z.literal('two-level'),
    mode: z.enum(['MS', 'LS', 'NONE']).meta({
      title: 'Who sets priorities',
      description:
        'MS: the root sets them at dispatch. LS: each site computes them in every cycle. NONE: no priorities; first come, first served at both levels.',
    }),
    /** `max` in the paper. */
    maxDelta: z.int().min(1).max(64).meta({
      title: 'Highest value of a term',
      description: 'Each term is between 0 and this value. A larger value distinguishes jobs more finely.',
    }),
    /** `N` in the paper. */
    window: z.int().min(1).max(MAX_WINDOW).meta({
      title: 'Margins averaged',
      description: 'A deadline is near or far compared with the mean margin of this many earlier jobs.',
      unit: 'jobs',
    }),
    weights: z.strictObject({
      deadline: weight(
        'Weight of a near deadline',
        "The nearer its deadline, the higher a job's priority. Twice the weight, twice the points.",
      ),
      licenses: weight(
        'Weight of many licenses',
        'Jobs that request many licenses go before those that request few.',
      ),
      user: weight("Weight of the user's class", 'Gold before silver before regular.'),
      project: weight('Weight of the project', 'Multiplies the values of projects.').default(1),
      service: weight('Weight of the application', 'Multiplies the values of applications.').default(1),
    }),
    userClassDelta: z.strictObject({ GOLD: delta, SILVER: delta, REGULAR: delta }).nullable().meta({
      title: 'Value of each class',
      description:
        'Values of gold, silver and regular before weighting. Null: the highest value, half of it (rounded down), and 0.',
    }),
    projectDelta: deltas.meta({
      title: 'Values of projects',
      description:
        'Values of projects before weighting, by name; others count 0. The submitter of a job names its project; the service does not check who belongs to a project.',
    }),
    serviceDelta: deltas.meta({
      title: 'Values of applications',
      description: 'Values of applications before weighting, by name; others count 0.',
    }),
  })
  .superRefine((policy, context) => {
    const { GOLD = 0, SILVER = 0, REGULAR = 0 } = policy.userClassDelta ?? {};
    const { projectDelta, serviceDelta } = policy;
    const all = { userClassDelta: { GOLD, SILVER, REGULAR }, projectDelta, serviceDelta };
    for (const [field, values] of Object.entries(all)) {
      for (const [name, value] of Object.entries(values)) {
        if (value <= policy.maxDelta) continue;
        context.addIssue({
          code: 'custom',
          path: [field, name],
          message: `must not be above maxDelta (${policy.maxDelta})`,
          input: value,
        });
      }
    }
    if (highestPriority(policy) > MAX_PRIORITY) {
      context.addIssue({
        code: 'custom',
        path: ['weights'],
        message: `maxDelta times the sum of the weights must not be above ${MAX_PRIORITY}`,
        input: policy.weights,
      });
    }
  });
type Rules = z.infer<typeof schema>;

const LOCAL_ORDERS: Record<Rules['mode'], LocalOrder> = {
  MS: 'PRIORITY',
  LS: 'OWN_PRIORITY',
  NONE: 'ARRIVAL',
};

export const DEFAULT_TWO_LEVEL = {
  kind: 'two-level',
  mode: 'MS',
  maxDelta: 10,
  window: 100,
  weights: { deadline: 1, licenses: 1, user: 1, project: 1, service: 1 },
  userClassDelta: null,
  projectDelta: {},
  serviceDelta: {},
} as const;

export const twoLevel = dispatchKind({
  schema,
  label: 'Two levels',
  about:
    'Each job goes immediately to the site with the least queued work of its priority or above, then the fewest such jobs (Pasquali et al.).',
  initial: DEFAULT_TWO_LEVEL,
  terms: {
    load: {
      ...{ label: 'Load', about: "Work queued there with the job's priority or above: estimate × benchmark" },
      better: 'LOW',
    },
    ordering: {
      ...{ label: 'Ordering', about: "Jobs queued there with the job's priority or above" },
      ...{ unit: 'JOBS', better: 'LOW' },
    },
    deadline: { label: 'Deadline' },
    licenses: { label: 'Licenses' },
    user: { label: 'User class' },
    project: { label: 'Project' },
    service: { label: 'Application' },
  },
  begin: (look, rules) => new TwoLevelPass(look, rules),
  localOrder: ({ mode }) => LOCAL_ORDERS[mode],
});

/** Every job goes somewhere at once. */
type TwoLevelChoice = Choice & { site: SiteEntry; index: number };

class TwoLevelPass implements DispatchPass {
  private readonly margins: number[];
  private readonly queued: RankedSums;
  /** What this pass has sent there. */
  private readonly sent: RankedSums;
  private readonly load: Float64Array;
  /** Sites with more than their local queues, by position: it counts at every level, for nobody knows its priority. */
  private readonly more: { index: number; entry: SiteEntry }[] = [];
  private readonly ordering: Float64Array;

  constructor(
    private readonly look: DispatchLook,
    private readonly rules: Rules,
  ) {
    const { grid } = look;
    this.margins = grid.index(Margins).last(rules.window);
    this.queued = grid.index(QueuedWork).sums;
    this.sent = new RankedSums(grid.sites.length);
    this.load = new Float64Array(grid.sites.length);
    this.ordering = new Float64Array(grid.sites.length);
    grid.sites.forEach((entry, index) => {
      if (waitingThere(entry, look.now, null).jobs > 0) this.more.push({ index, entry });
    });
  }

  decide(plan: PlanBuilder): void {
    forEachAtRoot(this.look.grid, plan, {}, (job, eligibility) => {
      const choice = this.choose(job, eligibility);
      this.moved(job, choice);
      plan.take(job, choice);
    });
  }

  choose(job: Job, eligibility: Eligibility): TwoLevelChoice {
    const { priority, terms } = this.priorityOf(job);
    const level = this.rules.mode === 'NONE' ? 0 : effectivePriority({ priority, boost: job.boost });
    const { grid, seed, now } = this.look;
    const { indices, siteIds } = eligibility;
    this.queued.valuesFrom(level, this.load, this.sent);
    this.queued.countsFrom(level, this.ordering, this.sent);
    for (const { index, entry } of this.more) {
      const { jobs, work } = waitingThere(entry, now, job);
      (this.load[index] as number) += work;
      (this.ordering[index] as number) += jobs;
    }
    const load = indices.map((index) => this.load[index] as number);
    const ordering = indices.map((index) => this.ordering[index] as number);
    const { reason, left } = leastLoaded(load, ordering);
    const drawn = left.length === 1 ? 0 : Math.floor(draw(seed, job.id) * left.length);
    const chosen = left[drawn] as number;
    const index = indices[chosen] as number;
    return {
      site: grid.sites[index] as SiteEntry,
      index,
      priority,
      reason,
      explanation: {
        sites: siteIds,
        terms: { load, ordering },
        candidates: left.map((i) => siteIds[i] as number),
        ineligible: eligibility.ineligible,
        level,
        priorityTerms: terms,
      },
    };
  }

  /** The job is taken to have gone there, for the choices that follow. */
  private moved(job: Job, { index, priority }: TwoLevelChoice): void {
    const level = effectivePriority({ priority, boost: job.boost });
    this.sent.add(index, level, job.estimateS * job.benchmark, 1);
    const margin = marginOf(job);
    if (margin === null) return;
    this.margins.push(margin);
    if (this.margins.length > this.rules.window) this.margins.shift();
  }

  private priorityOf(job: Job): { priority: number; terms: MsTerms | null } {
    if (this.rules.mode === 'NONE') return { priority: 0, terms: null };
    const { priority, ...terms } = msPriority(
      job,
      job.deadline === null ? null : meanOf(this.margins),
      this.look.grid.licenseKinds,
      this.rules,
    );
    return { priority, terms };
  }
}

/**
 * The choice by Load, then Ordering, over sites in stable order: positions that are left, and the rule that decided. More
 * than one position is left to a draw.
 */
export function leastLoaded(
  load: readonly number[],
  ordering: readonly number[],
): { reason: ReasonCode; left: number[] } {
  const idle = load.indexOf(0);
  if (idle !== -1) return { reason: ReasonCode.IDLE_SITE, left: [idle] };
  const byLoad = allLeast(load, [...load.keys()]);
  if (byLoad.length === 1) return { reason: ReasonCode.LEAST_LOAD, left: byLoad };
  const byOrdering = allLeast(ordering, byLoad);
  return {
    reason: byOrdering.length === 1 ? ReasonCode.LEAST_ORDERING : ReasonCode.RANDOM_TIE_BREAK,
    left: byOrdering,
  };
}

function allLeast(values: readonly number[], among: readonly number[]): number[] {
  let least = Infinity;
  let left: number[] = [];
  for (const i of among) {
    const value = values[i] as number;
    if (value < least) {
      least = value;
      left = [i];
    } else if (value === least) left.push(i);
  }
  return left;
}
