/**
 * When the jobs of a workflow are expected to end (jobs.md, "Expected start"), if each starts as soon as what it needs has happened: what
 * they wait for machines comes on top.
 */
import { digraph, topologicalOrder } from '../structures/digraph.js';
import { expectedFrom } from './judge.js';
import type { Clause, NeedCondition } from './model.js';

export interface ForecastTerm {
  /** Positions of the jobs that it names; terms on the same group share one list. */
  readonly on: readonly number[];
  readonly condition: NeedCondition;
  readonly minDelayS: number;
}

/** Times are epoch seconds; null: that has not happened, or nothing was asked. */
export interface ForecastJob {
  readonly needs: readonly Clause<ForecastTerm>[];
  /** Of its first run, and of its last. */
  readonly firstStartedAt: number | null;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly notBefore: number | null;
  /** How long a run is expected to take, seconds. */
  readonly runS: number;
  /** Nobody knows when it goes on. */
  readonly held: boolean;
}

export interface Forecast {
  /** By position; from 0: the most jobs that come one behind the other before it. */
  readonly levels: Int32Array;
  /** By position; null: nobody knows. */
  readonly starts: readonly (number | null)[];
  readonly ends: readonly (number | null)[];
  /** Positions, from the first: the jobs that decide when the last one ends. */
  readonly criticalPath: readonly number[];
}

/** The last of several starts or ends, and whose it is; null: one of them nobody knows. */
type Last = { at: number; by: number } | null;

/** Linear in jobs, terms and members of groups. Jobs that need one another in a circle stay unknown. */
export function forecast(jobs: readonly ForecastJob[], now: number): Forecast {
  const groups = new Map<readonly number[], number>();
  const [from, to]: [number[], number[]] = [[], []];
  for (const [job, { needs }] of jobs.entries())
    for (const { of } of needs)
      for (const { on } of of) {
        let group = groups.get(on);
        if (group === undefined) {
          group = jobs.length + groups.size;
          groups.set(on, group);
          for (const member of on) {
            from.push(member);
            to.push(group);
          }
        }
        from.push(group);
        to.push(job);
      }
  const lists = [...groups.keys()];
  const graph = digraph(jobs.length + lists.length, from, to);
  const levels = new Int32Array(graph.nodes);
  const starts: (number | null)[] = jobs.map(() => null);
  const ends: (number | null)[] = jobs.map(() => null);
  const because: (number | null)[] = jobs.map(() => null);
  const lastStarts: Last[] = [];
  const lastEnds: Last[] = [];
  /** When a term's condition is expected to hold. */
  const held = ({ on, condition }: ForecastTerm): Last => {
    const group = (groups.get(on) as number) - jobs.length;
    return (condition === 'START' ? lastStarts : lastEnds)[group] ?? null;
  };
  for (const node of topologicalOrder(graph)) {
    const isJob = node < jobs.length;
    if (isJob) {
      const job = jobs[node] as ForecastJob;
      const expected = startOf(job, now, held);
      starts[node] = expected.start;
      ends[node] = endOf(job, expected.start, now);
      because[node] = expected.because;
    } else {
      const on = lists[node - jobs.length] as readonly number[];
      lastStarts[node - jobs.length] = lastOf(on, (job) => jobs[job]?.firstStartedAt ?? starts[job] ?? null);
      lastEnds[node - jobs.length] = lastOf(on, (job) => ends[job] ?? null);
    }
    const level = (levels[node] as number) + (isJob ? 1 : 0);
    for (let e = graph.first[node] as number; e < (graph.first[node + 1] as number); e++) {
      const next = graph.to[e] as number;
      levels[next] = Math.max(levels[next] as number, level);
    }
  }
  return { levels: levels.subarray(0, jobs.length), starts, ends, criticalPath: wayTo(ends, because) };
}

function startOf(
  { needs, startedAt, endedAt, notBefore, held }: ForecastJob,
  now: number,
  expected: (term: ForecastTerm) => Last,
): { start: number | null; because: number | null } {
  const at = (term: ForecastTerm): number | null => {
    const last = expected(term);
    return last === null ? null : last.at + term.minDelayS;
  };
  const from = expectedFrom(needs, at);
  const decisive = needs.flatMap(({ of }) => of).find((term) => from !== null && at(term) === from);
  const because = decisive === undefined ? null : (expected(decisive)?.by ?? null);
  if (startedAt !== null || endedAt !== null) return { start: startedAt, because };
  if (from === null || held) return { start: null, because: null };
  // What it waits for machines since then changes nothing in what decided it.
  const isForTime = notBefore !== null && notBefore > from;
  return { start: Math.max(now, notBefore ?? now, from), because: isForTime ? null : because };
}

function endOf({ endedAt, startedAt, runS }: ForecastJob, start: number | null, now: number): number | null {
  if (endedAt !== null) return endedAt;
  if (start === null) return null;
  return startedAt === null ? start + runS : Math.max(now, start + runS);
}

function lastOf(jobs: readonly number[], atOf: (job: number) => number | null): Last {
  let last: Last = null;
  for (const by of jobs) {
    const at = atOf(by);
    if (at === null) return null;
    if (last === null || at > last.at) last = { at, by };
  }
  return last;
}

/** From the job that is expected to end last back to the first. */
function wayTo(ends: readonly (number | null)[], because: readonly (number | null)[]): number[] {
  let last = -1;
  for (const [job, end] of ends.entries())
    if (end !== null && (last < 0 || end > (ends[last] as number))) last = job;
  const way: number[] = [];
  for (let job: number | null = last < 0 ? null : last; job !== null; job = because[job] ?? null)
    way.push(job);
  return way.reverse();
}
