-- The run waits with its site's own scheduler, and is wanted back: it ends there before it begins, or is left to run.
ALTER TABLE runs ADD COLUMN recalled boolean NOT NULL DEFAULT false;
