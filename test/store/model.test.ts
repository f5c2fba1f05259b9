/**
 * Any sequence of operations has the same outcomes on Postgres as on the plain maps of `MemoryStore`, breaks no promise, and
 * leaves a mirror that followed it where a mirror is that loads the end of it.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { EndCause } from '../../src/core/states.js';
import { Mirror } from '../../src/store/mirror.js';
import type { Database } from '../../src/store/pool.js';
import type { JobSelection, Store } from '../../src/store/store.js';
import { withDatabase } from '../support/database.js';
import {
  context,
  memoryWorld,
  move,
  newJob,
  openTestDatabase,
  postgresWorld,
  report,
  reservation,
  start,
  T0,
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
const siteState = fc.constantFrom('UP', 'UP', 'DRAINING', 'DOWN');
const cause = fc.constantFrom<EndCause>('EXITED_ZERO', 'EXITED_NONZERO', 'LOST', 'REFUSED', 'LAUNCH_FAILED');

const job = fc.record({
  tasks: fc.integer({ min: 1, max: 2 }),
  cpusPerTask: fc.integer({ min: 1, max: 2 }),
  memoryMbPerTask: fc.constantFrom(0, 300),
  licences: fc.constantFrom<string[]>([], [], ['cad']),
  deadline: fc.constantFrom(null, T0 + 150, T0 + 400.25),
  runTimeLimitS: fc.constantFrom(null, 50),
  restartable: fc.boolean(),
  held: fc.constantFrom(false, false, true),
  application: fc.constantFrom('x', 'y'),
});

const selection: fc.Arbitrary<JobSelection> = fc
  .record({
    ownedBy: fc.constantFrom(null, null, 1, 2),
    limit: fc.constantFrom(2, 100, 100),
    what: fc.oneof(
      fc.record({ ids: jobIds }),
      fc.record({
        filter: fc.record({ siteId, application: fc.constantFrom('x', 'y') }, { requiredKeys: [] }),
      }),
    ),
  })
  .map(({ what, ...rest }) => ({ ...rest, ...what }));

const placed = fc.record({
  id: jobId,
  at: siteId,
  on: fc.uniqueArray(machineId, { minLength: 1, maxLength: 2 }),
  tasks: fc.integer({ min: 1, max: 2 }),
  licence: fc.boolean(),
});

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

const operations = fc.oneof(
  {
    weight: 3,
    arbitrary: operation(
      'submit',
      fc.record({
        user: fc.constantFrom(1, 2),
        key: fc.constantFrom(null, null, 'k'),
        jobs: fc.array(job, { minLength: 1, maxLength: 3 }),
      }),
      ({ store }, now, { user, key, jobs }) =>
        store.submit({
          userId: user,
          idempotencyKey: key,
          payloadHash: String(jobs.length),
          jobs: jobs.map(newJob),
          now,
        }),
    ),
  },
  {
    weight: 5,
    arbitrary: operation(
      'moves',
      fc.array(fc.tuple(jobId, siteId, fc.constantFrom(null, null, null, 1)), { maxLength: 8 }),
      async ({ store }, now, moves) =>
        items(
          await store.applyMoves(
            moves.map(([id, to, from]) => move(id, to, from)),
            context(now),
          ),
        ),
    ),
  },
  {
    weight: 6,
    arbitrary: operation(
      'starts',
      fc.tuple(siteId, fc.array(placed, { maxLength: 6 }), fc.option(fc.tuple(jobId, machineId))),
      async ({ store }, now, [site, list, reserved]) => {
        // A reservation is for a job that there is.
        const known = (await store.loadGrid(0)).jobs.some(({ job: { id } }) => id === reserved?.[0]);
        const starts = list.map(({ id, at, on, tasks, licence }) =>
          start(id, at, Object.fromEntries(on.map((machine) => [machine, tasks])), licence ? [1] : []),
        );
        return items(
          await store.applyStarts(
            site,
            starts,
            reserved && known ? reservation(site, reserved[0], reserved[1]) : null,
            context(now),
          ),
        );
      },
    ),
  },
  {
    weight: 6,
    arbitrary: operation(
      'reports',
      fc.tuple(
        siteId,
        fc.array(fc.record({ id: jobId, epoch: fc.constantFrom(1, 1, 2, 3), end: fc.option(cause) }), {
          maxLength: 8,
        }),
      ),
      async ({ store }, now, [site, list]) =>
        sorted(
          await store.reportRuns(
            site,
            list.map(({ id, epoch, end }) =>
              report(id, epoch, {
                at: now,
                phase: end === null ? 'STARTED' : 'ENDED',
                cause: end,
                exitCode: end === 'EXITED_ZERO' ? 0 : null,
              }),
            ),
            3,
          ),
        ),
    ),
  },
  operation('cancel', selection, async ({ store }, now, chosen) =>
    sorted(await store.cancel(chosen, now, 'CANCELLED_BY_USER')),
  ),
  operation('hold', selection, async ({ store }, _, chosen) => sorted(await store.hold(chosen))),
  operation('release', selection, async ({ store }, _, chosen) => sorted(await store.release(chosen))),
  operation(
    'reprioritise',
    fc.tuple(selection, fc.integer({ min: -5, max: 5 })),
    async ({ store }, _, [chosen, boost]) => sorted(await store.reprioritise(chosen, boost)),
  ),
  operation('takeBack', fc.tuple(siteId, fc.constantFrom(1, 100)), ({ store }, now, [site, limit]) =>
    store.takeBack(site, context(now), limit),
  ),
  operation('site', fc.tuple(siteId, siteState), async (world, _, [site, state]) => {
    await world.setSiteState(site, state as 'UP');
  }),
  operation('machine', fc.tuple(machineId, siteState), async (world, _, [machine, state]) => {
    await world.setMachineState(machine, state as 'UP');
  }),
  operation('heartbeat', fc.tuple(siteId, fc.uniqueArray(machineId)), ({ store }, now, [site, machines]) =>
    store.heartbeat(site, machines, now),
  ),
  operation('user', fc.constantFrom('GOLD' as const, 'REGULAR' as const), async (world, _, userClass) => {
    await world.setUserClass(1, userClass);
  }),
  operation(
    'sweep',
    fc.constantFrom('RECORD' as const, 'CANCEL' as const),
    async ({ store }, now, onDeadlinePassed) => {
      await store.processSeen('p', 'api', now);
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
    async ({ store }, _, site) => (await store.assignments(site, null, 100)).assignments,
  ),
);

async function setUp(world: World): Promise<void> {
  await world.addUser('ann', 'REGULAR', { limit: 12, periodS: 60 });
  await world.addUser('bob');
  for (let site = 1; site <= SITES; site++) {
    await world.addSite(`s${site}`);
    for (let n = 1; n <= MACHINES / SITES; n++) await world.addMachine(site, `m${n}`, 4, 600);
    await world.store.heartbeat(site, [1, 2, 3, 4], T0);
  }
  await world.addLicence('cad', 1, null);
}

async function whatItIs({ store, events }: World) {
  const { cursor: _, ...grid } = await store.loadGrid(100);
  const paths = [];
  for (let id = 1; id <= 14; id++) {
    paths.push(
      (await events(id)).map((event) => [
        event.kind,
        event.seq,
        event.fromState,
        event.toState,
        event.epoch,
        event.cause,
      ]),
    );
  }
  // A first event has no epoch, whichever store wrote it.
  return { grid, paths };
}

async function picture(mirror: Mirror, store: Store) {
  await mirror.sync();
  const { grid } = mirror;
  const { jobs } = await store.loadGrid(0);
  return {
    places: jobs.map(({ job: { id } }) => [id, grid.placeOf(id), grid.job(id)]),
    root: grid.root.length,
    sites: grid.sites.map(({ site, queue, resources, requests }) => [
      site,
      queue.length,
      [...requests].sort(),
      resources.machines
        .map(({ machine, freeCpus, freeMemoryMb }) => [machine, freeCpus, freeMemoryMb])
        .sort(),
    ]),
    margins: grid.lastMargins(100),
    policy: mirror.policy,
  };
}

it('does on Postgres what it does in memory', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(operations, fc.integer({ min: 0, max: 15 })), { minLength: 10, maxLength: 40 }),
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
          const expected = await step(model, now);
          expect(await step(real, now), String(step)).toEqual(expected);
          if (seconds % 2 === 0) await follower.sync();
        }
        expect(await real.breaches()).toEqual([]);
        expect(await whatItIs(real)).toEqual(await whatItIs(model));
        const fresh = new Mirror(real.store, { reservations: true });
        expect(await picture(follower, real.store)).toEqual(await picture(fresh, real.store));
        const modelled = new Mirror(model.store, { reservations: true });
        expect(await picture(fresh, real.store)).toEqual(await picture(modelled, model.store));
      },
    ),
    { numRuns: 40, verbose: 0 },
  );
}, 180_000);
