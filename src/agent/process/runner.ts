import { chmodSync, mkdirSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { REAL_ENV } from '../../platform/env.js';
import { plainJobEnvironment } from '../../platform/environment.js';
import { acquireLock, type LockFile } from '../../platform/lockfile.js';
import type { HostDevice } from '../devices.js';
import type { EndedRun } from '../files/handover.js';
import { KnownRuns } from '../known.js';
import { type MigFailure, MigInstances } from '../mig.js';
import { ReportingRunner } from '../reporting.js';
import {
  type Assignment,
  DEFAULT_GRACE_MS,
  type EndCause,
  type HeldImage,
  type LiveOutput,
  type LiveRun,
  nameOf,
  type RunName,
  type Runner,
  type RunUse,
  runKey,
  type SentSignal,
  type TerminalPiece,
  type WarnSignal,
  type WrittenCheckpoint,
} from '../runner.js';
import { unitsOf } from '../units.js';
import { told, writtenCheckpoints } from './checkpoints.js';
import { DeviceLooks } from './device-use.js';
import { Disk, isPassing, removeTree } from './disk.js';
import { Effects } from './effects.js';
import { lookAtEnd } from './ends.js';
import { delivered, freshOutput } from './follow.js';
import { agentId, isGone } from './identity.js';
import { claimedIds } from './ids.js';
import { Isolation } from './isolation.js';
import { Journal } from './journal.js';
import { Launcher } from './launch.js';
import { LeftBehind } from './left.js';
import { Lives } from './life.js';
import { Limits } from './limits.js';
import { endOthers, laneMark, type Serves } from './others.js';
import { OutputPool } from './outputs.js';
import { recover } from './recover.js';
import { Remains } from './remains.js';
import { Reports } from './reports.js';
import { type ProcessRun, upMs } from './run.js';
import { inputPiece, LaunchError, lastStepLacks } from './script.js';
import { Signals, signal } from './signals.js';
import type { Slot } from './slot.js';
import { Slots } from './slots.js';

export interface ProcessRunnerOptions {
  /** Where runs take place and reports are kept; one agent at a time. */
  stateDir: string;
  /** The environment that every run begins with. Nothing else of the agent's own environment reaches a run. */
  baseEnvironment?: Readonly<Record<string, string>>;
  /** What the host has that runs can be given. */
  devices?: readonly HostDevice[];
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
  /** Whether runs may have terminals. */
  terminals?: boolean;
  /** A run in a terminal is ended when nothing was heard of its client for so long. */
  detachedMs?: number;
  /** How many runs at once; more wait. */
  maxRuns?: number;
  /** What the agent serves; null: nothing tells it from other agents of the host. */
  serves?: Serves | null;
  /** Told of what its operator should know. */
  warn?: (fields: object, message: string) => void;
}

/** How often outputs, limits and runs of an earlier agent are looked at. */
const POLL_MS = 100;
/** After a start that failed for want of room, descriptors or processes. */
const START_PAUSE_MS = 1_000;
/** A host on which a launch has failed for its own sake is said to be unfit for so long. */
const BROKEN_PAUSE_MS = 60_000;
/** Between two looks whether the state directory is still there. */
const ROOT_LOOK_MS = 1_000;
const UPROOTED = 'the state directory of the agent was removed: restart the agent';
/** Clients say every few seconds that they are there. */
const DETACHED_MS = 60_000;
/** Time to fetch by hand what could not be kept. */
const LEFT_BEHIND_MS = 7 * 86_400_000;

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
 *
 * What comes next in the life of a run is decided in life.ts; here events are told to it, and its effects carried out.
 */
export class ProcessRunner extends ReportingRunner implements Runner {
  private readonly lives = new Lives<ProcessRun>((key, effect) => this.effects.carryOut(key, effect));
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
  private readonly isolation: Isolation;
  private readonly disk: Disk;
  private readonly slots: Slots;
  private readonly outputs: OutputPool;
  private readonly leftBehind: LeftBehind;
  private readonly remains: Remains;
  private readonly limits: Limits;
  private readonly deviceLooks = new DeviceLooks();
  private readonly launcher: Launcher;
  private readonly effects: Effects;
  /** null: the host has no cards in MIG mode. */
  private readonly mig: MigInstances | null;
  private timer: NodeJS.Timeout | undefined;

  private constructor(
    private readonly stateDir: string,
    /** Kept in the state directory. */
    readonly id: string,
    private readonly lock: LockFile,
    journal: Journal,
    known: KnownRuns,
    private readonly options: Required<ProcessRunnerOptions>,
  ) {
    const disk = new Disk(stateDir);
    super(new Reports(journal, disk, REAL_ENV), known);
    this.disk = disk;
    const isolation = options.isolation(stateDir, id);
    this.isolation = isolation;
    if (isolation.accounts) isolation.accounts.onFound = () => this.launchWaiting();
    if (isolation.images) isolation.images.onKnown = () => this.launchWaiting();
    const fetched = isolation.images?.fetched;
    if (fetched)
      fetched.inUse = () =>
        new Set([...this.lives].flatMap(([, life]) => ('run' in life ? (life.run.image?.root ?? []) : [])));
    this.slots = new Slots(stateDir);
    // Accounts of runs have to get to their directories, and to nothing else here.
    if (isolation.hasAccounts) for (const dir of [stateDir, this.slots.dir]) chmodSync(dir, 0o711);
    const { outputLimitBytes, maxRuns, diskLimitMb, cpuExcessS, baseEnvironment, warn } = options;
    const dir = join(stateDir, 'outputs');
    this.outputs = new OutputPool(dir, outputLimitBytes, maxRuns, (pid) => signal(pid, 'SIGKILL'));
    this.leftBehind = new LeftBehind(join(stateDir, 'left'), options.leftBehindMs, warn);
    this.remains = new Remains(isolation);
    const signals = new Signals(id, isolation, warn);
    this.limits = new Limits({
      ...{ isolation, diskLimitMb, cpuExcessS },
      marker: (run) => signals.marker(run),
      // Whoever takes too much is not asked.
      exceeded: (run, cause, message) =>
        this.lives.tell(runKey(run), { is: 'EXCEEDED', cause, message, nowMs: upMs(), graceMs: 0 }),
    });
    const cards = new Map(options.devices.flatMap(({ id, mig }) => (mig ? [[id, mig] as const] : [])));
    this.mig =
      cards.size === 0
        ? null
        : new MigInstances({
            ...{ cards, stateDir, warn },
            isLive: (run) => this.lives.get(run) !== undefined,
            made: (run, failure) => this.sliced(run, failure),
          });
    const { lives, slots, outputs, remains, leftBehind, reported: reports } = this;
    this.launcher = new Launcher({
      ...{ agent: id, baseEnvironment, isolation, slots, outputs, remains },
      devices: (run) => this.mig?.seenBy(run, options.devices) ?? options.devices,
      terminals: this.givesTerminals,
      ensureLane: (slot) => this.ensureLane(slot),
    });
    this.effects = new Effects({
      ...{ lives, signals, isolation, slots, outputs, remains, leftBehind, reports, known, warn },
      reportEnd: (run, end) => this.reportEnd(run, end),
      keep: options.keep,
      freed: () => this.launchWaiting(),
    });
  }

  /**
   * Takes the state directory into use, and up what an earlier agent left there.
   *
   * @throws LockHeldError when another agent uses it
   */
  static async open(options: ProcessRunnerOptions): Promise<ProcessRunner> {
    const stateDir = resolve(options.stateDir);
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    const lock = await acquireLock(join(stateDir, 'lock'), 'the state directory of the agent');
    const id = agentId(stateDir);
    const known = new KnownRuns();
    const journal = new Journal(join(stateDir, 'reports'), (report) => known.add(report));
    const runner = new ProcessRunner(stateDir, id, lock, journal, known, {
      baseEnvironment: plainJobEnvironment(),
      devices: [],
      isolation: () => Isolation.none(),
      outputLimitBytes: 256 << 10,
      diskLimitMb: null,
      cpuExcessS: null,
      keep: async () => 'this agent does not keep files',
      leftBehindMs: LEFT_BEHIND_MS,
      terminals: false,
      detachedMs: DETACHED_MS,
      maxRuns: 1024,
      serves: null,
      warn: () => {},
      ...options,
    });
    if (journal.spoiled > 0)
      runner.options.warn({ lines: journal.spoiled }, "damaged reports on the agent's disk were skipped");
    await runner.recover();
    await runner.isolation.sweep(upMs());
    return runner;
  }

  /** By what does not lie in the state directory: it may have been removed, and what it spoke of goes on. */
  async takeOver(): Promise<string | null> {
    const { serves } = this.options;
    if (serves === null) return null;
    return endOthers({
      ...{ ...serves, id: this.id, stateDir: this.stateDir },
      watches: (lane) => this.slots.lanes().includes(lane),
      runs: (key) => 'run' in (this.lives.get(key) ?? {}),
      traces: () => ({ cgroups: this.isolation.cgroups?.others() ?? new Map(), uids: claimedIds() }),
    });
  }

  nowMs(): number {
    return Date.now();
  }

  get problem(): string | null {
    if (this.uprooted) return UPROOTED;
    if (this.disk.isLow(upMs())) return 'the disk of its state directory is almost full';
    return upMs() < this.brokenUntilMs ? this.broken : null;
  }

  start(assignment: Assignment): void {
    if (!this.isNew(assignment)) return;
    const key = runKey(assignment);
    this.lives.add(assignment);
    if (this.uprooted) this.lives.tell(key, { is: 'FAILED', cause: 'MACHINE_FAILED', message: UPROOTED });
    // The others before it.
    else if (this.lives.waiting.size === 1) this.launchWaiting();
  }

  resume(assignment: Assignment): void {
    if (!this.isNew(assignment)) return;
    this.reportEnd(assignment, {
      cause: 'LOST',
      message: 'the agent has no record of this run',
    });
  }

  cancel(name: RunName, graceMs = DEFAULT_GRACE_MS, signal: WarnSignal = 'SIGTERM'): void {
    const key = runKey(name);
    if (this.lives.get(key)) {
      this.lives.tell(key, { is: 'CANCELLED', nowMs: upMs(), graceMs, signal });
      return;
    }
    // Nor does one go on whose record was lost with the power: its end would be waited for.
    if (!this.isUnheard(name)) return;
    this.reportEnd(name, {
      cause: 'CANCELLED_BY_USER',
      message: 'canceled before it was started',
    });
  }

  signal(name: RunName, signals: readonly SentSignal[]): void {
    this.lives.tell(runKey(name), { is: 'SIGNALLED', signals });
  }

  input({ jobId, epoch, sequence, body, size }: TerminalPiece): boolean {
    for (const run of this.inTerminals())
      if (run.jobId === jobId && run.epoch === epoch) {
        run.heardUpMs = upMs();
        return (body.length === 0 && size === null) || run.slot.writeInput(inputPiece(sequence, size, body));
      }
    return false;
  }

  get givesTerminals(): boolean {
    return this.options.terminals && process.platform === 'linux' && lastStepLacks() === null;
  }

  get hasTerminals(): boolean {
    return !this.inTerminals().next().done;
  }

  forget(name: RunName): void {
    this.known.add(name);
    this.lives.tell(runKey(name), { is: 'FORGOTTEN', nowMs: upMs(), graceMs: DEFAULT_GRACE_MS });
  }

  get hasAccounts(): boolean {
    return this.isolation.hasAccounts;
  }

  /** What runs images; null: nothing. */
  get imageRuntime(): string | null {
    return this.isolation.runtime?.name ?? null;
  }

  images(limit: number): HeldImage[] | null {
    return this.isolation.images === null ? [] : this.isolation.images.held(limit);
  }

  runs(): LiveRun[] {
    return [...this.lives].flatMap(([, life]) => {
      if (life.state === 'GONE') return [];
      if (life.state === 'WAITING') return { ...nameOf(life.assignment), startedAtMs: Date.now() };
      return { ...nameOf(life.run), startedAtMs: life.run.startedAtMs };
    });
  }

  freshOutput(): LiveOutput[] {
    return freshOutput(this.followed());
  }

  delivered(pieces: readonly LiveOutput[], received: readonly (number | null)[] = []): void {
    for (const [i, piece] of pieces.entries()) {
      const key = runKey(piece);
      const life = this.lives.get(key);
      if (!life || !('run' in life)) continue;
      delivered(life.run, piece, received[i] ?? 0);
      this.lives.putLast(key);
    }
  }

  writtenCheckpoints(): Promise<WrittenCheckpoint[]> {
    return writtenCheckpoints(
      [...this.lives].flatMap(([, life]) =>
        life.state === 'RUNNING' || life.state === 'STOPPING' ? [life.run] : [],
      ),
    );
  }

  checkpointsTold(written: readonly WrittenCheckpoint[]): void {
    for (const one of written) {
      const life = this.lives.get(runKey(one));
      if (life && 'run' in life) told(life.run, one.atMs);
    }
  }

  /** Lets go without stopping any run: they go on, and the next agent finds them. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    if (this.isolation.accounts) this.isolation.accounts.onFound = () => {};
    if (this.isolation.images) this.isolation.images.onKnown = () => {};
    clearInterval(this.timer);
    this.effects.stop();
    this.mig?.close();
    this.slots.close();
    for (const [, life] of this.lives) if ('run' in life) life.run.outputs.close();
    this.lives.letGo();
    this.outputs.close();
    this.isolation.close();
    this.reported.close();
    this.lock.release();
  }

  private *inTerminals(): Generator<ProcessRun> {
    for (const [, life] of this.lives)
      if (life.state === 'RUNNING' && life.run.terminal === true) yield life.run;
  }

  /** Runs whose output the service wants. */
  private *followed(): Iterable<{ run: ProcessRun; isOver: boolean }> {
    for (const [, life] of this.lives) {
      if (life.state === 'WAITING' || life.state === 'GONE' || ('forgotten' in life && life.forgotten))
        continue;
      yield { run: life.run, isOver: 'end' in life };
    }
  }

  protected isLive(run: RunName): boolean {
    return this.lives.get(runKey(run)) !== undefined;
  }

  /** Whether there is room: for one more run, and on the disk. */
  private mayLaunch(): boolean {
    if (this.lives.launched >= this.options.maxRuns || this.reported.owes || upMs() < this.pausedUntilMs)
      return false;
    const low = this.disk.isLow(upMs());
    if (low && !this.wasLow)
      this.options.warn({ dir: this.stateDir }, 'the disk is almost full: no runs are started');
    this.wasLow = low;
    return !low;
  }

  private launchWaiting(): void {
    const unknown = new Set<string>();
    for (const key of this.lives.waiting) {
      const life = this.lives.get(key);
      if (life?.state !== 'WAITING') continue;
      const { user } = life.assignment;
      if (!this.mayLaunch()) return;
      if (unknown.has(user) || !this.isolation.knowsImage(life.assignment)) continue;
      if (!this.isolation.knowsAccountOf(user)) unknown.add(user);
      else if (this.mig === null || this.mig.has(key, unitsOf(life.assignment)))
        this.launch(key, life.assignment);
    }
  }

  /** What a waiting run needs of cards in MIG mode has been made, or could not be. */
  private sliced(key: string, failure: MigFailure | null): void {
    if (this.closed) return;
    if (failure === null) this.launchWaiting();
    else {
      const { message, noRoom } = failure;
      const cause = noRoom ? 'MACHINE_FAILED' : this.whoseFault(failure, message);
      this.lives.tell(key, { is: 'FAILED', cause, message });
    }
  }

  private launch(key: string, assignment: Assignment): void {
    let run: ProcessRun;
    try {
      run = this.launcher.launch(assignment);
    } catch (err) {
      if (isPassing(err)) {
        // Not the run's fault: it waits.
        this.pausedUntilMs = upMs() + START_PAUSE_MS;
        const { jobId: job, epoch } = assignment;
        this.options.warn({ job, epoch, err }, 'a run cannot be started now; trying again');
        return;
      }
      const message = err instanceof Error ? err.message : String(err);
      this.lives.tell(key, { is: 'FAILED', cause: this.whoseFault(err, message), message });
      return;
    }
    this.slots.hold(run);
    this.lives.tell(key, { is: 'RECORDED', run });
  }

  /** Notes a launch that failed through no fault of its job. */
  private whoseFault(error: unknown, message: string): EndCause {
    if (error instanceof LaunchError) return 'LAUNCH_FAILED';
    this.broken = `the last launch failed: ${message}`;
    this.brokenUntilMs = upMs() + BROKEN_PAUSE_MS;
    return 'MACHINE_FAILED';
  }

  private ensureLane(slot: Slot): void {
    slot.ensureLane(
      laneMark(this.id, this.options.serves),
      () => this.lookAtLane(slot, true),
      () => this.lookAtLane(slot, false),
    );
  }

  /** A lane has answered, or is dead: what of the run in its slot? */
  private lookAtLane(slot: Slot, lives: boolean): void {
    const run = this.slots.runIn(slot);
    if (run && !this.closed) this.watch(run, lives);
  }

  private watch(run: ProcessRun, laneLives: boolean): void {
    const key = runKey(run);
    const state = this.lives.get(key)?.state;
    if (state !== 'RUNNING' && state !== 'STOPPING') return;
    const end = run.slot.readEnd(key);
    if (end) this.lives.tell(key, { is: 'ENDED', ended: lookAtEnd(run, end, this.isolation) });
    else if (!laneLives) {
      const message = this.uprooted ? UPROOTED : 'the shell that ran it died: exit code unknown';
      this.lives.tell(key, { is: 'LANE_DIED', message });
    }
  }

  uses(asked: readonly { jobId: string; epoch: number }[]): RunUse[] {
    const names = new Set(asked.map(({ jobId, epoch }) => `${jobId}.${epoch}`));
    return [...this.lives].flatMap(([, life]) => {
      if (!('run' in life) || 'end' in life || !names.has(`${life.run.jobId}.${life.run.epoch}`)) return [];
      const { run } = life;
      // What has been waited for is counted when the command has ended; until then it is what was seen of its processes.
      const waited = { cpuS: run.meter.cpuS, bytes: null };
      const { cpuS, peakMemoryMb } = run.meter.result(run.group?.usage() ?? null, waited, upMs());
      return [{ ...nameOf(run), cpuS, peakMemoryMb }];
    });
  }

  private poll(): void {
    const now = upMs();
    this.reported.flush();
    if (this.isUprooted(now)) {
      this.giveUpRuns();
      return;
    }
    this.outputs.scan(now, () => this.slots.ownLanes());
    this.remains.look();
    this.leftBehind.clean(now, this.disk.isLow(now));
    void this.isolation.sweep(now);
    const going = [...this.lives].flatMap(([, life]) => ('run' in life && !('end' in life) ? life.run : []));
    this.limits.look(going, now);
    this.deviceLooks.look(going, now);
    for (const run of going) {
      run.outputs.trim();
      // Asked in this order: a lane that ends in between has written its record.
      if (!run.ours) this.watch(run, run.slot.laneLives());
      this.lookAtLimit(run, now);
      if (run.unsent.length > 0) this.signal(run, run.unsent);
    }
    this.lookAtTerminals(now);
    this.tick(now);
    this.slots.rest(now);
    this.mig?.look(now);
    this.launchWaiting();
  }

  /** Nobody types there any more: it ends as when a terminal is lost. */
  private lookAtTerminals(nowMs: number): void {
    const { detachedMs } = this.options;
    for (const run of [...this.inTerminals()])
      if (nowMs - run.heardUpMs > detachedMs)
        this.lives.tell(runKey(run), {
          ...{ is: 'EXCEEDED', nowMs, graceMs: DEFAULT_GRACE_MS, signal: 'SIGHUP' },
          ...{ cause: 'SIGNALLED', message: `nobody was at its terminal for ${detachedMs / 1000} s` },
        });
  }

  /** Warns a run of its limit in time, and ends it there. */
  private lookAtLimit(run: ProcessRun, nowMs: number): void {
    const { runTimeLimitS, startedUpMs, warnS, warned, killGraceS } = run;
    if (runTimeLimitS === null) return;
    const limitMs = startedUpMs + runTimeLimitS * 1000;
    if (nowMs >= limitMs) {
      const limit = { cause: 'RUN_TIME_LIMIT', message: null, graceMs: killGraceS * 1000 } as const;
      this.lives.tell(runKey(run), { is: 'EXCEEDED', nowMs, ...limit });
    } else if (warnS !== null && warnS > 0 && !warned && nowMs >= limitMs - warnS * 1000)
      this.lives.tell(runKey(run), { is: 'LIMIT_NEARS' });
  }

  private tick(nowMs: number): void {
    const tick = { is: 'TICK', nowMs } as const;
    for (const [key] of this.lives) this.lives.tell(key, tick);
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
    for (const [key, life] of this.lives) {
      if (life.state === 'WAITING')
        this.lives.tell(key, { is: 'FAILED', cause: 'MACHINE_FAILED', message: UPROOTED });
      else if (life.state === 'RUNNING' || life.state === 'STOPPING') {
        const { slot } = life.run;
        if (slot.laneLives()) signal(-slot.lanePid, 'SIGKILL');
        else this.lives.tell(key, { is: 'LANE_DIED', message: UPROOTED });
      }
    }
    this.tick(upMs());
  }

  private async recover(): Promise<void> {
    const ended = new Set<string>();
    const started = new Set<string>();
    for (const report of this.reported.list(Number.POSITIVE_INFINITY)) {
      if (report.phase === 'ENDED') this.known.reported(report);
      (report.phase === 'ENDED' ? ended : started).add(runKey(report));
    }
    for (const name of readdirSync(this.stateDir))
      if (name.startsWith('trash-')) this.removeTrash(join(this.stateDir, name));
    const { isolation, slots, options } = this;
    const { live, left } = await recover(slots, isolation, options.outputLimitBytes, started, ended, (dir) =>
      this.removeTrash(dir),
    );
    for (const run of live) {
      const key = runKey(run);
      this.known.add(run);
      slots.hold(run);
      this.lives.takeUp(key, run);
      if (!started.has(key)) this.effects.reportStart(run);
    }
    this.outputs.recover(new Set(live.map(({ outputs }) => outputs.dir)));
    const ids = new Set(
      live.flatMap(({ ownId }) => (ownId === null || !isolation.isOurs(ownId) ? [] : [ownId])),
    );
    // The agent before may have died before it looked at what runs that were over had left.
    for (const [ownId, account] of left) {
      if (ids.has(ownId)) continue;
      ids.add(ownId);
      this.remains.add({ ownId, account, group: null, trash: [] });
    }
    isolation.reserveIds(ids);
    isolation.cgroups?.clean(new Set(live.flatMap(({ cgroup }) => cgroup ?? [])));
    this.poll();
    this.timer = setInterval(() => this.poll(), POLL_MS);
    this.timer.unref();
  }

  private removeTrash(dir: string): void {
    removeTree(dir).catch((err) =>
      this.options.warn({ dir, err }, 'leftover files of a run cannot be removed'),
    );
  }
}
