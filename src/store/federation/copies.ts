/**
 * The guest's side: jobs of peers that we have as jobs of ours (src/federation/PROTOCOL.md), one for each offer. A copy waits and gets
 * machines as any job does; but its run is shown to no agent before its owner has granted it. It runs once at the most: whether it
 * runs again, and where, is its owner's to decide.
 */
import type { ClassUser, JobClasses } from '../../core/classes.js';
import { isTaken, type QueueLoad } from '../../core/grid-tree/index.js';
import type { JobState } from '../../core/states.js';
import { endedStates } from '../../core/states.js';
import { MAX } from '../../platform/limits.js';
import { outOfBounds } from '../bounds.js';
import { list, table } from '../columns.js';
import {
  type GrantedJob,
  kindsOfDevices,
  type Lender,
  type NewCopy,
  type Ourselves,
  type Place,
  type Told,
} from '../federation.js';
import type { GrantedFields } from '../job-fields.js';
import { commitWith, commitWithCopy, type Database, type Transaction, transaction } from '../pool.js';
import { changeJobs } from '../postgres/change-jobs.js';
import * as control from '../postgres/control.js';
import { reportRuns } from '../postgres/reports.js';
import { givenColumns } from '../postgres/submit.js';
import { usageAs, usageList } from '../postgres/usage.js';
import { labels, raw, type Sql, sql } from '../sql.js';
import { copy, row, rows, run, value } from '../statement.js';
import type { GrantedInput, NewJob, RunReport, Share } from '../store.js';
import { alikeDevices, queueHere, theirKinds, waitingFirst } from './queue.js';
import { boostHere, classesForPeer, copiedJob, isKnownHere } from './rules.js';

type Db = Pick<Database, 'pool'>;

/** What is told to a peer in one request. */
const REPORTS_PAGE = 500;
const PLACES_PAGE = 500;
/** Kinds of machines that are told to a peer. */
const KINDS_MAX = 500;
/** Waiting jobs that are counted when a peer is told of them. */
const LOAD_MAX = 100_000;
/** Machines so many services away are told of no farther: those that are gone come to an end in a circle of peers. */
const HOPS_TOLD = 8;

/**
 * The peers that this process is to talk to: those with a key that no other process has talked to for `leaseS`. They are this worker's
 * from now on, for as long as it asks again in time.
 */
export function lenders(database: Db, worker: string, leaseS: number): Promise<Lender[]> {
  return rows(
    database.pool,
    sql`
UPDATE peers p SET worker = ${worker}, worker_seen_at = clock_timestamp()
  FROM sites s WHERE s.id = p.site_id AND s.removed_at IS NULL AND p.url IS NOT NULL AND p.secret IS NOT NULL
   AND (p.worker = ${worker} OR p.worker IS NULL OR p.worker_seen_at < clock_timestamp() - make_interval(secs => ${leaseS}::float8))
RETURNING p.site_id AS "siteId", s.name, p.url, p.secret, p.cursor`,
  );
}

/** They are anybody's again. */
export const leave = (database: Db, worker: string): Promise<number> =>
  run(database.pool, sql`UPDATE peers SET worker = NULL, worker_seen_at = NULL WHERE worker = ${worker}`);

/** The user of the peer's jobs, and the classes of the policy in force; null: none. */
interface TheirClasses {
  user: Pick<ClassUser, 'name' | 'userClass'>;
  all: JobClasses | null;
}
const theirClasses = (siteId: number): Sql => sql`(
  SELECT json_build_object('user', json_build_object('name', u.name, 'userClass', u.class),
           'all', (SELECT document -> 'classes' FROM policies ORDER BY version DESC LIMIT 1))
    FROM peers p JOIN users u ON u.id = p.user_id WHERE p.site_id = ${siteId})`;
const classesOf = ({ user, all }: TheirClasses): JobClasses => classesForPeer(all, user);

/**
 * Who we are, how many more of the peer's jobs we take, in which classes, and what they could run on: here, or at peers of ours who have
 * asked us.
 */
export async function ourselves(database: Db, siteId: number): Promise<Ourselves> {
  const { their, ...rest } = await value<Omit<Ourselves, 'classes'> & { their: TheirClasses }>(
    database.pool,
    sql`
WITH own AS (
  SELECT dense_rank() OVER (ORDER BY m.site_id) AS site, os, architecture, cpus, memory_mb AS "memoryMb", max_tasks AS "maxTasks",
         count(*) AS machines, 1 AS hops,
         ARRAY(SELECT DISTINCT kind FROM licenses l
                WHERE removed_at IS NULL AND coalesce(l.site_id, m.site_id) = m.site_id ORDER BY kind)::text[] AS licenses, ${raw(alikeDevices)} AS devices
    FROM machines m JOIN sites s ON s.id = m.site_id
   WHERE m.removed_at IS NULL AND m.state = 'UP' AND s.state = 'UP' AND s.removed_at IS NULL
   GROUP BY m.site_id, os, architecture, cpus, memory_mb, max_tasks, 10
), behind AS (
  SELECT 1000 + row_number() OVER () AS site, os, architecture, cpus, "memoryMb", "maxTasks", max(k.machines) AS machines, min(k.hops) + 1 AS hops, licenses, coalesce(devices, '[]') AS devices
    FROM peers p JOIN sites s ON s.id = p.site_id,
         jsonb_to_recordset(p.kinds) AS k (os text, architecture text, cpus integer, "memoryMb" integer, "maxTasks" integer,
                                           machines integer, hops integer, licenses text[], devices jsonb)
   WHERE p.site_id <> ${siteId} AND s.removed_at IS NULL AND NOT p.isolated AND p.forward <> 'NEVER' AND k.hops < ${HOPS_TOLD}
     AND p.seen_at > clock_timestamp() - make_interval(secs => p.lost_after_s)
   GROUP BY os, architecture, cpus, "memoryMb", "maxTasks", licenses, coalesce(devices, '[]')
), kind AS (
  SELECT * FROM (SELECT * FROM own UNION ALL SELECT * FROM behind) k ORDER BY hops, machines DESC LIMIT ${KINDS_MAX}
)
SELECT json_build_object(
  'service', (SELECT id FROM service),
  'room', (SELECT CASE WHEN isolated THEN 0 ELSE greatest(0, foreign_max -
             (SELECT count(*) FROM foreign_jobs f WHERE f.site_id = p.site_id AND f.told < 2)) END FROM peers p WHERE site_id = ${siteId}),
  'kinds', (SELECT coalesce(json_agg(kind), '[]') FROM kind),
  'their', ${theirClasses(siteId)}) AS v`,
  );
  return { ...rest, classes: Object.keys(classesOf(their)) };
}

/** What a job of the peer would find here: what waits with no less boost than it would have, and the machines that are up. */
export function load(database: Db, siteId: number): Promise<QueueLoad> {
  return value(
    database.pool,
    sql`
WITH ${queueHere(waitingFirst(LOAD_MAX))}
SELECT json_build_object('ahead', count(q.id), 'work', coalesce(sum(q.all_work), 0), 'power', h.power, 'benchmark', h.benchmark) AS v
  FROM home h LEFT JOIN queue q ON q.fits_home AND q.boost >= (SELECT foreign_boost FROM peers WHERE site_id = ${siteId})
 GROUP BY h.power, h.benchmark`,
  );
}

/** The peer has answered, or why not. */
export const reached = (database: Db, siteId: number, failure: string | null): Promise<number> =>
  run(
    database.pool,
    failure === null
      ? sql`UPDATE peers SET reached_at = clock_timestamp(), failure = NULL WHERE site_id = ${siteId}`
      : sql`UPDATE peers SET failure = ${failure.slice(0, 1_000).replace(/\p{Cc}/gu, ' ')} WHERE site_id = ${siteId}`,
  );

/** We know its news up to here. */
export const advance = (database: Db, siteId: number, cursor: number): Promise<number> =>
  run(
    database.pool,
    sql`UPDATE peers SET cursor = greatest(cursor, ${cursor}::bigint) WHERE site_id = ${siteId}`,
  );

/** Where copies are of which the peer knows otherwise, oldest first: below a peer of ours, as that one says. */
export function places(database: Db, siteId: number): Promise<Place[]> {
  return rows(
    database.pool,
    sql`
WITH RECURSIVE way (id, path) AS (
  SELECT id, ARRAY[name]::text[] FROM schedulers WHERE parent_id IS NULL AND removed_at IS NULL
  UNION ALL SELECT s.id, w.path || s.name FROM schedulers s JOIN way w ON s.parent_id = w.id WHERE s.removed_at IS NULL
), copy AS (
  SELECT f.offer, f.job_id, f.path_told,
         ARRAY['root'] || coalesce(w.path, '{}') || CASE WHEN s.id IS NULL THEN '{}' ELSE ARRAY[s.name]::text[] END || coalesce(o.path, '{}') AS path
    FROM foreign_jobs f JOIN jobs j ON j.id = f.job_id LEFT JOIN sites s ON s.id = j.site_id
    LEFT JOIN way w ON w.id = coalesce(j.scheduler_id, s.scheduler_id)
    LEFT JOIN offers o ON o.job_id = j.id AND o.site_id = j.site_id
   WHERE f.site_id = ${siteId} AND f.told < 2 AND j.ended_at IS NULL
)
SELECT offer, path[1:${MAX.hops}::integer] AS path FROM copy WHERE path[1:${MAX.hops}::integer] <> path_told ORDER BY job_id LIMIT ${PLACES_PAGE}`,
  );
}

/** The peer knows that they are there. */
export const placed = (database: Db, siteId: number, known: readonly Place[]): Promise<number> =>
  run(
    database.pool,
    sql`
UPDATE foreign_jobs f SET path_told = ARRAY(SELECT jsonb_array_elements_text(t.path::jsonb)) FROM ${table(
      't',
      known,
      {
        offer: ['bigint', ({ offer }) => offer],
        path: ['text', ({ path }) => JSON.stringify(path)],
      },
    )} WHERE f.site_id = ${siteId} AND f.offer = t.offer`,
  );

/** A user as whose jobs a peer's are taken in, and how many more of them, and bytes. */
interface Host {
  id: number;
  jobs: number;
  bytes: number;
}

/**
 * Takes jobs of a peer in as jobs of the users whom the peer's are mapped to, and within what those may submit. An offer that is known is
 * left alone, whatever became of it. Answers with those that are not taken: beyond the cap or a user's share or quota, with numbers that
 * no job may have, of a class that the peer's jobs may not have here, with kinds of devices that nobody here knows, of a request that has come
 * another way and is open here, or while the peer is isolated.
 */
export function accept(
  database: Db,
  siteId: number,
  copies: readonly NewCopy[],
  share: Share,
  now: number,
): Promise<number[]> {
  return transaction(database, async (tx) => {
    const hostOf = await lockHosts(tx, siteId, copies, share, now);
    // One at a time for each peer: so the cap holds.
    const peer = await row<TakingPeer>(
      tx,
      sql`
SELECT foreign_boost AS boost,
       CASE WHEN isolated THEN 0 ELSE foreign_max - (SELECT count(*) FROM foreign_jobs f WHERE f.site_id = p.site_id AND f.told < 2) END AS room
  FROM peers p WHERE site_id = ${siteId} FOR NO KEY UPDATE`,
    );
    const known = await knownHere(tx, siteId, copies);
    const { taken, refused } = choose(copies, peer, hostOf, await alreadyHere(tx, siteId, copies), known);
    if (peer !== null && taken.length > 0)
      await insert(tx, siteId, taken, (one) => copiedJob(one, peer.boost, known.classes), now);
    return refused;
  });
}

/** The boost of the peer's jobs, and how many more of them are taken in. */
interface TakingPeer {
  boost: number;
  room: number;
}

interface KnownHere {
  classes: JobClasses;
  /** Of the devices of machines, here or behind us: schedulers keep each kind that they meet. */
  kinds: ReadonlySet<string>;
}

/** By which the copies are judged that name a class, or devices; of others nothing is looked up. */
async function knownHere(tx: Transaction, siteId: number, copies: readonly NewCopy[]): Promise<KnownHere> {
  const asked = copies.some(({ request }) => request.class !== null || kindsOfDevices(request).length > 0);
  if (!asked) return { classes: {}, kinds: new Set() };
  const { their, kinds } = await value<{ their: TheirClasses; kinds: string[] }>(
    tx,
    sql`
SELECT json_build_object('their', ${theirClasses(siteId)}, 'kinds', (
  SELECT coalesce(json_agg(DISTINCT kind), '[]') FROM (
    SELECT d ->> 'kind' AS kind FROM machines m, jsonb_array_elements(m.devices) d WHERE m.removed_at IS NULL
    UNION ALL SELECT d ->> 'kind' FROM peers p CROSS JOIN LATERAL ${raw(theirKinds)} k, jsonb_array_elements(k.devices) d WHERE p.site_id <> ${siteId}) k)) AS v`,
  );
  return { classes: classesOf(their), kinds: new Set(kinds) };
}

interface AlreadyHere {
  /** Of the copies, the offers that are known. */
  offers: number[];
  /** The requests that are open here, whichever way they came. */
  requests: string[];
}

async function alreadyHere(
  tx: Transaction,
  siteId: number,
  copies: readonly NewCopy[],
): Promise<AlreadyHere> {
  return value<AlreadyHere>(
    tx,
    sql`
SELECT json_build_object(
  'offers', (SELECT coalesce(json_agg(offer), '[]') FROM foreign_jobs
    WHERE site_id = ${siteId} AND offer = ANY (${list(
      'bigint',
      copies.map(({ offer }) => offer),
    )})),
  'requests', (SELECT coalesce(json_agg(request), '[]') FROM foreign_jobs f JOIN jobs j ON j.id = f.job_id
    WHERE f.told < 2 AND j.ended_at IS NULL AND f.request = ANY (${list(
      'text',
      copies.map(({ request }) => request.request),
    )}))) AS v`,
  );
}

/** A copy, and the user as whose job it is taken in. */
interface Taken {
  copy: NewCopy;
  userId: number;
}

/** Which of the copies are taken in, in their order, and the offers of those that are not; null: there is no such peer. */
function choose(
  copies: readonly NewCopy[],
  peer: TakingPeer | null,
  hostOf: (copy: NewCopy) => Host | null,
  { offers, requests }: AlreadyHere,
  knownHere: KnownHere,
): { taken: Taken[]; refused: number[] } {
  const known = new Set(offers);
  const open = new Set(requests);
  const refused: number[] = [];
  const taken: Taken[] = [];
  for (const one of copies) {
    if (known.has(one.offer)) continue;
    const { request, bytes } = one.request;
    const host = hostOf(one);
    const room = (peer?.room ?? 0) - taken.length;
    const fits =
      peer !== null &&
      isKnownHere(one, knownHere) &&
      outOfBounds(copiedJob(one, peer.boost, knownHere.classes)) === null;
    // Of an isolated peer there is no room.
    if (
      fits &&
      isTaken({ isolated: false, room, isKnown: open.has(request) }) &&
      host !== null &&
      host.jobs > 0 &&
      host.bytes >= bytes
    ) {
      host.jobs--;
      host.bytes -= bytes;
      taken.push({ copy: one, userId: host.id });
    } else refused.push(one.offer);
    open.add(request);
  }
  return { taken, refused };
}

async function insert(
  tx: Transaction,
  siteId: number,
  taken: readonly Taken[],
  jobOf: (copy: NewCopy) => NewJob,
  now: number,
): Promise<void> {
  const ids = await value<number[]>(
    tx,
    sql`SELECT json_agg(nextval('jobs_id_seq')) AS v FROM generate_series(1, ${taken.length}::integer)`,
  );
  const copied = taken.map(({ copy, userId }, i) => ({ ...copy, userId, id: ids[i] as number }));
  // So that quotas count them.
  await run(
    tx,
    sql`
INSERT INTO submissions (user_id, payload_hash, job_ids, job_count, at)
  SELECT user_id, 'peer', array_agg(id ORDER BY id), count(*), to_timestamp(${now}::float8) FROM ${table(
    't',
    copied,
    {
      id: ['bigint', ({ id }) => id],
      user_id: ['integer', ({ userId }) => userId],
    },
  )} GROUP BY user_id`,
  );
  await copy(
    tx,
    'foreign_jobs',
    {
      job_id: ['bigint', ({ id }: (typeof copied)[number]) => id],
      site_id: ['integer', () => siteId],
      offer: ['bigint', ({ offer }) => offer],
      owner_job_id: ['bigint', ({ jobId }) => jobId],
      owner_user: ['text', ({ request }) => request.user],
      request: ['text', ({ request }) => request.request],
      hops: ['integer', ({ request }) => request.hops],
      visited: ['text[]', ({ request }) => request.visited],
    },
    copied,
  );
  await commitWithCopy(
    tx,
    'jobs',
    {
      id: ['bigint', ({ id }: (typeof copied)[number]) => id],
      user_id: ['integer', ({ userId }) => userId],
      submitted_at: ['timestamptz', () => now],
      bytes: ['integer', ({ request }) => request.bytes],
      state: ['text', () => 'QUEUED'],
      ...givenColumns((one: (typeof copied)[number]) => jobOf(one)),
    },
    copied,
  );
}

/**
 * Locks the users as whose jobs these are taken in: those that the peer's users are mapped to, else the peer's. A job that the peer only
 * passes on is the peer's: a user of the same name elsewhere is somebody else. Answers with a function that knows of each whose it is
 * here; null: nobody's, because the user is deactivated, or has become an operator, as whom no peer acts.
 */
async function lockHosts(
  tx: Transaction,
  siteId: number,
  copies: readonly NewCopy[],
  share: Share,
  now: number,
): Promise<(copy: NewCopy) => Host | null> {
  const [common, mapped] = await value<[number, Record<string, number>]>(
    tx,
    sql`
SELECT json_build_array(p.user_id, (SELECT coalesce(json_object_agg(name, user_id), '{}') FROM peer_users u WHERE u.site_id = p.site_id)) AS v
  FROM peers p WHERE p.site_id = ${siteId}`,
  );
  const byName = new Map(Object.entries(mapped));
  const userOf = ({ request }: NewCopy): number =>
    (request.visited.length === 1 ? byName.get(request.user) : undefined) ?? common;
  const ids = list('integer', [...new Set(copies.map(userOf))]);
  await run(tx, sql`SELECT 1 FROM users WHERE id = ANY (${ids}) ORDER BY id FOR NO KEY UPDATE`);
  const found = await rows<Host & { limit: number | null; recent: number }>(
    tx,
    sql`
SELECT u.id, ${share.jobs}::float8 - coalesce(j.jobs, 0) AS jobs, ${share.bytes}::float8 - coalesce(j.bytes, 0) AS bytes, u.submission_limit AS limit,
       (SELECT coalesce(sum(job_count), 0) FROM submissions s
         WHERE s.user_id = u.id AND s.at > to_timestamp(${now}::float8) - make_interval(secs => u.submission_period_s)) AS recent
  FROM users u LEFT JOIN user_jobs j ON j.user_id = u.id
 WHERE u.id = ANY (${ids}) AND u.active AND u.role IN ('USER', 'PEER')`,
  );
  const hosts = new Map(
    found.map(({ id, jobs, bytes, limit, recent }): [number, Host] => {
      return [id, { id, jobs: limit === null ? jobs : Math.min(jobs, limit - recent), bytes }];
    }),
  );
  return (one) => hosts.get(userOf(one)) ?? null;
}

/** The owner has boosted them. */
export async function boost(
  database: Db,
  siteId: number,
  boosts: readonly { offer: number; boost: number }[],
): Promise<(number | null)[]> {
  const items = table('t', boosts, {
    offer: ['bigint', (one) => one.offer],
    boost: ['integer', (one) => one.boost],
  });
  const found = await rows<{ id: number; boost: number; more: number; is: number }>(
    database.pool,
    sql`
SELECT j.id, j.boost AS is, t.boost, p.foreign_boost AS more FROM ${items}
  JOIN foreign_jobs f ON f.site_id = ${siteId} AND f.offer = t.offer AND f.told < 2
  JOIN jobs j ON j.id = f.job_id JOIN peers p ON p.site_id = f.site_id`,
  );
  const byBoost = new Map<number, number[]>();
  for (const { id, boost, more, is } of found) {
    const wanted = boostHere(boost, more);
    if (wanted !== is) byBoost.set(wanted, [...(byBoost.get(wanted) ?? []), id]);
  }
  const touched: (number | null)[] = [];
  for (const [wanted, ids] of byBoost) {
    const outcome = await control.boost(database, { ids, ownedBy: null, limit: ids.length }, wanted);
    touched.push(...outcome.touched);
  }
  return touched;
}

/**
 * These are not to be run: those that wait end, granted runs are asked to stop. UNGRANTED: all that were not granted; ISOLATED: these, if
 * the peer is isolated. Answers with the schedulers that have something new to do.
 */
export async function withdraw(
  database: Db,
  siteId: number,
  offers: readonly number[] | 'UNGRANTED' | 'ISOLATED',
  now: number,
): Promise<(number | null)[]> {
  if (offers.length === 0) return [];
  const which =
    offers === 'UNGRANTED'
      ? sql`f.epoch IS NULL`
      : offers === 'ISOLATED'
        ? sql`f.epoch IS NULL AND EXISTS (SELECT 1 FROM peers p WHERE p.site_id = f.site_id AND p.isolated)`
        : sql`f.offer = ANY (${list('bigint', offers)})`;
  const ids = await value<number[]>(
    database.pool,
    sql`
SELECT coalesce(json_agg(f.job_id), '[]') AS v FROM foreign_jobs f JOIN jobs j ON j.id = f.job_id
 WHERE f.site_id = ${siteId} AND f.told < 2 AND ${which} AND j.state <> 'CANCELLING' AND j.ended_at IS NULL`,
  );
  if (ids.length === 0) return [];
  const outcome = await control.cancel(database, { ids, ownedBy: null, limit: ids.length }, now, 'WITHDRAWN');
  return outcome.touched;
}

/**
 * Withdraws what we still have of earlier offers of these jobs. Their owner offers them anew, so those are over; it tells that by the new
 * offer alone if we have not asked in between.
 */
export async function supersede(
  database: Db,
  siteId: number,
  copies: readonly NewCopy[],
  now: number,
): Promise<(number | null)[]> {
  const items = table('t', copies, {
    owner_job_id: ['bigint', ({ jobId }) => jobId],
    newest: ['bigint', ({ offer }) => offer],
  });
  const offers = await value<number[]>(
    database.pool,
    sql`
SELECT coalesce(json_agg(f.offer), '[]') AS v FROM foreign_jobs f JOIN ${items} USING (owner_job_id)
 WHERE f.site_id = ${siteId} AND f.told < 2 AND f.offer < t.newest`,
  );
  return withdraw(database, siteId, offers, now);
}

/** Copies that wait for their grant: they have machines. With what they said that they take. */
export function toClaim(database: Db, siteId: number): Promise<{ offer: number; bytes: number }[]> {
  return rows(
    database.pool,
    sql`
SELECT f.offer, j.bytes FROM foreign_jobs f JOIN jobs j ON j.id = f.job_id
 WHERE f.site_id = ${siteId} AND f.told < 2 AND f.epoch IS NULL AND j.state = 'ASSIGNED' ORDER BY f.job_id LIMIT ${REPORTS_PAGE}`,
  );
}

/**
 * What the owner takes for ours and is over here, for one of us was restored from a backup: nobody would ever end it. `claimed`: also those that
 * are not known.
 */
export const notHere = (
  database: Db,
  siteId: number,
  offered: readonly number[],
  claimed: readonly number[],
): Promise<number[]> =>
  value(
    database.pool,
    sql`
SELECT coalesce(json_agg(o.offer), '[]') AS v
  FROM unnest(${list('bigint', [...offered, ...claimed])}) WITH ORDINALITY AS o (offer, place)
  LEFT JOIN foreign_jobs f ON f.site_id = ${siteId} AND f.offer = o.offer
 WHERE f.told = 2 OR f.job_id IS NULL AND o.place > ${offered.length}::integer`,
  );

/** Copies that nobody has granted, of a class that the peer's jobs may not have here any more. */
export async function unclassed(database: Db, siteId: number): Promise<number[]> {
  const { their, open } = await value<{ their: TheirClasses; open: [offer: number, of: string][] }>(
    database.pool,
    sql`
SELECT json_build_object('their', ${theirClasses(siteId)}, 'open', (
  SELECT coalesce(json_agg(json_build_array(f.offer, j.class) ORDER BY f.offer), '[]') FROM foreign_jobs f JOIN jobs j ON j.id = f.job_id
   WHERE f.site_id = ${siteId} AND f.told < 2 AND f.epoch IS NULL AND j.class IS NOT NULL AND j.ended_at IS NULL AND j.state <> 'CANCELLING')) AS v`,
  );
  if (open.length === 0) return [];
  const classes = classesOf(their);
  return open.filter(([, of]) => !Object.hasOwn(classes, of)).map(([offer]) => offer);
}

/** Copies that have had machines for longer than this without a grant. */
export function unanswered(database: Db, siteId: number, patienceS: number): Promise<number[]> {
  return value(
    database.pool,
    sql`
SELECT coalesce(json_agg(f.offer), '[]') AS v
  FROM foreign_jobs f JOIN jobs j ON j.id = f.job_id JOIN runs r ON r.job_id = j.id AND r.epoch = j.epoch
 WHERE f.site_id = ${siteId} AND f.told < 2 AND f.epoch IS NULL AND j.state = 'ASSIGNED'
   AND r.assigned_at < clock_timestamp() - make_interval(secs => ${patienceS}::float8)`,
  );
}

/**
 * The owner has granted these: their agents are told. A copy that ended meanwhile is the owner's to hear of, with the epoch that it has
 * given.
 */
export function granted(
  database: Db,
  siteId: number,
  grants: readonly (GrantedJob & { offer: number })[],
): Promise<void> {
  // Two services may call different datasets alike.
  const fromPeer = (input: GrantedInput) => ({ ...input, dataset: `site_${siteId}/${input.dataset}` });
  const items = table('g', grants, {
    offer: ['bigint', ({ offer }) => offer],
    epoch: ['integer', ({ epoch }) => epoch],
    command: ['text', ({ command }) => command],
    arguments: ['text', (one) => JSON.stringify(one.arguments)],
    environment: ['text', ({ environment }) => JSON.stringify(environment)],
    working_directory: ['text', ({ workingDirectory }) => workingDirectory],
    inputs: ['text', ({ inputs }) => (inputs.length > 0 ? JSON.stringify(inputs.map(fromPeer)) : null)],
  });
  return transaction(database, async (tx) => {
    const found = await rows<{ id: number; state: JobState }>(
      tx,
      sql`
SELECT id, state FROM jobs WHERE id IN (
  SELECT job_id FROM foreign_jobs f JOIN ${items} USING (offer) WHERE f.site_id = ${siteId} AND f.epoch IS NULL)
 ORDER BY id FOR NO KEY UPDATE`,
    );
    const live = found
      .filter(({ state }) => state === 'ASSIGNED' || state === 'CANCELLING')
      .map(({ id }) => id);
    const all = found.map(({ id }) => id);
    if (all.length === 0) return;
    const told = sql`(SELECT f.job_id AS id, g.* FROM ${items} JOIN foreign_jobs f USING (offer)
      WHERE f.site_id = ${siteId} AND f.job_id = ANY (${list('bigint', live)})) AS t`;
    const settings = {
      command: sql`t.command`,
      arguments: sql`ARRAY(SELECT jsonb_array_elements_text(t.arguments::jsonb))`,
      environment: sql`t.environment::jsonb`,
      workingDirectory: sql`t.working_directory`,
    } satisfies Record<keyof GrantedFields, Sql>;
    await commitWith(tx, [
      sql`
UPDATE foreign_jobs f SET epoch = g.epoch, inputs = g.inputs::jsonb FROM ${items}
 WHERE f.site_id = ${siteId} AND f.offer = g.offer AND f.job_id = ANY (${list('bigint', all)})`,
      ...(live.length > 0 ? [changeJobs('grant', told, settings)] : []),
    ]);
  });
}

/** Ends copies with machines that were to be stopped before anybody granted them: no agent knows of them. */
export async function endUngranted(database: Db, siteId: number, now: number): Promise<(number | null)[]> {
  const found = await rows<{ jobId: number; epoch: number }>(
    database.pool,
    sql`
SELECT j.id AS "jobId", j.epoch FROM foreign_jobs f JOIN jobs j ON j.id = f.job_id
 WHERE f.site_id = ${siteId} AND f.told < 2 AND f.epoch IS NULL AND j.state = 'CANCELLING' ORDER BY j.id LIMIT ${REPORTS_PAGE}`,
  );
  const none = { exitCode: null, signal: null, cpuS: null, ioWaitS: null, stdout: null, stderr: null };
  const reports = found.map((one): RunReport => {
    return { ...one, ...none, phase: 'ENDED', at: now, cause: 'WITHDRAWN', message: null };
  });
  return (await reportRuns(database, { siteId: null, reports, maxAttempts: 1 })).touched;
}

/** Of each stream of the first task, from its beginning and from its end: a report is of the run as a whole, and has no more than 16. */
const PIECES = 4;

/** Starts and ends that the peer does not know yet, oldest jobs first; so many bytes of outputs, or one job. */
export async function toReport(database: Db, siteId: number, bytesMax: number): Promise<Told[]> {
  return rows(
    database.pool,
    sql`
WITH due AS MATERIALIZED (
  SELECT f.offer, f.owner_job_id, f.epoch, f.told, j.id AS job_id, j.epoch AS run_epoch, j.outputs IS NOT NULL AND r.started_at IS NOT NULL AS has_files, j.state, j.cause AS job_cause, j.ended_at AS over_at, j.message AS job_message,
         r.started_at, r.ended_at, r.exit_code, r.signal, r.cause, r.message, ${usageList('r.')}
    FROM foreign_jobs f JOIN jobs j ON j.id = f.job_id LEFT JOIN runs r ON r.job_id = j.id AND r.epoch = j.epoch
   WHERE f.site_id = ${siteId} AND f.told < 2 AND f.epoch IS NOT NULL AND (j.ended_at IS NOT NULL OR f.told = 0 AND r.started_at IS NOT NULL)
   ORDER BY j.id LIMIT ${REPORTS_PAGE}
), part AS MATERIALIZED (
  SELECT * FROM (
    SELECT due.*, coalesce(sum((SELECT sum(length(body)) FROM outputs o WHERE o.job_id = due.job_id AND o.epoch = due.run_epoch))
             OVER (ORDER BY due.job_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before FROM due) d
   WHERE before < ${bytesMax}
)
SELECT p.offer, p.owner_job_id AS "jobId", p.epoch, p.told, p.over_at IS NOT NULL AS over,
       CASE WHEN p.over_at IS NOT NULL AND p.has_files THEN json_build_object('jobId', p.job_id, 'epoch', p.run_epoch) END AS files,
       extract(epoch FROM p.started_at)::float8 AS "startedAt",
       extract(epoch FROM coalesce(p.ended_at, p.over_at))::float8 AS at,
       p.exit_code AS "exitCode", p.signal,
       -- Who ends a peer's job here does not decide about it: its owner does. What has not begun may run elsewhere.
       CASE WHEN p.job_cause = 'PREEMPTED' THEN 'PREEMPTED' WHEN p.state = 'CANCELLED' AND p.started_at IS NULL THEN 'MACHINE_FAILED' WHEN p.state = 'CANCELLED' THEN 'REFUSED' ELSE coalesce(p.cause, p.job_cause) END AS cause,
       coalesce(p.message, p.job_message) AS message, ${usageAs('p')},
       CASE WHEN p.over_at IS NOT NULL THEN (
         SELECT json_agg(json_build_object('stream', stream, 'start', start, 'base64', translate(encode(body, 'base64'), E'\\n', ''),
                                           'bytes', bytes) ORDER BY stream, start)
           FROM (SELECT o.*, row_number() OVER (PARTITION BY stream ORDER BY start) AS first,
                        row_number() OVER (PARTITION BY stream ORDER BY start DESC) AS last
                   FROM outputs o WHERE o.job_id = p.job_id AND o.epoch = p.run_epoch AND o.task = 0) o
          WHERE first <= ${PIECES} OR last <= ${PIECES}) END AS outputs
  FROM part p ORDER BY p.job_id`,
  );
}

/** Offers of which the owner has to hear that we gave them up, for nothing was granted. */
export function toReturn(database: Db, siteId: number): Promise<number[]> {
  return value(
    database.pool,
    sql`
SELECT coalesce(json_agg(offer), '[]') AS v FROM (
  SELECT f.offer FROM foreign_jobs f JOIN jobs j ON j.id = f.job_id
   WHERE f.site_id = ${siteId} AND f.told < 2 AND f.epoch IS NULL AND j.state IN ${labels(endedStates)} ORDER BY f.job_id LIMIT ${REPORTS_PAGE}) r`,
  );
}

/** The owner knows: 1 that it has started, 2 that it is over. */
export const told = (
  database: Db,
  siteId: number,
  offers: readonly number[],
  level: 1 | 2,
): Promise<number> =>
  run(
    database.pool,
    sql`
UPDATE foreign_jobs SET told = greatest(told, ${level}::smallint) WHERE site_id = ${siteId} AND offer = ANY (${list('bigint', offers)})`,
  );
