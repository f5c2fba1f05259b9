/**
 * Fair turns on the event loop of this process. Whoever wants it to work on behalf of somebody waits for a turn of theirs; whoever has had
 * least of its time goes next, and what a turn really took is charged to its account. So users who ask for much wait for themselves.
 *
 * Accounts are of three ranks, each of which gets its third while it has something to do: no number of users keeps agents or operators waiting.
 */

export type Rank = 'agents' | 'operators' | 'people';

/** On whose behalf the process works. */
export interface Account {
  readonly name: string;
  readonly rank: Rank;
}

/** For how long turns follow one another before the process looks for what has come from outside; one that has begun is not interrupted. */
const ROUND_MS = 4;
/** Turns between two such looks at the most. */
const ROUND_MAX = 32;
/** Accounts that have nothing to do are forgotten once there are so many. */
const IDLE_MAX = 1_000;

/** Something that has had so much time, in relation to the others beside it. */
interface Share {
  spentMs: number;
}

class Line implements Share {
  spentMs = 0;
  readonly waiting: (() => void)[] = [];
  constructor(readonly account: Account) {}
}

class Lines implements Share {
  spentMs = 0;
  /** What the account that was served last had had: who begins to wait gets no credit for the time before. */
  nowMs = 0;
  readonly all = new Map<string, Line>();
  /** Those that wait. */
  readonly active = new Set<Line>();

  lineOf(account: Account): Line {
    const known = this.all.get(account.name);
    if (known) return known;
    if (this.all.size >= IDLE_MAX)
      for (const [name, line] of this.all)
        if (!this.active.has(line) && line.spentMs <= this.nowMs) this.all.delete(name);
    const line = new Line(account);
    this.all.set(account.name, line);
    return line;
  }
}

/** Of several, what has had least. */
function least<T extends Share>(shares: Iterable<T>): T | null {
  let chosen: T | null = null;
  for (const share of shares) if (chosen === null || share.spentMs < chosen.spentMs) chosen = share;
  return chosen;
}

export class Turns {
  private readonly ranks: Readonly<Record<Rank, Lines>> = {
    agents: new Lines(),
    operators: new Lines(),
    people: new Lines(),
  };
  private nowMs = 0;
  /** How many wait. */
  private waiting = 0;
  private isScheduled = false;
  private serving: { line: Line; lines: Lines; begunMs: number } | null = null;
  private owner: Account | null = null;

  /** Whose turn it is; null: the process works for itself. */
  get current(): Account | null {
    return this.owner;
  }

  /** Resolves in a turn of the account. What follows, up to the next wait for something outside of the process, is charged to it. */
  turn(account: Account): Promise<void> {
    const lines = this.ranks[account.rank];
    const line = lines.lineOf(account);
    if (line.waiting.length === 0) {
      if (lines.active.size === 0) lines.spentMs = Math.max(lines.spentMs, this.nowMs);
      lines.active.add(line);
      line.spentMs = Math.max(line.spentMs, lines.nowMs);
    }
    this.waiting++;
    if (!this.isScheduled) this.schedule();
    return new Promise((resolve) => void line.waiting.push(resolve));
  }

  /** In the midst of long work: lets others go first who have had less. Resolves in another turn of whose turn it is. */
  async pause(): Promise<void> {
    if (this.owner) await this.turn(this.owner);
  }

  /** Does what is for all, whoever asked first, on nobody's behalf; goes on in a turn of whose turn it was. */
  async apart<T>(work: () => Promise<T>): Promise<T> {
    const { owner } = this;
    return this.continued(owner, this.as(null, work));
  }

  /** Begins it on behalf of the account. */
  as<T>(account: Account | null, work: () => T): T {
    const { owner } = this;
    this.owner = account;
    try {
      return work();
    } finally {
      this.owner = owner;
    }
  }

  /** What comes from outside of the process, handed on in a turn of the account. */
  async continued<T>(account: Account | null, doing: Promise<T>): Promise<T> {
    try {
      return await doing;
    } finally {
      if (account) await this.turn(account);
    }
  }

  private schedule(): void {
    this.isScheduled = true;
    let begunMs: number | null = null;
    // Between two of them the process runs what the first one resolved, down to the last microtask, and nothing else.
    for (let left = Math.min(this.waiting, ROUND_MAX); left > 0; left--)
      setImmediate(() => {
        this.charge();
        begunMs ??= performance.now();
        if (performance.now() - begunMs < ROUND_MS) this.serve();
      });
    setImmediate(() => {
      this.charge();
      this.isScheduled = false;
      if (this.waiting > 0) this.schedule();
    });
  }

  private serve(): void {
    const lines = least(Object.values(this.ranks).filter(({ active }) => active.size > 0));
    const line = lines && least(lines.active);
    if (!lines || !line) return;
    const resolve = line.waiting.shift() as () => void;
    this.waiting--;
    // Whoever is served comes behind those who have had as much.
    lines.active.delete(line);
    if (line.waiting.length > 0) lines.active.add(line);
    this.nowMs = lines.spentMs;
    lines.nowMs = line.spentMs;
    this.serving = { line, lines, begunMs: performance.now() };
    this.owner = line.account;
    resolve();
  }

  /** What has been served is over. */
  private charge(): void {
    const { serving } = this;
    this.owner = null;
    this.serving = null;
    if (!serving) return;
    const tookMs = performance.now() - serving.begunMs;
    serving.line.spentMs += tookMs;
    serving.lines.spentMs += tookMs;
  }
}

/** Of the one event loop that there is. */
export const turns = new Turns();
