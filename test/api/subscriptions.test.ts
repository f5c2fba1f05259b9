import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from 'graphql-ws';
import { describe, expect, test } from 'vitest';
import { createApi } from '../../src/api/server.js';
import { type Json, unique, withApi } from './support/api.js';
import { type Followed, follow, settled } from './support/follow.js';

const api = withApi((config) => ({
  ...config,
  limits: {
    ...config.limits,
    subscriberBuffer: 100,
    subscriptionsOpen: 1_050,
    socketsOpen: 5_000,
    requestsOpen: 5_000,
  },
}));

interface JobUpdate {
  cursor: string;
  resyncRequired: boolean;
  event: { sequence: number; toState: string | null; kind: string } | null;
  job: { id: string; state: string } | null;
}
const JOBS = `subscription ($filter: JobFilter, $after: String) { jobUpdated(filter: $filter, after: $after) {
  cursor resyncRequired event { kind sequence toState objectId } job { id state site { name } user { name } } } }`;

async function submit(jobs: object[], key = api.adminKey): Promise<string[]> {
  const query = 'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds } }';
  return (await api.must<{ submitJobs: { jobIds: string[] } }>(query, { input: { jobs } }, key)).submitJobs
    .jobIds;
}
const act = (field: string, ids: string[]) =>
  api.must(`mutation ($ids: [ID!]) { ${field}(input: { selection: { ids: $ids } }) { jobIds } }`, { ids });
const latestCursor = async () => (await api.must<{ latestCursor: string }>('{ latestCursor }')).latestCursor;

describe('jobUpdated', () => {
  test('tells of every event behind a cursor, in order, and goes on live; again from any cursor without gap or repeat', async () => {
    const after = await latestCursor();
    const group = unique('live');
    const ids = await submit([
      { command: 'a', groupName: group },
      { command: 'b', groupName: group },
    ]);
    const first = follow<JobUpdate>(api.subscriber(), JOBS, { filter: { groupName: group }, after });
    await expect.poll(() => first.got.length).toBe(2);
    await act('holdJobs', ids);
    await act('releaseJobs', ids);
    await act('cancelJobs', ids);
    await expect.poll(() => first.got.length).toBe(8);
    expect(first.got.map(({ event }) => event?.toState)).toEqual([
      ...['QUEUED', 'QUEUED', 'HELD', 'HELD'],
      ...['QUEUED', 'QUEUED', 'CANCELLED', 'CANCELLED'],
    ]);
    const cursors = first.got.map(({ cursor }) => Number(cursor));
    expect(cursors).toEqual([...cursors].sort((a, b) => a - b));
    for (const id of ids) {
      const own = first.got.filter(({ job }) => job?.id === id);
      expect(own.map(({ event }) => event?.sequence)).toEqual([1, 2, 3, 4]);
    }
    const resumed = follow<JobUpdate>(api.subscriber(), JOBS, {
      filter: { groupName: group },
      after: first.got[3]?.cursor,
    });
    await expect.poll(() => resumed.got.length).toBe(4);
    expect(resumed.got.map(({ cursor }) => cursor)).toEqual(first.got.slice(4).map(({ cursor }) => cursor));
    expect(first.got.every((update) => update.resyncRequired === false)).toBe(true);
  });

  test('filters by job, state, user and application; a USER hears of their own jobs only', async () => {
    const after = await latestCursor();
    const { key, id: user } = await api.user('USER', unique('u'));
    const group = unique('filters');
    const [mine] = (await submit([{ command: 'mine', groupName: group }], key)) as [string];
    const [theirs] = (await submit([{ command: 'theirs', groupName: group }])) as [string];
    const subscriber = api.subscriber();
    const seen = (filter: object, client = subscriber) => follow<JobUpdate>(client, JOBS, { filter, after });
    const all = seen({ groupName: group });
    const own = seen({ groupName: group }, api.subscriber(key));
    const byId = seen({ ids: [theirs] });
    const byUser = seen({ groupName: group, user });
    const byApplication = seen({ application: 'mine', groupName: group });
    const cancelled = seen({ groupName: group, states: ['CANCELLED'] });
    await act('cancelJobs', [mine, theirs]);
    const ids = ({ got }: Followed<JobUpdate>) => got.map(({ job }) => job?.id);
    await expect.poll(() => ids(all)).toEqual([mine, theirs, mine, theirs]);
    await expect.poll(() => ids(own)).toEqual([mine, mine]);
    await expect.poll(() => ids(byId)).toEqual([theirs, theirs]);
    await expect.poll(() => ids(byUser)).toEqual([mine, mine]);
    await expect.poll(() => ids(byApplication)).toEqual([mine, mine]);
    await expect.poll(() => ids(cancelled)).toEqual([mine, theirs]);
  });

  test('a cursor that retention has passed gets one resyncRequired, and goes on from there', async () => {
    const [id] = (await submit([{ command: 'x' }])) as [string];
    const before = await latestCursor();
    await act('holdJobs', [id]);
    await api.db.pool.query('UPDATE events_horizon SET id = $1', [Number(before)]);
    await api.db.pool.query('DELETE FROM events WHERE id <= $1', [Number(before)]);
    const late = follow<JobUpdate>(api.subscriber(), JOBS, { filter: { ids: [id] }, after: '1' });
    await expect.poll(() => late.got.length).toBe(1);
    expect(late.got[0]).toMatchObject({ resyncRequired: true, event: null, job: null });
    await act('releaseJobs', [id]);
    await expect.poll(() => late.got.length).toBe(2);
    expect(late.got[1]).toMatchObject({ resyncRequired: false, event: { toState: 'QUEUED' } });
    const inTime = follow<JobUpdate>(api.subscriber(), JOBS, { filter: { ids: [id] }, after: before });
    await expect.poll(() => inTime.got.map(({ event }) => event?.toState)).toEqual(['HELD', 'QUEUED']);
    const { errors } = await api.ask('{ events(after: "1") { nodes { id } } }');
    expect(errors?.[0]?.extensions.code).toBe('CONFLICT');
  });

  test('cursors that nobody gave out are refused', async () => {
    for (const after of ['x', '-1', '01', '99999999999']) {
      const refused = follow(api.subscriber(), JOBS, { after });
      await expect
        .poll(() => refused.end)
        .toMatchObject({ error: [{ extensions: { code: 'BAD_USER_INPUT' } }] });
    }
  });

  test('one who was up to date and falls too far behind is told to query again, and nothing is kept for them', async () => {
    const client = api.subscriber();
    const group = unique('slow');
    const got: JobUpdate[] = [];
    const iterator = client.iterate<{ jobUpdated: JobUpdate }>({
      query: JOBS,
      variables: { filter: { groupName: group }, after: await latestCursor() },
    });
    const reading = (async () => {
      for await (const { data } of iterator) {
        if (data) got.push(data.jobUpdated);
        if (got.at(-1)?.resyncRequired) return;
      }
    })();
    await submit([{ command: 'x', groupName: group }]);
    await expect.poll(() => got.length).toBe(1);
    // More at once than the feed hands out in a batch, and than a subscriber may be behind.
    await submit(Array.from({ length: 9_000 }, () => ({ command: 'x', groupName: group })));
    await reading;
    expect(got.at(-1)).toMatchObject({ resyncRequired: true, job: null });
    expect(got.length).toBeLessThan(9_000);
  });
});

describe('siteUpdated', () => {
  test('tells of a site, its machines and its licenses', async () => {
    const name = unique('site');
    const after = await latestCursor();
    const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
      'mutation ($name: String!) { createSite(input: { name: $name }) { site { id } } }',
      { name },
    );
    const query = `subscription ($site: ID, $after: String) { siteUpdated(siteId: $site, after: $after) { cursor resyncRequired event { kind } site { name state machines { name } } } }`;
    const site = createSite.site.id;
    const updates = follow<{ event: { kind: string }; site: { state: string; machines: object[] } }>(
      api.subscriber(),
      query,
      { site, after },
    );
    await expect
      .poll(() => updates.got)
      .toMatchObject([{ event: { kind: 'SITE' }, site: { name, state: 'UP' } }]);
    await api.must(
      'mutation ($site: ID!) { createMachine(input: { siteId: $site, name: "m", cpus: 1, memoryMb: 1 }) { machine { id } } }',
      { site },
    );
    await api.must(
      'mutation ($site: ID!) { createLicense(input: { siteId: $site, kind: "k", copies: 1 }) { license { id } } }',
      { site },
    );
    await api.must('mutation ($site: ID!) { drainSite(input: { siteId: $site }) { site { id } } }', { site });
    await expect
      .poll(() => updates.got.map(({ event }) => event.kind))
      .toEqual(['SITE', 'MACHINE', 'LICENSE', 'SITE']);
    expect(updates.got.at(-1)?.site).toEqual({ name, state: 'DRAINING', machines: [{ name: 'm' }] });
  });
});

describe('who listens', () => {
  const WAIT = 'subscription { siteUpdated { cursor } }';

  test('a connection without a good key is closed for good', async () => {
    for (const key of ['wrong', '']) {
      const { end } = await settled(follow(api.subscriber(key), WAIT));
      expect(end).toMatchObject({ error: { code: 4401 } });
    }
  });

  test('subscriptions end when their key is revoked, its user made inactive, or it expires', async () => {
    const one = await api.user('USER', unique('u'));
    const other = await api.user('USER', unique('u'));
    const revoked = [follow(api.subscriber(one.key), WAIT), follow(api.subscriber(one.key), JOBS)];
    const inactive = follow(api.subscriber(other.key), WAIT);
    const short = await api.must<{ createApiKey: { secret: string } }>(
      'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { secret } }',
      { input: { name: 'short', expiresAt: new Date(Date.now() + 5_000).toISOString() } },
    );
    const expiring = follow(api.subscriber(short.createApiKey.secret), WAIT);
    const kept = follow(api.subscriber(), WAIT);
    await sleep(300);
    expect([...revoked, inactive, expiring, kept].map(({ end }) => end)).toEqual([
      null,
      null,
      null,
      null,
      null,
    ]);
    await api.must('mutation ($id: ID!) { revokeApiKey(input: { apiKeyId: $id }) { apiKey { id } } }', {
      id: one.keyId,
    });
    for (const subscription of revoked)
      expect((await settled(subscription)).end).toMatchObject({ error: { code: 4401 } });
    await api.must(
      'mutation ($user: ID!) { updateUser(input: { userId: $user, active: false }) { user { id } } }',
      {
        user: other.id,
      },
    );
    expect((await settled(inactive)).end).toMatchObject({ error: { code: 4401 } });
    expect((await settled(expiring)).end).toMatchObject({ error: { code: 4401 } });
    expect(kept.end).toBeNull();
  });

  test('a key revoked behind the back of this process loses its power within a second as well', async () => {
    const { key, keyId } = await api.user('USER', unique('u'));
    const subscription = follow(api.subscriber(key), WAIT);
    expect((await api.ask('{ viewer { id } }', {}, key)).status).toBe(200);
    await api.db.pool.query('UPDATE api_keys SET revoked_at = now() WHERE id = $1', [
      Number(keyId.split('_')[1]),
    ]);
    expect((await settled(subscription)).end).toMatchObject({ error: { code: 4401 } });
    await expect.poll(async () => (await api.ask('{ viewer { id } }', {}, key)).status).toBe(401);
  });

  test('the same limits hold as over HTTP', async () => {
    const client = api.subscriber();
    const codeOf = async (query: string) => {
      const { end } = await settled(follow(client, query));
      return end && 'error' in end
        ? (end.error as { extensions: { code: string } }[])[0]?.extensions.code
        : 'none';
    };
    expect(await codeOf('{ jobs(first: 5000) { nodes { runs { allocations { machine { id } } } } } }')).toBe(
      'QUERY_TOO_COMPLEX',
    );
    expect(await codeOf('{ nothing }')).toBe('GRAPHQL_VALIDATION_FAILED');
    expect(await codeOf('{')).toBe('GRAPHQL_PARSE_FAILED');
    const agent = 'subscription { assignments(site: "site_1") { cursor } }';
    expect(await codeOf(agent)).toBe('FORBIDDEN');
    expect(follow<Json>(client, '{ viewer { name } }').end).toBeNull();
    const viewer = follow<Json>(client, '{ viewer { name } }');
    expect((await settled(viewer)).end).toEqual({ completed: true });
    expect(viewer.got).toEqual([{ name: 'admin' }]);
  });

  test('a thousand subscribers hear of the same event, no more are let in, and all are forgotten when they go', async () => {
    const group = unique('crowd');
    const clients = Array.from({ length: 20 }, () => api.subscriber());
    const after = await latestCursor();
    const open = async () =>
      Number(
        /switchyard_subscriptions\{field="jobUpdated"\} (\d+)/.exec(
          (await api.parts.metrics.expose()).body,
        )?.[1] ?? 0,
      );
    const others = await open();
    const crowd = Array.from({ length: 1_000 }, (_, i) =>
      follow<JobUpdate>(clients[i % 20] as Client, JOBS, { filter: { groupName: group }, after }),
    );
    await expect.poll(open).toBeGreaterThanOrEqual(1_000);
    const [id] = await submit([{ command: 'x', groupName: group }]);
    await expect.poll(() => crowd.filter(({ got }) => got.length === 1).length).toBe(1_000);
    expect(new Set(crowd.map(({ got }) => got[0]?.job?.id))).toEqual(new Set([id]));
    const more = Array.from({ length: 60 }, () =>
      follow(clients[0] as Client, JOBS, { filter: { groupName: group } }),
    );
    await expect.poll(() => more.filter(({ end }) => end !== null).length).toBeGreaterThan(0);
    expect(more.find(({ end }) => end)?.end).toMatchObject({
      error: [{ extensions: { code: 'LIMIT_EXCEEDED' } }],
    });
    for (const one of [...crowd, ...more]) one.stop();
    await expect.poll(open).toBeLessThanOrEqual(others);
  });

  test('at shutdown connections are closed so that clients go on elsewhere, and requests in hand are answered', async () => {
    const second = createApi({ ...api.parts, config: { ...api.parts.config, port: 0 } });
    const url = await second.listen();
    const { createClient } = await import('graphql-ws');
    const { default: WebSocket } = await import('ws');
    const client = createClient({
      url: url.replace('http', 'ws'),
      webSocketImpl: WebSocket,
      connectionParams: { authorization: `Bearer ${api.adminKey}` },
      retryAttempts: 0,
    });
    const closes: number[] = [];
    client.on('closed', (event) => void closes.push((event as { code: number }).code));
    const connected = new Promise((resolve) => client.on('connected', resolve));
    const subscription = follow(client, WAIT);
    await connected;
    await sleep(100);
    await second.close();
    await settled(subscription);
    expect(closes).toEqual([1001]);
    await expect(fetch(url)).rejects.toThrow();
    await client.dispose();
  });
});
