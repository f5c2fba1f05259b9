/** Promises of conservative backfilling: how they are kept when the world does not go as planned. */
import { describe, expect, it } from 'vitest';
import { predictStart } from '../../src/core/explain/placement.js';
import {
  type Grid,
  imageOf,
  type Job,
  promisesFrom,
  type SitePlan,
  whyWaiting,
} from '../../src/core/index.js';
import { job } from './support/drive.js';
import { gridOf, machine, plan, policyWith } from './support/grids.js';

const policyOf = (depth: number) => policyWith('NONE', { kind: 'conservative', depth });
const CONSERVATIVE = policyOf(100);

/** Runs the site's cycle, applies all of it and keeps what it promised. */
function cycle(grid: Grid, now: number, policy = CONSERVATIVE, siteId = 1): SitePlan {
  const made = plan(grid, now, policy, siteId);
  for (const { jobId, allocations, pools, plannedDuration } of made.starts) {
    const plannedEnd = now + plannedDuration;
    grid.startRun({ jobId, siteId, epoch: 1, allocations, pools, start: now, plannedEnd });
  }
  grid.setReservation(siteId, made.reservation);
  grid.keepMemory(siteId, made.memory);
  return made;
}

/** Jobs of a site's queue, in the order of their ids. */
function queue(grid: Grid, shapes: Record<number, Partial<Job>>, siteId = 1): void {
  for (const [id, shape] of Object.entries(shapes))
    grid.placeAtSite(job({ id: Number(id), submittedAt: Number(id), ...shape }), siteId);
}

const promised = ({ memory }: SitePlan): Record<number, number> =>
  Object.fromEntries((imageOf(memory)?.jobs ?? []).map(({ jobId, at }) => [jobId, at]));
const started = ({ starts }: SitePlan): number[] => starts.map(({ jobId }) => jobId);

describe('promises', () => {
  it('of the whole queue stand from cycle to cycle, and a cycle that finds nothing new leaves them alone', () => {
    const grid = gridOf([{ id: 1, cpus: 4 }]);
    queue(grid, {
      1: { cpusPerTask: 3, estimateS: 100 },
      2: { cpusPerTask: 4, estimateS: 50 },
      3: { cpusPerTask: 1, estimateS: 100 },
      4: { cpusPerTask: 2, estimateS: 10 },
    });
    const first = cycle(grid, 5);
    expect(started(first)).toEqual([1, 3]);
    expect(promised(first)).toEqual({ 2: 105, 4: 155 });
    expect(first.wakeAt).toBe(105);
    // Whoever looks once more in between, or when a run is late, changes nothing.
    for (const now of [60, 110, 200]) expect(plan(grid, now, CONSERVATIVE).memory).toBe(first.memory);
    expect(plan(grid, 110, CONSERVATIVE)).toMatchObject({ starts: [], reservation: { jobId: 2, at: 110 } });
  });

  it('move back where a run is late, by as much as they must, and nobody loses his place for it', () => {
    const grid = gridOf([{ id: 1, cpus: 4 }]);
    queue(grid, { 1: { cpusPerTask: 4, estimateS: 100 } });
    cycle(grid, 0);
    queue(grid, {
      2: { cpusPerTask: 4, estimateS: 10 },
      3: { cpusPerTask: 4, estimateS: 20 },
      4: { cpusPerTask: 3, estimateS: 1000 },
      5: { cpusPerTask: 1, estimateS: 5 },
    });
    expect(promised(cycle(grid, 1))).toEqual({ 2: 100, 3: 110, 4: 130, 5: 130 });
    grid.endRun(1);
    const late = cycle(grid, 100.5);
    expect(started(late)).toEqual([2]);
    // Job 3 does not go behind job 4, whose own promise could be kept if only job 3 went behind it.
    expect(promised(late)).toEqual({ 3: 110.5, 4: 130.5, 5: 130.5 });
  });

  it('move up when a run ends early, each to the earliest hole that those of the others leave', () => {
    const grid = gridOf([{ id: 1, cpus: 4 }]);
    queue(grid, { 1: { cpusPerTask: 3, estimateS: 100 }, 2: { cpusPerTask: 1, estimateS: 60 } });
    cycle(grid, 2);
    queue(grid, { 3: { cpusPerTask: 4, estimateS: 10 }, 4: { cpusPerTask: 1, estimateS: 40 } });
    expect(promised(cycle(grid, 4))).toEqual({ 3: 102, 4: 62 });
    grid.endRun(1);
    const after = cycle(grid, 10);
    // Job 3 is tried first and finds no room before 102, for job 4 has its place at 62; then job 4 moves to now.
    expect(started(after)).toEqual([4]);
    expect(promised(after)).toEqual({ 3: 102 });
    expect(promised(cycle(grid, 11))).toEqual({ 3: 102 });
    grid.endRun(4);
    expect(promised(cycle(grid, 20))).toEqual({ 3: 62 });
  });

  it('move up when a promised job leaves, and when a machine comes', () => {
    const grid = gridOf([{ id: 1, cpus: 4 }]);
    queue(grid, { 1: { cpusPerTask: 3, estimateS: 100 } });
    cycle(grid, 1);
    queue(grid, { 2: { cpusPerTask: 4, estimateS: 10 }, 3: { cpusPerTask: 1, estimateS: 1000 } });
    expect(promised(cycle(grid, 3))).toEqual({ 2: 101, 3: 111 });
    grid.removeJob(2);
    expect(started(cycle(grid, 4))).toEqual([3]);

    queue(grid, { 4: { cpusPerTask: 2, estimateS: 10 } });
    expect(promised(cycle(grid, 5))).toEqual({ 4: 101 });
    grid.setMachine(machine({ id: 2 }));
    expect(started(cycle(grid, 6))).toEqual([4]);
  });

  it('move up when another site gives a grid-wide license back', () => {
    const pool = { id: 1, kind: 'cad', copies: 1, siteId: null };
    const grid = gridOf(
      [
        { id: 1, licenseIds: [1] },
        { id: 2, siteId: 2, licenseIds: [1] },
      ],
      [pool],
    );
    queue(grid, { 1: { licenses: ['cad'], estimateS: 100 } }, 2);
    cycle(grid, 1, CONSERVATIVE, 2);
    queue(grid, { 2: { licenses: ['cad'] } });
    expect(promised(cycle(grid, 2))).toEqual({ 2: 101 });
    grid.endRun(1);
    expect(started(cycle(grid, 3))).toEqual([2]);
  });

  it('move back when another site takes a grid-wide license earlier than it had claimed it', () => {
    const pool = { id: 1, kind: 'cad', copies: 1, siteId: null };
    const grid = gridOf(
      [
        { id: 1, licenseIds: [1] },
        { id: 2, siteId: 2, licenseIds: [1] },
      ],
      [pool],
    );
    // The other site is full until 20, and claims the copy from then to 50; here it is used before.
    queue(grid, { 1: { cpusPerTask: 4, estimateS: 20 } }, 2);
    queue(grid, { 2: { licenses: ['cad'], estimateS: 30 } }, 2);
    expect(promised(cycle(grid, 2, CONSERVATIVE, 2))).toEqual({ 2: 22 });
    queue(grid, { 3: { cpusPerTask: 4, estimateS: 8 }, 4: { licenses: ['cad'], estimateS: 10 } });
    expect(promised(cycle(grid, 4))).toEqual({ 4: 12 });
    grid.endRun(1);
    expect(started(cycle(grid, 5, CONSERVATIVE, 2))).toEqual([2]);
    expect(promised(cycle(grid, 6))).toEqual({ 4: 35 });
  });

  it.each([
    ['hybrid', policyWith('NONE', { kind: 'hybrid', reservations: 2 })],
    ['conservative', CONSERVATIVE],
  ])('of two sites to the same copy: the younger gives way, also where a run was late (%s)', (_, policy) => {
    const pool = { id: 1, kind: 'cad', copies: 1, siteId: null };
    const grid = gridOf(
      [
        { id: 1, licenseIds: [1] },
        { id: 2, siteId: 2, licenseIds: [1] },
      ],
      [pool],
    );
    queue(grid, { 1: { licenses: ['cad'], estimateS: 10 }, 2: { licenses: ['cad'], estimateS: 20 } }, 2);
    expect(started(cycle(grid, 2, policy, 2))).toEqual([1]);
    queue(grid, { 3: { licenses: ['cad'], estimateS: 20 } });
    expect(cycle(grid, 3, policy).reservation).toMatchObject({ at: 32, madeAt: 3 });
    // Job 1 is late, and meanwhile the other's instant has come.
    expect(cycle(grid, 40, policy, 2)).toMatchObject({ starts: [], reservation: { madeAt: 2 } });
    expect(started(cycle(grid, 40, policy))).toEqual([]);
    grid.endRun(1);
    expect(started(cycle(grid, 50, policy))).toEqual([]);
    expect(started(cycle(grid, 50, policy, 2))).toEqual([2]);
    grid.endRun(2);
    expect(started(cycle(grid, 55, policy))).toEqual([3]);
  });

  it('of a job that takes no time worth mentioning bind other sites all the same', () => {
    // As now: at such times a millionth of a second later is the same instant.
    const at = 1_700_000_000;
    const pool = { id: 1, kind: 'cad', copies: 1, siteId: null };
    const grid = gridOf(
      [
        { id: 1, licenseIds: [1] },
        { id: 2, siteId: 2, licenseIds: [1] },
      ],
      [pool],
    );
    queue(grid, { 1: { cpusPerTask: 4, estimateS: 10 }, 2: { licenses: ['cad'], estimateS: 1e-8 } }, 2);
    expect(started(cycle(grid, at, CONSERVATIVE, 2))).toEqual([1]);
    queue(grid, { 3: { licenses: ['cad'], estimateS: 20 } });
    expect(promised(cycle(grid, at + 1))).toMatchObject({ 3: expect.any(Number) });
    // Job 1 is late.
    expect(started(cycle(grid, at + 20, CONSERVATIVE, 2))).toEqual([]);
    expect(started(cycle(grid, at + 20))).toEqual([]);
    grid.endRun(1);
    expect(started(cycle(grid, at + 21, CONSERVATIVE, 2))).toEqual([2]);
  });

  it('are kept when what they need is still there, whatever else has changed, and made anew where it is not', () => {
    const grid = gridOf([
      { id: 1, cpus: 4, benchmark: 2 },
      { id: 2, cpus: 4 },
    ]);
    queue(grid, {
      1: { cpusPerTask: 4, estimateS: 200 },
      2: { cpusPerTask: 4, estimateS: 50 },
    });
    cycle(grid, 2);
    queue(grid, {
      3: { cpusPerTask: 4, estimateS: 10 },
      4: { cpusPerTask: 4, estimateS: 40 },
      5: { cpusPerTask: 4, estimateS: 40 },
    });
    expect(promised(cycle(grid, 5))).toEqual({ 3: 52, 4: 62, 5: 102 });
    grid.setSite({ id: 9, name: 'far away', state: 'UP', localPolicy: null });
    expect(promised(cycle(grid, 6))).toEqual({ 3: 52, 4: 62, 5: 102 });
    grid.setMachine(machine({ id: 2, cpus: 4, available: false }));
    expect(promised(cycle(grid, 7))).toEqual({ 5: 102, 3: 122, 4: 127 });
  });

  it('go to the first of the queue, and stay with whoever has one when others come in ahead', () => {
    const grid = gridOf([{ id: 1, cpus: 4 }]);
    const two = policyOf(2);
    queue(grid, {
      10: { cpusPerTask: 4 },
      11: { cpusPerTask: 4 },
      12: { cpusPerTask: 4 },
      13: { cpusPerTask: 4 },
    });
    expect(started(cycle(grid, 20, two))).toEqual([10]);
    expect(promised(cycle(grid, 20, two))).toEqual({ 11: 120, 12: 220 });
    // Released from hold: it was submitted before them.
    queue(grid, { 5: { cpusPerTask: 4 } });
    expect(promised(cycle(grid, 21, two))).toEqual({ 5: 320, 11: 120, 12: 220 });
    grid.endRun(10);
    const next = cycle(grid, 50, two);
    expect(started(next)).toEqual([11]);
    expect(next.truncated).toBe(true);
    // Tried before the others had moved up.
    expect(promised(cycle(grid, 50, two))).toEqual({ 5: 320, 12: 150 });
  });

  it('pass through a store unchanged, and leave out what is not there any more', () => {
    const grid = gridOf([{ id: 1, cpus: 2 }]);
    queue(grid, { 1: { cpusPerTask: 2 }, 2: { cpusPerTask: 2, estimateS: 7 }, 3: { cpusPerTask: 1 } });
    const stored = imageOf(cycle(grid, 5).memory);
    expect(stored?.jobs).toHaveLength(2);
    const image = JSON.parse(JSON.stringify(stored));
    expect(imageOf(promisesFrom(grid, 1, CONSERVATIVE.local, image, 5))).toEqual(image);
    grid.removeJob(2);
    const left = promisesFrom(grid, 1, CONSERVATIVE.local, image, 5);
    expect(imageOf(left)?.jobs.map(({ jobId }) => jobId)).toEqual([3]);
    expect(left).toMatchObject({ incomplete: true });
  });
});

describe('a predicted start', () => {
  it('is the promised one; of a job that is still to come, what the next cycle would promise', () => {
    const grid = gridOf([{ id: 1, cpus: 4 }]);
    queue(grid, { 1: { cpusPerTask: 3, estimateS: 100 } });
    cycle(grid, 1);
    queue(grid, { 2: { cpusPerTask: 4, estimateS: 10 }, 3: { cpusPerTask: 2, estimateS: 60 } });
    expect(promised(cycle(grid, 4))).toEqual({ 2: 101, 3: 111 });
    const entry = grid.siteEntry(1);
    const at = (given: Partial<Job> & { id: number }) =>
      predictStart(grid, entry, job(given), { now: 50, policy: CONSERVATIVE })?.at;
    expect(at({ id: 3, cpusPerTask: 2, estimateS: 60 })).toBe(111);
    // Beside job 3; a reservation for job 2 alone would let it start at 111 with all four CPUs.
    expect(at({ id: 9, cpusPerTask: 2, estimateS: 60 })).toBe(111);
    expect(at({ id: 9, cpusPerTask: 3, estimateS: 60 })).toBe(171);
    expect(at({ id: 9, cpusPerTask: 1, estimateS: 51 })).toBe(50);
    expect(at({ id: 9, cpusPerTask: 1, estimateS: 52 })).toBe(111);
    const context = { now: 50, policy: CONSERVATIVE };
    expect(whyWaiting(grid, 3, context)).toMatchObject({ numbers: { expectedStart: 111, reservedJob: 2 } });

    queue(grid, { 9: { cpusPerTask: 3, estimateS: 60 } });
    expect(promised(cycle(grid, 50))[9]).toBe(171);
  });
});
