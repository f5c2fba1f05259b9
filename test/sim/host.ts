/**
 * A machine with a disk, the processes of its runs, which outlive the agent, and the runner of an agent there: what process/runner.ts does
 * with real ones, over the real journal and the real accounts of the disk.
 */

import { type EndedRun, HandOver, type KnownAgent, type OpenFile } from '../../src/agent/files/handover.js';
import { KnownRuns } from '../../src/agent/known.js';
import { Disk, isPassing } from '../../src/agent/process/disk.js';
import { Journal } from '../../src/agent/process/journal.js';
import { type End, endReport, Reports } from '../../src/agent/process/reports.js';
import { ReportingRunner } from '../../src/agent/reporting.js';
import {
  type Assignment,
  type EndCause,
  type LiveOutput,
  type LiveRun,
  nameOf,
  type OutputPiece,
  type RunName,
  type Runner,
  type RunReport,
  runKey,
} from '../../src/agent/runner.js';
import type { Client } from '../../src/client/index.js';
import type { RandomStream } from '../../src/core/index.js';
import { SimulatedDisk } from './disk.js';
import { contentOf } from './files.js';
import type { Process, Time } from './time.js';

const DIR = '/agent';
const RUNS = `${DIR}/runs`;
const REPORTS = `${DIR}/reports`;
/** Small: segments of the journal come and go. */
const SEGMENT_BYTES = 1_024;
const POLL_MS = 500;
const PAUSE_MS = 1_000;
const GRACE_MS = 10_000;
const TERMINATED = 143;
/** Standard output, beside the files of a run. */
export const STDOUT = '1';

/** What a lane has written down of the end of its run. */
interface LaneEnd {
  code: number;
  atMs: number;
}

interface Lane {
  end: LaneEnd | null;
  cancel: () => void;
}

export class Host {
  readonly disk: SimulatedDisk;
  private lanes = new Map<string, Lane>();
  /** What the agent has written down and not handed over, by its own account. */
  private kept: () => readonly RunReport[] = () => [];
  /** Told of ends: the agent that lives. */
  onEnd: (key: string) => void = () => {};

  constructor(
    readonly time: Time,
    private readonly random: RandomStream,
    private readonly fail: (what: string) => void,
  ) {
    // On the small one the reserve holds no more than a report or two.
    this.disk = new SimulatedDisk(time, random, random.next() < 0.5 ? 100 : 1_000);
  }

  launch(key: string, durationMs: number, code: number): void {
    if (this.lanes.has(key)) this.fail(`2: run ${key} was started twice on its machine`);
    const lane: Lane = { end: null, cancel: () => {} };
    this.lanes.set(key, lane);
    lane.cancel = this.time.after(durationMs, () => this.end(key, lane, code));
  }

  /** What asks for the end of a run, which needs a while for that. */
  terminate(key: string): void {
    const lane = this.lanes.get(key);
    if (lane === undefined || lane.end !== null) return;
    lane.cancel();
    lane.cancel = this.time.after(this.random.integer(0, GRACE_MS), () => this.end(key, lane, TERMINATED));
  }

  /** How a run stands; null: nobody knows of it. */
  lane(key: string): Readonly<Lane> | null {
    return this.lanes.get(key) ?? null;
  }

  /** An agent knows nothing of a run. */
  lost(key: string): void {
    if (this.lanes.has(key)) this.fail(`1: run ${key} is called lost, and its machine knows of it`);
  }

  /** An agent begins with these reports; `kept` tells those that it has later. */
  begins(reports: readonly RunReport[], kept: () => readonly RunReport[]): void {
    const found = new Map(reports.map((report) => [report.seq, report]));
    for (const report of this.kept()) {
      const again = found.get(report.seq);
      if (!again || runKey(again) !== runKey(report) || again.phase !== report.phase)
        this.fail(`1: the report ${report.phase} of run ${runKey(report)} was written down and is gone`);
    }
    this.kept = kept;
  }

  /** Whatever has happened, no more than the last line of a segment is torn, and no number is given twice. */
  look(): void {
    const [first] = this.kept();
    for (const [path, text] of this.disk.textsBelow(REPORTS)) {
      if (path.endsWith('/acknowledged')) {
        if (first && first.seq <= Number(text))
          this.fail(`1: report ${first.seq} is new, and ${text.trim()} were acknowledged`);
        continue;
      }
      for (const line of text.split('\n').slice(0, -1))
        if (!isWhole(line)) this.fail(`1: a part of a line stays in ${path}`);
    }
  }

  cutPower(): void {
    this.kept = () => [];
    for (const { cancel } of this.lanes.values()) cancel();
    this.lanes = new Map();
    this.disk.cutPower();
  }

  /** Of how many runs a process lives. */
  get living(): number {
    return [...this.lanes.values()].filter(({ end }) => end === null).length;
  }

  private end(key: string, lane: Lane, code: number): void {
    lane.end = { code, atMs: this.time.now };
    this.onEnd(key);
  }
}

interface RunRecord extends RunName {
  startedAtMs: number;
  startedUpMs: number;
  runTimeLimitS: number | null;
  durationMs: number;
  /** Paths of files that are to be kept. */
  outputs: readonly string[];
}

interface DurableRun extends RunRecord {
  /** Bytes of its output that the service has. */
  sent: number;
  /** An earlier agent may have sent some. */
  asks: boolean;
  /** Its files are being kept, or were; `problem`: why not. */
  keeping: { stop: AbortController; done: boolean; problem: string | null } | null;
  stop: 'CANCELLED_BY_USER' | 'RUN_TIME_LIMIT' | null;
  forgotten: boolean;
  lookAgain: boolean;
}

const begun = { stop: null, forgotten: false, lookAgain: false, sent: 0, keeping: null } as const;

/** A file of a run, whose directory is its name. */
async function openFile({ directory }: EndedRun, path: string): Promise<OpenFile> {
  const body = contentOf(directory, path);
  return {
    read: async (buffer, offset, length, position) => ({
      bytesRead: body.copy(buffer, offset, position, position + length),
    }),
    close: async () => {},
  };
}

export class DurableRunner extends ReportingRunner implements Runner {
  private readonly live = new Map<string, DurableRun>();
  private readonly waiting = new Map<string, Assignment>();
  private readonly disk: Disk;
  private pausedUntilMs = 0;
  private polls = false;
  private readonly hand: HandOver;
  private us: KnownAgent | null = null;

  /** @throws when the disk has no room for it, or it dies */
  constructor(
    private readonly host: Host,
    private readonly process: Process,
    client: Pick<Client, 'request' | 'put'>,
  ) {
    const { files } = process;
    const known = new KnownRuns();
    const journal = new Journal(REPORTS, (report) => known.add(report), files, SEGMENT_BYTES);
    const disk = new Disk(DIR, files);
    super(new Reports(journal, disk, process), known);
    this.disk = disk;
    this.hand = HandOver.ofRuns(client, openFile, process);
    const written = (): RunReport[] => this.reported.list(Number.POSITIVE_INFINITY);
    host.begins(written(), written);
    host.onEnd = (key) => process.soon(() => this.look(key));
    this.recover();
    this.poll();
  }

  nowMs(): number {
    return this.process.nowMs();
  }

  get problem(): string | null {
    return null;
  }

  /** As the keeper of outputs. */
  serve(us: KnownAgent): void {
    this.us = us;
    for (const key of this.live.keys()) this.look(key);
  }

  async clean(): Promise<string[]> {
    return [];
  }

  start(assignment: Assignment): void {
    if (!this.isNew(assignment)) return;
    this.waiting.set(runKey(assignment), assignment);
    this.launchWaiting();
  }

  resume(assignment: Assignment): void {
    if (!this.isNew(assignment)) return;
    this.host.lost(runKey(assignment));
    this.reportEnd(assignment, { cause: 'LOST' });
  }

  cancel(name: RunName): void {
    const key = runKey(name);
    const run = this.live.get(key);
    if (run) {
      this.stop(key, run, 'CANCELLED_BY_USER');
      return;
    }
    if (this.waiting.delete(key)) this.known.add(name);
    else if (!this.isUnheard(name)) return;
    this.reportEnd(name, { cause: 'CANCELLED_BY_USER' });
  }

  forget(name: RunName): void {
    const key = runKey(name);
    this.known.add(name);
    this.waiting.delete(key);
    const run = this.live.get(key);
    if (!run) return;
    run.forgotten = true;
    this.stop(key, run, 'CANCELLED_BY_USER');
  }

  runs(): LiveRun[] {
    const startedAtMs = this.process.nowMs();
    return [...this.live.values(), ...this.waiting.values()].map((run) => ({ ...nameOf(run), startedAtMs }));
  }

  freshOutput(): LiveOutput[] {
    return [...this.live.values()].flatMap((run) => {
      if (run.forgotten) return [];
      if (run.asks) return [{ ...nameOf(run), stream: 'STDOUT' as const, start: 0, text: '', bytes: 0 }];
      return this.unsent(run).map((piece) => ({ ...nameOf(run), ...piece }));
    });
  }

  delivered(pieces: readonly LiveOutput[], received: readonly (number | null)[] = []): void {
    for (const [i, piece] of pieces.entries()) {
      const run = this.live.get(runKey(nameOf(piece)));
      if (!run) continue;
      const length = Buffer.byteLength(piece.base64 ?? '', 'base64');
      run.sent = Math.max(run.sent, piece.start + length, received[i] ?? 0);
      run.asks = false;
    }
  }

  /** What a run has written and nobody has been told: bytes of it come as time goes on. */
  private unsent(run: DurableRun): OutputPiece[] {
    const body = contentOf(runKey(run), STDOUT);
    const part = Math.min(1, (this.process.upMs() - run.startedUpMs) / run.durationMs);
    const bytes =
      this.host.lane(runKey(run))?.end?.code === 0 ? body.length : Math.floor(part * body.length) || 0;
    if (bytes <= run.sent) return [];
    const base64 = body.subarray(run.sent, bytes).toString('base64');
    return [{ stream: 'STDOUT', start: run.sent, base64, bytes }];
  }

  close(): void {}

  protected isLive(run: RunName): boolean {
    const key = runKey(run);
    return this.live.has(key) || this.waiting.has(key);
  }

  private launchWaiting(): void {
    for (const [key, assignment] of this.waiting) {
      const { upMs } = this.process;
      if (this.reported.owes || upMs() < this.pausedUntilMs || this.disk.isLow(upMs())) {
        this.poll();
        return;
      }
      this.waiting.delete(key);
      this.launch(key, assignment);
    }
  }

  private launch(key: string, assignment: Assignment): void {
    const { process, host } = this;
    const { runTimeLimitS } = assignment;
    const durationMs = Math.max(0, assignment.simulatedS ?? assignment.plannedS) * 1000;
    const outputs = (assignment.outputs ?? []).map((one) => one.path);
    const record = {
      ...{ ...nameOf(assignment), runTimeLimitS, durationMs, outputs },
      ...{ startedAtMs: process.nowMs(), startedUpMs: process.upMs() },
    };
    const path = `${RUNS}/${key}`;
    try {
      this.record(path, JSON.stringify(record));
    } catch (error) {
      if (!isPassing(error)) throw error;
      process.files.rmSync(path, { force: true });
      this.pausedUntilMs = process.upMs() + PAUSE_MS;
      this.waiting.set(key, assignment);
      return;
    }
    this.live.set(key, { ...record, ...begun, asks: false });
    this.reported.add({ phase: 'STARTED', ...nameOf(assignment), atMs: record.startedAtMs });
    host.launch(key, durationMs, assignment.command === FAILING ? 1 : 0);
    if (runTimeLimitS !== null) this.limit(key, record.startedUpMs + runTimeLimitS * 1000);
  }

  /** Writes down the whole of it, or throws. */
  private record(path: string, text: string): void {
    const { files } = this.process;
    const fd = files.openSync(path, 'w');
    const bytes = Buffer.from(text);
    try {
      if (files.writeSync(fd, bytes, 0, bytes.length, 0) < bytes.length)
        throw Object.assign(new Error('no room'), { code: 'ENOSPC' });
    } finally {
      files.closeSync(fd);
    }
  }

  private limit(key: string, atUpMs: number): void {
    this.process.after(Math.min(atUpMs - this.process.upMs(), 2 ** 31), () => {
      const run = this.live.get(key);
      if (run) this.stop(key, run, 'RUN_TIME_LIMIT');
    });
  }

  private stop(key: string, run: DurableRun, cause: NonNullable<DurableRun['stop']>): void {
    run.stop ??= cause;
    run.keeping?.stop.abort(new Error('the run was cancelled'));
    this.host.terminate(key);
  }

  /** Whether a run is over; then its end is reported, as soon as there is room for that. */
  private look(key: string): void {
    const run = this.live.get(key);
    if (!run) return;
    const { stop, startedAtMs, startedUpMs, runTimeLimitS } = run;
    const lane = this.host.lane(key);
    if (lane !== null && lane.end === null) return;
    const code = lane?.end?.code ?? null;
    if (code === 0 && this.isKeeping(key, run)) return;
    const upMs = (!run.keeping && lane?.end?.atMs) || this.process.upMs();
    const outlasted = runTimeLimitS !== null && upMs - startedUpMs >= runTimeLimitS * 1000;
    const cause =
      code === null ? (stop ?? 'LOST') : endCause(code, stop ?? (outlasted ? 'RUN_TIME_LIMIT' : null));
    const problem = run.keeping?.problem ?? null;
    const kept = problem === null ? cause : (stop ?? 'OUTPUTS_FAILED');
    const outputs = run.forgotten ? [] : this.unsent(run);
    const end = {
      cause: kept,
      message: problem,
      outputs,
      exitCode: code,
      signal: code === TERMINATED ? 'SIGTERM' : null,
    };
    const report = endReport(run, end, Math.round(startedAtMs + upMs - startedUpMs));
    run.lookAgain = !run.forgotten && !this.reported.tryAdd(report);
    if (run.lookAgain) {
      this.poll();
      return;
    }
    if (!run.forgotten) this.known.reported(run);
    this.live.delete(key);
    this.process.files.rmSync(`${RUNS}/${key}`, { force: true });
    this.launchWaiting();
  }

  /** Whether files of a run that has ended well are still being kept. */
  private isKeeping(key: string, run: DurableRun): boolean {
    const { outputs, task = 0 } = run;
    if (outputs.length === 0 || run.forgotten || (run.stop && !run.keeping)) return false;
    if (run.keeping || this.us === null) return !run.keeping?.done;
    const keeping: NonNullable<DurableRun['keeping']> = {
      stop: new AbortController(),
      done: false,
      problem: null,
    };
    run.keeping = keeping;
    const ended = { ...nameOf(run), task, directory: key, uid: null, outputs: [], well: true };
    const over = (problem: string | null): void => {
      Object.assign(keeping, { done: true, problem });
      this.process.soon(() => this.look(key));
    };
    const { signal } = keeping.stop;
    this.hand.handOver(this.us, ended, outputs, signal).then(
      () => over(null),
      (error: Error) => over(error.message),
    );
    return true;
  }

  /** As long as something is not as it should be. */
  private poll(): void {
    if (this.polls) return;
    this.polls = true;
    this.process.after(POLL_MS, () => {
      this.polls = false;
      this.reported.flush();
      for (const [key, { lookAgain }] of [...this.live]) if (lookAgain) this.look(key);
      this.launchWaiting();
      if (this.reported.owes) this.poll();
    });
  }

  private recover(): void {
    const { files } = this.process;
    const ended = new Set<string>();
    const started = new Set<string>();
    for (const report of this.reported.list(Number.POSITIVE_INFINITY)) {
      if (report.phase === 'ENDED') this.known.reported(report);
      (report.phase === 'ENDED' ? ended : started).add(runKey(report));
    }
    for (const key of files.readdirSync(RUNS)) {
      const record = recordOf(files.readFileSync(`${RUNS}/${key}`, 'utf8'));
      if (record === null || ended.has(key)) {
        files.rmSync(`${RUNS}/${key}`, { force: true });
        continue;
      }
      const { startedAtMs, startedUpMs, runTimeLimitS } = record;
      this.known.add(record);
      this.live.set(key, { ...record, ...begun, asks: true });
      if (!started.has(key)) this.reported.add({ phase: 'STARTED', ...nameOf(record), atMs: startedAtMs });
      if (runTimeLimitS !== null) this.limit(key, startedUpMs + runTimeLimitS * 1000);
      this.look(key);
    }
  }

  protected override reportEnd(run: RunName, end: End): void {
    super.reportEnd(run, end);
    if (this.reported.owes) this.poll();
  }
}

/** A program that fails. */
export const FAILING = 'false';

const endCause = (code: number, stop: DurableRun['stop']): EndCause =>
  code === 0 ? 'EXITED_ZERO' : (stop ?? (code === TERMINATED ? 'SIGNALLED' : 'EXITED_NONZERO'));

/** A line of the journal: a checksum, and a report. */
function isWhole(line: string): boolean {
  try {
    return JSON.parse(line.slice(9)).seq > 0;
  } catch {
    return false;
  }
}

function recordOf(text: string): RunRecord | null {
  try {
    return JSON.parse(text) as RunRecord;
  } catch {
    return null;
  }
}
