/** The arrays that the statements of sql/grid.ts answer, as objects of the core's model. */
import type { PromisedRoom, PromisesImage } from '../core/local/policy.js';
import type {
  Allocation,
  Dataset,
  Job,
  JobData,
  JobInput,
  License,
  Link,
  Machine,
  Reservation,
  Run,
  RunAverages,
  Site,
  UserClass,
} from '../core/model.js';
import { parsePolicy } from '../core/policy.js';
import { groupOf } from './rules.js';
import type { GridImage, TrafficCount } from './store.js';

export type JobArray = [
  id: number,
  userId: number,
  userClass: UserClass,
  submit: number,
  estimate: number,
  benchmark: number,
  deadline: number | null,
  tasks: number,
  cpusPerTask: number,
  memoryMbPerTask: number,
  licenses: string[],
  os: string | null,
  architecture: string | null,
  boost: number,
  priority: number | null,
  runTimeLimit: number | null,
  application: string,
  groupId: number | null,
  migratedAt: number | null,
  data: DataArray | null,
];

type DataArray = [
  originSiteId: number | null,
  sandboxMb: number,
  inputs: JobInput[] | null,
  outputMb: number,
  computationShare: number | null,
];

export function jobFromArray(a: JobArray): Job {
  return {
    id: a[0],
    userId: a[1],
    userClass: a[2],
    submittedAt: a[3],
    estimateS: a[4],
    benchmark: a[5],
    deadline: a[6],
    tasks: a[7],
    cpusPerTask: a[8],
    memoryMbPerTask: a[9],
    licenses: a[10],
    os: a[11],
    architecture: a[12],
    boost: a[13],
    priority: a[14],
    runTimeLimitS: a[15],
    application: a[16],
    groupId: groupOf(a[0], a[17]),
    migratedAt: a[18],
    data: a[19] && dataFromArray(a[19]),
  };
}

function dataFromArray([originSiteId, sandboxMb, inputs, outputMb, computationShare]: DataArray): JobData {
  return { originSiteId, sandboxMb, inputs: inputs ?? [], outputMb, computationShare };
}

export type RunArray = [
  siteId: number,
  epoch: number,
  machineIds: number[],
  machineTasks: number[],
  licenseIds: number[],
  start: number,
  plannedS: number,
];

export function runFromArray(jobId: number, a: RunArray): Run {
  const [siteId, epoch, machineIds, machineTasks, licenseIds, start, plannedS] = a;
  const allocations = allocationsFrom(machineIds, machineTasks);
  return { jobId, siteId, epoch, allocations, licenseIds, start, plannedEnd: start + plannedS };
}

export type ReservationArray = [
  siteId: number,
  jobId: number,
  at: number,
  machineIds: number[],
  machineTasks: number[],
  licenseIds: number[],
  madeAt: number,
];

export function reservationFromArray(a: ReservationArray): Reservation {
  const [siteId, jobId, at, machineIds, machineTasks, licenseIds, madeAt] = a;
  return { siteId, jobId, at, allocations: allocationsFrom(machineIds, machineTasks), licenseIds, madeAt };
}

/** As it is stored. */
export type PromisesArray = [
  room: [runs: number, cpus: number, memoryMb: number, copies: PromisedRoom['copies']],
  jobs: [
    jobId: number,
    at: number,
    machineIds: number[],
    machineTasks: number[],
    licenseIds: number[],
    work: number,
    madeAt: number,
  ][],
];

export function promisesFromArray([[runs, cpus, memoryMb, copies], jobs]: PromisesArray): PromisesImage {
  return {
    room: { runs, cpus, memoryMb, copies },
    jobs: jobs.map(([jobId, at, machineIds, machineTasks, licenseIds, work, madeAt]) => {
      return { jobId, at, allocations: allocationsFrom(machineIds, machineTasks), licenseIds, work, madeAt };
    }),
  };
}

export const promisesToArray = ({ room, jobs }: PromisesImage): PromisesArray => [
  [room.runs, room.cpus, room.memoryMb, room.copies],
  jobs.map(({ jobId, at, allocations, licenseIds, work, madeAt }) => [
    jobId,
    at,
    allocations.map(({ machineId }) => machineId),
    allocations.map(({ tasks }) => tasks),
    licenseIds,
    work,
    madeAt,
  ]),
];

function allocationsFrom(machineIds: readonly number[], tasks: readonly number[]): Allocation[] {
  return machineIds.map((machineId, i) => ({ machineId, tasks: tasks[i] as number }));
}

export type DirectoryArray = [
  policy: { version: number; document: unknown } | null,
  sites: Site[],
  machines: Machine[],
  licenses: License[],
];

export type DataArrays = [
  datasets: Dataset[],
  links: Link[],
  quotas: GridImage['quotas'],
  averages: RunAverages[],
  traffic: TrafficCount[],
];

/** Throws where no policy has been stored: the database was never prepared (`bootstrap`). */
export function directoryFromArray(
  a: DirectoryArray,
): Pick<GridImage, 'policy' | 'sites' | 'machines' | 'licenses'> {
  const [policy, sites, machines, licenses] = a;
  if (policy === null) throw new Error('no policy is in force: the database has not been bootstrapped');
  const { version, document } = policy;
  return { policy: { version, document: parsePolicy(document) }, sites, machines, licenses };
}
