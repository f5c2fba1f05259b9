/** Plans of the root, and what sites give back. */
import type { Move, SiteMove, TreeMove } from '../../core/model.js';
import { type JobState, pendingStates } from '../../core/states.js';
import { list, table } from '../columns.js';
import { commitWith, type Database, LONG_MS, type Transaction, transaction } from '../pool.js';
import { RECALLED } from '../retries.js';
import { labels, type Sql, sql } from '../sql.js';
import { prepared, value } from '../statement.js';
import type { Applied, PlanContext } from '../store.js';
import { changeJobs, inOrder } from './change-jobs.js';
import { insertDecisions } from './decisions.js';
import { dropPromises } from './starts.js';

type Db = Pick<Database, 'pool'>;

// To sites ----------------------------------------------------------------------------------------------------------------

export async function applyMoves(
  database: Db,
  moves: readonly Move[],
  context: PlanContext,
): Promise<Applied> {
  if (moves.length === 0) return { accepted: [], refused: [] };
  return transaction(
    database,
    async (tx): Promise<Applied> => {
      const [up, schedulers, elsewhere] = await lockMoves(tx, moves);
      const takers = { up: new Set(up), schedulers: new Set(schedulers) };
      const { accepted, refused } = judged(moves, takers, elsewhere);
      if (accepted.length > 0) {
        await insertDecisions(tx, 'DISPATCH', () => context, accepted.map(decision));
        const local: SiteMove[] = [];
        const meta: SiteMove[] = [];
        const inTree: TreeMove[] = [];
        for (const move of accepted) {
          if (move.queue === 'SCHEDULER') inTree.push(move);
          else (move.queue === 'LOCAL' ? local : meta).push(move);
        }
        await commitWith(tx, [
          ...(local.length > 0 ? [dispatch(local, context.now)] : []),
          ...(meta.length > 0 ? [moveToMeta(meta, context.now)] : []),
          ...(inTree.length > 0 ? [moveInTree(inTree)] : []),
        ]);
      }
      return { accepted: accepted.map((move) => move.jobId), refused };
    },
    { timeoutMs: LONG_MS },
  );
}

type Elsewhere = [move: number, state: JobState | null, siteId: number | null];

/**
 * Locks the sites and schedulers (so that none can be drained or removed meanwhile) and the jobs in the order of ids, and answers only what
 * does not fit: which sites are UP, which schedulers are there, and which moves are of jobs that are elsewhere. Ten thousand moves that all fit cost one short answer.
 */
function lockMoves(
  tx: Transaction,
  moves: readonly Move[],
): Promise<[up: number[], schedulers: number[], Elsewhere[]]> {
  const sites = new Set<number>();
  const schedulers = new Set<number>();
  for (const { queue, to } of moves) {
    if (queue !== 'SCHEDULER') sites.add(to);
    else if (to !== null) schedulers.add(to);
  }
  const jobs = moves.map((move) => move.jobId);
  const items = table('m', moves, {
    id: ['bigint', (move) => move.jobId],
    from_site: ['integer', (move) => move.from],
    in_tree: ['boolean', (move) => move.queue === 'SCHEDULER'],
    scheduler: ['integer', (move) => move.to],
  });
  return value(
    tx,
    prepared(sql`
WITH site AS MATERIALIZED (
  SELECT id FROM sites WHERE id = ANY (${list('integer', [...sites])}) AND state = 'UP' AND removed_at IS NULL ORDER BY id FOR SHARE
), scheduler AS MATERIALIZED (
  SELECT id FROM schedulers WHERE id = ANY (${list('integer', [...schedulers])}) AND removed_at IS NULL ORDER BY id FOR SHARE
), job AS MATERIALIZED (
  SELECT id, state, site_id, scheduler_id FROM jobs WHERE id = ANY (${list('bigint', jobs)}) ORDER BY id FOR NO KEY UPDATE
)
SELECT json_build_array(
  (SELECT coalesce(json_agg(id), '[]') FROM site),
  (SELECT coalesce(json_agg(id), '[]') FROM scheduler),
  (SELECT coalesce(json_agg(json_build_array(m.place - 1, job.state, job.site_id)), '[]')
     FROM ${items} LEFT JOIN job USING (id)
    WHERE job.state IS DISTINCT FROM 'QUEUED' OR job.site_id IS DISTINCT FROM m.from_site
       OR m.in_tree AND job.site_id IS NULL AND job.scheduler_id IS NOT DISTINCT FROM m.scheduler)) AS v`),
  );
}

function judged(
  moves: readonly Move[],
  takers: Takers,
  elsewhere: readonly Elsewhere[],
): { accepted: Move[]; refused: Applied['refused'] } {
  const whyNot = new Map(elsewhere.map(([place, state, site]) => [place, whereabouts(state, site)]));
  const named = new Set<number>();
  const accepted: Move[] = [];
  const refused: Applied['refused'] = [];
  moves.forEach((move, place) => {
    const why =
      whyNot.get(place) ??
      whyNotTaken(move, takers) ??
      (move.queue === 'META' && move.from === move.to ? 'it is in that meta-queue' : null) ??
      (named.has(move.jobId) ? 'the plan names it twice' : null);
    if (why !== null) refused.push({ jobId: move.jobId, why });
    else {
      accepted.push(move);
      named.add(move.jobId);
    }
  });
  return { accepted, refused };
}

interface Takers {
  up: ReadonlySet<number>;
  schedulers: ReadonlySet<number>;
}

function whyNotTaken({ queue, to }: Move, { up, schedulers }: Takers): string | null {
  if (queue !== 'SCHEDULER') return up.has(to) ? null : `site ${to} is not up`;
  return to === null || schedulers.has(to) ? null : `there is no scheduler ${to}`;
}

function whereabouts(state: JobState | null, siteId: number | null): string {
  if (state === null) return 'there is no such job';
  return `the job is ${state}${siteId === null ? '' : ` at site ${siteId}`}`;
}

const decision = ({ jobId, from, to, queue, reason, explanation }: Move) => {
  return { jobId, fromSiteId: from, siteId: queue === 'SCHEDULER' ? null : to, reason, explanation };
};

function dispatch(moves: readonly SiteMove[], now: number): Sql {
  const items = table('t', moves, {
    id: ['bigint', (move) => move.jobId],
    site_id: ['integer', (move) => move.to],
    priority: ['integer', (move) => move.priority],
  });
  return changeJobs('dispatch', items, {
    siteId: sql`t.site_id`,
    priority: sql`t.priority`,
    dispatchedAt: inOrder(now),
  });
}

function moveToMeta(moves: readonly SiteMove[], now: number): Sql {
  const items = table('t', moves, {
    id: ['bigint', (move) => move.jobId],
    site_id: ['integer', (move) => move.to],
    tree_moves: ['integer', (move) => move.treeMoves ?? null],
  });
  return changeJobs('moveToMeta', items, {
    siteId: sql`t.site_id`,
    migratedAt: sql`CASE WHEN j.site_id IS NULL THEN j.migrated_at ELSE to_timestamp(${now}::float8) END`,
    treeMoves: sql`coalesce(t.tree_moves, j.tree_moves)`,
  });
}

function moveInTree(moves: readonly TreeMove[]): Sql {
  const items = table('t', moves, {
    id: ['bigint', (move) => move.jobId],
    scheduler_id: ['integer', (move) => move.to],
    tree_moves: ['integer', (move) => move.treeMoves ?? null],
  });
  return changeJobs('moveInTree', items, {
    schedulerId: sql`t.scheduler_id`,
    treeMoves: sql`coalesce(t.tree_moves, j.tree_moves)`,
  });
}

// Back to the root --------------------------------------------------------------------------------------------------------

export function takeBack(
  database: Db,
  siteId: number,
  context: PlanContext,
  limit: number,
): Promise<number[]> {
  return transaction(database, async (tx) => {
    const [state, jobIds] = await lockQueues(tx, siteId, limit);
    const reason = state === 'DRAINING' ? 'SITE_DRAINING' : 'SITE_DOWN';
    return giveBack(tx, { siteId, jobIds, reason, context });
  });
}

export async function returnJobs(
  database: Db,
  siteId: number,
  jobIds: readonly number[],
  reason: string,
  context: PlanContext,
): Promise<number[]> {
  if (jobIds.length === 0) return [];
  return transaction(database, async (tx) => {
    const found = await lockThose(tx, siteId, jobIds);
    return giveBack(tx, { siteId, jobIds: found, reason, context });
  });
}

export async function recallRuns(
  database: Db,
  siteId: number,
  jobIds: readonly number[],
  reason: string,
  context: PlanContext,
): Promise<number[]> {
  if (jobIds.length === 0) return [];
  return transaction(database, async (tx) => {
    const found = await markRecalled(tx, await lockThose(tx, siteId, jobIds, ['ASSIGNED']));
    if (found.length === 0) return [];
    const decisions = found.map((jobId) => ({
      ...{ jobId, fromSiteId: siteId, siteId: null, reason, explanation: {} },
    }));
    await insertDecisions(tx, 'TAKE_BACK', () => context, decisions);
    // Its agent is told of it by the event.
    const items = table('t', found, { id: ['bigint', (id) => id] });
    await commitWith(tx, [changeJobs('recall', items, { note: sql`${RECALLED}::text` })]);
    return found;
  });
}

/** Of locked jobs that are ASSIGNED. */
const markRecalled = (tx: Transaction, jobIds: readonly number[]): Promise<number[]> =>
  value(
    tx,
    sql`
WITH marked AS (
  UPDATE runs r SET recalled = true FROM jobs j
   WHERE j.id = ANY (${list('bigint', jobIds)}) AND r.job_id = j.id AND r.epoch = j.epoch
     AND r.placed_by = 'SITE' AND r.started_at IS NULL AND r.ended_at IS NULL AND NOT r.recalled
  RETURNING r.job_id AS id
)
SELECT coalesce(json_agg(id ORDER BY id), '[]') AS v FROM marked`,
  );

async function giveBack(
  tx: Transaction,
  {
    siteId,
    jobIds,
    reason,
    context,
  }: { siteId: number; jobIds: number[]; reason: string; context: PlanContext },
): Promise<number[]> {
  if (jobIds.length === 0) return [];
  await dropPromises(tx, [siteId], jobIds);
  const decisions = jobIds.map((jobId) => ({
    jobId,
    fromSiteId: siteId,
    siteId: null,
    reason,
    explanation: {},
  }));
  await insertDecisions(tx, 'TAKE_BACK', () => context, decisions);
  await commitWith(tx, [changeJobs('takeBack', table('t', jobIds, { id: ['bigint', (id) => id] }), {})]);
  return jobIds;
}

/** Jobs in the queues of a site that is not UP, in the order of ids, and its state; no state and no jobs when it is. */
function lockQueues(
  tx: Transaction,
  siteId: number,
  limit: number,
): Promise<[state: 'DRAINING' | 'DOWN' | null, jobIds: number[]]> {
  return value(
    tx,
    sql`
WITH site AS MATERIALIZED (
  SELECT CASE WHEN removed_at IS NULL THEN state ELSE 'DOWN' END AS state FROM sites
   WHERE id = ${siteId}::integer AND (state <> 'UP' OR removed_at IS NOT NULL) FOR SHARE
), job AS MATERIALIZED (
  SELECT id FROM jobs
   WHERE ended_at IS NULL AND state IN ${labels(pendingStates)} AND site_id = ${siteId}::integer AND EXISTS (SELECT 1 FROM site)
   ORDER BY id LIMIT ${limit} FOR NO KEY UPDATE
)
SELECT json_build_array((SELECT state FROM site), (SELECT coalesce(json_agg(id ORDER BY id), '[]') FROM job)) AS v`,
  );
}

/** Those of the jobs that are in the queues of the site (or in other states there), in the order of ids. */
function lockThose(
  tx: Transaction,
  siteId: number,
  jobIds: readonly number[],
  states: readonly JobState[] = pendingStates,
): Promise<number[]> {
  return value(
    tx,
    sql`
WITH job AS MATERIALIZED (
  SELECT id FROM jobs
   WHERE id = ANY (${list('bigint', jobIds)}) AND state IN ${labels(states)} AND site_id = ${siteId}::integer
   ORDER BY id FOR NO KEY UPDATE
)
SELECT coalesce(json_agg(id ORDER BY id), '[]') AS v FROM job`,
  );
}
