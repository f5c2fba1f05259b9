/** What a job shows is in order of time, though the clock of the database is set, forward and back. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Database } from '../../src/store/pool.js';
import { Queries } from '../../src/store/queries.js';
import type { RunReport } from '../../src/store/store.js';
import { withDatabase } from '../support/database.js';
import {
  byIds,
  context,
  move,
  newJob,
  openTestDatabase,
  postgresWorld,
  report,
  start,
  submit,
  T0,
  vouch,
  type World,
} from './world.js';

const test = withDatabase();
let database: Database;
let world: World;

beforeAll(async () => {
  database = openTestDatabase(test.url);
  world = await postgresWorld(database, test.pool);
});

afterAll(async () => {
  await database.close();
});

it('the times of a job and of its runs are in order, whatever the clock said in between', async () => {
  const { store } = world;
  const queries = new Queries(database);
  const user = await world.addUser('ann');
  const site = await world.addSite('here');
  const machine = await world.addMachine(site, 'm1', 8);
  await vouch(store, site, [machine], T0);
  const [id, waiting] = await submit(world, user, [newJob(), newJob()]);
  const job = async (of = id!) => {
    const { submittedAt, dispatchedAt, endedAt } = (await queries.jobsByIds([of]))[0]!;
    return { submittedAt, dispatchedAt, endedAt };
  };
  const attempt = async (clock: number) => {
    await store.applyMoves([move(id!, site)], context(clock));
    await store.applyStarts(site, [start(id!, site, { [machine]: 1 })], null, context(clock - 1_000));
  };
  await attempt(T0 - 1_000);
  expect(await job()).toEqual({ submittedAt: T0, dispatchedAt: T0, endedAt: null });
  // The agent's clock is right, and says when it began, and that it is lost.
  await store.reportRuns(site, [report(id!, 1, { at: T0 + 50 })], 3);
  await store.reportRuns(site, [report(id!, 1, { phase: 'ENDED', cause: 'LOST', at: T0 + 60 })], 3);
  await attempt(T0 - 5_000);
  expect(await job()).toEqual({ submittedAt: T0, dispatchedAt: T0 + 60, endedAt: null });
  const runs = await queries.runsOfJobs([id!]);
  expect(
    runs.map(({ epoch, assignedAt, startedAt, endedAt }) => [epoch, assignedAt, startedAt, endedAt]),
  ).toEqual(
    expect.arrayContaining([
      [1, T0, T0 + 50, T0 + 60],
      [2, T0 + 60, null, null],
    ]),
  );
  await store.cancel(byIds([waiting!]), T0 - 9_000, 'CANCELLED_BY_USER');
  expect(await job(waiting)).toEqual({ submittedAt: T0, dispatchedAt: null, endedAt: T0 });
});

it('a run lasts as long as its agent says, however wrong the clock is there', async () => {
  const { store } = world;
  const user = await world.addUser('eve');
  const site = await world.addSite('where clocks are wrong');
  const machine = await world.addMachine(site, 'm2', 8);
  await vouch(store, site, [machine], T0);
  for (const wrongS of [-3_600, -90, 0, 90, 3_600]) {
    const [id] = await submit(world, user, [newJob()]);
    await store.applyMoves([move(id!, site)], context(T0));
    await store.applyStarts(site, [start(id!, site, { [machine]: 1 })], null, context(T0));
    const began = Date.now() / 1000 + wrongS - 30;
    const told = (more: Partial<RunReport>) => report(id!, 1, { ...more, sentAt: began + 30 });
    await store.reportRuns(site, [told({ at: began })], 3);
    const end = { phase: 'ENDED', cause: 'EXITED_ZERO', at: began + 20 } as const;
    await store.reportRuns(site, [told(end)], 3);
    const { startedAt, endedAt } = (await new Queries(database).runsOfJobs([id!]))[0]!;
    expect(endedAt! - startedAt!, `${wrongS} s wrong`).toBeCloseTo(20, 0);
  }
});

it('so are its events', async () => {
  const { store } = world;
  const user = await world.addUser('bob');
  const [id] = await submit(world, user, [newJob()]);
  // It was changed while the clock was an hour ahead.
  await test.pool.query(
    "UPDATE jobs SET seq = seq + 1, boost = -1, changed_at = clock_timestamp() + interval '1 hour' WHERE id = $1",
    [id],
  );
  await store.hold(byIds([id!]));
  await store.cancel(byIds([id!]), T0, 'CANCELLED_BY_USER');
  const { rows } = await test.pool.query<{ at: Date }>(
    'SELECT at FROM events WHERE entity_id = $1 AND seq IS NOT NULL ORDER BY seq',
    [id],
  );
  const times = rows.map(({ at }) => at.getTime());
  expect(times).toHaveLength(4);
  expect(times).toEqual([...times].sort((a, b) => a - b));
});
