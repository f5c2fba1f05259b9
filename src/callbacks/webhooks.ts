/**
 * Delivers events to webhooks. Whichever process holds the follower has a line for each webhook, which reads behind the webhook's own
 * cursor: one that is slow, or was away for a day, is behind for itself. The follower only tells the lines that there is news.
 *
 * A line delivers an event only behind the one before it, and moves the cursor behind each. So whatever happens to processes, an endpoint has every
 * event, and the first copies are in order.
 */
import pLimit, { type LimitFunction } from 'p-limit';
import type { EngineLog, Following } from '../engine/index.js';
import { type Env, pause } from '../platform/env.js';
import type { Metrics } from '../platform/metrics.js';
import { jobPredicate } from '../store/job-filter.js';
import type { Queries } from '../store/queries.js';
import type { EventRow } from '../store/rows.js';
import type { ServedWebhook, Webhook, WebhookBatch, Webhooks } from '../store/webhooks.js';
import { jobMessage, kindOf, missedMessage, type Names, testMessage, toldFields } from './messages.js';
import type { Attempt, Message, Sender } from './sender.js';

/** Events that are read at once for a webhook. */
const BATCH = 200;
/** Requests that are open at once, of all webhooks; a webhook has one. */
const OPEN_MAX = 500;
/** Webhooks that are read for at once. */
const READS_MAX = 4;
/** Between two looks at which webhooks there are, and between two records of how far those are that got nothing, seconds. */
const LOOK_EVERY_S = 2;
const RECORD_EVERY_S = 60;
/** After the first failure, and the most, seconds; twice as long each time. Somewhat less by chance, so that not all come at once. */
const FIRST_PAUSE_S = 5;
const LONGEST_PAUSE_S = 3_600;
const SPREAD = 0.2;
/** After an error of ours, ms. */
const ERROR_PAUSE_MS = 1_000;
/** For what is under way when the process stops, ms; what is cut off is sent again. */
const GRACE_MS = 2_000;

export interface WebhookParts {
  webhooks: Webhooks;
  queries: Pick<Queries, 'jobs' | 'sitesByIds' | 'usersByIds'>;
  sender: Pick<Sender, 'send'>;
  log: EngineLog;
  metrics: Pick<Metrics, 'webhooks' | 'webhookLagSeconds' | 'webhookDeliveries' | 'webhookSeconds'>;
  env: Env;
  /** Epoch seconds. */
  now(): number;
  /** An endpoint that has failed for so long is given up, seconds. */
  giveUpS: number;
  /** Of this service: the `source` of its events. */
  source(): Promise<string>;
}

/** How long to wait after so many failures in a row, seconds. `chance`: 0 to 1. */
export function pauseAfter(failures: number, chance: number): number {
  const longest = Math.min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** Math.min(failures - 1, 30));
  return longest * (1 - SPREAD * chance);
}

export function webhookFollowing(parts: WebhookParts): Following {
  const { webhooks, now } = parts;
  const lines = new Map<number, Line>();
  const shared = { ...parts, open: pLimit(OPEN_MAX), reads: pLimit(READS_MAX) };
  let lookedAt = Number.NEGATIVE_INFINITY;
  let recordedAt = now();

  async function look(): Promise<void> {
    lookedAt = now();
    const served = await webhooks.served();
    const known = new Set(served.map(({ id }) => id));
    for (const [id, line] of lines)
      if (!known.has(id)) {
        lines.delete(id);
        void line.stop();
      }
    for (const one of served) {
      const line = lines.get(one.id);
      if (line) line.learn(one);
      else lines.set(one.id, new Line(one, shared));
    }
    const failing = [...lines.values()].filter((line) => line.isFailing);
    parts.metrics.webhooks.set({ state: 'failing' }, failing.length);
    parts.metrics.webhooks.set({ state: 'current' }, lines.size - failing.length);
    parts.metrics.webhooks.set({ state: 'disabled' }, await webhooks.disabled());
    parts.metrics.webhookLagSeconds.set(Math.max(0, ...[...lines.values()].map((line) => line.lagS)));
    if (Math.abs(now() - recordedAt) < RECORD_EVERY_S) return;
    recordedAt = now();
    await webhooks.passed([...lines.values()].flatMap((line) => line.passed()));
  }

  return {
    name: 'webhooks',
    // Nobody is there to be told of more.
    wants: () => (lines.size === 0 ? { kinds: ['USER'] } : null),
    async take(events) {
      // Those that are missing are looked for now, so that what follows passes none.
      if (lookedAt === Number.NEGATIVE_INFINITY) await look();
      const owners = new Set(events.filter(({ seq }) => seq !== null).map(({ userId }) => userId));
      const last = (events.at(-1) as EventRow).id;
      for (const line of lines.values()) line.hear(owners, last);
      // A user may have been made active or not, or have another role.
      if (events.some(({ kind }) => kind === 'USER')) await look();
    },
    async startOver() {
      await look();
      for (const line of lines.values()) line.wake();
    },
    async tick() {
      if (Math.abs(now() - lookedAt) >= LOOK_EVERY_S) await look();
    },
    async leave() {
      const stopping = [...lines.values()];
      lines.clear();
      lookedAt = Number.NEGATIVE_INFINITY;
      parts.metrics.webhooks.reset();
      parts.metrics.webhookLagSeconds.reset();
      await Promise.all(stopping.map((line) => line.stop()));
    },
  };
}

/** One message to one webhook, on behalf of its owner, beside the events. null: there is no such webhook. */
export function webhookTester(
  parts: Pick<WebhookParts, 'webhooks' | 'sender' | 'now' | 'source'>,
): (id: number) => Promise<Attempt | null> {
  return async (id) => {
    const now = parts.now();
    const webhook = await parts.webhooks.find(id, now);
    if (webhook === null) return null;
    const message = testMessage(id, await parts.source(), now);
    return parts.sender.send(webhook, message, now, new AbortController().signal);
  };
}

/** What is delivered to one webhook, one after the other. */
class Line {
  /** Everything up to here is delivered, or not for this webhook. */
  private cursor: number;
  private known: ServedWebhook;
  /** There may be something behind the cursor. */
  private news = true;
  private busy = false;
  private readonly stopping = new AbortController();
  private readonly cutting = new AbortController();
  private waking = new AbortController();
  private readonly running: Promise<void>;

  constructor(
    served: ServedWebhook,
    private readonly parts: WebhookParts & { open: LimitFunction; reads: LimitFunction },
  ) {
    this.known = served;
    this.cursor = served.cursor;
    this.running = this.run();
  }

  get isFailing(): boolean {
    return this.known.failures > 0;
  }

  private get isIdle(): boolean {
    return !this.news && !this.busy;
  }

  get lagS(): number {
    const { behindSince } = this.known;
    return behindSince === null ? 0 : this.parts.now() - behindSince;
  }

  /** As it is in the database: people may have changed it. */
  learn(served: ServedWebhook): void {
    const changed = served.version !== this.known.version || served.seesAll !== this.known.seesAll;
    if (!changed) return;
    this.known = served;
    this.wake();
  }

  /** Events up to `last` were committed, of jobs of these users. */
  hear(owners: ReadonlySet<number | null>, last: number): void {
    if (this.known.seesAll ? owners.size > 0 : owners.has(this.known.userId)) this.wake();
    // All before was looked at, and nothing since was for it.
    else if (this.isIdle) this.cursor = Math.max(this.cursor, last);
  }

  wake(): void {
    this.news = true;
    this.waking.abort();
  }

  /** How far it is, where that is not recorded yet. */
  passed(): { id: number; cursor: number }[] {
    return this.isIdle ? [{ id: this.known.id, cursor: this.cursor }] : [];
  }

  /** What is under way may end for a moment. */
  async stop(): Promise<void> {
    this.stopping.abort();
    this.waking.abort();
    const cancel = this.parts.env.after(GRACE_MS, () => this.cutting.abort());
    await this.running;
    cancel();
  }

  private async run(): Promise<void> {
    const { env, log } = this.parts;
    const { signal } = this.stopping;
    while (!signal.aborted) {
      this.waking = new AbortController();
      const waitS = (this.known.nextAttemptAt ?? 0) - this.parts.now();
      if (!this.news || waitS > 0) {
        const waitMs = this.news ? Math.min(waitS, LONGEST_PAUSE_S) * 1000 : LONGEST_PAUSE_S * 1000;
        await pause(env, waitMs, this.waking.signal);
        continue;
      }
      this.news = false;
      this.busy = true;
      try {
        if (!(await this.round())) this.news = true;
      } catch (error) {
        this.news = true;
        const { id } = this.known;
        log.warn(
          { webhook: id, err: error },
          'delivery to a webhook failed within the service; trying again',
        );
        await pause(env, ERROR_PAUSE_MS, signal);
      }
      this.busy = false;
    }
  }

  /** Answers false where it is to be looked at again. */
  private async round(): Promise<boolean> {
    const { webhooks, reads, env, now } = this.parts;
    const batch = await reads(() => webhooks.next(this.known.id, this.cursor, BATCH, now()));
    if (batch === null) {
      // Nothing is to be sent now. Whoever looks at which webhooks there are ends this line, unless that has changed again.
      await pause(env, ERROR_PAUSE_MS, this.stopping.signal);
      return false;
    }
    this.known = batch.webhook;
    // Another process has tried meanwhile.
    if ((this.known.nextAttemptAt ?? 0) > now()) return false;
    return (await this.deliver(batch)) && !batch.more;
  }

  /** Answers false where it is to be looked at again. */
  private async deliver(batch: WebhookBatch): Promise<boolean> {
    const { webhook, missedTo } = batch;
    const source = await this.parts.source();
    if (missedTo !== null) {
      const missed = missedMessage(webhook.id, source, this.cursor, missedTo, this.parts.now());
      if (!(await this.send(webhook, missed, missedTo, this.parts.now()))) return false;
    }
    for (const { event, message } of await this.messages(batch, source)) {
      if (this.stopping.signal.aborted) return true;
      if (!(await this.send(webhook, message, event.id, event.at))) return false;
    }
    this.cursor = Math.max(this.cursor, batch.cursor);
    return true;
  }

  private async messages(
    { webhook, events }: WebhookBatch,
    source: string,
  ): Promise<{ event: EventRow; message: Message }[]> {
    const { queries } = this.parts;
    const kinds = new Set(webhook.kinds);
    const wanted = events.filter((event) => kinds.size === 0 || kinds.has(kindOf(event)));
    if (wanted.length === 0) return [];
    const ids = [...new Set(wanted.map(({ entityId }) => entityId))];
    const page = { order: 'SUBMITTED', direction: 'ASC', backward: false, from: null } as const;
    const found = await queries.jobs({ ids }, { ...page, limit: ids.length }, toldFields);
    const jobs = new Map(found.map((job) => [job.id, job]));
    const isMeant = jobPredicate(webhook.filter);
    const pairs = wanted.flatMap((event) => {
      const job = jobs.get(event.entityId);
      return job && isMeant(job, event) ? [{ event, job }] : [];
    });
    const names = await namesOf(
      queries,
      pairs.map(({ job }) => job.userId),
      pairs.flatMap(({ event, job }) => [event.siteId, job.siteId]),
    );
    return pairs.map(({ event, job }) => ({
      event,
      message: jobMessage(webhook.id, source, event, job, names),
    }));
  }

  /** Answers false where it failed, or something has changed: the rest is looked at again. */
  private async send(
    webhook: Webhook,
    message: Message,
    cursor: number,
    happenedAt: number,
  ): Promise<boolean> {
    const { sender, open, metrics, webhooks } = this.parts;
    const attempt = await open(() => sender.send(webhook, message, this.parts.now(), this.cutting.signal));
    // Cut off, not failed: it is sent again.
    if (!attempt.ok && this.cutting.signal.aborted) return false;
    metrics.webhookDeliveries.inc({ outcome: attempt.ok ? 'delivered' : 'failed' });
    metrics.webhookSeconds.observe(attempt.tookMs / 1000);
    if (!attempt.ok) {
      await this.failed(webhook, attempt, happenedAt);
      return false;
    }
    this.cursor = cursor;
    this.known = { ...this.known, failures: 0, behindSince: null, nextAttemptAt: null };
    return webhooks.delivered(webhook, cursor, this.parts.now(), attempt.status);
  }

  private async failed(
    webhook: Webhook,
    { reason, gone, retryAfterS }: Attempt & { ok: false },
    behindSince: number,
  ): Promise<void> {
    const { webhooks, log, env, giveUpS } = this.parts;
    const at = this.parts.now();
    const failures = webhook.failures + 1;
    const pauseS = Math.max(pauseAfter(failures, env.random()), Math.min(retryAfterS ?? 0, LONGEST_PAUSE_S));
    const attempt = { at, reason, behindSince, nextAttemptAt: at + pauseS };
    if (!(await webhooks.failed(webhook, attempt))) return;
    this.known = { ...this.known, ...attempt, failures };
    const failedForS = at - (webhook.failingSince ?? at);
    if (!gone && failedForS < giveUpS) return;
    const why = gone
      ? 'the endpoint responded with 410 Gone'
      : `nothing could be delivered for ${Math.floor(failedForS / 3600)} hours; last error: ${reason}`;
    log.warn({ webhook: webhook.id, why }, 'a webhook was disabled');
    await webhooks.disable(webhook, why);
  }
}

async function namesOf(
  queries: WebhookParts['queries'],
  userIds: readonly number[],
  siteIds: readonly (number | null)[],
): Promise<Names> {
  const [users, sites] = await Promise.all([
    queries.usersByIds([...new Set(userIds)]),
    queries.sitesByIds([...new Set(siteIds)].filter((id) => id !== null)),
  ]);
  const userNames = new Map(users.map(({ id, name }) => [id, name]));
  const siteNames = new Map(sites.map(({ id, name }) => [id, name]));
  return { user: (id) => userNames.get(id) as string, site: (id) => siteNames.get(id) as string };
}
