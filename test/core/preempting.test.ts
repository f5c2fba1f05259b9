/** Jobs of higher preemption classes, under every local policy: whom they stop, what they get for it, and that nothing is stopped in vain. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  DEFAULT_POLICY,
  Grid,
  type Held,
  type Job,
  type LocalPolicy,
  type Policy,
  type Preemption,
  plainJob,
  type Run,
  siteCycle,
  whyWaiting,
} from '../../src/core/index.js';
import type { OwnedDevice } from '../../src/core/resources/devices.js';
import { withParts } from '../support/plain-job.js';
import { assertUntil, cases } from '../support/seed.js';
import { chosenDevices } from './support/devices.js';
import { CHOOSING } from './support/policies.js';

const SITE = 1;
const CPUS = 4;
const GPUS = 4;
const MACHINES = [1, 2, 3];
const RESERVED = 4;
const RESERVATION = 2;
/** Reserved from the beginning, for good. */
const RESERVED_MACHINE: Held = {
  ...{ id: RESERVATION, by: 'RESERVATION', from: 0, to: Infinity, ends: 'LIMIT', pools: [], siteId: null },
  machines: [{ machineId: RESERVED, amounts: null }],
  reservation: { id: RESERVATION, siteId: SITE },
};
const GRACE_S = 3;

const anyJob = fc.record({
  at: fc.integer({ min: 0, max: 40 }),
  estimateS: fc.integer({ min: 1, max: 20 }),
  /** It may take longer than it said. */
  late: fc.constantFrom(0, 0, 5),
  cpus: fc.integer({ min: 1, max: CPUS }),
  tasks: fc.constantFrom(1, 1, 2),
  preemptionClass: fc.constantFrom(0, 0, 0, 3, 7),
  restartable: fc.constantFrom(true, true, true, false),
  userId: fc.constantFrom(1, 2),
  exclusive: fc.constantFrom(null, null, null, 'MACHINE' as const, 'USER' as const),
  /** Its tasks on one machine. */
  together: fc.constantFrom(false, false, true),
  /** CPUs of the one task of a second part; null: it has none. */
  second: fc.constantFrom(null, null, null, 1, 2),
  gpus: fc.constantFrom(0, 0, 0, 1, 2),
  licenses: fc.constantFrom([], [], ['a'], ['a', 'a'], ['b']),
  /** It runs in the reservation, if there is one. */
  inside: fc.boolean(),
});
const given = fc.record({
  jobs: fc.array(anyJob, { minLength: 5, maxLength: 25 }),
  exemptS: fc.constantFrom(0, 0, 5),
  /** So much sooner than at the end of the grace those that are stopped end. */
  sooner: fc.integer({ min: 0, max: GRACE_S }),
  window: fc.option(fc.integer({ min: 10, max: 60 })),
  /** The site has at most so many runs at once. */
  maxRuns: fc.constantFrom(null, null, 2, 4),
  /** A machine more, which is reserved for those that run inside. */
  reserved: fc.boolean(),
});
type Given = typeof given extends fc.Arbitrary<infer G> ? G : never;

interface Played {
  starts: (Run & { job: Job })[];
  preemptions: (Preemption & { at: number })[];
  waiting: number;
}

/** A history up to its end, with all that is preempted. */
const IN_FULL = { until: 900, most: Infinity };

const machine = (id: number) => ({
  ...{ id, siteId: SITE, cpus: CPUS, memoryMb: 100, benchmark: 1, os: 'linux', architecture: 'x64' },
  ...{ licenseIds: [], available: true, resources: { gpu: GPUS }, devices: DEVICES },
});
/** Each gives two shares. */
const DEVICES: OwnedDevice[] = ['g0', 'g1'].map((id) => ({
  ...{ id, kind: 'gpu', model: null, memoryMb: 8, shares: GPUS / 2, link: null },
}));
const site = { id: SITE, name: 's', state: 'UP', localPolicy: null } as const;

/** The job with one more task, which asks for so many CPUs. */
function withSecond(cpus: number | null, job: Job): Job {
  if (cpus === null || job.exclusive !== null) return job;
  const { tasks, cpusPerTask, tasksPerMachine, resourcesPerTask } = job;
  const first = { tasks, cpusPerTask, tasksPerMachine, resourcesPerTask };
  return { ...job, ...withParts([first, { cpusPerTask: cpus }]) };
}

/**
 * Second by second, as a driver would. Checks that there is never more than there is.
 * @param until the last second, and the preemptions that are carried out at `most`: from then on nobody is stopped
 */
function play(
  { jobs, exemptS, sooner, window, maxRuns, reserved }: Given,
  local: LocalPolicy,
  { until, most } = IN_FULL,
): Played {
  const calm: Policy = { ...DEFAULT_POLICY, local };
  const stopping: Policy = { ...calm, preemption: { graceS: GRACE_S, exemptS, cancelBelow: 0 } };
  const grid = new Grid();
  grid.setSite({ ...site, maxRunningJobs: maxRuns });
  grid.setLicense({ id: 1, kind: 'a', copies: 2, siteId: SITE });
  grid.setLicense({ id: 2, kind: 'a', copies: 1, siteId: null });
  grid.setLicense({ id: 3, kind: 'b', copies: 2, siteId: null });
  for (const id of MACHINES) grid.setMachine(machine(id));
  if (reserved) {
    grid.setMachine(machine(RESERVED));
    grid.setHeld(RESERVED_MACHINE);
  }
  if (window !== null)
    grid.setHeld({
      ...{ id: 1, by: 'WINDOW', from: window, to: window + 5, ends: 'LIMIT', pools: [], siteId: null },
      machines: [{ machineId: 1, amounts: null }],
    });
  const all = jobs.map(
    (
      { at, estimateS, cpus, tasks, preemptionClass, restartable, userId, exclusive, together, ...more },
      i,
    ): Job =>
      withSecond(
        more.second,
        plainJob({
          ...{ id: i + 1, submittedAt: at, dispatchedAt: at, estimateS, cpusPerTask: cpus, tasks },
          ...{
            ...{ preemptionClass, restartable, userId, exclusive },
            ...{ licenses: more.licenses, resourcesPerTask: more.gpus > 0 ? { gpu: more.gpus } : null },
            tasksPerMachine:
              together && cpus * tasks <= CPUS && more.gpus * tasks <= GPUS
                ? { min: tasks, max: null }
                : null,
            runTimeLimitS: window === null ? null : estimateS + (jobs[i]?.late ?? 0),
            reservationId: reserved && more.inside ? RESERVATION : null,
          },
        }),
      ),
  );
  const played: Played = { starts: [], preemptions: [], waiting: 0 };
  const ends = new Map<number, number>();
  const stopped = new Set<number>();
  const running = new Map<number, { job: Job; run: Run }>();
  for (let now = 0; now <= until; now++) {
    for (const [id, end] of ends) {
      if (end !== now) continue;
      grid.endRun(id);
      running.delete(id);
      ends.delete(id);
      if (stopped.delete(id)) grid.placeAtSite({ ...(all[id - 1] as Job), promised: null }, SITE);
    }
    if (window !== null && now === window + 5) grid.removeHeld(1);
    for (const job of all) if (job.submittedAt === now) grid.placeAtSite(job, SITE);
    for (let round = 0; round < 60; round++) {
      const policy = played.preemptions.length < most ? stopping : calm;
      const plan = siteCycle(grid, SITE, { now, policy, policyVersion: 1, maxStarts: 5 });
      for (const { jobId, allocations, pools, plannedDuration } of plan.starts) {
        const job = grid.job(jobId) as Job;
        const run = {
          ...{ jobId, siteId: SITE, epoch: 1, allocations, pools, start: now },
          devices: chosenDevices(() => DEVICES, running.values(), { job, allocations }),
          plannedEnd: now + plannedDuration,
        };
        // Throws where there is no room.
        grid.startRun(run);
        running.set(jobId, { job, run });
        played.starts.push({ ...run, job });
        ends.set(jobId, now + plannedDuration + (jobs[jobId - 1]?.late ?? 0));
      }
      for (const preemption of plan.preemptions.slice(0, most - played.preemptions.length)) {
        played.preemptions.push({ ...preemption, at: now });
        for (const { jobId } of preemption.victims) {
          grid.stopRun(jobId, now + GRACE_S);
          ends.set(jobId, Math.max(now + 1, Math.min(ends.get(jobId) as number, now + GRACE_S - sooner)));
          stopped.add(jobId);
        }
        grid.placeAtSite({ ...(grid.job(preemption.jobId) as Job), promised: preemption.room }, SITE);
      }
      grid.setReservation(SITE, plan.reservation);
      grid.keepMemory(SITE, plan.memory);
      if (plan.starts.length + plan.preemptions.length === 0) break;
      if (round === 59) throw new Error('the site does not come to rest');
    }
  }
  played.waiting = grid.siteEntry(SITE).queue.length;
  return played;
}

describe.each(CHOOSING.map((local) => [JSON.stringify(local), local] as const))(
  'preemption under %s',
  (_, local) => {
    it('stops lower classes only, never in vain, and all jobs run', () => {
      fc.assert(
        fc.property(given, (asked) => {
          const { starts, preemptions, waiting } = play(asked, local);
          const isInside = (id: number): boolean => asked.reserved && asked.jobs[id - 1]?.inside === true;
          const classOf = (id: number): number => asked.jobs[id - 1]?.preemptionClass as number;
          for (const { jobId, victims, at, room } of preemptions) {
            expect(room.at).toBeLessThanOrEqual(at + GRACE_S);
            if (victims.length > 0) expect(room.at).toBe(at + GRACE_S);
            for (const { jobId: victim } of victims) {
              expect(isInside(victim)).toBe(isInside(jobId));
              expect(classOf(victim)).toBeLessThan(classOf(jobId));
              expect(asked.jobs[victim - 1]?.restartable).toBe(true);
              const run = starts.findLast((one) => one.jobId === victim && one.start <= at);
              expect(at - (run?.start as number)).toBeGreaterThanOrEqual(asked.exemptS);
            }
            // It has its room when it was promised it, at the latest; or when those are gone there that take longer than they said: each
            // alone would leave it its room, but two may not.
            const there = new Set(room.allocations.map(({ machineId }) => machineId));
            const pools = new Set(room.pools?.map(({ id }) => id));
            const late = starts
              .filter(
                (one) =>
                  one.plannedEnd <= room.at &&
                  (asked.maxRuns !== null ||
                    one.allocations.some((on) => there.has(on.machineId)) ||
                    one.pools.some(({ id }) => pools.has(id))),
              )
              .map((one) => one.plannedEnd + (asked.jobs[one.jobId - 1]?.late as number));
            const start = starts.find((one) => one.jobId === jobId && one.start >= at);
            expect(start?.start, `job ${jobId} was promised room from ${room.at}`).toBeLessThanOrEqual(
              Math.max(room.at, ...late),
            );
          }
          expect(waiting).toBe(0);
        }),
        { numRuns: cases(60) },
      );
    });

    it('stops nothing without a start that it makes earlier than in the same history without it', () => {
      let compared = 0;
      assertUntil(
        fc.property(given, ({ jobs, ...others }) => {
          // As planned: who knew when runs end, or that a job will find room beside runs of its own user, could do without some of it.
          const asPlanned = (job: (typeof jobs)[number]) => ({
            ...job,
            ...{ late: 0 as const, exclusive: job.exclusive === 'USER' ? null : job.exclusive },
          });
          const asked = { ...others, sooner: 0, jobs: jobs.map(asPlanned) };
          const { starts, preemptions } = play(asked, local);
          preemptions.forEach(({ jobId, victims, at }, i) => {
            if (victims.length === 0) return;
            const first = starts.find((one) => one.jobId === jobId && one.start >= at) as Run;
            // Those before it are carried out, of the same plan too, and none from it on.
            const without = play(asked, local, { until: first.start, most: i });
            expect(without.preemptions).toEqual(preemptions.slice(0, i));
            expect(without.starts.filter(({ start }) => start < at)).toEqual(
              starts.filter(({ start }) => start < at),
            );
            expect(without.starts.filter((one) => one.jobId === jobId && one.start >= at)).toEqual([]);
            compared++;
          });
        }),
        { numRuns: cases(60) },
        () => {
          expect(compared).toBeGreaterThan(0);
        },
      );
    });

    it('gives the run that the site may still have to the job that was promised it, before those inside reservations', () => {
      const grid = new Grid();
      grid.setSite({ ...site, maxRunningJobs: 2 });
      for (const id of [1, RESERVED]) grid.setMachine(machine(id));
      grid.setHeld(RESERVED_MACHINE);
      const allocations = [{ machineId: 1, tasks: 1 }];
      grid.restoreRun(
        { ...{ jobId: 1, siteId: SITE, epoch: 1, pools: [], start: 0, plannedEnd: 1e6 }, allocations },
        plainJob({ id: 1, submittedAt: 0, estimateS: 1e6 }),
      );
      const waits = { submittedAt: 0, estimateS: 5 };
      const promised = { siteId: SITE, at: 100, allocations };
      grid.placeAtSite(plainJob({ ...waits, id: 2, reservationId: RESERVATION }), SITE);
      grid.placeAtSite(plainJob({ ...waits, id: 3, preemptionClass: 5, promised }), SITE);
      const preemption = { graceS: 3, exemptS: 0, cancelBelow: 0 };
      const policy: Policy = { ...DEFAULT_POLICY, local, preemption };
      const plan = siteCycle(grid, SITE, { now: 100, policy, policyVersion: 1, maxStarts: 5 });
      expect(plan.starts).toMatchObject([{ jobId: 3 }]);
    });

    it('makes a machine free for a job that is to have it to itself', () => {
      const grid = new Grid();
      grid.setSite(site);
      for (const id of [1, 2]) grid.setMachine(machine(id));
      for (const [id, machineId] of [
        [1, 1],
        [2, 1],
        [3, 2],
      ] as const)
        grid.restoreRun(
          {
            ...{ jobId: id, siteId: SITE, epoch: 1, pools: [], start: 0, plannedEnd: 1e6 },
            allocations: [{ machineId, tasks: 1 }],
          },
          plainJob({ id, submittedAt: 0, estimateS: 1e6 }),
        );
      grid.placeAtSite(
        plainJob({ id: 4, submittedAt: 0, estimateS: 10, exclusive: 'MACHINE', preemptionClass: 5 }),
        SITE,
      );
      const preemption = { graceS: 30, exemptS: 0, cancelBelow: 0 };
      const policy: Policy = { ...DEFAULT_POLICY, local, preemption };
      const { preemptions } = siteCycle(grid, SITE, { now: 100, policy, policyVersion: 1, maxStarts: 5 });
      expect(preemptions).toMatchObject([
        { jobId: 4, victims: [{ jobId: 3 }], room: { at: 130, allocations: [{ machineId: 2, tasks: 1 }] } },
      ]);
    });

    it.each([
      [5, []],
      [50, [3]],
    ])('stops nobody for a job that soon joins runs of its user (in %i s)', (endsAt, stopped) => {
      const grid = new Grid();
      grid.setSite(site);
      for (const id of [1, 2]) grid.setMachine(machine(id));
      const running = (id: number, machineId: number, plannedEnd: number, of: Partial<Job>) =>
        grid.restoreRun(
          {
            ...{ jobId: id, siteId: SITE, epoch: 1, pools: [], start: -100, plannedEnd },
            allocations: [{ machineId, tasks: 1 }],
          },
          plainJob({ id, submittedAt: -100, estimateS: plannedEnd + 100, ...of }),
        );
      running(1, 1, 1e6, { userId: 1, exclusive: 'USER', preemptionClass: 9 });
      running(2, 1, endsAt, { userId: 1, cpusPerTask: 3, preemptionClass: 9 });
      running(3, 2, 1e6, { userId: 2, cpusPerTask: CPUS });
      grid.placeAtSite(
        plainJob({ id: 4, userId: 1, submittedAt: 0, estimateS: 10, cpusPerTask: 3, preemptionClass: 5 }),
        SITE,
      );
      const preemption = { graceS: GRACE_S, exemptS: 0, cancelBelow: 0 };
      const policy: Policy = { ...DEFAULT_POLICY, local, preemption };
      const look = (now: number) => siteCycle(grid, SITE, { now, policy, policyVersion: 1, maxStarts: 5 });
      const { preemptions, wakeAt } = look(0);
      expect(preemptions.flatMap(({ victims }) => victims.map(({ jobId }) => jobId))).toEqual(stopped);
      if (stopped.length > 0) return;
      expect(wakeAt).toBe(endsAt);
      grid.endRun(2);
      expect(look(endsAt).starts).toMatchObject([{ jobId: 4, allocations: [{ machineId: 1, tasks: 1 }] }]);
    });

    it('counts the room once of a job that starts in it while another is looked at', () => {
      const grid = new Grid();
      grid.setSite(site);
      grid.setMachine(machine(1));
      const allocations = [{ machineId: 1, tasks: 1 }];
      const two = (id: number, preemptionClass: number, of: Partial<Job> = {}): Job =>
        plainJob({ id, submittedAt: 0, estimateS: 1e6, cpusPerTask: 2, preemptionClass, ...of });
      grid.restoreRun(
        { jobId: 1, siteId: SITE, epoch: 1, allocations, pools: [], start: -100, plannedEnd: 1e6 },
        two(1, 0),
      );
      grid.placeAtSite(two(2, 7, { promised: { siteId: SITE, at: 0, allocations } }), SITE);
      grid.placeAtSite(two(3, 5), SITE);
      const preemption = { graceS: GRACE_S, exemptS: 0, cancelBelow: 0 };
      const policy: Policy = { ...DEFAULT_POLICY, local, preemption };
      const plan = siteCycle(grid, SITE, { now: 1, policy, policyVersion: 1, maxStarts: 5 });
      expect(plan.starts.map(({ jobId }) => jobId)).toEqual([2]);
      expect(plan.preemptions).toMatchObject([{ jobId: 3, victims: [{ jobId: 1 }] }]);
    });

    it('stops nothing without a policy of it', () => {
      const grid = new Grid();
      grid.setSite(site);
      grid.setMachine(machine(1));
      const policy: Policy = { ...DEFAULT_POLICY, local };
      const one = plainJob({ id: 1, submittedAt: 0, estimateS: 1e6, cpusPerTask: CPUS });
      grid.placeAtSite(one, SITE);
      const allocations = [{ machineId: 1, tasks: 1 }];
      grid.startRun({
        ...{ jobId: 1, siteId: SITE, epoch: 1, allocations, pools: [], start: 0, plannedEnd: 1e6 },
      });
      grid.placeAtSite({ ...one, id: 2, preemptionClass: 5 }, SITE);
      const context = { now: 1000, policyVersion: 1, maxStarts: 5 };
      expect(siteCycle(grid, SITE, { ...context, policy }).preemptions).toEqual([]);
      const preemption = { graceS: 30, exemptS: 600, cancelBelow: 0 };
      const preempts = { ...policy, preemption };
      expect(siteCycle(grid, SITE, { ...context, now: 500, policy: preempts })).toMatchObject({
        ...{ preemptions: [], wakeAt: 600 },
      });
      const { preemptions } = siteCycle(grid, SITE, { ...context, policy: preempts });
      expect(preemptions).toEqual([
        {
          ...{ jobId: 2, siteId: SITE, class: null, preemptionClass: 5 },
          victims: [{ jobId: 1, epoch: 1, lostWork: 4000, graceS: 30, requeue: true }],
          room: { siteId: SITE, at: 1030, allocations },
        },
      ]);
      grid.stopRun(1, 1030);
      grid.placeAtSite({ ...(grid.job(2) as Job), promised: preemptions[0]?.room ?? null }, SITE);
      expect(whyWaiting(grid, 2, { now: 1001, policy: preempts })).toMatchObject({ code: 'ROOM_PROMISED' });
    });
  },
);
