-- Where a job stands in its workflow, for policies that go by ranks.
ALTER TABLE jobs ADD COLUMN workflow jsonb;
