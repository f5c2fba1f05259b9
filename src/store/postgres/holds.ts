/** What time does to maintenance windows and reservations: they are over, come again, are given back, get other machines, stop what is in their way. */
import { list, table } from '../columns.js';
import type { HoldTime } from '../holds.js';
import { heldElsewhere, poolsAt, poolsOfRun, untilLimit } from '../images.js';
import { holdNotices, saidOf } from '../mails.js';
import { commitWith, type Database, type Transaction, transaction } from '../pool.js';
import { sayPreempted } from '../retries.js';
import { empty, raw, type Sql, sql } from '../sql.js';
import { type Connection, rows, run, value } from '../statement.js';
import type { SweepRules } from '../store.js';
import {
  MADE_EVERY_S,
  preemptedFor,
  type StoppedRun,
  type Upkeep,
  type UpkeepFacts,
  upkeepOf,
} from '../upkeep.js';
import { unheard } from './agents.js';
import { changeJobs } from './change-jobs.js';

type Rules = Pick<SweepRules, 'now' | 'lostAfterS'>;

/** `present`: since when there has been an API for agents to talk to; null: there is none. Answers with the sites where something is otherwise, and the runs that were stopped. */
export async function keepHolds(
  database: Pick<Database, 'pool'>,
  rules: Rules,
  present: number | null,
): Promise<{ touched: number[]; stopped: StoppedRun[] }> {
  const touched: number[] = [];
  const all: StoppedRun[] = [];
  for (const siteId of await sitesDue(database.pool, rules, present)) {
    // Most often what is due cannot be helped, as where no machine can take the place of a lost one: nobody has to wait for that.
    if (isNothing(upkeepOf(await factsOf(database.pool, siteId, rules, present), rules.now))) continue;
    const done = await transaction(database, async (tx) => {
      await run(tx, sql`SELECT 1 FROM sites WHERE id = ${siteId}::integer FOR NO KEY UPDATE`);
      const upkeep = upkeepOf(await factsOf(tx, siteId, rules, present), rules.now);
      const stopped = await lockStopped(tx, upkeep.stopped);
      await applyToHolds(tx, upkeep, rules.now);
      if (stopped.length > 0) await commitWith(tx, [stop(stopped)]);
      return isNothing(upkeep) ? null : stopped;
    });
    if (done === null) continue;
    touched.push(siteId);
    all.push(...done);
  }
  return { touched, stopped: all };
}

const isNothing = ({ over, made, replaced, stopped, ended, short }: Upkeep): boolean =>
  over.length + made.length + replaced.length + stopped.length + ended.length + short.length === 0;

/** Nothing will run on the machine `m` of the agent `a` before somebody does something. */
const isLost = ({ now, lostAfterS }: Rules, present: number | null): Sql =>
  sql`(m.removed_at IS NOT NULL OR m.state <> 'UP' OR m.problem IS NOT NULL
       ${present === null ? empty : sql`OR m.silent AND ${unheard(present, now, lostAfterS)}`})`;

/** Sites with holds to which something may have to be done now, in order. */
async function sitesDue(connection: Connection, rules: Rules, present: number | null): Promise<number[]> {
  const now = sql`to_timestamp(${rules.now}::float8)`;
  const found = await rows<{ siteId: number }>(
    connection,
    sql`
SELECT DISTINCT h.site_id AS "siteId" FROM holds h
 WHERE h.ended_at IS NULL AND (
   EXISTS (SELECT FROM hold_times t WHERE t.hold_id = h.id AND NOT t.over AND t.to_at <= ${now})
   OR h.recurrence IS NOT NULL AND h.made_at <= ${now} - make_interval(secs => ${MADE_EVERY_S})
   OR h.on_conflict = 'PREEMPT' AND EXISTS (
     SELECT FROM hold_times t JOIN runs r ON r.site_id = h.site_id AND r.ended_at IS NULL JOIN jobs j ON j.id = r.job_id
      WHERE t.hold_id = h.id AND NOT t.over AND t.from_at <= ${now} + make_interval(secs => j.kill_grace_s)
        AND j.state <> 'CANCELLING' AND j.reservation_id IS DISTINCT FROM h.id)
   OR h.kind <> 'MAINTENANCE' AND h.idle_s IS NOT NULL AND EXISTS (
     SELECT FROM hold_times t WHERE t.hold_id = h.id AND NOT t.over AND t.from_at <= ${now} - make_interval(secs => h.idle_s)
        AND NOT EXISTS (SELECT FROM jobs j JOIN runs r ON r.job_id = j.id
                         WHERE j.reservation_id = h.id AND (r.ended_at IS NULL OR r.ended_at > ${now} - make_interval(secs => h.idle_s))))
   OR h.short_of <> '{}'
   OR h.kind <> 'MAINTENANCE' AND EXISTS (
     SELECT FROM jsonb_array_elements(h.machines) p JOIN machines m ON m.id = (p ->> 'machineId')::integer LEFT JOIN agents a ON a.id = m.agent_id
      WHERE ${isLost(rules, present)}))
 ORDER BY 1`,
  );
  return found.map(({ siteId }) => siteId);
}

function factsOf(
  connection: Connection,
  siteId: number,
  rules: Rules,
  present: number | null,
): Promise<UpkeepFacts> {
  return value(
    connection,
    sql`
WITH hold AS MATERIALIZED (SELECT * FROM holds WHERE site_id = ${siteId}::integer AND ended_at IS NULL)
SELECT json_build_object(
  'policy', coalesce((SELECT jsonb_strip_nulls(jsonb_build_object('classes', document -> 'classes', 'preemption', document -> 'preemption'))
                        FROM policies ORDER BY version DESC LIMIT 1), '{}'),
  'machines', (SELECT coalesce(json_agg(json_build_object('id', m.id, 'name', m.name,
        'available', m.removed_at IS NULL AND m.state = 'UP' AND NOT m.silent AND m.problem IS NULL,
        'has', m.resources || jsonb_build_object('cpus', m.cpus, 'memoryMb', m.memory_mb), 'lost', ${isLost(rules, present)},
        'alike', jsonb_build_array(m.cpus, m.memory_mb, m.resources, m.benchmark, m.max_tasks, m.os, m.architecture,
                   coalesce(m.measured -> 'labels', '{}') || m.labels)::text) ORDER BY m.id), '[]')
     FROM machines m LEFT JOIN agents a ON a.id = m.agent_id
    WHERE m.site_id = ${siteId}::integer AND (m.removed_at IS NULL
      OR m.id IN (SELECT (p ->> 'machineId')::integer FROM hold h, jsonb_array_elements(h.machines) p))),
  'holds', (SELECT coalesce(json_agg(json_build_object('id', h.id, 'kind', h.kind, 'userId', h.user_id, 'machines', h.machines, 'pools', h.pools,
        'onConflict', h.on_conflict, 'idleS', h.idle_s, 'recurrence', h.recurrence, 'madeAt', extract(epoch FROM h.made_at),
        'times', (SELECT coalesce(json_agg(json_build_object('id', t.id, 'from', extract(epoch FROM t.from_at), 'to', extract(epoch FROM t.to_at))
                     ORDER BY t.from_at, t.id), '[]') FROM hold_times t WHERE t.hold_id = h.id AND NOT t.over),
        'inUse', used.now, 'usedAt', used.at, 'shortOf', h.short_of) ORDER BY h.id), '[]')
     FROM hold h CROSS JOIN LATERAL (
       SELECT coalesce(bool_or(r.ended_at IS NULL), false) AS now, extract(epoch FROM max(r.ended_at)) AS at
         FROM jobs j JOIN runs r ON r.job_id = j.id WHERE j.reservation_id = h.id) used),
  'runs', (SELECT coalesce(json_agg(json_build_object('jobId', r.job_id, 'epoch', r.epoch, 'machineIds', r.machine_ids, 'machineTasks', r.machine_tasks,
        'amounts', coalesce(r.resources_per_task, '{}') || jsonb_build_object('cpus', r.cpus_per_task, 'memoryMb', r.memory_mb_per_task), 'alone', (r.whole_cpus IS NOT NULL AND r.taken IS NULL) OR (r.keeps_machines AND NOT coalesce(r.taken -> 0 ? 'keeps', false)), 'taken', r.taken,
        'until', ${raw(untilLimit)}, 'since', extract(epoch FROM r.assigned_at), 'checkpointAt', extract(epoch FROM r.checkpoint_at),
        'restartable', j.restartable, 'class', j.class, 'preemptionClass', j.preemption_class, 'killGraceS', j.kill_grace_s, 'reservationId', j.reservation_id,
        'stopping', j.state = 'CANCELLING', 'elsewhere', r.site_id <> ${siteId}::integer, 'pools', ${raw(poolsOfRun)}) ORDER BY r.job_id), '[]')
     FROM runs r JOIN jobs j ON j.id = r.job_id
    WHERE r.ended_at IS NULL AND (r.site_id = ${siteId}::integer
      OR r.license_ids <> '{}' AND EXISTS (SELECT FROM hold, jsonb_array_elements(hold.pools) p WHERE (p ->> 'id')::integer = ANY (r.license_ids)))),
  'pools', ${raw(poolsAt(String(siteId)))}, 'elsewhere', ${raw(heldElsewhere(String(siteId)))}) AS v`,
  );
}

/** Those that still run, in the order of ids. */
async function lockStopped(tx: Transaction, stopped: readonly StoppedRun[]): Promise<StoppedRun[]> {
  if (stopped.length === 0) return [];
  const found = await rows<{ id: number; epoch: number }>(
    tx,
    sql`
SELECT id, epoch FROM jobs WHERE id = ANY (${list(
      'bigint',
      stopped.map(({ jobId }) => jobId),
    )}) AND state IN ('ASSIGNED', 'RUNNING') ORDER BY id FOR NO KEY UPDATE`,
  );
  const running = new Map(found.map(({ id, epoch }) => [id, epoch]));
  return stopped.filter(({ jobId, epoch }) => running.get(jobId) === epoch);
}

const stop = (stopped: readonly StoppedRun[]): Sql =>
  changeJobs(
    'preempt',
    table('t', stopped, {
      id: ['bigint', ({ jobId }) => jobId],
      preempted: ['text', (one) => JSON.stringify(preemptedFor(one))],
      note: ['text', (one) => sayPreempted(preemptedFor(one))],
    }),
    {
      stopCause: sql`'PREEMPTED'::end_cause`,
      preempted: sql`t.preempted::jsonb`,
      note: sql`t.note`,
    },
  );

async function applyToHolds(
  tx: Transaction,
  { over, made, replaced, changed, ended, short, news }: Upkeep,
  now: number,
): Promise<void> {
  const at = sql`to_timestamp(${now}::float8)`;
  if (over.length > 0)
    await run(
      tx,
      sql`
UPDATE hold_times SET over = true, to_at = CASE WHEN from_at < ${at} THEN least(to_at, ${at}) ELSE to_at END
 WHERE id = ANY (${list('integer', over)})`,
    );
  const times = made.flatMap((one) => one.times.map((time) => ({ ...time, holdId: one.holdId })));
  if (times.length > 0) await insertTimes(tx, times);
  if (made.length > 0)
    await run(
      tx,
      sql`UPDATE holds SET made_at = ${at} WHERE id = ANY (${list(
        'integer',
        made.map(({ holdId }) => holdId),
      )})`,
    );
  const machines = table('t', replaced, {
    id: ['integer', ({ holdId }) => holdId],
    machines: ['text', (one) => JSON.stringify(one.machines)],
  });
  if (replaced.length > 0)
    await run(tx, sql`UPDATE holds h SET machines = t.machines::jsonb FROM ${machines} WHERE h.id = t.id`);
  const lacking = table('t', short, {
    id: ['integer', ({ holdId }) => holdId],
    machines: ['text', ({ machineIds }) => `{${machineIds.join()}}`],
  });
  if (short.length > 0)
    await run(tx, sql`UPDATE holds h SET short_of = t.machines::integer[] FROM ${lacking} WHERE h.id = t.id`);
  if (news.length > 0)
    await run(
      tx,
      holdNotices(
        news.map((one) => ({ holdId: one.holdId, note: saidOf(one) })),
        now,
      ),
    );
  if (changed.length + ended.length > 0)
    await run(
      tx,
      sql`
UPDATE holds SET revision = revision + 1, ended_at = CASE WHEN id = ANY (${list('integer', ended)}) THEN ${at} END
 WHERE id = ANY (${list('integer', [...changed, ...ended])})`,
    );
}

const insertTimes = (tx: Transaction, times: readonly (HoldTime & { holdId: number })[]): Promise<number> =>
  run(
    tx,
    sql`
INSERT INTO hold_times (hold_id, from_at, to_at)
SELECT t.hold_id, to_timestamp(t.begins), to_timestamp(t.ends) FROM ${table('t', times, {
      hold_id: ['integer', ({ holdId }) => holdId],
      begins: ['float8', ({ from }) => from],
      ends: ['float8', ({ to }) => to],
    })}`,
  );
