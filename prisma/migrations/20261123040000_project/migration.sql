-- On whose behalf a job runs: policies may value projects, and jobs are listed by them.
ALTER TABLE jobs ADD COLUMN project text COLLATE "C";
CREATE INDEX jobs_project ON jobs (project, id) WHERE project IS NOT NULL;
