import { setTimeout as sleep } from 'node:timers/promises';

/** One thing that is started and stopped: a server, a pool, a worker. */
export interface Part {
  name: string;
  /** `signal`: it is to be stopped meanwhile, and need not wait any longer for what it waits for. */
  start?(signal?: AbortSignal): void | Promise<void>;
  stop?(): void | Promise<void>;
}

export type Phase =
  | { is: 'new' }
  | { is: 'starting'; part: string }
  | { is: 'running' }
  | { is: 'stopping'; reason: string; part: string }
  | { is: 'stopped'; reason: string; failures: PartFailure[] };

export interface PartFailure {
  part: string;
  error: Error;
}

/** What is told of the way up and down. pino's loggers fit. */
export interface LifecycleLog {
  info(details: object, message: string): void;
  error(details: object, message: string): void;
}

/**
 * Starts parts in order, each when the one before is ready, and stops them in the opposite order. A start that fails stops
 * what had been started.
 */
export class Lifecycle {
  #phase: Phase = { is: 'new' };
  #rising: Promise<void> = Promise.resolve();
  #stopped: Promise<PartFailure[]> | undefined;
  readonly #parts: readonly Part[];
  readonly #running: Part[] = [];
  readonly #stopping = new AbortController();

  constructor(
    parts: readonly Part[],
    /** For the whole way down, milliseconds: parts that have not stopped by then are left behind and named. */
    readonly stopTimeoutMs: number,
    readonly log?: LifecycleLog,
  ) {
    this.#parts = parts;
  }

  get phase(): Phase {
    return this.#phase;
  }

  /** @throws what the failing part threw; or an error when `stop` was called meanwhile */
  async start(): Promise<void> {
    if (this.#phase.is !== 'new') throw new Error(`cannot start: already ${this.#phase.is}`);
    for (const part of this.#parts) {
      this.#phase = { is: 'starting', part: part.name };
      this.#rising = this.#raise(part);
      try {
        await this.#rising;
      } catch (error) {
        await this.stop(`${part.name} did not start`);
        throw error;
      }
      if (this.#stopped) {
        await this.#stopped;
        throw new Error('stopped while starting');
      }
    }
    this.#phase = { is: 'running' };
    this.log?.info({ parts: this.#parts.map((part) => part.name) }, 'running');
  }

  async #raise(part: Part): Promise<void> {
    await part.start?.(this.#stopping.signal);
    this.#running.push(part);
  }

  /** Stops everything; a second call waits for the first. @returns the parts that did not stop properly */
  stop(reason: string): Promise<PartFailure[]> {
    this.#stopped ??= this.#stop(reason);
    return this.#stopped;
  }

  async #stop(reason: string): Promise<PartFailure[]> {
    const failures: PartFailure[] = [];
    const deadline = Date.now() + this.stopTimeoutMs;
    this.#stopping.abort();
    // A part on its way up is let come up, and is then the first to go.
    await within(this.stopTimeoutMs, () => this.#rising).catch(() => {});
    for (const part of this.#running.reverse()) {
      this.#phase = { is: 'stopping', reason, part: part.name };
      try {
        await within(Math.max(0, deadline - Date.now()), async () => part.stop?.());
      } catch (cause) {
        const error = cause instanceof Error ? cause : new Error(String(cause));
        failures.push({ part: part.name, error });
        this.log?.error({ part: part.name, error: error.message }, 'did not stop properly');
      }
    }
    this.#phase = { is: 'stopped', reason, failures };
    this.log?.info({ reason }, 'stopped');
    return failures;
  }
}

/** Starts the work also when no time is left, so that it gets at least the chance to end at once. */
async function within(timeMs: number, work: () => Promise<void>): Promise<void> {
  const timer = new AbortController();
  const late = sleep(timeMs, undefined, { signal: timer.signal }).then(
    () => {
      throw new Error(`not stopped in time`);
    },
    () => {},
  );
  try {
    await Promise.race([work(), late]);
  } finally {
    timer.abort();
  }
}

const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
/**
 * Signals this soon after the first belong to it: one Ctrl-C under `npm start` reaches the service twice, from the terminal and
 * from npm.
 */
export const SAME_SIGNAL_MS = 500;

/**
 * Runs until SIGTERM, SIGINT or SIGHUP (or `until` settles), then stops in order. A second signal, later than
 * {@link SAME_SIGNAL_MS}, gives up waiting.
 *
 * @returns the exit code for the process: 0 after an orderly stop, 1 when a part failed, 130 after a second signal. The
 *   caller sets it; nothing here ends the process.
 */
export async function runUntilSignal(lifecycle: Lifecycle, until?: Promise<string>): Promise<number> {
  let stop: (reason: string) => void = () => {};
  let giveUp: () => void = () => {};
  const asked = new Promise<string>((done) => {
    stop = done;
  });
  const hurried = new Promise<'hurried'>((done) => {
    giveUp = () => done('hurried');
  });
  let firstAtMs: number | null = null;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (firstAtMs === null) {
      firstAtMs = performance.now();
      stop(signal);
    } else if (performance.now() - firstAtMs > SAME_SIGNAL_MS) giveUp();
  };
  for (const signal of STOP_SIGNALS) process.on(signal, onSignal);
  try {
    const started = lifecycle.start().then(() => new Promise<never>(() => {}));
    // A signal during the start stops what has been started; a failing start is thrown.
    const reason = await Promise.race([asked, started, ...(until ? [until] : [])]);
    const outcome = await Promise.race([lifecycle.stop(reason), hurried]);
    if (outcome === 'hurried') return 130;
    return outcome.length > 0 ? 1 : 0;
  } finally {
    for (const signal of STOP_SIGNALS) process.off(signal, onSignal);
  }
}
