import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ResourceKinds } from '../../src/core/grid/amounts.js';
import { Arrival, JobQueue } from '../../src/core/grid/queue.js';
import { Requirements } from '../../src/core/grid/requirements.js';
import { OwnPriorityWalk } from '../../src/core/local/flexible/own-priority-walk.js';
import { SortedWalk, type Walk } from '../../src/core/local/walk.js';
import type { Job } from '../../src/core/model.js';
import { job } from './support/drive.js';

const anyQueued = fc.record({
  submittedAt: fc.nat(5),
  priority: fc.nat(3),
  estimateS: fc.integer({ min: 1, max: 5 }),
  boost: fc.integer({ min: -1, max: 1 }),
  tasks: fc.integer({ min: 1, max: 3 }),
  stays: fc.boolean(),
  workflow: fc.option(
    fc.record({ since: fc.nat(5), place: fc.integer({ min: 1, max: 9 }), rankS: fc.nat(9) }),
  ),
  groupId: fc.integer({ min: 1, max: 2 }),
});

const anyOrder = fc.constantFrom('PRIORITY', 'SHORTEST', 'NARROWEST', 'WIDEST', 'ARRIVAL');

const walked = (walk: Walk): number[] => {
  const slots: number[] = [];
  for (let slot = walk.next(); slot !== -1; slot = walk.next()) slots.push(slot);
  return slots;
};

describe('the order of a queue', () => {
  it('is that of sorting, whatever came and went, and from whichever order it is asked for another', () => {
    fc.assert(
      fc.property(fc.array(anyQueued, { size: 'medium', maxLength: 60 }), anyOrder, (given, half) => {
        const queue = new JobQueue('LOCAL', 1, null);
        const requirements = new Requirements(new ResourceKinds());
        const jobs = given.map((shape, id) => {
          const made = job({ ...shape, id });
          if (id === given.length >> 1) queue.inOrder(half);
          return {
            job: made,
            slot: queue.add(made, requirements.enter(made), shape.priority),
            stays: shape.stays,
          };
        });
        for (const { slot, stays } of jobs) if (!stays) queue.remove(slot);
        const left = jobs.filter(({ stays }) => stays).map((entry) => entry.job);
        expect(queue.length).toBe(left.length);

        const ids = (slots: number[]): number[] => slots.map((slot) => queue.ids[slot] as number);
        const by = (key: (id: number) => number): number[] =>
          [...left]
            .sort((a, b) => key(b.id) - key(a.id) || a.submittedAt - b.submittedAt || a.id - b.id)
            .map(({ id }) => id);
        // The operator's boost goes before everything but a priority, of which it is a part.
        const boosted = (key: (id: number) => number): number[] =>
          by((id) => (given[id]?.boost ?? 0) * 1e6 + key(id));
        expect(ids(walked(new SortedWalk(queue, 'PRIORITY')))).toEqual(by((id) => given[id]?.priority ?? 0));
        expect(ids(walked(new SortedWalk(queue, 'ARRIVAL')))).toEqual(boosted(() => 0));

        // Jobs of a workflow from when it was submitted, behind others of that time; one workflow after the other.
        const keysOf = ({ id, submittedAt, boost, workflow, groupId }: Job): number[] => [
          ...[-boost, workflow?.since ?? submittedAt, workflow === null ? 0 : groupId, workflow?.place ?? 0],
          ...[submittedAt, id],
        ];
        const ranked = [...left].sort((a, b) => {
          const keys = keysOf(b);
          return (
            keysOf(a)
              .map((key, i) => key - (keys[i] as number))
              .find((difference) => difference !== 0) ?? 0
          );
        });
        const byRank = new JobQueue('LOCAL', 1, null, new Arrival(true));
        for (const each of left) byRank.add(each, requirements.enter(each), 0);
        const served = walked(new SortedWalk(byRank, 'ARRIVAL')).map((slot) => byRank.ids[slot]);
        expect(served).toEqual(ranked.map(({ id }) => id));

        const sized = (order: 'SHORTEST' | 'NARROWEST' | 'WIDEST', tasks: -1 | 0 | 1): void => {
          const key = (id: number): number => {
            const { tasks: width = 0, estimateS = 0 } = given[id] ?? {};
            return -(tasks * width * 1000 + estimateS);
          };
          expect(ids([...queue.inOrder(order).window()])).toEqual(boosted(key));
        };
        sized('SHORTEST', 0);
        sized('NARROWEST', 1);
        sized('WIDEST', -1);

        const weights = {
          aging: 1,
          licenses: 1,
          waitMinimization: 2,
          deadlineMin: 0,
          deadlineMax: 1,
          deadlineK: 1,
        };
        const context = { now: 9, weights, bestBenchmark: 1, ratios: new Map() };
        const shortest = Math.min(...left.map(({ estimateS: estimate }) => estimate));
        const own = new Map(
          left.map((j) => [j.id, 9 - j.submittedAt + (2 * shortest) / j.estimateS + j.boost]),
        );
        expect(ids(walked(new OwnPriorityWalk(queue, context)))).toEqual(by((id) => own.get(id) as number));

        const kept = new OwnPriorityWalk(queue, context);
        const first = kept.next();
        kept.keepOnly((slot) => (queue.ids[slot] as number) % 2 === 0);
        const rest = by((id) => own.get(id) as number)
          .slice(1)
          .filter((id) => id % 2 === 0);
        expect(ids(walked(kept))).toEqual(first === -1 ? [] : rest);
      }),
    );
  });
});
