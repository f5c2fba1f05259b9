-- How long jobs lately waited at sites that schedule themselves (src/store/postgres/agents.ts, reportLoad).
CREATE INDEX runs_begun_at_site ON runs (site_id, started_at) WHERE placed_by = 'SITE';
