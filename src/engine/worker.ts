/** Keeps a receiver at the queue, and opens it anew when it ended by itself: the queue was not there when it began. */
import { type Env, pause, REAL_ENV } from '../platform/env.js';
import type { EngineLog } from './ports.js';
import { type CycleQueue, openReceiver, type Queues, type Receiver } from './queue.js';

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
  env?: Env;
}): QueueWorker {
  const { connection, queue, concurrency, log, perform, env = REAL_ENV } = options;
  const closing = new AbortController();
  const aborted = new Promise((resolve) => closing.signal.addEventListener('abort', resolve, { once: true }));
  let receiver = open();

  function open(): Receiver {
    return openReceiver(connection, queue, concurrency, perform, (error) =>
      log.warn({ err: error }, `the worker cannot reach the queue of ${queue}`),
    );
  }

  async function stay(): Promise<void> {
    while (!closing.signal.aborted) {
      const run = receiver
        .run()
        .catch((error) => log.warn({ err: error }, `the worker lost the queue of ${queue}`));
      // A run that is cut off may never end.
      await Promise.race([run, aborted]);
      if (closing.signal.aborted) return;
      await close(receiver);
      await pause(env, RETRY_MS, closing.signal);
      if (!closing.signal.aborted) receiver = open();
    }
  }

  async function close(old: Receiver): Promise<void> {
    await old.close().catch((error) => log.warn({ err: error }, `the queue of ${queue} did not close well`));
  }

  const staying = stay();
  return {
    async close() {
      closing.abort();
      await close(receiver);
      await staying;
    },
  };
}
