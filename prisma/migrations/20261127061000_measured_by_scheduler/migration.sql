-- What a site's own scheduler has measured of a run.
ALTER TYPE measurement_method ADD VALUE IF NOT EXISTS 'SCHEDULER' BEFORE 'SIMULATED';
