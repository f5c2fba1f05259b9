/**
 * Every bound on what clients send and ask for, in one table: nothing of theirs may grow without bound. The API enforces it;
 * docs/operations/reference.md lists it, and schema.graphql states it where `stated` says. Tests compare both with it.
 */
import { type Values, type Variable, whole } from './variables.js';

const MIB = 1024 * 1024;

/** Where schema.graphql states a limit: `Type.field`, or `Type.field.argument`. */
type Stated = readonly string[];

/** A limit that the installation can set. */
export interface LimitVariable extends Variable<number> {
  stated: Stated;
}

function settable(
  name: string,
  byDefault: number,
  min: number,
  max: number,
  meaning: string,
  ...stated: Stated
): LimitVariable {
  return { ...whole(name, byDefault, min, max, meaning), stated };
}

/** Limits that can be set, by the field of `Limits`. */
export const LIMIT_VARIABLES = {
  bodyBytesMax: settable(
    'LIMIT_BODY_BYTES',
    32 * MIB,
    1_024,
    1_024 * MIB,
    'Bytes in the body of a request. Above 1 MiB, a Content-Length header is required.',
  ),
  messageBytesMax: settable(
    'LIMIT_MESSAGE_BYTES',
    4 * MIB,
    1_024,
    1_024 * MIB,
    'Bytes in one message over a WebSocket.',
  ),
  pageMax: settable(
    'LIMIT_PAGE',
    5_000,
    1,
    100_000,
    'Objects in a page.',
    // The others say the same.
    'Query.jobs.first',
    'Query.jobs.last',
  ),
  jobsMax: settable('LIMIT_JOBS', 10_000, 1, 100_000, 'Jobs changed by one action.', 'JobSelection'),
  submissionJobsMax: settable(
    'LIMIT_SUBMISSION_JOBS',
    100_000,
    1,
    100_000,
    'Jobs in one submission.',
    'SubmitJobsInput.jobs',
  ),
  groupJobsMax: settable(
    'LIMIT_GROUP_JOBS',
    100_000,
    1,
    100_000,
    'Jobs in one bulk group.',
    'SubmitJobGroupInput.parameters',
    'SubmitJobGroupInput.count',
  ),
  groupCharsMax: settable(
    'LIMIT_GROUP_CHARACTERS',
    64 * MIB,
    1_024,
    1_024 * MIB,
    'Characters in the names, arguments, environments and working directories of all jobs of a bulk group together.',
  ),
  reportsMax: settable(
    'LIMIT_REPORTS',
    1_000,
    1,
    10_000,
    'Run reports of an agent in one request.',
    'Mutation.reportRuns.reports',
    'Mutation.reportStaging.reports',
    'Mutation.reportOutput.outputs',
    'Mutation.heartbeat.checkpoints',
  ),
  outputBytesMax: settable(
    'LIMIT_OUTPUT_BYTES',
    10 * MIB,
    1_024,
    1_024 * MIB,
    'Bytes kept of each output stream of a run: half from its beginning, and about half from its end.',
  ),
  machinesMax: settable(
    'LIMIT_MACHINES',
    1_000,
    1,
    10_000,
    'Machines registered in one request.',
    'CreateMachinesInput.machines',
  ),
  costMax: settable(
    'LIMIT_QUERY_COST',
    50_000,
    1,
    10_000_000,
    'Cost of one query: the objects in its response, plus extra for expensive fields.',
  ),
  answerCharsMax: settable(
    'LIMIT_ANSWER_CHARACTERS',
    32 * MIB,
    1_024,
    512 * MIB,
    'Total characters in all texts of a response.',
  ),
  depthMax: settable('LIMIT_QUERY_DEPTH', 12, 1, 100, 'Levels of nested fields in a query.'),
  aliasesMax: settable('LIMIT_QUERY_ALIASES', 100, 0, 10_000, 'Aliases in a query.'),
  tokensMax: settable(
    'LIMIT_QUERY_TOKENS',
    20_000,
    100,
    1_000_000,
    'Tokens (names, values, punctuation) in the text of a query.',
  ),
  requestsPerSecond: settable(
    'LIMIT_REQUESTS_PER_SECOND',
    200,
    1,
    1_000_000,
    'Requests per second by one user, or with one AGENT key.',
  ),
  requestsBurst: settable(
    'LIMIT_REQUESTS_BURST',
    2_000,
    1,
    1_000_000,
    'Unused requests that a user may save up for a burst.',
  ),
  requestsOpen: settable(
    'LIMIT_OPEN_REQUESTS',
    100,
    1,
    100_000,
    'Requests of one user that may be in progress at the same time.',
  ),
  costPerMinute: settable(
    'LIMIT_COST_PER_MINUTE',
    10_000_000,
    1,
    1_000_000_000,
    'Total cost per minute of all queries by one user.',
  ),
  strangersPerMinute: settable(
    'LIMIT_STRANGERS_PER_MINUTE',
    120,
    1,
    1_000_000,
    'Attempts per minute from one address with invalid API keys or passwords.',
  ),
  passwordsPerMinute: settable(
    'LIMIT_PASSWORDS_PER_MINUTE',
    10,
    1,
    1_000_000,
    'Wrong passwords per minute for one user name from one address; 6 times as many in total from addresses where the user has no session.',
  ),
  userJobs: settable(
    'LIMIT_USER_JOBS',
    250_000,
    1,
    1_000_000,
    'Jobs of one user that have not ended.',
    'User.limits',
  ),
  userJobBytes: settable(
    'LIMIT_USER_JOB_BYTES',
    512 * MIB,
    1_024,
    64 * 1_024 * MIB,
    'Bytes of the unfinished jobs of one user: their texts, plus 128 per input and 512 per job.',
  ),
  userOutputBytes: settable(
    'LIMIT_USER_OUTPUT_BYTES',
    4 * 1_024 * MIB,
    1_024,
    1_024 * 1_024 * MIB,
    'Bytes kept of the standard output and error of the jobs of one user. Beyond this, only the first 1 000 characters of each stream are kept; no job fails because of it.',
  ),
  userFileBytes: settable(
    'LIMIT_USER_FILE_BYTES',
    100 * 1_024 * MIB,
    1,
    1_048_576 * 1_024 * MIB,
    'Bytes of the files that the service keeps for one user. A job whose outputs exceed this fails with OUTPUTS_FAILED.',
  ),
  jobFileBytes: settable(
    'LIMIT_JOB_FILE_BYTES',
    10 * 1_024 * MIB,
    1,
    64 * 1_024 * MIB,
    'Bytes of the files that the service keeps of one run.',
  ),
  userKeys: settable('LIMIT_USER_KEYS', 100, 1, 10_000, 'Valid API keys of one user.'),
  userSessions: settable(
    'LIMIT_USER_SESSIONS',
    20,
    1,
    1_000,
    'Password sessions of one user; a further one ends the least recently used.',
  ),
  userWebhooks: settable('LIMIT_USER_WEBHOOKS', 20, 0, 1_000, 'Webhooks of one user.'),
  userRegistries: settable('LIMIT_USER_REGISTRIES', 20, 0, 1_000, 'Registry credentials of one user.'),
  subscriptionsOpen: settable(
    'LIMIT_SUBSCRIPTIONS',
    2_000,
    1,
    100_000,
    'Open subscriptions of one user, or with one AGENT key.',
  ),
  socketsOpen: settable(
    'LIMIT_USER_CONNECTIONS',
    2_000,
    1,
    100_000,
    'Open WebSocket connections of one user, or with one AGENT key.',
  ),
  addressConnections: settable(
    'LIMIT_ADDRESS_CONNECTIONS',
    2_000,
    1,
    100_000,
    'Open connections from one address, HTTP and WebSocket.',
  ),
  connectionsMax: settable(
    'LIMIT_CONNECTIONS',
    5_000,
    1,
    100_000,
    'Open WebSocket connections of one API process.',
  ),
  subscriberBuffer: settable(
    'LIMIT_SUBSCRIBER_BUFFER',
    20_000,
    1,
    1_000_000,
    'Events that a subscriber may fall behind before it must query again (`resyncRequired`).',
  ),
  requestTimeoutMs: settable(
    'LIMIT_REQUEST_MS',
    60_000,
    100,
    3_600_000,
    'Time to receive a request, milliseconds.',
  ),
  keepAliveMs: settable(
    'LIMIT_KEEP_ALIVE_MS',
    65_000,
    0,
    3_600_000,
    'Time before an idle HTTP connection is closed, milliseconds.',
  ),
  answerTimeoutMs: settable(
    'LIMIT_ANSWER_MS',
    60_000,
    100,
    3_600_000,
    'Time to respond to a request, milliseconds.',
  ),
} as const;

export type Limits = Values<typeof LIMIT_VARIABLES>;

/** The limits of an installation that sets none. The cast: TypeScript does not follow names through `fromEntries`. */
export const DEFAULT_LIMITS = Object.fromEntries(
  Object.entries(LIMIT_VARIABLES).map(([field, { default: value }]) => [field, Number(value)]),
) as unknown as Limits;

/** A limit that is the same everywhere. */
export interface FixedLimit {
  max: number;
  meaning: string;
  stated: Stated;
}

const fixed = (max: number, meaning: string, ...stated: Stated): FixedLimit => ({ max, meaning, stated });

/** Limits that cannot be set: what the database, the operating system or plain sense gives. */
export const FIXED_LIMITS = {
  plainNameChars: fixed(
    64,
    'Characters in the name of a site, machine or user.',
    'CreateSiteInput.name',
    'UpdateSiteInput.name',
    'CreateMachineInput.name',
    'UpdateMachineInput.name',
    'CreateUserInput.name',
  ),
  nameChars: fixed(
    200,
    'Characters in any other name, and in an idempotency key.',
    'JobInput.name',
    'JobInput.application',
    'JobInput.project',
    'JobInput.groupName',
    'JobInput.os',
    'JobInput.architecture',
    'JobInput.image',
    'SiteTermsInput.partition',
    'SiteTermsInput.account',
    'SiteTermsInput.qos',
    'SubmitJobsInput.idempotencyKey',
    'SubmitJobGroupInput.name',
    'SubmitJobGroupInput.idempotencyKey',
    'CreateMachineInput.os',
    'CreateMachineInput.architecture',
    'CreateLicenseInput.kind',
    'DatasetInput.name',
    'JobOutputInput.dataset',
    'CreateApiKeyInput.name',
    'CreateUserInput.subject',
  ),
  classNameChars: fixed(
    64,
    'Characters in the name of a class of jobs.',
    'JobInput.class',
    'JobChangesInput.class',
    'JobFilter.class',
  ),
  graphJobs: fixed(10_000, 'Jobs in a dependency graph.', 'Query.jobGraph.most'),
  graphEdges: fixed(100_000, 'Dependencies in such a graph.', 'JobGraph.isWhole'),
  reasonChars: fixed(
    1_000,
    'Characters in the reason for a change.',
    'UpdateQuotaInput.reason',
    'UpdateWeightsInput.reason',
    'UpdatePolicyInput.reason',
    'CreateSimulationInput.reason',
    'RevertPolicyInput.reason',
  ),
  pathChars: fixed(
    4_096,
    'Characters in a command or a working directory.',
    'JobInput.command',
    'JobInput.workingDirectory',
  ),
  // What Linux takes as one argument, and far below what it takes in all.
  argumentChars: fixed(
    128 * 1024,
    'Characters in one argument, value of an environment variable, or parameter of a bulk group.',
    'JobInput.arguments',
    'EnvironmentVariable.value',
    'SubmitJobGroupInput.parameters',
  ),
  arguments: fixed(1_000, 'Arguments of a job.', 'JobInput.arguments'),
  variables: fixed(500, 'Environment variables of a job.', 'JobInput.environment'),
  variableNameChars: fixed(
    256,
    'Characters in the name of an environment variable.',
    'EnvironmentVariable.name',
  ),
  wordsChars: fixed(
    256 * 1024,
    'Characters in all arguments and environment variables of a job together.',
    'JobInput.arguments',
    'JobInput.environment',
  ),
  jobLicenses: fixed(
    256,
    'Copies of licenses that a job requests, of all kinds together.',
    'JobInput.licenses',
  ),
  jobAlike: fixed(
    16,
    'Labels in which the machines of a job are to be alike.',
    'JobInput.allAlike',
    'JobPartInput.allAlike',
  ),
  jobParts: fixed(16, 'Parts of a job.', 'JobInput.parts'),
  jobResources: fixed(
    16,
    'Kinds of resources that a job requests besides CPUs and memory, and requests for devices.',
    'JobInput.resourcesPerTask',
    'JobInput.devicesPerTask',
    'JobPartInput.devicesPerTask',
    'JobInput.resources',
  ),
  machineResources: fixed(
    32,
    'Kinds of resources that a machine has besides CPUs and memory.',
    'CreateMachineInput.resources',
    'UpdateMachineInput.resources',
  ),
  machineLabels: fixed(
    64,
    'Labels of a machine set by operators, and by its agent.',
    'CreateMachineInput.labels',
    'UpdateMachineInput.labels',
    'MeasurementInput.labels',
  ),
  machineDevices: fixed(
    128,
    'Devices of a machine.',
    'CreateMachineInput.devices',
    'UpdateMachineInput.devices',
    'MeasurementInput.devices',
    'DeviceRequestInput.count',
  ),
  deviceShares: fixed(1_000, 'Shares of a device.', 'DeviceInput.shares', 'DeviceShareInput.of'),
  labelChars: fixed(
    200,
    'Characters in the value of a label, and in the model and link group of a device.',
    'MachineLabelInput.value',
    'DeviceInput.model',
    'DeviceInput.link',
  ),
  constraintChars: fixed(4_096, 'Characters in the constraint of a job.', 'JobInput.machineConstraint'),
  jobNeeds: fixed(1_000, 'Terms in the dependencies of a job.', 'JobInput.needs'),
  needEdges: fixed(1_000_000, 'Terms in the dependencies of all jobs of a submission.', 'JobInput.needs'),
  needDelayS: fixed(
    1e9,
    'Seconds that must pass after a dependency is satisfied.',
    'NeedTermInput.minDelayS',
  ),
  jobInputs: fixed(100, 'Datasets and other input data of a job.', 'JobInput.inputs'),
  jobOutputs: fixed(100, 'Outputs of a job.', 'JobInput.outputs'),
  jobUrls: fixed(
    100,
    'Files of a job that are downloaded from URLs, and files or directories that are uploaded to URLs.',
    'JobInput.downloads',
    'JobInput.uploads',
  ),
  fileUrlChars: fixed(
    4_000,
    'Characters in the URL of a download or upload.',
    'DownloadInput.url',
    'UploadInput.url',
  ),
  outputPathChars: fixed(
    1_000,
    'Characters in the path of an output, and of a kept file.',
    'JobOutputInput.path',
    'RunFileInput.path',
  ),
  terminalSize: fixed(
    1_000,
    'Rows, and columns, of a terminal.',
    'TerminalSizeInput.rows',
    'TerminalSizeInput.columns',
  ),
  inputBytes: fixed(4_000, "Bytes in a piece of input for a job's terminal.", 'SendInputInput.base64'),
  outputsAsked: fixed(
    1_000,
    'Jobs in one request of an agent for removed outputs.',
    'Query.removedOutputs.jobs',
  ),
  filesAnnounced: fixed(100, 'Files that an agent announces in one request.', 'Mutation.keepFiles.files'),
  filePartBytes: fixed(
    8 * MIB,
    'Bytes of a file that an agent sends in one request; all parts but the last have this size.',
  ),
  jobFiles: fixed(1_000, 'Files that the service keeps of a run.'),
  peerFileBytes: fixed(65_536 * MIB, 'Bytes of the files of all live runs at a peer.'),
  jobPreferences: fixed(16, 'Preferences of a job.', 'JobInput.preferences'),
  passwordChars: fixed(128, 'Characters in a password (at least 12).', 'ChangePasswordInput.password'),
  sessionsEnded: fixed(1_000, 'Sessions ended in one request.', 'EndSessionsInput.sessionIds'),
  schedulers: fixed(1_000, 'Schedulers between the root and sites.', 'Mutation.createScheduler'),
  siteHolds: fixed(
    200,
    'Maintenance windows and reservations of a site that have not ended.',
    'Mutation.createHold',
  ),
  siteHoldTimes: fixed(
    10_000,
    'Occurrences of maintenance windows and reservations of a site that are not over.',
    'Mutation.createHold',
  ),
  holdUsers: fixed(
    100,
    'Users who may run jobs in a reservation besides its owner.',
    'CreateHoldInput.users',
  ),
  rruleChars: fixed(500, 'Characters in the recurrence rule of a hold.', 'CreateHoldInput.rrule'),
  holdDates: fixed(
    100,
    'Occurrences excluded from a recurrence rule, and added to it.',
    'CreateHoldInput.exceptDates',
    'CreateHoldInput.alsoDates',
  ),
  heldShown: fixed(
    100,
    'Conflicting jobs and promised starts listed for a new hold.',
    'ReservePayload.jobs',
    'ReservePayload.moved',
  ),
  holdMachines: fixed(
    1_000,
    'Machines named by a maintenance window or reservation.',
    'CreateHoldInput.machineIds',
  ),
  treeDepth: fixed(
    16,
    'Levels of schedulers between the root and sites.',
    'CreateSchedulerInput.parentId',
    'UpdateSchedulerInput.parentId',
  ),
  tasks: fixed(
    100_000,
    'Tasks of a job, in total and per machine, and CPUs per task.',
    'JobInput.tasks',
    'JobInput.cpusPerTask',
    'TasksPerMachineInput.max',
  ),
  jobCpus: fixed(
    1_000_000,
    'CPUs of a job: tasks × CPUs per task.',
    'JobInput.tasks',
    'JobInput.cpusPerTask',
  ),
  // Of a million jobs the sum is still exact (core/dispatch/load.ts).
  work: fixed(
    1e13,
    'Work of a job: estimate × benchmark × tasks × CPUs per task.',
    'JobInput.estimateS',
    'JobInput.benchmark',
  ),
  boost: fixed(1_000, 'Boost of a job, up or down.', 'JobInput.boost', 'ReprioritizeJobsInput.boost'),
  // About thirty years: longer than any run, and exact to the millisecond when added to any time.
  seconds: fixed(
    1e9,
    'Seconds of a run time estimate or limit.',
    'JobInput.estimateS',
    'JobInput.runTimeLimitS',
    'JobInput.warnS',
    'RetryInput.backoffS',
    'RetryInput.maxBackoffS',
    'JobInput.simulatedRunS',
    'JobInput.simulatedIoS',
    'CreateSiteInput.maxLimitS',
    'UpdateSiteInput.maxLimitS',
  ),
  leastIdleS: fixed(
    60,
    'Shortest idle timeout of a bulk group, seconds.',
    'SubmitJobGroupInput.idleTimeoutS',
  ),
  leastSeconds: fixed(
    0.001,
    'Smallest run time estimate or limit, seconds.',
    'JobInput.estimateS',
    'JobInput.runTimeLimitS',
  ),
  killGraceS: fixed(86_400, 'Seconds from SIGTERM at a run time limit to SIGKILL.', 'JobInput.killGraceS'),
  retries: fixed(100, 'Retries of a job.', 'RetryInput.maxRetries'),
  retryRules: fixed(20, 'Retry rules of a job.', 'RetryInput.rules'),
  retryFactor: fixed(10, 'Factor by which the delay grows from retry to retry.', 'RetryInput.factor'),
  retryExitCodes: fixed(100, 'Ranges of exit codes in a retry rule.', 'RetryRuleInput.exitCodes'),
  memoryFactor: fixed(
    1_000,
    "Factor by which a job's memory grows at a retry.",
    'RetryRuleInput.memoryFactor',
  ),
  /** Of which values: `usageAmounts` (store/usage.ts). */
  reportedSeconds: fixed(1e12, 'Seconds of CPU time or I/O wait that an agent reports.'),
  reportedMb: fixed(1e12, 'Memory and data that an agent reports, MB.'),
  usesAsked: fixed(
    100,
    'Runs in one question for what runs use, and in its answer.',
    'UseAsked.runs',
    'ReportUseInput.uses',
  ),
  reportedPieces: fixed(16, 'Pieces of output in a report.', 'RunReportInput.outputs'),
  runSteps: fixed(1_000, 'Steps (`srun`) kept of a run, or of each of its tasks.', 'RunReportInput.steps'),
  outputTextBytes: fixed(1_048_576, 'Bytes of output as a text.', 'Output.text.maxBytes'),
  sizeMb: fixed(
    1e12,
    'Size of data, MB.',
    'InputDataInput.sizeMb',
    'JobInput.sandboxMb',
    'JobInput.outputMb',
    'DatasetInput.sizeMb',
    'UpdateDatasetInput.sizeMb',
    'Mutation.keepDataset.sizeMb',
    'ImageReportInput.sizeMb',
  ),
  benchmark: fixed(
    1_000_000,
    'Benchmark (relative power) of a machine.',
    'JobInput.benchmark',
    'CreateMachineInput.benchmark',
    'UpdateMachineInput.benchmark',
  ),
  leastBenchmark: fixed(
    0.001,
    'Smallest benchmark of a machine.',
    'JobInput.benchmark',
    'CreateMachineInput.benchmark',
    'UpdateMachineInput.benchmark',
  ),
  // The largest value of the columns that count in 32 bits.
  integer: fixed(
    0x7fffffff,
    'Memory in MB, amounts of resources, array index, jobs at once, license copies, and jobs of a submission quota.',
    'JobInput.memoryMbPerTask',
    'JobInput.arrayIndex',
    'JobChangesInput.atOnce',
    'CreateMachineInput.memoryMb',
    'UpdateMachineInput.memoryMb',
    'CreateLicenseInput.copies',
    'UpdateLicenseInput.copies',
    'UpdateQuotaInput.submissionLimit',
    'ResourceAmountInput.amount',
  ),
  machineCpus: fixed(1_000_000, 'CPUs of a machine.', 'CreateMachineInput.cpus', 'UpdateMachineInput.cpus'),
  sharing: fixed(
    1_000_000,
    'Running jobs of a site and tasks of a time-shared machine, if limited.',
    'CreateSiteInput.maxRunningJobs',
    'UpdateSiteInput.maxRunningJobs',
    'CreateMachineInput.maxTasks',
    'UpdateMachineInput.maxTasks',
  ),
  machineLicenses: fixed(
    1_000,
    'License pools of a machine.',
    'CreateMachineInput.licenseIds',
    'UpdateMachineInput.licenseIds',
  ),
  quotaShare: fixed(1e6, 'Quota of a user.', 'CreateUserInput.quotaShare', 'UpdateQuotaInput.quotaShare'),
  leastQuotaShare: fixed(
    1e-6,
    'Smallest quota of a user.',
    'CreateUserInput.quotaShare',
    'UpdateQuotaInput.quotaShare',
  ),
  quotaPeriodS: fixed(
    366 * 86_400,
    'Seconds in the period of a submission quota (366 days).',
    'UpdateQuotaInput.submissionPeriodS',
  ),
  filterIds: fixed(1_000, 'Ids in a filter.', 'JobFilter.ids'),
  shownRuns: fixed(100, 'Runs of a job in one answer.', 'Job.runs'),
  shownMachines: fixed(5_000, 'Machines that are shown with their site.', 'Site.machines'),
  jobCount: fixed(100_000, 'Largest count of jobs in a filter.', 'Query.jobCount', 'Query.jobCounts'),
  faults: fixed(
    1_000,
    'Errors reported of one submission or import.',
    'SubmitJobsPayload.errors',
    'SubmitJobGroupPayload.errors',
    'ImportDatasetsPayload.errors',
  ),
  replicas: fixed(
    1_000,
    'Sites given for the replicas of a dataset.',
    'DatasetInput.replicaSiteIds',
    'DatasetInput.locations',
    'UpdateReplicasInput.locations',
    'UpdateReplicasInput.addSiteIds',
    'UpdateReplicasInput.removeSiteIds',
  ),
  locationChars: fixed(
    2_000,
    'Characters in the location of a replica of a dataset.',
    'DatasetLocationInput.location',
    'Mutation.keepDataset.location',
  ),
  sources: fixed(20, 'Replicas of a dataset that are sent to an agent.', 'AssignedInput.sources'),
  datasetsImported: fixed(10_000, 'Datasets in one import.', 'ImportDatasetsInput.datasets'),
  links: fixed(10_000, 'Links set in one request.', 'SetLinkValuesInput.links'),
  measurements: fixed(
    1_000,
    'Link measurements of an agent in one request.',
    'Mutation.reportLinks.measurements',
  ),
  bandwidthMbPerS: fixed(
    1e9,
    'Bandwidth of a link, MB/s.',
    'LinkInput.bandwidthMbPerS',
    'LinkMeasurementInput.bandwidthMbPerS',
  ),
  leastBandwidthMbPerS: fixed(
    1e-6,
    'Smallest bandwidth of a link, MB/s.',
    'LinkInput.bandwidthMbPerS',
    'LinkMeasurementInput.bandwidthMbPerS',
  ),
  rttS: fixed(3_600, 'Round-trip time of a link, seconds.', 'LinkInput.rttS', 'LinkMeasurementInput.rttS'),
  // Beyond, next to nothing arrives.
  loss: fixed(0.999, 'Packet loss of a link.', 'LinkInput.loss', 'LinkMeasurementInput.loss'),
  openSimulations: fixed(
    5,
    'What-if simulations of one user that have not ended.',
    'Mutation.createSimulation',
  ),
  traceChars: fixed(
    16 * MIB,
    'Characters in the trace of a what-if simulation.',
    'CreateSimulationInput.trace',
  ),
  simulatedJobs: fixed(
    100_000,
    'Jobs in the time window of a what-if simulation.',
    'CreateSimulationInput.to',
  ),
  historyDays: fixed(
    366,
    'Days that a history or a sum of usage may cover.',
    'Query.loadHistory.from',
    'Query.licenseHistory.from',
    'Query.resourceHistory.from',
    'Query.usage.from',
  ),
  historyPoints: fixed(
    500,
    'Points of a history.',
    'Query.loadHistory.points',
    'Query.licenseHistory.points',
    'Query.resourceHistory.points',
  ),
  sitePartitions: fixed(
    100,
    "Partitions of a site's own scheduler that are reported.",
    'SiteLoadInput.partitions',
  ),
  siteLicenses: fixed(
    1_000,
    "Licenses that a site's own scheduler counts and that are reported.",
    'SiteLoadInput.licenses',
  ),
  siteQueue: fixed(
    100,
    "Waiting jobs of others in a site's own scheduler that are reported.",
    'SiteLoadInput.queue',
  ),
  agentMachines: fixed(10_000, 'Machines that an agent may ask for.', 'RegisterAgentInput.machines'),
  userDatasets: fixed(1_000, "Datasets that are outputs of one user's jobs."),
  siteAgents: fixed(10_000, 'Agents of a site that are kept in the database.'),
  agentImages: fixed(
    1_000,
    'Images at an agent that it reports; of more, those used last.',
    'Mutation.reportImages.images',
  ),
  siteImages: fixed(100_000, 'Images at all agents of a site that are kept in the database.'),
  assignments: fixed(2_000, 'Assignments in one message to an agent.', 'AssignmentBatch.assignments'),
  // In JSON up to six times as many; so that several messages fit into what may wait for a slow agent.
  assignmentBytes: fixed(
    4 * MIB,
    'Bytes of the jobs (as LIMIT_USER_JOB_BYTES counts them) after which a message to an agent has no further assignment.',
  ),
  foreignJobs: fixed(
    100_000,
    'Jobs of one peer that are here at the same time.',
    'SetPeerInput.foreignMax',
    'ExchangeInput.room',
  ),
  hops: fixed(
    64,
    'Services that a job may pass, and schedulers on its way.',
    'SetPeerInput.hops',
    'MachineKindInput.hops',
    'PlaceInput.path',
  ),
  foreignUsers: fixed(1_000, 'Users of a peer that are mapped to users here.', 'SetPeerInput.users'),
  places: fixed(500, 'Places of jobs in one report of a peer.', 'ExchangeInput.places'),
  machineKinds: fixed(500, 'Kinds of machines in one report of a peer.', 'ExchangeInput.kinds'),
  kindLicenses: fixed(100, 'Kinds of licenses of one kind of machines.', 'MachineKindInput.licenses'),
  alikeDevices: fixed(
    16,
    'Kinds of devices of one kind of machines that peers are told of.',
    'MachineKindInput.devices',
  ),
  peerClasses: fixed(100, 'Classes in which a peer takes jobs.', 'ExchangeInput.classes'),
  claims: fixed(500, 'Claims of a peer in one request.', 'Mutation.claimJobs.offers'),
  returns: fixed(1_000, 'Offers that a peer returns in one request.', 'Mutation.returnJobs.offers'),
  urlChars: fixed(
    2_000,
    'Characters in the address of a peer, or of the endpoint of a webhook.',
    'SetPeerInput.url',
    'CreateWebhookInput.url',
  ),
  registryPasswordChars: fixed(
    8_000,
    'Characters in a password for a registry.',
    'SetRegistryCredentialInput.password',
  ),
  formerSecretS: fixed(
    604_800,
    'Longest time for which the former secret of a webhook signs too, seconds.',
    'RotateWebhookSecretInput.keepFormerS',
  ),
  messageChars: fixed(4_000, 'Characters kept of the message in a run report.', 'RunReportInput.message'),
  socketBacklogBytes: fixed(
    64 * MIB,
    'Bytes that may wait for a WebSocket client that does not read, before it is disconnected.',
  ),
  jsonDepth: fixed(32, 'Levels of nesting in a JSON value.', 'JSON'),
  jsonValues: fixed(100_000, 'Values within a JSON value.'),
  queryChars: fixed(1_048_576, 'Characters in the text of a query. Longer values belong in variables.'),
  latitude: fixed(90, 'Degrees of latitude.', 'CreateSiteInput.latitude', 'UpdateSiteInput.latitude'),
  longitude: fixed(180, 'Degrees of longitude.', 'CreateSiteInput.longitude', 'UpdateSiteInput.longitude'),
} as const satisfies Record<string, FixedLimit>;

/** The fixed limits as numbers. */
export const MAX = Object.fromEntries(
  Object.entries(FIXED_LIMITS).map(([name, { max }]) => [name, max]),
) as Readonly<Record<keyof typeof FIXED_LIMITS, number>>;

/** A limit as people read it: 1000, 10 000, 10^9. */
export function shownLimit(value: number): string {
  const exponent = Math.log10(value);
  if ((value >= 1e9 || value < 1e-3) && Number.isInteger(exponent)) return `10^${exponent}`;
  return value < 10_000 ? String(value) : String(value).replace(/\B(?=(\d{3})+$)/g, ' ');
}
