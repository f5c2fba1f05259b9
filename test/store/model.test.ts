/**
 * Any sequence of operations has the same outcomes on Postgres as on the plain maps of `MemoryStore`, breaks no promise, and
 * leaves a mirror that followed it where a mirror is that loads the end of it.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  DataCatalog,
  type Job,
  JobHistory,
  Margins,
  type PromisesImage,
  Shares,
  Traffic,
} from '../../src/core/index.js';
import { fieldsOf } from '../../src/core/lean-jobs.js';
import { LicenseRequests } from '../../src/core/resources/license-requests.js';
import { retryActions } from '../../src/core/runs/retry.js';
import type { EndCause } from '../../src/core/states.js';
import { Mirror } from '../../src/store/mirror.js';
import type { Database } from '../../src/store/pool.js';
import type { JobSelection, NewJob, Store } from '../../src/store/store.js';
import { withDatabase } from '../support/database.js';
import { withParts } from '../support/plain-job.js';
import { cases } from '../support/seed.js';
import {
  context,
  memoryWorld,
  metaMove,
  move,
  newJob,
  openTestDatabase,
  postgresWorld,
  report,
  reservation,
  start,
  T0,
  treeMove,
  vouch,
  type World,
} from './world.js';

const test = withDatabase();
let database: Database;
beforeAll(() => {
  database = openTestDatabase(test.url);
});
afterAll(() => database.close());

const SITES = 2;
const MACHINES = 4;

/** Ids that may or may not exist: jobs are few, so that operations meet. */
const jobId = fc.integer({ min: 1, max: 14 });
const jobIds = fc.array(jobId, { maxLength: 6 });
const siteId = fc.integer({ min: 1, max: SITES });
const machineId = fc.integer({ min: 1, max: MACHINES });
const siteState = fc.constantFrom('UP', 'UP', 'UP', 'UP', 'DRAINING', 'DOWN');
const cause = fc.constantFrom<EndCause>(
  ...(['EXITED_ZERO', 'EXITED_ZERO', 'EXITED_NONZERO', 'LOST', 'REFUSED', 'LAUNCH_FAILED'] as const),
  ...(['MACHINE_FAILED', 'CANCELLED_BY_USER'] as const),
);

const job = fc
  .record({
    tasks: fc.integer({ min: 1, max: 2 }),
    cpusPerTask: fc.integer({ min: 1, max: 2 }),
    memoryMbPerTask: fc.constantFrom(0, 300),
    tasksPerMachine: fc.constantFrom(null, null, { min: 1, max: 1 }),
    exclusive: fc.constantFrom(null, null, null, 'MACHINE' as const, 'USER' as const),
    allAlike: fc.constantFrom(null, null, ['rack']),
    sameSwitch: fc.constantFrom(null, null, { maxWaitS: 60 }, { maxWaitS: null }),
    licenses: fc.constantFrom<string[]>([], [], ['cad']),
    os: fc.constantFrom(null, null, 'λinux'),
    estimateS: fc.constantFrom(100, 0.1, 1e9),
    preferences: fc.constantFrom<NewJob['preferences']>([], [], [{ siteId: 1 }, { memoryMbPerTask: 300 }]),
    deadline: fc.constantFrom(null, T0 + 150, T0 + 400.25),
    runTimeLimitS: fc.constantFrom(null, 50),
    restartable: fc.boolean(),
    retry: fc.option(
      fc.record({
        maxRetries: fc.nat(3),
        backoffS: fc.constantFrom(0, 5),
        factor: fc.constantFrom(1, 2.5),
        maxBackoffS: fc.constantFrom(6, 1000),
        rules: fc.array(
          fc.record({
            causes: fc.constantFrom(null, ['LOST'], ['EXITED_NONZERO', 'STAGING_FAILED']),
            exitCodes: fc.constantFrom(null, [{ from: 1, to: 1 }]),
            signals: fc.constantFrom(null, ['SIGKILL']),
            action: fc.constantFrom(...retryActions),
            memoryFactor: fc.constantFrom(1, 1, 1.5),
            memoryMaxMb: fc.constantFrom(null, 500),
          }),
          { maxLength: 2 },
        ),
      }),
      { freq: 2 },
    ),
    onTaskFailure: fc.constantFrom<NewJob['onTaskFailure']>('END_ALL', 'CONTINUE'),
    launch: fc.constantFrom<NewJob['launch']>('EVERY_TASK', 'EVERY_TASK', 'ONCE'),
    held: fc.constantFrom(false, false, true),
    application: fc.constantFrom('x', 'y'),
    inputs: fc.constantFrom<NewJob['inputs']>([], [], [{ datasetId: 1 }, { sizeMb: 0.5, siteId: 2 }]),
    originSiteId: fc.constantFrom(null, null, 1),
    computationShare: fc.constantFrom(null, 0.25),
    outputMb: fc.constantFrom(0, 3),
    second: fc.constantFrom(null, null, null, 1, 2),
  })
  .map(({ second, ...one }) => (second === null ? one : withSecond(one, second)));

/** One more task, which asks for so many CPUs. */
const withSecond = <J extends Partial<NewJob>>(
  { tasksPerMachine, retry: _, ...job }: J,
  cpusPerTask: number,
) => {
  const { tasks = 1, memoryMbPerTask = 0 } = job;
  const first = { tasks, cpusPerTask: job.cpusPerTask ?? 1, memoryMbPerTask, tasksPerMachine };
  const { exclusive = null, sameSwitch = null } = job;
  const parts = withParts([
    { ...first, sameSwitch },
    { cpusPerTask, exclusive },
  ]);
  return { ...job, retry: null, sameSwitch: null, ...parts };
};

const selection: fc.Arbitrary<JobSelection> = fc
  .record({
    ownedBy: fc.constantFrom(null, null, 1, 2),
    limit: fc.constantFrom(2, 100, 100),
    what: fc.oneof(
      fc.record({ ids: jobIds }),
      fc.record({
        filter: fc.record(
          { siteId, application: fc.constantFrom('x', 'y'), groupId: fc.integer({ min: 1, max: 4 }) },
          { requiredKeys: [] },
        ),
      }),
    ),
  })
  .map(({ what, ...rest }) => ({ ...rest, ...what }));

/** Operations choose among what there is when they come: most of them then do something. */
const pick = fc.nat(20);
const at = <T>(list: readonly T[], n: number): T | undefined => list[n % Math.max(1, list.length)];
const rarely = fc.constantFrom(false, false, false, false, false, true);
const NOBODY = { job: { id: 99, tasks: 1, licenses: [] as string[] }, siteId: null, run: null };

/** An operation does the same to any world at the same time. What it answers is compared. */
type Operation = (world: World, now: number) => Promise<unknown>;
const operation = <T>(
  name: string,
  values: fc.Arbitrary<T>,
  run: (world: World, now: number, value: T) => Promise<unknown>,
) =>
  values.map((value) => {
    const bound: Operation = (world, now) => run(world, now, value);
    return Object.assign(bound, { toString: () => `${name} ${JSON.stringify(value)}` });
  });

/** Reasons are worded freely: the items are compared. */
const items = ({ refused, ...rest }: { refused: { jobId: number }[] }) => ({
  ...rest,
  refused: refused.map((item) => item.jobId),
});
const sorted = <T extends { touched: (number | null)[] }>(outcome: T) => ({
  ...outcome,
  touched: [...outcome.touched].sort(),
});

const promiseTo = (jobId: number, machineId: number, now: number): PromisesImage => ({
  room: { runs: jobId, amounts: { cpus: 1, memoryMb: 0 }, copies: [] },
  jobs: [
    {
      jobId,
      at: now + 1 / 3,
      allocations: [{ machineId, tasks: 1 }],
      pools: [],
      work: 100,
      madeAt: now,
    },
  ],
});

/** What people say of users' shares, the policy, data and the network. */
const directory = fc.oneof(
  operation('share', fc.constantFrom(0.5, 1, 3), async (world, _, share) => {
    await world.setShare(1, share);
  }),
  operation('policy', fc.constantFrom(1, 50), async (world, _, referencePower) => {
    await world.newPolicy({ referencePower });
  }),
  operation(
    'replicas',
    fc.record({ dataset: fc.constantFrom(1, 2), site: siteId, there: fc.boolean() }),
    async (world, _, { dataset, site, there }) => {
      await world.setReplicas(dataset, there ? { add: [site] } : { remove: [site] });
    },
  ),
  operation(
    'link',
    fc.record({ from: siteId, bandwidthMbPerS: fc.option(fc.constantFrom(1, 10.5)) }),
    async (world, _, { from: fromSiteId, bandwidthMbPerS }) => {
      const toSiteId = SITES + 1 - fromSiteId;
      const { links } = await world.store.loadGrid(0);
      const known = links.some((link) => link.fromSiteId === fromSiteId);
      if (bandwidthMbPerS !== null)
        await world.setLink({ fromSiteId, toSiteId, bandwidthMbPerS, rttS: 0.5, loss: 0 });
      else if (known) await world.removeLink(fromSiteId, toSiteId);
    },
  ),
);

/** The rare sequence in which everything goes well: jobs of a site's queue start, run for a while, and end. */
const wholeRuns = operation(
  'runs',
  fc.record({
    site: siteId,
    list: fc.array(
      fc.record({
        pick,
        on: pick,
        seconds: fc.constantFrom(0, 1, 3.5, 20),
        ioWaitS: fc.constantFrom(null, 0, 2.5, 0.1 + 0.2, 1 / 3, 1000),
        cpuS: fc.constantFrom(null, 3),
        end: fc.option(cause, { freq: 1 }),
      }),
      { minLength: 1, maxLength: 4 },
    ),
  }),
  async ({ store }, now, { site, list }) => {
    const { jobs, machines } = await store.loadGrid(0);
    const queue = jobs.filter(({ state, siteId: held }) => state === 'DISPATCHED' && held === site);
    const here = machines.filter((machine) => machine.siteId === site).map(({ id }) => id);
    await vouch(store, site, here, now);
    const starts = list.map(({ pick: n, on }) => {
      const { job } = at(queue, n) ?? NOBODY;
      const tasks = Array.from({ length: job.tasks }, (_, task) => [at(here, on + task)!, 1]);
      return start(job.id, site, Object.fromEntries(tasks), job.licenses.length > 0 ? [1] : []);
    });
    const outcome = await store.applyStarts(site, starts, null, context(now));
    const begun = outcome.accepted.map((id, i) => report(id, outcome.epochs[i]!, { at: now }));
    const over = outcome.accepted.map((id, i) => {
      const { end, seconds, ...times } = list[i]!;
      const change = { at: now + seconds, cause: end ?? 'EXITED_ZERO', ...times } as const;
      return report(id, outcome.epochs[i]!, { phase: 'ENDED', ...change });
    });
    const reported = await store.reportRuns(site, [...begun, ...over], 3);
    return [items(outcome), sorted(reported)];
  },
);

const operations = fc.oneof(
  {
    weight: 8,
    arbitrary: operation(
      'submit',
      fc.record({
        user: fc.constantFrom(1, 2),
        key: fc.constantFrom(null, null, 'k'),
        jobs: fc.array(job, { minLength: 1, maxLength: 3 }),
        group: fc.constantFrom(null, { name: 'g', template: { command: 'true' } }),
      }),
      ({ store }, now, { user, key, jobs, group }) =>
        store.submit({
          userId: user,
          idempotencyKey: key,
          payloadHash: String(jobs.length),
          jobs: jobs.map(newJob),
          group,
          now,
        }),
    ),
  },
  {
    weight: 12,
    arbitrary: operation(
      'moves',
      fc.array(
        fc.record({ pick, to: siteId, kind: fc.constantFrom('LOCAL', 'META', 'TREE'), wrong: rarely }),
        { maxLength: 8 },
      ),
      async ({ store }, now, list) => {
        const queued = (await store.loadGrid(0)).jobs.filter(
          ({ state }) => state === 'QUEUED' || state === 'DISPATCHED',
        );
        const moves = list.map(({ pick: n, to, kind, wrong }) => {
          const { job, siteId: from } = at(queued, n) ?? NOBODY;
          const source = wrong ? 1 : from;
          // To the root, or to scheduler 1 or 2.
          if (kind === 'TREE') return treeMove(job.id, n % 3 || null, source, n % 2);
          return (kind === 'META' ? metaMove : move)(job.id, to, source);
        });
        return items(await store.applyMoves(moves, context(now)));
      },
    ),
  },
  {
    weight: 6,
    arbitrary: operation(
      'starts',
      fc.record({
        site: siteId,
        list: fc.array(fc.record({ pick, offset: pick, wrong: rarely }), { maxLength: 6 }),
        reserved: fc.option(pick),
        /** Under a policy that promises: on what was promised last, or on something older. */
        promising: fc.option(fc.record({ old: rarely, none: rarely }), { freq: 1 }),
      }),
      async ({ store }, now, { site, list, reserved, promising }) => {
        const { jobs, machines } = await store.loadGrid(0);
        const queue = jobs.filter(({ state, siteId: held }) => state === 'DISPATCHED' && held === site);
        const here = machines.filter((machine) => machine.siteId === site);
        const starts = list.map(({ pick: n, offset, wrong }) => {
          const { job } = at(wrong ? jobs : queue, n) ?? NOBODY;
          const on: Record<number, number> = {};
          // A task on each machine from the offset on; wrong ones may be anywhere, or too few.
          for (let task = 0; task < job.tasks; task++) on[at(wrong ? machines : here, offset + task)!.id] = 1;
          return start(job.id, site, on, (offset % 5 === 0) !== job.licenses.length > 0 ? [1] : []);
        });
        const waiting = reserved === null ? undefined : at(queue, reserved);
        const kept = waiting ? reservation(site, waiting.job.id, here[0]!.id, { madeAt: now }) : null;
        const { revision } = await store.promises(site);
        const promises = promising && {
          revision: Math.max(0, revision - Number(promising.old)),
          promises: promising.none ? null : promiseTo(waiting?.job.id ?? 1, here[0]!.id, now),
        };
        const outcome = await store.applyStarts(site, starts, kept, context(now), promises);
        return { ...items(outcome), outdated: outcome.outdated, kept: await store.promises(site) };
      },
    ),
  },
  {
    weight: 6,
    arbitrary: operation(
      'reports',
      fc.record({
        site: siteId,
        agent: fc.constantFrom(null, null, 1, 2),
        list: fc.array(
          fc.record({
            pick,
            task: fc.constantFrom(null, null, 0, 0, 1, 2),
            stale: rarely,
            end: fc.option(cause, { freq: 1 }),
            ioWaitS: fc.constantFrom(null, 0, 2.5, 0.1 + 0.2, 1 / 3, 1000),
            cpuS: fc.constantFrom(null, 3),
          }),
          { minLength: 2, maxLength: 8 },
        ),
      }),
      async ({ store }, now, { site, agent, list }) => {
        const { jobs } = await store.loadGrid(0);
        const live = jobs.filter(({ run }) => run?.siteId === site);
        const reports = list.map(({ pick: n, task, stale, end, ...times }) => {
          const { job, run } = at(stale ? jobs : live, n) ?? NOBODY;
          return report(job.id, Math.max(1, (run?.epoch ?? 2) - Number(stale)), {
            at: now,
            task,
            phase: end === null ? 'STARTED' : 'ENDED',
            cause: end,
            exitCode: end === 'EXITED_ZERO' ? 0 : null,
            ...(end !== null && times),
          });
        });
        // Some again: the answer may have been lost.
        return sorted(await store.reportRuns(site, [...reports, ...reports.slice(0, 2)], 3, agent));
      },
    ),
  },
  operation('cancel', selection, async ({ store }, now, chosen) =>
    sorted(await store.cancel(chosen, now, 'CANCELLED_BY_USER')),
  ),
  operation('hold', selection, async ({ store }, _, chosen) => sorted(await store.hold(chosen))),
  operation('setAside', fc.uniqueArray(pick, { maxLength: 4 }), async ({ store }, _, list) => {
    const { jobs } = await store.loadGrid(0);
    return store.setAside([...new Set(list.map((n) => at(jobs, n)?.job.id ?? 99))], 'poisonous');
  }),
  operation('release', selection, async ({ store }, _, chosen) => sorted(await store.release(chosen))),
  operation(
    'reprioritize',
    fc.tuple(selection, fc.integer({ min: -5, max: 5 })),
    async ({ store }, _, [chosen, boost]) => sorted(await store.reprioritize(chosen, boost)),
  ),
  operation(
    'revise',
    fc.record({
      chosen: selection,
      values: fc.oneof(
        fc.record({ name: fc.constantFrom('a', null) }),
        fc.record(
          {
            memoryMbPerTask: fc.integer({ min: 0, max: 300 }),
            machineConstraint: fc.constantFrom(null, 'gen >= 3'),
            exclusive: fc.constantFrom(null, 'MACHINE' as const, 'USER' as const),
            boost: fc.integer({ min: -3, max: 3 }),
          },
          { requiredKeys: [] },
        ),
      ),
      wait: fc.option(
        fc.record(
          { on: pick, notBefore: fc.constantFrom(null, 5), needs: fc.boolean() },
          { requiredKeys: ['on', 'needs'] },
        ),
      ),
      memoryMbPerCpu: fc.constantFrom(null, null, 3),
      bytesMax: fc.constantFrom(null, 3000),
    }),
    async ({ store }, now, { chosen, values, memoryMbPerCpu, wait, bytesMax }) => {
      const { jobs } = await store.loadGrid(0);
      const on = at(jobs, wait?.on ?? 0)?.job.id ?? 1;
      const of = [{ job: on, condition: 'ANY' as const, minDelayS: 0 }];
      const changes = {
        ...{ values, memoryMbPerCpu, userId: 1, bytesMax, now, fault: () => null },
        wait: wait && {
          ...(wait.needs && { needs: [{ expression: 'ALL' as const, of }] }),
          ...('notBefore' in wait && { notBefore: wait.notBefore && now + wait.notBefore }),
        },
      };
      const outcome = await store.revise(chosen, changes);
      return { ...sorted(outcome), refused: outcome.refused };
    },
  ),
  {
    weight: 3,
    arbitrary: operation('settle', fc.constantFrom('DUE' as const, 'ALL' as const), ({ store }, now, about) =>
      store.settleNeeds(about, now),
    ),
  },
  operation('takeBack', fc.tuple(siteId, fc.constantFrom(1, 100)), ({ store }, now, [site, limit]) =>
    store.takeBack(site, context(now), limit),
  ),
  {
    weight: 2,
    arbitrary: operation(
      'return',
      fc.record({ site: siteId, list: fc.array(pick, { maxLength: 4 }) }),
      async ({ store }, now, { site, list }) => {
        const { jobs } = await store.loadGrid(0);
        const ids = list.map((n) => at(jobs, n)?.job.id ?? 99);
        return store.returnJobs(site, ids, 'NO_MACHINE_NOW', context(now));
      },
    ),
  },
  { weight: 3, arbitrary: directory },
  { weight: 16, arbitrary: wholeRuns },
  operation('site', fc.tuple(siteId, siteState), async (world, _, [site, state]) => {
    await world.setSiteState(site, state as 'UP');
  }),
  operation(
    'limit of a site',
    fc.tuple(siteId, fc.constantFrom(null, 40, 60)),
    async (world, _, [site, limit]) => {
      await world.setMaxLimit(site, limit);
    },
  ),
  operation('machine', fc.tuple(machineId, siteState), async (world, _, [machine, state]) => {
    await world.setMachineState(machine, state as 'UP');
  }),
  {
    weight: 4,
    arbitrary: operation(
      'heartbeat',
      fc.tuple(siteId, fc.uniqueArray(machineId, { minLength: 2 })),
      ({ store }, now, [site, machines]) => vouch(store, site, machines, now),
    ),
  },
  operation('user', fc.constantFrom('GOLD' as const, 'REGULAR' as const), async (world, _, userClass) => {
    await world.setUserClass(1, userClass);
  }),
  operation(
    'sweep',
    fc.constantFrom('RECORD' as const, 'CANCEL' as const),
    async ({ store }, now, onDeadlinePassed) => {
      return sorted(
        await store.sweep({
          now,
          silentAfterS: 40,
          lostAfterS: 80,
          runTimeGraceS: 10,
          onDeadlinePassed,
          maxAttempts: 3,
          limit: 100,
        }),
      );
    },
  ),
  operation(
    'assignments',
    siteId,
    async ({ store }, _, site) => (await store.assignments(site, null, 100, 2 ** 20)).assignments,
  ),
);

async function setUp(world: World): Promise<void> {
  await world.addUser('ann', 'REGULAR', { limit: 12, periodS: 60 });
  await world.addUser('bob');
  for (let site = 1; site <= SITES; site++) {
    // The second site runs three jobs at most, and shares one of its machines in time.
    await world.addSite(`s${site}`, site === 2 ? 3 : null);
    for (let n = 1; n <= MACHINES / SITES; n++)
      await world.addMachine(site, `m${n}`, 4, 600, [], site === 2 && n === 2 ? 2 : null);
    await vouch(world.store, site, [1, 2, 3, 4], T0);
  }
  await world.addLicense('cad', 1, null);
  await world.addDataset('one', 10, [1]);
  await world.addDataset('two', 20, []);
}

async function whatItIs({ store, events, ratioPoints }: World) {
  const { cursor: _, traffic, totals, ...grid } = await store.loadGrid(100);
  // Events have times of their own: in which interval they fall is no property of the operations, nor by when a run has to be gone.
  for (const { run } of grid.jobs) if (run?.stopsAt !== undefined) run.stopsAt = Infinity;
  const came = new Map<number, [number, number]>();
  for (const { siteId: site, arrivals, services } of traffic) {
    const [a, s] = came.get(site) ?? [0, 0];
    came.set(site, [a + arrivals, s + services]);
  }
  const paths = [];
  for (let id = 1; id <= 14; id++) {
    paths.push(
      (await events(id)).map((event) => [
        event.kind,
        event.seq,
        event.fromState,
        event.toState,
        event.siteId,
        event.fromSiteId,
        event.epoch,
        event.cause,
        event.note,
      ]),
    );
  }
  // A first event has no epoch, whichever store wrote it.
  return {
    grid,
    paths,
    traffic: [...came].sort(),
    // To the last bit: sums are exact, in one statement and one after another.
    totals: new Map(totals.map((each) => [`${each.application} ${each.userId} ${each.kinds}`, each])),
    points: await ratioPoints(),
  };
}

/** What it shares with others is theirs, too: which of them that was first differs. */
function described({ grid }: Mirror, id: number): Job | null {
  const job = grid.job(id);
  return job && fieldsOf(job);
}

async function picture(mirror: Mirror, store: Store) {
  await mirror.sync();
  const { grid } = mirror;
  const { jobs } = await store.loadGrid(0);
  return {
    // Of a job that runs, nobody reads the description again.
    places: jobs.map(({ job: { id }, run }) => [id, grid.placeOf(id), run === null && described(mirror, id)]),
    root: grid.root.length,
    sites: grid.sites.map(({ site, queue, meta, resources }) => [
      site,
      queue.length,
      meta.length,
      [...grid.index(LicenseRequests).of(queue)].sort(),
      resources.machines
        .map(({ machine, offset }) => [machine, resources.free.room.slice(offset, offset + resources.kinds)])
        .sort(),
    ]),
    margins: grid.index(Margins).last(100),
    policy: mirror.policy,
    datasets: [1, 2].map((id) => grid.index(DataCatalog).dataset(id)),
    links: grid.index(DataCatalog).link(1, 2),
    back: grid.index(DataCatalog).link(2, 1),
    shares: [1, 2, 3].map((userId) => grid.index(Shares).of(userId)),
    ratios: ['x', 'y', 'never'].flatMap((application) =>
      [1, 2].map((userId) =>
        grid.index(JobHistory).ratioOf({
          application,
          userId,
          licenses: [],
          os: null,
          architecture: null,
          data: null,
        }),
      ),
    ),
  };
}

/** Jobs that came to each site and were served there within the last hour. */
const traffic = ({ grid }: Mirror, now: number) =>
  grid.sites.map((entry) => [entry.site.id, grid.index(Traffic).of(entry.site.id).rates(now, 3600)]);

it('does on Postgres what it does in memory', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(operations, fc.integer({ min: 0, max: 15 })), { minLength: 30, maxLength: 60 }),
      fc.constantFrom(1, 2, 5, 1000),
      async (steps, batch) => {
        const model = memoryWorld();
        const real = await postgresWorld(database, test.pool);
        await setUp(model);
        await setUp(real);
        const follower = new Mirror(real.store, { batch, reservations: true });
        await follower.sync();
        let now = T0;
        for (const [step, seconds] of steps) {
          now += seconds;
          for (const { store } of [model, real]) await store.processSeen('p', 'api', now);
          const expected = await step(model, now);
          expect(await step(real, now), String(step)).toEqual(expected);
          if (seconds % 2 === 0) await follower.sync();
        }
        expect(await real.breaches()).toEqual([]);
        expect(await whatItIs(real)).toEqual(await whatItIs(model));
        const fresh = new Mirror(real.store, { reservations: true });
        expect(await picture(follower, real.store)).toEqual(await picture(fresh, real.store));
        const wall = Date.now() / 1000;
        expect(traffic(follower, wall)).toEqual(traffic(fresh, wall));
        const modeled = new Mirror(model.store, { reservations: true });
        expect(await picture(fresh, real.store)).toEqual(await picture(modeled, model.store));
      },
    ),
    { numRuns: cases(12), interruptAfterTimeLimit: 120_000 },
  );
});
