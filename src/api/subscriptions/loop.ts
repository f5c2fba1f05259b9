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
): AsyncGenerator<T, void, void> {
  const stop = new AbortController();
  // Followed from before anything is read, so that nothing is missed in between.
  let batches = feed.follow('read' in source ? feed.cursor : source.from, stop.signal);
  let unread = 'read' in source;
  let upToDate = false;
  let ready: (T | undefined)[] = [];
  let next = 0;
  /** The turn in which the updates were found goes on. */
  let inTurn = false;
  const skipTo = (cursor: Cursor): void => {
    void batches.return();
    batches = feed.follow(cursor, stop.signal);
  };

  /** The next updates, perhaps none; null: the feed has ended. */
  async function more(): Promise<T[] | null> {
    if (unread && 'read' in source) {
      await turns.turn(account);
      const part = await source.read();
      unread = part.more;
      return part.updates;
    }
    const { value: batch, done } = await batches.next();
    if (done || !batch) return null;
    await turns.turn(account);
    const { cursor: latest } = feed;
    const lag = Number(latest) - Number(batch.cursor);
    if ('read' in source) {
      unread = batch.resync || (await source.concerns(batch, latest));
      // Reading finds what all the batches in between would tell of.
      if (unread && lag > 0) skipTo(latest);
      return [];
    }
    if (batch.resync) return [source.resync(batch.cursor)];
    if (upToDate && lag > lagMax) {
      const { cursor } = feed;
      skipTo(cursor);
      return [source.resync(cursor)];
    }
    upToDate ||= lag === 0;
    const updates = source.updates(batch);
    inTurn = Array.isArray(updates);
    return updates;
  }

  return pulled(
    async () => {
      while (next >= ready.length) {
        const updates = await more();
        if (updates === null) return null;
        ready = updates;
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
      stop.abort();
      if ('read' in source) source.stop?.();
    },
  );
}
