/**
 * Peers that do as they like. One that owns jobs answers slowly, with nonsense, or with what no job may have: only its own jobs suffer. One
 * that has machines claims and reports what is not its: it is refused. The peer is a server, or a client, of the test.
 */
import { createServer, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { portOf } from '../support/ports.js';
import { checkPromises } from '../support/promises.js';
import { type Launch, until, withService } from './service.js';

const ledger: Launch[] = [];
/** Has machines with the operating system `b`, and takes jobs of the peer `bad`. */
const b = withService('b', ledger, { patienceS: 3 });

const REQUEST = {
  ...{ hops: 3, visited: ['bad'], user: 'eve', bytes: 600, name: null, application: 'x', arrayIndex: null },
  ...{
    tasks: 1,
    cpusPerTask: 1,
    memoryMbPerTask: 0,
    licenses: [],
    os: 'b',
    architecture: null,
    estimateS: 1,
    benchmark: 100,
  },
  ...{
    runTimeLimitS: null,
    deadline: null,
    sandboxMb: 0,
    outputMb: 0,
    computationShare: null,
    preferences: [],
  },
  ...{ simulatedRunS: 0, simulatedIoS: null, launch: 'EVERY_TASK', onTaskFailure: 'END_ALL' },
};
const GRANT = {
  outcome: 'GRANTED',
  epoch: 1,
  command: 'x',
  arguments: ['1'],
  environment: {},
  workingDirectory: null,
  inputs: [] as object[],
};
const INPUT = { place: 1, dataset: 'd', name: 'n', sizeMb: 1, sha256: null, urls: ['http://x'] };
interface Reported {
  job: string;
  epoch: number;
  phase: string;
  cause?: string;
}

/** What the peer has, and says. */
const bad = {
  /** Behind the cursor, each once. */
  news: [] as object[],
  version: 0,
  /** By offer: what is answered to its claim. */
  claims: new Map<string, object>(),
  claimed: [] as string[],
  returned: new Set<string>(),
  reports: [] as Reported[],
  exchange: (given: { after: string }): unknown => {
    const offers = bad.news.slice(Number(given.after));
    return { service: 'bad', site: 'site_1', cursor: String(bad.news.length), more: false, offers };
  },
  /** In the place of an answer. */
  answer: null as ((response: ServerResponse) => void) | null,
};
const server = createServer((request, response) => {
  let text = '';
  request.on('data', (piece) => {
    text += piece;
  });
  request.on('end', () => {
    if (bad.answer !== null) return bad.answer(response);
    const { query, variables } = JSON.parse(text);
    let data: object = {};
    if (/exchangeJobs/.test(query)) data = { exchangeJobs: bad.exchange(variables.input) };
    else if (/claimJobs/.test(query)) {
      bad.claimed.push(...variables.offers);
      data = {
        claimJobs: { results: variables.offers.map((offer: string) => bad.claims.get(offer) ?? GRANT) },
      };
    } else if (/returnJobs/.test(query)) {
      for (const offer of variables.offers) bad.returned.add(offer);
      data = { returnJobs: true };
    } else {
      bad.reports.push(...variables.reports);
      data = { reportRuns: { results: variables.reports.map(() => 'ACCEPTED') } };
    }
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ data }));
  });
});

/** Offers a job; its request changed by this. Answers with the offer. */
function offer(change: object = {}, of: object = {}): string {
  const number = String(++bad.version);
  const request = { ...REQUEST, request: `bad/${number}/1`, ...change };
  bad.news.push({
    offer: number,
    state: 'OFFERED',
    stop: false,
    job: `job_${number}`,
    boost: 0,
    request,
    ...of,
  });
  return number;
}

const copyOf = async (number: string) => (await b.copies()).find(({ job }) => job === `job_${number}`);
const failure = async () => (await b.peer('bad')).failure;
let numbers = 1_000;

let key = '';

beforeAll(async () => {
  const url = `http://127.0.0.1:${await portOf(server)}/graphql`;
  key = (await b.federate({ name: 'bad', url, key: 'a key', forward: 'ALWAYS' })) as string;
});
beforeEach(() => {
  bad.answer = null;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  expect(await checkPromises(b.api.db.pool)).toEqual([]);
});

/** It is as good as ever: its own jobs run, and a good one of the peer. */
async function works(): Promise<void> {
  const number = ++numbers;
  const good = offer({}, {});
  bad.claims.set(good, { ...GRANT, arguments: [String(number)] });
  const own = await b.submit([++numbers], { os: 'b' });
  await b.until('its own jobs run', own, 'COMPLETED');
  await until('the good job runs', () =>
    bad.reports.some(
      ({ job, phase, cause }) => job === `job_${good}` && phase === 'ENDED' && cause === 'EXITED_ZERO',
    ),
  );
  expect(ledger.filter((one) => one.number === number)).toHaveLength(1);
}

test('offers with values that no job may have are given back, each alone', async () => {
  const long = 'x'.repeat(201);
  const offers = [
    ...[
      { tasks: 1e308 },
      { tasks: -1 },
      { tasks: 1.5 },
      { cpusPerTask: 0 },
      { memoryMbPerTask: 2 ** 40 },
      { estimateS: 1e308 },
    ],
    ...[
      { estimateS: 0 },
      { estimateS: '1' },
      { benchmark: -1 },
      { sandboxMb: -1 },
      { computationShare: 2 },
      { bytes: 1e308 },
    ],
    ...[
      { name: long },
      { application: 'a\0b' },
      { user: null },
      { licenses: Array(17).fill('l') },
      { os: long },
      { hops: 65 },
    ],
    ...[
      { visited: [] },
      { visited: Array(65).fill('v') },
      { request: '' },
      { deadline: 'soon' },
      { preferences: [{ cpusPerTask: 1e308 }] },
    ],
    ...[
      { bytes: 2 ** 31 - 1 },
      { tasks: 100_000, cpusPerTask: 100_000 },
      { runTimeLimitS: 1e308 },
      { simulatedRunS: -1 },
    ],
  ].map((change) => offer(change));
  offers.push(offer({}, { request: null }), offer({}, { request: 'x' }));
  await until('all are given back', () => offers.every((one) => bad.returned.has(one)));
  expect((await b.copies()).filter(({ job }) => offers.includes(job.slice(4)))).toEqual([]);
  expect(await failure()).toBeNull();
  await works();
});

test('grants of what no job may be are given back, and what is not granted loses its machines', async () => {
  const grants = [
    ...[
      { epoch: 1e308 },
      { epoch: -1 },
      { epoch: '1' },
      { command: '' },
      { command: null },
      { arguments: 'x' },
      { arguments: ['a\0b'] },
    ],
    ...[
      { environment: [] },
      { environment: { 'A B': 'x' } },
      { environment: { A: 1 } },
      { workingDirectory: 7 },
    ],
    // Nothing of ours is fetched, and only what the offer said that it takes.
    ...[
      { urls: [] },
      { urls: ['file:///etc/passwd'] },
      { urls: ['/etc/passwd'] },
      { urls: ['s3://theirs/data'] },
      { urls: ['http://x/\0'] },
      { sizeMb: -1 },
      { sizeMb: 1e308 },
      { sha256: 'x' },
      { place: 0 },
      { name: '' },
      { name: 'x'.repeat(1_000) },
      { dataset: 'x'.repeat(1_000) },
    ].map((change) => ({ inputs: [{ ...INPUT, ...change }] })),
    { inputs: Array.from({ length: 101 }, () => INPUT) },
    { inputs: null },
    // More than the offer said that it takes.
    { arguments: ['x'.repeat(1_000)] },
  ];
  const offers = grants.map((change) => {
    const number = offer();
    bad.claims.set(number, { ...GRANT, ...change });
    return number;
  });
  await until('all are given back', () => offers.every((one) => bad.returned.has(one)));
  const never = offer();
  bad.claims.set(never, { outcome: 'PENDING' });
  await until('it has machines', () => bad.claimed.includes(never));
  await until('it is given back', () => bad.returned.has(never));
  for (const one of [...offers, never])
    expect(await copyOf(one)).toMatchObject({ state: 'CANCELLED', cause: 'WITHDRAWN', granted: false });
  expect(ledger.filter(({ number }) => number === 1)).toEqual([]);
  await works();
});

test('an offer that comes again, goes back or names another job changes nothing', async () => {
  const number = ++numbers;
  const one = offer();
  bad.claims.set(one, { ...GRANT, arguments: [String(number)] });
  await until('it has run', () =>
    bad.reports.some(({ job, phase }) => job === `job_${one}` && phase === 'ENDED'),
  );
  const again = {
    offer: one,
    state: 'OFFERED',
    stop: false,
    boost: 1e308,
    request: { ...REQUEST, request: 'bad/other/1' },
  };
  bad.news.push(
    { ...again, job: `job_${one}` },
    { ...again, job: 'job_999999' },
    { ...again, state: 'CLAIMED', stop: true, job: 'job_1' },
  );
  bad.news.push({
    offer: '9007199254740991',
    state: 'WITHDRAWN',
    stop: false,
    job: 'job_1',
    boost: 0,
    request: null,
  });
  bad.version = bad.news.length;
  await works();
  expect((await b.copies()).filter(({ job }) => job === `job_${one}` || job === 'job_999999')).toHaveLength(
    1,
  );
  expect(ledger.filter((launch) => launch.number === number)).toHaveLength(1);
});

test.each<[string, (response: ServerResponse) => void, RegExp]>([
  ['that is no JSON', (response) => response.end('<html>'), /which is no GraphQL answer/],
  [
    'without what was asked',
    (response) => response.end('{"data":{}}'),
    /not as the protocol says: exchangeJobs/,
  ],
  [
    'that is a list',
    (response) => response.end('{"data":{"exchangeJobs":[]}}'),
    /not as the protocol says: exchangeJobs/,
  ],
  [
    'of another version',
    (response) => response.end('{"errors":[{"message":"protocol: 1 is not accepted; accepted: 2"}]}'),
    /accepted: 2/,
  ],
  [
    'with control characters',
    (response) => response.end('{"errors":[{"message":"\\u0000\\u001b[31mred"}]}'),
    /^ {2}\[31mred$/,
  ],
  [
    'that sends it elsewhere',
    (response) => response.writeHead(307, { location: b.api.url }).end(),
    /nothing answers/,
  ],
  [
    'that has no end',
    (response) => {
      const piece = Buffer.alloc(1 << 20, ' ');
      const more = (): void => void (response.writable && response.write(piece, more));
      more();
    },
    /more than \d+ bytes/,
  ],
])('an answer %s is said to administrators', async (_, answer, said) => {
  bad.answer = answer;
  await until('it is said', async () => said.test((await failure()) ?? ''));
  bad.answer = null;
  await works();
  expect(await failure()).toBeNull();
});

test('news that do not go on are no news', async () => {
  const { exchange } = bad;
  const stuck = { offer: '1', state: 'WITHDRAWN', stop: false, job: 'job_1', boost: 0, request: null };
  let asked = 0;
  bad.exchange = ({ after }) => {
    asked++;
    return { service: 'bad', site: 'site_1', cursor: after, more: true, offers: [stuck] };
  };
  await until('it is said', async () => /cursor/.test((await failure()) ?? ''));
  const before = asked;
  await sleep(300);
  // Pauses grow: it is not asked again and again at once.
  expect(asked - before).toBeLessThan(10);
  bad.exchange = exchange;
  await works();
});

test('a peer that stops answering keeps no machines: what waits for it is given up, what runs ends and is told', async () => {
  const [running, waiting] = [offer({ cpusPerTask: 4, simulatedRunS: null }), offer()];
  const number = ++numbers;
  bad.claims.set(running, { ...GRANT, arguments: [String(number)] });
  await until(
    'it runs',
    async () => (await copyOf(running))?.state === 'RUNNING' && (await copyOf(waiting)) !== undefined,
  );
  bad.answer = (response) => response.destroy();
  await until('what waits is given up', async () => (await copyOf(waiting))?.state === 'CANCELLED');
  b.runner.finish(number);
  await until('it has ended', async () => (await copyOf(running))?.state === 'COMPLETED');
  const own = await b.submit([++numbers], { os: 'b', cpusPerTask: 4 });
  await b.until('its machines are free', own, 'COMPLETED');
  bad.answer = null;
  await until(
    'all is told',
    () =>
      bad.returned.has(waiting) &&
      bad.reports.some(({ job, phase }) => job === `job_${running}` && phase === 'ENDED'),
  );
});

test('a guest is refused what is not its own, and values that no run has', async () => {
  const third = (await b.federate({ name: 'third', forward: 'ALWAYS' })) as string;
  const kind = {
    site: 1,
    os: 'bad',
    architecture: 'x64',
    cpus: 4,
    memoryMb: 4_000,
    machines: 1,
    hops: 1,
    licenses: [],
  };
  const exchange = `mutation ($input: ExchangeInput!) { exchangeJobs(input: $input) { site offers { offer job } } }`;
  const ask = async (as: string, service: string, change: object = {}) =>
    b.api.ask<{ exchangeJobs: { site: string; offers: { offer: string; job: string }[] } }>(
      exchange,
      { input: { protocol: 1, service, after: '0', room: 100, kinds: [kind], ...change } },
      as,
    );
  const [theirs] = (await b.submit([++numbers], { os: 'bad' })) as [string];
  const { site, offers } = (await ask(third, 'third')).data.exchangeJobs;
  expect(offers.map(({ job }) => job)).toEqual([theirs]);
  const [one] = offers as [(typeof offers)[0]];

  // Another's offers, no offers at all, another's site, and a run that is at nobody's.
  const claim = 'mutation ($offers: [ID!]!) { claimJobs(offers: $offers) { results { outcome command } } }';
  const refused = { outcome: 'REFUSED', command: null };
  expect(await b.must(claim, { offers: [one.offer, '999999'] }, key)).toEqual({
    claimJobs: { results: [refused, refused] },
  });
  await b.must('mutation ($offers: [ID!]!) { returnJobs(offers: $offers) }', { offers: [one.offer] }, key);
  expect((await ask(third, 'third')).data.exchangeJobs.offers).toHaveLength(1);
  const report = (at: string, reports: object[]) =>
    b.api.ask(
      'mutation ($site: ID!, $reports: [RunReportInput!]!) { reportRuns(site: $site, reports: $reports) { results } }',
      { site: at, reports },
      third,
    );
  const ended = {
    job: theirs,
    epoch: 1,
    phase: 'ENDED',
    at: '9999-01-01T00:00:00Z',
    cause: 'EXITED_ZERO',
    exitCode: 0,
  };
  expect((await report(b.site, [ended])).errors?.[0]?.extensions.code).toBe('FORBIDDEN');
  expect((await report(site, [ended])).data).toEqual({ reportRuns: { results: ['UNKNOWN_RUN'] } });

  for (const [change, said] of [
    [{ protocol: 0 }, /^protocol: 0 is not accepted; accepted: 1$/],
    [{ service: 'b' }, /^service: /],
    [{ after: '-1' }, /^after: /],
    [{ after: '1e308' }, /^after: /],
    [{ room: -1 }, /^room: /],
    [{ kinds: [{ ...kind, cpus: 0 }] }, /^kinds.cpus: /],
    [{ kinds: Array(501).fill(kind) }, /^kinds: /],
    [{ places: [{ offer: one.offer, path: Array(65).fill('x') }] }, /^places.path: /],
  ] as const)
    expect((await ask(third, 'third', change)).errors?.[0]?.message).toMatch(said);

  expect(await b.must(claim, { offers: [one.offer] }, third)).toMatchObject({
    claimJobs: { results: [{ outcome: 'GRANTED' }] },
  });
  const output = { stream: 'STDOUT', start: 0, text: 'x', bytes: 1 };
  for (const wrong of [
    { cpuS: 1e308 },
    { peakMemoryMb: -1 },
    { outputs: Array(17).fill(output) },
    { outputs: [{ ...output, start: -1 }] },
  ])
    expect((await report(site, [{ ...ended, ...wrong }])).errors?.[0]?.extensions.code).toMatch(
      /^(BAD_USER_INPUT|LIMIT_EXCEEDED)$/,
    );
  expect(
    (
      await report(site, [
        { ...ended, phase: 'STARTED', cause: undefined, at: '1970-01-01T00:00:00Z' },
        ended,
      ])
    ).data,
  ).toEqual({
    reportRuns: { results: ['ACCEPTED', 'ACCEPTED'] },
  });
  // By the clock of the service, whatever the guest's says.
  const { rows } = await b.api.db.pool.query(
    `SELECT r.started_at >= r.assigned_at AND r.ended_at BETWEEN r.started_at AND now() AS good FROM runs r WHERE r.job_id = $1`,
    [theirs.slice(4)],
  );
  expect(rows).toEqual([{ good: true }]);
});
