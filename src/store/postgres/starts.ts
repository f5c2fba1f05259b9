/** Plans of a site: starts, the reservation that they respect, and promises. */
import { handOverLimit } from '../../core/local/registry.js';
import type { Reservation, Start } from '../../core/model.js';
import type { OwnedDevice } from '../../core/resources/devices.js';
import { type HeldUnit, unitsOf } from '../../core/resources/units.js';
import { list, table } from '../columns.js';
import { TIMES_KNOWN } from '../constants.js';
import { type CopyColumns, withValues } from '../copy.js';
import type { HeldPart, HeldPoolPart, PoolTakenInside, TakenInside } from '../holds.js';
import {
  idsOf,
  isAvailable,
  promisesToArray,
  type ReservationArray,
  reservationArray,
  reservationFromArray,
} from '../images.js';
import { commitWith, type Database, type Transaction, transaction } from '../pool.js';
import {
  type Amounts,
  admitStart,
  type FreeResources,
  freeOf,
  keepsMachines,
  type StartedJob,
  storable,
  takeDevices,
  type WholeMachines,
  wholeMachines,
} from '../rules.js';
import { raw, type Sql, sql } from '../sql.js';
import { copy, prepared, run, value } from '../statement.js';
import type { Applied, KeptPromises, PlanContext, StartOutcome } from '../store.js';
import { changeJobs } from './change-jobs.js';
import { insertDecisions } from './decisions.js';

export interface SitePlan {
  siteId: number;
  starts: readonly Start[];
  reservation: Reservation | null;
  promises: KeptPromises | null;
}

export function applyStarts(
  database: Pick<Database, 'pool'>,
  { siteId, starts, reservation, promises }: SitePlan,
  context: PlanContext,
): Promise<StartOutcome> {
  return transaction(database, async (tx): Promise<StartOutcome> => {
    const handsOver = starts.some(({ allocations }) => allocations.length === 0);
    const { isUp, jobs } = await lockJobs(tx, siteId, starts, handsOver);
    const { free, held } = await lockResources(tx, siteId, starts, context.now);
    if (handsOver) free.handOvers = await handOvers(tx, siteId);
    await noteUsers(tx, siteId, jobs, free);
    if (isUp && !(await keepPromises(tx, siteId, promises, held.promised))) {
      const why = "the site's promises have changed in the meantime";
      const refused = starts.map(({ jobId }) => ({ jobId, why }));
      return { accepted: [], epochs: [], refused, outdated: true };
    }
    const accepted: Admitted[] = [];
    const refused: Applied['refused'] = [];
    for (const start of starts) {
      const job = jobs.get(start.jobId);
      const why = !isUp
        ? `site ${siteId} is not up`
        : start.siteId !== siteId
          ? `the start is for site ${start.siteId}`
          : admitStart(start, job, free);
      if (why !== null || job === undefined) {
        refused.push({ jobId: start.jobId, why: why ?? 'there is no such job' });
        continue;
      }
      job.state = 'ASSIGNED';
      const devices = takeDevices(start, job, free);
      const whole = wholeMachines(start, job, free, devices);
      accepted.push({ start, job, epoch: job.epoch + 1, devices, whole });
    }
    if (accepted.length > 0) {
      await insertDecisions(tx, 'START', context, accepted.map(decision));
      await insertRuns(tx, siteId, accepted, context);
    }
    await keepReservation(tx, siteId, reservation, held.reservation);
    if (accepted.length > 0) await commitWith(tx, [assignJobs(accepted)]);
    return {
      accepted: accepted.map(({ start }) => start.jobId),
      epochs: accepted.map(({ epoch }) => epoch),
      refused,
      outdated: false,
    };
  });
}

interface Admitted {
  start: Start;
  job: LockedJob;
  epoch: number;
  devices: string[][] | null;
  whole: WholeMachines | null;
}
/** `dispatchedAt`: epoch seconds. */
type LockedJob = StartedJob & { epoch: number; dispatchedAt: number | null };

/**
 * Locks the site (nobody drains it meanwhile) and the jobs in the order of ids. A site with a limit of running jobs, or of those that
 * wait with its own scheduler, is locked against other starts too, so that what is counted behind the lock stays true.
 */
async function lockJobs(
  tx: Transaction,
  siteId: number,
  starts: readonly Start[],
  handsOver: boolean,
): Promise<{ isUp: boolean; jobs: Map<number, LockedJob> }> {
  const jobIds = starts.map((start) => start.jobId);
  const [isUp, found] = await value<[boolean, (LockedJob & { id: number })[]]>(
    tx,
    prepared(sql`
WITH limited AS MATERIALIZED (
  SELECT id FROM sites WHERE id = ${siteId}::integer AND (max_running_jobs IS NOT NULL OR ${handsOver}) FOR NO KEY UPDATE
), site AS MATERIALIZED (
  SELECT state, max_limit_s FROM sites
   WHERE id = ${siteId}::integer AND removed_at IS NULL AND (SELECT count(*) FROM limited) >= 0 FOR SHARE
), job AS MATERIALIZED (
  SELECT id, state, site_id AS "siteId", user_id AS "userId", epoch, date_part('epoch', dispatched_at) AS "dispatchedAt", tasks, coalesce(run_time_limit_s, (SELECT max_limit_s FROM site)) AS "runTimeLimitS", cpus_per_task AS "cpusPerTask", memory_mb_per_task AS "memoryMbPerTask", resources_per_task AS "resourcesPerTask", devices_per_task AS "devicesPerTask", tasks_per_machine AS "tasksPerMachine", exclusive, parts, licenses, resources, reservation_id AS "reservationId"
    FROM jobs WHERE id = ANY (${list('bigint', jobIds)}) ORDER BY id FOR NO KEY UPDATE
)
SELECT json_build_array(
  coalesce((SELECT state = 'UP' FROM site), false),
  (SELECT coalesce(json_agg(job), '[]') FROM job)) AS v`),
  );
  return { isUp, jobs: new Map(found.map((job) => [job.id, job])) };
}

interface HeldBySite {
  reservation: Reservation | null;
  promised: boolean;
}

/** `memoryMb` and `userId` null: of a run that asked by amounts. */
type HeldUnitArray = [unit: string, memoryMb: number | null, userId: number | null];

/** The devices, and shares of devices, of the row `machine` that live runs have. Few machines have any. */
const unitsHeld = `(
  SELECT json_agg(json_build_array(h.unit, asked.memory_mb, asked.user_id)) FROM device_holds h LEFT JOIN LATERAL (
    SELECT (t.part #>> ARRAY['units', h.unit])::integer AS memory_mb, j.user_id
      FROM runs r JOIN jobs j ON j.id = r.job_id, jsonb_array_elements(r.taken) WITH ORDINALITY AS t (part, place)
     WHERE r.job_id = h.job_id AND r.epoch = h.epoch AND r.machine_ids[t.place] = machine.id AND t.part -> 'units' ? h.unit) asked ON true
   WHERE h.machine_id = machine.id)`;

function heldFrom(
  devices: readonly OwnedDevice[],
  held: readonly HeldUnitArray[] | null,
): Map<string, HeldUnit> {
  if (held === null) return new Map();
  const part = new Map(
    devices.flatMap((device) =>
      unitsOf(device).map((unit) => [unit, Math.floor(device.memoryMb / device.shares)]),
    ),
  );
  return new Map(
    held.map(([unit, memoryMb, userId]) => [
      unit,
      { memoryMb: memoryMb ?? part.get(unit) ?? 0, user: userId === null ? null : String(userId) },
    ]),
  );
}

/**
 * Locks the machines and then the licenses that are named, each in the order of ids, and tells what is free of them; behind the jobs'
 * locks. What is not usable by the site is not in the answer. And what the site has reserved and promised, read behind them.
 */
async function lockResources(
  tx: Transaction,
  siteId: number,
  starts: readonly Start[],
  now: number,
): Promise<{ free: FreeResources; held: HeldBySite }> {
  const machineIds = new Set(
    starts.flatMap((start) => start.allocations.map((allocation) => allocation.machineId)),
  );
  const licenseIds = new Set(starts.flatMap(({ pools }) => pools.map(({ id }) => id)));
  type Answer = [
    machines: [
      id: number,
      cpus: number,
      memoryMb: number,
      allCpus: number,
      allMemoryMb: number,
      places: number | null,
      allPlaces: number | null,
      has: Amounts,
      used: Amounts,
      devices: readonly OwnedDevice[],
      held: HeldUnitArray[] | null,
      kept: boolean,
    ][],
    licenses: [id: number, kind: string, copies: number, all: number][],
    reservation: ReservationArray | null,
    promised: boolean,
    runs: number | null,
    parts: HeldPart[],
    reservations: number[],
    inside: TakenInside[],
    heldPools: HeldPoolPart[],
    poolsInside: PoolTakenInside[],
  ];
  const answer = await value<Answer>(
    tx,
    prepared(sql`
WITH machine AS MATERIALIZED (
  SELECT id, state, silent, problem, cpus, cpus_used, memory_mb, memory_used_mb, max_tasks, tasks_used, keeping_runs, resources, resources_used, devices FROM machines
   WHERE id = ANY (${list('integer', [...machineIds])}) AND site_id = ${siteId}::integer AND removed_at IS NULL
   ORDER BY id FOR NO KEY UPDATE
), reservation AS MATERIALIZED (
  SELECT id FROM holds WHERE site_id = ${siteId}::integer AND ended_at IS NULL AND kind <> 'MAINTENANCE'
), license AS MATERIALIZED (
  SELECT id, kind, copies, in_use FROM licenses
   WHERE id = ANY (${list('integer', [...licenseIds])}) AND coalesce(site_id, ${siteId}::integer) = ${siteId}::integer AND removed_at IS NULL
   ORDER BY id FOR NO KEY UPDATE
), pooled AS MATERIALIZED (
  SELECT id, kind, pools FROM holds WHERE ended_at IS NULL AND pools <> '[]' AND cardinality(${list('integer', [...licenseIds])}) > 0
)
SELECT json_build_array(
  (SELECT coalesce(json_agg(json_build_array(id, cpus - cpus_used, memory_mb - memory_used_mb, cpus, memory_mb, max_tasks - tasks_used, max_tasks, resources, resources_used, devices,
            CASE WHEN devices <> '[]' THEN ${raw(unitsHeld)} END, keeping_runs > 0)), '[]')
     FROM machine WHERE ${raw(isAvailable)}),
  (SELECT coalesce(json_agg(json_build_array(id, kind, copies - in_use, copies)), '[]') FROM license),
  (SELECT ${raw(reservationArray)} FROM reservations v WHERE site_id = ${siteId}::integer),
  EXISTS (SELECT 1 FROM promises WHERE site_id = ${siteId}::integer AND body IS NOT NULL),
  (SELECT max_running_jobs - (SELECT count(*) FROM runs WHERE site_id = ${siteId}::integer AND ended_at IS NULL)
     FROM sites WHERE id = ${siteId}::integer AND max_running_jobs IS NOT NULL),
  (SELECT coalesce(json_agg(json_build_object('holdId', h.id, 'kind', h.kind, 'machineId', (m.part ->> 'machineId')::integer, 'amounts', m.part -> 'amounts',
            'from', extract(epoch FROM t.from_at), 'to', extract(epoch FROM t.to_at))), '[]')
     FROM holds h CROSS JOIN LATERAL (
       -- Whatever reaches into a later time reaches into the next one first.
       SELECT from_at, to_at FROM hold_times WHERE hold_id = h.id AND NOT over ORDER BY from_at LIMIT ${TIMES_KNOWN}) t
     -- Of the whole site: one part, of nothing.
     CROSS JOIN LATERAL jsonb_array_elements(coalesce(h.machines, '[null]')) AS m (part)
    WHERE h.site_id = ${siteId}::integer AND h.ended_at IS NULL
      AND (h.machines IS NULL OR (m.part ->> 'machineId')::integer = ANY (${list('integer', [...machineIds])}))),
  (SELECT coalesce(json_agg(id), '[]') FROM reservation),
  CASE WHEN EXISTS (SELECT FROM reservation) THEN (
    SELECT coalesce(json_agg(json_build_object('holdId', j.reservation_id, 'machineId', u.machine_id,
              'amounts', CASE WHEN r.taken IS NOT NULL THEN r.taken -> (u.place - 1)::integer -> 'amounts' WHEN u.cpus IS NOT NULL THEN jsonb_build_object('cpus', u.cpus) ELSE (SELECT jsonb_object_agg(key, value::bigint * u.tasks) FROM jsonb_each_text(
                 coalesce(r.resources_per_task, '{}') || jsonb_build_object('cpus', r.cpus_per_task, 'memoryMb', r.memory_mb_per_task))) END)), '[]')
      FROM jobs j JOIN runs r ON r.job_id = j.id AND r.ended_at IS NULL, unnest(r.machine_ids, r.machine_tasks, r.whole_cpus) WITH ORDINALITY AS u (machine_id, tasks, cpus, place)
     WHERE j.reservation_id IN (SELECT id FROM reservation) AND u.machine_id = ANY (${list('integer', [...machineIds])})) ELSE '[]' END,
  -- Of the grid's also what other sites' holds have. Where nothing is held of the pools this is nothing.
  (SELECT coalesce(json_agg(json_build_object('holdId', h.id, 'kind', h.kind, 'id', (p.part ->> 'id')::integer, 'amount', (p.part ->> 'amount')::integer,
            'from', extract(epoch FROM t.from_at), 'to', extract(epoch FROM t.to_at))), '[]')
     FROM pooled h CROSS JOIN LATERAL (
       SELECT from_at, to_at FROM hold_times WHERE hold_id = h.id AND NOT over ORDER BY from_at LIMIT ${TIMES_KNOWN}) t
     CROSS JOIN LATERAL jsonb_array_elements(h.pools) AS p (part)
    WHERE (p.part ->> 'id')::integer = ANY (${list('integer', [...licenseIds])})),
  CASE WHEN EXISTS (SELECT FROM pooled) THEN (
    SELECT coalesce(json_agg(json_build_object('holdId', j.reservation_id, 'id', u.id, 'amount', coalesce(u.amount, 1))), '[]')
      FROM pooled h JOIN jobs j ON j.reservation_id = h.id JOIN runs r ON r.job_id = j.id AND r.ended_at IS NULL,
           unnest(r.license_ids, r.license_amounts) AS u (id, amount)
     WHERE h.pools @> jsonb_build_array(jsonb_build_object('id', u.id))) ELSE '[]' END) AS v`),
  );
  const [machines, licenses, reserved, promised, runs, parts, reservations, inside] = answer;
  const [heldPools, poolsInside] = answer.slice(8) as [HeldPoolPart[], PoolTakenInside[]];
  return {
    free: {
      machines: new Map(
        machines.map(
          ([id, cpus, memoryMb, allCpus, allMemoryMb, places, allPlaces, has, used, devices, held, kept]) => [
            id,
            {
              ...{ cpus, memoryMb, places, allPlaces, devices, heldUnits: heldFrom(devices, held) },
              ...{ resources: freeOf(has, used), has: { ...has, cpus: allCpus, memoryMb: allMemoryMb } },
              ...{ kept, users: new Set<number>() },
            },
          ],
        ),
      ),
      licenses: new Map(licenses.map(([id, kind, copies, all]) => [id, { kind, copies, all }])),
      ...{ heldPools, poolsInside },
      runs,
      handOvers: null,
      ...{ held: parts, reservations: new Set(reservations), inside },
      now,
    },
    held: { reservation: reserved && reservationFromArray(reserved), promised },
  };
}

/**
 * Whose runs are on the machines, where some are kept from other users or are to be. Behind the locks of the machines, in a statement of
 * its own: one that has waited for them does not see the runs that began meanwhile.
 */
async function noteUsers(
  tx: Transaction,
  siteId: number,
  jobs: ReadonlyMap<number, LockedJob>,
  { machines }: FreeResources,
): Promise<void> {
  const asked = [...jobs.values()].some(keepsMachines);
  if (!asked && ![...machines.values()].some(({ kept }) => kept)) return;
  const found = await value<[machineId: number, userIds: number[]][]>(
    tx,
    sql`
SELECT coalesce(json_agg(json_build_array(machine_id, user_ids)), '[]') AS v FROM (
  SELECT u.machine_id, array_agg(DISTINCT j.user_id) AS user_ids
    FROM runs r JOIN jobs j ON j.id = r.job_id, unnest(r.machine_ids) AS u (machine_id)
   WHERE r.site_id = ${siteId}::integer AND r.ended_at IS NULL AND u.machine_id = ANY (${list('integer', [...machines.keys()])})
   GROUP BY 1) there`,
  );
  for (const [id, userIds] of found) for (const userId of userIds) machines.get(id)?.users.add(userId);
}

/** How many more jobs may wait with the site's own scheduler; null: it has none. Behind the lock of the site. */
async function handOvers(tx: Transaction, siteId: number): Promise<number | null> {
  const [local, waiting] = await value<[local: { kind: string }, waiting: number]>(
    tx,
    sql`
SELECT json_build_array(
  coalesce((SELECT local_policy FROM sites WHERE id = ${siteId}::integer), (SELECT document->'local' FROM policies ORDER BY version DESC LIMIT 1)),
  (SELECT count(*) FROM runs WHERE site_id = ${siteId}::integer AND ended_at IS NULL AND started_at IS NULL)) AS v`,
  );
  const limit = handOverLimit(local);
  return limit === null ? null : limit - waiting;
}

const decision = ({ start }: Admitted) => {
  const { jobId, siteId, reason, explanation } = start;
  return { jobId, fromSiteId: siteId, siteId, reason, explanation };
};

/** The trigger on runs takes machines and licenses. */
function insertRuns(
  tx: Transaction,
  siteId: number,
  runs: readonly Admitted[],
  { now, policyVersion }: PlanContext,
): Promise<void> {
  const columns: CopyColumns<Admitted> = {
    job_id: ['bigint', ({ start }) => start.jobId],
    epoch: ['integer', ({ epoch }) => epoch],
    site_id: ['integer', () => siteId],
    machine_ids: ['integer[]', ({ start }) => start.allocations.map(({ machineId }) => machineId)],
    machine_tasks: ['integer[]', ({ start }) => start.allocations.map(({ tasks }) => tasks)],
    cpus_per_task: ['integer', ({ job }) => job.cpusPerTask],
    memory_mb_per_task: ['integer', ({ job }) => job.memoryMbPerTask],
    resources_per_task: ['jsonb', ({ job }) => job.resourcesPerTask],
    taken: ['jsonb', ({ whole }) => whole?.taken ?? null],
    devices: ['jsonb', ({ devices }) => devices],
    whole_cpus: ['integer[]', ({ whole }) => whole?.cpus ?? null],
    whole_places: ['integer[]', ({ whole }) => whole?.places ?? null],
    keeps_machines: ['boolean', ({ job, start }) => start.allocations.length > 0 && keepsMachines(job)],
    license_ids: ['integer[]', ({ start, job }) => idsOf(start.pools, job.resources !== null)],
    license_amounts: [
      'integer[]',
      ({ start, job }) => job.resources && start.pools.map(({ amount }) => amount),
    ],
    policy_version: ['integer', () => policyVersion],
    // The clock may have been set back.
    assigned_at: ['timestamptz', ({ job }) => Math.max(now, job.dispatchedAt ?? now)],
    planned_s: ['float8', ({ start }) => start.plannedDuration],
    limit_s: ['float8', ({ job }) => job.runTimeLimitS],
    placed_by: ['text', ({ start }) => (start.allocations.length === 0 ? 'SITE' : 'SERVICE')],
  };
  return copy(tx, 'runs', withValues(columns, runs), runs);
}

function assignJobs(runs: readonly Admitted[]): Sql {
  const items = table('t', runs, {
    id: ['bigint', ({ start }) => start.jobId],
    epoch: ['integer', ({ epoch }) => epoch],
  });
  return changeJobs('start', items, { epoch: sql`t.epoch` });
}

// What the site has reserved and promised -----------------------------------------------------------------------------------

/** Writes it only where it changed: most cycles leave it as it was. */
async function keepReservation(
  tx: Transaction,
  siteId: number,
  reservation: Reservation | null,
  known: Reservation | null,
): Promise<void> {
  if (reservation === null) {
    if (known !== null) await run(tx, sql`DELETE FROM reservations WHERE site_id = ${siteId}`);
  } else if (known === null || !sameReservation(reservation, known)) await putReservation(tx, reservation);
}

/** To the millisecond, which is what is stored. */
function sameReservation(a: Reservation, b: Reservation): boolean {
  const key = (r: Reservation) =>
    JSON.stringify([
      r.jobId,
      Math.round(storable(r.at) * 1000),
      Math.round(r.madeAt * 1000),
      r.allocations,
      r.pools,
    ]);
  return key(a) === key(b);
}

function putReservation(
  tx: Transaction,
  { siteId, jobId, at, allocations, pools, madeAt }: Reservation,
): Promise<number> {
  const machines = list(
    'integer',
    allocations.map(({ machineId }) => machineId),
  );
  const tasks = list(
    'integer',
    allocations.map((allocation) => allocation.tasks),
  );
  return run(
    tx,
    sql`
INSERT INTO reservations (site_id, job_id, at, machine_ids, machine_tasks, license_ids, license_amounts, made_at)
  VALUES (${siteId}, ${jobId}, to_timestamp(${storable(at)}::float8), ${machines}, ${tasks}, ${list('integer', idsOf(pools, true))}, ${list(
    'integer',
    pools.map(({ amount }) => amount),
  )}, to_timestamp(${madeAt}::float8))
  ON CONFLICT (site_id) DO UPDATE SET job_id = excluded.job_id, at = excluded.at, machine_ids = excluded.machine_ids,
    machine_tasks = excluded.machine_tasks, license_ids = excluded.license_ids, license_amounts = excluded.license_amounts, made_at = excluded.made_at`,
  );
}

/** Behind the locks of machines and licenses. False when the plan was not made on what the site has promised by now. */
async function keepPromises(
  tx: Transaction,
  siteId: number,
  kept: KeptPromises | null,
  promised: boolean,
): Promise<boolean> {
  if (kept === null) {
    // Of a policy that is in force no more.
    if (promised)
      await run(
        tx,
        sql`UPDATE promises SET revision = revision + 1, body = NULL WHERE site_id = ${siteId} AND body IS NOT NULL`,
      );
    return true;
  }
  const body = kept.promises && JSON.stringify(promisesToArray(kept.promises));
  const written = await run(
    tx,
    sql`
INSERT INTO promises (site_id, revision, body) VALUES (${siteId}, ${kept.revision}::bigint + 1, ${body}::json)
  ON CONFLICT (site_id) DO UPDATE SET revision = excluded.revision, body = excluded.body WHERE promises.revision = ${kept.revision}::bigint`,
  );
  return written > 0;
}

/** Of jobs that leave the queues of these sites, or ask for something else: it was for what they were there and then. */
export async function dropPromises(
  tx: Transaction,
  siteIds: Iterable<number>,
  jobIds: readonly number[],
): Promise<void> {
  if (jobIds.length === 0) return;
  await run(
    tx,
    sql`
UPDATE promises SET revision = revision + 1, body = json_build_array(body -> 0,
    (SELECT coalesce(json_agg(one ORDER BY place), '[]') FROM json_array_elements(body -> 1) WITH ORDINALITY AS p (one, place)
      WHERE (one ->> 0)::bigint <> ALL (${list('bigint', jobIds)})))
 WHERE site_id = ANY (${list('integer', [...siteIds])}) AND body IS NOT NULL`,
  );
}
