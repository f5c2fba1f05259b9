-- The size of the terminal in which a job's command runs: rows and columns. Null: it has none.
ALTER TABLE jobs ADD COLUMN terminal jsonb;
