/** The listing of jobs for people: filters, three orders, pages by key. Built by parts, for most conditions are absent. */
import type { JobFilter, JobPage } from '../queries.js';
import type { JobRow } from '../rows.js';
import { jobColumns } from './rows.js';

/** Conditions for a filter; parameters are appended to `parameters`, which may hold some already. */
function conditions(filter: JobFilter, parameters: unknown[]): string[] {
  const parameter = (value: unknown): string => `$${parameters.push(value)}`;
  const found: string[] = [];
  if (filter.ids !== undefined)
    found.push(`j.id = ANY (${parameter(`{${filter.ids.join(',')}}`)}::bigint[])`);
  if (filter.states !== undefined) {
    found.push(`j.state = ANY (${parameter(`{${filter.states.join(',')}}`)}::text[]::job_state[])`);
    // What follows from the states, said in the words of the partial indexes: the planner cannot know it.
    const ended = filter.states.map(
      (state) => state === 'COMPLETED' || state === 'FAILED' || state === 'CANCELLED',
    );
    if (ended.every((is) => !is)) found.push('j.ended_at IS NULL');
    if (ended.length > 0 && ended.every((is) => is)) found.push('j.ended_at IS NOT NULL');
    if (
      filter.states.length > 0 &&
      filter.states.every((state) => state === 'FAILED' || state === 'CANCELLED')
    ) {
      found.push(`j.cause <> 'EXITED_ZERO'`);
    }
    if (
      filter.states.length > 0 &&
      filter.states.every((state) => ['ASSIGNED', 'RUNNING', 'CANCELLING'].includes(state))
    ) {
      // As an array: there are no more of them than CPUs, and no plan can be wrong about it.
      found.push('j.id = ANY (ARRAY(SELECT job_id FROM runs WHERE ended_at IS NULL))');
    }
  }
  if (filter.siteId !== undefined) found.push(`j.site_id = ${parameter(filter.siteId)}::integer`);
  if (filter.userId !== undefined) found.push(`j.user_id = ${parameter(filter.userId)}::integer`);
  if (filter.application !== undefined) found.push(`j.application = ${parameter(filter.application)}::text`);
  if (filter.groupName !== undefined) found.push(`j.group_name = ${parameter(filter.groupName)}::text`);
  if (filter.groupId !== undefined) {
    const group = `${parameter(filter.groupId)}::bigint`;
    const bound = (column: string) => `(SELECT ${column} FROM job_groups WHERE id = ${group})`;
    found.push(`j.group_id = ${group} AND j.id BETWEEN ${bound('first_job_id')} AND ${bound('last_job_id')}`);
  }
  const range = (column: string, operator: string, value: number | undefined) => {
    if (value !== undefined) found.push(`${column} ${operator} to_timestamp(${parameter(value)}::float8)`);
  };
  range('j.submitted_at', '>=', filter.submittedFrom);
  range('j.submitted_at', '<', filter.submittedBefore);
  range('j.ended_at', '>=', filter.endedFrom);
  range('j.ended_at', '<', filter.endedBefore);
  return found;
}

export interface Built {
  text: string;
  parameters: unknown[];
}

/** A page of jobs: an array of arrays, each with the values of `columns`. */
export function listJobs(filter: JobFilter, page: JobPage, columns: readonly (keyof JobRow)[]): Built {
  const parameters: unknown[] = [];
  const where = conditions(filter, parameters);
  const key = { SUBMITTED: null, ENDED: 'j.ended_at', DEADLINE: 'j.deadline' }[page.order];
  if (key !== null) where.push(`${key} IS NOT NULL`);
  // A page from the end is the first page of the opposite order, turned round.
  const ascending = (page.direction === 'ASC') !== page.backward;
  const bound = page.from;
  if (bound !== null) {
    const id = `$${parameters.push(bound.id)}::bigint`;
    const sign = ascending ? '>' : '<';
    if (key === null) where.push(`j.id ${sign} ${id}`);
    else
      where.push(
        `(${key}, j.id) ${sign} (to_timestamp($${parameters.push(bound.at)}::float8)::timestamptz(3), ${id})`,
      );
  }
  const way = ascending ? 'ASC' : 'DESC';
  const order = key === null ? `j.id ${way}` : `${key} ${way}, j.id ${way}`;
  const values = columns.map((column) => jobColumns[column]).join(', ');
  const text = `SELECT coalesce(json_agg(v), '[]')::text AS v FROM (
  SELECT json_build_array(${values}) AS v FROM jobs j${where.length > 0 ? ` WHERE ${where.join(' AND ')}` : ''} ORDER BY ${order} LIMIT $${parameters.push(page.limit)}) v`;
  return { text, parameters };
}

/** How many match, counted up to `limit`. */
export function countJobs(filter: JobFilter, limit: number): Built {
  const parameters: unknown[] = [];
  const where = conditions(filter, parameters);
  const text = `SELECT count(*)::text AS v FROM (
  SELECT 1 FROM jobs j${where.length > 0 ? ` WHERE ${where.join(' AND ')}` : ''} LIMIT $${parameters.push(limit)}) v`;
  return { text, parameters };
}
