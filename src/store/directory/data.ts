/** Datasets, their replicas, and links. Locks: sites shared, then datasets by id or links by (from, to). */
import type { Link } from '../../core/model.js';
import { MAX } from '../../platform/limits.js';
import { table } from '../columns.js';
import { MEASUREMENTS_KEPT } from '../constants.js';
import { isServed, type RunOfAgent } from '../files.js';
import { datasetRow, withSites } from '../queries.js';
import { instant } from '../read-rows.js';
import type { DatasetRow, LinkRow } from '../rows.js';
import { isMeant } from '../rules.js';
import { type Sql, sql } from '../sql.js';
import {
  type Actor,
  type Change,
  type Changes,
  conflict,
  firstRepeated,
  inService,
  Refusal,
  shareSites,
  type Transaction,
  unique,
} from './changes.js';

/** A file, or files that go together, with copies at sites. */
export interface NewDataset {
  name: string;
  sizeMb: number;
  /** In hexadecimal; null: not known. */
  sha256?: string | null;
  /** Sites with a replica. */
  siteIds: readonly number[];
  /** Where some of them are. */
  locations?: readonly ReplicaLocation[];
}

export interface ReplicaLocation {
  siteId: number;
  location: string;
}

/** A site that has a replica, and where; null: as it was known. */
interface Replica extends Omit<ReplicaLocation, 'location'> {
  datasetId: number;
  location: string | null;
}

/** How far an agent is with bringing a run its inputs. Times are epoch seconds. */
export interface StagingReport {
  jobId: number;
  epoch: number;
  /** As of RunReport. */
  token: string | null;
  beganAt: number;
  endedAt: number | null;
  totalMb: number;
  movedMb: number;
  /** Counts where the run has no report yet. */
  predictedS: number;
  error: string | null;
}

/** Measurements of a link that make up its values. */
const MEASUREMENTS_AVERAGED = 5;

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: each change is a short function
export const dataChanges = (change: Changes) => ({
  createDataset({ name, sizeMb, sha256 = null, siteIds, locations = [] }: NewDataset, actor: Actor) {
    return change(actor, 'createDataset', async (tx, note): Promise<DatasetRow> => {
      await shareSites(tx, sitesOf(siteIds, locations));
      const { id } = await unique(`there is already a dataset named ${name}`, () =>
        tx.dataset.create({ data: { name, sizeMb, sha256 }, select: { id: true } }),
      );
      await addReplicas(tx, replicas(id, siteIds, locations));
      const after = await datasetOf(tx, id);
      await note(`dataset_${id}`, null, after);
      return after;
    });
  },

  /** What is absent stays. */
  updateDataset(id: number, given: Partial<Pick<NewDataset, 'name' | 'sizeMb' | 'sha256'>>, actor: Actor) {
    return change(actor, 'updateDataset', async (tx, note): Promise<DatasetRow> => {
      const before = await lockDataset(tx, id);
      const after = datasetRow(
        await unique(`there is already a dataset named ${given.name}`, () =>
          tx.dataset.update({ where: { id }, data: given, ...withSites }),
        ),
      );
      await note(`dataset_${id}`, before, after);
      return after;
    });
  },

  /** Jobs that still name it read nothing from then on. */
  removeDataset(id: number, now: number, actor: Actor) {
    return change(actor, 'removeDataset', async (tx, note): Promise<DatasetRow> => {
      const before = await lockDataset(tx, id);
      await removeReplicas(tx, id, before.siteIds);
      const after = datasetRow(
        await tx.dataset.update({ where: { id }, data: { removedAt: instant(now) }, ...withSites }),
      );
      await note(`dataset_${id}`, before, after);
      return after;
    });
  },

  /** Copies appear at sites, and go; adding one that is there, or removing one that is not, changes nothing. */
  setReplicas(
    id: number,
    {
      add: named = [],
      locations = [],
      remove = [],
    }: { add?: readonly number[]; locations?: readonly ReplicaLocation[]; remove?: readonly number[] },
    actor: Actor,
  ) {
    return change(actor, 'setReplicas', async (tx, note): Promise<DatasetRow> => {
      const add = sitesOf(named, locations);
      const both = add.find((siteId) => remove.includes(siteId));
      if (both !== undefined) throw conflict(`site ${both} is in both add and remove`);
      await shareSites(tx, add);
      const before = await lockDataset(tx, id);
      await removeReplicas(tx, id, remove);
      await addReplicas(tx, replicas(id, add, locations));
      const after = await datasetOf(tx, id);
      await note(`dataset_${id}`, before, after);
      return after;
    });
  },

  /**
   * Creates what is new by its name; what is there gets the size given, and the replicas beside those it has. All or none. Names are
   * distinct, and there are at most `MAX.datasetsImported` of them.
   */
  importDatasets(datasets: readonly NewDataset[], actor: Actor): Promise<Change<Imported>> {
    if (datasets.length > MAX.datasetsImported)
      throw new RangeError(
        `datasets has ${datasets.length} entries; accepted: up to ${MAX.datasetsImported}`,
      );
    return change(actor, 'importDatasets', async (tx, note): Promise<Imported> => {
      const twice = firstRepeated(datasets.map(({ name }) => name));
      if (twice !== null) throw conflict(`dataset ${twice} is given twice`);
      await shareSites(tx, [
        ...new Set(datasets.flatMap(({ siteIds, locations }) => sitesOf(siteIds, locations))),
      ]);
      const { created, updated, datasetIds } = await upsertDatasets(tx, datasets);
      await addReplicas(
        tx,
        datasets.flatMap(({ siteIds, locations }, i) =>
          replicas(datasetIds[i] as number, siteIds, locations),
        ),
      );
      await note('datasets', null, { created, updated });
      return { created, updated, datasetIds };
    });
  },

  /** What is known of links is replaced. Each at most once. In the order given. */
  setLinks(links: readonly Link[], now: number, actor: Actor) {
    return change(actor, 'setLinks', async (tx, note): Promise<LinkRow[]> => {
      await shareEnds(tx, links);
      const after = await putLinks(tx, sql`SELECT * FROM ${linkTable(links)}`, { now, source: 'ADMIN' });
      await note('links', null, links);
      return after;
    });
  },

  /** Its measurements go with it. */
  removeLink(fromSiteId: number, toSiteId: number, actor: Actor) {
    return change(actor, 'removeLink', async (tx, note): Promise<LinkRow> => {
      const ends = { fromSiteId, toSiteId };
      await tx.linkMeasurement.deleteMany({ where: ends });
      const [before] = await tx.$queryRaw<LinkRow[]>(
        sql`DELETE FROM links WHERE from_site_id = ${fromSiteId} AND to_site_id = ${toSiteId} RETURNING ${linkColumns}`,
      );
      if (before === undefined)
        throw new Refusal('NOT_FOUND', `there is no link from site ${fromSiteId} to site ${toSiteId}`);
      await note(`link_${fromSiteId}_${toSiteId}`, before, null);
      return before;
    });
  },

  /**
   * An agent has measured links to its site. Each link's values become the mean of its last measurements, whoever set it before.
   * Each link at most once. In the order given; nothing is written to the audit log.
   */
  reportLinks(siteId: number, measurements: readonly Omit<Link, 'toSiteId'>[], now: number) {
    const links = measurements.map((measurement) => ({ ...measurement, toSiteId: siteId }));
    return change({ userId: null, requestId: null }, 'reportLinks', async (tx): Promise<LinkRow[]> => {
      await shareEnds(tx, links);
      await tx.linkMeasurement.createMany({ data: links.map((link) => ({ ...link, at: instant(now) })) });
      await boundMeasurements(tx, links);
      return putLinks(tx, meanOfMeasurements(links), { now, source: 'AGENT' });
    });
  },

  /**
   * An output of a run at a site becomes the dataset that its job names, with a replica there. One that is a dataset already, of another
   * run of the job perhaps, is the same. Of `run`: it goes on, with its first task on a machine of the agent.
   */
  keepDataset(
    { siteId, agentId, jobId, epoch, token }: RunOfAgent,
    {
      name,
      sizeMb,
      sha256,
      location,
    }: { name: string; sizeMb: number; sha256: string | null; location: string },
    actor: Actor,
  ) {
    return change(actor, 'keepDataset', async (tx, note): Promise<DatasetRow> => {
      await shareSites(tx, [siteId]);
      const [run] = await tx.$queryRaw<{ userId: number; named: boolean; assignedAt: number }[]>(sql`
SELECT j.user_id AS "userId", extract(epoch FROM r.assigned_at)::float8 AS "assignedAt", EXISTS (SELECT FROM jsonb_array_elements(j.outputs) o WHERE o ->> 'dataset' = ${name}) AS named
  FROM runs r JOIN jobs j ON j.id = r.job_id WHERE r.job_id = ${jobId}::bigint AND r.epoch = ${epoch} AND ${isServed(siteId, agentId, sql`0`)}`);
      if (!run?.named || !isMeant(token, run.assignedAt))
        throw new Refusal('NOT_FOUND', `the agent has no run whose job names a dataset ${name}`);
      // One at a time, so that the count is right and names are taken once.
      await tx.$executeRaw(sql`LOCK TABLE datasets IN SHARE ROW EXCLUSIVE MODE`);
      const there = await tx.dataset.findFirst({ where: { name, removedAt: null }, ...withSites });
      if (there !== null && there.jobId !== BigInt(jobId))
        throw conflict(`there is already another dataset named ${name}`);
      if (there === null) {
        const [{ count }] = await tx.$queryRaw<[{ count: number }]>(sql`
SELECT count(*)::integer AS count FROM datasets d JOIN jobs j ON j.id = d.job_id WHERE d.removed_at IS NULL AND j.user_id = ${run.userId}`);
        if (count >= MAX.userDatasets)
          throw new Refusal(
            'LIMIT_EXCEEDED',
            `this user already has ${count} output datasets; accepted: up to ${MAX.userDatasets}`,
          );
      }
      const data = { name, sizeMb, sha256, jobId: BigInt(jobId) };
      const { id } = there
        ? await tx.dataset.update({ where: { id: there.id }, data, select: { id: true } })
        : await tx.dataset.create({ data, select: { id: true } });
      // What another run of the job has left elsewhere may differ.
      if (there)
        await removeReplicas(
          tx,
          id,
          there.replicas.map((replica) => replica.siteId),
        );
      await addReplicas(tx, [{ datasetId: id, siteId, location }]);
      const after = await datasetOf(tx, id);
      await note(`dataset_${id}`, there && datasetRow(there), after);
      return after;
    });
  },

  /** How far inputs have been brought to runs at a site; a later report takes the place of an earlier one. Answers the runs that there are. */
  reportStagings(siteId: number, reports: readonly StagingReport[]) {
    return change({ userId: null, requestId: null }, 'reportStagings', (tx) =>
      tx.$queryRaw<{ jobId: number; epoch: number }[]>(sql`
INSERT INTO stagings (job_id, epoch, began_at, ended_at, total_mb, moved_mb, predicted_s, error)
  SELECT t.job_id, t.epoch, to_timestamp(t.began_at), to_timestamp(t.ended_at), t.total_mb, t.moved_mb, t.predicted_s, t.error
    FROM ${table('t', reports, {
      job_id: ['bigint', (report) => report.jobId],
      epoch: ['integer', (report) => report.epoch],
      token: ['text', (report) => report.token],
      began_at: ['float8', (report) => report.beganAt],
      ended_at: ['float8', (report) => report.endedAt],
      total_mb: ['float8', (report) => report.totalMb],
      moved_mb: ['float8', (report) => report.movedMb],
      predicted_s: ['float8', (report) => report.predictedS],
      error: ['text', (report) => report.error],
    })} JOIN runs r ON r.job_id = t.job_id AND r.epoch = t.epoch AND r.site_id = ${siteId}
   -- As isMeant says.
   WHERE t.token IS NULL OR t.token = (extract(epoch FROM r.assigned_at) * 1e6)::bigint::text
   ORDER BY 1, 2
  ON CONFLICT (job_id, epoch) DO UPDATE SET began_at = excluded.began_at, ended_at = excluded.ended_at, total_mb = excluded.total_mb,
    moved_mb = excluded.moved_mb, error = excluded.error
  RETURNING job_id::float8 AS "jobId", epoch`),
    );
  },
});

// Datasets ------------------------------------------------------------------------------------------------------------------

export interface Imported {
  created: number;
  updated: number;
  /** Aligned with what was given. */
  datasetIds: number[];
}

async function lockDataset(tx: Transaction, id: number): Promise<DatasetRow> {
  await tx.$queryRaw(sql`SELECT 1 FROM datasets WHERE id = ${id} FOR NO KEY UPDATE`);
  return datasetRow(inService('dataset', id, await tx.dataset.findUnique({ where: { id }, ...withSites })));
}

const datasetOf = async (tx: Transaction, id: number): Promise<DatasetRow> =>
  datasetRow(await tx.dataset.findUniqueOrThrow({ where: { id }, ...withSites }));

const sitesOf = (siteIds: readonly number[], locations: readonly ReplicaLocation[] = []): number[] => [
  ...new Set([...siteIds, ...locations.map(({ siteId }) => siteId)]),
];

function replicas(
  datasetId: number,
  siteIds: readonly number[],
  locations: readonly ReplicaLocation[] = [],
): Replica[] {
  const known = new Map(locations.map(({ siteId, location }) => [siteId, location]));
  return sitesOf(siteIds, locations).map((siteId) => ({
    datasetId,
    siteId,
    location: known.get(siteId) ?? null,
  }));
}

/** Those that are there already stay; where they are is renewed. */
const addReplicas = (tx: Transaction, replicas: readonly Replica[]): Promise<unknown> =>
  tx.$executeRaw(sql`
INSERT INTO dataset_replicas AS r (dataset_id, site_id, location)
  SELECT dataset_id, site_id, location
    FROM ${table('t', replicas, {
      dataset_id: ['integer', ({ datasetId }) => datasetId],
      site_id: ['integer', ({ siteId }) => siteId],
      location: ['text', ({ location }) => location],
    })}
   ORDER BY 1, 2
  ON CONFLICT (dataset_id, site_id) DO UPDATE SET location = excluded.location
    WHERE excluded.location IS NOT NULL AND excluded.location IS DISTINCT FROM r.location`);

const removeReplicas = (tx: Transaction, datasetId: number, siteIds: readonly number[]): Promise<unknown> =>
  tx.datasetReplica.deleteMany({ where: { datasetId, siteId: { in: [...siteIds] } } });

async function upsertDatasets(tx: Transaction, datasets: readonly NewDataset[]): Promise<Imported> {
  // One import at a time: two that make the same names in another order would wait for each other.
  await tx.$executeRaw(sql`LOCK TABLE datasets IN SHARE ROW EXCLUSIVE MODE`);
  const given = table('g', datasets, {
    name: ['text', ({ name }) => name],
    size_mb: ['float8', ({ sizeMb }) => sizeMb],
    sha256: ['text', ({ sha256 }) => sha256 ?? null],
  });
  const [answer] = await tx.$queryRaw<[{ v: Imported }]>(sql`
WITH given AS MATERIALIZED (
  SELECT * FROM ${given}
), known AS MATERIALIZED (
  SELECT d.id, g.size_mb, g.sha256, g.place FROM given g JOIN datasets d ON d.name = g.name AND d.removed_at IS NULL
   ORDER BY d.id FOR NO KEY UPDATE OF d
), made AS (
  INSERT INTO datasets (name, size_mb, sha256) SELECT name, size_mb, sha256 FROM given WHERE place NOT IN (SELECT place FROM known) ORDER BY place
  RETURNING id, name
), changed AS (
  UPDATE datasets d SET size_mb = k.size_mb, sha256 = coalesce(k.sha256, CASE WHEN d.size_mb = k.size_mb THEN d.sha256 END)
    FROM known k WHERE d.id = k.id AND (d.size_mb <> k.size_mb OR k.sha256 <> d.sha256 OR d.sha256 IS NULL AND k.sha256 IS NOT NULL)
)
SELECT json_build_object('created', (SELECT count(*) FROM made), 'updated', (SELECT count(*) FROM known),
  'datasetIds', (SELECT coalesce(json_agg(id ORDER BY place), '[]') FROM (
     SELECT id, place FROM known UNION ALL SELECT made.id, g.place FROM made JOIN given g USING (name)) t)) AS v`);
  return answer.v;
}

// Links -----------------------------------------------------------------------------------------------------------------------

/** Each link once, between two sites that are in service and stay it meanwhile. */
async function shareEnds(tx: Transaction, links: readonly Link[]): Promise<void> {
  const twice = firstRepeated(links.map(({ fromSiteId, toSiteId }) => `${fromSiteId} to site ${toSiteId}`));
  if (twice !== null) throw conflict(`the link from site ${twice} is given twice`);
  const inside = links.find(({ fromSiteId, toSiteId }) => fromSiteId === toSiteId);
  if (inside !== undefined)
    throw conflict(`a link connects two different sites: both ends are site ${inside.toSiteId}`);
  await shareSites(tx, [...new Set(links.flatMap(({ fromSiteId, toSiteId }) => [fromSiteId, toSiteId]))]);
}

const linkTable = (links: readonly Link[]): Sql =>
  table('g', links, {
    from_site_id: ['integer', (link) => link.fromSiteId],
    to_site_id: ['integer', (link) => link.toSiteId],
    bandwidth_mb_per_s: ['float8', (link) => link.bandwidthMbPerS],
    rtt_s: ['float8', (link) => link.rttS],
    loss: ['float8', (link) => link.loss],
  });

/** A LinkRow. */
const linkColumns = sql`from_site_id AS "fromSiteId", to_site_id AS "toSiteId", bandwidth_mb_per_s AS "bandwidthMbPerS",
  rtt_s AS "rttS", loss, extract(epoch FROM measured_at)::float8 AS "measuredAt", source`;

/** `given`: links with their place. Answers them in the order of places. */
function putLinks(
  tx: Transaction,
  given: Sql,
  { now, source }: { now: number; source: 'ADMIN' | 'AGENT' },
): Promise<LinkRow[]> {
  return tx.$queryRaw(sql`
WITH given AS MATERIALIZED (
  ${given}
), put AS (
  INSERT INTO links (from_site_id, to_site_id, bandwidth_mb_per_s, rtt_s, loss, measured_at, source)
    SELECT from_site_id, to_site_id, bandwidth_mb_per_s, rtt_s, loss, to_timestamp(${now}::float8), ${source}::link_source
      FROM given ORDER BY 1, 2
    ON CONFLICT (from_site_id, to_site_id) DO UPDATE SET bandwidth_mb_per_s = excluded.bandwidth_mb_per_s, rtt_s = excluded.rtt_s,
      loss = excluded.loss, measured_at = excluded.measured_at, source = excluded.source
  RETURNING *
)
SELECT ${linkColumns} FROM (SELECT put.*, given.place FROM put JOIN given USING (from_site_id, to_site_id)) v ORDER BY place`);
}

/** Each link as the mean of its last measurements. */
const meanOfMeasurements = (links: readonly Link[]): Sql => sql`
  SELECT g.from_site_id, g.to_site_id, g.place, avg(m.bandwidth_mb_per_s) AS bandwidth_mb_per_s, avg(m.rtt_s) AS rtt_s, avg(m.loss) AS loss
    FROM ${linkTable(links)},
      LATERAL (SELECT * FROM link_measurements m WHERE m.from_site_id = g.from_site_id AND m.to_site_id = g.to_site_id
                ORDER BY m.id DESC LIMIT ${MEASUREMENTS_AVERAGED}) m
   GROUP BY 1, 2, 3`;

/** No more measurements than are kept. */
const boundMeasurements = (tx: Transaction, links: readonly Link[]): Promise<unknown> =>
  tx.$executeRaw(sql`
DELETE FROM link_measurements WHERE id IN (
  SELECT m.id FROM ${linkTable(links)},
    LATERAL (SELECT id FROM link_measurements m WHERE m.from_site_id = g.from_site_id AND m.to_site_id = g.to_site_id
              ORDER BY id DESC OFFSET ${MEASUREMENTS_KEPT}) m)`);
