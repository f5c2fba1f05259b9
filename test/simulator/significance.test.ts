import { expect, it } from 'vitest';
import { RandomStream } from '../../src/core/index.js';
import { normal } from '../../src/simulator/random.js';
import { bootstrap, holm } from '../../src/simulator/significance.js';

it('takes a difference for chance as often as it is said to, and finds one that is there', () => {
  const random = new RandomStream(1, 'test');
  const sample = (mean: number) => Array.from({ length: 20 }, () => mean + normal(random));
  const samples = 200;
  const found = (mean: number) =>
    Array.from({ length: samples }, () => bootstrap(sample(mean))!.p).filter((p) => p <= 0.05).length;
  // Of 200 with nothing to find, 5 % are 10; beyond 24 the odds are 1 in 10 000.
  expect(found(0)).toBeLessThan(25);
  expect(found(1)).toBeGreaterThan(0.9 * samples);
});

it('has no opinion on one pair, and none against equal runs', () => {
  expect(bootstrap([3])).toBeNull();
  expect(bootstrap([0, 0, 0])).toMatchObject({ difference: 0, low: 0, high: 0, p: 1 });
});

// The example of Holm's method in textbooks: 4 × 0.005, 3 × 0.01, then never less than before.
it('corrects for how many are compared, by the method of Holm', () => {
  expect(holm([0.01, 0.04, 0.03, 0.005]).map((p) => Number(p.toFixed(4)))).toEqual([0.03, 0.06, 0.06, 0.02]);
  expect(holm([0.6, 0.9])).toEqual([1, 1]);
});
