/**
 * What the schedulers of a grid tree say to each other (grid-tree.md). Messages are plain values, so that they can travel as
 * they are: handed over in one process, as GraphQL between services, or over a simulated network.
 *
 * Between two schedulers messages must arrive once and in order; `Link` makes that of a carrier that loses, repeats and
 * reorders.
 */

/** The name of a scheduler, a root or an owner; unique among all that can reach one another. */
export type Address = string;

/** Degrees. */
export interface Position {
  latitude: number;
  longitude: number;
}

/** What a job cannot do without. Jobs with equal requirements are one class: see `requirement` in machines.ts. */
export interface Requirement {
  /** The same for equal requirements only. */
  key: string;
  /** Any of these; empty: any at all. */
  os: readonly string[];
  architecture: string | null;
  /** Kinds, sorted: all of them. */
  licenses: readonly string[];
  tasks: number;
  cpusPerTask: number;
  memoryMbPerTask: number;
  /** What a task takes besides, by kind of resource. */
  resourcesPerTask: Readonly<Record<string, number>>;
}

/** A soft condition: what a user would like and can do without. */
export interface Preference {
  key: string;
  /** It runs at this leaf; null: at any. */
  leaf: Address | null;
  /** There are machines for this; null: whatever there is. */
  requirement: Requirement | null;
}

/** What travels of a job until resources are allocated. */
export interface Request {
  /** Unique in the whole federation and for each attempt: an owner that submits a job again gives it another one. */
  id: string;
  /** Who grants the claim and hands over the job. */
  owner: Address;
  requirement: Requirement;
  preferences: readonly Preference[];
  /** Where it was submitted; null: nowhere in particular, so no place is closer than another. */
  origin: Position | null;
  /** Requests that are the same for all that is decided but order: made of requirement, preferences and origin. */
  group: string;
}

/** A request in a tree. The root numbers them. */
export interface Entry extends Readonly<Request> {
  /** Unique in the tree for ever. */
  readonly key: number;
  /** Order of service: lower rank first, then the lesser sequence number, then the lesser turn; the owner may number several alike. */
  readonly rank: number;
  readonly sequence: number;
  readonly turn: number;
  /** How often butterfly and load-balance have moved it: they leave it alone at `TreeRules.movesMax`. */
  readonly moves: number;
}

/** What the schedulers above know of a leaf. */
export interface LeafView {
  leaf: Address;
  position: Position | null;
  /** Keys of the live preferences that hold there. */
  holds: readonly string[];
}

/** Why a request went from one scheduler to another. */
export type MoveReason =
  /** Down: nobody below had it, and it is part of a branch's share. */
  | 'UNASSIGNED'
  /** Up and down: a branch that asked is better for it, or had less than its share. */
  | 'BUTTERFLY'
  | 'LOAD_BALANCE'
  /** Up: who had it cannot run it any more. Down: it came back for that, and goes ahead of later ones. */
  | 'FALLBACK'
  /** Up: one that goes before it takes its place. */
  | 'DISPLACED'
  /** Down: it goes before others that were given out, and nobody below had it. */
  | 'AHEAD'
  /** Up: its scheduler is no child any more. Down: it came back for that, and goes ahead of later ones. */
  | 'REMOVED';

export type TreeMessage =
  /** Up: request for job matching. */
  | { kind: 'RFJM' }
  /** Down: classes and preferences with a first request, and keys of those with no request any more. */
  | {
      kind: 'DISCOVER';
      requirements: readonly Requirement[];
      preferences: readonly Preference[];
      gone: readonly string[];
    }
  /** Up: a channel of the sender is new or has changed. `bag` are keys of classes, sorted; null: as it was. */
  | {
      kind: 'CHANNEL';
      port: number;
      bag: readonly string[] | null;
      power: number;
      leaves: readonly LeafView[];
    }
  /** Up: it is no more. */
  | { kind: 'CHANNEL_GONE'; port: number }
  /** Down: the receiver's channel `port` is a branch of the sender's channel `at`. */
  | { kind: 'PORT'; port: number; at: number }
  /** Up: request for computation, on a channel of the sender. */
  | { kind: 'RFC'; port: number }
  /**
   * Down: requests in their order. With `answer` they are what an RFC on the port asked for; with `ahead`, which says why, they take the
   * places of later ones.
   */
  | { kind: 'BLOCK'; port: number; entries: readonly Entry[]; answer: boolean; ahead: MoveReason | null }
  /** Down: these are wanted elsewhere. Those that have not started come back; of the others it has been said what they do. */
  | { kind: 'TAKE_BACK'; wanted: readonly { key: number; why: MoveReason }[] }
  /** Up: rejected, or taken back: the sender and those below hold them no more. */
  | { kind: 'RETURNED'; keys: readonly number[] }
  /** Up: they wait no more: started, or somebody else has them. */
  | { kind: 'GONE'; keys: readonly number[] }
  /** Down: drop them: cancelled, or claimed elsewhere. */
  | { kind: 'WITHDRAW'; keys: readonly number[] }
  /** Down: the receiver has another parent, or its parent has; it forgets all requests and classes, and says so. */
  | { kind: 'RESET' }
  | { kind: 'RESET_DONE' };

/** Between owners, roots and leaves. */
export type OwnerMessage =
  /** Owner to its root. `sequence`: by the owner's own numbers, so that another attempt keeps its place; null: as it comes. */
  | { kind: 'SUBMIT'; request: Request; sequence: number | null }
  /** Root to root. `origin`: the owner's root; `visited`: roots that have it. */
  | { kind: 'FORWARD'; request: Request; origin: Address; hops: number; visited: readonly Address[] }
  /** Owner to root, and root to those that it forwarded to: claimed or cancelled; copies that wait are dropped. */
  | { kind: 'TAKEN'; id: string }
  /** Leaf to owner: there are resources for it. */
  | { kind: 'CLAIM'; id: string }
  /** Owner to leaf: yes, and nobody else. */
  | { kind: 'GRANTED'; id: string }
  | { kind: 'REFUSED'; id: string }
  /** Leaf to owner: a grant came for what the leaf has given up; the job needs another attempt. */
  | { kind: 'DECLINED'; id: string };

export type Message = TreeMessage | OwnerMessage;

/** What a branch was due when it asked. */
export type Block = {
  /** Of the branch, and of all. */
  power: number;
  totalPower: number;
  /** Requests in the subtree that have not started, how many of them are the branch's share, and how many it had. */
  waiting: number;
  share: number;
  had: number;
};

/** What a state machine answers with; the carrier sees to it. */
export interface Effects {
  send(to: Address, message: Message): void;
  /** A request went from one scheduler to another, for the record; with the block that it is a part of, if it is of one. */
  moved?(entry: Entry, from: Address, to: Address, reason: MoveReason, block?: Block): void;
  /** A leaf was granted a claim: its job starts. */
  started?(request: Request, leaf: Address): void;
  /** It was refused: what the leaf kept free for it is free again. */
  refused?(request: Request, leaf: Address): void;
}

/** What an administrator may set. */
export interface TreeRules {
  butterfly: boolean;
  /** Requests that came back go ahead of later ones that were given out; without it they wait where they are. */
  fallback: boolean;
  loadBalance: boolean;
  /** So many moves by butterfly and load-balance together, then a request stays: none can be moved for ever and never start. */
  movesMax: number;
  /**
   * Of branches that ask in the same turn. UP, the paper's: each is given its share, rounded up, in the order in which they asked. DOWN_FIRST: all
   * get theirs rounded down before the first ones have what is left.
   */
  shares: 'UP' | 'DOWN_FIRST';
}

export const DEFAULT_TREE_RULES: TreeRules = {
  butterfly: true,
  fallback: true,
  loadBalance: true,
  movesMax: 16,
  shares: 'DOWN_FIRST',
};

/** Order of service. */
export const before = (a: Entry, b: Entry): boolean => inOrder(a, b) < 0;

export const inOrder = (a: Entry, b: Entry): number =>
  a.rank - b.rank || a.sequence - b.sequence || a.turn - b.turn || a.key - b.key;
