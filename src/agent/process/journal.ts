import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import type { EndedReport, RunReport, StartedReport } from '../runner.js';

/** A segment is closed beyond this size, and removed when all its reports are acknowledged. */
const SEGMENT_BYTES = 4 << 20;
const ACK_DIGITS = 16;

/** A report before it gets its number. */
export type NewReport = Omit<StartedReport, 'seq'> | Omit<EndedReport, 'seq'>;

/**
 * The reports that the service has not acknowledged, in order and on disk: JSON lines in segments named by their first
 * number, and the last acknowledged number in a file beside them.
 *
 * Nothing is fsynced. A write survives kill -9 of the agent as soon as the system call returns, and that is what can go
 * wrong while runs go on. When the whole machine dies, so do its runs: the service learns that from the runs that the
 * agent does not know any more. What a lost tail can cost is that a run whose start was never acknowledged is started again
 * after the reboot under the same epoch; never two at once. An fsync per run would cost more than the run, and compete
 * with the database's on a machine that has both.
 */
export class Journal {
  private readonly pending: RunReport[] = [];
  private head = 0;
  private acknowledged: number;
  private lastSeq: number;
  private readonly ackFd: number;
  private fd = -1;
  private size = 0;
  /** First numbers of the segments on disk, ascending; the last is being written. */
  private readonly segments: number[] = [];

  /** @param seen is told of every report found on disk, also of acknowledged ones that are still there */
  constructor(
    private readonly dir: string,
    seen: (report: RunReport) => void,
  ) {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    this.ackFd = openSync(join(dir, 'acknowledged'), constants.O_RDWR | constants.O_CREAT, 0o600);
    this.acknowledged = Number(readFileSync(join(dir, 'acknowledged'), 'utf8')) || 0;
    this.lastSeq = this.acknowledged;
    const firsts = readdirSync(dir).flatMap((name) =>
      /^\d+\.jsonl$/.test(name) ? [Number.parseInt(name, 10)] : [],
    );
    for (const first of firsts.sort((a, b) => a - b)) {
      this.segments.push(first);
      for (const report of this.read(first)) {
        this.lastSeq = Math.max(this.lastSeq, report.seq);
        if (report.seq > this.acknowledged) this.pending.push(report);
        seen(report);
      }
    }
    this.openSegment();
    this.removeSegments();
  }

  /** Numbers a report and keeps it. When this returns, kill -9 does not lose it. */
  append(report: NewReport): RunReport {
    const numbered = { ...report, seq: this.lastSeq + 1 } as RunReport;
    this.lastSeq = numbered.seq;
    this.size += writeSync(this.fd, `${JSON.stringify(numbered)}\n`);
    this.pending.push(numbered);
    if (this.size > SEGMENT_BYTES) this.openSegment();
    return numbered;
  }

  /** The oldest unacknowledged reports. */
  list(limit: number): RunReport[] {
    return this.pending.slice(this.head, this.head + limit);
  }

  /** Forgets the reports up to `seq`, and answers with them. */
  acknowledge(seq: number): RunReport[] {
    if (seq <= this.acknowledged) return [];
    const first = this.head;
    this.acknowledged = Math.min(seq, this.lastSeq);
    while (this.head < this.pending.length && this.pending[this.head]!.seq <= seq) this.head++;
    const gone = this.pending.slice(first, this.head);
    // Cut away in large pieces: a queue that is long because the service was away would be copied at every step.
    if (this.head > 1000 || this.head === this.pending.length) {
      this.pending.splice(0, this.head);
      this.head = 0;
    }
    // One system call of constant width: kill -9 leaves the old number or the new one.
    writeSync(this.ackFd, String(this.acknowledged).padStart(ACK_DIGITS), 0);
    this.removeSegments();
    return gone;
  }

  close(): void {
    closeSync(this.fd);
    closeSync(this.ackFd);
  }

  private openSegment(): void {
    if (this.fd >= 0) closeSync(this.fd);
    const first = this.lastSeq + 1;
    if (this.segments.at(-1) !== first) this.segments.push(first);
    this.fd = openSync(this.path(first), 'a', 0o600);
    this.size = 0;
  }

  private removeSegments(): void {
    while (this.segments.length > 1 && this.segments[1]! <= this.acknowledged + 1) {
      rmSync(this.path(this.segments.shift()!), { force: true });
    }
  }

  private path(first: number): string {
    return join(this.dir, `${first}.jsonl`);
  }

  private read(first: number): RunReport[] {
    const text = readFileSync(this.path(first), 'utf8');
    // The agent may have died while writing the last line: what has no end was never taken as written.
    const end = text.lastIndexOf('\n') + 1;
    if (end < text.length) truncateSync(this.path(first), Buffer.byteLength(text.slice(0, end)));
    return text
      .slice(0, end)
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as RunReport);
  }
}
