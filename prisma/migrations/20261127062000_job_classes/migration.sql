-- Jobs may name a class of the policy. Whether they are charged is decided when they are submitted.
ALTER TABLE jobs ADD COLUMN class text CHECK (length(class) BETWEEN 1 AND 64),
  ADD COLUMN charged boolean NOT NULL DEFAULT true;
-- How many of each class wait and run.
CREATE INDEX jobs_classes ON jobs (class, user_id) WHERE class IS NOT NULL AND ended_at IS NULL;
