/** What a simulation writes: files in parts, so that a long run needs no more memory than a short one. */

import { closeSync, openSync, writeSync } from 'node:fs';
import { cpusOf, type Run } from '../core/index.js';
import { csvCell } from '../words/index.js';
import type { World } from './engine.js';
import { joined, Processors, type Taken } from './processors.js';
import type { ResultSink, RunEnd, Sink } from './sink.js';
import type { SimJob } from './workload.js';

const BUFFER_BYTES = 1 << 18;
/** More than a number takes. */
const NUMBER_BYTES = 32;
/** Up to which a loop is faster than a call. */
const SHORT_CHARS = 64;
const ZERO = 48;
const MINUS = 45;
const POINT = 46;
const SPACE = 32;
const COMMA = 44;
const MICRO = 1e6;
/** The digits of 0 to 9999, four bytes each: a division gives four digits, not one. */
const FOURS = Buffer.from(Array.from({ length: 10_000 }, (_, i) => String(i).padStart(4, '0')).join(''));

/** A file of text that is written in large parts. Numbers go straight into the bytes: as strings they take most of the time. */
export class TextFile {
  private readonly file: number;
  private readonly bytes = Buffer.allocUnsafe(BUFFER_BYTES);
  private length = 0;

  /** Opens the file; throws what opening it throws. */
  constructor(path: string) {
    this.file = openSync(path, 'w');
  }

  text(text: string): this {
    // A character takes at most 3 bytes.
    if (3 * text.length > BUFFER_BYTES) {
      this.flush();
      this.write(Buffer.from(text));
      return this;
    }
    this.room(3 * text.length);
    if (text.length > SHORT_CHARS) this.length += this.bytes.write(text, this.length);
    else this.short(text);
    return this;
  }

  /** As short as it can be read back. */
  number(value: number): this {
    const whole = value | 0;
    if (whole !== value) return this.text(String(value));
    this.room(NUMBER_BYTES);
    this.digits(whole);
    return this;
  }

  /** A number and a blank, in one step: lines of many numbers are written so. */
  field(value: number): this {
    return this.numberAnd(value, SPACE);
  }

  /** A number and a comma. */
  cell(value: number): this {
    return this.numberAnd(value, COMMA);
  }

  /** To a millionth. */
  rounded(value: number): this {
    const whole = Math.trunc(value);
    const micros = Math.round((value - whole) * MICRO);
    if (micros === 0 || micros === MICRO || !(value >= 0 && value < 2 ** 31))
      return this.number(Math.round(value * MICRO) / MICRO);
    this.room(NUMBER_BYTES);
    this.digits(whole);
    this.bytes[this.length++] = POINT;
    for (let rest = micros, unit = MICRO / 10; rest > 0; unit /= 10) {
      const digit = Math.trunc(rest / unit);
      this.bytes[this.length++] = ZERO + digit;
      rest -= digit * unit;
    }
    return this;
  }

  close(): void {
    try {
      this.flush();
    } finally {
      closeSync(this.file);
    }
  }

  private numberAnd(value: number, separator: number): this {
    this.number(value);
    this.room(1);
    this.bytes[this.length++] = separator;
    return this;
  }

  private short(text: string): void {
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code > 127) {
        this.length += this.bytes.write(text.slice(i), this.length);
        return;
      }
      this.bytes[this.length++] = code;
    }
  }

  /** A whole number of 32 bits. */
  private digits(value: number): void {
    const { bytes } = this;
    let rest = value;
    if (rest < 0) {
      bytes[this.length++] = MINUS;
      rest = -rest;
    }
    if (rest < 10_000) {
      this.firstFour(rest);
      return;
    }
    const above = (rest / 10_000) | 0;
    if (above < 10_000) this.firstFour(above);
    else {
      const top = (above / 10_000) | 0;
      this.firstFour(top);
      this.four(above - 10_000 * top);
    }
    this.four(rest - 10_000 * above);
  }

  /** Up to four digits, without zeros before them. */
  private firstFour(value: number): void {
    const { bytes } = this;
    let at = this.length;
    const from = 4 * value;
    if (value >= 1000) bytes[at++] = FOURS[from] as number;
    if (value >= 100) bytes[at++] = FOURS[from + 1] as number;
    if (value >= 10) bytes[at++] = FOURS[from + 2] as number;
    bytes[at++] = FOURS[from + 3] as number;
    this.length = at;
  }

  private four(value: number): void {
    const { bytes, length } = this;
    const from = 4 * value;
    bytes[length] = FOURS[from] as number;
    bytes[length + 1] = FOURS[from + 1] as number;
    bytes[length + 2] = FOURS[from + 2] as number;
    bytes[length + 3] = FOURS[from + 3] as number;
    this.length = length + 4;
  }

  private room(bytes: number): void {
    if (this.length + bytes > BUFFER_BYTES) this.flush();
  }

  private flush(): void {
    const { length } = this;
    this.length = 0;
    this.write(this.bytes.subarray(0, length));
  }

  private write(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) at += writeSync(this.file, bytes, at);
  }
}

const COLUMNS =
  'job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,' +
  'starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,' +
  'consumed_energy,metadata,site';

/** Of a run that has ended. */
const NONE: Taken = [];

/** Success and final state. */
const END_STATES: Record<RunEnd, string> = {
  COMPLETED: ',1,COMPLETED_SUCCESSFULLY,',
  KILLED_AT_LIMIT: ',0,COMPLETED_WALLTIME_REACHED,',
  LOST: ',0,COMPLETED_KILLED,',
  PREEMPTED: ',0,COMPLETED_KILLED,',
};

/**
 * Writes a row for each run when it ends, in the columns of Batsim's `_jobs.csv`, which evalys and other tools read, and behind
 * them the name of the site. A run that was lost or stopped has its row too. Energy is not simulated: -1.
 */
export class BatsimCsv implements Sink {
  private readonly file: TextFile;
  private readonly processors: Processors;
  private readonly taken: Taken[] = [];
  /** Between a job's number and its number in the profile's name. */
  private readonly workloadName: string;
  /** By id: the end of its rows. */
  private readonly sites: ReadonlyMap<number, string>;

  /** Opens the file; throws what opening it throws. */
  constructor(path: string, workloadName: string, world: World) {
    this.workloadName = `,${csvCell(workloadName)},run-`;
    this.sites = new Map(world.sites.map(({ id, name }) => [id, `,-1,,${csvCell(name)}\n`]));
    this.processors = new Processors(world);
    this.file = new TextFile(path);
    this.file.text(`${COLUMNS}\n`);
  }

  started({ job }: SimJob, index: number, run: Run): void {
    this.taken[index] = this.processors.take(run, job);
  }

  ended({ job, sourceId, limitS }: SimJob, index: number, run: Run, at: number, how: RunEnd): void {
    const taken = this.taken[index] as Taken;
    this.processors.give(run, taken);
    this.taken[index] = NONE;
    const { start } = run;
    const { submittedAt } = job;
    const turnaround = at - submittedAt;
    const { file } = this;
    file.number(sourceId).text(this.workloadName).cell(sourceId).cell(submittedAt);
    file.cell(cpusOf(job)).number(limitS ?? job.estimateS);
    file
      .text(END_STATES[how])
      .cell(start)
      .cell(at - start)
      .cell(at);
    file.cell(start - submittedAt).cell(turnaround);
    file.rounded(at > start ? turnaround / (at - start) : 1).text(',');
    writeIntervals(file, taken);
    file.text(this.sites.get(run.siteId) as string);
  }

  close(): void {
    this.file.close();
  }
}

/** As Batsim writes a set of processors: `1-2 5 10-50`. */
function writeIntervals(file: TextFile, taken: Taken): void {
  const all = joined(taken);
  for (let i = 0; i < all.length; i += 2) {
    const [first, last] = [all[i] as number, all[i + 1] as number];
    if (i > 0) file.text(' ');
    file.number(first);
    if (last !== first) file.text('-').number(last);
  }
}

/** Writes a JSON object a line for each start and each end, as they happen. */
export class JsonLines implements Sink {
  private readonly file: TextFile;

  /** Opens the file; throws what opening it throws. */
  constructor(path: string) {
    this.file = new TextFile(path);
  }

  started({ sourceId }: SimJob, _index: number, run: Run): void {
    const { siteId, allocations, pools, start, plannedEnd } = run;
    this.file.text(
      `${JSON.stringify({
        event: 'START',
        at: start,
        job: sourceId,
        site: siteId,
        allocations,
        pools,
        plannedEnd,
      })}\n`,
    );
  }

  ended({ sourceId }: SimJob, _index: number, run: Run, at: number, how: RunEnd): void {
    this.file.text(`${JSON.stringify({ event: 'END', at, job: sourceId, site: run.siteId, how })}\n`);
  }

  close(): void {
    this.file.close();
  }
}

/**
 * Writes jobs in the Standard Workload Format, by submission, with what the schedule made of them: wait, run, processors,
 * status (1 completed, 0 killed at its limit) and, as the partition, the site. What the trace said of user, group, executable,
 * queue, memory and dependency stays. A job that never ran has -1 for the wait and the run, and status 5.
 */
export function writeSwf(
  path: string,
  header: Readonly<Record<string, string | number>>,
  jobs: readonly SimJob[],
  results: ResultSink | null,
): void {
  const file = new TextFile(path);
  try {
    for (const [key, value] of Object.entries(header)) file.text(`; ${key}: ${value}\n`);
    for (let i = 0; i < jobs.length; i++) writeJob(file, jobs[i] as SimJob, results, i);
  } finally {
    file.close();
  }
}

function writeJob(
  file: TextFile,
  { job, sourceId, runS, limitS, siteId, recorded }: SimJob,
  results: ResultSink | null,
  index: number,
): void {
  const cpus = cpusOf(job);
  let [wait, run, got, status, site] = [-1, runS, cpus, -1, siteId ?? -1];
  if (results !== null) {
    const start = results.starts[index] as number;
    const end = results.ends[index] as number;
    const ran = !Number.isNaN(end);
    [wait, run, got] = ran ? [start - job.submittedAt, end - start, cpus] : [-1, -1, -1];
    status = ran ? 1 - (results.killed[index] as number) : 5;
    if (ran) site = results.siteIds[index] as number;
  }
  file.field(sourceId).field(job.submittedAt).field(wait).field(run).field(got);
  // What was generated, or is not from a trace, says nothing more.
  if (recorded === undefined) {
    file
      .text('-1 -1 ')
      .field(cpus)
      .field(limitS ?? job.estimateS);
    file.text('-1 ').field(status).field(job.userId).text('-1 -1 -1 ').field(site).text('-1 -1\n');
    return;
  }
  const { averageCpu, usedMemoryKb, requestedMemoryKb, group, executable, queue } = recorded;
  file.field(averageCpu).field(usedMemoryKb).field(cpus);
  file.field(limitS ?? job.estimateS).field(requestedMemoryKb);
  file.field(status).field(job.userId).field(group).field(executable).field(queue).field(site);
  file.field(recorded.precedingJob).number(recorded.thinkTime).text('\n');
}
