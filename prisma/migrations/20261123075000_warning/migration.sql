-- A signal some time before the run time limit, and how long a run has from SIGTERM at the limit to SIGKILL.
ALTER TABLE jobs ADD COLUMN warn_s double precision CHECK (warn_s BETWEEN 0 AND 1e9);
ALTER TABLE jobs ADD COLUMN warn_signal text NOT NULL DEFAULT 'SIGTERM'
  CHECK (warn_signal IN ('SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGALRM', 'SIGUSR1', 'SIGUSR2'));
ALTER TABLE jobs ADD COLUMN kill_grace_s double precision NOT NULL DEFAULT 30 CHECK (kill_grace_s BETWEEN 0 AND 86400);
