/** A filter chooses the same jobs wherever it is used: in a list, for an action, as a predicate. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { jobStates } from '../../src/core/states.js';
import { eventPredicate, type JobFilter, jobPredicate } from '../../src/store/job-filter.js';
import type { Database } from '../../src/store/pool.js';
import { Queries } from '../../src/store/queries.js';
import type { EventRow, JobRow } from '../../src/store/rows.js';
import { withDatabase } from '../support/database.js';
import { cases, IN_FULL } from '../support/seed.js';
import {
  context,
  ended,
  move,
  newJob,
  openTestDatabase,
  postgresWorld,
  start,
  T0,
  vouch,
  type World,
} from './world.js';

const test = withDatabase();
let database: Database;
let world: World;
let queries: Queries;
let jobs: JobRow[];
beforeAll(async () => {
  database = openTestDatabase(test.url);
  world = await postgresWorld(database, test.pool);
  queries = new Queries(database);
  const { store } = world;
  const users = [await world.addUser('ann'), await world.addUser('ben')];
  const sites = [await world.addSite('one'), await world.addSite('two')];
  const machines = [await world.addMachine(1, 'm1', 100), await world.addMachine(2, 'm2', 100)];
  for (const [i, siteId] of sites.entries()) await vouch(store, siteId, [machines[i] as number], T0);
  for (let i = 0; i < 8; i++) {
    const one = newJob({
      application: `app-${i % 2}`,
      project: i % 4 === 0 ? 'climate' : null,
      groupName: i % 3 === 0 ? 'nightly' : null,
      class: i % 4 === 1 ? 'urgent' : null,
      held: i === 7,
    });
    const licenses = [...(i % 2 === 0 ? ['solver'] : []), ...(i % 3 === 0 ? ['mesher'] : [])];
    const group = i % 2 === 0 ? { name: null, template: null } : null;
    const submission = { userId: users[i % 2] as number, idempotencyKey: null, payloadHash: '', now: T0 + i };
    const outcome = await store.submit({ ...submission, jobs: [one, one, { ...one, licenses }], group });
    if (outcome.kind !== 'accepted') throw new Error(outcome.kind);
    const [first, second] = outcome.jobIds as [number, number];
    if (i === 7) continue;
    const site = sites[i % 2] as number;
    await store.applyMoves([move(first, site), move(second, site)], context(T0 + 10));
    if (i < 2) continue;
    await store.applyStarts(
      site,
      [start(first, site, { [machines[i % 2] as number]: 1 })],
      null,
      context(T0 + 10),
    );
    const end = i % 3 === 0 ? { cause: 'EXITED_NONZERO' as const } : {};
    if (i > 3) await store.reportRuns(site, [ended(first, 1, { at: T0 + 20 + i, ...end })], 3);
    if (i === 3) await store.cancel({ ids: [first], ownedBy: null, limit: 1 }, T0 + 30, 'CANCELLED_BY_USER');
  }
  const on = { condition: 'OK' as const, minDelayS: 0 };
  // The last jobs of the loop are held, and wait for nobody; the first of them is needed.
  const waiting = [
    { ...newJob(), wait: { ...WAIT, needs: [{ expression: 'ALL' as const, of: [{ job: 22, ...on }] }] } },
    { ...newJob(), wait: { ...WAIT, needs: [{ expression: 'ANY' as const, of: [{ jobGroup: 7, ...on }] }] } },
    {
      ...newJob({ held: true }),
      wait: { ...WAIT, needs: [{ expression: 'ALL' as const, of: [{ job: 22, ...on }] }] },
    },
    { ...newJob(), wait: { ...WAIT, notBefore: T0 + 1e6 } },
  ];
  await store.submit({
    ...{ userId: users[0] as number, idempotencyKey: null, payloadHash: '', now: T0 + 9 },
    ...{ jobs: waiting, group: null },
  });
  jobs = await queries.jobsByIds(Array.from({ length: JOBS }, (_, i) => i + 1));
});
afterAll(() => database.close());

const JOBS = 28;
const WAIT = { needs: [], onUnmet: 'CANCEL' as const, notBefore: null };

const instant = fc.integer({ min: T0, max: T0 + 30 });
const values = fc.record<Required<JobFilter>>({
  ids: fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 12 }),
  states: fc.uniqueArray(fc.constantFrom(...jobStates), { maxLength: 4 }),
  siteId: fc.integer({ min: 1, max: 3 }),
  userId: fc.integer({ min: 1, max: 3 }),
  application: fc.constantFrom('app-0', 'app-1', 'app-2'),
  project: fc.constantFrom('climate', 'genome'),
  groupName: fc.constantFrom('nightly', 'daily'),
  class: fc.constantFrom('urgent', 'spare', 'normal'),
  license: fc.constantFrom('solver', 'mesher', 'none'),
  cause: fc.constantFrom('EXITED_ZERO', 'EXITED_NONZERO', 'LOST'),
  // Groups made from a template, and one that is not there.
  groupId: fc.constantFrom(1, 3, 5, 7, 99),
  waitsForOthers: fc.boolean(),
  submittedFrom: instant,
  submittedBefore: instant,
  endedFrom: instant,
  endedBefore: instant,
});
const names: (keyof JobFilter)[] = [
  ...([
    'ids',
    'states',
    'siteId',
    'userId',
    'application',
    'project',
    'groupName',
    'class',
    'license',
    'cause',
    'groupId',
    'waitsForOthers',
  ] as const),
  ...(['submittedFrom', 'submittedBefore', 'endedFrom', 'endedBefore'] as const),
];
/** Some conditions: with all of them nothing would ever match. */
const filter = fc
  .record({ values, chosen: fc.subarray(names, { minLength: 1, maxLength: 3 }) })
  .map(({ values, chosen }): JobFilter => Object.fromEntries(chosen.map((name) => [name, values[name]])));
const asEvent = ({ id, state, siteId, userId }: JobRow): EventRow => ({
  ...{ id: 1, at: T0, kind: 'JOB_STATE', seq: 1, fromState: null, fromSiteId: null, epoch: 0, cause: null },
  ...{ entityId: id, toState: state, siteId, userId, note: null },
});

it('has jobs in every state to choose from', () => {
  expect(jobs).toHaveLength(JOBS);
  expect(jobs.filter((job) => jobPredicate({ waitsForOthers: true })(job)).map(({ id }) => id)).toEqual([
    25, 26,
  ]);
  expect(new Set(jobs.map(({ state }) => state)).size).toBeGreaterThanOrEqual(7);
});

it('chooses the same jobs in lists, for actions and as predicates', async () => {
  let chosen = 0;
  await fc.assert(
    fc.asyncProperty(filter, async (given) => {
      const wanted = jobs.filter((job) => jobPredicate(given)(job)).map(({ id }) => id);
      chosen += wanted.length;
      const page = { order: 'SUBMITTED', direction: 'ASC', backward: false, from: null, limit: 100 } as const;
      expect((await queries.jobs(given, page, ['id'])).map(({ id }) => id)).toEqual(wanted);
      expect(await queries.jobCount(given, 100)).toBe(wanted.length);
      const live = jobs
        .filter(({ id, endedAt }) => endedAt === null && wanted.includes(id))
        .map(({ id }) => id);
      const held = await world.store.reprioritize({ filter: given, ownedBy: null, limit: 100 }, 0);
      expect(held.changed).toEqual(live);
      // What the event alone can say keeps no job out that matches.
      const passed = jobs.filter((job) => eventPredicate(given)(asEvent(job))).map(({ id }) => id);
      expect(passed).toEqual(expect.arrayContaining(wanted));
    }),
    { numRuns: cases(300) },
  );
  if (IN_FULL) expect(chosen).toBeGreaterThan(300);
});

it('judges a job as it was after the event: the row may be ahead of it', () => {
  const job = jobs.find(({ state }) => state === 'COMPLETED') as JobRow;
  const running = { ...asEvent(job), toState: 'RUNNING' as const };
  expect(jobPredicate({ states: ['RUNNING'] })(job, running)).toBe(true);
  expect(jobPredicate({ states: ['COMPLETED'] })(job, running)).toBe(false);
  expect(eventPredicate({ states: ['COMPLETED'] })(running)).toBe(false);
  expect(eventPredicate({ ids: [job.id], userId: job.userId, application: 'any' })(running)).toBe(true);
  expect(eventPredicate({ userId: job.userId + 1 })(running)).toBe(false);
  const waited = { ...job, needsOthers: true };
  const blocked = { ...asEvent(job), toState: 'BLOCKED' as const, epoch: 0 };
  expect(jobPredicate({ waitsForOthers: true })(waited, blocked)).toBe(true);
  expect(jobPredicate({ waitsForOthers: true })(waited, { ...blocked, epoch: 1 })).toBe(false);
  expect(jobPredicate({ waitsForOthers: true })(job, blocked)).toBe(false);
  expect(jobPredicate({ waitsForOthers: false })(waited, running)).toBe(true);
  expect(eventPredicate({ waitsForOthers: true })(running)).toBe(false);
});
