import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type EventOrder, runSimulation } from '../../src/simulator/engine.js';
import { policyNamed } from '../../src/simulator/policies.js';
import { MemorySink } from '../../src/simulator/sink.js';
import { countedWorld } from '../../src/simulator/sites.js';
import { cases } from '../support/seed.js';
import { simJobs } from './support/jobs.js';

interface Given {
  submittedAt: number;
  runS: number;
  estimateS: number;
  cpusPerTask: number;
}
const PROCESSORS = 5;

function startsOf(given: readonly Given[], eventOrder: EventOrder, policy: string): number[] {
  const jobs = simJobs(given.map((job) => ({ ...job, limitS: job.estimateS })));
  const times = new MemorySink(jobs.length);
  const world = countedWorld([{ id: 1, name: 'one', processors: PROCESSORS }]);
  runSimulation(world, jobs, { policy: policyNamed(policy, 1), eventOrder }, [times]);
  return [...times.starts];
}

/**
 * EASY as CQSim goes through its events: ends before submissions, ends in the order of the starts, and after each event heads
 * start while they fit, then later jobs that do not delay the head, in order of arrival or the shortest first. Nothing of ours is in it.
 */
function endsFirst(jobs: readonly Given[], shortestFirst = false): number[] {
  const starts: number[] = new Array(jobs.length).fill(Number.NaN);
  const events = jobs.map(({ submittedAt }, job) => ({ at: submittedAt, submits: true, job }));
  const running: { job: number; until: number }[] = [];
  let waiting: number[] = [];
  let idle = PROCESSORS;
  const width = (job: number): number => jobs[job]!.cpusPerTask;
  const start = (job: number, now: number): void => {
    starts[job] = now;
    idle -= width(job);
    waiting = waiting.filter((one) => one !== job);
    running.push({ job, until: now + jobs[job]!.estimateS });
    const end = { at: now + Math.min(jobs[job]!.runS, jobs[job]!.estimateS), submits: false, job };
    const place = events.findIndex(({ at, submits }) => at > end.at || (at === end.at && submits));
    events.splice(place < 0 ? events.length : place, 0, end);
  };
  while (events.length > 0) {
    const { at: now, submits, job } = events.shift()!;
    if (submits) waiting.push(job);
    else {
      idle += width(job);
      running.splice(
        running.findIndex((one) => one.job === job),
        1,
      );
    }
    while (waiting.length > 0 && width(waiting[0]!) <= idle) start(waiting[0]!, now);
    const head = waiting[0];
    if (head === undefined) continue;
    let free = idle;
    let shadow = now;
    const releases = [...running].sort((a, b) => a.until - b.until);
    for (const { job: one, until } of releases) {
      if (free >= width(head) && until > shadow) break;
      free += width(one);
      shadow = until;
    }
    let extra = free - width(head);
    const behind = waiting.slice(1);
    if (shortestFirst) behind.sort((a, b) => jobs[a]!.estimateS - jobs[b]!.estimateS);
    for (const later of behind) {
      if (width(later) > idle) continue;
      const inTime = now + jobs[later]!.estimateS <= shadow;
      if (!inTime && width(later) > extra) continue;
      if (!inTime) extra -= width(later);
      start(later, now);
    }
  }
  return starts;
}

/**
 * Conservative backfilling as pyss goes through its events: submissions before ends, and of each kind those first that were made
 * first; the end of a run is made when it starts, a start when its time is set. Nothing of ours is in it.
 */
function conservativePerEvent(jobs: readonly Given[]): number[] {
  type Event = { at: number; kind: 'start' | 'submit' | 'end'; job: number };
  const order = ['start', 'submit', 'end'];
  const events: Event[] = jobs.map(({ submittedAt }, job) => ({ at: submittedAt, kind: 'submit', job }));
  const add = (event: Event): void => {
    const isLater = ({ at, kind }: Event): boolean =>
      at > event.at || (at === event.at && order.indexOf(kind) > order.indexOf(event.kind));
    const place = events.findIndex(isLater);
    events.splice(place < 0 ? events.length : place, 0, event);
  };
  const booked = new Map<number, { from: number; to: number }>();
  const book = (job: number, now: number): void => {
    const { cpusPerTask: width, estimateS } = jobs[job]!;
    const others = [...booked].filter(([one]) => one !== job);
    const fits = (from: number): boolean => {
      for (let t = from; t < from + estimateS; t++) {
        const used = others.filter(([, other]) => other.from <= t && t < other.to);
        if (used.reduce((sum, [one]) => sum + jobs[one]!.cpusPerTask, width) > PROCESSORS) return false;
      }
      return true;
    };
    let from = now;
    while (!fits(from)) from++;
    if (booked.get(job)?.from === from) return;
    booked.set(job, { from, to: from + estimateS });
    add({ at: from, kind: 'start', job });
  };
  const started = new Set<number>();
  while (events.length > 0) {
    const { at: now, kind, job } = events.shift()!;
    const { runS, estimateS } = jobs[job]!;
    if (kind === 'submit') book(job, now);
    else if (kind === 'start') {
      if (booked.get(job)!.from !== now || started.has(job)) continue;
      started.add(job);
      add({ at: now + Math.min(runS, estimateS), kind: 'end', job });
    } else {
      booked.get(job)!.to = now;
      for (const [one, { from }] of [...booked].sort(([a], [b]) => a - b)) if (from > now) book(one, now);
    }
  }
  return jobs.map((_, job) => booked.get(job)!.from);
}

const workloads = (mostTooLong: number) =>
  fc
    .array(
      fc.record({
        submittedAt: fc.integer({ min: 0, max: 12 }),
        runS: fc.integer({ min: 1, max: 6 }),
        more: fc.integer({ min: 0, max: mostTooLong }),
        cpusPerTask: fc.integer({ min: 1, max: PROCESSORS }),
      }),
      { minLength: 1, maxLength: 25 },
    )
    .map((jobs) =>
      jobs
        .sort((a, b) => a.submittedAt - b.submittedAt)
        .map(({ more, ...job }): Given => ({ ...job, estimateS: job.runS + more })),
    );

const anyWorkload = workloads(3);

it('terminations first: EASY, in either order, starts every job when a simulator of that order does', () => {
  fc.assert(
    fc.property(anyWorkload, (given) => {
      expect(startsOf(given, 'terminations-first', 'easy')).toEqual(endsFirst(given));
      expect(startsOf(given, 'terminations-first', 'easy-sjbf')).toEqual(endsFirst(given, true));
    }),
    { numRuns: cases(2000) },
  );
});

it('submissions first: conservative backfilling starts every job when a simulator of that order does', () => {
  // At 11 job 7 has long been due, and job 6 moves up to it behind: both end at 21 at the latest, and pyss ends job 7 first.
  const smallest = [
    [0, 10, 3, 10],
    [0, 5, 2, 100],
    [1, 5, 2, 5],
    [1, 1, 2, 100],
    [1, 1, 1, 100],
    [1, 10, 4, 10],
    [1, 10, 3, 50],
  ].map(
    ([submittedAt, runS, cpusPerTask, estimateS]) => ({ submittedAt, runS, cpusPerTask, estimateS }) as Given,
  );
  expect(conservativePerEvent(smallest).slice(5)).toEqual([21, 11]);
  fc.assert(
    fc.property(workloads(20), (given) => {
      expect(startsOf(given, 'per-event', 'conservative')).toEqual(conservativePerEvent(given));
    }),
    { numRuns: cases(500), examples: [[smallest]] },
  );
});

it('terminations first is neither of the other orders', () => {
  const differs = (other: EventOrder): boolean =>
    fc
      .sample(anyWorkload, { numRuns: 500, seed: 1 })
      .some((given) => String(startsOf(given, other, 'easy')) !== String(endsFirst(given)));
  expect([differs('batch'), differs('per-event')]).toEqual([true, true]);
});
