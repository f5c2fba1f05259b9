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
