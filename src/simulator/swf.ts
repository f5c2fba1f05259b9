/**
 * The Standard Workload Format (Feitelson's Parallel Workloads Archive): header lines `; Key: value`, then a job a line, 18
 * numbers separated by white space, -1 where a value is not known. Further columns are left alone.
 */
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

/** Reads the lines of a format. */
export interface LineReader {
  /** Begins a line of the header. */
  readonly comment: string;
  /** Of whole lines: reads the job of the one at `begin` into `plain`; -1 if it is not as plain as that. */
  readPlain?(bytes: Buffer, begin: number): number;
  readonly plain?: Readonly<SwfJob>;
  /** The job of a line, or what is wrong with it. */
  read(content: string): SwfJob | string;
  readonly siteNames?: ReadonlyMap<number, string>;
  readonly userNames?: ReadonlyMap<number, string>;
}

const FIELDS = 18;
/** Seconds; beyond, sums of times would no longer be exact. */
export const MAX_TIME_S = 1e12;

/** Ids, numbers of processors, and codes: half of one means nothing. */
const WHOLE = [0, 4, 7, 10, 11, 12, 13, 14, 15, 16];
const TIMES = [1, 2, 3, 8, 17];
const IS_WHOLE = Array.from({ length: FIELDS }, (_, i) => WHOLE.includes(i));
const MOST = Array.from({ length: FIELDS }, (_, i) =>
  TIMES.includes(i) ? MAX_TIME_S : Number.MAX_SAFE_INTEGER,
);

/** Reads lines of the Standard Workload Format. */
export class SwfLines implements LineReader {
  readonly comment = ';';
  private readonly fields = new FieldReader();
  /** Shown again and again. */
  private readonly job = jobOf(new Int32Array(FIELDS));

  /** Reads the job at `begin` of whole lines, if it is written plainly; returns where the next line begins, else -1. */
  readPlain(bytes: Buffer, begin: number): number {
    const { fields, job } = this;
    const next = fields.readLine(bytes, begin);
    if (next === -1) return -1;
    if (!fields.whole && wrongIn(fields.numbers) !== null) return -1;
    fill(job, fields.whole ? fields.integers : fields.numbers);
    return next;
  }

  get plain(): Readonly<SwfJob> {
    return this.job;
  }

  read(content: string): SwfJob | string {
    const numbers = numbersIn(content.split(/\s+/, FIELDS));
    return typeof numbers === 'string' ? numbers : jobOf(numbers);
  }
}

/** The fields of a job as numbers, or what is wrong with them. */
export function numbersIn(words: readonly string[]): number[] | string {
  if (words.length < FIELDS) return `${words.length} fields; ${FIELDS} are required`;
  const bad = words.findIndex((word) => !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(word));
  if (bad >= 0) return `field ${bad + 1} is "${words[bad]?.slice(0, 50)}"; a number is required`;
  const numbers = words.map(Number);
  return wrongIn(numbers) ?? numbers;
}

function wrongIn(numbers: ArrayLike<number>): string | null {
  for (let i = 0; i < FIELDS; i++) {
    const value = numbers[i] as number;
    const most = MOST[i] as number;
    if (!(Math.abs(value) <= most)) return `field ${i + 1} is ${value}; a number up to ${most} is required`;
    if (IS_WHOLE[i] && !Number.isInteger(value))
      return `field ${i + 1} is ${value}; a whole number is required`;
  }
  return null;
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

  /**
   * Reads the fields of the line at `begin`. Returns where the next line begins, -1 if this one is not so plain. The bytes end
   * with the end of a line, which stops every loop below: none need ask for the end of the bytes.
   */
  readLine(bytes: Buffer, begin: number): number {
    const { numbers, integers } = this;
    this.whole = true;
    let at = begin;
    let byte = bytes[at] as number;
    for (let field = 0; field < FIELDS; field++) {
      while (byte === SPACE || byte === TAB) byte = bytes[++at] as number;
      const negative = byte === MINUS;
      if (negative) byte = bytes[++at] as number;
      const first = at;
      let value = 0;
      for (; byte >= ZERO && byte <= NINE; byte = bytes[++at] as number)
        value = (value * 10 + (byte - ZERO)) | 0;
      if (byte === POINT || at - first > DIGITS) {
        at = this.readOther(field, bytes, first, negative);
        if (at === -1) return -1;
        byte = bytes[at] as number;
      } else {
        if (at === first) return -1;
        if (negative) value = -value | 0;
        numbers[field] = value;
        integers[field] = value;
      }
      if (byte !== SPACE && byte !== TAB && byte !== NEWLINE && byte !== RETURN) return -1;
    }
    // Mostly nothing else is in the line, and to ask for its end would cost a call.
    while (byte === SPACE || byte === TAB || byte === RETURN) byte = bytes[++at] as number;
    return (byte === NEWLINE ? at : bytes.indexOf(NEWLINE, at)) + 1;
  }

  /** Reads a number of more digits, or with a point, whose digits begin at `first`; where it ends, -1 if it is not so plain. */
  private readOther(field: number, bytes: Buffer, first: number, negative: boolean): number {
    let at = first;
    let value = 0;
    let byte = bytes[at] as number;
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
    if (negative) value = -value;
    this.numbers[field] = value;
    this.integers[field] = value;
    if (this.integers[field] !== value) this.whole = false;
    return at;
  }
}

/** As many make a number of 32 bits, which is several times as quick to read. */
const DIGITS = 9;

const POWERS = Array.from({ length: 16 }, (_, i) => 10 ** i);

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

export function jobOf(fields: ArrayLike<number>): SwfJob {
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
