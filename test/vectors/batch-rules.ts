/**
 * The rules of jobs.md and resources.md once more, as rules.ts has those of the papers: word by word from the specification, with
 * nothing of the core.
 */
import { by, compare, exact, type Fraction, near, plus, sum, whole } from './rational.js';

// Needs (jobs.md) -------------------------------------------------------------------------------------------------------

type Target = { ref: string } | { job: string } | { group: string };
type Term = Target & { condition: string; minDelayS: number };
export interface Clause {
  expression: 'ALL' | 'ANY';
  of: Term[];
}

export interface NeedsCheck {
  limits: { jobs: number; edges: number; needsPerJob: number };
  existingJobs: string[];
  existingGroups: { name: string; indices: (number | null)[] }[];
  items: { ref: string; array: [number, number] | null; group: string | null; needs: Clause[] }[];
}

type Item = NeedsCheck['items'][number];
const range = (first: number, last: number): number[] =>
  Array.from({ length: last - first + 1 }, (_, i) => first + i);

export function needsCheck({ limits, existingJobs, existingGroups, items }: NeedsCheck) {
  const errors: Record<string, unknown>[] = [];
  const itemOf = (ref: string): Item | undefined => items.find((item) => item.ref === ref);
  const indicesOfItem = ({ array }: Item): (number | null)[] =>
    array === null ? [null] : range(array[0], array[1]);
  const membersOf = (group: string): (number | null)[] => [
    ...(existingGroups.find(({ name }) => name === group)?.indices ?? []),
    ...items.filter((item) => item.group === group).flatMap(indicesOfItem),
  ];
  const wrongWith = (term: Term, item: Item): Record<string, unknown> | null => {
    let indices: (number | null)[];
    if ('ref' in term) {
      const named = itemOf(term.ref);
      if (named === undefined) return { code: 'UNKNOWN_REF' };
      indices = indicesOfItem(named);
    } else if ('job' in term) {
      if (!existingJobs.includes(term.job)) return { code: 'UNKNOWN_JOB' };
      indices = [null];
    } else {
      indices = membersOf(term.group);
      if (indices.length === 0) return { code: 'UNKNOWN_GROUP' };
    }
    if (term.condition === 'CORRESPONDING') {
      if (item.array === null || indices.includes(null)) return { code: 'NOT_AN_ARRAY' };
      const missing = range(item.array[0], item.array[1]).filter((index) => !indices.includes(index));
      if (missing.length > 0) return { code: 'INDEX_MISSING', index: missing[0], missing: missing.length };
    }
    return term.minDelayS < 0 || term.minDelayS > 1e9 ? { code: 'BAD_DELAY' } : null;
  };
  items.forEach((one, item) => {
    if (itemOf(one.ref) !== one) errors.push({ code: 'DUPLICATE_REF', item });
    if (one.needs.flatMap(({ of }) => of).length > limits.needsPerJob)
      errors.push({ code: 'TOO_MANY_NEEDS', item });
    one.needs.forEach(({ of }, clause) => {
      if (of.length === 0) errors.push({ code: 'EMPTY_CLAUSE', item, clause });
      of.forEach((term, position) => {
        const wrong = wrongWith(term, one);
        if (wrong !== null) errors.push({ ...wrong, item, clause, term: position });
      });
    });
  });
  const sizes = items.map((item) => indicesOfItem(item).length);
  const jobs = sizes.reduce((a, b) => a + b, 0);
  const edges = items.reduce(
    (n, { needs }, i) => n + (sizes[i] ?? 0) * needs.flatMap(({ of }) => of).length,
    0,
  );
  if (jobs > limits.jobs) errors.push({ code: 'TOO_MANY_JOBS', count: jobs });
  if (edges > limits.edges) errors.push({ code: 'TOO_MANY_EDGES', count: edges });
  const neededBy = items.map(({ needs }) =>
    needs
      .flatMap(({ of }) => of)
      .flatMap((term) => {
        if ('ref' in term) return items.findIndex((item) => item.ref === term.ref);
        return 'group' in term ? items.flatMap((item, i) => (item.group === term.group ? [i] : [])) : [];
      })
      .filter((i) => i >= 0),
  );
  for (const circle of circlesOf(neededBy)) errors.push({ code: 'CIRCLE', items: circle });
  return { accepted: errors.length === 0, errors };
}

/** Those that reach themselves; two are in one circle if each reaches the other. */
function circlesOf(edges: number[][]): number[][] {
  const reaches = edges.map((next) => new Set(next));
  for (let again = true; again; ) {
    again = false;
    for (const reached of reaches) {
      for (const through of [...reached]) {
        for (const next of edges[through] ?? []) {
          again ||= !reached.has(next);
          reached.add(next);
        }
      }
    }
  }
  const circles: number[][] = [];
  reaches.forEach((reached, i) => {
    if (!reached.has(i)) return;
    const all = reaches.flatMap((other, j) => (reached.has(j) && other.has(i) ? [j] : []));
    if (all[0] === i) circles.push(all);
  });
  return circles;
}

export interface NeedsState {
  now: number;
  jobs: {
    id: string;
    submittedAt: number;
    notBefore: number | null;
    group: string | null;
    arrayIndex: number | null;
    startedAt: number | null;
    ended: { at: number; ok: boolean; final: boolean } | null;
    onUnmet: 'CANCEL' | 'HOLD' | 'RUN';
    needs: Clause[];
  }[];
}

interface Decided {
  value: boolean;
  at: number;
  who: string;
}

export function needsState({ now, jobs }: NeedsState) {
  type Job = NeedsState['jobs'][number];
  const known = new Map<Job, ReturnType<typeof stateOf>>();
  const state = (job: Job) => {
    const found = known.get(job) ?? stateOf(job);
    known.set(job, found);
    return found;
  };
  /** Of the events the earliest or latest, at one instant the first. */
  const extreme = <T extends { at: number }>(all: T[], latest: boolean): T => {
    const at = all.map((one) => one.at).reduce((a, b) => (latest ? Math.max(a, b) : Math.min(a, b)));
    return all.find((one) => one.at === at) as T;
  };
  const termOf = (term: Term, of: Job): Decided | null => {
    let members = jobs.filter(({ id, group }) =>
      'job' in term ? id === term.job : group === (term as { group: string }).group,
    );
    if (term.condition === 'CORRESPONDING')
      members = members.filter((one) => one.arrayIndex === of.arrayIndex);
    const starts = members.flatMap(({ id, startedAt }) =>
      startedAt === null ? [] : [{ at: startedAt, who: id }],
    );
    const ends = members.flatMap((job) => {
      const { endedAt } = state(job);
      const ok = job.ended?.final === true && job.ended.ok;
      return endedAt === null ? [] : [{ at: endedAt, who: job.id, ok, started: job.startedAt !== null }];
    });
    const allEnded = ends.length === members.length;
    const bad = ends.filter(({ ok }) => !ok);
    const never = ends.filter(({ started }) => !started);
    const is = (value: boolean, event: { at: number; who: string }): Decided => ({
      value,
      at: event.at + (value ? term.minDelayS : 0),
      who: event.who,
    });
    switch (term.condition) {
      case 'START':
        if (never.length > 0) return is(false, extreme(never, false));
        return starts.length === members.length ? is(true, extreme(starts, true)) : null;
      case 'NOT_OK':
        return allEnded ? is(bad.length > 0, extreme(ends, true)) : null;
      case 'ANY':
        return allEnded ? is(true, extreme(ends, true)) : null;
      default:
        if (bad.length > 0) return is(false, extreme(bad, false));
        return allEnded ? is(true, extreme(ends, true)) : null;
    }
  };
  const clauseOf = ({ expression, of }: Clause, job: Job): Decided | null => {
    const terms = of.map((term) => termOf(term, job));
    const decided = terms.filter((term) => term !== null);
    const [met, unmet] = [true, false].map((value) => decided.filter((term) => term.value === value)) as [
      Decided[],
      Decided[],
    ];
    if (expression === 'ALL') {
      if (unmet.length > 0) return extreme(unmet, false);
      return met.length === terms.length ? extreme(met, true) : null;
    }
    if (met.length > 0) return extreme(met, false);
    return unmet.length === terms.length ? extreme(unmet, true) : null;
  };
  function stateOf(job: Job) {
    const { id, submittedAt, notBefore, startedAt, ended, onUnmet } = job;
    const nothing = {
      id,
      needs: null as string | null,
      eligibleAt: null as number | null,
      endedAt: null as number | null,
    };
    if (ended?.final) return { ...nothing, state: 'ENDED', endedAt: ended.at, because: null };
    if (startedAt !== null) return { ...nothing, state: 'STARTED', because: null };
    const clauses = job.needs.map((clause) => clauseOf(clause, job));
    const unmet = clauses.filter((clause) => clause !== null && !clause.value) as Decided[];
    const holds = clauses.every((clause) => clause?.value === true && clause.at <= now);
    const needs = unmet.length > 0 ? 'FALSE' : holds ? 'TRUE' : 'UNKNOWN';
    const because = unmet.length > 0 ? extreme(unmet, false) : null;
    if (because !== null && onUnmet === 'CANCEL') {
      const endedAt = Math.max(because.at, submittedAt);
      return { ...nothing, needs, state: 'CANCELLED', endedAt, because: because.who };
    }
    if (because !== null && onUnmet === 'HOLD')
      return { ...nothing, needs, state: 'HELD', because: because.who };
    const open = clauses.includes(null);
    const eligibleAt = open
      ? null
      : Math.max(submittedAt, notBefore ?? 0, ...clauses.map((one) => (one as Decided).at));
    const state = eligibleAt !== null && eligibleAt <= now ? 'ELIGIBLE' : 'WAITING';
    return { ...nothing, needs, state, eligibleAt, because: because?.who ?? null };
  }
  return jobs.map(state);
}

export interface UpwardRanks {
  links: { from: string; to: string; latencyS: number; mbPerS: number }[];
  jobs: { id: string; runs: { site: string; p50S: number }[] }[];
  edges: { from: string; to: string; mb: number }[];
}

export function upwardRanks({ links, jobs, edges }: UpwardRanks) {
  const mean = (values: Fraction[]): Fraction =>
    values.length === 0 ? whole(0) : by(sum(values), whole(values.length));
  const runsOf = (id: string) => jobs.find((job) => job.id === id)?.runs ?? [];
  const transfer = ({ from, to, mb }: UpwardRanks['edges'][number]): Fraction =>
    mean(
      runsOf(from).flatMap(({ site: a }) =>
        runsOf(to).map(({ site: b }) => {
          const link = links.find((one) => one.from === a && one.to === b);
          if (a === b || mb === 0 || link === undefined) return whole(0);
          return plus(exact(link.latencyS), by(exact(mb), exact(link.mbPerS)));
        }),
      ),
    );
  const rank = (id: string): Fraction => {
    const after = edges.filter(({ from }) => from === id).map((edge) => plus(transfer(edge), rank(edge.to)));
    const longest = after.reduce((a, b) => (compare(a, b) > 0 ? a : b), whole(0));
    return plus(mean(runsOf(id).map(({ p50S }) => exact(p50S))), longest);
  };
  const level = (id: string): number =>
    Math.max(0, ...edges.filter(({ to }) => to === id).map(({ from }) => level(from) + 1));
  const ranked = jobs.map(({ id }) => ({ id, rank: rank(id), level: level(id) }));
  return {
    ranks: ranked.map(({ id, rank }) => ({ id, rank: near(rank) })),
    order: [...ranked].sort((a, b) => compare(b.rank, a.rank) || a.level - b.level).map(({ id }) => id),
  };
}

// Runs (jobs.md) --------------------------------------------------------------------------------------------------------

export interface LimitSignals {
  startedAt: number;
  runTimeLimitS: number | null;
  warnS: number | null;
  warnSignal: string;
  killGraceS: number;
  stop: { at: number; graceS: number; cause: string } | null;
  process: {
    runS: number;
    exitCode: number;
    onWarn: { afterS: number; exitCode: number | null } | null;
    onTerm: { afterS: number; exitCode: number | null } | null;
  };
}

/** Second by second; times are whole. */
export function limitSignals(input: LimitSignals) {
  const { startedAt, runTimeLimitS, warnS, warnSignal, killGraceS, stop, process } = input;
  const limitAt = runTimeLimitS === null ? null : startedAt + runTimeLimitS;
  const signals: { at: number; signal: string }[] = [];
  const kills: number[] = [];
  let [warnedAt, termAt, cause] = [null as number | null, null as number | null, null as string | null];
  for (let t = startedAt; ; t++) {
    const done = (exitCode: number | null, signal: string | null) => {
      const own = exitCode === 0 ? 'EXITED_ZERO' : exitCode === null ? 'SIGNALLED' : 'EXITED_NONZERO';
      const why = cause ?? own;
      const states: Record<string, string> = {
        EXITED_ZERO: 'COMPLETED',
        PREEMPTED: 'QUEUED',
        REQUEUED: 'QUEUED',
        CANCELLED_BY_USER: 'CANCELLED',
      };
      return { signals, endedAt: t, state: states[why] ?? 'FAILED', cause: why, exitCode, signal };
    };
    /** Ends due now, of itself or by a signal that was sent. */
    const over = () => {
      if (t === startedAt + process.runS) return done(process.exitCode, null);
      if (process.onWarn !== null && warnedAt !== null && t === warnedAt + process.onWarn.afterS)
        return done(process.onWarn.exitCode, process.onWarn.exitCode === null ? warnSignal : null);
      if (process.onTerm !== null && termAt !== null && t === termAt + process.onTerm.afterS)
        return done(process.onTerm.exitCode, process.onTerm.exitCode === null ? 'SIGTERM' : null);
      return null;
    };
    const before = over();
    if (before !== null) return before;
    const first = cause === null;
    if (limitAt === t) {
      kills.push(t + killGraceS);
      cause ??= 'RUN_TIME_LIMIT';
    }
    if (stop?.at === t) {
      kills.push(t + stop.graceS);
      cause ??= stop.cause;
    }
    if (kills.includes(t)) {
      signals.push({ at: t, signal: 'SIGKILL' });
      return done(null, 'SIGKILL');
    }
    if (first && cause !== null) {
      signals.push({ at: t, signal: 'SIGTERM' });
      termAt = t;
    }
    if (limitAt !== null && warnS && cause === null && t === Math.max(startedAt, limitAt - warnS)) {
      signals.push({ at: t, signal: warnSignal });
      warnedAt = t;
    }
    const after = over();
    if (after !== null) return after;
  }
}

export interface RetryCase {
  retry: {
    maxRetries: number;
    backoffS: number;
    factor: number;
    maxBackoffS: number;
    rules: {
      causes: string[] | null;
      exitCodes: { from: number; to: number }[] | null;
      signals: string[] | null;
      action: string;
      memoryFactor: number;
      memoryMaxMb: number | null;
    }[];
  };
  maxAttempts: number;
  restartable: boolean;
  memoryMb: number;
  largestMb: number;
  machines: string[];
  ends: { cause: string; exitCode: number | null; signal: string | null; machine: string }[];
}

const NUMBERS: Record<string, number> = { SIGKILL: 9, SIGSEGV: 11, SIGTERM: 15, SIGUSR1: 10 };

export function retried(input: RetryCase) {
  const { retry, maxAttempts, restartable, largestMb, machines, ends } = input;
  let [retries, memoryMb] = [0, input.memoryMb];
  const failedOn: string[] = [];
  const steps: Record<string, unknown>[] = [];
  for (const { cause, exitCode, signal, machine } of ends) {
    const free = ['PREEMPTED', 'DRAINED', 'GIVEN_UP'].includes(cause);
    const never = ['EXITED_ZERO', 'DEADLINE_PASSED', 'NEVER_FITS', 'DEPENDENCY_FAILED', 'WITHDRAWN'];
    const position = retry.rules.findIndex((rule) => {
      if (never.includes(cause) || cause.startsWith('CANCELLED_')) return false;
      if (rule.causes?.includes(cause)) return true;
      if (free) return false;
      if (rule.causes === null && rule.exitCodes === null && rule.signals === null) return true;
      if (cause !== 'EXITED_NONZERO' && cause !== 'SIGNALLED') return false;
      const code = cause === 'SIGNALLED' ? 128 + (NUMBERS[signal as string] as number) : (exitCode as number);
      if (cause === 'SIGNALLED' && rule.signals?.includes(signal as string)) return true;
      return rule.exitCodes?.some(({ from, to }) => from <= code && code <= to) ?? false;
    });
    const rule = position < 0 ? null : (retry.rules[position] as RetryCase['retry']['rules'][number]);
    let action = rule?.action;
    if (action === undefined) {
      action = 'FAIL';
      if (free || cause === 'STAGING_FAILED' || (cause === 'LOST' && restartable)) action = 'RETRY';
      if (cause === 'MACHINE_FAILED') action = 'RETRY_ELSEWHERE';
    }
    let because = action !== 'FAIL' ? null : rule === null ? 'NO_RULE' : 'RULE';
    let delayS: number | null = null;
    if (action.startsWith('RETRY') && free) delayS = 0;
    else if (action.startsWith('RETRY')) {
      const most = rule === null ? Math.max(retry.maxRetries, maxAttempts - 1) : retry.maxRetries;
      let next = memoryMb;
      if (rule !== null && memoryMb > 0 && rule.memoryFactor > 1) {
        const grown = Math.ceil(memoryMb * rule.memoryFactor - 1e-6);
        next = Math.max(memoryMb, Math.min(grown, rule.memoryMaxMb ?? largestMb, largestMb));
        if (next === memoryMb) because = 'MEMORY_AT_MOST';
      }
      if (retries >= most) because = 'RETRIES_USED';
      if (because !== null) action = 'FAIL';
      else {
        retries++;
        memoryMb = next;
        delayS = retry.backoffS;
        for (let k = 1; k < retries; k++) delayS *= retry.factor;
        delayS = Math.min(delayS, retry.maxBackoffS);
      }
      failedOn.push(machine);
    }
    let allowed: string[] | null = null;
    if (delayS !== null) {
      const untried = machines.filter((one) => !failedOn.includes(one));
      const others = machines.filter((one) => one !== machine);
      const elsewhere = [untried, others, machines].find((some) => some.length > 0) as string[];
      allowed = action === 'RETRY_ELSEWHERE' ? elsewhere : machines;
    }
    const at = position < 0 ? null : position;
    steps.push({ rule: at, action, because, retries, delayS, memoryMb, machines: allowed });
    if (action === 'FAIL' || action === 'HOLD') break;
  }
  return steps;
}

/** Each rule by its name in the vectors. */
export const BATCH_RULES: Record<string, (input: never) => unknown> = {
  needs_check: needsCheck,
  needs_state: needsState,
  upward_ranks: upwardRanks,
  limit_signals: limitSignals,
  retry: retried,
};
