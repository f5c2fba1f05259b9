import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  DEFAULT_POLICY,
  Grid,
  type Job,
  type JobPart,
  type Machine,
  type Run,
  whyWaiting,
} from '../../src/core/index.js';
import { SWITCH, switchUntil } from '../../src/core/model.js';
import { parseConstraint } from '../../src/core/resources/constraint.js';
import { whyNeverFits, whyPartsNowhere } from '../../src/core/resources/eligibility.js';
import { allocationsOf, holdOf, place } from '../../src/core/resources/placement.js';
import { Profile } from '../../src/core/resources/profile.js';
import { placeShape, type ShapeMachine, type ShapePart } from '../../src/core/resources/shape.js';
import { Timeline } from '../../src/core/resources/timeline.js';
import { placedParts, withParts } from '../support/plain-job.js';
import { assertUntil, cases } from '../support/seed.js';
import { shuffler } from '../support/shuffle.js';
import { job as anyJob } from './support/drive.js';
import { anyEventsWithParts, anyPolicy, anySites, gpusOf, usage, World } from './support/world.js';

const RUNS = { numRuns: cases(400) };
const world = fc.record({ sites: anySites, policy: anyPolicy, events: anyEventsWithParts });
type Given = typeof world extends fc.Arbitrary<infer G> ? G : never;

/** The same with nothing asked of pools by amount: for what is about machines alone. */
const onMachines = world.map(
  ({ events, ...others }): Given => ({
    ...others,
    events: events.map((event) =>
      event.kind === 'submit' ? { ...event, shape: { ...event.shape, resources: null } } : event,
    ),
  }),
);

const partsOf = (...parts: readonly Partial<JobPart>[]): JobPart[] => withParts(parts).parts;
const jobOf = (id: number, parts: readonly JobPart[]): Job => anyJob({ id, ...withParts(parts) });

/** All tasks of each part are placed, on able machines, as the part asks. */
function checkParts(w: World, job: Job, start: { siteId: number; allocations: Run['allocations'] }): void {
  const placed = placedParts(job, start.allocations);
  expect(start.allocations.reduce((sum, { tasks }) => sum + tasks, 0)).toBe(job.tasks);
  // No entry has tasks of two parts.
  expect(placed.every(({ left }) => left >= 0)).toBe(true);
  for (const { id } of w.machines.filter(({ maxTasks }) => maxTasks)) {
    const here = start.allocations.filter(({ machineId }) => machineId === id);
    expect(here.reduce((sum, { tasks }) => sum + tasks, 0)).toBeLessThanOrEqual(1);
  }
  (job.parts ?? []).forEach((part, i) => {
    const own = placed.filter(({ at }) => at === i);
    expect(own.reduce((sum, { tasks }) => sum + tasks, 0)).toBe(part.tasks);
    expect(new Set(own.map(({ machineId }) => machineId)).size).toBe(own.length);
    const machines = own.map(({ machineId }) => w.machines.find(({ id }) => id === machineId) as Machine);
    for (const [k, machine] of machines.entries()) {
      const { tasks } = own[k] as (typeof own)[number];
      expect(machine.siteId).toBe(start.siteId);
      expect(machine.available).toBe(true);
      if (part.machineConstraint === 'gen >= 2') expect(machine.labels?.gen).toBe('2');
      const { min, max } = part.tasksPerMachine ?? { min: 1, max: null };
      expect(tasks >= min && tasks <= (max ?? Infinity)).toBe(true);
      if (part.exclusive === 'MACHINE')
        expect(placed.filter(({ machineId }) => machineId === machine.id)).toHaveLength(1);
    }
    if (part.allAlike !== null) expect(new Set(machines.map(({ labels }) => labels?.gen)).size).toBe(1);
    const until = switchUntil({ ...job, sameSwitch: part.sameSwitch ?? null });
    if (w.now < until) expect(new Set(machines.map(({ labels }) => labels?.switch)).size).toBe(1);
  });
}

function checkUsage(w: World): void {
  const { cpus, tasks, memoryMb, gpus, licenses, alone, sharing, users, keeping } = usage(
    w.running.values(),
    -1,
  );
  for (const { id, maxTasks, ...machine } of w.machines) {
    if (alone.has(id)) expect(sharing.get(id)).toBe(1);
    if (keeping.has(id)) expect(users.get(id)?.size).toBe(1);
    if (maxTasks) expect(tasks.get(id) ?? 0).toBeLessThanOrEqual(maxTasks);
    else expect(cpus.get(id) ?? 0).toBeLessThanOrEqual(machine.cpus);
    expect(memoryMb.get(id) ?? 0).toBeLessThanOrEqual(machine.memoryMb);
    expect(gpus.get(id) ?? 0).toBeLessThanOrEqual(gpusOf(machine.resources));
  }
  for (const { id, copies } of w.licenses) expect(licenses.get(id) ?? 0).toBeLessThanOrEqual(copies);
}

function play({ sites, policy, events }: Given, atOnce = false): { w: World; started: number } {
  let started = 0;
  const w = new World(
    sites,
    policy,
    (w, plan) => {
      checkUsage(w);
      for (const start of plan.starts) {
        const job = w.atSite.get(start.jobId)?.job ?? w.running.get(start.jobId)?.job;
        if (job?.parts) started++;
        checkParts(w, job as Job, start);
      }
      const { reservation } = plan;
      if (reservation !== null) checkParts(w, w.atSite.get(reservation.jobId)?.job as Job, reservation);
    },
    atOnce,
  );
  for (const event of events) w.play(event);
  checkUsage(w);
  return { w, started };
}

/** The machine as the pure rule sees it when it is idle. */
const shapeMachine = (machine: Machine): ShapeMachine => {
  const { cpus, memoryMb, resources = {}, maxTasks, labels = {} } = machine;
  const all = { cpus, memoryMb, places: maxTasks ?? null };
  const device = (i: number) => ({
    ...{ id: `gpu${i}`, kind: 'gpu', model: null, memoryMb: 0, shares: 1, link: null, oneUser: false },
    ...{ numa: null, used: { shares: 0, memoryMb: 0, user: null } },
  });
  const devices = Array.from({ length: gpusOf(resources) }, (_, i) => device(i));
  const platform = { os: machine.os, architecture: machine.architecture };
  return {
    id: String(machine.id).padStart(16, '0'),
    labels: { ...labels, ...platform },
    ...{ total: all, free: all, users: [], onlyUser: null, devices },
  };
};

const shapePart = (part: JobPart): ShapePart => ({
  ...{ tasks: part.tasks, cpus: part.cpusPerTask, memoryMb: part.memoryMbPerTask, memoryMbPerCpu: 0 },
  devices:
    gpusOf(part.resourcesPerTask) === 0
      ? []
      : [
          {
            kind: 'gpu',
            count: gpusOf(part.resourcesPerTask),
            ...{ model: null, minMemoryMb: null, share: null },
          },
        ],
  tasksPerMachine: part.tasksPerMachine ?? { min: 1, max: null },
  exclusive: part.exclusive ?? 'NONE',
  // Before any time has passed.
  allAlike: [...(part.allAlike ?? []), ...(part.sameSwitch ? [SWITCH] : [])],
  where: part.machineConstraint === null ? null : parseConstraint(part.machineConstraint),
});

describe('a job of several parts', () => {
  it('starts with all its parts at one site or with none, as each asks, under every policy', () => {
    let started = 0;
    assertUntil(
      fc.property(world, fc.boolean(), (given, atOnce) => {
        started += play(given, atOnce).started;
      }),
      RUNS,
      () => {
        expect(started).toBeGreaterThan(RUNS.numRuns / 4);
      },
    );
  });

  it('is planned alike by the kept grid and by one built afresh in any order, and planning changes nothing', () => {
    fc.assert(
      fc.property(world, fc.infiniteStream(fc.nat(1000)), (given, numbers) => {
        const { w } = play(given);
        const plans = w.plans();
        expect(w.plans()).toEqual(plans);
        const shuffle = shuffler(numbers);
        expect(w.plans(w.rebuilt(shuffle))).toEqual(plans);
      }),
      RUNS,
    );
  });

  it('has its machines by the rule of resources.md, where machines are equally fast, or lacks what the rule says', () => {
    const seen = { placed: 0, lacking: 0 };
    assertUntil(
      fc.property(onMachines, ({ sites, events }) => {
        const w = new World(
          sites.map(({ machines, ...site }) => ({
            ...site,
            shared: false,
            machines: machines.map((machine) => ({ ...machine, benchmark: 1 })),
          })),
          { dispatch: { kind: 'random' }, local: { kind: 'fcfs' } } as never,
        );
        for (const event of events) if (event.kind === 'submit') w.play(event);
        for (const job of w.atRoot.values()) {
          if (job.parts === null || job.licenses.length > 0 || job.os !== null) continue;
          if (job.machineConstraint !== null) continue;
          const requirement = w.grid.requirementOf(job);
          for (const { site, resources } of w.grid.sites) {
            const machines = w.machines.filter(({ siteId }) => siteId === site.id);
            const none = { asked: {}, free: {} };
            // Somebody else has a CPU of some machines.
            const taken = new Set(
              machines.filter(({ id }) => (id * 7 + job.id) % 3 === 0).map(({ id }) => id),
            );
            const shapes = machines.map((machine) => {
              const shape = shapeMachine(machine);
              if (!taken.has(machine.id)) return shape;
              return { ...shape, users: ['other'], free: { ...shape.free, cpus: shape.free.cpus - 1 } };
            });
            const byRule = placeShape(job.parts.map(shapePart), shapes, 'u', none);
            const room = [...resources.free.room];
            for (const { machine, offset } of resources.machines)
              if (taken.has(machine.id)) room[offset] = (room[offset] as number) - 1;
            const found = place(requirement, resources.eligible(requirement.signature), room);
            if ('lacks' in byRule) {
              seen.lacking++;
              expect(found).toBeNull();
              continue;
            }
            seen.placed++;
            const shown = placedParts(
              job,
              (found?.machines ?? []).map(({ machine }, i) => ({
                machineId: machine.id,
                tasks: found?.tasks[i] as number,
              })),
            );
            const ours = (job.parts as JobPart[]).map((_, i) =>
              shown
                .filter(({ at }) => at === i)
                .map(({ machineId, tasks }) => [machineId, tasks] as const)
                .sort(([a], [b]) => a - b),
            );
            expect(ours).toEqual(
              byRule.parts.map((part) => part.map(({ machine, tasks }) => [Number(machine), tasks])),
            );
          }
        }
      }),
      RUNS,
      () => {
        expect(seen.placed).toBeGreaterThan(RUNS.numRuns / 4);
        expect(seen.lacking).toBeGreaterThan(RUNS.numRuns / 4);
      },
    );
  });

  it('has the same openings in a walk from end to end as in a profile, beside runs, promises and windows', () => {
    let found = 0;
    assertUntil(
      fc.property(
        onMachines,
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 20 }),
        (given, limit, from) => {
          const { w } = play(given);
          const ids = w.machines.filter((_, i) => i % 2 === 0).map(({ id }) => id);
          w.hold({
            ...{
              id: 1,
              by: 'WINDOW',
              ends: 'LIMIT',
              from: w.now + from,
              to: w.now + from + 10,
              pools: [],
            },
            machines: ids.map((machineId) => ({ machineId, amounts: null })),
          });
          for (const entry of w.grid.sites) {
            const { resources } = entry;
            if (resources.shared) continue;
            const jobs = [...w.atSite.values(), ...[...w.atRoot.values()].map((job) => ({ job }))];
            const timeline = new Timeline(w.grid, entry, w.now);
            const profile = Profile.of(resources, w.now);
            for (const { job } of jobs.slice(0, 6)) {
              if (job.licenses.length > 0) continue;
              const requirement = w.grid.requirementOf(job);
              const eligible = resources.eligible(requirement.signature);
              if (whyNeverFits(requirement, eligible) !== null) continue;
              const work = Math.min(job.estimateS * job.benchmark, limit);
              const walked = timeline.earliestOpening(requirement, eligible, work, limit);
              const looked = profile.earliestOpening(requirement, eligible, work, limit);
              const shown = (opening: typeof walked) =>
                opening && [opening.at, opening.end, allocationsOf(opening.placement)];
              expect(shown(looked)).toEqual(shown(walked));
              if (walked === null) continue;
              if (job.parts !== null) found++;
              const hold = holdOf(requirement, walked.placement, []);
              // Where it found its place first, and nowhere before. Of several parts one may have taken another place before then, of which
              // the next had need: their order is not searched.
              const first = profile.earliestFor(hold, w.now, walked.end - walked.at, limit);
              if (job.parts === null) expect(first).toBe(walked.at);
              else expect(first).toBeLessThanOrEqual(walked.at);
              timeline.promise(hold, walked.at, walked.end);
              profile.take(hold, walked.at, walked.end);
            }
          }
        },
      ),
      RUNS,
      () => {
        expect(found).toBeGreaterThan(RUNS.numRuns / 8);
      },
    );
  });

  const machine = (id: number, cpus: number, more: Partial<Machine> = {}): Machine => ({
    ...{ id, siteId: 1, cpus, memoryMb: 100, benchmark: 1, os: 'linux', architecture: 'x', licenseIds: [] },
    available: true,
    ...more,
  });
  const gridOf = (...machines: Machine[]): Grid => {
    const grid = new Grid();
    grid.setSite({ id: 1, name: 'a', state: 'UP', localPolicy: null });
    for (const one of machines) grid.setMachine(one);
    return grid;
  };
  const whyNot = (grid: Grid, parts: readonly JobPart[]) => {
    const requirement = grid.requirementOf(jobOf(1, parts));
    const found = whyPartsNowhere(requirement, requirement.parts ?? [], grid.sites);
    return found && [found.why, found.part?.at ?? null, found.part?.besideOthers ?? null];
  };

  it('names the part that fits nowhere, and what it lacks', () => {
    const grid = gridOf(machine(1, 8), machine(2, 4, { labels: { gen: '2' }, resources: { gpu: 2 } }));
    expect(whyNot(grid, partsOf({ tasks: 2, cpusPerTask: 4 }, { machineConstraint: 'gen = 2' }))).toBeNull();
    expect(whyNot(grid, partsOf({}, { cpusPerTask: 9 }))).toEqual(['NEVER_FITS_CPUS', 1, false]);
    expect(whyNot(grid, partsOf({}, { machineConstraint: 'gen = 3' }))).toEqual([
      ...['NEVER_FITS_CONSTRAINT', 1, false],
    ]);
    expect(whyNot(grid, partsOf({ cpusPerTask: 8 }, { tasks: 2, cpusPerTask: 4 }))).toEqual([
      ...['NEVER_FITS_CPUS', 1, true],
    ]);
    const gpus = partsOf({ resourcesPerTask: { gpu: 2 } }, { resourcesPerTask: { gpu: 1 } });
    expect(whyNot(grid, gpus)).toEqual(['NEVER_FITS_RESOURCES', 1, true]);
    const ownScheduler = { waitingJobs: 0, waitingS: 0, waitingCpuS: 0, busy: [] };
    grid.setSite({ id: 1, name: 'a', state: 'UP', localPolicy: null, load: ownScheduler });
    expect(whyNot(grid, partsOf({}, {}))).toEqual(['SITE_TAKES_NO_PARTS', null, null]);
  });

  it('goes to a site with its own scheduler that takes parts, if each has machines of its own there', () => {
    const grid = gridOf(machine(1, 8), machine(2, 4, { labels: { gen: '2' } }));
    const load = { waitingJobs: 0, waitingS: 0, waitingCpuS: 0, busy: [] };
    const site = { id: 1, name: 'a', state: 'UP' as const, localPolicy: null };
    grid.setSite({ ...site, load: { ...load, takesParts: true } });
    // Beside one another they have room on machine 1 alone; there they are on 1 and 2.
    expect(whyNot(grid, partsOf({ cpusPerTask: 4 }, { cpusPerTask: 2 }))).toBeNull();
    expect(whyNot(grid, partsOf({ cpusPerTask: 4 }, { cpusPerTask: 5 }))).toBeNull();
    expect(whyNot(grid, partsOf({ cpusPerTask: 2 }, {}, {}))).toEqual(['NEVER_FITS_CPUS', 2, true]);
    expect(whyNot(grid, partsOf({ machineConstraint: 'gen = 2' }, { cpusPerTask: 9 }))).toEqual([
      ...['NEVER_FITS_CPUS', 1, false],
    ]);
    // It knows its switches, and no other labels.
    expect(whyNot(grid, partsOf({ sameSwitch: { maxWaitS: null } }, {}))).toBeNull();
    expect(whyNot(grid, partsOf({ allAlike: ['gen'] }, {}))?.[0]).toMatch(/^NEVER_FITS/);
    grid.setSite({ ...site, load });
    expect(whyNot(grid, partsOf({}, {}))).toEqual(['SITE_TAKES_NO_PARTS', null, null]);
  });

  it('waits for the part that lacks something beside the others, and says which', () => {
    const grid = gridOf(machine(1, 8), machine(2, 4, { memoryMb: 10 }));
    const policy = { ...DEFAULT_POLICY, local: { kind: 'fcfs' as const } };
    const why = (id: number) => whyWaiting(grid, id, { now: 0, policy });
    const running = anyJob({ id: 1, cpusPerTask: 3 });
    grid.placeAtSite(running, 1);
    const run = { jobId: 1, siteId: 1, epoch: 1, pools: [], start: 0, plannedEnd: 50 };
    grid.startRun({ ...run, allocations: [{ machineId: 1, tasks: 1 }] });
    grid.placeAtSite(jobOf(2, partsOf({ cpusPerTask: 5 }, { tasks: 2, cpusPerTask: 3 })), 1);
    expect(why(2)).toMatchObject({
      code: 'CPUS_BUSY',
      numbers: { part: 1, partsBefore: 1, tasks: 2, neededCpus: 6, mostFreeCpus: 4, freeCpus: 4 },
      message:
        'Part 1, next to the parts before it: Needs 6 CPUs for 2 tasks; at most 4 are free on one machine (4 in total).',
    });
    grid.removeJob(2);
    grid.placeAtSite(jobOf(3, partsOf({ exclusive: 'MACHINE' }, { memoryMbPerTask: 20 })), 1);
    expect(why(3)?.code).toBe('READY');
    grid.removeJob(3);
    grid.placeAtSite(jobOf(4, partsOf({ exclusive: 'MACHINE' }, { exclusive: 'MACHINE' })), 1);
    expect(why(4)).toMatchObject({ code: 'MACHINES_BUSY', numbers: { part: 1, idleMachines: 0 } });
  });

  it('counts the amounts of each of its parts, also on a machine that several share', () => {
    const grid = gridOf(machine(1, 8));
    const parts = partsOf({ tasks: 2, cpusPerTask: 1, memoryMbPerTask: 10 }, { cpusPerTask: 4 });
    grid.placeAtSite(jobOf(1, parts), 1);
    const allocations = [
      { machineId: 1, tasks: 2 },
      { machineId: 1, tasks: 1 },
    ];
    const run = { jobId: 1, siteId: 1, epoch: 1, allocations, pools: [], start: 0, plannedEnd: 10 };
    grid.startRun(run);
    const { free, machines } = grid.siteEntry(1).resources;
    expect([...free.room.slice(0, 2), machines[0]?.usedCpus]).toEqual([2, 80, 6]);
    grid.setMachine(machine(1, 16));
    expect(grid.siteEntry(1).resources.free.room.slice(0, 2)).toEqual([10, 80]);
    grid.endRun(1);
    expect(grid.siteEntry(1).resources.free.room.slice(0, 2)).toEqual([16, 100]);
  });
});
