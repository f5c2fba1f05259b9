/** What-ifs over real HTTP, WebSockets and Postgres, computed by workers as a service has them. */
import { afterEach, describe, expect, test } from 'vitest';
import { DEFAULT_POLICY, type Policy } from '../../src/core/policy.js';
import {
  createSimulationWorker,
  type Simulate,
  type SimulationWorker,
} from '../../src/engine/simulations.js';
import { type WhatIfResult, whatIf } from '../../src/simulator/what-if.js';
import { jobFromArray } from '../../src/store/images.js';
import { openDatabase } from '../../src/store/pool.js';
import { type RecordedJob, Simulations, type SimulationTask } from '../../src/store/simulations.js';
import { quietLog } from '../engine/support.js';
import { dispatched, ended, move, newJob, report, start, submit, T0, vouch } from '../store/world.js';
import { type Json, unique, withApi } from './support/api.js';

const api = withApi();
const FCFS: Policy = { ...DEFAULT_POLICY, local: { kind: 'fcfs' } };
const iso = (s: number): string => new Date(s * 1000).toISOString();

interface Simulation {
  id: string;
  state: string;
  progress: number;
  endedAt: string | null;
  policyVersion: number;
  result: WhatIfResult | null;
  message: string | null;
  user: { id: string };
}
const FIELDS = `id state progress endedAt policyVersion message user { id }
  result { jobs leftOut happened { waitMeanS } all { baseline { ended neverStarted waitMeanS deadlineMisses } candidate { ended waitMeanS } difference { ended deadlineMisses waitMeanS } }
  userClasses { userClass comparison { baseline { ended } } } sites { site { id } comparison { baseline { ended utilization } candidate { utilization } } ownScheduler { message runs waitMeanS at stale } } }`;
const SIMULATE = `mutation ($input: CreateSimulationInput!) { createSimulation(input: $input) { simulation { ${FIELDS} } } }`;
const WINDOW = { candidate: FCFS, from: iso(T0 - 1), to: iso(T0 + 1000) };

const workers: SimulationWorker[] = [];
afterEach(async () => {
  for (const worker of workers.splice(0)) await worker.stop();
  const { pool } = api.db;
  await pool.query(
    `UPDATE simulations SET state = 'CANCELLED', ended_at = now(), trace = NULL WHERE ended_at IS NULL`,
  );
});

/** In this thread: the tests run from sources, and a thread needs what is built. The command's test has the thread. */
const here: Simulate = async (task, { onProgress }) => whatIf(task, onProgress);

/** As a process of its own would have it. */
function startWorker(simulate: Simulate, config = {}, leaseS = 15): SimulationWorker {
  const database = openDatabase({
    url: api.db.url,
    poolSize: 2,
    connectTimeoutMs: 5_000,
    statementTimeoutMs: 30_000,
    applicationName: 'test-simulations',
  });
  const worker = createSimulationWorker({
    simulations: new Simulations(database, leaseS),
    simulate,
    queueConnection: { kind: 'postgres', url: api.db.url },
    log: quietLog,
    config: { sweepEveryMs: 50, touchEveryMs: 50, ...config },
  });
  worker.start();
  const stoppable = {
    ...worker,
    async stop() {
      await worker.stop();
      await database.close();
    },
  };
  workers.push(stoppable);
  return stoppable;
}

async function simulate(change: object = {}, key = api.adminKey): Promise<Simulation> {
  return (
    await api.must<{ createSimulation: { simulation: Simulation } }>(
      SIMULATE,
      { input: { ...WINDOW, ...change } },
      key,
    )
  ).createSimulation.simulation;
}
async function simulation(id: string): Promise<Simulation> {
  const query = `query ($id: ID!) { simulation(id: $id) { ${FIELDS} } }`;
  return (await api.must<{ simulation: Simulation }>(query, { id })).simulation;
}
const cancel = (id: string) =>
  api.ask(`mutation { cancelSimulation(input: { simulationId: "${id}" }) { simulation { state endedAt } } }`);

/** Never ends by itself; says how far it is. */
const endless: Simulate = (_, { onProgress, signal }) =>
  new Promise((_resolve, reject) => {
    signal.throwIfAborted();
    onProgress(0.25);
    signal.addEventListener('abort', () => reject(signal.reason));
  });

/** A site of 4 CPUs and a recorded past: 3 wide, 4 wide, 1 narrow job that could have gone ahead. */
async function record(): Promise<void> {
  const { pool } = api.db;
  if ((await pool.query('SELECT 1 FROM jobs')).rowCount) return;
  const {
    createSite: { site },
  } = await api.must<{ createSite: { site: { id: string } } }>(
    `mutation { createSite(input: { name: "${unique('past')}" }) { site { id } } }`,
  );
  await api.must(
    `mutation { createMachines(input: { machines: [{ siteId: "${site.id}", name: "m", cpus: 4, memoryMb: 100, benchmark: 200 }] }) { machines { id } } }`,
  );
  const { store } = api.parts;
  const siteId = Number(site.id.split('_')[1]);
  const { rows } = await pool.query('SELECT id FROM machines');
  const machineId = rows[0].id as number;
  await vouch(store, siteId, [machineId], T0);
  const { rows: users } = await pool.query(`SELECT id FROM users WHERE name = 'admin'`);
  const world = { store } as Parameters<typeof submit>[0];
  const shape = (cpusPerTask: number, estimateS: number, change = {}) =>
    newJob({ cpusPerTask, estimateS, benchmark: 200, ...change });
  const [first] = await dispatched(world, users[0].id, siteId, [shape(3, 400)]);
  await submit(world, users[0].id, [shape(4, 10, { deadline: T0 + 50 }), shape(1, 20)], T0 + 1);
  await store.applyStarts(siteId, [start(first as number, siteId, { [machineId]: 1 })], null, {
    policyVersion: 1,
    cycle: 'past',
    now: T0,
  });
  // It was planned for 100 s (of an estimate of 400) and took 25: a quarter of the estimate, on the machine of the estimate.
  await store.reportRuns(
    siteId,
    [report(first as number, 1, { at: T0 }), ended(first as number, 1, { at: T0 + 25 })],
    3,
  );
}

describe('a what-if', () => {
  test('compares the policy in force with a candidate on what was recorded', async () => {
    await record();
    startWorker(here);
    const asked = await simulate({ reason: 'narrow jobs wait' });
    expect(asked).toMatchObject({ state: 'QUEUED', progress: 0, policyVersion: 1, endedAt: null });
    await expect.poll(async () => (await simulation(asked.id)).state).toBe('DONE');
    const { result, progress, endedAt } = await simulation(asked.id);
    expect({ progress, ended: endedAt !== null }).toEqual({ progress: 1, ended: true });
    // The first runs 100 s. Then the second, and only then the third; in force is a policy that lets it go ahead.
    expect(result).toMatchObject({
      jobs: 3,
      all: {
        baseline: { ended: 3, neverStarted: 0, waitMeanS: 99 / 3, deadlineMisses: 1 },
        candidate: { ended: 3, waitMeanS: (99 + 109) / 3 },
        difference: { ended: 0, deadlineMisses: 0 },
      },
      userClasses: [{ userClass: 'REGULAR', comparison: { baseline: { ended: 3 } } }],
      sites: [
        {
          site: { id: expect.stringMatching(/^site_\d+$/) },
          comparison: {
            baseline: { ended: 3, utilization: 360 / 440 },
            candidate: { utilization: 360 / 520 },
          },
        },
      ],
    });
    expect(result?.all.difference.waitMeanS).toBeCloseTo(109 / 3, 9);
    const { audit } = await api.must<{ audit: { nodes: Json[] } }>(
      '{ audit(first: 1) { nodes { action target reason } } }',
    );
    expect(audit.nodes).toEqual([{ action: 'simulate', target: asked.id, reason: 'narrow jobs wait' }]);
  });

  test('is simulated on what the service knows of data and shares', async () => {
    await record();
    const {
      createUser: { user },
    } = await api.must<{ createUser: { user: { id: string } } }>(
      `mutation { createUser(input: { name: "${unique('u')}", role: USER, quotaShare: 3 }) { user { id } } }`,
    );
    const {
      createSite: { site: far },
    } = await api.must<{ createSite: { site: { id: string } } }>(
      `mutation { createSite(input: { name: "${unique('far')}" }) { site { id } } }`,
    );
    const {
      createScheduler: { scheduler: above },
    } = await api.must<{ createScheduler: { scheduler: { id: string } } }>(
      'mutation { createScheduler(input: { name: "west" }) { scheduler { id } } }',
    );
    await api.must(
      `mutation { updateSite(input: { siteId: "${far.id}", schedulerId: "${above.id}" }) { site { id } } }`,
    );
    const { rows } = await api.db.pool.query('SELECT min(id) AS id FROM sites');
    const [from, to] = [Number(far.id.split('_')[1]), rows[0].id as number];
    await api.must(
      'mutation ($datasets: [DatasetInput!]!) { importDatasets(input: { datasets: $datasets }) { created } }',
      { datasets: [{ name: 'sky', sizeMb: 500, replicaSiteIds: [far.id] }] },
    );
    await api.must(
      'mutation ($links: [LinkInput!]!) { setLinkValues(input: { links: $links }) { links { loss } } }',
      {
        links: [{ fromSiteId: far.id, toSiteId: `site_${to}`, bandwidthMbPerS: 20, rttS: 0.5, loss: 0.1 }],
      },
    );
    let seen: SimulationTask | null = null;
    startWorker(async (task) => {
      seen = task;
      return whatIf(task);
    });
    const asked = await simulate();
    await expect.poll(async () => (await simulation(asked.id)).state).toBe('DONE');
    const schedulerId = Number(above.id.split('_')[1]);
    expect(seen).toMatchObject({
      schedulers: [{ id: schedulerId, name: 'west', parentId: null }],
      sites: expect.arrayContaining([expect.objectContaining({ id: from, schedulerId })]),
      datasets: [{ sizeMb: 500, siteIds: [from] }],
      links: [{ fromSiteId: from, toSiteId: to, bandwidthMbPerS: 20, rttS: 0.5, loss: 0.1 }],
      quotas: [{ userId: Number(user.id.split('_')[1]), share: 3 }],
    });
  });

  test('respects the holds that there were in the window, and no others', async () => {
    await record();
    const { pool } = api.db;
    const {
      rows: [{ siteId, userId }],
    } = await pool.query(`SELECT site_id AS "siteId", (SELECT min(id) FROM users) AS "userId" FROM machines`);
    const hold = async (from: number, to: number, ended: number | null): Promise<number> => {
      const { rows } = await pool.query(
        `WITH made AS (INSERT INTO holds (kind, site_id, user_id, on_conflict, created_at, ended_at)
           VALUES ('MAINTENANCE', $1, $2, CASE WHEN $6::float8 IS NULL THEN 'AFTER_JOBS' ELSE 'PREEMPT' END, to_timestamp($3), to_timestamp($6)) RETURNING id)
         INSERT INTO hold_times (hold_id, from_at, to_at, over) SELECT id, to_timestamp($4), to_timestamp($5), $6::float8 IS NOT NULL FROM made
         RETURNING id`,
        [siteId, userId, T0 - 100, from, to, ended],
      );
      return rows[0].id;
    };
    await hold(T0 - 50, T0 - 10, T0 - 10);
    const kept = await hold(T0 + 500, T0 + 700, null);
    const canceled = await hold(T0 + 300, T0 + 400, T0 + 200);
    let seen: SimulationTask | null = null;
    startWorker(async (task) => {
      seen = task;
      return whatIf(task);
    });
    const asked = await simulate({ acceptDistance: true });
    await expect.poll(async () => (await simulation(asked.id)).state).toBe('DONE');
    expect(seen).toMatchObject({
      holds: [
        {
          siteId,
          madeAt: T0 - 100,
          endedAt: null,
          preempts: false,
          held: { id: kept, from: T0 + 500, to: T0 + 700, siteId },
        },
        { endedAt: T0 + 200, preempts: true, held: { id: canceled, from: T0 + 300, to: T0 + 400 } },
      ],
    });
    // None of the jobs has a limit: they run behind the window.
    const { baseline } = (await simulation(asked.id)).result?.all ?? {};
    expect(baseline?.ended).toBe(3);
    expect(baseline?.waitMeanS).toBeGreaterThan(690);

    const trace = await simulate({
      from: null,
      to: null,
      trace: '1 0 0 10 1 -1 -1 1 20 -1 1 1 1 -1 1 -1 -1 -1',
    });
    await expect.poll(async () => (await simulation(trace.id)).state).toBe('DONE');
    expect(seen).toMatchObject({ holds: [] });
    await pool.query('DELETE FROM hold_times');
    await pool.query('DELETE FROM holds');
  });

  test('is simulated on devices and labels, with shapes and classes; what was stopped for others has its whole run before it', async () => {
    await record();
    const { store, pool } = { store: api.parts.store, pool: api.db.pool };
    const {
      createSite: { site: cards },
    } = await api.must<{ createSite: { site: { id: string } } }>(
      `mutation { createSite(input: { name: "${unique('cards')}" }) { site { id } } }`,
    );
    await api.must(
      `mutation { createMachines(input: { machines: [{ siteId: "${cards.id}", name: "box", cpus: 4, memoryMb: 100, benchmark: 200,
         labels: [{ name: "rack", value: "7" }], devices: [{ id: "g0", model: "a100" }, { id: "g1", model: "a100" }] }] }) { machines { id } } }`,
    );
    const siteId = Number(cards.id.split('_')[1]);
    const [{ rows: users }, { rows: machines }] = await Promise.all([
      pool.query(`SELECT id FROM users WHERE name = 'admin'`),
      pool.query('SELECT id FROM machines WHERE site_id = $1', [siteId]),
    ]);
    const [userId, machineId] = [users[0].id, machines[0].id as number];
    const then = T0 + 50_000;
    await vouch(store, siteId, [machineId], then);
    const world = { store } as Parameters<typeof submit>[0];
    const shape = {
      estimateS: 400,
      benchmark: 200,
      resourcesPerTask: { gpu: 2 },
      machineConstraint: 'rack = 7',
    };
    const asked = [newJob(shape), newJob({ ...shape, preemptionClass: 5, exclusive: 'MACHINE' })];
    const [stopped, urgent] = (await submit(world, userId, asked, then)) as [number, number];
    const context = { policyVersion: 1, cycle: 'then', now: then };
    await store.applyMoves([move(stopped, siteId), move(urgent, siteId)], context);
    await store.applyStarts(siteId, [start(stopped, siteId, { [machineId]: 1 })], null, context);
    await store.reportRuns(siteId, [report(stopped, 1, { at: then })], 3);
    const room = { siteId, at: then + 25, allocations: [{ machineId, tasks: 1 }] };
    const victims = [{ jobId: stopped, epoch: 1, lostWork: 25, graceS: 1, requeue: true }];
    await store.preempt(
      siteId,
      [{ jobId: urgent, siteId, class: null, preemptionClass: 5, victims, room }],
      context,
    );
    const killed = { at: then + 25, cause: 'CANCELLED_BY_USER', exitCode: null, signal: 'SIGTERM' } as const;
    await store.reportRuns(siteId, [ended(stopped, 1, killed)], 3);

    let seen: SimulationTask | null = null;
    startWorker(async (task) => {
      seen = task;
      return whatIf(task);
    });
    const candidate = { ...FCFS, preemption: { graceS: 30, exemptS: 60 } };
    const window = { candidate, from: iso(then - 1), to: iso(then + 1000), acceptDistance: true };
    const { id } = await simulate(window);
    await expect.poll(async () => (await simulation(id)).state).toBe('DONE');
    const task = seen as SimulationTask | null;
    expect(task?.candidate.preemption).toMatchObject({ graceS: 30, exemptS: 60 });
    expect(task?.machines.find((one) => one.id === machineId)).toMatchObject({
      labels: { rack: '7' },
      resources: { gpu: 2 },
      devices: [{ id: 'g0' }, { id: 'g1' }],
    });
    const recorded = task?.pages.flatMap((page) => JSON.parse(page) as RecordedJob[]) ?? [];
    const found = new Map(
      recorded.map(([array, run]) => [jobFromArray(array).id, { ...jobFromArray(array), run }]),
    );
    expect(found.get(stopped)).toMatchObject({ ...shape, preemptionClass: 0, run: null });
    expect(found.get(urgent)).toMatchObject({
      ...shape,
      preemptionClass: 5,
      exclusive: 'MACHINE',
      run: null,
    });
    expect((await simulation(id)).result?.all.baseline.neverStarted).toBe(0);
    await api.must('mutation ($ids: [ID!]!) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }', {
      ids: [`job_${stopped}`, `job_${urgent}`],
    });
  });

  test('has jobs wait at a site that schedules itself as was observed there, and says so', async () => {
    const { store, pool } = { store: api.parts.store, pool: api.db.pool };
    const name = unique('alps');
    const {
      createSite: { site: alps },
    } = await api.must<{ createSite: { site: { id: string } } }>(
      `mutation { createSite(input: { name: "${name}", localPolicy: { kind: "external" } }) { site { id } } }`,
    );
    await api.must(
      `mutation { createMachines(input: { machines: [{ siteId: "${alps.id}", name: "n1", cpus: 4, memoryMb: 100, benchmark: 200, labels: [{ name: "rack", value: "alps" }] }] }) { machines { id } } }`,
    );
    const siteId = Number(alps.id.split('_')[1]);
    const { rows: users } = await pool.query(`SELECT id FROM users WHERE name = 'admin'`);
    const then = T0 + 90_000;
    const world = { store } as Parameters<typeof submit>[0];
    const shape = newJob({
      estimateS: 50,
      benchmark: 200,
      runTimeLimitS: 200,
      machineConstraint: 'rack = "alps"',
    });
    const asked = await submit(world, users[0].id, [shape, shape], then);
    const context = { policyVersion: 1, cycle: 'then', now: then };
    await store.applyMoves(
      asked.map((job) => move(job, siteId)),
      context,
    );
    await store.applyStarts(
      siteId,
      asked.map((job) => start(job, siteId, {})),
      null,
      context,
    );
    // Handed over at once, each began when Slurm let it.
    await store.reportRuns(
      siteId,
      asked.flatMap((job, i) => [
        report(job, 1, { at: then + 100 * (i + 1) }),
        ended(job, 1, { at: then + 260 }),
      ]),
      3,
    );
    // One of ours that came behind the window has one of the CPUs that are busy now: two are free for the simulated ones.
    const [later] = (await submit(world, users[0].id, [shape], then + 5000)) as [number];
    const now = { ...context, now: then + 5000 };
    await store.applyMoves([move(later, siteId)], now);
    await store.applyStarts(siteId, [start(later, siteId, {})], null, now);
    const local = { id: '7', state: 'RUNNING', directory: '/there', nodes: ['n1'], imageDigest: null };
    await store.reportRuns(siteId, [report(later, 1, { at: then + 5001, local })], 3);
    const { rows: machines } = await pool.query('SELECT id FROM machines WHERE site_id = $1', [siteId]);
    const busy = [{ machineId: machines[0].id, cpus: 3, memoryMb: 50 }];
    await pool.query(
      `UPDATE sites SET load = $2, load_at = now() - interval '3 h', agent_seen_at = now() WHERE id = $1`,
      [
        siteId,
        {
          ...{ waitingJobs: 0, waitingS: 0, waitingCpuS: 0, busy },
          waits: [{ cpusMax: 1, limitMaxS: 240, runs: 2, waitS: 160 }],
        },
      ],
    );
    startWorker(here);
    const window = { candidate: DEFAULT_POLICY, from: iso(then - 1), to: iso(then + 1000) };
    const done = async () => {
      const { id } = await simulate(window);
      await expect.poll(async () => (await simulation(id)).state).toBe('DONE');
      return (await simulation(id)).result as WhatIfResult;
    };
    const { all, happened, sites } = await done();
    expect(all.baseline).toMatchObject({ ended: 2, waitMeanS: 160 });
    // They waited until Slurm started them, not until it was given them.
    expect(happened).toEqual({ waitMeanS: 150 });
    expect(sites.flatMap(({ ownScheduler }) => ownScheduler ?? [])).toEqual([
      {
        ...{ runs: 2, waitMeanS: 160, stale: false, at: expect.stringMatching(/^\d{4}-/) },
        message: `Waits at ${name} are those observed in the 24 h before its last report, 3 h ago: 2 runs, 3 min, by CPUs and time limit. Other users' jobs are taken to stay as they were then.`,
      },
    ]);
    await pool.query(`UPDATE sites SET agent_seen_at = now() - interval '3 h' WHERE id = $1`, [siteId]);
    expect((await done()).sites.flatMap(({ ownScheduler }) => ownScheduler ?? [])).toMatchObject([
      {
        stale: true,
        message: expect.stringContaining(`They are outdated: the agent of ${name} is silent.`),
      },
    ]);
  });

  test('is told of by subscription, from its beginning to its end, and by node and list', async () => {
    await record();
    const { latestCursor } = await api.must<{ latestCursor: string }>('{ latestCursor }');
    startWorker(here);
    const asked = await simulate();
    const updates = api
      .subscriber()
      .iterate<{ simulationUpdated: { cursor: string; simulation: Simulation } }>({
        query: `subscription ($id: ID, $after: String) { simulationUpdated(simulationId: $id, after: $after) {
        cursor resyncRequired event { kind objectId } simulation { ${FIELDS} } } }`,
        variables: { id: asked.id, after: latestCursor },
      });
    const cursors: number[] = [];
    for await (const { data } of updates) {
      cursors.push(Number(data?.simulationUpdated.cursor));
      expect(data?.simulationUpdated).toMatchObject({
        resyncRequired: false,
        event: { kind: 'SIMULATION', objectId: asked.id },
        simulation: { id: asked.id },
      });
      if (data?.simulationUpdated.simulation.state === 'DONE') break;
    }
    expect(cursors.length).toBeGreaterThan(0);
    const list = await api.must<{ simulations: { nodes: Json[] }; node: Json }>(
      `{ simulations(first: 1) { nodes { id } } node(id: "${asked.id}") { id __typename } }`,
    );
    expect(list).toEqual({
      simulations: { nodes: [{ id: asked.id }] },
      node: { id: asked.id, __typename: 'Simulation' },
    });
    const user = await api.user('USER', unique('u'));
    expect(await api.must(`{ node(id: "${asked.id}") { id } }`, {}, user.key)).toEqual({ node: null });
  });

  test('is bounded: what is asked for, how many, how long', async () => {
    await record();
    const code = async (change: object) =>
      (await api.ask(SIMULATE, { input: { ...WINDOW, ...change } })).errors?.[0]?.extensions.code;
    expect(await code({ candidate: { ...FCFS, seed: 'x' } })).toBe('BAD_USER_INPUT');
    expect(await code({ to: WINDOW.from })).toBe('BAD_USER_INPUT');
    expect(await code({ from: iso(T0 - 2), to: iso(T0 - 1) })).toBe('BAD_USER_INPUT');
    const { key } = await api.user('OPERATOR', unique('o'));
    for (let i = 0; i < 5; i++) await simulate({}, key);
    expect((await api.ask(SIMULATE, { input: WINDOW }, key)).errors?.[0]?.extensions.code).toBe('CONFLICT');
    const last = await simulate();
    startWorker(endless, { timeLimitMs: 100 });
    await expect.poll(async () => (await simulation(last.id)).state).toBe('FAILED');
    expect((await simulation(last.id)).message).toBe('it took longer than 0.1 s');
  });

  test('stops when it is cancelled, and ends once', async () => {
    await record();
    let aborted = 0;
    startWorker((task, options) => {
      options.signal.addEventListener('abort', () => aborted++);
      return endless(task, options);
    });
    const asked = await simulate();
    await expect
      .poll(async () => simulation(asked.id))
      .toMatchObject({
        state: 'RUNNING',
        progress: 0.25,
      });
    expect((await cancel(asked.id)).data).toMatchObject({
      cancelSimulation: { simulation: { state: 'CANCELLED' } },
    });
    await expect.poll(() => aborted).toBe(1);
    expect((await cancel(asked.id)).errors?.[0]?.extensions.code).toBe('CONFLICT');
    expect((await cancel('simulation_99999')).errors?.[0]?.extensions.code).toBe('NOT_FOUND');
    await expect(
      api.db.pool.query(`UPDATE simulations SET state = 'RUNNING' WHERE id = $1`, [asked.id.split('_')[1]]),
    ).rejects.toThrow();
  });
});

describe('workers', () => {
  test('one that stops gives its simulation back; one that died is found out, and another takes it up', async () => {
    await record();
    const first = startWorker(endless);
    const asked = await simulate();
    const state = async () => (await simulation(asked.id)).state;
    await expect.poll(state).toBe('RUNNING');
    await first.stop();
    workers.length = 0;
    expect(await state()).toBe('QUEUED');

    // Claimed by a worker that is never heard of again, and nothing in the queue.
    const { pool } = api.db;
    const id = Number(asked.id.split('_')[1]);
    await pool.query(
      `UPDATE simulations SET state = 'RUNNING', worker = 'dead', worker_seen_at = now(), attempts = 1 WHERE id = $1`,
      [id],
    );
    startWorker(here, {}, 0.5);
    await expect.poll(state).toBe('DONE');
    const { rows } = await pool.query('SELECT attempts, worker FROM simulations WHERE id = $1', [id]);
    expect(rows[0].attempts).toBe(2);
    expect(rows[0].worker).not.toBe('dead');
  });

  test('one that was silent for too long, and comes back with a result, is too late', async () => {
    await record();
    let wakeUp = () => {};
    const asleep = new Promise<unknown>((resolve) => {
      wakeUp = () => resolve({ result: 'of the late one' });
    });
    const late = startWorker(() => asleep, { touchEveryMs: 3_600_000 }, 0.5);
    const asked = await simulate();
    await expect.poll(async () => (await simulation(asked.id)).state).toBe('RUNNING');
    // The queue still has it in hand for the first: that does not keep it from the second.
    startWorker(here, {}, 0.5);
    await expect.poll(async () => (await simulation(asked.id)).state).toBe('DONE');
    const { result } = await simulation(asked.id);
    wakeUp();
    await late.stop();
    workers.splice(workers.indexOf(late), 1);
    expect(result?.jobs).toBe(3);
    expect((await simulation(asked.id)).result).toEqual(result);
  });

  test('one that brings its workers down is not taken up for ever', async () => {
    await record();
    const asked = await simulate();
    await api.db.pool.query(
      `UPDATE simulations SET state = 'RUNNING', worker = 'dead', worker_seen_at = now() - interval '1 hour', attempts = 3 WHERE id = $1`,
      [Number(asked.id.split('_')[1])],
    );
    startWorker(here);
    await expect
      .poll(() => simulation(asked.id))
      .toMatchObject({
        state: 'FAILED',
        message: 'its workers died 3 times',
      });
  });
});

const TRACE = [
  '; UnixStartTime: 0',
  '1 0 0 100 1 -1 -1 1 200 -1 1 1 1 -1 1 -1 -1 -1',
  '2 5 0 50 1 -1 -1 1 200 -1 1 1 1 -1 1 -1 -1 -1',
  '3 6 0 50 9999 -1 -1 9999 200 -1 1 1 1 -1 1 -1 -1 -1',
].join('\n');

test('the jobs of a trace are simulated in place of recorded ones, and its text is forgotten with the end', async () => {
  startWorker(here);
  const { id } = await simulate({ from: undefined, to: undefined, trace: TRACE });
  const ended = async () =>
    (
      await api.must<{ simulation: Simulation & { from: string | null } }>(
        `query ($id: ID!) { simulation(id: $id) { ${FIELDS} from to } }`,
        { id },
      )
    ).simulation;
  await expect.poll(async () => (await ended()).state).toBe('DONE');
  expect(await ended()).toMatchObject({ from: null, to: null, result: { jobs: 2, leftOut: 1 } });
  const { rows } = await api.db.pool.query('SELECT trace FROM simulations WHERE trace IS NOT NULL');
  expect(rows).toEqual([]);
  const bad = await simulate({ from: undefined, to: undefined, trace: 'no trace at all' });
  await expect
    .poll(
      async () =>
        (
          await api.must<{ simulation: Simulation }>(
            `query ($id: ID!) { simulation(id: $id) { ${FIELDS} } }`,
            { id: bad.id },
          )
        ).simulation.message,
    )
    .toMatch(/trace/);
});

test('a trace is given alone, and a window whole', async () => {
  const refused = async (input: object, message: RegExp) => {
    const { errors } = await api.ask(SIMULATE, { input: { ...WINDOW, ...input } });
    expect(errors?.[0]).toMatchObject({ extensions: { code: 'BAD_USER_INPUT' } });
    expect(errors?.[0]?.message).toMatch(message);
  };
  await refused({ trace: TRACE }, /^trace: /);
  await refused({ from: undefined, to: undefined, trace: '' }, /^trace: .*1 to 16777216 characters/);
  await refused({ to: undefined }, /^to: /);
  await refused({ from: null }, /^from: /);
});
