/**
 * How often a key may ask, in this process: so many requests a second, and beyond that what it has saved up for a burst.
 * Addresses that come without a good key have a small allowance of their own, so that keys cannot be guessed by trying.
 */
import { BurstyRateLimiter, RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { Limits } from '../platform/limits.js';
import type { Viewer } from './auth.js';
import { type ApiError, refusedRequest } from './errors.js';

export interface RateLimits {
  /** One request of this key. Throws RATE_LIMITED. */
  consume(viewer: Viewer): Promise<void>;
  /** One request without a good key. Throws RATE_LIMITED when there were too many from this address. */
  consumeStranger(address: string): Promise<void>;
}

export function createRateLimits(limits: Limits): RateLimits {
  const { requestsPerSecond, requestsBurst } = limits;
  const keys = new BurstyRateLimiter(
    new RateLimiterMemory({ keyPrefix: 'key', points: requestsPerSecond, duration: 1 }),
    new RateLimiterMemory({
      keyPrefix: 'burst',
      points: requestsBurst,
      duration: Math.max(1, Math.ceil(requestsBurst / requestsPerSecond)),
    }),
  );
  const strangers = new RateLimiterMemory({
    keyPrefix: 'address',
    points: limits.strangersPerMinute,
    duration: 60,
  });
  return {
    consume: (viewer) => take(keys, String(viewer.keyId)),
    consumeStranger: (address) => take(strangers, address),
  };
}

async function take(limiter: Pick<RateLimiterMemory, 'consume'>, key: string): Promise<void> {
  try {
    await limiter.consume(key);
  } catch (error) {
    throw error instanceof RateLimiterRes ? tooMany(error) : error;
  }
}

function tooMany({ msBeforeNext }: RateLimiterRes): ApiError {
  const seconds = Math.max(0.001, msBeforeNext / 1000);
  return refusedRequest(
    'RATE_LIMITED',
    `too many requests; try again in ${seconds.toFixed(1)} s`,
    { retryAfterS: seconds },
    { 'retry-after': String(Math.ceil(seconds)) },
  );
}
