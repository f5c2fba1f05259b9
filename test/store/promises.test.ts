/** The checkers are checked: each kind of damage is noticed, and the right promise is named. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Database } from '../../src/store/pool.js';
import { withDatabase } from '../support/database.js';
import { checkPromises } from '../support/promises.js';
import {
  assigned,
  ended,
  newJob,
  openTestDatabase,
  postgresWorld,
  report,
  submit,
  T0,
  vouch,
} from './world.js';

const test = withDatabase();
let database: Database;
beforeAll(() => {
  database = openTestDatabase(test.url);
});
afterAll(() => database.close());

/** Job 1 is assigned, 2 has ended, 3 waits. */
beforeEach(async () => {
  const world = await postgresWorld(database, test.pool);
  const user = await world.addUser('ann', 'REGULAR', { limit: 10, periodS: 60 });
  const site = await world.addSite('here');
  const cad = await world.addLicense('cad', 2, site);
  const machine = await world.addMachine(site, 'm1', 8, 100, [cad]);
  await vouch(world.store, site, [machine], T0);
  await assigned(world, user, site, machine, [newJob(), newJob()]);
  await world.store.reportRuns(site, [report(2, 1), ended(2, 1, { ioWaitS: 1 })], 3);
  await submit(world, user, [newJob()]);
  expect(await checkPromises(test.pool)).toEqual([]);
});

it.each([
  ['a job is lost', 'DELETE FROM jobs WHERE id = 3', /^1: every job of an accepted submission/],
  [
    'a job is in two submissions',
    `UPDATE submissions SET job_ids = '{1,3}', job_count = 2 WHERE id = 2`,
    /^1: .* no other submission/,
  ],
  [
    'a job ends twice',
    `UPDATE jobs SET seq = seq + 1 WHERE id = 2; INSERT INTO events (at, kind, entity_id, seq, from_state, to_state) VALUES (now(), 'JOB_STATE', 2, 6, 'RUNNING', 'COMPLETED')`,
    /^1: a job ends once/,
  ],
  [
    'a run goes on behind the end of its job',
    'UPDATE runs SET ended_at = NULL, cause = NULL WHERE job_id = 2',
    /^2: a job has one live run/,
  ],
  ['a run is missing', 'DELETE FROM runs WHERE job_id = 1', /^2: a job has one live run/],
  ['an epoch is skipped', 'UPDATE jobs SET epoch = 2 WHERE id = 2', /^2: epochs count/],
  ['a task is nowhere', 'UPDATE jobs SET tasks = 2 WHERE id = 1', /^2: a run places all tasks/],
  ['a machine counts too little', 'UPDATE machines SET cpus_used = 0', /^3: what machines count/],
  [
    'a time-shared machine counts too little',
    'UPDATE machines SET cpus_used = 0, max_tasks = 5',
    /^3: what machines count/,
  ],
  [
    'two tasks of a job share a machine in time',
    `UPDATE machines SET cpus_used = 0, max_tasks = 5, tasks_used = 2; UPDATE runs SET machine_tasks = '{2}' WHERE ended_at IS NULL`,
    /^3: no two tasks/,
  ],
  ['a license counts too much', 'UPDATE licenses SET in_use = 1', /^3: what licenses count/],
  [
    'a license is not held',
    `UPDATE jobs SET licenses = '{cad}' WHERE id = 1`,
    /^3: a live run holds one license/,
  ],
  ['a quota is exceeded', 'UPDATE users SET submission_limit = 2', /^3: no submission exceeds/],
  ['a count is wrong', 'UPDATE job_counts SET jobs = jobs + 1', /^3: the counts of jobs/],
  [
    'an event is missing',
    'DELETE FROM events WHERE entity_id = 2 AND seq = 2',
    /^4: a job's events are numbered/,
  ],
  [
    'the last event is missing',
    'DELETE FROM events WHERE entity_id = 3 AND seq IS NOT NULL',
    /^4: every job has events/,
  ],
  [
    'an event tells another state',
    `UPDATE events SET to_state = 'QUEUED' WHERE entity_id = 1 AND to_state = 'ASSIGNED'`,
    /^4: each event begins/,
  ],
  ['a job changed without an event', `UPDATE jobs SET state = 'HELD' WHERE id = 3`, /^4: each event begins/],
  [
    'a job is in a meta-queue to which nobody sent it',
    'UPDATE jobs SET site_id = 1 WHERE id = 3',
    /^7: who waits at a site/,
  ],
  ['a job moved without an event', 'UPDATE jobs SET site_id = 1 WHERE id = 3', /^4: each event begins/],
  [
    'an event tells another site',
    `UPDATE events SET from_site_id = 1 WHERE entity_id = 1 AND to_state = 'DISPATCHED'`,
    /^4: each event begins/,
  ],
  ['traffic is forgotten', 'UPDATE traffic SET services = 0', /^4: traffic/],
  [
    'traffic is made up',
    `INSERT INTO traffic VALUES (1, extract(epoch FROM now())::bigint / 5 * 5 - 60, 1, 0)`,
    /^4: traffic/,
  ],
  ['a run is not in the history', 'DELETE FROM job_ratios', /^7: every run that ended well/],
  ['a run was averaged twice', 'UPDATE run_totals SET count = count + 1', /^7: every run that ended well/],
  ['a run was not decided', `DELETE FROM decisions WHERE kind = 'START' AND job_id = 1`, /^7: every run/],
  [
    'a dispatch was not decided',
    `DELETE FROM decisions WHERE kind = 'DISPATCH' AND job_id = 1`,
    /^7: every move/,
  ],
  ['a decision cites no policy', 'UPDATE decisions SET policy_version = 9', /^7: every decision cites/],
])('%s', async (_, damage, promise) => {
  // Without triggers and foreign keys.
  await test.pool.query(`BEGIN; SET LOCAL session_replication_role = replica; ${damage}; COMMIT`);
  expect((await checkPromises(test.pool)).map((breach) => breach.promise)).toContainEqual(
    expect.stringMatching(promise),
  );
});
