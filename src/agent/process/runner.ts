import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { constants, uptime } from 'node:os';
import { join, resolve } from 'node:path';
import { acquireLock, type LockFile } from '../../platform/lockfile.js';
import { ENDED_BEFORE, KnownRuns } from '../known.js';
import {
  type Assignment,
  DEFAULT_GRACE_MS,
  type EndCause,
  type EndedReport,
  type LiveRun,
  type Runner,
  type RunReport,
  runKey,
} from '../runner.js';
import { Disk, isPassing } from './disk.js';
import { Journal, type NewReport } from './journal.js';
import { OutputPool, Outputs } from './outputs.js';
import { accountsIoWait, ioWaitOfRun, processesOfRun } from './processes.js';
import { checkStrings, LANE_NAME, LaunchError, ProgramFinder, runScript } from './script.js';
import { type EndRecord, Slot } from './slot.js';

export interface ProcessRunnerOptions {
  /** Where runs take place and reports are kept; one agent at a time. */
  stateDir: string;
  /** The environment that every run begins with. Nothing else of the agent's own environment reaches a run. */
  baseEnvironment?: Readonly<Record<string, string>>;
  /** How much is kept of each stream of a run, 1 KiB and up. */
  outputLimitBytes?: number;
  /** How many runs at once; more wait. */
  maxRuns?: number;
  /** Told of what its operator should know. */
  warn?: (fields: object, message: string) => void;
}

/** How often outputs, limits and runs of an earlier agent are looked at. */
const POLL_MS = 100;
const IO_WAIT_SAMPLE_MS = 1000;
/** A lane without work goes after this. */
const LANE_IDLE_MS = 60_000;
/** After a start that failed for want of room, descriptors or processes. */
const START_PAUSE_MS = 1_000;
/** A host on which a launch has failed for its own sake is said to be unfit for so long. */
const BROKEN_PAUSE_MS = 60_000;
/** After so many rounds of killing one by one, the lane is killed with its group. */
const MAX_KILL_ROUNDS = 50;

/** What has to be known of a run to end it properly, also by the next agent: line 1 of the slot's `run`. */
interface RunRecord {
  jobId: string;
  epoch: number;
  startedAtMs: number;
  /** The same on the clock of durations. */
  startedUpMs: number;
  runTimeLimitS: number | null;
  privateDirectory: boolean;
  /** CPU time of the lane's children before this run. */
  cpuBeforeS: number;
  /** Where its output goes: the directory of `out` and `err`. */
  outputsDir: string;
}

/**
 * Durations are measured on the time since the machine was booted, in ms: it is the same for the next agent, and nobody sets it. Only what
 * is told to others are times of day.
 */
const upMs = (): number => BOOTED_AT_MS + performance.now();
const BOOTED_AT_MS = uptime() * 1000 - performance.now();

interface LiveProcessRun extends RunRecord {
  slot: Slot;
  outputs: Outputs;
  /** It is over, and there was no room to write that down. */
  ended: { end: End; atMs: number } | null;
  /** Its lane is a child of this agent; false: of an earlier one, which is why it is polled. */
  ours: boolean;
  stop: { cause: EndCause; killAtMs: number; rounds: number } | null;
  /** Its end is of no interest to the service. */
  forgotten: boolean;
  /** Its lane is dead: it is lost, as soon as its processes are gone. */
  lost: boolean;
  /** Seconds of I/O wait by pid; null: not accounted. */
  ioWaitS: Map<number, number> | null;
}

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
  onReports: (() => void) | null = null;
  private readonly live = new Map<string, LiveProcessRun>();
  private readonly bySlot = new Map<Slot, LiveProcessRun>();
  private readonly waiting = new Map<string, Assignment>();
  private readonly idle: Slot[] = [];
  private readonly programs = new ProgramFinder();
  private readonly ioWait = accountsIoWait();
  private nextIoWaitMs = 0;
  private nextSlot = 1;
  private nextTrash = 1;
  private announced = false;
  private closed = false;
  /** Nothing is started before. */
  private pausedUntilMs = 0;
  private wasLow = false;
  /** Why the last launch failed that should not have, and until when it is not tried again. */
  private broken = '';
  private brokenUntilMs = 0;
  /** Reports for which there was no room, in order. */
  private readonly owed: NewReport[] = [];
  private readonly disk: Disk;
  private readonly outputs: OutputPool;
  private readonly timer: NodeJS.Timeout;

  private constructor(
    private readonly stateDir: string,
    /** Kept in the state directory. */
    readonly id: string,
    private readonly lock: LockFile,
    private readonly journal: Journal,
    private readonly known: KnownRuns,
    private readonly options: Required<ProcessRunnerOptions>,
  ) {
    this.disk = new Disk(stateDir);
    const { outputLimitBytes, maxRuns } = options;
    const dir = join(stateDir, 'outputs');
    this.outputs = new OutputPool(dir, outputLimitBytes, maxRuns, (pid) => signal(pid, 'SIGKILL'));
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
    const known = new KnownRuns();
    const journal = new Journal(join(stateDir, 'reports'), ({ jobId, epoch }) => known.add(jobId, epoch));
    const runner = new ProcessRunner(stateDir, agentId(stateDir), lock, journal, known, {
      baseEnvironment: { PATH: '/usr/local/bin:/usr/bin:/bin' },
      outputLimitBytes: 256 << 10,
      maxRuns: 1024,
      warn: () => {},
      ...options,
    });
    if (journal.spoiled > 0)
      runner.options.warn(
        { lines: journal.spoiled },
        'reports of the agent were spoiled on disk, and left out',
      );
    runner.recover();
    return runner;
  }

  get problem(): string | null {
    if (this.disk.isLow(upMs())) return 'the disk of its state directory is almost full';
    return upMs() < this.brokenUntilMs ? this.broken : null;
  }

  start(assignment: Assignment): void {
    if (!this.isNew(assignment)) return;
    if (this.waiting.size === 0 && this.mayLaunch()) this.launch(assignment);
    else this.waiting.set(runKey(assignment.jobId, assignment.epoch), assignment);
  }

  resume(assignment: Assignment): void {
    if (!this.isNew(assignment)) return;
    const { jobId, epoch } = assignment;
    this.reportEnd(jobId, epoch, { cause: 'LOST', message: 'the agent knows nothing of this run' });
  }

  cancel(jobId: string, epoch: number, graceMs = DEFAULT_GRACE_MS): void {
    const key = runKey(jobId, epoch);
    const run = this.live.get(key);
    if (run) {
      this.stop(run, 'CANCELLED_BY_USER', graceMs);
      return;
    }
    if (this.known.has(jobId, epoch) && !this.waiting.delete(key)) return;
    this.known.add(jobId, epoch);
    this.reportEnd(jobId, epoch, { cause: 'CANCELLED_BY_USER', message: 'cancelled before it was started' });
  }

  forget(jobId: string, epoch: number): void {
    this.known.add(jobId, epoch);
    this.waiting.delete(runKey(jobId, epoch));
    const run = this.live.get(runKey(jobId, epoch));
    if (!run) return;
    run.forgotten = true;
    this.stop(run, 'CANCELLED_BY_USER', DEFAULT_GRACE_MS);
  }

  runs(): LiveRun[] {
    const live = [...this.live.values()].map(({ jobId, epoch, startedAtMs }) => ({
      jobId,
      epoch,
      startedAtMs,
    }));
    const waiting = [...this.waiting.values()].map(({ jobId, epoch }) => ({
      jobId,
      epoch,
      startedAtMs: Date.now(),
    }));
    return [...live, ...waiting];
  }

  reports(limit: number): RunReport[] {
    return this.journal.list(limit);
  }

  acknowledge(seq: number): void {
    for (const { phase, jobId, epoch } of this.journal.acknowledge(seq)) {
      if (phase === 'ENDED') this.known.acknowledged(jobId, epoch);
    }
  }

  /** Lets go without stopping any run: they go on, and the next agent finds them. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    clearInterval(this.timer);
    for (const slot of this.idle) slot.close();
    for (const run of this.live.values()) {
      run.slot.close();
      run.outputs.close();
    }
    this.outputs.close();
    this.journal.close();
    this.lock.release();
  }

  /** Whether a run has never been seen here. From now on it has been. */
  private isNew({ jobId, epoch }: Assignment): boolean {
    const key = runKey(jobId, epoch);
    const standing = this.known.standing(jobId, epoch, this.live.has(key) || this.waiting.has(key));
    this.known.add(jobId, epoch);
    if (standing === 'acknowledged') this.reportEnd(jobId, epoch, { cause: 'LOST', message: ENDED_BEFORE });
    return standing === 'new';
  }

  /** Whether there is room: for one more run, and on the disk. */
  private mayLaunch(): boolean {
    if (this.live.size >= this.options.maxRuns || this.owed.length > 0 || upMs() < this.pausedUntilMs)
      return false;
    const low = this.disk.isLow(upMs());
    if (low && !this.wasLow)
      this.options.warn({ dir: this.stateDir }, 'the disk is almost full: no run is started');
    this.wasLow = low;
    return !low;
  }

  private launchWaiting(): void {
    for (const [key, assignment] of this.waiting) {
      if (!this.mayLaunch()) return;
      this.waiting.delete(key);
      this.launch(assignment);
    }
  }

  private launch(assignment: Assignment): void {
    const { jobId, epoch, runTimeLimitS } = assignment;
    const key = runKey(jobId, epoch);
    let slot: Slot | null = null;
    let outputs: Outputs | null = null;
    try {
      if (!/^[\w.:=+-]+$/.test(jobId))
        throw new LaunchError(`job id "${jobId}": letters, digits and _.:=+- are accepted`);
      checkStrings(assignment);
      slot = this.takeSlot();
      const directory = assignment.workingDirectory ?? slot.workDirectory;
      if (!isDirectory(directory)) throw new LaunchError(`${directory}: no such directory`);
      const path = assignment.environment.PATH ?? this.options.baseEnvironment.PATH ?? '';
      const program = this.programs.find(assignment.command, path, directory);
      this.ensureLane(slot);
      outputs = this.outputs.take();
      // Written out: objects put together of others cost a run more than they save here.
      const record: RunRecord = {
        jobId,
        epoch,
        startedAtMs: Date.now(),
        startedUpMs: upMs(),
        runTimeLimitS,
        privateDirectory: assignment.workingDirectory === null,
        cpuBeforeS: slot.childrenCpuS,
        outputsDir: outputs.dir,
      };
      const run: LiveProcessRun = {
        ...record,
        ...{ slot, outputs, ended: null, ours: true, stop: null, forgotten: false, lost: false },
        ioWaitS: this.ioWait ? new Map() : null,
      };
      const environment = { ...assignment.environment, ...this.runEnvironment(assignment) };
      slot.record(
        runScript(JSON.stringify(record), key, slot.dir, outputs.dir, program, {
          ...assignment,
          environment,
          directory,
        }),
      );
      this.addLive(run);
      this.report({ phase: 'STARTED', jobId, epoch, atMs: run.startedAtMs });
      slot.launch();
    } catch (error) {
      // A part of it may have been recorded. Its lane was not told.
      this.live.delete(key);
      if (slot) this.bySlot.delete(slot);
      if (slot) this.freeSlot(slot);
      if (outputs) this.outputs.putBack(outputs);
      if (isPassing(error)) {
        // Not the run's fault: it waits.
        this.pausedUntilMs = upMs() + START_PAUSE_MS;
        this.options.warn({ job: jobId, epoch, err: error }, 'a run cannot be started now; trying again');
        this.waiting.set(key, assignment);
        return;
      }
      const message = error instanceof Error ? error.message : String(error);
      this.reportEnd(jobId, epoch, { cause: this.whoseFault(error, message), message });
    }
  }

  /** Notes a launch that failed through no fault of its job. */
  private whoseFault(error: unknown, message: string): EndCause {
    if (error instanceof LaunchError) return 'LAUNCH_FAILED';
    this.broken = `the last launch failed: ${message}`;
    this.brokenUntilMs = upMs() + BROKEN_PAUSE_MS;
    return 'MACHINE_FAILED';
  }

  private freeSlot(slot: Slot): void {
    try {
      slot.free(upMs());
      this.idle.push(slot);
    } catch {
      slot.remove();
    }
  }

  private addLive(run: LiveProcessRun): void {
    this.live.set(runKey(run.jobId, run.epoch), run);
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
      { ...this.options.baseEnvironment },
      () => this.laneAnswered(this.bySlot.get(slot)),
      () => this.laneGone(this.bySlot.get(slot)),
    );
  }

  /** What every run finds in its environment. */
  private runEnvironment(assignment: Assignment): Record<string, string> {
    const { jobId, epoch, tasks, cpusPerTask, memoryMbPerTask, arrayIndex, machines } = assignment;
    return {
      SWITCHYARD_JOB_ID: jobId,
      SWITCHYARD_EPOCH: String(epoch),
      SWITCHYARD_TASKS: String(tasks),
      SWITCHYARD_CPUS_PER_TASK: String(cpusPerTask),
      SWITCHYARD_MEMORY_MB_PER_TASK: String(memoryMbPerTask),
      SWITCHYARD_MACHINES: machines.map((machine) => `${machine.name}:${machine.tasks}`).join(','),
      ...(arrayIndex === null ? {} : { SWITCHYARD_ARRAY_INDEX: String(arrayIndex) }),
      SWITCHYARD_RUN: `${this.id}/${runKey(jobId, epoch)}`,
    };
  }

  private laneAnswered(run: LiveProcessRun | undefined): void {
    const end = run?.slot.readEnd(runKey(run.jobId, run.epoch));
    if (run && !run.ended && end) this.finish(run, end);
  }

  private laneGone(run: LiveProcessRun | undefined): void {
    if (!run || run.ended || this.closed) return;
    const end = run.slot.readEnd(runKey(run.jobId, run.epoch));
    if (end) this.finish(run, end);
    else this.endLost(run);
  }

  /** The lane has died: no process of the run may outlive the report that it is lost, for it may be started elsewhere. */
  private endLost(run: LiveProcessRun): void {
    run.lost = true;
    const left = processesOfRun(run.slot.lanePid, false, this.marker(run));
    for (const { pid } of left) signal(pid, 'SIGKILL');
    if (left.length > 0) return; // Looked at again by the next poll.
    const cause = run.stop?.cause ?? 'LOST';
    this.finishWith(run, { cause, message: 'its lane died: exit code unknown' });
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
    const problem = end.code === 0 ? null : launchProblem(run);
    if (problem !== null) {
      // Never the machine's fault: the words may be the job's, and would take machines from others.
      cause = 'LAUNCH_FAILED';
      exitCode = null;
      message = problem;
    } else if (run.stop && end.code !== 0) cause = run.stop.cause;
    const ioWaitS = run.ioWaitS ? [...run.ioWaitS.values()].reduce((sum, value) => sum + value, 0) : null;
    this.finishWith(run, { cause, message, exitCode, signal: signalName, cpuS, ioWaitS }, end.atMs);
  }

  /** `atMs`: when it was written down that it ended; by default it is over now. */
  private finishWith(run: LiveProcessRun, end: End, atMs = Number.POSITIVE_INFINITY): void {
    const { slot, outputs } = run;
    const key = runKey(run.jobId, run.epoch);
    // A run is over when its command is: what it left behind would use CPUs that are given to the next.
    const held = slot.isHeld();
    if (held) this.killEach(run, slot.laneLives());
    if (!run.forgotten) {
      const texts = { stdout: outputs.out.read(), stderr: outputs.err.read() };
      // As long after the start as has passed, whatever was done to the clock meanwhile.
      const endedAtMs = Math.min(Math.max(atMs, run.startedAtMs), run.startedAtMs + upMs() - run.startedUpMs);
      const report = endReport(run.jobId, run.epoch, { ...end, ...texts }, Math.round(endedAtMs));
      if (!this.tryReport(report)) {
        // No room. The slot keeps what is known of the run, for this agent or the next.
        run.ended = { end, atMs };
        return;
      }
      this.known.reported(run.jobId, run.epoch);
    }
    this.live.delete(key);
    this.bySlot.delete(slot);
    this.outputs.rest(outputs);
    this.reuse(run, held);
    this.launchWaiting();
  }

  private reuse({ slot, privateDirectory, ours }: LiveProcessRun, held: boolean): void {
    try {
      if (privateDirectory)
        slot.cleanWorkDirectory(join(this.stateDir, `trash-${process.pid}-${this.nextTrash++}`));
      slot.free(upMs());
    } catch {
      slot.remove();
      return;
    }
    // What the run left may still hold the slot's files, and a lane of an earlier agent takes no more orders.
    if (held || !ours) slot.remove();
    else this.idle.push(slot);
  }

  private killEach(run: LiveProcessRun, laneLives: boolean): void {
    for (const { pid } of processesOfRun(run.slot.lanePid, laneLives, this.marker(run)))
      signal(pid, 'SIGKILL');
  }

  private stop(run: LiveProcessRun, cause: EndCause, graceMs: number): void {
    const killAtMs = upMs() + graceMs;
    if (run.stop) {
      run.stop.killAtMs = Math.min(run.stop.killAtMs, killAtMs);
      return;
    }
    run.stop = { cause, killAtMs, rounds: 0 };
    const lane = run.slot.lanePid;
    const lives = run.slot.laneLives();
    const processes = processesOfRun(lane, lives, this.marker(run));
    // The group at one stroke, so that a fork in between is met too; then those that have left it. Once each: to many
    // programs a second SIGTERM means something else.
    if (lives) signal(-lane, 'SIGTERM');
    for (const { pid, group } of processes) if (!lives || group !== lane) signal(pid, 'SIGTERM');
    for (const { pid } of processes) signal(pid, 'SIGCONT');
  }

  /**
   * Kills the processes of a run one by one and spares its lane, which then tells exit code and times. What forks faster
   * than it is found is met again by the next poll, and in the end by a signal to the whole group.
   */
  private kill(run: LiveProcessRun, rounds: number): void {
    const lives = run.slot.laneLives();
    this.killEach(run, lives);
    if (rounds > MAX_KILL_ROUNDS && lives) signal(-run.slot.lanePid, 'SIGKILL');
  }

  private poll(): void {
    const now = upMs();
    this.flush();
    this.outputs.scan(now, () => this.ownLanes());
    const sample = this.ioWait && now >= this.nextIoWaitMs;
    if (sample) this.nextIoWaitMs = now + IO_WAIT_SAMPLE_MS;
    for (const run of [...this.live.values()]) {
      if (run.ended) {
        this.finishWith(run, run.ended.end, run.ended.atMs);
        continue;
      }
      run.outputs.trim();
      if (sample && run.ioWaitS && now - run.startedUpMs > IO_WAIT_SAMPLE_MS) this.sampleIoWait(run);
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

  private ownLanes(): number[] {
    return [...this.idle, ...this.bySlot.keys()].flatMap((slot) => slot.ownLanePid ?? []);
  }

  private sampleIoWait(run: LiveProcessRun): void {
    for (const [pid, value] of ioWaitOfRun(run.slot.lanePid, this.marker(run))) run.ioWaitS!.set(pid, value);
  }

  /** A run whose lane belongs to an earlier agent. */
  private watch(run: LiveProcessRun): void {
    const lives = run.slot.laneLives();
    // Asked in this order: a lane that ends in between has written its record.
    const end = run.slot.readEnd(runKey(run.jobId, run.epoch));
    if (end) this.finish(run, end);
    else if (!lives) this.endLost(run);
  }

  private recover(): void {
    const ended = new Set<string>();
    const started = new Set<string>();
    for (const { jobId, epoch, phase } of this.journal.list(Number.POSITIVE_INFINITY)) {
      if (phase === 'ENDED') this.known.reported(jobId, epoch);
      (phase === 'ENDED' ? ended : started).add(runKey(jobId, epoch));
    }
    for (const name of readdirSync(this.stateDir)) {
      if (name.startsWith('trash-')) rmSync(join(this.stateDir, name), { recursive: true, force: true });
    }
    const inUse = new Set<string>();
    for (const name of readdirSync(join(this.stateDir, 'slots')).filter((entry) => /^\d+$/.test(entry))) {
      const slot = this.newSlot(name);
      const record = parseRecord(slot.recorded(), slot.dir);
      if (!record || ended.has(runKey(record.jobId, record.epoch))) {
        // The old lane goes by itself, and what it may have left is not ours to wait for.
        slot.remove();
        continue;
      }
      this.known.add(record.jobId, record.epoch);
      const key = runKey(record.jobId, record.epoch);
      const ioWaitS = this.ioWait ? new Map<number, number>() : null;
      const outputs = new Outputs(record.outputsDir, this.options.outputLimitBytes);
      inUse.add(outputs.dir);
      const state = { ended: null, ours: false, stop: null, forgotten: false, lost: false };
      this.addLive({ ...record, slot, outputs, ...state, ioWaitS });
      if (!started.has(key)) {
        this.report({ phase: 'STARTED', jobId: record.jobId, epoch: record.epoch, atMs: record.startedAtMs });
      }
    }
    this.outputs.recover(inUse);
    this.poll();
  }

  private marker(run: { jobId: string; epoch: number }): string {
    return `SWITCHYARD_RUN=${this.id}/${runKey(run.jobId, run.epoch)}`;
  }

  private reportEnd(jobId: string, epoch: number, end: End): void {
    this.known.reported(jobId, epoch);
    this.report(endReport(jobId, epoch, end, Date.now()));
  }

  /** Keeps it in memory where there is no room for it: the next agent would find out by itself. */
  private report(report: NewReport): void {
    if (!this.tryReport(report)) this.owed.push(report);
  }

  /** Writes down what there was no room for. */
  private flush(): void {
    for (let next = this.owed[0]; next && this.keep(next); next = this.owed[0]) this.owed.shift();
  }

  /** Behind all that is owed. False: there is no room for it. */
  private tryReport(report: NewReport): boolean {
    this.flush();
    return this.owed.length === 0 && this.keep(report);
  }

  private keep(report: NewReport): boolean {
    try {
      this.journal.append(report);
    } catch (error) {
      if (!isPassing(error)) throw error;
      this.disk.release();
      try {
        this.journal.append(report);
      } catch {
        return false;
      }
    }
    this.announce();
    return true;
  }

  private announce(): void {
    if (this.announced) return;
    this.announced = true;
    setImmediate(() => {
      this.announced = false;
      if (!this.closed) this.onReports?.();
    });
  }
}

/** An end as far as it is known; what is left out is null. */
type End = Pick<EndedReport, 'cause'> &
  Partial<Omit<EndedReport, 'seq' | 'phase' | 'jobId' | 'epoch' | 'atMs'>>;

function endReport(jobId: string, epoch: number, end: End, atMs: number): NewReport {
  const nothing = { exitCode: null, signal: null, message: null, cpuS: null, ioWaitS: null };
  return { phase: 'ENDED', jobId, epoch, atMs, ...nothing, stdout: null, stderr: null, ...end };
}

/**
 * The shell's own words on standard error, where it could not start the program: that has changed since it was found, say,
 * or its interpreter is missing. null: the program was started.
 */
function launchProblem({ slot, outputs }: LiveProcessRun): string | null {
  const said = outputs.err.beginning(4096);
  const prefixes = [`${LANE_NAME}: `, `${slot.dir}/run: `];
  if (!prefixes.some((prefix) => said.startsWith(prefix))) return null;
  return prefixes.reduce((text, prefix) => text.replaceAll(prefix, ''), said).trim();
}

function parseRecord(line: string | null, slotDir: string): RunRecord | null {
  if (line === null) return null;
  try {
    const record = JSON.parse(line) as RunRecord;
    // Of an earlier release.
    const startedUpMs = record.startedUpMs ?? upMs() - Math.max(0, Date.now() - record.startedAtMs);
    return { ...record, startedUpMs, outputsDir: record.outputsDir ?? slotDir };
  } catch {
    return null; // Cut short: the agent died before it told the lane.
  }
}

/** Tells this agent's processes from those of other agents on the machine. */
function agentId(stateDir: string): string {
  const path = join(stateDir, 'id');
  try {
    return readFileSync(path, 'utf8');
  } catch {
    const id = randomUUID();
    writeFileSync(path, id, { mode: 0o600 });
    return id;
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
