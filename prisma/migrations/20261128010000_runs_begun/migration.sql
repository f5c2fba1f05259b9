-- What is read of the runs of sites that schedule themselves (src/store/postgres/agents.ts, waitsOfRuns) goes by when they ended. With an index on when
-- they started each start of any run was a new entry in every index of the table.
DROP INDEX runs_begun_at_site;
CREATE INDEX runs_ended_at_site ON runs (site_id, ended_at) WHERE placed_by = 'SITE' AND ended_at IS NOT NULL;
