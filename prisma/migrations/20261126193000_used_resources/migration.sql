-- What ended runs had of kinds of resources that operators name, by hours, as `used_hours` has it of their CPUs: by site and by application
-- (and user). What a run had is added in the hour in which it begins and taken back in that in which it ends; `held_s` is what that comes to
-- in the hour itself. Only runs that had any have rows.
CREATE TABLE used_resources (
  kind used_kind NOT NULL,
  -- Its beginning, epoch seconds.
  hour bigint NOT NULL,
  user_id integer NOT NULL,
  -- The site's id, or the application.
  key text COLLATE "C" NOT NULL,
  -- The kind; of a license with `license:` before it.
  resource text COLLATE "C" NOT NULL,
  held bigint NOT NULL,
  held_s double precision NOT NULL,
  PRIMARY KEY (kind, hour, user_id, key, resource)
);

INSERT INTO used_resources (kind, hour, user_id, key, resource, held, held_s)
  SELECT k.kind, floor(side.at / 3600)::bigint * 3600, j.user_id, k.key, e.resource, sum(sign * e.amount),
         sum(sign * e.amount * (floor(side.at / 3600) * 3600 + 3600 - side.at))
    FROM runs r JOIN jobs j ON j.id = r.job_id,
         LATERAL (
           SELECT key, value::bigint * (SELECT coalesce(sum(v), 0) FROM unnest(r.machine_tasks) v) FROM jsonb_each_text(r.resources_per_task)
           UNION ALL SELECT 'license:' || l.kind, count(*) FROM unnest(r.license_ids) u (id) JOIN licenses l USING (id) GROUP BY l.kind) AS e (resource, amount),
         LATERAL (VALUES ('SITE'::used_kind, r.site_id::text), ('APPLICATION', j.application)) AS k (kind, key),
         LATERAL (VALUES (1, date_part('epoch', r.assigned_at)), (-1, date_part('epoch', r.ended_at))) AS side (sign, at)
   WHERE r.ended_at IS NOT NULL AND (r.resources_per_task IS NOT NULL OR r.license_ids <> '{}')
   GROUP BY 1, 2, 3, 4, 5;
