import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { unique, withApi } from './support/api.js';

const api = withApi((config) => ({
  ...config,
  limits: { ...config.limits, bodyBytesMax: 200_000, strangersPerMinute: 30 },
}));
const closed = withApi((config) => ({
  ...config,
  introspection: false,
  portal: false,
  limits: { ...config.limits, requestsPerSecond: 5, requestsBurst: 10 },
}));

const codeOf = async (query: string, variables: object = {}) =>
  (await api.ask(query, variables)).errors?.[0]?.extensions.code;

test('queries that are too deep, too costly or full of aliases do not run', async () => {
  const deep = `{ sites { nodes { machines { site { machines { site { machines { site { machines { site { machines { id } } } } } } } } } } } }`;
  expect(await codeOf(deep)).toBe('QUERY_TOO_COMPLEX');
  expect(await codeOf('{ jobs(first: 5000) { nodes { runs { allocations { machine { id } } } } } }')).toBe(
    'QUERY_TOO_COMPLEX',
  );
  expect(
    await codeOf('query ($n: Int) { jobs(first: $n) { nodes { whyWaiting { code } } } }', { n: 1000 }),
  ).toBe('QUERY_TOO_COMPLEX');
  expect(await codeOf('query ($n: Int = 1000) { jobs(first: $n) { nodes { whyWaiting { code } } } }')).toBe(
    'QUERY_TOO_COMPLEX',
  );
  expect(
    await codeOf('{ jobs(first: 5000) { edges { node { id user { name } site { name } } } } }'),
  ).toBeUndefined();
  // Pages within pages, and lists that are worked out.
  expect(await codeOf('{ jobGroups(first: 500) { nodes { jobs(first: 100) { nodes { id } } } } }')).toBe(
    'QUERY_TOO_COMPLEX',
  );
  expect(await codeOf('{ links(first: 5000) { nodes { history { loss } } } }')).toBe('QUERY_TOO_COMPLEX');
  expect(await codeOf('{ datasets(first: 5000) { nodes { replicas { name } } } }')).toBe('QUERY_TOO_COMPLEX');
  expect(await codeOf('{ userStandings(first: 1000) { groups(first: 100) { jobs } } }')).toBe(
    'QUERY_TOO_COMPLEX',
  );
  expect(
    await codeOf(
      `{ ${Array.from({ length: 99 }, (_, i) => `a${i}: jobRatio(application: "x") { history(first: 600) { nodes { runs } } }`).join(' ')} }`,
    ),
  ).toBe('QUERY_TOO_COMPLEX');
  expect(
    await codeOf(
      '{ jobGroups { nodes { counts { jobs } progress } } datasets { nodes { name replicas { name } } } links { nodes { loss } } congestion { nodes { queued } } }',
    ),
  ).toBeUndefined();
  const aliases = Array.from({ length: 101 }, (_, i) => `a${i}: viewer { id }`).join(' ');
  expect(await codeOf(`{ ${aliases} }`)).toBe('QUERY_TOO_COMPLEX');
  expect(await codeOf(`{ ${'viewer { id } '.repeat(10_000)} }`)).toBe('GRAPHQL_PARSE_FAILED');
});

test('what would take long to validate, or to refuse, is not even begun', async () => {
  const refused = [
    `{ ${'viewer { id } '.repeat(420)} }`,
    `{ ${Array.from({ length: 201 }, (_, i) => `...F${i}`).join(' ')} } ${Array.from({ length: 201 }, (_, i) => `fragment F${i} on Query { jobCount }`).join(' ')}`,
    Array.from({ length: 200 }, (_, i) => `query Q${i} { ...F } fragment F${i} on Query { jobCount }`).join(
      ' ',
    ),
    `{ ${'... { '.repeat(200)} jobCount ${'}'.repeat(201)}`,
  ];
  for (const query of refused) expect(await codeOf(query)).toBe('QUERY_TOO_COMPLEX');
  const again = Array.from(
    { length: 100 },
    (_, i) => `a${i}: submitJobs(input: $input) { errors { message } }`,
  );
  const jobs = Array.from({ length: 10_000 }, () => ({ command: '' }));
  expect(
    await codeOf(`mutation ($input: SubmitJobsInput!) { ${again.join(' ')} }`, { input: { jobs } }),
  ).toBe('QUERY_TOO_COMPLEX');
});

test('of a document with many faults the first are told, in one error', async () => {
  const { errors } = await api.ask(`{ ${Array.from({ length: 1_000 }, (_, i) => `sitez${i}`).join(' ')} }`);
  expect(errors).toMatchObject([{ extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } }]);
  expect(errors![0]!.message).toMatch(/"sitez0".*"sitez9".*aborted/);
  expect(errors![0]!.message).not.toContain('sitez10');
});

test('fragments within fragments cost what they stand for, and are counted in no time', async () => {
  const levels = Array.from(
    { length: 60 },
    (_, i) => `fragment F${i} on Query { ...F${i + 1} ... on Query { ...F${i + 1} } }`,
  );
  const query = `{ ...F0 } ${levels.join(' ')} fragment F60 on Query { jobCount }`;
  expect(await codeOf(query)).toBe('QUERY_TOO_COMPLEX');
});

test('a body that is too large is refused, for strangers before it is read', async () => {
  const big = { query: '{ viewer { id } }', variables: { padding: 'x'.repeat(300_000) } };
  const answer = await api.ask(big.query, big.variables);
  expect(answer).toMatchObject({ status: 413, errors: [{ extensions: { code: 'LIMIT_EXCEEDED' } }] });
  const status = await new Promise((resolve, reject) => {
    const sent = request(
      api.url,
      { method: 'POST', headers: { 'content-type': 'application/json', 'content-length': 1e9 } },
      (response) => {
        resolve(response.statusCode);
        sent.destroy();
      },
    );
    sent.on('error', reject);
    sent.write('{');
  });
  expect(status).toBe(401);
});

test('a body that is not JSON, or not of an accepted type, is a bad request', async () => {
  const headers = { authorization: `Bearer ${api.adminKey}`, 'content-type': 'application/json' };
  const broken = await fetch(api.url, { method: 'POST', headers, body: '{"query": ' });
  expect(broken.status).toBe(400);
  expect(await broken.json()).toMatchObject({ errors: [{ extensions: { code: 'BAD_REQUEST' } }] });
  const batch = await fetch(api.url, { method: 'POST', headers, body: '[{"query":"{ viewer { id } }"}]' });
  expect(batch.status).toBe(400);
  const subscription = await api.ask('subscription { siteUpdated { cursor } }');
  expect(subscription.errors).toHaveLength(1);
  expect(subscription.errors?.[0]?.extensions.code).toBe('BAD_REQUEST');
});

test('a request that a foreign page could send by itself is refused', async () => {
  const simple = await fetch(`${api.url}?query={__typename}`);
  expect(simple.status).toBeGreaterThanOrEqual(400);
  const form = await fetch(api.url, {
    method: 'POST',
    headers: { 'content-type': 'text/plain', authorization: `Bearer ${api.adminKey}` },
    body: '{"query":"{__typename}"}',
  });
  expect(form.status).toBeGreaterThanOrEqual(400);
  expect(simple.headers.get('access-control-allow-origin')).toBeNull();
});

test('health and readiness need no key and tell no details; metrics need that of an operator', async () => {
  expect(await (await fetch(`${api.origin}/healthz`)).text()).toBe('alive\n');
  expect(await (await fetch(`${api.origin}/readyz`)).text()).toBe('ready\n');
  const ask = (key?: string) =>
    fetch(`${api.origin}/metrics`, { headers: key === undefined ? {} : { authorization: `Bearer ${key}` } });
  const { key } = await api.user('USER', unique('curious'));
  expect((await ask()).status).toBe(401);
  expect((await ask(key)).status).toBe(403);
  const metrics = await (await ask(api.adminKey)).text();
  expect(metrics).toMatch(/switchyard_operations_total\{type="query",code="OK"\} [1-9]/);
  expect(metrics).toMatch(/switchyard_operations_total\{type="query",code="QUERY_TOO_COMPLEX"\} [1-9]/);
  expect((await fetch(`${api.origin}/elsewhere`)).status).toBe(404);
});

test('keys cannot be guessed by trying', async () => {
  const statuses = new Set<number>();
  for (let i = 0; i < 40; i++) statuses.add((await api.ask('{ viewer { id } }', {}, `guess${i}`)).status);
  expect([...statuses].sort()).toEqual([401, 429]);
  // Who has none tries none: neither that nor a preflight is held against the address.
  expect((await api.ask('{ viewer { id } }', {}, null)).status).toBe(401);
  expect((await api.ask('{ viewer { id } }')).status).toBe(200);
});

test('a key has so many requests in a while, and is told when to come again', async () => {
  const answers = await Promise.all(Array.from({ length: 40 }, () => closed.ask('{ viewer { id } }')));
  const refused = answers.filter((answer) => answer.status === 429);
  expect(answers.filter((answer) => answer.status === 200).length).toBeGreaterThanOrEqual(10);
  expect(refused.length).toBeGreaterThan(0);
  expect(refused[0]?.errors?.[0]?.extensions).toMatchObject({
    code: 'RATE_LIMITED',
    retryAfterS: expect.any(Number),
  });
  expect(Number(refused[0]?.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
});

test('introspection and the portal can be turned off', async () => {
  const open = (url: string) => fetch(url, { headers: { accept: 'text/html' } });
  expect((await open(api.url)).headers.get('content-type')).toContain('text/html');
  expect((await open(closed.url)).status).toBeGreaterThanOrEqual(400);
  const ask = '{ __schema { queryType { name } } }';
  expect(await api.must(ask)).toEqual({ __schema: { queryType: { name: 'Query' } } });
  // The rate limit of the test before may still hold.
  let answer = await closed.ask(ask);
  for (let tries = 0; answer.status === 429 && tries < 100; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 200));
    answer = await closed.ask(ask);
  }
  expect(answer.errors?.[0]?.extensions.code).toBe('GRAPHQL_VALIDATION_FAILED');
  // However many faults there are, none names what is there.
  const misspelled = `{ ${Array.from({ length: 20 }, (_, i) => `a${i}: sitez`).join(' ')} }`;
  expect((await api.ask(misspelled)).errors?.[0]?.message).toContain('Did you mean "sites"');
  const { errors } = await closed.ask(misspelled);
  expect(errors?.[0]?.message).toContain('"sitez"');
  expect(errors?.[0]?.message).not.toContain('"sites"');
});

test('what nobody expected is masked, and found in the log by the id of the request', async () => {
  const { queries } = api.parts;
  const policy = queries.policy.bind(queries);
  const ask = async () => {
    const response = await fetch(api.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${api.adminKey}`,
        'x-request-id': 'my-request',
      },
      body: '{"query":"{ policy { version } viewer { id } }"}',
    });
    expect(response.headers.get('x-request-id')).toBe('my-request');
    return (await response.json()) as { errors: { message: string; extensions: object }[]; data: object };
  };
  try {
    queries.policy = () => Promise.reject(new Error('password of the vault'));
    const answer = await ask();
    expect(answer.data).toMatchObject({ policy: null, viewer: { id: 'user_1' } });
    expect(answer.errors).toMatchObject([
      { extensions: { code: 'INTERNAL_SERVER_ERROR', requestId: 'my-request' } },
    ]);
    expect(JSON.stringify(answer)).not.toContain('vault');
    const line = api.log.find((one) => one.includes('vault')) ?? '';
    expect(JSON.parse(line)).toMatchObject({ requestId: 'my-request', level: 'error' });

    queries.policy = () => Promise.reject(Object.assign(new Error('x'), { cause: { code: 'ECONNREFUSED' } }));
    expect((await ask()).errors).toMatchObject([{ extensions: { code: 'UNAVAILABLE' } }]);
  } finally {
    queries.policy = policy;
  }
  expect(api.log.join('')).not.toContain(api.adminKey);
});

test('connections are kept for the next request', async () => {
  const { hostname, port } = new URL(api.origin);
  const socket = connect(Number(port), hostname);
  let text = '';
  socket.on('data', (data) => {
    text += data;
  });
  const answers = () => text.split('HTTP/1.1 200').length - 1;
  for (let i = 1; i <= 3; i++) {
    socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await expect.poll(answers).toBe(i);
  }
  expect(text.toLowerCase()).toContain('connection: keep-alive');
  // A refusal ends the connection only where the body that nobody reads is long.
  const refused = (length: number) =>
    `POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
  const refusals = () => text.split('HTTP/1.1 4').length - 1;
  for (let i = 1; i <= 3; i++) {
    socket.write(refused(2));
    await expect.poll(refusals).toBe(i);
    socket.write('{}');
  }
  expect(text.toLowerCase()).not.toContain('connection: close');
  socket.write(refused(65_537));
  await once(socket, 'close');
  expect(refusals()).toBe(4);
  expect(text.toLowerCase()).toContain('connection: close');
});
