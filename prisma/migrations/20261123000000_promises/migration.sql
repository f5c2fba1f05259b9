-- What a site's scheduler has promised to the jobs of its queue, under a policy that promises (conservative backfilling). Written by
-- site cycles only, each on top of the revision that it has read: a plan made on other promises is refused as a whole.
-- Lock order: behind machines and licenses, before whatever writes events.

CREATE TABLE promises (
  site_id integer PRIMARY KEY REFERENCES sites (id),
  revision bigint NOT NULL CHECK (revision > 0),
  -- Null: none. As src/store/images.ts has it; json and not jsonb, because it is written and read as a whole.
  body json
);
