/** The listing of jobs for people: filters, three orders, pages by key. Built by parts, for most conditions are absent. */
import { type JobFilter, jobConditions } from '../job-filter.js';
import type { JobPage } from '../queries.js';
import type { JobRow } from '../rows.js';
import { and, raw, type Sql, sql } from '../sql.js';
import { jobColumns } from './rows.js';

/** A page of jobs: an array of arrays, each with the values of `columns`. */
export function listJobs(filter: JobFilter, page: JobPage, columns: readonly (keyof JobRow)[]): Sql {
  const where = jobConditions(filter);
  const key = { SUBMITTED: null, ENDED: raw('j.ended_at'), DEADLINE: raw('j.deadline') }[page.order];
  if (key !== null) where.push(sql`${key} IS NOT NULL`);
  // A page from the end is the first page of the opposite order, turned round.
  const ascending = (page.direction === 'ASC') !== page.backward;
  if (page.from !== null) {
    const { id, at } = page.from;
    const sign = raw(ascending ? '>' : '<');
    where.push(
      key === null
        ? sql`j.id ${sign} ${id}::bigint`
        : sql`(${key}, j.id) ${sign} (to_timestamp(${at}::float8)::timestamptz(3), ${id}::bigint)`,
    );
  }
  const way = raw(ascending ? 'ASC' : 'DESC');
  const order = key === null ? sql`j.id ${way}` : sql`${key} ${way}, j.id ${way}`;
  const values = raw(columns.map((column) => jobColumns[column]).join(', '));
  return sql`
SELECT coalesce(json_agg(v), '[]')::text AS v FROM (
  SELECT json_build_array(${values}) AS v FROM jobs j WHERE ${and(where)} ORDER BY ${order} LIMIT ${page.limit}) v`;
}

/** How many match, counted up to `limit`. */
export const countJobs = (filter: JobFilter, limit: number): Sql =>
  sql`SELECT count(*)::text AS v FROM (SELECT 1 FROM jobs j WHERE ${and(jobConditions(filter))} LIMIT ${limit}) v`;
