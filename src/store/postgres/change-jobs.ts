/** The one statement by which jobs change: what an action of core/states.ts does to them, as an UPDATE. */
import { type JobAction, jobActions, stateAfter } from '../../core/states.js';
import { type JobField, jobColumn } from '../job-fields.js';
import { empty, join, labels, raw, type Sql, sql } from '../sql.js';
import { type Connection, run } from '../statement.js';

/** What the action gives a value to (`sets`), all of it, in terms of the job `j` and the item `t`. */
type Settings<A extends JobAction> = (typeof jobActions)[A] extends {
  readonly sets: readonly (infer F extends string)[];
}
  ? Readonly<Record<F, Sql>>
  : Readonly<Record<never, Sql>>;

/**
 * Does the action to jobs that are locked, and in a state in which it is possible: the trigger on jobs refuses others, and writes the
 * events. `items`: a table `t` with the jobs' ids as `id`. `state`: where the action leads to several. Answers how many.
 */
export function changeJobs<A extends JobAction>(
  tx: Connection,
  action: A,
  items: Sql,
  settings: Settings<A>,
  state: Sql = stateFrom(action),
): Promise<number> {
  const { clears = [] } = jobActions[action] as { clears?: readonly string[] };
  const column = (field: string): Sql => raw(jobColumn[field as JobField]);
  const set = [
    ...Object.entries<Sql>(settings).map(([field, value]) => sql`, ${column(field)} = ${value}`),
    ...clears.map((field) => sql`, ${column(field)} = NULL`),
  ];
  return run(
    tx,
    sql`UPDATE jobs j SET seq = j.seq + 1, state = ${state}${set.length > 0 ? join(set, '') : empty} FROM ${items} WHERE j.id = t.id`,
  );
}

/** The state that the list of transitions says; that of the job where it keeps it. */
function stateFrom(action: JobAction): Sql {
  const { keeps = [] } = jobActions[action] as { keeps?: readonly string[] };
  const after = stateAfter(action);
  if (after === null) return sql`j.state`;
  if (keeps.length === 0) return sql`${raw(`'${after}'`)}`;
  return sql`CASE WHEN j.state IN ${labels(keeps)} THEN j.state ELSE ${raw(`'${after}'`)} END`;
}
