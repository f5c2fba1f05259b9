/**
 * Keeps a receiver at the queue while this process reaches Postgres. After an error it opens another one: BullMQ does not always get over
 * what went wrong, and where it does (a Redis that is full) it tries again without a pause.
 */
import { type Env, pause, REAL_ENV } from '../platform/env.js';
import { ALWAYS_REACHED, type EngineLog, type Reachable } from './ports.js';
import { type CycleQueue, openReceiver, type Queues } from './queue.js';

const RETRY_MS = 1_000;

export interface QueueWorker {
  /** Takes no more tasks; resolves when those in hand are finished. */
  close(): Promise<void>;
}

/** Runs `perform` for tasks of the queue, up to `concurrency` at once, until closed. `perform` must not throw. */
export function openQueueWorker<N extends keyof Queues>(options: {
  connection: CycleQueue;
  queue: N;
  concurrency: number;
  log: EngineLog;
  /** `waitedMs`: since the task was asked for. */
  perform: (task: Queues[N], waitedMs: number) => Promise<void>;
  /** Told of every error of the queue. */
  onTrouble?: () => void;
  reach?: Reachable;
  env?: Env;
}): QueueWorker {
  const { connection, queue, concurrency, log, perform, reach = ALWAYS_REACHED, env = REAL_ENV } = options;
  const closing = new AbortController();

  async function stay(): Promise<void> {
    for (;;) {
      await reach.when('reached', closing.signal);
      if (closing.signal.aborted) return;
      await receiveOnce();
      await pause(env, RETRY_MS, closing.signal);
    }
  }

  /** Until the first error, or until Postgres is away: then others should get what comes. */
  async function receiveOnce(): Promise<void> {
    const over = new AbortController();
    const end = (): void => over.abort();
    const fail = (error: unknown): void => {
      log.warn({ err: error }, `the worker cannot reach the queue of ${queue}`);
      options.onTrouble?.();
      end();
    };
    closing.signal.addEventListener('abort', end);
    const receiver = openReceiver(connection, queue, concurrency, perform, fail);
    // A run that is cut off may never end.
    receiver.run().then(end, fail);
    await reach.when('away', over.signal);
    closing.signal.removeEventListener('abort', end);
    await receiver
      .close()
      .catch((error) => log.warn({ err: error }, `the queue of ${queue} did not close cleanly`));
  }

  const staying = stay();
  return {
    async close() {
      closing.abort();
      await staying;
    },
  };
}
