/** Two services as peers: jobs go over, run once, and come back; what people do to them goes across, and each side decides for itself. */
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { buildProgram } from '../../src/cli/program.js';
import { type StayingFields, stayingFields } from '../../src/store/job-fields.js';
import { NotAccepted } from '../../src/words/values.js';
import { portOf } from '../support/ports.js';
import { checkPromises } from '../support/promises.js';
import { type Launch, type Peer, type PeerService, until, withService } from './service.js';

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

test('a job of several parts runs at the peer with its parts, once, and its owner knows them', async () => {
  const parts = [{ cpusPerTask: 2 }, { tasks: 2, memoryMbPerTask: 100 }];
  const [id] = (await a.submit([20], { ...toB, parts })) as [string];
  await a.until('it has run', [id], 'COMPLETED');
  const told = ledger.filter(({ number }) => number === 20);
  expect(told.map(({ site, part }) => `${site} ${part}`).sort()).toEqual([
    'site-b part 0, task 0: 2 CPUs',
    'site-b part 1, task 1: 1 CPUs',
    'site-b part 1, task 2: 1 CPUs',
  ]);
  // Together they would fit, but the second has no machine with so much memory.
  const large = [{}, { memoryMbPerTask: 4_001 }];
  const [never] = (await a.submit([21], { ...toB, parts: large })) as [string];
  const { job } = await a.must<{ job: { peers: { reason: string }[] } }>(
    `{ job(id: "${never}") { peers { reason } } }`,
  );
  expect(job.peers).toEqual([{ reason: expect.stringContaining('None of the machines that it reports') }]);
  await a.change('cancelJobs', [never]);
});

test('cancel, hold, release and boost go across, for what waits there and for what runs', async () => {
  // Nothing else of b's has as many CPUs free while this runs.
  const [wide] = (await a.submit([100], { ...toB, cpusPerTask: 4, simulatedRunS: null })) as [string];
  await a.until('it runs', [wide], 'RUNNING');
  const ids = (await a.submit([101, 102, 103], toB)) as [string, string, string];
  const [boosted, held, cancelled] = ids;
  await until('they wait at b', async () => (await b.copiesOf(ids)).length === 3);
  await a.must(
    'mutation ($s: JobSelection!) { reprioritizeJobs(input: { selection: $s, boost: 7 }) { jobIds } }',
    {
      s: { ids: [boosted] },
    },
  );
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
    b.must(`mutation ($peer: ID!) { ${mutation}(input: { siteId: $peer }) { peer { isolated } } }`, {
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
    await owner.must('mutation ($id: ID!) { revokeApiKey(input: { apiKeyId: $id }) { apiKey { id } } }', {
      id: key.id,
    });
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
      { input: { userId: key.user, name: 'new', siteId: key.site } },
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

test('what the other side takes and offers is its administrator’s choice: cap, priority and user of foreign jobs', async () => {
  const user = async (name: string, more: object = {}) => {
    const { createUser } = await b.must<{ createUser: { user: { id: string } } }>(
      'mutation ($input: CreateUserInput!) { createUser(input: $input) { user { id } } }',
      { input: { name, role: 'USER', ...more } },
    );
    return createUser.user.id;
  };
  const [guests, ann] = [await user('guests'), await user('ann')];
  const settings = { name: 'a', foreignMax: 2, foreignBoost: 50, userId: guests };
  await b.federate({ ...settings, users: [{ name: 'alice', userId: ann }] });
  const { key: alice } = await a.api.user('USER', 'alice');

  // Nothing else of b's has room while this runs; what comes later from a goes before its own.
  const [blocking] = (await b.submit([500], { os: 'b', cpusPerTask: 4, simulatedRunS: null })) as [string];
  await b.until('it runs', [blocking], 'RUNNING');
  const own = await b.submit([505], { os: 'b', cpusPerTask: 4 });
  await b.until('it waits', own, 'DISPATCHED');
  const numbers = [501, 502, 503, 504];
  const ids = [
    ...(await a.submit(numbers.slice(0, 1), { ...toB, cpusPerTask: 4 }, alice)),
    ...(await a.submit(numbers.slice(1), { ...toB, cpusPerTask: 4 })),
  ];
  await until('two wait at b, in the same queue', async () => {
    const there = await b.copiesOf(ids);
    return there.length === 2 && there.every(({ state }) => state === 'DISPATCHED');
  });
  expect(await b.copiesOf(ids)).toMatchObject([
    { job: ids[0], boost: 50, user: 'ann' },
    { job: ids[1], boost: 50, user: 'guests' },
  ]);
  expect(await b.peer('a')).toMatchObject({ foreignJobs: 2 });
  b.runner.finish(500);
  await a.until('all have run', ids, 'COMPLETED');
  await b.until('its own, too', own, 'COMPLETED');
  expect(ran(numbers)).toEqual(everyOne(numbers, 'site-b'));
  const order = ledger.map(({ number }) => number);
  expect(order.indexOf(505)).toBeGreaterThan(order.indexOf(502));

  // The user sees these jobs as their own, and nobody else's; the peer's key sees none.
  const { createApiKey } = await b.must<{ createApiKey: { secret: string } }>(
    'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { secret } }',
    { input: { userId: ann, name: 'test' } },
  );
  const seen = '{ jobs(first: 100) { nodes { peers { state } foreign { peer { name } job user } } } }';
  expect(await b.must(seen, {}, createApiKey.secret)).toEqual({
    jobs: { nodes: [{ peers: [], foreign: { peer: { name: 'a' }, job: ids[0], user: 'alice' } }] },
  });
  const { rows } = await a.api.db.pool.query(`SELECT secret FROM peers WHERE secret IS NOT NULL`);
  const asPeer = await b.api.ask(seen, {}, rows[0].secret);
  expect(asPeer.errors?.[0]?.extensions.code).toBe('FORBIDDEN');

  // Quotas of the user here count.
  await b.must('mutation ($input: UpdateQuotaInput!) { updateQuota(input: $input) { user { id } } }', {
    input: { userId: ann, submissionLimit: 1, submissionPeriodS: 3_600, reason: 'test' },
  });
  await b.federate({ name: 'a', foreignMax: 1_000, foreignBoost: 0 });
  const [over] = (await a.submit([510], toB, alice)) as [string];
  await until('it is given back', async () => {
    const { job } = await a.must<{ job: { peers: { reason: string | null }[] } }>(
      `{ job(id: "${over}") { peers { reason } } }`,
    );
    return /gave the job back/.test(job.peers[0]?.reason ?? '');
  });
  expect(await b.copiesOf([over])).toEqual([]);
  await b.federate({ name: 'a', users: [{ name: 'alice', userId: null }] });
  await a.api.db.pool.query('UPDATE offers SET again_at = now()');
  await a.until('it runs as all others do', [over], 'COMPLETED');
  expect(await b.copiesOf([over])).toMatchObject([{ user: 'guests' }]);
});

test('nobody acts as an operator by being mapped', async () => {
  const { id } = await b.api.user('OPERATOR', 'olga');
  const input = { name: 'a', users: [{ name: 'alice', userId: id }] };
  for (const wrong of [input, { name: 'a', userId: id }]) {
    const { errors } = await b.api.ask(
      'mutation ($input: SetPeerInput!) { setPeer(input: $input) { secret } }',
      { input: wrong },
    );
    expect(errors?.[0]).toMatchObject({
      message: 'the user olga has the role OPERATOR; jobs of peers can only belong to a USER',
      extensions: { code: 'CONFLICT' },
    });
  }
  // Nor by becoming one.
  const { id: rose } = await b.api.user('USER', 'rose');
  await b.federate({ name: 'a', users: [{ name: 'rob', userId: rose }] });
  await b.api.db.pool.query(`UPDATE users SET role = 'OPERATOR' WHERE name = 'rose'`);
  const { key: rob } = await a.api.user('USER', 'rob');
  const [refused] = (await a.submit([520], toB, rob)) as [string];
  await until('it is given back', async () => {
    const { rows } = await a.api.db.pool.query('SELECT withdrawn FROM offers WHERE job_id = $1', [
      refused.split('_')[1],
    ]);
    return rows[0]?.withdrawn === true;
  });
  expect(await b.copiesOf([refused])).toEqual([]);
  await a.change('cancelJobs', [refused]);
});

/** A guest of this test, which is told what it is offered and claims nothing. */
async function stub(owner: PeerService, name: string, settings: object) {
  const key = (await owner.federate({ name, ...settings })) as string;
  const kind = {
    site: 1,
    os: name,
    architecture: 'x64',
    cpus: 4,
    memoryMb: 4_000,
    machines: 1,
    hops: 1,
    licenses: [],
  };
  const ask = async (input: object, os: string[] = [name]): Promise<{ job: string; request: Request }[]> => {
    const kinds = os.map((one) => ({ ...kind, os: one }));
    const given = { protocol: 1, service: name, after: '0', room: 100, kinds, ...input };
    const data = await owner.must<{
      exchangeJobs: { offers: { job: string; state: string; request: Request }[] };
    }>(
      `mutation ($input: ExchangeInput!) { exchangeJobs(input: $input) { offers { offer job state
         request { hops visited user preferences { os licenses cpusPerTask } } } } }`,
      { input: given },
      key,
    );
    return data.exchangeJobs.offers.filter(({ state }) => state === 'OFFERED');
  };
  return { key, ask, change: (more: object) => owner.federate({ name, ...more }) };
}
interface Request {
  hops: number;
  visited: string[];
  user: string;
  preferences: object[];
}

test('NEVER, WHEN_NEEDED and ALWAYS: what a peer is offered, and what is said of jobs that it is not', async () => {
  const c = await stub(a, 'c', { forward: 'NEVER' });
  const [there] = (await a.submit([600], { os: 'c' })) as [string];
  // At home nothing has room for it while the other runs.
  const [running] = (await a.submit([601], { os: 'a', cpusPerTask: 4, simulatedRunS: null })) as [string];
  await a.until('it runs', [running], 'RUNNING');
  const [here] = (await a.submit([602], { os: 'a', cpusPerTask: 4 })) as [string];
  const [data] = (await a.submit([603], { os: 'c', inputs: [{ sizeMb: 1, site: a.site }] })) as [string];
  const [stopped] = (await a.submit([604], { os: 'c', held: true })) as [string];
  const keeping: Record<keyof StayingFields, object> = {
    resourcesPerTask: { resourcesPerTask: [{ kind: 'gpu', amount: 1 }] },
    tasksPerMachine: { tasksPerMachine: { min: 1, max: 1 } },
    resources: { resources: [{ kind: 'tape', amount: 1 }] },
    exclusive: { exclusive: 'MACHINE' },
    allAlike: { allAlike: ['rack'] },
    sameSwitch: { sameSwitch: { maxWaitS: null } },
    machineConstraint: { machineConstraint: 'fast' },
    image: { image: 'debian' },
    downloads: { downloads: [{ url: 'http://files.example/a' }] },
    uploads: { uploads: [{ path: 'a', url: 'http://files.example/a' }] },
    terminal: { terminal: { rows: 24, columns: 80 } },
    reservationId: { reservation: 'tomorrow', runTimeLimitS: 60 },
  };
  const {
    createMachine: { machine: spare },
  } = await a.must<{ createMachine: { machine: { id: string } } }>(
    'mutation ($input: CreateMachineInput!) { createMachine(input: $input) { machine { id } } }',
    {
      input: {
        ...{ siteId: a.site, name: 'spare', cpus: 4, memoryMb: 4_000, benchmark: 100, os: 'spare' },
        ...{ architecture: 'x64', devices: [{ id: 'gpu0', kind: 'gpu' }] },
      },
    },
  );
  await a.must('mutation ($input: CreateLicenseInput!) { createLicense(input: $input) { license { id } } }', {
    input: { kind: 'tape', copies: 1, siteId: a.site },
  });
  const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000);
  await a.must('mutation ($input: CreateHoldInput!) { createHold(input: $input) { hold { id } } }', {
    input: {
      siteId: a.site,
      name: 'tomorrow',
      machineIds: [spare.id],
      from: inHours(24),
      to: inHours(25),
    },
  });
  const staying: string[] = [];
  for (const [i, field] of stayingFields.entries())
    staying.push(...(await a.submit([610 + i], { os: 'c', ...keeping[field] })));
  const alone = { os: 'c', parts: [{ tasks: 1 }, { exclusive: 'USER' }] };
  staying.push(...(await a.submit([630], alone)));
  const offered = async () => (await c.ask({}, ['a', 'c'])).map(({ job }) => job);
  const why = async (job: string) => {
    const answer = await a.must<{
      job: { peers: { peer: { name: string }; state: string; reason: string }[] };
    }>(`{ job(id: "${job}") { peers { peer { name } state reason } } }`);
    const { state, reason } = answer.job.peers.find(({ peer }) => peer.name === 'c') ?? {};
    return state ?? reason;
  };
  expect(await offered()).toEqual([]);
  expect(await why(there)).toBe('It is offered no jobs (NEVER).');

  await c.change({ forward: 'WHEN_NEEDED', neededAfterS: 1e9 });
  expect(await offered()).toEqual([there]);
  expect(await why(there)).toBe('OFFERED');
  expect(await why(here)).toMatch(/WHEN_NEEDED/);
  expect(await why(data)).toMatch(/input data/);
  expect(await why(stopped)).toBe('The job is held.');
  for (const job of staying) expect(await why(job)).toMatch(/stays with the sites of this service/);
  // It has waited for longer than that.
  await c.change({ neededAfterS: 0 });
  expect(await offered()).toEqual([there, here]);

  await c.change({ forward: 'ALWAYS', neededAfterS: 1e9 });
  expect(await offered()).toEqual([there, here]);
  const [unfit] = (await a.submit([605], { os: 'nowhere' })) as [string];
  expect(await why(unfit)).toMatch(/None of the machines/);
  a.runner.finish(601);
  await a.until('it has run at home', [here], 'COMPLETED');
  await a.change('cancelJobs', [there, data, stopped, unfit, ...staying]);
});

/** A server of files; answers with its address, and what was asked for. */
async function files(contents: Record<string, string>): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer(({ url = '' }, response) => {
    asked.push(url);
    const content = contents[url];
    response.writeHead(content === undefined ? 404 : 200).end(content);
  });
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${await portOf(server)}`, asked };
}

test('WHEN_CHEAPER: what has fewer jobs ahead there, and costs less, runs there; the peer’s queue is shown with its age', async () => {
  await a.federate({ name: 'b', forward: 'WHEN_CHEAPER' });
  const [blocking] = (await a.submit([900], { os: 'a', cpusPerTask: 4, simulatedRunS: null })) as [string];
  await a.until('it runs', [blocking], 'RUNNING');
  const numbers = [901, 902, 903];
  const ids = await a.submit(numbers, { cpusPerTask: 4 });
  // Nobody is ahead of the first here, either.
  await a.until('the others have run', ids.slice(1), 'COMPLETED');
  expect(ran(numbers.slice(1))).toEqual(['site-b', 'site-b']);
  expect(ran(numbers.slice(0, 1))).toEqual([]);
  const { job } = await a.must<{ job: { peers: object[] } }>(
    `{ job(id: "${ids[0]}") { peers { peer { name } state reason } } }`,
  );
  const reason = expect.stringMatching(/WHEN_CHEAPER.*\d+ jobs ahead/);
  expect(job.peers).toContainEqual({ peer: { name: 'b' }, state: null, reason });
  const { federationPeers } = await a.must<{ federationPeers: object[] }>(
    '{ federationPeers { name load { ahead work power benchmark at } } }',
  );
  const load = {
    ahead: expect.any(Number),
    work: expect.any(Number),
    power: 400,
    benchmark: 100,
    at: expect.any(String),
  };
  expect(federationPeers).toContainEqual({ name: 'b', load });
  a.runner.finish(900);
  await a.until('the first has run here', ids, 'COMPLETED');
  expect(ran(numbers.slice(0, 1))).toEqual(['site-a']);
  await a.federate({ name: 'b', forward: 'WHEN_NEEDED' });
});

test('a job whose data have URLs runs at a peer that fetches them; others stay, and why is said', async () => {
  const text = 'read at the peer';
  const { url, asked } = await files({ '/good': text, '/other': 'not what the catalog says' });
  const dataset = async (name: string, location: string | null) => {
    const { createDataset } = await a.must<{ createDataset: { dataset: { id: string } } }>(
      'mutation ($input: DatasetInput!) { createDataset(input: $input) { dataset { id } } }',
      {
        input: {
          ...{ name, sizeMb: text.length / 1e6, sha256: createHash('sha256').update(text).digest('hex') },
          ...(location === null
            ? { replicaSiteIds: [a.site] }
            : { locations: [{ siteId: a.site, location }] }),
        },
      },
    );
    return { dataset: createDataset.dataset.id };
  };
  const good = await dataset('good data', `${url}/good`);
  const other = await dataset('other data', `${url}/other`);
  const path = await dataset('by path', '/data/path');
  const nowhere = await dataset('nowhere', null);
  const gone = await dataset('gone', '/data/gone');

  const [first] = (await a.submit([650], { ...toB, inputs: [gone, good], held: true })) as [string];
  await a.must('mutation ($d: ID!) { removeDataset(input: { datasetId: $d }) { dataset { id } } }', {
    d: gone.dataset,
  });
  await a.change('releaseJobs', [first]);
  const [again] = (await a.submit([651], { ...toB, inputs: [good] })) as [string];
  await a.until('they have run', [first, again], 'COMPLETED');
  for (const number of [650, 651])
    expect(ledger.filter((one) => one.number === number)).toEqual([
      { site: 'site-b', number, read: { 'good data': text } },
    ]);
  // The second from the cache.
  expect(asked).toEqual(['/good']);

  const why = async (job: string) =>
    (
      await a.must<{ job: { peers: { peer: { name: string }; reason: string | null }[] } }>(
        `{ job(id: "${job}") { peers { peer { name } reason } } }`,
      )
    ).job.peers.find(({ peer }) => peer.name === 'b')?.reason;
  const staying = await a.submit([652, 653], { ...toB, inputs: [good, path] });
  staying.push(...(await a.submit([654], { ...toB, inputs: [nowhere] })));
  staying.push(...(await a.submit([655], { ...toB, inputs: [good, { sizeMb: 1, site: a.site }] })));
  // What comes to b after them shows that they have been passed over.
  const [bad] = (await a.submit([656], { ...toB, inputs: [other] })) as [string];
  await a.until('what comes is not what was said', [bad], 'FAILED');
  expect(await a.jobs([bad])).toEqual([{ state: 'FAILED', cause: 'INPUT_MISMATCH', site: 'b' }]);
  expect(await b.copiesOf(staying)).toEqual([]);
  expect(await why(staying[0] as string)).toMatch(/by path have no http\(s\) URL/);
  expect(await why(staying[2] as string)).toMatch(/nowhere have no http\(s\) URL/);
  expect(await why(staying[3] as string)).toMatch(/only the amount and the site are known/);
  await a.must(
    'mutation ($dataset: ID!, $locations: [DatasetLocationInput!]!) { updateReplicas(input: { datasetId: $dataset, locations: $locations }) { dataset { id } } }',
    { dataset: nowhere.dataset, locations: [{ siteId: a.site, location: `${url}/good` }] },
  );
  await a.until('now it can be fetched', staying.slice(2, 3), 'COMPLETED');
  await a.change('cancelJobs', staying);
});

test('peers are told no address that only this host or its network reaches, however it is written', async () => {
  const isPublic = async (location: string, ...allowed: string[]): Promise<boolean> => {
    const { rows } = await a.api.db.pool.query('SELECT triggers.is_public($1, $2) AS is', [
      location,
      allowed,
    ]);
    return rows[0].is;
  };
  const open = [
    'data.example.org',
    'DATA.example.org:8443',
    'me:word@data.example.org',
    '8.8.8.8',
    '172.32.0.1',
    '[2600:1f::1]:80',
    'a-b.c_d.de.',
  ];
  for (const host of open) expect(await isPublic(`https://${host}/file?x=1`), host).toBe(true);
  expect(await isPublic('HTTP://data.example.org')).toBe(true);
  const closed = [
    ...[
      'localhost',
      'LOCALHOST.',
      'a.localhost',
      'files',
      'files.local',
      'files.internal',
      '127.0.0.1',
      '127.1',
      '2130706433',
    ],
    ...[
      '0x7f.0.0.1',
      '0177.0.0.1',
      '127.0.0.1.',
      '10.1.2.3',
      '172.16.0.1',
      '172.31.255.255',
      '192.168.1.1',
      '169.254.169.254',
    ],
    ...[
      '100.64.0.1',
      '0.0.0.0',
      '224.0.0.1',
      '255.255.255.255',
      '999.1.1.1',
      '[::1]',
      '[::ffff:7f00:1]',
      '[fe80::1]',
      '[fd00::1]',
    ],
    ...[
      '[2002:7f00:1::]',
      '[2001:0:1::1]',
      '[2600::127.0.0.1]',
      '1%32%37.0.0.1',
      '１２７.0.0.1',
      'data.example.org@127.0.0.1',
      '',
      '/127.0.0.1',
    ],
    ...[
      '\\\\127.0.0.1',
      'x\\@127.0.0.1',
      '127.0.0.1#@data.example.org',
      '127.0.0.1?@data.example.org',
      '12\t7.0.0.1',
    ],
  ];
  for (const host of closed) expect(await isPublic(`http://${host}/file`), host).toBe(false);
  for (const location of [
    '/data/file',
    'file:///data',
    's3://data.example.org/x',
    'http:data.example.org',
    'http:/data.example.org',
  ])
    expect(await isPublic(location), location).toBe(false);
  expect(await isPublic('http://files:81/x', 'files')).toBe(true);
  expect(await isPublic('http://[fd00::1]/x', '[fd00::1]')).toBe(true);
  expect(await isPublic('http://10.1.2.3/x', '10.1.2.4')).toBe(false);
});

test('a job whose data lie at a site only runs at a peer: agents hand copies to the service, the peer fetches them there', async () => {
  const text = 'only at the site of a';
  const dataset = async (name: string, location: string, size = text.length) => {
    const { createDataset } = await a.must<{ createDataset: { dataset: { id: string } } }>(
      'mutation ($input: DatasetInput!) { createDataset(input: $input) { dataset { id } } }',
      { input: { name, sizeMb: size / 1e6, locations: [{ siteId: a.site, location }] } },
    );
    return { dataset: createDataset.dataset.id };
  };
  writeFileSync(join(a.data, 'here'), text);
  mkdirSync(join(a.data, 'directory'));
  const here = await dataset('data at a', join(a.data, 'here'));
  const ofHost = await dataset('of the host', '/etc/hostname');
  const directory = await dataset('a directory', join(a.data, 'directory'), 0);
  // More than all copies together may take.
  const huge = await dataset('too large', join(a.data, 'here'), 1e12);

  const [waits] = (await a.submit([670], { ...toB, inputs: [here] })) as [string];
  // What comes to b after it shows that it has been passed over.
  const [after] = (await a.submit([671], toB)) as [string];
  await a.until('another runs', [after], 'COMPLETED');
  expect(await b.copiesOf([waits])).toEqual([]);
  a.api.exports = true;
  try {
    await a.until('it runs with a copy', [waits], 'COMPLETED');
    expect(ledger.filter(({ number }) => number === 670)).toEqual([
      { site: 'site-b', number: 670, read: { 'data at a': text } },
    ]);
    const [again] = (await a.submit([672], { ...toB, inputs: [here] })) as [string];
    await a.until('the same copy serves another', [again], 'COMPLETED');

    const staying = await a.submit([673], { ...toB, inputs: [ofHost] });
    staying.push(...(await a.submit([674], { ...toB, inputs: [directory] })));
    const [late] = (await a.submit([675], { ...toB, inputs: [huge] })) as [string];
    const why = async (job: string) =>
      (
        await a.must<{ job: { peers: { peer: { name: string }; reason: string | null }[] } }>(
          `{ job(id: "${job}") { peers { peer { name } reason } } }`,
        )
      ).job.peers.find(({ peer }) => peer.name === 'b')?.reason ?? '';
    await until('its agent has said that it may not', async () =>
      /of the host could not be copied for peers: .*AGENT_DATA_DIRECTORIES/.test(
        await why(staying[0] as string),
      ),
    );
    await until('its agent has said that it is none', async () =>
      /a directory could not be copied for peers: .*not a file/.test(await why(staying[1] as string)),
    );
    expect(await b.copiesOf([...staying, late])).toEqual([]);
    await a.change('cancelJobs', [...staying, late]);

    // Whoever knows the address fetches the copy, and a part of it; nobody else does, nor is its secret good for anything else.
    const { rows } = await a.api.db.pool.query(
      'SELECT dataset_id, secret FROM exports WHERE failure IS NULL',
    );
    expect(rows.map(({ dataset_id }) => `dataset_${dataset_id}`)).toEqual([here.dataset]);
    const [{ dataset_id, secret }] = rows;
    const get = (query: string, headers = {}) =>
      fetch(`${a.api.origin}/exports/${dataset_id}${query}`, { headers });
    expect(await (await get(`?key=${secret}`)).text()).toBe(text);
    expect(await (await get(`?key=${secret}`, { range: 'bytes=5-6' })).text()).toBe(text.slice(5, 7));
    expect((await get('')).status).toBe(401);
    expect((await get(`?key=${'0'.repeat(64)}`, { authorization: `Bearer ${a.api.adminKey}` })).status).toBe(
      401,
    );
    expect((await fetch(`${a.api.origin}/exports/${dataset_id + 1}?key=${secret}`)).status).toBe(404);
    expect((await a.api.ask('{ viewer { id } }', {}, secret)).status).toBe(401);

    // It goes when nobody needs it, or the catalog says something else.
    const { files } = a.api.parts.fileStore;
    await files.pruneExports();
    expect((await get(`?key=${secret}`)).status).toBe(200);
    await a.api.db.pool.query(`UPDATE exports SET wanted_at = wanted_at - interval '2 hours'`);
    await files.pruneExports();
    expect((await a.api.db.pool.query('SELECT id FROM files WHERE dataset_id IS NOT NULL')).rows).toEqual([]);
  } finally {
    a.api.exports = false;
  }
});

test('hops: a job goes on while it has some left, with what it prefers, and to nobody who has had it', async () => {
  const d = await stub(b, 'd', { forward: 'ALWAYS' });
  // b tells a of what d has, one service farther away.
  await d.ask({});
  await a.federate({ name: 'b', forward: 'ALWAYS', hops: 2 });
  const preferences = [
    { os: 'd', licenses: ['cad'] },
    { site: a.site, cpusPerTask: 2 },
  ];
  const [job] = (await a.submit([700], { os: 'd', preferences })) as [string];
  const [near] = (await a.submit([701], toB)) as [string];
  await a.until('what b has itself runs there', [near], 'COMPLETED');
  expect(await b.copiesOf([job])).toEqual([]);

  await a.federate({ name: 'b', hops: 3 });
  await until('b has it', async () => (await b.copiesOf([job])).length === 1);
  // It was submitted at a, has been at a and at b, and may go no farther. Preferences of sites are a's own.
  const offers = await d.ask({});
  expect(offers.map(({ request }) => request)).toEqual([
    {
      hops: 1,
      visited: ['a', 'b'],
      user: 'admin',
      preferences: [{ os: 'd', licenses: ['cad'], cpusPerTask: null }],
    },
  ]);
  const e = await stub(b, 'e', { forward: 'ALWAYS' });
  expect(await e.ask({ service: 'a' }, ['d'])).toEqual([]);
  await a.change('cancelJobs', [job]);
});

/** A command as it is typed at `a`; its exit code and what it prints. */
async function cli(...words: string[]): Promise<{ code: number; text: string }> {
  let text = '';
  const written = (piece: unknown): boolean => {
    text += piece;
    return true;
  };
  const spies = [process.stdout, process.stderr].map((stream) =>
    vi.spyOn(stream, 'write').mockImplementation(written),
  );
  vi.stubEnv('SWITCHYARD_URL', a.api.url);
  vi.stubEnv('SWITCHYARD_KEY', a.api.adminKey);
  try {
    await (await buildProgram(words[0])).parseAsync(words, { from: 'user' });
    return { code: 0, text };
  } catch (error) {
    const { exitCode, message } = error as { exitCode?: number; message: string };
    // As main.ts does.
    return { code: error instanceof NotAccepted ? 2 : (exitCode ?? 1), text: text + message };
  } finally {
    vi.unstubAllEnvs();
    for (const spy of spies) spy.mockRestore();
  }
}

test('switchyard peers, federate and why', async () => {
  const home = mkdtempSync(join(tmpdir(), 'switchyard-peers-'));
  const [keyFile, other] = [join(home, 'east.key'), join(home, 'west.key')];
  await a.api.user('USER', 'guest');
  const settings = [
    '--forward',
    'ALWAYS',
    '--needed-after',
    '5m',
    '--hops',
    '3',
    '--lost-after',
    '2h',
    '--cap',
    '7',
    '--boost',
    '-3',
  ];
  const added = await cli('peers', 'add', 'east', '--user', 'guest', '--key-out', keyFile, ...settings);
  expect(added).toMatchObject({ code: 0, text: expect.stringMatching(/east\s+joined\s+ALWAYS/) });
  const key = readFileSync(keyFile, 'utf8').trim();
  expect(added.text).not.toContain(key);
  expect(statSync(keyFile).mode & 0o777).toBe(0o600);
  expect((await a.api.ask('{ sites { nodes { id } } }', {}, key)).errors?.[0]?.extensions.code).toBe(
    'FORBIDDEN',
  );

  writeFileSync(other, 'a key of east\n');
  expect(
    await cli('federate', 'http://127.0.0.1:9/graphql', '--name', 'east', '--key-file', other),
  ).toMatchObject({ code: 0 });
  expect(await cli('peers', 'users', 'east', 'alice=guest', 'bob=guest')).toMatchObject({ code: 0 });
  expect((await cli('peers', 'users', 'east', 'bob=')).text).toMatch(/alice\s+guest\nall others\s+guest/);
  const { text } = await cli('peers', '--json');
  expect(JSON.parse(text).find(({ name }: Peer) => name === 'east')).toMatchObject({
    ...{
      url: 'http://127.0.0.1:9/graphql',
      isolated: false,
      forward: 'ALWAYS',
      neededAfterS: 300,
      hops: 3,
      lostAfterS: 7_200,
    },
    ...{
      foreignMax: 7,
      foreignBoost: -3,
      user: { name: 'guest' },
      users: [{ name: 'alice', user: { name: 'guest' } }],
    },
  });
  expect(await cli('peers', 'remove', 'east')).toMatchObject({
    text: expect.stringMatching(/not isolated: isolate it first/),
  });
  expect((await cli('peers', 'isolate', 'east')).text).toMatch(/east\s+isolated/);
  expect((await cli('peers', 'rejoin', 'east')).text).not.toMatch(/isolated/);

  // Which jobs it cannot have, whatever is decided of it here.
  const noted = async (more: object) => {
    const input = { service: 'east-id', after: '0', room: 0, kinds: [], ...more };
    await a.must(
      'mutation ($input: ExchangeInput!) { exchangeJobs(input: $input) { site } }',
      { input },
      key,
    );
    const { text } = await cli('peers', '--columns', 'name,protocol,classes');
    return text.split('\n').filter((line) => line.startsWith('east: '));
  };
  expect((await cli('peers')).text).toContain('east: It has not asked for jobs yet.');
  const older = (version: number) =>
    `east: It is of an earlier release (version ${version} of the peer protocol), which takes no jobs with`;
  const since3 = 'a class, or with devices requested by kind and model.';
  expect(await noted({ protocol: 1 })).toEqual([`${older(1)} outputs or parts.`, `${older(1)} ${since3}`]);
  expect(await noted({ protocol: 2 })).toEqual([`${older(2)} ${since3}`]);
  expect(await noted({ protocol: 3, classes: ['day', 'night'] })).toEqual([]);
  expect((await cli('peers', '--columns', 'name,protocol,classes')).text).toMatch(/east +3 +day,night/);

  for (const [words, code, said] of [
    [['peers', 'add', 'east', '--cap', '-1'], 2, /--cap/],
    [['peers', 'add', 'east', '--cap', '1.5'], 2, /--cap/],
    [['peers', 'add', 'east', '--hops', '1'], 2, /--hops.*2/],
    [['peers', 'add', 'east', '--boost', '1e9'], 2, /--boost/],
    [
      ['peers', 'add', 'east', '--forward', 'SOMETIMES'],
      2,
      /--forward.*ALWAYS, WHEN_NEEDED, WHEN_CHEAPER(,| or) NEVER/,
    ],
    [['peers', 'add', 'east', '--lost-after', 'soon'], 2, /--lost-after/],
    [['peers', 'add', 'east', '--user', 'nobody'], 5, /nobody/],
    [['peers', 'add', 'a b'], 2, /name/],
    [['peers', 'add', 'site-a'], 1, /there is already a site named site-a/],
    [['peers', 'isolate', 'north'], 5, /there is no peer "north"; there are b, /],
    [['peers', 'users', 'east', 'alice'], 2, /alice=guest-a/],
    [['peers', 'users', 'east', 'alice=nobody'], 5, /nobody/],
    [['federate', 'ftp://host/', '--name', 'east', '--key-file', other], 2, /url.*GraphQL endpoint/],
    [['federate', 'http://me:word@host/', '--name', 'east', '--key-file', other], 2, /url/],
    [
      ['federate', 'http://host/graphql', '--name', 'east', '--key-file', join(home, 'none')],
      2,
      /--key-file/,
    ],
    [['federate', 'http://host/graphql', '--name', 'east'], 1, /--key-file/],
  ] as const)
    expect(await cli(...words), words.join(' ')).toEqual({ code, text: expect.stringMatching(said) });
  rmSync(home, { recursive: true });

  // Its way across: at b it runs on the site of b; b says so.
  const [job] = (await a.submit([800], { ...toB, simulatedRunS: null })) as [string];
  await a.until('it runs', [job], 'RUNNING');
  await until('its place is told', async () =>
    /b: has it, at root > site-b/.test((await cli('why', job)).text),
  );
  const [copy] = await b.copiesOf([job]);
  expect(await b.must(`{ job(id: "${copy?.id}") { foreign { peer { name } job user } } }`)).toEqual({
    job: { foreign: { peer: { name: 'a' }, job, user: 'admin' } },
  });
  b.runner.finish(800);
  await a.until('it has run', [job], 'COMPLETED');
});
