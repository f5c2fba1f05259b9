import { type Env, REAL_ENV } from '../platform/env.js';
import { ENDED_BEFORE, KnownRuns } from './known.js';
import {
  type Assignment,
  type EndedReport,
  type LiveRun,
  type Measured,
  nameOf,
  type RunName,
  type Runner,
  type RunReport,
  runKey,
  UNMEASURED,
} from './runner.js';

export interface SimulatedRunnerOptions {
  /** Simulated seconds per second of the clock, above 0. */
  speed: number;
  env?: Env;
}

interface SimulatedRun extends LiveRun {
  endsAtMs: number;
  cause: 'EXITED_ZERO' | 'RUN_TIME_LIMIT';
  /** Of the whole run, where the submission said so. */
  ioS: number | null;
  ended: boolean;
}

const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/**
 * Pretends to run assignments: each ends with 0 after `simulatedS` (or else `plannedS`) divided by the speed, or at its
 * limit. One that says how long it does input and output reports that, and the rest as computing. All ends are in one heap under one timer: a run costs a few microseconds.
 *
 * Nothing is kept on disk, for there is nothing that could be repeated: after a restart the service tells which runs go on,
 * and they begin anew.
 */
export class SimulatedRunner implements Runner {
  readonly problem = null;
  readonly simulates = true;
  onReports: (() => void) | null = null;
  private readonly live = new Map<string, SimulatedRun>();
  private readonly known = new KnownRuns();
  private readonly ends = new EndHeap();
  private readonly speed: number;
  private readonly pending: RunReport[] = [];
  private lastSeq = 0;
  private readonly env: Env;
  /** When the even clock began, by the time of day. */
  private readonly originMs: number;
  private cancelTimer = (): void => {};
  private timerAtMs = Number.POSITIVE_INFINITY;
  private announced = false;

  /** @throws RangeError for a speed that is no positive number */
  constructor(options: SimulatedRunnerOptions) {
    if (!(options.speed > 0 && options.speed < Number.POSITIVE_INFINITY)) {
      throw new RangeError(`speed: ${options.speed}; a number above 0 is accepted`);
    }
    this.speed = options.speed;
    this.env = options.env ?? REAL_ENV;
    this.originMs = this.env.nowMs() - this.env.upMs();
  }

  start(assignment: Assignment): void {
    const { runTimeLimitS } = assignment;
    const name = nameOf(assignment);
    const standing = this.known.standing(name, this.live.has(runKey(name)));
    this.known.add(name);
    if (standing === 'acknowledged') {
      this.reportEnd(name, this.nowMs(), { cause: 'LOST', exitCode: null, signal: null }, ENDED_BEFORE);
    }
    if (standing !== 'new') return;
    const durationS = Math.max(0, assignment.simulatedS ?? assignment.plannedS);
    const limited = runTimeLimitS !== null && durationS > runTimeLimitS;
    const startedAtMs = this.nowMs();
    const run: SimulatedRun = {
      ...name,
      startedAtMs,
      endsAtMs: startedAtMs + ((limited ? runTimeLimitS : durationS) * 1000) / this.speed,
      cause: limited ? 'RUN_TIME_LIMIT' : 'EXITED_ZERO',
      ioS: assignment.simulatedIoS,
      ended: false,
    };
    this.live.set(runKey(name), run);
    this.report({ seq: 0, ...name, phase: 'STARTED', atMs: startedAtMs });
    this.ends.push(run);
    this.schedule();
  }

  /** A run of the agent before this one: begins anew. */
  resume(assignment: Assignment): void {
    this.start(assignment);
  }

  cancel(name: RunName): void {
    const run = this.live.get(runKey(name));
    // A service that was restored from a copy waits for an end that it had once: it is told again.
    if (!run && this.known.standing(name, false) === 'past') return;
    this.known.add(name);
    if (run) this.end(run);
    const signal = run ? 'SIGTERM' : null;
    this.reportEnd(name, this.nowMs(), { cause: 'CANCELLED_BY_USER', exitCode: null, signal });
  }

  forget(name: RunName): void {
    this.known.add(name);
    const run = this.live.get(runKey(name));
    if (run) this.end(run);
  }

  runs(): LiveRun[] {
    return [...this.live.values()].map((run) => ({ ...nameOf(run), startedAtMs: run.startedAtMs }));
  }

  reports(limit: number): RunReport[] {
    return this.pending.slice(0, limit);
  }

  acknowledge(seq: number): void {
    const kept = this.pending.findIndex((report) => report.seq > seq);
    const gone = this.pending.splice(0, kept < 0 ? this.pending.length : kept);
    for (const report of gone) if (report.phase === 'ENDED') this.known.acknowledged(report);
  }

  /** Simulated runs write nothing. */
  freshOutput(): null {
    return null;
  }

  delivered(): void {}

  close(): void {
    this.cancelTimer();
    this.timerAtMs = Number.POSITIVE_INFINITY;
  }

  private end(run: SimulatedRun): void {
    run.ended = true; // It stays in the heap until its time.
    this.live.delete(runKey(run));
  }

  /** The time of day by a clock that goes on evenly, whoever sets that of the machine. */
  nowMs(): number {
    return this.originMs + this.env.upMs();
  }

  private schedule(): void {
    const next = this.ends.first();
    if (!next || next.endsAtMs >= this.timerAtMs) return;
    this.cancelTimer();
    this.timerAtMs = next.endsAtMs;
    const delayMs = Math.min(MAX_TIMEOUT_MS, Math.max(0, Math.ceil(next.endsAtMs - this.nowMs())));
    this.cancelTimer = this.env.after(delayMs, () => this.tick());
  }

  private tick(): void {
    this.timerAtMs = Number.POSITIVE_INFINITY;
    const now = this.nowMs();
    for (let run = this.ends.first(); run && run.endsAtMs <= now; run = this.ends.first()) {
      this.ends.pop();
      if (run.ended) continue;
      this.end(run);
      const signal = run.cause === 'RUN_TIME_LIMIT' ? 'SIGTERM' : null;
      const exitCode = signal ? null : 0;
      this.reportEnd(run, run.endsAtMs, { cause: run.cause, exitCode, signal }, null, this.times(run));
    }
    this.schedule();
  }

  private reportEnd(
    run: RunName,
    atMs: number,
    end: Pick<EndedReport, 'cause' | 'exitCode' | 'signal'>,
    message: string | null = null,
    measured: Measured = UNMEASURED,
  ): void {
    this.known.reported(run);
    this.report({
      seq: 0,
      ...nameOf(run),
      phase: 'ENDED',
      atMs,
      ...end,
      message,
      ...measured,
      outputs: [],
    });
  }

  /** By the service's clock, which goes on at its own speed: the parts of a run that was sped up are as long as it was. */
  private times({ ioS, startedAtMs, endsAtMs }: SimulatedRun): Measured {
    if (ioS === null) return UNMEASURED;
    const seconds = (endsAtMs - startedAtMs) / 1000;
    const ioWaitS = Math.min(ioS / this.speed, seconds);
    return {
      ...UNMEASURED,
      ...{ cpuS: seconds - ioWaitS, cpuMethod: 'SIMULATED', ioWaitS, ioWaitMethod: 'SIMULATED' },
    };
  }

  private report(report: RunReport): void {
    report.seq = ++this.lastSeq;
    this.pending.push(report);
    if (this.announced) return;
    this.announced = true;
    this.env.soon(() => {
      this.announced = false;
      this.onReports?.();
    });
  }
}

/** Runs by their end, the earliest first: a binary heap. Equal ends come in any order. */
class EndHeap {
  private readonly items: SimulatedRun[] = [];

  first(): SimulatedRun | undefined {
    return this.items[0];
  }

  push(run: SimulatedRun): void {
    const { items } = this;
    let at = items.length;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (items[above]!.endsAtMs <= run.endsAtMs) break;
      items[at] = items[above]!;
      at = above;
    }
    items[at] = run;
  }

  pop(): void {
    const { items } = this;
    const last = items.pop();
    if (!last || items.length === 0) return;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below + 1 < items.length && items[below + 1]!.endsAtMs < items[below]!.endsAtMs) below++;
      if (below >= items.length || items[below]!.endsAtMs >= last.endsAtMs) break;
      items[at] = items[below]!;
      at = below;
    }
    items[at] = last;
  }
}
