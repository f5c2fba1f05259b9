-- From when a job that had to wait for others, or for a time, could be scheduled; null: it did not have to, or still does.
ALTER TABLE jobs ADD COLUMN eligible_at timestamptz(3);

-- Of jobs that wait for others or for a time, and of them only: other jobs cost nothing, and no index of jobs changes with their state.
CREATE TABLE job_needs (
  job_id bigint PRIMARY KEY,
  -- [{"expression": "ALL", "of": [{"job": 5, "condition": "OK", "minDelayS": 0}, …]}, …]; a term names a "job", a "jobGroup", or a
  -- "group" (groupName) of the same user with the last id, "until", that belonged to it at submission.
  needs jsonb NOT NULL,
  on_unmet text NOT NULL CHECK (on_unmet IN ('CANCEL', 'HOLD', 'RUN')),
  not_before timestamptz(3),
  -- When it is due at the latest; null: something that it needs has not happened.
  due_at timestamptz(3),
  -- The job for which its needs cannot hold any more.
  because bigint,
  open boolean NOT NULL DEFAULT true
);
CREATE INDEX job_needs_due ON job_needs (due_at) WHERE open;

-- Who needs what: a job, all jobs of a bulk group, or all of a user's jobs with a group name.
CREATE TABLE need_edges (
  job_id bigint NOT NULL,
  on_job bigint,
  on_group bigint,
  on_user integer,
  on_name text COLLATE "C",
  CHECK (num_nonnulls(on_job, on_group, on_name) = 1 AND (on_name IS NULL) = (on_user IS NULL))
);
CREATE INDEX need_edges_job ON need_edges (on_job, job_id) WHERE on_job IS NOT NULL;
CREATE INDEX need_edges_group ON need_edges (on_group, job_id) WHERE on_group IS NOT NULL;
CREATE INDEX need_edges_name ON need_edges (on_user, on_name, job_id) WHERE on_name IS NOT NULL;
CREATE INDEX need_edges_of ON need_edges (job_id);
