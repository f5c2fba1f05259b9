/**
 * What the other policies are measured against: each eligible site in turn, a drawn one, the most powerful one. All send
 * every job to a local queue at once and look at nothing that waits there.
 */
import { z } from 'zod';
import type { SiteEntry } from '../../grid/grid.js';
import type { DispatchExplanation, Job } from '../../model.js';
import { draw } from '../../random.js';
import { ReasonCode } from '../../reasons.js';
import type { Eligibility } from '../../resources/eligibility.js';
import { forEachAtRoot } from '../../terms/order.js';
import { SitePowers } from '../../terms/power.js';
import {
  type Choice,
  type DispatchLook,
  type DispatchPass,
  dispatchKind,
  type PlanBuilder,
} from '../policy.js';

/** A position among the eligible sites, and what is said of it. */
interface Pick extends Partial<DispatchExplanation> {
  at: number;
  reason: ReasonCode;
}

class Baseline implements DispatchPass {
  constructor(
    private readonly look: DispatchLook,
    private readonly pick: (job: Job, eligibility: Eligibility) => Pick,
  ) {}

  decide(plan: PlanBuilder): void {
    forEachAtRoot(this.look.grid, plan, 'NONE', (job, eligibility) =>
      plan.take(job, this.choose(job, eligibility)),
    );
  }

  choose(job: Job, eligibility: Eligibility): Choice {
    const { siteIds, indices, ineligible } = eligibility;
    const { at, reason, ...said } = this.pick(job, eligibility);
    return {
      site: this.look.grid.sites[indices[at] as number] as SiteEntry,
      priority: 0,
      reason,
      explanation: {
        sites: siteIds,
        terms: {},
        candidates: [siteIds[at] as number],
        ineligible,
        level: null,
        priorityTerms: null,
        ...said,
      },
    };
  }
}

/** Under all of them sites order their queues by their own priorities. */
const localOrder = () => 'OWN_PRIORITY' as const;

/**
 * Each site in turn. Ids of jobs go up one by one, so the id modulo the number of eligible sites takes turns without a
 * memory: two plans of one snapshot are the same, and a dry run is right.
 */
export const roundRobin = dispatchKind({
  schema: z.strictObject({ kind: z.literal('round-robin') }),
  documentation: { jobsGo: 'to each site in turn', fields: '' },
  begin: (look) =>
    new Baseline(look, ({ id }, { indices }) => {
      const turn = id % indices.length;
      return { at: turn, reason: ReasonCode.ROUND_ROBIN, priorityTerms: { turn } };
    }),
  localOrder,
});

/** A drawn one, each equally often; the draw depends on the seed and the job only. */
export const random = dispatchKind({
  schema: z.strictObject({ kind: z.literal('random') }),
  documentation: { jobsGo: 'to a random site', fields: '' },
  begin: (look) =>
    new Baseline(look, ({ id }, { indices, siteIds }) => {
      const drawn = draw(look.seed, id);
      const at = Math.floor(drawn * indices.length);
      return { at, reason: ReasonCode.RANDOM_SITE, candidates: siteIds, priorityTerms: { draw: drawn } };
    }),
  localOrder,
});

/** The site whose machines that are able to run the job have the most power; ties by site order. */
export const mostFlops = dispatchKind({
  schema: z.strictObject({ kind: z.literal('most-flops') }),
  documentation: { jobsGo: 'to the site with the most power', fields: '' },
  begin: (look) => {
    const { grid } = look;
    const powers = new SitePowers(grid.sites);
    return new Baseline(look, (job, { indices }) => {
      const { total } = powers.of(grid.requirementOf(job).signature);
      const power = indices.map((index) => total[index] as number);
      let at = 0;
      for (let i = 1; i < power.length; i++) if ((power[i] as number) > (power[at] as number)) at = i;
      return { at, reason: ReasonCode.MOST_POWER, terms: { power }, highestFirst: true };
    });
  },
  localOrder,
});
