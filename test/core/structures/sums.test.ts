import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ExactSum } from '../../../src/core/structures/exact-sum.js';
import { RankedSums } from '../../../src/core/structures/ranked-sums.js';
import { nearest, unitsOf } from '../../../src/core/structures/units.js';

const value = fc.oneof(
  fc.constant(0),
  fc.double({ min: 1e-9, max: 1e9, noNaN: true }),
  // Of any size, with full mantissas.
  fc
    .tuple(fc.double({ min: 1, max: 2, noNaN: true }), fc.integer({ min: -140, max: 90 }))
    .map(([m, e]) => m * 2 ** e),
);
/** What the numbers add up to, in whole units. */
const exactly = (values: readonly number[]): bigint => values.reduce((sum, each) => sum + unitsOf(each), 0n);

describe('an exact sum', () => {
  it('is the number nearest to what is in it, whatever came first, or came and went', () => {
    fc.assert(
      fc.property(fc.array(value), fc.array(value), fc.infiniteStream(fc.nat(1000)), (kept, gone, keys) => {
        const sum = new ExactSum();
        for (const each of [...kept, ...gone]) sum.add(each);
        for (const each of gone) sum.remove(each);
        const other = new ExactSum();
        const shuffled = kept.map((each) => ({ each, key: keys.next().value as number }));
        for (const { each } of shuffled.sort((a, b) => a.key - b.key)) other.add(each);
        expect([sum.value, sum.count]).toEqual([other.value, kept.length]);
        expect(sum.value).toBe(nearest(exactly(kept)));
        expect(other.copy().value).toBe(sum.value);
      }),
    );
  });

  it('rounds what lies between two numbers once', () => {
    // One unit of the last place and a little more than half of it: two roundings would give another number.
    for (const parts of [
      [2 ** 53, 1, 2 ** -80],
      [2 ** 53, 1],
      [2 ** 53 + 2, 1],
      [2 ** 53, 1 - 2 ** -53],
      [2 ** 28, 2 ** -25, 2 ** -100],
      [2 ** 55, 2 ** 2, 2 ** -60, 2 ** -130],
    ]) {
      const sum = new ExactSum();
      for (const part of parts) sum.add(part);
      expect(sum.value).toBe(nearest(exactly(parts)));
    }
  });

  it('is above 0 when something is in it, and 0 when nothing is or only nothing', () => {
    const sum = new ExactSum();
    sum.add(0);
    expect(sum.value).toBe(0);
    sum.add(1e-300);
    expect(sum.value).toBe(1e-300);
    sum.remove(1e-300);
    expect(sum.value).toBe(0);
  });
});

describe('whole units', () => {
  it('are the number itself, and come back as it', () => {
    fc.assert(fc.property(value, (each) => nearest(unitsOf(each)) === each));
  });
});

describe('ranked sums', () => {
  const change = fc.record({
    column: fc.nat(3),
    rank: fc.oneof(fc.nat(9), fc.integer({ min: -1, max: 300 })),
    value,
    back: fc.option(fc.nat(50)),
  });

  it('are what counting those of at least the rank gives, in every column', () => {
    fc.assert(
      fc.property(
        fc.array(change, { maxLength: 60 }),
        fc.nat(310),
        fc.integer({ min: 1, max: 64 }),
        (given, from, ranks) => {
          const [first, second] = [new RankedSums(4, ranks), new RankedSums(4)];
          const sums = first;
          const there: (typeof given)[number][] = [];
          for (const one of given) {
            // In two parts that are looked at as one.
            const part = one.column % 2 === 0 ? first : second;
            part.add(one.column, one.rank, one.value, 1);
            there.push(one);
            if (one.back === null) continue;
            const [gone] = there.splice(one.back % there.length, 1);
            if (gone) (gone.column % 2 === 0 ? first : second).add(gone.column, gone.rank, gone.value, -1);
          }
          const counts = new Float64Array(4);
          const values = new Float64Array(4);
          sums.countsFrom(from, counts, second);
          sums.valuesFrom(from, values, second);
          for (let column = 0; column < 4; column++) {
            const exact = new ExactSum();
            for (const one of there) if (one.column === column && one.rank >= from) exact.add(one.value);
            expect([counts[column], values[column]]).toEqual([exact.count, exact.value]);
          }
        },
      ),
    );
  });
});
