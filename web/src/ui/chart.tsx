/** Lines and bars over time, or over numbers. The library comes when the first chart is shown. */
import { lazy, Suspense } from 'react';
import { Skeleton } from './show';

const Drawn = lazy(() => import('./chart-drawn'));

export interface Series {
  label: string;
  /** A variable of the design, such as `--series-1`. */
  color: string;
  values: readonly (number | null)[];
  kind?: 'line' | 'area' | 'step' | 'bars' | 'points';
  text?: (value: number) => string;
}

export interface ChartProps {
  /** What it shows, for those who cannot see it. */
  label: string;
  /** Seconds since 1970, or plain numbers. */
  x: readonly number[];
  series: readonly Series[];
  height?: number;
  time?: boolean;
  /** Series stand on one another. */
  stacked?: boolean;
  /** The range of the values; by default from 0 to the largest. */
  range?: readonly [number, number];
  xText?: (value: number) => string;
  yText?: (value: number) => string;
}

export function Chart(props: ChartProps) {
  return (
    <Suspense fallback={<Skeleton height={(props.height ?? 200) + 26} />}>
      <Drawn {...props} />
    </Suspense>
  );
}
