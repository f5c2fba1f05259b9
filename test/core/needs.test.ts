import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkNeeds, type NeedsItem, sayNeedsError } from '../../src/core/needs/check.js';
import { type ForecastJob, forecast } from '../../src/core/needs/forecast.js';
import { type NeedsChange, NeedsGraph, type NeedsJob, type NeedTerm } from '../../src/core/needs/graph.js';
import { expectedFrom } from '../../src/core/needs/judge.js';
import { type Clause, NEEDS_LIMITS, needConditions, unmetActions } from '../../src/core/needs/model.js';
import { upwardRanks } from '../../src/core/needs/ranks.js';
import { IN_FULL } from '../support/seed.js';

/** As many as a submission may have, all of them where all cases are tried. */
const MANY = IN_FULL ? 100_000 : 10_000;

const all = (...of: NeedTerm[]): Clause<NeedTerm> => ({ expression: 'ALL', of });
const on = (members: readonly number[], condition: NeedTerm['condition'] = 'OK'): NeedTerm => {
  return { members, condition, minDelayS: 0 };
};
const job = (id: number, ...needs: Clause<NeedTerm>[]): NeedsJob => {
  return { id, submittedAt: 0, notBefore: null, onUnmet: 'CANCEL', needs };
};
const nothingExists = { has: () => false, indicesOf: () => null };
const needing = (ref: string, ...refs: string[]): NeedsItem => {
  const of = refs.map((one) => ({ ref: one, condition: 'OK' as const, minDelayS: 0 }));
  return { ref, array: null, group: null, needs: of.length === 0 ? [] : [{ expression: 'ALL', of }] };
};

describe('NeedsGraph', () => {
  it('releases what an end decides, and cancels along the graph what it makes unmeetable', () => {
    const graph = new NeedsGraph();
    graph.add([job(4, all(on([3]))), job(3, all(on([1, 2]))), job(1), job(2), job(5, all(on([3], 'ANY')))]);
    expect(graph.settle()).toEqual([1, 2].map((id) => ({ id, becomes: 'ELIGIBLE', at: 0 })));
    graph.ended(1, 10, true);
    expect(graph.settle()).toEqual([]);
    graph.started(2, 15);
    graph.ended(2, 20, false);
    expect(graph.settle()).toEqual([
      { id: 3, becomes: 'CANCELLED', at: 20, because: 2 },
      { id: 4, becomes: 'CANCELLED', at: 20, because: 3 },
      { id: 5, becomes: 'ELIGIBLE', at: 20 },
    ]);
  });

  it('holds a job for a person, whose release lets it go on from when it could', () => {
    const graph = new NeedsGraph();
    graph.add([job(1), { ...job(2, all(on([1]))), onUnmet: 'HOLD' }, job(3, all(on([2])))]);
    graph.settle();
    graph.ended(1, 7, false);
    expect(graph.settle()).toEqual([{ id: 2, becomes: 'HELD', because: 1 }]);
    graph.release(2);
    expect(graph.settle()).toEqual([{ id: 2, becomes: 'ELIGIBLE', at: 7 }]);
    graph.ended(2, 9, true);
    expect(graph.settle()).toEqual([{ id: 3, becomes: 'ELIGIBLE', at: 9 }]);
  });

  it('tells of an instant that comes sooner', () => {
    const graph = new NeedsGraph();
    const any: Clause<NeedTerm> = { expression: 'ANY', of: [{ ...on([1]), minDelayS: 100 }, on([2])] };
    graph.add([job(1), job(2), job(3, any)]);
    graph.settle();
    graph.ended(1, 10, true);
    expect(graph.settle()).toEqual([{ id: 3, becomes: 'ELIGIBLE', at: 110 }]);
    graph.ended(2, 50, true);
    expect(graph.settle()).toEqual([{ id: 3, becomes: 'ELIGIBLE', at: 50 }]);
  });

  // What the last instant shows may not depend on how often the graph was asked on the way.
  it('shows the same after one settlement of everything as after one an instant', () => {
    fc.assert(
      fc.property(histories, ({ jobs, events }) => {
        const [once, often] = [new NeedsGraph(), new NeedsGraph()];
        for (const graph of [once, often]) graph.add(jobs);
        const told = new Map<number, NeedsChange>();
        often.settle();
        for (const at of [...new Set(events.map((event) => event.at))].sort((a, b) => a - b)) {
          // Jobs start once they are eligible, and have one end.
          const possible = events.filter((event) => {
            const { state } = often.view(event.id, at);
            return event.at === at && (event.kind === 'START' ? state === 'ELIGIBLE' : !OVER.includes(state));
          });
          for (const { id, kind } of possible) {
            for (const graph of [once, often]) {
              if (kind === 'START') graph.started(id, at);
              else graph.ended(id, at, kind === 'OK');
            }
          }
          for (const change of often.settle()) told.set(change.id, change);
        }
        once.settle();
        for (const { id } of jobs) {
          expect(often.view(id, 100)).toEqual(once.view(id, 100));
          const view = once.view(id, 100);
          if (view.state === 'CANCELLED' || view.state === 'HELD')
            expect(told.get(id)?.becomes).toBe(view.state);
        }
      }),
    );
  });

  it(`a chain of ${MANY} jobs is canceled from its first one, and 90 000 terms are counted once`, () => {
    const graph = new NeedsGraph();
    const count = MANY;
    graph.add(Array.from({ length: count }, (_, i) => (i === 0 ? job(0) : job(i, all(on([i - 1]))))));
    graph.settle();
    graph.ended(0, 5, false);
    expect(graph.settle()).toHaveLength(count - 1);
    expect(graph.view(count - 1, 5)).toMatchObject({ state: 'CANCELLED', endedAt: 5, because: count - 2 });

    // 300 jobs, each of which needs the same 300 one by one.
    const wide = new NeedsGraph();
    const needed = Array.from({ length: 300 }, (_, i) => i);
    const terms = needed.map((i) => on([i]));
    wide.add([...needed.map((i) => job(i)), ...needed.map((i) => job(1000 + i, all(...terms)))]);
    wide.settle();
    for (const i of needed.slice(1)) wide.ended(i, i, true);
    expect(wide.settle()).toEqual([]);
    wide.ended(0, 2000, true);
    expect(wide.settle()).toHaveLength(300);
  });

  it('refuses a circle and a member that is not there', () => {
    expect(() => new NeedsGraph().add([job(1, all(on([2]))), job(2, all(on([1])))])).toThrow(/cycle/);
    expect(() => new NeedsGraph().add([job(1, all(on([2])))])).toThrow(/job 2 is not in the graph/);
  });
});

const OVER = ['ENDED', 'CANCELLED'];

interface Event {
  id: number;
  at: number;
  kind: 'START' | 'OK' | 'FAILED';
}

const histories = fc
  .array(
    fc.record({
      onUnmet: fc.constantFrom(...unmetActions),
      needs: fc.array(
        fc.record({
          expression: fc.constantFrom('ALL' as const, 'ANY' as const),
          of: fc.array(
            fc.record({
              members: fc.array(fc.nat(), { minLength: 1, maxLength: 3 }),
              condition: fc.constantFrom(...needConditions),
              minDelayS: fc.constantFrom(0, 0, 3),
            }),
            { minLength: 1, maxLength: 3 },
          ),
        }),
        { maxLength: 3 },
      ),
      start: fc.option(fc.integer({ min: 0, max: 5 })),
      end: fc.option(fc.record({ after: fc.integer({ min: 0, max: 5 }), ok: fc.boolean() })),
    }),
    { minLength: 1, maxLength: 8 },
  )
  .map((drawn) => {
    const events: Event[] = [];
    const jobs = drawn.map(({ onUnmet, needs, start, end }, id): NeedsJob => {
      if (start !== null) events.push({ id, at: start, kind: 'START' });
      if (end !== null) events.push({ id, at: (start ?? 0) + end.after, kind: end.ok ? 'OK' : 'FAILED' });
      // Of earlier jobs, so that there is no circle.
      const earlier = (members: number[]): number[] => [...new Set(members.map((member) => member % id))];
      const own =
        id === 0
          ? []
          : needs.map(({ expression, of }) => ({
              expression,
              of: of.map((term) => ({ ...term, members: earlier(term.members) })),
            }));
      return { id, submittedAt: 0, notBefore: null, onUnmet, needs: own };
    });
    return { jobs, events };
  });

describe('checkNeeds', () => {
  it(`names the members of a circle of ${MANY} jobs, and what is accepted`, () => {
    const items = Array.from({ length: MANY }, (_, i) => needing(`r${i}`, `r${(i + 1) % MANY}`));
    const [error, ...others] = checkNeeds(items, nothingExists, NEEDS_LIMITS);
    expect(others).toEqual([]);
    expect(error).toMatchObject({ code: 'CIRCLE', items: { length: MANY } });
    expect(sayNeedsError(error as NonNullable<typeof error>, items, NEEDS_LIMITS)).toMatch(
      new RegExp(
        `^jobs\\.0 \\(ref "r0"\\), .* and ${MANY - 20} more depend on one another in a cycle; accepted: dependencies without cycles$`,
      ),
    );
  });

  it(`checks ${MANY} jobs with ten times as many terms, and groups that all jobs need`, () => {
    const item = (i: number): NeedsItem => {
      const refs = Array.from({ length: Math.min(i, 9) }, (_, back) => `r${i - back - 1}`);
      const group = { group: 'first', condition: 'OK' as const, minDelayS: 0 };
      const { needs } = needing(`r${i}`, ...refs);
      return {
        ref: `r${i}`,
        array: null,
        group: i < MANY / 2 ? 'first' : null,
        needs: i < MANY / 2 ? needs : [...needs, { expression: 'ALL', of: [group] }],
      };
    };
    const items = Array.from({ length: MANY }, (_, i) => item(i));
    expect(checkNeeds(items, nothingExists, NEEDS_LIMITS)).toEqual([]);
    // The last of them closes circles with all that need it through the group.
    const closing = [{ ...needing('r0', `r${MANY - 1}`), group: 'first' }, ...items.slice(1)];
    expect(checkNeeds(closing, nothingExists, NEEDS_LIMITS)).toMatchObject([{ code: 'CIRCLE' }]);
  });

  it('says each error with the job, the ref and what is accepted', () => {
    const term = { ref: 'nobody', condition: 'OK' as const, minDelayS: 0 };
    const items: NeedsItem[] = [
      {
        ...needing('a', 'a'),
        needs: [{ expression: 'ALL', of: [term, { job: 'job_9', condition: 'ANY', minDelayS: 0 }] }],
      },
      { ...needing('a'), array: [0, 3], needs: [{ expression: 'ANY', of: [] }] },
      {
        ...needing('b'),
        array: [2, 9],
        needs: [
          {
            expression: 'ALL',
            of: [
              { ...term, ref: 'b', minDelayS: -3 },
              { group: 'g', condition: 'CORRESPONDING', minDelayS: 0 },
            ],
          },
        ],
      },
    ];
    const existing = { has: () => false, indicesOf: () => [3, 2] };
    const said = checkNeeds(items, existing, { jobs: 5, edges: 3, needsPerJob: 1 }).map((error) =>
      sayNeedsError(error, items, { jobs: 5, edges: 3, needsPerJob: 1 }),
    );
    expect(said).toEqual([
      'jobs.0 (ref "a") has too many dependency terms; accepted: at most 1',
      'jobs.0 (ref "a"): needs.0.of.0 names ref nobody, which is not a ref in the submission; accepted: refs of the submission',
      'jobs.0 (ref "a"): needs.0.of.1 names job job_9, which does not exist; accepted: IDs of existing jobs',
      'jobs.1 (ref "a") has the same ref as an earlier job; accepted: refs that are unique in the submission',
      'jobs.1 (ref "a"): needs.0 has no terms; accepted: at least one',
      'jobs.2 (ref "b") has too many dependency terms; accepted: at most 1',
      'jobs.2 (ref "b"): needs.0.of.0.minDelayS is -3; accepted: 0 to 1000000000 seconds',
      'jobs.2 (ref "b"): needs.0.of.1 is CORRESPONDING on group g, which does not have index 4 (6 missing in total); accepted: arrays with every index of the job\'s own',
      'jobs are 13 jobs; accepted: at most 5 in a submission',
      'jobs have 18 dependencies (terms × the size of their array); accepted: at most 3 in a submission',
      'jobs.2 (ref "b") depends on itself; accepted: dependencies without cycles',
    ]);
  });
});

describe('expectedFrom', () => {
  it('is the latest of the clauses, and plans for no failure', () => {
    const at = { a: 10, b: 20, held: null };
    const term = (of: keyof typeof at, condition = 'OK') => ({ of, condition });
    const from = (...clauses: Clause<ReturnType<typeof term>>[]) => expectedFrom(clauses, ({ of }) => at[of]);
    const [a, b, held] = [term('a'), term('b'), term('held')];
    expect(from({ expression: 'ALL', of: [a, b] }, { expression: 'ANY', of: [a, b] })).toBe(20);
    expect(from({ expression: 'ANY', of: [a, held, term('b', 'NOT_OK')] })).toBe(10);
    expect(from({ expression: 'ALL', of: [a, held] })).toBeNull();
    expect(from({ expression: 'ALL', of: [term('a', 'NOT_OK')] })).toBeNull();
  });
});

describe('forecast', () => {
  const job = (needs: ForecastJob['needs'], more: Partial<ForecastJob> = {}): ForecastJob => ({
    ...{
      needs,
      firstStartedAt: null,
      startedAt: null,
      endedAt: null,
      notBefore: null,
      runS: 10,
      held: false,
    },
    ...more,
  });
  const of = (on: readonly number[], condition: 'OK' | 'START' | 'NOT_OK' = 'OK', minDelayS = 0) => ({
    ...{ on, condition, minDelayS },
  });
  const all = (...terms: ReturnType<typeof of>[]) => ({ expression: 'ALL' as const, of: terms });
  const any = (...terms: ReturnType<typeof of>[]) => ({ expression: 'ANY' as const, of: terms });

  it('follows what decides, from what has happened through groups and delays to the last end', () => {
    const group = [1, 2];
    const { levels, starts, ends, criticalPath } = forecast(
      [
        job([], { firstStartedAt: 80, startedAt: 80, endedAt: 95 }),
        job([all(of([0]))], { firstStartedAt: 96, startedAt: 96, runS: 20 }),
        job([all(of([0]))], { runS: 50 }),
        job([all(of(group, 'OK', 5))]),
        job([any(of([3]), of([1]))], { notBefore: 118 }),
        job([all(of([1], 'START'))], { held: true }),
        job([all(of([5]))]),
        job([all(of([3], 'NOT_OK'))]),
      ],
      100,
    );
    expect([...levels]).toEqual([0, 1, 1, 2, 3, 2, 3, 3]);
    expect(starts).toEqual([80, 96, 100, 155, 118, null, null, null]);
    expect(ends).toEqual([95, 116, 150, 165, 128, null, null, null]);
    expect(criticalPath).toEqual([0, 2, 3]);
  });

  it('is linear: 10 000 jobs that all need a group of 10 000', () => {
    const group = Array.from({ length: 10_000 }, (_, i) => i);
    const second = group.map(() => job([all(of(group))]));
    const { ends, criticalPath } = forecast([...group.map(() => job([])), ...second], 0);
    expect(new Set(ends)).toEqual(new Set([10, 20]));
    expect(criticalPath).toEqual([0, 10_000]);
  });
});

describe('upwardRanks', () => {
  it(`puts no job before one that it needs, along ${MANY} of them`, () => {
    const count = MANY;
    const jobs = Array.from({ length: count }, () => ({ runs: [] }));
    const edges = jobs.slice(1).map((_, i) => ({ from: i + 1, to: i, mb: 1 }));
    const { order } = upwardRanks(jobs, edges, () => ({ latencyS: 0, mbPerS: 1 }));
    expect(order.every((job, i) => job === count - 1 - i)).toBe(true);
  });

  it('names the jobs of a circle', () => {
    const edges = [
      { from: 0, to: 1, mb: 0 },
      { from: 1, to: 0, mb: 0 },
    ];
    expect(() =>
      upwardRanks([{ runs: [] }, { runs: [] }], edges, () => ({ latencyS: 0, mbPerS: 1 })),
    ).toThrow(/jobs 0, 1 depend on one another/);
  });
});
