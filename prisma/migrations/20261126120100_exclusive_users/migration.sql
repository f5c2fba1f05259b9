-- A job may keep its machines from other users' jobs, and share them with its own user's.
ALTER TABLE jobs DROP CONSTRAINT jobs_exclusive_check;
ALTER TABLE jobs ADD CONSTRAINT jobs_exclusive_check CHECK (exclusive IN ('MACHINE', 'USER'));

-- As long as it is live no run of another user is on its machines.
ALTER TABLE runs ADD COLUMN keeps_machines boolean NOT NULL DEFAULT false;

-- How many such runs are on the machine: whoever starts jobs asks for users only where there are any.
ALTER TABLE machines ADD COLUMN keeping_runs integer NOT NULL DEFAULT 0;
