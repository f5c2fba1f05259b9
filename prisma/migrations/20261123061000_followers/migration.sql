-- Who reads the event feed with a cursor of its own, one process at a time. cursor -1: has not begun.
CREATE TABLE followers (
  name text COLLATE "C" PRIMARY KEY,
  cursor bigint NOT NULL DEFAULT -1,
  holder text NOT NULL,
  lease_until timestamptz(3) NOT NULL
);
