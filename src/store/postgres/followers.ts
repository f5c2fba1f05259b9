/** Followers of the event feed: a cursor for each, and a lease on it. */
import { latestCursor } from '../images.js';
import { eventReading } from '../queries.js';
import { rowsOf } from '../read-rows.js';
import type { EventRow } from '../rows.js';
import { raw, sql } from '../sql.js';
import { type Connection, run, value } from '../statement.js';
import { FOLLOWER_LEASE_S, type Followed, type FollowerTurn } from '../store.js';

/**
 * The row is only touched by whoever holds or gets the follower, so those that wait for it cost nothing. The events are those that the
 * statement's snapshot shows, in the order of commits: one that it does not show has a higher id than all of them.
 */
export async function follow(connection: Connection, turn: FollowerTurn): Promise<Followed> {
  const { name, holder, after, limit, leaseS = FOLLOWER_LEASE_S } = turn;
  const until = sql`clock_timestamp() + make_interval(secs => ${leaseS}::float8)`;
  const found = await value<[cursor: number, latest: number, events: unknown[][] | null] | null>(
    connection,
    sql`
WITH mine AS (
  UPDATE followers SET holder = ${holder}, lease_until = ${until}, cursor = greatest(cursor, ${after}::bigint)
   WHERE name = ${name} AND (holder = ${holder} OR ${after}::bigint IS NULL AND lease_until <= clock_timestamp())
  RETURNING cursor
)
SELECT json_build_array(cursor, ${raw(latestCursor)}, CASE WHEN cursor >= (SELECT id FROM events_horizon) THEN (
  SELECT coalesce(json_agg(json_build_array(${raw(Object.values(eventReading).join(', '))})), '[]') FROM (
    SELECT * FROM events v WHERE id > mine.cursor ORDER BY id LIMIT ${limit}) v) END) AS v
  FROM mine`,
  );
  if (found === null) {
    const made = await run(
      connection,
      sql`INSERT INTO followers (name, holder, lease_until) VALUES (${name}, ${holder}, ${until}) ON CONFLICT DO NOTHING`,
    );
    return made === 0 ? { kind: 'held' } : follow(connection, { ...turn, after: null });
  }
  const [cursor, latest, values] = found;
  if (values === null) return { kind: 'start-over', cursor: String(latest) };
  const events: EventRow[] = rowsOf(eventReading, values);
  return {
    kind: 'events',
    cursor: String(events.at(-1)?.id ?? cursor),
    events,
    more: events.length === limit,
  };
}
