import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JobFilter } from '../../src/store/job-filter.js';
import type { Database } from '../../src/store/pool.js';
import { type JobPage, Queries } from '../../src/store/queries.js';
import type { JobRow } from '../../src/store/rows.js';
import { withDatabase } from '../support/database.js';
import {
  assigned,
  context,
  ended,
  move,
  newJob,
  openTestDatabase,
  postgresWorld,
  report,
  reservation,
  start,
  submit,
  T0,
  vouch,
  type World,
} from './world.js';

const test = withDatabase();
let database: Database;
let queries: Queries;
let world: World;
let ann: number;
let bob: number;
let site: number;
let other: number;
let machine: number;
/** 0–4 ann's: completed, failed, running, queued, held; 5–9 bob's: dispatched, cancelled, queued, queued, queued. */
let ids: number[];

beforeAll(async () => {
  database = openTestDatabase(test.url);
  queries = new Queries(database);
  world = await postgresWorld(database, test.pool);
  ann = await world.addUser('ann', 'GOLD', { limit: 100, periodS: 60 });
  bob = await world.addUser('Bob');
  site = await world.addSite('here');
  other = await world.addSite('Z');
  machine = await world.addMachine(site, 'm1', 8);
  await world.addMachine(site, 'M2', 8);
  await world.addMachine(other, 'a', 2);
  await vouch(world.store, site, [machine], T0);
  const { store } = world;
  ids = await assigned(world, ann, site, machine, [
    newJob({ application: 'x', deadline: T0 + 500, arguments: ['1'], environment: { A: 'b' } }),
    newJob({ application: 'y', deadline: T0 + 400, groupName: 'g' }),
    newJob({ application: 'x', deadline: T0 + 300 }),
  ]);
  await store.reportRuns(
    site,
    [
      report(ids[0]!, 1),
      ended(ids[0]!, 1, {
        at: T0 + 90,
        cpuS: 1.5,
        outputs: [{ stream: 'STDOUT', start: 0, body: Buffer.from('out "\\\n'), bytes: 7 }],
      }),
      ended(ids[1]!, 1, {
        at: T0 + 80,
        exitCode: 3,
        cause: 'EXITED_NONZERO',
        message: 'no',
        outputs: [{ stream: 'STDERR', start: 0, body: Buffer.from('a\0b'), bytes: 9 }],
      }),
      report(ids[2]!, 1),
    ],
    3,
  );
  ids.push(
    ...(await submit(
      world,
      ann,
      [newJob({ deadline: T0 + 200 }), newJob({ held: true, groupName: 'g' })],
      T0 + 50,
    )),
  );
  ids.push(
    ...(await submit(
      world,
      bob,
      [newJob({ application: 'x' }), newJob(), newJob(), newJob(), newJob()],
      T0 + 60,
    )),
  );
  await store.applyMoves([move(ids[5]!, site)], context());
  await store.applyStarts(site, [], reservation(site, ids[5]!, machine), context());
  await store.cancel({ ids: [ids[6]!], ownedBy: null, limit: 9 }, T0 + 70, 'CANCELLED_BY_USER');
});
afterAll(() => database.close());

const page = (change: Partial<JobPage> = {}): JobPage => ({
  order: 'SUBMITTED',
  direction: 'ASC',
  backward: false,
  from: null,
  limit: 100,
  ...change,
});
/** As places in `ids`. */
const listed = async (filter: JobFilter, change: Partial<JobPage> = {}) =>
  (await queries.jobs(filter, page(change))).map(({ id }) => ids.indexOf(id));

describe('jobs', () => {
  it('are filtered by everything given', async () => {
    expect(await listed({})).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(await listed({ userId: ann })).toEqual([0, 1, 2, 3, 4]);
    expect(await listed({ states: ['QUEUED'] })).toEqual([3, 7, 8, 9]);
    expect(await listed({ states: ['FAILED', 'CANCELLED'] })).toEqual([1, 6]);
    expect(await listed({ states: ['FAILED', 'RUNNING'] })).toEqual([1, 2]);
    expect(await listed({ states: ['COMPLETED'] })).toEqual([0]);
    expect(await listed({ states: ['ASSIGNED', 'RUNNING'] })).toEqual([2]);
    expect(await listed({ states: [] })).toEqual([]);
    expect(await listed({ siteId: site })).toEqual([0, 1, 2, 5]);
    expect(await listed({ application: 'x' })).toEqual([0, 2, 5]);
    expect(await listed({ application: 'x', userId: bob })).toEqual([5]);
    expect(await listed({ groupName: 'g' })).toEqual([1, 4]);
    expect(await listed({ submittedFrom: T0 + 50, submittedBefore: T0 + 60 })).toEqual([3, 4]);
    expect(await listed({ endedFrom: T0 + 80 })).toEqual([0, 1]);
    expect(await listed({ endedBefore: T0 + 80 })).toEqual([6]);
    expect(await listed({ ids: [ids[9]!, ids[2]!, 12345] })).toEqual([2, 9]);
    expect(await listed({ ids: [] })).toEqual([]);
    expect(await listed({ application: `x' OR true --` })).toEqual([]);
  });

  it('are ordered three ways, ties by id', async () => {
    expect(await listed({}, { direction: 'DESC' })).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    expect(await listed({}, { order: 'ENDED' })).toEqual([6, 1, 0]);
    expect(await listed({}, { order: 'ENDED', direction: 'DESC' })).toEqual([0, 1, 6]);
    expect(await listed({}, { order: 'DEADLINE' })).toEqual([3, 2, 1, 0]);
  });

  const keyOf = (order: JobPage['order']) => (row: JobRow) => ({
    id: row.id,
    at: (order === 'SUBMITTED' ? row.submittedAt : order === 'ENDED' ? row.endedAt : row.deadline) ?? 0,
  });

  it.each(['SUBMITTED', 'ENDED', 'DEADLINE'] as const)(
    'come in pages by %s without gap or repeat, both ways',
    async (order) => {
      for (const direction of ['ASC', 'DESC'] as const) {
        const all = await queries.jobs({}, page({ order, direction }));
        for (const backward of [false, true]) {
          const seen: JobRow[] = [];
          let from: JobPage['from'] = null;
          for (;;) {
            const rows: JobRow[] = await queries.jobs(
              {},
              page({ order, direction, backward, from, limit: 2 }),
            );
            if (rows.length === 0) break;
            if (backward) seen.unshift(...rows);
            else seen.push(...rows);
            from = keyOf(order)(backward ? rows[0]! : rows.at(-1)!);
          }
          expect(seen).toEqual(all);
        }
      }
    },
  );

  it('have all they were submitted with and all that became of them', async () => {
    const [done, failed] = await queries.jobsByIds([ids[1]!, ids[0]!]);
    expect(done).toEqual({
      ...{
        id: ids[0],
        userId: ann,
        state: 'COMPLETED',
        siteId: site,
        name: null,
        project: null,
        resources: null,
        resourcesPerTask: null,
        devicesPerTask: null,
        machineConstraint: null,
        rerunOf: null,
        image: null,
        application: 'x',
        groupName: null,
        arrayIndex: null,
      },
      ...{
        command: 'true',
        arguments: ['1'],
        environment: { A: 'b' },
        workingDirectory: null,
        tasks: 1,
        tasksPerMachine: null,
        exclusive: null,
        allAlike: null,
        sameSwitch: null,
        parts: null,
        cpusPerTask: 1,
        memoryMbPerTask: 0,
        resourcesPerTask: null,
        machineConstraint: null,
        image: null,
        ...{ terminal: null, downloads: null, uploads: null },
        siteTerms: null,
        checkpoint: null,
      },
      ...{
        licenses: [],
        os: null,
        architecture: null,
        estimateS: 100,
        benchmark: 100,
        runTimeLimitS: null,
        warnS: null,
        warnSignal: 'SIGTERM',
        killGraceS: 30,
        deadline: T0 + 500,
      },
      ...{
        deadlineMissed: false,
        atOnce: null,
        sandboxMb: 0,
        outputMb: 0,
        inputs: [],
        outputs: [],
        preferences: [],
        schedulerId: null,
        originSiteId: null,
        reservationId: null,
        preemptionClass: 0,
        class: null,
        charged: true,
        computationShare: null,
        simulatedIoS: null,
        mail: null,
        needsOthers: false,
        workflow: null,
        groupId: 1,
        migratedAt: null,
        restartable: true,
        retry: null,
        retries: 0,
        launch: 'EVERY_TASK',
        onTaskFailure: 'END_ALL',
        simulatedRunS: null,
        priority: 5,
        boost: 0,
        epoch: 1,
      },
      ...{
        cause: 'EXITED_ZERO',
        message: null,
        exitCode: 0,
        submittedAt: T0,
        dispatchedAt: T0,
        startedAt: T0 + 10,
        endedAt: T0 + 90,
        eligibleAt: null,
      },
    });
    expect(failed).toMatchObject({
      state: 'FAILED',
      cause: 'EXITED_NONZERO',
      message: 'no',
      exitCode: 3,
      startedAt: null,
    });
    expect(await queries.jobs({ ids: [ids[0]!] }, page(), ['id', 'state'])).toEqual([
      { id: ids[0], state: 'COMPLETED' },
    ]);
    expect(await queries.jobsByIds([])).toEqual([]);
  });

  it('are counted up to a limit', async () => {
    expect(await queries.jobCount({}, 100)).toBe(10);
    expect(await queries.jobCount({}, 4)).toBe(4);
    expect(await queries.jobCount({ states: ['QUEUED'], userId: bob }, 100)).toBe(3);
    expect(await queries.jobCounts()).toEqual(
      expect.arrayContaining([
        { siteId: null, state: 'QUEUED', jobs: 4 },
        { siteId: null, state: 'HELD', jobs: 1 },
        { siteId: site, state: 'DISPATCHED', jobs: 1 },
        { siteId: site, state: 'RUNNING', jobs: 1 },
      ]),
    );
  });

  it('have runs, outputs and decisions', async () => {
    const runs = await queries.runsOfJobs([ids[0]!, ids[2]!, ids[3]!]);
    expect(runs.map(({ jobId, epoch, cause }) => [jobId, epoch, cause])).toEqual([
      [ids[0], 1, 'EXITED_ZERO'],
      [ids[2], 1, null],
    ]);
    expect(runs[0]).toMatchObject({
      siteId: site,
      machineIds: [machine],
      machineTasks: [1],
      policyVersion: 1,
      assignedAt: T0,
      plannedS: 100,
      cpuS: 1.5,
      ioWaitS: null,
      endedAt: T0 + 90,
    });
    expect(await queries.output(ids[0]!, null, 0, 'STDOUT')).toEqual({
      ...{ epoch: 1, bytes: 7, kept: 7 },
      pieces: [{ start: 0, body: Buffer.from('out "\\\n') }],
    });
    expect(await queries.output(ids[1]!, 1, 0, 'STDERR')).toEqual({
      ...{ epoch: 1, bytes: 9, kept: 3 },
      pieces: [{ start: 0, body: Buffer.from('a\0b') }],
    });
    expect(await queries.output(ids[1]!, 2, 0, 'STDERR')).toBeNull();
    const decisions = await queries.decisionsOfJob(ids[0]!, 0, 10);
    expect(
      decisions.map(({ kind, reason, fromSiteId, siteId, cycle }) => [
        kind,
        reason,
        fromSiteId,
        siteId,
        cycle,
      ]),
    ).toEqual([
      ['DISPATCH', 'IDLE_SITE', null, site, 'cycle-1'],
      ['START', 'HEAD', site, site, 'cycle-1'],
    ]);
    expect(JSON.parse(decisions[1]!.detail)).toEqual(start(1, 1, {}).explanation);
    expect(await queries.decisionsOfJob(ids[0]!, decisions[0]!.id, 10)).toEqual([decisions[1]]);
    expect(await queries.decisionsByIds([decisions[1]!.id])).toEqual([decisions[1]]);
    expect(await queries.decisions(decisions[1]!.id, 1)).toHaveLength(1);
  });
});

describe('events', () => {
  it('come behind a cursor, those that a user may see', async () => {
    const all = await queries.events('0', null, 1000);
    const hers = await queries.events('0', ann, 1000);
    if (all === 'too-old' || hers === 'too-old') throw new Error('the cursor is not old');
    expect(all.map(({ id }) => id)).toEqual([...all].sort((a, b) => a.id - b.id).map(({ id }) => id));
    expect(String(all.at(-1)!.id)).toBe(await queries.latestCursor());
    expect(new Set(hers.filter(({ seq }) => seq !== null).map(({ userId }) => userId))).toEqual(
      new Set([ann]),
    );
    expect(hers.filter(({ kind }) => kind === 'USER').every(({ entityId }) => entityId === ann)).toBe(true);
    expect(hers.some(({ kind }) => kind === 'MACHINE')).toBe(true);
    expect(await queries.events(String(all[3]!.id), null, 2)).toEqual(all.slice(4, 6));
    expect(await queries.eventsByIds([all[5]!.id])).toEqual([all[5]]);
    const ofJob = await queries.eventsOfJob(ids[0]!, '0', 10);
    expect(ofJob.map(({ fromState, toState }) => [fromState, toState])).toEqual([
      [null, 'QUEUED'],
      ['QUEUED', 'DISPATCHED'],
      ['DISPATCHED', 'ASSIGNED'],
      ['ASSIGNED', 'RUNNING'],
      ['RUNNING', 'COMPLETED'],
    ]);
    expect(ofJob.at(-1)).toMatchObject({ seq: 5, siteId: site, userId: ann, epoch: 1, cause: 'EXITED_ZERO' });
    expect(await queries.eventsOfJob(ids[0]!, String(ofJob[2]!.id), 1)).toEqual([ofJob[3]]);
  });
});

describe('the directory', () => {
  it('is listed by name, in an order that no locale changes', async () => {
    expect((await queries.sites('', 9)).map(({ name }) => name)).toEqual(['Z', 'here']);
    expect((await queries.sites('Z', 9)).map(({ name }) => name)).toEqual(['here']);
    expect((await queries.users('', 9)).map(({ name }) => name)).toEqual(['Bob', 'ann']);
    const machines = await queries.machines(null, null, 9);
    expect(machines.map(({ siteId, name }) => [siteId, name])).toEqual([
      [site, 'M2'],
      [site, 'm1'],
      [other, 'a'],
    ]);
    expect(await queries.machines(null, machines[0]!, 1)).toEqual([machines[1]]);
    expect(await queries.machines(other, null, 9)).toEqual([machines[2]]);
    expect(await queries.machinesOfSites([other, site])).toEqual(machines);
  });

  it('is looked up by ids and names', async () => {
    expect(await queries.usersByIds([bob, 99])).toMatchObject([
      { name: 'Bob', class: 'REGULAR', active: true },
    ]);
    expect(await queries.userByName('ann')).toMatchObject({
      id: ann,
      class: 'GOLD',
      submissionLimit: 100,
      submissionPeriodS: 60,
    });
    expect(await queries.userByName('nobody')).toBeNull();
    expect(await queries.siteByName('here')).toMatchObject({ id: site, agentSeenAt: T0 });
    expect(await queries.machinesByIds([machine])).toMatchObject([
      { name: 'm1', silent: false, agentId: expect.any(Number), cpusUsed: 1 },
    ]);
    const cad = await world.addLicense('cad', 2, site);
    const grid = await world.addLicense('cad', 3, null);
    expect((await queries.licenses(null, 9)).map(({ id }) => id)).toEqual([cad, grid]);
    expect((await queries.licenses({ kind: 'cad', id: cad }, 9)).map(({ id }) => id)).toEqual([grid]);
    expect((await queries.licensesOfSites([site])).map(({ id }) => id)).toEqual([cad]);
  });

  it('tells how much there is to do and to do it with', async () => {
    expect(await queries.siteStats([site, other])).toEqual([
      { siteId: site, metaQueued: 0, queued: 1, running: 1, cpus: 16, cpusUsed: 1 },
      { siteId: other, metaQueued: 0, queued: 0, running: 0, cpus: 2, cpusUsed: 0 },
    ]);
    expect(await queries.reservationsOfSites([site, other])).toEqual([
      { siteId: site, jobId: ids[5], at: T0 + 50, machineIds: [machine], machineTasks: [1] },
    ]);
  });
});
