/**
 * The seam for dispatch policies. A policy looks at the grid once (`begin`) and is then asked about one waiting job after
 * another. It takes its own earlier answers into account through `moved`, on the grid's own structures, and `undo` leaves
 * the grid as it was.
 *
 * To add one: a member of `dispatchPolicySchema` in ../policy.ts, a file here, an entry in `policies` in cycle.ts.
 */
import type { Grid, SiteEntry } from '../grid.js';
import type { DispatchExplanation, Job } from '../model.js';
import type { Policy } from '../policy.js';
import type { ReasonCode } from '../reasons.js';
import type { Eligibility } from '../resources/eligibility.js';

export interface Choice {
  site: SiteEntry;
  priority: number;
  reason: ReasonCode;
  explanation: DispatchExplanation;
}

export interface DispatchPass {
  /** Where the job goes. `eligibility` names at least one site. */
  choose(job: Job, eligibility: Eligibility): Choice;
  /** The job is taken to have gone there, for the choices that follow. */
  moved(job: Job, choice: Choice): void;
  /** Takes back every `moved`. */
  undo(): void;
}

export type DispatchPolicy = (grid: Grid, policy: Policy, now: number) => DispatchPass;
