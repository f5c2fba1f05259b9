import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Database } from '../../src/store/pool.js';
import { withDatabase } from '../support/database.js';
import { type WatchedWay, watchedWay } from '../support/proxy.js';
import { describeStore } from './conformance.js';
import { describeFederation } from './conformance-federation.js';
import { memoryWorld, openTestDatabase, postgresWorld } from './world.js';

const test = withDatabase();
let way: WatchedWay;
let database: Database;
beforeAll(async () => {
  way = await watchedWay(test.url);
  database = openTestDatabase(way.url);
});
afterAll(async () => {
  await database.close();
  await way.close();
});

describeStore('MemoryStore', async (options) => memoryWorld(options));
describeStore('PostgresStore', (options) => postgresWorld(database, test.pool, options));

describeFederation('MemoryStore', async () => memoryWorld());
describeFederation('PostgresStore', () => postgresWorld(database, test.pool));

it('never makes the server wait for a client between the event lock and the commit, in all of the above', () => {
  expect(way.keptWaiting).toEqual([]);
});
