-- The version of the peer protocol that the peer spoke when it asked last; null: it has not asked since this column is there.
ALTER TABLE peers ADD COLUMN protocol integer;
