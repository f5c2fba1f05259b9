/** Jobs that need others, as people submit and see them, with engines that decide on them. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { RandomStream } from '../../src/core/index.js';
import { createEngine, type Engine } from '../../src/engine/index.js';
import { createMetrics } from '../../src/platform/metrics.js';
import { EventBell } from '../../src/store/bell.js';
import { Mirror } from '../../src/store/mirror.js';
import type { Database } from '../../src/store/pool.js';
import { PostgresStore } from '../../src/store/postgres.js';
import { quietLog, until } from '../engine/support.js';
import { openTestDatabase, report } from '../store/world.js';
import { asSubmitted, couldRunFrom, drawGraph, endsOf } from '../support/graph.js';
import { SEED } from '../support/seed.js';
import { type Json, unique, withApi } from './support/api.js';

const api = withApi();
let site = 0;
let serving: Promise<void> | null = null;
const stopping = new AbortController();

interface Worker {
  engine: Engine;
  database: Database;
  bell: EventBell;
}
const workers: Worker[] = [];

/** A worker with connections of its own, so that it can be cut off in the middle of anything. */
async function startWorker(): Promise<Worker> {
  const database = openTestDatabase(api.db.url);
  const store = new PostgresStore(database);
  const bell = new EventBell({ url: api.db.url });
  await bell.start();
  const engine = createEngine({
    ...{ store, mirror: new Mirror(store), log: quietLog, metrics: createMetrics(), news: bell.listen },
    queueConnection: { kind: 'postgres', url: api.db.url },
  });
  await engine.start();
  const worker = { engine, database, bell };
  workers.push(worker);
  return worker;
}

async function stopWorker(worker: Worker): Promise<void> {
  workers.splice(workers.indexOf(worker), 1);
  await worker.engine.stop();
  await worker.bell.stop();
  await worker.database.close();
}

/** From now on nothing of it reaches the database, as if it had been killed. */
const kill = ({ database }: Worker): void => database.cut('killed by the test');

/** Which jobs end badly. */
const failing = new Set<number>();
/** The site's agent: starts and ends what it is assigned. */
async function serve(stopping: AbortSignal): Promise<void> {
  const { store } = api.parts;
  while (!stopping.aborted) {
    const { assignments } = await store.assignments(site, null, 1_000, 2 ** 30);
    const at = () => Date.now() / 1000;
    const runs = assignments.filter(({ state }) => state === 'ASSIGNED' || state === 'RUNNING');
    await store.reportRuns(
      site,
      runs.map(({ jobId, epoch }) => report(jobId, epoch, { at: at() })),
      3,
    );
    await store.reportRuns(
      site,
      runs.map(({ jobId, epoch }) =>
        report(jobId, epoch, {
          ...{ phase: 'ENDED', at: at() },
          ...(failing.has(jobId)
            ? { cause: 'EXITED_NONZERO', exitCode: 1 }
            : { cause: 'EXITED_ZERO', exitCode: 0 }),
        }),
      ),
      3,
    );
    for (const { engine } of workers) void engine.wake(['root', site]);
    // On a busy machine these tests take longer than an agent may be silent.
    await api.db.pool.query('UPDATE agents SET seen_at = now() WHERE site_id = $1', [site]);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

beforeAll(async () => {
  const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
    'mutation { createSite(input: { name: "s" }) { site { id } } }',
  );
  await api.must(
    `mutation { createMachine(input: { siteId: "${createSite.site.id}", name: "m", cpus: 64, memoryMb: 100000, benchmark: 100 }) { machine { id } } }`,
  );
  const { key } = await api.user('AGENT', 'agent', createSite.site.id);
  await api.serve(createSite.site.id, key);
  site = numberOf(createSite.site.id);
  serving = serve(stopping.signal);
});
afterAll(async () => {
  stopping.abort();
  await serving;
  for (const worker of [...workers]) await stopWorker(worker);
});
beforeEach(() => failing.clear());

const numberOf = (id: string): number => Number(id.split('_')[1]);
const SUBMIT = `mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) {
  jobIds repeated errors { index field code message } } }`;
interface Submitted {
  jobIds: string[];
  repeated: boolean;
  errors: { index: number; field: string; code: string; message: string }[];
}
const submit = async (jobs: object[], more: object = {}, key = api.adminKey): Promise<Submitted> => {
  const input = { jobs: jobs.map((job) => ({ command: 'true', estimateS: 1, ...job })), ...more };
  return (await api.must<{ submitJobs: Submitted }>(SUBMIT, { input }, key)).submitJobs;
};
const need = (of: object[], expression = 'ALL') => [{ expression, of }];
const JOB = `query ($id: ID!) { job(id: $id) { state cause message eligibleAt notBefore onUnmet unmetBecause { id } neededBy { id }
  needs { expression of { job { id } jobGroup { id } group condition minDelayS } } whyWaiting { code message } } }`;
const job = async (id: string, key = api.adminKey): Promise<Json> =>
  (await api.must<{ job: Json }>(JOB, { id }, key)).job;
const endedOf = async (ids: readonly string[]): Promise<number> => {
  const found = await api.db.pool.query(
    'SELECT count(*)::integer AS ended FROM jobs WHERE id = ANY ($1) AND ended_at IS NOT NULL',
    [ids.map(numberOf)],
  );
  return found.rows[0].ended;
};
const ends = (ids: readonly string[]) =>
  until(`${ids.join(' ')} have ended`, async () => (await endedOf(ids)) === ids.length);

describe('a submission', () => {
  test('is refused with names: circles, unknown names, arrays that do not match, jobs that one may not see', async () => {
    const own = await api.user('USER', unique('own'));
    const other = await api.user('USER', unique('other'));
    const { jobIds } = await submit([{ held: true }], {}, other.key);
    const { errors, jobIds: none } = await submit(
      [
        { ref: 'a', needs: need([{ ref: 'b' }]) },
        { ref: 'b', needs: need([{ ref: 'a', condition: 'ANY' }]) },
        { needs: need([{ ref: 'c' }, { job: jobIds[0] }, { group: 'nobody' }]) },
        { ref: 'a', needs: need([{ ref: 'b', minDelayS: -1 }]) },
        { arrayIndex: 3, needs: need([{ ref: 'b', condition: 'CORRESPONDING' }]) },
        { needs: [{ of: [] }] },
        { needs: need([{ job: 'job_1', group: 'g' }]) },
      ],
      {},
      own.key,
    );
    expect(none).toEqual([]);
    expect(errors.map(({ index, field }) => `${index} ${field}`)).toEqual([
      ...['6 needs[0].of[0]', '2 needs[0].of[0]', '2 needs[0].of[1]', '2 needs[0].of[2]'],
      ...['3 ref', '3 needs[0].of[0]', '4 needs[0].of[0]', '5 needs[0].of', '6 needs[0].of', '0 needs'],
    ]);
    expect(errors.map(({ message }) => message).join('\n')).toMatch(
      /ref c[\s\S]*job_\d+[\s\S]*nobody[\s\S]*cycle/,
    );
  });

  test('is drawn as a graph of its jobs, for those who may see them', async () => {
    const own = await api.user('USER', unique('own'));
    const other = await api.user('USER', unique('other'));
    const groupName = unique('drawn');
    const { jobIds } = await submit(
      [
        { ref: 'a', name: 'a', groupName, held: true },
        { ref: 'b', name: 'b', groupName, estimateS: 60, notBefore: '2100-01-01T00:00:00Z' },
        { ref: 'c', groupName, needs: need([{ ref: 'b' }, { ref: 'b', condition: 'START' }]), estimateS: 30 },
        { groupName, arrayIndex: 3, needs: [...need([{ ref: 'a' }, { ref: 'c', minDelayS: 5 }], 'ANY')] },
        { needs: need([{ group: groupName, condition: 'ANY' }]) },
      ],
      {},
      own.key,
    );
    const graphOf = async (filter: object, most: number, key: string) =>
      (
        await api.must<{ jobGraph: { nodes: Json[] } & Json }>(
          `query ($filter: JobFilter!, $most: Int!) { jobGraph(filter: $filter, most: $most) { isWhole criticalPath expectedEnd
            nodes { id name arrayIndex state level expectedStart expectedEnd needs conditions } } }`,
          { filter, most },
          key,
        )
      ).jobGraph;
    const { nodes, ...graph } = await graphOf({ groupName }, 1_000, own.key);
    expect(nodes.map(({ id }) => id)).toEqual(jobIds.slice(0, 4));
    expect(nodes.map(({ level, needs, conditions }) => [level, needs, conditions])).toEqual([
      [0, [], []],
      [0, [], []],
      [1, [1], ['START']],
      [2, [0, 2], ['OK', 'OK']],
    ]);
    expect(nodes.map(({ expectedEnd }) => expectedEnd)).toEqual([
      ...[null, '2100-01-01T00:01:00.000Z', '2100-01-01T00:01:30.000Z', '2100-01-01T00:01:36.000Z'],
    ]);
    expect(graph).toEqual({
      ...{ isWhole: true, criticalPath: [1, 2, 3], expectedEnd: '2100-01-01T00:01:36.000Z' },
    });
    // Whatever is left out is not forgotten in what is expected.
    const { nodes: last, isWhole } = await graphOf({ ids: jobIds.slice(2) }, 2, own.key);
    expect(isWhole).toBe(false);
    expect(last.map(({ needs }) => needs)).toEqual([[], [0]]);
    expect(last[0]).toMatchObject({ expectedEnd: '2100-01-01T00:01:30.000Z' });
    expect((await graphOf({ groupName }, 1_000, other.key)).nodes).toEqual([]);
    const { errors } = await api.ask('{ jobGraph(filter: {}, most: 10001) { isWhole } }', {}, own.key);
    expect(errors?.[0]?.message).toContain('most: 10001 is not accepted; accepted: 1 to 10000');
    await api.must(`mutation ($ids: [ID!]) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }`, {
      ids: jobIds,
    });
  });

  test('that is a workflow gives its jobs their ranks; others have none', async () => {
    const { key } = await api.user('USER', unique('ranked'));
    const jobs = [
      { ref: 'a', estimateS: 10, outputMb: 50 },
      { ref: 'b', estimateS: 20, needs: need([{ ref: 'a' }]) },
      { ref: 'c', groupName: 'ranked', estimateS: 300, needs: need([{ ref: 'a' }]) },
      { estimateS: 5, needs: need([{ ref: 'b' }, { group: 'ranked' }]) },
      { estimateS: 7 },
    ].map((one) => ({ ...one, held: true }));
    const send = () => submit(jobs, { idempotencyKey: 'ranks' }, key);
    const { jobIds } = await send();
    const { nodes } = (
      await api.must<{ jobs: { nodes: { workflow: { rankS: number; place: number } | null }[] } }>(
        'query ($ids: [ID!]) { jobs(filter: { ids: $ids }, orderBy: { direction: ASC }) { nodes { workflow { rankS place since } } } }',
        { ids: jobIds },
        key,
      )
    ).jobs;
    const ranks = nodes.map(({ workflow }) => workflow?.rankS);
    expect(nodes.map(({ workflow }) => workflow?.place)).toEqual([1, 3, 2, 4, undefined]);
    const [a = 0, b = 0, c = 0, d = 0] = ranks as number[];
    // The machines may be quicker than the reference, all alike.
    expect(a / d).toBeCloseTo(315 / 5, 6);
    expect(b / d).toBeCloseTo(25 / 5, 6);
    expect(c / d).toBeCloseTo(305 / 5, 6);
    // They are no part of what a retry is compared with.
    expect((await send()).jobIds).toEqual(jobIds);
  });

  test('that reads what nobody keeps is refused with names', async () => {
    const outputs = [
      { path: 'out/' },
      { path: '*.csv' },
      { path: 'set', keep: 'DATASET', dataset: unique('set') },
    ];
    const { jobIds } = await submit([{ held: true, outputs, groupName: 'kept', arrayIndex: 4 }]);
    const reads = (from: string, output: string, more: object = {}) => ({
      inputs: [{ from, output }],
      ...more,
    });
    const { errors } = await submit([
      { ref: 'a', outputs, held: true },
      reads('b', 'out/x'),
      reads('a', 'in/x'),
      reads('job_999999', 'out/x'),
      reads('group:kept', 'out/x', { arrayIndex: 5 }),
      { ref: 'c', ...reads('c', 'x') },
    ]);
    expect(errors.map(({ index, field }) => `${index} ${field}`)).toEqual([
      ...['1 inputs[0].from', '3 inputs[0].from', '4 inputs[0].from', '5 needs'],
    ]);
    expect(errors[0]?.message).toBe(
      'jobs.1: inputs.0.from names ref b, which is not a ref in the submission; accepted: refs of the submission',
    );
    expect((await submit([reads('a', '../x')])).errors[0]?.field).toBe('inputs[0].output');
    const none = await submit([{ ref: 'a', outputs, held: true }, reads('a', 'in/x'), reads('a', 'set/x')]);
    expect(none.errors.map(({ index, message }) => `${index} ${message}`)).toEqual([
      '1 inputs[0].output: "in/x" is not accepted; accepted: an output of jobs[0]: out/, *.csv, set',
      '2 inputs[0].output: "set/x" is not accepted; accepted: an output of jobs[0]: out/, *.csv, set',
    ]);
    const INPUTS =
      'query ($id: ID!) { job(id: $id) { inputs { sizeMb site { id } dataset { id } from { id } output } } }';
    const read = await submit([
      {
        inputs: [
          { from: jobIds[0], output: 'set', sizeMb: 7 },
          { from: 'group:kept', output: 'x.csv' },
        ],
      },
      reads('group:kept', 'out/x', { arrayIndex: 4 }),
    ]);
    expect(read.errors).toEqual([]);
    const { job: first } = await api.must<{ job: Json }>(INPUTS, { id: read.jobIds[0] });
    const from = { site: null, dataset: null, from: { id: jobIds[0] } };
    expect(first.inputs).toEqual([
      { ...from, sizeMb: 7, output: 'set' },
      { ...from, sizeMb: 0, output: 'x.csv' },
    ]);
    const { whyWaiting } = await job(read.jobIds[0] as string);
    expect((whyWaiting as Json).message).toContain(`${jobIds[0]} (HELD) must complete and keep set, x.csv`);
    await api.must('mutation { cancelJobs(input: { selection: { all: true } }) { jobIds } }');
  });

  test('that is retried gives the same jobs; with other needs it is refused', async () => {
    const jobs = (condition: string) => [
      { ref: 'a', held: true },
      { needs: need([{ ref: 'a', condition }]) },
    ];
    const key = { idempotencyKey: unique('key') };
    const first = await submit(jobs('OK'), key);
    expect(await submit(jobs('OK'), key)).toEqual({ ...first, repeated: true });
    expect((await submit(jobs('ANY'), key)).errors).toMatchObject([
      { code: 'IDEMPOTENCY_KEY_REUSED', index: null },
    ]);
    const waiting = await job(first.jobIds[1] as string);
    expect(waiting).toMatchObject({
      state: 'BLOCKED',
      eligibleAt: null,
      needs: [{ expression: 'ALL', of: [{ job: { id: first.jobIds[0] }, condition: 'OK', minDelayS: 0 }] }],
      whyWaiting: { code: 'NEEDS' },
    });
    expect((waiting.whyWaiting as Json).message).toContain(`${first.jobIds[0]} (HELD) must complete`);
    expect(await job(first.jobIds[0] as string)).toMatchObject({ neededBy: [{ id: first.jobIds[1] }] });
    await api.must('mutation { cancelJobs(input: { selection: { all: true } }) { jobIds } }');
  });
});

describe('with engines', () => {
  beforeAll(async () => {
    await startWorker();
  });

  test('a job runs after others, also ones that ended long ago; a failure cancels what needs success', async () => {
    const group = unique('group');
    const first = await submit([{ groupName: group }, { groupName: group, held: true }]);
    await ends([first.jobIds[0] as string]);
    const { jobIds } = await submit([
      { needs: need([{ job: first.jobIds[0] }]) },
      { ref: 'all', needs: need([{ group }]) },
      { needs: need([{ ref: 'all' }]) },
      {
        needs: need([{ ref: 'all', condition: 'NOT_OK' }, { group: `x${group}` }], 'ANY'),
        groupName: `x${group}1`,
      },
      { groupName: `x${group}` },
    ]);
    await ends([jobIds[0] as string]);
    expect(await job(jobIds[1] as string)).toMatchObject({ state: 'BLOCKED' });
    failing.add(numberOf(first.jobIds[1] as string));
    await api.must(
      'mutation ($ids: [ID!]!) { releaseJobs(input: { selection: { ids: $ids } }) { jobIds } }',
      {
        ids: [first.jobIds[1]],
      },
    );
    await ends(jobIds);
    const cancelled = { state: 'CANCELLED', cause: 'DEPENDENCY_FAILED' };
    expect(await job(jobIds[1] as string)).toMatchObject({
      ...cancelled,
      message: `${first.jobIds[1]}, on which it depends, did not end or start as required`,
      unmetBecause: { id: first.jobIds[1] },
    });
    expect(await job(jobIds[2] as string)).toMatchObject({ ...cancelled, unmetBecause: { id: jobIds[1] } });
    expect(await job(jobIds[3] as string)).toMatchObject({ state: 'COMPLETED' });
  });

  test('a time, a bulk group, and each job after the one with its index', async () => {
    const SUBMIT_GROUP = `mutation ($input: SubmitJobGroupInput!) { submitJobGroup(input: $input) {
      jobGroup { id } jobIds errors { field message } } }`;
    const submitGroup = async (template: object, count: number) =>
      (
        await api.must<{
          submitJobGroup: { jobGroup: { id: string } | null; jobIds: string[]; errors: Json[] };
        }>(SUBMIT_GROUP, { input: { count, template: { command: 'true', estimateS: 1, ...template } } })
      ).submitJobGroup;
    const before = await submitGroup({ held: true }, 3);
    const of = [{ jobGroup: before.jobGroup?.id, condition: 'CORRESPONDING' }];
    expect((await submitGroup({ needs: need(of) }, 4)).errors).toHaveLength(1);
    const after = await submitGroup({ needs: need(of) }, 3);
    const soon = new Date(Date.now() + 1_500).toISOString();
    const last = await submit([
      { notBefore: soon, needs: need([{ jobGroup: before.jobGroup?.id, condition: 'ANY' }]) },
      { notBefore: soon },
    ]);
    expect(await job(last.jobIds[1] as string)).toMatchObject({
      state: 'BLOCKED',
      notBefore: soon,
      whyWaiting: { code: 'NOT_BEFORE' },
    });
    const release = (ids: readonly (string | undefined)[]) =>
      api.must('mutation ($ids: [ID!]!) { releaseJobs(input: { selection: { ids: $ids } }) { jobIds } }', {
        ids,
      });
    failing.add(numberOf(before.jobIds[2] as string));
    await release([before.jobIds[1], before.jobIds[2]]);
    await ends([after.jobIds[1] as string, after.jobIds[2] as string, last.jobIds[1] as string]);
    expect(await job(after.jobIds[0] as string)).toMatchObject({ state: 'BLOCKED' });
    expect(await job(after.jobIds[1] as string)).toMatchObject({ state: 'COMPLETED' });
    expect(await job(after.jobIds[2] as string)).toMatchObject({ cause: 'DEPENDENCY_FAILED' });
    await release([before.jobIds[0]]);
    await ends([...after.jobIds, ...last.jobIds]);
    const timed = await job(last.jobIds[1] as string);
    expect(Date.parse(timed.eligibleAt as string)).toBeGreaterThanOrEqual(Date.parse(soon));
  });

  test('a long chain is canceled with its first job, by one transaction', async () => {
    const jobs = Array.from({ length: 500 }, (_, i) => ({
      ...{ ref: `r${i}`, held: i === 0 },
      needs: i === 0 ? [] : [{ of: [{ ref: `r${i - 1}` }] }],
    }));
    const { jobIds } = await submit(jobs);
    await api.must('mutation ($ids: [ID!]!) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }', {
      ids: [jobIds[0]],
    });
    await ends(jobIds);
    const { rows } = await api.db.pool.query(
      `SELECT count(DISTINCT xmin::text)::int AS transactions, count(*)::int AS jobs FROM jobs WHERE cause = 'DEPENDENCY_FAILED' AND id = ANY ($1)`,
      [jobIds.map(numberOf)],
    );
    expect(rows).toEqual([{ transactions: 1, jobs: jobs.length - 1 }]);
  });

  test('random graphs: none starts before what it needs, none waits for what cannot come, though workers are killed', async () => {
    // More by choice: GRAPH_JOBS=2000.
    const count = Number(process.env.GRAPH_JOBS ?? 150);
    const shapes = drawGraph(new RandomStream(SEED, 'graph of needs'), count);
    const jobs = asSubmitted(shapes).map((job, i) => ({ ...job, held: i === 0 }));
    const { jobIds, errors } = await submit(jobs);
    expect(errors).toEqual([]);
    for (const [i, { fails }] of shapes.entries()) if (fails) failing.add(numberOf(jobIds[i] as string));
    await api.must(
      'mutation ($ids: [ID!]!) { releaseJobs(input: { selection: { ids: $ids } }) { jobIds } }',
      {
        ids: [jobIds[0]],
      },
    );
    for (const part of [0, 1, 2]) {
      await until('more have ended', async () => (await endedOf(jobIds)) > (part * count) / 3);
      const killed = workers[0] as Worker;
      await startWorker();
      kill(killed);
      await stopWorker(killed);
    }
    await ends(jobIds);

    const { rows } = await api.db.pool.query(
      `SELECT j.id, j.state, j.cause, j.ended_at, (SELECT min(started_at) FROM runs r WHERE r.job_id = j.id) AS started_at,
              (SELECT min(assigned_at) FROM runs r WHERE r.job_id = j.id) AS assigned_at
         FROM jobs j WHERE id = ANY ($1) ORDER BY id`,
      [jobIds.map(numberOf)],
    );
    const expected = endsOf(shapes);
    for (const [i, shape] of shapes.entries()) {
      const what = `job ${i} of graph ${SEED}`;
      const { state, assigned_at } = rows[i];
      expect(`${what} ${state}`).toBe(`${what} ${expected[i]?.state}`);
      expect(assigned_at !== null, what).toBe(state !== 'CANCELLED');
      if (!expected[i]?.met || assigned_at === null) continue;
      const at = (on: number, when: 'begins' | 'ends') =>
        Number(when === 'begins' ? rows[on].started_at : rows[on].ended_at);
      expect(Number(assigned_at), what).toBeGreaterThanOrEqual(couldRunFrom(shape, expected, at));
    }
  });
});

describe('a rerun', () => {
  const RERUN =
    'mutation ($input: RerunJobsInput!) { rerunJobs(input: $input) { jobIds repointedJobIds jobs { id rerunOf { id } state } } }';
  interface Rerun {
    jobIds: string[];
    repointedJobIds: string[];
    jobs: { id: string; rerunOf: { id: string } }[];
  }
  const rerun = async (input: object, key: string): Promise<Rerun> =>
    (await api.must<{ rerunJobs: Rerun }>(RERUN, { input }, key)).rerunJobs;
  const refused = async (input: object, key: string): Promise<string> => {
    const { errors } = await api.ask(RERUN, { input }, key);
    return `${errors?.[0]?.extensions?.code} ${errors?.[0]?.message}`;
  };

  test('of a group runs what failed and what was canceled for it, to the end, and once', async () => {
    const worker = await startWorker();
    const { key } = await api.user('USER', unique('rerunner'));
    const group = unique('group');
    const { jobIds } = await submit(
      [
        { ref: 'a', groupName: group, held: true },
        { ref: 'b', groupName: group, needs: need([{ ref: 'a' }]) },
        { groupName: group, needs: need([{ ref: 'b' }]) },
      ],
      {},
      key,
    );
    const { jobs: waiting } = await api.must<{ jobs: { nodes: { id: string }[] } }>(
      'query ($filter: JobFilter!) { jobs(filter: $filter, orderBy: { direction: ASC }) { nodes { id } } }',
      { filter: { groupName: group, waitsForOthers: true } },
      key,
    );
    expect(waiting.nodes.map(({ id }) => id)).toEqual(jobIds.slice(1));
    failing.add(numberOf(jobIds[0] as string));
    await api.must(
      'mutation ($ids: [ID!]) { releaseJobs(input: { selection: { ids: $ids } }) { jobIds } }',
      { ids: jobIds },
      key,
    );
    await ends(jobIds);
    // Twice at once is once.
    const both = await Promise.all([1, 2].map(() => rerun({ groupName: group }, key)));
    const jobs = both.flatMap((one) => one.jobs);
    expect(jobs.map((one) => one.rerunOf.id)).toEqual(jobIds);
    const copies = jobs.map(({ id }) => id);
    await ends(copies);
    for (const id of copies) expect(await job(id, key)).toMatchObject({ state: 'COMPLETED' });
    expect(await job(jobIds[2] as string, key)).toMatchObject({
      state: 'CANCELLED',
      cause: 'DEPENDENCY_FAILED',
    });
    expect(await rerun({ groupName: group, only: 'FAILED' }, key)).toMatchObject({ jobIds: [] });
    // Who names the group from now on means the copies.
    const late = await submit([{ needs: need([{ group }]) }], {}, key);
    await ends(late.jobIds);
    expect(await job(late.jobIds[0] as string, key)).toMatchObject({ state: 'COMPLETED' });
    await stopWorker(worker);
  });

  test('is refused without one group, and of groups of others; what operators run again is audited', async () => {
    const own = await api.user('USER', unique('own'));
    const other = await api.user('USER', unique('other'));
    const { submitJobGroup } = await api.must<{
      submitJobGroup: { jobGroup: { id: string }; jobIds: string[] };
    }>(
      `mutation { submitJobGroup(input: { count: 2, template: { command: "x", held: true } }) { jobGroup { id } jobIds } }`,
      {},
      own.key,
    );
    const jobGroup = submitJobGroup.jobGroup.id;
    await api.must(
      `mutation { cancelJobGroup(input: { jobGroupId: "${jobGroup}" }) { cancelled } }`,
      {},
      own.key,
    );
    expect(await refused({}, own.key)).toMatch(/^BAD_USER_INPUT groupName: .*exactly one of the two/);
    expect(await refused({ groupName: 'x', jobGroupId: jobGroup }, own.key)).toMatch(
      /^BAD_USER_INPUT groupName: /,
    );
    expect(await refused({ jobGroupId: jobGroup }, other.key)).toMatch(/^NOT_FOUND /);
    const { jobIds, jobs } = await rerun({ jobGroupId: jobGroup }, api.adminKey);
    expect(jobs.map((one) => one.rerunOf.id)).toEqual(submitJobGroup.jobIds);
    const { audit } = await api.must<{ audit: { nodes: Json[] } }>(
      '{ audit(first: 1) { nodes { action target after } } }',
    );
    expect(audit.nodes[0]).toMatchObject({
      action: 'rerunJobs',
      target: jobGroup,
      after: { jobs: 2, first: jobIds[0] },
    });
    // They are jobs of whose group it is; it may have been given machines meanwhile.
    expect((await job(jobIds[0] as string, own.key)).state).toMatch(/^(QUEUED|DISPATCHED|ASSIGNED)$/);
  });
});

test('requeueing a job that has ended runs a copy of it, once; who waits for the job waits for the copy', async () => {
  const worker = await startWorker();
  const { key } = await api.user('USER', unique('requeuer'));
  const { jobIds } = await submit(
    [{ ref: 'a', held: true }, { needs: need([{ ref: 'a' }]), onUnmet: 'HOLD' }, { held: true }],
    {},
    key,
  );
  const [ended, waiting, held] = jobIds as [string, string, string];
  await api.must(
    'mutation ($ids: [ID!]) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }',
    { ids: [ended] },
    key,
  );
  await until('it is held', async () => (await job(waiting, key)).state === 'HELD');
  const requeue = async (ids: string[], by = key): Promise<Json> =>
    (
      await api.must<{ requeueJobs: Json }>(
        `mutation ($ids: [ID!]) { requeueJobs(input: { selection: { ids: $ids } }) {
          jobs { id rerunOf { id } } unchanged { id code message } } }`,
        { ids },
        by,
      )
    ).requeueJobs;
  const stranger = await api.user('USER', unique('stranger'));
  expect(await requeue([ended], stranger.key)).toMatchObject({
    jobs: [],
    unchanged: [{ code: 'NOT_FOUND' }],
  });
  const { jobs, unchanged } = (await requeue([ended, held])) as { jobs: Json[]; unchanged: Json[] };
  expect(jobs).toEqual([{ id: expect.any(String), rerunOf: { id: ended } }]);
  expect(unchanged).toMatchObject([{ id: held, code: 'CONFLICT' }]);
  const copy = jobs[0]?.id as string;
  expect(await requeue([ended])).toMatchObject({
    jobs: [],
    unchanged: [{ id: ended, message: `${ended} was rerun as ${copy}, which can be requeued` }],
  });
  await ends([copy, waiting]);
  expect(await job(waiting, key)).toMatchObject({ state: 'COMPLETED' });
  expect(await job(ended, key)).toMatchObject({ state: 'CANCELLED' });
  // One that ended well can be run again, too.
  const again = await requeue([copy]);
  expect(again).toMatchObject({ jobs: [{ rerunOf: { id: copy } }], unchanged: [] });
  await ends((again.jobs as Json[]).map(({ id }) => id as string));
  await stopWorker(worker);
});

describe('changes of jobs', () => {
  const CHANGE = `mutation ($input: UpdateJobsInput!) { updateJobs(input: $input) {
    jobIds unchanged { id code field message } } }`;
  const change = async (
    selection: object,
    set: object,
    key = api.adminKey,
    more: object = {},
  ): Promise<Json> =>
    (await api.must<{ updateJobs: Json }>(CHANGE, { input: { selection, set, ...more } }, key)).updateJobs;
  const refused = async (set: object, key = api.adminKey): Promise<string> => {
    const { errors } = await api.ask(CHANGE, { input: { selection: { all: true }, set } }, key);
    return `${errors?.[0]?.extensions?.code} ${errors?.[0]?.message}`;
  };
  const FIELDS = `query ($id: ID!) { job(id: $id) { state name estimateS runTimeLimitS memoryMbPerTask boost resourcesPerTask { kind amount }
    retry { maxRetries } events(first: 50) { nodes { kind toState note } } } }`;
  type Shown = Json & { events: { nodes: { note: string | null }[] } };
  const shown = async (id: string): Promise<Shown> => (await api.must<{ job: Shown }>(FIELDS, { id })).job;

  test('are checked as a submission is: what is wrong for all, and what for each job', async () => {
    const { key } = await api.user('USER', unique('changer'));
    const { jobIds } = await submit(
      [{ held: true }, { held: true, tasks: 50_000 }, { held: true, boost: -3 }],
      { allowUnfit: true },
      key,
    );
    for (const [set, said] of [
      [{}, 'BAD_USER_INPUT set.name: missing'],
      [{ tasks: null }, 'BAD_USER_INPUT set.tasks: null is not accepted'],
      [{ estimateS: -1 }, 'BAD_USER_INPUT set.estimateS: -1 is not accepted; accepted: 0.001 to 1000000000'],
      [{ memoryMbPerCpu: -1 }, 'BAD_USER_INPUT set.memoryMbPerCpu: -1 is not accepted'],
      [{ memoryMbPerCpu: null }, 'BAD_USER_INPUT set.memoryMbPerCpu: null is not accepted'],
      [{ boost: 5 }, 'FORBIDDEN set.boost: 5 is not accepted'],
      [{ deadline: '2001-01-01T00:00:00Z' }, 'BAD_USER_INPUT set.deadline: '],
      [{ machineConstraint: 'gen >=' }, 'BAD_USER_INPUT set.machineConstraint: '],
      [{ retry: { maxRetries: 101 } }, 'BAD_USER_INPUT set.retry.maxRetries: 101'],
      [{ needs: need([{ ref: 'a' }]) }, 'BAD_USER_INPUT set.needs'],
      [{ needs: need([{ job: 'job_999999' }]) }, 'BAD_USER_INPUT set.needs'],
      [{ atOnce: -1 }, 'BAD_USER_INPUT set.atOnce: -1 is not accepted; accepted: 0 to 2147483647'],
      [{ atOnce: null }, 'BAD_USER_INPUT set.atOnce: null is not accepted'],
      [{ atOnce: 1, needs: [] }, 'BAD_USER_INPUT set.atOnce: 1 is not accepted; accepted: without needs'],
    ] as const)
      expect(await refused(set, key)).toContain(said);
    const { jobIds: changed, unchanged } = await change(
      { ids: [...jobIds, 'job_999999'] },
      { cpusPerTask: 21 },
      key,
      {
        allowUnfit: true,
      },
    );
    expect(changed).toEqual([jobIds[0], jobIds[2]]);
    expect(unchanged).toMatchObject([
      { id: 'job_999999', code: 'NOT_FOUND', field: null },
      { id: jobIds[1], code: 'BAD_USER_INPUT', field: 'tasks', message: expect.stringContaining('1050000') },
    ]);
    for (const set of [{ memoryMbPerTask: 1e9 }, { memoryMbPerCpu: 1e8 }]) {
      const unfit = await change({ ids: jobIds.slice(0, 1) }, set, key);
      expect(unfit.unchanged).toMatchObject([{ code: 'NEVER_FITS', field: 'memoryMbPerTask' }]);
    }
    expect(await change({ ids: jobIds }, { memoryMbPerCpu: 5 }, key, { allowUnfit: true })).toMatchObject({
      jobIds,
    });
    const memory = await Promise.all(jobIds.map(async (id) => (await shown(id)).memoryMbPerTask));
    expect(memory).toEqual([21 * 5, 5, 21 * 5]);
    // What an operator raised stays so when its user changes something else.
    await api.must(
      'mutation ($ids: [ID!]) { reprioritizeJobs(input: { selection: { ids: $ids }, boost: 9 }) { jobIds } }',
      {
        ids: jobIds.slice(2),
      },
    );
    expect((await change({ ids: jobIds.slice(2) }, { name: 'x' }, key)).jobIds).toEqual(jobIds.slice(2));
    expect(await shown(jobIds[2] as string)).toMatchObject({ boost: 9, name: 'x' });
  });

  test("of many jobs by a filter, are in the audit log if an operator makes them, and are nobody else's", async () => {
    const [owner, other] = [await api.user('USER', unique('own')), await api.user('USER', unique('other'))];
    const groupName = unique('many');
    const { jobIds } = await submit(
      Array.from({ length: 1_000 }, (_, i) => ({ held: true, groupName, name: `n${i}` })),
      {},
      owner.key,
    );
    const filter = { groupName };
    expect((await change({ filter }, { estimateS: 50 }, other.key)).jobIds).toEqual([]);
    const set = { estimateS: 120, runTimeLimitS: 240, retry: { maxRetries: 3 }, memoryMbPerTask: 7 };
    expect(await change({ filter }, set)).toEqual({ jobIds, unchanged: [] });
    const { events, ...job } = await shown(jobIds[999] as string);
    expect(job).toMatchObject({ ...set, state: 'HELD', name: 'n999' });
    expect(events.nodes.at(-1)).toMatchObject({
      kind: 'JOB_CHANGED',
      note: expect.stringContaining('estimateS 1 → 120; runTimeLimitS none → 240'),
    });
    const { audit } = await api.must<{ audit: { nodes: object[] } }>(
      '{ audit(first: 1) { nodes { action target after } } }',
    );
    expect(audit.nodes[0]).toMatchObject({ action: 'changeJobs', after: { jobs: 1_000, set } });
    await api.must('mutation ($s: JobSelection!) { cancelJobs(input: { selection: $s }) { jobIds } }', {
      s: { filter },
    });
  });

  test('of what a job waits for let it run when that has happened', async () => {
    await startWorker();
    const { jobIds } = await submit([{ held: true }, {}, { notBefore: '2999-01-01T00:00:00Z' }]);
    const [held, first, timed] = jobIds as [string, string, string];
    await ends([first]);
    const set = { needs: need([{ job: first }]), notBefore: null, name: 'goes on' };
    expect((await change({ ids: [timed, held] }, set)).jobIds).toEqual([held, timed]);
    expect((await change({ ids: [first] }, { name: 'x' })).unchanged).toMatchObject([
      { id: first, code: 'CONFLICT', field: null, message: expect.stringContaining('is COMPLETED') },
    ]);
    await ends([timed]);
    expect(await job(held)).toMatchObject({ state: 'HELD', needs: [{ of: [{ job: { id: first } }] }] });
    await api.must(`mutation { releaseJobs(input: { selection: { ids: ["${held}"] } }) { jobIds } }`);
    await ends([held]);
    for (const worker of [...workers]) await stopWorker(worker);
  });
});

test('what is missing is told with when it is expected, or why that is not known', async () => {
  const { jobIds } = await submit([
    { ref: 'a', estimateS: 100 },
    { ref: 'held', held: true },
    { ref: 'b', estimateS: 50, needs: need([{ ref: 'a', minDelayS: 7 }]) },
    { ref: 'c', needs: need([{ ref: 'b' }]) },
    { needs: need([{ ref: 'held' }, { ref: 'a', condition: 'NOT_OK' }, { ref: 'c' }]) },
    { needs: need([{ ref: 'held' }, { ref: 'a', condition: 'START' }], 'ANY') },
  ]);
  const [a, held, b, c, unknown, any] = jobIds as [string, string, string, string, string, string];
  interface Why {
    earliestStart: string | null;
    missing: { term: { job: { id: string } }; expectedAt: string | null; unknown: string | null }[];
  }
  const why = async (id: string): Promise<Why> =>
    (
      await api.must<{ job: { whyWaiting: Why } }>(
        'query ($id: ID!) { job(id: $id) { whyWaiting { earliestStart missing { term { job { id } } expectedAt unknown } } } }',
        { id },
      )
    ).job.whyWaiting;
  const seconds = (at: string | null | undefined): number => Date.parse(at as string) / 1000;
  const [ofB, ofC, ofUnknown, ofAny] = await Promise.all([b, c, unknown, any].map(why));
  expect(ofB?.missing).toEqual([{ term: { job: { id: a } }, expectedAt: ofB?.earliestStart, unknown: null }]);
  expect(ofC?.missing).toMatchObject([{ term: { job: { id: b } }, unknown: null }]);
  // All start when what they need has ended: 107 s from a time that passes meanwhile, and 50 s more.
  expect(seconds(ofC?.earliestStart) - seconds(ofB?.earliestStart)).toBeGreaterThan(49);
  expect(seconds(ofB?.earliestStart)).toBeGreaterThan(seconds(ofAny?.earliestStart) + 100);
  expect(ofUnknown).toMatchObject({
    earliestStart: null,
    missing: [
      { term: { job: { id: held } }, expectedAt: null, unknown: 'it is held' },
      { term: { job: { id: a } }, expectedAt: null, unknown: 'failures cannot be predicted' },
      { term: { job: { id: c } }, expectedAt: expect.any(String), unknown: null },
    ],
  });
  await api.must('mutation ($ids: [ID!]) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }', {
    ids: jobIds,
  });
});
