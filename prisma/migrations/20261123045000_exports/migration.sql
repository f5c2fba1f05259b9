-- Datasets that lie at sites only, which peers' sites fetch from the service itself: their agents hand over a copy.
CREATE TABLE exports (
  dataset_id integer PRIMARY KEY REFERENCES datasets (id) ON DELETE CASCADE,
  -- Whose job asked for it first: its bytes count as theirs.
  user_id integer NOT NULL REFERENCES users (id),
  -- Whoever knows it may fetch the copy.
  secret text NOT NULL UNIQUE,
  wanted_at timestamptz(3) NOT NULL,
  -- Why no copy came, and when that was said.
  failure text CHECK (length(failure) <= 1000),
  failed_at timestamptz(3)
);

-- A file is of a run, or a copy of a dataset.
ALTER TABLE files
  ALTER COLUMN job_id DROP NOT NULL,
  ALTER COLUMN epoch DROP NOT NULL,
  ADD COLUMN dataset_id integer UNIQUE REFERENCES exports (dataset_id) ON DELETE CASCADE,
  ADD CONSTRAINT files_of CHECK ((job_id IS NULL) = (epoch IS NULL) AND (job_id IS NULL) <> (dataset_id IS NULL));
