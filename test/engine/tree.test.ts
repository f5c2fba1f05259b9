/** The grid tree live: the engine on Postgres with agents in the test, while machines, sites and schedulers change. */
import { afterEach, describe, expect, test } from 'vitest';
import { concernedBy, parsePolicy } from '../../src/core/index.js';
import { ROOT, schedulerOf } from '../../src/core/scheduler.js';
import type { Engine } from '../../src/engine/index.js';
import type { NewJob } from '../../src/store/store.js';
import { byIds } from '../store/world.js';
import { withDatabase } from '../support/database.js';
import { TEST_MS } from '../support/patience.js';
import { checkPromises } from '../support/promises.js';
import { accepted, SERVICE } from './directory.js';
import { until } from './support.js';
import { type SiteShape, testPolicy, World } from './world.js';

/** Longer than any test. */
const FOREVER_MS = 3_600_000;
const QUICK_MS = 10;
/** Leaves a CPU of four free, so that the site goes on asking, for jobs that have to wait there. */
const MOST = { cpusPerTask: 3 };
const ALL = { cpusPerTask: 4 };

/** Wake-ups alone: the slow timer is off. */
const policy = parsePolicy({
  ...testPolicy({ local: { kind: 'easy' } }),
  dispatch: { kind: 'grid-tree', queueLimit: 0 },
});

/** In `npm run test:faults` as large as trees get. */
const LARGE = process.env.FAULT_MINUTES !== undefined;
const [JOBS, SITES, SITES_OF_SCHEDULER] = LARGE ? [10_000, 50, 5] : [100, 8, 2];

const one = (name: string): SiteShape => ({ name, machines: [{ cpus: 4 }] });

describe('a live grid tree', () => {
  const database = withDatabase();
  const worlds: World[] = [];
  afterEach(async () => {
    for (const world of worlds.splice(0)) await world.close();
  });

  /** Schedulers with the sites below them, each of which runs what it is given forever. */
  async function openTree(tree: Record<string, { site: string; latitude?: number }[]>) {
    const sites = Object.values(tree).flat();
    const { url } = await database.another();
    const world = await World.open(url, { sites: sites.map(({ site }) => one(site)), policy });
    worlds.push(world);
    const { directory } = world;
    const schedulerIds = new Map<string, number>();
    for (const [name, below] of Object.entries(tree)) {
      const { id } = await accepted(directory.createScheduler({ name, parentId: null }, SERVICE));
      schedulerIds.set(name, id);
      for (const { site, latitude = 0 } of below) {
        const change = { schedulerId: id, latitude, longitude: 0 };
        await accepted(directory.updateSite(world.siteId(site), change, SERVICE));
      }
    }
    const engine = await world.engine({ kind: 'postgres', url });
    const agents = new Map(
      sites.map(({ site }) => [site, world.agent(site, engine.wake, { runMs: FOREVER_MS })]),
    );
    return { world, engine, agents, schedulerId: (name: string) => schedulerIds.get(name) as number };
  }

  const rows = async (world: World, sql: string, ...values: unknown[]) =>
    (await world.database.pool.query(sql, values)).rows;
  const runs = async (world: World, site: string): Promise<number[]> =>
    (
      await rows(
        world,
        'SELECT job_id::int AS id FROM runs WHERE site_id = $1 ORDER BY assigned_at, job_id',
        world.siteId(site),
      )
    ).map(({ id }) => id);
  const queuedAt = async (
    world: World,
  ): Promise<[id: number, site: number | null, scheduler: number | null][]> =>
    (
      await rows(world, `SELECT id::int, site_id, scheduler_id FROM jobs WHERE state = 'QUEUED' ORDER BY id`)
    ).map(({ id, site_id, scheduler_id }) => [id, site_id, scheduler_id]);
  const reasons = async (world: World, jobId: number): Promise<string[]> =>
    (
      await rows(
        world,
        `SELECT step ->> 'reason' AS reason FROM decisions, jsonb_array_elements(detail::jsonb -> 'path') step WHERE job_id = $1 ORDER BY id`,
        jobId,
      )
    ).map(({ reason }) => reason);

  async function submit(world: World, { wake }: Engine, ...jobs: Partial<NewJob>[]): Promise<number[]> {
    const ids = await world.submit(jobs);
    await wake([ROOT]);
    return ids;
  }
  const running = (world: World, count: number) =>
    until(`${count} run`, async () => (await world.states()).RUNNING === count);
  async function cancel(world: World, { wake }: Engine, jobId: number): Promise<void> {
    const { touched } = await world.store.cancel(byIds([jobId]), Date.now() / 1000, 'CANCELLED_BY_USER');
    await wake(touched.map(schedulerOf));
  }

  test('a machine loses what queued jobs need: they go elsewhere, ahead of later arrivals', async () => {
    const { world, engine, agents } = await openTree({ west: [{ site: 'a' }], east: [{ site: 'b' }] });
    const first = await submit(world, engine, MOST, MOST);
    await running(world, 2);
    const large = { ...MOST, memoryMbPerTask: 500 };
    const waiting = await submit(world, engine, ...Array.from({ length: 6 }, () => large));
    const [a, b] = [world.siteId('a'), world.siteId('b')];
    await until('each site has its share', async () => {
      const sites = (await queuedAt(world)).map(([, site]) => site);
      return (
        sites.filter((site) => site === a).length === 3 && sites.filter((site) => site === b).length === 3
      );
    });
    // What comes from now on is b's, behind all the others.
    await agents.get('b')?.stop();
    world.agent('b', engine.wake, { runMs: QUICK_MS });
    const [machine] = world.machineIds.get('a') as [number];
    await accepted(world.directory.updateMachine(machine, { memoryMb: 1 }, SERVICE));
    const concerned = concernedBy({ of: 'MACHINE', siteId: a });
    await engine.wake(concerned === 'ALL' ? [ROOT, a, b] : concerned);
    await until('nothing waits at a', async () => !(await queuedAt(world)).some(([, site]) => site === a));
    await cancel(world, engine, (await runs(world, 'b'))[0] as number);
    await until('all have run', async () => (await world.states()).COMPLETED === waiting.length);
    expect(await runs(world, 'b')).toEqual([expect.toBeOneOf(first), ...waiting]);
    const moved = await Promise.all(waiting.map((id) => reasons(world, id)));
    expect(moved.filter((path) => path.includes('FALLBACK')).length).toBeGreaterThanOrEqual(3);
    expect(await checkPromises(world.database.pool)).toEqual([]);
  });

  test('a nearer site frees up: the job moves there', async () => {
    const { world, engine } = await openTree({
      north: [{ site: 'near', latitude: 60 }],
      south: [{ site: 'far', latitude: 10 }],
    });
    const originSiteId = world.siteId('near');
    await submit(world, engine, { ...ALL, preferences: [{ siteId: originSiteId }] });
    await running(world, 1);
    await submit(world, engine, MOST);
    await running(world, 2);
    const [job] = (await submit(world, engine, { ...MOST, originSiteId })) as [number];
    await until(
      'it waits at the far one',
      async () => (await queuedAt(world))[0]?.[1] === world.siteId('far'),
    );
    await cancel(world, engine, (await runs(world, 'near'))[0] as number);
    await until('it runs', async () => (await runs(world, 'near')).includes(job));
    expect(await reasons(world, job)).toEqual(expect.arrayContaining(['BUTTERFLY', 'CLAIMED']));
    expect(await checkPromises(world.database.pool)).toEqual([]);
  });

  test('a scheduler is removed: its sites go to its parent, and its jobs go on', async () => {
    const { world, engine, agents, schedulerId } = await openTree({
      west: [{ site: 'a' }, { site: 'b' }],
      east: [{ site: 'c' }],
    });
    // Of sites that are equally free the first asks first.
    await submit(world, engine, ALL);
    await running(world, 1);
    expect(await runs(world, 'a')).toHaveLength(1);
    for (const count of [2, 3]) {
      await submit(world, engine, MOST);
      await running(world, count);
    }
    const waiting = await submit(world, engine, ...Array.from({ length: 9 }, () => MOST));
    const west = schedulerId('west');
    const sites = ['a', 'b', 'c'];
    // One of its sites does not ask.
    await until('some wait at the scheduler', async () =>
      (await queuedAt(world)).some(([, , scheduler]) => scheduler === west),
    );
    for (const site of sites) {
      await agents.get(site)?.stop();
      world.agent(site, engine.wake, { runMs: QUICK_MS });
    }
    await accepted(world.directory.removeScheduler(west, Date.now() / 1000, SERVICE));
    const concerned = concernedBy({ of: 'TREE' });
    await engine.wake(concerned === 'ALL' ? [ROOT] : concerned);
    await until('nobody waits at it', async () =>
      (await queuedAt(world)).every(([, , scheduler]) => scheduler !== west),
    );
    for (const site of sites) await cancel(world, engine, (await runs(world, site))[0] as number);
    await until('all have run', async () => (await world.states()).COMPLETED === waiting.length);
    const started = (await Promise.all(sites.map((site) => runs(world, site)))).flat();
    expect(started.filter((id) => waiting.includes(id)).sort((x, y) => x - y)).toEqual(waiting);
    expect(await checkPromises(world.database.pool)).toEqual([]);
  });

  test(`${JOBS} jobs come down four levels to ${SITES} sites: each runs once, wherever shares send it`, {
    timeout: LARGE ? 600_000 : TEST_MS,
  }, async () => {
    const names = Array.from({ length: SITES }, (_, i) => `site-${i}`);
    const { url } = await database.another();
    const world = await World.open(url, { sites: names.map(one), policy });
    worlds.push(world);
    const { directory } = world;
    const scheduler = async (name: string, parentId: number | null): Promise<number> =>
      (await accepted(directory.createScheduler({ name, parentId }, SERVICE))).id;
    const halves = [await scheduler('west', null), await scheduler('east', null)];
    for (let i = 0; i < SITES; i += SITES_OF_SCHEDULER) {
      const above = await scheduler(`region-${i}`, halves[(i / SITES_OF_SCHEDULER) % 2] as number);
      const schedulerId = await scheduler(`cluster-${i}`, above);
      for (const name of names.slice(i, i + SITES_OF_SCHEDULER))
        await accepted(directory.updateSite(world.siteId(name), { schedulerId }, SERVICE));
    }
    const engine = await world.engine({ kind: 'postgres', url });
    const agents = names.map((name) =>
      world.agent(name, engine.wake, { runMs: QUICK_MS, pollMs: SITES * 12 }),
    );
    const ids: number[] = [];
    const startedMs = Date.now();
    for (let i = 0; i < JOBS; i += 100) {
      const jobs = Array.from({ length: 100 }, (_, k) => ({ cpusPerTask: 1 + ((i + k) % 4) }));
      ids.push(...(await submit(world, engine, ...jobs)));
    }
    await until(
      'all have run',
      async () => (await world.states()).COMPLETED === JOBS,
      LARGE ? 580_000 : undefined,
    );
    if (LARGE) console.log(`${JOBS} jobs, ${SITES} sites: ${(Date.now() - startedMs) / 1000} s`);
    const launched = new Map(agents.flatMap((agent) => [...agent.launched]));
    expect([...launched.keys()].sort((x, y) => x - y)).toEqual(ids);
    expect(agents.reduce((sum, agent) => sum + agent.launched.size, 0)).toBe(JOBS);
    expect(new Set(launched.values())).toEqual(new Set([1]));
    expect(agents.every((agent) => agent.launched.size > 0)).toBe(true);
    expect(await checkPromises(world.database.pool)).toEqual([]);
  });
});
