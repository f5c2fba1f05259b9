-- What the runs of a job leave to the next: {path, signal}.
ALTER TABLE jobs ADD COLUMN checkpoint jsonb CHECK (jsonb_typeof(checkpoint) = 'object');
