import { ENDED_BEFORE, type KnownRuns } from './known.js';
import { type End, endReport, type Reports } from './process/reports.js';
import type { EndCause, RunName, RunReport } from './runner.js';

/** What runners have in common that report by themselves: they hand them over, and know which runs they have seen. */
export abstract class ReportingRunner {
  constructor(
    protected readonly reported: Reports,
    protected readonly known: KnownRuns,
  ) {}

  abstract nowMs(): number;
  /** Whether it goes on here. */
  protected abstract isLive(run: RunName): boolean;

  get onReports(): (() => void) | null {
    return this.reported.onNews;
  }
  set onReports(told: (() => void) | null) {
    this.reported.onNews = told;
  }

  reports(limit: number): RunReport[] {
    return this.reported.list(limit);
  }

  acknowledge(seq: number): void {
    for (const report of this.reported.acknowledge(seq))
      if (report.phase === 'ENDED') this.known.acknowledged(report);
  }

  knows(run: RunName): boolean {
    return this.known.has(run);
  }

  /** As of StageableRunner. */
  fail(run: RunName, cause: EndCause, message: string): void {
    if (this.known.has(run)) return;
    this.known.add(run);
    this.reportEnd(run, { cause, message });
  }

  /** Whether a run has never been seen here. From now on it has been. */
  protected isNew(run: RunName): boolean {
    const standing = this.known.standing(run, this.isLive(run));
    this.known.add(run);
    if (standing === 'acknowledged') this.reportEnd(run, { cause: 'LOST', message: ENDED_BEFORE });
    return standing === 'new';
  }

  /** Whether a run that does not go on here has to be reported as over: neither it nor a later one of the job has been seen. */
  protected isUnheard(run: RunName): boolean {
    if (this.known.standing(run, false) === 'past') return false;
    this.known.add(run);
    return true;
  }

  /** Reports the end of a run of which nobody else will. */
  protected reportEnd(run: RunName, end: End, atMs = this.nowMs()): void {
    this.known.reported(run);
    this.reported.add(endReport(run, end, atMs));
  }
}
