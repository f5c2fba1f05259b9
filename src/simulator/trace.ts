/**
 * Reads recorded workloads, line by line: neither the file nor what is wrong with it has to fit into memory. A line that is no job
 * is reported by its number and never stops the rest from being read; a file without any job is an error.
 */
import { GwfLines } from './gwf.js';
import { nameOf, piecesOf } from './input.js';
import { type LineReader, type SwfJob, SwfLines } from './swf.js';

/** A line that is neither header nor job. */
export interface MalformedLine {
  /** From 1. */
  line: number;
  why: string;
}

/** What is known of a trace besides its jobs. */
export interface TraceScan {
  /** As messages call the file. */
  name: string;
  /** `Key: value` lines of the header; a line without a key continues the value before it, behind a line break. */
  header: ReadonlyMap<string, string>;
  /** By key: the line, from 1. */
  headerLines: ReadonlyMap<string, number>;
  jobCount: number;
  /** The first {@link MALFORMED_KEPT} of them. */
  malformed: MalformedLine[];
  malformedCount: number;
  /** What numbers stand for, where the format has names: partitions, and users. */
  siteNames: ReadonlyMap<number, string>;
  userNames: ReadonlyMap<number, string>;
}

export interface Trace extends TraceScan {
  jobs: SwfJob[];
}

export const MALFORMED_KEPT = 100;
/** More than the largest log of the Parallel Workloads Archive has. */
export const MAX_JOBS = 6_000_000;
/** A longer line is no line of a trace. */
const MAX_LINE_BYTES = 64 * 1024;
const MAX_HEADER_CHARS = 1024 ** 2;
const NEWLINE = 10;
const NONE: ReadonlyMap<number, string> = new Map();

export type Visit = (job: Readonly<SwfJob>, scan: TraceScan) => void;

/** Reads a trace with all its jobs; throws as {@link scanTrace}. */
export async function readTrace(path: string): Promise<Trace> {
  const jobs: SwfJob[] = [];
  const scan = await scanTrace(path, (job) => {
    jobs.push({ ...job });
  });
  return { ...scan, jobs };
}

/**
 * Reads a trace (`-`: standard input), gzipped or not, in the Standard or the Grid Workload Format, and shows each of its jobs, with
 * what is known so far, without keeping them: the job may be the same object each time, filled anew. A trace is in the
 * Grid Workload Format if its name ends in `.gwf` or its first line is a comment after `#`.
 *
 * Throws what reading the file throws, on more than `MAX_BYTES`, `MAX_JOBS` or `MAX_LINE_BYTES`, and on a file without a job.
 */
export async function scanTrace(path: string, visit: Visit): Promise<TraceScan> {
  const scanner = new Scanner(nameOf(path), visit);
  if (/\.gwf(\.gz)?$/i.test(path)) scanner.reader = new GwfLines();
  for await (const piece of piecesOf(path)) scanner.take(piece);
  return scanner.end();
}

/** Parses the text of a trace. */
export function parseTrace(text: string, name = 'text'): Trace {
  const jobs: SwfJob[] = [];
  const scanner = new Scanner(name, (job) => {
    jobs.push({ ...job });
  });
  scanner.take(Buffer.from(text, 'utf8'));
  return { ...scanner.end(), jobs };
}

class Scanner implements TraceScan {
  readonly header = new Map<string, string>();
  readonly headerLines = new Map<string, number>();
  readonly malformed: MalformedLine[] = [];
  malformedCount = 0;
  jobCount = 0;
  /** null: the first line will tell. */
  reader: LineReader | null = null;
  private line = 0;
  private key: string | null = null;
  private headerChars = 0;
  /** The beginning of a line whose end is still to come. */
  private rest: Buffer = Buffer.alloc(0);

  constructor(
    readonly name: string,
    private readonly visit: Visit,
  ) {}

  get siteNames(): ReadonlyMap<number, string> {
    return this.reader?.siteNames ?? NONE;
  }

  get userNames(): ReadonlyMap<number, string> {
    return this.reader?.userNames ?? NONE;
  }

  take(piece: Buffer): void {
    const end = piece.lastIndexOf(NEWLINE) + 1;
    if (end > 0) this.lines(Buffer.concat([this.rest, piece.subarray(0, end)]));
    this.rest = end > 0 ? piece.subarray(end) : Buffer.concat([this.rest, piece]);
    if (this.rest.length > MAX_LINE_BYTES) {
      throw new Error(
        `${this.name}, line ${this.line + 1}: longer than ${MAX_LINE_BYTES} bytes, the maximum length of a line`,
      );
    }
  }

  end(): TraceScan {
    if (this.rest.length > 0) this.lines(Buffer.concat([this.rest, Buffer.from('\n')]));
    const { name, header, headerLines, jobCount, malformed, malformedCount, siteNames, userNames } = this;
    if (jobCount === 0) throw new Error(this.without());
    return { name, header, headerLines, jobCount, malformed, malformedCount, siteNames, userNames };
  }

  private without(): string {
    const { name, line, malformed, malformedCount } = this;
    const [first] = malformed;
    if (line === 0) return `${name}: no jobs: the file is empty`;
    if (first === undefined) return `${name}: no jobs, only ${line} empty or comment lines`;
    return `${name}: no jobs; ${malformedCount} malformed lines, the first is line ${first.line}: ${first.why}`;
  }

  /** `bytes` end with the end of a line. */
  private lines(bytes: Buffer): void {
    const { visit } = this;
    for (let begin = 0; begin < bytes.length; ) {
      this.line++;
      const next = this.reader?.readPlain?.(bytes, begin) ?? -1;
      if (next !== -1) {
        this.count();
        visit(this.reader?.plain as SwfJob, this);
        begin = next;
        continue;
      }
      const end = bytes.indexOf(NEWLINE, begin);
      const content = bytes.toString('utf8', begin, end).trim();
      begin = end + 1;
      if (content !== '') this.other(content);
    }
  }

  /** A line of the header, a job, or neither. */
  private other(content: string): void {
    this.reader ??= content.startsWith('#') ? new GwfLines() : new SwfLines();
    if (content.startsWith(this.reader.comment)) {
      this.readHeader(content.slice(1));
      return;
    }
    const read = this.reader.read(content);
    if (typeof read !== 'string') {
      this.count();
      this.visit(read, this);
    } else if (this.malformedCount++ < MALFORMED_KEPT) this.malformed.push({ line: this.line, why: read });
  }

  private count(): void {
    if (++this.jobCount > MAX_JOBS)
      throw new Error(`${this.name}, line ${this.line}: more than ${MAX_JOBS} jobs, the maximum`);
  }

  private readHeader(content: string): void {
    this.headerChars += content.length;
    if (this.headerChars > MAX_HEADER_CHARS) return;
    const match = /^\s?([A-Za-z]\w*):\s*(.*)$/.exec(content);
    const [key, value] = match ? [match[1] as string, match[2] as string] : [this.key, content.trim()];
    this.key = key;
    if (key === null || value === '') return;
    const before = this.header.get(key);
    this.header.set(key, before === undefined ? value : `${before}\n${value}`);
    if (before === undefined) this.headerLines.set(key, this.line);
  }
}

/** What a number in the header says; null: the header does not say it. Throws naming the line where it is no such number. */
export function wholeInHeader(scan: TraceScan, key: string, max: number): number | null {
  const text = scan.header.get(key);
  if (text === undefined) return null;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= 1 && value <= max) return value;
  throw new Error(
    `${scan.name}, line ${scan.headerLines.get(key)}: ${key} is "${text.slice(0, 50)}"; accepted: a whole number from 1 to ${max}`,
  );
}
