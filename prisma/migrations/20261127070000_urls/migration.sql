-- Files that agents fetch from URLs before a job starts, and that they send to URLs when its command has succeeded; null: none.
ALTER TABLE jobs ADD COLUMN downloads jsonb, ADD COLUMN uploads jsonb;
