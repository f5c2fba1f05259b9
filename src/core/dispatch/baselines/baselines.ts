/**
 * What the other policies are measured against: each eligible site in turn, a drawn one, that of the most powerful free machine. All send
 * every job to a local queue at once and look at nothing that waits there.
 */
import { z } from 'zod';
import type { Grid, SiteEntry } from '../../grid/grid.js';
import type { Requirement } from '../../grid/requirements.js';
import type { MachineState, Placement } from '../../grid/site-resources.js';
import type { DispatchExplanation, Job } from '../../model.js';
import { draw } from '../../random.js';
import { ReasonCode } from '../../reasons.js';
import type { Eligibility } from '../../resources/eligibility.js';
import { PoolsInMind } from '../../resources/licenses.js';
import { placeNow } from '../../resources/placement.js';
import { runInMind, Timeline } from '../../resources/timeline.js';
import { forEachAtRoot } from '../../terms/order.js';
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
    /** The job goes there, for the choices that follow. */
    private readonly moved: (job: Job, site: SiteEntry) => void = () => {},
  ) {}

  decide(plan: PlanBuilder): void {
    forEachAtRoot(this.look.grid, plan, {}, (job, eligibility) => {
      const choice = this.choose(job, eligibility);
      this.moved(job, choice.site);
      plan.take(job, choice);
    });
  }

  choose(job: Job, eligibility: Eligibility): Choice & { site: SiteEntry } {
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
  label: 'Round robin',
  about: 'To each site in turn. A baseline.',
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
  label: 'Random',
  about: 'To a random site. A baseline.',
  begin: (look) =>
    new Baseline(look, ({ id }, { indices, siteIds }) => {
      const drawn = draw(look.seed, id);
      const at = Math.floor(drawn * indices.length);
      return { at, reason: ReasonCode.RANDOM_SITE, candidates: siteIds, priorityTerms: { draw: drawn } };
    }),
  localOrder,
});

/**
 * The site of the most powerful machine that is available, able to run the job and free (Anjum et al., section 8.4: "the most powerful
 * available machine"), as the pass has left it; where none is free, of the most powerful one. Ties by site order.
 */
export const mostFlops = dispatchKind({
  schema: z.strictObject({ kind: z.literal('most-flops') }),
  label: 'Most power',
  about: 'To the site with the most powerful free machine. A baseline.',
  terms: {
    free: { label: 'Free', about: '1: one of its machines that can run the job is free', better: 'HIGH' },
    benchmark: { label: 'Benchmark', about: 'Of the best such machine', better: 'HIGH' },
  },
  begin: (look) => {
    const { grid } = look;
    const machines = new FreeMachines(look);
    return new Baseline(
      look,
      (job, { indices }) => {
        const requirement = grid.requirementOf(job);
        const free: number[] = [];
        const benchmark: number[] = [];
        for (const index of indices) {
          const found = machines.freeAt(index, requirement);
          free.push(found === null ? 0 : 1);
          benchmark.push((found ?? machines.bestAt(index, requirement)).machine.benchmark);
        }
        let at = 0;
        for (let i = 1; i < indices.length; i++) {
          const difference =
            (free[i] as number) - (free[at] as number) ||
            (benchmark[i] as number) - (benchmark[at] as number);
          if (difference > 0) at = i;
        }
        return { at, reason: ReasonCode.MOST_POWER, terms: { free, benchmark }, highestFirst: true };
      },
      (job, site) => machines.take(site, grid.requirementOf(job)),
    );
  },
  localOrder,
});

/** What is free at the sites as a pass goes on. */
class FreeMachines {
  private readonly grid: Grid;
  private readonly free: readonly Timeline[];

  constructor({ grid, now }: DispatchLook) {
    this.grid = grid;
    const copies = new PoolsInMind(now);
    this.free = grid.sites.map((entry) => new Timeline(grid, entry, now, copies));
  }

  /** The most powerful machine on which a job of the class could start, null: none is free. */
  freeAt(site: number, requirement: Requirement): MachineState | null {
    return this.place(site, requirement)?.machines[0] ?? null;
  }

  /** The most powerful machine, free or not, that is able to run the class. */
  bestAt(site: number, { signature }: Requirement): MachineState {
    return this.entry(site).resources.eligible(signature).machines[0] as MachineState;
  }

  /** A job of the class goes there. */
  take(site: SiteEntry, requirement: Requirement): void {
    const index = this.grid.sites.indexOf(site);
    const placement = this.place(index, requirement);
    if (placement !== null) this.free[index]?.start(runInMind(requirement, placement, [], 0, Infinity));
  }

  private place(site: number, requirement: Requirement): Placement | null {
    const eligible = this.entry(site).resources.eligible(requirement.signature);
    const free = this.free[site] as Timeline;
    if (free.full || free.hasRefused(requirement)) return null;
    const placement = placeNow(requirement, eligible, free);
    if (placement === null) free.refuse(requirement);
    return placement;
  }

  private entry(site: number): SiteEntry {
    return this.grid.sites[site] as SiteEntry;
  }
}
