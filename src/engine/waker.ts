/**
 * Wake-ups of one process, on their way to the queue: few, and none forgotten while the process lives.
 *
 * Schedulers woken while a message is under way are noted, each once, and go together in the next one: a thousand
 * submissions a second make some hundred messages at the most. While the queue cannot be reached they stay noted (the set
 * is bounded by the number of sites) and the connection is opened anew before each further attempt.
 */
import type { Scheduler } from '../core/index.js';
import { type Env, REAL_ENV } from '../platform/env.js';
import type { EngineLog, EngineMetrics, Wake } from './ports.js';
import { type CycleQueue, openSender, type Sender } from './queue.js';

/** Pause after a message: what is woken within it goes together. */
const GAP_MS = 5;
/** Pause after a failure, doubled from one to the next. */
const RETRY_MS = { first: 100, most: 2_000 };
/** An answer that takes longer is a failure. */
const ANSWER_TIMEOUT_MS = 3_000;

export interface Waker {
  readonly wake: Wake;
  /** As `wake`, after a while. Dropped when the waker closes first. */
  wakeLater(schedulers: readonly Scheduler[], delayMs: number): void;
  /** Resolves when everything woken until now is in the queue, or given up by `close`. */
  flushed(): Promise<void>;
  /** Makes sure of the sweep that repeats itself. Rejects when the queue cannot be reached. */
  repeatSweep(everyMs: number): Promise<void>;
  /** Wake-ups in the queue, by state. Rejects when it cannot be reached. */
  depth(): Promise<Record<'waiting' | 'active' | 'delayed', number>>;
  /** Sends what is noted, if the queue takes it at once, and lets go of the connection. */
  close(): Promise<void>;
}

/** Opens the sending side. Does not wait for the queue to be reachable. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: its short functions share its state
export function openWaker(options: {
  connection: CycleQueue;
  log: EngineLog;
  metrics: Pick<EngineMetrics, 'wakeFailures'>;
  /** Told of every error of the queue. */
  onTrouble?: () => void;
  env?: Env;
}): Waker {
  const { connection, log, metrics, onTrouble = () => {}, env = REAL_ENV } = options;
  const noted = new Set<Scheduler>();
  const timers = new Set<() => void>();
  let sender: Sender = open();
  let sending: Promise<void> | null = null;
  let closing = false;
  let hurry = () => {};

  function open(): Sender {
    return openSender(connection, (error) =>
      log.warn({ err: error }, 'the queue of cycles cannot be reached'),
    );
  }

  /** After a failure the next attempt gets a connection of its own: BullMQ remembers a bad beginning for ever. */
  async function attempt<T>(work: (sender: Sender) => Promise<T>): Promise<T> {
    const used = sender;
    try {
      return await inTime(env, work(used));
    } catch (error) {
      onTrouble();
      if (sender === used && !closing) {
        sender = open();
        used
          .close()
          .catch((late) => log.debug({ err: late }, 'a lost connection to the queue did not close cleanly'));
      }
      throw error;
    }
  }

  /** Ends early when the waker closes. */
  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = env.after(ms, resolve);
      hurry = () => {
        cancel();
        resolve();
      };
    });
  }

  async function send(): Promise<void> {
    let retryMs = RETRY_MS.first;
    while (noted.size > 0) {
      const batch = [...noted];
      noted.clear();
      try {
        await attempt((to) => to.send(batch));
        retryMs = RETRY_MS.first;
        if (!closing) await pause(GAP_MS);
      } catch (error) {
        metrics.wakeFailures.inc();
        if (closing) return;
        log.warn(
          { err: error, schedulers: batch.length, retryMs },
          'wake-ups could not be queued; trying again',
        );
        for (const scheduler of batch) noted.add(scheduler);
        await pause(retryMs);
        if (closing) return;
        retryMs = Math.min(retryMs * 2, RETRY_MS.most);
      }
    }
  }

  const wake: Wake = (schedulers) => {
    if (closing) return Promise.resolve();
    for (const scheduler of schedulers) noted.add(scheduler);
    // From the next turn on, so that everything woken in this one goes together.
    sending ??= new Promise<void>((resolve) => env.soon(resolve)).then(send).finally(() => {
      sending = null;
      if (noted.size > 0) void wake([]);
    });
    return Promise.resolve();
  };

  return {
    wake,
    wakeLater(schedulers, delayMs) {
      if (closing) return;
      const cancel = env.after(delayMs, () => {
        timers.delete(cancel);
        void wake(schedulers);
      });
      timers.add(cancel);
    },
    async flushed() {
      while (sending !== null) await sending;
    },
    repeatSweep: (everyMs) => attempt((to) => to.repeatSweep(everyMs)),
    depth: () => attempt((to) => to.depth()),
    async close() {
      closing = true;
      for (const cancel of timers) cancel();
      hurry();
      await sending;
      await inTime(env, sender.close()).catch((error) =>
        log.warn({ err: error }, 'the queue of cycles did not close cleanly'),
      );
    },
  };
}

/** The queue's promises may stay open for as long as it is away. */
function inTime<T>(env: Env, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () =>
      reject(new Error(`no response from the queue of cycles within ${ANSWER_TIMEOUT_MS} ms`));
    const cancel = env.after(ANSWER_TIMEOUT_MS, late);
    work.then(resolve, reject).finally(cancel);
  });
}
