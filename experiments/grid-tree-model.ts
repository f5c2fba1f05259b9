/**
 * The model of grid-tree.md, section 4: 2400 nodes on four backbones, workstations that submit jobs, servers that run one at a
 * time, found by peers that flood requests, by one tree, or by several trees that are peers.
 */
import {
  type Address,
  DEFAULT_ROOT_RULES,
  DEFAULT_TREE_RULES,
  type Effects,
  Leaf,
  type MachineKind,
  type Message,
  type Node,
  Owner,
  type Position,
  type Request,
  type Requirement,
  Root,
  requirement,
  Scheduler,
} from '../src/core/grid-tree/index.js';
import { RandomStream } from '../src/core/index.js';
import { EventQueue } from '../src/simulator/event-queue.js';
import { normal } from '../src/simulator/random.js';

export const SYSTEMS = ['P2P', 'tree', 'hybrid-4T', 'hybrid-16T'] as const;
export type System = (typeof SYSTEMS)[number];

/**
 * What “three times the estimated execution time for that job” is three times of, which peers must meet: the run time on a server with the
 * mean CPUs of Table 1, whichever would run it, or that on the very server that is offered. Trees ask for no deadline.
 */
export const DEADLINES = ['JOB', 'SERVER'] as const;
export type Deadline = (typeof DEADLINES)[number];

export interface Setting {
  system: System;
  jobs: number;
  /** Mean size of the input, megabytes (10^6 bytes). */
  inputMb: number;
  /** How workstations submit: at once after the job before; at rates that each draws; all at this mean, seconds. */
  rate: 'ONE_AFTER_ANOTHER' | 'DRAWN' | number;
  /** Butterfly and load-balance. */
  rescheduling: boolean;
  /** Servers change what they are. */
  changes: boolean;
  deadline: Deadline;
}

export interface Outcome {
  /** Seconds: total response time, means of waiting and of execution time. */
  trtS: number;
  awtS: number;
  aetS: number;
  /** Share of jobs that ran at the site, the net, the backbone they came from, or farther. */
  near: readonly [number, number, number, number];
}

const BACKBONES = 4;
const NETS = 4;
const SITES_OF_NET = 10;
const NODES = 15;
const SITES = BACKBONES * NETS * SITES_OF_NET;
const SERVERS = 520;
const SERVERS_MIN = 2;
const SERVERS_MAX = 6;
/** Table 1: nodes × CPUs. */
const SERVER_CPUS = [184 * 16, 305 * 4, 144 * 8, 1024 * 4, 64 * 2, 512 * 4, 128 * 2] as const;
/** Of the server on which a job's run time is estimated: the mean of Table 1. */
const MEAN_CPUS = SERVER_CPUS.reduce((sum, cpus) => sum + cpus, 0) / SERVER_CPUS.length;
const SYSTEMS_OF_SERVERS = ['LINUX', 'UNIX', 'WINDOWS'] as const;
const REQUIREMENTS: Readonly<Record<string, Requirement>> = Object.fromEntries(
  SYSTEMS_OF_SERVERS.map((os) => [os, requirement({ os: [os] })]),
);

/** 10 % of the network and of the servers are taken by others. */
const FREE = 0.9;
const KM_PER_S = 200_000;
const BACKBONE_KM = 1000;
const CABLE_KM = 50;
const WINDOW_MB = 64e-3;
const CABLE_MB_PER_S = 155 / 8;
const SITE_MB_PER_S = 100;
/** Between nodes of a site, and what each message costs who handles it. */
const SITE_S = 50e-6;
const HANDLING_S = 500e-6;

/** Input in megabytes for each CPU-second. */
const INPUT_MB_PER_CPU_S = 0.1;
const OUTPUT_FACTOR = 5;
/** Sizes are drawn in this unit, so that those around 1 GB differ. */
const SIZE_UNIT_MB = 100;
const WALL_DEVIATION = 0.1;

const DEADLINE_FACTOR = 3;
const RESUBMIT_S = 120;
const OFFER_S = 0.1;
const HOPS = 1000;
/** The classes are the operating systems: they are always known, as in the paper, where all are. */
const CLASS_KEPT_S = 3600;

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;
const DRAWN_RATES = [10 * MINUTE, 30 * MINUTE, HOUR, 5 * HOUR, DAY, 7 * DAY] as const;
const CHANGE_RATES = [DAY, 3 * DAY, 7 * DAY, 30 * DAY, 90 * DAY, 180 * DAY] as const;

const backboneOf = (site: number): number => Math.floor(site / (NETS * SITES_OF_NET));
const netOf = (site: number): number => Math.floor(site / SITES_OF_NET);

/** How far apart: 0 one site, 1 one net, 2 one backbone, 3 farther. */
function distance(a: number, b: number): 0 | 1 | 2 | 3 {
  if (a === b) return 0;
  if (netOf(a) === netOf(b)) return 1;
  return backboneOf(a) === backboneOf(b) ? 2 : 3;
}

const CABLES_KM = [0, 2 * CABLE_KM, 4 * CABLE_KM, 4 * CABLE_KM + BACKBONE_KM] as const;
const LATENCY_S = CABLES_KM.map((km) => SITE_S + km / KM_PER_S);
/** Megabytes a second: what the slowest cable leaves, and what a window for each round trip allows. */
const THROUGHPUT = LATENCY_S.map((latencyS, far) =>
  Math.min((far === 0 ? SITE_MB_PER_S : CABLE_MB_PER_S) * FREE, WINDOW_MB / (2 * latencyS)),
);

/** Degrees, such that distances on the globe are in the order of those on the cables. */
function positionOf(site: number): Position {
  const net = netOf(site) % NETS;
  const turn = (2 * Math.PI * (site % SITES_OF_NET)) / SITES_OF_NET;
  const center = {
    latitude: net < 2 ? 0.5 : -0.5,
    longitude: backboneOf(site) * 9 + (net % 2 === 0 ? 0.5 : -0.5),
  };
  return {
    latitude: center.latitude + 0.1 * Math.sin(turn),
    longitude: center.longitude + 0.1 * Math.cos(turn),
  };
}

interface Server {
  site: number;
  os: string;
  cpus: number;
  /** It runs a job, or is kept for one. */
  busy: boolean;
  /** When it is free of what it was given. */
  freeAt: number;
  /** What it is to be when it is free; null: nothing else. */
  next: { os: string; cpus: number } | null;
}

interface SimulatedJob {
  site: number;
  os: string;
  inputMb: number;
  /** Deviation of its wall time from what is estimated, as a factor. */
  factor: number;
  requestedAt: number;
  done: () => void;
}

const estimateS = ({ inputMb }: { inputMb: number }, cpus: number): number =>
  inputMb / (INPUT_MB_PER_CPU_S * cpus) / FREE;

/** How long a server may be taken by others before a job of this size, if it is to meet its deadline; negative: it cannot at all. */
const slackS = (job: { inputMb: number }, cpus: number, deadline: Deadline): number =>
  DEADLINE_FACTOR * estimateS(job, deadline === 'JOB' ? MEAN_CPUS : cpus) - estimateS(job, cpus);

class Model {
  now = 0;
  readonly servers: Server[] = [];
  readonly serversAt: Server[][] = Array.from({ length: SITES }, () => []);
  private readonly events = new EventQueue();
  private readonly actions: (() => void)[] = [];
  private readonly unused: number[] = [];
  private started = 0;
  private ended = 0;
  private waitedS = 0;
  private executedS = 0;
  private lastEnd = 0;
  private readonly near = [0, 0, 0, 0];
  private readonly finder: Finder;

  constructor(
    private readonly setting: Setting,
    seed: number,
    run: number,
    rawWaitS: number,
  ) {
    const draw = (name: string): RandomStream => new RandomStream(seed, `grid-tree-${run}-${name}`);
    this.placeServers(draw('servers'));
    this.finder = setting.system === 'P2P' ? new Peers(this, setting) : new Trees(this, setting, rawWaitS);
    if (setting.changes) this.changeServers(draw('changes'));
    this.submitJobs(draw('submissions'), draw('jobs'));
  }

  after(delayS: number, action: () => void): void {
    const slot = this.unused.pop() ?? this.actions.length;
    this.actions[slot] = action;
    this.events.push(this.now + delayS, 0, slot);
  }

  run(): Outcome {
    const { jobs } = this.setting;
    while (this.ended < jobs && this.events.pop()) {
      this.now = this.events.time;
      const slot = this.events.payload;
      const action = this.actions[slot] as () => void;
      this.unused.push(slot);
      action();
    }
    if (this.ended < jobs) throw new Error(`${jobs - this.ended} of ${jobs} jobs never ended`);
    const near = this.near.map((count) => count / jobs) as [number, number, number, number];
    return { trtS: this.lastEnd, awtS: this.waitedS / jobs, aetS: this.executedS / jobs, near };
  }

  /** Resources are allocated: the input travels to the server, it computes, and the output travels back. */
  execute(job: SimulatedJob, server: Server, freed: () => void): void {
    const far = distance(job.site, server.site);
    const rate = THROUGHPUT[far] as number;
    const inputS = job.inputMb / rate;
    const runS = estimateS(job, server.cpus) * job.factor;
    const outputS = (OUTPUT_FACTOR * job.inputMb) / rate;
    const startsAt = Math.max(this.now + inputS, server.freeAt);
    this.waitedS += this.now - job.requestedAt;
    (this.near[far] as number)++;
    server.freeAt = startsAt + runS + outputS;
    const endS = server.freeAt - this.now;
    this.executedS += endS;
    this.after(endS, () => {
      this.ended++;
      this.lastEnd = this.now;
      freed();
      job.done();
    });
  }

  private placeServers(random: RandomStream): void {
    const counts = new Array<number>(SITES).fill(SERVERS_MIN);
    for (let left = SERVERS - SITES * SERVERS_MIN; left > 0; ) {
      const site = random.integer(0, SITES - 1);
      if ((counts[site] as number) === SERVERS_MAX) continue;
      (counts[site] as number)++;
      left--;
    }
    counts.forEach((count, site) => {
      for (let i = 0; i < count; i++) {
        const server = { site, ...anyKind(random), busy: false, freeAt: 0, next: null };
        this.servers.push(server);
        (this.serversAt[site] as Server[]).push(server);
      }
    });
  }

  private changeServers(random: RandomStream): void {
    for (const server of this.servers) {
      const change = (): void => {
        const rate = CHANGE_RATES[random.integer(0, CHANGE_RATES.length - 1)] as number;
        this.after(random.exponential(rate), () => {
          server.next = anyKind(random);
          this.renew(server);
          change();
        });
      };
      change();
    }
  }

  /** Its kind changes when it runs nothing. */
  renew(server: Server): void {
    if (server.next === null || server.busy || server.freeAt > this.now) return;
    Object.assign(server, server.next, { next: null });
    this.finder.changed(server.site);
  }

  private submitJobs(random: RandomStream, draws: RandomStream): void {
    const { rate, jobs, inputMb } = this.setting;
    const submit = (site: number, done: () => void): void => {
      if (this.started === jobs) return;
      this.started++;
      const job: SimulatedJob = {
        site,
        os: SYSTEMS_OF_SERVERS[draws.integer(0, 2)] as string,
        inputMb: Math.max(1, poisson(draws, inputMb / SIZE_UNIT_MB)) * SIZE_UNIT_MB,
        factor: Math.max(0.1, 1 + WALL_DEVIATION * normal(draws)),
        requestedAt: this.now,
        done,
      };
      this.finder.request(job);
    };
    for (let site = 0; site < SITES; site++) {
      const weight = rate === 'DRAWN' ? random.next() : 1;
      for (let i = (this.serversAt[site] as Server[]).length; i < NODES; i++) {
        const meanS =
          rate === 'ONE_AFTER_ANOTHER'
            ? 0
            : rate === 'DRAWN'
              ? (DRAWN_RATES[random.integer(0, DRAWN_RATES.length - 1)] as number) / Math.max(weight, 0.01)
              : rate;
        const next = (): void => this.after(random.exponential(meanS), () => submit(site, next));
        // The first ones of those that wait for nothing: within a second.
        if (meanS > 0) next();
        else this.after(random.next(), () => submit(site, next));
      }
    }
  }
}

const anyKind = (random: RandomStream): { os: string; cpus: number } => ({
  os: SYSTEMS_OF_SERVERS[random.integer(0, 2)] as string,
  cpus: SERVER_CPUS[random.integer(0, SERVER_CPUS.length - 1)] as number,
});

/** Poisson: by counting exponential times where the mean is small, else as the normal distribution that it is close to. */
function poisson(random: RandomStream, mean: number): number {
  if (mean > 50) return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal(random)));
  let count = -1;
  for (let sum = 0; sum < mean; count++) sum += random.exponential(1);
  return count;
}

/** What finds a server for a job. */
interface Finder {
  request(job: SimulatedJob): void;
  /** A server of the site is something else now. */
  changed(site: number): void;
}

/**
 * Peers, one for each site. A request floods from peer to neighbor and stops at peers that offer a server. It gets everywhere
 * within milliseconds, so who offers is decided when it is submitted, on the servers as they are.
 */
class Peers implements Finder {
  /** For each site the peers in the order in which a request gets there, and the one that it comes from. */
  private readonly floods: { site: number; from: number; delayS: number }[][];
  /** By operating system, then by CPUs; null: not known since a server changed. */
  private kinds: Map<string, Map<number, Server[]>> | null = null;

  constructor(
    private readonly model: Model,
    private readonly setting: Setting,
  ) {
    const neighbors = peerNeighbors();
    this.floods = neighbors.map((_, site) => flood(site, neighbors));
  }

  changed(): void {
    this.kinds = null;
  }

  request(job: SimulatedJob): void {
    const { model } = this;
    const inVainS = this.offeredAt(job) - model.now;
    const offers = inVainS > 0 ? [] : this.offers(job);
    const [first] = offers;
    if (first === undefined) {
      // Attempts that are in vain are left out: what takes a server only puts off when it is free.
      const fullS = this.setting.changes ? 0 : inVainS;
      model.after(Math.max(1, Math.ceil(fullS / RESUBMIT_S)) * RESUBMIT_S, () => this.request(job));
      return;
    }
    for (const { server } of offers) server.busy = true;
    // The workstation takes the first; the others wait for its answer in vain.
    for (const { server, delayS } of offers.slice(1)) {
      model.after(delayS + OFFER_S, () => {
        server.busy = false;
        model.renew(server);
      });
    }
    const { server, delayS } = first;
    model.after(delayS, () => {
      server.busy = false;
      model.execute(job, server, () => model.renew(server));
    });
  }

  private offers(job: SimulatedJob): { server: Server; delayS: number }[] {
    const found: { server: Server; delayS: number }[] = [];
    const passedOn = new Set<number>();
    for (const { site, from, delayS } of this.floods[job.site] as (typeof this.floods)[number]) {
      if (site !== job.site && !passedOn.has(from)) continue;
      const server = this.able(job, site);
      if (server === null) passedOn.add(site);
      else found.push({ server, delayS: delayS + (LATENCY_S[distance(site, job.site)] as number) });
    }
    return found;
  }

  /** Of the peer's servers that meet the deadline, the one that is free first. */
  private able(job: SimulatedJob, site: number): Server | null {
    let best: Server | null = null;
    for (const server of this.model.serversAt[site] as Server[]) {
      if (server.os !== job.os || server.busy) continue;
      if (Math.max(0, server.freeAt - this.model.now) > slackS(job, server.cpus, this.setting.deadline))
        continue;
      if (best === null || server.freeAt < best.freeAt) best = server;
    }
    return best;
  }

  /** Before, no server can meet the job's deadline. */
  private offeredAt(job: SimulatedJob): number {
    this.kinds ??= kindsOf(this.model.servers);
    let first = Infinity;
    for (const [cpus, servers] of this.kinds.get(job.os) ?? []) {
      const slack = slackS(job, cpus, this.setting.deadline);
      if (slack < 0) continue;
      for (const { freeAt } of servers) if (freeAt - slack < first) first = freeAt - slack;
    }
    return first;
  }
}

function kindsOf(servers: readonly Server[]): Map<string, Map<number, Server[]>> {
  const kinds = new Map(SYSTEMS_OF_SERVERS.map((os) => [os as string, new Map<number, Server[]>()]));
  for (const server of servers) {
    const ofSystem = kinds.get(server.os) as Map<number, Server[]>;
    const ofKind = ofSystem.get(server.cpus);
    if (ofKind === undefined) ofSystem.set(server.cpus, [server]);
    else ofKind.push(server);
  }
  return kinds;
}

/** The sites of a net in a ring, the first ones of a backbone's nets too, and the first ones of the backbones. */
function peerNeighbors(): number[][] {
  const neighbors = Array.from({ length: SITES }, () => new Set<number>());
  const ring = (sites: readonly number[]): void =>
    sites.forEach((site, i) => {
      const next = sites[(i + 1) % sites.length] as number;
      neighbors[site]?.add(next);
      neighbors[next]?.add(site);
    });
  const range = (from: number, step: number, count: number): number[] =>
    Array.from({ length: count }, (_, i) => from + i * step);
  for (const first of range(0, SITES_OF_NET, BACKBONES * NETS)) ring(range(first, 1, SITES_OF_NET));
  const ofBackbone = NETS * SITES_OF_NET;
  for (const first of range(0, ofBackbone, BACKBONES)) ring(range(first, SITES_OF_NET, NETS));
  ring(range(0, ofBackbone, BACKBONES));
  return neighbors.map((set) => [...set]);
}

/** When a request that nobody accepts gets where: the shortest way to each peer within the hops. */
function flood(
  from: number,
  neighbors: readonly (readonly number[])[],
): { site: number; from: number; delayS: number }[] {
  const reached: { site: number; from: number; delayS: number }[] = [];
  const open = [{ site: from, from, delayS: HANDLING_S, hops: HOPS }];
  const seen = new Set<number>();
  while (open.length > 0) {
    open.sort((a, b) => a.delayS - b.delayS);
    const { hops, ...next } = open.shift() as (typeof open)[number];
    if (seen.has(next.site)) continue;
    seen.add(next.site);
    reached.push(next);
    if (hops <= 1) continue;
    for (const site of neighbors[next.site] as readonly number[]) {
      const delayS = next.delayS + (LATENCY_S[distance(next.site, site)] as number) + HANDLING_S;
      open.push({ site, from: next.site, delayS, hops: hops - 1 });
    }
  }
  return reached;
}

/** One tree or several that are peers: the very schedulers of the core, on the model's network. */
class Trees implements Finder {
  private readonly nodes = new Map<Address, Node>();
  private readonly sites = new Map<Address, number>();
  private readonly leaves: Leaf[] = [];
  private readonly roots = new Map<Address, Root>();
  private readonly owners: Owner[] = [];
  private readonly jobs = new Map<string, SimulatedJob>();
  private readonly kept = new Map<string, Server>();
  private readonly kinds: Map<string, MachineKind>[] = [];
  private readonly alarms = new Map<Address, number>();
  /** Of each name of a group one string: equal strings that are not the same are slow to compare, and selection looks them up all the time. */
  private readonly groups = new Map<string, string>();
  private submitted = 0;

  constructor(
    private readonly model: Model,
    { system, rescheduling }: Setting,
    rawWaitS: number,
  ) {
    const rules = { ...DEFAULT_TREE_RULES, butterfly: rescheduling, loadBalance: rescheduling };
    const rootRules = {
      ...DEFAULT_ROOT_RULES,
      rawWaitS,
      classKeptS: CLASS_KEPT_S,
      forward: 'ALWAYS',
      hops: HOPS,
    } as const;
    const top = { tree: 0, 'hybrid-4T': 1, 'hybrid-16T': 2, P2P: 0 }[system];
    /** The levels from the top: name, where in the tree its sites begin, how many sites each has. */
    const sizes = [SITES, SITES / BACKBONES, SITES_OF_NET, SITES_OF_NET / 2];
    const nameOf = (level: number, site: number): Address =>
      `${level}-${Math.floor(site / (sizes[level] as number))}`;
    for (let level = top; level < sizes.length; level++) {
      for (let site = 0; site < SITES; site += sizes[level] as number) {
        const id = nameOf(level, site);
        if (level === top) {
          const root = new Root(id, this.effects(id), rules, rootRules);
          this.roots.set(id, root);
          this.add(id, root, site);
        } else {
          const scheduler = new Scheduler(id, this.effects(id), rules);
          this.add(id, scheduler, site);
          this.adopt(scheduler, nameOf(level - 1, site));
        }
      }
    }
    for (let site = 0; site < SITES; site++) {
      const leaf = new Leaf(`site-${site}`, this.effects(`site-${site}`), positionOf(site));
      this.leaves.push(leaf);
      this.kinds.push(new Map());
      this.add(leaf.id, leaf, site);
      this.adopt(leaf, nameOf(sizes.length - 1, site));
      // The workstations of a site are one owner, for they differ in nothing.
      const owner = new Owner(`owner-${site}`, this.effects(`owner-${site}`), nameOf(top, site));
      this.owners.push(owner);
      this.add(owner.id, owner, site);
      this.changed(site);
    }
    for (const [id, root] of this.roots) {
      for (const other of this.roots.keys()) if (this.areNeighbors(id, other)) root.neighbors.add(other);
    }
    for (const id of this.nodes.keys()) this.settle(id);
  }

  request(job: SimulatedJob): void {
    const name = `${this.submitted++}`;
    this.jobs.set(name, job);
    (this.owners[job.site] as Owner).submit(name, {
      requirement: REQUIREMENTS[job.os] as Requirement,
      origin: positionOf(job.site),
    });
  }

  changed(site: number): void {
    const counts = new Map<string, { kind: MachineKind; count: number }>();
    for (const { os, cpus } of this.model.serversAt[site] as Server[]) {
      const kind = { os, architecture: '', licenses: [], cpus, memoryMb: 0 };
      const known = counts.get(`${os} ${cpus}`);
      if (known === undefined) counts.set(`${os} ${cpus}`, { kind, count: 1 });
      else known.count++;
    }
    const leaf = this.leaves[site] as Leaf;
    const kinds = this.kinds[site] as Map<string, MachineKind>;
    for (const [key, kind] of kinds) if (!counts.has(key)) leaf.setMachines(kind, 0);
    kinds.clear();
    for (const [key, { kind, count }] of counts) {
      leaf.setMachines(kind, count);
      kinds.set(key, kind);
    }
    this.settle(leaf.id);
  }

  /** Within a backbone all, and of each backbone the first. */
  private areNeighbors(a: Address, b: Address): boolean {
    if (a === b) return false;
    const [one, other] = [this.sites.get(a) as number, this.sites.get(b) as number];
    const isFirst = (site: number): boolean => site % (SITES / BACKBONES) === 0;
    return backboneOf(one) === backboneOf(other) || (isFirst(one) && isFirst(other));
  }

  private add(id: Address, node: Node, site: number): void {
    this.nodes.set(id, node);
    this.sites.set(id, site);
  }

  private adopt(child: Leaf | Scheduler, parent: Address): void {
    child.setParent(parent);
    (this.nodes.get(parent) as Scheduler).attach(child.id);
  }

  private effects(id: Address): Effects {
    return {
      send: (to, message) => this.send(id, to, message),
      started: ({ id: attempt }, leaf) => this.start(attempt, leaf),
      refused: ({ id: attempt }, leaf) => {
        const server = this.keptAt(leaf, attempt);
        server.busy = false;
        this.model.renew(server);
      },
    };
  }

  private send(from: Address, to: Address, sent: Message): void {
    const message = sent.kind === 'SUBMIT' ? { ...sent, request: this.withOneGroup(sent.request) } : sent;
    const far = distance(this.sites.get(from) as number, this.sites.get(to) as number);
    this.model.after((LATENCY_S[far] as number) + HANDLING_S, () => {
      this.roots.get(to)?.at(this.model.now);
      this.nodes.get(to)?.receive(from, message);
      this.settle(to);
    });
  }

  private withOneGroup(request: Request): Request {
    const known = this.groups.get(request.group);
    if (known !== undefined) return { ...request, group: known };
    this.groups.set(request.group, request.group);
    return request;
  }

  private settle(id: Address): void {
    const root = this.roots.get(id);
    root?.at(this.model.now);
    const node = this.nodes.get(id);
    if (node instanceof Leaf) this.claim(node);
    node?.settle?.();
    if (root === undefined) return;
    const { nextAt } = root;
    if (nextAt === Infinity || (this.alarms.get(id) ?? Infinity) <= nextAt) return;
    this.alarms.set(id, nextAt);
    this.model.after(nextAt - this.model.now, () => {
      if (this.alarms.get(id) === nextAt) this.alarms.delete(id);
      this.settle(id);
    });
  }

  /** The local scheduler: each free server is kept for the first request that it can run, and its owner asked. */
  private claim(leaf: Leaf): void {
    const free = (this.model.serversAt[this.sites.get(leaf.id) as number] as Server[]).filter(
      ({ busy }) => !busy,
    );
    if (free.length > 0) {
      free.sort((a, b) => b.cpus - a.cpus);
      for (const entry of [...leaf.queue]) {
        const i = free.findIndex(({ os }) => os === entry.requirement.os[0]);
        if (i < 0) continue;
        const [server] = free.splice(i, 1) as [Server];
        server.busy = true;
        this.kept.set(`${leaf.id} ${entry.id}`, server);
        leaf.claim(entry.key);
        if (free.length === 0) break;
      }
    }
    leaf.wants = free.length > 0;
  }

  private keptAt(leaf: Address, attempt: string): Server {
    const key = `${leaf} ${attempt}`;
    const server = this.kept.get(key) as Server;
    this.kept.delete(key);
    return server;
  }

  private start(attempt: string, leaf: Address): void {
    const server = this.keptAt(leaf, attempt);
    const [owner, name] = attempt.split('/') as [Address, string];
    const job = this.jobs.get(name) as SimulatedJob;
    this.jobs.delete(name);
    this.model.execute(job, server, () => {
      (this.nodes.get(owner) as Owner).end(name);
      (this.nodes.get(leaf) as Leaf).finished(attempt);
      server.busy = false;
      this.model.renew(server);
      this.settle(leaf);
    });
  }
}

/** One run of a setting. */
/** `rawWaitS`: so long roots wait for an RFJM before they tell of new classes unasked. */
export const simulateModel = (
  setting: Setting,
  seed: number,
  run: number,
  rawWaitS = DEFAULT_ROOT_RULES.rawWaitS,
): Outcome => new Model(setting, seed, run, rawWaitS).run();
