-- Functions and triggers: what the database promises beyond constraints.
--   * One event for each transition, in the same transaction, numbered in the order of commits.
--   * Only legal transitions.
--   * Counters that follow what they count: machines, licenses, jobs by scheduler and state, traffic, averages.
--   * Foreign keys of the tables of work, checked for all rows of a statement at once.
-- A statement that forgets any of this cannot be written, in TypeScript or by hand.
--
-- They are in a schema of their own, which is dropped and made anew (src/store/functions.ts) whenever this text, or a constant or
-- the list of transitions behind it, has changed: change a function here, and the next migration run brings it everywhere. So
-- nothing may depend on them but triggers. `triggers.legal`, `live`, `ended`, `waiting`, `event_lock` and `traffic_interval_s` are made
-- from the constants in TypeScript before this text runs.
--
-- Lock order in every writing transaction: users, sites, schedulers, jobs by id, machines by id, licenses by id, simulations, datasets by id and
-- links by (from, to), images of agents by (agent, name), promises, then whatever writes events, last: the event lock serializes writers from the moment they take it
-- until they commit. Row locks are FOR NO KEY UPDATE (or FOR SHARE of a site): they let foreign keys be checked meanwhile.
--
-- A plan in a function is made at its first call and kept. Made for one row, it would join ten thousand rows with ten thousand pair
-- by pair: so nested loops are off where two sets are joined, and where rows are to be looked up one by one the look-up is a
-- subquery with OFFSET 0, which stays one.

-- Events --------------------------------------------------------------------------------------------------------------

-- Also taken by those who have to write something in the order of events before they write an event.
CREATE FUNCTION triggers.lock_events() RETURNS void LANGUAGE sql AS $$
  SELECT pg_advisory_xact_lock(triggers.event_lock());
$$;

CREATE FUNCTION triggers.events_inserting() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM triggers.lock_events();
  RETURN NULL;
END $$;
CREATE TRIGGER events_inserting BEFORE INSERT ON events FOR EACH STATEMENT EXECUTE FUNCTION triggers.events_inserting();

CREATE FUNCTION triggers.events_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify(triggers.event_channel(), '');
  RETURN NULL;
END $$;
CREATE TRIGGER events_inserted AFTER INSERT ON events FOR EACH STATEMENT EXECUTE FUNCTION triggers.events_inserted();

-- News of what is changed by several statements of one transaction (the directory, through Prisma). Their events are written, and the lock
-- is taken, only by the COMMIT: between two statements the server waits for the client, and nobody else should wait for it too. A row is
-- here no longer than its transaction.
CREATE UNLOGGED TABLE triggers.news (
  place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz(3) NOT NULL,
  kind event_kind NOT NULL,
  entity_id bigint NOT NULL,
  site_id integer,
  user_id integer
);

CREATE FUNCTION triggers.tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO events (at, kind, entity_id, site_id, user_id) VALUES (NEW.at, NEW.kind, NEW.entity_id, NEW.site_id, NEW.user_id);
  DELETE FROM triggers.news WHERE place = NEW.place;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER tell AFTER INSERT ON triggers.news DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION triggers.tell();

-- Foreign keys --------------------------------------------------------------------------------------------------------
-- Users, sites and policies are never deleted, so a row that was there once stays; runs are made for jobs that their transaction has
-- locked.

CREATE FUNCTION triggers.missing(row_of text, kind text, id bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '%: there is no % %', row_of, kind, id
    USING ERRCODE = 'foreign_key_violation', CONSTRAINT = row_of || '_' || kind;
END $$;

-- The site, if there is one.
CREATE FUNCTION triggers.known_site(site integer) RETURNS integer STABLE STRICT LANGUAGE plpgsql AS $$
BEGIN
  PERFORM triggers.missing('jobs', 'site', site) WHERE NOT EXISTS (SELECT FROM sites WHERE id = site);
  RETURN site;
END $$;

CREATE FUNCTION triggers.never_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'rows of % are never deleted', TG_TABLE_NAME USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER users_never_deleted BEFORE DELETE ON users FOR EACH STATEMENT EXECUTE FUNCTION triggers.never_deleted();
CREATE TRIGGER sites_never_deleted BEFORE DELETE ON sites FOR EACH STATEMENT EXECUTE FUNCTION triggers.never_deleted();

-- Jobs ----------------------------------------------------------------------------------------------------------------

CREATE FUNCTION triggers.jobs_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM triggers.missing('jobs', 'user', user_id) FROM (SELECT DISTINCT user_id FROM new_rows) n
    WHERE NOT EXISTS (SELECT FROM users WHERE id = n.user_id OFFSET 0);
  PERFORM triggers.missing('jobs', 'site', site_id)
     FROM (SELECT DISTINCT origin_site_id AS site_id FROM new_rows WHERE origin_site_id IS NOT NULL
           UNION SELECT DISTINCT site_id FROM new_rows WHERE site_id IS NOT NULL) n
    WHERE NOT EXISTS (SELECT FROM sites WHERE id = n.site_id OFFSET 0);
  INSERT INTO events (at, kind, entity_id, seq, to_state, user_id, note)
    SELECT submitted_at, 'JOB_STATE', id, seq, state, user_id, note FROM new_rows ORDER BY id;
  INSERT INTO job_counts AS c (site_id, state, jobs)
    SELECT 0, state, count(*) FROM new_rows GROUP BY state
    ON CONFLICT (site_id, state) DO UPDATE SET jobs = c.jobs + excluded.jobs;
  INSERT INTO user_jobs AS u (user_id, jobs, bytes)
    SELECT user_id, count(*), sum(bytes) FROM new_rows GROUP BY user_id
    ON CONFLICT (user_id) DO UPDATE SET jobs = u.jobs + excluded.jobs, bytes = u.bytes + excluded.bytes;
  RETURN NULL;
END $$;
CREATE TRIGGER jobs_inserted AFTER INSERT ON jobs REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION triggers.jobs_inserted();

CREATE FUNCTION triggers.illegal(id bigint, was job_state, becomes job_state, seq_was integer, seq_becomes integer)
  RETURNS job_state LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'job % may not go from % to % (seq % to %)', id, was, becomes, seq_was, seq_becomes
    USING ERRCODE = 'check_violation', CONSTRAINT = 'jobs_legal_transition';
END $$;

-- Every statement that changes a job counts its seq up by one; the trigger writes the event that belongs to it. A move between
-- meta-queues, or between schedulers above the sites, is a transition, though the state is the same. With the events go the counts of jobs, traffic, and the margins of jobs
-- that go to local queues. Old and new rows are joined once, and counts are made from the few kinds of change that there are among
-- thousands of rows. The event lock is taken first: nothing else says which of these parts begins.
CREATE FUNCTION triggers.jobs_updated() RETURNS trigger LANGUAGE plpgsql SET enable_nestloop = off AS $$
DECLARE instant timestamptz(3) := clock_timestamp();
BEGIN
  PERFORM triggers.lock_events();
  WITH change AS MATERIALIZED (
    SELECT n.id, n.seq, n.state, n.site_id, n.scheduler_id IS DISTINCT FROM o.scheduler_id AS rehung, n.changed_at, n.user_id, n.epoch, n.cause, n.note, n.deadline, n.estimate_s, n.submitted_at, n.eligible_at, n.bytes,
           o.bytes AS bytes_was, o.seq AS seq_was, o.state AS was, o.site_id AS was_at
      FROM new_rows n JOIN old_rows o USING (id) ORDER BY n.id
  ), kind AS MATERIALIZED (
    SELECT was, was_at, state, triggers.known_site(site_id) AS site_id, count(*) AS jobs FROM change
     GROUP BY was, was_at, state, change.site_id
  ), told AS (
    INSERT INTO events (at, kind, entity_id, seq, from_state, to_state, site_id, from_site_id, user_id, epoch, cause, note)
      SELECT greatest(changed_at, instant),
             CASE WHEN state = was AND (state <> 'QUEUED' OR site_id IS NOT DISTINCT FROM was_at AND NOT rehung) THEN 'JOB_CHANGED'
                  ELSE 'JOB_STATE' END::event_kind,
             id, seq, was,
             CASE WHEN seq = seq_was + 1 AND (state = was AND NOT triggers.ended(state) OR triggers.legal(was, state)) THEN state
                  ELSE triggers.illegal(id, was, state, seq_was, seq) END,
             site_id, CASE WHEN triggers.waiting(state) THEN was_at END, user_id, epoch, cause, note
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
      FROM (SELECT user_id, count(*) FILTER (WHERE triggers.ended(state)) AS jobs,
                   sum(bytes_was - CASE WHEN triggers.ended(state) THEN 0 ELSE bytes END) AS bytes FROM change
             WHERE NOT triggers.ended(was) AND (triggers.ended(state) OR bytes <> bytes_was) GROUP BY user_id) d
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
    SELECT extract(epoch FROM deadline)::float8 - estimate_s - extract(epoch FROM coalesce(eligible_at, submitted_at))::float8
      FROM change WHERE was = 'QUEUED' AND state = 'DISPATCHED' AND deadline IS NOT NULL;
  RETURN NULL;
END $$;
CREATE TRIGGER jobs_updated AFTER UPDATE ON jobs REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION triggers.jobs_updated();

-- Everything about a job goes with it.
CREATE FUNCTION triggers.jobs_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE ids bigint[] := ARRAY(SELECT id FROM old_rows);
BEGIN
  INSERT INTO user_outputs AS u (user_id, bytes)
    SELECT j.user_id, -sum(octet_length(o.body)) FROM outputs o JOIN old_rows j ON j.id = o.job_id
     WHERE o.body <> '' GROUP BY j.user_id ORDER BY j.user_id
    ON CONFLICT (user_id) DO UPDATE SET bytes = u.bytes + excluded.bytes;
  DELETE FROM runs WHERE job_id = ANY (ids);
  DELETE FROM run_steps WHERE job_id = ANY (ids);
  DELETE FROM decisions WHERE job_id = ANY (ids);
  DELETE FROM job_needs WHERE job_id = ANY (ids);
  DELETE FROM need_edges WHERE job_id = ANY (ids);
  DELETE FROM reservations WHERE job_id = ANY (ids);
  DELETE FROM offers WHERE job_id = ANY (ids);
  DELETE FROM foreign_jobs WHERE job_id = ANY (ids);
  RETURN NULL;
END $$;
CREATE TRIGGER jobs_deleted AFTER DELETE ON jobs REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION triggers.jobs_deleted();

-- Bytes of outputs by user. Of the many that are empty nothing is counted; those of deleted jobs, which have no user any more, are counted
-- above. Users in the order of ids: others do the same at the same time.
CREATE FUNCTION triggers.outputs_changed() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE TRIGGER outputs_inserted AFTER INSERT ON outputs REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION triggers.outputs_changed();
CREATE TRIGGER outputs_updated AFTER UPDATE ON outputs REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION triggers.outputs_changed();
CREATE TRIGGER outputs_deleted AFTER DELETE ON outputs REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION triggers.outputs_changed();

-- Bytes of files by user. What is gone here is removed from the store of files by whoever looks at `dead_files`.
CREATE FUNCTION triggers.files_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO user_files AS u (user_id, bytes)
    SELECT user_id, sum(bytes) FROM new_rows GROUP BY user_id ORDER BY user_id
    ON CONFLICT (user_id) DO UPDATE SET bytes = u.bytes + excluded.bytes;
  RETURN NULL;
END $$;
CREATE TRIGGER files_added AFTER INSERT ON files REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION triggers.files_added();

CREATE FUNCTION triggers.files_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE TRIGGER files_deleted AFTER DELETE ON files REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION triggers.files_deleted();

-- Whether a location is a URL that anybody can fetch: not at an address of the host itself, of its link or of a private network, nor at a name that is
-- only known there. `allowed`: hosts, as they stand in URLs, that are reached all the same. What is written in any unusual way is not public: those who
-- fetch would understand it otherwise than this does.
CREATE FUNCTION triggers.is_public(location text, allowed text[]) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN host IS NULL THEN false
    WHEN host = ANY (allowed) THEN true
    -- Global unicast, but what has addresses of version 4 in it.
    WHEN host LIKE '[%' THEN host ~ '^\[[23][0-9a-f]{3}:[0-9a-f:]*\]$' AND host !~ '^\[(2002:|2001:0{0,3}:)'
    WHEN host ~ '^((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(\.|$)){4}$' AND host !~ '\.$' THEN
      NOT host::inet <<= ANY ('{0.0.0.0/8,10.0.0.0/8,100.64.0.0/10,127.0.0.0/8,169.254.0.0/16,172.16.0.0/12,192.0.0.0/24,192.168.0.0/16,198.18.0.0/15,224.0.0.0/3}'::inet[])
    -- A name: of letters and digits, with a domain, whose last part is no number in whatever notation.
    ELSE host ~ '^[a-z0-9_-]+(\.[a-z0-9_-]+)+\.?$' AND host !~ '(^|\.)(\d+|0x[0-9a-f]*)\.?$'
      AND host !~ '(^|\.)(localhost|local|internal|intranet|lan|home\.arpa)\.?$'
  END FROM (SELECT lower(substring(location FROM '(?i)^https?://(?:[^/?#\\]*@)?(\[[^]/?#\\]*\]|[^]:/?#\\[]*)(?:[:/?#]|$)')) AS host) h
$$;

-- A number of seconds ≥ 0 in whole units of 2^-200, exactly: its mantissa, shifted. As the core's unitsOf (structures/units.ts).
CREATE FUNCTION triggers.units(x float8) RETURNS numeric LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
  bits bigint := ('x' || encode(float8send(x), 'hex'))::bit(64)::bigint;
BEGIN
  IF x < 2::float8 ^ -140 THEN
    RETURN floor(x * 2::float8 ^ 200)::bigint;
  END IF;
  RETURN trunc(((bits & 4503599627370495) + 4503599627370496) * 2::numeric ^ ((bits >> 52) - 875)::int);
END $$;

-- Enters runs that ended well in the history of their applications: totals, and a point of the series for each, in the order of
-- jobs. Rules: job-ratio.md, "Job Analyzer and Monitor"; one run at a time they are src/store/rules.ts (observedRun) and the core's
-- totalsWith and resourceKinds. A run whose input and output nobody measured is a point that says so, and enters no total.
-- Sums are exact, so that the order of runs and the size of batches do not matter. A point is never later than now,
-- whatever the agent's clock says: retention goes by it. A run's time is from when it took its machines, by our clock, or what its agent
-- has measured between start and end, if that is more: then the agent's clock is behind or ahead.
-- A trigger, because its plan is kept: to plan the statement anew would cost as much as a hundred runs. Its name puts it behind
-- jobs_updated, and so behind the event lock: nobody else writes totals meanwhile, and the latest event is this transaction's.
-- Nobody here knows the machines of a run at a peer: it teaches nothing.
CREATE FUNCTION triggers.jobs_learned() RETURNS trigger LANGUAGE plpgsql AS $$
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
  ), measured AS MATERIALIZED (
    SELECT id, application, user_id, kinds, triggers.units(f * wall_s) AS turnaround, triggers.units(f * (wall_s - io_s)) AS execution,
           triggers.units(f * io_s) AS io
      FROM run WHERE io_s IS NOT NULL
  ), known AS MATERIALIZED (
    SELECT application, sum(count)::bigint AS runs, sum(turnaround) AS turnaround, sum(execution) AS execution
      FROM run_totals WHERE application IN (SELECT application FROM run) GROUP BY 1
  ), totalled AS (
    INSERT INTO run_totals AS a (application, user_id, kinds, count, turnaround, execution, io, event_id, updated_at)
      SELECT application, user_id, kinds, count(*), sum(turnaround), sum(execution), sum(io),
             (SELECT max(id) FROM events), clock_timestamp()
        FROM measured GROUP BY 1, 2, 3
      ON CONFLICT (application, user_id, kinds) DO UPDATE SET count = a.count + excluded.count,
        turnaround = a.turnaround + excluded.turnaround, execution = a.execution + excluded.execution, io = a.io + excluded.io,
        event_id = excluded.event_id, updated_at = excluded.updated_at
  ), summed AS (
    SELECT r.*, coalesce(k.runs, 0) + count(m.id) OVER so_far AS runs,
           coalesce(k.turnaround, 0) + coalesce(sum(m.turnaround) OVER so_far, 0) AS turnaround,
           coalesce(k.execution, 0) + coalesce(sum(m.execution) OVER so_far, 0) AS execution
      FROM run r LEFT JOIN measured m USING (id) LEFT JOIN known k ON k.application = r.application
    WINDOW so_far AS (PARTITION BY r.application ORDER BY r.id ROWS UNBOUNDED PRECEDING)
  )
  INSERT INTO job_ratios (application, at, job_id, epoch, site_id, turnaround_s, io_s, io_method, site_power, runs, computation)
    SELECT application, least(ended_at, clock_timestamp()), id, epoch, site_id, wall_s, io_s, io_method, slowest, runs,
           CASE WHEN runs = 0 THEN NULL WHEN turnaround > 0 THEN least(1, execution::float8 / turnaround::float8) ELSE 1 END
      FROM summed ORDER BY id;
  RETURN NULL;
END $$;
CREATE TRIGGER jobs_updated_learned AFTER UPDATE ON jobs REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION triggers.jobs_learned();

-- What runs and jobs came to, by hours, once they have ended (used_hours, used_resources). Few kinds of end are made of the thousands of rows first. The
-- names put it behind jobs_inserted and jobs_updated, and so behind the event lock.
CREATE FUNCTION triggers.hour(epoch_s double precision) RETURNS bigint IMMUTABLE LANGUAGE sql RETURN floor(epoch_s / 3600)::bigint * 3600;
CREATE FUNCTION triggers.rest_of_hour(epoch_s double precision) RETURNS double precision IMMUTABLE LANGUAGE sql
  RETURN triggers.hour(epoch_s) + 3600 - epoch_s;

-- What a run has of the kinds of resources that operators name; those that are counted in pools have `license:` before them.
CREATE FUNCTION triggers.had(resources_per_task jsonb, taken jsonb, machine_tasks integer[], license_ids integer[], license_amounts integer[])
    RETURNS TABLE (resource text, amount bigint) STABLE LANGUAGE sql AS $$
  SELECT key, value::bigint * (SELECT coalesce(sum(v), 0)::bigint FROM unnest(machine_tasks) v) FROM jsonb_each_text(resources_per_task) WHERE taken IS NULL
  UNION ALL
  SELECT e.key, sum(e.value::bigint)::bigint FROM jsonb_array_elements(taken) t (part), jsonb_each_text((t.part -> 'amounts') - '{cpus,memoryMb}'::text[]) e GROUP BY e.key
  UNION ALL
  SELECT 'license:' || l.kind, sum(coalesce(u.amount, 1))::bigint FROM unnest(license_ids, license_amounts) u (id, amount) JOIN licenses l USING (id) GROUP BY l.kind
$$;

CREATE FUNCTION triggers.jobs_used() RETURNS trigger LANGUAGE plpgsql SET enable_nestloop = off AS $$
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
        SELECT site_id AS ran_at, license_ids, license_amounts, date_part('epoch', assigned_at) AS s, date_part('epoch', ended_at) AS e,
               CASE WHEN whole_cpus IS NULL THEN cpus_per_task * (SELECT coalesce(sum(v), 0) FROM unnest(machine_tasks) v)
                    ELSE (SELECT coalesce(sum(v), 0) FROM unnest(whole_cpus) v) END AS cpus
          FROM runs WHERE job_id = o.id AND epoch = o.epoch AND triggers.live(o.state) OFFSET 0) r ON true
     WHERE triggers.live(o.state) > triggers.live(n.state) OR triggers.ended(n.state) > triggers.ended(o.state)
  ), run AS MATERIALIZED (
    SELECT user_id, application, ran_at, license_ids, license_amounts, triggers.hour(s) AS begins, triggers.hour(e) AS ends,
           count(*) AS runs, sum(triggers.rest_of_hour(s)) AS begun_s, sum(triggers.rest_of_hour(e)) AS ended_s,
           sum(cpus) AS cpus, sum(cpus * triggers.rest_of_hour(s)) AS begun_cpu_s, sum(cpus * triggers.rest_of_hour(e)) AS ended_cpu_s
      FROM change WHERE e IS NOT NULL GROUP BY 1, 2, 3, 4, 5, 6, 7
  ), job AS MATERIALIZED (
    SELECT user_id, application, site_id, triggers.hour(over_at) AS ends, count(*) AS jobs, sum(triggers.rest_of_hour(over_at)) AS ended_s,
           count(*) FILTER (WHERE failed) AS failed, count(wait_s) AS started, coalesce(sum(wait_s), 0) AS wait_s
      FROM change WHERE over_at IS NOT NULL GROUP BY 1, 2, 3, 4
  ), part AS (
    SELECT kind, hour, of_user AS user_id, key, sign * times * runs AS runs, sign * times * rest_s AS run_s, sign * times * cpus AS cpus, sign * times * rest_cpu_s AS cpu_s,
           greatest(sign, 0) * times * runs AS begun, 0 AS jobs, 0 AS failed, 0 AS started, 0 AS wait_s
      FROM run, LATERAL (
        SELECT 'SITE'::used_kind, user_id, ran_at::text, 1::bigint
        UNION ALL SELECT 'APPLICATION', user_id, application, 1
        -- As many times as there are copies.
        UNION ALL SELECT 'LICENSE', 0, u.id::text, coalesce(u.amount, 1) FROM unnest(license_ids, license_amounts) u (id, amount)) AS k (kind, of_user, key, times),
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
  -- Most jobs ask for nothing but CPUs and memory.
  IF EXISTS (SELECT FROM new_rows WHERE resources_per_task IS NOT NULL OR devices_per_task IS NOT NULL OR parts IS NOT NULL OR licenses <> '{}' OR resources IS NOT NULL) THEN
    INSERT INTO used_resources AS u (kind, hour, user_id, key, resource, held, held_s)
      SELECT k.kind, triggers.hour(side.at), n.user_id, k.key, r.resource, sum(side.sign * r.amount),
             sum(side.sign * r.amount * triggers.rest_of_hour(side.at))
        FROM new_rows n JOIN old_rows o USING (id)
        JOIN LATERAL (
          SELECT site_id, date_part('epoch', assigned_at) AS s, date_part('epoch', ended_at) AS e, h.resource, h.amount
            FROM runs, triggers.had(resources_per_task, taken, machine_tasks, license_ids, license_amounts) h
           WHERE job_id = o.id AND epoch = o.epoch AND ended_at IS NOT NULL OFFSET 0) r ON true,
             LATERAL (VALUES ('SITE'::used_kind, r.site_id::text), ('APPLICATION', n.application)) AS k (kind, key),
             LATERAL (VALUES (1, r.s), (-1, r.e)) AS side (sign, at)
       WHERE triggers.live(o.state) AND NOT triggers.live(n.state)
       GROUP BY 1, 2, 3, 4, 5
      ON CONFLICT (kind, hour, user_id, key, resource) DO UPDATE SET held = u.held + excluded.held, held_s = u.held_s + excluded.held_s;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER jobs_inserted_used AFTER INSERT ON jobs REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION triggers.jobs_used();
CREATE TRIGGER jobs_updated_used AFTER UPDATE ON jobs REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION triggers.jobs_used();

-- Offers of a job to peers follow the job: one that waits as it was offered can be claimed, one with the run that was granted is the peer's, any
-- other is withdrawn, for good. Peers are told of that, of a run to be stopped, and of another boost. The name puts it behind jobs_updated, and so
-- behind the event lock.
CREATE FUNCTION triggers.jobs_offered() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM offers) THEN
    RETURN NULL;
  END IF;
  WITH change AS MATERIALIZED (
    SELECT n.id, n.state, n.epoch, n.note IS NOT NULL AS is_changed, n.boost <> o.boost OR n.state = 'CANCELLING' AND o.state <> 'CANCELLING' AS is_news
      FROM new_rows n JOIN old_rows o USING (id)
  ), offered AS MATERIALIZED (
    SELECT o.job_id, o.site_id, c.is_news,
           CASE WHEN o.epoch IS NULL THEN c.is_changed OR c.state NOT IN ('QUEUED', 'DISPATCHED')
                ELSE o.epoch <> c.epoch OR NOT triggers.live(c.state) END AS is_over
      FROM change c JOIN offers o ON o.job_id = c.id WHERE NOT o.withdrawn
  )
  UPDATE offers o SET version = nextval('offers_number'), withdrawn = f.is_over
    FROM offered f WHERE o.job_id = f.job_id AND o.site_id = f.site_id AND (f.is_over OR f.is_news);
  RETURN NULL;
END $$;
CREATE TRIGGER jobs_updated_offered AFTER UPDATE ON jobs REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION triggers.jobs_offered();

-- Runs ----------------------------------------------------------------------------------------------------------------

-- The machine of a task: they are counted through, machine by machine. Without a task: the first.
CREATE FUNCTION triggers.machine_of(machine_ids integer[], machine_tasks integer[], task integer) RETURNS integer IMMUTABLE LANGUAGE sql AS $$
  SELECT CASE WHEN task IS NULL THEN machine_ids[1] ELSE
           (SELECT id FROM (SELECT id, place, sum(tasks) OVER (ORDER BY place) AS behind
                              FROM unnest(machine_ids, machine_tasks) WITH ORDINALITY AS u (id, tasks, place)) m
             WHERE behind > task ORDER BY place LIMIT 1) END
$$;

-- Whether the machine at this place of a run is kept from other users: all are, or those of some parts. Runs that began under an earlier
-- release do not say it by part.
CREATE FUNCTION triggers.keeps(keeps_machines boolean, taken jsonb, place bigint) RETURNS boolean IMMUTABLE LANGUAGE sql AS $$
  SELECT keeps_machines AND coalesce((taken #>> ARRAY[(place - 1)::text, 'keeps'])::boolean, true)
$$;

-- Runs take machines and licenses when they are inserted and give them back when they end, once; after that nothing of them changes.
-- Locks are taken in the order of ids. A site with a limit of running jobs is locked first, by whoever starts jobs there: so the
-- count is right.
CREATE FUNCTION triggers.runs_changed() RETURNS trigger LANGUAGE plpgsql AS $$
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
    -- Amounts, and what is held later, are compared by whoever starts jobs, behind the lock of the site.
    IF EXISTS (SELECT FROM holds h JOIN hold_times t ON t.hold_id = h.id AND NOT t.over JOIN new_rows r ON r.site_id = h.site_id
                WHERE h.ended_at IS NULL AND h.id IS DISTINCT FROM (SELECT reservation_id FROM jobs j WHERE j.id = r.job_id)
                  AND r.ended_at IS NULL AND t.from_at <= r.assigned_at AND (t.to_at IS NULL OR r.assigned_at < t.to_at)
                  AND CASE WHEN h.machines IS NULL THEN r.machine_ids <> '{}' ELSE EXISTS (
                      SELECT FROM jsonb_array_elements(h.machines) m
                       WHERE m -> 'amounts' = 'null' AND (m ->> 'machineId')::integer = ANY (r.machine_ids)) END) THEN
      RAISE EXCEPTION 'a machine is held' USING ERRCODE = 'check_violation', CONSTRAINT = 'runs_start_beside_holds';
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
      keeping_runs = m.keeping_runs + sign * t.keeping,
      -- Who has started something is not broken. Those that fail together count once.
      launch_failures = CASE WHEN t.started THEN 0 ELSE m.launch_failures END + CASE WHEN t.failed THEN 1 ELSE 0 END
    FROM (SELECT u.machine_id, sum(coalesce(u.cpus, u.tasks * r.cpus_per_task)) AS cpus, sum(coalesce(u.places, u.tasks)) AS tasks,
                 sum(CASE WHEN r.taken IS NULL THEN u.tasks::bigint * r.memory_mb_per_task
                          ELSE (r.taken #>> ARRAY[(u.place - 1)::text, 'amounts', 'memoryMb'])::bigint END) AS memory_mb, count(*) FILTER (WHERE triggers.keeps(r.keeps_machines, r.taken, u.place)) AS keeping,
                 bool_or(r.started_at IS NOT NULL AND r.cause <> 'MACHINE_FAILED') IS TRUE AS started,
                 bool_or(CASE WHEN r.cause = 'MACHINE_FAILED' THEN u.machine_id = triggers.machine_of(r.machine_ids, r.machine_tasks, r.failed_task) END) IS TRUE AS failed
            FROM new_rows r, unnest(r.machine_ids, r.machine_tasks, r.whole_cpus, r.whole_places) WITH ORDINALITY AS u (machine_id, tasks, cpus, places, place)
           WHERE (r.ended_at IS NULL) = beginning GROUP BY 1) t
    WHERE m.id = t.machine_id;
  IF beginning AND EXISTS (SELECT FROM machines WHERE id IN (SELECT unnest(machine_ids) FROM new_rows WHERE ended_at IS NULL) AND keeping_runs > 0)
      AND EXISTS (
        SELECT FROM runs r JOIN jobs j ON j.id = r.job_id, unnest(r.machine_ids) WITH ORDINALITY AS u (machine_id, place)
         WHERE r.ended_at IS NULL AND r.site_id IN (SELECT site_id FROM new_rows) AND u.machine_id IN (SELECT unnest(machine_ids) FROM new_rows)
         GROUP BY u.machine_id HAVING bool_or(triggers.keeps(r.keeps_machines, r.taken, u.place)) AND count(DISTINCT j.user_id) > 1) THEN
    RAISE EXCEPTION 'a machine is kept from the runs of other users' USING ERRCODE = 'check_violation', CONSTRAINT = 'machines_kept_from_others';
  END IF;
  -- Most runs take nothing but CPUs and memory.
  IF EXISTS (SELECT FROM new_rows WHERE resources_per_task IS NOT NULL AND (ended_at IS NULL) = beginning) THEN
    UPDATE machines m SET resources_used = (
        SELECT coalesce(jsonb_object_agg(kind, amount) FILTER (WHERE amount <> 0), '{}') FROM (
          SELECT kind, sum(amount) AS amount FROM (
            SELECT key AS kind, value::bigint AS amount FROM jsonb_each_text(m.resources_used)
            UNION ALL
            SELECT e.key, sign * CASE WHEN r.taken IS NULL THEN u.tasks ELSE 1 END * e.value::bigint
              FROM new_rows r, unnest(r.machine_ids, r.machine_tasks) WITH ORDINALITY AS u (machine_id, tasks, place),
                   jsonb_each_text(coalesce((r.taken #> ARRAY[(u.place - 1)::text, 'amounts']) - '{cpus,memoryMb}'::text[], r.resources_per_task)) e
             WHERE u.machine_id = m.id AND (r.ended_at IS NULL) = beginning) taken GROUP BY kind) sums)
      WHERE id IN (SELECT unnest(machine_ids) FROM new_rows WHERE resources_per_task IS NOT NULL AND (ended_at IS NULL) = beginning);
    IF beginning AND EXISTS (
        SELECT FROM machines m, jsonb_each_text(m.resources_used) e
         WHERE m.id IN (SELECT unnest(machine_ids) FROM new_rows WHERE resources_per_task IS NOT NULL)
           AND e.value::bigint > coalesce((m.resources ->> e.key)::bigint, 0)) THEN
      RAISE EXCEPTION 'a machine has less of a resource than its runs take'
        USING ERRCODE = 'check_violation', CONSTRAINT = 'machines_resources_not_exceeded';
    END IF;
    IF beginning THEN
      INSERT INTO device_holds (machine_id, unit, job_id, epoch)
        SELECT u.id, unit, r.job_id, r.epoch
          FROM new_rows r, unnest(r.machine_ids) WITH ORDINALITY AS u (id, place), jsonb_array_elements_text(r.devices -> (u.place - 1)::integer) AS unit
         WHERE r.devices IS NOT NULL AND r.ended_at IS NULL;
    ELSE
      DELETE FROM device_holds h USING new_rows r
       WHERE r.devices IS NOT NULL AND r.ended_at IS NOT NULL AND h.machine_id = ANY (r.machine_ids) AND h.job_id = r.job_id AND h.epoch = r.epoch;
    END IF;
  END IF;
  PERFORM 1 FROM licenses WHERE id IN (SELECT unnest(license_ids) FROM new_rows WHERE (ended_at IS NULL) = beginning)
    ORDER BY id FOR NO KEY UPDATE;
  UPDATE licenses l SET in_use = l.in_use + sign * t.copies
    FROM (SELECT u.license_id, sum(coalesce(u.amount, 1)) AS copies FROM new_rows r, unnest(r.license_ids, r.license_amounts) AS u (license_id, amount)
           WHERE (r.ended_at IS NULL) = beginning GROUP BY 1) t
    WHERE l.id = t.license_id;
  RETURN NULL;
END $$;
CREATE TRIGGER runs_inserted AFTER INSERT ON runs REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION triggers.runs_changed();
CREATE TRIGGER runs_updated AFTER UPDATE ON runs REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION triggers.runs_changed();

-- Directory -----------------------------------------------------------------------------------------------------------

-- What administrators change is told; counters and heartbeats (the second argument) are not.
CREATE FUNCTION triggers.directory_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE kind event_kind := TG_ARGV[0]; ignored text[] := string_to_array(TG_ARGV[1], ',');
BEGIN
  IF TG_OP = 'UPDATE' AND to_jsonb(NEW) - ignored = to_jsonb(OLD) - ignored THEN
    RETURN NULL;
  END IF;
  INSERT INTO triggers.news (at, kind, entity_id, site_id)
    VALUES (clock_timestamp(), kind, NEW.id, CASE kind WHEN 'SITE' THEN NEW.id ELSE (to_jsonb(NEW) ->> 'site_id')::integer END);
  RETURN NULL;
END $$;
CREATE TRIGGER sites_changed AFTER INSERT OR UPDATE ON sites
  FOR EACH ROW EXECUTE FUNCTION triggers.directory_changed('SITE', 'agent_seen_at,load_at,load_details');
CREATE TRIGGER holds_changed AFTER INSERT OR UPDATE ON holds
  FOR EACH ROW EXECUTE FUNCTION triggers.directory_changed('HOLD', 'made_at');
CREATE TRIGGER schedulers_changed AFTER INSERT OR UPDATE ON schedulers
  FOR EACH ROW EXECUTE FUNCTION triggers.directory_changed('SCHEDULER', '');
CREATE TRIGGER users_changed AFTER INSERT OR UPDATE ON users FOR EACH ROW EXECUTE FUNCTION triggers.directory_changed('USER', '');
CREATE TRIGGER licenses_inserted AFTER INSERT ON licenses FOR EACH ROW EXECUTE FUNCTION triggers.directory_changed('LICENSE', '');
CREATE TRIGGER machines_inserted AFTER INSERT ON machines FOR EACH ROW EXECUTE FUNCTION triggers.directory_changed('MACHINE', '');
-- The counters of these two change with every run: the columns are named so that those updates do not even call the function.
CREATE TRIGGER licenses_changed AFTER UPDATE OF kind, copies, site_id, removed_at ON licenses
  FOR EACH ROW EXECUTE FUNCTION triggers.directory_changed('LICENSE', 'in_use');
CREATE TRIGGER machines_changed
  AFTER UPDATE OF name, state, reason, agent_id, silent, measured, problem, cpus, memory_mb, benchmark, os, architecture, license_ids,
    max_tasks, resources, labels, devices, removed_at ON machines
  FOR EACH ROW EXECUTE FUNCTION triggers.directory_changed('MACHINE', 'measured_at,launch_failures,cpus_used,memory_used_mb,tasks_used,keeping_runs,resources_used');
CREATE TRIGGER agents_changed AFTER INSERT OR UPDATE OF instance, host, version, protocol, simulated, problem ON agents
  FOR EACH ROW EXECUTE FUNCTION triggers.directory_changed('AGENT', 'seen_at');

CREATE FUNCTION triggers.policies_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO triggers.news (at, kind, entity_id) VALUES (NEW.created_at, 'POLICY', NEW.version);
  RETURN NULL;
END $$;
CREATE TRIGGER policies_inserted AFTER INSERT ON policies FOR EACH ROW EXECUTE FUNCTION triggers.policies_inserted();

CREATE FUNCTION triggers.append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER policies_append_only BEFORE UPDATE OR DELETE ON policies FOR EACH STATEMENT EXECUTE FUNCTION triggers.append_only();
CREATE TRIGGER audits_append_only BEFORE UPDATE ON audits FOR EACH STATEMENT EXECUTE FUNCTION triggers.append_only();

-- Data ----------------------------------------------------------------------------------------------------------------

CREATE FUNCTION triggers.datasets_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO triggers.news (at, kind, entity_id) SELECT clock_timestamp(), 'DATA', id FROM new_rows ORDER BY id;
  RETURN NULL;
END $$;
CREATE TRIGGER datasets_inserted AFTER INSERT ON datasets REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION triggers.datasets_inserted();

CREATE FUNCTION triggers.datasets_updated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO triggers.news (at, kind, entity_id)
    SELECT clock_timestamp(), 'DATA', n.id FROM new_rows n JOIN old_rows o USING (id) WHERE n IS DISTINCT FROM o ORDER BY n.id;
  RETURN NULL;
END $$;
CREATE TRIGGER datasets_updated AFTER UPDATE ON datasets REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION triggers.datasets_updated();

CREATE FUNCTION triggers.dataset_replicas_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO triggers.news (at, kind, entity_id)
    SELECT clock_timestamp(), 'DATA', dataset_id FROM changed_rows GROUP BY dataset_id ORDER BY dataset_id;
  RETURN NULL;
END $$;
CREATE TRIGGER dataset_replicas_inserted AFTER INSERT ON dataset_replicas REFERENCING NEW TABLE AS changed_rows
  FOR EACH STATEMENT EXECUTE FUNCTION triggers.dataset_replicas_changed();
CREATE TRIGGER dataset_replicas_deleted AFTER DELETE ON dataset_replicas REFERENCING OLD TABLE AS changed_rows
  FOR EACH STATEMENT EXECUTE FUNCTION triggers.dataset_replicas_changed();

-- What is said of an image but its size is no news for schedulers.
CREATE FUNCTION triggers.agent_images_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO triggers.news (at, kind, entity_id, site_id)
    SELECT clock_timestamp(), 'DATA', site_id, site_id FROM changed_rows GROUP BY site_id ORDER BY site_id;
  RETURN NULL;
END $$;
CREATE TRIGGER agent_images_inserted AFTER INSERT ON agent_images REFERENCING NEW TABLE AS changed_rows
  FOR EACH STATEMENT EXECUTE FUNCTION triggers.agent_images_changed();
CREATE TRIGGER agent_images_deleted AFTER DELETE ON agent_images REFERENCING OLD TABLE AS changed_rows
  FOR EACH STATEMENT EXECUTE FUNCTION triggers.agent_images_changed();

CREATE FUNCTION triggers.agent_images_updated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO triggers.news (at, kind, entity_id, site_id)
    SELECT clock_timestamp(), 'DATA', n.site_id, n.site_id FROM new_rows n JOIN old_rows o USING (agent_id, name)
     WHERE n.size_mb <> o.size_mb GROUP BY n.site_id ORDER BY n.site_id;
  RETURN NULL;
END $$;
CREATE TRIGGER agent_images_updated AFTER UPDATE ON agent_images REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION triggers.agent_images_updated();

-- What lies at an agent that has no machine any more helps no job.
CREATE FUNCTION triggers.agents_left() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM agent_images WHERE agent_id = OLD.agent_id
     AND NOT EXISTS (SELECT FROM machines WHERE agent_id = OLD.agent_id AND removed_at IS NULL);
  RETURN NULL;
END $$;
CREATE TRIGGER agents_left AFTER UPDATE OF agent_id, removed_at ON machines
  FOR EACH ROW WHEN (OLD.agent_id IS NOT NULL AND (NEW.agent_id IS DISTINCT FROM OLD.agent_id OR NEW.removed_at IS NOT NULL))
  EXECUTE FUNCTION triggers.agents_left();

CREATE FUNCTION triggers.links_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO triggers.news (at, kind, entity_id, site_id)
    SELECT clock_timestamp(), 'DATA', from_site_id, to_site_id FROM changed_rows ORDER BY from_site_id, to_site_id;
  RETURN NULL;
END $$;
CREATE TRIGGER links_inserted AFTER INSERT ON links REFERENCING NEW TABLE AS changed_rows
  FOR EACH STATEMENT EXECUTE FUNCTION triggers.links_changed();
CREATE TRIGGER links_deleted AFTER DELETE ON links REFERENCING OLD TABLE AS changed_rows
  FOR EACH STATEMENT EXECUTE FUNCTION triggers.links_changed();

-- A measurement that changes nothing is no news.
CREATE FUNCTION triggers.links_updated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO triggers.news (at, kind, entity_id, site_id)
    SELECT clock_timestamp(), 'DATA', from_site_id, to_site_id FROM new_rows n JOIN old_rows o USING (from_site_id, to_site_id)
     WHERE (n.bandwidth_mb_per_s, n.rtt_s, n.loss) IS DISTINCT FROM (o.bandwidth_mb_per_s, o.rtt_s, o.loss)
     ORDER BY from_site_id, to_site_id;
  RETURN NULL;
END $$;
CREATE TRIGGER links_updated AFTER UPDATE ON links REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION triggers.links_updated();

-- What-if -------------------------------------------------------------------------------------------------------------

-- What has ended does not change any more; what people see of it is news.
CREATE FUNCTION triggers.simulations_changed() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE TRIGGER simulations_changed AFTER INSERT OR UPDATE ON simulations
  FOR EACH ROW EXECUTE FUNCTION triggers.simulations_changed();
