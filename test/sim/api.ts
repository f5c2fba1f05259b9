/** An API process: the real services over the model of the store, and what its clients hear of them. */
import type { ServiceClient } from '../../src/agent/agent.js';
import type { Viewer } from '../../src/api/auth.js';
import type { CheckpointReportInput, RegisterAgentInput } from '../../src/api/generated/types.js';
import { globalId, localId } from '../../src/api/ids.js';
import { partsShown } from '../../src/api/resources.js';
import { createAgentsService } from '../../src/api/services/agents.js';
import { createFederationService } from '../../src/api/services/federation.js';
import { createFilesService } from '../../src/api/services/files.js';
import { createFits, createResources } from '../../src/api/services/fit.js';
import { createJobsService } from '../../src/api/services/jobs.js';
import type { ServiceParts } from '../../src/api/services/parts.js';
import { createRanks } from '../../src/api/services/ranks.js';
import { createRerunService } from '../../src/api/services/rerun.js';
import { type Client, ServiceError } from '../../src/client/index.js';
import type { RandomStream } from '../../src/core/index.js';
import { openWaker, type Waker } from '../../src/engine/waker.js';
import { pause } from '../../src/platform/env.js';
import { DEFAULT_LIMITS } from '../../src/platform/limits.js';
import type { Metrics } from '../../src/platform/metrics.js';
import type { Blobs } from '../../src/store/blobs.js';
import { FileSweep } from '../../src/store/file-sweep.js';
import type { Files } from '../../src/store/files.js';
import type { Store } from '../../src/store/store.js';
import { hasTasks, partsOf } from '../../src/store/tasks.js';
import { quietLog } from '../engine/support.js';
import type { MemoryStore } from '../store/memory.js';
import type { Host } from './host.js';
import { DatabaseAway, type Wire } from './network.js';
import type { Promises } from './promises.js';
import type { SimulatedQueue } from './queue.js';
import type { Process, Time } from './time.js';

/** Whoever asks does not wait longer, ms. */
const ANSWER_MS = 30_000;
const PRESENT_MS = 5_000;
const SWEEP_MS = 60_000;
/** As many have ever been created. */
export const DATASETS = 3;
/** So few in a message that lists come in parts. */
const ASSIGNMENTS = 3;

/** What agents send. */
interface Variables {
  input: RegisterAgentInput;
  agent: string;
  instance: string;
  checkpoints?: CheckpointReportInput[];
  reports: { at: string }[];
  sentAt: string;
  outputs: object[];
}

export const viewer = (change: Partial<Viewer>): Viewer => ({
  keyId: 1,
  sessionId: null,
  userId: 1,
  role: 'USER',
  siteId: null,
  expiresAtMs: null,
  actsForUsers: false,
  onBehalfBy: null,
  ...change,
});

interface AgentSide {
  siteId: number;
  wire: Wire;
  caller: Process;
  host: Host | null;
  previous: boolean;
}

/** What all API processes have in common. */
export interface ApiWorld {
  time: Time;
  store: MemoryStore;
  promises: Promises;
  queue: SimulatedQueue;
  metrics: Metrics;
  random: RandomStream;
  databaseNow(): number;
  databaseIsAway(): boolean;
}

export class Api {
  readonly waker: Waker;
  readonly jobs: ReturnType<typeof createJobsService>;
  readonly reruns: ReturnType<typeof createRerunService>;
  readonly agents: ReturnType<typeof createAgentsService>;
  readonly files: ReturnType<typeof createFilesService>;
  readonly federation: ReturnType<typeof createFederationService>;

  /** @param store as this process reaches it, like the store of files */
  constructor(
    readonly world: ApiWorld,
    readonly process: Process,
    store: Store,
    files: { files: Files; blobs: Blobs },
    id: string,
  ) {
    const { queue, metrics, databaseNow: now } = world;
    this.waker = openWaker({ connection: queue.of(process), log: quietLog, metrics, env: process });
    const queries = queriesOf(world.store);
    const agentRefused = (): void => {};
    const parts = { store, queries, limits: DEFAULT_LIMITS, now, wake: this.waker.wake, agentRefused };
    const resources = createResources(queries as never, { peers: async () => [] }, now);
    const fits = createFits(resources);
    const fileStore = { ...files, retentionDays: 30 };
    // Services get what they need of it, and nothing here needs the rest.
    const all = {
      ...parts,
      fits,
      ranks: createRanks(resources, queries as never),
      fileStore,
      directory: { serviceId: async () => world.store.federation.serviceId },
    } as unknown as ServiceParts;
    this.agents = createAgentsService(all);
    this.jobs = createJobsService(all);
    this.reruns = createRerunService(all);
    this.files = createFilesService(all);
    this.federation = createFederationService(all);
    const sweeper = new FileSweep({ ...fileStore, now, onError: () => {} });
    const sweep = (): void => {
      sweeper.sweep().catch(() => {});
      process.after(SWEEP_MS, sweep);
    };
    sweep();
    const seen = (): void => {
      store.processSeen(id, 'api', now()).catch(() => {});
      process.after(PRESENT_MS, seen);
    };
    seen();
  }

  /** Has the process that serves now do something; one that is paused or dead does nothing. */
  static call<T>(
    current: () => Api,
    wire: Wire,
    caller: Process,
    work: (api: Api) => Promise<T>,
  ): Promise<T> {
    return wire.call(caller, () => {
      const api = current();
      const { time, promises } = api.world;
      return new Promise<T>((resolve, reject) => {
        const late = time.after(ANSWER_MS, () => reject(new ServiceError('no answer', 'NETWORK')));
        const failed = (error: Error & { extensions?: { code?: string } }): void => {
          late();
          const code = error instanceof DatabaseAway ? 'UNAVAILABLE' : error.extensions?.code;
          // A mistake, or something that was let in and cannot be stored: no user should see either.
          if (code === undefined) promises.fail(`9: an internal error: ${error.stack}`);
          reject(new ServiceError(error.message, code ?? 'INTERNAL_SERVER_ERROR'));
        };
        const answered = (answer: T): void => {
          late();
          resolve(answer);
        };
        api.process.soon(() => void work(api).then(answered, failed));
      });
    });
  }

  /** As an agent speaks to it. `previous`: one of the release before, which does not ask for parts of lists. */
  static agentClient(
    current: () => Api,
    { siteId, wire, caller, host, previous }: AgentSide,
  ): ServiceClient & Pick<Client, 'put'> {
    const key = viewer({ role: 'AGENT', siteId });
    const site = globalId('site', siteId);
    const served = <T>(work: (api: Api) => Promise<T>): Promise<T> => Api.call(current, wire, caller, work);
    return {
      request: async <T>(document: string, variables: object): Promise<T> => {
        const given = structuredClone(variables) as Variables;
        if (document.includes('registerAgent('))
          return served(async ({ agents }) => {
            const { agentId, machines } = await agents.registerAgent(key, given.input, 'request');
            return { registerAgent: { agent: { id: globalId('agent', agentId) }, machines } } as T;
          });
        if (document.includes('heartbeat('))
          return served(
            async ({ agents }) =>
              ({
                heartbeat: await agents.heartbeat(
                  ...([key, site, given.agent, given.instance, given.checkpoints] as const),
                ),
              }) as T,
          );
        if (document.includes('keepFiles('))
          return served(async ({ files }) => {
            const kept = await files.keepFiles(key, given as never);
            return { keepFiles: kept.map((row) => ({ ...row, receivedBytes: row.received })) } as T;
          });
        if (document.includes('reportOutput('))
          return served(
            async ({ agents }) =>
              ({
                reportOutput: await agents.reportOutput(key, site, given.agent, withTask(given.outputs)),
              }) as T,
          );
        const sentAt = new Date(given.sentAt);
        const reports = given.reports.map((report) => ({ ...report, at: new Date(report.at) })) as never;
        current().world.promises.says(caller, given.reports as never, host);
        return served(async ({ agents, world }) => {
          const reportRuns = { results: await agents.reportRuns(key, site, given.agent, reports, sentAt) };
          world.promises.reported(siteId, given.reports as never, reportRuns.results);
          return { reportRuns } as T;
        });
      },
      put: async <T>(address: string, body: Uint8Array, headers: Record<string, string>): Promise<T> => {
        const url = new URL(address, 'http://x');
        const part = {
          ...{ agent: url.searchParams.get('agent')!, offset: Number(url.searchParams.get('offset')) },
          ...{ body: Buffer.from(body), digest: headers['content-digest'] as string },
        };
        return served(
          async ({ files }) => (await files.receive(key, url.pathname.slice('/files/'.length), part)) as T,
        );
      },
      all: async <T>(): Promise<T[]> =>
        served(
          async ({ world: { store } }) =>
            [...store.sites.values()].map(({ id, name }) => ({ id: globalId('site', id), name })) as T[],
        ),
      subscribe: <T>(document: string, variables: object) => {
        // Nobody looks at runs here, or types at their terminals: for agents, a service that knows no such questions.
        if (!document.includes('assignments(')) return unknown(document);
        const agentId = localId('agent', (variables as { agent: string }).agent, 'agent');
        return assignments(current(), {
          siteId,
          agentId,
          wire,
          caller,
          parts: !previous,
        }) as AsyncGenerator<T>;
      },
    };
  }
}

/** What the schema fills in. */
const withTask = (outputs: readonly object[]): never => outputs.map((one) => ({ task: 0, ...one })) as never;

// biome-ignore lint/correctness/useYield: it fails before it has something to say
async function* unknown(document: string): AsyncGenerator<never> {
  throw new ServiceError(`there is no ${document}`, 'GRAPHQL_VALIDATION_FAILED');
}

/** As long as the wire and the API process hold; a connection that is lost is noticed by a ping without an answer. */
async function* assignments(
  { process, world }: Api,
  {
    siteId,
    agentId,
    wire,
    caller,
    parts,
  }: { siteId: number; agentId: number; wire: Wire; caller: Process; parts: boolean },
): AsyncGenerator<unknown> {
  const actions = { ASSIGNED: 'START', RUNNING: 'CONTINUE', CANCELLING: 'STOP' } as const;
  const { store, random, databaseIsAway } = world;
  let at: Parameters<Store['assignments']>[1] = null;
  for (;;) {
    if (wire.isCut || process.dead) {
      await pause(caller, 20_000);
      throw new ServiceError('the connection was lost', 'NETWORK');
    }
    // Nothing has happened: nobody is asked.
    const nothingNew = typeof at === 'string' && Number(at) >= (store.events.at(-1)?.id ?? 0);
    if (nothingNew) {
      await pause(caller, random.integer(50, 1_500));
      continue;
    }
    const after: typeof at = at;
    const batch: Awaited<ReturnType<Store['assignments']>> = await wire.call(caller, async () => {
      if (databaseIsAway()) throw new ServiceError('the database is away', 'UNAVAILABLE');
      return store.assignments(siteId, after, ASSIGNMENTS, 2 ** 30, agentId);
    });
    const { next, list } = batch;
    at = next;
    const cursor = typeof next === 'string' ? next : '0';
    const complete = list?.first === true && list.last;
    const part = list === null || complete ? null : list.first ? 'FIRST' : list.last ? 'LAST' : 'NEXT';
    const told = batch.assignments.flatMap(({ jobId, state, ...run }) => {
      const parts = partsOf({ ...run, jobId, state }, agentId);
      if (parts.length === 0 && hasTasks(run)) return [];
      const action = run.ending ? 'STOP' : actions[state];
      const jobParts = partsShown(run.jobParts);
      const { downloads, uploads } = run;
      const urls = { downloads: downloads ?? [], uploads: uploads ?? [] };
      return [{ ...structuredClone(run), ...urls, jobId: globalId('job', jobId), action, parts, jobParts }];
    });
    if (list !== null || told.length > 0)
      yield { assignments: { cursor, complete, ...(parts && { part }), assignments: told } };
    // A window that was cut short goes on at once.
    await pause(caller, told.length < ASSIGNMENTS ? random.integer(50, 1_500) : 1);
  }
}

/** What services read beside the store. */
function queriesOf(store: MemoryStore) {
  const named = <T extends { id: number }>(all: ReadonlyMap<number, T>, ids: readonly number[]) =>
    ids.flatMap((id) => {
      const one = all.get(id);
      return one ? [{ ...one, removedAt: null }] : [];
    });
  return {
    policy: async () => (await store.loadGrid(0)).policy,
    sites: async () => [...store.sites.values()],
    machines: async () =>
      [...store.machines.values()].map((one) => ({
        ...one,
        maxTasks: one.maxTasks ?? null,
        devices: one.devices ?? [],
      })),
    licenses: async () => [...store.licenses.values()],
    latestCursor: async () => String(store.events.at(-1)?.id ?? 0),
    isRegisteredAnew: async (since: string) =>
      (store.events.findLast(({ kind }) => ['SITE', 'MACHINE', 'LICENSE'].includes(kind))?.id ?? 0) >
      Number(since),
    sitesByIds: async (ids: readonly number[]) => named(store.sites, ids),
    declaredKinds: async () => [
      ...new Set([...store.machines.values()].flatMap((one) => Object.keys(one.resources ?? {}))),
    ],
    poolKinds: async () => [...new Set([...store.licenses.values()].map(({ kind }) => kind))],
    // Those that have been removed are known, too.
    datasetsByIds: async (ids: readonly number[]) =>
      ids.filter((id) => id <= DATASETS).map((id) => ({ id, removedAt: store.datasets.has(id) ? null : 1 })),
    links: async () => [...store.links.values()],
    ownersOf: async (ids: readonly number[]) =>
      named(store.jobs, ids).map(({ id, userId }) => ({ id, userId })),
    membersByName: async (userId: number, names: readonly string[]) =>
      [...store.jobs.values()].flatMap(({ id, groupName, arrayIndex, ...job }) =>
        job.userId === userId && names.includes(groupName ?? '') && !store.hasCopy(id)
          ? [{ id, group: groupName, arrayIndex }]
          : [],
      ),
    membersOfGroups: async () => [],
    groupsByIds: async () => [],
    idempotencyKeyKnown: async (userId: number, key: string) => store.knowsKey(userId, key),
  };
}
