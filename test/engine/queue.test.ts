/** Wake-ups over both backends of the queue: few, never lost while the process lives, one cycle of a scheduler at a time. */
import { Redis } from 'ioredis';
import { afterEach, describe, expect, test } from 'vitest';
import { ROOT } from '../../src/core/scheduler.js';
import type { CycleTask, QueueConnection } from '../../src/engine/queue.js';
import { openWaker } from '../../src/engine/waker.js';
import { openQueueWorker } from '../../src/engine/worker.js';
import { createMetrics } from '../../src/platform/metrics.js';
import { withDatabase } from '../support/database.js';
import { describeWithRedis } from '../support/redis.js';
import { quietLog, until } from './support.js';

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

describe('on Postgres', () => {
  const database = withDatabase();
  suite(() => ({ kind: 'postgres', url: database.url }));

  test('an id that comes again, as after a crash of Postgres, holds nothing back', async () => {
    let fails = true;
    const { waker, performed } = open({ kind: 'postgres', url: database.url }, async () => {
      if (fails) throw new Error('as BullMQ fails a task that it cannot complete');
    });
    for (let time = 1; time < 5; time++) {
      await waker.wake([ROOT]);
      await until('it runs', () => performed.length === time);
      await until('it is over', async () => (await waker.depth()).active === 0);
      if (!fails) continue;
      fails = false;
      await database.pool.query(`
        DO $$ BEGIN EXECUTE format('ALTER SEQUENCE bullmq.%I RESTART', 'bullmq_jid_' || md5('cycles')); END $$`);
    }
  });
});

describeWithRedis('on Redis', (redis) => {
  suite(() => ({ kind: 'redis', url: redis().url }));

  test('wake-ups wait in the process while Redis is away, and arrive when it is back', async () => {
    const { waker, performed, failures } = open({ kind: 'redis', url: redis().url });
    await redis().kill();
    await waker.wake([ROOT, 3]);
    await until('a failed wake-up is counted', async () => (await failures()) > 0);
    await redis().restart();
    await until('both arrive', () => performed.length >= 2);
    expect(names(performed)).toEqual(['dispatch', 'site 3']);
  });

  test('the sweep comes back after Redis was emptied', async () => {
    const { waker, performed } = open({ kind: 'redis', url: redis().url });
    await waker.repeatSweep(50);
    await until('it repeats', () => performed.filter(({ kind }) => kind === 'sweep').length >= 3);
    const client = new Redis(redis().url);
    await client.flushall();
    client.disconnect();
    await waker.repeatSweep(50);
    const before = performed.length;
    await until('it repeats again', () => performed.length >= before + 3);
  });
});

function suite(connection: () => QueueConnection): void {
  test('a thousand wake-ups in one turn are one cycle for each scheduler', async () => {
    const { waker, performed } = open(connection());
    for (let i = 0; i < 1000; i++) void waker.wake([ROOT, i % 5]);
    await waker.flushed();
    await until('all have run', () => performed.length >= 6);
    expect(names(performed)).toEqual(['dispatch', 'site 0', 'site 1', 'site 2', 'site 3', 'site 4']);
  });

  test('a scheduler woken during its cycle has one more, and never two at once', async () => {
    const queue = connection();
    let running = 0;
    let most = 0;
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const perform = async () => {
      running++;
      most = Math.max(most, running);
      await held;
      running--;
    };
    const { waker, performed } = open(queue, perform);
    open(queue, perform, performed);
    await waker.wake([7]);
    await until('the first runs', () => performed.length === 1);
    for (let i = 0; i < 20; i++) {
      await waker.wake([7]);
      await waker.flushed();
    }
    release();
    await until('the second runs', () => performed.length === 2 && running === 0);
    // Whatever was still to come would come before this one.
    await waker.wake([8]);
    await until('the last runs', () => performed.length === 3);
    expect(names(performed)).toEqual(['site 7', 'site 7', 'site 8']);
    expect(most).toBe(1);
  });

  test('closing the worker lets the task in hand end', async () => {
    let ended = false;
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { waker, worker, performed } = open(connection(), async () => {
      await held;
      ended = true;
    });
    await waker.wake([ROOT]);
    await until('it runs', () => performed.length === 1);
    const closed = worker.close();
    expect(ended).toBe(false);
    release();
    await closed;
    expect(ended).toBe(true);
  });

  test('the queue keeps nothing of what is done', async () => {
    const { waker, performed } = open(connection());
    await waker.wake([1, 2, 3]);
    await until('all have run', () => performed.length === 3);
    await until('nothing is left', async () => {
      const depth = await waker.depth();
      return depth.waiting + depth.active + depth.delayed === 0;
    });
  });
}

function open(connection: QueueConnection, perform = async () => {}, performed: CycleTask[] = []) {
  const metrics = createMetrics();
  const waker = openWaker({ connection, log: quietLog, metrics });
  const worker = openQueueWorker({
    queue: 'cycles',
    connection,
    concurrency: 4,
    log: quietLog,
    perform: async (task) => {
      performed.push(task);
      await perform();
    },
  });
  cleanups.push(
    () => waker.close(),
    () => worker.close(),
  );
  const failures = async () => (await metrics.wakeFailures.get()).values[0]?.value ?? 0;
  return { waker, worker, performed, failures };
}

const names = (tasks: readonly CycleTask[]): string[] =>
  tasks.map((task) => (task.kind === 'site' ? `site ${task.siteId}` : task.kind)).sort();
