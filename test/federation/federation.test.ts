/** Two services as peers: jobs go over, run once, and come back; what people do to them goes across. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RandomStream } from '../../src/core/index.js';
import { withDatabase } from '../support/database.js';
import { federate, Link, newLedger, ran, Service, Subscriber } from './world.js';

const databases = withDatabase();
const ledger = newLedger();
let a: Service;
let b: Service;
let toA: Link;
let toB: Link;
let subscriber: Subscriber;

beforeAll(async () => {
  const random = new RandomStream(1, 'link');
  [a, b] = await Promise.all([
    Service.open('a', databases.url, ledger),
    databases.another().then(({ url }) => Service.open('b', url, ledger)),
  ]);
  [toA, toB] = [await Link.to(a.port, random), await Link.to(b.port, random)];
  await federate(a, b, { toA: toA.url, toB: toB.url }, { a: { forward: 'WHEN_NEEDED' } });
  subscriber = new Subscriber(a);
}, 120_000);
afterAll(async () => {
  await subscriber?.stop();
  await Promise.all([a?.close(), b?.close()]);
  toA?.close();
  toB?.close();
});

test('what cannot run at home runs at the peer, once, and its owner hears everything', async () => {
  const ids = await a.submit([1, 2, 3, 4, 5, 6, 7, 8], { os: 'b' });
  await a.ended(ids);
  const jobs = await a.jobs();
  expect(ids.map((id) => jobs.get(id))).toEqual(
    [1, 2, 3, 4, 5, 6, 7, 8].map((number) => ({
      state: number % 7 === 6 ? 'FAILED' : 'COMPLETED',
      cause: number % 7 === 6 ? 'EXITED_NONZERO' : 'EXITED_ZERO',
      epoch: 1,
      site: 'b',
    })),
  );
  expect(ran(ledger).sort()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  const { job } = await a.ask<{ job: object }>(
    `{ job(id: "${ids[1]}") { output(stream: STDOUT) { text } runs { site { name } exitCode startedAt } foreign { user } } }`,
  );
  expect(job).toMatchObject({ output: { text: 'out of 2\n' }, runs: [{ site: { name: 'b' }, exitCode: 0 }], foreign: null });
  await expect.poll(() => ids.map((id) => subscriber.of(id))).toEqual(
    ids.map((_, i) => ['QUEUED', 'DISPATCHED', 'ASSIGNED', 'RUNNING', i === 5 ? 'FAILED' : 'COMPLETED']),
  );
  await expect.poll(() => b.copies()).toBe(0);
});
