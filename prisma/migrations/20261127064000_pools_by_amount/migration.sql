-- Pools hold amounts of anything that is counted for a site or for the grid, licenses among it. What a job asks for of them by amount, for the whole
-- job; what its runs, and what sites reserve, have of each of license_ids (null: one of each entry); and the unit of a pool's amount.
ALTER TABLE jobs ADD COLUMN resources jsonb;
ALTER TABLE runs ADD COLUMN license_amounts integer[];
ALTER TABLE reservations ADD COLUMN license_amounts integer[];
ALTER TABLE licenses ADD COLUMN unit text;
-- As jobs_licensed: few jobs have any.
CREATE INDEX jobs_pooled ON jobs (id) WHERE ended_at IS NULL AND resources IS NOT NULL;
