import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CPUS, MEMORY } from '../../src/core/grid/amounts.js';
import { amountIn } from '../../src/core/grid/site-resources.js';
import {
  DEFAULT_POLICY,
  type Held,
  imageOf,
  type Job,
  type JobPart,
  type LocalKind,
  type LocalPolicy,
  localKinds,
  type Policy,
  plainJob,
  type Run,
  type SitePlan,
  siteCycle,
  whyWaiting,
} from '../../src/core/index.js';
import { SitePass } from '../../src/core/local/pass.js';
import { placedParts } from '../support/plain-job.js';
import { assertUntil, cases, IN_FULL } from '../support/seed.js';
import { gridOf } from './support/grids.js';
import { CHOOSING } from './support/policies.js';
import { anyEventsWithParts, anySites, gpusOf, World } from './support/world.js';

const anyHeld = fc.record({
  machine: fc.nat(20),
  /** null: whole machines. */
  amounts: fc.constantFrom<Record<string, number> | null>(
    null,
    null,
    { cpus: 2 },
    { memoryMb: 4 },
    { gpu: 1 },
  ),
  license: fc.constantFrom(null, null, null, 1),
  from: fc.integer({ min: -3, max: 25 }),
  length: fc.integer({ min: 1, max: 20 }),
  ends: fc.constantFrom('LIMIT' as const, 'LIMIT' as const, 'EXPECTATION' as const),
  wholeSite: fc.constantFrom(false, false, false, true),
});
const given = fc.record({
  sites: anySites,
  mode: fc.constantFrom('MS' as const, 'LS' as const, 'NONE' as const),
  events: anyEventsWithParts,
  atOnce: fc.boolean(),
  holds: fc.array(fc.option(anyHeld, { freq: 4 }), { minLength: 3, maxLength: 12 }),
  /** By how much the limit is longer than the estimate; null: there is none. */
  limits: fc.array(fc.constantFrom(null, 0, 0, 3, 10), { minLength: 7, maxLength: 7 }),
});
type Given = typeof given extends fc.Arbitrary<infer G> ? G : never;

/** Something that is on machines for a time. */
interface Taking {
  job: Job;
  allocations: readonly { machineId: number; tasks: number }[];
  pools: Run['pools'];
  from: number;
  to: number;
  /** It begins by this plan: it may not have begun otherwise. */
  planned: boolean;
}

/** What a plan comes to: live runs (late ones end now), starts, and what is promised. */
function takings(w: World, plan: SitePlan): Taking[] {
  const jobOf = (id: number): Job => (w.atSite.get(id)?.job ?? w.running.get(id)?.job) as Job;
  const starting = new Set(plan.starts.map(({ jobId }) => jobId));
  const all: Taking[] = [...w.running.values()]
    .filter(({ job }) => !starting.has(job.id))
    .map(({ job, run }) => ({ ...run, job, from: run.start, to: run.plannedEnd, planned: false }));
  for (const { jobId, plannedDuration, ...start } of plan.starts) {
    const to = w.now + plannedDuration;
    all.push({ ...start, job: jobOf(jobId), from: w.now, to, planned: true });
  }
  const promises = imageOf(plan.memory)?.jobs ?? [];
  const { reservation } = plan;
  for (const { jobId, at, ...promise } of promises.length > 0 ? promises : reservation ? [reservation] : []) {
    const job = jobOf(jobId);
    const powers = promise.allocations.map(
      ({ machineId }) => w.machines.find(({ id }) => id === machineId)?.benchmark ?? 1,
    );
    const from = Math.max(at, w.now);
    const to = from + (job.estimateS * job.benchmark) / Math.min(...powers);
    // Whose time has come, but not its room, waits for a run that is late.
    if (at > w.now) all.push({ ...promise, job, from, to, planned: true });
  }
  return all;
}

/** How often a plan began something beside what is checked. */
const nothingSeen = () => ({ plans: 0, holds: 0, gpus: 0, places: 0, alone: 0, parts: 0 });
type Seen = ReturnType<typeof nothingSeen>;

/**
 * Nothing that a plan begins takes more than there is beside all else, of any resource at any instant, nor reaches by its limit into what
 * ends by limit; and who is to be alone, or with his user's only, is.
 */
function check(w: World, plan: SitePlan, seen: Seen): void {
  seen.plans++;
  const all = takings(w, plan);
  const holds = [...w.held.values()];
  const edges = [w.now, ...holds.map(({ from }) => from), ...all.map(({ from }) => from)];
  const covers = (one: { from: number; to: number }, at: number) => one.from <= at && at < one.to;
  for (const one of all) {
    if (!one.planned) continue;
    if (one.job.parts !== null) seen.parts++;
    const until = one.from + (one.job.runTimeLimitS ?? Infinity);
    const end = Math.max(until, one.to);
    const own = placedParts(one.job, one.allocations);
    for (const at of new Set([one.from, ...edges.filter((edge) => edge >= one.from && edge < end)])) {
      const held = holds.filter((hold) => covers(hold, at) && (at < one.to || hold.ends === 'LIMIT'));
      // At first late runs are still there.
      const beside = all.filter(
        (other) =>
          other === one ||
          (at < one.to && (covers(other, at) || (at === w.now && !other.planned && one.from === w.now))),
      );
      for (const machineId of new Set(own.map((each) => each.machineId))) {
        const machine = w.machines.find(({ id }) => id === machineId);
        if (machine === undefined) throw new Error(`machine ${machineId} is not there`);
        const on = held.flatMap(({ machines, siteId }) => [
          ...machines.filter((each) => each.machineId === machineId),
          ...(siteId === machine.siteId ? [{ machineId, amounts: null }] : []),
        ]);
        if (on.length > 0) seen.holds++;
        expect(on.some(({ amounts }) => amounts === null)).toBe(false);
        const there = beside.flatMap(({ job, allocations }) =>
          placedParts(job, allocations)
            .filter((each) => each.machineId === machineId)
            .map(({ tasks, part }) => ({ tasks, part, userId: job.userId })),
        );
        const asks = own.filter((each) => each.machineId === machineId).map(({ part }) => part);
        const left = (kind: string, total: number, asked: (part: JobPart) => number): number => {
          let free = total;
          for (const { amounts } of on) free -= amounts?.[kind] ?? 0;
          for (const { tasks, part } of there) free -= tasks * asked(part);
          return free;
        };
        // Who asks for none of it may come where load that is not ours has taken too much.
        if (asks.some(({ memoryMbPerTask }) => memoryMbPerTask > 0))
          expect(
            left('memoryMb', machine.memoryMb, ({ memoryMbPerTask }) => memoryMbPerTask),
          ).toBeGreaterThanOrEqual(0);
        if (asks.some(({ resourcesPerTask }) => gpusOf(resourcesPerTask) > 0)) {
          seen.gpus++;
          const gpus = left('gpu', gpusOf(machine.resources), (part) => gpusOf(part.resourcesPerTask));
          expect(gpus).toBeGreaterThanOrEqual(0);
        }
        if (machine.maxTasks) {
          seen.places++;
          expect(there.reduce((sum, { tasks }) => sum + tasks, 0)).toBeLessThanOrEqual(machine.maxTasks);
        } else expect(left('cpus', machine.cpus, ({ cpusPerTask }) => cpusPerTask)).toBeGreaterThanOrEqual(0);
        const exclusive = there.map(({ part }) => part.exclusive);
        if (exclusive.includes('MACHINE')) expect(there).toHaveLength(1);
        if (exclusive.includes('USER')) expect(new Set(there.map(({ userId }) => userId)).size).toBe(1);
        if (exclusive.some((how) => how !== null)) seen.alone++;
      }
      for (const { id } of one.pools) {
        const copies = w.licenses.find((license) => license.id === id)?.copies ?? 0;
        const taken = [...held, ...beside].reduce((sum, other) => sum + amountIn(other, id), 0);
        expect(taken).toBeLessThanOrEqual(copies);
      }
    }
  }
  // No device, and no share of one, is of two runs.
  const units = [...w.running.values()].flatMap(({ run: { allocations, devices } }) =>
    allocations.flatMap(({ machineId }, i) => (devices?.[i] ?? []).map((unit) => `${machineId} ${unit}`)),
  );
  expect(new Set(units).size).toBe(units.length);
}

function play({ sites, mode, events, atOnce, holds, limits }: Given, local: LocalPolicy) {
  const seen = nothingSeen();
  const policy: Policy = { ...DEFAULT_POLICY, local, dispatch: { ...DEFAULT_POLICY.dispatch, mode } };
  const w = new World(sites, policy, (world, plan) => check(world, plan, seen), atOnce);
  events.forEach((event, i) => {
    if (event.kind === 'submit') {
      const more = limits[i % limits.length] ?? null;
      // Power is 1 at least.
      const { estimateS, benchmark } = event.shape;
      const runTimeLimitS = more === null ? null : estimateS * benchmark + more;
      const shape = { ...event.shape, runTimeLimitS };
      w.play({ ...event, shape });
    } else w.play(event);
    if (i % 4 !== 0) return;
    const id = (i / 4) % holds.length;
    const hold = holds[id] ?? null;
    // As load that is not ours grows, and windows are set, whatever runs.
    if (w.held.has(id)) w.release(id);
    else if (hold !== null) w.hold(heldOf(w, id, hold));
    for (const site of w.sites) w.cycle(site.id);
  });
  return { w, seen };
}

function heldOf(w: World, id: number, hold: typeof anyHeld extends fc.Arbitrary<infer H> ? H : never): Held {
  const { amounts, license, from, length, ends, wholeSite } = hold;
  const machine = w.machines[hold.machine % w.machines.length];
  const begin = w.now + from;
  return {
    ...{ id, by: ends === 'LIMIT' ? 'WINDOW' : 'OTHERS', from: begin, to: begin + length, ends },
    machines: machine === undefined || wholeSite ? [] : [{ machineId: machine.id, amounts }],
    siteId: wholeSite ? (machine?.siteId ?? null) : null,
    pools: license === null || w.licenses.length === 0 ? [] : [{ id: license, amount: 1 + (id % 2) }],
  };
}

describe('what is held for a time', () => {
  it('is tried with every local policy that chooses machines', () => {
    const choosing = localKinds.filter((kind: LocalKind) => kind.handsOver === undefined);
    const kinds = choosing.map(({ schema }) => schema.shape.kind.value);
    expect(new Set(CHOOSING.map(({ kind }) => kind))).toEqual(new Set(kinds));
  });

  describe.each(CHOOSING)('under $kind', (local) => {
    it('is left alone: no run reaches into it, and nothing is taken twice', () => {
      const sum = nothingSeen();
      assertUntil(
        fc.property(given, (world) => {
          const { seen } = play(world, local);
          for (const what of Object.keys(sum) as (keyof Seen)[]) sum[what] += seen[what];
        }),
        { numRuns: cases(120) },
        () => {
          if (IN_FULL) for (const times of Object.values(sum)) expect(times).toBeGreaterThan(50);
        },
      );
    });

    it('is over some time: then everything that can run has run', () => {
      fc.assert(
        fc.property(given, (world) => {
          const { w } = play(world, local);
          w.sites.forEach((site, i) => {
            w.sites[i] = { ...site, state: 'UP' };
            w.grid.setSite(w.sites[i] as typeof site);
          });
          w.machines.forEach((machine, i) => {
            w.machines[i] = { ...machine, available: true };
            w.grid.setMachine(w.machines[i] as typeof machine);
          });
          for (let round = 0; round < 400 && w.atSite.size + w.running.size > 0; round++) {
            for (const { id } of w.sites) w.cycle(id);
            const ends = [...w.running.values()].sort((a, b) => a.run.plannedEnd - b.run.plannedEnd);
            const next = Math.min(ends[0]?.run.plannedEnd ?? Infinity, ...w.wakeAt.values());
            if (next === Infinity) break;
            w.now = Math.max(w.now, next);
            for (const { run } of ends) {
              if (run.plannedEnd > w.now) continue;
              w.running.delete(run.jobId);
              w.grid.endRun(run.jobId);
            }
          }
          expect([w.atSite.size, w.running.size]).toEqual([0, 0]);
        }),
        { numRuns: cases(60) },
      );
    });
  });
});

describe("a site's own scheduler", () => {
  const local: LocalPolicy = { kind: 'external', queueLimit: 10, takeBackAfterS: 60 };
  const policy: Policy = { ...DEFAULT_POLICY, local };
  const closed = (from: number, to: number, change: Partial<Held> = {}): Held => ({
    ...{ id: 1, by: 'WINDOW', from, to, ends: 'LIMIT', machines: [], siteId: 1, pools: [] },
    ...change,
  });
  const LIMITS = [50, 101, 100, null];
  function queued(...holds: Held[]) {
    const grid = gridOf([{ id: 1, cpus: 4 }]);
    LIMITS.forEach((runTimeLimitS, i) => {
      grid.placeAtSite(plainJob({ id: i + 1, submittedAt: i, estimateS: 10, runTimeLimitS }), 1);
    });
    grid.setHeld(...holds);
    const at = (now: number) => siteCycle(grid, 1, { now, policy, policyVersion: 1, maxStarts: 100 });
    return { grid, at, started: (now: number) => at(now).starts.map(({ jobId }) => jobId) };
  }

  it('is given no run that could reach into a window of the whole site, until that is over', () => {
    const { grid, at, started } = queued(closed(1_000, 2_000));
    expect(started(899)).toEqual([1, 2, 3]);
    const plan = at(900);
    expect(plan.starts.map(({ jobId }) => jobId)).toEqual([1, 3]);
    expect(plan).toMatchObject({ waitingByReason: { RESERVED: 2 }, wakeAt: 2_000, truncated: false });
    expect(whyWaiting(grid, 2, { now: 900, policy })).toMatchObject({
      ...{ code: 'RESERVED', numbers: { fitsIfLimitS: 100 } },
    });
    expect(started(1_500)).toEqual([]);
    expect(whyWaiting(grid, 1, { now: 1_500, policy })?.code).toBe('RESERVED');
    expect(started(2_000)).toEqual([1, 2, 3, 4]);
  });

  it('is left alone by what is held of some machines, by reservations, and by windows of other sites', () => {
    const reservation = { by: 'RESERVATION', reservation: { id: 9, siteId: 1 } } as const;
    for (const hold of [
      closed(0, 10, { siteId: null, machines: [{ machineId: 1, amounts: null }] }),
      closed(0, 10, reservation),
      closed(0, 10, { siteId: 2 }),
    ])
      expect(queued(hold).started(5)).toEqual([1, 2, 3, 4]);
  });
});

describe('room that is given back within a pass', () => {
  const asks = (id: number, cpusPerTask: number, estimateS = 10): Job =>
    plainJob({ id, submittedAt: 0, estimateS, cpusPerTask });
  const full = () => {
    const grid = gridOf([{ id: 1, cpus: 4 }]);
    const run = { jobId: 1, siteId: 1, epoch: 1, pools: [], start: 0, plannedEnd: 100 };
    grid.restoreRun({ ...run, allocations: [{ machineId: 1, tasks: 1 }] }, asks(1, 4, 100));
    for (const job of [asks(2, 3), asks(3, 1), asks(4, 1, 1000)]) grid.placeAtSite(job, 1);
    const entry = grid.siteEntry(1);
    const pass = new SitePass(grid, entry).begin(5, Infinity, false);
    const slot = (id: number) => grid.slotOf(id);
    return { grid, entry, pass, slot, run: entry.resources.runs[0] as (typeof entry.resources.runs)[0] };
  };

  it('is used by the job that did not fit before, and by those behind it', () => {
    const { pass, slot, run } = full();
    expect(pass.start(slot(2))).toBe('BLOCKED');
    pass.reserve(slot(2));
    expect(pass.reservation?.at).toBe(100);
    for (const id of [3, 4])
      expect([pass.mightStart(slot(id)), pass.backfill(slot(id))]).toEqual([false, false]);
    pass.free.stop(run);
    expect(pass.free.running).toBe(0);
    expect([pass.mightStart(slot(3)), pass.backfill(slot(3))]).toEqual([true, true]);
    expect(pass.start(slot(2))).toBe('STARTED');
    // Nobody stops it in truth: what was reserved for 100 is reserved still.
    expect(pass.starts.map(({ jobId }) => jobId)).toEqual([3, 2]);
    expect(pass.free.freeAt(5)[CPUS]).toBe(0);
    expect(pass.free.freeAt(15)[CPUS]).toBe(4);
    expect(pass.free.freeAt(50)[MEMORY]).toBe(1000);
  });

  it('can be taken again, and then all is as it was', () => {
    const { pass, slot, run } = full();
    pass.free.stop(run);
    pass.free.start(run);
    expect(pass.start(slot(2))).toBe('BLOCKED');
    pass.reserve(slot(2));
    expect(pass.reservation?.at).toBe(100);
    expect(pass.free.freeAt(99)[CPUS]).toBe(0);
  });

  it('is known to those who have noted that a class does not fit', () => {
    const { pass, grid, run, slot } = full();
    const requirement = pass.requirement(slot(2));
    pass.free.refuse(requirement);
    expect(pass.free.hasRefused(requirement)).toBe(true);
    pass.free.stop(run);
    expect(pass.free.hasRefused(requirement)).toBe(false);
    expect(grid.siteEntry(1).resources.runs).toHaveLength(1);
  });

  it('of a run that is late is there at once', () => {
    const { grid, entry, slot, run } = full();
    const pass = new SitePass(grid, entry).begin(150, Infinity, false);
    expect(pass.start(slot(2))).toBe('BLOCKED');
    pass.free.stop(run);
    expect(pass.start(slot(2))).toBe('STARTED');
    expect(pass.free.freeAt(150)[CPUS]).toBe(1);
    expect(pass.free.freeAt(160)[CPUS]).toBe(4);
  });
});
