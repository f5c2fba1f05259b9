import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { Alarms } from '../../src/engine/alarms.js';
import { until } from './support.js';

const rung: { siteId: number; at: number }[] = [];
const now = (): number => Date.now() / 1000;
const alarms = new Alarms((siteId) => rung.push({ siteId, at: now() }), now);
afterEach(() => alarms.close());

test('one alarm a site: the last that was set rings, not before its time, and once', async () => {
  const begun = now();
  alarms.set(1, begun + 3_600);
  alarms.set(1, begun + 0.05);
  alarms.set(2, begun + 0.02);
  alarms.set(2, Infinity);
  // Longer than a timer can wait.
  alarms.set(3, begun + 1e9);
  alarms.set(4, begun + 0.1);
  await until('the last has rung', () => rung.some(({ siteId }) => siteId === 4));
  expect(rung.map(({ siteId }) => siteId)).toEqual([1, 4]);
  expect(rung[0]?.at).toBeGreaterThanOrEqual(begun + 0.05);

  // What is past already is due; and the same alarm may be set again when it has rung.
  alarms.set(1, begun);
  await until('it has rung again', () => rung.length === 3);
  alarms.set(1, now() + 0.02);
  alarms.close();
  await sleep(60);
  expect(rung).toHaveLength(3);
});
