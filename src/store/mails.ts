/**
 * Mail about jobs: what is to be told, and to whom. Notices are made by statements from events and from the clock, each once by its key,
 * however often that is asked; what was sent is marked behind the sending.
 */
import { endedStates } from '../core/states.js';
import { list, table } from './columns.js';
import { limitOfRun, submittedAt } from './images.js';
import type { MailKind } from './job-fields.js';
import type { Database } from './pool.js';
import { seconds } from './read-rows.js';
import { labels, raw, type Sql, sql } from './sql.js';
import { row, rows, run, value } from './statement.js';
import type { HoldNews } from './upkeep.js';

/** Shown of one mail at most; the rest is counted. */
const SHOWN_MAX = 100;
/** Notices that were sent are known for so long, so that none is made twice; one that could not be sent for so long is given up. */
const KNOWN_DAYS = 30;

/** What one mail tells. */
export interface Digest {
  userId: number;
  userName: string;
  address: string;
  /** Oldest first, at most 100. */
  notices: Notice[];
  /** All of them, by kind. */
  counts: { kind: MailKind; notices: number }[];
  /** Up to this notice. */
  upTo: number;
}

export interface Notice {
  kind: MailKind;
  /** Epoch seconds. */
  at: number;
  /** null: it is about a reservation. */
  jobId: number | null;
  /** The reservation; null: it is about a job. */
  hold: { siteId: number; site: string; name: string; note: string } | null;
  /** null: the job has been removed since, or there is none. */
  name: string | null;
  /** Of an element of an array. */
  arrayIndex: number | null;
  application: string | null;
  state: string | null;
  cause: string | null;
  exitCode: number | null;
  message: string | null;
  group: string | null;
}

/** What a user gets mail about a job for. Jobs as j, users as u, their settings as s. */
const wanted = (kind: Sql): Sql => sql`
  u.active AND s.address IS NOT NULL AND s.problem IS NULL AND ${kind} = ANY (coalesce(j.mail, s.kinds)) AND ${kind} <> ALL (s.off)`;
const owners = raw('JOIN users u ON u.id = j.user_id JOIN mail_settings s ON s.user_id = u.id');

/** What has happened to a reservation, in words. */
export function saidOf(news: HoldNews): string {
  switch (news.what) {
    case 'RELEASED':
      return 'nobody used it, and the rest of this time is given back';
    case 'SHORT':
      return `machine ${news.machine} is lost, and no other is free to take its place`;
    case 'BACK':
      return `machine ${news.machine} is back`;
    case 'REPLACED':
      return `machine ${news.machine} is lost; ${news.to} takes its place`;
  }
}

/** Tells the owners of reservations, those who want to know. */
export const holdNotices = (told: readonly { holdId: number; note: string }[], now: number): Sql => sql`
INSERT INTO mails (user_id, kind, key, hold_id, note, at)
SELECT u.id, 'RESERVATION', 'RESERVATION ' || gen_random_uuid(), h.id, t.note, to_timestamp(${now}::float8)
  FROM ${table('t', told, {
    hold_id: ['integer', ({ holdId }) => holdId],
    note: ['text', ({ note }) => note],
  })} JOIN holds h ON h.id = t.hold_id JOIN users u ON u.id = h.user_id JOIN mail_settings s ON s.user_id = u.id
 WHERE u.active AND s.address IS NOT NULL AND s.problem IS NULL AND 'RESERVATION' = ANY (s.kinds) AND 'RESERVATION' <> ALL (s.off)`;

/** Forgets notices that were sent, or could not be, for so long. Also where nobody sends any: some are made all the same. */
export const oldMails = (now: Sql): Sql =>
  sql`DELETE FROM mails WHERE coalesce(sent_at, at) < ${now} - make_interval(days => ${KNOWN_DAYS})`;

export class Mails {
  constructor(private readonly database: Pick<Database, 'pool'>) {}

  /** Behind these events of jobs that began or ended. */
  async note(eventIds: readonly number[]): Promise<void> {
    await run(
      this.database.pool,
      sql`
INSERT INTO mails (user_id, kind, key, job_id, at)
SELECT u.id, k.kind, k.kind || ' job_' || j.id || ' ' || e.seq, j.id, e.at
  FROM events e JOIN jobs j ON j.id = e.entity_id ${owners}
  CROSS JOIN LATERAL (VALUES
    ('BEGIN', e.to_state = 'RUNNING'),
    ('END', e.to_state IN ${labels(endedStates)}),
    -- One line for one end.
    ('FAIL', e.to_state = 'FAILED' AND NOT ('END' = ANY (coalesce(j.mail, s.kinds)) AND 'END' <> ALL (s.off)))) k (kind, holds)
 WHERE e.id = ANY (${list('bigint', eventIds)}) AND k.holds AND ${wanted(raw('k.kind'))}
UNION ALL
(SELECT DISTINCT ON (u.id, g.key) u.id, 'GROUP_DONE', g.key, j.id, e.at
  FROM events e JOIN jobs j ON j.id = e.entity_id ${owners}
  CROSS JOIN LATERAL (
    SELECT 'GROUP_DONE group_' || o.id FROM job_groups o
     WHERE o.id = j.group_id AND NOT EXISTS (
       SELECT FROM jobs x WHERE x.id BETWEEN o.first_job_id AND o.last_job_id AND x.group_id = o.id AND x.ended_at IS NULL)
    UNION ALL
    -- A name can be used again: then it is another group, up to its last job.
    SELECT 'GROUP_DONE ' || x.last || ' ' || j.group_name FROM (
      SELECT max(id) AS last, bool_and(ended_at IS NOT NULL) AS done FROM jobs WHERE group_name = j.group_name AND user_id = j.user_id) x
     WHERE j.group_name IS NOT NULL AND x.done AND NOT EXISTS (SELECT FROM job_groups WHERE id = j.group_id)) g (key)
 WHERE e.id = ANY (${list('bigint', eventIds)}) AND e.to_state IN ${labels(endedStates)} AND ${wanted(raw("'GROUP_DONE'"))}
 -- At the end of its last job.
 ORDER BY u.id, g.key, e.at DESC)
 ORDER BY 1, 3
ON CONFLICT DO NOTHING`,
    );
  }

  /** What is due by the clock: runs that near their limit, and jobs that have waited for so long, seconds. */
  async noteDue(now: number, waitedS: number): Promise<void> {
    const at = sql`to_timestamp(${now}::float8)`;
    await run(
      this.database.pool,
      sql`
INSERT INTO mails (user_id, kind, key, job_id, at)
SELECT u.id, 'LIMIT_80', 'LIMIT_80 job_' || j.id || ' ' || r.epoch, j.id, ${at}
  FROM runs r JOIN jobs j ON j.id = r.job_id ${owners}
 WHERE r.ended_at IS NULL AND r.started_at IS NOT NULL AND ${at} - r.started_at >= make_interval(secs => 0.8 * ${raw(limitOfRun)})
   AND ${wanted(raw("'LIMIT_80'"))}
UNION ALL
SELECT u.id, 'WAITED', 'WAITED job_' || j.id, j.id, ${at}
  FROM jobs j ${owners}
 WHERE j.ended_at IS NULL AND j.state IN ('QUEUED', 'DISPATCHED') AND ${at} - ${raw(submittedAt)} >= make_interval(secs => ${waitedS}::float8)
   AND (j.mail IS NOT NULL OR j.user_id IN (SELECT user_id FROM mail_settings WHERE 'WAITED' = ANY (kinds))) AND ${wanted(raw("'WAITED'"))}
ON CONFLICT DO NOTHING`,
    );
  }

  /** Users to whom a mail is due: of what waits the first is `gatherS` old, and their last mail `everyS`. Who waits longest comes first. */
  async due(now: number, gatherS: number, everyS: number, limit: number): Promise<number[]> {
    const found = await rows<{ id: number }>(
      this.database.pool,
      sql`
SELECT m.user_id AS id FROM mails m JOIN mail_settings s USING (user_id)
 WHERE m.sent_at IS NULL AND coalesce(s.mailed_at <= to_timestamp(${now - everyS}::float8), true)
 GROUP BY 1 HAVING min(m.at) <= to_timestamp(${now - gatherS}::float8) ORDER BY min(m.id) LIMIT ${limit}`,
    );
    return found.map(({ id }) => id);
  }

  /** null: there is nothing to send to this user. What the user may not get any more, or has unsubscribed from, is left out. */
  digest(userId: number): Promise<Digest | null> {
    return row(
      this.database.pool,
      sql`
WITH open AS (
  SELECT m.* FROM mails m JOIN mail_settings s USING (user_id) WHERE m.user_id = ${userId} AND m.sent_at IS NULL AND m.kind <> ALL (s.off)
)
SELECT u.id AS "userId", u.name AS "userName", s.address, (SELECT max(id) FROM open) AS "upTo",
       (SELECT json_agg(json_build_object('kind', kind, 'notices', n) ORDER BY kind) FROM (SELECT kind, count(*) AS n FROM open GROUP BY 1) c) AS counts,
       (SELECT json_agg(json_build_object('kind', o.kind, 'at', ${raw(seconds('o.at'))}, 'jobId', o.job_id,
                 'hold', CASE WHEN h.id IS NOT NULL THEN json_build_object('siteId', s.id, 'site', s.name, 'name', coalesce(h.name, 'hold_' || h.id), 'note', o.note) END, 'name', j.name, 'arrayIndex', j.array_index, 'application', j.application,
                 'state', j.state, 'cause', j.cause, 'exitCode', j.exit_code, 'message', j.message,
                 'group', CASE WHEN o.kind = 'GROUP_DONE' THEN substring(o.key FROM 12) END) ORDER BY o.id)
          FROM (SELECT * FROM open ORDER BY id LIMIT ${SHOWN_MAX}) o LEFT JOIN jobs j ON j.id = o.job_id
          LEFT JOIN (holds h JOIN sites s ON s.id = h.site_id) ON h.id = o.hold_id) AS notices
  FROM users u JOIN mail_settings s ON s.user_id = u.id
 WHERE u.id = ${userId} AND u.active AND s.address IS NOT NULL AND s.problem IS NULL AND EXISTS (SELECT FROM open)`,
    );
  }

  /** Everything up to this notice was sent, or is not to be. */
  async sent(userId: number, upTo: number | null, now: number): Promise<void> {
    await run(
      this.database.pool,
      sql`
WITH told AS (
  UPDATE mails SET sent_at = to_timestamp(${now}::float8)
   WHERE user_id = ${userId} AND sent_at IS NULL AND id <= coalesce(${upTo}::bigint, id)
)
UPDATE mail_settings SET mailed_at = to_timestamp(${now}::float8) WHERE user_id = ${userId} AND ${upTo}::bigint IS NOT NULL`,
    );
  }

  /** The mail server takes nothing for this address: nothing is sent there any more. */
  async refused(userId: number, address: string, problem: string): Promise<void> {
    await run(
      this.database.pool,
      sql`UPDATE mail_settings SET problem = ${problem} WHERE user_id = ${userId} AND address = ${address}`,
    );
  }

  /** What signs links in mails. */
  secret(): Promise<string> {
    return value(this.database.pool, sql`SELECT secret AS v FROM service`);
  }

  async prune(now: number): Promise<void> {
    await run(this.database.pool, oldMails(sql`to_timestamp(${now}::float8)`));
  }
}
