/** What becomes of the needs of one job, from what became of what it needs (jobs.md, "What becomes of needs"). */
import type { Clause } from './model.js';
import type { Verdict } from './outcome.js';

type Happened = NonNullable<Verdict>;

/** A term once its outcome is known: the verdict without its delay. */
export interface JudgedTerm {
  readonly verdict: Verdict;
  readonly minDelayS: number;
}

export interface Standing {
  readonly needs: 'TRUE' | 'FALSE' | 'UNKNOWN';
  /** When they became FALSE, and the job that decided it; null: they are not. */
  readonly falseAt: number | null;
  readonly because: number | null;
  /**
   * When all clauses hold, a FALSE one from its instant on (which is what counts once the job is to run all the same);
   * −Infinity: nothing is needed; null: something that they need has not happened. May be ahead, and come sooner then.
   */
  readonly from: number | null;
}

/** The needs at `now`. Of instants that tie, the first clause and the first term decide. */
export function judge(clauses: readonly Clause<JudgedTerm>[], now: number): Standing {
  let from: number | null = Number.NEGATIVE_INFINITY;
  let unmet: Verdict = null;
  let open = false;
  for (const { expression, of } of clauses) {
    const verdict = expression === 'ALL' ? ofAll(of) : ofAny(of);
    if (verdict === null) from = null;
    else if (from !== null) from = Math.max(from, verdict.at);
    if (verdict === null || (verdict.holds && verdict.at > now)) open = true;
    else if (!verdict.holds && (unmet === null || verdict.at < unmet.at)) unmet = verdict;
  }
  if (unmet !== null) return { needs: 'FALSE', falseAt: unmet.at, because: unmet.by, from };
  return { needs: open ? 'UNKNOWN' : 'TRUE', falseAt: null, because: null, from };
}

/** TRUE at the last, with the delays, or FALSE at the first that is. */
function ofAll(terms: readonly JudgedTerm[]): Verdict {
  let unmet: Verdict = null;
  let met: Verdict = null;
  let open = false;
  for (const { verdict, minDelayS } of terms) {
    if (verdict === null) open = true;
    else if (!verdict.holds) {
      if (unmet === null || verdict.at < unmet.at) unmet = verdict;
    } else if (met === null || verdict.at + minDelayS > met.at) met = delayed(verdict, minDelayS);
  }
  return unmet ?? (open ? null : met);
}

/** TRUE at the first, with the delays, or FALSE at the last if all are. */
function ofAny(terms: readonly JudgedTerm[]): Verdict {
  let unmet: Verdict = null;
  let met: Verdict = null;
  let open = false;
  for (const { verdict, minDelayS } of terms) {
    if (verdict === null) open = true;
    else if (!verdict.holds) {
      if (unmet === null || verdict.at > unmet.at) unmet = verdict;
    } else if (met === null || verdict.at + minDelayS < met.at) met = delayed(verdict, minDelayS);
  }
  return met ?? (open ? null : unmet);
}

const delayed = (verdict: Happened, delayS: number): Happened =>
  delayS === 0 ? verdict : { ...verdict, at: verdict.at + delayS };

/** From when a job whose needs stand like this may start; null: that is not known yet. */
export function eligibleAt({ from }: Standing, submittedAt: number, notBefore: number | null): number | null {
  return from === null ? null : Math.max(submittedAt, notBefore ?? submittedAt, from);
}

/**
 * When what a job needs is expected to have happened: the latest of its clauses, of which each has the latest of ALL terms or
 * the earliest of ANY. `expected`: when the term's condition is expected to hold, its delay included; null: nobody knows, as
 * for a held predecessor. Terms on a failure are left out, because nobody plans for one.
 */
export function expectedFrom<Term extends { readonly condition: string }>(
  clauses: readonly Clause<Term>[],
  expected: (term: Term) => number | null,
): number | null {
  let latest: number | null = Number.NEGATIVE_INFINITY;
  for (const { expression, of } of clauses) {
    const all = of.filter(({ condition }) => condition !== 'NOT_OK').map(expected);
    const known = all.filter((at) => at !== null);
    if (known.length === 0 || (expression === 'ALL' && known.length < all.length)) return null;
    const at = expression === 'ALL' ? Math.max(...known) : Math.min(...known);
    latest = Math.max(latest, at);
  }
  return latest;
}
