/**
 * A connection to Postgres as every one of ours is: it tells the server what it needs, whatever the server's own settings are, and it does
 * not wait for ever for an answer.
 */
import { randomBytes } from 'node:crypto';
import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import pg from 'pg';

/** How long the server lets a connection of ours wait, or keep others waiting, milliseconds. */
export interface ConnectionLimits {
  /** A statement that takes longer is ended. */
  statementTimeoutMs: number;
}

/** Waiting for a row or for the event lock. Whoever waits for longer is told so, rather than keeping a connection of the pool. */
const LOCK_TIMEOUT_MS = 20_000;
/**
 * In a transaction without a statement under way: a process that was stopped, or cut off from the network, keeps its locks
 * for so long. Ours do nothing there but compute for some milliseconds.
 */
const IDLE_IN_TRANSACTION_MS = 5_000;
/** By so much a statement may exceed its limit before the client ends it, because the server does not. */
const GRACE_MS = 5_000;
/** For a goodbye. */
const END_MS = 1_000;

/**
 * What a session of ours asks of the server by name. Debian's PostgreSQL compiles plans (`jit`), which takes seconds for statements that
 * run for milliseconds, under the event lock; parallel workers cost more than they save, and shared memory that containers do not
 * have. The rest is for clients that have vanished: a server that is never told would keep their locks for hours.
 */
export const SESSION_SETTINGS = {
  jit: 'off',
  max_parallel_workers_per_gather: '0',
  default_transaction_isolation: 'read committed',
  tcp_keepalives_idle: '5',
  tcp_keepalives_interval: '2',
  tcp_keepalives_count: '3',
  tcp_user_timeout: '10000',
  client_connection_check_interval: '2000',
} as const;

/** Stands behind the names of all connections of this process: `switchyard api @1f03a9c2`. Who is silent on one of them is on all. */
const PROCESS = randomBytes(4).toString('hex');
/** The connection on which a process shows that it is there. */
export const LIFELINE = 'switchyard-lifeline';

/** The limits as parameters of a connection. */
export const limitsOfConnection = ({ statementTimeoutMs }: ConnectionLimits) => ({
  statement_timeout: statementTimeoutMs,
  lock_timeout: LOCK_TIMEOUT_MS,
  idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
  keepAlive: true,
  keepAliveInitialDelayMillis: 5_000,
});

/** What `pg` does not tell of its clients: who they talk through, and what they say first. */
interface Inside {
  connection: EventEmitter & { stream: Socket };
  getStartupConf(): Record<string, string>;
}
// The methods are there in every release of pg; its types leave them out.
const Client = pg.Client as unknown as new (config?: pg.ClientConfig) => pg.Client & Inside;

/** PostgreSQL's code where something is to be written and the server, or the transaction, only reads. */
const READ_ONLY = '25006';

/**
 * Give it to pools as their `Client`. Between a statement and its answer something must come, or go, within the statement's limit and
 * a little more: else the connection is cut, and whoever waits for the answer is told.
 */
export class Connection extends Client {
  private readonly silenceMs: number;
  private owed = false;
  /** Over TLS it is another one than at first. */
  private heard: Socket | null = null;
  private broken: Error | null = null;

  constructor(config: pg.ClientConfig = {}) {
    super(config);
    this.silenceMs = Number(config.statement_timeout || 0) + GRACE_MS;
    this.on('drain', () => {
      this.owed = false;
      this.connection.stream.setTimeout(0);
    });
    // Between two statements, too, where nobody else listens: that would end the process.
    this.on('error', (error) => {
      this.broken ??= error;
    });
    this.connection.on('errorMessage', ({ code }: { code?: string }) => {
      // After a failover this may be a server that has become a replica. The next connection is to whichever server takes writes then.
      // Behind whoever is being told of the error.
      if (code === READ_ONLY) setImmediate(() => this.end().catch(() => {}));
    });
  }

  override getStartupConf(): Record<string, string> {
    const asked = super.getStartupConf();
    const name = `${asked.application_name ?? 'switchyard'} @${PROCESS}`;
    return { ...asked, ...SESSION_SETTINGS, application_name: name };
  }

  // One implementation for all of pg's ways to call it, which are its own business.
  override query: pg.Client['query'] = ((...given: Parameters<pg.Client['query']>) => {
    this.listen();
    const answer: unknown = super.query(...given);
    const { broken } = this;
    // Of a connection that is broken `pg` says only that.
    return broken !== null && answer instanceof Promise ? answer.catch(() => Promise.reject(broken)) : answer;
  }) as pg.Client['query'];

  /** Ends it at once; whoever waits for an answer is told why. */
  cut(why: string): void {
    this.connection.stream.destroy(Object.assign(new Error(why), { code: 'ETIMEDOUT' }));
  }

  /** As `pg` does it, but for a server that does not answer the goodbye. */
  override end: pg.Client['end'] = ((callback?: () => void) => {
    const late = setTimeout(() => this.connection.stream.destroy(), END_MS).unref();
    this.once('end', () => clearTimeout(late));
    return callback === undefined ? super.end() : super.end(callback);
  }) as pg.Client['end'];

  private listen(): void {
    if (this.owed) return;
    this.owed = true;
    const { stream } = this.connection;
    stream.setTimeout(this.silenceMs);
    if (this.heard === stream) return;
    this.heard = stream;
    stream.on('timeout', () => this.cut(`no response from the database for ${this.silenceMs / 1000} s`));
  }
}
