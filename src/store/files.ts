/** Files of runs that the service keeps: what is known of them. Their content is in the store of files (blobs.ts). */
import { MAX } from '../platform/limits.js';
import { list, table } from './columns.js';
import { type Database, transaction } from './pool.js';
import { siteAgent } from './postgres/agents.js';
import { type Reading, readRows, seconds } from './read-rows.js';
import { isMeant } from './rules.js';
import { type Sql, sql } from './sql.js';
import { type Connection, row, rows, run, value } from './statement.js';

type Db = Pick<Database, 'pool'>;

/** Times are epoch seconds. */
export interface FileRow {
  id: number;
  jobId: number;
  epoch: number;
  /** In whose directory it was: index, from 0. */
  task: number;
  /** Below that directory. */
  path: string;
  bytes: number;
  /** In hexadecimal. */
  sha256: string;
  /** Bytes that are there, from the beginning. */
  received: number;
  beganAt: number;
  /** null: it is on its way. */
  keptAt: number | null;
}

export interface NewFile {
  path: string;
  bytes: number;
  sha256: string;
}

/** A file on its way, with what the store of files has to know to go on with it. */
export interface FileOnItsWay {
  id: number;
  bytes: number;
  received: number;
  upload: string | null;
  parts: string[];
  /** All of it is there, and stays. */
  kept: boolean;
}

/** Whose run it is. */
export interface RunOfAgent {
  siteId: number;
  /** null: the site stands for a peer, which has no agent here. */
  agentId: number | null;
  jobId: number;
  epoch: number;
  /** As of RunReport. */
  token: string | null;
}

export interface FileBounds {
  userBytes: number;
  runBytes: number;
  /** Of all runs that go on at a peer. */
  peerBytes: number;
}

export type Announced =
  | { kind: 'done'; files: FileRow[] }
  /** The agent has no such task of such a run, or it is over. */
  | { kind: 'unknown' }
  /** `max`: what it is too much of. */
  | { kind: 'too-much'; used: number; max: keyof FileBounds | 'files' };

export const reading: Reading<FileRow> = {
  id: 'id',
  jobId: 'job_id',
  epoch: 'epoch',
  task: 'task',
  path: 'path',
  bytes: 'bytes',
  sha256: 'sha256',
  received: 'received',
  beganAt: seconds('began_at'),
  keptAt: seconds('kept_at'),
};

/** Of runs as r: it goes on, with this task on a machine of the agent. */
export const isServed = (
  siteId: number,
  agentId: number | null,
  task: Sql,
): Sql => sql`r.ended_at IS NULL AND r.site_id = ${siteId}
   AND ${
     agentId === null
       ? sql`EXISTS (SELECT FROM peers p WHERE p.site_id = r.site_id)`
       : sql`CASE WHEN r.placed_by = 'SITE' THEN ${siteAgent(sql`r.site_id`)} = ${agentId}::integer ELSE
         EXISTS (SELECT FROM machines m WHERE m.agent_id = ${agentId}::integer AND m.id = triggers.machine_of(r.machine_ids, r.machine_tasks, ${task})) END`
   }`;

/** Whether an agent is one of a site where a dataset lies, of which it may hand over a copy. */
export const isHolder = (
  { siteId, agentId }: { siteId: number; agentId: number | null },
  datasetId: Sql,
): Sql => sql`(
  EXISTS (SELECT FROM agents a WHERE a.id = ${agentId}::integer AND a.site_id = ${siteId})
  AND EXISTS (SELECT FROM dataset_replicas r WHERE r.dataset_id = ${datasetId} AND r.site_id = ${siteId} AND r.location LIKE '/%'))`;

/**
 * Files of a run that are to come. Those that are known by path, size and checksum stay as they are; what was known under the path else is
 * given up. All or none.
 */
export function announce(
  database: Db,
  { siteId, agentId, jobId, epoch, token }: RunOfAgent,
  task: number,
  files: readonly NewFile[],
  bounds: FileBounds,
): Promise<Announced> {
  return transaction(database, async (tx): Promise<Announced> => {
    const found = await row<{ userId: number; assignedAt: number }>(
      tx,
      sql`
SELECT j.user_id AS "userId", extract(epoch FROM r.assigned_at)::float8 AS "assignedAt" FROM runs r JOIN jobs j ON j.id = r.job_id
 WHERE r.job_id = ${jobId}::bigint AND r.epoch = ${epoch} AND ${isServed(siteId, agentId, sql`${task}::integer`)}
   AND (${agentId !== null} OR j.outputs IS NOT NULL AND ${task}::integer < j.tasks) FOR SHARE OF r`,
    );
    if (found === null || !isMeant(token, found.assignedAt)) return { kind: 'unknown' };
    const given = table('t', files, {
      path: ['text', ({ path }) => path],
      bytes: ['bigint', ({ bytes }) => bytes],
      sha256: ['text', ({ sha256 }) => sha256],
    });
    const ofRun = sql`job_id = ${jobId}::bigint AND epoch = ${epoch}`;
    await run(
      tx,
      sql`DELETE FROM files f USING ${given} WHERE ${ofRun} AND f.task = ${task} AND f.path = t.path AND (f.bytes, f.sha256) <> (t.bytes, t.sha256)`,
    );
    await run(
      tx,
      sql`
INSERT INTO files (job_id, epoch, task, user_id, path, bytes, sha256, began_at)
  SELECT ${jobId}::bigint, ${epoch}, ${task}, ${found.userId}, path, bytes, sha256, clock_timestamp() FROM ${given} ORDER BY path
  ON CONFLICT ON CONSTRAINT files_path DO NOTHING`,
    );
    // The trigger has taken the lock on the user's row: nobody else's files come in between.
    const used = await value<Record<'files' | keyof FileBounds, number>>(
      tx,
      sql`
SELECT json_build_object('files', count(*), 'runBytes', coalesce(sum(bytes), 0),
  'userBytes', (SELECT bytes FROM user_files WHERE user_id = ${found.userId}),
  'peerBytes', ${
    agentId === null
      ? sql`(SELECT coalesce(sum(f.bytes), 0) FROM files f JOIN runs r USING (job_id, epoch) WHERE r.site_id = ${siteId} AND r.ended_at IS NULL)`
      : sql`0`
  }) AS v FROM files WHERE ${ofRun}`,
    );
    const most = { ...bounds, files: MAX.jobFiles };
    const max = (['files', 'runBytes', 'userBytes', 'peerBytes'] as const).find(
      (name) => used[name] > most[name],
    );
    if (max !== undefined) throw new TooMuch(used[max], max);
    const all = await readRows(
      tx,
      reading,
      sql`SELECT * FROM files WHERE ${ofRun} AND task = ${task} AND path = ANY (${list(
        'text',
        files.map(({ path }) => path),
      )})`,
    );
    const byPath = new Map(all.map((file) => [file.path, file]));
    return { kind: 'done', files: files.map(({ path }) => byPath.get(path) as FileRow) };
  }).catch((error: unknown) => {
    if (!(error instanceof TooMuch)) throw error;
    return { kind: 'too-much', used: error.used, max: error.max };
  });
}

/** Takes back what was announced. */
class TooMuch extends Error {
  constructor(
    readonly used: number,
    readonly max: keyof FileBounds | 'files',
  ) {
    super(max);
  }
}

const onItsWayColumns = sql`f.id, f.bytes, f.received, f.upload, f.parts, f.kept_at IS NOT NULL AS kept`;

/** A file that this agent is to send; null: there is none, or its run is over. */
export const onItsWay = (
  database: Db,
  id: number,
  { siteId, agentId }: Pick<RunOfAgent, 'siteId' | 'agentId'>,
): Promise<FileOnItsWay | null> =>
  row(
    database.pool,
    sql`
SELECT ${onItsWayColumns} FROM files f LEFT JOIN runs r USING (job_id, epoch)
 WHERE f.id = ${id}::bigint AND (${isServed(siteId, agentId, sql`f.task`)} OR ${isHolder({ siteId, agentId }, sql`f.dataset_id`)})`,
  );

/** Another part of it is there; false: somebody else has brought one meanwhile. */
export const advance = async (
  database: Db,
  { id, received }: FileOnItsWay,
  more: { bytes: number; upload: string | null; part: string },
): Promise<boolean> =>
  (await run(
    database.pool,
    sql`
UPDATE files SET received = received + ${more.bytes}::bigint, upload = ${more.upload}, parts = parts || ${more.part}::text
 WHERE id = ${id}::bigint AND received = ${received}::bigint AND kept_at IS NULL`,
  )) > 0;

/** How many files make a checkpoint of the job j: each task that is launched by itself has one, in its own directory. */
const checkpointFiles = sql`CASE j.launch WHEN 'ONCE' THEN 1 ELSE j.tasks END`;

/**
 * All of it is there, and stays whatever fails; a checkpoint, once the run has left all of it, replaces those of earlier runs. False: it was
 * given up meanwhile.
 */
export const keep = async (database: Db, id: number): Promise<boolean> =>
  (await value<number>(
    database.pool,
    sql`
WITH kept AS (
  UPDATE files SET kept_at = coalesce(kept_at, clock_timestamp()), upload = NULL, parts = '{}'
   WHERE id = ${id}::bigint AND received = bytes RETURNING job_id, epoch, task, path
), replaced AS (
  DELETE FROM files f USING kept k, jobs j
   WHERE f.job_id = k.job_id AND f.epoch < k.epoch AND f.path = k.path AND j.id = k.job_id AND k.path = j.checkpoint->>'path'
     AND greatest(f.task, k.task) < ${checkpointFiles} AND ${checkpointFiles} - 1 = (
       SELECT count(*) FROM files o WHERE o.job_id = k.job_id AND o.epoch = k.epoch AND o.path = k.path AND o.task <> k.task
          AND o.task < ${checkpointFiles} AND o.kept_at IS NOT NULL)
) SELECT count(*) AS v FROM kept`,
  )) > 0;

/** Files of which every part is there and that nobody has made whole: whoever took the last part died over it. */
export const unfinished = (database: Db, after: number, limit: number): Promise<FileOnItsWay[]> =>
  rows(
    database.pool,
    sql`SELECT ${onItsWayColumns} FROM files f WHERE f.kept_at IS NULL AND f.received = f.bytes AND f.id > ${after}::bigint ORDER BY f.id LIMIT ${limit}`,
  );

/** It has to be sent again. */
export const drop = (database: Db, id: number): Promise<number> =>
  run(database.pool, sql`DELETE FROM files WHERE id = ${id}::bigint AND kept_at IS NULL`);

/** Of these runs, by task and path. */
export const filesOfRuns = (
  pool: Database['pool'],
  runs: readonly { jobId: number; epoch: number }[],
): Promise<FileRow[]> =>
  readRows(
    pool,
    reading,
    sql`
SELECT f.* FROM ${table('t', runs, {
      job_id: ['bigint', ({ jobId }) => jobId],
      epoch: ['integer', ({ epoch }) => epoch],
    })} JOIN files f USING (job_id, epoch) ORDER BY job_id, epoch, task, path`,
  );

/** A file that is there; null: there is none. */
export const kept = async (
  database: Db,
  jobId: number,
  epoch: number,
  task: number,
  path: string,
): Promise<FileRow | null> =>
  (
    await readRows(
      database.pool,
      reading,
      sql`SELECT * FROM files WHERE job_id = ${jobId}::bigint AND epoch = ${epoch} AND task = ${task} AND path = ${path} AND kept_at IS NOT NULL`,
    )
  )[0] ?? null;

/** A file that a job has kept for others: `id`, of a file with the service, or `datasetId`. */
export type KeptFile = { siteId: number; sizeMb: number; id: number; sha256: string } | { datasetId: number };

export const outputKey = ({ job, path }: { job: number; path: string }): string => `${job} ${path}`;

/** What the last runs of jobs have kept under these paths, by `outputKey`; of jobs with several tasks, in the directory of the first. */
export async function keptOutputs(
  connection: Connection,
  outputs: readonly { job: number; path: string }[],
): Promise<Map<string, KeptFile>> {
  const asked = [...new Map(outputs.map((one) => [outputKey(one), one])).values()];
  type Found = [
    job: number,
    path: string,
    datasetId: number | null,
    siteId: number,
    file: number,
    sizeMb: number,
    sha256: string,
  ];
  const found = await value<Found[] | null>(
    connection,
    sql`
SELECT json_agg(json_build_array(t.job, t.path, d.id, j.site_id, f.id, f.bytes / 1e6, f.sha256)) AS v
  FROM ${table('t', asked, { job: ['bigint', ({ job }) => job], path: ['text', ({ path }) => path] })}
  JOIN jobs j ON j.id = t.job
  LEFT JOIN files f ON f.job_id = j.id AND f.epoch = j.epoch AND f.task = 0 AND f.path = t.path AND f.kept_at IS NOT NULL
  LEFT JOIN datasets d ON d.job_id = j.id AND d.removed_at IS NULL AND EXISTS (
    SELECT FROM jsonb_array_elements(j.outputs) o WHERE trim(o->>'path', '/') = t.path AND o->>'dataset' = d.name)
 WHERE f.id IS NOT NULL OR d.id IS NOT NULL`,
  );
  return new Map(
    (found ?? []).map(([job, path, datasetId, siteId, id, sizeMb, sha256]) => [
      outputKey({ job, path }),
      datasetId === null ? { siteId, sizeMb, id, sha256 } : { datasetId },
    ]),
  );
}

/** One task's part of a checkpoint. */
export type CheckpointFile = Extract<KeptFile, { id: number }> & { task: number };

/** What runs of these jobs before the epochs have left under the paths, by job: of each the latest that is whole, by task. */
export async function keptCheckpoints(
  connection: Connection,
  runs: readonly { jobId: number; epoch: number; path: string }[],
): Promise<Map<number, CheckpointFile[]>> {
  const found = await rows<CheckpointFile & { jobId: number }>(
    connection,
    sql`
SELECT f.job_id AS "jobId", f.task, r.site_id AS "siteId", f.id, f.bytes / 1e6 AS "sizeMb", f.sha256
  FROM ${table('t', runs, {
    job_id: ['bigint', ({ jobId }) => jobId],
    epoch: ['integer', ({ epoch }) => epoch],
    path: ['text', ({ path }) => path],
  })}
  JOIN jobs j ON j.id = t.job_id
  JOIN LATERAL (
    SELECT o.epoch FROM files o
     WHERE o.job_id = t.job_id AND o.epoch < t.epoch AND o.path = t.path AND o.task < ${checkpointFiles} AND o.kept_at IS NOT NULL
     GROUP BY 1 HAVING count(*) = ${checkpointFiles} ORDER BY 1 DESC LIMIT 1) whole ON true
  JOIN files f ON f.job_id = t.job_id AND f.epoch = whole.epoch AND f.path = t.path AND f.task < ${checkpointFiles}
  JOIN runs r ON r.job_id = f.job_id AND r.epoch = f.epoch
 ORDER BY f.job_id, f.task`,
  );
  const byJob = new Map<number, CheckpointFile[]>();
  for (const { jobId, ...file } of found) {
    const known = byJob.get(jobId);
    if (known === undefined) byJob.set(jobId, [file]);
    else known.push(file);
  }
  return byJob;
}

/** The file f is a checkpoint of a job that may run again. */
const isCheckpoint = sql`EXISTS (
  SELECT FROM jobs j WHERE j.id = f.job_id AND j.ended_at IS NULL AND f.task < ${checkpointFiles} AND f.path = j.checkpoint->>'path')`;

/** Jobs as d read the file f, which another job has kept. */
const readsFile = sql`d.inputs @> jsonb_build_array(jsonb_build_object('from', jsonb_build_object('job', f.job_id, 'path', f.path)))`;

/** A file that a run going on at the site reads, of another job or of a run before it; null: there is none. */
export const readAt = async (database: Db, id: number, siteId: number): Promise<FileRow | null> =>
  (
    await readRows(
      database.pool,
      reading,
      sql`
SELECT f.* FROM files f WHERE f.id = ${id}::bigint AND f.kept_at IS NOT NULL AND (EXISTS (
  SELECT FROM need_edges e JOIN jobs d ON d.id = e.job_id JOIN runs r ON r.job_id = d.id
   WHERE e.on_job = f.job_id AND r.site_id = ${siteId}::integer AND r.ended_at IS NULL AND ${readsFile})
 OR ${isCheckpoint} AND EXISTS (
  SELECT FROM runs r WHERE r.job_id = f.job_id AND r.epoch > f.epoch AND r.site_id = ${siteId}::integer AND r.ended_at IS NULL))`,
    )
  )[0] ?? null;

/** How long the run of a file that never came has been over. */
const ABANDONED_S = 3_600;

/** Copies of datasets that no job of a peer needs any more are kept so much longer, seconds. */
const EXPORTS_KEPT_S = 3_600;

/** Gives up copies of datasets that nobody needs, and those that are not what the catalog says any more. */
export const pruneExports = (database: Db): Promise<number> =>
  run(
    database.pool,
    sql`
DELETE FROM exports e USING datasets d WHERE d.id = e.dataset_id AND (
  d.removed_at IS NOT NULL
  OR EXISTS (SELECT FROM files f WHERE f.dataset_id = d.id AND f.sha256 <> d.sha256)
  OR e.wanted_at < clock_timestamp() - make_interval(secs => ${EXPORTS_KEPT_S}) AND NOT EXISTS (
    SELECT FROM offers o JOIN jobs j ON j.id = o.job_id
     WHERE NOT o.withdrawn AND j.inputs @> jsonb_build_array(jsonb_build_object('datasetId', d.id))))`,
  );

/**
 * Gives up files that are kept since before `keptBefore` and that no unended job, or later run of its own job, is to read, and those that will
 * never come. Answers how many.
 */
export const prune = (database: Db, keptBefore: number, limit: number): Promise<number> =>
  run(
    database.pool,
    sql`
DELETE FROM files WHERE id IN (
  SELECT id FROM files f WHERE job_id IS NOT NULL AND kept_at < to_timestamp(${keptBefore}::float8) AND NOT EXISTS (
    SELECT FROM need_edges e JOIN jobs d ON d.id = e.job_id WHERE e.on_job = f.job_id AND d.ended_at IS NULL AND ${readsFile})
    AND NOT ${isCheckpoint}
   ORDER BY kept_at LIMIT ${limit})
 OR id IN (
  SELECT f.id FROM files f JOIN runs r USING (job_id, epoch)
   WHERE f.kept_at IS NULL AND r.ended_at < clock_timestamp() - make_interval(secs => ${ABANDONED_S}) ORDER BY f.id LIMIT ${limit})`,
  );

/** Files of which only the content is left. */
export const dead = (database: Db, limit: number): Promise<{ id: number; upload: string | null }[]> =>
  rows(database.pool, sql`SELECT id, upload FROM dead_files ORDER BY id LIMIT ${limit}`);

/** Their content is gone too. */
export const buried = (database: Db, ids: readonly number[]): Promise<number> =>
  run(database.pool, sql`DELETE FROM dead_files WHERE id = ANY (${list('bigint', ids)})`);

export type Files = ReturnType<typeof openFiles>;

/** Each operation with the database that it is for. */
export const openFiles = (database: Db) => ({
  announce: (agent: RunOfAgent, task: number, files: readonly NewFile[], bounds: FileBounds) =>
    announce(database, agent, task, files, bounds),
  onItsWay: (id: number, agent: Pick<RunOfAgent, 'siteId' | 'agentId'>) => onItsWay(database, id, agent),
  advance: (file: FileOnItsWay, more: { bytes: number; upload: string | null; part: string }) =>
    advance(database, file, more),
  keep: (id: number) => keep(database, id),
  unfinished: (after: number, limit: number) => unfinished(database, after, limit),
  drop: (id: number) => drop(database, id),
  kept: (jobId: number, epoch: number, task: number, path: string) =>
    kept(database, jobId, epoch, task, path),
  readAt: (id: number, siteId: number) => readAt(database, id, siteId),
  prune: (keptBefore: number, limit: number) => prune(database, keptBefore, limit),
  pruneExports: () => pruneExports(database),
  dead: (limit: number) => dead(database, limit),
  buried: (ids: readonly number[]) => buried(database, ids),
});
