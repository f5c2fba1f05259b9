/**
 * How long jobs of ours lately waited at a site that schedules itself, from when they were given to it until they began, by shape: CPUs ×
 * time limit, in classes that are powers of four. The means weigh the latest runs the most. It is the best there is to know of the next
 * wait: others' queues tell little where schedulers have priorities, backfill, and time limits are several times what runs take.
 */
import { cpusOf, type Job, limitAt, type ObservedWait, type Site, type SiteLoad } from '../model.js';

/** The largest CPUs of each class; the last class has no largest. */
const CPUS_MAX = [1, 4, 16, 64, 256, 1024] as const;
/** The longest time limits, seconds: 4 minutes to 68 hours; the last class is longer, or without limit. */
const LIMIT_MAX_S = [240, 960, 3_840, 15_360, 61_440, 245_760] as const;
const LIMITS = LIMIT_MAX_S.length + 1;
const CELLS = (CPUS_MAX.length + 1) * LIMITS;

/** Runs of one shape that are looked at, the latest ones. */
const RUNS_MAX = 50;
/** What a run counts of the one that began after it. */
const DECAY = 0.9;

/** A run at such a site. */
export interface WaitOfRun {
  cpus: number;
  /** As it was given to that scheduler (`limitAt`); null: it has none. */
  limitS: number | null;
  /** Until it began, or so far. */
  waitS: number;
  began: boolean;
}

type Shape = Pick<WaitOfRun, 'cpus' | 'limitS'>;

const classIn = (bounds: readonly number[], value: number): number => {
  const at = bounds.findIndex((bound) => value <= bound);
  return at === -1 ? bounds.length : at;
};

const cellOf = ({ cpus, limitS }: Shape): number =>
  classIn(CPUS_MAX, cpus) * LIMITS + classIn(LIMIT_MAX_S, limitS ?? Infinity);

/**
 * Of runs in the order in which they began, the latest first. Those that have not begun count as soon as they have waited for longer than
 * the mean of their shape: a queue that stands still is not forgotten for lack of starts.
 */
export function observedWaits(runs: Iterable<WaitOfRun>): ObservedWait[] {
  const begun = new Map<number, number[]>();
  const waiting = new Map<number, number[]>();
  for (const run of runs) {
    const cell = cellOf(run);
    const lists = run.began ? begun : waiting;
    const list = lists.get(cell);
    if (list === undefined) lists.set(cell, [run.waitS]);
    else if (!run.began || list.length < RUNS_MAX) list.push(run.waitS);
  }
  const found: ObservedWait[] = [];
  for (let cell = 0; cell < CELLS; cell++) {
    const seen = begun.get(cell) ?? [];
    const mean = decaying(seen);
    const longer = (waiting.get(cell) ?? []).filter((waitS) => waitS > mean).sort((a, b) => b - a);
    const waits = [...longer, ...seen].slice(0, RUNS_MAX);
    if (waits.length === 0) continue;
    found.push({
      cpusMax: CPUS_MAX[Math.floor(cell / LIMITS)] ?? null,
      limitMaxS: LIMIT_MAX_S[cell % LIMITS] ?? null,
      runs: waits.length,
      // No more digits than it is worth: schedulers are told when it changes.
      waitS: Number(decaying(waits).toPrecision(2)),
    });
  }
  return found;
}

/** 0 for none. */
function decaying(waits: readonly number[]): number {
  let sum = 0;
  let weights = 0;
  let weight = 1;
  for (const wait of waits) {
    sum += weight * wait;
    weights += weight;
    weight *= DECAY;
  }
  return weights === 0 ? 0 : sum / weights;
}

/** By load: what is expected of each class. */
const known = new WeakMap<SiteLoad, readonly ObservedWait[]>();

/**
 * What was seen of the job's class, or else of the class that is nearest, of two as near the larger one: null where no run of ours was
 * seen.
 */
export function observedFor(
  site: Pick<Site, 'load' | 'maxLimitS'>,
  job: Pick<Job, 'tasks' | 'cpusPerTask' | 'parts' | 'runTimeLimitS'>,
) {
  const { load } = site;
  if (!load?.waits?.length) return null;
  const { waits } = load;
  let nearest = known.get(load);
  if (nearest === undefined) {
    nearest = Array.from({ length: CELLS }, (_, cell) => nearestTo(cell, waits));
    known.set(load, nearest);
  }
  return nearest[cellOf({ cpus: cpusOf(job), limitS: limitAt(job, site) })] as ObservedWait;
}

function nearestTo(cell: number, waits: readonly ObservedWait[]): ObservedWait {
  let best = waits[0] as ObservedWait;
  let distance = Infinity;
  for (const wait of waits) {
    const other = cellOf({ cpus: wait.cpusMax ?? Infinity, limitS: wait.limitMaxS });
    const far =
      Math.abs(Math.floor(other / LIMITS) - Math.floor(cell / LIMITS)) +
      Math.abs((other % LIMITS) - (cell % LIMITS));
    if (far > distance) continue;
    best = wait;
    distance = far;
  }
  return best;
}

/** Over all shapes, each run as much; null where no run of ours was seen. */
export function observedMeanS({ waits = [] }: SiteLoad): number | null {
  const runs = waits.reduce((sum, wait) => sum + wait.runs, 0);
  return runs === 0 ? null : waits.reduce((sum, wait) => sum + wait.waitS * wait.runs, 0) / runs;
}
