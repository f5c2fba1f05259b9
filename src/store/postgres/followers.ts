/** Followers of the event feed: a cursor for each, and a lease on it. */
import { latestCursor } from '../images.js';
import { eventReading } from '../queries.js';
import { rowsOf } from '../read-rows.js';
import type { EventRow } from '../rows.js';
import { labels, raw, type Sql, sql } from '../sql.js';
import { type Connection, prepared, run, value } from '../statement.js';
import { type EventFilter, FOLLOWER_LEASE_S, type Followed, type FollowerTurn } from '../store.js';

/**
 * The row is only touched by whoever holds or gets the follower, so those that wait for it cost nothing. The events are those that the
 * statement's snapshot shows, in the order of commits: one that it does not show has a higher id than all of them. Nobody waits until the
 * cursor is on disk: if it is lost with the server, the same events are handed out again.
 */
export async function follow(connection: Connection, turn: FollowerTurn): Promise<Followed> {
  const { name, holder, after, limit, only = null, leaseS = FOLLOWER_LEASE_S } = turn;
  // Not rounded up to the millisecond that is stored: a lease of 0 is over for whoever asks next.
  const until = sql`date_trunc('milliseconds', clock_timestamp() + make_interval(secs => ${leaseS}::float8))`;
  const found = await value<
    | [
        cursor: number,
        latest: number,
        known: boolean,
        looked: number,
        last: number | null,
        events: unknown[][],
      ]
    | null
  >(
    connection,
    prepared(sql`
WITH mine AS (
  UPDATE followers SET holder = ${holder}, lease_until = ${until}, cursor = greatest(cursor, ${after}::bigint)
   WHERE name = ${name} AND (holder = ${holder} OR ${after}::bigint IS NULL AND lease_until <= clock_timestamp())
  RETURNING cursor
), looked AS MATERIALIZED (
  SELECT * FROM events WHERE id > (SELECT cursor FROM mine) ORDER BY id LIMIT ${raw(String(limit))}
)
SELECT json_build_array(cursor, ${raw(latestCursor)}, cursor >= (SELECT id FROM events_horizon), (SELECT count(*) FROM looked), (SELECT max(id) FROM looked),
  (SELECT coalesce(json_agg(json_build_array(${raw(Object.values(eventReading).join(', '))}) ORDER BY id), '[]') FROM looked v WHERE ${wanted(only)})) AS v
  FROM mine, set_config('synchronous_commit', 'off', true)`),
  );
  if (found === null) {
    const made = await run(
      connection,
      sql`INSERT INTO followers (name, holder, lease_until) VALUES (${name}, ${holder}, ${until}) ON CONFLICT DO NOTHING`,
    );
    return made === 0 ? { kind: 'held' } : follow(connection, { ...turn, after: null });
  }
  const [cursor, latest, known, looked, last, events] = found;
  if (!known) return { kind: 'start-over', cursor: String(latest) };
  return {
    kind: 'events',
    cursor: String(last ?? cursor),
    events: rowsOf<EventRow>(eventReading, events),
    more: looked === limit,
  };
}

function wanted(only: EventFilter | null): Sql {
  if (only === null) return sql`true`;
  const { kinds = [], states = [] } = only;
  const ofKind = kinds.length === 0 ? sql`false` : sql`kind IN ${labels(kinds)}`;
  return states.length === 0 ? ofKind : sql`(${ofKind} OR to_state IN ${labels(states)})`;
}
