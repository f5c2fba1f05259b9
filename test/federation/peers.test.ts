/** Two services as peers: jobs go over, run once, and come back; what people do to them goes across, and each side decides for itself. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkPromises } from '../support/promises.js';
import { type Launch, type PeerService, until, withService } from './service.js';

const ledger: Launch[] = [];
const a = withService('a', ledger);
const b = withService('b', ledger);

/** Where these ran, in the order of their numbers. */
const ran = (numbers: readonly number[]): string[] =>
  numbers.flatMap((number) => ledger.filter((one) => one.number === number).map(({ site }) => site));
const everyOne = <T>(of: readonly unknown[], what: T): T[] => of.map(() => what);
const toB = { os: 'b' };

const heard: { cursor: string; job: string; state: string | null }[] = [];

beforeAll(async () => {
  // Each runs jobs of the other: the key that the other has made.
  const ofB = await a.federate({ name: 'b', forward: 'WHEN_NEEDED' });
  const ofA = await b.federate({ name: 'a', url: a.api.url, key: ofB });
  await a.federate({ name: 'b', url: b.api.url, key: ofA });
  const updates = a.api.subscriber().iterate<{
    jobUpdated: { cursor: string; event: { toState: string | null }; job: { id: string } };
  }>({ query: 'subscription { jobUpdated(after: "0") { cursor event { toState } job { id } } }' });
  void (async () => {
    for await (const { data } of updates)
      if (data) {
        const { cursor, event, job } = data.jobUpdated;
        heard.push({ cursor, job: job.id, state: event.toState });
      }
  })();
});

afterAll(async () => {
  for (const { api } of [a, b]) expect(await checkPromises(api.db.pool)).toEqual([]);
});

test('what cannot run at home runs at the peer, once; its owner’s subscribers hear each event once', async () => {
  const numbers = [1, 2, 3, 4];
  const ids = await a.submit(numbers, toB);
  await a.until('they have run', ids, 'COMPLETED');
  expect(await a.jobs(ids)).toEqual(everyOne(ids, { state: 'COMPLETED', cause: 'EXITED_ZERO', site: 'b' }));
  expect(ran(numbers)).toEqual(everyOne(numbers, 'site-b'));
  const { job } = await a.must<{ job: object }>(
    `{ job(id: "${ids[1]}") { output(stream: STDOUT) { text } runs { site { name } exitCode startedAt } foreign { user } } }`,
  );
  expect(job).toMatchObject({
    output: { text: 'out of 2\n' },
    runs: [{ site: { name: 'b' }, exitCode: 0, startedAt: expect.any(String) }],
    foreign: null,
  });
  const states = ['QUEUED', 'DISPATCHED', 'ASSIGNED', 'RUNNING', 'COMPLETED'];
  await until('all is heard', () => heard.filter(({ job }) => ids.includes(job)).length >= 4 * states.length);
  for (const id of ids)
    expect(heard.filter(({ job }) => job === id).map(({ state }) => state)).toEqual(states);
  expect(new Set(heard.map(({ cursor }) => cursor)).size).toBe(heard.length);
  await until('b has told all', async () => (await b.copies()).every(({ told }) => told === 2));
});

test('cancel, hold, release and boost go across, for what waits there and for what runs', async () => {
  // Nothing else of b's has as many CPUs free while this runs.
  const [wide] = (await a.submit([100], { ...toB, cpusPerTask: 4, simulatedRunS: null })) as [string];
  await a.until('it runs', [wide], 'RUNNING');
  const ids = (await a.submit([101, 102, 103], toB)) as [string, string, string];
  const [boosted, held, cancelled] = ids;
  await until('they wait at b', async () => (await b.copiesOf(ids)).length === 3);
  await a.must('mutation ($s: JobSelection!) { reprioritizeJobs(selection: $s, boost: 7) { jobIds } }', {
    s: { ids: [boosted] },
  });
  await a.change('holdJobs', [held]);
  await a.change('cancelJobs', [cancelled]);
  const over = { state: 'CANCELLED', cause: 'WITHDRAWN' };
  await until('b knows', async () =>
    (await b.copiesOf(ids)).every(({ boost, cause }) => boost + (cause ? 7 : 0) === 7),
  );
  expect(await b.copiesOf(ids)).toMatchObject([{ boost: 7 }, over, over]);
  await a.change('releaseJobs', [held]);
  await until('it is offered anew', async () => (await b.copiesOf([held])).length === 2);
  await a.change('cancelJobs', [wide]);
  await a.until('it is stopped', [wide], 'CANCELLED');
  await a.until('the others have run', [boosted, held], 'COMPLETED');
  expect(await a.jobs([wide, cancelled])).toEqual([
    { state: 'CANCELLED', cause: 'CANCELLED_BY_OPERATOR', site: 'b' },
    { state: 'CANCELLED', cause: 'CANCELLED_BY_OPERATOR', site: null },
  ]);
  expect(ran([100, 101, 102, 103])).toEqual(everyOne([1, 2, 3], 'site-b'));
});

test('isolation, at once: what waits is its owner’s again, what runs ends, and nothing is lost', async () => {
  const [wide] = (await a.submit([200], { ...toB, cpusPerTask: 4, simulatedRunS: null })) as [string];
  await a.until('it runs', [wide], 'RUNNING');
  const queued = await a.submit([201, 202], toB);
  await until('they wait at b', async () => (await b.copiesOf(queued)).length === 2);
  const change = async (mutation: 'isolatePeer' | 'rejoinPeer') =>
    b.must(`mutation ($peer: ID!) { ${mutation}(peer: $peer) { isolated } }`, {
      peer: (await b.peer('a')).site.id,
    });
  await change('isolatePeer');
  expect((await b.copiesOf(queued)).map(({ state }) => state)).toEqual(['CANCELLED', 'CANCELLED']);
  b.runner.finish(200);
  await a.until('what ran has ended', [wide], 'COMPLETED');
  await until('b has told all', async () => (await b.copies()).every(({ told }) => told === 2));
  expect(await a.states(queued)).toEqual(['QUEUED', 'QUEUED']);
  expect(await a.peer('b')).toMatchObject({ claimedJobs: 0, offeredJobs: 0 });
  expect(ran([201, 202])).toEqual([]);
  // What was given back rests for a minute before it is offered there again.
  await a.api.db.pool.query('UPDATE offers SET again_at = now()');
  await change('rejoinPeer');
  await a.until('they have run', queued, 'COMPLETED');
  expect(ran([200, 201, 202])).toEqual(everyOne([1, 2, 3], 'site-b'));
});

test.each([
  ['its owner', a, b],
  ['the other way', b, a],
])(
  'a peer whose key is revoked is gone at once; what it has runs once and is told with a new key (%s)',
  async (_, owner, guest) => {
    const numbers = [0, 1, 2].map((n) => n + (owner === a ? 300 : 400));
    const needs = { os: guest.name };
    const [running] = (await owner.submit(numbers.slice(0, 1), {
      ...needs,
      cpusPerTask: 4,
      simulatedRunS: null,
    })) as [string];
    await owner.until('it runs', [running], 'RUNNING');
    const waiting = await owner.submit(numbers.slice(1), needs);
    await until('they wait there', async () => (await guest.copiesOf(waiting)).length === 2);

    const key = await keyOf(owner, guest.name);
    await owner.must('mutation ($id: ID!) { revokeApiKey(apiKey: $id) { id } }', { id: key.id });
    await until('the guest knows', async () =>
      /revoked|key/.test((await guest.peer(owner.name)).failure ?? ''),
    );
    // Its machine is free again, and what waits there gets it: but nobody grants that.
    guest.runner.finish(numbers[0] as number);
    await until('the run has ended there', async () => {
      const [copy] = await guest.copiesOf([running]);
      return copy?.state === 'COMPLETED';
    });
    expect(await owner.states([running, ...waiting])).not.toContain('COMPLETED');
    expect((await guest.copiesOf(waiting)).map(({ granted }) => granted)).toEqual([false, false]);
    expect(ran(numbers.slice(1))).toEqual([]);

    const { createApiKey } = await owner.must<{ createApiKey: { secret: string } }>(
      'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { secret } }',
      { input: { user: key.user, name: 'new', site: key.site } },
    );
    await guest.federate({ name: owner.name, key: createApiKey.secret });
    await owner.until('all have run', [running, ...waiting], 'COMPLETED');
    expect(ran(numbers)).toEqual(everyOne(numbers, `site-${guest.name}`));
    expect((await guest.peer(owner.name)).failure).toBeNull();
  },
);

async function keyOf(
  service: PeerService,
  peer: string,
): Promise<{ id: string; user: string; site: string }> {
  const { rows } = await service.api.db.pool.query(
    `SELECT k.id, k.user_id, k.site_id FROM api_keys k JOIN users u ON u.id = k.user_id
      WHERE u.name = $1 AND k.revoked_at IS NULL`,
    [`peer-${peer}`],
  );
  const [{ id, user_id, site_id }] = rows;
  return { id: `apikey_${id}`, user: `user_${user_id}`, site: `site_${site_id}` };
}
