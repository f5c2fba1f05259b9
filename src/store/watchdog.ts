/**
 * Ends sessions that keep others waiting and do nothing themselves, because their process was stopped, hangs, or is cut off. Each
 * connection of ours asks the server to do that (limitsOfConnection in connection.ts), one after the other: while those of a dead process
 * wait for one another, everybody waits for all of them. So all sessions of a process whose lifeline is silent are ended at once. The
 * rest is for those whose limits were dropped by a pooler, for whom the server cannot write to, and for a stranger who took the event
 * lock by hand.
 */
import { Connection, LIFELINE, limitsOfConnection } from './connection.js';
import { EVENT_LOCK } from './constants.js';

export interface StuckSession {
  pid: number;
  /** Its `application_name`. */
  name: string;
  /** Since it last did something. */
  idleS: number;
}

export interface WatchdogOptions {
  /** Connection string. Each look has a connection of its own: those of the pool may all be waiting. */
  url: string;
  everyMs?: number;
  /** Sessions that have done nothing for so long are ended. */
  stuckAfterMs?: number;
  onEnded: (session: StuckSession) => void;
  /** A look that failed; the next one comes. */
  onError: (error: unknown) => void;
}

const EVERY_MS = 2_000;
const STUCK_AFTER_MS = 8_000;
/** Of a process that says something every second. */
const SILENT_AFTER_S = 5;
const LOOK_MS = 5_000;

export class Watchdog {
  private timer: NodeJS.Timeout | null = null;
  private looking: Promise<void> | null = null;

  constructor(private readonly options: WatchdogOptions) {}

  start(): void {
    this.timer = setInterval(() => {
      this.looking ??= this.look()
        .then((ended) => ended.forEach(this.options.onEnded))
        .catch(this.options.onError)
        .finally(() => {
          this.looking = null;
        });
    }, this.options.everyMs ?? EVERY_MS);
  }

  async stop(): Promise<void> {
    if (this.timer) clearInterval(this.timer);
    await this.looking;
  }

  private async look(): Promise<StuckSession[]> {
    const client = new Connection({
      connectionString: this.options.url,
      connectionTimeoutMillis: LOOK_MS,
      query_timeout: LOOK_MS,
      application_name: 'switchyard-watchdog',
      ...limitsOfConnection({ statementTimeoutMs: LOOK_MS }),
    });
    client.on('error', () => {});
    try {
      await client.connect();
      const stuckAfterMs = this.options.stuckAfterMs ?? STUCK_AFTER_MS;
      return (await client.query(END_STUCK, [stuckAfterMs, EVENT_LOCK, SILENT_AFTER_S])).rows;
    } finally {
      await client.end();
    }
  }
}

/**
 * Of those in a transaction: whose process is silent; and ours, and whoever holds the event lock, that wait for the client's next word, or for
 * it to take an answer. First found, then ended: in one WHERE the server might evaluate the ending first.
 */
const END_STUCK = `
WITH silent AS (
  SELECT split_part(application_name, ' @', 2) AS process FROM pg_stat_activity
   WHERE datname = current_database() AND application_name LIKE '${LIFELINE} @%'
   GROUP BY 1 HAVING max(state_change) < clock_timestamp() - make_interval(secs => $3::float8)
), stuck AS MATERIALIZED (
  SELECT pid, application_name AS name, extract(epoch FROM clock_timestamp() - state_change)::float8 AS "idleS"
    FROM pg_stat_activity a
   WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
     AND (application_name LIKE 'switchyard%' AND split_part(application_name, ' @', 2) IN (SELECT process FROM silent)
          OR state_change < clock_timestamp() - make_interval(secs => $1::float8 / 1000)
             AND (state LIKE 'idle in transaction%' OR wait_event = 'ClientWrite')
             AND (application_name LIKE 'switchyard%'
                  OR EXISTS (SELECT FROM pg_locks l
                              WHERE l.pid = a.pid AND locktype = 'advisory' AND database = a.datid AND objid = $2 AND granted)))
)
SELECT *, pg_terminate_backend(pid) AS ended FROM stuck`;
