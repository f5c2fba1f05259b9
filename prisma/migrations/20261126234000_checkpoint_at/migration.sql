-- When a run, or a task that is launched by itself, last wrote its checkpoint, as its agent tells.
ALTER TABLE runs ADD COLUMN checkpoint_at timestamptz(3);
ALTER TABLE tasks ADD COLUMN checkpoint_at timestamptz(3);
