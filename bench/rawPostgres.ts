/**
 * The baseline: the rows that a job leaves in Postgres, written by bare `pg` with statements that carry thousands of
 * rows, without checks, triggers, or anybody who decides anything. What is above it is the price of the product.
 */
import pg from 'pg';

const TABLES = `
  DROP SCHEMA IF EXISTS bench CASCADE;
  CREATE SCHEMA bench;
  CREATE TABLE bench.jobs (LIKE public.jobs INCLUDING IDENTITY INCLUDING DEFAULTS, PRIMARY KEY (id)) WITH (fillfactor = 60);
  CREATE INDEX ON bench.jobs (user_id, id);
  CREATE TABLE bench.submissions (LIKE public.submissions INCLUDING DEFAULTS, PRIMARY KEY (id));
  CREATE TABLE bench.runs (LIKE public.runs INCLUDING DEFAULTS, PRIMARY KEY (job_id, epoch)) WITH (fillfactor = 70);
  CREATE TABLE bench.decisions (LIKE public.decisions INCLUDING IDENTITY INCLUDING DEFAULTS, PRIMARY KEY (id));
  CREATE TABLE bench.events (LIKE public.events INCLUDING IDENTITY INCLUDING DEFAULTS, PRIMARY KEY (id));
  CREATE UNIQUE INDEX ON bench.events (entity_id, seq);
  CREATE TABLE bench.job_needs (LIKE public.job_needs INCLUDING DEFAULTS, PRIMARY KEY (job_id));
  CREATE TABLE bench.need_edges (LIKE public.need_edges);
  CREATE INDEX ON bench.need_edges (on_job, job_id) WHERE on_job IS NOT NULL;
  CREATE INDEX ON bench.need_edges (job_id);
`;

const INSERT_JOBS = `INSERT INTO bench.jobs (user_id, application, command, estimate_s, benchmark, state, submitted_at)
  SELECT 1, u.name, u.name, 60, 100, 'QUEUED', now() FROM unnest($1::text[]) AS u (name) RETURNING id`;
const INSERT_EVENTS = `INSERT INTO bench.events (at, kind, entity_id, seq, to_state, user_id)
  SELECT now(), 'JOB_STATE', u.id, $2, $3::job_state, 1 FROM unnest($1::bigint[]) AS u (id)`;
/** Of each job ($1) so many before it ($2), found by place: nothing is sent, or parsed, but ids. */
const INSERT_NEEDS = `INSERT INTO bench.job_needs (job_id, needs, on_unmet)
  SELECT j.id, jsonb_build_array(jsonb_build_object('expression', 'ALL', 'of',
      (SELECT jsonb_agg(jsonb_build_object('job', ($1::bigint[])[j.place - k], 'condition', 'OK', 'minDelayS', 0)) FROM generate_series(1, least($2::bigint, j.place - 1)) AS k))),
    'CANCEL' FROM unnest($1::bigint[]) WITH ORDINALITY AS j (id, place)`;
const INSERT_EDGES = `INSERT INTO bench.need_edges (job_id, on_job)
  SELECT j.id, ($1::bigint[])[j.place - k] FROM unnest($1::bigint[]) WITH ORDINALITY AS j (id, place), generate_series(1, least($2::bigint, j.place - 1)) AS k`;
const UPDATE_NEEDS = `UPDATE bench.job_needs SET open = false, due_at = now() WHERE job_id = ANY ($1::bigint[])`;
const UPDATE_JOBS = `UPDATE bench.jobs SET state = $2::job_state, seq = seq + 1 WHERE id = ANY ($1::bigint[])`;
const INSERT_RUNS = `INSERT INTO bench.runs (job_id, epoch, site_id, machine_ids, machine_tasks, cpus_per_task, memory_mb_per_task, policy_version, assigned_at, planned_s)
  SELECT u.id, 1, 1, '{1}', '{1}', 1, 0, 1, now(), 60 FROM unnest($1::bigint[]) AS u (id)`;
const UPDATE_RUNS = `UPDATE bench.runs SET ended_at = CASE WHEN $2 THEN now() END WHERE job_id = ANY ($1::bigint[])`;
const INSERT_DECISIONS = `INSERT INTO bench.decisions (job_id, at, kind, reason, policy_version, cycle, site_id, detail)
  SELECT u.id, now(), 'DISPATCH', 'IDLE_SITE', 1, 'bench', 1, u.detail FROM unnest($1::bigint[], $2::text[]) AS u (id, detail)`;

const INSERT_SINGLE = `WITH j AS (
    INSERT INTO bench.jobs (user_id, application, command, estimate_s, benchmark, state, submitted_at)
    VALUES (1, 'true', 'true', 60, 100, 'HELD', now()) RETURNING id
  ), s AS (
    INSERT INTO bench.submissions (id, user_id, payload_hash, job_ids, job_count, at) SELECT id, 1, 'x', ARRAY[id], 1, now() FROM j
  ) INSERT INTO bench.events (at, kind, entity_id, seq, to_state, user_id) SELECT now(), 'JOB_STATE', id, 1, 'HELD', 1 FROM j`;

const END_SINGLE = `WITH j AS (UPDATE bench.jobs SET state = 'COMPLETED', seq = seq + 1 WHERE id = $1::bigint),
    r AS (UPDATE bench.runs SET ended_at = now() WHERE job_id = $1::bigint)
  INSERT INTO bench.events (at, kind, entity_id, seq, to_state, user_id) VALUES (now(), 'JOB_STATE', $1::bigint, 2, 'COMPLETED', 1)`;

const START_SINGLE = `WITH j AS (UPDATE bench.jobs SET state = 'ASSIGNED', seq = seq + 1, epoch = 1 WHERE id = $1::bigint),
    r AS (INSERT INTO bench.runs (job_id, epoch, site_id, machine_ids, machine_tasks, cpus_per_task, memory_mb_per_task, policy_version, assigned_at, planned_s)
      VALUES ($1::bigint, 1, 1, '{1}', '{1}', 1, 0, 1, now(), 60)),
    d AS (INSERT INTO bench.decisions (job_id, at, kind, reason, policy_version, cycle, site_id, detail)
      VALUES ($1::bigint, now(), 'START', 'HEAD', 1, 'bench', 1, repeat('x', 100)))
  INSERT INTO bench.events (at, kind, entity_id, seq, to_state, user_id) VALUES (now(), 'JOB_STATE', $1::bigint, 3, 'ASSIGNED', 1)`;

/** Connections that insert single jobs, start them, or end their runs, each in a transaction of its own. */
export async function bareConnections(
  url: string,
  connections: number,
): Promise<{
  insert: () => Promise<unknown>;
  start: (id: number) => Promise<unknown>;
  end: (id: number) => Promise<unknown>;
  close: () => Promise<void>;
}> {
  const pool = new pg.Pool({ connectionString: url, max: connections });
  // Those that the server ends when it stops.
  pool.on('error', () => {});
  await Promise.all(Array.from({ length: connections }, () => pool.query('SELECT')));
  return {
    insert: () => pool.query(INSERT_SINGLE),
    start: (id) => pool.query(START_SINGLE, [id]),
    end: (id) => pool.query(END_SINGLE, [id]),
    close: () => pool.end(),
  };
}

export class RawPostgres {
  private constructor(private readonly client: pg.Client) {}

  static async open(url: string): Promise<RawPostgres> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(TABLES);
    return new RawPostgres(client);
  }

  close(): Promise<void> {
    return this.client.end();
  }

  private async transaction<T>(work: () => Promise<T>): Promise<T> {
    await this.client.query('BEGIN');
    const result = await work();
    await this.client.query('COMMIT');
    return result;
  }

  /** Jobs and their first events. */
  submit(count: number): Promise<number[]> {
    const names = Array.from({ length: count }, (_, index) => `job-${index}`);
    return this.transaction(async () => {
      const ids = (await this.client.query(INSERT_JOBS, [names])).rows.map((row) => Number(row.id));
      await this.client.query(INSERT_EVENTS, [ids, 1, 'QUEUED']);
      return ids;
    });
  }

  /** Jobs that wait at a site. */
  async dispatched(count: number): Promise<number[]> {
    const ids = await this.submit(count);
    await this.decide(ids, 100);
    return ids;
  }

  /** Jobs with runs that go on. */
  async running(count: number): Promise<number[]> {
    const ids = await this.submit(count);
    await this.client.query(INSERT_RUNS, [ids]);
    return ids;
  }

  /** Jobs that each need so many before them. */
  submitWaiting(count: number, needed: number): Promise<void> {
    const names = Array.from({ length: count }, (_, index) => `job-${index}`);
    return this.transaction(async () => {
      const ids = (await this.client.query(INSERT_JOBS, [names])).rows.map((row) => Number(row.id));
      await this.client.query(INSERT_NEEDS, [ids, needed]);
      await this.client.query(INSERT_EDGES, [ids, needed]);
      await this.client.query(INSERT_EVENTS, [ids, 1, 'BLOCKED']);
    });
  }

  /** Jobs that waited become queued. */
  release(ids: readonly number[]): Promise<void> {
    return this.transaction(async () => {
      await this.client.query(UPDATE_NEEDS, [ids]);
      await this.step(ids, 2, 'QUEUED');
    });
  }

  /** One decision each, `detailBytes` long, with the job's change and its event. */
  decide(ids: readonly number[], detailBytes: number): Promise<void> {
    const details = ids.map(() => 'x'.repeat(detailBytes));
    return this.transaction(async () => {
      await this.client.query(INSERT_DECISIONS, [ids, details]);
      await this.step(ids, 2, 'DISPATCHED');
    });
  }

  /** The rows of whole lives: submitted, dispatched, assigned, started, ended; a transaction each. */
  async lives(count: number): Promise<void> {
    const ids = await this.submit(count);
    await this.decide(ids, 100);
    const details = ids.map(() => 'x'.repeat(100));
    await this.transaction(async () => {
      await this.client.query(INSERT_RUNS, [ids]);
      await this.client.query(INSERT_DECISIONS, [ids, details]);
      await this.step(ids, 3, 'ASSIGNED');
    });
    for (const [seq, state] of [
      [4, 'RUNNING'],
      [5, 'COMPLETED'],
    ] as const) {
      await this.transaction(async () => {
        await this.client.query(UPDATE_RUNS, [ids, state === 'COMPLETED']);
        await this.step(ids, seq, state);
      });
    }
  }

  private async step(ids: readonly number[], seq: number, state: string): Promise<void> {
    await this.client.query(UPDATE_JOBS, [ids, state]);
    await this.client.query(INSERT_EVENTS, [ids, seq, state]);
  }

  /** Whether everything that has to happen after the events so far (`engine/follower.ts`) has happened. */
  async isFollowed(): Promise<boolean> {
    const sql =
      'SELECT coalesce(bool_and(cursor >= (SELECT max(id) FROM public.events)), false) AS all FROM public.followers';
    return (await this.client.query(sql)).rows[0].all;
  }

  /** Reads what a scheduler must know of the queued jobs. */
  async queue(): Promise<number> {
    const sql = `SELECT id, user_id, submitted_at, estimate_s, benchmark, deadline, tasks, cpus_per_task, memory_mb_per_task, licenses, os, architecture, priority, boost
      FROM public.jobs WHERE ended_at IS NULL AND state = 'DISPATCHED' ORDER BY id`;
    return (await this.client.query(sql)).rows.length;
  }

  /** Reads a page of jobs, every column, as `pg` gives them. */
  async list(limit: number): Promise<number> {
    return (await this.client.query('SELECT * FROM public.jobs ORDER BY id LIMIT $1', [limit])).rows.length;
  }
}
