/** The engine over Postgres and both backends of the queue, with agents simulated in the test. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import pRetry from 'p-retry';
import { afterEach, describe, expect, test } from 'vitest';
import { ROOT } from '../../src/core/scheduler.js';
import type { QueueConnection } from '../../src/engine/queue.js';
import { openWaker } from '../../src/engine/waker.js';
import { openQueueWorker } from '../../src/engine/worker.js';
import { createMetrics } from '../../src/platform/metrics.js';
import type { NewJob } from '../../src/store/store.js';
import { type TestDatabase, withDatabase } from '../support/database.js';
import { checkPromises } from '../support/promises.js';
import { describeWithRedis, startRedis } from '../support/redis.js';
import { until } from './support.js';
import { type SiteShape, testPolicy, World } from './world.js';

const THREE_SITES: SiteShape[] = [
  { name: 'big', machines: [{ cpus: 8 }, { cpus: 4, benchmark: 200 }] },
  { name: 'middle', machines: [{ cpus: 4 }, { cpus: 2 }] },
  { name: 'small', machines: [{ cpus: 2, memoryMb: 200 }] },
];

const worlds: World[] = [];
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
});

async function openWorld(database: TestDatabase, shape: Parameters<typeof World.open>[1]): Promise<World> {
  const { url } = await database.another();
  const world = await World.open(url, shape);
  worlds.push(world);
  return world;
}

const queueOf = (world: World): QueueConnection => ({ kind: 'postgres', url: world.url });

describe('with the queue on Postgres', () => {
  const database = withDatabase();
  suite(database, queueOf);

  test('goes on when the queue has lost everything', async () => {
    const world = await openWorld(database, {
      sites: THREE_SITES,
      policy: testPolicy({ timers: { cycleS: 1 } }),
    });
    await stream(world, queueOf(world), async () => {
      const tables = 'bullmq.job, bullmq.dedup, bullmq.dedup_next, bullmq.scheduler';
      // The queue is in use and locks them in another order: of a deadlock this may be the victim.
      await pRetry(() => world.database.pool.query(`TRUNCATE ${tables} CASCADE`), { minTimeout: 20 });
    });
  });
});

describe('whatever the queue is on', () => {
  const database = withDatabase();

  test.each([0, 2])('the root sends what it holds as sites get room (queues of %i)', async (queueLimit) => {
    const dispatch = { kind: 'queues', order: 'L-SJF', queueLimit, ageBoundS: null } as const;
    // Wake-ups alone: the slow timer is off.
    const policy = { ...testPolicy({ local: { kind: 'fcfs' } }), dispatch };
    const world = await openWorld(database, { sites: THREE_SITES, policy });
    const { wake } = await world.engine(queueOf(world));
    for (const { name } of THREE_SITES) world.agent(name, wake, { runMs: 20 });
    const jobIds = await world.submit(mixedJobs(50, 0));
    await wake([ROOT]);
    await until('all have ended', async () => (await world.live()) === 0);
    expect(await world.states()).toEqual({ COMPLETED: jobIds.length });
    // Some waited at the root for a run to end: dispatched in several cycles.
    const { rows } = await world.database.pool.query(
      `SELECT count(DISTINCT cycle)::int AS cycles FROM decisions WHERE kind = 'DISPATCH'`,
    );
    expect(rows[0].cycles).toBeGreaterThan(3);
    expect(await checkPromises(world.database.pool)).toEqual([]);
  });

  test('a worker that starts does not wait for what dead ones had in hand', async () => {
    const world = await openWorld(database, { sites: THREE_SITES, policy: testPolicy() });
    const queue = queueOf(world);
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    // Takes every wake-up and never ends: as long as it lives, nobody else gets one of the root or of the sweep.
    let taken = 0;
    let release = () => {};
    const forever = new Promise<void>((resolve) => {
      release = resolve;
    });
    const holder = openQueueWorker({
      ...{ connection: queue, queue: 'cycles', concurrency: 10, log },
      perform: () => {
        taken++;
        return forever;
      },
    });
    const waker = openWaker({ connection: queue, log, metrics: createMetrics() });
    await waker.wake(['root', ...THREE_SITES.map(({ name }) => world.siteId(name))]);
    await until('all are taken', async () => taken === 1 + THREE_SITES.length);
    const jobIds = await world.submit(mixedJobs(5, 0));
    for (const { name } of THREE_SITES) world.agent(name, async () => {});
    await world.engine(queue);
    await until('the first runs', async () => (await world.states()).COMPLETED !== undefined);
    expect(jobIds).toHaveLength(5);
    release();
    await waker.close();
    await holder.close();
  });

  test('machines are shared in time by as many tasks as they take, at a site that runs only so many jobs', async () => {
    const sites: SiteShape[] = [
      { name: 'shared', machines: [1, 2].map(() => ({ cpus: 1, maxTasks: 3 })), maxRunningJobs: 4 },
    ];
    const dispatch = { kind: 'queues', order: 'S-SJF', queueLimit: 0, ageBoundS: null } as const;
    const policy = { ...testPolicy({ local: { kind: 'fcfs' } }), dispatch };
    const world = await openWorld(database, { sites, policy });
    const { wake } = await world.engine(queueOf(world));
    world.agent('shared', wake, { runMs: 100 });
    await world.submit(
      Array.from({ length: 24 }, (_, i) => ({ tasks: 1 + (i % 2), estimateS: 5 + (i % 7) })),
    );
    await wake([ROOT]);
    await until('all have ended', async () => (await world.live()) === 0);
    expect(await world.states()).toEqual({ COMPLETED: 24 });
    const { rows } = await world.database.pool.query(`
      SELECT max(jobs)::int AS jobs, max(tasks)::int AS tasks FROM (
        SELECT (SELECT count(*) FROM runs o WHERE o.assigned_at <= r.assigned_at AND o.ended_at > r.assigned_at) AS jobs,
               (SELECT max(n) FROM (SELECT u.id, count(*) AS n FROM runs o, unnest(o.machine_ids) AS u (id)
                  WHERE o.assigned_at <= r.assigned_at AND o.ended_at > r.assigned_at GROUP BY 1) m) AS tasks
          FROM runs r) q`);
    expect(rows[0].jobs).toBe(4);
    // More than the machine has CPUs.
    expect([2, 3]).toContain(rows[0].tasks);
    expect(await checkPromises(world.database.pool)).toEqual([]);
  });

  test('a policy acts from the next cycle on, and decisions cite it', async () => {
    const world = await openWorld(database, { sites: THREE_SITES, policy: testPolicy() });
    const { wake } = await world.engine(queueOf(world));
    for (const { name } of THREE_SITES) world.agent(name, wake);
    const before = await world.submit(mixedJobs(20, 0));
    await wake([ROOT]);
    await until('the first have ended', async () => (await world.live()) === 0);

    const heavier = testPolicy({
      dispatch: { weights: { deadline: 3, licenses: 1, user: 2, project: 1, service: 1 } },
    });
    await world.setPolicy(2, heavier);
    const after = await world.submit(mixedJobs(20, 0).map((job) => ({ ...job, deadline: 1 })));
    await wake([ROOT]);
    await until('the others have ended', async () => (await world.live()) === 0);
    const cited = async (ids: number[]) =>
      (
        await world.database.pool.query(
          'SELECT DISTINCT policy_version AS version FROM decisions WHERE job_id = ANY($1)',
          [ids],
        )
      ).rows.map(({ version }) => version);
    expect(await cited(before)).toEqual([2]);
    expect(await cited(after)).toEqual([3]);
    // A deadline long passed: the highest value of its term, 10, times its weight.
    const { rows } = await world.database.pool.query(
      'SELECT DISTINCT priority FROM jobs WHERE id = ANY($1)',
      [after],
    );
    expect(rows).toEqual([{ priority: 30 }]);
    expect(await checkPromises(world.database.pool)).toEqual([]);
  });

  test('a drained site gives its queue back and starts nothing more', async () => {
    const world = await openWorld(database, { sites: THREE_SITES, policy: testPolicy() });
    const { wake } = await world.engine(queueOf(world));
    const agents = THREE_SITES.map(({ name }) => world.agent(name, wake, { runMs: 100 }));
    await world.submit(mixedJobs(60, 0));
    await wake([ROOT]);
    const big = world.siteId('big');
    await until('the site has a queue and runs', async () => {
      const { rows } = await world.database.pool.query(
        `SELECT count(*) FILTER (WHERE state = 'DISPATCHED')::int AS queued, count(*) FILTER (WHERE state = 'RUNNING')::int AS running FROM jobs WHERE site_id = $1`,
        [big],
      );
      return rows[0].queued > 0 && rows[0].running > 0;
    });
    await world.directory.updateSite(big, { state: 'DRAINING' }, { userId: null, requestId: null });
    await wake([ROOT, big]);
    await until('all have ended', async () => (await world.live()) === 0);
    await expectAllCompleted(world, 60);
    const { rows } = await world.database.pool.query(
      `SELECT count(*)::int AS n FROM decisions WHERE kind = 'TAKE_BACK' AND from_site_id = $1`,
      [big],
    );
    expect(rows[0].n).toBeGreaterThan(0);
    for (const agent of agents) for (const times of agent.launched.values()) expect(times).toBe(1);
  });

  test('grid-wide licenses are shared by sites without waiting for the slow timer', async () => {
    const world = await openWorld(database, {
      sites: [
        { name: 'a', machines: [{ cpus: 4, licenses: ['sim'] }] },
        { name: 'b', machines: [{ cpus: 4, licenses: ['sim'] }] },
      ],
      gridLicenses: [{ kind: 'sim', copies: 2 }],
      policy: testPolicy(),
    });
    const { wake } = await world.engine(queueOf(world));
    for (const name of ['a', 'b']) world.agent(name, wake, { runMs: 20 });
    await world.submit(mixedJobs(24, 0).map((job) => ({ ...job, tasks: 1, licenses: ['sim'] })));
    await wake([ROOT]);
    await until('all have ended', async () => (await world.live()) === 0);
    await expectAllCompleted(world, 24);
    const { rows } = await world.database.pool.query(
      'SELECT count(DISTINCT site_id)::int AS sites FROM runs',
    );
    expect(rows[0].sites).toBe(2);
  });

  test('jobs queued at a site that fell silent go to another', async () => {
    const world = await openWorld(database, {
      sites: [
        { name: 'a', machines: [{ cpus: 1 }] },
        { name: 'b', machines: [{ cpus: 1 }] },
      ],
      policy: testPolicy({ timers: { agentSilentS: 1, lostAfterS: 86_400, cycleS: 1 } }),
    });
    const { wake } = await world.engine(queueOf(world));
    const gone = world.agent('a', wake, { runMs: 3_600_000 });
    world.agent('b', wake);
    await world.submit(Array.from({ length: 20 }, () => ({})));
    await wake([ROOT]);
    await until('one runs at the first site', () => gone.launched.size === 1);
    await gone.stop();
    await until('all others have ended', async () => (await world.live()) === 1);
    const { rows } = await world.database.pool.query(
      `SELECT DISTINCT reason FROM decisions WHERE kind = 'TAKE_BACK'`,
    );
    expect(rows).toEqual([{ reason: 'NO_MACHINE_NOW' }]);
    expect(await checkPromises(world.database.pool)).toEqual([]);
  });

  test('runs on a silent machine are lost and start elsewhere with a new epoch', async () => {
    const world = await openWorld(database, {
      sites: [
        { name: 'a', machines: [{ cpus: 4 }] },
        { name: 'b', machines: [{ cpus: 4 }] },
      ],
      policy: testPolicy({ timers: { agentSilentS: 1, lostAfterS: 2 } }),
    });
    const { wake } = await world.engine(queueOf(world));
    const gone = world.agent('a', wake, { runMs: 3_600_000 });
    const other = world.agent('b', wake);
    const [jobId] = await world.submit([{}]);
    await wake([ROOT]);
    await until('it runs at the first site', () => gone.launched.size === 1);
    await gone.stop();
    await until('it has ended', async () => (await world.live()) === 0);
    expect(other.launched.get(jobId as number)).toBe(1);
    const { rows } = await world.database.pool.query(
      'SELECT epoch, site_id, cause FROM runs WHERE job_id = $1 ORDER BY epoch',
      [jobId],
    );
    expect(rows).toEqual([
      { epoch: 1, site_id: world.siteId('a'), cause: 'LOST' },
      { epoch: 2, site_id: world.siteId('b'), cause: 'EXITED_ZERO' },
    ]);
    await expectAllCompleted(world, 1);
  });
});

describeWithRedis('with the queue on Redis', (redis) => {
  const database = withDatabase();
  const connection = (): QueueConnection => ({ kind: 'redis', url: redis().url });
  suite(database, connection);

  test('goes on when Redis is emptied', async () => {
    const world = await openWorld(database, {
      sites: THREE_SITES,
      policy: testPolicy({ timers: { cycleS: 1 } }),
    });
    await stream(world, connection(), async () => {
      const client = new Redis(redis().url);
      await client.flushall();
      client.disconnect();
    });
  });

  test('goes on, more slowly, while Redis takes nothing, whatever it says', async () => {
    const world = await openWorld(database, { sites: THREE_SITES, policy: testPolicy() });
    const { wake } = await world.engine(connection());
    for (const { name } of THREE_SITES) world.agent(name, wake);
    const client = new Redis(redis().url);
    const set = (name: string, value: string) => () => client.config('SET', name, value);
    const troubles: [name: string, begin: () => Promise<unknown>, end: () => Promise<unknown>][] = [
      ['full', set('maxmemory', '1'), set('maxmemory', '0')],
      ['a replica', () => client.replicaof('127.0.0.1', '1'), () => client.replicaof('NO', 'ONE')],
      [
        'wants a password',
        async () => {
          await set('requirepass', 'secret')();
          await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
        },
        set('requirepass', ''),
      ],
      [
        'unable to write its snapshot (MISCONF)',
        async () => {
          const [, dir] = (await client.config('GET', 'dir')) as [string, string];
          mkdirSync(join(dir, 'dump.rdb'));
          await set('save', '3600 1')();
          await client.set('x', '1');
          await client.bgsave();
          await until('it says so', () => client.set('x', '2').then(() => false, isMisconfigured));
        },
        set('save', ''),
      ],
      ['away', () => redis().kill(), () => redis().restart()],
      [
        'loading its data (LOADING)',
        async () => {
          const pipeline = client.pipeline();
          for (let i = 0; i < 20_000; i++) pipeline.set(`x${i}`, '1');
          await pipeline.exec();
          await redis().restart({ 'key-load-delay': 1_000 });
          const asking = new Redis(redis().url, { enableReadyCheck: false });
          await expect(asking.get('x')).rejects.toThrow('LOADING');
          asking.disconnect();
        },
        () => redis().restart(),
      ],
    ];
    const isMisconfigured = (error: Error): boolean => error.message.startsWith('MISCONF');
    let jobs = 0;
    for (const [name, begin, end] of troubles) {
      await begin();
      await world.submit(mixedJobs(5, jobs));
      jobs += 5;
      await wake([ROOT]);
      await until(`all have ended while it is ${name}`, async () => (await world.live()) === 0);
      await end();
    }
    client.disconnect();
    await expectAllCompleted(world, jobs);
  });

  test('goes on, more slowly, on a node of a cluster that is down (CLUSTERDOWN)', async () => {
    const node = await startRedis('', { 'cluster-enabled': 'yes' });
    try {
      const client = new Redis(node.url);
      await expect(client.set('x', '1')).rejects.toThrow('CLUSTERDOWN');
      client.disconnect();
      const world = await openWorld(database, { sites: THREE_SITES, policy: testPolicy() });
      const { wake } = await world.engine({ kind: 'redis', url: node.url });
      for (const { name } of THREE_SITES) world.agent(name, wake);
      await world.submit(mixedJobs(5, 0));
      await wake([ROOT]);
      await until('all have ended', async () => (await world.live()) === 0);
      await expectAllCompleted(world, 5);
    } finally {
      await node.stop();
    }
  });

  test('goes on when Redis is killed and comes back', async () => {
    const world = await openWorld(database, {
      sites: THREE_SITES,
      policy: testPolicy({ timers: { cycleS: 1 } }),
    });
    await stream(world, connection(), async () => {
      await redis().kill();
      await redis().restart();
    });
  });
});

function suite(database: TestDatabase, connection: (world: World) => QueueConnection): void {
  test('a stream of submissions is dispatched, started and ended by two workers at once', async () => {
    const world = await openWorld(database, { sites: THREE_SITES, policy: testPolicy() });
    await world.engine(connection(world));
    await stream(world, connection(world));
    const { rows } = await world.database.pool.query(
      'SELECT kind, count(DISTINCT job_id)::int AS jobs, min(policy_version) AS low, max(policy_version) AS high FROM decisions GROUP BY 1 ORDER BY 1',
    );
    expect(rows).toEqual([
      { kind: 'DISPATCH', jobs: 60, low: 2, high: 2 },
      { kind: 'START', jobs: 60, low: 2, high: 2 },
    ]);
  });

  test('lost wake-ups are made up for by the slow timer', async () => {
    const world = await openWorld(database, {
      sites: THREE_SITES,
      policy: testPolicy({ timers: { cycleS: 1 } }),
    });
    await world.engine(connection(world));
    const nobody = () => Promise.resolve();
    for (const { name } of THREE_SITES) world.agent(name, nobody);
    await world.submit(mixedJobs(20, 0));
    await until('all have ended', async () => (await world.live()) === 0);
    await expectAllCompleted(world, 20);
  });
}

/** 60 jobs in 12 submissions; `trouble` comes in the middle. All must end, each promise kept. */
async function stream(world: World, connection: QueueConnection, trouble = async () => {}): Promise<void> {
  const { wake } = await world.engine(connection);
  const agents = THREE_SITES.map(({ name }) => world.agent(name, wake, { runMs: 5 }));
  for (let i = 0; i < 12; i++) {
    await world.submit(mixedJobs(5, i));
    await wake([ROOT]);
    if (i !== 6) continue;
    await until('the queue is in use', async () => 'COMPLETED' in (await world.states()));
    await trouble();
  }
  await until('all have ended', async () => (await world.live()) === 0);
  await expectAllCompleted(world, 60);
  for (const agent of agents) for (const times of agent.launched.values()) expect(times).toBe(1);
}

async function expectAllCompleted(world: World, count: number): Promise<void> {
  expect(await world.states()).toEqual({ COMPLETED: count });
  expect(await checkPromises(world.database.pool)).toEqual([]);
}

/** Of several sizes, a fifth with a deadline; the same for the same `salt`. */
function mixedJobs(count: number, salt: number): Partial<NewJob>[] {
  return Array.from({ length: count }, (_, i) => ({
    tasks: 1 + ((i + salt) % 3),
    cpusPerTask: 1 + ((i * 7 + salt) % 2),
    memoryMbPerTask: ((i + salt) % 4) * 50,
    estimateS: 5 + ((i * 13 + salt) % 20),
    deadline: i % 5 === 0 ? Date.now() / 1000 + 60 + i : null,
  }));
}
