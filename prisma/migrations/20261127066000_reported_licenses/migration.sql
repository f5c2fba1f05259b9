-- Licenses that a site's own scheduler counts are pools of the site, which its agent reports.
ALTER TABLE licenses ADD COLUMN reported boolean NOT NULL DEFAULT false;
