/** Queue and use over simulated time: under the policy in force, and under those that were tried on the same jobs. */
import { useEffect, useState } from 'react';
import { ask } from '../../api/client';
import { Chart } from '../../ui/chart';
import type { Series } from '../../ui/chart-drawn';
import { count, figure, percent } from '../../ui/format';
import { Problem, Skeleton } from '../../ui/show';
import { SimulationHistoryDocument, type SimulationHistoryQuery } from './simulator.gql';

type History = NonNullable<
  NonNullable<NonNullable<SimulationHistoryQuery['simulation']>['result']>['history']
>;
type Bin = History['baseline'][number];

interface Curve {
  label: string;
  color: string;
  bins: readonly Bin[];
  /** Where the last bin ends, in seconds from the first submission: nothing waits or runs from there on. */
  lengthS: number;
}

const CANDIDATES = ['--series-1', '--series-2', '--series-3', '--series-4', '--series-5'];

/** @param tried what-ifs of the same jobs, as many as there are colors */
export function Curves({ tried }: { tried: readonly { id: string; label: string }[] }) {
  const [histories, setHistories] = useState<readonly (History | null)[] | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [again, setAgain] = useState(0);
  const shown = tried.slice(0, CANDIDATES.length);
  const ids = shown.map(({ id }) => id).join(' ');
  // biome-ignore lint/correctness/useExhaustiveDependencies: asked anew when it is to be tried again
  useEffect(() => {
    const stop = new AbortController();
    setError(null);
    void Promise.all(ids.split(' ').map((id) => ask(SimulationHistoryDocument, { id }, stop.signal))).then(
      (answers) => setHistories(answers.map(({ simulation }) => simulation?.result?.history ?? null)),
      (reason) => !stop.signal.aborted && setError(reason as Error),
    );
    return () => stop.abort();
  }, [ids, again]);

  if (error) return <Problem error={error} retry={() => setAgain((before) => before + 1)} />;
  if (!histories) return <Skeleton height={252} />;
  const first = histories.find((history) => history !== null);
  if (!first) return null;
  const curves: Curve[] = [
    { label: 'Current', color: '--series-6', bins: first.baseline, lengthS: first.lengthS },
    ...shown.flatMap(({ label }, i): Curve[] => {
      const history = histories[i];
      const color = CANDIDATES[i]!;
      return history ? [{ label, color, bins: history.candidate, lengthS: history.lengthS }] : [];
    }),
  ];
  const fromS = first.from === null ? null : Date.parse(first.from) / 1000;
  return (
    <div className="columns curves" style={{ '--column': '340px' } as React.CSSProperties}>
      <figure>
        <figcaption>Waiting jobs</figcaption>
        <Drawn label="Waiting jobs over time" curves={curves} fromS={fromS} of={(bin) => bin.queuedJobs} />
      </figure>
      <figure>
        <figcaption>CPUs in use</figcaption>
        <Drawn
          label="Fraction of CPUs in use over time"
          curves={curves}
          fromS={fromS}
          of={(bin) => bin.utilization}
          share
        />
      </figure>
    </div>
  );
}

function Drawn({
  label,
  curves,
  fromS,
  of,
  share = false,
}: {
  label: string;
  curves: readonly Curve[];
  fromS: number | null;
  of(bin: Bin): number;
  share?: boolean;
}) {
  const lengthS = Math.max(...curves.map((curve) => curve.lengthS));
  // Bins of simulations that took longer are wider.
  const marks = new Set(curves.flatMap(({ bins }) => bins.map(({ atS }) => atS)));
  const x = [...marks.add(lengthS)].sort((a, b) => a - b);
  const [unitS, unit] = lengthS > 2 * 86_400 ? [86_400, 'd'] : lengthS > 7_200 ? [3_600, 'h'] : [60, 'min'];
  return (
    <Chart
      label={label}
      x={x.map((at) => (fromS === null ? at / unitS : fromS + at))}
      time={fromS !== null}
      {...(fromS === null && { xText: (value: number) => `${figure(value)} ${unit}` })}
      {...(share && { range: [0, 1] as const })}
      yText={(value) => (share ? percent(value) : value < 10 ? figure(value) : count(Math.round(value)))}
      series={curves.map(
        (curve): Series => ({
          label: curve.label,
          color: curve.color,
          kind: 'step',
          values: valuesAt(x, curve, of),
        }),
      )}
    />
  );
}

/** What holds at each of ascending times. */
function valuesAt(times: readonly number[], { bins, lengthS }: Curve, of: (bin: Bin) => number): number[] {
  let next = 0;
  return times.map((at) => {
    while (next < bins.length && bins[next]!.atS <= at) next++;
    const bin = bins[next - 1];
    return bin && at < lengthS ? of(bin) : 0;
  });
}
