import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JobQueue } from '../../src/core/grid/queue.js';
import { amountIn } from '../../src/core/grid/site-resources.js';
import {
  type Grid,
  imageOf,
  type Job,
  type License,
  type Machine,
  type Reservation,
  type Run,
  type SitePlan,
} from '../../src/core/index.js';
import { cases } from '../support/seed.js';
import { shuffler } from '../support/shuffle.js';
import { anyEvents, anyPolicy, anySites, goOn, gpusOf, usage, World } from './support/world.js';

const RUNS = { numRuns: cases(400) };
const world = fc.record({ sites: anySites, policy: anyPolicy, events: anyEvents });
type Given = typeof world extends fc.Arbitrary<infer G> ? G : never;

function play({ sites, policy, events }: Given, onPlan?: (world: World, plan: SitePlan) => void): World {
  const played = new World(sites, policy, onPlan);
  for (const event of events) played.play(event);
  return played;
}

/** All that a grid holds, but for what it has only worked out. */
function contentOf({ sites, root, topology }: Grid): unknown {
  const queueOf = ({ ids, jobs, priorities, length }: JobQueue) => [length, jobs, ids, priorities];
  return structuredClone([
    topology,
    queueOf(root),
    sites.map(({ site, resources, queue, meta, reservation, memory }) => [
      site,
      resources.free,
      resources.changes,
      resources.machines.map(({ machine, usedCpus }) => [machine, usedCpus]),
      resources.runs.map(({ run, end, licenses }) => [
        run,
        end,
        licenses.map(({ pool, copies }) => [pool.inUse, copies]),
      ]),
      queueOf(queue),
      queueOf(meta),
      queue.requirements.map((requirement) => requirement?.jobs),
      reservation,
      imageOf(memory),
    ]),
  ]);
}

describe('a cycle', () => {
  it('only reads: whatever is decided, the grid is as it was, and the same is decided again', () => {
    fc.assert(
      fc.property(world, (given) => {
        const played = new World(given.sites, given.policy);
        for (const event of given.events) {
          played.play(event);
          if (event.kind !== 'cycle') continue;
          const before = contentOf(played.grid);
          const plans = structuredClone(played.plans());
          expect(contentOf(played.grid)).toEqual(before);
          expect(played.plans()).toEqual(plans);
        }
      }),
      { numRuns: cases(40) },
    );
  });
});

describe('safety', () => {
  it('never over-commits CPUs, places, memory, licenses or a site, and starts jobs only where they can run, alone if they ask', () => {
    fc.assert(
      fc.property(world, (given) => {
        const check = (w: World): void => {
          const { cpus, tasks, memoryMb, gpus, licenses, ...who } = usage(w.running.values(), -1);
          const { sharing, alone, users, keeping } = who;
          for (const machine of w.machines) {
            if (keeping.has(machine.id)) expect(users.get(machine.id)?.size).toBe(1);
            if (alone.has(machine.id)) expect(sharing.get(machine.id)).toBe(1);
            const { maxTasks } = machine;
            if (maxTasks) expect(tasks.get(machine.id) ?? 0).toBeLessThanOrEqual(maxTasks);
            else expect(cpus.get(machine.id) ?? 0).toBeLessThanOrEqual(machine.cpus);
            expect(memoryMb.get(machine.id) ?? 0).toBeLessThanOrEqual(machine.memoryMb);
            expect(gpus.get(machine.id) ?? 0).toBeLessThanOrEqual(gpusOf(machine.resources));
          }
          for (const { id, copies } of w.licenses) expect(licenses.get(id) ?? 0).toBeLessThanOrEqual(copies);
          for (const { id, maxRunningJobs } of w.sites)
            expect(runsAt(w, id)).toBeLessThanOrEqual(maxRunningJobs ?? Infinity);
        };
        const w = play(given, (w, plan) => {
          check(w);
          for (const start of plan.starts) {
            expect(w.sites.find(({ id }) => id === plan.siteId)?.state).toBe('UP');
            checkStart(w, w.atSite.get(start.jobId)?.job as Job, start);
          }
        });
        check(w);
      }),
      RUNS,
    );
  });

  it('never delays the reservation: what is reserved is free at its instant', () => {
    fc.assert(
      fc.property(world, (given) => {
        play(given, (w, plan) => {
          if (plan.reservation === null) return;
          expect(foreseeable(w, plan.siteId)).toBe(true);
          const { reservation } = plan;
          const job = w.atSite.get(reservation.jobId)?.job as Job;
          checkStart(w, job, reservation);
          expect(reservation.at).toBeGreaterThanOrEqual(w.now);
          const { cpus, memoryMb, gpus, licenses, ...who } = usage(
            [...w.running.values(), ...started(w, plan)],
            reservation.at,
          );
          for (const { machineId, tasks } of reservation.allocations) {
            expect(isKeptFrom(job, machineId, who)).toBe(false);
            const machine = w.machines.find(({ id }) => id === machineId) as Machine;
            expect((cpus.get(machineId) ?? 0) + tasks * job.cpusPerTask).toBeLessThanOrEqual(machine.cpus);
            expect((memoryMb.get(machineId) ?? 0) + tasks * job.memoryMbPerTask).toBeLessThanOrEqual(
              machine.memoryMb,
            );
            expect((gpus.get(machineId) ?? 0) + tasks * gpusOf(job.resourcesPerTask)).toBeLessThanOrEqual(
              gpusOf(machine.resources),
            );
          }
          for (const { id } of reservation.pools) {
            expect((licenses.get(id) ?? 0) + amountIn(reservation, id)).toBeLessThanOrEqual(copiesOf(w, id));
          }
        });
      }),
      RUNS,
    );
  });

  it('reserves for whoever waits for room the earliest instant: the job fits at no earlier release', () => {
    // Without grid-wide pools, for which reservations of other sites may come first.
    fc.assert(
      fc.property(world, ({ sites, ...rest }) => {
        const own = sites.map((site) => ({
          ...site,
          pools: site.pools.map((pool) => ({ ...pool, grid: false })),
        }));
        play({ sites: own, ...rest }, (w, plan) => {
          // A promise that was kept may be later, for those that were promised after it have their places.
          w.forgetful = true;
          const { reservation } = plan;
          if (reservation === null) {
            const up = w.sites.find(({ id }) => id === plan.siteId)?.state === 'UP';
            if (!up || plan.truncated || ['fcfs', 'sjf', 'first-fit'].includes(w.policy.local.kind)) return;
            if (!foreseeable(w, plan.siteId)) return;
            const starting = new Set(plan.starts.map(({ jobId }) => jobId));
            for (const { job, siteId } of w.atSite.values()) {
              const waits = siteId === plan.siteId && !starting.has(job.id);
              if (waits) expect(fits(w, job, siteId, [], w.now)).toBe(false);
            }
            return;
          }
          const job = w.atSite.get(reservation.jobId)?.job as Job;
          // Decided before the reservation was made: by conservative backfilling also whatever comes before the job in its order.
          const before = started(w, plan).filter(
            (one, i) =>
              ['HEAD', 'FITTED_OUT_OF_TURN'].includes(plan.starts[i]?.reason as string) ||
              (w.policy.local.kind === 'conservative' && isAhead(one.job, job)),
          );
          const runs = [...w.running.values(), ...before];
          for (const { run } of runs) {
            const at = Math.max(w.now, run.plannedEnd);
            if (at < reservation.at) expect(fits(w, job, plan.siteId, runs, at)).toBe(false);
          }
        });
      }),
      RUNS,
    );
  });

  it('backfills only what leaves every reservation of other sites its grid-wide licenses', () => {
    fc.assert(
      fc.property(world, ({ sites, ...rest }) => {
        const shared = sites.map((site) => ({
          ...site,
          pools: site.pools.map((pool) => ({ ...pool, grid: true })),
        }));
        play({ sites: shared, ...rest }, (w, plan) => {
          const all = started(w, plan);
          const heads = all.filter((_, i) => plan.starts[i]?.reason === 'HEAD');
          for (const reservation of w.reservations.values()) {
            if (reservation.siteId === plan.siteId || !stands(w, reservation)) continue;
            const at = Math.max(w.now, reservation.at);
            const before = usage([...w.running.values(), ...heads], at).licenses;
            const after = usage([...w.running.values(), ...all], at).licenses;
            for (const { id } of reservation.pools) {
              const free = (used: Map<number, number>) => copiesOf(w, id) - (used.get(id) ?? 0);
              const claimed = amountIn(reservation, id);
              if (free(before) >= claimed) expect(free(after)).toBeGreaterThanOrEqual(claimed);
            }
          }
        });
      }),
      RUNS,
    );
  });
});

describe('liveness', () => {
  it('on a site without runs the first job that could run at all starts', () => {
    fc.assert(
      fc.property(world, ({ sites, ...rest }) => {
        const own = sites.map((site) => ({
          ...site,
          pools: site.pools.map((pool) => ({ ...pool, grid: false })),
        }));
        play({ sites: own, ...rest }, (w, plan) => {
          const up = w.sites.find(({ id }) => id === plan.siteId)?.state === 'UP';
          const empty = ![...w.running.values()].some(({ run }) => run.siteId === plan.siteId);
          if (!up || !empty) return;
          const queued = [...w.atSite.values()].filter(({ siteId }) => siteId === plan.siteId);
          const could = queued.some(({ job }) => fits(w, job, plan.siteId, [], w.now));
          expect(plan.starts.length > 0).toBe(could);
        });
      }),
      RUNS,
    );
  });

  it('everything that can run has run when nothing else happens any more', () => {
    fc.assert(
      fc.property(world, (given) => {
        const w = play(given);
        w.sites.forEach((site, i) => {
          w.sites[i] = { ...site, state: 'UP' };
          w.grid.setSite(w.sites[i] as typeof site);
        });
        w.machines.forEach((machine, i) => {
          w.machines[i] = { ...machine, available: true };
          w.grid.setMachine(w.machines[i] as Machine);
        });
        for (let round = 0; round < 400 && w.atSite.size + w.running.size + w.atRoot.size > 0; round++) {
          w.dispatch();
          for (const { id } of w.sites) w.cycle(id);
          const next = [...w.running.values()].sort((a, b) => a.run.plannedEnd - b.run.plannedEnd)[0];
          const due = Math.min(...w.wakeAt.values());
          if (due <= (next?.run.plannedEnd ?? Infinity) && due !== Infinity) {
            w.now = Math.max(w.now, due);
            continue;
          }
          if (next === undefined) break;
          w.now = Math.max(w.now, next.run.plannedEnd);
          w.running.delete(next.job.id);
          w.grid.endRun(next.job.id);
        }
        expect([w.atSite.size, w.running.size]).toEqual([0, 0]);
        for (const job of w.atRoot.values()) {
          expect(w.sites.some(({ id }) => fits(w, job, id, [], w.now))).toBe(false);
        }
      }),
      RUNS,
    );
  });
});

describe('determinism', () => {
  it('the kept grid plans as one built afresh, in any order, and planning changes nothing', () => {
    fc.assert(
      fc.property(world, fc.infiniteStream(fc.nat(1000)), (given, numbers) => {
        const w = play(given);
        const plans = w.plans();
        expect(w.plans()).toEqual(plans);
        const shuffle = shuffler(numbers);
        expect(w.plans(w.rebuilt(shuffle))).toEqual(plans);
      }),
      RUNS,
    );
  });
});

/** Of pools, by kind: one by one and by amount. */
function amountsAsked({ licenses, resources }: Job): Map<string, number> {
  const asked = new Map(Object.entries(resources ?? {}));
  for (const kind of licenses) asked.set(kind, (asked.get(kind) ?? 0) + 1);
  return asked;
}

const copiesOf = (w: World, licenseId: number): number =>
  w.licenses.find(({ id }) => id === licenseId)?.copies ?? 0;

/** The plan's starts as runs. */
function started(w: World, plan: SitePlan): { job: Job; run: Run }[] {
  return plan.starts.map(({ jobId, siteId, allocations, pools, plannedDuration }) => ({
    job: w.atSite.get(jobId)?.job as Job,
    run: {
      jobId,
      siteId,
      epoch: 1,
      allocations,
      pools,
      start: w.now,
      plannedEnd: w.now + plannedDuration,
    },
  }));
}

const runsAt = (w: World, siteId: number): number =>
  [...w.running.values()].filter(({ run }) => run.siteId === siteId).length;

/** Every job starts alone on CPUs of its own, so that it is known when it ends, and nothing but these limits the site. */
const foreseeable = (w: World, siteId: number): boolean =>
  !isShared(w, siteId) && !w.sites.find(({ id }) => id === siteId)?.maxRunningJobs;

const isShared = (w: World, siteId: number): boolean =>
  w.machines.some((machine) => machine.siteId === siteId && machine.maxTasks);

/** The reservation is for a job that still waits at its site, and the site is up. */
const stands = (w: World, { jobId, siteId }: Reservation): boolean =>
  w.atSite.get(jobId)?.siteId === siteId && w.sites.find(({ id }) => id === siteId)?.state === 'UP';

/** All tasks are placed, on able and available machines of the site, with one usable license of each kind. */
function checkStart(
  w: World,
  job: Job,
  start: { siteId: number; allocations: Run['allocations']; pools: Run['pools'] },
): void {
  expect(start.allocations.reduce((sum, { tasks }) => sum + tasks, 0)).toBe(job.tasks);
  const given = new Map<string, number>();
  for (const { id, amount } of start.pools) {
    const license = w.licenses.find((l) => l.id === id) as License;
    expect([null, start.siteId]).toContain(license.siteId);
    expect(amount).toBeGreaterThan(0);
    given.set(license.kind, (given.get(license.kind) ?? 0) + amount);
  }
  expect(given).toEqual(amountsAsked(job));
  for (const { machineId } of start.allocations) {
    const machine = w.machines.find(({ id }) => id === machineId) as Machine;
    expect(machine.siteId).toBe(start.siteId);
    expect(isAble(w, machine, job)).toBe(true);
  }
  const { min, max } = job.tasksPerMachine ?? { min: 1, max: null };
  expect(start.allocations.every(({ tasks }) => tasks >= min && tasks <= (max ?? Infinity))).toBe(true);
  expect(new Set(start.allocations.map(({ machineId }) => machineId)).size).toBe(start.allocations.length);
  for (const { machineId, tasks } of start.allocations)
    if (w.machines.find(({ id }) => id === machineId)?.maxTasks) expect(tasks).toBe(1);
}

const isAble = (w: World, machine: Machine, job: Job): boolean =>
  machine.available &&
  (job.os === null || job.os === machine.os) &&
  satisfiesByHand(machine, job.machineConstraint) &&
  [...amountsAsked(job).keys()].every((kind) =>
    w.licenses.some(
      (l) =>
        l.kind === kind &&
        (l.siteId === null || l.siteId === machine.siteId) &&
        (machine.licenseIds.length === 0 || machine.licenseIds.includes(l.id)),
    ),
  );

/** The two that jobs of this world have. */
const satisfiesByHand = ({ os, labels }: Machine, constraint: string | null): boolean =>
  constraint === null ||
  (constraint === 'gen >= 2' ? labels?.gen === '2' : labels?.gen === '1' || os === 'bsd');

/** In plans: who keeps machines for his user keeps them from all. */
const isKeptFrom = (
  job: Job,
  machineId: number,
  { sharing, alone, keeping }: Pick<ReturnType<typeof usage>, 'sharing' | 'alone' | 'keeping'>,
): boolean =>
  job.exclusive === null ? alone.has(machineId) || keeping.has(machineId) : sharing.has(machineId);

const maxRunsOf = (w: World, siteId: number): number =>
  w.sites.find(({ id }) => id === siteId)?.maxRunningJobs ?? Infinity;

/** In order of arrival. */
const isAhead = (a: Job, b: Job): boolean =>
  (b.boost - a.boost ||
    (a.dispatchedAt ?? 0) - (b.dispatchedAt ?? 0) ||
    a.submittedAt - b.submittedAt ||
    a.id - b.id) < 0;

/** By counting: whether the job could start at the site at `at` beside these runs. */
function fits(w: World, job: Job, siteId: number, runs: { job: Job; run: Run }[], at: number): boolean {
  const used = usage(runs, at);
  if (runs.filter(({ run }) => run.siteId === siteId).length >= maxRunsOf(w, siteId)) return false;
  for (const [kind, asked] of amountsAsked(job)) {
    const pools = w.licenses.filter((l) => l.kind === kind && (l.siteId === null || l.siteId === siteId));
    const free = pools.reduce((sum, l) => sum + Math.max(0, l.copies - (used.licenses.get(l.id) ?? 0)), 0);
    if (free < asked) return false;
  }
  const rooms: number[] = [];
  for (const machine of w.machines) {
    if (machine.siteId !== siteId || !isAble(w, machine, job)) continue;
    if (isKeptFrom(job, machine.id, used)) continue;
    const cpus = machine.cpus - (used.cpus.get(machine.id) ?? 0);
    const memoryMb = machine.memoryMb - (used.memoryMb.get(machine.id) ?? 0);
    const free = { cpus };
    if (machine.maxTasks) {
      const open = (used.tasks.get(machine.id) ?? 0) < machine.maxTasks;
      free.cpus = open ? machine.cpus : 0;
    }
    let room = 0;
    const gpus = gpusOf(machine.resources) - (used.gpus.get(machine.id) ?? 0);
    while (
      (room + 1) * job.cpusPerTask <= free.cpus &&
      (room + 1) * job.memoryMbPerTask <= memoryMb &&
      (room + 1) * gpusOf(job.resourcesPerTask) <= gpus
    )
      room++;
    rooms.push(machine.maxTasks ? Math.min(1, room) : room);
  }
  return goOn(rooms, job.tasks, job.tasksPerMachine ?? { min: 1, max: null });
}
