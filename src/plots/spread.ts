/** The pictures of simulations that were repeated: how far results spread over seeds and traces, and how they follow what was varied. */
import type { TopLevelSpec } from 'vega-lite';
import type { Recorded } from '../simulator/simulate.js';
import { intervalOf } from '../simulator/statistics.js';
import { type Chart, chartSvg, PALETTE, specificationSvg } from './chart.js';
import { type Picture, WAIT_TICKS } from './pictures.js';

/** Repetitions of one policy with what is varied. */
export interface Repeated {
  /** Different for each. */
  label: string;
  policy: string;
  varied: Readonly<Record<string, string>>;
  runs: readonly Recorded[];
}

const MEASURES = [
  {
    name: 'wait',
    title: 'Mean wait',
    unit: 'mean wait (s)',
    of: ({ simulated }: Recorded) => simulated.wait.mean,
  },
  {
    name: 'turnaround',
    title: 'Mean turnaround',
    unit: 'mean turnaround (s)',
    of: ({ simulated }: Recorded) => simulated.turnaround.mean,
  },
  {
    name: 'bounded-slowdown',
    title: 'Mean bounded slowdown',
    unit: 'mean bounded slowdown',
    of: ({ simulated }: Recorded) => simulated.boundedSlowdown.mean,
  },
  {
    name: 'utilization',
    title: 'Utilization of the processors',
    unit: 'utilization (%)',
    of: ({ simulated }: Recorded) => 100 * simulated.utilization,
  },
] as const;

/**
 * A box of each measure over the runs, a band of the distribution of waits, and, where a single field with numbers is varied, each measure over
 * that. `subject`: what was simulated.
 */
export async function spreadPictures(subject: string, all: readonly Repeated[]): Promise<Picture[]> {
  const made: Picture[] = [];
  if (all.every(({ runs }) => runs.every(({ record }) => record !== null)))
    made.push({ name: 'wait-band', svg: await specificationSvg(waitBand(subject, all)) });
  const field = numericField(all);
  for (const measure of MEASURES) {
    made.push({ name: `box-${measure.name}`, svg: await specificationSvg(boxes(subject, all, measure)) });
    if (field !== null)
      made.push({
        name: `by-${field}-${measure.name}`,
        svg: await chartSvg(sweep(subject, all, measure, field)),
      });
  }
  return made;
}

type Measure = (typeof MEASURES)[number];

/** The only field that is varied, if its values are numbers; null: there is none such. */
function numericField(all: readonly Repeated[]): string | null {
  const [field, ...others] = Object.keys(all[0]?.varied ?? {}).filter(
    (name) => new Set(all.map(({ varied }) => varied[name])).size > 1,
  );
  if (field === undefined || others.length > 0) return null;
  return all.every(({ varied }) => Number.isFinite(Number(varied[field]))) ? field : null;
}

function sweep(
  subject: string,
  all: readonly Repeated[],
  { title, unit, of }: Measure,
  field: string,
): Chart {
  const points = new Map<string, { x: number; y: number; error?: number }[]>();
  for (const { policy, varied, runs } of all) {
    const { mean, half } = intervalOf(runs.map(of));
    const point = { x: Number(varied[field]), y: mean, ...(half !== null && { error: half }) };
    points.set(policy, [...(points.get(policy) ?? []), point]);
  }
  return {
    title: `${title} by ${field}`,
    subtitle: [subject, 'Means over the runs with 95 % confidence intervals (Student’s t).'],
    kind: 'line',
    x: { title: field, from: Math.min(...[...points.values()].flat().map(({ x }) => x)) },
    y: { title: unit },
    series: [...points].map(([name, its]) => ({ name, points: its })),
  };
}

function boxes(subject: string, all: readonly Repeated[], { title, unit, of }: Measure): TopLevelSpec {
  const labels = all.map(({ label }) => label);
  return {
    title: {
      text: title,
      subtitle: [
        subject,
        'A box is the middle half of the runs, its line the median; whiskers reach all others.',
      ],
    },
    width: Math.max(320, 60 * labels.length),
    height: 320,
    data: { values: all.flatMap(({ label, runs }) => runs.map((run) => ({ label, y: of(run) }))) },
    mark: { type: 'boxplot', extent: 'min-max', size: 28, median: { color: '#000000' } },
    encoding: {
      x: {
        field: 'label',
        type: 'nominal',
        sort: labels,
        title: null,
        axis: { labelAngle: labels.some((one) => one.length > 9) ? -35 : 0, labelLimit: 240, grid: false },
      },
      y: { field: 'y', type: 'quantitative', title: unit, scale: { zero: false } },
      color: { value: PALETTE[5] },
    },
  } as TopLevelSpec;
}

/** Points of a band along the logarithmic axis. */
const BAND_POINTS = 120;

function waitBand(subject: string, all: readonly Repeated[]): TopLevelSpec {
  const waitsOf = ({ runs }: Repeated) => runs.map(({ record }) => record?.waits ?? []);
  const longest = Math.max(
    10,
    ...all.flatMap((one) => waitsOf(one).map((waits) => waits.at(-1)?.waitS ?? 0)),
  );
  const xs = Array.from({ length: BAND_POINTS + 1 }, (_, i) => longest ** (i / BAND_POINTS));
  const values = all.flatMap((one) =>
    xs.map((x) => {
      const at = waitsOf(one).map(
        (waits) => waits.findLast(({ waitS }) => waitS <= x * (1 + 1e-9))?.percent ?? 0,
      );
      return {
        ...{ series: one.label, x, y: at.reduce((sum, percent) => sum + percent, 0) / at.length },
        ...{ low: Math.min(...at), high: Math.max(...at) },
      };
    }),
  );
  const names = all.map(({ label }) => label);
  const labels = Object.fromEntries(WAIT_TICKS.map(({ at, label }) => [at, label]));
  const x = {
    field: 'x',
    type: 'quantitative',
    title: 'wait (logarithmic; less than 1 s is at the left end)',
    scale: { type: 'log', domain: [1, longest], nice: false },
    axis: { values: WAIT_TICKS.map(({ at }) => at), labelExpr: `${JSON.stringify(labels)}[datum.value]` },
  };
  const range = names.map((_, i) => PALETTE[i % PALETTE.length] as string);
  const color = { field: 'series', type: 'nominal', sort: names, scale: { domain: names, range } };
  const y = {
    type: 'quantitative',
    title: 'jobs that waited at most this long (%)',
    scale: { domain: [0, 100] },
  };
  return {
    title: {
      text: 'Wait of the jobs that ended',
      subtitle: [subject, 'Lines are means over the runs; bands reach from the least to the most of them.'],
    },
    width: 720,
    height: 320,
    data: { values },
    layer: [
      {
        mark: { type: 'area', opacity: 0.25 },
        encoding: { x, y: { field: 'low', ...y }, y2: { field: 'high' }, color },
      },
      { mark: { type: 'line', strokeWidth: 1.5 }, encoding: { x, y: { field: 'y', ...y }, color } },
    ],
  } as TopLevelSpec;
}
