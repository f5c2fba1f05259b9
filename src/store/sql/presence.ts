/** $1: site; $2: now. The site's agent is there. */
export const seeAgent = `UPDATE sites SET agent_seen_at = to_timestamp($2::float8) WHERE id = $1 AND removed_at IS NULL`;

/**
 * Locks the machines in the order of ids (a multi-row UPDATE locks in the order of its plan), and updates their heartbeats: a column
 * that neither an index nor a trigger watches.
 * $1: site; $2: machines; $3: now. Answers those that were silent.
 */
export const seeMachines = `
WITH seen AS MATERIALIZED (
  SELECT id, silent FROM machines WHERE site_id = $1 AND id = ANY ($2::integer[]) AND removed_at IS NULL ORDER BY id FOR NO KEY UPDATE
), beaten AS (
  UPDATE machines m SET heartbeat_at = greatest(m.heartbeat_at, to_timestamp($3::float8)) FROM seen WHERE m.id = seen.id
)
SELECT coalesce(json_agg(id), '[]')::text AS v FROM seen WHERE silent`;

/** $1: machines; $2: silent or not. Writes an event for each. */
export const setSilent = `UPDATE machines SET silent = $2 WHERE id = ANY ($1::integer[])`;

/** After a gap of $4 seconds a process counts as new. $1: id; $2: kind; $3: now. */
export const seeProcess = `
INSERT INTO processes AS p (id, kind, since, seen_at) VALUES ($1, $2, to_timestamp($3::float8), to_timestamp($3::float8))
  ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, seen_at = excluded.seen_at,
    since = CASE WHEN p.seen_at < excluded.seen_at - make_interval(secs => $4::float8) THEN excluded.since ELSE p.since END`;
