/** What a what-if has shown: both policies side by side, and the difference. */
import './simulation.css';
import { count, duration, figure, percent } from '../ui/format';
import { Table } from '../ui/show';
import type {
  ComparisonPartsFragment,
  FiguresPartsFragment,
  SimulationPartsFragment,
} from './simulation.gql';

type Metric = Exclude<keyof FiguresPartsFragment, '__typename'>;
type Result = NonNullable<SimulationPartsFragment['result']>;

export const METRICS: readonly {
  name: Metric;
  label: string;
  about: string;
  better: 'low' | 'high' | null;
  text(value: number): string;
}[] = [
  { name: 'waitMeanS', label: 'Mean wait', about: 'From submission to start', better: 'low', text: duration },
  {
    name: 'waitP95S',
    label: 'Wait, 95th percentile',
    about: 'One in twenty waits longer',
    better: 'low',
    text: duration,
  },
  {
    name: 'slowdownMean',
    label: 'Mean slowdown',
    about: 'Time in the system divided by run time, bounded at 10 s',
    better: 'low',
    text: figure,
  },
  {
    name: 'slowdownP95',
    label: 'Slowdown, 95th percentile',
    about: 'One in twenty is slowed down more',
    better: 'low',
    text: figure,
  },
  {
    name: 'deadlineMisses',
    label: 'Missed deadlines',
    about: 'Jobs that ended after their deadline',
    better: 'low',
    text: count,
  },
  {
    name: 'utilization',
    label: 'Utilization',
    about: 'CPUs in use over the time of the window',
    better: 'high',
    text: (v) => percent(v, 1),
  },
  { name: 'ended', label: 'Ended', about: 'Jobs that ran to their end', better: 'high', text: count },
  {
    name: 'neverStarted',
    label: 'Never started',
    about: 'Jobs that no site could run',
    better: 'low',
    text: count,
  },
];

const known = (value: number | null | undefined): value is number =>
  typeof value === 'number' && Number.isFinite(value);

/** Whether a difference is to the better; null: it makes none. */
function verdict(better: 'low' | 'high' | null, difference: number | null | undefined): boolean | null {
  if (!known(difference) || Math.abs(difference) < 1e-9 || better === null) return null;
  return better === 'low' ? difference < 0 : difference > 0;
}

export function ResultView({ result }: { result: Result }) {
  return (
    <div className="stack">
      <Sides comparison={result.all} />
      {result.userClasses.length > 1 && (
        <Groups
          title="By class of user"
          groups={result.userClasses.map(({ userClass, comparison }) => ({
            name: userClass.toLowerCase(),
            comparison,
          }))}
        />
      )}
      {result.sites.length > 1 && <Groups title="By site" groups={result.sites} />}
    </div>
  );
}

/** What was assumed of sites whose own schedulers decide. */
export function OwnSchedulers({ sites }: Pick<Result, 'sites'>) {
  return sites.map(
    ({ name, ownScheduler }) =>
      ownScheduler && (
        <p key={name} className={ownScheduler.stale ? 'note warn' : 'note'}>
          {ownScheduler.message}
        </p>
      ),
  );
}

function Sides({ comparison: { baseline, candidate, difference } }: { comparison: ComparisonPartsFragment }) {
  return (
    <Table
      label="Both policies"
      rows={METRICS}
      id={({ name }) => name}
      columns={[
        { key: 'metric', header: 'All jobs', cell: ({ label, about }) => <span title={about}>{label}</span> },
        {
          key: 'bars',
          header: <span className="hidden-visually">As bars</span>,
          width: '30%',
          minor: true,
          cell: ({ name }) => {
            const most = Math.max(baseline[name], candidate[name], 1e-12);
            return (
              <span className="pair" aria-hidden>
                <i style={{ width: `${(100 * baseline[name]) / most}%`, background: 'var(--series-6)' }} />
                <i
                  style={{
                    width: `${(100 * candidate[name]) / most}%`,
                    background: 'var(--series-1)',
                  }}
                />
              </span>
            );
          },
        },
        {
          key: 'baseline',
          header: (
            <span className="row legend">
              <i style={{ background: 'var(--series-6)' }} /> Current
            </span>
          ),
          right: true,
          cell: ({ name, text }) => text(baseline[name]),
        },
        {
          key: 'candidate',
          header: (
            <span className="row legend">
              <i style={{ background: 'var(--series-1)' }} /> Candidate
            </span>
          ),
          right: true,
          cell: ({ name, text }) => text(candidate[name]),
        },
        {
          key: 'difference',
          header: 'Difference',
          right: true,
          cell: ({ name, text, better }) => (
            <Delta value={difference[name]} text={text} better={better} of={baseline[name]} />
          ),
        },
      ]}
    />
  );
}

export function Delta({
  value,
  text,
  better,
  of,
}: {
  value: number | null | undefined;
  text(value: number): string;
  better: 'low' | 'high' | null;
  of?: number | null | undefined;
}) {
  if (!known(value)) return <span className="faint">–</span>;
  if (text(Math.abs(value)) === text(0)) return <span className="faint">{text(0)}</span>;
  const good = verdict(better, value);
  const share = known(of) && of !== 0 ? value / of : null;
  return (
    <span className={good === null ? 'faint' : good ? 'better' : 'worse'}>
      {value > 0 ? '+' : value < 0 ? '−' : ''}
      {text(Math.abs(value))}
      {share !== null && Math.abs(share) >= 0.0005 && (
        <span className="tiny">
          {' '}
          ({share > 0 ? '+' : '−'}
          {percent(Math.abs(share), Math.abs(share) < 0.1 ? 1 : 0)})
        </span>
      )}
      {good !== null && <span className="hidden-visually"> {good ? 'better' : 'worse'}</span>}
    </span>
  );
}

const GROUPED = METRICS.filter(({ name }) =>
  ['waitMeanS', 'slowdownMean', 'deadlineMisses', 'utilization', 'ended'].includes(name),
);

function Groups({
  title,
  groups,
}: {
  title: string;
  groups: readonly { name: string; comparison: ComparisonPartsFragment }[];
}) {
  return (
    <div>
      <h3 className="group-title">{title}</h3>
      <Table
        label={title}
        rows={groups}
        id={({ name }) => name}
        columns={[
          { key: 'name', header: 'Of', cell: ({ name }) => <span className="strong">{name}</span> },
          ...GROUPED.map(({ name: metric, label, text, better }) => ({
            key: metric,
            header: label,
            right: true,
            cell: ({ comparison: { candidate, difference } }: (typeof groups)[number]) => (
              <span className="cell-pair">
                {text(candidate[metric])}
                <span className="tiny">
                  <Delta value={difference[metric]} text={text} better={better} />
                </span>
              </span>
            ),
          })),
        ]}
      />
    </div>
  );
}
