/**
 * Copies of datasets that lie at sites of ours only. What jobs that a peer could have read of them is asked of the sites' agents, kept in the store of
 * files, and fetched from there by the peer's agents with the URL that comes with the grant.
 */
import { MAX } from '../../platform/limits.js';
import { list } from '../columns.js';
import { type FileRow, isHolder, reading } from '../files.js';
import { type Database, transaction } from '../pool.js';
import { readRows } from '../read-rows.js';
import { type Sql, sql } from '../sql.js';
import { row, rows, run, value } from '../statement.js';

type Db = Pick<Database, 'pool'>;

/** A copy that an agent is to hand over. */
export interface WantedExport {
  datasetId: number;
  name: string;
  /** Absolute path at the agent's site. */
  location: string;
  sizeMb: number;
  sha256: string | null;
}

/** What no job has asked for so long no agent is asked for, seconds. */
const WANTED_S = 120;
/** A copy that did not come is not asked for again for so long, seconds. */
const REST_S = 600;
/** Copies that an agent is asked for at once. */
const PAGE = 10;

/** Datasets as d: whether an agent could hand over a copy of it. */
export const isExportable = (now: number): Sql => sql`(
  EXISTS (SELECT 1 FROM dataset_replicas r JOIN sites s ON s.id = r.site_id
           WHERE r.dataset_id = d.id AND r.location LIKE '/%' AND s.state <> 'DOWN' AND s.removed_at IS NULL)
  AND NOT EXISTS (SELECT 1 FROM exports e WHERE e.dataset_id = d.id AND e.failed_at > to_timestamp(${now - REST_S}::float8)))`;

/** Copies of datasets d, as rows (location, site_id) behind those of all sites. `base`: where the service is reached; null: nobody is told. */
export const copiesOf = (base: string | null): Sql => sql`
  SELECT ${base}::text || '/exports/' || e.dataset_id || '?key=' || e.secret AS location, ${MAX.integer}::integer AS site_id
    FROM exports e JOIN files x ON x.dataset_id = e.dataset_id AND x.kept_at IS NOT NULL
   WHERE e.dataset_id = d.id AND ${base}::text IS NOT NULL`;

/**
 * Jobs that a peer could have wait for copies of what they read: those are asked for, the jobs in their order, as long as all copies together
 * are within the bound.
 */
export const want = (
  database: Db,
  jobIds: readonly number[],
  unreachable: Sql,
  now: number,
): Promise<number> =>
  run(
    database.pool,
    sql`
WITH needed AS MATERIALIZED (
  SELECT DISTINCT ON (d.id) d.id, d.size_mb, j.id AS job_id, j.user_id, EXISTS (SELECT 1 FROM exports e WHERE e.dataset_id = d.id) AS known
    FROM jobs j CROSS JOIN LATERAL jsonb_array_elements(j.inputs) AS i (input) JOIN datasets d ON d.id = (i.input->>'datasetId')::integer
   WHERE j.id = ANY (${list('bigint', jobIds)}) AND d.removed_at IS NULL AND ${unreachable} ORDER BY d.id, j.id
), sized AS (
  SELECT *, sum(CASE WHEN known THEN 0 ELSE size_mb END) OVER (ORDER BY job_id, id)
            + (SELECT coalesce(sum(o.size_mb), 0) FROM exports e JOIN datasets o ON o.id = e.dataset_id) AS all_mb FROM needed
)
INSERT INTO exports AS e (dataset_id, user_id, secret, wanted_at)
  SELECT id, user_id, replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), to_timestamp(${now}::float8) FROM sized
   WHERE known OR all_mb <= ${MAX.peerFileBytes / 1e6}::float8 ORDER BY id
  ON CONFLICT (dataset_id) DO UPDATE SET wanted_at = excluded.wanted_at WHERE e.wanted_at < excluded.wanted_at - interval '10 s'`,
  );

/** What the agents of a site are to hand over, oldest wishes first. */
export const wantedExports = (database: Db, siteId: number, now: number): Promise<WantedExport[]> =>
  rows(
    database.pool,
    sql`
SELECT d.id AS "datasetId", d.name, r.location, d.size_mb AS "sizeMb", d.sha256
  FROM exports e JOIN datasets d ON d.id = e.dataset_id JOIN dataset_replicas r ON r.dataset_id = d.id
 WHERE r.site_id = ${siteId} AND r.location LIKE '/%' AND d.removed_at IS NULL AND e.wanted_at > to_timestamp(${now - WANTED_S}::float8)
   AND (e.failed_at IS NULL OR e.failed_at <= to_timestamp(${now - REST_S}::float8))
   AND NOT EXISTS (SELECT 1 FROM files f WHERE f.dataset_id = e.dataset_id AND f.kept_at IS NOT NULL)
 ORDER BY e.wanted_at, e.dataset_id LIMIT ${PAGE}`,
  );

export type AnnouncedExport =
  | { kind: 'done'; id: number; received: number }
  /** Nobody wants it from there, or it is no agent of the site. */
  | { kind: 'unknown' }
  /** Its user's files, or all copies, would be too much. */
  | { kind: 'too-much'; used: number; max: 'userBytes' | 'allBytes' };

/** The copy that is to come. One that was announced with other content before is given up. */
export function announceExport(
  database: Db,
  from: { siteId: number; agentId: number },
  datasetId: number,
  { bytes, sha256 }: { bytes: number; sha256: string },
  userBytes: number,
): Promise<AnnouncedExport> {
  return transaction(database, async (tx): Promise<AnnouncedExport> => {
    const wanted = await row<{ userId: number }>(
      tx,
      sql`SELECT user_id AS "userId" FROM exports e WHERE dataset_id = ${datasetId}::integer AND ${isHolder(from, sql`e.dataset_id`)} FOR UPDATE`,
    );
    if (wanted === null) return { kind: 'unknown' };
    await run(
      tx,
      sql`DELETE FROM files WHERE dataset_id = ${datasetId}::integer AND (bytes, sha256) <> (${bytes}::bigint, ${sha256})`,
    );
    await run(
      tx,
      sql`
INSERT INTO files (dataset_id, user_id, path, bytes, sha256, began_at)
  VALUES (${datasetId}::integer, ${wanted.userId}::integer, 'copy', ${bytes}::bigint, ${sha256}, clock_timestamp()) ON CONFLICT (dataset_id) DO NOTHING`,
    );
    // The trigger has taken the lock on the user's row: nobody else's files come in between.
    const used = await value<{ userBytes: number; allBytes: number }>(
      tx,
      sql`
SELECT json_build_object('userBytes', (SELECT bytes FROM user_files WHERE user_id = ${wanted.userId}::integer),
  'allBytes', (SELECT sum(bytes) FROM files WHERE dataset_id IS NOT NULL)) AS v`,
    );
    const most = { userBytes, allBytes: MAX.peerFileBytes };
    const max = (['userBytes', 'allBytes'] as const).find((name) => used[name] > most[name]);
    if (max !== undefined) {
      await run(tx, sql`DELETE FROM files WHERE dataset_id = ${datasetId}::integer`);
      return { kind: 'too-much', used: used[max], max };
    }
    const file = await row<{ id: number; received: number }>(
      tx,
      sql`SELECT id, received FROM files WHERE dataset_id = ${datasetId}::integer`,
    );
    return file === null ? { kind: 'unknown' } : { kind: 'done', ...file };
  });
}

/** There will be no copy, for now. */
export const exportFailed = (
  database: Db,
  from: { siteId: number; agentId: number },
  datasetId: number,
  failure: string,
  now: number,
): Promise<number> =>
  run(
    database.pool,
    sql`
UPDATE exports e SET failure = ${failure}, failed_at = to_timestamp(${now}::float8)
 WHERE dataset_id = ${datasetId}::integer AND ${isHolder(from, sql`e.dataset_id`)}`,
  );

/** Whose copy it is that this secret is for; null: nobody's. */
export const userOfExport = (
  database: Db,
  secret: string,
): Promise<{ userId: number; datasetId: number } | null> =>
  row(
    database.pool,
    sql`
SELECT user_id AS "userId", dataset_id AS "datasetId" FROM exports WHERE secret = ${secret}`,
  );

/** The copy, when all of it is there. */
export const exported = async (database: Db, datasetId: number, secret: string): Promise<FileRow | null> =>
  (
    await readRows(
      database.pool,
      reading,
      sql`
SELECT f.* FROM files f JOIN exports e USING (dataset_id)
 WHERE e.dataset_id = ${datasetId}::integer AND e.secret = ${secret} AND f.kept_at IS NOT NULL`,
    )
  )[0] ?? null;

/** Why there is no copy of these datasets, by id. */
export const exportFailures = (
  database: Db,
  datasetIds: readonly number[],
): Promise<{ datasetId: number; failure: string }[]> =>
  rows(
    database.pool,
    sql`
SELECT dataset_id AS "datasetId", failure FROM exports WHERE dataset_id = ANY (${list('integer', datasetIds)}) AND failure IS NOT NULL`,
  );
