import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { constants, uptime } from 'node:os';
import { join, resolve } from 'node:path';
import { REAL_ENV } from '../../platform/env.js';
import { plainJobEnvironment } from '../../platform/environment.js';
import { acquireLock, type LockFile } from '../../platform/lockfile.js';
import type { EndedRun } from '../files/handover.js';
import { ENDED_BEFORE, KnownRuns } from '../known.js';
import {
  type Assignment,
  DEFAULT_GRACE_MS,
  type EndCause,
  type LiveOutput,
  type LiveRun,
  type Measured,
  nameOf,
  type OutputPiece,
  type RunName,
  type Runner,
  type RunReport,
  runKey,
  type WantedOutput,
} from '../runner.js';
import { type Account, EMPTY, OPEN, SIGNAL } from './accounts.js';
import { Cgroup } from './cgroup.js';
import { Disk, isPassing, removeTree, roomOf } from './disk.js';
import { placeInputs } from './inputs.js';
import { claimedIds, Isolation, killAccount } from './isolation.js';
import { Journal } from './journal.js';
import { LeftBehind } from './left.js';
import { accountsIoWait, bytesOf, Meter, type Sample, sampleOf } from './measure.js';
import { endOthers, laneMark, lanesHere, type Serves } from './others.js';
import { written } from './output.js';
import { OutputPool, Outputs } from './outputs.js';
import {
  freeze,
  isNamed,
  MARKER,
  Members,
  type ProcessRow,
  processesOfRun,
  processesWithIds,
} from './processes.js';
import { type End, endReport, Reports } from './reports.js';
import {
  checkStrings,
  LANE_NAME,
  LaunchError,
  ProgramFinder,
  type RunCommand,
  runScript,
  startInput,
} from './script.js';
import { type EndRecord, Slot } from './slot.js';
import { placeTask } from './tasks.js';

export interface ProcessRunnerOptions {
  /** Where runs take place and reports are kept; one agent at a time. */
  stateDir: string;
  /** The environment that every run begins with. Nothing else of the agent's own environment reaches a run. */
  baseEnvironment?: Readonly<Record<string, string>>;
  /** What stands between runs and everybody else; nothing by default. Opened for the state directory and the id that is kept in it. */
  isolation?: (stateDir: string, id: string) => Isolation;
  /** How much is kept of each stream of a run, 1 KiB and up. */
  outputLimitBytes?: number;
  /** Room on disk for the directory of a run, MB; null: as much as there is. */
  diskLimitMb?: number | null;
  /**
   * CPU time beyond that of its CPUs which a run may use, where no control group holds it back, seconds; null: any.
   */
  cpuExcessS?: number | null;
  /**
   * Keeps what the outputs of a run name, when its command has ended, and answers what could not be kept (null: nothing). Without it no
   * output can be kept.
   */
  keep?: (run: EndedRun, signal: AbortSignal) => Promise<string | null>;
  /** How long the directories of runs stay whose outputs could not be kept. */
  leftBehindMs?: number;
  /** How many runs at once; more wait. */
  maxRuns?: number;
  /** What the agent serves; null: nothing tells it from other agents of the host. */
  serves?: Serves | null;
  /** Told of what its operator should know. */
  warn?: (fields: object, message: string) => void;
}

/** How often outputs, limits and runs of an earlier agent are looked at. */
const POLL_MS = 100;
/** Runs that are shorter are not sampled, unless they may take so much memory and no more. */
const SAMPLE_AFTER_MS = 200;
/** Of so many runs at each poll, in turn. */
const SAMPLES_PER_POLL = 64;
/** Between two looks at how much room on disk runs take. */
const DISK_LOOK_MS = 1_000;
/** Output in a report; more goes before it. */
const REPORT_OUTPUT_BYTES = 64 << 10;
/** Of one stream in one piece, and of all streams at a time. */
const PIECE_BYTES = 256 << 10;
const PIECES_BYTES = 512 << 10;
/** Between two pieces of a run that goes on: it takes so long until somebody who follows it sees them. */
const FOLLOW_MS = 500;
/** A lane without work goes after this. */
const LANE_IDLE_MS = 60_000;
/** How long lanes have, together, to find that their agent is dead. */
const LANES_GO_MS = 2_000;
/** After a start that failed for want of room, descriptors or processes. */
const START_PAUSE_MS = 1_000;
/** A host on which a launch has failed for its own sake is said to be unfit for so long. */
const BROKEN_PAUSE_MS = 60_000;
/** Between two looks whether the state directory is still there. */
const ROOT_LOOK_MS = 1_000;
const UPROOTED = 'somebody has removed the state directory of the agent: it has to be started again';
/** Linux takes no longer variable than 128 KiB. */
const VARIABLE_CHARS = 65_536;
/** Time to fetch by hand what could not be kept. */
const LEFT_BEHIND_MS = 7 * 86_400_000;
/** Names of files that are removed, of those that a job is told. */
const TOLD_NAMES = 5;
/** Ends after which nothing is kept: there is nothing, nobody knows what it is, or nobody wants it. */
const NOTHING_KEPT: ReadonlySet<EndCause> = new Set([
  'LAUNCH_FAILED',
  'MACHINE_FAILED',
  'LOST',
  'CANCELLED_BY_USER',
]);
/** After so many rounds of killing one by one, the lane is killed with its group. */
const MAX_KILL_ROUNDS = 50;

/** What has to be known of a run to end it properly, also by the next agent: line 1 of the slot's `run`. */
interface RunRecord extends RunName {
  startedAtMs: number;
  /** The same on the clock of durations. */
  startedUpMs: number;
  runTimeLimitS: number | null;
  privateDirectory: boolean;
  /** There is a list of hosts in its slot's directory. */
  hasHosts: boolean;
  /** CPU time of the lane's children before this run. */
  cpuBeforeS: number;
  /** Where its output goes: the directory of `out` and `err`. */
  outputsDir: string;
  /** Its account; null: the agent's. */
  uid: number | null;
  /** The account of its user, who may have other processes here; null: they have none, and `uid` is the run's own. */
  account: Account | null;
  /** `uid` where that is the run's own, or a group that all its processes have besides those of `account`; null: neither. */
  ownId: number | null;
  /** The directory of its control group; null: it has none. */
  cgroup: string | null;
  /** null: no limit. */
  memoryMb: number | null;
  cpus: number;
  /** How long it has waited for its inputs before it began. */
  stagedS?: number;
  /** What is to be kept of the files in this directory. */
  wanted?: { directory: string; outputs: readonly WantedOutput[] };
}

/**
 * Durations are measured on the time since the machine was booted, in ms: it is the same for the next agent, and nobody sets it. Only what
 * is told to others are times of day.
 */
const upMs = (): number => BOOTED_AT_MS + performance.now();
const BOOTED_AT_MS = uptime() * 1000 - performance.now();

interface LiveProcessRun extends RunRecord {
  /** Its command has ended, and what its job names is being kept. `problem`: what could not be; undefined: that goes on. */
  keeping: {
    stop: AbortController;
    beganUpMs: number;
    seconds: number;
    problem: string | null | undefined;
  } | null;
  slot: Slot;
  outputs: Outputs;
  /** The account of its user is seeing to what is left of it (`null`: not yet; false: that is done). */
  isClearing: boolean | null;
  /** It is being signalled by the account of its user. */
  isSignalled: boolean;
  /** It is over, and there was no room to write that down. */
  ended: { end: End; atMs: number } | null;
  /** Its lane is a child of this agent; false: of an earlier one, which is why it is polled. */
  ours: boolean;
  stop: { cause: EndCause; killAtMs: number; rounds: number } | null;
  /** Its end is of no interest to the service. */
  forgotten: boolean;
  /** Its lane is dead: it is lost, as soon as its processes are gone. */
  lost: boolean;
  meter: Meter;
  group: Cgroup | null;
  /** Bytes that its lane and what that waited for had read and written before. */
  bytesBefore: { read: number; written: number } | null;
  /** Why the agent has ended it. */
  verdict: string | null;
  /** What the service has of its output: bytes of each stream. */
  sent: Record<LiveOutput['stream'], number>;
  sentAtMs: number;
  /** An earlier agent may have sent some: the service is asked first. */
  asks: boolean;
}

/** What is left to be ended of a run that is over. */
interface Remains {
  /** Its own account, or the group that only it has. */
  ownId: number | null;
  /** The account of its user. */
  account: Account | null;
  group: Cgroup | null;
  /** Directories of its own: not removed before nobody can exchange what is in them for a link to somewhere else. */
  trash: readonly string[];
  rounds: number;
}

const STREAMS = [
  ['STDOUT', 'out'],
  ['STDERR', 'err'],
] as const;
const SIGNAL_NAMES = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]));

/**
 * Runs assignments as processes of this machine.
 *
 * Each run takes place in a slot, carried out by the slot's lane: a long-lived shell, so that a run costs one fork and exec
 * (measured with /bin/true: 0.9 ms of CPU in all, where a bare shell loop takes 0.5 and a shell per run under setsid(1) 1.7;
 * the agent's own share is about 0.15). The lane is the leader of the session that the run's processes are in, outlives
 * the agent, and writes down how the run ended.
 *
 * What is on disk decides after kill -9 of the agent, at any instant:
 * a slot's `run` is written before its lane is told, a report before the slot is freed. So `open` finds each run in one of
 * these states: ended and reported; ended (by `end`), then it is reported; its lane lives, then it is watched; its lane is
 * dead and wrote no end, then what is left of it is killed and it is LOST. None is ever started again.
 */
export class ProcessRunner implements Runner {
  private readonly live = new Map<string, LiveProcessRun>();
  private readonly bySlot = new Map<Slot, LiveProcessRun>();
  private readonly waiting = new Map<string, Assignment>();
  private readonly idle: Slot[] = [];
  private readonly programs = new ProgramFinder();
  private readonly delayAccounting = accountsIoWait();
  private readonly members: Members;
  private readonly isolation: Isolation;
  private remains: Remains[] = [];
  private sampledUpTo = 0;
  private nextDiskMs = 0;
  private nextSlot = 1;
  private closed = false;
  /** Somebody has removed the state directory: nothing more can be written down. */
  private uprooted = false;
  private nextRootMs = 0;
  /** Nothing is started before. */
  private pausedUntilMs = 0;
  private wasLow = false;
  /** Why the last launch failed that should not have, and until when it is not tried again. */
  private broken = '';
  private brokenUntilMs = 0;
  private readonly journal: Reports;
  private readonly disk: Disk;
  private readonly outputs: OutputPool;
  private readonly leftBehind: LeftBehind;
  private readonly timer: NodeJS.Timeout;

  private constructor(
    private readonly stateDir: string,
    /** Kept in the state directory. */
    readonly id: string,
    private readonly lock: LockFile,
    journal: Journal,
    private readonly known: KnownRuns,
    private readonly options: Required<ProcessRunnerOptions>,
  ) {
    this.isolation = options.isolation(stateDir, id);
    const { accounts } = this.isolation;
    if (accounts) accounts.onFound = () => this.launchWaiting();
    this.members = new Members(this.isolation.hasAccounts);
    // Accounts of runs have to get to their directories, and to nothing else here.
    if (this.isolation.hasAccounts)
      for (const dir of [stateDir, join(stateDir, 'slots')]) chmodSync(dir, 0o711);
    this.disk = new Disk(stateDir);
    this.journal = new Reports(journal, this.disk, REAL_ENV);
    const { outputLimitBytes, maxRuns } = options;
    const dir = join(stateDir, 'outputs');
    this.outputs = new OutputPool(dir, outputLimitBytes, maxRuns, (pid) => signal(pid, 'SIGKILL'));
    this.leftBehind = new LeftBehind(join(stateDir, 'left'), options.leftBehindMs, (path) =>
      options.warn({ path }, 'files of a run that could not be kept have been removed'),
    );
    this.timer = setInterval(() => this.poll(), POLL_MS);
    this.timer.unref();
  }

  /**
   * Takes the state directory into use, and up what an earlier agent left there.
   *
   * @throws LockHeldError when another agent uses it
   */
  static async open(options: ProcessRunnerOptions): Promise<ProcessRunner> {
    const stateDir = resolve(options.stateDir);
    mkdirSync(join(stateDir, 'slots'), { recursive: true, mode: 0o700 });
    const lock = await acquireLock(join(stateDir, 'lock'), 'the state directory of the agent');
    const id = agentId(stateDir);
    const known = new KnownRuns();
    const journal = new Journal(join(stateDir, 'reports'), (report) => known.add(report));
    const runner = new ProcessRunner(stateDir, id, lock, journal, known, {
      baseEnvironment: plainJobEnvironment(),
      isolation: () => Isolation.none(),
      outputLimitBytes: 256 << 10,
      diskLimitMb: null,
      cpuExcessS: null,
      keep: async () => 'this agent keeps no files',
      leftBehindMs: LEFT_BEHIND_MS,
      maxRuns: 1024,
      serves: null,
      warn: () => {},
      ...options,
    });
    if (journal.spoiled > 0)
      runner.options.warn(
        { lines: journal.spoiled },
        'reports of the agent were spoiled on disk, and left out',
      );
    runner.recover();
    await runner.isolation.sweep(upMs());
    return runner;
  }

  /** By what does not lie in the state directory: it may have been removed, and what it spoke of goes on. */
  async takeOver(): Promise<string | null> {
    const { serves } = this.options;
    if (serves === null) return null;
    return endOthers({
      ...{ ...serves, id: this.id, stateDir: this.stateDir },
      watches: (lane) => [...this.idle, ...this.bySlot.keys()].some(({ lanePid }) => lanePid === lane),
      runs: (key) => this.live.has(key),
      traces: () => ({ cgroups: this.isolation.cgroups?.others() ?? new Map(), uids: claimedIds() }),
    });
  }

  get problem(): string | null {
    if (this.uprooted) return UPROOTED;
    if (this.disk.isLow(upMs())) return 'the disk of its state directory is almost full';
    return upMs() < this.brokenUntilMs ? this.broken : null;
  }

  start(assignment: Assignment): void {
    if (!this.isNew(assignment)) return;
    if (this.uprooted) this.reportEnd(assignment, { cause: 'MACHINE_FAILED', message: UPROOTED });
    else if (this.waiting.size === 0 && this.mayLaunch() && this.isolation.knowsAccountOf(assignment.user))
      this.launch(assignment);
    else this.waiting.set(runKey(assignment), assignment);
  }

  resume(assignment: Assignment): void {
    if (!this.isNew(assignment)) return;
    this.reportEnd(assignment, { cause: 'LOST', message: 'the agent knows nothing of this run' });
  }

  cancel(name: RunName, graceMs = DEFAULT_GRACE_MS): void {
    const key = runKey(name);
    const run = this.live.get(key);
    if (run) {
      this.stop(run, 'CANCELLED_BY_USER', graceMs);
      return;
    }
    // Nor does one go on whose record was lost with the power: its end would be waited for.
    if (!this.waiting.delete(key) && this.known.standing(name, false) === 'past') return;
    this.known.add(name);
    this.reportEnd(name, { cause: 'CANCELLED_BY_USER', message: 'cancelled before it was started' });
  }

  forget(name: RunName): void {
    this.known.add(name);
    this.waiting.delete(runKey(name));
    const run = this.live.get(runKey(name));
    if (!run) return;
    run.forgotten = true;
    this.stop(run, 'CANCELLED_BY_USER', DEFAULT_GRACE_MS);
  }

  get hasAccounts(): boolean {
    return this.isolation.hasAccounts;
  }

  knows(run: RunName): boolean {
    return this.known.has(run);
  }

  fail(run: RunName, cause: EndCause, message: string): void {
    if (this.known.has(run)) return;
    this.known.add(run);
    this.reportEnd(run, { cause, message });
  }

  runs(): LiveRun[] {
    const live = [...this.live.values()].map((run) => ({ ...nameOf(run), startedAtMs: run.startedAtMs }));
    const waiting = [...this.waiting.values()].map((run) => ({ ...nameOf(run), startedAtMs: Date.now() }));
    return [...live, ...waiting];
  }

  get onReports(): (() => void) | null {
    return this.journal.onNews;
  }
  set onReports(run: (() => void) | null) {
    this.journal.onNews = run;
  }

  reports(limit: number): RunReport[] {
    return this.journal.list(limit);
  }

  freshOutput(): LiveOutput[] {
    const now = upMs();
    const pieces: LiveOutput[] = [];
    let bytes = 0;
    for (const run of this.live.values()) {
      if (run.forgotten || (!run.ended && now - Math.max(run.startedUpMs, run.sentAtMs) < FOLLOW_MS))
        continue;
      const asks: { told: OutputPiece; length: number }[] = STREAMS.flatMap(([stream]) =>
        run.asks ? [{ told: { stream, start: 0, text: '', bytes: 0 }, length: 0 }] : [],
      );
      for (const piece of run.asks ? asks : this.unsent(run, PIECE_BYTES)) {
        pieces.push({ ...nameOf(run), ...piece.told });
        bytes += piece.length;
      }
      if (bytes >= PIECES_BYTES) break;
    }
    return pieces;
  }

  delivered(pieces: readonly LiveOutput[], received: readonly (number | null)[] = []): void {
    for (const [i, { stream, start, text, base64, ...name }] of pieces.entries()) {
      const key = runKey(name);
      const run = this.live.get(key);
      if (!run) continue;
      const length = text === undefined ? Buffer.byteLength(base64!, 'base64') : Buffer.byteLength(text);
      run.sent[stream] = Math.max(run.sent[stream], start + length, received[i] ?? 0);
      run.sentAtMs = run.asks ? 0 : upMs();
      run.asks = false;
      // To the end: whoever is served first is not first again.
      this.live.delete(key);
      this.live.set(key, run);
    }
  }

  /** The next piece of each stream that the service does not have. */
  private unsent(run: LiveProcessRun, most: number): { told: OutputPiece; length: number }[] {
    return STREAMS.flatMap(([stream, file]) => {
      const found = run.outputs[file].next(run.sent[stream], most);
      if (!found) return [];
      const { start, body } = found;
      const told = { stream, start, ...written(body), bytes: run.outputs[file].size };
      return [{ told, length: body.length }];
    });
  }

  acknowledge(seq: number): void {
    for (const report of this.journal.acknowledge(seq))
      if (report.phase === 'ENDED') this.known.acknowledged(report);
  }

  /** Lets go without stopping any run: they go on, and the next agent finds them. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    if (this.isolation.accounts) this.isolation.accounts.onFound = () => {};
    clearInterval(this.timer);
    for (const slot of this.idle) slot.close();
    for (const run of this.live.values()) {
      run.keeping?.stop.abort(new Error('the agent stops'));
      run.slot.close();
      run.outputs.close();
    }
    this.outputs.close();
    this.isolation.cgroups?.close();
    this.journal.close();
    this.lock.release();
  }

  /** Whether a run has never been seen here. From now on it has been. */
  private isNew(run: RunName): boolean {
    const key = runKey(run);
    const standing = this.known.standing(run, this.live.has(key) || this.waiting.has(key));
    this.known.add(run);
    if (standing === 'acknowledged') this.reportEnd(run, { cause: 'LOST', message: ENDED_BEFORE });
    return standing === 'new';
  }

  /** Whether there is room: for one more run, and on the disk. */
  private mayLaunch(): boolean {
    if (this.live.size >= this.options.maxRuns || this.journal.owes || upMs() < this.pausedUntilMs)
      return false;
    const low = this.disk.isLow(upMs());
    if (low && !this.wasLow)
      this.options.warn({ dir: this.stateDir }, 'the disk is almost full: no run is started');
    this.wasLow = low;
    return !low;
  }

  private launchWaiting(): void {
    const unknown = new Set<string>();
    for (const [key, assignment] of this.waiting) {
      const { user } = assignment;
      if (!this.mayLaunch()) return;
      if (unknown.has(user)) continue;
      if (!this.isolation.knowsAccountOf(user)) {
        unknown.add(user);
        continue;
      }
      this.waiting.delete(key);
      this.launch(assignment);
    }
  }

  private launch(assignment: Assignment): void {
    const { jobId, epoch, runTimeLimitS } = assignment;
    const key = runKey(assignment);
    let slot: Slot | null = null;
    let outputs: Outputs | null = null;
    let uid: number | null = null;
    let ownId: number | null = null;
    let account: Account | null = null;
    let group: Cgroup | null = null;
    try {
      if (!/^[\w.:=+-]+$/.test(jobId))
        throw new LaunchError(`job id "${jobId}": letters, digits and _.:=+- are accepted`);
      checkStrings(assignment);
      account = this.isolation.accountOf(assignment.user);
      slot = this.takeSlot();
      const directory = assignment.workingDirectory ?? slot.workDirectory;
      this.ensureLane(slot);
      outputs = this.outputs.take();
      ownId = this.isolation.takeId(account);
      uid = account?.uid ?? ownId;
      const byGroup = account !== null && this.launcher !== null;
      const environment = this.environment(assignment, uid, account, slot, directory);
      // Not before what the agent puts there is there: from then on its owner may make links of it.
      slot.give(
        uid === null ? null : { uid, gid: account?.gid ?? uid, byGroup },
        this.isolation.mode === 'sandbox',
      );
      const launchers = this.isolation.launchers({
        ...{ uid, account, ownId, directory, work: slot.workDirectory, tmp: slot.tmpDirectory },
        inputs: (assignment.staged ?? []).map((input) => input.path),
      });
      // What the agent may see is no business of a job that may not: then it is the job's account that finds its program.
      const program =
        launchers.length > 0 ? assignment.command : this.find(assignment.command, environment, directory);
      const limits = limitsOf(assignment);
      group = this.isolation.cgroups?.make(key, { ...limits, processes: this.isolation.processes }) ?? null;
      // Written out: objects put together of others cost a run more than they save here.
      const record: RunRecord = {
        ...nameOf(assignment),
        startedAtMs: Date.now(),
        startedUpMs: upMs(),
        runTimeLimitS,
        privateDirectory: assignment.workingDirectory === null,
        hasHosts: assignment.tasks > 1,
        cpuBeforeS: slot.childrenCpuS,
        outputsDir: outputs.dir,
        uid,
        account,
        ownId,
        cgroup: group?.dir ?? null,
        memoryMb: limits.memoryMb,
        cpus: limits.cpus,
      };
      const { outputs: wanted, stagedS } = assignment;
      if (stagedS !== undefined) record.stagedS = stagedS;
      if (wanted && wanted.length > 0) record.wanted = { directory: realOf(directory), outputs: wanted };
      const run: LiveProcessRun = {
        ...record,
        ...this.newState(slot, outputs, group, record.startedUpMs, true),
        bytesBefore: bytesOf(slot.lanePid),
      };
      const command: RunCommand = {
        ...{ program, arguments: assignment.arguments, environment, directory, launchers },
        // The agent looks at what a launcher's account makes by the group of both.
        umask: byGroup ? '007' : null,
        prologue: [...this.isolation.prologue(account), ...(group ? [group.enter] : [])],
      };
      const input = startInput(command);
      const start = input === null ? null : slot.writeStart(input);
      slot.record(runScript(JSON.stringify(record), key, slot.dir, outputs.dir, start, command));
      this.addLive(run);
      // Told first, so that a run of which the journal speaks has begun, if its lane lives.
      slot.launch(key);
      this.journal.add({ phase: 'STARTED', ...nameOf(run), atMs: run.startedAtMs });
    } catch (error) {
      // A part of it may have been recorded. Its lane was not told.
      this.live.delete(key);
      let trash: string[] = [];
      if (slot) {
        this.bySlot.delete(slot);
        trash = this.freeSlot(slot);
      }
      if (outputs) this.outputs.putBack(outputs);
      group?.remove();
      this.cleared({ ownId, account, trash });
      if (isPassing(error)) {
        // Not the run's fault: it waits.
        this.pausedUntilMs = upMs() + START_PAUSE_MS;
        this.options.warn({ job: jobId, epoch, err: error }, 'a run cannot be started now; trying again');
        this.waiting.set(key, assignment);
        return;
      }
      const message = error instanceof Error ? error.message : String(error);
      this.reportEnd(assignment, { cause: this.whoseFault(error, message), message });
    }
  }

  /** Notes a launch that failed through no fault of its job. */
  private whoseFault(error: unknown, message: string): EndCause {
    if (error instanceof LaunchError) return 'LAUNCH_FAILED';
    this.broken = `the last launch failed: ${message}`;
    this.brokenUntilMs = upMs() + BROKEN_PAUSE_MS;
    return 'MACHINE_FAILED';
  }

  /** What is known of a run besides its record. `whole`: from its beginning. */
  private newState(slot: Slot, outputs: Outputs, group: Cgroup | null, startedUpMs: number, whole: boolean) {
    return {
      ...{
        slot,
        outputs,
        isClearing: null,
        isSignalled: false,
        group,
        ended: null,
        keeping: null,
        ours: whole,
        stop: null,
        forgotten: false,
        lost: false,
      },
      meter: new Meter(startedUpMs, whole, this.delayAccounting),
      ...{ bytesBefore: null, verdict: null, sent: { STDOUT: 0, STDERR: 0 }, sentAtMs: 0, asks: !whole },
    };
  }

  /** @throws LaunchError where the agent cannot start this for a job that has its rights */
  private find(command: string, { PATH = '' }: Record<string, string>, directory: string): string {
    if (!isDirectory(directory)) throw new LaunchError(`${directory}: no such directory`);
    return this.programs.find(command, PATH, directory);
  }

  /** All that a run finds in its environment; puts into its directory what that speaks of. */
  private environment(
    assignment: Assignment,
    uid: number | null,
    account: Account | null,
    slot: Slot,
    directory: string,
  ): Record<string, string> {
    return {
      ...this.options.baseEnvironment,
      PWD: directory,
      ...this.placeEnvironment(uid, account, slot),
      ...placeTask(assignment, slot.workDirectory),
      ...assignment.environment,
      ...this.runEnvironment(assignment),
      ...placeInputs(assignment, slot.workDirectory),
    };
  }

  /** What an account that is nobody's finds as its home. */
  private placeEnvironment(uid: number | null, account: Account | null, slot: Slot): Record<string, string> {
    if (uid === null && this.isolation.mode !== 'sandbox') return {};
    const tmp = this.isolation.mode === 'sandbox' ? '/tmp' : slot.tmpDirectory;
    if (account !== null) {
      const HOME = this.isolation.shows(account.home) ? account.home : slot.workDirectory;
      return { HOME, TMPDIR: tmp, USER: account.name, LOGNAME: account.name };
    }
    const name = uid === null ? undefined : `job-${uid}`;
    return { HOME: slot.workDirectory, TMPDIR: tmp, ...(name && { USER: name, LOGNAME: name }) };
  }

  /** Of a run that was not started. The directories that have been put aside. */
  private freeSlot(slot: Slot): string[] {
    let trash: string[] = [];
    try {
      trash = slot.clean(() => this.aside());
      slot.free(upMs());
      this.idle.push(slot);
    } catch {
      slot.remove();
    }
    return trash;
  }

  private addLive(run: LiveProcessRun): void {
    this.live.set(runKey(run), run);
    this.bySlot.set(run.slot, run);
  }

  private takeSlot(): Slot {
    return this.idle.pop() ?? this.newSlot(String(this.nextSlot));
  }

  private newSlot(name: string): Slot {
    const slot = new Slot(join(this.stateDir, 'slots', name));
    this.nextSlot = Math.max(this.nextSlot, Number(name) + 1);
    return slot;
  }

  private ensureLane(slot: Slot): void {
    slot.ensureLane(
      laneMark(this.id, this.options.serves),
      () => this.laneAnswered(this.bySlot.get(slot)),
      () => this.laneGone(this.bySlot.get(slot)),
    );
  }

  /** What every run finds in its environment. */
  private runEnvironment(assignment: Assignment): Record<string, string> {
    const { jobId, epoch, tasks, cpusPerTask, memoryMbPerTask, arrayIndex, machines } = assignment;
    const names = machines.map((machine) => `${machine.name}:${machine.tasks}`).join(',');
    return {
      SWITCHYARD_JOB_ID: jobId,
      SWITCHYARD_EPOCH: String(epoch),
      SWITCHYARD_TASKS: String(tasks),
      SWITCHYARD_TASK_INDEX: String(assignment.task ?? 0),
      SWITCHYARD_CPUS_PER_TASK: String(cpusPerTask),
      SWITCHYARD_MEMORY_MB_PER_TASK: String(memoryMbPerTask),
      ...(names.length <= VARIABLE_CHARS ? { SWITCHYARD_MACHINES: names } : {}),
      ...(arrayIndex === null ? {} : { SWITCHYARD_ARRAY_INDEX: String(arrayIndex) }),
      [MARKER]: `${this.id}/${runKey(assignment)}`,
    };
  }

  private laneAnswered(run: LiveProcessRun | undefined): void {
    const end = run?.slot.readEnd(runKey(run));
    if (run && !run.ended && end) this.finish(run, end);
  }

  private laneGone(run: LiveProcessRun | undefined): void {
    if (!run || run.ended || this.closed) return;
    const end = run.slot.readEnd(runKey(run));
    if (end) this.finish(run, end);
    else this.endLost(run);
  }

  /** The lane has died: no process of the run may outlive the report that it is lost, for it may be started elsewhere. */
  private endLost(run: LiveProcessRun): void {
    run.lost = true;
    run.group?.kill();
    if (this.killEach(run, false) > 0) return; // Looked at again by the next poll.
    const cause = run.stop?.cause ?? 'LOST';
    const message = run.verdict ?? 'its lane died: exit code unknown';
    this.finishWith(run, { cause, message, ...this.measured(run, null) });
  }

  private finish(run: LiveProcessRun, end: EndRecord): void {
    const { slot } = run;
    // A clock tick is 10 ms, and what was rounded away before is added later: never below 0.
    const cpuS = Math.max(0, end.childrenCpuS - run.cpuBeforeS);
    slot.childrenCpuS = end.childrenCpuS;
    const signalName = end.code > 128 ? (SIGNAL_NAMES.get(end.code - 128) ?? null) : null;
    let cause: EndCause = end.code === 0 ? 'EXITED_ZERO' : signalName ? 'SIGNALLED' : 'EXITED_NONZERO';
    let message: string | null = null;
    let exitCode: number | null = end.code;
    const problem =
      end.code === 0
        ? null
        : launchProblem(run, this.isolation.mode === 'none' ? [] : [...LAUNCHERS, ...this.launcherSays]);
    if (problem !== null) {
      // Never the machine's fault: the words may be the job's, and would take machines from others.
      cause = 'LAUNCH_FAILED';
      exitCode = null;
      message = problem;
    } else if (run.group?.usage().outOfMemory) {
      cause = 'MEMORY_LIMIT';
      message = `it needed more than the ${run.memoryMb} MB that it asked for`;
    } else if (run.stop && (end.code !== 0 || run.verdict !== null)) {
      cause = run.stop.cause;
      message = run.verdict;
    } else if (signalName !== null && outlasted(run, end.atMs)) {
      // An agent before this one has asked it to end.
      cause = 'RUN_TIME_LIMIT';
    }
    const measured = this.measured(run, cpuS);
    this.finishWith(run, { cause, message, exitCode, signal: signalName, ...measured }, end.atMs);
  }

  private measured(run: LiveProcessRun, cpuS: number | null): Measured {
    const { slot, bytesBefore, group } = run;
    const now = bytesBefore && bytesOf(slot.lanePid);
    const bytes = now && { read: now.read - bytesBefore.read, written: now.written - bytesBefore.written };
    const measured = run.meter.result(group?.usage() ?? null, { cpuS, bytes });
    const { ioWaitS } = measured;
    // Its machines have waited for its inputs.
    return { ...measured, ioWaitS: ioWaitS === null ? null : ioWaitS + (run.stagedS ?? 0) };
  }

  /** `atMs`: when it was written down that it ended; by default it is over now. */
  private finishWith(run: LiveProcessRun, end: End, atMs = Number.POSITIVE_INFINITY): void {
    const { slot } = run;
    const key = runKey(run);
    // A run is over when its command is: what it left behind would use CPUs that are given to the next.
    const held = slot.isHeld();
    if (held) this.killEach(run, slot.laneLives());
    if (run.group?.processes().length) run.group.kill();
    if (run.ended === null) this.tellOfTmp(run);
    if (this.isClearing(run)) {
      run.ended = { end, atMs };
      return;
    }
    if (!run.forgotten) {
      if (this.isKeeping(run, end.cause)) {
        run.ended = { end, atMs };
        return;
      }
      const outputs = this.lastOutputs(run);
      if (outputs === null) {
        run.ended = { end, atMs };
        this.journal.announce();
        return;
      }
      // As long after the start as has passed, whatever was done to the clock meanwhile.
      const now = run.startedAtMs + upMs() - run.startedUpMs;
      const endedAtMs = run.keeping ? now : Math.min(Math.max(atMs, run.startedAtMs), now);
      const told = { ...this.afterKeeping(run, end), outputs };
      const report = endReport(run, told, Math.round(endedAtMs));
      if (!this.journal.tryAdd(report)) {
        // No room. The slot keeps what is known of the run, for this agent or the next.
        run.ended = { end, atMs };
        return;
      }
      this.known.reported(run);
    }
    this.live.delete(key);
    this.bySlot.delete(slot);
    this.outputs.rest(run.outputs);
    if (run.keeping?.problem && run.privateDirectory && !run.stop) this.leave(run);
    const trash = this.reuse(run, held);
    const { account, ownId, group } = run;
    this.clear({ ownId, account, group, trash, rounds: 0 });
    this.launchWaiting();
  }

  /** A job in a sandbox has written to a /tmp that nobody else sees: without a word its owner would look for the files there. */
  private tellOfTmp({ slot, outputs, forgotten }: LiveProcessRun): void {
    if (this.isolation.mode !== 'sandbox' || forgotten) return;
    const names = slot.leftInTmp(TOLD_NAMES);
    if (names.length === 0) return;
    const some = names.map((name) => JSON.stringify(name)).join(', ');
    try {
      outputs.err.append(
        `switchyard: /tmp was this job's own and is removed with what it left there, such as ${some}. ` +
          'Write what is to be kept to the working directory, and name it as an output.\n',
      );
    } catch {
      // No room on the disk: its end matters more.
    }
  }

  /** How agents that are not root become accounts of users; null: this one needs nobody, or there are none. */
  private get launcher(): readonly string[] | null {
    return this.isolation.accounts?.launcher ?? null;
  }

  private get launcherSays(): string[] {
    return this.isolation.accounts?.launcherSays ?? [];
  }

  /** Has the account of a run's user end what the run has left, which the agent may not; whether that still goes on. */
  private isClearing(run: LiveProcessRun): boolean {
    const { account, wanted, privateDirectory, slot } = run;
    if (account === null || this.launcher === null) return false;
    if (run.isClearing !== null) return run.isClearing;
    run.isClearing = true;
    const clear = async (): Promise<void> => {
      for (let rounds = 0; rounds < MAX_KILL_ROUNDS; rounds++) {
        await this.doAs(run, SIGNAL, ...this.signalled(run, 'KILL'));
        if (this.processes(run, slot.laneLives()).length === 0) break;
      }
      if (wanted && privateDirectory) await this.doAs(run, OPEN, slot.workDirectory);
    };
    void clear().finally(() => {
      run.isClearing = false;
    });
    return true;
  }

  /** Arguments of SIGNAL for a run. */
  private signalled(run: LiveProcessRun, name: 'TERM' | 'KILL'): string[] {
    const lane = run.slot.lanePid;
    const lives = run.slot.laneLives();
    const all = this.processes(run, lives);
    const inside = name === 'TERM' && this.isolation.mode === 'sandbox' ? insideSandbox(all, lane) : [];
    if (inside.length > 0) return [name, '0', '', ...inside.map(({ pid }) => String(pid))];
    const others = all.filter(({ group }) => group !== lane);
    return [name, lives ? String(lane) : '0', this.marker(run), ...others.map(({ pid }) => String(pid))];
  }

  private async doAs(
    { account, jobId, epoch }: LiveProcessRun,
    text: string,
    ...args: string[]
  ): Promise<void> {
    const problem = await this.isolation.accounts!.do(account!, text, ...args);
    if (problem !== null)
      this.options.warn({ job: jobId, epoch, account: account!.name, problem }, 'the launcher failed');
  }

  /** Has the account of its user signal a run: only it may. */
  private signalAs(run: LiveProcessRun, name: 'TERM' | 'KILL'): void {
    if (run.account === null || this.launcher === null || run.isSignalled) return;
    run.isSignalled = true;
    void this.doAs(run, SIGNAL, ...this.signalled(run, name)).finally(() => {
      run.isSignalled = false;
    });
  }

  /** Begins to keep what the outputs of a run that is over name; whether that still goes on. */
  private isKeeping(run: LiveProcessRun, cause: EndCause): boolean {
    const { wanted, jobId, epoch, uid } = run;
    if (!wanted || (!run.keeping && NOTHING_KEPT.has(cause))) return false;
    if (run.keeping) return run.keeping.problem === undefined;
    const keeping: LiveProcessRun['keeping'] = {
      ...{ stop: new AbortController(), beganUpMs: upMs(), seconds: 0, problem: undefined },
    };
    run.keeping = keeping;
    const over = (problem: string | null): void => {
      keeping.seconds = (upMs() - keeping.beganUpMs) / 1000;
      keeping.problem = problem;
    };
    const ended = { jobId, epoch, task: run.task ?? 0, uid, ...wanted, well: cause === 'EXITED_ZERO' };
    this.options.keep(ended, keeping.stop.signal).then(over, (error: Error) => over(error.message));
    return true;
  }

  /** How a run ended, with what keeping its outputs has come to. */
  private afterKeeping(run: LiveProcessRun, end: End): End {
    const { keeping, stop } = run;
    if (!keeping) return end;
    const ioWaitS = end.ioWaitS === null || end.ioWaitS === undefined ? null : end.ioWaitS + keeping.seconds;
    const waited = { ...end, ioWaitS };
    if (keeping.problem === null) return waited;
    const well = end.cause === 'EXITED_ZERO';
    if (stop && well)
      return { ...waited, cause: stop.cause, message: 'cancelled while its outputs were kept' };
    const where = run.privateDirectory ? '; what there is stays at the site for a while' : '';
    const message = [end.message, `outputs not kept: ${keeping.problem}${where}`].filter(Boolean).join('; ');
    return { ...waited, cause: well ? 'OUTPUTS_FAILED' : end.cause, message };
  }

  /** Puts the directory of a run aside, for whoever wants to look what could not be kept. */
  private leave(run: LiveProcessRun): void {
    const { slot, jobId: job, epoch, task } = run;
    try {
      const path = this.leftBehind.take(slot.workDirectory, runKey(run));
      this.options.warn({ job, epoch, task, path }, 'outputs of a run could not be kept; its files are here');
    } catch (err) {
      this.options.warn({ job, epoch, task, err }, 'outputs of a run could not be kept, nor its directory');
    }
  }

  /** What is left to be told of a run's output; null: it is too much for a report, and goes before. */
  private lastOutputs(run: LiveProcessRun): OutputPiece[] | null {
    const sent = { ...run.sent };
    const last: OutputPiece[] = [];
    let room = REPORT_OUTPUT_BYTES;
    for (;;) {
      const pieces = this.unsent({ ...run, sent }, room + 1);
      if (pieces.length === 0) break;
      for (const { told, length } of pieces) {
        room -= length;
        if (room < 0) return null;
        last.push(told);
        sent[told.stream] = told.start + length;
      }
    }
    // That it wrote nothing is worth telling too.
    for (const [stream] of STREAMS) {
      if (sent[stream] === 0) last.push({ stream, start: 0, text: '', bytes: 0 });
    }
    return last;
  }

  /**
   * Gives back the number and the control group of a run that is over, when nothing uses them any more. A process that has left group,
   * session and environment behind is met here: the control group holds it, and account or group are no other's.
   */
  private clear(one: Remains): void {
    const { ownId, group } = one;
    if (group?.remove() === false) {
      group.kill();
      this.remains.push(one);
      // With a group that is gone nobody of the account is left. Without one, somebody has to look.
    } else if (ownId !== null && group === null) this.remains.push(one);
    else this.cleared(one);
  }

  private cleared({ ownId, account, trash }: Pick<Remains, 'ownId' | 'account' | 'trash'>): void {
    if (ownId !== null) this.isolation.putBackId(ownId, account === null);
    const remove = async (dir: string): Promise<void> => {
      const gone = removeTree(dir);
      if (account === null || this.launcher === null) return gone;
      await gone.catch(async () => {
        // Somebody else's, whom the agent has to ask.
        await this.isolation.accounts!.do(account, EMPTY, dir);
        await removeTree(dir);
      });
    };
    for (const dir of trash) remove(dir).catch(() => {}); // What resists goes at the agent's next start.
  }

  private clearRemains(): void {
    const { remains } = this;
    if (remains.length === 0) return;
    this.remains = [];
    const ids = new Set(remains.flatMap(({ ownId, group }) => (ownId === null || group ? [] : [ownId])));
    const left = ids.size > 0 ? processesWithIds((id) => ids.has(id)) : null;
    for (const one of remains) {
      const pids = one.ownId === null || one.group ? undefined : left!.get(one.ownId);
      if (one.group) this.clear(one);
      else if (pids === undefined) this.cleared(one);
      else {
        for (const pid of one.account === null ? pids : freeze(one.ownId!)) signal(pid, 'SIGKILL');
        if (one.rounds > 2 && one.account === null) killAccount(one.ownId!);
        this.remains.push({ ...one, rounds: one.rounds + 1 });
      }
    }
  }

  /** The directories that have been put aside. */
  private reuse({ slot, uid, privateDirectory, hasHosts, ours }: LiveProcessRun, held: boolean): string[] {
    let trash: string[] = [];
    try {
      if (privateDirectory || hasHosts || this.isolation.mode !== 'none')
        trash = slot.clean(() => this.aside());
      slot.free(upMs());
      // What the run left may still hold the slot's files, and a lane of an earlier agent takes no more orders.
      if (!held && ours) {
        this.idle.push(slot);
        return trash;
      }
    } catch {
      // It cannot be emptied, or there is no room to write that it is free.
    }
    if (uid === null) slot.remove();
    else trash.push(slot.putAside(this.aside()));
    return trash;
  }

  private aside(): string {
    return join(this.stateDir, `trash-${randomUUID()}`);
  }

  /** How many there were. */
  private killEach(run: LiveProcessRun, laneLives: boolean): number {
    const found = this.processes(run, laneLives);
    for (const { pid } of found) signal(pid, 'SIGKILL');
    if (found.length > 0) this.signalAs(run, 'KILL');
    return found.length;
  }

  private processes(run: LiveProcessRun, laneLives: boolean): ProcessRow[] {
    const { slot, ownId, group } = run;
    return processesOfRun(slot.lanePid, laneLives, this.marker(run), ownId, group?.processes());
  }

  private stop(run: LiveProcessRun, cause: EndCause, graceMs: number): void {
    const killAtMs = upMs() + graceMs;
    if (run.stop) {
      run.stop.killAtMs = Math.min(run.stop.killAtMs, killAtMs);
      return;
    }
    run.stop = { cause, killAtMs, rounds: 0 };
    if (run.ended) {
      // There is no process left to be told.
      run.keeping?.stop.abort(new Error('the run was cancelled'));
      return;
    }
    if (graceMs === 0) return; // Killed by the next poll, or by whoever asks.
    const lane = run.slot.lanePid;
    const lives = run.slot.laneLives();
    const all = this.processes(run, lives);
    // What holds the sandbox together would end it without grace.
    const inside = this.isolation.mode === 'sandbox' ? insideSandbox(all, lane) : [];
    const processes = inside.length > 0 ? inside : all;
    // The group at one stroke, so that a fork in between is met too; then those that have left it. Once each: to many
    // programs a second SIGTERM means something else.
    const asGroup = lives && inside.length === 0;
    if (asGroup) signal(-lane, 'SIGTERM');
    for (const { pid, group } of processes) if (!asGroup || group !== lane) signal(pid, 'SIGTERM');
    for (const { pid } of processes) signal(pid, 'SIGCONT');
    this.signalAs(run, 'TERM');
  }

  /** Ends a run that takes more than it may, at once: whoever takes too much is not asked. */
  private endFor(run: LiveProcessRun, cause: EndCause, message: string): void {
    if (run.stop || run.ended) return;
    run.verdict = message;
    this.stop(run, cause, 0);
    this.kill(run, run.stop!.rounds++);
  }

  /**
   * Kills the processes of a run one by one and spares its lane, which then tells exit code and times. What forks faster
   * than it is found is met again by the next poll, and in the end by a signal to the whole group.
   */
  private kill(run: LiveProcessRun, rounds: number): void {
    const lives = run.slot.laneLives();
    run.group?.kill();
    if (rounds > 2 && run.ownId !== null) {
      if (run.account === null) killAccount(run.ownId);
      else freeze(run.ownId);
    }
    // Stopped at one stroke, so that nothing forks away under what is killed one by one.
    const frozen = lives && run.group === null;
    if (frozen) signal(-run.slot.lanePid, 'SIGSTOP');
    this.killEach(run, lives);
    if (frozen) signal(run.slot.lanePid, 'SIGCONT');
    if (rounds > MAX_KILL_ROUNDS && lives) signal(-run.slot.lanePid, 'SIGKILL');
  }

  private poll(): void {
    const now = upMs();
    this.journal.flush();
    if (this.isUprooted(now)) {
      this.giveUpRuns();
      return;
    }
    this.outputs.scan(now, () => this.ownLanes());
    this.clearRemains();
    this.leftBehind.clean(now, this.disk.isLow(now));
    void this.isolation.sweep(now);
    this.measure(now);
    for (const run of [...this.live.values()]) {
      if (run.ended) {
        this.finishWith(run, run.ended.end, run.ended.atMs);
        continue;
      }
      run.outputs.trim();
      if (run.lost) this.endLost(run);
      else if (!run.ours) this.watch(run);
      if (!run.stop && run.runTimeLimitS !== null && now > run.startedUpMs + run.runTimeLimitS * 1000) {
        this.stop(run, 'RUN_TIME_LIMIT', DEFAULT_GRACE_MS);
      }
      if (run.stop && now >= run.stop.killAtMs) this.kill(run, run.stop.rounds++);
    }
    for (const slot of this.idle) if (now - slot.idleSinceMs > LANE_IDLE_MS) slot.releaseLane();
    this.launchWaiting();
  }

  private isUprooted(now: number): boolean {
    if (this.uprooted || now < this.nextRootMs) return this.uprooted;
    this.nextRootMs = now + ROOT_LOOK_MS;
    this.uprooted = isGone(this.stateDir, this.id);
    if (this.uprooted)
      this.options.warn({ dir: this.stateDir }, `${UPROOTED}; its runs are ended, and reported as lost`);
    return this.uprooted;
  }

  /** How they end could not be written down by anybody any more, and another agent would know nothing of them. */
  private giveUpRuns(): void {
    for (const [key, assignment] of this.waiting) {
      this.waiting.delete(key);
      this.reportEnd(assignment, { cause: 'MACHINE_FAILED', message: UPROOTED });
    }
    for (const run of [...this.live.values()]) {
      if (run.ended) this.finishWith(run, run.ended.end, run.ended.atMs);
      else {
        run.verdict ??= UPROOTED;
        if (run.slot.laneLives()) signal(-run.slot.lanePid, 'SIGKILL');
        else this.endLost(run);
      }
    }
  }

  /** Samples the processes of runs, and ends those that take more than they may. */
  private measure(now: number): void {
    const old = [...this.live.values()].filter(
      (run) => !run.ended && (run.memoryMb !== null || now - run.startedUpMs >= SAMPLE_AFTER_MS),
    );
    if (old.length === 0) return;
    const from = this.sampledUpTo % old.length;
    const runs = [...old.slice(from), ...old.slice(0, from)].slice(0, SAMPLES_PER_POLL);
    this.sampledUpTo = from + runs.length;
    const ungrouped = runs.filter(({ group }) => group === null);
    const asked = ungrouped.map((run) => ({
      ...{ lane: run.slot.lanePid, marker: this.marker(run), ownId: run.ownId },
    }));
    const members = asked.length > 0 ? this.members.of(asked, now) : null;
    for (const run of runs) {
      const pids = run.group?.processes() ?? members?.get(run.slot.lanePid) ?? [];
      const samples = pids.map(sampleOf).filter((sample): sample is Sample => sample !== null);
      if (samples.length > 0) this.judge(run, run.meter.take(samples, now), samples, now);
    }
    if (this.options.diskLimitMb !== null && now >= this.nextDiskMs) this.lookAtDisk(runs, now);
  }

  private judge(run: LiveProcessRun, bytes: number, samples: readonly Sample[], now: number): void {
    const { memoryMb, cpus, meter } = run;
    const { controllers } = this.isolation.cgroups ?? {};
    const megabytes = bytes / 1e6;
    if (memoryMb !== null && megabytes > memoryMb) {
      const used = `${Math.ceil(megabytes)} MB, and asked for ${memoryMb} MB`;
      this.endFor(run, 'MEMORY_LIMIT', `its processes had ${used}`);
      return;
    }
    const threads = samples.reduce((all, sample) => all + sample.threads, 0);
    if (threads > this.isolation.processes) {
      const most = `at most ${this.isolation.processes} are accepted (AGENT_RUN_PROCESSES)`;
      this.endFor(run, 'PROCESS_LIMIT', `it had ${threads} processes and threads; ${most}`);
      return;
    }
    const { cpuExcessS } = this.options;
    if (cpuExcessS === null || controllers?.has('cpu')) return;
    const cpuS = run.group?.usage().cpuS ?? meter.cpuS;
    const given = (cpus * (now - run.startedUpMs)) / 1000;
    if (cpuS <= given + cpuExcessS) return;
    const used = `${Math.round(cpuS)} s of CPU time in ${Math.round(given / cpus)} s, and asked for ${cpus} CPUs`;
    this.endFor(run, 'CPU_LIMIT', `it used ${used}`);
  }

  /** Looks at the directory of one run after another, beside everything else: trees can be large. */
  private lookAtDisk(runs: readonly LiveProcessRun[], now: number): void {
    this.nextDiskMs = Number.POSITIVE_INFINITY;
    const limit = this.options.diskLimitMb!;
    const look = async (): Promise<void> => {
      for (const run of runs) {
        const { workDirectory, tmpDirectory } = run.slot;
        const megabytes = (await roomOf([workDirectory, tmpDirectory])) / 1e6;
        if (megabytes > limit && this.live.get(runKey(run)) === run) {
          const used = `${Math.ceil(megabytes)} MB in its directory; accepted are ${limit} (AGENT_RUN_DISK_MB)`;
          this.endFor(run, 'DISK_LIMIT', `it had ${used}`);
        }
      }
    };
    void look().finally(() => {
      // Never busy with that for more than a twentieth of the time.
      this.nextDiskMs = upMs() + Math.max(DISK_LOOK_MS, 20 * (upMs() - now));
    });
  }

  private ownLanes(): number[] {
    return [...this.idle, ...this.bySlot.keys()].flatMap((slot) => slot.ownLanePid ?? []);
  }

  /** A run whose lane belongs to an earlier agent. */
  private watch(run: LiveProcessRun): void {
    const lives = run.slot.laneLives();
    // Asked in this order: a lane that ends in between has written its record.
    const end = run.slot.readEnd(runKey(run));
    if (end) this.finish(run, end);
    else if (!lives) this.endLost(run);
  }

  private recover(): void {
    const ended = new Set<string>();
    const started = new Set<string>();
    for (const report of this.journal.list(Number.POSITIVE_INFINITY)) {
      if (report.phase === 'ENDED') this.known.reported(report);
      (report.phase === 'ENDED' ? ended : started).add(runKey(report));
    }
    for (const name of readdirSync(this.stateDir)) {
      if (name.startsWith('trash-')) this.removeTrash(join(this.stateDir, name));
    }
    const inUse = new Set<string>();
    const left = new Map<number, Account | null>();
    const lanesGoneMs = upMs() + LANES_GO_MS;
    for (const name of readdirSync(join(this.stateDir, 'slots')).filter((entry) => /^\d+$/.test(entry))) {
      const slot = this.newSlot(name);
      const record = parseRecord(slot.recorded(), slot.dir);
      if (!record || ended.has(runKey(record))) {
        // The old lane goes by itself.
        const last = record ?? parseRecord(slot.lastRecorded(), slot.dir);
        if (last && last.ownId !== null && this.isolation.isOurs(last.ownId))
          left.set(last.ownId, last.account);
        slot.remove();
        continue;
      }
      const key = runKey(record);
      if (!started.has(key) && !begins(slot, key, lanesGoneMs)) {
        // The agent died before it told the lane: the service assigns it again.
        slot.remove();
        continue;
      }
      this.known.add(record);
      const outputs = new Outputs(record.outputsDir, this.options.outputLimitBytes);
      inUse.add(outputs.dir);
      const group = record.cgroup === null ? null : new Cgroup(record.cgroup);
      this.addLive({ ...record, ...this.newState(slot, outputs, group, record.startedUpMs, false) });
      if (!started.has(key)) {
        this.journal.add({ phase: 'STARTED', ...nameOf(record), atMs: record.startedAtMs });
      }
    }
    this.outputs.recover(inUse);
    const live = [...this.live.values()];
    const ids = new Set(
      live.flatMap(({ ownId }) => (ownId === null || !this.isolation.isOurs(ownId) ? [] : [ownId])),
    );
    // The agent before may have died before it looked at what runs that were over had left.
    for (const [ownId, account] of left) {
      if (ids.has(ownId)) continue;
      ids.add(ownId);
      this.remains.push({ ownId, account, group: null, trash: [], rounds: 0 });
    }
    this.isolation.reserveIds(ids);
    this.isolation.cgroups?.clean(new Set(live.flatMap(({ cgroup }) => cgroup ?? [])));
    this.poll();
  }

  private removeTrash(dir: string): void {
    removeTree(dir).catch((err) => this.options.warn({ dir, err }, 'what a run has left cannot be removed'));
  }

  private marker(run: RunName): string {
    return `${MARKER}=${this.id}/${runKey(run)}`;
  }

  private reportEnd(run: RunName, end: End): void {
    this.known.reported(run);
    this.journal.add(endReport(run, end, Date.now()));
  }
}

/** Whether the run took as long as it may. */
function outlasted({ startedAtMs, startedUpMs, runTimeLimitS }: RunRecord, endedAtMs: number): boolean {
  const ranMs = Math.min(endedAtMs - startedAtMs, upMs() - startedUpMs);
  return runTimeLimitS !== null && ranMs >= runTimeLimitS * 1000;
}

/** What a run may have of this machine: one task for itself, or all that are here. */
function limitsOf(assignment: Assignment): Pick<RunRecord, 'memoryMb' | 'cpus'> {
  const { cpusPerTask, memoryMbPerTask, machines } = assignment;
  const tasks = assignment.task === undefined ? (machines[0]?.tasks ?? 1) : 1;
  return { cpus: tasks * cpusPerTask, memoryMb: memoryMbPerTask > 0 ? tasks * memoryMbPerTask : null };
}

/** Those that bubblewrap runs: behind its own two, and what has launched it. */
function insideSandbox(all: readonly ProcessRow[], lane: number): ProcessRow[] {
  const below = (parents: ReadonlySet<number>): Set<number> =>
    new Set(all.filter(({ parent }) => parents.has(parent)).map(({ pid }) => pid));
  const passed = new Set<number>();
  let outer = below(new Set([lane]));
  while (outer.size > 0 && ![...outer].some((pid) => isNamed(pid, 'bwrap'))) {
    for (const pid of outer) passed.add(pid);
    outer = below(outer);
  }
  for (const pid of [...outer, ...below(outer)]) passed.add(pid);
  return all.filter(({ pid }) => !passed.has(pid));
}

/**
 * The shell's own words on standard error, where it could not start the program: that has changed since it was found, say,
 * or its interpreter is missing. null: the program was started.
 *
 * @param launchers what others that launch programs begin their words with
 */
function launchProblem({ slot, outputs }: LiveProcessRun, launchers: readonly string[]): string | null {
  const said = outputs.err.beginning(4096);
  const prefixes = [`${LANE_NAME}: `, `${slot.dir}/run: `, ...launchers];
  if (!prefixes.some((prefix) => said.startsWith(prefix))) return null;
  return prefixes.reduce((text, prefix) => text.replaceAll(prefix, ''), said).trim();
}

/** What programs that launch others say is said with their name. */
const LAUNCHERS = ['bwrap: ', 'setpriv: '];

function parseRecord(line: string | null, slotDir: string): RunRecord | null {
  if (line === null) return null;
  try {
    const record = JSON.parse(line) as RunRecord;
    // Of an earlier release.
    const startedUpMs = record.startedUpMs ?? upMs() - Math.max(0, Date.now() - record.startedAtMs);
    const unlimited = { uid: null, account: null, cgroup: null, memoryMb: null, cpus: 1, hasHosts: false };
    const ownId = record.ownId ?? (record.account ? null : (record.uid ?? null));
    return { ...unlimited, ...record, ownId, startedUpMs, outputsDir: record.outputsDir ?? slotDir };
  } catch {
    return null; // Cut short: the agent died before it told the lane.
  }
}

/** Whether a lane was told to begin the run. One that was not finds its input closed, and goes: that is waited for. */
function begins(slot: Slot, key: string, untilMs: number): boolean {
  while (!slot.hasBegun(key)) {
    if (!slot.laneLives()) return slot.hasBegun(key); // Asked again: it may have begun, and ended, in between.
    if (upMs() > untilMs) return true;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
  }
  return true;
}

/**
 * Tells this agent's processes from those of other agents on the machine. An agent whose reports are gone does not know what it has
 * started, and is another. Where only the file of the id is gone, the lanes of runs that are still written down here know it.
 */
function agentId(stateDir: string): string {
  const remembers = existsSync(join(stateDir, 'reports', 'acknowledged'));
  const known = idIn(stateDir);
  if (remembers && known !== null) return known;
  const lane = lanesHere().find(({ dir }) => dir.startsWith(`${stateDir}/`) && existsSync(join(dir, 'lane')));
  const id = (remembers && lane?.agent) || randomUUID();
  writeFileSync(join(stateDir, 'id'), id, { mode: 0o600 });
  return id;
}

/** Whether the state directory is not there any more, or another agent's. What cannot be read now says nothing. */
function isGone(stateDir: string, id: string): boolean {
  try {
    return idIn(stateDir) !== id;
  } catch {
    return false;
  }
}

/** The id that is kept there; null: none is. */
function idIn(stateDir: string): string | null {
  try {
    return readFileSync(join(stateDir, 'id'), 'utf8') || null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

function realOf(directory: string): string {
  try {
    return realpathSync(directory);
  } catch (error) {
    throw new LaunchError(`the agent cannot find outputs in ${directory}: ${(error as Error).message}`);
  }
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has gone by itself.
  }
}
