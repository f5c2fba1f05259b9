/**
 * Live and simulated are one also for the policies that look at data, history and rates: the engine's cycles over a store with
 * agents that move data as long as the links say, and the simulator, put every job into the same queues at the same times.
 * Over the store in memory for several seeds, on Postgres for one.
 */

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  DataCatalog,
  type Dataset,
  type Job,
  type JobPreference,
  type Link,
  type LocalPolicy,
  type Policy,
  parsePolicy,
  RandomStream,
  ROOT,
  type Scheduler,
  type Site,
} from '../../src/core/index.js';
import { transferS } from '../../src/simulator/data.js';
import { type Change, runSimulation } from '../../src/simulator/engine.js';
import type { Sink } from '../../src/simulator/sink.js';
import { idsOf } from '../../src/store/images.js';
import { submittedJob } from '../../src/store/rules.js';
import type { GridImage, NewJob, Store } from '../../src/store/store.js';
import { MemoryStore } from '../store/memory.js';
import { newJob, T0, vouch } from '../store/world.js';
import { withDatabase } from '../support/database.js';
import { checkPromises } from '../support/promises.js';
import { part, seeds } from '../support/seed.js';
import { accepted, SERVICE } from './directory.js';
import { changesOf, happeningsOf, inMemory, inTime, type Outage, outagesOf } from './outages.js';
import { type Happening, type MetaMove, type Started, submission, VirtualService } from './virtual.js';
import { type SiteShape, testPolicy, World } from './world.js';

const SITES: SiteShape[] = [
  { name: 'strong', machines: [{ cpus: 4, benchmark: 200 }] },
  { name: 'middle', machines: [{ cpus: 2 }, { cpus: 2 }] },
  { name: 'weak', machines: [{ cpus: 3, benchmark: 50 }] },
];
const SITE_IDS = [1, 2, 3];
const SHARES = [1, 4, 0.5];
/** The first two are below the second of two schedulers, the third is under the root. */
const TREE = [
  { id: 1, name: 'upper', parentId: null },
  { id: 2, name: 'lower', parentId: 1 },
];
const POSITIONS = [
  { latitude: 60, longitude: 0 },
  { latitude: 60, longitude: 20 },
  { latitude: 40, longitude: 0 },
];
const PREFERENCES: JobPreference[] = [{ siteId: 3 }, { cpusPerTask: 3 }, { siteId: 1, cpusPerTask: 3 }];
const REMOVED_AT = T0 + 500;
/** What was below the second scheduler is below the first. */
function lowerRemoved({ schedulers, sites }: GridImage, changes: readonly Change[]): Change[] {
  const hung = (site: Site): Site => ({ ...site, schedulerId: site.schedulerId === 2 ? 1 : null });
  const before = changes.filter(({ at }) => at < REMOVED_AT);
  const after = changes
    .slice(before.length)
    .map((one) => (one.site ? { ...one, site: hung(one.site) } : one));
  const then = sites.map((site) => before.findLast((one) => one.site?.id === site.id)?.site ?? site);
  return [
    ...before,
    { at: REMOVED_AT, schedulers: schedulers.filter(({ id }) => id !== 2) },
    ...then.map((site) => ({ at: REMOVED_AT, site: hung(site) })),
    ...after,
  ];
}
/** Amounts are multiples of this, and bandwidths parts of it: times are whole seconds, and nothing is rounded where it is stored. */
const UNIT_MB = 40;
const DATASETS: Omit<Dataset, 'id'>[] = [
  { sizeMb: 20 * UNIT_MB, siteIds: [1] },
  { sizeMb: 10 * UNIT_MB, siteIds: [2, 3] },
  { sizeMb: 30 * UNIT_MB, siteIds: [3] },
];
const LINKS: Link[] = [
  { fromSiteId: 1, toSiteId: 2, bandwidthMbPerS: 40, rttS: 1, loss: 0 },
  { fromSiteId: 2, toSiteId: 1, bandwidthMbPerS: 20, rttS: 1, loss: 0 },
  { fromSiteId: 1, toSiteId: 3, bandwidthMbPerS: 10, rttS: 2, loss: 0 },
  { fromSiteId: 3, toSiteId: 1, bandwidthMbPerS: 20, rttS: 2, loss: 0.5 },
  { fromSiteId: 2, toSiteId: 3, bandwidthMbPerS: 40, rttS: 1, loss: 0 },
];

const policyOf = (dispatch: object, local: LocalPolicy): Policy =>
  parsePolicy({ ...testPolicy({ local }), dispatch });
const flexible = testPolicy().local;
const MIGRATING = { congestionThreshold: -0.5, congestionWindowS: 60, holdOffS: 40 };
/** What history says of a job decides how its costs are weighed. */
const BY_KIND = {
  weights: {
    computational: { network: 1, computation: 3, data: 0.25 },
    dataIntensive: { network: 1, computation: 0.25, data: 3 },
    both: { network: 1, computation: 1, data: 1 },
  },
  computationalFrom: 0.85,
  dataIntensiveTo: 0.6,
};
const policies: [string, Policy][] = [
  ['job-ratio, short queues', policyOf({ kind: 'job-ratio', queueLimit: 2 }, { kind: 'easy' })],
  ['job-ratio, long queues', policyOf({ kind: 'job-ratio', queueLimit: 100 }, { kind: 'fcfs' })],
  ['DIANA', policyOf({ kind: 'diana', queueLimit: 3, ...BY_KIND }, flexible)],
  ['DIANA, congested', policyOf({ kind: 'diana', queueLimit: 1, ...MIGRATING }, { kind: 'fcfs' })],
  ['a tree', policyOf({ kind: 'grid-tree', power: 'BENCHMARK' }, { kind: 'easy' })],
];

/** A conversation costs more than a plan. */
const seedsOf = ({ dispatch }: Policy): number[] => seeds(dispatch.kind === 'grid-tree' ? 2 : 6);

/** Jobs submitted together. */
interface Submitted {
  at: number;
  user: number;
  jobs: NewJob[];
}

function workload(seed: number, groups: number): Submitted[] {
  const random = new RandomStream(seed, 'live and simulated data');
  const likes = new RandomStream(seed, 'preferences');
  const some = (most: number): number => UNIT_MB * random.integer(0, most);
  let at = T0;
  return Array.from({ length: groups }, () => {
    at += random.integer(1, 60);
    const originSiteId = random.integer(0, 3) || null;
    const application = `app-${random.integer(1, 4)}`;
    const jobs = Array.from({ length: random.integer(1, 8) }, () => {
      const estimateS = 8 * random.integer(1, 20);
      return newJob({
        application,
        cpusPerTask: random.integer(1, 2),
        estimateS,
        simulatedRunS: 4 * random.integer(1, estimateS / 3),
        originSiteId,
        sandboxMb: some(2),
        outputMb: some(3),
        preferences: PREFERENCES.filter(() => likes.next() < 0.3),
        inputs: [
          ...(random.next() < 0.6 ? [{ datasetId: random.integer(1, DATASETS.length) }] : []),
          ...(random.next() < 0.3 ? [{ sizeMb: some(10), siteId: random.integer(1, 3) }] : []),
        ],
      });
    });
    return { at, user: random.integer(0, SHARES.length - 1), jobs };
  });
}

/** Everything that was decided. */
interface Decided {
  starts: Started[];
  moves: [jobId: number, siteId: number][];
  metaMoves: MetaMove[];
}

/** The jobs as schedulers see them. */
function schedulersJobs(list: readonly Submitted[], userIds: readonly number[]): Job[] {
  let id = 0;
  return list.flatMap(({ at, user, jobs }, i) =>
    jobs.map((job) => {
      const groupId = jobs.length > 1 ? i + 1 : null;
      const userId = userIds[user] as number;
      return submittedJob(job, { id: ++id, userId, userClass: 'REGULAR', submittedAt: at, groupId });
    }),
  );
}

function simulated(
  image: GridImage,
  list: readonly Submitted[],
  described: readonly Job[],
  policy: Policy,
  changes: readonly Change[],
): Decided {
  const { quotas, ...grid } = image;
  const submitted = list.flatMap(({ jobs }) => jobs);
  const decided: Decided = { starts: [], moves: [], metaMoves: [] };
  const sink: Sink = {
    moved({ jobId, from, to, queue }, at) {
      if (queue === 'LOCAL') decided.moves.push([jobId, to]);
      else decided.metaMoves.push({ jobId, from, to, at, queue });
    },
    started(_job, _index, { jobId, siteId, start, allocations, pools }) {
      const taken = allocations.map(({ machineId, tasks }): [number, number] => [machineId, tasks]);
      decided.starts.push({ jobId, siteId, at: start, machines: taken, licenseIds: idsOf(pools, false) });
    },
  };
  const shares = quotas.map(({ userId, share }) => [userId, share] as const);
  runSimulation(
    { ...grid, quotas: shares, changes },
    described.map((job, i) => ({
      job,
      sourceId: job.id,
      runS: submitted[i]?.simulatedRunS as number,
      limitS: null,
      siteId: null,
    })),
    { policy, eventOrder: 'batch' },
    [sink],
  );
  return decided;
}

async function decidesAlike(
  store: Store,
  userIds: readonly number[],
  policy: Policy,
  seed: number,
  groups: number,
  outage: ((outage: Outage) => Promise<void>) | null = null,
  removal: Happening['happens'] | null = null,
): Promise<Decided> {
  const list = workload(seed, groups);
  const described = schedulersJobs(list, userIds);
  const catalog = new DataCatalog();
  const image = await store.loadGrid(1);
  const { datasets, links, machines } = image;
  for (const dataset of datasets) catalog.setDataset(dataset);
  for (const link of links) catalog.setLink(link);
  const live = new VirtualService(store, null, {
    movingS: (jobId, siteId) => transferS(catalog, described[jobId - 1] as Job, siteId),
    // Rates are of the times of events, for which the store in memory asks its clock.
    onTime: (now) => vi.setSystemTime(now * 1000),
  });
  const submissions = list.map(
    ({ at, user, jobs }): Happening => ({ at, happens: submission(userIds[user] as number, ...jobs) }),
  );
  const random = new RandomStream(seed, 'outages');
  const end = (list.at(-1) as Submitted).at;
  const outages = outage === null ? [] : outagesOf(random, machines, T0 + 60, end);
  const apart = changesOf(outages, image);
  const changes = removal === null ? apart : lowerRemoved(image, apart);
  const happenings = happeningsOf(outages, SITE_IDS, outage ?? (async () => {}));
  if (removal !== null) happenings.push({ at: REMOVED_AT, happens: removal });
  await live.run(inTime(happenings, submissions));
  const simulation = simulated(image, list, described, policy, changes);

  expect(live.starts).toHaveLength(described.length);
  expect(live.metaMoves).toEqual(simulation.metaMoves);
  expect(live.moves).toEqual(simulation.moves);
  // Sites that look at one instant have no order among them.
  for (const site of SITE_IDS) {
    const there = ({ siteId }: Started): boolean => siteId === site;
    expect(live.starts.filter(there)).toEqual(simulation.starts.filter(there));
  }
  return live;
}

async function memoryStore(policy: Policy): Promise<{ store: MemoryStore; userIds: number[] }> {
  const store = new MemoryStore();
  store.setPolicy({ version: 1, document: policy });
  const userIds = SHARES.map((share) => {
    const userId = store.addUser();
    store.setQuotaShare(userId, share);
    return userId;
  });
  for (const { name, parentId } of TREE) store.addScheduler(name, parentId);
  for (const { name, machines } of SITES) {
    const siteId = store.addSite(name);
    store.moveSite(siteId, siteId === 3 ? null : 2, POSITIONS[siteId - 1]);
    const ids = machines.map(({ cpus, benchmark = 100 }, i) =>
      store.addMachine({
        siteId,
        name: `m${i}`,
        cpus,
        memoryMb: 1000,
        benchmark,
        os: 'linux',
        architecture: 'x64',
        licenseIds: [],
      }),
    );
    await vouch(store, siteId, ids, T0);
  }
  DATASETS.forEach((dataset, i) => {
    store.setDataset(i + 1, dataset);
  });
  for (const { fromSiteId, toSiteId, ...link } of LINKS) store.setLink(fromSiteId, toSiteId, link);
  return { store, userIds };
}

/** No job moves on from a site to which it has migrated within the hold-off. */
function checkHoldOff(metaMoves: readonly MetaMove[], { holdOffS }: { holdOffS: number }): void {
  const last = new Map<number, number>();
  for (const { jobId, from, at } of metaMoves) {
    if (from === null) continue;
    const before = last.get(jobId);
    if (before !== undefined) expect(at - before, `job ${jobId}`).toBeGreaterThanOrEqual(holdOffS);
    last.set(jobId, at);
  }
}

describe('a live run and a simulated run decide alike on data', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test.each(policies)('%s', async (name, policy) => {
    let migrations = 0;
    let elsewhere = 0;
    const steps = new Set<string>();
    for (const seed of seedsOf(policy)) {
      const { store, userIds } = await memoryStore(policy);
      const { metaMoves, starts } = await decidesAlike(store, userIds, policy, seed, 40);
      migrations += metaMoves.filter(({ from }) => from !== null).length;
      elsewhere += starts.filter(({ siteId }) => siteId !== 1).length;
      if (policy.dispatch.kind === 'diana') checkHoldOff(metaMoves, policy.dispatch);
      if (policy.dispatch.kind === 'job-ratio') expect(metaMoves).toEqual([]);
      for (const { queue } of metaMoves) steps.add(queue);
    }
    expect(elsewhere).toBeGreaterThan(0);
    if (name === 'DIANA, congested') expect(migrations).toBeGreaterThan(0);
    if (policy.dispatch.kind === 'grid-tree') expect(steps).toEqual(new Set(['META', 'SCHEDULER']));
  });

  test.each(policies)('%s, when sites and machines leave UP and come back', async (_, policy) => {
    let returned = 0;
    for (const seed of seedsOf(policy)) {
      const { store, userIds } = await memoryStore(policy);
      const removal = async (): Promise<Scheduler[]> => {
        store.removeScheduler(2);
        return [ROOT];
      };
      const tree = policy.dispatch.kind === 'grid-tree' ? removal : null;
      const { moves, starts } = await decidesAlike(store, userIds, policy, seed, 40, inMemory(store), tree);
      returned += moves.length - starts.length;
    }
    expect(returned).toBeGreaterThan(0);
  });
});

describe('on Postgres', () => {
  const database = withDatabase();
  const worlds: World[] = [];
  afterEach(async () => {
    for (const world of worlds.splice(0)) await world.close();
  });

  /** Its clock cannot be set, and rates are of its events' times: no rate makes a site congested here. */
  const uncongested = policyOf({ kind: 'diana', queueLimit: 2, congestionThreshold: 1 }, flexible);
  test.each(part([...policies.slice(0, 1), ['DIANA, never congested', uncongested] as const], 1))(
    '%s',
    async (_, policy) => {
      const { url } = await database.another();
      const world = await World.open(url, { sites: SITES, policy });
      worlds.push(world);
      const { directory, store } = world;
      const userIds: number[] = [];
      for (const quotaShare of SHARES) {
        const user = { name: `user-${quotaShare}`, class: 'REGULAR', role: 'USER', quotaShare } as const;
        userIds.push((await accepted(directory.registerUser(user, SERVICE))).id);
      }
      for (const [i, { sizeMb, siteIds }] of DATASETS.entries()) {
        const dataset = { name: `dataset-${i + 1}`, sizeMb, siteIds: [...siteIds] };
        expect((await accepted(directory.createDataset(dataset, SERVICE))).id).toBe(i + 1);
      }
      await accepted(directory.setLinks(LINKS, T0, SERVICE));
      for (const { name } of SITES)
        await vouch(store, world.siteId(name), world.machineIds.get(name) as number[], T0);

      const { metaMoves } = await decidesAlike(store, userIds, policy, 20261121, 12);
      if (policy.dispatch.kind === 'diana') expect(metaMoves.length).toBeGreaterThan(0);
      expect(await checkPromises(world.database.pool)).toEqual([]);
    },
  );
});
