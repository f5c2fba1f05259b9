/** Lines and bars over time, or over numbers. The library comes when the first chart is shown. */
import { lazy, Suspense } from 'react';
import type { ChartProps } from './chart-drawn';
import { Skeleton } from './show';

const Drawn = lazy(() => import('./chart-drawn'));

export function Chart(props: ChartProps) {
  return (
    <Suspense fallback={<Skeleton height={(props.height ?? 200) + 26} />}>
      <Drawn {...props} />
    </Suspense>
  );
}

/** The times of what a history has, as a chart takes them: epoch seconds. */
export const timesOf = (points: readonly { at: string }[]): number[] =>
  points.map(({ at }) => Date.parse(at) / 1000);

/** How much of something was in use over time, and how much of it there is now, if that is said. */
export function UseChart({
  of,
  points,
  total,
  height = 160,
}: {
  of: string;
  points: readonly { at: string; inUse: number }[];
  total?: number;
  height?: number;
}) {
  return (
    <Chart
      label={`${of} in use over time`}
      height={height}
      x={timesOf(points)}
      series={[
        {
          label: `${of} in use`,
          color: '--series-1',
          kind: 'area',
          values: points.map(({ inUse }) => inUse),
        },
        ...(total === undefined
          ? []
          : [{ label: 'In all', color: '--text-3', values: points.map(() => total) }]),
      ]}
    />
  );
}
