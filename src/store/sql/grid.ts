import { dataset, link } from './data.js';
import { averages } from './ratios.js';

/**
 * The snapshot: what schedulers must know, read in one REPEATABLE READ transaction. Everything comes as one JSON value a
 * statement: Prisma decodes columns value by value, and 100 000 jobs have two million of them.
 */

/** A job as `core/model.Job`, as an array in the order that `jobFromArray` expects; needs jobs as j and users as u. */
export const jobArray = `json_build_array(j.id, j.user_id, u.class, extract(epoch FROM j.submitted_at)::float8, j.estimate_s,
  j.benchmark, extract(epoch FROM j.deadline)::float8, j.tasks, j.cpus_per_task, j.memory_mb_per_task, j.licenses, j.os, j.architecture,
  j.boost, j.priority, j.run_time_limit_s, j.application, j.group_id, extract(epoch FROM j.migrated_at)::float8,
  CASE WHEN j.inputs IS NOT NULL OR j.origin_site_id IS NOT NULL OR j.computation_share IS NOT NULL
    THEN json_build_array(j.origin_site_id, j.sandbox_mb, j.inputs, j.output_mb, j.computation_share) END)`;

/** A run as `core/model.Run`, as an array in the order that `runFromArray` expects; needs runs as r. */
export const runArray = `json_build_array(r.site_id, r.epoch, r.machine_ids, r.machine_tasks, r.license_ids,
  extract(epoch FROM coalesce(r.started_at, r.assigned_at))::float8, r.planned_s)`;

/** [policy, sites, machines, licenses] as the directory has them now; machines are available where a condition holds. */
export const directoryWhere = (available: string): string => `json_build_array(
  (SELECT json_build_object('version', version, 'document', document) FROM policies ORDER BY version DESC LIMIT 1),
  (SELECT coalesce(json_agg(json_build_object('id', id, 'name', name, 'state', state, 'localPolicy', local_policy,
            'maxRunningJobs', max_running_jobs) ORDER BY id), '[]')
     FROM sites WHERE removed_at IS NULL),
  (SELECT coalesce(json_agg(json_build_object('id', id, 'siteId', site_id, 'cpus', cpus, 'memoryMb', memory_mb, 'benchmark', benchmark,
            'os', os, 'architecture', architecture, 'licenseIds', license_ids, 'available', ${available}, 'maxTasks', max_tasks) ORDER BY id), '[]')
     FROM machines WHERE removed_at IS NULL),
  (SELECT coalesce(json_agg(json_build_object('id', id, 'kind', kind, 'copies', copies, 'siteId', site_id) ORDER BY id), '[]')
     FROM licenses WHERE removed_at IS NULL))`;

export const directoryJson = directoryWhere("state = 'UP' AND NOT silent");

/** [datasets, links, quotas, averages, traffic] as they are now. Traffic: of the hour that the core's Traffic keeps. */
export const dataJson = `json_build_array(
  (SELECT coalesce(json_agg(${dataset} ORDER BY v.id), '[]') FROM datasets v WHERE removed_at IS NULL),
  (SELECT coalesce(json_agg(${link} ORDER BY v.from_site_id, v.to_site_id), '[]') FROM links v),
  (SELECT coalesce(json_agg(json_build_object('userId', id, 'share', quota_share) ORDER BY id), '[]') FROM users WHERE quota_share <> 1),
  (SELECT coalesce(json_agg(${averages}), '[]') FROM run_averages v),
  (SELECT coalesce(json_agg(json_build_object('siteId', site_id, 'at', at, 'arrivals', arrivals, 'services', services) ORDER BY at, site_id), '[]')
     FROM traffic WHERE at > extract(epoch FROM clock_timestamp()) - 3600))`;

/** The largest event id that anybody can see; the horizon where retention has deleted them all. */
export const latestCursor = `greatest((SELECT max(id) FROM events), (SELECT id FROM events_horizon))`;

/** $1: how many margins. Answers [cursor, directory, margins, data]. */
export const loadDirectory = `
SELECT json_build_array(${latestCursor}::text, ${directoryJson},
  (SELECT coalesce(json_agg(margin_s ORDER BY id), '[]') FROM (SELECT id, margin_s FROM margins ORDER BY id DESC LIMIT $1) m), ${dataJson})::text AS v`;

/**
 * A page of jobs that have not ended, by id. $1: behind this id; $2: how many. Answers [[job, state, siteId, run], …].
 *
 * Which runs are live is asked of the job, not of the run. `r.ended_at IS NULL` would let the planner use the partial index of
 * live runs, which it believes to be empty until statistics catch up, and scan all of it for each job.
 */
export const loadJobs = `
SELECT coalesce(json_agg(json_build_array(${jobArray}, j.state, j.site_id, ${`CASE WHEN r.epoch IS NOT NULL THEN ${runArray} END`}) ORDER BY j.id), '[]')::text AS v
  FROM (SELECT * FROM jobs WHERE ended_at IS NULL AND id > $1 ORDER BY id LIMIT $2) j
  JOIN users u ON u.id = j.user_id
  LEFT JOIN runs r ON r.job_id = j.id AND r.epoch = j.epoch AND j.state IN ('ASSIGNED', 'RUNNING', 'CANCELLING')`;

/** Reservations whose job still waits where they were made. */
export const loadReservations = `
SELECT coalesce(json_agg(json_build_array(v.site_id, v.job_id, extract(epoch FROM v.at)::float8, v.machine_ids, v.machine_tasks,
    v.license_ids, extract(epoch FROM v.made_at)::float8) ORDER BY v.site_id), '[]')::text AS v
  FROM reservations v JOIN jobs j ON j.id = v.job_id AND j.state = 'DISPATCHED' AND j.site_id = v.site_id`;
