// Generated from web/src/pages/sites/sites.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { TypedDocumentNode } from 'urql';
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
export type SiteState =
  | 'UP'
  | 'DRAINING'
  | 'DOWN';

export type ResourceAmountInput = {
  kind: string;
  amount: number;
};

export type MachineState =
  | 'UP'
  | 'DRAINING'
  | 'DOWN';

export type DeviceInput = {
  id: string;
  kind?: string;
  model?: string | null | undefined;
  memoryMb?: number;
  shares?: number;
  link?: string | null | undefined;
};

export type MachineLabelInput = {
  name: string;
  value?: string;
};

export type HoldKind =
  | 'MAINTENANCE'
  | 'USER'
  | 'STANDING';

export type HoldConflict =
  | 'REFUSE'
  | 'AFTER_JOBS'
  | 'PREEMPT';

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

export type DecisionKind =
  | 'DISPATCH'
  | 'START'
  | 'TAKE_BACK'
  | 'PREEMPT';

export type JobFilter = {
  ids?: Array<string> | null | undefined;
  states?: Array<JobState> | null | undefined;
  site?: string | null | undefined;
  user?: string | null | undefined;
  application?: string | null | undefined;
  project?: string | null | undefined;
  groupName?: string | null | undefined;
  license?: string | null | undefined;
  group?: string | null | undefined;
  waitsForOthers?: boolean | null | undefined;
  submittedAfter?: string | null | undefined;
  submittedBefore?: string | null | undefined;
  endedAfter?: string | null | undefined;
  endedBefore?: string | null | undefined;
};

export type RegisterSiteInput = {
  name: string;
  latitude?: number | null | undefined;
  longitude?: number | null | undefined;
  localPolicy?: unknown;
  scheduler?: string | null | undefined;
  maxRunningJobs?: number | null | undefined;
  reservableCpuHours?: number;
};

export type UpdateSiteInput = {
  site: string;
  name?: string | null | undefined;
  state?: SiteState | null | undefined;
  latitude?: number | null | undefined;
  longitude?: number | null | undefined;
  localPolicy?: unknown;
  maxRunningJobs?: number | null | undefined;
  reservableCpuHours?: number | null | undefined;
  scheduler?: string | null | undefined;
};

export type ReserveInput = {
  kind?: HoldKind;
  name?: string | null | undefined;
  site: string;
  machines?: Array<string> | null | undefined;
  tasks?: number | null | undefined;
  cpus?: number | null | undefined;
  memoryMb?: number | null | undefined;
  resources?: Array<ResourceAmountInput>;
  from?: string | null | undefined;
  to?: string | null | undefined;
  onConflict?: HoldConflict;
  reason?: string | null | undefined;
};

export type RegisterMachineInput = {
  site: string;
  name: string;
  cpus: number;
  memoryMb: number;
  benchmark?: number;
  os?: string;
  architecture?: string;
  licenses?: Array<string>;
  maxTasks?: number | null | undefined;
  resources?: Array<ResourceAmountInput>;
  labels?: Array<MachineLabelInput>;
  devices?: Array<DeviceInput>;
};

export type UpdateMachineInput = {
  machine: string;
  name?: string | null | undefined;
  state?: MachineState | null | undefined;
  cpus?: number | null | undefined;
  memoryMb?: number | null | undefined;
  benchmark?: number | null | undefined;
  os?: string | null | undefined;
  architecture?: string | null | undefined;
  licenses?: Array<string> | null | undefined;
  maxTasks?: number | null | undefined;
  resources?: Array<ResourceAmountInput> | null | undefined;
  labels?: Array<MachineLabelInput> | null | undefined;
  devices?: Array<DeviceInput> | null | undefined;
};

export type SitesQueryVariables = Exact<{ [key: string]: never; }>;


export type SitesQuery = { sites: { nodes: Array<{ id: string, name: string, state: SiteState, agentSeenAt: string | null, queuedJobs: number, metaQueuedJobs: number, runningJobs: number, maxRunningJobs: number | null, cpus: number, cpusUsed: number, localPolicy: unknown, machines: Array<{ id: string, state: MachineState, silent: boolean }> }> } };

export type RegisterSiteMutationVariables = Exact<{
  input: RegisterSiteInput;
}>;


export type RegisterSiteMutation = { registerSite: { id: string, name: string } };

export type SitePageQueryVariables = Exact<{
  id: string;
}>;


export type SitePageQuery = { node:
    | { id: string, name: string, state: SiteState, latitude: number | null, longitude: number | null, localPolicy: unknown, maxRunningJobs: number | null, agentSeenAt: string | null, queuedJobs: number, metaQueuedJobs: number, runningJobs: number, cpus: number, cpusUsed: number, createdAt: string, load: { at: string, stale: boolean, waitingJobs: number, waitingCpuS: number, busyCpus: number } | null, reservation: { at: string, job: { id: string, name: string | null, application: string, estimateS: number, benchmark: number, cpusPerTask: number } | null, machines: Array<{ tasks: number, machine: { id: string } }> } | null, licenses: Array<{ id: string, kind: string, copies: number, inUse: number }>, machines: Array<{ id: string, name: string, state: MachineState, reason: string | null, silent: boolean, problem: string | null, cpus: number, memoryMb: number, benchmark: number, os: string, architecture: string, cpusUsed: number, memoryUsedMb: number, maxTasks: number | null, tasksUsed: number, heartbeatAt: string | null, agent: { id: string, host: string } | null, measured: { cpus: number, memoryMb: number, model: string | null, benchmark: number, warning: string | null, gpus: Array<{ name: string }> } | null, resources: Array<{ kind: string, amount: number, used: number }>, labels: Array<{ name: string, value: string }>, devices: Array<{ id: string, kind: string, model: string | null, memoryMb: number, shares: number, link: string | null, used: number }>, licenses: Array<{ id: string, kind: string }> }> }
    | Record<PropertyKey, never>
   | null, policy: { id: string, version: number, document: unknown } | null };

export type StartPartsFragment = { at: string, job: { id: string, name: string | null, application: string, estimateS: number, benchmark: number, cpusPerTask: number } | null, machines: Array<{ tasks: number, machine: { id: string } }> };

export type SitePartsFragment = { id: string, name: string, state: SiteState, latitude: number | null, longitude: number | null, localPolicy: unknown, maxRunningJobs: number | null, agentSeenAt: string | null, queuedJobs: number, metaQueuedJobs: number, runningJobs: number, cpus: number, cpusUsed: number, createdAt: string, load: { at: string, stale: boolean, waitingJobs: number, waitingCpuS: number, busyCpus: number } | null, reservation: { at: string, job: { id: string, name: string | null, application: string, estimateS: number, benchmark: number, cpusPerTask: number } | null, machines: Array<{ tasks: number, machine: { id: string } }> } | null, licenses: Array<{ id: string, kind: string, copies: number, inUse: number }>, machines: Array<{ id: string, name: string, state: MachineState, reason: string | null, silent: boolean, problem: string | null, cpus: number, memoryMb: number, benchmark: number, os: string, architecture: string, cpusUsed: number, memoryUsedMb: number, maxTasks: number | null, tasksUsed: number, heartbeatAt: string | null, agent: { id: string, host: string } | null, measured: { cpus: number, memoryMb: number, model: string | null, benchmark: number, warning: string | null, gpus: Array<{ name: string }> } | null, resources: Array<{ kind: string, amount: number, used: number }>, labels: Array<{ name: string, value: string }>, devices: Array<{ id: string, kind: string, model: string | null, memoryMb: number, shares: number, link: string | null, used: number }>, licenses: Array<{ id: string, kind: string }> }> };

export type MachinePartsFragment = { id: string, name: string, state: MachineState, reason: string | null, silent: boolean, problem: string | null, cpus: number, memoryMb: number, benchmark: number, os: string, architecture: string, cpusUsed: number, memoryUsedMb: number, maxTasks: number | null, tasksUsed: number, heartbeatAt: string | null, agent: { id: string, host: string } | null, measured: { cpus: number, memoryMb: number, model: string | null, benchmark: number, warning: string | null, gpus: Array<{ name: string }> } | null, resources: Array<{ kind: string, amount: number, used: number }>, labels: Array<{ name: string, value: string }>, devices: Array<{ id: string, kind: string, model: string | null, memoryMb: number, shares: number, link: string | null, used: number }>, licenses: Array<{ id: string, kind: string }> };

export type SiteAgentsQueryVariables = Exact<{
  id: string;
}>;


export type SiteAgentsQuery = { node:
    | { id: string, agents: Array<{ id: string, host: string, version: string, protocol: number, simulated: boolean, registeredAt: string, seenAt: string, problem: string | null, machines: Array<{ id: string, name: string, silent: boolean }> }> }
    | Record<PropertyKey, never>
   | null };

export type SitePromisesQueryVariables = Exact<{
  id: string;
}>;


export type SitePromisesQuery = { node:
    | { id: string, promises: Array<{ at: string, job: { id: string, name: string | null, application: string, estimateS: number, benchmark: number, cpusPerTask: number } | null, machines: Array<{ tasks: number, machine: { id: string } }> }> }
    | Record<PropertyKey, never>
   | null };

export type SiteRunsQueryVariables = Exact<{
  filter: JobFilter;
  first: number;
  after?: string | null | undefined;
}>;


export type SiteRunsQuery = { jobs: { nodes: Array<{ id: string, name: string | null, application: string, state: JobState, cpusPerTask: number, tasks: number, user: { id: string, name: string }, runs: Array<{ epoch: number, assignedAt: string, startedAt: string | null, endedAt: string | null, plannedS: number, cause: EndCause | null, site: { id: string }, allocations: Array<{ tasks: number, machine: { id: string } }> }> }>, pageInfo: { hasNextPage: boolean, endCursor: string | null } } };

export type SiteQueueQueryVariables = Exact<{
  filter: JobFilter;
  first: number;
}>;


export type SiteQueueQuery = { jobs: { nodes: Array<{ id: string, state: JobState, name: string | null, application: string, command: string, groupName: string | null, arrayIndex: number | null, tasks: number, cpusPerTask: number, memoryMbPerTask: number, licenses: Array<string>, estimateS: number, deadline: string | null, deadlineMissed: boolean, priority: number | null, boost: number, cause: EndCause | null, exitCode: number | null, submittedAt: string, dispatchedAt: string | null, startedAt: string | null, endedAt: string | null, user: { id: string, name: string }, site: { id: string, name: string } | null }>, pageInfo: { hasNextPage: boolean } } };

export type DrainSiteMutationVariables = Exact<{
  site: string;
}>;


export type DrainSiteMutation = { drainSite: { id: string, name: string, state: SiteState, latitude: number | null, longitude: number | null, localPolicy: unknown, maxRunningJobs: number | null, agentSeenAt: string | null, queuedJobs: number, metaQueuedJobs: number, runningJobs: number, cpus: number, cpusUsed: number, createdAt: string, load: { at: string, stale: boolean, waitingJobs: number, waitingCpuS: number, busyCpus: number } | null, reservation: { at: string, job: { id: string, name: string | null, application: string, estimateS: number, benchmark: number, cpusPerTask: number } | null, machines: Array<{ tasks: number, machine: { id: string } }> } | null, licenses: Array<{ id: string, kind: string, copies: number, inUse: number }>, machines: Array<{ id: string, name: string, state: MachineState, reason: string | null, silent: boolean, problem: string | null, cpus: number, memoryMb: number, benchmark: number, os: string, architecture: string, cpusUsed: number, memoryUsedMb: number, maxTasks: number | null, tasksUsed: number, heartbeatAt: string | null, agent: { id: string, host: string } | null, measured: { cpus: number, memoryMb: number, model: string | null, benchmark: number, warning: string | null, gpus: Array<{ name: string }> } | null, resources: Array<{ kind: string, amount: number, used: number }>, labels: Array<{ name: string, value: string }>, devices: Array<{ id: string, kind: string, model: string | null, memoryMb: number, shares: number, link: string | null, used: number }>, licenses: Array<{ id: string, kind: string }> }> } };

export type UpdateSiteMutationVariables = Exact<{
  input: UpdateSiteInput;
}>;


export type UpdateSiteMutation = { updateSite: { id: string, name: string, state: SiteState, latitude: number | null, longitude: number | null, localPolicy: unknown, maxRunningJobs: number | null, agentSeenAt: string | null, queuedJobs: number, metaQueuedJobs: number, runningJobs: number, cpus: number, cpusUsed: number, createdAt: string, load: { at: string, stale: boolean, waitingJobs: number, waitingCpuS: number, busyCpus: number } | null, reservation: { at: string, job: { id: string, name: string | null, application: string, estimateS: number, benchmark: number, cpusPerTask: number } | null, machines: Array<{ tasks: number, machine: { id: string } }> } | null, licenses: Array<{ id: string, kind: string, copies: number, inUse: number }>, machines: Array<{ id: string, name: string, state: MachineState, reason: string | null, silent: boolean, problem: string | null, cpus: number, memoryMb: number, benchmark: number, os: string, architecture: string, cpusUsed: number, memoryUsedMb: number, maxTasks: number | null, tasksUsed: number, heartbeatAt: string | null, agent: { id: string, host: string } | null, measured: { cpus: number, memoryMb: number, model: string | null, benchmark: number, warning: string | null, gpus: Array<{ name: string }> } | null, resources: Array<{ kind: string, amount: number, used: number }>, labels: Array<{ name: string, value: string }>, devices: Array<{ id: string, kind: string, model: string | null, memoryMb: number, shares: number, link: string | null, used: number }>, licenses: Array<{ id: string, kind: string }> }> } };

export type RemoveSiteMutationVariables = Exact<{
  site: string;
}>;


export type RemoveSiteMutation = { removeSite: { id: string } };

export type DrainMachineMutationVariables = Exact<{
  machine: string;
}>;


export type DrainMachineMutation = { drainMachine: { id: string, name: string, state: MachineState, reason: string | null, silent: boolean, problem: string | null, cpus: number, memoryMb: number, benchmark: number, os: string, architecture: string, cpusUsed: number, memoryUsedMb: number, maxTasks: number | null, tasksUsed: number, heartbeatAt: string | null, agent: { id: string, host: string } | null, measured: { cpus: number, memoryMb: number, model: string | null, benchmark: number, warning: string | null, gpus: Array<{ name: string }> } | null, resources: Array<{ kind: string, amount: number, used: number }>, labels: Array<{ name: string, value: string }>, devices: Array<{ id: string, kind: string, model: string | null, memoryMb: number, shares: number, link: string | null, used: number }>, licenses: Array<{ id: string, kind: string }> } };

export type UpdateMachineMutationVariables = Exact<{
  input: UpdateMachineInput;
}>;


export type UpdateMachineMutation = { updateMachine: { id: string, name: string, state: MachineState, reason: string | null, silent: boolean, problem: string | null, cpus: number, memoryMb: number, benchmark: number, os: string, architecture: string, cpusUsed: number, memoryUsedMb: number, maxTasks: number | null, tasksUsed: number, heartbeatAt: string | null, agent: { id: string, host: string } | null, measured: { cpus: number, memoryMb: number, model: string | null, benchmark: number, warning: string | null, gpus: Array<{ name: string }> } | null, resources: Array<{ kind: string, amount: number, used: number }>, labels: Array<{ name: string, value: string }>, devices: Array<{ id: string, kind: string, model: string | null, memoryMb: number, shares: number, link: string | null, used: number }>, licenses: Array<{ id: string, kind: string }> } };

export type RemoveMachineMutationVariables = Exact<{
  machine: string;
}>;


export type RemoveMachineMutation = { removeMachine: { id: string } };

export type RegisterMachinesMutationVariables = Exact<{
  inputs: Array<RegisterMachineInput> | RegisterMachineInput;
}>;


export type RegisterMachinesMutation = { registerMachines: Array<{ id: string }> };

export type PriorityTermsQueryVariables = Exact<{
  id: string;
}>;


export type PriorityTermsQuery = { job: { id: string, decisions: { nodes: Array<{ id: string, kind: DecisionKind, jobTerms: Array<{ name: string, value: number }> }> } } | null };

export type HoldPartsFragment = { id: string, kind: HoldKind, name: string | null, reason: string | null, wholeSite: boolean, createdAt: string, user: { id: string, name: string } | null, machines: Array<{ whole: boolean, cpus: number | null, memoryMb: number | null, resources: Array<{ kind: string, amount: number }>, machine: { id: string, name: string } }>, times: Array<{ from: string, to: string | null }> };

export type SiteHoldsQueryVariables = Exact<{
  site: string;
}>;


export type SiteHoldsQuery = { holds: { nodes: Array<{ id: string, kind: HoldKind, name: string | null, reason: string | null, wholeSite: boolean, createdAt: string, user: { id: string, name: string } | null, machines: Array<{ whole: boolean, cpus: number | null, memoryMb: number | null, resources: Array<{ kind: string, amount: number }>, machine: { id: string, name: string } }>, times: Array<{ from: string, to: string | null }> }> } };

export type ReserveSiteMutationVariables = Exact<{
  input: ReserveInput;
}>;


export type ReserveSiteMutation = { reserve: { runsInTheWay: number, hold: { id: string, kind: HoldKind, name: string | null, reason: string | null, wholeSite: boolean, createdAt: string, user: { id: string, name: string } | null, machines: Array<{ whole: boolean, cpus: number | null, memoryMb: number | null, resources: Array<{ kind: string, amount: number }>, machine: { id: string, name: string } }>, times: Array<{ from: string, to: string | null }> } | null } };

export type CancelHoldMutationVariables = Exact<{
  hold: string;
}>;


export type CancelHoldMutation = { cancelHold: { id: string, endedAt: string | null } };

export type JobRowFragment = { id: string, state: JobState, name: string | null, application: string, command: string, groupName: string | null, arrayIndex: number | null, tasks: number, cpusPerTask: number, memoryMbPerTask: number, licenses: Array<string>, estimateS: number, deadline: string | null, deadlineMissed: boolean, priority: number | null, boost: number, cause: EndCause | null, exitCode: number | null, submittedAt: string, dispatchedAt: string | null, startedAt: string | null, endedAt: string | null, user: { id: string, name: string }, site: { id: string, name: string } | null };

export type TermPartsFragment = { name: string, value: number };


export const SitesDocument =
  "query Sites { sites(first: 200) { nodes { id name state agentSeenAt queuedJobs metaQueuedJobs runningJobs maxRunningJobs cpus cpusUsed localPolicy machines { id state silent } } } }" as unknown as TypedDocumentNode<SitesQuery, SitesQueryVariables>;

export const RegisterSiteDocument =
  "mutation RegisterSite($input: RegisterSiteInput!) { registerSite(input: $input) { id name } }" as unknown as TypedDocumentNode<RegisterSiteMutation, RegisterSiteMutationVariables>;

export const SitePageDocument =
  "query SitePage($id: ID!) { node(id: $id) { ... on Site { ...SiteParts } } policy { id version document } } fragment StartParts on Reservation { at job { id name application estimateS benchmark cpusPerTask } machines { tasks machine { id } } } fragment SiteParts on Site { id name state latitude longitude localPolicy maxRunningJobs agentSeenAt queuedJobs metaQueuedJobs runningJobs cpus cpusUsed load { at stale waitingJobs waitingCpuS busyCpus } createdAt reservation { ...StartParts } licenses { id kind copies inUse } machines { ...MachineParts } } fragment MachineParts on Machine { id name state reason silent problem agent { id host } cpus memoryMb benchmark os architecture measured { cpus memoryMb model benchmark warning gpus { name } } cpusUsed memoryUsedMb maxTasks tasksUsed resources { kind amount used } labels { name value } devices { id kind model memoryMb shares link used } heartbeatAt licenses { id kind } }" as unknown as TypedDocumentNode<SitePageQuery, SitePageQueryVariables>;

export const SiteAgentsDocument =
  "query SiteAgents($id: ID!) { node(id: $id) { ... on Site { id agents { id host version protocol simulated registeredAt seenAt problem machines { id name silent } } } } }" as unknown as TypedDocumentNode<SiteAgentsQuery, SiteAgentsQueryVariables>;

export const SitePromisesDocument =
  "query SitePromises($id: ID!) { node(id: $id) { ... on Site { id promises(first: 200) { ...StartParts } } } } fragment StartParts on Reservation { at job { id name application estimateS benchmark cpusPerTask } machines { tasks machine { id } } }" as unknown as TypedDocumentNode<SitePromisesQuery, SitePromisesQueryVariables>;

export const SiteRunsDocument =
  "query SiteRuns($filter: JobFilter!, $first: Int!, $after: String) { jobs( filter: $filter orderBy: {field: SUBMITTED_AT, direction: DESC} first: $first after: $after ) { nodes { id name application state cpusPerTask tasks user { id name } runs { epoch assignedAt startedAt endedAt plannedS cause site { id } allocations { tasks machine { id } } } } pageInfo { hasNextPage endCursor } } }" as unknown as TypedDocumentNode<SiteRunsQuery, SiteRunsQueryVariables>;

export const SiteQueueDocument =
  "query SiteQueue($filter: JobFilter!, $first: Int!) { jobs(filter: $filter, first: $first) { nodes { ...JobRow } pageInfo { hasNextPage } } } fragment JobRow on Job { id state name application command user { id name } site { id name } groupName arrayIndex tasks cpusPerTask memoryMbPerTask licenses estimateS deadline deadlineMissed priority boost cause exitCode submittedAt dispatchedAt startedAt endedAt }" as unknown as TypedDocumentNode<SiteQueueQuery, SiteQueueQueryVariables>;

export const DrainSiteDocument =
  "mutation DrainSite($site: ID!) { drainSite(site: $site) { ...SiteParts } } fragment StartParts on Reservation { at job { id name application estimateS benchmark cpusPerTask } machines { tasks machine { id } } } fragment SiteParts on Site { id name state latitude longitude localPolicy maxRunningJobs agentSeenAt queuedJobs metaQueuedJobs runningJobs cpus cpusUsed load { at stale waitingJobs waitingCpuS busyCpus } createdAt reservation { ...StartParts } licenses { id kind copies inUse } machines { ...MachineParts } } fragment MachineParts on Machine { id name state reason silent problem agent { id host } cpus memoryMb benchmark os architecture measured { cpus memoryMb model benchmark warning gpus { name } } cpusUsed memoryUsedMb maxTasks tasksUsed resources { kind amount used } labels { name value } devices { id kind model memoryMb shares link used } heartbeatAt licenses { id kind } }" as unknown as TypedDocumentNode<DrainSiteMutation, DrainSiteMutationVariables>;

export const UpdateSiteDocument =
  "mutation UpdateSite($input: UpdateSiteInput!) { updateSite(input: $input) { ...SiteParts } } fragment StartParts on Reservation { at job { id name application estimateS benchmark cpusPerTask } machines { tasks machine { id } } } fragment SiteParts on Site { id name state latitude longitude localPolicy maxRunningJobs agentSeenAt queuedJobs metaQueuedJobs runningJobs cpus cpusUsed load { at stale waitingJobs waitingCpuS busyCpus } createdAt reservation { ...StartParts } licenses { id kind copies inUse } machines { ...MachineParts } } fragment MachineParts on Machine { id name state reason silent problem agent { id host } cpus memoryMb benchmark os architecture measured { cpus memoryMb model benchmark warning gpus { name } } cpusUsed memoryUsedMb maxTasks tasksUsed resources { kind amount used } labels { name value } devices { id kind model memoryMb shares link used } heartbeatAt licenses { id kind } }" as unknown as TypedDocumentNode<UpdateSiteMutation, UpdateSiteMutationVariables>;

export const RemoveSiteDocument =
  "mutation RemoveSite($site: ID!) { removeSite(site: $site) { id } }" as unknown as TypedDocumentNode<RemoveSiteMutation, RemoveSiteMutationVariables>;

export const DrainMachineDocument =
  "mutation DrainMachine($machine: ID!) { drainMachine(machine: $machine) { ...MachineParts } } fragment MachineParts on Machine { id name state reason silent problem agent { id host } cpus memoryMb benchmark os architecture measured { cpus memoryMb model benchmark warning gpus { name } } cpusUsed memoryUsedMb maxTasks tasksUsed resources { kind amount used } labels { name value } devices { id kind model memoryMb shares link used } heartbeatAt licenses { id kind } }" as unknown as TypedDocumentNode<DrainMachineMutation, DrainMachineMutationVariables>;

export const UpdateMachineDocument =
  "mutation UpdateMachine($input: UpdateMachineInput!) { updateMachine(input: $input) { ...MachineParts } } fragment MachineParts on Machine { id name state reason silent problem agent { id host } cpus memoryMb benchmark os architecture measured { cpus memoryMb model benchmark warning gpus { name } } cpusUsed memoryUsedMb maxTasks tasksUsed resources { kind amount used } labels { name value } devices { id kind model memoryMb shares link used } heartbeatAt licenses { id kind } }" as unknown as TypedDocumentNode<UpdateMachineMutation, UpdateMachineMutationVariables>;

export const RemoveMachineDocument =
  "mutation RemoveMachine($machine: ID!) { removeMachine(machine: $machine) { id } }" as unknown as TypedDocumentNode<RemoveMachineMutation, RemoveMachineMutationVariables>;

export const RegisterMachinesDocument =
  "mutation RegisterMachines($inputs: [RegisterMachineInput!]!) { registerMachines(inputs: $inputs) { id } }" as unknown as TypedDocumentNode<RegisterMachinesMutation, RegisterMachinesMutationVariables>;

export const PriorityTermsDocument =
  "query PriorityTerms($id: ID!) { job(id: $id) { id decisions(first: 100) { nodes { id kind jobTerms { ...TermParts } } } } } fragment TermParts on Term { name value }" as unknown as TypedDocumentNode<PriorityTermsQuery, PriorityTermsQueryVariables>;

export const SiteHoldsDocument =
  "query SiteHolds($site: ID!) { holds(site: $site, first: 200) { nodes { ...HoldParts } } } fragment HoldParts on Hold { id kind name reason wholeSite createdAt user { id name } machines { whole cpus memoryMb resources { kind amount } machine { id name } } times { from to } }" as unknown as TypedDocumentNode<SiteHoldsQuery, SiteHoldsQueryVariables>;

export const ReserveSiteDocument =
  "mutation ReserveSite($input: ReserveInput!) { reserve(input: $input) { runsInTheWay hold { ...HoldParts } } } fragment HoldParts on Hold { id kind name reason wholeSite createdAt user { id name } machines { whole cpus memoryMb resources { kind amount } machine { id name } } times { from to } }" as unknown as TypedDocumentNode<ReserveSiteMutation, ReserveSiteMutationVariables>;

export const CancelHoldDocument =
  "mutation CancelHold($hold: ID!) { cancelHold(hold: $hold) { id endedAt } }" as unknown as TypedDocumentNode<CancelHoldMutation, CancelHoldMutationVariables>;
