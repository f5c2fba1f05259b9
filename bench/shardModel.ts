/**
 * A model of shards, simulated: databases with an event lock each, above them a root with a database of its own. What holds a lock, and for
 * how long, is measured (shardCosts.ts); the rest is queues. docs/shards.md has its results, and says what it leaves out.
 */
import { RandomStream } from '../src/core/random.js';
import { EventQueue } from '../src/simulator/event-queue.js';
import { quantile } from '../src/simulator/statistics.js';
import { COSTS, type Costs, type Held } from './shardCosts.js';

export interface Scenario {
  /** 1: the root's database has the sites, too. */
  shards: number;
  sites: number;
  jobsPerS: number;
  jobsPerSubmission: number;
  /** Of the submissions, those that the root decides about; others come to a shard at once. */
  throughRoot: number;
  /** Starts of several sites that come while a commit is under way share the next one, as they do today. */
  gathersStarts: boolean;
  /** Where a planner has more below it than that, schedulers between divide them, and it weighs only so many at each level. */
  fanOut: number;
  seconds: number;
  /** Until then nothing is counted. */
  warmUpS: number;
  seed: number;
  costs: Costs;
}

export const SCENARIO: Scenario = {
  ...{
    shards: 16,
    sites: 10_000,
    jobsPerS: 10_000,
    jobsPerSubmission: 100,
    throughRoot: 1,
    gathersStarts: true,
  },
  ...{ fanOut: Number.POSITIVE_INFINITY, seconds: 15, warmUpS: 5, seed: 1, costs: COSTS },
};

/** Shares of the time are of the fullest of the shards. */
export interface Outcome {
  /** As if exactly `jobsPerS` had been submitted while it was counted. */
  startedPerS: number;
  rootLock: number;
  rootPlanner: number;
  shardLock: number;
  shardPlanner: number;
  /** From the arrival of the submission to the commit of the start, of those that were started. */
  p50S: number;
  p99S: number;
  submitted: number;
  started: number;
  /** More jobs are under way than come within two seconds: so there will be ever more. */
  fallsBehind: boolean;
}

/** What is to happen, in the order of time; what comes at one time, in the order in which it was asked for. */
export class Clock {
  private readonly events = new EventQueue();
  private readonly actions: (() => void)[] = [];
  private readonly free: number[] = [];
  now = 0;

  after(delayS: number, action: () => void): void {
    const place = this.free.pop() ?? this.actions.length;
    this.actions[place] = action;
    this.events.push(this.now + delayS, 0, place);
  }

  runUntil(endS: number): void {
    while (this.events.nextTime <= endS && this.events.pop()) {
      this.now = this.events.time;
      const { payload } = this.events;
      this.free.push(payload);
      (this.actions[payload] as () => void)();
    }
    this.now = endS;
  }
}

/** Does one thing after the other, in the order in which they came: an event lock, or a process that plans. */
export class Server {
  private readonly waiting: { takesS: number; done: () => void }[] = [];
  private first = 0;
  private busy = false;
  private busyS = 0;

  constructor(
    private readonly clock: Clock,
    private readonly warmUpS = 0,
  ) {}

  do(takesS: number, done: () => void): void {
    this.waiting.push({ takesS, done });
    if (!this.busy) this.next();
  }

  /** The share of the time for which it was busy since the end of the warming up. */
  get load(): number {
    return Math.min(1, this.busyS / (this.clock.now - this.warmUpS));
  }

  private next(): void {
    const task = this.waiting[this.first];
    this.busy = task !== undefined;
    if (task === undefined) return;
    this.first++;
    if (this.first === this.waiting.length) {
      this.waiting.length = 0;
      this.first = 0;
    }
    const { now } = this.clock;
    this.busyS += Math.max(0, now + task.takesS - Math.max(now, this.warmUpS));
    this.clock.after(task.takesS, () => {
      task.done();
      this.next();
    });
  }
}

interface Task {
  jobs: number;
  done: () => void;
}

/** As src/store/gathering.ts: what comes while a commit is under way is the next one. */
class Gatherer {
  private tasks: Task[] = [];
  private busy = false;

  constructor(
    private readonly commit: (jobs: number, done: () => void) => void,
    private readonly most: number,
  ) {}

  add(task: Task): void {
    this.tasks.push(task);
    if (!this.busy) this.next();
  }

  private next(): void {
    const batch = this.tasks.splice(0, this.most);
    this.busy = batch.length > 0;
    if (!this.busy) return;
    this.commit(
      batch.reduce((sum, { jobs }) => sum + jobs, 0),
      () => {
        for (const { done } of batch) done();
        this.next();
      },
    );
  }
}

/** A queue, and whoever works on all of it at a time, again as long as there is something. Jobs are the times of their submission. */
class Cycle {
  private jobs: number[] = [];
  private busy = false;

  constructor(
    private readonly most: number,
    private readonly work: (jobs: number[], done: () => void) => void,
  ) {}

  add(jobs: readonly number[]): void {
    for (const job of jobs) this.jobs.push(job);
    if (!this.busy) this.next();
  }

  private next(): void {
    const jobs = this.jobs.splice(0, this.most);
    this.busy = jobs.length > 0;
    if (this.busy) this.work(jobs, () => this.next());
  }
}

/** As in src/store/postgres/gathered.ts and src/engine/cycle.ts. */
const SMALL_JOBS = 16;
const TOGETHER = 64;
const MOVES = 5_000;
const STARTS = 2_000;

/** A database, the processes that plan on it, and its sites. */
class Shard {
  readonly lock: Server;
  readonly planner: Server;
  readonly queue: Cycle;
  private readonly submissions: Gatherer[];
  private readonly reports: Gatherer[];
  private readonly starts: Gatherer;
  private readonly sites: Cycle[];

  constructor(
    private readonly clock: Clock,
    private readonly random: RandomStream,
    private readonly scenario: Scenario,
    sites: number,
    /** null: its own sites. */
    private readonly below: readonly Shard[] | null,
    private readonly started: (submittedAt: number) => void,
  ) {
    const { costs, warmUpS } = scenario;
    this.lock = new Server(clock, warmUpS);
    this.planner = new Server(clock, warmUpS);
    this.queue = new Cycle(MOVES, (jobs, done) => this.plan(jobs, done));
    const gatherers = (held: Held) =>
      Array.from(
        { length: costs.apiProcesses },
        () => new Gatherer((jobs, done) => this.commit(held, jobs, done), TOGETHER),
      );
    this.submissions = gatherers(costs.submit);
    this.reports = gatherers(costs.report);
    this.starts = new Gatherer((jobs, done) => this.commit(costs.start, jobs, done), TOGETHER);
    this.sites = Array.from(
      { length: sites },
      () => new Cycle(STARTS, (jobs, done) => this.start(jobs, done)),
    );
  }

  submit(jobs: readonly number[]): void {
    const wake = () => this.clock.after(this.scenario.costs.wakeS, () => this.queue.add(jobs));
    if (jobs.length > SMALL_JOBS) this.commit(this.scenario.costs.submit, jobs.length, wake);
    else this.any(this.submissions).add({ jobs: jobs.length, done: wake });
  }

  private any<T>(list: readonly T[]): T {
    return list[this.random.integer(0, list.length - 1)] as T;
  }

  private commit({ firstS, furtherS }: Held, jobs: number, done: () => void): void {
    this.lock.do(this.scenario.costs.flushS + firstS + furtherS * (jobs - 1), done);
  }

  private plan(jobs: number[], done: () => void): void {
    const { plan, move } = this.scenario.costs;
    const weighed = weighedOf(this.below?.length ?? this.sites.length, this.scenario.fanOut);
    this.planner.do(jobs.length * (plan.jobS + plan.jobAndChildS * weighed), () =>
      this.commit(move, jobs.length, () => {
        this.send(jobs);
        done();
      }),
    );
  }

  /** A hand-over: committed here, and then there, as a submission is. */
  private send(jobs: readonly number[]): void {
    const targets = this.below ?? this.sites;
    const parts = new Map<Shard | Cycle, number[]>();
    for (const job of jobs) {
      const target = this.any<Shard | Cycle>(targets);
      const part = parts.get(target);
      if (part) part.push(job);
      else parts.set(target, [job]);
    }
    const { wakeS, submit } = this.scenario.costs;
    for (const [target, part] of parts) {
      if (target instanceof Shard)
        target.commit(submit, part.length, () => this.clock.after(wakeS, () => target.queue.add(part)));
      else this.clock.after(wakeS, () => target.add(part));
    }
  }

  private start(jobs: number[], done: () => void): void {
    const { costs, gathersStarts } = this.scenario;
    const startedNow = () => {
      for (const job of jobs) this.started(job);
      this.run(jobs.length);
      done();
    };
    this.clock.after(costs.plan.siteS, () => {
      if (gathersStarts) this.starts.add({ jobs: jobs.length, done: startedNow });
      else this.commit(costs.start, jobs.length, startedNow);
    });
  }

  /** Each run is reported twice, some time later: only how often matters here. */
  private run(jobs: number): void {
    const { runS } = this.scenario.costs;
    for (let report = 0; report < 2 * jobs; report++)
      this.clock.after(this.random.exponential(runS), () =>
        this.any(this.reports).add({ jobs: 1, done: () => {} }),
      );
  }
}

/** Of so many, how many a planner weighs for a job. */
const weighedOf = (children: number, fanOut: number): number =>
  children <= fanOut ? children : fanOut * Math.ceil(Math.log(children) / Math.log(fanOut));

export function simulateShards(change: Partial<Scenario>): Outcome {
  const scenario = { ...SCENARIO, ...change };
  const { shards, sites, seconds, warmUpS, jobsPerS, jobsPerSubmission, throughRoot } = scenario;
  const clock = new Clock();
  const random = new RandomStream(scenario.seed, 'shards');
  const latencies: number[] = [];
  let submitted = 0;
  let started = 0;
  let submittedInTime = 0;
  let startedInTime = 0;
  const note = (submittedAt: number): void => {
    started++;
    if (clock.now < warmUpS) return;
    startedInTime++;
    latencies.push(clock.now - submittedAt);
  };
  const make = (own: number, below: Shard[] | null) => new Shard(clock, random, scenario, own, below, note);
  const below =
    shards === 1 ? null : Array.from({ length: shards }, () => make(Math.ceil(sites / shards), null));
  const root = make(below === null ? sites : 0, below);
  const arrive = (): void => {
    clock.after(random.exponential(jobsPerSubmission / jobsPerS), () => {
      const jobs = Array.from({ length: jobsPerSubmission }, () => clock.now);
      submitted += jobs.length;
      if (clock.now >= warmUpS) submittedInTime += jobs.length;
      const own =
        below === null || random.next() < throughRoot
          ? root
          : (below[random.integer(0, shards - 1)] as Shard);
      own.submit(jobs);
      arrive();
    });
  };
  arrive();
  clock.runUntil(seconds);
  const leaves = below ?? [root];
  const most = (of: (shard: Shard) => Server): number => Math.max(...leaves.map((leaf) => of(leaf).load));
  const sorted = Float64Array.from(latencies).sort();
  return {
    ...{ startedPerS: (jobsPerS * startedInTime) / submittedInTime, submitted, started },
    fallsBehind: submitted - started > 2 * jobsPerS,
    ...{ rootLock: root.lock.load, rootPlanner: root.planner.load },
    ...{ shardLock: most((shard) => shard.lock), shardPlanner: most((shard) => shard.planner) },
    ...{ p50S: quantile(sorted, 0.5), p99S: quantile(sorted, 0.99) },
  };
}
