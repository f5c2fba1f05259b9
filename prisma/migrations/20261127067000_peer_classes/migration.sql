-- Classes in which the peer takes jobs of ours, as it said when it asked last: version 3 of the peer protocol.
ALTER TABLE peers ADD COLUMN classes text[] NOT NULL DEFAULT '{}';
