/** The grid tree as a dispatch policy: what its cycles decide on a grid with schedulers between the root and sites. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  applyMove,
  DEFAULT_POLICY,
  type DispatchPlan,
  dispatchCycle,
  Grid,
  type Job,
  type JobPreference,
  type Machine,
  type Policy,
  parsePolicy,
  placement,
  SchedulerTree,
  type Site,
  siteCycle,
  type TreeScheduler,
  whyWaiting,
} from '../../src/core/index.js';
import { withParts } from '../support/plain-job.js';
import { cases } from '../support/seed.js';
import { shuffler } from '../support/shuffle.js';
import { job } from './support/drive.js';
import { machine } from './support/grids.js';
import { applyMoves, settle } from './support/moves.js';

const treePolicy = (given: Record<string, unknown> = {}): Policy =>
  parsePolicy({ ...DEFAULT_POLICY, local: { kind: 'fcfs' }, dispatch: { kind: 'grid-tree', ...given } });
const POLICY = treePolicy({ queueLimit: 0 });

/** The root, two schedulers, and below each two sites of one machine; a fifth site directly under the root. */
function fiveSites(cpus = 2): Grid {
  const grid = new Grid();
  grid.index(SchedulerTree).set([
    { id: 1, name: 'west', parentId: null },
    { id: 2, name: 'east', parentId: null },
  ]);
  for (let id = 1; id <= 5; id++) {
    const schedulerId = id <= 2 ? 1 : id <= 4 ? 2 : null;
    grid.setSite({ ...site(id), schedulerId, position: { latitude: 0, longitude: id * 10 } });
    grid.setMachine(machine({ id, siteId: id, cpus }));
  }
  return grid;
}

const site = (id: number): Site => ({ id, name: `site ${id}`, state: 'UP', localPolicy: null });

const submit = (grid: Grid, ...jobs: (Partial<Job> & { id: number })[]): void => {
  for (const each of jobs) grid.placeAtRoot(job({ submittedAt: each.id, ...each }));
};

/** Where each job is: `L3` in the local queue of site 3, `M3` before it, `S1` at scheduler 1, `root`, `run3`. */
function places(grid: Grid, ids: readonly number[]): string[] {
  return ids.map((id) => {
    const at = grid.placeOf(id);
    if (at === null) return 'gone';
    if (at.at === 'ROOT') {
      const { schedulerId } = grid.job(id) as Job;
      return schedulerId === null ? 'root' : `S${schedulerId}`;
    }
    return `${{ META: 'M', QUEUE: 'L', RUNNING: 'run' }[at.at]}${at.siteId}`;
  });
}

/** Every site starts what it can. */
function start(grid: Grid, policy = POLICY, now = 0): void {
  for (const { site } of grid.sites) {
    const { starts } = siteCycle(grid, site.id, { now, policy, policyVersion: 1, maxStarts: 1000 });
    for (const { jobId, allocations, pools, plannedDuration } of starts) {
      const plannedEnd = now + plannedDuration;
      grid.startRun({ jobId, siteId: site.id, epoch: 1, allocations, pools, start: now, plannedEnd });
    }
  }
}

/** All sites are full, and 21 to 30 wait; nothing but what is changed then can move anything. */
function full(policy = POLICY, jobs: (id: number) => Partial<Job> = () => ({})): Grid {
  const grid = fiveSites();
  submit(grid, ...ids(1, 10).map((id) => ({ id })));
  settle(grid, policy, 0);
  start(grid, policy);
  submit(grid, ...ids(21, 30).map((id) => ({ id, ...jobs(id) })));
  settle(grid, policy, 0);
  return grid;
}

const ids = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);
const end = (grid: Grid, siteId: number, runs = 1): void => {
  for (const { jobId } of grid.siteEntry(siteId).resources.runs.slice(0, runs)) grid.endRun(jobId);
};
const pathOf = ({ moves }: DispatchPlan, id: number) =>
  moves.find(({ jobId }) => jobId === id)?.explanation.path;

describe('work is pushed to the sites that ask', () => {
  it('by shares, down to the local queues where it can start; the others wait where they are', () => {
    const grid = fiveSites();
    submit(grid, ...ids(1, 15).map((id) => ({ id })));
    const [plan] = settle(grid, POLICY, 0) as [DispatchPlan];
    const at = places(grid, ids(1, 15));
    for (let id = 1; id <= 5; id++) {
      expect(at.filter((each) => each === `L${id}`)).toHaveLength(2);
      expect(at.filter((each) => each === `M${id}`).length).toBeLessThanOrEqual(1);
    }
    for (const { jobId, explanation } of plan.moves) {
      const [first] = explanation.path ?? [];
      expect(first, `job ${jobId}`).toMatchObject({ reason: 'BRANCH_SHARE' });
      expect(explanation.priorityTerms).toMatchObject({ power: expect.any(Number) });
    }
    // West comes first on the way to its sites.
    const west = plan.moves.find(({ to }) => to === 1);
    expect(west?.explanation.path).toEqual([
      { schedulerId: 1, reason: 'BRANCH_SHARE' },
      { siteId: 1, reason: 'BRANCH_SHARE' },
      { siteId: 1, reason: 'CLAIMED' },
    ]);
    expect(settle(grid, POLICY, 0).flatMap(({ moves }) => moves)).toEqual([]);
  });

  it('nobody asks while all CPUs are in use, and jobs wait at the root', () => {
    const grid = full();
    expect(new Set(places(grid, ids(21, 30)))).toEqual(new Set(['root']));
    expect(whyWaiting(grid, 25, { policy: POLICY, now: 0 })).toMatchObject({
      code: 'NO_BRANCH_ASKS',
      numbers: { waiting: 10, ahead: 4 },
    });
    expect(placement(grid, job({ id: 99 }), { policy: POLICY, now: 0 })).toMatchObject({ siteId: null });
  });

  it('a run ends: the first job in order goes there, and blocks wait at the schedulers in between', () => {
    const grid = full();
    end(grid, 1);
    const [plan] = settle(grid, POLICY, 0) as [DispatchPlan];
    expect(places(grid, [21])).toEqual(['L1']);
    // West had asked for one of its sites: the share of the other one stays with it.
    const held = places(grid, ids(22, 30));
    expect(held.filter((at) => at === 'S1').length).toBeGreaterThan(0);
    expect(plan.moves.filter(({ queue }) => queue === 'SCHEDULER').every(({ to }) => to === 1)).toBe(true);
    const why = whyWaiting(grid, 22, { policy: POLICY, now: 0 });
    expect(why?.code).toMatch(/META_QUEUE|NO_BRANCH_ASKS/);
  });

  it('no site gets two jobs for one CPU while another that asks gets none, unless shares are rounded up', () => {
    const threeSites = (): Grid => {
      const grid = new Grid();
      for (const id of ids(1, 3)) {
        grid.setSite(site(id));
        grid.setMachine(machine({ id, siteId: id, cpus: 1 }));
      }
      submit(grid, ...ids(1, 4).map((id) => ({ id })));
      return grid;
    };
    const grid = threeSites();
    settle(grid, POLICY, 0);
    expect(places(grid, ids(1, 4))).toEqual(['L1', 'L2', 'L3', 'M1']);
    const up = threeSites();
    settle(up, treePolicy({ queueLimit: 0, shares: 'UP' }), 0);
    expect(places(up, ids(1, 4))).toEqual(['L1', 'M1', 'L2', 'M2']);
  });

  it('of sites that ask at once, the one with the larger free share is served first, or the first in order', () => {
    const partly = (asks: string): string[] => {
      const grid = new Grid();
      for (const id of ids(1, 2)) {
        grid.setSite(site(id));
        grid.setMachine(machine({ id, siteId: id, cpus: 2 }));
      }
      grid.placeAtSite(job({ id: 1 }), 1);
      start(grid);
      submit(grid, { id: 2 });
      settle(grid, treePolicy({ queueLimit: 0, asks }), 0);
      return places(grid, [2]);
    };
    expect(partly('FREEST_FIRST')).toEqual(['L2']);
    expect(partly('IN_ORDER')).toEqual(['L1']);
  });

  it('a higher boost goes first', () => {
    const grid = full(POLICY, (id) => ({ boost: id === 27 ? 5 : 0 }));
    end(grid, 1);
    settle(grid, POLICY, 0);
    expect(places(grid, [27])).toEqual(['L1']);
  });

  it('up to queueLimit jobs that cannot start wait in a local queue', () => {
    const policy = treePolicy({ queueLimit: 2 });
    const grid = fiveSites();
    submit(grid, ...ids(1, 40).map((id) => ({ id })));
    settle(grid, policy, 0);
    for (const { queue } of grid.sites) expect(queue.length).toBe(4);
  });

  it('a plan that is cut goes on where it was', () => {
    const whole = fiveSites();
    const inParts = fiveSites();
    for (const grid of [whole, inParts]) submit(grid, ...ids(1, 40).map((id) => ({ id })));
    settle(whole, POLICY, 0);
    const plans = settle(inParts, POLICY, 0, 3);
    expect(plans.every(({ moves }) => moves.length <= 3)).toBe(true);
    expect(plans.length).toBeGreaterThan(3);
    for (const { queue } of inParts.sites) expect(queue.length).toBe(2);
  });
});

describe('what waits moves', () => {
  const nearFive: Partial<Job> = {
    data: { originSiteId: 5, sandboxMb: 0, inputs: [], outputMb: 0, computationShare: null },
  };

  it('to a nearer site that frees up', () => {
    const grid = full(POLICY, () => nearFive);
    end(grid, 1);
    settle(grid, POLICY, 0);
    start(grid);
    const waitsFar = ids(22, 30).filter(
      (id) => places(grid, [id])[0] === 'M1' || places(grid, [id])[0] === 'S1',
    );
    expect(waitsFar.length).toBeGreaterThan(0);
    end(grid, 5);
    const [plan] = settle(grid, POLICY, 0) as [DispatchPlan];
    const moved = plan.moves.filter(({ to, queue }) => queue === 'LOCAL' && to === 5);
    expect(moved.map(({ jobId }) => jobId)).toEqual([waitsFar[0]]);
    expect(pathOf(plan, waitsFar[0] as number)?.some(({ reason }) => reason === 'BUTTERFLY')).toBe(true);
    expect((grid.job(waitsFar[0] as number) as Job).treeMoves).toBe(1);

    const off = treePolicy({ queueLimit: 0, butterfly: false });
    const still = full(off, () => nearFive);
    end(still, 1);
    settle(still, off, 0);
    end(still, 5);
    const reasons = settle(still, off, 0).flatMap(({ moves }) => moves.map(({ reason }) => reason));
    expect(reasons).not.toContain('BUTTERFLY');
  });

  it('to where more of its preferences hold, before it is closer', () => {
    const preferences: JobPreference[] = [{ siteId: 4 }, { os: 'linux', memoryMbPerTask: 500 }];
    const grid = fiveSites();
    submit(grid, { id: 1, ...nearFive, preferences });
    const placed = placement(grid, grid.job(1) as Job, { policy: POLICY, now: 0 });
    expect(placed.ranking.map(({ siteId, terms }) => [siteId, terms.unmet])).toEqual(
      expect.arrayContaining([
        [4, 0],
        [5, 1],
      ]),
    );
    grid.removeJob(1);
    const waits = full(POLICY, () => ({ preferences }));
    end(waits, 1);
    settle(waits, POLICY, 0);
    start(waits);
    end(waits, 4);
    const moves = settle(waits, POLICY, 0).flatMap((plan) => plan.moves);
    expect(moves.filter(({ to }) => to === 4)[0]).toMatchObject({ queue: 'LOCAL', jobId: 22 });
  });

  it('away from machines that cannot run it any more, ahead of later arrivals', () => {
    const grid = full(POLICY, () => ({ memoryMbPerTask: 10 }));
    end(grid, 1);
    settle(grid, POLICY, 0);
    start(grid);
    const held = ids(22, 30).filter((id) => ['M1', 'S1'].includes(places(grid, [id])[0] as string));
    const first = held[0] as number;
    // Later ones wait elsewhere: site 5 had asked for them.
    end(grid, 5);
    settle(grid, POLICY, 0);
    start(grid);
    // A site that lost its memory cannot run what waits before it.
    for (const id of [1, 2]) grid.setMachine(machine({ id, siteId: id, cpus: 2, memoryMb: 5 }));
    const plan = settle(grid, POLICY, 0)[0] as DispatchPlan;
    const at = places(grid, ids(21, 30));
    expect(at).not.toContain('M1');
    expect(at).not.toContain('S1');
    expect(pathOf(plan, first)?.map(({ reason }) => reason)).toContain('FALLBACK');
    end(grid, 5);
    settle(grid, POLICY, 0);
    expect(places(grid, [first])).toEqual(['L5']);
  });

  it('when its scheduler is removed: its sites and jobs are the one above, and go on', () => {
    const grid = full();
    end(grid, 1);
    settle(grid, POLICY, 0);
    const held = ids(21, 30).filter((id) => places(grid, [id])[0] === 'S1');
    expect(held.length).toBeGreaterThan(0);
    grid.index(SchedulerTree).set([{ id: 2, name: 'east', parentId: null }]);
    for (const id of [1, 2]) grid.setSite({ ...grid.siteEntry(id).site, schedulerId: null });
    const [plan] = settle(grid, POLICY, 0) as [DispatchPlan];
    for (const id of held) expect(pathOf(plan, id)?.[0]).toEqual({ reason: 'SCHEDULER_REMOVED' });
    expect(places(grid, ids(21, 30))).not.toContain('S1');
    for (let i = 0; i < 12; i++) {
      start(grid);
      for (const id of [1, 2, 3, 4, 5]) end(grid, id);
      settle(grid, POLICY, 0);
    }
    expect(new Set(places(grid, ids(21, 30)))).toEqual(new Set(['gone']));
  });

  it('on under another policy, from wherever it waits', () => {
    const grid = full();
    end(grid, 1);
    settle(grid, POLICY, 0);
    const held = ids(21, 30).filter((id) => ['S1', 'root'].includes(places(grid, [id])[0] as string));
    expect(held.length).toBeGreaterThan(0);
    settle(grid, DEFAULT_POLICY, 0);
    for (const id of held) {
      expect(places(grid, [id])[0]).toMatch(/^L/);
      expect((grid.job(id) as Job).schedulerId).toBeNull();
    }
  });
});

// ---- Properties ----

interface World {
  schedulers: TreeScheduler[];
  sites: Site[];
  machines: Machine[];
  jobs: { job: Job; at: 'ROOT' | 'META' | 'LOCAL' | 'RUN'; siteId: number }[];
}

const small = (max: number) => fc.integer({ min: 0, max });

const world: fc.Arbitrary<World> = fc
  .record({
    parents: fc.array(small(4), { maxLength: 5 }),
    sites: fc.array(
      fc.record({ under: small(5), down: small(9), machines: fc.array(small(3), { maxLength: 3 }) }),
      {
        minLength: 1,
        maxLength: 6,
      },
    ),
    jobs: fc.array(
      fc.record({
        at: small(5),
        site: small(5),
        cpus: small(3),
        memory: small(2),
        boost: small(9),
        under: small(6),
        likes: small(6),
      }),
      { maxLength: 40 },
    ),
  })
  .map(({ parents, sites, jobs }) => {
    const schedulers = parents.map((parent, i) => ({
      id: i + 1,
      name: `s${i + 1}`,
      parentId: parent === 0 || parent > i ? null : parent,
    }));
    const made: Site[] = sites.map(({ under, down }, i) => ({
      ...site(i + 1),
      state: down === 0 ? 'DOWN' : 'UP',
      schedulerId: under === 0 || under > schedulers.length ? null : under,
      position: i % 3 === 2 ? null : { latitude: i * 10, longitude: i * 20 },
    }));
    let id = 0;
    const machines = sites.flatMap((one, i) =>
      one.machines.map((kind) =>
        machine({
          id: ++id,
          siteId: i + 1,
          cpus: 1 + kind,
          memoryMb: 100 * (4 - kind),
          available: kind !== 3 || i > 1,
        }),
      ),
    );
    return {
      schedulers,
      sites: made,
      machines,
      jobs: jobs.map(({ at, site, cpus, memory, boost, under, likes }, i) => {
        const siteId = 1 + (site % made.length);
        const up = made[siteId - 1]?.state === 'UP';
        const liked: JobPreference =
          likes % 2 === 0 ? { siteId: 1 + (likes % made.length) } : { memoryMbPerTask: 300 };
        const where = (['ROOT', 'ROOT', 'META', 'META', 'LOCAL', 'RUN'] as const)[at] as 'ROOT';
        return {
          job: job({
            id: i + 1,
            submittedAt: Math.floor(i / 3),
            cpusPerTask: 1 + cpus,
            memoryMbPerTask: memory * 100,
            boost: boost === 0 ? 3 : 0,
            schedulerId: where === 'ROOT' && under > 0 ? under : null,
            preferences: likes > 3 ? [liked] : [],
          }),
          at: up ? where : 'ROOT',
          siteId,
        };
      }),
    };
  });

function gridFrom(
  { schedulers, sites, machines, jobs }: World,
  shuffle: <T>(list: T[]) => T[] = (list) => list,
): Grid {
  const grid = new Grid();
  grid.index(SchedulerTree).set(shuffle([...schedulers]));
  for (const one of shuffle([...sites])) grid.setSite(one);
  for (const one of shuffle([...machines])) grid.setMachine(one);
  for (const { job, at, siteId } of shuffle([...jobs])) {
    if (at === 'META') grid.placeAtMeta({ ...job, schedulerId: null }, siteId);
    else if (at === 'ROOT') grid.placeAtRoot(job);
    else grid.placeAtSite({ ...job, schedulerId: null }, siteId);
    const [first] = machines.filter((one) => one.siteId === siteId && one.available);
    const fits = first && grid.siteEntry(siteId).resources.runs.length === 0 && first.cpus >= job.cpusPerTask;
    if (at === 'RUN' && fits && first.memoryMb >= job.memoryMbPerTask) {
      const allocations = [{ machineId: first.id, tasks: 1 }];
      grid.startRun({
        jobId: job.id,
        siteId,
        epoch: 1,
        allocations,
        pools: [],
        start: 0,
        plannedEnd: 100,
      });
    }
  }
  return grid;
}

/** What happens between two cycles; `n` says to whom. */
const change = fc.record({
  what: fc.constantFrom(
    ...(['SUBMIT', 'SUBMIT', 'END', 'END', 'START', 'REMOVE', 'BOOST', 'MACHINE', 'SITE', 'TREE'] as const),
  ),
  n: small(99),
});

function apply(
  grid: Grid,
  schedulers: TreeScheduler[],
  one: { what: string; n: number },
  lastId: number,
): number {
  const { what, n } = one;
  const pick = <T>(list: readonly T[]): T | undefined => list[n % Math.max(1, list.length)];
  const queues = [grid.root, ...grid.sites.map(({ meta }) => meta)];
  const waiting = queues.flatMap(({ jobs, siteId }) => jobs.flatMap((job) => (job ? [{ job, siteId }] : [])));
  const entry = pick(grid.sites);
  if (what === 'SUBMIT') {
    const preferences = n % 3 === 0 ? [{ siteId: 1 + (n % 4) }] : [];
    grid.placeAtRoot(
      job({
        id: lastId + 1,
        submittedAt: n % 7,
        cpusPerTask: 1 + (n % 3),
        memoryMbPerTask: (n % 5) * 50,
        preferences,
      }),
    );
    return lastId + 1;
  }
  if (what === 'END') {
    const run = pick(grid.sites.flatMap(({ resources }) => resources.runs));
    if (run !== undefined) grid.endRun(run.jobId);
  } else if (what === 'START') start(grid, undefined, 10);
  else if (what === 'REMOVE' && waiting.length > 0) grid.removeJob(pick(waiting)?.job.id as number);
  else if (what === 'BOOST' && waiting.length > 0) {
    const { job, siteId } = pick(waiting) as (typeof waiting)[number];
    const boosted = { ...job, boost: n % 4 };
    if (siteId === null) grid.placeAtRoot(boosted);
    else grid.placeAtMeta(boosted, siteId);
  } else if (what === 'MACHINE') {
    const state = pick(entry?.resources.machines ?? []);
    if (state !== undefined)
      grid.setMachine({ ...state.machine, memoryMb: 100 * (n % 5), available: n % 6 !== 0 });
  } else if (what === 'SITE' && entry !== undefined) {
    grid.setSite({
      ...entry.site,
      schedulerId: pick(schedulers)?.id ?? null,
      state: n % 4 === 0 ? 'DRAINING' : 'UP',
    });
  } else if (what === 'TREE') {
    const id = 100 + n;
    if (n % 2 === 0) schedulers.splice(n % Math.max(1, schedulers.length), 1);
    // Ids are not given twice: a scheduler would be below itself.
    else if (schedulers.every((other) => other.id !== id && other.parentId !== id))
      schedulers.push({ id, name: `s${n}`, parentId: pick(schedulers)?.id ?? null });
    grid.index(SchedulerTree).set(schedulers.map((one) => ({ ...one })));
  }
  return lastId;
}

/** The same content, come in another order. */
function copyOf(grid: Grid, schedulers: readonly TreeScheduler[]): Grid {
  const copy = new Grid();
  const sites = [...grid.sites].reverse();
  copy.index(SchedulerTree).set(schedulers);
  for (const { site } of sites) copy.setSite(site);
  for (const { resources } of sites)
    for (const { machine } of [...resources.machines].reverse()) copy.setMachine(machine);
  const jobsOf = ({ jobs }: Grid['root']): Job[] => jobs.filter((job) => job !== undefined).reverse();
  for (const job of jobsOf(grid.root)) copy.placeAtRoot(job);
  for (const { site, meta, queue, resources } of sites) {
    for (const job of jobsOf(meta)) copy.placeAtMeta(job, site.id);
    for (const job of jobsOf(queue)) copy.placeAtSite(job, site.id);
    for (const { run } of resources.runs) copy.restoreRun(run, grid.job(run.jobId) as Job);
  }
  return copy;
}

const rules = fc.record({
  butterfly: fc.boolean(),
  fallback: fc.boolean(),
  loadBalance: fc.boolean(),
  movesMax: fc.constantFrom(0, 2, 16),
  shares: fc.constantFrom('UP', 'DOWN_FIRST'),
  asks: fc.constantFrom('FREEST_FIRST', 'IN_ORDER'),
  power: fc.constantFrom('CPUS', 'BENCHMARK'),
  queueLimit: fc.constantFrom(0, 1, 3),
});

describe('whatever the grid and the rules', () => {
  it('each job is moved once, from where it is to somewhere else that can run it', () => {
    fc.assert(
      fc.property(world, rules, (given, document) => {
        const grid = gridFrom(given);
        const { moves } = dispatchCycle(grid, {
          now: 10,
          policy: treePolicy(document),
          policyVersion: 1,
          maxMoves: 1000,
        });
        expect(new Set(moves.map(({ jobId }) => jobId)).size).toBe(moves.length);
        for (const { jobId, from, to, queue, explanation } of moves) {
          const at = grid.placeOf(jobId);
          expect(at).toMatchObject(from === null ? { at: 'ROOT' } : { at: 'META', siteId: from });
          expect(explanation.path?.length).toBeGreaterThan(0);
          if (queue === 'SCHEDULER') {
            const known = given.schedulers.some(({ id }) => id === to);
            expect(to === null || known).toBe(true);
            if (from === null) expect(to).not.toBe((grid.job(jobId) as Job).schedulerId);
          } else {
            expect(explanation.ineligible[to]).toBeUndefined();
            expect(queue === 'META' && from === to).toBe(false);
          }
        }
      }),
      { numRuns: cases(120) },
    );
  });

  it('the plan depends on what is there only, and a process that begins anew decides as one that went on', () => {
    fc.assert(
      fc.property(
        world,
        rules,
        fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })),
        (given, document, draws) => {
          const policy = treePolicy(document);
          const shuffle = shuffler(draws);
          const context = { now: 10, policy, policyVersion: 1, maxMoves: 7 };
          const used = gridFrom(given);
          for (let round = 0; round < 4; round++) {
            const plan = dispatchCycle(used, context);
            expect(dispatchCycle(used, context)).toEqual(plan);
            const jobs = given.jobs.flatMap(({ job }) => {
              const at = used.placeOf(job.id);
              const now = used.job(job.id) as Job;
              if (at === null) return [];
              const where = { ROOT: 'ROOT', META: 'META', QUEUE: 'LOCAL', RUNNING: 'RUN' }[at.at] as 'ROOT';
              return [{ job: now, at: where, siteId: 'siteId' in at ? at.siteId : 1 }];
            });
            expect(dispatchCycle(gridFrom({ ...given, jobs }, shuffle), context)).toEqual(plan);
            applyMoves(used, plan, 10);
          }
        },
      ),
      { numRuns: cases(60) },
    );
  });

  it('kept from cycle to cycle, the tree decides as one made of what is there, whatever changes', () => {
    fc.assert(
      fc.property(
        world,
        rules,
        fc.array(fc.array(change, { maxLength: 6 }), { maxLength: 8 }),
        (given, document, rounds) => {
          const policy = treePolicy(document);
          const context = { now: 10, policy, policyVersion: 1, maxMoves: 20 };
          const kept = gridFrom(given);
          const schedulers = [...given.schedulers];
          let lastId = given.jobs.length;
          for (const changes of [[], ...rounds]) {
            for (const one of changes) lastId = apply(kept, schedulers, one, lastId);
            // Questions do not change answers.
            const asked = kept.root.jobs.find((job) => job !== undefined);
            if (asked !== undefined) whyWaiting(kept, asked.id, { policy, now: 10 });
            placement(kept, job({ id: 999, cpusPerTask: 2 }), { policy, now: 10 });
            const plan = dispatchCycle(kept, context);
            expect(dispatchCycle(copyOf(kept, schedulers), context)).toEqual(plan);
            // Some of it is refused.
            const accepted = plan.moves.filter(({ jobId }) => jobId % 5 !== changes.length);
            for (const move of accepted) applyMove(kept, move, 10);
          }
        },
      ),
      { numRuns: cases(150) },
    );
  });

  it('it comes to rest, and whatever waits then is told why', () => {
    fc.assert(
      fc.property(world, rules, (given, document) => {
        const policy = treePolicy(document);
        const grid = gridFrom(given);
        for (let i = 0; i < 60; i++) {
          settle(grid, policy, 10, 50);
          start(grid, policy, 10);
        }
        expect(settle(grid, policy, 10).flatMap(({ moves }) => moves)).toEqual([]);
        for (const { id } of given.jobs.map(({ job }) => job)) {
          const at = grid.placeOf(id);
          const why = whyWaiting(grid, id, { policy, now: 10 });
          expect(why === null).toBe(at?.at === 'RUNNING');
        }
      }),
      { numRuns: cases(40) },
    );
  });
});

it('sends a job of several parts to a site that has room for all of them together', () => {
  // Each site of four CPUs; the fifth has a second machine.
  const grid = fiveSites(4);
  grid.setMachine(machine({ id: 6, siteId: 5, cpus: 4 }));
  const parts = withParts([{ tasks: 2, cpusPerTask: 2 }, { cpusPerTask: 3 }]);
  submit(grid, { id: 1, ...parts }, { id: 2, ...withParts([{ cpusPerTask: 2 }, { tasks: 2 }]) });
  submit(grid, { id: 3, ...withParts([{ cpusPerTask: 4 }, { tasks: 2, cpusPerTask: 4 }]) });
  settle(grid, POLICY, 0);
  start(grid);
  const [first, second, third] = places(grid, [1, 2, 3]);
  expect(first).toBe('run5');
  expect(second).toMatch(/^run[1-5]$/);
  expect(third).toBe('root');
  expect(whyWaiting(grid, 3, { now: 0, policy: POLICY })).toMatchObject({
    ...{ code: 'NEVER_FITS_CPUS', numbers: { part: 1, partsBefore: 1, tasks: 2, cpusPerTask: 4 } },
    message: 'Part 1, next to the parts before it: No site has machines for 2 tasks with 4 CPUs each.',
  });
});

it('answers dry runs that follow each other, of other jobs with the same id', () => {
  const grid = fiveSites(4);
  const context = { now: 0, policy: treePolicy() };
  for (const cpusPerTask of [1, 2, 2, 4, 1])
    expect(placement(grid, job({ id: 9, cpusPerTask }), context).siteId).not.toBeNull();
});
