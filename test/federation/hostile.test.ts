/**
 * Peers that do as they like. One that owns jobs answers slowly, with nonsense, or with what no job may have: only its own jobs suffer. One
 * that has machines claims and reports what is not its: it is refused. The peer is a server, or a client, of the test.
 */
import { createHash } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { FileRow } from '../../src/store/files.js';
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
const LOAD = { ahead: 0, work: 0, power: 100, benchmark: 100, ageS: 0 };
const GPUS = { kind: 'gpu', model: null, memoryMb: 0, shares: 1, count: 1 };
const INPUT = { place: 1, dataset: 'd', name: 'n', sizeMb: 1, sha256: null, urls: ['http://x'] };
interface Reported {
  job: string;
  epoch: number;
  phase: string;
  cause?: string;
  message?: string;
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
  /** Of the files that it was handed: what it says to have of each, and what has come. */
  kept: (files: readonly { bytes: number }[]): unknown =>
    files.map((_, i) => ({ id: String(i + 1), receivedBytes: 0 })),
  filesRefused: false,
  parts: [] as { url: string; body: Buffer }[],
  part: null as ((response: ServerResponse) => void) | null,
  /** Jobs of which no report is accepted. */
  unreportable: new Set<string>(),
  /** In the place of an answer. */
  answer: null as ((response: ServerResponse) => void) | null,
};
const server = createServer((request, response) => {
  const pieces: Buffer[] = [];
  request.on('data', (piece: Buffer) => void pieces.push(piece));
  request.on('end', () => {
    if (bad.answer !== null) return bad.answer(response);
    const body = Buffer.concat(pieces);
    if (request.method === 'PUT') {
      const url = request.url as string;
      bad.parts.push({ url, body });
      if (bad.part !== null) return bad.part(response);
      const receivedBytes = Number(/offset=(\d+)/.exec(url)?.[1]) + body.length;
      return response.setHeader('content-type', 'application/json').end(JSON.stringify({ receivedBytes }));
    }
    const text = body.toString();
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
    } else if (/keepFiles/.test(query) && bad.filesRefused)
      return response.end(
        '{"errors":[{"message":"files: too much","extensions":{"code":"LIMIT_EXCEEDED"}}]}',
      );
    else if (/keepFiles/.test(query)) data = { keepFiles: bad.kept(variables.files) };
    else if (variables.reports.some(({ job }: Reported) => bad.unreportable.has(job)))
      return response.end('{"errors":[{"message":"reports[0]: no","extensions":{"code":"BAD_USER_INPUT"}}]}');
    else {
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
  bad.part = null;
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

const PART = { tasks: 1, cpusPerTask: 1, memoryMbPerTask: 0 };
const DEVICE = { kind: 'gpu', count: 1, model: null, minMemoryMb: null, share: null };

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
      { licenses: Array(257).fill('l') },
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
    // Parts that are not what the job says it needs, or none.
    ...[
      { parts: [PART] },
      { parts: [PART, PART] },
      { tasks: 2, cpusPerTask: 2, parts: [PART, PART] },
      { tasks: 2, memoryMbPerTask: 9, parts: [PART, PART] },
      { tasks: 2, parts: [PART, { ...PART, cpusPerTask: 0 }] },
      { tasks: 17, parts: Array(17).fill(PART) },
      // A class that nobody here has, devices that are none, and kinds that nobody here has.
      { class: 'no such class' },
      { devicesPerTask: [] },
      { devicesPerTask: Array(33).fill(DEVICE) },
      { devicesPerTask: [{ ...DEVICE, count: 0 }] },
      { devicesPerTask: [{ ...DEVICE, count: 129 }] },
      { devicesPerTask: [{ ...DEVICE, share: { parts: 2, of: 2 } }] },
      { devicesPerTask: [{ ...DEVICE, model: 'x'.repeat(201) }] },
      { devicesPerTask: [{ ...DEVICE, kind: 'no-such-kind' }] },
      { tasks: 2, parts: [PART, { ...PART, devicesPerTask: [{ ...DEVICE, kind: 'no-such-kind' }] }] },
      { tasks: 2, parts: [PART, PART], devicesPerTask: [DEVICE] },
    ],
    // Files of ours, not of the run.
    ...[['../../etc/passwd'], ['/etc/passwd'], ['a/../../b'], ['a\0b'], ['']].map((outputs) => ({ outputs })),
    { outputs: Array(1_001).fill('x') },
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

test('a run whose reports are refused keeps no other from being told', async () => {
  const one = offer();
  bad.unreportable.add(`job_${one}`);
  bad.claims.set(one, { ...GRANT, arguments: [String(++numbers)] });
  await until('it has run, and is not accepted', async () =>
    /reports\[0\]: no/.test((await failure()) ?? ''),
  );
  await works();
  expect(bad.reports.filter(({ job }) => job === `job_${one}`)).toEqual([]);
  bad.unreportable.clear();
  await until('it is told in the end', () =>
    bad.reports.some(({ job, phase }) => job === `job_${one}` && phase === 'ENDED'),
  );
  await until('all is well', async () => (await failure()) === null);
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
  ['that is no JSON', (response) => response.end('<html>'), /without a GraphQL response/],
  [
    'without what was asked',
    (response) => response.end('{"data":{}}'),
    /does not follow the protocol: exchangeJobs/,
  ],
  [
    'that is a list',
    (response) => response.end('{"data":{"exchangeJobs":[]}}'),
    /does not follow the protocol: exchangeJobs: \[\] is not accepted; accepted: an object$/,
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
    /no response/,
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
    [{ protocol: 0 }, /^protocol: 0 is not accepted; accepted: 1, 2, 3$/],
    [{ protocol: 4 }, /^protocol: 4 is not accepted; accepted: 1, 2, 3$/],
    [{ classes: Array(101).fill('x') }, /^classes: /],
    [{ classes: [''] }, /^classes: /],
    [{ kinds: [{ ...kind, devices: Array(17).fill(GPUS) }] }, /^kinds.devices: /],
    [{ kinds: [{ ...kind, devices: [{ ...GPUS, count: 0 }] }] }, /^kinds.devices.count: /],
    [{ kinds: [{ ...kind, devices: [{ ...GPUS, shares: 1_001 }] }] }, /^kinds.devices.shares: /],
    [{ kinds: [{ ...kind, devices: [{ ...GPUS, memoryMb: -1 }] }] }, /^kinds.devices.memoryMb: /],
    [{ kinds: [{ ...kind, devices: [{ ...GPUS, kind: '' }] }] }, /^kinds.devices.kind: /],
    [{ load: { ...LOAD, ahead: -1 } }, /^load.ahead: /],
    [{ load: { ...LOAD, work: 1e308 } }, /^load.work: /],
    [{ load: { ...LOAD, ageS: -60 } }, /^load.ageS: /],
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

const SUM = (text: string): string => createHash('sha256').update(text).digest('hex');
const BOUNDS = { userBytes: 1e9, runBytes: 1e9, peerBytes: 1e9 };

/** A job of the peer that runs here, with a file that is kept of it; `end` ends it. */
async function withFile(
  text: string,
): Promise<{ offer: string; end: () => void; ended: () => Reported | undefined }> {
  const number = ++numbers;
  const one = offer({ simulatedRunS: null, outputs: ['out'] });
  bad.claims.set(one, { ...GRANT, arguments: [String(number)] });
  await until('it runs', async () => (await copyOf(one))?.state === 'RUNNING');
  const { files, blobs } = b.api.parts.fileStore;
  const { rows } = await b.api.db.pool.query(
    `SELECT r.job_id AS "jobId", r.epoch, r.site_id AS "siteId", m.agent_id AS "agentId"
       FROM runs r JOIN foreign_jobs f USING (job_id) JOIN machines m ON m.id = r.machine_ids[1] WHERE f.offer = $1`,
    [one],
  );
  const given = { path: 'out', bytes: text.length, sha256: SUM(text) };
  const announced = await files.announce(rows[0], 0, [given], BOUNDS);
  if (announced.kind !== 'done') throw new Error(announced.kind);
  const { id } = announced.files[0] as FileRow;
  const file = await files.onItsWay(id, rows[0]);
  if (file === null) throw new Error('the file is not on its way');
  const stored = await blobs.add(file, Buffer.from(text));
  await files.advance(file, { bytes: text.length, ...stored });
  await blobs.finish({ ...file, received: text.length, upload: stored.upload, parts: [stored.part] });
  await files.keep(id);
  const ended = () => bad.reports.find(({ job, phase }) => job === `job_${one}` && phase === 'ENDED');
  return { offer: one, end: () => b.runner.finish(number), ended };
}

test('files of a run are handed over before its end is told, each part once more where the owner says so', async () => {
  const { offer: one, end, ended } = await withFile('what it left');
  bad.parts.length = 0;
  let torn = 0;
  bad.part = (response) => {
    // The first two are lost, the third comes in part.
    if (++torn < 3) return void response.destroy();
    const has = torn === 3 ? 5 : 'what it left'.length;
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ receivedBytes: has }));
  };
  end();
  await until('its end is told', () => ended() !== undefined);
  expect(ended()).toMatchObject({ cause: 'EXITED_ZERO' });
  expect(bad.parts.map(({ url }) => url)).toEqual([
    ...Array(3).fill('/files/1?offset=0'),
    '/files/1?offset=5',
  ]);
  expect(bad.parts.at(-1)?.body.toString()).toBe('it left');
  expect((await copyOf(one))?.state).toBe('COMPLETED');
});

test.each<[string, () => void, RegExp]>([
  [
    'names a path for an id',
    () => {
      bad.kept = () => [{ id: '../../graphql', receivedBytes: 0 }];
    },
    /keepFiles/,
  ],
  [
    'names another host for an id',
    () => {
      bad.kept = () => [{ id: '@127.0.0.1/1', receivedBytes: 0 }];
    },
    /keepFiles/,
  ],
  [
    'answers for other files',
    () => {
      bad.kept = () => [];
    },
    /keepFiles/,
  ],
  [
    'has more than there is',
    () => {
      bad.kept = () => [{ id: '1', receivedBytes: 0 }];
      bad.part = (response) => void response.end('{"receivedBytes":1e15}');
    },
    /files/,
  ],
  [
    'never has any of it',
    () => {
      bad.part = (response) => void response.end('{"receivedBytes":0}');
    },
    /does not accept/,
  ],
  [
    'sends it elsewhere',
    () => {
      bad.part = (response) => void response.writeHead(307, { location: `${b.api.url}` }).end();
    },
    /no response/,
  ],
  [
    'answers without end',
    () => {
      bad.part = (response) => {
        const more = (): void => void (response.writable && response.write(Buffer.alloc(1 << 20, ' '), more));
        more();
      };
    },
    /more than \d+ bytes/,
  ],
])('an owner that %s gets no files, and holds up nothing for good', async (_, behave, said) => {
  const { kept } = bad;
  const { end, ended } = await withFile('secret');
  behave();
  end();
  await until('it is said', async () => said.test((await failure()) ?? ''));
  expect(ended()).toBeUndefined();
  bad.kept = kept;
  bad.part = null;
  await until('its end is told', () => ended() !== undefined);
  await works();
});

test('what an owner does not take is told, and costs the run its good end', async () => {
  const { end, ended } = await withFile('too much');
  bad.filesRefused = true;
  end();
  await until('its end is told', () => ended() !== undefined);
  expect(ended()).toMatchObject({ cause: 'OUTPUTS_FAILED', message: expect.stringMatching(/too much/) });
  bad.filesRefused = false;
});

test('a guest hands over files of its own runs only, with names below the run, as much as it may, and no longer than its key lives', async () => {
  const guest = (await b.federate({ name: 'fourth', forward: 'ALWAYS' })) as string;
  const kind = {
    site: 1,
    os: 'fourth',
    architecture: 'x64',
    cpus: 4,
    memoryMb: 4_000,
    machines: 1,
    hops: 1,
    licenses: [],
  };
  const exchange = async (protocol: number, as = guest) => {
    const document =
      'mutation ($input: ExchangeInput!) { exchangeJobs(input: $input) { site offers { offer job state } } }';
    const input = { protocol, service: 'fourth', after: '0', room: 100, kinds: [kind] };
    return (
      await b.must<{
        exchangeJobs: { site: string; offers: { offer: string; job: string; state: string }[] };
      }>(document, { input }, as)
    ).exchangeJobs;
  };
  const outputs = [{ path: 'out' }];
  const [job] = (await b.submit([++numbers], { os: 'fourth', outputs })) as [string];
  const [plain] = (await b.submit([++numbers], { os: 'fourth' })) as [string];
  const [local] = (await b.submit([++numbers], { os: 'b', outputs, simulatedRunS: null })) as [string];
  await b.until('it runs here', [local], 'RUNNING');
  // One that speaks the version before knows of no files, and gets no such job.
  expect((await exchange(1)).offers.map((one) => one.job)).toEqual([plain]);
  const { site, offers } = await exchange(2);
  expect(offers.map((one) => one.job).sort()).toEqual([job, plain].sort());

  const keep = async (of: string, files: object[], at = site, as = guest) =>
    b.api.ask<{ keepFiles: { id: string; receivedBytes: number }[] }>(
      `mutation ($site: ID!, $job: ID!, $files: [RunFileInput!]!) {
        keepFiles(site: $site, job: $job, epoch: 1, task: 0, files: $files) { id receivedBytes } }`,
      { site: at, job: of, files },
      as,
    );
  const codeOf = async (answer: ReturnType<typeof keep>) => (await answer).errors?.[0]?.extensions.code;
  const file = { path: 'out', bytes: 4, sha256: SUM('good') };
  // Not granted yet; then of another peer, of ours, without outputs, at our own site.
  expect(await codeOf(keep(job, [file]))).toBe('NOT_FOUND');
  await b.must(
    'mutation ($offers: [ID!]!) { claimJobs(offers: $offers) { results { outcome } } }',
    { offers: offers.map((one) => one.offer) },
    guest,
  );
  expect(await codeOf(keep(job, [file], undefined, key))).toBe('FORBIDDEN');
  expect(await codeOf(keep(local, [file]))).toBe('NOT_FOUND');
  expect(await codeOf(keep(local, [file], b.site))).toBe('FORBIDDEN');
  expect(await codeOf(keep(plain, [file]))).toBe('NOT_FOUND');
  for (const path of ['../x', '/etc/passwd', 'a/../../x', 'a\0b', '.', ''])
    expect(await codeOf(keep(job, [{ ...file, path }])), path).toBe('BAD_USER_INPUT');
  expect(await codeOf(keep(job, [{ ...file, bytes: 2 ** 50 }]))).toBe('LIMIT_EXCEEDED');

  const kept = (await keep(job, [file])).data.keepFiles[0] as { id: string };
  const put = async (id: string, offset: number, body: string, digested = body, as = guest) => {
    const digest = createHash('sha256').update(digested).digest('base64');
    return fetch(`${b.api.url.replace(/\/graphql$/, '')}/files/${id}?offset=${offset}`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${as}`, 'content-digest': `sha-256=:${digest}:` },
      body,
    });
  };
  expect((await put(kept.id, 0, 'evil', 'good')).status).toBe(400);
  expect((await put(kept.id, 0, 'too long')).status).toBe(400);
  expect((await put(kept.id, 0, 'good', 'good', key)).status).toBe(404);
  expect((await put('999999', 0, 'good')).status).toBe(404);
  // A key that is revoked half way, and another one that goes on where the first has stopped.
  const { rows } = await b.api.db.pool.query(
    `SELECT k.id, k.user_id FROM api_keys k JOIN users u ON u.id = k.user_id WHERE u.name = 'peer-fourth'`,
  );
  await b.must('mutation ($id: ID!) { revokeApiKey(input: { apiKeyId: $id }) { apiKey { id } } }', {
    id: `apikey_${rows[0].id}`,
  });
  await until('the key is refused', async () => (await put(kept.id, 0, 'good')).status === 401);
  const { createApiKey } = await b.must<{ createApiKey: { secret: string } }>(
    'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { secret } }',
    { input: { userId: `user_${rows[0].user_id}`, name: 'new', siteId: site } },
  );
  const renewed = createApiKey.secret;
  expect(await (await put(kept.id, 0, 'good', 'good', renewed)).json()).toMatchObject({ receivedBytes: 4 });
  // Again: it is there already, and stays what it was.
  expect((await put(kept.id, 0, 'evil', 'evil', renewed)).status).toBeGreaterThanOrEqual(200);
  const found = await b.api.parts.fileStore.files.kept(Number(job.slice(4)), 1, 0, 'out');
  expect(found).toMatchObject({ bytes: 4, sha256: SUM('good') });
  const end = {
    job,
    epoch: 1,
    phase: 'ENDED',
    at: new Date().toISOString(),
    cause: 'EXITED_ZERO',
    exitCode: 0,
  };
  await b.must(
    'mutation ($site: ID!, $reports: [RunReportInput!]!) { reportRuns(site: $site, reports: $reports) { results } }',
    { site, reports: [end] },
    renewed,
  );
  // It is over: nothing more comes to it.
  expect(await codeOf(keep(job, [{ ...file, path: 'more' }], site, renewed))).toBe('NOT_FOUND');
  b.runner.finish(numbers);
  await b.until('ours has ended', [local], 'COMPLETED');
});
