import { constants } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { type Files, REAL_ENV } from '../../platform/env.js';
import {
  type EndedReport,
  type OutputPiece,
  type RunReport,
  type StartedReport,
  type Stream,
  UNMEASURED,
} from '../runner.js';

/** A segment is closed beyond this size, and removed when all its reports are acknowledged. */
const SEGMENT_BYTES = 4 << 20;
const ACK_DIGITS = 16;

/** A report before it gets its number. */
export type NewReport = Omit<StartedReport, 'seq'> | Omit<EndedReport, 'seq'>;

/**
 * The reports that the service has not acknowledged, in order and on disk: lines of a checksum and JSON in segments named by their
 * first number, and the last acknowledged number in a file beside them.
 *
 * A line is written whole or not at all: where the disk takes only a part of it, that part is cut off again and the report is not
 * taken (`append` throws; what was to be reported can be reported later). What is nevertheless torn or spoiled, by a power cut or a bad
 * disk, is left out when the journal is read: the lines around it count.
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
  /** Behind `size` there may be something. */
  private isTorn = false;
  /** First numbers of the segments on disk, ascending; the last is being written. */
  private readonly segments: number[] = [];

  /** Lines that could not be read: no whole reports. */
  readonly spoiled: number;

  /** @param seen is told of every report found on disk, also of acknowledged ones that are still there */
  constructor(
    private readonly dir: string,
    seen: (report: RunReport) => void,
    private readonly files: Files = REAL_ENV.files,
    private readonly segmentBytes = SEGMENT_BYTES,
  ) {
    this.files.mkdirSync(dir, { recursive: true, mode: 0o700 });
    this.ackFd = this.files.openSync(join(dir, 'acknowledged'), constants.O_RDWR | constants.O_CREAT, 0o600);
    this.acknowledged = Number(this.files.readFileSync(join(dir, 'acknowledged'), 'utf8')) || 0;
    this.lastSeq = this.acknowledged;
    const firsts = this.files
      .readdirSync(dir)
      .flatMap((name) => (/^\d+\.jsonl$/.test(name) ? [Number.parseInt(name, 10)] : []));
    let spoiled = 0;
    for (const first of firsts.sort((a, b) => a - b)) {
      this.segments.push(first);
      for (const report of this.read(first)) {
        if (report === null) spoiled++;
        // In ascending order, so that what is acknowledged is a beginning.
        else if (report.seq > this.lastSeq || report.seq <= this.acknowledged) {
          this.lastSeq = Math.max(this.lastSeq, report.seq);
          if (report.seq > this.acknowledged) this.pending.push(report);
          seen(report);
        }
      }
    }
    this.spoiled = spoiled;
    this.removeSegments();
  }

  /** Numbers a report and keeps it. When this returns, kill -9 does not lose it; when it throws, nothing was kept. */
  append(report: NewReport): RunReport {
    return this.appendAll([report])[0] as RunReport;
  }

  /** The same for many, with one write: all are kept, or none. */
  appendAll(reports: readonly NewReport[]): RunReport[] {
    if (this.fd < 0 || this.size > this.segmentBytes) this.openSegment();
    const numbered = reports.map((report, i) => ({ ...report, seq: this.lastSeq + 1 + i }) as RunReport);
    this.write(Buffer.from(numbered.map(lineOf).join('')));
    this.lastSeq += numbered.length;
    this.pending.push(...numbered);
    return numbered;
  }

  private write(line: Buffer): void {
    // What could not be cut off before, or is written late.
    if (this.isTorn) this.files.ftruncateSync(this.fd, this.size);
    this.isTorn = true;
    try {
      const written = this.files.writeSync(this.fd, line, 0, line.length, null);
      if (written < line.length) {
        // The rest says why: mostly that the disk is full.
        const rest = this.files.writeSync(this.fd, line, written, line.length - written, null);
        if (written + rest < line.length)
          throw Object.assign(new Error('the disk is full'), { code: 'ENOSPC' });
      }
      this.size += line.length;
      this.isTorn = false;
    } catch (error) {
      this.files.ftruncateSync(this.fd, this.size);
      this.isTorn = false;
      throw error;
    }
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
    // One system call of constant width: kill -9 leaves the old number or the new one. On a full disk it may stay the old one: then
    // the next agent reports again, and is told that it repeats itself.
    try {
      const digits = Buffer.from(String(this.acknowledged).padStart(ACK_DIGITS));
      this.files.writeSync(this.ackFd, digits, 0, digits.length, 0);
      this.removeSegments();
    } catch {}
    return gone;
  }

  close(): void {
    if (this.fd >= 0) this.files.closeSync(this.fd);
    this.files.closeSync(this.ackFd);
  }

  private openSegment(): void {
    const first = this.lastSeq + 1;
    // Somebody may have removed it.
    this.files.mkdirSync(this.dir, { recursive: true, mode: 0o700 });
    const fd = this.files.openSync(this.path(first), 'a', 0o600);
    if (this.fd >= 0) this.files.closeSync(this.fd);
    this.fd = fd;
    // One of that name has no whole line in it, or the number would be taken.
    this.files.ftruncateSync(fd, 0);
    this.size = 0;
    this.isTorn = false;
    if (this.segments.at(-1) !== first) this.segments.push(first);
  }

  private removeSegments(): void {
    while (this.segments.length > 1 && this.segments[1]! <= this.acknowledged + 1) {
      this.files.rmSync(this.path(this.segments.shift()!), { force: true });
    }
  }

  private path(first: number): string {
    return join(this.dir, `${first}.jsonl`);
  }

  /** null: a line that is no whole report. The last one may lack its end: the agent died while it was written. */
  private read(first: number): (RunReport | null)[] {
    const lines = this.files.readFileSync(this.path(first), 'utf8').split('\n');
    if (lines.at(-1) === '') lines.pop();
    return lines.map(reportOf);
  }
}

const lineOf = (report: RunReport): string => {
  const text = JSON.stringify(report);
  return `${checksum(text)} ${text}\n`;
};

const checksum = (text: string): string => crc32(text).toString(16).padStart(8, '0');

function reportOf(line: string): RunReport | null {
  // Lines of earlier releases are without a checksum.
  const text = line.startsWith('{') ? line : line.slice(9);
  if (text !== line && line.slice(0, 9) !== `${checksum(text)} `) return null;
  try {
    return upToDate(JSON.parse(text));
  } catch {
    return null;
  }
}

/** What a stream was in reports of an earlier release. */
type OldText = { text: string; bytes: number } | null;

function upToDate(report: RunReport & { stdout?: OldText; stderr?: OldText }): RunReport {
  if (report.phase !== 'ENDED' || report.outputs !== undefined) return report;
  const { stdout, stderr, ...rest } = report;
  const piece = (stream: Stream, text: OldText | undefined): OutputPiece[] =>
    text ? [{ stream, start: 0, ...text }] : [];
  return { ...UNMEASURED, ...rest, outputs: [...piece('STDOUT', stdout), ...piece('STDERR', stderr)] };
}
