/**
 * The way to Postgres: one pool of connections a process, Prisma's client over it, and transactions that try again.
 *
 * The directory goes through Prisma's client. Statements that carry thousands of rows go to the pool's connections themselves: copying
 * rows in (statement.ts) is not possible through Prisma, and each of its statements costs about a tenth of a millisecond more.
 */
import { PrismaPg } from '@prisma/adapter-pg';
import pRetry from 'p-retry';
import pg from 'pg';
import { type Prisma, PrismaClient } from './generated/client.js';

export interface DatabaseOptions {
  url: string;
  /** Connections at the most. */
  poolSize: number;
  /** How long to wait for a connection, new or from the pool, before failing. Without it the pool waits for ever. */
  connectTimeoutMs: number;
  /** A statement that takes longer is ended by the server with an error. */
  statementTimeoutMs: number;
  /** Shown in pg_stat_activity. */
  applicationName: string;
  /** Told of connections that broke while nobody used them: the pool replaces them by itself. */
  onIdleError?: (error: Error) => void;
}

export interface Database {
  readonly prisma: PrismaClient;
  /** Its counts (`totalCount`, `idleCount`, `waitingCount`) are metrics. */
  readonly pool: pg.Pool;
  /** Waits for statements under way, then closes every connection. */
  close(): Promise<void>;
}

/** Opens no connection yet: the first statement does. */
export function openDatabase(options: DatabaseOptions): Database {
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.poolSize,
    connectionTimeoutMillis: options.connectTimeoutMs,
    statement_timeout: options.statementTimeoutMs,
    application_name: options.applicationName,
    keepAlive: true,
  });
  let closing = false;
  // An error event without a listener would end the process.
  pool.on('error', (error) => {
    if (!closing) options.onIdleError?.(error);
  });
  const prisma = new PrismaClient({ adapter: new PrismaPg(pool), errorFormat: 'minimal' });
  return {
    prisma,
    pool,
    async close() {
      // A connection that the server ends in the same moment is no news.
      closing = true;
      await prisma.$disconnect();
      await pool.end();
    },
  };
}

export interface TransactionOptions {
  /** PostgreSQL's default, read committed, unless told otherwise. */
  isolationLevel?: 'ReadCommitted' | 'RepeatableRead' | 'Serializable';
  /** How long one attempt may take. */
  timeoutMs?: number;
  /** Attempts after the first. */
  retries?: number;
}

/** Within a transaction: one connection, which takes one statement after the other. */
export type Transaction = pg.ClientBase;

const ATTEMPT_MS = 30_000;
/** For one that reads 100 000s of jobs, or writes 10 000, on a busy small machine. */
export const LONG_MS = 120_000;
/** How long Prisma's attempts may wait for a connection; others wait as the pool does. */
const PRISMA_WAIT_MS = 10_000;

/**
 * Runs `work` in a transaction; again, after a short random pause, when the database gave it up for another one
 * (serialization failure 40001, deadlock 40P01). `work` must therefore leave no traces outside the transaction.
 * Any other error is thrown at once: also a lost connection, after which nobody knows whether the commit was done.
 */
export function transaction<T>(
  { pool }: Pick<Database, 'pool'>,
  work: (tx: Transaction) => Promise<T>,
  options: TransactionOptions = {},
): Promise<T> {
  return again(options, () => attempt(pool, work, options));
}

/** The same with Prisma's client. */
export function prismaTransaction<T>(
  { prisma }: Pick<Database, 'prisma'>,
  work: (tx: Prisma.TransactionClient) => Promise<T>,
  options: TransactionOptions = {},
): Promise<T> {
  const { isolationLevel, timeoutMs = ATTEMPT_MS } = options;
  const limits = { timeout: timeoutMs, maxWait: PRISMA_WAIT_MS, ...(isolationLevel && { isolationLevel }) };
  return again(options, () => prisma.$transaction(work, limits));
}

const again = <T>({ retries = 8 }: TransactionOptions, run: () => Promise<T>): Promise<T> =>
  pRetry(run, {
    retries,
    minTimeout: 5,
    factor: 2,
    maxTimeout: 250,
    randomize: true,
    shouldRetry: ({ error }) => isConflict(error),
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
  const client = await pool.connect();
  // A connection that breaks between two statements is told by the next one. Without a listener it would end the process.
  const broken = () => {};
  client.on('error', broken);
  let late: Error | null = null;
  const timer = setTimeout(() => {
    late = Object.assign(new Error(`the transaction took longer than ${timeoutMs} ms`), { code: TIMED_OUT });
    // Whatever is under way fails, and the server undoes it all.
    client.end().catch(() => {});
  }, timeoutMs);
  let isGood = false;
  try {
    await client.query(BEGIN[isolationLevel]);
    const result = await work(client);
    const { command } = await client.query('COMMIT');
    isGood = true;
    if (command !== 'COMMIT') throw new Error('the transaction was undone: a statement in it had failed');
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
    client.off('error', broken);
    // One of which nobody knows in what state it is goes.
    client.release(!isGood);
  }
}

/**
 * Whether the database gave the transaction up for another one, so that doing it again may succeed. PostgreSQL says so by its code;
 * Prisma in three shapes: its own P2034; at commit a DriverAdapterError whose cause is `TransactionWriteConflict`; for raw statements
 * P2010 with such an error under `meta.driverAdapterError`.
 */
export function isConflict(error: unknown): boolean {
  for (let at: unknown = error, depth = 0; at && typeof at === 'object' && depth < 6; depth++) {
    const { code, kind, originalCode, meta, cause } = at as Record<string, unknown>;
    if (code === 'P2034' || kind === 'TransactionWriteConflict') return true;
    if ([code, originalCode].some((sqlState) => sqlState === '40001' || sqlState === '40P01')) return true;
    at = (meta as { driverAdapterError?: unknown } | undefined)?.driverAdapterError ?? cause;
  }
  return false;
}
