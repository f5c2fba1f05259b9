/** What the grid did over time, and who used it. */
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { resourceWritten } from '../../../../src/words/index';
import { useData } from '../../api/data';
import { declaredOf } from '../../parts/kinds';
import { useViewer } from '../../shell/viewer';
import { Chart, timesOf, UseChart } from '../../ui/chart';
import { Button, Choice, Segments } from '../../ui/controls';
import { csvLine } from '../../ui/csv';
import { download } from '../../ui/download';
import { count, duration, figure, percent } from '../../ui/format';
import { ChartColumn, Download } from '../../ui/icons';
import { Bar, Card, Empty, Loaded, Page, Skeleton, Table } from '../../ui/show';
import { type Span, useSpan } from '../../ui/span';
import {
  LoadHistoryDocument,
  LostWorkDocument,
  ResourceHistoryDocument,
  type UsageBy,
  UsageChoicesDocument,
  UsageDocument,
  type UsageQuery,
} from './usage.gql';

type Row = UsageQuery['usage'][number];

const BY: Record<UsageBy, { label: string; header: string }> = {
  USER: { label: 'Users', header: 'User' },
  SITE: { label: 'Sites', header: 'Site' },
  APPLICATION: { label: 'Applications', header: 'Application' },
};
const HOUR_S = 3_600;
/** Of the charts of load, side by side, pixels. */
const LOAD_HEIGHT = 200;

export function UsagePage() {
  const { span, chooser, everyMs } = useSpan();
  const everything = useViewer().may('OPERATOR');
  return (
    <Page
      title="Usage"
      about={`From retained jobs${everything ? '' : '; totals include only your own jobs'}.`}
      actions={chooser}
    >
      <Load span={span} everyMs={everyMs} />
      <Sums span={span} everyMs={everyMs} />
      <Lost span={span} everyMs={everyMs} />
    </Page>
  );
}

function Load({ span, everyMs }: { span: Span; everyMs: number }) {
  const [site, setSite] = useState('');
  const choices = useData(UsageChoicesDocument, {});
  const kinds = declaredOf(choices.data?.resourceKinds ?? []).map(({ name }) => name);
  const load = useData(LoadHistoryDocument, { ...span, site: site || null }, { everyMs });
  return (
    <Card
      title="Load"
      about="Means per interval"
      actions={
        <Choice
          label="Site"
          hideLabel
          value={site}
          onChange={setSite}
          options={[
            { value: '', label: 'The whole grid' },
            ...(choices.data?.sites.nodes ?? []).map(({ id, name }) => ({ value: id, label: name })),
          ]}
        />
      }
    >
      <Loaded from={load} skeleton={<Skeleton height={226} />}>
        {({ loadHistory: points }) => (
          <div className="columns" style={{ '--column': '340px' } as React.CSSProperties}>
            <UseChart
              of="CPUs"
              points={points.map(({ at, cpus }) => ({ at, inUse: cpus }))}
              height={LOAD_HEIGHT}
            />
            <Chart
              label="Jobs over time"
              height={LOAD_HEIGHT}
              x={timesOf(points)}
              series={[
                { label: 'Running', color: '--running', values: points.map(({ running }) => running) },
                // Where a job waited in the past is not kept: only that it did.
                ...(site === ''
                  ? [{ label: 'Waiting', color: '--queued', values: points.map(({ waiting }) => waiting) }]
                  : []),
              ]}
            />
          </div>
        )}
      </Loaded>
      {kinds.length > 0 && <Resources kinds={kinds} site={site || null} span={span} everyMs={everyMs} />}
    </Card>
  );
}

/** Of the resources that operators have declared of machines, such as devices, one kind at a time. */
function Resources({
  kinds,
  site,
  span,
  everyMs,
}: {
  kinds: readonly string[];
  site: string | null;
  span: Span;
  everyMs: number;
}) {
  const [chosen, setChosen] = useState('');
  // The chosen one may be no more.
  const kind = kinds.includes(chosen) ? chosen : (kinds[0] as string);
  const history = useData(ResourceHistoryDocument, { kind, site, ...span }, { everyMs });
  return (
    <div className="stack">
      <Choice
        label="Other resource"
        value={kind}
        onChange={setChosen}
        options={kinds.map((name) => ({ value: name, label: name }))}
      />
      <Loaded from={history} skeleton={<Skeleton height={186} />}>
        {({ resourceHistory }) => <UseChart of={kind} points={resourceHistory} />}
      </Loaded>
    </div>
  );
}

function Sums({ span: { from, to }, everyMs }: { span: Span; everyMs: number }) {
  const [by, setBy] = useState<UsageBy>('USER');
  const usage = useData(UsageDocument, { by, from, to }, { everyMs });
  const rows = usage.data?.usage ?? [];
  const total = rows.reduce((sum, { cpuS }) => sum + cpuS, 0);
  const write = (): void =>
    download(
      new Blob([tableOf(BY[by].header, rows)], { type: 'text/csv;charset=utf-8' }),
      `usage-${BY[by].label.toLowerCase()}.csv`,
    );
  return (
    <Card
      title="Who used it"
      actions={
        <div className="row wrap">
          <Segments
            label="Grouped by"
            value={by}
            onChange={setBy}
            options={Object.entries(BY).map(([value, { label }]) => ({ value: value as UsageBy, label }))}
          />
          <Button icon={<Download size={14} />} isDisabled={rows.length === 0} onPress={write}>
            CSV
          </Button>
        </div>
      }
      flush
    >
      <Loaded
        from={usage}
        skeleton={
          <div className="card-body">
            <Skeleton lines={6} />
          </div>
        }
      >
        {() => (
          <Table
            label={`Usage by ${BY[by].header.toLowerCase()}`}
            rows={rows}
            id={(row) => row.user?.id ?? row.site?.id ?? `of ${row.application}`}
            empty={
              <Empty icon={<ChartColumn size={20} />} title="No usage">
                No job ran or ended in this period.
              </Empty>
            }
            columns={[
              { key: 'name', header: BY[by].header, cell: (row) => <Name row={row} /> },
              {
                key: 'share',
                header: 'Share',
                width: '26%',
                minor: true,
                cell: (row) => (
                  <Bar
                    thin
                    value={row.cpuS}
                    max={total}
                    label={`${nameOf(row)}: ${percent(total > 0 ? row.cpuS / total : 0)} of the CPU time`}
                  />
                ),
              },
              {
                key: 'cpu',
                header: 'CPU time',
                right: true,
                cell: cpuHours,
              },
              ...(rows.some(({ resources }) => resources.length > 0) ? [RESOURCES] : []),
              { key: 'runs', header: 'Runs', right: true, minor: true, cell: ({ runs }) => count(runs) },
              { key: 'ended', header: 'Jobs ended', right: true, cell: ({ endedJobs }) => count(endedJobs) },
              {
                key: 'failed',
                header: 'Failed',
                right: true,
                cell: ({ endedJobs, failedJobs }) =>
                  failedJobs > 0 ? (
                    <span className="late">
                      {count(failedJobs)} · {percent(failedJobs / endedJobs, 1)}
                    </span>
                  ) : (
                    '0'
                  ),
              },
              {
                key: 'wait',
                header: 'Mean wait',
                right: true,
                minor: true,
                cell: ({ meanWaitS }) =>
                  meanWaitS === null ? <span className="faint">–</span> : duration(meanWaitS),
              },
            ]}
          />
        )}
      </Loaded>
    </Card>
  );
}

/** What runs lost that were stopped for other jobs or for holds; nothing where none was. */
function Lost({ span: { from, to }, everyMs }: { span: Span; everyMs: number }) {
  const rows = useData(LostWorkDocument, { from, to }, { everyMs }).data?.lostWork ?? [];
  if (rows.length === 0) return null;
  return (
    <Card
      title="Lost to preemption"
      about="By runs that were stopped for other jobs, maintenance or reservations, since their starts or last checkpoints"
      flush
    >
      <Table
        label="Work lost to preemption"
        rows={rows}
        id={({ site, class: of, preemptionClass }) => `${site.id} ${of ?? preemptionClass}`}
        empty={null}
        columns={[
          {
            key: 'site',
            header: 'Site',
            cell: ({ site }) => <SiteLink site={site} />,
          },
          { key: 'class', header: 'Class', right: true, cell: (row) => row.class ?? row.preemptionClass },
          { key: 'runs', header: 'Runs stopped', right: true, cell: ({ runs }) => count(runs) },
          {
            key: 'cpu',
            header: 'CPU time lost',
            right: true,
            cell: cpuHours,
          },
        ]}
      />
    </Card>
  );
}

const nameOf = (row: Row): string => row.user?.name ?? row.site?.name ?? row.application ?? '';

const RESOURCES = {
  key: 'resources',
  header: 'Other resources',
  minor: true,
  cell: ({ resources }: Row) =>
    resources.map((of) => (
      <div key={resourceWritten(of)}>
        {resourceWritten(of)} {figure(of.amountS / HOUR_S)} <span className="faint">h</span>
      </div>
    )),
};

/** For a spreadsheet: with a column for each kind of resource that one of the rows has. */
function tableOf(header: string, rows: readonly Row[]): string {
  const kinds = [...new Set(rows.flatMap(({ resources }) => resources.map(resourceWritten)))].sort();
  const hours = ({ resources }: Row, kind: string): number =>
    (resources.find((of) => resourceWritten(of) === kind)?.amountS ?? 0) / HOUR_S;
  const head = [header, 'CPU hours', 'Runs', 'Ended jobs', 'Failed jobs', 'Mean wait (s)'];
  return [
    csvLine([...head, ...kinds.map((kind) => `${kind} hours`)]),
    ...rows.map((row) =>
      csvLine([
        ...[nameOf(row), row.cpuS / HOUR_S, row.runs, row.endedJobs, row.failedJobs, row.meanWaitS],
        ...kinds.map((kind) => hours(row, kind)),
      ]),
    ),
  ].join('');
}

const cpuHours = ({ cpuS }: Pick<Row, 'cpuS'>) => (
  <>
    {figure(cpuS / HOUR_S)} <span className="faint">CPU h</span>
  </>
);

const SiteLink = ({ site }: { site: { id: string; name: string } }) => (
  <Link to="/sites/$id" params={{ id: site.id }}>
    {site.name}
  </Link>
);

function Name({ row: { user, site, application } }: { row: Row }) {
  if (user)
    return (
      <Link to="/users/$id" params={{ id: user.id }}>
        {user.name}
      </Link>
    );
  if (site) return <SiteLink site={site} />;
  return (
    <Link to="/jobs" search={{ application: application ?? '' }}>
      {application}
    </Link>
  );
}
