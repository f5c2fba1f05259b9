/** What each user may have of the service, how it is shown, and that no key outlives or exceeds the one that made it. */
import { describe, expect, test } from 'vitest';
import { unique, withApi } from './support/api.js';
import { schedule } from './support/schedule.js';

const api = withApi((config) => ({
  ...config,
  limits: { ...config.limits, userJobs: 5, userJobBytes: 20_000, userOutputBytes: 10_000, userKeys: 4 },
}));

const SUBMIT = 'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs }) { jobs { id } } }';
const jobs = (count: number, more: object = {}) =>
  Array.from({ length: count }, () => ({ command: '/bin/true', held: true, ...more }));
const LIMITS = '{ viewer { limits { name used allowed } } }';

async function limits(key: string): Promise<Record<string, { used: number; allowed: number }>> {
  const { viewer } = await api.must<{
    viewer: { limits: { name: string; used: number; allowed: number }[] };
  }>(LIMITS, {}, key);
  return Object.fromEntries(viewer.limits.map(({ name, ...use }) => [name, use]));
}

describe('jobs that have not ended', () => {
  test('are bounded by user, in number and in bytes, and freed when they end', async () => {
    const [ann, bob] = [await api.user('USER', unique('ann')), await api.user('USER', unique('bob'))];
    const { submitJobs } = await api.must<{ submitJobs: { jobs: { id: string }[] } }>(
      SUBMIT,
      { jobs: jobs(4) },
      ann.key,
    );
    expect(await limits(ann.key)).toMatchObject({ LIVE_JOBS: { used: 4, allowed: 5 } });
    const refused = await api.ask(SUBMIT, { jobs: jobs(2) }, ann.key);
    expect(refused.errors).toMatchObject([
      { extensions: { code: 'LIMIT_EXCEEDED', limit: 5, used: 4, asked: 2 } },
    ]);
    // Another user's share is theirs.
    expect((await api.ask(SUBMIT, { jobs: jobs(5) }, bob.key)).errors).toBeUndefined();
    const cancel = `mutation { cancelJobs(input: { selection: { ids: ["${submitJobs.jobs[0]!.id}"] } }) { jobs { state } } }`;
    await api.must(cancel, {}, ann.key);
    expect((await api.ask(SUBMIT, { jobs: jobs(2) }, ann.key)).errors).toBeUndefined();
    expect(await limits(ann.key)).toMatchObject({ LIVE_JOBS: { used: 5 } });
  });

  test('of much text, or of many inputs, take more', async () => {
    const carl = await api.user('USER', unique('carl'));
    const big = { arguments: ['x'.repeat(15_000)] };
    expect((await api.ask(SUBMIT, { jobs: jobs(1, big) }, carl.key)).errors).toBeUndefined();
    const { LIVE_JOB_BYTES } = await limits(carl.key);
    expect(LIVE_JOB_BYTES!.used).toBeGreaterThan(15_000);
    expect((await api.ask(SUBMIT, { jobs: jobs(1, big) }, carl.key)).errors).toMatchObject([
      { extensions: { code: 'LIMIT_EXCEEDED', limit: 20_000 } },
    ]);
    const { id } = (
      await api.must<{ createSite: { site: { id: string } } }>(
        'mutation ($name: String!) { createSite(input: { name: $name }) { site { id } } }',
        { name: unique('site') },
      )
    ).createSite.site;
    const inputs = Array.from({ length: 100 }, () => ({ sizeMb: 1, site: id }));
    expect((await api.ask(SUBMIT, { jobs: jobs(1, { inputs }) }, carl.key)).errors).toMatchObject([
      { extensions: { code: 'LIMIT_EXCEEDED' } },
    ]);
  });

  test('counts are those of the jobs there are', async () => {
    const { rows } = await api.db.pool.query(
      `SELECT u.user_id FROM user_jobs u FULL JOIN
         (SELECT user_id, count(*) AS jobs, sum(bytes) AS bytes FROM jobs WHERE ended_at IS NULL GROUP BY user_id) j USING (user_id)
       WHERE u.jobs IS DISTINCT FROM coalesce(j.jobs, 0) OR u.bytes IS DISTINCT FROM coalesce(j.bytes, 0)`,
    );
    expect(rows).toEqual([]);
  });

  test('what a user has is nobody else’s business', async () => {
    const dora = await api.user('USER', unique('dora'));
    expect(await api.must(`{ node(id: "${dora.id}") { ... on User { limits { used } } } }`)).toEqual({
      node: { limits: null },
    });
    expect(Object.keys(await limits(dora.key)).sort()).toEqual([
      'API_KEYS',
      'CONNECTIONS',
      'COST_PER_MINUTE',
      'FILE_BYTES',
      'LIVE_JOBS',
      'LIVE_JOB_BYTES',
      'OPEN_REQUESTS',
      'OPEN_SIMULATIONS',
      'OUTPUT_BYTES',
      'REQUESTS_PER_SECOND',
      'SUBSCRIPTIONS',
    ]);
  });
});

test('outputs are bounded by user: beyond it they are short, no job fails for it, and what is removed makes room', async () => {
  const register = `mutation ($name: String!) { createSite(input: { name: $name }) { site { id } } }`;
  const site = (await api.must<{ createSite: { site: { id: string } } }>(register, { name: unique('site') }))
    .createSite.site.id;
  await api.must(
    `mutation { createMachine(input: { siteId: "${site}", name: "m", os: "outputs", cpus: 8, memoryMb: 1000 }) { machine { id } } }`,
  );
  const agent = (await api.user('AGENT', unique('agent'), site)).key;
  const agentId = await api.serve(site, agent);
  const [han, ivy] = [await api.user('USER', unique('han')), await api.user('USER', unique('ivy'))];
  const os = { os: 'outputs', held: false };
  const OUTPUT =
    'query ($id: ID!) { node(id: $id) { ... on Job { state output { text bytes truncated } } } }';
  /** Runs one job for each of the texts, and tells what is kept. */
  const write = async (key: string, texts: readonly string[]) => {
    const { submitJobs } = await api.must<{ submitJobs: { jobs: { id: string }[] } }>(
      SUBMIT,
      { jobs: jobs(texts.length, os) },
      key,
    );
    await schedule(api.parts);
    const reports = submitJobs.jobs.map(({ id: job }, i) => {
      const outputs = [{ stream: 'STDOUT', text: texts[i], bytes: texts[i]!.length }];
      return {
        job,
        epoch: 1,
        phase: 'ENDED',
        at: new Date().toISOString(),
        exitCode: 0,
        cause: 'EXITED_ZERO',
        outputs,
      };
    });
    await api.must(
      'mutation ($site: ID!, $agent: ID!, $reports: [RunReportInput!]!) { reportRuns(site: $site, agent: $agent, reports: $reports) { results } }',
      { site, agent: agentId, reports },
      agent,
    );
    type Kept = { node: { state: string; output: { text: string; bytes: number; truncated: boolean } } };
    const nodes = submitJobs.jobs.map(async ({ id }) => (await api.must<Kept>(OUTPUT, { id }, key)).node);
    return Promise.all(nodes);
  };
  const large = 'x'.repeat(6_000);
  const whole = { text: large, bytes: 6_000, truncated: false };
  const short = {
    text: `${'x'.repeat(1_000)}\n[5000 bytes left out]\n`,
    bytes: 6_000,
    truncated: true,
  };
  const ended = (output: object) => ({ state: 'COMPLETED', output });
  expect(await write(han.key, [large, large])).toMatchObject([ended(whole), ended(short)]);
  const { OUTPUT_BYTES } = await limits(han.key);
  expect(OUTPUT_BYTES).toMatchObject({ allowed: 10_000 });
  expect(OUTPUT_BYTES!.used).toBe(7_000);
  expect(await write(han.key, ['', 'brief', large])).toMatchObject([
    ended({ text: '', truncated: false }),
    ended({ text: 'brief', truncated: false }),
    ended(short),
  ]);
  // Another user's share is theirs.
  expect(await write(ivy.key, [large])).toMatchObject([ended(whole)]);
  await api.db.pool.query(`DELETE FROM jobs WHERE user_id = $1`, [Number(han.id.split('_')[1])]);
  expect(await limits(han.key)).toMatchObject({ OUTPUT_BYTES: { used: 0 } });
  expect(await write(han.key, [large])).toMatchObject([ended(whole)]);
  // What is told while a run goes on, in pieces: of one beyond the share it is still known how long the stream has become.
  const { submitJobs } = await api.must<{ submitJobs: { jobs: { id: string }[] } }>(
    SUBMIT,
    { jobs: jobs(1, os) },
    han.key,
  );
  await schedule(api.parts);
  const job = submitJobs.jobs[0]!.id;
  for (const start of [0, 3_000, 6_000]) {
    await api.must(
      'mutation ($site: ID!, $agent: ID!, $outputs: [RunOutputInput!]!) { reportOutput(site: $site, agent: $agent, outputs: $outputs) { results } }',
      {
        site,
        agent: agentId,
        outputs: [{ job, epoch: 1, stream: 'STDOUT', start, text: 'x'.repeat(3_000), bytes: start + 3_000 }],
      },
      agent,
    );
  }
  expect(await api.must(OUTPUT, { id: job }, han.key)).toMatchObject({
    node: {
      output: { text: `${'x'.repeat(3_000)}\n[6000 bytes left out]\n`, bytes: 9_000, truncated: true },
    },
  });
  const { rows } = await api.db.pool.query(
    `SELECT * FROM user_outputs u FULL JOIN (SELECT user_id, sum(octet_length(body)) AS kept FROM outputs o JOIN jobs j ON j.id = o.job_id
       GROUP BY user_id) k USING (user_id) WHERE coalesce(u.bytes, 0) <> coalesce(k.kept, 0)`,
  );
  expect(rows).toEqual([]);
});

describe('a key', () => {
  const CREATE =
    'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { secret apiKey { id expiresAt } } }';
  type Made = { createApiKey: { secret: string; apiKey: { id: string; expiresAt: string | null } } };
  const ROTATE =
    'mutation ($id: ID!) { rotateApiKey(input: { apiKeyId: $id, name: "new" }) { secret apiKey { id expiresAt } } }';
  const make = async (key: string, input: object = {}) =>
    (await api.must<Made>(CREATE, { input: { name: 'made', ...input } }, key)).createApiKey;
  const status = async (key: string) => (await api.ask('{ viewer { id } }', {}, key)).status;

  test('does not outlive the one that made it: neither its expiry nor its revocation', async () => {
    const eve = await api.user('USER', unique('eve'));
    const soon = new Date(Date.now() + 3_600_000).toISOString();
    const brief = await make(eve.key, { expiresAt: soon });
    const child = await make(brief.secret);
    expect(child.apiKey.expiresAt).toBe(soon);
    const later = await api.ask(
      CREATE,
      { input: { name: 'x', expiresAt: '9999-01-01T00:00:00Z' } },
      brief.secret,
    );
    expect(later.errors).toMatchObject([
      { extensions: { code: 'BAD_USER_INPUT' }, message: expect.stringContaining(soon) },
    ]);
    const grandchild = await make(child.secret);
    await api.must(
      `mutation { revokeApiKey(input: { apiKeyId: "${brief.apiKey.id}" }) { apiKey { id } } }`,
      {},
      eve.key,
    );
    expect([
      await status(eve.key),
      await status(brief.secret),
      await status(child.secret),
      await status(grandchild.secret),
    ]).toEqual([200, 401, 401, 401]);
  });

  test('takes the place of another: the same expiry, and what was made with the one goes with the other', async () => {
    const ida = await api.user('USER', unique('ida'));
    const soon = new Date(Date.now() + 3_600_000).toISOString();
    const old = await make(ida.key, { expiresAt: soon });
    const child = await make(old.secret);
    const { rotateApiKey: made } = await api.must<{ rotateApiKey: Made['createApiKey'] }>(
      ROTATE,
      { id: old.apiKey.id },
      old.secret,
    );
    expect(made.apiKey.expiresAt).toBe(soon);
    const good = () => Promise.all([old, made, child].map(({ secret }) => status(secret)));
    expect(await good()).toEqual([401, 200, 200]);
    const again = await api.ask(ROTATE, { id: old.apiKey.id }, ida.key);
    expect(again.errors).toMatchObject([{ extensions: { code: 'CONFLICT' } }]);
    const other = await api.user('USER', unique('other'));
    const foreign = await api.ask(ROTATE, { id: made.apiKey.id }, other.key);
    expect(foreign.errors).toMatchObject([{ extensions: { code: 'NOT_FOUND' } }]);
    await api.must(
      `mutation { revokeApiKey(input: { apiKeyId: "${made.apiKey.id}" }) { apiKey { id } } }`,
      {},
      ida.key,
    );
    expect(await good()).toEqual([401, 401, 401]);
  });

  test('replaces no other one by one that outlives it, nor one that acts for users', async () => {
    const kay = await api.user('USER', unique('kay'));
    const soon = new Date(Date.now() + 3_600_000).toISOString();
    const brief = await make(kay.key, { expiresAt: soon });
    const lasting = await make(kay.key);
    const { rotateApiKey: made } = await api.must<{ rotateApiKey: Made['createApiKey'] }>(
      ROTATE,
      { id: lasting.apiKey.id },
      brief.secret,
    );
    expect(made.apiKey.expiresAt).toBe(soon);
    await api.must(
      `mutation { revokeApiKey(input: { apiKeyId: "${brief.apiKey.id}" }) { apiKey { id } } }`,
      {},
      kay.key,
    );
    expect(await status(made.secret)).toBe(401);

    const portal = await make(api.adminKey, { userId: kay.id, actsForUsers: true });
    const refused = { errors: [{ extensions: { code: 'FORBIDDEN' } }] };
    expect(await api.ask(ROTATE, { id: portal.apiKey.id }, kay.key)).toMatchObject(refused);
    const ann = await api.user('USER', unique('ann'));
    const response = await fetch(api.url, {
      method: 'POST',
      headers: {
        ...{ 'content-type': 'application/json', authorization: `Bearer ${portal.secret}` },
        'x-switchyard-user': (
          await api.must<{ viewer: { name: string } }>('{ viewer { name } }', {}, ann.key)
        ).viewer.name,
      },
      body: JSON.stringify({ query: ROTATE, variables: { id: ann.keyId } }),
    });
    expect(await response.json()).toMatchObject(refused);
    expect(await status(ann.key)).toBe(200);
    expect(await api.ask(ROTATE, { id: portal.apiKey.id }, portal.secret)).toMatchObject({ status: 200 });
  });

  test('of an administrator that expires makes none that stays, for nobody', async () => {
    const soon = new Date(Date.now() + 3_600_000).toISOString();
    const brief = await make(api.adminKey, { expiresAt: soon });
    const other = await api.user('ADMIN', unique('other'));
    expect((await make(brief.secret, { userId: other.id })).apiKey.expiresAt).toBe(soon);
    const later = { name: 'x', userId: other.id, expiresAt: '9999-01-01T00:00:00Z' };
    expect((await api.ask(CREATE, { input: later }, brief.secret)).errors).toMatchObject([
      { extensions: { code: 'BAD_USER_INPUT' }, message: expect.stringContaining(soon) },
    ]);
    const { rotateApiKey: made } = await api.must<{ rotateApiKey: Made['createApiKey'] }>(
      ROTATE,
      { id: other.keyId },
      brief.secret,
    );
    expect(made.apiKey.expiresAt).toBe(soon);
  });

  test('for signing in gives a session once, as long as its maker allows', async () => {
    const lea = await api.user('USER', unique('lea'));
    const soon = new Date(Date.now() + 60_000).toISOString();
    const later = new Date(Date.now() + 3_600_000).toISOString();
    const link = await make(lea.key, { expiresAt: soon, sessionExpiresAt: later });
    const rotated = await api.must<{ rotateApiKey: Made['createApiKey'] }>(
      ROTATE,
      { id: link.apiKey.id },
      link.secret,
    );
    expect(rotated.rotateApiKey.apiKey.expiresAt).toBe(later);
    const again = { name: 'x', expiresAt: soon, sessionExpiresAt: '9999-01-01T00:00:00Z' };
    expect((await api.ask(CREATE, { input: again }, rotated.rotateApiKey.secret)).errors).toMatchObject([
      { extensions: { code: 'BAD_USER_INPUT', field: 'sessionExpiresAt' } },
    ]);
    const expired = await make(lea.key);
    await api.db.pool.query(`UPDATE api_keys SET expires_at = now() - interval '1 s' WHERE id = $1`, [
      Number(expired.apiKey.id.slice('apikey_'.length)),
    ]);
    expect((await api.ask(ROTATE, { id: expired.apiKey.id }, lea.key)).errors).toMatchObject([
      { extensions: { code: 'CONFLICT' } },
    ]);
  });

  test('there are so many of a user, until one is revoked', async () => {
    const fay = await api.user('USER', unique('fay'));
    const made = [await make(fay.key), await make(fay.key), await make(fay.key)];
    expect((await api.ask(CREATE, { input: { name: 'x' } }, fay.key)).errors).toMatchObject([
      { extensions: { code: 'LIMIT_EXCEEDED' } },
    ]);
    expect(await limits(fay.key)).toMatchObject({ API_KEYS: { used: 4, allowed: 4 } });
    await api.must(
      `mutation { revokeApiKey(input: { apiKeyId: "${made[0]!.apiKey.id}" }) { apiKey { id } } }`,
      {},
      fay.key,
    );
    expect((await api.ask(CREATE, { input: { name: 'x' } }, fay.key)).errors).toBeUndefined();
    // Also of many at once.
    const gus = await api.user('USER', unique('gus'));
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => api.ask(CREATE, { input: { name: 'x' } }, gus.key)),
    );
    expect(answers.filter(({ errors }) => !errors).length).toBe(3);
  });
});
