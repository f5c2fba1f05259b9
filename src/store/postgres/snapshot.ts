/** What schedulers know: everything at one instant, and what changed since. */

import { INTERVAL_S } from '../../core/data/traffic.js';
import type { Dataset, Job, Link, Reservation, Run, SiteImages, UserClass } from '../../core/model.js';
import type { JobState } from '../../core/states.js';
import { endedStates, isLive, liveStates, pendingStates, waitingStates } from '../../core/states.js';
import { list, table } from '../columns.js';
import {
  type DataArray,
  type DirectoryArray,
  dataArray,
  datasetObject,
  directoryArray,
  directoryFromArray,
  JOB_OWN,
  type JobArray,
  JobReader,
  jobArray,
  jobColumns,
  jobFromArray,
  jobTypes,
  latestCursor,
  linkObject,
  type PromisesArray,
  promisesFromArray,
  type ReservationArray,
  type RunArray,
  reservationArray,
  reservationFromArray,
  runArray,
  runFromArray,
  siteImagesObject,
  submittedAt,
  type ToldTotals,
  totalsFromTold,
  totalsObject,
} from '../images.js';
import { type Database, type Transaction, transaction } from '../pool.js';
import { labels, raw, sql } from '../sql.js';
import { type Connection, copyOut, prepared, row, run, value } from '../statement.js';
import type {
  Cursor,
  GridChanges,
  GridImage,
  JobChange,
  JobImage,
  KeptPromises,
  TrafficCount,
} from '../store.js';

/** It locks nothing, and no worker can begin without it, however many jobs there are and however busy the machine is. */
const LOAD_MS = 900_000;

// Everything ------------------------------------------------------------------------------------------------------------

/** One snapshot (REPEATABLE READ): the cursor and everything else are of the same instant. */
export function loadGrid(
  database: Pick<Database, 'pool'>,
  marginWindow: number,
  keep: (job: Job) => Job = (job) => job,
): Promise<GridImage> {
  return transaction(
    database,
    async (tx): Promise<GridImage> => {
      const [cursor, directory, margins, data] = await loadDirectory(tx, marginWindow);
      const [datasets, links, quotas, told, traffic, classes, images] = data;
      const totals = totalsFromTold(told);
      const kept = await reservations(tx);
      const jobs = await loadJobs(tx, new Map(classes), await loadRuns(tx), keep);
      const known = { ...directoryFromArray(directory), datasets, links, images, quotas, totals, traffic };
      return { cursor, ...known, jobs, margins, reservations: kept };
    },
    { isolationLevel: 'RepeatableRead', timeoutMs: LOAD_MS },
  );
}

function loadDirectory(
  tx: Connection,
  marginWindow: number,
): Promise<[Cursor, DirectoryArray, margins: number[], DataArray]> {
  return value(
    tx,
    sql`
SELECT json_build_array(${raw(latestCursor)}::text, ${raw(directoryArray())},
  (SELECT coalesce(json_agg(margin_s ORDER BY id), '[]')
     FROM (SELECT id, margin_s FROM margins ORDER BY id DESC LIMIT ${marginWindow}) m),
  ${raw(dataArray)}) AS v`,
  );
}

/** The live runs, by job. */
async function loadRuns(tx: Connection): Promise<Map<number, Run>> {
  const found = await value<[jobId: number, RunArray][]>(
    tx,
    sql`
SELECT coalesce(json_agg(json_build_array(r.job_id, ${raw(runArray)})), '[]') AS v
  FROM runs r JOIN jobs j ON j.id = r.job_id AND j.epoch = r.epoch AND j.state IN ${labels(liveStates)}
 WHERE r.ended_at IS NULL`,
  );
  return new Map(found.map(([jobId, run]) => [jobId, runFromArray(jobId, run)]));
}

/** The jobs that have not ended, by id. */
async function loadJobs(
  tx: Transaction,
  classes: ReadonlyMap<number, UserClass>,
  runs: ReadonlyMap<number, Run>,
  keep: (job: Job) => Job,
): Promise<JobImage[]> {
  const jobs: JobImage[] = [];
  const reader = new JobReader(classes, keep);
  await run(tx, sql`SET LOCAL statement_timeout = ${raw(String(LOAD_MS))}`);
  await copyOut(
    tx,
    `SELECT ${jobColumns} FROM jobs j WHERE ended_at IS NULL ORDER BY id`,
    jobTypes,
    (row) => {
      const { job, state, siteId } = reader.read(row);
      jobs.push({ job, state, siteId, run: isLive(state) ? (runs.get(job.id) ?? null) : null });
    },
    JOB_OWN,
  );
  return jobs;
}

/** Those whose job still waits where they were made. */
export async function reservations(connection: Connection): Promise<Reservation[]> {
  const found = await value<ReservationArray[]>(
    connection,
    sql`
SELECT coalesce(json_agg(${raw(reservationArray)} ORDER BY v.site_id), '[]') AS v
  FROM reservations v JOIN jobs j ON j.id = v.job_id AND j.state = 'DISPATCHED' AND j.site_id = v.site_id`,
  );
  return found.map(reservationFromArray);
}

export async function promises(connection: Connection, siteId: number): Promise<KeptPromises> {
  const kept = await row<{ revision: number; body: PromisesArray | null }>(
    connection,
    sql`SELECT revision, body FROM promises WHERE site_id = ${siteId}`,
  );
  return { revision: kept?.revision ?? 0, promises: kept?.body ? promisesFromArray(kept.body) : null };
}

// What changed ------------------------------------------------------------------------------------------------------------

type ChangedJob = [
  id: number,
  state?: JobState,
  siteId?: number | null,
  priority?: number | null,
  migratedAt?: number | null,
  dispatchedAt?: number | null,
  schedulerId?: number | null,
  treeMoves?: number,
  run?: RunArray | null,
  job?: JobArray | null,
];
type Changes = [
  cursor: Cursor,
  events: number,
  jobs: ChangedJob[] | null,
  margins: number[] | null,
  users: [userId: number, userClass: UserClass, share: number][] | null,
  directory: DirectoryArray | null,
  data: ChangedData[] | null,
  totals: ToldTotals[] | null,
  traffic: TrafficCount[] | null,
];
/** A dataset and null, a link between two sites, or a site twice: its images. */
type ChangedData = [id: number, toSiteId: number | null];

export async function changesSince(
  connection: Connection,
  cursor: Cursor,
  limit: number,
): Promise<GridChanges | 'too-old'> {
  const answer = await readChanges(connection, cursor, limit);
  if (answer === null) return 'too-old';
  const [next, events, jobs, margins, users, directory, data, totals, traffic] = answer;
  return {
    cursor: next,
    jobs: (jobs ?? []).map(jobChange),
    margins: margins ?? [],
    users: (users ?? []).map(([userId, userClass, share]) => ({ userId, userClass, share })),
    directory: directory && directoryFromArray(directory),
    ...(data === null ? { datasets: [], links: [], images: [] } : await changedData(connection, data)),
    totals: totalsFromTold(totals ?? []),
    traffic: traffic ?? [],
    more: events >= limit,
  };
}

function jobChange([
  id,
  state,
  siteId = null,
  priority = null,
  migratedAt = null,
  dispatchedAt = null,
  schedulerId = null,
  treeMoves = 0,
  run,
  job,
]: ChangedJob): JobChange {
  if (state === undefined) return { id, position: null, job: null };
  const position = {
    ...{ state, siteId, priority, migratedAt, dispatchedAt, schedulerId, treeMoves },
    run: run ? runFromArray(id, run) : null,
  };
  return { id, position, job: job ? Object.assign(jobFromArray(job), { priority, dispatchedAt }) : null };
}

/**
 * What happened behind a cursor, in one statement and so of one instant. null: retention has passed the cursor.
 *
 * The events of the window are folded for each job: where it is comes from its last event, so the answer is exact at the
 * cursor even when the truth is already further. Only what events do not carry is looked up: the description of jobs that
 * appeared or changed in the window, the priority of dispatched ones, the runs of live ones. A job that appeared and
 * ended within the window costs no lookup at all. Totals of runs are told as they are now, to everybody who has not read up to the
 * event at which they were written.
 */
function readChanges(connection: Connection, cursor: Cursor, limit: number): Promise<Changes | null> {
  const live = labels(liveStates);
  const ended = labels(endedStates);
  const pending = labels(pendingStates);
  const waiting = labels(waitingStates);
  return value(
    connection,
    prepared(sql`
WITH news AS MATERIALIZED (
  SELECT id, at, kind, entity_id, seq, from_state, to_state, site_id, from_site_id, epoch, note
    FROM events WHERE id > (SELECT ${cursor}::bigint) ORDER BY id LIMIT ${raw(String(limit))}
), folded AS MATERIALIZED (
  SELECT DISTINCT ON (entity_id) entity_id, id, to_state, site_id, epoch,
         bool_or(seq = 1 OR kind = 'JOB_CHANGED' OR note IS NOT NULL OR from_state IN ('BLOCKED', 'HELD') OR from_state IN ${live} AND to_state IN ${waiting}) OVER of_job AS told
    FROM news WHERE seq IS NOT NULL
  WINDOW of_job AS (PARTITION BY entity_id)
   ORDER BY entity_id, id DESC
), directory AS MATERIALIZED (
  SELECT kind, entity_id, site_id FROM news WHERE seq IS NULL
), traffic AS MATERIALIZED (
  -- By instants first, of which each statement has but one.
  SELECT site_id, at, count(*) FILTER (WHERE to_state IN ${pending}) AS arrivals,
         count(*) FILTER (WHERE to_state NOT IN ${pending}) AS services
    FROM news
   WHERE site_id IS NOT NULL
     AND (to_state IN ${pending} AND from_site_id IS DISTINCT FROM site_id OR to_state IN ${ended} AND from_state IN ${live})
   GROUP BY 1, 2
)
SELECT CASE WHEN ${cursor}::bigint >= (SELECT id FROM events_horizon) THEN json_build_array(
  coalesce((SELECT max(id) FROM news), ${cursor}::bigint)::text,
  (SELECT count(*) FROM news),
  (SELECT json_agg(CASE WHEN f.to_state IN ${ended} THEN json_build_array(f.entity_id) ELSE (
      SELECT json_build_array(f.entity_id, f.to_state, f.site_id, CASE WHEN f.to_state <> 'QUEUED' THEN j.priority END,
          date_part('epoch', j.migrated_at),
          CASE WHEN f.to_state <> 'QUEUED' THEN date_part('epoch', j.dispatched_at) END,
          CASE WHEN f.to_state = 'QUEUED' AND f.site_id IS NULL THEN j.scheduler_id END, j.tree_moves,
          CASE WHEN f.to_state IN ${live} THEN
            (SELECT ${raw(runArray)} FROM runs r WHERE r.job_id = f.entity_id AND r.epoch = f.epoch) END,
          CASE WHEN f.told THEN (SELECT ${raw(jobArray)} FROM users u WHERE u.id = j.user_id) END)
        FROM jobs j WHERE j.id = f.entity_id) END)
     FROM (SELECT * FROM folded ORDER BY id) f),
  (SELECT json_agg(date_part('epoch', j.deadline) - j.estimate_s - date_part('epoch', ${raw(submittedAt)}) ORDER BY w.id)
     FROM news w JOIN jobs j ON j.id = w.entity_id
    WHERE w.from_state = 'QUEUED' AND w.to_state = 'DISPATCHED' AND j.deadline IS NOT NULL),
  (SELECT json_agg(DISTINCT jsonb_build_array(u.id, u.class, u.quota_share))
     FROM directory w JOIN users u ON u.id = w.entity_id WHERE w.kind = 'USER'),
  CASE WHEN EXISTS (SELECT 1 FROM directory WHERE kind IN ('SITE', 'MACHINE', 'LICENSE', 'SCHEDULER', 'HOLD', 'POLICY')) THEN ${raw(directoryArray())} END,
  (SELECT json_agg(DISTINCT jsonb_build_array(entity_id, site_id)) FROM directory WHERE kind = 'DATA'),
  (SELECT json_agg(${raw(totalsObject)}) FROM run_totals v WHERE event_id > (SELECT ${cursor}::bigint)),
  (SELECT json_agg(json_build_object('siteId', site_id, 'at', at, 'arrivals', arrivals, 'services', services) ORDER BY at, site_id)
     FROM (SELECT site_id, floor(extract(epoch FROM at) / ${INTERVAL_S}::integer)::bigint * ${INTERVAL_S}::integer AS at,
                  sum(arrivals) AS arrivals, sum(services) AS services
             FROM traffic GROUP BY 1, 2) t)
) END AS v`),
  );
}

/** Datasets, links and images as they are now: seldom any. */
async function changedData(
  connection: Connection,
  changed: readonly ChangedData[],
): Promise<Pick<GridChanges, 'datasets' | 'links' | 'images'>> {
  const links = changed.filter(([from, to]) => to !== null && to !== from);
  const sites = changed.filter(([from, to]) => to === from).map(([id]) => id);
  const datasets = changed.filter(([, to]) => to === null).map(([id]) => id);
  const [someDatasets, someLinks, images] = await value<
    [[number, Dataset | null][], [number, number, Link | null][], SiteImages[]]
  >(
    connection,
    sql`
SELECT json_build_array(
  (SELECT coalesce(json_agg(json_build_array(w.id, CASE WHEN v.id IS NOT NULL THEN ${raw(datasetObject)} END)), '[]')
     FROM unnest(${list('integer', datasets)}) AS w (id) LEFT JOIN datasets v ON v.id = w.id AND v.removed_at IS NULL),
  (SELECT coalesce(json_agg(json_build_array(w.from_id, w.to_id, CASE WHEN v.to_site_id IS NOT NULL THEN ${raw(linkObject)} END)), '[]')
     FROM ${table('w', links, { from_id: ['integer', ([from]) => from], to_id: ['integer', ([, to]) => to] })}
     LEFT JOIN links v ON v.from_site_id = w.from_id AND v.to_site_id = w.to_id),
  (SELECT coalesce(json_agg(${raw(siteImagesObject)}), '[]') FROM unnest(${list('integer', sites)}) AS v (id))) AS v`,
  );
  return {
    datasets: someDatasets.map(([id, dataset]) => ({ id, dataset })),
    links: someLinks.map(([fromSiteId, toSiteId, link]) => ({ fromSiteId, toSiteId, link })),
    images,
  };
}
