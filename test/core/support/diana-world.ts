/**
 * A grid under DIANA that lives: bulks of jobs come, cycles are applied, local jobs start and end, sites and machines go and
 * come back. It keeps its own plain record of where every job is, and checks each plan against it by counting.
 */
import * as fc from 'fast-check';
import { expect } from 'vitest';
import {
  type DispatchPlan,
  dispatchCycle,
  Grid,
  type Job,
  jobData,
  type Machine,
  type Move,
  type Policy,
  Shares,
  type Site,
  Traffic,
} from '../../../src/core/index.js';
import { job as anyJob } from './drive.js';
import { machine as anyMachine } from './grids.js';
import { dianaPolicy } from './moves.js';

export const SITES = 4;

export const anyDianaPolicy: fc.Arbitrary<Policy> = fc
  .record({
    queueLimit: fc.integer({ min: 1, max: 4 }),
    congestionThreshold: fc.constantFrom(-10, 0, 0.5),
    congestionWindowS: fc.constantFrom(10, 60),
    holdOffS: fc.constantFrom(5, 30),
    loadPenaltyS: fc.constantFrom(0, 60),
  })
  .map((given) => dianaPolicy(given));

const site = fc.integer({ min: 1, max: SITES });

export const anyMachines = fc.array(
  fc.record({
    siteId: site,
    cpus: fc.integer({ min: 2, max: 6 }),
    benchmark: fc.constantFrom(1, 1.5, 3),
    os: fc.constantFrom('linux', 'linux', 'bsd'),
  }),
  { minLength: 4, maxLength: 10 },
);

const anyBulk = fc.record({
  kind: fc.constant('submit' as const),
  userId: fc.integer({ min: 1, max: 4 }),
  sizes: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 8 }),
  estimateS: fc.integer({ min: 1, max: 500 }),
  os: fc.constantFrom(null, null, 'linux'),
  boost: fc.constantFrom(0, 0, 0, 300, -300),
  at: fc.option(site),
  sizeMb: fc.integer({ min: 0, max: 2000 }),
});

export const anyDianaEvents = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: anyBulk },
    { weight: 8, arbitrary: fc.record({ kind: fc.constant('cycle' as const) }) },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('start' as const), site }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('wait' as const), seconds: fc.nat(20) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('rush' as const), site }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('machine' as const), pick: fc.nat(9) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('site' as const), site }) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('quota' as const), userId: site, quota: fc.nat(5) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove' as const), pick: fc.nat(99) }) },
  ),
  { minLength: 20, maxLength: 60, size: 'max' },
);
type Event = typeof anyDianaEvents extends fc.Arbitrary<(infer E)[]> ? E : never;
type MachineShape = typeof anyMachines extends fc.Arbitrary<(infer M)[]> ? M : never;

type Place = { job: Job; at: 'ROOT' | 'META' | 'LOCAL'; siteId: number | null };

export class DianaWorld {
  readonly grid = new Grid();
  readonly sites: Site[] = [];
  readonly machines: Machine[];
  readonly places = new Map<number, Place>();
  readonly quotas = new Map<number, number>();
  /** All moves that were applied, in order. */
  readonly moved: (Pick<Move, 'from' | 'to' | 'reason'> & { groupId: number })[] = [];
  /** After how many of them something else happened than a cycle. */
  private readonly disturbances: number[] = [];
  now = 0;
  private lastId = 0;

  constructor(
    shapes: readonly MachineShape[],
    readonly policy: Policy,
    readonly maxMoves = 15,
  ) {
    for (let id = 1; id <= SITES; id++)
      this.sites.push({ id, name: `s${id}`, state: 'UP', localPolicy: null });
    this.machines = shapes.map((shape, i) => anyMachine({ id: i + 1, ...shape }));
    for (const each of this.sites) this.grid.setSite(each);
    for (const each of this.machines) this.grid.setMachine(each);
  }

  get rules() {
    const { dispatch } = this.policy;
    if (dispatch.kind !== 'diana') throw new Error('the policy is not diana');
    return dispatch;
  }

  /** Whether anything but cycles came between these two moves. */
  disturbedBetween(first: number, last: number): boolean {
    return this.disturbances.some((after) => after > first && after <= last);
  }

  play(event: Event): void {
    if (event.kind !== 'cycle') this.disturbances.push(this.moved.length);
    switch (event.kind) {
      case 'submit': {
        const { userId, sizes, estimateS, os, boost, at, sizeMb } = event;
        const groupId = this.lastId + 1;
        const data = at === null ? null : jobData({ originSiteId: at, inputs: [{ siteId: at, sizeMb }] });
        for (const cpusPerTask of sizes) {
          const id = ++this.lastId;
          const shape = { userId, cpusPerTask, estimateS, os, boost, groupId, data };
          this.put({ job: anyJob({ ...shape, id, submittedAt: this.now }), at: 'ROOT', siteId: null });
        }
        return;
      }
      case 'cycle':
        this.cycle();
        return;
      case 'start': {
        const [first] = this.at('LOCAL', event.site);
        if (first === undefined) return;
        this.places.delete(first.id);
        this.grid.removeJob(first.id);
        this.grid.index(Traffic).of(event.site).served(this.now);
        return;
      }
      case 'wait':
        this.now += event.seconds;
        return;
      case 'rush':
        this.grid.index(Traffic).of(event.site).arrived(this.now, 20);
        return;
      case 'machine': {
        const away = this.machines.findIndex(({ available }) => !available);
        const i = away === -1 ? event.pick % this.machines.length : away;
        const known = this.machines[i] as Machine;
        this.machines[i] = { ...known, available: !known.available };
        this.grid.setMachine(this.machines[i] as Machine);
        return;
      }
      case 'site': {
        const known = this.sites[event.site - 1] as Site;
        const state = known.state === 'UP' ? 'DOWN' : 'UP';
        this.sites[event.site - 1] = { ...known, state };
        this.grid.setSite(this.sites[event.site - 1] as Site);
        // The driver takes back what waits at a site that is away.
        for (const job of [...this.at('META', event.site), ...this.at('LOCAL', event.site)])
          if (state === 'DOWN') this.put({ job: { ...job, priority: null }, at: 'ROOT', siteId: null });
        return;
      }
      case 'quota':
        this.quotas.set(event.userId, event.quota);
        this.grid.index(Shares).set(event.userId, event.quota);
        return;
      case 'remove': {
        const ids = [...this.places.keys()];
        const id = ids[event.pick % Math.max(1, ids.length)];
        if (id === undefined) return;
        this.places.delete(id);
        this.grid.removeJob(id);
      }
    }
  }

  plan(grid = this.grid, maxMoves = this.maxMoves): DispatchPlan {
    return dispatchCycle(grid, { now: this.now, policy: this.policy, policyVersion: 1, maxMoves });
  }

  cycle(): DispatchPlan {
    const plan = this.plan();
    this.check(plan);
    for (const move of plan.moves) this.apply(move);
    return plan;
  }

  /** Jobs there, by id. */
  at(at: Place['at'], siteId: number | null): Job[] {
    return [...this.places.values()]
      .filter((place) => place.at === at && place.siteId === siteId)
      .map(({ job }) => job)
      .sort((a, b) => a.id - b.id);
  }

  /** A grid of the same content, put in in the order that `shuffle` gives. */
  rebuilt(shuffle: <T>(items: T[]) => T[]): Grid {
    const grid = new Grid();
    for (const each of shuffle([...this.sites])) grid.setSite(each);
    for (const each of shuffle([...this.machines])) grid.setMachine(each);
    for (const [userId, quota] of shuffle([...this.quotas])) grid.index(Shares).set(userId, quota);
    for (const place of shuffle([...this.places.values()])) put(grid, place);
    for (const { id } of this.sites)
      Object.assign(grid.index(Traffic).of(id), this.grid.index(Traffic).of(id));
    return grid;
  }

  private put(place: Place): void {
    this.places.set(place.job.id, place);
    put(this.grid, place);
  }

  private apply({ jobId, from, to, queue, priority, reason }: Move): void {
    if (queue === 'SCHEDULER') throw new Error('there are no schedulers between the root and sites');
    const { job } = this.places.get(jobId) as Place;
    const migrates = queue === 'META' && from !== null;
    this.moved.push({ groupId: job.groupId, from, to, reason });
    if (from !== to) this.grid.index(Traffic).of(to).arrived(this.now);
    const moved = {
      ...job,
      priority,
      migratedAt: migrates ? this.now : job.migratedAt,
      dispatchedAt: queue === 'LOCAL' ? this.now : null,
    };
    this.put({ job: moved, at: queue, siteId: to });
  }

  /** What holds of every plan. */
  private check({ moves, truncated }: DispatchPlan): void {
    const { queueLimit, holdOffS } = this.rules;
    expect(new Set(moves.map(({ jobId }) => jobId)).size).toBe(moves.length);
    expect(moves.length).toBeLessThanOrEqual(this.maxMoves);
    const fed = new Map<number, number>();
    for (const { jobId, from, to, queue, priority, reason } of moves) {
      if (queue === 'SCHEDULER') throw new Error('there are no schedulers between the root and sites');
      const { job, at, siteId } = this.places.get(jobId) as Place;
      expect([at, siteId]).toEqual(from === null ? ['ROOT', null] : ['META', from]);
      expect(queue === 'LOCAL').toBe(from === to);
      expect(priority).toBeGreaterThanOrEqual(0);
      expect(priority).toBeLessThanOrEqual(4096);
      expect(this.canRun(to, job)).toBe(true);
      if (queue === 'LOCAL') fed.set(to, (fed.get(to) ?? 0) + 1);
      if (reason === 'EXPORTED' && job.migratedAt !== null)
        expect(this.now - job.migratedAt).toBeGreaterThanOrEqual(holdOffS);
    }
    for (const [siteId, jobs] of fed)
      expect(this.at('LOCAL', siteId).length + jobs).toBeLessThanOrEqual(queueLimit);
    if (!truncated) this.checkGroups(moves);
  }

  /** Whole groups: what is left behind of one that was exported was fed, or is what no other site can run. */
  private checkGroups(moves: readonly Move[]): void {
    const moved = new Set(moves.map(({ jobId }) => jobId));
    for (const { jobId, from, to, reason } of moves) {
      if (reason !== 'EXPORTED') continue;
      const { groupId } = (this.places.get(jobId) as Place).job;
      for (const other of this.at('META', from)) {
        if (other.groupId === groupId && !moved.has(other.id))
          expect(this.canRunSomewhere(other)).toBe(false);
      }
      expect(to).not.toBe(from);
    }
  }

  private canRun(siteId: number, { cpusPerTask, os }: Job): boolean {
    return (
      this.sites[siteId - 1]?.state === 'UP' &&
      this.machines.some(
        (each) =>
          each.siteId === siteId &&
          each.available &&
          each.cpus >= cpusPerTask &&
          (os === null || os === each.os),
      )
    );
  }

  canRunSomewhere(job: Job): boolean {
    return this.sites.some(({ id }) => this.canRun(id, job));
  }
}

function put(grid: Grid, { job, at, siteId }: Place): void {
  if (at === 'ROOT') grid.placeAtRoot(job);
  else if (at === 'META') grid.placeAtMeta(job, siteId as number);
  else grid.placeAtSite(job, siteId as number);
}
