-- The image that a job runs in (null: none), and the digest of what a run has found under that name (null: it runs in none, or its agent has not said).
ALTER TABLE jobs ADD COLUMN image text;
ALTER TABLE runs ADD COLUMN image_digest text;
