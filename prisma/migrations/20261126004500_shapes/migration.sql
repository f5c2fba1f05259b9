-- How many tasks of a job are on each of its machines, and whether it has them to itself.
ALTER TABLE jobs ADD COLUMN tasks_per_machine jsonb;
ALTER TABLE jobs ADD COLUMN exclusive text CHECK (exclusive IN ('MACHINE'));

-- What a run that has its machines to itself takes of them, aligned with them: all CPUs or, of those that are shared in time, all places
-- (of others: 0). Null: what its tasks ask for. So no other run is counted beside it.
ALTER TABLE runs ADD COLUMN whole_cpus integer[];
ALTER TABLE runs ADD COLUMN whole_places integer[];
ALTER TABLE runs ADD CONSTRAINT runs_whole_aligned CHECK (
  (whole_cpus IS NULL AND whole_places IS NULL)
  OR (cardinality(whole_cpus) = cardinality(machine_ids) AND cardinality(whole_places) = cardinality(machine_ids)));
