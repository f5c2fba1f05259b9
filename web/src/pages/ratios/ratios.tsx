/** How applications spend their run time, as their runs have shown. */
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useMemo, useState } from 'react';
import { ask } from '../../api/client';
import { useData, useFollow } from '../../api/data';
import type { Search } from '../../ui/address';
import { Chart } from '../../ui/chart';
import { Segments, TextInput } from '../../ui/controls';
import { count, duration, figure, numberOf, percent } from '../../ui/format';
import { Activity } from '../../ui/icons';
import { At, Card, type Column, Empty, Facts, Page, Parts, Problem, Skeleton, Table } from '../../ui/show';
import {
  type PointFragment,
  RatioDocument,
  RatioNewsDocument,
  type RatioQuery,
  RecentApplicationsDocument,
} from './ratios.gql';

type Ratio = RatioQuery['jobRatio'];
const POINTS_MAX = 2_000;
const SOURCES: Record<Ratio['source'], string> = {
  APPLICATION: 'Learned from its own runs',
  USER: 'It has never run: from your runs with the same requirements',
  EVERYBODY: 'It has never run: from all users’ runs with the same requirements',
  DECLARED: 'As declared at submission',
  UNKNOWN: 'Nothing is known: one half',
};

export function Ratios() {
  const search = useSearch({ strict: false }) as Search;
  const navigate = useNavigate();
  const recent = useData(RecentApplicationsDocument, {}, { everyMs: 30_000 });
  const known = [...new Set(recent.data?.jobs.nodes.map(({ application }) => application) ?? [])].sort();
  const application = search.application ?? known[0];
  const [text, setText] = useState('');
  const choose = (name: string): void =>
    void navigate({ to: '/ratios', search: { application: name }, replace: true });
  return (
    <Page
      title="Job ratios"
      about="The fractions of run time that an application spends computing and on input and output, learned from each successful run."
    >
      <div className="toolbar">
        <TextInput
          label="Application"
          hideLabel
          type="search"
          placeholder="Application"
          value={text}
          onChange={setText}
          list={known}
          onEnter={() => text.trim() && choose(text.trim())}
        />
        {known.slice(0, 8).length > 1 && (
          <Segments
            label="Applications that ran recently"
            value={application && known.slice(0, 8).includes(application) ? application : 'other'}
            onChange={(name) => name !== 'other' && choose(name)}
            options={[
              // On a phone, the last ones are out of sight.
              ...(application && !known.slice(0, 8).includes(application)
                ? [{ value: 'other', label: application }]
                : []),
              ...known.slice(0, 8).map((name) => ({ value: name, label: name })),
            ]}
          />
        )}
      </div>
      {application ? (
        <One key={application} application={application} />
      ) : recent.loading ? (
        <Skeleton height={320} />
      ) : (
        <Card>
          <Empty icon={<Activity size={20} />} title="No application has run yet">
            The service learns from each successful run. You can also enter the name of an application above.
          </Empty>
        </Card>
      )}
    </Page>
  );
}

function AfterEachRun({ application, points }: { application: string; points: readonly PointFragment[] }) {
  const xs = useMemo(() => points.map(({ runs }) => runs), [points]);
  return (
    <Card title="The ratio after each run" about="Live: each successful run adds a point">
      <Chart
        label={`Fraction of run time spent computing by ${application} after each of its runs`}
        time={false}
        x={xs}
        range={[0, 1]}
        yText={(value) => percent(value)}
        xText={(value) => (Number.isInteger(value) ? `Run ${count(value)}` : '')}
        series={[
          {
            label: 'Computes',
            color: '--series-1',
            kind: 'area',
            values: points.map((point) => point.computation),
          },
          {
            label: 'This run alone',
            color: '--series-6',
            kind: 'points',
            values: points.map(({ turnaroundS, ioS }) =>
              ioS === null || turnaroundS <= 0 ? null : Math.max(0, 1 - ioS / turnaroundS),
            ),
          },
        ]}
      />
    </Card>
  );
}

/** The ratio of an application and how it came about, live; `again` asks anew. */
function useRatio(application: string) {
  const [ratio, setRatio] = useState<Ratio | null>(null);
  const [points, setPoints] = useState<readonly PointFragment[]>([]);
  const [error, setError] = useState<string | null>(null);
  const [times, setTimes] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each time anew
  useEffect(() => {
    const stop = new AbortController();
    ask(RatioDocument, { application }, stop.signal).then(
      ({ jobRatio }) => {
        setRatio(jobRatio);
        setPoints(jobRatio.history.nodes);
        setError(null);
      },
      (reason: unknown) => !stop.signal.aborted && setError((reason as Error).message),
    );
    return () => stop.abort();
  }, [application, times]);
  const again = (): void => setTimes((n) => n + 1);

  useFollow(RatioNewsDocument, 'jobRatioUpdated', ratio && { application, after: ratio.cursor }, {
    onUpdates(updates) {
      const more = updates.flatMap(({ point }) => point ?? []);
      if (more.length > 0) setPoints((before) => [...before, ...more].slice(-POINTS_MAX));
    },
    onResync: again,
  });
  return { ratio, points, error, again };
}

function One({ application }: { application: string }) {
  const { ratio, points, error, again } = useRatio(application);
  if (error) return <Problem error={error} retry={again} />;
  if (!ratio) return <Skeleton height={360} />;
  const last = points.at(-1);
  const computation = last?.computation ?? ratio.computation;
  const runs = last?.runs ?? ratio.runs;
  return (
    <>
      <Card
        title={application}
        about={SOURCES[last ? 'APPLICATION' : ratio.source]}
        actions={
          <Link to="/jobs" search={{ application }} className="button quiet">
            Its jobs
          </Link>
        }
      >
        <div className="stack">
          <Fractions computation={computation} />
          <Facts
            facts={[
              ['Runs learned from', count(runs)],
              ratio.averages && ['Mean turnaround, scaled', duration(ratio.averages.turnaroundS)],
              ratio.averages && ['of which execution', duration(ratio.averages.executionS)],
              ratio.averages && ['of which input and output', duration(ratio.averages.ioS)],
            ]}
          />
        </div>
      </Card>
      {points.length > 1 && <AfterEachRun {...{ application, points }} />}
      <Card title="What each point was measured from" flush>
        <Table
          label="Runs"
          rows={[...points].reverse().slice(0, 100)}
          id={({ cursor }) => cursor}
          empty={<Empty title="No runs yet" />}
          columns={RUN_COLUMNS}
        />
      </Card>
    </>
  );
}

/** What part of the time is computing, from 0 to 1, and the rest. */
function Fractions({ computation }: { computation: number }) {
  const computing = Math.round(computation * 100);
  return (
    <>
      <div className="row spread">
        <span>
          <span className="figure-value num">{percent(computation)}</span>{' '}
          <span className="muted small">computes</span>
        </span>
        <span>
          <span className="muted small">input and output</span>{' '}
          <span className="figure-value num">{percent(1 - computation)}</span>
        </span>
      </div>
      <Parts
        label="Fraction of run time, in percent"
        total={100}
        parts={[
          { name: 'computing', value: computing, color: 'var(--series-1)' },
          { name: 'input and output', value: 100 - computing, color: 'var(--series-3)' },
        ]}
      />
    </>
  );
}

const RUN_COLUMNS: readonly Column<PointFragment>[] = [
  { key: 'run', header: 'Run', right: true, width: 64, cell: ({ runs }) => count(runs) },
  { key: 'at', header: 'Ended', cell: ({ at }) => <At at={at} /> },
  {
    key: 'job',
    header: 'Job',
    cell: ({ job }) =>
      job ? (
        <Link to="/jobs/$id" params={{ id: job.id }} className="num">
          {numberOf(job.id)}
        </Link>
      ) : (
        <span className="faint">another user’s</span>
      ),
  },
  { key: 'site', header: 'Site', cell: ({ site }) => site.name },
  {
    key: 'turnaround',
    header: 'Turnaround',
    right: true,
    cell: ({ turnaroundS }) => duration(turnaroundS),
  },
  {
    key: 'io',
    header: 'Input and output',
    right: true,
    cell: ({ ioS }) => (ioS === null ? '–' : duration(ioS)),
  },
  {
    key: 'ratio',
    header: 'Ratio then',
    right: true,
    cell: (point) => (point.computation === null ? '–' : figure(point.computation)),
  },
];
