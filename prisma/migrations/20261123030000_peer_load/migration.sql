-- DIANA's comparison between services: what a peer has told of its queue, and when that was so.
ALTER TYPE forwarding ADD VALUE 'WHEN_CHEAPER' BEFORE 'NEVER';
ALTER TABLE peers ADD COLUMN load jsonb, ADD COLUMN load_at timestamptz(3);
