/**
 * The scheduler of a site (grid-tree.md): it knows machines, matches requests with them, and holds requests until the local
 * scheduler starts them. A state machine like `Scheduler`.
 */
import { bagKey } from './channels.js';
import { kindKey, type MachineKind, tasksOn } from './machines.js';
import {
  type Address,
  type Effects,
  type Entry,
  inOrder,
  type LeafView,
  type Message,
  type Position,
  type Preference,
  type Requirement,
} from './messages.js';

/** A leaf's only channel. */
export const LEAF_PORT = 1;

interface Kind {
  kind: MachineKind;
  count: number;
  /** Live classes that the leaf can run and these machines have room for. */
  uses: number;
}

interface Class {
  requirement: Requirement;
  /** Kinds with room for a task; null: all the leaf's machines together have too little room for a job. */
  able: Kind[] | null;
}

export class Leaf {
  parent: Address | null = null;
  private readonly kinds = new Map<string, Kind>();
  private readonly classes = new Map<string, Class>();
  private readonly preferences = new Map<string, Preference>();
  private readonly held = new Map<number, Entry>();
  /** By id: requests that it has asked for; null: of a former parent, to which there is nothing to say. */
  private readonly claimed = new Map<string, { request: Entry; key: number | null }>();
  /** Ids of requests that it was granted, until their owners know of their end. */
  private readonly running = new Set<string>();
  private sorted: Entry[] | null = null;
  private wantsWork = false;
  private asked = false;
  private matchingAsked = false;
  private changed = false;
  /** It may hold what it cannot run. */
  private unmatched = false;
  private told: { bag: readonly string[]; power: number; view: string } | null = null;
  private returned: number[] = [];
  private gone: number[] = [];

  constructor(
    readonly id: Address,
    private readonly effects: Effects,
    private readonly position: Position | null = null,
  ) {}

  // What administrators do.

  /** It has another parent, or none: all requests from the former one are forgotten, but for claims. */
  setParent(parent: Address | null): void {
    this.parent = parent;
    this.told = null;
    this.forget();
  }

  /** It has `count` machines of the kind now. */
  setMachines(kind: MachineKind, count: number): void {
    const key = kindKey(kind);
    const known = this.kinds.get(key);
    if ((known?.count ?? 0) === count) return;
    if (count === 0) this.kinds.delete(key);
    else if (known === undefined) this.kinds.set(key, { kind, count, uses: 0 });
    else known.count = count;
    for (const one of this.kinds.values()) one.uses = 0;
    for (const one of this.classes.values()) one.able = this.match(one.requirement);
    this.changed = true;
  }

  // What the local scheduler does.

  /** Whether there are free CPUs and nothing in the queue that fits them now. */
  set wants(wants: boolean) {
    this.wantsWork = wants;
  }

  /** Requests that wait here, in order of service. */
  get queue(): readonly Entry[] {
    this.sorted ??= [...this.held.values()].sort(inOrder);
    return this.sorted;
  }

  /** Its bag and the CPUs of machines that can run something in it; null: it matches nothing. */
  get channel(): { readonly bag: readonly string[]; readonly power: number } | null {
    return this.told;
  }

  /** A request that it holds, as is known of a time before it was made. */
  restore(entry: Entry): void {
    this.held.set(entry.key, entry);
    this.sorted = null;
    this.unmatched = true;
  }

  /** The opposite: it never was here. */
  unrestore(key: number): void {
    this.drop(key);
  }

  /** All that it asked for and was given is of the past, but for the requests that it holds. Nothing may be under way. */
  beginAnew(): void {
    this.wantsWork = false;
    this.asked = false;
    this.claimed.clear();
    this.running.clear();
  }

  /** Requests that it has asked their owners for. */
  get claims(): Iterable<{ request: Entry; key: number | null }> {
    return this.claimed.values();
  }

  /** There are resources for a request of the queue: its owner is asked, and when it agrees `Effects.started` is called. */
  claim(key: number): void {
    const request = this.held.get(key);
    if (request === undefined) throw new Error(`${this.id} does not hold request ${key}`);
    this.drop(key);
    this.claimed.set(request.id, { request, key });
    this.effects.send(request.owner, { kind: 'CLAIM', id: request.id });
  }

  /** The owner does not answer: the request waits again. A grant that comes all the same is declined. */
  abandon(id: string): void {
    const claim = this.claimed.get(id);
    this.claimed.delete(id);
    if (claim === undefined || claim.key === null) return;
    if (this.runs(claim.request.requirement.key)) this.take(claim.request);
    else this.returned.push(claim.key);
  }

  /**
   * The request that it was granted has ended, and its owner knows: no claim of it would be granted any more. Before, the request may come
   * here once more, from a parent that had lost sight of this leaf, and must not start again.
   */
  finished(id: string): void {
    this.running.delete(id);
  }

  // The protocol.

  receive(from: Address, message: Message): void {
    if (message.kind === 'GRANTED' || message.kind === 'REFUSED') {
      const claim = this.claimed.get(message.id);
      this.claimed.delete(message.id);
      if (claim !== undefined && claim.key !== null) this.gone.push(claim.key);
      if (message.kind === 'REFUSED') {
        if (claim !== undefined) this.effects.refused?.(claim.request, this.id);
      } else if (claim === undefined) this.effects.send(from, { kind: 'DECLINED', id: message.id });
      else {
        this.running.add(message.id);
        this.effects.started?.(claim.request, this.id);
      }
    } else if (from === this.parent) this.fromParent(message);
  }

  /** After one or more messages or changes: tells the parent of the bag, returns what it cannot run, asks for work. */
  settle(): void {
    if (this.parent === null) return;
    if (this.changed) this.announce(this.parent);
    if (this.changed || this.unmatched) this.fallBack();
    this.changed = false;
    this.unmatched = false;
    if (this.returned.length > 0) this.effects.send(this.parent, { kind: 'RETURNED', keys: this.returned });
    if (this.gone.length > 0) this.effects.send(this.parent, { kind: 'GONE', keys: this.gone });
    this.returned = [];
    this.gone = [];
    if (this.told === null) {
      if (!this.matchingAsked && this.kinds.size > 0) {
        this.matchingAsked = true;
        this.effects.send(this.parent, { kind: 'RFJM' });
      }
    } else if (this.wantsWork && !this.asked) {
      this.asked = true;
      this.effects.send(this.parent, { kind: 'RFC', port: LEAF_PORT });
    }
  }

  private fromParent(message: Message): void {
    switch (message.kind) {
      case 'DISCOVER':
        this.discover(message);
        break;
      case 'BLOCK':
        if (message.answer) this.asked = false;
        for (const entry of message.entries) {
          if (!this.runs(entry.requirement.key)) this.returned.push(entry.key);
          else this.take(entry);
        }
        break;
      case 'TAKE_BACK':
        for (const { key } of message.wanted) if (this.drop(key)) this.returned.push(key);
        break;
      case 'WITHDRAW':
        for (const key of message.keys) this.drop(key);
        break;
      case 'RESET':
        this.forget();
        this.effects.send(this.parent as Address, { kind: 'RESET_DONE' });
        break;
      default:
    }
  }

  private discover({ requirements, preferences, gone }: Message & { kind: 'DISCOVER' }): void {
    for (const key of gone) {
      for (const one of this.classes.get(key)?.able ?? []) one.uses--;
      this.classes.delete(key);
      this.preferences.delete(key);
    }
    for (const requirement of requirements) {
      if (!this.classes.has(requirement.key))
        this.classes.set(requirement.key, { requirement, able: this.match(requirement) });
    }
    for (const one of preferences) this.preferences.set(one.key, one);
    if (requirements.length > 0) this.matchingAsked = false;
    this.changed = true;
  }

  private match(requirement: Requirement): Kind[] | null {
    const able: Kind[] = [];
    let room = 0;
    for (const one of this.kinds.values()) {
      const tasks = tasksOn(requirement, one.kind);
      if (tasks === 0) continue;
      able.push(one);
      room += tasks * one.count;
    }
    if (room < requirement.tasks) return null;
    for (const one of able) one.uses++;
    return able;
  }

  private runs(requirementKey: string): boolean {
    return (this.classes.get(requirementKey)?.able ?? null) !== null;
  }

  /** Tells the bag where it is another one, or the power alone. */
  private announce(parent: Address): void {
    const bag: string[] = [];
    for (const [key, { able }] of this.classes) if (able !== null) bag.push(key);
    if (bag.length === 0) {
      if (this.told !== null) this.effects.send(parent, { kind: 'CHANNEL_GONE', port: LEAF_PORT });
      this.told = null;
      this.asked = false;
      return;
    }
    let power = 0;
    for (const { kind, count, uses } of this.kinds.values())
      if (uses > 0) power += kind.cpus * (kind.cpuPower ?? 1) * count;
    bag.sort();
    const leaves = [this.view()];
    const { told } = this;
    const sameBag = told !== null && bagKey(told.bag) === bagKey(bag);
    const view = JSON.stringify(leaves);
    if (sameBag && told.power === power && told.view === view) return;
    this.told = { bag, power, view };
    this.effects.send(parent, { kind: 'CHANNEL', port: LEAF_PORT, bag: sameBag ? null : bag, power, leaves });
  }

  private view(): LeafView {
    const holds: string[] = [];
    for (const { key, leaf, requirement } of this.preferences.values()) {
      const here = leaf === null || leaf === this.id;
      if (here && (requirement === null || this.wouldRun(requirement))) holds.push(key);
    }
    return { leaf: this.id, position: this.position, holds: holds.sort() };
  }

  private wouldRun(requirement: Requirement): boolean {
    let room = 0;
    for (const { kind, count } of this.kinds.values()) room += tasksOn(requirement, kind) * count;
    return room >= requirement.tasks;
  }

  /** What the machines can run no more goes back. */
  private fallBack(): void {
    for (const { key, requirement } of this.queue) {
      if (this.runs(requirement.key)) continue;
      this.drop(key);
      this.returned.push(key);
    }
  }

  private take(entry: Entry): void {
    const claim = this.claimed.get(entry.id);
    if (this.running.has(entry.id)) this.gone.push(entry.key);
    else if (claim !== undefined) this.claimed.set(entry.id, { ...claim, key: entry.key });
    else this.held.set(entry.key, entry);
    this.sorted = null;
  }

  private drop(key: number): boolean {
    this.sorted = null;
    return this.held.delete(key);
  }

  private forget(): void {
    this.held.clear();
    this.sorted = null;
    this.classes.clear();
    this.preferences.clear();
    for (const one of this.kinds.values()) one.uses = 0;
    for (const claim of this.claimed.values()) claim.key = null;
    this.asked = false;
    this.matchingAsked = false;
    this.changed = true;
    this.returned = [];
    this.gone = [];
  }
}
