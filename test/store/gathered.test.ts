/** Submissions, and reports, that wait together are committed together, and each is answered as if it had come alone. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Database } from '../../src/store/pool.js';
import { PostgresStore } from '../../src/store/postgres.js';
import type { ReportOutcome, RunReport, Submission, SubmitResult } from '../../src/store/store.js';
import { withDatabase } from '../support/database.js';
import { cases } from '../support/seed.js';
import {
  assigned,
  ended,
  memoryWorld,
  newJob,
  openTestDatabase,
  postgresWorld,
  report,
  T0,
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
