-- E-mail about jobs. kinds: of all jobs that do not say otherwise (jobs.mail); off: unsubscribed from, whatever jobs say.
CREATE TABLE mail_settings (
  user_id integer PRIMARY KEY REFERENCES users (id),
  address text,
  kinds text[] NOT NULL DEFAULT '{}',
  off text[] NOT NULL DEFAULT '{}',
  mailed_at timestamptz(3),
  -- Why the mail server takes nothing for the address.
  problem text
);
-- What is to be told, or has been. key: what makes it one notice, however often its events are read.
CREATE TABLE mails (
  id bigserial PRIMARY KEY,
  user_id integer NOT NULL REFERENCES users (id),
  kind text NOT NULL,
  key text NOT NULL,
  job_id bigint NOT NULL,
  at timestamptz(3) NOT NULL,
  sent_at timestamptz(3)
);
CREATE UNIQUE INDEX mails_key ON mails (user_id, key);
CREATE INDEX mails_unsent ON mails (user_id, id) WHERE sent_at IS NULL;
ALTER TABLE jobs ADD COLUMN mail text[];
CREATE INDEX jobs_mail ON jobs (id) WHERE mail IS NOT NULL AND ended_at IS NULL;
-- Signs links in mails.
ALTER TABLE service ADD COLUMN secret text NOT NULL DEFAULT replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '');
