/**
 * The whole service in virtual time: real engines with mirrors of their own, real agents with simulated runs, the real service for what
 * agents report; between them an unreliable queue and unreliable wires; below them the model of the store. A history is played, then
 * all faults stop, and everything has to end.
 *
 * What happens depends on the history alone: the same one again makes the same again.
 */
import { Agent, type ServiceClient } from '../../src/agent/agent.js';
import { SimulatedRunner } from '../../src/agent/simulated.js';
import type { Viewer } from '../../src/api/auth.js';
import type { RegisterAgentInput } from '../../src/api/generated/resolvers-types.js';
import { globalId, localId } from '../../src/api/ids.js';
import { createAgentsService } from '../../src/api/services/agents.js';
import type { ServiceParts } from '../../src/api/services/parts.js';
import { ServiceError } from '../../src/client/index.js';
import { type Policy, parsePolicy, RandomStream, ROOT, type Scheduler } from '../../src/core/index.js';
import { DEFAULT_POLICY } from '../../src/core/policy.js';
import { schedulerOf } from '../../src/core/scheduler.js';
import { createEngine, type Engine } from '../../src/engine/index.js';
import { openWaker, type Waker } from '../../src/engine/waker.js';
import { DEFAULT_LIMITS, MAX } from '../../src/platform/limits.js';
import { createMetrics } from '../../src/platform/metrics.js';
import { outOfBounds } from '../../src/store/bounds.js';
import { Mirror } from '../../src/store/mirror.js';
import type { JobSelection, NewJob, Store, Submission } from '../../src/store/store.js';
import { quietLog } from '../engine/support.js';
import { MemoryStore } from '../store/memory.js';
import { newJob, T0 } from '../store/world.js';
import { CALM, storeOver, Wire, type WireFaults } from './network.js';
import { MAX_ATTEMPTS, Promises } from './promises.js';
import { type QueueFaults, SimulatedQueue } from './queue.js';
import { Process, Time } from './time.js';

export const DEEDS = [
  ...['submit', 'submit', 'submit', 'cancel', 'hold', 'release', 'boost'],
  ...['site', 'machine', 'policy'],
  ...['kill worker', 'pause worker', 'kill agent', 'pause agent', 'kill api', 'pause api'],
  ...['cut agent', 'cut worker', 'store away', 'queue away', 'empty queue', 'agent clock', 'database clock'],
] as const;

export interface Deed {
  afterMs: number;
  kind: (typeof DEEDS)[number];
  /** Whom or what it concerns, and for how long; each deed takes from it what it needs. */
  n: number;
  ms: number;
}

export interface History {
  seed: number;
  dispatch: string;
  local: string;
  queue: QueueFaults;
  wires: WireFaults;
  deeds: readonly Deed[];
  /** How long faults go on after the last deed. */
  lastMs: number;
}

export const DISPATCH_KINDS = [
  'two-level',
  'queues',
  'job-ratio',
  'diana',
  'round-robin',
  'random',
  'most-flops',
];
export const LOCAL_KINDS = ['flexible', 'easy', 'conservative', 'hybrid', 'fcfs', 'sjf', 'first-fit'];

const SITES = 2;
/** Of each site, each with one of its machines. */
const AGENTS = 2;
const WORKERS = 2;
const USERS = 2;
/** All has to end within so long after the last fault. */
const END_WITHIN_MS = 7_200_000;
/** And agents have said so. */
const AFTERWARDS_MS = 60_000;
const LOOK_EVERY_MS = 1_000;
const RESTART_MS = 1_000;

/** What agents send. */
interface Variables {
  input: RegisterAgentInput;
  agent: string;
  instance: string;
  reports: { at: string }[];
}

const machineName = (agent: number): string => `m-${agent}`;

interface Worker {
  process: Process;
  wire: Wire;
  engine: Engine;
}

interface SiteAgent {
  process: Process;
  wire: Wire;
  agent: Agent;
  runner: SimulatedRunner;
}

export class Simulation {
  readonly time = new Time(T0 * 1000);
  readonly store: MemoryStore;
  readonly promises: Promises;
  private readonly random: RandomStream;
  private readonly queue: SimulatedQueue;
  private readonly workers: Worker[] = [];
  private readonly agents: SiteAgent[] = [];
  private readonly metrics = METRICS;
  private api!: { process: Process; waker: Waker; service: ReturnType<typeof createAgentsService> };
  private readonly apiWire: Wire;
  private storeAway = false;
  private healed = false;
  private databaseSkewMs = 0;
  private policyVersion = 1;
  private names = 0;

  constructor(private readonly history: History) {
    const { seed, queue, wires } = history;
    this.random = new RandomStream(seed, 'world');
    this.store = new MemoryStore({ now: this.databaseNow });
    this.queue = new SimulatedQueue(this.time, new RandomStream(seed, 'queue'), { ...queue });
    this.apiWire = this.wireToStore('api-store', wires);
    this.promises = new Promises(this.store);
    this.store.setPolicy({ version: 1, document: policyOf(history.dispatch, history.local, seed) });
    for (let i = 0; i < USERS; i++)
      this.store.addUser(i === 0 ? 'REGULAR' : 'GOLD', i === 0 ? null : { limit: 12, periodS: 60 });
    // One of the whole grid: sites see each other's reservations then.
    const grid = this.store.addLicense('grid', 1, null);
    for (let i = 0; i < SITES; i++) {
      const siteId = this.store.addSite(`site-${i}`, null, i === 0 ? null : 3);
      const cad = this.store.addLicense('cad', 1, siteId);
      const machine = { siteId, memoryMb: 1_000, os: 'linux', architecture: 'x64' };
      this.store.addMachine({
        ...machine,
        name: machineName(AGENTS * i),
        benchmark: 100,
        cpus: 4,
        licenseIds: [cad, grid],
      });
      this.store.addMachine({
        ...machine,
        name: machineName(AGENTS * i + 1),
        benchmark: 50 + 50 * i,
        cpus: 2,
        licenseIds: [cad, grid],
      });
    }
  }

  /** Plays the history, and answers with what of the promises was broken, the first only; null: nothing. */
  async run(): Promise<string | null> {
    this.startApi();
    for (let i = 0; i < WORKERS; i++) this.startWorker(i);
    for (let i = 0; i < SITES * AGENTS; i++) this.startAgent(i);
    let at = 0;
    for (const deed of this.history.deeds) {
      at += deed.afterMs;
      this.time.after(at, () => this.happen(deed));
    }
    const look = (): void => {
      this.promises.look();
      this.time.after(LOOK_EVERY_MS, look);
    };
    look();
    await this.until(this.time.now + at + this.history.lastMs + 1);
    this.heal();
    const allEnded = (): boolean => {
      for (const job of this.store.jobs.values()) if (job.endedAt === null) return false;
      return this.promises.unanswered.size === 0;
    };
    const ended = await this.until(this.time.now + END_WITHIN_MS, allEnded);
    if (this.promises.broken === null && !ended) {
      const left = [...this.store.jobs.values()].filter((job) => job.endedAt === null);
      const shown = left.slice(0, 3).map(({ id, state, siteId, epoch }) => ({ id, state, siteId, epoch }));
      return `liveness: ${left.length} jobs have not ended: ${JSON.stringify(shown)}`;
    }
    await this.until(this.time.now + AFTERWARDS_MS);
    this.promises.look();
    await this.promises.atEnd();
    for (const [i, { runner }] of this.agents.entries()) {
      if (runner.runs().length > 0)
        this.promises.fail(`2: agent ${i} still has runs of jobs that have ended`);
      if (runner.reports(1).length > 0) this.promises.fail(`9: agent ${i} keeps reports that were answered`);
    }
    return this.promises.broken;
  }

  private async until(limit: number, done: () => boolean = () => false): Promise<boolean> {
    let looked = 0;
    while (this.promises.broken === null) {
      if (!(await this.time.step(limit))) return false;
      if (this.time.now - looked >= LOOK_EVERY_MS) {
        looked = this.time.now;
        if (done()) return true;
      }
    }
    return false;
  }

  /** The database's clock, epoch seconds. */
  private databaseNow = (): number => (this.time.now + this.databaseSkewMs) / 1000;

  private process(name: string): Process {
    return new Process(this.time, new RandomStream(this.history.seed, `${name}-${++this.names}`));
  }

  private wireToStore(name: string, faults: WireFaults): Wire {
    const random = new RandomStream(this.history.seed, name);
    // A database carries out what it is sent once.
    return new Wire(this.time, random, { ...faults, repeated: 0 }, (why) => new Error(why));
  }

  /** As a process sees it: away when it is, whoever asks. */
  private storeFor(wire: Wire, process: Process): Store {
    const { store } = this;
    const guarded = new Proxy(store, {
      get: (target, name) => {
        const method = target[name as keyof MemoryStore] as unknown;
        if (typeof method !== 'function') return method;
        return async (...args: unknown[]) => {
          if (this.storeAway) throw new Error('the database is away');
          return method.apply(target, args);
        };
      },
    });
    return storeOver(wire, process, guarded);
  }

  // Processes -------------------------------------------------------------------------------------------------------------

  private startWorker(i: number): void {
    const process = this.process(`worker-${i}`);
    const wire = this.workers[i]?.wire ?? this.wireToStore(`worker-${i}-store`, this.faults);
    const store = this.storeFor(wire, process);
    const engine = createEngine({
      store,
      mirror: new Mirror(store, { batch: 50 }),
      queueConnection: this.queue.of(process),
      log: quietLog,
      metrics: this.metrics,
      config: {
        limit: 20,
        limits: { maxMoves: 10, maxStarts: 5, maxTakenBack: 5, maxRounds: 4, refusedPauseMs: 500 },
      },
      now: this.databaseNow,
      env: process,
    });
    this.workers[i] = { process, wire, engine };
    // What watches over processes starts it again.
    engine.start().catch(() => {
      process.after(RESTART_MS, () => this.restartWorker(i));
    });
  }

  private restartWorker(i: number): void {
    (this.workers[i] as Worker).process.dead = true;
    this.startWorker(i);
  }

  private startApi(): void {
    const process = this.process('api');
    const waker = openWaker({
      connection: this.queue.of(process),
      log: quietLog,
      metrics: this.metrics,
      env: process,
    });
    const store = this.storeFor(this.apiWire, process);
    const queries = {
      policy: async () => (await this.store.loadGrid(0)).policy,
      sites: async () => [...this.store.sites.values()],
    };
    const parts = {
      store,
      queries,
      limits: DEFAULT_LIMITS,
      now: this.databaseNow,
      wake: waker.wake,
      agentRefused: () => {},
    };
    this.api = { process, waker, service: createAgentsService(parts as unknown as ServiceParts) };
    const id = `api-${this.names}`;
    const seen = (): void => {
      store.processSeen(id, 'api', this.databaseNow()).catch(() => {});
      process.after(5_000, seen);
    };
    seen();
  }

  private startAgent(i: number): void {
    const siteId = Math.floor(i / AGENTS) + 1;
    const process = this.process(`agent-${i}`);
    const failure = (why: string) => new ServiceError(why, 'NETWORK');
    const random = new RandomStream(this.history.seed, `agent-${i}-api`);
    const wire = this.agents[i]?.wire ?? new Wire(this.time, random, { ...this.faults }, failure);
    process.skewMs = this.agents[i]?.process.skewMs ?? 0;
    const runner = new SimulatedRunner({ speed: 1, env: process });
    const agent = new Agent({
      url: '',
      key: '',
      site: `site-${Math.floor(i / AGENTS)}`,
      runner,
      identity: `agent-${i}`,
      host: `host-${i}`,
      machines: [{ name: machineName(i), measured: null }],
      log: quietLog,
      client: this.client(siteId, wire, process),
      env: process,
    });
    this.agents[i] = { process, wire, agent, runner };
    agent.start();
  }

  private get faults(): WireFaults {
    return this.healed ? CALM : this.history.wires;
  }

  // Between agents and the service ----------------------------------------------------------------------------------------

  private client(siteId: number, wire: Wire, caller: Process): ServiceClient {
    const viewer: Viewer = {
      keyId: 1,
      userId: 1,
      role: 'AGENT',
      siteId,
      expiresAtMs: null,
      actsForUsers: false,
      onBehalfBy: null,
    };
    /** What the API process does; one that is paused or dead does nothing. */
    const served = <T>(work: () => Promise<T>): Promise<T> =>
      wire.call(caller, () => {
        const { process } = this.api;
        return new Promise<T>((resolve, reject) => {
          const failed = (error: { extensions?: { code?: string }; message: string }): void =>
            reject(new ServiceError(error.message, error.extensions?.code ?? 'UNAVAILABLE'));
          process.soon(() => void work().then(resolve, failed));
          // The caller does not wait for ever.
          this.time.after(30_000, () => reject(new ServiceError('no answer', 'NETWORK')));
        });
      });
    return {
      request: async <T>(document: string, variables: object): Promise<T> => {
        const given = structuredClone(variables) as Variables;
        const site = globalId('site', siteId);
        const { service } = this.api;
        if (document.includes('registerAgent('))
          return served(async () => {
            const { agentId, machines } = await service.registerAgent(viewer, given.input, 'request');
            return { registerAgent: { agent: { id: globalId('agent', agentId) }, machines } } as T;
          });
        if (document.includes('heartbeat('))
          return served(
            async () =>
              ({ heartbeat: await service.heartbeat(viewer, site, given.agent, given.instance) }) as T,
          );
        const reports = given.reports.map((report) => ({ ...report, at: new Date(report.at) })) as never;
        this.promises.says(caller, given.reports as never);
        return served(async () => {
          const reportRuns = { results: await service.reportRuns(viewer, site, given.agent, reports) };
          this.promises.reported(siteId, given.reports as never, reportRuns.results);
          return { reportRuns } as T;
        });
      },
      all: async <T>(): Promise<T[]> =>
        served(
          async () =>
            [...this.store.sites.values()].map(({ id, name }) => ({ id: globalId('site', id), name })) as T[],
        ),
      subscribe: <T>(_document: string, { agent }: { agent: string }) =>
        this.assignments(siteId, localId('agent', agent, 'agent'), wire, caller) as AsyncGenerator<T>,
    };
  }

  /** As long as the wire and the API process hold; a connection that is lost is noticed by a ping without an answer. */
  private async *assignments(
    siteId: number,
    agentId: number,
    wire: Wire,
    caller: Process,
  ): AsyncGenerator<unknown> {
    const actions = { ASSIGNED: 'START', RUNNING: 'CONTINUE', CANCELLING: 'STOP' } as const;
    const { process } = this.api;
    let at: Parameters<Store['assignments']>[1] = null;
    for (;;) {
      if (wire.isCut || process.dead) {
        await new Promise<void>((resolve) => caller.after(20_000, resolve));
        throw new ServiceError('the connection was lost', 'NETWORK');
      }
      const after: typeof at = at;
      const batch: Awaited<ReturnType<Store['assignments']>> = await wire.call(caller, async () => {
        if (this.storeAway) throw new ServiceError('the database is away', 'UNAVAILABLE');
        return this.store.assignments(siteId, after, 3, 2 ** 30, agentId);
      });
      const { next, list } = batch;
      at = next;
      const cursor = typeof next === 'string' ? next : '0';
      const complete = list?.first === true && list.last;
      const part = list === null || complete ? null : list.first ? 'FIRST' : list.last ? 'LAST' : 'NEXT';
      const assignments = batch.assignments.map(({ jobId, state, ...run }) => ({
        ...structuredClone(run),
        jobId: globalId('job', jobId),
        action: actions[state],
      }));
      if (list !== null || assignments.length > 0)
        yield { assignments: { cursor, complete, part, assignments } };
      // A window that was cut short goes on at once.
      const pauseMs = assignments.length < 3 ? this.random.integer(50, 1_500) : 1;
      await new Promise<void>((resolve) => caller.after(pauseMs, resolve));
    }
  }

  // What people and faults do ---------------------------------------------------------------------------------------------

  private happen({ kind, n, ms }: Deed): void {
    const { store, workers, agents } = this;
    const worker = workers[n % WORKERS] as Worker;
    const agent = agents[n % agents.length] as SiteAgent;
    const wake = (schedulers: readonly (Scheduler | null)[]): void =>
      void this.api.waker.wake(schedulers.map((one) => (typeof one === 'string' ? one : schedulerOf(one))));
    const act = (of: 'cancel' | 'hold' | 'release' | 'boost'): void => {
      if (store.jobs.size === 0) return;
      const selection: JobSelection = { ids: [1 + (n % store.jobs.size)], ownedBy: null, limit: 1 };
      const outcome = {
        cancel: () => store.cancel(selection, this.databaseNow(), 'CANCELLED_BY_USER'),
        hold: () => store.hold(selection),
        release: () => store.release(selection),
        boost: () => store.reprioritize(selection, n % 2 === 0 ? MAX.boost : -MAX.boost),
      }[of]();
      void outcome.then(({ touched }) => wake(touched));
    };
    const restart = (process: Process, start: () => void): void => {
      process.dead = true;
      this.time.after(ms, start);
    };
    switch (kind) {
      case 'submit':
        this.submit(n);
        break;
      case 'cancel':
      case 'hold':
      case 'release':
      case 'boost':
        act(kind);
        break;
      case 'site': {
        store.setSiteState(1 + (n % SITES), (['DRAINING', 'DOWN', 'UP'] as const)[n % 3] as 'UP');
        wake([ROOT, ...store.sites.keys()]);
        break;
      }
      case 'machine': {
        store.setMachineState(
          1 + (n % store.machines.size),
          (['DOWN', 'DRAINING', 'UP'] as const)[n % 3] as 'UP',
        );
        wake([ROOT, ...store.sites.keys()]);
        break;
      }
      case 'policy': {
        const dispatch = DISPATCH_KINDS[n % DISPATCH_KINDS.length] as string;
        const local = LOCAL_KINDS[(n >> 3) % LOCAL_KINDS.length] as string;
        store.setPolicy({ version: ++this.policyVersion, document: policyOf(dispatch, local, n) });
        wake([ROOT, ...store.sites.keys()]);
        break;
      }
      case 'kill worker': {
        const i = n % WORKERS;
        if (!worker.process.dead) restart(worker.process, () => this.restartWorker(i));
        break;
      }
      case 'kill agent': {
        const i = n % agents.length;
        if (!agent.process.dead) restart(agent.process, () => this.startAgent(i));
        break;
      }
      case 'kill api':
        if (!this.api.process.dead) restart(this.api.process, () => this.startApi());
        break;
      case 'pause worker':
        worker.process.pause(ms);
        break;
      case 'pause agent':
        agent.process.pause(ms);
        break;
      case 'pause api':
        this.api.process.pause(ms);
        break;
      case 'cut agent':
        agent.wire.cutFor(ms);
        break;
      case 'cut worker':
        worker.wire.cutFor(ms);
        break;
      case 'store away': {
        this.storeAway = true;
        this.time.after(ms, () => {
          this.storeAway = false;
        });
        break;
      }
      case 'queue away': {
        this.queue.down = true;
        this.time.after(ms, () => {
          this.queue.down = false;
        });
        break;
      }
      case 'empty queue':
        this.queue.empty();
        break;
      case 'agent clock':
        agent.process.skewMs += (n % 2 === 0 ? 1 : -1) * ms * 100;
        break;
      case 'database clock':
        this.databaseSkewMs += (n % 2 === 0 ? 1 : -1) * ms;
        break;
    }
  }

  /** A user who asks again, with the same key, until there is an answer; and now and then once more behind that. */
  private submit(n: number): void {
    const random = new RandomStream(n, 'jobs');
    const userId = random.integer(1, USERS);
    const jobs = Array.from({ length: random.integer(1, 4) }, () => drawJob(random, this.databaseNow()));
    const key = `key-${++this.names}`;
    const hash = JSON.stringify(jobs);
    const user = this.process('user');
    const store = this.storeFor(this.apiWire, user);
    const attempt = (left: number): void => {
      const submission: Submission = {
        userId,
        idempotencyKey: key,
        payloadHash: hash,
        jobs,
        now: this.databaseNow(),
      };
      store.submit(submission).then(
        (result) => {
          this.promises.submitted(submission, result);
          void this.api.waker.wake([ROOT]);
          if (left > 0) user.after(random.integer(100, 20_000), () => attempt(left - 1));
        },
        () => user.after(random.integer(100, 3_000), () => attempt(left)),
      );
    };
    this.promises.asked(key);
    attempt(random.integer(0, 1));
  }

  /** All faults stop: everything works from now on, though nobody says so to anybody. */
  private heal(): void {
    const { store, workers, agents } = this;
    this.healed = true;
    this.storeAway = false;
    this.queue.down = false;
    this.queue.faults = { lost: 0, doubled: 0, delayed: 0 };
    this.apiWire.mend();
    for (const [i, { process, wire }] of workers.entries()) {
      wire.mend();
      process.wakeUp();
      if (process.dead) this.startWorker(i);
    }
    for (const [i, { process, wire }] of agents.entries()) {
      wire.mend();
      process.wakeUp();
      if (process.dead) this.startAgent(i);
    }
    this.api.process.wakeUp();
    if (this.api.process.dead) this.startApi();
    for (const { id } of store.sites.values()) store.setSiteState(id, 'UP');
    for (const { id } of store.machines.values()) store.setMachineState(id, 'UP');
    const release = (): void => {
      void store.release({ filter: { states: ['HELD'] }, ownedBy: null, limit: 10_000 });
      this.time.after(30_000, release);
    };
    release();
  }
}

const METRICS = createMetrics();

function policyOf(dispatch: string, local: string, seed: number): Policy {
  const extra: Record<string, object> = {
    queues: { order: 'FF', queueLimit: 2 },
    conservative: { depth: 5 },
    hybrid: { reservations: 2 },
  };
  const document = (localPolicy: object) => ({
    ...DEFAULT_POLICY,
    dispatch:
      dispatch === DEFAULT_POLICY.dispatch.kind
        ? DEFAULT_POLICY.dispatch
        : { kind: dispatch, ...extra[dispatch] },
    local: localPolicy,
    seed: seed >>> 0,
    maxAttempts: MAX_ATTEMPTS,
    timers: {
      cycleS: 5,
      agentSilentS: 15,
      lostAfterS: 40,
      onDeadlinePassed: seed % 2 === 0 ? 'CANCEL' : 'RECORD',
    },
  });
  return parsePolicy(
    document(local === DEFAULT_POLICY.local.kind ? DEFAULT_POLICY.local : { kind: local, ...extra[local] }),
  );
}

/** One that some machine can run, with numbers that are ordinary or at the very bounds of what is accepted. */
function drawJob(random: RandomStream, now: number): NewJob {
  const one = <T>(...list: T[]): T => list[random.integer(0, list.length - 1)] as T;
  const benchmark = one(100, 100, 100, MAX.leastBenchmark, MAX.benchmark);
  const runS = one(0, 1, 5, 20, 60);
  const given = newJob({
    tasks: one(1, 1, 2, 3),
    cpusPerTask: one(1, 1, 2),
    memoryMbPerTask: one(0, 100, 300),
    licenses: one([], [], [], ['cad'], ['grid'], ['cad', 'grid']),
    benchmark,
    estimateS: one(10, 60, MAX.leastSeconds, MAX.seconds),
    simulatedRunS: Math.min(MAX.seconds, (runS * 100) / benchmark),
    simulatedIoS: one(null, 0, 1, MAX.seconds),
    runTimeLimitS: one(null, null, MAX.leastSeconds, 30, MAX.seconds),
    deadline: one(null, null, now + 5, now + 60, now + 1e8),
    boost: one(0, 0, MAX.boost, -MAX.boost),
    sandboxMb: one(0, MAX.sizeMb),
    outputMb: one(0, MAX.sizeMb),
    application: one('a', 'b'),
    restartable: one(true, true, false),
    held: one(false, false, false, false, true),
  });
  const fits = given.licenses.includes('cad') || given.licenses.includes('grid') ? { tasks: 1 } : {};
  const job = { ...given, ...fits };
  return outOfBounds(job) === null ? job : { ...job, benchmark: 100, simulatedRunS: runS, estimateS: 60 };
}
