SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE SCHEMA public;
COMMENT ON SCHEMA public IS 'standard public schema';
CREATE SCHEMA triggers;
COMMENT ON SCHEMA triggers IS '0.1.0 2e9ca0a8df32c497e76e2aff77c69b7c45554bdd9e4c39f42b11600f86f3e8d7';
CREATE TYPE public.decision_kind AS ENUM (
    'DISPATCH',
    'START',
    'TAKE_BACK'
);
CREATE TYPE public.end_cause AS ENUM (
    'EXITED_ZERO',
    'EXITED_NONZERO',
    'SIGNALLED',
    'RUN_TIME_LIMIT',
    'MEMORY_LIMIT',
    'CPU_LIMIT',
    'DISK_LIMIT',
    'PROCESS_LIMIT',
    'STAGING_FAILED',
    'OUTPUTS_FAILED',
    'LAUNCH_FAILED',
    'MACHINE_FAILED',
    'LOST',
    'REFUSED',
    'CANCELLED_BY_USER',
    'CANCELLED_BY_OPERATOR',
    'DEADLINE_PASSED',
    'NEVER_FITS',
    'WITHDRAWN',
    'OTHER_TASK_FAILED'
);
CREATE TYPE public.event_kind AS ENUM (
    'JOB_STATE',
    'JOB_CHANGED',
    'SITE',
    'MACHINE',
    'AGENT',
    'LICENSE',
    'SCHEDULER',
    'USER',
    'POLICY',
    'SIMULATION',
    'DATA'
);
CREATE TYPE public.forwarding AS ENUM (
    'ALWAYS',
    'WHEN_NEEDED',
    'NEVER'
);
CREATE TYPE public.job_state AS ENUM (
    'QUEUED',
    'HELD',
    'DISPATCHED',
    'ASSIGNED',
    'RUNNING',
    'CANCELLING',
    'COMPLETED',
    'FAILED',
    'CANCELLED'
);
CREATE TYPE public.link_source AS ENUM (
    'ADMIN',
    'AGENT'
);
CREATE TYPE public.machine_state AS ENUM (
    'UP',
    'DRAINING',
    'DOWN'
);
CREATE TYPE public.measurement_method AS ENUM (
    'CGROUP',
    'DELAY_ACCOUNTING',
    'PROC',
    'SAMPLES',
    'SIMULATED'
);
CREATE TYPE public.output_stream AS ENUM (
    'STDOUT',
    'STDERR'
);
CREATE TYPE public.simulation_state AS ENUM (
    'QUEUED',
    'RUNNING',
    'DONE',
    'FAILED',
    'CANCELLED'
);
CREATE TYPE public.site_state AS ENUM (
    'UP',
    'DRAINING',
    'DOWN'
);
CREATE TYPE public.task_failure AS ENUM (
    'END_ALL',
    'CONTINUE'
);
CREATE TYPE public.task_launch AS ENUM (
    'EVERY_TASK',
    'ONCE'
);
CREATE TYPE public.used_kind AS ENUM (
    'JOBS',
    'SITE',
    'APPLICATION',
    'LICENSE'
);
CREATE TYPE public.user_class AS ENUM (
    'GOLD',
    'SILVER',
    'REGULAR'
);
CREATE TYPE public.user_role AS ENUM (
    'ADMIN',
    'OPERATOR',
    'USER',
    'AGENT',
    'PEER'
);
CREATE FUNCTION triggers.append_only() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'check_violation';
END $$;
CREATE FUNCTION triggers.dataset_replicas_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  INSERT INTO triggers.news (at, kind, entity_id)
    SELECT clock_timestamp(), 'DATA', dataset_id FROM changed_rows GROUP BY dataset_id ORDER BY dataset_id;
  RETURN NULL;
END $$;
CREATE FUNCTION triggers.datasets_inserted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  INSERT INTO triggers.news (at, kind, entity_id) SELECT clock_timestamp(), 'DATA', id FROM new_rows ORDER BY id;
  RETURN NULL;
END $$;
CREATE FUNCTION triggers.datasets_updated() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  INSERT INTO triggers.news (at, kind, entity_id)
    SELECT clock_timestamp(), 'DATA', n.id FROM new_rows n JOIN old_rows o USING (id) WHERE n IS DISTINCT FROM o ORDER BY n.id;
  RETURN NULL;
END $$;
CREATE FUNCTION triggers.directory_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE kind event_kind := TG_ARGV[0]; ignored text[] := string_to_array(TG_ARGV[1], ',');
BEGIN
  IF TG_OP = 'UPDATE' AND to_jsonb(NEW) - ignored = to_jsonb(OLD) - ignored THEN
    RETURN NULL;
  END IF;
  INSERT INTO triggers.news (at, kind, entity_id, site_id)
    VALUES (clock_timestamp(), kind, NEW.id, CASE kind WHEN 'SITE' THEN NEW.id ELSE (to_jsonb(NEW) ->> 'site_id')::integer END);
  RETURN NULL;
END $$;
CREATE FUNCTION triggers.ended(state public.job_state) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    RETURN (state = ANY (ARRAY['COMPLETED'::public.job_state, 'FAILED'::public.job_state, 'CANCELLED'::public.job_state]));
CREATE FUNCTION triggers.event_channel() RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN 'switchyard_events'::text;
CREATE FUNCTION triggers.event_lock() RETURNS bigint
    LANGUAGE sql IMMUTABLE
    RETURN 5928041;
CREATE FUNCTION triggers.events_inserted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  PERFORM pg_notify(triggers.event_channel(), '');
  RETURN NULL;
END $$;
CREATE FUNCTION triggers.events_inserting() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  PERFORM triggers.lock_events();
  RETURN NULL;
END $$;
CREATE FUNCTION triggers.files_added() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  INSERT INTO user_files AS u (user_id, bytes)
    SELECT user_id, sum(bytes) FROM new_rows GROUP BY user_id ORDER BY user_id
    ON CONFLICT (user_id) DO UPDATE SET bytes = u.bytes + excluded.bytes;
  RETURN NULL;
END $$;
CREATE FUNCTION triggers.files_deleted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  -- Of each run that goes it is asked.
  IF NOT EXISTS (SELECT FROM old_rows) THEN
    RETURN NULL;
  END IF;
  INSERT INTO user_files AS u (user_id, bytes)
    SELECT user_id, -sum(bytes) FROM old_rows GROUP BY user_id ORDER BY user_id
    ON CONFLICT (user_id) DO UPDATE SET bytes = u.bytes + excluded.bytes;
  INSERT INTO dead_files (id, upload) SELECT id, upload FROM old_rows;
  RETURN NULL;
END $$;
CREATE FUNCTION triggers.hour(epoch_s double precision) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    RETURN ((floor((epoch_s / (3600)::double precision)))::bigint * 3600);
CREATE FUNCTION triggers.illegal(id bigint, was public.job_state, becomes public.job_state, seq_was integer, seq_becomes integer) RETURNS public.job_state
    LANGUAGE plpgsql
    AS $$
BEGIN
  RAISE EXCEPTION 'job % may not go from % to % (seq % to %)', id, was, becomes, seq_was, seq_becomes
    USING ERRCODE = 'check_violation', CONSTRAINT = 'jobs_legal_transition';
END $$;
CREATE FUNCTION triggers.jobs_deleted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE ids bigint[] := ARRAY(SELECT id FROM old_rows);
BEGIN
  INSERT INTO user_outputs AS u (user_id, bytes)
    SELECT j.user_id, -sum(octet_length(o.body)) FROM outputs o JOIN old_rows j ON j.id = o.job_id
     WHERE o.body <> '' GROUP BY j.user_id ORDER BY j.user_id
    ON CONFLICT (user_id) DO UPDATE SET bytes = u.bytes + excluded.bytes;
  DELETE FROM runs WHERE job_id = ANY (ids);
  DELETE FROM decisions WHERE job_id = ANY (ids);
  DELETE FROM reservations WHERE job_id = ANY (ids);
  DELETE FROM offers WHERE job_id = ANY (ids);
  DELETE FROM foreign_jobs WHERE job_id = ANY (ids);
  RETURN NULL;
END $$;
CREATE FUNCTION triggers.jobs_inserted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  PERFORM triggers.missing('jobs', 'user', user_id) FROM (SELECT DISTINCT user_id FROM new_rows) n
    WHERE NOT EXISTS (SELECT FROM users WHERE id = n.user_id OFFSET 0);
  PERFORM triggers.missing('jobs', 'site', site_id)
     FROM (SELECT DISTINCT origin_site_id AS site_id FROM new_rows WHERE origin_site_id IS NOT NULL
           UNION SELECT DISTINCT site_id FROM new_rows WHERE site_id IS NOT NULL) n
    WHERE NOT EXISTS (SELECT FROM sites WHERE id = n.site_id OFFSET 0);
  INSERT INTO events (at, kind, entity_id, seq, to_state, user_id)
    SELECT submitted_at, 'JOB_STATE', id, seq, state, user_id FROM new_rows ORDER BY id;
  INSERT INTO job_counts AS c (site_id, state, jobs)
    SELECT 0, state, count(*) FROM new_rows GROUP BY state
    ON CONFLICT (site_id, state) DO UPDATE SET jobs = c.jobs + excluded.jobs;
  INSERT INTO user_jobs AS u (user_id, jobs, bytes)
    SELECT user_id, count(*), sum(bytes) FROM new_rows GROUP BY user_id
    ON CONFLICT (user_id) DO UPDATE SET jobs = u.jobs + excluded.jobs, bytes = u.bytes + excluded.bytes;
  RETURN NULL;
END $$;
CREATE FUNCTION triggers.jobs_learned() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM new_rows WHERE state = 'COMPLETED') THEN
    RETURN NULL;
  END IF;
  WITH run AS MATERIALIZED (
    SELECT j.id, j.application, j.user_id, r.epoch, r.site_id, r.ended_at, r.wall_s, p.slowest,
           p.slowest / (SELECT coalesce((document ->> 'referencePower')::float8, 1) FROM policies ORDER BY version DESC LIMIT 1) AS f,
           CASE WHEN r.io_wait_s IS NOT NULL THEN least(r.wall_s, greatest(0, r.io_wait_s)) END AS io_s, r.io_wait_method AS io_method,
           '[' || coalesce(to_json(j.os)::text, 'null') || ',' || coalesce(to_json(j.architecture)::text, 'null')
               || CASE WHEN j.licenses = '{}' THEN ''
                       ELSE (SELECT string_agg(',' || to_json(kind)::text, '' ORDER BY place)
                               FROM unnest(j.licenses) WITH ORDINALITY AS l (kind, place)) END
               || ']' AS kinds
      FROM new_rows j,
           LATERAL (SELECT *, extract(epoch FROM greatest(ended_at - started_at, least(ended_at, clock_timestamp()) - assigned_at))::float8 AS wall_s
                       FROM runs WHERE job_id = j.id AND epoch = j.epoch OFFSET 0) r,
           LATERAL (SELECT min(benchmark) AS slowest FROM machines WHERE id = ANY (r.machine_ids)) p
     WHERE j.state = 'COMPLETED' AND r.wall_s > 0 AND p.slowest IS NOT NULL
  ), known AS MATERIALIZED (
    SELECT application, sum(count)::bigint AS runs, sum(count * turnaround_s) AS turnaround_s, sum(count * execution_s) AS execution_s
      FROM run_averages WHERE application IN (SELECT application FROM run) GROUP BY 1
  ), averaged AS (
    INSERT INTO run_averages AS a (application, user_id, kinds, count, turnaround_s, execution_s, io_s, event_id, updated_at)
      SELECT application, user_id, kinds, count(*), avg(f * wall_s), avg(f * (wall_s - io_s)), avg(f * io_s),
             (SELECT max(id) FROM events), clock_timestamp()
        FROM run WHERE io_s IS NOT NULL GROUP BY 1, 2, 3
      ON CONFLICT (application, user_id, kinds) DO UPDATE SET count = a.count + excluded.count,
        turnaround_s = (a.turnaround_s * a.count + excluded.turnaround_s * excluded.count) / (a.count + excluded.count),
        execution_s = (a.execution_s * a.count + excluded.execution_s * excluded.count) / (a.count + excluded.count),
        io_s = (a.io_s * a.count + excluded.io_s * excluded.count) / (a.count + excluded.count),
        event_id = excluded.event_id, updated_at = excluded.updated_at
  ), summed AS (
    SELECT r.*, coalesce(k.runs, 0) + count(r.io_s) OVER so_far AS runs,
           coalesce(k.turnaround_s, 0) + coalesce(sum(r.f * r.wall_s) FILTER (WHERE r.io_s IS NOT NULL) OVER so_far, 0) AS turnaround_sum,
           coalesce(k.execution_s, 0) + coalesce(sum(r.f * (r.wall_s - r.io_s)) OVER so_far, 0) AS execution_sum
      FROM run r LEFT JOIN known k USING (application)
    WINDOW so_far AS (PARTITION BY r.application ORDER BY r.id ROWS UNBOUNDED PRECEDING)
  )
  INSERT INTO job_ratios (application, at, job_id, epoch, site_id, turnaround_s, io_s, io_method, site_power, runs, computation)
    SELECT application, least(ended_at, clock_timestamp()), id, epoch, site_id, wall_s, io_s, io_method, slowest, runs,
           CASE WHEN runs = 0 THEN NULL WHEN turnaround_sum > 0 THEN least(1, greatest(0, execution_sum / turnaround_sum)) ELSE 1 END
      FROM summed ORDER BY id;
  RETURN NULL;
END $$;
CREATE FUNCTION triggers.jobs_offered() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM offers) THEN
    RETURN NULL;
  END IF;
  WITH change AS MATERIALIZED (
    SELECT n.id, n.state, n.epoch, n.boost <> o.boost OR n.state = 'CANCELLING' AND o.state <> 'CANCELLING' AS is_news
      FROM new_rows n JOIN old_rows o USING (id)
  ), offered AS MATERIALIZED (
    SELECT o.job_id, o.site_id, c.is_news,
           CASE WHEN o.epoch IS NULL THEN c.state NOT IN ('QUEUED', 'DISPATCHED')
                ELSE o.epoch <> c.epoch OR NOT triggers.live(c.state) END AS is_over
      FROM change c JOIN offers o ON o.job_id = c.id WHERE NOT o.withdrawn
  )
  UPDATE offers o SET version = nextval('offers_number'), withdrawn = f.is_over
    FROM offered f WHERE o.job_id = f.job_id AND o.site_id = f.site_id AND (f.is_over OR f.is_news);
  RETURN NULL;
END $$;
CREATE FUNCTION triggers.jobs_updated() RETURNS trigger
    LANGUAGE plpgsql
    SET enable_nestloop TO 'off'
    AS $$
DECLARE instant timestamptz(3) := clock_timestamp();
BEGIN
  PERFORM triggers.lock_events();
  WITH change AS MATERIALIZED (
    SELECT n.id, n.seq, n.state, n.site_id, n.scheduler_id IS DISTINCT FROM o.scheduler_id AS rehung, n.user_id, n.epoch, n.cause, n.deadline, n.estimate_s, n.submitted_at, n.bytes,
           o.seq AS seq_was, o.state AS was, o.site_id AS was_at
      FROM new_rows n JOIN old_rows o USING (id) ORDER BY n.id
  ), kind AS MATERIALIZED (
    SELECT was, was_at, state, triggers.known_site(site_id) AS site_id, count(*) AS jobs FROM change
     GROUP BY was, was_at, state, change.site_id
  ), told AS (
    INSERT INTO events (at, kind, entity_id, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause)
      SELECT instant,
             CASE WHEN state = was AND (state <> 'QUEUED' OR site_id IS NOT DISTINCT FROM was_at AND NOT rehung) THEN 'JOB_CHANGED'
                  ELSE 'JOB_STATE' END::event_kind,
             id, seq, was,
             CASE WHEN seq = seq_was + 1 AND (state = was AND NOT triggers.ended(state) OR triggers.legal(was, state)) THEN state
                  ELSE triggers.illegal(id, was, state, seq_was, seq) END,
             site_id, CASE WHEN triggers.waiting(state) THEN was_at END, user_id, epoch, cause
        FROM change
  ), counted AS (
    INSERT INTO job_counts AS c (site_id, state, jobs)
      SELECT coalesce(site_id, 0), state, sum(jobs) FROM (
          SELECT was_at AS site_id, was AS state, -jobs AS jobs FROM kind WHERE NOT triggers.ended(was)
          UNION ALL
          SELECT site_id, state, jobs FROM kind WHERE NOT triggers.ended(state)) d
        GROUP BY 1, 2 HAVING sum(jobs) <> 0
      ON CONFLICT (site_id, state) DO UPDATE SET jobs = c.jobs + excluded.jobs
  ), freed AS (
    UPDATE user_jobs u SET jobs = u.jobs - d.jobs, bytes = u.bytes - d.bytes
      FROM (SELECT user_id, count(*) AS jobs, sum(bytes) AS bytes FROM change
             WHERE triggers.ended(state) AND NOT triggers.ended(was) GROUP BY user_id) d
     WHERE u.user_id = d.user_id
  ), moved AS (
    INSERT INTO traffic AS t (site_id, at, arrivals, services)
      SELECT site_id, floor(extract(epoch FROM instant) / triggers.traffic_interval_s())::bigint * triggers.traffic_interval_s(),
             coalesce(sum(jobs) FILTER (WHERE NOT triggers.ended(state)), 0),
             coalesce(sum(jobs) FILTER (WHERE triggers.ended(state)), 0)
        FROM kind
       WHERE site_id IS NOT NULL
         AND (state IN ('QUEUED', 'DISPATCHED') AND was_at IS DISTINCT FROM site_id OR triggers.ended(state) AND triggers.live(was))
       GROUP BY site_id
      ON CONFLICT (site_id, at) DO UPDATE SET arrivals = t.arrivals + excluded.arrivals, services = t.services + excluded.services
  )
  INSERT INTO margins (margin_s)
    SELECT extract(epoch FROM deadline)::float8 - estimate_s - extract(epoch FROM submitted_at)::float8
      FROM change WHERE was = 'QUEUED' AND state = 'DISPATCHED' AND deadline IS NOT NULL;
  RETURN NULL;
END $$;
CREATE FUNCTION triggers.jobs_used() RETURNS trigger
    LANGUAGE plpgsql
    SET enable_nestloop TO 'off'
    AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO used_hours AS u (kind, hour, user_id, key, runs, run_s, cpus, cpu_s, begun, ended_jobs, failed_jobs, started_jobs, wait_s)
      SELECT 'JOBS', triggers.hour(s), 0, '', count(*), sum(triggers.rest_of_hour(s)), 0, 0, count(*), 0, 0, 0, 0
        FROM (SELECT date_part('epoch', submitted_at) AS s FROM new_rows) n GROUP BY 2
      ON CONFLICT (kind, hour, user_id, key) DO UPDATE SET
        runs = u.runs + excluded.runs, run_s = u.run_s + excluded.run_s, begun = u.begun + excluded.begun;
    RETURN NULL;
  END IF;
  IF NOT EXISTS (SELECT FROM new_rows WHERE triggers.ended(state))
     AND NOT (EXISTS (SELECT FROM old_rows WHERE triggers.live(state)) AND EXISTS (SELECT FROM new_rows WHERE NOT triggers.live(state))) THEN
    RETURN NULL;
  END IF;
  WITH change AS MATERIALIZED (
    SELECT n.user_id, n.application, n.site_id, n.state = 'FAILED' AS failed, date_part('epoch', n.ended_at) AS over_at,
           date_part('epoch', n.started_at - n.submitted_at) AS wait_s, r.*
      FROM new_rows n JOIN old_rows o USING (id)
      LEFT JOIN LATERAL (
        SELECT site_id AS ran_at, license_ids, date_part('epoch', assigned_at) AS s, date_part('epoch', ended_at) AS e,
               cpus_per_task * (SELECT coalesce(sum(v), 0) FROM unnest(machine_tasks) v) AS cpus
          FROM runs WHERE job_id = o.id AND epoch = o.epoch AND triggers.live(o.state) OFFSET 0) r ON true
     WHERE triggers.live(o.state) > triggers.live(n.state) OR triggers.ended(n.state) > triggers.ended(o.state)
  ), run AS MATERIALIZED (
    SELECT user_id, application, ran_at, license_ids, triggers.hour(s) AS begins, triggers.hour(e) AS ends,
           count(*) AS runs, sum(triggers.rest_of_hour(s)) AS begun_s, sum(triggers.rest_of_hour(e)) AS ended_s,
           sum(cpus) AS cpus, sum(cpus * triggers.rest_of_hour(s)) AS begun_cpu_s, sum(cpus * triggers.rest_of_hour(e)) AS ended_cpu_s
      FROM change WHERE e IS NOT NULL GROUP BY 1, 2, 3, 4, 5, 6
  ), job AS MATERIALIZED (
    SELECT user_id, application, site_id, triggers.hour(over_at) AS ends, count(*) AS jobs, sum(triggers.rest_of_hour(over_at)) AS ended_s,
           count(*) FILTER (WHERE failed) AS failed, count(wait_s) AS started, coalesce(sum(wait_s), 0) AS wait_s
      FROM change WHERE over_at IS NOT NULL GROUP BY 1, 2, 3, 4
  ), part AS (
    SELECT kind, hour, of_user AS user_id, key, sign * runs AS runs, sign * rest_s AS run_s, sign * cpus AS cpus, sign * rest_cpu_s AS cpu_s,
           greatest(sign, 0) * runs AS begun, 0 AS jobs, 0 AS failed, 0 AS started, 0 AS wait_s
      FROM run, LATERAL (
        SELECT 'SITE'::used_kind, user_id, ran_at::text
        UNION ALL SELECT 'APPLICATION', user_id, application
        UNION ALL SELECT 'LICENSE', 0, license::text FROM unnest(license_ids) license) AS k (kind, of_user, key),
        LATERAL (VALUES (1, begins, begun_s, begun_cpu_s), (-1, ends, ended_s, ended_cpu_s)) AS side (sign, hour, rest_s, rest_cpu_s)
    UNION ALL
    SELECT 'JOBS', ends, 0, '', -jobs, -ended_s, 0, 0, 0, 0, 0, 0, 0 FROM job
    UNION ALL
    SELECT 'SITE', ends, user_id, site_id::text, 0, 0, 0, 0, 0, jobs, failed, started, wait_s FROM job WHERE site_id IS NOT NULL
    UNION ALL
    SELECT 'APPLICATION', ends, user_id, application, 0, 0, 0, 0, 0, jobs, failed, started, wait_s FROM job
  )
  INSERT INTO used_hours AS u (kind, hour, user_id, key, runs, run_s, cpus, cpu_s, begun, ended_jobs, failed_jobs, started_jobs, wait_s)
    SELECT kind, hour, user_id, key, sum(runs), sum(run_s), sum(cpus), sum(cpu_s), sum(begun), sum(jobs), sum(failed), sum(started), sum(wait_s)
      FROM part GROUP BY 1, 2, 3, 4
    ON CONFLICT (kind, hour, user_id, key) DO UPDATE SET
      runs = u.runs + excluded.runs, run_s = u.run_s + excluded.run_s, cpus = u.cpus + excluded.cpus, cpu_s = u.cpu_s + excluded.cpu_s,
      begun = u.begun + excluded.begun, ended_jobs = u.ended_jobs + excluded.ended_jobs, failed_jobs = u.failed_jobs + excluded.failed_jobs,
      started_jobs = u.started_jobs + excluded.started_jobs, wait_s = u.wait_s + excluded.wait_s;
  RETURN NULL;
END $$;
CREATE FUNCTION triggers.known_site(site integer) RETURNS integer
    LANGUAGE plpgsql STABLE STRICT
    AS $$
BEGIN
  PERFORM triggers.missing('jobs', 'site', site) WHERE NOT EXISTS (SELECT FROM sites WHERE id = site);
  RETURN site;
END $$;
CREATE FUNCTION triggers.legal(was public.job_state, becomes public.job_state) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    RETURN CASE was WHEN 'QUEUED'::public.job_state THEN (becomes = ANY (ARRAY['QUEUED'::public.job_state, 'DISPATCHED'::public.job_state, 'HELD'::public.job_state, 'CANCELLED'::public.job_state])) WHEN 'HELD'::public.job_state THEN (becomes = ANY (ARRAY['QUEUED'::public.job_state, 'DISPATCHED'::public.job_state, 'CANCELLED'::public.job_state])) WHEN 'DISPATCHED'::public.job_state THEN (becomes = ANY (ARRAY['ASSIGNED'::public.job_state, 'QUEUED'::public.job_state, 'HELD'::public.job_state, 'CANCELLED'::public.job_state])) WHEN 'ASSIGNED'::public.job_state THEN (becomes = ANY (ARRAY['RUNNING'::public.job_state, 'COMPLETED'::public.job_state, 'FAILED'::public.job_state, 'QUEUED'::public.job_state, 'CANCELLING'::public.job_state])) WHEN 'RUNNING'::public.job_state THEN (becomes = ANY (ARRAY['COMPLETED'::public.job_state, 'FAILED'::public.job_state, 'QUEUED'::public.job_state, 'CANCELLING'::public.job_state])) WHEN 'CANCELLING'::public.job_state THEN (becomes = ANY (ARRAY['COMPLETED'::public.job_state, 'CANCELLED'::public.job_state])) ELSE false END;
CREATE FUNCTION triggers.links_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  INSERT INTO triggers.news (at, kind, entity_id, site_id)
    SELECT clock_timestamp(), 'DATA', from_site_id, to_site_id FROM changed_rows ORDER BY from_site_id, to_site_id;
  RETURN NULL;
END $$;
CREATE FUNCTION triggers.links_updated() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  INSERT INTO triggers.news (at, kind, entity_id, site_id)
    SELECT clock_timestamp(), 'DATA', from_site_id, to_site_id FROM new_rows n JOIN old_rows o USING (from_site_id, to_site_id)
     WHERE (n.bandwidth_mb_per_s, n.rtt_s, n.loss) IS DISTINCT FROM (o.bandwidth_mb_per_s, o.rtt_s, o.loss)
     ORDER BY from_site_id, to_site_id;
  RETURN NULL;
END $$;
CREATE FUNCTION triggers.live(state public.job_state) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    RETURN (state = ANY (ARRAY['ASSIGNED'::public.job_state, 'RUNNING'::public.job_state, 'CANCELLING'::public.job_state]));
CREATE FUNCTION triggers.lock_events() RETURNS void
    LANGUAGE sql
    AS $$
  SELECT pg_advisory_xact_lock(triggers.event_lock());
$$;
CREATE FUNCTION triggers.machine_of(machine_ids integer[], machine_tasks integer[], task integer) RETURNS integer
    LANGUAGE sql IMMUTABLE
    AS $$
  SELECT CASE WHEN task IS NULL THEN machine_ids[1] ELSE
           (SELECT id FROM (SELECT id, place, sum(tasks) OVER (ORDER BY place) AS behind
                              FROM unnest(machine_ids, machine_tasks) WITH ORDINALITY AS u (id, tasks, place)) m
             WHERE behind > task ORDER BY place LIMIT 1) END
$$;
CREATE FUNCTION triggers.missing(row_of text, kind text, id bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
  RAISE EXCEPTION '%: there is no % %', row_of, kind, id
    USING ERRCODE = 'foreign_key_violation', CONSTRAINT = row_of || '_' || kind;
END $$;
CREATE FUNCTION triggers.never_deleted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  RAISE EXCEPTION 'rows of % are never deleted', TG_TABLE_NAME USING ERRCODE = 'check_violation';
END $$;
CREATE FUNCTION triggers.outputs_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO user_outputs AS u (user_id, bytes)
      SELECT j.user_id, sum(octet_length(n.body)) FROM new_rows n JOIN jobs j ON j.id = n.job_id
       WHERE n.body <> '' GROUP BY j.user_id ORDER BY j.user_id
      ON CONFLICT (user_id) DO UPDATE SET bytes = u.bytes + excluded.bytes;
  END IF;
  IF TG_OP <> 'INSERT' THEN
    INSERT INTO user_outputs AS u (user_id, bytes)
      SELECT j.user_id, -sum(octet_length(o.body)) FROM old_rows o JOIN jobs j ON j.id = o.job_id
       WHERE o.body <> '' GROUP BY j.user_id ORDER BY j.user_id
      ON CONFLICT (user_id) DO UPDATE SET bytes = u.bytes + excluded.bytes;
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION triggers.policies_inserted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  INSERT INTO triggers.news (at, kind, entity_id) VALUES (NEW.created_at, 'POLICY', NEW.version);
  RETURN NULL;
END $$;
CREATE FUNCTION triggers.rest_of_hour(epoch_s double precision) RETURNS double precision
    LANGUAGE sql IMMUTABLE
    RETURN (((triggers.hour(epoch_s) + 3600))::double precision - epoch_s);
CREATE FUNCTION triggers.runs_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
  beginning boolean := TG_OP = 'INSERT';
  sign integer := CASE WHEN beginning THEN 1 ELSE -1 END;
  site integer;
BEGIN
  IF beginning THEN
    PERFORM triggers.missing('runs', 'site', site_id) FROM (SELECT DISTINCT site_id FROM new_rows) n
      WHERE NOT EXISTS (SELECT FROM sites WHERE id = n.site_id OFFSET 0);
    PERFORM triggers.missing('runs', 'policy', policy_version) FROM (SELECT DISTINCT policy_version FROM new_rows) n
      WHERE NOT EXISTS (SELECT FROM policies WHERE version = n.policy_version OFFSET 0);
    PERFORM triggers.missing('runs', 'job', job_id) FROM new_rows n WHERE NOT EXISTS (SELECT FROM jobs WHERE id = n.job_id OFFSET 0);
    PERFORM 1 FROM sites WHERE id IN (SELECT site_id FROM new_rows) AND max_running_jobs IS NOT NULL ORDER BY id FOR NO KEY UPDATE;
    SELECT id INTO site FROM sites s WHERE id IN (SELECT site_id FROM new_rows WHERE ended_at IS NULL)
       AND max_running_jobs < (SELECT count(*) FROM runs r WHERE r.site_id = s.id AND r.ended_at IS NULL) LIMIT 1;
    IF FOUND THEN
      RAISE EXCEPTION 'site % runs more jobs than it may', site
        USING ERRCODE = 'check_violation', CONSTRAINT = 'sites_running_jobs_limited';
    END IF;
  ELSE
    IF EXISTS (SELECT FROM old_rows WHERE ended_at IS NOT NULL) THEN
      RAISE EXCEPTION 'an ended run may not change' USING ERRCODE = 'check_violation', CONSTRAINT = 'runs_end_once';
    END IF;
    IF NOT EXISTS (SELECT FROM new_rows WHERE ended_at IS NOT NULL) THEN
      RETURN NULL;
    END IF;
  END IF;
  PERFORM 1 FROM machines WHERE id IN (SELECT unnest(machine_ids) FROM new_rows WHERE (ended_at IS NULL) = beginning)
    ORDER BY id FOR NO KEY UPDATE;
  UPDATE machines m SET
      cpus_used = m.cpus_used + CASE WHEN m.max_tasks IS NULL THEN sign * t.cpus ELSE 0 END,
      tasks_used = m.tasks_used + CASE WHEN m.max_tasks IS NULL THEN 0 ELSE sign * t.tasks END,
      memory_used_mb = m.memory_used_mb + sign * t.memory_mb,
      -- Who has started something is not broken. Those that fail together count once.
      launch_failures = CASE WHEN t.started THEN 0 ELSE m.launch_failures END + CASE WHEN t.failed THEN 1 ELSE 0 END
    FROM (SELECT u.machine_id, sum(u.tasks * r.cpus_per_task) AS cpus, sum(u.tasks) AS tasks,
                 sum(u.tasks::bigint * r.memory_mb_per_task) AS memory_mb,
                 bool_or(r.started_at IS NOT NULL AND r.cause <> 'MACHINE_FAILED') IS TRUE AS started,
                 bool_or(r.cause = 'MACHINE_FAILED' AND u.machine_id = triggers.machine_of(r.machine_ids, r.machine_tasks, r.failed_task)) IS TRUE AS failed
            FROM new_rows r, unnest(r.machine_ids, r.machine_tasks) AS u (machine_id, tasks)
           WHERE (r.ended_at IS NULL) = beginning GROUP BY 1) t
    WHERE m.id = t.machine_id;
  PERFORM 1 FROM licenses WHERE id IN (SELECT unnest(license_ids) FROM new_rows WHERE (ended_at IS NULL) = beginning)
    ORDER BY id FOR NO KEY UPDATE;
  UPDATE licenses l SET in_use = l.in_use + sign * t.copies
    FROM (SELECT u.license_id, count(*) AS copies FROM new_rows r, unnest(r.license_ids) AS u (license_id)
           WHERE (r.ended_at IS NULL) = beginning GROUP BY 1) t
    WHERE l.id = t.license_id;
  RETURN NULL;
END $$;
CREATE FUNCTION triggers.simulations_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    IF OLD.ended_at IS NOT NULL THEN
      RAISE EXCEPTION 'an ended simulation may not change' USING ERRCODE = 'check_violation', CONSTRAINT = 'simulations_end_once';
    END IF;
    IF NEW.state = OLD.state AND NEW.progress = OLD.progress THEN
      RETURN NULL;
    END IF;
  END IF;
  INSERT INTO triggers.news (at, kind, entity_id, user_id) VALUES (clock_timestamp(), 'SIMULATION', NEW.id, NEW.user_id);
  RETURN NULL;
END $$;
CREATE FUNCTION triggers.tell() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  INSERT INTO events (at, kind, entity_id, site_id, user_id) VALUES (NEW.at, NEW.kind, NEW.entity_id, NEW.site_id, NEW.user_id);
  DELETE FROM triggers.news WHERE place = NEW.place;
  RETURN NULL;
END $$;
CREATE FUNCTION triggers.traffic_interval_s() RETURNS integer
    LANGUAGE sql IMMUTABLE
    RETURN 5;
CREATE FUNCTION triggers.waiting(state public.job_state) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    RETURN (state = ANY (ARRAY['QUEUED'::public.job_state, 'HELD'::public.job_state, 'DISPATCHED'::public.job_state]));
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public._prisma_migrations (
    id character varying(36) NOT NULL,
    checksum character varying(64) NOT NULL,
    finished_at timestamp with time zone,
    migration_name character varying(255) NOT NULL,
    logs text,
    rolled_back_at timestamp with time zone,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    applied_steps_count integer DEFAULT 0 NOT NULL
);
CREATE TABLE public.agents (
    id integer NOT NULL,
    site_id integer NOT NULL,
    identity text NOT NULL COLLATE pg_catalog."C",
    instance text NOT NULL,
    superseded text[] DEFAULT '{}'::text[] NOT NULL,
    host text NOT NULL,
    version text NOT NULL,
    protocol integer NOT NULL,
    simulated boolean NOT NULL,
    registered_at timestamp(3) with time zone NOT NULL,
    seen_at timestamp(3) with time zone NOT NULL,
    problem text,
    CONSTRAINT agents_identity_check CHECK ((identity <> ''::text)),
    CONSTRAINT agents_superseded_check CHECK ((cardinality(superseded) <= 8))
)
WITH (fillfactor='50');
ALTER TABLE public.agents ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.agents_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.api_keys (
    id integer NOT NULL,
    user_id integer NOT NULL,
    name text NOT NULL,
    prefix text NOT NULL,
    hash text NOT NULL,
    site_id integer,
    acts_for_users boolean DEFAULT false NOT NULL,
    made_by integer,
    created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
    expires_at timestamp(3) with time zone,
    revoked_at timestamp(3) with time zone,
    last_used_at timestamp(3) with time zone
);
ALTER TABLE public.api_keys ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.api_keys_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.audits (
    id bigint NOT NULL,
    at timestamp(3) with time zone DEFAULT now() NOT NULL,
    user_id integer,
    action text NOT NULL,
    target text NOT NULL,
    reason text,
    before jsonb,
    after jsonb,
    request_id text
);
ALTER TABLE public.audits ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.audits_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.dataset_replicas (
    dataset_id integer NOT NULL,
    site_id integer NOT NULL,
    at timestamp(3) with time zone DEFAULT now() NOT NULL,
    location text,
    CONSTRAINT dataset_replicas_location_check CHECK (((length(location) >= 1) AND (length(location) <= 2000)))
);
CREATE TABLE public.datasets (
    id integer NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    size_mb double precision NOT NULL,
    sha256 text,
    created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
    removed_at timestamp(3) with time zone,
    job_id bigint,
    CONSTRAINT datasets_name_check CHECK ((name <> ''::text)),
    CONSTRAINT datasets_sha256_check CHECK ((sha256 ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT datasets_size_mb_check CHECK (((size_mb >= (0)::double precision) AND (size_mb <= ('1000000000000'::numeric)::double precision)))
);
ALTER TABLE public.datasets ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.datasets_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.dead_files (
    id bigint NOT NULL,
    upload text
);
CREATE TABLE public.decisions (
    id bigint NOT NULL,
    job_id bigint NOT NULL,
    at timestamp(3) with time zone NOT NULL,
    kind public.decision_kind NOT NULL,
    policy_version integer NOT NULL,
    from_site_id integer,
    site_id integer,
    reason text NOT NULL,
    cycle text NOT NULL,
    detail text NOT NULL
);
ALTER TABLE public.decisions ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.decisions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.events (
    id bigint NOT NULL,
    at timestamp(3) with time zone NOT NULL,
    entity_id bigint NOT NULL,
    kind public.event_kind NOT NULL,
    seq integer,
    from_state public.job_state,
    to_state public.job_state,
    site_id integer,
    from_site_id integer,
    user_id integer,
    epoch integer,
    cause public.end_cause,
    CONSTRAINT events_check CHECK (((kind = ANY (ARRAY['JOB_STATE'::public.event_kind, 'JOB_CHANGED'::public.event_kind])) = (seq IS NOT NULL))),
    CONSTRAINT events_check1 CHECK (((kind = ANY (ARRAY['JOB_STATE'::public.event_kind, 'JOB_CHANGED'::public.event_kind])) = (to_state IS NOT NULL)))
);
CREATE TABLE public.events_horizon (
    singleton boolean DEFAULT true NOT NULL,
    id bigint NOT NULL,
    CONSTRAINT events_horizon_singleton_check CHECK (singleton)
);
ALTER TABLE public.events ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.files (
    id bigint NOT NULL,
    job_id bigint NOT NULL,
    epoch integer NOT NULL,
    task integer DEFAULT 0 NOT NULL,
    user_id integer NOT NULL,
    path text NOT NULL COLLATE pg_catalog."C",
    bytes bigint NOT NULL,
    sha256 text NOT NULL,
    received bigint DEFAULT 0 NOT NULL,
    upload text,
    parts text[] DEFAULT '{}'::text[] NOT NULL,
    began_at timestamp(3) with time zone NOT NULL,
    kept_at timestamp(3) with time zone,
    CONSTRAINT files_bytes_check CHECK ((bytes >= 0)),
    CONSTRAINT files_check CHECK (((received >= 0) AND (received <= bytes))),
    CONSTRAINT files_path_check CHECK (((length(path) >= 1) AND (length(path) <= 1000))),
    CONSTRAINT files_sha256_check CHECK ((sha256 ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT files_task_check CHECK ((task >= 0)),
    CONSTRAINT files_whole CHECK (((kept_at IS NULL) OR (received = bytes)))
);
ALTER TABLE public.files ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.files_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.foreign_jobs (
    job_id bigint NOT NULL,
    site_id integer NOT NULL,
    offer bigint NOT NULL,
    owner_job_id bigint NOT NULL,
    owner_user text NOT NULL,
    request text NOT NULL COLLATE pg_catalog."C",
    hops integer NOT NULL,
    visited text[] NOT NULL,
    epoch integer,
    inputs jsonb,
    told smallint DEFAULT 0 NOT NULL,
    path_told text[] DEFAULT '{}'::text[] NOT NULL,
    CONSTRAINT foreign_jobs_told_check CHECK (((told >= 0) AND (told <= 2)))
)
WITH (fillfactor='50');
CREATE TABLE public.job_counts (
    site_id integer NOT NULL,
    state public.job_state NOT NULL,
    jobs bigint NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.job_groups (
    id bigint NOT NULL,
    user_id integer NOT NULL,
    name text,
    template jsonb,
    size integer NOT NULL,
    first_job_id bigint NOT NULL,
    last_job_id bigint NOT NULL,
    created_at timestamp(3) with time zone NOT NULL,
    CONSTRAINT job_groups_range CHECK (((last_job_id - first_job_id) >= (size - 1))),
    CONSTRAINT job_groups_size_check CHECK ((size > 0))
);
CREATE TABLE public.job_ratios (
    id bigint NOT NULL,
    application text NOT NULL COLLATE pg_catalog."C",
    at timestamp(3) with time zone NOT NULL,
    job_id bigint NOT NULL,
    epoch integer NOT NULL,
    site_id integer NOT NULL,
    turnaround_s double precision NOT NULL,
    io_s double precision,
    io_method public.measurement_method,
    site_power double precision NOT NULL,
    runs bigint NOT NULL,
    computation double precision,
    CONSTRAINT job_ratios_check CHECK (((io_s >= (0)::double precision) AND (io_s <= turnaround_s))),
    CONSTRAINT job_ratios_computation_check CHECK (((computation >= (0)::double precision) AND (computation <= (1)::double precision))),
    CONSTRAINT job_ratios_runs_check CHECK (((runs >= 0) AND ((runs > 0) = (computation IS NOT NULL)))),
    CONSTRAINT job_ratios_site_power_check CHECK ((site_power > (0)::double precision)),
    CONSTRAINT job_ratios_turnaround_s_check CHECK ((turnaround_s > (0)::double precision))
);
CREATE TABLE public.job_ratios_horizon (
    singleton boolean DEFAULT true NOT NULL,
    id bigint NOT NULL,
    CONSTRAINT job_ratios_horizon_singleton_check CHECK (singleton)
);
ALTER TABLE public.job_ratios ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.job_ratios_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.jobs (
    id bigint NOT NULL,
    user_id integer NOT NULL,
    name text,
    application text NOT NULL COLLATE pg_catalog."C",
    group_name text COLLATE pg_catalog."C",
    array_index integer,
    command text NOT NULL,
    arguments text[] DEFAULT '{}'::text[] NOT NULL,
    environment jsonb DEFAULT '{}'::jsonb NOT NULL,
    working_directory text,
    tasks integer DEFAULT 1 NOT NULL,
    cpus_per_task integer DEFAULT 1 NOT NULL,
    memory_mb_per_task integer DEFAULT 0 NOT NULL,
    licenses text[] DEFAULT '{}'::text[] NOT NULL,
    os text,
    architecture text,
    estimate_s double precision NOT NULL,
    benchmark double precision NOT NULL,
    run_time_limit_s double precision,
    deadline timestamp(3) with time zone,
    sandbox_mb double precision DEFAULT 0 NOT NULL,
    output_mb double precision DEFAULT 0 NOT NULL,
    inputs jsonb,
    origin_site_id integer,
    computation_share double precision,
    outputs jsonb,
    preferences jsonb,
    restartable boolean DEFAULT true NOT NULL,
    launch public.task_launch DEFAULT 'EVERY_TASK'::public.task_launch NOT NULL,
    on_task_failure public.task_failure DEFAULT 'END_ALL'::public.task_failure NOT NULL,
    simulated_run_s double precision,
    simulated_io_s double precision,
    group_id bigint,
    submitted_at timestamp(3) with time zone NOT NULL,
    boost integer DEFAULT 0 NOT NULL,
    state public.job_state NOT NULL,
    bytes integer DEFAULT 0 NOT NULL,
    seq integer DEFAULT 1 NOT NULL,
    site_id integer,
    scheduler_id integer,
    tree_moves integer DEFAULT 0 NOT NULL,
    priority integer,
    migrated_at timestamp(3) with time zone,
    dispatched_at timestamp(3) with time zone,
    epoch integer DEFAULT 0 NOT NULL,
    started_at timestamp(3) with time zone,
    stop_cause public.end_cause,
    deadline_missed boolean DEFAULT false NOT NULL,
    message text,
    ended_at timestamp(3) with time zone,
    cause public.end_cause,
    exit_code integer,
    CONSTRAINT jobs_array_index_check CHECK ((array_index >= 0)),
    CONSTRAINT jobs_benchmark_check CHECK (((benchmark >= (0.001)::double precision) AND (benchmark <= ('1000000'::numeric)::double precision))),
    CONSTRAINT jobs_boost CHECK (((boost >= '-1000'::integer) AND (boost <= 1000))),
    CONSTRAINT jobs_bytes_check CHECK ((bytes >= 0)),
    CONSTRAINT jobs_command_check CHECK ((command <> ''::text)),
    CONSTRAINT jobs_computation_share_check CHECK (((computation_share >= (0)::double precision) AND (computation_share <= (1)::double precision))),
    CONSTRAINT jobs_cpus_per_task_check CHECK (((cpus_per_task >= 1) AND (cpus_per_task <= 100000))),
    CONSTRAINT jobs_end_has_cause CHECK ((((state = ANY (ARRAY['COMPLETED'::public.job_state, 'FAILED'::public.job_state, 'CANCELLED'::public.job_state])) = (ended_at IS NOT NULL)) AND ((ended_at IS NULL) = (cause IS NULL)))),
    CONSTRAINT jobs_estimate_s_check CHECK (((estimate_s >= (0.001)::double precision) AND (estimate_s <= ('1000000000'::numeric)::double precision))),
    CONSTRAINT jobs_held_by_one CHECK (((state <> ALL (ARRAY['DISPATCHED'::public.job_state, 'ASSIGNED'::public.job_state, 'RUNNING'::public.job_state, 'CANCELLING'::public.job_state])) OR (site_id IS NOT NULL))),
    CONSTRAINT jobs_held_in_the_tree CHECK (((scheduler_id IS NULL) OR ((state = 'QUEUED'::public.job_state) AND (site_id IS NULL)))),
    CONSTRAINT jobs_inputs CHECK (((jsonb_array_length(inputs) >= 1) AND (jsonb_array_length(inputs) <= 100))),
    CONSTRAINT jobs_memory_mb_per_task_check CHECK ((memory_mb_per_task >= 0)),
    CONSTRAINT jobs_output_mb_check CHECK (((output_mb >= (0)::double precision) AND (output_mb <= ('1000000000000'::numeric)::double precision))),
    CONSTRAINT jobs_outputs CHECK (((jsonb_array_length(outputs) >= 1) AND (jsonb_array_length(outputs) <= 100))),
    CONSTRAINT jobs_preferences CHECK (((jsonb_array_length(preferences) >= 1) AND (jsonb_array_length(preferences) <= 16))),
    CONSTRAINT jobs_run_time_limit_s_check CHECK (((run_time_limit_s >= (0.001)::double precision) AND (run_time_limit_s <= ('1000000000'::numeric)::double precision))),
    CONSTRAINT jobs_sandbox_mb_check CHECK (((sandbox_mb >= (0)::double precision) AND (sandbox_mb <= ('1000000000000'::numeric)::double precision))),
    CONSTRAINT jobs_simulated_io_s_check CHECK (((simulated_io_s >= (0)::double precision) AND (simulated_io_s <= ('1000000000'::numeric)::double precision))),
    CONSTRAINT jobs_simulated_run_s_check CHECK (((simulated_run_s >= (0)::double precision) AND (simulated_run_s <= ('1000000000'::numeric)::double precision))),
    CONSTRAINT jobs_stopped_for_a_cause CHECK (((state <> 'CANCELLING'::public.job_state) OR (stop_cause IS NOT NULL))),
    CONSTRAINT jobs_tasks_check CHECK (((tasks >= 1) AND (tasks <= 100000))),
    CONSTRAINT jobs_work CHECK (((((tasks)::bigint * cpus_per_task) <= 1000000) AND ((((estimate_s * benchmark) * (tasks)::double precision) * (cpus_per_task)::double precision) <= ('10000000000000'::numeric)::double precision)))
)
WITH (fillfactor='40');
ALTER TABLE public.jobs ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.jobs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.licenses (
    id integer NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    copies integer NOT NULL,
    site_id integer,
    in_use integer DEFAULT 0 NOT NULL,
    removed_at timestamp(3) with time zone,
    CONSTRAINT licenses_copies_check CHECK ((copies >= 0)),
    CONSTRAINT licenses_kind_check CHECK ((kind <> ''::text)),
    CONSTRAINT licenses_never_over_committed CHECK (((in_use >= 0) AND (in_use <= copies)))
);
ALTER TABLE public.licenses ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.licenses_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.link_measurements (
    id bigint NOT NULL,
    from_site_id integer NOT NULL,
    to_site_id integer NOT NULL,
    at timestamp(3) with time zone NOT NULL,
    bandwidth_mb_per_s double precision NOT NULL,
    rtt_s double precision NOT NULL,
    loss double precision NOT NULL,
    CONSTRAINT link_measurements_bandwidth_mb_per_s_check CHECK (((bandwidth_mb_per_s >= (0.000001)::double precision) AND (bandwidth_mb_per_s <= ('1000000000'::numeric)::double precision))),
    CONSTRAINT link_measurements_loss_check CHECK (((loss >= (0)::double precision) AND (loss <= (0.999)::double precision))),
    CONSTRAINT link_measurements_rtt_s_check CHECK (((rtt_s >= (0)::double precision) AND (rtt_s <= (3600)::double precision)))
);
ALTER TABLE public.link_measurements ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.link_measurements_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.links (
    from_site_id integer NOT NULL,
    to_site_id integer NOT NULL,
    bandwidth_mb_per_s double precision NOT NULL,
    rtt_s double precision NOT NULL,
    loss double precision NOT NULL,
    measured_at timestamp(3) with time zone NOT NULL,
    source public.link_source NOT NULL,
    CONSTRAINT links_bandwidth_mb_per_s_check CHECK (((bandwidth_mb_per_s >= (0.000001)::double precision) AND (bandwidth_mb_per_s <= ('1000000000'::numeric)::double precision))),
    CONSTRAINT links_between_two CHECK ((from_site_id <> to_site_id)),
    CONSTRAINT links_loss_check CHECK (((loss >= (0)::double precision) AND (loss <= (0.999)::double precision))),
    CONSTRAINT links_rtt_s_check CHECK (((rtt_s >= (0)::double precision) AND (rtt_s <= (3600)::double precision)))
);
CREATE TABLE public.machines (
    id integer NOT NULL,
    site_id integer NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    state public.machine_state DEFAULT 'UP'::public.machine_state NOT NULL,
    cpus integer NOT NULL,
    memory_mb integer NOT NULL,
    benchmark double precision NOT NULL,
    os text NOT NULL,
    architecture text NOT NULL,
    license_ids integer[] DEFAULT '{}'::integer[] NOT NULL,
    max_tasks integer,
    reason text,
    agent_id integer,
    silent boolean DEFAULT true NOT NULL,
    measured jsonb,
    measured_at timestamp(3) with time zone,
    problem text,
    launch_failures integer DEFAULT 0 NOT NULL,
    cpus_used integer DEFAULT 0 NOT NULL,
    memory_used_mb bigint DEFAULT 0 NOT NULL,
    tasks_used integer DEFAULT 0 NOT NULL,
    removed_at timestamp(3) with time zone,
    CONSTRAINT machines_benchmark_check CHECK (((benchmark >= (0.001)::double precision) AND (benchmark <= ('1000000'::numeric)::double precision))),
    CONSTRAINT machines_cpus_check CHECK (((cpus >= 1) AND (cpus <= 1000000))),
    CONSTRAINT machines_cpus_never_over_committed CHECK (((cpus_used >= 0) AND (cpus_used <= cpus))),
    CONSTRAINT machines_max_tasks_check CHECK (((max_tasks >= 1) AND (max_tasks <= 1000000))),
    CONSTRAINT machines_memory_mb_check CHECK ((memory_mb >= 0)),
    CONSTRAINT machines_memory_never_over_committed CHECK (((memory_used_mb >= 0) AND (memory_used_mb <= memory_mb))),
    CONSTRAINT machines_name_check CHECK ((name <> ''::text)),
    CONSTRAINT machines_shared_one_way CHECK (((max_tasks IS NULL) OR (cpus_used = 0))),
    CONSTRAINT machines_tasks_never_over_committed CHECK (((tasks_used >= 0) AND (tasks_used <= COALESCE(max_tasks, 0))))
)
WITH (fillfactor='50');
ALTER TABLE public.machines ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.machines_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.margins (
    id bigint NOT NULL,
    margin_s double precision NOT NULL
);
ALTER TABLE public.margins ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.margins_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.offers (
    job_id bigint NOT NULL,
    site_id integer NOT NULL,
    offer bigint NOT NULL,
    version bigint NOT NULL,
    epoch integer,
    withdrawn boolean DEFAULT false NOT NULL,
    again_at timestamp(3) with time zone NOT NULL,
    path text[] DEFAULT '{}'::text[] NOT NULL
)
WITH (fillfactor='50');
CREATE SEQUENCE public.offers_number
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE public.outputs (
    job_id bigint NOT NULL,
    epoch integer NOT NULL,
    task integer DEFAULT 0 NOT NULL,
    stream public.output_stream NOT NULL,
    start bigint NOT NULL,
    body bytea NOT NULL,
    bytes bigint NOT NULL,
    CONSTRAINT outputs_check CHECK ((bytes >= start)),
    CONSTRAINT outputs_start_check CHECK ((start >= 0)),
    CONSTRAINT outputs_task_check CHECK ((task >= 0))
);
CREATE TABLE public.peer_users (
    site_id integer NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    user_id integer NOT NULL
);
CREATE TABLE public.peers (
    site_id integer NOT NULL,
    user_id integer NOT NULL,
    url text,
    secret text,
    isolated boolean DEFAULT false NOT NULL,
    forward public.forwarding DEFAULT 'WHEN_NEEDED'::public.forwarding NOT NULL,
    needed_after_s double precision DEFAULT 600 NOT NULL,
    hops integer DEFAULT 4 NOT NULL,
    lost_after_s double precision DEFAULT 3600 NOT NULL,
    foreign_max integer DEFAULT 1000 NOT NULL,
    foreign_boost integer DEFAULT 0 NOT NULL,
    service_id text,
    kinds jsonb DEFAULT '[]'::jsonb NOT NULL,
    seen_at timestamp(3) with time zone,
    reached_at timestamp(3) with time zone,
    failure text,
    cursor bigint DEFAULT 0 NOT NULL,
    worker text,
    worker_seen_at timestamp(3) with time zone,
    created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
    CONSTRAINT peers_foreign_boost_check CHECK (((foreign_boost >= '-1000'::integer) AND (foreign_boost <= 1000))),
    CONSTRAINT peers_foreign_max_check CHECK (((foreign_max >= 0) AND (foreign_max <= 100000))),
    CONSTRAINT peers_hops_check CHECK (((hops >= 2) AND (hops <= 64))),
    CONSTRAINT peers_lost_after_s_check CHECK (((lost_after_s >= (1)::double precision) AND (lost_after_s <= ('1000000000'::numeric)::double precision))),
    CONSTRAINT peers_needed_after_s_check CHECK (((needed_after_s >= (0)::double precision) AND (needed_after_s <= ('1000000000'::numeric)::double precision)))
)
WITH (fillfactor='50');
CREATE TABLE public.policies (
    version integer NOT NULL,
    document jsonb NOT NULL,
    reason text NOT NULL,
    author_id integer,
    reverts_to integer,
    created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
    CONSTRAINT policies_version_check CHECK ((version > 0))
);
CREATE TABLE public.processes (
    id text NOT NULL,
    kind text NOT NULL,
    since timestamp(3) with time zone NOT NULL,
    seen_at timestamp(3) with time zone NOT NULL
);
CREATE TABLE public.promises (
    site_id integer NOT NULL,
    revision bigint NOT NULL,
    body json,
    CONSTRAINT promises_revision_check CHECK ((revision > 0))
);
CREATE TABLE public.reservations (
    site_id integer NOT NULL,
    job_id bigint NOT NULL,
    at timestamp(3) with time zone NOT NULL,
    made_at timestamp(3) with time zone NOT NULL,
    machine_ids integer[] NOT NULL,
    machine_tasks integer[] NOT NULL,
    license_ids integer[] NOT NULL
);
CREATE TABLE public.run_averages (
    application text NOT NULL COLLATE pg_catalog."C",
    user_id integer NOT NULL,
    kinds text NOT NULL,
    count bigint NOT NULL,
    turnaround_s double precision NOT NULL,
    execution_s double precision NOT NULL,
    io_s double precision NOT NULL,
    event_id bigint NOT NULL,
    updated_at timestamp(3) with time zone NOT NULL,
    CONSTRAINT run_averages_count_check CHECK ((count > 0))
);
CREATE TABLE public.runs (
    job_id bigint NOT NULL,
    epoch integer NOT NULL,
    site_id integer NOT NULL,
    machine_ids integer[] NOT NULL,
    machine_tasks integer[] NOT NULL,
    cpus_per_task integer NOT NULL,
    memory_mb_per_task integer NOT NULL,
    license_ids integer[] DEFAULT '{}'::integer[] NOT NULL,
    policy_version integer NOT NULL,
    assigned_at timestamp(3) with time zone NOT NULL,
    planned_s double precision NOT NULL,
    started_at timestamp(3) with time zone,
    ended_at timestamp(3) with time zone,
    exit_code integer,
    signal text,
    cause public.end_cause,
    message text,
    cpu_s double precision,
    cpu_method public.measurement_method,
    peak_memory_mb double precision,
    peak_memory_method public.measurement_method,
    read_mb double precision,
    written_mb double precision,
    bytes_method public.measurement_method,
    io_wait_s double precision,
    io_wait_method public.measurement_method,
    failed_task integer,
    ending boolean DEFAULT false NOT NULL,
    CONSTRAINT runs_check CHECK ((cardinality(machine_tasks) = cardinality(machine_ids))),
    CONSTRAINT runs_cpus_per_task_check CHECK ((cpus_per_task > 0)),
    CONSTRAINT runs_end_has_cause CHECK (((ended_at IS NULL) = (cause IS NULL))),
    CONSTRAINT runs_epoch_check CHECK ((epoch > 0)),
    CONSTRAINT runs_memory_mb_per_task_check CHECK ((memory_mb_per_task >= 0)),
    CONSTRAINT runs_planned_s_check CHECK (((planned_s > (0)::double precision) AND (planned_s < 'Infinity'::double precision)))
)
WITH (fillfactor='45');
CREATE TABLE public.schedulers (
    id integer NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    parent_id integer,
    created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
    removed_at timestamp(3) with time zone,
    CONSTRAINT schedulers_below_another CHECK ((parent_id <> id)),
    CONSTRAINT schedulers_name_check CHECK ((name <> ''::text))
);
ALTER TABLE public.schedulers ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.schedulers_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.service (
    singleton boolean DEFAULT true NOT NULL,
    id text NOT NULL,
    CONSTRAINT service_singleton_check CHECK (singleton)
);
CREATE TABLE public.simulations (
    id integer NOT NULL,
    user_id integer NOT NULL,
    state public.simulation_state DEFAULT 'QUEUED'::public.simulation_state NOT NULL,
    progress double precision DEFAULT 0 NOT NULL,
    policy_version integer NOT NULL,
    candidate jsonb NOT NULL,
    from_at timestamp(3) with time zone,
    to_at timestamp(3) with time zone,
    trace text,
    reason text,
    created_at timestamp(3) with time zone NOT NULL,
    ended_at timestamp(3) with time zone,
    worker text,
    worker_seen_at timestamp(3) with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    result jsonb,
    message text,
    CONSTRAINT simulations_done_has_result CHECK (((state = 'DONE'::public.simulation_state) = (result IS NOT NULL))),
    CONSTRAINT simulations_end CHECK (((state = ANY (ARRAY['DONE'::public.simulation_state, 'FAILED'::public.simulation_state, 'CANCELLED'::public.simulation_state])) = (ended_at IS NOT NULL))),
    CONSTRAINT simulations_progress_check CHECK (((progress >= (0)::double precision) AND (progress <= (1)::double precision))),
    CONSTRAINT simulations_running_has_worker CHECK (((state <> 'RUNNING'::public.simulation_state) OR ((worker IS NOT NULL) AND (worker_seen_at IS NOT NULL)))),
    CONSTRAINT simulations_trace CHECK (
CASE
    WHEN ((from_at IS NULL) AND (ended_at IS NULL)) THEN (trace IS NOT NULL)
    ELSE (trace IS NULL)
END),
    CONSTRAINT simulations_window CHECK ((((from_at IS NULL) = (to_at IS NULL)) AND (from_at < to_at)))
);
ALTER TABLE public.simulations ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.simulations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.sites (
    id integer NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    state public.site_state DEFAULT 'UP'::public.site_state NOT NULL,
    latitude double precision,
    longitude double precision,
    local_policy jsonb,
    max_running_jobs integer,
    scheduler_id integer,
    agent_seen_at timestamp(3) with time zone,
    created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
    removed_at timestamp(3) with time zone,
    CONSTRAINT sites_latitude_check CHECK (((latitude >= ('-90'::integer)::double precision) AND (latitude <= (90)::double precision))),
    CONSTRAINT sites_longitude_check CHECK (((longitude >= ('-180'::integer)::double precision) AND (longitude <= (180)::double precision))),
    CONSTRAINT sites_max_running_jobs_check CHECK (((max_running_jobs >= 1) AND (max_running_jobs <= 1000000))),
    CONSTRAINT sites_name_check CHECK ((name <> ''::text))
);
ALTER TABLE public.sites ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.sites_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.stagings (
    job_id bigint NOT NULL,
    epoch integer NOT NULL,
    began_at timestamp(3) with time zone NOT NULL,
    ended_at timestamp(3) with time zone,
    total_mb double precision NOT NULL,
    moved_mb double precision NOT NULL,
    predicted_s double precision NOT NULL,
    error text,
    CONSTRAINT stagings_moved_mb_check CHECK (((moved_mb >= (0)::double precision) AND (moved_mb <= ('100000000000000'::numeric)::double precision))),
    CONSTRAINT stagings_total_mb_check CHECK (((total_mb >= (0)::double precision) AND (total_mb <= ('100000000000000'::numeric)::double precision)))
);
CREATE TABLE public.submissions (
    id bigint NOT NULL,
    user_id integer NOT NULL,
    idempotency_key text,
    payload_hash text NOT NULL,
    job_ids bigint[] NOT NULL,
    job_count integer NOT NULL,
    at timestamp(3) with time zone NOT NULL,
    CONSTRAINT submissions_job_count_check CHECK ((job_count > 0))
);
ALTER TABLE public.submissions ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.submissions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.tasks (
    job_id bigint NOT NULL,
    epoch integer NOT NULL,
    index integer NOT NULL,
    started_at timestamp(3) with time zone,
    ended_at timestamp(3) with time zone,
    exit_code integer,
    signal text,
    cause public.end_cause,
    message text,
    cpu_s double precision,
    cpu_method public.measurement_method,
    peak_memory_mb double precision,
    peak_memory_method public.measurement_method,
    read_mb double precision,
    written_mb double precision,
    bytes_method public.measurement_method,
    io_wait_s double precision,
    io_wait_method public.measurement_method,
    CONSTRAINT tasks_end_has_cause CHECK (((ended_at IS NULL) = (cause IS NULL))),
    CONSTRAINT tasks_index_check CHECK ((index >= 0))
);
CREATE TABLE public.traffic (
    site_id integer NOT NULL,
    at bigint NOT NULL,
    arrivals bigint NOT NULL,
    services bigint NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.used_hours (
    kind public.used_kind NOT NULL,
    hour bigint NOT NULL,
    user_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    runs bigint NOT NULL,
    run_s double precision NOT NULL,
    cpus bigint NOT NULL,
    cpu_s double precision NOT NULL,
    begun bigint NOT NULL,
    ended_jobs bigint NOT NULL,
    failed_jobs bigint NOT NULL,
    started_jobs bigint NOT NULL,
    wait_s double precision NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.user_files (
    user_id integer NOT NULL,
    bytes bigint NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.user_jobs (
    user_id integer NOT NULL,
    jobs bigint NOT NULL,
    bytes bigint NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.user_outputs (
    user_id integer NOT NULL,
    bytes bigint NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.users (
    id integer NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    class public.user_class DEFAULT 'REGULAR'::public.user_class NOT NULL,
    role public.user_role DEFAULT 'USER'::public.user_role NOT NULL,
    quota_share double precision DEFAULT 1 NOT NULL,
    submission_limit integer,
    submission_period_s integer,
    active boolean DEFAULT true NOT NULL,
    identity text COLLATE pg_catalog."C",
    created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
    CONSTRAINT users_check CHECK (((submission_limit IS NULL) = (submission_period_s IS NULL))),
    CONSTRAINT users_name_check CHECK ((name <> ''::text)),
    CONSTRAINT users_quota_share_check CHECK (((quota_share >= (0.000001)::double precision) AND (quota_share <= ('1000000'::numeric)::double precision))),
    CONSTRAINT users_submission_limit_check CHECK ((submission_limit >= 0)),
    CONSTRAINT users_submission_period_s_check CHECK (((submission_period_s >= 1) AND (submission_period_s <= 31622400)))
);
ALTER TABLE public.users ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.users_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE UNLOGGED TABLE triggers.news (
    place bigint NOT NULL,
    at timestamp(3) with time zone NOT NULL,
    kind public.event_kind NOT NULL,
    entity_id bigint NOT NULL,
    site_id integer,
    user_id integer
);
ALTER TABLE triggers.news ALTER COLUMN place ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME triggers.news_place_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
INSERT INTO public._prisma_migrations (id, checksum, finished_at, migration_name, logs, rolled_back_at, started_at, applied_steps_count) VALUES ('689e2a12-45f9-45ce-b9d7-0b6599d96c3f', 'f79c3fa19979150c035692ed79b530d54d063d2aa34b529e4cad23e5dcff9f8b', '2026-11-23 00:24:32.814176+00', '20261120000000_init', NULL, NULL, '2026-11-23 00:24:32.345976+00', 1);
INSERT INTO public.agents (id, site_id, identity, instance, superseded, host, version, protocol, simulated, registered_at, seen_at, problem) VALUES (1, 1, 'a2d5eeb3-92eb-441c-aff7-85027207997e@host', '6ff74bd5-7bb4-4780-a837-1c3e539a976e', '{}', 'host', '0.1.0', 3, false, '2026-11-23 00:24:41.393+00', '2026-11-23 00:25:24.518+00', NULL);
INSERT INTO public.api_keys (id, user_id, name, prefix, hash, site_id, acts_for_users, made_by, created_at, expires_at, revoked_at, last_used_at) VALUES (2, 2, 'agent-local', 'swy_12a123a548', 'bceaf3f9da7decf64142281b5408b5f1b1a7f6950b788514141659562e88ff9e', 1, false, NULL, '2026-11-23 00:24:38.052+00', NULL, NULL, '2026-11-23 00:24:40.823+00');
INSERT INTO public.api_keys (id, user_id, name, prefix, hash, site_id, acts_for_users, made_by, created_at, expires_at, revoked_at, last_used_at) VALUES (1, 1, 'admin.key', 'swy_b79a009f58', '5d27bb3c6bfdfda3535493219bfe5a0e248b366f22c15fd3ee8f7ce53e90466f', NULL, false, NULL, '2026-11-23 00:24:36.566+00', NULL, NULL, '2026-11-23 00:24:40.862+00');
INSERT INTO public.api_keys (id, user_id, name, prefix, hash, site_id, acts_for_users, made_by, created_at, expires_at, revoked_at, last_used_at) VALUES (3, 1, 'sign-in link', 'swy_9dd8098ea5', '1038fbe468753e46d6b9af395a5877d6e3794bc5bf96d992d4a505a9f39eab0e', NULL, false, 1, '2026-11-23 00:24:41.646+00', '2026-11-23 12:24:41.438+00', NULL, NULL);
INSERT INTO public.audits (id, at, user_id, action, target, reason, before, after, request_id) VALUES (1, '2026-11-23 00:24:36.629+00', NULL, 'createApiKey', 'apikey_1', 'installation', NULL, '{"id": 1, "name": "admin.key", "madeBy": null, "prefix": "swy_b79a009f58", "siteId": null, "userId": 1, "createdAt": 1795393476.566, "expiresAt": null, "revokedAt": null, "lastUsedAt": null, "actsForUsers": false}', NULL);
INSERT INTO public.audits (id, at, user_id, action, target, reason, before, after, request_id) VALUES (2, '2026-11-23 00:24:37.026+00', NULL, 'registerSite', 'site_1', 'installation', NULL, '{"id": 1, "name": "local", "state": "UP", "latitude": null, "createdAt": 1795393476.949, "longitude": null, "removedAt": null, "agentSeenAt": null, "localPolicy": null, "schedulerId": null, "maxRunningJobs": null}', NULL);
INSERT INTO public.audits (id, at, user_id, action, target, reason, before, after, request_id) VALUES (3, '2026-11-23 00:24:37.44+00', NULL, 'registerMachines', 'machine_1', 'installation', NULL, '{"id": 1, "os": "linux", "cpus": 2, "name": "host", "state": "UP", "reason": null, "silent": true, "siteId": 1, "agentId": null, "problem": null, "cpusUsed": 0, "maxTasks": null, "measured": null, "memoryMb": 25276, "benchmark": 100, "removedAt": null, "tasksUsed": 0, "licenseIds": [], "measuredAt": null, "architecture": "x64", "memoryUsedMb": 0, "launchFailures": 0}', NULL);
INSERT INTO public.audits (id, at, user_id, action, target, reason, before, after, request_id) VALUES (4, '2026-11-23 00:24:37.692+00', NULL, 'registerUser', 'user_2', 'installation', NULL, '{"id": 2, "name": "agent-local", "role": "AGENT", "class": "REGULAR", "active": true, "identity": null, "createdAt": 1795393477.67, "quotaShare": 1, "submissionLimit": null, "submissionPeriodS": null}', NULL);
INSERT INTO public.audits (id, at, user_id, action, target, reason, before, after, request_id) VALUES (5, '2026-11-23 00:24:38.135+00', NULL, 'createApiKey', 'apikey_2', 'installation', NULL, '{"id": 2, "name": "agent-local", "madeBy": null, "prefix": "swy_12a123a548", "siteId": 1, "userId": 2, "createdAt": 1795393478.052, "expiresAt": null, "revokedAt": null, "lastUsedAt": null, "actsForUsers": false}', NULL);
INSERT INTO public.audits (id, at, user_id, action, target, reason, before, after, request_id) VALUES (6, '2026-11-23 00:24:41.669+00', 1, 'createApiKey', 'apikey_3', NULL, NULL, '{"id": 3, "name": "sign-in link", "madeBy": 1, "prefix": "swy_9dd8098ea5", "siteId": null, "userId": 1, "createdAt": 1795393481.646, "expiresAt": 1795436681.438, "revokedAt": null, "lastUsedAt": null, "actsForUsers": false}', 'hL8cTRV5qmiA');
INSERT INTO public.audits (id, at, user_id, action, target, reason, before, after, request_id) VALUES (7, '2026-11-23 00:24:50.478+00', 1, 'createDataset', 'dataset_1', NULL, NULL, '{"id": 1, "name": "events", "jobId": null, "sha256": null, "sizeMb": 1, "siteIds": [1], "createdAt": 1795393490.408, "locations": [], "removedAt": null}', 'EDZneMJjz09A');
INSERT INTO public.dataset_replicas (dataset_id, site_id, at, location) VALUES (1, 1, '2026-11-23 00:24:50.38+00', NULL);
INSERT INTO public.datasets (id, name, size_mb, sha256, created_at, removed_at, job_id) VALUES (1, 'events', 1, NULL, '2026-11-23 00:24:50.408+00', NULL, NULL);
INSERT INTO public.dead_files (id, upload) VALUES (1000, NULL);
INSERT INTO public.decisions (id, job_id, at, kind, policy_version, from_site_id, site_id, reason, cycle, detail) VALUES (1, 1, '2026-11-23 00:24:42.88+00', 'DISPATCH', 1, NULL, 1, 'IDLE_SITE', 'dispatch-06b6773f-8', '{"sites":[1],"terms":{"load":[0],"ordering":[0]},"candidates":[1],"ineligible":{},"level":10,"priorityTerms":{"deadline":10,"licenses":0,"user":0}}');
INSERT INTO public.decisions (id, job_id, at, kind, policy_version, from_site_id, site_id, reason, cycle, detail) VALUES (2, 1, '2026-11-23 00:24:43.113+00', 'START', 1, 1, 1, 'HEAD', 'site-06b6773f-10', '{"queued":1,"order":"PRIORITY","orderValue":10,"terms":null,"reservation":null}');
INSERT INTO public.decisions (id, job_id, at, kind, policy_version, from_site_id, site_id, reason, cycle, detail) VALUES (3, 2, '2026-11-23 00:24:52.429+00', 'DISPATCH', 1, NULL, 1, 'IDLE_SITE', 'dispatch-06b6773f-19', '{"sites":[1],"terms":{"load":[0],"ordering":[0]},"candidates":[1],"ineligible":{},"level":0,"priorityTerms":{"deadline":0,"licenses":0,"user":0}}');
INSERT INTO public.decisions (id, job_id, at, kind, policy_version, from_site_id, site_id, reason, cycle, detail) VALUES (4, 2, '2026-11-23 00:24:52.545+00', 'START', 1, 1, 1, 'HEAD', 'site-06b6773f-20', '{"queued":1,"order":"PRIORITY","orderValue":0,"terms":null,"reservation":null}');
INSERT INTO public.decisions (id, job_id, at, kind, policy_version, from_site_id, site_id, reason, cycle, detail) VALUES (5, 3, '2026-11-23 00:24:59.733+00', 'DISPATCH', 1, NULL, 1, 'IDLE_SITE', 'dispatch-06b6773f-26', '{"sites":[1],"terms":{"load":[0],"ordering":[0]},"candidates":[1],"ineligible":{},"level":0,"priorityTerms":{"deadline":0,"licenses":0,"user":0}}');
INSERT INTO public.decisions (id, job_id, at, kind, policy_version, from_site_id, site_id, reason, cycle, detail) VALUES (6, 4, '2026-11-23 00:24:59.733+00', 'DISPATCH', 1, NULL, 1, 'LEAST_LOAD', 'dispatch-06b6773f-26', '{"sites":[1],"terms":{"load":[360000],"ordering":[1]},"candidates":[1],"ineligible":{},"level":0,"priorityTerms":{"deadline":0,"licenses":0,"user":0}}');
INSERT INTO public.decisions (id, job_id, at, kind, policy_version, from_site_id, site_id, reason, cycle, detail) VALUES (7, 5, '2026-11-23 00:24:59.733+00', 'DISPATCH', 1, NULL, 1, 'LEAST_LOAD', 'dispatch-06b6773f-26', '{"sites":[1],"terms":{"load":[720000],"ordering":[2]},"candidates":[1],"ineligible":{},"level":0,"priorityTerms":{"deadline":0,"licenses":0,"user":0}}');
INSERT INTO public.decisions (id, job_id, at, kind, policy_version, from_site_id, site_id, reason, cycle, detail) VALUES (8, 3, '2026-11-23 00:24:59.81+00', 'START', 1, 1, 1, 'HEAD', 'site-06b6773f-27', '{"queued":3,"order":"PRIORITY","orderValue":0,"terms":null,"reservation":null}');
INSERT INTO public.decisions (id, job_id, at, kind, policy_version, from_site_id, site_id, reason, cycle, detail) VALUES (9, 4, '2026-11-23 00:24:59.81+00', 'START', 1, 1, 1, 'HEAD', 'site-06b6773f-27', '{"queued":3,"order":"PRIORITY","orderValue":0,"terms":null,"reservation":null}');
INSERT INTO public.decisions (id, job_id, at, kind, policy_version, from_site_id, site_id, reason, cycle, detail) VALUES (10, 5, '2026-11-23 00:25:05.885+00', 'START', 1, 1, 1, 'HEAD', 'site-06b6773f-32', '{"queued":1,"order":"PRIORITY","orderValue":0,"terms":null,"reservation":null}');
INSERT INTO public.decisions (id, job_id, at, kind, policy_version, from_site_id, site_id, reason, cycle, detail) VALUES (11, 6, '2026-11-23 00:25:05.976+00', 'DISPATCH', 1, NULL, 1, 'LEAST_LOAD', 'dispatch-06b6773f-33', '{"sites":[1],"terms":{"load":[360000],"ordering":[1]},"candidates":[1],"ineligible":{},"level":0,"priorityTerms":{"deadline":0,"licenses":0,"user":0}}');
INSERT INTO public.decisions (id, job_id, at, kind, policy_version, from_site_id, site_id, reason, cycle, detail) VALUES (12, 7, '2026-11-23 00:25:05.976+00', 'DISPATCH', 1, NULL, 1, 'LEAST_LOAD', 'dispatch-06b6773f-33', '{"sites":[1],"terms":{"load":[720000],"ordering":[2]},"candidates":[1],"ineligible":{},"level":0,"priorityTerms":{"deadline":0,"licenses":0,"user":0}}');
INSERT INTO public.decisions (id, job_id, at, kind, policy_version, from_site_id, site_id, reason, cycle, detail) VALUES (13, 8, '2026-11-23 00:25:05.976+00', 'DISPATCH', 1, NULL, 1, 'LEAST_LOAD', 'dispatch-06b6773f-33', '{"sites":[1],"terms":{"load":[1080000],"ordering":[3]},"candidates":[1],"ineligible":{},"level":0,"priorityTerms":{"deadline":0,"licenses":0,"user":0}}');
INSERT INTO public.decisions (id, job_id, at, kind, policy_version, from_site_id, site_id, reason, cycle, detail) VALUES (14, 6, '2026-11-23 00:25:06.109+00', 'START', 1, 1, 1, 'HEAD', 'site-06b6773f-34', '{"queued":3,"order":"PRIORITY","orderValue":0,"terms":null,"reservation":null}');
INSERT INTO public.decisions (id, job_id, at, kind, policy_version, from_site_id, site_id, reason, cycle, detail) VALUES (15, 9, '2026-11-23 00:25:10.311+00', 'DISPATCH', 1, NULL, 1, 'LEAST_LOAD', 'dispatch-06b6773f-37', '{"sites":[1],"terms":{"load":[720000],"ordering":[2]},"candidates":[1],"ineligible":{},"level":0,"priorityTerms":{"deadline":0,"licenses":0,"user":0}}');
INSERT INTO public.decisions (id, job_id, at, kind, policy_version, from_site_id, site_id, reason, cycle, detail) VALUES (16, 7, '2026-11-23 00:25:10.368+00', 'START', 1, 1, 1, 'HEAD', 'site-06b6773f-38', '{"queued":2,"order":"PRIORITY","orderValue":0,"terms":null,"reservation":null}');
INSERT INTO public.decisions (id, job_id, at, kind, policy_version, from_site_id, site_id, reason, cycle, detail) VALUES (17, 8, '2026-11-23 00:25:14.728+00', 'START', 1, 1, 1, 'HEAD', 'site-06b6773f-42', '{"queued":2,"order":"PRIORITY","orderValue":0,"terms":null,"reservation":null}');
INSERT INTO public.decisions (id, job_id, at, kind, policy_version, from_site_id, site_id, reason, cycle, detail) VALUES (18, 9, '2026-11-23 00:25:18.452+00', 'START', 1, 1, 1, 'HEAD', 'site-06b6773f-45', '{"queued":1,"order":"PRIORITY","orderValue":0,"terms":null,"reservation":null}');
INSERT INTO public.decisions (id, job_id, at, kind, policy_version, from_site_id, site_id, reason, cycle, detail) VALUES (19, 11, '2026-11-23 00:25:25.061+00', 'DISPATCH', 1, NULL, 1, 'IDLE_SITE', 'dispatch-06b6773f-53', '{"sites":[1],"terms":{"load":[0],"ordering":[0]},"candidates":[1],"ineligible":{},"level":0,"priorityTerms":{"deadline":0,"licenses":0,"user":0}}');
INSERT INTO public.decisions (id, job_id, at, kind, policy_version, from_site_id, site_id, reason, cycle, detail) VALUES (20, 11, '2026-11-23 00:25:25.098+00', 'START', 1, 1, 1, 'HEAD', 'site-06b6773f-54', '{"queued":1,"order":"PRIORITY","orderValue":0,"terms":null,"reservation":null}');
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (1, '2026-11-23 00:24:35.504+00', 1, 'POLICY', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (2, '2026-11-23 00:24:35.949+00', 1, 'USER', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (3, '2026-11-23 00:24:36.951+00', 1, 'SITE', NULL, NULL, NULL, 1, NULL, NULL, NULL, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (4, '2026-11-23 00:24:37.338+00', 1, 'MACHINE', NULL, NULL, NULL, 1, NULL, NULL, NULL, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (5, '2026-11-23 00:24:37.673+00', 2, 'USER', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (6, '2026-11-23 00:24:41.598+00', 1, 'AGENT', NULL, NULL, NULL, 1, NULL, NULL, NULL, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (7, '2026-11-23 00:24:41.723+00', 1, 'MACHINE', NULL, NULL, NULL, 1, NULL, NULL, NULL, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (8, '2026-11-23 00:24:42.718+00', 1, 'JOB_STATE', 1, NULL, 'QUEUED', NULL, NULL, 1, NULL, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (9, '2026-11-23 00:24:43+00', 1, 'JOB_STATE', 2, 'QUEUED', 'DISPATCHED', 1, NULL, 1, 0, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (10, '2026-11-23 00:24:43.31+00', 1, 'JOB_STATE', 3, 'DISPATCHED', 'ASSIGNED', 1, NULL, 1, 1, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (11, '2026-11-23 00:24:43.765+00', 1, 'JOB_STATE', 4, 'ASSIGNED', 'RUNNING', 1, NULL, 1, 1, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (12, '2026-11-23 00:24:44.405+00', 1, 'JOB_STATE', 5, 'RUNNING', 'COMPLETED', 1, NULL, 1, 1, 'EXITED_ZERO');
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (13, '2026-11-23 00:24:50.41+00', 1, 'DATA', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (14, '2026-11-23 00:24:50.432+00', 1, 'DATA', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (15, '2026-11-23 00:24:52.304+00', 2, 'JOB_STATE', 1, NULL, 'QUEUED', NULL, NULL, 1, NULL, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (16, '2026-11-23 00:24:52.466+00', 2, 'JOB_STATE', 2, 'QUEUED', 'DISPATCHED', 1, NULL, 1, 0, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (17, '2026-11-23 00:24:52.583+00', 2, 'JOB_STATE', 3, 'DISPATCHED', 'ASSIGNED', 1, NULL, 1, 1, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (18, '2026-11-23 00:24:53.005+00', 2, 'JOB_STATE', 4, 'ASSIGNED', 'RUNNING', 1, NULL, 1, 1, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (19, '2026-11-23 00:24:53.131+00', 2, 'JOB_STATE', 5, 'RUNNING', 'COMPLETED', 1, NULL, 1, 1, 'EXITED_ZERO');
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (20, '2026-11-23 00:24:59.61+00', 3, 'JOB_STATE', 1, NULL, 'QUEUED', NULL, NULL, 1, NULL, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (21, '2026-11-23 00:24:59.61+00', 4, 'JOB_STATE', 1, NULL, 'QUEUED', NULL, NULL, 1, NULL, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (22, '2026-11-23 00:24:59.61+00', 5, 'JOB_STATE', 1, NULL, 'QUEUED', NULL, NULL, 1, NULL, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (23, '2026-11-23 00:24:59.745+00', 3, 'JOB_STATE', 2, 'QUEUED', 'DISPATCHED', 1, NULL, 1, 0, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (24, '2026-11-23 00:24:59.745+00', 4, 'JOB_STATE', 2, 'QUEUED', 'DISPATCHED', 1, NULL, 1, 0, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (25, '2026-11-23 00:24:59.745+00', 5, 'JOB_STATE', 2, 'QUEUED', 'DISPATCHED', 1, NULL, 1, 0, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (26, '2026-11-23 00:24:59.867+00', 3, 'JOB_STATE', 3, 'DISPATCHED', 'ASSIGNED', 1, NULL, 1, 1, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (27, '2026-11-23 00:24:59.867+00', 4, 'JOB_STATE', 3, 'DISPATCHED', 'ASSIGNED', 1, NULL, 1, 1, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (28, '2026-11-23 00:25:00.048+00', 3, 'JOB_STATE', 4, 'ASSIGNED', 'RUNNING', 1, NULL, 1, 1, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (29, '2026-11-23 00:25:00.048+00', 4, 'JOB_STATE', 4, 'ASSIGNED', 'RUNNING', 1, NULL, 1, 1, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (30, '2026-11-23 00:25:00.272+00', 3, 'JOB_STATE', 5, 'RUNNING', 'COMPLETED', 1, NULL, 1, 1, 'EXITED_ZERO');
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (31, '2026-11-23 00:25:00.272+00', 4, 'JOB_STATE', 5, 'RUNNING', 'COMPLETED', 1, NULL, 1, 1, 'EXITED_ZERO');
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (32, '2026-11-23 00:25:01.466+00', 6, 'JOB_STATE', 1, NULL, 'QUEUED', NULL, NULL, 1, NULL, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (33, '2026-11-23 00:25:01.466+00', 7, 'JOB_STATE', 1, NULL, 'QUEUED', NULL, NULL, 1, NULL, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (34, '2026-11-23 00:25:01.466+00', 8, 'JOB_STATE', 1, NULL, 'QUEUED', NULL, NULL, 1, NULL, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (35, '2026-11-23 00:25:06.033+00', 5, 'JOB_STATE', 3, 'DISPATCHED', 'ASSIGNED', 1, NULL, 1, 1, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (36, '2026-11-23 00:25:06.035+00', 6, 'JOB_STATE', 2, 'QUEUED', 'DISPATCHED', 1, NULL, 1, 0, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (37, '2026-11-23 00:25:06.035+00', 7, 'JOB_STATE', 2, 'QUEUED', 'DISPATCHED', 1, NULL, 1, 0, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (38, '2026-11-23 00:25:06.035+00', 8, 'JOB_STATE', 2, 'QUEUED', 'DISPATCHED', 1, NULL, 1, 0, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (39, '2026-11-23 00:25:06.099+00', 5, 'JOB_STATE', 4, 'ASSIGNED', 'RUNNING', 1, NULL, 1, 1, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (40, '2026-11-23 00:25:06.293+00', 6, 'JOB_STATE', 3, 'DISPATCHED', 'ASSIGNED', 1, NULL, 1, 1, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (41, '2026-11-23 00:25:06.312+00', 5, 'JOB_STATE', 5, 'RUNNING', 'COMPLETED', 1, NULL, 1, 1, 'EXITED_ZERO');
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (42, '2026-11-23 00:25:07.38+00', 9, 'JOB_STATE', 1, NULL, 'QUEUED', NULL, NULL, 1, NULL, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (43, '2026-11-23 00:25:10.348+00', 6, 'JOB_STATE', 4, 'ASSIGNED', 'RUNNING', 1, NULL, 1, 1, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (44, '2026-11-23 00:25:10.35+00', 6, 'JOB_STATE', 5, 'RUNNING', 'COMPLETED', 1, NULL, 1, 1, 'EXITED_ZERO');
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (45, '2026-11-23 00:25:10.356+00', 9, 'JOB_STATE', 2, 'QUEUED', 'DISPATCHED', 1, NULL, 1, 0, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (46, '2026-11-23 00:25:14.45+00', 7, 'JOB_STATE', 3, 'DISPATCHED', 'ASSIGNED', 1, NULL, 1, 1, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (47, '2026-11-23 00:25:14.56+00', 7, 'JOB_STATE', 4, 'ASSIGNED', 'RUNNING', 1, NULL, 1, 1, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (48, '2026-11-23 00:25:14.77+00', 7, 'JOB_STATE', 5, 'RUNNING', 'COMPLETED', 1, NULL, 1, 1, 'EXITED_ZERO');
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (49, '2026-11-23 00:25:18.404+00', 8, 'JOB_STATE', 3, 'DISPATCHED', 'ASSIGNED', 1, NULL, 1, 1, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (50, '2026-11-23 00:25:18.543+00', 8, 'JOB_STATE', 4, 'ASSIGNED', 'RUNNING', 1, NULL, 1, 1, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (51, '2026-11-23 00:25:18.593+00', 9, 'JOB_STATE', 3, 'DISPATCHED', 'ASSIGNED', 1, NULL, 1, 1, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (52, '2026-11-23 00:25:18.615+00', 8, 'JOB_STATE', 5, 'RUNNING', 'COMPLETED', 1, NULL, 1, 1, 'EXITED_ZERO');
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (53, '2026-11-23 00:25:20.811+00', 9, 'JOB_STATE', 4, 'ASSIGNED', 'RUNNING', 1, NULL, 1, 1, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (54, '2026-11-23 00:25:20.816+00', 9, 'JOB_STATE', 5, 'RUNNING', 'FAILED', 1, NULL, 1, 1, 'EXITED_NONZERO');
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (55, '2026-11-23 00:25:23.9+00', 10, 'JOB_STATE', 1, NULL, 'HELD', NULL, NULL, 1, NULL, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (56, '2026-11-23 00:25:24.857+00', 11, 'JOB_STATE', 1, NULL, 'QUEUED', NULL, NULL, 1, NULL, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (57, '2026-11-23 00:25:25.078+00', 11, 'JOB_STATE', 2, 'QUEUED', 'DISPATCHED', 1, NULL, 1, 0, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (58, '2026-11-23 00:25:25.139+00', 11, 'JOB_STATE', 3, 'DISPATCHED', 'ASSIGNED', 1, NULL, 1, 1, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (59, '2026-11-23 00:25:25.216+00', 11, 'JOB_STATE', 4, 'ASSIGNED', 'RUNNING', 1, NULL, 1, 1, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (60, '2026-11-23 00:25:25.694+00', 2, 'SITE', NULL, NULL, NULL, 2, NULL, NULL, NULL, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (61, '2026-11-23 00:25:25.694+00', 3, 'SITE', NULL, NULL, NULL, 3, NULL, NULL, NULL, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (62, '2026-11-23 00:25:25.699+00', 1, 'SCHEDULER', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (63, '2026-11-23 00:25:25.7+00', 1, 'LICENSE', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (64, '2026-11-23 00:25:25.701+00', 1, 'DATA', NULL, NULL, NULL, 2, NULL, NULL, NULL, NULL);
INSERT INTO public.events (id, at, entity_id, kind, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause) OVERRIDING SYSTEM VALUE VALUES (65, '2026-11-23 00:25:25.723+00', 1, 'SIMULATION', NULL, NULL, NULL, NULL, NULL, 1, NULL, NULL);
INSERT INTO public.events_horizon (singleton, id) VALUES (true, 0);
INSERT INTO public.files (id, job_id, epoch, task, user_id, path, bytes, sha256, received, upload, parts, began_at, kept_at) VALUES (1, 1, 1, 0, 1, 'a.csv', 4, '52186c933993da4082b3cdc7c40bb4bf735b391ff54a2ef78c037dda6c38a680', 4, NULL, '{}', '2026-11-23 00:24:43.919+00', '2026-11-23 00:24:44.066+00');
INSERT INTO public.foreign_jobs (job_id, site_id, offer, owner_job_id, owner_user, request, hops, visited, epoch, inputs, told, path_told) VALUES (3, 3, 1, 7, 'ada', 'there 7 1', 1, '{}', NULL, NULL, 2, '{}');
INSERT INTO public.job_counts (site_id, state, jobs) VALUES (0, 'HELD', 1);
INSERT INTO public.job_counts (site_id, state, jobs) VALUES (0, 'QUEUED', 0);
INSERT INTO public.job_counts (site_id, state, jobs) VALUES (1, 'DISPATCHED', 0);
INSERT INTO public.job_counts (site_id, state, jobs) VALUES (1, 'RUNNING', 1);
INSERT INTO public.job_counts (site_id, state, jobs) VALUES (1, 'ASSIGNED', 0);
INSERT INTO public.job_groups (id, user_id, name, template, size, first_job_id, last_job_id, created_at) VALUES (4, 1, NULL, '{"held": false, "boost": 0, "tasks": 1, "inputs": [], "launch": "EVERY_TASK", "command": "sh", "outputs": [], "licenses": [], "outputMb": 0, "arguments": ["-c", "echo {index}"], "benchmark": 100, "estimateS": 3600, "sandboxMb": 0, "cpusPerTask": 1, "environment": [], "preferences": [], "restartable": true, "onTaskFailure": "END_ALL", "memoryMbPerTask": 0}', 3, 6, 8, '2026-11-23 00:25:01.466+00');
INSERT INTO public.job_ratios (id, application, at, job_id, epoch, site_id, turnaround_s, io_s, io_method, site_power, runs, computation) VALUES (1, 'sh', '2026-11-23 00:24:44.101+00', 1, 1, 1, 0.988, 0.45809833499975505, 'CGROUP', 100, 1, 0.536337717611584);
INSERT INTO public.job_ratios (id, application, at, job_id, epoch, site_id, turnaround_s, io_s, io_method, site_power, runs, computation) VALUES (2, 'scan', '2026-11-23 00:24:52.765+00', 2, 1, 1, 0.22, 0, 'CGROUP', 100, 1, 1);
INSERT INTO public.job_ratios (id, application, at, job_id, epoch, site_id, turnaround_s, io_s, io_method, site_power, runs, computation) VALUES (3, 'sh', '2026-11-23 00:24:59.929+00', 3, 1, 1, 0.119, 0, 'CGROUP', 100, 2, 0.5861803658538799);
INSERT INTO public.job_ratios (id, application, at, job_id, epoch, site_id, turnaround_s, io_s, io_method, site_power, runs, computation) VALUES (4, 'sh', '2026-11-23 00:24:59.929+00', 4, 1, 1, 0.119, 0, 'CGROUP', 100, 3, 0.6263471982057464);
INSERT INTO public.job_ratios (id, application, at, job_id, epoch, site_id, turnaround_s, io_s, io_method, site_power, runs, computation) VALUES (5, 'sh', '2026-11-23 00:25:06.065+00', 5, 1, 1, 0.18, 0, 'CGROUP', 100, 4, 0.6741832610243563);
INSERT INTO public.job_ratios (id, application, at, job_id, epoch, site_id, turnaround_s, io_s, io_method, site_power, runs, computation) VALUES (6, 'sh', '2026-11-23 00:25:06.333+00', 6, 1, 1, 0.224, 0, 'CGROUP', 100, 5, 0.7189580766872669);
INSERT INTO public.job_ratios (id, application, at, job_id, epoch, site_id, turnaround_s, io_s, io_method, site_power, runs, computation) VALUES (7, 'sh', '2026-11-23 00:25:14.505+00', 7, 1, 1, 4.137, 0, 'CGROUP', 100, 6, 0.9205655739553051);
INSERT INTO public.job_ratios (id, application, at, job_id, epoch, site_id, turnaround_s, io_s, io_method, site_power, runs, computation) VALUES (8, 'sh', '2026-11-23 00:25:18.425+00', 8, 1, 1, 3.697, 0, 'CGROUP', 100, 7, 0.951595695794616);
INSERT INTO public.job_ratios_horizon (singleton, id) VALUES (true, 0);
INSERT INTO public.jobs (id, user_id, name, application, group_name, array_index, command, arguments, environment, working_directory, tasks, cpus_per_task, memory_mb_per_task, licenses, os, architecture, estimate_s, benchmark, run_time_limit_s, deadline, sandbox_mb, output_mb, inputs, origin_site_id, computation_share, outputs, preferences, restartable, launch, on_task_failure, simulated_run_s, simulated_io_s, group_id, submitted_at, boost, state, bytes, seq, site_id, scheduler_id, tree_moves, priority, migrated_at, dispatched_at, epoch, started_at, stop_cause, deadline_missed, message, ended_at, cause, exit_code) VALUES (3, 1, NULL, 'sh', 'sweep', 1, 'sh', '{-c,"echo $SWITCHYARD_ARRAY_INDEX"}', '{}', NULL, 1, 1, 0, '{}', NULL, NULL, 3600, 100, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, true, 'EVERY_TASK', 'END_ALL', NULL, NULL, 3, '2026-11-23 00:24:59.61+00', 0, 'COMPLETED', 544, 5, 1, NULL, 0, 0, NULL, '2026-11-23 00:24:59.733+00', 1, '2026-11-23 00:24:59.896+00', NULL, false, NULL, '2026-11-23 00:24:59.929+00', 'EXITED_ZERO', 0);
INSERT INTO public.jobs (id, user_id, name, application, group_name, array_index, command, arguments, environment, working_directory, tasks, cpus_per_task, memory_mb_per_task, licenses, os, architecture, estimate_s, benchmark, run_time_limit_s, deadline, sandbox_mb, output_mb, inputs, origin_site_id, computation_share, outputs, preferences, restartable, launch, on_task_failure, simulated_run_s, simulated_io_s, group_id, submitted_at, boost, state, bytes, seq, site_id, scheduler_id, tree_moves, priority, migrated_at, dispatched_at, epoch, started_at, stop_cause, deadline_missed, message, ended_at, cause, exit_code) VALUES (1, 1, NULL, 'sh', NULL, NULL, 'sh', '{-c,"echo hello; echo 1,2 > a.csv"}', '{}', NULL, 1, 1, 0, '{}', NULL, NULL, 3600, 100, NULL, '2026-11-23 01:24:42.37+00', 0, 0, NULL, NULL, NULL, '[{"path": "*.csv"}]', NULL, true, 'EVERY_TASK', 'END_ALL', NULL, NULL, NULL, '2026-11-23 00:24:42.718+00', 0, 'COMPLETED', 677, 5, 1, NULL, 0, 10, NULL, '2026-11-23 00:24:42.88+00', 1, '2026-11-23 00:24:43.504+00', NULL, false, NULL, '2026-11-23 00:24:44.101+00', 'EXITED_ZERO', 0);
INSERT INTO public.jobs (id, user_id, name, application, group_name, array_index, command, arguments, environment, working_directory, tasks, cpus_per_task, memory_mb_per_task, licenses, os, architecture, estimate_s, benchmark, run_time_limit_s, deadline, sandbox_mb, output_mb, inputs, origin_site_id, computation_share, outputs, preferences, restartable, launch, on_task_failure, simulated_run_s, simulated_io_s, group_id, submitted_at, boost, state, bytes, seq, site_id, scheduler_id, tree_moves, priority, migrated_at, dispatched_at, epoch, started_at, stop_cause, deadline_missed, message, ended_at, cause, exit_code) VALUES (2, 1, NULL, 'scan', NULL, NULL, 'true', '{}', '{}', NULL, 2, 1, 0, '{}', NULL, NULL, 3600, 100, NULL, NULL, 0, 0, '[{"datasetId": 1}]', NULL, NULL, NULL, NULL, true, 'EVERY_TASK', 'END_ALL', NULL, NULL, NULL, '2026-11-23 00:24:52.304+00', 0, 'COMPLETED', 644, 5, 1, NULL, 0, 0, NULL, '2026-11-23 00:24:52.429+00', 1, '2026-11-23 00:24:52.659+00', NULL, false, NULL, '2026-11-23 00:24:52.765+00', 'EXITED_ZERO', 0);
INSERT INTO public.jobs (id, user_id, name, application, group_name, array_index, command, arguments, environment, working_directory, tasks, cpus_per_task, memory_mb_per_task, licenses, os, architecture, estimate_s, benchmark, run_time_limit_s, deadline, sandbox_mb, output_mb, inputs, origin_site_id, computation_share, outputs, preferences, restartable, launch, on_task_failure, simulated_run_s, simulated_io_s, group_id, submitted_at, boost, state, bytes, seq, site_id, scheduler_id, tree_moves, priority, migrated_at, dispatched_at, epoch, started_at, stop_cause, deadline_missed, message, ended_at, cause, exit_code) VALUES (9, 1, NULL, 'false', NULL, NULL, 'false', '{}', '{}', NULL, 1, 1, 0, '{}', NULL, NULL, 3600, 100, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, true, 'EVERY_TASK', 'END_ALL', NULL, NULL, NULL, '2026-11-23 00:25:07.38+00', 0, 'FAILED', 517, 5, 1, NULL, 0, 0, NULL, '2026-11-23 00:25:10.311+00', 1, '2026-11-23 00:25:18.624+00', NULL, false, NULL, '2026-11-23 00:25:18.633+00', 'EXITED_NONZERO', 1);
INSERT INTO public.jobs (id, user_id, name, application, group_name, array_index, command, arguments, environment, working_directory, tasks, cpus_per_task, memory_mb_per_task, licenses, os, architecture, estimate_s, benchmark, run_time_limit_s, deadline, sandbox_mb, output_mb, inputs, origin_site_id, computation_share, outputs, preferences, restartable, launch, on_task_failure, simulated_run_s, simulated_io_s, group_id, submitted_at, boost, state, bytes, seq, site_id, scheduler_id, tree_moves, priority, migrated_at, dispatched_at, epoch, started_at, stop_cause, deadline_missed, message, ended_at, cause, exit_code) VALUES (7, 1, NULL, 'sh', NULL, 1, 'sh', '{-c,"echo 1"}', '{}', NULL, 1, 1, 0, '{}', NULL, NULL, 3600, 100, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, true, 'EVERY_TASK', 'END_ALL', NULL, NULL, 4, '2026-11-23 00:25:01.466+00', 0, 'COMPLETED', 522, 5, 1, NULL, 0, 0, NULL, '2026-11-23 00:25:05.976+00', 1, '2026-11-23 00:25:14.492+00', NULL, false, NULL, '2026-11-23 00:25:14.505+00', 'EXITED_ZERO', 0);
INSERT INTO public.jobs (id, user_id, name, application, group_name, array_index, command, arguments, environment, working_directory, tasks, cpus_per_task, memory_mb_per_task, licenses, os, architecture, estimate_s, benchmark, run_time_limit_s, deadline, sandbox_mb, output_mb, inputs, origin_site_id, computation_share, outputs, preferences, restartable, launch, on_task_failure, simulated_run_s, simulated_io_s, group_id, submitted_at, boost, state, bytes, seq, site_id, scheduler_id, tree_moves, priority, migrated_at, dispatched_at, epoch, started_at, stop_cause, deadline_missed, message, ended_at, cause, exit_code) VALUES (5, 1, NULL, 'sh', 'sweep', 3, 'sh', '{-c,"echo $SWITCHYARD_ARRAY_INDEX"}', '{}', NULL, 1, 1, 0, '{}', NULL, NULL, 3600, 100, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, true, 'EVERY_TASK', 'END_ALL', NULL, NULL, 3, '2026-11-23 00:24:59.61+00', 0, 'COMPLETED', 544, 5, 1, NULL, 0, 0, NULL, '2026-11-23 00:24:59.733+00', 1, '2026-11-23 00:25:06.047+00', NULL, false, NULL, '2026-11-23 00:25:06.065+00', 'EXITED_ZERO', 0);
INSERT INTO public.jobs (id, user_id, name, application, group_name, array_index, command, arguments, environment, working_directory, tasks, cpus_per_task, memory_mb_per_task, licenses, os, architecture, estimate_s, benchmark, run_time_limit_s, deadline, sandbox_mb, output_mb, inputs, origin_site_id, computation_share, outputs, preferences, restartable, launch, on_task_failure, simulated_run_s, simulated_io_s, group_id, submitted_at, boost, state, bytes, seq, site_id, scheduler_id, tree_moves, priority, migrated_at, dispatched_at, epoch, started_at, stop_cause, deadline_missed, message, ended_at, cause, exit_code) VALUES (4, 1, NULL, 'sh', 'sweep', 2, 'sh', '{-c,"echo $SWITCHYARD_ARRAY_INDEX"}', '{}', NULL, 1, 1, 0, '{}', NULL, NULL, 3600, 100, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, true, 'EVERY_TASK', 'END_ALL', NULL, NULL, 3, '2026-11-23 00:24:59.61+00', 0, 'COMPLETED', 544, 5, 1, NULL, 0, 0, NULL, '2026-11-23 00:24:59.733+00', 1, '2026-11-23 00:24:59.924+00', NULL, false, NULL, '2026-11-23 00:24:59.929+00', 'EXITED_ZERO', 0);
INSERT INTO public.jobs (id, user_id, name, application, group_name, array_index, command, arguments, environment, working_directory, tasks, cpus_per_task, memory_mb_per_task, licenses, os, architecture, estimate_s, benchmark, run_time_limit_s, deadline, sandbox_mb, output_mb, inputs, origin_site_id, computation_share, outputs, preferences, restartable, launch, on_task_failure, simulated_run_s, simulated_io_s, group_id, submitted_at, boost, state, bytes, seq, site_id, scheduler_id, tree_moves, priority, migrated_at, dispatched_at, epoch, started_at, stop_cause, deadline_missed, message, ended_at, cause, exit_code) VALUES (10, 1, 'held', 'echo', NULL, NULL, 'echo', '{"let go"}', '{}', NULL, 1, 1, 0, '{}', NULL, NULL, 3600, 100, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, true, 'EVERY_TASK', 'END_ALL', NULL, NULL, NULL, '2026-11-23 00:25:23.9+00', 0, 'HELD', 522, 1, NULL, NULL, 0, NULL, NULL, NULL, 0, NULL, NULL, false, NULL, NULL, NULL, NULL);
INSERT INTO public.jobs (id, user_id, name, application, group_name, array_index, command, arguments, environment, working_directory, tasks, cpus_per_task, memory_mb_per_task, licenses, os, architecture, estimate_s, benchmark, run_time_limit_s, deadline, sandbox_mb, output_mb, inputs, origin_site_id, computation_share, outputs, preferences, restartable, launch, on_task_failure, simulated_run_s, simulated_io_s, group_id, submitted_at, boost, state, bytes, seq, site_id, scheduler_id, tree_moves, priority, migrated_at, dispatched_at, epoch, started_at, stop_cause, deadline_missed, message, ended_at, cause, exit_code) VALUES (8, 1, NULL, 'sh', NULL, 2, 'sh', '{-c,"echo 2"}', '{}', NULL, 1, 1, 0, '{}', NULL, NULL, 3600, 100, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, true, 'EVERY_TASK', 'END_ALL', NULL, NULL, 4, '2026-11-23 00:25:01.466+00', 0, 'COMPLETED', 522, 5, 1, NULL, 0, 0, NULL, '2026-11-23 00:25:05.976+00', 1, '2026-11-23 00:25:18.416+00', NULL, false, NULL, '2026-11-23 00:25:18.425+00', 'EXITED_ZERO', 0);
INSERT INTO public.jobs (id, user_id, name, application, group_name, array_index, command, arguments, environment, working_directory, tasks, cpus_per_task, memory_mb_per_task, licenses, os, architecture, estimate_s, benchmark, run_time_limit_s, deadline, sandbox_mb, output_mb, inputs, origin_site_id, computation_share, outputs, preferences, restartable, launch, on_task_failure, simulated_run_s, simulated_io_s, group_id, submitted_at, boost, state, bytes, seq, site_id, scheduler_id, tree_moves, priority, migrated_at, dispatched_at, epoch, started_at, stop_cause, deadline_missed, message, ended_at, cause, exit_code) VALUES (6, 1, NULL, 'sh', NULL, 0, 'sh', '{-c,"echo 0"}', '{}', NULL, 1, 1, 0, '{}', NULL, NULL, 3600, 100, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, true, 'EVERY_TASK', 'END_ALL', NULL, NULL, 4, '2026-11-23 00:25:01.466+00', 0, 'COMPLETED', 522, 5, 1, NULL, 0, 0, NULL, '2026-11-23 00:25:05.976+00', 1, '2026-11-23 00:25:06.319+00', NULL, false, NULL, '2026-11-23 00:25:06.333+00', 'EXITED_ZERO', 0);
INSERT INTO public.jobs (id, user_id, name, application, group_name, array_index, command, arguments, environment, working_directory, tasks, cpus_per_task, memory_mb_per_task, licenses, os, architecture, estimate_s, benchmark, run_time_limit_s, deadline, sandbox_mb, output_mb, inputs, origin_site_id, computation_share, outputs, preferences, restartable, launch, on_task_failure, simulated_run_s, simulated_io_s, group_id, submitted_at, boost, state, bytes, seq, site_id, scheduler_id, tree_moves, priority, migrated_at, dispatched_at, epoch, started_at, stop_cause, deadline_missed, message, ended_at, cause, exit_code) VALUES (11, 1, 'running', 'sleep', NULL, NULL, 'sleep', '{60}', '{}', NULL, 1, 1, 0, '{}', NULL, NULL, 3600, 100, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, true, 'EVERY_TASK', 'END_ALL', NULL, NULL, NULL, '2026-11-23 00:25:24.857+00', 0, 'RUNNING', 519, 4, 1, NULL, 0, 0, NULL, '2026-11-23 00:25:25.061+00', 1, '2026-11-23 00:25:25.176+00', NULL, false, NULL, NULL, NULL, NULL);
INSERT INTO public.licenses (id, kind, copies, site_id, in_use, removed_at) VALUES (1, 'cad', 2, NULL, 0, NULL);
INSERT INTO public.link_measurements (id, from_site_id, to_site_id, at, bandwidth_mb_per_s, rtt_s, loss) VALUES (1, 1, 2, '2026-11-23 00:25:25.691+00', 100, 0.01, 0);
INSERT INTO public.links (from_site_id, to_site_id, bandwidth_mb_per_s, rtt_s, loss, measured_at, source) VALUES (1, 2, 100, 0.01, 0, '2026-11-23 00:25:25.691+00', 'ADMIN');
INSERT INTO public.machines (id, site_id, name, state, cpus, memory_mb, benchmark, os, architecture, license_ids, max_tasks, reason, agent_id, silent, measured, measured_at, problem, launch_failures, cpus_used, memory_used_mb, tasks_used, removed_at) VALUES (1, 1, 'host', 'UP', 2, 25276, 100, 'linux', 'x64', '{}', NULL, NULL, 1, false, '{"os": "linux", "cpus": 2, "gpus": [], "memoryMb": 25276, "benchmark": 110, "architecture": "x64"}', '2026-11-23 00:24:41.393+00', NULL, 0, 1, 0, 0, NULL);
INSERT INTO public.margins (id, margin_s) VALUES (1, -0.34800004959106445);
INSERT INTO public.offers (job_id, site_id, offer, version, epoch, withdrawn, again_at, path) VALUES (10, 3, 1, 2, NULL, true, '2026-11-23 00:25:25.691+00', '{}');
INSERT INTO public.outputs (job_id, epoch, task, stream, start, body, bytes) VALUES (1, 1, 0, 'STDOUT', 0, '\x68656c6c6f0a', 6);
INSERT INTO public.outputs (job_id, epoch, task, stream, start, body, bytes) VALUES (1, 1, 0, 'STDERR', 0, '\x', 0);
INSERT INTO public.outputs (job_id, epoch, task, stream, start, body, bytes) VALUES (2, 1, 0, 'STDOUT', 0, '\x', 0);
INSERT INTO public.outputs (job_id, epoch, task, stream, start, body, bytes) VALUES (2, 1, 0, 'STDERR', 0, '\x', 0);
INSERT INTO public.outputs (job_id, epoch, task, stream, start, body, bytes) VALUES (2, 1, 1, 'STDOUT', 0, '\x', 0);
INSERT INTO public.outputs (job_id, epoch, task, stream, start, body, bytes) VALUES (2, 1, 1, 'STDERR', 0, '\x', 0);
INSERT INTO public.outputs (job_id, epoch, task, stream, start, body, bytes) VALUES (3, 1, 0, 'STDOUT', 0, '\x310a', 2);
INSERT INTO public.outputs (job_id, epoch, task, stream, start, body, bytes) VALUES (3, 1, 0, 'STDERR', 0, '\x', 0);
INSERT INTO public.outputs (job_id, epoch, task, stream, start, body, bytes) VALUES (4, 1, 0, 'STDOUT', 0, '\x320a', 2);
INSERT INTO public.outputs (job_id, epoch, task, stream, start, body, bytes) VALUES (4, 1, 0, 'STDERR', 0, '\x', 0);
INSERT INTO public.outputs (job_id, epoch, task, stream, start, body, bytes) VALUES (5, 1, 0, 'STDOUT', 0, '\x330a', 2);
INSERT INTO public.outputs (job_id, epoch, task, stream, start, body, bytes) VALUES (5, 1, 0, 'STDERR', 0, '\x', 0);
INSERT INTO public.outputs (job_id, epoch, task, stream, start, body, bytes) VALUES (6, 1, 0, 'STDOUT', 0, '\x300a', 2);
INSERT INTO public.outputs (job_id, epoch, task, stream, start, body, bytes) VALUES (6, 1, 0, 'STDERR', 0, '\x', 0);
INSERT INTO public.outputs (job_id, epoch, task, stream, start, body, bytes) VALUES (7, 1, 0, 'STDOUT', 0, '\x310a', 2);
INSERT INTO public.outputs (job_id, epoch, task, stream, start, body, bytes) VALUES (7, 1, 0, 'STDERR', 0, '\x', 0);
INSERT INTO public.outputs (job_id, epoch, task, stream, start, body, bytes) VALUES (8, 1, 0, 'STDOUT', 0, '\x320a', 2);
INSERT INTO public.outputs (job_id, epoch, task, stream, start, body, bytes) VALUES (8, 1, 0, 'STDERR', 0, '\x', 0);
INSERT INTO public.outputs (job_id, epoch, task, stream, start, body, bytes) VALUES (9, 1, 0, 'STDOUT', 0, '\x', 0);
INSERT INTO public.outputs (job_id, epoch, task, stream, start, body, bytes) VALUES (9, 1, 0, 'STDERR', 0, '\x', 0);
INSERT INTO public.peer_users (site_id, name, user_id) VALUES (3, 'ada', 1);
INSERT INTO public.peers (site_id, user_id, url, secret, isolated, forward, needed_after_s, hops, lost_after_s, foreign_max, foreign_boost, service_id, kinds, seen_at, reached_at, failure, cursor, worker, worker_seen_at, created_at) VALUES (3, 1, 'http://127.0.0.1:1/graphql', 'nobody', false, 'WHEN_NEEDED', 600, 4, 3600, 1000, 0, NULL, '[]', NULL, NULL, NULL, 0, NULL, NULL, '2026-11-23 00:25:25.691+00');
INSERT INTO public.policies (version, document, reason, author_id, reverts_to, created_at) VALUES (1, '{"seed": 1, "local": {"kind": "flexible", "weights": {"aging": 0.00001, "licenses": 1, "deadlineK": 1.5, "deadlineMax": 5, "deadlineMin": 0.1, "waitMinimization": 1}}, "timers": {"cycleS": 10, "lostAfterS": 300, "agentSilentS": 60, "onDeadlinePassed": "RECORD"}, "dispatch": {"kind": "two-level", "mode": "MS", "window": 100, "weights": {"user": 1, "deadline": 1, "licenses": 1}, "maxDelta": 10, "userClassDelta": null}, "maxAttempts": 3, "referencePower": 1}', 'installation', NULL, NULL, '2026-11-23 00:24:35.504+00');
INSERT INTO public.processes (id, kind, since, seen_at) VALUES ('06b6773f', 'worker', '2026-11-23 00:24:38.646+00', '2026-11-23 00:25:23.695+00');
INSERT INTO public.processes (id, kind, since, seen_at) VALUES ('api-zKVlVBjdZ-yG', 'api', '2026-11-23 00:24:39.698+00', '2026-11-23 00:25:24.771+00');
INSERT INTO public.promises (site_id, revision, body) VALUES (1, 1, NULL);
INSERT INTO public.reservations (site_id, job_id, at, made_at, machine_ids, machine_tasks, license_ids) VALUES (1, 10, '2026-11-23 00:25:25.691+00', '2026-11-23 00:25:25.691+00', '{1}', '{1}', '{}');
INSERT INTO public.run_averages (application, user_id, kinds, count, turnaround_s, execution_s, io_s, event_id, updated_at) VALUES ('scan', 1, '[null,null]', 1, 22, 22, 0, 19, '2026-11-23 00:24:53.155+00');
INSERT INTO public.run_averages (application, user_id, kinds, count, turnaround_s, execution_s, io_s, event_id, updated_at) VALUES ('sh', 1, '[null,null]', 7, 135.2, 128.65573807143207, 6.54426192856793, 52, '2026-11-23 00:25:18.617+00');
INSERT INTO public.runs (job_id, epoch, site_id, machine_ids, machine_tasks, cpus_per_task, memory_mb_per_task, license_ids, policy_version, assigned_at, planned_s, started_at, ended_at, exit_code, signal, cause, message, cpu_s, cpu_method, peak_memory_mb, peak_memory_method, read_mb, written_mb, bytes_method, io_wait_s, io_wait_method, failed_task, ending) VALUES (1, 1, 1, '{1}', '{1}', 1, 0, '{}', 1, '2026-11-23 00:24:43.113+00', 3600, '2026-11-23 00:24:43.504+00', '2026-11-23 00:24:44.101+00', 0, NULL, 'EXITED_ZERO', NULL, 0.00161, 'CGROUP', NULL, NULL, 0.014165, 7.9e-05, 'PROC', 0.45809833499975505, 'CGROUP', NULL, false);
INSERT INTO public.runs (job_id, epoch, site_id, machine_ids, machine_tasks, cpus_per_task, memory_mb_per_task, license_ids, policy_version, assigned_at, planned_s, started_at, ended_at, exit_code, signal, cause, message, cpu_s, cpu_method, peak_memory_mb, peak_memory_method, read_mb, written_mb, bytes_method, io_wait_s, io_wait_method, failed_task, ending) VALUES (2, 1, 1, '{1}', '{2}', 1, 0, '{}', 1, '2026-11-23 00:24:52.545+00', 3600, '2026-11-23 00:24:52.659+00', '2026-11-23 00:24:52.765+00', 0, NULL, 'EXITED_ZERO', NULL, 0.002157, 'CGROUP', NULL, NULL, 0.020048, 0.000146, 'PROC', 0, 'CGROUP', NULL, false);
INSERT INTO public.runs (job_id, epoch, site_id, machine_ids, machine_tasks, cpus_per_task, memory_mb_per_task, license_ids, policy_version, assigned_at, planned_s, started_at, ended_at, exit_code, signal, cause, message, cpu_s, cpu_method, peak_memory_mb, peak_memory_method, read_mb, written_mb, bytes_method, io_wait_s, io_wait_method, failed_task, ending) VALUES (8, 1, 1, '{1}', '{1}', 1, 0, '{}', 1, '2026-11-23 00:25:14.728+00', 3600, '2026-11-23 00:25:18.416+00', '2026-11-23 00:25:18.425+00', 0, NULL, 'EXITED_ZERO', NULL, 0.001133, 'CGROUP', NULL, NULL, 0.005518, 7.1e-05, 'PROC', 0, 'CGROUP', NULL, false);
INSERT INTO public.runs (job_id, epoch, site_id, machine_ids, machine_tasks, cpus_per_task, memory_mb_per_task, license_ids, policy_version, assigned_at, planned_s, started_at, ended_at, exit_code, signal, cause, message, cpu_s, cpu_method, peak_memory_mb, peak_memory_method, read_mb, written_mb, bytes_method, io_wait_s, io_wait_method, failed_task, ending) VALUES (3, 1, 1, '{1}', '{1}', 1, 0, '{}', 1, '2026-11-23 00:24:59.81+00', 3600, '2026-11-23 00:24:59.896+00', '2026-11-23 00:24:59.929+00', 0, NULL, 'EXITED_ZERO', NULL, 0.001563, 'CGROUP', NULL, NULL, 0.005522, 7.1e-05, 'PROC', 0, 'CGROUP', NULL, false);
INSERT INTO public.runs (job_id, epoch, site_id, machine_ids, machine_tasks, cpus_per_task, memory_mb_per_task, license_ids, policy_version, assigned_at, planned_s, started_at, ended_at, exit_code, signal, cause, message, cpu_s, cpu_method, peak_memory_mb, peak_memory_method, read_mb, written_mb, bytes_method, io_wait_s, io_wait_method, failed_task, ending) VALUES (4, 1, 1, '{1}', '{1}', 1, 0, '{}', 1, '2026-11-23 00:24:59.81+00', 3600, '2026-11-23 00:24:59.924+00', '2026-11-23 00:24:59.929+00', 0, NULL, 'EXITED_ZERO', NULL, 0.001414, 'CGROUP', NULL, NULL, 0.005518, 7.1e-05, 'PROC', 0, 'CGROUP', NULL, false);
INSERT INTO public.runs (job_id, epoch, site_id, machine_ids, machine_tasks, cpus_per_task, memory_mb_per_task, license_ids, policy_version, assigned_at, planned_s, started_at, ended_at, exit_code, signal, cause, message, cpu_s, cpu_method, peak_memory_mb, peak_memory_method, read_mb, written_mb, bytes_method, io_wait_s, io_wait_method, failed_task, ending) VALUES (9, 1, 1, '{1}', '{1}', 1, 0, '{}', 1, '2026-11-23 00:25:18.452+00', 3600, '2026-11-23 00:25:18.624+00', '2026-11-23 00:25:18.633+00', 1, NULL, 'EXITED_NONZERO', NULL, 0.001001, 'CGROUP', NULL, NULL, 0.005518, 6.9e-05, 'PROC', 0, 'CGROUP', NULL, false);
INSERT INTO public.runs (job_id, epoch, site_id, machine_ids, machine_tasks, cpus_per_task, memory_mb_per_task, license_ids, policy_version, assigned_at, planned_s, started_at, ended_at, exit_code, signal, cause, message, cpu_s, cpu_method, peak_memory_mb, peak_memory_method, read_mb, written_mb, bytes_method, io_wait_s, io_wait_method, failed_task, ending) VALUES (5, 1, 1, '{1}', '{1}', 1, 0, '{}', 1, '2026-11-23 00:25:05.885+00', 3600, '2026-11-23 00:25:06.047+00', '2026-11-23 00:25:06.065+00', 0, NULL, 'EXITED_ZERO', NULL, 0.001345, 'CGROUP', NULL, NULL, 0.005518, 7.1e-05, 'PROC', 0, 'CGROUP', NULL, false);
INSERT INTO public.runs (job_id, epoch, site_id, machine_ids, machine_tasks, cpus_per_task, memory_mb_per_task, license_ids, policy_version, assigned_at, planned_s, started_at, ended_at, exit_code, signal, cause, message, cpu_s, cpu_method, peak_memory_mb, peak_memory_method, read_mb, written_mb, bytes_method, io_wait_s, io_wait_method, failed_task, ending) VALUES (6, 1, 1, '{1}', '{1}', 1, 0, '{}', 1, '2026-11-23 00:25:06.109+00', 3600, '2026-11-23 00:25:06.319+00', '2026-11-23 00:25:06.333+00', 0, NULL, 'EXITED_ZERO', NULL, 0.001131, 'CGROUP', NULL, NULL, 0.005518, 7.1e-05, 'PROC', 0, 'CGROUP', NULL, false);
INSERT INTO public.runs (job_id, epoch, site_id, machine_ids, machine_tasks, cpus_per_task, memory_mb_per_task, license_ids, policy_version, assigned_at, planned_s, started_at, ended_at, exit_code, signal, cause, message, cpu_s, cpu_method, peak_memory_mb, peak_memory_method, read_mb, written_mb, bytes_method, io_wait_s, io_wait_method, failed_task, ending) VALUES (7, 1, 1, '{1}', '{1}', 1, 0, '{}', 1, '2026-11-23 00:25:10.368+00', 3600, '2026-11-23 00:25:14.492+00', '2026-11-23 00:25:14.505+00', 0, NULL, 'EXITED_ZERO', NULL, 0.001177, 'CGROUP', NULL, NULL, 0.005518, 7.1e-05, 'PROC', 0, 'CGROUP', NULL, false);
INSERT INTO public.runs (job_id, epoch, site_id, machine_ids, machine_tasks, cpus_per_task, memory_mb_per_task, license_ids, policy_version, assigned_at, planned_s, started_at, ended_at, exit_code, signal, cause, message, cpu_s, cpu_method, peak_memory_mb, peak_memory_method, read_mb, written_mb, bytes_method, io_wait_s, io_wait_method, failed_task, ending) VALUES (11, 1, 1, '{1}', '{1}', 1, 0, '{}', 1, '2026-11-23 00:25:25.098+00', 3600, '2026-11-23 00:25:25.176+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false);
INSERT INTO public.schedulers (id, name, parent_id, created_at, removed_at) VALUES (1, 'region', NULL, '2026-11-23 00:25:25.691+00', NULL);
INSERT INTO public.service (singleton, id) VALUES (true, '85948bd4-ab4d-4883-adcb-6bf4c62be1ef');
INSERT INTO public.simulations (id, user_id, state, progress, policy_version, candidate, from_at, to_at, trace, reason, created_at, ended_at, worker, worker_seen_at, attempts, result, message) VALUES (1, 1, 'FAILED', 0, 1, '{}', '2026-11-22 23:25:25.691+00', '2026-11-23 00:25:25.691+00', NULL, NULL, '2026-11-23 00:25:25.691+00', '2026-11-23 00:25:25.691+00', NULL, NULL, 0, NULL, 'no jobs');
INSERT INTO public.sites (id, name, state, latitude, longitude, local_policy, max_running_jobs, scheduler_id, agent_seen_at, created_at, removed_at) VALUES (1, 'local', 'UP', NULL, NULL, NULL, NULL, NULL, '2026-11-23 00:25:24.518+00', '2026-11-23 00:24:36.949+00', NULL);
INSERT INTO public.sites (id, name, state, latitude, longitude, local_policy, max_running_jobs, scheduler_id, agent_seen_at, created_at, removed_at) VALUES (2, 'far', 'DOWN', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-23 00:25:25.691+00', NULL);
INSERT INTO public.sites (id, name, state, latitude, longitude, local_policy, max_running_jobs, scheduler_id, agent_seen_at, created_at, removed_at) VALUES (3, 'friends', 'DOWN', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-23 00:25:25.691+00', NULL);
INSERT INTO public.stagings (job_id, epoch, began_at, ended_at, total_mb, moved_mb, predicted_s, error) VALUES (1, 1, '2026-11-23 00:24:43.113+00', '2026-11-23 00:24:43.504+00', 1, 1, 1, NULL);
INSERT INTO public.submissions (id, user_id, idempotency_key, payload_hash, job_ids, job_count, at) VALUES (1, 1, NULL, '', '{1}', 1, '2026-11-23 00:24:42.718+00');
INSERT INTO public.submissions (id, user_id, idempotency_key, payload_hash, job_ids, job_count, at) VALUES (2, 1, NULL, '', '{2}', 1, '2026-11-23 00:24:52.304+00');
INSERT INTO public.submissions (id, user_id, idempotency_key, payload_hash, job_ids, job_count, at) VALUES (3, 1, 'once', '7cb6966ecd41865e9afd3c69aada1cd4914a771295b248a42d55710173375e64', '{3,4,5}', 3, '2026-11-23 00:24:59.61+00');
INSERT INTO public.submissions (id, user_id, idempotency_key, payload_hash, job_ids, job_count, at) VALUES (4, 1, NULL, '', '{6,7,8}', 3, '2026-11-23 00:25:01.466+00');
INSERT INTO public.submissions (id, user_id, idempotency_key, payload_hash, job_ids, job_count, at) VALUES (5, 1, NULL, '', '{9}', 1, '2026-11-23 00:25:07.38+00');
INSERT INTO public.submissions (id, user_id, idempotency_key, payload_hash, job_ids, job_count, at) VALUES (6, 1, NULL, '', '{10}', 1, '2026-11-23 00:25:23.9+00');
INSERT INTO public.submissions (id, user_id, idempotency_key, payload_hash, job_ids, job_count, at) VALUES (7, 1, NULL, '', '{11}', 1, '2026-11-23 00:25:24.857+00');
INSERT INTO public.tasks (job_id, epoch, index, started_at, ended_at, exit_code, signal, cause, message, cpu_s, cpu_method, peak_memory_mb, peak_memory_method, read_mb, written_mb, bytes_method, io_wait_s, io_wait_method) VALUES (2, 1, 0, '2026-11-23 00:24:52.659+00', '2026-11-23 00:24:52.681+00', 0, NULL, 'EXITED_ZERO', NULL, 0.001131, 'CGROUP', NULL, NULL, 0.00552, 7.3e-05, 'PROC', 0, 'CGROUP');
INSERT INTO public.tasks (job_id, epoch, index, started_at, ended_at, exit_code, signal, cause, message, cpu_s, cpu_method, peak_memory_mb, peak_memory_method, read_mb, written_mb, bytes_method, io_wait_s, io_wait_method) VALUES (2, 1, 1, '2026-11-23 00:24:52.745+00', '2026-11-23 00:24:52.765+00', 0, NULL, 'EXITED_ZERO', NULL, 0.001026, 'CGROUP', NULL, NULL, 0.014528, 7.3e-05, 'PROC', 0, 'CGROUP');
INSERT INTO public.traffic (site_id, at, arrivals, services) VALUES (1, 1795393480, 1, 1);
INSERT INTO public.traffic (site_id, at, arrivals, services) VALUES (1, 1795393490, 1, 1);
INSERT INTO public.traffic (site_id, at, arrivals, services) VALUES (1, 1795393495, 3, 0);
INSERT INTO public.traffic (site_id, at, arrivals, services) VALUES (1, 1795393500, 0, 2);
INSERT INTO public.traffic (site_id, at, arrivals, services) VALUES (1, 1795393505, 3, 1);
INSERT INTO public.traffic (site_id, at, arrivals, services) VALUES (1, 1795393510, 1, 2);
INSERT INTO public.traffic (site_id, at, arrivals, services) VALUES (1, 1795393515, 0, 1);
INSERT INTO public.traffic (site_id, at, arrivals, services) VALUES (1, 1795393520, 0, 1);
INSERT INTO public.traffic (site_id, at, arrivals, services) VALUES (1, 1795393525, 1, 0);
INSERT INTO public.used_hours (kind, hour, user_id, key, runs, run_s, cpus, cpu_s, begun, ended_jobs, failed_jobs, started_jobs, wait_s) VALUES ('APPLICATION', 1795392000, 1, 'scan', 0, 0.2200000286102295, 0, 0.440000057220459, 1, 1, 0, 1, 0.355);
INSERT INTO public.used_hours (kind, hour, user_id, key, runs, run_s, cpus, cpu_s, begun, ended_jobs, failed_jobs, started_jobs, wait_s) VALUES ('APPLICATION', 1795392000, 1, 'sh', 0, 9.464000225067139, 0, 9.464000225067139, 7, 7, 0, 7, 42.652);
INSERT INTO public.used_hours (kind, hour, user_id, key, runs, run_s, cpus, cpu_s, begun, ended_jobs, failed_jobs, started_jobs, wait_s) VALUES ('SITE', 1795392000, 1, '1', 0, 9.865000247955322, 0, 10.085000276565552, 9, 9, 1, 9, 54.251000000000005);
INSERT INTO public.used_hours (kind, hour, user_id, key, runs, run_s, cpus, cpu_s, begun, ended_jobs, failed_jobs, started_jobs, wait_s) VALUES ('APPLICATION', 1795392000, 1, 'false', 0, 0.1809999942779541, 0, 0.1809999942779541, 1, 1, 1, 1, 11.244);
INSERT INTO public.used_hours (kind, hour, user_id, key, runs, run_s, cpus, cpu_s, begun, ended_jobs, failed_jobs, started_jobs, wait_s) VALUES ('JOBS', 1795392000, 0, '', 2, 4206.297999858856, 0, 0, 11, 0, 0, 0, 0);
INSERT INTO public.user_files (user_id, bytes) VALUES (1, 4);
INSERT INTO public.user_jobs (user_id, jobs, bytes) VALUES (1, 2, 1041);
INSERT INTO public.user_outputs (user_id, bytes) VALUES (1, 18);
INSERT INTO public.users (id, name, class, role, quota_share, submission_limit, submission_period_s, active, identity, created_at) VALUES (1, 'admin', 'REGULAR', 'ADMIN', 1, NULL, NULL, true, NULL, '2026-11-23 00:24:35.945+00');
INSERT INTO public.users (id, name, class, role, quota_share, submission_limit, submission_period_s, active, identity, created_at) VALUES (2, 'agent-local', 'REGULAR', 'AGENT', 1, NULL, NULL, true, NULL, '2026-11-23 00:24:37.67+00');
SELECT pg_catalog.setval('public.agents_id_seq', 2, true);
SELECT pg_catalog.setval('public.api_keys_id_seq', 3, true);
SELECT pg_catalog.setval('public.audits_id_seq', 7, true);
SELECT pg_catalog.setval('public.datasets_id_seq', 1, true);
SELECT pg_catalog.setval('public.decisions_id_seq', 20, true);
SELECT pg_catalog.setval('public.events_id_seq', 65, true);
SELECT pg_catalog.setval('public.files_id_seq', 1, true);
SELECT pg_catalog.setval('public.job_ratios_id_seq', 8, true);
SELECT pg_catalog.setval('public.jobs_id_seq', 11, true);
SELECT pg_catalog.setval('public.licenses_id_seq', 1, true);
SELECT pg_catalog.setval('public.link_measurements_id_seq', 1, true);
SELECT pg_catalog.setval('public.machines_id_seq', 1, true);
SELECT pg_catalog.setval('public.margins_id_seq', 1, true);
SELECT pg_catalog.setval('public.offers_number', 2, true);
SELECT pg_catalog.setval('public.schedulers_id_seq', 1, true);
SELECT pg_catalog.setval('public.simulations_id_seq', 1, true);
SELECT pg_catalog.setval('public.sites_id_seq', 3, true);
SELECT pg_catalog.setval('public.submissions_id_seq', 7, true);
SELECT pg_catalog.setval('public.users_id_seq', 2, true);
SELECT pg_catalog.setval('triggers.news_place_seq', 15, true);
ALTER TABLE ONLY public._prisma_migrations
    ADD CONSTRAINT _prisma_migrations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.agents
    ADD CONSTRAINT agents_identity UNIQUE (site_id, identity);
ALTER TABLE ONLY public.agents
    ADD CONSTRAINT agents_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_prefix_key UNIQUE (prefix);
ALTER TABLE ONLY public.audits
    ADD CONSTRAINT audits_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.dataset_replicas
    ADD CONSTRAINT dataset_replicas_pkey PRIMARY KEY (dataset_id, site_id);
ALTER TABLE ONLY public.datasets
    ADD CONSTRAINT datasets_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.dead_files
    ADD CONSTRAINT dead_files_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.decisions
    ADD CONSTRAINT decisions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.events_horizon
    ADD CONSTRAINT events_horizon_pkey PRIMARY KEY (singleton);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.files
    ADD CONSTRAINT files_path UNIQUE (job_id, epoch, task, path);
ALTER TABLE ONLY public.files
    ADD CONSTRAINT files_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.foreign_jobs
    ADD CONSTRAINT foreign_jobs_offer UNIQUE (site_id, offer);
ALTER TABLE ONLY public.foreign_jobs
    ADD CONSTRAINT foreign_jobs_pkey PRIMARY KEY (job_id);
ALTER TABLE ONLY public.job_counts
    ADD CONSTRAINT job_counts_pkey PRIMARY KEY (site_id, state);
ALTER TABLE ONLY public.job_groups
    ADD CONSTRAINT job_groups_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.job_ratios_horizon
    ADD CONSTRAINT job_ratios_horizon_pkey PRIMARY KEY (singleton);
ALTER TABLE ONLY public.job_ratios
    ADD CONSTRAINT job_ratios_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.licenses
    ADD CONSTRAINT licenses_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.link_measurements
    ADD CONSTRAINT link_measurements_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.links
    ADD CONSTRAINT links_pkey PRIMARY KEY (from_site_id, to_site_id);
ALTER TABLE ONLY public.machines
    ADD CONSTRAINT machines_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.margins
    ADD CONSTRAINT margins_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.offers
    ADD CONSTRAINT offers_offer_key UNIQUE (offer);
ALTER TABLE ONLY public.offers
    ADD CONSTRAINT offers_pkey PRIMARY KEY (job_id, site_id);
ALTER TABLE ONLY public.outputs
    ADD CONSTRAINT outputs_pkey PRIMARY KEY (job_id, epoch, task, stream, start);
ALTER TABLE ONLY public.peer_users
    ADD CONSTRAINT peer_users_pkey PRIMARY KEY (site_id, name);
ALTER TABLE ONLY public.peers
    ADD CONSTRAINT peers_pkey PRIMARY KEY (site_id);
ALTER TABLE ONLY public.policies
    ADD CONSTRAINT policies_pkey PRIMARY KEY (version);
ALTER TABLE ONLY public.processes
    ADD CONSTRAINT processes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.promises
    ADD CONSTRAINT promises_pkey PRIMARY KEY (site_id);
ALTER TABLE ONLY public.reservations
    ADD CONSTRAINT reservations_pkey PRIMARY KEY (site_id);
ALTER TABLE ONLY public.run_averages
    ADD CONSTRAINT run_averages_pkey PRIMARY KEY (application, user_id, kinds);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (job_id, epoch);
ALTER TABLE ONLY public.schedulers
    ADD CONSTRAINT schedulers_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.service
    ADD CONSTRAINT service_pkey PRIMARY KEY (singleton);
ALTER TABLE ONLY public.simulations
    ADD CONSTRAINT simulations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.sites
    ADD CONSTRAINT sites_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.stagings
    ADD CONSTRAINT stagings_pkey PRIMARY KEY (job_id, epoch);
ALTER TABLE ONLY public.submissions
    ADD CONSTRAINT submissions_key UNIQUE (user_id, idempotency_key);
ALTER TABLE ONLY public.submissions
    ADD CONSTRAINT submissions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT tasks_pkey PRIMARY KEY (job_id, epoch, index);
ALTER TABLE ONLY public.traffic
    ADD CONSTRAINT traffic_pkey PRIMARY KEY (site_id, at);
ALTER TABLE ONLY public.used_hours
    ADD CONSTRAINT used_hours_pkey PRIMARY KEY (kind, hour, user_id, key);
ALTER TABLE ONLY public.user_files
    ADD CONSTRAINT user_files_pkey PRIMARY KEY (user_id);
ALTER TABLE ONLY public.user_jobs
    ADD CONSTRAINT user_jobs_pkey PRIMARY KEY (user_id);
ALTER TABLE ONLY public.user_outputs
    ADD CONSTRAINT user_outputs_pkey PRIMARY KEY (user_id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_identity_key UNIQUE (identity);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_name_key UNIQUE (name);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);
ALTER TABLE ONLY triggers.news
    ADD CONSTRAINT news_pkey PRIMARY KEY (place);
CREATE INDEX api_keys_user ON public.api_keys USING btree (user_id);
CREATE INDEX dataset_replicas_site ON public.dataset_replicas USING btree (site_id);
CREATE UNIQUE INDEX datasets_name ON public.datasets USING btree (name) WHERE (removed_at IS NULL);
CREATE INDEX decisions_job ON public.decisions USING btree (job_id, id);
CREATE UNIQUE INDEX events_of_job ON public.events USING btree (entity_id, seq) WHERE (seq IS NOT NULL);
CREATE INDEX files_kept ON public.files USING btree (kept_at);
CREATE INDEX foreign_jobs_open ON public.foreign_jobs USING btree (site_id, job_id) WHERE (told < 2);
CREATE INDEX foreign_jobs_request ON public.foreign_jobs USING btree (request) WHERE (told < 2);
CREATE INDEX job_groups_user ON public.job_groups USING btree (user_id, id);
CREATE INDEX job_ratios_application ON public.job_ratios USING btree (application, id);
CREATE INDEX jobs_application ON public.jobs USING btree (application, id);
CREATE INDEX jobs_by_deadline ON public.jobs USING btree (deadline, id) WHERE (deadline IS NOT NULL);
CREATE INDEX jobs_deadline ON public.jobs USING btree (deadline) WHERE ((deadline IS NOT NULL) AND (ended_at IS NULL) AND (NOT deadline_missed));
CREATE INDEX jobs_ended ON public.jobs USING btree (ended_at, id) INCLUDE (submitted_at) WHERE (ended_at IS NOT NULL);
CREATE INDEX jobs_ended_badly ON public.jobs USING btree (id) WHERE ((ended_at IS NOT NULL) AND (cause <> 'EXITED_ZERO'::public.end_cause));
CREATE INDEX jobs_group ON public.jobs USING btree (group_name, id) WHERE (group_name IS NOT NULL);
CREATE INDEX jobs_licensed ON public.jobs USING btree (id) WHERE ((ended_at IS NULL) AND (licenses <> '{}'::text[]));
CREATE INDEX jobs_live ON public.jobs USING btree (id) WHERE (ended_at IS NULL);
CREATE INDEX jobs_submitted ON public.jobs USING brin (submitted_at) WITH (pages_per_range='32', autosummarize='on');
CREATE INDEX jobs_user ON public.jobs USING btree (user_id, id);
CREATE UNIQUE INDEX licenses_kind ON public.licenses USING btree (kind, site_id) NULLS NOT DISTINCT WHERE (removed_at IS NULL);
CREATE INDEX link_measurements_link ON public.link_measurements USING btree (from_site_id, to_site_id, id);
CREATE INDEX machines_agent ON public.machines USING btree (agent_id);
CREATE UNIQUE INDEX machines_name ON public.machines USING btree (site_id, name) WHERE (removed_at IS NULL);
CREATE INDEX offers_news ON public.offers USING btree (site_id, version);
CREATE INDEX run_averages_news ON public.run_averages USING btree (event_id);
CREATE UNIQUE INDEX runs_live ON public.runs USING btree (job_id) WHERE (ended_at IS NULL);
CREATE INDEX runs_live_by_site ON public.runs USING btree (site_id, job_id) WHERE (ended_at IS NULL);
CREATE INDEX runs_times ON public.runs USING brin (assigned_at, ended_at) WITH (pages_per_range='32', autosummarize='on');
CREATE UNIQUE INDEX schedulers_name ON public.schedulers USING btree (name) WHERE (removed_at IS NULL);
CREATE INDEX simulations_open ON public.simulations USING btree (user_id) WHERE (ended_at IS NULL);
CREATE UNIQUE INDEX sites_name ON public.sites USING btree (name) WHERE (removed_at IS NULL);
CREATE INDEX submissions_at ON public.submissions USING btree (user_id, at);
CREATE TRIGGER agents_changed AFTER INSERT OR UPDATE OF instance, host, version, protocol, simulated, problem ON public.agents FOR EACH ROW EXECUTE FUNCTION triggers.directory_changed('AGENT', 'seen_at');
CREATE TRIGGER audits_append_only BEFORE UPDATE ON public.audits FOR EACH STATEMENT EXECUTE FUNCTION triggers.append_only();
CREATE TRIGGER dataset_replicas_deleted AFTER DELETE ON public.dataset_replicas REFERENCING OLD TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION triggers.dataset_replicas_changed();
CREATE TRIGGER dataset_replicas_inserted AFTER INSERT ON public.dataset_replicas REFERENCING NEW TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION triggers.dataset_replicas_changed();
CREATE TRIGGER datasets_inserted AFTER INSERT ON public.datasets REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION triggers.datasets_inserted();
CREATE TRIGGER datasets_updated AFTER UPDATE ON public.datasets REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION triggers.datasets_updated();
CREATE TRIGGER events_inserted AFTER INSERT ON public.events FOR EACH STATEMENT EXECUTE FUNCTION triggers.events_inserted();
CREATE TRIGGER events_inserting BEFORE INSERT ON public.events FOR EACH STATEMENT EXECUTE FUNCTION triggers.events_inserting();
CREATE TRIGGER files_added AFTER INSERT ON public.files REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION triggers.files_added();
CREATE TRIGGER files_deleted AFTER DELETE ON public.files REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION triggers.files_deleted();
CREATE TRIGGER jobs_deleted AFTER DELETE ON public.jobs REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION triggers.jobs_deleted();
CREATE TRIGGER jobs_inserted AFTER INSERT ON public.jobs REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION triggers.jobs_inserted();
CREATE TRIGGER jobs_inserted_used AFTER INSERT ON public.jobs REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION triggers.jobs_used();
CREATE TRIGGER jobs_updated AFTER UPDATE ON public.jobs REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION triggers.jobs_updated();
CREATE TRIGGER jobs_updated_learned AFTER UPDATE ON public.jobs REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION triggers.jobs_learned();
CREATE TRIGGER jobs_updated_offered AFTER UPDATE ON public.jobs REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION triggers.jobs_offered();
CREATE TRIGGER jobs_updated_used AFTER UPDATE ON public.jobs REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION triggers.jobs_used();
CREATE TRIGGER licenses_changed AFTER UPDATE OF kind, copies, site_id, removed_at ON public.licenses FOR EACH ROW EXECUTE FUNCTION triggers.directory_changed('LICENSE', 'in_use');
CREATE TRIGGER licenses_inserted AFTER INSERT ON public.licenses FOR EACH ROW EXECUTE FUNCTION triggers.directory_changed('LICENSE', '');
CREATE TRIGGER links_deleted AFTER DELETE ON public.links REFERENCING OLD TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION triggers.links_changed();
CREATE TRIGGER links_inserted AFTER INSERT ON public.links REFERENCING NEW TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION triggers.links_changed();
CREATE TRIGGER links_updated AFTER UPDATE ON public.links REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION triggers.links_updated();
CREATE TRIGGER machines_changed AFTER UPDATE OF name, state, reason, agent_id, silent, measured, problem, cpus, memory_mb, benchmark, os, architecture, license_ids, max_tasks, removed_at ON public.machines FOR EACH ROW EXECUTE FUNCTION triggers.directory_changed('MACHINE', 'measured_at,launch_failures,cpus_used,memory_used_mb,tasks_used');
CREATE TRIGGER machines_inserted AFTER INSERT ON public.machines FOR EACH ROW EXECUTE FUNCTION triggers.directory_changed('MACHINE', '');
CREATE TRIGGER outputs_deleted AFTER DELETE ON public.outputs REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION triggers.outputs_changed();
CREATE TRIGGER outputs_inserted AFTER INSERT ON public.outputs REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION triggers.outputs_changed();
CREATE TRIGGER outputs_updated AFTER UPDATE ON public.outputs REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION triggers.outputs_changed();
CREATE TRIGGER policies_append_only BEFORE DELETE OR UPDATE ON public.policies FOR EACH STATEMENT EXECUTE FUNCTION triggers.append_only();
CREATE TRIGGER policies_inserted AFTER INSERT ON public.policies FOR EACH ROW EXECUTE FUNCTION triggers.policies_inserted();
CREATE TRIGGER runs_inserted AFTER INSERT ON public.runs REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION triggers.runs_changed();
CREATE TRIGGER runs_updated AFTER UPDATE ON public.runs REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION triggers.runs_changed();
CREATE TRIGGER schedulers_changed AFTER INSERT OR UPDATE ON public.schedulers FOR EACH ROW EXECUTE FUNCTION triggers.directory_changed('SCHEDULER', '');
CREATE TRIGGER simulations_changed AFTER INSERT OR UPDATE ON public.simulations FOR EACH ROW EXECUTE FUNCTION triggers.simulations_changed();
CREATE TRIGGER sites_changed AFTER INSERT OR UPDATE ON public.sites FOR EACH ROW EXECUTE FUNCTION triggers.directory_changed('SITE', 'agent_seen_at');
CREATE TRIGGER sites_never_deleted BEFORE DELETE ON public.sites FOR EACH STATEMENT EXECUTE FUNCTION triggers.never_deleted();
CREATE TRIGGER users_changed AFTER INSERT OR UPDATE ON public.users FOR EACH ROW EXECUTE FUNCTION triggers.directory_changed('USER', '');
CREATE TRIGGER users_never_deleted BEFORE DELETE ON public.users FOR EACH STATEMENT EXECUTE FUNCTION triggers.never_deleted();
CREATE CONSTRAINT TRIGGER tell AFTER INSERT ON triggers.news DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION triggers.tell();
ALTER TABLE ONLY public.agents
    ADD CONSTRAINT agents_site_id_fkey FOREIGN KEY (site_id) REFERENCES public.sites(id);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_made_by_fkey FOREIGN KEY (made_by) REFERENCES public.api_keys(id);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_site_id_fkey FOREIGN KEY (site_id) REFERENCES public.sites(id);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.audits
    ADD CONSTRAINT audits_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.dataset_replicas
    ADD CONSTRAINT dataset_replicas_dataset_id_fkey FOREIGN KEY (dataset_id) REFERENCES public.datasets(id);
ALTER TABLE ONLY public.dataset_replicas
    ADD CONSTRAINT dataset_replicas_site_id_fkey FOREIGN KEY (site_id) REFERENCES public.sites(id);
ALTER TABLE ONLY public.files
    ADD CONSTRAINT files_job_id_epoch_fkey FOREIGN KEY (job_id, epoch) REFERENCES public.runs(job_id, epoch) ON DELETE CASCADE;
ALTER TABLE ONLY public.job_groups
    ADD CONSTRAINT job_groups_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.licenses
    ADD CONSTRAINT licenses_site_id_fkey FOREIGN KEY (site_id) REFERENCES public.sites(id);
ALTER TABLE ONLY public.links
    ADD CONSTRAINT links_from_site_id_fkey FOREIGN KEY (from_site_id) REFERENCES public.sites(id);
ALTER TABLE ONLY public.links
    ADD CONSTRAINT links_to_site_id_fkey FOREIGN KEY (to_site_id) REFERENCES public.sites(id);
ALTER TABLE ONLY public.machines
    ADD CONSTRAINT machines_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES public.agents(id);
ALTER TABLE ONLY public.machines
    ADD CONSTRAINT machines_site_id_fkey FOREIGN KEY (site_id) REFERENCES public.sites(id);
ALTER TABLE ONLY public.outputs
    ADD CONSTRAINT outputs_job_id_epoch_fkey FOREIGN KEY (job_id, epoch) REFERENCES public.runs(job_id, epoch) ON DELETE CASCADE;
ALTER TABLE ONLY public.peer_users
    ADD CONSTRAINT peer_users_site_id_fkey FOREIGN KEY (site_id) REFERENCES public.peers(site_id);
ALTER TABLE ONLY public.peer_users
    ADD CONSTRAINT peer_users_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.peers
    ADD CONSTRAINT peers_site_id_fkey FOREIGN KEY (site_id) REFERENCES public.sites(id);
ALTER TABLE ONLY public.peers
    ADD CONSTRAINT peers_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.policies
    ADD CONSTRAINT policies_author_id_fkey FOREIGN KEY (author_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.policies
    ADD CONSTRAINT policies_reverts_to_fkey FOREIGN KEY (reverts_to) REFERENCES public.policies(version);
ALTER TABLE ONLY public.promises
    ADD CONSTRAINT promises_site_id_fkey FOREIGN KEY (site_id) REFERENCES public.sites(id);
ALTER TABLE ONLY public.reservations
    ADD CONSTRAINT reservations_site_id_fkey FOREIGN KEY (site_id) REFERENCES public.sites(id);
ALTER TABLE ONLY public.run_averages
    ADD CONSTRAINT run_averages_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.schedulers
    ADD CONSTRAINT schedulers_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES public.schedulers(id);
ALTER TABLE ONLY public.simulations
    ADD CONSTRAINT simulations_policy_version_fkey FOREIGN KEY (policy_version) REFERENCES public.policies(version);
ALTER TABLE ONLY public.simulations
    ADD CONSTRAINT simulations_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.sites
    ADD CONSTRAINT sites_scheduler_id_fkey FOREIGN KEY (scheduler_id) REFERENCES public.schedulers(id);
ALTER TABLE ONLY public.stagings
    ADD CONSTRAINT stagings_job_id_epoch_fkey FOREIGN KEY (job_id, epoch) REFERENCES public.runs(job_id, epoch) ON DELETE CASCADE;
ALTER TABLE ONLY public.submissions
    ADD CONSTRAINT submissions_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT tasks_job_id_epoch_fkey FOREIGN KEY (job_id, epoch) REFERENCES public.runs(job_id, epoch) ON DELETE CASCADE;
