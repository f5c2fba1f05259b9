-- Who chooses machines and time of a run: the service, the site's own scheduler, or a peer. What a site's own scheduler says of a run: its
-- name for it, how it stands there, on which nodes it runs. And what such a site has besides.
CREATE TYPE placed_by AS ENUM ('SERVICE', 'SITE', 'PEER');
ALTER TABLE runs ADD COLUMN placed_by placed_by NOT NULL DEFAULT 'SERVICE', ADD COLUMN local_id text, ADD COLUMN local_state text,
  ADD COLUMN nodes text[] NOT NULL DEFAULT '{}';
-- Ended runs are not changed otherwise.
ALTER TABLE runs DISABLE TRIGGER USER;
UPDATE runs SET placed_by = 'PEER' WHERE site_id IN (SELECT site_id FROM peers);
ALTER TABLE runs ENABLE TRIGGER USER;
ALTER TABLE sites ADD COLUMN load jsonb, ADD COLUMN load_at timestamptz(3);
