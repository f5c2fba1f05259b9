/** Jobs that match, counted by one of their values: each leads to the list of its jobs. */
import { Link } from '@tanstack/react-router';
import { useData } from '../../api/data';
import type { JobFilter } from '../../parts/job-rows.gql';
import type { Search } from '../../ui/address';
import { causeOf, count, percent, words } from '../../ui/format';
import { ListChecks } from '../../ui/icons';
import { Bar, Empty, Loaded, Skeleton, Table } from '../../ui/show';
import { type JobCountBy, JobCountsDocument, type JobCountsQuery } from './counts.gql';

type Row = JobCountsQuery['jobCounts'][number];
/** What a row is called, and the field of the address by which its jobs are listed. */
interface Shown {
  header: string;
  field: string;
  /** Null: jobs without one. */
  of(row: Row): { value: string; name: string } | null;
}

const named = (one: { id: string; name: string } | null) => one && { value: one.id, name: one.name };

export const COUNTED: Readonly<Record<JobCountBy, Shown>> = {
  STATE: {
    header: 'State',
    field: 'states',
    of: ({ state }) => state && { value: state, name: words(state) },
  },
  USER: { header: 'User', field: 'user', of: ({ user }) => named(user) },
  SITE: { header: 'Site', field: 'site', of: ({ site }) => named(site) },
  APPLICATION: {
    header: 'Application',
    field: 'application',
    of: ({ application }) => (application === null ? null : { value: application, name: application }),
  },
  CAUSE: {
    header: 'Cause of end',
    field: 'cause',
    of: ({ cause }) => cause && { value: cause, name: causeOf(cause) },
  },
  CLASS: {
    header: 'Class',
    field: 'class',
    // What jobs without one are called.
    of: ({ class: name }) => ({ value: name ?? 'normal', name: name ?? 'normal' }),
  },
};

export function Counts({ by, filter, search }: { by: JobCountBy; filter: JobFilter; search: Search }) {
  const { header, field, of } = COUNTED[by];
  const counts = useData(JobCountsDocument, { by, filter }, { everyMs: 10_000 });
  const total = (counts.data?.jobCounts ?? []).reduce((sum, row) => sum + row.count, 0);
  return (
    <Loaded from={counts} skeleton={<Skeleton lines={8} />}>
      {({ jobCounts }) => (
        <Table
          label={`Jobs by ${header.toLowerCase()}`}
          rows={jobCounts}
          id={(row) => of(row)?.value ?? 'none'}
          empty={<Empty icon={<ListChecks size={20} />} title="No jobs match" />}
          columns={[
            {
              key: 'name',
              header,
              cell(row) {
                const shown = of(row);
                if (shown === null) return <span className="faint">none</span>;
                const { by: _, ...others } = search;
                return (
                  <Link to="/jobs" search={{ ...others, [field]: shown.value }}>
                    {shown.name}
                  </Link>
                );
              },
            },
            {
              key: 'share',
              header: 'Share',
              width: '40%',
              minor: true,
              cell: (row) => (
                <Bar
                  thin
                  value={row.count}
                  max={total}
                  label={`${of(row)?.name ?? 'none'}: ${percent(row.count / total)} of the jobs`}
                />
              ),
            },
            { key: 'jobs', header: 'Jobs', right: true, cell: (row) => count(row.count) },
          ]}
        />
      )}
    </Loaded>
  );
}
