-- Machines that are shared in time: a task takes one of max_tasks places and no CPUs. And sites that run no more than so many jobs
-- at once.

ALTER TABLE machines
  ADD COLUMN max_tasks integer CHECK (max_tasks > 0),
  -- Counted on machines with places, as cpus_used is on the others: so what jobs hold cannot change how it is shared.
  ADD COLUMN tasks_used integer NOT NULL DEFAULT 0,
  ADD CONSTRAINT machines_tasks_never_over_committed CHECK (tasks_used BETWEEN 0 AND coalesce(max_tasks, 0)),
  ADD CONSTRAINT machines_shared_one_way CHECK (max_tasks IS NULL OR cpus_used = 0);

ALTER TABLE sites ADD COLUMN max_running_jobs integer CHECK (max_running_jobs > 0);

DROP TRIGGER machines_changed ON machines;
CREATE TRIGGER machines_changed AFTER UPDATE OF name, state, silent, cpus, memory_mb, benchmark, os, architecture, license_ids, max_tasks, removed_at ON machines
  FOR EACH ROW EXECUTE FUNCTION directory_changed('MACHINE', 'heartbeat_at,cpus_used,memory_used_mb,tasks_used');

-- Runs take and give back what they hold of machines and licenses; the locks are taken in the order of ids. A site with a limit of
-- running jobs is locked first, by whoever starts jobs there: so the count is right.
CREATE OR REPLACE FUNCTION runs_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE site integer;
BEGIN
  PERFORM 1 FROM sites WHERE id IN (SELECT site_id FROM new_rows) AND max_running_jobs IS NOT NULL ORDER BY id FOR NO KEY UPDATE;
  SELECT id INTO site FROM sites s WHERE id IN (SELECT site_id FROM new_rows WHERE ended_at IS NULL)
     AND max_running_jobs < (SELECT count(*) FROM runs r WHERE r.site_id = s.id AND r.ended_at IS NULL) LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'site % runs more jobs than it may', site USING ERRCODE = 'check_violation', CONSTRAINT = 'sites_running_jobs_limited';
  END IF;
  PERFORM 1 FROM machines WHERE id IN (SELECT unnest(machine_ids) FROM new_rows) ORDER BY id FOR NO KEY UPDATE;
  UPDATE machines m SET cpus_used = m.cpus_used + CASE WHEN m.max_tasks IS NULL THEN t.cpus ELSE 0 END,
      tasks_used = m.tasks_used + CASE WHEN m.max_tasks IS NULL THEN 0 ELSE t.tasks END, memory_used_mb = m.memory_used_mb + t.memory_mb
    FROM (SELECT u.machine_id, sum(u.tasks * r.cpus_per_task) AS cpus, sum(u.tasks) AS tasks, sum(u.tasks::bigint * r.memory_mb_per_task) AS memory_mb
            FROM new_rows r, unnest(r.machine_ids, r.machine_tasks) AS u (machine_id, tasks)
           WHERE r.ended_at IS NULL GROUP BY 1) t
    WHERE m.id = t.machine_id;
  PERFORM 1 FROM licenses WHERE id IN (SELECT unnest(license_ids) FROM new_rows) ORDER BY id FOR NO KEY UPDATE;
  UPDATE licenses l SET in_use = l.in_use + t.n
    FROM (SELECT u.license_id, count(*) AS n FROM new_rows r, unnest(r.license_ids) AS u (license_id)
           WHERE r.ended_at IS NULL GROUP BY 1) t
    WHERE l.id = t.license_id;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION runs_updated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM old_rows WHERE ended_at IS NOT NULL) THEN
    RAISE EXCEPTION 'an ended run may not change' USING ERRCODE = 'check_violation', CONSTRAINT = 'runs_end_once';
  END IF;
  IF NOT EXISTS (SELECT 1 FROM new_rows WHERE ended_at IS NOT NULL) THEN
    RETURN NULL;
  END IF;
  PERFORM 1 FROM machines WHERE id IN (SELECT unnest(machine_ids) FROM new_rows WHERE ended_at IS NOT NULL) ORDER BY id FOR NO KEY UPDATE;
  UPDATE machines m SET cpus_used = m.cpus_used - CASE WHEN m.max_tasks IS NULL THEN t.cpus ELSE 0 END,
      tasks_used = m.tasks_used - CASE WHEN m.max_tasks IS NULL THEN 0 ELSE t.tasks END, memory_used_mb = m.memory_used_mb - t.memory_mb
    FROM (SELECT u.machine_id, sum(u.tasks * r.cpus_per_task) AS cpus, sum(u.tasks) AS tasks, sum(u.tasks::bigint * r.memory_mb_per_task) AS memory_mb
            FROM new_rows r, unnest(r.machine_ids, r.machine_tasks) AS u (machine_id, tasks)
           WHERE r.ended_at IS NOT NULL GROUP BY 1) t
    WHERE m.id = t.machine_id;
  PERFORM 1 FROM licenses WHERE id IN (SELECT unnest(license_ids) FROM new_rows WHERE ended_at IS NOT NULL) ORDER BY id FOR NO KEY UPDATE;
  UPDATE licenses l SET in_use = l.in_use - t.n
    FROM (SELECT u.license_id, count(*) AS n FROM new_rows r, unnest(r.license_ids) AS u (license_id)
           WHERE r.ended_at IS NOT NULL GROUP BY 1) t
    WHERE l.id = t.license_id;
  RETURN NULL;
END $$;
