/** Datasets, their replicas, and links. Locks: sites shared, then datasets by id or links by (from, to). */

/** What schedulers know of a dataset and of a link; alias v. */
export const dataset = `json_build_object('id', v.id, 'sizeMb', v.size_mb,
  'siteIds', (SELECT coalesce(json_agg(site_id ORDER BY site_id), '[]') FROM dataset_replicas WHERE dataset_id = v.id))`;
export const link = `json_build_object('fromSiteId', v.from_site_id, 'toSiteId', v.to_site_id, 'bandwidthMbPerS', v.bandwidth_mb_per_s,
  'rttS', v.rtt_s, 'loss', v.loss)`;

/** $1: sites. Answers ids of those that are in service, which stay it until the end of the transaction. */
export const shareSites = `
WITH site AS MATERIALIZED (SELECT id FROM sites WHERE id = ANY ($1::integer[]) AND removed_at IS NULL ORDER BY id FOR SHARE)
SELECT coalesce(json_agg(id), '[]')::text AS v FROM site`;

/** $1: dataset. */
export const lockDataset = 'SELECT 1 FROM datasets WHERE id = $1 FOR NO KEY UPDATE';

/** One import at a time: two that make the same names in another order would wait for each other. */
export const lockDatasets = 'LOCK TABLE datasets IN SHARE ROW EXCLUSIVE MODE';

/**
 * New datasets, and those in service of the same names with their sizes as given. Behind `lockDatasets`. $1: names, distinct; $2: sizes. Answers [created, updated, ids aligned with the names].
 */
export const upsertDatasets = `
WITH given AS MATERIALIZED (
  SELECT name, size_mb, place FROM unnest($1::text[], $2::float8[]) WITH ORDINALITY AS t (name, size_mb, place)
), known AS MATERIALIZED (
  SELECT d.id, g.size_mb, g.place FROM given g JOIN datasets d ON d.name COLLATE "C" = g.name AND d.removed_at IS NULL
   ORDER BY d.id FOR NO KEY UPDATE OF d
), made AS (
  INSERT INTO datasets (name, size_mb) SELECT name, size_mb FROM given WHERE place NOT IN (SELECT place FROM known) ORDER BY place
  RETURNING id, name
), changed AS (
  UPDATE datasets d SET size_mb = k.size_mb FROM known k WHERE d.id = k.id AND d.size_mb <> k.size_mb
)
SELECT json_build_array((SELECT count(*) FROM made), (SELECT count(*) FROM known),
  (SELECT coalesce(json_agg(id ORDER BY place), '[]') FROM (
     SELECT id, place FROM known UNION ALL SELECT made.id, g.place FROM made JOIN given g USING (name)) t))::text AS v`;

/** $1: datasets; $2: sites, aligned. Those that are there already stay. */
export const addReplicas = `
INSERT INTO dataset_replicas (dataset_id, site_id)
  SELECT DISTINCT dataset_id, site_id FROM unnest($1::integer[], $2::integer[]) AS t (dataset_id, site_id) ORDER BY 1, 2
  ON CONFLICT DO NOTHING`;

/** $1: dataset; $2: sites. */
export const removeReplicas =
  'DELETE FROM dataset_replicas WHERE dataset_id = $1 AND site_id = ANY ($2::integer[])';

/** What a site that leaves takes with it. $1: site. */
export const removeSiteReplicas = 'DELETE FROM dataset_replicas WHERE site_id = $1';
export const removeSiteLinks = 'DELETE FROM links WHERE from_site_id = $1 OR to_site_id = $1';
export const removeSiteMeasurements =
  'DELETE FROM link_measurements WHERE from_site_id = $1 OR to_site_id = $1';

/** $1: from; $2: to; $3: bandwidths; $4: round-trip times; $5: losses; $6: now. Answers the rows in the order given. */
export const putLinks = (row: string): string => `
WITH given AS MATERIALIZED (
  SELECT * FROM unnest($1::integer[], $2::integer[], $3::float8[], $4::float8[], $5::float8[]) WITH ORDINALITY
    AS t (from_site_id, to_site_id, bandwidth_mb_per_s, rtt_s, loss, place)
), put AS (
  INSERT INTO links (from_site_id, to_site_id, bandwidth_mb_per_s, rtt_s, loss, measured_at, source)
    SELECT from_site_id, to_site_id, bandwidth_mb_per_s, rtt_s, loss, to_timestamp($6::float8), 'ADMIN' FROM given ORDER BY 1, 2
    ON CONFLICT (from_site_id, to_site_id) DO UPDATE SET bandwidth_mb_per_s = excluded.bandwidth_mb_per_s, rtt_s = excluded.rtt_s,
      loss = excluded.loss, measured_at = excluded.measured_at, source = excluded.source
  RETURNING *
)
SELECT coalesce(json_agg(${row} ORDER BY given.place), '[]')::text AS v FROM put v JOIN given USING (from_site_id, to_site_id)`;

/** $1: from; $2: to. Answers the link that was there, or null. */
export const removeLink = (row: string): string => `
DELETE FROM links v WHERE from_site_id = $1 AND to_site_id = $2 RETURNING ${row}::text AS v`;

/** $1: from; $2: to. */
export const removeMeasurements = 'DELETE FROM link_measurements WHERE from_site_id = $1 AND to_site_id = $2';

/** $1: from; $2: to; $3: bandwidths; $4: round-trip times; $5: losses; $6: now. Distinct links. */
export const insertMeasurements = `
INSERT INTO link_measurements (from_site_id, to_site_id, at, bandwidth_mb_per_s, rtt_s, loss)
  SELECT from_site_id, to_site_id, to_timestamp($6::float8), bandwidth_mb_per_s, rtt_s, loss
    FROM unnest($1::integer[], $2::integer[], $3::float8[], $4::float8[], $5::float8[]) WITH ORDINALITY
      AS t (from_site_id, to_site_id, bandwidth_mb_per_s, rtt_s, loss, place) ORDER BY place`;

/**
 * Links as the mean of their last measurements, and no more measurements than are kept.
 * $1: from; $2: to, distinct; $3: now; $4: measurements in a mean; $5: kept. Answers the rows in the order given.
 */
export const measuredLinks = (row: string): string => `
WITH given AS MATERIALIZED (
  SELECT * FROM unnest($1::integer[], $2::integer[]) WITH ORDINALITY AS t (from_site_id, to_site_id, place)
), mean AS MATERIALIZED (
  SELECT g.from_site_id, g.to_site_id, avg(m.bandwidth_mb_per_s) AS bandwidth_mb_per_s, avg(m.rtt_s) AS rtt_s, avg(m.loss) AS loss
    FROM given g, LATERAL (SELECT * FROM link_measurements m WHERE m.from_site_id = g.from_site_id AND m.to_site_id = g.to_site_id
                            ORDER BY m.id DESC LIMIT $4::integer) m
   GROUP BY 1, 2
), bounded AS (
  DELETE FROM link_measurements WHERE id IN (
    SELECT m.id FROM given g, LATERAL (SELECT id FROM link_measurements m WHERE m.from_site_id = g.from_site_id AND m.to_site_id = g.to_site_id
                                        ORDER BY id DESC OFFSET $5::integer) m)
), put AS (
  INSERT INTO links (from_site_id, to_site_id, bandwidth_mb_per_s, rtt_s, loss, measured_at, source)
    SELECT from_site_id, to_site_id, bandwidth_mb_per_s, rtt_s, loss, to_timestamp($3::float8), 'AGENT' FROM mean ORDER BY 1, 2
    ON CONFLICT (from_site_id, to_site_id) DO UPDATE SET bandwidth_mb_per_s = excluded.bandwidth_mb_per_s, rtt_s = excluded.rtt_s,
      loss = excluded.loss, measured_at = excluded.measured_at, source = excluded.source
  RETURNING *
)
SELECT coalesce(json_agg(${row} ORDER BY given.place), '[]')::text AS v FROM put v JOIN given USING (from_site_id, to_site_id)`;
