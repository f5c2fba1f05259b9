/**
 * Whether this process reaches Postgres: a connection of its own on which nothing is asked but whether somebody is there. A statement
 * that takes long says nothing, for the server may have much to do; but to this one it answers at once, or it is away. Who waits for the
 * answer of a server that has been cut off, or is frozen, would wait for minutes. By the same connection the others see that this process is
 * there (watchdog.ts).
 */
import pg from 'pg';
import { Connection, LIFELINE, limitsOfConnection } from './connection.js';
import { isUnavailable } from './unavailable.js';

export interface LifelineOptions {
  /** Connection string. */
  url: string;
  /** The server does not answer: what is under way will not be answered either. */
  onAway: (why: string) => void;
  /** It answers again, after so long. */
  onBack: (awayS: number) => void;
  everyMs?: number;
  /** For an answer, and then, on a new connection, for another one. */
  answerMs?: number;
}

const EVERY_MS = 1_000;
const ANSWER_MS = 3_000;

export type Reach =
  | { is: 'unknown' }
  | { is: 'reached' }
  /** Since: on the clock of `performance.now()`. */
  | { is: 'away'; why: string; sinceMs: number };

export class Lifeline {
  private now: Reach = { is: 'unknown' };
  private connection: Connection | null = null;
  private timer: NodeJS.Timeout | null = null;
  private asking: Promise<void> | null = null;
  private readonly waiting = new Set<() => void>();
  private stopped = false;

  constructor(private readonly options: LifelineOptions) {}

  get reach(): Reach {
    return this.now;
  }

  /** Begins to look. Rejects with what does not pass by itself, such as a wrong password. */
  async start(): Promise<void> {
    const refusal = await this.look();
    if (refusal !== null && !isUnavailable(refusal)) throw refusal;
    this.timer = setInterval(() => {
      this.asking ??= this.look().then(() => {
        this.asking = null;
      });
    }, this.options.everyMs ?? EVERY_MS);
  }

  /** Resolves when the server is reached, or away, or the signal is aborted. */
  when(is: 'reached' | 'away', signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (this.now.is !== is && !signal.aborted) return;
        this.waiting.delete(look);
        signal.removeEventListener('abort', look);
        resolve();
      };
      this.waiting.add(look);
      signal.addEventListener('abort', look);
      look();
    });
  }

  async stop(): Promise<void> {
    this.stopped = true;
    if (this.timer) clearInterval(this.timer);
    await this.connection?.end().catch(() => {});
    await this.asking;
  }

  /** What went wrong; null: nothing. */
  private async look(): Promise<unknown> {
    try {
      // A connection that has broken says nothing of the server: a new one does.
      await this.ask().catch((error) => {
        if (this.stopped) throw error;
        return this.ask();
      });
      this.answered();
      return null;
    } catch (error) {
      if (!this.stopped) this.failed(error);
      return error;
    }
  }

  private async ask(): Promise<void> {
    const { url, answerMs = ANSWER_MS } = this.options;
    const connection = this.connection ?? new Connection(configOf(url, answerMs));
    const late = setTimeout(() => connection.cut(`no response within ${answerMs / 1000} s`), answerMs);
    try {
      if (this.connection === null) {
        this.connection = connection;
        connection.on('error', () => {});
        await connection.connect();
      }
      await connection.query('SELECT');
    } catch (error) {
      this.connection = null;
      connection.cut('it is replaced');
      throw error;
    } finally {
      clearTimeout(late);
    }
  }

  private answered(): void {
    const before = this.now;
    if (before.is === 'away') this.options.onBack((performance.now() - before.sinceMs) / 1000);
    this.turn({ is: 'reached' });
  }

  private failed(error: unknown): void {
    // A server that takes no more connections is there, and those that it has taken may do well.
    const isThere = error instanceof pg.DatabaseError && !error.code?.startsWith(SHUT);
    if (this.now.is === 'away' || (isThere && this.now.is === 'reached')) return;
    const why = error instanceof Error ? error.message : String(error);
    this.options.onAway(why);
    this.turn({ is: 'away', why, sinceMs: performance.now() });
  }

  private turn(reach: Reach): void {
    this.now = reach;
    for (const look of this.waiting) look();
  }
}

/** Of the codes of a server that is shutting down or starting up. */
const SHUT = '57P';

const configOf = (url: string, answerMs: number) => ({
  connectionString: url,
  application_name: LIFELINE,
  ...limitsOfConnection({ statementTimeoutMs: answerMs }),
});
