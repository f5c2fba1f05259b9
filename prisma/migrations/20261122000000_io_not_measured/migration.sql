-- A run whose input and output nobody measured is a point of the series that says so; until one was measured there is no ratio.
ALTER TABLE job_ratios ALTER COLUMN io_s DROP NOT NULL;
ALTER TABLE job_ratios ALTER COLUMN computation DROP NOT NULL;
ALTER TABLE job_ratios DROP CONSTRAINT job_ratios_runs_check;
ALTER TABLE job_ratios ADD CONSTRAINT job_ratios_runs_check CHECK (runs >= 0 AND (runs > 0) = (computation IS NOT NULL));
