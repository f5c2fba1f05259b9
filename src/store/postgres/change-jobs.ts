/**
 * The one statement that changes jobs: an UPDATE that does what core/states.ts says about an action. It takes the event lock, so it goes
 * with the COMMIT (`commitWith`).
 */
import { type JobAction, jobActions, stateAfter } from '../../core/states.js';
import { type JobField, jobColumn } from '../job-fields.js';
import { empty, join, labels, raw, type Sql, sql } from '../sql.js';

/** A value for each field that the action sets, in terms of the job `j` and the item `t`. */
type Settings<A extends JobAction> = (typeof jobActions)[A] extends {
  readonly sets: readonly (infer F extends string)[];
}
  ? Readonly<Record<F, Sql>>
  : Readonly<Record<never, Sql>>;

/**
 * Performs the action on jobs that are locked and in a state in which it is possible; the trigger on jobs checks that, and writes the
 * events. `items`: a table `t` with the jobs' ids as `id`. `state`: needed where the action can lead to several.
 */
export function changeJobs<A extends JobAction>(
  action: A,
  items: Sql,
  settings: Settings<A>,
  state: Sql = stateFrom(action),
): Sql {
  const { clears = [] } = jobActions[action] as { clears?: readonly string[] };
  const column = (field: string): Sql => raw(jobColumn[field as JobField]);
  const set = [
    ...Object.entries<Sql>(settings).map(([field, value]) => sql`, ${column(field)} = ${value}`),
    ...['note', ...clears].flatMap((field) => (field in settings ? [] : [sql`, ${column(field)} = NULL`])),
  ];
  return sql`
UPDATE jobs j SET seq = j.seq + 1, changed_at = greatest(j.changed_at, j.submitted_at, clock_timestamp()), state = ${state}${set.length > 0 ? join(set, '') : empty} FROM ${items} WHERE j.id = t.id`;
}

/**
 * A time of a job that is not before those which it shows already: the clock of the database may have been set back. Of a run, and of its
 * job's end with it, rules.ts sees to that.
 */
export const inOrder = (
  now: number,
): Sql => sql`greatest(to_timestamp(${now}::float8), j.submitted_at, j.dispatched_at,
  CASE WHEN j.epoch > 0 THEN (SELECT max(r.ended_at) FROM runs r WHERE r.job_id = j.id) END)`;

/** The state that follows from the list of transitions. */
function stateFrom(action: JobAction): Sql {
  const { keeps = [] } = jobActions[action] as { keeps?: readonly string[] };
  const after = stateAfter(action);
  if (after === null) return sql`j.state`;
  if (keeps.length === 0) return sql`${raw(`'${after}'`)}`;
  return sql`CASE WHEN j.state IN ${labels(keeps)} THEN j.state ELSE ${raw(`'${after}'`)} END`;
}
