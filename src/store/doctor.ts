/** What a server is, and what of its settings harms: said in words when a process starts, for nobody looks for it in a log of slow statements. */
import type pg from 'pg';
import { SESSION_SETTINGS } from './connection.js';

export interface Diagnosis {
  /** As `PostgreSQL 15.14`. */
  server: string;
  /** A sentence for each thing that should be changed. */
  harm: string[];
}

const OLDEST = 150_000;

/** The settings that are asked about, beside those that each session of ours asks for. */
const ASKED = [
  ...['server_version', 'server_version_num', 'server_encoding', 'max_connections', 'in_hot_standby'],
  ...['fsync', 'full_page_writes', 'synchronous_commit', 'autovacuum', 'track_activities'],
];

/** Where it is otherwise: what follows. */
const WANTED: Readonly<Record<string, [wanted: string, consequence: string]>> = {
  fsync: ['on', 'a power failure can destroy the database'],
  full_page_writes: ['on', 'a power failure can destroy the database'],
  synchronous_commit: ['on', 'accepted jobs can be lost if the server crashes'],
  autovacuum: ['on', 'tables grow without bound and become slow'],
  track_activities: ['on', 'sessions of frozen processes cannot be found and ended'],
  in_hot_standby: ['off', 'this server is a replica and does not accept writes'],
  server_encoding: ['UTF8', 'non-ASCII texts are rejected or garbled'],
};
/** What does no less than `on`. */
const SAFE_COMMITS = ['remote_apply', 'remote_write'];

export async function diagnose(pool: pg.Pool): Promise<Diagnosis> {
  const client = await pool.connect();
  try {
    const { rows } = await client.query<{ name: string; value: string; backend: number }>(
      `SELECT name, setting AS value, pg_backend_pid() AS backend FROM pg_settings WHERE name = ANY ($1)`,
      [[...ASKED, ...Object.keys(SESSION_SETTINGS)]],
    );
    const settings = new Map(rows.map(({ name, value }) => [name, value]));
    // A pooler gives each client a number of its own.
    const { processID } = client as pg.PoolClient & { processID?: number };
    const isPooled = processID !== undefined && processID !== rows[0]?.backend;
    return {
      server: `PostgreSQL ${settings.get('server_version')}`,
      harm: [...harmOfServer(settings, pool.options.max), ...harmOfSession(settings, isPooled)],
    };
  } finally {
    client.release();
  }
}

function harmOfServer(settings: ReadonlyMap<string, string>, poolSize: number): string[] {
  const harm: string[] = [];
  if (Number(settings.get('server_version_num')) < OLDEST)
    harm.push('this release of PostgreSQL is too old; required is 15 or later');
  for (const [name, [wanted, consequence]] of Object.entries(WANTED)) {
    const value = settings.get(name) ?? wanted;
    if (value !== wanted && !SAFE_COMMITS.includes(value))
      harm.push(`${name} is ${value}: ${consequence}; set it to ${wanted}`);
  }
  const connections = Number(settings.get('max_connections'));
  if (connections < 2 * poolSize)
    harm.push(
      `max_connections is ${connections}, and this process alone may use ${poolSize} (DATABASE_POOL_SIZE): none may be left for other processes`,
    );
  return harm;
}

function harmOfSession(settings: ReadonlyMap<string, string>, isPooled: boolean): string[] {
  const dropped = Object.entries(SESSION_SETTINGS).filter(
    ([name, wanted]) => (settings.get(name) ?? wanted) !== wanted,
  );
  const names = dropped.map(([name, wanted]) => `${name} = ${wanted}`).join(', ');
  return [
    ...(isPooled
      ? [
          'a connection pooler is in use: it must keep each connection with one session (PgBouncer: pool_mode = session)',
        ]
      : []),
    ...(dropped.length > 0
      ? [
          `the settings that sessions request are not in effect; set them for the database user (ALTER ROLE … SET): ${names}`,
        ]
      : []),
  ];
}
