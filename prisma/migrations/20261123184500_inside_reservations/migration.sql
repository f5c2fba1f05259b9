-- The reservation in which a job runs: no foreign key, for holds are forgotten once they have ended.
ALTER TABLE jobs ADD COLUMN reservation_id integer;
CREATE INDEX jobs_reservation ON jobs (reservation_id) WHERE reservation_id IS NOT NULL;
