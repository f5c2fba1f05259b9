/**
 * Each table's row as JSON, with the names of rows.ts. Every list is `json_agg` of these: one value for Prisma to
 * decode (5 000 rows of 8 columns: 7.3 ms of CPU as columns, 2.4 ms as one JSON value of arrays).
 */

const at = (column: string) => `extract(epoch FROM ${column})::float8`;

/** Columns of jobs by their names in rows.ts. The listing of jobs reads only those that are asked for. */
export const jobColumns = {
  id: 'j.id',
  userId: 'j.user_id',
  state: 'j.state',
  siteId: 'j.site_id',
  name: 'j.name',
  application: 'j.application',
  groupName: 'j.group_name',
  arrayIndex: 'j.array_index',
  command: 'j.command',
  arguments: 'j.arguments',
  environment: 'j.environment',
  workingDirectory: 'j.working_directory',
  tasks: 'j.tasks',
  cpusPerTask: 'j.cpus_per_task',
  memoryMbPerTask: 'j.memory_mb_per_task',
  licenses: 'j.licenses',
  os: 'j.os',
  architecture: 'j.architecture',
  estimateS: 'j.estimate_s',
  benchmark: 'j.benchmark',
  runTimeLimitS: 'j.run_time_limit_s',
  deadline: at('j.deadline'),
  deadlineMissed: 'j.deadline_missed',
  sandboxMb: 'j.sandbox_mb',
  outputMb: 'j.output_mb',
  inputs: `coalesce(j.inputs, '[]')`,
  originSiteId: 'j.origin_site_id',
  computationShare: 'j.computation_share',
  restartable: 'j.restartable',
  simulatedRunS: 'j.simulated_run_s',
  simulatedIoS: 'j.simulated_io_s',
  groupId: 'j.group_id',
  migratedAt: at('j.migrated_at'),
  priority: 'j.priority',
  boost: 'j.boost',
  epoch: 'j.epoch',
  cause: 'j.cause',
  message: 'j.message',
  exitCode: 'j.exit_code',
  submittedAt: at('j.submitted_at'),
  dispatchedAt: at('j.dispatched_at'),
  startedAt: at('j.started_at'),
  endedAt: at('j.ended_at'),
};

/** Alias v, for "row". */
export const userRow = `json_build_object('id', v.id, 'name', v.name, 'class', v.class, 'role', v.role, 'quotaShare', v.quota_share,
  'submissionLimit', v.submission_limit, 'submissionPeriodS', v.submission_period_s, 'active', v.active, 'createdAt', ${at('v.created_at')})`;

export const siteRow = `json_build_object('id', v.id, 'name', v.name, 'state', v.state, 'latitude', v.latitude, 'longitude', v.longitude,
  'localPolicy', v.local_policy, 'maxRunningJobs', v.max_running_jobs, 'agentSeenAt', ${at('v.agent_seen_at')}, 'createdAt', ${at('v.created_at')}, 'removedAt', ${at('v.removed_at')})`;

export const machineRow = `json_build_object('id', v.id, 'siteId', v.site_id, 'name', v.name, 'state', v.state, 'cpus', v.cpus,
  'memoryMb', v.memory_mb, 'benchmark', v.benchmark, 'os', v.os, 'architecture', v.architecture, 'licenseIds', v.license_ids,
  'heartbeatAt', ${at('v.heartbeat_at')}, 'silent', v.silent, 'cpusUsed', v.cpus_used, 'memoryUsedMb', v.memory_used_mb,
  'maxTasks', v.max_tasks, 'tasksUsed', v.tasks_used,
  'removedAt', ${at('v.removed_at')})`;

export const licenseRow = `json_build_object('id', v.id, 'kind', v.kind, 'copies', v.copies, 'siteId', v.site_id, 'inUse', v.in_use,
  'removedAt', ${at('v.removed_at')})`;

/** Without the hash. */
export const apiKeyRow = `json_build_object('id', v.id, 'userId', v.user_id, 'name', v.name, 'prefix', v.prefix, 'siteId', v.site_id,
  'createdAt', ${at('v.created_at')}, 'expiresAt', ${at('v.expires_at')}, 'revokedAt', ${at('v.revoked_at')}, 'lastUsedAt', ${at('v.last_used_at')})`;

export const policyRow = `json_build_object('version', v.version, 'document', v.document, 'reason', v.reason, 'authorId', v.author_id,
  'revertsTo', v.reverts_to, 'createdAt', ${at('v.created_at')})`;

export const simulationRow = `json_build_object('id', v.id, 'userId', v.user_id, 'state', v.state, 'progress', v.progress,
  'policyVersion', v.policy_version, 'candidate', v.candidate, 'from', ${at('v.from_at')}, 'to', ${at('v.to_at')}, 'reason', v.reason,
  'createdAt', ${at('v.created_at')}, 'endedAt', ${at('v.ended_at')}, 'result', v.result, 'message', v.message)`;

export const auditRow = `json_build_object('id', v.id, 'at', ${at('v.at')}, 'userId', v.user_id, 'action', v.action, 'target', v.target,
  'reason', v.reason, 'before', v.before, 'after', v.after)`;

export const runRow = `json_build_object('jobId', v.job_id, 'epoch', v.epoch, 'siteId', v.site_id, 'machineIds', v.machine_ids,
  'machineTasks', v.machine_tasks, 'licenseIds', v.license_ids, 'policyVersion', v.policy_version, 'assignedAt', ${at('v.assigned_at')},
  'plannedS', v.planned_s, 'startedAt', ${at('v.started_at')}, 'endedAt', ${at('v.ended_at')}, 'exitCode', v.exit_code, 'signal', v.signal,
  'cause', v.cause, 'message', v.message, 'cpuS', v.cpu_s, 'ioWaitS', v.io_wait_s)`;

export const outputRow = `json_build_object('jobId', v.job_id, 'epoch', v.epoch, 'stream', v.stream, 'body', v.body, 'bytes', v.bytes,
  'truncated', v.truncated)`;

export const decisionRow = `json_build_object('id', v.id, 'jobId', v.job_id, 'at', ${at('v.at')}, 'kind', v.kind, 'reason', v.reason,
  'policyVersion', v.policy_version, 'cycle', v.cycle, 'fromSiteId', v.from_site_id, 'siteId', v.site_id, 'detail', v.detail)`;

export const eventRow = `json_build_object('id', v.id, 'at', ${at('v.at')}, 'kind', v.kind, 'entityId', v.entity_id, 'seq', v.seq,
  'fromState', v.from_state, 'toState', v.to_state, 'siteId', v.site_id, 'fromSiteId', v.from_site_id, 'userId', v.user_id, 'epoch', v.epoch, 'cause', v.cause)`;

export const reservationRow = `json_build_object('siteId', v.site_id, 'jobId', v.job_id, 'at', ${at('v.at')}, 'machineIds', v.machine_ids,
  'machineTasks', v.machine_tasks)`;

export const datasetRow = `json_build_object('id', v.id, 'name', v.name, 'sizeMb', v.size_mb,
  'siteIds', (SELECT coalesce(json_agg(site_id ORDER BY site_id), '[]') FROM dataset_replicas WHERE dataset_id = v.id),
  'createdAt', ${at('v.created_at')}, 'removedAt', ${at('v.removed_at')})`;

export const linkRow = `json_build_object('fromSiteId', v.from_site_id, 'toSiteId', v.to_site_id, 'bandwidthMbPerS', v.bandwidth_mb_per_s,
  'rttS', v.rtt_s, 'loss', v.loss, 'measuredAt', ${at('v.measured_at')}, 'source', v.source)`;

export const linkMeasurementRow = `json_build_object('id', v.id, 'at', ${at('v.at')}, 'fromSiteId', v.from_site_id, 'toSiteId', v.to_site_id,
  'bandwidthMbPerS', v.bandwidth_mb_per_s, 'rttS', v.rtt_s, 'loss', v.loss)`;

export const ratioPointRow = `json_build_object('id', v.id, 'application', v.application, 'at', ${at('v.at')}, 'jobId', v.job_id,
  'epoch', v.epoch, 'siteId', v.site_id, 'turnaroundS', v.turnaround_s, 'ioS', v.io_s, 'sitePower', v.site_power, 'runs', v.runs,
  'computation', v.computation)`;

export const groupRow = `json_build_object('id', v.id, 'userId', v.user_id, 'name', v.name, 'template', v.template, 'size', v.size,
  'createdAt', ${at('v.created_at')})`;

/** All rows of a query with the alias v, as one array in the order of the query. */
export const listOf = (row: string, query: string): string =>
  `SELECT coalesce(json_agg(${row}), '[]')::text AS v FROM (${query}) v`;
