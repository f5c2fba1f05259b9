/**
 * The database's functions and triggers: a few that are made here from constants and from the list of transitions, then
 * prisma/functions.sql. All are in one schema, which is dropped to replace them.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { INTERVAL_S } from '../core/data/traffic.js';
import { endedStates, jobStates, liveStates, transitions, waitingStates } from '../core/states.js';
import { packagePath } from '../platform/paths.js';
import { VERSION } from '../platform/version.js';
import { EVENT_CHANNEL, EVENT_LOCK } from './constants.js';

const text = (value: string): string => `'${value.replaceAll("'", "''")}'`;
const list = (values: readonly string[]): string => `(${values.map(text).join(', ')})`;

const fromConstants = (): string => `
CREATE FUNCTION triggers.event_lock() RETURNS bigint IMMUTABLE LANGUAGE sql RETURN ${EVENT_LOCK};
CREATE FUNCTION triggers.event_channel() RETURNS text IMMUTABLE LANGUAGE sql RETURN ${text(EVENT_CHANNEL)};
CREATE FUNCTION triggers.traffic_interval_s() RETURNS integer IMMUTABLE LANGUAGE sql RETURN ${INTERVAL_S};
CREATE FUNCTION triggers.waiting(state job_state) RETURNS boolean IMMUTABLE LANGUAGE sql RETURN state IN ${list(waitingStates)};
CREATE FUNCTION triggers.live(state job_state) RETURNS boolean IMMUTABLE LANGUAGE sql RETURN state IN ${list(liveStates)};
CREATE FUNCTION triggers.ended(state job_state) RETURNS boolean IMMUTABLE LANGUAGE sql RETURN state IN ${list(endedStates)};
CREATE FUNCTION triggers.legal(was job_state, becomes job_state) RETURNS boolean IMMUTABLE LANGUAGE sql RETURN CASE was
${jobStates
  .map((was) => [was, transitions.filter(({ from }) => from === was).map(({ to }) => to)] as const)
  .filter(([, next]) => next.length > 0)
  .map(([was, next]) => `  WHEN ${text(was)} THEN becomes IN ${list([...new Set(next)])}`)
  .join('\n')}
  ELSE false END;
`;

/** All of them, as one script. */
export interface Functions {
  /** Of the product: a database keeps the functions of the latest release that has migrated it. */
  release: string;
  sql: string;
  checksum: string;
}

export function currentFunctions(): Functions {
  return functionsOf(VERSION, fromConstants() + readFileSync(packagePath('prisma', 'functions.sql'), 'utf8'));
}

export const functionsOf = (release: string, sql: string): Functions => ({
  release,
  sql,
  checksum: createHash('sha256').update(sql).digest('hex'),
});
