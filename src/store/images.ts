/**
 * What schedulers know, as SQL answers it and as the core has it. Arrays of JSON: of 100 000 jobs there are two million values, and a
 * JSON object would repeat every name with each.
 */

import { likeLean, type Unshared, unsharedFields } from '../core/lean-jobs.js';
import type { FreeAtPromise, PromisesImage } from '../core/local/policy.js';
import type {
  Allocation,
  Dataset,
  Held,
  Job,
  JobData,
  License,
  Link,
  Machine,
  PoolAmount,
  Reservation,
  Run,
  RunTotals,
  Site,
  SiteImages,
  TreeScheduler,
  UserClass,
} from '../core/model.js';
import { parsePolicy } from '../core/policy.js';
import { recordOf } from '../platform/records.js';
import { TIMES_KNOWN, TRAFFIC_KEPT_S } from './constants.js';
import type { CopyType } from './copy.js';
import type { HeldMachines, HeldPools, HoldKind } from './holds.js';
import {
  isEnum,
  type JobField,
  jobColumn,
  jobFields,
  readField,
  type StoredJob,
  scheduledFields,
} from './job-fields.js';
import { type DescribedJob, dataOf, groupOf, STOP_GRACE_S, schedulersJob, stopping } from './rules.js';
import type { GridImage, JobImage, TrafficCount } from './store.js';

export const epoch = (column: string): string => `date_part('epoch', ${column})`;

// Jobs ------------------------------------------------------------------------------------------------------------------

const ofJob = scheduledFields('JOB');
const ofData = scheduledFields('DATA');
const isUnshared = (field: JobField): boolean => (unsharedFields as readonly JobField[]).includes(field);

/** Of a job and its user; then `ofJob`; `ofData` within, where there is any of it. */
export type JobArray = [userClass: UserClass, data: unknown[] | null, ...job: unknown[]];

/** In SQL, of a job `j`: its age counts from when it could first be scheduled. */
export const submittedAt = 'coalesce(j.eligible_at, j.submitted_at)';
const arrayOf = (fields: readonly JobField[]): string =>
  fields.map((field) => (field === 'submittedAt' ? epoch(submittedAt) : readField(field))).join(', ');
const hasData = ofData
  .filter((field) => jobFields[field].nullable || jobFields[field].sparse)
  .map((field) => `j.${jobColumn[field]} IS NOT NULL`)
  .join(' OR ');

/** A JobArray; needs jobs as j and users as u. */
export const jobArray = `json_build_array(
  u.class, CASE WHEN ${hasData} THEN json_build_array(${arrayOf(ofData)}) END, ${arrayOf(ofJob)})`;

/** What is copied out of jobs as j, for `JobReader`: what no job shares with others; then state and site, and what else schedulers know. */
const copiedFields: readonly JobField[] = [
  ...unsharedFields,
  ...(['state', 'siteId', ...ofJob, ...ofData] as const).filter((field) => !isUnshared(field)),
];
export const jobColumns = copiedFields
  .map((field) => (field === 'submittedAt' ? submittedAt : `j.${jobColumn[field]}`))
  .join(', ');
export const jobTypes: readonly CopyType[] = copiedFields.map((field) => {
  const { type } = jobFields[field];
  return isEnum(type) ? 'text' : type;
});
export const JOB_OWN = unsharedFields.length;

/** A job, and where it is. */
type PlacedJob = Pick<JobImage, 'job' | 'state' | 'siteId'>;

/** Makes jobs of rows of `jobColumns`, of which those from `JOB_OWN` on are read as one. */
export class JobReader {
  /** Of the row at hand: one object for all, for its fields are many. */
  private readonly fields: Partial<Record<JobField | 'userClass', unknown>> = {};
  /** By what jobs have in common: one that has it. */
  private readonly known = new WeakMap<readonly unknown[], PlacedJob>();

  /** `classes`: of users who are not REGULAR; `keep`: what is kept of a job. */
  constructor(
    private readonly classes: ReadonlyMap<number, UserClass>,
    private readonly keep: (job: Job) => Job,
  ) {}

  read(row: readonly unknown[]): PlacedJob {
    const alike = row[JOB_OWN] as readonly unknown[];
    const known = this.known.get(alike);
    const like = known && likeLean(known.job, unsharedOf(row));
    if (known && like) return { job: like, state: known.state, siteId: known.siteId };
    const { fields } = this;
    for (let i = 0; i < copiedFields.length; i++)
      fields[copiedFields[i] as JobField] = (i < JOB_OWN ? row[i] : alike[i - JOB_OWN]) ?? absent[i];
    fields.userClass = this.classes.get(fields.userId as number) ?? 'REGULAR';
    // All of them were written above, and a cast costs nothing for each of a million rows.
    const stored = fields as unknown as StoredJob & { userClass: UserClass };
    const { state, siteId } = stored;
    const made = { job: this.keep(schedulersJob(stored, dataOf(stored))), state, siteId };
    this.known.set(alike, made);
    return made;
  }
}

const fieldsNotShared = recordOf<Unshared & { groupId: number | null }>(unsharedFields);
const unsharedOf = (row: readonly unknown[]): Unshared => {
  const fields = fieldsNotShared(row);
  fields.groupId = groupOf(fields.id, fields.groupId);
  return fields;
};

/** What stands for null in the columns of `copiedFields`. */
const absent: readonly unknown[] = copiedFields.map((field) => (jobFields[field].sparse ? [] : null));

/** Of a JobArray, as it is: `jobFields` has the types of its fields. */
const describedJob = recordOf<DescribedJob>(['userClass', 'data', ...ofJob]);
const jobData = recordOf<JobData>(ofData);

export const jobFromArray = (values: JobArray): Job =>
  schedulersJob(describedJob(values), values[1] && jobData(values[1]));

// Runs and reservations ---------------------------------------------------------------------------------------------------

export type RunArray = [
  siteId: number,
  epoch: number,
  machineIds: number[],
  machineTasks: number[],
  licenseIds: number[],
  licenseAmounts: number[] | null,
  start: number,
  plannedS: number,
  waits: boolean,
  stopsAt: number | null,
  devices: string[][] | null,
  checkpointAt: number | null,
  limitS: number | null,
];

/**
 * The limit of a run, seconds; null: none. Needs runs as r and jobs as j. Processes of releases before that column enter runs without it: then
 * it is the job's own, which does not change while a run is live.
 */
export const limitOfRun = 'coalesce(r.limit_s, j.run_time_limit_s)';

/** Until when a run goes on at most, epoch seconds; null: its limit is not known, or it has none. Needs runs as r and jobs as j. */
export const untilLimit = `${epoch('coalesce(r.started_at, r.assigned_at)')} + ${limitOfRun}`;

/** A RunArray; needs runs as r and jobs as j. */
export const runArray = `json_build_array(
  r.site_id, r.epoch, r.machine_ids, r.machine_tasks, r.license_ids, r.license_amounts, ${epoch('coalesce(r.started_at, r.assigned_at)')}, r.planned_s,
  r.placed_by = 'SITE' AND r.started_at IS NULL,
  CASE WHEN j.state = 'CANCELLING' THEN ${epoch('j.changed_at')} + coalesce((j.preempted ->> 'graceS')::float8, ${STOP_GRACE_S}) END, r.devices, ${epoch('r.checkpoint_at')}, ${limitOfRun})`;

export function runFromArray(jobId: number, a: RunArray): Run {
  const [
    siteId,
    epoch,
    machineIds,
    machineTasks,
    licenseIds,
    licenseAmounts,
    start,
    plannedS,
    waits,
    stopsAt,
    devices,
    checkpointAt,
    limitS,
  ] = a;
  const allocations = allocationsFrom(machineIds, machineTasks);
  const pools = poolsFrom(licenseIds, licenseAmounts);
  const plannedEnd = start + plannedS;
  const run: Run = { jobId, siteId, epoch, allocations, pools, start, plannedEnd, limitS };
  if (devices !== null) run.devices = devices;
  if (checkpointAt !== null) run.checkpointAt = checkpointAt;
  if (stopsAt !== null) return stopping(run, stopsAt);
  return waits ? { ...run, waits } : run;
}

export type ReservationArray = [
  siteId: number,
  jobId: number,
  at: number,
  machineIds: number[],
  machineTasks: number[],
  licenseIds: number[],
  licenseAmounts: number[] | null,
  madeAt: number,
];

/** A ReservationArray; needs reservations as v. */
export const reservationArray = `json_build_array(
  v.site_id, v.job_id, ${epoch('v.at')}, v.machine_ids, v.machine_tasks, v.license_ids, v.license_amounts, ${epoch('v.made_at')})`;

export function reservationFromArray(a: ReservationArray): Reservation {
  const [siteId, jobId, at, machineIds, machineTasks, licenseIds, amounts, madeAt] = a;
  const allocations = allocationsFrom(machineIds, machineTasks);
  return { siteId, jobId, at, allocations, pools: poolsFrom(licenseIds, amounts), madeAt };
}

/** As promises are stored. */
export type PromisesArray = [
  room: [
    runs: number,
    cpus: number,
    memoryMb: number,
    copies: FreeAtPromise['copies'],
    further?: FreeAtPromise['amounts'],
  ],
  jobs: [
    jobId: number,
    at: number,
    machineIds: number[],
    machineTasks: number[],
    licenseIds: number[],
    work: number,
    madeAt: number,
    /** Left out: one of each id. */
    licenseAmounts?: readonly number[],
  ][],
];

export function promisesFromArray([
  [runs, cpus, memoryMb, copies, further],
  jobs,
]: PromisesArray): PromisesImage {
  return {
    room: { runs, amounts: { cpus, memoryMb, ...further }, copies },
    jobs: jobs.map(([jobId, at, machineIds, machineTasks, licenseIds, work, madeAt, amounts]) => {
      const allocations = allocationsFrom(machineIds, machineTasks);
      return { jobId, at, allocations, pools: poolsFrom(licenseIds, amounts ?? null), work, madeAt };
    }),
  };
}

function roomToArray(
  runs: number,
  { cpus = 0, memoryMb = 0, ...others }: FreeAtPromise['amounts'],
  copies: FreeAtPromise['copies'],
): PromisesArray[0] {
  const further = Object.entries(others).filter(([, amount]) => amount !== 0);
  return further.length === 0
    ? [runs, cpus, memoryMb, copies]
    : [runs, cpus, memoryMb, copies, Object.fromEntries(further)];
}

export const promisesToArray = ({ room: { runs, amounts, copies }, jobs }: PromisesImage): PromisesArray => [
  roomToArray(runs, amounts, copies),
  jobs.map(({ jobId, at, allocations, pools, work, madeAt }) => [
    jobId,
    at,
    allocations.map(({ machineId }) => machineId),
    allocations.map(({ tasks }) => tasks),
    idsOf(pools),
    work,
    madeAt,
    ...(pools.length === 0 ? ([] as const) : ([pools.map(({ amount }) => amount)] as const)),
  ]),
];

/** As they are stored of a run: `each` false, as of jobs that list licenses only: one entry for each copy, and no amounts. */
export const idsOf = (pools: readonly PoolAmount[], once = true): number[] =>
  pools.flatMap(({ id, amount }) => (once ? [id] : new Array<number>(amount).fill(id)));

/** Amounts null: one of each id, which may be there several times. */
export function poolsFrom(ids: readonly number[], amounts: readonly number[] | null): readonly PoolAmount[] {
  if (ids.length === 0) return NO_POOLS;
  const pools = new Map<number, number>();
  ids.forEach((id, i) => {
    pools.set(id, (pools.get(id) ?? 0) + (amounts?.[i] ?? 1));
  });
  return [...pools].map(([id, amount]) => ({ id, amount }));
}
const NO_POOLS: readonly PoolAmount[] = [];

function allocationsFrom(machineIds: readonly number[], tasks: readonly number[]): Allocation[] {
  return machineIds.map((machineId, i) => ({ machineId, tasks: tasks[i] as number }));
}

// The directory and data --------------------------------------------------------------------------------------------------

export type DirectoryArray = [
  policy: { version: number; document: unknown } | null,
  sites: Site[],
  machines: Machine[],
  licenses: License[],
  schedulers: TreeScheduler[],
  holds: HeldArray[],
];

/** `machines` null: all of the site. `to` null: until it is ended by hand. */
export type HeldArray = [
  id: number,
  siteId: number,
  kind: HoldKind,
  machines: HeldMachines,
  from: number,
  to: number | null,
  holdId: number,
  pools: HeldPools,
];

/** A HeldArray; needs holds as h and their times as t. */
export const heldArray = `json_build_array(
  t.id, h.site_id, h.kind, h.machines, ${epoch('t.from_at')}, ${epoch('t.to_at')}, h.id, h.pools)`;

export const heldFromArray = ([id, siteId, kind, machines, from, to, holdId, pools]: HeldArray): Held => ({
  id,
  by: kind === 'MAINTENANCE' ? 'WINDOW' : 'RESERVATION',
  from,
  to: to ?? Infinity,
  ends: 'LIMIT',
  machines: machines ?? [],
  siteId: machines === null ? siteId : null,
  reservation: kind === 'MAINTENANCE' ? null : { id: holdId, siteId },
  pools: pools.map(({ id, amount }) => ({ id, amount })),
});

/** PoolAmount[] that a run has; needs runs as r. */
export const poolsOfRun = `(SELECT coalesce(json_agg(json_build_object('id', p.id, 'amount', p.amount)), '[]')
   FROM (SELECT u.id, sum(coalesce(u.amount, 1))::integer AS amount FROM unnest(r.license_ids, r.license_amounts) AS u (id, amount) GROUP BY 1) p)`;

/** HoldablePool[] of the site, and of the grid. */
export const poolsAt = (siteId: string): string => `(
  SELECT coalesce(json_agg(json_build_object('id', id, 'kind', kind, 'copies', copies, 'shared', site_id IS NULL) ORDER BY id), '[]')
    FROM licenses WHERE removed_at IS NULL AND coalesce(site_id, ${siteId}) = ${siteId})`;

/** LiveRun[] of other sites that have some of the grid's pools. */
export const holdersElsewhere = (siteId: string): string => `(
  SELECT coalesce(json_agg(json_build_object('jobId', r.job_id, 'machineIds', '[]'::json, 'machineTasks', '[]'::json, 'amounts', '{}'::json,
           'alone', false, 'taken', NULL, 'until', ${untilLimit},
           'reservationId', j.reservation_id, 'pools', ${poolsOfRun}) ORDER BY r.job_id), '[]')
    FROM runs r JOIN jobs j ON j.id = r.job_id
   WHERE r.site_id <> ${siteId} AND r.ended_at IS NULL AND r.license_ids && (SELECT coalesce(array_agg(id), '{}') FROM licenses WHERE site_id IS NULL AND removed_at IS NULL))`;

/** OpenTime[] of other sites' holds of pools; those that are not the grid's are none of the site's. */
export const heldElsewhere = (siteId: string): string => `(
  SELECT coalesce(json_agg(json_build_object('holdId', h.id, 'kind', h.kind, 'userId', h.user_id, 'machines', '[]'::json, 'pools', h.pools,
           'from', ${epoch('t.from_at')}, 'to', ${epoch('t.to_at')}) ORDER BY t.id), '[]')
    FROM holds h JOIN hold_times t ON t.hold_id = h.id AND NOT t.over
   WHERE h.site_id <> ${siteId} AND h.ended_at IS NULL AND h.pools <> '[]')`;

/** Of machines: something may be put on it. */
export const isAvailable = "state = 'UP' AND NOT silent AND problem IS NULL";

/** A DirectoryArray as it is now; machines are available where a condition holds. */
export const directoryArray = (available = isAvailable): string => `json_build_array(
  (SELECT json_build_object('version', version, 'document', document) FROM policies ORDER BY version DESC LIMIT 1),
  (SELECT coalesce(json_agg(json_build_object('id', id, 'name', name, 'state', state, 'localPolicy', local_policy,
            'maxRunningJobs', max_running_jobs, 'maxLimitS', max_limit_s, 'schedulerId', scheduler_id,
            'position', CASE WHEN latitude IS NOT NULL AND longitude IS NOT NULL
                             THEN json_build_object('latitude', latitude, 'longitude', longitude) END, 'load', load) ORDER BY id), '[]')
     FROM sites WHERE removed_at IS NULL),
  (SELECT coalesce(json_agg(json_build_object('id', id, 'siteId', site_id, 'cpus', cpus, 'memoryMb', memory_mb,
            'benchmark', benchmark, 'os', os, 'architecture', architecture, 'licenseIds', license_ids, 'available', ${available},
            'maxTasks', max_tasks, 'resources', resources, 'labels', coalesce(measured -> 'labels', '{}') || labels, 'devices', devices) ORDER BY id), '[]')
     FROM machines WHERE removed_at IS NULL),
  (SELECT coalesce(json_agg(json_build_object('id', id, 'kind', kind, 'copies', copies, 'siteId', site_id) ORDER BY id), '[]')
     FROM licenses WHERE removed_at IS NULL),
  (SELECT coalesce(json_agg(json_build_object('id', id, 'name', name, 'parentId', parent_id) ORDER BY id), '[]')
     FROM schedulers WHERE removed_at IS NULL),
  (SELECT coalesce(json_agg(${heldArray} ORDER BY t.id), '[]')
     FROM holds h CROSS JOIN LATERAL (
       SELECT id, from_at, to_at FROM hold_times WHERE hold_id = h.id AND NOT over ORDER BY from_at LIMIT ${TIMES_KNOWN}) t
    WHERE h.ended_at IS NULL))`;

/** Throws where no policy has been stored: the database was never prepared (`bootstrap`). */
export function directoryFromArray(
  a: DirectoryArray,
): Pick<GridImage, 'policy' | 'sites' | 'machines' | 'licenses' | 'schedulers' | 'holds'> {
  const [policy, sites, machines, licenses, schedulers, held] = a;
  const holds = held.map(heldFromArray);
  if (policy === null) throw new Error('there is no policy: the database has not been initialized');
  const { version, document } = policy;
  return {
    policy: { version, document: parsePolicy(document) },
    sites,
    machines,
    licenses,
    schedulers,
    holds,
  };
}

/** A Dataset; needs datasets as v. */
export const datasetObject = `json_build_object('id', v.id, 'sizeMb', v.size_mb,
  'siteIds', (SELECT coalesce(json_agg(site_id ORDER BY site_id), '[]') FROM dataset_replicas WHERE dataset_id = v.id))`;
/** A Link; needs links as v. */
export const linkObject = `json_build_object('fromSiteId', v.from_site_id, 'toSiteId', v.to_site_id,
  'bandwidthMbPerS', v.bandwidth_mb_per_s, 'rttS', v.rtt_s, 'loss', v.loss)`;
/** A RunTotals as it is told: JSON has no numbers of that size. */
export type ToldTotals = Omit<RunTotals, 'turnaround' | 'execution' | 'io'> &
  Record<'turnaround' | 'execution' | 'io', string>;
/** Needs run_totals as v. */
export const totalsObject = `json_build_object('application', v.application, 'userId', v.user_id, 'kinds', v.kinds,
  'count', v.count, 'turnaround', v.turnaround::text, 'execution', v.execution::text, 'io', v.io::text)`;

export const totalsFromTold = (told: readonly ToldTotals[]): RunTotals[] =>
  told.map(({ turnaround, execution, io, ...of }) => ({
    ...of,
    turnaround: BigInt(turnaround),
    execution: BigInt(execution),
    io: BigInt(io),
  }));

export type DataArray = [
  datasets: Dataset[],
  links: Link[],
  quotas: GridImage['quotas'],
  totals: ToldTotals[],
  traffic: TrafficCount[],
  classes: [userId: number, userClass: UserClass][],
  images: SiteImages[],
];

/** `SiteImages.sizesMb`: the most that any of its agents has told of each. `siteId`: in SQL. */
const sizesAt = (
  siteId: string,
): string => `(SELECT coalesce(json_object_agg(name, size_mb ORDER BY name), '{}')
  FROM (SELECT name, max(size_mb) AS size_mb FROM agent_images WHERE site_id = ${siteId} GROUP BY name) i)`;
/** SiteImages; needs the id of a site as v. */
export const siteImagesObject = `json_build_object('siteId', v.id, 'sizesMb', ${sizesAt('v.id')})`;

/** A DataArray as it is now. */
export const dataArray = `json_build_array(
  (SELECT coalesce(json_agg(${datasetObject} ORDER BY v.id), '[]') FROM datasets v WHERE removed_at IS NULL),
  (SELECT coalesce(json_agg(${linkObject} ORDER BY v.from_site_id, v.to_site_id), '[]') FROM links v),
  (SELECT coalesce(json_agg(json_build_object('userId', id, 'share', quota_share) ORDER BY id), '[]')
     FROM users WHERE quota_share <> 1),
  (SELECT coalesce(json_agg(${totalsObject}), '[]') FROM run_totals v),
  (SELECT coalesce(json_agg(json_build_object('siteId', site_id, 'at', at, 'arrivals', arrivals, 'services', services)
            ORDER BY at, site_id), '[]')
     FROM traffic WHERE at > extract(epoch FROM clock_timestamp()) - ${TRAFFIC_KEPT_S}),
  (SELECT coalesce(json_agg(json_build_array(id, class)), '[]') FROM users WHERE class <> 'REGULAR'),
  (SELECT coalesce(json_agg(${siteImagesObject} ORDER BY v.id), '[]') FROM (SELECT DISTINCT site_id AS id FROM agent_images) v))`;

/** The largest event id that anybody can see; the horizon where retention has deleted them all. */
export const latestCursor = `greatest((SELECT max(id) FROM events), (SELECT id FROM events_horizon))`;
