import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Lifecycle, type Part, runUntilSignal, SAME_SIGNAL_MS } from '../../src/platform/lifecycle.js';

/** Parts that write down what happens to them. */
function recorder() {
  const told: string[] = [];
  const part = (name: string, more: Partial<Part> = {}): Part => ({
    name,
    async start() {
      await more.start?.();
      told.push(`+${name}`);
    },
    async stop() {
      told.push(`-${name}`);
      await more.stop?.();
    },
  });
  return { told, part };
}

test('starts in order, stops in the opposite order, once', async () => {
  const { told, part } = recorder();
  const lifecycle = new Lifecycle([part('a'), part('b'), part('c')], 1_000);
  await lifecycle.start();
  expect(lifecycle.phase).toEqual({ is: 'running' });
  await Promise.all([lifecycle.stop('enough'), lifecycle.stop('again')]);
  expect(told).toEqual(['+a', '+b', '+c', '-c', '-b', '-a']);
  expect(lifecycle.phase).toEqual({ is: 'stopped', reason: 'enough', failures: [] });
});

test('a start that fails stops what had been started, and is thrown', async () => {
  const { told, part } = recorder();
  const bad = part('b', {
    start: () => {
      throw new Error('no port');
    },
  });
  const lifecycle = new Lifecycle([part('a'), bad, part('c')], 1_000);
  await expect(lifecycle.start()).rejects.toThrow('no port');
  expect(told).toEqual(['+a', '-a']);
});

test('stopped while starting: the part on its way up comes up and is stopped too', async () => {
  const { told, part } = recorder();
  let letUp = () => {};
  const slow = part('b', {
    start: () =>
      new Promise((done) => {
        letUp = done;
      }),
  });
  const lifecycle = new Lifecycle([part('a'), slow, part('c')], 10_000);
  const started = lifecycle.start().catch((error: Error) => error.message);
  await expect.poll(() => lifecycle.phase).toEqual({ is: 'starting', part: 'b' });
  const stopped = lifecycle.stop('enough');
  letUp();
  expect(await stopped).toEqual([]);
  expect(await started).toBe('stopped while starting');
  expect(told).toEqual(['+a', '+b', '-b', '-a']);
});

test('a part that does not stop, or fails to, does not keep the others from stopping', async () => {
  const { told, part } = recorder();
  const stuck = part('stuck', { stop: () => new Promise(() => {}) });
  const broken = part('broken', {
    stop: () => {
      throw new Error('oops');
    },
  });
  const lifecycle = new Lifecycle([part('a'), stuck, broken], 50);
  await lifecycle.start();
  const failures = await lifecycle.stop('enough');
  expect(failures.map(({ part, error }) => `${part}: ${error.message}`)).toEqual([
    'broken: oops',
    'stuck: not stopped in time',
  ]);
  expect(told.slice(3)).toEqual(['-broken', '-stuck', '-a']);
});

test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
  'runs until %s; the exit code tells how it went',
  async (signal) => {
    const { told, part } = recorder();
    const lifecycle = new Lifecycle([part('a')], 1_000);
    const code = runUntilSignal(lifecycle);
    await expect.poll(() => lifecycle.phase.is).toBe('running');
    process.emit(signal, signal);
    expect(await code).toBe(0);
    expect(told).toEqual(['+a', '-a']);
  },
);

test('a second signal gives up waiting', async () => {
  const { part } = recorder();
  const lifecycle = new Lifecycle([part('a', { stop: () => new Promise(() => {}) })], 60_000);
  const code = runUntilSignal(lifecycle);
  await expect.poll(() => lifecycle.phase.is).toBe('running');
  process.emit('SIGINT', 'SIGINT');
  // The same Ctrl-C again, as npm passes it on.
  process.emit('SIGINT', 'SIGINT');
  await sleep(SAME_SIGNAL_MS + 50);
  expect(lifecycle.phase.is).toBe('stopping');
  process.emit('SIGINT', 'SIGINT');
  expect(await code).toBe(130);
});
