/**
 * The way to Postgres: one pool of connections a process, Prisma's client over it, and transactions that try again.
 *
 * The directory goes through Prisma's client. Statements that carry thousands of rows go to the pool's connections themselves: copying
 * rows in (statement.ts) is not possible through Prisma, and each of its statements costs about a tenth of a millisecond more.
 */

import { PrismaPg } from '@prisma/adapter-pg';
import pRetry from 'p-retry';
import pg from 'pg';
import { Places } from '../platform/shared.js';
import { turns } from '../platform/turns.js';
import { Connection, type ConnectionLimits, limitsOfConnection } from './connection.js';
import type { CopyColumns } from './copy.js';
import { type Prisma, PrismaClient } from './generated/client.js';
import type { Sql } from './sql.js';
import { copy, type Pipelined } from './statement.js';

export interface DatabaseOptions extends ConnectionLimits {
  url: string;
  /** Connections at the most. */
  poolSize: number;
  /** How long to wait for a connection, new or from the pool, before failing. Without it the pool waits for ever. */
  connectTimeoutMs: number;
  /** Shown in pg_stat_activity. */
  applicationName: string;
  /** Told of connections that broke while nobody used them: the pool replaces them by itself. */
  onIdleError?: (error: Error) => void;
}

export interface Database {
  readonly prisma: PrismaClient;
  /** Its counts (`totalCount`, `idleCount`, `waitingCount`) are metrics. */
  readonly pool: pg.Pool;
  /** Nobody waits for the server from now on: what is under way fails, and so does what is new. */
  cut(why: string): void;
  /** The server is there again. */
  restore(): void;
  /** Waits for statements under way, then closes every connection. */
  close(): Promise<void>;
}

/** Opens no connection yet: the first statement does. */
export function openDatabase(options: DatabaseOptions): Database {
  const pool = new Pool({
    connectionString: options.url,
    max: options.poolSize,
    connectionTimeoutMillis: options.connectTimeoutMs,
    application_name: options.applicationName,
    ...limitsOfConnection(options),
  });
  shareOut(pool, options);
  let closing = false;
  // An error event without a listener would end the process.
  pool.on('error', (error) => {
    if (!closing) options.onIdleError?.(error);
  });
  const prisma = new PrismaClient({ adapter: new PrismaPg(pool), errorFormat: 'minimal' });
  return {
    prisma,
    pool,
    cut: (why) => pool.cut(why),
    restore: () => pool.restore(),
    async close() {
      // A connection that the server ends in the same moment is no news.
      closing = true;
      await prisma.$disconnect();
      await pool.end();
    },
  };
}

/**
 * Shares the connections among those on whose behalf statements are made, with some always left for agents and operators; and what comes
 * back is gone on with in a turn of theirs. What the process does for itself is not held up.
 */
function shareOut(pool: pg.Pool, { poolSize, connectTimeoutMs }: DatabaseOptions): void {
  const places = new Places(poolSize);
  const late = () => new Error('timeout exceeded when trying to connect: too many concurrent statements');
  const query = pool.query.bind(pool) as (...args: unknown[]) => Promise<unknown>;
  const connect = pool.connect.bind(pool) as (...args: unknown[]) => Promise<pg.PoolClient>;
  pool.query = ((...args: unknown[]) => {
    const account = turns.current;
    // With a callback: the pool's own.
    if (account === null || typeof args.at(-1) === 'function') return query(...args);
    const answer = async () => {
      const giveBack = await places.take(account, connectTimeoutMs, late);
      return query(...args).finally(giveBack);
    };
    return turns.continued(account, answer());
  }) as typeof pool.query;
  pool.connect = ((...args: unknown[]) => {
    const account = turns.current;
    if (account === null || args.length > 0) return connect(...args);
    const held = async () => {
      const giveBack = await places.take(account, connectTimeoutMs, late);
      try {
        const client = await connect();
        const release = client.release;
        client.release = (error) => {
          giveBack();
          release(error);
        };
        return client;
      } catch (error) {
        giveBack();
        throw error;
      }
    };
    return held();
  }) as typeof pool.connect;
}

/** A pool that can be told that the server is away: then nobody waits for it. */
class Pool extends pg.Pool {
  private readonly open = new Set<Connection>();
  private away: string | null = null;

  constructor(config: pg.PoolConfig) {
    super({ ...config, Client: Connection } as pg.PoolConfig);
    this.on('connect', (client) => this.open.add(asMade(client)));
    this.on('remove', (client) => this.open.delete(asMade(client)));
  }

  override connect: pg.Pool['connect'] = ((callback?: (error: Error) => void) => {
    if (this.away === null)
      return callback === undefined ? super.connect() : super.connect(callback as never);
    const error = unreachable(this.away);
    if (callback === undefined) return Promise.reject(error);
    setImmediate(callback, error);
  }) as pg.Pool['connect'];

  /** Ends what is under way, and refuses what is new. */
  cut(why: string): void {
    this.away = why;
    for (const connection of this.open) connection.cut(why);
  }

  restore(): void {
    this.away = null;
  }
}

/** A pool makes its clients by the class that it was given; its types do not say so. */
const asMade = (client: pg.PoolClient): Connection => client as unknown as Connection;

/** With a code by which it is known as something that may pass (unavailable.ts). */
const unreachable = (why: string): Error =>
  Object.assign(new Error(`the database cannot be reached: ${why}`), { code: 'ETIMEDOUT' });

export interface TransactionOptions {
  /** PostgreSQL's default, read committed, unless told otherwise. */
  isolationLevel?: 'ReadCommitted' | 'RepeatableRead' | 'Serializable';
  /** How long one attempt may take. */
  timeoutMs?: number;
  /** Attempts after the first. */
  retries?: number;
}

/** Within a transaction: one connection, which runs one statement after the other. They are sent without waiting for the answers to those before. */
export type Transaction = pg.ClientBase;

const ATTEMPT_MS = 30_000;
/** For one that writes 10 000 jobs on a busy small machine. */
export const LONG_MS = 120_000;
/** How long Prisma's attempts may wait for a connection; others wait as the pool does. */
const PRISMA_WAIT_MS = 10_000;

/**
 * Runs `work` in a transaction; again, after a short random pause, when the database gave it up for another one (serialization
 * failure 40001, deadlock 40P01) or because this process was too busy to go on with it (25P03: it was undone, not committed).
 * `work` must therefore leave no traces outside the transaction.
 * Any other error is thrown at once: also a lost connection, after which nobody knows whether the commit was done.
 */
export function transaction<T>(
  { pool }: Pick<Database, 'pool'>,
  work: (tx: Transaction) => Promise<T>,
  options: TransactionOptions = {},
): Promise<T> {
  // Within it nobody waits for a turn: others may wait for its locks.
  return turns.continued(
    turns.current,
    again(options, () => attempt(pool, work, options)),
  );
}

/** The same with Prisma's client. */
export function prismaTransaction<T>(
  { prisma }: Pick<Database, 'prisma'>,
  work: (tx: Prisma.TransactionClient) => Promise<T>,
  options: TransactionOptions = {},
): Promise<T> {
  const { isolationLevel, timeoutMs = ATTEMPT_MS } = options;
  const limits = { timeout: timeoutMs, maxWait: PRISMA_WAIT_MS, ...(isolationLevel && { isolationLevel }) };
  return turns.continued(
    turns.current,
    again(options, () => prisma.$transaction(work, limits)),
  );
}

const again = <T>({ retries = 8 }: TransactionOptions, run: () => Promise<T>): Promise<T> =>
  pRetry(run, {
    retries,
    minTimeout: 5,
    factor: 2,
    maxTimeout: 250,
    randomize: true,
    shouldRetry: ({ error }) => isGivenUp(error),
  });

/** PostgreSQL's code for a transaction that takes longer than it may. */
const TIMED_OUT = '25P04';
const BEGIN = {
  ReadCommitted: 'BEGIN',
  RepeatableRead: 'BEGIN ISOLATION LEVEL REPEATABLE READ',
  Serializable: 'BEGIN ISOLATION LEVEL SERIALIZABLE',
} as const;

async function attempt<T>(
  pool: pg.Pool,
  work: (tx: Transaction) => Promise<T>,
  { isolationLevel = 'ReadCommitted', timeoutMs = ATTEMPT_MS }: TransactionOptions,
): Promise<T> {
  const client = (await pool.connect()) as pg.PoolClient & Pipelined;
  let late: Error | null = null;
  const timer = setTimeout(() => {
    late = Object.assign(new Error(`the transaction took longer than ${timeoutMs} ms`), { code: TIMED_OUT });
    // Whatever is under way fails, and the server undoes it all. (In a pipeline it would be waited for.)
    client.pipeline = false;
    client.end().catch(() => {});
  }, timeoutMs);
  let isGood = false;
  try {
    // Sent together with the first statement. What makes it fail, a broken connection, makes that fail, too.
    client.pipeline = true;
    const begun = client.query(BEGIN[isolationLevel]);
    begun.catch(() => {});
    const result = await work(client);
    await begun;
    if (!committed.delete(client)) assertCommitted(await client.query('COMMIT'));
    isGood = true;
    return result;
  } catch (error) {
    isGood ||=
      late === null &&
      (await client.query('ROLLBACK').then(
        () => true,
        () => false,
      ));
    throw late ?? error;
  } finally {
    clearTimeout(timer);
    client.pipeline = false;
    // One of which nobody knows in what state it is goes.
    client.release(!isGood);
  }
}

/** Connections whose transaction has been committed by its last statements. */
const committed = new WeakSet<Transaction>();

function assertCommitted({ command }: { command: string }): void {
  if (command !== 'COMMIT') throw new Error('the transaction was rolled back because a statement failed');
}

/**
 * The last statements of a transaction, sent together with its COMMIT. What takes the event lock goes here: between taking it and giving it
 * back the server waits for nobody, however slow, stopped or cut off this process is. Answers how many rows each has touched.
 */
export async function commitWith(tx: Transaction, statements: readonly Sql[]): Promise<number[]> {
  const answers = statements.map(({ text, values }) => tx.query({ text, values }));
  const done = await Promise.allSettled([...answers, tx.query('COMMIT')]);
  const failed = done.find((answer) => answer.status === 'rejected');
  if (failed) throw failed.reason;
  const results = done.map((answer) => (answer as PromiseFulfilledResult<pg.QueryResult>).value);
  assertCommitted(results.pop() as pg.QueryResult);
  committed.add(tx);
  return results.map(({ rowCount }) => rowCount ?? 0);
}

/** Copies items into a table, as `copy` does, and commits with the same message. */
export async function commitWithCopy<T>(
  tx: Transaction,
  table: string,
  columns: CopyColumns<T>,
  items: Iterable<T>,
): Promise<void> {
  await copy(tx, table, columns, items, '; COMMIT');
  committed.add(tx);
}

/** Serialization failure, deadlock, idle in a transaction for too long. */
const GIVEN_UP: ReadonlySet<unknown> = new Set(['40001', '40P01', '25P03']);

/**
 * Whether the database gave the transaction up, so that doing it again may succeed. PostgreSQL says so by its code;
 * Prisma in three shapes: its own P2034; at commit a DriverAdapterError whose cause is `TransactionWriteConflict`; for raw statements
 * P2010 with such an error under `meta.driverAdapterError`.
 */
export function isGivenUp(error: unknown): boolean {
  for (let at: unknown = error, depth = 0; at && typeof at === 'object' && depth < 6; depth++) {
    const { code, kind, originalCode, meta, cause } = at as Record<string, unknown>;
    if (code === 'P2034' || kind === 'TransactionWriteConflict') return true;
    if ([code, originalCode].some((sqlState) => GIVEN_UP.has(sqlState))) return true;
    at = (meta as { driverAdapterError?: unknown } | undefined)?.driverAdapterError ?? cause;
  }
  return false;
}
