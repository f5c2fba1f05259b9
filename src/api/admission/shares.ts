/**
 * What each user has of an API process: requests in a while and at the same time, cost in a minute, subscriptions, connections. And
 * what all have together: memory. An agent's key is for a site, so each is counted by itself.
 *
 * Addresses that come without a good key have a small allowance of their own, so that keys cannot be guessed by trying.
 */
import { getHeapStatistics } from 'node:v8';
import { BurstyRateLimiter, RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { Limits } from '../../platform/limits.js';
import type { Strangers, Viewer } from '../auth.js';
import { ApiError, refusedRequest } from '../errors.js';
import type { UserLimitName } from '../generated/resolvers-types.js';
import { Budget, busy, type Memory, UNCOUNTED } from './budget.js';
import { inTurn } from './turns.js';

/** The part of the heap that requests, their answers and messages may need; the rest is for all else. */
const HEAP_SHARE = 1 / 4;
/** What a byte of a request needs until it has been worked on: as text, as values, and as what is made of them. */
const BODY_FACTOR = 4;
/** What explaining costs, per millisecond: about as many objects could have been read meanwhile. */
const COST_PER_MS = 400;
const COST_PERIOD_S = 60;

/** How much of something a user has, and may have. */
export interface Use {
  name: UserLimitName;
  used: number;
  allowed: number;
}

/** A request that was let in. */
export interface Permit {
  /** For the operation of the request. */
  budget: Budget;
  /** The request has been answered, or given up. May be called again. */
  close(): void;
}

export interface Shares {
  /** One request. Throws RATE_LIMITED. */
  request(viewer: Viewer): Promise<void>;
  /** Lets a request in that brings so many bytes. Throws RATE_LIMITED or UNAVAILABLE. */
  enter(viewer: Viewer, bytes: number): Permit;
  /** One more subscription or connection. Throws LIMIT_EXCEEDED; otherwise gives what ends it. */
  open(viewer: Viewer, what: 'subscriptions' | 'connections'): () => void;
  /** A budget for an update of a subscription: its memory is that of the connection. */
  update(): Budget;
  readonly strangers: Strangers;
  /**
   * Runs a long computation when it is the viewer's turn: one at a time in the process, and a turn of the event loop between any two.
   * Throws when the operation goes no further.
   */
  explain<T>(by: { viewer: Viewer; budget: Budget }, work: () => Promise<T>): Promise<T>;
  readonly memory: Memory;
  /** What the viewer has in this process. */
  uses(viewer: Viewer): Promise<Use[]>;
}

/** By whom shares are counted. */
const holderOf = ({ role, keyId, userId }: Viewer): string =>
  role === 'AGENT' ? `key ${keyId}` : `user ${userId}`;

export function createShares(limits: Limits): Shares {
  const { requestsPerSecond, requestsBurst } = limits;
  const second = new RateLimiterMemory({ keyPrefix: 'second', points: requestsPerSecond, duration: 1 });
  const burst = new RateLimiterMemory({
    keyPrefix: 'burst',
    points: requestsBurst,
    duration: Math.max(1, Math.ceil(requestsBurst / requestsPerSecond)),
  });
  const requests = new BurstyRateLimiter(second, burst);
  const cost = new RateLimiterMemory({
    keyPrefix: 'cost',
    points: limits.costPerMinute,
    duration: COST_PERIOD_S,
  });
  const strangers = new RateLimiterMemory({
    keyPrefix: 'address',
    points: limits.strangersPerMinute,
    duration: 60,
  });
  const memory = createMemory(getHeapStatistics().heap_size_limit * HEAP_SHARE);
  const turns = inTurn();
  const open = { requests: new Counter(), subscriptions: new Counter(), connections: new Counter() };
  const most = { subscriptions: limits.subscriptionsOpen, connections: limits.socketsOpen } as const;

  /** Takes what has been used already: the next request is told. */
  const spend = (holder: string, points: number): void => {
    if (points > 0) cost.penalty(holder, Math.ceil(points)).catch(() => {});
  };

  return {
    memory,
    async request(viewer) {
      const holder = holderOf(viewer);
      const spent = await cost.get(holder);
      if (spent && spent.consumedPoints > limits.costPerMinute) {
        throw tooMany(spent, `the queries of this user cost more than ${limits.costPerMinute} in a minute`);
      }
      await take(requests, holder, 'too many requests');
    },
    enter(viewer, bytes) {
      const holder = holderOf(viewer);
      if (open.requests.of(holder) >= limits.requestsOpen) {
        throw tooMany(
          { msBeforeNext: 1_000 },
          `this user already has ${limits.requestsOpen} requests in progress, which is the limit`,
        );
      }
      const reserved = bytes * BODY_FACTOR;
      if (!memory.take(reserved)) throw busy('its memory is in use by other requests');
      open.requests.change(holder, 1);
      const budget = new Budget(limits, memory);
      let isOpen = true;
      return {
        budget,
        close() {
          if (!isOpen) return;
          isOpen = false;
          open.requests.change(holder, -1);
          memory.give(reserved);
          budget.close();
          spend(holder, budget.cost.objects);
        },
      };
    },
    open(viewer, what) {
      const holder = holderOf(viewer);
      const max = most[what];
      if (open[what].of(holder) >= max) {
        throw new ApiError('LIMIT_EXCEEDED', `this user already has ${max} ${what}, which is the limit`);
      }
      open[what].change(holder, 1);
      let isOpen = true;
      return () => {
        if (isOpen) open[what].change(holder, -1);
        isOpen = false;
      };
    },
    update: () => new Budget(limits, UNCOUNTED),
    strangers: {
      async check(address) {
        const counted = await strangers.get(address);
        if (counted && counted.remainingPoints <= 0) {
          throw tooMany(counted, 'too many API keys that are not accepted were tried from this address');
        }
      },
      count: (address) => void strangers.penalty(address).catch(() => {}),
    },
    explain({ viewer, budget }, work) {
      const holder = holderOf(viewer);
      return turns(holder, budget.signal, async () => {
        const started = performance.now();
        try {
          return await work();
        } finally {
          spend(holder, (performance.now() - started) * COST_PER_MS);
        }
      });
    },
    async uses(viewer) {
      const holder = holderOf(viewer);
      const [spent, asked] = await Promise.all([cost.get(holder), second.get(holder)]);
      return [
        { name: 'REQUESTS_PER_SECOND', used: asked?.consumedPoints ?? 0, allowed: requestsPerSecond },
        { name: 'OPEN_REQUESTS', used: open.requests.of(holder), allowed: limits.requestsOpen },
        { name: 'COST_PER_MINUTE', used: spent?.consumedPoints ?? 0, allowed: limits.costPerMinute },
        { name: 'SUBSCRIPTIONS', used: open.subscriptions.of(holder), allowed: limits.subscriptionsOpen },
        { name: 'CONNECTIONS', used: open.connections.of(holder), allowed: limits.socketsOpen },
      ];
    },
  };
}

/** How many of something each has. */
export class Counter {
  private readonly counts = new Map<string, number>();
  of(holder: string): number {
    return this.counts.get(holder) ?? 0;
  }
  change(holder: string, by: 1 | -1): void {
    const count = this.of(holder) + by;
    if (count > 0) this.counts.set(holder, count);
    else this.counts.delete(holder);
  }
}

/** One that has nothing else beside it may take more than there is: it has to be possible at some time. */
function createMemory(total: number): Memory {
  let used = 0;
  return {
    take(bytes) {
      if (used > 0 && used + bytes > total) return false;
      used += bytes;
      return true;
    },
    give(bytes) {
      used -= bytes;
    },
  };
}

async function take(limiter: Pick<RateLimiterMemory, 'consume'>, key: string, why: string): Promise<void> {
  try {
    await limiter.consume(key);
  } catch (error) {
    throw error instanceof RateLimiterRes ? tooMany(error, why) : error;
  }
}

function tooMany({ msBeforeNext }: { msBeforeNext: number }, why: string): ApiError {
  const seconds = Math.max(0.001, msBeforeNext / 1000);
  return refusedRequest(
    'RATE_LIMITED',
    `${why}; try again in ${seconds.toFixed(1)} s`,
    { retryAfterS: seconds },
    { 'retry-after': String(Math.ceil(seconds)) },
  );
}
