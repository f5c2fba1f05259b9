/** The columns that the list of jobs can have. */
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { licensesWritten } from '../../../../src/words/index';
import { titleOf } from '../../parts/job-column';
import { causeOf, count, duration, megabytes, numberOf, TERMINAL } from '../../ui/format';
import { Ago, At, Lasted, StateBadge } from '../../ui/show';
import type { Row } from './job-list';

export interface JobColumn {
  key: string;
  header: string;
  /** Pixels. `grow` shares what is left. */
  width: number;
  grow?: number;
  right?: boolean;
  cell(row: Row): ReactNode;
  /** In exports, where it differs from a text of the cell. */
  plain(row: Row): string | number | null;
}

const waitedS = (row: Row): number =>
  ((row.startedAt ? Date.parse(row.startedAt) : row.endedAt ? Date.parse(row.endedAt) : Date.now()) -
    Date.parse(row.submittedAt)) /
  1000;

export const JOB_COLUMNS: readonly JobColumn[] = [
  {
    key: 'job',
    header: 'Job',
    width: 210,
    grow: 2,
    cell: (row) => (
      <span className="job-cell">
        <Link to="/jobs/$id" params={{ id: row.id }} className="num" tabIndex={-1}>
          {numberOf(row.id)}
        </Link>
        <span className="cut">{titleOf(row)}</span>
      </span>
    ),
    plain: (row) => row.id,
  },
  {
    key: 'state',
    header: 'State',
    width: 160,
    cell: (row) => <StateBadge state={row.state} cause={row.cause} />,
    plain: (row) => row.state,
  },
  {
    key: 'application',
    header: 'Application',
    width: 120,
    grow: 1,
    cell: (row) => <span className="cut">{row.application}</span>,
    plain: (row) => row.application,
  },
  {
    key: 'user',
    header: 'User',
    width: 110,
    grow: 1,
    cell: (row) => <span className="cut">{row.user.name}</span>,
    plain: (row) => row.user.name,
  },
  {
    key: 'site',
    header: 'Site',
    width: 110,
    grow: 1,
    cell: (row) =>
      row.site ? <span className="cut">{row.site.name}</span> : <span className="faint">root</span>,
    plain: (row) => row.site?.name ?? null,
  },
  {
    key: 'cpus',
    header: 'CPUs',
    width: 64,
    right: true,
    cell: (row) => count(row.cpus),
    plain: (row) => row.cpus,
  },
  {
    key: 'memory',
    header: 'Memory',
    width: 84,
    right: true,
    cell: (row) => (row.memoryMb ? megabytes(row.memoryMb) : '–'),
    plain: (row) => row.memoryMb,
  },
  {
    key: 'submitted',
    header: 'Submitted',
    width: 108,
    right: true,
    cell: (row) => <At at={row.submittedAt} />,
    plain: (row) => row.submittedAt,
  },
  {
    key: 'waited',
    header: 'Waited',
    width: 104,
    right: true,
    cell: (row) => <Lasted from={row.submittedAt} to={row.startedAt ?? row.endedAt} />,
    plain: (row) => Math.round(waitedS(row)),
  },
  {
    key: 'ran',
    header: 'Ran',
    width: 104,
    right: true,
    cell: (row) =>
      row.startedAt ? <Lasted from={row.startedAt} to={row.endedAt} /> : <span className="faint">–</span>,
    plain: (row) =>
      row.startedAt && row.endedAt ? (Date.parse(row.endedAt) - Date.parse(row.startedAt)) / 1000 : null,
  },
  {
    key: 'estimate',
    header: 'Estimate',
    width: 104,
    right: true,
    cell: (row) => duration(row.estimateS),
    plain: (row) => row.estimateS,
  },
  {
    key: 'ended',
    header: 'Ended',
    width: 108,
    right: true,
    cell: (row) => <At at={row.endedAt} />,
    plain: (row) => row.endedAt,
  },
  {
    key: 'deadline',
    header: 'Deadline',
    width: 108,
    right: true,
    cell: (row) => (
      <span className={row.deadlineMissed ? 'late' : ''}>
        <At at={row.deadline} />
      </span>
    ),
    plain: (row) => row.deadline,
  },
  {
    key: 'priority',
    header: 'Priority',
    width: 76,
    right: true,
    cell: (row) => (
      <>
        {row.priority ?? '–'}
        {row.boost !== 0 && (
          <span className="faint">
            {row.boost > 0 ? ' +' : ' −'}
            {Math.abs(row.boost)}
          </span>
        )}
      </>
    ),
    plain: (row) => row.priority,
  },
  {
    key: 'group',
    header: 'Group',
    width: 110,
    grow: 1,
    cell: (row) => <span className="cut">{row.groupName ?? ''}</span>,
    plain: (row) => row.groupName,
  },
  {
    key: 'class',
    header: 'Class',
    width: 100,
    grow: 1,
    cell: (row) => <span className="cut">{row.class ?? ''}</span>,
    plain: (row) => row.class,
  },
  {
    key: 'licenses',
    header: 'Licenses',
    width: 120,
    grow: 1,
    cell: (row) => <span className="cut">{licensesWritten(row.licenses)}</span>,
    plain: (row) => licensesWritten(row.licenses),
  },
  {
    key: 'cause',
    header: 'Ended by',
    width: 130,
    cell: (row) => <span className="cut">{row.cause ? causeOf(row.cause) : ''}</span>,
    plain: (row) => row.cause,
  },
  {
    key: 'exit',
    header: 'Exit code',
    width: 76,
    right: true,
    cell: (row) => row.exitCode ?? '–',
    plain: (row) => row.exitCode,
  },
  {
    key: 'age',
    header: 'Age',
    width: 100,
    right: true,
    cell: (row) => (TERMINAL.has(row.state) ? '' : <Ago at={row.submittedAt} suffix="" />),
    plain: (row) => Math.round((Date.now() - Date.parse(row.submittedAt)) / 1000),
  },
];

export const DEFAULT_COLUMNS = ['job', 'state', 'user', 'site', 'cpus', 'submitted', 'waited', 'ran'];

export function columnsOf(text: string | undefined): JobColumn[] {
  const keys = text ? text.split(',') : DEFAULT_COLUMNS;
  const chosen = JOB_COLUMNS.filter(({ key }) => key === 'job' || keys.includes(key));
  return chosen;
}
