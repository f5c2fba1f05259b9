CREATE TYPE hold_kind AS ENUM ('MAINTENANCE', 'USER', 'STANDING');
-- What is held of machines for a time, beside runs: maintenance windows and reservations.
CREATE TABLE holds (
  id serial PRIMARY KEY,
  kind hold_kind NOT NULL,
  name text,
  site_id integer NOT NULL REFERENCES sites (id),
  user_id integer NOT NULL REFERENCES users (id),
  -- [{machineId, amounts}]; amounts null: the whole machine. Null: the whole site, with machines that come later.
  machines jsonb,
  on_conflict text NOT NULL CHECK (on_conflict IN ('REFUSE', 'AFTER_JOBS')),
  reason text,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  -- Canceled, or its last time is over.
  ended_at timestamptz(3),
  -- Counts changes of its times, so that they are told.
  revision integer NOT NULL DEFAULT 0,
  CONSTRAINT holds_machines CHECK (machines IS NOT NULL OR kind = 'MAINTENANCE')
);
CREATE UNIQUE INDEX holds_name ON holds (name) WHERE ended_at IS NULL;
CREATE INDEX holds_open ON holds (site_id) WHERE ended_at IS NULL;
CREATE INDEX holds_site ON holds (site_id, id);
-- When: one row, or one for each occurrence of a standing one.
CREATE TABLE hold_times (
  id serial PRIMARY KEY,
  hold_id integer NOT NULL REFERENCES holds (id),
  from_at timestamptz(3) NOT NULL,
  -- Null: until it is ended by hand.
  to_at timestamptz(3),
  over boolean NOT NULL DEFAULT false,
  CONSTRAINT hold_times_order CHECK (to_at > from_at)
);
CREATE INDEX hold_times_open ON hold_times (hold_id, from_at) WHERE NOT over;
CREATE INDEX hold_times_due ON hold_times (to_at) WHERE NOT over;
CREATE INDEX hold_times_hold ON hold_times (hold_id, from_at);
-- CPU-hours that a user may have reserved at the site at a time; 0: users may not reserve.
ALTER TABLE sites ADD COLUMN reservable_cpu_hours integer NOT NULL DEFAULT 0 CHECK (reservable_cpu_hours >= 0);
ALTER TYPE event_kind ADD VALUE 'HOLD';
