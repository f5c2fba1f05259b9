-- Jobs that wait for others, or for a time.
ALTER TYPE job_state ADD VALUE 'BLOCKED' AFTER 'QUEUED';
ALTER TYPE end_cause ADD VALUE 'DEPENDENCY_FAILED';
