/**
 * The Meta-Scheduler of Pasquali et al. (section 4; exact rules: two-level.md, "Level 1"): each job gets a priority, and goes
 * to the site with the least queued work of at least that priority (Load), then the fewest such jobs (Ordering), then by
 * draw.
 */
import { effectivePriority, type Grid, type SiteEntry } from '../grid.js';
import type { Job, MsTerms } from '../model.js';
import type { Policy, TwoLevelPolicy } from '../policy.js';
import { marginOf, meanOf, msPriority } from '../priority/ms-priority.js';
import { draw } from '../random.js';
import { ReasonCode } from '../reasons.js';
import type { Eligibility } from '../resources/eligibility.js';
import { type Choice, type DispatchPass, inOrderOfArrival, type PlanBuilder } from './policy.js';

/** Every job goes somewhere at once. */
type TwoLevelChoice = Choice & { site: SiteEntry };

export class TwoLevelDispatch implements DispatchPass {
  private readonly rules: TwoLevelPolicy;
  private readonly margins: number[];
  private readonly moves: {
    site: SiteEntry;
    priority: number;
    work: number;
  }[] = [];

  constructor(
    private readonly grid: Grid,
    private readonly policy: Policy,
  ) {
    this.rules = policy.dispatch as TwoLevelPolicy;
    this.margins = grid.lastMargins(this.rules.window);
  }

  decide(plan: PlanBuilder): void {
    inOrderOfArrival(this.grid, plan, (job, eligibility) => {
      const choice = this.choose(job, eligibility);
      this.moved(job, choice);
      plan.take(job, choice);
    });
  }

  choose(job: Job, eligibility: Eligibility): TwoLevelChoice {
    const { priority, terms } = this.priorityOf(job);
    const level = this.rules.mode === 'NONE' ? 0 : effectivePriority({ priority, boost: job.boost });
    const { sites } = this.grid;
    const { indices, siteIds } = eligibility;
    const load: number[] = new Array(indices.length);
    const ordering: number[] = new Array(indices.length);
    for (let i = 0; i < indices.length; i++) {
      const site = (sites[indices[i] as number] as SiteEntry).load;
      load[i] = site.loadFrom(level);
      ordering[i] = site.countFrom(level);
    }
    const { reason, left } = leastLoaded(load, ordering);
    const drawn = left.length === 1 ? 0 : Math.floor(draw(this.policy.seed, job.id) * left.length);
    const chosen = left[drawn] as number;
    return {
      site: sites[indices[chosen] as number] as SiteEntry,
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

  undo(): void {
    for (const { site, priority, work } of this.moves) site.load.remove(priority, work);
  }

  /** The job is taken to have gone there, for the choices that follow. */
  private moved(job: Job, choice: TwoLevelChoice): void {
    const priority = effectivePriority({
      priority: choice.priority,
      boost: job.boost,
    });
    const work = job.estimateS * job.benchmark;
    choice.site.load.add(priority, work);
    this.moves.push({ site: choice.site, priority, work });
    const margin = marginOf(job);
    if (margin === null) return;
    this.margins.push(margin);
    if (this.margins.length > this.rules.window) this.margins.shift();
  }

  private priorityOf(job: Job): { priority: number; terms: MsTerms | null } {
    if (this.rules.mode === 'NONE') return { priority: 0, terms: null };
    const { priority, deadline, licenses, user } = msPriority(
      job,
      job.deadline === null ? null : meanOf(this.margins),
      this.grid.licenseKinds,
      this.rules,
    );
    return { priority, terms: { deadline, licenses, user } };
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
    reason: byOrdering.length === 1 ? ReasonCode.LEAST_ORDERING : ReasonCode.DRAWN,
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
