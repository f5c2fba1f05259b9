/** Thirty days of load, licenses and usage over a million jobs that have ended, against reading their runs once. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '../src/platform/log.js';
import { startEmbeddedPostgres } from '../src/store/embedded.js';
import { Queries } from '../src/store/queries.js';
import { newDatabase } from './database.js';
import { type Bench, type Measured, seconds, sideBySide, sized } from './measure.js';

const JOBS = Number(process.env.BENCH_HISTORY_JOBS ?? sized(1_000_000, 1_000));
const DAYS = 30;
const SPAN_S = DAYS * 86_400;
/** The past as it was, without telling anybody of it: no trigger runs but the one that adds up hours. */
const FILL = [
  'SET session_replication_role = replica',
  'ALTER TABLE jobs ENABLE ALWAYS TRIGGER jobs_inserted_used, ENABLE ALWAYS TRIGGER jobs_updated_used',
  `INSERT INTO users (name) SELECT 'user-' || i FROM generate_series(1, 200) i`,
  `INSERT INTO sites (name) SELECT 'site-' || i FROM generate_series(1, 50) i`,
  `INSERT INTO licenses (kind, copies) VALUES ('solver', 1000)`,
  `INSERT INTO jobs (user_id, submitted_at, state, application, command, estimate_s, benchmark, cpus_per_task, site_id, epoch, started_at)
   SELECT 1 + i % 200, at, 'RUNNING', 'app-' || i % 100, 'true', 600, 100, 1 + i % 8, 1 + i % 50, 1, at + interval '60 s'
     FROM generate_series(1, ${JOBS}) i, LATERAL (SELECT now() - make_interval(secs => ${SPAN_S} * (1 - i::float8 / ${JOBS}) + 660) AS at) t`,
  `INSERT INTO runs (job_id, epoch, site_id, machine_ids, machine_tasks, cpus_per_task, memory_mb_per_task, license_ids, policy_version, assigned_at, planned_s,
                     started_at, ended_at, exit_code, cause)
   SELECT id, 1, site_id, '{1}', '{1}', cpus_per_task, 0, CASE id % 10 WHEN 0 THEN '{1}'::integer[] ELSE '{}' END, 1, started_at, 600, started_at, started_at + interval '600 s', 0, 'EXITED_ZERO'
     FROM jobs`,
  `UPDATE jobs SET state = 'COMPLETED', ended_at = started_at + interval '600 s', cause = 'EXITED_ZERO'`,
  'SET session_replication_role = origin',
  'VACUUM ANALYZE jobs',
  'VACUUM ANALYZE runs',
  // As it lies where hours were written one after another.
  'CLUSTER used_hours USING used_hours_pkey',
  'VACUUM ANALYZE used_hours',
];
const BARE = 'SELECT count(*), sum(cpus_per_task), max(ended_at) FROM runs';

export const historyBench: Bench = {
  names: ['history-load', 'history-licenses', 'history-usage'],
  async run(only) {
    const home = mkdtempSync(join(tmpdir(), 'switchyard-bench-'));
    const server = await startEmbeddedPostgres({
      home,
      log: createLogger({ level: 'warn', process: 'bench' }),
    });
    try {
      const { database } = await newDatabase(server, 'history', { poolSize: 4, statementTimeoutMs: 600_000 });
      const client = await database.pool.connect();
      for (const statement of FILL) await client.query(statement);
      client.release();

      const queries = new Queries(database);
      const to = Date.now() / 1000;
      const window = { from: to - SPAN_S, to, points: 60 };
      const asked = {
        'history-load': () => queries.loadHistory(window, null),
        'history-licenses': () => queries.licenseHistory(window, 'solver'),
        'history-usage': () => queries.usage(window, { by: 'USER', owner: null, now: to, limit: 100 }),
      };
      const results: Measured[] = [];
      for (const [name, ask] of Object.entries(asked)) {
        if (!only(name)) continue;
        const about = {
          name,
          unit: 's' as const,
          aim: { value: 1 },
          what: `${DAYS} days of ${name.slice(8)} over ${JOBS.toLocaleString('en-US').replaceAll(',', ' ')} jobs; against reading their runs once`,
        };
        results.push(
          await sideBySide(
            about,
            5,
            () => seconds(ask),
            () => seconds(() => database.pool.query(BARE)),
          ),
        );
      }
      await database.close();
      return results;
    } finally {
      await server.stop();
      rmSync(home, { recursive: true, force: true });
    }
  },
};
