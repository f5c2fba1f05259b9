/** What time does when nobody reports it: silent machines, lost runs, exceeded limits, passed deadlines. */
import { possible } from '../../core/states.js';
import { table } from '../columns.js';
import { limitOfRun } from '../images.js';
import { commitWith, type Database, type Transaction, transaction } from '../pool.js';
import { holderOf, serviceReport } from '../rules.js';
import { raw, sql } from '../sql.js';
import { type Connection, rows } from '../statement.js';
import type { RunReport, SweepOutcome, SweepRules } from '../store.js';
import { presentSince, siteAgent, unheard } from './agents.js';
import { changeJobs } from './change-jobs.js';
import { cancelJobs, type FoundJob, isRequeued } from './control.js';
import { keepHolds } from './holds.js';
import { setSilent } from './leases.js';
import { reportRuns } from './reports.js';
import { type LostRun, lostWith } from './tasks.js';

type Db = Pick<Database, 'pool'>;

export async function sweep(database: Db, rules: SweepRules): Promise<SweepOutcome> {
  const touched = new Set<number | null>();
  /** Runs as the service finds them; those that ended meanwhile by themselves are left alone. */
  const end = async (reports: readonly RunReport[]): Promise<number> => {
    const { maxAttempts } = rules;
    const outcome = await reportRuns(database, { siteId: null, reports, maxAttempts });
    for (const scheduler of outcome.touched) touched.add(scheduler);
    return outcome.results.filter((result) => result === 'accepted').length;
  };

  let silentMachines = 0;
  let lostRuns = 0;
  const present = await presentSince(database.pool, rules.now);
  if (present !== null) {
    const silent = await silence(database, rules, present);
    silentMachines = silent.length;
    for (const { siteId } of silent) touched.add(siteId).add(null);
    const lost = await findLost(database.pool, rules, present);
    lostRuns = await end(
      lost.map(({ machine, ...run }) =>
        serviceReport(run, rules.now, 'LOST', `machine ${machine} has been silent for ${rules.lostAfterS} s`),
      ),
    );
    const elsewhere = await findLostElsewhere(database.pool, rules, present);
    lostRuns += await end(
      elsewhere.map(({ who, lostAfterS, ...run }) =>
        serviceReport(run, rules.now, 'LOST', `${who} has been silent for ${lostAfterS} s`),
      ),
    );
  }
  const over = await findOverLimit(database.pool, rules);
  const overLimit = await end(
    over.map(({ limitS, ...run }) =>
      serviceReport(run, rules.now, 'RUN_TIME_LIMIT', `it ran longer than its limit of ${limitS} s`),
    ),
  );
  const deadlinesMissed = await missDeadlines(database, rules, touched);
  await cancelIdle(database, rules, touched);
  const held = await keepHolds(database, rules, present);
  for (const siteId of held.touched) touched.add(siteId).add(null);
  const stopped = held.stopped.map(({ jobId, class: name, lostWork }) => ({ jobId, class: name, lostWork }));
  return { silentMachines, lostRuns, deadlinesMissed, overLimit, stopped, touched: [...touched] };
}

/** Machines that have just become silent, in the order of ids. */
function silence(
  database: Db,
  { now, silentAfterS, limit }: SweepRules,
  present: number,
): Promise<{ id: number; siteId: number }[]> {
  return transaction(database, async (tx) => {
    const found = await rows<{ id: number; siteId: number }>(
      tx,
      sql`
SELECT m.id, m.site_id AS "siteId" FROM machines m JOIN agents a ON a.id = m.agent_id
 WHERE m.removed_at IS NULL AND NOT m.silent AND ${unheard(present, now, silentAfterS)}
 ORDER BY m.id LIMIT ${limit} FOR NO KEY UPDATE OF m`,
    );
    const ids = found.map(({ id }) => id);
    if (ids.length > 0) await commitWith(tx, [setSilent(ids, true)]);
    return found;
  });
}

/** Live runs, or their tasks, on a machine that has been silent for too long. */
function findLost(
  connection: Connection,
  { now, lostAfterS, limit }: SweepRules,
  present: number,
): Promise<LostRun[]> {
  return rows(
    connection,
    sql`
WITH gone AS MATERIALIZED (
  SELECT m.id, m.site_id, m.name FROM machines m JOIN agents a ON a.id = m.agent_id
   WHERE m.removed_at IS NULL AND m.silent AND ${unheard(present, now, lostAfterS)}
) ${lostWith(limit)}`,
  );
}

/** Live runs that others place, a site's own scheduler or a peer, of whom nothing has been heard for too long. */
function findLostElsewhere(
  connection: Connection,
  { now, lostAfterS, limit }: SweepRules,
  present: number,
): Promise<{ jobId: number; epoch: number; who: string; lostAfterS: number }[]> {
  return rows(
    connection,
    sql`
WITH silent AS (
  SELECT s.id, false AS peer, 'the agent of site ' || s.name AS who, ${lostAfterS}::float8 AS after_s
    FROM sites s CROSS JOIN LATERAL (SELECT ${siteAgent(sql`s.id`)} AS id) h JOIN agents a ON a.id = h.id
   WHERE s.removed_at IS NULL AND ${unheard(present, now, lostAfterS)}
  UNION ALL
  SELECT s.id, true, 'peer ' || s.name, p.lost_after_s FROM peers p JOIN sites s ON s.id = p.site_id
   WHERE greatest(p.seen_at, to_timestamp(${present}::float8)) < to_timestamp(${now}::float8) - make_interval(secs => p.lost_after_s)
)
SELECT r.job_id AS "jobId", r.epoch, silent.who, silent.after_s AS "lostAfterS"
  FROM silent JOIN runs r ON r.site_id = silent.id
 WHERE r.ended_at IS NULL AND (silent.peer OR r.placed_by = 'SITE')
 ORDER BY r.job_id LIMIT ${limit}`,
  );
}

/** Runs that exceed their limit by more than the grace. */
function findOverLimit(
  connection: Connection,
  { now, runTimeGraceS, limit }: SweepRules,
): Promise<{ jobId: number; epoch: number; limitS: number }[]> {
  return rows(
    connection,
    sql`
SELECT r.job_id AS "jobId", r.epoch, ${raw(limitOfRun)} AS "limitS"
  FROM runs r JOIN jobs j ON j.id = r.job_id
 WHERE r.ended_at IS NULL AND r.started_at IS NOT NULL
   AND r.started_at < to_timestamp(${now}::float8) - make_interval(secs => ${raw(limitOfRun)} + j.kill_grace_s + ${runTimeGraceS}::float8)
   -- Who else places a run sees to it: a peer's service, or the site's scheduler; while the link is broken, nobody here knows.
   -- During an upgrade, processes of releases before this column enter runs at peers as the service's.
   AND r.placed_by = 'SERVICE' AND r.site_id NOT IN (SELECT site_id FROM peers)
 ORDER BY r.job_id LIMIT ${limit}`,
  );
}

/** Cancels or marks jobs whose deadline has passed; answers how many. */
function missDeadlines(database: Db, rules: SweepRules, touched: Set<number | null>): Promise<number> {
  return transaction(database, async (tx) => {
    const found = await lockDeadlines(tx, rules);
    const cancelled = (job: FoundJob): boolean =>
      rules.onDeadlinePassed === 'CANCEL' &&
      (possible('cancel', job.state) || possible('stop', job.state) || job.requeued);
    const ending = found.filter(cancelled);
    const recorded = found.filter((job) => !cancelled(job));
    for (const { state, siteId } of ending) touched.add(holderOf(state, siteId));
    const changes = cancelJobs(ending, 'DEADLINE_PASSED', rules.now);
    if (recorded.length > 0) {
      const items = table('t', recorded, { id: ['bigint', ({ id }) => id] });
      changes.push(changeJobs('missDeadline', items, { deadlineMissed: sql`true` }));
    }
    if (changes.length > 0) await commitWith(tx, changes);
    return found.length;
  });
}

/**
 * In the order of ids.
 *
 * An array, not a join: right after a large submission the planner still believes that hardly any job is live, and then joined
 * 5 000 ids with 100 000 jobs pair by pair (44 s).
 */
const lockDeadlines = (tx: Transaction, { now, limit }: SweepRules): Promise<FoundJob[]> =>
  rows(
    tx,
    sql`
SELECT id, state, site_id AS "siteId", ${isRequeued} AS requeued FROM jobs
 WHERE id = ANY (ARRAY(SELECT id FROM jobs WHERE deadline < to_timestamp(${now}::float8) AND ended_at IS NULL AND NOT deadline_missed
                        ORDER BY deadline LIMIT ${limit}))
   AND ended_at IS NULL AND NOT deadline_missed
 ORDER BY id FOR NO KEY UPDATE`,
  );

/** Groups that one sweep looks at. */
const IDLE_GROUPS = 100;

/**
 * Cancels what waits of groups of which nothing has run, and nothing has changed, for as long as they allow. A group is looked at once in
 * that time, so a large one that is busy costs a look at its jobs, not one every second.
 */
async function cancelIdle(
  database: Db,
  { now, limit }: SweepRules,
  touched: Set<number | null>,
): Promise<void> {
  const due = await rows<{ id: number }>(
    database.pool,
    sql`SELECT id FROM job_groups WHERE idle_at <= to_timestamp(${now}::float8) ORDER BY idle_at, id LIMIT ${IDLE_GROUPS}`,
  );
  for (const { id } of due)
    await transaction(database, async (tx) => {
      const waiting = await lockWaitingOf(tx, id, limit);
      const [next] = await rows<{ at: number | null }>(
        tx,
        sql`
UPDATE job_groups g SET idle_at = CASE
    WHEN NOT EXISTS (SELECT FROM jobs j WHERE ${ofGroup} AND j.ended_at IS NULL) THEN NULL
    WHEN EXISTS (SELECT FROM jobs j JOIN runs r ON r.job_id = j.id AND r.ended_at IS NULL WHERE ${ofGroup} AND j.ended_at IS NULL)
      THEN to_timestamp(${now}::float8 + g.idle_timeout_s)
    -- What this very sweep has canceled is no sign of life.
    ELSE (SELECT max(coalesce(j.changed_at, j.submitted_at)) + make_interval(secs => g.idle_timeout_s) FROM jobs j
           WHERE ${ofGroup} AND j.cause IS DISTINCT FROM 'IDLE_TIMEOUT') END
 WHERE g.id = ${id}::bigint
RETURNING date_part('epoch', idle_at) AS at`,
      );
      if (next === undefined || next.at === null || next.at > now || waiting.length === 0) return;
      for (const { state, siteId } of waiting) touched.add(holderOf(state, siteId));
      await commitWith(tx, cancelJobs(waiting, 'IDLE_TIMEOUT', now));
    });
}

const ofGroup = sql`j.group_id = g.id AND j.id BETWEEN g.first_job_id AND g.last_job_id`;

/** In the order of ids. */
const lockWaitingOf = (tx: Transaction, group: number, limit: number): Promise<FoundJob[]> =>
  rows(
    tx,
    sql`
SELECT j.id, j.state, j.site_id AS "siteId", ${isRequeued} AS requeued FROM job_groups g JOIN jobs j ON ${ofGroup}
 WHERE g.id = ${group}::bigint AND j.ended_at IS NULL ORDER BY j.id LIMIT ${limit} FOR NO KEY UPDATE OF j`,
  );
