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

/** Reads a trace, gzipped or not. Throws what reading the file or unpacking it throws, and on more than 1 GiB. */
export async function readSwf(path: string): Promise<SwfTrace> {
  const bytes = await readFile(path);
  const gzipped = bytes[0] === 0x1f && bytes[1] === 0x8b;
  return parseSwf((gzipped ? gunzipSync(bytes, { maxOutputLength: MAX_BYTES }) : bytes).toString('utf8'));
}

/** Parses the text of a trace. */
export function parseSwf(text: string): SwfTrace {
  const header = new Map<string, string>();
  const trace: SwfTrace = {
    header,
    jobs: [],
    malformed: [],
    malformedCount: 0,
  };
  let key: string | null = null;
  let line = 0;
  for (let begin = 0; begin < text.length; ) {
    const end = text.indexOf('\n', begin);
    const content = text.slice(begin, end < 0 ? text.length : end).trim();
    begin = end < 0 ? text.length : end + 1;
    line++;
    if (content === '') continue;
    if (content.startsWith(';')) {
      key = readHeader(content.slice(1), key, header);
      continue;
    }
    const job = readJob(content);
    if (typeof job !== 'string') {
      trace.jobs.push(job);
    } else if (trace.malformedCount++ < MALFORMED_KEPT) {
      trace.malformed.push({ line, why: job });
    }
  }
  return trace;
}

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
  const at = (field: number): number => numbers[field - 1]!;
  return {
    id: at(1),
    submit: at(2),
    wait: at(3),
    run: at(4),
    allocatedProcessors: at(5),
    averageCpu: at(6),
    usedMemoryKb: at(7),
    requestedProcessors: at(8),
    requestedTime: at(9),
    requestedMemoryKb: at(10),
    status: at(11),
    user: at(12),
    group: at(13),
    executable: at(14),
    queue: at(15),
    partition: at(16),
    precedingJob: at(17),
    thinkTime: at(18),
  };
}
