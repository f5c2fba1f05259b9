import { afterAll, beforeAll } from 'vitest';
import type { Database } from '../../src/store/pool.js';
import { withDatabase } from '../support/database.js';
import { describeStore } from './conformance.js';
import { memoryWorld, openTestDatabase, postgresWorld } from './world.js';

const test = withDatabase();
let database: Database;
beforeAll(() => {
  database = openTestDatabase(test.url);
});
afterAll(() => database.close());

describeStore('MemoryStore', async (options) => memoryWorld(options));
describeStore('PostgresStore', (options) => postgresWorld(database, test.pool, options));
