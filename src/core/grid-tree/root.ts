/**
 * The root of a tree (grid-tree.md): requests come in here, classes are discovered from here, and it forwards to the roots of
 * other trees and takes requests from them.
 */
import { type Forward, forwardTo, isForwarded, isTaken, type QueueLoad } from './hybrid.js';
import type {
  Address,
  Effects,
  Entry,
  Message,
  Preference,
  Request,
  Requirement,
  TreeRules,
} from './messages.js';
import { Scheduler } from './scheduler.js';

export interface RootRules {
  /** Raw requests wait so long for an RFJM, seconds. */
  rawWaitS: number;
  /** A class without requests is forgotten after so long: one that comes and goes would be discovered again for each job. */
  classKeptS: number;
  /**
   * When requests go on to the neighbors: ALWAYS, at once; WHEN_NEEDED, when no channel can run them, or their wait is predicted
   * to exceed `neededAfterS`; NEVER. WHEN_CHEAPER takes what only services tell of their queues: here it is no channel.
   */
  forward: Forward;
  neededAfterS: number;
  /** So long after a discovery its answers must be there: before, nobody knows what no channel can run. */
  answerS: number;
  hops: number;
  /** Foreign requests: none are taken beyond so many at once; their rank (own requests have 0, higher ranks go later). */
  foreignMax: number;
  foreignRank: number;
}

export const DEFAULT_ROOT_RULES: RootRules = {
  rawWaitS: 1,
  classKeptS: 0,
  forward: 'NEVER',
  neededAfterS: 600,
  answerS: 5,
  hops: 16,
  foreignMax: Infinity,
  foreignRank: 0,
};

/** So many requests that left for machines of the tree tell how fast the queue moves. */
const ENDS_KEPT = 32;

/** Roots tell one another no loads. */
const NO_LOAD: QueueLoad = { ahead: 0, work: 0, power: 0, benchmark: 0 };
const NOTHING_TOLD = { work: 0, here: NO_LOAD, there: null };

/** How often WHEN_NEEDED looks, seconds. */
const CHECK_S = 1;

/** A request that has not started. */
interface Known {
  entry: Entry;
  /** Who forwarded it; null: it is ours. */
  from: Address | null;
  origin: Address;
  hops: number;
  visited: readonly Address[];
  forwardedTo: readonly Address[];
  arrivedAt: number;
}

export class Root extends Scheduler {
  readonly neighbors = new Set<Address>();
  private isolated = false;
  private readonly known = new Map<string, Known>();
  private foreignCount = 0;
  /** Keys of requirements and preferences, with the number of their requests. */
  private readonly live = new Map<string, number>();
  /** Those that have lost their last one, and when; the longest ago first. */
  private readonly unused = new Map<string, number>();
  /** Never discovered, in order of arrival. */
  private readonly raw = new Map<string, Entry>();
  private rawSince = Infinity;
  private matchingWanted = false;
  private discoveredAt = Number.NEGATIVE_INFINITY;
  private checkAt = Infinity;
  private readonly ends: number[] = [];
  private lastKey = 0;
  private lastSequence = 0;
  private now = 0;

  constructor(
    id: Address,
    effects: Effects,
    rules: TreeRules,
    private readonly rootRules: RootRules,
  ) {
    super(id, effects, rules);
  }

  /** When `settle` has something to do although nothing came; Infinity: never. */
  get nextAt(): number {
    const [unusedSince = Infinity] = this.unused.values();
    const { rawWaitS, classKeptS } = this.rootRules;
    return Math.min(this.rawSince + rawWaitS, this.checkAt, unusedSince + classKeptS);
  }

  /** Requests of others that wait here. */
  get foreign(): number {
    return this.foreignCount;
  }

  /** The time, in seconds, for all that follows. */
  at(now: number): void {
    this.now = now;
  }

  /** At once nothing goes to peers or comes from them: own requests wait here, foreign ones are their owners' only. */
  isolate(): void {
    this.isolated = true;
    for (const one of [...this.known.values()]) {
      this.takeBackFrom(one);
      if (one.from !== null) this.remove(one);
    }
  }

  /** Ends isolation. */
  rejoin(): void {
    this.isolated = false;
    for (const one of this.known.values()) this.considerForwarding(one);
  }

  /** A peer is no neighbor any more: what it forwarded goes, and it has nothing of ours. */
  leave(peer: Address): void {
    this.neighbors.delete(peer);
    for (const one of [...this.known.values()]) {
      one.forwardedTo = one.forwardedTo.filter((to) => to !== peer);
      if (one.from === peer) this.remove(one);
    }
  }

  override receive(from: Address, message: Message): void {
    switch (message.kind) {
      case 'SUBMIT':
        this.enter(message.request, message.sequence, {
          from: null,
          origin: this.id,
          hops: this.rootRules.hops,
        });
        break;
      case 'FORWARD': {
        const { request, origin, hops, visited } = message;
        const { isolated } = this;
        const room = this.neighbors.has(from) ? this.rootRules.foreignMax - this.foreignCount : 0;
        if (!isTaken({ isolated, room, isKnown: this.known.has(request.id) })) break;
        this.enter(request, null, { from, origin, hops, visited });
        break;
      }
      case 'TAKEN': {
        const one = this.known.get(message.id);
        // Of a foreign request only who sent it may say so: other copies have other senders.
        if (one !== undefined && (one.from ?? one.entry.owner) === from) this.remove(one);
        break;
      }
      default:
        super.receive(from, message);
    }
  }

  override settle(): void {
    const due = this.matchingWanted || this.now >= this.rawSince + this.rootRules.rawWaitS;
    if (this.raw.size > 0 && due) this.discoverRaw();
    this.forgetClasses();
    super.settle();
    if (this.now >= this.checkAt) this.forwardWhatNeedsIt();
  }

  private forgetClasses(): void {
    const gone: string[] = [];
    for (const [key, since] of this.unused) {
      if (this.now < since + this.rootRules.classKeptS) break;
      this.unused.delete(key);
      gone.push(key);
    }
    if (gone.length > 0) this.discover([], [], gone);
  }

  /** Nobody is above: the RFJM is remembered until there are raw requests. */
  protected override askForMatching(): void {
    this.matchingWanted = true;
  }

  override learn(
    requirements: readonly Requirement[],
    preferences: readonly Preference[],
    gone: readonly string[] = [],
  ): void {
    for (const key of gone) this.unused.delete(key);
    super.learn(requirements, preferences, gone);
  }

  override restore(entry: Entry, child: Address | null, leaf: Address | null): void {
    const way = { from: null, origin: this.id, hops: this.rootRules.hops, visited: [], forwardedTo: [] };
    this.known.set(entry.id, { entry, ...way, arrivedAt: this.now });
    this.count(entry.requirement.key, 1);
    for (const { key } of entry.preferences) this.count(key, 1);
    super.restore(entry, child, leaf);
  }

  override unrestore(key: number): Address | null {
    const one = this.held.get(key);
    if (one !== undefined) this.uncount(this.known.get(one.entry.id) as Known);
    return super.unrestore(key);
  }

  private enter(
    request: Request,
    sequence: number | null,
    way: Pick<Known, 'from' | 'origin' | 'hops'> & { visited?: readonly Address[] },
  ): void {
    if (this.known.has(request.id)) return;
    this.lastSequence = Math.max(this.lastSequence + 1, sequence ?? 0);
    const entry: Entry = {
      ...request,
      key: ++this.lastKey,
      rank: way.from === null ? 0 : this.rootRules.foreignRank,
      sequence: sequence ?? this.lastSequence,
      turn: 0,
      moves: 0,
    };
    const { from, origin, hops, visited = [] } = way;
    const one: Known = { entry, from, origin, hops, visited, forwardedTo: [], arrivedAt: this.now };
    this.known.set(entry.id, one);
    if (from !== null) this.foreignCount++;
    let isKnown = this.requirements.has(entry.requirement.key);
    this.count(entry.requirement.key, 1);
    for (const { key } of entry.preferences) {
      isKnown &&= this.preferences.has(key);
      this.count(key, 1);
    }
    if (isKnown) this.hold(entry, null);
    else {
      this.raw.set(entry.id, entry);
      this.rawSince = Math.min(this.rawSince, this.now);
    }
    this.considerForwarding(one);
  }

  private count(key: string, by: number): void {
    const live = (this.live.get(key) ?? 0) + by;
    if (live > 0) {
      this.live.set(key, live);
      this.unused.delete(key);
    } else {
      this.live.delete(key);
      this.unused.set(key, this.now);
    }
  }

  /** All raw requests as one block. */
  private discoverRaw(): void {
    const requirements = new Map(
      [...this.raw.values()].map(({ requirement }) => [requirement.key, requirement]),
    );
    const preferences = new Map(
      [...this.raw.values()].flatMap(({ preferences }) => preferences.map((one) => [one.key, one] as const)),
    );
    for (const key of this.requirements.keys()) requirements.delete(key);
    for (const key of this.preferences.keys()) preferences.delete(key);
    this.discover([...requirements.values()], [...preferences.values()], []);
    for (const entry of this.raw.values()) this.hold(entry, null);
    this.raw.clear();
    this.rawSince = Infinity;
    this.matchingWanted = false;
    this.discoveredAt = this.now;
  }

  /** Started, or refused because somebody else has it: its copies elsewhere are of no use. */
  protected override ended(entry: Entry): void {
    this.ends.push(this.now);
    if (this.ends.length > ENDS_KEPT) this.ends.shift();
    this.release(this.known.get(entry.id) as Known);
  }

  /** Cancelled, or claimed. */
  private remove(one: Known): void {
    if (!this.raw.delete(one.entry.id)) this.withdraw([one.entry.key]);
    else if (this.raw.size === 0) this.rawSince = Infinity;
    this.release(one);
  }

  private release(one: Known): void {
    this.takeBackFrom(one);
    this.uncount(one);
  }

  private uncount({ entry, from }: Known): void {
    this.known.delete(entry.id);
    if (from !== null) this.foreignCount--;
    this.count(entry.requirement.key, -1);
    for (const { key } of entry.preferences) this.count(key, -1);
  }

  // Peers.

  private takeBackFrom(one: Known): void {
    for (const peer of one.forwardedTo) this.send(peer, { kind: 'TAKEN', id: one.entry.id });
    one.forwardedTo = [];
  }

  private considerForwarding(one: Known): void {
    if (this.rootRules.forward === 'ALWAYS') this.forward(one);
    else if (this.rootRules.forward !== 'NEVER') this.checkAt = Math.min(this.checkAt, this.now + CHECK_S);
  }

  private forward(one: Known): void {
    if (this.isolated) return;
    const { entry, origin, hops, visited } = one;
    const next = forwardTo({ self: this.id, origin, hops, neighbors: [...this.neighbors], visited });
    const { id, owner, requirement, preferences, group } = entry;
    const request: Request = { id, owner, requirement, preferences, origin: entry.origin, group };
    const seen = [...new Set([...visited, this.id, ...next.to])];
    for (const to of next.to)
      this.send(to, { kind: 'FORWARD', request, origin, hops: next.hops, visited: seen });
    one.forwardedTo = next.to;
  }

  private forwardWhatNeedsIt(): void {
    const answered = this.now >= this.discoveredAt + this.rootRules.answerS;
    const { ends } = this;
    const betweenS =
      ends.length < 2 ? 0 : ((ends.at(-1) as number) - (ends[0] as number)) / (ends.length - 1);
    let ahead = 0;
    for (const one of this.known.values()) {
      const { entry, arrivedAt, forwardedTo } = one;
      const fitsHome = !answered || this.raw.has(entry.id) || this.channels.has(entry.requirement.key);
      const need = { fitsHome, waitedS: this.now - arrivedAt, ahead, betweenS, ...NOTHING_TOLD };
      const { forward, neededAfterS } = this.rootRules;
      if (forwardedTo.length === 0 && isForwarded(forward, neededAfterS, need)) this.forward(one);
      ahead++;
    }
    this.checkAt = this.known.size > 0 ? this.now + CHECK_S : Infinity;
  }
}
