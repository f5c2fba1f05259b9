/**
 * The channels of a scheduler (grid-tree.md, "Resource discovery"): one for each distinct bag that it hears of from below,
 * kept as its children's channels come, change and go.
 */
import { distanceKm } from './machines.js';
import type { Address, Block, Entry, LeafView } from './messages.js';
import { type Gain, isChoosy, Place, powerOf, type Taker } from './selection.js';

/** Answers for groups that may have no request any more. */
const GAINS_KEPT = 10_000;

const NO_GAIN: Gain = { conditions: 0, distanceKm: Infinity };

/** A child's channel, bound to one of ours. */
export class Branch implements Taker {
  power = 0;
  leaves: readonly LeafView[] = [];
  channel!: Channel;
  /** Requests that it was given and has not started. */
  readonly place = new Place();
  /** Keys of requests that are being taken back for it. */
  readonly expected = new Set<number>();
  /** It has sent an RFC that is not answered. */
  asked = false;
  /** The scheduler's version at which there was nothing for it. */
  triedAt = -1;
  /** When it was given something last. */
  block: Block | undefined;
  private readonly gains = new Map<string, Gain>();

  constructor(
    readonly child: Address,
    readonly port: number,
  ) {}

  get coming(): number {
    return this.expected.size;
  }

  fits(requirementKey: string): boolean {
    return this.channel.bag.has(requirementKey);
  }

  /** The most conditions that hold at a leaf below, and the least distance to one: all of them have the bag. */
  gain(sample: Entry): Gain {
    if (!isChoosy(sample)) return NO_GAIN;
    let gain = this.gains.get(sample.group);
    if (gain === undefined) {
      gain = { conditions: 0, distanceKm: Infinity };
      for (const { holds, position } of this.leaves) {
        const conditions = sample.preferences.filter(({ key }) => holds.includes(key)).length;
        gain.conditions = Math.max(gain.conditions, conditions);
        if (sample.origin !== null && position !== null)
          gain.distanceKm = Math.min(gain.distanceKm, distanceKm(sample.origin, position));
      }
      this.gains.set(sample.group, gain);
    }
    return gain;
  }

  /** It has asked for nothing. */
  beginAnew(): void {
    this.asked = false;
    this.triedAt = -1;
    this.block = undefined;
    if (this.gains.size > GAINS_KEPT) this.gains.clear();
  }

  tell(power: number, leaves: readonly LeafView[]): void {
    this.power = power;
    this.leaves = leaves;
    this.gains.clear();
  }
}

export class Channel {
  readonly branches = new Set<Branch>();
  bag: ReadonlySet<string> = new Set();
  /** An RFC went up on it and is not answered. */
  asked = false;
  /** What the parent was told last; null: nothing. */
  told: { bag: string; power: number; leaves: string } | null = null;
  /** The parent's port. */
  at: number | null = null;

  constructor(
    readonly port: number,
    public key: string,
  ) {}

  get power(): number {
    let power = 0;
    for (const branch of this.branches) power += branch.power;
    return power;
  }

  get leaves(): LeafView[] {
    return [...this.branches].flatMap(({ leaves }) => leaves);
  }
}

/** No two branches of a scheduler have a leaf in common. */
const firstLeaf = ({ leaves }: Branch): string =>
  leaves.reduce((first, { leaf }) => (leaf < first ? leaf : first), leaves[0]?.leaf ?? '');

export const bagKey = (bag: readonly string[]): string => bag.join('\n');

export class Channels {
  /** By port, which grows. */
  readonly byPort = new Map<number, Channel>();
  private readonly byBag = new Map<string, Channel>();
  /** By child, then by the child's port. */
  private readonly branches = new Map<Address, Map<number, Branch>>();
  /** To be told to the parent. */
  readonly changed = new Set<Channel>();
  readonly removed = new Set<Channel>();
  private lastPort = 0;
  private sorted: Branch[] | null = null;
  private knownPower: number | null = null;

  /** All branches, by the leaves below them: the same however they came about. */
  get inOrder(): readonly Branch[] {
    if (this.sorted === null) {
      const first = new Map<Branch, string>();
      for (const branch of this.all()) first.set(branch, firstLeaf(branch));
      const leafOf = (branch: Branch): string => first.get(branch) as string;
      this.sorted = [...first.keys()].sort((a, b) => (leafOf(a) < leafOf(b) ? -1 : 1));
    }
    return this.sorted;
  }

  /** Of all branches together. */
  get power(): number {
    this.knownPower ??= powerOf(this.inOrder);
    return this.knownPower;
  }

  /** Whether some child has several. */
  get hasSeveral(): boolean {
    for (const ofChild of this.branches.values()) if (ofChild.size > 1) return true;
    return false;
  }

  of(child: Address): Branch[] {
    return [...(this.branches.get(child)?.values() ?? [])];
  }

  find(child: Address, port: number): Branch | undefined {
    return this.branches.get(child)?.get(port);
  }

  *all(): Iterable<Branch> {
    for (const channel of this.byPort.values()) yield* channel.branches;
  }

  /** Whether some channel's bag has the class. */
  has(requirementKey: string): boolean {
    for (const { bag } of this.byPort.values()) if (bag.has(requirementKey)) return true;
    return false;
  }

  /** A child's channel as it is now; `bag` null: as it was. Returns the branch; undefined: it is not known and has no bag. */
  set(
    child: Address,
    port: number,
    bag: readonly string[] | null,
    power: number,
    leaves: readonly LeafView[],
  ): Branch | undefined {
    let branch = this.find(child, port);
    if (branch === undefined) {
      if (bag === null) return undefined;
      branch = new Branch(child, port);
      const ofChild = this.branches.get(child);
      if (ofChild === undefined) this.branches.set(child, new Map([[port, branch]]));
      else ofChild.set(port, branch);
      this.bind(branch, bag);
    } else if (bag !== null && bagKey(bag) !== branch.channel.key) this.rebind(branch, bag);
    branch.tell(power, leaves);
    this.changed.add(branch.channel);
    this.forgetOrder();
    return branch;
  }

  delete(branch: Branch): void {
    const ofChild = this.branches.get(branch.child);
    ofChild?.delete(branch.port);
    if (ofChild?.size === 0) this.branches.delete(branch.child);
    this.unbind(branch);
    this.forgetOrder();
  }

  private forgetOrder(): void {
    this.sorted = null;
    this.knownPower = null;
  }

  private bind(branch: Branch, bag: readonly string[]): void {
    const key = bagKey(bag);
    let channel = this.byBag.get(key);
    if (channel === undefined) {
      channel = new Channel(++this.lastPort, key);
      channel.bag = new Set(bag);
      this.byBag.set(key, channel);
      this.byPort.set(channel.port, channel);
    }
    channel.branches.add(branch);
    branch.channel = channel;
  }

  /** Where no other branch has the old bag and no channel the new one, the channel keeps its port. */
  private rebind(branch: Branch, bag: readonly string[]): void {
    const { channel } = branch;
    const key = bagKey(bag);
    if (channel.branches.size === 1 && !this.byBag.has(key)) {
      this.byBag.delete(channel.key);
      this.byBag.set(key, channel);
      channel.key = key;
      channel.bag = new Set(bag);
    } else {
      this.unbind(branch);
      this.bind(branch, bag);
    }
  }

  private unbind(branch: Branch): void {
    const { channel } = branch;
    channel.branches.delete(branch);
    if (channel.branches.size > 0) this.changed.add(channel);
    else {
      this.byPort.delete(channel.port);
      this.byBag.delete(channel.key);
      this.changed.delete(channel);
      this.removed.add(channel);
    }
  }
}
