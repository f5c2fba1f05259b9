import type { Env } from '../../platform/env.js';
import { type EndedReport, nameOf, type RunName, type RunReport, UNMEASURED } from '../runner.js';
import { type Disk, isPassing } from './disk.js';
import type { Journal, NewReport } from './journal.js';

/** An end as far as it is known; what is left out is null. */
export type End = Pick<EndedReport, 'cause'> &
  Partial<Omit<EndedReport, 'seq' | 'phase' | 'atMs' | keyof RunName>>;

const NOTHING = { exitCode: null, signal: null, message: null, ...UNMEASURED };

export function endReport(run: RunName, end: End, atMs: number): NewReport {
  const report = { phase: 'ENDED' as const, ...nameOf(run), atMs, ...NOTHING, cause: end.cause, outputs: [] };
  return Object.assign(report, end);
}

/** Where reports are until the service has acknowledged them. */
type Kept = Pick<Journal, 'appendAll' | 'list' | 'acknowledge' | 'close'>;

/** In memory: of a runner that need not know them after a restart. */
export class MemoryJournal implements Kept {
  private readonly pending: RunReport[] = [];
  private lastSeq = 0;

  appendAll(reports: readonly NewReport[]): RunReport[] {
    const numbered = reports.map((report) => ({ ...report, seq: ++this.lastSeq }) as RunReport);
    this.pending.push(...numbered);
    return numbered;
  }

  list(limit: number): RunReport[] {
    return this.pending.slice(0, limit);
  }

  acknowledge(seq: number): RunReport[] {
    const kept = this.pending.findIndex((report) => report.seq > seq);
    return this.pending.splice(0, kept < 0 ? this.pending.length : kept);
  }

  close(): void {}
}

/** What a runner has to tell: in its journal, or in memory as long as the disk has no room for it. */
export class Reports {
  /** Called (soon, and once for many) when there are new ones. */
  onNews: (() => void) | null = null;
  /** Those for which there was no room, in order. */
  private readonly owed: NewReport[] = [];
  private announced = false;

  constructor(
    private readonly journal: Kept,
    private readonly disk: Pick<Disk, 'release'>,
    private readonly env: Pick<Env, 'soon'>,
  ) {}

  /** Whether some could not be written down yet. */
  get owes(): boolean {
    return this.owed.length > 0;
  }

  /** Keeps it in memory where there is no room for it: the next agent would find out by itself. */
  add(report: NewReport): void {
    if (!this.tryAdd(report)) this.owed.push(report);
  }

  /** The same for many, with one write. */
  addAll(reports: readonly NewReport[]): void {
    if (reports.length === 0) return;
    this.flush();
    if (this.owes || !this.keep(reports)) this.owed.push(...reports);
  }

  /** Behind all that is owed. False: there is no room for it. */
  tryAdd(report: NewReport): boolean {
    this.flush();
    return !this.owes && this.keep([report]);
  }

  /** Writes down what there was no room for. */
  flush(): void {
    for (let next = this.owed[0]; next && this.keep([next]); next = this.owed[0]) this.owed.shift();
  }

  /** The oldest that the service has not acknowledged. */
  list(limit: number): RunReport[] {
    return this.journal.list(limit);
  }

  /** Forgets those up to `seq`, and answers with them. */
  acknowledge(seq: number): RunReport[] {
    return this.journal.acknowledge(seq);
  }

  /** Has `onNews` called. */
  announce(): void {
    if (this.announced) return;
    this.announced = true;
    this.env.soon(() => {
      this.announced = false;
      this.onNews?.();
    });
  }

  close(): void {
    this.onNews = null;
    this.journal.close();
  }

  private keep(reports: readonly NewReport[]): boolean {
    try {
      this.journal.appendAll(reports);
    } catch (error) {
      if (!isPassing(error)) throw error;
      try {
        this.disk.release();
        this.journal.appendAll(reports);
      } catch {
        return false;
      }
    }
    this.announce();
    return true;
  }
}
