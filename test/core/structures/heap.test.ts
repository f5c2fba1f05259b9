import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { Heap, IndexedHeap } from '../../../src/core/structures/heap.js';

const operation = fc.oneof(
  fc.record({ push: fc.integer({ min: 0, max: 99 }) }),
  fc.record({ pop: fc.constant(true) }),
  fc.record({ keepOdd: fc.constant(true) }),
);

it('a heap gives back the first of what is in it, whatever came and went', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(99)), fc.array(operation), (initial, operations) => {
      // Items are places of keys; of equal keys the lower place goes first.
      const keys = [...initial];
      const isBefore = (a: number, b: number): boolean =>
        (keys[a] as number) - (keys[b] as number) < 0 || (keys[a] === keys[b] && a < b);
      const heap = new Heap(isBefore, Int32Array.from(initial.keys()), initial.length);
      let there = [...initial.keys()];
      const first = (): number =>
        there.reduce((best, item) => (best === -1 || isBefore(item, best) ? item : best), -1);
      for (const given of operations) {
        if ('push' in given) {
          there.push(keys.push(given.push) - 1);
          heap.push(keys.length - 1);
        } else if ('pop' in given) {
          const expected = first();
          expect(heap.pop()).toBe(expected);
          there = there.filter((item) => item !== expected);
        } else {
          const odd = (item: number): boolean => item % 2 === 1;
          heap.keep(odd);
          there = there.filter(odd);
        }
        expect([heap.length, heap.top]).toEqual([there.length, first()]);
      }
      while (there.length > 0) {
        const expected = first();
        expect(heap.pop()).toBe(expected);
        there = there.filter((item) => item !== expected);
      }
      expect(heap.pop()).toBe(-1);
    }),
  );
});

it('an indexed heap stays in order when any of its items leaves or gets another place', () => {
  const step = fc.record({ item: fc.nat(40), key: fc.option(fc.nat(9), { nil: null }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), fc.nat(9), (steps, until) => {
      const keys = new Map<number, number>();
      const keyOf = (item: number): number => keys.get(item) as number;
      const heap = new IndexedHeap((a, b) => (keyOf(a) - keyOf(b) || a - b) < 0);
      for (const { item, key } of steps) {
        // Without a key it leaves, there or not.
        if (key === null) {
          heap.remove(item);
          keys.delete(item);
        } else {
          keys.set(item, key);
          heap.place(item);
        }
        const inOrder = [...keys.keys()].sort((a, b) => keyOf(a) - keyOf(b) || a - b);
        expect([heap.length, heap.top, heap.has(item)]).toEqual([
          keys.size,
          inOrder[0] ?? -1,
          keys.has(item),
        ]);
        const found: number[] = [];
        heap.descend((each) => keyOf(each) <= until && found.push(each) > 0);
        expect(new Set(found)).toEqual(new Set(inOrder.filter((each) => keyOf(each) <= until)));
      }
      const left = [...keys.keys()].sort((a, b) => keyOf(a) - keyOf(b) || a - b);
      expect(Array.from(left, () => heap.pop())).toEqual(left);
      expect(heap.pop()).toBe(-1);
    }),
  );
});
