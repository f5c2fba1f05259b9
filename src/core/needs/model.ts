/**
 * What a job may need of others (jobs.md, "What a submission may say" and "What becomes of needs"): clauses that must all hold,
 * each of terms of which all or any must.
 */
export const needConditions = ['START', 'OK', 'NOT_OK', 'ANY'] as const;
/** Of all members of what a term names: that they started, ended well, ended and not all well, or ended. */
export type NeedCondition = (typeof needConditions)[number];

/** In a submission also: that the member with the same array index ended well. Once its jobs exist, this is OK of that job. */
export type AskedCondition = NeedCondition | 'CORRESPONDING';

export const unmetActions = ['CANCEL', 'HOLD', 'RUN'] as const;
/** What becomes of a job whose needs cannot hold any more. */
export type OnUnmet = (typeof unmetActions)[number];

export interface Clause<Term> {
  readonly expression: 'ALL' | 'ANY';
  readonly of: readonly Term[];
}

/** From 0 to this, in seconds, a condition may be required to have held already. */
export const MAX_NEED_DELAY_S = 1e9;

/** Of one submission. Edges: terms × the size of the array that has them. */
export interface NeedsLimits {
  jobs: number;
  edges: number;
  /** Terms of one job. */
  needsPerJob: number;
}
export const NEEDS_LIMITS: Readonly<NeedsLimits> = { jobs: 100_000, edges: 1_000_000, needsPerJob: 1_000 };
