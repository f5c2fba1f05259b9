/**
 * The store as plain maps: the model that the store on Postgres is compared with, and a store for tests that need none. Nothing
 * outlives it, and no two processes can share it. It does what store.ts says in the most obvious way, one call after the other.
 */

import type { JobClasses } from '../../src/core/classes.js';
import { computationOf, noRuns, resourceKinds, totalsWith } from '../../src/core/data/history.js';
import { marginOf } from '../../src/core/data/margins.js';
import { INTERVAL_S } from '../../src/core/data/traffic.js';
import { handOverLimit } from '../../src/core/local/registry.js';
import type {
  Dataset,
  Job,
  License,
  Link,
  Machine,
  Move,
  Position,
  Preemption,
  Reservation,
  Run,
  RunTotals,
  Site,
  SiteImages,
  SiteState,
  Start,
  TreeScheduler,
  UserClass,
} from '../../src/core/model.js';
import { cpusOf } from '../../src/core/model.js';
import { DEFAULT_POLICY, type LocalPolicy, localPolicyOf } from '../../src/core/policy.js';
import type { OwnedDevice } from '../../src/core/resources/devices.js';
import { type HeldUnit, unitsOf } from '../../src/core/resources/units.js';
import {
  amendableFields,
  assertTransition,
  changeableFields,
  type EndCause,
  isLive,
  isTerminal,
  type JobAction,
  type JobState,
  jobActions,
  possible,
  stateAfter,
  waitingStates,
} from '../../src/core/states.js';
import { observedWaits } from '../../src/core/terms/observed-waits.js';
import { outOfBounds } from '../../src/store/bounds.js';
import { decideChange } from '../../src/store/changes.js';
import { TIMES_KNOWN, WAITS_SEEN_S } from '../../src/store/constants.js';
import type { Copies, Offers } from '../../src/store/federation.js';
import { outputKey } from '../../src/store/files.js';
import { editHold, type HoldChange, type HoldEdit } from '../../src/store/hold-changes.js';
import {
  type Admission,
  admitHold,
  amountsOf,
  type HeldMachines,
  type HeldPools,
  type HoldablePool,
  type HoldFacts,
  type HoldTime,
  type NewHold,
  type OpenTime,
} from '../../src/store/holds.js';
import { heldFromArray } from '../../src/store/images.js';
import { assignedFields, givenFields, only } from '../../src/store/job-fields.js';
import { jobPredicate } from '../../src/store/job-filter.js';
import { lanesOf } from '../../src/store/lanes.js';
import {
  type AgainOf,
  decided,
  type JobWait,
  type Kept,
  type MemberFacts,
  type NeedsDecision,
  type NeedTarget,
  outcomeOf,
  stored,
  targetsOf,
  unmetMessage,
  waits,
  withReads,
} from '../../src/store/needs.js';
import { takenSteps } from '../../src/store/report-batch.js';
import { copyOf, type OldJob, repointed, rerunNote } from '../../src/store/rerun.js';
import {
  messageOfNext,
  placeOfFailure,
  RECALLED,
  type RetryFacts,
  sayMakesRoom,
  sayPreempted,
} from '../../src/store/retries.js';
import type { EventKind, EventRow, RatioPointRow } from '../../src/store/rows.js';
import {
  admitStart,
  bytesOf,
  causeOfRun,
  claim,
  dataOf,
  type FreeResources,
  freeOf,
  holderOf,
  isGivenUp,
  isMeant,
  isNews,
  judgeReport,
  keptPiece,
  MACHINE_FAILURES_MAX,
  overtaken,
  preemptedBy,
  quotaFreesAt,
  refusePreemption,
  SIGNALS_KEPT,
  STOP_GRACE_S,
  schedulersJob,
  serviceReport,
  shareOf,
  signalNote,
  stopping,
  storable,
  takeDevices,
  timesOfReports,
  tokenOf,
  wholeMachines,
} from '../../src/store/rules.js';
import {
  type AgentBeat,
  type AgentRegistration,
  type Applied,
  type Assignment,
  type AssignmentBatch,
  type ChangeOutcome,
  type ChangingJob,
  type CheckpointReport,
  type Cursor,
  FOLLOWER_LEASE_S,
  type Followed,
  type FollowerTurn,
  type GridChanges,
  type GridImage,
  type HeartbeatOutcome,
  type JobChanges,
  type JobSelection,
  type KeptPromises,
  type LeasedMachine,
  type ListPlace,
  type NeedsNews,
  type NeedsOutcome,
  type NewJob,
  type OutputBounds,
  type OutputOutcome,
  type OutputPiece,
  type PlanContext,
  type Policy,
  PRESENCE_GAP_S,
  type Pruned,
  type RegistrationOutcome,
  type ReportedImage,
  type ReportedLoad,
  type ReportOutcome,
  type ReportResult,
  type Rerun,
  type RerunOutcome,
  type Retention,
  type RunCheckpoint,
  type RunOutput,
  type RunReport,
  type SelectionOutcome,
  type SentSignal,
  type Share,
  type StartOutcome,
  type StoppedForHold,
  type Store,
  type Submission,
  type SubmitResult,
  type SweepOutcome,
  type SweepRules,
  type TrafficCount,
} from '../../src/store/store.js';
import { agentsOf, hasBegun, hasTasks, placeOf, RunTasks } from '../../src/store/tasks.js';
import { preemptedFor, type UpkeepFacts, upkeepOf } from '../../src/store/upkeep.js';
import { MemoryFederation } from './memory-federation.js';
import type { MemoryJob, MemoryMachine, MemoryRun, MemoryUser, ValuesOf } from './memory-rows.js';

export type { MemoryJob, MemoryRun } from './memory-rows.js';

export interface MemoryHold
  extends Pick<NewHold, 'kind' | 'name' | 'siteId' | 'userId' | 'onConflict' | 'recurrence' | 'idleS'> {
  pools: HeldPools;
  id: number;
  madeAt: number;
  machines: HeldMachines;
  times: (HoldTime & { id: number; over: boolean })[];
  ended: boolean;
  shortOf: readonly number[];
}

interface MemoryAgent extends Pick<AgentRegistration, 'siteId' | 'identity' | 'instance' | 'host'> {
  id: number;
  superseded: string[];
  seenAt: number;
  problem: string | null;
}

/** The site's own scheduler has it. */
const isAtSite = ({ placedBy }: Pick<MemoryRun, 'placedBy'>): boolean => placedBy === 'SITE';

/** All that a machine has, CPUs and memory among it. */
const hasOf = ({ resources, cpus, memoryMb }: MemoryMachine): Record<string, number> => ({
  ...resources,
  cpus,
  memoryMb,
});

/** To the millisecond, as Postgres keeps times. */
const ms = (seconds: number): number => Math.round(seconds * 1000) / 1000;

/** A move to where the job is already is none. */
const isElsewhere = ({ queue, from, to }: Move, schedulerId: number | null): boolean =>
  queue === 'LOCAL' || (queue === 'META' ? from !== to : from !== null || schedulerId !== to);

/** As schedulers know the job: what it waited for others is not counted. */
const asScheduled = (job: MemoryJob): MemoryJob => ({
  ...job,
  submittedAt: job.eligibleAt ?? job.submittedAt,
});

export class MemoryStore implements Store {
  readonly users = new Map<number, MemoryUser>();
  readonly sites = new Map<number, Site & { removed: boolean }>();
  readonly schedulers = new Map<number, TreeScheduler>();
  readonly machines = new Map<number, MemoryMachine>();
  readonly licenses = new Map<number, License & { inUse: number; removed: boolean; reported?: boolean }>();
  readonly jobs = new Map<number, MemoryJob>();
  readonly runs = new Map<string, MemoryRun>();
  /** By run: pieces of what it wrote. */
  readonly outputs = new Map<string, OutputPiece[]>();
  readonly events: EventRow[] = [];
  readonly datasets = new Map<number, Dataset>();
  readonly links = new Map<string, Link>();
  /** By agent. */
  readonly images = new Map<number, { siteId: number; of: readonly ReportedImage[] }>();
  readonly holds = new Map<number, MemoryHold>();
  private lastHoldTime = 0;
  /** By application, user and kinds; `event`: the latest when it was written. */
  readonly totals = new Map<string, { record: RunTotals; event: number }>();
  readonly ratioPoints: RatioPointRow[] = [];
  readonly decisions: {
    jobId: number;
    kind: 'DISPATCH' | 'START' | 'TAKE_BACK' | 'PREEMPT';
    policyVersion: number;
  }[] = [];
  private policy: Policy = { version: 1, document: DEFAULT_POLICY };
  private horizon = 0;
  private margins: number[] = [];
  readonly held = new Map<number, Reservation>();
  readonly promised = new Map<number, KeptPromises>();
  readonly traffic = new Map<string, TrafficCount>();
  private readonly submissions: {
    id: number;
    userId: number;
    key: string | null;
    hash: string;
    jobIds: number[];
    groupId: number | null;
    at: number;
  }[] = [];
  /** Of bulk groups, after how long without a change they are idle; null: never. */
  private readonly groups = new Map<number, number | null>();
  readonly agents = new Map<number, MemoryAgent>();
  private readonly processes = new Map<string, { kind: string; since: number; seenAt: number }>();
  private readonly followers = new Map<string, { cursor: number; holder: string; leaseUntil: number }>();
  private readonly jobWaits = new Map<number, JobWait>();
  /** By `outputKey`. */
  private readonly kept = new Map<string, { sizeMb: number } | { datasetId: number }>();
  private lastId = 0;
  private lastScheduler = 0;
  private lastSubmission = 0;
  private lastPoint = 0;
  private lastEvent = 0;
  readonly federation = new MemoryFederation(this);

  /** `now`: the database's clock, epoch seconds. */
  constructor(private readonly options: { liveJobsMax?: number; now?: () => number } = {}) {}

  /** All that it holds, as a backup has it. */
  dump(): { own: object; federation: object } {
    const { options: _, now: __, federation, ...own } = this;
    return { own, federation: federation.dump() };
  }

  /** It is as it was then. */
  restore({ own, federation }: ReturnType<MemoryStore['dump']>): void {
    Object.assign(this, own);
    this.federation.restore(federation);
  }

  get offers(): Offers {
    return this.federation.offers;
  }

  get copies(): Copies {
    return this.federation.copies;
  }

  get classes(): JobClasses | null {
    return this.policy.document.classes ?? null;
  }

  get policyVersion(): number {
    return this.policy.version;
  }

  readonly now = (): number => this.options.now?.() ?? Date.now() / 1000;

  // Directory: what tests set up ----------------------------------------------------------------------------------------

  addUser(
    userClass: UserClass = 'REGULAR',
    quota: MemoryUser['quota'] = null,
    name = `user-${this.users.size + 1}`,
    role: MemoryUser['role'] = 'USER',
  ): number {
    const id = this.users.size + 1;
    this.users.set(id, { id, name, role, class: userClass, share: 1, quota });
    this.event('USER', id, null);
    return id;
  }

  setUserClass(userId: number, userClass: UserClass): void {
    this.user(userId).class = userClass;
    this.event('USER', userId, null);
  }

  setQuotaShare(userId: number, share: number): void {
    this.user(userId).share = share;
    this.event('USER', userId, null);
  }

  /** null: it is removed. */
  setDataset(id: number, dataset: Omit<Dataset, 'id'> | null): void {
    if (dataset === null) this.datasets.delete(id);
    else this.datasets.set(id, { id, ...dataset, siteIds: [...dataset.siteIds].sort((a, b) => a - b) });
    this.event('DATA', id, null);
  }

  /** null: it is removed. */
  setLink(fromSiteId: number, toSiteId: number, link: Omit<Link, 'fromSiteId' | 'toSiteId'> | null): void {
    const key = `${fromSiteId}/${toSiteId}`;
    if (link === null) this.links.delete(key);
    else this.links.set(key, { fromSiteId, toSiteId, ...link });
    this.event('DATA', fromSiteId, toSiteId);
  }

  async reportImages(siteId: number, agentId: number, images: readonly ReportedImage[]) {
    const before = [JSON.stringify(this.imagesAt(siteId)), JSON.stringify(this.images.get(agentId))];
    const serves = this.hasMachine(siteId, agentId);
    if (serves) this.images.set(agentId, { siteId, of: structuredClone(images) });
    else this.images.delete(agentId);
    if (JSON.stringify(this.imagesAt(siteId)) !== before[0]) this.event('DATA', siteId, siteId);
    return { serves, changed: JSON.stringify(this.images.get(agentId)) !== before[1] };
  }

  private hasMachine(siteId: number, agentId: number): boolean {
    const machines = [...this.machines.values()];
    return machines.some((one) => one.siteId === siteId && one.agentId === agentId && !one.removed);
  }

  private imagesAt(siteId: number): SiteImages {
    const sizes = new Map<string, number>();
    for (const [agentId, { siteId: at, of }] of this.images) {
      if (at !== siteId || !this.hasMachine(siteId, agentId)) continue;
      for (const { name, sizeMb } of of) sizes.set(name, Math.max(sizeMb, sizes.get(name) ?? 0));
    }
    return { siteId, sizesMb: Object.fromEntries([...sizes].sort(([a], [b]) => (a < b ? -1 : 1))) };
  }

  addSite(
    name: string,
    localPolicy: LocalPolicy | null = null,
    maxRunningJobs: number | null = null,
  ): number {
    const id = this.sites.size + 1;
    const nowhere = { schedulerId: null, position: null, load: null, maxLimitS: null };
    this.sites.set(id, { id, name, state: 'UP', localPolicy, maxRunningJobs, ...nowhere, removed: false });
    this.event('SITE', id, id);
    return id;
  }

  /** Hangs it under a scheduler; null: under the root. */
  moveSite(siteId: number, schedulerId: number | null, position: Position | null = null): void {
    Object.assign(this.sites.get(siteId) as Site, { schedulerId, position });
    this.event('SITE', siteId, siteId);
  }

  addScheduler(name: string, parentId: number | null = null): number {
    const id = ++this.lastScheduler;
    this.schedulers.set(id, { id, name, parentId });
    this.event('SCHEDULER', id, null);
    return id;
  }

  /** What is under it goes to its parent. */
  removeScheduler(id: number): void {
    const { parentId } = this.schedulers.get(id) as TreeScheduler;
    for (const site of this.sites.values())
      if (site.schedulerId === id) this.moveSite(site.id, parentId, site.position);
    for (const one of this.schedulers.values()) if (one.parentId === id) one.parentId = parentId;
    this.schedulers.delete(id);
    this.event('SCHEDULER', id, null);
  }

  setMaxLimit(siteId: number, maxLimitS: number | null): void {
    (this.sites.get(siteId) as Site).maxLimitS = maxLimitS;
    this.event('SITE', siteId, siteId);
  }

  setSiteState(siteId: number, state: SiteState): void {
    (this.sites.get(siteId) as Site).state = state;
    this.event('SITE', siteId, siteId);
  }

  addMachine(machine: Omit<Machine, 'id' | 'available'> & { name: string }): number {
    const id = this.machines.size + 1;
    const empty = {
      state: 'UP',
      silent: true,
      agentId: null,
      measured: null,
      problem: null,
      launchFailures: 0,
      powerMeasured: false,
      cpusUsed: 0,
      memoryUsedMb: 0,
      tasksUsed: 0,
      removed: false,
    } as const;
    this.machines.set(id, { ...machine, id, ...empty, resourcesUsed: {} });
    this.event('MACHINE', id, machine.siteId);
    return id;
  }

  setMachineState(machineId: number, state: MemoryMachine['state']): void {
    const machine = this.machines.get(machineId) as MemoryMachine;
    machine.state = state;
    machine.launchFailures = 0;
    this.event('MACHINE', machineId, machine.siteId);
  }

  addLicense(kind: string, copies: number, siteId: number | null): number {
    const id = this.licenses.size + 1;
    this.licenses.set(id, { id, kind, copies, siteId, inUse: 0, removed: false });
    this.event('LICENSE', id, siteId);
    return id;
  }

  /** The id of the hold if nothing is in its way, or (of runs) if it lets them end. */
  createHold(hold: NewHold, now: number): Admission & { id: number | null } {
    const admission = admitHold(hold, this.holdFacts(hold.siteId), now);
    const inTheWay = hold.onConflict === 'REFUSE' ? admission.runs.length : 0;
    if (admission.fault !== null || admission.holds.length + inTheWay > 0) return { ...admission, id: null };
    const id = this.holds.size + 1;
    const { kind, name, siteId, userId, onConflict, recurrence, idleS } = hold;
    const { machines, pools } = admission;
    const times = hold.times.map((time) => ({ ...time, id: ++this.lastHoldTime, over: false }));
    this.holds.set(id, {
      ...{ id, kind, name, siteId, userId, pools, onConflict, recurrence, idleS },
      ...{ machines, times, ended: false, madeAt: now, shortOf: [] },
    });
    this.event('HOLD', id, siteId);
    return { ...admission, id };
  }

  updateHold(id: number, change: HoldChange, now: number): Pick<HoldEdit, 'admission' | 'refused'> {
    const hold = this.holds.get(id) as MemoryHold;
    const times = hold.times.filter(({ over }) => !over).sort((a, b) => a.from - b.from);
    const edit = editHold({ ...hold, times }, change, this.holdFacts(hold.siteId), now);
    const { onConflict, machines, pools, recurrence, admission, refused } = edit;
    if (refused || admission.fault !== null) return edit;
    Object.assign(hold, { onConflict, machines, pools, recurrence });
    if (change.name !== undefined) hold.name = change.name;
    if (change.idleS !== undefined) hold.idleS = change.idleS;
    if (change.when !== undefined && recurrence !== null) hold.madeAt = now;
    hold.times = [
      ...hold.times.filter(({ over }) => over),
      ...edit.times.map((time) => ({ ...time, id: time.id ?? ++this.lastHoldTime, over: false })),
    ];
    this.event('HOLD', id, hold.siteId);
    return edit;
  }

  cancelHold(id: number): void {
    const hold = this.holds.get(id) as MemoryHold;
    hold.ended = true;
    for (const time of hold.times) time.over = true;
    this.event('HOLD', id, hold.siteId);
  }

  /** What time does to what is held; answers with the sites where something is otherwise. `all` gets the runs that were stopped. */
  private keepHolds(now: number, dead: ReadonlySet<number>, all: StoppedForHold[]): number[] {
    const sites = new Set([...this.holds.values()].filter(({ ended }) => !ended).map(({ siteId }) => siteId));
    return [...sites]
      .sort((a, b) => a - b)
      .filter((siteId) => {
        const { over, made, replaced, stopped, changed, ended, short } = upkeepOf(
          this.upkeepFacts(siteId, dead),
          now,
        );
        const holdOf = (id: number) => this.holds.get(id) as MemoryHold;
        for (const hold of this.holds.values())
          for (const time of hold.times) if (over.includes(time.id)) time.over = true;
        for (const { holdId, times } of made) {
          const more = times.map((time) => ({ ...time, id: ++this.lastHoldTime, over: false }));
          holdOf(holdId).times.push(...more);
          holdOf(holdId).madeAt = now;
        }
        for (const { holdId, machines } of replaced) holdOf(holdId).machines = machines;
        for (const { holdId, machineIds } of short) holdOf(holdId).shortOf = machineIds;
        for (const id of ended) holdOf(id).ended = true;
        for (const id of [...changed, ...ended]) this.event('HOLD', id, siteId);
        for (const one of stopped) {
          const preempted = preemptedFor(one);
          const { jobId, class: name, lostWork } = one;
          all.push({ jobId, class: name, lostWork });
          const values = { stopCause: 'PREEMPTED', preempted, note: sayPreempted(preempted) } as const;
          this.change(this.jobs.get(one.jobId) as MemoryJob, 'preempt', values);
        }
        return [over, made, replaced, stopped, ended, short].some(({ length }) => length > 0);
      });
  }

  private upkeepFacts(siteId: number, dead: ReadonlySet<number>): UpkeepFacts {
    const { runs } = this.holdFacts(siteId);
    const runsOf = (id: number) =>
      [...this.runs.values()].filter(({ jobId }) => this.jobs.get(jobId)?.reservationId === id);
    return {
      policy: this.policy.document,
      pools: this.poolsAt(siteId),
      elsewhere: this.heldElsewhere(siteId),
      machines: [...this.machines.values()]
        .filter((one) => one.siteId === siteId)
        .map((machine) => {
          const { id, name, state, silent, problem, removed } = machine;
          const { benchmark, maxTasks, os, architecture } = machine;
          return {
            ...{ id, name, has: hasOf(machine) },
            available: state === 'UP' && !silent && problem === null && !removed,
            lost: state !== 'UP' || problem !== null || removed || dead.has(id),
            alike: JSON.stringify([hasOf(machine), benchmark, maxTasks, os, architecture, machine.labels]),
          };
        }),
      holds: [...this.holds.values()]
        .filter((hold) => hold.siteId === siteId && !hold.ended)
        .map((hold) => ({
          ...hold,
          times: hold.times.filter(({ over }) => !over).sort((a, b) => a.from - b.from),
          inUse: runsOf(hold.id).some(({ endedAt }) => endedAt === null),
          usedAt: runsOf(hold.id).reduce<number | null>(
            (last, { endedAt }) => (endedAt === null ? last : Math.max(last ?? 0, endedAt)),
            null,
          ),
        })),
      runs: runs.map((run) => {
        const { epoch, assignedAt, checkpointAt } = [...this.runs.values()].find(
          ({ jobId, endedAt }) => jobId === run.jobId && endedAt === null,
        ) as MemoryRun;
        const job = this.jobs.get(run.jobId) as MemoryJob;
        const { restartable, preemptionClass, killGraceS, state } = job;
        return {
          ...run,
          ...{
            epoch,
            since: assignedAt,
            checkpointAt,
            restartable,
            class: job.class,
            preemptionClass,
            killGraceS,
          },
          stopping: state === 'CANCELLING',
          elsewhere: job.siteId !== siteId,
        };
      }),
    };
  }

  /** The times of a site's holds that are not over. */
  private openTimes(siteId: number): OpenTime[] {
    return [...this.holds.values()].flatMap(
      ({ id, kind, userId, machines, pools, times, ended, siteId: at }) =>
        at === siteId && !ended
          ? times
              .filter(({ over }) => !over)
              .map(({ from, to }) => ({ holdId: id, kind, userId, machines, pools, from, to }))
          : [],
    );
  }

  private heldOfPools(): Pick<FreeResources, 'heldPools' | 'poolsInside'> {
    const held = [...this.holds.values()].filter(({ ended, pools }) => !ended && pools.length > 0);
    return {
      heldPools: held.flatMap(({ id: holdId, kind, pools, times }) =>
        times
          .filter(({ over }) => !over)
          .flatMap(({ from, to }) => pools.map((pool) => ({ ...pool, holdId, kind, from, to }))),
      ),
      poolsInside: [...this.runs.values()]
        .filter(({ endedAt }) => endedAt === null)
        .flatMap(({ jobId, pools }) => {
          const { reservationId: holdId } = this.jobs.get(jobId) as MemoryJob;
          const own = held.find(({ id }) => id === holdId);
          return own === undefined
            ? []
            : pools
                .filter(({ id }) => own.pools.some((one) => one.id === id))
                .map((pool) => ({ ...pool, holdId: own.id }));
        }),
    };
  }

  /** The same of other sites' that have something of pools. */
  private heldElsewhere(siteId: number): OpenTime[] {
    return [...this.sites.keys()]
      .filter((id) => id !== siteId)
      .flatMap((id) => this.openTimes(id))
      .filter(({ pools }) => pools.length > 0)
      .map((time) => ({ ...time, machines: [] }));
  }

  /** The pools of the site, and of the grid. */
  private poolsAt(siteId: number): HoldablePool[] {
    return [...this.licenses.values()]
      .filter((pool) => !pool.removed && (pool.siteId ?? siteId) === siteId)
      .map(({ id, kind, copies, siteId: at }) => ({ id, kind, copies, shared: at === null }));
  }

  private holdFacts(siteId: number): HoldFacts {
    const machines = [...this.machines.values()].filter((one) => one.siteId === siteId && !one.removed);
    const shared = new Set(
      this.poolsAt(siteId)
        .filter((pool) => pool.shared)
        .map(({ id }) => id),
    );
    const live = [...this.runs.values()].filter((run) => run.endedAt === null);
    const here = live.filter((run) => run.siteId === siteId);
    const elsewhere = live.filter(
      (run) => run.siteId !== siteId && run.pools.some(({ id }) => shared.has(id)),
    );
    const runs = [...here, ...elsewhere.map((run) => ({ ...run, allocations: [] }))];
    return {
      pools: this.poolsAt(siteId),
      machines: machines.map((machine) => {
        const { id, name, state } = machine;
        return { id, name, available: state === 'UP', has: hasOf(machine) };
      }),
      open: [...this.openTimes(siteId), ...this.heldElsewhere(siteId)],
      runs: runs.map(({ jobId, allocations, pools, startedAt, assignedAt, whole, limitS }) => {
        const job = this.jobs.get(jobId) as MemoryJob;
        const { cpusPerTask: cpus, memoryMbPerTask: memoryMb, resourcesPerTask } = job;
        return {
          jobId,
          machineIds: allocations.map(({ machineId }) => machineId),
          machineTasks: allocations.map(({ tasks }) => tasks),
          amounts: { ...resourcesPerTask, cpus, memoryMb },
          alone: whole === null ? job.exclusive !== null : whole.taken === null,
          taken: whole?.taken ?? null,
          until: limitS === null ? null : (startedAt ?? assignedAt) + limitS,
          reservationId: job.reservationId,
          pools,
        };
      }),
    };
  }

  setPolicy(policy: Policy): void {
    this.policy = policy;
    this.event('POLICY', policy.version, null);
  }

  // Out ---------------------------------------------------------------------------------------------------------------

  async loadGrid(marginWindow: number, keep = (job: Job): Job => job): Promise<GridImage> {
    const jobs = [...this.jobs.values()].filter((job) => job.endedAt === null);
    return {
      cursor: String(this.lastEvent),
      ...this.directory(),
      jobs: jobs.map((job) => ({
        job: keep(this.coreJob(job)),
        state: job.state,
        siteId: job.siteId,
        run: isLive(job.state) ? this.coreRun(job.id, job.epoch) : null,
      })),
      margins: this.margins.slice(-marginWindow),
      reservations: await this.reservations(),
      datasets: [...this.datasets.values()].sort((a, b) => a.id - b.id),
      links: [...this.links.values()].sort((a, b) => a.fromSiteId - b.fromSiteId || a.toSiteId - b.toSiteId),
      images: [...this.sites.keys()]
        .map((id) => this.imagesAt(id))
        .filter(({ sizesMb }) => Object.keys(sizesMb).length > 0),
      quotas: [...this.users.values()]
        .filter((user) => user.share !== 1)
        .map(({ id, share }) => ({ userId: id, share })),
      totals: [...this.totals.values()].map(({ record }) => record),
      traffic: inOrder(this.traffic.values()),
    };
  }

  async follow({
    name,
    holder,
    after,
    limit,
    only,
    leaseS = FOLLOWER_LEASE_S,
  }: FollowerTurn): Promise<Followed> {
    const now = this.now();
    const known = this.followers.get(name);
    if (known !== undefined && known.holder !== holder && (after !== null || known.leaseUntil > now))
      return { kind: 'held' };
    const cursor = Math.max(known?.cursor ?? -1, known === undefined ? -1 : Number(after ?? -1));
    this.followers.set(name, { cursor, holder, leaseUntil: now + leaseS });
    if (cursor < this.horizon) return { kind: 'start-over', cursor: String(this.lastEvent) };
    const looked = this.events.filter(({ id }) => id > cursor).slice(0, limit);
    const events = looked.filter(
      ({ kind, toState }) =>
        !only || only.kinds?.includes(kind) || (toState !== null && only.states?.includes(toState)),
    );
    const next = String(looked.at(-1)?.id ?? cursor);
    return { kind: 'events', cursor: next, events, more: looked.length === limit };
  }

  async changesSince(cursor: Cursor, limit: number): Promise<GridChanges | 'too-old'> {
    if (Number(cursor) < this.horizon) return 'too-old';
    const news = this.events.filter((event) => event.id > Number(cursor)).slice(0, limit);
    const last = new Map<number, EventRow>();
    const told = new Set<number>();
    const margins: number[] = [];
    const traffic = new Map<string, TrafficCount>();
    for (const event of news) {
      countTraffic(traffic, event);
      if (event.seq === null) continue;
      last.delete(event.entityId);
      last.set(event.entityId, event);
      const { fromState, toState } = event;
      const waitsAgain =
        fromState !== null && isLive(fromState) && waitingStates.includes(toState as JobState);
      if (event.seq === 1 || event.kind === 'JOB_CHANGED' || event.note !== null || waitsAgain)
        told.add(event.entityId);
      if (fromState === 'BLOCKED' || fromState === 'HELD') told.add(event.entityId);
      const job = this.jobs.get(event.entityId);
      if (event.fromState === 'QUEUED' && event.toState === 'DISPATCHED' && job) {
        const margin = marginOf(asScheduled(job));
        if (margin !== null) margins.push(margin);
      }
    }
    const changed = (kinds: readonly EventKind[]) => news.filter((event) => kinds.includes(event.kind));
    return {
      cursor: String(news.at(-1)?.id ?? cursor),
      jobs: [...last.values()].map(({ entityId: id, toState, siteId, epoch }) => {
        const state = toState as JobState;
        if (isTerminal(state)) return { id, position: null, job: null };
        const job = this.jobs.get(id) as MemoryJob;
        const priority = state === 'QUEUED' ? null : job.priority;
        const dispatchedAt = state === 'QUEUED' ? null : job.dispatchedAt;
        const run = isLive(state) ? this.coreRun(id, epoch as number) : null;
        return {
          id,
          position: {
            ...{ state, siteId, priority, migratedAt: job.migratedAt, dispatchedAt, run },
            ...{ schedulerId: job.schedulerId, treeMoves: job.treeMoves },
          },
          job: told.has(id) ? { ...this.coreJob(job), priority, dispatchedAt } : null,
        };
      }),
      margins,
      users: [...new Set(changed(['USER']).map((event) => event.entityId))].map((userId) => ({
        userId,
        userClass: this.user(userId).class,
        share: this.user(userId).share,
      })),
      directory:
        changed(['SITE', 'MACHINE', 'LICENSE', 'SCHEDULER', 'HOLD', 'POLICY']).length > 0
          ? this.directory()
          : null,
      datasets: [
        ...new Set(
          changed(['DATA'])
            .filter((event) => event.siteId === null)
            .map((event) => event.entityId),
        ),
      ].map((id) => ({ id, dataset: this.datasets.get(id) ?? null })),
      links: changed(['DATA'])
        .filter((event) => event.siteId !== null && event.siteId !== event.entityId)
        .map(({ entityId: fromSiteId, siteId }) => {
          const toSiteId = siteId as number;
          return { fromSiteId, toSiteId, link: this.links.get(`${fromSiteId}/${toSiteId}`) ?? null };
        }),
      images: [
        ...new Set(changed(['DATA']).flatMap(({ entityId, siteId }) => (siteId === entityId ? siteId : []))),
      ].map((id) => this.imagesAt(id)),
      totals: [...this.totals.values()]
        .filter(({ event }) => event > Number(cursor))
        .map(({ record }) => record),
      traffic: inOrder(traffic.values()),
      more: news.length >= limit,
    };
  }

  async reservations(): Promise<Reservation[]> {
    const good = ({ jobId, siteId }: Reservation) => {
      const job = this.jobs.get(jobId);
      return job?.state === 'DISPATCHED' && job.siteId === siteId;
    };
    return [...this.held.values()].filter(good).sort((a, b) => a.siteId - b.siteId);
  }

  async promises(siteId: number): Promise<KeptPromises> {
    return structuredClone(this.promised.get(siteId)) ?? { revision: 0, promises: null };
  }

  // In: submissions and plans -----------------------------------------------------------------------------------------

  async submit(submission: Submission & { rerunOf?: readonly number[] }): Promise<SubmitResult> {
    const { userId, idempotencyKey, payloadHash, jobs, group = null, share, rerunOf, now } = submission;
    if (jobs.length === 0) throw new RangeError('submission.jobs is empty; accepted: at least one job');
    const user = this.users.get(userId);
    if (user === undefined)
      throw new RangeError(`submission.userId is ${userId}; accepted: the id of a user`);
    const known = this.submissions.find((one) => one.userId === userId && one.key === idempotencyKey);
    if (idempotencyKey !== null && known !== undefined) {
      if (known.hash !== payloadHash) return { kind: 'key-reused' };
      const { jobIds, groupId } = known;
      return { kind: 'accepted', jobIds, groupId, repeated: true };
    }
    if (user.quota !== null) {
      const { limit, periodS } = user.quota;
      const recent = this.recent(user, now);
      const used = recent.reduce((sum, [, count]) => sum + count, 0);
      if (used + jobs.length > limit) {
        const freesAt = quotaFreesAt(recent, jobs.length, limit, periodS);
        return { kind: 'quota', limit, periodS, used, asked: jobs.length, freesAt };
      }
    }
    const live = [...this.jobs.values()].filter((job) => job.endedAt === null).length;
    const limit = this.options.liveJobsMax ?? Infinity;
    if (live + jobs.length > limit) return { kind: 'full', limit, live };
    const own = [...this.jobs.values()].filter((job) => job.userId === userId && job.endedAt === null);
    const [ownShare, asked] = [shareOf(own), shareOf(jobs)];
    for (const of of ['jobs', 'bytes'] as const) {
      const most = share?.[of] ?? Infinity;
      if (ownShare[of] + asked[of] > most)
        return { kind: 'share', of, limit: most, used: ownShare[of], asked: asked[of] };
    }
    for (const job of jobs) {
      const wrong = outOfBounds(job);
      // As PostgreSQL has it: check_violation.
      if (wrong !== null)
        throw Object.assign(new RangeError(`jobs: ${wrong} is out of range`), { code: '23514' });
    }
    const id = ++this.lastSubmission;
    const groupId = jobs.length > 1 || group !== null || rerunOf !== undefined ? id : null;
    if (group !== null) this.groups.set(id, group.idleTimeoutS ?? null);
    const needed = jobs.flatMap(({ wait }) => (wait?.needs ?? []).flatMap(({ of }) => of));
    const isGone = (job: number): boolean =>
      !this.jobs.has(job) && (job <= this.lastId || rerunOf === undefined);
    const gone = needed.flatMap((term) => ('job' in term && isGone(term.job) ? [term.job] : []));
    if (gone.length > 0) return { kind: 'gone', jobs: [...new Set(gone)] };
    const ids = jobs.map((_, i) => this.lastId + 1 + i);
    const jobIds = jobs.map((job, i) =>
      this.insert(withReads(job, ids), userId, ms(now), groupId, rerunOf?.[i] ?? null),
    );
    for (const [i, { wait }] of jobs.entries()) {
      if (!waits(wait, ms(now))) continue;
      const notBefore = wait.notBefore === null ? null : ms(wait.notBefore);
      const needs = stored(wait.needs, jobIds, this.againOf(userId));
      const dueAt = needs.length === 0 ? notBefore : null;
      const { onUnmet } = wait;
      this.jobWaits.set(jobIds[i] as number, { needs, onUnmet, notBefore, dueAt, because: null });
    }
    this.submissions.push({
      id,
      userId,
      key: idempotencyKey,
      hash: payloadHash,
      jobIds,
      groupId,
      at: ms(now),
    });
    return { kind: 'accepted', jobIds, groupId, repeated: false };
  }

  /** What the user has submitted within the period of its quota: when, and how much. */
  private recent({ id, quota }: MemoryUser, now: number): (readonly [number, number])[] {
    return this.submissions
      .filter((one) => one.userId === id && one.at > now - (quota?.periodS ?? 0))
      .map((one) => [one.at, one.jobIds.length] as const)
      .sort((a, b) => a[0] - b[0]);
  }

  /** Whether the user may have so much more. */
  hasRoom(user: MemoryUser, more: Share, share: Share, now: number): boolean {
    const own = [...this.jobs.values()].filter((job) => job.userId === user.id && job.endedAt === null);
    const recent = this.recent(user, now).reduce((sum, [, count]) => sum + count, 0);
    return (
      own.length + more.jobs <= share.jobs &&
      own.reduce((sum, { bytes }) => sum + bytes, more.bytes) <= share.bytes &&
      recent + more.jobs <= (user.quota?.limit ?? Infinity)
    );
  }

  /** A peer's job, which counts as submitted by its user here. */
  takeIn(job: NewJob, userId: number, bytes: number, now: number): number {
    const id = this.insert(job, userId, ms(now), null, null, bytes);
    const of = { key: null, hash: 'peer', jobIds: [id], groupId: null, at: ms(now) };
    this.submissions.push({ id: ++this.lastSubmission, userId, ...of });
    return id;
  }

  knowsKey(userId: number, key: string): boolean {
    return this.submissions.some((one) => one.userId === userId && one.key === key);
  }

  async applyMoves(moves: readonly Move[], context: PlanContext): Promise<Applied> {
    const accepted: Move[] = [];
    const refused: Applied['refused'] = [];
    for (const move of moves) {
      const job = this.jobs.get(move.jobId);
      const where = job?.state === 'QUEUED' && job.siteId === move.from;
      const moves = isElsewhere(move, job?.schedulerId ?? null);
      const twice = accepted.some((other) => other.jobId === move.jobId);
      if (!where || !moves || twice || !this.takes(move)) {
        refused.push({ jobId: move.jobId, why: 'it does not fit the truth' });
      } else accepted.push(move);
    }
    const inOrder = [...accepted].sort((a, b) => a.queue.localeCompare(b.queue) || a.jobId - b.jobId);
    for (const move of inOrder) {
      const { jobId, from, priority } = move;
      const job = this.jobs.get(jobId) as MemoryJob;
      this.decisions.push({ jobId, kind: 'DISPATCH', policyVersion: context.policyVersion });
      const { treeMoves = job.treeMoves } = move;
      if (move.queue === 'SCHEDULER') {
        this.change(job, 'moveInTree', { schedulerId: move.to, treeMoves });
        continue;
      }
      const { to, queue } = move;
      if (queue === 'META') {
        const migratedAt = from === null ? job.migratedAt : ms(context.now);
        this.change(job, 'moveToMeta', { siteId: to, migratedAt, treeMoves });
        continue;
      }
      const margin = marginOf(asScheduled(job));
      if (margin !== null) this.margins.push(margin);
      this.change(job, 'dispatch', { siteId: to, priority, dispatchedAt: this.inOrder(job, context.now) });
    }
    return { accepted: accepted.map((move) => move.jobId), refused };
  }

  /** Whose runs are on the machine, and whether one of them keeps it from others. */
  private usersOn(id: number): { users: Set<number>; kept: boolean } {
    const users = new Set<number>();
    let kept = false;
    for (const { jobId, endedAt, allocations, whole } of this.runs.values()) {
      if (endedAt !== null) continue;
      const job = this.jobs.get(jobId) as MemoryJob;
      for (const [place, { machineId }] of allocations.entries()) {
        if (machineId !== id) continue;
        users.add(job.userId);
        kept ||= whole?.taken?.[place]?.keeps ?? job.exclusive === 'USER';
      }
    }
    return { users, kept };
  }

  private takes({ queue, to }: Move): boolean {
    if (queue === 'SCHEDULER') return to === null || this.schedulers.has(to);
    const site = this.sites.get(to);
    return site?.state === 'UP' && !site.removed;
  }

  async applyStarts(
    siteId: number,
    starts: readonly Start[],
    reservation: Reservation | null,
    context: PlanContext,
    promises: KeptPromises | null = null,
  ): Promise<StartOutcome> {
    const site = this.sites.get(siteId);
    const up = site?.state === 'UP' && !site.removed;
    if (up && !this.keepPromises(siteId, promises)) {
      const refused = starts.map(({ jobId }) => ({ jobId, why: 'it does not fit the truth' }));
      return { accepted: [], epochs: [], refused, outdated: true };
    }
    const machines = [...this.machines.values()].filter(
      (machine) => machine.siteId === siteId && !machine.removed && isAvailable(machine),
    );
    const pools = [...this.licenses.values()].filter(
      (pool) => !pool.removed && (pool.siteId ?? siteId) === siteId,
    );
    const free: FreeResources = {
      machines: new Map(
        machines.map((machine) => [
          machine.id,
          {
            cpus: machine.cpus - machine.cpusUsed,
            memoryMb: machine.memoryMb - machine.memoryUsedMb,
            places: machine.maxTasks ? machine.maxTasks - machine.tasksUsed : null,
            allPlaces: machine.maxTasks ?? null,
            ...this.usersOn(machine.id),
            resources: freeOf(machine.resources ?? {}, machine.resourcesUsed),
            devices: machine.devices ?? [],
            heldUnits: this.unitsHeldOn(machine.id),
            has: hasOf(machine),
          },
        ]),
      ),
      licenses: new Map(
        pools.map(({ id, kind, copies, inUse }) => [id, { kind, copies: copies - inUse, all: copies }]),
      ),
      ...this.heldOfPools(),
      runs: site?.maxRunningJobs ? site.maxRunningJobs - this.liveAt(siteId) : null,
      handOvers: starts.some(({ allocations }) => allocations.length === 0) ? this.handOvers(site) : null,
      held: this.openTimes(siteId).flatMap(({ machines, ...time }) =>
        (machines ?? [{ machineId: null, amounts: null }]).map((part) => ({ ...part, ...time })),
      ),
      reservations: new Set(
        [...this.holds.values()]
          .filter(({ kind, ended, siteId: at }) => at === siteId && !ended && kind !== 'MAINTENANCE')
          .map(({ id }) => id),
      ),
      inside: [...this.runs.values()]
        .filter((run) => run.siteId === siteId && run.endedAt === null)
        .flatMap(({ jobId, allocations, whole }) => {
          const job = this.jobs.get(jobId) as MemoryJob;
          const { cpusPerTask: cpus, memoryMbPerTask: memoryMb, resourcesPerTask, reservationId } = job;
          const each = { ...resourcesPerTask, cpus, memoryMb };
          return allocations.flatMap(({ machineId, tasks }, i) =>
            reservationId === null
              ? []
              : [
                  {
                    ...{ holdId: reservationId, machineId },
                    amounts:
                      job.exclusive === 'MACHINE'
                        ? hasOf(this.machines.get(machineId) as MemoryMachine)
                        : (whole?.taken?.[i]?.amounts ?? amountsOf(each, tasks)),
                  },
                ],
          );
        }),
      now: context.now,
    };
    const { maxLimitS = null } = this.sites.get(siteId) as Site;
    const limitOf = (job: MemoryJob): number | null => job.runTimeLimitS ?? maxLimitS;
    const accepted: Start[] = [];
    const devices = new Map<number, string[][] | null>();
    const refused: Applied['refused'] = [];
    for (const start of starts) {
      const named = accepted.some((other) => other.jobId === start.jobId);
      const here = up && start.siteId === siteId && !named;
      const job = this.jobs.get(start.jobId);
      const asked = job && { ...job, runTimeLimitS: limitOf(job) };
      const why = here ? admitStart(start, asked, free) : 'it does not fit the truth';
      if (why === null) {
        accepted.push(start);
        devices.set(start.jobId, takeDevices(start, this.jobs.get(start.jobId) as MemoryJob, free));
      } else refused.push({ jobId: start.jobId, why });
    }
    for (const start of [...accepted].sort((a, b) => a.jobId - b.jobId)) {
      const job = this.jobs.get(start.jobId) as MemoryJob;
      const epoch = job.epoch + 1;
      const whole = wholeMachines(start, job, free, devices.get(start.jobId) ?? null);
      this.begin(job, {
        epoch,
        siteId,
        allocations: start.allocations,
        pools: start.pools,
        devices: devices.get(start.jobId) ?? null,
        whole,
        assignedAt: Math.max(ms(context.now), job.dispatchedAt ?? 0),
        plannedS: start.plannedDuration,
        limitS: limitOf(job),
        placedBy: start.allocations.length === 0 ? 'SITE' : 'SERVICE',
      });
      this.occupy(job, { ...start, whole }, 1);
      this.decisions.push({ jobId: job.id, kind: 'START', policyVersion: context.policyVersion });
      this.change(job, 'start', { epoch });
    }
    if (reservation === null) this.held.delete(siteId);
    else
      this.held.set(siteId, {
        ...reservation,
        at: ms(storable(reservation.at)),
        madeAt: ms(reservation.madeAt),
      });
    const epochs = accepted.map((start) => (this.jobs.get(start.jobId) as MemoryJob).epoch);
    return { accepted: accepted.map((start) => start.jobId), epochs, refused, outdated: false };
  }

  begin(
    job: MemoryJob,
    run: Pick<MemoryRun, 'epoch' | 'siteId' | 'assignedAt' | 'plannedS' | 'placedBy'> & Partial<MemoryRun>,
  ): void {
    this.runs.set(`${job.id}/${run.epoch}`, {
      ...{
        jobId: job.id,
        allocations: [],
        pools: [],
        devices: null,
        whole: null,
        limitS: job.runTimeLimitS,
        startedAt: null,
        endedAt: null,
        checkpointAt: null,
      },
      ...{
        cause: null,
        tasks: new Map(),
        failedTask: null,
        ending: false,
        recalled: false,
        signals: [],
        retry: null,
      },
      local: { id: null, state: null, nodes: null, imageDigest: null, directory: null },
      steps: [],
      report: null,
      ...run,
    });
  }

  /** Units of the machine that live runs have. */
  private unitsHeldOn(machineId: number): Map<string, HeldUnit> {
    const { devices: there = [] } = this.machines.get(machineId) as MemoryMachine;
    const held = new Map<string, HeldUnit>();
    for (const { jobId, endedAt, allocations, devices, whole } of this.runs.values()) {
      if (endedAt !== null) continue;
      for (const [i, one] of allocations.entries())
        for (const unit of one.machineId === machineId ? (devices?.[i] ?? []) : []) {
          const { memoryMb, shares } = there.find((device) => unitsOf(device).includes(unit)) as OwnedDevice;
          const own = whole?.taken?.[i]?.units?.[unit];
          const user = own === undefined ? null : String((this.jobs.get(jobId) as MemoryJob).userId);
          held.set(unit, { memoryMb: own ?? Math.floor(memoryMb / shares), user });
        }
    }
    return held;
  }

  private handOvers(site: Site | undefined): number | null {
    const limit = site && handOverLimit(localPolicyOf(site, this.policy.document));
    if (site === undefined || limit === null || limit === undefined) return null;
    const waits = (run: MemoryRun) =>
      run.siteId === site.id && run.endedAt === null && run.startedAt === null;
    return limit - [...this.runs.values()].filter(waits).length;
  }

  /** The agent that hands jobs over to the site's own scheduler. */
  private siteAgent(siteId: number): number | null {
    const served = [...this.machines.values()].find(
      (machine) => machine.siteId === siteId && !machine.removed && machine.agentId !== null,
    );
    return served?.agentId ?? null;
  }

  async reportLoad(
    siteId: number,
    agentId: number,
    { details: _, licenses, ...load }: ReportedLoad,
    now: number,
  ): Promise<boolean> {
    const site = this.sites.get(siteId);
    if (site === undefined || site.removed || this.siteAgent(siteId) !== agentId) return false;
    const busy = [...this.machines.values()].flatMap(({ id, name, siteId: at, removed }) =>
      load.busy
        .filter(({ machine }) => machine === name && at === siteId && !removed)
        .map(({ cpus, memoryMb }) => ({ machineId: id, cpus, memoryMb })),
    );
    const ofSite = [...this.runs.values()].filter(
      (run) =>
        run.siteId === siteId && run.placedBy === 'SITE' && (run.startedAt !== null || run.endedAt === null),
    );
    const waits = observedWaits(
      ofSite
        .filter(({ startedAt }) => startedAt === null || startedAt > now - WAITS_SEEN_S)
        .sort((a, b) => (b.startedAt ?? Infinity) - (a.startedAt ?? Infinity) || b.jobId - a.jobId)
        .map(({ jobId, startedAt, assignedAt, limitS }) => {
          const job = this.jobs.get(jobId) as MemoryJob;
          return {
            cpus: cpusOf(job),
            limitS,
            waitS: (startedAt ?? now) - assignedAt,
            began: startedAt !== null,
          };
        }),
    );
    const news = { ...load, waits, busy };
    const same = JSON.stringify(site.load ?? null) === JSON.stringify(news);
    site.load = news;
    if (!same) this.event('SITE', siteId, siteId);
    if (licenses !== null) this.setLicenses(siteId, licenses);
    return true;
  }

  private setLicenses(siteId: number, told: NonNullable<ReportedLoad['licenses']>): void {
    const there = [...this.licenses.values()].filter((pool) => pool.siteId === siteId && !pool.removed);
    for (const pool of there) {
      if (!pool.reported) continue;
      const copies = Math.max(pool.inUse, told.find(({ kind }) => kind === pool.kind)?.copies ?? 0);
      if (pool.copies === copies) continue;
      this.licenses.set(pool.id, { ...pool, copies });
      this.event('LICENSE', pool.id, siteId);
    }
    for (const { kind, copies } of [...told].sort((a, b) => (a.kind < b.kind ? -1 : 1))) {
      if (there.some((pool) => pool.kind === kind)) continue;
      const id = this.licenses.size + 1;
      this.licenses.set(id, { id, kind, copies, siteId, inUse: 0, removed: false, reported: true });
      this.event('LICENSE', id, siteId);
    }
  }

  private liveAt(siteId: number): number {
    return [...this.runs.values()].filter((run) => run.siteId === siteId && run.endedAt === null).length;
  }

  private keepPromises(siteId: number, kept: KeptPromises | null): boolean {
    const { revision, promises } = this.promised.get(siteId) ?? { revision: 0, promises: null };
    if (kept !== null && kept.revision !== revision) return false;
    if (kept !== null || promises !== null)
      this.promised.set(siteId, {
        revision: revision + 1,
        promises: structuredClone(kept?.promises ?? null),
      });
    return true;
  }

  async takeBack(siteId: number, context: PlanContext, limit: number): Promise<number[]> {
    const site = this.sites.get(siteId);
    if (site === undefined || (site.state === 'UP' && !site.removed)) return [];
    const found = [...this.jobs.values()].filter(
      (job) => (job.state === 'DISPATCHED' || job.state === 'QUEUED') && job.siteId === siteId,
    );
    return this.giveBack(found.slice(0, limit), context);
  }

  async returnJobs(
    siteId: number,
    jobIds: readonly number[],
    _reason: string,
    context: PlanContext,
  ): Promise<number[]> {
    const named = new Set(jobIds);
    const found = [...this.jobs.values()].filter(
      (job) =>
        named.has(job.id) && (job.state === 'DISPATCHED' || job.state === 'QUEUED') && job.siteId === siteId,
    );
    return this.giveBack(found, context);
  }

  async recallRuns(
    siteId: number,
    jobIds: readonly number[],
    _reason: string,
    context: PlanContext,
  ): Promise<number[]> {
    const found = [...jobIds].sort((a, b) => a - b).flatMap((id) => this.jobs.get(id) ?? []);
    const recalled: number[] = [];
    for (const job of found) {
      const run = this.runs.get(`${job.id}/${job.epoch}`);
      if (job.state !== 'ASSIGNED' || job.siteId !== siteId || !run || !isAtSite(run) || run.recalled)
        continue;
      run.recalled = true;
      this.decisions.push({ jobId: job.id, kind: 'TAKE_BACK', policyVersion: context.policyVersion });
      this.change(job, 'recall', { note: RECALLED });
      recalled.push(job.id);
    }
    return recalled;
  }

  async preempt(siteId: number, preemptions: readonly Preemption[], context: PlanContext): Promise<number[]> {
    const site = this.sites.get(siteId);
    const isUp = site?.state === 'UP' && !site.removed;
    const done = preemptions.filter((one) => refusePreemption(one, this.jobs, isUp) === null);
    const note = (jobId: number) =>
      this.decisions.push({ jobId, kind: 'PREEMPT', policyVersion: context.policyVersion });
    for (const { jobId, room, victims } of done) {
      note(jobId);
      const promised = structuredClone(room);
      this.change(this.jobs.get(jobId) as MemoryJob, 'promiseRoom', {
        promised,
        note: sayMakesRoom(victims),
      });
    }
    for (const { id, preempted } of done.flatMap(preemptedBy)) {
      note(id);
      const values = { stopCause: 'PREEMPTED', preempted, note: sayPreempted(preempted) } as const;
      this.change(this.jobs.get(id) as MemoryJob, 'preempt', values);
    }
    return done.map(({ jobId }) => jobId);
  }

  private giveBack(jobs: MemoryJob[], context: PlanContext): number[] {
    for (const job of jobs) {
      this.dropPromise(job);
      this.decisions.push({ jobId: job.id, kind: 'TAKE_BACK', policyVersion: context.policyVersion });
      this.change(job, 'takeBack', {});
    }
    return jobs.map((job) => job.id);
  }

  // In: agents --------------------------------------------------------------------------------------------------------

  async reportRuns(
    siteId: number,
    reports: readonly RunReport[],
    maxAttempts: number,
    agentId: number | null = null,
    outputBytes?: number,
  ): Promise<ReportOutcome> {
    return this.report(siteId, reports, maxAttempts, agentId, outputBytes);
  }

  /** Whether the agent serves the run as a whole: all its machines or, if it is launched once, the first. */
  private serves(agentId: number | null, { jobId, siteId, allocations, placedBy }: MemoryRun): boolean {
    if (agentId === null) return true;
    const { launch } = this.jobs.get(jobId) as MemoryJob;
    const held = launch === 'ONCE' ? allocations.slice(0, 1) : allocations;
    if (placedBy === 'SITE') return this.siteAgent(siteId) === agentId;
    return held.every(({ machineId }) => this.machines.get(machineId)?.agentId === agentId);
  }

  /** The tasks of a run whose tasks are reported one by one. */
  private tasksOf(run: MemoryRun): RunTasks | null {
    const job = this.jobs.get(run.jobId) as MemoryJob;
    if (!hasTasks(job) || run.allocations.length === 0) return null;
    const known = [...run.tasks];
    const ends = known.flatMap(([task, { end }]) => (end ? [{ ...end, task }] : []));
    const failure = ends.find(({ task }) => task === run.failedTask);
    return new RunTasks(
      {
        machines: run.allocations.map(({ machineId, tasks }) => {
          const { name, agentId } = this.machines.get(machineId) as MemoryMachine;
          return { name, tasks, agentId };
        }),
        onTaskFailure: job.onTaskFailure,
        assignedAt: run.assignedAt,
        ended: ends.length,
        endedAt: ends.length > 0 ? Math.max(...ends.map(({ at }) => at)) : null,
        begun: known.some(([, { startedAt, end }]) =>
          hasBegun({ exitCode: null, signal: null, cause: null, ...end, startedAt }),
        ),
        failure: failure ? { ...failure, cause: failure.cause as EndCause } : null,
        ending: run.ending,
      },
      known.map(([task, { startedAt, end }]) => [task, { startedAt, ended: end !== null }]),
    );
  }

  /** What the tasks of a run have used. */
  private usedBy(run: MemoryRun): Pick<RunReport, 'ioWaitS' | 'usage'> {
    const ends = [...run.tasks.values()].flatMap(({ end }) => end ?? []);
    const waits = ends.map(({ ioWaitS }) => ioWaitS);
    const known = waits.every((wait) => wait !== null);
    const methods = ends.map(({ usage }) => usage?.ioWaitMethod ?? null).filter((method) => method !== null);
    const order = ['CGROUP', 'DELAY_ACCOUNTING', 'PROC', 'SAMPLES', 'SCHEDULER', 'SIMULATED'] as const;
    return {
      ioWaitS: known ? waits.reduce((sum, wait) => sum + wait, 0) / waits.length : null,
      usage: { ioWaitMethod: order.findLast((method) => methods.includes(method)) ?? null },
    };
  }

  report(
    siteId: number | null,
    reports: readonly RunReport[],
    maxAttempts: number,
    agentId: number | null = null,
    userBytes = Number.POSITIVE_INFINITY,
  ): ReportOutcome {
    const touched = new Set<number | null>();
    const starts: (() => void)[] = [];
    const ends: (() => void)[] = [];
    const requeues: (() => void)[] = [];
    const completed: { job: MemoryJob; run: MemoryRun; report: RunReport }[] = [];
    const ended: MemoryRun[] = [];
    const broken = new Map<number, string>();
    // Judged one after the other, written as the store writes: starts, ends, then what queues again, each in id order.
    const views = new Map<number, MemoryJob>();
    const timeOf = timesOfReports(reports, this.now());
    const endings: (() => void)[] = [];
    const results = reports.map((told): ReportResult => {
      const job = this.jobs.get(told.jobId);
      const run = this.runs.get(`${told.jobId}/${told.epoch}`);
      if (job === undefined || run === undefined || (siteId !== null && run.siteId !== siteId))
        return 'unknown-run';
      const task = told.task ?? null;
      const latest = this.runs.get(`${job.id}/${job.epoch}`);
      if (task === null && latest && !this.serves(agentId, latest)) return 'unknown-run';
      if (run === latest && !isMeant(told.token, run.assignedAt)) return 'unknown-run';
      const view = views.get(job.id) ?? { ...job };
      views.set(job.id, view);
      let seen: Parameters<typeof judgeReport>[0] = { ...view, started: view.startedAt !== null };
      let report = told;
      if (task !== null) {
        const late = overtaken(seen, told);
        if (late !== null) return late;
        const of = this.tasksOf(run);
        if (!of?.serves(task, agentId)) return 'unknown-run';
        const since = of.since(task);
        const taken = { ...told, at: ms(timeOf(told, since)) };
        const judged = of.judge(taken, task, view.state === 'CANCELLING');
        if (judged.result !== 'accepted') return judged.result;
        const before = run.tasks.get(task) ?? { startedAt: null, end: null };
        if (judged.cause === null) run.tasks.set(task, { ...before, startedAt: taken.at });
        else {
          run.tasks.set(task, { ...before, end: { ...taken, cause: judged.cause } });
          run.failedTask = of.of.failure?.task ?? run.failedTask;
        }
        this.keepOutput(job.userId, told, told.outputs ?? [], userBytes);
        run.steps.push(...takenSteps(told, taken.at, since));
        if (judged.ends) {
          run.ending = true;
          endings.push(() => this.change(job, 'endTasks', {}));
        }
        if (judged.run === null) return 'accepted';
        report = judged.run;
        if (report.phase === 'ENDED') report = { ...report, ...this.usedBy(run) };
        seen = { ...seen, begun: of.of.begun };
      }
      const facts = () => this.retryFacts(run, seen.begun === true);
      const { result, started, end } = judgeReport(seen, report, maxAttempts, facts);
      if (result !== 'accepted') return task === null ? result : 'accepted';
      const since = run.startedAt ?? run.assignedAt;
      const at = task === null ? ms(timeOf(report, since)) : report.at;
      if (report.local)
        run.local = {
          id: report.local.id ?? run.local.id,
          state: report.local.state ?? run.local.state,
          nodes: report.local.nodes ?? run.local.nodes,
          imageDigest: report.local.imageDigest ?? run.local.imageDigest,
          directory: report.local.directory ?? run.local.directory,
        };
      if (started) {
        if (isAtSite(run)) touched.add(run.siteId);
        run.startedAt = at;
        view.startedAt = at;
        if (view.state === 'ASSIGNED') view.state = 'RUNNING';
        starts.push(() => this.change(job, 'reportStart', { startedAt: at }));
      }
      if (task === null) {
        this.keepOutput(job.userId, report, report.outputs ?? [], userBytes);
        run.steps.push(...takenSteps(told, at, since));
      }
      if (end === null) return result;
      view.state = end.state;
      view.cause = end.cause;
      Object.assign(run, { endedAt: at, cause: causeOfRun(seen, end, report.cause), retry: end.retry });
      run.report = report;
      this.occupy(job, run, -1);
      touched.add(run.siteId);
      const { message, exitCode } = report;
      ended.push(run);
      if (report.cause === 'MACHINE_FAILED') {
        touched.add(null);
        const place =
          run.failedTask === null
            ? 0
            : placeOf(
                run.allocations.map(({ tasks }) => tasks),
                run.failedTask,
              );
        if (run.placedBy === 'SERVICE')
          broken.set(run.allocations[place]?.machineId as number, `the last launch failed: ${message ?? ''}`);
      }
      if (end.cause === null) {
        touched.add(null);
        const { retries, memoryMb: memoryMbPerTask, avoids, note, delayS } = end.retry;
        const values = { message: messageOfNext(report, end), note, retries, memoryMbPerTask, avoids };
        requeues.push(() => {
          if (end.state === 'BLOCKED') this.waitUntil(job, ms(at + (delayS as number)));
          this.change(job, 'requeue', values, end.state);
        });
      } else {
        const deadlineMissed = job.deadlineMissed || (job.deadline !== null && at > job.deadline);
        const note = end.retry?.note ?? null;
        const values = { cause: end.cause, endedAt: at, exitCode, message, note, deadlineMissed };
        ends.push(() => this.change(job, 'reportEnd', values, end.state));
        if (end.state === 'COMPLETED') completed.push({ job, run, report });
      }
      return result;
    });
    for (const step of [...starts, ...endings, ...ends, ...requeues]) step();
    this.noteLaunches(ended, broken);
    for (const { job, run, report } of completed.sort((a, b) => a.job.id - b.job.id))
      this.learn(job, run, report);
    return { results, touched: [...touched] };
  }

  private waitUntil(job: MemoryJob, at: number): void {
    const before = this.jobWaits.get(job.id) ?? { needs: [], onUnmet: 'RUN' as const, because: null };
    this.jobWaits.set(job.id, { ...before, notBefore: at, dueAt: at });
  }

  private retryFacts(live: MemoryRun, begun: boolean): RetryFacts {
    const job = this.jobs.get(live.jobId) as MemoryJob;
    const placeOf = ({ siteId, allocations, failedTask }: MemoryRun) =>
      placeOfFailure({
        siteId,
        failedTask,
        machineIds: allocations.map(({ machineId }) => machineId),
        machineTasks: allocations.map(({ tasks }) => tasks),
      });
    const counted = [...this.runs.values()].filter((run) => run.jobId === job.id && run.retry?.counted);
    const machines = [...this.machines.values()]
      .filter(({ removed, siteId }) => !removed && this.sites.get(siteId)?.removed === false)
      .map((machine) => ({ site: (this.sites.get(machine.siteId) as Site).name, machine }));
    return { job, begun, before: counted.map(placeOf), here: placeOf(live), machines };
  }

  /** `broken`: why the last launch on a machine failed. */
  private noteLaunches(ended: readonly MemoryRun[], broken: ReadonlyMap<number, string>): void {
    for (const run of ended) {
      if (run.startedAt === null || run.cause === 'MACHINE_FAILED') continue;
      for (const { machineId } of run.allocations)
        (this.machines.get(machineId) as MemoryMachine).launchFailures = 0;
    }
    for (const [id, problem] of [...broken].sort(([a], [b]) => a - b)) {
      const machine = this.machines.get(id) as MemoryMachine;
      machine.launchFailures++;
      machine.problem = problem;
      if (machine.state === 'UP' && machine.launchFailures >= MACHINE_FAILURES_MAX)
        machine.state = 'DRAINING';
      this.event('MACHINE', id, machine.siteId);
    }
  }

  /** Enters a run that ended well in the history of its application. */
  private learn(job: MemoryJob, run: MemoryRun, report: RunReport): void {
    // On machines that nobody here knows.
    if (run.allocations.length === 0) return;
    const { application, userId } = job;
    const sitePower = Math.min(
      ...run.allocations.map(({ machineId }) => (this.machines.get(machineId) as MemoryMachine).benchmark),
    );
    const endedAt = run.endedAt as number;
    const turnaroundS = Math.max(
      endedAt - (run.startedAt ?? endedAt),
      Math.min(endedAt, this.now()) - run.assignedAt,
    );
    const tookS = ms(turnaroundS);
    if (tookS <= 0) return;
    // Not measured: never guessed from idle time, and not part of the totals.
    const ioS = report.ioWaitS === null ? null : Math.max(0, Math.min(tookS, report.ioWaitS));
    const observed = { turnaroundS: tookS, ioS, sitePower };
    const kinds = resourceKinds(job);
    const key = JSON.stringify([application, userId, kinds]);
    const before = this.totals.get(key)?.record ?? noRuns({ application, userId, kinds });
    if (ioS !== null) {
      const record = totalsWith(before, { ...observed, ioS }, this.policy.document.referencePower);
      this.totals.set(key, { record, event: this.lastEvent });
    }
    const ratio = this.ratio(application);
    this.ratioPoints.push({
      id: ++this.lastPoint,
      application,
      at: Math.min(run.endedAt as number, this.now()),
      jobId: job.id,
      epoch: run.epoch,
      siteId: run.siteId,
      ...observed,
      ioMethod: report.usage?.ioWaitMethod ?? null,
      ...ratio,
    });
  }

  private ratio(application: string): { runs: number; computation: number | null } {
    const own = [...this.totals.values()]
      .map(({ record }) => record)
      .filter((record) => record.application === application);
    if (own.length === 0) return { runs: 0, computation: null };
    const [turnaround, execution] = (['turnaround', 'execution'] as const).map((name) =>
      own.reduce((sum, record) => sum + record[name], 0n),
    ) as [bigint, bigint];
    const runs = own.reduce((sum, { count }) => sum + count, 0);
    return { runs, computation: computationOf({ turnaround, execution }) };
  }

  async assignments(
    siteId: number,
    after: Cursor | ListPlace | null,
    limit: number,
    bytesMax: number,
    agentId: number | null = null,
  ): Promise<AssignmentBatch> {
    const live = (job: MemoryJob) =>
      isLive(job.state) &&
      job.siteId === siteId &&
      // What a peer offered is not run before the peer has granted it.
      this.federation.foreign.get(job.id)?.epoch !== null &&
      (agentId === null || agentsOf(this.assignment(job)).includes(agentId));
    const recent = this.events.filter((event) => event.id > Number(after));
    if (
      typeof after !== 'string' ||
      Number(after) < this.horizon ||
      Number(after) > this.lastEvent ||
      recent.some((event) =>
        isGivenUp(event, siteId, this.runs.get(`${event.entityId}/${event.epoch}`)?.cause),
      )
    ) {
      const place = typeof after === 'string' ? null : after;
      const left = [...this.jobs.values()].filter((job) => live(job) && job.id > (place?.jobId ?? 0));
      const part = this.fitting(left, bytesMax).slice(0, limit);
      const last = part.length === left.length;
      const cursor = place?.cursor ?? String(this.lastEvent);
      return {
        next: last ? cursor : { cursor, jobId: part.at(-1)!.id },
        list: { first: place === null, last },
        assignments: part.map((job) => this.assignment(job)),
      };
    }
    const news = recent.filter((event) => isNews(event, siteId)).slice(0, limit);
    const places = new Map<number, number>();
    for (const { id, entityId } of news) {
      places.delete(entityId);
      places.set(entityId, id);
    }
    const found = [...places.keys()].map((id) => this.jobs.get(id) as MemoryJob).filter(live);
    const part = this.fitting(found, bytesMax);
    const end = news.length < limit ? recent.at(-1)?.id : news.at(-1)?.id;
    return {
      next: String((part.length < found.length ? places.get(part.at(-1)!.id) : end) ?? after),
      list: null,
      assignments: part.map((job) => this.assignment(job)),
    };
  }

  /** As many of the runs as begin within so many bytes. */
  private fitting(jobs: readonly MemoryJob[], bytesMax: number): MemoryJob[] {
    let before = 0;
    return jobs.filter((job) => {
      const fits = before < bytesMax;
      const { machines, known } = this.assignment(job);
      before += job.bytes + 128 * machines.length + 16 * known.length;
      return fits;
    });
  }

  async registerAgent(
    registration: AgentRegistration,
    now: number,
    maxAttempts: number,
  ): Promise<RegistrationOutcome> {
    const { siteId, identity, instance, host, machines } = registration;
    const claims = machines && new Map(machines.map((one) => [one.name, one]));
    const claimed = () =>
      [...this.machines.values()].filter(
        (machine) => machine.siteId === siteId && !machine.removed && (claims?.has(machine.name) ?? true),
      );
    const holder = (machine: MemoryMachine) =>
      machine.agentId === null ? undefined : this.agents.get(machine.agentId);
    const foreign = (machine: MemoryMachine) => (holder(machine)?.identity ?? identity) !== identity;
    const liveOn = (machine: MemoryMachine) =>
      [...this.runs.values()].filter(
        (run) => run.endedAt === null && run.allocations.some(({ machineId }) => machineId === machine.id),
      );
    const taken = claimed().filter(
      (machine) => machine.silent && foreign(machine) && (claims?.get(machine.name)?.waits ?? null) === null,
    );
    const orphans = taken.flatMap(liveOn);
    const gone = new Set(taken.map(({ id }) => id));
    const reports = this.lostWith(new Set(orphans), gone).map((run) => serviceReport(run, now, 'LOST', ''));
    const { touched } = this.report(null, reports, maxAttempts);

    let agent = [...this.agents.values()].find((one) => one.siteId === siteId && one.identity === identity);
    if (agent === undefined) {
      const id = this.agents.size + 1;
      agent = { id, siteId, identity, instance, superseded: [], host, seenAt: ms(now), problem: null };
      this.agents.set(agent.id, agent);
      this.event('AGENT', agent.id, siteId);
    } else {
      if (agent.superseded.includes(instance))
        return { agentId: 'superseded', machines: [], changed: false, touched };
      if (agent.instance !== instance) {
        this.event('AGENT', agent.id, siteId);
        agent.superseded.unshift(agent.instance);
      }
      Object.assign(agent, { instance, host, seenAt: Math.max(agent.seenAt, ms(now)) });
    }
    const known = new Set(claimed().map(({ name }) => name));
    let made = false;
    for (const { name, measured } of machines ?? []) {
      if (known.has(name) || measured === null) continue;
      const { gpus: _, model: __, ...shape } = measured;
      const id = this.addMachine({ siteId, name, ...shape, licenseIds: [], maxTasks: null });
      (this.machines.get(id) as MemoryMachine).powerMeasured = true;
      made = true;
    }
    let changed = made;
    const leased: LeasedMachine[] = claimed().map((machine) => {
      const held = holder(machine);
      const asked = {
        ...machine,
        machineId: machine.id,
        holderHost: held?.host ?? null,
        holderSeenAt: held?.seenAt ?? null,
        busy: foreign(machine) && liveOn(machine).length > 0,
        devices: machine.devices ?? [],
      };
      const answer = claim(registration, agent.id, asked, now);
      if (answer.changed) {
        const { measured, problem } = answer;
        Object.assign(machine, { agentId: agent.id, silent: false, measured, problem });
        if (machine.powerMeasured && measured) machine.benchmark = measured.benchmark;
        this.event('MACHINE', machine.id, siteId);
        changed = true;
      }
      const { machineId, name, refused, problem } = answer;
      return { machineId, name, refused, problem };
    });
    for (const { name } of machines ?? [])
      if (!leased.some((one) => one.name === name))
        leased.push({
          machineId: null,
          name,
          refused: `there is no machine ${name} at the site`,
          problem: null,
        });
    return { agentId: agent.id, machines: leased, changed, touched };
  }

  async heartbeat(beats: readonly AgentBeat[], now: number): Promise<HeartbeatOutcome> {
    const touched = new Set<number>();
    const answers = beats.map(({ siteId, agentId, instance }) => {
      const agent = this.agents.get(agentId);
      if (agent === undefined) return 'unknown';
      if (agent.siteId !== siteId || agent.instance !== instance)
        return agent.superseded.includes(instance) ? 'superseded' : 'unknown';
      agent.seenAt = Math.max(agent.seenAt, ms(now));
      for (const machine of this.machines.values()) {
        if (machine.agentId !== agentId || !machine.silent || machine.removed) continue;
        machine.silent = false;
        this.event('MACHINE', machine.id, siteId);
        touched.add(siteId);
      }
      return 'known';
    });
    return { answers, touched: [...touched] };
  }

  async noteCheckpoints(
    siteId: number,
    agentId: number,
    reports: readonly CheckpointReport[],
  ): Promise<void> {
    for (const { jobId, epoch, token, task, ageS } of reports) {
      const run = this.runs.get(`${jobId}/${epoch}`);
      const job = this.jobs.get(jobId);
      if (run?.siteId !== siteId || run.endedAt !== null || !job?.checkpoint) continue;
      if (!isMeant(token, run.assignedAt)) continue;
      const told = ms(this.now() - ageS);
      if (task === null) {
        if (!this.serves(agentId, run)) continue;
        run.checkpointAt = Math.max(run.checkpointAt ?? 0, run.startedAt ?? run.assignedAt, told);
        continue;
      }
      const known = run.tasks.get(task);
      if (!this.tasksOf(run)?.serves(task, agentId) || !known || known.startedAt === null || known.end)
        continue;
      known.checkpointAt = Math.max(known.checkpointAt ?? 0, known.startedAt, told);
      const all = [...run.tasks.values()].map(({ checkpointAt }) => checkpointAt ?? Number.NaN);
      if (all.length === job.tasks && !all.some(Number.isNaN)) run.checkpointAt = Math.min(...all);
    }
  }

  async checkpointsAt(siteId: number): Promise<RunCheckpoint[]> {
    return [...this.runs.values()].flatMap(({ jobId, epoch, siteId: at, endedAt, checkpointAt }) =>
      at === siteId && endedAt === null && checkpointAt !== null ? [{ jobId, epoch, at: checkpointAt }] : [],
    );
  }

  // In: people --------------------------------------------------------------------------------------------------------

  async cancel(
    selection: JobSelection,
    now: number,
    cause: 'CANCELLED_BY_USER' | 'CANCELLED_BY_OPERATOR',
  ): Promise<SelectionOutcome> {
    return this.cancelFor(selection, now, cause);
  }

  cancelFor(selection: JobSelection, now: number, cause: EndCause): SelectionOutcome {
    return this.act(selection, ['cancel', 'stop', 'stopForGood'], (job) => this.stop(job, ms(now), cause));
  }

  async requeue(selection: JobSelection): Promise<SelectionOutcome> {
    return this.act(selection, ['stop'], ({ ...job }) =>
      this.change(this.jobs.get(job.id) as MemoryJob, 'stop', {
        stopCause: 'REQUEUED',
        deadlineMissed: job.deadlineMissed,
      }),
    );
  }

  async signal(selection: JobSelection, sent: Omit<SentSignal, 'number'>): Promise<SelectionOutcome> {
    const runOf = (job: MemoryJob) => this.runs.get(`${job.id}/${job.epoch}`) as MemoryRun;
    return this.act(
      selection,
      ['signal'],
      (job) => {
        const run = runOf(job);
        const number = (run.signals.at(-1)?.number ?? 0) + 1;
        run.signals = [...run.signals, { number, ...sent }].slice(-SIGNALS_KEPT);
        this.change(job, 'signal', { note: signalNote(sent) });
      },
      (job) => runOf(job).placedBy === 'SERVICE',
    );
  }

  async hold(selection: JobSelection): Promise<SelectionOutcome> {
    return this.act(selection, ['hold'], (job) =>
      this.change(job, 'hold', { siteId: job.state === 'QUEUED' ? null : job.siteId }),
    );
  }

  async setAside(jobIds: readonly number[], message: string): Promise<number[]> {
    const selection = { ids: [...jobIds], ownedBy: null, limit: jobIds.length };
    const { changed } = this.act(selection, ['setAside'], (job) =>
      this.change(job, 'setAside', { siteId: job.state === 'QUEUED' ? null : job.siteId, message }),
    );
    return changed;
  }

  async release(selection: JobSelection): Promise<SelectionOutcome> {
    return this.act(selection, ['release'], (job) => {
      const site = this.sites.get(job.siteId ?? 0);
      const { siteId, priority, dispatchedAt } = job;
      const wait = this.jobWaits.get(job.id);
      if (wait !== undefined && wait.because !== null)
        this.jobWaits.set(job.id, { ...wait, onUnmet: 'RUN', because: null });
      if (wait !== undefined && (job.eligibleAt === null || (wait.notBefore ?? 0) > this.now()))
        this.change(job, 'release', { siteId: null, priority: null, dispatchedAt: null }, 'BLOCKED');
      else if (site?.state === 'UP' && !site.removed)
        this.change(job, 'release', { siteId, priority, dispatchedAt }, 'DISPATCHED');
      else this.change(job, 'release', { siteId: null, priority: null, dispatchedAt: null }, 'QUEUED');
    });
  }

  async waitsOf(jobIds: readonly number[]): Promise<Map<number, JobWait>> {
    const found = jobIds.flatMap((id) => (this.jobWaits.has(id) ? [id] : []));
    return new Map(found.map((id) => [id, this.jobWaits.get(id) as JobWait]));
  }

  /** When the first job that waits for a time is due; Infinity: none does. */
  firstDue(): number {
    const due = [...this.jobWaits].flatMap(([id, { dueAt }]) =>
      dueAt !== null && this.jobs.get(id)?.state === 'BLOCKED' ? [dueAt] : [],
    );
    return Math.min(Infinity, ...due);
  }

  async settleNeeds(about: NeedsNews, now: number): Promise<NeedsOutcome> {
    const outcome: NeedsOutcome = { queued: 0, cancelled: 0, held: 0 };
    const blocked = [...this.jobWaits].flatMap(([id, wait]) => {
      const job = this.jobs.get(id) as MemoryJob;
      return job.state === 'BLOCKED' ? [{ job, wait }] : [];
    });
    const concerned = ({ job, wait }: (typeof blocked)[number]): boolean =>
      about === 'ALL' ||
      (about === 'DUE'
        ? wait.dueAt !== null && wait.dueAt <= now
        : about.includes(job.id) ||
          about.some((id) =>
            [...targetsOf(wait.needs).values()].some((target) => this.membersOf(target, job.userId).has(id)),
          ));
    for (let left = blocked.filter(concerned); left.length > 0; ) {
      const cancelled: number[] = [];
      for (const { job, wait } of left) {
        if (job.state !== 'BLOCKED') continue;
        const targets = [...targetsOf(wait.needs)];
        const outcomes = new Map(
          targets.map(([key, target]) => [key, outcomeOf([...this.membersOf(target, job.userId).values()])]),
        );
        const change = decided({ ...job, ...wait }, outcomes, (of) => this.keptBy(of), now);
        if (change === null) continue;
        this.becomes(job, wait, change);
        if (change.becomes === 'CANCELLED') cancelled.push(job.id);
        if (change.becomes !== 'BLOCKED') outcome[change.becomes.toLowerCase() as keyof NeedsOutcome]++;
      }
      left = blocked.filter(({ job, wait }) =>
        [...targetsOf(wait.needs).values()].some((target) => {
          const members = this.membersOf(target, job.userId);
          return cancelled.some((id) => members.has(id));
        }),
      );
    }
    return outcome;
  }

  /** A run of the job has left the file with the service, or as a dataset. */
  keep(job: number, path: string, kept: { sizeMb: number } | { datasetId: number }): void {
    this.kept.set(outputKey({ job, path }), kept);
  }

  private keptBy(of: { job: number; path: string }): Kept | null {
    const kept = this.kept.get(outputKey(of)) ?? null;
    if (kept === null || 'datasetId' in kept) return kept;
    return { ...kept, siteId: this.jobs.get(of.job)?.siteId as number };
  }

  private becomes(job: MemoryJob, wait: JobWait, change: NeedsDecision): void {
    if (change.becomes === 'BLOCKED') {
      this.jobWaits.set(job.id, { ...wait, dueAt: change.at });
      return;
    }
    const at = Math.max(ms(change.at), job.submittedAt);
    if (change.becomes === 'QUEUED') {
      this.jobWaits.set(job.id, { ...wait, dueAt: change.at });
      const inputs = change.inputs ?? job.inputs;
      this.change(job, 'unblock', { eligibleAt: job.epoch === 0 ? at : job.eligibleAt, inputs });
      return;
    }
    const { because } = change;
    this.jobWaits.set(job.id, { ...wait, dueAt: null, because });
    const message = unmetMessage(change, this.jobs.get(because)?.name ?? null);
    if (change.becomes === 'HELD') this.change(job, 'holdUnmet', { message });
    else {
      const deadlineMissed = job.deadlineMissed || (job.deadline !== null && at > job.deadline);
      const cause = 'DEPENDENCY_FAILED';
      this.change(job, 'unmet', { stopCause: cause, cause, endedAt: at, deadlineMissed, message });
    }
  }

  hasCopy(id: number): boolean {
    return this.copyAsOf(id, Infinity) !== undefined;
  }

  /** The copy of a job that is there as of a job. */
  private copyAsOf(id: number, asOf: number): MemoryJob | undefined {
    return [...this.jobs.values()].find((job) => job.rerunOf === id && job.id <= asOf);
  }

  private inGroup(target: Exclude<NeedTarget, { job: number }>, userId: number): MemoryJob[] {
    return [...this.jobs.values()].filter((job) =>
      'jobGroup' in target
        ? job.groupId === target.jobGroup
        : job.groupName === target.group && job.userId === userId && job.id <= target.until,
    );
  }

  /** What a term names, each with its copies that take its place, the latest one last. */
  private namedBy(target: NeedTarget, userId: number): MemoryJob[][] {
    const only = 'job' in target ? this.jobs.get(target.job) : undefined;
    const named = 'job' in target ? (only ? [only] : []) : this.inGroup(target, userId);
    const asOf = 'job' in target ? 0 : (target.again?.asOf ?? 0);
    return named.map((job) => {
      const copies = [job];
      for (let next = this.copyAsOf(job.id, asOf); next; next = this.copyAsOf(next.id, asOf))
        copies.push(next);
      return copies;
    });
  }

  /** How members of a group have been run again so far. */
  private againOf(userId: number): AgainOf {
    return (group) => {
      const all = this.namedBy({ ...group, again: { asOf: Infinity, groups: [] } }, userId);
      const copies = all.flatMap((job) => job.slice(1));
      if (copies.length === 0) return undefined;
      const groups = [...new Set(copies.map(({ groupId }) => groupId as number))].sort((a, b) => a - b);
      return { asOf: Math.max(...copies.map(({ id }) => id)), groups };
    };
  }

  /** What a term is about, by id. */
  private membersOf(target: NeedTarget, userId: number): Map<number, MemberFacts> {
    const members = this.namedBy(target, userId).map((copies) => copies.at(-1) as MemoryJob);
    return new Map(
      members.map(({ id, epoch, endedAt, state }) => {
        const starts = Array.from({ length: epoch }, (_, i) => this.runs.get(`${id}/${i + 1}`)?.startedAt);
        const known = starts.filter((at) => typeof at === 'number');
        const firstStart = known.length === 0 ? null : Math.min(...known);
        return [id, [id, firstStart, endedAt, state === 'COMPLETED']];
      }),
    );
  }

  async reprioritize(selection: JobSelection, boost: number): Promise<SelectionOutcome> {
    return this.act(selection, ['boost'], (job) => this.change(job, 'boost', { boost }));
  }

  async revise(selection: JobSelection, changes: JobChanges): Promise<ChangeOutcome> {
    const nothing = {
      ...{ changed: [], refused: [], missing: [], tooMany: false, touched: [], gone: [], bytes: null },
    };
    const selected = this.selected(selection);
    if ((selection.ids ?? selected).length > selection.limit) return { ...nothing, tooMany: true };
    const found = selected.map((job): ChangingJob => {
      const { wait: asked, values } = changes;
      const isRead = asked !== null || values.atOnce !== undefined;
      const wait = isRead ? (this.jobWaits.get(job.id) ?? null) : null;
      return { ...job, foreign: this.federation.foreign.has(job.id), wait };
    });
    const terms = (changes.wait?.needs ?? []).flatMap(({ of }) => of);
    const gone = terms.flatMap((term) => ('job' in term && !this.jobs.has(term.job) ? [term.job] : []));
    if (gone.length > 0) return { ...nothing, gone: [...new Set(gone)] };
    const until = this.lastId;
    const againOf = this.againOf(changes.userId);
    const { atOnce } = changes.values;
    const lanes = atOnce === undefined ? null : lanesOf(found, atOnce ?? 0);
    const reached = this.reachedFrom(
      lanes?.others ?? stored(changes.wait?.needs ?? [], [until], againOf),
      lanes?.userId ?? changes.userId,
    );
    const circular = new Set(found.flatMap(({ id }) => (reached.has(id) ? [id] : [])));
    const decisions = found.map((job) => ({
      job,
      decision: decideChange(job, changes, { until, circular, againOf, lanes }),
    }));
    const grown = decisions.reduce(
      (sum, { job, decision }) => sum + (decision.kind === 'DONE' ? decision.bytes - job.bytes : 0),
      0,
    );
    const own = [...this.jobs.values()].filter(
      (job) => job.userId === selection.ownedBy && job.endedAt === null,
    );
    const bytes = own.reduce((sum, job) => sum + job.bytes, grown);
    if (grown > 0 && selection.ownedBy !== null && bytes > (changes.bytesMax ?? Infinity))
      return { ...nothing, bytes };
    const touched = new Set<number | null>();
    for (const { job: before, decision } of decisions) {
      if (decision.kind !== 'DONE') continue;
      const { action, state, values: given, note, bytes, wait } = decision;
      const job = this.jobs.get(before.id) as MemoryJob;
      if (wait !== null) this.jobWaits.set(job.id, wait);
      const values = { ...only(job, changeableFields), ...given, note, bytes };
      if (action === 'amend') this.change(job, 'amend', only(values, [...amendableFields, 'note', 'bytes']));
      else {
        touched.add(null).add(holderOf(job.state, job.siteId));
        if (job.state === 'DISPATCHED') this.dropPromise(job);
        const again = wait !== null && state !== 'QUEUED' && job.epoch === 0;
        this.change(
          job,
          'change',
          {
            ...values,
            message: wait === null ? job.message : null,
            eligibleAt: again ? null : job.eligibleAt,
            deadlineMissed: 'deadline' in changes.values ? false : job.deadlineMissed,
          },
          state,
        );
      }
    }
    return {
      ...nothing,
      changed: decisions.flatMap(({ job, decision }) => (decision.kind === 'REFUSED' ? [] : [job.id])),
      refused: decisions.flatMap(({ job, decision }) =>
        decision.kind === 'REFUSED' ? [{ jobId: job.id, fault: decision.fault }] : [],
      ),
      missing: (selection.ids ?? []).filter((id) => !selected.some((job) => job.id === id)),
      touched: [...touched],
    };
  }

  async rerun({ userId, target, only: which, limit, share, now }: Rerun): Promise<RerunOutcome> {
    const of = (job: MemoryJob): boolean =>
      job.userId === userId &&
      ('jobs' in target
        ? target.jobs.includes(job.id)
        : 'jobGroup' in target
          ? job.groupId === target.jobGroup
          : job.groupName === target.group);
    const members = new Set<number>();
    const wanted = new Set<number>();
    for (let size = -1; size < wanted.size; ) {
      size = wanted.size;
      for (const job of this.jobs.values()) {
        if ('jobs' in target) {
          if (of(job) && job.endedAt !== null && !this.federation.foreign.has(job.id)) wanted.add(job.id);
          continue;
        }
        if (of(job) || (job.rerunOf !== null && members.has(job.rerunOf))) members.add(job.id);
        if (job.endedAt === null || job.state === 'COMPLETED' || job.userId !== userId) continue;
        const because = this.jobWaits.get(job.id)?.because ?? 0;
        if (
          job.cause === 'DEPENDENCY_FAILED' ? which !== 'FAILED' && wanted.has(because) : members.has(job.id)
        )
          wanted.add(job.id);
      }
    }
    const ids = [...wanted].filter((id) => this.copyAsOf(id, Infinity) === undefined).sort((a, b) => a - b);
    const needs = (job: MemoryJob, wait: JobWait): boolean =>
      [...targetsOf(wait.needs).values()].some((one) => {
        const found = this.membersOf(one, job.userId);
        return ids.some((id) => found.has(id));
      });
    const waiting = [...this.jobWaits].flatMap(([id, wait]) => {
      const job = this.jobs.get(id) as MemoryJob;
      const asked =
        (job.state === 'BLOCKED' || job.state === 'HELD') && job.eligibleAt === null && job.epoch === 0;
      return asked && needs(job, wait) ? [{ job, wait }] : [];
    });
    if (ids.length > limit || waiting.length > limit) return { kind: 'too-many', limit };
    if (ids.length === 0) return { kind: 'accepted', jobIds: [], repointed: [] };
    const old = ids.map((id): OldJob => {
      const job = this.jobs.get(id) as MemoryJob;
      const given = only(job, Object.keys(givenFields) as (keyof typeof givenFields)[]);
      return { id, given, wait: this.jobWaits.get(id) ?? null };
    });
    const made = new Map(ids.map((id, i) => [id, this.lastId + 1 + i]));
    const latest = new Map(made);
    for (const { id, rerunOf } of [...this.jobs.values()].reverse())
      if (rerunOf !== null) latest.set(rerunOf, latest.get(id) ?? id);
    const known = { groupId: this.lastSubmission + 1, asOf: this.lastId + ids.length, now: ms(now) };
    const circular = this.reachedFrom(
      old.flatMap(({ wait }) => wait?.needs ?? []),
      userId,
    );
    const outcome = await this.submit({
      ...{ userId, idempotencyKey: null, payloadHash: '', group: null, share, now },
      jobs: old.map((job) => copyOf(job, { ...known, latest })),
      rerunOf: ids,
    });
    if (outcome.kind !== 'accepted') return outcome as RerunOutcome;
    const others = waiting.filter(({ job }) => !circular.has(job.id));
    for (const { job, wait } of others) {
      const {
        note,
        inputs,
        wait: after,
      } = repointed({ wait, inputs: job.inputs }, { ...known, latest: made });
      this.jobWaits.set(job.id, after);
      const isAsked = wait.because !== null;
      const message = isAsked ? null : job.message;
      this.change(job, 'repoint', { note, inputs, message }, isAsked ? 'BLOCKED' : job.state);
    }
    return { kind: 'accepted', jobIds: outcome.jobIds, repointed: others.map(({ job }) => job.id) };
  }

  private dropPromise({ id, siteId }: MemoryJob): void {
    const kept = this.promised.get(siteId as number);
    if (!kept?.promises) return;
    const jobs = kept.promises.jobs.filter(({ jobId }) => jobId !== id);
    this.promised.set(siteId as number, {
      revision: kept.revision + 1,
      promises: { ...kept.promises, jobs },
    });
  }

  /** All that these needs lead to. */
  private reachedFrom(needs: JobWait['needs'], userId: number): Set<number> {
    const reached = new Set<number>();
    const follow = (of: JobWait['needs'], user: number): void => {
      for (const target of targetsOf(of).values())
        for (const id of this.membersOf(target, user).keys()) {
          if (reached.has(id)) continue;
          reached.add(id);
          const job = this.jobs.get(id) as MemoryJob;
          const waits = (job.state === 'BLOCKED' || job.state === 'HELD') && job.eligibleAt === null;
          if (waits) follow(this.jobWaits.get(id)?.needs ?? [], job.userId);
        }
    };
    follow(needs, userId);
    return reached;
  }

  private act(
    selection: JobSelection,
    actions: readonly JobAction[],
    change: (job: MemoryJob) => void,
    only: (job: MemoryJob) => boolean = () => true,
  ): SelectionOutcome {
    const can = ({ state, stopCause }: MemoryJob) =>
      actions.some(
        (action) =>
          possible(action, state) &&
          (action !== 'stopForGood' || stopCause === 'REQUEUED' || stopCause === 'PREEMPTED'),
      );
    const { ids, limit } = selection;
    const selected = this.selected(selection);
    if ((ids ?? selected).length > limit) return { changed: [], unchanged: [], tooMany: true, touched: [] };
    const states = new Map(selected.map((job) => [job.id, job.state]));
    const changed = selected.filter((job) => can(job) && only(job));
    const did = new Set(changed.map(({ id }) => id));
    const touched = [...new Set(changed.map((job) => holderOf(job.state, job.siteId)))];
    for (const job of changed) change(job);
    return {
      changed: changed.map((job) => job.id),
      unchanged: [...new Set(ids ?? states.keys())]
        .map((jobId) => ({ jobId, state: states.get(jobId) ?? null }))
        .filter(({ jobId }) => !did.has(jobId)),
      tooMany: false,
      touched,
    };
  }

  private cancelIdle(now: number, limit: number, touched: Set<number | null>): void {
    for (const [id, idleTimeoutS] of this.groups) {
      if (idleTimeoutS === null) continue;
      const members = [...this.jobs.values()].filter(({ groupId }) => groupId === id);
      const living = members.filter(({ endedAt }) => endedAt === null);
      const changes = members
        .filter(({ cause }) => cause !== 'IDLE_TIMEOUT')
        .map(({ changedAt, submittedAt }) => changedAt ?? submittedAt);
      if (living.some(({ state }) => isLive(state)) || Math.max(...changes) + idleTimeoutS > now) continue;
      for (const job of living.slice(0, limit)) {
        touched.add(holderOf(job.state, job.siteId));
        this.stop(job, ms(now), 'IDLE_TIMEOUT');
      }
    }
  }

  private selected({ ids, filter = {}, ownedBy }: JobSelection): MemoryJob[] {
    const chooses = jobPredicate(filter);
    const matches = (job: MemoryJob): boolean =>
      chooses({ ...job, needsOthers: (this.jobWaits.get(job.id)?.needs.length ?? 0) > 0 });
    const { groupId } = filter;
    const inGroup = (job: MemoryJob) => groupId === undefined || this.groups.has(job.groupId ?? 0);
    const mine = [...this.jobs.values()].filter((job) => ownedBy === null || job.userId === ownedBy);
    return ids !== undefined
      ? mine.filter((job) => ids.includes(job.id))
      : mine.filter((job) => job.endedAt === null && matches(job) && inGroup(job));
  }

  // Time --------------------------------------------------------------------------------------------------------------

  async sweep(rules: SweepRules): Promise<SweepOutcome> {
    const { now, limit, maxAttempts } = rules;
    const touched = new Set<number | null>();
    const outcome = { silentMachines: 0, lostRuns: 0, deadlinesMissed: 0, overLimit: 0 };
    const end = (lost: readonly Pick<RunReport, 'jobId' | 'epoch' | 'task'>[], cause: EndCause) => {
      const reports = lost.map((run) => serviceReport(run, now, cause, ''));
      const { results, touched: schedulers } = this.report(null, reports, maxAttempts);
      for (const scheduler of schedulers) touched.add(scheduler);
      return results.filter((result) => result === 'accepted').length;
    };
    const byJob = (a: MemoryRun, b: MemoryRun) => a.jobId - b.jobId;
    const live = () => [...this.runs.values()].filter((run) => run.endedAt === null).sort(byJob);

    const there = [...this.processes.values()].filter(
      ({ kind, seenAt }) => kind === 'api' && seenAt >= now - PRESENCE_GAP_S,
    );
    let dead: ReadonlySet<number> = new Set();
    if (there.length > 0) {
      const present = Math.min(...there.map(({ since }) => since));
      const silentFor = ({ agentId }: MemoryMachine) =>
        now - Math.max(this.agents.get(agentId as number)?.seenAt ?? -Infinity, present);
      const inService = [...this.machines.values()].filter(
        (machine) => !machine.removed && machine.agentId !== null,
      );
      const silent = inService.filter(
        (machine) => !machine.silent && silentFor(machine) > rules.silentAfterS,
      );
      for (const machine of silent.slice(0, limit)) {
        machine.silent = true;
        this.event('MACHINE', machine.id, machine.siteId);
        touched.add(machine.siteId).add(null);
        outcome.silentMachines++;
      }
      dead = new Set(
        inService
          .filter((machine) => machine.silent && silentFor(machine) > rules.lostAfterS)
          .map(({ id }) => id),
      );
      const lost = this.lostWith(live(), dead);
      outcome.lostRuns = end(lost.slice(0, limit), 'LOST');
      const silentSites = live().filter((run) => {
        const agentId = isAtSite(run) ? this.siteAgent(run.siteId) : null;
        if (agentId === null) return false;
        const seenAt = this.agents.get(agentId)?.seenAt ?? -Infinity;
        return now - Math.max(seenAt, present) > rules.lostAfterS;
      });
      outcome.lostRuns += end(silentSites.slice(0, limit), 'LOST');
      const atPeers = live().filter(({ siteId }) => {
        const peer = this.federation.peers.get(siteId);
        return peer !== undefined && now - Math.max(peer.seenAt ?? -Infinity, present) > peer.lostAfterS;
      });
      outcome.lostRuns += end(atPeers.slice(0, limit), 'LOST');
    }
    const over = live().filter((run) => {
      const { killGraceS } = this.jobs.get(run.jobId) as MemoryJob;
      return (
        run.startedAt !== null &&
        run.placedBy === 'SERVICE' &&
        run.limitS !== null &&
        run.startedAt < now - (run.limitS + killGraceS + rules.runTimeGraceS)
      );
    });
    outcome.overLimit = end(over.slice(0, limit), 'RUN_TIME_LIMIT');

    const passed = [...this.jobs.values()]
      .filter(
        (job) => job.endedAt === null && !job.deadlineMissed && job.deadline !== null && job.deadline < now,
      )
      .sort((a, b) => (a.deadline as number) - (b.deadline as number))
      .slice(0, limit)
      .sort((a, b) => a.id - b.id);
    for (const job of passed) {
      if (rules.onDeadlinePassed === 'CANCEL' && job.state !== 'CANCELLING') {
        touched.add(holderOf(job.state, job.siteId));
        this.stop(job, ms(now), 'DEADLINE_PASSED');
      } else this.change(job, 'missDeadline', { deadlineMissed: true });
    }
    outcome.deadlinesMissed = passed.length;
    this.cancelIdle(now, limit, touched);
    const stopped: StoppedForHold[] = [];
    for (const siteId of this.keepHolds(now, dead, stopped)) touched.add(siteId).add(null);
    return { ...outcome, stopped, touched: [...touched] };
  }

  async processSeen(id: string, kind: 'api' | 'worker', now: number): Promise<void> {
    const known = this.processes.get(id);
    const gone = known === undefined || known.seenAt < now - PRESENCE_GAP_S;
    this.processes.set(id, { kind, since: gone ? now : known.since, seenAt: now });
  }

  async prune(retention: Retention): Promise<Pruned> {
    const { eventsBefore, unreadBefore, jobsEndedBefore, processesBefore, limit } = retention;
    for (const [name, { leaseUntil }] of this.followers)
      if (leaseUntil < unreadBefore) this.followers.delete(name);
    const read = Math.min(...[...this.followers.values()].map(({ cursor }) => cursor));
    const young = this.events
      .slice(0, limit)
      .findIndex(({ at, id }) => at >= eventsBefore || (at >= unreadBefore && id > read));
    const events = this.events.splice(0, young < 0 ? limit : young);
    this.horizon = Math.max(this.horizon, events.at(-1)?.id ?? 0);
    const jobs = [...this.jobs.values()]
      .filter((job) => job.endedAt !== null && job.endedAt < jobsEndedBefore && !this.isNeeded(job.id))
      .slice(0, limit);
    for (const { id, epoch } of jobs) {
      this.jobs.delete(id);
      this.federation.jobDeleted(id);
      this.jobWaits.delete(id);
      for (let e = 1; e <= epoch; e++) {
        this.runs.delete(`${id}/${e}`);
        this.outputs.delete(`${id}/${e}`);
      }
    }
    const kept = this.ratioPoints.slice(0, limit).findIndex((point) => point.at >= jobsEndedBefore);
    const points = this.ratioPoints.splice(0, kept < 0 ? limit : kept);
    const old = this.submissions.filter(
      ({ userId, at }) => at < jobsEndedBefore - (this.user(userId).quota?.periodS ?? 0),
    );
    for (const submission of old.slice(0, limit))
      this.submissions.splice(this.submissions.indexOf(submission), 1);
    for (const [id, { seenAt }] of this.processes) if (seenAt < processesBefore) this.processes.delete(id);
    return {
      events: events.length,
      jobs: jobs.length,
      more: Math.max(events.length, jobs.length, old.length, points.length) >= limit,
    };
  }

  // -------------------------------------------------------------------------------------------------------------------

  /** Whether a job that has not ended needs it. */
  private isNeeded(id: number): boolean {
    return [...this.jobWaits].some(([of, { needs }]) => {
      const job = this.jobs.get(of) as MemoryJob;
      return (
        job.endedAt === null &&
        [...targetsOf(needs).values()].some((target) =>
          this.namedBy(target, job.userId).some((copies) => copies.some((one) => one.id === id)),
        )
      );
    });
  }

  private user(id: number): MemoryUser {
    const user = this.users.get(id);
    if (user === undefined) throw new Error(`there is no user ${id}`);
    return user;
  }

  private event(kind: EventKind, entityId: number, siteId: number | null, job: Partial<EventRow> = {}): void {
    const empty = {
      seq: null,
      fromState: null,
      toState: null,
      fromSiteId: null,
      userId: null,
      epoch: null,
      cause: null,
      note: null,
    };
    const at = this.now();
    const event = { id: ++this.lastEvent, at, kind, entityId, siteId, ...empty, ...job };
    this.events.push(event);
    countTraffic(this.traffic, { ...event, at });
  }

  /** A time of a job that is not before those which it shows already. */
  inOrder({ id, epoch, submittedAt, dispatchedAt }: MemoryJob, now: number): number {
    const before = Array.from({ length: epoch }, (_, i) => this.runs.get(`${id}/${i + 1}`)?.endedAt ?? 0);
    return Math.max(ms(now), submittedAt, dispatchedAt ?? 0, ...before);
  }

  private insert(
    spec: NewJob,
    userId: number,
    at: number,
    groupId: number | null,
    rerunOf: number | null = null,
    bytes = bytesOf(spec),
  ): number {
    const id = ++this.lastId;
    const { wait = null, ...job } = spec;
    const state = spec.held ? 'HELD' : waits(wait, at) ? 'BLOCKED' : 'QUEUED';
    this.jobs.set(id, {
      ...job,
      licenses: [...spec.licenses].sort(),
      deadline: spec.deadline === null ? null : ms(spec.deadline),
      id,
      userId,
      state,
      seq: 1,
      siteId: null,
      priority: null,
      groupId,
      schedulerId: null,
      treeMoves: 0,
      retries: 0,
      avoids: null,
      promised: null,
      preempted: null,
      note: rerunOf === null ? null : rerunNote(rerunOf),
      rerunOf,
      workflow: (rerunOf === null ? spec.workflow : this.jobs.get(rerunOf)?.workflow) ?? null,
      migratedAt: null,
      epoch: 0,
      cause: null,
      stopCause: null,
      message: null,
      deadlineMissed: false,
      atOnce: null,
      bytes,
      submittedAt: at,
      changedAt: null,
      dispatchedAt: null,
      startedAt: null,
      endedAt: null,
      exitCode: null,
      eligibleAt: null,
    });
    const note = rerunOf === null ? null : rerunNote(rerunOf);
    this.event('JOB_STATE', id, null, { at, seq: 1, toState: state, userId, note });
    return id;
  }

  /** The one place where a job changes: by the list of actions, and told. `state`: where the action leads to several. */
  change<A extends JobAction>(job: MemoryJob, action: A, values: ValuesOf<A>, state?: JobState): void {
    const { state: fromState, siteId: fromSiteId, schedulerId: fromScheduler, boost } = job;
    const { clears = [], keeps = [] } = jobActions[action] as { clears?: string[]; keeps?: JobState[] };
    if (!possible(action, fromState))
      throw new Error(`job ${job.id} is ${fromState}: ${action} is not possible`);
    Object.assign(job, Object.fromEntries(['note', ...clears].map((field) => [field, null])), values);
    job.state = state ?? (keeps.includes(fromState) ? fromState : (stateAfter(action) ?? fromState));
    job.seq++;
    job.changedAt = Math.max(job.changedAt ?? job.submittedAt, ms(this.now()));
    const { siteId } = job;
    const rehung = siteId !== fromSiteId || job.schedulerId !== fromScheduler;
    const moved = job.state !== fromState || (job.state === 'QUEUED' && rehung);
    if (moved) assertTransition(fromState, job.state);
    this.event(moved ? 'JOB_STATE' : 'JOB_CHANGED', job.id, siteId, {
      at: job.changedAt,
      seq: job.seq,
      fromState,
      toState: job.state,
      fromSiteId: waitingStates.includes(job.state) ? fromSiteId : null,
      userId: job.userId,
      epoch: job.epoch,
      cause: job.cause,
      note: job.note,
    });
    this.federation.jobChanged(job, { boost, state: fromState });
  }

  private stop(job: MemoryJob, at: number, cause: EndCause): void {
    const deadlineMissed = job.deadlineMissed || (job.deadline !== null && at > job.deadline);
    const action = job.state === 'CANCELLING' ? 'stopForGood' : 'stop';
    if (isLive(job.state)) this.change(job, action, { stopCause: cause, deadlineMissed });
    else
      this.change(job, 'cancel', { stopCause: cause, cause, endedAt: this.inOrder(job, at), deadlineMissed });
  }

  /** What of these runs is lost with machines: whole runs, or their tasks there. */
  private lostWith(
    runs: Iterable<MemoryRun>,
    gone: ReadonlySet<number>,
  ): { jobId: number; epoch: number; task: number | null }[] {
    const lost: { jobId: number; epoch: number; task: number | null }[] = [];
    for (const run of [...runs].sort((a, b) => a.jobId - b.jobId)) {
      const { jobId, epoch, allocations, tasks } = run;
      const here = allocations.map(({ machineId }) => gone.has(machineId));
      if (!here.includes(true)) continue;
      if (!here.includes(false) || !hasTasks(this.jobs.get(jobId) as MemoryJob)) {
        lost.push({ jobId, epoch, task: null });
        continue;
      }
      let task = 0;
      for (const [i, allocation] of allocations.entries())
        for (const end = task + allocation.tasks; task < end; task++)
          if (here[i] && !tasks.get(task)?.end) lost.push({ jobId, epoch, task });
    }
    return lost;
  }

  private occupy(
    job: MemoryJob,
    { allocations, pools, whole }: Pick<MemoryRun, 'allocations' | 'pools' | 'whole'>,
    sign: 1 | -1,
  ): void {
    for (const [i, { machineId, tasks }] of allocations.entries()) {
      const machine = this.machines.get(machineId) as MemoryMachine;
      if (machine.maxTasks) machine.tasksUsed += sign * (whole?.places[i] ?? tasks);
      else machine.cpusUsed += sign * (whole?.cpus[i] ?? tasks * job.cpusPerTask);
      const { cpusPerTask: cpus, memoryMbPerTask: memoryMb, resourcesPerTask } = job;
      const amounts = whole?.taken?.[i]?.amounts ?? amountsOf({ ...resourcesPerTask, cpus, memoryMb }, tasks);
      machine.memoryUsedMb += sign * (amounts.memoryMb ?? 0);
      for (const [kind, amount] of Object.entries(amounts))
        if (kind !== 'cpus' && kind !== 'memoryMb')
          machine.resourcesUsed[kind] = (machine.resourcesUsed[kind] ?? 0) + sign * amount;
    }
    for (const { id, amount } of pools) (this.licenses.get(id) as { inUse: number }).inUse += sign * amount;
  }

  async reportOutput(
    siteId: number,
    pieces: readonly RunOutput[],
    { userBytes }: OutputBounds,
    agentId: number | null = null,
  ): Promise<OutputOutcome[]> {
    return pieces.map((piece) => {
      const refused = (result: ReportResult): OutputOutcome => ({ result, received: null });
      const run = this.runs.get(`${piece.jobId}/${piece.epoch}`);
      if (run?.siteId !== siteId || !isMeant(piece.token, run.assignedAt)) return refused('unknown-run');
      const place = placeOf(
        run.allocations.map(({ tasks }) => tasks),
        piece.task ?? 0,
      );
      const machine = this.machines.get(run.allocations[place]?.machineId as number);
      const writer = isAtSite(run) ? this.siteAgent(siteId) : machine?.agentId;
      if (agentId !== null && writer !== agentId) return refused('unknown-run');
      if (run.endedAt !== null) return refused('stale-epoch');
      this.keepOutput((this.jobs.get(piece.jobId) as MemoryJob).userId, piece, [piece], userBytes);
      const ends = (this.outputs.get(`${piece.jobId}/${piece.epoch}`) ?? []).flatMap(
        ({ stream, start, body, ...of }) =>
          stream === piece.stream && ((of as RunOutput).task ?? 0) === (piece.task ?? 0)
            ? start + body.length
            : [],
      );
      return { result: 'accepted', received: piece.body.length === 0 ? Math.max(0, ...ends) : null };
    });
  }

  private keepOutput(
    userId: number,
    { jobId, epoch, task = null }: Pick<RunOutput, 'jobId' | 'epoch'> & { task?: number | null },
    pieces: readonly OutputPiece[],
    userBytes: number,
  ): void {
    const key = `${jobId}/${epoch}`;
    for (const piece of pieces) {
      let used = 0;
      for (const [of, kept] of this.outputs)
        if (this.jobs.get(Number.parseInt(of, 10))?.userId === userId)
          for (const { body } of kept) used += body.length;
      const kept = { ...keptPiece(piece, userBytes - used), ...(task !== null && { task }) };
      this.outputs.set(key, [...(this.outputs.get(key) ?? []), kept]);
    }
  }

  private directory(): Pick<
    GridImage,
    'policy' | 'sites' | 'machines' | 'licenses' | 'schedulers' | 'holds'
  > {
    const inService = <T extends { removed: boolean }>(list: Iterable<T>) =>
      [...list].filter((one) => !one.removed);
    return {
      policy: this.policy,
      sites: inService(this.sites.values()).map(({ removed: _, ...site }) => site),
      schedulers: [...this.schedulers.values()],
      holds: [...this.holds.values()]
        .filter(({ ended }) => !ended)
        .flatMap(({ id: holdId, siteId, kind, machines, pools, times }) =>
          times
            .filter(({ over }) => !over)
            .sort((a, b) => a.from - b.from)
            .slice(0, TIMES_KNOWN)
            .map(({ id, from, to }) => heldFromArray([id, siteId, kind, machines, from, to, holdId, pools])),
        )
        .sort((a, b) => a.id - b.id),
      machines: inService(this.machines.values()).map(
        ({
          id,
          siteId,
          cpus,
          memoryMb,
          benchmark,
          os,
          architecture,
          licenseIds,
          state,
          silent,
          problem,
          maxTasks = null,
          resources = {},
          devices = [],
        }) => {
          return {
            id,
            siteId,
            cpus,
            memoryMb,
            benchmark,
            os,
            architecture,
            licenseIds,
            available: isAvailable({ state, silent, problem }),
            maxTasks,
            resources,
            ...{ labels: {}, devices },
          };
        },
      ),
      licenses: inService(this.licenses.values()).map(({ id, kind, copies, siteId }) => ({
        id,
        kind,
        copies,
        siteId,
      })),
    };
  }

  private coreJob(job: MemoryJob): Job {
    return schedulersJob({ ...asScheduled(job), userClass: this.user(job.userId).class }, dataOf(job));
  }

  private coreRun(jobId: number, epoch: number): Run {
    const run = this.runs.get(`${jobId}/${epoch}`) as MemoryRun;
    const start = run.startedAt ?? run.assignedAt;
    const { siteId, allocations, pools, plannedS, limitS } = run;
    const plannedEnd = start + plannedS;
    const core: Run = { jobId, siteId, epoch, allocations, pools, start, plannedEnd, limitS };
    if (run.devices) core.devices = run.devices;
    if (run.checkpointAt !== null) core.checkpointAt = run.checkpointAt;
    const { state, changedAt, preempted } = this.jobs.get(jobId) as MemoryJob;
    if (state === 'CANCELLING')
      return stopping(core, (changedAt as number) + (preempted?.graceS ?? STOP_GRACE_S));
    return isAtSite(run) && run.startedAt === null ? { ...core, waits: true } : core;
  }

  private assignment(job: MemoryJob): Assignment {
    const run = this.runs.get(`${job.id}/${job.epoch}`) as MemoryRun;
    const foreign = this.federation.foreign.get(job.id);
    const machines = run.allocations.map(({ machineId, tasks }, i) => {
      const { name, benchmark, agentId } = this.machines.get(machineId) as MemoryMachine;
      const host = this.agents.get(agentId as number)?.host ?? name;
      return { machineId, name, host, tasks, devices: run.devices?.[i] ?? [], benchmark, agentId };
    });
    const slowest =
      machines.length === 0 ? job.benchmark : Math.min(...machines.map((machine) => machine.benchmark));
    return {
      ...only(job, assignedFields),
      jobParts: job.parts,
      jobId: job.id,
      userId: job.userId,
      epoch: job.epoch,
      token: tokenOf(run.assignedAt),
      state: job.state as Assignment['state'],
      outputs: job.outputs,
      launch: job.launch,
      known: [...run.tasks].map(([task, { end }]) => [task, end !== null] as const),
      ending: run.ending,
      recalled: run.recalled,
      signals: run.signals,
      stopGraceS: job.state === 'CANCELLING' ? (job.preempted?.graceS ?? null) : null,
      siteAgentId: isAtSite(run) ? this.siteAgent(run.siteId) : null,
      machines,
      plannedS: run.plannedS,
      runTimeLimitS: run.limitS,
      simulatedS: job.simulatedRunS === null ? null : (job.simulatedRunS * job.benchmark) / slowest,
      simulatedIoS: job.simulatedIoS === null ? null : (job.simulatedIoS * job.benchmark) / slowest,
      inputs: job.inputs,
      foreignInputs:
        job.state === 'ASSIGNED' && foreign?.inputs
          ? { siteId: foreign.siteId, inputs: foreign.inputs }
          : null,
    };
  }
}

const isAvailable = ({
  state,
  silent,
  problem,
}: Pick<MemoryMachine, 'state' | 'silent' | 'problem'>): boolean =>
  state === 'UP' && !silent && problem === null;

/** Whether the event is of a job that came to a site's queues, or of a run that ended for good, counted in its interval. */
function countTraffic(counts: Map<string, TrafficCount>, event: EventRow): void {
  const { siteId, fromSiteId, fromState, toState } = event;
  if (siteId === null || toState === null) return;
  const came = (toState === 'QUEUED' || toState === 'DISPATCHED') && fromSiteId !== siteId;
  const served = isTerminal(toState) && fromState !== null && isLive(fromState);
  if (!came && !served) return;
  const at = Math.floor(event.at / INTERVAL_S) * INTERVAL_S;
  const key = `${siteId}/${at}`;
  const known = counts.get(key) ?? { siteId, at, arrivals: 0, services: 0 };
  const { arrivals, services } = known;
  counts.set(key, { siteId, at, arrivals: arrivals + Number(came), services: services + Number(served) });
}

const inOrder = (counts: Iterable<TrafficCount>): TrafficCount[] =>
  [...counts].sort((a, b) => a.at - b.at || a.siteId - b.siteId);
