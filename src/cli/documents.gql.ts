// Generated from src/cli/documents.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { Document } from '../client/index.js';
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
export type ErrorCode =
  | 'UNAUTHENTICATED'
  | 'FORBIDDEN'
  | 'BAD_USER_INPUT'
  | 'NEVER_FITS'
  | 'NOT_FOUND'
  | 'CONFLICT'
  | 'VERSION_CONFLICT'
  | 'IDEMPOTENCY_KEY_REUSED'
  | 'QUOTA_EXCEEDED'
  | 'LIMIT_EXCEEDED'
  | 'QUERY_TOO_COMPLEX'
  | 'RATE_LIMITED'
  | 'UNAVAILABLE'
  | 'INTERNAL_SERVER_ERROR';

export type Direction =
  | 'ASC'
  | 'DESC';

export type SiteState =
  | 'UP'
  | 'DRAINING'
  | 'DOWN';

export type ResourceAmountInput = {
  readonly kind: string;
  readonly amount: number;
};

export type MachineState =
  | 'UP'
  | 'DRAINING'
  | 'DOWN';

export type DeviceInput = {
  readonly id: string;
  readonly kind?: string;
  readonly model?: string | null | undefined;
  readonly memoryMb?: number;
  readonly shares?: number;
  readonly link?: string | null | undefined;
};

export type MachineLabelInput = {
  readonly name: string;
  readonly value?: string;
};

export type HoldKind =
  | 'MAINTENANCE'
  | 'USER'
  | 'STANDING';

export type HoldConflict =
  | 'REFUSE'
  | 'AFTER_JOBS'
  | 'PREEMPT';

export type LinkSource =
  | 'ADMIN'
  | 'AGENT';

export type JobRatioSource =
  | 'APPLICATION'
  | 'USER'
  | 'EVERYBODY'
  | 'DECLARED'
  | 'UNKNOWN';

export type UserClass =
  | 'GOLD'
  | 'SILVER'
  | 'REGULAR';

export type UserRole =
  | 'ADMIN'
  | 'OPERATOR'
  | 'USER'
  | 'AGENT'
  | 'PEER';

export type MailKind =
  | 'BEGIN'
  | 'END'
  | 'FAIL'
  | 'LIMIT_80'
  | 'WAITED'
  | 'GROUP_DONE';

export type UserLimitName =
  | 'REQUESTS_PER_SECOND'
  | 'OPEN_REQUESTS'
  | 'COST_PER_MINUTE'
  | 'SUBSCRIPTIONS'
  | 'CONNECTIONS'
  | 'LIVE_JOBS'
  | 'LIVE_JOB_BYTES'
  | 'OUTPUT_BYTES'
  | 'FILE_BYTES'
  | 'API_KEYS'
  | 'OPEN_SIMULATIONS';

export type JobEventKind =
  | 'QUEUED'
  | 'BLOCKED'
  | 'HELD'
  | 'DISPATCHED'
  | 'ASSIGNED'
  | 'RUNNING'
  | 'CANCELLING'
  | 'COMPLETED'
  | 'FAILED'
  | 'CANCELLED'
  | 'CHANGED';

export type JobState =
  | 'QUEUED'
  | 'BLOCKED'
  | 'HELD'
  | 'DISPATCHED'
  | 'ASSIGNED'
  | 'RUNNING'
  | 'CANCELLING'
  | 'COMPLETED'
  | 'FAILED'
  | 'CANCELLED';

export type EndCause =
  | 'EXITED_ZERO'
  | 'EXITED_NONZERO'
  | 'SIGNALLED'
  | 'RUN_TIME_LIMIT'
  | 'MEMORY_LIMIT'
  | 'STAGING_FAILED'
  | 'INPUT_MISMATCH'
  | 'OUTPUTS_FAILED'
  | 'CPU_LIMIT'
  | 'DISK_LIMIT'
  | 'PROCESS_LIMIT'
  | 'LAUNCH_FAILED'
  | 'MACHINE_FAILED'
  | 'LOST'
  | 'REFUSED'
  | 'CANCELLED_BY_USER'
  | 'CANCELLED_BY_OPERATOR'
  | 'DEADLINE_PASSED'
  | 'NEVER_FITS'
  | 'WITHDRAWN'
  | 'OTHER_TASK_FAILED'
  | 'DEPENDENCY_FAILED'
  | 'REQUEUED'
  | 'PREEMPTED';

export type WarnSignal =
  | 'SIGTERM'
  | 'SIGHUP'
  | 'SIGINT'
  | 'SIGQUIT'
  | 'SIGALRM'
  | 'SIGUSR1'
  | 'SIGUSR2';

export type TaskLaunch =
  | 'EVERY_TASK'
  | 'ONCE';

export type TaskFailure =
  | 'END_ALL'
  | 'CONTINUE';

export type RetryAction =
  | 'RETRY'
  | 'RETRY_ELSEWHERE'
  | 'FAIL'
  | 'HOLD';

export type RetryReason =
  | 'RULE'
  | 'NO_RULE'
  | 'RETRIES_USED'
  | 'MEMORY_AT_MOST';

export type NeedCondition =
  | 'START'
  | 'OK'
  | 'NOT_OK'
  | 'ANY';

export type AskedNeed =
  | 'START'
  | 'OK'
  | 'NOT_OK'
  | 'ANY'
  | 'CORRESPONDING';

export type NeedExpression =
  | 'ALL'
  | 'ANY';

export type OnUnmet =
  | 'CANCEL'
  | 'HOLD'
  | 'RUN';

export type JobGroupState =
  | 'OPEN'
  | 'DONE';

export type TaskState =
  | 'WAITING'
  | 'RUNNING'
  | 'ENDED';

export type OutputKeeper =
  | 'SERVICE'
  | 'DATASET';

export type MeasurementMethod =
  | 'CGROUP'
  | 'DELAY_ACCOUNTING'
  | 'PROC'
  | 'SAMPLES'
  | 'SIMULATED';

export type OutputStream =
  | 'STDOUT'
  | 'STDERR';

export type DecisionKind =
  | 'DISPATCH'
  | 'START'
  | 'TAKE_BACK'
  | 'PREEMPT';

export type QueueOrder =
  | 'PRIORITY'
  | 'OWN_PRIORITY'
  | 'ARRIVAL';

export type UsageBy =
  | 'USER'
  | 'SITE'
  | 'APPLICATION';

export type EventKind =
  | 'JOB_STATE'
  | 'JOB_CHANGED'
  | 'SITE'
  | 'MACHINE'
  | 'AGENT'
  | 'LICENSE'
  | 'SCHEDULER'
  | 'USER'
  | 'POLICY'
  | 'SIMULATION'
  | 'DATA'
  | 'HOLD';

export type SimulationState =
  | 'QUEUED'
  | 'RUNNING'
  | 'DONE'
  | 'FAILED'
  | 'CANCELLED';

export type Forwarding =
  | 'ALWAYS'
  | 'WHEN_NEEDED'
  | 'WHEN_CHEAPER'
  | 'NEVER';

export type FederationPeerInput = {
  readonly name: string;
  readonly url?: string | null | undefined;
  readonly key?: string | null | undefined;
  readonly forward?: Forwarding | null | undefined;
  readonly neededAfterS?: number | null | undefined;
  readonly hops?: number | null | undefined;
  readonly lostAfterS?: number | null | undefined;
  readonly foreignMax?: number | null | undefined;
  readonly foreignBoost?: number | null | undefined;
  readonly user?: string | null | undefined;
  readonly users?: ReadonlyArray<ForeignUserInput> | null | undefined;
};

export type ForeignUserInput = {
  readonly name: string;
  readonly user?: string | null | undefined;
};

export type OfferState =
  | 'OFFERED'
  | 'CLAIMED'
  | 'WITHDRAWN';

export type JobFilter = {
  readonly ids?: ReadonlyArray<string> | null | undefined;
  readonly states?: ReadonlyArray<JobState> | null | undefined;
  readonly site?: string | null | undefined;
  readonly user?: string | null | undefined;
  readonly application?: string | null | undefined;
  readonly project?: string | null | undefined;
  readonly groupName?: string | null | undefined;
  readonly license?: string | null | undefined;
  readonly group?: string | null | undefined;
  readonly waitsForOthers?: boolean | null | undefined;
  readonly submittedAfter?: string | null | undefined;
  readonly submittedBefore?: string | null | undefined;
  readonly endedAfter?: string | null | undefined;
  readonly endedBefore?: string | null | undefined;
};

export type JobOrderField =
  | 'SUBMITTED_AT'
  | 'ENDED_AT'
  | 'DEADLINE';

export type JobOrder = {
  readonly field?: JobOrderField;
  readonly direction?: Direction;
};

export type EnvironmentVariable = {
  readonly name: string;
  readonly value: string;
};

export type InputDataInput = {
  readonly dataset?: string | null | undefined;
  readonly sizeMb?: number | null | undefined;
  readonly site?: string | null | undefined;
  readonly from?: string | null | undefined;
  readonly output?: string | null | undefined;
};

export type JobOutputInput = {
  readonly path: string;
  readonly keep?: OutputKeeper;
  readonly dataset?: string | null | undefined;
};

export type RetryInput = {
  readonly maxRetries?: number;
  readonly backoffS?: number;
  readonly factor?: number;
  readonly maxBackoffS?: number;
  readonly rules?: ReadonlyArray<RetryRuleInput>;
};

export type RetryRuleInput = {
  readonly causes?: ReadonlyArray<EndCause> | null | undefined;
  readonly exitCodes?: ReadonlyArray<ExitCodesInput> | null | undefined;
  readonly signals?: ReadonlyArray<string> | null | undefined;
  readonly action: RetryAction;
  readonly memoryFactor?: number;
  readonly memoryMaxMb?: number | null | undefined;
};

export type ExitCodesInput = {
  readonly from: number;
  readonly to: number;
};

export type SiteTermsInput = {
  readonly partition?: string | null | undefined;
  readonly account?: string | null | undefined;
  readonly qos?: string | null | undefined;
};

export type JobInput = {
  readonly name?: string | null | undefined;
  readonly application?: string | null | undefined;
  readonly project?: string | null | undefined;
  readonly groupName?: string | null | undefined;
  readonly arrayIndex?: number | null | undefined;
  readonly command: string;
  readonly arguments?: ReadonlyArray<string>;
  readonly environment?: ReadonlyArray<EnvironmentVariable>;
  readonly workingDirectory?: string | null | undefined;
  readonly tasks?: number;
  readonly cpusPerTask?: number;
  readonly memoryMbPerTask?: number;
  readonly resourcesPerTask?: ReadonlyArray<ResourceAmountInput>;
  readonly licenses?: ReadonlyArray<string>;
  readonly machineConstraint?: string | null | undefined;
  readonly image?: string | null | undefined;
  readonly os?: string | null | undefined;
  readonly architecture?: string | null | undefined;
  readonly siteTerms?: SiteTermsInput | null | undefined;
  readonly estimateS?: number;
  readonly benchmark?: number;
  readonly runTimeLimitS?: number | null | undefined;
  readonly warnS?: number | null | undefined;
  readonly warnSignal?: WarnSignal;
  readonly killGraceS?: number;
  readonly deadline?: string | null | undefined;
  readonly sandboxMb?: number;
  readonly inputs?: ReadonlyArray<InputDataInput>;
  readonly outputMb?: number;
  readonly originSite?: string | null | undefined;
  readonly reservation?: string | null | undefined;
  readonly outputs?: ReadonlyArray<JobOutputInput>;
  readonly preferences?: ReadonlyArray<JobPreferenceInput>;
  readonly computationShare?: number | null | undefined;
  readonly restartable?: boolean;
  readonly retry?: RetryInput | null | undefined;
  readonly launch?: TaskLaunch;
  readonly onTaskFailure?: TaskFailure;
  readonly mail?: ReadonlyArray<MailKind> | null | undefined;
  readonly boost?: number;
  readonly preemptionClass?: number;
  readonly held?: boolean;
  readonly ref?: string | null | undefined;
  readonly needs?: ReadonlyArray<NeedClauseInput>;
  readonly onUnmet?: OnUnmet;
  readonly notBefore?: string | null | undefined;
  readonly simulatedRunS?: number | null | undefined;
  readonly simulatedIoS?: number | null | undefined;
};

export type JobPreferenceInput = {
  readonly site?: string | null | undefined;
  readonly os?: string | null | undefined;
  readonly architecture?: string | null | undefined;
  readonly licenses?: ReadonlyArray<string>;
  readonly cpusPerTask?: number | null | undefined;
  readonly memoryMbPerTask?: number | null | undefined;
};

export type NeedClauseInput = {
  readonly expression?: NeedExpression;
  readonly of: ReadonlyArray<NeedTermInput>;
};

export type NeedTermInput = {
  readonly ref?: string | null | undefined;
  readonly job?: string | null | undefined;
  readonly group?: string | null | undefined;
  readonly jobGroup?: string | null | undefined;
  readonly condition?: AskedNeed;
  readonly minDelayS?: number;
};

export type SubmitJobsInput = {
  readonly idempotencyKey?: string | null | undefined;
  readonly jobs: ReadonlyArray<JobInput>;
  readonly allowUnfit?: boolean;
};

export type SubmitJobGroupInput = {
  readonly name?: string | null | undefined;
  readonly template: JobInput;
  readonly parameters?: ReadonlyArray<unknown> | null | undefined;
  readonly count?: number | null | undefined;
  readonly idempotencyKey?: string | null | undefined;
  readonly allowUnfit?: boolean;
};

export type JobSelection = {
  readonly ids?: ReadonlyArray<string> | null | undefined;
  readonly filter?: JobFilter | null | undefined;
  readonly all?: boolean | null | undefined;
};

export type RerunInput = {
  readonly group?: string | null | undefined;
  readonly jobGroup?: string | null | undefined;
  readonly only?: RerunOnly;
};

export type RerunOnly =
  | 'FAILED'
  | 'FAILED_AND_DOWNSTREAM';

export type ChangeJobsInput = {
  readonly selection: JobSelection;
  readonly set: JobChangesInput;
  readonly allowUnfit?: boolean;
};

export type JobChangesInput = {
  readonly name?: string | null | undefined;
  readonly project?: string | null | undefined;
  readonly tasks?: number | null | undefined;
  readonly cpusPerTask?: number | null | undefined;
  readonly memoryMbPerTask?: number | null | undefined;
  readonly resourcesPerTask?: ReadonlyArray<ResourceAmountInput> | null | undefined;
  readonly licenses?: ReadonlyArray<string> | null | undefined;
  readonly machineConstraint?: string | null | undefined;
  readonly os?: string | null | undefined;
  readonly architecture?: string | null | undefined;
  readonly estimateS?: number | null | undefined;
  readonly benchmark?: number | null | undefined;
  readonly runTimeLimitS?: number | null | undefined;
  readonly warnS?: number | null | undefined;
  readonly warnSignal?: WarnSignal | null | undefined;
  readonly killGraceS?: number | null | undefined;
  readonly deadline?: string | null | undefined;
  readonly restartable?: boolean | null | undefined;
  readonly retry?: RetryInput | null | undefined;
  readonly mail?: ReadonlyArray<MailKind> | null | undefined;
  readonly boost?: number | null | undefined;
  readonly needs?: ReadonlyArray<NeedClauseInput> | null | undefined;
  readonly onUnmet?: OnUnmet | null | undefined;
  readonly notBefore?: string | null | undefined;
};

export type RegisterSiteInput = {
  readonly name: string;
  readonly latitude?: number | null | undefined;
  readonly longitude?: number | null | undefined;
  readonly localPolicy?: unknown;
  readonly scheduler?: string | null | undefined;
  readonly maxRunningJobs?: number | null | undefined;
  readonly reservableCpuHours?: number;
};

export type UpdateSiteInput = {
  readonly site: string;
  readonly name?: string | null | undefined;
  readonly state?: SiteState | null | undefined;
  readonly latitude?: number | null | undefined;
  readonly longitude?: number | null | undefined;
  readonly localPolicy?: unknown;
  readonly maxRunningJobs?: number | null | undefined;
  readonly reservableCpuHours?: number | null | undefined;
  readonly scheduler?: string | null | undefined;
};

export type ReserveInput = {
  readonly kind?: HoldKind;
  readonly name?: string | null | undefined;
  readonly site: string;
  readonly machines?: ReadonlyArray<string> | null | undefined;
  readonly tasks?: number | null | undefined;
  readonly cpus?: number | null | undefined;
  readonly memoryMb?: number | null | undefined;
  readonly resources?: ReadonlyArray<ResourceAmountInput>;
  readonly from?: string | null | undefined;
  readonly to?: string | null | undefined;
  readonly onConflict?: HoldConflict;
  readonly reason?: string | null | undefined;
};

export type CreateSchedulerInput = {
  readonly name: string;
  readonly parent?: string | null | undefined;
};

export type UpdateSchedulerInput = {
  readonly scheduler: string;
  readonly name?: string | null | undefined;
  readonly parent?: string | null | undefined;
};

export type RegisterMachineInput = {
  readonly site: string;
  readonly name: string;
  readonly cpus: number;
  readonly memoryMb: number;
  readonly benchmark?: number;
  readonly os?: string;
  readonly architecture?: string;
  readonly licenses?: ReadonlyArray<string>;
  readonly maxTasks?: number | null | undefined;
  readonly resources?: ReadonlyArray<ResourceAmountInput>;
  readonly labels?: ReadonlyArray<MachineLabelInput>;
  readonly devices?: ReadonlyArray<DeviceInput>;
};

export type UpdateMachineInput = {
  readonly machine: string;
  readonly name?: string | null | undefined;
  readonly state?: MachineState | null | undefined;
  readonly cpus?: number | null | undefined;
  readonly memoryMb?: number | null | undefined;
  readonly benchmark?: number | null | undefined;
  readonly os?: string | null | undefined;
  readonly architecture?: string | null | undefined;
  readonly licenses?: ReadonlyArray<string> | null | undefined;
  readonly maxTasks?: number | null | undefined;
  readonly resources?: ReadonlyArray<ResourceAmountInput> | null | undefined;
  readonly labels?: ReadonlyArray<MachineLabelInput> | null | undefined;
  readonly devices?: ReadonlyArray<DeviceInput> | null | undefined;
};

export type RegisterLicenseInput = {
  readonly kind: string;
  readonly copies: number;
  readonly site?: string | null | undefined;
};

export type UpdateLicenseInput = {
  readonly license: string;
  readonly copies: number;
};

export type DatasetInput = {
  readonly name: string;
  readonly sizeMb: number;
  readonly sha256?: string | null | undefined;
  readonly replicas?: ReadonlyArray<string>;
  readonly locations?: ReadonlyArray<DatasetLocationInput>;
};

export type DatasetLocationInput = {
  readonly site: string;
  readonly location: string;
};

export type UpdateDatasetInput = {
  readonly dataset: string;
  readonly name?: string | null | undefined;
  readonly sizeMb?: number | null | undefined;
  readonly sha256?: string | null | undefined;
};

export type LinkInput = {
  readonly from: string;
  readonly to: string;
  readonly bandwidthMbPerS: number;
  readonly rttS?: number;
  readonly loss?: number;
};

export type RegisterUserInput = {
  readonly name: string;
  readonly class?: UserClass;
  readonly role?: UserRole;
  readonly quotaShare?: number;
  readonly subject?: string | null | undefined;
};

export type UpdateUserInput = {
  readonly user: string;
  readonly class?: UserClass | null | undefined;
  readonly role?: UserRole | null | undefined;
  readonly active?: boolean | null | undefined;
};

export type SetQuotaInput = {
  readonly user: string;
  readonly quotaShare?: number | null | undefined;
  readonly submissionLimit?: number | null | undefined;
  readonly submissionPeriodS?: number | null | undefined;
  readonly reason: string;
};

export type CreateApiKeyInput = {
  readonly user?: string | null | undefined;
  readonly name: string;
  readonly site?: string | null | undefined;
  readonly expiresAt?: string | null | undefined;
  readonly sessionExpiresAt?: string | null | undefined;
  readonly actsForUsers?: boolean;
};

export type InviteUserInput = {
  readonly user: string;
  readonly expiresAt?: string | null | undefined;
};

export type EndSessionsInput = {
  readonly user?: string | null | undefined;
  readonly sessions?: ReadonlyArray<string> | null | undefined;
};

export type CreateWebhookInput = {
  readonly name: string;
  readonly url: string;
  readonly filter?: JobFilter | null | undefined;
  readonly kinds?: ReadonlyArray<JobEventKind>;
};

export type UpdateWebhookInput = {
  readonly webhook: string;
  readonly name?: string | null | undefined;
  readonly url?: string | null | undefined;
  readonly filter?: JobFilter | null | undefined;
  readonly kinds?: ReadonlyArray<JobEventKind> | null | undefined;
  readonly enabled?: boolean | null | undefined;
};

export type SetWeightsInput = {
  readonly expectedVersion: number;
  readonly reason: string;
  readonly dispatch?: unknown;
  readonly local?: unknown;
};

export type UpdatePolicyInput = {
  readonly expectedVersion: number;
  readonly reason: string;
  readonly document: unknown;
};

export type SimulateInput = {
  readonly candidate: unknown;
  readonly from?: string | null | undefined;
  readonly to?: string | null | undefined;
  readonly trace?: string | null | undefined;
  readonly acceptDistance?: boolean;
  readonly reason?: string | null | undefined;
};

export type JobFieldsFragment = { readonly id: string, readonly state: JobState, readonly name: string | null, readonly application: string, readonly project: string | null, readonly groupName: string | null, readonly arrayIndex: number | null, readonly command: string, readonly arguments: ReadonlyArray<string>, readonly workingDirectory: string | null, readonly tasks: number, readonly cpusPerTask: number, readonly memoryMbPerTask: number, readonly licenses: ReadonlyArray<string>, readonly os: string | null, readonly architecture: string | null, readonly machineConstraint: string | null, readonly image: string | null, readonly estimateS: number, readonly benchmark: number, readonly runTimeLimitS: number | null, readonly warnS: number | null, readonly warnSignal: WarnSignal, readonly killGraceS: number, readonly deadline: string | null, readonly deadlineMissed: boolean, readonly sandboxMb: number, readonly outputMb: number, readonly restartable: boolean, readonly launch: TaskLaunch, readonly onTaskFailure: TaskFailure, readonly retries: number, readonly computationShare: number | null, readonly migratedAt: string | null, readonly mail: ReadonlyArray<MailKind> | null, readonly priority: number | null, readonly boost: number, readonly preemptionClass: number, readonly epoch: number, readonly cause: EndCause | null, readonly message: string | null, readonly exitCode: number | null, readonly submittedAt: string, readonly eligibleAt: string | null, readonly dispatchedAt: string | null, readonly startedAt: string | null, readonly endedAt: string | null, readonly environment: ReadonlyArray<{ readonly name: string, readonly value: string }> | null, readonly resourcesPerTask: ReadonlyArray<{ readonly kind: string, readonly amount: number }>, readonly siteTerms: { readonly partition: string | null, readonly account: string | null, readonly qos: string | null } | null, readonly retry: { readonly maxRetries: number, readonly backoffS: number, readonly factor: number, readonly maxBackoffS: number, readonly rules: ReadonlyArray<{ readonly causes: ReadonlyArray<EndCause> | null, readonly signals: ReadonlyArray<string> | null, readonly action: RetryAction, readonly memoryFactor: number, readonly memoryMaxMb: number | null, readonly exitCodes: ReadonlyArray<{ readonly from: number, readonly to: number }> | null }> } | null, readonly inputs: ReadonlyArray<{ readonly sizeMb: number, readonly output: string | null, readonly dataset: { readonly id: string, readonly name: string } | null, readonly site: { readonly id: string, readonly name: string } | null, readonly from: { readonly id: string } | null }>, readonly originSite: { readonly id: string, readonly name: string } | null, readonly reservation: { readonly id: string, readonly name: string | null } | null, readonly user: { readonly id: string, readonly name: string }, readonly site: { readonly id: string, readonly name: string } | null };

export type JobLineFragment = { readonly id: string, readonly state: JobState, readonly name: string | null, readonly application: string, readonly command: string, readonly arguments: ReadonlyArray<string>, readonly cause: EndCause | null, readonly exitCode: number | null, readonly submittedAt: string, readonly startedAt: string | null, readonly endedAt: string | null, readonly site: { readonly id: string, readonly name: string } | null };

export type SiteFieldsFragment = { readonly id: string, readonly name: string, readonly state: SiteState, readonly latitude: number | null, readonly longitude: number | null, readonly localPolicy: unknown, readonly maxRunningJobs: number | null, readonly agentSeenAt: string | null, readonly queuedJobs: number, readonly runningJobs: number, readonly cpus: number, readonly cpusUsed: number, readonly createdAt: string, readonly scheduler: { readonly id: string, readonly name: string } | null, readonly reservation: { readonly at: string, readonly job: { readonly id: string } | null, readonly machines: ReadonlyArray<{ readonly tasks: number, readonly machine: { readonly id: string, readonly name: string } }> } | null };

export type MachineFieldsFragment = { readonly id: string, readonly name: string, readonly state: MachineState, readonly reason: string | null, readonly silent: boolean, readonly problem: string | null, readonly cpus: number, readonly cpusUsed: number, readonly memoryMb: number, readonly memoryUsedMb: number, readonly maxTasks: number | null, readonly tasksUsed: number, readonly benchmark: number, readonly os: string, readonly architecture: string, readonly heartbeatAt: string | null, readonly agent: { readonly id: string, readonly host: string } | null, readonly measured: { readonly cpus: number, readonly memoryMb: number, readonly os: string, readonly architecture: string, readonly model: string | null, readonly benchmark: number, readonly warning: string | null, readonly measuredAt: string, readonly gpus: ReadonlyArray<{ readonly name: string, readonly memoryMb: number }> } | null, readonly resources: ReadonlyArray<{ readonly kind: string, readonly amount: number, readonly used: number }>, readonly labels: ReadonlyArray<{ readonly name: string, readonly value: string }>, readonly devices: ReadonlyArray<{ readonly id: string, readonly kind: string, readonly model: string | null, readonly used: number }>, readonly site: { readonly id: string, readonly name: string }, readonly licenses: ReadonlyArray<{ readonly id: string, readonly kind: string }> };

export type AgentFieldsFragment = { readonly id: string, readonly host: string, readonly version: string, readonly protocol: number, readonly simulated: boolean, readonly registeredAt: string, readonly seenAt: string, readonly problem: string | null, readonly machines: ReadonlyArray<{ readonly name: string, readonly silent: boolean }> };

export type LicenseFieldsFragment = { readonly id: string, readonly kind: string, readonly copies: number, readonly inUse: number, readonly site: { readonly id: string, readonly name: string } | null };

export type UserFieldsFragment = { readonly id: string, readonly name: string, readonly class: UserClass, readonly role: UserRole, readonly quotaShare: number, readonly active: boolean, readonly createdAt: string, readonly submissionQuota: { readonly limit: number, readonly periodS: number, readonly used: number } | null };

export type KeyFieldsFragment = { readonly id: string, readonly name: string, readonly prefix: string, readonly createdAt: string, readonly expiresAt: string | null, readonly revokedAt: string | null, readonly lastUsedAt: string | null, readonly site: { readonly id: string, readonly name: string } | null };

export type WebhookFieldsFragment = { readonly id: string, readonly name: string, readonly url: string, readonly filter: unknown, readonly kinds: ReadonlyArray<JobEventKind>, readonly enabled: boolean, readonly disabledReason: string | null, readonly formerUntil: string | null, readonly deliveredAt: string | null, readonly deliveredStatus: number | null, readonly failures: number, readonly failedAt: string | null, readonly failedReason: string | null, readonly nextAttemptAt: string | null, readonly lagS: number, readonly createdAt: string };

export type PolicyFieldsFragment = { readonly id: string, readonly version: number, readonly document: unknown, readonly reason: string, readonly revertsTo: number | null, readonly createdAt: string, readonly author: { readonly id: string, readonly name: string } | null };

export type FiguresFragment = { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number };

export type ComparisonFragment = { readonly baseline: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly candidate: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly difference: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number } };

export type BinFragment = { readonly atS: number, readonly queuedJobs: number, readonly queuedCpus: number, readonly utilization: number };

export type SimulationFieldsFragment = { readonly id: string, readonly state: SimulationState, readonly progress: number, readonly createdAt: string, readonly endedAt: string | null, readonly policyVersion: number, readonly from: string | null, readonly to: string | null, readonly reason: string | null, readonly message: string | null, readonly user: { readonly id: string, readonly name: string }, readonly result: { readonly jobs: number, readonly leftOut: number, readonly happened: { readonly jobs: number, readonly waitMeanS: number, readonly simulatedWaitMeanS: number, readonly acceptedS: number } | null, readonly all: { readonly baseline: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly candidate: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly difference: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number } }, readonly userClasses: ReadonlyArray<{ readonly userClass: UserClass, readonly comparison: { readonly baseline: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly candidate: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly difference: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number } } }>, readonly sites: ReadonlyArray<{ readonly name: string, readonly comparison: { readonly baseline: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly candidate: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly difference: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number } } }>, readonly history: { readonly from: string | null, readonly lengthS: number, readonly binS: number, readonly baseline: ReadonlyArray<{ readonly atS: number, readonly queuedJobs: number, readonly queuedCpus: number, readonly utilization: number }>, readonly candidate: ReadonlyArray<{ readonly atS: number, readonly queuedJobs: number, readonly queuedCpus: number, readonly utilization: number }> } | null } | null };

export type LatestCursorQueryVariables = Exact<{ [key: string]: never; }>;


export type LatestCursorQuery = { readonly latestCursor: string };

export type SubmitMutationVariables = Exact<{
  input: SubmitJobsInput;
}>;


export type SubmitMutation = { readonly submitJobs: { readonly jobIds: ReadonlyArray<string>, readonly repeated: boolean, readonly errors: ReadonlyArray<{ readonly index: number, readonly field: string, readonly code: ErrorCode, readonly message: string }> } };

export type SubmitFullMutationVariables = Exact<{
  input: SubmitJobsInput;
}>;


export type SubmitFullMutation = { readonly submitJobs: { readonly jobIds: ReadonlyArray<string>, readonly repeated: boolean, readonly errors: ReadonlyArray<{ readonly index: number, readonly field: string, readonly code: ErrorCode, readonly message: string }>, readonly jobs: ReadonlyArray<{ readonly id: string, readonly state: JobState, readonly name: string | null, readonly application: string, readonly project: string | null, readonly groupName: string | null, readonly arrayIndex: number | null, readonly command: string, readonly arguments: ReadonlyArray<string>, readonly workingDirectory: string | null, readonly tasks: number, readonly cpusPerTask: number, readonly memoryMbPerTask: number, readonly licenses: ReadonlyArray<string>, readonly os: string | null, readonly architecture: string | null, readonly machineConstraint: string | null, readonly image: string | null, readonly estimateS: number, readonly benchmark: number, readonly runTimeLimitS: number | null, readonly warnS: number | null, readonly warnSignal: WarnSignal, readonly killGraceS: number, readonly deadline: string | null, readonly deadlineMissed: boolean, readonly sandboxMb: number, readonly outputMb: number, readonly restartable: boolean, readonly launch: TaskLaunch, readonly onTaskFailure: TaskFailure, readonly retries: number, readonly computationShare: number | null, readonly migratedAt: string | null, readonly mail: ReadonlyArray<MailKind> | null, readonly priority: number | null, readonly boost: number, readonly preemptionClass: number, readonly epoch: number, readonly cause: EndCause | null, readonly message: string | null, readonly exitCode: number | null, readonly submittedAt: string, readonly eligibleAt: string | null, readonly dispatchedAt: string | null, readonly startedAt: string | null, readonly endedAt: string | null, readonly environment: ReadonlyArray<{ readonly name: string, readonly value: string }> | null, readonly resourcesPerTask: ReadonlyArray<{ readonly kind: string, readonly amount: number }>, readonly siteTerms: { readonly partition: string | null, readonly account: string | null, readonly qos: string | null } | null, readonly retry: { readonly maxRetries: number, readonly backoffS: number, readonly factor: number, readonly maxBackoffS: number, readonly rules: ReadonlyArray<{ readonly causes: ReadonlyArray<EndCause> | null, readonly signals: ReadonlyArray<string> | null, readonly action: RetryAction, readonly memoryFactor: number, readonly memoryMaxMb: number | null, readonly exitCodes: ReadonlyArray<{ readonly from: number, readonly to: number }> | null }> } | null, readonly inputs: ReadonlyArray<{ readonly sizeMb: number, readonly output: string | null, readonly dataset: { readonly id: string, readonly name: string } | null, readonly site: { readonly id: string, readonly name: string } | null, readonly from: { readonly id: string } | null }>, readonly originSite: { readonly id: string, readonly name: string } | null, readonly reservation: { readonly id: string, readonly name: string | null } | null, readonly user: { readonly id: string, readonly name: string }, readonly site: { readonly id: string, readonly name: string } | null }> } };

export type JobsQueryVariables = Exact<{
  filter?: JobFilter | null | undefined;
  orderBy?: JobOrder | null | undefined;
  first?: number | null | undefined;
  after?: string | null | undefined;
}>;


export type JobsQuery = { readonly jobs: { readonly nodes: ReadonlyArray<{ readonly id: string, readonly state: JobState, readonly name: string | null, readonly application: string, readonly project: string | null, readonly groupName: string | null, readonly arrayIndex: number | null, readonly command: string, readonly arguments: ReadonlyArray<string>, readonly workingDirectory: string | null, readonly tasks: number, readonly cpusPerTask: number, readonly memoryMbPerTask: number, readonly licenses: ReadonlyArray<string>, readonly os: string | null, readonly architecture: string | null, readonly machineConstraint: string | null, readonly image: string | null, readonly estimateS: number, readonly benchmark: number, readonly runTimeLimitS: number | null, readonly warnS: number | null, readonly warnSignal: WarnSignal, readonly killGraceS: number, readonly deadline: string | null, readonly deadlineMissed: boolean, readonly sandboxMb: number, readonly outputMb: number, readonly restartable: boolean, readonly launch: TaskLaunch, readonly onTaskFailure: TaskFailure, readonly retries: number, readonly computationShare: number | null, readonly migratedAt: string | null, readonly mail: ReadonlyArray<MailKind> | null, readonly priority: number | null, readonly boost: number, readonly preemptionClass: number, readonly epoch: number, readonly cause: EndCause | null, readonly message: string | null, readonly exitCode: number | null, readonly submittedAt: string, readonly eligibleAt: string | null, readonly dispatchedAt: string | null, readonly startedAt: string | null, readonly endedAt: string | null, readonly environment: ReadonlyArray<{ readonly name: string, readonly value: string }> | null, readonly resourcesPerTask: ReadonlyArray<{ readonly kind: string, readonly amount: number }>, readonly siteTerms: { readonly partition: string | null, readonly account: string | null, readonly qos: string | null } | null, readonly retry: { readonly maxRetries: number, readonly backoffS: number, readonly factor: number, readonly maxBackoffS: number, readonly rules: ReadonlyArray<{ readonly causes: ReadonlyArray<EndCause> | null, readonly signals: ReadonlyArray<string> | null, readonly action: RetryAction, readonly memoryFactor: number, readonly memoryMaxMb: number | null, readonly exitCodes: ReadonlyArray<{ readonly from: number, readonly to: number }> | null }> } | null, readonly inputs: ReadonlyArray<{ readonly sizeMb: number, readonly output: string | null, readonly dataset: { readonly id: string, readonly name: string } | null, readonly site: { readonly id: string, readonly name: string } | null, readonly from: { readonly id: string } | null }>, readonly originSite: { readonly id: string, readonly name: string } | null, readonly reservation: { readonly id: string, readonly name: string | null } | null, readonly user: { readonly id: string, readonly name: string }, readonly site: { readonly id: string, readonly name: string } | null }>, readonly pageInfo: { readonly hasNextPage: boolean, readonly endCursor: string | null } } };

export type JobLinesQueryVariables = Exact<{
  filter?: JobFilter | null | undefined;
  orderBy?: JobOrder | null | undefined;
  first?: number | null | undefined;
  after?: string | null | undefined;
}>;


export type JobLinesQuery = { readonly jobs: { readonly nodes: ReadonlyArray<{ readonly id: string, readonly state: JobState, readonly name: string | null, readonly application: string, readonly command: string, readonly arguments: ReadonlyArray<string>, readonly cause: EndCause | null, readonly exitCode: number | null, readonly submittedAt: string, readonly startedAt: string | null, readonly endedAt: string | null, readonly site: { readonly id: string, readonly name: string } | null }>, readonly pageInfo: { readonly hasNextPage: boolean, readonly endCursor: string | null } } };

export type JobCountQueryVariables = Exact<{
  filter?: JobFilter | null | undefined;
}>;


export type JobCountQuery = { readonly jobCount: number };

export type ReportQueryVariables = Exact<{
  id: string;
}>;


export type ReportQuery = { readonly job: { readonly id: string, readonly state: JobState, readonly cause: EndCause | null, readonly tasks: number, readonly cpusPerTask: number, readonly memoryMbPerTask: number, readonly estimateS: number, readonly benchmark: number, readonly runs: ReadonlyArray<{ readonly epoch: number, readonly startedAt: string | null, readonly endedAt: string | null, readonly cause: EndCause | null, readonly cpuS: number | null, readonly peakMemoryMb: number | null, readonly allocations: ReadonlyArray<{ readonly machine: { readonly id: string, readonly benchmark: number } }> }> } | null };

export type JobQueryVariables = Exact<{
  id: string;
}>;


export type JobQuery = { readonly job: { readonly onUnmet: OnUnmet | null, readonly notBefore: string | null, readonly id: string, readonly state: JobState, readonly name: string | null, readonly application: string, readonly project: string | null, readonly groupName: string | null, readonly arrayIndex: number | null, readonly command: string, readonly arguments: ReadonlyArray<string>, readonly workingDirectory: string | null, readonly tasks: number, readonly cpusPerTask: number, readonly memoryMbPerTask: number, readonly licenses: ReadonlyArray<string>, readonly os: string | null, readonly architecture: string | null, readonly machineConstraint: string | null, readonly image: string | null, readonly estimateS: number, readonly benchmark: number, readonly runTimeLimitS: number | null, readonly warnS: number | null, readonly warnSignal: WarnSignal, readonly killGraceS: number, readonly deadline: string | null, readonly deadlineMissed: boolean, readonly sandboxMb: number, readonly outputMb: number, readonly restartable: boolean, readonly launch: TaskLaunch, readonly onTaskFailure: TaskFailure, readonly retries: number, readonly computationShare: number | null, readonly migratedAt: string | null, readonly mail: ReadonlyArray<MailKind> | null, readonly priority: number | null, readonly boost: number, readonly preemptionClass: number, readonly epoch: number, readonly cause: EndCause | null, readonly message: string | null, readonly exitCode: number | null, readonly submittedAt: string, readonly eligibleAt: string | null, readonly dispatchedAt: string | null, readonly startedAt: string | null, readonly endedAt: string | null, readonly preferences: ReadonlyArray<{ readonly os: string | null, readonly architecture: string | null, readonly licenses: ReadonlyArray<string>, readonly cpusPerTask: number | null, readonly memoryMbPerTask: number | null, readonly site: { readonly id: string, readonly name: string } | null }>, readonly scheduler: { readonly id: string, readonly name: string } | null, readonly group: { readonly id: string, readonly name: string | null } | null, readonly needs: ReadonlyArray<{ readonly expression: NeedExpression, readonly of: ReadonlyArray<{ readonly group: string | null, readonly condition: NeedCondition, readonly minDelayS: number, readonly job: { readonly id: string, readonly name: string | null, readonly state: JobState } | null, readonly jobGroup: { readonly id: string, readonly name: string | null } | null }> }>, readonly unmetBecause: { readonly id: string } | null, readonly neededBy: ReadonlyArray<{ readonly id: string, readonly name: string | null, readonly state: JobState }>, readonly rerunOf: { readonly id: string } | null, readonly rerunAs: { readonly id: string } | null, readonly outputs: ReadonlyArray<{ readonly path: string, readonly keep: OutputKeeper, readonly dataset: string | null }>, readonly files: ReadonlyArray<{ readonly task: number, readonly path: string, readonly bytes: number, readonly sha256: string, readonly receivedBytes: number, readonly keptAt: string | null, readonly keptUntil: string | null, readonly rateMbPerS: number | null }>, readonly runs: ReadonlyArray<{ readonly epoch: number, readonly localId: string | null, readonly localState: string | null, readonly nodes: ReadonlyArray<string>, readonly imageDigest: string | null, readonly policyVersion: number, readonly assignedAt: string, readonly plannedS: number, readonly startedAt: string | null, readonly endedAt: string | null, readonly exitCode: number | null, readonly signal: string | null, readonly cause: EndCause | null, readonly message: string | null, readonly cpuS: number | null, readonly cpuMethod: MeasurementMethod | null, readonly peakMemoryMb: number | null, readonly peakMemoryMethod: MeasurementMethod | null, readonly readMb: number | null, readonly writtenMb: number | null, readonly bytesMethod: MeasurementMethod | null, readonly ioWaitS: number | null, readonly ioWaitMethod: MeasurementMethod | null, readonly site: { readonly id: string, readonly name: string }, readonly allocations: ReadonlyArray<{ readonly tasks: number, readonly devices: ReadonlyArray<string>, readonly machine: { readonly id: string, readonly name: string } }>, readonly licenses: ReadonlyArray<{ readonly id: string, readonly kind: string }>, readonly retry: { readonly action: RetryAction, readonly rule: number | null, readonly because: RetryReason | null, readonly counted: boolean, readonly retries: number, readonly delayS: number | null, readonly memoryMbPerTask: number, readonly note: string | null } | null, readonly staging: { readonly beganAt: string, readonly endedAt: string | null, readonly totalMb: number, readonly movedMb: number, readonly predictedS: number, readonly measuredS: number | null, readonly error: string | null } | null }>, readonly whyWaiting: { readonly code: string, readonly message: string, readonly startsAt: string | null, readonly earliestStart: string | null, readonly startsAtLatest: string | null, readonly fitsIfLimitS: number | null, readonly wouldChange: ReadonlyArray<string>, readonly numbers: ReadonlyArray<{ readonly name: string, readonly value: number }> } | null, readonly environment: ReadonlyArray<{ readonly name: string, readonly value: string }> | null, readonly resourcesPerTask: ReadonlyArray<{ readonly kind: string, readonly amount: number }>, readonly siteTerms: { readonly partition: string | null, readonly account: string | null, readonly qos: string | null } | null, readonly retry: { readonly maxRetries: number, readonly backoffS: number, readonly factor: number, readonly maxBackoffS: number, readonly rules: ReadonlyArray<{ readonly causes: ReadonlyArray<EndCause> | null, readonly signals: ReadonlyArray<string> | null, readonly action: RetryAction, readonly memoryFactor: number, readonly memoryMaxMb: number | null, readonly exitCodes: ReadonlyArray<{ readonly from: number, readonly to: number }> | null }> } | null, readonly inputs: ReadonlyArray<{ readonly sizeMb: number, readonly output: string | null, readonly dataset: { readonly id: string, readonly name: string } | null, readonly site: { readonly id: string, readonly name: string } | null, readonly from: { readonly id: string } | null }>, readonly originSite: { readonly id: string, readonly name: string } | null, readonly reservation: { readonly id: string, readonly name: string | null } | null, readonly user: { readonly id: string, readonly name: string }, readonly site: { readonly id: string, readonly name: string } | null } | null };

export type JobEndQueryVariables = Exact<{
  id: string;
}>;


export type JobEndQuery = { readonly job: { readonly id: string, readonly state: JobState, readonly cause: EndCause | null, readonly message: string | null, readonly exitCode: number | null, readonly runs: ReadonlyArray<{ readonly signal: string | null }> } | null };

export type JobOutputQueryVariables = Exact<{
  id: string;
  stream: OutputStream;
  epoch?: number | null | undefined;
  task: number;
}>;


export type JobOutputQuery = { readonly job: { readonly id: string, readonly state: JobState, readonly cause: EndCause | null, readonly message: string | null, readonly epoch: number, readonly output: { readonly text: string, readonly bytes: number, readonly truncated: boolean } | null } | null };

export type JobOutputFollowedSubscriptionVariables = Exact<{
  id: string;
  stream: OutputStream;
  epoch?: number | null | undefined;
  task: number;
  after?: string | null | undefined;
}>;


export type JobOutputFollowedSubscription = { readonly jobOutput: { readonly cursor: string, readonly epoch: number, readonly start: number, readonly base64: string, readonly length: number, readonly last: boolean } };

export type JobTasksQueryVariables = Exact<{
  id: string;
  from: number;
  first: number;
}>;


export type JobTasksQuery = { readonly job: { readonly runs: ReadonlyArray<{ readonly tasks: ReadonlyArray<{ readonly index: number, readonly state: TaskState, readonly startedAt: string | null, readonly endedAt: string | null, readonly exitCode: number | null, readonly signal: string | null, readonly cause: EndCause | null, readonly message: string | null, readonly cpuS: number | null, readonly peakMemoryMb: number | null, readonly machine: { readonly id: string, readonly name: string } | null }> }> } | null };

export type JobFilesQueryVariables = Exact<{
  id: string;
  epoch?: number | null | undefined;
}>;


export type JobFilesQuery = { readonly job: { readonly id: string, readonly epoch: number, readonly files: ReadonlyArray<{ readonly task: number, readonly path: string, readonly bytes: number, readonly sha256: string, readonly keptAt: string | null }> } | null };

export type WhyWaitingQueryVariables = Exact<{
  id: string;
}>;


export type WhyWaitingQuery = { readonly job: { readonly whyWaiting: { readonly code: string, readonly message: string } | null } | null };

export type NeverFitsQueryVariables = Exact<{
  ids: ReadonlyArray<string>;
}>;


export type NeverFitsQuery = { readonly jobs: { readonly nodes: ReadonlyArray<{ readonly id: string, readonly whyWaiting: { readonly code: string, readonly message: string } | null }> } };

export type WhyQueryVariables = Exact<{
  id: string;
}>;


export type WhyQuery = { readonly job: { readonly id: string, readonly state: JobState, readonly cause: EndCause | null, readonly message: string | null, readonly site: { readonly id: string, readonly name: string } | null, readonly whyWaiting: { readonly code: string, readonly message: string, readonly startsAt: string | null, readonly earliestStart: string | null, readonly startsAtLatest: string | null, readonly fitsIfLimitS: number | null, readonly wouldChange: ReadonlyArray<string>, readonly numbers: ReadonlyArray<{ readonly name: string, readonly value: number }>, readonly missing: ReadonlyArray<{ readonly expectedAt: string | null, readonly unknown: string | null, readonly term: { readonly group: string | null, readonly condition: NeedCondition, readonly job: { readonly id: string } | null, readonly jobGroup: { readonly id: string } | null } }> } | null, readonly scheduler: { readonly name: string } | null, readonly path: ReadonlyArray<{ readonly at: string, readonly reason: string, readonly message: string, readonly scheduler: { readonly name: string } | null, readonly site: { readonly name: string } | null }>, readonly foreign: { readonly job: string, readonly user: string, readonly peer: { readonly name: string } } | null, readonly peers: ReadonlyArray<{ readonly state: OfferState | null, readonly reason: string | null, readonly path: ReadonlyArray<string> | null, readonly peer: { readonly name: string } }>, readonly decisions: { readonly nodes: ReadonlyArray<{ readonly id: string, readonly at: string, readonly kind: DecisionKind, readonly reason: string, readonly message: string, readonly policyVersion: number, readonly cycle: string, readonly level: number | null, readonly queued: number | null, readonly order: QueueOrder | null, readonly orderValue: number | null, readonly from: { readonly name: string } | null, readonly site: { readonly name: string } | null, readonly jobTerms: ReadonlyArray<{ readonly name: string, readonly value: number }>, readonly respected: { readonly at: string, readonly job: { readonly id: string } | null } | null, readonly candidates: ReadonlyArray<{ readonly eligible: boolean, readonly reason: string | null, readonly rank: number | null, readonly site: { readonly id: string, readonly name: string }, readonly terms: ReadonlyArray<{ readonly name: string, readonly value: number }> }> }>, readonly pageInfo: { readonly hasNextPage: boolean, readonly endCursor: string | null } } } | null };

export type CancelMutationVariables = Exact<{
  selection: JobSelection;
}>;


export type CancelMutation = { readonly cancelJobs: { readonly jobIds: ReadonlyArray<string>, readonly unchanged: ReadonlyArray<{ readonly id: string, readonly code: ErrorCode, readonly message: string }> } };

export type RequeueMutationVariables = Exact<{
  selection: JobSelection;
}>;


export type RequeueMutation = { readonly requeueJobs: { readonly jobIds: ReadonlyArray<string>, readonly unchanged: ReadonlyArray<{ readonly id: string, readonly code: ErrorCode, readonly message: string }> } };

export type HoldMutationVariables = Exact<{
  selection: JobSelection;
}>;


export type HoldMutation = { readonly holdJobs: { readonly jobIds: ReadonlyArray<string>, readonly unchanged: ReadonlyArray<{ readonly id: string, readonly code: ErrorCode, readonly message: string }> } };

export type ReleaseMutationVariables = Exact<{
  selection: JobSelection;
}>;


export type ReleaseMutation = { readonly releaseJobs: { readonly jobIds: ReadonlyArray<string>, readonly unchanged: ReadonlyArray<{ readonly id: string, readonly code: ErrorCode, readonly message: string }> } };

export type ReprioritizeMutationVariables = Exact<{
  selection: JobSelection;
  boost: number;
}>;


export type ReprioritizeMutation = { readonly reprioritizeJobs: { readonly jobIds: ReadonlyArray<string>, readonly unchanged: ReadonlyArray<{ readonly id: string, readonly code: ErrorCode, readonly message: string }> } };

export type RerunMutationVariables = Exact<{
  input: RerunInput;
}>;


export type RerunMutation = { readonly rerun: { readonly jobIds: ReadonlyArray<string>, readonly repointed: ReadonlyArray<string> } };

export type ChangeMutationVariables = Exact<{
  input: ChangeJobsInput;
}>;


export type ChangeMutation = { readonly changeJobs: { readonly jobIds: ReadonlyArray<string>, readonly unchanged: ReadonlyArray<{ readonly id: string, readonly code: ErrorCode, readonly message: string }> } };

export type PlacementQueryVariables = Exact<{
  job?: string | null | undefined;
  spec?: JobInput | null | undefined;
}>;


export type PlacementQuery = { readonly placement: { readonly policyVersion: number, readonly priority: number | null, readonly startsAt: string | null, readonly earliestStart: string | null, readonly reason: string, readonly message: string, readonly jobTerms: ReadonlyArray<{ readonly name: string, readonly value: number }>, readonly site: { readonly id: string, readonly name: string } | null, readonly allocations: ReadonlyArray<{ readonly tasks: number, readonly machine: { readonly id: string, readonly name: string } }>, readonly candidates: ReadonlyArray<{ readonly eligible: boolean, readonly reason: string | null, readonly rank: number | null, readonly site: { readonly id: string, readonly name: string }, readonly terms: ReadonlyArray<{ readonly name: string, readonly value: number }> }> } };

export type JobUpdatedSubscriptionVariables = Exact<{
  filter?: JobFilter | null | undefined;
  after?: string | null | undefined;
}>;


export type JobUpdatedSubscription = { readonly jobUpdated: { readonly cursor: string, readonly resyncRequired: boolean, readonly event: { readonly at: string, readonly kind: EventKind, readonly sequence: number | null, readonly fromState: JobState | null, readonly toState: JobState | null, readonly epoch: number | null, readonly cause: EndCause | null, readonly note: string | null } | null, readonly job: { readonly id: string, readonly state: JobState, readonly name: string | null, readonly application: string, readonly command: string, readonly arguments: ReadonlyArray<string>, readonly cause: EndCause | null, readonly exitCode: number | null, readonly submittedAt: string, readonly startedAt: string | null, readonly endedAt: string | null, readonly site: { readonly id: string, readonly name: string } | null } | null } };

export type JobUpdatedFullSubscriptionVariables = Exact<{
  filter?: JobFilter | null | undefined;
  after?: string | null | undefined;
}>;


export type JobUpdatedFullSubscription = { readonly jobUpdated: { readonly cursor: string, readonly resyncRequired: boolean, readonly event: { readonly id: string, readonly at: string, readonly kind: EventKind, readonly objectId: string, readonly sequence: number | null, readonly fromState: JobState | null, readonly toState: JobState | null, readonly epoch: number | null, readonly cause: EndCause | null, readonly note: string | null } | null, readonly job: { readonly id: string, readonly state: JobState, readonly name: string | null, readonly application: string, readonly project: string | null, readonly groupName: string | null, readonly arrayIndex: number | null, readonly command: string, readonly arguments: ReadonlyArray<string>, readonly workingDirectory: string | null, readonly tasks: number, readonly cpusPerTask: number, readonly memoryMbPerTask: number, readonly licenses: ReadonlyArray<string>, readonly os: string | null, readonly architecture: string | null, readonly machineConstraint: string | null, readonly image: string | null, readonly estimateS: number, readonly benchmark: number, readonly runTimeLimitS: number | null, readonly warnS: number | null, readonly warnSignal: WarnSignal, readonly killGraceS: number, readonly deadline: string | null, readonly deadlineMissed: boolean, readonly sandboxMb: number, readonly outputMb: number, readonly restartable: boolean, readonly launch: TaskLaunch, readonly onTaskFailure: TaskFailure, readonly retries: number, readonly computationShare: number | null, readonly migratedAt: string | null, readonly mail: ReadonlyArray<MailKind> | null, readonly priority: number | null, readonly boost: number, readonly preemptionClass: number, readonly epoch: number, readonly cause: EndCause | null, readonly message: string | null, readonly exitCode: number | null, readonly submittedAt: string, readonly eligibleAt: string | null, readonly dispatchedAt: string | null, readonly startedAt: string | null, readonly endedAt: string | null, readonly environment: ReadonlyArray<{ readonly name: string, readonly value: string }> | null, readonly resourcesPerTask: ReadonlyArray<{ readonly kind: string, readonly amount: number }>, readonly siteTerms: { readonly partition: string | null, readonly account: string | null, readonly qos: string | null } | null, readonly retry: { readonly maxRetries: number, readonly backoffS: number, readonly factor: number, readonly maxBackoffS: number, readonly rules: ReadonlyArray<{ readonly causes: ReadonlyArray<EndCause> | null, readonly signals: ReadonlyArray<string> | null, readonly action: RetryAction, readonly memoryFactor: number, readonly memoryMaxMb: number | null, readonly exitCodes: ReadonlyArray<{ readonly from: number, readonly to: number }> | null }> } | null, readonly inputs: ReadonlyArray<{ readonly sizeMb: number, readonly output: string | null, readonly dataset: { readonly id: string, readonly name: string } | null, readonly site: { readonly id: string, readonly name: string } | null, readonly from: { readonly id: string } | null }>, readonly originSite: { readonly id: string, readonly name: string } | null, readonly reservation: { readonly id: string, readonly name: string | null } | null, readonly user: { readonly id: string, readonly name: string }, readonly site: { readonly id: string, readonly name: string } | null } | null } };

export type SitesQueryVariables = Exact<{
  first?: number | null | undefined;
  after?: string | null | undefined;
}>;


export type SitesQuery = { readonly sites: { readonly nodes: ReadonlyArray<{ readonly id: string, readonly name: string, readonly state: SiteState, readonly latitude: number | null, readonly longitude: number | null, readonly localPolicy: unknown, readonly maxRunningJobs: number | null, readonly agentSeenAt: string | null, readonly queuedJobs: number, readonly runningJobs: number, readonly cpus: number, readonly cpusUsed: number, readonly createdAt: string, readonly scheduler: { readonly id: string, readonly name: string } | null, readonly reservation: { readonly at: string, readonly job: { readonly id: string } | null, readonly machines: ReadonlyArray<{ readonly tasks: number, readonly machine: { readonly id: string, readonly name: string } }> } | null }>, readonly pageInfo: { readonly hasNextPage: boolean, readonly endCursor: string | null } } };

export type AgentsQueryVariables = Exact<{
  first?: number | null | undefined;
  after?: string | null | undefined;
}>;


export type AgentsQuery = { readonly sites: { readonly nodes: ReadonlyArray<{ readonly name: string, readonly agents: ReadonlyArray<{ readonly id: string, readonly host: string, readonly version: string, readonly protocol: number, readonly simulated: boolean, readonly registeredAt: string, readonly seenAt: string, readonly problem: string | null, readonly machines: ReadonlyArray<{ readonly name: string, readonly silent: boolean }> }> }>, readonly pageInfo: { readonly hasNextPage: boolean, readonly endCursor: string | null } } };

export type MachinesQueryVariables = Exact<{
  site?: string | null | undefined;
  first?: number | null | undefined;
  after?: string | null | undefined;
}>;


export type MachinesQuery = { readonly machines: { readonly nodes: ReadonlyArray<{ readonly id: string, readonly name: string, readonly state: MachineState, readonly reason: string | null, readonly silent: boolean, readonly problem: string | null, readonly cpus: number, readonly cpusUsed: number, readonly memoryMb: number, readonly memoryUsedMb: number, readonly maxTasks: number | null, readonly tasksUsed: number, readonly benchmark: number, readonly os: string, readonly architecture: string, readonly heartbeatAt: string | null, readonly agent: { readonly id: string, readonly host: string } | null, readonly measured: { readonly cpus: number, readonly memoryMb: number, readonly os: string, readonly architecture: string, readonly model: string | null, readonly benchmark: number, readonly warning: string | null, readonly measuredAt: string, readonly gpus: ReadonlyArray<{ readonly name: string, readonly memoryMb: number }> } | null, readonly resources: ReadonlyArray<{ readonly kind: string, readonly amount: number, readonly used: number }>, readonly labels: ReadonlyArray<{ readonly name: string, readonly value: string }>, readonly devices: ReadonlyArray<{ readonly id: string, readonly kind: string, readonly model: string | null, readonly used: number }>, readonly site: { readonly id: string, readonly name: string }, readonly licenses: ReadonlyArray<{ readonly id: string, readonly kind: string }> }>, readonly pageInfo: { readonly hasNextPage: boolean, readonly endCursor: string | null } } };

export type LicensesQueryVariables = Exact<{
  first?: number | null | undefined;
  after?: string | null | undefined;
}>;


export type LicensesQuery = { readonly licenses: { readonly nodes: ReadonlyArray<{ readonly id: string, readonly kind: string, readonly copies: number, readonly inUse: number, readonly site: { readonly id: string, readonly name: string } | null }>, readonly pageInfo: { readonly hasNextPage: boolean, readonly endCursor: string | null } } };

export type RegisterSiteMutationVariables = Exact<{
  input: RegisterSiteInput;
}>;


export type RegisterSiteMutation = { readonly registerSite: { readonly id: string, readonly name: string, readonly state: SiteState, readonly latitude: number | null, readonly longitude: number | null, readonly localPolicy: unknown, readonly maxRunningJobs: number | null, readonly agentSeenAt: string | null, readonly queuedJobs: number, readonly runningJobs: number, readonly cpus: number, readonly cpusUsed: number, readonly createdAt: string, readonly scheduler: { readonly id: string, readonly name: string } | null, readonly reservation: { readonly at: string, readonly job: { readonly id: string } | null, readonly machines: ReadonlyArray<{ readonly tasks: number, readonly machine: { readonly id: string, readonly name: string } }> } | null } };

export type UpdateSiteMutationVariables = Exact<{
  input: UpdateSiteInput;
}>;


export type UpdateSiteMutation = { readonly updateSite: { readonly id: string, readonly name: string, readonly state: SiteState, readonly latitude: number | null, readonly longitude: number | null, readonly localPolicy: unknown, readonly maxRunningJobs: number | null, readonly agentSeenAt: string | null, readonly queuedJobs: number, readonly runningJobs: number, readonly cpus: number, readonly cpusUsed: number, readonly createdAt: string, readonly scheduler: { readonly id: string, readonly name: string } | null, readonly reservation: { readonly at: string, readonly job: { readonly id: string } | null, readonly machines: ReadonlyArray<{ readonly tasks: number, readonly machine: { readonly id: string, readonly name: string } }> } | null } };

export type DrainSiteMutationVariables = Exact<{
  site: string;
}>;


export type DrainSiteMutation = { readonly drainSite: { readonly id: string, readonly name: string, readonly state: SiteState, readonly latitude: number | null, readonly longitude: number | null, readonly localPolicy: unknown, readonly maxRunningJobs: number | null, readonly agentSeenAt: string | null, readonly queuedJobs: number, readonly runningJobs: number, readonly cpus: number, readonly cpusUsed: number, readonly createdAt: string, readonly scheduler: { readonly id: string, readonly name: string } | null, readonly reservation: { readonly at: string, readonly job: { readonly id: string } | null, readonly machines: ReadonlyArray<{ readonly tasks: number, readonly machine: { readonly id: string, readonly name: string } }> } | null } };

export type RemoveSiteMutationVariables = Exact<{
  site: string;
}>;


export type RemoveSiteMutation = { readonly removeSite: { readonly id: string, readonly name: string, readonly state: SiteState, readonly latitude: number | null, readonly longitude: number | null, readonly localPolicy: unknown, readonly maxRunningJobs: number | null, readonly agentSeenAt: string | null, readonly queuedJobs: number, readonly runningJobs: number, readonly cpus: number, readonly cpusUsed: number, readonly createdAt: string, readonly scheduler: { readonly id: string, readonly name: string } | null, readonly reservation: { readonly at: string, readonly job: { readonly id: string } | null, readonly machines: ReadonlyArray<{ readonly tasks: number, readonly machine: { readonly id: string, readonly name: string } }> } | null } };

export type RegisterMachinesMutationVariables = Exact<{
  inputs: ReadonlyArray<RegisterMachineInput>;
}>;


export type RegisterMachinesMutation = { readonly registerMachines: ReadonlyArray<{ readonly id: string, readonly name: string, readonly state: MachineState, readonly reason: string | null, readonly silent: boolean, readonly problem: string | null, readonly cpus: number, readonly cpusUsed: number, readonly memoryMb: number, readonly memoryUsedMb: number, readonly maxTasks: number | null, readonly tasksUsed: number, readonly benchmark: number, readonly os: string, readonly architecture: string, readonly heartbeatAt: string | null, readonly agent: { readonly id: string, readonly host: string } | null, readonly measured: { readonly cpus: number, readonly memoryMb: number, readonly os: string, readonly architecture: string, readonly model: string | null, readonly benchmark: number, readonly warning: string | null, readonly measuredAt: string, readonly gpus: ReadonlyArray<{ readonly name: string, readonly memoryMb: number }> } | null, readonly resources: ReadonlyArray<{ readonly kind: string, readonly amount: number, readonly used: number }>, readonly labels: ReadonlyArray<{ readonly name: string, readonly value: string }>, readonly devices: ReadonlyArray<{ readonly id: string, readonly kind: string, readonly model: string | null, readonly used: number }>, readonly site: { readonly id: string, readonly name: string }, readonly licenses: ReadonlyArray<{ readonly id: string, readonly kind: string }> }> };

export type UpdateMachineMutationVariables = Exact<{
  input: UpdateMachineInput;
}>;


export type UpdateMachineMutation = { readonly updateMachine: { readonly id: string, readonly name: string, readonly state: MachineState, readonly reason: string | null, readonly silent: boolean, readonly problem: string | null, readonly cpus: number, readonly cpusUsed: number, readonly memoryMb: number, readonly memoryUsedMb: number, readonly maxTasks: number | null, readonly tasksUsed: number, readonly benchmark: number, readonly os: string, readonly architecture: string, readonly heartbeatAt: string | null, readonly agent: { readonly id: string, readonly host: string } | null, readonly measured: { readonly cpus: number, readonly memoryMb: number, readonly os: string, readonly architecture: string, readonly model: string | null, readonly benchmark: number, readonly warning: string | null, readonly measuredAt: string, readonly gpus: ReadonlyArray<{ readonly name: string, readonly memoryMb: number }> } | null, readonly resources: ReadonlyArray<{ readonly kind: string, readonly amount: number, readonly used: number }>, readonly labels: ReadonlyArray<{ readonly name: string, readonly value: string }>, readonly devices: ReadonlyArray<{ readonly id: string, readonly kind: string, readonly model: string | null, readonly used: number }>, readonly site: { readonly id: string, readonly name: string }, readonly licenses: ReadonlyArray<{ readonly id: string, readonly kind: string }> } };

export type DrainMachineMutationVariables = Exact<{
  machine: string;
}>;


export type DrainMachineMutation = { readonly drainMachine: { readonly id: string, readonly name: string, readonly state: MachineState, readonly reason: string | null, readonly silent: boolean, readonly problem: string | null, readonly cpus: number, readonly cpusUsed: number, readonly memoryMb: number, readonly memoryUsedMb: number, readonly maxTasks: number | null, readonly tasksUsed: number, readonly benchmark: number, readonly os: string, readonly architecture: string, readonly heartbeatAt: string | null, readonly agent: { readonly id: string, readonly host: string } | null, readonly measured: { readonly cpus: number, readonly memoryMb: number, readonly os: string, readonly architecture: string, readonly model: string | null, readonly benchmark: number, readonly warning: string | null, readonly measuredAt: string, readonly gpus: ReadonlyArray<{ readonly name: string, readonly memoryMb: number }> } | null, readonly resources: ReadonlyArray<{ readonly kind: string, readonly amount: number, readonly used: number }>, readonly labels: ReadonlyArray<{ readonly name: string, readonly value: string }>, readonly devices: ReadonlyArray<{ readonly id: string, readonly kind: string, readonly model: string | null, readonly used: number }>, readonly site: { readonly id: string, readonly name: string }, readonly licenses: ReadonlyArray<{ readonly id: string, readonly kind: string }> } };

export type RemoveMachineMutationVariables = Exact<{
  machine: string;
}>;


export type RemoveMachineMutation = { readonly removeMachine: { readonly id: string, readonly name: string, readonly state: MachineState, readonly reason: string | null, readonly silent: boolean, readonly problem: string | null, readonly cpus: number, readonly cpusUsed: number, readonly memoryMb: number, readonly memoryUsedMb: number, readonly maxTasks: number | null, readonly tasksUsed: number, readonly benchmark: number, readonly os: string, readonly architecture: string, readonly heartbeatAt: string | null, readonly agent: { readonly id: string, readonly host: string } | null, readonly measured: { readonly cpus: number, readonly memoryMb: number, readonly os: string, readonly architecture: string, readonly model: string | null, readonly benchmark: number, readonly warning: string | null, readonly measuredAt: string, readonly gpus: ReadonlyArray<{ readonly name: string, readonly memoryMb: number }> } | null, readonly resources: ReadonlyArray<{ readonly kind: string, readonly amount: number, readonly used: number }>, readonly labels: ReadonlyArray<{ readonly name: string, readonly value: string }>, readonly devices: ReadonlyArray<{ readonly id: string, readonly kind: string, readonly model: string | null, readonly used: number }>, readonly site: { readonly id: string, readonly name: string }, readonly licenses: ReadonlyArray<{ readonly id: string, readonly kind: string }> } };

export type RegisterLicenseMutationVariables = Exact<{
  input: RegisterLicenseInput;
}>;


export type RegisterLicenseMutation = { readonly registerLicense: { readonly id: string, readonly kind: string, readonly copies: number, readonly inUse: number, readonly site: { readonly id: string, readonly name: string } | null } };

export type UpdateLicenseMutationVariables = Exact<{
  input: UpdateLicenseInput;
}>;


export type UpdateLicenseMutation = { readonly updateLicense: { readonly id: string, readonly kind: string, readonly copies: number, readonly inUse: number, readonly site: { readonly id: string, readonly name: string } | null } };

export type RemoveLicenseMutationVariables = Exact<{
  license: string;
}>;


export type RemoveLicenseMutation = { readonly removeLicense: { readonly id: string, readonly kind: string, readonly copies: number, readonly inUse: number, readonly site: { readonly id: string, readonly name: string } | null } };

export type SchedulerFieldsFragment = { readonly id: string, readonly name: string, readonly parent: { readonly id: string, readonly name: string } | null };

export type ChannelFieldsFragment = { readonly port: number, readonly power: number, readonly classes: ReadonlyArray<{ readonly os: string | null, readonly architecture: string | null, readonly licenses: ReadonlyArray<string>, readonly tasks: number, readonly cpusPerTask: number, readonly memoryMbPerTask: number, readonly jobs: number }>, readonly branches: ReadonlyArray<{ readonly port: number, readonly power: number, readonly jobs: number, readonly scheduler: { readonly id: string, readonly name: string } | null, readonly site: { readonly id: string, readonly name: string } | null }> };

export type TreeQueryVariables = Exact<{ [key: string]: never; }>;


export type TreeQuery = { readonly tree: { readonly holds: number, readonly waiting: number, readonly channels: ReadonlyArray<{ readonly power: number }>, readonly children: ReadonlyArray<{ readonly id: string }>, readonly sites: ReadonlyArray<{ readonly id: string, readonly name: string, readonly state: SiteState, readonly metaQueuedJobs: number, readonly queuedJobs: number, readonly runningJobs: number }> }, readonly schedulers: ReadonlyArray<{ readonly holds: number, readonly waiting: number, readonly id: string, readonly name: string, readonly channels: ReadonlyArray<{ readonly power: number }>, readonly children: ReadonlyArray<{ readonly id: string }>, readonly sites: ReadonlyArray<{ readonly id: string, readonly name: string, readonly state: SiteState, readonly metaQueuedJobs: number, readonly queuedJobs: number, readonly runningJobs: number }>, readonly parent: { readonly id: string, readonly name: string } | null }> };

export type SchedulersQueryVariables = Exact<{ [key: string]: never; }>;


export type SchedulersQuery = { readonly schedulers: ReadonlyArray<{ readonly id: string, readonly name: string, readonly parent: { readonly id: string, readonly name: string } | null }> };

export type TreeChannelsQueryVariables = Exact<{
  id: string;
  root: boolean;
}>;


export type TreeChannelsQuery = { readonly tree?: { readonly channels: ReadonlyArray<{ readonly port: number, readonly power: number, readonly classes: ReadonlyArray<{ readonly os: string | null, readonly architecture: string | null, readonly licenses: ReadonlyArray<string>, readonly tasks: number, readonly cpusPerTask: number, readonly memoryMbPerTask: number, readonly jobs: number }>, readonly branches: ReadonlyArray<{ readonly port: number, readonly power: number, readonly jobs: number, readonly scheduler: { readonly id: string, readonly name: string } | null, readonly site: { readonly id: string, readonly name: string } | null }> }> }, readonly scheduler?: { readonly channels: ReadonlyArray<{ readonly port: number, readonly power: number, readonly classes: ReadonlyArray<{ readonly os: string | null, readonly architecture: string | null, readonly licenses: ReadonlyArray<string>, readonly tasks: number, readonly cpusPerTask: number, readonly memoryMbPerTask: number, readonly jobs: number }>, readonly branches: ReadonlyArray<{ readonly port: number, readonly power: number, readonly jobs: number, readonly scheduler: { readonly id: string, readonly name: string } | null, readonly site: { readonly id: string, readonly name: string } | null }> }> } | null };

export type CreateSchedulerMutationVariables = Exact<{
  input: CreateSchedulerInput;
}>;


export type CreateSchedulerMutation = { readonly createScheduler: { readonly id: string, readonly name: string, readonly parent: { readonly id: string, readonly name: string } | null } };

export type UpdateSchedulerMutationVariables = Exact<{
  input: UpdateSchedulerInput;
}>;


export type UpdateSchedulerMutation = { readonly updateScheduler: { readonly id: string, readonly name: string, readonly parent: { readonly id: string, readonly name: string } | null } };

export type RemoveSchedulerMutationVariables = Exact<{
  scheduler: string;
}>;


export type RemoveSchedulerMutation = { readonly removeScheduler: { readonly id: string, readonly name: string, readonly parent: { readonly id: string, readonly name: string } | null } };

export type DatasetFieldsFragment = { readonly id: string, readonly name: string, readonly sizeMb: number, readonly sha256: string | null, readonly createdAt: string, readonly replicas: ReadonlyArray<{ readonly id: string, readonly name: string }>, readonly locations: ReadonlyArray<{ readonly location: string, readonly site: { readonly id: string, readonly name: string } }> };

export type LinkFieldsFragment = { readonly bandwidthMbPerS: number, readonly rttS: number, readonly loss: number, readonly measuredAt: string, readonly source: LinkSource, readonly from: { readonly id: string, readonly name: string }, readonly to: { readonly id: string, readonly name: string } };

export type DatasetsQueryVariables = Exact<{
  name?: string | null | undefined;
  first?: number | null | undefined;
  after?: string | null | undefined;
}>;


export type DatasetsQuery = { readonly datasets: { readonly nodes: ReadonlyArray<{ readonly id: string, readonly name: string, readonly sizeMb: number, readonly sha256: string | null, readonly createdAt: string, readonly replicas: ReadonlyArray<{ readonly id: string, readonly name: string }>, readonly locations: ReadonlyArray<{ readonly location: string, readonly site: { readonly id: string, readonly name: string } }> }>, readonly pageInfo: { readonly hasNextPage: boolean, readonly endCursor: string | null } } };

export type CreateDatasetMutationVariables = Exact<{
  input: DatasetInput;
}>;


export type CreateDatasetMutation = { readonly createDataset: { readonly id: string, readonly name: string, readonly sizeMb: number, readonly sha256: string | null, readonly createdAt: string, readonly replicas: ReadonlyArray<{ readonly id: string, readonly name: string }>, readonly locations: ReadonlyArray<{ readonly location: string, readonly site: { readonly id: string, readonly name: string } }> } };

export type UpdateDatasetMutationVariables = Exact<{
  input: UpdateDatasetInput;
}>;


export type UpdateDatasetMutation = { readonly updateDataset: { readonly id: string, readonly name: string, readonly sizeMb: number, readonly sha256: string | null, readonly createdAt: string, readonly replicas: ReadonlyArray<{ readonly id: string, readonly name: string }>, readonly locations: ReadonlyArray<{ readonly location: string, readonly site: { readonly id: string, readonly name: string } }> } };

export type RemoveDatasetMutationVariables = Exact<{
  dataset: string;
}>;


export type RemoveDatasetMutation = { readonly removeDataset: { readonly id: string, readonly name: string, readonly sizeMb: number, readonly sha256: string | null, readonly createdAt: string, readonly replicas: ReadonlyArray<{ readonly id: string, readonly name: string }>, readonly locations: ReadonlyArray<{ readonly location: string, readonly site: { readonly id: string, readonly name: string } }> } };

export type SetReplicasMutationVariables = Exact<{
  dataset: string;
  add: ReadonlyArray<string>;
  locations: ReadonlyArray<DatasetLocationInput>;
  remove: ReadonlyArray<string>;
}>;


export type SetReplicasMutation = { readonly setReplicas: { readonly id: string, readonly name: string, readonly sizeMb: number, readonly sha256: string | null, readonly createdAt: string, readonly replicas: ReadonlyArray<{ readonly id: string, readonly name: string }>, readonly locations: ReadonlyArray<{ readonly location: string, readonly site: { readonly id: string, readonly name: string } }> } };

export type ImportDatasetsMutationVariables = Exact<{
  datasets: ReadonlyArray<DatasetInput>;
}>;


export type ImportDatasetsMutation = { readonly importDatasets: { readonly created: number, readonly updated: number, readonly errors: ReadonlyArray<{ readonly index: number, readonly field: string, readonly message: string }> } };

export type LinksQueryVariables = Exact<{
  from?: string | null | undefined;
  to?: string | null | undefined;
  first?: number | null | undefined;
  after?: string | null | undefined;
}>;


export type LinksQuery = { readonly links: { readonly nodes: ReadonlyArray<{ readonly bandwidthMbPerS: number, readonly rttS: number, readonly loss: number, readonly measuredAt: string, readonly source: LinkSource, readonly from: { readonly id: string, readonly name: string }, readonly to: { readonly id: string, readonly name: string } }>, readonly pageInfo: { readonly hasNextPage: boolean, readonly endCursor: string | null } } };

export type LinkHistoryQueryVariables = Exact<{
  from: string;
  to: string;
}>;


export type LinkHistoryQuery = { readonly links: { readonly nodes: ReadonlyArray<{ readonly bandwidthMbPerS: number, readonly rttS: number, readonly loss: number, readonly measuredAt: string, readonly source: LinkSource, readonly history: ReadonlyArray<{ readonly measuredAt: string, readonly bandwidthMbPerS: number, readonly rttS: number, readonly loss: number }>, readonly from: { readonly id: string, readonly name: string }, readonly to: { readonly id: string, readonly name: string } }> } };

export type SetLinksMutationVariables = Exact<{
  links: ReadonlyArray<LinkInput>;
}>;


export type SetLinksMutation = { readonly setLinks: ReadonlyArray<{ readonly bandwidthMbPerS: number, readonly rttS: number, readonly loss: number, readonly measuredAt: string, readonly source: LinkSource, readonly from: { readonly id: string, readonly name: string }, readonly to: { readonly id: string, readonly name: string } }> };

export type RemoveLinkMutationVariables = Exact<{
  from: string;
  to: string;
}>;


export type RemoveLinkMutation = { readonly removeLink: { readonly bandwidthMbPerS: number, readonly rttS: number, readonly loss: number, readonly measuredAt: string, readonly source: LinkSource, readonly from: { readonly id: string, readonly name: string }, readonly to: { readonly id: string, readonly name: string } } };

export type PointFieldsFragment = { readonly cursor: string, readonly application: string, readonly at: string, readonly turnaroundS: number, readonly ioS: number | null, readonly ioMethod: MeasurementMethod | null, readonly runs: number, readonly computation: number | null, readonly dataIntensive: number | null, readonly job: { readonly id: string } | null, readonly site: { readonly id: string, readonly name: string } };

export type RatioQueryVariables = Exact<{
  application: string;
  last: number;
}>;


export type RatioQuery = { readonly jobRatio: { readonly application: string, readonly computation: number, readonly dataIntensive: number, readonly source: JobRatioSource, readonly runs: number, readonly cursor: string, readonly averages: { readonly turnaroundS: number, readonly executionS: number, readonly ioS: number } | null, readonly history: { readonly nodes: ReadonlyArray<{ readonly cursor: string, readonly application: string, readonly at: string, readonly turnaroundS: number, readonly ioS: number | null, readonly ioMethod: MeasurementMethod | null, readonly runs: number, readonly computation: number | null, readonly dataIntensive: number | null, readonly job: { readonly id: string } | null, readonly site: { readonly id: string, readonly name: string } }> } } };

export type RatioUpdatedSubscriptionVariables = Exact<{
  application?: string | null | undefined;
  after?: string | null | undefined;
}>;


export type RatioUpdatedSubscription = { readonly jobRatioUpdated: { readonly cursor: string, readonly resyncRequired: boolean, readonly point: { readonly cursor: string, readonly application: string, readonly at: string, readonly turnaroundS: number, readonly ioS: number | null, readonly ioMethod: MeasurementMethod | null, readonly runs: number, readonly computation: number | null, readonly dataIntensive: number | null, readonly job: { readonly id: string } | null, readonly site: { readonly id: string, readonly name: string } } | null } };

export type GroupFieldsFragment = { readonly id: string, readonly name: string | null, readonly size: number, readonly state: JobGroupState, readonly progress: number, readonly submittedAt: string, readonly counts: ReadonlyArray<{ readonly state: JobState, readonly jobs: number }>, readonly user: { readonly id: string, readonly name: string } };

export type SubmitGroupMutationVariables = Exact<{
  input: SubmitJobGroupInput;
}>;


export type SubmitGroupMutation = { readonly submitJobGroup: { readonly repeated: boolean, readonly jobGroup: { readonly id: string, readonly name: string | null, readonly size: number, readonly state: JobGroupState, readonly progress: number, readonly submittedAt: string, readonly counts: ReadonlyArray<{ readonly state: JobState, readonly jobs: number }>, readonly user: { readonly id: string, readonly name: string } } | null, readonly errors: ReadonlyArray<{ readonly index: number, readonly field: string, readonly code: ErrorCode, readonly message: string }> } };

export type GroupsQueryVariables = Exact<{
  first?: number | null | undefined;
  after?: string | null | undefined;
}>;


export type GroupsQuery = { readonly jobGroups: { readonly nodes: ReadonlyArray<{ readonly id: string, readonly name: string | null, readonly size: number, readonly state: JobGroupState, readonly progress: number, readonly submittedAt: string, readonly counts: ReadonlyArray<{ readonly state: JobState, readonly jobs: number }>, readonly user: { readonly id: string, readonly name: string } }>, readonly pageInfo: { readonly hasNextPage: boolean, readonly endCursor: string | null } } };

export type GroupQueryVariables = Exact<{
  id: string;
}>;


export type GroupQuery = { readonly jobGroup: { readonly template: unknown, readonly id: string, readonly name: string | null, readonly size: number, readonly state: JobGroupState, readonly progress: number, readonly submittedAt: string, readonly counts: ReadonlyArray<{ readonly state: JobState, readonly jobs: number }>, readonly user: { readonly id: string, readonly name: string } } | null };

export type JobGraphQueryVariables = Exact<{
  filter: JobFilter;
  most: number;
}>;


export type JobGraphQuery = { readonly jobGraph: { readonly isWhole: boolean, readonly criticalPath: ReadonlyArray<number>, readonly expectedEnd: string | null, readonly nodes: ReadonlyArray<{ readonly id: string, readonly name: string | null, readonly arrayIndex: number | null, readonly state: JobState, readonly level: number, readonly startedAt: string | null, readonly endedAt: string | null, readonly expectedStart: string | null, readonly expectedEnd: string | null, readonly needs: ReadonlyArray<number>, readonly conditions: ReadonlyArray<NeedCondition> }> } };

export type CancelGroupMutationVariables = Exact<{
  jobGroup: string;
}>;


export type CancelGroupMutation = { readonly cancelJobGroup: { readonly cancelled: number, readonly jobGroup: { readonly id: string, readonly name: string | null, readonly size: number, readonly state: JobGroupState, readonly progress: number, readonly submittedAt: string, readonly counts: ReadonlyArray<{ readonly state: JobState, readonly jobs: number }>, readonly user: { readonly id: string, readonly name: string } } } };

export type PeersQueryVariables = Exact<{ [key: string]: never; }>;


export type PeersQuery = { readonly peers: ReadonlyArray<{ readonly alive: boolean, readonly lastHeardAt: string | null, readonly queued: number, readonly metaQueued: number, readonly arrivalRate: number, readonly serviceRate: number, readonly congested: boolean, readonly powerTotal: number, readonly site: { readonly id: string, readonly name: string } }> };

export type StandingsQueryVariables = Exact<{ [key: string]: never; }>;


export type StandingsQuery = { readonly userStandings: ReadonlyArray<{ readonly quotaShare: number, readonly queuedJobs: number, readonly user: { readonly id: string, readonly name: string }, readonly site: { readonly id: string, readonly name: string } | null, readonly groups: ReadonlyArray<{ readonly processors: number, readonly jobs: number, readonly threshold: number, readonly priority: number, readonly queue: number }> }> };

export type UsersQueryVariables = Exact<{
  first?: number | null | undefined;
  after?: string | null | undefined;
}>;


export type UsersQuery = { readonly users: { readonly nodes: ReadonlyArray<{ readonly id: string, readonly name: string, readonly class: UserClass, readonly role: UserRole, readonly quotaShare: number, readonly active: boolean, readonly createdAt: string, readonly submissionQuota: { readonly limit: number, readonly periodS: number, readonly used: number } | null }>, readonly pageInfo: { readonly hasNextPage: boolean, readonly endCursor: string | null } } };

export type RegisterUserMutationVariables = Exact<{
  input: RegisterUserInput;
}>;


export type RegisterUserMutation = { readonly registerUser: { readonly id: string, readonly name: string, readonly class: UserClass, readonly role: UserRole, readonly quotaShare: number, readonly active: boolean, readonly createdAt: string, readonly submissionQuota: { readonly limit: number, readonly periodS: number, readonly used: number } | null } };

export type UpdateUserMutationVariables = Exact<{
  input: UpdateUserInput;
}>;


export type UpdateUserMutation = { readonly updateUser: { readonly id: string, readonly name: string, readonly class: UserClass, readonly role: UserRole, readonly quotaShare: number, readonly active: boolean, readonly createdAt: string, readonly submissionQuota: { readonly limit: number, readonly periodS: number, readonly used: number } | null } };

export type SetQuotaMutationVariables = Exact<{
  input: SetQuotaInput;
}>;


export type SetQuotaMutation = { readonly setQuota: { readonly id: string, readonly name: string, readonly class: UserClass, readonly role: UserRole, readonly quotaShare: number, readonly active: boolean, readonly createdAt: string, readonly submissionQuota: { readonly limit: number, readonly periodS: number, readonly used: number } | null } };

export type ViewerQueryVariables = Exact<{ [key: string]: never; }>;


export type ViewerQuery = { readonly viewer: { readonly id: string, readonly name: string, readonly class: UserClass, readonly role: UserRole, readonly quotaShare: number, readonly active: boolean, readonly createdAt: string, readonly limits: ReadonlyArray<{ readonly name: UserLimitName, readonly used: number, readonly allowed: number }> | null, readonly submissionQuota: { readonly limit: number, readonly periodS: number, readonly used: number } | null } };

export type UserKeysOfAllQueryVariables = Exact<{
  first?: number | null | undefined;
  after?: string | null | undefined;
}>;


export type UserKeysOfAllQuery = { readonly users: { readonly nodes: ReadonlyArray<{ readonly apiKeys: ReadonlyArray<{ readonly id: string, readonly name: string }> }>, readonly pageInfo: { readonly hasNextPage: boolean, readonly endCursor: string | null } } };

export type RotateKeyMutationVariables = Exact<{
  apiKey: string;
  name: string;
}>;


export type RotateKeyMutation = { readonly rotateApiKey: { readonly secret: string, readonly apiKey: { readonly id: string, readonly name: string, readonly prefix: string, readonly createdAt: string, readonly expiresAt: string | null, readonly revokedAt: string | null, readonly lastUsedAt: string | null, readonly site: { readonly id: string, readonly name: string } | null } } };

export type AuditQueryVariables = Exact<{
  first?: number | null | undefined;
  after?: string | null | undefined;
}>;


export type AuditQuery = { readonly audit: { readonly nodes: ReadonlyArray<{ readonly at: string, readonly action: string, readonly target: string, readonly targetName: string | null, readonly reason: string | null, readonly before: unknown, readonly after: unknown, readonly user: { readonly id: string, readonly name: string } | null }>, readonly pageInfo: { readonly hasNextPage: boolean, readonly endCursor: string | null } } };

export type UsageQueryVariables = Exact<{
  by: UsageBy;
  from: string;
  to?: string | null | undefined;
  first?: number | null | undefined;
}>;


export type UsageQuery = { readonly usage: ReadonlyArray<{ readonly application: string | null, readonly runs: number, readonly cpuS: number, readonly endedJobs: number, readonly failedJobs: number, readonly meanWaitS: number | null, readonly user: { readonly id: string, readonly name: string } | null, readonly site: { readonly id: string, readonly name: string } | null }> };

export type OwnKeysQueryVariables = Exact<{ [key: string]: never; }>;


export type OwnKeysQuery = { readonly viewer: { readonly id: string, readonly name: string, readonly apiKeys: ReadonlyArray<{ readonly id: string, readonly name: string, readonly prefix: string, readonly createdAt: string, readonly expiresAt: string | null, readonly revokedAt: string | null, readonly lastUsedAt: string | null, readonly site: { readonly id: string, readonly name: string } | null }> } };

export type UserKeysQueryVariables = Exact<{
  id: string;
}>;


export type UserKeysQuery = { readonly node:
    | { readonly id: string, readonly name: string, readonly apiKeys: ReadonlyArray<{ readonly id: string, readonly name: string, readonly prefix: string, readonly createdAt: string, readonly expiresAt: string | null, readonly revokedAt: string | null, readonly lastUsedAt: string | null, readonly site: { readonly id: string, readonly name: string } | null }> }
    | Record<PropertyKey, never>
   | null };

export type CreateKeyMutationVariables = Exact<{
  input: CreateApiKeyInput;
}>;


export type CreateKeyMutation = { readonly createApiKey: { readonly secret: string, readonly apiKey: { readonly id: string, readonly name: string, readonly prefix: string, readonly createdAt: string, readonly expiresAt: string | null, readonly revokedAt: string | null, readonly lastUsedAt: string | null, readonly site: { readonly id: string, readonly name: string } | null } } };

export type MailFieldsFragment = { readonly id: string, readonly name: string, readonly mail: { readonly address: string | null, readonly kinds: ReadonlyArray<MailKind>, readonly unsubscribed: ReadonlyArray<MailKind>, readonly problem: string | null } | null };

export type OwnMailQueryVariables = Exact<{ [key: string]: never; }>;


export type OwnMailQuery = { readonly viewer: { readonly id: string, readonly name: string, readonly mail: { readonly address: string | null, readonly kinds: ReadonlyArray<MailKind>, readonly unsubscribed: ReadonlyArray<MailKind>, readonly problem: string | null } | null } };

export type UserMailQueryVariables = Exact<{
  id: string;
}>;


export type UserMailQuery = { readonly node:
    | { readonly id: string, readonly name: string, readonly mail: { readonly address: string | null, readonly kinds: ReadonlyArray<MailKind>, readonly unsubscribed: ReadonlyArray<MailKind>, readonly problem: string | null } | null }
    | Record<PropertyKey, never>
   | null };

export type SetMailMutationVariables = Exact<{
  kinds: ReadonlyArray<MailKind>;
}>;


export type SetMailMutation = { readonly setMail: { readonly id: string, readonly name: string, readonly mail: { readonly address: string | null, readonly kinds: ReadonlyArray<MailKind>, readonly unsubscribed: ReadonlyArray<MailKind>, readonly problem: string | null } | null } };

export type SetMailAddressMutationVariables = Exact<{
  user: string;
  address?: string | null | undefined;
}>;


export type SetMailAddressMutation = { readonly setMailAddress: { readonly id: string, readonly name: string, readonly mail: { readonly address: string | null, readonly kinds: ReadonlyArray<MailKind>, readonly unsubscribed: ReadonlyArray<MailKind>, readonly problem: string | null } | null } };

export type WebhooksQueryVariables = Exact<{
  user?: string | null | undefined;
}>;


export type WebhooksQuery = { readonly webhooks: ReadonlyArray<{ readonly id: string, readonly name: string, readonly url: string, readonly filter: unknown, readonly kinds: ReadonlyArray<JobEventKind>, readonly enabled: boolean, readonly disabledReason: string | null, readonly formerUntil: string | null, readonly deliveredAt: string | null, readonly deliveredStatus: number | null, readonly failures: number, readonly failedAt: string | null, readonly failedReason: string | null, readonly nextAttemptAt: string | null, readonly lagS: number, readonly createdAt: string }> };

export type CreateWebhookMutationVariables = Exact<{
  input: CreateWebhookInput;
}>;


export type CreateWebhookMutation = { readonly createWebhook: { readonly secret: string, readonly webhook: { readonly id: string, readonly name: string, readonly url: string, readonly filter: unknown, readonly kinds: ReadonlyArray<JobEventKind>, readonly enabled: boolean, readonly disabledReason: string | null, readonly formerUntil: string | null, readonly deliveredAt: string | null, readonly deliveredStatus: number | null, readonly failures: number, readonly failedAt: string | null, readonly failedReason: string | null, readonly nextAttemptAt: string | null, readonly lagS: number, readonly createdAt: string } } };

export type UpdateWebhookMutationVariables = Exact<{
  input: UpdateWebhookInput;
}>;


export type UpdateWebhookMutation = { readonly updateWebhook: { readonly id: string, readonly name: string, readonly url: string, readonly filter: unknown, readonly kinds: ReadonlyArray<JobEventKind>, readonly enabled: boolean, readonly disabledReason: string | null, readonly formerUntil: string | null, readonly deliveredAt: string | null, readonly deliveredStatus: number | null, readonly failures: number, readonly failedAt: string | null, readonly failedReason: string | null, readonly nextAttemptAt: string | null, readonly lagS: number, readonly createdAt: string } };

export type RotateWebhookMutationVariables = Exact<{
  webhook: string;
  keepFormerS: number;
}>;


export type RotateWebhookMutation = { readonly rotateWebhookSecret: { readonly secret: string, readonly webhook: { readonly id: string, readonly name: string, readonly url: string, readonly filter: unknown, readonly kinds: ReadonlyArray<JobEventKind>, readonly enabled: boolean, readonly disabledReason: string | null, readonly formerUntil: string | null, readonly deliveredAt: string | null, readonly deliveredStatus: number | null, readonly failures: number, readonly failedAt: string | null, readonly failedReason: string | null, readonly nextAttemptAt: string | null, readonly lagS: number, readonly createdAt: string } } };

export type DeleteWebhookMutationVariables = Exact<{
  webhook: string;
}>;


export type DeleteWebhookMutation = { readonly deleteWebhook: { readonly id: string, readonly name: string, readonly url: string, readonly filter: unknown, readonly kinds: ReadonlyArray<JobEventKind>, readonly enabled: boolean, readonly disabledReason: string | null, readonly formerUntil: string | null, readonly deliveredAt: string | null, readonly deliveredStatus: number | null, readonly failures: number, readonly failedAt: string | null, readonly failedReason: string | null, readonly nextAttemptAt: string | null, readonly lagS: number, readonly createdAt: string } };

export type TestWebhookMutationVariables = Exact<{
  webhook: string;
}>;


export type TestWebhookMutation = { readonly testWebhook: { readonly delivered: boolean, readonly status: number | null, readonly reason: string | null, readonly tookMs: number } };

export type RevokeKeyMutationVariables = Exact<{
  apiKey: string;
}>;


export type RevokeKeyMutation = { readonly revokeApiKey: { readonly id: string, readonly name: string, readonly prefix: string, readonly createdAt: string, readonly expiresAt: string | null, readonly revokedAt: string | null, readonly lastUsedAt: string | null, readonly site: { readonly id: string, readonly name: string } | null } };

export type PolicyQueryVariables = Exact<{
  version?: number | null | undefined;
}>;


export type PolicyQuery = { readonly policy: { readonly id: string, readonly version: number, readonly document: unknown, readonly reason: string, readonly revertsTo: number | null, readonly createdAt: string, readonly author: { readonly id: string, readonly name: string } | null } | null };

export type PolicyHistoryQueryVariables = Exact<{
  first?: number | null | undefined;
  after?: string | null | undefined;
}>;


export type PolicyHistoryQuery = { readonly policyHistory: { readonly nodes: ReadonlyArray<{ readonly id: string, readonly version: number, readonly document: unknown, readonly reason: string, readonly revertsTo: number | null, readonly createdAt: string, readonly author: { readonly id: string, readonly name: string } | null }>, readonly pageInfo: { readonly hasNextPage: boolean, readonly endCursor: string | null } } };

export type SetWeightsMutationVariables = Exact<{
  input: SetWeightsInput;
}>;


export type SetWeightsMutation = { readonly setWeights: { readonly id: string, readonly version: number, readonly document: unknown, readonly reason: string, readonly revertsTo: number | null, readonly createdAt: string, readonly author: { readonly id: string, readonly name: string } | null } };

export type UpdatePolicyMutationVariables = Exact<{
  input: UpdatePolicyInput;
}>;


export type UpdatePolicyMutation = { readonly updatePolicy: { readonly id: string, readonly version: number, readonly document: unknown, readonly reason: string, readonly revertsTo: number | null, readonly createdAt: string, readonly author: { readonly id: string, readonly name: string } | null } };

export type RevertPolicyMutationVariables = Exact<{
  version: number;
  expectedVersion: number;
  reason: string;
}>;


export type RevertPolicyMutation = { readonly revertPolicy: { readonly id: string, readonly version: number, readonly document: unknown, readonly reason: string, readonly revertsTo: number | null, readonly createdAt: string, readonly author: { readonly id: string, readonly name: string } | null } };

export type SimulateMutationVariables = Exact<{
  input: SimulateInput;
}>;


export type SimulateMutation = { readonly simulate: { readonly id: string, readonly state: SimulationState, readonly progress: number, readonly createdAt: string, readonly endedAt: string | null, readonly policyVersion: number, readonly from: string | null, readonly to: string | null, readonly reason: string | null, readonly message: string | null, readonly user: { readonly id: string, readonly name: string }, readonly result: { readonly jobs: number, readonly leftOut: number, readonly happened: { readonly jobs: number, readonly waitMeanS: number, readonly simulatedWaitMeanS: number, readonly acceptedS: number } | null, readonly all: { readonly baseline: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly candidate: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly difference: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number } }, readonly userClasses: ReadonlyArray<{ readonly userClass: UserClass, readonly comparison: { readonly baseline: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly candidate: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly difference: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number } } }>, readonly sites: ReadonlyArray<{ readonly name: string, readonly comparison: { readonly baseline: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly candidate: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly difference: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number } } }>, readonly history: { readonly from: string | null, readonly lengthS: number, readonly binS: number, readonly baseline: ReadonlyArray<{ readonly atS: number, readonly queuedJobs: number, readonly queuedCpus: number, readonly utilization: number }>, readonly candidate: ReadonlyArray<{ readonly atS: number, readonly queuedJobs: number, readonly queuedCpus: number, readonly utilization: number }> } | null } | null } };

export type SimulationQueryVariables = Exact<{
  id: string;
}>;


export type SimulationQuery = { readonly simulation: { readonly id: string, readonly state: SimulationState, readonly progress: number, readonly createdAt: string, readonly endedAt: string | null, readonly policyVersion: number, readonly from: string | null, readonly to: string | null, readonly reason: string | null, readonly message: string | null, readonly user: { readonly id: string, readonly name: string }, readonly result: { readonly jobs: number, readonly leftOut: number, readonly happened: { readonly jobs: number, readonly waitMeanS: number, readonly simulatedWaitMeanS: number, readonly acceptedS: number } | null, readonly all: { readonly baseline: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly candidate: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly difference: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number } }, readonly userClasses: ReadonlyArray<{ readonly userClass: UserClass, readonly comparison: { readonly baseline: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly candidate: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly difference: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number } } }>, readonly sites: ReadonlyArray<{ readonly name: string, readonly comparison: { readonly baseline: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly candidate: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly difference: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number } } }>, readonly history: { readonly from: string | null, readonly lengthS: number, readonly binS: number, readonly baseline: ReadonlyArray<{ readonly atS: number, readonly queuedJobs: number, readonly queuedCpus: number, readonly utilization: number }>, readonly candidate: ReadonlyArray<{ readonly atS: number, readonly queuedJobs: number, readonly queuedCpus: number, readonly utilization: number }> } | null } | null } | null };

export type SimulationUpdatedSubscriptionVariables = Exact<{
  simulation?: string | null | undefined;
  after?: string | null | undefined;
}>;


export type SimulationUpdatedSubscription = { readonly simulationUpdated: { readonly cursor: string, readonly resyncRequired: boolean, readonly simulation: { readonly id: string, readonly state: SimulationState, readonly progress: number, readonly createdAt: string, readonly endedAt: string | null, readonly policyVersion: number, readonly from: string | null, readonly to: string | null, readonly reason: string | null, readonly message: string | null, readonly user: { readonly id: string, readonly name: string }, readonly result: { readonly jobs: number, readonly leftOut: number, readonly happened: { readonly jobs: number, readonly waitMeanS: number, readonly simulatedWaitMeanS: number, readonly acceptedS: number } | null, readonly all: { readonly baseline: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly candidate: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly difference: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number } }, readonly userClasses: ReadonlyArray<{ readonly userClass: UserClass, readonly comparison: { readonly baseline: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly candidate: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly difference: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number } } }>, readonly sites: ReadonlyArray<{ readonly name: string, readonly comparison: { readonly baseline: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly candidate: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number }, readonly difference: { readonly ended: number, readonly neverStarted: number, readonly waitMeanS: number, readonly waitP95S: number, readonly slowdownMean: number, readonly slowdownP95: number, readonly deadlineMisses: number, readonly utilization: number } } }>, readonly history: { readonly from: string | null, readonly lengthS: number, readonly binS: number, readonly baseline: ReadonlyArray<{ readonly atS: number, readonly queuedJobs: number, readonly queuedCpus: number, readonly utilization: number }>, readonly candidate: ReadonlyArray<{ readonly atS: number, readonly queuedJobs: number, readonly queuedCpus: number, readonly utilization: number }> } | null } | null } | null } };

export type PeerFieldsFragment = { readonly name: string, readonly url: string | null, readonly isolated: boolean, readonly forward: Forwarding, readonly neededAfterS: number, readonly hops: number, readonly lostAfterS: number, readonly foreignMax: number, readonly foreignBoost: number, readonly seenAt: string | null, readonly reachedAt: string | null, readonly failure: string | null, readonly foreignJobs: number, readonly offeredJobs: number, readonly claimedJobs: number, readonly site: { readonly id: string }, readonly user: { readonly name: string }, readonly users: ReadonlyArray<{ readonly name: string, readonly user: { readonly name: string } }> };

export type FederationPeersQueryVariables = Exact<{ [key: string]: never; }>;


export type FederationPeersQuery = { readonly federationPeers: ReadonlyArray<{ readonly name: string, readonly url: string | null, readonly isolated: boolean, readonly forward: Forwarding, readonly neededAfterS: number, readonly hops: number, readonly lostAfterS: number, readonly foreignMax: number, readonly foreignBoost: number, readonly seenAt: string | null, readonly reachedAt: string | null, readonly failure: string | null, readonly foreignJobs: number, readonly offeredJobs: number, readonly claimedJobs: number, readonly site: { readonly id: string }, readonly user: { readonly name: string }, readonly users: ReadonlyArray<{ readonly name: string, readonly user: { readonly name: string } }> }> };

export type FederateMutationVariables = Exact<{
  input: FederationPeerInput;
}>;


export type FederateMutation = { readonly federate: { readonly secret: string | null, readonly peer: { readonly name: string, readonly url: string | null, readonly isolated: boolean, readonly forward: Forwarding, readonly neededAfterS: number, readonly hops: number, readonly lostAfterS: number, readonly foreignMax: number, readonly foreignBoost: number, readonly seenAt: string | null, readonly reachedAt: string | null, readonly failure: string | null, readonly foreignJobs: number, readonly offeredJobs: number, readonly claimedJobs: number, readonly site: { readonly id: string }, readonly user: { readonly name: string }, readonly users: ReadonlyArray<{ readonly name: string, readonly user: { readonly name: string } }> } } };

export type IsolatePeerMutationVariables = Exact<{
  peer: string;
}>;


export type IsolatePeerMutation = { readonly isolatePeer: { readonly name: string, readonly url: string | null, readonly isolated: boolean, readonly forward: Forwarding, readonly neededAfterS: number, readonly hops: number, readonly lostAfterS: number, readonly foreignMax: number, readonly foreignBoost: number, readonly seenAt: string | null, readonly reachedAt: string | null, readonly failure: string | null, readonly foreignJobs: number, readonly offeredJobs: number, readonly claimedJobs: number, readonly site: { readonly id: string }, readonly user: { readonly name: string }, readonly users: ReadonlyArray<{ readonly name: string, readonly user: { readonly name: string } }> } };

export type RejoinPeerMutationVariables = Exact<{
  peer: string;
}>;


export type RejoinPeerMutation = { readonly rejoinPeer: { readonly name: string, readonly url: string | null, readonly isolated: boolean, readonly forward: Forwarding, readonly neededAfterS: number, readonly hops: number, readonly lostAfterS: number, readonly foreignMax: number, readonly foreignBoost: number, readonly seenAt: string | null, readonly reachedAt: string | null, readonly failure: string | null, readonly foreignJobs: number, readonly offeredJobs: number, readonly claimedJobs: number, readonly site: { readonly id: string }, readonly user: { readonly name: string }, readonly users: ReadonlyArray<{ readonly name: string, readonly user: { readonly name: string } }> } };

export type RemovePeerMutationVariables = Exact<{
  peer: string;
}>;


export type RemovePeerMutation = { readonly removePeer: { readonly name: string, readonly url: string | null, readonly isolated: boolean, readonly forward: Forwarding, readonly neededAfterS: number, readonly hops: number, readonly lostAfterS: number, readonly foreignMax: number, readonly foreignBoost: number, readonly seenAt: string | null, readonly reachedAt: string | null, readonly failure: string | null, readonly foreignJobs: number, readonly offeredJobs: number, readonly claimedJobs: number, readonly site: { readonly id: string }, readonly user: { readonly name: string }, readonly users: ReadonlyArray<{ readonly name: string, readonly user: { readonly name: string } }> } };

export type MeasuredDevicesQueryVariables = Exact<{
  machine: string;
}>;


export type MeasuredDevicesQuery = { readonly node:
    | { readonly measured: { readonly devices: ReadonlyArray<{ readonly id: string, readonly kind: string, readonly model: string | null, readonly memoryMb: number, readonly shares: number, readonly link: string | null }> } | null }
    | Record<PropertyKey, never>
   | null };

export type HoldFieldsFragment = { readonly id: string, readonly kind: HoldKind, readonly name: string | null, readonly reason: string | null, readonly onConflict: HoldConflict, readonly wholeSite: boolean, readonly createdAt: string, readonly endedAt: string | null, readonly site: { readonly id: string, readonly name: string }, readonly user: { readonly id: string, readonly name: string } | null, readonly machines: ReadonlyArray<{ readonly whole: boolean, readonly cpus: number | null, readonly memoryMb: number | null, readonly machine: { readonly id: string, readonly name: string }, readonly resources: ReadonlyArray<{ readonly kind: string, readonly amount: number }> }>, readonly times: ReadonlyArray<{ readonly from: string, readonly to: string | null }> };

export type HoldsQueryVariables = Exact<{
  site?: string | null | undefined;
  ended: boolean;
  first?: number | null | undefined;
  after?: string | null | undefined;
}>;


export type HoldsQuery = { readonly holds: { readonly nodes: ReadonlyArray<{ readonly id: string, readonly kind: HoldKind, readonly name: string | null, readonly reason: string | null, readonly onConflict: HoldConflict, readonly wholeSite: boolean, readonly createdAt: string, readonly endedAt: string | null, readonly site: { readonly id: string, readonly name: string }, readonly user: { readonly id: string, readonly name: string } | null, readonly machines: ReadonlyArray<{ readonly whole: boolean, readonly cpus: number | null, readonly memoryMb: number | null, readonly machine: { readonly id: string, readonly name: string }, readonly resources: ReadonlyArray<{ readonly kind: string, readonly amount: number }> }>, readonly times: ReadonlyArray<{ readonly from: string, readonly to: string | null }> }>, readonly pageInfo: { readonly hasNextPage: boolean, readonly endCursor: string | null } } };

export type ReserveMutationVariables = Exact<{
  input: ReserveInput;
  dryRun: boolean;
}>;


export type ReserveMutation = { readonly reserve: { readonly runsInTheWay: number, readonly hold: { readonly id: string, readonly kind: HoldKind, readonly name: string | null, readonly reason: string | null, readonly onConflict: HoldConflict, readonly wholeSite: boolean, readonly createdAt: string, readonly endedAt: string | null, readonly site: { readonly id: string, readonly name: string }, readonly user: { readonly id: string, readonly name: string } | null, readonly machines: ReadonlyArray<{ readonly whole: boolean, readonly cpus: number | null, readonly memoryMb: number | null, readonly machine: { readonly id: string, readonly name: string }, readonly resources: ReadonlyArray<{ readonly kind: string, readonly amount: number }> }>, readonly times: ReadonlyArray<{ readonly from: string, readonly to: string | null }> } | null, readonly machines: ReadonlyArray<{ readonly whole: boolean, readonly cpus: number | null, readonly memoryMb: number | null, readonly machine: { readonly name: string }, readonly resources: ReadonlyArray<{ readonly kind: string, readonly amount: number }> }>, readonly holds: ReadonlyArray<{ readonly id: string, readonly name: string | null, readonly kind: HoldKind }>, readonly jobs: ReadonlyArray<{ readonly id: string }>, readonly moved: ReadonlyArray<{ readonly before: string, readonly after: string | null, readonly job: { readonly id: string } | null }> } };

export type CancelHoldMutationVariables = Exact<{
  hold: string;
}>;


export type CancelHoldMutation = { readonly cancelHold: { readonly id: string, readonly kind: HoldKind, readonly name: string | null, readonly reason: string | null, readonly onConflict: HoldConflict, readonly wholeSite: boolean, readonly createdAt: string, readonly endedAt: string | null, readonly site: { readonly id: string, readonly name: string }, readonly user: { readonly id: string, readonly name: string } | null, readonly machines: ReadonlyArray<{ readonly whole: boolean, readonly cpus: number | null, readonly memoryMb: number | null, readonly machine: { readonly id: string, readonly name: string }, readonly resources: ReadonlyArray<{ readonly kind: string, readonly amount: number }> }>, readonly times: ReadonlyArray<{ readonly from: string, readonly to: string | null }> } };

export type SessionFieldsFragment = { readonly id: string, readonly current: boolean, readonly address: string, readonly agent: string, readonly createdAt: string, readonly lastUsedAt: string, readonly expiresAt: string };

export type InviteUserMutationVariables = Exact<{
  input: InviteUserInput;
}>;


export type InviteUserMutation = { readonly inviteUser: { readonly invitation: string, readonly expiresAt: string, readonly user: { readonly id: string, readonly name: string, readonly class: UserClass, readonly role: UserRole, readonly quotaShare: number, readonly active: boolean, readonly createdAt: string, readonly submissionQuota: { readonly limit: number, readonly periodS: number, readonly used: number } | null } } };

export type OwnSessionsQueryVariables = Exact<{ [key: string]: never; }>;


export type OwnSessionsQuery = { readonly viewer: { readonly id: string, readonly name: string, readonly sessions: ReadonlyArray<{ readonly id: string, readonly current: boolean, readonly address: string, readonly agent: string, readonly createdAt: string, readonly lastUsedAt: string, readonly expiresAt: string }> | null } };

export type UserSessionsQueryVariables = Exact<{
  id: string;
}>;


export type UserSessionsQuery = { readonly node:
    | { readonly id: string, readonly name: string, readonly sessions: ReadonlyArray<{ readonly id: string, readonly current: boolean, readonly address: string, readonly agent: string, readonly createdAt: string, readonly lastUsedAt: string, readonly expiresAt: string }> | null }
    | Record<PropertyKey, never>
   | null };

export type EndSessionsMutationVariables = Exact<{
  input: EndSessionsInput;
}>;


export type EndSessionsMutation = { readonly endSessions: { readonly ended: ReadonlyArray<string>, readonly user: { readonly id: string, readonly name: string } } };


export const LatestCursorDocument: Document<LatestCursorQuery, LatestCursorQueryVariables> =
  "query LatestCursor { latestCursor }";

export const SubmitDocument: Document<SubmitMutation, SubmitMutationVariables> =
  "mutation Submit($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds repeated errors { index field code message } } }";

export const SubmitFullDocument: Document<SubmitFullMutation, SubmitFullMutationVariables> =
  "mutation SubmitFull($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds repeated errors { index field code message } jobs { ...JobFields } } } fragment JobFields on Job { id state name application project groupName arrayIndex command arguments environment { name value } workingDirectory tasks cpusPerTask memoryMbPerTask resourcesPerTask { kind amount } licenses os architecture machineConstraint image siteTerms { partition account qos } estimateS benchmark runTimeLimitS warnS warnSignal killGraceS deadline deadlineMissed sandboxMb outputMb restartable launch onTaskFailure retry { maxRetries backoffS factor maxBackoffS rules { causes exitCodes { from to } signals action memoryFactor memoryMaxMb } } retries inputs { dataset { id name } sizeMb site { id name } from { id } output } originSite { id name } reservation { id name } computationShare migratedAt mail priority boost preemptionClass epoch cause message exitCode submittedAt eligibleAt dispatchedAt startedAt endedAt user { id name } site { id name } }";

export const JobsDocument: Document<JobsQuery, JobsQueryVariables> =
  "query Jobs($filter: JobFilter, $orderBy: JobOrder, $first: Int, $after: String) { jobs(filter: $filter, orderBy: $orderBy, first: $first, after: $after) { nodes { ...JobFields } pageInfo { hasNextPage endCursor } } } fragment JobFields on Job { id state name application project groupName arrayIndex command arguments environment { name value } workingDirectory tasks cpusPerTask memoryMbPerTask resourcesPerTask { kind amount } licenses os architecture machineConstraint image siteTerms { partition account qos } estimateS benchmark runTimeLimitS warnS warnSignal killGraceS deadline deadlineMissed sandboxMb outputMb restartable launch onTaskFailure retry { maxRetries backoffS factor maxBackoffS rules { causes exitCodes { from to } signals action memoryFactor memoryMaxMb } } retries inputs { dataset { id name } sizeMb site { id name } from { id } output } originSite { id name } reservation { id name } computationShare migratedAt mail priority boost preemptionClass epoch cause message exitCode submittedAt eligibleAt dispatchedAt startedAt endedAt user { id name } site { id name } }";

export const JobLinesDocument: Document<JobLinesQuery, JobLinesQueryVariables> =
  "query JobLines($filter: JobFilter, $orderBy: JobOrder, $first: Int, $after: String) { jobs(filter: $filter, orderBy: $orderBy, first: $first, after: $after) { nodes { ...JobLine } pageInfo { hasNextPage endCursor } } } fragment JobLine on Job { id state name application command arguments cause exitCode submittedAt startedAt endedAt site { id name } }";

export const JobCountDocument: Document<JobCountQuery, JobCountQueryVariables> =
  "query JobCount($filter: JobFilter) { jobCount(filter: $filter) }";

export const ReportDocument: Document<ReportQuery, ReportQueryVariables> =
  "query Report($id: ID!) { job(id: $id) { id state cause tasks cpusPerTask memoryMbPerTask estimateS benchmark runs { epoch startedAt endedAt cause cpuS peakMemoryMb allocations { machine { id benchmark } } } } }";

export const JobDocument: Document<JobQuery, JobQueryVariables> =
  "query Job($id: ID!) { job(id: $id) { ...JobFields preferences { site { id name } os architecture licenses cpusPerTask memoryMbPerTask } scheduler { id name } group { id name } needs { expression of { job { id name state } jobGroup { id name } group condition minDelayS } } onUnmet notBefore unmetBecause { id } neededBy { id name state } rerunOf { id } rerunAs { id } outputs { path keep dataset } files { task path bytes sha256 receivedBytes keptAt keptUntil rateMbPerS } runs { epoch site { id name } localId localState nodes imageDigest allocations { machine { id name } tasks devices } licenses { id kind } policyVersion assignedAt plannedS startedAt endedAt exitCode signal cause message retry { action rule because counted retries delayS memoryMbPerTask note } cpuS cpuMethod peakMemoryMb peakMemoryMethod readMb writtenMb bytesMethod ioWaitS ioWaitMethod staging { beganAt endedAt totalMb movedMb predictedS measuredS error } } whyWaiting { code message numbers { name value } startsAt earliestStart startsAtLatest fitsIfLimitS wouldChange } } } fragment JobFields on Job { id state name application project groupName arrayIndex command arguments environment { name value } workingDirectory tasks cpusPerTask memoryMbPerTask resourcesPerTask { kind amount } licenses os architecture machineConstraint image siteTerms { partition account qos } estimateS benchmark runTimeLimitS warnS warnSignal killGraceS deadline deadlineMissed sandboxMb outputMb restartable launch onTaskFailure retry { maxRetries backoffS factor maxBackoffS rules { causes exitCodes { from to } signals action memoryFactor memoryMaxMb } } retries inputs { dataset { id name } sizeMb site { id name } from { id } output } originSite { id name } reservation { id name } computationShare migratedAt mail priority boost preemptionClass epoch cause message exitCode submittedAt eligibleAt dispatchedAt startedAt endedAt user { id name } site { id name } }";

export const JobEndDocument: Document<JobEndQuery, JobEndQueryVariables> =
  "query JobEnd($id: ID!) { job(id: $id) { id state cause message exitCode runs { signal } } }";

export const JobOutputDocument: Document<JobOutputQuery, JobOutputQueryVariables> =
  "query JobOutput($id: ID!, $stream: OutputStream!, $epoch: Int, $task: Int!) { job(id: $id) { id state cause message epoch output(stream: $stream, epoch: $epoch, task: $task) { text(maxBytes: 1048576) bytes truncated } } }";

export const JobOutputFollowedDocument: Document<JobOutputFollowedSubscription, JobOutputFollowedSubscriptionVariables> =
  "subscription JobOutputFollowed($id: ID!, $stream: OutputStream!, $epoch: Int, $task: Int!, $after: String) { jobOutput(job: $id, stream: $stream, epoch: $epoch, task: $task, after: $after) { cursor epoch start base64 length last } }";

export const JobTasksDocument: Document<JobTasksQuery, JobTasksQueryVariables> =
  "query JobTasks($id: ID!, $from: Int!, $first: Int!) { job(id: $id) { runs { tasks(from: $from, first: $first) { index machine { id name } state startedAt endedAt exitCode signal cause message cpuS peakMemoryMb } } } }";

export const JobFilesDocument: Document<JobFilesQuery, JobFilesQueryVariables> =
  "query JobFiles($id: ID!, $epoch: Int) { job(id: $id) { id epoch files(epoch: $epoch) { task path bytes sha256 keptAt } } }";

export const WhyWaitingDocument: Document<WhyWaitingQuery, WhyWaitingQueryVariables> =
  "query WhyWaiting($id: ID!) { job(id: $id) { whyWaiting { code message } } }";

export const NeverFitsDocument: Document<NeverFitsQuery, NeverFitsQueryVariables> =
  "query NeverFits($ids: [ID!]!) { jobs(filter: {ids: $ids, states: [QUEUED]}, first: 20) { nodes { id whyWaiting { code message } } } }";

export const WhyDocument: Document<WhyQuery, WhyQueryVariables> =
  "query Why($id: ID!) { job(id: $id) { id state cause message site { id name } whyWaiting { code message numbers { name value } startsAt earliestStart startsAtLatest fitsIfLimitS wouldChange missing { term { job { id } jobGroup { id } group condition } expectedAt unknown } } scheduler { name } path { at scheduler { name } site { name } reason message } foreign { peer { name } job user } peers { peer { name } state reason path } decisions(first: 100) { nodes { id at kind reason message policyVersion cycle from { name } site { name } jobTerms { name value } level queued order orderValue respected { job { id } at } candidates { site { id name } eligible reason rank terms { name value } } } pageInfo { hasNextPage endCursor } } } }";

export const CancelDocument: Document<CancelMutation, CancelMutationVariables> =
  "mutation Cancel($selection: JobSelection!) { cancelJobs(selection: $selection) { jobIds unchanged { id code message } } }";

export const RequeueDocument: Document<RequeueMutation, RequeueMutationVariables> =
  "mutation Requeue($selection: JobSelection!) { requeueJobs(selection: $selection) { jobIds unchanged { id code message } } }";

export const HoldDocument: Document<HoldMutation, HoldMutationVariables> =
  "mutation Hold($selection: JobSelection!) { holdJobs(selection: $selection) { jobIds unchanged { id code message } } }";

export const ReleaseDocument: Document<ReleaseMutation, ReleaseMutationVariables> =
  "mutation Release($selection: JobSelection!) { releaseJobs(selection: $selection) { jobIds unchanged { id code message } } }";

export const ReprioritizeDocument: Document<ReprioritizeMutation, ReprioritizeMutationVariables> =
  "mutation Reprioritize($selection: JobSelection!, $boost: Int!) { reprioritizeJobs(selection: $selection, boost: $boost) { jobIds unchanged { id code message } } }";

export const RerunDocument: Document<RerunMutation, RerunMutationVariables> =
  "mutation Rerun($input: RerunInput!) { rerun(input: $input) { jobIds repointed } }";

export const ChangeDocument: Document<ChangeMutation, ChangeMutationVariables> =
  "mutation Change($input: ChangeJobsInput!) { changeJobs(input: $input) { jobIds unchanged { id code message } } }";

export const PlacementDocument: Document<PlacementQuery, PlacementQueryVariables> =
  "query Placement($job: ID, $spec: JobInput) { placement(job: $job, spec: $spec) { policyVersion priority startsAt earliestStart reason message jobTerms { name value } site { id name } allocations { machine { id name } tasks } candidates { site { id name } eligible reason rank terms { name value } } } }";

export const JobUpdatedDocument: Document<JobUpdatedSubscription, JobUpdatedSubscriptionVariables> =
  "subscription JobUpdated($filter: JobFilter, $after: String) { jobUpdated(filter: $filter, after: $after) { cursor resyncRequired event { at kind sequence fromState toState epoch cause note } job { ...JobLine } } } fragment JobLine on Job { id state name application command arguments cause exitCode submittedAt startedAt endedAt site { id name } }";

export const JobUpdatedFullDocument: Document<JobUpdatedFullSubscription, JobUpdatedFullSubscriptionVariables> =
  "subscription JobUpdatedFull($filter: JobFilter, $after: String) { jobUpdated(filter: $filter, after: $after) { cursor resyncRequired event { id at kind objectId sequence fromState toState epoch cause note } job { ...JobFields } } } fragment JobFields on Job { id state name application project groupName arrayIndex command arguments environment { name value } workingDirectory tasks cpusPerTask memoryMbPerTask resourcesPerTask { kind amount } licenses os architecture machineConstraint image siteTerms { partition account qos } estimateS benchmark runTimeLimitS warnS warnSignal killGraceS deadline deadlineMissed sandboxMb outputMb restartable launch onTaskFailure retry { maxRetries backoffS factor maxBackoffS rules { causes exitCodes { from to } signals action memoryFactor memoryMaxMb } } retries inputs { dataset { id name } sizeMb site { id name } from { id } output } originSite { id name } reservation { id name } computationShare migratedAt mail priority boost preemptionClass epoch cause message exitCode submittedAt eligibleAt dispatchedAt startedAt endedAt user { id name } site { id name } }";

export const SitesDocument: Document<SitesQuery, SitesQueryVariables> =
  "query Sites($first: Int, $after: String) { sites(first: $first, after: $after) { nodes { ...SiteFields } pageInfo { hasNextPage endCursor } } } fragment SiteFields on Site { id name state latitude longitude localPolicy maxRunningJobs agentSeenAt queuedJobs runningJobs cpus cpusUsed createdAt scheduler { id name } reservation { job { id } at machines { machine { id name } tasks } } }";

export const AgentsDocument: Document<AgentsQuery, AgentsQueryVariables> =
  "query Agents($first: Int, $after: String) { sites(first: $first, after: $after) { nodes { name agents { ...AgentFields } } pageInfo { hasNextPage endCursor } } } fragment AgentFields on Agent { id host version protocol simulated registeredAt seenAt problem machines { name silent } }";

export const MachinesDocument: Document<MachinesQuery, MachinesQueryVariables> =
  "query Machines($site: ID, $first: Int, $after: String) { machines(site: $site, first: $first, after: $after) { nodes { ...MachineFields } pageInfo { hasNextPage endCursor } } } fragment MachineFields on Machine { id name state reason silent problem agent { id host } measured { cpus memoryMb os architecture model benchmark warning gpus { name memoryMb } measuredAt } cpus cpusUsed memoryMb memoryUsedMb resources { kind amount used } labels { name value } devices { id kind model used } maxTasks tasksUsed benchmark os architecture heartbeatAt site { id name } licenses { id kind } }";

export const LicensesDocument: Document<LicensesQuery, LicensesQueryVariables> =
  "query Licenses($first: Int, $after: String) { licenses(first: $first, after: $after) { nodes { ...LicenseFields } pageInfo { hasNextPage endCursor } } } fragment LicenseFields on License { id kind copies inUse site { id name } }";

export const RegisterSiteDocument: Document<RegisterSiteMutation, RegisterSiteMutationVariables> =
  "mutation RegisterSite($input: RegisterSiteInput!) { registerSite(input: $input) { ...SiteFields } } fragment SiteFields on Site { id name state latitude longitude localPolicy maxRunningJobs agentSeenAt queuedJobs runningJobs cpus cpusUsed createdAt scheduler { id name } reservation { job { id } at machines { machine { id name } tasks } } }";

export const UpdateSiteDocument: Document<UpdateSiteMutation, UpdateSiteMutationVariables> =
  "mutation UpdateSite($input: UpdateSiteInput!) { updateSite(input: $input) { ...SiteFields } } fragment SiteFields on Site { id name state latitude longitude localPolicy maxRunningJobs agentSeenAt queuedJobs runningJobs cpus cpusUsed createdAt scheduler { id name } reservation { job { id } at machines { machine { id name } tasks } } }";

export const DrainSiteDocument: Document<DrainSiteMutation, DrainSiteMutationVariables> =
  "mutation DrainSite($site: ID!) { drainSite(site: $site) { ...SiteFields } } fragment SiteFields on Site { id name state latitude longitude localPolicy maxRunningJobs agentSeenAt queuedJobs runningJobs cpus cpusUsed createdAt scheduler { id name } reservation { job { id } at machines { machine { id name } tasks } } }";

export const RemoveSiteDocument: Document<RemoveSiteMutation, RemoveSiteMutationVariables> =
  "mutation RemoveSite($site: ID!) { removeSite(site: $site) { ...SiteFields } } fragment SiteFields on Site { id name state latitude longitude localPolicy maxRunningJobs agentSeenAt queuedJobs runningJobs cpus cpusUsed createdAt scheduler { id name } reservation { job { id } at machines { machine { id name } tasks } } }";

export const RegisterMachinesDocument: Document<RegisterMachinesMutation, RegisterMachinesMutationVariables> =
  "mutation RegisterMachines($inputs: [RegisterMachineInput!]!) { registerMachines(inputs: $inputs) { ...MachineFields } } fragment MachineFields on Machine { id name state reason silent problem agent { id host } measured { cpus memoryMb os architecture model benchmark warning gpus { name memoryMb } measuredAt } cpus cpusUsed memoryMb memoryUsedMb resources { kind amount used } labels { name value } devices { id kind model used } maxTasks tasksUsed benchmark os architecture heartbeatAt site { id name } licenses { id kind } }";

export const UpdateMachineDocument: Document<UpdateMachineMutation, UpdateMachineMutationVariables> =
  "mutation UpdateMachine($input: UpdateMachineInput!) { updateMachine(input: $input) { ...MachineFields } } fragment MachineFields on Machine { id name state reason silent problem agent { id host } measured { cpus memoryMb os architecture model benchmark warning gpus { name memoryMb } measuredAt } cpus cpusUsed memoryMb memoryUsedMb resources { kind amount used } labels { name value } devices { id kind model used } maxTasks tasksUsed benchmark os architecture heartbeatAt site { id name } licenses { id kind } }";

export const DrainMachineDocument: Document<DrainMachineMutation, DrainMachineMutationVariables> =
  "mutation DrainMachine($machine: ID!) { drainMachine(machine: $machine) { ...MachineFields } } fragment MachineFields on Machine { id name state reason silent problem agent { id host } measured { cpus memoryMb os architecture model benchmark warning gpus { name memoryMb } measuredAt } cpus cpusUsed memoryMb memoryUsedMb resources { kind amount used } labels { name value } devices { id kind model used } maxTasks tasksUsed benchmark os architecture heartbeatAt site { id name } licenses { id kind } }";

export const RemoveMachineDocument: Document<RemoveMachineMutation, RemoveMachineMutationVariables> =
  "mutation RemoveMachine($machine: ID!) { removeMachine(machine: $machine) { ...MachineFields } } fragment MachineFields on Machine { id name state reason silent problem agent { id host } measured { cpus memoryMb os architecture model benchmark warning gpus { name memoryMb } measuredAt } cpus cpusUsed memoryMb memoryUsedMb resources { kind amount used } labels { name value } devices { id kind model used } maxTasks tasksUsed benchmark os architecture heartbeatAt site { id name } licenses { id kind } }";

export const RegisterLicenseDocument: Document<RegisterLicenseMutation, RegisterLicenseMutationVariables> =
  "mutation RegisterLicense($input: RegisterLicenseInput!) { registerLicense(input: $input) { ...LicenseFields } } fragment LicenseFields on License { id kind copies inUse site { id name } }";

export const UpdateLicenseDocument: Document<UpdateLicenseMutation, UpdateLicenseMutationVariables> =
  "mutation UpdateLicense($input: UpdateLicenseInput!) { updateLicense(input: $input) { ...LicenseFields } } fragment LicenseFields on License { id kind copies inUse site { id name } }";

export const RemoveLicenseDocument: Document<RemoveLicenseMutation, RemoveLicenseMutationVariables> =
  "mutation RemoveLicense($license: ID!) { removeLicense(license: $license) { ...LicenseFields } } fragment LicenseFields on License { id kind copies inUse site { id name } }";

export const TreeDocument: Document<TreeQuery, TreeQueryVariables> =
  "query Tree { tree { holds waiting channels { power } children { id } sites { id name state metaQueuedJobs queuedJobs runningJobs } } schedulers { ...SchedulerFields holds waiting channels { power } children { id } sites { id name state metaQueuedJobs queuedJobs runningJobs } } } fragment SchedulerFields on Scheduler { id name parent { id name } }";

export const SchedulersDocument: Document<SchedulersQuery, SchedulersQueryVariables> =
  "query Schedulers { schedulers { ...SchedulerFields } } fragment SchedulerFields on Scheduler { id name parent { id name } }";

export const TreeChannelsDocument: Document<TreeChannelsQuery, TreeChannelsQueryVariables> =
  "query TreeChannels($id: ID!, $root: Boolean!) { tree @include(if: $root) { channels { ...ChannelFields } } scheduler(id: $id) @skip(if: $root) { channels { ...ChannelFields } } } fragment ChannelFields on Channel { port power classes { os architecture licenses tasks cpusPerTask memoryMbPerTask jobs } branches { scheduler { id name } site { id name } port power jobs } }";

export const CreateSchedulerDocument: Document<CreateSchedulerMutation, CreateSchedulerMutationVariables> =
  "mutation CreateScheduler($input: CreateSchedulerInput!) { createScheduler(input: $input) { ...SchedulerFields } } fragment SchedulerFields on Scheduler { id name parent { id name } }";

export const UpdateSchedulerDocument: Document<UpdateSchedulerMutation, UpdateSchedulerMutationVariables> =
  "mutation UpdateScheduler($input: UpdateSchedulerInput!) { updateScheduler(input: $input) { ...SchedulerFields } } fragment SchedulerFields on Scheduler { id name parent { id name } }";

export const RemoveSchedulerDocument: Document<RemoveSchedulerMutation, RemoveSchedulerMutationVariables> =
  "mutation RemoveScheduler($scheduler: ID!) { removeScheduler(scheduler: $scheduler) { ...SchedulerFields } } fragment SchedulerFields on Scheduler { id name parent { id name } }";

export const DatasetsDocument: Document<DatasetsQuery, DatasetsQueryVariables> =
  "query Datasets($name: String, $first: Int, $after: String) { datasets(name: $name, first: $first, after: $after) { nodes { ...DatasetFields } pageInfo { hasNextPage endCursor } } } fragment DatasetFields on Dataset { id name sizeMb sha256 createdAt replicas { id name } locations { site { id name } location } }";

export const CreateDatasetDocument: Document<CreateDatasetMutation, CreateDatasetMutationVariables> =
  "mutation CreateDataset($input: DatasetInput!) { createDataset(input: $input) { ...DatasetFields } } fragment DatasetFields on Dataset { id name sizeMb sha256 createdAt replicas { id name } locations { site { id name } location } }";

export const UpdateDatasetDocument: Document<UpdateDatasetMutation, UpdateDatasetMutationVariables> =
  "mutation UpdateDataset($input: UpdateDatasetInput!) { updateDataset(input: $input) { ...DatasetFields } } fragment DatasetFields on Dataset { id name sizeMb sha256 createdAt replicas { id name } locations { site { id name } location } }";

export const RemoveDatasetDocument: Document<RemoveDatasetMutation, RemoveDatasetMutationVariables> =
  "mutation RemoveDataset($dataset: ID!) { removeDataset(dataset: $dataset) { ...DatasetFields } } fragment DatasetFields on Dataset { id name sizeMb sha256 createdAt replicas { id name } locations { site { id name } location } }";

export const SetReplicasDocument: Document<SetReplicasMutation, SetReplicasMutationVariables> =
  "mutation SetReplicas($dataset: ID!, $add: [ID!]!, $locations: [DatasetLocationInput!]!, $remove: [ID!]!) { setReplicas( dataset: $dataset add: $add locations: $locations remove: $remove ) { ...DatasetFields } } fragment DatasetFields on Dataset { id name sizeMb sha256 createdAt replicas { id name } locations { site { id name } location } }";

export const ImportDatasetsDocument: Document<ImportDatasetsMutation, ImportDatasetsMutationVariables> =
  "mutation ImportDatasets($datasets: [DatasetInput!]!) { importDatasets(datasets: $datasets) { created updated errors { index field message } } }";

export const LinksDocument: Document<LinksQuery, LinksQueryVariables> =
  "query Links($from: ID, $to: ID, $first: Int, $after: String) { links(from: $from, to: $to, first: $first, after: $after) { nodes { ...LinkFields } pageInfo { hasNextPage endCursor } } } fragment LinkFields on Link { from { id name } to { id name } bandwidthMbPerS rttS loss measuredAt source }";

export const LinkHistoryDocument: Document<LinkHistoryQuery, LinkHistoryQueryVariables> =
  "query LinkHistory($from: ID!, $to: ID!) { links(from: $from, to: $to, first: 1) { nodes { ...LinkFields history(first: 100) { measuredAt bandwidthMbPerS rttS loss } } } } fragment LinkFields on Link { from { id name } to { id name } bandwidthMbPerS rttS loss measuredAt source }";

export const SetLinksDocument: Document<SetLinksMutation, SetLinksMutationVariables> =
  "mutation SetLinks($links: [LinkInput!]!) { setLinks(links: $links) { ...LinkFields } } fragment LinkFields on Link { from { id name } to { id name } bandwidthMbPerS rttS loss measuredAt source }";

export const RemoveLinkDocument: Document<RemoveLinkMutation, RemoveLinkMutationVariables> =
  "mutation RemoveLink($from: ID!, $to: ID!) { removeLink(from: $from, to: $to) { ...LinkFields } } fragment LinkFields on Link { from { id name } to { id name } bandwidthMbPerS rttS loss measuredAt source }";

export const RatioDocument: Document<RatioQuery, RatioQueryVariables> =
  "query Ratio($application: String!, $last: Int!) { jobRatio(application: $application) { application computation dataIntensive source runs cursor averages { turnaroundS executionS ioS } history(last: $last) { nodes { ...PointFields } } } } fragment PointFields on JobRatioPoint { cursor application at job { id } site { id name } turnaroundS ioS ioMethod runs computation dataIntensive }";

export const RatioUpdatedDocument: Document<RatioUpdatedSubscription, RatioUpdatedSubscriptionVariables> =
  "subscription RatioUpdated($application: String, $after: String) { jobRatioUpdated(application: $application, after: $after) { cursor resyncRequired point { ...PointFields } } } fragment PointFields on JobRatioPoint { cursor application at job { id } site { id name } turnaroundS ioS ioMethod runs computation dataIntensive }";

export const SubmitGroupDocument: Document<SubmitGroupMutation, SubmitGroupMutationVariables> =
  "mutation SubmitGroup($input: SubmitJobGroupInput!) { submitJobGroup(input: $input) { jobGroup { ...GroupFields } repeated errors { index field code message } } } fragment GroupFields on JobGroup { id name size state counts { state jobs } progress submittedAt user { id name } }";

export const GroupsDocument: Document<GroupsQuery, GroupsQueryVariables> =
  "query Groups($first: Int, $after: String) { jobGroups(first: $first, after: $after) { nodes { ...GroupFields } pageInfo { hasNextPage endCursor } } } fragment GroupFields on JobGroup { id name size state counts { state jobs } progress submittedAt user { id name } }";

export const GroupDocument: Document<GroupQuery, GroupQueryVariables> =
  "query Group($id: ID!) { jobGroup(id: $id) { ...GroupFields template } } fragment GroupFields on JobGroup { id name size state counts { state jobs } progress submittedAt user { id name } }";

export const JobGraphDocument: Document<JobGraphQuery, JobGraphQueryVariables> =
  "query JobGraph($filter: JobFilter!, $most: Int!) { jobGraph(filter: $filter, most: $most) { nodes { id name arrayIndex state level startedAt endedAt expectedStart expectedEnd needs conditions } isWhole criticalPath expectedEnd } }";

export const CancelGroupDocument: Document<CancelGroupMutation, CancelGroupMutationVariables> =
  "mutation CancelGroup($jobGroup: ID!) { cancelJobGroup(jobGroup: $jobGroup) { cancelled jobGroup { ...GroupFields } } } fragment GroupFields on JobGroup { id name size state counts { state jobs } progress submittedAt user { id name } }";

export const PeersDocument: Document<PeersQuery, PeersQueryVariables> =
  "query Peers { peers(first: 1000) { site { id name } alive lastHeardAt queued metaQueued arrivalRate serviceRate congested powerTotal } }";

export const StandingsDocument: Document<StandingsQuery, StandingsQueryVariables> =
  "query Standings { userStandings(first: 500) { user { id name } site { id name } quotaShare queuedJobs groups(first: 50) { processors jobs threshold priority queue } } }";

export const UsersDocument: Document<UsersQuery, UsersQueryVariables> =
  "query Users($first: Int, $after: String) { users(first: $first, after: $after) { nodes { ...UserFields } pageInfo { hasNextPage endCursor } } } fragment UserFields on User { id name class role quotaShare active createdAt submissionQuota { limit periodS used } }";

export const RegisterUserDocument: Document<RegisterUserMutation, RegisterUserMutationVariables> =
  "mutation RegisterUser($input: RegisterUserInput!) { registerUser(input: $input) { ...UserFields } } fragment UserFields on User { id name class role quotaShare active createdAt submissionQuota { limit periodS used } }";

export const UpdateUserDocument: Document<UpdateUserMutation, UpdateUserMutationVariables> =
  "mutation UpdateUser($input: UpdateUserInput!) { updateUser(input: $input) { ...UserFields } } fragment UserFields on User { id name class role quotaShare active createdAt submissionQuota { limit periodS used } }";

export const SetQuotaDocument: Document<SetQuotaMutation, SetQuotaMutationVariables> =
  "mutation SetQuota($input: SetQuotaInput!) { setQuota(input: $input) { ...UserFields } } fragment UserFields on User { id name class role quotaShare active createdAt submissionQuota { limit periodS used } }";

export const ViewerDocument: Document<ViewerQuery, ViewerQueryVariables> =
  "query Viewer { viewer { ...UserFields limits { name used allowed } } } fragment UserFields on User { id name class role quotaShare active createdAt submissionQuota { limit periodS used } }";

export const UserKeysOfAllDocument: Document<UserKeysOfAllQuery, UserKeysOfAllQueryVariables> =
  "query UserKeysOfAll($first: Int, $after: String) { users(first: $first, after: $after) { nodes { apiKeys { id name } } pageInfo { hasNextPage endCursor } } }";

export const RotateKeyDocument: Document<RotateKeyMutation, RotateKeyMutationVariables> =
  "mutation RotateKey($apiKey: ID!, $name: String!) { rotateApiKey(apiKey: $apiKey, name: $name) { secret apiKey { ...KeyFields } } } fragment KeyFields on ApiKey { id name prefix createdAt expiresAt revokedAt lastUsedAt site { id name } }";

export const AuditDocument: Document<AuditQuery, AuditQueryVariables> =
  "query Audit($first: Int, $after: String) { audit(first: $first, after: $after) { nodes { at user { id name } action target targetName reason before after } pageInfo { hasNextPage endCursor } } }";

export const UsageDocument: Document<UsageQuery, UsageQueryVariables> =
  "query Usage($by: UsageBy!, $from: DateTime!, $to: DateTime, $first: Int) { usage(by: $by, from: $from, to: $to, first: $first) { user { id name } site { id name } application runs cpuS endedJobs failedJobs meanWaitS } }";

export const OwnKeysDocument: Document<OwnKeysQuery, OwnKeysQueryVariables> =
  "query OwnKeys { viewer { id name apiKeys { ...KeyFields } } } fragment KeyFields on ApiKey { id name prefix createdAt expiresAt revokedAt lastUsedAt site { id name } }";

export const UserKeysDocument: Document<UserKeysQuery, UserKeysQueryVariables> =
  "query UserKeys($id: ID!) { node(id: $id) { ... on User { id name apiKeys { ...KeyFields } } } } fragment KeyFields on ApiKey { id name prefix createdAt expiresAt revokedAt lastUsedAt site { id name } }";

export const CreateKeyDocument: Document<CreateKeyMutation, CreateKeyMutationVariables> =
  "mutation CreateKey($input: CreateApiKeyInput!) { createApiKey(input: $input) { secret apiKey { ...KeyFields } } } fragment KeyFields on ApiKey { id name prefix createdAt expiresAt revokedAt lastUsedAt site { id name } }";

export const OwnMailDocument: Document<OwnMailQuery, OwnMailQueryVariables> =
  "query OwnMail { viewer { ...MailFields } } fragment MailFields on User { id name mail { address kinds unsubscribed problem } }";

export const UserMailDocument: Document<UserMailQuery, UserMailQueryVariables> =
  "query UserMail($id: ID!) { node(id: $id) { ...MailFields } } fragment MailFields on User { id name mail { address kinds unsubscribed problem } }";

export const SetMailDocument: Document<SetMailMutation, SetMailMutationVariables> =
  "mutation SetMail($kinds: [MailKind!]!) { setMail(kinds: $kinds) { ...MailFields } } fragment MailFields on User { id name mail { address kinds unsubscribed problem } }";

export const SetMailAddressDocument: Document<SetMailAddressMutation, SetMailAddressMutationVariables> =
  "mutation SetMailAddress($user: ID!, $address: String) { setMailAddress(user: $user, address: $address) { ...MailFields } } fragment MailFields on User { id name mail { address kinds unsubscribed problem } }";

export const WebhooksDocument: Document<WebhooksQuery, WebhooksQueryVariables> =
  "query Webhooks($user: ID) { webhooks(user: $user) { ...WebhookFields } } fragment WebhookFields on Webhook { id name url filter kinds enabled disabledReason formerUntil deliveredAt deliveredStatus failures failedAt failedReason nextAttemptAt lagS createdAt }";

export const CreateWebhookDocument: Document<CreateWebhookMutation, CreateWebhookMutationVariables> =
  "mutation CreateWebhook($input: CreateWebhookInput!) { createWebhook(input: $input) { secret webhook { ...WebhookFields } } } fragment WebhookFields on Webhook { id name url filter kinds enabled disabledReason formerUntil deliveredAt deliveredStatus failures failedAt failedReason nextAttemptAt lagS createdAt }";

export const UpdateWebhookDocument: Document<UpdateWebhookMutation, UpdateWebhookMutationVariables> =
  "mutation UpdateWebhook($input: UpdateWebhookInput!) { updateWebhook(input: $input) { ...WebhookFields } } fragment WebhookFields on Webhook { id name url filter kinds enabled disabledReason formerUntil deliveredAt deliveredStatus failures failedAt failedReason nextAttemptAt lagS createdAt }";

export const RotateWebhookDocument: Document<RotateWebhookMutation, RotateWebhookMutationVariables> =
  "mutation RotateWebhook($webhook: ID!, $keepFormerS: Int!) { rotateWebhookSecret(webhook: $webhook, keepFormerS: $keepFormerS) { secret webhook { ...WebhookFields } } } fragment WebhookFields on Webhook { id name url filter kinds enabled disabledReason formerUntil deliveredAt deliveredStatus failures failedAt failedReason nextAttemptAt lagS createdAt }";

export const DeleteWebhookDocument: Document<DeleteWebhookMutation, DeleteWebhookMutationVariables> =
  "mutation DeleteWebhook($webhook: ID!) { deleteWebhook(webhook: $webhook) { ...WebhookFields } } fragment WebhookFields on Webhook { id name url filter kinds enabled disabledReason formerUntil deliveredAt deliveredStatus failures failedAt failedReason nextAttemptAt lagS createdAt }";

export const TestWebhookDocument: Document<TestWebhookMutation, TestWebhookMutationVariables> =
  "mutation TestWebhook($webhook: ID!) { testWebhook(webhook: $webhook) { delivered status reason tookMs } }";

export const RevokeKeyDocument: Document<RevokeKeyMutation, RevokeKeyMutationVariables> =
  "mutation RevokeKey($apiKey: ID!) { revokeApiKey(apiKey: $apiKey) { ...KeyFields } } fragment KeyFields on ApiKey { id name prefix createdAt expiresAt revokedAt lastUsedAt site { id name } }";

export const PolicyDocument: Document<PolicyQuery, PolicyQueryVariables> =
  "query Policy($version: Int) { policy(version: $version) { ...PolicyFields } } fragment PolicyFields on Policy { id version document reason revertsTo createdAt author { id name } }";

export const PolicyHistoryDocument: Document<PolicyHistoryQuery, PolicyHistoryQueryVariables> =
  "query PolicyHistory($first: Int, $after: String) { policyHistory(first: $first, after: $after) { nodes { ...PolicyFields } pageInfo { hasNextPage endCursor } } } fragment PolicyFields on Policy { id version document reason revertsTo createdAt author { id name } }";

export const SetWeightsDocument: Document<SetWeightsMutation, SetWeightsMutationVariables> =
  "mutation SetWeights($input: SetWeightsInput!) { setWeights(input: $input) { ...PolicyFields } } fragment PolicyFields on Policy { id version document reason revertsTo createdAt author { id name } }";

export const UpdatePolicyDocument: Document<UpdatePolicyMutation, UpdatePolicyMutationVariables> =
  "mutation UpdatePolicy($input: UpdatePolicyInput!) { updatePolicy(input: $input) { ...PolicyFields } } fragment PolicyFields on Policy { id version document reason revertsTo createdAt author { id name } }";

export const RevertPolicyDocument: Document<RevertPolicyMutation, RevertPolicyMutationVariables> =
  "mutation RevertPolicy($version: Int!, $expectedVersion: Int!, $reason: String!) { revertPolicy( version: $version expectedVersion: $expectedVersion reason: $reason ) { ...PolicyFields } } fragment PolicyFields on Policy { id version document reason revertsTo createdAt author { id name } }";

export const SimulateDocument: Document<SimulateMutation, SimulateMutationVariables> =
  "mutation Simulate($input: SimulateInput!) { simulate(input: $input) { ...SimulationFields } } fragment Figures on SimulationFigures { ended neverStarted waitMeanS waitP95S slowdownMean slowdownP95 deadlineMisses utilization } fragment Comparison on SimulationComparison { baseline { ...Figures } candidate { ...Figures } difference { ...Figures } } fragment Bin on SimulationBin { atS queuedJobs queuedCpus utilization } fragment SimulationFields on Simulation { id state progress createdAt endedAt policyVersion from to reason message user { id name } result { jobs leftOut happened { jobs waitMeanS simulatedWaitMeanS acceptedS } all { ...Comparison } userClasses { userClass comparison { ...Comparison } } sites { name comparison { ...Comparison } } history { from lengthS binS baseline { ...Bin } candidate { ...Bin } } } }";

export const SimulationDocument: Document<SimulationQuery, SimulationQueryVariables> =
  "query Simulation($id: ID!) { simulation(id: $id) { ...SimulationFields } } fragment Figures on SimulationFigures { ended neverStarted waitMeanS waitP95S slowdownMean slowdownP95 deadlineMisses utilization } fragment Comparison on SimulationComparison { baseline { ...Figures } candidate { ...Figures } difference { ...Figures } } fragment Bin on SimulationBin { atS queuedJobs queuedCpus utilization } fragment SimulationFields on Simulation { id state progress createdAt endedAt policyVersion from to reason message user { id name } result { jobs leftOut happened { jobs waitMeanS simulatedWaitMeanS acceptedS } all { ...Comparison } userClasses { userClass comparison { ...Comparison } } sites { name comparison { ...Comparison } } history { from lengthS binS baseline { ...Bin } candidate { ...Bin } } } }";

export const SimulationUpdatedDocument: Document<SimulationUpdatedSubscription, SimulationUpdatedSubscriptionVariables> =
  "subscription SimulationUpdated($simulation: ID, $after: String) { simulationUpdated(simulation: $simulation, after: $after) { cursor resyncRequired simulation { ...SimulationFields } } } fragment Figures on SimulationFigures { ended neverStarted waitMeanS waitP95S slowdownMean slowdownP95 deadlineMisses utilization } fragment Comparison on SimulationComparison { baseline { ...Figures } candidate { ...Figures } difference { ...Figures } } fragment Bin on SimulationBin { atS queuedJobs queuedCpus utilization } fragment SimulationFields on Simulation { id state progress createdAt endedAt policyVersion from to reason message user { id name } result { jobs leftOut happened { jobs waitMeanS simulatedWaitMeanS acceptedS } all { ...Comparison } userClasses { userClass comparison { ...Comparison } } sites { name comparison { ...Comparison } } history { from lengthS binS baseline { ...Bin } candidate { ...Bin } } } }";

export const FederationPeersDocument: Document<FederationPeersQuery, FederationPeersQueryVariables> =
  "query FederationPeers { federationPeers { ...PeerFields } } fragment PeerFields on FederationPeer { site { id } name url isolated forward neededAfterS hops lostAfterS foreignMax foreignBoost user { name } users { name user { name } } seenAt reachedAt failure foreignJobs offeredJobs claimedJobs }";

export const FederateDocument: Document<FederateMutation, FederateMutationVariables> =
  "mutation Federate($input: FederationPeerInput!) { federate(input: $input) { peer { ...PeerFields } secret } } fragment PeerFields on FederationPeer { site { id } name url isolated forward neededAfterS hops lostAfterS foreignMax foreignBoost user { name } users { name user { name } } seenAt reachedAt failure foreignJobs offeredJobs claimedJobs }";

export const IsolatePeerDocument: Document<IsolatePeerMutation, IsolatePeerMutationVariables> =
  "mutation IsolatePeer($peer: ID!) { isolatePeer(peer: $peer) { ...PeerFields } } fragment PeerFields on FederationPeer { site { id } name url isolated forward neededAfterS hops lostAfterS foreignMax foreignBoost user { name } users { name user { name } } seenAt reachedAt failure foreignJobs offeredJobs claimedJobs }";

export const RejoinPeerDocument: Document<RejoinPeerMutation, RejoinPeerMutationVariables> =
  "mutation RejoinPeer($peer: ID!) { rejoinPeer(peer: $peer) { ...PeerFields } } fragment PeerFields on FederationPeer { site { id } name url isolated forward neededAfterS hops lostAfterS foreignMax foreignBoost user { name } users { name user { name } } seenAt reachedAt failure foreignJobs offeredJobs claimedJobs }";

export const RemovePeerDocument: Document<RemovePeerMutation, RemovePeerMutationVariables> =
  "mutation RemovePeer($peer: ID!) { removePeer(peer: $peer) { ...PeerFields } } fragment PeerFields on FederationPeer { site { id } name url isolated forward neededAfterS hops lostAfterS foreignMax foreignBoost user { name } users { name user { name } } seenAt reachedAt failure foreignJobs offeredJobs claimedJobs }";

export const MeasuredDevicesDocument: Document<MeasuredDevicesQuery, MeasuredDevicesQueryVariables> =
  "query MeasuredDevices($machine: ID!) { node(id: $machine) { ... on Machine { measured { devices { id kind model memoryMb shares link } } } } }";

export const HoldsDocument: Document<HoldsQuery, HoldsQueryVariables> =
  "query Holds($site: ID, $ended: Boolean!, $first: Int, $after: String) { holds(site: $site, ended: $ended, first: $first, after: $after) { nodes { ...HoldFields } pageInfo { hasNextPage endCursor } } } fragment HoldFields on Hold { id kind name site { id name } user { id name } reason onConflict wholeSite createdAt endedAt machines { machine { id name } whole cpus memoryMb resources { kind amount } } times { from to } }";

export const ReserveDocument: Document<ReserveMutation, ReserveMutationVariables> =
  "mutation Reserve($input: ReserveInput!, $dryRun: Boolean!) { reserve(input: $input, dryRun: $dryRun) { hold { ...HoldFields } machines { machine { name } whole cpus memoryMb resources { kind amount } } holds { id name kind } runsInTheWay jobs { id } moved { job { id } before after } } } fragment HoldFields on Hold { id kind name site { id name } user { id name } reason onConflict wholeSite createdAt endedAt machines { machine { id name } whole cpus memoryMb resources { kind amount } } times { from to } }";

export const CancelHoldDocument: Document<CancelHoldMutation, CancelHoldMutationVariables> =
  "mutation CancelHold($hold: ID!) { cancelHold(hold: $hold) { ...HoldFields } } fragment HoldFields on Hold { id kind name site { id name } user { id name } reason onConflict wholeSite createdAt endedAt machines { machine { id name } whole cpus memoryMb resources { kind amount } } times { from to } }";

export const InviteUserDocument: Document<InviteUserMutation, InviteUserMutationVariables> =
  "mutation InviteUser($input: InviteUserInput!) { inviteUser(input: $input) { invitation expiresAt user { ...UserFields } } } fragment UserFields on User { id name class role quotaShare active createdAt submissionQuota { limit periodS used } }";

export const OwnSessionsDocument: Document<OwnSessionsQuery, OwnSessionsQueryVariables> =
  "query OwnSessions { viewer { id name sessions { ...SessionFields } } } fragment SessionFields on Session { id current address agent createdAt lastUsedAt expiresAt }";

export const UserSessionsDocument: Document<UserSessionsQuery, UserSessionsQueryVariables> =
  "query UserSessions($id: ID!) { node(id: $id) { ... on User { id name sessions { ...SessionFields } } } } fragment SessionFields on Session { id current address agent createdAt lastUsedAt expiresAt }";

export const EndSessionsDocument: Document<EndSessionsMutation, EndSessionsMutationVariables> =
  "mutation EndSessions($input: EndSessionsInput!) { endSessions(input: $input) { ended user { id name } } }";
