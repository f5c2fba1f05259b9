/**
 * A scheduler with schedulers below it (grid-tree.md): it knows its children's channels, holds requests that nobody below has
 * been given, and remembers to which branch it gave the others.
 *
 * A state machine: `receive` takes one message, `settle` answers what has come since. How messages travel is the carrier's.
 */
import { type Branch, type Channel, Channels } from './channels.js';
import {
  type Address,
  before,
  type Effects,
  type Entry,
  inOrder,
  type Message,
  type MoveReason,
  type Preference,
  type Requirement,
  type TreeRules,
} from './messages.js';
import { collect, Place, type Rounding, shareOf } from './selection.js';

/** What becomes of a request that is being taken back, and why: a branch gets it, the parent, or it is given out here. */
interface Destination {
  to: Branch | 'PARENT' | 'HERE' | 'AHEAD';
  why: MoveReason;
}

interface Held {
  entry: Entry;
  /** Where it is counted; null: it is being taken back. */
  place: Place | null;
  /** The child that has it; null: nobody but this scheduler. */
  child: Address | null;
  destination: Destination | null;
}

/** What branches get at the end of a turn. */
type Given = Map<Branch, Set<Held>>;

interface Child {
  /** Requests of branches that are no more, until the child says what becomes of them. */
  readonly limbo: Place;
  /** It is given nothing more, and all that it has is taken back. */
  draining: boolean;
  /** RESETs that it has not confirmed: until then what it says of requests is of former ones. */
  resets: number;
}

export class Scheduler {
  parent: Address | null = null;
  readonly channels = new Channels();
  /** Nobody's below. */
  readonly unassigned = new Place(true);
  protected readonly held = new Map<number, Held>();
  protected readonly children = new Map<Address, Child>();
  protected readonly requirements = new Map<string, Requirement>();
  protected readonly preferences = new Map<string, Preference>();
  /** In the order in which they asked. */
  private asking: Branch[] = [];
  /** Counts what may change what a branch gets. */
  private version = 0;
  private matchingAsked = false;
  /** What the channels below can run may be less than it was. */
  private lessRuns = false;
  /** Branches have changed since requests were counted at them. */
  private unsettled = false;
  private returned: number[] = [];
  private gone: number[] = [];

  constructor(
    readonly id: Address,
    protected readonly effects: Effects,
    protected readonly rules: TreeRules,
  ) {}

  // What administrators do.

  /** A scheduler or leaf becomes a child; it must be told by `setParent`. */
  attach(child: Address): void {
    this.children.set(child, { limbo: new Place(), draining: false, resets: 0 });
    this.introduce(child);
  }

  /** Takes back all that a child has, and gives it nothing more. When `has(child)` is 0 it can be detached and nothing is lost. */
  drain(child: Address): void {
    const known = this.childNamed(child);
    known.draining = true;
    for (const branch of this.channels.of(child)) this.drop(branch, known);
    const held = [...known.limbo.entries()].map(({ key }) => this.held.get(key) as Held);
    for (const one of held) this.expect(one, { to: 'AHEAD', why: 'REMOVED' });
    this.takeBack(child, held);
  }

  /** Requests that are with a child, or on their way back from it. */
  has(child: Address): number {
    let count = 0;
    for (const one of this.held.values()) if (one.child === child) count++;
    return count;
  }

  /** A child is no more, or silent for good: what it had is given out again. Nothing that it says later counts, but claims. */
  detach(child: Address): void {
    const known = this.childNamed(child);
    for (const branch of this.channels.of(child)) this.drop(branch, known);
    const held = [...this.held.values()].filter((one) => one.child === child);
    this.comeBack(held, 'REMOVED');
    this.children.delete(child);
  }

  /** It has another parent, or none: all requests from the former one are forgotten, here and below. */
  setParent(parent: Address | null): void {
    this.parent = parent;
    this.forget();
    for (const channel of this.channels.byPort.values()) {
      channel.told = null;
      this.channels.changed.add(channel);
    }
    this.channels.removed.clear();
  }

  /** Classes and preferences that are live, and keys of those that are no more, as somebody else knows. */
  learn(
    requirements: readonly Requirement[],
    preferences: readonly Preference[],
    gone: readonly string[] = [],
  ): void {
    this.discover(requirements, preferences, gone);
  }

  /**
   * A request of the subtree, as is known of a time before it was made: where a child has it, a branch of that child is given it. `leaf`: which
   * has it; null: none.
   */
  restore(entry: Entry, child: Address | null, leaf: Address | null): void {
    const one: Held = { entry, place: null, child, destination: null };
    this.held.set(entry.key, one);
    this.lessRuns = true;
    this.put(one, child === null ? this.unassigned : this.homeOf(entry, child, leaf));
  }

  /**
   * Of a child's branches the one with the leaf that has the request, or else the first by its leaves: the same however the branches came
   * about, and whatever ports they have.
   */
  private homeOf({ requirement: { key } }: Entry, child: Address, leaf: Address | null): Place {
    const fitting = this.channels.of(child).filter((branch) => branch.fits(key));
    const here = (branch: Branch): boolean => branch.leaves.some((one) => one.leaf === leaf);
    const home =
      fitting.length < 2
        ? fitting[0]
        : (fitting.find(here) ?? this.channels.inOrder.find((branch) => fitting.includes(branch)));
    return home?.place ?? this.childNamed(child).limbo;
  }

  /** Branches have become others since: what children with several have is counted where `restore` would now. Nothing may be under way. */
  resettle(leafOf: (key: number) => Address | null): void {
    if (!this.unsettled) return;
    this.unsettled = false;
    if (!this.channels.hasSeveral) return;
    for (const one of this.held.values()) {
      if (one.child === null) continue;
      const home = this.homeOf(one.entry, one.child, leafOf(one.entry.key));
      if (home === one.place) continue;
      if (one.place !== null) this.leavePlace(one);
      this.put(one, home);
    }
  }

  /** The opposite: it never was in the subtree. Answers with the child that has it. */
  unrestore(key: number): Address | null {
    const one = this.held.get(key);
    if (one === undefined) return null;
    this.forgetOne(one);
    return one.child;
  }

  /** Nobody has asked for anything. Nothing may be under way. */
  beginAnew(): void {
    this.asking = [];
    for (const channel of this.channels.byPort.values()) {
      channel.asked = false;
      for (const branch of channel.branches) branch.beginAnew();
    }
  }

  /** Requests in its subtree that have not started. */
  get waiting(): number {
    return this.held.size;
  }

  /** Requests with their holder as far as this scheduler sees: a child, or itself. */
  *requests(): Iterable<{ entry: Entry; at: Address }> {
    for (const { entry, child } of this.held.values()) yield { entry, at: child ?? this.id };
  }

  // The protocol.

  receive(from: Address, message: Message): void {
    if (from === this.parent && this.fromParent(message)) return;
    const child = this.children.get(from);
    if (child !== undefined) this.fromChild(from, child, message);
  }

  /** After one or more messages: tells the parent of channels, answers RFCs, and asks for what is missing. */
  settle(): void {
    this.announce();
    if (this.lessRuns) this.fallBack();
    this.sendUp('RETURNED', this.returned);
    this.sendUp('GONE', this.gone);
    this.returned = [];
    this.gone = [];
    this.serve();
  }

  private fromParent(message: Message): boolean {
    switch (message.kind) {
      case 'DISCOVER':
        this.discover(message.requirements, message.preferences, message.gone);
        return true;
      case 'PORT': {
        const channel = this.channels.byPort.get(message.port);
        if (channel !== undefined) channel.at = message.at;
        return true;
      }
      case 'BLOCK': {
        const channel = this.channels.byPort.get(message.port);
        if (message.answer && channel !== undefined) channel.asked = false;
        for (const entry of message.entries) {
          if (!this.channels.has(entry.requirement.key)) this.returned.push(entry.key);
          else this.hold(entry, message.ahead);
        }
        return true;
      }
      case 'TAKE_BACK':
        this.giveBack(message.wanted);
        return true;
      case 'WITHDRAW':
        this.withdraw(message.keys);
        return true;
      case 'RESET':
        this.forget();
        this.send(this.parent as Address, { kind: 'RESET_DONE' });
        return true;
      default:
        return false;
    }
  }

  private fromChild(from: Address, child: Child, message: Message): void {
    switch (message.kind) {
      case 'RFJM':
        this.askForMatching();
        break;
      case 'CHANNEL':
        if (!child.draining) this.bind(from, child, message);
        break;
      case 'CHANNEL_GONE': {
        const branch = this.channels.find(from, message.port);
        if (branch !== undefined) this.drop(branch, child);
        break;
      }
      case 'RFC': {
        const branch = this.channels.find(from, message.port);
        if (branch !== undefined && !branch.asked) {
          branch.asked = true;
          branch.triedAt = -1;
          this.asking.push(branch);
        }
        break;
      }
      case 'RETURNED':
        if (child.resets === 0) this.comeBack(this.heldBy(from, message.keys));
        break;
      case 'GONE':
        if (child.resets === 0) for (const one of this.heldBy(from, message.keys)) this.end(one);
        break;
      case 'RESET_DONE':
        child.resets--;
        break;
      default:
    }
  }

  private heldBy(child: Address, keys: readonly number[]): Held[] {
    return keys.flatMap((key) => {
      const one = this.held.get(key);
      return one?.child === child ? [one] : [];
    });
  }

  // Discovery.

  /** Passes a block of classes down. */
  protected discover(
    requirements: readonly Requirement[],
    preferences: readonly Preference[],
    gone: readonly string[],
  ): void {
    if (requirements.length > 0) this.matchingAsked = false;
    for (const key of gone) {
      this.requirements.delete(key);
      this.preferences.delete(key);
    }
    for (const one of requirements) this.requirements.set(one.key, one);
    for (const one of preferences) this.preferences.set(one.key, one);
    for (const child of this.children.keys())
      this.send(child, { kind: 'DISCOVER', requirements, preferences, gone });
  }

  private introduce(child: Address): void {
    const requirements = [...this.requirements.values()];
    const preferences = [...this.preferences.values()];
    this.send(child, { kind: 'DISCOVER', requirements, preferences, gone: [] });
  }

  /** One RFJM goes up on behalf of all below. */
  protected askForMatching(): void {
    if (this.matchingAsked || this.parent === null) return;
    this.matchingAsked = true;
    this.send(this.parent, { kind: 'RFJM' });
  }

  private bind(from: Address, child: Child, message: Message & { kind: 'CHANNEL' }): void {
    const known = this.channels.find(from, message.port);
    const before = known?.channel;
    const { port, bag, power, leaves } = message;
    const branch = this.channels.set(from, port, bag, power, leaves);
    if (branch === undefined) return;
    this.version++;
    this.lessRuns = true;
    this.unsettled = true;
    if (branch.channel !== before) this.send(from, { kind: 'PORT', port, at: branch.channel.port });
    if (known === undefined) this.rehome(child.limbo, [branch]);
  }

  /** The branch is no more. Its requests are counted at another one of the child that can run them, if there is one. */
  private drop(branch: Branch, child: Child): void {
    this.version++;
    this.lessRuns = true;
    this.unsettled = true;
    this.channels.delete(branch);
    if (branch.asked) this.asking = this.asking.filter((one) => one !== branch);
    for (const key of branch.expected) ((this.held.get(key) as Held).destination as Destination).to = 'HERE';
    const left = [...branch.place.entries()];
    branch.place.clear();
    for (const entry of left) this.put(this.held.get(entry.key) as Held, child.limbo);
    this.rehome(child.limbo, this.channels.of(branch.child));
  }

  private rehome(limbo: Place, branches: readonly Branch[]): void {
    for (const entry of [...limbo.entries()]) {
      const branch = branches.find((one) => one.fits(entry.requirement.key));
      if (branch === undefined) continue;
      limbo.delete(entry);
      this.put(this.held.get(entry.key) as Held, branch.place);
    }
  }

  /** What waits here and nothing below can run any more goes back. */
  private fallBack(): void {
    this.lessRuns = false;
    if (this.parent === null) return;
    const back: Entry[] = [];
    for (const [key, group] of this.unassigned.groups) if (!this.channels.has(key)) back.push(...group);
    for (const { key } of back.sort(inOrder)) {
      this.forgetOne(this.held.get(key) as Held);
      this.returned.push(key);
    }
  }

  private announce(): void {
    const { changed, removed, byPort } = this.channels;
    if (this.parent !== null) {
      for (const channel of changed) this.tell(channel);
      for (const { port, told } of removed) {
        if (told !== null && !byPort.has(port)) this.send(this.parent, { kind: 'CHANNEL_GONE', port });
      }
    }
    changed.clear();
    removed.clear();
  }

  private tell(channel: Channel): void {
    const { port, key, bag, power, leaves, told } = channel;
    const now = { bag: key, power, leaves: JSON.stringify(leaves) };
    if (told?.bag === now.bag && told.power === power && told.leaves === now.leaves) return;
    channel.told = now;
    const news = told?.bag === key ? null : [...bag];
    this.send(this.parent as Address, { kind: 'CHANNEL', port, bag: news, power, leaves });
  }

  // Selection.

  private serve(): void {
    if (this.asking.some(({ triedAt }) => triedAt !== this.version)) this.giveOut();
    if (this.parent === null) return;
    for (const { channel, coming } of this.asking) {
      if (channel.asked || coming > 0) continue;
      channel.asked = true;
      this.send(this.parent, { kind: 'RFC', port: channel.port });
    }
  }

  /**
   * Branches that ask in the same turn are served in mind before anything is sent, each by its share (`TreeRules.shares`); and by butterfly a branch can still have what one before it was given, with no message.
   */
  private giveOut(): void {
    const branches = this.channels.inOrder;
    const given: Given = new Map();
    const isUp = this.rules.shares === 'UP' || this.asking.length === 1;
    for (const round of isUp ? [Math.ceil] : [Math.floor, Math.ceil]) {
      for (const branch of this.asking) branch.triedAt = -1;
      for (let again = true; again; ) {
        again = false;
        for (const branch of this.asking) {
          if (branch.triedAt === this.version) continue;
          branch.triedAt = this.version;
          if (this.answer(branch, branches, round, given)) again = true;
        }
      }
    }
    for (const [branch, held] of given) {
      const block = [...held].sort((a, b) => inOrder(a.entry, b.entry));
      this.push(branch, block, 'UNASSIGNED', null);
    }
  }

  /** Gives the branch its block, in mind; false: there is nothing for it. */
  private answer(branch: Branch, branches: readonly Branch[], round: Rounding, given: Given): boolean {
    const waiting = this.held.size;
    const { power, coming, place } = branch;
    const totalPower = this.channels.power;
    // Before anything is made for it: most ask again and again and have their share.
    if (shareOf(power, totalPower, waiting, round) <= place.size + coming) return false;
    const block = collect(branch, branches, this.unassigned, waiting, this.rules, round);
    if (block.length === 0) return false;
    const mine = given.get(branch) ?? new Set();
    if (mine.size === 0) {
      const had = place.size + coming;
      branch.block = { power, totalPower, waiting, share: shareOf(power, totalPower, waiting), had };
      given.set(branch, mine);
    }
    const back = new Map<Address, Held[]>();
    for (const { entry, from, how } of block) {
      const one = this.held.get(entry.key) as Held;
      if (one.child === null) {
        if (from !== null) given.get(from)?.delete(one);
        this.leavePlace(one);
        this.put(one, place);
        mine.add(one);
      } else {
        one.entry = { ...entry, moves: entry.moves + 1 };
        this.expect(one, { to: branch, why: how });
        group(back, (from as Branch).child, one);
      }
    }
    for (const [child, held] of back) this.takeBack(child, held);
    return true;
  }

  /** Gives requests that this scheduler holds to a branch. */
  private push(branch: Branch, held: readonly Held[], why: MoveReason, ahead: MoveReason | null): void {
    if (held.length === 0) return;
    const entries: Entry[] = [];
    for (const one of held) {
      one.child = branch.child;
      if (one.place !== branch.place) {
        if (one.place !== null) this.leavePlace(one);
        this.put(one, branch.place);
      }
      entries.push(one.entry);
      this.effects.moved?.(one.entry, this.id, branch.child, why, ahead === null ? branch.block : undefined);
    }
    const answer = branch.asked && ahead === null;
    if (answer) {
      branch.asked = false;
      this.asking = this.asking.filter((one) => one !== branch);
    }
    this.send(branch.child, { kind: 'BLOCK', port: branch.port, entries, answer, ahead });
  }

  /** `ahead`: why it takes the place of a later one, if there is one; null: it does not. */
  protected hold(entry: Entry, ahead: MoveReason | null): void {
    const one: Held = { entry, place: null, child: null, destination: null };
    this.held.set(entry.key, one);
    if (ahead !== null && this.rules.fallback) this.placeAhead(one, ahead);
    else this.put(one, this.unassigned);
  }

  /** Gives out what nobody below has, ahead of later requests that were given out: it came back, or has come to be wanted earlier. */
  giveAhead(): void {
    if (!this.rules.fallback) return;
    const groups = [...this.unassigned.groups.values()];
    groups.sort((a, b) => inOrder(a[0] as Entry, b[0] as Entry));
    for (const group of groups) {
      for (let left = group.length; left > 0; left--) {
        // The others of its class are later still.
        if (!this.placeAhead(this.held.get((group[0] as Entry).key) as Held, 'AHEAD')) break;
      }
    }
  }

  /** It came back, or nobody below has it. Swaps places with the last of the later requests that were given out, if there is one. */
  private placeAhead(one: Held, why: MoveReason): boolean {
    let found: { branch: Branch; last: Entry } | null = null;
    for (const branch of this.channels.all()) {
      if (!branch.fits(one.entry.requirement.key)) continue;
      const { last } = branch.place;
      if (last !== null && before(one.entry, last) && (found === null || before(found.last, last)))
        found = { branch, last };
    }
    if (found === null) {
      if (one.place === null) this.put(one, this.unassigned);
      return false;
    }
    const later = this.held.get(found.last.key) as Held;
    this.expect(later, { to: 'HERE', why: 'DISPLACED' });
    this.takeBack(found.branch.child, [later]);
    this.push(found.branch, [one], why, why);
    return true;
  }

  // Taking back.

  /** From now on it is on its way back from its child. */
  private expect(one: Held, destination: Destination): void {
    unexpect(one);
    if (one.place !== null) this.leavePlace(one);
    one.destination = destination;
    if (typeof destination.to === 'object') destination.to.expected.add(one.entry.key);
    this.version++;
  }

  private takeBack(child: Address, held: readonly Held[]): void {
    if (held.length === 0) return;
    const wanted = held.map(({ entry, destination }) => ({
      key: entry.key,
      why: (destination as Destination).why,
    }));
    this.send(child, { kind: 'TAKE_BACK', wanted });
  }

  /** The parent wants them. */
  private giveBack(wanted: readonly { key: number; why: MoveReason }[]): void {
    const below = new Map<Address, Held[]>();
    for (const { key, why } of wanted) {
      const one = this.held.get(key);
      if (one === undefined) continue;
      if (one.child === null) {
        this.forgetOne(one);
        this.returned.push(key);
      } else {
        if (one.place !== null) group(below, one.child, one);
        this.expect(one, { to: 'PARENT', why });
      }
    }
    for (const [child, held] of below) this.takeBack(child, held);
  }

  /** Requests that a child had are here again: nobody had asked for them back, but for that reason; else for the one they were asked for. */
  private comeBack(held: readonly Held[], unasked: MoveReason = 'FALLBACK'): void {
    const given = new Map<Branch, { why: MoveReason; held: Held[] }>();
    const ahead: { one: Held; why: MoveReason }[] = [];
    for (const one of held) {
      const { entry, destination } = one;
      const { to, why } = destination ?? { to: 'AHEAD', why: unasked };
      this.effects.moved?.(entry, one.child as Address, this.id, why);
      if (one.place !== null) this.leavePlace(one);
      unexpect(one);
      one.destination = null;
      one.child = null;
      if (to === 'PARENT' || !(this.parent === null || this.channels.has(entry.requirement.key))) {
        this.held.delete(entry.key);
        this.returned.push(entry.key);
      } else if (typeof to === 'object' && to.fits(entry.requirement.key)) {
        const block = given.get(to);
        if (block === undefined) given.set(to, { why, held: [one] });
        else block.held.push(one);
      } else if (to === 'AHEAD' && this.rules.fallback) ahead.push({ one, why });
      else this.put(one, this.unassigned);
    }
    for (const [branch, { why, held }] of given) {
      held.sort((a, b) => inOrder(a.entry, b.entry));
      this.push(branch, held, why, null);
    }
    ahead.sort((a, b) => inOrder(a.one.entry, b.one.entry));
    for (const { one, why } of ahead) this.placeAhead(one, why);
    this.version++;
  }

  // Ends.

  /** Started or claimed elsewhere: it waits no more. */
  private end(one: Held): void {
    this.forgetOne(one);
    this.gone.push(one.entry.key);
    this.ended(one.entry);
  }

  /** A request of the subtree waits no more. */
  protected ended(_entry: Entry): void {}

  protected withdraw(keys: readonly number[]): void {
    const below = new Map<Address, number[]>();
    for (const key of keys) {
      const one = this.held.get(key);
      if (one === undefined) continue;
      if (one.child !== null) group(below, one.child, key);
      this.forgetOne(one);
    }
    for (const [child, keys] of below) this.send(child, { kind: 'WITHDRAW', keys });
  }

  private forgetOne(one: Held): void {
    if (one.place !== null) this.leavePlace(one);
    unexpect(one);
    this.held.delete(one.entry.key);
    this.version++;
  }

  private forget(): void {
    for (const branch of this.channels.all()) {
      branch.place.clear();
      branch.expected.clear();
      branch.asked = false;
    }
    for (const channel of this.channels.byPort.values()) channel.asked = false;
    this.held.clear();
    this.unassigned.clear();
    this.asking = [];
    this.requirements.clear();
    this.preferences.clear();
    this.matchingAsked = false;
    this.returned = [];
    this.gone = [];
    this.version++;
    for (const [address, child] of this.children) {
      child.limbo.clear();
      child.resets++;
      this.send(address, { kind: 'RESET' });
    }
  }

  private put(one: Held, place: Place): void {
    one.place = place;
    place.add(one.entry);
    this.version++;
  }

  private leavePlace(one: Held): void {
    (one.place as Place).delete(one.entry);
    one.place = null;
  }

  private childNamed(child: Address): Child {
    const known = this.children.get(child);
    if (known === undefined) throw new Error(`${child} is no child of ${this.id}`);
    return known;
  }

  private sendUp(kind: 'RETURNED' | 'GONE', keys: readonly number[]): void {
    if (keys.length > 0 && this.parent !== null) this.send(this.parent, { kind, keys });
  }

  protected send(to: Address, message: Message): void {
    this.effects.send(to, message);
  }
}

/** No branch waits for it any more. */
function unexpect({ entry, destination }: Held): void {
  if (destination !== null && typeof destination.to === 'object') destination.to.expected.delete(entry.key);
}

function group<K, V>(groups: Map<K, V[]>, key: K, value: V): void {
  const found = groups.get(key);
  if (found === undefined) groups.set(key, [value]);
  else found.push(value);
}
