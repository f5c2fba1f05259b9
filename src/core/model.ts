/**
 * What the schedulers know of the world: sites, machines, licenses, jobs, and what a plan consists of.
 *
 * Words: a job is *held* by one scheduler at a time, the root or a site's. A *move* gives it from one to the
 * other, a *start* takes machines and licenses for it, a *reservation* is the start promised to the first job of a
 * site's queue that does not fit now.
 *
 * Time is a number of seconds from an origin that the driver chooses; the core only compares and adds. Ids are
 * numbers; wherever the rules leave a tie, the lower id goes first.
 */
import type { ReasonCode } from './reasons.js';
import type { Labels } from './resources/constraint.js';
import type { DeviceRequest, OwnedDevice } from './resources/devices.js';

/** Level-1 priorities lie in 0..MAX_PRIORITY, so that sums over them stay small arrays. */
export const MAX_PRIORITY = 4096;

/** Preemption classes are 0..PREEMPTION_CLASS_MAX. */
export const PREEMPTION_CLASS_MAX = 9;

export type SiteState = 'UP' | 'DRAINING' | 'DOWN';

export interface Site {
  id: number;
  name: string;
  state: SiteState;
  /** A document of the kind that `localPolicySchema` accepts, in which only the local policies look; null: the policy's. */
  localPolicy: { readonly kind: string } | null;
  /** Jobs that run here at once at most; null or left out: as many as fit. */
  maxRunningJobs?: number | null;
  /** The longest limit of a job that it takes, seconds, and the limit of jobs without one of their own (`limitAt`). Null or left out: any. */
  maxLimitS?: number | null;
  /** The scheduler of the tree that it is under; null or left out: the root. */
  schedulerId?: number | null;
  /** Degrees; null or left out: nobody knows. */
  position?: Position | null;
  /** What its own scheduler has, where it has one and has said so; null or left out: nothing is known. */
  load?: SiteLoad | null;
}

/**
 * Seconds after which a run of the job at the site is stopped: the job's own limit, else the site's (jobs.md, "Times of one run"). Infinity:
 * never. `site` null: it is at none.
 */
export const limitAt = (
  { runTimeLimitS }: Pick<Job, 'runTimeLimitS'>,
  site: Pick<Site, 'maxLimitS'> | null,
): number => runTimeLimitS ?? site?.maxLimitS ?? Infinity;

/** What a site that schedules itself has, as its agent has reported it: jobs that are not ours, and what is taken of its machines by any job. */
export interface SiteLoad {
  waitingJobs: number;
  /** The time limits of these jobs, seconds; and each times its CPUs. */
  waitingS: number;
  waitingCpuS: number;
  /** It takes jobs of several parts, each on machines of its own; left out: it takes none. */
  takesParts?: boolean;
  /** It can be asked for whole devices by kind and model; left out: it cannot. */
  takesDevices?: boolean;
  /** The longest limit of a run of ours, seconds; null or left out: any. */
  longestS?: number | null;
  /** How long jobs of ours lately waited there, by shape, as the service has seen it; left out: nothing was seen. */
  waits?: readonly ObservedWait[];
  busy: readonly { machineId: number; cpus: number; memoryMb: number }[];
}

/** How long jobs of one shape waited (terms/observed-waits.ts). */
export interface ObservedWait {
  /** The largest shapes of the class; null: any larger, and without limit. */
  cpusMax: number | null;
  limitMaxS: number | null;
  /** How many were looked at, at least 1. */
  runs: number;
  /** Mean, seconds. */
  waitS: number;
}

export interface Position {
  latitude: number;
  longitude: number;
}

/** A scheduler between the root and sites (grid-tree.md). */
export interface TreeScheduler {
  id: number;
  name: string;
  /** null: the root. */
  parentId: number | null;
}

/** What a user would like and can do without: it holds at a site where all that is given is so (grid-tree.md, "Butterfly"). */
export interface JobPreference {
  siteId?: number;
  /** Machines of the site have all of these, together with room for a task as large. */
  os?: string;
  architecture?: string;
  licenses?: readonly string[];
  cpusPerTask?: number;
  memoryMbPerTask?: number;
}

export interface Machine {
  id: number;
  siteId: number;
  cpus: number;
  memoryMb: number;
  /** Relative power, > 0. A job estimated on power `b` takes `estimate·b/benchmark` here. */
  benchmark: number;
  os: string;
  architecture: string;
  /**
   * Ids of the licenses to which it is restricted; empty: it can run every license of its site and of the grid (two-level.md: licenses
   * are executable on each machine). One of a kind is enough: copies of one kind are interchangeable, so a machine
   * that lists the site's pool of a kind can also be served from the grid's.
   */
  licenseIds: readonly number[];
  /** Up and not draining. */
  available: boolean;
  /**
   * Null or left out: shared in space, a CPU belongs to one job at a time. A number: shared in time, so many tasks share
   * all CPUs, and only memory is taken (hierarchical-clusters.md). The tasks of a job then sit on different machines.
   */
  maxTasks?: number | null;
  /** What it has besides, by kind of resource as an operator has named it: whole numbers. */
  resources?: Readonly<Record<string, number>>;
  /** What operators and its agent say of it: name and text; left out: nothing. Its platform and site are labels, too (`labelsOf`). */
  labels?: Labels;
  /** What it has by name, counted among its resources; left out: nothing. */
  devices?: readonly OwnedDevice[];
}

/** A pool: so much of a kind of resource that no machine has, but a site or the whole grid, such as copies of a license. Jobs hold amounts of it. */
export interface License {
  id: number;
  kind: string;
  /** How much jobs may hold of it at once. */
  copies: number;
  /** null: the grid-wide pool. */
  siteId: number | null;
}

/** An amount of a pool, by the pool's id. */
export interface PoolAmount {
  readonly id: number;
  readonly amount: number;
}

/** An amount of a kind that is counted in pools. */
export interface PoolsAsked {
  readonly kind: string;
  readonly amount: number;
}

/** What is held of machines or pools for a time, beside runs and what is promised to jobs (resources.md, "Holds in the future"). */
export interface Held {
  id: number;
  /** Users may hold machines, operators close them, and a site may have load that is not ours. */
  by: 'RESERVATION' | 'WINDOW' | 'OTHERS';
  from: number;
  /** Infinity: until it is ended by hand. */
  to: number;
  /** By limit: no run may reach into it, whatever is expected of it. By expectation: as other runs are counted. */
  ends: 'LIMIT' | 'EXPECTATION';
  /** By kind of resource; null: the whole machine. */
  machines: readonly { machineId: number; amounts: Readonly<Record<string, number>> | null }[];
  /** All machines of the site, those that come later among them; null or left out: none but `machines`. */
  siteId?: number | null;
  /** Jobs that name it run in it (`Job.reservationId`); all its times have the same id. Null or left out: no job runs in it. */
  reservation?: { id: number; siteId: number } | null;
  /** Each pool once. */
  pools: readonly PoolAmount[];
}

export type UserClass = 'GOLD' | 'SILVER' | 'REGULAR';

export interface Job {
  id: number;
  userId: number;
  userClass: UserClass;
  submittedAt: number;
  /** Expected run time in seconds on a machine of power `benchmark`, > 0. */
  estimateS: number;
  benchmark: number;
  deadline: number | null;
  /** One task sits on one machine; several may span machines of one site. */
  tasks: number;
  cpusPerTask: number;
  memoryMbPerTask: number;
  /** What each task takes besides, by kind of resource; null: nothing. */
  resourcesPerTask: Readonly<Record<string, number>> | null;
  /** Devices that each task asks for beside that by what they are (resources.md, "A shape"), whoever is served first first; null: none. */
  devicesPerTask: readonly DeviceRequest[] | null;
  /** On each machine that has any of its tasks; null: any number (resources.md, "A shape"). */
  tasksPerMachine: TasksPerMachine | null;
  /** MACHINE: no other job runs on its machines, whatever it asks of them; USER: none of another user; null: it may have neighbors. */
  exclusive: Exclusive | null;
  /** Labels of which all its machines have the same values (resources.md, "A shape"); null: none. */
  allAlike: readonly string[] | null;
  /** Its machines are on one switch: their label `switch` is the same; null: it does not matter. */
  sameSwitch: SameSwitch | null;
  /**
   * What its tasks ask for that are not all alike, in the order of the tasks; null: they are. Then `tasks` are those of all parts, and amounts
   * for each task the most that any part asks for: who does not look at parts sees a job that needs no less (`envelopeOf`).
   */
  parts: readonly JobPart[] | null;
  /** Kinds of licenses, sorted, each as often as the job holds copies of it. */
  licenses: readonly string[];
  /** Amounts of kinds that are counted in pools of sites and of the grid, for the whole job; null: none (`poolsAskedBy`). */
  resources: Readonly<Record<string, number>> | null;
  os: string | null;
  architecture: string | null;
  /** An expression over labels that its machines satisfy (resources/constraint.ts); null: any do. */
  machineConstraint: string | null;
  /** What it runs in, by the image's one name: only machines whose agents run images take it; null: their own system. */
  image: string | null;
  /** The operator's integer addend to the priority at both levels, 0 by default. */
  boost: number;
  /** Level-1 priority, set at dispatch; without the boost, so that a boost can be taken back. */
  priority: number | null;
  /** Its own limit: seconds after which a run of it is stopped; null: the site's (`limitAt`). */
  runTimeLimitS: number | null;
  /** Seconds from SIGTERM at its limit to SIGKILL: a run that is past its limit is planned to end so much later. */
  killGraceS: number;
  /** What program it runs: runs of one application make up its history (job-ratio.md). */
  application: string;
  /** On whose behalf it runs: level 1 of two-level may value it; null: nobody's. */
  project: string | null;
  /** Jobs submitted together share it: DIANA exports whole groups. */
  groupId: number;
  /** When it last went from one site's meta-queue to another's; null: never (diana.md, "Congestion and migration"). */
  migratedAt: number | null;
  /** Since when it waits for nothing but machines; null: since it was submitted. */
  eligibleAt: number | null;
  /** When it came to the local queue that holds it: the order of arrival there; null: it is in none, or came when it was submitted. */
  dispatchedAt: number | null;
  /** What it reads and writes, and where; null: nothing that matters for where it runs. */
  data: JobData | null;
  preferences: readonly JobPreference[];
  /** The scheduler between root and sites that holds it; null: none of them does. Only the grid tree's policy makes a difference of it. */
  schedulerId: number | null;
  /** How often butterfly and load-balance have moved it. */
  treeMoves: number;
  /** Where its next run is not to be, because earlier ones failed there; null: it may be anywhere. */
  avoids: Avoids | null;
  /** It runs inside this one, and nowhere else, for as long as there is more of it; null: beside all of them. */
  reservationId: number | null;
  /** The name of its class in the policy (classes.ts); null: it has none. */
  class: string | null;
  /** Without a class, its rank: 0 to 9. Runs of lower ranks may be stopped for it (jobs.md, "Preemption"). */
  preemptionClass: number;
  /** Its processes may be started again, so that its run may be stopped for others. */
  restartable: boolean;
  /** What was made free for it by stopping others; null: nothing. */
  promised: PromisedRoom | null;
  /** Where it stands in its workflow, for policies that go by that; null: it is of none. */
  workflow: WorkflowPlace | null;
}

/** What a job holds of pools while it runs, in order of kind: copies of the licenses that it lists, and amounts. */
export function poolsAskedBy({ licenses, resources }: Pick<Job, 'licenses' | 'resources'>): PoolsAsked[] {
  if (licenses.length === 0 && resources === null) return [];
  const asked = new Map<string, number>();
  for (const kind of licenses) asked.set(kind, (asked.get(kind) ?? 0) + 1);
  for (const [kind, amount] of Object.entries(resources ?? {}))
    asked.set(kind, (asked.get(kind) ?? 0) + amount);
  return [...asked]
    .map(([kind, amount]) => ({ kind, amount }))
    .sort((a, b) => (a.kind < b.kind ? -1 : a.kind > b.kind ? 1 : 0));
}

/** Whether it is anything. */
export const asksPools = ({ licenses, resources }: Pick<Job, 'licenses' | 'resources'>): boolean =>
  licenses.length > 0 || resources !== null;

/** A part of a job (resources.md, "A shape"): tasks that ask for the same. All parts are placed at one instant at one site, or none. */
export interface JobPart
  extends Pick<
    Job,
    | 'tasks'
    | 'cpusPerTask'
    | 'memoryMbPerTask'
    | 'resourcesPerTask'
    | 'tasksPerMachine'
    | 'exclusive'
    | 'allAlike'
    /** Besides that of the job. */
    | 'machineConstraint'
  > {
  /** Its machines are on one switch; null or left out, as of jobs stored by earlier releases: it does not matter. */
  sameSwitch?: SameSwitch | null;
  /** null or left out, as of jobs stored by earlier releases: none. */
  devicesPerTask?: readonly DeviceRequest[] | null;
}

/** What a job asks for that has these parts, as one that has none would. */
export function envelopeOf(
  parts: readonly (Pick<JobPart, 'tasks' | 'cpusPerTask' | 'memoryMbPerTask'> &
    Partial<Pick<JobPart, 'resourcesPerTask' | 'devicesPerTask'>>)[],
): Pick<Job, 'tasks' | 'cpusPerTask' | 'memoryMbPerTask' | 'resourcesPerTask'> {
  const most: Record<string, number> = {};
  for (const { resourcesPerTask } of parts)
    for (const [kind, amount] of Object.entries(resourcesPerTask ?? {}))
      most[kind] = Math.max(most[kind] ?? 0, amount);
  return {
    tasks: parts.reduce((sum, { tasks }) => sum + tasks, 0),
    cpusPerTask: Math.max(...parts.map(({ cpusPerTask }) => cpusPerTask)),
    memoryMbPerTask: Math.max(...parts.map(({ memoryMbPerTask }) => memoryMbPerTask)),
    // Of devices that are asked for by what they are there is no most: that there are any is said by amounts, if only none.
    resourcesPerTask: Object.keys(most).length === 0 && !parts.some(asksDevices) ? null : most,
  };
}

const asksDevices = ({ devicesPerTask }: Partial<Pick<JobPart, 'devicesPerTask'>>): boolean =>
  (devicesPerTask ?? null) !== null;

/** Both, of which either may be none. */
export const bothConstraints = (a: string | null, b: string | null): string | null =>
  a === null || b === null ? (a ?? b) : `(${a}) and (${b})`;

/** A job that has the part alone. */
export const ofPart = <J extends Pick<Job, 'machineConstraint'>>(job: J, part: JobPart) => ({
  ...{ ...job, ...part },
  machineConstraint: bothConstraints(job.machineConstraint, part.machineConstraint),
  ...{ parts: null, sameSwitch: part.sameSwitch ?? null, devicesPerTask: part.devicesPerTask ?? null },
});

/**
 * Of places that hold so many tasks each, which are of one part after the other: those of each part, from `begin` to before `end`. No place
 * holds tasks of two parts.
 */
export function placesByPart(
  parts: readonly Pick<JobPart, 'tasks'>[],
  tasks: readonly number[],
): { begin: number; end: number }[] {
  let end = 0;
  return parts.map((part) => {
    const begin = end;
    for (let left = part.tasks; left > 0 && end < tasks.length; end++) left -= tasks[end] as number;
    return { begin, end };
  });
}

type Tasks = Pick<Job, 'tasks' | 'cpusPerTask'>;

/** CPUs of all its tasks: processors, as the papers call them. */
export function cpusOf({
  tasks,
  cpusPerTask,
  parts,
}: Tasks & { readonly parts: readonly Tasks[] | null }): number {
  if (parts === null) return tasks * cpusPerTask;
  let cpus = 0;
  for (const part of parts) cpus += part.tasks * part.cpusPerTask;
  return cpus;
}

/** Memory of all its tasks, MB. */
export const memoryMbOf = ({
  tasks,
  memoryMbPerTask,
  parts,
}: Pick<Job, 'tasks' | 'memoryMbPerTask' | 'parts'>): number =>
  parts === null
    ? tasks * memoryMbPerTask
    : parts.reduce((sum, part) => sum + part.tasks * part.memoryMbPerTask, 0);

/** CPUs of the tasks of a job of these parts, by allocation. */
export function cpusByAllocation(parts: readonly JobPart[], allocations: readonly Allocation[]): number[] {
  let at = 0;
  let left = parts[0]?.tasks ?? 0;
  return allocations.map(({ tasks }) => {
    if (left <= 0) left = parts[++at]?.tasks ?? 0;
    left -= tasks;
    return tasks * (parts[at] as JobPart).cpusPerTask;
  });
}

/** At least `min`, from 1; `max` null: as many as fit. */
export interface TasksPerMachine {
  readonly min: number;
  readonly max: number | null;
}

export const ANY_TASKS_PER_MACHINE: TasksPerMachine = { min: 1, max: null };

/** `maxWaitS`: so long after it is eligible a job waits for such machines, and then takes any; null: it requires them. */
export interface SameSwitch {
  readonly maxWaitS: number | null;
}

/** The label that says on which switch a machine is. */
export const SWITCH = 'switch';

/** Until when the job takes only machines on one switch; Infinity: it requires them. */
export const switchUntil = ({
  sameSwitch,
  eligibleAt,
  submittedAt,
}: Pick<Job, 'sameSwitch' | 'eligibleAt' | 'submittedAt'>): number =>
  sameSwitch === null
    ? Number.NEGATIVE_INFINITY
    : sameSwitch.maxWaitS === null
      ? Infinity
      : (eligibleAt ?? submittedAt) + sameSwitch.maxWaitS;

/** When first after `now` the job, or a part of it, takes machines on any switches, too; Infinity: never. */
export function switchesAfter(
  { sameSwitch, parts, eligibleAt, submittedAt }: Parameters<typeof switchUntil>[0] & Pick<Job, 'parts'>,
  now: number,
): number {
  let first = Infinity;
  for (const one of parts ?? [{ sameSwitch }]) {
    const until = switchUntil({ sameSwitch: one.sameSwitch ?? null, eligibleAt, submittedAt });
    if (until > now && until < first) first = until;
  }
  return first;
}

/** What a job may have to itself. */
export const exclusives = ['MACHINE', 'USER'] as const;
export type Exclusive = (typeof exclusives)[number];

/** Of a job that was submitted with others that it needs, or that need it (jobs.md, "Ranks of a workflow"). */
export interface WorkflowPlace {
  /** When the workflow was submitted. */
  since: number;
  /** In the order of ranks, from 1: no job has one before a job that it needs. */
  place: number;
  /** The longest way from its start to the end of the workflow, seconds. */
  rankS: number;
}

/** Room at a site that a job has from an instant on, before all others that wait there. */
export interface PromisedRoom {
  siteId: number;
  /** The reservation inside which it is; left out: it is beside all of them. */
  reservationId?: number;
  at: number;
  allocations: readonly Allocation[];
  /** Each pool once; left out: none. */
  pools?: readonly PoolAmount[];
}

/** Ids of machines, and of sites whose machines others choose. */
export interface Places {
  readonly machines: readonly number[];
  readonly sites: readonly number[];
}

/** Where runs of a job failed: all of them and, should there be room nowhere else, the latest; should there be none then either, it goes there. */
export interface Avoids {
  readonly failed: Places;
  readonly last: Places;
}

/** The level-1 priority that counts: with the operator's boost, inside the bounds. */
export const effectivePriority = ({ priority, boost }: Pick<Job, 'priority' | 'boost'>): number =>
  Math.max(0, Math.min(MAX_PRIORITY, (priority ?? 0) + boost));

/**
 * A job: what is not given is as of one that asks for one CPU for a time. In one literal, not by spreading defaults, so that all
 * have one shape: millions of them are simulated.
 */
export const plainJob = (given: Partial<Job> & Pick<Job, 'id' | 'submittedAt' | 'estimateS'>): Job => ({
  id: given.id,
  userId: given.userId ?? 1,
  userClass: given.userClass ?? 'REGULAR',
  submittedAt: given.submittedAt,
  estimateS: given.estimateS,
  benchmark: given.benchmark ?? 1,
  deadline: given.deadline ?? null,
  tasks: given.tasks ?? 1,
  cpusPerTask: given.cpusPerTask ?? 1,
  memoryMbPerTask: given.memoryMbPerTask ?? 0,
  resourcesPerTask: given.resourcesPerTask ?? null,
  devicesPerTask: given.devicesPerTask ?? null,
  tasksPerMachine: given.tasksPerMachine ?? null,
  exclusive: given.exclusive ?? null,
  allAlike: given.allAlike ?? null,
  sameSwitch: given.sameSwitch ?? null,
  parts: given.parts ?? null,
  licenses: given.licenses ?? NO_LICENSES,
  resources: given.resources ?? null,
  os: given.os ?? null,
  architecture: given.architecture ?? null,
  machineConstraint: given.machineConstraint ?? null,
  image: given.image ?? null,
  boost: given.boost ?? 0,
  priority: given.priority ?? null,
  runTimeLimitS: given.runTimeLimitS ?? null,
  killGraceS: given.killGraceS ?? KILL_GRACE_S,
  application: given.application ?? '',
  project: given.project ?? null,
  groupId: given.groupId ?? 0,
  migratedAt: given.migratedAt ?? null,
  eligibleAt: given.eligibleAt ?? null,
  dispatchedAt: given.dispatchedAt ?? null,
  data: given.data ?? null,
  preferences: given.preferences ?? NO_PREFERENCES,
  schedulerId: given.schedulerId ?? null,
  treeMoves: given.treeMoves ?? 0,
  avoids: given.avoids ?? null,
  reservationId: given.reservationId ?? null,
  class: given.class ?? null,
  preemptionClass: given.preemptionClass ?? 0,
  restartable: given.restartable ?? true,
  promised: given.promised ?? null,
  workflow: given.workflow ?? null,
});
/** Of jobs that say nothing of it, seconds. */
export const KILL_GRACE_S = 30;
const NO_LICENSES: readonly string[] = [];
export const NO_PREFERENCES: readonly JobPreference[] = [];

/** What a job moves over the network. Amounts are megabytes (10^6 bytes). */
export interface JobData {
  /** The site it was submitted from: its sandbox comes from there and its output goes there; null: nowhere in the grid. */
  originSiteId: number | null;
  /** What travels with the job: program and small files. */
  sandboxMb: number;
  inputs: readonly JobInput[];
  outputMb: number;
  /** What its owner declares to be the share of computation in its run time, 0 to 1; null: nothing. */
  computationShare: number | null;
}

/** What is not given is nothing, and nowhere. */
export const jobData = (given: Partial<JobData>): JobData => ({
  originSiteId: null,
  sandboxMb: 0,
  inputs: [],
  outputMb: 0,
  computationShare: null,
  ...given,
});

/** An input: a dataset, or so much at a place. `from`: it is what another job keeps, at the site where that ended. */
export type JobInput = ({ datasetId: number } | { sizeMb: number; siteId: number }) & { from?: KeptOutput };

/** A file that a job keeps for others to read. */
export interface KeptOutput {
  job: number;
  /** Path below the directory of its run. */
  path: string;
  /** Its size as whoever reads it expects it, until the job has ended. */
  expectedMb: number;
}

/** No dataset has this id: what is there only when another job has ended, and what that has not kept. */
export const NO_DATASET = 0;

/** Something that jobs read, with copies at sites. */
export interface Dataset {
  id: number;
  sizeMb: number;
  /** Sites with a copy, ascending. */
  siteIds: readonly number[];
}

/** The images of jobs that lie at a site, ready to be used. */
export interface SiteImages {
  siteId: number;
  /** By its one name, as jobs have it: megabytes that it takes there. */
  sizesMb: Readonly<Record<string, number>>;
}

/** What is known of an image. */
export interface KnownImage {
  /** The most that it takes at any site. */
  sizeMb: number;
  /** Where it lies, ascending. */
  siteIds: readonly number[];
}

/** The network from one site to another. */
export interface Link {
  fromSiteId: number;
  toSiteId: number;
  /** Megabytes a second, > 0. */
  bandwidthMbPerS: number;
  rttS: number;
  /** Share of packets lost, 0 ≤ loss < 1. */
  loss: number;
}

/**
 * What the runs that one user made of one application with the same kinds of resources came to (job-ratio.md, "Job Analyzer and
 * Monitor"): times scaled to the reference power. Sums, exact in whole units (structures/units.ts): the averages are these over the
 * count, and are the same in whatever order runs came.
 */
export interface RunTotals {
  application: string;
  userId: number;
  /** `resourceKinds` of the jobs. */
  kinds: string;
  /** Runs, at least 1. */
  count: number;
  turnaround: bigint;
  execution: bigint;
  io: bigint;
}

export interface Allocation {
  machineId: number;
  tasks: number;
}

export interface Run {
  jobId: number;
  siteId: number;
  epoch: number;
  allocations: readonly Allocation[];
  /** Each pool once. */
  pools: readonly PoolAmount[];
  /** For each of its allocations, the devices and shares of devices that it has there, by name. Left out: none, or whoever keeps the run says nothing of them. */
  devices?: readonly (readonly string[])[];
  start: number;
  plannedEnd: number;
  /** The site's own scheduler has it, and has not started it. Left out: it has machines, or has started. */
  waits?: boolean;
  /** It was asked to stop, and is killed then at the latest. Left out: it goes on. */
  stopsAt?: number;
  /** When it last kept what it had done. Left out: never. */
  checkpointAt?: number;
  /** The limit that it was given at its start, seconds, whatever the site's is since; null: none. Left out: whoever keeps the run has not noted it. */
  limitS?: number | null;
}

/** A job goes from one scheduler to another. */
export type Move = SiteMove | TreeMove;

interface AnyMove {
  jobId: number;
  /** null: the root, or a scheduler between it and sites; else the site in whose meta-queue it is. */
  from: number | null;
  priority: number;
  reason: ReasonCode;
  explanation: DispatchExplanation;
  /** What `Job.treeMoves` is from now on; left out: as it was. */
  treeMoves?: number;
}

/** To a site. */
export interface SiteMove extends AnyMove {
  to: number;
  /** Which of the site's queues takes it: the local one (DISPATCHED), or the meta-queue, from which it can still go elsewhere. */
  queue: 'LOCAL' | 'META';
}

/** To a scheduler above the sites; null: the root. */
export interface TreeMove extends AnyMove {
  to: number | null;
  queue: 'SCHEDULER';
}

/** A step of a job through the tree; neither site nor scheduler: to the root. */
export interface TreeStep {
  schedulerId?: number;
  siteId?: number;
  reason: ReasonCode;
}

/** A job takes machines and licenses of its site now, or is handed over to the site's own scheduler. */
export interface Start {
  jobId: number;
  siteId: number;
  /** Empty: the site chooses. */
  allocations: Allocation[];
  pools: readonly PoolAmount[];
  plannedDuration: number;
  reason: ReasonCode;
  explanation: StartExplanation;
}

/** Runs of lower ranks are stopped, and a job is promised their room. */
export interface Preemption {
  jobId: number;
  siteId: number;
  /** Of the job for which they are stopped. */
  class: string | null;
  preemptionClass: number;
  /** In the order in which they would be taken. Empty: there is room, though other jobs are ahead of it. */
  victims: PreemptedRun[];
  room: PromisedRoom;
}

/** For whom and how a run is stopped: kept with its job until it has ended. */
export interface PreemptedFor extends Pick<PreemptedRun, 'lostWork' | 'requeue' | 'graceS'> {
  /** null: for what is held. */
  jobId: number | null;
  /** The maintenance or reservation. */
  holdId?: number;
  /** Of that job. Records of the release before do not have it. */
  class?: string | null;
  preemptionClass: number;
}

export interface PreemptedRun {
  jobId: number;
  epoch: number;
  /** Core-seconds. */
  lostWork: number;
  /** It is queued again; else it ends. */
  requeue: boolean;
  /** From SIGTERM to SIGKILL. */
  graceS: number;
}

/** The earliest start of the first job that does not fit: later jobs of the queue may not delay it. */
export interface Reservation {
  siteId: number;
  jobId: number;
  at: number;
  allocations: Allocation[];
  pools: readonly PoolAmount[];
  madeAt: number;
}

/** The terms of a level-1 priority (two-level.md, "Meta-Scheduler priority"). */
export type MsTerms = {
  deadline: number;
  licenses: number;
  user: number;
  project: number;
  service: number;
};

/**
 * Why a move went where it did. Compact, for ten thousand of them are stored at a time: the arrays under `terms` are
 * aligned with `sites`. `describeDispatch` makes it readable.
 *
 * The terms are named in the order in which the policy compares them, and the least value goes first, unless
 * `highestFirst`.
 */
export interface DispatchExplanation {
  /** Eligible sites, in the stable site order. */
  sites: readonly number[];
  /** By name of the term, a value for each of `sites`. */
  terms: Readonly<Record<string, readonly number[]>>;
  /** Sites left by the terms: one, or those among which the generator drew. */
  candidates: readonly number[];
  /** By site id: why it could not take the job. */
  ineligible: Readonly<Record<number, ReasonCode>>;
  /** The highest value goes first. */
  highestFirst?: true;
  /** Only so many of the terms, the first ones, are compared; the others say what they are made of. Absent: all. */
  compared?: number;
  /** The level at which the terms were read: priority and boost; null: the policy has no levels. */
  level: number | null;
  /** What the policy knows of the job itself, by name: the terms of its priority, its job ratio; null: nothing. */
  priorityTerms: Readonly<Record<string, number>> | null;
  /** What was known of the job's image; null: it lay nowhere, so it counted as nothing. Absent: the job has none, or the policy weighs no data. */
  image?: KnownImage | null;
  /** Under a policy with schedulers between root and sites: the way that the job went, step by step. */
  path?: readonly TreeStep[];
}

/** The terms of a level-2 priority (two-level.md, "Level 2"). */
export interface LsTerms {
  aging: number;
  deadline: number;
  licenses: number;
  waitMinimization: number;
}

/** Why a start was possible. */
export interface StartExplanation {
  /** Jobs in the queue when the cycle began, this one included. */
  queued: number;
  /** What ordered the queue: level-1 priority, the site's own priority, the time of submission, or the ranks of workflows. */
  order: 'PRIORITY' | 'OWN_PRIORITY' | 'ARRIVAL' | 'RANK';
  /** The job's value in that order. */
  orderValue: number;
  /** With OWN_PRIORITY: its terms. */
  terms: LsTerms | null;
  /** The reservation that the start had to respect. */
  reservation: { jobId: number; at: number } | null;
}
