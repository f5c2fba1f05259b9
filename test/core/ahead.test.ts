/** Predicted starts against what the simulator then does, where runs take as long as estimated and nobody else comes. */
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { planAhead } from '../../src/core/explain/ahead.js';
import {
  DEFAULT_POLICY,
  earliestAnywhere,
  Grid,
  imageOf,
  type Job,
  type LocalPolicy,
  localPolicyOf,
  type Machine,
  type Policy,
  type PromisesImage,
  placement,
  predictStart,
  promisesFrom,
  type Reservation,
  type Run,
} from '../../src/core/index.js';
import { runSimulation, type World } from '../../src/simulator/engine.js';
import type { SimJob } from '../../src/simulator/workload.js';
import { assertUntil, cases, IN_FULL } from '../support/seed.js';
import { job as anyJob } from './support/drive.js';

const locals: LocalPolicy[] = [
  { kind: 'fcfs' },
  { kind: 'easy' },
  { kind: 'conservative', depth: 1000 },
  { kind: 'conservative', depth: 2 },
  { kind: 'easy', backfill: 'SHORTEST' },
  { kind: 'sjf' },
  { kind: 'first-fit' },
  DEFAULT_POLICY.local,
] as LocalPolicy[];
const whole = (min: number, max: number) => fc.integer({ min, max });

const worlds = fc.record({
  local: fc.constantFrom(...locals),
  holdsBack: fc.boolean(),
  sites: whole(1, 2),
  machines: fc.array(fc.record({ cpus: whole(1, 6), benchmark: fc.constantFrom(1, 1, 2) }), {
    minLength: 2,
    maxLength: 4,
  }),
  copies: whole(0, 2),
  jobs: fc.array(
    fc.record({
      after: fc.constantFrom(0, 0, 0, 1, 5),
      tasks: fc.constantFrom(1, 1, 2, 3),
      cpusPerTask: whole(1, 6),
      estimateS: whole(1, 40),
      licensed: fc.constantFrom(false, false, false, true),
    }),
    { minLength: 1, maxLength: 25 },
  ),
  looksMax: fc.constantFrom(0, 60, 200, 1_000_000),
});
type Given = typeof worlds extends fc.Arbitrary<infer T> ? T : never;

const machine = (given: Pick<Machine, 'id' | 'siteId' | 'cpus' | 'benchmark'>): Machine => ({
  ...{ memoryMb: 1_000, os: '', architecture: '', licenseIds: [], available: true },
  ...given,
});

function made({ local, holdsBack, sites, machines, copies, jobs }: Given) {
  const policy: Policy = {
    ...DEFAULT_POLICY,
    ...{ local },
    ...(holdsBack && {
      dispatch: { kind: 'queues', order: 'FCFS', queueLimit: 2, ageBoundS: null, fairness: 'NONE' },
    }),
  } as Policy;
  const world: World = {
    sites: Array.from({ length: sites }, (_, i) => ({
      id: i + 1,
      name: `s${i}`,
      state: 'UP',
      localPolicy: null,
    })),
    machines: machines.map(({ cpus, benchmark }, i) =>
      machine({ id: i + 1, siteId: 1 + (i % sites), cpus, benchmark }),
    ),
    licenses: copies > 0 ? [{ id: 1, kind: 'x', copies, siteId: null }] : [],
    changes: [],
  };
  let at = 0;
  const submitted = jobs.map(({ after, licensed, ...rest }, i): SimJob => {
    at += after;
    const licenses = licensed && copies > 0 ? ['x'] : [];
    const job = anyJob({ id: i + 1, submittedAt: at, ...rest, licenses });
    return { job, sourceId: i + 1, runS: rest.estimateS, limitS: null, siteId: null };
  });
  return { policy, world, submitted, until: at };
}

/** What the simulator does, and the grid as it was after the last submission. */
function simulated(given: Given) {
  const { policy, world, submitted, until } = made(given);
  const runs = new Map<number, Run>();
  const ends = new Map<number, number>();
  const moved = new Map<number, Job & { siteId: number }>();
  const kept = new Map<number, { reservation: Reservation | null; promises: PromisesImage | null }>();
  runSimulation(world, submitted, { policy, eventOrder: 'batch' }, [
    {
      moved({ jobId, to, queue, priority }, now) {
        const { job } = submitted[jobId - 1] as SimJob;
        if (now <= until && queue === 'LOCAL')
          moved.set(jobId, { ...job, priority, dispatchedAt: now, siteId: to as number });
      },
      planned({ siteId, reservation, memory }, now) {
        if (now <= until) kept.set(siteId, { reservation, promises: imageOf(memory) });
      },
      started: ({ job }, _index, run) => void runs.set(job.id, run),
      ended: ({ job }, _index, _run, now) => void ends.set(job.id, now),
    },
  ]);
  const grid = new Grid();
  for (const site of world.sites) grid.setSite(site);
  for (const license of world.licenses) grid.setLicense(license);
  for (const machine of world.machines) grid.setMachine(machine);
  for (const { job } of submitted) {
    const run = runs.get(job.id);
    const at = moved.get(job.id);
    if ((ends.get(job.id) ?? Infinity) <= until) continue;
    if (run && run.start <= until) grid.restoreRun(run, at ?? job);
    else if (at) grid.placeAtSite(at, at.siteId);
    else grid.placeAtRoot(job);
  }
  for (const [siteId, { reservation, promises }] of kept) {
    const local = localPolicyOf(grid.siteEntry(siteId).site, policy);
    grid.setReservation(siteId, reservation);
    grid.keepMemory(siteId, promises && promisesFrom(grid, siteId, local, promises, until));
  }
  return { policy, grid, now: until, submitted, startOf: (id: number) => runs.get(id)?.start ?? Infinity };
}

const task = { after: 0, tasks: 1, cpusPerTask: 1, estimateS: 1, licensed: false } as const;
/** Two sites have promised the one copy to a job each, and that which promised it later gets it first. */
const COPY_OF_OTHERS: Given = {
  ...{ local: { kind: 'conservative', depth: 1000 }, holdsBack: false, sites: 2, copies: 1, looksMax: 0 },
  machines: [2, 3].map((cpus) => ({ cpus, benchmark: 1 })),
  jobs: [
    { ...task, cpusPerTask: 3 },
    { ...task, estimateS: 2, licensed: true },
    { ...task, after: 1, licensed: true },
    { ...task, licensed: true },
    task,
  ],
};

it('is when the job starts; where it is not known, not before', () => {
  let expected = 0;
  assertUntil(
    fc.property(worlds, (given) => {
      const { policy, grid, now, submitted, startOf } = simulated(given);
      for (const { job } of submitted) {
        const place = grid.placeOf(job.id);
        if (place === null || place.at === 'RUNNING') continue;
        const known = grid.job(job.id) as Job;
        const context = { now, policy };
        const found =
          place.at === 'QUEUE'
            ? predictStart(grid, grid.siteEntry(place.siteId), known, context)
            : placement(grid, known, context).start;
        const actual = startOf(job.id);
        if (place.at === 'QUEUE') {
          const planned = planAhead(grid, grid.siteEntry(place.siteId), known, context, given.looksMax);
          if (planned?.expected) expect([job.id, planned.at]).toEqual([job.id, actual]);
          else expect(planned?.at ?? 0).toBeLessThanOrEqual(actual);
          if (!given.holdsBack && known.licenses.length === 0 && given.copies === 0)
            expect(found).toMatchObject({ expected: true });
        }
        if (found?.expected) {
          expected++;
          expect([job.id, found.at]).toEqual([job.id, actual]);
        } else expect(found?.at ?? 0).toBeLessThanOrEqual(actual);
        expect(earliestAnywhere(grid, known, now)?.at ?? 0).toBeLessThanOrEqual(actual);
      }
    }),
    { numRuns: cases(150), examples: [[COPY_OF_OTHERS]] },
    () => {
      if (IN_FULL) expect(expected).toBeGreaterThan(100);
    },
  );
});

it('counts the jobs that wait ahead', () => {
  const grid = new Grid();
  grid.setSite({ id: 1, name: '', state: 'UP', localPolicy: null });
  grid.setMachine(machine({ id: 1, siteId: 1, cpus: 1, benchmark: 1 }));
  for (let id = 1; id <= 400; id++)
    grid.placeAtSite(anyJob({ id, submittedAt: id, cpusPerTask: 1, estimateS: 30 }), 1);
  const last = anyJob({ id: 2141, submittedAt: 401, cpusPerTask: 1, estimateS: 30 });
  for (const kind of ['fcfs', 'easy'] as const) {
    const policy = { ...DEFAULT_POLICY, local: { kind } } as Policy;
    expect(placement(grid, last, { now: 500, policy }).start).toMatchObject({
      at: 500 + 400 * 30,
      expected: true,
    });
  }
});
