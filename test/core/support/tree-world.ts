/**
 * Grid trees on a network that delays, loses, repeats and reorders packets, with owners who submit and leaves that run a job on a
 * machine. It checks after every packet that each request is where it should be.
 */
import { expect } from 'vitest';
import {
  type Address,
  DEFAULT_ROOT_RULES,
  DEFAULT_TREE_RULES,
  type Effects,
  kindKey,
  Leaf,
  Link,
  type MachineKind,
  type Message,
  type MoveReason,
  type Node,
  Owner,
  type Packet,
  type Position,
  type Requirement,
  Root,
  type RootRules,
  Scheduler,
  type TreeRules,
  tasksOn,
  type Wish,
} from '../../../src/core/grid-tree/index.js';
import { RandomStream } from '../../../src/core/index.js';

export interface Network {
  /** Packets take up to this long, seconds; 0: at once, and in order. */
  delayS: number;
  /** Shares of packets. */
  lost: number;
  repeated: number;
}

const RESEND_S = 5;

interface Connection {
  session: number;
  /** By sender. */
  links: Map<Address, Link>;
  sent: Map<Address, number>;
  delivered: Map<Address, number>;
}

interface Event {
  at: number;
  order: number;
  run: () => void;
}

interface Site {
  leaf: Leaf;
  /** Machines, and how many of them run a job, by kind. */
  machines: Map<string, { kind: MachineKind; count: number; busy: number }>;
}

export class TreeWorld {
  now = 0;
  readonly roots = new Map<Address, Root>();
  readonly owners = new Map<Address, Owner>();
  readonly schedulers = new Map<Address, Scheduler>();
  readonly sites = new Map<Address, Site>();
  readonly parents = new Map<Address, Address>();
  /** When somebody got another parent, who does not know yet what it can run. */
  readonly adoptedAt = new Set<number>();
  /** Runs by job of an owner: how often it started, where, and whether it has ended. */
  readonly runs = new Map<string, { starts: number; leaf: Address; startedAt: number; ended: boolean }>();
  readonly moves: {
    job: string;
    from: Address;
    to: Address;
    reason: MoveReason;
    at: number;
    times: number;
    /** From a child; otherwise to one. */
    up: boolean;
    /** Some site at or below `from` has machines for it. */
    runsThere: boolean;
  }[] = [];
  /** Whether each request must be held exactly once: not while what was cut off still thinks it holds some. */
  checksHolders = true;
  private readonly nodes = new Map<Address, Node>();
  private readonly connections = new Map<string, Connection>();
  private readonly events: Event[] = [];
  private readonly draining = new Map<Address, Address>();
  private readonly random: RandomStream;
  private order = 0;
  private sessions = 0;

  constructor(
    public network: Network,
    seed = 1,
    readonly rules: TreeRules = DEFAULT_TREE_RULES,
    private readonly runS: (job: string) => number = () => 10,
  ) {
    this.random = new RandomStream(seed, 'tree-world');
  }

  // Building.

  addRoot(id: Address, rules: Partial<RootRules> = {}): Root {
    const root = new Root(id, this.effects(id), this.rules, { ...DEFAULT_ROOT_RULES, ...rules });
    this.roots.set(id, root);
    this.schedulers.set(id, root);
    this.nodes.set(id, root);
    const owner = `${id}-owner`;
    this.owners.set(id, new Owner(owner, this.effects(owner), id));
    this.nodes.set(owner, this.owners.get(id) as Owner);
    return root;
  }

  addScheduler(id: Address, parent: Address): void {
    const scheduler = new Scheduler(id, this.effects(id), this.rules);
    this.schedulers.set(id, scheduler);
    this.nodes.set(id, scheduler);
    this.adopt(id, parent);
  }

  addSite(id: Address, parent: Address, position: Position | null = null): void {
    const leaf = new Leaf(id, this.effects(id), position);
    this.sites.set(id, { leaf, machines: new Map() });
    this.nodes.set(id, leaf);
    this.adopt(id, parent);
  }

  setMachines(site: Address, kind: MachineKind, count: number): void {
    const { leaf, machines } = this.sites.get(site) as Site;
    const key = kindKey(kind);
    const known = machines.get(key);
    if (known === undefined) machines.set(key, { kind, count, busy: 0 });
    else known.count = count;
    leaf.setMachines(kind, count);
    this.settle(site);
  }

  submit(root: Address, job: string, wish: Wish): void {
    (this.owners.get(root) as Owner).submit(job, wish);
  }

  /** With all that is below; nothing is lost on the way. */
  move(child: Address, to: Address): void {
    const from = this.parents.get(child) as Address;
    if (this.draining.has(child) || this.rootOf(to) !== this.rootOf(child)) return;
    for (let at: Address | undefined = to; at !== undefined; at = this.parents.get(at))
      if (at === child || this.draining.has(at)) return;
    (this.schedulers.get(from) as Scheduler).drain(child);
    this.draining.set(child, to);
    this.settle(from);
  }

  /** As when it was silent for too long; and it comes back elsewhere. */
  tear(child: Address, to: Address): void {
    for (let at: Address | undefined = to; at !== undefined; at = this.parents.get(at))
      if (at === child) return;
    if (this.draining.has(child)) return;
    this.checksHolders = false;
    this.part(child);
    this.adopt(child, to);
  }

  rootOf(id: Address): Address {
    let at = id;
    for (let up = this.parents.get(at); up !== undefined; up = this.parents.get(at)) at = up;
    return at;
  }

  private part(child: Address): void {
    const from = this.parents.get(child) as Address;
    (this.schedulers.get(from) as Scheduler).detach(child);
    this.connections.delete(pair(from, child));
    this.settle(from);
  }

  private adopt(child: Address, parent: Address): void {
    this.parents.set(child, parent);
    this.adoptedAt.add(this.now);
    this.connections.delete(pair(parent, child));
    (this.sites.get(child)?.leaf ?? (this.schedulers.get(child) as Scheduler)).setParent(parent);
    (this.schedulers.get(parent) as Scheduler).attach(child);
    this.settle(parent);
    this.settle(child);
  }

  // Running.

  /** Until nothing is under way and nothing runs, or the time has come. */
  run(untilS = Infinity): void {
    for (;;) {
      this.events.sort((a, b) => a.at - b.at || a.order - b.order);
      const next = this.events[0];
      if (next === undefined || next.at > untilS) break;
      this.events.shift();
      this.now = next.at;
      next.run();
    }
    if (untilS !== Infinity) this.now = untilS;
  }

  private after(delayS: number, run: () => void): void {
    this.events.push({ at: this.now + delayS, order: this.order++, run });
  }

  private settle(id: Address): void {
    const root = this.roots.get(id);
    root?.at(this.now);
    const site = this.sites.get(id);
    if (site !== undefined) this.schedule(id, site);
    this.nodes.get(id)?.settle?.();
    if (root !== undefined && root.nextAt > this.now && root.nextAt !== Infinity) {
      // A root that waits for its peers looks every second; enough for what these tests look at.
      if (root.nextAt < this.now + 100) this.after(root.nextAt - this.now, () => this.settleAt(id));
    }
    for (const [child, to] of this.draining) {
      const from = this.parents.get(child) as Address;
      if ((this.schedulers.get(from) as Scheduler).has(child) > 0) continue;
      this.draining.delete(child);
      this.part(child);
      this.adopt(child, to);
    }
  }

  private readonly alarms = new Map<Address, number>();
  private settleAt(id: Address): void {
    // One alarm does for all that were set for this time.
    if (this.alarms.get(id) === this.now) return;
    this.alarms.set(id, this.now);
    this.settle(id);
  }

  /** The local scheduler: the first of the queue that some free machine can run, and so on. */
  private schedule(id: Address, { leaf, machines }: Site): void {
    for (const entry of [...leaf.queue]) {
      const free = [...machines.values()].find(
        ({ kind, count, busy }) => busy < count && tasksOn(entry.requirement, kind) > 0,
      );
      if (free === undefined) continue;
      free.busy++;
      this.kept.set(`${id} ${entry.id}`, () => {
        free.busy--;
      });
      leaf.claim(entry.key);
    }
    leaf.wants = [...machines.values()].some(({ count, busy }) => busy < count);
  }

  /** What to do when a machine that is kept for a claim is free again. */
  private readonly kept = new Map<string, () => void>();

  private effects(id: Address): Effects {
    return {
      send: (to, message) => this.send(id, to, message),
      moved: (entry, from, to, reason) => {
        const move = { job: jobOf(entry.id), from, to, reason, at: this.now, times: entry.moves };
        const up = to === id;
        this.moves.push({ ...move, up, runsThere: this.runsBelow(from, entry.requirement) });
      },
      started: (request, leaf) => {
        const job = jobOf(request.id);
        const known = this.runs.get(job);
        this.runs.set(job, { starts: (known?.starts ?? 0) + 1, leaf, startedAt: this.now, ended: false });
        this.after(this.runS(job), () => {
          this.free(leaf, request.id);
          (this.runs.get(job) as { ended: boolean }).ended = true;
          (this.nodes.get(request.owner) as Owner).end(job.slice(request.owner.length + 1));
          this.sites.get(leaf)?.leaf.finished(request.id);
          this.settle(leaf);
        });
      },
      refused: (request, leaf) => this.free(leaf, request.id),
    };
  }

  private runsBelow(id: Address, asked: Requirement): boolean {
    const site = this.sites.get(id);
    if (site === undefined)
      return [...this.parents].some(([child, parent]) => parent === id && this.runsBelow(child, asked));
    let tasks = 0;
    for (const { kind, count } of site.machines.values()) tasks += tasksOn(asked, kind) * count;
    return tasks >= asked.tasks;
  }

  private free(leaf: Address, id: string): void {
    this.kept.get(`${leaf} ${id}`)?.();
    this.kept.delete(`${leaf} ${id}`);
  }

  // The network.

  private send(from: Address, to: Address, message: Message): void {
    const connection = this.connection(from, to);
    const link = connection.links.get(from) as Link;
    connection.sent.set(from, (connection.sent.get(from) as number) + 1);
    // A scheduler sends several messages at a time: they travel together.
    if (!link.due) this.after(0, () => this.flush(connection, from, to));
    link.send(structuredClone(message));
  }

  private connection(a: Address, b: Address): Connection {
    const key = pair(a, b);
    let connection = this.connections.get(key);
    if (connection === undefined) {
      const session = ++this.sessions;
      const two = [a, b] as const;
      connection = {
        session,
        links: new Map(two.map((end) => [end, new Link(`${session}`)])),
        sent: new Map(two.map((end) => [end, 0])),
        delivered: new Map(two.map((end) => [end, 0])),
      };
      this.connections.set(key, connection);
    }
    return connection;
  }

  private flush(connection: Connection, from: Address, to: Address): void {
    const link = connection.links.get(from) as Link;
    if (this.connections.get(pair(from, to)) !== connection) return;
    const packet = link.packet();
    const { delayS, lost, repeated } = this.network;
    const copies = this.random.next() < lost ? 0 : this.random.next() < repeated ? 2 : 1;
    for (let i = 0; i < copies; i++)
      this.after(delayS * this.random.next(), () => this.arrive(from, to, packet));
    if (link.pending.length > 0)
      this.after(RESEND_S, () => {
        if (link.pending.length > 0) this.flush(connection, from, to);
      });
  }

  private arrive(from: Address, to: Address, packet: Packet): void {
    const connection = this.connections.get(pair(from, to));
    if (connection === undefined) return;
    const link = connection.links.get(to) as Link;
    const wasDue = link.due;
    const news = link.accept(packet);
    connection.delivered.set(from, (connection.delivered.get(from) as number) + news.length);
    if (link.due && !wasDue) this.after(0, () => this.flush(connection, to, from));
    this.roots.get(to)?.at(this.now);
    for (const message of news) this.nodes.get(to)?.receive(from, message);
    if (news.length > 0) {
      this.settle(to);
      // What was freed by a refusal is taken again.
      this.check();
    }
  }

  // Checking.

  /** Nobody runs twice, and whoever waits is held by exactly one scheduler of each tree that has it. */
  private check(): void {
    for (const [job, { starts }] of this.runs) expect(starts, `starts of ${job}`).toBe(1);
    if (!this.checksHolders) return;
    const holders = new Map<string, string[]>();
    const hold = (tree: Address, key: number, holder: string): void => {
      const name = `${tree} ${key}`;
      holders.set(name, [...(holders.get(name) ?? []), holder]);
    };
    for (const [id, scheduler] of this.schedulers)
      for (const { entry, at } of scheduler.requests()) if (at === id) hold(this.rootOf(id), entry.key, id);
    for (const [id, { leaf }] of this.sites) {
      for (const entry of leaf.queue) hold(this.rootOf(id), entry.key, id);
      for (const { key } of leaf.claims) if (key !== null) hold(this.rootOf(id), key, id);
    }
    for (const [name, { sent, delivered, links }] of this.connections) {
      for (const [from, link] of links) {
        const underWay = (sent.get(from) as number) - (delivered.get(from) as number);
        for (const message of underWay === 0 ? [] : link.pending.slice(-underWay)) {
          if (message.kind === 'BLOCK')
            for (const { key } of message.entries) hold(this.rootOf(from), key, name);
          if (message.kind === 'RETURNED') for (const key of message.keys) hold(this.rootOf(from), key, name);
        }
      }
    }
    for (const [tree, root] of this.roots) {
      for (const { entry } of root.requests()) {
        const job = jobOf(entry.id);
        const owner = this.nodes.get(entry.owner) as Owner;
        const waits = owner.find(job.slice(entry.owner.length + 1))?.leaf === null;
        if (!waits) continue;
        expect(holders.get(`${tree} ${entry.key}`), `holders of ${job}`).toHaveLength(1);
      }
    }
  }

  /** Of all schedulers, their channels; and what they would be if they were made now. */
  channels(): { kept: Record<string, Bags>; fresh: Record<string, Bags> } {
    const kept: Record<string, Bags> = {};
    const fresh: Record<string, Bags> = {};
    const ofLeaf = (id: Address): Bags => {
      const classes = new Map(
        [...(this.roots.get(this.rootOf(id)) as Root).requests()].map(({ entry }) => [
          entry.requirement.key,
          entry.requirement,
        ]),
      );
      const machines = [...(this.sites.get(id) as Site).machines.values()].filter(({ count }) => count > 0);
      const bag = [...classes.values()].filter((asked) =>
        machines.some(({ kind }) => tasksOn(asked, kind) > 0),
      );
      if (bag.length === 0) return [];
      const able = machines.filter(({ kind }) => bag.some((asked) => tasksOn(asked, kind) > 0));
      const power = able.reduce((sum, { kind, count }) => sum + kind.cpus * count, 0);
      return [{ bag: bag.map(({ key }) => key).sort(), power }];
    };
    const ofScheduler = (id: Address): Bags => {
      const found = new Map<string, Bags[number]>();
      for (const [child, parent] of this.parents) {
        if (parent !== id) continue;
        for (const { bag, power } of this.sites.has(child) ? ofLeaf(child) : ofScheduler(child)) {
          const known = found.get(bag.join());
          found.set(bag.join(), { bag, power: power + (known?.power ?? 0) });
        }
      }
      return sorted([...found.values()]);
    };
    for (const [id, { channels }] of this.schedulers) {
      fresh[id] = ofScheduler(id);
      const mine = [...channels.byPort.values()].map(({ bag, power }) => ({ bag: [...bag].sort(), power }));
      kept[id] = sorted(mine);
    }
    for (const [id, { leaf }] of this.sites) {
      fresh[id] = ofLeaf(id);
      kept[id] = leaf.channel === null ? [] : [{ bag: [...leaf.channel.bag], power: leaf.channel.power }];
    }
    return { kept, fresh };
  }
}

type Bags = { bag: string[]; power: number }[];

const sorted = (bags: Bags): Bags => bags.sort((a, b) => (a.bag.join() < b.bag.join() ? -1 : 1));
const pair = (a: Address, b: Address): string => (a < b ? `${a}|${b}` : `${b}|${a}`);
/** Of an attempt's id, without the epoch. */
const jobOf = (id: string): string => id.slice(0, id.lastIndexOf('/'));
