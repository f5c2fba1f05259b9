import { afterAll, beforeAll } from 'vitest';
import { createEngine, type Engine } from '../../../src/engine/index.js';
import { createMetrics } from '../../../src/platform/metrics.js';
import { Mirror } from '../../../src/store/mirror.js';
import { quietLog } from '../../engine/support.js';
import type { TestApi } from './api.js';

/** Jobs that come to this API are decided on, by an engine in this process. */
export function withEngine(api: TestApi): void {
  let engine: Engine;
  let forward: NodeJS.Timeout;
  beforeAll(async () => {
    const { store } = api.parts;
    engine = createEngine({
      store,
      mirror: new Mirror(store),
      queueConnection: { kind: 'postgres', url: api.db.url },
      log: quietLog,
      metrics: createMetrics(),
    });
    await engine.start();
    forward = setInterval(() => {
      if (api.wakes.length > 0) void engine.wake(api.wakes.splice(0));
    }, 10);
  });
  afterAll(async () => {
    clearInterval(forward);
    await engine?.stop();
  });
}
