/**
 * Live and simulated are one: the engine's cycles over a store with agents that pass time, and the simulator, take the same
 * decisions for the same submissions. Over the store in memory, which is the model of the one on Postgres, for several seeds; on
 * Postgres for one.
 *
 * Where sites share a grid-wide license this is said of a single worker: one more makes sites look once more than needed.
 * Promises do not mind.
 */

import { afterEach, describe, expect, test } from 'vitest';
import {
  type LocalPolicy,
  type Machine,
  type Move,
  type Policy,
  type QueuesPolicy,
  RandomStream,
  type Run,
  type UserClass,
} from '../../src/core/index.js';
import type { Clause, NeedCondition } from '../../src/core/needs/model.js';
import { ROOT, schedulerOf } from '../../src/core/scheduler.js';
import { type Change, runSimulation } from '../../src/simulator/engine.js';
import { holdsInTurn } from '../../src/simulator/holds.js';
import { ResultSink } from '../../src/simulator/sink.js';
import type { SimJob } from '../../src/simulator/workload.js';
import type { HoldKind } from '../../src/store/holds.js';
import { idsOf } from '../../src/store/images.js';
import { submittedJob } from '../../src/store/rules.js';
import type { Store } from '../../src/store/store.js';
import { MemoryStore } from '../store/memory.js';
import { newJob, T0, vouch } from '../store/world.js';
import { withDatabase } from '../support/database.js';
import { withParts } from '../support/plain-job.js';
import { checkPromises } from '../support/promises.js';
import { IN_FULL, part, seeds } from '../support/seed.js';
import { accepted, SERVICE } from './directory.js';
import { changesOf, happeningsOf, inMemory, inTime, type Outage, outagesOf } from './outages.js';
import { type Happening, type Processes, type Started, submission, VirtualService } from './virtual.js';
import { type SiteShape, testPolicy, World } from './world.js';

const SITES: SiteShape[] = [
  { name: 'big', machines: [{ cpus: 8 }, { cpus: 4, benchmark: 200, licenses: ['cad'] }] },
  {
    name: 'middle',
    machines: [
      { cpus: 4, memoryMb: 500 },
      { cpus: 4, licenses: ['cad'] },
    ],
  },
  { name: 'small', machines: [{ cpus: 2, benchmark: 50 }] },
];
const SITE_IDS = [1, 2, 3];
const COPIES = 2;
const CLASSES: UserClass[] = ['GOLD', 'SILVER', 'REGULAR'];
const SEEDS = seeds(3);
const IN_MEMORY = IN_FULL ? 150 : 60;
/** `needing`: more by choice, GRAPH_JOBS=2000. */
const JOBS = {
  inMemory: IN_MEMORY,
  needing: Number(process.env.GRAPH_JOBS ?? IN_MEMORY),
  onPostgres: 30,
};

const flexible = testPolicy().local;
const queues = (
  order: QueuesPolicy['order'],
  queueLimit: number,
  ageBoundS: number | null,
): QueuesPolicy => ({ kind: 'queues', order, queueLimit, ageBoundS });
const policies: [string, LocalPolicy, 'MS' | 'LS' | 'NONE' | QueuesPolicy][] = [
  ['flexible by level-1 priority', flexible, 'MS'],
  ['flexible by the sites’ own priority', flexible, 'LS'],
  ['EASY', { kind: 'easy' }, 'NONE'],
  ['hybrid', { kind: 'hybrid', reservations: 3 }, 'MS'],
  ['conservative', { kind: 'conservative', depth: 1000 }, 'MS'],
  ['conservative for the first five', { kind: 'conservative', depth: 5 }, 'NONE'],
  ['first fit', { kind: 'first-fit', ageBoundS: 600 }, 'MS'],
  ['queues at the root only, FCFS', { kind: 'fcfs' }, queues('FCFS', 0, null)],
  ['queues at the root only, First Fit', { kind: 'fcfs' }, queues('FF', 0, 300)],
  ['queues, SJF over EASY', { kind: 'easy' }, queues('SJF', 3, 400)],
  ['queues, S-SJF over SJF', { kind: 'sjf', ageBoundS: 500 }, queues('S-SJF', 2, 200)],
  ['queues, L-SJF over first fit', { kind: 'first-fit', ageBoundS: null }, queues('L-SJF', 4, null)],
];
const policyOf = (local: LocalPolicy, mode: (typeof policies)[number][2], seed: number): Policy => {
  if (typeof mode === 'string') return { ...testPolicy({ local, dispatch: { mode } }), seed };
  return { ...testPolicy({ local }), dispatch: mode, seed };
};

type UserIds = Readonly<Record<UserClass, number>>;
interface Submitted {
  at: number;
  userClass: UserClass;
  job: ReturnType<typeof newJob>;
  /** What it needs of those before it, by id. */
  needs?: Clause<{ job: number; condition: NeedCondition; minDelayS: number }>[];
  onUnmet?: 'CANCEL' | 'RUN';
  fails?: boolean;
}

/** Small enough for one of the sites. */
function severalParts(random: RandomStream): Partial<ReturnType<typeof newJob>> {
  const first = { tasks: random.integer(1, 2), cpusPerTask: random.integer(1, 2) };
  const second = { cpusPerTask: random.integer(2, 4), memoryMbPerTask: 50 * random.integer(0, 3) };
  return { licenses: [], ...withParts(random.next() < 0.5 ? [first, second] : [second, first, {}]) };
}

/**
 * More work than the sites can do at once, in bursts. Times are whole seconds and speeds powers of two apart, so that nothing is
 * rounded where it is stored.
 */
function workload(seed: number, count: number): Submitted[] {
  const random = new RandomStream(seed, 'live and simulated');
  const list: Submitted[] = [];
  for (let at = T0; list.length < count; at += random.integer(1, 12)) {
    for (let burst = random.integer(1, 4); burst > 0 && list.length < count; burst--) {
      const estimateS = 8 * random.integer(1, 20);
      const tasks = random.integer(1, 3);
      list.push({
        at,
        userClass: CLASSES[random.integer(0, 2)] as UserClass,
        job: newJob({
          tasks,
          cpusPerTask: random.integer(1, tasks === 1 ? 4 : 2),
          memoryMbPerTask: 50 * random.integer(0, 3),
          licenses: tasks === 1 && random.next() < 0.2 ? ['cad'] : [],
          estimateS,
          // Some end early, some outrun their estimate.
          simulatedRunS: 4 * random.integer(1, estimateS / 3),
          deadline: random.next() < 0.5 ? at + estimateS + random.integer(0, 400) : null,
          boost: random.next() < 0.1 ? random.integer(-3, 3) : 0,
          ...(random.next() < 0.2 ? severalParts(random) : {}),
        }),
      });
    }
  }
  return list;
}

const CONDITIONS = ['START', 'OK', 'OK', 'NOT_OK', 'ANY'] as const;

/** Half of them need some of those shortly before them; some end badly. */
function needing(list: readonly Submitted[], seed: number): Submitted[] {
  const random = new RandomStream(seed, 'needs');
  return list.map((one, i) => ({
    ...one,
    fails: random.next() < 0.2,
    onUnmet: random.next() < 0.3 ? 'RUN' : 'CANCEL',
    needs: Array.from({ length: i === 0 ? 0 : random.integer(0, 2) }, () => ({
      expression: random.next() < 0.5 ? 'ALL' : 'ANY',
      of: Array.from({ length: random.integer(1, 3) }, () => ({
        job: random.integer(Math.max(1, i - 20), i),
        condition: CONDITIONS[random.integer(0, CONDITIONS.length - 1)] as NeedCondition,
        minDelayS: random.next() < 0.2 ? random.integer(1, 60) : 0,
      })),
    })),
  }));
}

/** Some are of a higher preemption class. */
function ranked(list: readonly Submitted[], seed: number): Submitted[] {
  const random = new RandomStream(seed, 'classes');
  return list.map(({ job, ...one }) => ({
    ...one,
    job: {
      ...job,
      preemptionClass: random.next() < 0.2 ? random.integer(1, 9) : 0,
      restartable: random.next() < 0.9,
    },
  }));
}

/** Some have no limit, the others one that they keep on any machine; and graces of their own. */
function limited(list: readonly Submitted[], seed: number): Submitted[] {
  const random = new RandomStream(seed, 'limits');
  return list.map(({ job, ...one }) => ({
    ...one,
    job: {
      ...job,
      runTimeLimitS: random.next() < 0.5 ? 2 * Math.max(job.estimateS, job.simulatedRunS as number) : null,
      killGraceS: random.integer(0, LONGEST_GRACE_S),
      restartable: random.next() < 0.8,
    },
  }));
}

const LONGEST_GRACE_S = 12;

interface PlannedHold {
  madeAt: number;
  siteId: number;
  kind: HoldKind;
  /** null: the whole site. */
  machineId: number | null;
  from: number;
  to: number;
}

/** Windows and reservations that preempt, made shortly before they begin. */
function heldIn(list: readonly Submitted[], machines: readonly Machine[], seed: number): PlannedHold[] {
  const random = new RandomStream(seed, 'holds');
  const holds: PlannedHold[] = [];
  const last = (list.at(-1) as Submitted).at;
  for (let madeAt = T0 + 20; madeAt < last; madeAt += random.integer(30, 120)) {
    const { siteId, id } = machines[random.integer(0, machines.length - 1)] as Machine;
    const from = madeAt + random.integer(1, 40);
    const kind = random.next() < 0.5 ? 'MAINTENANCE' : 'USER';
    const to = from + random.integer(5, 100);
    holds.push({ madeAt, siteId, kind, machineId: random.next() < 0.7 ? id : null, from, to });
  }
  return holds;
}

/** They are made, and the service sweeps, every second, while there is one. `accepted`: those that did not meet others. */
function heldLive(
  store: MemoryStore,
  holds: readonly PlannedHold[],
  userId: number,
  accepted: (PlannedHold & { id: number })[],
): Happening[] {
  const made = holds.map((hold): Happening => {
    const { madeAt, siteId, kind, machineId, from, to } = hold;
    return {
      at: madeAt,
      async happens() {
        const { id } = store.createHold(
          {
            ...{
              kind,
              name: null,
              siteId,
              userId,
              onConflict: 'PREEMPT',
              reason: null,
              idleS: null,
              userIds: [],
            },
            held:
              machineId === null
                ? { of: 'SITE' }
                : { of: 'MACHINES', machineIds: [machineId], amounts: null },
            ...{ shared: [], times: [{ from, to }], recurrence: null },
          },
          madeAt,
        );
        if (id === null) return [];
        accepted.push({ ...hold, id });
        return [ROOT, siteId];
      },
    };
  });
  const seconds = new Set(
    holds.flatMap(({ madeAt, from, to }) =>
      Array.from({ length: to - madeAt + 1 }, (_, i) => madeAt + i).filter((at) => at <= from || at === to),
    ),
  );
  const never = { silentAfterS: 1e9, lostAfterS: 1e9, runTimeGraceS: 1e9 };
  const sweeps = [...seconds]
    .sort((a, b) => a - b)
    .map(
      (at): Happening => ({
        at,
        async happens() {
          const rules = {
            now: at,
            ...never,
            onDeadlinePassed: 'RECORD',
            maxAttempts: 3,
            limit: 1000,
          } as const;
          return (await store.sweep(rules)).touched.map(schedulerOf);
        },
      }),
    );
  return inTime(made, sweeps);
}

const knownOf = (holds: readonly (PlannedHold & { id: number })[]): Change[] =>
  holdsInTurn(
    holds.map(({ id, madeAt, siteId, kind, machineId, from, to }) => ({
      ...{ siteId, knownFrom: madeAt, knownUntil: Infinity, stopsFor: id },
      held: {
        ...{ id, by: kind === 'MAINTENANCE' ? 'WINDOW' : 'RESERVATION', from, to, ends: 'LIMIT', pools: [] },
        ...(machineId === null
          ? { machines: [], siteId }
          : { machines: [{ machineId, amounts: null }], siteId: null }),
        reservation: kind === 'MAINTENANCE' ? null : { id, siteId },
      },
    })),
    1000,
  );

/** The same submissions in the simulator, on the machines that the store has. */
async function simulated(
  store: Store,
  list: readonly Submitted[],
  userIds: UserIds,
  policy: Policy,
  outages: readonly Outage[],
  held: readonly Change[] = [],
): Promise<Pick<VirtualService, 'moves' | 'starts'> & { preempted: number }> {
  const { sites, machines, licenses } = await store.loadGrid(1);
  const jobs = list.map(
    ({ at, userClass, job, needs = [], onUnmet = 'CANCEL', fails = false }, i): SimJob => {
      const of = { id: i + 1, userId: userIds[userClass], userClass, submittedAt: at, groupId: null };
      const described = submittedJob(job, of);
      return {
        job: described,
        sourceId: i + 1,
        runS: job.simulatedRunS as number,
        limitS: null,
        siteId: null,
        fails,
        ...(needs.length > 0 && {
          wait: {
            needs: needs.map(({ expression, of }) => ({
              expression,
              of: of.map(({ job, ...term }) => ({ members: [job], ...term })),
            })),
            ...{ onUnmet, since: at },
          },
        }),
      };
    },
  );
  const starts: Started[] = [];
  const moves: [jobId: number, siteId: number][] = [];
  const results = new ResultSink(jobs.length);
  const moved = ({ jobId, to }: Move): void => void moves.push([jobId, to as number]);
  const started = (_job: SimJob, _index: number, run: Run): void => {
    const { jobId, siteId, start, allocations, pools } = run;
    starts.push({
      jobId,
      siteId,
      at: start,
      machines: allocations.map(({ machineId, tasks }) => [machineId, tasks]),
      licenseIds: idsOf(pools, false),
    });
  };
  const changes = [...changesOf(outages, { sites, machines }), ...held];
  runSimulation({ sites, machines, licenses, changes }, jobs, { policy, eventOrder: 'batch' }, [
    { moved, started },
    results,
  ]);
  return { moves, starts, preempted: results.preempted };
}

async function decidesAlike(
  store: Store,
  userIds: UserIds,
  policy: Policy,
  count: number,
  processes: Processes | null = null,
  outage: ((outage: Outage) => Promise<void>) | null = null,
): Promise<VirtualService> {
  const list = workload(policy.seed, count);
  const outages = outage === null ? [] : outagesIn(list, (await store.loadGrid(1)).machines, policy.seed);
  const happenings = list.map(
    ({ at, userClass, job }): Happening => ({ at, happens: submission(userIds[userClass], job) }),
  );
  const live = new VirtualService(store, processes);
  if (outage === null) await live.run(happenings);
  else await live.run(inTime(happeningsOf(outages, SITE_IDS, outage), happenings));
  const simulation = await simulated(store, list, userIds, policy, outages);

  expect(live.starts).toHaveLength(count);
  const inOrder = policy.dispatch.kind === 'two-level';
  const byJob = (moves: readonly [number, number][]) => [...moves].sort(([a], [b]) => a - b);
  expect(inOrder ? live.moves : byJob(live.moves)).toEqual(
    inOrder ? simulation.moves : byJob(simulation.moves),
  );
  if (outage === null) expectMovedOnce(list, live, policy);
  // Sites that look at one instant have no order among them.
  for (const site of SITE_IDS) {
    const there = ({ siteId }: Started): boolean => siteId === site;
    expect(live.starts.filter(there)).toEqual(simulation.starts.filter(there));
  }
  return live;
}

/** Every job is moved once, to where it starts: in their order where the root sends each on at once, those with a boost first. */
function expectMovedOnce(
  list: readonly Submitted[],
  { starts, moves }: Pick<VirtualService, 'starts' | 'moves'>,
  { dispatch }: Policy,
): void {
  const siteOf = new Map(starts.map(({ jobId, siteId }) => [jobId, siteId]));
  const order = list.map(({ at, job }, i) => ({ id: i + 1, at, boost: job.boost }));
  if (dispatch.kind === 'two-level') order.sort((a, b) => a.at - b.at || b.boost - a.boost);
  const expected = order.map(({ id }) => [id, siteOf.get(id)]);
  expect(dispatch.kind === 'two-level' ? moves : [...moves].sort(([a], [b]) => a - b)).toEqual(expected);
}

const outagesIn = (list: readonly Submitted[], machines: readonly Machine[], seed: number): Outage[] =>
  outagesOf(new RandomStream(seed, 'outages'), machines, T0 + 60, (list.at(-1) as Submitted).at);

/** The sites, in memory. */
async function memoryStore(
  policy: Policy,
  now?: () => number,
): Promise<{ store: MemoryStore; userIds: UserIds }> {
  const store = new MemoryStore(now && { now });
  store.setPolicy({ version: 1, document: policy });
  const userIds = Object.fromEntries(CLASSES.map((userClass) => [userClass, store.addUser(userClass)]));
  const cad = store.addLicense('cad', COPIES, null);
  for (const { name, machines } of SITES) {
    const siteId = store.addSite(name);
    const ids = machines.map(({ cpus, memoryMb = 1000, benchmark = 100, licenses = [] }, i) =>
      store.addMachine({
        siteId,
        name: `m${i}`,
        cpus,
        memoryMb,
        benchmark,
        os: 'linux',
        architecture: 'x64',
        licenseIds: licenses.map(() => cad),
      }),
    );
    await vouch(store, siteId, ids, T0);
  }
  return { store, userIds: userIds as UserIds };
}

const processes = (seed: number): Processes => ({
  count: 2,
  forgets: 0.1,
  random: new RandomStream(seed, 'processes'),
});

/** All has ended, each site has started the same runs at the same instants, and as many were stopped. */
function expectSame(
  store: MemoryStore,
  live: Pick<VirtualService, 'starts'>,
  simulation: Awaited<ReturnType<typeof simulated>>,
): void {
  expect([...store.jobs.values()].filter(({ endedAt }) => endedAt === null)).toEqual([]);
  for (const site of SITE_IDS) {
    const there = ({ siteId }: Started): boolean => siteId === site;
    expect(live.starts.filter(there)).toEqual(simulation.starts.filter(there));
  }
  expect(simulation.preempted).toBe(
    [...store.runs.values()].filter(({ cause }) => cause === 'PREEMPTED').length,
  );
}

describe('a live run and a simulated run decide alike', () => {
  test.each(policies)('%s', async (_, local, mode) => {
    for (const seed of SEEDS) {
      const policy = policyOf(local, mode, seed);
      const { store, userIds } = await memoryStore(policy);
      await decidesAlike(store, userIds, policy, JOBS.inMemory);
    }
  });

  test.each(policies)('%s, when sites and machines leave UP and come back', async (_, local, mode) => {
    let returned = 0;
    for (const seed of SEEDS) {
      const policy = policyOf(local, mode, seed);
      const { store, userIds } = await memoryStore(policy);
      const live = await decidesAlike(store, userIds, policy, JOBS.inMemory, null, inMemory(store));
      returned += live.moves.length - live.starts.length;
    }
    // The root's own queue is all there is where sites keep none.
    if (typeof mode === 'string' || mode.queueLimit > 0) expect(returned).toBeGreaterThan(0);
  });

  test.each(policies)('%s, when jobs need others and some end badly', async (_, local, mode) => {
    for (const seed of SEEDS) {
      const policy = policyOf(local, mode, seed);
      const { store, userIds } = await memoryStore(policy);
      const list = needing(workload(seed, JOBS.needing), seed);
      const needs = { fails: (id: number) => list[id - 1]?.fails === true, dueAt: () => store.firstDue() };
      const live = new VirtualService(store, null, { needs });
      await live.run(
        list.map(({ at, userClass, job, needs = [], onUnmet = 'CANCEL' }): Happening => {
          const wait = needs.length > 0 ? { needs, onUnmet, notBefore: null } : null;
          return { at, happens: submission(userIds[userClass], { ...job, wait }) };
        }),
      );
      const simulation = await simulated(store, list, userIds, policy, []);
      // Some were cancelled, and nobody waits for what cannot come.
      expect(live.starts.length).toBeLessThan(list.length);
      expect([...store.jobs.values()].filter(({ endedAt }) => endedAt === null)).toEqual([]);
      for (const site of SITE_IDS) {
        const there = ({ siteId }: Started): boolean => siteId === site;
        expect(live.starts.filter(there)).toEqual(simulation.starts.filter(there));
      }
    }
  });

  test.each(policies)('%s, when runs are stopped for jobs of higher classes', async (_, local, mode) => {
    let preempted = 0;
    for (const seed of SEEDS) {
      const preemption = { graceS: 6, exemptS: 20, cancelBelow: seed % 2 };
      const policy = { ...policyOf(local, mode, seed), preemption };
      // When runs were told to stop is a time of the store's.
      let time = T0;
      const { store, userIds } = await memoryStore(policy, () => time);
      const list = ranked(workload(seed, JOBS.inMemory), seed);
      const onTime = (now: number): void => {
        time = now;
      };
      const live = new VirtualService(store, null, { onTime });
      await live.run(
        list.map(({ at, userClass, job }) => ({ at, happens: submission(userIds[userClass], job) })),
      );
      const simulation = await simulated(store, list, userIds, policy, []);
      expectSame(store, live, simulation);
      preempted += simulation.preempted;
    }
    // Jobs that the root holds until there is room are not at a site for which others could be stopped.
    if (typeof mode === 'string' || mode.queueLimit > 2) expect(preempted).toBeGreaterThan(0);
  });

  test.each(policies)('%s, when runs are stopped for what is held', async (_, local, mode) => {
    let preempted = 0;
    for (const seed of SEEDS) {
      const policy = policyOf(local, mode, seed);
      let time = T0;
      const { store, userIds } = await memoryStore(policy, () => time);
      const list = limited(workload(seed, JOBS.inMemory), seed);
      const { machines } = await store.loadGrid(1);
      const holds = heldIn(list, machines, seed);
      const onTime = (now: number): void => {
        time = now;
      };
      const live = new VirtualService(store, null, { onTime });
      const submitted = list.map(
        ({ at, userClass, job }): Happening => ({ at, happens: submission(userIds[userClass], job) }),
      );
      const accepted: (PlannedHold & { id: number })[] = [];
      await live.run(inTime(heldLive(store, holds, userIds.GOLD, accepted), submitted));
      const simulation = await simulated(store, list, userIds, policy, [], knownOf(accepted));
      expectSame(store, live, simulation);
      preempted += simulation.preempted;
    }
    expect(preempted).toBeGreaterThan(0);
  });

  test.each([1000, 5])(
    'with two processes that lose their mirrors (conservative, depth %i)',
    async (depth) => {
      for (const seed of SEEDS) {
        const policy = policyOf({ kind: 'conservative', depth }, 'MS', seed);
        const { store, userIds } = await memoryStore(policy);
        await decidesAlike(store, userIds, policy, JOBS.inMemory, processes(seed));
      }
    },
  );
});

describe('on Postgres', () => {
  const database = withDatabase();
  const worlds: World[] = [];
  afterEach(async () => {
    for (const world of worlds.splice(0)) await world.close();
  });

  const some = policies.filter(([name]) => /^(flexible|conservative$|queues, S)/.test(name));
  test.each(part(some, 2))('%s', async (_, local, mode) => {
    const seed = 20261121;
    const policy = policyOf(local, mode, seed);
    const { url } = await database.another();
    const gridLicenses = [{ kind: 'cad', copies: COPIES }];
    const world = await World.open(url, { sites: SITES, gridLicenses, policy });
    worlds.push(world);
    const userIds = {} as Record<UserClass, number>;
    for (const userClass of CLASSES) {
      const user = { name: userClass.toLowerCase(), class: userClass, role: 'USER', quotaShare: 1 } as const;
      userIds[userClass] = (await accepted(world.directory.registerUser(user, SERVICE))).id;
    }
    for (const { name } of SITES)
      await vouch(world.store, world.siteId(name), world.machineIds.get(name) as number[], T0);

    const outage = async ({ siteId, machineId, state }: Outage): Promise<void> => {
      const { directory } = world;
      if (machineId === null) await accepted(directory.updateSite(siteId, { state }, SERVICE));
      else await accepted(directory.updateMachine(machineId, { state }, SERVICE));
    };
    const two = local.kind === 'conservative' ? processes(seed) : null;
    await decidesAlike(world.store, userIds, policy, JOBS.onPostgres, two, outage);
    expect(await checkPromises(world.database.pool)).toEqual([]);
  });
});
