/** Scripts and standard input that travel with a job, and what a script's lines ask for. */
import { readFileSync, readSync, statSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { basename, delimiter, dirname, resolve } from 'node:path';
import { programEnvironment } from '../platform/connection.js';
import {
  type Asked,
  batchCommand,
  batchEnvironment,
  type Command,
  commandOfScript,
  directivesOf,
  exported,
  jobOf,
  misreadAs,
  SCRIPT_BYTES_MAX,
} from '../words/index.js';
import { note } from './command.js';
import { CliError, ExitCode } from './errors.js';
import { count, duration } from './format.js';
import type { GivenJob } from './job-options.js';

/** A script that was found, and what it asks for. */
export interface Shipped {
  asked: Asked;
  /** The job that its lines describe; what options say comes before it. */
  job: GivenJob;
  /** What runs it; `place` is that of an element in its array. */
  command: (place: number) => Command;
}

/**
 * The script that the command line names, read: a file of this machine that begins with `#!`, or whose name ends in `.sh`. Programs in a
 * directory of PATH are the site's. Null: it names no script.
 *
 * @param lenient lines that are not understood are left out, and told
 */
export function shippedScript(words: readonly string[], { lenient = false } = {}): Shipped | null {
  const [path, ...args] = words;
  const script = path === undefined ? null : scriptAt(path);
  if (path === undefined || script === null) return null;
  const { asked, misread, unheeded, isSlurms } = directivesOf(script, { nowMs: Date.now(), note });
  const name = basename(path);
  const wrong = misread.map((one) => misreadAs(path, one));
  if (wrong.length > 0 && !lenient)
    throw new CliError(`${wrong.join('\n')}\n(--lenient skips such lines)`, ExitCode.USAGE);
  for (const line of wrong) note(`skipped: ${line}`);
  for (const line of unheeded) note(`${path}: ignored: ${line}`);
  if (asked.partition !== undefined) note(`${path}: ignored: --partition: policies choose the site`);
  if (asked.clusters !== undefined)
    note(`${path}: ignored: --clusters: the service chooses from all its sites`);
  const env = programEnvironment();
  const submitter = { user: userInfo().username, host: hostname(), directory: process.cwd() };
  const environment = {
    ...(asked.exports !== undefined && exported(asked.exports, env)),
    ...(isSlurms && batchEnvironment({ ...asked, name: asked.name ?? name }, submitter)),
    ...asked.environment,
  };
  const run = commandOfScript(script, name, args);
  const job: GivenJob = {
    name,
    application: name,
    ...jobOf(asked),
    environment: Object.entries(environment).map(([variable, value]) => ({ name: variable, value })),
  };
  const understood = inWords(asked);
  if (understood !== '') note(`${path} asks for ${understood}`);
  return { asked, job, command: (place) => (isSlurms ? batchCommand(asked, run, place) : run) };
}

function scriptAt(path: string): string | null {
  const inPath = (programEnvironment().PATH ?? '').split(delimiter).map((folder) => resolve(folder || '.'));
  try {
    if (!statSync(path).isFile() || (path.startsWith('/') && inPath.includes(dirname(path)))) return null;
    const body = readFileSync(path);
    if (body.subarray(0, 2).toString('latin1') !== '#!' && !path.endsWith('.sh')) return null;
    return textOf(
      path,
      body,
      'copy the large part to the site and run it from a small script, or use --no-ship',
    );
  } catch (error) {
    if (error instanceof CliError) throw error;
    return null;
  }
}

function textOf(what: string, body: Buffer, way: string): string {
  if (body.length > SCRIPT_BYTES_MAX)
    throw new CliError(
      `${what} has ${body.length} bytes; accepted: up to ${SCRIPT_BYTES_MAX}; ${way}`,
      ExitCode.USAGE,
    );
  const text = body.toString('utf8');
  if (text.includes('\0') || !Buffer.from(text).equals(body))
    throw new CliError(`${what} is not UTF-8 text; ${way}`, ExitCode.USAGE);
  return text;
}

/** What the lines of a script were understood as; empty: they ask for nothing. */
function inWords(asked: Asked): string {
  const { tasks, cpusPerTask, memoryMbPerTask, runTimeLimitS, notBefore } = jobOf(asked);
  const { array } = asked;
  const said = [
    array && count(array.indices.length, 'job'),
    array?.atOnce && `${array.atOnce} at a time`,
    tasks && count(tasks, 'task'),
    cpusPerTask && `${count(cpusPerTask, 'CPU')}`,
    memoryMbPerTask && `${memoryMbPerTask} MB`,
    runTimeLimitS && `a limit of ${duration(runTimeLimitS)}`,
    notBefore && `a start at ${notBefore} or later`,
  ];
  return said.filter(Boolean).join(', ');
}

/**
 * Standard input, if there is some to ship: a file from its beginning on, or what comes through a pipe if `wanted`. A file that somebody else
 * is reading, such as a shell's loop, is not touched, nor is a pipe that may be somebody else's: a note says so. Null: nothing.
 */
export function standardInput(wanted: boolean): string | null {
  const way = 'provide it as a dataset (--input), or put it in a file at the site';
  try {
    const about = statSync('/dev/stdin');
    if (about.isFile()) {
      const [, position = '0'] = /^pos:\s*(\d+)/m.exec(readFileSync('/proc/self/fdinfo/0', 'utf8')) ?? [];
      if (position !== '0' && !wanted) return null;
    } else if (!wanted) {
      if (about.isFIFO()) note('standard input is a pipe and is not sent with the job; --stdin sends it');
      return null;
    }
  } catch {
    if (!wanted) return null;
  }
  // One more than is accepted, so that too much is seen and not read.
  const body = Buffer.alloc(SCRIPT_BYTES_MAX + 1);
  let bytes = 0;
  for (let read = -1; read !== 0 && bytes < body.length; bytes += read) read = readSome(body, bytes);
  if (bytes > SCRIPT_BYTES_MAX)
    throw new CliError(`standard input has more than ${SCRIPT_BYTES_MAX} bytes; ${way}`, ExitCode.USAGE);
  return textOf('standard input', body.subarray(0, bytes), way);
}

/** A pipe that does not block says so while nothing is in it. */
function readSome(body: Buffer, at: number): number {
  for (;;) {
    try {
      return readSync(0, body, at, body.length - at, null);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EOF') return 0;
      if (code !== 'EAGAIN') throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    }
  }
}
