/** Whose turn it is. What a turn takes is burnt here, so the machine's speed decides how many turns there are, and not whose they are. */
import { expect, test } from 'vitest';
import { type Account, Turns } from '../../src/platform/turns.js';

const person = (name: string): Account => ({ name, rank: 'people' });
const agent: Account = { name: 'agent', rank: 'agents' };

function burn(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

/** Asks for so many turns at once, each of which takes as long, and notes who had which. */
const ask = (turns: Turns, account: Account, count: number, ms: number, log: string[]) =>
  Promise.all(
    Array.from({ length: count }, async () => {
      await turns.turn(account);
      log.push(account.name);
      burn(ms);
    }),
  );

test('who asks for little does not wait for those who ask for much', async () => {
  const turns = new Turns();
  const log: string[] = [];
  const greedy = ask(turns, person('greedy'), 60, 5, log);
  while (log.length < 10) await new Promise((resolve) => setImmediate(resolve));
  const before = log.length;
  await ask(turns, person('modest'), 3, 0.1, log);
  // At most the turn that was under way, and one of those that came first.
  expect(log.slice(before).filter((name) => name === 'greedy').length).toBeLessThanOrEqual(4);
  await greedy;
});

test('who asks for much that takes longer than it used to is not ahead for longer', async () => {
  const turns = new Turns();
  const log: string[] = [];
  await ask(turns, person('greedy'), 100, 0, log);
  const greedy = ask(turns, person('greedy'), 40, 10, log);
  const before = log.length;
  await ask(turns, person('modest'), 1, 0, log);
  expect(log.slice(before).filter((name) => name === 'greedy').length).toBeLessThanOrEqual(2);
  await greedy;
});

test('agents have their part of the time, however many people there are', async () => {
  const turns = new Turns();
  const log: string[] = [];
  const people = Array.from({ length: 40 }, (_, i) => ask(turns, person(`user ${i}`), 3, 5, log));
  await ask(turns, agent, 10, 5, log);
  // Half, where operators have nothing to do.
  expect(log.filter((name) => name !== 'agent').length).toBeLessThan(30);
  await Promise.all(people);
});

test('what a turn awaits within the process is its own, what comes from outside is nobody’s', async () => {
  const turns = new Turns();
  const account = person('one');
  await turns.turn(account);
  await Promise.resolve();
  await new Promise<void>((resolve) => process.nextTick(resolve));
  expect(turns.current).toBe(account);
  await turns.apart(async () => expect(turns.current).toBeNull());
  expect(turns.current).toBe(account);
  await new Promise((resolve) => setTimeout(resolve, 1));
  expect(turns.current).toBeNull();
  await turns.continued(account, new Promise((resolve) => setTimeout(resolve, 1)));
  expect(turns.current).toBe(account);
});
