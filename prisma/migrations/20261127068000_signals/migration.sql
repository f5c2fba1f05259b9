-- Signals that people have sent to a live run, the last ones, in order; null: none.
ALTER TABLE runs ADD COLUMN signals jsonb;
