/**
 * Estimates as users give them: the model of Tsafrir, Etsion and Feitelson ("Modeling User Runtime Estimates", JSSPP 2005), with the parameters of
 * its published program. Users round: twenty values, the maximum first among them, are the estimates of 89 % of the jobs. These are drawn as a
 * whole and then dealt to the jobs such that no job runs longer than its estimate.
 */
import { RandomStream } from '../core/index.js';
import type { SimJob } from './workload.js';

const MINUTE = 60;
const HOUR = 3600;
/** As many popular values as there are by rank of time below. */
const POPULAR = 20;
/** The part of the jobs that has one of these. */
const POPULAR_SHARE = 0.89;
/** Popular in all four traces of the paper, in minutes. */
const EVERYWHERE = [5, 10, 15, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 720, 1080];
/** What the others are multiples of, in this order and from the maximum down, minutes. */
const ROUND = [12_000, 6_000, 3_000, 600, 300, 120, 60, 20, 10, 5];
/**
 * The rank by popularity of the popular values, in order of time behind the maximum, which is the first: of the four traces (SDSC-106, CTC, KTH,
 * Blue).
 */
const RANKS = [
  ...[
    [3, 1, 1, 1],
    [1, 3, 4, 6],
    [4, 4, 10, 5],
    [17, 2, 14, 3],
    [13, 12, 20, 7],
  ],
  ...[
    [7, 9, 2, 2],
    [8, 8, 3, 18],
    [18, 18, 7, 19],
    [2, 6, 12, 4],
    [6, 7, 6, 11],
  ],
  ...[
    [16, 11, 19, 20],
    [10, 20, 5, 9],
    [5, 16, 18, 10],
    [15, 5, 16, 14],
    [14, 14, 9, 13],
  ],
  ...[
    [19, 13, 17, 16],
    [11, 10, 15, 15],
    [12, 15, 13, 17],
    [9, 17, 8, 8],
    [20, 19, 11, 12],
  ],
];
/** How many different values so many jobs have; straight lines between. */
const VALUES = [
  [0, 0],
  [20, 10],
  [200, 20],
  [1_000, 35],
  [10_000, 90],
  [70_000, 340],
  [250_000, 565],
] as const;
/** How far a rarer value is moved if it is taken already, s. */
const BESIDE = [0, 30, -30, 20, -20, 10, -10];

/** Below the first there are not twenty popular values; beyond the last nobody's limit is. */
export const MAX_ESTIMATE_S = { least: 2 * HOUR, most: 365 * 24 * HOUR, usual: 48 * HOUR };

/** How many of `jobs` jobs have which estimate (s), by estimate. The same seed draws the same. */
export function estimatesOf(seed: number, jobs: number, maxS: number): Map<number, number> {
  const random = new RandomStream(seed, 'user-estimates');
  const shares = new Map<number, number>();
  const ranks = popularRanks(random);
  for (const [i, time] of popularTimes(maxS).entries()) shares.set(time, popularShare(ranks[i] as number));
  const rare = rareTimes(Math.max(0, valuesOf(jobs) - POPULAR), maxS, shares);
  const sizes = rare.map((_, i) => 795.6 * (POPULAR + 1 + i) ** -2.267);
  const all = sizes.reduce((sum, size) => sum + size, 0);
  for (const [i, time] of shuffled(rare, random).entries())
    shares.set(time, ((1 - POPULAR_SHARE) * (sizes[i] as number)) / all);
  return dealt(shares, jobs);
}

/** Gives each job an estimate, which is its limit too. Throws if so many run so long that none is left for some. */
export function giveEstimates(jobs: SimJob[], seed: number, maxS: number): void {
  const estimates = Float64Array.from(
    [...estimatesOf(seed, jobs.length, maxS)].flatMap(([time, count]) => new Array<number>(count).fill(time)),
  )
    .sort()
    .reverse();
  const longest = [...jobs].sort((a, b) => b.runS - a.runS);
  const short = longest.findIndex(({ runS }, i) => runS > (estimates[i] as number));
  if (short >= 0)
    throw new Error(
      `estimates: ${short + 1} jobs run longer than ${estimates[short]} s, more than the model has estimates for with ` +
        `a maximum of ${maxS} s; accepted: a larger maximum`,
    );
  const random = new RandomStream(seed, 'user-estimates-dealt');
  let last = 0;
  for (const [i, one] of longest.entries()) {
    // From those that are long enough for it; the longest goes where the drawn one was, and is long enough for whoever comes.
    while (last + 1 < estimates.length && one.runS <= (estimates[last + 1] as number)) last++;
    const drawn = random.integer(i, last);
    const estimateS = estimates[drawn] as number;
    estimates[drawn] = estimates[i] as number;
    one.job = { ...one.job, estimateS };
    one.limitS = estimateS;
  }
}

/** The maximum, and behind it the others from the shortest on, s. */
function popularTimes(maxS: number): number[] {
  const times = new Set(EVERYWHERE.map((minutes) => minutes * MINUTE).filter((time) => time < maxS));
  times.delete(maxS);
  for (const minutes of ROUND) {
    const step = minutes * MINUTE;
    for (let time = Math.floor(maxS / step) * step; time > 0 && times.size < POPULAR - 1; time -= step)
      if (time !== maxS) times.add(time);
  }
  return [maxS, ...[...times].sort((a, b) => a - b)];
}

/** By popularity from 1, the part of the jobs: exponential, and the maximum has what is left. */
function popularShare(rank: number): number {
  const share = (rank: number): number => (14.0491 * Math.exp(-0.177531 * rank) + 0.462513) / 100;
  if (rank > 1) return share(rank);
  let others = 0;
  for (let other = 2; other <= POPULAR; other++) others += share(other);
  return POPULAR_SHARE - others;
}

/**
 * The rank by popularity of each popular value by its rank of time: drawn from those that this one and the ones before it have in the traces and
 * that are not taken, of two the more popular; at last the rank for which no later one would come.
 */
function popularRanks(random: RandomStream): number[] {
  const lastPlace = new Map(RANKS.flatMap((ranks, place) => ranks.map((rank) => [rank, place])));
  const chosen: number[] = [];
  let pool: number[] = [];
  for (const [place, ranks] of RANKS.entries()) {
    pool.push(...ranks);
    pool = pool.filter((rank) => !chosen.includes(rank));
    const due = pool.filter((rank) => (lastPlace.get(rank) as number) <= place);
    const draw = (): number => pool[random.integer(0, pool.length - 1)] as number;
    // The maximum is the most popular one.
    if (place === 0) chosen.push(1);
    else chosen.push(due.length > 0 ? Math.min(...due) : Math.min(draw(), draw()));
  }
  return chosen;
}

function valuesOf(jobs: number): number {
  const next = VALUES.findIndex(([upTo]) => jobs <= upTo);
  if (next < 0) return VALUES.at(-1)![1];
  const [[x0, y0], [x1, y1]] = [VALUES[Math.max(0, next - 1)]!, VALUES[next]!];
  return x1 === x0 ? y1 : Math.round(y0 + ((jobs - x0) * (y1 - y0)) / (x1 - x0));
}

/** Values beside the popular ones, s: most of them short. A place that is taken, with all beside it, stays empty. */
function rareTimes(count: number, maxS: number, taken: ReadonlyMap<number, unknown>): number[] {
  const a = 1 + 12.1039 * (count + POPULAR) ** -0.6026;
  const times = new Set<number>();
  for (let i = 1; i <= count; i++) {
    const x = i / count;
    const near = Math.round((((a - 1) * x) / (a - x)) * (maxS / MINUTE)) * MINUTE;
    const time = BESIDE.map((by) => near + by).find(
      (time) => time > 0 && time < maxS && !taken.has(time) && !times.has(time),
    );
    if (time !== undefined) times.add(time);
  }
  return [...times];
}

/** Parts as whole numbers whose sum is `jobs`: rounded down, and what is left goes to the largest rests. */
function dealt(shares: ReadonlyMap<number, number>, jobs: number): Map<number, number> {
  const sum = [...shares.values()].reduce((sum, share) => sum + share, 0);
  const parts = [...shares].map(([time, share]) => ({ time, exact: (jobs * share) / sum }));
  const counts = new Map(parts.map(({ time, exact }) => [time, Math.floor(exact)]));
  let left = jobs - [...counts.values()].reduce((sum, count) => sum + count, 0);
  for (const { time } of parts.sort((p, q) => (q.exact % 1) - (p.exact % 1) || q.time - p.time))
    if (left-- > 0) counts.set(time, (counts.get(time) as number) + 1);
  return counts;
}

function shuffled<T>(values: readonly T[], random: RandomStream): T[] {
  const mixed = [...values];
  for (let i = mixed.length - 1; i > 0; i--) {
    const j = random.integer(0, i);
    [mixed[i], mixed[j]] = [mixed[j] as T, mixed[i] as T];
  }
  return mixed;
}
