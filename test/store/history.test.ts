/** Use over time and by whom: compared with what a plain loop over the same jobs and runs makes of it. */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/store/pool.js';
import { Queries } from '../../src/store/queries.js';
import { withDatabase } from '../support/database.js';
import { cases } from '../support/seed.js';
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
  /** Of the pool of its site. */
  copies: number;
  /** For each task. */
  gpus: number;
  /** These are asked for by what they are. */
  byName: boolean;
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
        copies: fc.integer({ min: 0, max: 3 }),
        gpus: fc.integer({ min: 0, max: 2 }),
        byName: fc.boolean(),
      }),
      { maxLength: 3 },
    ),
    ends: fc.constantFrom('well', 'badly', 'never'),
  })
  .map(({ user, application, submitted, runs, ends }) => {
    let at = submitted;
    const made = runs.map(({ site, waits, lasts, tasks, copies, gpus, byName }, i): Ran => {
      const begin = at + waits;
      at = begin + lasts;
      const open = ends === 'never' && i === runs.length - 1;
      return { site, at: begin, end: open ? null : at, tasks, copies, gpus, byName };
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

/** Of all triggers those that add up the hours are the only ones: nothing else is tested here. */
const WRITING = `SET LOCAL session_replication_role = replica;
  ALTER TABLE jobs ENABLE ALWAYS TRIGGER jobs_inserted_used, ENABLE ALWAYS TRIGGER jobs_updated_used;
  TRUNCATE jobs, runs, used_hours, used_resources, job_counts CASCADE`;

/** As they live: submitted, run after run, and ended, in a few statements for all of them. */
async function write(jobs: readonly Lived[]): Promise<void> {
  const all = jobs.map((job, i) => ({
    ...{ ...job, id: i + 1, user: users[job.user], last: job.runs.at(-1) },
    licenses: job.runs.some(({ copies }) => copies > 0) ? '{solver}' : '{}',
    resources: job.runs.some(({ gpus, byName }) => gpus > 0 && !byName) ? { gpu: 1 } : undefined,
    devices: job.runs.some(({ gpus, byName }) => gpus > 0 && byName)
      ? [{ kind: 'gpu', count: 1, model: null, minMemoryMb: null, share: null }]
      : undefined,
  }));
  const client = await db.pool.connect();
  const apply = (statement: string, items: readonly object[]) =>
    client.query(statement, [JSON.stringify(items)]);
  try {
    await client.query(`BEGIN; ${WRITING}`);
    await apply(
      `INSERT INTO jobs (id, user_id, application, command, estimate_s, benchmark, state, submitted_at, licenses, resources_per_task, devices_per_task)
       SELECT id, "user", application, 'x', 1, 1, 'QUEUED', to_timestamp(${T0} + submitted), licenses::text[], resources, devices
         FROM json_to_recordset($1) AS t (id bigint, "user" integer, application text, submitted float8, licenses text, resources jsonb, devices jsonb)`,
      all,
    );
    for (let epoch = 1; epoch <= 3; epoch++) {
      const runs = all.flatMap(({ id, runs }) => {
        const run = runs[epoch - 1];
        if (!run) return [];
        const licenses = `{${new Array(run.copies).fill(pools[run.site]).join()}}`;
        const tasks = `{${run.tasks},1}`;
        const resources = run.gpus > 0 && !run.byName ? { gpu: run.gpus } : undefined;
        const taken =
          run.gpus > 0 && run.byName
            ? [run.tasks, 1].map((n) => ({ amounts: { cpus: n * CPUS_PER_TASK, gpu: n * run.gpus } }))
            : undefined;
        return [
          {
            ...run,
            id,
            site: sites[run.site],
            tasks,
            licenses,
            resources,
            taken,
            isLast: runs.length === epoch,
          },
        ];
      });
      await apply(
        `INSERT INTO runs (job_id, epoch, site_id, machine_ids, machine_tasks, cpus_per_task, memory_mb_per_task, license_ids, policy_version, assigned_at, planned_s, ended_at, cause, resources_per_task, taken)
         SELECT id, ${epoch}, site, '{1,2}', tasks::integer[], ${CPUS_PER_TASK}, 0, licenses::integer[], 1, to_timestamp(${T0} + at), 1, to_timestamp(${T0} + "end"),
                CASE WHEN "end" IS NOT NULL THEN 'EXITED_ZERO'::end_cause END, resources, taken
           FROM json_to_recordset($1) AS t (id bigint, site integer, tasks text, licenses text, at float8, "end" float8, resources jsonb, taken jsonb)`,
        runs,
      );
      await apply(
        `UPDATE jobs j SET state = 'RUNNING', epoch = ${epoch}, site_id = site, started_at = to_timestamp(${T0} + at)
           FROM json_to_recordset($1) AS t (id bigint, site integer, at float8) WHERE j.id = t.id`,
        runs,
      );
      await apply(
        `UPDATE jobs j SET state = 'QUEUED', site_id = NULL, started_at = NULL FROM json_to_recordset($1) AS t (id bigint) WHERE j.id = t.id`,
        runs.filter(({ isLast }) => !isLast),
      );
    }
    await apply(
      `UPDATE jobs j SET state = CASE WHEN failed THEN 'FAILED' ELSE 'COMPLETED' END::job_state, ended_at = to_timestamp(${T0} + ended), cause = 'EXITED_ZERO'
         FROM json_to_recordset($1) AS t (id bigint, failed boolean, ended float8) WHERE j.id = t.id`,
      all.filter(({ ended }) => ended !== null),
    );
    await client.query(`
      INSERT INTO job_counts SELECT coalesce(site_id, 0), state, count(*) FROM jobs WHERE ended_at IS NULL GROUP BY 1, 2;
      COMMIT`);
  } finally {
    client.release();
  }
}

/** The same jobs, so many times as long and as far apart. */
const stretched = (jobs: readonly Lived[], by: number): Lived[] =>
  jobs.map((job) => ({
    ...job,
    submitted: job.submitted * by,
    ended: job.ended && job.ended * by,
    runs: job.runs.map((run) => ({ ...run, at: run.at * by, end: run.end && run.end * by })),
  }));

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
        // No time is a whole hour: what ends with one is a matter of taste.
        fc.constantFrom(1, 299.003),
        async (drawn, begin, lasts, asked, scale) => {
          const jobs = stretched(drawn, scale);
          await write(jobs);
          const window = { from: T0 + begin * scale, to: T0 + (begin + lasts) * scale, points: asked };
          const grid = await queries.loadHistory(window, null);
          const isLong = window.to - window.from > 86_400;
          // Beyond a day whole hours, from the one before to the one behind.
          const from = isLong ? Math.floor(window.from / 3600) * 3600 : window.from;
          const width = isLong
            ? Math.ceil((window.to - from) / 3600 / asked) * 3600
            : (window.to - from) / asked;
          const points = isLong ? Math.ceil((window.to - from) / width) : asked;
          const start = from - T0;
          const length = width * points;
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
            mean(runs, ({ copies }) => copies),
          );

          const had = ({ gpus, tasks }: Ran): number => gpus * (tasks + 1);
          for (const [site, of] of [
            [null, runs],
            [sites[0]!, north],
          ] as const)
            close(
              (await queries.resourceHistory(window, 'gpu', site)).map(({ inUse }) => inUse),
              mean(of, had),
            );
          for (const none of ['tpu', 'license:solver'])
            expect(
              (await queries.resourceHistory(window, none, null)).every(({ inUse }) => inUse === 0),
            ).toBe(true);

          const end = isLong ? Math.ceil(window.to / 3600) * 3600 - T0 : start + length;
          for (const owner of [null, 0]) {
            const seen = jobs.filter((job) => owner === null || job.user === owner);
            for (const application of ['a', 'b']) {
              const rows = await queries.usage(window, {
                by: 'APPLICATION',
                owner: owner === null ? null : users[owner]!,
                now: window.to + 1_000_000,
                limit: 10,
              });
              const own = seen.filter((job) => job.application === application);
              const ended = own.filter((job) => job.ended !== null && job.ended >= start && job.ended < end);
              const active = own
                .flatMap((job) => job.runs)
                .filter((run) => run.at < end && (run.end === null || run.end > start));
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
                sum(active.map((run) => cpusOf(run) * overlap(start, end, run.at, run.end))),
                2,
              );
              const all = (of: (run: Ran) => number): number =>
                sum(active.map((run) => of(run) * overlap(start, end, run.at, run.end)));
              const wanted = {
                gpu: all(had),
                'license:solver': all(({ copies }) => copies),
              };
              expect(row!.resources.map(({ resource }) => resource)).toEqual(
                Object.entries(wanted).flatMap(([kind, amount]) => (amount > 0 ? [kind] : [])),
              );
              for (const { resource, amountS } of row!.resources)
                expect(amountS).toBeCloseTo(wanted[resource as keyof typeof wanted], 2);
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
      { numRuns: cases(40) },
    );
  });

  test('is added up by user and by site, most CPU time first', async () => {
    const run = (site: number, tasks: number): Ran => ({
      site,
      at: 0,
      end: 100,
      tasks,
      copies: 0,
      gpus: site,
      byName: false,
    });
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
    expect(byUser.map(({ resources }) => resources)).toEqual([[{ resource: 'gpu', amountS: 500 }], []]);
    expect(await queries.usage(window, { ...options, by: 'SITE', limit: 1 })).toHaveLength(1);
  });

  test('is charged without what was lost to preemption, and without jobs that are not charged', async () => {
    const run = (site: number, tasks: number, end: number | null = 100): Ran => ({
      ...{ site, at: 0, end, tasks, copies: 0, gpus: 0, byName: false },
    });
    const job = (user: number, ran: Ran): Lived => ({
      ...{ user, application: 'a', submitted: -10, runs: [ran], ended: ran.end, failed: false },
    });
    await write([job(0, run(0, 1)), job(1, run(1, 4)), job(1, run(0, 2)), job(0, run(0, 1, null))]);
    await db.pool.query(`BEGIN; SET LOCAL session_replication_role = replica; UPDATE jobs SET charged = false WHERE id IN (2, 4);
      UPDATE runs SET cause = 'PREEMPTED', started_at = to_timestamp(${T0 + 10}), checkpoint_at = to_timestamp(${T0 + 60}) WHERE job_id = 3;
      COMMIT`);
    // Of 6 CPUs the last 40 s are lost; 10 CPUs are not charged, and 4 that still run.
    for (const [from, to] of [
      [T0, T0 + 200],
      [T0 - 86_400 * 2, T0 + 3600],
    ] as const) {
      const asked = { owner: null, now: T0 + 200, limit: 10, by: 'USER' as const };
      const found = await queries.usage({ from, to }, asked);
      const of = (user: number) => found.find(({ userId }) => userId === users[user]);
      expect(of(0)?.cpuS).toBeCloseTo(400 + 4 * 200, 3);
      expect(of(0)?.chargedCpuS).toBeCloseTo(400, 3);
      expect(of(1)?.cpuS).toBeCloseTo(1000 + 600, 3);
      expect(of(1)?.chargedCpuS).toBeCloseTo(360, 3);
    }
    // Only the second half of what was lost.
    const late = { owner: null, now: T0 + 200, limit: 10, by: 'SITE' as const };
    const [site] = (await queries.usage({ from: T0 + 80, to: T0 + 100 }, late)).filter(
      ({ siteId }) => siteId === sites[0],
    );
    expect([site?.cpuS, site?.chargedCpuS]).toEqual([(4 + 6 + 4) * 20, 4 * 20]);
  });
});
