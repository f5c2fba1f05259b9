-- What the tasks of a job ask for that are not all alike, part by part. The other columns then have the most that any part asks for.
ALTER TABLE jobs ADD COLUMN parts jsonb;

-- What a run of such a job takes of each of its machines, aligned with them. Null: each task takes the same. Its CPUs and places are also in
-- whole_cpus and whole_places.
ALTER TABLE runs ADD COLUMN taken jsonb CHECK (taken IS NULL OR jsonb_array_length(taken) = cardinality(machine_ids));
