-- The job of which this one is a copy, made by a rerun. A job is run again once; then its copy may be.
ALTER TABLE jobs ADD COLUMN rerun_of bigint;
CREATE UNIQUE INDEX jobs_rerun ON jobs (rerun_of) WHERE rerun_of IS NOT NULL;
-- Who was canceled or held for which job.
CREATE INDEX job_needs_because ON job_needs (because) WHERE because IS NOT NULL;
