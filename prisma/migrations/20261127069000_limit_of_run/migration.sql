-- Seconds after which a run is stopped: its job's limit, else the site's when it was given its machines. Null: none.
ALTER TABLE runs ADD COLUMN limit_s double precision;
-- What agents have been told of the runs that are live. Peers have limits of their own.
UPDATE runs r SET limit_s = coalesce(j.run_time_limit_s, CASE WHEN r.placed_by <> 'PEER' THEN s.max_limit_s END)
  FROM jobs j, sites s
 WHERE r.ended_at IS NULL AND j.id = r.job_id AND s.id = r.site_id AND coalesce(j.run_time_limit_s, s.max_limit_s) IS NOT NULL;
