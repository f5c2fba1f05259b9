/** The ranges of a job's numbers are the same where it enters, in the database, and in the model of the store. */
import { readFileSync } from 'node:fs';
import { buildSchema, type GraphQLInputObjectType, isNonNullType } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JobInput } from '../../src/api/generated/types.js';
import { newJob as fromInput } from '../../src/api/services/job-input.js';
import { MAX } from '../../src/platform/limits.js';
import { packagePath } from '../../src/platform/paths.js';
import { fieldBounds, outOfBounds } from '../../src/store/bounds.js';
import { givenFields } from '../../src/store/job-fields.js';
import type { Database } from '../../src/store/pool.js';
import type { NewJob } from '../../src/store/store.js';
import {
  memoryWorld,
  newJob,
  openTestDatabase,
  postgresWorld,
  submit,
  T0,
  type World,
} from '../store/world.js';
import { withDatabase } from '../support/database.js';

const withTables = withDatabase();
let database: Database;
beforeAll(() => {
  database = openTestDatabase(withTables.url);
});
afterAll(() => database.close());
const schema = buildSchema(readFileSync(packagePath('schema.graphql'), 'utf8'));
const inputFields = (schema.getType('JobInput') as GraphQLInputObjectType).getFields();

/** What a client that gives nothing but the command is taken to give, read from the schema and so without a type. */
const plain = {
  ...Object.fromEntries(
    Object.values(inputFields).map(({ name, type, defaultValue }) => [
      name,
      isNonNullType(type) ? defaultValue : null,
    ]),
  ),
  command: '/bin/true',
} as unknown as JobInput;

const places = {
  datasets: new Set<number>(),
  sites: new Set<number>(),
  kinds: null,
  pools: null,
  reservations: new Map(),
  classes: null,
};
const faultsOf = (input: Partial<JobInput>): string[] => {
  const faults: string[] = [];
  fromInput({ ...plain, ...input }, { mayRaise: true, userId: 1, places, now: T0 }, ({ field }) =>
    faults.push(field),
  );
  return faults;
};

type Change = Partial<Record<keyof typeof fieldBounds, number>>;
/** As near as can be beyond, in the type of the column. */
const beyond = (field: keyof typeof fieldBounds, bound: number, sign: 1 | -1): number =>
  givenFields[field].type === 'integer'
    ? bound + sign
    : bound + sign * Math.max(Number.MIN_VALUE, Math.abs(bound) * 1e-9);

const good: Change[] = [];
const bad: Change[] = [];
for (const [name, [min, max]] of Object.entries(fieldBounds)) {
  const field = name as keyof typeof fieldBounds;
  // Beyond what the column can hold the driver has no bytes for it.
  good.push({ benchmark: 1, [field]: min }, { benchmark: 1, [field]: max });
  bad.push({ benchmark: 1, [field]: beyond(field, min, -1) });
  if (max < MAX.integer || givenFields[field].type !== 'integer')
    bad.push({ benchmark: 1, [field]: beyond(field, max, 1) });
}
good.push(
  { tasks: 1000, cpusPerTask: 1000 },
  { estimateS: 1e7, benchmark: 1e6 },
  { estimateS: 1e9, tasks: 100, benchmark: 100 },
);
bad.push(
  { tasks: 1001, cpusPerTask: 1000 },
  { estimateS: 1.001e7, benchmark: 1e6 },
  { estimateS: 1e9, tasks: 101, benchmark: 100 },
);

describe('the API', () => {
  test.each(good)('takes %j', (change) => {
    expect(faultsOf(change)).toEqual([]);
    expect(outOfBounds(newJob(change))).toBeNull();
  });

  test.each(bad)('refuses %j', (change) => {
    expect(faultsOf(change)).not.toEqual([]);
    expect(outOfBounds(newJob(change))).not.toBeNull();
  });

  test('refuses what is no number of JSON, and times that have passed', () => {
    for (const field of ['estimateS', 'benchmark', 'sandboxMb', 'computationShare'] as const)
      for (const value of [Number.NaN, Infinity, -Infinity])
        expect(faultsOf({ [field]: value })).not.toEqual([]);
    expect(faultsOf({ deadline: new Date(T0 * 1000) })).toEqual(['deadline']);
    expect(faultsOf({ deadline: new Date(T0 * 1000 + 1) })).toEqual([]);
  });
});

describe.each<[string, () => Promise<World>]>([
  ['Postgres', () => postgresWorld(database, withTables.pool)],
  ['the model', async () => memoryWorld()],
])('%s', (_, makeWorld) => {
  test('takes what the API takes, and nothing else', async () => {
    const world = await makeWorld();
    const user = await world.addUser('ann');
    for (const change of good) await submit(world, user, [newJob(change as Partial<NewJob>)]);
    for (const change of bad) {
      const refused = submit(world, user, [newJob(change as Partial<NewJob>)]);
      await expect(refused, JSON.stringify(change)).rejects.toMatchObject({ code: '23514' });
    }
    const { jobs } = await world.store.loadGrid(10);
    expect(jobs.length).toBe(good.length);
  });
});

test('the CHECKs of the directory have the ranges of the limits', async () => {
  const { rows } = await withTables.pool.query<{ column: string; type: string; expression: string }>(`
SELECT c.conrelid::regclass || '.' || a.attname AS column, a.atttypid::regtype AS type, pg_get_expr(c.conbin, c.conrelid) AS expression
  FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND c.conkey = ARRAY[a.attnum]
 WHERE c.contype = 'c' AND c.conrelid::regclass::text IN
       ('sites', 'machines', 'licenses', 'links', 'link_measurements', 'datasets', 'users')`);
  const bound = (expression: string, operator: string): number | undefined => {
    const found = new RegExp(`${operator} [('\\s]*(-?[0-9.e+-]+)`).exec(expression)?.[1];
    return found === undefined ? undefined : Number(found);
  };
  const ranges = rows.flatMap(({ column, type, expression }) => {
    const min = bound(expression, '>=');
    const max = bound(expression, '<=') ?? (type === 'integer' ? MAX.integer : Infinity);
    return min === undefined ? [] : [[column, [min, max]]];
  });
  const link = {
    bandwidth_mb_per_s: [MAX.leastBandwidthMbPerS, MAX.bandwidthMbPerS],
    rtt_s: [0, MAX.rttS],
    loss: [0, MAX.loss],
  };
  const expected = {
    sites: {
      latitude: [-MAX.latitude, MAX.latitude],
      longitude: [-MAX.longitude, MAX.longitude],
      max_running_jobs: [1, MAX.sharing],
      reservable_cpu_hours: [0, MAX.integer],
    },
    machines: {
      cpus: [1, MAX.machineCpus],
      memory_mb: [0, MAX.integer],
      benchmark: [MAX.leastBenchmark, MAX.benchmark],
      max_tasks: [1, MAX.sharing],
    },
    licenses: { copies: [0, MAX.integer] },
    links: link,
    link_measurements: link,
    datasets: { size_mb: [0, MAX.sizeMb] },
    users: {
      quota_share: [MAX.leastQuotaShare, MAX.quotaShare],
      submission_limit: [0, MAX.integer],
      submission_period_s: [1, MAX.quotaPeriodS],
    },
  };
  const columns = Object.entries(expected).flatMap(([table, ranges]) =>
    Object.entries(ranges).map(([column, range]) => [`${table}.${column}`, range]),
  );
  expect(Object.fromEntries(ranges)).toEqual(Object.fromEntries(columns));
});
