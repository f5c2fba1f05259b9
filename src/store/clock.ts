/**
 * The database's time, in a process. All processes go by it: what one of them writes down is compared with what others have written, and a
 * machine whose clock is wrong, or is set, must not make the others' machines silent, their runs too long, or fresh events old.
 */
import type pg from 'pg';

/** Answers that take longer say too little about when they were given. */
const PRECISE_MS = 1_000;
const EVERY_MS = 10_000;

export class ServerClock {
  /** What the database said, and when by the clock of this process that nobody sets. Until it has: this machine's time. */
  private atS = Date.now() / 1000;
  private readAtMs = performance.now();
  private timer: NodeJS.Timeout | null = null;

  constructor(private readonly pool: Pick<pg.Pool, 'query'>) {}

  /** Epoch seconds. */
  readonly now = (): number => this.atS + (performance.now() - this.readAtMs) / 1000;

  /** Asks once, and then again and again. Throws when the database cannot be reached. */
  async start(): Promise<void> {
    await this.read();
    // What cannot be read is read the next time.
    this.timer = setInterval(() => void this.read().catch(() => {}), EVERY_MS).unref();
  }

  stop(): void {
    if (this.timer) clearInterval(this.timer);
  }

  private async read(): Promise<void> {
    const askedMs = performance.now();
    const { rows } = await this.pool.query('SELECT extract(epoch FROM clock_timestamp())::float8 AS now');
    const answeredMs = performance.now();
    if (this.timer !== null && answeredMs - askedMs > PRECISE_MS) return;
    this.atS = rows[0].now;
    this.readAtMs = (askedMs + answeredMs) / 2;
  }
}
