import { directoryJson, jobArray, runArray } from './grid.js';

/**
 * What happened behind a cursor, in one statement and so of one instant.
 *
 * The events of the window are folded for each job: where it is comes from its last event, so the answer is exact at the
 * cursor even when the truth is already further. Only what events do not carry is looked up: the description of jobs that
 * appeared or changed in the window, the priority of dispatched ones, the runs of live ones. A job that appeared and
 * ended within the window costs no lookup at all.
 *
 * $1: the cursor; $2: at most so many events. Answers null where retention has passed the cursor, else
 * [cursor, events in the window, jobs, margins, users, directory].
 */
export const changesSince = `
WITH news AS MATERIALIZED (
  SELECT id, kind, entity_id, seq, from_state, to_state, site_id, epoch FROM events WHERE id > $1::bigint ORDER BY id LIMIT $2
), folded AS MATERIALIZED (
  SELECT DISTINCT ON (entity_id) entity_id, id, to_state, site_id, epoch,
         bool_or(seq = 1 OR kind = 'JOB_CHANGED') OVER of_job AS told
    FROM news WHERE seq IS NOT NULL
  WINDOW of_job AS (PARTITION BY entity_id)
   ORDER BY entity_id, id DESC
)
SELECT CASE WHEN $1::bigint >= (SELECT id FROM events_horizon) THEN json_build_array(
  coalesce((SELECT max(id) FROM news), $1::bigint)::text,
  (SELECT count(*) FROM news),
  (SELECT json_agg(CASE WHEN f.to_state IN ('COMPLETED', 'FAILED', 'CANCELLED') THEN json_build_array(f.entity_id)
      ELSE json_build_array(f.entity_id, f.to_state, CASE WHEN f.to_state <> 'QUEUED' THEN f.site_id END,
        CASE WHEN f.to_state <> 'QUEUED' THEN j.priority END,
        CASE WHEN r.epoch IS NOT NULL THEN ${runArray} END,
        CASE WHEN f.told THEN ${jobArray} END) END ORDER BY f.id)
     FROM folded f
     LEFT JOIN jobs j ON j.id = f.entity_id AND f.to_state NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')
     LEFT JOIN users u ON u.id = j.user_id AND f.told
     LEFT JOIN runs r ON r.job_id = f.entity_id AND r.epoch = f.epoch AND f.to_state IN ('ASSIGNED', 'RUNNING', 'CANCELLING')),
  (SELECT json_agg(extract(epoch FROM j.deadline)::float8 - j.estimate_s - extract(epoch FROM j.submitted_at)::float8 ORDER BY w.id)
     FROM news w JOIN jobs j ON j.id = w.entity_id
    WHERE w.from_state = 'QUEUED' AND w.to_state = 'DISPATCHED' AND j.deadline IS NOT NULL),
  (SELECT json_agg(DISTINCT jsonb_build_array(u.id, u.class)) FROM news w JOIN users u ON u.id = w.entity_id WHERE w.kind = 'USER'),
  CASE WHEN EXISTS (SELECT 1 FROM news WHERE kind IN ('SITE', 'MACHINE', 'LICENCE', 'POLICY')) THEN ${directoryJson} END
) END::text AS v`;
