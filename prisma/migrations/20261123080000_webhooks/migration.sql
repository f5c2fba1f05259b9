-- Where users have events of jobs sent. cursor: everything up to this event is delivered, or not to be.
CREATE TABLE webhooks (
  id serial PRIMARY KEY,
  user_id integer NOT NULL REFERENCES users (id),
  name text NOT NULL,
  url text NOT NULL,
  -- As in src/store/job-filter.ts.
  filter jsonb NOT NULL,
  -- Empty: all.
  kinds text[] NOT NULL,
  secret text NOT NULL,
  -- Signs too, until then.
  former_secret text,
  former_until timestamptz(3),
  enabled boolean NOT NULL DEFAULT true,
  -- Why the service has disabled it.
  disabled_reason text,
  -- Counts changes by people: who delivers looks again.
  version integer NOT NULL DEFAULT 1,
  cursor bigint NOT NULL,
  failures integer NOT NULL DEFAULT 0,
  failing_since timestamptz(3),
  -- Of the event that waits to be delivered again: when it happened.
  behind_since timestamptz(3),
  next_attempt_at timestamptz(3),
  delivered_at timestamptz(3),
  delivered_status integer,
  failed_at timestamptz(3),
  failed_reason text,
  created_at timestamptz(3) NOT NULL DEFAULT now()
);
CREATE INDEX webhooks_user ON webhooks (user_id);
