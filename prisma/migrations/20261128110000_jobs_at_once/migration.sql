-- How many of the jobs with which it was changed run at once, as was asked last (src/store/lanes.ts).
ALTER TABLE jobs ADD COLUMN at_once integer;
