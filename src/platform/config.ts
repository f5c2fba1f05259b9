/**
 * Configuration: with connection.ts the only reader of `process.env`. One table names every variable, its default and its meaning; the
 * documentation and docker/compose.yaml are compared with it by tests.
 */
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { CONNECTION, type Connection, located } from './connection.js';
import { plainJobEnvironment } from './environment.js';
import { LIMIT_VARIABLES, type Limits } from './limits.js';
import {
  ConfigError,
  choice,
  flag,
  list,
  optional,
  readTable,
  text,
  type Values,
  whole,
} from './variables.js';

const MIB = 1024 * 1024;
/** Beyond what systems and container engines give out by themselves. */
const DEFAULT_UIDS = { first: 2_000_000_000, last: 2_000_999_999 };

/** An address, or a network in CIDR notation. */
function isNetwork(written: string): boolean {
  const [address, bits, ...rest] = written.split('/') as [string, ...string[]];
  const most = isIP(address) === 6 ? 128 : 32;
  return (
    isIP(address) !== 0 &&
    rest.length === 0 &&
    (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= most))
  );
}

function isOrigin(written: string): boolean {
  return /^https?:\/\//.test(written) && URL.canParse(written) && new URL(written).origin === written;
}

/** The table, by the field of `Config` that each fills. */
export const VARIABLES = {
  host: text(
    'HOST',
    '127.0.0.1',
    'an address or name of this machine',
    /^[\w.:-]+$/,
    'Address the API listens on; 0.0.0.0 for all.',
  ),
  port: CONNECTION.port,
  home: CONNECTION.home,
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
  url: CONNECTION.url,
  key: CONNECTION.key,
  secretsKey: optional(
    'SECRETS_KEY',
    '32 bytes in base64, or a file that contains them',
    /^[^\0]+$/,
    true,
    'Key that encrypts what the service stores for users (registry credentials), the same for all API processes; by default the one in SWITCHYARD_HOME/secrets.key with the built-in database, otherwise none. Back it up apart from the database.',
  ),
  secretsKeysOld: list(
    'SECRETS_KEYS_OLD',
    'keys as in SECRETS_KEY',
    () => true,
    'Former keys, which only decrypt (docs/operations/users.md).',
  ),
  logLevel: choice(
    'LOG_LEVEL',
    ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
    'info',
    'Lowest level to log.',
  ),
  tlsCert: CONNECTION.tlsCert,
  tlsKey: optional(
    'SWITCHYARD_TLS_KEY',
    'a file',
    /^[^\0]+$/,
    false,
    'PEM file with the key of that certificate.',
  ),
  trustedProxies: list(
    'SWITCHYARD_TRUSTED_PROXIES',
    'addresses or networks such as 10.0.0.0/8',
    isNetwork,
    'Proxies in front of the API whose X-Forwarded-For header is trusted for client addresses.',
  ),
  corsOrigins: list(
    'SWITCHYARD_CORS_ORIGINS',
    'origins such as https://portal.example.org, or * alone',
    (one) => one === '*' || isOrigin(one),
    'Origins of other web pages that may use the API from a browser; by default none.',
  ),
  trustedDocuments: list(
    'SWITCHYARD_TRUSTED_DOCUMENTS',
    'files',
    () => true,
    'JSON files that map SHA-256 hashes to GraphQL documents; only these documents and those of `switchyard` itself are then accepted. By default all are accepted.',
  ),
  tesIgnoreImages: flag(
    'TES_IGNORE_IMAGES',
    false,
    'Whether GA4GH TES tasks that name container images are accepted and run without the image.',
  ),
  tesStorage: list(
    'TES_STORAGE',
    'URLs such as file:///shared',
    (one) => /^file:\/\/\//.test(one),
    'Directories shared by all machines, announced to GA4GH TES clients; by default none.',
  ),
  publicUrl: optional(
    'SWITCHYARD_PUBLIC_URL',
    'https://host:port or http://host:port',
    /^https?:\/\/[^\s/?#@]+$/,
    false,
    'URL at which sites of peers reach this API. If set, jobs whose input data exist only at local sites can also run at peers: agents upload copies of the data to the service, and peers fetch them from there.',
  ),
  peerDataHosts: list(
    'SWITCHYARD_PEER_DATA_HOSTS',
    'hosts of URLs, such as data.internal or 10.1.2.3',
    (one) => /^[^\s/@,]+$/.test(one),
    'Hosts of datasets that peers can reach despite private addresses or names. Jobs that read from other private hosts are not offered to peers.',
  ),
  webhookAddresses: list(
    'SWITCHYARD_WEBHOOK_ADDRESSES',
    'IP addresses, or ranges such as 10.0.0.0/8',
    isNetwork,
    'Private or local addresses to which webhooks may be sent, also without TLS (http:); by default none.',
  ),
  webhookTimeoutS: whole(
    'SWITCHYARD_WEBHOOK_TIMEOUT_S',
    15,
    1,
    120,
    'Time limit for one request to the endpoint of a webhook, seconds.',
  ),
  webhookGiveUpH: whole(
    'SWITCHYARD_WEBHOOK_GIVE_UP_H',
    72,
    1,
    8_760,
    'A webhook is disabled if nothing could be delivered to its endpoint for this long, hours.',
  ),
  smtpUrl: optional(
    'SWITCHYARD_SMTP_URL',
    'smtp://user:password@host:587 or smtps://host',
    /^smtps?:\/\/\S+$/,
    true,
    'Mail server for mail about jobs; by default no mail is sent. smtp: uses STARTTLS if the server offers it; `?requireTLS=true` requires it.',
  ),
  mailFrom: text(
    'SWITCHYARD_MAIL_FROM',
    'switchyard@localhost',
    'an address',
    /^[^\s@<>,;"]+@[^\s@<>,;"]+$/,
    'Sender of this mail.',
  ),
  mailEveryS: whole(
    'SWITCHYARD_MAIL_EVERY_S',
    300,
    0,
    86_400,
    'Minimum time between two mails to one user, seconds; events in between go into the next mail.',
  ),
  mailWaitedH: whole(
    'SWITCHYARD_MAIL_WAITED_H',
    24,
    1,
    8_760,
    'Waiting time after which the user of a job gets mail about it (WAITED), hours.',
  ),
  oidcIssuer: optional(
    'SWITCHYARD_OIDC_ISSUER',
    'https://host or https://host/path',
    /^https:\/\/[^\s?#]+$|^http:\/\/(localhost|127\.0\.0\.1)(:\d+)?(\/[^\s?#]*)?$/,
    false,
    'OpenID Connect issuer whose tokens are accepted in addition to API keys; by default none.',
  ),
  oidcAudience: list(
    'SWITCHYARD_OIDC_AUDIENCE',
    'texts',
    () => true,
    'Accepted audiences, one of which a token must have; required with an issuer.',
  ),
  oidcClientId: optional(
    'SWITCHYARD_OIDC_CLIENT_ID',
    'a client id',
    /^[\x21-\x7e]+$/,
    false,
    'Public client at the issuer through which people sign in to the portal; by default they need an API key.',
  ),
  oidcScope: text(
    'SWITCHYARD_OIDC_SCOPE',
    'openid profile',
    'scopes, openid among them',
    /^(\S+ )*openid( \S+)*$/,
    'Scopes that the portal requests from the issuer; with `offline_access` it renews the token before it expires.',
  ),
  oidcGroupsClaim: text(
    'SWITCHYARD_OIDC_GROUPS_CLAIM',
    'groups',
    'the name of a claim',
    /^\S+$/,
    "Token claim with the person's groups.",
  ),
  oidcRoles: list(
    'SWITCHYARD_OIDC_ROLES',
    'group=ROLE pairs with ADMIN, OPERATOR or USER',
    (one) => /^.+=(ADMIN|OPERATOR|USER)$/.test(one),
    'Roles by group; a person has the strongest role of their groups, and people in none of these groups are rejected. By default each person has the role of their user.',
  ),
  oidcNameClaim: text(
    'SWITCHYARD_OIDC_NAME_CLAIM',
    'preferred_username',
    'the name of a claim',
    /^\S+$/,
    "Token claim with the person's name.",
  ),
  oidcCreateUsers: flag(
    'SWITCHYARD_OIDC_CREATE_USERS',
    true,
    'Whether people become users when they first sign in; otherwise an administrator must register them by subject.',
  ),
  oidcClockToleranceS: whole(
    'SWITCHYARD_OIDC_CLOCK_TOLERANCE_S',
    5,
    0,
    300,
    'Allowed difference between the clocks of issuer and service, seconds.',
  ),
  passwords: flag(
    'SWITCHYARD_PASSWORDS',
    true,
    'Whether users may sign in by user name and password, which they set through an invitation from an administrator. If false, existing sessions that began with a password are rejected too.',
  ),
  introspection: flag('INTROSPECTION', true, 'Whether clients may query the GraphQL schema (introspection).'),
  portal: flag(
    'PORTAL',
    true,
    'Whether the portal is served at /, and to browsers the explorer at /graphql.',
  ),

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
    16,
    1,
    64,
    'Scheduling cycles that one worker process runs at the same time.',
  ),
  metricsPort: whole(
    'METRICS_PORT',
    0,
    0,
    65_535,
    'Port for /healthz, /readyz and /metrics of this process, without a key; 0: none.',
  ),
  shutdownTimeoutS: whole(
    'SHUTDOWN_TIMEOUT_S',
    20,
    1,
    600,
    'Time limit for a clean shutdown, seconds; unfinished work is then aborted.',
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
    'Audit log entries older than this are removed, as are keys that expired or were revoked longer ago.',
  ),

  fileRetentionDays: whole(
    'FILE_RETENTION_DAYS',
    30,
    1,
    36_500,
    'Files of runs are removed after this time, or with their job.',
  ),
  filesDir: optional(
    'FILES_DIR',
    'a directory',
    /^[^\0]+$/,
    false,
    'Directory for files of runs, shared by all API processes; by default SWITCHYARD_HOME/files.',
  ),
  filesBucket: optional(
    'FILES_BUCKET',
    'https://host/bucket or https://bucket.host',
    /^https?:\/\/[^\s?#@]+$/,
    false,
    'Bucket for files of runs, on any S3-compatible storage; by default they are in FILES_DIR.',
  ),
  filesBucketRegion: text('FILES_BUCKET_REGION', 'auto', 'a region', /^[\w.-]+$/, 'Region of that bucket.'),
  filesBucketKeyId: optional(
    'FILES_BUCKET_KEY_ID',
    'an access key id',
    /^[\x21-\x7e]+$/,
    true,
    'Access key for that bucket; required with a bucket.',
  ),
  filesBucketSecret: optional(
    'FILES_BUCKET_SECRET',
    'a secret access key',
    /^[\x21-\x7e]+$/,
    true,
    'Secret of that access key.',
  ),
  filesBucketPrefix: text(
    'FILES_BUCKET_PREFIX',
    'files/',
    'letters, digits and `._/-`',
    /^[\w./-]*$/,
    'Prefix of the names of all objects in that bucket.',
  ),

  agentSite: text('AGENT_SITE', 'local', 'the name of a site', /^[\w.-]{1,63}$/, 'Site of the agent.'),
  agentMachines: optional(
    'AGENT_MACHINES',
    'names of machines separated by commas',
    /^[\w.-]{1,63}(,[\w.-]{1,63})*$/,
    false,
    'Machines that the agent serves, each an equal part of its host; by default one, named after the host.',
  ),
  agentLabels: optional(
    'AGENT_LABELS',
    'names, or names and texts, separated by commas: `gen=3,fast`',
    /^[A-Za-z_][\w./-]*(=[^,]*)?(,[A-Za-z_][\w./-]*(=[^,]*)?)*$/,
    false,
    "Labels of the agent's machines, in addition to `cpu`, the CPU model; labels set by operators take precedence.",
  ),
  agentDevices: optional(
    'AGENT_DEVICES',
    'a directory',
    /^[^\0]+$/,
    false,
    'Directory with a file `ID.json` for each device that jobs can get; the agent detects devices of other kinds with nvidia-smi, rocm-smi and /sys.',
  ),
  agentStateDir: optional(
    'AGENT_STATE_DIR',
    'a directory',
    /^[^\0]+$/,
    false,
    "Directory for the agent's state; by default SWITCHYARD_HOME/agent.",
  ),
  agentSlurmPartition: optional(
    'AGENT_SLURM_PARTITION',
    'names of partitions separated by commas',
    /^[\w.-]{1,63}(,[\w.-]{1,63})*$/,
    false,
    'With `agent --local slurm`: the partitions whose nodes are the machines of the site, and to which jobs are submitted; by default the default partition.',
  ),
  agentSlurmAccount: optional(
    'AGENT_SLURM_ACCOUNT',
    'the name of an account',
    /^[\w.-]{1,63}$/,
    false,
    "With `agent --local slurm`: the Slurm account that jobs are charged to; by default the user's.",
  ),
  agentSlurmOptions: optional(
    'AGENT_SLURM_OPTIONS',
    'a JSON list of words',
    /^\s*\[\s*("([^"\\\0]|\\.)*"(\s*,\s*"([^"\\\0]|\\.)*")*)?\s*\]\s*$/,
    false,
    'With `agent --local slurm`: additional options for each `sbatch`, such as ["--qos=low"]; by default none.',
  ),
  agentSlurmRest: optional(
    'AGENT_SLURM_REST',
    'http://HOST:PORT, https://HOST:PORT or unix:/PATH',
    /^(https?:\/\/[^\s/]+\/?|unix:\/[^\0]+)$/,
    false,
    "With `agent --local slurm`: address of the slurmrestd to use instead of Slurm's commands; by default the commands are used.",
  ),
  agentSlurmTokenFile: optional(
    'AGENT_SLURM_TOKEN_FILE',
    'a file',
    /^[^\0]+$/,
    false,
    "With AGENT_SLURM_REST: file with a token (`scontrol token`) of the agent's account, or of root with AGENT_ACCOUNTS; it is read for each request, so the token can be replaced at any time.",
  ),
  agentLocalRules: optional(
    'AGENT_LOCAL_RULES',
    'a file',
    /^[^\0]+$/,
    false,
    'With `agent --local`: JSON file of rules for the partition, account and QOS of jobs (docs/operations/slurm.md), reread when it changes; by default jobs get what they request, if the scheduler accepts it.',
  ),
  agentSubmissionsPerS: whole(
    'AGENT_SUBMISSIONS_PER_S',
    50,
    1,
    1_000,
    "With `agent --local`: maximum number of submissions per second to the site's scheduler. Jobs with the same requirements are submitted as an array, which counts as one.",
  ),
  agentTellsQueue: flag(
    'AGENT_TELL_QUEUE',
    false,
    "With `agent --local`: also report the first 100 jobs of others that wait in the site's scheduler (ID, CPUs, time limit, reason; no user or name), once a minute. Everybody who may see the site can then see them.",
  ),
  slurmConf: optional(
    'SLURM_CONF',
    'a file',
    /^[^\0]+$/,
    false,
    "With `agent --local slurm`: Slurm's configuration; by default where Slurm looks for it.",
  ),
  isolation: choice(
    'SWITCHYARD_ISOLATION',
    ['strongest', 'sandbox', 'user', 'none'],
    'strongest',
    "Isolation of jobs on the agent's host: a separate account for each run (user), plus bubblewrap (sandbox); by default the strongest that the host supports.",
  ),
  cgroups: flag(
    'AGENT_CGROUPS',
    true,
    'Whether each run gets a control group, if the agent can create them (Linux, cgroups version 2).',
  ),
  agentUids: text(
    'AGENT_UIDS',
    `${DEFAULT_UIDS.first}-${DEFAULT_UIDS.last}`,
    'two numbers such as 60000-60999',
    /^\d{3,10}-\d{3,10}$/,
    'User and group IDs for runs, one each, when the agent is root: reserve them on the host, because all processes with that ID are ended with the run. Agents on one host divide a large range; a range of fewer than 8192 IDs is used by one agent alone.',
  ),
  agentAccounts: optional(
    'AGENT_ACCOUNTS',
    'a file',
    /^[^\0]+$/,
    false,
    'File that maps users to the host accounts under which their jobs run, one line `user = account` each; by default each run gets one of AGENT_UIDS.',
  ),
  agentLauncher: optional(
    'AGENT_LAUNCHER',
    'a JSON list of a program and its arguments, with {account} in them',
    /^\s*\[(?=.*\{account\})\s*"\/([^"\\\0]|\\.)+"(\s*,\s*"([^"\\\0]|\\.)*")*\s*\]\s*$/,
    false,
    'Command with which an agent that is not root runs jobs under the accounts of AGENT_ACCOUNTS, such as ["/usr/bin/sudo","-n","-u","{account}","--"]; by default none.',
  ),
  agentDirectories: list(
    'AGENT_DIRECTORIES',
    'absolute paths, each followed by :ro if jobs may only read it',
    (one) => /^\/[^:,\0]*(:ro)?$/.test(one),
    'Directories visible to jobs in a sandbox, besides system directories and their own.',
  ),
  agentImages: list(
    'AGENT_IMAGES',
    'absolute paths',
    (one) => /^\/[^,\0]*$/.test(one),
    'Directories with unpacked images, searched by name in this order; by default none. Without AGENT_IMAGE_REGISTRIES, too, no jobs in images run here.',
  ),
  agentImageRegistries: list(
    'AGENT_IMAGE_REGISTRIES',
    'hosts of registries, such as docker.io or registry.example.org:5000, or *',
    (one) => /^(\*|[A-Za-z0-9][A-Za-z0-9.-]*(:\d{1,5})?)$/.test(one),
    'Registries from which the agent fetches images that are in none of AGENT_IMAGES; * for all. By default none.',
  ),
  agentImageTools: list(
    'AGENT_IMAGE_TOOLS',
    'apptainer, singularity, podman and docker, in the order in which they are tried',
    (one) => /^(apptainer|singularity|podman|docker)$/.test(one),
    'Programs that fetch images; the first that works is used. By default apptainer,singularity,podman,docker.',
  ),
  agentImageRuntimes: list(
    'AGENT_IMAGE_RUNTIMES',
    'bubblewrap, crun, runc, podman (crun or runc), docker (runc), apptainer or singularity, in the order in which they are tried',
    (one) => /^(bubblewrap|crun|runc|podman|docker|apptainer|singularity)$/.test(one),
    'Programs that run images; the first that works is used. By default bubblewrap,crun,runc,apptainer.',
  ),
  agentImagesMb: whole(
    'AGENT_IMAGES_MB',
    50_000,
    1,
    1e12,
    'Disk space for the fetched images, MB. The least recently used are removed first, never one in use by a run.',
  ),
  agentTerminals: flag(
    'AGENT_TERMINALS',
    true,
    'Whether jobs can have terminals here (`switchyard shell`); perl must be installed.',
  ),
  agentDetachedS: whole(
    'AGENT_DETACHED_S',
    60,
    1,
    86_400,
    'Seconds after which a job in a terminal is ended if nothing is heard of its client.',
  ),
  agentEnvironment: list(
    'AGENT_ENVIRONMENT',
    'names of variables',
    (one) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(one),
    "Variables passed to jobs from the agent's environment, overriding the defaults; by default none.",
  ),
  agentNetwork: flag(
    'AGENT_NETWORK',
    true,
    "Whether jobs in a sandbox can use the host's network; otherwise they have no network.",
  ),
  agentRunProcesses: whole(
    'AGENT_RUN_PROCESSES',
    4096,
    16,
    4_194_304,
    'Maximum number of processes and threads of a run.',
  ),
  agentRunDiskMb: whole(
    'AGENT_RUN_DISK_MB',
    0,
    0,
    1_000_000_000,
    'Disk space that a run may use in its own directory, MB; 0: no limit.',
  ),
  agentCpuExcessS: whole(
    'AGENT_CPU_EXCESS_S',
    300,
    0,
    1_000_000_000,
    'CPU time beyond what its CPUs provide after which a run without a control group is ended, seconds; 0: never.',
  ),
  agentOutputBytes: whole(
    'AGENT_OUTPUT_BYTES',
    10 * MIB,
    1024,
    256 * MIB,
    'Bytes kept of the standard output of a run, and of its standard error: half from the beginning and half from the end.',
  ),
  agentGraceS: whole(
    'AGENT_GRACE_S',
    10,
    0,
    3_600,
    'Time from SIGTERM to SIGKILL when a run is canceled, seconds.',
  ),
  agentHeartbeatS: whole('AGENT_HEARTBEAT_S', 5, 1, 60, 'Time between heartbeats of the agent, seconds.'),
  agentHealthCommand: optional(
    'AGENT_HEALTH_COMMAND',
    'a command for /bin/sh',
    /^[^\0]+$/,
    false,
    "Command that exits with 0 if the host is healthy. Otherwise the host's machines get no jobs, and the command's output is shown as the reason.",
  ),
  agentHealthS: whole('AGENT_HEALTH_S', 60, 1, 86_400, 'Time between runs of AGENT_HEALTH_COMMAND, seconds.'),
  agentHealthTimeoutS: whole(
    'AGENT_HEALTH_TIMEOUT_S',
    30,
    1,
    3_600,
    'Time limit for AGENT_HEALTH_COMMAND, seconds; then it is killed and counts as failed.',
  ),
  agentLinks: optional(
    'AGENT_LINKS',
    'site=url pairs separated by commas, with http: or https: URLs',
    /^[\w.-]{1,63}=https?:\/\/[^\s,]+(,[\w.-]{1,63}=https?:\/\/[^\s,]+)*$/,
    false,
    'Files at other sites, at least 1 MB each, that the agent fetches to measure the links from those sites; by default none.',
  ),
  agentCacheDir: optional(
    'AGENT_CACHE_DIR',
    'a directory',
    /^[^\0]+$/,
    false,
    'Directory for the datasets that the agent fetches; by default `data` in its state directory. Not shared between agents.',
  ),
  agentCacheMb: whole(
    'AGENT_CACHE_MB',
    100_000,
    1,
    1e12,
    'Size of the cache of fetched datasets, MB. The least recently used are removed first, never one in use by a run.',
  ),
  agentDataDirectories: list(
    'AGENT_DATA_DIRECTORIES',
    'absolute paths',
    (one) => /^\/[^,\0]*$/.test(one),
    "Directories that contain the datasets of this site; by default, any path except the host's own directories and Switchyard's.",
  ),
  agentDataAddresses: list(
    'AGENT_DATA_ADDRESSES',
    'IP addresses, or ranges such as 127.0.0.0/8',
    isNetwork,
    'Local or link-local addresses (loopback, 169.254.0.0/16, …) from which datasets may be fetched by http(s).',
  ),
  agentDatasetsDir: optional(
    'AGENT_DATASETS_DIR',
    'a directory',
    /^[^\0]+$/,
    false,
    "Directory for job outputs that become datasets; by default `datasets` in the agent's state directory. Files are removed with their dataset.",
  ),
  agentDatasetsMb: whole(
    'AGENT_DATASETS_MB',
    0,
    0,
    1e12,
    'Disk space that these datasets may use, MB; 0: no limit.',
  ),
  agentLeftBehindH: whole(
    'AGENT_LEFT_BEHIND_H',
    168,
    0,
    87_600,
    'How long the directory of a run is kept if its outputs could not be saved, hours.',
  ),
  agentTransferCommand: optional(
    'AGENT_TRANSFER_COMMAND',
    'a JSON list of a program and its arguments, with {source} and {target} in them',
    /^\s*\[(?=.*\{source\})(?=.*\{target\})\s*("([^"\\\0]|\\.)+"\s*,\s*)+"([^"\\\0]|\\.)*"\s*\]\s*$/,
    false,
    'Command that fetches datasets from locations other than files and http(s), such as ["rclone","copyto","{source}","{target}"]; by default none.',
  ),
  agentUrlAddresses: list(
    'AGENT_URL_ADDRESSES',
    'IP addresses, or ranges such as 10.0.0.0/8',
    isNetwork,
    'Local, link-local or private addresses that jobs may name as servers of their downloads and uploads, such as those of an object store of the site.',
  ),
  agentUrlMb: whole('AGENT_URL_MB', 100_000, 1, 1e9, 'Largest file that is downloaded for a job, MB.'),
  agentUrlS: whole(
    'AGENT_URL_S',
    21_600,
    1,
    1_000_000,
    'Maximum time for the download of a file, and for an upload, including repeated attempts, seconds.',
  ),
  agentTransferMbPerS: whole(
    'AGENT_TRANSFER_MB_PER_S',
    0,
    0,
    1_000_000,
    'Maximum rate of each transfer from a file or over HTTP, MB/s; 0: no limit.',
  ),
  agentLinksS: whole('AGENT_LINKS_S', 300, 10, 86_400, 'Time between measurements of the links, seconds.'),
} as const;

/** Every variable there is, in the order of the documentation. */
export const ALL_VARIABLES = [...Object.values(VARIABLES), ...Object.values(LIMIT_VARIABLES)];

export type Config = Omit<
  Values<typeof VARIABLES>,
  keyof Connection | 'agentStateDir' | 'agentDatasetsDir' | 'filesDir'
> &
  Connection & {
    /** Absolute. */
    filesDir: string;
    /** Absolute. */
    agentStateDir: string;
    /** Absolute. */
    agentDatasetsDir: string;
    limits: Limits;
  };

/** Has libraries leave out what they only check while one develops (graphql: each value of an answer), unless somebody has said otherwise. To be called before they are loaded. */
export function preferProduction(): void {
  process.env.NODE_ENV ??= 'production';
}

/**
 * Reads and checks the configuration. An empty variable counts as one that is not set.
 *
 * @throws ConfigError naming every bad variable at once
 */
export function loadConfig(env: NodeJS.ProcessEnv = process.env): Config {
  const problems: string[] = [];
  const { agentStateDir, ...rest } = readTable(VARIABLES, env, problems);
  const limits = readTable(LIMIT_VARIABLES, env, problems);
  const together = (
    a: string | readonly string[] | null,
    b: string | readonly string[] | null,
    said: string,
  ): void => {
    if ((a?.length ?? 0) > 0 !== (b?.length ?? 0) > 0) problems.push(said);
  };
  together(
    rest.tlsCert,
    rest.tlsKey,
    'SWITCHYARD_TLS_CERT, SWITCHYARD_TLS_KEY: only one of the two is set; accepted: both or none',
  );
  together(
    rest.oidcIssuer,
    rest.oidcAudience,
    'SWITCHYARD_OIDC_ISSUER, SWITCHYARD_OIDC_AUDIENCE: only one of the two is set; accepted: both or none',
  );
  if (rest.oidcClientId !== null && rest.oidcIssuer === null)
    problems.push(
      `SWITCHYARD_OIDC_CLIENT_ID: ${JSON.stringify(rest.oidcClientId)} is not accepted; accepted: a client id together with SWITCHYARD_OIDC_ISSUER`,
    );
  const bucket = [rest.filesBucket, rest.filesBucketKeyId, rest.filesBucketSecret];
  if (bucket.some((one) => one !== null) && bucket.includes(null))
    problems.push(
      'FILES_BUCKET, FILES_BUCKET_KEY_ID, FILES_BUCKET_SECRET: only some of the three are set; accepted: all or none',
    );
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  const connection = located(rest);
  const stateDir = resolve(agentStateDir ?? `${connection.home}/agent`);
  return {
    ...rest,
    ...connection,
    filesDir: resolve(rest.filesDir ?? `${connection.home}/files`),
    agentStateDir: stateDir,
    agentDatasetsDir: resolve(rest.agentDatasetsDir ?? `${stateDir}/datasets`),
    limits,
  };
}

/**
 * The environment that jobs on this machine begin with: what all jobs have, and of the agent's own what the operator names. Never a variable
 * of Switchyard's: some hold secrets.
 */
export function jobEnvironment(
  names: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Record<string, string> {
  const ours = new Set(ALL_VARIABLES.map((variable) => variable.name));
  const given = names.flatMap((name): [string, string][] =>
    env[name] === undefined || ours.has(name) || name.startsWith('SWITCHYARD_') ? [] : [[name, env[name]]],
  );
  return { ...plainJobEnvironment(), ...Object.fromEntries(given) };
}
