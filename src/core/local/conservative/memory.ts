/**
 * What a site's scheduler has promised. A simulator's cycles, which are carried out at once, go on with the same promises and the same
 * profile, to which only what has changed is done; other drivers' cycles make them anew.
 */
import type { ResourceKinds } from '../../grid/amounts.js';
import type { Grid, SiteEntry } from '../../grid/grid.js';
import { amountIn, type MachineState, type RunState } from '../../grid/site-resources.js';
import { type Job, switchesAfter } from '../../model.js';
import { allocationsOf, amountsOf, Filling, holdOf, pickPools } from '../../resources/placement.js';
import { IndexedHeap } from '../../structures/heap.js';
import { type FreeAtPromise, type PromiseImage, type PromisesImage, PromisingMemory } from '../policy.js';
import type { Places, StartPromise } from '../promises.js';

const NONE: readonly number[] = [];

/** What was free behind the starts of the cycle that promised, by kind of resource. */
export type Room = Omit<FreeAtPromise, 'amounts'> & { amounts: number[] };

export class Promises extends PromisingMemory {
  /** What was free behind the starts of the cycle that made them. */
  room: Room = { runs: 0, amounts: [], copies: [], held: 0 };
  /** Some could not be restored: their jobs or machines have gone. */
  incomplete = false;
  /** Of how many cycles it has been the memory. */
  cycle = 0;
  /** Where they have their places; null: as data only. */
  places: Places | null = null;
  /** Live runs that have their places there, too. */
  private runs = 0;
  /** Jobs of the queue were passed over. */
  private partial = false;
  /** When it was kept. */
  private at = Infinity;
  private readonly bySlot: (StartPromise | undefined)[] = [];
  /** When each is to start: the order by time asks often. */
  private readonly times: number[] = [];
  /** The slots of jobs that have a promise, by its time and in the order of the queue. */
  private readonly byTime: IndexedHeap;
  private readonly inLine: IndexedHeap;
  /** Of jobs that have left the queue since, by id. */
  private readonly gone = new Map<number, StartPromise>();
  /** Slots of jobs that have come since, some of them more than once. */
  private fresh: number[] = [];

  /** Of the grid: machines and pools may be other ones after a change. */
  private readonly topology: number;
  private readonly kinds: ResourceKinds;

  constructor(
    { topology, kinds }: Grid,
    private readonly entry: SiteEntry,
  ) {
    super();
    this.topology = topology;
    this.kinds = kinds;
    const order = entry.queue.inOrder('ARRIVAL');
    this.byTime = new IndexedHeap((a, b) => (this.timeOf(a) - this.timeOf(b) || a - b) < 0);
    this.inLine = new IndexedHeap((a, b) => order.compare(a, b) < 0);
  }

  /** What the site has promised, of the grid as it is now; null: nothing is known. */
  static of(grid: Grid, entry: SiteEntry): Promises | null {
    const { memory } = entry;
    if (!(memory instanceof Promises)) return null;
    if (memory.topology === grid.topology) return memory;
    const promises = Promises.from(grid, entry, memory.image());
    promises.incomplete ||= memory.someLeft;
    return promises;
  }

  /** Promises that were plain data. Left out is what is no more: the job in the queue, its machines. */
  static from(grid: Grid, entry: SiteEntry, { room, jobs }: PromisesImage): Promises {
    const promises = new Promises(grid, entry);
    promises.room = { ...room, amounts: grid.kinds.vector(room.amounts) };
    const machines = new Map(entry.resources.machines.map((state) => [state.machine.id, state]));
    for (const image of jobs) {
      const place = grid.placeOf(image.jobId);
      const here = place?.at === 'QUEUE' && place.siteId === entry.site.id;
      const slot = grid.slotOf(image.jobId);
      const promised = here ? promisedFrom(entry, slot, machines, image) : null;
      if (promised === null) promises.incomplete = true;
      else if (isSameJob(entry, slot, promised, grid.now)) promises.set(slot, promised);
    }
    return promises;
  }

  image(): PromisesImage {
    const jobs: PromiseImage[] = [];
    const { queue } = this.entry;
    for (const slot of queue.inOrder('ARRIVAL').window()) {
      const promised = this.bySlot[slot];
      if (promised === undefined) continue;
      const { at, placement, pools, work, madeAt } = promised;
      jobs.push({
        jobId: queue.ids[slot] as number,
        at,
        allocations: allocationsOf(placement),
        pools: amountsOf(pools),
        work,
        madeAt,
      });
    }
    return { room: { ...this.room, amounts: this.kinds.named(this.room.amounts) }, jobs };
  }

  /** What was promised to the job in the slot. */
  get(slot: number): StartPromise | undefined {
    return this.bySlot[slot];
  }

  set(slot: number, promised: StartPromise): void {
    const isNew = this.bySlot[slot] === undefined;
    this.bySlot[slot] = promised;
    this.times[slot] = promised.at;
    this.byTime.place(slot);
    if (isNew) this.inLine.push(slot);
  }

  /** Forgets the promise. Of a job that starts: its place is its run's from now on. */
  drop(slot: number): void {
    this.byTime.remove(slot);
    this.inLine.remove(slot);
    this.bySlot[slot] = undefined;
  }

  /** How many jobs have a promise. */
  get count(): number {
    return this.inLine.length;
  }

  /** The first job of the queue that has a promise; -1: none. */
  get first(): number {
    return this.inLine.top;
  }

  /** The earliest promised start; Infinity: none. */
  get next(): number {
    return this.count === 0 ? Infinity : this.timeOf(this.byTime.top);
  }

  /** The earliest promised start behind `now`; Infinity: none. */
  nextAfter(now: number): number {
    // Mostly all that have come due have started.
    if (this.next > now) return this.next;
    let next = Infinity;
    this.byTime.descend((slot) => {
      const at = this.timeOf(slot);
      if (at > now) next = Math.min(next, at);
      return at <= now;
    });
    return next;
  }

  /** The jobs whose start has come, in the order of the queue. */
  dueAt(now: number): number[] {
    const due: number[] = [];
    this.byTime.descend((slot) => this.timeOf(slot) <= now && due.push(slot) > 0);
    // Mostly it is one, and to sort costs a call.
    if (due.length === 1) return due;
    const order = this.entry.queue.inOrder('ARRIVAL');
    return due.sort((a, b) => order.compare(a, b));
  }

  /** Whether a promised job has left the queue. */
  get someLeft(): boolean {
    return this.gone.size > 0;
  }

  /**
   * Whether nothing but what it was told of has changed: all jobs of the queue were looked at, time has gone on but no promised start
   * has passed, all runs have their places in the profile, and no licenses matter, which other sites' runs and claims take, too.
   */
  isInStep(now: number): boolean {
    const { queue, resources } = this.entry;
    return (
      this.places !== null &&
      !this.partial &&
      this.at <= now &&
      this.next >= now &&
      this.runs === resources.runs.length &&
      queue.licensed === 0
    );
  }

  /** Jobs that have come since the last cycle and have no promise, in order; a profile that is in step is brought up to `now`. */
  catchUp(now: number): readonly number[] {
    const { queue } = this.entry;
    const profile = this.places?.profile;
    profile?.advance(now);
    if (this.gone.size > 0) {
      for (const { hold, at, end } of this.gone.values()) profile?.give(hold, at, end);
      this.gone.clear();
    }
    const { fresh } = this;
    if (fresh.length === 0) return NONE;
    this.fresh = [];
    // Mostly it is one, which is still there.
    if (fresh.length === 1 && queue.jobs[fresh[0] as number] !== undefined) return fresh;
    const order = queue.inOrder('ARRIVAL');
    const there = fresh.filter((slot) => queue.jobs[slot] !== undefined && this.bySlot[slot] === undefined);
    return [...new Set(there)].sort((a, b) => order.compare(a, b));
  }

  /** The cycle at `now` is over, and will have made so many runs. `partial`: it has passed jobs of the queue over. */
  keep(now: number, places: Places | null, starts: number, partial: boolean): void {
    this.at = now;
    this.places = places;
    this.partial = partial;
    this.runs = this.entry.resources.runs.length + starts;
  }

  override placed(slot: number): void {
    const { queue } = this.entry;
    const { ids, requirements } = queue;
    const jobId = ids[slot] as number;
    const promised = this.gone.get(jobId);
    const same =
      promised?.work === plannedAt(this.entry, slot) &&
      promised?.limit === queue.limit(slot) &&
      promised?.requirement === requirements[slot];
    if (same) {
      this.gone.delete(jobId);
      this.set(slot, promised as StartPromise);
      return;
    }
    if (promised !== undefined) {
      this.gone.delete(jobId);
      this.places?.profile.give(promised.hold, promised.at, promised.end);
    }
    if (this.places !== null) this.fresh.push(slot);
  }

  override left(slot: number): void {
    const promised = this.bySlot[slot];
    if (promised === undefined) return;
    this.drop(slot);
    this.gone.set(this.entry.queue.ids[slot] as number, promised);
  }

  override ended(run: RunState): void {
    this.runs--;
    this.places?.profile.give(run, Number.NEGATIVE_INFINITY, run.end);
  }

  override replanned(): void {
    this.places = null;
  }

  private timeOf(slot: number): number {
    return this.times[slot] as number;
  }
}

/** The work that is planned for the job in the slot. */
const plannedAt = ({ queue, resources }: SiteEntry, slot: number): number =>
  resources.plannedWork(queue.works[slot] as number, queue.limit(slot));

/** To a job that is another one now, or that has come to ask for less since, nothing was promised. */
const isSameJob = (entry: SiteEntry, slot: number, { work, madeAt }: StartPromise, now: number): boolean =>
  work === plannedAt(entry, slot) && switchesAfter(entry.queue.jobs[slot] as Job, madeAt) > now;

function promisedFrom(
  { resources, queue }: SiteEntry,
  slot: number,
  machineById: ReadonlyMap<number, MachineState>,
  { at, allocations, pools: promised, work, madeAt }: PromiseImage,
): StartPromise | null {
  const requirement = queue.requirements[slot] as NonNullable<(typeof queue.requirements)[number]>;
  const eligible = resources.eligible(requirement.signature);
  const filling = new Filling(requirement.tasks);
  let allocated = 0;
  for (const { machineId, tasks } of allocations) {
    const state = machineById.get(machineId);
    if (state === undefined || !eligible.machines.includes(state)) return null;
    filling.put(state, tasks);
    allocated += tasks;
  }
  const pools = pickPools(eligible, ({ license }) => amountIn({ pools: promised }, license.id));
  if (pools === null) return null;
  const { placement } = filling;
  if (placement === null || allocated !== requirement.tasks) return null;
  const hold = holdOf(requirement, placement, pools);
  return {
    at,
    end: at + work / placement.benchmark,
    placement,
    pools,
    hold,
    work,
    limit: queue.limit(slot),
    requirement,
    madeAt,
    cycle: 0,
  };
}
