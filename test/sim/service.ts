/**
 * One service of a simulation: real engines with mirrors of their own, real agents with simulated runs, the real service for what agents and peers
 * report; between them an unreliable queue and unreliable wires; below them the model of the store.
 */
import { deserialize, serialize } from 'node:v8';
import { Agent } from '../../src/agent/agent.js';
import { isPassing } from '../../src/agent/process/disk.js';
import { type Runner, runKey } from '../../src/agent/runner.js';
import { SimulatedRunner } from '../../src/agent/simulated.js';
import { localId } from '../../src/api/ids.js';
import { NEEDS } from '../../src/api/services/fit.js';
import { ServiceError } from '../../src/client/index.js';
import { type Policy, parsePolicy, RandomStream, ROOT } from '../../src/core/index.js';
import { DEFAULT_POLICY } from '../../src/core/policy.js';
import { schedulerOf } from '../../src/core/scheduler.js';
import { isLive } from '../../src/core/states.js';
import { createEngine, type Engine } from '../../src/engine/index.js';
import { Federation } from '../../src/federation/index.js';
import { MAX } from '../../src/platform/limits.js';
import { createMetrics } from '../../src/platform/metrics.js';
import { Mirror } from '../../src/store/mirror.js';
import { tokenOf } from '../../src/store/rules.js';
import type { OutputPiece, RunOutput, Store } from '../../src/store/store.js';
import { quietLog } from '../engine/support.js';
import { MemoryStore } from '../store/memory.js';
import type { MemoryPeer } from '../store/memory-federation.js';
import { Api, type ApiWorld, DATASETS } from './api.js';
import type { SimulatedDisk } from './disk.js';
import { promisedLate } from './earliest.js';
import { contentOf, SimulatedBlobs, SimulatedFiles } from './files.js';
import { CHANGES, type Deed, DISK_DEEDS, DISPATCH_KINDS, type History, LOCAL_KINDS } from './history.js';
import { DurableRunner, Host, STDOUT } from './host.js';
import { Late } from './late.js';
import { CALM, DatabaseAway, storeOver, Wire, type WireFaults } from './network.js';
import { peerLink } from './peer-link.js';
import { Promises } from './promises.js';
import { SimulatedQueue } from './queue.js';
import { Process, type Time } from './time.js';
import { USERS, Users } from './users.js';

/** The third is shared in time. */
const SITES = 3;
const machineName = (site: number, machine: number): string => `m${site}-${machine + 1}`;
/** The first site has an agent for each of its machines. */
const AGENTS = [
  { site: 0, machines: [machineName(0, 0)] },
  { site: 1, machines: [machineName(1, 0), machineName(1, 1)] },
  { site: 2, machines: [machineName(2, 0)] },
  { site: 0, machines: [machineName(0, 1)] },
] as const;
const WORKERS = 2;
/** Once faults have stopped, an agent ends a run within so long after its job does without it. */
const STOPS_WITHIN_MS = 60_000;
const RESTART_MS = 1_000;
/** What peers are to each other, unless the history says so. */
const PEER = { forward: 'WHEN_NEEDED', neededAfterS: 3, lostAfterS: 60, foreignMax: 20, hops: 3 } as const;
const FORWARDS = ['ALWAYS', 'WHEN_NEEDED', 'WHEN_CHEAPER', 'NEVER'] as const;

interface Worker {
  process: Process;
  wire: Wire;
  engine: Engine;
}

interface SiteAgent {
  process: Process;
  wire: Wire;
  /** null: runs are simulated by the agent itself. */
  host: Host | null;
  /** null: it could not be started. */
  runner: Runner | null;
  /** How often its disk was replaced. */
  disks: number;
}

export class Service {
  readonly name: string;
  readonly store: MemoryStore;
  readonly promises: Promises;
  late: Late;
  private readonly random: RandomStream;
  private readonly queue: SimulatedQueue;
  private readonly workers: Worker[] = [];
  private readonly agents: SiteAgent[] = [];
  private readonly metrics = METRICS;
  api!: Api;
  private readonly around: ApiWorld;
  private readonly users: Users;
  private readonly apiWire: Wire;
  readonly files: SimulatedFiles;
  readonly blobs = new SimulatedBlobs();
  /** Between users and the API. */
  private readonly userWire: Wire;
  private readonly repeatingWire: Wire;
  private storeAway = false;
  private healed = false;
  private databaseSkewMs = 0;
  private policyVersion = 1;
  private names = 0;
  /** Of this service alone: others play the same history otherwise. */
  private readonly seed: number;
  /** By the site that stands for each here: how the peer is reached, and who we are there. */
  private readonly peers = new Map<number, { peer: Service; siteThere: number; wire: Wire }>();
  /** Its database was set back at some time. */
  wasRestored = false;
  /** Runs of agents that the service knows as ended, and since when, ms. */
  private overtime = new Map<string, number>();

  constructor(
    private readonly history: History,
    readonly time: Time,
    private readonly index: number,
  ) {
    const { queue, wires } = history;
    const seed = history.seed + index * 7_919;
    this.seed = seed;
    this.name = `service-${index}`;
    this.random = new RandomStream(seed, 'world');
    this.store = new MemoryStore({ now: this.databaseNow });
    this.store.federation.serviceId = this.name;
    this.files = new SimulatedFiles(this.store);
    this.queue = new SimulatedQueue(this.time, new RandomStream(seed, 'queue'), { ...queue });
    this.apiWire = this.wireToStore('api-store', wires);
    this.userWire = this.wireToApi('users', { ...wires, repeated: 0 });
    this.repeatingWire = this.wireToApi('users-repeated', wires);
    this.promises = new Promises(this.store, maxAttempts(seed));
    this.late = this.newLate();
    const { store, promises, databaseNow, random, metrics } = this;
    const databaseIsAway = (): boolean => this.storeAway;
    this.around = { time, store, promises, queue: this.queue, metrics, random, databaseNow, databaseIsAway };
    const current = (): Api => this.api;
    this.users = new Users({
      ...{ store, promises, databaseNow },
      process: (name) => this.process(name),
      call: (caller, work) => Api.call(current, this.userWire, caller, work),
      callRepeated: (caller, work) => Api.call(current, this.repeatingWire, caller, work),
    });
    this.store.setPolicy({
      version: 1,
      document: policyOf(history.dispatch, history.local, seed, maxAttempts(seed)),
    });
    for (let i = 0; i < USERS; i++)
      this.store.addUser(i === 0 ? 'REGULAR' : 'GOLD', i === 0 ? null : { limit: 4, periodS: 60 });
    // One of the whole grid: sites see each other's reservations then.
    const grid = this.store.addLicense('grid', 1, null);
    for (let i = 0; i < SITES; i++) {
      const siteId = this.store.addSite(`site-${i}`, null, i === 1 ? 2 : null);
      const licenseIds = [this.store.addLicense('cad', 1, siteId), grid];
      const machine = {
        ...{ siteId, memoryMb: 1_000, os: 'linux', architecture: 'x64', licenseIds },
        resources: { disk: 2 },
        devices: ['d0', 'd1'].map((id) => ({
          id,
          kind: 'disk',
          model: null,
          memoryMb: 0,
          shares: 1,
          link: null,
        })),
      };
      if (i === 2)
        this.store.addMachine({ ...machine, name: machineName(i, 0), benchmark: 100, cpus: 2, maxTasks: 3 });
      else {
        this.store.addMachine({ ...machine, name: machineName(i, 0), benchmark: 100, cpus: 4 });
        this.store.addMachine({ ...machine, name: machineName(i, 1), benchmark: 50 + 50 * i, cpus: 2 });
      }
    }
    for (let id = 1; id <= DATASETS; id++)
      this.store.setDataset(id, { sizeMb: [1, 1_000, MAX.sizeMb][id - 1] as number, siteIds: [id] });
  }

  /** Makes the other a peer, whose jobs run here too, and that may have those of this service. */
  peer(other: Service): void {
    const { forward } = this.history;
    const known = { url: 'https://peer', secret: 'key', ...PEER, ...(forward && { forward }) };
    const siteHere = this.store.federation.addPeer(other.name, known);
    const wire = this.wireToApi(`to-${other.name}`, this.history.wires);
    this.peers.set(siteHere, { peer: other, siteThere: 0, wire });
  }

  /** All know all by then. */
  start(): void {
    // What all can fetch, and most of its machines away where all submit.
    this.store.federation.urls.set(1, { name: 'd', urls: ['https://d'] });
    if (this.peers.size > 0 && this.index === 0) {
      for (const id of [2, 3]) this.store.setSiteState(id, 'DOWN');
      this.store.setMachineState(2, 'DOWN');
    }
    for (const known of this.peers.values())
      known.siteThere = [...known.peer.peers].find(([, { peer }]) => peer === this)?.[0] as number;
    this.startApi();
    for (let i = 0; i < WORKERS; i++) this.startWorker(i);
    for (let i = 0; i < AGENTS.length; i++) this.startAgent(i);
  }

  /** Every second. */
  look(): void {
    this.promises.look();
    this.late.look(this.databaseNow(), this.failing());
    for (const { host } of this.agents) host?.look();
    if (this.healed) this.lookAtAgents();
  }

  get allEnded(): boolean {
    for (const job of this.store.jobs.values()) if (job.endedAt === null) return false;
    for (const { told } of this.store.federation.foreign.values()) if (told < 2) return false;
    return this.promises.unanswered.size === 0;
  }

  /** What has not ended, in words; null: all has. */
  get left(): string | null {
    const left = [...this.store.jobs.values()].filter((job) => job.endedAt === null);
    const copies = [...this.store.federation.foreign.values()].filter(({ told }) => told < 2);
    if (this.allEnded) return null;
    const named = ['id', 'state', 'siteId', 'epoch', ...NEEDS, 'avoids', 'preferences'] as const;
    const shown = left
      .slice(0, 3)
      .map((job) => Object.fromEntries(named.map((field) => [field, job[field]])));
    return `${left.length} jobs have not ended at ${this.name}: ${JSON.stringify(shown)}, and ${copies.length} copies: ${JSON.stringify(copies.slice(0, 3))}`;
  }

  /** When all has ended. */
  async atEnd(): Promise<void> {
    this.promises.look();
    await this.promises.atEnd();
    this.lookAtFiles();
    for (const [i, { runner, host }] of this.agents.entries()) {
      if (runner === null) {
        this.promises.fail(`6: agent ${i} does not start again`);
        continue;
      }
      if (host !== null && host.living > 0) this.promises.fail(`2: runs of agent ${i} have no end`);
      if (runner.runs().length > 0)
        this.promises.fail(`2: agent ${i} still has runs of jobs that have ended`);
      if (runner.reports(1).length > 0) this.promises.fail(`9: agent ${i} keeps reports that were answered`);
    }
  }

  /** What a machine with a disk has run to its end is there: the files that its job names, whole and once, and what it wrote. */
  private lookAtFiles(): void {
    // What agents had handed over before is gone, and they do not have it any more.
    if (this.wasRestored) return;
    const { store, files, blobs, promises } = this;
    const kept = [...files.rows.values()];
    for (const { id, state, epoch, outputs, launch } of store.jobs.values()) {
      const run = store.runs.get(`${id}/${epoch}`);
      if (state !== 'COMPLETED' || run === undefined) continue;
      const alone = run.allocations.reduce((sum, { tasks }) => sum + tasks, 0) === 1 || launch === 'ONCE';
      let task = 0;
      for (const { machineId, tasks } of alone ? run.allocations.slice(0, 1) : run.allocations)
        for (let i = 0; i < (alone ? 1 : tasks); i++, task++) {
          const { name } = store.machines.get(machineId)!;
          const agent = AGENTS.findIndex(({ machines }) => (machines as readonly string[]).includes(name));
          if (!this.history.disks.includes(agent)) continue;
          const token = tokenOf(run.assignedAt);
          const key = runKey({ jobId: `job_${id}`, epoch, token, ...(!alone && { task }) });
          for (const { path } of outputs) {
            const found = kept.filter(
              (row) => row.jobId === id && row.epoch === epoch && row.task === task && row.path === path,
            );
            const wanted = contentOf(key, path);
            if (
              found.length !== 1 ||
              found[0]?.keptAt === null ||
              !blobs.contentOf(found[0]!.id)?.equals(wanted)
            )
              promises.fail(`1: file ${path} of run ${key} is not kept, though its job is COMPLETED`);
          }
          const written = writtenBy(store.outputs.get(`${id}/${epoch}`) ?? [], task);
          if (!written.equals(contentOf(key, STDOUT)))
            promises.fail(`1: ${written.length} bytes of what run ${key} wrote are kept`);
        }
    }
  }

  /** What the service has given up does not go on for long. */
  private lookAtAgents(): void {
    const { now } = this.time;
    const seen = new Map<string, number>();
    for (const [i, { runner, process }] of this.agents.entries()) {
      if (process.dead) continue;
      for (const { jobId, epoch } of runner?.runs() ?? []) {
        const run = `${localId('job', jobId, 'job')}/${epoch}`;
        if (this.store.runs.get(run)?.endedAt === null) continue;
        const since = this.overtime.get(run) ?? now;
        seen.set(run, since);
        if (now - since > STOPS_WITHIN_MS) this.promises.fail(`2: agent ${i} goes on with run ${run}`);
      }
    }
    this.overtime = seen;
  }

  /** What does not work now, and for which site; null: for all. */
  private failing(): { what: string; siteId: number | null }[] {
    const { queue, wires } = this.history;
    const stands = ({ process, wire }: { process: Process; wire: Wire }): boolean =>
      process.dead || process.paused || wire.isCut;
    const faulty =
      !this.healed && [...Object.values(queue), ...Object.values(wires)].some((odds) => odds > 0);
    const of = (fails: boolean, what: string, siteId: number | null = null) =>
      fails ? [{ what, siteId }] : [];
    return [
      ...of(faulty, 'wake-ups and requests are lost'),
      ...of(this.storeAway, 'the store is away'),
      ...of(this.queue.down, 'the queue is away'),
      ...of(this.workers.some(stands), 'a worker stands still'),
      // It holds machines, and begins later than was planned.
      ...[...this.store.federation.foreign.values()].flatMap(({ jobId, epoch }) => {
        const job = this.store.jobs.get(jobId);
        const holds = epoch === null && job !== undefined && isLive(job.state);
        return of(holds, 'a copy waits for its grant', job?.siteId);
      }),
      ...of(stands({ process: this.api.process, wire: this.apiWire }), 'the API stands still'),
      ...this.agents.flatMap((agent, i) =>
        of(agent.runner === null || stands(agent), 'an agent stands still', 1 + AGENTS[i]!.site),
      ),
    ];
  }

  /** The database's clock, epoch seconds. */
  private databaseNow = (): number => (this.time.now + this.databaseSkewMs) / 1000;

  private process(name: string, disk: SimulatedDisk | null = null): Process {
    return new Process(this.time, new RandomStream(this.seed, `${name}-${++this.names}`), disk);
  }

  private wireToApi(name: string, faults: WireFaults): Wire {
    const random = new RandomStream(this.seed, name);
    return new Wire(this.time, random, { ...faults }, (why) => new ServiceError(why, 'NETWORK'));
  }

  private wireToStore(name: string, faults: WireFaults): Wire {
    const random = new RandomStream(this.seed, name);
    // A database carries out what it is sent once.
    return new Wire(this.time, random, { ...faults, repeated: 0 }, (why) => new DatabaseAway(why));
  }

  /** As a process sees it: away when it is, whoever asks. */
  private storeFor<T extends object>(wire: Wire, process: Process, store: T): T {
    const guarded = new Proxy(store, {
      get: (target, name) => {
        const method = target[name as keyof T] as unknown;
        if (typeof method !== 'function') return method;
        return async (...args: unknown[]) => {
          if (this.storeAway) throw new DatabaseAway('the database is away');
          return method.apply(target, args);
        };
      },
    });
    const reached = storeOver(wire, process, guarded);
    // Parts of the store are reached in the same way.
    return new Proxy(reached, {
      get: (target, name) => {
        const found = target[name as keyof T] as unknown;
        const isPart = name === 'offers' || name === 'copies';
        return isPart ? this.storeFor(wire, process, found as object) : found;
      },
    });
  }

  /** What conservative backfilling promises is compared with what there is room for, on the grid that the plan was made on. */
  private judged(store: Store, mirror: Mirror): Store {
    const applyStarts: Store['applyStarts'] = (siteId, starts, reservation, context, promises) => {
      const kept = this.store.promised.get(siteId);
      const isCurrent = promises != null && (kept?.revision ?? 0) === promises.revision;
      if (isCurrent && promises.promises !== null) {
        const before = kept?.promises ?? null;
        const what = promisedLate(mirror.grid, siteId, context.now, starts, before, promises.promises);
        if (what !== null) this.promises.fail(what);
      }
      return store.applyStarts(siteId, starts, reservation, context, promises);
    };
    return new Proxy(store, {
      get: (target, name) => (name === 'applyStarts' ? applyStarts : Reflect.get(target, name)),
    });
  }

  // Processes -------------------------------------------------------------------------------------------------------------

  private startWorker(i: number): void {
    const process = this.process(`worker-${i}`);
    const wire = this.workers[i]?.wire ?? this.wireToStore(`worker-${i}-store`, this.faults);
    const reached: Store = this.storeFor(wire, process, this.store);
    const mirror = new Mirror(reached, { batch: 50 });
    const store = this.judged(reached, mirror);
    const engine = createEngine({
      store,
      mirror,
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
    if (this.peers.size > 0) this.startFederation(process, reached, engine);
    // What watches over processes starts it again.
    engine
      .start()
      .catch(() => process.after(RESTART_MS, () => this.kill(process, 0, () => this.startWorker(i))));
  }

  private startFederation(process: Process, store: Store, engine: Engine): void {
    const federation = new Federation({
      copies: store.copies,
      filesOfRuns: async (runs) => this.files.ofRuns(runs),
      blobs: this.blobs,
      share: { jobs: 1_000, bytes: 1e9 },
      wake: (touched) => void engine.wake(touched.map(schedulerOf)),
      now: this.databaseNow,
      log: quietLog,
      env: process,
      // Seldom: what nothing comes of costs most of the time.
      idleMs: 5_000,
      connect: ({ siteId }) => {
        const { peer, siteThere, wire } = this.peers.get(siteId)!;
        return peerLink(() => peer.api, { siteId: siteThere, wire, caller: process });
      },
    });
    federation.start();
  }

  /** The database is what it was then, as from a backup; whoever is served by it starts anew. */
  private backUp(): () => void {
    const { store, files } = this;
    const then = serialize([store.dump(), files.dump()]);
    return () => {
      const [ofStore, ofFiles] = deserialize(then);
      const over = [...store.runs.values()].filter(({ endedAt }) => endedAt !== null);
      store.restore(ofStore);
      files.restore(ofFiles);
      this.wasRestored = true;
      this.promises.restored(over);
      this.late = this.newLate();
      this.late.changed('restored', this.databaseNow());
      this.queue.empty();
      for (const [i, { process }] of this.workers.entries())
        if (!process.dead) this.kill(process, RESTART_MS, () => this.startWorker(i));
      if (!this.api.process.dead) this.kill(this.api.process, RESTART_MS, () => this.startApi());
    };
  }

  private newLate(): Late {
    return new Late(this.store, (what) => this.promises.fail(what));
  }

  /** Another one starts so much later, unless all is healed before. */
  private kill(process: Process, ms: number, start: () => void): void {
    process.dead = true;
    this.time.after(ms, () => {
      if (this.running(process)) start();
    });
  }

  /** Whether no other one has taken its place. */
  private running(process: Process): boolean {
    return [...this.workers, ...this.agents, this.api].some((one) => one.process === process);
  }

  private startApi(): void {
    const process = this.process('api');
    const files = {
      files: this.storeFor(this.apiWire, process, this.files),
      blobs: storeOver<SimulatedBlobs>(this.apiWire, process, this.blobs),
    };
    const store = this.storeFor(this.apiWire, process, this.store);
    this.api = new Api(this.around, process, store, files, `api-${this.names}`);
  }

  private startAgent(i: number): void {
    const { site, machines } = AGENTS[i] as (typeof AGENTS)[number];
    const before = this.agents[i];
    const host = before?.host ?? this.hostOf(i);
    const disks = before?.disks ?? 0;
    const process = this.process(`agent-${i}`, host?.disk);
    process.skewMs = before?.process.skewMs ?? 0;
    const wire = before?.wire ?? this.wireToApi(`agent-${i}-api`, this.faults);
    try {
      const client = Api.agentClient(() => this.api, {
        siteId: site + 1,
        wire,
        caller: process,
        host,
        previous: process.random() < 0.3,
      });
      const runner =
        host === null
          ? new SimulatedRunner({ speed: 1, env: process })
          : new DurableRunner(host, process, client as never);
      const agent = new Agent({
        url: '',
        key: '',
        site: `site-${site}`,
        runner,
        identity: `agent-${i}-${disks}`,
        host: `host-${i}`,
        machines: machines.map((name) => ({ name, measured: null })),
        log: quietLog,
        client,
        ...(runner instanceof DurableRunner && { keeper: runner }),
        env: process,
      });
      this.agents[i] = { process, wire, host, runner, disks };
      agent.start();
    } catch (error) {
      // There is no room for its journal, or it was killed meanwhile.
      if (!process.dead && !isPassing(error)) throw error;
      this.agents[i] = { process, wire, host, runner: null, disks };
      this.kill(process, RESTART_MS, () => this.startAgent(i));
    }
    process.onDeath = () => this.kill(process, RESTART_MS, () => this.startAgent(i));
  }

  /** A machine whose runs outlive the agent. */
  private hostOf(i: number): Host | null {
    const random = new RandomStream(this.seed, `host-${i}`);
    return this.history.disks.includes(i)
      ? new Host(this.time, random, (what) => this.promises.fail(what))
      : null;
  }

  private get faults(): WireFaults {
    return this.healed ? CALM : this.history.wires;
  }

  // What people and faults do ---------------------------------------------------------------------------------------------

  happen({ kind, n, ms }: Deed): void {
    const { store, workers, agents } = this;
    const { disks } = this.history;
    const worker = workers[n % WORKERS] as Worker;
    // What happens to disks happens where there are some.
    const i = DISK_DEEDS.has(kind) ? (disks[n % disks.length] as number) : n % agents.length;
    const agent = agents[i] as SiteAgent;
    const { host } = agent;
    const wakeAll = (): void => void this.api.waker.wake([ROOT, ...store.sites.keys()]);
    if (CHANGES.has(kind)) this.late.changed(kind, this.databaseNow());
    switch (kind) {
      case 'submit':
        this.users.submit(n);
        break;
      case 'submit beyond':
        this.users.submitBeyond(n);
        break;
      case 'submit workflow':
        this.users.submitWorkflow(n);
        break;
      case 'rerun':
        this.users.rerun(n);
        break;
      case 'cancel':
      case 'hold':
      case 'release':
      case 'boost':
      case 'change':
        this.users.act(kind, n);
        break;
      case 'site': {
        store.setSiteState(1 + (n % SITES), (['DRAINING', 'DOWN', 'UP'] as const)[n % 3] as 'UP');
        wakeAll();
        break;
      }
      case 'machine': {
        store.setMachineState(
          1 + (n % store.machines.size),
          (['DOWN', 'DRAINING', 'UP'] as const)[n % 3] as 'UP',
        );
        wakeAll();
        break;
      }
      case 'policy': {
        const dispatch = DISPATCH_KINDS[n % DISPATCH_KINDS.length] as string;
        const local = LOCAL_KINDS[(n >> 3) % LOCAL_KINDS.length] as string;
        store.setPolicy({
          version: ++this.policyVersion,
          document: policyOf(dispatch, local, n, maxAttempts(this.seed)),
        });
        wakeAll();
        break;
      }
      case 'dataset': {
        const siteIds = [...store.sites.keys()].filter((id) => (n >> id) % 2 === 0);
        store.setDataset(1 + (n % DATASETS), n % 5 === 0 ? null : { sizeMb: ms, siteIds });
        break;
      }
      case 'link': {
        const bandwidthMbPerS = [0.001, 10, 1_000][n % 3] as number;
        const link = n % 5 === 0 ? null : { bandwidthMbPerS, rttS: 0.1, loss: n % 2 === 0 ? 0 : 0.9 };
        store.setLink(1 + (n % SITES), 1 + ((n + 1) % SITES), link);
        break;
      }
      case 'kill worker':
        if (!worker.process.dead) this.kill(worker.process, ms, () => this.startWorker(n % WORKERS));
        break;
      case 'kill agent':
        // Where it has a disk, in the middle of one of its next calls.
        if (host !== null && (n >> 2) % 2 > 0) agent.process.callsLeft = (n >> 3) % 13;
        else if (!agent.process.dead) this.kill(agent.process, ms, () => this.startAgent(i));
        break;
      case 'kill api':
        if (!this.api.process.dead) this.kill(this.api.process, ms, () => this.startApi());
        break;
      case 'full disk':
        host?.disk.fill((n >> 7) % 2 > 0);
        // Some programs do not survive that.
        if (n % 2 === 0) agent.process.callsLeft = (n >> 3) % 9;
        this.time.after(ms, () => host?.disk.makeRoom());
        // Seeing that, somebody empties the site.
        if ((n >> 8) % 3 === 0) this.time.after(ms / 2, () => this.users.cancelAt(1 + AGENTS[i]!.site));
        break;
      case 'power cut':
      case 'new disk':
        host?.cutPower();
        if (kind === 'new disk') {
          host?.disk.replace();
          agent.disks++;
        }
        if (!agent.process.dead) this.kill(agent.process, ms, () => this.startAgent(i));
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
      case 'cut peer':
        this.somePeer(n)?.wire.cutFor(ms);
        break;
      case 'isolate': {
        const peer = this.somePeer(n);
        if (peer === null) break;
        store.federation.setPeer(peer.siteId, { isolated: true });
        this.time.after(ms, () => store.federation.setPeer(peer.siteId, { isolated: false }));
        break;
      }
      case 'forwarding': {
        const forward = FORWARDS[(n >> 4) % FORWARDS.length] as MemoryPeer['forward'];
        const peer = this.somePeer(n);
        if (peer !== null) store.federation.setPeer(peer.siteId, { forward, neededAfterS: n % 30 });
        break;
      }
      case 'restore': {
        const restore = this.backUp();
        // Later it would bring back sites and machines that were down, when all are to be up.
        this.time.after(ms, () => this.healed || restore());
        break;
      }
      case 'database clock':
        this.databaseSkewMs += (n % 2 === 0 ? 1 : -1) * ms;
        break;
    }
  }

  private somePeer(n: number): { siteId: number; wire: Wire } | null {
    const all = [...this.peers].map(([siteId, { wire }]) => ({ siteId, wire }));
    return all[(n >> 2) % Math.max(1, all.length)] ?? null;
  }

  /** All faults stop: everything works from now on, though nobody says so to anybody. */
  heal(): void {
    const { store, workers, agents } = this;
    this.healed = true;
    this.late.changed('all faults stop', this.databaseNow());
    this.storeAway = false;
    this.queue.down = false;
    this.queue.faults = { lost: 0, doubled: 0, delayed: 0 };
    for (const wire of [this.apiWire, this.userWire, this.repeatingWire]) wire.mend();
    for (const [i, { process, wire }] of workers.entries()) {
      wire.mend();
      process.wakeUp();
      if (process.dead) this.startWorker(i);
    }
    for (const [i, { process, wire, host }] of agents.entries()) {
      wire.mend();
      host?.disk.makeRoom();
      process.callsLeft = Infinity;
      process.wakeUp();
      if (process.dead) this.startAgent(i);
    }
    this.api.process.wakeUp();
    if (this.api.process.dead) this.startApi();
    for (const { wire } of this.peers.values()) wire.mend();
    for (const { id } of store.sites.values())
      if (this.peers.has(id)) store.federation.setPeer(id, { isolated: false });
      else store.setSiteState(id, 'UP');
    for (const { id } of store.machines.values()) store.setMachineState(id, 'UP');
    const giveUp = (): void => {
      this.users.giveUp();
      this.time.after(30_000, giveUp);
    };
    giveUp();
  }
}

/** What is kept of the standard output of a task, from its beginning. */
function writtenBy(pieces: readonly OutputPiece[], task: number): Buffer {
  const own = pieces
    .filter((piece) => ((piece as RunOutput).task ?? 0) === task && piece.stream === 'STDOUT')
    .sort((a, b) => a.start - b.start);
  let all = Buffer.alloc(0);
  for (const { start, body } of own)
    if (start <= all.length && start + body.length > all.length)
      all = Buffer.concat([all.subarray(0, start), body]);
  return all;
}

const METRICS = createMetrics();

/** Few, so that some jobs need them all. */
const maxAttempts = (seed: number): number => 1 + (seed % 3);

function policyOf(dispatch: string, local: string, seed: number, maxAttempts: number): Policy {
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
    maxAttempts,
    workflows: seed % 2 === 0 ? 'RANK' : 'ARRIVAL',
    ...(seed % 3 === 0 && {
      preemption: { graceS: 5, exemptS: seed % 2 === 0 ? 0 : 10, cancelBelow: seed % 4 === 0 ? 1 : 0 },
    }),
    timers: {
      cycleS: 5,
      agentSilentS: 10,
      lostAfterS: 20,
      onDeadlinePassed: seed % 2 === 0 ? 'CANCEL' : 'RECORD',
    },
  });
  return parsePolicy(
    document(local === DEFAULT_POLICY.local.kind ? DEFAULT_POLICY.local : { kind: local, ...extra[local] }),
  );
}
