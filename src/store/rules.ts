/**
 * What a plan or a report may do to a job, as pure functions: the same for every implementation of the store.
 */
import {
  type Allocation,
  ANY_TASKS_PER_MACHINE,
  type Exclusive,
  type Job,
  type JobData,
  type JobPart,
  type PreemptedFor,
  type Preemption,
  placesByPart,
  poolsAskedBy,
  type Run,
  type Start,
  type TasksPerMachine,
} from '../core/model.js';
import type { Labels } from '../core/resources/constraint.js';
import type { DeviceRequest, OwnedDevice } from '../core/resources/devices.js';
import { chooseUnits, countUnits, type HeldUnit, holdUnits, unitsAskedBy } from '../core/resources/units.js';
import { type EndCause, isLive, isTerminal, isWaiting, type JobState } from '../core/states.js';
import { referenceOf } from '../platform/images.js';
import {
  addAmounts,
  amountsOf,
  type HeldPart,
  type HeldPoolPart,
  type PartTaken,
  type PoolTakenInside,
  type TakenInside,
  whyClosed,
  whyHeld,
  whyNotInside,
  whyPoolHeld,
} from './holds.js';
import type { GivenJob, StoredJob } from './job-fields.js';
import type { NewWait } from './needs.js';
import {
  decideNext,
  decidePreempted,
  givenBack,
  type Retried,
  type RetryFacts,
  requeued,
  stoppedThere,
} from './retries.js';
import type { EventRow, MachineRow } from './rows.js';
import type {
  AgentRegistration,
  MachineClaim,
  Measurement,
  OutputPiece,
  ReportResult,
  RunReport,
  SentSignal,
  Share,
} from './store.js';

// Signals -------------------------------------------------------------------------------------------------------------

/** Of those that have been sent to a run. */
export const SIGNALS_KEPT = 16;
/** What the event of a job tells of one. */
export const signalNote = ({ signal, to }: Omit<SentSignal, 'number'>): string =>
  `${signal} sent to ${{ ALL: 'all its processes', COMMAND: 'its command', OTHERS: 'what its command has started' }[to]}`;

// Reports -------------------------------------------------------------------------------------------------------------

/** A job as a batch of reports sees it. */
export interface ReportedJob {
  state: JobState;
  epoch: number;
  cause: EndCause | null;
  stopCause: EndCause | null;
  preempted: PreemptedFor | null;
  /** Its latest run has been reported as started. */
  started: boolean;
  /** Some of its tasks have begun, whatever became of others. */
  begun?: boolean;
}

/**
 * What tells a run from another one of the same job and epoch: a database that was restored from a backup gives out their numbers again, at
 * another time.
 *
 * @param assignedAt epoch seconds
 */
export const tokenOf = (assignedAt: number): string => String(Math.round(assignedAt * 1e6));

/**
 * The number by which a peer knows a granted run: its epoch, and above it a tag of when it was granted. So what peers say of runs that a restored
 * database has forgotten is not taken for runs that have their numbers by then. Beyond 1023 epochs there is none: nobody can tell.
 */
export const toldEpoch = (epoch: number, assignedAt: number): number =>
  epoch < EPOCHS_TOLD ? tagOf(assignedAt) * EPOCHS_TOLD + epoch : epoch;

/** What a peer means by such a number. Plain epochs are those that the release before granted. */
export const meantRun = (told: number): { epoch: number; token: string | null } =>
  told < EPOCHS_TOLD ** 2
    ? { epoch: told, token: null }
    : { epoch: told % EPOCHS_TOLD, token: peerToken(Math.floor(told / EPOCHS_TOLD)) };

const EPOCHS_TOLD = 1024;
const TAGS = 2 ** 31 / EPOCHS_TOLD;
/** From 1024 on, so that no plain epoch in use has one. */
const tagOf = (assignedAt: number): number =>
  EPOCHS_TOLD + (Math.round(assignedAt * 1000) % (TAGS - EPOCHS_TOLD));
const peerToken = (tag: number): string => `peer ${tag}`;

/** Whether a run is the one that somebody speaks of; without a token nobody can tell. */
export const isMeant = (token: string | null | undefined, assignedAt: number | null): boolean =>
  token == null ||
  (assignedAt !== null && (token === tokenOf(assignedAt) || token === peerToken(tagOf(assignedAt))));

/** Bytes kept of the beginning of a stream when its user's share of outputs is used up. */
const SHORT_BYTES = 1_000;

/** What is kept of a piece when there are `left` bytes of its user's share: all of it; else the beginning of the stream and its length. */
export function keptPiece<P extends OutputPiece>(piece: P, left: number): P {
  const { start, body } = piece;
  if (start + body.length <= SHORT_BYTES || body.length <= left) return piece;
  return { ...piece, start: 0, body: body.subarray(0, start === 0 ? SHORT_BYTES : 0) };
}

/** Where an ended run leaves its job. */
export type JobEnd =
  | { state: 'COMPLETED' | 'FAILED' | 'CANCELLED'; cause: EndCause; retry: Retried | null }
  /** To be started again: it waits at the root, for a time, or for its release. */
  | { state: 'QUEUED' | 'BLOCKED' | 'HELD'; cause: null; retry: Retried };
/** The job has ended with its run. */
export type FinalEnd = Extract<JobEnd, { cause: EndCause }>;

export interface Judgment {
  result: ReportResult;
  /** The run started by this report. */
  started: boolean;
  /** The run ended by this report. */
  end: JobEnd | null;
}

/** Launches that fail for the sake of a machine in a row until it is drained. */
export const MACHINE_FAILURES_MAX = 3;
/** Causes with which the service itself ends runs: an agent that still has such a run must stop it. */
const endedByService: ReadonlySet<EndCause> = new Set(['LOST', 'RUN_TIME_LIMIT']);

/** What a report is answered that is not about a live run; null: it is. */
export function overtaken(job: ReportedJob, report: RunReport): 'stale-epoch' | 'repeated' | null {
  if (report.epoch !== job.epoch) return 'stale-epoch';
  if (isLive(job.state)) return null;
  const known =
    isTerminal(job.state) && (report.phase === 'ENDED' || !endedByService.has(job.cause as EndCause));
  return known ? 'repeated' : 'stale-epoch';
}

/**
 * Judges a report about a run that was at the reporting site. `job` is as earlier reports of the batch left it. `facts`: asked for where the run
 * has ended badly.
 */
export function judgeReport(
  job: ReportedJob,
  report: RunReport,
  maxAttempts: number,
  facts: () => RetryFacts,
): Judgment {
  const refused = (result: ReportResult): Judgment => ({ result, started: false, end: null });
  const late = overtaken(job, report);
  if (late !== null) return refused(late);
  if (report.phase === 'ACCEPTED') return { result: 'accepted', started: false, end: null };
  if (report.phase === 'STARTED') {
    if (job.started) return refused('repeated');
    return { result: 'accepted', started: true, end: null };
  }
  if (report.cause === null)
    throw new RangeError('report.cause is null; accepted when phase is ENDED: a cause of end');
  const ended = { ...report, cause: report.cause };
  return { result: 'accepted', started: false, end: endOfJob(job, ended, maxAttempts, facts) };
}

/**
 * The times of the reports of a batch as they are taken, epoch seconds. Agents' clocks are their own, and may be wrong by any amount: what counts
 * is how long before it was sent something happened. A run starts when it has been assigned, ends when it has started, and neither later than
 * now; should the database's clock have been set back, their order counts. What is put right of a start holds for the end in the same batch too,
 * so that the run lasts as long as the agent says.
 */
export function timesOfReports(reports: readonly RunReport[], now: number) {
  const told = ({ at, sentAt }: RunReport): number => at + (now - (sentAt ?? now));
  /** By job: what has to be added to the times of its run's reports. */
  const shift = new Map<number, number>();
  for (const report of reports)
    shift.set(report.jobId, Math.min(shift.get(report.jobId) ?? 0, now - told(report)));
  /** `from`: when the run was assigned or, for its end, started; null: nobody knows. */
  return (report: RunReport, from: number | null): number => {
    const meant = told(report) + (shift.get(report.jobId) ?? 0);
    const taken = Math.max(from ?? -Infinity, Math.min(meant, now));
    if (taken > meant) shift.set(report.jobId, taken - told(report));
    return taken;
  };
}

/** What a run is told to have ended by, where somebody stopped it. */
export const causeOfRun = (job: Pick<ReportedJob, 'stopCause'>, end: JobEnd, cause: EndCause | null) =>
  (end.cause === null && job.stopCause === 'REQUEUED') ||
  (end.state !== 'COMPLETED' && job.stopCause === 'PREEMPTED')
    ? job.stopCause
    : cause;

function endOfJob(
  job: ReportedJob,
  ended: RunReport & { cause: EndCause },
  maxAttempts: number,
  facts: () => RetryFacts,
): JobEnd {
  const { cause } = ended;
  if (cause === 'EXITED_ZERO') return { state: 'COMPLETED', cause, retry: null };
  if (job.state === 'CANCELLING' && job.stopCause === 'REQUEUED')
    return { state: 'QUEUED', cause: null, retry: requeued(facts()) };
  if (job.state === 'CANCELLING' && job.stopCause === 'PREEMPTED' && job.preempted?.requeue) {
    const retry = decidePreempted(facts(), ended, job.preempted, maxAttempts);
    if (retry.action === 'FAIL') return { state: 'CANCELLED', cause: 'PREEMPTED', retry };
    return { state: retry.action === 'HOLD' ? 'HELD' : 'QUEUED', cause: null, retry };
  }
  if (job.state === 'CANCELLING')
    return { state: 'CANCELLED', cause: job.stopCause ?? 'CANCELLED_BY_USER', retry: null };
  if (cause === 'REQUEUED' && !job.started)
    return { state: 'QUEUED', cause: null, retry: givenBack(facts()) };
  // Ours are asked to stop before: this is of a run at a peer, which has stopped it for another job.
  const retry =
    cause === 'PREEMPTED'
      ? stoppedThere(facts(), ended, job.started, maxAttempts)
      : decideNext(facts(), ended, maxAttempts);
  if (retry.action === 'FAIL') return { state: 'FAILED', cause, retry };
  if (retry.action === 'HOLD') return { state: 'HELD', cause: null, retry };
  return { state: (retry.delayS ?? 0) > 0 ? 'BLOCKED' : 'QUEUED', cause: null, retry };
}

/** The scheduler that decides about a waiting job: in a meta-queue it is the root, which runs for all of them. null: the root. */
export const holderOf = (state: JobState, siteId: number | null): number | null =>
  state === 'QUEUED' ? null : siteId;

/** What the service itself finds of a run. */
export const serviceReport = (
  run: Pick<RunReport, 'jobId' | 'epoch' | 'task'>,
  at: number,
  cause: EndCause,
  message: string,
): RunReport => ({
  ...{ jobId: run.jobId, epoch: run.epoch, task: run.task ?? null, at, cause, phase: 'ENDED', message },
  ...{ exitCode: null, signal: null, cpuS: null, ioWaitS: null },
});

// Machines and their agents -------------------------------------------------------------------------------------------

/** A machine that an agent asks for, as it is. */
export interface ClaimedMachine {
  machineId: number;
  name: string;
  /** Who holds the lease or, of a silent machine, held it last. */
  agentId: number | null;
  holderHost: string | null;
  holderSeenAt: number | null;
  silent: boolean;
  /** Runs of another agent are live on it. */
  busy: boolean;
  cpus: number;
  memoryMb: number;
  os: string;
  architecture: string;
  problem: string | null;
  measured: Measurement | null;
  devices: readonly OwnedDevice[];
}

/** What becomes of an agent's claim. `refused`: why it may not serve the machine; `changed`: something of the machine is other than it was. */
export interface Claimed extends Pick<MachineClaim, 'name' | 'measured' | 'problem'> {
  machineId: number;
  refused: string | null;
  changed: boolean;
}

/** A machine has one agent at a time: another gets it when the lease has run out and nothing of its former holder is live there. */
export function claim(
  { identity, machines, host }: Pick<AgentRegistration, 'identity' | 'machines' | 'host'>,
  agentId: number,
  machine: ClaimedMachine,
  now: number,
): Claimed {
  const { machineId, name, holderHost, holderSeenAt } = machine;
  const own = machine.agentId === agentId;
  const asked = machines?.find((one) => one.name === name) ?? { measured: null, problem: null, waits: null };
  const { measured, waits } = asked;
  const problem = asked.problem ?? waits ?? (measured && mismatch(machine, measured));
  const answer = { machineId, name, measured, problem };
  if (waits !== null && !own) return { ...answer, refused: waits, changed: false };
  if (machine.agentId !== null && !own && (!machine.silent || machine.busy)) {
    const heard = `last heard from ${Math.max(0, Math.round(now - (holderSeenAt ?? now)))} s ago`;
    const same = holderHost === host ? ' on the same host, with another state directory' : '';
    const refused = `machine ${name} is served by another agent${same || ` on ${holderHost}`} (${heard}); ${identity} on ${host} does not start jobs there`;
    return { ...answer, refused, changed: false };
  }
  const changed =
    !own || machine.silent || machine.problem !== problem || keyOf(machine.measured) !== keyOf(measured);
  return { ...answer, refused: null, changed };
}

const keyOf = (measured: Measurement | null): string => {
  if (measured === null) return '';
  const { cpus, memoryMb, os, architecture, model, benchmark, gpus, labels = {}, devices = [] } = measured;
  return JSON.stringify([
    cpus,
    memoryMb,
    os,
    architecture,
    model ?? null,
    benchmark,
    gpus.map((gpu) => [gpu.name, gpu.memoryMb]),
    Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)),
    ...devices.map(({ id, kind, model, memoryMb, shares, link, oneUser = false }) => [
      ...[id, kind, model, memoryMb, shares],
      ...[link, oneUser],
    ]),
  ]);
};

/** Of the memory that is installed the system shows a little less. */
const MEMORY_TOLERANCE = 0.05;

/** How what an administrator has configured disagrees with what is there; null: it does not. What is configured is what is used, and may be less. */
function mismatch(
  configured: Pick<ClaimedMachine, 'cpus' | 'memoryMb' | 'os' | 'architecture' | 'devices'>,
  measured: Measurement,
): string | null {
  const wrong = [
    ...(configured.cpus > measured.cpus ? [`cpus ${configured.cpus}, measured ${measured.cpus}`] : []),
    ...(configured.memoryMb * (1 - MEMORY_TOLERANCE) > measured.memoryMb
      ? [`memoryMb ${configured.memoryMb}, measured ${measured.memoryMb}`]
      : []),
    ...(['os', 'architecture'] as const).flatMap((field) =>
      configured[field] === measured[field]
        ? []
        : [`${field} ${configured[field]}, measured ${measured[field]}`],
    ),
    ...configured.devices.flatMap((device) => {
      const found = (measured.devices ?? []).find(({ id }) => id === device.id);
      const shown = ({ kind, model, memoryMb }: OwnedDevice) => `${kind} ${model ?? ''} of ${memoryMb} MB`;
      if (found === undefined) return [`device ${device.id}, not found`];
      const less = device.memoryMb * (1 - MEMORY_TOLERANCE) > found.memoryMb;
      // Agents of earlier releases numbered the kinds of unlike devices, and machines were registered with these.
      const isKind = found.kind === device.kind || found.kind === device.kind.replace(/\d+$/, '');
      const other = !isKind || (device.model !== null && device.model !== found.model);
      return less || other ? [`device ${device.id} ${shown(device)}, measured ${shown(found)}`] : [];
    }),
  ];
  return wrong.length === 0 ? null : `its hardware does not match its registration: ${wrong.join('; ')}`;
}

// Starts --------------------------------------------------------------------------------------------------------------

/** A job as a start sees it. */
export interface StartedJob {
  state: JobState;
  siteId: number | null;
  userId: number;
  tasks: number;
  cpusPerTask: number;
  memoryMbPerTask: number;
  resourcesPerTask: Amounts | null;
  devicesPerTask: readonly DeviceRequest[] | null;
  tasksPerMachine: TasksPerMachine | null;
  exclusive: Exclusive | null;
  parts: readonly JobPart[] | null;
  /** Kinds, sorted. */
  licenses: readonly string[];
  resources: Amounts | null;
  /** Seconds after which its run is stopped: its own limit, else that of the site (`limitAt`); null: never. */
  runTimeLimitS: number | null;
  /** The reservation in which it runs, as long as that has not ended. */
  reservationId: number | null;
}

/** What is free now at a site. `admitStart` takes from it what it admits. */
export interface FreeResources {
  machines: Map<number, FreeMachine>;
  licenses: Map<number, FreePool>;
  /** What is held of these, now or later, at any site; and what runs inside reservations have of them. */
  heldPools: readonly HeldPoolPart[];
  poolsInside: PoolTakenInside[];
  /** How many more jobs it may run; null: any number. */
  runs: number | null;
  /** How many more may wait with the site's own scheduler; null: it has none. */
  handOvers: number | null;
  /** What is held there, now or later. */
  held: readonly HeldPart[];
  /** Reservations of the site that have not ended, by id. */
  reservations: ReadonlySet<number>;
  /** What runs have inside them. */
  inside: TakenInside[];
  /** Epoch seconds. */
  now: number;
}

export interface FreePool {
  kind: string;
  /** That nobody has now. */
  copies: number;
  /** That there are. */
  all: number;
}

/** By kind of resource as operators name them. */
export type Amounts = Readonly<Record<string, number>>;

/** As Prisma reads them of a machine: what is written there is checked before (`amountsGiven`). */
export const amountsIn = (json: unknown): Amounts => json as Amounts;

/** As Prisma reads them of a machine, likewise. */
export const devicesIn = (json: unknown): readonly OwnedDevice[] => json as OwnedDevice[];

/** What operators and its agent say of a machine, as Prisma reads it: checked when it was written. */
export const labelsIn = ({ labels, measured }: Pick<MachineRow, 'labels' | 'measured'>): Labels => ({
  ...(measured as Measurement | null)?.labels,
  ...(labels as Labels),
});

/** What is left of them; below 0 where a machine has less than runs took of it. */
export const freeOf = (has: Amounts, used: Amounts): Record<string, number> =>
  Object.fromEntries(Object.entries(has).map(([kind, amount]) => [kind, amount - (used[kind] ?? 0)]));

interface FreeMachine {
  cpus: number;
  memoryMb: number;
  resources: Record<string, number>;
  /** All that there is, CPUs and memory among it. */
  has: Amounts;
  devices: readonly OwnedDevice[];
  /** Of them, the units that runs have. */
  heldUnits: Map<string, HeldUnit>;
  /** Of a time-shared machine: how many more tasks it takes, each of another job; its CPUs are not used up. null: it is not one. */
  places: number | null;
  /** How many it takes when it is idle. */
  allPlaces: number | null;
  /** Of runs there; left empty where none of these keeps it, and none is to. */
  users: Set<number>;
  /** Some run keeps it from other users. */
  kept: boolean;
}

/** Why the start can not be carried out; null: it can, and what it needs has been taken from `free`. */
export function admitStart(start: Start, job: StartedJob | undefined, free: FreeResources): string | null {
  if (job === undefined) return 'there is no such job';
  if (job.state !== 'DISPATCHED' || job.siteId !== start.siteId) {
    return `the job is ${job.state}${job.siteId === null ? '' : ` at site ${job.siteId}`}`;
  }
  if (free.runs !== null && free.runs < 1) return 'the site is at its limit of running jobs';
  if (free.handOvers !== null) return admitHandOver(start, job, free);
  const unlicensed = whyUnlicensed(start, job, free);
  if (unlicensed !== null) return unlicensed;
  const why = job.parts === null ? takeRoom(start.allocations, job, free) : takeRoomOfParts(start, job, free);
  if (why !== null) return why;
  takeCopies(start, job, free);
  if (free.runs !== null) free.runs--;
  return null;
}

/** The allocations of each part of the job, with what the part asks for; of a job whose tasks are all alike, all. */
function startedParts(
  { allocations }: Pick<Start, 'allocations'>,
  job: StartedJob,
): { allocations: readonly Allocation[]; job: StartedJob }[] {
  const { parts } = job;
  if (parts === null) return [{ allocations, job }];
  const tasks = allocations.map((allocation) => allocation.tasks);
  return placesByPart(parts, tasks).map(({ begin, end }, i) => ({
    allocations: allocations.slice(begin, end),
    job: { ...job, devicesPerTask: null, ...parts[i], parts: null },
  }));
}

/** All parts or none, each of what the ones before it leave. */
function takeRoomOfParts(start: Start, job: StartedJob, free: FreeResources): string | null {
  const machines = new Map(
    [...free.machines].map(([id, machine]) => [
      id,
      {
        ...{ ...machine, resources: { ...machine.resources }, users: new Set(machine.users) },
        heldUnits: new Map(machine.heldUnits),
      },
    ]),
  );
  const left = { ...free, machines, inside: [...free.inside] };
  const parts = startedParts(start, job);
  const placed = parts.reduce((sum, { allocations }) => sum + allocations.length, 0);
  if (placed < start.allocations.length) return 'more tasks are placed than its parts have';
  for (const [i, part] of parts.entries()) {
    const why = takeRoom(part.allocations, part.job, left, true);
    if (why !== null) return `part ${i}: ${why}`;
  }
  // Devices are taken by `takeDevices`.
  for (const [id, machine] of machines) machine.heldUnits = (free.machines.get(id) as FreeMachine).heldUnits;
  free.machines = machines;
  free.inside = left.inside;
  return null;
}

/**
 * Why tasks that are alike have no room where they are placed; null: they have, and it is taken from `free`. Devices are, too, where other
 * parts of the job follow.
 */
function takeRoom(
  allocations: readonly Allocation[],
  job: StartedJob,
  free: FreeResources,
  devicesToo = false,
): string | null {
  const placed = allocations.reduce((sum, allocation) => sum + allocation.tasks, 0);
  if (placed !== job.tasks) return `${placed} tasks are placed; the job has ${job.tasks}`;
  if (new Set(allocations.map((allocation) => allocation.machineId)).size < allocations.length) {
    return 'a machine is named twice';
  }
  for (const { machineId, tasks } of allocations) {
    const machine = free.machines.get(machineId);
    if (machine === undefined) return `machine ${machineId} is not available`;
    const { min, max } = job.tasksPerMachine ?? ANY_TASKS_PER_MACHINE;
    if (tasks < min || tasks > (max ?? Infinity))
      return `${tasks} tasks are placed on machine ${machineId}; the job has ${min} to ${max ?? 'any number'} on each`;
    if (job.exclusive === 'MACHINE' && !isIdle(machine)) return `machine ${machineId} is not idle`;
    if ((machine.kept || job.exclusive === 'USER') && [...machine.users].some((id) => id !== job.userId))
      return `machine ${machineId} has runs of another user`;
    if (machine.places !== null && tasks > 1) return `machine ${machineId} accepts one task of a job`;
    if (machine.places !== null && machine.places < 1) return `machine ${machineId} accepts no further task`;
    if (machine.cpus < tasks * job.cpusPerTask) return `machine ${machineId} has ${machine.cpus} free CPUs`;
    if (machine.memoryMb < tasks * job.memoryMbPerTask)
      return `machine ${machineId} has ${machine.memoryMb} MB free`;
    for (const [kind, amount] of Object.entries(job.resourcesPerTask ?? {})) {
      const free = machine.resources[kind] ?? 0;
      if (free < tasks * amount) return `machine ${machineId} has ${free} ${kind} free`;
    }
    if (job.devicesPerTask !== null && unitsFor(job, tasks, machine) === null)
      return `machine ${machineId} has too few free devices of those that are requested`;
    const held =
      free.held.length + free.reservations.size === 0 ? null : whyHeldFor(machineId, tasks, job, free);
    if (held !== null) return held;
  }
  for (const { machineId, tasks } of allocations) {
    const machine = free.machines.get(machineId) as FreeMachine;
    const alone = job.exclusive === 'MACHINE';
    if (machine.places === null) machine.cpus -= alone ? machine.cpus : tasks * job.cpusPerTask;
    else machine.places -= alone ? machine.places : 1;
    machine.memoryMb -= tasks * job.memoryMbPerTask;
    machine.users.add(job.userId);
    machine.kept ||= job.exclusive === 'USER';
    const units = unitsFor(job, tasks, machine) ?? [];
    const { cpus: _, memoryMb: __, ...resources } = amountsThere(job, tasks, machine, units);
    for (const [kind, amount] of Object.entries(resources))
      machine.resources[kind] = (machine.resources[kind] ?? 0) - amount;
    const holdId = reservationOf(job, free);
    if (holdId !== null) free.inside.push({ holdId, machineId, amounts: takenBy(job, tasks, machine) });
    if (devicesToo) hold(machine, units, job, tasks);
  }
  return null;
}

/** No run is on it: each takes CPUs, or a place. */
const isIdle = ({ cpus, has, places, allPlaces }: FreeMachine): boolean =>
  places === null ? cpus === has.cpus : places === allPlaces;

/** The devices, and shares of devices, that so many tasks of the job get there; null: there are not enough. */
const unitsFor = (job: StartedJob, tasks: number, { devices, heldUnits }: FreeMachine): string[] | null =>
  asksUnits(job) ? chooseUnits(devices, heldUnits, unitsAskedBy(job), tasks) : [];

const asksUnits = ({ resourcesPerTask, devicesPerTask }: StartedJob): boolean =>
  resourcesPerTask !== null || devicesPerTask !== null;

/** The tasks have these from now on. */
function hold(
  { devices, heldUnits }: FreeMachine,
  units: readonly string[],
  job: StartedJob,
  tasks: number,
): void {
  for (const [unit, held] of holdUnits(devices, units, unitsAskedBy(job), tasks)) heldUnits.set(unit, held);
}

/** What so many tasks ask for there, with these of its devices. */
const amountsThere = (
  job: StartedJob,
  tasks: number,
  { devices }: Pick<FreeMachine, 'devices'>,
  units: readonly string[],
): Amounts => ({ ...amountsOf(askedBy(job), tasks), ...countUnits(devices, units) });

/** What so many tasks of the job take there. */
const takenBy = (job: StartedJob, tasks: number, machine: FreeMachine): Amounts =>
  job.exclusive === 'MACHINE'
    ? machine.has
    : amountsThere(job, tasks, machine, unitsFor(job, tasks, machine) ?? []);

/** What a run takes of its machines, aligned with them, that is not so much for each task: it has them to itself, or asks for devices by what they are. */
export interface WholeMachines {
  cpus: number[];
  /** 0: of a machine that is not shared in time. */
  places: number[];
  /** Of a job of several parts or with devices by what they are; null: besides CPUs it takes what its tasks ask for. */
  taken: PartTaken[] | null;
}

/** Of a start with these devices (`takeDevices`); null: it takes what its tasks ask for. */
export function wholeMachines(
  start: Start,
  job: StartedJob,
  { machines }: FreeResources,
  devices: readonly (readonly string[])[] | null,
): WholeMachines | null {
  const differs = job.parts !== null || job.devicesPerTask !== null;
  if ((job.exclusive !== 'MACHINE' && !differs) || start.allocations.length === 0) return null;
  const whole: WholeMachines = { cpus: [], places: [], taken: differs ? [] : null };
  for (const { allocations, job: part } of startedParts(start, job))
    for (const { machineId, tasks } of allocations) {
      const machine = machines.get(machineId) as FreeMachine;
      const { has, allPlaces } = machine;
      const units = devices?.[whole.cpus.length] ?? [];
      const alone = part.exclusive === 'MACHINE';
      whole.cpus.push(alone ? (has.cpus as number) : tasks * part.cpusPerTask);
      whole.places.push(alone ? (allPlaces ?? 0) : tasks);
      whole.taken?.push({
        amounts: amountsThere(part, tasks, machine, units),
        alone: part.exclusive !== null,
        keeps: part.exclusive === 'USER',
        ...(part.devicesPerTask === null ? {} : { units: memoryOf(part, tasks, machine, units) }),
      });
    }
  return whole;
}

const memoryOf = (
  job: StartedJob,
  tasks: number,
  { devices }: FreeMachine,
  units: readonly string[],
): Record<string, number> =>
  Object.fromEntries(
    holdUnits(devices, units, unitsAskedBy(job), tasks).map(([unit, { memoryMb }]) => [unit, memoryMb]),
  );

/** Some of its machines are kept from other users: all, or those of some parts (`PartTaken.keeps`). */
export const keepsMachines = (job: Pick<StartedJob, 'exclusive' | 'parts'>): boolean =>
  job.exclusive === 'USER' || (job.parts ?? []).some(({ exclusive }) => exclusive === 'USER');

const reservationOf = ({ reservationId }: StartedJob, { reservations }: FreeResources): number | null =>
  reservationId !== null && reservations.has(reservationId) ? reservationId : null;

/** Of each task. */
const askedBy = ({ cpusPerTask, memoryMbPerTask, resourcesPerTask }: StartedJob): Amounts => ({
  ...resourcesPerTask,
  cpus: cpusPerTask,
  memoryMb: memoryMbPerTask,
});

/** Why what is held does not let so many tasks of the job begin there; null: it does. */
function whyHeldFor(id: number, tasks: number, job: StartedJob, all: FreeResources): string | null {
  const { machines, held, inside, now } = all;
  const machine = machines.get(id) as FreeMachine;
  const { has, cpus, memoryMb, resources, places } = machine;
  const asked = takenBy(job, tasks, machine);
  const limit = job.runTimeLimitS ?? Infinity;
  // Where tasks share CPUs, those of others are not used up.
  const free = { ...resources, cpus: places === null ? cpus : (has.cpus as number), memoryMb };
  const here = inside.filter(({ machineId }) => machineId === id);
  const reservation = reservationOf(job, all);
  if (reservation !== null) {
    const own = held.filter(({ holdId, machineId }) => holdId === reservation && machineId === id);
    const taken = here.filter(({ holdId }) => places === null && holdId === reservation);
    const amounts = taken.map((one) => one.amounts);
    const windows = held.filter(({ kind }) => kind === 'MAINTENANCE');
    return (
      whyNotInside(own, { id, has }, amounts, asked, now, limit) ??
      whyHeld(windows, { id, has, free }, asked, now, limit)
    );
  }
  // What runs have inside is held for them.
  const open = new Set(held.filter(({ from }) => from <= now).map(({ holdId }) => holdId));
  const back = here.filter(({ holdId }) => open.has(holdId)).map(({ amounts }) => amounts);
  // What is kept from others has to be there in all, whatever runs of the same user have of it.
  if (job.exclusive === 'USER') return whyHeld(held, { id, has, free: has }, has, now, limit);
  return whyHeld(held, { id, has, free: addAmounts(free, back) }, asked, now, limit);
}

/**
 * The devices of a start that has been admitted, for each of its machines; takes them from `free`. Null: it asks for none. It has been looked
 * whether there are enough, unless devices were declared while runs had amounts of their kind: see `updateMachine`.
 */
export function takeDevices(start: Start, job: StartedJob, free: FreeResources): string[][] | null {
  if (!asksUnits(job)) return null;
  const units = startedParts(start, job).flatMap(({ allocations, job: part }) =>
    allocations.map(({ machineId, tasks }) => {
      const machine = free.machines.get(machineId) as FreeMachine;
      const chosen = unitsFor(part, tasks, machine);
      if (chosen === null) throw new Error(`machine ${machineId} has fewer devices than registered`);
      hold(machine, chosen, part, tasks);
      return chosen;
    }),
  );
  return units.some((chosen) => chosen.length > 0) ? units : null;
}

/** A job for the site's own scheduler, which finds machines by itself. */
function admitHandOver(start: Start, job: StartedJob, free: FreeResources): string | null {
  if (start.allocations.length > 0) return "the site's own scheduler chooses the machines";
  if ((free.handOvers as number) < 1)
    return "the maximum number of jobs already waits in the site's own scheduler";
  const closed = whyClosed(free.held, free.now, job.runTimeLimitS ?? Infinity);
  if (closed !== null) return closed;
  const unlicensed = whyUnlicensed(start, job, free);
  if (unlicensed !== null) return unlicensed;
  takeCopies(start, job, free);
  free.handOvers = (free.handOvers as number) - 1;
  if (free.runs !== null) free.runs--;
  return null;
}

function whyUnlicensed(start: Start, job: StartedJob, free: FreeResources): string | null {
  const { licenses, heldPools, poolsInside, now } = free;
  const given = new Map<string, number>();
  for (const { id, amount } of start.pools) {
    const kind = licenses.get(id)?.kind ?? '';
    given.set(kind, (given.get(kind) ?? 0) + amount);
  }
  const asked = poolsAskedBy(job);
  if (given.size !== asked.length || asked.some(({ kind, amount }) => given.get(kind) !== amount))
    return `its licenses (${written([...given])}) are not those it requests (${written(asked.map(({ kind, amount }) => [kind, amount]))})`;
  const short = start.pools.find(
    ({ id, amount }) => (licenses.get(id) as { copies: number }).copies < amount,
  );
  if (short !== undefined) return `license ${short.id} has too few free copies`;
  if (heldPools.length === 0) return null;
  const reservation = reservationOf(job, free);
  for (const { id, amount } of start.pools) {
    const { kind, copies, all } = licenses.get(id) as FreePool;
    const pool = { id, kind, copies: all, free: copies };
    const limitS = job.runTimeLimitS ?? Infinity;
    const why = whyPoolHeld(heldPools, poolsInside, pool, { amount, reservation }, now, limitS);
    if (why !== null) return why;
  }
  return null;
}

const written = (amounts: readonly (readonly [kind: string, amount: number])[]): string =>
  amounts.map((one) => one.join(':')).join(', ') || 'none';

function takeCopies({ pools }: Start, job: StartedJob, free: FreeResources): void {
  const holdId = reservationOf(job, free);
  for (const { id, amount } of pools) {
    (free.licenses.get(id) as FreePool).copies -= amount;
    if (holdId !== null && free.heldPools.some((part) => part.id === id && part.holdId === holdId))
      free.poolsInside.push({ holdId, id, amount });
  }
}

// Submissions ---------------------------------------------------------------------------------------------------------

/**
 * When a submission of `asked` jobs would be admitted: the instant at which enough of the earlier ones have left the rolling
 * period; null when it never would. `earlier`: [at, jobs] within the period, oldest first. Seconds.
 */
export function quotaFreesAt(
  earlier: readonly (readonly [number, number])[],
  asked: number,
  limit: number,
  periodS: number,
): number | null {
  if (asked > limit) return null;
  let used = earlier.reduce((sum, [, jobs]) => sum + jobs, 0);
  for (const [at, jobs] of earlier) {
    used -= jobs;
    if (used + asked <= limit) return at + periodS;
  }
  return null;
}

/** The last second of the year 9999: what a plan has later is stored as this, so that no estimate makes a plan that cannot be stored. */
const LATEST_S = 253_402_300_799;
/** A time as it can be stored. */
export const storable = (at: number): number => Math.min(at, LATEST_S);

/** What an object takes in memory, and a row beside its texts in the database. */
const JOB_BYTES = 512;
const INPUT_BYTES = 128;
const RULE_BYTES = 128;
const PART_BYTES = 256;

/** What of a job decides how many bytes it counts. */
type Weighed = Pick<
  GivenJob,
  | 'command'
  | 'workingDirectory'
  | 'arguments'
  | 'environment'
  | 'licenses'
  | 'resources'
  | 'machineConstraint'
  | 'image'
  | 'retry'
  | 'parts'
  | 'inputs'
  | 'outputs'
  | 'downloads'
  | 'uploads'
  | 'preferences'
> & { wait?: NewWait | null };

/** What a job takes of its user's share while it lives: about as many bytes as the schedulers and the database need for it. */
export function bytesOf(job: Weighed): number {
  let bytes = JOB_BYTES + job.command.length + (job.workingDirectory?.length ?? 0);
  for (const argument of job.arguments) bytes += argument.length;
  for (const name in job.environment) bytes += name.length + (job.environment[name] as string).length;
  for (const kind of job.licenses) bytes += kind.length;
  for (const kind in job.resources) bytes += kind.length;
  bytes += (job.machineConstraint?.length ?? 0) + (job.image?.length ?? 0);
  for (const { causes, exitCodes, signals } of job.retry?.rules ?? [])
    bytes += RULE_BYTES + 16 * ((causes?.length ?? 0) + (exitCodes?.length ?? 0) + (signals?.length ?? 0));
  for (const { machineConstraint } of job.parts ?? []) bytes += PART_BYTES + (machineConstraint?.length ?? 0);
  for (const { path, dataset } of job.outputs) bytes += path.length + (dataset?.length ?? 0);
  for (const { url } of job.downloads ?? []) bytes += url.length;
  for (const { path, url } of job.uploads ?? []) bytes += path.length + url.length;
  for (const { from } of job.inputs) bytes += from?.path.length ?? 0;
  let terms = 0;
  for (const { of } of job.wait?.needs ?? []) terms += of.length;
  return bytes + INPUT_BYTES * (job.inputs.length + job.preferences.length + job.outputs.length + terms);
}

/** What jobs take of their user's share together. */
export function shareOf(jobs: readonly GivenJob[]): Share {
  let bytes = 0;
  for (const job of jobs) bytes += bytesOf(job);
  return { jobs: jobs.length, bytes };
}

/** What the store knows of a job for its schedulers. `groupId`: of its submission; null: it came alone. */
export type DescribedJob = Omit<Job, 'groupId' | 'data'> & { groupId: number | null };

type Submitted = Pick<DescribedJob, 'id' | 'userId' | 'userClass' | 'submittedAt' | 'groupId'>;
type Touched = Pick<DescribedJob, keyof typeof UNTOUCHED>;

/** In one literal, so that all have one shape, from where its fields are: there may be 100 000 jobs. */
function jobOf(
  given: Omit<DescribedJob, keyof Submitted | keyof Touched>,
  of: Submitted,
  touched: Touched,
  data: JobData | null,
): Job {
  return {
    id: of.id,
    userId: of.userId,
    userClass: of.userClass,
    submittedAt: of.submittedAt,
    estimateS: given.estimateS,
    benchmark: given.benchmark,
    deadline: given.deadline,
    tasks: given.tasks,
    cpusPerTask: given.cpusPerTask,
    memoryMbPerTask: given.memoryMbPerTask,
    resourcesPerTask: given.resourcesPerTask,
    devicesPerTask: given.devicesPerTask,
    tasksPerMachine: given.tasksPerMachine,
    exclusive: given.exclusive,
    allAlike: given.allAlike,
    sameSwitch: given.sameSwitch,
    parts: given.parts,
    licenses: given.licenses,
    resources: given.resources,
    os: given.os,
    architecture: given.architecture,
    machineConstraint: given.machineConstraint,
    image: given.image === null ? null : referenceOf(given.image),
    boost: given.boost,
    priority: touched.priority,
    runTimeLimitS: given.runTimeLimitS,
    killGraceS: given.killGraceS,
    application: given.application,
    project: given.project,
    groupId: groupOf(of.id, of.groupId),
    migratedAt: touched.migratedAt,
    eligibleAt: touched.eligibleAt,
    dispatchedAt: touched.dispatchedAt,
    data,
    preferences: given.preferences,
    schedulerId: touched.schedulerId,
    treeMoves: touched.treeMoves,
    avoids: touched.avoids,
    reservationId: given.reservationId,
    class: given.class,
    preemptionClass: given.preemptionClass,
    restartable: given.restartable,
    promised: touched.promised,
    workflow: touched.workflow,
  };
}

/** A job as the schedulers see it. */
export const schedulersJob = (job: DescribedJob, data: JobData | null): Job => jobOf(job, job, job, data);

const UNTOUCHED = {
  priority: null,
  migratedAt: null,
  eligibleAt: null,
  dispatchedAt: null,
  schedulerId: null,
  treeMoves: 0,
  avoids: null,
  promised: null,
  workflow: null,
};

/** A job that nobody has dispatched yet, as the schedulers see it. */
export const submittedJob = (given: GivenJob, of: Submitted): Job =>
  jobOf(given, of, UNTOUCHED, dataOf(given));

/** The schedulers' group of a job: a job of its own is a group of its own. */
export const groupOf = (jobId: number, groupId: number | null): number => groupId ?? -jobId;

/** What a job moves; null: neither inputs nor a place that anything would travel from or to, and nothing declared. */
export function dataOf({
  inputs,
  originSiteId,
  computationShare,
  sandboxMb,
  outputMb,
}: Pick<
  GivenJob,
  'inputs' | 'originSiteId' | 'computationShare' | 'sandboxMb' | 'outputMb'
>): JobData | null {
  if (inputs.length === 0 && originSiteId === null && computationShare === null) return null;
  return { originSiteId, sandboxMb, inputs, outputMb, computationShare };
}

/** Agents kill a run that was asked to stop so much later, unless they are told otherwise. */
export const STOP_GRACE_S = 10;

/** A run that was asked to stop: it has its room no longer than until it is killed. */
export const stopping = (run: Run, stopsAt: number): Run => ({
  ...run,
  stopsAt,
  plannedEnd: Math.min(run.plannedEnd, stopsAt),
});

/** A waiting or running job as a preemption finds it. */
export interface PreemptionJob
  extends Pick<
    StoredJob,
    'id' | 'state' | 'siteId' | 'epoch' | 'restartable' | 'class' | 'preemptionClass' | 'promised'
  > {}

/** Why others are not stopped for the job; null: they are. It is all or none, for stopping some would be in vain. */
export function refusePreemption(
  { jobId, siteId, victims }: Preemption,
  jobs: ReadonlyMap<number, PreemptionJob>,
  isUp: boolean,
): string | null {
  const job = jobs.get(jobId);
  if (!isUp) return `site ${siteId} is not up`;
  if (job?.state !== 'DISPATCHED' || job.siteId !== siteId) return 'the job no longer waits there';
  for (const { jobId: id, epoch, requeue } of victims) {
    const victim = jobs.get(id);
    const runs = victim?.state === 'RUNNING' || victim?.state === 'ASSIGNED';
    if (victim === undefined || !runs || victim.epoch !== epoch) return `job ${id} no longer runs there`;
    // The ranks of classes are the plan's business: they are those of its policy.
    const isNamed = job.class !== null || victim.class !== null;
    const isLower = isNamed || victim.preemptionClass < job.preemptionClass;
    if (!isLower || (requeue && !victim.restartable)) return `job ${id} may not be stopped for it`;
  }
  return null;
}

/** What is kept with the jobs that are stopped. */
export const preemptedBy = ({ jobId, class: of, preemptionClass, victims }: Preemption) =>
  victims.map(({ jobId: id, graceS, lostWork, requeue }) => ({
    id,
    preempted: { jobId, class: of, preemptionClass, graceS, lostWork, requeue } satisfies PreemptedFor,
  }));

// Agents --------------------------------------------------------------------------------------------------------------

/** Whether an event tells of something that agents of the site have to do. */
export const isNews = ({ siteId, fromState, toState }: EventRow, site: number): boolean =>
  siteId === site &&
  // Still running, and changed: tasks may have to end.
  (toState === 'ASSIGNED' || toState === 'CANCELLING' || (toState === 'RUNNING' && fromState === toState));

/**
 * Whether a run at the site was given up, which its agent may go on with: it is lost, or its job waits again. The event of a job that was
 * being cancelled has the cause of that; `runCause`: that of its run.
 */
export const isGivenUp = (
  { siteId, fromSiteId, fromState, toState, cause }: EventRow,
  site: number,
  runCause: EndCause | null | undefined,
): boolean =>
  (siteId === site || fromSiteId === site) &&
  fromState !== null &&
  isLive(fromState) &&
  (cause === 'LOST' ||
    (toState !== null && isWaiting(toState)) ||
    (fromState === 'CANCELLING' && runCause === 'LOST'));
