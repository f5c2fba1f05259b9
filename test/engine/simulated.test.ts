/**
 * Live and simulated are one: the engine's cycles over Postgres with an agent that passes time, and the simulator, take the
 * same decisions for the same submissions. The live side runs the engine's own cycles, woken as the queue would, in virtual
 * time, and without the slow timer, which only makes up for what is lost.
 *
 * Conservative backfilling is not among the policies: there the two decide differently. The simulator keeps its promises from cycle
 * to cycle, the engine makes them anew in each (docs/operations.md says so); that is one difference, not known to be the only one.
 */
import { afterEach, describe, expect, test } from 'vitest';
import type { Policy, UserClass } from '../../src/core/index.js';
import { type LocalPolicy, RandomStream, type Run } from '../../src/core/index.js';
import { Cycle, type CycleTools, DEFAULT_CYCLE_LIMITS } from '../../src/engine/cycle.js';
import { runDispatch } from '../../src/engine/dispatch.js';
import type { Scheduler } from '../../src/engine/ports.js';
import { runSite, type SharedLicenceHolders } from '../../src/engine/site.js';
import { createMetrics } from '../../src/platform/metrics.js';
import { runSimulation } from '../../src/simulator/engine.js';
import type { SimJob } from '../../src/simulator/workload.js';
import { Mirror } from '../../src/store/mirror.js';
import type { NewJob, RunReport } from '../../src/store/store.js';
import { ended, newJob, report, T0 } from '../store/world.js';
import { withDatabase } from '../support/database.js';
import { checkPromises } from '../support/promises.js';
import { quietLog } from './support.js';
import { type SiteShape, testPolicy, World } from './world.js';

const SITES: SiteShape[] = [
  { name: 'big', machines: [{ cpus: 8 }, { cpus: 4, benchmark: 200, licences: ['cad'] }] },
  {
    name: 'middle',
    machines: [
      { cpus: 4, memoryMb: 500 },
      { cpus: 4, licences: ['cad'] },
    ],
  },
  { name: 'small', machines: [{ cpus: 2, benchmark: 50 }] },
];
const CLASSES: UserClass[] = ['GOLD', 'SILVER', 'REGULAR'];
const JOBS = 150;

/** A start as both sides tell it. `machines`: id and tasks of each. */
interface Started {
  jobId: number;
  siteId: number;
  at: number;
  machines: [id: number, tasks: number][];
  licenceIds: number[];
}

interface Submitted {
  /** Epoch seconds. */
  at: number;
  userClass: UserClass;
  job: NewJob;
}

/**
 * More work than the sites can do at once, in bursts. Times are whole seconds and speeds powers of two apart, so that nothing is
 * rounded where it is stored.
 */
function submissions(seed: number): Submitted[] {
  const random = new RandomStream(seed, 'live and simulated');
  const list: Submitted[] = [];
  for (let at = T0; list.length < JOBS; at += random.integer(1, 12)) {
    for (let burst = random.integer(1, 4); burst > 0 && list.length < JOBS; burst--) {
      const estimateS = 8 * random.integer(1, 20);
      const tasks = random.integer(1, 3);
      list.push({
        at,
        userClass: CLASSES[random.integer(0, 2)] as UserClass,
        job: newJob({
          tasks,
          cpusPerTask: random.integer(1, tasks === 1 ? 4 : 2),
          memoryMbPerTask: 50 * random.integer(0, 3),
          licences: tasks === 1 && random.next() < 0.2 ? ['cad'] : [],
          estimateS,
          // Some end early, some outrun their estimate.
          simulatedRunS: 4 * random.integer(1, estimateS / 3),
          deadline: random.next() < 0.5 ? at + estimateS + random.integer(0, 400) : null,
          boost: random.next() < 0.1 ? random.integer(-3, 3) : 0,
        }),
      });
    }
  }
  return list;
}

/** The engine's cycles in virtual time, each as soon as somebody has woken its scheduler. */
class Live {
  private now = T0;
  private readonly woken = new Set<Scheduler>();
  private readonly holders: SharedLicenceHolders = new Map();
  private readonly cursors = new Map<number, string | null>();
  private ends: { at: number; siteId: number; report: RunReport }[] = [];
  private readonly tools: CycleTools;

  constructor(private readonly world: World) {
    const wake = (schedulers: readonly Scheduler[]) => {
      for (const scheduler of schedulers) this.woken.add(scheduler);
    };
    let cycles = 0;
    this.tools = {
      store: world.store,
      mirror: new Mirror(world.store),
      wake: async (schedulers) => wake(schedulers),
      wakeLater: wake,
      log: quietLog,
      metrics: createMetrics(),
      limits: DEFAULT_CYCLE_LIMITS,
      now: () => this.now,
      nameCycle: (kind) => `${kind}-${++cycles}`,
    };
  }

  async run(list: readonly Submitted[], userIds: Readonly<Record<UserClass, number>>): Promise<void> {
    const { store } = this.world;
    let next = 0;
    for (;;) {
      this.now = Math.min(list[next]?.at ?? Infinity, ...this.ends.map(({ at }) => at));
      if (this.now === Infinity) return;
      for (const siteId of new Set(this.ends.map((end) => end.siteId))) {
        const due = this.ends.filter((end) => end.at === this.now && end.siteId === siteId);
        if (due.length > 0)
          await this.report(
            siteId,
            due.map((end) => end.report),
          );
      }
      this.ends = this.ends.filter(({ at }) => at > this.now);
      for (; list[next]?.at === this.now; next++) {
        const { userClass, job } = list[next] as Submitted;
        const submission = { idempotencyKey: null, payloadHash: '', jobs: [job], now: this.now };
        await store.submit({ ...submission, userId: userIds[userClass] });
        this.woken.add('root');
      }
      await this.settle();
    }
  }

  private async settle(): Promise<void> {
    for (;;) {
      const [scheduler] = this.woken.has('root') ? ['root' as const] : this.woken;
      if (scheduler === undefined) return;
      this.woken.delete(scheduler);
      if (scheduler === 'root') await runDispatch(new Cycle('dispatch', this.tools), this.tools);
      else {
        await runSite(new Cycle('site', this.tools), this.tools, scheduler, this.holders);
        await this.agent(scheduler);
      }
    }
  }

  /** The site's agent: starts what it is assigned, and knows when it will end. */
  private async agent(siteId: number): Promise<void> {
    const batch = await this.world.store.assignments(siteId, this.cursors.get(siteId) ?? null, 10_000);
    this.cursors.set(siteId, batch.cursor);
    const fresh = batch.assignments.filter(({ state }) => state === 'ASSIGNED');
    for (const { jobId, epoch, simulatedS } of fresh) {
      const at = this.now + (simulatedS as number);
      this.ends.push({ at, siteId, report: ended(jobId, epoch, { at }) });
    }
    if (fresh.length > 0)
      await this.report(
        siteId,
        fresh.map(({ jobId, epoch }) => report(jobId, epoch, { at: this.now })),
      );
  }

  private async report(siteId: number, reports: RunReport[]): Promise<void> {
    const { touched } = await this.world.store.reportRuns(siteId, reports, 3);
    for (const scheduler of touched) this.woken.add(scheduler ?? 'root');
  }
}

/** What the live run decided: where each job went, and the starts in their order. */
async function decisionsOf(world: World): Promise<{ dispatches: [number, number][]; starts: Started[] }> {
  const { rows: moves } = await world.database.pool.query<{ job: number; site: number }>(
    `SELECT job_id::int AS job, site_id AS site FROM decisions WHERE kind = 'DISPATCH' ORDER BY id`,
  );
  const { rows } = await world.database.pool.query(
    `SELECT r.job_id::int AS job, r.site_id, r.machine_ids, r.machine_tasks, r.licence_ids, extract(epoch FROM d.at)::float8 AS at
       FROM decisions d JOIN runs r USING (job_id) WHERE d.kind = 'START' ORDER BY d.id`,
  );
  const starts = rows.map(
    (row): Started => ({
      jobId: row.job,
      siteId: row.site_id,
      at: row.at,
      machines: row.machine_ids.map((id: number, i: number) => [id, row.machine_tasks[i]]),
      licenceIds: row.licence_ids,
    }),
  );
  return { dispatches: moves.map(({ job, site }) => [job, site]), starts };
}

/** The same submissions in the simulator, on the machines that the store has. */
async function simulated(
  world: World,
  list: readonly Submitted[],
  userIds: Readonly<Record<UserClass, number>>,
  policy: Policy,
): Promise<Started[]> {
  const { sites, machines, licences } = await world.store.loadGrid(1);
  const jobs = list.map(({ at, userClass, job }, i): SimJob => {
    const { tasks, cpusPerTask, memoryMbPerTask, licences, os, arch, benchmark, deadline, boost } = job;
    return {
      job: {
        id: i + 1,
        userId: userIds[userClass],
        userClass,
        submit: at,
        estimate: job.estimateS,
        benchmark,
        deadline,
        tasks,
        cpusPerTask,
        memoryMbPerTask,
        licences,
        os,
        arch,
        boost,
        priority: null,
        runTimeLimit: null,
        application: '',
        groupId: 0,
        migratedAt: null,
        data: null,
      },
      sourceId: i + 1,
      runS: job.simulatedRunS as number,
      limitS: null,
      siteId: null,
    };
  });
  const starts: Started[] = [];
  const started = (_job: SimJob, _index: number, run: Run): void => {
    const { jobId, siteId, start, allocations, licenceIds } = run;
    starts.push({
      jobId,
      siteId,
      at: start,
      machines: allocations.map(({ machineId, tasks }) => [machineId, tasks]),
      licenceIds: [...licenceIds],
    });
  };
  runSimulation({ sites, machines, licences, changes: [] }, jobs, { policy, eventOrder: 'batch' }, [
    { started },
  ]);
  return starts;
}

const worlds: World[] = [];
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
});

describe('a live run and a simulated run decide alike', () => {
  const database = withDatabase();
  const flexible = testPolicy().local;
  const cases: [string, LocalPolicy, 'MS' | 'LS' | 'NONE'][] = [
    ['flexible by level-1 priority', flexible, 'MS'],
    ['flexible by the sites’ own priority', flexible, 'LS'],
    ['EASY', { kind: 'easy' }, 'NONE'],
    ['hybrid', { kind: 'hybrid', reservations: 3 }, 'MS'],
    ['first fit', { kind: 'first-fit', ageBoundS: 600 }, 'MS'],
  ];

  test.each(cases)('%s', async (_, local, mode) => {
    const seed = 20261121;
    const policy: Policy = { ...testPolicy({ local, dispatch: { mode } }), seed };
    const { url } = await database.another();
    const world = await World.open(url, { sites: SITES, gridLicences: [{ kind: 'cad', copies: 2 }], policy });
    worlds.push(world);
    const userIds = {} as Record<UserClass, number>;
    for (const userClass of CLASSES) {
      const user = { name: userClass.toLowerCase(), class: userClass, role: 'USER', quotaShare: 1 } as const;
      const made = await world.directory.registerUser(user, { userId: null, requestId: null });
      if (made.kind === 'refused') throw new Error(made.message);
      userIds[userClass] = made.value.id;
    }
    for (const { name } of SITES)
      await world.store.heartbeat(world.siteId(name), world.machineIds.get(name) as number[], T0);

    const list = submissions(seed);
    await new Live(world).run(list, userIds);
    const live = await decisionsOf(world);
    const simulation = await simulated(world, list, userIds, policy);

    expect(live.starts).toHaveLength(JOBS);
    expect(await checkPromises(world.database.pool)).toEqual([]);
    const siteOf = new Map(simulation.map(({ jobId, siteId }) => [jobId, siteId]));
    expect(live.dispatches).toEqual(list.map((_submitted, i) => [i + 1, siteOf.get(i + 1)]));
    // Sites that look at one instant have no order among them.
    for (const { name } of SITES) {
      const there = ({ siteId }: Started): boolean => siteId === world.siteId(name);
      expect(live.starts.filter(there)).toEqual(simulation.filter(there));
    }
  });
});
