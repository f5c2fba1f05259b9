/** What is remembered for a while, and asked afresh before anything is refused by it. */
import { expect, test } from 'vitest';
import { remembered } from '../../src/api/services/remembered.js';

/** A question with a clock of its own, of which each time it was asked is answered by hand. */
function asked(isStill?: (answer: string) => Promise<boolean>) {
  const waiting: { resolve(answer: string): void; reject(error: Error): void }[] = [];
  const clock = { s: 0 };
  const ask = () => new Promise<string>((resolve, reject) => void waiting.push({ resolve, reject }));
  return { waiting, clock, known: remembered(2, () => clock.s, ask, isStill) };
}
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

test('calls of a while share an answer; one that failed is asked again', async () => {
  const { waiting, clock, known } = asked();
  const first = [known(), known()];
  waiting[0]?.reject(new Error('away'));
  for (const one of first) await expect(one).rejects.toThrow('away');
  const second = [known(), known()];
  waiting[1]?.resolve('a');
  expect(await Promise.all(second)).toEqual(['a', 'a']);
  clock.s = 2;
  void known();
  expect(waiting).toHaveLength(3);
});

test('afresh is asked after the call, one question at a time, whatever many wait', async () => {
  const { waiting, known } = asked();
  // Under way when the others come: too early for them.
  const early = known();
  const many = Array.from({ length: 1_000 }, () => known.afresh());
  await settled();
  expect(waiting).toHaveLength(2);
  const later = [known.afresh(), known.afresh()];
  await settled();
  expect(waiting).toHaveLength(2);
  waiting[0]?.resolve('early');
  waiting[1]?.resolve('many');
  expect(await early).toBe('early');
  expect(new Set(await Promise.all(many))).toEqual(new Set(['many']));
  await settled();
  expect(waiting).toHaveLength(3);
  waiting[2]?.resolve('later');
  expect(await Promise.all(later)).toEqual(['later', 'later']);
  // It is what is remembered from now on.
  expect(await known()).toBe('later');
  expect(waiting).toHaveLength(3);
});

test('afresh does not ask again what is right still, unless it is old', async () => {
  let isStill = true;
  const checked: string[] = [];
  const { waiting, clock, known } = asked(async (answer) => {
    checked.push(answer);
    return isStill;
  });
  const first = known();
  waiting[0]?.resolve('a');
  await first;
  expect(await known.afresh()).toBe('a');
  expect([waiting.length, checked]).toEqual([1, ['a']]);
  isStill = false;
  const second = known.afresh();
  await settled();
  waiting[1]?.resolve('b');
  expect(await second).toBe('b');
  clock.s = 2;
  const third = known.afresh();
  await settled();
  waiting[2]?.resolve('c');
  expect([await third, checked]).toEqual(['c', ['a', 'a']]);
});

test('afresh fails for those who asked together, and for nobody after them', async () => {
  const { waiting, known } = asked();
  const both = [known.afresh(), known.afresh()];
  await settled();
  waiting[0]?.reject(new Error('away'));
  for (const one of both) await expect(one).rejects.toThrow('away');
  const next = known.afresh();
  await settled();
  waiting[1]?.resolve('back');
  expect(await next).toBe('back');
});
