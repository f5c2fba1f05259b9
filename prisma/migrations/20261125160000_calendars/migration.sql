-- Times that come again by a rule: {rrule, timeZone, from, lengthS, except, also}; null: hold_times are all there will be.
ALTER TABLE holds
  ADD COLUMN recurrence jsonb,
  -- When times were made by it last.
  ADD COLUMN made_at timestamptz(3) NOT NULL DEFAULT now(),
  -- Nothing of it was running for so long: the rest of a time is given back. Seconds; null: never.
  ADD COLUMN idle_s integer CHECK (idle_s > 0),
  -- Who may run jobs in it besides its user.
  ADD COLUMN user_ids integer[] NOT NULL DEFAULT '{}',
  DROP CONSTRAINT holds_on_conflict_check,
  ADD CONSTRAINT holds_on_conflict_check CHECK (on_conflict IN ('REFUSE', 'AFTER_JOBS', 'PREEMPT'));
