-- Groups of which nothing runs are canceled after a time. `idle_at`: when to look next, at the earliest.
ALTER TYPE end_cause ADD VALUE IF NOT EXISTS 'IDLE_TIMEOUT' AFTER 'DEADLINE_PASSED';
ALTER TABLE job_groups ADD COLUMN idle_timeout_s double precision CHECK (idle_timeout_s >= 60 AND idle_timeout_s <= 1e9);
ALTER TABLE job_groups ADD COLUMN idle_at timestamptz(3);
CREATE INDEX job_groups_idle ON job_groups (idle_at) WHERE idle_at IS NOT NULL;
