import { type Env, REAL_ENV } from '../platform/env.js';
import { KnownRuns } from './known.js';
import { MemoryJournal, Reports } from './process/reports.js';
import { ReportingRunner } from './reporting.js';
import {
  type Assignment,
  type LiveRun,
  type Measured,
  nameOf,
  type RunName,
  type Runner,
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
export class SimulatedRunner extends ReportingRunner implements Runner {
  readonly problem = null;
  readonly simulates = true;
  private readonly live = new Map<string, SimulatedRun>();
  private readonly ends = new EndHeap();
  private readonly speed: number;
  private readonly env: Env;
  /** When the even clock began, by the time of day. */
  private readonly originMs: number;
  private cancelTimer = (): void => {};
  private timerAtMs = Number.POSITIVE_INFINITY;

  /** @throws RangeError for a speed that is no positive number */
  constructor(options: SimulatedRunnerOptions) {
    if (!(options.speed > 0 && options.speed < Number.POSITIVE_INFINITY)) {
      throw new RangeError(`speed: ${options.speed}; a number above 0 is accepted`);
    }
    const { speed, env = REAL_ENV } = options;
    super(new Reports(new MemoryJournal(), { release() {} }, env), new KnownRuns());
    this.speed = speed;
    this.env = env;
    this.originMs = this.env.nowMs() - this.env.upMs();
  }

  start(assignment: Assignment): void {
    const { runTimeLimitS } = assignment;
    const name = nameOf(assignment);
    if (!this.isNew(name)) return;
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
    this.reported.add({ ...name, phase: 'STARTED', atMs: startedAtMs });
    this.ends.push(run);
    this.schedule();
  }

  /** A run of the agent before this one: begins anew. */
  resume(assignment: Assignment): void {
    this.start(assignment);
  }

  cancel(name: RunName): void {
    const run = this.live.get(runKey(name));
    if (run) this.end(run);
    // A service that was restored from a copy waits for an end that it had once: it is told again.
    else if (!this.isUnheard(name)) return;
    this.reportEnd(name, { cause: 'CANCELLED_BY_USER', signal: run ? 'SIGTERM' : null });
  }

  forget(name: RunName): void {
    this.known.add(name);
    const run = this.live.get(runKey(name));
    if (run) this.end(run);
  }

  runs(): LiveRun[] {
    return [...this.live.values()].map((run) => ({ ...nameOf(run), startedAtMs: run.startedAtMs }));
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

  protected isLive(run: RunName): boolean {
    return this.live.has(runKey(run));
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
      this.reportEnd(run, { cause: run.cause, exitCode, signal, ...this.times(run) }, run.endsAtMs);
    }
    this.schedule();
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
