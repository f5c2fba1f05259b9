-- The longest run time limit that a site accepts, seconds; null: any.
ALTER TABLE sites ADD COLUMN max_limit_s double precision;
