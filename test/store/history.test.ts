/** Use over time and by whom: compared with what a plain loop over the same jobs and runs makes of it. */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/store/pool.js';
import { Queries } from '../../src/store/queries.js';
import { withDatabase } from '../support/database.js';
import { openTestDatabase, postgresWorld, T0 } from './world.js';

const db = withDatabase();
let database: Database;
let queries: Queries;
let sites: number[];
let users: number[];
let pools: number[];

interface Ran {
  site: number;
  at: number;
  /** null: it still runs. */
  end: number | null;
  tasks: number;
  licensed: boolean;
}
interface Lived {
  user: number;
  application: string;
  submitted: number;
  runs: Ran[];
  ended: number | null;
  failed: boolean;
}

beforeAll(async () => {
  database = openTestDatabase(db.url);
  queries = new Queries(database);
  const world = await postgresWorld(database, db.pool);
  users = [await world.addUser('ann'), await world.addUser('bob')];
  sites = [await world.addSite('north'), await world.addSite('south')];
  pools = [await world.addLicense('solver', 100, sites[0]!), await world.addLicense('solver', 100, null)];
});
afterAll(() => database.close());

/** One after another, each at most so long. */
const gap = fc.integer({ min: 1, max: 400 });
const lived: fc.Arbitrary<Lived> = fc
  .record({
    user: fc.integer({ min: 0, max: 1 }),
    application: fc.constantFrom('a', 'b'),
    submitted: fc.integer({ min: -900, max: 900 }),
    runs: fc.array(
      fc.record({
        site: fc.integer({ min: 0, max: 1 }),
        waits: gap,
        lasts: gap,
        tasks: fc.integer({ min: 1, max: 9 }),
        licensed: fc.boolean(),
      }),
      { maxLength: 3 },
    ),
    ends: fc.constantFrom('well', 'badly', 'never'),
  })
  .map(({ user, application, submitted, runs, ends }) => {
    let at = submitted;
    const made = runs.map(({ site, waits, lasts, tasks, licensed }, i): Ran => {
      const begin = at + waits;
      at = begin + lasts;
      const open = ends === 'never' && i === runs.length - 1;
      return { site, at: begin, end: open ? null : at, tasks, licensed };
    });
    return {
      user,
      application,
      submitted,
      runs: made,
      ended: ends === 'never' ? null : at,
      failed: ends === 'badly',
    };
  });

const CPUS_PER_TASK = 2;

/** As they are, past the triggers: only reading is what is tested. */
async function write(jobs: readonly Lived[]): Promise<void> {
  const client = await db.pool.connect();
  try {
    await client.query('BEGIN; SET LOCAL session_replication_role = replica; TRUNCATE jobs, runs CASCADE');
    for (const [i, job] of jobs.entries()) {
      const last = job.runs.at(-1);
      await client.query(
        `INSERT INTO jobs (id, user_id, application, command, estimate_s, benchmark, state, site_id, epoch, submitted_at, started_at, ended_at, cause)
         VALUES ($1, $2, $3, 'x', 1, 1, $4::job_state, $5, $6, to_timestamp($7), to_timestamp($8), to_timestamp($9), $10::end_cause)`,
        [
          i + 1,
          users[job.user],
          job.application,
          job.ended === null ? (last ? 'RUNNING' : 'QUEUED') : job.failed ? 'FAILED' : 'COMPLETED',
          last ? sites[last.site] : null,
          job.runs.length,
          T0 + job.submitted,
          last ? T0 + last.at : null,
          job.ended === null ? null : T0 + job.ended,
          job.ended === null ? null : 'EXITED_ZERO',
        ],
      );
      for (const [epoch, run] of job.runs.entries()) {
        await client.query(
          `INSERT INTO runs (job_id, epoch, site_id, machine_ids, machine_tasks, cpus_per_task, memory_mb_per_task, license_ids, policy_version, assigned_at, planned_s, ended_at, cause)
           VALUES ($1, $2, $3, '{1,2}', $4, $5, 0, $6, 1, to_timestamp($7), 1, to_timestamp($8), $9::end_cause)`,
          [
            i + 1,
            epoch + 1,
            sites[run.site],
            [run.tasks, 1],
            CPUS_PER_TASK,
            run.licensed ? [pools[run.site]] : [],
            T0 + run.at,
            run.end === null ? null : T0 + run.end,
            run.end === null ? null : 'EXITED_ZERO',
          ],
        );
      }
    }
    await client.query('COMMIT');
  } finally {
    client.release();
  }
}

/** How long both last. */
const overlap = (from: number, to: number, begin: number, end: number | null): number =>
  Math.max(0, Math.min(to, end ?? to) - Math.max(from, begin));
const cpusOf = (run: Ran): number => CPUS_PER_TASK * (run.tasks + 1);
const sum = (values: readonly number[]): number => values.reduce((total, one) => total + one, 0);

describe('what was used', () => {
  test('is what the jobs and runs say, for any window', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(lived, { maxLength: 12 }),
        fc.integer({ min: -1000, max: 900 }),
        fc.integer({ min: 1, max: 2000 }),
        fc.integer({ min: 1, max: 20 }),
        async (jobs, start, length, points) => {
          await write(jobs);
          const window = { from: T0 + start, to: T0 + start + length, points };
          const width = length / points;
          const intervals = Array.from({ length: points }, (_, i) => start + i * width);
          const runs = jobs.flatMap((job) => job.runs.map((run) => ({ ...run, job })));
          const mean = (of: readonly Ran[], weight: (run: Ran) => number) =>
            intervals.map((from) =>
              sum(of.map((run) => (weight(run) * overlap(from, from + width, run.at, run.end)) / width)),
            );
          const close = (found: readonly (number | null)[], wanted: readonly number[]): void => {
            expect(found.length).toBe(wanted.length);
            for (const [i, value] of found.entries()) expect(value).toBeCloseTo(wanted[i]!, 4);
          };

          const grid = await queries.loadHistory(window, null);
          close(
            grid.map(({ at }) => at - T0),
            intervals,
          );
          const running = mean(runs, () => 1);
          close(
            grid.map(({ cpus }) => cpus),
            mean(runs, cpusOf),
          );
          close(
            grid.map(({ running }) => running),
            running,
          );
          const alive = intervals.map((from) =>
            sum(jobs.map((job) => overlap(from, from + width, job.submitted, job.ended) / width)),
          );
          close(
            grid.map(({ waiting }) => waiting),
            alive.map((jobs, i) => jobs - running[i]!),
          );
          const north = runs.filter(({ site }) => site === 0);
          const there = await queries.loadHistory(window, sites[0]!);
          close(
            there.map(({ cpus }) => cpus),
            mean(north, cpusOf),
          );
          expect(there.every(({ waiting }) => waiting === null)).toBe(true);
          const licensed = await queries.licenseHistory(window, 'solver');
          close(
            licensed.map(({ inUse }) => inUse),
            mean(
              runs.filter((run) => run.licensed),
              () => 1,
            ),
          );

          for (const owner of [null, 0]) {
            const seen = jobs.filter((job) => owner === null || job.user === owner);
            for (const application of ['a', 'b']) {
              const rows = await queries.usage(window, {
                by: 'APPLICATION',
                owner: owner === null ? null : users[owner]!,
                now: T0 + 100_000,
                limit: 10,
              });
              const own = seen.filter((job) => job.application === application);
              const ended = own.filter(
                (job) => job.ended !== null && job.ended >= start && job.ended < start + length,
              );
              const active = own
                .flatMap((job) => job.runs)
                .filter((run) => run.at < start + length && (run.end === null || run.end > start));
              const row = rows.find((one) => one.application === application);
              if (ended.length + active.length === 0) {
                expect(row).toBeUndefined();
                continue;
              }
              const started = ended.filter((job) => job.runs.length > 0);
              expect(row).toMatchObject({
                runs: active.length,
                endedJobs: ended.length,
                failedJobs: ended.filter((job) => job.failed).length,
              });
              expect(row!.cpuS).toBeCloseTo(
                sum(active.map((run) => cpusOf(run) * overlap(start, start + length, run.at, run.end))),
                2,
              );
              if (started.length === 0) expect(row!.meanWaitS).toBeNull();
              else
                expect(row!.meanWaitS).toBeCloseTo(
                  sum(started.map((job) => job.runs.at(-1)!.at - job.submitted)) / started.length,
                  2,
                );
            }
          }
        },
      ),
      { numRuns: 40 },
    );
  });

  test('is added up by user and by site, most CPU time first', async () => {
    const run = (site: number, tasks: number): Ran => ({ site, at: 0, end: 100, tasks, licensed: false });
    const job = (user: number, ran: Ran): Lived => ({
      user,
      application: 'a',
      submitted: -10,
      runs: [ran],
      ended: 100,
      failed: false,
    });
    await write([job(0, run(0, 1)), job(1, run(1, 4)), job(1, run(0, 2))]);
    const window = { from: T0, to: T0 + 200 };
    const options = { owner: null, now: T0 + 200, limit: 10 };
    const byUser = await queries.usage(window, { ...options, by: 'USER' });
    expect(byUser.map(({ userId, siteId, cpuS }) => [userId, siteId, cpuS])).toEqual([
      [users[1], null, 1600],
      [users[0], null, 400],
    ]);
    const bySite = await queries.usage(window, { ...options, by: 'SITE' });
    expect(bySite.map(({ siteId, runs, meanWaitS }) => [siteId, runs, meanWaitS])).toEqual([
      [sites[0], 2, 10],
      [sites[1], 1, 10],
    ]);
    expect(await queries.usage(window, { ...options, by: 'SITE', limit: 1 })).toHaveLength(1);
  });
});
