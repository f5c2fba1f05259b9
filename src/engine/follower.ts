/**
 * What has to happen after events, wherever these come from: one process at a time reads them behind a durable cursor (`Store.follow`), has
 * them dealt with in order, and moves the cursor. Every worker runs each follower; those that do not hold it ask now and then
 * whether its lease has run out. An event may be dealt with twice, never not at all.
 */
import { type Env, pause } from '../platform/env.js';
import type { EventRow } from '../store/rows.js';
import type { Cursor, EventFilter, Store } from '../store/store.js';
import type { EngineLog, EngineMetrics, Reachable } from './ports.js';

/** What is done behind the events. Both may be called again for the same events, also while another process still is at them. */
export interface Following {
  /** Unique: the cursor is kept under it. */
  readonly name: string;
  /** The events that it wants now; without it, all. */
  wants?(): EventFilter | null;
  /** Deals with a batch. When it throws, the same batch comes again. */
  take(events: readonly EventRow[]): Promise<void>;
  /** Looks at everything as it is now: nobody knows which events were missed. */
  startOver(): Promise<void>;
  /** Called at every look, events or none, for what is due by the clock. */
  tick?(): Promise<void>;
  /** Another process holds it by now, or this one stops: what goes on beside the batches ends. */
  leave?(): Promise<void>;
}

export interface FollowerPace {
  /** Events in one batch at most. */
  batch: number;
  /** Shortest time between two looks, so that events that come one by one go together, ms. */
  gapMs: number;
  /** Longest time between two looks, told of news or not; and the pause after a failure, ms. */
  pollMs: number;
}

export const FOLLOWER_PACE: FollowerPace = { batch: 2_000, gapMs: 10, pollMs: 1_000 };

/** Tells that there may be new events; answers with what ends it. */
export type News = (listener: () => void) => () => void;

export class Follower {
  private readonly stopping = new AbortController();
  private wake = new AbortController();
  private running: Promise<void> | null = null;
  private holds = false;

  constructor(
    private readonly following: Following,
    private readonly parts: {
      store: Pick<Store, 'follow'>;
      /** Of this process. */
      holder: string;
      log: EngineLog;
      metrics: Pick<EngineMetrics, 'followerLagSeconds' | 'followerEvents' | 'followerFailures'>;
      reach: Reachable;
      env: Env;
      /** Epoch seconds. */
      now(): number;
      news?: News | undefined;
      pace?: FollowerPace;
    },
  ) {}

  start(): void {
    const end = this.parts.news?.(() => this.wake.abort());
    this.running = this.run().finally(end);
  }

  /** Resolves when the batch in hand is dealt with. */
  async stop(): Promise<void> {
    this.stopping.abort();
    this.wake.abort();
    await this.running;
    await this.following.leave?.();
  }

  private async run(): Promise<void> {
    const { reach, env, pace = FOLLOWER_PACE } = this.parts;
    const { signal } = this.stopping;
    let after: Cursor | null = null;
    while (!signal.aborted) {
      await reach.when('reached', signal);
      if (signal.aborted) return;
      this.wake = new AbortController();
      let more = false;
      try {
        ({ after, more } = await this.look(after, pace.batch));
      } catch (error) {
        this.failed(error);
        // Whether the cursor has moved, nobody knows here.
        after = null;
        await pause(env, pace.pollMs, signal);
        continue;
      }
      if (more) continue;
      await pause(env, pace.gapMs, signal);
      await pause(env, pace.pollMs, this.holds ? this.wake.signal : signal);
    }
  }

  private async look(after: Cursor | null, limit: number): Promise<{ after: Cursor | null; more: boolean }> {
    const { following, parts } = this;
    const { name } = following;
    const given = await parts.store.follow({
      ...{ name, holder: parts.holder, after, limit },
      only: following.wants?.() ?? null,
    });
    await this.note(given.kind !== 'held');
    if (given.kind === 'held') return { after: null, more: false };
    if (given.kind === 'start-over') {
      parts.log.info({ follower: name, cursor: given.cursor }, 'an event follower starts over');
      await following.startOver();
      return { after: given.cursor, more: true };
    }
    const { events, cursor, more } = given;
    const lagS = events[0] === undefined ? 0 : Math.max(0, parts.now() - events[0].at);
    parts.metrics.followerLagSeconds.set({ follower: name }, lagS);
    if (events.length > 0) {
      await following.take(events);
      parts.metrics.followerEvents.inc({ follower: name }, events.length);
    }
    await following.tick?.();
    return { after: cursor, more };
  }

  private async note(holds: boolean): Promise<void> {
    if (holds === this.holds) return;
    this.holds = holds;
    const { log, holder, metrics } = this.parts;
    const { name: follower } = this.following;
    log.info({ follower, holder }, holds ? 'this process follows the events' : 'another process follows');
    // Whoever holds it tells how far it is behind.
    if (holds) return;
    metrics.followerLagSeconds.remove({ follower });
    await this.following.leave?.();
  }

  private failed(error: unknown): void {
    const { log, metrics } = this.parts;
    const { name: follower } = this.following;
    metrics.followerFailures.inc({ follower });
    log.error({ follower, err: error }, 'an event follower failed; retrying the same events');
  }
}
