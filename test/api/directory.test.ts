import { beforeEach, describe, expect, test } from 'vitest';
import { type Json, unique, withApi } from './support/api.js';

const api = withApi();

const number = (id: string): number => Number(id.split('_')[1]);
/**
 * Runs `mutation NAME(input)`; answers what its payload has as `result` (null: the payload itself), or the code and message that it was
 * refused with.
 */
async function change<T = Json>(
  name: string,
  result: string | null,
  input: object,
  fields = 'id',
): Promise<T & { code?: string; message?: string }> {
  const type = name === 'createDataset' ? 'DatasetInput' : `${name[0]?.toUpperCase()}${name.slice(1)}Input`;
  const { data, errors } = await api.ask<{ payload: Record<string, T> & T }>(
    `mutation ($input: ${type}!) { payload: ${name}(input: $input) { ${result === null ? fields : `${result} { ${fields} }`} } }`,
    { input },
  );
  const [error] = errors ?? [];
  if (error) return { code: error.extensions.code, message: error.message } as never;
  return (result === null ? data.payload : data.payload[result]) as never;
}
/** The same of a mutation that is given an id, and leads to what has it. */
async function on(name: string, kind: string, id: string, fields = 'id'): Promise<Json> {
  const { message: _, ...answer } = await change<Json>(name, kind, { [`${kind}Id`]: id }, fields);
  return answer;
}
const newSite = async (name = unique('site')) =>
  (await change<{ id: string }>('createSite', 'site', { name })).id;
const newMachine = async (site: string, more: object = {}) =>
  (
    await change<{ id: string }>('createMachine', 'machine', {
      siteId: site,
      name: unique('m'),
      cpus: 2,
      memoryMb: 10,
      ...more,
    })
  ).id;

beforeEach(() => {
  api.wakes.length = 0;
});

describe('sites', () => {
  test('are registered, changed, drained and removed; each step wakes who is concerned and is in the audit log', async () => {
    const fields =
      'id name state latitude longitude localPolicy machines { id } licenses { id } reservation { at }';
    const made = await change(
      'createSite',
      'site',
      { name: 'one', latitude: 60.2, longitude: -24.9, localPolicy: { kind: 'easy' } },
      fields,
    );
    expect(made).toMatchObject({
      name: 'one',
      state: 'UP',
      latitude: 60.2,
      longitude: -24.9,
      localPolicy: { kind: 'easy' },
      machines: [],
      reservation: null,
    });
    const site = made.id as string;
    expect(api.wakes.sort()).toEqual([number(site), 'root']);
    expect(
      await change('updateSite', 'site', { siteId: site, localPolicy: null, latitude: null }, fields),
    ).toMatchObject({ name: 'one', localPolicy: null, latitude: null, longitude: -24.9 });
    expect(await on('removeSite', 'site', site)).toEqual({ code: 'CONFLICT' });
    expect(await on('drainSite', 'site', site, 'state')).toEqual({ state: 'DRAINING' });
    expect(await on('removeSite', 'site', site)).toEqual({ id: site });
    expect(await on('drainSite', 'site', site)).toEqual({ code: 'NOT_FOUND' });
    expect(await on('drainSite', 'site', 'site_99999')).toEqual({ code: 'NOT_FOUND' });
    expect(await on('drainSite', 'site', 'site_9999999999')).toEqual({ code: 'BAD_USER_INPUT' });
    const { audit } = await api.must<{ audit: { nodes: Json[] } }>(
      '{ audit(first: 4) { nodes { action target user { name } before after } } }',
    );
    expect(audit.nodes.map(({ action }) => action)).toEqual([
      'removeSite',
      'drainSite',
      'updateSite',
      'registerSite',
    ]);
    expect(audit.nodes[1]).toMatchObject({
      target: site,
      user: { name: 'admin' },
      before: { state: 'UP' },
      after: { state: 'DRAINING' },
    });
    expect(await newSite('one')).not.toBe(site);
  });

  test('may have a limit of running jobs, and machines that are shared in time', async () => {
    const limited = await change(
      'createSite',
      'site',
      { name: unique('site'), maxRunningJobs: 6 },
      'id maxRunningJobs',
    );
    expect(limited.maxRunningJobs).toBe(6);
    const site = limited.id as string;
    const update = (input: object) =>
      change('updateSite', 'site', { siteId: site, ...input }, 'maxRunningJobs');
    expect(await update({ longitude: 1 })).toEqual({ maxRunningJobs: 6 });
    expect(await update({ maxRunningJobs: null })).toEqual({ maxRunningJobs: null });
    expect(await update({ maxRunningJobs: 0 })).toMatchObject({
      code: 'BAD_USER_INPUT',
      message: expect.stringContaining('maxRunningJobs: 0'),
    });
    const longest = (input: object) => change('updateSite', 'site', { siteId: site, ...input }, 'maxLimitS');
    expect(await longest({ maxLimitS: 3_600.5 })).toEqual({ maxLimitS: 3_600.5 });
    expect(await longest({ longitude: 2 })).toEqual({ maxLimitS: 3_600.5 });
    for (const maxLimitS of [0, 1e9 + 1])
      expect(await longest({ maxLimitS })).toMatchObject({
        code: 'BAD_USER_INPUT',
        message: expect.stringContaining(`maxLimitS: ${maxLimitS}`),
      });
    expect(await longest({ maxLimitS: 1e9 })).toEqual({ maxLimitS: 1e9 });
    expect(await longest({ maxLimitS: null })).toEqual({ maxLimitS: null });
    const machine = await newMachine(site, { cpus: 1, maxTasks: 4 });
    const share = (input: object) =>
      change('updateMachine', 'machine', { machineId: machine, ...input }, 'maxTasks tasksUsed cpusUsed');
    expect(await share({ cpus: 2 })).toEqual({ maxTasks: 4, tasksUsed: 0, cpusUsed: 0 });
    expect(await share({ maxTasks: null })).toMatchObject({ maxTasks: null });
    expect(await share({ maxTasks: 1_000_001 })).toMatchObject({ code: 'BAD_USER_INPUT' });
  });

  test('bad values are refused by name', async () => {
    const refused = (input: object) => change('createSite', 'site', { name: unique('site'), ...input });
    expect(await refused({ name: 'with space' })).toMatchObject({
      code: 'BAD_USER_INPUT',
      message: expect.stringContaining('name: "with space"'),
    });
    expect(await refused({ latitude: 91 })).toMatchObject({
      code: 'BAD_USER_INPUT',
      message: expect.stringContaining('latitude: 91'),
    });
    expect(await refused({ localPolicy: { kind: 'magic' } })).toMatchObject({
      code: 'BAD_USER_INPUT',
      message: expect.stringContaining('kind'),
    });
    const name = unique('site');
    await newSite(name);
    expect(await refused({ name })).toMatchObject({ code: 'CONFLICT' });
    const site = await newSite();
    expect(await change('updateSite', 'site', { siteId: site, name: null })).toMatchObject({
      code: 'BAD_USER_INPUT',
    });
    expect(await change('updateSite', 'site', { siteId: site, name })).toMatchObject({ code: 'CONFLICT' });
  });

  test('are listed by name, in pages', async () => {
    for (const name of ['zz-3', 'zz-1', 'zz-2']) await newSite(name);
    const names: string[] = [];
    let after: string | null = null;
    do {
      const {
        sites,
      }: { sites: { nodes: { name: string }[]; pageInfo: { hasNextPage: boolean; endCursor: string } } } =
        await api.must(
          'query ($after: String) { sites(first: 2, after: $after) { nodes { name } pageInfo { hasNextPage endCursor } } }',
          { after },
        );
      names.push(...sites.nodes.map((site) => site.name));
      after = sites.pageInfo.hasNextPage ? sites.pageInfo.endCursor : null;
    } while (after !== null);
    expect(names.slice(-3)).toEqual(['zz-1', 'zz-2', 'zz-3']);
    expect(new Set(names).size).toBe(names.length);
    const foreign = await api.ask('query ($after: String) { machines(after: $after) { nodes { id } } }', {
      after: Buffer.from('["site","zz-1"]').toString('base64url'),
    });
    expect(foreign.errors?.[0]?.extensions.code).toBe('BAD_USER_INPUT');
  });
});

describe('machines and licenses', () => {
  test('a license pool of a site or the grid, machines that can run it, what is in use', async () => {
    const site = await newSite();
    const other = await newSite();
    const own = await change(
      'createLicense',
      'license',
      { kind: 'matlab', copies: 2, siteId: site },
      'id kind copies inUse site { id }',
    );
    expect(own).toMatchObject({ kind: 'matlab', copies: 2, inUse: 0, site: { id: site } });
    api.wakes.length = 0;
    const grid = await change('createLicense', 'license', { kind: 'matlab', copies: 5 }, 'id site { id }');
    expect(grid.site).toBeNull();
    expect(api.wakes).toEqual(expect.arrayContaining(['root', number(site), number(other)]));
    const licenses = [own.id, grid.id] as string[];
    const machine = await newMachine(site, {
      licenseIds: licenses,
      os: 'plan9',
      architecture: 'mips',
      benchmark: 2.5,
    });
    const look = `{ node(id: "${machine}") { ... on Machine { os architecture benchmark state silent cpusUsed memoryUsedMb site { id } licenses { id } } } }`;
    expect(await api.must(look)).toEqual({
      node: {
        os: 'plan9',
        architecture: 'mips',
        benchmark: 2.5,
        state: 'UP',
        silent: true,
        cpusUsed: 0,
        memoryUsedMb: 0,
        site: { id: site },
        licenses: licenses.map((id) => ({ id })),
      },
    });
    expect(
      await change('createMachine', 'machine', {
        siteId: other,
        name: 'm',
        cpus: 1,
        memoryMb: 1,
        licenseIds: licenses,
      }),
    ).toMatchObject({ code: 'CONFLICT' });
    expect(await change('updateLicense', 'license', { licenseId: own.id, copies: 7 }, 'copies')).toEqual({
      copies: 7,
    });
    expect(await change('updateLicense', 'license', { licenseId: own.id, copies: -1 })).toMatchObject({
      code: 'BAD_USER_INPUT',
    });
    expect(await on('removeLicense', 'license', own.id as string)).toEqual({ id: own.id });
    expect(await api.must(look)).toMatchObject({ node: { licenses: [{ id: grid.id }] } });
    const { licenses: list } = await api.must<{ licenses: { nodes: { id: string }[] } }>(
      '{ licenses { nodes { id kind } } }',
    );
    expect(list.nodes).toEqual([{ id: grid.id, kind: 'matlab' }]);
  });

  test('many machines at once, all or none', async () => {
    const site = await newSite();
    const register =
      'mutation ($inputs: [CreateMachineInput!]!) { createMachines(input: { machines: $inputs }) { machines { id name } } }';
    const machine = (i: number, more = {}) => ({
      siteId: site,
      name: `m${i}`,
      cpus: 1,
      memoryMb: 1,
      ...more,
    });
    const refused = async (inputs: object[]) => (await api.ask(register, { inputs })).errors?.[0];
    expect(await refused([machine(1), machine(2, { cpus: 0 })])).toMatchObject({
      message: expect.stringContaining('machines[1].cpus: 0'),
      extensions: { code: 'BAD_USER_INPUT' },
    });
    expect((await refused([machine(1), machine(1)]))?.extensions.code).toBe('CONFLICT');
    expect((await refused(Array.from({ length: 1_001 }, (_, i) => machine(i))))?.extensions.code).toBe(
      'LIMIT_EXCEEDED',
    );
    const { createMachines } = await api.must<{ createMachines: { machines: object[] } }>(register, {
      inputs: [machine(2), machine(1)],
    });
    expect(createMachines.machines).toMatchObject([{ name: 'm2' }, { name: 'm1' }]);
    const { machines } = await api.must<{ machines: { nodes: object[] } }>(
      'query ($site: ID) { machines(siteId: $site) { nodes { name } } }',
      { site },
    );
    expect(machines.nodes).toEqual([{ name: 'm1' }, { name: 'm2' }]);
  });

  test('are changed, drained and removed', async () => {
    const site = await newSite();
    const machine = await newMachine(site);
    expect(
      await change(
        'updateMachine',
        'machine',
        { machineId: machine, cpus: 8, os: 'bsd' },
        'cpus os memoryMb',
      ),
    ).toEqual({ cpus: 8, os: 'bsd', memoryMb: 10 });
    expect(await change('updateMachine', 'machine', { machineId: machine, cpus: null })).toMatchObject({
      code: 'BAD_USER_INPUT',
    });
    expect(await on('drainMachine', 'machine', machine, 'state')).toEqual({ state: 'DRAINING' });
    expect(await on('removeMachine', 'machine', machine)).toEqual({ id: machine });
    expect(await on('removeMachine', 'machine', machine)).toEqual({ code: 'NOT_FOUND' });
  });

  test('what one mutation of a request has changed, the next one sees', async () => {
    const site = await newSite();
    const machine = await newMachine(site);
    const answer = await api.must(
      `mutation ($site: ID!, $m: ID!) {
        a: updateSite(input: { siteId: $site, latitude: 1 }) { site { latitude machines { cpus site { latitude } } } }
        b: updateMachine(input: { machineId: $m, cpus: 9 }) { machine { site { latitude machines { cpus } } } }
        c: updateSite(input: { siteId: $site, latitude: 2 }) { site { machines { cpus site { latitude } } } } }`,
      { site, m: machine },
    );
    expect(answer).toEqual({
      a: { site: { latitude: 1, machines: [{ cpus: 2, site: { latitude: 1 } }] } },
      b: { machine: { site: { latitude: 1, machines: [{ cpus: 9 }] } } },
      c: { site: { machines: [{ cpus: 9, site: { latitude: 2 } }] } },
    });
  });
});

describe('users and keys', () => {
  test('are made, changed and made inactive; the last administrator stays', async () => {
    const user = await change<{ id: string }>(
      'createUser',
      'user',
      { name: 'ada', class: 'GOLD' },
      'id name class role quotaShare active submissionQuota { limit } keys { nodes { id } }',
    );
    expect(user).toMatchObject({
      name: 'ada',
      class: 'GOLD',
      role: 'USER',
      quotaShare: 1,
      active: true,
      submissionQuota: null,
      keys: { nodes: [] },
    });
    expect(await change('createUser', 'user', { name: 'ada' })).toMatchObject({
      code: 'CONFLICT',
    });
    expect(await change('createUser', 'user', { name: 'x', quotaShare: 0 })).toMatchObject({
      code: 'BAD_USER_INPUT',
    });
    expect(await change('updateUser', 'user', { userId: user.id, class: 'SILVER' }, 'class role')).toEqual({
      class: 'SILVER',
      role: 'USER',
    });
    expect(await change('updateUser', 'user', { userId: 'user_1', active: false })).toMatchObject({
      code: 'CONFLICT',
    });
    const quota = (input: object) =>
      change(
        'updateQuota',
        'user',
        { userId: user.id, reason: 'test', ...input },
        'quotaShare submissionQuota { limit periodS used }',
      );
    expect(await quota({ quotaShare: 2.5 })).toEqual({ quotaShare: 2.5, submissionQuota: null });
    expect(await quota({ submissionLimit: 5 })).toMatchObject({
      code: 'BAD_USER_INPUT',
      message: expect.stringContaining('submissionPeriodS'),
    });
    expect(await quota({ submissionPeriodS: 5 })).toMatchObject({
      code: 'BAD_USER_INPUT',
      message: expect.stringContaining('submissionLimit'),
    });
    expect(await quota({ submissionLimit: 5, submissionPeriodS: 60 })).toEqual({
      quotaShare: 2.5,
      submissionQuota: { limit: 5, periodS: 60, used: 0 },
    });
    expect(await quota({ quotaShare: 1 })).toMatchObject({ submissionQuota: { limit: 5 } });
    expect(await quota({ submissionLimit: null })).toMatchObject({ submissionQuota: null });
    expect(await quota({ quotaShare: 1, reason: '' })).toMatchObject({ code: 'BAD_USER_INPUT' });
    const { users } = await api.must<{ users: { nodes: { name: string }[] } }>(
      '{ users { nodes { name } } }',
    );
    expect(users.nodes.map(({ name }) => name)).toEqual(['ada', 'admin']);
  });

  test("a key's secret is shown once and works until it is revoked", async () => {
    const fields = 'secret apiKey { id name prefix createdAt expiresAt revokedAt lastUsedAt site { id } }';
    const { secret, apiKey } = await change<{ secret: string; apiKey: Json }>(
      'createApiKey',
      null,
      { name: 'laptop', expiresAt: '2099-01-01T00:00:00Z' },
      fields,
    );
    expect(secret.startsWith(apiKey.prefix as string)).toBe(true);
    expect(apiKey).toMatchObject({
      name: 'laptop',
      expiresAt: '2099-01-01T00:00:00.000Z',
      revokedAt: null,
      lastUsedAt: null,
      site: null,
    });
    expect(await api.must('{ viewer { name } }', {}, secret)).toEqual({ viewer: { name: 'admin' } });
    const everything =
      JSON.stringify((await api.db.pool.query('SELECT * FROM api_keys')).rows) +
      JSON.stringify((await api.db.pool.query('SELECT * FROM audits')).rows) +
      api.log.join('');
    expect(everything).not.toContain(secret);
    expect(await on('revokeApiKey', 'apiKey', apiKey.id as string, 'revokedAt')).toEqual({
      revokedAt: expect.any(String),
    });
    expect((await api.ask('{ viewer { name } }', {}, secret)).status).toBe(401);
    expect(
      await change('createApiKey', null, { name: 'x', expiresAt: '2001-01-01T00:00:00Z' }, 'secret'),
    ).toMatchObject({ code: 'BAD_USER_INPUT' });
  });

  test('keys are a page, the newest first, with those that were revoked', async () => {
    const user = (await change<{ id: string }>('createUser', 'user', { name: unique('many') })).id;
    const keys: string[] = [];
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      const { apiKey } = await change<{ apiKey: Json }>(
        'createApiKey',
        null,
        { userId: user, name },
        'apiKey { id }',
      );
      keys.unshift(apiKey.id as string);
    }
    await on('revokeApiKey', 'apiKey', keys[1] as string);
    const page = `query ($id: ID!, $after: String) { node(id: $id) { ... on User {
      keys(first: 2, after: $after) { nodes { id revokedAt } edges { cursor } pageInfo { hasNextPage hasPreviousPage endCursor } } } } }`;
    type Keys = {
      nodes: { id: string; revokedAt: string | null }[];
      pageInfo: Json;
      edges: { cursor: string }[];
    };
    const pages: Keys[] = [];
    for (let after: unknown = null; pages.length === 0 || pages.at(-1)?.pageInfo.hasNextPage; ) {
      const { node } = await api.must<{ node: { keys: Keys } }>(page, { id: user, after });
      pages.push(node.keys);
      after = node.keys.pageInfo.endCursor;
      expect(node.keys.edges.at(-1)?.cursor).toBe(after);
    }
    expect(pages.map(({ nodes }) => nodes.length)).toEqual([2, 2, 1]);
    expect(pages.map(({ pageInfo }) => pageInfo.hasPreviousPage)).toEqual([false, true, true]);
    const found = pages.flatMap(({ nodes }) => nodes);
    expect(found.map(({ id }) => id)).toEqual(keys);
    expect(found.flatMap(({ id, revokedAt }) => (revokedAt === null ? [] : [id]))).toEqual([keys[1]]);
    const foreign = { id: user, after: 'x' };
    expect((await api.ask(page, foreign)).errors?.[0]?.extensions.code).toBe('BAD_USER_INPUT');
  });
});

describe('the policy', () => {
  interface Policy {
    version: number;
    document: {
      dispatch: { weights: Record<string, number>; mode: string };
      local: { weights: Record<string, number> };
    };
  }
  const current = async () =>
    (
      await api.must<{ policy: Policy }>(
        '{ policy { id version document reason author { name } revertsTo } }',
      )
    ).policy;
  const FIELDS = 'id version document reason author { name } revertsTo';

  test('weights are set, replaced and restored as new versions; who comes too late is told', async () => {
    const first = await current();
    expect(first).toMatchObject({ version: 1, author: null });
    const site = await newSite();
    api.wakes.length = 0;
    const second = await change<Policy>(
      'updateWeights',
      'policy',
      { expectedVersion: 1, reason: 'licenses matter', dispatch: { licenses: 3 }, local: { aging: 0.5 } },
      FIELDS,
    );
    expect(second).toMatchObject({
      id: 'policy_2',
      version: 2,
      reason: 'licenses matter',
      author: { name: 'admin' },
      document: { dispatch: { weights: { licenses: 3, deadline: 1 } }, local: { weights: { aging: 0.5 } } },
    });
    expect(api.wakes).toEqual(expect.arrayContaining(['root', number(site)]));
    expect(
      await change('updateWeights', 'policy', {
        expectedVersion: 1,
        reason: 'late',
        dispatch: { user: 2 },
      }),
    ).toMatchObject({ code: 'VERSION_CONFLICT' });
    const third = await change<Policy>(
      'updatePolicy',
      'policy',
      {
        expectedVersion: 2,
        reason: 'ls',
        document: { ...second.document, dispatch: { ...second.document.dispatch, mode: 'LS' } },
      },
      FIELDS,
    );
    expect(third).toMatchObject({
      version: 3,
      document: { dispatch: { mode: 'LS', weights: { licenses: 3 } } },
    });
    const revert =
      'mutation ($v: Int!, $e: Int!) { revertPolicy(input: { version: $v, expectedVersion: $e, reason: "back" }) { policy { version revertsTo document } } }';
    const { revertPolicy } = await api.must<{ revertPolicy: { policy: Policy } }>(revert, { v: 1, e: 3 });
    expect(revertPolicy.policy).toMatchObject({ version: 4, revertsTo: 1, document: first.document });
    expect((await api.ask(revert, { v: 99, e: 4 })).errors?.[0]?.extensions.code).toBe('NOT_FOUND');
    const { policyHistory, policy } = await api.must<{
      policyHistory: { nodes: { version: number }[] };
      policy: Policy;
    }>('{ policyHistory(first: 3) { nodes { version } } policy(version: 2) { version } }');
    expect(policyHistory.nodes.map(({ version }) => version)).toEqual([4, 3, 2]);
    expect(policy.version).toBe(2);
    const { audit } = await api.must<{ audit: { nodes: object[] } }>(
      '{ audit(first: 3) { nodes { action target reason } } }',
    );
    expect(audit.nodes).toEqual([
      { action: 'revertPolicy', target: 'policy_4', reason: 'back' },
      { action: 'updatePolicy', target: 'policy_3', reason: 'ls' },
      { action: 'setWeights', target: 'policy_2', reason: 'licenses matter' },
    ]);
  });

  test('two administrators at once: one wins, the other is told', async () => {
    const { version: expectedVersion } = await current();
    const results = await Promise.all(
      Array.from({ length: 6 }, (_, i) =>
        change(
          'updateWeights',
          'policy',
          { expectedVersion, reason: 'race', dispatch: { user: i } },
          'version',
        ),
      ),
    );
    expect(results.filter((result) => result.version === expectedVersion + 1)).toHaveLength(1);
    expect(results.filter((result) => result.code === 'VERSION_CONFLICT')).toHaveLength(5);
  });

  test('a document that is not acceptable names path, value and what is accepted', async () => {
    const { version: expectedVersion, document } = await current();
    const refused = (changed: object) =>
      change('updatePolicy', 'policy', { expectedVersion, reason: 'x', document: changed });
    expect(await refused({ ...document, seed: -1 })).toMatchObject({
      code: 'BAD_USER_INPUT',
      message: expect.stringContaining('seed: -1'),
    });
    expect(await refused({ ...document, extra: 1 })).toMatchObject({ code: 'BAD_USER_INPUT' });
    expect(
      await change('updateWeights', 'policy', { expectedVersion, reason: 'x', dispatch: { speed: 1 } }),
    ).toMatchObject({ code: 'BAD_USER_INPUT', message: expect.stringContaining('speed') });
    expect(await change('updateWeights', 'policy', { expectedVersion, reason: 'x' })).toMatchObject({
      code: 'BAD_USER_INPUT',
    });
    expect(
      await change('updateWeights', 'policy', { expectedVersion, reason: 'x', dispatch: [1] }),
    ).toMatchObject({ code: 'BAD_USER_INPUT' });
    let nested: unknown = 1;
    for (let i = 0; i < 40; i++) nested = { nested };
    expect(await refused(nested as object)).toMatchObject({ code: 'BAD_USER_INPUT' });
  });
});

test('node finds every kind of object, and says what it is', async () => {
  const site = await newSite();
  const machine = await newMachine(site);
  const license = (await change<{ id: string }>('createLicense', 'license', { kind: unique('k'), copies: 1 }))
    .id;
  const { submitJobs } = await api.must<{ submitJobs: { jobIds: string[] } }>(
    'mutation { submitJobs(input: { jobs: [{ command: "x" }] }) { jobIds } }',
  );
  const { viewer, events } = await api.must<{
    viewer: { keys: { nodes: { id: string }[] } };
    events: { nodes: { id: string }[] };
  }>('{ viewer { keys { nodes { id } } } events(first: 1) { nodes { id } } }');
  const ids: Record<string, string | undefined> = {
    ...{ Site: site, Machine: machine, License: license, User: 'user_1', Policy: 'policy_1' },
    ...{ Job: submitJobs.jobIds[0], ApiKey: viewer.keys.nodes[0]?.id, Event: events.nodes[0]?.id },
  };
  for (const [type, id] of Object.entries(ids)) {
    expect(await api.must('query ($id: ID!) { node(id: $id) { __typename id } }', { id })).toEqual({
      node: { __typename: type, id },
    });
  }
  for (const id of ['job_999999', 'decision_999999', 'apikey_999999']) {
    expect(await api.must('query ($id: ID!) { node(id: $id) { id } }', { id })).toEqual({ node: null });
  }
  for (const id of ['', 'job', 'job_-1', 'planet_1', 'job_01', 'job_1.5']) {
    expect(
      (await api.ask('query ($id: ID!) { node(id: $id) { id } }', { id })).errors?.[0]?.extensions.code,
    ).toBe('BAD_USER_INPUT');
  }
});

test('the audit log names what was changed, also what has been removed since', async () => {
  const [from, to] = [unique('here'), unique('there')];
  const [site, other] = [await newSite(from), await newSite(to)];
  const machine = await newMachine(site, { name: 'm-17' });
  await change('createLicense', 'license', { kind: 'cad', copies: 1, siteId: site });
  const dataset = await change('createDataset', 'dataset', { name: unique('data'), sizeMb: 1 }, 'name');
  await api.must(
    'mutation ($links: [LinkInput!]!) { setLinkValues(input: { links: $links }) { links { bandwidthMbPerS } } }',
    {
      links: [{ fromSiteId: site, toSiteId: other, bandwidthMbPerS: 1, rttS: 0 }],
    },
  );
  await api.must(
    'mutation ($from: ID!, $to: ID!) { removeLink(input: { fromSiteId: $from, toSiteId: $to }) { link { bandwidthMbPerS } } }',
    {
      from: site,
      to: other,
    },
  );
  const name = unique('user');
  const user = await change('createUser', 'user', { name });
  await change('createApiKey', null, { userId: user.id, name: 'laptop' }, 'apiKey { id }');
  await on('drainMachine', 'machine', machine);
  await on('removeMachine', 'machine', machine);
  const { audit } = await api.must<{
    audit: { nodes: { action: string; targetName: string | null; targetSite: { name: string } | null }[] };
  }>('{ audit(first: 11) { nodes { action targetName targetSite { name } } } }');
  expect(
    audit.nodes.map(({ action, targetName, targetSite }) => [action, targetName, targetSite?.name]),
  ).toEqual([
    ['removeMachine', 'm-17', from],
    ['drainMachine', 'm-17', from],
    ['createApiKey', 'laptop', undefined],
    ['registerUser', name, undefined],
    ['removeLink', `${from} → ${to}`, undefined],
    ['setLinks', null, undefined],
    ['createDataset', dataset.name, undefined],
    ['registerLicense', 'cad', from],
    ['registerMachine', 'm-17', from],
    ['registerSite', to, to],
    ['registerSite', from, from],
  ]);
});

test('of two who register a peer at once, one makes it and gets its key, the other changes it', async () => {
  const name = unique('peer');
  const answers = await Promise.all(
    Array.from({ length: 4 }, () =>
      api.must<{ setPeer: { secret: string | null } }>(
        'mutation ($name: String!) { setPeer(input: { name: $name }) { secret } }',
        { name },
      ),
    ),
  );
  expect(answers.filter(({ setPeer }) => setPeer.secret !== null)).toHaveLength(1);
});
