/**
 * What an operation costs while it runs: objects of the answer, characters of its texts, statements. Reckoning (cost.ts) knows how long
 * pages may be, but not how long the lists are that are found, nor the texts: so what comes is counted before anything is made of it,
 * and an operation that comes beyond its budget, is given up by its client, or takes too long, goes no further.
 */
import type { Limits } from '../../platform/limits.js';
import { ApiError, refusedRequest } from '../errors.js';

/** What an object of an answer is taken to need in memory beside its texts, from its row to the bytes that are sent. */
const OBJECT_BYTES = 1_024;
/** The same for a character of a text. */
const CHARACTER_BYTES = 3;
/** What a byte of a request needs until it has been worked on: as text, as values, and as what is made of them. */
const BODY_FACTOR = 4;

/** Of all requests: to make one for each would take a thirtieth of a short one's time. */
const ENDED = refusedRequest('UNAVAILABLE', 'the request has ended');

/** The memory of the process, as far as whoever asks may have it. */
export interface Memory {
  /** Takes so many bytes. False: there are none left. */
  take(bytes: number): boolean;
  give(bytes: number): void;
}

/** What an operation has cost. */
export interface Cost {
  /** What it was reckoned to cost before it ran. */
  estimated: number;
  objects: number;
  characters: number;
  statements: number;
}

export class Budget {
  readonly cost: Cost;
  private bytes = 0;
  private refusal: ApiError | null = null;
  private abort: AbortController | null = null;

  constructor(
    private readonly limits: Pick<Limits, 'costMax' | 'answerCharsMax'>,
    private readonly memory: Memory,
    estimated = 0,
  ) {
    this.cost = { estimated, objects: 0, characters: 0, statements: 0 };
  }

  /** A new one with the same limits: each update of a subscription may cost as much as a query. */
  another(): Budget {
    return new Budget(this.limits, this.memory, this.cost.estimated);
  }

  /** Why the operation goes no further; null: it may. */
  get over(): ApiError | null {
    return this.refusal;
  }

  /** Aborted when the operation goes no further. */
  get signal(): AbortSignal {
    if (this.abort === null) {
      this.abort = new AbortController();
      if (this.refusal) this.abort.abort(this.refusal);
    }
    return this.abort.signal;
  }

  /** Counts objects, or what costs as much. Throws when there are more than the operation may have. */
  objects(count: number): void {
    if (this.refusal) throw this.refusal;
    if (count === 0) return;
    this.cost.objects += count;
    const { costMax } = this.limits;
    if (this.cost.objects > costMax) {
      throw this.end(
        refusedRequest(
          'QUERY_TOO_COMPLEX',
          `the response would have too many objects: its cost reached ${this.cost.objects}; accepted: up to ${costMax}; request smaller pages`,
          { cost: this.cost.objects },
        ),
      );
    }
    this.reserve(count * OBJECT_BYTES);
  }

  /** Counts characters of texts that go into the answer. Throws when there are too many. */
  characters(count: number): void {
    if (this.refusal) throw this.refusal;
    this.cost.characters += count;
    const { answerCharsMax } = this.limits;
    if (this.cost.characters > answerCharsMax) {
      throw this.end(
        refusedRequest(
          'QUERY_TOO_COMPLEX',
          `the texts of the response would have ${this.cost.characters} characters or more; accepted: up to ${answerCharsMax}; request smaller pages, or fewer of the long fields`,
          { characters: this.cost.characters },
        ),
      );
    }
    this.reserve(count * CHARACTER_BYTES);
  }

  /** Counts a statement that is about to be sent to the database. Throws when the operation goes no further. */
  statement(): void {
    if (this.refusal) throw this.refusal;
    this.cost.statements++;
  }

  /** Goes no further, for this reason. */
  end(why: ApiError): ApiError {
    if (this.refusal === null) {
      this.refusal = why;
      this.abort?.abort(why);
    }
    return this.refusal;
  }

  /** The answer has been sent: its memory is free again. */
  close(): void {
    this.memory.give(this.bytes);
    this.bytes = 0;
    // What still runs for it has nobody to answer.
    this.end(ENDED);
  }

  /** Counts bytes of a request as they arrive. */
  arrived(bytes: number): void {
    this.reserve(bytes);
  }

  /** Counts what is made of so many bytes that have arrived. */
  parsed(bytes: number): void {
    this.reserve(bytes * (BODY_FACTOR - 1));
  }

  private reserve(bytes: number): void {
    if (this.refusal) throw this.refusal;
    if (!this.memory.take(bytes)) throw this.end(busy('its memory is in use by other requests'));
    this.bytes += bytes;
  }
}

/** Memory that somebody else watches, as that of connections. */
export const UNCOUNTED: Memory = { take: () => true, give: () => {} };

/** For what the service itself decides to tell. */
export const UNBOUNDED = new Budget({ costMax: Infinity, answerCharsMax: Infinity }, UNCOUNTED);

/** How long a client is asked to wait when the process has more to do than it can. */
const BUSY_RETRY_S = 1;

/** The error for a request that cannot be worked on now. */
export const busy = (why: string): ApiError =>
  refusedRequest(
    'UNAVAILABLE',
    `the service is busy (${why}); try again in ${BUSY_RETRY_S} s`,
    { retryAfterS: BUSY_RETRY_S },
    { 'retry-after': String(BUSY_RETRY_S) },
  );

/** What is said of an operation that went no further. A mutation is mostly carried out before its answer is made. */
export const givenUp = (why: ApiError, operation: string): ApiError =>
  operation === 'mutation'
    ? new ApiError(
        why.code,
        `the mutation may have been carried out, but its result is not available: ${why.message}`,
        why.extensions,
      )
    : why;

/** Levels of nested values that anybody needs. */
const LEVELS_MAX = 1_000;

/** How many characters a value will be in an answer, near enough. What is nested beyond measure is too much. */
export function charactersOf(value: unknown, levels = LEVELS_MAX): number {
  if (typeof value === 'string') return value.length;
  if (value === null || typeof value !== 'object') return 0;
  if (levels === 0) return Infinity;
  let characters = 0;
  if (Array.isArray(value)) for (const one of value) characters += 3 + charactersOf(one, levels - 1);
  else
    for (const name in value)
      characters += 8 + name.length + charactersOf((value as Record<string, unknown>)[name], levels - 1);
  return characters;
}
