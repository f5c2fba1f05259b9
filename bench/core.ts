/**
 * Workloads for the cycles of the core, and their timing. Each function builds its grid once and returns the seconds that
 * each of the measured cycles took; the caller makes statistics and tables of them.
 */
import {
  DataCatalog,
  DEFAULT_POLICY,
  dispatchCycle,
  Grid,
  type Job,
  JobHistory,
  type LocalPolicy,
  noRuns,
  type Policy,
  plainJob,
  RandomStream,
  siteCycle,
  totalsWith,
} from '../src/core/index.js';

export type CoreMode = 'MS' | 'LS' | 'NONE' | 'EASY';

const CLASSES = ['GOLD', 'SILVER', 'REGULAR'] as const;
const KINDS = ['compiler', 'mesher', 'solver', 'viewer'];

/** A policy document for a mode; EASY is the local policy of that name under MS dispatch. */
export function policyOf(mode: CoreMode): Policy {
  const local: LocalPolicy = mode === 'EASY' ? { kind: 'easy' } : DEFAULT_POLICY.local;
  const dispatch = { ...DEFAULT_POLICY.dispatch, mode: mode === 'EASY' ? ('MS' as const) : mode };
  return { ...DEFAULT_POLICY, dispatch, local };
}

/** Seconds of one dispatch cycle over `jobs` waiting jobs and `sites` sites with queues of their own. */
export function timeDispatchCycle(repeats: number, jobs = 10_000, sites = 50): number[] {
  const grid = dispatchGrid(jobs, sites);
  return times(repeats, () => planDispatch(grid, policyOf('MS'), jobs));
}

/** A grid with `jobs` jobs at the root, half of which read and write data, and `sites` sites with queues of their own. */
export function dispatchGrid(jobs: number, sites: number): Grid {
  const random = new RandomStream(1, 'dispatch');
  const grid = new Grid();
  for (let site = 1; site <= sites; site++) addSite(grid, site, 20, random);
  addData(grid, sites);
  let id = 1;
  for (let site = 1; site <= sites; site++) {
    for (let i = 0; i < 100; i++) {
      grid.placeAtSite({ ...anyJob(id++, random), priority: random.integer(0, 30) }, site);
    }
  }
  const data = new RandomStream(1, 'data');
  for (let i = 0; i < jobs; i++) grid.placeAtRoot(withData(anyJob(id++, random), sites, data));
  return grid;
}

/** Plans a cycle in which all `jobs` jobs of the root move. */
export function planDispatch(grid: Grid, policy: Policy, jobs: number): void {
  const { moves } = dispatchCycle(grid, { now: 1e6, policy, policyVersion: 1, maxMoves: jobs });
  if (moves.length !== jobs) throw new Error(`${moves.length} of ${jobs} jobs were moved`);
}

const DATASETS = 200;
const APPLICATIONS = 20;

/** Links between all sites, datasets with two replicas, and a history of the applications. */
function addData(grid: Grid, sites: number): void {
  const random = new RandomStream(1, 'network');
  for (let fromSiteId = 1; fromSiteId <= sites; fromSiteId++) {
    for (let toSiteId = 1; toSiteId <= sites; toSiteId++) {
      const bandwidthMbPerS = random.integer(1, 1000);
      grid
        .index(DataCatalog)
        .setLink({ fromSiteId, toSiteId, bandwidthMbPerS, rttS: random.uniform(0, 0.3), loss: 0.01 });
    }
  }
  for (let id = 1; id <= DATASETS; id++) {
    const siteIds = [random.integer(1, sites), random.integer(1, sites)];
    grid.index(DataCatalog).setDataset({ id, sizeMb: random.integer(1, 10_000), siteIds });
  }
  for (let i = 0; i < APPLICATIONS; i++) {
    const ioS = random.integer(0, 100);
    const record = noRuns({ application: `application-${i}`, userId: 1, kinds: '' });
    grid.index(JobHistory).set(totalsWith(record, { turnaroundS: 100, ioS, sitePower: 1 }, 1));
  }
}

function withData(job: Job, sites: number, random: RandomStream): Job {
  const application = `application-${random.integer(0, APPLICATIONS - 1)}`;
  if (random.next() < 0.5) return { ...job, application };
  const data = {
    originSiteId: random.integer(1, sites),
    sandboxMb: 10,
    inputs: [{ datasetId: random.integer(1, DATASETS) }],
    outputMb: random.integer(0, 1000),
    computationShare: null,
  };
  return { ...job, application, data };
}

/**
 * Seconds of one site cycle over `queued` jobs on a full site of 200 machines, after one change: a run has ended. What
 * the cycle starts is applied and one run ends, outside the measured time.
 */
export function timeSiteCycle(
  repeats: number,
  queued: number,
  mode: CoreMode,
  distinctMemory = false,
): number[] {
  const random = new RandomStream(2, 'backfill');
  const grid = new Grid();
  const policy = policyOf(mode);
  addSite(grid, 1, 200, random);
  let now = 100_000;
  let id = 1;
  const enqueue = (): void => {
    const job = anyJob(id++, random);
    const memoryMbPerTask = distinctMemory ? job.memoryMbPerTask + id : job.memoryMbPerTask;
    grid.placeAtSite(
      { ...job, memoryMbPerTask, submittedAt: now - 50_000 + id / 10, priority: random.integer(0, 30) },
      1,
    );
  };
  for (let i = 0; i < queued; i++) enqueue();
  const running: number[] = [];
  const cycle = () => siteCycle(grid, 1, { now, policy, policyVersion: 1, maxStarts: 10_000 });
  const apply = (plan: ReturnType<typeof cycle>): void => {
    for (const { jobId, siteId, allocations, pools, plannedDuration } of plan.starts) {
      const plannedEnd = now + plannedDuration;
      grid.startRun({ jobId, siteId, epoch: 1, allocations, pools, start: now, plannedEnd });
      running.push(jobId);
      enqueue();
    }
    grid.setReservation(1, plan.reservation);
    grid.keepMemory(1, plan.memory);
  };
  apply(cycle());
  return times(
    repeats,
    () => cycle(),
    (plan) => {
      apply(plan);
      now += 10;
      grid.endRun(running.splice(random.integer(0, running.length - 1), 1)[0] as number);
    },
  );
}

function times<T>(repeats: number, measured: () => T, between: (result: T) => void = () => {}): number[] {
  const seconds: number[] = [];
  // The first rounds warm the compiler up.
  for (let i = -5; i < repeats; i++) {
    const start = performance.now();
    const result = measured();
    if (i >= 0) seconds.push((performance.now() - start) / 1000);
    between(result);
  }
  return seconds;
}

export function addSite(grid: Grid, siteId: number, machines: number, random: RandomStream): void {
  grid.setSite({ id: siteId, name: `site-${siteId}`, state: 'UP', localPolicy: null });
  const licenses = KINDS.map((kind, i) => ({
    id: siteId * 100 + i,
    kind,
    siteId,
    copies: Math.ceil(machines / 2),
  }));
  for (const license of licenses) grid.setLicense(license);
  for (let i = 0; i < machines; i++) {
    const cpus = random.integer(4, 32);
    grid.setMachine({
      id: siteId * 1000 + i,
      siteId,
      cpus: i === 0 ? 32 : cpus,
      memoryMb: i === 0 ? 131_072 : cpus * 4096,
      benchmark: random.integer(100, 500),
      os: 'linux',
      architecture: 'x86_64',
      licenseIds: licenses.map(({ id }) => id),
      available: true,
    });
  }
}

export function anyJob(id: number, random: RandomStream): Job {
  const submit = id * 5;
  const estimate = random.integer(600, 10_000);
  const hasDeadline = random.next() < 0.7;
  const margin = random.integer(1500, 5500);
  return plainJob({
    id,
    userId: random.integer(1, 100),
    userClass: CLASSES[random.integer(0, 2)] as (typeof CLASSES)[number],
    submittedAt: submit,
    estimateS: estimate,
    benchmark: random.integer(100, 500),
    deadline: hasDeadline ? submit + estimate + margin : null,
    cpusPerTask: random.integer(1, 32),
    memoryMbPerTask: 1024 * random.integer(1, 8),
    licenses: random.next() < 0.3 ? [KINDS[random.integer(0, 3)] as string] : [],
  });
}
