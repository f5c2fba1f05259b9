import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { REAL_ENV } from '../../platform/env.js';
import { plainJobEnvironment } from '../../platform/environment.js';
import { acquireLock, type LockFile } from '../../platform/lockfile.js';
import type { SiteLoadInput } from '../documents.gql.js';
import type { EndedRun } from '../files/handover.js';
import { ENDED_BEFORE, KnownRuns } from '../known.js';
import { Disk } from '../process/disk.js';
import { endOf as endOfCommand, keptEnd } from '../process/ends.js';
import { delivered, type Followed, freshOutput, lastOutputs } from '../process/follow.js';
import { agentId } from '../process/identity.js';
import { Journal } from '../process/journal.js';
import { Outputs } from '../process/outputs.js';
import { type End, endReport, Reports } from '../process/reports.js';
import { upMs } from '../process/run.js';
import { checkStrings, LaunchError } from '../process/script.js';
import {
  type Assignment,
  type EndCause,
  type LiveOutput,
  type LiveRun,
  nameOf,
  type RunName,
  type Runner,
  type RunReport,
  runKey,
  UNMEASURED,
} from '../runner.js';
import { type Capacity, type LocalJob, type LocalScheduler, RefusedError } from './scheduler.js';
import { batchScript, type EndMark, endOf, TIMED_OUT, whereOf } from './script.js';

export interface ExternalRunnerOptions {
  /** On a file system that the nodes share with the agent, under the same path; one agent at a time. */
  stateDir: string;
  scheduler: LocalScheduler;
  /** What every run begins with. */
  baseEnvironment?: Readonly<{ [name: string]: string }>;
  /** How much is kept of each stream of a run. */
  outputLimitBytes?: number;
  keep?: (run: EndedRun, signal: AbortSignal) => Promise<string | null>;
  warn?: (fields: object, message: string) => void;
  /** Between two looks at what runs have written, ms. */
  pollMs?: number;
  /** Between two questions to the scheduler, ms. */
  listMs?: number;
}

/** Submissions under way at once. */
const AT_ONCE = 2;
/** After a submission of which nobody knows what became of it: longer than the scheduler may take to show it. */
const UNSURE_MS = 10_000;
/** Without a sign of it in two lists so far apart a run is looked for. */
const MISSING_MS = 10_000;
/** What a run wrote may take so long to be seen here. */
const SETTLE_MS = 10_000;
/** Between two requests to end a run. */
const CANCEL_MS = 15_000;
/** Between two looks at the site's capacity. */
const CAPACITY_MS = 10_000;
/** What the scheduler's words about a waiting run are told at most so often. */
const WORDS_MS = 30_000;

/** What the next agent has to know: written before the scheduler is asked. */
interface RunRecord {
  assignment: Assignment;
  handedOverMs: number;
  /** The scheduler's name for it; null: not known. */
  localId: string | null;
}

interface Handed extends RunRecord {
  key: string;
  /** A submission is under way. */
  busy: boolean;
  /** An earlier one may have been taken: it is looked for first. */
  unsure: boolean;
  /** Not submitted before (by the clock of durations). */
  notBefore: number;
  /** When it was not in the list for the first time; null: it is there. */
  missingSince: number | null;
  /** As the scheduler listed it last. */
  listed: LocalJob | null;
  /** When it began; null: it has not, as far as is known. */
  beganMs: number | null;
  /** The scheduler says that it is over, and nothing was written; since when. */
  silentSince: number | null;
  asked: 'CANCEL' | 'FORGET' | null;
  askedAt: number;
  words: string | null;
  wordsAt: number;
  /** Its output while it runs. */
  followed: Followed | null;
  /** How it ended, as far as it is decided; then its outputs are kept, and it is reported. */
  end: { end: End; atMs: number } | null;
  keeping: AbortController | null;
}

/**
 * Hands runs over to a site's own scheduler and reports what becomes of them.
 *
 * On disk, under the state directory: `runs/KEY/run` (the record), `runs/KEY/script`, `runs/KEY/out` and `err`; `began/KEY` and `ended/KEY`,
 * which the script makes (script.ts) and which are the truth. The scheduler's answers only explain, and say what will never begin. A
 * scheduler that does not answer ends nothing.
 */
export class ExternalRunner implements Runner {
  private readonly runsByKey = new Map<string, Handed>();
  private readonly waiting: Handed[] = [];
  private underWay = 0;
  private readonly known: KnownRuns;
  private readonly reported: Reports;
  private timer: NodeJS.Timeout | undefined;
  private polling = false;
  private listedAt = Number.NEGATIVE_INFINITY;
  private capacityAt = Number.NEGATIVE_INFINITY;
  private closed = false;
  private trouble: string | null = null;
  private capacityNow: Capacity;
  private readonly dirs: { runs: string; began: string; ended: string };

  private constructor(
    readonly id: string,
    private readonly lock: LockFile,
    journal: Journal,
    known: KnownRuns,
    private readonly options: Required<ExternalRunnerOptions>,
    capacity: Capacity,
  ) {
    const { stateDir } = options;
    this.known = known;
    this.capacityNow = capacity;
    this.reported = new Reports(journal, new Disk(stateDir), REAL_ENV);
    this.dirs = {
      runs: join(stateDir, 'runs'),
      began: join(stateDir, 'began'),
      ended: join(stateDir, 'ended'),
    };
    for (const dir of Object.values(this.dirs)) mkdirSync(dir, { recursive: true, mode: 0o700 });
  }

  /**
   * Takes the state directory into use, and up what an earlier agent left there.
   *
   * @throws LockHeldError when another agent uses it; what the scheduler says where it does not tell its capacity
   */
  static async open(given: ExternalRunnerOptions): Promise<ExternalRunner> {
    const stateDir = resolve(given.stateDir);
    const capacity = await given.scheduler.capacity();
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    const lock = await acquireLock(join(stateDir, 'lock'), 'the state directory of the agent');
    const id = agentId(stateDir);
    const known = new KnownRuns();
    const journal = new Journal(join(stateDir, 'reports'), (report) => known.add(report));
    const runner = new ExternalRunner(
      id,
      lock,
      journal,
      known,
      {
        baseEnvironment: plainJobEnvironment(),
        outputLimitBytes: 256 << 10,
        keep: async () => 'this agent keeps no files',
        warn: () => {},
        pollMs: 1_000,
        listMs: 5_000,
        ...given,
        stateDir,
      },
      capacity,
    );
    runner.recover();
    runner.timer = setInterval(() => void runner.poll(), runner.options.pollMs);
    return runner;
  }

  get problem(): string | null {
    return this.trouble;
  }

  /** The site's machines and what of them is taken, as the scheduler said last. */
  get capacity(): Capacity {
    return this.capacityNow;
  }

  /** For the schedulers of the service: our runs are known there, and count in what is taken only. */
  get load(): SiteLoadInput {
    const { nodes, waiting } = this.capacityNow;
    const others = waiting.filter(({ name }) => !this.runsByKey.has(keyOf(name) ?? ''));
    return {
      waitingJobs: others.length,
      waitingS: others.reduce((sum, { limitS }) => sum + limitS, 0),
      waitingCpuS: others.reduce((sum, { limitS, cpus }) => sum + limitS * cpus, 0),
      busy: nodes
        .filter(({ busyCpus, busyMemoryMb }) => busyCpus + busyMemoryMb > 0)
        .map(({ name, busyCpus, busyMemoryMb }) => ({
          ...{ machine: name, cpus: busyCpus, memoryMb: busyMemoryMb },
        })),
    };
  }

  /** As the nodes': they write times of their own. */
  nowMs(): number {
    return Date.now();
  }

  start(assignment: Assignment): void {
    const key = runKey(assignment);
    const standing = this.known.standing(assignment, this.runsByKey.has(key));
    this.known.add(assignment);
    if (standing === 'acknowledged')
      this.reportUnstarted(assignment, { cause: 'LOST', message: ENDED_BEFORE });
    if (standing !== 'new') return;
    const problem = this.problemOf(assignment);
    if (problem !== null) this.reportUnstarted(assignment, problem);
    else this.handOver(this.take({ assignment, handedOverMs: Date.now(), localId: null }, false));
  }

  resume(assignment: Assignment): void {
    const standing = this.known.standing(assignment, this.runsByKey.has(runKey(assignment)));
    this.known.add(assignment);
    if (standing === 'past') return;
    const message = standing === 'new' ? 'the agent knows nothing of this run' : ENDED_BEFORE;
    this.reportUnstarted(assignment, { cause: 'LOST', message });
  }

  cancel(name: RunName): void {
    const run = this.runsByKey.get(runKey(name));
    if (run === undefined) {
      if (this.known.standing(name, false) === 'past') return;
      this.known.add(name);
      const message = 'cancelled before it was handed over';
      this.reportUnstarted(name, { cause: 'CANCELLED_BY_USER', message });
      return;
    }
    run.asked ??= 'CANCEL';
    run.keeping?.abort(new Error('the run was cancelled'));
    this.stop(run);
  }

  forget(name: RunName): void {
    this.known.add(name);
    const run = this.runsByKey.get(runKey(name));
    if (run === undefined) return;
    run.asked = 'FORGET';
    run.keeping?.abort(new Error('the service has given up the run'));
    this.stop(run);
  }

  runs(): LiveRun[] {
    return [...this.runsByKey.values()]
      .filter(({ asked }) => asked !== 'FORGET')
      .map((run) => ({ ...nameOf(run.assignment), startedAtMs: run.beganMs ?? run.handedOverMs }));
  }

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

  freshOutput(): LiveOutput[] {
    const found: { run: Followed; isOver: boolean }[] = [];
    for (const { followed, end, asked } of this.runsByKey.values())
      if (followed !== null && asked !== 'FORGET') found.push({ run: followed, isOver: end !== null });
    return freshOutput(found);
  }

  delivered(pieces: readonly LiveOutput[], received: readonly (number | null)[] = []): void {
    for (const [i, piece] of pieces.entries()) {
      const run = this.runsByKey.get(runKey(piece));
      if (run?.followed) delivered(run.followed, piece, received[i] ?? 0);
    }
  }

  /** Lets go: runs stay with the scheduler, and the next agent finds them. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    clearInterval(this.timer);
    for (const run of this.runsByKey.values()) {
      run.keeping?.abort(new Error('the agent stops'));
      run.followed?.outputs.close();
    }
    this.reported.close();
    this.lock.release();
  }

  // --- Handing over

  private problemOf(assignment: Assignment): End | null {
    if (assignment.machines.length > 0)
      return {
        cause: 'REFUSED',
        message: `machines were chosen for it, but ${this.options.scheduler.label} chooses them here: the local policy of the site has to be of kind external`,
      };
    if ((assignment.inputs ?? []).length > 0)
      return { cause: 'STAGING_FAILED', message: 'this agent brings no input data to runs' };
    try {
      checkStrings(assignment);
    } catch (error) {
      if (error instanceof LaunchError) return { cause: 'LAUNCH_FAILED', message: error.message };
      throw error;
    }
    return null;
  }

  private take(record: RunRecord, unsure: boolean): Handed {
    const key = runKey(record.assignment);
    const run: Handed = {
      ...record,
      ...{ key, busy: false, unsure, notBefore: 0, missingSince: null, listed: null, beganMs: null },
      ...{ silentSince: null, asked: null, askedAt: Number.NEGATIVE_INFINITY, words: null },
      ...{ wordsAt: Number.NEGATIVE_INFINITY, followed: null, end: null, keeping: null },
    };
    this.runsByKey.set(key, run);
    return run;
  }

  /** The intent first: the next agent knows that it may have been submitted. */
  private handOver(run: Handed): void {
    const { assignment, key } = run;
    const { stateDir, scheduler, baseEnvironment } = this.options;
    const directory = this.dirOf(run);
    const work = assignment.workingDirectory ?? join(directory, 'work');
    try {
      mkdirSync(join(directory, 'work'), { recursive: true, mode: 0o700 });
      const places = { directory, work, began: this.dirs.began, ended: this.dirs.ended, key };
      const variables = { ...baseEnvironment, ...variablesOf(assignment) };
      const script = batchScript(assignment, variables, places, scheduler);
      writeFileSync(join(directory, 'script'), script, { mode: 0o700 });
      this.record(run);
    } catch (error) {
      const message = `${stateDir}: ${(error as Error).message}`;
      this.over(run, { cause: 'MACHINE_FAILED', message });
      return;
    }
    this.waiting.push(run);
    this.submitWaiting();
  }

  private record({ assignment, handedOverMs, localId, key }: Handed): void {
    const path = join(this.dirs.runs, key, 'run');
    writeFileSync(`${path}.tmp`, JSON.stringify({ assignment, handedOverMs, localId }), { mode: 0o600 });
    renameSync(`${path}.tmp`, path);
  }

  private submitWaiting(): void {
    const now = upMs();
    while (this.underWay < AT_ONCE && !this.closed) {
      const next = this.waiting.findIndex(({ notBefore, unsure }) => !unsure && notBefore <= now);
      if (next === -1) return;
      const [run] = this.waiting.splice(next, 1) as [Handed];
      if (run.end !== null || run.localId !== null) continue;
      this.underWay++;
      run.busy = true;
      void this.submit(run).finally(() => {
        this.underWay--;
        run.busy = false;
        // Asked meanwhile to end it, nobody knew its name.
        if (run.asked !== null) this.stop(run);
        this.submitWaiting();
      });
    }
  }

  /** Once; what is not known then is looked for before another attempt. */
  private async submit(run: Handed): Promise<void> {
    const { scheduler, warn } = this.options;
    const { assignment, key } = run;
    const { jobId, epoch, tasks, cpusPerTask, memoryMbPerTask, runTimeLimitS } = assignment;
    const name = nameAt(key);
    try {
      const directory = this.dirOf(run);
      const id = await scheduler.submit({
        ...{ name, comment: `switchyard:${jobId}:${epoch}`, directory, script: join(directory, 'script') },
        ...{ tasks, cpusPerTask, memoryMbPerTask },
        // The script ends it in time; this bound is the scheduler's own.
        timeLimitS: runTimeLimitS === null ? null : runTimeLimitS + 30,
      });
      this.accepted(run, id);
    } catch (error) {
      const { message } = error as Error;
      if (error instanceof RefusedError && this.neverBegins(run, { cause: 'MACHINE_FAILED', message }))
        return;
      warn(
        { job: jobId, epoch, error: message },
        `${scheduler.label} did not say that it took a run; looking for it`,
      );
      run.unsure = true;
      run.notBefore = upMs() + UNSURE_MS;
      this.waiting.push(run);
    }
  }

  /** Looks for runs that may have been submitted: those that are not found are. */
  private async findUnsure(): Promise<void> {
    const now = upMs();
    const unsure = this.waiting.filter(
      (run) => run.unsure && run.notBefore <= now && run.end === null && run.localId === null,
    );
    if (unsure.length === 0) return;
    const sinceMs = Math.min(...unsure.map(({ handedOverMs }) => handedOverMs));
    let found: LocalJob[];
    try {
      found = await this.options.scheduler.find(
        unsure.map(({ key }) => nameAt(key)),
        sinceMs,
      );
    } catch (error) {
      this.fail(error as Error);
      return;
    }
    const byName = new Map(found.map((job) => [job.name, job]));
    for (const run of unsure) {
      const job = byName.get(nameAt(run.key));
      run.unsure = false;
      if (job === undefined) continue;
      run.listed = job;
      this.accepted(run, job.id);
    }
  }

  private accepted(run: Handed, id: string): void {
    if (this.closed) return;
    if (run.end !== null) {
      this.cancelThere(run);
      return;
    }
    run.localId = id;
    run.missingSince = null;
    // A record that cannot be written now costs a search by name.
    try {
      this.record(run);
    } catch {}
    this.tell(run, run.listed?.words ?? null);
  }

  /** What the scheduler says of a run that has not started. */
  private tell(run: Handed, words: string | null): void {
    run.words = words;
    run.wordsAt = upMs();
    const local = { id: run.localId, state: words, nodes: null };
    this.reported.add({ phase: 'ACCEPTED', ...nameOf(run.assignment), atMs: Date.now(), local });
  }

  /** Takes the run's turn, so that it can never begin, and ends it so. False: it has begun. */
  private neverBegins(run: Handed, end: End): boolean {
    const mark = join(this.dirs.began, run.key);
    try {
      mkdirSync(mark);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      return false;
    }
    writeFileSync(join(mark, NEVER), JSON.stringify(end));
    this.over(run, end);
    return true;
  }

  // --- Ending

  /** Ends it where it has not begun, and asks the scheduler to end it. */
  private stop(run: Handed): void {
    if (run.end !== null) return;
    const end: End = { cause: 'CANCELLED_BY_USER', message: 'cancelled before it began' };
    if (run.beganMs === null) this.neverBegins(run, end);
    this.cancelThere(run);
  }

  private cancelThere(run: Handed): void {
    const { scheduler, warn } = this.options;
    run.askedAt = upMs();
    scheduler.cancel([nameAt(run.key)]).catch((error: Error) => {
      const { jobId: job, epoch } = run.assignment;
      warn(
        { job, epoch, error: error.message },
        `${scheduler.label} did not take a cancellation; trying again`,
      );
    });
  }

  /** It is decided how it ended. Its outputs are kept, then it is reported. */
  private over(run: Handed, end: End, atMs = Date.now()): void {
    if (run.end !== null) return;
    run.end = { end, atMs };
    const { assignment } = run;
    const outputs = assignment.outputs ?? [];
    const began = run.beganMs !== null;
    if (outputs.length === 0 || !began || run.asked !== null) return void this.settle(run);
    const stop = new AbortController();
    run.keeping = stop;
    const begunMs = upMs();
    const { jobId, epoch } = assignment;
    const directory = assignment.workingDirectory ?? join(this.dirOf(run), 'work');
    const ended = { jobId, epoch, task: 0, uid: null, directory, outputs, well: end.cause === 'EXITED_ZERO' };
    const kept = (problem: string | null): void => {
      run.keeping = null;
      if (this.closed) return;
      const asked = run.asked === null ? null : ({ cause: 'CANCELLED_BY_USER', message: null } as const);
      run.end = { end: keptEnd(end, problem, (upMs() - begunMs) / 1000, asked, false), atMs };
      this.settle(run);
    };
    this.options.keep(ended, stop.signal).then(kept, (error: Error) => kept(error.message));
  }

  /** Reports the end when all of its output can go with it; then nothing of it is left here. */
  private settle(run: Handed): boolean {
    if (run.end === null || run.keeping !== null || this.closed) return false;
    if (run.asked !== 'FORGET') {
      const outputs = run.followed === null ? [] : lastOutputs(run.followed);
      if (outputs === null) {
        this.reported.announce();
        return false;
      }
      const { end, atMs } = run.end;
      const last = Math.max(run.beganMs ?? 0, Math.min(atMs, Date.now()));
      const report = endReport(run.assignment, { ...UNMEASURED, ...end, outputs }, last);
      const words = run.listed?.words ?? null;
      const told =
        words === null ? report : { ...report, local: { id: run.localId, state: words, nodes: null } };
      if (!this.reported.tryAdd(told)) return false;
      this.known.reported(run.assignment);
    }
    this.remove(run);
    return true;
  }

  private remove(run: Handed): void {
    run.followed?.outputs.close();
    this.runsByKey.delete(run.key);
    // What is still with the scheduler finds no directory to begin in, and that its turn is taken as long as that is there.
    rmSync(this.dirOf(run), { recursive: true, force: true });
    rmSync(join(this.dirs.ended, run.key), { force: true });
    this.spent.push({ key: run.key, atMs: upMs() });
  }

  /** Marks of runs that are over; they go when nothing of them can be with the scheduler any more. */
  private readonly spent: { key: string; atMs: number }[] = [];

  private reportUnstarted(run: RunName, end: End): void {
    this.known.reported(run);
    this.reported.add(endReport(run, end, Date.now()));
  }

  // --- Looking

  private recover(): void {
    const reported = this.reported.list(Number.MAX_SAFE_INTEGER);
    const over = new Set(reported.filter(({ phase }) => phase === 'ENDED').map(runKey));
    for (const key of readdirSync(this.dirs.runs)) {
      const record = recordIn(join(this.dirs.runs, key, 'run'));
      // Nothing was submitted before it was written; or its end was reported before the agent died.
      if (record === null || over.has(key)) {
        rmSync(join(this.dirs.runs, key), { recursive: true, force: true });
        continue;
      }
      const run = this.take(record, true);
      this.known.add(record.assignment);
      const never = textIn(join(this.dirs.began, key, NEVER));
      if (never !== null) {
        this.over(run, JSON.parse(never) as End);
        this.cancelThere(run);
      } else if (run.localId === null) this.waiting.push(run);
    }
    const live = new Set(this.runsByKey.keys());
    for (const key of readdirSync(this.dirs.began))
      if (!live.has(key)) this.spent.push({ key, atMs: upMs() });
  }

  private async poll(): Promise<void> {
    if (this.polling || this.closed) return;
    this.polling = true;
    try {
      await this.look();
    } catch (error) {
      this.options.warn({ error: (error as Error).message }, 'the agent cannot look after its runs');
    } finally {
      this.polling = false;
    }
  }

  private async look(): Promise<void> {
    this.reported.flush();
    this.readMarks();
    const now = upMs();
    const { listMs } = this.options;
    if (now - this.listedAt >= listMs && (this.runsByKey.size > 0 || this.trouble !== null))
      await this.list();
    if (now - this.capacityAt >= CAPACITY_MS) await this.measure();
    if (this.closed) return;
    for (const run of [...this.runsByKey.values()]) {
      if (run.end !== null) this.settle(run);
      else if (run.asked !== null && !run.busy && now - run.askedAt >= CANCEL_MS) this.stop(run);
      run.followed?.outputs.trim();
    }
    await this.findUnsure();
    this.submitWaiting();
    this.forgetSpent();
  }

  /** What runs have written: two directories, however many there are. */
  private readMarks(): void {
    const began = new Set(readdirSync(this.dirs.began));
    const ended = new Set(readdirSync(this.dirs.ended));
    for (const run of [...this.runsByKey.values()]) {
      if (run.end !== null) continue;
      if (run.beganMs === null && began.has(run.key)) this.begin(run);
      if (run.beganMs !== null && ended.has(run.key)) this.finish(run);
    }
  }

  private begin(run: Handed): void {
    const mark = join(this.dirs.began, run.key);
    const where = whereOf(textIn(join(mark, 'where')) ?? '');
    // It is about to be written; a script that dies before is found by the scheduler's list.
    if (where === null) return;
    run.beganMs = where.atMs;
    run.localId ??= where.localId;
    const outputs = new Outputs(this.dirOf(run), this.options.outputLimitBytes);
    const told = { bytes: { STDOUT: 0, STDERR: 0 }, atMs: 0, asks: true };
    run.followed = { ...nameOf(run.assignment), outputs, told, startedUpMs: upMs() };
    const local = { id: where.localId, state: 'RUNNING', nodes: where.nodes };
    // After a restart it may have been said before: then the service answers that it is repeated.
    this.reported.add({ phase: 'STARTED', ...nameOf(run.assignment), atMs: where.atMs, local });
    if (run.asked !== null) this.cancelThere(run);
  }

  private finish(run: Handed): void {
    const mark = endOf(textIn(join(this.dirs.ended, run.key)) ?? '');
    if (mark === null) return;
    this.over(run, this.endWith(run, mark), mark.atMs);
  }

  /** The run's own word; what the scheduler says explains it. */
  private endWith(run: Handed, { code, cpuS, atMs }: EndMark): End {
    const { runTimeLimitS, tasks, memoryMbPerTask } = run.assignment;
    const timedOut =
      code === TIMED_OUT && runTimeLimitS !== null && atMs - (run.beganMs ?? 0) >= runTimeLimitS * 1000 - 50;
    const killed = run.listed?.ended ?? null;
    const limit: EndCause | null = timedOut || killed === 'RUN_TIME_LIMIT' ? 'RUN_TIME_LIMIT' : null;
    const cause = run.asked === null ? limit : 'CANCELLED_BY_USER';
    const measured = {
      ...UNMEASURED,
      ...(tasks === 1 && cpuS !== null && { cpuS, cpuMethod: 'PROC' as const }),
    };
    return endOfCommand(
      {
        // Clocks of two hosts do not tell which came first: a command that ended with 0 has ended by itself.
        ...{ code, atMs, atUpMs: 0, unstarted: null, measured, outlasted: false },
        outOfMemoryMb: killed === 'MEMORY_LIMIT' ? memoryMbPerTask : null,
      },
      cause && { cause, message: null, askedAtMs: Number.POSITIVE_INFINITY },
    );
  }

  private async list(): Promise<void> {
    const { scheduler } = this.options;
    const askedAt = upMs();
    let jobs: LocalJob[];
    try {
      jobs = await scheduler.list();
    } catch (error) {
      // Nothing follows for runs. Nothing new is handed over as long as it lasts.
      this.fail(error as Error);
      this.listedAt = upMs();
      return;
    }
    this.trouble = null;
    this.listedAt = upMs();
    if (this.closed) return;
    // Afterwards: what ended before the list has left its marks.
    this.readMarks();
    const byKey = new Map<string, LocalJob>();
    for (const job of jobs) {
      const key = keyOf(job.name);
      // Of several submissions of a run the one that is not over counts.
      if (key !== null && !(byKey.has(key) && job.phase === 'ENDED')) byKey.set(key, job);
    }
    const missing: Handed[] = [];
    for (const run of this.runsByKey.values()) {
      if (run.end !== null || run.busy) continue;
      const job = byKey.get(run.key);
      if (job !== undefined) this.compare(run, job);
      else if (run.localId !== null) {
        run.missingSince ??= askedAt;
        if (askedAt - run.missingSince >= MISSING_MS) missing.push(run);
      }
    }
    if (missing.length > 0) await this.lookFor(missing);
  }

  private compare(run: Handed, job: LocalJob): void {
    run.listed = job;
    run.missingSince = null;
    if (run.localId === null) this.accepted(run, job.id);
    if (job.phase === 'ENDED') {
      this.endThere(run, job);
      return;
    }
    run.silentSince = null;
    if (run.beganMs !== null) return;
    const hopeless: End = { cause: 'MACHINE_FAILED', message: `it would wait for ever: ${job.words}` };
    if (job.hopeless && this.neverBegins(run, hopeless)) this.cancelThere(run);
    else if (job.words !== run.words && upMs() - run.wordsAt >= WORDS_MS) this.tell(run, job.words);
  }

  /** The scheduler says that it is over; its marks may take a moment to be seen here. */
  private endThere(run: Handed, job: LocalJob): void {
    run.silentSince ??= upMs();
    if (upMs() - run.silentSince < (run.asked === null ? SETTLE_MS : SETTLE_MS / 10)) return;
    const { label } = this.options.scheduler;
    const unbegun: End = { cause: 'MACHINE_FAILED', message: `it never began: ${label} says ${job.words}` };
    if (run.beganMs === null && this.neverBegins(run, unbegun)) return;
    const cancelled = run.asked !== null;
    const cause: EndCause = cancelled
      ? 'CANCELLED_BY_USER'
      : job.ended === 'CANCELLED'
        ? 'SIGNALLED'
        : (job.ended ?? 'LOST');
    const message = cancelled
      ? null
      : job.ended === 'CANCELLED'
        ? 'cancelled at the site'
        : `${label} says ${job.words}`;
    this.over(run, { cause, message });
  }

  /** Gone from the queue. */
  private async lookFor(missing: readonly Handed[]): Promise<void> {
    const { scheduler } = this.options;
    const sinceMs = Math.min(...missing.map(({ handedOverMs }) => handedOverMs));
    let found: LocalJob[];
    try {
      found = await scheduler.find(
        missing.map(({ key }) => nameAt(key)),
        sinceMs,
      );
    } catch (error) {
      this.fail(error as Error);
      return;
    }
    if (this.closed) return;
    this.readMarks();
    const byName = new Map(found.map((job) => [job.name, job]));
    for (const run of missing) {
      if (run.end !== null) continue;
      const job = byName.get(nameAt(run.key));
      if (job !== undefined) this.compare(run, job);
      else if (run.beganMs !== null || existsSync(join(this.dirs.began, run.key)))
        this.endThere(run, { ...NOWHERE, ended: 'LOST' });
      else {
        // It was acknowledged and forgotten. Should it come back nevertheless, the guard lets one of the two begin.
        const { jobId: job, epoch } = run.assignment;
        this.options.warn(
          { job, epoch, id: run.localId },
          `${scheduler.label} has forgotten a run; handing it over again`,
        );
        run.localId = null;
        run.missingSince = null;
        run.unsure = true;
        this.waiting.push(run);
      }
    }
  }

  private async measure(): Promise<void> {
    this.capacityAt = upMs();
    try {
      this.capacityNow = await this.options.scheduler.capacity();
    } catch (error) {
      this.fail(error as Error);
    }
  }

  private fail(error: Error): void {
    const trouble = `${this.options.scheduler.label} does not answer: ${error.message}`;
    if (this.trouble === null)
      this.options.warn({ error: error.message }, `${this.options.scheduler.label} does not answer`);
    this.trouble = trouble.slice(0, 500);
  }

  /** A day later nothing of them is with the scheduler. */
  private forgetSpent(): void {
    const before = upMs() - 86_400_000;
    while (this.spent[0] !== undefined && this.spent[0].atMs < before)
      rmSync(join(this.dirs.began, this.spent.shift()!.key), { recursive: true, force: true });
  }

  private dirOf({ key }: Pick<Handed, 'key'>): string {
    return join(this.dirs.runs, key);
  }
}

const NOWHERE: LocalJob = {
  ...{ id: '', name: '', phase: 'ENDED', words: 'nothing of it', hopeless: false, ended: null },
};

/** In the mark of a run that never begins: how it ended. */
const NEVER = 'never';

/** The name under which a run is submitted, and back. */
const nameAt = (key: string): string => `sy-${key}`;
const keyOf = (name: string): string | null => (name.startsWith('sy-') ? name.slice(3) : null);

/** What runs are told. */
function variablesOf({ jobId, epoch, tasks, cpusPerTask, memoryMbPerTask, arrayIndex }: Assignment) {
  return {
    SWITCHYARD_JOB_ID: jobId,
    SWITCHYARD_EPOCH: String(epoch),
    SWITCHYARD_RUN: `${jobId}.${epoch}`,
    SWITCHYARD_TASKS: String(tasks),
    SWITCHYARD_CPUS_PER_TASK: String(cpusPerTask),
    SWITCHYARD_MEMORY_MB_PER_TASK: String(memoryMbPerTask),
    ...(arrayIndex === null ? {} : { SWITCHYARD_ARRAY_INDEX: String(arrayIndex) }),
  };
}

function recordIn(path: string): RunRecord | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as RunRecord;
  } catch {
    return null;
  }
}

function textIn(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
