/**
 * A small grid that lives: jobs come, cycles run and are applied, runs end early, on time or late, machines and sites go and
 * come back. It keeps its own plain record of the content, from which a grid can be built afresh and against which
 * everything is checked by counting.
 */
import * as fc from 'fast-check';
import {
  applyMove,
  DEFAULT_POLICY,
  dispatchCycle,
  Grid,
  type Held,
  imageOf,
  type Job,
  type JobPart,
  type License,
  type LocalPolicy,
  type Machine,
  Margins,
  type Policy,
  type PromisesImage,
  promisesFrom,
  type Reservation,
  type Run,
  type Site,
  type SitePlan,
  type Start,
  siteCycle,
} from '../../../src/core/index.js';
import type { OwnedDevice } from '../../../src/core/resources/devices.js';
import { placedParts, withParts } from '../../support/plain-job.js';
import { chosenDevices } from './devices.js';
import { job as anyJob } from './drive.js';

const anyDispatch = fc.oneof<fc.WeightedArbitrary<Policy['dispatch']>[]>(
  {
    weight: 8,
    arbitrary: fc
      .constantFrom('MS' as const, 'LS' as const, 'NONE' as const)
      .map((mode) => ({ ...DEFAULT_POLICY.dispatch, mode, maxDelta: 3, window: 4 })),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('queues' as const),
      order: fc.constantFrom('FCFS', 'SJF', 'FF', 'S-SJF', 'L-SJF'),
      queueLimit: fc.integer({ min: 0, max: 3 }),
      ageBoundS: fc.constantFrom(null, 20),
      fairness: fc.constantFrom('NONE' as const, 'QUOTA' as const),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('job-ratio' as const),
      queueLimit: fc.integer({ min: 1, max: 4 }),
      fairness: fc.constantFrom('NONE' as const, 'QUOTA' as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom({ kind: 'round-robin' }, { kind: 'random' }, { kind: 'most-flops' }),
  },
);

export const anyPolicy: fc.Arbitrary<Policy> = fc
  .record({
    dispatch: anyDispatch,
    local: fc.constantFrom<LocalPolicy>(
      DEFAULT_POLICY.local,
      DEFAULT_POLICY.local,
      { kind: 'easy' },
      { kind: 'fcfs' },
      { kind: 'easy', backfill: 'SHORTEST' },
      { kind: 'sjf', ageBoundS: 20 },
      { kind: 'first-fit', ageBoundS: 20 },
      { kind: 'conservative', depth: 5 },
      { kind: 'conservative', depth: 100 },
      { kind: 'hybrid', reservations: 2 },
    ),
    seed: fc.nat(1000),
    workflows: fc.constantFrom('ARRIVAL' as const, 'RANK' as const),
  })
  .map((given) => ({ ...DEFAULT_POLICY, ...given }));

const KINDS = ['a', 'b'];

const anyMachine = fc.record({
  cpus: fc.integer({ min: 3, max: 8 }),
  memoryMb: fc.integer({ min: 4, max: 16 }),
  benchmark: fc.constantFrom(1, 2, 3),
  os: fc.constantFrom('linux', 'linux', 'linux', 'bsd'),
  able: fc.constantFrom(KINDS, KINDS, ['a'], []),
  maxTasks: fc.constantFrom(null, 1, 2, 3),
  gpus: fc.constantFrom(0, 2, 3),
  gen: fc.constantFrom('1', '2'),
});
const anyPool = fc.record({
  kind: fc.constantFrom(...KINDS),
  grid: fc.boolean(),
  copies: fc.constantFrom(1, 2, 2, 1_000_000_000),
});

export const anySites = fc.array(
  fc.record({
    machines: fc.array(anyMachine, { minLength: 1, maxLength: 4, size: 'max' }),
    pools: fc.array(anyPool, { minLength: 1, maxLength: 4, size: 'max' }),
    // Most sites share their machines in space, and run what fits.
    shared: fc.constantFrom(false, false, true),
    maxRunningJobs: fc.constantFrom(null, null, null, 3),
  }),
  { minLength: 1, maxLength: 3, size: 'max' },
);

const JOB_SHAPE = {
  estimateS: fc.integer({ min: 1, max: 30 }),
  benchmark: fc.constantFrom(1, 2, 3),
  slack: fc.option(fc.integer({ min: -5, max: 60 })),
  tasks: fc.constantFrom(1, 1, 1, 2, 3),
  cpusPerTask: fc.integer({ min: 1, max: 4 }),
  memoryMbPerTask: fc.integer({ min: 0, max: 5 }),
  licenses: fc.constantFrom([], [], [], [], ['a'], ['b'], KINDS, ['b', 'b']),
  /** Of pools, too, by amount. */
  resources: fc.constantFrom<Record<string, number> | null>(
    ...[null, null, null],
    ...[{ a: 1 }, { b: 2 }, { a: 2, b: 1 }, { a: 600_000_000 }],
  ),
  os: fc.constantFrom(null, null, null, null, 'linux'),
  resourcesPerTask: fc.constantFrom(null, null, null, { gpu: 1 }, { gpu: 2 }),
  tasksPerMachine: fc.constantFrom(
    ...[null, null, null],
    ...[
      { min: 1, max: 1 },
      { min: 2, max: null },
      { min: 1, max: 2 },
    ],
  ),
  userId: fc.constantFrom(1, 1, 2),
  exclusive: fc.constantFrom(null, null, null, 'MACHINE' as const, 'USER' as const),
  machineConstraint: fc.constantFrom(null, null, null, null, 'gen >= 2', 'gen = 1 or os = bsd'),
  userClass: fc.constantFrom('GOLD' as const, 'SILVER' as const, 'REGULAR' as const),
  boost: fc.constantFrom(0, 0, 0, 5, -5),
  workflow: fc.option(
    fc.record({ since: fc.constantFrom(0, 5), place: fc.integer({ min: 1, max: 50 }), rankS: fc.nat(100) }),
  ),
};
export const anyJobShape = fc.record(JOB_SHAPE);
type JobShape = (typeof anyJobShape extends fc.Arbitrary<infer S> ? S : never) & {
  parts?: readonly JobPart[] | null;
};

const { tasks, cpusPerTask, memoryMbPerTask, resourcesPerTask } = JOB_SHAPE;
const { tasksPerMachine, exclusive, machineConstraint } = JOB_SHAPE;
const anyPart = fc.record({
  ...{ tasks, cpusPerTask, memoryMbPerTask, resourcesPerTask, tasksPerMachine, exclusive, machineConstraint },
  allAlike: fc.constantFrom(null, null, null, ['gen']),
  sameSwitch: fc.constantFrom(null, null, null, { maxWaitS: null }, { maxWaitS: 6 }),
});
const anyParts = fc.array(anyPart, { minLength: 2, maxLength: 3, size: 'max' });
/** Half of the jobs have several parts. */
export const anyShapeWithParts = fc.record({ ...JOB_SHAPE, parts: fc.option(anyParts, { freq: 2 }) });

const eventsOf = (shapes: fc.Arbitrary<JobShape>) =>
  fc.array(
    fc.oneof(
      { weight: 16, arbitrary: fc.record({ kind: fc.constant('submit' as const), shape: shapes }) },
      { weight: 5, arbitrary: fc.record({ kind: fc.constant('dispatch' as const) }) },
      { weight: 12, arbitrary: fc.record({ kind: fc.constant('cycle' as const), pick: fc.nat(9) }) },
      { weight: 3, arbitrary: fc.record({ kind: fc.constant('end' as const), pick: fc.nat(9) }) },
      {
        weight: 4,
        arbitrary: fc.record({
          kind: fc.constant('wait' as const),
          seconds: fc.integer({ min: 1, max: 12 }),
        }),
      },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant('machine' as const), pick: fc.nat(9) }) },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant('site' as const), pick: fc.nat(9) }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove' as const), pick: fc.nat(9) }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('takeBack' as const), pick: fc.nat(9) }) },
    ),
    { minLength: 30, maxLength: 90, size: 'max' },
  );
export const anyEvents = eventsOf(anyJobShape);
export const anyEventsWithParts = eventsOf(anyShapeWithParts);
type Event = typeof anyEvents extends fc.Arbitrary<(infer E)[]> ? E : never;
type SiteShape = typeof anySites extends fc.Arbitrary<(infer S)[]> ? S : never;

export class World {
  readonly grid: Grid;
  readonly sites: Site[] = [];
  readonly machines: Machine[] = [];
  readonly licenses: License[] = [];
  readonly atRoot = new Map<number, Job>();
  readonly atSite = new Map<number, { job: Job; siteId: number }>();
  readonly running = new Map<number, { job: Job; run: Run }>();
  readonly reservations = new Map<number, Reservation>();
  readonly promises = new Map<number, PromisesImage>();
  readonly held = new Map<number, Held>();
  /** By site: when a promise comes due. */
  readonly wakeAt = new Map<number, number>();
  /** Promises are not kept: each cycle makes them anew. */
  forgetful = false;
  margins: number[] = [];
  now = 0;
  private lastJob = 0;

  constructor(
    shapes: readonly SiteShape[],
    readonly policy: Policy,
    /** Sees every plan of a site before it is applied. */
    private readonly onPlan: (world: World, plan: SitePlan) => void = () => {},
    /** Starts enter the grid while the cycle runs, as in a simulation. */
    private readonly atOnce = false,
  ) {
    this.grid = new Grid(policy.workflows);
    shapes.forEach(({ machines, pools, shared, maxRunningJobs }, i) => {
      const siteId = i + 1;
      this.sites.push({ id: siteId, name: `s${siteId}`, state: 'UP', localPolicy: null, maxRunningJobs });
      for (const { kind, grid, copies } of pools) {
        this.licenses.push({ id: this.licenses.length + 1, kind, copies, siteId: grid ? null : siteId });
      }
      for (const { able, maxTasks, gpus, gen, ...machine } of machines) {
        const id = this.machines.length + 1;
        const sharing = shared ? { maxTasks } : {};
        const here = { siteId, architecture: 'x', licenseIds: able as never, available: true };
        this.machines.push({
          ...machine,
          ...sharing,
          ...here,
          resources: { gpu: gpus },
          labels: { gen, switch: id % 3 === 0 ? 'a' : 'b' },
          ...(gen === '2' && { devices: devicesOf(gpus) }),
          id,
        });
      }
    });
    this.machines.forEach((machine, i) => {
      // Until here they were kinds (above): ids are known only now.
      const kinds = machine.licenseIds as unknown as string[];
      const licenses = this.licenses.filter(({ kind }) => kinds.includes(kind)).map(({ id }) => id);
      this.machines[i] = { ...machine, licenseIds: licenses };
    });
    for (const site of this.sites) this.grid.setSite(site);
    for (const license of this.licenses) this.grid.setLicense(license);
    for (const machine of this.machines) this.grid.setMachine(machine);
  }

  play(event: Event): void {
    switch (event.kind) {
      case 'submit': {
        const { slack, tasksPerMachine, parts = null, ...shape } = event.shape;
        const min = Math.min(tasksPerMachine?.min ?? 1, shape.tasks);
        const id = ++this.lastJob;
        const deadline = slack === null ? null : this.now + shape.estimateS + slack;
        const job = anyJob({
          ...shape,
          id,
          submittedAt: this.now,
          deadline,
          licenses: [...shape.licenses].sort(),
          tasksPerMachine: tasksPerMachine && { ...tasksPerMachine, min },
        });
        if (parts !== null) Object.assign(job, partedJob(parts));
        this.atRoot.set(id, job);
        this.grid.placeAtRoot(job);
        return;
      }
      case 'dispatch':
        this.dispatch();
        return;
      case 'cycle':
        this.dispatch();
        this.cycle(pick([...this.sites], event.pick)?.id ?? 0);
        return;
      case 'end': {
        const jobId = pick([...this.running.keys()], event.pick);
        if (jobId === undefined) return;
        this.running.delete(jobId);
        this.grid.endRun(jobId);
        return;
      }
      case 'wait':
        this.now += event.seconds;
        return;
      case 'machine': {
        // One is away at a time, at most.
        const away = this.machines.findIndex(({ available }) => !available);
        const i = away === -1 ? event.pick % this.machines.length : away;
        const machine = this.machines[i] as Machine;
        this.machines[i] = { ...machine, available: !machine.available };
        this.grid.setMachine(this.machines[i] as Machine);
        return;
      }
      case 'site': {
        const i = event.pick % this.sites.length;
        const site = this.sites[i] as Site;
        const state = site.state !== 'UP' ? 'UP' : event.pick % 2 === 0 ? 'DRAINING' : 'DOWN';
        this.sites[i] = { ...site, state };
        this.grid.setSite(this.sites[i] as Site);
        return;
      }
      case 'remove': {
        const jobId = pick([...this.atRoot.keys(), ...this.atSite.keys()], event.pick);
        if (jobId === undefined) return;
        this.atRoot.delete(jobId);
        this.atSite.delete(jobId);
        this.grid.removeJob(jobId);
        return;
      }
      case 'takeBack': {
        const queued = pick([...this.atSite.values()], event.pick);
        if (queued === undefined) return;
        const job = { ...queued.job, priority: null };
        this.atSite.delete(job.id);
        this.atRoot.set(job.id, job);
        this.grid.placeAtRoot(job);
        return;
      }
    }
  }

  hold(held: Held): void {
    this.held.set(held.id, held);
    this.grid.setHeld(held);
  }

  release(id: number): void {
    this.held.delete(id);
    this.grid.removeHeld(id);
  }

  dispatch(): void {
    const plan = dispatchCycle(this.grid, {
      now: this.now,
      policy: this.policy,
      policyVersion: 1,
      maxMoves: 5,
    });
    for (const move of plan.moves) {
      const { jobId, to, queue, priority } = move;
      if (queue === 'SCHEDULER') throw new Error('there are no schedulers between the root and sites');
      const job: Job = { ...(this.atRoot.get(jobId) as Job), priority, dispatchedAt: this.now };
      this.atRoot.delete(jobId);
      this.atSite.set(jobId, { job, siteId: to });
      if (job.deadline !== null) this.margins.push(job.deadline - job.estimateS - job.submittedAt);
      applyMove(this.grid, move, this.now);
    }
  }

  cycle(siteId: number): void {
    const accept = ({ jobId, allocations, pools, plannedDuration }: Start): Run => {
      const plannedEnd = this.now + plannedDuration;
      const job = this.atSite.get(jobId)?.job as Job;
      const devices = chosenDevices(
        (machineId) => this.machines.find(({ id }) => id === machineId)?.devices ?? [],
        this.running.values(),
        { job, allocations },
      );
      const run = { jobId, siteId, epoch: 1, allocations, pools, devices, start: this.now, plannedEnd };
      this.running.set(jobId, { job, run });
      this.atSite.delete(jobId);
      return run;
    };
    const plan = this.plan(siteId, this.grid, this.atOnce ? accept : undefined);
    this.onPlan(this, plan);
    if (!this.atOnce) for (const start of plan.starts) this.grid.startRun(accept(start));
    this.reserve(siteId, plan.reservation);
    if (!this.forgetful) this.keep(siteId, plan);
  }

  private keep(siteId: number, { memory, wakeAt }: SitePlan): void {
    const image = imageOf(memory);
    if (image === null) this.promises.delete(siteId);
    else this.promises.set(siteId, image);
    this.wakeAt.set(siteId, wakeAt);
    this.grid.keepMemory(siteId, memory);
  }

  reserve(siteId: number, reservation: Reservation | null): void {
    if (reservation === null) this.reservations.delete(siteId);
    else this.reservations.set(siteId, reservation);
    this.grid.setReservation(siteId, reservation);
  }

  plan(siteId: number, grid = this.grid, accept?: (start: Start) => Run): SitePlan {
    const { now, policy } = this;
    return siteCycle(grid, siteId, { now, policy, policyVersion: 1, maxStarts: 100, accept });
  }

  /** Every plan that could be made now. */
  plans(grid = this.grid): unknown[] {
    const context = { now: this.now, policy: this.policy, policyVersion: 1, maxMoves: 100 };
    const plans = this.sites.map(({ id }) => {
      const plan = this.plan(id, grid);
      return { ...plan, memory: imageOf(plan.memory) };
    });
    return [dispatchCycle(grid, context), ...plans];
  }

  /** A grid with the same content, put in in the order that `shuffle` gives. */
  rebuilt(shuffle: <T>(items: T[]) => T[]): Grid {
    const grid = new Grid(this.policy.workflows);
    for (const site of shuffle([...this.sites])) grid.setSite(site);
    for (const machine of shuffle([...this.machines])) grid.setMachine(machine);
    for (const license of shuffle([...this.licenses])) grid.setLicense(license);
    for (const held of shuffle([...this.held.values()])) grid.setHeld(held);
    for (const { job, siteId } of shuffle([...this.atSite.values()])) grid.placeAtSite(job, siteId);
    for (const { job, run } of shuffle([...this.running.values()])) grid.restoreRun(run, job);
    for (const job of shuffle([...this.atRoot.values()])) grid.placeAtRoot(job);
    for (const [siteId, reservation] of shuffle([...this.reservations]))
      grid.setReservation(siteId, reservation);
    for (const [siteId, image] of shuffle([...this.promises]))
      grid.keepMemory(siteId, promisesFrom(grid, siteId, this.policy.local, image, this.now));
    grid.index(Margins).add(this.margins);
    return grid;
  }
}

/** Two are shares of one. */
const devicesOf = (gpus: number): OwnedDevice[] =>
  Array.from({ length: gpus === 2 ? 1 : gpus }, (_, i) => ({
    ...{ id: `g${i}`, kind: 'gpu', model: null, memoryMb: 8, shares: gpus === 2 ? 2 : 1 },
    link: i < 2 ? 'a' : null,
  }));

/** What a job has of its parts. */
const partedJob = (given: readonly JobPart[]): Partial<Job> =>
  withParts(
    given.map((part) => {
      const { tasks, tasksPerMachine: bounds } = part;
      return { ...part, tasksPerMachine: bounds && { ...bounds, min: Math.min(bounds.min, tasks) } };
    }),
  );

const pick = <T>(items: readonly T[], index: number): T | undefined =>
  items[index % Math.max(1, items.length)];

/** What runs hold of each machine and license at `time`, if they end as planned (late ones: now). */
export function usage(runs: Iterable<{ job: Job; run: Run }>, time: number) {
  const cpus = new Map<number, number>();
  const tasks = new Map<number, number>();
  const memoryMb = new Map<number, number>();
  const gpus = new Map<number, number>();
  const licenses = new Map<number, number>();
  /** Runs on the machine, those of them that are to be alone there, the users of all, and of those that are to be beside no other user's. */
  const sharing = new Map<number, number>();
  const alone = new Map<number, number>();
  const users = new Map<number, Set<number>>();
  const keeping = new Map<number, Set<number>>();
  const note = (map: Map<number, Set<number>>, key: number, userId: number) =>
    map.set(key, (map.get(key) ?? new Set()).add(userId));
  const add = (map: Map<number, number>, key: number, amount: number) =>
    map.set(key, (map.get(key) ?? 0) + amount);
  for (const { job, run } of runs) {
    if (run.plannedEnd <= time) continue;
    for (const { part, ...allocation } of placedParts(job, run.allocations)) {
      add(tasks, allocation.machineId, allocation.tasks);
      add(sharing, allocation.machineId, 1);
      if (part.exclusive === 'MACHINE') add(alone, allocation.machineId, 1);
      note(users, allocation.machineId, job.userId);
      if (part.exclusive === 'USER') note(keeping, allocation.machineId, job.userId);
      add(cpus, allocation.machineId, allocation.tasks * part.cpusPerTask);
      add(memoryMb, allocation.machineId, allocation.tasks * part.memoryMbPerTask);
      add(gpus, allocation.machineId, allocation.tasks * gpusOf(part.resourcesPerTask));
    }
    for (const { id, amount } of run.pools) add(licenses, id, amount);
  }
  return { cpus, tasks, memoryMb, gpus, licenses, sharing, alone, users, keeping };
}

export const gpusOf = (amounts: Job['resourcesPerTask'] | undefined): number => amounts?.gpu ?? 0;

/** By trying: whether so many tasks go on machines with room for `rooms`, with that many on each that has any. */
export function goOn(
  rooms: readonly number[],
  tasks: number,
  bounds: NonNullable<Job['tasksPerMachine']>,
  from = 0,
): boolean {
  if (tasks === 0) return true;
  const room = rooms[from];
  if (room === undefined) return false;
  const most = Math.min(room, tasks, bounds.max ?? Infinity);
  for (let here = most; here >= bounds.min; here--)
    if (goOn(rooms, tasks - here, bounds, from + 1)) return true;
  return goOn(rooms, tasks, bounds, from + 1);
}
