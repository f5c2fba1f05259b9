/**
 * With which limit a job would start now, and when it starts at the latest (resources.md, "Holds in the future"): by what runs, by what is
 * held, and by the starts that the site's policy promises to others.
 */
import type { Grid, SiteEntry } from '../grid/grid.js';
import {
  alikeIn,
  amountIn,
  type EligibleMachines,
  type Hold,
  type MachineState,
  type PoolState,
  type RunState,
} from '../grid/site-resources.js';
import { fieldsOf } from '../lean-jobs.js';
import { siteCycle } from '../local/cycle.js';
import { SitePasses } from '../local/pass.js';
import { handOverLimit, imageOf, promisesFrom } from '../local/registry.js';
import {
  type Allocation,
  type Held,
  type Job,
  limitAt,
  type PoolAmount,
  type Reservation,
  type Run,
  type Start,
} from '../model.js';
import { localPolicyOf, type Policy } from '../policy.js';
import { type Column, columnOf, shift } from '../resources/column.js';
import { Claims, isOlder, PoolsInMind } from '../resources/licenses.js';
import { allocationsOf, amountsOf } from '../resources/placement.js';
import { Profile } from '../resources/profile.js';
import { copyOf, type PredictedStart, QUEUE_MAX, STARTS_MAX } from './ahead.js';

interface Context {
  now: number;
  policy: Policy;
}

type Promised = Pick<Reservation, 'jobId' | 'at' | 'allocations' | 'pools'>;

/** What the next look of the site's policy comes to. */
interface Look {
  starts: boolean;
  /** To other jobs, those among them that start now. */
  promised: readonly Promised[];
}

/**
 * The next look of the policy, with the job as it is given, in the queue or at its end. `held`: beside what ends by certain edges.
 * Null: too many jobs wait for this to be worked out, or the site is not up.
 */
function nextLook(
  grid: Grid,
  entry: SiteEntry,
  job: Job,
  { now, policy }: Context,
  held = true,
): Look | null {
  const { site, queue, memory } = entry;
  if (site.state !== 'UP' || queue.length > QUEUE_MAX) return null;
  const copy = copyOf(entry, grid, job, true);
  if (!held) {
    const windows = [...copy.held.values()].filter(({ ends }) => ends === 'LIMIT');
    copy.removeHeld(...windows.map(({ id }) => id));
  }
  takeLicensesElsewhere(copy, grid, entry, job, now);
  const image = imageOf(memory);
  if (image !== null) {
    // With another limit the job is another one, to which nothing was promised.
    const isAnother = grid.limitOf(job.id) !== limitAt(job, site);
    const jobs = isAnother ? image.jobs.filter(({ jobId }) => jobId !== job.id) : image.jobs;
    const local = localPolicyOf(site, policy);
    copy.keepMemory(site.id, promisesFrom(copy, site.id, local, { ...image, jobs }, now));
  }
  const there = copy.siteEntry(site.id);
  if (there.reservation?.jobId === job.id) copy.setReservation(site.id, null);
  const passes = new SitePasses();
  const accept = ({ jobId, siteId, allocations, pools, plannedDuration }: Start): Run => ({
    ...{ jobId, siteId, allocations, pools, epoch: 0, start: now, plannedEnd: now + plannedDuration },
  });
  const started: Promised[] = [];
  for (;;) {
    const plan = siteCycle(copy, site.id, {
      ...{ now, policy, policyVersion: 0, maxStarts: STARTS_MAX, countWaiting: false, explain: false },
      ...{ accept, passes },
    });
    if (plan.starts.some(({ jobId }) => jobId === job.id)) return { starts: true, promised: [] };
    for (const { jobId, allocations, pools } of plan.starts)
      started.push({ jobId, at: now, allocations, pools });
    copy.setReservation(site.id, plan.reservation);
    copy.keepMemory(site.id, plan.memory);
    if (plan.truncated && plan.starts.length > 0) continue;
    const { reservation, memory: kept } = plan;
    const known = promisesOf({ memory: kept, reservation }, job);
    const further = passes.of(copy, there).further.map(({ slot, opening: { at, placement, pools } }) => ({
      ...{ jobId: there.queue.ids[slot] as number, at },
      ...{ allocations: allocationsOf(placement), pools: amountsOf(pools) },
    }));
    return {
      starts: false,
      promised: [...started, ...known, ...further.filter(({ jobId }) => jobId !== job.id)],
    };
  }
}

/** What is kept as promised to other jobs than this. */
function promisesOf(
  { memory, reservation }: Pick<SiteEntry, 'memory' | 'reservation'>,
  job: Job,
): readonly Promised[] {
  const promised = imageOf(memory)?.jobs ?? (reservation === null ? [] : [reservation]);
  return promised.filter(({ jobId }) => jobId !== job.id);
}

/** An instant later: so long at least others have what they have now, though by plan it is over. */
const LEAST_S = 1e-3;

/** Copies that runs and reservations of other sites have of the licenses that matter, as holds of the copy, which knows one site only. */
function takeLicensesElsewhere(copy: Grid, grid: Grid, entry: SiteEntry, job: Job, now: number): void {
  if (!grid.sharesLicenses) return;
  const { site, reservation } = entry;
  const own = reservation?.jobId === job.id ? reservation : null;
  const taken: Pick<Held, 'from' | 'to' | 'pools'>[] = [];
  for (const { site: other, resources } of grid.sites)
    if (other.id !== site.id)
      for (const { run, end } of resources.runs)
        if (run.pools.length > 0)
          taken.push({ from: -Infinity, to: Math.max(end, now + LEAST_S), pools: run.pools });
  for (const claim of new Claims(grid, site.id, new PoolsInMind(now)).others)
    if (own === null || isOlder(claim, own))
      taken.push({ from: claim.at, to: claim.end, pools: claim.pools });
  if (taken.length === 0) return;
  const first = Math.min(0, ...copy.held.keys()) - 1;
  copy.setHeld(
    ...taken.map((one, i) => ({
      ...{ id: first - i, by: 'OTHERS' as const, ends: 'EXPECTATION' as const, machines: [] },
      ...one,
    })),
  );
}

/** What keeps a job from starting now that it fits beside what runs. */
interface Reserved {
  /** The longest limit below its own with which it would start now, seconds; null: none. */
  fitsIfLimitS: number | null;
  /** What keeps it from a longer one is held for certain: by a window, a reservation, or room that preemption makes. Else it is a promise. */
  byHold: boolean;
}

/** What is known of the start of a job at a site beside its expected time. */
export interface Bounds {
  /**
   * When it starts at the latest if every run, and every job to which a start is promised, takes as long as its limit, and nothing new goes
   * ahead; null: never, or a run without a limit is in the way. Nor is it known of sites that are not up, have a scheduler of their own or a
   * limit of runs, or let runs slow each other down, or where jobs to which nothing is promised are planned ahead of it.
   */
  latest: number | null;
  /** null: it starts now, or it is not what begins later that keeps it, or too many jobs wait for this to be worked out. */
  reserved: Reserved | null;
}

/** Of a job that is in the queue of the site, or of a reservation there, or would come to its end now. `start`: as it is predicted there. */
export function boundsOf(
  grid: Grid,
  entry: SiteEntry,
  job: Job,
  context: Context,
  start: PredictedStart | null,
): Bounds {
  const look = nextLook(grid, entry, job, context);
  const latest = latestStart(grid, entry, job, context, look);
  return {
    latest: latest !== null && start !== null && start.at > latest ? null : latest,
    reserved: look === null || look.starts ? null : reservedFor(grid, entry, job, context, look.promised),
  };
}

/**
 * Only distances to beginnings are tried, and where machines differ in power those by which the job would take longer on a weaker one. By
 * halves: where it starts with a limit, it does with a shorter one. (For tasks that are to be alike, or so many on a machine, choosing
 * other machines may make an exception; then what is found is one of the limits with which it starts, maybe not the longest.)
 */
function reservedFor(
  grid: Grid,
  entry: SiteEntry,
  job: Job,
  context: Context,
  promised: readonly Promised[],
): Reserved | null {
  const { now } = context;
  const limit = limitAt(job, entry.site);
  const { machines, pools } = entry.resources.eligible(grid.requirementOf(job).signature);
  const holds = [entry.resources, ...pools.flatMap(({ of }) => of)].flatMap((one) => one.holds);
  const claims = pools.length === 0 ? [] : new Claims(grid, entry.site.id, new PoolsInMind(now)).others;
  const begins = [
    ...holds.map(({ from }) => from),
    ...promised.map(({ at }) => at),
    ...claims.map(({ at }) => at),
  ];
  const best = entry.resources.bestBenchmark;
  const slower = new Set(
    machines.map(({ machine: { benchmark } }) => benchmark / best).filter((ratio) => ratio < 1),
  );
  const lengths = new Set<number>();
  for (const length of begins.map((at) => at - now).filter((one) => one > 0)) {
    lengths.add(length);
    for (const ratio of slower) lengths.add(Math.floor(length * ratio * 1000) / 1000);
  }
  const tried = [...lengths].filter((length) => length > 0 && length < limit).sort((a, b) => a - b);
  const startsWith = (length: number, held: boolean): boolean =>
    nextLook(grid, entry, { ...fieldsOf(job), runTimeLimitS: length }, context, held)?.starts ?? false;
  let fits = 0;
  for (let end = tried.length; fits < end; ) {
    const middle = (fits + end + 1) >>> 1;
    if (startsWith(tried[middle - 1] as number, true)) fits = middle;
    else end = middle - 1;
  }
  const fitsIfLimitS = fits === 0 ? null : (tried[fits - 1] as number);
  const certain = holds.some((hold) => hold.certain && hold.to > now);
  const byHold = certain && startsWith(tried[fits] ?? limit, false);
  return fitsIfLimitS === null && !byHold ? null : { fitsIfLimitS, byHold };
}

function latestStart(
  grid: Grid,
  entry: SiteEntry,
  job: Job,
  context: Context,
  look: Look | null,
): number | null {
  const { now, policy } = context;
  const { resources, site } = entry;
  if (handOverLimit(localPolicyOf(site, policy)) !== null || !resources.foreseeable) return null;
  if (site.state !== 'UP') return null;
  if (look?.starts) return now;
  const promises = look?.promised ?? promisesOf(entry, job);
  const profile = new Profile(resources, now);
  const requirement = grid.requirementOf(job);
  const eligible = resources.eligible(requirement.signature);
  // Past its limit it has its grace (`Grid.advance`).
  const latestEnd = ({ run: { start }, jobId, end }: RunState): number =>
    Math.max(start + grid.limitOf(jobId), end, now);
  for (const pool of new Set(eligible.pools.flatMap(({ of }) => of)))
    profile.addPool(pool, copiesAtLatest(grid, entry, pool, now, latestEnd));
  // All are edges now, with the limit of the job: on any machine it takes as long.
  for (const run of resources.runs) profile.take({ ...run, licenses: [] }, now, latestEnd(run), true);
  for (const { hold, run } of heldBeneath(grid, entry)) profile.take(hold, now, latestEnd(run), true);
  for (const hold of resources.holds) profile.take(hold, hold.from, hold.to, true);
  const machineById = new Map(resources.machines.map((state) => [state.machine.id, state]));
  for (const { jobId, at, allocations, pools } of promises) {
    const promised = grid.job(jobId);
    if (promised === null) continue;
    const from = Math.max(at, now);
    profile.take(
      heldBy(grid, promised, allocations, pools, machineById, eligible),
      from,
      from + grid.limitOf(jobId),
      true,
    );
  }
  const limit = limitAt(job, site);
  const weakest = Math.min(...eligible.machines.map(({ machine }) => machine.benchmark), Infinity);
  return profile.earliestOpening(requirement, eligible, limit * weakest, limit)?.at ?? null;
}

/** What a promised job will hold. */
function heldBy(
  grid: Grid,
  job: Job,
  allocations: readonly Allocation[],
  pools: readonly PoolAmount[],
  machineById: ReadonlyMap<number, MachineState>,
  eligible: EligibleMachines,
): Hold {
  const placed = allocations.flatMap(({ machineId, tasks }) => {
    const state = machineById.get(machineId);
    return state === undefined ? [] : [{ state, tasks }];
  });
  const licenses = eligible.pools
    .flatMap(({ of }) => of)
    .map((pool) => ({ pool, copies: amountIn({ pools }, pool.license.id) }))
    .filter(({ copies }) => copies > 0);
  return holdOn(placed, grid.requirementOf(job), licenses);
}

/** The copies of a pool, if those who have them, and other sites' reservations, keep them up to their limits. */
function copiesAtLatest(
  grid: Grid,
  { site }: SiteEntry,
  { license, holders, holds }: PoolState,
  now: number,
  latestEnd: (run: RunState) => number,
): Column {
  const column = columnOf(license.copies);
  const take = (from: number, to: number, of: { readonly pools: readonly PoolAmount[] }): void => {
    shift(column, from, to, -amountIn(of, license.id), true);
  };
  for (const holder of holders) take(now, latestEnd(holder), holder.run);
  for (const { from, to, licenses } of holds)
    for (const { pool, copies } of licenses)
      if (pool.license.id === license.id) shift(column, from, to, -copies, true);
  for (const { site: other, reservation } of grid.sites) {
    if (reservation === null || other.id === site.id) continue;
    const from = Math.max(reservation.at, now);
    take(from, from + grid.limitOf(reservation.jobId), reservation);
  }
  return column;
}

/**
 * Of a reservation: what runs have of its machines that are not in it, as they were there before it began. (Of parts of machines it is not
 * known whether they have these or the rest.)
 */
function heldBeneath(grid: Grid, { part, site, resources }: SiteEntry): { hold: Hold; run: RunState }[] {
  if (part === null) return [];
  const own = new Map(resources.machines.filter((one) => !one.isPart).map((one) => [one.machine.id, one]));
  return grid.siteEntry(site.id).resources.runs.flatMap((run) =>
    alikeIn(run).map(({ machines, tasks, each }) => {
      const on = machines.flatMap(({ machine }, i) => {
        const state = own.get(machine.id);
        return state === undefined ? [] : [{ state, tasks: tasks[i] as number }];
      });
      return { run, hold: holdOn(on, each, []) };
    }),
  );
}

const holdOn = (
  on: readonly { state: MachineState; tasks: number }[],
  each: Hold['each'],
  licenses: Hold['licenses'],
): Hold => ({ machines: on.map(({ state }) => state), tasks: on.map(({ tasks }) => tasks), each, licenses });

/** The same as numbers, of a job that waits there or would come there now: see `Bounds`. */
export function startBounds(
  grid: Grid,
  siteId: number,
  job: Job,
  context: Context,
  start: PredictedStart | null,
): { startsAtLatest: number | null; fitsIfLimitS: number | null } {
  const entry = grid.reservedSite(job) ?? grid.siteEntry(siteId);
  const { latest, reserved } = boundsOf(grid, entry, job, context, start);
  return { startsAtLatest: latest, fitsIfLimitS: reserved?.fitsIfLimitS ?? null };
}
