-- Steps of runs: what `srun` started in them, as the agent reports it with the end. Rows only of runs that had any; they go with their job (triggers.jobs_deleted).
CREATE TABLE run_steps (
  job_id bigint NOT NULL,
  epoch integer NOT NULL,
  task integer NOT NULL DEFAULT 0 CHECK (task >= 0),
  number integer NOT NULL CHECK (number >= 0),
  name text NOT NULL,
  tasks integer NOT NULL CHECK (tasks >= 1),
  machines integer NOT NULL CHECK (machines >= 1),
  cpus integer NOT NULL CHECK (cpus >= 1),
  started_at timestamptz(3) NOT NULL,
  -- null: it ended with its run.
  ended_at timestamptz(3),
  exit_code integer,
  signal text,
  PRIMARY KEY (job_id, epoch, task, number)
);
