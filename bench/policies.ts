/**
 * What the dispatch policies cost in planning alone, each side by side with two-level on the same grid; and what a job that
 * comes to DIANA's meta-queues costs in reprioritization, side by side with working every job out anew; and what a run costs
 * that enters the totals of many applications.
 */
import { MetaQueues } from '../src/core/dispatch/diana/meta-queues.js';
import type { SiteEntry } from '../src/core/grid/grid.js';
import {
  applyMove,
  DEFAULT_POLICY,
  dispatchCycle,
  Grid,
  type Job,
  JobHistory,
  type Policy,
  parsePolicy,
  RandomStream,
  type RunTotals,
  resourceKinds,
  SchedulerTree,
  Shares,
  siteCycle,
} from '../src/core/index.js';
import { unitsOf } from '../src/core/structures/units.js';
import { queueOf, quotaPriority, thresholdOf } from '../src/core/terms/quota.js';
import { anyJob, dispatchGrid, planDispatch, policyOf } from './core.js';
import { type Bench, type Measured, seconds, sideBySide, sized } from './measure.js';

const JOBS = sized(10_000, 500);
const SITES = 50;
const DISPATCH: Record<string, unknown>[] = [
  { kind: 'queues', order: 'FCFS', queueLimit: 1_000 },
  { kind: 'job-ratio', queueLimit: 1_000 },
  { kind: 'diana', queueLimit: 1 },
  { kind: 'grid-tree' },
  { kind: 'round-robin' },
  { kind: 'random' },
  { kind: 'most-flops' },
];
/** At most so many times as long as two-level. */
const AIMS: Record<string, number> = { diana: 4, 'grid-tree': 3 };
const planOf = ({ kind }: Record<string, unknown>): string => `dispatch-plan-${kind}`;

const QUEUED = sized(100_000, 1_000);
const USERS = 100;
const CHANGE = 'dispatch-change-grid-tree';
const REPRIORITIZE = 'reprioritize-100000';

const RUNS = 1_000;
const APPLICATIONS = { many: sized(100_000, 2_000), few: 1_000 };
const LEARN = 'learn-100000';

/** Repeats before the first round, for the compiler. */
const WARM_UP = 3;
const ROUNDS = 9;

async function planBench(grid: Grid, dispatch: Record<string, unknown>): Promise<Measured> {
  const policy: Policy = parsePolicy({ ...DEFAULT_POLICY, dispatch });
  const aim = AIMS[policy.dispatch.kind];
  const ours = () => planDispatch(grid, policy, JOBS);
  const twoLevel = () => planDispatch(grid, policyOf('MS'), JOBS);
  for (let i = 0; i < WARM_UP; i++) {
    ours();
    twoLevel();
  }
  return sideBySide(
    {
      name: planOf(dispatch),
      unit: 's',
      aim: aim === undefined ? null : { ratio: aim },
      what: `planning alone: sites for 10 000 jobs at the root, among ${SITES}, every term recorded; against two-level`,
    },
    ROUNDS,
    () => seconds(ours),
    () => seconds(twoLevel),
  );
}

/** Three levels of schedulers between the root and the sites: 2, 5 below each, and one above every 5 sites. */
function hangInTree(grid: Grid): void {
  const LOWEST = SITES / 5;
  const schedulers = [
    ...Array.from({ length: 2 }, (_, i) => ({ id: 101 + i, parentId: null })),
    ...Array.from({ length: LOWEST }, (_, i) => ({ id: 201 + i, parentId: 101 + (i % 2) })),
    ...Array.from({ length: LOWEST }, (_, i) => ({ id: 301 + i, parentId: 201 + i })),
  ];
  grid.index(SchedulerTree).set(schedulers.map((one) => ({ ...one, name: `scheduler-${one.id}` })));
  for (const { site } of [...grid.sites]) grid.setSite({ ...site, schedulerId: 301 + (site.id % LOWEST) });
}

/**
 * 10 000 jobs wait in the tree, and a run has ended; against the same where the tree is made anew, as it is when a machine has changed.
 * What is planned is applied, and what it gave to a site starts, outside the measured time.
 */
function changeBench(): Promise<Measured> {
  const grid = dispatchGrid(JOBS, SITES);
  hangInTree(grid);
  const policy: Policy = parsePolicy({ ...DEFAULT_POLICY, dispatch: { kind: 'grid-tree' } });
  const context = { now: 1e6, policy, policyVersion: 1, maxMoves: JOBS };
  const runs: number[] = [];
  const goOn = (): void => {
    for (const move of dispatchCycle(grid, context).moves) applyMove(grid, move, context.now);
    for (const { site } of grid.sites) {
      const { starts } = siteCycle(grid, site.id, { ...context, maxStarts: JOBS });
      for (const { jobId, siteId, allocations, pools, plannedDuration } of starts) {
        const times = { start: context.now, plannedEnd: context.now + plannedDuration };
        grid.startRun({ jobId, siteId, epoch: 1, allocations, pools, ...times });
        runs.push(jobId);
      }
    }
  };
  for (let i = 0; i < 3; i++) goOn();
  const random = new RandomStream(1, 'ends');
  const cycle = async (anew: boolean): Promise<number> => {
    grid.endRun(runs.splice(random.integer(0, runs.length - 1), 1)[0] as number);
    if (anew) grid.topology++;
    const took = await seconds(() => dispatchCycle(grid, context));
    goOn();
    return took;
  };
  return sideBySide(
    {
      name: CHANGE,
      unit: 's',
      aim: null,
      what: `grid-tree: a cycle after one run has ended, where about ${JOBS} jobs wait in a tree above ${SITES} sites; against the same with the tree built again`,
    },
    25,
    () => cycle(false),
    () => cycle(true),
  );
}

/** Jobs of few sizes, as bulks have. */
function metaGrid(): { grid: Grid; arrival: (id: number) => Job } {
  const random = new RandomStream(3, 'meta');
  const grid = new Grid();
  for (let id = 1; id <= SITES; id++)
    grid.setSite({ id, name: `site-${id}`, state: 'UP', localPolicy: null });
  const arrival = (id: number): Job => ({
    ...anyJob(id, random),
    userId: random.integer(1, USERS),
    cpusPerTask: 2 ** random.integer(0, 5),
    licenses: [],
  });
  for (let id = 1; id <= QUEUED; id++) grid.placeAtMeta(arrival(id), 1 + (id % SITES));
  for (let user = 1; user <= USERS; user++) grid.index(Shares).set(user, random.integer(1, 2_000));
  return { grid, arrival };
}

async function reprioritizeBench(): Promise<Measured> {
  const { grid, arrival } = metaGrid();
  const [{ site, meta }] = grid.sites as [SiteEntry];
  const jobs = Array.from(meta.slots(), (slot) => meta.jobs[slot] as Job);
  const shares = grid.index(Shares);
  const { ledger } = grid.index(MetaQueues).of(meta);
  let id = QUEUED;
  const ours = (): void => {
    const job = arrival(++id);
    grid.placeAtMeta(job, site.id);
    jobs.push(job);
    ledger.standings(shares);
  };
  const everyJob = (): number => {
    const users = new Map<number, number>();
    let processors = 0;
    for (const { userId, tasks, cpusPerTask } of jobs) {
      users.set(userId, (users.get(userId) ?? 0) + 1);
      processors += tasks * cpusPerTask;
    }
    let quotas = 0;
    for (const userId of users.keys()) quotas += shares.of(userId);
    let first = 0;
    for (const { userId, tasks, cpusPerTask } of jobs) {
      const quota = shares.of(userId);
      const threshold = thresholdOf(quota, quotas, processors, tasks * cpusPerTask);
      if (queueOf(quotaPriority(users.get(userId) as number, threshold)) === 1) first++;
    }
    return first;
  };
  for (let i = 0; i < 20; i++) {
    ours();
    everyJob();
  }
  return sideBySide(
    {
      name: REPRIORITIZE,
      unit: 's',
      aim: null,
      what: `one job arrives at a meta-queue where 100 000 of ${USERS} users wait, and all priorities are computed; against computing that of every job`,
    },
    25,
    () => seconds(ours),
    () => seconds(everyJob),
  );
}

/** Runs end, one after the other, and after each a job of an application that never ran asks for its ratio. */
async function learnBench(): Promise<Measured> {
  const stranger: Job = { ...anyJob(1, new RandomStream(3, 'learn')), application: 'never ran' };
  const kinds = resourceKinds(stranger);
  const learning = (applications: number): (() => void) => {
    const history = new JobHistory();
    const record = (i: number, count: number): RunTotals => {
      const application = `application ${i % applications}`;
      return {
        application,
        userId: i % USERS,
        kinds,
        count,
        turnaround: unitsOf(10 * count),
        execution: unitsOf((i % 10) * count),
        io: unitsOf((10 - (i % 10)) * count),
      };
    };
    for (let i = 0; i < applications; i++) history.set(record(i, 1));
    let next = 0;
    return () => {
      for (let end = next + RUNS; next < end; next++) {
        history.set(record(next, 2));
        history.ratioOf(stranger);
      }
    };
  };
  const [ours, few] = [learning(APPLICATIONS.many), learning(APPLICATIONS.few)];
  return sideBySide(
    {
      name: LEARN,
      unit: 's',
      aim: null,
      what: `${RUNS} runs enter the totals of 100 000 applications, and after each the ratio of one that never ran is asked for; against 1 000 applications (ratio 1: no growth)`,
    },
    25,
    () => seconds(ours),
    () => seconds(few),
  );
}

export const policiesBench: Bench = {
  names: [...DISPATCH.map(planOf), CHANGE, REPRIORITIZE, LEARN],
  async run(only) {
    const results: Measured[] = [];
    if (DISPATCH.some((dispatch) => only(planOf(dispatch)))) {
      const grid = dispatchGrid(JOBS, SITES);
      hangInTree(grid);
      for (const dispatch of DISPATCH)
        if (only(planOf(dispatch))) results.push(await planBench(grid, dispatch));
    }
    if (only(CHANGE)) results.push(await changeBench());
    if (only(REPRIORITIZE)) results.push(await reprioritizeBench());
    if (only(LEARN)) results.push(await learnBench());
    return results;
  },
};
