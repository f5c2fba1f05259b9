/** Jobs inside reservations, under every local policy: only they are there, only then, and whatever waits outside does not matter to them. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  DEFAULT_POLICY,
  Grid,
  type Held,
  type Job,
  type LocalPolicy,
  type Policy,
  plainJob,
  type Run,
  siteCycle,
} from '../../src/core/index.js';
import { assertUntil, cases } from '../support/seed.js';
import { CHOOSING } from './support/policies.js';

const SITE = 1;
const CPUS = 4;
const MACHINES = [1, 2, 3];

const anyJob = fc.record({
  at: fc.integer({ min: 0, max: 30 }),
  runS: fc.integer({ min: 1, max: 12 }),
  /** By how much the limit is longer; null: there is none. */
  over: fc.constantFrom(null, 0, 0, 2),
  cpus: fc.integer({ min: 1, max: CPUS }),
  tasks: fc.constantFrom(1, 1, 2),
  inside: fc.constantFrom(0, 0, 1, 2),
});
const given = fc.record({
  jobs: fc.array(anyJob, { minLength: 5, maxLength: 25 }),
  /** Of machines 1 and 2 whole, and of parts of 2 and 3 at other times. */
  first: fc.record({ from: fc.integer({ min: 1, max: 10 }), length: fc.integer({ min: 5, max: 15 }) }),
  second: fc.record({ gap: fc.nat(5), length: fc.integer({ min: 5, max: 15 }), again: fc.boolean() }),
  window: fc.option(fc.integer({ min: 0, max: 40 })),
  maxRunningJobs: fc.constantFrom(null, null, 2),
  /** When it is said what is held: runs from before may reach into it. */
  told: fc.constantFrom<number[]>(0, 0, 5),
});
type Given = typeof given extends fc.Arbitrary<infer G> ? G : never;

interface Played {
  runs: (Run & { job: Job })[];
  holds: Held[];
  told: number;
}

function holdsOf({ first, second, window }: Given): Held[] {
  const by = 'RESERVATION' as const;
  const whole = (ids: number[]) => ids.map((machineId) => ({ machineId, amounts: null }));
  const rest = { ends: 'LIMIT' as const, pools: [], siteId: null };
  const firstEnd = first.from + first.length;
  const from = firstEnd + second.gap;
  const inSecond = { ...rest, by, reservation: { id: 2, siteId: SITE } };
  const parts = [2, 3].map((machineId) => ({ machineId, amounts: { cpus: 3 } }));
  const again = from + second.length + 3;
  return [
    {
      ...rest,
      id: 1,
      by,
      from: first.from,
      to: firstEnd,
      machines: whole([1, 2]),
      reservation: { id: 1, siteId: SITE },
    },
    { ...inSecond, id: 2, from, to: from + second.length, machines: parts },
    ...(second.again ? [{ ...inSecond, id: 3, from: again, to: again + 5, machines: parts }] : []),
    ...(window === null
      ? []
      : [{ ...rest, id: 9, by: 'WINDOW' as const, from: window, to: window + 4, machines: whole([2]) }]),
  ];
}

/** Second by second, as a driver would: holds end, jobs come, runs end, and the site looks. */
function play(asked: Given, local: LocalPolicy, accepting: boolean): Played {
  const policy: Policy = { ...DEFAULT_POLICY, local };
  const grid = new Grid();
  grid.setSite({ id: SITE, name: 's', state: 'UP', localPolicy: null, maxRunningJobs: asked.maxRunningJobs });
  for (const id of MACHINES)
    grid.setMachine({
      ...{ id, siteId: SITE, cpus: CPUS, memoryMb: 100, benchmark: 1, os: 'linux', architecture: 'x64' },
      ...{ licenseIds: [], available: true },
    });
  const holds = holdsOf(asked);
  const { told } = asked;
  const played: Played = { runs: [], holds, told };
  const jobs = asked.jobs.map(
    ({ at, runS, over, cpus, tasks, inside }, i): Job =>
      plainJob({
        ...{ id: i + 1, submittedAt: at, estimateS: runS, cpusPerTask: cpus, tasks, dispatchedAt: at },
        runTimeLimitS: over === null ? null : runS + over,
        reservationId: inside === 0 ? null : inside,
      }),
  );
  for (let now = 0; now < 400; now++) {
    for (const run of played.runs.filter(({ plannedEnd }) => plannedEnd === now)) grid.endRun(run.jobId);
    if (now === told) grid.setHeld(...holds.filter(({ to }) => to > now));
    for (const { id, to } of holds) if (to === now && to > told) grid.removeHeld(id);
    for (const job of jobs) if (job.submittedAt === now) grid.placeAtSite(job, SITE);
    for (let round = 0; round < 50; round++) {
      const runOf = (jobId: number, allocations: Run['allocations'], length: number): Run => ({
        ...{
          jobId,
          siteId: SITE,
          epoch: 1,
          allocations,
          pools: [],
          start: now,
          plannedEnd: now + length,
        },
      });
      const record = (run: Run) => played.runs.push({ ...run, job: jobs[run.jobId - 1] as Job });
      const plan = siteCycle(grid, SITE, {
        ...{ now, policy, policyVersion: 1, maxStarts: 3 },
        ...(accepting && {
          accept: (start) => {
            const run = runOf(start.jobId, start.allocations, start.plannedDuration);
            record(run);
            return run;
          },
        }),
      });
      if (!accepting)
        for (const start of plan.starts) {
          const run = runOf(start.jobId, start.allocations, start.plannedDuration);
          grid.startRun(run);
          record(run);
        }
      grid.setReservation(SITE, plan.reservation);
      grid.keepMemory(SITE, plan.memory);
      if (!plan.truncated) break;
    }
  }
  expect(jobs.filter(({ id }) => grid.placeOf(id) !== null && jobs[id - 1]?.runTimeLimitS !== null)).toEqual(
    [],
  );
  return played;
}

const covers = (time: { from: number; to: number }, at: number) => time.from <= at && at < time.to;

function check({ runs, holds, told }: Played): { inside: number } {
  expect(new Set(runs.map(({ jobId }) => jobId)).size).toBe(runs.length);
  let inside = 0;
  for (const run of runs) {
    const own = run.job.reservationId;
    const until = run.start + (run.job.runTimeLimitS ?? Infinity);
    const ended = holds.every((held) => held.reservation?.id !== own || held.to <= run.start);
    const time = holds.find(
      (held) => held.reservation?.id === own && covers(held, run.start) && run.start >= told,
    );
    if (own !== null && !ended && run.start >= told) {
      inside++;
      expect(time).toBeDefined();
      expect(until).toBeLessThanOrEqual(time?.to as number);
    }
    for (const { machineId } of run.allocations) {
      if (time !== undefined) expect(time.machines.map((one) => one.machineId)).toContain(machineId);
      for (const at of new Set([run.start, ...holds.map(({ from }) => from)])) {
        if (at < run.start || at >= until) continue;
        const there = runs.filter((one) => one.start <= at && at < one.plannedEnd);
        const on = (which: typeof runs) =>
          which.reduce(
            (sum, { job, allocations }) =>
              sum +
              allocations.reduce(
                (all, one) => all + (one.machineId === machineId ? one.tasks * job.cpusPerTask : 0),
                0,
              ),
            0,
          );
        expect(on(there)).toBeLessThanOrEqual(CPUS);
        const held = holds.filter(
          (one) => covers(one, at) && one.machines.some((part) => part.machineId === machineId),
        );
        if (run.start >= told) expect(held.some(({ by }) => by === 'WINDOW')).toBe(false);
        if (time !== undefined) {
          const amounts = time.machines.find((part) => part.machineId === machineId)?.amounts;
          const counted = there.filter(({ job, start }) => job.reservationId === own && start >= told);
          expect(on(counted)).toBeLessThanOrEqual(amounts?.cpus ?? CPUS);
          continue;
        }
        // What ran before it was said may go on.
        for (const one of run.start < told ? [] : held) {
          const others = there.filter(
            ({ job, start }) => job.reservationId !== one.reservation?.id && start >= told,
          );
          const amounts = one.machines.find((part) => part.machineId === machineId)?.amounts;
          expect(on(others.includes(run) || at >= run.plannedEnd ? others : [run])).toBeLessThanOrEqual(
            CPUS - (amounts?.cpus ?? CPUS),
          );
        }
      }
    }
  }
  return { inside };
}

describe.each(CHOOSING)('%j', (local) => {
  it('others never reach into a reservation, and its own run in it', () => {
    let inside = 0;
    assertUntil(
      fc.property(given, fc.boolean(), (asked, accepting) => {
        inside += check(play(asked, local, accepting)).inside;
      }),
      { numRuns: cases(150) },
      () => {
        expect(inside).toBeGreaterThan(0);
      },
    );
  });

  it('who waits outside holds nobody back inside, nor the other way round', () => {
    fc.assert(
      fc.property(given, (asked) => {
        const alone = { ...asked, maxRunningJobs: null, told: 0 };
        const only = (inside: boolean): Given => ({
          ...alone,
          jobs: asked.jobs.map((job) =>
            job.inside > 0 === inside ? job : { ...job, at: 399, cpus: 1, tasks: 1, over: null },
          ),
        });
        const startsOf = (played: Played, inside: boolean) =>
          played.runs
            .filter(
              ({ job, start }) =>
                (job.reservationId !== null) === inside && start < alone.first.from + alone.first.length,
            )
            .map(({ jobId, start, allocations }) => ({ jobId, start, allocations }));
        const all = play(alone, local, true);
        for (const inside of [true, false])
          expect(startsOf(all, inside)).toEqual(startsOf(play(only(inside), local, true), inside));
      }),
      { numRuns: cases(150) },
    );
  });
});
