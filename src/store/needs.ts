/**
 * What jobs wait for before schedulers know them, and what becomes of them when something of it has happened (jobs.md, "What becomes of
 * needs"). Pure: both stores find the jobs and the facts, and carry out what is decided here.
 */
import { type JobInput, NO_DATASET } from '../core/model.js';
import { eligibleAt, judge } from '../core/needs/judge.js';
import type { Clause, NeedCondition, OnUnmet } from '../core/needs/model.js';
import { Outcome, type Verdict } from '../core/needs/outcome.js';

/**
 * What a term is about: a job, all jobs of a bulk group, or all of the same user's jobs with a group name up to the id `until`, which are
 * those that were there at the submission.
 */
export type NeedTarget =
  | { job: number }
  | { jobGroup: number; again?: RunAgain }
  | { group: string; until: number; again?: RunAgain };
/** In place of members that a rerun has copied, the latest copies up to the id `asOf`; `groups` are those of the copies' submissions. */
export interface RunAgain {
  asOf: number;
  groups: readonly number[];
}
interface Asked {
  condition: NeedCondition;
  /** Seconds. */
  minDelayS: number;
}
export type NeedTerm = Asked & NeedTarget;

/** As it is submitted: `item` is a position in the submission; `until` follows from it. */
export type NewNeedTerm = Asked &
  ({ item: number } | NeedTarget | { group: string; until?: undefined; again?: undefined });

/** What a new job waits for. */
export interface NewWait {
  needs: readonly Clause<NewNeedTerm>[];
  onUnmet: OnUnmet;
  /** Epoch seconds; null: no time. */
  notBefore: number | null;
  /** From whom the job's inputs are that other jobs keep, by place among its inputs: from each of these one input. */
  reads?: ReadonlyMap<number, readonly ReadTarget[]>;
}
export type ReadTarget = { item: number } | { job: number };

/** What a job waits for, as it is stored. */
export interface JobWait extends Omit<NewWait, 'needs' | 'reads'> {
  needs: readonly Clause<NeedTerm>[];
  /** When it is due at the latest, epoch seconds; null: something that it needs has not happened. */
  dueAt: number | null;
  /** The job for which its needs cannot hold any more. */
  because: number | null;
}

export interface BlockedJob extends JobWait {
  id: number;
  userId: number;
  submittedAt: number;
  inputs: readonly JobInput[];
}

/** Whether such a job is BLOCKED when it is submitted. */
export const waits = (wait: NewWait | null | undefined, now: number): wait is NewWait =>
  wait !== null && wait !== undefined && (wait.needs.length > 0 || (wait.notBefore ?? now) > now);

export type GroupTarget = Exclude<NeedTarget, { job: number }>;
/** How members of a group have been run again so far; undefined: none has been. */
export type AgainOf = (group: GroupTarget) => RunAgain | undefined;

/** A submission's own jobs by their ids: `jobIds` are aligned with its items. */
export const stored = (
  needs: NewWait['needs'],
  jobIds: readonly number[],
  againOf: AgainOf = () => undefined,
): JobWait['needs'] =>
  needs.map(({ expression, of }) => ({
    expression,
    of: of.map((term): NeedTerm => {
      const { condition, minDelayS } = term;
      if ('job' in term) return term;
      if ('item' in term) return { job: jobIds[term.item] as number, condition, minDelayS };
      const group = 'group' in term ? { ...term, until: term.until ?? (jobIds.at(-1) as number) } : term;
      const again = group.again ?? againOf(group);
      return again === undefined ? group : { ...group, again };
    }),
  }));

/** A job with its inputs as they are stored: those that other jobs keep name their jobs. */
export function withReads<J extends { inputs: readonly JobInput[]; wait?: NewWait | null }>(
  job: J,
  jobIds: readonly number[],
): J {
  const { reads } = job.wait ?? {};
  if (reads === undefined) return job;
  const inputs = job.inputs.flatMap((input, place) => {
    const { from } = input;
    if (from === undefined) return [input];
    return (reads.get(place) ?? []).map((of) => {
      const id = 'item' in of ? (jobIds[of.item] as number) : of.job;
      return { datasetId: NO_DATASET, from: { ...from, job: id } };
    });
  });
  return { ...job, inputs };
}

/** Whatever else a job needs, it needs those from which it reads. */
export function neededToRead(inputs: readonly JobInput[]): JobWait['needs'] {
  const jobs = [...new Set(inputs.flatMap(({ from }) => from?.job ?? []))];
  const of = jobs.map((job): NeedTerm => ({ job, condition: 'OK', minDelayS: 0 }));
  return of.length === 0 ? [] : [{ expression: 'ALL', of }];
}

/** A file that a job has kept: with the service, or as a dataset. */
export type Kept = { siteId: number; sizeMb: number } | { datasetId: number };
export type KeptOf = (of: { job: number; path: string }) => Kept | null;

/** Each thing that a job needs, once. */
export function targetsOf(needs: JobWait['needs']): Map<TargetKey, NeedTarget> {
  const found = new Map<TargetKey, NeedTarget>();
  for (const { of } of needs) for (const term of of) found.set(keyOf(term), term);
  return found;
}

/** Of a job its id. */
export type TargetKey = number | string;

export function keyOf(target: NeedTarget): TargetKey {
  if ('job' in target) return target.job;
  const { asOf = '' } = target.again ?? {};
  return 'jobGroup' in target ? `g${target.jobGroup} ${asOf}` : `n${target.until} ${asOf} ${target.group}`;
}

/** What is known of one member of what is needed. Times are epoch seconds. */
export type MemberFacts = [id: number, firstStart: number | null, endedAt: number | null, ok: boolean];

export function outcomeOf(members: readonly MemberFacts[]): Outcome {
  const outcome = new Outcome(members.length);
  for (const [id, firstStart, endedAt, ok] of members) {
    if (firstStart !== null) outcome.start(id, firstStart);
    if (endedAt !== null) outcome.end(id, endedAt, ok, firstStart !== null);
  }
  return outcome;
}

/** What became of a term; null: that is open. */
export const verdictOf = (outcomes: ReadonlyMap<TargetKey, Outcome>, term: NeedTerm): Verdict =>
  // What nobody knows, because it is gone against all rules, has not happened.
  outcomes.get(keyOf(term))?.verdict(term.condition) ?? null;

export type NeedsDecision =
  /** `inputs`: what it reads is where these say; null: as before. */
  | { id: number; becomes: 'QUEUED'; at: number; inputs: readonly JobInput[] | null }
  /** `missing`: path of what it was to read and the job has not kept; null: the job did not end or start as needed. */
  | { id: number; becomes: 'CANCELLED' | 'HELD'; at: number; because: number; missing: string | null }
  /** It is due then at the latest. */
  | { id: number; becomes: 'BLOCKED'; at: number };

/** What becomes of a blocked job at `now`; null: it goes on waiting as it does. */
export function decided(
  job: BlockedJob,
  outcomes: ReadonlyMap<TargetKey, Outcome>,
  kept: KeptOf,
  now: number,
): NeedsDecision | null {
  const { id, onUnmet, submittedAt, inputs } = job;
  const unmet = (at: number, because: number, missing: string | null): NeedsDecision => ({
    ...{ id, becomes: onUnmet === 'CANCEL' ? 'CANCELLED' : 'HELD', because, missing },
    at: Math.max(at, submittedAt),
  });
  const clauses = job.needs.map(({ expression, of }) => ({
    expression,
    of: of.map((term) => ({
      verdict: verdictOf(outcomes, term),
      minDelayS: term.minDelayS,
    })),
  }));
  const standing = judge(clauses, now);
  if (standing.falseAt !== null && standing.because !== null && onUnmet !== 'RUN')
    return unmet(standing.falseAt, standing.because, null);
  const at = eligibleAt(standing, submittedAt, job.notBefore);
  if (at === null) return null;
  // All have ended: what is not there now never will be.
  const missing = inputs.find(({ from }) => from !== undefined && kept(from) === null)?.from;
  if (missing !== undefined && onUnmet !== 'RUN') return unmet(Math.min(at, now), missing.job, missing.path);
  if (at <= now) return { id, becomes: 'QUEUED', at, inputs: found(inputs, kept) };
  return at === job.dueAt ? null : { id, becomes: 'BLOCKED', at };
}

/** Inputs that other jobs keep, where they are; null: there are none. */
function found(inputs: readonly JobInput[], kept: KeptOf): JobInput[] | null {
  if (!inputs.some(({ from }) => from)) return null;
  return inputs.map((input) => {
    const { from } = input;
    if (from === undefined) return input;
    const where = kept(from) ?? { datasetId: NO_DATASET };
    return 'siteId' in where
      ? { siteId: where.siteId, sizeMb: where.sizeMb, from }
      : { datasetId: where.datasetId, from };
  });
}

/** Why it ended or is held, for its message. */
export const unmetMessage = (
  { because, missing }: { because: number; missing: string | null },
  name: string | null,
): string =>
  `job_${because}${name === null ? '' : ` (${name})`}, on which it depends, ${
    missing === null ? 'did not end or start as required' : `did not keep ${missing}`
  }`;
