/**
 * The seam for dispatch policies. A policy looks at the grid once (when it is made) and then decides on the jobs that wait,
 * into a plan. It takes its own earlier moves into account, on the grid's own structures, and `undo` leaves the grid as
 * it was.
 *
 * To add one: a member of `dispatchPolicySchema` in ../policy.ts, a file here, an entry in `policies` in cycle.ts.
 */
import type { Grid, SiteEntry } from '../grid.js';
import type { DispatchExplanation, Job, Move } from '../model.js';
import type { Policy } from '../policy.js';
import { ReasonCode, type WaitingReason } from '../reasons.js';
import { type Eligibility, eligibilityOf } from '../resources/eligibility.js';
import type { Requirement } from '../resources/requirements.js';

/** What a policy says of one job. */
export interface Choice {
  /** null: it stays at the root, for the reason. */
  site: SiteEntry | null;
  priority: number;
  reason: ReasonCode;
  explanation: DispatchExplanation;
}

export interface DispatchPass {
  /** It may leave jobs at the root although sites could take them: there is no room yet. */
  readonly holds?: true;
  /** Decides on every waiting job, into the plan, as long as the plan has room. */
  decide(plan: PlanBuilder): void;
  /** Where the job would go if it came next: dry runs and explanations. `eligibility` names at least one site. */
  choose(job: Job, eligibility: Eligibility): Choice;
  /**
   * After `decide`, by a policy that holds jobs: why one that some site can take was not moved, where `choose` does not tell.
   */
  whyWaits?(job: Job): { code: WaitingReason; numbers: Record<string, number> };
  /** Takes back what `decide` noted in the grid. */
  undo(): void;
}

export type DispatchPolicy = (grid: Grid, policy: Policy, now: number) => DispatchPass;

/** What a cycle has decided until now. */
export class PlanBuilder {
  readonly moves: Move[] = [];
  readonly waitingByReason: Partial<Record<ReasonCode, number>> = {};
  truncated = false;

  constructor(private readonly maxMoves: number) {}

  /** No more moves: what is left waits for the next cycle (`cut`). */
  get full(): boolean {
    return this.moves.length >= this.maxMoves;
  }

  /** How many more moves the plan takes. */
  get room(): number {
    return this.maxMoves - this.moves.length;
  }

  /** A job that the root holds goes to a site's local queue, or stays. */
  take(job: Job, choice: Choice): void {
    const { site, priority, reason, explanation } = choice;
    if (site === null) this.wait(reason);
    else
      this.move({
        jobId: job.id,
        from: null,
        to: site.site.id,
        queue: 'LOCAL',
        priority,
        reason,
        explanation,
      });
  }

  move(move: Move): void {
    this.moves.push(move);
  }

  wait(reason: ReasonCode, jobs = 1): void {
    if (jobs > 0) this.waitingByReason[reason] = (this.waitingByReason[reason] ?? 0) + jobs;
  }

  /** When these moves are applied there is more to decide: the cycle should run again. */
  goesOn(): void {
    this.truncated = true;
  }

  /** The limit was reached with so many jobs not looked at. */
  cut(jobs: number): void {
    this.wait(ReasonCode.MOVE_LIMIT, jobs);
    this.truncated ||= jobs > 0;
  }
}

/**
 * The root's jobs that some site can take, one after another in order of arrival until there is no more room; the others are
 * noted in the plan.
 */
export function inOrderOfArrival(
  grid: Grid,
  plan: PlanBuilder,
  visit: (job: Job, eligibility: Eligibility, requirement: Requirement) => void,
  full: () => boolean = () => plan.full,
): void {
  const { root } = grid;
  for (let i = 0; i < root.length; i++) {
    if (full()) {
      plan.cut(root.length - i);
      return;
    }
    const slot = root.at(i);
    const requirement = root.requirements[slot] as Requirement;
    const eligibility = eligibilityOf(requirement, grid.sites, grid.topology);
    if (eligibility.waiting !== null) plan.wait(eligibility.waiting);
    else visit(root.jobs[slot] as Job, eligibility, requirement);
  }
}
