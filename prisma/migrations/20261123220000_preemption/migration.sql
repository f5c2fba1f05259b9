-- Jobs of a higher preemption class have runs of lower ones stopped for them.
ALTER TYPE end_cause ADD VALUE 'PREEMPTED';
ALTER TYPE decision_kind ADD VALUE 'PREEMPT';
ALTER TABLE jobs ADD COLUMN preemption_class integer NOT NULL DEFAULT 0 CHECK (preemption_class BETWEEN 0 AND 9),
  -- Room that was made for it: site, instant, machines.
  ADD COLUMN promised jsonb,
  -- For whom its run is stopped.
  ADD COLUMN preempted jsonb;
