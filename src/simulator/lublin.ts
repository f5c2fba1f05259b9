/**
 * The workload model of Lublin and Feitelson (Journal of Parallel and Distributed Computing 63, 2003), with the parameters
 * for jobs of all types together. Sizes are two-stage uniform in their logarithm, run times hyper-gamma in theirs and
 * longer for larger jobs, times between arrivals gamma in theirs and stretched over a daily cycle.
 *
 * The model has no estimates: the run time is the estimate.
 */
import { plainJob, RandomStream } from '../core/index.js';
import { gamma } from './random.js';
import type { SimJob } from './workload.js';

const SERIAL = 0.244;
const POWER_OF_TWO = 0.576;
const SIZE = { low: 0.8, medBelowHigh: 2.5, probability: 0.86 };
const RUN = { a1: 4.2, b1: 0.94, a2: 312, b2: 0.03, pa: -0.0054, pb: 0.78, most: 12 };
/** Of the rush hours; `rushToAll` stretches them to the whole day. */
const ARRIVAL = { a: 10.2303, b: 0.4871, rushToAll: 1.0225, most: 13 };
/** How jobs spread over the day: gamma over half hours, from `firstBucket` on and around the clock. */
const DAY = { a: 8.1737, b: 3.9631, buckets: 48, firstBucket: 11, bucketS: 1800 };

/** Draws `count` jobs for a machine of `processors`, all for site 1. The same seed gives the same jobs. */
export function lublinJobs(seed: number, count: number, processors: number): SimJob[] {
  if (!(processors >= 2)) throw new Error(`processors is ${processors}; accepted: a whole number from 2`);
  const sizes = new RandomStream(seed, 'lublin-sizes');
  const runs = new RandomStream(seed, 'lublin-runs');
  const arrivals = new Arrivals(new RandomStream(seed, 'lublin-arrivals'));
  const jobs: SimJob[] = [];
  for (let id = 1; id <= count; id++) {
    const cpusPerTask = sizeOf(sizes, processors);
    const runS = runOf(runs, cpusPerTask);
    jobs.push({
      job: plainJob({
        id,
        submittedAt: arrivals.next(),
        estimateS: runS,
        cpusPerTask,
      }),
      sourceId: id,
      runS,
      limitS: runS,
      siteId: 1,
    });
  }
  return jobs;
}

function sizeOf(random: RandomStream, processors: number): number {
  const kind = random.next();
  if (kind < SERIAL) return 1;
  const high = Math.log2(processors);
  const middle = Math.max(SIZE.low, high - SIZE.medBelowHigh);
  const log =
    random.next() < SIZE.probability ? random.uniform(SIZE.low, middle) : random.uniform(middle, high);
  const size = Math.round(2 ** (kind < SERIAL + POWER_OF_TWO ? Math.round(log) : log));
  return Math.min(processors, Math.max(1, size));
}

/** Whole seconds, at least 1. */
function runOf(random: RandomStream, size: number): number {
  const p = Math.min(1, Math.max(0, RUN.pa * size + RUN.pb));
  for (;;) {
    const log = random.next() < p ? gamma(random, RUN.a1, RUN.b1) : gamma(random, RUN.a2, RUN.b2);
    if (log <= RUN.most) return Math.max(1, Math.floor(Math.exp(log)));
  }
}

/** A draw gives so many seconds of an average half hour; busy half hours pass them faster, quiet ones slower. */
class Arrivals {
  /** By half hour of the day: its share of the arrivals over the average one's. */
  private readonly weights: number[];
  private bucket = 0;
  /** The part of the present half hour that has passed. */
  private passed = 0;
  private days = 0;

  constructor(private readonly random: RandomStream) {
    const { a, b, buckets, firstBucket } = DAY;
    const weights = new Array<number>(buckets).fill(0);
    for (let i = firstBucket; i < firstBucket + buckets; i++) {
      // Simpson's rule over the half hour; only ratios matter, so the density needs no constant.
      const density = (x: number): number => x ** (a - 1) * Math.exp(-x / b);
      weights[(i - 1) % buckets] = (density(i - 0.5) + 4 * density(i) + density(i + 0.5)) / 6;
    }
    const mean = weights.reduce((sum, weight) => sum + weight, 0) / buckets;
    this.weights = weights.map((weight) => weight / mean);
  }

  /** Whole seconds from the beginning, which is midnight. */
  next(): number {
    let log: number;
    do log = gamma(this.random, ARRIVAL.a * ARRIVAL.rushToAll, ARRIVAL.b);
    while (log > ARRIVAL.most);
    let points = Math.exp(log) / DAY.bucketS + this.passed * this.weight;
    while (points > this.weight) {
      points -= this.weight;
      this.bucket++;
      if (this.bucket === DAY.buckets) {
        this.bucket = 0;
        this.days++;
      }
    }
    this.passed = points / this.weight;
    return Math.floor((this.days * DAY.buckets + this.bucket + this.passed) * DAY.bucketS);
  }

  private get weight(): number {
    return this.weights[this.bucket] as number;
  }
}
