import { Link } from '@tanstack/react-router';
import { numberOf } from '../ui/format';
import type { Column } from '../ui/show';

/** What a person calls a job: its name, or what it runs. */
export const titleOf = (job: {
  name: string | null;
  application: string;
  arrayIndex: number | null;
}): string => `${job.name ?? job.application}${job.arrayIndex === null ? '' : ` [${job.arrayIndex}]`}`;

/** A job by its number and what it is, as the way to its page. */
export const JOB_COLUMN: Column<{ id: string } & Parameters<typeof titleOf>[0]> = {
  key: 'job',
  header: 'Job',
  cell: (job) => (
    <Link to="/jobs/$id" params={{ id: job.id }}>
      <span className="num strong">{numberOf(job.id)}</span> <span className="muted">{titleOf(job)}</span>
    </Link>
  ),
};
