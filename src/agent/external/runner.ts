import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { REAL_ENV } from '../../platform/env.js';
import { plainJobEnvironment } from '../../platform/environment.js';
import { acquireLock, type LockFile } from '../../platform/lockfile.js';
import type { SiteLoadInput } from '../documents.gql.js';
import type { EndedRun } from '../files/handover.js';
import { KnownRuns } from '../known.js';
import type { Accounts } from '../process/accounts.js';
import { Disk } from '../process/disk.js';
import { keptEnd } from '../process/ends.js';
import { delivered, type Followed, freshOutput, lastOutputs } from '../process/follow.js';
import { agentId } from '../process/identity.js';
import { Journal, type NewReport } from '../process/journal.js';
import { Outputs } from '../process/outputs.js';
import { type End, endReport, Reports } from '../process/reports.js';
import { upMs } from '../process/run.js';
import { checkStrings, LaunchError } from '../process/script.js';
import { ReportingRunner } from '../reporting.js';
import {
  type Assignment,
  type LiveOutput,
  type LiveRun,
  nameOf,
  type RunName,
  runKey,
  UNMEASURED,
} from '../runner.js';
import type { StageableRunner } from '../staging/runner.js';
import { Arrays } from './arrays.js';
import { type CallCounts, counted } from './counted.js';
import { endOfRun, endThere, isKilled, neverBegan } from './ends.js';
import { type Handed, handed } from './handed.js';
import { ALIVE, Others, prefixOf, type Serves, sitePrefix } from './others.js';
import { Owners } from './owners.js';
import { NotAllowedError, type Termed } from './rules.js';
import {
  type Capacity,
  LICENSES_MAX,
  type LocalJob,
  type LocalPartition,
  type LocalScheduler,
  type LocalUse,
  NO_TERMS,
  nameKey,
  type Terms,
  type WaitingJob,
} from './scheduler.js';
import { HangError, SharedFiles } from './shared.js';
import { type Accepted, jobsOf, namedBy, Submitter, UNSURE_MS } from './submitter.js';

export interface ExternalRunnerOptions {
  /** On a file system that the nodes share with the agent, under the same path; one agent at a time. */
  stateDir: string;
  scheduler: LocalScheduler;
  serves: Serves;
  /** On which a run is handed over; throws NotAllowedError. */
  terms?: (run: Termed) => Terms;
  /** Of users, whom their runs belong to: the agent is root or has a launcher, and the scheduler submits as others. null: all runs are the agent's. */
  accounts?: Accounts | null;
  /** What every run begins with. */
  baseEnvironment?: Readonly<{ [name: string]: string }>;
  /** How much is kept of each stream of a run. */
  outputLimitBytes?: number;
  keep?: (run: EndedRun, signal: AbortSignal) => Promise<string | null>;
  warn?: (fields: object, message: string) => void;
  /** Submissions in a second, at most; an array is one. */
  submissionsPerS?: number;
  /** Between two looks at what runs have written, ms. */
  pollMs?: number;
  /** Between two questions to the scheduler, ms. */
  listMs?: number;
  /** Of runs that took so long, ms, it is asked what it has measured, before their ends are told. */
  measuredFromMs?: number;
  /** Tell the service of jobs of others that wait there. */
  tellsQueue?: boolean;
}

/** Without a sign of it in two lists so far apart a run is looked for. */
const MISSING_MS = 10_000;
/** What a run wrote may take so long to be seen here. */
const SETTLE_MS = 10_000;
/** Why a run was killed its scheduler may say so much later than that. */
const WORD_MS = 20_000;
/** Of its time, a scheduler that is slow is asked so little: one part in so many. */
const SPARED = 5;
/** What it has measured a scheduler may tell so much later than the end. */
const MEASURED_MS = 20_000;
/** Between two requests to end a run. */
const CANCEL_MS = 15_000;
/** Between two looks at the site's capacity. */
const CAPACITY_MS = 10_000;
/** Between two looks whether runs have written more than is kept. */
const TRIM_MS = 5_000;
/** What the scheduler's words about a waiting run are told at most so often. */
const WORDS_MS = 30_000;
/** Partitions that are told of. */
const PARTITIONS_MAX = 100;
/** Of others' jobs that wait there the first so many are told, so often. */
const QUEUE_MAX = 100;
const QUEUE_MS = 60_000;
/** Between two looks for files that nobody needs any more. */
const CLEAN_MS = 60_000;

/**
 * Hands runs over to a site's own scheduler and reports what becomes of them.
 *
 * On disk, under the state directory: `runs/KEY/run` (the record) and `runs/KEY/script`, of runs that are handed over together in `arrays`
 * (arrays.ts); `runs/KEY/out` and `err`; `began/KEY` and `ended/KEY`, which the script makes (script.ts) and which are the truth. The scheduler's answers only explain, and say what will never begin. A
 * scheduler that does not answer ends nothing.
 */
export class ExternalRunner extends ReportingRunner implements StageableRunner {
  readonly hasAccounts: boolean;
  private readonly runsByKey = new Map<string, Handed>();
  private readonly owners: Owners;
  /** Of the names of all our jobs. */
  private readonly prefix: string;
  private readonly submitter: Submitter;
  private readonly arrays: Arrays;
  private readonly others: Others;
  private timer: NodeJS.Timeout | undefined;
  private polling = false;
  /** All jobs of agents of the site, as the scheduler listed them last; null: it has not yet. */
  private listed: readonly LocalJob[] | null = null;
  private listedAt = Number.NEGATIVE_INFINITY;
  /** How long the scheduler took to list them last, ms. */
  private listTookMs = 0;
  private capacityAt = Number.NEGATIVE_INFINITY;
  /** Of others, as it was told last. */
  private queue: { atMs: number; jobs: NonNullable<SiteLoadInput['queue']> } | null = null;
  private cleanedAt = Number.NEGATIVE_INFINITY;
  /** Runs that are to be ended there. */
  private readonly unwanted = new Set<Handed>();
  private cancelling = false;
  /** Jobs of runs that are over, such as those whose cancellation was lost; since when they are listed. */
  private strays = new Map<string, number>();
  private closed = false;
  private trouble: string | null = null;
  /** The shared file system did not answer with the last look. */
  private hung = false;
  private trimmedAt = Number.NEGATIVE_INFINITY;
  private isForgetting = false;
  private readonly runsDir: string;
  /** Runs that are over, whose files could not be removed yet. */
  private readonly leftovers = new Set<Handed>();

  private constructor(
    readonly id: string,
    private readonly lock: LockFile,
    journal: Journal,
    known: KnownRuns,
    private readonly options: Required<ExternalRunnerOptions>,
    private readonly files: SharedFiles,
    private capacityNow: Capacity,
    private readonly calls: CallCounts,
  ) {
    const { stateDir, scheduler, serves, baseEnvironment, submissionsPerS, warn } = options;
    super(new Reports(journal, new Disk(stateDir, files.calls), REAL_ENV), known);
    this.runsDir = join(stateDir, 'runs');
    files.calls.mkdirSync(this.runsDir, { recursive: true, mode: 0o700 });
    this.owners = new Owners(stateDir, options.accounts, files.calls);
    this.hasAccounts = this.owners.hasAccounts;
    this.prefix = prefixOf(serves, id);
    this.others = new Others(stateDir, this.prefix, scheduler, files.calls);
    this.arrays = new Arrays(stateDir, files.calls);
    this.submitter = new Submitter({
      ...{ stateDir, files, scheduler, baseEnvironment, warn, owners: this.owners, arrays: this.arrays },
      ...{ prefix: this.prefix, ratePerS: submissionsPerS },
      accepted: (all) => this.accepted(all),
      failed: (run, message) => this.isRefused(run, { cause: 'MACHINE_FAILED', message }),
      refused: (run, message) => this.isRefused(run, { cause: 'LAUNCH_FAILED', message }),
      isReached: () => this.isReached,
      // Asked meanwhile to end it, nobody knew its name.
      settled: (run) => run.asked !== null && this.stop(run),
    });
    this.submitter.elementsMax = capacityNow.elementsMax;
    this.owners.onFound(() => this.submitter.pump());
  }

  /**
   * Takes the state directory into use, and up what an earlier agent left there.
   *
   * @throws LockHeldError when another agent uses it; what the scheduler says where it does not tell its capacity
   */
  static async open(given: ExternalRunnerOptions): Promise<ExternalRunner> {
    const stateDir = resolve(given.stateDir);
    const calls = { made: 0, failed: 0 };
    const scheduler = counted(given.scheduler, calls);
    const capacity = await scheduler.capacity();
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    const lock = await acquireLock(join(stateDir, 'lock'), 'the state directory of the agent');
    const id = agentId(stateDir);
    const known = new KnownRuns();
    const files = new SharedFiles();
    const journal = new Journal(join(stateDir, 'reports'), (report) => known.add(report), files.calls);
    const options = {
      terms: () => NO_TERMS,
      accounts: null,
      baseEnvironment: plainJobEnvironment(),
      outputLimitBytes: 256 << 10,
      keep: async () => 'this agent does not keep files',
      warn: () => {},
      submissionsPerS: 50,
      pollMs: 1_000,
      listMs: 5_000,
      measuredFromMs: 60_000,
      tellsQueue: false,
      ...given,
      ...{ stateDir, scheduler },
    };
    const runner = new ExternalRunner(id, lock, journal, known, options, files, capacity, calls);
    runner.sayAlive();
    runner.recover();
    runner.timer = setInterval(() => void runner.poll(), options.pollMs);
    return runner;
  }

  get problem(): string | null {
    const hang = `the file system of ${this.options.stateDir}, shared with the nodes, does not respond`;
    return (this.isReached ? null : hang) ?? this.trouble ?? this.submitter.problem;
  }

  /** The site's machines and what of them is taken, as the scheduler said last. */
  get capacity(): Capacity {
    return this.capacityNow;
  }

  /** For the schedulers of the service: our runs are known there, and count in what is taken only. */
  get load(): SiteLoadInput {
    const { nodes, waiting, takesParts, takesDevices, partitions = [], licenses } = this.capacityNow;
    const others = waiting.filter(({ name }) => !name.startsWith(this.prefix));
    return {
      longestS: longestOf(partitions),
      partitions: partitions.slice(0, PARTITIONS_MAX),
      ...(licenses && { licenses: licenses.slice(0, LICENSES_MAX) }),
      queue: this.options.tellsQueue ? this.queueOf(others) : null,
      calls: {
        ...this.calls,
        listS: this.listTookMs / 1000,
        jobs: this.listed?.filter(({ phase }) => phase !== 'ENDED').length ?? 0,
      },
      waitingJobs: others.length,
      waitingS: others.reduce((sum, { limitS }) => sum + limitS, 0),
      waitingCpuS: others.reduce((sum, { limitS, cpus }) => sum + limitS * cpus, 0),
      takesParts,
      takesDevices,
      busy: nodes
        .filter(({ busyCpus, busyMemoryMb }) => busyCpus + busyMemoryMb > 0)
        .map(({ name, busyCpus, busyMemoryMb }) => ({
          ...{ machine: name, cpus: busyCpus, memoryMb: busyMemoryMb },
        })),
    };
  }

  /** Not each time that one of them comes or goes. */
  private queueOf(others: readonly WaitingJob[]): SiteLoadInput['queue'] {
    const now = upMs();
    if (this.queue === null || now - this.queue.atMs >= QUEUE_MS)
      this.queue = {
        atMs: now,
        jobs: others.slice(0, QUEUE_MAX).map(({ id = null, cpus, limitS, reason = null }) => ({
          ...{ id, cpus, limitS, reason },
        })),
      };
    return this.queue.jobs;
  }

  /** As the nodes': they write times of their own. */
  nowMs(): number {
    return Date.now();
  }

  /** By what the scheduler has: the state directory of a former agent may be gone. */
  async takeOver(): Promise<string | null> {
    try {
      if (upMs() - this.listedAt >= this.options.listMs) await this.list();
      return this.listed === null ? this.trouble : await this.others.end(this.listed);
    } catch (error) {
      return (error as Error).message;
    }
  }

  start(assignment: Assignment): void {
    if (!this.isNew(assignment)) return;
    try {
      const problem = this.problemOf(assignment);
      const terms = this.options.terms(assignment);
      const run = { assignment, terms, handedOverMs: Date.now(), names: [] };
      if (problem !== null) this.reportEnd(assignment, problem);
      else this.submitter.add(this.take(handed(run)));
    } catch (error) {
      if (!(error instanceof NotAllowedError)) throw error;
      this.reportEnd(assignment, { cause: 'LAUNCH_FAILED', message: error.message });
    }
  }

  resume(assignment: Assignment): void {
    if (!this.isNew(assignment)) return;
    this.reportEnd(assignment, { cause: 'LOST', message: 'the agent has no record of this run' });
  }

  cancel(name: RunName): void {
    const run = this.runsByKey.get(runKey(name));
    if (run === undefined) {
      const message = 'canceled before it was submitted';
      if (this.isUnheard(name)) this.reportEnd(name, { cause: 'CANCELLED_BY_USER', message });
      return;
    }
    run.asked ??= 'CANCEL';
    run.keeping?.abort(new Error('the run was canceled'));
    this.stop(run);
  }

  recall(name: RunName): void {
    const run = this.runsByKey.get(runKey(name));
    if (run === undefined) return;
    run.recalled = true;
    this.giveBack(run);
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

  freshOutput(): LiveOutput[] {
    if (!this.isReached) return [];
    const found: { run: Followed; isOver: boolean }[] = [];
    for (const { followed, end, asked } of this.runsByKey.values())
      if (followed !== null && asked !== 'FORGET') found.push({ run: followed, isOver: end !== null });
    return this.unlessItHangs(() => freshOutput(found)) ?? [];
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
    this.submitter.close();
    for (const run of this.runsByKey.values()) {
      run.keeping?.abort(new Error('the agent stops'));
      this.unlessItHangs(() => run.followed?.outputs.close());
    }
    this.unlessItHangs(() => this.reported.close());
    // Else the next agent finds that nobody has it.
    if (this.isReached) this.lock.release();
    this.files.close();
  }

  protected isLive(run: RunName): boolean {
    return this.runsByKey.has(runKey(run));
  }

  // --- Handing over

  private problemOf(assignment: Assignment): End | null {
    const { label, tasks, parts } = this.options.scheduler;
    const refused = (message: string): End => ({ cause: 'REFUSED', message });
    if (assignment.machines.length > 0)
      return refused(
        `machines were chosen for it, but ${label} chooses them here: the local policy of the site must be of kind external`,
      );
    if (assignment.image !== null)
      return refused(`jobs with images are not supported with ${label}, and this job names one`);
    if (assignment.tasks > 1 && assignment.launch === 'EVERY_TASK' && tasks === null)
      return refused(`${label} cannot start a command once per task here`);
    if ((assignment.jobParts?.length ?? 0) > 0 && parts === null)
      return refused(`${label} takes no jobs of several parts here`);
    try {
      checkStrings(assignment);
    } catch (error) {
      if (error instanceof LaunchError) return { cause: 'LAUNCH_FAILED', message: error.message };
      throw error;
    }
    return null;
  }

  private take(run: Handed): Handed {
    this.runsByKey.set(run.key, run);
    return run;
  }

  private accepted(all: readonly Accepted[]): void {
    if (this.closed) return;
    const told: NewReport[] = [];
    for (const { run, id, job } of all) {
      if (run.end !== null) {
        this.unwanted.add(run);
        continue;
      }
      run.localId ??= id;
      run.missingSince = null;
      run.listed = job ?? run.listed;
      told.push(this.told(run, run.listed?.words ?? null));
    }
    this.reported.addAll(told);
  }

  /** What the scheduler says of a run that has not started. */
  private told(run: Handed, words: string | null): NewReport {
    run.words = words;
    run.wordsAt = upMs();
    const local = { id: run.localId, state: words, nodes: null, directory: this.dirOf(run) };
    return { phase: 'ACCEPTED', ...nameOf(run.assignment), atMs: Date.now(), local };
  }

  /** It is not handed over; where that cannot be written down now, it is tried again. */
  private isRefused(run: Handed, end: End): void {
    if (this.unlessItHangs(() => this.neverBegins(run, end)) !== null) return;
    run.notBefore = upMs() + UNSURE_MS;
    this.submitter.add(run);
  }

  /** Takes the run's turn, so that it can never begin, and ends it so. False: it has begun. */
  private neverBegins(run: Handed, end: End): boolean {
    if (!this.owners.marksOf(run).claim(run.key, end)) return false;
    this.over(run, end);
    return true;
  }

  // --- Ending

  /** Ends it where it has not begun, and asks the scheduler to end it. */
  private stop(run: Handed): void {
    // Else it is done with the next look.
    if (run.end !== null || !this.isReached) return;
    const end: End = { cause: 'CANCELLED_BY_USER', message: 'canceled before it started' };
    const isKnown = run.beganMs !== null || this.unlessItHangs(() => this.neverBegins(run, end)) !== null;
    if (isKnown) this.cancelSoon(run);
  }

  /** Another site can start it now: it never begins here, unless it has. */
  private giveBack(run: Handed): void {
    if (run.end !== null || run.beganMs !== null || !this.isReached) return;
    const end: End = { cause: 'REQUEUED', message: 'taken back before it started' };
    if (this.unlessItHangs(() => this.neverBegins(run, end))) this.cancelSoon(run);
  }

  /** With others that are cancelled together. */
  private cancelSoon(run: Handed): void {
    this.unwanted.add(run);
    setImmediate(() => this.cancelUnwanted());
  }

  private cancelUnwanted(): void {
    if (this.cancelling || this.closed || this.unwanted.size === 0) return;
    const runs = [...this.unwanted];
    this.unwanted.clear();
    this.cancelThere(runs);
  }

  private cancelThere(runs: readonly Handed[]): void {
    const { scheduler, warn } = this.options;
    this.cancelling = true;
    for (const run of runs) run.askedAt = upMs();
    const jobs = runs.flatMap(({ names }) => names);
    const asked = jobs.length === 0 ? Promise.resolve() : scheduler.cancel(jobs);
    asked
      .catch((error: Error) => {
        const { jobId: job, epoch } = runs[0]!.assignment;
        const fields = { job, epoch, runs: runs.length, error: error.message };
        warn(fields, `${scheduler.label} did not accept a cancellation; trying again`);
      })
      .finally(() => {
        this.cancelling = false;
        this.cancelUnwanted();
      });
  }

  /** It is decided how it ended. Its outputs are kept, then it is reported. */
  private over(run: Handed, end: End, atMs = Date.now()): void {
    if (run.end !== null) return;
    run.end = { end, atMs };
    this.submitter.remove(run);
    const { assignment } = run;
    const outputs = assignment.outputs ?? [];
    const began = run.beganMs !== null;
    if (this.options.scheduler.measures && began && run.asked === null && this.isLong(run, atMs))
      run.measuredBy = upMs() + MEASURED_MS;
    if (outputs.length === 0 || !began || run.asked !== null) return void this.settle(run);
    const stop = new AbortController();
    run.keeping = stop;
    const begunMs = upMs();
    const { jobId, epoch } = assignment;
    const directory = assignment.workingDirectory ?? join(this.dirOf(run), 'work');
    const ended = {
      jobId,
      epoch,
      task: 0,
      uid: run.owner?.uid ?? null,
      directory,
      outputs,
      well: end.cause === 'EXITED_ZERO',
    };
    const kept = (problem: string | null): void => {
      run.keeping = null;
      if (this.closed) return;
      const asked = run.asked === null ? null : ({ cause: 'CANCELLED_BY_USER', message: null } as const);
      run.end = { end: keptEnd(end, problem, (upMs() - begunMs) / 1000, asked, false), atMs };
      this.settle(run);
    };
    const keep = async (): Promise<string | null> => {
      await this.owners.open(run, directory);
      return this.options.keep(ended, stop.signal);
    };
    keep().then(kept, (error: Error) => kept(error.message));
  }

  private isLong({ beganMs }: Handed, atMs: number): boolean {
    return beganMs !== null && atMs - beganMs >= this.options.measuredFromMs;
  }

  /** What the scheduler has measured of runs whose ends wait for it: one question for all of them. */
  private async askUse(): Promise<void> {
    const { scheduler } = this.options;
    const runs = [...this.runsByKey.values()].filter(
      ({ measuredBy, keeping }) => measuredBy !== null && keeping === null,
    );
    if (runs.length === 0 || scheduler.use === undefined) return;
    const names = new Set(runs.flatMap((run) => run.names.map(({ name }) => name)));
    const sinceMs = Math.min(...runs.map(({ handedOverMs }) => handedOverMs));
    // Its books may be away: that is no trouble of the queue.
    const uses = await scheduler.use([...names], sinceMs).catch(() => new Map<string, LocalUse>());
    const now = upMs();
    for (const run of runs) {
      const use = run.names.map((name) => uses.get(nameKey(name))).findLast((one) => one !== undefined);
      if (use !== undefined && run.end !== null) {
        const { end, atMs } = run.end;
        run.end = { end: measuredToo(end, use), atMs };
      }
      if (use !== undefined || run.asked !== null || now >= (run.measuredBy as number)) run.measuredBy = null;
    }
  }

  /** Reports the end when all of its output can go with it; then nothing of it is left here. */
  private settle(run: Handed): void {
    if (run.end === null || run.keeping !== null || run.measuredBy !== null || this.closed) return;
    // Else with the next look.
    this.unlessItHangs(() => this.report(run, run.end as Ended));
  }

  private report(run: Handed, ended: Ended): void {
    if (run.asked !== 'FORGET') {
      const outputs = run.followed === null ? [] : lastOutputs(run.followed);
      if (outputs === null) {
        this.reported.announce();
        return;
      }
      const { end, atMs } = ended;
      const last = Math.max(run.beganMs ?? 0, Math.min(atMs, Date.now()));
      const report = endReport(run.assignment, { ...UNMEASURED, ...end, outputs }, last);
      const words = run.listed?.words ?? null;
      const told =
        words === null ? report : { ...report, local: { id: run.localId, state: words, nodes: null } };
      if (!this.reported.tryAdd(told)) return;
      this.known.reported(run.assignment);
    }
    this.remove(run);
  }

  /** What is still with the scheduler finds no directory to begin in, and that its turn is taken as long as that is there. */
  private remove(run: Handed): void {
    this.runsByKey.delete(run.key);
    this.unlessItHangs(() => run.followed?.outputs.close());
    this.discard(run);
    this.owners.marksOf(run).spend(run.key);
  }

  private discard(run: Handed): void {
    const directory = this.dirOf(run);
    const remove = async (): Promise<void> => {
      this.arrays.forget(run.names);
      await this.owners.remove(run, directory);
    };
    remove().catch((error: Error) => {
      if (error instanceof HangError) this.leftovers.add(run);
      else
        this.options.warn({ directory, error: error.message }, 'leftover files of a run cannot be removed');
    });
  }

  // --- Looking

  private recover(): void {
    const reported = this.reported.list(Number.MAX_SAFE_INTEGER);
    const over = new Set(reported.filter(({ phase }) => phase === 'ENDED').map(runKey));
    const { live, over: ended } = this.arrays.left(this.runsDir);
    for (const left of ended) this.discard(handed(left));
    for (const left of live) {
      const run = handed(left);
      // Its end was reported before the agent died.
      if (over.has(run.key)) {
        this.discard(run);
        continue;
      }
      this.take(run);
      this.known.add(run.assignment);
      const never = this.owners.marksOf(run).never(run.key);
      if (never !== null) {
        this.over(run, never);
        this.unwanted.add(run);
        continue;
      }
      run.unsure = true;
      run.notBefore = upMs() + UNSURE_MS;
      this.submitter.add(run);
    }
    for (const marks of this.owners.all()) marks.recover(new Set(this.runsByKey.keys()));
  }

  private async poll(): Promise<void> {
    if (this.polling || this.closed) return;
    this.polling = true;
    try {
      await this.look();
    } catch (error) {
      if (!(error instanceof HangError))
        this.options.warn({ error: (error as Error).message }, 'the agent cannot check its runs');
    } finally {
      this.polling = false;
    }
  }

  private async look(): Promise<void> {
    if (!(await this.reach()) || this.closed) return;
    this.reported.flush();
    this.readMarks();
    const now = upMs();
    const listMs = Math.max(this.options.listMs, this.listTookMs * SPARED);
    if (
      now - this.listedAt >= listMs &&
      (this.runsByKey.size > 0 || this.trouble !== null || this.strays.size > 0)
    )
      await Promise.all([this.list(), this.askUse()]);
    if (now - this.capacityAt >= Math.max(CAPACITY_MS, this.listTookMs * SPARED)) await this.measure();
    if (this.closed) return;
    for (const run of [...this.runsByKey.values()]) {
      if (run.end !== null) this.settle(run);
      else if (run.asked !== null && !run.busy && now - run.askedAt >= CANCEL_MS) this.stop(run);
      else if (run.recalled) this.giveBack(run);
    }
    if (now - this.trimmedAt >= TRIM_MS) {
      this.trimmedAt = now;
      for (const { followed } of this.runsByKey.values()) followed?.outputs.trim();
    }
    this.cancelUnwanted();
    await this.asking(() => this.submitter.findUnsure());
    this.submitter.pump();
    if (now - this.cleanedAt < CLEAN_MS) return;
    this.cleanedAt = now;
    this.arrays.clean([...this.runsByKey.values(), ...this.leftovers]);
    for (const run of this.leftovers) {
      this.leftovers.delete(run);
      this.discard(run);
    }
    // Beside all else: programs that accounts run there may hang, too.
    if (this.isForgetting) return;
    this.isForgetting = true;
    this.owners
      .forgetSpent()
      .catch((error: Error) => this.options.warn({ error: error.message }, 'old marks cannot be removed'))
      .finally(() => {
        this.isForgetting = false;
      });
  }

  /** For another agent of the site that looks whether we live. */
  private sayAlive(): void {
    this.files.calls.writeFileSync(join(this.options.stateDir, ALIVE), '', { mode: 0o600 });
  }

  /** Whether the shared file system answers: asked before all else, since whatever is looked at is given up where it does not. */
  private async reach(): Promise<boolean> {
    const answers = this.files.hangs ? false : await this.touch();
    if (this.hung === answers && !this.closed)
      this.options.warn(
        { directory: this.options.stateDir },
        `the shared file system ${answers ? 'responds again' : 'does not respond'}`,
      );
    this.hung = !answers;
    return answers;
  }

  private async touch(): Promise<boolean> {
    try {
      const file = join(this.options.stateDir, ALIVE);
      const [problem] = await this.files.later([[['writeFileSync', file, '', { mode: 0o600 }]]]);
      if (problem !== null) throw new Error(problem);
      return true;
    } catch (error) {
      if (error instanceof HangError) return false;
      throw error;
    }
  }

  /** It has answered lately. */
  private get isReached(): boolean {
    return !this.hung && !this.files.hangs;
  }

  /** null: it hangs meanwhile, and nobody knows whether it was done. */
  private unlessItHangs<T>(work: () => T): T | null {
    try {
      return work();
    } catch (error) {
      if (error instanceof HangError) return null;
      throw error;
    }
  }

  /** What runs have written. */
  private readMarks(): void {
    const looks = new Map([...this.owners.all()].map((marks) => [marks, marks.look()]));
    for (const run of [...this.runsByKey.values()]) {
      const look = looks.get(this.owners.marksOf(run));
      if (run.end !== null || look === undefined) continue;
      const { began, ended } = look;
      if (run.beganMs === null && began.has(run.key)) this.begin(run);
      if (run.beganMs !== null && ended.has(run.key)) this.finish(run);
    }
  }

  private begin(run: Handed): void {
    const where = this.owners.marksOf(run).where(run.key);
    if (where === null) return;
    const outputs = new Outputs(this.dirOf(run), this.options.outputLimitBytes, this.files.calls);
    // Clocks of nodes may be wrong: it began after it was handed over, and before now.
    run.beganMs = Math.min(Math.max(where.atMs, run.handedOverMs), Date.now());
    run.clockMs = run.beganMs - where.atMs;
    run.localId = where.localId;
    this.submitter.remove(run);
    const told = { bytes: { STDOUT: 0, STDERR: 0 }, atMs: 0, asks: true };
    run.followed = { ...nameOf(run.assignment), outputs, told, startedUpMs: upMs() };
    const local = { id: where.localId, state: 'RUNNING', nodes: where.nodes, directory: this.dirOf(run) };
    // After a restart it may have been said before: then the service answers that it is repeated.
    this.reported.add({ phase: 'STARTED', ...nameOf(run.assignment), atMs: run.beganMs, local });
    if (run.asked !== null) this.stop(run);
  }

  private finish(run: Handed): void {
    const mark = this.owners.marksOf(run).ended(run.key);
    if (mark === null) return;
    const atMs = mark.atMs + run.clockMs;
    run.killedSince ??= isKilled(mark) ? upMs() : Number.NEGATIVE_INFINITY;
    // Who killed it, and for what, the scheduler knows.
    const isTold = run.asked !== null || run.listed?.phase === 'ENDED';
    const mayBeTold = run.missingSince !== null || upMs() - run.killedSince < WORD_MS;
    if (!isTold && isKilled(mark) && mayBeTold) return;
    this.over(run, endOfRun(run, { ...mark, atMs }, this.options.scheduler.label), atMs);
  }

  private async list(): Promise<void> {
    const askedAt = upMs();
    const asked = await this.asking(() => this.options.scheduler.list(sitePrefix(this.options.serves)));
    this.listedAt = upMs();
    this.listTookMs = this.listedAt - askedAt;
    // Nothing follows for runs. Nothing new is handed over as long as it lasts.
    if (asked === null) return;
    this.trouble = null;
    this.listed = asked;
    if (this.closed) return;
    // Afterwards: what ended before the list has left its marks.
    this.readMarks();
    const named = namedBy(this.runsByKey.values());
    const jobs = jobsOf(asked, named);
    const missing: Handed[] = [];
    for (const run of this.runsByKey.values()) {
      if (run.end !== null || run.busy) continue;
      const job = jobs.get(run);
      if (job !== undefined) this.compare(run, job);
      else if (run.localId !== null) {
        run.missingSince ??= askedAt;
        if (askedAt - run.missingSince >= MISSING_MS) missing.push(run);
      }
    }
    this.endStrays(asked.filter((job) => !named.has(nameKey(job))));
    if (missing.length > 0) await this.asking(() => this.lookFor(missing));
  }

  private endStrays(jobs: readonly LocalJob[]): void {
    const before = this.strays;
    this.strays = new Map();
    const now = upMs();
    const long: LocalJob[] = [];
    for (const job of jobs) {
      if (job.phase === 'ENDED' || !job.name.startsWith(this.prefix)) continue;
      const since = before.get(nameKey(job)) ?? now;
      if (now - since < CANCEL_MS) this.strays.set(nameKey(job), since);
      else {
        long.push(job);
        this.strays.set(nameKey(job), now);
      }
    }
    if (long.length > 0) this.options.scheduler.cancel(long).catch((error: Error) => this.unanswered(error));
  }

  private compare(run: Handed, job: LocalJob): void {
    run.listed = job;
    run.missingSince = null;
    if (run.localId === null) {
      this.submitter.remove(run);
      this.accepted([{ run, id: job.id, job }]);
    }
    if (job.phase === 'ENDED') {
      this.endedThere(run, job);
      return;
    }
    run.silentSince = null;
    if (job.phase === 'RUNNING')
      run.startedAfterS = Math.min(run.startedAfterS, job.startedAfterS ?? Infinity);
    if (run.beganMs !== null) return;
    const hopeless: End = { cause: 'MACHINE_FAILED', message: `it would wait forever: ${job.words}` };
    if (job.hopeless && this.neverBegins(run, hopeless)) this.unwanted.add(run);
    else if (job.words !== run.words && upMs() - run.wordsAt >= WORDS_MS)
      this.reported.add(this.told(run, job.words));
  }

  /** The scheduler says that it is over; its marks may take a moment to be seen here. */
  private endedThere(run: Handed, job: LocalJob): void {
    run.silentSince ??= upMs();
    if (upMs() - run.silentSince < (run.asked === null ? SETTLE_MS : SETTLE_MS / 10)) return;
    const { label } = this.options.scheduler;
    if (run.beganMs !== null) this.over(run, endThere(run, job, label));
    else this.neverBegins(run, neverBegan(job, label));
  }

  /** Gone from the queue. */
  private async lookFor(missing: readonly Handed[]): Promise<void> {
    const { label } = this.options.scheduler;
    const jobs = await this.submitter.lookFor(missing);
    if (this.closed) return;
    this.readMarks();
    for (const run of missing) {
      if (run.end !== null) continue;
      const job = jobs.get(run);
      if (job !== undefined) this.compare(run, job);
      else if (run.beganMs !== null) {
        // It has forgotten it, and kills what it does not know.
        run.listed = NOWHERE;
        this.endedThere(run, NOWHERE);
      } else {
        // It was acknowledged and forgotten. Should it come back nevertheless, the guard lets one of the two begin.
        const { jobId, epoch } = run.assignment;
        const fields = { job: jobId, epoch, id: run.localId };
        this.options.warn(fields, `${label} lost a run; submitting it again`);
        run.localId = null;
        run.missingSince = null;
        this.submitter.add(run);
      }
    }
  }

  private async measure(): Promise<void> {
    this.capacityAt = upMs();
    const found = await this.asking(() => this.options.scheduler.capacity());
    if (found === null) return;
    this.capacityNow = found;
    this.submitter.elementsMax = found.elementsMax;
  }

  /** What the scheduler answers; null: it does not. */
  private async asking<T>(question: () => Promise<T>): Promise<T | null> {
    try {
      return await question();
    } catch (error) {
      this.unanswered(error as Error);
      return null;
    }
  }

  private unanswered({ message }: Error): void {
    const { scheduler, warn } = this.options;
    if (this.trouble === null) warn({ error: message }, `${scheduler.label} does not respond`);
    this.trouble = `${scheduler.label} does not respond: ${message}`.slice(0, 500);
  }

  private dirOf({ key }: Pick<Handed, 'key'>): string {
    return join(this.runsDir, key);
  }
}

/** The longest that a job of ours may run, seconds; null: any time, or nobody knows. */
function longestOf(partitions: readonly LocalPartition[]): number | null {
  const used = partitions.filter(({ isUsed }) => isUsed);
  const longest = Math.max(...used.map(({ longestS }) => longestS ?? Infinity));
  return used.length === 0 || longest === Infinity ? null : longest;
}

/** The run's own account of its time and bytes is the finer one. */
const measuredToo = (end: End, { cpuS, peakMemoryMb }: LocalUse): End => ({
  ...end,
  ...(end.cpuS == null && cpuS !== null && { cpuS, cpuMethod: 'SCHEDULER' }),
  ...(end.peakMemoryMb == null && peakMemoryMb !== null && { peakMemoryMb, peakMemoryMethod: 'SCHEDULER' }),
});

type Ended = NonNullable<Handed['end']>;

const NOWHERE: LocalJob = {
  ...{ id: '', name: '', element: null, phase: 'ENDED', words: 'no such job', hopeless: false },
  ...{ ended: 'LOST', directory: null, user: null },
};
