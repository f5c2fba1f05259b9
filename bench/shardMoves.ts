/**
 * Ways of a batch of queued jobs from one database to another (docs/shards.md). The row stays where it was, at the site that stands for the
 * other database, as of jobs that a peer has; a copy with the same id is queued there. Each way writes the same rows and events.
 */
import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { table } from '../src/store/columns.js';
import { changeJobs, inOrder } from '../src/store/postgres/change-jobs.js';
import { sql } from '../src/store/sql.js';
import type { Pipelined } from '../src/store/statement.js';
import { type Driver, HELD } from './shardDatabase.js';

/** Seconds: of the whole, and for which the two event locks were held. */
export interface Moved {
  tookS: number;
  fromHeldS: number;
  toHeldS: number;
}

/** A transaction that has notified cannot be prepared, so here it is told of events behind the commit, whichever the way. */
const SETUP = [
  'ALTER TABLE events DISABLE TRIGGER events_inserted',
  `CREATE SCHEMA IF NOT EXISTS bench`,
  // Of what the other database has not confirmed yet.
  'CREATE TABLE IF NOT EXISTS bench.handed (job_id bigint PRIMARY KEY)',
];
const INCOMING = 'CREATE TEMP TABLE IF NOT EXISTS incoming (LIKE jobs) ON COMMIT DELETE ROWS';
const NOTIFY = `SELECT pg_notify(triggers.event_channel(), '')`;

export class Way {
  private number = 0;

  private constructor(
    private readonly from: pg.PoolClient & Pipelined,
    private readonly to: pg.PoolClient & Pipelined,
    /** The site that stands for the other database. */
    private readonly standIn: number,
  ) {}

  static async between(from: Driver, to: Driver): Promise<Way> {
    const clients = [await from.connect(), await to.connect()] as (pg.PoolClient & Pipelined)[];
    for (const client of clients) for (const statement of [...SETUP, INCOMING]) await client.query(statement);
    return new Way(
      clients[0] as pg.PoolClient & Pipelined,
      clients[1] as pg.PoolClient & Pipelined,
      from.siteId,
    );
  }

  close(): void {
    this.from.release();
    this.to.release();
  }

  /** To a site of the same database: what it costs today. */
  async within(jobIds: readonly number[]): Promise<Moved> {
    return this.timed(async () => {
      await this.lock(jobIds);
      const held = await this.inOne(this.from, [this.change(jobIds), 'COMMIT', NOTIFY, HELD]);
      return [held, 0];
    });
  }

  /** Both databases commit, or none: PREPARE TRANSACTION in both, then COMMIT PREPARED in both. */
  async twoPhase(jobIds: readonly number[]): Promise<Moved> {
    const { from, to } = this;
    const name = `'move_${++this.number}'`;
    return this.timed(async () => {
      await this.lock(jobIds);
      const rows = await this.rowsOf(jobIds);
      await to.query('BEGIN');
      await Promise.all([
        this.inOne(from, [this.change(jobIds), `PREPARE TRANSACTION ${name}`]),
        copyInto(to, 'jobs', rows, `; PREPARE TRANSACTION ${name}`),
      ]);
      const finish = [`COMMIT PREPARED ${name}`, HELD, NOTIFY];
      return Promise.all([from, to].map((client) => this.inOne(client, finish, 1))) as Promise<
        [number, number]
      >;
    });
  }

  /** Committed here, with a note; then there, where a repetition does nothing; then the note is removed, for which nobody waits. */
  async handOver(jobIds: readonly number[]): Promise<Moved & { confirmS: number }> {
    const { from, to } = this;
    const moved = await this.timed(async () => {
      await this.lock(jobIds);
      const rows = await this.rowsOf(jobIds);
      const ids = `'{${jobIds.join(',')}}'::bigint[]`;
      await from.query(`INSERT INTO bench.handed SELECT unnest(${ids})`);
      const fromHeld = await this.inOne(from, [this.change(jobIds), 'COMMIT', NOTIFY, HELD]);
      await to.query('BEGIN');
      await copyInto(to, 'incoming', rows);
      const insert =
        'INSERT INTO jobs OVERRIDING SYSTEM VALUE SELECT * FROM incoming ORDER BY id ON CONFLICT (id) DO NOTHING';
      return [fromHeld, await this.inOne(to, [insert, 'COMMIT', NOTIFY, HELD])];
    });
    const begun = performance.now();
    await from.query(`DELETE FROM bench.handed WHERE job_id = ANY ('{${jobIds.join(',')}}'::bigint[])`);
    return { ...moved, confirmS: (performance.now() - begun) / 1000 };
  }

  private async timed(work: () => Promise<[number, number]>): Promise<Moved> {
    const begun = performance.now();
    const [fromHeldS, toHeldS] = await work();
    return { tookS: (performance.now() - begun) / 1000, fromHeldS, toHeldS };
  }

  private async lock(jobIds: readonly number[]): Promise<void> {
    await this.from.query('BEGIN');
    await this.from.query('SELECT id FROM jobs WHERE id = ANY ($1::bigint[]) ORDER BY id FOR NO KEY UPDATE', [
      jobIds,
    ]);
  }

  /** As PostgreSQL copies them out, in binary: nobody here reads them. */
  private async rowsOf(jobIds: readonly number[]): Promise<Buffer[]> {
    const rows = `SELECT * FROM jobs WHERE id = ANY ('{${jobIds.join(',')}}'::bigint[]) ORDER BY id`;
    return (await this.from.query(copyTo(`COPY (${rows}) TO STDOUT (FORMAT binary)`)).toArray()) as Buffer[];
  }

  private change(jobIds: readonly number[]): { text: string; values: unknown[] } {
    const items = table('t', jobIds, {
      id: ['bigint', (id) => id],
      site_id: ['integer', () => this.standIn],
    });
    const { text, values } = changeJobs('dispatch', items, {
      ...{ siteId: sql`t.site_id`, priority: sql`1`, dispatchedAt: inOrder(Date.now() / 1000) },
    });
    return { text, values };
  }

  /** Statements in one message; what the one at `answer` says (by default the last). */
  private async inOne(
    client: pg.PoolClient & Pipelined,
    statements: readonly (string | { text: string; values: unknown[] })[],
    answer = statements.length - 1,
  ): Promise<number> {
    client.pipeline = true;
    const answers = await Promise.all(statements.map((statement) => client.query(statement as string)));
    client.pipeline = false;
    return (answers[answer]?.rows[0] as { v: number } | undefined)?.v ?? 0;
  }
}

/** `followedBy`: a statement in the same message. */
async function copyInto(client: pg.PoolClient, name: string, rows: Buffer[], followedBy = ''): Promise<void> {
  await pipeline(rows, client.query(copyFrom(`COPY ${name} FROM STDIN (FORMAT binary)${followedBy}`)));
}
