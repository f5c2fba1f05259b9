ALTER TYPE end_cause ADD VALUE 'INPUT_MISMATCH' AFTER 'STAGING_FAILED';

-- When the job changed last, by events that are in order whatever the clock of the database does.
ALTER TABLE jobs ADD COLUMN changed_at timestamptz(3);

-- Whether a machine's power is what its agent measures; otherwise somebody has set it.
ALTER TABLE machines ADD COLUMN power_measured boolean NOT NULL DEFAULT false;
