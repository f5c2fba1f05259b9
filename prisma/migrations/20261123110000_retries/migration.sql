-- What becomes of a job when a run of it has ended badly: its rules (null: it says nothing of retries), counted retries made, and the machines
-- and sites that its next run is not to use. What was decided about a run, and what an event tells in words.
ALTER TABLE jobs ADD COLUMN retry jsonb, ADD COLUMN retries integer NOT NULL DEFAULT 0 CHECK (retries >= 0), ADD COLUMN avoids jsonb, ADD COLUMN note text;
ALTER TABLE runs ADD COLUMN retry jsonb;
ALTER TABLE events ADD COLUMN note text;
