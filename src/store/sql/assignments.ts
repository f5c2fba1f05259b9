/**
 * Live runs of a site as its agent must know them. simulatedS: on the slowest of the run's machines, which all of its tasks wait for.
 * Needs runs as r, jobs as j, and `slowest` as s.
 */
const assignment = `json_build_object('jobId', j.id, 'epoch', r.epoch, 'state', j.state, 'command', j.command, 'arguments', j.arguments, 'environment', j.environment,
    'workingDirectory', j.working_directory, 'tasks', j.tasks, 'cpusPerTask', j.cpus_per_task, 'memoryMbPerTask', j.memory_mb_per_task,
    'licenses', j.licenses, 'runTimeLimitS', j.run_time_limit_s, 'arrayIndex', j.array_index, 'application', j.application,
    'plannedS', r.planned_s, 'simulatedS', j.simulated_run_s * j.benchmark / s.power,
    'simulatedIoS', j.simulated_io_s * j.benchmark / s.power,
    'machines', (SELECT json_agg(json_build_object('machineId', m.id, 'name', m.name, 'tasks', u.tasks, 'benchmark', m.benchmark) ORDER BY u.place)
       FROM unnest(r.machine_ids, r.machine_tasks) WITH ORDINALITY AS u (id, tasks, place) JOIN machines m ON m.id = u.id))`;

const slowest =
  'CROSS JOIN LATERAL (SELECT min(m.benchmark) AS power FROM machines m WHERE m.id = ANY (r.machine_ids)) s';

/** All live runs of a site ($1), in the order of jobs. Answers [cursor, assignments]. */
export const allAssignments = `
SELECT json_build_array(greatest((SELECT max(id) FROM events), (SELECT id FROM events_horizon))::text,
  (SELECT coalesce(json_agg(${assignment} ORDER BY r.job_id), '[]')
     FROM runs r JOIN jobs j ON j.id = r.job_id ${slowest} WHERE r.site_id = $1 AND r.ended_at IS NULL))::text AS v`;

/**
 * What a site's agent has to know behind a cursor: runs assigned, runs to be stopped; as they are now, and only if they
 * are still live. The window is bounded twice: by events looked at, and by events of this site.
 * $1: site; $2: cursor; $3: events to look at; $4: assignments.
 * Answers null where retention has passed the cursor, else [cursor, assignments].
 */
export const newAssignments = `
WITH recent AS MATERIALIZED (
  SELECT id, entity_id, to_state, site_id FROM events WHERE id > $2::bigint ORDER BY id LIMIT $3
), news AS MATERIALIZED (
  SELECT id, entity_id FROM recent WHERE site_id = $1 AND to_state IN ('ASSIGNED', 'CANCELLING') ORDER BY id LIMIT $4
)
SELECT CASE WHEN $2::bigint >= (SELECT id FROM events_horizon) THEN json_build_array(
  coalesce(CASE WHEN (SELECT count(*) FROM news) < $4 THEN (SELECT max(id) FROM recent) ELSE (SELECT max(id) FROM news) END, $2::bigint)::text,
  (SELECT coalesce(json_agg(${assignment} ORDER BY n.id), '[]')
     FROM (SELECT entity_id, max(id) AS id FROM news GROUP BY entity_id) n
     JOIN jobs j ON j.id = n.entity_id AND j.state IN ('ASSIGNED', 'RUNNING', 'CANCELLING')
     JOIN runs r ON r.job_id = j.id AND r.epoch = j.epoch AND r.site_id = $1
     ${slowest})) END::text AS v`;
