/** Webhooks: real endpoints that die, are slow or refuse, on a real database. A day passes by the clock of the process that delivers. */
import fc from 'fast-check';
import { Webhook as Verifier } from 'standardwebhooks';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { signed } from '../../src/callbacks/sender.js';
import { pauseAfter } from '../../src/callbacks/webhooks.js';
import type { WebhookSettings } from '../../src/store/directory/webhooks.js';
import { type Directory, openDirectory } from '../../src/store/directory.js';
import type { Database } from '../../src/store/pool.js';
import { until } from '../engine/support.js';
import {
  assigned,
  byIds,
  ended,
  newJob,
  openTestDatabase,
  postgresWorld,
  report,
  submit,
  vouch,
  type World,
} from '../store/world.js';
import { withDatabase } from '../support/database.js';
import { cases } from '../support/seed.js';
import { Deliverer, type DelivererOptions, Endpoint, type Received } from './support.js';

const test = withDatabase();
let database: Database;
let directory: Directory;
let world: World;
let ann: number;
let bob: number;
let site: number;
let machine: number;
const open: { stop?(): Promise<void>; close?(): Promise<void> }[] = [];
const actor = { userId: null, requestId: null };

beforeAll(() => {
  database = openTestDatabase(test.url);
  directory = openDirectory(database);
});
afterAll(() => database.close());
beforeEach(async () => {
  await test.pool.query('TRUNCATE webhooks');
  world = await postgresWorld(database, test.pool);
  [ann, bob] = [await world.addUser('ann'), await world.addUser('bob')];
  site = await world.addSite('geneva');
  machine = await world.addMachine(site, 'm', 1000, 100_000);
  await vouch(world.store, site, [machine]);
});
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await (one.stop?.() ?? one.close?.());
});

async function endpoint(): Promise<Endpoint> {
  const made = await new Endpoint().open();
  open.push(made);
  return made;
}

async function deliverer(options: DelivererOptions = {}): Promise<Deliverer> {
  const made = await new Deliverer(database, test.url, options).start();
  open.push(made);
  return made;
}

async function hook(url: string, change: Partial<WebhookSettings> & { userId?: number } = {}) {
  const { userId = ann, ...settings } = change;
  const given = { name: 'test', url, filter: {}, kinds: [], ...settings };
  const made = await directory.createWebhook(userId, given, 20, actor);
  if (made.kind === 'refused') throw new Error(made.message);
  return { id: made.value.webhook.id, secret: made.value.secret };
}

const row = async (id: number) =>
  (await test.pool.query('SELECT * FROM webhooks WHERE id = $1', [id])).rows[0];
const latest = async (): Promise<number> =>
  Number((await test.pool.query('SELECT max(id) AS id FROM events')).rows[0].id);
/** Events of jobs of the user, or of all. */
const eventsOf = async (userId: number | null, where = 'true'): Promise<number[]> =>
  (
    await test.pool.query(
      `SELECT e.id::integer AS id FROM events e JOIN jobs j ON j.id = e.entity_id
        WHERE e.seq IS NOT NULL AND ($1::integer IS NULL OR e.user_id = $1) AND ${where} ORDER BY e.id`,
      [userId],
    )
  ).rows.map(({ id }) => id);

/** A job of the user that runs and ends. */
async function runJob(userId = ann, change = {}): Promise<number> {
  const [id] = (await assigned(world, userId, site, machine, [newJob(change)])) as [number];
  await world.store.reportRuns(site, [report(id, 1)], 3);
  await world.store.reportRuns(site, [ended(id, 1)], 3);
  return id;
}

const dataOf = ({ body }: Received) => JSON.parse(body).data;

describe('what is sent', () => {
  it('is signed, also by the former secret while it holds, and says what happened', async () => {
    const at = await endpoint();
    const { id, secret } = await hook(at.url);
    await deliverer();
    const job = await runJob(ann, { name: 'prépare', application: 'x' });
    await until('all arrived', async () => at.events.length === (await eventsOf(ann)).length);
    expect(at.events).toEqual(await eventsOf(ann));
    const last = at.received.at(-1) as Received;
    expect(last.headers['content-type']).toBe('application/cloudevents+json; charset=utf-8');
    expect(new Verifier(secret).verify(last.body, last.headers as Record<string, string>)).toMatchObject({
      specversion: '1.0',
      source: 'urn:switchyard:test',
      type: 'switchyard.job.completed',
      subject: `job_${job}`,
      datacontenttype: 'application/json',
      data: {
        event: { fromState: 'RUNNING', toState: 'COMPLETED', cause: 'EXITED_ZERO', site: { name: 'geneva' } },
        job: { id: `job_${job}`, name: 'prépare', state: 'COMPLETED', exitCode: 0, user: { name: 'ann' } },
      },
    });
    expect(last.headers['webhook-id']).toBe(`webhook_${id}.event_${at.events.at(-1)}`);

    const rotated = await directory.rotateWebhookSecret(id, Date.now() / 1000 + 3600, actor);
    if (rotated.kind === 'refused') throw new Error(rotated.message);
    const fresh = rotated.value.secret;
    await submit(world, ann, [newJob()]);
    await until('the next arrived', async () => at.events.at(-1) === (await latest()));
    const both = at.received.at(-1) as Received;
    for (const one of [secret, fresh])
      expect(() => new Verifier(one).verify(both.body, both.headers as Record<string, string>)).not.toThrow();
    await test.pool.query(
      "UPDATE webhooks SET former_until = now() - interval '1 second', version = version + 1",
    );
    await submit(world, ann, [newJob()]);
    await until('the next arrived', async () => at.events.at(-1) === (await latest()));
    const alone = at.received.at(-1) as Received;
    expect(() =>
      new Verifier(fresh).verify(alone.body, alone.headers as Record<string, string>),
    ).not.toThrow();
    expect(() => new Verifier(secret).verify(alone.body, alone.headers as Record<string, string>)).toThrow();
  });

  it('has the signature of the example of the specification', () => {
    const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
    const message = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', body: '{"test": 2432232314}' };
    expect(signed(message, [secret], 1_614_265_330)['webhook-signature']).toBe(
      'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    );
  });

  it('is what the owner may see, and what the filter and the kinds select', async () => {
    const [all, some, theirs, grid] = [
      await endpoint(),
      await endpoint(),
      await endpoint(),
      await endpoint(),
    ];
    const boss = await world.addUser('boss');
    await test.pool.query("UPDATE users SET role = 'OPERATOR' WHERE id = $1", [boss]);
    await hook(all.url);
    await hook(some.url, { filter: { application: 'x' }, kinds: ['COMPLETED', 'CHANGED'] });
    await hook(theirs.url, { userId: bob, filter: { userId: ann } });
    await hook(grid.url, { userId: boss });
    await deliverer();
    const x = await runJob(ann, { application: 'x' });
    await runJob(ann, { application: 'y' });
    await runJob(bob, { application: 'x' });
    const [waits] = await submit(world, ann, [newJob({ application: 'x' })]);
    await world.store.reprioritize(byIds([waits as number]), 5);
    await until('the operator has all', async () => grid.events.at(-1) === (await latest()));
    await until('ann has hers', async () => all.events.length === (await eventsOf(ann)).length);
    await until('two are selected', () => some.taken.length === 2);
    expect(grid.events).toEqual(await eventsOf(null));
    expect(all.events).toEqual(await eventsOf(ann));
    expect(some.taken.map((one) => [dataOf(one).job.id, JSON.parse(one.body).type])).toEqual([
      [`job_${x}`, 'switchyard.job.completed'],
      [`job_${waits}`, 'switchyard.job.changed'],
    ]);
    expect(theirs.received).toEqual([]);

    // Whoever is no operator any more sees no more.
    await test.pool.query("UPDATE users SET role = 'USER' WHERE id = $1", [boss]);
    const before = grid.events.length;
    await runJob(ann);
    await submit(world, boss, [newJob()]);
    await until('the job of their own came', async () => grid.events.at(-1) === (await latest()));
    expect(grid.events.length).toBe(before + 1);
  });

  it('waits while its owner is inactive', async () => {
    const at = await endpoint();
    await hook(at.url);
    const process = await deliverer();
    await submit(world, ann, [newJob()]);
    await until('the first came', () => at.events.length === 1);
    await test.pool.query('UPDATE users SET active = false WHERE id = $1', [ann]);
    await submit(world, ann, [newJob()]);
    await submit(world, bob, [newJob()]);
    const other = await endpoint();
    await hook(other.url, { userId: bob });
    await submit(world, bob, [newJob()]);
    await until("the other's came", () => other.events.length === 1);
    expect(at.events.length).toBe(1);
    await test.pool.query('UPDATE users SET active = true WHERE id = $1', [ann]);
    process.skipS += 10;
    await until('the second came', () => at.events.length === 2);
    expect(at.events).toEqual(await eventsOf(ann));
  });
});

describe('an endpoint', () => {
  it('that was away for a day gets everything, in order, and one that is slow or dead holds nobody up', async () => {
    const [dead, slow, good] = [await endpoint(), await endpoint(), await endpoint()];
    const { id } = await hook(dead.url);
    await hook(slow.url);
    await hook(good.url);
    slow.behave = () => 'SILENT';
    await dead.close();
    const process = await deliverer();
    for (let i = 0; i < 3; i++) await runJob();
    const all = await eventsOf(ann);
    await until('the good one has all', () => good.events.length === all.length);
    expect(good.events).toEqual(all);
    await until('the dead one is known to fail', async () => (await row(id)).failures > 0);
    const { behind_since, failed_reason, next_attempt_at } = await row(id);
    expect(failed_reason).toMatch(/ECONNREFUSED/);
    expect(next_attempt_at > behind_since).toBe(true);
    expect((await process.metrics.expose()).body).toMatch(/switchyard_webhook_lag_seconds [^0]/);

    for (let hour = 0; hour < 24; hour += 4) {
      const { failures } = await row(id);
      process.skipS += 4 * 3_600;
      await until('it was tried again', async () => (await row(id)).failures > failures);
    }
    await dead.open();
    slow.behave = () => 200;
    process.skipS += 3_601;
    await until('both have all', () => [dead, slow].every((one) => one.events.length === all.length));
    expect(dead.events).toEqual(all);
    expect(slow.events).toEqual(all);
    expect(await row(id)).toMatchObject({ failures: 0, failing_since: null, enabled: true });
  });

  it('that answers 410 is disabled at once, one that fails for too long then, with reasons; both can be enabled again', async () => {
    const [gone, broken] = [await endpoint(), await endpoint()];
    const hooks = [await hook(gone.url), await hook(broken.url)] as const;
    gone.behave = () => 410;
    broken.behave = () => 500;
    const process = await deliverer();
    await submit(world, ann, [newJob()]);
    await until('one is disabled', async () => !(await row(hooks[0].id)).enabled);
    expect((await row(hooks[0].id)).disabled_reason).toMatch(/410/);
    // The clock is set only once a failure is recorded: what is under way would be recorded at the new time.
    const hasFailed = (times: number) => async () => {
      const { failures, enabled } = await row(hooks[1].id);
      return !enabled || failures >= times;
    };
    for (let tries = 1; (await row(hooks[1].id)).enabled; tries++) {
      expect(tries).toBeLessThan(100);
      await until('it has failed', hasFailed(tries));
      process.skipS += 6 * 3_600;
    }
    expect((await row(hooks[1].id)).disabled_reason).toMatch(/for 7\d hours; last error: responded with 500/);
    const { rows } = await test.pool.query(
      "SELECT target, user_id FROM audits WHERE action = 'disableWebhook'",
    );
    expect(rows.map(({ target }) => target)).toEqual(hooks.map(({ id }) => `webhook_${id}`));
    expect(new Set(broken.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);

    const tried = [gone, broken].map(({ received }) => received.length);
    await submit(world, ann, [newJob()]);
    gone.behave = () => 204;
    broken.behave = () => 204;
    for (const { id } of hooks) await directory.updateWebhook(id, { enabled: true }, actor);
    process.skipS += 10;
    await until('both have all', () => [gone, broken].every(({ events }) => events.length === 2));
    expect([gone, broken].map(({ received }) => received.length)).toEqual(tried.map((n) => n + 2));
    expect(gone.events).toEqual(await eventsOf(ann));
  });

  it('that redirects fails, and nothing is sent where it points', async () => {
    const [at, secret] = [await endpoint(), await endpoint()];
    at.behave = () => ({ status: 307, headers: { location: secret.url } });
    const { id } = await hook(at.url);
    await deliverer();
    await submit(world, ann, [newJob()]);
    await until('it failed', async () => (await row(id)).failures > 0);
    expect((await row(id)).failed_reason).toBe('307: redirects are not followed');
    expect(secret.received).toEqual([]);
  });

  it('at a private address gets nothing unless the operator allows it, however it is written', async () => {
    const at = await endpoint();
    const port = new URL(at.url).port;
    const written = [
      ...['127.0.0.1', 'localhost', '2130706433', '0x7f.1', '0.0.0.0', '[::1]', '[::ffff:127.0.0.1]'],
      ...['[::127.0.0.1]', '169.254.169.254', '10.0.0.1', '172.31.0.1', '192.168.1.1', '100.64.0.1'],
      ...['[fd00::1]', '[fe80::1]', '[64:ff9b::10.0.0.1]', '[2002:a00:1::1]'],
    ];
    for (const host of written) {
      const url = new URL(`https://${host}:${port}/`).href;
      await hook(url, { name: host });
    }
    // Without TLS nothing is sent to public addresses, either.
    await hook('http://192.0.2.1/', { name: 'plain' });
    const process = await deliverer({ addresses: ['192.0.2.200'] });
    await submit(world, ann, [newJob()]);
    const reasons = async () =>
      (await test.pool.query('SELECT name, failed_reason AS why FROM webhooks ORDER BY id')).rows;
    await until('all failed', async () => (await reasons()).every(({ why }) => why !== null));
    for (const { name, why } of await reasons())
      expect(`${name}: ${why}`).toMatch(
        name === 'plain'
          ? /allowed only with https:/
          : /link-local or private address .SWITCHYARD_WEBHOOK_ADDRESSES/,
      );
    expect(at.received).toEqual([]);
    expect((await process.metrics.expose()).body).toContain(
      `switchyard_webhook_deliveries_total{outcome="failed"} ${written.length + 1}`,
    );
  });

  it('is told when events were removed before it was back', async () => {
    const at = await endpoint();
    const { id } = await hook(at.url);
    await submit(world, ann, [newJob()]);
    await directory.updateWebhook(id, { enabled: false }, actor);
    const past = { eventsBefore: Date.now() / 1000 + 60, unreadBefore: Date.now() / 1000 + 60 };
    await world.store.prune({ ...past, jobsEndedBefore: 0, processesBefore: 0, auditsBefore: 0, limit: 999 });
    await submit(world, ann, [newJob()]);
    await directory.updateWebhook(id, { enabled: true }, actor);
    await deliverer();
    await until('both came', () => at.received.length === 2);
    expect(at.received.map(({ body }) => JSON.parse(body).type)).toEqual([
      'switchyard.events.missed',
      'switchyard.job.queued',
    ]);
  });
});

it('events that an enabled webhook has not had are kept as for followers', async () => {
  const { id } = await hook('https://192.0.2.1/');
  await submit(world, ann, [newJob()]);
  const retention = {
    ...{ eventsBefore: Date.now() / 1000 + 60, unreadBefore: 0 },
    ...{ jobsEndedBefore: 0, processesBefore: 0, auditsBefore: 0, limit: 999 },
  };
  await world.store.prune(retention);
  expect((await eventsOf(ann)).length).toBe(1);
  await directory.updateWebhook(id, { enabled: false }, actor);
  await world.store.prune(retention);
  expect(await eventsOf(ann)).toEqual([]);
});

it('the pauses between attempts grow to an hour', () => {
  expect([1, 2, 3, 10, 11, 100].map((failures) => pauseAfter(failures, 0))).toEqual([
    ...[5, 10, 20, 2560, 3600, 3600],
  ]);
  expect(pauseAfter(1, 1)).toBe(4);
});

/** What may happen to jobs, endpoints and processes. */
const steps = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ do: fc.constant('run' as const), user: fc.nat(1), x: fc.boolean() }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ do: fc.constant('submit' as const), user: fc.nat(1), x: fc.boolean() }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('cancel' as const), job: fc.nat(50) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('change' as const), job: fc.nat(50) }) },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant('break' as const),
        how: fc.constantFrom(500, 'CLOSE' as const, 'SILENT' as const),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('mend' as const) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('replace' as const) }) },
  ),
  { minLength: 5, maxLength: 40 },
);

it('whatever happens, what an endpoint takes, each once, are the events of the feed that are selected', async () => {
  await fc.assert(
    fc.asyncProperty(
      steps,
      fc.array(fc.constantFrom('QUEUED', 'RUNNING', 'COMPLETED', 'CANCELLED', 'CHANGED'), { maxLength: 2 }),
      async (history, kinds) => {
        await test.pool.query('TRUNCATE webhooks');
        const at = await endpoint();
        await hook(at.url, { filter: { application: 'x' }, kinds });
        const begin = (await latest()) || 0;
        const processes = [await deliverer({ timeoutMs: 100, holder: 'p0' })];
        const jobs: number[] = [];
        for (const step of history) {
          const of = (user: number) => (user === 0 ? ann : bob);
          if (step.do === 'run') jobs.push(await runJob(of(step.user), { application: step.x ? 'x' : 'y' }));
          if (step.do === 'submit')
            jobs.push(...(await submit(world, of(step.user), [newJob({ application: step.x ? 'x' : 'y' })])));
          const job = jobs[('job' in step ? step.job : 0) % Math.max(1, jobs.length)];
          if (step.do === 'cancel' && job !== undefined)
            await world.store.cancel(byIds([job]), Date.now() / 1000, 'CANCELLED_BY_USER');
          if (step.do === 'change' && job !== undefined) await world.store.reprioritize(byIds([job]), 7);
          if (step.do === 'break') at.behave = () => step.how;
          if (step.do === 'mend') at.behave = () => 204;
          if (step.do === 'replace') {
            const next = await deliverer({ timeoutMs: 100, holder: `p${processes.length}` });
            next.skipS = processes.at(-1)!.skipS;
            void processes.at(-1)!.stop();
            processes.push(next);
          }
          for (const one of processes) one.skipS += 10;
        }
        at.behave = () => 204;
        for (const one of processes) one.skipS += 86_400;
        const condition =
          kinds.length === 0
            ? 'true'
            : `CASE e.kind WHEN 'JOB_CHANGED' THEN 'CHANGED' ELSE e.to_state::text END IN ('${kinds.join("','")}')`;
        const expected = await eventsOf(ann, `e.id > ${begin} AND j.application = 'x' AND ${condition}`);
        await until('all arrived', () => at.events.length >= expected.length);
        expect(at.events).toEqual(expected);
        for (const one of processes) await one.stop();
        await at.close();
      },
    ),
    { numRuns: cases(30) },
  );
}, 300_000);
