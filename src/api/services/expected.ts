/** When what a blocked job needs is expected to have happened (jobs.md, "Expected start"). */
import { expectedFrom } from '../../core/needs/judge.js';
import type { NeedTerm } from '../../store/needs.js';
import type { OpenNeeds } from '../../store/postgres/needs.js';

/** An instant, epoch seconds, or why it is not known. */
export type Expected = { at: number } | { unknown: string };

/** A job as far as it decides when it ends. */
export interface Predecessor {
  state: string;
  /** Of a job that has or waits for a run: start and end, as planned; null: they are not known. */
  planned: { start: number; end: number } | null;
  estimateS: number;
}

export interface Predecessors {
  jobOf(id: number): Promise<Predecessor | null>;
  /** Of a blocked job; null: it is not. */
  openNeeds(id: number): Promise<OpenNeeds | null>;
  now: number;
}

/** Jobs that one answer looks at. */
const LOOKED_AT_MAX = 100;

/** Looks at each job once, so a long chain of them costs its length. */
export function expectations(of: Predecessors): {
  term(term: NeedTerm): Promise<Expected>;
  needs(open: OpenNeeds): Promise<Expected>;
} {
  const known = new Map<number, Promise<{ start: Expected; end: Expected }>>();

  function job(id: number): Promise<{ start: Expected; end: Expected }> {
    const before = known.get(id);
    if (before !== undefined) return before;
    const found =
      known.size < LOOKED_AT_MAX
        ? look(id)
        : Promise.resolve(both({ unknown: 'too many jobs are ahead of it' }));
    known.set(id, found);
    return found;
  }

  async function look(id: number): Promise<{ start: Expected; end: Expected }> {
    const found = await of.jobOf(id);
    if (found === null) return both({ unknown: 'this key may not see it' });
    const { state, planned, estimateS } = found;
    if (state === 'HELD') return both({ unknown: 'it is held' });
    if (state === 'BLOCKED') {
      const open = await of.openNeeds(id);
      const start = open === null ? { unknown: 'its state has just changed' } : await needs(open);
      return 'at' in start ? { start, end: { at: start.at + estimateS } } : both(start);
    }
    if (planned === null) return both({ unknown: 'its start cannot be predicted' });
    // What is late is expected at any time.
    return { start: { at: Math.max(of.now, planned.start) }, end: { at: Math.max(of.now, planned.end) } };
  }

  async function term(asked: NeedTerm): Promise<Expected> {
    if (asked.condition === 'NOT_OK') return { unknown: 'failures cannot be predicted' };
    if (!('job' in asked)) return { unknown: 'it refers to a group' };
    const { start, end } = await job(asked.job);
    const expected = asked.condition === 'START' ? start : end;
    return 'at' in expected ? { at: expected.at + asked.minDelayS } : expected;
  }

  async function needs({ wait, open }: OpenNeeds): Promise<Expected> {
    const terms = new Map<NeedTerm, number | null>();
    let unknown = 'its own dependencies cannot be predicted';
    for (const clause of open)
      for (const one of clause.of) {
        const expected = await term(one);
        terms.set(one, 'at' in expected ? expected.at : null);
        if ('unknown' in expected) unknown = expected.unknown;
      }
    const from = expectedFrom(open, (one) => terms.get(one) ?? null);
    return from === null ? { unknown } : { at: Math.max(of.now, wait.dueAt ?? wait.notBefore ?? from, from) };
  }
  return { term, needs };
}

const both = (unknown: { unknown: string }): { start: Expected; end: Expected } => ({
  start: unknown,
  end: unknown,
});
