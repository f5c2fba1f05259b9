/**
 * Configuration: the only reader of `process.env`. One table names every variable, its default and its meaning; the
 * documentation and docker/compose.yaml are compared with it by tests.
 */
import { resolve } from 'node:path';
import { z } from 'zod';

/** One variable of the table. `V` is what the code gets. */
export interface Variable<V> {
  name: string;
  /** As it would be written in the environment; null: no value. */
  default: string | null;
  meaning: string;
  /** What may be written, in words. */
  accepted: string;
  /** Never shown in errors and logs. */
  secret: boolean;
  schema: z.ZodType<V>;
}

function whole(name: string, byDefault: number, min: number, max: number, meaning: string): Variable<number> {
  const schema = z
    .string()
    .regex(/^\d{1,15}$/)
    .transform(Number)
    .pipe(z.number().min(min).max(max));
  return {
    name,
    default: String(byDefault),
    meaning,
    accepted: `a whole number from ${min} to ${max}`,
    secret: false,
    schema,
  };
}

function flag(name: string, byDefault: boolean, meaning: string): Variable<boolean> {
  const schema = z.enum(['true', 'false']).transform((text) => text === 'true');
  return { name, default: String(byDefault), meaning, accepted: 'true or false', secret: false, schema };
}

function choice<const T extends string>(
  name: string,
  values: readonly [T, ...T[]],
  byDefault: T,
  meaning: string,
): Variable<T> {
  const schema = z.enum(values) as unknown as z.ZodType<T>;
  return {
    name,
    default: byDefault,
    meaning,
    accepted: `one of ${values.join(', ')}`,
    secret: false,
    schema,
  };
}

function text(
  name: string,
  byDefault: string,
  accepted: string,
  pattern: RegExp,
  meaning: string,
): Variable<string> {
  return { name, default: byDefault, meaning, accepted, secret: false, schema: z.string().regex(pattern) };
}

function optional(
  name: string,
  accepted: string,
  pattern: RegExp,
  secret: boolean,
  meaning: string,
): Variable<string | null> {
  return { name, default: null, meaning, accepted, secret, schema: z.string().regex(pattern).nullable() };
}

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
    'Directory of what is kept: embedded database, keys, agent.',
  ),
  databaseUrl: optional(
    'DATABASE_URL',
    'postgresql://user:password@host:port/database',
    /^postgres(ql)?:\/\/\S+$/,
    true,
    'PostgreSQL to use; without it an embedded one is started in SWITCHYARD_HOME.',
  ),
  redisUrl: optional(
    'REDIS_URL',
    'redis://host:port or rediss://host:port',
    /^rediss?:\/\/\S+$/,
    true,
    'Redis for the queue of wake-ups; without it they go through PostgreSQL.',
  ),
  url: optional(
    'SWITCHYARD_URL',
    'http://host:port/graphql or https://…',
    /^https?:\/\/\S+$/,
    false,
    'GraphQL endpoint that the command line and agents talk to; without it the local one, on PORT.',
  ),
  key: optional(
    'SWITCHYARD_KEY',
    'an API key',
    /^[\x21-\x7e]+$/,
    true,
    'API key of the command line and agents; without it the one in SWITCHYARD_HOME/admin.key.',
  ),
  logLevel: choice(
    'LOG_LEVEL',
    ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
    'info',
    'Least severe level that is logged.',
  ),
  introspection: flag('INTROSPECTION', true, 'Whether clients may ask for the GraphQL schema.'),
  portal: flag('PORTAL', true, 'Whether browsers get the portal at /, and the explorer at /graphql.'),

  poolSize: whole(
    'DATABASE_POOL_SIZE',
    10,
    2,
    500,
    'Connections to PostgreSQL at the most, for each process.',
  ),
  connectTimeoutS: whole(
    'DATABASE_CONNECT_TIMEOUT_S',
    10,
    1,
    600,
    'Longest wait for a connection to PostgreSQL, seconds.',
  ),
  statementTimeoutS: whole('STATEMENT_TIMEOUT_S', 30, 1, 3_600, 'Longest run of one SQL statement, seconds.'),
  workerConcurrency: whole(
    'WORKER_CONCURRENCY',
    4,
    1,
    64,
    'Scheduling cycles that one worker process has under way at once.',
  ),
  metricsPort: whole('METRICS_PORT', 0, 0, 65_535, "Port of a worker's /healthz and /metrics; 0: none."),
  shutdownTimeoutS: whole(
    'SHUTDOWN_TIMEOUT_S',
    20,
    1,
    600,
    'Longest orderly shutdown, seconds; what is left then is cut off.',
  ),

  eventRetentionDays: whole(
    'EVENT_RETENTION_DAYS',
    7,
    1,
    3_650,
    'Events older than this are removed; older cursors must resync.',
  ),
  jobRetentionDays: whole(
    'JOB_RETENTION_DAYS',
    90,
    1,
    36_500,
    'Ended jobs older than this are removed, with their outputs.',
  ),

  agentSite: text(
    'AGENT_SITE',
    'local',
    'the name of a site',
    /^[\w.-]{1,63}$/,
    'Site that the agent serves.',
  ),
  agentStateDir: optional(
    'AGENT_STATE_DIR',
    'a directory',
    /^[^\0]+$/,
    false,
    'Where the agent keeps its runs; without it SWITCHYARD_HOME/agent.',
  ),
  agentOutputBytes: whole(
    'AGENT_OUTPUT_BYTES',
    MIB,
    1024,
    256 * MIB,
    'Kept of what a process writes, for stdout and stderr each, bytes.',
  ),
  agentGraceS: whole('AGENT_GRACE_S', 10, 0, 3_600, 'From TERM to KILL when a run is cancelled, seconds.'),
  agentHeartbeatS: whole('AGENT_HEARTBEAT_S', 5, 1, 60, 'Between heartbeats of an agent, seconds.'),
  agentLinks: optional(
    'AGENT_LINKS',
    'site=url pairs with commas between them, the urls http: or https:',
    /^[\w.-]{1,63}=https?:\/\/[^\s,]+(,[\w.-]{1,63}=https?:\/\/[^\s,]+)*$/,
    false,
    'Files at other sites (at least a megabyte each) by which the agent measures the links from there; without it, none.',
  ),
  agentLinksS: whole('AGENT_LINKS_S', 300, 10, 86_400, 'Between two measurements of the links, seconds.'),
} as const;

/** What a client may ask for at most. Every one is finite: nothing that a client sends may grow without bound. */
export const LIMIT_VARIABLES = {
  bodyBytesMax: whole(
    'LIMIT_BODY_BYTES',
    32 * MIB,
    1_024,
    1_024 * MIB,
    'Body of a request, and message of a WebSocket, bytes.',
  ),
  pageMax: whole('LIMIT_PAGE', 5_000, 1, 100_000, 'Objects in a page.'),
  jobsMax: whole('LIMIT_JOBS', 10_000, 1, 100_000, 'Jobs in one submission, or touched by one action.'),
  groupJobsMax: whole('LIMIT_GROUP_JOBS', 100_000, 1, 100_000, 'Jobs of one bulk group.'),
  groupCharsMax: whole(
    'LIMIT_GROUP_CHARACTERS',
    64 * MIB,
    1_024,
    1_024 * MIB,
    'Characters of all names, arguments, environments and working directories that a bulk group makes of its template.',
  ),
  reportsMax: whole('LIMIT_REPORTS', 1_000, 1, 10_000, 'Reports of an agent in one request.'),
  machinesMax: whole('LIMIT_MACHINES', 1_000, 1, 10_000, 'Machines in one registration.'),
  costMax: whole('LIMIT_QUERY_COST', 50_000, 1, 10_000_000, 'Objects that a query may ask for in all.'),
  depthMax: whole('LIMIT_QUERY_DEPTH', 12, 1, 100, 'Levels of fields within fields.'),
  aliasesMax: whole('LIMIT_QUERY_ALIASES', 100, 0, 10_000, 'Aliases in a query.'),
  tokensMax: whole('LIMIT_QUERY_TOKENS', 20_000, 100, 1_000_000, "Words and signs of a query's text."),
  requestsPerSecond: whole(
    'LIMIT_REQUESTS_PER_SECOND',
    200,
    1,
    1_000_000,
    'Requests of one API key within a second.',
  ),
  requestsBurst: whole(
    'LIMIT_REQUESTS_BURST',
    2_000,
    1,
    1_000_000,
    'Requests that one API key may save up for a burst.',
  ),
  strangersPerMinute: whole(
    'LIMIT_STRANGERS_PER_MINUTE',
    120,
    1,
    1_000_000,
    'Requests without a good key from one address in a minute.',
  ),
  subscriptionsPerKey: whole(
    'LIMIT_SUBSCRIPTIONS',
    2_000,
    1,
    100_000,
    'Subscriptions of one API key at once.',
  ),
  connectionsMax: whole(
    'LIMIT_CONNECTIONS',
    5_000,
    1,
    100_000,
    'WebSocket connections of one process at once.',
  ),
  subscriberBuffer: whole(
    'LIMIT_SUBSCRIBER_BUFFER',
    20_000,
    1,
    1_000_000,
    'Updates kept for a slow subscriber before it must resync.',
  ),
  requestTimeoutMs: whole(
    'LIMIT_REQUEST_MS',
    60_000,
    100,
    3_600_000,
    'Longest arrival of a request, milliseconds.',
  ),
  keepAliveMs: whole(
    'LIMIT_KEEP_ALIVE_MS',
    65_000,
    0,
    3_600_000,
    'Idle HTTP connections are kept this long, milliseconds.',
  ),
  answerTimeoutMs: whole(
    'LIMIT_ANSWER_MS',
    60_000,
    100,
    3_600_000,
    'Longest work on an answer, milliseconds.',
  ),
} as const;

/** Every variable there is, in the order of the documentation. */
export const ALL_VARIABLES: readonly Variable<unknown>[] = [
  ...Object.values(VARIABLES),
  ...Object.values(LIMIT_VARIABLES),
];

type Table = Record<string, Variable<unknown>>;
type Values<T extends Table> = { -readonly [K in keyof T]: T[K] extends Variable<infer V> ? V : never };

export type Limits = Values<typeof LIMIT_VARIABLES>;
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
      problems.push(`${variable.name} is ${shown}; accepted is ${variable.accepted}`);
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
