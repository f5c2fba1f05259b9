/**
 * The queue of wake-ups on BullMQ, and the only place that knows BullMQ: on Redis, or on the Postgres that is there anyway.
 *
 * A wake-up says no more than "look again": it carries no job and no order, so losing one loses nothing but time. BullMQ's
 * deduplication by scheduler with `keepLastIfActive` keeps at most one cycle of a scheduler running and one waiting,
 * however many ask.
 *
 * Both sides here are bare: they fail when the backend does, for good if it failed while they connected (BullMQ remembers
 * that). waker.ts and worker.ts open them anew.
 *
 * Measured on these options, from `send` to the receiver, idle: 1.4 ms on Redis, 4 ms on Postgres (which listens, and
 * does not poll).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  createPostgresBackend,
  Queue,
  type QueueOptions,
  Worker,
  type WorkerOptions,
  withBackend,
} from 'bullmq';
import { Redis, type RedisOptions } from 'ioredis';
import { ROOT, type Scheduler } from '../core/index.js';
import { Connection, limitsOfConnection } from '../store/connection.js';

/** Where the queue lives. */
export type QueueConnection = { kind: 'redis'; url: string } | { kind: 'postgres'; url: string };

/** A queue of wake-ups that is not BullMQ's: tests bring one that loses, doubles and delays them. */
export interface OwnQueue {
  kind: 'own';
  openSender(onError: (error: Error) => void): Sender;
  openReceiver(perform: (task: CycleTask, waitedMs: number) => Promise<void>): Receiver;
}

export type CycleQueue = QueueConnection | OwnQueue;

/** What a worker is asked to do. */
export type CycleTask = { kind: 'dispatch' } | { kind: 'site'; siteId: number } | { kind: 'sweep' };

/** A what-if to compute (simulations.ts). Few and long: in a queue of their own, so that no cycle waits behind one. */
export interface SimulationRequest {
  id: number;
}

/** By name: what they carry. */
export interface Queues {
  cycles: CycleTask;
  simulations: SimulationRequest;
}

/** Of the keys in Redis. Installations that share a Redis take a database of their own each (`redis://host:port/1`). */
const PREFIX = 'switchyard';
/** BullMQ's tables, which it makes itself, under an advisory lock. */
const SCHEMA = 'bullmq';
const CONNECT_TIMEOUT_MS = 3_000;
const STATEMENT_TIMEOUT_MS = 30_000;
/**
 * How long a cycle remains a dead worker's: until then nobody else runs its scheduler. It is renewed every half of it, so
 * only a thread that stands still for longer loses it; cycle.ts says why none does.
 */
const LOCK_MS = 3_000;
const STALLED_CHECK_MS = 1_000;
/** After the last worker has died, its cycles may remain its own for so long: two checks find them. */
export const LEASE_MS = LOCK_MS + 2 * STALLED_CHECK_MS;

const SENDER = {
  prefix: PREFIX,
  // BullMQ's own stream of events is read by nobody here.
  streams: { events: { maxLen: 100 } },
} satisfies Partial<QueueOptions>;

const RECEIVER = {
  prefix: PREFIX,
  autorun: false,
  lockDuration: LOCK_MS,
  stalledInterval: STALLED_CHECK_MS,
  // That a worker was killed is not the task's fault.
  maxStalledCount: 1_000_000,
  // After a lost connection: the default of 15 s would be our longest stop.
  runRetryDelay: 1_000,
} satisfies Partial<WorkerOptions>;

/** A worker's commands wait until the connection is back, as BullMQ wants it. */
const KEEP_TRYING: RedisOptions = {
  maxRetriesPerRequest: null,
  retryStrategy: (attempt) => Math.min(attempt * 50, 1_000),
};
/** A sender's fail at once, and with them the sender: its user opens another. */
const GIVE_UP: RedisOptions = { maxRetriesPerRequest: 0, retryStrategy: () => null };
/** How long a closing worker waits for the queue when its tasks are done. */
const CLOSE_TIMEOUT_MS = 2_000;

/**
 * Nothing is kept of a task that is over, however it ended: should Postgres, after a crash, give its id again, the new task would not
 * be stored beside it, but its key would, and hold back all later wake-ups. A key without a task BullMQ forgets by itself.
 */
const TASK = { attempts: 1, removeOnComplete: true, removeOnFail: true };

const onPostgres = withBackend(createPostgresBackend);

/** The sending side. Its calls reject, or stay without an answer, while the queue cannot be reached. */
export interface Sender {
  send(schedulers: readonly Scheduler[]): Promise<void>;
  /** Makes sure of the one sweep that repeats itself. */
  repeatSweep(everyMs: number): Promise<void>;
  /** Wake-ups in the queue, by state. */
  depth(): Promise<Record<'waiting' | 'active' | 'delayed', number>>;
  /** Lets go of the connection at once; calls under way are cut off. */
  close(): Promise<void>;
}

export function openSender(connection: CycleQueue, onError: (error: Error) => void): Sender {
  if (connection.kind === 'own') return connection.openSender(onError);
  const { queue, disconnect } = openQueue(connection, 'cycles');
  queue.on('error', onError);
  return {
    async send(schedulers) {
      await queue.addBulk(schedulers.map(taskFor));
    },
    async repeatSweep(everyMs) {
      const task: CycleTask = { kind: 'sweep' };
      await queue.upsertJobScheduler(
        'sweep',
        { every: everyMs },
        { name: task.kind, data: task, opts: TASK },
      );
    },
    async depth() {
      const {
        waiting = 0,
        active = 0,
        delayed = 0,
      } = await queue.getJobCounts('waiting', 'active', 'delayed');
      return { waiting, active, delayed };
    },
    async close() {
      disconnect();
      await queue.close();
    },
  };
}

/**
 * The sending side for simulations. One that is in the queue, or in hand, is not put there again for the same attempt: a worker
 * that is silent may still have it in hand when it is due again.
 */
export interface SimulationSender {
  send(due: readonly { id: number; attempts: number }[]): Promise<void>;
  /** Lets go of the connection at once; calls under way are cut off. */
  close(): Promise<void>;
}

export function openSimulationSender(
  connection: QueueConnection,
  onError: (error: Error) => void,
): SimulationSender {
  const { queue, disconnect } = openQueue(connection, 'simulations');
  queue.on('error', onError);
  return {
    async send(due) {
      await queue.addBulk(
        due.map(({ id, attempts }) => ({
          name: 'simulation',
          data: { id },
          opts: { ...TASK, deduplication: { id: `simulation-${id}-${attempts}` } },
        })),
      );
    },
    async close() {
      disconnect();
      await queue.close();
    },
  };
}

/** The receiving side. */
export interface Receiver {
  /** Runs tasks until closed. Rejects when the queue cannot be reached at first; later losses it survives by itself. */
  run(): Promise<void>;
  /** Takes no more tasks; resolves when those in hand are finished. */
  close(): Promise<void>;
}

/** `perform` is told how long ago the task was asked for, ms. */
export function openReceiver<N extends keyof Queues>(
  connection: CycleQueue,
  name: N,
  concurrency: number,
  perform: (task: Queues[N], waitedMs: number) => Promise<void>,
  onError: (error: Error) => void,
): Receiver {
  if (connection.kind === 'own')
    return connection.openReceiver((task, waitedMs) => perform(task as Queues[N], waitedMs));
  const inHand = new Set<Promise<void>>();
  const process = async (job: { data: Queues[N]; timestamp: number; delay: number }) => {
    const task = perform(job.data, Math.max(0, Date.now() - job.timestamp - job.delay));
    inHand.add(task);
    await task.finally(() => inHand.delete(task));
  };
  const options = { ...RECEIVER, concurrency };
  const { worker, disconnect } =
    connection.kind === 'postgres'
      ? {
          // The classes of both backends have the methods that are called here; only their private parts differ.
          worker: new onPostgres.Worker<Queues[N]>(name, process, {
            ...options,
            connection: postgres(connection.url, 4),
          }) as unknown as Worker<Queues[N]>,
          disconnect() {},
        }
      : onRedis(connection.url, KEEP_TRYING, (client) => ({
          worker: new Worker<Queues[N]>(name, process, { ...options, connection: client }),
        }));
  // Without a listener the first lost connection would end the process.
  worker.on('error', onError);
  return {
    async run() {
      await worker.waitUntilReady();
      await worker.run();
    },
    async close() {
      // BullMQ wants to tell the queue that the tasks are done, and waits for it for ever when it is away.
      const closed = worker.close();
      const left = Promise.allSettled(inHand).then(() => sleep(CLOSE_TIMEOUT_MS, undefined, { ref: false }));
      await Promise.race([closed, left]);
      disconnect();
      closed.catch(() => {});
    },
  };
}

function taskFor(scheduler: Scheduler) {
  const task: CycleTask = scheduler === ROOT ? { kind: 'dispatch' } : { kind: 'site', siteId: scheduler };
  const id = scheduler === ROOT ? ROOT : `site-${scheduler}`;
  return { name: task.kind, data: task, opts: { ...TASK, deduplication: { id, keepLastIfActive: true } } };
}

function openQueue<N extends keyof Queues>(
  connection: QueueConnection,
  name: N,
): { queue: Queue<Queues[N]>; disconnect(): void } {
  if (connection.kind === 'redis') {
    return onRedis(connection.url, GIVE_UP, (client) => ({
      queue: new Queue<Queues[N]>(name, { ...SENDER, connection: client }),
    }));
  }
  const queue = new onPostgres.Queue<Queues[N]>(name, {
    ...SENDER,
    connection: postgres(connection.url, 2),
  });
  // As for the worker above.
  return { queue: queue as unknown as Queue<Queues[N]>, disconnect() {} };
}

function onRedis<T extends object>(
  url: string,
  options: RedisOptions,
  open: (client: Redis) => T,
): T & { disconnect(): void } {
  const client = new Redis(url, { ...options, connectTimeout: CONNECT_TIMEOUT_MS });
  return { ...open(client), disconnect: () => client.disconnect() };
}

function postgres(url: string, max: number) {
  return {
    connectionString: url,
    schema: SCHEMA,
    migrate: true,
    max,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: 'switchyard-queue',
    Client: Connection,
    ...limitsOfConnection({ statementTimeoutMs: STATEMENT_TIMEOUT_MS }),
  };
}
