/**
 * Computes what-ifs in the background, one at a time in each process. Postgres is the truth of them: a sweep every few
 * seconds puts those that wait, or whose worker has died, into the queue; whoever takes one claims it in Postgres, and says
 * every second that it lives. So the queue may lose everything, and two who take the same one do no harm.
 *
 * The computing itself is handed in (`simulate`): the engine does not know the simulator.
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Claim, Simulations, SimulationTask } from '../store/simulations.js';
import type { EngineLog, Reachable } from './ports.js';
import { openSimulationSender, type QueueConnection, type SimulationSender } from './queue.js';
import { openQueueWorker, type QueueWorker } from './worker.js';

/**
 * Computes a simulation somewhere else than in this thread, where live cycles run. Rejects with what goes wrong, and at once
 * with the reason of `signal` when that is aborted.
 */
export type Simulate = (
  task: SimulationTask,
  options: { onProgress: (progress: number) => void; signal: AbortSignal },
) => Promise<unknown>;

export interface SimulationWorker {
  start(): void;
  /** Gives back what is in hand, for another process or the next start. */
  stop(): Promise<void>;
}

export interface SimulationWorkerConfig {
  sweepEveryMs: number;
  /** How often a worker says that it lives and how far it is; well within the lease (store/simulations.ts). */
  touchEveryMs: number;
  /** One that takes longer fails. */
  timeLimitMs: number;
  /** Kept after their end, days. */
  retentionDays: number;
}

const DEFAULTS: SimulationWorkerConfig = {
  sweepEveryMs: 2_000,
  touchEveryMs: 1_000,
  timeLimitMs: 10 * 60_000,
  retentionDays: 90,
};

const PRUNE_EVERY_MS = 3_600_000;

/** Why a simulation was aborted from outside: then it is not this worker's to end. */
class Taken extends Error {}
class Stopped extends Error {}

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: its short functions share its state
export function createSimulationWorker(parts: {
  simulations: Simulations;
  simulate: Simulate;
  queueConnection: QueueConnection;
  log: EngineLog;
  config?: Partial<SimulationWorkerConfig>;
  /** The time by which the service goes, epoch seconds. */
  now?: () => number;
  reach?: Reachable;
}): SimulationWorker {
  const { simulations, simulate, queueConnection, log, now = () => Date.now() / 1000 } = parts;
  const config = { ...DEFAULTS, ...parts.config };
  // For whoever asks Postgres who computes what; the random part keeps apart what the rest does not.
  const processId = `${hostname()}/${process.pid}/${randomBytes(4).toString('hex')}`;
  const stopping = new AbortController();
  let sender: SimulationSender | null = null;
  let worker: QueueWorker | null = null;
  let timer: NodeJS.Timeout | null = null;
  let sweeping: Promise<void> | null = null;
  let prunedAtMs = Number.NEGATIVE_INFINITY;

  async function sweep(): Promise<void> {
    try {
      if (performance.now() - prunedAtMs > PRUNE_EVERY_MS) {
        await simulations.prune(now() - config.retentionDays * 86_400);
        prunedAtMs = performance.now();
      }
      const due = await simulations.due();
      if (due.length === 0 || stopping.signal.aborted) return;
      sender ??= openSimulationSender(queueConnection, (error) =>
        log.warn({ err: error }, 'the queue of simulations cannot be reached'),
      );
      await inTime(sender.send(due));
    } catch (error) {
      log.warn({ err: error }, 'simulations could not be queued; trying again');
      // BullMQ remembers a bad beginning for ever.
      await closeSender();
    }
  }

  async function closeSender(): Promise<void> {
    const old = sender;
    sender = null;
    if (old !== null)
      await inTime(old.close()).catch((error) =>
        log.debug({ err: error }, 'a queue of simulations did not close cleanly'),
      );
  }

  async function perform({ id }: { id: number }): Promise<void> {
    if (stopping.signal.aborted) return;
    try {
      const claim = await simulations.claim(id, processId);
      if (claim !== null) await compute(claim);
    } catch (error) {
      // Still this worker's, if it was: the lease runs out, and somebody takes it up.
      log.error({ err: error, simulation: id }, 'a simulation could not be processed');
    }
  }

  async function compute(claim: Claim): Promise<void> {
    const { id } = claim;
    const startedMs = performance.now();
    const end = new AbortController();
    const stop = () => end.abort(new Stopped());
    stopping.signal.addEventListener('abort', stop);
    if (stopping.signal.aborted) stop();
    const tooLong = setTimeout(
      () => end.abort(new Error(`it took longer than ${config.timeLimitMs / 1000} s`)),
      config.timeLimitMs,
    );
    let progress = 0;
    const touch = setInterval(() => {
      simulations.touch(id, processId, progress).then(
        (mine) => mine || end.abort(new Taken()),
        (error) => log.warn({ err: error, simulation: id }, 'could not record the progress of a simulation'),
      );
    }, config.touchEveryMs);
    try {
      const task = await simulations.task(claim);
      const onProgress = (now: number) => {
        progress = Math.min(1, now);
      };
      const result = await simulate(task, { onProgress, signal: end.signal });
      await simulations.done(id, processId, result);
      log.info({ simulation: id, ms: Math.round(performance.now() - startedMs) }, 'simulation done');
    } catch (error) {
      if (error instanceof Stopped) await simulations.release(id, processId);
      else if (!(error instanceof Taken)) {
        log.warn({ err: error, simulation: id }, 'simulation failed');
        await simulations.failed(id, processId, error instanceof Error ? error.message : String(error));
      }
    } finally {
      clearTimeout(tooLong);
      clearInterval(touch);
      stopping.signal.removeEventListener('abort', stop);
    }
  }

  return {
    start() {
      worker = openQueueWorker({
        connection: queueConnection,
        queue: 'simulations',
        concurrency: 1,
        log,
        perform,
        ...(parts.reach && { reach: parts.reach }),
      });
      const tick = () => {
        sweeping ??= sweep().finally(() => {
          sweeping = null;
        });
      };
      tick();
      timer = setInterval(tick, config.sweepEveryMs);
    },

    async stop() {
      stopping.abort();
      if (timer !== null) clearInterval(timer);
      await Promise.all([worker?.close(), sweeping]);
      await closeSender();
    },
  };
}

const ANSWER_TIMEOUT_MS = 3_000;

/** The queue's promises may stay open for as long as it is away. */
function inTime<T>(work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new Error(`no response from the queue within ${ANSWER_TIMEOUT_MS} ms`));
    const timer = setTimeout(late, ANSWER_TIMEOUT_MS);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
