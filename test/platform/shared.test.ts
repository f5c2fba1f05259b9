import { expect, test } from 'vitest';
import { Places, Shared } from '../../src/platform/shared.js';
import type { Account, Rank } from '../../src/platform/turns.js';

const account = (name: string, rank: Rank = 'people'): Account => ({ name, rank });
function most(shared: Shared, of: Account): number {
  let taken = 0;
  while (shared.take(of, 1)) taken++;
  return taken;
}

test('nobody takes all that there is, and agents and operators find their part', () => {
  const shared = new Shared(1_000);
  expect(most(shared, account('a'))).toBe(375);
  expect(most(shared, account('b'))).toBe(188);
  for (let i = 0; i < 10; i++) most(shared, account(`c${i}`));
  expect(shared.take(account('late'), 10)).toBe(true);
  expect(shared.take(account('agent', 'agents'), 50)).toBe(true);
  expect(shared.take(account('operator', 'operators'), 50)).toBe(true);
});

test('what is given back is there again, and what is alone may be more than there is', () => {
  const shared = new Shared(100);
  expect(shared.take(account('a'), 500)).toBe(true);
  expect(shared.take(account('b'), 5)).toBe(false);
  shared.give(account('a'), 500);
  expect(shared.take(account('b'), 30)).toBe(true);
});

test('who finds no place waits; accounts are served in turn, and who waits too long is told', async () => {
  const places = new Places(8);
  const late = () => new Error('late');
  const held = await Promise.all([1, 2, 3].map(() => places.take(account('greedy'), 0, late)));
  const order: string[] = [];
  const wait = (name: string) =>
    places.take(account(name), 0, late).then((giveBack) => {
      order.push(name);
      return giveBack;
    });
  const others = [wait('greedy'), wait('greedy'), wait('modest')];
  await others[2];
  expect(order).toEqual(['modest']);
  await expect(places.take(account('greedy'), 1, late)).rejects.toThrow('late');
  for (const giveBack of held) giveBack();
  await Promise.all(others);
});
