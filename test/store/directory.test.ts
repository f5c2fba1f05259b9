import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_POLICY } from '../../src/core/policy.js';
import { type Actor, type Change, type Directory, openDirectory } from '../../src/store/directory.js';
import type { Database } from '../../src/store/pool.js';
import { Queries } from '../../src/store/queries.js';
import { withDatabase } from '../support/database.js';
import {
  assigned,
  context,
  dispatched,
  ended,
  newJob,
  openTestDatabase,
  postgresWorld,
  start,
  T0,
  vouch,
  type World,
} from './world.js';

const test = withDatabase();
let database: Database;
let directory: Directory;
let queries: Queries;
let world: World;
let actor: Actor;
let user: number;
let site: number;
let machine: number;
beforeAll(() => {
  database = openTestDatabase(test.url);
  directory = openDirectory(database);
  queries = new Queries(database);
});
afterAll(() => database.close());
beforeEach(async () => {
  world = await postgresWorld(database, test.pool);
  const { adminId } = await directory.bootstrap();
  actor = { userId: adminId, requestId: 'request-1', reason: 'because' };
  user = await world.addUser('ann');
  site = await world.addSite('here');
  machine = await world.addMachine(site, 'm1', 4);
  await vouch(world.store, site, [machine], T0);
});

const done = async <T>(change: Promise<Change<T>>): Promise<T> => {
  const result = await change;
  if (result.kind === 'refused') throw new Error(result.message);
  return result.value;
};
const refusal = async (change: Promise<Change<unknown>>): Promise<string> => {
  const result = await change;
  return result.kind === 'refused' ? `${result.code}: ${result.message}` : 'done';
};

describe('installation', () => {
  it('is done once, whoever tries and however often', async () => {
    const other = await test.another();
    const fresh = openTestDatabase(other.url);
    const installations = await Promise.all([1, 2, 3].map(() => openDirectory(fresh).bootstrap()));
    expect(new Set(installations.map(({ adminId }) => adminId)).size).toBe(1);
    const there = new Queries(fresh);
    expect(await there.policy()).toMatchObject({ version: 1, document: DEFAULT_POLICY });
    expect(await there.users('', 10)).toMatchObject([{ name: 'admin', role: 'ADMIN', active: true }]);
    await fresh.close();
  });
});

describe('sites', () => {
  it('are registered, changed and noted in the audit log', async () => {
    const place = { latitude: 43.7, longitude: 10.4, localPolicy: { kind: 'easy' } as const };
    const made = await done(directory.registerSite({ name: 'pisa', ...place }, actor));
    expect(made).toMatchObject({ name: 'pisa', state: 'UP', ...place, removedAt: null });
    const changed = await done(directory.updateSite(made.id, { localPolicy: null, latitude: 1 }, actor));
    expect(changed).toMatchObject({ name: 'pisa', latitude: 1, longitude: 10.4, localPolicy: null });
    expect(await queries.audits(null, 2)).toMatchObject([
      {
        action: 'updateSite',
        target: `site_${made.id}`,
        before: made,
        after: changed,
        userId: actor.userId,
        reason: 'because',
      },
      { action: 'registerSite', before: null, after: made },
    ]);
    const drained = await done(
      directory.updateSite(made.id, { state: 'DRAINING' }, { ...actor, action: 'drainSite' }),
    );
    expect(drained.state).toBe('DRAINING');
    expect((await queries.audits(null, 1))[0]!.action).toBe('drainSite');
  });

  it('have unique names while they are in service', async () => {
    const again = () =>
      directory.registerSite({ name: 'here', latitude: null, longitude: null, localPolicy: null }, actor);
    expect(await refusal(again())).toBe('CONFLICT: there is already a site named here');
    const other = await world.addSite('other');
    expect(await refusal(directory.updateSite(other, { name: 'here' }, actor))).toBe(
      'CONFLICT: there is already a site named here',
    );
    await done(directory.updateSite(site, { state: 'DOWN' }, actor));
    await done(directory.removeSite(site, T0, actor));
    expect(await refusal(again())).toBe('done');
    expect(await refusal(directory.updateSite(site, { state: 'UP' }, actor))).toBe(
      `NOT_FOUND: site ${site} is no longer in service`,
    );
    expect(await refusal(directory.updateSite(999, { state: 'UP' }, actor))).toBe(
      'NOT_FOUND: there is no site 999',
    );
  });

  it('leave service only when nothing is left to do there, and take machines and licenses along', async () => {
    const license = await world.addLicense('cad', 1, site);
    const [queued] = await dispatched(world, user, site, [newJob()]);
    const [live] = await assigned(world, user, site, machine, [newJob()]);
    const remove = () => refusal(directory.removeSite(site, T0, actor));
    expect(await remove()).toBe('CONFLICT: site here is UP: drain it first');
    await world.setSiteState(site, 'DRAINING');
    expect(await remove()).toBe('CONFLICT: site here still has 2 jobs: wait until it is drained');
    await world.store.takeBack(site, context(), 10);
    expect(await remove()).toBe('CONFLICT: site here still has 1 jobs: wait until it is drained');
    await world.store.reportRuns(site, [ended(live!, 1)], 3);
    expect(await remove()).toBe('done');
    const grid = await world.store.loadGrid(0);
    expect(grid).toMatchObject({
      sites: [],
      machines: [],
      licenses: [],
      jobs: [{ job: { id: queued }, state: 'QUEUED' }],
    });
    expect(await queries.sitesByIds([site])).toMatchObject([{ removedAt: T0 }]);
    expect(await queries.licensesByIds([license])).toMatchObject([{ removedAt: T0 }]);
    expect(await world.breaches()).toEqual([]);
  });
});

describe('machines', () => {
  const spec = (name: string, change: object = {}) => ({
    siteId: site,
    name,
    cpus: 2,
    memoryMb: 10,
    benchmark: 50,
    os: 'linux',
    architecture: 'arm64',
    licenseIds: [],
    ...change,
  });

  it('are registered all or none, in the order given', async () => {
    const other = await world.addSite('other');
    const made = await done(
      directory.registerMachines(
        [spec('b', { siteId: other }), spec('a'), spec('m1', { siteId: other })],
        actor,
      ),
    );
    expect(made.map(({ siteId, name }) => [siteId, name])).toEqual([
      [other, 'b'],
      [site, 'a'],
      [other, 'm1'],
    ]);
    expect(made[1]).toMatchObject({
      state: 'UP',
      silent: true,
      cpusUsed: 0,
      architecture: 'arm64',
    });
    expect(await refusal(directory.registerMachines([spec('c'), spec('m1')], actor))).toBe(
      'CONFLICT: a machine with this name is already in service at the site',
    );
    expect(await refusal(directory.registerMachines([spec('c'), spec('c')], actor))).toBe(
      'CONFLICT: two of the machines have the same name at the same site',
    );
    expect(await refusal(directory.registerMachines([spec('c', { siteId: 999 })], actor))).toBe(
      'NOT_FOUND: there is no site 999',
    );
    expect(await refusal(directory.registerMachines([spec('c', { licenseIds: [999] })], actor))).toBe(
      `CONFLICT: license 999 is not in service at site ${site}`,
    );
    expect((await queries.machines(null, null, 100)).map(({ name }) => name)).toEqual(['a', 'm1', 'b', 'm1']);
  });

  it('can run only licenses of the grid or of their site', async () => {
    const grid = await world.addLicense('cad', 1, null);
    const own = await world.addLicense('cad', 1, site);
    const foreign = await world.addLicense('cad', 1, await world.addSite('other'));
    expect(
      (await done(directory.updateMachine(machine, { licenseIds: [own, grid] }, actor))).licenseIds,
    ).toEqual([own, grid]);
    expect(await refusal(directory.updateMachine(machine, { licenseIds: [foreign] }, actor))).toBe(
      `CONFLICT: license ${foreign} is not in service at site ${site}`,
    );
  });

  it('change how they are shared only when empty', async () => {
    const [job] = await assigned(world, user, site, machine, [newJob()]);
    const share = (maxTasks: number | null) => refusal(directory.updateMachine(machine, { maxTasks }, actor));
    expect(await share(2)).toBe(
      'CONFLICT: jobs use 1 CPUs of machine m1: drain it before setting or clearing maxTasks (time sharing cannot change under running jobs)',
    );
    await world.store.reportRuns(site, [ended(job!, 1)], 3);
    expect(await share(3)).toBe('done');
    await assigned(world, user, site, machine, [newJob(), newJob()]);
    expect(await queries.machines(null, null, 9)).toMatchObject([{ maxTasks: 3, tasksUsed: 2, cpusUsed: 0 }]);
    expect(await share(1)).toBe('CONFLICT: 2 tasks run on machine m1: maxTasks cannot be 1');
    expect(await share(null)).toMatch(
      'CONFLICT: 2 tasks run on machine m1: drain it before setting or clearing maxTasks',
    );
    expect(await refusal(directory.removeMachine(machine, T0, actor))).toBe(
      'CONFLICT: 2 tasks run on machine m1: drain it first',
    );
    expect(await share(2)).toBe('done');
  });

  it('shrink no further than what jobs hold, and leave only empty', async () => {
    const [job] = await assigned(world, user, site, machine, [
      newJob({ cpusPerTask: 3, memoryMbPerTask: 200 }),
    ]);
    expect(await refusal(directory.updateMachine(machine, { cpus: 2 }, actor))).toBe(
      'CONFLICT: jobs use 3 CPUs of machine m1: cpus cannot be 2',
    );
    expect(await refusal(directory.updateMachine(machine, { memoryMb: 199 }, actor))).toBe(
      'CONFLICT: jobs use 200 MB of machine m1: memoryMb cannot be 199',
    );
    expect(
      await done(directory.updateMachine(machine, { cpus: 3, memoryMb: 200, state: 'DRAINING' }, actor)),
    ).toMatchObject({ cpus: 3, state: 'DRAINING' });
    expect(await refusal(directory.removeMachine(machine, T0, actor))).toBe(
      'CONFLICT: jobs use 3 CPUs of machine m1: drain it first',
    );
    await world.store.reportRuns(site, [ended(job!, 1)], 3);
    expect(await refusal(directory.removeMachine(machine, T0, actor))).toBe('done');
    expect(await refusal(directory.removeMachine(machine, T0, actor))).toBe(
      `NOT_FOUND: machine ${machine} is no longer in service`,
    );
    expect((await world.store.loadGrid(0)).machines).toEqual([]);
  });
});

describe('licenses', () => {
  it('keep as many copies as are in use, and leave only unused', async () => {
    const pool = await world.addLicense('cad', 3, null);
    await done(directory.updateMachine(machine, { licenseIds: [pool] }, actor));
    const [job] = await dispatched(world, user, site, [newJob({ licenses: ['cad'] })]);
    await world.store.applyStarts(site, [start(job!, site, { [machine]: 1 }, [pool])], null, context());
    expect(await refusal(directory.updateLicense(pool, { copies: 0 }, actor))).toBe(
      'CONFLICT: 1 copies of cad are in use: copies cannot be 0',
    );
    expect(await done(directory.updateLicense(pool, { copies: 1 }, actor))).toMatchObject({
      copies: 1,
      inUse: 1,
    });
    expect(await refusal(directory.removeLicense(pool, T0, actor))).toBe(
      'CONFLICT: 1 copies of cad are in use: remove the license once they are free',
    );
    await world.store.reportRuns(site, [ended(job!, 1)], 3);
    await done(directory.removeLicense(pool, T0, actor));
    // Without any it would be unrestricted.
    expect((await queries.machinesByIds([machine]))[0]!.licenseIds).toEqual([pool]);
    expect(await refusal(directory.registerLicense({ kind: 'cad', copies: 1, siteId: null }, actor))).toBe(
      'done',
    );
    expect(await refusal(directory.registerLicense({ kind: 'cad', copies: 1, siteId: null }, actor))).toBe(
      'CONFLICT: there is already a license pool cad there',
    );
    expect(await refusal(directory.registerLicense({ kind: 'cad', copies: 1, siteId: site }, actor))).toBe(
      'done',
    );
  });
});

describe('users and keys', () => {
  it('have unique names, and one active administrator at least', async () => {
    expect(
      await refusal(
        directory.registerUser({ name: 'ann', class: 'GOLD', role: 'USER', quotaShare: 1 }, actor),
      ),
    ).toBe('CONFLICT: there is already a user named ann');
    const admin = actor.userId!;
    expect(await refusal(directory.updateUser(admin, { role: 'USER' }, actor))).toBe(
      'CONFLICT: admin is the last active administrator',
    );
    expect(await refusal(directory.updateUser(admin, { active: false }, actor))).toBe(
      'CONFLICT: admin is the last active administrator',
    );
    await done(directory.updateUser(user, { role: 'ADMIN', class: 'SILVER' }, actor));
    const both = await Promise.all([
      directory.updateUser(admin, { role: 'USER' }, actor),
      directory.updateUser(user, { role: 'USER' }, actor),
    ]);
    expect(both.map(({ kind }) => kind).sort()).toEqual(['done', 'refused']);
    expect(await refusal(directory.updateUser(999, { active: false }, actor))).toBe(
      'NOT_FOUND: there is no user 999',
    );
  });

  it('have quotas, whose use is counted', async () => {
    expect(
      await done(directory.setQuota(user, { quotaShare: 2.5, submission: { limit: 5, periodS: 60 } }, actor)),
    ).toMatchObject({ quotaShare: 2.5, submissionLimit: 5, submissionPeriodS: 60 });
    await world.store.submit({
      userId: user,
      idempotencyKey: null,
      payloadHash: '',
      jobs: [newJob(), newJob()],
      now: T0,
    });
    expect([...(await queries.quotaUsed([user, actor.userId!], T0 + 59))]).toEqual([[user, 2]]);
    expect([...(await queries.quotaUsed([user], T0 + 61))]).toEqual([[user, 0]]);
    expect(await done(directory.setQuota(user, { submission: null }, actor))).toMatchObject({
      quotaShare: 2.5,
      submissionLimit: null,
    });
  });

  it('find the holder of a key by its secret, which is stored nowhere', async () => {
    const { apiKey, secret } = await done(
      directory.createApiKey({ userId: user, name: 'laptop', siteId: null, expiresAt: T0 + 100 }, actor),
    );
    expect(secret.startsWith(`${apiKey.prefix}_`)).toBe(true);
    const holder = {
      keyId: apiKey.id,
      userId: user,
      role: 'USER',
      siteId: null,
      expiresAtMs: (T0 + 100) * 1000,
      actsForUsers: false,
    };
    expect(await directory.findKey(secret, T0)).toEqual(holder);
    expect(await queries.apiKeysOfUser(user, null, 10)).toEqual([{ ...apiKey, lastUsedAt: T0 }]);
    const { rows } = await test.pool.query(
      `SELECT to_jsonb(k)::text AS stored FROM api_keys k UNION ALL SELECT to_jsonb(a)::text FROM audits a`,
    );
    for (const { stored } of rows) expect(stored).not.toContain(secret.slice(apiKey.prefix.length));
    for (const wrong of [
      '',
      'swy',
      'swy_',
      apiKey.prefix,
      `${secret}x`,
      secret.slice(0, -1),
      `${apiKey.prefix}_${'A'.repeat(43)}`,
      "' OR 1=1",
    ]) {
      expect(await directory.findKey(wrong, T0)).toBeNull();
    }
  });

  it('refuse keys that are expired or revoked, of inactive users and of sites that are gone', async () => {
    const make = async (siteId: number | null) =>
      done(directory.createApiKey({ userId: user, name: 'k', siteId, expiresAt: T0 + 100 }, actor));
    const { apiKey, secret } = await make(null);
    expect(await directory.findKey(secret, T0 + 100)).toBeNull();
    const revoked = await done(directory.revokeApiKey(apiKey.id, T0 + 5, actor));
    expect(revoked.revokedAt).toBe(T0 + 5);
    expect((await done(directory.revokeApiKey(apiKey.id, T0 + 9, actor))).revokedAt).toBe(T0 + 5);
    expect(await directory.findKey(secret, T0 + 6)).toBeNull();
    const ofSite = await make(site);
    expect(await directory.findKey(ofSite.secret, T0)).toMatchObject({ siteId: site });
    await world.setSiteState(site, 'DOWN');
    expect(await directory.findKey(ofSite.secret, T0)).toMatchObject({ siteId: site });
    await done(directory.removeSite(site, T0, actor));
    expect(await directory.findKey(ofSite.secret, T0)).toBeNull();
    const last = await make(null);
    await done(directory.updateUser(user, { active: false }, actor));
    expect(await directory.findKey(last.secret, T0)).toBeNull();
    expect(
      await refusal(directory.createApiKey({ userId: 999, name: 'k', siteId: null, expiresAt: null }, actor)),
    ).toBe('NOT_FOUND: there is no user 999');
  });
});

describe('policies', () => {
  it('are added behind the version that is in force, one at a time', async () => {
    const add = (expectedVersion: number, seed: number) =>
      directory.addPolicy(
        { document: { ...DEFAULT_POLICY, seed }, expectedVersion, reason: `seed ${seed}` },
        actor,
      );
    expect(await refusal(add(0, 5))).toBe('VERSION_CONFLICT: the policy is at version 1; expectedVersion: 0');
    expect(await done(add(1, 5))).toMatchObject({
      version: 2,
      document: { seed: 5 },
      reason: 'seed 5',
      authorId: actor.userId,
      revertsTo: null,
    });
    const raced = await Promise.all([add(2, 6), add(2, 7), add(2, 8)]);
    expect(raced.map((result) => (result.kind === 'refused' ? result.code : 'done')).sort()).toEqual([
      'VERSION_CONFLICT',
      'VERSION_CONFLICT',
      'done',
    ]);
    const back = { document: DEFAULT_POLICY, expectedVersion: 3, reason: 'back', revertsTo: 1 };
    expect(await done(directory.addPolicy(back, { ...actor, action: 'revertPolicy' }))).toMatchObject({
      version: 4,
      revertsTo: 1,
    });
    expect((await queries.policies(null, 2)).map(({ version }) => version)).toEqual([4, 3]);
    expect((await queries.policies(3, 9)).map(({ version }) => version)).toEqual([2, 1]);
    expect(await queries.policy(2)).toMatchObject({ version: 2 });
    expect(await queries.policy(9)).toBeNull();
  });
});

describe('the audit log', () => {
  const cancel = (ids: number[], userId: number | null) =>
    world.store.cancel(
      {
        ...{ ids, ownedBy: null, limit: 10 },
        audit: (changed) => ({
          ...{ userId, requestId: 'request-2', action: 'cancelJobs', target: 'jobs', reason: null },
          after: { changed },
        }),
      },
      T0,
      'CANCELLED_BY_OPERATOR',
    );

  it('has what is done to jobs with it, or neither happens', async () => {
    const [a, b] = await dispatched(world, user, site, [newJob(), newJob()]);
    const nobody = 999;
    await expect(cancel([a!, b!], nobody)).rejects.toThrow(/foreign key/);
    expect((await world.events(a!)).at(-1)?.toState).toBe('DISPATCHED');
    expect((await cancel([a!, b!], actor.userId)).changed).toEqual([a, b]);
    // Nothing was changed: nothing to tell.
    expect((await cancel([a!], actor.userId)).changed).toEqual([]);
    const { rows } = await test.pool.query(`SELECT user_id, after FROM audits WHERE action = 'cancelJobs'`);
    expect(rows).toEqual([{ user_id: actor.userId, after: { changed: [a, b] } }]);
  });

  it('is kept for its time, as are keys that are good for nothing', async () => {
    const key = { userId: user, name: 'key', siteId: null };
    const [past, future] = [T0, Date.now() / 1000 + 86_400];
    const dead = await done(directory.createApiKey({ ...key, expiresAt: past }, actor));
    const good = await done(directory.createApiKey({ ...key, expiresAt: future }, actor));
    const never = { eventsBefore: 0, unreadBefore: 0, jobsEndedBefore: 0, processesBefore: 0, limit: 2 };
    const count = async () => Number((await test.pool.query('SELECT count(*) FROM audits')).rows[0].count);
    const before = await count();
    expect((await world.store.prune({ ...never, auditsBefore: T0 + 1 })).more).toBe(false);
    expect(await count()).toBe(before);
    const keys = (await queries.apiKeysOfUser(user, null, 10)).map(({ id }) => id);
    expect(keys).toEqual([good.apiKey.id]);
    expect(keys).not.toContain(dead.apiKey.id);
    for (let more = true; more; )
      more = (await world.store.prune({ ...never, auditsBefore: Date.now() / 1000 + 60 })).more;
    expect(await count()).toBe(0);
  });

  it('keeps holds until they have ended for as long', async () => {
    const window = (name: string, from: number) =>
      world.createHold({
        ...{
          kind: 'MAINTENANCE',
          name,
          siteId: site,
          userId: user,
          held: { of: 'SITE' },
          shared: [],
          onConflict: 'AFTER_JOBS',
        },
        ...{ reason: null, times: [{ from, to: from + 10 }], recurrence: null, idleS: null, userIds: [] },
      });
    await world.cancelHold((await window('a', T0 + 10)).id as number);
    await window('b', T0 + 20);
    const never = { eventsBefore: 0, unreadBefore: 0, jobsEndedBefore: 0, processesBefore: 0, limit: 2 };
    const left = async () => (await queries.holds(site, true, 0, 10)).map(({ name }) => name);
    await world.store.prune({ ...never, auditsBefore: T0 });
    expect(await left()).toEqual(['a', 'b']);
    await world.store.prune({ ...never, auditsBefore: T0 + 1 });
    expect(await left()).toEqual(['b']);
    expect(Number((await test.pool.query('SELECT count(*) FROM hold_times')).rows[0].count)).toBe(1);
  });
});
