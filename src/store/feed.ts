/**
 * Events as they happen, for any number of subscribers of this process, at the cost of one reader.
 *
 * The reader is woken by LISTEN, and by a poll in case a notification was lost with its connection. What it reads goes into a
 * ring of recent batches. A follower walks along the ring by its own cursor: who is a little behind finds the batch
 * there, who is behind the ring reads pages from Postgres, and who is behind what Postgres keeps is told to query again.
 * So a slow follower costs nobody else anything, and nothing is kept for it.
 */
import { LRUCache } from 'lru-cache';
import { turns } from '../platform/turns.js';
import { EventBell } from './bell.js';
import type { Queries } from './queries.js';
import type { EventRow, JobRow } from './rows.js';
import type { Cursor } from './store.js';

/** What happened. */
export interface FeedBatch {
  /** Behind its last event. */
  cursor: Cursor;
  /** The cursor asked for was too old: events were left out. Then there are none in this batch, and the feed goes on from `cursor`. */
  resync: boolean;
  events: readonly EventRow[];
  /**
   * The rows of the jobs that the events are about, by id, as they are when somebody first asks: read once for all followers, and not
   * at all when nobody asks.
   */
  jobs(): Promise<ReadonlyMap<number, JobRow>>;
}

export interface FeedOptions {
  /** Connection string, for the connection that listens. */
  url: string;
  /** Events of one batch. */
  batch?: number;
  /** Events kept in memory. */
  ring?: number;
  /** Longest time between two looks, notified or not. */
  pollMs?: number;
  /** Told of what went wrong; the feed goes on by itself. */
  onError?: (error: unknown) => void;
}

/** Pages behind the ring that are remembered, and for how long: whoever replays the same events comes for the same pages. */
const PAGES_KEPT = 8;
const PAGE_MS = 5_000;

interface Entry {
  /** The cursor in front of its first event. */
  from: number;
  to: number;
  batch: FeedBatch;
}

export class EventFeed {
  private readonly batchSize: number;
  private readonly ringSize: number;
  private readonly pollMs: number;
  private readonly ring: Entry[] = [];
  private ringEvents = 0;
  private readonly pages = new LRUCache<number, Promise<FeedBatch | null>>({ max: PAGES_KEPT, ttl: PAGE_MS });
  /** Everything up to it is in the ring, or has been. */
  private head = 0;
  /** What wakes those who wait for news. */
  private readonly waiting = new Set<() => void>();
  private life: 'new' | 'running' | 'stopped' = 'new';
  private readonly bell: EventBell;
  private reader: Promise<void> | null = null;
  private wakeReader: () => void = () => {};
  private woken = false;

  constructor(
    private readonly queries: Pick<Queries, 'events' | 'jobsByIds' | 'latestCursor'>,
    private readonly options: FeedOptions,
  ) {
    this.batchSize = options.batch ?? 2_000;
    this.ringSize = options.ring ?? 10_000;
    this.pollMs = options.pollMs ?? 1_000;
    this.bell = new EventBell(options);
    this.bell.listen(() => {
      this.woken = true;
      this.wakeReader();
    });
  }

  /** What processes say to one another, as the bell has it. */
  get words(): Pick<EventBell, 'hear' | 'say'> {
    return this.bell;
  }

  /** Everything up to this cursor has been read. */
  get cursor(): Cursor {
    return String(this.head);
  }

  /** Begins behind the latest event. Throws when the database cannot be reached. */
  async start(): Promise<void> {
    if (this.life !== 'new') throw new Error(`the feed is ${this.life}; it can be started only once`);
    this.head = Number(await this.queries.latestCursor());
    this.life = 'running';
    await this.bell.start();
    this.reader = this.readOn();
  }

  /** Ends the reader and every follower. */
  async stop(): Promise<void> {
    this.life = 'stopped';
    this.wakeReader();
    this.wakeAll();
    await this.reader;
    await this.bell.stop();
  }

  /**
   * Batches of events behind a cursor (null: from now on), in order, without gap or repeat, until the signal or the feed's end. Throws
   * what the database throws when this follower has to read from it.
   */
  async *follow(after: Cursor | null, signal?: AbortSignal): AsyncGenerator<FeedBatch, void, undefined> {
    let at = after === null ? this.head : Number(after);
    let wake = (): void => {};
    // Once for all its waits: a thousand followers wait for each event.
    const aborted = (): void => {
      this.waiting.delete(wake);
      wake();
    };
    signal?.addEventListener('abort', aborted);
    try {
      while (this.life === 'running' && !signal?.aborted) {
        if (at >= this.head) {
          await new Promise<void>((resolve) => {
            wake = resolve;
            this.waiting.add(resolve);
          });
          continue;
        }
        const batch = this.fromRing(at) ?? (await this.page(at));
        if (batch === null) {
          // Behind all that is kept; our own reader may be, too.
          at = Number(await this.queries.latestCursor());
          yield { cursor: String(at), resync: true, events: [], jobs: async () => new Map() };
          continue;
        }
        at = Number(batch.cursor);
        if (batch.events.length > 0) yield batch;
      }
    } finally {
      signal?.removeEventListener('abort', aborted);
    }
  }

  /** The head has moved, or the feed ends. */
  private wakeAll(): void {
    const woken = [...this.waiting];
    this.waiting.clear();
    for (const wake of woken) wake();
  }

  /** The batch that goes on from there; its part, where the cursor is in the middle of one. null: not in the ring. */
  private fromRing(at: number): FeedBatch | null {
    const first = this.ring[0];
    if (first === undefined || at < first.from) return null;
    let low = 0;
    let high = this.ring.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.ring[middle] as Entry).from <= at) low = middle;
      else high = middle - 1;
    }
    const entry = this.ring[low] as Entry;
    if (entry.from === at) return entry.batch;
    return { ...entry.batch, events: entry.batch.events.filter((event) => event.id > at) };
  }

  /** The same as `load`, once for all who come for it at about the same time. */
  private page(at: number): Promise<FeedBatch | null> {
    const known = this.pages.get(at);
    if (known) return known;
    const page = this.load(at);
    this.pages.set(at, page);
    const forget = () => void this.pages.delete(at);
    // What is as far as there is anything may go further the next time.
    page.then((batch) => {
      if (batch === null || batch.events.length < this.batchSize) forget();
    }, forget);
    return page;
  }

  /** Behind a cursor, from Postgres. null: retention has passed it. */
  private async load(at: number): Promise<FeedBatch | null> {
    const events = await this.queries.events(String(at), null, this.batchSize);
    if (events === 'too-old') return null;
    let rows: Promise<ReadonlyMap<number, JobRow>> | null = null;
    const readJobs = async () => {
      const ids = new Set(events.filter((event) => event.seq !== null).map((event) => event.entityId));
      return new Map((await this.queries.jobsByIds([...ids])).map((job) => [job.id, job]));
    };
    return {
      // Without events: what lies between is gone, or was never committed.
      cursor: String(events.at(-1)?.id ?? Math.max(at, this.head)),
      resync: false,
      events,
      jobs: () => {
        rows ??= turns.apart(readJobs).catch((error: unknown) => {
          rows = null;
          throw error;
        });
        return rows;
      },
    };
  }

  private async readOn(): Promise<void> {
    while (this.life === 'running') {
      this.woken = false;
      try {
        const from = this.head;
        const batch = await this.load(from);
        if (batch === null) {
          // This very process was away for longer than events are kept.
          this.ring.length = 0;
          this.ringEvents = 0;
          this.head = Number(await this.queries.latestCursor());
          this.wakeAll();
        } else if (batch.events.length > 0) {
          this.append(from, batch);
          this.wakeAll();
          if (batch.events.length === this.batchSize) continue;
        }
      } catch (error) {
        this.options.onError?.(error);
      }
      if (!this.woken && this.life === 'running') await this.pause();
    }
  }

  private append(from: number, batch: FeedBatch): void {
    const to = Number(batch.cursor);
    this.ring.push({ from, to, batch });
    this.ringEvents += batch.events.length;
    while (this.ringEvents > this.ringSize && this.ring.length > 1) {
      this.ringEvents -= (this.ring.shift() as Entry).batch.events.length;
    }
    this.head = to;
  }

  /** Until a notification, the next poll, or the end. */
  private pause(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, this.pollMs);
      this.wakeReader = () => {
        this.woken = true;
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
