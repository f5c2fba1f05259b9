import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { Alarms } from '../../src/engine/alarms.js';
import { until } from './support.js';

const rung: { siteId: number; at: number }[] = [];
const alarms = new Alarms((siteId) => rung.push({ siteId, at: Date.now() / 1000 }));
afterEach(() => alarms.close());

test('one alarm a site: the last that was set rings, not before its time, and once', async () => {
  const now = Date.now() / 1000;
  alarms.set(1, now + 3_600);
  alarms.set(1, now + 0.05);
  alarms.set(2, now + 0.02);
  alarms.set(2, Infinity);
  // Longer than a timer can wait.
  alarms.set(3, now + 1e9);
  alarms.set(4, now + 0.1);
  await until('the last has rung', () => rung.some(({ siteId }) => siteId === 4));
  expect(rung.map(({ siteId }) => siteId)).toEqual([1, 4]);
  expect(rung[0]?.at).toBeGreaterThanOrEqual(now + 0.05);

  // What is past already is due; and the same alarm may be set again when it has rung.
  alarms.set(1, now);
  await until('it has rung again', () => rung.length === 3);
  alarms.set(1, Date.now() / 1000 + 0.02);
  alarms.close();
  await sleep(60);
  expect(rung).toHaveLength(3);
});
