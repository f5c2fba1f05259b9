-- On which terms the own scheduler of a site is to take a job: its partition, account, QOS. null: as the site's operator has it.
ALTER TABLE jobs ADD COLUMN site_terms jsonb;
