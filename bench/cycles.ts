/**
 * Scheduling cycles as the engine runs them over Postgres: take in what changed, plan, apply. The grid is the bench's, the
 * code is the product's. What a cycle of a scheduler without memory would have to do first, reading its queue, is the
 * baseline of the backfilling cycles; the bare writing of the same rows is that of the dispatch cycle.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dispatchCycle, RandomStream, siteCycle } from '../src/core/index.js';
import type { Reservation, Start } from '../src/core/model.js';
import { createLogger } from '../src/platform/log.js';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../src/store/embedded.js';
import { Mirror } from '../src/store/mirror.js';
import type { Database } from '../src/store/pool.js';
import { PostgresStore } from '../src/store/postgres.js';
import type { NewJob } from '../src/store/store.js';
import { PLAIN_JOB } from '../test/support/plain-job.js';
import { newDatabase } from './database.js';
import { type Bench, type Measured, median, seconds, sideBySide, sized } from './measure.js';
import { bareConnections, RawPostgres } from './rawPostgres.js';

const SIZES = [1_000, 10_000, 100_000] as const;
const NAMES = [
  'dispatch-cycle',
  ...SIZES.map((size) => `backfill-${size}`),
  'backfill-kinds',
  'report-single',
  'start-single',
];
/** Beside CPUs and memory. */
const FURTHER = ['gpu', 'tape', 'scratch-gb', 'slots', 'fpga', 'burst-gb'];
const SITES = 50;
const MOVED = sized(10_000, 100);
const MACHINES = 20;
/** Sites that report, or start jobs, at the same time, and runs of each. */
const AT_ONCE = 64;
const EACH = sized(30, 2);

interface Run {
  jobId: number;
  epoch: number;
}

interface Plan {
  siteId: number;
  starts: readonly Start[];
  reservation: Reservation | null;
}

/** A database of its own, its store and its mirror. */
class Grid {
  private constructor(
    readonly url: string,
    private readonly database: Database,
    readonly store: PostgresStore,
    readonly mirror: Mirror,
  ) {}

  /** `further`: kinds of resource of which each machine has 16. */
  static async open(
    server: EmbeddedPostgres,
    name: string,
    sites: number,
    further: readonly string[] = [],
  ): Promise<Grid> {
    const { url, database } = await newDatabase(server, name, { poolSize: 4, statementTimeoutMs: 60_000 });
    await database.pool.query(
      `INSERT INTO sites (name) SELECT 'site-' || i FROM generate_series(1, ${sites}) i`,
    );
    await database.pool.query(
      `INSERT INTO machines (site_id, name, cpus, memory_mb, benchmark, os, architecture, silent, resources)
       SELECT s.id, 'm' || i, 4 + (i * 7) % 29, 131072, 100 + (i * 37) % 400, 'linux', 'x64', false, $1::jsonb FROM sites s, generate_series(1, ${MACHINES}) i`,
      [JSON.stringify(Object.fromEntries(further.map((kind) => [kind, 16])))],
    );
    const store = new PostgresStore(database);
    const mirror = new Mirror(store);
    await mirror.sync();
    return new Grid(url, database, store, mirror);
  }

  async submit(count: number, random: RandomStream, further: readonly string[] = []): Promise<void> {
    for (let done = 0; done < count; done += 10_000) {
      const jobs = Array.from({ length: Math.min(10_000, count - done) }, () => anyJob(random, further));
      await this.store.submit({ userId: 1, idempotencyKey: null, payloadHash: '', jobs, now: now() });
    }
  }

  /** The three phases of src/engine/dispatch.ts, without a bound, timed each. */
  async dispatch(): Promise<{ syncS: number; planS: number; applyS: number; moved: number }> {
    const { mirror, store } = this;
    const syncS = await seconds(() => mirror.sync());
    const { policy } = mirror;
    let moves: ReturnType<typeof dispatchCycle>['moves'] = [];
    const planS = await seconds(() => {
      moves = dispatchCycle(mirror.grid, {
        now: now(),
        policy: policy.document,
        policyVersion: policy.version,
        maxMoves: 1e6,
      }).moves;
    });
    const applyS = await seconds(async () => {
      for (let done = 0; done < moves.length; done += 10_000)
        await store.applyMoves(moves.slice(done, done + 10_000), {
          policyVersion: policy.version,
          cycle: 'bench',
          now: now(),
        });
    });
    return { syncS, planS, applyS, moved: moves.length };
  }

  /** The phases of src/engine/site.ts. */
  async fill(siteId: number): Promise<Run[]> {
    await this.mirror.sync();
    const plan = this.plan(siteId);
    return plan.starts.length === 0 ? [] : this.start(plan, plan.starts);
  }

  /** What starts at the site, of what is now in the mirror. */
  plan(siteId: number): Plan {
    const { mirror } = this;
    const { policy } = mirror;
    const { starts, reservation } = siteCycle(mirror.grid, siteId, {
      now: now(),
      policy: policy.document,
      policyVersion: policy.version,
      maxStarts: 2_000,
      countWaiting: false,
    });
    mirror.grid.setReservation(siteId, reservation);
    return { siteId, starts, reservation };
  }

  /** Of the plan these. */
  async start({ siteId, reservation }: Plan, starts: readonly Start[]): Promise<Run[]> {
    const { accepted, epochs } = await this.store.applyStarts(siteId, starts, reservation, {
      policyVersion: this.mirror.policy.version,
      cycle: 'bench',
      now: now(),
    });
    return accepted.map((jobId, index) => ({ jobId, epoch: epochs[index] as number }));
  }

  async end(siteId: number, runs: readonly Run[]): Promise<void> {
    const nothing = { message: null, cpuS: null, ioWaitS: null, signal: null };
    const reports = runs.map((run) => ({
      ...run,
      ...nothing,
      phase: 'ENDED' as const,
      at: now(),
      exitCode: 0,
      cause: 'EXITED_ZERO' as const,
    }));
    await this.store.reportRuns(siteId, reports, 3);
  }

  /** One of the runs of the first site ends; how long it takes to start others. */
  async endOneAndFill(runs: Run[], random: RandomStream): Promise<number> {
    const [ended] = runs.splice(random.integer(0, runs.length - 1), 1);
    await this.end(1, [ended as Run]);
    return seconds(async () => runs.push(...(await this.fill(1))));
  }

  close(): Promise<void> {
    return this.database.close();
  }
}

const now = (): number => Date.now() / 1000;

/** Every other one asks for one of the further kinds, if there are any. */
function anyJob(random: RandomStream, further: readonly string[]): NewJob {
  const estimateS = random.integer(600, 10_000);
  return {
    ...PLAIN_JOB,
    application: 'bench',
    cpusPerTask: random.integer(1, 24),
    memoryMbPerTask: 1024 * random.integer(1, 8),
    resourcesPerTask:
      further.length > 0 && random.next() < 0.5
        ? { [further[random.integer(0, further.length - 1)] as string]: random.integer(1, 4) }
        : null,
    estimateS,
    benchmark: random.integer(100, 500),
    deadline: random.next() < 0.7 ? now() + estimateS + random.integer(1_500, 5_500) : null,
  };
}

async function dispatchBench(server: EmbeddedPostgres): Promise<Measured> {
  const random = new RandomStream(1, 'dispatch');
  const grid = await Grid.open(server, 'dispatch', SITES);
  const raw = await RawPostgres.open(grid.url);
  const plans: number[] = [];
  try {
    await grid.submit(MOVED, random);
    await grid.dispatch();
    const result = await sideBySide(
      {
        name: 'dispatch-cycle',
        unit: 's',
        aim: { ratio: 1.5 },
        what: `reading, planning and applying (durable, every term recorded) 10 000 moves of waiting jobs to ${SITES} sites; against raw Postgres statements of the same rows`,
      },
      5,
      async () => {
        await grid.submit(MOVED, random);
        await grid.mirror.sync();
        const { syncS, planS, applyS, moved } = await grid.dispatch();
        if (moved !== MOVED) throw new Error(`${moved} of ${MOVED} jobs were moved`);
        plans.push(planS);
        return syncS + planS + applyS;
      },
      async () => {
        const ids = await raw.submit(MOVED);
        return seconds(() => raw.decide(ids, 800));
      },
    );
    return {
      ...result,
      note: `of these, the plan (the core's \`dispatchCycle\`) takes ${(median(plans) * 1000).toFixed(0)} ms; the rest is Postgres writing 10 000 changed jobs, events and decisions`,
    };
  } finally {
    await raw.close();
    await grid.close();
  }
}

async function backfillBench(server: EmbeddedPostgres, size: number): Promise<Measured> {
  const random = new RandomStream(2, 'backfill');
  const grid = await Grid.open(server, `backfill_${size}`, 1);
  const raw = await RawPostgres.open(grid.url);
  try {
    await grid.submit(sized(size + 1_000, 1_000), random);
    await grid.dispatch();
    const runs = await grid.fill(1);
    return await sideBySide(
      {
        name: `backfill-${size}`,
        unit: 's',
        aim: size === 100_000 ? { value: 0.01 } : null,
        what: `${size.toLocaleString('en').replaceAll(',', ' ')} queued jobs, one run has ended: read that change, plan by flexible backfilling, start the jobs that fit; against a raw SELECT of the queue`,
      },
      15,
      () => grid.endOneAndFill(runs, random),
      () => seconds(() => raw.queue()),
    );
  } finally {
    await raw.close();
    await grid.close();
  }
}

/** Eight kinds of resource against two. */
async function kindsBench(server: EmbeddedPostgres): Promise<Measured> {
  const size = sized(100_000, 1_000);
  const worlds = await Promise.all(
    [FURTHER, []].map(async (further, i) => {
      const random = new RandomStream(2, 'backfill');
      const grid = await Grid.open(server, `backfill_kinds_${i}`, 1, further);
      await grid.submit(size, random, further);
      await grid.dispatch();
      return { grid, random, runs: await grid.fill(1) };
    }),
  );
  const [eight, two] = worlds.map(
    ({ grid, random, runs }) =>
      () =>
        grid.endOneAndFill(runs, random),
  ) as [() => Promise<number>, () => Promise<number>];
  try {
    return await sideBySide(
      {
        name: 'backfill-kinds',
        unit: 's',
        aim: { ratio: 1.5 },
        what: 'as backfill-100000, with eight kinds of resource, of which every other job asks for a third one; against two kinds',
      },
      31,
      eight,
      two,
    );
  } finally {
    for (const { grid } of worlds) await grid.close();
  }
}

/** Of each list, one after the other, all lists at a time; how many in a second. */
async function inTurnPerSecond<T>(
  lists: readonly T[][],
  once: (one: T) => Promise<unknown>,
): Promise<number> {
  const elapsed = await seconds(() =>
    Promise.all(
      lists.map(async (list) => {
        for (const one of list) await once(one);
      }),
    ),
  );
  return lists.flat().length / elapsed;
}

interface Single {
  name: string;
  /** Of its database, and its random stream. */
  of: string;
  seed: number;
  what: string;
  /** Where jobs wait at all sites: how many of them in a second. */
  rate(grid: Grid): Promise<number>;
  /** Of as many bare rows that are so this is done. */
  bare: ['dispatched', 'start'] | ['running', 'end'];
}

/** What sites do, each one after another, all of them at a time; against bare statements. */
async function singleBench(
  server: EmbeddedPostgres,
  { name, of, seed, what, rate, bare }: Single,
): Promise<Measured> {
  const random = new RandomStream(seed, of);
  const grid = await Grid.open(server, of, AT_ONCE);
  const raw = await RawPostgres.open(grid.url);
  const connections = await bareConnections(grid.url, AT_ONCE);
  const all = AT_ONCE * EACH;
  const [made, done] = bare;
  try {
    return await sideBySide(
      {
        ...{ name, unit: 'jobs/s', aim: { ratio: 0.5 } },
        what: `${AT_ONCE} sites ${what} when it is durable; against bare statements of the same rows by as many connections, as durable`,
      },
      3,
      async () => {
        await grid.submit(4 * all, random);
        await grid.dispatch();
        return rate(grid);
      },
      async () => {
        const ids = await raw[made](all);
        const lists = Array.from({ length: AT_ONCE }, (_, i) => ids.slice(i * EACH, (i + 1) * EACH));
        return inTurnPerSecond(lists, connections[done]);
      },
    );
  } finally {
    await connections.close();
    await raw.close();
    await grid.close();
  }
}

const REPORTS: Single = {
  ...{ name: 'report-single', of: 'reports', seed: 3, bare: ['running', 'end'] },
  what: 'report the end of one run after another, each acknowledged',
  async rate(grid) {
    const lists: { siteId: number; run: Run }[][] = [];
    for (let siteId = 1; siteId <= AT_ONCE; siteId++)
      lists.push((await grid.fill(siteId)).slice(0, EACH).map((run) => ({ siteId, run })));
    return inTurnPerSecond(lists, ({ siteId, run }) => grid.end(siteId, [run]));
  },
};

const STARTS: Single = {
  ...{ name: 'start-single', of: 'starts', seed: 4, bare: ['dispatched', 'start'] },
  what: 'start one job after another, each answered',
  async rate(grid) {
    await grid.mirror.sync();
    const plans = Array.from({ length: AT_ONCE }, (_, i) => grid.plan(i + 1));
    const lists = plans.map((plan) => plan.starts.slice(0, EACH).map((start) => ({ plan, start })));
    const runs = new Map(plans.map(({ siteId }) => [siteId, [] as Run[]]));
    const rate = await inTurnPerSecond(lists, async ({ plan, start }) => {
      runs.get(plan.siteId)?.push(...(await grid.start(plan, [start])));
    });
    for (const [siteId, begun] of runs) await grid.end(siteId, begun);
    return rate;
  },
};

export const cyclesBench: Bench = {
  names: NAMES,
  async run(only) {
    const home = mkdtempSync(join(tmpdir(), 'switchyard-bench-'));
    const server = await startEmbeddedPostgres({
      home,
      log: createLogger({ level: 'warn', process: 'bench' }),
    });
    try {
      const results: Measured[] = [];
      if (only('dispatch-cycle')) results.push(await dispatchBench(server));
      for (const size of SIZES) if (only(`backfill-${size}`)) results.push(await backfillBench(server, size));
      if (only('backfill-kinds')) results.push(await kindsBench(server));
      for (const single of [REPORTS, STARTS])
        if (only(single.name)) results.push(await singleBench(server, single));
      return results;
    } finally {
      await server.stop();
      rmSync(home, { recursive: true, force: true });
    }
  },
};
