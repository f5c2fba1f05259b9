-- Labels of which all machines of a job have the same values; and whether, or how long, it waits for machines on one switch.
ALTER TABLE jobs ADD COLUMN all_alike jsonb;
ALTER TABLE jobs ADD COLUMN same_switch jsonb;
