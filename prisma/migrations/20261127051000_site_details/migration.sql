-- Partitions, waiting jobs and requests of sites that schedule themselves; where the output of a run lies there.
ALTER TABLE sites ADD COLUMN load_details jsonb;
ALTER TABLE runs ADD COLUMN local_directory text;
