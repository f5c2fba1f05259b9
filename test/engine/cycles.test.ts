/** Cycles one by one, over the store in memory: rounds, refusals, bounds, and who is woken. */
import { describe, expect, test } from 'vitest';
import {
  Agenda,
  DEFAULT_POLICY,
  parsePolicy,
  stranded,
  waiting as waitingSchedulers,
} from '../../src/core/index.js';
import type { Job } from '../../src/core/model.js';
import { ROOT, type Scheduler } from '../../src/core/scheduler.js';
import { culprit } from '../../src/engine/culprit.js';
import { Cycle, type CycleLimits, type CycleTools, DEFAULT_CYCLE_LIMITS } from '../../src/engine/cycle.js';
import { runDispatch } from '../../src/engine/dispatch.js';
import { runSite } from '../../src/engine/site.js';
import { Sweeper } from '../../src/engine/sweep.js';
import { createMetrics } from '../../src/platform/metrics.js';
import type { NewHold } from '../../src/store/holds.js';
import { Mirror } from '../../src/store/mirror.js';
import type { NewJob, Store } from '../../src/store/store.js';
import { MemoryStore } from '../store/memory.js';
import { ended, newJob, report, T0, vouch } from '../store/world.js';
import { quietLog } from './support.js';

const QUEUES = { kind: 'queues', order: 'FCFS', queueLimit: 0, ageBoundS: null } as const;

class Bench {
  readonly userId: number;
  readonly woken: Scheduler[] = [];
  readonly wokenLater: Scheduler[] = [];
  /** By site: when it is to be woken. */
  readonly alarms = new Map<number, number>();
  readonly metrics = createMetrics();
  private now = T0;
  private readonly agenda = new Agenda();
  private readonly tools: CycleTools;

  /** `meddle` sees each call of the engine to the store before it is carried out. */
  constructor(
    limits: Partial<CycleLimits> = {},
    meddle: Partial<Store> = {},
    readonly store = new MemoryStore(),
  ) {
    this.userId = store.users.size > 0 ? 1 : store.addUser();
    const between = new Proxy(store, {
      get: (target, name: keyof Store) => {
        const method = meddle[name] ?? target[name];
        return typeof method === 'function' ? method.bind(target) : method;
      },
    });
    this.tools = {
      store: between,
      mirror: new Mirror(store),
      wake: async (schedulers) => void this.woken.push(...schedulers),
      wakeLater: (schedulers) => void this.wokenLater.push(...schedulers),
      wakeAt: (siteId, at) => void this.alarms.set(siteId, at),
      log: quietLog,
      metrics: this.metrics,
      limits: { ...DEFAULT_CYCLE_LIMITS, ...limits },
      now: () => this.now,
      nameCycle: (kind) => `${kind}-1`,
    };
  }

  async site(name: string, cpus: number, licenses: number[] = []): Promise<number> {
    const siteId = this.store.addSite(name);
    const shape = {
      cpus,
      memoryMb: 1000,
      benchmark: 100,
      os: 'linux',
      architecture: 'x64',
      licenseIds: licenses,
    };
    const machineId = this.store.addMachine({ siteId, name: 'm', ...shape });
    await vouch(this.store, siteId, [machineId], T0);
    return siteId;
  }

  async submit(count: number, job: Partial<NewJob> = {}): Promise<number[]> {
    const result = await this.store.submit({
      userId: this.userId,
      idempotencyKey: null,
      payloadHash: '',
      jobs: Array.from({ length: count }, () => newJob(job)),
      now: T0,
    });
    return result.kind === 'accepted' ? result.jobIds : [];
  }

  later(seconds: number): void {
    this.now += seconds;
  }

  dispatch(): Promise<void> {
    return runDispatch(new Cycle('dispatch', this.tools), this.tools, this.agenda);
  }

  runSite(siteId: number): Promise<void> {
    return runSite(new Cycle('site', this.tools), this.tools, siteId, this.agenda);
  }

  /** The root's cycle and the site's. */
  async both(siteId: number): Promise<void> {
    await this.dispatch();
    await this.runSite(siteId);
  }

  sweep(): Promise<void> {
    const days = { eventRetentionDays: 7, jobRetentionDays: 30, auditRetentionDays: 30 };
    const sweeper = new Sweeper(this.tools, { ...days, runTimeGraceS: 60, limit: 100 });
    return sweeper.run(new Cycle('sweep', this.tools));
  }

  grid() {
    return this.tools.mirror.grid;
  }

  states(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { state } of this.store.jobs.values()) counts[state] = (counts[state] ?? 0) + 1;
    return counts;
  }
}

test('a sweep tells how much there is of each kind of resource, and how much of it runs hold', async () => {
  const bench = new Bench();
  const a = await bench.site('a', 4);
  await bench.site('b', 2);
  await bench.submit(1, { cpusPerTask: 3, memoryMbPerTask: 200 });
  await bench.both(a);
  const shown = async () => {
    await bench.sweep();
    const { values } = await bench.metrics.resources.get();
    return values.map(
      ({ labels: { site, resource, state }, value }) => `${site} ${resource} ${state} ${value}`,
    );
  };
  expect(await shown()).toEqual([
    ...['a cpus total 4', 'a cpus used 3', 'a memoryMb total 1000', 'a memoryMb used 200'],
    ...['b cpus total 2', 'b cpus used 0', 'b memoryMb total 1000', 'b memoryMb used 0'],
  ]);
});

test('a sweep tells what pools there are, what runs have of them, and what jobs wait for', async () => {
  const bench = new Bench();
  const a = await bench.site('a', 4);
  bench.store.addLicense('solver', 2, a);
  bench.store.addLicense('cad', 5, null);
  await bench.submit(1, { licenses: ['solver', 'solver'] });
  await bench.both(a);
  await bench.submit(2, { licenses: ['solver'], resources: { cad: 3 } });
  await bench.submit(1, { licenses: ['solver'], held: true });
  await bench.sweep();
  const shown = async (metric: 'pools' | 'poolWaiting' | 'lateRuns') =>
    (await bench.metrics[metric].get()).values.map(({ labels, value }) =>
      [...Object.values(labels), value].join(' '),
    );
  expect(await shown('pools')).toEqual([
    ...['a solver total 2', 'a solver used 2', ' cad total 5', ' cad used 0'],
  ]);
  expect((await shown('poolWaiting')).sort()).toEqual(['cad 6', 'solver 2']);
  expect(await shown('lateRuns')).toEqual(['a 0']);
});

test('a site’s cycle counts runs that it stops for others, and what they lose, by classes that there are', async () => {
  const bench = new Bench();
  bench.store.setPolicy({
    version: 2,
    document: {
      ...DEFAULT_POLICY,
      preemption: { graceS: 30, exemptS: 0, cancelBelow: 0 },
      classes: { spare: { rank: 0, scavenger: true, charged: true } },
    },
  });
  const a = await bench.site('a', 3);
  const ids = [
    ...(await bench.submit(1, { class: 'spare', cpusPerTask: 2 })),
    ...(await bench.submit(1, { class: 'gone' })),
  ];
  await bench.both(a);
  await bench.store.reportRuns(
    a,
    ids.map((id) => report(id, 1, { at: T0 })),
    3,
  );
  await bench.submit(1, { cpusPerTask: 3, preemptionClass: 5 });
  bench.later(100);
  await bench.both(a);
  expect(await preempted(bench, 'preemptedRuns')).toEqual(['normal job 1', 'spare job 1']);
  expect(await preempted(bench, 'lostCoreSeconds')).toEqual(['normal job 100', 'spare job 200']);
});

test('a sweep counts runs that it stops for a window, beside those stopped for others', async () => {
  const bench = new Bench();
  bench.store.setPolicy({
    version: 2,
    document: { ...DEFAULT_POLICY, classes: { spare: { rank: 0, scavenger: true, charged: true } } },
  });
  const a = await bench.site('a', 3);
  await bench.submit(1, { class: 'spare', cpusPerTask: 2, killGraceS: 30 });
  await bench.submit(1, { killGraceS: 10 });
  await bench.both(a);
  const window: NewHold = {
    ...{ kind: 'MAINTENANCE', siteId: a, userId: bench.userId, held: { of: 'SITE' }, shared: [] },
    ...{ name: null, reason: null, idleS: null, userIds: [], recurrence: null, onConflict: 'PREEMPT' },
    times: [{ from: T0 + 100, to: T0 + 200 }],
  };
  bench.store.createHold(window, T0);
  await bench.sweep();
  expect(await preempted(bench, 'preemptedRuns')).toEqual([]);
  // Each is stopped ahead by its own grace, and counted once.
  bench.later(70);
  await bench.sweep();
  await bench.sweep();
  expect(await preempted(bench, 'preemptedRuns')).toEqual(['spare hold 1']);
  bench.later(20);
  await bench.sweep();
  expect(await preempted(bench, 'preemptedRuns')).toEqual(['normal hold 1', 'spare hold 1']);
  expect(await preempted(bench, 'lostCoreSeconds')).toEqual(['normal hold 90', 'spare hold 140']);
});

/** By class and by what the runs were stopped for. */
const preempted = async (bench: Bench, metric: 'preemptedRuns' | 'lostCoreSeconds'): Promise<string[]> =>
  (await bench.metrics[metric].get()).values
    .map(({ labels, value }) => `${labels.class} ${labels.for} ${value}`)
    .sort();

describe('a dispatch cycle', () => {
  test('moves in bounded plans, round by round, and wakes the sites that were given jobs', async () => {
    const bench = new Bench({ maxMoves: 4 });
    const a = await bench.site('a', 1);
    const b = await bench.site('b', 1);
    await bench.submit(10);
    await bench.dispatch();
    expect(bench.states()).toEqual({ DISPATCHED: 10 });
    expect([...new Set(bench.woken)]).toEqual([a, b]);
  });

  test('wakes itself when its rounds were not enough', async () => {
    const bench = new Bench({ maxMoves: 2, maxRounds: 3 });
    const a = await bench.site('a', 1);
    await bench.submit(10);
    await bench.dispatch();
    expect(bench.states()).toEqual({ QUEUED: 4, DISPATCHED: 6 });
    expect(bench.woken).toEqual([a, a, a, ROOT]);
  });

  test('does nothing to what the truth has moved on, and plans the rest again', async () => {
    let meddled = false;
    const bench: Bench = new Bench(
      {},
      {
        async applyMoves(moves, context) {
          // Between the plan and its coming into force somebody cancels one job.
          if (!meddled)
            await bench.store.cancel({ ids: [2], ownedBy: null, limit: 1 }, T0, 'CANCELLED_BY_USER');
          meddled = true;
          return MemoryStore.prototype.applyMoves.call(bench.store, moves, context);
        },
      },
    );
    await bench.site('a', 1);
    await bench.submit(3);
    await bench.dispatch();
    expect(bench.states()).toEqual({ DISPATCHED: 2, CANCELLED: 1 });
    expect(bench.wokenLater).toEqual([]);
  });

  test('pauses when the truth refuses to the last', async () => {
    let plans = 0;
    const bench: Bench = new Bench(
      { maxRounds: 3 },
      {
        async applyMoves(moves) {
          plans++;
          return { accepted: [], refused: moves.map(({ jobId }) => ({ jobId, why: 'for the test' })) };
        },
      },
    );
    await bench.site('a', 1);
    await bench.submit(3);
    await bench.dispatch();
    expect(plans).toBe(3);
    expect(bench.wokenLater).toEqual([ROOT]);
    expect(bench.woken).toEqual([]);
  });
});

describe('a dispatch cycle under DIANA', () => {
  const diana = (queueLimit: number) =>
    parsePolicy({ ...DEFAULT_POLICY, dispatch: { kind: 'diana', queueLimit } });
  /** Two sites; the first takes all, for the other has no machine that can run them. */
  const withMetaQueue = async (jobs: number, limits: Partial<CycleLimits> = {}) => {
    const bench = new Bench(limits);
    bench.store.setPolicy({ version: 2, document: diana(2) });
    const a = await bench.site('a', 4);
    const b = await bench.site('b', 1);
    await bench.submit(jobs, { cpusPerTask: 4 });
    await bench.dispatch();
    return { bench, a, b };
  };
  const waiting = ({ store }: Bench) => {
    const places: Record<string, number> = {};
    for (const { state, siteId } of store.jobs.values()) {
      const place = `${state} ${siteId}`;
      places[place] = (places[place] ?? 0) + 1;
    }
    return places;
  };

  test('goes through the meta-queue to the local one in one cycle, and wakes the site once it has something', async () => {
    const { bench, a } = await withMetaQueue(5);
    expect(waiting(bench)).toEqual({ [`DISPATCHED ${a}`]: 2, [`QUEUED ${a}`]: 3 });
    expect(bench.woken).toEqual([a]);
    // Nothing has room: nobody is woken.
    await bench.dispatch();
    expect(bench.woken).toEqual([a]);
    // The slow timer does not forget the meta-queue, which the root's cycle serves.
    expect(waitingSchedulers(bench.grid())).toEqual([ROOT, a]);
  });

  test('empties the meta-queue of a site that is not up, bound by bound', async () => {
    const { bench, a } = await withMetaQueue(5, { maxTakenBack: 2, maxRounds: 2 });
    bench.store.setSiteState(a, 'DOWN');
    bench.woken.length = 0;
    await bench.dispatch();
    expect(waiting(bench)).toMatchObject({ 'QUEUED null': 4 });
    expect(bench.woken).toEqual([ROOT]);
    await bench.dispatch();
    expect(waiting(bench)).toEqual({ 'QUEUED null': 5 });
  });

  test('empties all meta-queues when another policy is in force, and goes on under it', async () => {
    const { bench, a } = await withMetaQueue(5, { maxTakenBack: 2 });
    bench.store.setPolicy({ version: 3, document: DEFAULT_POLICY });
    bench.woken.length = 0;
    await bench.dispatch();
    expect(waiting(bench)).toEqual({ [`DISPATCHED ${a}`]: 5 });
    expect(bench.woken).toEqual([a]);
    expect(bench.store.decisions.filter(({ kind }) => kind === 'TAKE_BACK')).toHaveLength(3);
  });
});

describe('a site cycle', () => {
  test('starts what fits, citing policy and cycle', async () => {
    const contexts: unknown[] = [];
    const bench: Bench = new Bench(
      {},
      {
        async applyStarts(siteId, starts, reservation, context) {
          contexts.push(context);
          return MemoryStore.prototype.applyStarts.call(bench.store, siteId, starts, reservation, context);
        },
      },
    );
    const a = await bench.site('a', 3);
    await bench.submit(5);
    await bench.dispatch();
    await bench.runSite(a);
    expect(bench.states()).toEqual({ ASSIGNED: 3, DISPATCHED: 2 });
    expect(contexts).toEqual([{ policyVersion: 1, cycle: 'site-1', now: T0 }]);
  });

  test('carries nothing out when somebody else has promised meanwhile, and plans anew', async () => {
    let ahead = false;
    const bench: Bench = new Bench(
      {},
      {
        async applyStarts(siteId, starts, ...rest) {
          // Another worker at the same site is a moment ahead: an older job is back, which needs both CPUs from T0 + 50 on.
          if (!ahead && starts.some(({ jobId }) => jobId === 3)) {
            ahead = true;
            await bench.store.release({ ids: [2], ownedBy: null, limit: 1 });
            await new Bench({}, {}, bench.store).both(siteId);
          }
          return MemoryStore.prototype.applyStarts.call(bench.store, siteId, starts, ...rest);
        },
      },
    );
    bench.store.setPolicy({
      version: 2,
      document: { ...DEFAULT_POLICY, local: { kind: 'conservative', depth: 100 } },
    });
    const a = await bench.site('a', 2);
    await bench.submit(1, { estimateS: 50 });
    await bench.both(a);
    await bench.submit(1, { cpusPerTask: 2, estimateS: 10, held: true });
    await bench.submit(1, { estimateS: 100 });
    await bench.both(a);
    expect(ahead).toBe(true);
    expect(bench.states()).toEqual({ ASSIGNED: 1, DISPATCHED: 2 });
    const { revision, promises } = await bench.store.promises(a);
    expect(promises?.jobs.map(({ jobId, at }) => [jobId, at])).toEqual([
      [2, T0 + 50],
      [3, T0 + 60],
    ]);
    expect(bench.alarms.get(a)).toBe(T0 + 50);
    expect(bench.wokenLater).toEqual([]);
    // Nothing new: nothing is written.
    await bench.both(a);
    expect((await bench.store.promises(a)).revision).toBe(revision);

    // Under a policy that does not promise, nothing stays promised.
    bench.store.setPolicy({ version: 3, document: { ...DEFAULT_POLICY, local: { kind: 'easy' } } });
    await bench.store.reportRuns(a, [ended(1, 1)], 3);
    await bench.both(a);
    expect(bench.states()).toEqual({ COMPLETED: 1, ASSIGNED: 1, DISPATCHED: 1 });
    expect((await bench.store.promises(a)).promises).toBeNull();
    expect(bench.alarms.get(a)).toBe(Infinity);
  });

  test.each([['starts'], ['moves']])(
    'sets the job aside whose numbers nobody can store, and goes on with the others: %s',
    async (what) => {
      const poisonous = 3;
      let failed = 0;
      const check = (items: readonly { jobId: number }[]): void => {
        if (!items.some(({ jobId }) => jobId === poisonous)) return;
        failed++;
        throw Object.assign(new Error('timestamp out of range'), { code: '22008' });
      };
      const bench: Bench = new Bench(
        {},
        {
          async applyMoves(moves, context) {
            if (what === 'moves') check(moves);
            return MemoryStore.prototype.applyMoves.call(bench.store, moves, context);
          },
          async applyStarts(siteId, starts, ...rest) {
            if (what === 'starts') check(starts);
            return MemoryStore.prototype.applyStarts.call(bench.store, siteId, starts, ...rest);
          },
        },
      );
      const a = await bench.site('a', 10);
      await bench.submit(5);
      await bench.both(a);
      expect(bench.states()).toEqual({ ASSIGNED: 4, HELD: 1 });
      expect(failed).toBeGreaterThan(2);
      expect(bench.store.jobs.get(poisonous)).toMatchObject({
        state: 'HELD',
        message: expect.stringContaining('timestamp out of range'),
      });
      const told = bench.store.events
        .filter(({ entityId }) => entityId === poisonous)
        .map(({ toState }) => toState);
      expect(told.at(-1)).toBe('HELD');
      expect((await bench.metrics.setAside.get()).values).toMatchObject([{ value: 1 }]);
    },
  );

  test.each(['dispatchCycle', 'placeAtRoot', 'placeAtSite'])(
    'sets the one job aside with which %s throws, and goes on with the others',
    async (where) => {
      const poisonous = 3;
      const store = new MemoryStore();
      const spoil = (job: Job): Job =>
        new Proxy(job, {
          get(target, field) {
            if (new Error().stack?.includes(where)) throw new Error('no such number');
            return Reflect.get(target, field);
          },
        });
      const { loadGrid, changesSince } = store;
      let told: Job | null = null;
      store.loadGrid = async (...args) => {
        const image = await loadGrid.apply(store, args);
        const jobs = image.jobs.map((entry) =>
          entry.job.id === poisonous ? { ...entry, job: spoil(entry.job) } : entry,
        );
        return { ...image, jobs };
      };
      store.changesSince = async (...args) => {
        const changes = await changesSince.apply(store, args);
        if (changes === 'too-old') return changes;
        const jobs = changes.jobs.map((entry) => {
          if (entry.id !== poisonous || !entry.position) return entry;
          told = entry.job ?? (told as Job);
          const { priority, migratedAt } = entry.position;
          return { ...entry, job: spoil({ ...told, priority, migratedAt }) };
        });
        return { ...changes, jobs };
      };
      const bench = new Bench({}, {}, store);
      const a = await bench.site('a', 10);
      await bench.submit(5);
      let failed = 0;
      // As the engine does: a cycle that fails is followed by another one.
      for (let i = 0; i < 4; i++) await bench.both(a).catch(() => failed++);
      expect(bench.states()).toEqual({ ASSIGNED: 4, HELD: 1 });
      expect(store.jobs.get(poisonous)).toMatchObject({
        state: 'HELD',
        message: expect.stringContaining('no such number'),
      });
      expect((await bench.metrics.setAside.get()).values).toMatchObject([{ value: 1 }]);
      expect(failed).toBeLessThan(3);
    },
  );

  test('finds the job of the queue that planning throws with, and blames none where it throws without any', async () => {
    const bench = new Bench();
    await bench.site('a', 10);
    const jobs = await bench.submit(50);
    await bench.dispatch();
    await bench.submit(3);
    for (const bad of [jobs[0]!, jobs[17]!, jobs[49]!]) {
      const mirror = new Mirror(bench.store);
      await mirror.sync();
      const plan = () => {
        if (mirror.grid.placeOf(bad) !== null) throw new Error('poison');
      };
      expect(culprit(mirror.grid, plan)).toMatchObject({ jobId: bad, error: { message: 'poison' } });
    }
    const always = () => {
      throw new Error('something else');
    };
    expect(culprit(bench.grid(), always)).toBeNull();
    expect(culprit(bench.grid(), () => {})).toBeNull();
  });

  test('sets the job aside whose reservation cannot be stored', async () => {
    const bench: Bench = new Bench(
      {},
      {
        async applyStarts(siteId, starts, reservation, ...rest) {
          if (reservation?.jobId === 2) throw Object.assign(new Error('out of range'), { code: '22003' });
          return MemoryStore.prototype.applyStarts.call(bench.store, siteId, starts, reservation, ...rest);
        },
      },
    );
    const a = await bench.site('a', 2);
    await bench.submit(1);
    await bench.submit(1, { cpusPerTask: 2 });
    await bench.dispatch();
    await expect(bench.runSite(a)).rejects.toThrow('out of range');
    expect(bench.states()).toEqual({ DISPATCHED: 1, HELD: 1 });
    await bench.runSite(a);
    expect(bench.states()).toEqual({ ASSIGNED: 1, HELD: 1 });
  });

  test('leaves alone a site that is not there', async () => {
    const bench = new Bench();
    await bench.runSite(7);
    expect(bench.woken).toEqual([]);
  });

  test('gives the queue of a drained site back in portions', async () => {
    const bench = new Bench({ maxTakenBack: 2 });
    const a = await bench.site('a', 1);
    await bench.submit(5);
    await bench.dispatch();
    bench.store.setSiteState(a, 'DRAINING');
    bench.woken.length = 0;
    await bench.runSite(a);
    expect(bench.states()).toEqual({ QUEUED: 5 });
    expect(bench.woken).toEqual([ROOT, ROOT, ROOT]);
  });

  test('wakes the root when it has room again, if the policy holds jobs there, and only then', async () => {
    const bench = new Bench();
    const a = await bench.site('a', 2);
    const step = async (): Promise<Scheduler[]> => {
      bench.woken.length = 0;
      await bench.runSite(a);
      return [...bench.woken];
    };
    bench.store.setPolicy({ version: 2, document: { ...DEFAULT_POLICY, dispatch: QUEUES } });
    await bench.submit(5);
    await bench.dispatch();
    expect(bench.states()).toEqual({ DISPATCHED: 2, QUEUED: 3 });
    expect(await step()).toEqual([ROOT]);
    expect(bench.states()).toEqual({ ASSIGNED: 2, QUEUED: 3 });

    await bench.store.reportRuns(a, [ended(1, 1)], 3);
    expect(await step()).toEqual([ROOT]);
    await bench.dispatch();
    expect(bench.states()).toEqual({ COMPLETED: 1, ASSIGNED: 1, DISPATCHED: 1, QUEUED: 2 });
    await bench.store.cancel({ ids: [3], ownedBy: null, limit: 1 }, T0, 'CANCELLED_BY_USER');
    expect(await step()).toEqual([ROOT]);

    // Full queues ask for nothing, nor do sites of a policy that sends jobs on at once.
    await bench.dispatch();
    await step();
    const full = { ...DEFAULT_POLICY, dispatch: { ...QUEUES, queueLimit: 1 } };
    bench.store.setPolicy({ version: 3, document: full });
    await bench.submit(1);
    await bench.dispatch();
    expect(bench.states()).toMatchObject({ ASSIGNED: 2, DISPATCHED: 1, QUEUED: 1 });
    expect(await step()).toEqual([]);
    bench.store.setPolicy({ version: 4, document: DEFAULT_POLICY });
    await bench.store.reportRuns(a, [ended(2, 1)], 3);
    expect(await step()).toEqual([]);
  });

  test('wakes who waits for a grid-wide license when a copy comes free, and only then', async () => {
    const bench = new Bench();
    const license = bench.store.addLicense('sim', 1, null);
    const a = await bench.site('a', 4, [license]);
    const b = await bench.site('b', 4, [license]);
    await bench.submit(2, { licenses: ['sim'] });
    await bench.dispatch();
    await bench.runSite(a);
    await bench.runSite(b);
    expect(bench.states()).toEqual({ ASSIGNED: 1, DISPATCHED: 1 });
    bench.woken.length = 0;
    await bench.runSite(a);
    await bench.runSite(b);
    expect(bench.woken).toEqual([]);

    await bench.store.reportRuns(a, [ended(1, 1)], 3);
    await bench.runSite(a);
    expect(bench.woken).toEqual([b]);
    await bench.runSite(b);
    expect(bench.states()).toEqual({ COMPLETED: 1, ASSIGNED: 1 });
  });

  test('wakes who waits for a grid-wide license though another process started the run that has given it back', async () => {
    const bench = new Bench();
    const license = bench.store.addLicense('sim', 1, null);
    const a = await bench.site('a', 4, [license]);
    const b = await bench.site('b', 4, [license]);
    const other = new Bench({}, {}, bench.store);
    await other.runSite(a);
    await bench.submit(2, { licenses: ['sim'] });
    await bench.dispatch();
    await bench.runSite(a);
    await bench.runSite(b);
    expect(bench.states()).toEqual({ ASSIGNED: 1, DISPATCHED: 1 });
    await bench.store.reportRuns(a, [ended(1, 1)], 3);
    other.woken.length = 0;
    await other.runSite(a);
    expect(other.woken).toEqual([b]);
  });

  test('wakes who planned before a copy of a grid-wide license came free that was taken in meanwhile', async () => {
    const store = new MemoryStore();
    const license = store.addLicense('sim', 1, null);
    let meanwhile = async (): Promise<void> => {};
    const bench = new Bench(
      {},
      {
        applyStarts: async (...args) => {
          await meanwhile();
          return store.applyStarts(...args);
        },
      },
      store,
    );
    const a = await bench.site('a', 4, [license]);
    const b = await bench.site('b', 4, [license]);
    await bench.submit(2, { licenses: ['sim'] });
    await bench.dispatch();
    await bench.runSite(a);
    meanwhile = async () => {
      await store.reportRuns(a, [ended(1, 1)], 3);
      await bench.dispatch();
    };
    await bench.runSite(b);
    expect(bench.states()).toEqual({ COMPLETED: 1, DISPATCHED: 1 });
    meanwhile = async () => {};
    bench.woken.length = 0;
    await bench.runSite(a);
    expect(bench.woken).toEqual([b]);
  });
});

test('a job goes back when its site can no longer run it and another can', async () => {
  const bench = new Bench();
  const a = await bench.site('a', 1);
  await bench.submit(3);
  await bench.dispatch();
  bench.store.setMachineState(1, 'DOWN');
  await bench.runSite(a);
  expect(stranded(bench.grid(), 10)).toEqual([]);
  await bench.runSite(await bench.site('b', 1));
  expect(stranded(bench.grid(), 2)).toEqual([{ siteId: a, reason: 'NO_MACHINE_NOW', jobIds: [1, 2] }]);
  expect(stranded(bench.grid(), 10)).toEqual([{ siteId: a, reason: 'NO_MACHINE_NOW', jobIds: [1, 2, 3] }]);
  expect(bench.states()).toEqual({ DISPATCHED: 3 });
  bench.woken.length = 0;
  await bench.runSite(a);
  expect(bench.states()).toEqual({ QUEUED: 3 });
  expect(bench.woken).toEqual([ROOT]);
  await bench.dispatch();
  expect(bench.states()).toEqual({ DISPATCHED: 3 });
});
