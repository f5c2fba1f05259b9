/**
 * The promises of DESIGN.md as questions to the database: each answers with what breaks it, so a good database answers none of them.
 * For any moment, also in the middle of a stream of jobs or after a crash: what is asked holds for every committed state.
 */
import type pg from 'pg';

export interface Breach {
  promise: string;
  /** The first few of what breaks it. */
  rows: unknown[];
}

/** What runs have of their machines, with what each task there asks for: tasks of several parts follow one another. */
const HELD = `(
  SELECT r.job_id, r.epoch, r.ended_at, r.devices, j.user_id, u.id, u.tasks, u.place, u.cpus, u.places, coalesce(p.part ->> 'exclusive', j.exclusive) AS exclusive,
         coalesce((p.part ->> 'cpusPerTask')::integer, r.cpus_per_task) AS cpus_per_task,
         coalesce((p.part ->> 'memoryMbPerTask')::integer, r.memory_mb_per_task) AS memory_mb_per_task,
         (SELECT jsonb_object_agg(key, amount) FROM (
            SELECT key, sum(amount) AS amount FROM (
              SELECT key, value::bigint AS amount FROM jsonb_each_text(CASE WHEN p.part IS NULL THEN r.resources_per_task ELSE nullif(p.part -> 'resourcesPerTask', 'null') END)
              UNION ALL
              -- Of devices that are asked for by what they are, all shares or so many of them.
              SELECT q ->> 'kind', (q ->> 'count')::bigint * coalesce(d.shares * (q #>> '{share,parts}')::bigint / (q #>> '{share,of}')::bigint, d.shares)
                FROM jsonb_array_elements(nullif(CASE WHEN p.part IS NULL THEN j.devices_per_task ELSE p.part -> 'devicesPerTask' END, 'null')) q
                CROSS JOIN LATERAL (SELECT (d ->> 'shares')::bigint AS shares FROM machines m, jsonb_array_elements(m.devices) d
                                     WHERE m.id = u.id AND d ->> 'kind' = q ->> 'kind' LIMIT 1) d) each GROUP BY key) sums) AS resources_per_task
    FROM runs r JOIN jobs j ON j.id = r.job_id CROSS JOIN LATERAL (
      SELECT *, sum(tasks) OVER (ORDER BY place) - tasks AS first
        FROM unnest(r.machine_ids, r.machine_tasks, r.whole_cpus, r.whole_places) WITH ORDINALITY AS e (id, tasks, cpus, places, place)) u
      LEFT JOIN LATERAL (
        SELECT part FROM (SELECT part, sum((part ->> 'tasks')::integer) OVER (ORDER BY n) AS behind FROM jsonb_array_elements(j.parts) WITH ORDINALITY AS e (part, n)) q
         WHERE behind > u.first ORDER BY behind LIMIT 1) p ON j.parts IS NOT NULL)`;

const promises: Record<string, string> = {
  '1: a job is held by one scheduler, or has ended with a cause': `
    SELECT id, state, site_id, cause FROM jobs
     WHERE (state IN ('COMPLETED', 'FAILED', 'CANCELLED')) <> (ended_at IS NOT NULL) OR (ended_at IS NULL) <> (cause IS NULL)
        OR state IN ('DISPATCHED', 'ASSIGNED', 'RUNNING', 'CANCELLING') AND site_id IS NULL`,
  '1: every job of an accepted submission is there, in no other submission': `
    SELECT s.id, u.job_id, count(*) FROM submissions s, unnest(s.job_ids) AS u (job_id)
      LEFT JOIN jobs j ON j.id = u.job_id WHERE s.job_count <> cardinality(s.job_ids) OR j.user_id <> s.user_id
        OR j.id IS NULL AND (SELECT id FROM events_horizon) = 0
     GROUP BY 1, 2
    UNION ALL
    SELECT min(s.id), u.job_id, count(*) FROM submissions s, unnest(s.job_ids) AS u (job_id) GROUP BY 2 HAVING count(*) > 1`,
  '1: a job ends once': `
    SELECT entity_id, count(*) FROM events WHERE to_state IN ('COMPLETED', 'FAILED', 'CANCELLED') AND kind = 'JOB_STATE'
     GROUP BY 1 HAVING count(*) > 1`,
  '2: a job has one live run where its state says so, that of its epoch, and else none': `
    SELECT j.id, j.state, j.epoch, array_agg(r.epoch) FROM jobs j LEFT JOIN runs r ON r.job_id = j.id AND r.ended_at IS NULL
     GROUP BY j.id
    HAVING count(r.epoch) <> CASE WHEN j.state IN ('ASSIGNED', 'RUNNING', 'CANCELLING') THEN 1 ELSE 0 END
        OR max(r.epoch) <> j.epoch OR bool_or(r.site_id <> j.site_id)`,
  '2: epochs count the runs of a job': `
    SELECT j.id, j.epoch, count(r.epoch), max(r.epoch) FROM jobs j LEFT JOIN runs r ON r.job_id = j.id
     GROUP BY j.id HAVING count(r.epoch) <> j.epoch OR coalesce(max(r.epoch), 0) <> j.epoch`,
  '2: a run places all tasks of its job on machines of its site': `
    SELECT r.job_id, r.epoch FROM runs r JOIN jobs j ON j.id = r.job_id
     WHERE j.tasks <> (SELECT sum(t) FROM unnest(r.machine_tasks) t)
        OR EXISTS (SELECT 1 FROM unnest(r.machine_ids) AS u (id) LEFT JOIN machines m USING (id) WHERE m.site_id IS DISTINCT FROM r.site_id)`,
  '3: what machines count as used is what live runs hold, and there is as much': `
    SELECT m.id, m.cpus, m.cpus_used, t.cpus AS held, m.memory_used_mb, t.memory_mb AS held_mb, m.max_tasks, m.tasks_used, t.tasks
      FROM machines m
      LEFT JOIN (SELECT id, sum(CASE exclusive WHEN 'MACHINE' THEN cpus ELSE tasks * cpus_per_task END) AS cpus,
                        sum(CASE exclusive WHEN 'MACHINE' THEN places ELSE tasks END) AS tasks, sum(tasks::bigint * memory_mb_per_task) AS memory_mb
                   FROM ${HELD} held WHERE ended_at IS NULL GROUP BY 1) t USING (id)
     WHERE m.cpus_used <> CASE WHEN m.max_tasks IS NULL THEN coalesce(t.cpus, 0) ELSE 0 END
        OR m.tasks_used <> CASE WHEN m.max_tasks IS NULL THEN 0 ELSE coalesce(t.tasks, 0) END
        OR m.memory_used_mb <> coalesce(t.memory_mb, 0)
        OR m.cpus_used > m.cpus OR m.tasks_used > m.max_tasks OR m.memory_used_mb > m.memory_mb
        OR (m.removed_at IS NOT NULL AND m.cpus_used + m.tasks_used > 0)`,
  '3: a job that is to have its machines to itself is alone there': `
    SELECT r.job_id, other.job_id AS beside FROM ${HELD} r
      JOIN ${HELD} other ON other.id = r.id AND (other.job_id, other.place) <> (r.job_id, r.place)
     WHERE r.exclusive = 'MACHINE' AND r.ended_at IS NULL AND other.ended_at IS NULL`,
  '3: a job that keeps its machines for its user has no job of another there, and machines count such jobs': `
    SELECT m.id, m.keeping_runs, there.keeping, there.users FROM machines m
      LEFT JOIN (SELECT id, count(*) FILTER (WHERE exclusive = 'USER') AS keeping, count(DISTINCT user_id) AS users
                   FROM ${HELD} held WHERE ended_at IS NULL GROUP BY 1) there USING (id)
     WHERE m.keeping_runs <> coalesce(there.keeping, 0) OR (there.keeping > 0 AND there.users > 1)`,
  '3: resources that machines count as used are what live runs hold, and there are as many': `
    SELECT id, m.resources, m.resources_used, held FROM machines m
      LEFT JOIN (SELECT id, jsonb_object_agg(key, amount) AS held
                   FROM (SELECT id, e.key, sum(tasks * e.value::bigint) AS amount FROM ${HELD} held, jsonb_each_text(resources_per_task) e
                          WHERE ended_at IS NULL GROUP BY 1, 2) a GROUP BY 1) t USING (id)
     WHERE m.resources_used <> coalesce(held, '{}')
        OR EXISTS (SELECT 1 FROM jsonb_each_text(m.resources_used) e WHERE e.value::bigint > coalesce((m.resources ->> e.key)::bigint, 0))`,
  '3: live runs have the devices that they are said to have, all of machines that have them, and as many as they ask for': `
    SELECT coalesce(t.machine_id, h.machine_id), coalesce(t.unit, h.unit), t.job_id, h.job_id AS holder FROM (
      SELECT r.job_id, r.epoch, u.id AS machine_id, unit
        FROM runs r, unnest(r.machine_ids) WITH ORDINALITY AS u (id, place), jsonb_array_elements_text(r.devices -> (u.place - 1)::integer) AS unit
       WHERE r.ended_at IS NULL) t FULL JOIN device_holds h USING (job_id, epoch, machine_id, unit)
     WHERE t.unit IS NULL OR h.unit IS NULL OR NOT EXISTS (
       SELECT 1 FROM machines m, jsonb_array_elements(m.devices) d WHERE m.id = h.machine_id AND d ->> 'id' = split_part(h.unit, '/', 1))
    UNION ALL
    SELECT r.id, NULL, r.job_id, NULL FROM ${HELD} r JOIN machines m USING (id)
     WHERE r.ended_at IS NULL AND jsonb_array_length(coalesce(r.devices -> (r.place - 1)::integer, '[]')) <>
       (SELECT coalesce(sum(r.tasks * e.value::integer), 0) FROM jsonb_each_text(r.resources_per_task) e
         WHERE EXISTS (SELECT 1 FROM jsonb_array_elements(m.devices) d WHERE d ->> 'kind' = e.key))`,
  '3: a device that is for one user at a time has runs of one': `
    SELECT m.id, d ->> 'id' FROM machines m, jsonb_array_elements(m.devices) d, device_holds h JOIN jobs j ON j.id = h.job_id
     WHERE (d ->> 'oneUser')::boolean AND h.machine_id = m.id AND split_part(h.unit, '/', 1) = d ->> 'id'
     GROUP BY 1, 2 HAVING count(DISTINCT j.user_id) > 1`,
  '3: no two tasks of a job share a machine in time': `
    SELECT r.job_id, m.id FROM runs r, unnest(r.machine_ids, r.machine_tasks) AS u (id, tasks) JOIN machines m USING (id)
     WHERE r.ended_at IS NULL AND m.max_tasks IS NOT NULL AND u.tasks > 1`,
  '3: what licenses count as used is what live runs hold, and there is as much': `
    SELECT l.id, l.copies, l.in_use, t.n AS held FROM licenses l
      LEFT JOIN (SELECT u.id, sum(coalesce(u.amount, 1)) AS n FROM runs r, unnest(r.license_ids, r.license_amounts) AS u (id, amount) WHERE r.ended_at IS NULL GROUP BY 1) t USING (id)
     WHERE l.in_use <> coalesce(t.n, 0) OR l.in_use > l.copies`,
  '3: a live run holds of each kind that is counted in pools what its job asks for': `
    SELECT r.job_id, j.licenses, j.resources FROM runs r JOIN jobs j ON j.id = r.job_id
     WHERE r.ended_at IS NULL AND j.resources IS NOT NULL AND r.placed_by <> 'PEER' AND EXISTS (
       SELECT FROM (SELECT kind, sum(n) AS n FROM (SELECT key, value::bigint FROM jsonb_each_text(j.resources) UNION ALL SELECT l, 1 FROM unnest(j.licenses) l) a (kind, n) GROUP BY 1) asked
         FULL JOIN (SELECT l.kind, sum(u.amount) AS n FROM unnest(r.license_ids, r.license_amounts) u (id, amount) JOIN licenses l USING (id) GROUP BY 1) has USING (kind)
        WHERE asked.n IS DISTINCT FROM has.n)`,
  '3: a live run holds one license of each kind that its job asks for': `
    SELECT r.job_id, j.licenses FROM runs r JOIN jobs j ON j.id = r.job_id
     WHERE j.resources IS NULL AND j.licenses <> ARRAY(SELECT l.kind FROM unnest(r.license_ids) AS u (id) JOIN licenses l USING (id) ORDER BY l.kind COLLATE "C")`,
  '3: no submission exceeds its quota': `
    SELECT s.id, u.submission_limit FROM submissions s JOIN users u ON u.id = s.user_id
     WHERE u.submission_limit < (SELECT sum(e.job_count) FROM submissions e
       WHERE e.user_id = s.user_id AND e.at <= s.at AND e.at > s.at - make_interval(secs => u.submission_period_s))`,
  '3: the counts of jobs are right': `
    SELECT * FROM (SELECT coalesce(site_id, 0) AS site_id, state, count(*) AS n FROM jobs WHERE ended_at IS NULL GROUP BY 1, 2) j
      FULL JOIN job_counts c USING (site_id, state) WHERE coalesce(j.n, 0) <> coalesce(c.jobs, 0)`,
  "4: a job's events are numbered without a gap, in the order of their ids, up to the job's own number": `
    SELECT e.entity_id, count(*), min(e.seq), max(e.seq), j.seq FROM events e JOIN jobs j ON j.id = e.entity_id WHERE e.seq IS NOT NULL
     GROUP BY e.entity_id, j.seq
    HAVING max(e.seq) <> j.seq OR count(*) <> max(e.seq) - min(e.seq) + 1
        OR (min(e.seq) > 1 AND (SELECT id FROM events_horizon) = 0)
        OR array_agg(e.seq ORDER BY e.id) <> array_agg(e.seq ORDER BY e.seq)`,
  '4: every job has events': `
    SELECT id FROM jobs j WHERE (SELECT id FROM events_horizon) = 0
       AND NOT EXISTS (SELECT 1 FROM events e WHERE e.entity_id = j.id AND e.seq IS NOT NULL)`,
  '4: each event begins in the state in which the one before ended, by a legal transition; the last tells where the job is': `
    SELECT e.entity_id, e.seq, e.before, e.from_state, e.to_state, j.state, e.site_id, j.site_id AS at FROM (
      SELECT *, lag(to_state) OVER w AS before, lag(site_id) OVER w AS site_before, lag(seq) OVER w AS seq_before, seq = max(seq) OVER (PARTITION BY entity_id) AS last
        FROM events WHERE seq IS NOT NULL WINDOW w AS (PARTITION BY entity_id ORDER BY seq)) e
      JOIN jobs j ON j.id = e.entity_id
     WHERE (e.seq = 1) <> (e.from_state IS NULL)
        OR e.seq_before IS NOT NULL AND e.before <> e.from_state
        OR e.kind = 'JOB_STATE' AND e.seq > 1 AND NOT triggers.legal(e.from_state, e.to_state)
        OR e.kind = 'JOB_CHANGED' AND e.from_state <> e.to_state
        OR e.seq_before IS NOT NULL AND e.to_state IN ('QUEUED', 'HELD', 'DISPATCHED') AND e.site_before IS DISTINCT FROM e.from_site_id
        OR e.last AND (e.to_state <> j.state OR e.site_id IS DISTINCT FROM j.site_id)`,
  '4: traffic is what the events tell': `
    SELECT * FROM (
      SELECT site_id, floor(extract(epoch FROM at) / 5)::bigint * 5 AS at, count(*) FILTER (WHERE to_state IN ('QUEUED', 'DISPATCHED')) AS arrivals,
             count(*) FILTER (WHERE to_state NOT IN ('QUEUED', 'DISPATCHED')) AS services FROM events
       WHERE site_id IS NOT NULL AND at > now() - interval '50 minutes'
         AND (to_state IN ('QUEUED', 'DISPATCHED') AND from_site_id IS DISTINCT FROM site_id
              OR to_state IN ('COMPLETED', 'FAILED', 'CANCELLED') AND from_state IN ('ASSIGNED', 'RUNNING', 'CANCELLING'))
       GROUP BY 1, 2) e
      FULL JOIN (SELECT * FROM traffic WHERE at > extract(epoch FROM now()) - 3000) t USING (site_id, at)
     WHERE (SELECT id FROM events_horizon) = 0 AND at BETWEEN extract(epoch FROM now()) - 2990 AND extract(epoch FROM now()) + 60
       AND (e.arrivals IS DISTINCT FROM t.arrivals OR e.services IS DISTINCT FROM t.services)`,
  'the hours add up what jobs and runs came to': `
    WITH held (kind, user_id, key, s, e, cpus, times) AS (
      SELECT 'JOBS'::used_kind, 0, '', submitted_at, ended_at, 0, 1 FROM jobs
      UNION ALL
      SELECT k.kind, k.user_id, k.key, r.assigned_at, r.ended_at, coalesce((SELECT sum(c) FROM unnest(r.whole_cpus) c), r.cpus_per_task * coalesce((SELECT sum(t) FROM unnest(r.machine_tasks) t), 0)), k.times
        FROM runs r JOIN jobs j ON j.id = r.job_id,
             LATERAL (SELECT 'SITE'::used_kind, j.user_id, r.site_id::text, 1
                      UNION ALL SELECT 'APPLICATION', j.user_id, j.application, 1
                      UNION ALL SELECT 'LICENSE', 0, u.id::text, coalesce(u.amount, 1) FROM unnest(r.license_ids, r.license_amounts) u (id, amount)) AS k (kind, user_id, key, times)
       WHERE r.ended_at IS NOT NULL
    ), side AS (
      SELECT kind, user_id, key, s AS at, times::bigint AS sign, cpus FROM held
      UNION ALL SELECT kind, user_id, key, e, -times, cpus FROM held WHERE e IS NOT NULL
    ), hour AS (
      SELECT kind, user_id, key, floor(extract(epoch FROM at) / 3600)::bigint * 3600 AS hour, sum(sign) AS runs, sum(sign * cpus) AS cpus,
             sum(sign * (3600 - extract(epoch FROM at) % 3600)) AS run_s, sum(sign * cpus * (3600 - extract(epoch FROM at) % 3600)) AS cpu_s
        FROM side GROUP BY 1, 2, 3, 4
    ), ended AS (
      SELECT kind, user_id, key, floor(extract(epoch FROM ended_at) / 3600)::bigint * 3600 AS hour, count(*) AS jobs,
             count(*) FILTER (WHERE state = 'FAILED') AS failed, count(started_at) AS started, coalesce(sum(extract(epoch FROM started_at - submitted_at)), 0) AS wait_s
        FROM jobs, LATERAL (VALUES ('SITE'::used_kind, site_id::text), ('APPLICATION', application)) AS k (kind, key)
       WHERE ended_at IS NOT NULL AND key IS NOT NULL GROUP BY 1, 2, 3, 4
    )
    SELECT kind, hour, user_id, key, u.runs, h.runs AS is, u.cpus, h.cpus AS are, u.run_s, h.run_s AS are_s, u.cpu_s, h.cpu_s AS are_cpu_s,
           u.ended_jobs, e.jobs, u.wait_s, e.wait_s AS waited_s
      FROM used_hours u FULL JOIN hour h USING (kind, user_id, key, hour) FULL JOIN ended e USING (kind, user_id, key, hour)
     WHERE (SELECT id FROM events_horizon) = 0
       AND (coalesce(u.runs, 0) <> coalesce(h.runs, 0) OR coalesce(u.cpus, 0) <> coalesce(h.cpus, 0) OR u.begun < u.runs
            OR abs(coalesce(u.run_s, 0) - coalesce(h.run_s, 0)) > 0.1 OR abs(coalesce(u.cpu_s, 0) - coalesce(h.cpu_s, 0)) > 0.1
            OR coalesce(u.ended_jobs, 0) <> coalesce(e.jobs, 0) OR coalesce(u.failed_jobs, 0) <> coalesce(e.failed, 0)
            OR coalesce(u.started_jobs, 0) <> coalesce(e.started, 0) OR abs(coalesce(u.wait_s, 0) - coalesce(e.wait_s, 0)) > 0.1)`,
  'the hours add up what runs had of other resources': `
    WITH held (user_id, site, application, s, e, resource, amount) AS (
      SELECT j.user_id, r.site_id::text, j.application, r.assigned_at, r.ended_at, h.resource, h.amount
        FROM runs r JOIN jobs j ON j.id = r.job_id,
             LATERAL (SELECT key, sum(tasks * value::bigint) FROM ${HELD} held, jsonb_each_text(held.resources_per_task)
                       WHERE held.job_id = r.job_id AND held.epoch = r.epoch GROUP BY key
                      UNION ALL SELECT 'license:' || l.kind, coalesce(u.amount, 1) FROM unnest(r.license_ids, r.license_amounts) u (id, amount) JOIN licenses l USING (id)) AS h (resource, amount)
       WHERE r.ended_at IS NOT NULL
    ), hour AS (
      SELECT kind, user_id, key, resource, floor(extract(epoch FROM at) / 3600)::bigint * 3600 AS hour, sum(sign * amount) AS held,
             sum(sign * amount * (3600 - extract(epoch FROM at) % 3600)) AS held_s
        FROM held, LATERAL (VALUES ('SITE'::used_kind, site), ('APPLICATION', application)) AS k (kind, key), LATERAL (VALUES (1, s), (-1, e)) AS side (sign, at)
       GROUP BY 1, 2, 3, 4, 5
    )
    SELECT kind, hour, user_id, key, resource, u.held, h.held AS is, u.held_s, h.held_s AS are_s
      FROM used_resources u FULL JOIN hour h USING (kind, user_id, key, resource, hour)
     WHERE (SELECT id FROM events_horizon) = 0
       AND (coalesce(u.held, 0) <> coalesce(h.held, 0) OR abs(coalesce(u.held_s, 0) - coalesce(h.held_s, 0)) > 0.1)`,
  '7: every run that ended well and took time is in the history, once': `
    SELECT r.job_id, r.epoch, count(p.id) FROM runs r JOIN jobs j ON j.id = r.job_id AND j.state = 'COMPLETED' AND j.epoch = r.epoch
      LEFT JOIN job_ratios p ON p.job_id = r.job_id AND p.epoch = r.epoch
     WHERE (SELECT id FROM job_ratios_horizon) = 0 AND r.machine_ids <> '{}'
     GROUP BY 1, 2, r.assigned_at, r.started_at, r.ended_at
    HAVING count(p.id) <> CASE WHEN greatest(r.ended_at - r.started_at, least(r.ended_at, now()) - r.assigned_at) > interval '0' THEN 1 ELSE 0 END
    UNION ALL
    SELECT 0, 0, coalesce(p.n, 0) FROM (SELECT application, count(io_s) AS n FROM job_ratios GROUP BY 1 HAVING count(io_s) > 0) p
      FULL JOIN (SELECT application, sum(count) AS n FROM run_totals GROUP BY 1) a USING (application)
     WHERE (SELECT id FROM job_ratios_horizon) = 0 AND p.n IS DISTINCT FROM a.n`,
  '7: every run was decided': `
    SELECT r.job_id, count(*) AS runs FROM runs r GROUP BY 1
    HAVING count(*) <> (SELECT count(*) FROM decisions d WHERE d.job_id = r.job_id AND d.kind = 'START')`,
  '7: every move was decided: to a local queue, to a meta-queue, to a scheduler above the sites, or back': `
    SELECT e.entity_id FROM events e WHERE e.kind = 'JOB_STATE' AND e.note IS NULL AND (SELECT id FROM events_horizon) = 0
       AND (e.from_state = 'QUEUED' AND e.to_state IN ('QUEUED', 'DISPATCHED') OR e.from_state = 'DISPATCHED' AND e.to_state = 'QUEUED')
     GROUP BY 1 HAVING count(*) <> (SELECT count(*) FROM decisions d WHERE d.job_id = e.entity_id AND d.kind IN ('DISPATCH', 'TAKE_BACK') AND d.reason <> 'STARTS_ELSEWHERE')`,
  '7: who waits at a site was sent there by the last decision about it': `
    SELECT j.id, j.state, j.site_id, d.kind, d.site_id AS decided FROM jobs j
      LEFT JOIN LATERAL (SELECT kind, site_id FROM decisions WHERE job_id = j.id ORDER BY id DESC LIMIT 1) d ON true
     WHERE j.state IN ('QUEUED', 'DISPATCHED') AND j.site_id IS NOT NULL AND (d.kind IS DISTINCT FROM 'DISPATCH' OR d.site_id <> j.site_id)`,
  '7: every decision cites a policy that there is': `
    SELECT d.id, d.policy_version FROM decisions d LEFT JOIN policies p ON p.version = d.policy_version WHERE p.version IS NULL`,
};

/** What of the promises is broken in this database now: nothing, if all is well. */
export async function checkPromises(db: Pick<pg.Pool, 'connect'>): Promise<Breach[]> {
  const client = await db.connect();
  try {
    // One instant for all of them.
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const breaches: Breach[] = [];
    for (const [i, [promise, question]] of Object.entries(promises).entries()) {
      // By a name: planning them takes longer than the answers where there are few jobs.
      const { rows } = await client.query({
        name: `promise ${i}`,
        text: `SELECT * FROM (${question}) q LIMIT 5`,
      });
      if (rows.length > 0) breaches.push({ promise, rows });
    }
    await client.query('COMMIT');
    return breaches;
  } finally {
    client.release();
  }
}
