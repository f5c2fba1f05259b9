/** What waits here for machines of ours, as an owner compares it with a peer's and a guest tells it: what no machine here can run is ahead of nobody. */
import { pendingStates } from '../../core/states.js';
import { MAX } from '../../platform/limits.js';
import { stayingOfParts } from '../federation.js';
import { jobColumn, stayingFields } from '../job-fields.js';
import { labels, raw, type Sql, sql } from '../sql.js';

/** What a job is estimated to take, over all its CPUs, on one of benchmark 1. Needs jobs as j. */
export const allWork =
  raw(`(j.estimate_s * j.benchmark * CASE WHEN j.parts IS NULL THEN j.tasks * j.cpus_per_task ELSE (
  SELECT sum((p ->> 'tasks')::integer * (p ->> 'cpusPerTask')::integer) FROM jsonb_array_elements(j.parts) p) END)`);

/** Machines as k, jobs as c. */
const isAble = `coalesce(c.os = k.os, true) AND coalesce(c.architecture = k.architecture, true) AND c.licenses <@ k.licenses AND k.hops < c.hops`;
/** What a machine m has of devices, alike ones together, in one order. As `AlikeDevices`. */
export const alikeDevices = `CASE WHEN m.devices = '[]' THEN '[]' ELSE (
  SELECT jsonb_agg(jsonb_build_object('kind', d.kind, 'model', d.model, 'memoryMb', d."memoryMb", 'shares', d.shares, 'count', d.count)
                   ORDER BY d.kind COLLATE "C", d.model COLLATE "C" NULLS FIRST, d."memoryMb", d.shares)
    FROM (SELECT kind, model, "memoryMb", shares, count(*) FROM jsonb_to_recordset(m.devices) AS x (kind text, model text, "memoryMb" integer, shares integer)
           GROUP BY 1, 2, 3, 4 ORDER BY kind COLLATE "C", model COLLATE "C" NULLS FIRST, "memoryMb", shares LIMIT ${MAX.alikeDevices}) d) END`;
/** How many tasks the devices of a machine k serve, if none is in use. As a function: `mostServedBy`. */
const servedOn = (devices: string): string => `(
    SELECT min(there.items / r.count) FROM jsonb_to_recordset(${devices}) AS r (kind text, count integer, model text, "minMemoryMb" integer, share jsonb)
     CROSS JOIN LATERAL (
       SELECT coalesce(sum(d.count * CASE WHEN r.share IS NULL THEN 1 ELSE d.shares / (d.shares * (r.share ->> 'parts')::integer / (r.share ->> 'of')::integer) END), 0) AS items
         FROM jsonb_to_recordset(k.devices) AS d (kind text, model text, "memoryMb" integer, shares integer, count integer)
        WHERE d.kind = r.kind AND coalesce(d.model = r.model, r.model IS NULL) AND d."memoryMb" >= coalesce(r."minMemoryMb", 0)
          AND (r.share IS NULL OR d.shares * (r.share ->> 'parts')::integer % (r.share ->> 'of')::integer = 0)) there)`;
/** On each machine k. */
const tasksOn = (cpus: string, memoryMb: string, devices: string): string => `least(
             CASE WHEN k.max_tasks IS NULL THEN k.cpus / ${cpus} WHEN k.cpus >= ${cpus} THEN k.max_tasks ELSE 0 END,
             CASE WHEN ${memoryMb} > 0 THEN k.memory_mb / ${memoryMb} ELSE 1000000 END,
             CASE WHEN ${devices} IS NOT NULL THEN ${servedOn(devices)} END)`;

/**
 * Jobs as c, with the services that they may still go through: whether machines of the table can run them, all at one site; of several parts each,
 * and all of them by their sums. As a function: `fitsKinds`.
 */
export const fits = (kinds: string): Sql =>
  raw(`CASE WHEN c.parts IS NULL THEN EXISTS (
    SELECT 1 FROM ${kinds} k WHERE ${isAble}
     GROUP BY k.site
    HAVING sum(k.machines::numeric * ${tasksOn('c.cpus_per_task', 'c.memory_mb_per_task', 'c.devices_per_task')}) >= c.tasks)
  ELSE EXISTS (
    SELECT 1 FROM (
      SELECT k.site, bool_or(k.max_tasks IS NOT NULL) AS shared, sum(k.machines::numeric * k.cpus) AS cpus, sum(k.machines::numeric * k.memory_mb) AS memory_mb
        FROM ${kinds} k WHERE ${isAble} GROUP BY k.site) there
     WHERE (SELECT (there.shared OR sum(o.tasks::numeric * o."cpusPerTask") <= there.cpus) AND sum(o.tasks::numeric * o."memoryMbPerTask") <= there.memory_mb
                   AND bool_and(o.tasks <= (
                     SELECT sum(k.machines::numeric * ${tasksOn('o."cpusPerTask"', 'o."memoryMbPerTask"', 'o."devicesPerTask"')})
                       FROM ${kinds} k WHERE ${isAble} AND k.site = there.site))
              FROM jsonb_to_recordset(c.parts) AS o (tasks integer, "cpusPerTask" integer, "memoryMbPerTask" integer, "devicesPerTask" jsonb))) END`);

/** Amounts of no kind only say that there are devices. */
const isAsked = (field: string, value: string): string =>
  field === 'resourcesPerTask' ? `coalesce(${value} #>> '{}', '{}') <> '{}'` : `${value} IS NOT NULL`;
/** Peers would not know what it asks for. Needs jobs as j. */
const stays = raw(`(${stayingFields.map((field) => isAsked(field, `j.${jobColumn[field]}`)).join(' OR ')}
  OR j.parts IS NOT NULL AND EXISTS (SELECT FROM jsonb_array_elements(j.parts) o WHERE ${stayingOfParts.map((field) => isAsked(field, `nullif(o -> '${field}', 'null')`)).join(' OR ')}))`);
/** The first version of the protocol in which it can be offered. Needs jobs as j. As a function: `firstVersionOf`. */
export const firstVersion =
  raw(`CASE WHEN j.class IS NOT NULL OR j.devices_per_task IS NOT NULL OR j.parts IS NOT NULL AND EXISTS (
  SELECT FROM jsonb_array_elements(j.parts) o WHERE o ->> 'devicesPerTask' IS NOT NULL) THEN 3
  WHEN j.outputs IS NOT NULL OR j.parts IS NOT NULL THEN 2 ELSE 1 END`);

/** The first so many that wait. */
export const waitingFirst = (most: number): Sql =>
  sql`ended_at IS NULL AND state IN ${labels(pendingStates)} ORDER BY id LIMIT ${most}`;

/** Machines as a peer told of them. Needs peers as p. */
export const theirKinds = `(
  SELECT site, os, architecture, cpus, "memoryMb" AS memory_mb, "maxTasks" AS max_tasks, machines, hops, licenses, coalesce(devices, '[]') AS devices
    FROM jsonb_to_recordset(p.kinds)
      AS r (site integer, os text, architecture text, cpus integer, "memoryMb" integer, "maxTasks" integer, machines integer, hops integer, licenses text[], devices jsonb))`;

/**
 * Tables of a statement: `ours`, the machines that are up by kind; `home`, their power and mean benchmark; `queue`, jobs
 * that wait, or others, by class of what they need, with how many that machines here could run are ahead of each, and their work: those of more
 * boost, and the older ones of the same.
 */
export const queueHere = (which: Sql): Sql => sql`
ours AS MATERIALIZED (
  SELECT m.site_id AS site, os, architecture, cpus, memory_mb, max_tasks, ${raw(alikeDevices)} AS devices, count(*) AS machines, 0 AS hops,
         ARRAY(SELECT kind FROM licenses l WHERE removed_at IS NULL AND coalesce(l.site_id, m.site_id) = m.site_id)::text[] AS licenses,
         sum(cpus * benchmark) AS power, sum(cpus) AS all_cpus
    FROM machines m JOIN sites s ON s.id = m.site_id
   WHERE m.removed_at IS NULL AND m.state = 'UP' AND s.state = 'UP' AND s.removed_at IS NULL
   GROUP BY 1, 2, 3, 4, 5, 6, 7
), home AS MATERIALIZED (
  SELECT coalesce(sum(power), 0)::float8 AS power, coalesce(sum(power) / sum(all_cpus), 0)::float8 AS benchmark FROM ours
), waiting AS MATERIALIZED (
  SELECT id, state, boost, submitted_at, inputs, outputs, avoids, tasks, cpus_per_task, memory_mb_per_task, devices_per_task, parts, licenses, os, architecture, class, ${stays} AS stays, ${firstVersion} AS first_version,
         estimate_s * benchmark AS work, ${allWork} AS all_work,
         json_build_array(tasks, cpus_per_task, memory_mb_per_task, devices_per_task, parts, licenses, os, architecture)::text AS needs
    FROM jobs j WHERE ${which}
), able AS MATERIALIZED (
  SELECT c.needs, ${fits('ours')} AS fits_home FROM (SELECT DISTINCT ON (needs) *, 1 AS hops FROM waiting ORDER BY needs) c
), queue AS MATERIALIZED (
  SELECT w.*, a.fits_home, count(*) FILTER (WHERE a.fits_home) OVER before AS ahead,
         coalesce(sum(all_work) FILTER (WHERE a.fits_home) OVER before, 0) AS work_ahead
    FROM waiting w JOIN able a USING (needs)
  WINDOW before AS (ORDER BY boost DESC, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)`;
