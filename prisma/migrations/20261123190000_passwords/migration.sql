-- Signing in by password. Hashes only: argon2id of passwords, SHA-256 of what is random.
CREATE TABLE passwords (
  user_id integer PRIMARY KEY REFERENCES users (id),
  hash text NOT NULL CHECK (length(hash) <= 200),
  set_at timestamptz(3) NOT NULL DEFAULT now()
);
-- By which a user may set a password, once. A new one takes the place of the old.
CREATE TABLE invitations (
  user_id integer PRIMARY KEY REFERENCES users (id),
  hash text NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  expires_at timestamptz(3) NOT NULL
);
CREATE UNIQUE INDEX invitations_hash_key ON invitations (hash);
CREATE INDEX invitations_expiry ON invitations (expires_at);
-- Of people who have signed in by password. One that has ended is gone.
CREATE TABLE sessions (
  id serial PRIMARY KEY,
  user_id integer NOT NULL REFERENCES users (id),
  prefix text NOT NULL,
  hash text NOT NULL,
  address text NOT NULL CHECK (length(address) <= 100),
  agent text NOT NULL CHECK (length(agent) <= 200),
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  last_used_at timestamptz(3) NOT NULL DEFAULT now(),
  expires_at timestamptz(3) NOT NULL
);
CREATE UNIQUE INDEX sessions_prefix_key ON sessions (prefix);
CREATE INDEX sessions_user ON sessions (user_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);
