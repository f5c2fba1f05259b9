/** Look-ups by id, batched within a turn of the event loop: a page of thousands of jobs asks for its sites once. */

import DataLoader from 'dataloader';
import type { Allocation } from '../core/model.js';
import type { JobState } from '../core/states.js';
import { MAX } from '../platform/limits.js';
import type { FileRow } from '../store/files.js';
import type { JobWait } from '../store/needs.js';
import type { Queries } from '../store/queries.js';
import type {
  AgentRow,
  DatasetRow,
  GroupRow,
  HoldRow,
  HoldTimeRow,
  JobRow,
  LicenseRow,
  MachineRow,
  OutputRow,
  ReservationRow,
  RunRow,
  RunStepRow,
  SchedulerRow,
  SessionRow,
  SignInRow,
  SiteRow,
  SiteStats,
  StagingRow,
  StepsPage,
  UserRow,
} from '../store/rows.js';
import type { Budget } from './admission/budget.js';
import { ApiError } from './errors.js';
import { type Powers, powersOf } from './services/powers.js';

/** As it is handed out. */
export interface ShownReservation {
  jobId: number;
  at: number;
  allocations: readonly Allocation[];
}

export const reservationOf = ({ jobId, at, machineIds, machineTasks }: ReservationRow): ShownReservation => ({
  jobId,
  at,
  allocations: machineIds.map((machineId, i) => ({ machineId, tasks: machineTasks[i] ?? 0 })),
});

/** Ids in one statement. */
const BATCH_MAX = 10_000;

/** Jobs of a bulk group by state; states without jobs are left out. */
export type GroupCounts = Partial<Record<JobState, number>>;

export interface RunKey {
  jobId: number;
  epoch: number;
}

export interface OutputKey {
  jobId: number;
  /** null: the latest that wrote anything. */
  epoch: number | null;
  /** Index. */
  task: number;
  stream: 'STDOUT' | 'STDERR';
}

export interface Loaders {
  /** Objects that another object names: they exist, or the load fails. */
  site(id: number): SiteRow | Promise<SiteRow>;
  scheduler(id: number): SchedulerRow | Promise<SchedulerRow>;
  /** Directly under it; null: under the root. */
  schedulersBelow(id: number | null): Promise<SchedulerRow[]>;
  sitesBelow(id: number | null): Promise<SiteRow[]>;
  machine(id: number): MachineRow | Promise<MachineRow>;
  user(id: number): UserRow | Promise<UserRow>;
  job(id: number): JobRow | Promise<JobRow>;
  dataset(id: number): DatasetRow | Promise<DatasetRow>;
  group(id: number): GroupRow | Promise<GroupRow>;
  licenses(ids: readonly number[]): Promise<LicenseRow[]>;
  /** Those that still exist, in the order of the ids. */
  jobs(ids: readonly number[]): Promise<JobRow[]>;
  /** By hand: an id that somebody typed. */
  findJob(id: number): Promise<JobRow | null>;
  findGroup(id: number): Promise<GroupRow | null>;
  findSite(id: number): Promise<SiteRow | null>;
  findMachine(id: number): Promise<MachineRow | null>;
  findLicense(id: number): Promise<LicenseRow | null>;
  hold(id: number): Promise<HoldRow | null>;
  /** Times of a hold that are not over, the next ones. */
  timesOfHold(id: number): Promise<HoldTimeRow[]>;
  findUser(id: number): Promise<UserRow | null>;
  /** What the job waits for, or has waited for. */
  wait(jobId: number): Promise<JobWait | null>;
  /** The id of its copy, made by a rerun. */
  copy(jobId: number): Promise<number | null>;
  /** The latest ones. */
  runs(jobId: number): Promise<RunRow[]>;
  runsBefore(jobId: number, epoch: number): Promise<RunRow[]>;
  output(key: OutputKey): Promise<OutputRow | null>;
  staging(run: RunKey): Promise<StagingRow | null>;
  files(run: RunKey): Promise<FileRow[]>;
  steps(page: StepsPage): Promise<RunStepRow[]>;
  agent(id: number): AgentRow | Promise<AgentRow>;
  agentsOfSite(siteId: number): Promise<AgentRow[]>;
  machinesOfAgent(agentId: number): Promise<MachineRow[]>;
  machinesOfSite(siteId: number): Promise<MachineRow[]>;
  /** Of machines of the site, by model. */
  powers(siteId: number): Promise<Powers>;
  licensesOfSite(siteId: number): Promise<LicenseRow[]>;
  /** Kinds of which the whole grid has a pool. */
  gridKinds(): Promise<ReadonlySet<string>>;
  /** Devices of the machine, and shares of devices, that jobs have. */
  heldUnits(machineId: number): Promise<string[]>;
  /** The good ones, those used last first. */
  sessionsOfUser(userId: number): Promise<SessionRow[]>;
  signIn(userId: number): Promise<SignInRow | null>;
  siteStatistics(siteId: number): Promise<SiteStats>;
  reservation(siteId: number): Promise<ShownReservation | null>;
  groupCounts(groupId: number): Promise<GroupCounts>;
  /** The batch in which the job was given to its site; null: in none. */
  batch(jobId: number): Promise<string | null>;
  quotaUsed(of: { userId: number }): Promise<number>;
  /** What is asked for once, however many need it. `name`: what it is. */
  once<T>(name: string, ask: () => Promise<T>): Promise<T>;
  /** Forgets everything: something may have changed. */
  clear(): void;
}

const runName = ({ jobId, epoch }: RunKey): string => `${jobId}/${epoch}`;

/** `budget`: of the operation that asks; none where what is looked up is for several. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: its short functions share its state
export function createLoaders(queries: Queries, now: () => number, budget: Budget | null = null): Loaders {
  const all: DataLoader<never, unknown, never>[] = [];
  const shared: Map<number, unknown>[] = [];
  const asked = new Map<string, Promise<unknown>>();
  const loader = <K, V, C = K>(
    batch: DataLoader.BatchLoadFn<K, V>,
    options: DataLoader.Options<K, V, C> = {},
  ) => {
    const counted: typeof batch = async (keys) => {
      budget?.statement();
      return batch(keys);
    };
    const made = new DataLoader<K, V, C>(counted, { maxBatchSize: BATCH_MAX, ...options });
    // Of loaders of all kinds together only what needs no types is used.
    all.push(made as unknown as DataLoader<never, unknown, never>);
    return made;
  };
  const byId = <V extends { id: number }>(read: (ids: readonly number[]) => Promise<V[]>) =>
    loader<number, V | null>(async (ids) => {
      const found = new Map((await read(ids)).map((row) => [row.id, row]));
      return ids.map((id) => found.get(id) ?? null);
    });
  const grouped = <V>(read: (ids: readonly number[]) => Promise<V[]>, keyOf: (row: V) => number) =>
    loader<number, V[]>(async (ids) => {
      const groups = new Map<number, V[]>(ids.map((id) => [id, []]));
      for (const row of await read(ids)) groups.get(keyOf(row))?.push(row);
      return ids.map((id) => groups.get(id) ?? []);
    });

  const sites = byId<SiteRow>((ids) => queries.sitesByIds(ids));
  const schedulers = byId<SchedulerRow>((ids) => queries.schedulersByIds(ids));
  const schedulersBelow = grouped<SchedulerRow>(
    (ids) => queries.schedulersBelow(ids),
    (scheduler) => scheduler.parentId ?? 0,
  );
  const sitesBelow = grouped<SiteRow>(
    (ids) => queries.sitesBelow(ids),
    (site) => site.schedulerId ?? 0,
  );
  const machines = byId<MachineRow>((ids) => queries.machinesByIds(ids));
  const licenses = byId<LicenseRow>((ids) => queries.licensesByIds(ids));
  const holds = byId<HoldRow>((ids) => queries.holdsByIds(ids));
  const timesOfHolds = grouped<HoldTimeRow>(
    (ids) => queries.openTimesOf(ids),
    ({ holdId }) => holdId,
  );
  const users = byId<UserRow>((ids) => queries.usersByIds(ids));
  const datasets = byId<DatasetRow>((ids) => queries.datasetsByIds(ids));
  const groups = byId<GroupRow>((ids) => queries.groupsByIds(ids));
  const jobs = byId<JobRow>((ids) => queries.jobsByIds(ids));
  const waits = loader<number, JobWait | null>(async (ids) => {
    const found = await queries.waitsOf(ids);
    return ids.map((id) => found.get(id) ?? null);
  });
  const copies = loader<number, number | null>(async (ids) => {
    const found = await queries.copiesOf(ids);
    return ids.map((id) => found.get(id) ?? null);
  });
  const runs = grouped<RunRow>(
    (ids) => queries.runsOfJobs(ids),
    (run) => run.jobId,
  );
  const machinesOfSites = grouped<MachineRow>(
    (ids) => queries.machinesOfSites(ids),
    (machine) => machine.siteId,
  );
  const agents = byId<AgentRow>((ids) => queries.agentsByIds(ids));
  const agentsOfSites = grouped<AgentRow>(
    (ids) => queries.agentsOfSites(ids),
    (agent) => agent.siteId,
  );
  const powers = new DataLoader<number, Powers>((ids) =>
    Promise.all(ids.map(async (id) => powersOf(await machinesOfSites.load(id)))),
  );
  const machinesOfAgents = grouped<MachineRow>(
    (ids) => queries.machinesOfAgents(ids),
    (machine) => machine.agentId ?? 0,
  );
  const heldUnits = grouped<{ machineId: number; unit: string }>(
    (ids) => queries.heldUnits(ids),
    ({ machineId }) => machineId,
  );
  const licensesOfSites = grouped<LicenseRow>(
    (ids) => queries.licensesOfSites(ids),
    (license) => license.siteId ?? 0,
  );
  const sessionsOfUsers = grouped<SessionRow>(
    (ids) => queries.sessionsOfUsers(ids, now()),
    (session) => session.userId,
  );
  const signIns = loader<number, SignInRow | null>(async (ids) => {
    const found = new Map((await queries.signInsOfUsers(ids, now())).map((row) => [row.userId, row]));
    return ids.map((id) => found.get(id) ?? null);
  });
  const statistics = loader<number, SiteStats>(async (ids) => {
    const found = new Map((await queries.siteStats(ids)).map((row) => [row.siteId, row]));
    return ids.map(
      (siteId) => found.get(siteId) ?? { siteId, queued: 0, metaQueued: 0, running: 0, cpus: 0, cpusUsed: 0 },
    );
  });
  const reservations = loader<number, ShownReservation | null>(async (ids) => {
    const found = new Map((await queries.reservationsOfSites(ids)).map((row) => [row.siteId, row]));
    return ids.map((siteId) => {
      const row = found.get(siteId);
      return row ? reservationOf(row) : null;
    });
  });
  const counts = loader<number, GroupCounts>(async (ids) => {
    const found = new Map<number, GroupCounts>(ids.map((id) => [id, {}]));
    for (const { groupId, state, jobs } of await queries.groupCounts(ids)) {
      const group = found.get(groupId);
      if (group) group[state] = jobs;
    }
    return ids.map((id) => found.get(id) ?? {});
  });
  const batches = loader<number, string | null>(async (ids) => {
    const found = new Map((await queries.batchesOfJobs(ids)).map(({ jobId, batch }) => [jobId, batch]));
    return ids.map((id) => found.get(id) ?? null);
  });
  const quotas = loader<number, number>(async (userIds) => {
    const used = await queries.quotaUsed(userIds, now());
    return userIds.map((userId) => used.get(userId) ?? 0);
  });
  const stagings = loader<RunKey, StagingRow | null, string>(
    async (runs) => {
      const found = new Map((await queries.stagings(runs)).map((row) => [runName(row), row]));
      return runs.map((run) => found.get(runName(run)) ?? null);
    },
    { cacheKeyFn: runName, maxBatchSize: 1000 },
  );
  const files = loader<RunKey, FileRow[], string>(
    async (runs) => {
      const groups = new Map<string, FileRow[]>(runs.map((run) => [runName(run), []]));
      for (const file of await queries.filesOfRuns(runs)) groups.get(runName(file))?.push(file);
      return runs.map((run) => groups.get(runName(run)) ?? []);
    },
    { cacheKeyFn: runName, maxBatchSize: 1000 },
  );
  const steps = loader<StepsPage, RunStepRow[], string>((pages) => queries.stepsOfRuns(pages), {
    cacheKeyFn: ({ behind, limit, ...run }) => [runName(run), ...behind, limit].join('/'),
    maxBatchSize: 1000,
  });
  // One statement each: outputs are large, and the cost of a query bounds how many it may ask for.
  const outputs = loader<OutputKey, OutputRow | null, string>(
    (keys) =>
      Promise.all(
        keys.map(({ jobId, epoch, task, stream }) =>
          queries.outputEnds(jobId, epoch, task, stream, MAX.outputTextBytes),
        ),
      ),
    {
      cacheKeyFn: ({ jobId, epoch, task, stream }) => `${jobId}/${epoch}/${task}/${stream}`,
      maxBatchSize: 10,
    },
  );

  /**
   * What another row refers to; it can only be missing when retention removed it a moment ago. Known ones are answered at
   * once, without a promise: GraphQL takes several times as long over an object that it has to wait for.
   */
  const existing = <V>(of: DataLoader<number, V | null>, type: string) => {
    const known = new Map<number, V | Promise<V>>();
    shared.push(known);
    return (id: number): V | Promise<V> => {
      const row = known.get(id);
      if (row !== undefined) return row;
      const asked = of.load(id).then((found) => {
        if (found === null) throw new ApiError('NOT_FOUND', `${type}_${id} has just been removed`);
        // Unless everything has been forgotten meanwhile.
        if (known.get(id) === asked) known.set(id, found);
        return found;
      });
      known.set(id, asked);
      return asked;
    };
  };

  return {
    site: existing(sites, 'site'),
    scheduler: existing(schedulers, 'scheduler'),
    schedulersBelow: (id) => schedulersBelow.load(id ?? 0),
    sitesBelow: (id) => sitesBelow.load(id ?? 0),
    machine: existing(machines, 'machine'),
    agent: existing(agents, 'agent'),
    user: existing(users, 'user'),
    job: existing(jobs, 'job'),
    dataset: existing(datasets, 'dataset'),
    group: existing(groups, 'group'),
    licenses: (ids) => several(licenses, ids),
    jobs: (ids) => several(jobs, ids),
    findJob: (id) => jobs.load(id),
    findGroup: (id) => groups.load(id),
    findSite: (id) => sites.load(id),
    findMachine: (id) => machines.load(id),
    findLicense: (id) => licenses.load(id),
    hold: (id) => holds.load(id),
    timesOfHold: (id) => timesOfHolds.load(id),
    findUser: (id) => users.load(id),
    wait: (jobId) => waits.load(jobId),
    copy: (jobId) => copies.load(jobId),
    runs: (jobId) => runs.load(jobId),
    runsBefore(jobId, epoch) {
      return this.once(`runs of ${jobId} before ${epoch}`, () => queries.runsOfJobs([jobId], epoch));
    },
    output: (key) => outputs.load(key),
    staging: (run) => stagings.load(run),
    files: (run) => files.load(run),
    steps: (page) => steps.load(page),
    agentsOfSite: (siteId) => agentsOfSites.load(siteId),
    machinesOfAgent: (agentId) => machinesOfAgents.load(agentId),
    machinesOfSite: (siteId) => machinesOfSites.load(siteId),
    powers: (siteId) => powers.load(siteId),
    licensesOfSite: (siteId) => licensesOfSites.load(siteId),
    gridKinds() {
      return this.once('kinds of the grid', async () => new Set(await queries.gridPoolKinds()));
    },
    heldUnits: async (machineId) => (await heldUnits.load(machineId)).map(({ unit }) => unit),
    sessionsOfUser: (userId) => sessionsOfUsers.load(userId),
    signIn: (userId) => signIns.load(userId),
    siteStatistics: (siteId) => statistics.load(siteId),
    reservation: (siteId) => reservations.load(siteId),
    groupCounts: (groupId) => counts.load(groupId),
    batch: (jobId) => batches.load(jobId),
    quotaUsed: ({ userId }) => quotas.load(userId),
    async once<T>(name: string, ask: () => Promise<T>): Promise<T> {
      const known = asked.get(name);
      if (known) return known as Promise<T>;
      budget?.statement();
      const answer = ask();
      asked.set(name, answer);
      return answer;
    },
    clear() {
      for (const one of all) one.clearAll();
      for (const one of shared) one.clear();
      asked.clear();
    },
  };
}

/** One promise for the lot: thousands of ids are asked for at once. */
async function several<V>(loader: DataLoader<number, V | null>, ids: readonly number[]): Promise<V[]> {
  if (ids.length === 0) return [];
  const rows = await loader.loadMany(ids);
  const found: V[] = [];
  for (const row of rows) {
    if (row instanceof Error) throw row;
    if (row !== null) found.push(row);
  }
  return found;
}
