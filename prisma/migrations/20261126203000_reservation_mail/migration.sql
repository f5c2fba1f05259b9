-- Owners of reservations are told what becomes of them, unless they choose otherwise.
ALTER TABLE mail_settings ALTER COLUMN kinds SET DEFAULT '{RESERVATION}';
UPDATE mail_settings SET kinds = kinds || '{RESERVATION}';
-- A notice is about a job, or about a reservation, of which it says what has happened.
ALTER TABLE mails ALTER COLUMN job_id DROP NOT NULL;
ALTER TABLE mails ADD COLUMN hold_id integer, ADD COLUMN note text;
ALTER TABLE mails ADD CONSTRAINT mails_about_one CHECK ((job_id IS NULL) <> (hold_id IS NULL) AND (hold_id IS NULL) = (note IS NULL));
-- Machines of a reservation that are lost and not replaced, of which its owner has been told.
ALTER TABLE holds ADD COLUMN short_of integer[] NOT NULL DEFAULT '{}';
