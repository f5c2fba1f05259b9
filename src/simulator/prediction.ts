/**
 * Run times predicted from runs that have ended, never more than what the job asks for.
 *
 * A run that outlasts its prediction gets a longer one, by steps (the idea is that of Tsafrir, Etsion and Feitelson, which step is
 * ours). Without that it would count as ending now at every look, jobs would be backfilled on processors that do not come
 * free, and the first of the queue would starve.
 */
import { cpusOf, type Job } from '../core/index.js';
import type { EstimateSource, SimJob } from './workload.js';

export interface Predictor {
  /** Seconds that the job is expected to run. It says in `estimateS` what it asks for. */
  estimate(job: Job): number;
  /** A job has ended after so many seconds, > 0. */
  ended(job: Job, runS: number): void;
}

/** What predicts for a source of estimates; null: nothing does. */
export function predictorOf(source: EstimateSource): Predictor | null {
  if (source === 'predicted') return new LastTwo();
  return source === 'regression' ? new Regression() : null;
}

/** What is known of a user's runs that have ended. */
interface Known {
  last: number;
  /** Before the last; the last again while there is one only. */
  before: number;
  mean: number;
  runs: number;
}

class History {
  private readonly byUser = new Map<number, Known>();

  of(userId: number): Known | undefined {
    return this.byUser.get(userId);
  }

  ended(userId: number, runS: number): void {
    const known = this.byUser.get(userId);
    const runs = (known?.runs ?? 0) + 1;
    const mean = (known?.mean ?? 0) + (runS - (known?.mean ?? 0)) / runs;
    this.byUser.set(userId, { last: runS, before: known?.last ?? runS, mean, runs });
  }
}

/** The mean of the user's last two (Tsafrir, Etsion, Feitelson, IEEE TPDS 18(6), 2007). A user without history is believed. */
export class LastTwo implements Predictor {
  private readonly history = new History();

  estimate({ userId, estimateS }: Job): number {
    const known = this.history.of(userId);
    return known === undefined ? estimateS : Math.min(estimateS, (known.last + known.before) / 2);
  }

  ended({ userId }: Job, runS: number): void {
    this.history.ended(userId, runS);
  }
}

/**
 * Least squares over all jobs that have ended, kept up job by job (recursive least squares): the part of what a job asks for that it
 * runs, from the user's last run time, the one before and their mean as such parts (at most 1, and 1 for a user without
 * history), and the logarithm of its processors. It begins with believing users. That a regression learns as it goes is the
 * idea of Gaussier et al. (SC 2015); what it looks at and its loss are ours.
 */
export class Regression implements Predictor {
  private readonly history = new History();
  private readonly weights = new Float64Array(FEATURES);
  /** The inverse of the features' matrix, by rows. */
  private readonly inverse = new Float64Array(FEATURES * FEATURES);
  private readonly gain = new Float64Array(FEATURES);
  /** By job: its features when it was submitted. */
  private readonly seen = new Map<number, Float64Array>();

  constructor() {
    this.weights[0] = 1;
    for (let i = 0; i < FEATURES; i++) this.inverse[i * FEATURES + i] = 1;
  }

  estimate(job: Job): number {
    const { id, estimateS } = job;
    const features = this.featuresOf(job);
    this.seen.set(id, features);
    const least = Math.min(1, estimateS);
    return Math.min(estimateS, Math.max(least, estimateS * this.predicted(features)));
  }

  ended({ id, userId, estimateS }: Job, runS: number): void {
    this.history.ended(userId, runS);
    const features = this.seen.get(id);
    if (features === undefined) return;
    this.seen.delete(id);
    const { weights, inverse, gain } = this;
    let scale = 1;
    for (let i = 0; i < FEATURES; i++) {
      let sum = 0;
      for (let j = 0; j < FEATURES; j++) sum += at(inverse, i * FEATURES + j) * at(features, j);
      gain[i] = sum;
      scale += sum * at(features, i);
    }
    const error = Math.min(1, runS / estimateS) - this.predicted(features);
    for (let i = 0; i < FEATURES; i++) {
      weights[i] = at(weights, i) + (at(gain, i) * error) / scale;
      for (let j = 0; j < FEATURES; j++) {
        const index = i * FEATURES + j;
        inverse[index] = at(inverse, index) - (at(gain, i) * at(gain, j)) / scale;
      }
    }
  }

  private featuresOf(job: Job): Float64Array {
    const { userId, estimateS } = job;
    const known = this.history.of(userId);
    const part = (seconds: number | undefined): number => Math.min(1, (seconds ?? estimateS) / estimateS);
    const width = Math.log(cpusOf(job)) / 5;
    return Float64Array.of(1, part(known?.last), part(known?.before), part(known?.mean), width);
  }

  private predicted(features: Float64Array): number {
    let sum = 0;
    for (let i = 0; i < FEATURES; i++) sum += at(this.weights, i) * at(features, i);
    return sum;
  }
}

const FEATURES = 5;
const at = (values: Float64Array, index: number): number => values[index] as number;

/**
 * Seconds in all that a run is expected to take which has outlasted `ranS`: longer by at least as much as it was wrong,
 * from a minute to hours. Null: it has had what it asked for, and nothing is known any more.
 */
export function correctedS(ranS: number, requestedS: number): number | null {
  if (ranS >= requestedS) return null;
  const step = STEPS_S.find((seconds) => seconds >= ranS) ?? LONGEST_STEP_S;
  return Math.min(requestedS, ranS + step);
}

const MINUTE = 60;
const HOUR = 3600;
const LONGEST_STEP_S = 100 * HOUR;
/** A step is the first of these that is as long as the run has been. */
const STEPS_S = [
  MINUTE,
  5 * MINUTE,
  15 * MINUTE,
  30 * MINUTE,
  HOUR,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  20 * HOUR,
  50 * HOUR,
];

/** How good estimates were that jobs had when they were submitted. */
export interface EstimateError {
  jobs: number;
  /** Mean of |estimate - run time|, in seconds. */
  meanAbsoluteS: number;
  /** Mean of the smaller over the larger of estimate and run time (Tsafrir et al.): 1 is perfect. */
  accuracy: number;
  /** Part of the jobs that ran longer than estimated. */
  underestimated: number;
}

/** Adds up errors of estimates. */
export class EstimateErrors {
  private jobs = 0;
  private absoluteS = 0;
  private accuracy = 0;
  private under = 0;

  add(estimateS: number, runS: number): void {
    this.jobs++;
    this.absoluteS += Math.abs(estimateS - runS);
    this.accuracy += Math.min(estimateS, runS) / Math.max(estimateS, runS);
    if (runS > estimateS) this.under++;
  }

  get summary(): EstimateError {
    const { jobs } = this;
    const mean = (sum: number): number => (jobs === 0 ? 0 : sum / jobs);
    return {
      jobs,
      meanAbsoluteS: mean(this.absoluteS),
      accuracy: mean(this.accuracy),
      underestimated: mean(this.under),
    };
  }
}

/** A predictor whose first estimate of each job is compared with how long that really runs. */
export class Measured implements Predictor {
  readonly errors = new EstimateErrors();

  constructor(
    private readonly inner: Predictor,
    private readonly jobs: readonly SimJob[],
  ) {}

  estimate(job: Job): number {
    const estimateS = this.inner.estimate(job);
    const { runS, limitS } = this.jobs[job.id - 1] as SimJob;
    this.errors.add(estimateS, Math.min(runS, limitS ?? Infinity));
    return estimateS;
  }

  ended(job: Job, runS: number): void {
    this.inner.ended(job, runS);
  }
}
