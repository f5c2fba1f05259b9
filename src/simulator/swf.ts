/**
 * Reads the Standard Workload Format (Feitelson's Parallel Workloads Archive): header lines `; Key: value`, then a job a
 * line, 18 numbers separated by white space, -1 where a value is not known. Further columns are left alone. A line that
 * is no job is reported by its number; it never stops the rest from being read.
 */
import { readFile } from 'node:fs/promises';
import { gunzipSync } from 'node:zlib';

/** A job of a trace, its fields in the order of the format. Times are seconds, memory is KB per processor; -1: unknown. */
export interface SwfJob {
  id: number;
  /** After the start of the trace. */
  submit: number;
  wait: number;
  run: number;
  allocatedProcessors: number;
  averageCpu: number;
  usedMemoryKb: number;
  requestedProcessors: number;
  requestedTime: number;
  requestedMemoryKb: number;
  /** 0 failed, 1 completed, 2 to 4 parts of a job with checkpoints, 5 cancelled. */
  status: number;
  user: number;
  group: number;
  executable: number;
  queue: number;
  partition: number;
  /** The job that must end first. */
  precedingJob: number;
  /** Between the end of that job and this one's submission. */
  thinkTime: number;
}

/** A line that is neither header nor job. */
export interface MalformedLine {
  /** From 1. */
  line: number;
  why: string;
}

export interface SwfTrace {
  /** `Key: value` lines of the header; a line without a key continues the value before it, behind a line break. */
  header: ReadonlyMap<string, string>;
  jobs: SwfJob[];
  /** The first {@link MALFORMED_KEPT} of them. */
  malformed: MalformedLine[];
  malformedCount: number;
}

const FIELDS = 18;
export const MALFORMED_KEPT = 100;
const MAX_BYTES = 1024 ** 3;
/** Unpacked at a time: in the 16 KB that zlib takes unless told, a third of the time goes to their number. */
const CHUNK_BYTES = 1024 ** 2;

/** Reads a trace, gzipped or not. Throws what reading the file or unpacking it throws, and on more than 1 GiB. */
export async function readSwf(path: string): Promise<SwfTrace> {
  const jobs: SwfJob[] = [];
  const scan = await scanSwf(path, (job) => {
    jobs.push({ ...job });
  });
  return { ...scan, jobs };
}

/** What is known of a trace besides its jobs. */
export type SwfScan = Omit<SwfTrace, 'jobs'>;

/**
 * Reads a trace and shows each of its jobs, with the header so far, without keeping them: the job is the same object each
 * time, filled anew. Throws as {@link readSwf}.
 */
export async function scanSwf(
  path: string,
  visit: (job: Readonly<SwfJob>, header: SwfScan['header']) => void,
): Promise<SwfScan> {
  return scan(unpacked(await readFile(path)), visit);
}

/** The content of a file that may be gzipped. Throws on more than 1 GiB of it. */
export function unpacked(bytes: Buffer): Buffer {
  const gzipped = bytes[0] === 0x1f && bytes[1] === 0x8b;
  return gzipped ? gunzipSync(bytes, { maxOutputLength: MAX_BYTES, chunkSize: CHUNK_BYTES }) : bytes;
}

/** Parses the text of a trace. */
export function parseSwf(text: string): SwfTrace {
  const jobs: SwfJob[] = [];
  const found = scan(Buffer.from(text, 'utf8'), (job) => {
    jobs.push({ ...job });
  });
  return { ...found, jobs };
}

function scan(bytes: Buffer, visit: (job: SwfJob, header: SwfScan['header']) => void): SwfScan {
  const header = new Map<string, string>();
  const trace: SwfScan = { header, malformed: [], malformedCount: 0 };
  const job = jobOf(new Int32Array(FIELDS));
  const fields = new FieldReader(bytes);
  let key: string | null = null;
  let line = 0;
  for (let begin = 0; begin < bytes.length; ) {
    line++;
    const next = fields.readLine(begin);
    if (next !== -1) {
      fill(job, fields.whole ? fields.integers : fields.numbers);
      visit(job, header);
      begin = next;
      continue;
    }
    const end = bytes.indexOf(NEWLINE, begin);
    const content = bytes.toString('utf8', begin, end < 0 ? bytes.length : end).trim();
    begin = end < 0 ? bytes.length : end + 1;
    if (content === '') continue;
    if (content.startsWith(';')) {
      key = readHeader(content.slice(1), key, header);
      continue;
    }
    const read = readJob(content);
    if (typeof read !== 'string') visit(read, header);
    else if (trace.malformedCount++ < MALFORMED_KEPT) trace.malformed.push({ line, why: read });
  }
  return trace;
}

const NEWLINE = 10;
const SPACE = 32;
const TAB = 9;
const RETURN = 13;
const MINUS = 45;
const POINT = 46;
const ZERO = 48;
const NINE = 57;

/**
 * Reads lines as archives write them, straight from the bytes: 18 numbers such as 12, -1 or 3.75 between blanks. Anything
 * else it leaves to the caller. This is five times as fast as splitting strings.
 */
class FieldReader {
  readonly numbers = new Float64Array(FIELDS);
  /** The same, if all are whole and small: objects keep such numbers without boxing them. */
  readonly integers = new Int32Array(FIELDS);
  whole = true;
  /** The last end of a line: it stops every loop below, so that none need ask for the end of the bytes. */
  private readonly last: number;

  constructor(private readonly bytes: Buffer) {
    this.last = bytes.lastIndexOf(NEWLINE);
  }

  /** Reads the fields of the line at `begin`. Returns where the next line begins, -1 if this one is not so plain. */
  readLine(begin: number): number {
    const { bytes, numbers, integers } = this;
    if (begin > this.last) return -1;
    this.whole = true;
    let at = begin;
    let byte = bytes[at] as number;
    for (let field = 0; field < FIELDS; field++) {
      while (byte === SPACE || byte === TAB) byte = bytes[++at] as number;
      const negative = byte === MINUS;
      if (negative) byte = bytes[++at] as number;
      const first = at;
      let value = 0;
      for (; byte >= ZERO && byte <= NINE; byte = bytes[++at] as number) value = value * 10 + (byte - ZERO);
      let digits = at - first;
      if (byte === POINT) {
        const point = at;
        byte = bytes[++at] as number;
        for (; byte >= ZERO && byte <= NINE; byte = bytes[++at] as number) value = value * 10 + (byte - ZERO);
        const decimals = at - point - 1;
        digits += decimals;
        // Exact: both are whole numbers below 2^53, and a division rounds once.
        value /= POWERS[decimals] ?? Number.NaN;
      }
      // 15 digits are exact in a double.
      if (digits === 0 || digits > 15) return -1;
      if (byte !== SPACE && byte !== TAB && byte !== NEWLINE && byte !== RETURN) return -1;
      if (negative) value = -value;
      numbers[field] = value;
      integers[field] = value;
      if (integers[field] !== value) this.whole = false;
    }
    // Mostly nothing else is in the line, and to ask for its end would cost a call.
    while (byte === SPACE || byte === TAB || byte === RETURN) byte = bytes[++at] as number;
    return (byte === NEWLINE ? at : bytes.indexOf(NEWLINE, at)) + 1;
  }
}

const POWERS = Array.from({ length: 16 }, (_, i) => 10 ** i);

/** Takes in a header line; returns the key that a following line without one continues. */
function readHeader(content: string, key: string | null, header: Map<string, string>): string | null {
  const match = /^\s?([A-Za-z]\w*):\s*(.*)$/.exec(content);
  const [name, value] = match ? [match[1]!, match[2]!] : [key, content.trim()];
  if (name === null || value === '') return name;
  const before = header.get(name);
  header.set(name, before === undefined ? value : `${before}\n${value}`);
  return name;
}

/** The job of a line, or what is wrong with the line. */
function readJob(content: string): SwfJob | string {
  const words = content.split(/\s+/, FIELDS);
  if (words.length < FIELDS) return `${words.length} fields, ${FIELDS} are needed`;
  const numbers = words.map(Number);
  const bad = numbers.findIndex((number) => !Number.isFinite(number));
  if (bad >= 0) return `field ${bad + 1} is "${words[bad]}", a number is needed`;
  return jobOf(numbers);
}

function fill(job: SwfJob, fields: ArrayLike<number>): void {
  job.id = fields[0] as number;
  job.submit = fields[1] as number;
  job.wait = fields[2] as number;
  job.run = fields[3] as number;
  job.allocatedProcessors = fields[4] as number;
  job.averageCpu = fields[5] as number;
  job.usedMemoryKb = fields[6] as number;
  job.requestedProcessors = fields[7] as number;
  job.requestedTime = fields[8] as number;
  job.requestedMemoryKb = fields[9] as number;
  job.status = fields[10] as number;
  job.user = fields[11] as number;
  job.group = fields[12] as number;
  job.executable = fields[13] as number;
  job.queue = fields[14] as number;
  job.partition = fields[15] as number;
  job.precedingJob = fields[16] as number;
  job.thinkTime = fields[17] as number;
}

function jobOf(fields: ArrayLike<number>): SwfJob {
  return {
    id: fields[0] as number,
    submit: fields[1] as number,
    wait: fields[2] as number,
    run: fields[3] as number,
    allocatedProcessors: fields[4] as number,
    averageCpu: fields[5] as number,
    usedMemoryKb: fields[6] as number,
    requestedProcessors: fields[7] as number,
    requestedTime: fields[8] as number,
    requestedMemoryKb: fields[9] as number,
    status: fields[10] as number,
    user: fields[11] as number,
    group: fields[12] as number,
    executable: fields[13] as number,
    queue: fields[14] as number,
    partition: fields[15] as number,
    precedingJob: fields[16] as number,
    thinkTime: fields[17] as number,
  };
}
