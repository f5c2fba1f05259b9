/** The way to Postgres: one pool of connections a process, Prisma's client over it, and transactions that try again. */
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
  /** Underneath, for metrics (`totalCount`, `idleCount`, `waitingCount`). Statements go through Prisma. */
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
  isolationLevel?: Prisma.TransactionIsolationLevel;
  /** How long one attempt may take. */
  timeoutMs?: number;
  /** How long an attempt may wait for a connection. */
  maxWaitMs?: number;
  /** Attempts after the first. */
  retries?: number;
}

/**
 * Runs `work` in a transaction; again, after a short random pause, when the database gave it up for another one
 * (serialization failure 40001, deadlock 40P01). `work` must therefore leave no traces outside the transaction.
 * Any other error is thrown at once: also a lost connection, after which nobody knows whether the commit was done.
 */
export function inTransaction<T>(
  prisma: PrismaClient,
  work: (tx: Prisma.TransactionClient) => Promise<T>,
  options: TransactionOptions = {},
): Promise<T> {
  const { isolationLevel, timeoutMs = 30_000, maxWaitMs = 10_000, retries = 8 } = options;
  const limits = { timeout: timeoutMs, maxWait: maxWaitMs, ...(isolationLevel && { isolationLevel }) };
  return pRetry(() => prisma.$transaction(work, limits), {
    retries,
    minTimeout: 5,
    factor: 2,
    maxTimeout: 250,
    randomize: true,
    shouldRetry: ({ error }) => isConflict(error),
  });
}

/**
 * Whether the database gave the transaction up for another one, so that doing it again may succeed. Prisma reports that in
 * three shapes: its own P2034; at commit a DriverAdapterError whose cause is `TransactionWriteConflict`; for raw statements
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
