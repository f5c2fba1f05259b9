/** One small grid to test stores in, over whichever store: ids are the same on all of them. */

import { expect } from 'vitest';
import type { Dataset, Link, Reservation, Start, UserClass } from '../../src/core/model.js';
import { DEFAULT_POLICY, type Policy } from '../../src/core/policy.js';
import type { OwnedDevice } from '../../src/core/resources/devices.js';
import { countsOf } from '../../src/core/resources/units.js';
import type { PeerSettings } from '../../src/store/directory/peers.js';
import { type Directory, openDirectory } from '../../src/store/directory.js';
import type { HoldChange } from '../../src/store/hold-changes.js';
import type { Admission, NewHold } from '../../src/store/holds.js';
import { poolsFrom } from '../../src/store/images.js';
import { type Database, openDatabase } from '../../src/store/pool.js';
import { PostgresStore } from '../../src/store/postgres.js';
import { Queries } from '../../src/store/queries.js';
import type { EventRow, RatioPointRow } from '../../src/store/rows.js';
import type { TakenStep } from '../../src/store/run-reports.js';
import type { JobSelection, NewJob, PlanContext, RunReport, Store } from '../../src/store/store.js';
import type { TestDatabase } from '../support/database.js';
import { PLAIN_JOB } from '../support/plain-job.js';
import { checkPromises } from '../support/promises.js';
import { MemoryStore } from './memory.js';

/** A store, and what tests do beside it. */
export interface World {
  store: Store;
  addUser(name: string, userClass?: UserClass, quota?: { limit: number; periodS: number }): Promise<number>;
  setUserClass(userId: number, userClass: UserClass): Promise<void>;
  addSite(name: string, maxRunningJobs?: number | null): Promise<number>;
  setSiteState(siteId: number, state: 'UP' | 'DRAINING' | 'DOWN'): Promise<void>;
  /** The longest limit of jobs there, and the limit of those without one; null: any. */
  setMaxLimit(siteId: number, maxLimitS: number | null): Promise<void>;
  addScheduler(name: string, parentId?: number | null): Promise<number>;
  /** Hangs a site under a scheduler; null: under the root. */
  moveSite(siteId: number, schedulerId: number | null): Promise<void>;
  removeScheduler(schedulerId: number): Promise<void>;
  addMachine(
    siteId: number,
    name: string,
    cpus: number,
    memoryMb?: number,
    licenses?: number[],
    maxTasks?: number | null,
    resources?: Record<string, number>,
    devices?: OwnedDevice[],
  ): Promise<number>;
  setMachineState(machineId: number, state: 'UP' | 'DRAINING' | 'DOWN'): Promise<void>;
  setShare(userId: number, share: number): Promise<void>;
  addDataset(name: string, sizeMb: number, siteIds: number[]): Promise<number>;
  setReplicas(datasetId: number, change: { add?: number[]; remove?: number[] }): Promise<void>;
  removeDataset(datasetId: number): Promise<void>;
  setLink(link: Link): Promise<void>;
  removeLink(fromSiteId: number, toSiteId: number): Promise<void>;
  addLicense(kind: string, copies: number, siteId: number | null): Promise<number>;
  /** The first run of a job has left a file with the service, or as this dataset, which its outputs name. */
  keep(jobId: number, path: string, kept: { sizeMb: number } | { datasetId: number }): Promise<void>;
  /** Registers a peer, or changes it. Answers with the site that stands for it. */
  federate(peer: PeerSettings): Promise<number>;
  isolate(siteId: number, isolated: boolean): Promise<void>;
  /** Anybody can fetch the dataset there. */
  publish(datasetId: number, url: string): Promise<void>;
  newPolicy(change?: Partial<Policy>): Promise<void>;
  createHold(hold: NewHold, now?: number): Promise<Admission & { id: number | null }>;
  /** What was in the way; `refused`: it stays as it was. */
  updateHold(
    id: number,
    change: HoldChange,
    now?: number,
  ): Promise<Pick<Admission, 'holds' | 'runs' | 'fault'> & { refused: boolean }>;
  cancelHold(id: number): Promise<void>;
  /** Of a job, in order. */
  events(
    jobId: number,
  ): Promise<
    Pick<
      EventRow,
      'kind' | 'seq' | 'fromState' | 'toState' | 'siteId' | 'fromSiteId' | 'epoch' | 'cause' | 'note'
    >[]
  >;
  /** Of all applications, in order. */
  ratioPoints(): Promise<RatioPointRow[]>;
  /** Of a run, a page: those behind a step of a task, by task and number. */
  steps(
    run: Pick<TakenStep, 'jobId' | 'epoch'>,
    limit?: number,
    behind?: readonly [task: number, number: number],
  ): Promise<TakenStep[]>;
  /** What of the promises is broken. */
  breaches(): Promise<unknown[]>;
}

export const T0 = 1_700_000_000;

export const context = (now = T0): PlanContext => ({ policyVersion: 1, cycle: 'cycle-1', now });

export const newJob = (change: Partial<NewJob> = {}): NewJob => ({ ...PLAIN_JOB, ...change });

export function report(jobId: number, epoch: number, change: Partial<RunReport> = {}): RunReport {
  const empty = {
    exitCode: null,
    signal: null,
    cause: null,
    message: null,
    cpuS: null,
    ioWaitS: null,
  };
  return { jobId, epoch, phase: 'STARTED', at: T0 + 10, ...empty, ...change };
}

export const ended = (jobId: number, epoch: number, change: Partial<RunReport> = {}): RunReport =>
  report(jobId, epoch, { phase: 'ENDED', at: T0 + 20, exitCode: 0, cause: 'EXITED_ZERO', ...change });

export function start(
  jobId: number,
  siteId: number,
  machines: Record<number, number>,
  licenseIds: number[] = [],
): Start {
  return {
    jobId,
    siteId,
    allocations: Object.entries(machines).map(([id, tasks]) => ({ machineId: Number(id), tasks })),
    pools: poolsFrom(licenseIds, null),
    plannedDuration: 100,
    reason: 'HEAD',
    explanation: { queued: 1, order: 'ARRIVAL', orderValue: 0, terms: null, reservation: null },
  };
}

/** Submits jobs of one user. */
export async function submit(world: World, userId: number, jobs: NewJob[], now = T0): Promise<number[]> {
  const result = await world.store.submit({ userId, idempotencyKey: null, payloadHash: '', jobs, now });
  if (result.kind !== 'accepted')
    throw new Error(`the submission was not accepted: ${JSON.stringify(result)}`);
  return result.jobIds;
}

const explanation = { sites: [], terms: {}, candidates: [], ineligible: {}, level: 0, priorityTerms: null };

export const move = (jobId: number, to: number, from: number | null = null, priority = 5) =>
  ({ jobId, from, to, queue: 'LOCAL', priority, reason: 'IDLE_SITE', explanation }) as const;

/** Into a meta-queue. */
export const metaMove = (jobId: number, to: number, from: number | null = null) =>
  ({ ...move(jobId, to, from), queue: 'META' }) as const;

/** To a scheduler above the sites; null: to the root. */
export const treeMove = (jobId: number, to: number | null, from: number | null = null, treeMoves?: number) =>
  ({ ...move(jobId, 0, from), to, queue: 'SCHEDULER', ...(treeMoves && { treeMoves }) }) as const;

export const byIds = (ids: number[], ownedBy: number | null = null): JobSelection => ({
  ids,
  ownedBy,
  limit: 100,
});

/** Submits jobs and puts them into the meta-queue of a site. */
export async function metaQueued(
  world: World,
  userId: number,
  siteId: number,
  jobs: NewJob[],
): Promise<number[]> {
  const ids = await submit(world, userId, jobs);
  const outcome = await world.store.applyMoves(
    ids.map((id) => metaMove(id, siteId)),
    context(),
  );
  expect(outcome.refused).toEqual([]);
  return ids;
}

/** Submits jobs and gives them to a site. */
export async function dispatched(
  world: World,
  userId: number,
  siteId: number,
  jobs: NewJob[],
): Promise<number[]> {
  const ids = await submit(world, userId, jobs);
  const outcome = await world.store.applyMoves(
    ids.map((id) => move(id, siteId)),
    context(),
  );
  expect(outcome.refused).toEqual([]);
  return ids;
}

/** And starts them on a machine. */
export async function assigned(
  world: World,
  userId: number,
  siteId: number,
  machineId: number,
  jobs: NewJob[],
): Promise<number[]> {
  const ids = await dispatched(world, userId, siteId, jobs);
  const starts = ids.map((id, i) => start(id, siteId, { [machineId]: jobs[i]!.tasks }));
  const outcome = await world.store.applyStarts(siteId, starts, null, context());
  expect(outcome.refused).toEqual([]);
  return ids;
}

export const reservation = (
  siteId: number,
  jobId: number,
  machineId: number,
  change: Partial<Reservation> = {},
): Reservation => ({
  siteId,
  jobId,
  at: T0 + 50,
  allocations: [{ machineId, tasks: 1 }],
  pools: [],
  madeAt: T0,
  ...change,
});

/** Each of these machines has an agent of its own, which says that it is there. Answers which of them came back. */
export async function vouch(
  store: Store,
  siteId: number,
  machineIds: readonly number[],
  now = T0,
): Promise<number[]> {
  const back: number[] = [];
  for (const id of machineIds) {
    const name = await nameOf(store, id);
    const agent = { siteId, identity: `agent of ${id}`, instance: '1', host: `host-${id}`, version: '1' };
    const machines = [{ name, measured: null, problem: null, waits: null }];
    const outcome = await store.registerAgent({ ...agent, protocol: 3, simulated: true, machines }, now, 1);
    if (outcome.changed) back.push(id);
  }
  return back;
}

async function nameOf(store: Store, machineId: number): Promise<string> {
  if (store instanceof MemoryStore) return store.machines.get(machineId)?.name ?? '';
  // Private: only the test asks for names.
  const { pool } = (store as unknown as { database: Database }).database;
  const { rows } = await pool.query('SELECT name FROM machines WHERE id = $1', [machineId]);
  return (rows[0] as { name: string } | undefined)?.name ?? '';
}

// -----------------------------------------------------------------------------------------------------------------------

export function memoryWorld(options: { liveJobsMax?: number } = {}): World {
  const store = new MemoryStore(options);
  let version = 1;
  let datasets = 0;
  const datasetNames = new Map<number, string>();
  const replicas = (id: number) => store.datasets.get(id) as Dataset;
  return {
    store,
    addUser: async (name, userClass, quota) => store.addUser(userClass, quota ?? null, name),
    setUserClass: async (userId, userClass) => store.setUserClass(userId, userClass),
    addSite: async (name, maxRunningJobs = null) => store.addSite(name, null, maxRunningJobs),
    setSiteState: async (siteId, state) => store.setSiteState(siteId, state),
    setMaxLimit: async (siteId, maxLimitS) => store.setMaxLimit(siteId, maxLimitS),
    addScheduler: async (name, parentId = null) => store.addScheduler(name, parentId),
    moveSite: async (siteId, schedulerId) => store.moveSite(siteId, schedulerId),
    removeScheduler: async (id) => store.removeScheduler(id),
    addMachine: async (
      siteId,
      name,
      cpus,
      memoryMb = 1000,
      licenses = [],
      maxTasks = null,
      resources = {},
      devices = [],
    ) => {
      const shape = {
        cpus,
        memoryMb,
        benchmark: 100,
        os: 'linux',
        architecture: 'x64',
        licenseIds: licenses,
        maxTasks,
        ...{ devices, resources: { ...resources, ...countsOf(devices) } },
      };
      return store.addMachine({ siteId, name, ...shape });
    },
    setMachineState: async (machineId, state) => store.setMachineState(machineId, state),
    addLicense: async (kind, copies, siteId) => store.addLicense(kind, copies, siteId),
    createHold: async (hold, now = T0) => store.createHold(hold, now),
    updateHold: async (id, change, now = T0) => {
      const { admission, refused } = store.updateHold(id, change, now);
      const { holds, runs, fault } = admission;
      return { holds, runs, fault, refused };
    },
    cancelHold: async (id) => store.cancelHold(id),
    keep: async (jobId, path, kept) => store.keep(jobId, path, kept),
    federate: async ({ name, users = [], ...settings }) => {
      const { federation } = store;
      const known = [...federation.peers.values()].find((peer) => peer.name === name);
      const mapped = new Map(users.map((one) => [one.name, one.userId as number]));
      const given = { ...settings, ...(users.length > 0 && { users: mapped }) };
      if (known === undefined) return federation.addPeer(name, given);
      federation.setPeer(known.siteId, given);
      return known.siteId;
    },
    isolate: async (siteId, isolated) => store.federation.setPeer(siteId, { isolated }),
    publish: async (id, url) => {
      store.federation.urls.set(id, { name: datasetNames.get(id) ?? '', urls: [url] });
    },
    newPolicy: async (change = { seed: 2 }) =>
      store.setPolicy({ version: ++version, document: { ...DEFAULT_POLICY, ...change } }),
    setShare: async (userId, share) => store.setQuotaShare(userId, share),
    addDataset: async (name, sizeMb, siteIds) => {
      datasetNames.set(datasets + 1, name);
      store.setDataset(++datasets, { sizeMb, siteIds });
      return datasets;
    },
    setReplicas: async (id, { add = [], remove = [] }) => {
      const { sizeMb, siteIds } = replicas(id);
      const left = siteIds.filter((siteId) => !remove.includes(siteId));
      store.setDataset(id, { sizeMb, siteIds: [...new Set([...left, ...add])] });
    },
    removeDataset: async (id) => store.setDataset(id, null),
    setLink: async ({ fromSiteId, toSiteId, ...link }) => store.setLink(fromSiteId, toSiteId, link),
    removeLink: async (fromSiteId, toSiteId) => store.setLink(fromSiteId, toSiteId, null),
    ratioPoints: async () => store.ratioPoints,
    steps: async ({ jobId, epoch }, limit = 100, [task, number] = [0, -1]) =>
      [...(store.runs.get(`${jobId}/${epoch}`)?.steps ?? [])]
        .sort((a, b) => a.task - b.task || a.number - b.number)
        .filter((one) => one.task > task || (one.task === task && one.number > number))
        .slice(0, limit),
    events: async (jobId) => store.events.filter((event) => event.seq !== null && event.entityId === jobId),
    breaches: async () => {
      const live = [...store.runs.values()].filter((run) => run.endedAt === null);
      /** What runs have of the machine by all entries of it. */
      const heldOn = (
        id: number,
        of: 'cpus' | 'places',
        each: (run: (typeof live)[number]) => number,
      ): number =>
        live.reduce(
          (sum, run) =>
            run.allocations.reduce(
              (all, { machineId, tasks }, i) =>
                machineId === id ? all + (run.whole?.[of][i] ?? tasks * each(run)) : all,
              sum,
            ),
          0,
        );
      const machines = [...store.machines.values()].filter(({ id, cpus, cpusUsed, maxTasks, tasksUsed }) => {
        const tasks = heldOn(id, 'places', () => 1);
        if (maxTasks) return cpusUsed !== 0 || tasksUsed !== tasks || tasks > maxTasks;
        const held = heldOn(id, 'cpus', ({ jobId }) => store.jobs.get(jobId)!.cpusPerTask);
        return tasksUsed !== 0 || cpusUsed !== held || held > cpus;
      });
      const sites = [...store.sites.values()].filter(
        ({ id, maxRunningJobs }) =>
          live.filter(({ siteId }) => siteId === id).length > (maxRunningJobs ?? Infinity),
      );
      return [...machines, ...sites];
    },
  };
}

const actor = { userId: null, requestId: null };

/**
 * Row by row, for there are few: TRUNCATE makes new files for 60 tables and their indexes, which takes longer than most tests. Rows that each database
 * has stay.
 */
const EMPTY = `
DO $$
DECLARE one record;
BEGIN
  -- No triggers: users are never deleted.
  SET LOCAL session_replication_role = replica;
  FOR one IN
    SELECT oid::regclass AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
       AND relname NOT IN ('_prisma_migrations', 'service', 'events_horizon', 'job_ratios_horizon')
  LOOP
    EXECUTE 'DELETE FROM ' || one.name;
  END LOOP;
  PERFORM setval(oid, 1, false) FROM pg_class WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace;
END $$`;

/** Empties the database: ids begin with 1 again. */
export async function postgresWorld(
  database: Database,
  pool: TestDatabase['pool'],
  options: { liveJobsMax?: number } = {},
): Promise<World> {
  await pool.query(EMPTY);
  await pool.query(`UPDATE service SET id = 'service'`);
  await pool.query('UPDATE events_horizon SET id = 0; UPDATE job_ratios_horizon SET id = 0');
  await pool.query(`INSERT INTO policies (version, document, reason) VALUES (1, $1::jsonb, 'test')`, [
    JSON.stringify(DEFAULT_POLICY),
  ]);
  const queries = new Queries(database);
  const directory = openDirectory(database);
  let version = 1;
  const done = async <T>(change: ReturnType<Directory['registerSite']> | Promise<unknown>): Promise<T> => {
    const result = (await change) as { kind: string; value: T; message?: string };
    if (result.kind !== 'done') throw new Error(result.message);
    return result.value;
  };
  return {
    store: new PostgresStore(database, options),
    addUser: async (name, userClass = 'REGULAR', quota) => {
      const user = { name, class: userClass, role: 'USER', quotaShare: 1 } as const;
      const { id } = await done<{ id: number }>(directory.registerUser(user, actor));
      if (quota) await done(directory.setQuota(id, { submission: quota }, actor));
      return id;
    },
    setUserClass: (userId, userClass) => done(directory.updateUser(userId, { class: userClass }, actor)),
    addSite: async (name, maxRunningJobs = null) => {
      const site = { name, latitude: null, longitude: null, localPolicy: null, maxRunningJobs };
      return (await done<{ id: number }>(directory.registerSite(site, actor))).id;
    },
    setSiteState: (siteId, state) => done(directory.updateSite(siteId, { state }, actor)),
    setMaxLimit: (siteId, maxLimitS) => done(directory.updateSite(siteId, { maxLimitS }, actor)),
    addScheduler: async (name, parentId = null) =>
      (await done<{ id: number }>(directory.createScheduler({ name, parentId }, actor))).id,
    moveSite: (siteId, schedulerId) => done(directory.updateSite(siteId, { schedulerId }, actor)),
    removeScheduler: (id) => done(directory.removeScheduler(id, T0, actor)),
    addMachine: async (
      siteId,
      name,
      cpus,
      memoryMb = 1000,
      licenseIds = [],
      maxTasks = null,
      resources = {},
      devices = [],
    ) => {
      const shape = {
        cpus,
        memoryMb,
        benchmark: 100,
        os: 'linux',
        architecture: 'x64',
        licenseIds,
        maxTasks,
        ...{ devices, resources },
      };
      const machine = { siteId, name, ...shape };
      return (await done<{ id: number }[]>(directory.registerMachines([machine], actor)))[0]!.id;
    },
    setMachineState: (machineId, state) => done(directory.updateMachine(machineId, { state }, actor)),
    addLicense: async (kind, copies, siteId) =>
      (await done<{ id: number }>(directory.registerLicense({ kind, copies, siteId }, actor))).id,
    createHold: async (hold, now = T0) => {
      const outcome = await directory.createHold(hold, { now, dry: false, bounded: false }, actor);
      const nothing = { machines: null, pools: [], holds: [], runs: [], id: null };
      if (outcome.kind === 'refused') return { ...nothing, fault: outcome.message };
      const { hold: made, ...admission } = outcome.value;
      return { ...admission, fault: null, id: made?.id ?? null };
    },
    updateHold: async (id, change, now = T0) => {
      const outcome = await directory.updateHold(id, change, { now, bounded: false }, actor);
      if (outcome.kind === 'refused') return { holds: [], runs: [], fault: outcome.message, refused: false };
      const { hold, holds, runs } = outcome.value;
      return { holds, runs, fault: null, refused: hold === null };
    },
    cancelHold: (id) => done(directory.cancelHold(id, T0, actor)),
    keep: async (jobId, path, kept) => {
      if ('datasetId' in kept)
        await pool.query('UPDATE datasets SET job_id = $1 WHERE id = $2', [jobId, kept.datasetId]);
      else
        await pool.query(
          `INSERT INTO files (job_id, epoch, task, user_id, path, bytes, sha256, received, began_at, kept_at)
             SELECT id, 1, 0, user_id, $2, $3::bigint, repeat('0', 64), $3::bigint, now(), now() FROM jobs WHERE id = $1`,
          [jobId, path, kept.sizeMb * 1e6],
        );
    },
    federate: async (peer) =>
      (await done<{ peer: { siteId: number } }>(directory.federate(peer, actor))).peer.siteId,
    isolate: (siteId, isolated) =>
      done(isolated ? directory.isolatePeer(siteId, actor) : directory.rejoinPeer(siteId, actor)),
    publish: async (id, url) => {
      await pool.query('UPDATE dataset_replicas SET location = $2 WHERE dataset_id = $1', [id, url]);
    },
    newPolicy: async (change = { seed: 2 }) => {
      const document = { ...DEFAULT_POLICY, ...change };
      await done(directory.addPolicy({ document, expectedVersion: version++, reason: 'test' }, actor));
    },
    setShare: (userId, quotaShare) => done(directory.setQuota(userId, { quotaShare }, actor)),
    addDataset: async (name, sizeMb, siteIds) =>
      (await done<{ id: number }>(directory.createDataset({ name, sizeMb, siteIds }, actor))).id,
    setReplicas: (datasetId, change) => done(directory.setReplicas(datasetId, change, actor)),
    removeDataset: (datasetId) => done(directory.removeDataset(datasetId, T0, actor)),
    setLink: (link) => done(directory.setLinks([link], T0, actor)),
    removeLink: (fromSiteId, toSiteId) => done(directory.removeLink(fromSiteId, toSiteId, actor)),
    ratioPoints: async () => {
      const points = await queries.ratioPointsSince(null, 0, 100_000);
      if (points === 'too-old') throw new Error('the first points are gone');
      return points;
    },
    steps: async (run, limit = 100, behind = [0, -1]) =>
      (await queries.stepsOfRuns([{ ...run, behind, limit }]))[0]!,
    events: (jobId) => queries.eventsOfJob(jobId, '0', 100_000),
    breaches: () => checkPromises(pool),
  };
}

export const openTestDatabase = (url: string, poolSize = 6): Database =>
  openDatabase({
    url,
    poolSize,
    connectTimeoutMs: 10_000,
    statementTimeoutMs: 60_000,
    applicationName: 'switchyard-test',
  });
