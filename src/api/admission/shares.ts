/**
 * What each user has of an API process: requests in a while and at the same time, cost in a minute, subscriptions. What there is of memory
 * and connections is shared out (platform/shared.ts), as are statements (store/pool.ts) and the time of the event loop
 * (platform/turns.ts). An agent's key is for a site, so each is counted by itself.
 *
 * Addresses that come without a good key have a small allowance of their own, so that keys cannot be guessed by trying.
 */
import { getHeapStatistics } from 'node:v8';
import { BurstyRateLimiter, RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { Limits } from '../../platform/limits.js';
import { Shared } from '../../platform/shared.js';
import { type Account, type Rank, turns } from '../../platform/turns.js';
import type { Strangers, Viewer } from '../auth.js';
import { ApiError, refusedRequest } from '../errors.js';
import type { UserLimitName, UserRole } from '../generated/types.js';
import { Budget, busy, type Memory, UNCOUNTED } from './budget.js';

/** The part of the heap that requests, their answers and messages may need; the rest is for all else. */
const HEAP_SHARE = 1 / 2;
const COST_PERIOD_S = 60;
/** So many addresses may each try as many passwords for a user name as one may. */
const ADDRESSES = 6;

/** How much of something a user has, and may have. */
export interface Use {
  name: UserLimitName;
  used: number;
  allowed: number;
}

/** Wrong passwords, by the user name that they were tried for. */
export interface PasswordTries {
  /** Throws RATE_LIMITED after too many from the address and, unless the address is known to be the user's, after too many from all. */
  check(name: string, address: string, isKnown: boolean): Promise<void>;
  /** Another one. Whether it is the last that is looked at for a while. */
  count(name: string, address: string): Promise<boolean>;
}

/** A request that was let in. */
export interface Permit {
  /** For the operation of the request. */
  budget: Budget;
  account: Account;
  /** The request has been answered, or given up. May be called again. */
  close(): void;
}

export interface Shares {
  /** One request. Throws RATE_LIMITED. */
  request(viewer: Viewer): Promise<void>;
  /** Lets a request in. Throws RATE_LIMITED. */
  enter(viewer: Viewer): Permit;
  /** One more subscription or connection. Throws LIMIT_EXCEEDED or UNAVAILABLE; otherwise gives what ends it. */
  open(viewer: Viewer, what: 'subscriptions' | 'connections'): () => void;
  /** A budget for an update of a subscription: its memory is that of the connection. */
  update(): Budget;
  readonly strangers: Strangers;
  readonly passwords: PasswordTries;
  /** Runs a long computation in a turn of the viewer's own. Throws when the operation goes no further. */
  explain<T>(by: { viewer: Viewer; budget: Budget }, work: () => Promise<T>): Promise<T>;
  /** A budget for a message over a WebSocket, while it comes in and is parsed. */
  message(viewer: Viewer): Budget;
  /** What the viewer has in this process. */
  uses(viewer: Viewer): Promise<Use[]>;
}

const RANKS: Readonly<Record<UserRole, Rank>> = {
  AGENT: 'agents',
  OPERATOR: 'operators',
  ADMIN: 'operators',
  USER: 'people',
  PEER: 'people',
};

/** On whose account it goes what is done for a viewer. */
export const accountOf = ({ role, keyId, userId }: Viewer): Account => ({
  name: role === 'AGENT' ? `key ${keyId}` : `user ${userId}`,
  rank: RANKS[role],
});
const holderOf = (viewer: Viewer): string => accountOf(viewer).name;

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: its short functions share its state
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
  // A single address cannot keep others from trying.
  const [perAddress, perName] = [limits.passwordsPerMinute, limits.passwordsPerMinute * ADDRESSES];
  const triesOf = (keyPrefix: string, points: number) =>
    new RateLimiterMemory({ keyPrefix, points, duration: 60 });
  const [ofAddress, ofName] = [triesOf('tries', perAddress), triesOf('name', perName)];
  const bytes = new Shared(getHeapStatistics().heap_size_limit * HEAP_SHARE);
  const connections = new Shared(limits.connectionsMax);
  const open = { requests: new Counter(), subscriptions: new Counter(), connections: new Counter() };
  const most = { subscriptions: limits.subscriptionsOpen, connections: limits.socketsOpen } as const;

  const memory = (account: Account): Memory => ({
    take: (amount) => bytes.take(account, amount),
    give: (amount) => bytes.give(account, amount),
  });

  /** Takes what has been used already: the next request is told. */
  const spend = (holder: string, points: number): void => {
    if (points > 0) cost.penalty(holder, Math.ceil(points)).catch(() => {});
  };

  return {
    async request(viewer) {
      const holder = holderOf(viewer);
      const spent = await cost.get(holder);
      if (spent && spent.consumedPoints > limits.costPerMinute) {
        throw tooMany(spent, `the queries of this user cost more than ${limits.costPerMinute} per minute`);
      }
      await take(requests, holder, 'too many requests');
    },
    enter(viewer) {
      const account = accountOf(viewer);
      const holder = account.name;
      if (open.requests.of(holder) >= limits.requestsOpen) {
        throw tooMany(
          { msBeforeNext: 1_000 },
          `this user already has ${limits.requestsOpen} requests in progress, which is the limit`,
        );
      }
      open.requests.change(holder, 1);
      const budget = new Budget(limits, memory(account));
      let isOpen = true;
      return {
        budget,
        account,
        close() {
          if (!isOpen) return;
          isOpen = false;
          open.requests.change(holder, -1);
          budget.close();
          spend(holder, budget.cost.objects);
        },
      };
    },
    open(viewer, what) {
      const account = accountOf(viewer);
      const holder = account.name;
      const max = most[what];
      if (open[what].of(holder) >= max) {
        throw new ApiError('LIMIT_EXCEEDED', `this user already has ${max} ${what}, which is the limit`);
      }
      if (what === 'connections' && !connections.take(account, 1))
        throw busy('all connections are in use by other users');
      open[what].change(holder, 1);
      let isOpen = true;
      return () => {
        if (!isOpen) return;
        isOpen = false;
        open[what].change(holder, -1);
        if (what === 'connections') connections.give(account, 1);
      };
    },
    update: () => new Budget(limits, UNCOUNTED),
    message: (viewer) => new Budget(limits, memory(accountOf(viewer))),
    strangers: {
      async check(address) {
        const counted = await strangers.get(address);
        if (counted && counted.remainingPoints <= 0) {
          throw tooMany(counted, 'too many invalid API keys or passwords from this address');
        }
      },
      count: (address) => void strangers.penalty(address).catch(() => {}),
    },
    passwords: {
      async check(name, address, isKnown) {
        const why = 'too many wrong passwords for this user name';
        const counted = [await ofAddress.get(`${address} ${name}`), isKnown ? null : await ofName.get(name)];
        for (const tries of counted) if (tries && tries.remainingPoints <= 0) throw tooMany(tries, why);
      },
      async count(name, address) {
        const all = await ofName.penalty(name);
        const { consumedPoints } = await ofAddress.penalty(`${address} ${name}`);
        return consumedPoints === perAddress || all.consumedPoints === perName;
      },
    },
    async explain({ viewer, budget }, work) {
      await turns.turn(accountOf(viewer));
      if (budget.over) throw budget.over;
      return work();
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
