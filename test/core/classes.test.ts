/** Classes of jobs: what a policy may say of them, what it comes to, and what scavengers do under every local policy. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  classTableOf,
  DEFAULT_POLICY,
  Grid,
  type Job,
  mayUse,
  type Policy,
  type PolicyError,
  parsePolicy,
  plainJob,
  preemptionUnder,
  ranksOf,
  siteCycle,
} from '../../src/core/index.js';
import { cases } from '../support/seed.js';
import { CHOOSING } from './support/policies.js';

const under = (classes: object, more: object = {}): Policy =>
  parsePolicy({ ...DEFAULT_POLICY, classes, ...more });
const faults = (classes: object): string[] => {
  try {
    under(classes);
    return [];
  } catch (error) {
    return (error as PolicyError).faults.map(({ path, accepted }) => `${path}: ${accepted}`);
  }
};

describe('the classes of a policy', () => {
  it('have what `preemption` says where they say nothing', () => {
    const classes = {
      plain: {},
      urgent: { rank: 5, exemptS: 7, graceS: 8, onPreemption: 'REQUEUE' },
      spare: { scavenger: true, charged: false },
    };
    const table = classTableOf(under(classes, { preemption: { graceS: 1, exemptS: 2, cancelBelow: 6 } }));
    const of = (name: string | null, preemptionClass = 0) => table.of({ class: name, preemptionClass });
    expect(of('plain')).toEqual({ rank: 0, exemptS: 2, graceS: 1, requeue: false, charged: true });
    expect(of('urgent')).toEqual({ rank: 5, exemptS: 7, graceS: 8, requeue: true, charged: true });
    expect(of('spare')).toEqual({ rank: -1, exemptS: 0, graceS: 1, requeue: false, charged: false });
    // The integer of the release before; and a class that the policy has no more.
    expect(of(null, 7)).toEqual({ rank: 7, exemptS: 2, graceS: 1, requeue: true, charged: true });
    expect(of('gone', 0)).toEqual(of(null, 0));
    expect(classTableOf(under(classes)).of({ class: 'plain', preemptionClass: 0 })).toMatchObject({
      ...{ exemptS: 600, graceS: 30, requeue: true },
    });
  });

  it('are refused where nothing could come of them', () => {
    expect(faults({ fine: {}, _: { rank: 9 }, 'a-b.c': { scavenger: true, exemptS: 0 } })).toEqual([]);
    for (const name of ['normal', '5', '-x', 'a b', '', 'x'.repeat(65)])
      expect(faults({ [name]: {} })).toHaveLength(1);
    expect(faults({ x: { scavenger: true, rank: 1, exemptS: 2 } })).toEqual([
      'classes.x.rank: 0 in a scavenger class',
      'classes.x.exemptS: 0 in a scavenger class',
    ]);
    expect(faults({ x: { rank: 10 } })).toEqual(['classes.x.rank: at most 9']);
    expect(faults({ x: { userClasses: ['IRON'] } })).toEqual([
      'classes.x.userClasses.0: GOLD, SILVER, REGULAR',
    ]);
    expect(faults({ x: { grace: 5 } })[0]).toContain(
      'classes.x.grace: nothing, because the field is unknown',
    );
    const many = (n: number) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`c${i}`, {}]));
    expect(faults(many(100))).toEqual([]);
    expect(faults(many(101))).toEqual(['classes: at most 100 classes']);
  });

  it('say who may use them; operators may use all', () => {
    const classes = under({ all: {}, nobody: { users: [] }, some: { users: ['ada'], userClasses: ['GOLD'] } })
      .classes!;
    const who = (name: string, userClass: 'GOLD' | 'REGULAR', isOperator = false) =>
      Object.keys(classes).filter((one) => mayUse(classes[one]!, { name, userClass, isOperator }));
    expect(who('ada', 'REGULAR')).toEqual(['all', 'some']);
    expect(who('eve', 'REGULAR')).toEqual(['all']);
    expect(who('eve', 'GOLD')).toEqual(['all', 'some']);
    expect(who('eve', 'REGULAR', true)).toEqual(['all', 'nobody', 'some']);
  });

  it('are none in documents of the release before: nothing is preempted, and queues are as they were', () => {
    expect(preemptionUnder(parsePolicy(DEFAULT_POLICY))).toBeNull();
    expect(ranksOf(parsePolicy(DEFAULT_POLICY))).toEqual({});
  });
});

const SITE = 1;
const CLASSES = {
  spare: { scavenger: true },
  quick: { scavenger: true, graceS: 0 },
  urgent: { rank: 5 },
  late: { rank: 2, exemptS: 50, onPreemption: 'CANCEL' },
};

/** A site of one machine with 8 CPUs. */
function siteUnder(policy: Policy): Grid {
  const grid = new Grid(policy.workflows, ranksOf(policy));
  grid.setSite({ id: SITE, name: 's', state: 'UP', localPolicy: null });
  grid.setMachine({
    ...{ id: 1, siteId: SITE, cpus: 8, memoryMb: 100, benchmark: 1, os: 'linux', architecture: 'x64' },
    ...{ licenseIds: [], available: true },
  });
  return grid;
}
const job = (id: number, of: Partial<Job> = {}): Job =>
  plainJob({ id, submittedAt: id, dispatchedAt: id, estimateS: 100, cpusPerTask: 8, ...of });
function run(grid: Grid, of: Job, start = of.submittedAt): void {
  grid.placeAtSite(of, SITE);
  const allocations = [{ machineId: 1, tasks: of.tasks }];
  grid.startRun({
    ...{ jobId: of.id, siteId: SITE, epoch: 1, allocations, pools: [], start },
    plannedEnd: start + of.estimateS,
  });
}

describe.each(CHOOSING.map((local) => [JSON.stringify(local), local] as const))(
  'scavengers under %s',
  (_, local) => {
    const policy = under(CLASSES, { local });
    const cycle = (grid: Grid, now: number) =>
      siteCycle(grid, SITE, { now, policy, policyVersion: 1, maxStarts: 10 });
    const stopped = (grid: Grid, now: number) =>
      cycle(grid, now).preemptions.map(({ jobId, victims, room }) => [
        jobId,
        victims.map((one) => one.jobId),
        room.at,
      ]);

    it('are behind all others, however long they have waited', () => {
      const grid = siteUnder(policy);
      grid.placeAtSite(job(1, { class: 'spare', boost: 1000, priority: 4000, estimateS: 1 }), SITE);
      grid.placeAtSite(job(2, { boost: -1000 }), SITE);
      const { starts } = cycle(grid, 1_000_000);
      expect(starts.map(({ jobId }) => jobId)).toEqual([2]);
    });

    it('are stopped for a job without a class, at any time, after their own grace', () => {
      const grid = siteUnder(policy);
      run(grid, job(1, { class: 'quick', cpusPerTask: 4, estimateS: 1000 }));
      run(grid, job(2, { class: 'spare', cpusPerTask: 4, estimateS: 1000, restartable: false }));
      grid.placeAtSite(job(3, { cpusPerTask: 4 }), SITE);
      // Either would make room; the second has run for less time. It may not start again, and ends.
      const { preemptions } = cycle(grid, 100);
      expect(preemptions).toMatchObject([
        { jobId: 3, victims: [{ jobId: 2, requeue: false, graceS: 30 }], room: { at: 130 } },
      ]);
    });

    it('are not stopped where it would be in vain, or where there is room', () => {
      const grid = siteUnder(policy);
      run(grid, job(1, { cpusPerTask: 4, estimateS: 1000 }));
      run(grid, job(2, { class: 'quick', cpusPerTask: 2, estimateS: 1000 }));
      grid.placeAtSite(job(3, { cpusPerTask: 8 }), SITE);
      expect(stopped(grid, 100)).toEqual([]);
      // Behind that one: it would start now if no scavenger ran, and ends before the first job's run does.
      grid.placeAtSite(job(4, { cpusPerTask: 4, estimateS: 500 }), SITE);
      expect(stopped(grid, 100)).toEqual([[4, [2], 100]]);
      grid.removeJob(4);
      // And this one would be in the way of job 3.
      grid.placeAtSite(job(5, { cpusPerTask: 4, estimateS: 5000 }), SITE);
      expect(stopped(grid, 100)).toEqual([]);
    });

    it('leave all else to ranks: who is exempt for how long, and who ends', () => {
      const grid = siteUnder(policy);
      run(grid, job(1, { class: 'late', estimateS: 1000 }), 100);
      grid.placeAtSite(job(2, { class: 'urgent' }), SITE);
      expect(cycle(grid, 149)).toMatchObject({ preemptions: [], wakeAt: 150 });
      expect(cycle(grid, 150).preemptions).toMatchObject([
        { jobId: 2, class: 'urgent', victims: [{ jobId: 1, requeue: false, graceS: 30 }] },
      ]);
      // Under another policy the ranks are others.
      const equal = under({ ...CLASSES, late: { rank: 5 } }, { local });
      const other = siteUnder(equal);
      run(other, job(1, { class: 'late', estimateS: 1000 }), 100);
      other.placeAtSite(job(2, { class: 'urgent' }), SITE);
      expect(
        siteCycle(other, SITE, { now: 5000, policy: equal, policyVersion: 2, maxStarts: 10 }).preemptions,
      ).toEqual([]);
    });
  },
);

// Under shortest first, the first is another one.
describe.each(
  CHOOSING.filter(({ kind }) => kind !== 'sjf').map((local) => [JSON.stringify(local), local] as const),
)('under %s', (_, local) => {
  it('the first of rank 0 never waits for scavengers, and these run in the end', () => {
    const some = fc.record({
      at: fc.integer({ min: 0, max: 40 }),
      estimateS: fc.integer({ min: 1, max: 30 }),
      cpus: fc.integer({ min: 1, max: 8 }),
      class: fc.constantFrom(null, null, 'quick'),
    });
    fc.assert(
      fc.property(fc.array(some, { minLength: 3, maxLength: 25 }), (asked) => {
        const given = asked.map((one, i) => ({ ...one, id: i + 1 }));
        const started = play(under(CLASSES, { local }), given, (waiting, running) => {
          const plain = ({ class: of }: Job) => of === null;
          const first = waiting.find(plain);
          const free = 8 - running.filter(plain).reduce((sum, { cpusPerTask }) => sum + cpusPerTask, 0);
          if (first) expect(first.cpusPerTask).toBeGreaterThan(free);
        });
        expect(started.size).toBe(given.length);
      }),
      { numRuns: cases(60) },
    );
  });
});

/** First starts, of a driver that does what the cycles say. `atRest`: is told who waits, as they came, and who runs when nothing more happens. */
function play(
  policy: Policy,
  given: readonly { id: number; at: number; estimateS: number; cpus: number; class: string | null }[],
  atRest: (waiting: Job[], running: Job[]) => void,
): Map<number, number> {
  const grid = siteUnder(policy);
  const starts = new Map<number, number>();
  const ends = new Map<number, number>();
  const jobs = new Map(
    given.map((one) => [
      one.id,
      job(one.id, {
        submittedAt: one.at,
        dispatchedAt: one.at,
        estimateS: one.estimateS,
        cpusPerTask: one.cpus,
        class: one.class,
      }),
    ]),
  );
  for (let now = 0; now < 2000; now++) {
    for (const [id, end] of ends)
      if (end === now) {
        grid.endRun(id);
        ends.delete(id);
      }
    for (const one of jobs.values()) if (one.submittedAt === now) grid.placeAtSite(one, SITE);
    for (let again = true; again; ) {
      const plan = siteCycle(grid, SITE, { now, policy, policyVersion: 1, maxStarts: 10 });
      for (const { jobId, allocations, pools, plannedDuration } of plan.starts) {
        const plannedEnd = now + plannedDuration;
        grid.startRun({ jobId, siteId: SITE, epoch: 1, allocations, pools, start: now, plannedEnd });
        starts.set(jobId, starts.get(jobId) ?? now);
        ends.set(jobId, plannedEnd);
      }
      for (const { jobId, victims, room } of plan.preemptions) {
        grid.placeAtSite({ ...(grid.job(jobId) as Job), promised: room }, SITE);
        for (const victim of victims) {
          grid.endRun(victim.jobId);
          ends.delete(victim.jobId);
          grid.placeAtSite(jobs.get(victim.jobId) as Job, SITE);
        }
      }
      grid.setReservation(SITE, plan.reservation);
      grid.keepMemory(SITE, plan.memory);
      again = plan.starts.length + plan.preemptions.length > 0;
    }
    const waiting = [...jobs.values()].filter(
      ({ id, submittedAt }) => submittedAt <= now && grid.placeOf(id)?.at === 'QUEUE',
    );
    waiting.sort((a, b) => a.submittedAt - b.submittedAt || a.id - b.id);
    atRest(
      waiting,
      [...ends.keys()].map((id) => jobs.get(id) as Job),
    );
    if (starts.size === jobs.size && ends.size === 0 && waiting.length === 0) break;
  }
  return starts;
}
