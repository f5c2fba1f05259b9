/**
 * Webhooks as the process that delivers sees them. What keeps them safe is in the rows: a cursor that only moves forward, and what is true
 * of the owner now. So two processes that deliver at once, which a frozen one may, repeat events and lose none.
 */

import { table } from './columns.js';
import type { Directory } from './directory.js';
import { latestCursor } from './images.js';
import type { JobFilter } from './job-filter.js';
import type { Database } from './pool.js';
import { eventReading } from './queries.js';
import { rowsOf } from './read-rows.js';
import type { EventRow } from './rows.js';
import { raw, type Sql, sql } from './sql.js';
import { row, rows, run, value } from './statement.js';

/** One that may be delivered to now. */
export interface ServedWebhook {
  id: number;
  userId: number;
  /** The owner may see jobs of all users. */
  seesAll: boolean;
  version: number;
  cursor: number;
  failures: number;
  /** Epoch seconds; null: at once. */
  nextAttemptAt: number | null;
  /** When the event that waits happened, epoch seconds; null: none waits. */
  behindSince: number | null;
}

/** What is needed to deliver. */
export interface Webhook extends ServedWebhook {
  url: string;
  /** Each signs. */
  secrets: string[];
  filter: JobFilter;
  /** Of events; none: all. */
  kinds: string[];
  failingSince: number | null;
}

/** Events that a webhook has not had, of jobs that its owner may see. */
export interface WebhookBatch {
  webhook: Webhook;
  events: EventRow[];
  /** Behind all that was looked at. */
  cursor: number;
  more: boolean;
  /** Events behind the cursor up to this one have been removed; null: none is missing. */
  missedTo: number | null;
}

export interface FailedAttempt {
  at: number;
  reason: string;
  behindSince: number;
  nextAttemptAt: number;
}

/** Of users who may have events of jobs: the webhook as w, its owner as u. */
const served = sql`w.enabled AND u.active AND u.role IN ('USER', 'OPERATOR', 'ADMIN')`;
const seesAll = sql`(u.role <> 'USER')`;
const epoch = (column: string): Sql => raw(`extract(epoch FROM ${column})::float8`);

const servedFields = sql`
  w.id, w.user_id AS "userId", ${seesAll} AS "seesAll", w.version, w.cursor, w.failures,
  ${epoch('w.next_attempt_at')} AS "nextAttemptAt", ${epoch('w.behind_since')} AS "behindSince"`;

export class Webhooks {
  constructor(
    private readonly database: Pick<Database, 'pool'>,
    private readonly directory: Pick<Directory, 'disableWebhook'>,
  ) {}

  served(): Promise<ServedWebhook[]> {
    return rows(
      this.database.pool,
      sql`SELECT ${servedFields} FROM webhooks w JOIN users u ON u.id = w.user_id WHERE ${served} ORDER BY w.id`,
    );
  }

  /** How many there are that get nothing because they were disabled. */
  disabled(): Promise<number> {
    return value(this.database.pool, sql`SELECT count(*) AS v FROM webhooks WHERE NOT enabled`);
  }

  /** One as it is now, enabled or not; null: it is not there. */
  async find(id: number, now: number): Promise<Webhook | null> {
    return row(this.database.pool, sql`${webhook(now)} WHERE w.id = ${id}`);
  }

  /** What comes behind a cursor, in one statement with what is true of the webhook now. null: nothing is to be delivered to it now. */
  async next(id: number, after: number, limit: number, now: number): Promise<WebhookBatch | null> {
    const found = await row<Webhook & { latest: number; horizon: number; events: unknown[][] }>(
      this.database.pool,
      sql`
SELECT w.*, ${raw(latestCursor)} AS latest, (SELECT id FROM events_horizon) AS horizon, (
  SELECT coalesce(json_agg(json_build_array(${raw(Object.values(eventReading).join(', '))})), '[]') FROM (
    SELECT * FROM events v WHERE id > ${after}::bigint AND seq IS NOT NULL AND (w."seesAll" OR user_id = w."userId")
     ORDER BY id LIMIT ${limit}) v) AS events
  FROM (${webhook(now)} WHERE w.id = ${id} AND ${served}) w`,
    );
    if (found === null) return null;
    const { latest, horizon, events: values, ...rest } = found;
    const events: EventRow[] = rowsOf(eventReading, values);
    const more = events.length === limit;
    return {
      webhook: rest,
      events,
      cursor: more ? (events.at(-1) as EventRow).id : Number(latest),
      more,
      missedTo: after < Number(horizon) ? Number(horizon) : null,
    };
  }

  /** Everything up to the cursor is delivered. Answers whether what is known of the webhook still holds. */
  async delivered(
    { id, version, seesAll: sees }: Webhook,
    cursor: number,
    at: number,
    status: number,
  ): Promise<boolean> {
    const holds = await value<boolean | null>(
      this.database.pool,
      sql`
UPDATE webhooks w SET cursor = greatest(w.cursor, ${cursor}::bigint), delivered_at = to_timestamp(${at}::float8), delivered_status = ${status},
       failures = 0, failing_since = NULL, behind_since = NULL, next_attempt_at = NULL
  FROM users u WHERE w.id = ${id} AND u.id = w.user_id
RETURNING ${served} AND w.version = ${version} AND ${seesAll} = ${sees}::boolean AS v`,
    );
    return holds ?? false;
  }

  /** Answers false where people have changed it meanwhile: then nothing is noted. */
  async failed({ id, version }: Webhook, attempt: FailedAttempt): Promise<boolean> {
    const { at, reason, behindSince, nextAttemptAt } = attempt;
    const noted = await run(
      this.database.pool,
      sql`
UPDATE webhooks SET failures = failures + 1, failing_since = coalesce(failing_since, to_timestamp(${at}::float8)),
       behind_since = to_timestamp(${behindSince}::float8), failed_at = to_timestamp(${at}::float8), failed_reason = ${reason},
       next_attempt_at = to_timestamp(${nextAttemptAt}::float8)
 WHERE id = ${id} AND version = ${version} AND enabled`,
    );
    return noted > 0;
  }

  /** The service delivers nothing more, and says why. */
  async disable({ id, version }: Webhook, reason: string): Promise<void> {
    await this.directory.disableWebhook(id, version, reason);
  }

  /** Nothing up to these cursors is for these webhooks. */
  async passed(cursors: readonly { id: number; cursor: number }[]): Promise<void> {
    if (cursors.length === 0) return;
    await run(
      this.database.pool,
      sql`
UPDATE webhooks w SET cursor = greatest(w.cursor, t.cursor)
  FROM ${table('t', cursors, {
    id: ['integer', ({ id }) => id],
    cursor: ['bigint', ({ cursor }) => cursor],
  })} WHERE w.id = t.id`,
    );
  }
}

/** Webhooks with all that is needed to deliver, as w; a condition follows. */
const webhook = (now: number): Sql => sql`
SELECT ${servedFields}, w.url, w.filter, w.kinds, ${epoch('w.failing_since')} AS "failingSince",
       array_remove(ARRAY[w.secret, CASE WHEN w.former_until > to_timestamp(${now}::float8) THEN w.former_secret END], NULL) AS secrets
  FROM webhooks w JOIN users u ON u.id = w.user_id`;
