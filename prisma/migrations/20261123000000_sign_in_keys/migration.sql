-- Of a key that signs in once: when the key that takes its place expires. Null: when this one does.
ALTER TABLE api_keys ADD COLUMN session_expires_at timestamptz(3);
