import { expect, test } from 'vitest';
import { createMetrics, watchPool } from '../../src/platform/metrics.js';

test('every metric is exposed with its help', async () => {
  const metrics = createMetrics();
  metrics.cycleSeconds.observe({ scheduler: 'root', phase: 'total' }, 0.02);
  metrics.decisions.inc({ kind: 'move', reason: 'LEAST_LOAD' }, 3);
  metrics.jobs.set({ state: 'QUEUED' }, 12);
  const { body, contentType } = await metrics.expose();
  expect(contentType).toMatch(/^text\/plain/);
  expect(body).toContain('switchyard_decisions_total{kind="move",reason="LEAST_LOAD"} 3');
  expect(body).toContain('switchyard_jobs{state="QUEUED"} 12');
  expect(body).toContain('switchyard_cycle_seconds_bucket{le="0.025",scheduler="root",phase="total"} 1');
  for (const line of body.split('\n').filter((line) => line.startsWith('# HELP switchyard_'))) {
    expect(line).toMatch(/\.$/);
  }
});

test('pools are looked at whenever the metrics are read', async () => {
  const metrics = createMetrics();
  const pool = { totalCount: 3, idleCount: 1, waitingCount: 0 };
  watchPool(metrics, 'main', pool);
  watchPool(metrics, 'queue', { totalCount: 1, idleCount: 1, waitingCount: 0 });
  pool.waitingCount = 5;
  const { body } = await metrics.expose();
  expect(body).toContain('switchyard_pool_connections{pool="main",state="waiting"} 5');
  expect(body).toContain('switchyard_pool_connections{pool="queue",state="total"} 1');
});

test('two services in one process do not mix their numbers', async () => {
  const [a, b] = [createMetrics(), createMetrics()];
  a.wakeFailures.inc();
  expect((await a.expose()).body).toContain('switchyard_wake_failures_total 1');
  expect((await b.expose()).body).toContain('switchyard_wake_failures_total 0');
});
