/**
 * Configuration: the only reader of `process.env`. One table names every variable, its default and its meaning; the
 * documentation and docker/compose.yaml are compared with it by tests.
 */
import { resolve } from 'node:path';
import { LIMIT_VARIABLES, type Limits } from './limits.js';
import { choice, flag, optional, type Table, text, type Values, whole } from './variables.js';

const MIB = 1024 * 1024;

/** The table, by the field of `Config` that each fills. */
export const VARIABLES = {
  host: text(
    'HOST',
    '127.0.0.1',
    'an address or name of this machine',
    /^[\w.:-]+$/,
    'Address the API listens on; 0.0.0.0 for all.',
  ),
  port: whole('PORT', 4000, 0, 65_535, 'Port of the API; 0 takes any free one.'),
  home: text(
    'SWITCHYARD_HOME',
    '.switchyard',
    'a directory',
    /^[^\0]+$/,
    "Directory for the built-in database, the keys and the agent's state.",
  ),
  databaseUrl: optional(
    'DATABASE_URL',
    'postgresql://user:password@host:port/database',
    /^postgres(ql)?:\/\/\S+$/,
    true,
    'PostgreSQL to use; by default a built-in one in SWITCHYARD_HOME.',
  ),
  redisUrl: optional(
    'REDIS_URL',
    'redis://host:port or rediss://host:port',
    /^rediss?:\/\/\S+$/,
    true,
    'Redis for wake-ups of schedulers; by default they go through PostgreSQL.',
  ),
  url: optional(
    'SWITCHYARD_URL',
    'http://host:port/graphql or https://…',
    /^https?:\/\/\S+$/,
    false,
    'GraphQL endpoint for the command line and agents; by default the one on this machine, at PORT.',
  ),
  key: optional(
    'SWITCHYARD_KEY',
    'an API key',
    /^[\x21-\x7e]+$/,
    true,
    'API key for the command line and agents; by default the one in SWITCHYARD_HOME/admin.key.',
  ),
  logLevel: choice(
    'LOG_LEVEL',
    ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
    'info',
    'Lowest level that is logged.',
  ),
  introspection: flag('INTROSPECTION', true, 'Whether clients may query the GraphQL schema (introspection).'),
  landingPage: flag('LANDING_PAGE', true, 'Whether the endpoint shows browsers a page to try queries.'),

  poolSize: whole(
    'DATABASE_POOL_SIZE',
    10,
    2,
    500,
    'Largest number of connections to PostgreSQL per process.',
  ),
  connectTimeoutS: whole(
    'DATABASE_CONNECT_TIMEOUT_S',
    10,
    1,
    600,
    'Time limit for a connection to PostgreSQL, seconds.',
  ),
  statementTimeoutS: whole('STATEMENT_TIMEOUT_S', 30, 1, 3_600, 'Time limit for one SQL statement, seconds.'),
  workerConcurrency: whole(
    'WORKER_CONCURRENCY',
    4,
    1,
    64,
    'Scheduling cycles that one worker process runs at the same time.',
  ),
  metricsPort: whole('METRICS_PORT', 0, 0, 65_535, 'Port for /healthz and /metrics of a worker; 0: none.'),
  shutdownTimeoutS: whole(
    'SHUTDOWN_TIMEOUT_S',
    20,
    1,
    600,
    'Time limit for an orderly shutdown, seconds; what has not ended by then is cut off.',
  ),

  eventRetentionDays: whole(
    'EVENT_RETENTION_DAYS',
    7,
    1,
    3_650,
    'Events older than this are removed; subscribers with older cursors must query again.',
  ),
  jobRetentionDays: whole(
    'JOB_RETENTION_DAYS',
    90,
    1,
    36_500,
    'Jobs that ended longer ago are removed, with their output.',
  ),
  auditRetentionDays: whole(
    'AUDIT_RETENTION_DAYS',
    400,
    1,
    36_500,
    'Entries of the audit log older than this are removed, and keys that expired or were revoked longer ago.',
  ),

  agentSite: text('AGENT_SITE', 'local', 'the name of a site', /^[\w.-]{1,63}$/, 'Site of the agent.'),
  agentStateDir: optional(
    'AGENT_STATE_DIR',
    'a directory',
    /^[^\0]+$/,
    false,
    "Directory for the agent's state; by default SWITCHYARD_HOME/agent.",
  ),
  agentOutputBytes: whole(
    'AGENT_OUTPUT_BYTES',
    MIB,
    1024,
    256 * MIB,
    'Bytes kept of the standard output of a run, and of its standard error.',
  ),
  agentGraceS: whole(
    'AGENT_GRACE_S',
    10,
    0,
    3_600,
    'Time from TERM to KILL when a run is cancelled, seconds.',
  ),
  agentHeartbeatS: whole('AGENT_HEARTBEAT_S', 5, 1, 60, 'Time between heartbeats of the agent, seconds.'),
  agentLinks: optional(
    'AGENT_LINKS',
    'site=url pairs separated by commas, with http: or https: URLs',
    /^[\w.-]{1,63}=https?:\/\/[^\s,]+(,[\w.-]{1,63}=https?:\/\/[^\s,]+)*$/,
    false,
    'Files at other sites, of at least 1 MB each, with which the agent measures the links from there; by default none.',
  ),
  agentLinksS: whole('AGENT_LINKS_S', 300, 10, 86_400, 'Time between measurements of the links, seconds.'),
} as const;

/** Every variable there is, in the order of the documentation. */
export const ALL_VARIABLES = [...Object.values(VARIABLES), ...Object.values(LIMIT_VARIABLES)];

export type Config = Omit<Values<typeof VARIABLES>, 'url' | 'agentStateDir'> & {
  /** Absolute. */
  home: string;
  /** GraphQL endpoint to talk to: the one given, else the local one. */
  url: string;
  /** Absolute. */
  agentStateDir: string;
  limits: Limits;
};

/** One line for each variable with a bad value: its name, the value and what is accepted. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * Reads and checks the configuration. An empty variable counts as one that is not set.
 *
 * @throws ConfigError naming every bad variable at once
 */
export function loadConfig(env: NodeJS.ProcessEnv = process.env): Config {
  const problems: string[] = [];
  const { url, agentStateDir, ...rest } = readTable(VARIABLES, env, problems);
  const limits = readTable(LIMIT_VARIABLES, env, problems);
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  const home = resolve(rest.home);
  return {
    ...rest,
    home,
    url: url ?? `http://localhost:${rest.port}/graphql`,
    agentStateDir: resolve(agentStateDir ?? `${home}/agent`),
    limits,
  };
}

function readTable<T extends Table>(table: T, env: NodeJS.ProcessEnv, problems: string[]): Values<T> {
  const values: Record<string, unknown> = {};
  for (const [field, variable] of Object.entries(table)) {
    const written = env[variable.name] || variable.default;
    const parsed = variable.schema.safeParse(written);
    if (parsed.success) values[field] = parsed.data;
    else {
      const shown = variable.secret ? '(not shown: it is a secret)' : JSON.stringify(written);
      problems.push(`${variable.name}: ${shown} is not accepted; accepted: ${variable.accepted}`);
    }
  }
  return values as Values<T>;
}

/**
 * The environment that jobs on this machine inherit: ours, without Switchyard's own variables, which hold its secrets.
 */
export function inheritedEnvironment(env: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const ours = new Set(ALL_VARIABLES.map((variable) => variable.name));
  return Object.fromEntries(
    Object.entries(env).filter(
      (entry): entry is [string, string] =>
        entry[1] !== undefined && !ours.has(entry[0]) && !/^(SWITCHYARD_|npm_)/.test(entry[0]),
    ),
  );
}
