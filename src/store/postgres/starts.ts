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
import { empty, raw, type Sql, sql } from '../sql.js';
import { copy, prepared, rows, run, value } from '../statement.js';
import type { Applied, KeptPromises, PlanContext, StartOutcome } from '../store.js';
import { changeJobs } from './change-jobs.js';
import { insertDecisions } from './decisions.js';

/** What a site's cycle wants to be done. */
export interface SitePlan {
  siteId: number;
  starts: readonly Start[];
  reservation: Reservation | null;
  promises: KeptPromises | null;
  context: PlanContext;
}

/**
 * What becomes of each of the plans, as if they came one after the other. `skipLocked`: null is said of those of a site of which one before
 * is, and of those that need a row that somebody else has locked, or that is not there; otherwise rows are waited for, and only one may plan.
 */
export function applyStarts(
  database: Pick<Database, 'pool'>,
  plans: readonly SitePlan[],
  skipLocked = false,
): Promise<(StartOutcome | null)[]> {
  return transaction(database, async (tx) => {
    const { locked, up, jobs } = await lockJobs(tx, firstOfEachSite(plans), skipLocked);
    const sites = await lockResources(tx, locked, skipLocked);
    await countHandOvers(tx, sites);
    await noteUsers(tx, sites, jobs);
    const outdated = await keepPromises(
      tx,
      sites.filter(({ plan }) => up.has(plan.siteId)),
    );
    const judged = new Map(
      sites.map((site) => [
        site.plan,
        outdated.has(site) ? allRefused(site) : judge(site, up.has(site.plan.siteId), jobs),
      ]),
    );
    const accepted = [...judged.values()].flatMap((one) => one.accepted);
    if (accepted.length > 0) {
      await insertDecisions(tx, 'START', ({ context }) => context, accepted.map(decision));
      await insertRuns(tx, accepted);
    }
    await keepReservations(
      tx,
      sites.filter((site) => !outdated.has(site)),
    );
    if (accepted.length > 0) await commitWith(tx, [assignJobs(accepted)]);
    return plans.map((plan) => outcomeOf(judged.get(plan)));
  });
}

const outcomeOf = (judged: Judged | undefined): StartOutcome | null =>
  judged
    ? {
        ...judged,
        accepted: judged.accepted.map(({ start }) => start.jobId),
        epochs: judged.accepted.map(({ epoch }) => epoch),
      }
    : null;

function firstOfEachSite(plans: readonly SitePlan[]): SitePlan[] {
  const bySite = new Map<number, SitePlan>();
  for (const plan of plans) if (!bySite.has(plan.siteId)) bySite.set(plan.siteId, plan);
  return [...bySite.values()];
}

interface Judged extends Omit<StartOutcome, 'accepted' | 'epochs'> {
  accepted: Admitted[];
}

/** Takes what it admits from what is free, and of pools of the grid from what is free for those behind. */
function judge({ plan, free }: PlannedSite, isUp: boolean, jobs: ReadonlyMap<number, LockedJob>): Judged {
  const { siteId, starts } = plan;
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
    accepted.push({ start, job, context: plan.context, epoch: job.epoch + 1, devices, whole });
  }
  return { accepted, refused, outdated: false };
}

function allRefused({ plan }: PlannedSite): Judged {
  const why = "the site's promises have changed in the meantime";
  return { accepted: [], refused: plan.starts.map(({ jobId }) => ({ jobId, why })), outdated: true };
}

interface Admitted {
  start: Start;
  job: LockedJob;
  context: PlanContext;
  epoch: number;
  devices: string[][] | null;
  whole: WholeMachines | null;
}
/** `dispatchedAt`: epoch seconds. */
type LockedJob = StartedJob & { epoch: number; dispatchedAt: number | null };

/**
 * Locks the sites (nobody drains them meanwhile) and then the jobs, each in the order of ids. A site with a limit of running jobs, or of those
 * that wait with its own scheduler, is locked against other starts too, so that what is counted behind the lock stays true. `locked`: the
 * plans for which all of that is locked, or of one that waited everything that is there.
 */
async function lockJobs(
  tx: Transaction,
  plans: readonly SitePlan[],
  skipLocked: boolean,
): Promise<{ locked: readonly SitePlan[]; up: ReadonlySet<number>; jobs: Map<number, LockedJob> }> {
  const siteIds = list(
    'integer',
    plans.map(({ siteId }) => siteId),
  );
  const handingOver = list(
    'integer',
    plans.filter(handsOver).map(({ siteId }) => siteId),
  );
  const jobIds = plans.flatMap(({ starts }) => starts.map((start) => start.jobId));
  const skip = skipLocked ? sql`SKIP LOCKED` : empty;
  type Answer = [
    sites: [id: number, isUp: boolean, isLocked: boolean][],
    jobs: (LockedJob & { id: number })[],
  ];
  const [sites, found] = await value<Answer>(
    tx,
    prepared(sql`
WITH limited AS MATERIALIZED (
  SELECT id FROM sites WHERE id = ANY (${siteIds}) AND (max_running_jobs IS NOT NULL OR id = ANY (${handingOver})) ORDER BY id FOR NO KEY UPDATE ${skip}
), site AS MATERIALIZED (
  SELECT id, state, max_limit_s, max_running_jobs IS NOT NULL OR id = ANY (${handingOver}) AS is_limited FROM sites
   WHERE id = ANY (${siteIds}) AND removed_at IS NULL AND (SELECT count(*) FROM limited) >= 0 ORDER BY id FOR SHARE ${skip}
), job AS MATERIALIZED (
  SELECT id, state, site_id AS "siteId", user_id AS "userId", epoch, date_part('epoch', dispatched_at) AS "dispatchedAt", tasks, coalesce(run_time_limit_s, (SELECT max_limit_s FROM site WHERE site.id = jobs.site_id)) AS "runTimeLimitS", cpus_per_task AS "cpusPerTask", memory_mb_per_task AS "memoryMbPerTask", resources_per_task AS "resourcesPerTask", devices_per_task AS "devicesPerTask", tasks_per_machine AS "tasksPerMachine", exclusive, parts, licenses, resources, reservation_id AS "reservationId"
    FROM jobs WHERE id = ANY (${list('bigint', jobIds)}) ORDER BY id FOR NO KEY UPDATE ${skip}
)
SELECT json_build_array(
  (SELECT coalesce(json_agg(json_build_array(id, state = 'UP', NOT is_limited OR id IN (SELECT id FROM limited))), '[]') FROM site),
  (SELECT coalesce(json_agg(job), '[]') FROM job)) AS v`),
  );
  const jobs = new Map(found.map((job) => [job.id, job]));
  const up = new Set(sites.flatMap(([id, isUp]) => (isUp ? [id] : [])));
  if (!skipLocked) return { locked: plans, up, jobs };
  const own = new Set(sites.flatMap(([id, , isLocked]) => (isLocked ? [id] : [])));
  const locked = plans.filter(
    ({ siteId, starts }) => own.has(siteId) && starts.every(({ jobId }) => jobs.has(jobId)),
  );
  return { locked, up, jobs };
}

const handsOver = ({ starts }: SitePlan): boolean =>
  starts.some(({ allocations }) => allocations.length === 0);

/** A plan, and its site as it is. */
interface PlannedSite {
  plan: SitePlan;
  free: FreeResources;
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
 * locks. What is not usable by a site is not in what it has. And what the sites have reserved and promised, read behind them.
 */
async function lockResources(
  tx: Transaction,
  plans: readonly SitePlan[],
  skipLocked: boolean,
): Promise<PlannedSite[]> {
  if (plans.length === 0) return [];
  const starts = plans.flatMap((plan) => plan.starts);
  const siteIds = list(
    'integer',
    plans.map(({ siteId }) => siteId),
  );
  const machineIds = list('integer', [
    ...new Set(starts.flatMap(({ allocations }) => allocations.map(({ machineId }) => machineId))),
  ]);
  const licenseIds = list('integer', [...new Set(starts.flatMap(({ pools }) => pools.map(({ id }) => id)))]);
  const skip = skipLocked ? sql`SKIP LOCKED` : empty;
  // Who may wait does so where it writes them. The first of a site has no row yet: only another plan of the same site could be making it,
  // and the queue gives a site to one cycle at a time.
  const own = skipLocked ? sql`FOR NO KEY UPDATE SKIP LOCKED` : empty;
  const found = await value<Found>(
    tx,
    prepared(sql`
WITH machine AS MATERIALIZED (
  SELECT id, site_id, state, silent, problem, cpus, cpus_used, memory_mb, memory_used_mb, max_tasks, tasks_used, keeping_runs, resources, resources_used, devices FROM machines
   WHERE id = ANY (${machineIds}) AND site_id = ANY (${siteIds}) AND removed_at IS NULL
   ORDER BY id FOR NO KEY UPDATE ${skip}
), reservation AS MATERIALIZED (
  SELECT id, site_id FROM holds WHERE site_id = ANY (${siteIds}) AND ended_at IS NULL AND kind <> 'MAINTENANCE'
), license AS MATERIALIZED (
  SELECT id, site_id, kind, copies, in_use FROM licenses
   WHERE id = ANY (${licenseIds}) AND (site_id IS NULL OR site_id = ANY (${siteIds})) AND removed_at IS NULL
   ORDER BY id FOR NO KEY UPDATE ${skip}
), promised AS MATERIALIZED (
  SELECT site_id, body IS NOT NULL AS kept FROM promises WHERE site_id = ANY (${siteIds}) ORDER BY site_id ${own}
), reserved AS MATERIALIZED (
  SELECT site_id, ${raw(reservationArray)} AS v FROM reservations v WHERE site_id = ANY (${siteIds}) ORDER BY site_id ${own}
), pooled AS MATERIALIZED (
  SELECT id, kind, pools FROM holds WHERE ended_at IS NULL AND pools <> '[]' AND cardinality(${licenseIds}) > 0
)
SELECT json_build_array(
  (SELECT coalesce(json_agg(json_build_array(id, site_id, ${raw(isAvailable)}, cpus - cpus_used, memory_mb - memory_used_mb, cpus, memory_mb, max_tasks - tasks_used, max_tasks, resources, resources_used, devices,
            CASE WHEN devices <> '[]' THEN ${raw(unitsHeld)} END, keeping_runs > 0)), '[]') FROM machine),
  (SELECT coalesce(json_agg(json_build_array(id, site_id, kind, copies - in_use, copies)), '[]') FROM license),
  (SELECT coalesce(json_agg(site_id) FILTER (WHERE kept), '[]') FROM promised),
  (SELECT coalesce(json_agg(v), '[]') FROM reserved),
  (SELECT coalesce(json_agg(site_id), '[]') FROM (
     SELECT site_id FROM promises WHERE site_id = ANY (${siteIds}) AND site_id NOT IN (SELECT site_id FROM promised)
     UNION ALL
     SELECT site_id FROM reservations WHERE site_id = ANY (${siteIds}) AND site_id NOT IN (SELECT site_id FROM reserved)) others),
  (SELECT coalesce(json_agg(json_build_array(id, max_running_jobs - (SELECT count(*) FROM runs WHERE site_id = sites.id AND ended_at IS NULL))), '[]')
     FROM sites WHERE id = ANY (${siteIds}) AND max_running_jobs IS NOT NULL),
  (SELECT coalesce(json_agg(json_build_object('siteId', h.site_id, 'holdId', h.id, 'kind', h.kind, 'machineId', (m.part ->> 'machineId')::integer, 'amounts', m.part -> 'amounts',
            'from', extract(epoch FROM t.from_at), 'to', extract(epoch FROM t.to_at))), '[]')
     FROM holds h CROSS JOIN LATERAL (
       -- Whatever reaches into a later time reaches into the next one first.
       SELECT from_at, to_at FROM hold_times WHERE hold_id = h.id AND NOT over ORDER BY from_at LIMIT ${TIMES_KNOWN}) t
     -- Of the whole site: one part, of nothing.
     CROSS JOIN LATERAL jsonb_array_elements(coalesce(h.machines, '[null]')) AS m (part)
    WHERE h.site_id = ANY (${siteIds}) AND h.ended_at IS NULL
      AND (h.machines IS NULL OR (m.part ->> 'machineId')::integer = ANY (${machineIds}))),
  (SELECT coalesce(json_agg(json_build_array(id, site_id)), '[]') FROM reservation),
  CASE WHEN EXISTS (SELECT FROM reservation) THEN (
    SELECT coalesce(json_agg(json_build_object('holdId', j.reservation_id, 'machineId', u.machine_id,
              'amounts', CASE WHEN r.taken IS NOT NULL THEN r.taken -> (u.place - 1)::integer -> 'amounts' WHEN u.cpus IS NOT NULL THEN jsonb_build_object('cpus', u.cpus) ELSE (SELECT jsonb_object_agg(key, value::bigint * u.tasks) FROM jsonb_each_text(
                 coalesce(r.resources_per_task, '{}') || jsonb_build_object('cpus', r.cpus_per_task, 'memoryMb', r.memory_mb_per_task))) END)), '[]')
      FROM jobs j JOIN runs r ON r.job_id = j.id AND r.ended_at IS NULL, unnest(r.machine_ids, r.machine_tasks, r.whole_cpus) WITH ORDINALITY AS u (machine_id, tasks, cpus, place)
     WHERE j.reservation_id IN (SELECT id FROM reservation) AND u.machine_id = ANY (${machineIds})) ELSE '[]' END,
  -- Of the grid's also what other sites' holds have. Where nothing is held of the pools this is nothing.
  (SELECT coalesce(json_agg(json_build_object('holdId', h.id, 'kind', h.kind, 'id', (p.part ->> 'id')::integer, 'amount', (p.part ->> 'amount')::integer,
            'from', extract(epoch FROM t.from_at), 'to', extract(epoch FROM t.to_at))), '[]')
     FROM pooled h CROSS JOIN LATERAL (
       SELECT from_at, to_at FROM hold_times WHERE hold_id = h.id AND NOT over ORDER BY from_at LIMIT ${TIMES_KNOWN}) t
     CROSS JOIN LATERAL jsonb_array_elements(h.pools) AS p (part)
    WHERE (p.part ->> 'id')::integer = ANY (${licenseIds})),
  CASE WHEN EXISTS (SELECT FROM pooled) THEN (
    SELECT coalesce(json_agg(json_build_object('holdId', j.reservation_id, 'id', u.id, 'amount', coalesce(u.amount, 1))), '[]')
      FROM pooled h JOIN jobs j ON j.reservation_id = h.id JOIN runs r ON r.job_id = j.id AND r.ended_at IS NULL,
           unnest(r.license_ids, r.license_amounts) AS u (id, amount)
     WHERE h.pools @> jsonb_build_array(jsonb_build_object('id', u.id))) ELSE '[]' END) AS v`),
  );
  return sitesFrom(skipLocked ? plans.filter(hasLocked(found)) : plans, found);
}

/** What the statement above answers. `siteId` of a license null: it is the grid's. */
type Found = [
  machines: [
    id: number,
    siteId: number,
    isAvailable: boolean,
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
  licenses: [id: number, siteId: number | null, kind: string, copies: number, all: number][],
  /** Sites that have promised something. */
  promised: number[],
  reserved: ReservationArray[],
  /** Sites whose promises or reservation somebody else has locked. */
  others: number[],
  runs: [siteId: number, left: number][],
  parts: (HeldPart & { siteId: number })[],
  reservations: [id: number, siteId: number][],
  inside: TakenInside[],
  heldPools: HeldPoolPart[],
  poolsInside: PoolTakenInside[],
];

/** Whether all that a plan names is locked, and what its site has reserved and promised. */
function hasLocked([machines, licenses, , , others]: Found): (plan: SitePlan) => boolean {
  const machineIds = new Set(machines.map(([id]) => id));
  const licenseIds = new Set(licenses.map(([id]) => id));
  return ({ siteId, starts }) =>
    !others.includes(siteId) &&
    starts.every(
      ({ allocations, pools }) =>
        allocations.every(({ machineId }) => machineIds.has(machineId)) &&
        pools.every(({ id }) => licenseIds.has(id)),
    );
}

/** What each site has of it. Of pools of the grid all have the same. */
function sitesFrom(plans: readonly SitePlan[], found: Found): PlannedSite[] {
  const [machines, licenses, promised, reserved, , runs, parts, reservations, inside] = found;
  const [heldPools, poolsInside] = found.slice(9) as [HeldPoolPart[], PoolTakenInside[]];
  const pools = licenses.map(
    ([id, siteId, kind, copies, all]) => [id, siteId, { kind, copies, all }] as const,
  );
  return plans.map((plan): PlannedSite => {
    const { siteId, context } = plan;
    const own = new Set(reservations.flatMap(([id, at]) => (at === siteId ? [id] : [])));
    const reservation = reserved.find(([at]) => at === siteId);
    return {
      plan,
      free: {
        machines: new Map(
          machines.flatMap((machine) =>
            machine[1] === siteId && machine[2] ? [[machine[0], machineFrom(machine)]] : [],
          ),
        ),
        licenses: new Map(
          pools.flatMap(([id, at, pool]) => (at === null || at === siteId ? [[id, pool]] : [])),
        ),
        ...{ heldPools, poolsInside },
        runs: runs.find(([at]) => at === siteId)?.[1] ?? null,
        handOvers: null,
        ...{ held: parts.filter((part) => part.siteId === siteId), reservations: own },
        inside: inside.filter(({ holdId }) => own.has(holdId)),
        now: context.now,
      },
      reservation: reservation ? reservationFromArray(reservation) : null,
      promised: promised.includes(siteId),
    };
  });
}

function machineFrom([
  ,
  ,
  ,
  cpus,
  memoryMb,
  allCpus,
  allMemoryMb,
  places,
  allPlaces,
  has,
  used,
  devices,
  held,
  kept,
]: Found[0][number]) {
  return {
    ...{ cpus, memoryMb, places, allPlaces, devices, heldUnits: heldFrom(devices, held) },
    ...{ resources: freeOf(has, used), has: { ...has, cpus: allCpus, memoryMb: allMemoryMb } },
    ...{ kept, users: new Set<number>() },
  };
}

/**
 * Whose runs are on the machines, where some are kept from other users or are to be. Behind the locks of the machines, in a statement of
 * its own: one that has waited for them does not see the runs that began meanwhile.
 */
async function noteUsers(
  tx: Transaction,
  sites: readonly PlannedSite[],
  jobs: ReadonlyMap<number, LockedJob>,
): Promise<void> {
  const asks = ({ jobId }: Start): boolean => {
    const job = jobs.get(jobId);
    return job !== undefined && keepsMachines(job);
  };
  const asking = sites.filter(
    ({ plan, free }) => plan.starts.some(asks) || [...free.machines.values()].some(({ kept }) => kept),
  );
  if (asking.length === 0) return;
  const machines = new Map(asking.flatMap(({ free }) => [...free.machines]));
  const siteIds = list(
    'integer',
    asking.map(({ plan }) => plan.siteId),
  );
  const found = await value<[machineId: number, userIds: number[]][]>(
    tx,
    sql`
SELECT coalesce(json_agg(json_build_array(machine_id, user_ids)), '[]') AS v FROM (
  SELECT u.machine_id, array_agg(DISTINCT j.user_id) AS user_ids
    FROM runs r JOIN jobs j ON j.id = r.job_id, unnest(r.machine_ids) AS u (machine_id)
   WHERE r.site_id = ANY (${siteIds}) AND r.ended_at IS NULL AND u.machine_id = ANY (${list('integer', [...machines.keys()])})
   GROUP BY 1) there`,
  );
  for (const [id, userIds] of found) for (const userId of userIds) machines.get(id)?.users.add(userId);
}

/** How many more jobs may wait with the own scheduler of a site, of those to which jobs are handed over. Behind the locks of the sites. */
async function countHandOvers(tx: Transaction, sites: readonly PlannedSite[]): Promise<void> {
  const handing = sites.filter(({ plan }) => handsOver(plan));
  if (handing.length === 0) return;
  const siteIds = list(
    'integer',
    handing.map(({ plan }) => plan.siteId),
  );
  const found = await rows<{ siteId: number; local: { kind: string }; waiting: number }>(
    tx,
    sql`
SELECT s.id AS "siteId", coalesce(local_policy, (SELECT document->'local' FROM policies ORDER BY version DESC LIMIT 1)) AS local,
       (SELECT count(*) FROM runs WHERE site_id = s.id AND ended_at IS NULL AND started_at IS NULL) AS waiting
  FROM sites s WHERE id = ANY (${siteIds})`,
  );
  for (const { siteId, local, waiting } of found) {
    const { free } = handing.find(({ plan }) => plan.siteId === siteId) as PlannedSite;
    const limit = handOverLimit(local);
    free.handOvers = limit === null ? null : limit - waiting;
  }
}

const decision = ({ start, context }: Admitted) => {
  const { jobId, siteId, reason, explanation } = start;
  return { jobId, fromSiteId: siteId, siteId, reason, explanation, context };
};

/** The trigger on runs takes machines and licenses. */
function insertRuns(tx: Transaction, runs: readonly Admitted[]): Promise<void> {
  const columns: CopyColumns<Admitted> = {
    job_id: ['bigint', ({ start }) => start.jobId],
    epoch: ['integer', ({ epoch }) => epoch],
    site_id: ['integer', ({ start }) => start.siteId],
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
    policy_version: ['integer', ({ context }) => context.policyVersion],
    // The clock may have been set back.
    assigned_at: ['timestamptz', ({ job, context: { now } }) => Math.max(now, job.dispatchedAt ?? now)],
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

/** Writes them only where they changed: most cycles leave them as they were. */
async function keepReservations(tx: Transaction, sites: readonly PlannedSite[]): Promise<void> {
  const dropped = sites.flatMap(({ plan, reservation }) =>
    plan.reservation === null && reservation !== null ? [plan.siteId] : [],
  );
  const made = sites.flatMap(({ plan: { reservation }, reservation: known }) =>
    reservation === null || (known !== null && sameReservation(reservation, known)) ? [] : [reservation],
  );
  if (dropped.length > 0)
    await run(tx, sql`DELETE FROM reservations WHERE site_id = ANY (${list('integer', dropped)})`);
  if (made.length > 0) await putReservations(tx, made);
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

function putReservations(tx: Transaction, reservations: readonly Reservation[]): Promise<number> {
  const items = table('t', reservations, {
    site_id: ['integer', ({ siteId }) => siteId],
    job_id: ['bigint', ({ jobId }) => jobId],
    at: ['float8', ({ at }) => storable(at)],
    machine_ids: ['integer[]', ({ allocations }) => allocations.map(({ machineId }) => machineId)],
    machine_tasks: ['integer[]', ({ allocations }) => allocations.map(({ tasks }) => tasks)],
    license_ids: ['integer[]', ({ pools }) => idsOf(pools, true)],
    license_amounts: ['integer[]', ({ pools }) => pools.map(({ amount }) => amount)],
    made_at: ['float8', ({ madeAt }) => madeAt],
  });
  return run(
    tx,
    sql`
INSERT INTO reservations (site_id, job_id, at, machine_ids, machine_tasks, license_ids, license_amounts, made_at)
  SELECT site_id, job_id, to_timestamp(at), machine_ids, machine_tasks, license_ids, license_amounts, to_timestamp(made_at) FROM ${items} ORDER BY site_id
  ON CONFLICT (site_id) DO UPDATE SET job_id = excluded.job_id, at = excluded.at, machine_ids = excluded.machine_ids,
    machine_tasks = excluded.machine_tasks, license_ids = excluded.license_ids, license_amounts = excluded.license_amounts, made_at = excluded.made_at`,
  );
}

/** Behind the locks of machines and licenses. Answers with those whose plan was not made on what they have promised by now. */
async function keepPromises(tx: Transaction, sites: readonly PlannedSite[]): Promise<Set<PlannedSite>> {
  // Of a policy that is in force no more.
  const dropped = sites.flatMap(({ plan, promised }) =>
    plan.promises === null && promised ? [plan.siteId] : [],
  );
  if (dropped.length > 0)
    await run(
      tx,
      sql`UPDATE promises SET revision = revision + 1, body = NULL WHERE site_id = ANY (${list('integer', dropped)}) AND body IS NOT NULL`,
    );
  const kept = sites.filter(({ plan }) => plan.promises !== null);
  if (kept.length === 0) return new Set();
  const items = table('t', kept, {
    site_id: ['integer', ({ plan }) => plan.siteId],
    revision: ['bigint', ({ plan }) => (plan.promises as KeptPromises).revision],
    body: ['text', ({ plan }) => bodyOf(plan.promises as KeptPromises)],
  });
  const written = await rows<{ siteId: number }>(
    tx,
    sql`
INSERT INTO promises (site_id, revision, body) SELECT site_id, revision + 1, body::json FROM ${items} ORDER BY site_id
  ON CONFLICT (site_id) DO UPDATE SET revision = excluded.revision, body = excluded.body WHERE promises.revision = excluded.revision - 1
  RETURNING site_id AS "siteId"`,
  );
  const siteIds = new Set(written.map(({ siteId }) => siteId));
  return new Set(kept.filter(({ plan }) => !siteIds.has(plan.siteId)));
}

const bodyOf = ({ promises }: KeptPromises): string | null =>
  promises && JSON.stringify(promisesToArray(promises));

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
