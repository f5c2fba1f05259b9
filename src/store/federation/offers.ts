/**
 * The owner's side: our jobs that peers may have (src/federation/PROTOCOL.md). A peer that asks is offered what waits here and it can
 * run; when it has resources for one of them it claims it. Here, under the job's lock, is decided who gets it: the job starts at the
 * peer's site with a new epoch, or it does not.
 */

import { type Forward, isForwarded, isGranted, mayGo } from '../../core/grid-tree/index.js';
import type { DispatchExplanation, JobPreference } from '../../core/model.js';
import { isLive, isPending, type JobState, pendingStates } from '../../core/states.js';
import { MAX } from '../../platform/limits.js';
import { list, table } from '../columns.js';
import {
  type Asked,
  type Claimed,
  type ClaimResult,
  charsOfInputs,
  LOAD_KEPT_S,
  OFFERS_PAGE,
  type OfferNews,
  type Place,
  type Reach,
  type Standing,
  VERSION_UNKNOWN,
} from '../federation.js';
import { type GrantedFields, grantedFields, offeredFields, only, readField } from '../job-fields.js';
import { commitWith, type Database, type Transaction, transaction } from '../pool.js';
import { changeJobs, inOrder } from '../postgres/change-jobs.js';
import { insertDecisions } from '../postgres/decisions.js';
import { reportRuns } from '../postgres/reports.js';
import { holderOf, toldEpoch } from '../rules.js';
import { labels, raw, type Sql, sql } from '../sql.js';
import { copy, row, rows, run, value } from '../statement.js';
import type { GrantedInput, RunReport } from '../store.js';
import { copiesOf, isExportable, want } from './exports.js';
import { allWork, firstVersion, fits, queueHere, theirKinds, waitingFirst } from './queue.js';
import { GRANTED_CHARS, REST_S } from './rules.js';

export type OffersDatabase = Pick<Database, 'pool'> & Reach;
type Db = OffersDatabase;

/** Of the queue, from its head: beyond it nothing is offered before those have gone. */
const LOOKED_AT = 50_000;
/** A job's inputs that are datasets in service; of those that were removed nothing is read. Needs jobs as j. */
const datasetsRead = raw(`jsonb_array_elements(j.inputs) WITH ORDINALITY AS i (input, place)
  LEFT JOIN datasets d ON d.id = (i.input->>'datasetId')::integer`);
/** Where any service could fetch a dataset d: at the hosts of everybody, of those that peers reach, and from us. */
const urlsOf = ({ dataHosts, publicUrl }: Reach): Sql => sql`(
    SELECT location, site_id FROM dataset_replicas WHERE dataset_id = d.id AND triggers.is_public(location, ${list('text', dataHosts)})
    UNION ALL ${copiesOf(publicUrl)}) r`;
/** Datasets as d: no other service could fetch it. */
const isOutOfReach = (reach: Reach): Sql => sql`NOT EXISTS (SELECT 1 FROM ${urlsOf(reach)})`;
/** All that it reads can be fetched from anywhere; what is only known at our sites, or how large it is, cannot. Needs jobs as j. */
const isFetchable = (reach: Reach): Sql => sql`(j.inputs IS NULL OR NOT EXISTS (
    SELECT 1 FROM ${datasetsRead} WHERE d.id IS NULL OR d.removed_at IS NULL AND ${isOutOfReach(reach)}))`;
/** What of it cannot be fetched yet, agents of ours could hand over. Needs jobs as j. */
const couldBeFetched = (reach: Reach, now: number): Sql =>
  reach.publicUrl === null
    ? sql`false`
    : sql`NOT EXISTS (
    SELECT 1 FROM ${datasetsRead} WHERE d.id IS NULL OR d.removed_at IS NULL AND ${isOutOfReach(reach)} AND NOT ${isExportable(now)})`;
/** Its outputs are files, not datasets of our sites. Needs jobs as j. */
const areFiles = raw(`(j.outputs IS NULL OR NOT EXISTS (
    SELECT 1 FROM jsonb_array_elements(j.outputs) AS o (output) WHERE o.output->>'dataset' IS NOT NULL))`);
/** As `GrantedInput`s; null: it reads nothing. Needs jobs as j. */
const inputsOf = (reach: Reach): Sql => sql`CASE WHEN j.inputs IS NOT NULL THEN (
    SELECT coalesce(json_agg(json_build_object('place', i.place, 'dataset', 'dataset_' || d.id, 'name', d.name, 'sizeMb', d.size_mb, 'sha256', d.sha256,
             'urls', ARRAY(SELECT r.location FROM ${urlsOf(reach)} ORDER BY r.site_id LIMIT ${MAX.sources})) ORDER BY i.place), '[]')
      FROM ${datasetsRead} WHERE d.removed_at IS NULL) END`;
/** Behind it, what others have written of jobs and offers is seen, and nobody writes more. */
const lockEvents = sql`SELECT triggers.lock_events()`;

interface Asker {
  isolated: boolean;
  forward: Forward;
  neededAfterS: number;
  hops: number;
}

/**
 * Peers are told of all that is open once more, by numbers that the database has never given out, also if it was restored from a backup: a cursor of
 * the days that were lost is behind them. Once for each API process. Numbers follow the clock in microseconds, and are given out more slowly.
 */
export const tellAgain = (database: Db): Promise<unknown> =>
  transaction(database, (tx) =>
    commitWith(tx, [
      lockEvents,
      sql`SELECT setval('offers_number', greatest(nextval('offers_number'), (extract(epoch FROM clock_timestamp()) * 1e6)::bigint))`,
      sql`UPDATE offers SET version = nextval('offers_number') WHERE NOT withdrawn`,
    ]),
  );

/** The peer lives, and is told what is new for it; more of our jobs are offered to it first, if it has room. */
export async function exchange(
  database: Db,
  siteId: number,
  asked: Asked,
  now: number,
): Promise<OfferNews[]> {
  await takeBackUnspoken(database, siteId, asked);
  const peer = await seen(database, siteId, asked, now);
  if (peer === null) return [];
  await run(
    database.pool,
    sql`DELETE FROM offers WHERE site_id = ${siteId} AND withdrawn AND version <= ${asked.after}::bigint AND again_at <= to_timestamp(${now}::float8)`,
  );
  if (asked.places.length > 0) await place(database, siteId, asked.places);
  if (!peer.isolated && peer.forward !== 'NEVER' && asked.room > 0)
    await offer(database, siteId, peer, asked, now);
  return news(database, siteId, asked.after);
}

/** What waits for the peer and it could not take as it is any more: it speaks an earlier version than before, or takes fewer classes. */
async function takeBackUnspoken(database: Db, siteId: number, { protocol, classes }: Asked): Promise<void> {
  const isNews = await value<boolean>(
    database.pool,
    sql`
SELECT coalesce((SELECT protocol > ${protocol}::integer OR NOT classes <@ ${list('text', classes)} FROM peers WHERE site_id = ${siteId}), false) AS v`,
  );
  if (!isNews) return;
  await transaction(database, (tx) =>
    commitWith(tx, [
      lockEvents,
      sql`
UPDATE offers o SET withdrawn = true, version = nextval('offers_number') FROM jobs j
 WHERE o.site_id = ${siteId} AND o.epoch IS NULL AND NOT o.withdrawn AND j.id = o.job_id
   AND (${firstVersion} > ${protocol}::integer OR j.class IS NOT NULL AND j.class <> ALL (${list('text', classes)}))`,
    ]),
  );
}

function seen(
  database: Db,
  siteId: number,
  { service, protocol, kinds, classes, load: told }: Asked,
  now: number,
): Promise<Asker | null> {
  const { ageS = 0, ...load } = told ?? {};
  return row(
    database.pool,
    sql`
UPDATE peers p SET seen_at = to_timestamp(${now}::float8), service_id = ${service}, protocol = ${protocol}, kinds = ${JSON.stringify(kinds)}::jsonb,
    classes = ${list('text', classes)}, load = ${told && JSON.stringify(load)}::jsonb, load_at = CASE WHEN ${told !== null} THEN to_timestamp(${now - ageS}::float8) END
  FROM sites s WHERE p.site_id = ${siteId} AND s.id = p.site_id AND s.removed_at IS NULL
RETURNING p.isolated, p.forward, p.needed_after_s AS "neededAfterS", p.hops`,
  );
}

function place(database: Db, siteId: number, places: readonly Place[]): Promise<unknown> {
  const items = table('t', places, {
    offer: ['bigint', ({ offer }) => offer],
    path: ['text', ({ path }) => JSON.stringify(path)],
  });
  return transaction(database, (tx) =>
    commitWith(tx, [
      lockEvents,
      sql`
UPDATE offers o SET path = ARRAY(SELECT jsonb_array_elements_text(t.path::jsonb)) FROM ${items}
 WHERE o.offer = t.offer AND o.site_id = ${siteId} AND NOT o.withdrawn`,
    ]),
  );
}

/** A waiting job that the peer could run, and what `isForwarded` asks of it. */
interface Candidate {
  id: number;
  /** All that it reads can be fetched; else what cannot, agents of ours could hand over. */
  ready: boolean;
  hops: number;
  visited: string[];
  fromPeer: boolean;
  fitsHome: boolean;
  waitedS: number;
  ahead: number;
  betweenS: number;
  workAhead: number;
  work: number;
  power: number;
  benchmark: number;
  /** What the peer was offered and does not know of. */
  unseen: number;
  unseenWork: number;
}

/**
 * Offers what waits and the peer can run, in the order of submission, as `isForwarded` decides (core/grid-tree/hybrid.ts): WHEN_NEEDED by its wait so
 * far, and that of those ahead of it at the pace of the last hour; WHEN_CHEAPER by what is ahead of it here, and there with what the peer
 * is offered before it. Peers do not know our datasets: jobs whose input data cannot be fetched by URL stay at home, until there are copies of what the peer
 * has room for. Peers' jobs go on while they have hops left, and to nobody who has seen them.
 */
async function offer(database: Db, siteId: number, asker: Asker, asked: Asked, now: number): Promise<void> {
  const { service, load } = asked;
  const found = await candidates(database, siteId, asker, asked, now);
  const there = load !== null && load.ageS <= LOAD_KEPT_S ? { ...load } : null;
  if (there !== null) {
    there.ahead += found[0]?.unseen ?? 0;
    there.work += found[0]?.unseenWork ?? 0;
  }
  const jobIds: number[] = [];
  const unready: number[] = [];
  for (const { id, ready, hops, visited, fromPeer, workAhead, work, power, benchmark, ...need } of found) {
    if (!mayGo({ hops, visited, from: fromPeer ? service : null }, service)) continue;
    const here = { ahead: need.ahead, work: workAhead, power, benchmark };
    if (!isForwarded(asker.forward, asker.neededAfterS, { ...need, work, here, there })) continue;
    (ready ? jobIds : unready).push(id);
    if (ready && there !== null) {
      there.ahead++;
      there.work += work;
    }
  }
  if (unready.length > 0) await want(database, unready, isOutOfReach(database), now);
  if (jobIds.length === 0) return;
  await transaction(database, (tx) =>
    commitWith(tx, [
      lockEvents,
      sql`
INSERT INTO offers (job_id, site_id, offer, version, again_at)
  SELECT id, ${siteId}, number, number, to_timestamp(${now}::float8)
    FROM (SELECT j.id, nextval('offers_number') AS number
            FROM jobs j JOIN peers p ON p.site_id = ${siteId} AND NOT p.isolated
           WHERE j.id = ANY (${list('bigint', jobIds)}) AND j.state IN ${labels(pendingStates)} ORDER BY j.id) n
  ON CONFLICT (job_id, site_id) DO UPDATE SET offer = excluded.offer, version = excluded.version, epoch = NULL, withdrawn = false,
    path = '{}', again_at = excluded.again_at WHERE offers.withdrawn`,
    ]),
  );
}

/**
 * Jobs of the queue and peers, as rows of a table `open`: what keeps the one from being offered to the other by what the two are (`hindrance`,
 * null: nothing), and whether it can be fetched what the job reads. What is offered and what people are told of it both follow from this.
 */
const openTo = (reach: Reach, now: number, peers: Sql): Sql => sql`open AS MATERIALIZED (
  SELECT j.*, p.site_id AS peer, p.forward, h.hops, coalesce(f.visited, '{}') AS visited, coalesce(f.site_id = p.site_id, false) AS from_peer,
         ${isFetchable(reach)} AS ready, o.withdrawn, o.epoch AS granted, o.again_at, coalesce(o.path, '{}') AS path, CASE
           WHEN p.isolated THEN 'ISOLATED'
           WHEN p.forward = 'NEVER' THEN 'NEVER'
           WHEN p.seen_at IS NULL THEN 'UNSEEN'
           WHEN j.stays THEN 'STAYS'
           WHEN NOT ${areFiles} THEN 'DATASETS'
           WHEN coalesce(p.protocol, ${VERSION_UNKNOWN}::integer) < j.first_version THEN 'OLDER'
           WHEN j.class IS NOT NULL AND j.class <> ALL (p.classes) THEN 'CLASS'
           WHEN j.state NOT IN ${labels(pendingStates)} THEN 'HELD'
           WHEN f.epoch IS NOT NULL THEN 'GRANTED'
           WHEN f.site_id = p.site_id OR p.service_id = ANY (f.visited) THEN 'VISITED'
           WHEN h.hops <= 1 THEN 'HOPS'
           WHEN o.withdrawn AND o.again_at > to_timestamp(${now}::float8) THEN 'RETURNED'
           -- Where a run of it failed it is not to be again, as long as it can be here.
           WHEN j.fits_home AND coalesce(j.avoids -> 'failed' -> 'sites' @> to_jsonb(p.site_id), false) THEN 'FAILED_THERE'
         END AS hindrance
    FROM queue j CROSS JOIN peers p LEFT JOIN foreign_jobs f ON f.job_id = j.id LEFT JOIN offers o ON o.job_id = j.id AND o.site_id = p.site_id
   CROSS JOIN LATERAL (SELECT coalesce(f.hops, p.hops) AS hops) h
   WHERE ${peers}
)`;

/** Of what waits, as many as the peer has room for, oldest first: what `isForwarded` could never let go is left out at once. */
function candidates(
  database: Db,
  siteId: number,
  { forward, neededAfterS }: Asker,
  { after, room, load }: Asked,
  now: number,
): Promise<Candidate[]> {
  const waitedS = sql`extract(epoch FROM to_timestamp(${now}::float8) - w.submitted_at)::float8`;
  const needed = {
    ALWAYS: sql`true`,
    NEVER: sql`false`,
    WHEN_NEEDED: sql`(NOT w.fits_home OR ${waitedS} + w.ahead * p.between_s > ${neededAfterS}::float8)`,
    WHEN_CHEAPER: sql`(NOT w.fits_home OR w.ahead > ${load?.ahead ?? null}::float8)`,
  }[forward];
  return rows(
    database.pool,
    sql`
WITH theirs AS MATERIALIZED (
  SELECT k.* FROM peers p CROSS JOIN LATERAL ${raw(theirKinds)} k WHERE p.site_id = ${siteId}
), ${queueHere(waitingFirst(LOOKED_AT))}, ${openTo(database, now, sql`p.site_id = ${siteId}`)}, class AS MATERIALIZED (
  SELECT c.needs, c.hops, ${fits('theirs')} AS fits
    FROM (SELECT DISTINCT ON (needs, hops) * FROM open WHERE hindrance IS NULL ORDER BY needs, hops) c
), pace AS MATERIALIZED (
  SELECT coalesce(3600.0 / nullif(sum(services), 0), 0)::float8 AS between_s FROM traffic
   WHERE at > ${now}::float8 - 3600 AND site_id NOT IN (SELECT site_id FROM peers)
), unseen AS MATERIALIZED (
  SELECT count(*)::integer AS jobs, coalesce(sum(${allWork}), 0)::float8 AS work FROM offers o JOIN jobs j ON j.id = o.job_id
   WHERE o.site_id = ${siteId} AND version > ${after}::bigint AND NOT withdrawn
)
SELECT w.id, w.ready, w.hops, w.visited, w.from_peer AS "fromPeer", w.fits_home AS "fitsHome", ${waitedS} AS "waitedS",
       w.ahead::integer AS ahead, p.between_s AS "betweenS", w.work_ahead::float8 AS "workAhead", w.work,
       h.power, h.benchmark, u.jobs AS unseen, u.work AS "unseenWork"
  FROM open w JOIN class c USING (needs, hops) CROSS JOIN pace p CROSS JOIN home h CROSS JOIN unseen u
 WHERE w.hindrance IS NULL AND w.withdrawn IS NOT false AND c.fits AND ${needed}
   AND (w.ready OR EXISTS (SELECT 1 FROM jobs j WHERE j.id = w.id AND ${couldBeFetched(database, now)}))
 ORDER BY w.ready DESC, w.id LIMIT (SELECT greatest(0, ${room}::bigint - jobs) FROM unseen)`,
  );
}

/** How a job stands with each peer. */
export function standings(database: Db, jobId: number, now: number): Promise<Standing[]> {
  const inService = sql`EXISTS (SELECT FROM sites s WHERE s.id = p.site_id AND s.removed_at IS NULL)`;
  return rows(
    database.pool,
    sql`
WITH ${queueHere(sql`id = ${jobId}::bigint`)}, ${openTo(database, now, inService)}
SELECT c.peer AS "siteId", CASE WHEN c.withdrawn THEN NULL WHEN c.granted IS NOT NULL THEN 'CLAIMED' WHEN NOT c.withdrawn THEN 'OFFERED' END AS state,
       CASE WHEN NOT c.withdrawn THEN NULL ELSE coalesce(c.hindrance, CASE
         WHEN NOT c.ready THEN 'DATA'
         WHEN NOT ${fits(theirKinds)} THEN 'UNFIT'
         WHEN c.fits_home AND c.forward = 'WHEN_NEEDED' THEN 'NOT_NEEDED'
         WHEN c.fits_home AND c.forward = 'WHEN_CHEAPER' THEN 'NOT_CHEAPER'
         ELSE 'NO_ROOM' END) END AS hindrance,
       extract(epoch FROM c.again_at)::float8 AS "againAt", c.path
  FROM open c JOIN peers p ON p.site_id = c.peer ORDER BY c.peer`,
  );
}

/** What is new for the peer behind a version, oldest first. */
async function news(database: Db, siteId: number, after: number): Promise<OfferNews[]> {
  const fields = (['bytes', ...offeredFields] as const)
    .map((field) => `'${field}', ${readField(field)}`)
    .join(', ');
  const found = await rows<OfferNews & { inputs: GrantedInput[] | null }>(
    database.pool,
    sql`
WITH new AS MATERIALIZED (
  SELECT * FROM offers WHERE site_id = ${siteId} AND version > ${after}::bigint ORDER BY version LIMIT ${OFFERS_PAGE}
)
SELECT o.offer, o.version, j.id AS "jobId", j.boost,
       CASE WHEN o.withdrawn THEN 'WITHDRAWN' WHEN o.epoch IS NOT NULL THEN 'CLAIMED' ELSE 'OFFERED' END AS state,
       NOT o.withdrawn AND o.epoch IS NOT NULL AND j.state = 'CANCELLING' AS stop,
       CASE WHEN NOT o.withdrawn AND o.epoch IS NULL THEN json_build_object(
         'request', coalesce(f.request, own.id || '/' || j.id || '/' || j.epoch + 1),
         'hops', coalesce(f.hops, p.hops) - 1,
         'visited', coalesce(f.visited, '{}') || own.id,
         'user', coalesce(f.owner_user, u.name), 'outputs', ARRAY(SELECT o->>'path' FROM jsonb_array_elements(j.outputs) o), ${raw(fields)}) END AS request,
       CASE WHEN NOT o.withdrawn AND o.epoch IS NULL THEN ${inputsOf(database)} END AS inputs
  FROM new o JOIN jobs j ON j.id = o.job_id JOIN users u ON u.id = j.user_id JOIN peers p ON p.site_id = o.site_id
  CROSS JOIN service own LEFT JOIN foreign_jobs f ON f.job_id = j.id
 ORDER BY o.version`,
  );
  return found.map(({ inputs, request, ...news }) => {
    if (request === null) return { ...news, request };
    const bytes = request.bytes + charsOfInputs(inputs ?? []);
    const preferences = request.preferences.filter((one: JobPreference) => one.siteId === undefined);
    return { ...news, request: { ...request, bytes, preferences } };
  });
}

interface ClaimedJob extends GrantedFields {
  offer: number;
  withdrawn: boolean;
  /** Of the run that was granted for the offer. */
  granted: number | null;
  isolated: boolean;
  id: number;
  state: JobState;
  siteId: number | null;
  epoch: number;
  /** When the run was granted, else when it would be: behind all that the job shows, epoch seconds. */
  assignedAt: number;
  cpusPerTask: number;
  memoryMbPerTask: number;
  estimateS: number;
  bytes: number;
  /** It is a peer's job that has not been granted to us. */
  pending: boolean;
  /** Null: nothing. */
  inputs: GrantedInput[] | null;
}

/** As `Offers.claim`: who runs the jobs is decided behind their locks. */
export function claim(
  database: Db,
  siteId: number,
  offers: readonly number[],
  now: number,
): Promise<Claimed> {
  return transaction(database, async (tx) => {
    const jobs = await lockOffered(tx, database, siteId, offers, now);
    const taken = new Map<number, ClaimedJob>();
    let chars = 0;
    const results = offers.map((one): ClaimResult => {
      const job = jobs.get(one);
      if (job === undefined) return { kind: 'REFUSED' };
      const { pending, granted } = job;
      const isNew = granted === null;
      const isOpen = !job.withdrawn && isNew && isPending(job.state) && !job.isolated;
      const isTheirs = !job.withdrawn && granted === job.epoch && isLive(job.state);
      if (!isGranted({ isOpen, isTheirs })) return { kind: 'REFUSED' };
      const inputs = job.inputs ?? [];
      const isFull = chars > GRANTED_CHARS;
      if (isNew && !isFull) taken.set(job.id, job);
      if (pending || isFull) return { kind: 'PENDING' };
      chars += job.bytes + charsOfInputs(inputs);
      const epoch = toldEpoch(granted ?? job.epoch + 1, job.assignedAt);
      return { kind: 'GRANTED', job: { ...only(job, grantedFields), epoch, inputs } };
    });
    const granted = [...taken.values()];
    if (granted.length > 0) await grant(tx, siteId, granted, now);
    return { results, touched: [...new Set(granted.map(({ state, siteId: at }) => holderOf(state, at)))] };
  });
}

/** The jobs, locked in the order of their ids, and what is behind that lock. */
async function lockOffered(
  tx: Transaction,
  reach: Reach,
  siteId: number,
  offers: readonly number[],
  now: number,
): Promise<Map<number, ClaimedJob>> {
  const which = list('bigint', offers);
  // The peer is not isolated meanwhile.
  await run(tx, sql`SELECT 1 FROM peers WHERE site_id = ${siteId} FOR SHARE`);
  await run(
    tx,
    sql`
SELECT 1 FROM jobs WHERE id IN (SELECT job_id FROM offers WHERE offer = ANY (${which}) AND site_id = ${siteId}) ORDER BY id FOR NO KEY UPDATE`,
  );
  const found = await rows<ClaimedJob>(
    tx,
    sql`
SELECT o.offer, o.withdrawn, o.epoch AS granted, p.isolated, j.id, j.state, j.site_id AS "siteId", j.epoch,
       extract(epoch FROM coalesce(r.assigned_at, date_trunc('milliseconds', ${inOrder(now)})))::float8 AS "assignedAt",
       j.cpus_per_task AS "cpusPerTask", j.memory_mb_per_task AS "memoryMbPerTask", j.estimate_s AS "estimateS", j.bytes,
       f.job_id IS NOT NULL AND f.epoch IS NULL AS pending, ${raw(grantedFields.map((field) => `${readField(field)} AS "${field}"`).join(', '))},
       coalesce(f.inputs::json, ${inputsOf(reach)}) AS inputs
  FROM offers o JOIN jobs j ON j.id = o.job_id JOIN peers p ON p.site_id = o.site_id LEFT JOIN foreign_jobs f ON f.job_id = j.id
  LEFT JOIN runs r ON r.job_id = o.job_id AND r.epoch = o.epoch
 WHERE o.offer = ANY (${which}) AND o.site_id = ${siteId}`,
  );
  return new Map(found.map((job) => [job.offer, job]));
}

/** To the peer's site and started there, from wherever they wait. */
async function grant(
  tx: Transaction,
  siteId: number,
  jobs: readonly ClaimedJob[],
  now: number,
): Promise<void> {
  const policyVersion = await value<number>(tx, sql`SELECT max(version) AS v FROM policies`);
  const back = jobs.filter(({ state }) => state === 'DISPATCHED');
  const context = { policyVersion, now, cycle: 'claim' };
  const decisions = (of: readonly ClaimedJob[], to: number | null, explanation: object = {}) =>
    of.map(({ id, siteId: from }) => {
      return { jobId: id, fromSiteId: from, siteId: to, reason: 'CLAIMED_BY_PEER', explanation };
    });
  const sites = [siteId];
  const asked: DispatchExplanation = {
    ...{ sites, candidates: sites, terms: {}, ineligible: {}, level: null, priorityTerms: null },
  };
  if (back.length > 0) await insertDecisions(tx, 'TAKE_BACK', () => context, decisions(back, null));
  await insertDecisions(tx, 'DISPATCH', () => context, decisions(jobs, siteId, asked));
  await insertDecisions(tx, 'START', () => context, decisions(jobs, siteId));
  await copy(
    tx,
    'runs',
    {
      job_id: ['bigint', ({ id }: ClaimedJob) => id],
      epoch: ['integer', ({ epoch }) => epoch + 1],
      site_id: ['integer', () => siteId],
      machine_ids: ['integer[]', () => []],
      machine_tasks: ['integer[]', () => []],
      cpus_per_task: ['integer', ({ cpusPerTask }) => cpusPerTask],
      memory_mb_per_task: ['integer', ({ memoryMbPerTask }) => memoryMbPerTask],
      license_ids: ['integer[]', () => []],
      policy_version: ['integer', () => policyVersion],
      assigned_at: ['timestamptz', ({ assignedAt }) => assignedAt],
      planned_s: ['float8', ({ estimateS }) => estimateS],
      placed_by: ['text', () => 'PEER'],
    },
    jobs,
  );
  const items = table('t', jobs, {
    id: ['bigint', ({ id }) => id],
    offer: ['bigint', ({ offer }) => offer],
    epoch: ['integer', ({ epoch }) => epoch + 1],
  });
  const dispatched = {
    siteId: sql`${siteId}::integer`,
    priority: sql`NULL`,
    dispatchedAt: inOrder(now),
  };
  await commitWith(tx, [
    lockEvents,
    ...(back.length > 0
      ? [changeJobs('takeBack', table('t', back, { id: ['bigint', ({ id }) => id] }), {})]
      : []),
    changeJobs('dispatch', items, dispatched),
    // Between the two: the trigger takes an offer whose job is not at its epoch for one that is over.
    sql`UPDATE offers o SET epoch = t.epoch, version = nextval('offers_number') FROM ${items} WHERE o.offer = t.offer`,
    changeJobs('start', items, { epoch: sql`t.epoch` }),
  ]);
}

/**
 * The peer has given these up, whether it was granted them or not: a granted run ends as MACHINE_FAILED if the peer has not
 * started it, so that it runs elsewhere, else as LOST. Answers with the schedulers that have
 * something new to do.
 */
export async function giveBack(
  database: Db,
  siteId: number,
  offers: readonly number[],
  maxAttempts: number,
  now: number,
): Promise<(number | null)[]> {
  // Behind the jobs' locks, as claims are: one that comes later finds the offer withdrawn.
  const live = await transaction(database, async (tx) => {
    const jobs = await lockOffered(tx, database, siteId, offers, now);
    const over = [...jobs.values()].filter(
      ({ granted, epoch, state }) => granted !== epoch || !isLive(state),
    );
    await commitWith(tx, [
      lockEvents,
      sql`
UPDATE offers SET withdrawn = withdrawn OR offer = ANY (${list(
        'bigint',
        over.map(({ offer }) => offer),
      )}), version = nextval('offers_number'),
    again_at = to_timestamp(${now}::float8 + ${REST_S})
 WHERE offer = ANY (${list('bigint', offers)}) AND site_id = ${siteId} AND NOT withdrawn`,
    ]);
    return [...jobs.values()].filter((job) => !over.includes(job));
  });
  const none = { exitCode: null, signal: null, cpuS: null, ioWaitS: null, stdout: null, stderr: null };
  const reports = live.map(({ id: jobId, epoch, state }): RunReport => {
    const cause = state === 'ASSIGNED' ? 'MACHINE_FAILED' : 'LOST';
    return { ...none, jobId, epoch, phase: 'ENDED', at: now, cause, message: 'the peer returned it' };
  });
  const { touched } = await reportRuns(database, { siteId, reports, maxAttempts });
  return touched;
}

/** Which of these datasets no service but ours could fetch. */
export const unfetchable = (database: Db, datasetIds: readonly number[]): Promise<number[]> =>
  value(
    database.pool,
    sql`
SELECT coalesce(json_agg(d.id), '[]') AS v FROM datasets d
 WHERE d.id = ANY (${list('integer', datasetIds)}) AND d.removed_at IS NULL AND ${isOutOfReach(database)}`,
  );

/** Nothing waits for this peer any more; what it was granted stays its own. The statements of a commit, behind the peer's lock. */
export const withdrawAll = (siteId: number): Sql[] => [
  lockEvents,
  sql`
UPDATE offers SET withdrawn = true, version = nextval('offers_number') WHERE site_id = ${siteId} AND epoch IS NULL AND NOT withdrawn`,
];
