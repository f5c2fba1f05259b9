/** Subscribers who ask the same, from cursors of their own, quick and slow: all hear all, in order, and most of it together. */
import fc from 'fast-check';
import { buildSchema, type ExecutionArgs, parse } from 'graphql';
import { expect, test } from 'vitest';
import type { Viewer } from '../../src/api/auth.js';
import { subscription } from '../../src/api/subscriptions/loop.js';
import { type Recipient, SharedAnswers } from '../../src/api/subscriptions/shared.js';
import type { FeedBatch } from '../../src/store/feed.js';
import { cases } from '../support/seed.js';

const VIEWER: Viewer = {
  ...{ keyId: 1, sessionId: null, userId: 1, role: 'USER', siteId: null },
  ...{ expiresAtMs: null, actsForUsers: false, onBehalfBy: null },
};
const SCHEMA = buildSchema('type Query { a: Int } type Subscription { jobUpdated: Int }');
const DOCUMENT = parse('subscription { jobUpdated }');
const RESYNC = -1;

/** Events 1, 2, 3 ..., which come in batches. */
class Feed {
  head = 0;
  executed = 0;
  /** How many read it. */
  followers = 0;
  private readonly batches: FeedBatch[] = [];
  private waiting: (() => void)[] = [];
  get cursor(): string {
    return String(this.head);
  }

  happens(count: number): void {
    const events = Array.from({ length: count }, () => ({
      id: ++this.head,
    })) as FeedBatch['events'][number][];
    this.batches.push({ cursor: this.cursor, resync: false, events, jobs: async () => new Map() });
    for (const wake of this.waiting.splice(0)) wake();
  }

  async *follow(after: string | null, signal?: AbortSignal): AsyncGenerator<FeedBatch, void, undefined> {
    let at = Number(after);
    this.followers++;
    try {
      while (!signal?.aborted) {
        const batch = this.batches.find(({ cursor }) => Number(cursor) > at);
        if (batch) {
          const events = batch.events.filter(({ id }) => id > at);
          at = Number(batch.cursor);
          yield { ...batch, events };
        } else
          await new Promise<void>((resolve) => {
            this.waiting.push(resolve);
            signal?.addEventListener('abort', () => resolve());
          });
      }
    } finally {
      this.followers--;
    }
  }

  /** Tells of every event but the seventh ones. */
  walk(from: string, lagMax: number) {
    const update = (cursor: string, told: number) => ({
      cursor,
      jobUpdated: () => {
        this.executed++;
        return told;
      },
    });
    return subscription({ name: 'user 1', rank: 'people' }, this, lagMax, {
      from,
      updates: ({ events }) =>
        events.filter(({ id }) => id % 7 !== 0).map(({ id }) => update(String(id), id)),
      resync: (cursor) => update(cursor, RESYNC),
    });
  }
}

/** One who takes messages as long as nothing holds them. */
class Subscriber {
  readonly heard: number[] = [];
  private take: (() => void) | null = null;
  private isHeld = false;
  private stream: AsyncGenerator<unknown> | null = null;
  ended = false;

  constructor(
    private readonly feed: Feed,
    readonly from: number,
    private readonly lagMax = 1_000_000,
  ) {}

  async follows(answers: SharedAnswers): Promise<void> {
    const recipient: Recipient = {
      outward: (result) => result,
      send: (payload) => {
        // One who has not taken a message is not sent another.
        expect(this.take).toBeNull();
        this.heard.push(JSON.parse(payload).data.jobUpdated);
        if (!this.isHeld) return null;
        return new Promise((resolve) => {
          this.take = resolve;
        });
      },
    };
    const args: ExecutionArgs = {
      ...{ schema: SCHEMA, document: DOCUMENT, variableValues: {}, contextValue: { viewer: VIEWER } },
      subscribeFieldResolver: () => this.feed.walk(String(this.from), this.lagMax),
    };
    this.stream = (await answers.follow('jobUpdated', args, recipient)) as AsyncGenerator<never>;
    void this.stream.next().then(() => {
      this.ended = true;
    });
  }

  holds(isHeld: boolean): void {
    this.isHeld = isHeld;
    if (isHeld) return;
    this.take?.();
    this.take = null;
  }

  async goes(): Promise<void> {
    await this.stream?.return(undefined);
  }
}

const between = (from: number, to: number): number[] =>
  Array.from({ length: to - from }, (_, i) => from + i + 1).filter((id) => id % 7 !== 0);
const settle = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

test('an event is executed once for all who have heard what came before, wherever they began', async () => {
  const feed = new Feed();
  const answers = new SharedAnswers();
  for (const count of [3, 5, 2]) feed.happens(count);
  const all = [0, 1, 4, 8, 10, 10, 10].map((from) => new Subscriber(feed, from));
  for (const one of all) await one.follows(answers);
  await expect.poll(() => feed.followers).toBe(1);
  feed.executed = 0;
  feed.happens(1);
  feed.happens(2);
  await expect.poll(() => all.map(({ heard }) => heard)).toEqual(all.map(({ from }) => between(from, 13)));
  expect(feed.executed).toBe(3);
  // Whoever began goes, and the others go on.
  await all[0]?.goes();
  feed.happens(1);
  feed.happens(1);
  await expect.poll(() => all.at(-1)?.heard.at(-1)).toBe(15);
  expect(all.map(({ ended }) => ended)).toEqual([true, ...Array(6).fill(false)]);
  expect(all.map(({ heard }) => heard.at(-1))).toEqual([13, ...Array(6).fill(15)]);
  for (const one of all) await one.goes();
  await expect.poll(() => feed.followers).toBe(0);
});

test('one who does not take a message keeps nobody waiting, has no other kept for it, and is told when it is too late', async () => {
  const feed = new Feed();
  const answers = new SharedAnswers();
  const [quick, slow, tooSlow] = [1, 2, 3].map(() => new Subscriber(feed, 0, 10)) as [
    Subscriber,
    Subscriber,
    Subscriber,
  ];
  for (const one of [quick, slow, tooSlow]) await one.follows(answers);
  await expect.poll(() => feed.followers).toBe(1);
  slow.holds(true);
  tooSlow.holds(true);
  feed.happens(1);
  await expect.poll(() => quick.heard).toEqual([1]);
  feed.happens(2);
  await expect.poll(() => quick.heard).toEqual([1, 2, 3]);
  expect([slow.heard, tooSlow.heard]).toEqual([[1], [1]]);
  slow.holds(false);
  await expect.poll(() => slow.heard).toEqual([1, 2, 3]);
  while (feed.head < 23) {
    feed.happens(5);
    await expect.poll(() => quick.heard).toEqual(between(0, feed.head));
  }
  tooSlow.holds(false);
  await expect.poll(() => tooSlow.heard).toEqual([1, RESYNC]);
  // All together again.
  await expect.poll(() => feed.followers).toBe(1);
  feed.executed = 0;
  feed.happens(1);
  const last = () => [quick, slow, tooSlow].map(({ heard }) => heard.at(-1));
  await expect.poll(last).toEqual([24, 24, 24]);
  expect(feed.executed).toBe(1);
  for (const one of [quick, slow, tooSlow]) await one.goes();
});

test('whoever comes and goes, is quick or slow, hears everything behind its cursor once and in order', async () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('HAPPENS' as const), count: fc.integer({ min: 1, max: 9 }) }),
    fc.record({ kind: fc.constant('COMES' as const), back: fc.integer({ min: 0, max: 20 }) }),
    fc.record({ kind: fc.constant('HOLDS' as const), who: fc.nat(), isHeld: fc.boolean() }),
    fc.record({ kind: fc.constant('GOES' as const), who: fc.nat() }),
    fc.record({ kind: fc.constant('WAITS' as const), ms: fc.constantFrom(0, 1, 60) }),
  );
  const property = fc.asyncProperty(fc.array(step, { maxLength: 60, size: 'max' }), async (steps) => {
    const feed = new Feed();
    const answers = new SharedAnswers();
    const here: Subscriber[] = [];
    for (const one of steps) {
      const who = 'who' in one ? here[one.who % Math.max(1, here.length)] : undefined;
      if (one.kind === 'HAPPENS') feed.happens(one.count);
      else if (one.kind === 'WAITS') await settle(one.ms);
      else if (one.kind === 'HOLDS') who?.holds(one.isHeld);
      else if (one.kind === 'GOES' && who) {
        await who.goes();
        here.splice(here.indexOf(who), 1);
        expect(who.heard).toEqual(between(who.from, feed.head).slice(0, who.heard.length));
      } else if (one.kind === 'COMES') {
        const subscriber = new Subscriber(feed, Math.max(0, feed.head - one.back));
        await subscriber.follows(answers);
        here.push(subscriber);
      }
    }
    feed.happens(3);
    for (const one of here) one.holds(false);
    await expect
      .poll(() => here.map(({ heard }) => heard))
      .toEqual(here.map(({ from }) => between(from, feed.head)));
    for (const one of here) await one.goes();
  });
  await fc.assert(property, { numRuns: cases(60) });
});
