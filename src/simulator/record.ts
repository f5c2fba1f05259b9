/**
 * What the pictures of a simulation show, small whatever the trace is: the distribution of the waits, means over bins of
 * time, and the rectangles of a window. Plain values, so that a thread can hand it over.
 */
import { cpusOf, type Run } from '../core/index.js';
import type { World } from './engine.js';
import { type Intervals, joined, Processors, type Taken } from './processors.js';
import type { MemorySink, Sink } from './sink.js';
import { computingS } from './statistics.js';
import type { SimJob } from './workload.js';

export interface PlotRecord {
  waits: WaitStep[];
  usage: Usage;
  gantt: Gantt;
}

/** So many percent of the jobs that ended had waited at most `waitS`. */
export interface WaitStep {
  waitS: number;
  percent: number;
}

/** Means over bins of equal width from the first submission on; the last bin ends with the last job. */
export interface Usage {
  fromS: number;
  toS: number;
  binS: number;
  bins: {
    /** Of the processors that there are. */
    utilizationPercent: number;
    queuedJobs: number;
    /** CPUs that the queued jobs ask for. */
    queuedCpus: number;
  }[];
}

/**
 * A part of the trace's time. An end that is null is `DEFAULT_WINDOW_S` from the other; when both are, the window begins
 * with the job in the middle of the trace, or with the first if all are submitted within such a window.
 */
export interface GanttWindow {
  fromS: number | null;
  toS: number | null;
}

/** Who had which processors in a window of time. */
export interface Gantt {
  fromS: number;
  toS: number;
  sites: { name: string; processors: number }[];
  /**
   * By start, at most `MAX_BARS`: from the first to the last of the processors of `sites[site]`, from 0, and when, cut at the
   * ends of the window.
   */
  bars: { site: number; job: number; first: number; last: number; startS: number; endS: number }[];
  /** Jobs that ran in the window that was asked for and have no bar, because there would be more than `MAX_BARS`. */
  leftOut: number;
}

/** Steps of 0.2 % at the least: finer than a pixel. */
const WAIT_STEPS = 500;
const MAX_BINS = 500;
export const MAX_BARS = 2000;
export const DEFAULT_WINDOW_S = 86_400;

/** Widths of bins, in seconds: parts of a minute, an hour, a day, and days; beyond, whole weeks. */
const BIN_WIDTHS_S: readonly number[] = [
  ...[1, 2, 5, 10, 15, 30],
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60),
  ...[1, 2, 3, 6, 12, 24, 48].map((hours) => hours * 3600),
];
const WEEK_S = 604_800;

/** By job: NaN for one that never started, or never ended. */
type Times = Pick<MemorySink, 'starts' | 'ends'>;

/** Of a run on `processors` CPUs in all, some of them perhaps `timeShared` (see `summarize`). */
export function plotRecord(
  jobs: readonly SimJob[],
  times: MemorySink,
  processors: number,
  gantt: GanttSink,
  timeShared = false,
): PlotRecord {
  const cpusInUse: CpusInUse = (simJob, i) => {
    const cpus = cpusOf(simJob.job);
    if (!timeShared) return cpus;
    return (cpus * computingS(simJob)) / ((times.ends[i] as number) - (times.starts[i] as number));
  };
  const usage = usageOf(jobs, times, processors, cpusInUse, spanOf(jobs, times));
  return { waits: waitSteps(jobs, times), usage, gantt: gantt.gantt(usage.toS) };
}

function waitSteps(jobs: readonly SimJob[], { starts, ends }: MemorySink): WaitStep[] {
  const waits = starts
    .map((start, i) => start - (jobs[i] as SimJob).job.submittedAt)
    .filter((_, i) => ended(ends, i));
  waits.sort();
  const steps: WaitStep[] = [];
  let told = 0;
  for (let i = 1; i <= waits.length; i++) {
    const waitS = waits[i - 1] as number;
    const last = i === waits.length;
    if (!last && (waits[i] === waitS || i - told < waits.length / WAIT_STEPS)) continue;
    steps.push({ waitS, percent: (100 * i) / waits.length });
    told = i;
  }
  return steps;
}

const ended = (ends: Float64Array, index: number): boolean => !Number.isNaN(ends[index]);

/** CPU-seconds that a job takes in each second of its run. */
type CpusInUse = (job: SimJob, index: number) => number;

/** When the first job was submitted, and when the last one ended, by time. */
export function spanOf(jobs: readonly SimJob[], { ends }: Times): [fromS: number, toS: number] {
  const fromS = jobs[0]?.job.submittedAt ?? 0;
  return [fromS, ends.reduce((last, end) => (end > last ? end : last), fromS)];
}

/** Over at most `binsMax` bins of that time. A job that never ended waits to the end of it. */
export function usageOf(
  jobs: readonly SimJob[],
  { starts, ends }: Times,
  processors: number,
  cpusInUse: CpusInUse,
  [fromS, toS]: readonly [number, number],
  binsMax = MAX_BINS,
): Usage {
  const binS =
    BIN_WIDTHS_S.find((width) => toS - fromS <= binsMax * width) ??
    WEEK_S * Math.ceil((toS - fromS) / WEEK_S / binsMax);
  const [used, queuedJobs, queuedCpus] = [0, 1, 2].map(() => new TimeBins(fromS, toS, binS)) as [
    TimeBins,
    TimeBins,
    TimeBins,
  ];
  jobs.forEach((simJob, i) => {
    const { job } = simJob;
    const cpus = cpusOf(job);
    const startS = ended(ends, i) ? (starts[i] as number) : toS;
    queuedJobs.add(job.submittedAt, startS, 1);
    queuedCpus.add(job.submittedAt, startS, cpus);
    if (!ended(ends, i)) return;
    const endS = ends[i] as number;
    used.add(startS, endS, cpusInUse(simJob, i));
  });
  const [usedMeans, jobMeans, cpuMeans] = [used.means(), queuedJobs.means(), queuedCpus.means()];
  return {
    fromS,
    toS,
    binS,
    bins: usedMeans.map((mean, i) => ({
      utilizationPercent: (100 * mean) / processors,
      queuedJobs: jobMeans[i] as number,
      queuedCpus: cpuMeans[i] as number,
    })),
  };
}

/** Sums values that hold for a while, by bins of time. */
class TimeBins {
  private readonly count: number;
  /** What begins or ends within the bin. */
  private readonly partly: Float64Array;
  /** By how much the sum of what fills a whole bin differs from the bin before. */
  private readonly change: Float64Array;

  constructor(
    private readonly fromS: number,
    private readonly toS: number,
    private readonly widthS: number,
  ) {
    this.count = Math.ceil((toS - fromS) / widthS);
    this.partly = new Float64Array(this.count + 1);
    this.change = new Float64Array(this.count + 2);
  }

  /** `value` holds from `startS` to `endS`. */
  add(startS: number, endS: number, value: number): void {
    const until = Math.min(endS, this.toS);
    if (!(until > startS)) return;
    const first = Math.floor((startS - this.fromS) / this.widthS);
    const last = Math.floor((until - this.fromS) / this.widthS);
    increase(this.partly, first, value * (Math.min(until, this.begin(first + 1)) - startS));
    if (last === first) return;
    increase(this.partly, last, value * (until - this.begin(last)));
    increase(this.change, first + 1, value);
    increase(this.change, last, -value);
  }

  means(): number[] {
    let whole = 0;
    return Array.from({ length: this.count }, (_, i) => {
      whole += this.change[i] as number;
      const lengthS = Math.min(this.begin(i + 1), this.toS) - this.begin(i);
      // Between fractions of seconds, rounding may leave a last bin of no length.
      return lengthS > 0 ? whole + (this.partly[i] as number) / lengthS : whole;
    });
  }

  private begin(bin: number): number {
    return this.fromS + bin * this.widthS;
  }
}

function increase(values: Float64Array, index: number, by: number): void {
  values[index] = (values[index] as number) + by;
}

/** A run that has not ended. */
interface Open {
  taken: Taken;
  /** Its bars; null: it is left out. */
  bars: Intervals | null;
}

function defaultFromS(jobs: readonly SimJob[]): number {
  const submitted = (index: number): number => jobs[index]?.job.submittedAt ?? 0;
  const whole = submitted(jobs.length - 1) - submitted(0) <= DEFAULT_WINDOW_S;
  return submitted(whole ? 0 : Math.floor(jobs.length / 2));
}

/** Draws up who has which processors in a window. Keeps the runs of the moment and the bars, nothing else. */
export class GanttSink implements Sink {
  private readonly processors: Processors;
  /** By their ids, as processors are numbered. */
  private readonly sites: { id: number; name: string; firstProcessor: number; processors: number }[];
  private readonly siteIndex: ReadonlyMap<number, number>;
  private readonly open = new Map<number, Open>();
  private readonly bars: Gantt['bars'] = [];
  private openBars = 0;
  private leftOut = 0;
  /** When a job was left out last; once that is in the window, the window ends there. */
  private cutS: number | null = null;
  private readonly fromS: number;
  private readonly toS: number;

  constructor(
    world: World,
    private readonly window: GanttWindow,
    jobs: readonly SimJob[],
  ) {
    this.processors = new Processors(world);
    const { fromS, toS } = window;
    this.fromS = fromS ?? (toS === null ? defaultFromS(jobs) : Math.max(0, toS - DEFAULT_WINDOW_S));
    this.toS = toS ?? this.fromS + DEFAULT_WINDOW_S;
    let firstProcessor = 0;
    this.sites = [...world.sites]
      .sort((a, b) => a.id - b.id)
      .map(({ id, name }) => {
        const machines = world.machines.filter(({ siteId }) => siteId === id);
        const site = {
          id,
          name,
          firstProcessor,
          processors: machines.reduce((sum, { cpus }) => sum + cpus, 0),
        };
        firstProcessor += site.processors;
        return site;
      });
    this.siteIndex = new Map(this.sites.map(({ id }, i) => [id, i]));
  }

  started({ job }: SimJob, index: number, run: Run): void {
    // Nobody asks where the runs are that begin after the last bar.
    if (run.start >= this.toS) return;
    if (this.cutS !== null && this.cutS >= this.fromS) {
      this.leftOut++;
      return;
    }
    const taken = this.processors.take(run, job);
    const bars = joined(taken);
    const fits = this.bars.length + this.openBars + bars.length / 2 <= MAX_BARS;
    if (fits) this.openBars += bars.length / 2;
    else this.cutS = run.start;
    this.open.set(index, { taken, bars: fits ? bars : null });
  }

  ended({ sourceId }: SimJob, index: number, run: Run, at: number): void {
    const open = this.open.get(index);
    if (open === undefined) return;
    const { taken, bars } = open;
    this.open.delete(index);
    this.processors.give(run, taken);
    this.openBars -= (bars?.length ?? 0) / 2;
    if (at <= this.fromS) return;
    if (bars === null) {
      this.leftOut++;
      return;
    }
    const site = this.siteIndex.get(run.siteId) as number;
    const { firstProcessor } = this.sites[site] as (typeof this.sites)[number];
    for (let i = 0; i < bars.length; i += 2) {
      const [first, last] = bars.slice(i, i + 2) as [number, number];
      const own = { first: first - firstProcessor, last: last - firstProcessor };
      this.bars.push({ site, job: sourceId, ...own, startS: run.start, endS: at });
    }
  }

  /** `lastS`: the last end, where the default window ends at the latest. */
  gantt(lastS: number): Gantt {
    const { fromS, cutS } = this;
    const asked = this.window.toS === null && lastS > fromS ? Math.min(this.toS, lastS) : this.toS;
    const toS = cutS !== null && cutS > fromS ? Math.min(cutS, asked) : asked;
    // Of the jobs that start at the instant of the cut, some were taken.
    const [shown, cut] = [
      this.bars.filter((bar) => bar.startS < toS),
      this.bars.filter((bar) => bar.startS >= toS),
    ];
    return {
      fromS,
      toS,
      sites: this.sites.map(({ name, processors }) => ({ name, processors })),
      bars: shown
        .sort((a, b) => a.startS - b.startS || a.site - b.site || a.first - b.first)
        .map((bar) => ({ ...bar, startS: Math.max(bar.startS, fromS), endS: Math.min(bar.endS, toS) })),
      leftOut: this.leftOut + new Set(cut.map(({ job }) => job)).size,
    };
  }
}
