/** What was measured of runs and tasks (usage.ts), in statements. */
import type { Columns } from '../columns.js';
import type { RunReport } from '../run-reports.js';
import { raw, type Sql } from '../sql.js';
import { isAmount, type UsageField, usageAmounts, usageColumn } from '../usage.js';

const entries = Object.entries(usageColumn) as [UsageField, string][];

/** As columns of items that have perhaps ended with a report. */
export function usageItems<T>(endOf: (item: T) => RunReport | null | undefined): Columns<T> {
  const of = (end: RunReport | null | undefined, field: UsageField) =>
    (field === 'cpuS' || field === 'ioWaitS' ? end?.[field] : end?.usage?.[field]) ?? null;
  return Object.fromEntries(
    entries.map(([field, column]) => [
      column,
      [isAmount(field) ? 'float8' : 'measurement_method', (item: T) => of(endOf(item), field)] as const,
    ]),
  );
}

const listOf = (text: (column: string, field: UsageField) => string): Sql =>
  raw(entries.map(([field, column]) => text(column, field)).join(', '));

/** The columns; with `prefix`, such as `r.`, before each. */
export const usageList = (prefix = ''): Sql => listOf((column) => prefix + column);

/** Each column from that of another table or of `excluded`. */
export const usageFrom = (source: string): Sql => listOf((column) => `${column} = ${source}.${column}`);

/** Each by the name of its field. */
export const usageAs = (table: string): Sql => listOf((column, field) => `${table}.${column} AS "${field}"`);

/** What all tasks of a run have used; what was not measured of one of them is not known of the run. */
export const usageOfTasks: Sql = listOf((column, field) =>
  isAmount(field)
    ? `CASE WHEN bool_and(${column} IS NOT NULL) THEN ${usageAmounts[field].ofTasks}(${column}) END AS "${field}"`
    : `max(${column}) AS "${field}"`,
);
