import { describe, expect, it } from 'vitest';
import {
  DEFAULT_POLICY,
  type Held,
  type Job,
  jobData,
  type Policy,
  parsePolicy,
  plainJob,
  type SiteLoad,
} from '../../src/core/index.js';
import { runSimulation } from '../../src/simulator/engine.js';
import { whatIf } from '../../src/simulator/what-if.js';
import type { RecordedHold, RecordedJob, RecordedRun, SimulationTask } from '../../src/store/simulations.js';
import { machine } from '../core/support/grids.js';
import { withParts } from '../support/plain-job.js';
import { recorded } from '../support/recorded.js';
import { totalsOf } from '../support/totals.js';

const FCFS: Policy = { ...DEFAULT_POLICY, local: { kind: 'fcfs' } };
const site = (id: number) => ({ id, name: `site ${id}`, state: 'UP', localPolicy: null }) as const;
/** A job of one CPU with 200 MB to read from dataset 1, submitted at 0. */
const reading = (id: number) =>
  recorded(
    plainJob({
      id,
      submittedAt: 0,
      estimateS: 100,
      application: 'app',
      data: jobData({ inputs: [{ datasetId: 1 }] }),
    }),
  );
const task = (jobs: RecordedJob[], change: Partial<SimulationTask> = {}): SimulationTask => ({
  baseline: FCFS,
  candidate: FCFS,
  sites: [site(1)],
  machines: [machine({ id: 1, cpus: 1 })],
  licenses: [],
  schedulers: [],
  datasets: [],
  links: [],
  images: [],
  quotas: [],
  totals: [],
  reported: [],
  pages: jobs.map((job) => JSON.stringify([job])),
  trace: null,
  from: 0,
  holds: [],
  acceptDistance: false,
  ...change,
});
const there = {
  sites: [site(1), site(2)],
  datasets: [{ id: 1, sizeMb: 200, siteIds: [2] }],
  links: [{ fromSiteId: 2, toSiteId: 1, bandwidthMbPerS: 20, rttS: 0, loss: 0 }],
};

describe('a trace', () => {
  it('is simulated on the machines there are, as fast as it ran; what cannot run on them is left out', () => {
    const line = (id: number, submit: number, run: number, width: number) =>
      `${id} ${submit} 0 ${run} ${width} -1 -1 ${width} ${2 * run} -1 1 1 1 -1 1 -1 -1 -1`;
    const text = ['; SWF', line(1, 0, 100, 2), line(2, 0, 50, 1), line(3, 0, 10, 3), line(4, 0, 0, 1)].join(
      '\n',
    );
    const { jobs, leftOut, all } = whatIf(
      task([], { trace: text, machines: [1, 2].map((id) => machine({ id, cpus: 1, benchmark: 70 })) }),
    );
    expect({ jobs, leftOut }).toEqual({ jobs: 2, leftOut: 2 });
    expect(all.baseline).toMatchObject({ ended: 2, waitMeanS: 50, neverStarted: 0 });
    expect(() => whatIf(task([], { trace: 'not a trace' }))).toThrow('trace');
    expect(() => whatIf(task([], { trace: line(1, 0, 10, 9) }))).toThrow('no job of the trace can run');
  });
});

describe('a site that schedules itself', () => {
  const local = (takeBackAfterS: number | null = null) => ({
    ...{ kind: 'external' as const, queueLimit: 10, takeBackAfterS },
  });
  const OWN: Policy = { ...FCFS, local: local() };
  const load = (change: Partial<SiteLoad> = {}): SiteLoad => ({
    ...{ waitingJobs: 0, waitingS: 0, waitingCpuS: 0, busy: [] },
    waits: [
      { cpusMax: 1, limitMaxS: 240, runs: 4, waitS: 50 },
      { cpusMax: 4, limitMaxS: null, runs: 2, waitS: 500 },
    ],
    ...change,
  });
  const reported = [{ siteId: 1, at: 970, ageS: 30, silentS: 30 }];
  const short = (id: number, change: Partial<Job> = {}): RecordedJob => [
    recorded(plainJob({ id, submittedAt: 0, estimateS: 100, runTimeLimitS: 200, ...change })),
    null,
  ];
  const busy = (cpus: number) => load({ busy: [{ machineId: 1, cpus, memoryMb: 0 }] });
  const tried = (jobs: RecordedJob[], of: SiteLoad | null, change: Partial<SimulationTask> = {}) =>
    whatIf(
      task(jobs, {
        ...{ baseline: OWN, candidate: OWN, acceptDistance: true, reported },
        sites: [{ ...site(1), load: of }],
        ...change,
      }),
    );
  const cpus = (count: number) => ({ machines: [machine({ id: 1, cpus: count })] });

  it('starts each job after the wait that was observed of its shape', () => {
    const long = short(2, { cpusPerTask: 4, runTimeLimitS: null });
    const { all, sites } = tried([short(1), long], load(), cpus(8));
    expect(all.baseline).toMatchObject({ ended: 2, waitMeanS: (50 + 500) / 2 });
    expect(sites[0]?.ownScheduler).toEqual({
      ...{ runs: 6, waitMeanS: 200, at: '1970-01-01T00:16:10.000Z', stale: false },
      message:
        "Waits at site 1 are those observed in the 24 h before its last report, 30 s ago: 6 runs, 50 s to 8 min, by CPUs and time limit. Other users' jobs are taken to stay as they were then.",
    });
  });

  it('has no more room than its machines, less what others have of them', () => {
    const waits = (of: SiteLoad, machines: Partial<SimulationTask>, ...more: number[]) =>
      tried([short(1), short(2), ...more.map((id) => short(id))], of, machines).all.baseline.waitMeanS;
    expect(waits(load(), cpus(2))).toBe(50);
    expect(waits(load(), cpus(1))).toBe((50 + 150) / 2);
    expect(waits(busy(1), cpus(2))).toBe((50 + 150) / 2);
    // Where others have everything, they make room for one after the wait, as they did when it was observed.
    expect(waits(busy(2), cpus(2), 3)).toBe((50 + 150 + 250) / 3);
  });

  it('lets what fits go ahead of what does not', () => {
    const wide = short(2, { cpusPerTask: 2 });
    const { all } = tried([short(1), wide, short(3)], load({ waits: [] }), cpus(2));
    expect(all.baseline).toMatchObject({ ended: 3, waitMeanS: 100 / 3 });
  });

  it('holds the licenses of a job while it waits there', () => {
    const licenses = [{ id: 1, kind: 'matlab', copies: 1, siteId: 1 }];
    const using = (id: number) => short(id, { licenses: ['matlab'] });
    const { all } = tried([using(1), using(2)], load(), { ...cpus(8), licenses });
    // The second is handed over when the first has ended.
    expect(all.baseline).toMatchObject({ ended: 2, waitMeanS: (50 + 150 + 50) / 2 });
  });

  it('starts jobs as soon as there is room where no start was observed, and says so', () => {
    const { all, sites } = tried([short(1), short(2)], load({ waits: [] }));
    expect(all.baseline).toMatchObject({ ended: 2, waitMeanS: 50 });
    expect(sites[0]?.ownScheduler).toMatchObject({
      ...{ runs: 0, waitMeanS: null, stale: false },
      message:
        "No start of a job was observed at site 1 in the 24 h before its last report, 30 s ago: jobs are assumed to start there as soon as its machines have room beside other users' jobs.",
    });
    const never = tried([short(1), short(2)], null, { reported: [] });
    expect(never.all.baseline).toMatchObject({ ended: 2, waitMeanS: 50 });
    expect(never.sites[0]?.ownScheduler).toEqual({
      ...{ runs: 0, waitMeanS: null, at: null, stale: true },
      message:
        'The agent of site 1 has never reported how busy it is: jobs are assumed to start there as soon as its machines have room.',
    });
  });

  it('is said to be known by outdated figures when its agent is silent', () => {
    const silent = [{ siteId: 1, at: 0, ageS: 7200, silentS: OWN.timers.agentSilentS + 1 }];
    const { ownScheduler } = tried([short(1)], load(), { reported: silent }).sites[0]!;
    expect(ownScheduler?.stale).toBe(true);
    expect(ownScheduler?.message).toMatch(
      /last report, 2 h ago: 6 runs.* They are outdated: the agent of site 1 is silent\.$/,
    );
  });

  it('keeps no job waiting that ran when the window began', () => {
    const ran: RecordedJob = [short(1)[0], [100, 100, 1, 0, null]];
    const { jobs, all } = tried([ran, short(2, { submittedAt: 60 })], load(), { ...cpus(1), from: 60 });
    expect(jobs).toBe(1);
    // It ends at 100, when the other has waited for 40 of the 50 s.
    expect(all.baseline.waitMeanS).toBeCloseTo(50, 2);
  });

  it('gives back what it keeps waiting for long while another site can start it', () => {
    // The other site is full until 50, and seems to be for hours when the last job comes.
    const wide = (id: number, seconds: number): RecordedJob => [
      recorded(plainJob({ id, submittedAt: 0, estimateS: 4000, cpusPerTask: 4 })),
      [seconds, 4000, 2, 0, null],
    ];
    const last = short(3, { submittedAt: 1, cpusPerTask: 2, runTimeLimitS: null });
    const of = (takeBackAfterS: number | null, policy = FCFS, ...jobs: RecordedJob[]) =>
      tried(jobs, null, {
        ...{ baseline: policy, candidate: policy },
        sites: [
          { ...site(1), load: load({ waitingJobs: 1 }), localPolicy: local(takeBackAfterS) },
          { ...site(2), load: null },
        ],
        machines: [machine({ id: 1, siteId: 1, cpus: 2 }), machine({ id: 2, siteId: 2, cpus: 4 })],
      });
    const jobs = [wide(1, 40), wide(2, 10), last];
    expect(of(null, FCFS, ...jobs).all.baseline.waitMeanS).toBe((40 + 500) / 3);
    const { all, sites } = of(60, FCFS, ...jobs);
    expect(all.baseline.waitMeanS).toBe((40 + 60) / 3);
    expect(sites.map(({ baseline }) => baseline.ended)).toEqual([0, 3]);
    // Of the other site nothing has to be assumed.
    expect(sites.map(({ ownScheduler }) => ownScheduler !== null)).toEqual([true, false]);
    // Under a policy that sends it to the same site again it begins there nevertheless.
    const again = { ...FCFS, dispatch: { kind: 'round-robin' as const } };
    const job = short(2, { runTimeLimitS: null, cpusPerTask: 2 });
    for (const takeBackAfterS of [0, 60])
      expect(of(takeBackAfterS, again, short(1), job).all.baseline).toMatchObject({
        ...{ ended: 2, waitMeanS: (takeBackAfterS + 500) / 2 },
      });
  });

  it('is refused where nothing can have been observed', () => {
    const world = {
      ...{ sites: [site(1)], machines: [machine({ id: 1, cpus: 1 })], licenses: [], changes: [] },
    };
    expect(() => runSimulation(world, [], { policy: OWN, eventOrder: 'batch' }, [])).toThrow(
      /site 1: the local policy external is not simulated/,
    );
  });
});

it('knows the classes of jobs of either policy', () => {
  const job = (id: number, submittedAt: number, of: string | null): RecordedJob => [
    recorded(plainJob({ id, submittedAt, estimateS: 1000, class: of })),
    [1000, 1000, 1, 0, null],
  ];
  // The scavenger is stopped at 100, is gone at 130, and runs again from 1130 to 2130.
  const candidate = parsePolicy({ ...FCFS, classes: { spare: { scavenger: true } } });
  const local = { kind: 'easy' } as const;
  const { all } = whatIf(
    task([job(1, 0, 'spare'), job(2, 100, null)], {
      ...{ baseline: { ...FCFS, local }, candidate: { ...candidate, local } },
      acceptDistance: true,
    }),
  );
  expect(all.baseline).toMatchObject({ ended: 2, waitMeanS: 450 });
  expect(all.candidate).toMatchObject({ ended: 2, waitMeanS: (1130 + 30) / 2 });
});

describe('a recorded run', () => {
  const waits = (change: Partial<SimulationTask>, ...runs: RecordedJob[1][]) =>
    whatIf(
      task(
        runs.map((run, i) => [reading(i + 1), run]),
        change,
      ),
    ).all.baseline.waitMeanS;

  it('computes for what is left of it behind the moving of its data, and moves them where it goes', () => {
    // The second waits for the first: 10 s for the data, and 90 or the estimate of 100 or nothing to compute.
    expect(waits(there, [100, 100, 1, 0, null], null)).toBe(100 / 2);
    expect(waits(there, null, null)).toBe(110 / 2);
    expect(waits(there, [5, 100, 1, 0, null], null)).toBeCloseTo(10.001 / 2, 9);
    // It ran where the data lie, and half as fast.
    expect(waits(there, [100, 200, 2, 0, null], null)).toBe(60 / 2);
    // With the data at hand nothing is moved.
    expect(
      waits({ ...there, datasets: [{ id: 1, sizeMb: 200, siteIds: [1] }] }, [90, 100, 1, 0, null], null),
    ).toBe(90 / 2);
  });
});

describe("the limit of a job without one of its own is its site's", () => {
  const limited = (maxLimitS: number | null) => ({
    sites: [{ ...site(1), maxLimitS }],
    acceptDistance: true,
  });
  const job = (id: number, estimateS: number, change: Partial<Job> = {}) =>
    recorded(plainJob({ id, submittedAt: 0, estimateS, ...change }));
  /** When the last of them is over. */
  const over = (change: Partial<SimulationTask>, ...jobs: RecordedJob[]) =>
    whatIf(task(jobs, change)).history.lengthS;

  it('by which its run is stopped, as fast as its machine may be', () => {
    expect(over(limited(null), [job(1, 150), null])).toBe(150);
    expect(over(limited(200), [job(1, 150), null])).toBe(150);
    expect(over(limited(100), [job(1, 150), null])).toBe(100);
    expect(over(limited(100), [job(1, 150, { runTimeLimitS: 60 }), null])).toBe(60);
    for (const benchmark of [0.5, 2]) {
      const machines = [machine({ id: 1, cpus: 1, benchmark })];
      expect(over({ ...limited(100), machines }, [job(1, 300), null])).toBe(100);
      expect(over({ ...limited(100), machines }, [job(1, 40), null])).toBe(40 / benchmark);
    }
    const own = { ...FCFS, local: { kind: 'external' as const, queueLimit: 10, takeBackAfterS: null } };
    const there = { ...limited(100), baseline: own, candidate: own };
    expect(over(there, [job(1, 150), null])).toBe(100);
    expect(over(there, [job(1, 50), null])).toBe(50);
  });

  it('and no other where it runs elsewhere', () => {
    // Of an estimate of 150, 100 were planned for it; it took 90.
    const ran: RecordedJob = [job(1, 150), [90, 100, 1, 0, 100]];
    for (const limit of [100, 120, null]) expect(over(limited(limit), ran)).toBeCloseTo(90, 9);
    expect(over(limited(50), ran)).toBe(50);
  });

  it('of a run that was there when the window began, what is left of it', () => {
    const ran: RecordedJob = [job(1, 150), [90, 100, 1, 0, 100]];
    const window = { ...limited(100), from: 80 };
    const next = (at: number): RecordedJob => [job(2, 10, { submittedAt: at }), null];
    expect(whatIf(task([ran, next(80)], window)).all.baseline.waitMeanS).toBeCloseTo(10, 2);
  });

  it('a trace says the limits of its jobs, and those that are too long for all sites never start', () => {
    const line = (id: number, run: number, asked: number) =>
      `${id} 0 0 ${run} 1 -1 -1 1 ${asked} -1 1 1 1 -1 1 -1 -1 -1`;
    const trace = [line(1, 50, 100), line(2, 50, 101)].join('\n');
    const { all } = whatIf(task([], { ...limited(100), trace }));
    expect(all.baseline).toMatchObject({ ended: 1, neverStarted: 1 });
  });
});

describe('what happened', () => {
  const brief = (id: number, submittedAt: number, estimateS = 3600) =>
    recorded(plainJob({ id, submittedAt, estimateS }));
  const run = (seconds: number, waitedS: number): RecordedRun => [seconds, 3600, 1, waitedS, null];

  it('is not made up: jobs that were cancelled before they ran kept nobody waiting', () => {
    const jobs: RecordedJob[] = [
      [brief(1, 0), 'NEVER'],
      [brief(2, 1), run(10, 0)],
      [brief(3, 2), run(10, 9)],
    ];
    const { jobs: count, leftOut, all, happened } = whatIf(task(jobs));
    expect({ count, leftOut }).toEqual({ count: 2, leftOut: 1 });
    expect(all.baseline.waitMeanS).toBe(4.5);
    expect(happened).toEqual({ jobs: 2, waitMeanS: 4.5, simulatedWaitMeanS: 4.5, acceptedS: 60 });
  });

  it('begins with what ran and waited before', () => {
    const jobs: RecordedJob[] = [
      [brief(1, 0), run(140, 0)],
      [brief(2, 50), run(20, 90)],
      [brief(3, 110), run(10, 50)],
    ];
    const { jobs: count, all, happened } = whatIf(task(jobs, { from: 100 }));
    expect(count).toBe(1);
    // 40 s are left of the first, and then the second's 20.
    expect(all.baseline.waitMeanS).toBeCloseTo(50, 2);
    expect(happened).toMatchObject({ jobs: 1, waitMeanS: 50 });
  });

  it('far from what is simulated is compared with nothing, unless that is accepted', () => {
    const jobs: RecordedJob[] = [1, 2, 3, 4].map((id) => [brief(id, 0), run(600, 7)]);
    expect(() => whatIf(task(jobs))).toThrow(
      'under the current policy, jobs wait 900 s on average in the simulation, but actually waited 7 s; accepted: a difference of up to 450 s',
    );
    expect(whatIf(task(jobs, { acceptDistance: true })).happened).toMatchObject({
      waitMeanS: 7,
      simulatedWaitMeanS: 900,
    });
  });
});

describe('holds', () => {
  const limited = (id: number, submittedAt: number, runTimeLimitS: number | null, change = {}) =>
    recorded(plainJob({ id, submittedAt, estimateS: 50, runTimeLimitS, ...change }));
  const hold = (change: Partial<Held> = {}, known: Partial<RecordedHold> = {}): RecordedHold => ({
    ...{ holdId: 7, siteId: 1, madeAt: 0, endedAt: null, preempts: false },
    held: {
      ...{ id: 70, by: 'WINDOW', from: 100, to: 200, ends: 'LIMIT', machines: [], siteId: 1, pools: [] },
      ...change,
    },
    ...known,
  });
  const waits = (jobs: RecordedJob[], holds: RecordedHold[], change: Partial<SimulationTask> = {}) =>
    whatIf(task(jobs, { holds, acceptDistance: true, ...change })).all.baseline.waitMeanS;

  it('are not reached into: by limit, whatever the estimate, and never by a job without a limit', () => {
    expect(waits([[limited(1, 20, 80), null]], [hold()])).toBe(0);
    expect(waits([[limited(1, 20, 81), null]], [hold()])).toBe(180);
    expect(waits([[limited(1, 20, null), null]], [hold()])).toBe(180);
    expect(waits([[limited(1, 20, 81), null]], [])).toBe(0);
  });

  it("are not reached into by the site's limit, where a job has none", () => {
    const at = (maxLimitS: number, one: RecordedJob) =>
      waits([one], [hold()], { sites: [{ ...site(1), maxLimitS }] });
    expect(at(80, [limited(1, 20, null), null])).toBe(0);
    expect(at(81, [limited(1, 20, null), null])).toBe(180);
    expect(at(81, [limited(1, 20, 80), null])).toBe(0);
  });

  it('count from when they were made until they were canceled', () => {
    expect(waits([[limited(1, 20, 81), null]], [hold({}, { madeAt: 21 })])).toBe(0);
    expect(waits([[limited(1, 20, 81), null]], [hold({}, { endedAt: 60 })])).toBe(40);
    expect(waits([[limited(1, 110, 81), null]], [hold({ to: Infinity }, { endedAt: 160 })])).toBe(50);
  });

  it('leave what ran when the window began where it was', () => {
    const ran: RecordedJob = [limited(1, 0, 500), [80, 50, 1, 0, 500]];
    // It ends at 80, and what follows has until 100.
    expect(waits([ran, [limited(2, 50, 20), [20, 20, 1, 0, 20]]], [hold()], { from: 40 })).toBeCloseTo(30, 2);
    expect(waits([ran, [limited(2, 50, 21), [20, 21, 1, 0, 21]]], [hold()], { from: 40 })).toBeCloseTo(
      150,
      2,
    );
  });

  describe('that preempt', () => {
    /** When the last job is over, seconds from the beginning: the one that was stopped starts over. */
    const over = (jobs: RecordedJob[], holds: RecordedHold[], change: Partial<SimulationTask> = {}) =>
      whatIf(task(jobs, { holds, acceptDistance: true, ...change })).history.lengthS;
    /** Without a limit, and started before the hold was made. */
    const endless = (change: Partial<Job> = {}, graceS = 30): RecordedJob => [
      limited(1, 0, null, { estimateS: 150, killGraceS: graceS, ...change }),
      null,
    ];
    const late = { madeAt: 10 };

    it('stop what would reach into them, by its grace ahead, and that starts over behind them', () => {
      expect(over([endless()], [hold({}, { ...late, preempts: true })])).toBe(200 + 150);
      expect(over([endless()], [hold({}, late)])).toBe(150);
      expect(over([endless({}, 0)], [hold({}, { ...late, preempts: true })])).toBe(200 + 150);
      // What ends by itself within its grace is completed.
      expect(over([endless({ estimateS: 95 })], [hold({}, { ...late, preempts: true })])).toBe(95);
    });

    it('leave what ends by its limit ahead of them, and what runs in them', () => {
      const one: RecordedJob = [limited(1, 0, 100, { estimateS: 90 }), null];
      expect(over([one], [hold({}, { ...late, preempts: true })])).toBe(90);
      expect(over([endless()], [hold({}, { ...late, endedAt: 60, preempts: true })])).toBe(150);
    });

    it('stop no run in vain: one that may not start over stays for a reservation, and ends for maintenance', () => {
      const stays = endless({ restartable: false });
      const reserved = { by: 'RESERVATION', reservation: { id: 7, siteId: 1 } } as const;
      expect(over([stays], [hold(reserved, { ...late, preempts: true })])).toBe(150);
      const result = whatIf(
        task([stays], { holds: [hold({}, { ...late, preempts: true })], acceptDistance: true }),
      );
      expect(result.all.baseline).toMatchObject({ ended: 0, neverStarted: 1 });
    });

    it('stop nothing where they had begun when the window did', () => {
      const ran: RecordedJob = [limited(1, 0, null), [80, 50, 1, 0, null]];
      expect(over([ran], [hold({ from: 10 }, { preempts: true })], { from: 40 })).toBeCloseTo(40, 2);
    });
  });

  it('have the jobs that name them inside, and all others beside them', () => {
    const reserved = hold({
      by: 'RESERVATION',
      siteId: null,
      machines: [{ machineId: 1, amounts: null }],
      reservation: { id: 7, siteId: 1 },
    });
    expect(waits([[limited(1, 20, 81, { reservationId: 7 }), null]], [reserved])).toBe(80);
    expect(waits([[limited(1, 20, 81), null]], [reserved])).toBe(180);
  });
});

describe('what jobs ask of their machines', () => {
  const gpus = ['g0', 'g1'].map((id) => ({
    ...{ id, kind: 'gpu', model: 'a100', memoryMb: 40_000, shares: 1, link: null },
  }));
  const machines = [
    machine({ id: 1, cpus: 4, resources: { gpu: 2 }, devices: gpus, labels: { rack: '1' } }),
    machine({ id: 2, cpus: 4, labels: { rack: '2' } }),
  ];
  /** Seconds that each waits, of jobs that come one after another, a second apart. */
  const waitsOf = (...jobs: Job[]) =>
    whatIf(
      task(
        jobs.map((job): RecordedJob => [recorded(job), null]),
        { machines, acceptDistance: true },
      ),
    ).all.baseline;
  const at = (id: number, of: Partial<Job> = {}): Job =>
    plainJob({ id, submittedAt: id - 1, estimateS: 100, ...of });

  it('is respected: devices', () => {
    const resourcesPerTask = { gpu: 1 };
    // Two devices: the third waits for the first to end.
    expect(waitsOf(...[1, 2, 3].map((id) => at(id, { resourcesPerTask }))).waitMeanS).toBe(98 / 3);
    expect(waitsOf(...[1, 2, 3].map((id) => at(id))).waitMeanS).toBe(0);
    expect(waitsOf(at(1, { resourcesPerTask: { gpu: 3 } })).neverStarted).toBe(1);
  });

  it('is respected: constraints on labels', () => {
    const rack = (machineConstraint: string) => ({ machineConstraint, cpusPerTask: 4 });
    expect(waitsOf(at(1, rack('rack = 2')), at(2, rack('rack > 1'))).waitMeanS).toBe(99 / 2);
    expect(waitsOf(at(1, rack('rack = 2')), at(2, rack('rack < 2'))).waitMeanS).toBe(0);
    expect(waitsOf(at(1, rack('gpu = "a100"')), at(2, rack('rack = 1'))).waitMeanS).toBe(99 / 2);
    expect(waitsOf(at(1, rack('gpu = "h100"'))).neverStarted).toBe(1);
  });

  it('is respected: shapes', () => {
    const alone = { exclusive: 'MACHINE' } as const;
    expect(waitsOf(at(1, alone), at(2, alone), at(3)).waitMeanS).toBe(98 / 3);
    // One task on each machine, so both machines; together they are on one.
    const spread = (max: number) => ({ tasks: 2, tasksPerMachine: { min: 1, max }, cpusPerTask: 2 });
    const whole = { cpusPerTask: 4 };
    expect(waitsOf(at(1, spread(1)), at(2, whole)).waitMeanS).toBe(99 / 2);
    expect(waitsOf(at(1, spread(2)), at(2, whole)).waitMeanS).toBe(0);
    const parts = withParts([
      { cpusPerTask: 4, machineConstraint: 'rack = 2' },
      { resourcesPerTask: { gpu: 2 } },
    ]);
    expect(waitsOf(at(1, parts), at(2, whole)).waitMeanS).toBe(99 / 2);
    expect(waitsOf(at(1, { tasks: 2, cpusPerTask: 4, allAlike: ['rack'] })).neverStarted).toBe(1);
  });
});

describe('preemption', () => {
  it('of a candidate stops what the policy in force lets run, and what it costs is told', () => {
    const job = (id: number, submittedAt: number, preemptionClass: number): RecordedJob => [
      recorded(plainJob({ id, submittedAt, estimateS: 1000, preemptionClass })),
      [id === 1 ? 1000 : 100, 1000, 1, id === 1 ? 0 : 500, null],
    ];
    const candidate = parsePolicy({ ...FCFS, preemption: { graceS: 30, exemptS: 60, cancelBelow: 0 } });
    const { all } = whatIf(task([job(1, 0, 0), job(2, 500, 1)], { candidate }));
    expect(all.baseline).toMatchObject({ ended: 2, waitMeanS: 500 / 2 });
    // At 530 the first is gone; its job starts over at 630.
    expect(all.candidate).toMatchObject({ ended: 2, waitMeanS: (630 + 30) / 2 });
    // Nobody is stopped who has begun a moment ago.
    const young = parsePolicy({ ...FCFS, preemption: { graceS: 30, exemptS: 501, cancelBelow: 0 } });
    expect(whatIf(task([job(1, 0, 0), job(2, 500, 1)], { candidate: young })).all.candidate.waitMeanS).toBe(
      (31 + 631) / 2,
    );
    const ends = parsePolicy({ ...FCFS, preemption: { graceS: 30, exemptS: 60, cancelBelow: 1 } });
    expect(whatIf(task([job(1, 0, 0), job(2, 500, 1)], { candidate: ends })).all.candidate).toMatchObject({
      ...{ ended: 1, neverStarted: 1, waitMeanS: 30 },
    });
  });
});

describe('what comes out', () => {
  it('has queue and use over time, in the same bins for both policies', () => {
    // Jobs of a whole machine and 100 s each, one after the other.
    const wide = { tasks: 1, cpusPerTask: 8, estimateS: 100 };
    const jobs = [1, 2, 3, 4].map(
      (id): RecordedJob => [recorded(plainJob({ id, submittedAt: 1_000, ...wide })), null],
    );
    const { history, all } = whatIf(task(jobs, { machines: [machine({ id: 1, cpus: 8 })] }));
    expect(history.from).toBe('1970-01-01T00:16:40.000Z');
    expect([history.lengthS, history.binS, history.baseline.length]).toEqual([400, 5, 80]);
    expect(history.baseline).toEqual(history.candidate);
    expect(history.baseline[0]).toEqual({ atS: 0, queuedJobs: 3, queuedCpus: 24, utilization: 1 });
    expect(history.baseline[20]).toEqual({ atS: 100, queuedJobs: 2, queuedCpus: 16, utilization: 1 });
    expect(history.baseline.at(-1)).toEqual({ atS: 395, queuedJobs: 0, queuedCpus: 0, utilization: 1 });
    expect(all.baseline.utilization).toBe(1);
  });

  it('has at most 120 bins, however long it takes, and one that never starts waits to the end', () => {
    const long = plainJob({ id: 1, submittedAt: 0, estimateS: 1e7 });
    const never = plainJob({ id: 2, submittedAt: 0, estimateS: 1, tasks: 3, cpusPerTask: 8 });
    const { history } = whatIf(
      task(
        [
          [recorded(long), null],
          [recorded(never), null],
        ],
        { machines: [machine({ id: 1, cpus: 8 })] },
      ),
    );
    expect(history.baseline.length).toBeLessThanOrEqual(120);
    expect(new Set(history.baseline.map(({ queuedJobs }) => queuedJobs))).toEqual(new Set([1]));
    expect(history.baseline[0]?.utilization).toBe(0.125);
  });
});

describe('a candidate', () => {
  it('that looks at data is told where they lie', () => {
    const candidate = parsePolicy({ ...FCFS, dispatch: { kind: 'diana' } });
    const { all, sites } = whatIf(
      task([[reading(1), null]], {
        ...there,
        machines: [machine({ id: 1, cpus: 8 }), machine({ id: 2, siteId: 2, cpus: 8 })],
        candidate,
      }),
    );
    expect(all.candidate.ended).toBe(1);
    expect(sites.map(({ baseline, candidate: c }) => [baseline.ended, c.ended])).toEqual([
      [1, 0],
      [0, 1],
    ]);
  });

  it('that has a tree is told which schedulers there are, and no job is at one to begin with', () => {
    // Ended under a later tree, and moved as often as may be.
    const ended = plainJob({ id: 1, submittedAt: 0, estimateS: 100, schedulerId: 7, treeMoves: 16 });
    const jobs = [1, 2, 3, 4].map((id): RecordedJob => [recorded({ ...ended, id }), null]);
    const endedAt = (schedulers: SimulationTask['schedulers']): number[] =>
      whatIf(
        task(jobs, {
          sites: [1, 2, 3].map((id) => ({ ...site(id), schedulerId: id < 3 ? 5 : null })),
          machines: [1, 2, 3].map((id) => machine({ id, siteId: id, cpus: 1 })),
          schedulers,
          candidate: parsePolicy({ ...FCFS, dispatch: { kind: 'grid-tree' } }),
        }),
      ).sites.map(({ candidate }) => candidate.ended);
    // The share of each site is 4/3, that of west 8/3: rounded down, and what is left goes to the one that asked first.
    expect(endedAt([])).toEqual([2, 1, 1]);
    expect(endedAt([{ id: 5, name: 'west', parentId: null }])).toEqual([1, 1, 2]);
  });

  it('that looks at job ratios is told what runs have shown, which stays as it is', () => {
    // Site 1 has most of the power, site 2 the data: the ratio decides.
    const candidate = parsePolicy({ ...FCFS, dispatch: { kind: 'job-ratio' } });
    const atData = (totals: SimulationTask['totals']): number =>
      whatIf(
        task([[reading(1), null]], {
          ...there,
          machines: [machine({ id: 1, cpus: 8 }), machine({ id: 2, siteId: 2, cpus: 2 })],
          candidate,
          totals,
        }),
      ).sites[1]?.candidate.ended as number;
    const runs = { application: 'app', userId: 7, kinds: '[null,null]', count: 5, turnaroundS: 100 };
    expect(atData([totalsOf({ ...runs, executionS: 95, ioS: 5 })])).toBe(0);
    expect(atData([totalsOf({ ...runs, executionS: 5, ioS: 95 })])).toBe(1);
  });
});
