/**
 * The engine of one process: takes wake-ups from the queue and runs the cycles they ask for. As many processes as wanted
 * may run one; BullMQ hands each scheduler's cycle to one of them at a time.
 *
 * Life: made → started → stopped, each once.
 */
import { Agenda, ROOT, type Scheduler, waiting } from '../core/index.js';
import { type Env, REAL_ENV } from '../platform/env.js';
import type { Store } from '../store/store.js';
import { Alarms } from './alarms.js';
import { Cycle, type CycleLimits, type CycleTools, DEFAULT_CYCLE_LIMITS } from './cycle.js';
import { runDispatch } from './dispatch.js';
import { Follower, type Following, type News } from './follower.js';
import { needsFollowing } from './needs.js';
import { Patrol } from './patrol.js';
import {
  ALWAYS_REACHED,
  type CycleKind,
  type EngineLog,
  type EngineMetrics,
  type GridMirror,
  type Reachable,
  SCHEDULER_LABEL,
  type Wake,
} from './ports.js';
import { type CycleQueue, type CycleTask, LEASE_MS } from './queue.js';
import { runSite } from './site.js';
import { Sweeper, type SweepSettings } from './sweep.js';
import { openWaker, type Waker } from './waker.js';
import { openQueueWorker, type QueueWorker } from './worker.js';

export interface EngineConfig extends SweepSettings {
  /** Cycles at once in this process: they wait for Postgres most of the time. */
  concurrency: number;
  sweepEveryMs: number;
  /** How often a process says that it lives and looks whether the queue does. */
  presenceEveryMs: number;
  limits: CycleLimits;
}

export const DEFAULT_ENGINE_CONFIG: EngineConfig = {
  concurrency: 16,
  sweepEveryMs: 2_000,
  presenceEveryMs: 5_000,
  limits: DEFAULT_CYCLE_LIMITS,
  runTimeGraceS: 30,
  eventRetentionDays: 7,
  jobRetentionDays: 90,
  auditRetentionDays: 400,
  limit: 1_000,
};

/** Pause before a cycle that failed is tried again, ms: Postgres may be on its way back. */
const FAILED_PAUSE_MS = 1_000;
/**
 * What the queue gave out is held back from others for so long at the most: a worker whose cycle hangs, but that still reaches the queue,
 * keeps nobody's wake-up. The cycle itself goes on; should it come to a plan, it is refused what no longer fits.
 */
const HELD_MS = 8_000;
const PATROL = { everyMs: 5_000, hurriedMs: 1_000, troubleMs: 10_000 };

export interface Engine {
  /** Begins to take wake-ups. Does not wait for the queue: it comes when it comes. */
  start(): Promise<void>;
  /** Finishes the cycles in hand, then lets go of the queue. The store and the mirror stay the caller's. */
  stop(): Promise<void>;
  readonly wake: Wake;
}

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: its short functions share its state
export function createEngine(parts: {
  store: Store;
  mirror: GridMirror;
  queueConnection: CycleQueue;
  log: EngineLog;
  metrics: EngineMetrics;
  config?: Partial<EngineConfig>;
  /** The time by which the service goes, epoch seconds: the database's (store/clock.ts). This machine's if there is none. */
  now?: () => number;
  reach?: Reachable;
  env?: Env;
  /** Tells of commits with events; without it they are looked for every second. */
  news?: News;
  /** What else is done behind the events. */
  followings?: readonly Following[];
}): Engine {
  const { store, mirror, queueConnection, log, metrics, reach = ALWAYS_REACHED, env = REAL_ENV } = parts;
  const { now = () => env.nowMs() / 1000 } = parts;
  const config = { ...DEFAULT_ENGINE_CONFIG, ...parts.config };
  const processId = Math.floor(env.random() * 2 ** 32)
    .toString(16)
    .padStart(8, '0');
  const onTrouble = (): void => patrol.trouble();
  const waker = openWaker({ connection: queueConnection, log, metrics, onTrouble, env });
  const alarms = new Alarms((siteId) => waker.wake([siteId]), now, env);
  const tools = cycleTools({
    store,
    mirror,
    log,
    metrics,
    limits: config.limits,
    waker,
    alarms,
    processId,
    now,
  });
  const sweeper = new Sweeper(tools, config);
  const needs = needsFollowing({ store, wake: waker.wake, log, now });
  const followers = [needs, ...(parts.followings ?? [])].map(
    (following) =>
      new Follower(following, { store, holder: processId, log, metrics, reach, env, now, news: parts.news }),
  );
  const agenda = new Agenda();
  const patrol = new Patrol(mirror, perform, reach, env, PATROL);

  let life: 'made' | 'started' | 'stopped' = 'made';
  const stopped = (): boolean => life === 'stopped';
  let worker: QueueWorker | null = null;
  let cancelPresence = (): void => {};
  let present: Promise<void> | null = null;

  /** Answers whether the cycle came to its end. */
  async function perform(task: CycleTask, waitedMs?: number): Promise<boolean> {
    // Nobody asks for the sweep: it repeats itself.
    if (task.kind !== 'sweep' && waitedMs !== undefined)
      metrics.wakeSeconds.observe({ scheduler: SCHEDULER_LABEL[task.kind] }, waitedMs / 1000);
    const cycle = new Cycle(task.kind, tools, task.kind === 'site' ? { siteId: task.siteId } : {});
    const scheduler = schedulerOfTask(task);
    try {
      if (scheduler !== null) patrol.looks(scheduler);
      if (task.kind === 'dispatch') await runDispatch(cycle, tools, agenda);
      else if (task.kind === 'site') await runSite(cycle, tools, task.siteId, agenda);
      else await sweeper.run(cycle);
      cycle.done();
      return true;
    } catch (error) {
      // Not left to BullMQ: a failed task would be a record to keep, and its retries know nothing of newer wake-ups.
      cycle.failed(error);
      if (scheduler !== null) tools.wakeLater([scheduler], FAILED_PAUSE_MS);
      return false;
    }
  }

  /** As the queue asks for it. */
  function serve(task: CycleTask, waitedMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = env.after(HELD_MS, resolve);
      void perform(task, waitedMs).then(() => {
        cancel();
        resolve();
      });
    });
  }

  /** Says that this process lives, and makes sure that the sweep is in the queue: Redis may have been emptied. */
  async function showPresence(): Promise<void> {
    await store
      .processSeen(processId, 'worker', tools.now())
      .catch((error) => log.warn({ err: error }, 'this process could not record that it is alive'));
    try {
      await waker.repeatSweep(config.sweepEveryMs);
      const depth = await waker.depth();
      for (const [state, count] of Object.entries(depth)) {
        metrics.queueDepth.set({ queue: 'cycles', state }, count);
      }
    } catch (error) {
      log.warn({ err: error }, 'the queue of cycles cannot be reached; continuing without it, more slowly');
    }
  }

  return {
    wake: waker.wake,

    async start() {
      if (life !== 'made') throw new Error(`the engine was already ${life}; it can be started only once`);
      // Should it fail, it may be tried again.
      await mirror.sync();
      if (stopped()) return;
      life = 'started';
      worker = openQueueWorker({
        connection: queueConnection,
        queue: 'cycles',
        concurrency: config.concurrency,
        log,
        perform: serve,
        onTrouble,
        reach,
        env,
      });
      const show = () => {
        cancelPresence = env.after(config.presenceEveryMs, show);
        present ??= showPresence().finally(() => {
          present = null;
        });
      };
      show();
      // Wake-ups that were in hand when their worker was killed hold back later ones of the same scheduler until the lease runs out. A process
      // that starts does not wait for that.
      patrol.trouble(LEASE_MS);
      patrol.start();
      for (const follower of followers) follower.start();
      // Whatever was waiting when the last process went.
      await waker.wake(waiting(mirror.grid));
      log.info({ engine: processId, queue: queueConnection.kind }, 'engine started');
    },

    async stop() {
      if (stopped()) return;
      life = 'stopped';
      cancelPresence();
      await Promise.all([
        worker?.close(),
        present,
        patrol.stop(),
        ...followers.map((follower) => follower.stop()),
      ]);
      alarms.close();
      await waker.close();
      log.info({ engine: processId }, 'engine stopped');
    },
  };
}

function cycleTools(parts: {
  store: Store;
  mirror: GridMirror;
  log: EngineLog;
  metrics: EngineMetrics;
  limits: CycleLimits;
  waker: Waker;
  alarms: Alarms;
  processId: string;
  now: () => number;
}): CycleTools {
  const { waker, alarms, processId, ...rest } = parts;
  let named = 0;
  return {
    ...rest,
    wake: waker.wake,
    wakeLater: waker.wakeLater,
    wakeAt: (siteId, at) => alarms.set(siteId, at),
    nameCycle: (kind: CycleKind) => `${kind}-${processId}-${++named}`,
  };
}

const schedulerOfTask = (task: CycleTask): Scheduler | null =>
  task.kind === 'dispatch' ? ROOT : task.kind === 'site' ? task.siteId : null;
