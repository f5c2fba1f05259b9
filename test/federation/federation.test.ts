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
    Service.start('a', databases.url, ledger),
    databases.another().then(({ url }) => Service.start('b', url, ledger)),
  ]);
  [toA, toB] = [await Link.to(a.port, random), await Link.to(b.port, random)];
  await federate(a, b, { toA: toA.url, toB: toB.url }, { a: { forward: 'WHEN_NEEDED' } });
  subscriber = new Subscriber(a);
}, 120_000);
afterAll(async () => {
  await Promise.allSettled([subscriber?.stop(), a?.close(), b?.close()]);
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
  expect(job).toMatchObject({
    output: { text: 'out of 2\n' },
    runs: [{ site: { name: 'b' }, exitCode: 0 }],
    foreign: null,
  });
  await expect
    .poll(() => ids.map((id) => subscriber.of(id)))
    .toEqual(
      ids.map((_, i) => ['QUEUED', 'DISPATCHED', 'ASSIGNED', 'RUNNING', i === 5 ? 'FAILED' : 'COMPLETED']),
    );
  await expect.poll(() => b.copies()).toBe(0);
});

test('cancel, hold, release and boost go across, for what waits there and for what runs', async () => {
  const stop = 'mutation ($selection: JobSelection!) { cancelJobs(selection: $selection) { jobIds } }';
  const [running] = (await a.submit([100], { os: 'b', sleepS: 600 })) as [string];
  await a.until(async () => (await a.jobs()).get(running)?.state === 'RUNNING');
  await a.ask(stop, { selection: { ids: [running] } });
  await a.ended([running]);
  expect((await a.jobs()).get(running)).toMatchObject({
    state: 'CANCELLED',
    cause: 'CANCELLED_BY_OPERATOR',
    site: 'b',
  });

  // Nothing of b's has as many CPUs free while this runs.
  const [wide] = (await a.submit([200], { os: 'b', sleepS: 600 }, { cpusPerTask: 8 })) as [string];
  await a.until(async () => (await a.jobs()).get(wide)?.state === 'RUNNING');
  const [boosted, held, cancelled] = (await a.submit([201, 203, 204], { os: 'b' })) as [
    string,
    string,
    string,
  ];
  const waiting = async () => {
    const { rows } = await b.pool.query(
      `SELECT 'job_' || f.owner_job_id AS job, j.boost, j.state, j.cause FROM foreign_jobs f JOIN jobs j ON j.id = f.job_id ORDER BY j.id`,
    );
    return rows.filter(({ job }) => [boosted, held, cancelled].includes(job));
  };
  await b.until(async () => (await waiting()).length === 3);
  await a.ask('mutation ($s: JobSelection!) { reprioritizeJobs(selection: $s, boost: 7) { jobIds } }', {
    s: { ids: [boosted] },
  });
  await a.ask('mutation ($s: JobSelection!) { holdJobs(selection: $s) { jobIds } }', { s: { ids: [held] } });
  await a.ask(stop, { selection: { ids: [cancelled] } });
  const ofB = { state: 'CANCELLED', cause: 'WITHDRAWN' };
  await expect.poll(waiting, { timeout: 30_000 }).toMatchObject([
    { job: boosted, boost: 7 },
    { job: held, ...ofB },
    { job: cancelled, ...ofB },
  ]);
  await a.ask('mutation ($s: JobSelection!) { releaseJobs(selection: $s) { jobIds } }', {
    s: { ids: [held] },
  });
  await b.until(async () => (await waiting()).length === 4);
  await a.ask(stop, { selection: { ids: [wide] } });
  await a.ended([wide, boosted, held, cancelled]);
  const jobs = await a.jobs();
  expect([wide, boosted, held, cancelled].map((id) => jobs.get(id)?.state)).toEqual([
    ...['CANCELLED', 'COMPLETED', 'COMPLETED', 'CANCELLED'],
  ]);
  expect(
    ran(ledger)
      .filter((number) => number >= 100)
      .sort(),
  ).toEqual([100, 200, 201, 203]);
});

test('isolation, at once: what waits is its owner’s again, what runs ends, and nothing is lost', async () => {
  const peerOf = (at: Service) =>
    at.ask<{ federationPeers: { site: { id: string }; foreignJobs: number }[] }>(
      '{ federationPeers { site { id } isolated offeredJobs foreignJobs claimedJobs forward user { name } kinds { os cpus } } }',
    );
  const change = async (at: Service, mutation: string) =>
    at.ask(`mutation ($peer: ID!) { ${mutation}(peer: $peer) { isolated } }`, {
      peer: (await peerOf(at)).federationPeers[0]?.site.id,
    });
  const [wide] = (await a.submit([310], { os: 'b', sleepS: 5 }, { cpusPerTask: 8 })) as [string];
  await a.until(async () => (await a.jobs()).get(wide)?.state === 'RUNNING');
  const queued = await a.submit([311, 312], { os: 'b' });
  await b.until(async () => (await b.copies()) === 3);
  await change(b, 'isolatePeer');
  expect((await peerOf(b)).federationPeers[0]).toMatchObject({ isolated: true, user: { name: 'peer-a' } });
  await a.ended([wide]);
  await b.until(async () => (await b.copies()) === 0);
  const jobs = await a.jobs();
  expect(jobs.get(wide)).toMatchObject({ state: 'COMPLETED' });
  expect(queued.map((id) => jobs.get(id)?.state)).not.toContain('ASSIGNED');
  expect(ran(ledger).filter((number) => number > 310)).toEqual([]);
  expect((await peerOf(a)).federationPeers[0]).toMatchObject({
    claimedJobs: 0,
    kinds: [{ os: 'b', cpus: 8 }],
  });
  // What was given back rests for a minute before it is offered there again; what is new does not.
  await change(b, 'rejoinPeer');
  await a.until(async () => {
    await a.pool.query('UPDATE offers SET again_at = now()');
    const now = await a.jobs();
    return queued.every((id) => now.get(id)?.state === 'COMPLETED');
  });
  expect(
    ran(ledger)
      .filter((number) => number > 310)
      .sort(),
  ).toEqual([311, 312]);
});
