// Generated from web/src/pages/job/job.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { TypedDocumentNode } from 'urql';
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
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

export type NeedCondition =
  | 'START'
  | 'OK'
  | 'NOT_OK'
  | 'ANY';

export type NeedExpression =
  | 'ALL'
  | 'ANY';

export type OnUnmet =
  | 'CANCEL'
  | 'HOLD'
  | 'RUN';

export type PlacedBy =
  | 'SERVICE'
  | 'SITE'
  | 'PEER';

export type TaskState =
  | 'WAITING'
  | 'RUNNING'
  | 'ENDED';

export type MeasurementMethod =
  | 'CGROUP'
  | 'DELAY_ACCOUNTING'
  | 'PROC'
  | 'SAMPLES'
  | 'SIMULATED';

export type DecisionKind =
  | 'DISPATCH'
  | 'START'
  | 'TAKE_BACK'
  | 'PREEMPT';

export type QueueOrder =
  | 'PRIORITY'
  | 'OWN_PRIORITY'
  | 'ARRIVAL';

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

export type OfferState =
  | 'OFFERED'
  | 'CLAIMED'
  | 'WITHDRAWN';

export type JobPageQueryVariables = Exact<{
  id: string;
}>;


export type JobPageQuery = { job: { project: string | null, arguments: Array<string>, workingDirectory: string | null, memoryMbPerTask: number, os: string | null, architecture: string | null, machineConstraint: string | null, benchmark: number, runTimeLimitS: number | null, warnS: number | null, sandboxMb: number, outputMb: number, computationShare: number | null, restartable: boolean, preemptionClass: number, retries: number, notBefore: string | null, launch: TaskLaunch, onTaskFailure: TaskFailure, epoch: number, message: string | null, migratedAt: string | null, id: string, state: JobState, name: string | null, application: string, command: string, groupName: string | null, arrayIndex: number | null, tasks: number, cpusPerTask: number, licenses: Array<string>, estimateS: number, deadline: string | null, deadlineMissed: boolean, priority: number | null, boost: number, cause: EndCause | null, exitCode: number | null, submittedAt: string, dispatchedAt: string | null, startedAt: string | null, endedAt: string | null, resourcesPerTask: Array<{ kind: string, amount: number }>, retry: { maxRetries: number, rules: Array<{ action: RetryAction }> } | null, originSite: { id: string, name: string } | null, group: { id: string, name: string | null } | null, inputs: Array<{ sizeMb: number, output: string | null, dataset: { id: string, name: string } | null, site: { id: string, name: string } | null, from: { id: string, name: string | null } | null }>, runs: Array<{ epoch: number, placedBy: PlacedBy, localId: string | null, localState: string | null, nodes: Array<string>, policyVersion: number, assignedAt: string, plannedS: number, startedAt: string | null, endedAt: string | null, exitCode: number | null, signal: string | null, cause: EndCause | null, message: string | null, cpuS: number | null, cpuMethod: MeasurementMethod | null, peakMemoryMb: number | null, peakMemoryMethod: MeasurementMethod | null, readMb: number | null, writtenMb: number | null, bytesMethod: MeasurementMethod | null, ioWaitS: number | null, ioWaitMethod: MeasurementMethod | null, failedTask: number | null, retry: { note: string | null } | null, staging: { beganAt: string, endedAt: string | null, totalMb: number, movedMb: number, predictedS: number, measuredS: number | null } | null, site: { id: string, name: string }, allocations: Array<{ tasks: number, devices: Array<string>, machine: { id: string, name: string, benchmark: number } }>, licenses: Array<{ id: string, kind: string }> }>, outputs: Array<{ path: string }>, events: { nodes: Array<{ id: string, at: string, kind: EventKind, fromState: JobState | null, toState: JobState | null, epoch: number | null, cause: EndCause | null, note: string | null, site: { id: string, name: string } | null }>, pageInfo: { hasNextPage: boolean } }, decisions: { nodes: Array<{ id: string, at: string, kind: DecisionKind, reason: string, message: string, policyVersion: number, cycle: string, level: number | null, queued: number | null, order: QueueOrder | null, respected: { at: string, job: { id: string } | null } | null, jobTerms: Array<{ name: string, value: number }>, from: { id: string, name: string } | null, site: { id: string, name: string } | null, candidates: Array<{ eligible: boolean, reason: string | null, rank: number | null, terms: Array<{ name: string, value: number }>, site: { id: string, name: string } }> }>, pageInfo: { hasNextPage: boolean } }, user: { id: string, name: string }, site: { id: string, name: string } | null } | null };

export type JobWaitsQueryVariables = Exact<{
  id: string;
}>;


export type JobWaitsQuery = { job: { id: string, state: JobState, whyWaiting: { code: string, message: string, wouldChange: Array<string>, numbers: Array<{ name: string, value: number }> } | null } | null };

export type JobPeersQueryVariables = Exact<{
  id: string;
}>;


export type JobPeersQuery = { job: { id: string, peers: Array<{ state: OfferState | null, reason: string | null, path: Array<string> | null, peer: { id: string, name: string } }> } | null };

export type JobPlacementQueryVariables = Exact<{
  id: string;
}>;


export type JobPlacementQuery = { placement: { policyVersion: number, priority: number | null, startsAt: string | null, earliestStart: string | null, reason: string, message: string, jobTerms: Array<{ name: string, value: number }>, site: { id: string, name: string } | null, allocations: Array<{ tasks: number, machine: { id: string, name: string } }>, candidates: Array<{ eligible: boolean, reason: string | null, rank: number | null, terms: Array<{ name: string, value: number }>, site: { id: string, name: string } }> } };

export type JobOutputQueryVariables = Exact<{
  id: string;
  epoch: number;
  task: number;
}>;


export type JobOutputQuery = { job: { id: string, stdout: { text: string, bytes: number, truncated: boolean } | null, stderr: { text: string, bytes: number, truncated: boolean } | null } | null };

export type OutputPartsFragment = { text: string, bytes: number, truncated: boolean };

export type JobTasksQueryVariables = Exact<{
  id: string;
  from: number;
  first: number;
}>;


export type JobTasksQuery = { job: { id: string, runs: Array<{ epoch: number, tasks: Array<{ index: number, state: TaskState, startedAt: string | null, endedAt: string | null, exitCode: number | null, signal: string | null, cause: EndCause | null, message: string | null, cpuS: number | null, cpuMethod: MeasurementMethod | null, peakMemoryMb: number | null, peakMemoryMethod: MeasurementMethod | null, machine: { id: string, name: string } | null }> }> } | null };

export type JobFilesQueryVariables = Exact<{
  id: string;
}>;


export type JobFilesQuery = { job: { id: string, files: Array<{ path: string, bytes: number, epoch: number, task: number, receivedBytes: number, keptAt: string | null, keptUntil: string | null }> } | null };

export type JobNeedsQueryVariables = Exact<{
  id: string;
}>;


export type JobNeedsQuery = { job: { id: string, notBefore: string | null, onUnmet: OnUnmet | null, needs: Array<{ expression: NeedExpression, of: Array<{ group: string | null, condition: NeedCondition, minDelayS: number, job: { id: string, name: string | null, state: JobState } | null, jobGroup: { id: string, name: string | null } | null }> }>, neededBy: Array<{ id: string, name: string | null, state: JobState }>, rerunOf: { id: string, name: string | null, state: JobState } | null, rerunAs: { id: string, name: string | null, state: JobState } | null } | null };

export type JobRowFragment = { id: string, state: JobState, name: string | null, application: string, command: string, groupName: string | null, arrayIndex: number | null, tasks: number, cpusPerTask: number, memoryMbPerTask: number, licenses: Array<string>, estimateS: number, deadline: string | null, deadlineMissed: boolean, priority: number | null, boost: number, cause: EndCause | null, exitCode: number | null, submittedAt: string, dispatchedAt: string | null, startedAt: string | null, endedAt: string | null, user: { id: string, name: string }, site: { id: string, name: string } | null };

export type TermPartsFragment = { name: string, value: number };

export type CandidatePartsFragment = { eligible: boolean, reason: string | null, rank: number | null, terms: Array<{ name: string, value: number }>, site: { id: string, name: string } };

export type PlacementPartsFragment = { policyVersion: number, priority: number | null, startsAt: string | null, earliestStart: string | null, reason: string, message: string, jobTerms: Array<{ name: string, value: number }>, site: { id: string, name: string } | null, allocations: Array<{ tasks: number, machine: { id: string, name: string } }>, candidates: Array<{ eligible: boolean, reason: string | null, rank: number | null, terms: Array<{ name: string, value: number }>, site: { id: string, name: string } }> };


export const JobPageDocument =
  "query JobPage($id: ID!) { job(id: $id) { ...JobRow project arguments workingDirectory memoryMbPerTask resourcesPerTask { kind amount } os architecture machineConstraint benchmark runTimeLimitS warnS sandboxMb outputMb computationShare restartable preemptionClass retry { maxRetries rules { action } } retries notBefore launch onTaskFailure epoch message migratedAt originSite { id name } group { id name } inputs { sizeMb dataset { id name } site { id name } from { id name } output } runs { epoch placedBy localId localState nodes policyVersion assignedAt plannedS startedAt endedAt exitCode signal cause message retry { note } cpuS cpuMethod peakMemoryMb peakMemoryMethod readMb writtenMb bytesMethod ioWaitS ioWaitMethod failedTask staging { beganAt endedAt totalMb movedMb predictedS measuredS } site { id name } allocations { tasks devices machine { id name benchmark } } licenses { id kind } } outputs { path } events(first: 200) { nodes { id at kind fromState toState epoch cause note site { id name } } pageInfo { hasNextPage } } decisions(first: 20) { nodes { id at kind reason message policyVersion cycle level queued order respected { job { id } at } jobTerms { ...TermParts } from { id name } site { id name } candidates { ...CandidateParts } } pageInfo { hasNextPage } } } } fragment JobRow on Job { id state name application command user { id name } site { id name } groupName arrayIndex tasks cpusPerTask memoryMbPerTask licenses estimateS deadline deadlineMissed priority boost cause exitCode submittedAt dispatchedAt startedAt endedAt } fragment TermParts on Term { name value } fragment CandidateParts on Candidate { eligible reason rank terms { ...TermParts } site { id name } }" as unknown as TypedDocumentNode<JobPageQuery, JobPageQueryVariables>;

export const JobWaitsDocument =
  "query JobWaits($id: ID!) { job(id: $id) { id state whyWaiting { code message numbers { ...TermParts } wouldChange } } } fragment TermParts on Term { name value }" as unknown as TypedDocumentNode<JobWaitsQuery, JobWaitsQueryVariables>;

export const JobPeersDocument =
  "query JobPeers($id: ID!) { job(id: $id) { id peers { state reason path peer { id name } } } }" as unknown as TypedDocumentNode<JobPeersQuery, JobPeersQueryVariables>;

export const JobPlacementDocument =
  "query JobPlacement($id: ID!) { placement(job: $id) { ...PlacementParts } } fragment TermParts on Term { name value } fragment CandidateParts on Candidate { eligible reason rank terms { ...TermParts } site { id name } } fragment PlacementParts on Placement { policyVersion priority startsAt earliestStart jobTerms { ...TermParts } reason message site { id name } allocations { tasks machine { id name } } candidates { ...CandidateParts } }" as unknown as TypedDocumentNode<JobPlacementQuery, JobPlacementQueryVariables>;

export const JobOutputDocument =
  "query JobOutput($id: ID!, $epoch: Int!, $task: Int!) { job(id: $id) { id stdout: output(stream: STDOUT, epoch: $epoch, task: $task) { ...OutputParts } stderr: output(stream: STDERR, epoch: $epoch, task: $task) { ...OutputParts } } } fragment OutputParts on Output { text bytes truncated }" as unknown as TypedDocumentNode<JobOutputQuery, JobOutputQueryVariables>;

export const JobTasksDocument =
  "query JobTasks($id: ID!, $from: Int!, $first: Int!) { job(id: $id) { id runs { epoch tasks(from: $from, first: $first) { index state startedAt endedAt exitCode signal cause message cpuS cpuMethod peakMemoryMb peakMemoryMethod machine { id name } } } } }" as unknown as TypedDocumentNode<JobTasksQuery, JobTasksQueryVariables>;

export const JobFilesDocument =
  "query JobFiles($id: ID!) { job(id: $id) { id files { path bytes epoch task receivedBytes keptAt keptUntil } } }" as unknown as TypedDocumentNode<JobFilesQuery, JobFilesQueryVariables>;

export const JobNeedsDocument =
  "query JobNeeds($id: ID!) { job(id: $id) { id notBefore onUnmet needs { expression of { job { id name state } jobGroup { id name } group condition minDelayS } } neededBy { id name state } rerunOf { id name state } rerunAs { id name state } } }" as unknown as TypedDocumentNode<JobNeedsQuery, JobNeedsQueryVariables>;
