/** Submissions that wait together are committed together, and each is answered as if it had come alone. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Database } from '../../src/store/pool.js';
import { PostgresStore } from '../../src/store/postgres.js';
import type { Submission, SubmitResult } from '../../src/store/store.js';
import { withDatabase } from '../support/database.js';
import { cases } from '../support/seed.js';
import { memoryWorld, newJob, openTestDatabase, postgresWorld, T0, type World } from './world.js';

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
