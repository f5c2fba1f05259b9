import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Availability } from '../../../src/core/structures/availability.js';
import { cases } from '../../support/seed.js';

const SECONDS = 60;

/** The same by counting second by second; behind the last one everything is free that ever was. */
class Counted {
  private readonly free: number[];

  constructor(private readonly most: number) {
    this.free = new Array(SECONDS).fill(most);
  }

  add(from: number, to: number, amount: number): void {
    for (let second = from; second < to; second++) this.free[second] = this.at(second) + amount;
  }

  at(second: number): number {
    return this.free[second] ?? this.most;
  }

  least(from: number, to: number): number {
    let least = this.at(from);
    for (let second = from + 1; second < to; second++) least = Math.min(least, this.at(second));
    return least;
  }

  earliest(amount: number, length: number, from: number, before: number, until: number): number {
    for (let start = from; start < Math.min(before, SECONDS + 1); start++)
      if (start >= until || this.least(start, Math.min(start + length, until)) >= amount) return start;
    return Infinity;
  }
}

const second = fc.nat(SECONDS - 1);
const step = fc.record({
  from: second,
  length: fc.integer({ min: 1, max: 20 }),
  amount: fc.integer({ min: 1, max: 5 }),
  back: fc.option(fc.nat(100)),
});
const question = fc.record({
  amount: fc.integer({ min: 1, max: 9 }),
  length: fc.integer({ min: 1, max: 25 }),
  from: second,
  before: fc.option(second),
  own: fc.boolean(),
});

describe('what is free when', () => {
  it('is what counting second by second says, as room is taken and given back', () => {
    const given = fc.record({
      most: fc.integer({ min: 1, max: 9 }),
      steps: fc.array(step, { maxLength: 120, size: 'max' }),
      questions: fc.array(question, { minLength: 10, maxLength: 40 }),
      forgets: fc.nat(SECONDS),
    });
    fc.assert(
      fc.property(given, ({ most, steps, questions, forgets }) => {
        const ours = new Availability(most);
        const counted = new Counted(most);
        const taken: (() => void)[] = [];
        const both = (from: number, to: number, amount: number): void => {
          ours.add(from, to, amount);
          counted.add(from, to, amount);
        };
        for (const [i, { from, length, amount, back }] of steps.entries()) {
          const to = Math.min(SECONDS, from + length);
          both(from, to, -amount);
          taken.push(() => both(from, to, amount));
          if (back !== null) taken.splice(back % taken.length, 1)[0]?.();
          const { amount: wanted, length: lasting, from: since } = questions[i % questions.length]!;
          expect(ours.earliest(wanted, lasting, since)).toBe(
            counted.earliest(wanted, lasting, since, Infinity, Infinity),
          );
        }
        ours.forget(forgets);
        for (const { amount, length, from, before, own } of questions) {
          if (from < forgets) continue;
          const limit = before ?? Infinity;
          const until = own ? limit : Infinity;
          expect(ours.earliest(amount, length, from, limit, until)).toBe(
            counted.earliest(amount, length, from, limit, until),
          );
          expect(ours.at(from)).toBe(counted.at(from));
          expect(ours.least(from, from + length)).toBe(counted.least(from, from + length));
          const change = ours.nextChange(from);
          expect(change).toBeGreaterThan(from);
          expect(counted.least(from, Math.min(change, SECONDS))).toBe(counted.at(from));
        }
      }),
      { numRuns: cases(500) },
    );
  });

  it('is the same where hundreds of promises make many chunks', () => {
    const ours = new Availability(64);
    const plain: { at: number; end: number; amount: number }[] = [];
    let state = 1;
    const draw = (most: number): number => {
      state = (Math.imul(state, 1103515245) + 12345) >>> 0;
      return state % most;
    };
    const freeAt = (time: number): number =>
      plain.reduce((free, one) => (one.at <= time && time < one.end ? free - one.amount : free), 64);
    const earliest = (amount: number, length: number): number => {
      const instants = [0, ...plain.map(({ end }) => end)].sort((a, b) => a - b);
      return instants.find((at) => {
        const inside = plain.map((one) => one.at).filter((time) => at < time && time < at + length);
        return [at, ...inside].every((time) => freeAt(time) >= amount);
      }) as number;
    };
    for (let i = 0; i < 600; i++) {
      const amount = 1 + draw(i % 5 === 0 ? 64 : 12);
      const length = 1 + draw(1000) / 7;
      const at = ours.earliest(amount, length, 0);
      expect(at).toBe(earliest(amount, length));
      ours.add(at, at + length, -amount);
      plain.push({ at, end: at + length, amount });
      if (i % 3 !== 0) continue;
      const [gone] = plain.splice(draw(plain.length), 1);
      if (gone) ours.add(gone.at, gone.end, gone.amount);
    }
  });
});
