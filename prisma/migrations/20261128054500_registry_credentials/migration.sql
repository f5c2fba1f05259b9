-- With what agents fetch images of a user from a registry. sealed: the password, encrypted for this user, registry and user name with the key key_id
-- (src/platform/secrets.ts).
CREATE TABLE registry_credentials (
  id serial PRIMARY KEY,
  user_id integer NOT NULL REFERENCES users (id),
  registry text NOT NULL,
  username text NOT NULL,
  sealed bytea NOT NULL,
  key_id text NOT NULL,
  set_at timestamptz(3) NOT NULL,
  last_used_at timestamptz(3)
);
CREATE UNIQUE INDEX registry_credentials_registry ON registry_credentials (user_id, registry);
