/**
 * The loop of every subscription. Each subscriber walks along the process's one event feed, which has read the events and
 * their jobs once for all; nothing is kept for a slow one.
 */
import { type Account, turns } from '../../platform/turns.js';
import type { EventFeed, FeedBatch } from '../../store/feed.js';
import type { Cursor } from '../../store/store.js';
import { pulled } from './streams.js';

/** Events are what is told. A cursor is one of the event feed: what is behind it comes from the database, then live. */
export interface Events<T> {
  /** Where the subscriber begins. */
  from: Cursor;
  /** It has been up to date before. */
  upToDate?: boolean;
  /** The updates that a batch of events makes: at once where all that they need has been read for somebody else. */
  updates(batch: FeedBatch): T[] | Promise<T[]>;
  /** What tells a subscriber that events up to this cursor were left out. */
  resync(cursor: Cursor): T;
}

/** Something else is told, of which events only say that there may be more: then it is read from the database, behind a cursor of its own. */
export interface Reading<T> {
  /** Reads on from where it is; `more`: at once. */
  read(): Promise<{ updates: T[]; more: boolean }>;
  /** Whether these events, and those up to a cursor, may mean that there is something to read. */
  concerns(batch: FeedBatch, upTo: Cursor): boolean | Promise<boolean>;
  /** The subscriber has gone. */
  stop?(): void;
}

/** A way along the event feed. */
export class Way {
  /** Called with the cursor when all before it has been told and what comes behind it is waited for; and with null when that is over. */
  onWait: (at: Cursor | null) => void = () => {};
  private batches: AsyncGenerator<FeedBatch, void, undefined>;
  private readonly stop = new AbortController();

  constructor(
    private readonly feed: Pick<EventFeed, 'follow'>,
    private at: Cursor,
  ) {
    this.batches = feed.follow(at, this.stop.signal);
  }

  /** The next batch; null: the feed has ended. */
  async next(): Promise<FeedBatch | null> {
    this.onWait(this.at);
    const { value: batch } = await this.batches.next();
    this.onWait(null);
    if (!batch) return null;
    this.at = batch.cursor;
    return batch;
  }

  skipTo(cursor: Cursor): void {
    void this.batches.return();
    this.at = cursor;
    this.batches = this.feed.follow(cursor, this.stop.signal);
  }

  end(): void {
    this.onWait(null);
    this.stop.abort();
  }
}

/** The updates of a subscription. */
export interface Walk<T> extends AsyncGenerator<T, void, void> {
  /** Of {@link Events}: of two who ask the same and wait at the same place, each will be told what the other is. */
  readonly way?: Way;
  /** Of {@link Events}: the same, from behind one of its updates. */
  behind?(cursor: Cursor): Walk<T>;
}

/**
 * Updates, one after another, until the subscriber goes or the feed ends. A cursor from yesterday is caught up with page by
 * page; who was up to date once and then falls more than `lagMax` events behind is told to query again and goes on from
 * now, as is who comes with a cursor that retention has passed. What is read, looked at and told is in turns of the subscriber's.
 */
export function subscription<T>(
  account: Account,
  feed: Pick<EventFeed, 'cursor' | 'follow'>,
  lagMax: number,
  source: Events<T> | Reading<T>,
): Walk<T> {
  // Followed from before anything is read, so that nothing is missed in between.
  const way = new Way(feed, 'read' in source ? feed.cursor : source.from);
  let unread = 'read' in source;
  let upToDate = 'from' in source && source.upToDate === true;
  let ready: (T | undefined)[] = [];
  let next = 0;
  /** The turn in which the updates were found goes on. */
  let inTurn = false;

  /** The next updates, perhaps none; null: the feed has ended. */
  async function more(): Promise<T[] | null> {
    if (unread && 'read' in source) {
      await turns.turn(account);
      const part = await source.read();
      unread = part.more;
      return part.updates;
    }
    const batch = await way.next();
    if (batch === null) return null;
    await turns.turn(account);
    const { cursor: latest } = feed;
    const lag = Number(latest) - Number(batch.cursor);
    if ('read' in source) {
      unread = batch.resync || (await source.concerns(batch, latest));
      // Reading finds what all the batches in between would tell of.
      if (unread && lag > 0) way.skipTo(latest);
      return [];
    }
    if (batch.resync) return [source.resync(batch.cursor)];
    if (upToDate && lag > lagMax) {
      const { cursor } = feed;
      way.skipTo(cursor);
      return [source.resync(cursor)];
    }
    upToDate ||= lag === 0;
    const updates = source.updates(batch);
    inTurn = Array.isArray(updates);
    return updates;
  }

  const updates = pulled(
    async () => {
      while (next >= ready.length) {
        const found = await more();
        if (found === null) return null;
        ready = found;
        next = 0;
      }
      if (!inTurn) await turns.turn(account);
      inTurn = false;
      const update = ready[next] as T;
      // What was sent need not be remembered.
      ready[next++] = undefined;
      return update;
    },
    () => {
      way.end();
      if ('read' in source) source.stop?.();
    },
  );
  if ('read' in source) return updates;
  const behind = (from: Cursor) => subscription(account, feed, lagMax, { ...source, from, upToDate });
  return { ...updates, way, behind };
}
