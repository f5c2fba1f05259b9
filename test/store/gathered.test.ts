/** Submissions, reports, and plans of sites that wait together are committed together, and each is answered as if it had come alone. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Start } from '../../src/core/model.js';
import type { Database } from '../../src/store/pool.js';
import { PostgresStore } from '../../src/store/postgres.js';
import type {
  NewJob,
  ReportOutcome,
  RunReport,
  StartOutcome,
  Submission,
  SubmitResult,
} from '../../src/store/store.js';
import { withDatabase } from '../support/database.js';
import { cases } from '../support/seed.js';
import {
  assigned,
  context,
  dispatched,
  ended,
  memoryWorld,
  newJob,
  openTestDatabase,
  postgresWorld,
  report,
  reservation,
  start,
  T0,
  vouch,
  type World,
} from './world.js';

const test = withDatabase();
let database: Database;
beforeAll(() => {
  database = openTestDatabase(test.url);
});
afterAll(() => database.close());

const LIVE_MAX = 60;
const QUOTAS = [undefined, { limit: 7, periodS: 60 }, { limit: 3, periodS: 2 }];

const addUsers = async (world: World): Promise<number[]> => {
  const ids: number[] = [];
  for (const [i, quota] of QUOTAS.entries()) ids.push(await world.addUser(`user-${i}`, 'REGULAR', quota));
  return ids;
};

const single = (userId: number, change: Partial<Submission> = {}): Submission => ({
  userId,
  idempotencyKey: null,
  payloadHash: 'x',
  jobs: [newJob()],
  now: T0,
  ...change,
});

const anySubmission = fc.record({
  user: fc.integer({ min: 0, max: QUOTAS.length - 1 }),
  // Few keys and payloads, so that they meet.
  idempotencyKey: fc.constantFrom(null, null, null, 'a', 'b'),
  payloadHash: fc.constantFrom('x', 'x', 'x', 'y'),
  // The last is refused by the database.
  estimates: fc.array(fc.constantFrom(...Array.from({ length: 19 }, (_, i) => i + 1), -1), {
    minLength: 1,
    maxLength: 3,
  }),
  share: fc.constantFrom(undefined, undefined, { jobs: 9, bytes: 1e9 }, { jobs: 100, bytes: 2_000 }),
  late: fc.integer({ min: 0, max: 3 }),
});

/** Ids as places among all that were given: some are left out where a statement failed. */
function answered(outcomes: readonly PromiseSettledResult<SubmitResult>[]): unknown[] {
  const told = outcomes.map((one) => (one.status === 'fulfilled' ? one.value : one.reason.code));
  const given = told.flatMap((one) => (one.kind === 'accepted' && !one.repeated ? one.jobIds : []));
  expect(given).toEqual([...new Set(given)].sort((a, b) => a - b));
  return told.map((one) =>
    one.kind === 'accepted'
      ? { ...one, groupId: one.groupId !== null, jobIds: one.jobIds.map((id: number) => given.indexOf(id)) }
      : one,
  );
}

it('any submissions that come at once are answered as if each had come behind the one before', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anySubmission, { minLength: 2, maxLength: 90 }), async (asked) => {
      const memory = memoryWorld({ liveJobsMax: LIVE_MAX });
      const postgres = await postgresWorld(database, test.pool, { liveJobsMax: LIVE_MAX });
      const users = { memory: await addUsers(memory), postgres: await addUsers(postgres) };
      const made = (ids: readonly number[]): Submission[] =>
        asked.map(({ user, late, estimates, ...one }) => ({
          ...one,
          userId: ids[user] as number,
          now: T0 + late,
          jobs: estimates.map((estimateS) => newJob({ estimateS })),
        }));
      const behind: PromiseSettledResult<SubmitResult>[] = [];
      for (const one of made(users.memory))
        behind.push(...(await Promise.allSettled([memory.store.submit(one)])));
      const atOnce = await Promise.allSettled(made(users.postgres).map((one) => postgres.store.submit(one)));
      expect(answered(atOnce)).toEqual(answered(behind));
      expect(await postgres.breaches()).toEqual([]);
    }),
    { numRuns: cases(200) },
  );
});

it('those that come while others are committed share a transaction, with their entries in the audit log', async () => {
  const world = await postgresWorld(database, test.pool);
  const users = [await world.addUser('ann'), await world.addUser('bob')];
  const audit = (jobIds: readonly number[]) => ({
    ...{ userId: users[0] as number, requestId: 'r', action: 'submitJob', reason: null },
    ...{ target: `job-${jobIds[0]}`, after: { jobIds } },
  });
  await Promise.all(
    Array.from({ length: 100 }, (_, i) => world.store.submit(single(users[i % 2] as number, { audit }))),
  );
  const { rows } = await test.pool.query(`
    SELECT count(*)::int AS jobs, count(DISTINCT j.xmin::text)::int AS transactions, count(s.id)::int AS submissions, count(e.id)::int AS events, count(a.id)::int AS audits
      FROM jobs j LEFT JOIN submissions s ON s.job_ids = ARRAY[j.id] AND s.user_id = j.user_id
      LEFT JOIN events e ON e.entity_id = j.id AND e.kind = 'JOB_STATE' LEFT JOIN audits a ON a.target = 'job-' || j.id`);
  expect(rows).toEqual([{ jobs: 100, transactions: 2, submissions: 100, events: 100, audits: 100 }]);
});

it('nobody waits for a user whose row somebody else has locked', async () => {
  const world = await postgresWorld(database, test.pool);
  const [ann, bob] = [await world.addUser('ann'), await world.addUser('bob')];
  const holder = await test.pool.connect();
  await holder.query('BEGIN');
  await holder.query('SELECT FROM users WHERE id = $1 FOR NO KEY UPDATE', [ann]);
  let isOver = false;
  const held = Promise.all([world.store.submit(single(ann)), world.store.submit(single(ann))]).finally(() => {
    isOver = true;
  });
  for (let i = 0; i < 3; i++)
    expect(await world.store.submit(single(bob))).toMatchObject({ kind: 'accepted', repeated: false });
  expect(isOver).toBe(false);
  await holder.query('COMMIT');
  holder.release();
  expect(await held).toMatchObject([{ kind: 'accepted' }, { kind: 'accepted' }]);
  await expect(world.store.submit(single(bob + 1))).rejects.toThrow(`submission.userId is ${bob + 1}`);
});

it('two processes take no more of a user than its quota, and its key for one submission', async () => {
  const other = openTestDatabase(test.url);
  try {
    const world = await postgresWorld(database, test.pool);
    const ann = await world.addUser('ann', 'REGULAR', { limit: 30, periodS: 60 });
    const stores = [world.store, new PostgresStore(other)];
    const results = await Promise.all(
      Array.from({ length: 80 }, (_, i) =>
        stores[i % 2]!.submit(single(ann, { idempotencyKey: i < 20 ? 'once' : null })),
      ),
    );
    const accepted = results.filter((one) => one.kind === 'accepted');
    expect(accepted.filter((one) => !one.repeated)).toHaveLength(30);
    expect(new Set(accepted.flatMap(({ jobIds }) => jobIds)).size).toBe(30);
    expect(await world.breaches()).toEqual([]);
  } finally {
    await other.close();
  }
});

const AGENTS = 4;
const JOBS = 6;

interface Reporter {
  siteId: number;
  agentId: number;
}

/** Agents of a site each, with jobs of their own. */
async function addAgents(world: World): Promise<{ agents: Reporter[]; jobs: number[] }> {
  const user = await world.addUser('ann');
  const agents: Reporter[] = [];
  const jobs: number[] = [];
  for (let i = 0; i < AGENTS; i++) {
    const siteId = await world.addSite(`site-${i}`);
    const machine = await world.addMachine(siteId, 'm', JOBS);
    const machines = [{ name: 'm', measured: null, problem: null, waits: null }];
    const agent = { siteId, identity: `agent-${i}`, instance: '1', host: 'h', version: '1', protocol: 3 };
    const { agentId } = await world.store.registerAgent({ ...agent, simulated: true, machines }, T0, 1);
    agents.push({ siteId, agentId: agentId as number });
    const restartable = i % 2 === 0;
    const made = Array.from({ length: JOBS }, () => newJob({ restartable }));
    jobs.push(...(await assigned(world, user, siteId, machine, made)));
  }
  return { agents, jobs };
}

const anyReport = fc.record({
  // The last is of no job.
  job: fc.integer({ min: 0, max: AGENTS * JOBS }),
  // Mostly the agent that has the job.
  by: fc.constantFrom(null, null, null, null, null, 0, 1),
  epoch: fc.constantFrom(1, 1, 1, 2),
  ends: fc.boolean(),
  cause: fc.constantFrom('EXITED_ZERO', 'EXITED_ZERO', 'EXITED_NONZERO', 'LOST', 'MACHINE_FAILED' as const),
});

it('any reports of several agents that come at once are taken as if each had come behind the one before', async () => {
  const round = fc.array(anyReport, { minLength: 1, maxLength: 24 });
  await fc.assert(
    fc.asyncProperty(fc.array(round, { minLength: 1, maxLength: 3 }), async (rounds) => {
      const memory = memoryWorld();
      const postgres = await postgresWorld(database, test.pool);
      const told = [await addAgents(memory), await addAgents(postgres)] as const;
      for (const reports of rounds) {
        // In a round each job is reported of by one agent: which of two comes first is chance.
        const reporter = new Map<number, number>();
        for (const { job, by } of reports)
          if (!reporter.has(job)) reporter.set(job, by ?? Math.min(AGENTS - 1, Math.floor(job / JOBS)));
        const batches = Array.from({ length: AGENTS }, (_, agent) =>
          reports.filter(({ job }) => reporter.get(job) === agent),
        );
        const tell = (world: World, at: number) =>
          batches.map((batch, i) => async (): Promise<ReportOutcome> => {
            const { agents, jobs } = told[at as 0 | 1];
            const { siteId, agentId } = agents[i]!;
            const made = batch.map(
              ({ job, epoch, ends, cause }): RunReport =>
                ends
                  ? ended(jobs[job] ?? 99_999, epoch, { cause: cause as 'LOST' })
                  : report(jobs[job] ?? 99_999, epoch),
            );
            const outcome = await world.store.reportRuns(siteId, made, 2, agentId);
            return { ...outcome, touched: [...outcome.touched].sort((a, b) => (a ?? 0) - (b ?? 0)) };
          });
        const behind: ReportOutcome[] = [];
        for (const one of tell(memory, 0)) behind.push(await one());
        const atOnce = await Promise.all(tell(postgres, 1).map((one) => one()));
        expect(atOnce).toEqual(behind);
      }
      const happened = async (world: World, jobs: readonly number[]) =>
        Promise.all(
          jobs.map(async (id) =>
            (await world.events(id)).map(({ fromState, toState }) => [fromState, toState]),
          ),
        );
      expect(await happened(postgres, told[1].jobs)).toEqual(await happened(memory, told[0].jobs));
      expect(await postgres.breaches()).toEqual([]);
    }),
    { numRuns: cases(150) },
  );
});

it('reports of several agents share a transaction; nobody waits for a job that somebody else has locked', async () => {
  const world = await postgresWorld(database, test.pool);
  const { agents, jobs } = await addAgents(world);
  const holder = await test.pool.connect();
  await holder.query('BEGIN');
  await holder.query('SELECT FROM jobs WHERE id = $1 FOR NO KEY UPDATE', [jobs[0]]);
  let isOver = false;
  const tell = ({ siteId, agentId }: Reporter, i: number): Promise<ReportOutcome> =>
    world.store.reportRuns(siteId, [report(jobs[i * JOBS]!, 1)], 1, agentId);
  const held = tell(agents[0]!, 0).finally(() => {
    isOver = true;
  });
  const others = await Promise.all([1, 2, 3].map((i) => tell(agents[i]!, i)));
  expect(others.map(({ results }) => results)).toEqual([['accepted'], ['accepted'], ['accepted']]);
  expect(isOver).toBe(false);
  const { rows } = await test.pool.query(
    `SELECT count(*)::int AS events, count(DISTINCT xmin::text)::int AS transactions FROM events WHERE to_state = 'RUNNING'`,
  );
  expect(rows).toEqual([{ events: 3, transactions: 1 }]);
  await holder.query('COMMIT');
  holder.release();
  expect((await held).results).toEqual(['accepted']);
});

const SITES = 4;

/** What a test of starts has in both worlds. By site: its machines, and the jobs in its queue; the second may run two jobs at once. */
interface Grid {
  sites: number[];
  machines: number[];
  jobs: number[];
  /** The grid's, and the first site's. */
  licenses: [number, number];
}

/** The jobs in the queue of each site. */
const KINDS: readonly Partial<NewJob>[] = [
  {},
  { licenses: ['cad'] },
  { licenses: ['cad'] },
  { exclusive: 'USER' },
  { exclusive: 'MACHINE' },
  { cpusPerTask: 2, runTimeLimitS: 50 },
];

async function addGrid(world: World): Promise<Grid> {
  const users = [await world.addUser('ann'), await world.addUser('bob')];
  const sites: number[] = [];
  for (let i = 0; i < SITES; i++) sites.push(await world.addSite(`site-${i}`, i === 1 ? 2 : null));
  const licenses: Grid['licenses'] = [
    await world.addLicense('cad', 3, null),
    await world.addLicense('cad', 1, sites[0]!),
  ];
  const machines: number[] = [];
  for (const site of sites) {
    const own = [
      await world.addMachine(site, 'small', 2, 100),
      await world.addMachine(site, 'shared', 2, 100, [], 3),
    ];
    await vouch(world.store, site, own, T0);
    machines.push(...own);
  }
  // That there are promises is known of a site that has made some.
  for (const site of sites)
    await world.store.applyStarts(site, [], null, context(), { revision: 0, promises: null });
  const { id: reservationId } = await world.createHold({
    ...{ kind: 'USER', name: null, siteId: sites[2]!, userId: users[0]!, userIds: [] },
    ...{ held: { of: 'MACHINES', machineIds: [machines[4]!], amounts: { cpus: 1 } }, onConflict: 'REFUSE' },
    ...{ times: [{ from: T0 + 100, to: T0 + 200 }], recurrence: null, reason: null, idleS: null },
    shared: [{ kind: 'cad', amount: 1 }],
  });
  const jobs: number[] = [];
  for (const [place, site] of sites.entries())
    for (const [i, kind] of KINDS.entries()) {
      const inside = place === 2 && i === 0 ? { reservationId } : {};
      const made = newJob({ runTimeLimitS: i % 2 === 0 ? null : 500, ...kind, ...inside });
      jobs.push(...(await dispatched(world, users[i % 2]!, site, [made])));
    }
  return { sites, machines, jobs, licenses };
}

const anyStart = fc.record({
  // Mostly of the site's queue, and on its machines.
  job: fc.constantFrom(0, 1, 1, 2, 2, 3, 4, 5),
  ofSite: fc.constantFrom(null, null, null, null, null, null, null, 0, 3),
  machine: fc.constantFrom(0, 0, 0, 1, 1, 1, 2, 7),
  license: fc.constantFrom(true, true, true, false),
  fromGrid: fc.constantFrom(true, true, true, false),
});

const anyPlan = fc.record({
  starts: fc.array(anyStart, { minLength: 1, maxLength: 6, size: 'max' }),
  reserves: fc.constantFrom(null, null, 0, 1),
  promises: fc.constantFrom(null, null, null, 'kept', 'kept', 'nothing', 'outdated' as const),
  siteState: fc.constantFrom(...Array.from({ length: 8 }, () => 'UP' as const), 'DRAINING', 'DOWN' as const),
  now: fc.constantFrom(0, 0, 110),
});

type AnyPlan = typeof anyPlan extends fc.Arbitrary<infer T> ? T : never;

/** The plan of a site, made on what it has promised by now. */
async function planIn(
  world: World,
  grid: Grid,
  place: number,
  asked: AnyPlan,
): Promise<() => Promise<unknown>> {
  const siteId = grid.sites[place]!;
  const starts = asked.starts.map(({ job, ofSite, machine, license, fromGrid }) => {
    const licensed = KINDS[job]?.licenses && license;
    const pool = grid.licenses[fromGrid ? 0 : 1];
    const id = grid.jobs[(ofSite ?? place) * KINDS.length + job]!;
    return start(
      id,
      siteId,
      { [grid.machines[(place * 2 + machine) % (2 * SITES)]!]: 1 },
      licensed ? [pool] : [],
    );
  });
  const job = grid.jobs[place * KINDS.length + (asked.reserves ?? 0)]!;
  const on = grid.machines[place * 2 + 1]!;
  const kept = asked.reserves === null ? null : reservation(siteId, job, on);
  const { revision } = await world.store.promises(siteId);
  const room = { runs: 0, amounts: { cpus: place, memoryMb: 0 }, copies: [] };
  const promises = asked.promises && {
    revision: asked.promises === 'outdated' ? revision - 1 : revision,
    promises: asked.promises === 'nothing' ? null : { room, jobs: [] },
  };
  return async () => {
    const { refused, ...outcome } = await world.store.applyStarts(
      siteId,
      starts,
      kept,
      context(T0 + asked.now),
      promises,
    );
    return { ...outcome, refused: refused.map(({ jobId }) => jobId) };
  };
}

it('any plans of several sites that come at once are carried out as if each had come behind the one before', async () => {
  const round = fc.tuple(...Array.from({ length: SITES }, () => anyPlan));
  await fc.assert(
    fc.asyncProperty(fc.array(round, { minLength: 1, maxLength: 3, size: 'max' }), async (rounds) => {
      const memory = memoryWorld();
      const postgres = await postgresWorld(database, test.pool);
      const grids = [await addGrid(memory), await addGrid(postgres)] as const;
      const prepared = async (world: World, grid: Grid, plans: readonly AnyPlan[]) => {
        for (const [place, { siteState }] of plans.entries())
          await world.setSiteState(grid.sites[place]!, siteState);
        return Promise.all(plans.map((plan, place) => planIn(world, grid, place, plan)));
      };
      for (const plans of rounds) {
        const behind: unknown[] = [];
        for (const apply of await prepared(memory, grids[0], plans)) behind.push(await apply());
        const atOnce = await Promise.all((await prepared(postgres, grids[1], plans)).map((apply) => apply()));
        expect(atOnce).toEqual(behind);
      }
      const left = async ({ store, events }: World, { sites, jobs }: Grid) => ({
        reservations: (await store.reservations()).sort((a, b) => a.siteId - b.siteId),
        promises: await Promise.all(sites.map((site) => store.promises(site))),
        events: (await Promise.all(jobs.map((id) => events(id)))).map((all) =>
          all.map(({ toState, siteId, epoch }) => [toState, siteId, epoch]),
        ),
      });
      expect(await left(postgres, grids[1])).toEqual(await left(memory, grids[0]));
      expect(await postgres.breaches()).toEqual([]);
    }),
    { numRuns: cases(200) },
  );
});

/** A start at each of so many sites, which do not share anything. */
async function addStarts(world: World, count: number): Promise<{ siteId: number; one: Start }[]> {
  const user = await world.addUser('ann');
  const starts: { siteId: number; one: Start }[] = [];
  for (let i = 0; i < count; i++) {
    const siteId = await world.addSite(`site-${i}`, i === 0 ? 5 : null);
    const machine = await world.addMachine(siteId, 'm', 2);
    const license = await world.addLicense('cad', 1, siteId);
    await vouch(world.store, siteId, [machine], T0);
    const [id] = await dispatched(world, user, siteId, [newJob({ licenses: ['cad'] })]);
    starts.push({ siteId, one: start(id!, siteId, { [machine]: 1 }, [license]) });
  }
  return starts;
}

it.each([
  ['site', 'sites WHERE id = $1'],
  ['job', 'jobs WHERE site_id = $1'],
  ['machine', 'machines WHERE site_id = $1'],
  ['license', 'licenses WHERE site_id = $1'],
  ['promise', 'promises WHERE site_id = $1'],
  ['reservation', 'reservations WHERE site_id = $1'],
])(
  'plans of several sites share a transaction; none waits for the %s of one that somebody else has locked',
  async (_, rows) => {
    const world = await postgresWorld(database, test.pool);
    const starts = await addStarts(world, 4);
    const apply = async ({ siteId, one }: (typeof starts)[number], revision: number, own: readonly Start[]) =>
      (
        await world.store.applyStarts(
          siteId,
          own,
          reservation(siteId, one.jobId, one.allocations[0]!.machineId, { at: T0 + revision }),
          context(),
          { revision, promises: null },
        )
      ).accepted;
    for (const each of starts) await apply(each, 0, []);
    const holder = await test.pool.connect();
    await holder.query('BEGIN');
    await holder.query(`SELECT FROM ${rows} FOR NO KEY UPDATE`, [starts[0]!.siteId]);
    let isOver = false;
    const all = starts.map((each) => apply(each, 1, [each.one]));
    void all[0]!.finally(() => {
      isOver = true;
    });
    expect(await Promise.all(all.slice(1))).toEqual(starts.slice(1).map(({ one }) => [one.jobId]));
    expect(isOver).toBe(false);
    const { rows: told } = await test.pool.query(
      `SELECT count(*)::int AS events, count(DISTINCT xmin::text)::int AS transactions FROM events WHERE to_state = 'ASSIGNED'`,
    );
    expect(told).toEqual([{ events: 3, transactions: 1 }]);
    await holder.query('COMMIT');
    holder.release();
    expect(await all[0]).toEqual([starts[0]!.one.jobId]);
    expect(await world.breaches()).toEqual([]);
  },
);

it('each plan is decided under its own policy and cycle, and what the database refuses of one is said of that one', async () => {
  const world = await postgresWorld(database, test.pool);
  const starts = await addStarts(world, 3);
  const outcomes = await Promise.allSettled(
    starts.map(({ siteId, one }, i) =>
      world.store.applyStarts(siteId, [one], null, {
        ...{ cycle: `cycle-${i}`, now: T0 + i, policyVersion: i === 1 ? 99 : 1 },
      }),
    ),
  );
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(outcomes[1]).toMatchObject({ reason: { code: '23503' } });
  const { rows } = await test.pool.query(
    `SELECT job_id::int, cycle, date_part('epoch', d.at) AS decided, date_part('epoch', r.assigned_at) AS assigned
       FROM decisions d JOIN runs r USING (job_id) WHERE kind = 'START' ORDER BY job_id`,
  );
  const decided = [0, 2].map((i) => ({ decided: T0 + i, assigned: T0 + i, cycle: `cycle-${i}` }));
  expect(rows).toEqual(decided.map((each, i) => ({ ...each, job_id: starts[2 * i]!.one.jobId })));
});

it('what a site takes of a license of the grid is not there for the next, in the same transaction', async () => {
  const world = await postgresWorld(database, test.pool);
  const ann = await world.addUser('ann');
  const pool = await world.addLicense('cad', 2, null);
  const plans: (() => Promise<StartOutcome>)[] = [];
  for (let i = 0; i < 3; i++) {
    const site = await world.addSite(`site-${i}`);
    const machine = await world.addMachine(site, 'm', 8);
    await vouch(world.store, site, [machine], T0);
    const [id] = await dispatched(world, ann, site, [newJob({ licenses: ['cad'] })]);
    const one = start(id!, site, { [machine]: 1 }, [pool]);
    plans.push(() => world.store.applyStarts(site, [one], null, context()));
  }
  const outcomes = await Promise.all(plans.map((apply) => apply()));
  expect(outcomes.map(({ accepted }) => accepted.length)).toEqual([1, 1, 0]);
  expect(outcomes[2]!.refused).toMatchObject([{ why: `license ${pool} has too few free copies` }]);
  // Had the database refused it, each would have gone by itself.
  const { rows } = await test.pool.query(
    `SELECT count(DISTINCT xmin::text)::int AS transactions FROM events WHERE to_state = 'ASSIGNED'`,
  );
  expect(rows).toEqual([{ transactions: 1 }]);
});

it('sites of two processes take no more of a license than there is, and of a site as much as it may run', async () => {
  const other = openTestDatabase(test.url);
  try {
    const world = await postgresWorld(database, test.pool);
    const ann = await world.addUser('ann');
    const pool = await world.addLicense('cad', 5, null);
    const stores = [world.store, new PostgresStore(other)];
    const plans: (() => Promise<readonly number[]>)[] = [];
    for (let i = 0; i < 12; i++) {
      const site = await world.addSite(`site-${i}`, i % 3 === 0 ? 1 : null);
      const machine = await world.addMachine(site, 'm', 8);
      await vouch(world.store, site, [machine], T0);
      const made = Array.from({ length: 2 }, () => newJob({ licenses: ['cad'] }));
      for (const [n, id] of (await dispatched(world, ann, site, made)).entries())
        plans.push(async () => {
          const one = start(id, site, { [machine]: 1 }, [pool]);
          return (await stores[n]!.applyStarts(site, [one], null, context())).accepted;
        });
    }
    expect((await Promise.all(plans.map((apply) => apply()))).flat()).toHaveLength(5);
    expect(await world.breaches()).toEqual([]);
  } finally {
    await other.close();
  }
});
