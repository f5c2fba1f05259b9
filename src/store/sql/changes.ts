import { dataset, link } from './data.js';
import { directoryJson, jobArray, runArray } from './grid.js';
import { averages } from './ratios.js';

/**
 * What happened behind a cursor, in one statement and so of one instant.
 *
 * The events of the window are folded for each job: where it is comes from its last event, so the answer is exact at the
 * cursor even when the truth is already further. Only what events do not carry is looked up: the description of jobs that
 * appeared or changed in the window, the priority of dispatched ones, the runs of live ones. A job that appeared and
 * ended within the window costs no lookup at all. Averages are told as they are now, to everybody who has not read up to the
 * event at which they were written.
 *
 * $1: the cursor; $2: at most so many events. Answers null where retention has passed the cursor, else
 * [cursor, events in the window, jobs, margins, users, directory, data, averages, traffic]; data:
 * [[dataset or first site, null or second site], …], for `changedData`, which is seldom needed.
 */
export const changesSince = `
WITH news AS MATERIALIZED (
  SELECT id, at, kind, entity_id, seq, from_state, to_state, site_id, from_site_id, epoch FROM events WHERE id > $1::bigint ORDER BY id LIMIT $2
), folded AS MATERIALIZED (
  SELECT DISTINCT ON (entity_id) entity_id, id, to_state, site_id, epoch,
         bool_or(seq = 1 OR kind = 'JOB_CHANGED') OVER of_job AS told
    FROM news WHERE seq IS NOT NULL
  WINDOW of_job AS (PARTITION BY entity_id)
   ORDER BY entity_id, id DESC
), directory AS MATERIALIZED (
  SELECT kind, entity_id, site_id FROM news WHERE seq IS NULL
), traffic AS MATERIALIZED (
  -- By instants first, of which each statement has but one.
  SELECT site_id, at, count(*) FILTER (WHERE to_state IN ('QUEUED', 'DISPATCHED')) AS arrivals,
         count(*) FILTER (WHERE to_state NOT IN ('QUEUED', 'DISPATCHED')) AS services
    FROM news
   WHERE site_id IS NOT NULL
     AND (to_state IN ('QUEUED', 'DISPATCHED') AND from_site_id IS DISTINCT FROM site_id
          OR to_state IN ('COMPLETED', 'FAILED', 'CANCELLED') AND from_state IN ('ASSIGNED', 'RUNNING', 'CANCELLING'))
   GROUP BY 1, 2
)
SELECT CASE WHEN $1::bigint >= (SELECT id FROM events_horizon) THEN json_build_array(
  coalesce((SELECT max(id) FROM news), $1::bigint)::text,
  (SELECT count(*) FROM news),
  (SELECT json_agg(CASE WHEN f.to_state IN ('COMPLETED', 'FAILED', 'CANCELLED') THEN json_build_array(f.entity_id)
      ELSE json_build_array(f.entity_id, f.to_state, f.site_id, CASE WHEN f.to_state <> 'QUEUED' THEN j.priority END,
        extract(epoch FROM j.migrated_at)::float8,
        CASE WHEN r.epoch IS NOT NULL THEN ${runArray} END,
        CASE WHEN f.told THEN ${jobArray} END) END ORDER BY f.id)
     FROM folded f
     LEFT JOIN jobs j ON j.id = f.entity_id AND f.to_state NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')
     LEFT JOIN users u ON u.id = j.user_id AND f.told
     LEFT JOIN runs r ON r.job_id = f.entity_id AND r.epoch = f.epoch AND f.to_state IN ('ASSIGNED', 'RUNNING', 'CANCELLING')),
  (SELECT json_agg(extract(epoch FROM j.deadline)::float8 - j.estimate_s - extract(epoch FROM j.submitted_at)::float8 ORDER BY w.id)
     FROM news w JOIN jobs j ON j.id = w.entity_id
    WHERE w.from_state = 'QUEUED' AND w.to_state = 'DISPATCHED' AND j.deadline IS NOT NULL),
  (SELECT json_agg(DISTINCT jsonb_build_array(u.id, u.class, u.quota_share)) FROM directory w JOIN users u ON u.id = w.entity_id WHERE w.kind = 'USER'),
  CASE WHEN EXISTS (SELECT 1 FROM directory WHERE kind IN ('SITE', 'MACHINE', 'LICENSE', 'POLICY')) THEN ${directoryJson} END,
  (SELECT json_agg(DISTINCT jsonb_build_array(entity_id, site_id)) FROM directory WHERE kind = 'DATA'),
  (SELECT json_agg(${averages}) FROM run_averages v WHERE event_id > $1::bigint),
  (SELECT json_agg(json_build_object('siteId', site_id, 'at', at, 'arrivals', arrivals, 'services', services) ORDER BY at, site_id)
     FROM (SELECT site_id, floor(extract(epoch FROM at) / 5)::bigint * 5 AS at, sum(arrivals) AS arrivals, sum(services) AS services
             FROM traffic GROUP BY 1, 2) t)
) END::text AS v`;

/**
 * Datasets and links as they are now. $1: datasets; $2, $3: links, from and to. Answers
 * [[[id, dataset or null], …], [[from, to, link or null], …]].
 */
export const changedData = `
SELECT json_build_array(
  (SELECT coalesce(json_agg(json_build_array(w.id, CASE WHEN v.id IS NOT NULL THEN ${dataset} END)), '[]')
     FROM unnest($1::integer[]) AS w (id) LEFT JOIN datasets v ON v.id = w.id AND v.removed_at IS NULL),
  (SELECT coalesce(json_agg(json_build_array(w.from_id, w.to_id, CASE WHEN v.to_site_id IS NOT NULL THEN ${link} END)), '[]')
     FROM unnest($2::integer[], $3::integer[]) AS w (from_id, to_id)
     LEFT JOIN links v ON v.from_site_id = w.from_id AND v.to_site_id = w.to_id))::text AS v`;
