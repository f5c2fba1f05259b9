/** The root's queues (hierarchical-clusters.md): case by case, and against a plain reading of the rules. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CPUS, MEMORY } from '../../src/core/grid/amounts.js';
import {
  applyMove,
  DEFAULT_POLICY,
  dispatchCycle,
  type Grid,
  type Job,
  type LocalPolicy,
  type Policy,
  placement,
  type QueuesPolicy,
  whyWaiting,
} from '../../src/core/index.js';
import { powerOf } from '../../src/core/terms/power.js';
import { cases } from '../support/seed.js';
import { job } from './support/drive.js';
import { apply, dispatch, gridOf, plan as sitePlan } from './support/grids.js';

const policyOf = (
  given: Partial<QueuesPolicy>,
  local: LocalPolicy = { kind: 'first-fit', ageBoundS: null },
): Policy => ({
  ...DEFAULT_POLICY,
  local,
  dispatch: { kind: 'queues', order: 'FCFS', queueLimit: 0, ageBoundS: null, ...given },
});

/** `[id, to]` of the moves of a cycle. */
const movesOf = (grid: Grid, given: Partial<QueuesPolicy>, now = 0, maxMoves = 100): [number, number][] =>
  dispatch(grid, policyOf(given), now, maxMoves).moves.map(({ jobId, to }) => [jobId, to as number]);

/** One site of four CPUs on which three are taken, and at the root a wide, a short and a long job. */
function crowded(): Grid {
  const grid = gridOf([{ id: 1, cpus: 4 }]);
  grid.placeAtSite(job({ id: 90, cpusPerTask: 3 }), 1);
  apply(grid);
  grid.placeAtRoot(job({ id: 1, submittedAt: 1, tasks: 2, estimateS: 5 }));
  grid.placeAtRoot(job({ id: 2, submittedAt: 2, tasks: 1, estimateS: 30 }));
  grid.placeAtRoot(job({ id: 3, submittedAt: 3, tasks: 1, estimateS: 10 }));
  return grid;
}

describe('orders', () => {
  it('FCFS and SJF wait for their heads; First Fit, S-SJF and L-SJF pass them over', () => {
    expect(movesOf(crowded(), { order: 'FCFS' })).toEqual([]);
    expect(movesOf(crowded(), { order: 'SJF' })).toEqual([]);
    expect(movesOf(crowded(), { order: 'FF' })).toEqual([[2, 1]]);
    expect(movesOf(crowded(), { order: 'S-SJF' })).toEqual([[3, 1]]);
    expect(movesOf(crowded(), { order: 'L-SJF' })).toEqual([[3, 1]]);
  });

  it('serve in their order where there is room', () => {
    const idle = (): Grid => {
      const grid = crowded();
      grid.endRun(90);
      return grid;
    };
    expect(movesOf(idle(), { order: 'FCFS' }).map(([id]) => id)).toEqual([1, 2, 3]);
    expect(movesOf(idle(), { order: 'SJF' }).map(([id]) => id)).toEqual([1, 3, 2]);
    expect(movesOf(idle(), { order: 'S-SJF' }).map(([id]) => id)).toEqual([3, 2, 1]);
    expect(movesOf(idle(), { order: 'L-SJF' }).map(([id]) => id)).toEqual([1, 3, 2]);
  });

  it('count a job by the work of one of its tasks, whatever power its estimate is for', () => {
    const grid = gridOf([{ id: 1, cpus: 1 }]);
    grid.placeAtRoot(job({ id: 1, estimateS: 10, benchmark: 3 }));
    grid.placeAtRoot(job({ id: 2, estimateS: 20 }));
    expect(movesOf(grid, { order: 'SJF' })).toEqual([[2, 1]]);
  });

  it('let nobody wait behind a job that no site can run now', () => {
    const grid = gridOf([{ id: 1, cpus: 4 }]);
    grid.placeAtRoot(job({ id: 1, submittedAt: 0, os: 'bsd' }));
    grid.placeAtRoot(job({ id: 2, submittedAt: 1 }));
    const plan = dispatch(grid, policyOf({}));
    expect(plan.moves.map(({ jobId }) => jobId)).toEqual([2]);
    expect(plan.waitingByReason).toEqual({ NEVER_FITS_PLATFORM: 1 });
  });
});

describe('a local queue', () => {
  it('is in the order in which jobs arrived at the site, whatever the root gave away first', () => {
    const grid = gridOf([{ id: 1, cpus: 1 }]);
    grid.placeAtRoot(job({ id: 1, submittedAt: 1, estimateS: 900 }));
    grid.placeAtRoot(job({ id: 2, submittedAt: 2, estimateS: 5 }));
    const policy = { ...policyOf({ order: 'SJF', queueLimit: 1 }), local: { kind: 'fcfs' } as const };
    const send = (now: number) => {
      const [move] = dispatch(grid, policy, now).moves;
      if (move !== undefined) applyMove(grid, move, now);
      return move?.jobId;
    };
    grid.placeAtSite(job({ id: 9, submittedAt: 0 }), 1);
    apply(grid, 3, policy, 1);
    expect(send(10)).toBe(2);
    const wider = { ...policy, dispatch: { ...policy.dispatch, queueLimit: 2 } as never };
    const [next] = dispatch(grid, wider, 20).moves;
    applyMove(grid, next as never, 20);
    expect(next?.jobId).toBe(1);
    grid.endRun(9);
    expect(sitePlan(grid, 30, wider).starts.map(({ jobId }) => jobId)).toEqual([2]);
  });
});

describe('the choice of a site', () => {
  it('weighs running jobs by the capacity of the site', () => {
    const grid = gridOf([
      { id: 1, siteId: 1, cpus: 2 },
      { id: 2, siteId: 2, cpus: 8 },
    ]);
    for (let id = 1; id <= 5; id++) grid.placeAtRoot(job({ id, submittedAt: id }));
    const { moves } = dispatch(grid, policyOf({ queueLimit: 0 }));
    // 0 and 0; 1/2 and 0; 1/2 and 1/8; ... until 1/2 and 4/8 are alike.
    expect(moves.map(({ to }) => to)).toEqual([1, 2, 2, 2, 2]);
    expect(moves[2]?.explanation).toMatchObject({
      compared: 3,
      terms: { load: [1 / 2, 1 / 8], running: [1, 1] },
    });
  });

  it('prefers sites that start the job at once, of them the one that runs the fewest jobs', () => {
    const grid = gridOf([
      { id: 1, siteId: 1 },
      { id: 2, siteId: 2 },
      { id: 3, siteId: 3, cpus: 1 },
    ]);
    grid.placeAtSite(job({ id: 90 }), 1);
    apply(grid, 0, undefined, 1);
    for (let id = 1; id <= 4; id++) grid.placeAtRoot(job({ id }));
    const plan = dispatch(grid, policyOf({ queueLimit: 2 }));
    expect(plan.moves.map(({ to, reason }) => [to, reason])).toEqual([
      [2, 'STARTS_AT_ONCE'],
      [3, 'STARTS_AT_ONCE'],
      [1, 'STARTS_AT_ONCE'],
      [2, 'STARTS_AT_ONCE'],
    ]);
    expect(plan.moves[1]?.explanation).toMatchObject({
      sites: [1, 2, 3],
      terms: { waits: [0, 0, 0], queued: [0, 0, 0], running: [1, 1, 0] },
      candidates: [3],
      level: null,
    });
    expect(plan.moves[2]?.explanation.terms.waits).toEqual([0, 0, 1]);
  });

  it('then takes the shortest queue, then the fewest running jobs, then the first; a full one takes nothing', () => {
    const grid = gridOf([1, 2, 3].map((id) => ({ id, siteId: id, cpus: 2 })));
    for (const [id, site, cpusPerTask] of [
      [91, 1, 1],
      [92, 1, 1],
      [93, 2, 2],
      [94, 3, 2],
    ] as const)
      grid.placeAtSite(job({ id, cpusPerTask }), site);
    for (const site of [1, 2, 3]) apply(grid, 0, undefined, site);
    for (let id = 1; id <= 7; id++) grid.placeAtRoot(job({ id }));
    const plan = dispatch(grid, policyOf({ queueLimit: 2 }));
    expect(plan.moves.map(({ to }) => to)).toEqual([2, 3, 1, 2, 3, 1]);
    expect(plan.moves.every(({ reason }) => reason === 'SHORTEST_QUEUE')).toBe(true);
    expect(plan.moves[5]?.explanation.ineligible).toEqual({ 2: 'SITE_QUEUE_FULL', 3: 'SITE_QUEUE_FULL' });
    expect(plan.waitingByReason).toEqual({ NO_SITE_HAS_ROOM: 1 });
  });

  it('does not start a job at a site where others wait, even if it fits', () => {
    const grid = gridOf([{ id: 1, cpus: 4 }]);
    grid.placeAtSite(job({ id: 90, cpusPerTask: 3 }), 1);
    apply(grid);
    grid.placeAtSite(job({ id: 91, cpusPerTask: 4 }), 1);
    grid.placeAtRoot(job({ id: 1 }));
    expect(movesOf(grid, { queueLimit: 0 })).toEqual([]);
    expect(dispatch(grid, policyOf({ queueLimit: 2 })).moves[0]?.reason).toBe('SHORTEST_QUEUE');
  });

  it('counts no CPU, no memory and no copy of a license twice', () => {
    const pool = { id: 1, kind: 'cad', copies: 2, siteId: null };
    const machines = [1, 2].map((id) => ({ id, siteId: id, cpus: 4, memoryMb: 100, licenseIds: [1] }));
    const grid = gridOf(machines, [pool]);
    for (let id = 1; id <= 9; id++) grid.placeAtRoot(job({ id, cpusPerTask: 2 }));
    expect(movesOf(grid, {})).toHaveLength(4);
    for (let id = 1; id <= 9; id++) grid.placeAtRoot(job({ id, memoryMbPerTask: 60 }));
    expect(movesOf(grid, {})).toHaveLength(2);
    for (let id = 1; id <= 9; id++) grid.placeAtRoot(job({ id, licenses: ['cad'] }));
    expect(movesOf(grid, {})).toHaveLength(2);
  });

  it('leaves another site the grid-wide license that is reserved there', () => {
    const pool = { id: 1, kind: 'cad', copies: 1, siteId: null };
    const machines = [1, 2].map((id) => ({ id, siteId: id, cpus: 4, licenseIds: [1] }));
    const grid = gridOf(machines, [pool]);
    grid.placeAtSite(job({ id: 90, cpusPerTask: 4, estimateS: 50 }), 1);
    apply(grid);
    grid.placeAtSite(job({ id: 91, licenses: ['cad'] }), 1);
    apply(grid);
    expect(grid.siteEntry(1).reservation).toMatchObject({ jobId: 91, at: 50, pools: [{ id: 1, amount: 1 }] });
    grid.placeAtRoot(job({ id: 1, licenses: ['cad'], estimateS: 60 }));
    grid.placeAtRoot(job({ id: 2, licenses: ['cad'], estimateS: 40 }));
    expect(movesOf(grid, { order: 'FF' })).toEqual([[2, 2]]);
  });
});

describe('the age bound', () => {
  /** A site of one CPU that serves short jobs for ever, and a long one that came first. */
  const starving = (): Grid => {
    const grid = gridOf([{ id: 1, cpus: 4 }]);
    grid.placeAtSite(job({ id: 90, cpusPerTask: 3 }), 1);
    apply(grid);
    grid.placeAtRoot(job({ id: 1, submittedAt: 0, tasks: 2, estimateS: 500 }));
    grid.placeAtRoot(job({ id: 2, submittedAt: 50, estimateS: 5 }));
    return grid;
  };

  it.each(['SJF', 'FF', 'S-SJF', 'L-SJF'] as const)(
    '%s: who has waited longer is overtaken no more',
    (order) => {
      const given = { order, ageBoundS: 100 };
      expect(movesOf(starving(), given, 100)).toEqual([[2, 1]]);
      expect(movesOf(starving(), given, 100.5)).toEqual([]);
      expect(movesOf(starving(), { order, ageBoundS: null }, 1e9)).toEqual([[2, 1]]);
      const grid = starving();
      grid.endRun(90);
      expect(movesOf(grid, given, 100.5)).toEqual([
        [1, 1],
        [2, 1],
      ]);
    },
  );

  it('takes those that have waited too long by arrival', () => {
    const grid = gridOf([{ id: 1, cpus: 1 }]);
    grid.placeAtRoot(job({ id: 1, submittedAt: 3, estimateS: 1 }));
    grid.placeAtRoot(job({ id: 2, submittedAt: 2, estimateS: 100 }));
    grid.placeAtRoot(job({ id: 3, submittedAt: 1, estimateS: 200 }));
    expect(movesOf(grid, { order: 'SJF', queueLimit: 9, ageBoundS: 10 }, 12.5).map(([id]) => id)).toEqual([
      3, 2, 1,
    ]);
  });
});

describe('plans and explanations', () => {
  it('stop at the limit of moves and go on in the next cycle as if there had been none', () => {
    const grid = gridOf([{ id: 1, cpus: 8 }]);
    for (let id = 1; id <= 5; id++) grid.placeAtRoot(job({ id }));
    const plan = dispatch(grid, policyOf({ order: 'SJF' }), 0, 2);
    expect(plan.moves.map(({ jobId }) => jobId)).toEqual([1, 2]);
    expect(plan).toMatchObject({ truncated: true, waitingByReason: { MOVE_LIMIT: 3 } });
  });

  it('say who waits behind whom', () => {
    const grid = crowded();
    expect(dispatch(grid, policyOf({})).waitingByReason).toEqual({ NO_SITE_HAS_ROOM: 1, BEHIND_HEAD: 2 });
    const context = { now: 0, policy: policyOf({}) };
    expect(whyWaiting(grid, 1, context)).toMatchObject({ code: 'NO_SITE_HAS_ROOM' });
    expect(whyWaiting(grid, 3, context)).toMatchObject({
      code: 'BEHIND_HEAD',
      message: 'Job 1 is ahead of it in the global queue and must be dispatched first.',
      numbers: { headJob: 1, queueLimit: 0 },
    });
    const bySize = { now: 0, policy: policyOf({ order: 'L-SJF' }) };
    expect(whyWaiting(grid, 1, bySize)).toMatchObject({ code: 'NO_SITE_HAS_ROOM' });
    expect(whyWaiting(grid, 2, bySize)).toMatchObject({ code: 'NO_SITE_HAS_ROOM' });
    expect(whyWaiting(grid, 3, bySize)).toMatchObject({ code: 'READY' });
    const aged = { now: 1e6, policy: policyOf({ order: 'FF', ageBoundS: 10 }) };
    expect(whyWaiting(grid, 3, aged)).toMatchObject({ code: 'BEHIND_HEAD', numbers: { headJob: 1 } });
  });

  it('a dry run shows the sites with room first, and names none when there is none', () => {
    const grid = crowded();
    const context = { now: 0, policy: policyOf({ queueLimit: 1 }) };
    expect(placement(grid, job({ id: 9, tasks: 3 }), context)).toMatchObject({
      reason: 'SHORTEST_QUEUE',
      ranking: [{ siteId: 1, rank: 1, terms: { waits: 1, queued: 0, load: 1 / 4, running: 1 } }],
    });
    const none = placement(grid, job({ id: 9, tasks: 3 }), { now: 0, policy: policyOf({}) });
    expect(none).toMatchObject({
      reason: 'NO_SITE_HAS_ROOM',
      start: { expected: false, at: 100 },
      ranking: [{ siteId: 1, rank: null, ineligible: 'SITE_QUEUE_FULL' }],
    });
  });
});

describe('against a plain reading of the rules', () => {
  const anyJob = fc.record({
    tasks: fc.integer({ min: 1, max: 3 }),
    cpusPerTask: fc.integer({ min: 1, max: 3 }),
    memoryMbPerTask: fc.integer({ min: 0, max: 4 }),
    estimateS: fc.integer({ min: 1, max: 9 }),
    submittedAt: fc.integer({ min: 0, max: 30 }),
  });
  const given = fc.record({
    sites: fc.array(
      fc.record({
        machines: fc.array(
          fc.record({ cpus: fc.integer({ min: 1, max: 4 }), memoryMb: fc.integer({ min: 3, max: 8 }) }),
          {
            minLength: 1,
            maxLength: 3,
          },
        ),
        // What is at the site already: started as far as it fits, the rest waits there.
        local: fc.array(anyJob, { maxLength: 4 }),
      }),
      { minLength: 1, maxLength: 4 },
    ),
    jobs: fc.array(anyJob, { maxLength: 25, size: 'max' }),
    order: fc.constantFrom(
      'FCFS' as const,
      'SJF' as const,
      'FF' as const,
      'S-SJF' as const,
      'L-SJF' as const,
    ),
    queueLimit: fc.integer({ min: 0, max: 3 }),
    ageBoundS: fc.constantFrom(null, 15),
  });

  it('moves the same jobs to the same sites in the same order', () => {
    fc.assert(
      fc.property(given, ({ sites, jobs, ...rules }) => {
        let lastMachine = 0;
        const grid = gridOf(
          sites.flatMap(({ machines }, i) =>
            machines.map((m) => ({ ...m, id: ++lastMachine, siteId: i + 1 })),
          ),
        );
        let lastJob = 100;
        sites.forEach(({ local }, i) => {
          for (const shape of local) grid.placeAtSite(job({ ...shape, id: ++lastJob }), i + 1);
          apply(grid, 30, policyOf({}), i + 1);
        });
        const waiting = jobs.map((shape, i) => job({ ...shape, id: i + 1 }));
        for (const one of waiting) grid.placeAtRoot(one);
        const plan = dispatchCycle(grid, {
          now: 30,
          policy: policyOf(rules),
          policyVersion: 1,
          maxMoves: 1000,
        });
        expect(plan.moves.map(({ jobId, to }) => [jobId, to])).toEqual(plainly(grid, waiting, rules));
        const counted = Object.values(plan.waitingByReason).reduce((sum, n) => sum + n, 0);
        expect(plan.moves.length + counted).toBe(jobs.length);
      }),
      { numRuns: cases(2000) },
    );
  });

  /** One move after another: look at the queues from the start, take the first job that may go. */
  function plainly(grid: Grid, jobs: readonly Job[], rules: Omit<QueuesPolicy, 'kind'>): [number, number][] {
    const sites = grid.sites.map(({ site, queue, resources }) => ({
      id: site.id,
      queued: queue.length,
      running: resources.runs.length,
      capacity: powerOf(resources.machines),
      machines: resources.machines.map(({ machine: all, offset }) => ({
        cpus: resources.free.room[offset + CPUS] as number,
        memoryMb: resources.free.room[offset + MEMORY] as number,
        all,
      })),
    }));
    type Site = (typeof sites)[number];
    const room = (one: Job, cpus: number, memoryMb: number): number => {
      let tasks = 0;
      while (cpus >= (tasks + 1) * one.cpusPerTask && memoryMb >= (tasks + 1) * one.memoryMbPerTask) tasks++;
      return tasks;
    };
    const fits = (site: Site, one: Job): boolean =>
      site.machines.reduce((sum, m) => sum + room(one, m.cpus, m.memoryMb), 0) >= one.tasks;
    const ever = (site: Site, one: Job): boolean =>
      site.machines.reduce((sum, { all }) => sum + room(one, all.cpus, all.memoryMb), 0) >= one.tasks;
    const choose = (one: Job): Site | undefined =>
      sites
        .filter((site) => ever(site, one))
        .map((site) => ({ site, starts: site.queued === 0 && fits(site, one) }))
        .filter(({ site, starts }) => starts || site.queued < rules.queueLimit)
        .sort(
          (a, b) =>
            Number(b.starts) - Number(a.starts) ||
            (a.starts ? 0 : a.site.queued - b.site.queued) ||
            a.site.running / a.site.capacity - b.site.running / b.site.capacity ||
            a.site.id - b.site.id,
        )[0]?.site;
    const enter = (site: Site, one: Job): void => {
      if (site.queued > 0 || !fits(site, one)) {
        site.queued++;
        return;
      }
      site.running++;
      let left = one.tasks;
      for (const m of site.machines) {
        const tasks = Math.min(left, room(one, m.cpus, m.memoryMb));
        m.cpus -= tasks * one.cpusPerTask;
        m.memoryMb -= tasks * one.memoryMbPerTask;
        left -= tasks;
      }
    };

    const byArrival = (a: Job, b: Job): number => a.submittedAt - b.submittedAt || a.id - b.id;
    const byWork = (a: Job, b: Job): number => a.estimateS - b.estimateS || byArrival(a, b);
    let waiting = jobs.filter((one) => sites.some((site) => ever(site, one))).sort(byArrival);
    const moves: [number, number][] = [];
    for (;;) {
      const aged = waiting.find((one) => rules.ageBoundS !== null && 30 - one.submittedAt > rules.ageBoundS);
      const widths = [...new Set(waiting.map(({ tasks }) => tasks))].sort((a, b) => a - b);
      if (rules.order === 'L-SJF') widths.reverse();
      const head = (list: Job[]): Job[] => list.slice(0, 1);
      const tried =
        aged !== undefined
          ? [aged]
          : rules.order === 'FF'
            ? waiting
            : rules.order === 'FCFS'
              ? head(waiting)
              : rules.order === 'SJF'
                ? head([...waiting].sort(byWork))
                : widths.flatMap((width) =>
                    head(waiting.filter(({ tasks }) => tasks === width).sort(byWork)),
                  );
      const going = tried.find((one) => choose(one) !== undefined);
      if (going === undefined) return moves;
      const site = choose(going) as Site;
      moves.push([going.id, site.id]);
      enter(site, going);
      waiting = waiting.filter((one) => one !== going);
    }
  }
});
