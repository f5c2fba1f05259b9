/** Jobs that wait for others, or for a time: their submission, and what becomes of them. */
import type { JobInput } from '../../core/model.js';
import type { NeedCondition, OnUnmet } from '../../core/needs/model.js';
import { Outcome } from '../../core/needs/outcome.js';
import { list, table } from '../columns.js';
import { NEEDS_LOCK } from '../constants.js';
import { keptOutputs, outputKey } from '../files.js';
import { readField } from '../job-fields.js';
import {
  type AgainOf,
  type BlockedJob,
  decided,
  type GroupTarget,
  type JobWait,
  type KeptOf,
  keyOf,
  type MemberFacts,
  type NeedsDecision,
  type NeedTarget,
  type NeedTerm,
  outcomeOf,
  type RunAgain,
  stored,
  type TargetKey,
  targetsOf,
  unmetMessage,
  verdictOf,
  waits,
} from '../needs.js';
import { commitWith, type Database, LONG_MS, type Transaction, transaction } from '../pool.js';
import { empty, raw, type Sql, sql } from '../sql.js';
import { type Connection, copy, prepared, rows, run, value } from '../statement.js';
import type { NeedsNews, NeedsOutcome, NewJob } from '../store.js';
import { changeJobs } from './change-jobs.js';

// Submission --------------------------------------------------------------------------------------------------------------

/**
 * Writes what the jobs of a submission wait for, and keeps what they need from being deleted: its rows are locked against retention until
 * the edges are committed, which keep it from then on. Answers with jobs that are gone already.
 */
export async function insertNeeds(
  tx: Transaction,
  {
    jobs,
    jobIds,
    userId,
    now,
  }: { jobs: readonly NewJob[]; jobIds: readonly number[]; userId: number; now: number },
): Promise<number[]> {
  const asked = jobs.flatMap(({ wait }, i) =>
    waits(wait, now) ? [{ id: jobIds[i] as number, ...wait, needs: stored(wait.needs, jobIds) }] : [],
  );
  if (asked.length === 0) return [];
  // A rerun cannot concern what nobody knows yet: the submission's own jobs.
  const own = new Set(jobIds);
  const named = othersAmong(asked, own);
  if (named.size > 0) await run(tx, sql`SELECT pg_advisory_xact_lock_shared(${NEEDS_LOCK}::bigint)`);
  const againOf = await runAgain(tx, [...named.values()], userId);
  const waiting =
    againOf === undefined
      ? asked
      : asked.map((wait) => ({ ...wait, needs: stored(wait.needs, jobIds, againOf) }));
  const targets = againOf === undefined ? named : othersAmong(waiting, own);
  const missing = await keepNeeded(tx, [...targets.values()], userId);
  if (missing.length > 0) return missing;
  await insertWaits(
    tx,
    waiting.map((wait) => ({ ...wait, dueAt: wait.needs.length === 0 ? wait.notBefore : null })),
    userId,
  );
  return [];
}

/** What they need besides these jobs. */
function othersAmong(
  waiting: readonly Pick<JobWait, 'needs'>[],
  own: ReadonlySet<number>,
): Map<TargetKey, NeedTarget> {
  const others = new Map<TargetKey, NeedTarget>();
  for (const { needs } of waiting)
    for (const { of } of needs)
      for (const term of of) if (!('job' in term && own.has(term.job))) others.set(keyOf(term), term);
  return others;
}

/** What jobs wait for, and its edges. `userId`: whose group names they mean. */
export async function insertWaits(
  tx: Transaction,
  waiting: readonly (Omit<JobWait, 'because'> & { id: number })[],
  userId: number,
): Promise<void> {
  await copy(
    tx,
    'job_needs',
    {
      job_id: ['bigint', ({ id }) => id],
      needs: ['jsonb', ({ needs }) => needs],
      on_unmet: ['text', ({ onUnmet }) => onUnmet],
      not_before: ['timestamptz', ({ notBefore }) => notBefore],
      due_at: ['timestamptz', ({ dueAt }) => dueAt],
    },
    waiting,
  );
  await copy(
    tx,
    'need_edges',
    {
      job_id: ['bigint', ({ id }) => id],
      on_job: ['bigint', ({ target }) => ('job' in target ? target.job : null)],
      on_group: ['bigint', ({ target }) => ('jobGroup' in target ? target.jobGroup : null)],
      on_user: ['integer', ({ target }) => ('group' in target ? userId : null)],
      on_name: ['text', ({ target }) => ('group' in target ? target.group : null)],
    },
    edgesOf(waiting),
  );
}

function* edgesOf(
  waiting: readonly (Pick<JobWait, 'needs'> & { id: number })[],
): Generator<{ id: number; target: NeedTarget }> {
  for (const { id, needs } of waiting)
    for (const one of targetsOf(needs).values()) for (const target of namedBy(one)) yield { id, target };
}

/** What a target is found by: copies of a bulk group's members are in groups of their own; others have its name. */
const namedBy = (target: NeedTarget): NeedTarget[] =>
  'jobGroup' in target
    ? [target, ...(target.again?.groups ?? []).map((jobGroup) => ({ jobGroup }))]
    : [target];

/** How members of these groups have been run again; undefined: none has been. Behind the lock of needs, which reruns take too. */
export async function runAgain(
  connection: Connection,
  targets: readonly NeedTarget[],
  userId: number,
): Promise<AgainOf | undefined> {
  const groups = targets.filter(
    (target): target is GroupTarget => !('job' in target) && target.again === undefined,
  );
  if (groups.length === 0) return undefined;
  const found = await rows<RunAgain & { place: number }>(
    connection,
    sql`
WITH RECURSIVE named AS MATERIALIZED (SELECT * FROM ${table('t', groups, {
      job_group: ['bigint', (group) => ('jobGroup' in group ? group.jobGroup : null)],
      name: ['text', (group) => ('group' in group ? group.group : null)],
    })}), copy (place, id, group_id) AS (
  SELECT m.place, k.id, k.group_id FROM (
    SELECT t.place, j.id FROM named t JOIN job_groups g ON g.id = t.job_group JOIN jobs j ON j.id BETWEEN g.first_job_id AND g.last_job_id AND j.group_id = g.id
    UNION ALL
    SELECT t.place, j.id FROM named t JOIN jobs j ON j.group_name = t.name AND j.user_id = ${userId}::integer) m
  JOIN jobs k ON k.rerun_of = m.id AND k.rerun_of IS NOT NULL
  UNION
  SELECT c.place, k.id, k.group_id FROM copy c JOIN jobs k ON k.rerun_of = c.id
) SELECT place, max(id) AS "asOf", json_agg(DISTINCT group_id) AS groups FROM copy GROUP BY place`,
  );
  if (found.length === 0) return undefined;
  const known = new Map(
    found.map(({ place, ...again }) => [keyOf(groups[Number(place) - 1] as GroupTarget), again]),
  );
  return (group) => known.get(keyOf(group));
}

/** Locks what is needed against retention. Answers with jobs that are gone already. */
export async function keepNeeded(
  tx: Transaction,
  targets: readonly NeedTarget[],
  userId: number,
): Promise<number[]> {
  const ids = targets.flatMap((target) => ('job' in target ? [target.job] : []));
  const groups = targets
    .flatMap(namedBy)
    .flatMap((target) => ('jobGroup' in target ? [target.jobGroup] : []));
  const names = targets.flatMap((target) => ('group' in target ? [target.group] : []));
  const kept = await rows<{ id: number }>(
    tx,
    sql`
SELECT id FROM jobs WHERE id = ANY (ARRAY(
  SELECT unnest(${list('bigint', ids)})
  UNION SELECT j.id FROM job_groups g JOIN jobs j ON j.id BETWEEN g.first_job_id AND g.last_job_id AND j.group_id = g.id
         WHERE g.id = ANY (${list('bigint', groups)}) AND j.ended_at IS NOT NULL
  UNION SELECT id FROM jobs WHERE group_name = ANY (${list('text', names)}) AND user_id = ${userId} AND ended_at IS NOT NULL))
 ORDER BY id FOR KEY SHARE`,
  );
  const there = new Set(kept.map(({ id }) => id));
  return ids.filter((id) => !there.has(id));
}

// What becomes of them --------------------------------------------------------------------------------------------------

/** Jobs that one transaction decides on, besides those that are canceled with one of them. */
const AT_ONCE = 5_000;

/**
 * Decides for the jobs that the news are about. All that follows from it (a canceled job cancels those that need it, and so on) is one
 * transaction. It locks its jobs in the order of ids before it looks; if more follow from what it finds, it begins again with these.
 */
export async function settleNeeds(
  database: Pick<Database, 'pool'>,
  about: NeedsNews,
  now: number,
): Promise<NeedsOutcome> {
  const outcome: NeedsOutcome = { queued: 0, cancelled: 0, held: 0 };
  for (let after = 0; ; ) {
    const ids = await concerned(database.pool, about, now, after);
    if (ids.length === 0) return outcome;
    after = ids.at(-1) as number;
    const locked = new Set(ids);
    let changes: NeedsDecision[] | null = null;
    while (changes === null)
      changes = await transaction(database, (tx) => settle(tx, ids, locked, now), { timeoutMs: LONG_MS });
    for (const { becomes } of changes) {
      if (becomes === 'QUEUED') outcome.queued++;
      else if (becomes === 'CANCELLED') outcome.cancelled++;
      else if (becomes === 'HELD') outcome.held++;
    }
  }
}

/** Jobs that wait among those that the news are of, and those that need one of them. In the order of ids. */
async function concerned(
  connection: Connection,
  about: NeedsNews,
  now: number,
  after: number,
): Promise<number[]> {
  const which =
    about === 'DUE'
      ? sql`SELECT job_id FROM job_needs WHERE due_at <= to_timestamp(${now}::float8)`
      : about === 'ALL'
        ? sql`SELECT job_id FROM job_needs`
        : sql`SELECT unnest(${list('bigint', about)}) AS job_id UNION ${dependents(list('bigint', about))}`;
  const found = await rows<{ id: number }>(
    connection,
    prepared(sql`
SELECT n.job_id AS id FROM (${which}) w JOIN job_needs n ON n.job_id = w.job_id
 WHERE n.open AND n.job_id > (SELECT ${after}::bigint) ORDER BY 1 LIMIT ${raw(String(AT_ONCE))}`),
  );
  return found.map(({ id }) => id);
}

/** Who needs one of these (an array of ids). Jobs without needs cost a look at an empty index each, not their rows. */
export const dependents = (jobs: Sql): Sql => sql`
SELECT e.job_id FROM need_edges e WHERE e.on_job = ANY (${jobs})
UNION
${dependentsByGroup(jobs)}`;

const dependentsByGroup = (jobs: Sql): Sql => sql`
SELECT e.job_id FROM (SELECT DISTINCT group_id FROM jobs WHERE id = ANY (${jobs}) AND group_id IS NOT NULL) g
  JOIN need_edges e ON e.on_group = g.group_id WHERE EXISTS (SELECT FROM need_edges WHERE on_group IS NOT NULL)
UNION
SELECT e.job_id FROM (SELECT DISTINCT user_id, group_name FROM jobs WHERE id = ANY (${jobs}) AND group_name IS NOT NULL) g
  JOIN need_edges e ON e.on_user = g.user_id AND e.on_name = g.group_name WHERE EXISTS (SELECT FROM need_edges WHERE on_name IS NOT NULL)`;

/** What was done; null: nothing, as jobs besides those to be locked are concerned, which now are among them. */
async function settle(
  tx: Transaction,
  ids: readonly number[],
  locked: Set<number>,
  now: number,
): Promise<NeedsDecision[] | null> {
  await run(
    tx,
    sql`SELECT FROM jobs WHERE id = ANY (${list('bigint', [...locked])}) ORDER BY id FOR NO KEY UPDATE`,
  );
  const waiting = await waitsOf(tx, ids);
  const changes = await follow(tx, waiting, locked, now);
  if (changes === null) return null;
  const over = [...waiting.values()].filter(({ blocked }) => !blocked).map(({ id }) => id);
  if (over.length > 0)
    await run(tx, sql`UPDATE job_needs SET open = false WHERE job_id = ANY (${list('bigint', over)})`);
  const statements = await changesOf(tx, changes);
  if (statements.length > 0) await commitWith(tx, statements);
  return changes;
}

/**
 * What becomes of these jobs and, where some are canceled, of those that need them, and so on; null: not all of those are locked, and
 * have been added.
 */
async function follow(
  tx: Transaction,
  waiting: Waits,
  locked: Set<number>,
  now: number,
): Promise<NeedsDecision[] | null> {
  const changes = new Map<number, NeedsDecision>();
  /** Facts that this very transaction makes. */
  const made = new Map<number, MemberFacts>();
  const reach = new Reach(tx, locked);
  const judge = async (about: Waits): Promise<number[]> => {
    const jobs = [...about.values()].filter(
      ({ id, blocked }) => blocked && changes.get(id)?.becomes !== 'CANCELLED',
    );
    const outcomes = await outcomesFor(tx, jobs, made, reach.facts);
    const kept = await keptFor(tx, jobs);
    return jobs.flatMap((job) => {
      const change = decided(job, outcomes, kept, now);
      if (change !== null) changes.set(job.id, change);
      if (change?.becomes !== 'CANCELLED') return [];
      made.set(job.id, [job.id, null, change.at, false]);
      return [job.id];
    });
  };
  for (let about = waiting; about.size > 0; ) {
    const all: number[] = [];
    for (let jobs = about; jobs.size > 0; ) {
      const cancelled = await judge(jobs);
      for (const id of cancelled) all.push(id);
      jobs = await reach.ofJobs(cancelled);
      if (reach.isBeyondLocks) return null;
    }
    // What is asked of all members of a group is asked once for all of them that are canceled.
    about = await reach.ofGroups(all);
    if (reach.isBeyondLocks) return null;
  }
  return [...changes.values()];
}

/**
 * Whom the ends of jobs concern, with what they wait for. All that need a job, and those that need these, and so on, are read at once: a
 * chain of 100 000 jobs takes as many steps.
 */
class Reach {
  /** Of jobs that somebody reached needs. */
  readonly facts = new Map<number, MemberFacts>();
  private readonly waits: Waits = new Map();
  /** By job, who needs it itself; of all that have been read. */
  private readonly needing = new Map<number, number[]>();
  /** Whether somebody was found who is not locked. */
  isBeyondLocks = false;

  constructor(
    private readonly tx: Transaction,
    private readonly locked: Set<number>,
  ) {}

  /** Who needs one of these itself. */
  async ofJobs(ended: readonly number[]): Promise<Waits> {
    await this.read(ended.filter((id) => !this.needing.has(id)));
    const found: Waits = new Map();
    for (const id of ended)
      for (const by of this.needing.get(id) ?? []) found.set(by, this.waits.get(by) as Waiting);
    return found;
  }

  /** Who needs a group that one of these is in. */
  async ofGroups(ended: readonly number[]): Promise<Waits> {
    if (ended.length === 0) return new Map();
    return this.waitsOf(await rows(this.tx, dependentsByGroup(list('bigint', ended))));
  }

  private async read(ended: readonly number[]): Promise<void> {
    if (ended.length === 0) return;
    const reached = await rows<{ job_id: number }>(
      this.tx,
      sql`
WITH RECURSIVE reached (job_id) AS (
  SELECT e.job_id FROM need_edges e WHERE e.on_job = ANY (${list('bigint', ended)})
  UNION SELECT e.job_id FROM reached r JOIN need_edges e ON e.on_job = r.job_id
) SELECT job_id FROM reached`,
    );
    const fresh = reached.filter(({ job_id: id }) => !this.waits.has(id));
    for (const id of [...ended, ...fresh.map(({ job_id }) => job_id)])
      if (!this.needing.has(id)) this.needing.set(id, []);
    const needed = new Set<number>();
    for (const [id, wait] of await this.waitsOf(fresh)) {
      this.waits.set(id, wait);
      for (const target of targetsOf(wait.needs).values()) {
        if (!('job' in target)) continue;
        needed.add(target.job);
        // Of others not all who need them are known here.
        this.needing.get(target.job)?.push(id);
      }
    }
    const facts = await factsOf(this.tx, sql`j.id = ANY (${list('bigint', [...needed])})`);
    for (const one of facts) this.facts.set(one[0], one);
  }

  /** Of jobs that are locked. */
  private async waitsOf(jobs: readonly { job_id: number }[]): Promise<Waits> {
    const before = this.locked.size;
    for (const { job_id: id } of jobs) this.locked.add(id);
    if (this.locked.size > before) this.isBeyondLocks = true;
    const found: Waits = new Map();
    if (this.isBeyondLocks) return found;
    for (let i = 0; i < jobs.length; i += AT_ONCE) {
      const part = jobs.slice(i, i + AT_ONCE).map(({ job_id: id }) => id);
      for (const [id, wait] of await waitsOf(this.tx, part)) found.set(id, wait);
    }
    return found;
  }
}

type Waiting = BlockedJob & { blocked: boolean };
/** By id. */
type Waits = Map<number, Waiting>;

/** What jobs wait for, or have waited for. */
export async function waitsOf(connection: Connection, ids: readonly number[]): Promise<Waits> {
  type Wait = [JobWait['needs'], OnUnmet, number?, number?, number?];
  type Found = [number, number, number, boolean, readonly JobInput[], ...Wait];
  const found = await value<Found[] | null>(
    connection,
    sql`
SELECT json_agg(json_build_array(j.id, j.user_id, date_part('epoch', j.submitted_at), j.state = 'BLOCKED', ${raw(readField('inputs'))}, n.needs, n.on_unmet,
         date_part('epoch', n.not_before), date_part('epoch', n.due_at), n.because) ORDER BY j.id) AS v
  FROM jobs j JOIN job_needs n ON n.job_id = j.id
 WHERE j.id = ANY (${list('bigint', ids)})`,
  );
  return new Map(
    (found ?? []).map(([id, userId, submittedAt, blocked, inputs, needs, onUnmet, ...times]) => {
      const [notBefore = null, dueAt = null, because = null] = times;
      const wait = { needs, onUnmet, notBefore, dueAt, because };
      return [id, { id, userId, submittedAt, blocked, inputs, ...wait }];
    }),
  );
}

/** Of everything that these jobs need. */
async function outcomesFor(
  tx: Connection,
  jobs: readonly BlockedJob[],
  made: ReadonlyMap<number, MemberFacts> = new Map(),
  facts: ReadonlyMap<number, MemberFacts> = new Map(),
): Promise<Map<TargetKey, Outcome>> {
  const targets = new Map<
    TargetKey,
    { target: NeedTarget; userId: number; conditions: Set<NeedCondition> }
  >();
  for (const { needs, userId } of jobs)
    for (const { of } of needs)
      for (const term of of) {
        const key = keyOf(term);
        const known = targets.get(key);
        if (known) known.conditions.add(term.condition);
        else targets.set(key, { target: term, userId, conditions: new Set([term.condition]) });
      }
  const outcomes = new Map<TargetKey, Outcome>();
  const put = (key: TargetKey, members: readonly MemberFacts[]): void => {
    outcomes.set(key, outcomeOf(members.map((member) => made.get(member[0]) ?? member)));
  };
  const unknown: number[] = [];
  for (const { target } of targets.values()) {
    if (!('job' in target)) continue;
    const member = facts.get(target.job);
    if (member === undefined) unknown.push(target.job);
    else put(target.job, [member]);
  }
  if (unknown.length > 0)
    for (const member of await factsOf(tx, sql`j.id = ANY (${list('bigint', unknown)})`))
      put(member[0], [member]);
  for (const [key, { target, userId, conditions }] of targets) {
    if ('job' in target) continue;
    // Starts of members, and what this very transaction ends, are asked of them all.
    const isWhole = made.size > 0 || conditions.has('START');
    const open = isWhole ? null : await stillOpen(tx, target, userId, conditions);
    if (open === null) put(key, await factsOf(tx, sql`j.id = ANY (ARRAY(${memberIds(target, userId)}))`));
    else outcomes.set(key, open);
  }
  return outcomes;
}

const membersOf = (target: GroupTarget, userId: number): Sql =>
  'jobGroup' in target
    ? sql`j.group_id = ${target.jobGroup} AND ${rangeOf(target)}`
    : sql`j.group_name = ${target.group} AND j.user_id = ${userId} AND j.id <= ${target.until}`;

/** Members that have been run again give way to their copies. */
const isLatest = ({ again }: GroupTarget): Sql =>
  again === undefined
    ? sql`true`
    : sql`NOT EXISTS (SELECT FROM jobs k WHERE k.rerun_of = j.id AND k.id <= ${again.asOf})`;

/** The ids of copies of members, and of copies of these. */
const copyIds = (target: GroupTarget, { asOf }: RunAgain, userId: number): Sql => sql`
WITH RECURSIVE copy (id) AS (
  SELECT k.id FROM jobs k JOIN jobs j ON j.id = k.rerun_of WHERE k.rerun_of IS NOT NULL AND k.id <= ${asOf} AND ${membersOf(target, userId)}
  UNION ALL
  SELECT k.id FROM copy c JOIN jobs k ON k.rerun_of = c.id AND k.id <= ${asOf}
) SELECT id FROM copy`;

const memberIds = (target: GroupTarget, userId: number): Sql => sql`
SELECT j.id FROM jobs j WHERE ${membersOf(target, userId)} AND ${isLatest(target)}${
  target.again === undefined
    ? empty
    : sql` UNION ALL SELECT j.id FROM jobs j WHERE j.id = ANY (ARRAY(${copyIds(target, target.again, userId)})) AND ${isLatest(target)}`
}`;

/** The ids that the members of a group lie between. */
const rangeOf = (target: GroupTarget): Sql =>
  'jobGroup' in target
    ? sql`j.id BETWEEN (SELECT first_job_id FROM job_groups WHERE id = ${target.jobGroup})
        AND (SELECT last_job_id FROM job_groups WHERE id = ${target.jobGroup})`
    : sql`j.id BETWEEN (SELECT min(id) FROM jobs WHERE group_name = ${target.group}) AND ${target.until}`;

/**
 * What is known of a group while a member of it has not ended: at most that one has ended badly. So the end of a member does not read all
 * others: the indexes of live jobs, and of those that ended badly, are read from where the group begins. null: all have ended.
 */
async function stillOpen(
  tx: Connection,
  target: GroupTarget,
  userId: number,
  conditions: ReadonlySet<NeedCondition>,
): Promise<Outcome | null> {
  const { again } = target;
  const copies =
    again && sql`UNION ALL SELECT * FROM jobs j WHERE j.id = ANY (ARRAY(${copyIds(target, again, userId)}))`;
  const among = (of: Sql): Sql => sql`(
    SELECT * FROM (SELECT * FROM jobs j WHERE ${rangeOf(target)} AND ${of} OFFSET 0) j WHERE ${membersOf(target, userId)} ${copies ?? empty}
  ) j WHERE ${of} AND ${isLatest(target)}`;
  const live = sql`SELECT EXISTS (SELECT FROM ${among(sql`j.ended_at IS NULL`)}) AS v`;
  if (!(await value<boolean>(tx, live))) return null;
  const outcome = new Outcome(Number.POSITIVE_INFINITY);
  if (!conditions.has('OK')) return outcome;
  const [bad] = await rows<{ id: number; at: number }>(
    tx,
    sql`
SELECT j.id, date_part('epoch', j.ended_at) AS at
  FROM ${among(sql`j.ended_at IS NOT NULL AND j.cause <> 'EXITED_ZERO'`)} ORDER BY j.ended_at, j.id LIMIT 1`,
  );
  if (bad) outcome.end(bad.id, bad.at, false, true);
  return outcome;
}

/** What these jobs read of what others keep. */
async function keptFor(tx: Connection, jobs: readonly BlockedJob[]): Promise<KeptOf> {
  const read = jobs.flatMap(({ inputs }) => inputs.flatMap(({ from }) => from ?? []));
  if (read.length === 0) return () => null;
  const found = await keptOutputs(tx, read);
  return (of) => found.get(outputKey(of)) ?? null;
}

async function factsOf(tx: Connection, which: Sql): Promise<MemberFacts[]> {
  const found = await value<MemberFacts[] | null>(
    tx,
    sql`
SELECT json_agg(json_build_array(j.id,
         CASE WHEN j.epoch > 0 THEN (SELECT date_part('epoch', min(r.started_at)) FROM runs r WHERE r.job_id = j.id) END,
         date_part('epoch', j.ended_at), j.state = 'COMPLETED')) AS v
  FROM jobs j WHERE ${which}`,
  );
  return found ?? [];
}

async function changesOf(tx: Transaction, changes: readonly NeedsDecision[]): Promise<Sql[]> {
  const now = (becomes: NeedsDecision['becomes']) => changes.filter((change) => change.becomes === becomes);
  const unmet = [...now('CANCELLED'), ...now('HELD')] as Extract<NeedsDecision, { because: number }>[];
  const needed = [...new Set(unmet.map(({ because }) => because))];
  const named =
    needed.length === 0
      ? []
      : await rows<{ id: number; name: string | null }>(
          tx,
          sql`SELECT id, name FROM jobs WHERE id = ANY (${list('bigint', needed)})`,
        );
  const names = new Map(named.map(({ id, name }) => [id, name]));
  const items = (of: readonly NeedsDecision[]): Sql =>
    table('t', of, {
      id: ['bigint', ({ id }) => id],
      at: ['float8', ({ at }) => at],
      message: [
        'text',
        (change) => ('because' in change ? unmetMessage(change, names.get(change.because) ?? null) : null),
      ],
      inputs: [
        'text',
        (change) => ('inputs' in change && change.inputs !== null ? JSON.stringify(change.inputs) : null),
      ],
    });
  // Set once, before what takes the event lock.
  for (const [of, because] of [
    [unmet, true],
    [now('BLOCKED'), false],
    [now('QUEUED'), false],
  ] as const)
    if (of.length > 0)
      await run(
        tx,
        sql`
UPDATE job_needs n SET due_at = ${because ? sql`NULL` : sql`to_timestamp(t.at)`}, because = t.because, open = n.open AND t.open
  FROM ${table('t', of as readonly NeedsDecision[], {
    id: ['bigint', ({ id }) => id],
    at: ['float8', ({ at }) => at],
    because: ['bigint', (change) => ('because' in change ? change.because : null)],
    open: ['boolean', ({ becomes }) => becomes === 'BLOCKED'],
  })} WHERE n.job_id = t.id`,
      );
  const why = sql`'DEPENDENCY_FAILED'::end_cause`;
  const at = sql`greatest(to_timestamp(t.at), j.submitted_at)`;
  const [cancelled, held, queued] = [now('CANCELLED'), now('HELD'), now('QUEUED')];
  return [
    ...(queued.length > 0
      ? [
          changeJobs('unblock', items(queued), {
            eligibleAt: sql`CASE WHEN j.epoch = 0 THEN ${at} ELSE j.eligible_at END`,
            inputs: sql`coalesce(t.inputs::jsonb, j.inputs)`,
          }),
        ]
      : []),
    ...(held.length > 0 ? [changeJobs('holdUnmet', items(held), { message: sql`t.message` })] : []),
    ...(cancelled.length > 0
      ? [
          changeJobs('unmet', items(cancelled), {
            ...{ stopCause: why, cause: why, endedAt: at, message: sql`t.message` },
            deadlineMissed: sql`j.deadline_missed OR coalesce(${at} > j.deadline, false)`,
          }),
        ]
      : []),
  ];
}

/** A job that was held because its needs cannot hold goes on, once released, as if it had said so (`RUN`). */
export const releaseUnmet = (items: Sql): Sql => sql`
UPDATE job_needs n SET on_unmet = CASE WHEN because IS NULL THEN on_unmet ELSE 'RUN' END, because = NULL, open = true
  FROM ${items} WHERE n.job_id = t.id`;

// What people are told -----------------------------------------------------------------------------------------------------

export interface OpenNeeds {
  wait: BlockedJob;
  /** Of clauses that do not hold, the terms of which nobody knows yet whether they will. */
  open: JobWait['needs'];
}

/** null: it is not blocked. */
export async function openNeeds(connection: Connection, jobId: number): Promise<OpenNeeds | null> {
  const wait = (await waitsOf(connection, [jobId])).get(jobId);
  if (wait === undefined || !wait.blocked) return null;
  const outcomes = await outcomesFor(connection, [wait]);
  const isOpen = (term: NeedTerm): boolean => verdictOf(outcomes, term) === null;
  const holds = (term: NeedTerm): boolean => verdictOf(outcomes, term)?.holds === true;
  const open = wait.needs.flatMap(({ expression, of }) => {
    const left = expression === 'ANY' && of.some(holds) ? [] : of.filter(isOpen);
    return left.length === 0 ? [] : [{ expression, of: left }];
  });
  return { wait, open };
}

/** Jobs that need a job, or a group that it is in, by id. */
export async function dependentsOf(connection: Connection, jobId: number, limit: number): Promise<number[]> {
  const found = await rows<{ id: number }>(
    connection,
    sql`SELECT job_id AS id FROM (${dependents(list('bigint', [jobId]))}) d ORDER BY 1 LIMIT ${limit}`,
  );
  return found.map(({ id }) => id);
}
