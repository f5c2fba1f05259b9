/** Every GraphQL document of the command line in one place: a test checks each against schema.graphql. */

const JOB_FIELDS = `
  id state name application project groupName arrayIndex command arguments environment { name value } workingDirectory
  tasks cpusPerTask memoryMbPerTask licenses os architecture
  estimateS benchmark runTimeLimitS deadline deadlineMissed sandboxMb outputMb restartable launch onTaskFailure
  inputs { dataset { id name } sizeMb site { id name } } originSite { id name } computationShare migratedAt
  priority boost epoch cause message exitCode submittedAt dispatchedAt startedAt endedAt
  user { id name } site { id name }`;
const JOB_LINE =
  'id state name application command arguments cause exitCode submittedAt startedAt endedAt site { id name }';
const SITE_FIELDS = `
  id name state latitude longitude localPolicy maxRunningJobs agentSeenAt queuedJobs runningJobs cpus cpusUsed createdAt
  scheduler { id name } reservation { job { id } at machines { machine { id name } tasks } }`;
const MACHINE_FIELDS = `
  id name state reason silent problem agent { id host } measured { cpus memoryMb os architecture model benchmark warning gpus { name memoryMb } measuredAt }
  cpus cpusUsed memoryMb memoryUsedMb maxTasks tasksUsed benchmark os architecture heartbeatAt
  site { id name } licenses { id kind }`;
const AGENT_FIELDS =
  'id host version protocol simulated registeredAt seenAt problem machines { name silent }';
const LICENSE_FIELDS = 'id kind copies inUse site { id name }';
const USER_FIELDS = `
  id name class role quotaShare active createdAt submissionQuota { limit periodS used }`;
const KEY_FIELDS = 'id name prefix createdAt expiresAt revokedAt lastUsedAt site { id name }';
const POLICY_FIELDS = 'id version document reason revertsTo createdAt author { id name }';
const FIGURES = 'ended neverStarted waitMeanS waitP95S slowdownMean slowdownP95 deadlineMisses utilization';
const COMPARISON = `baseline { ${FIGURES} } candidate { ${FIGURES} } difference { ${FIGURES} }`;
const BIN = 'atS queuedJobs queuedCpus utilization';
const SIMULATION_FIELDS = `
  id state progress createdAt endedAt policyVersion from to reason message user { id name }
  result { jobs leftOut happened { jobs waitMeanS simulatedWaitMeanS acceptedS } all { ${COMPARISON} } userClasses { userClass comparison { ${COMPARISON} } } sites { name comparison { ${COMPARISON} } }
    history { from lengthS binS baseline { ${BIN} } candidate { ${BIN} } } }`;
const PAGE = 'pageInfo { hasNextPage endCursor }';
const UNCHANGED = 'unchanged { id code message }';

export const LATEST_CURSOR = 'query LatestCursor { latestCursor }';

// Jobs
export const SUBMIT = `mutation Submit($input: SubmitJobsInput!) {
  submitJobs(input: $input) { jobIds repeated errors { index field code message } } }`;
export const SUBMIT_FULL = `mutation SubmitFull($input: SubmitJobsInput!) {
  submitJobs(input: $input) { jobIds repeated errors { index field code message } jobs { ${JOB_FIELDS} } } }`;
export const JOBS = `query Jobs($filter: JobFilter, $orderBy: JobOrder, $first: Int, $after: String) {
  jobs(filter: $filter, orderBy: $orderBy, first: $first, after: $after) { nodes { ${JOB_FIELDS} } ${PAGE} } }`;
export const JOB_LINES = `query JobLines($filter: JobFilter, $orderBy: JobOrder, $first: Int, $after: String) {
  jobs(filter: $filter, orderBy: $orderBy, first: $first, after: $after) { nodes { ${JOB_LINE} } ${PAGE} } }`;
export const JOB_COUNT = 'query JobCount($filter: JobFilter) { jobCount(filter: $filter) }';
export const JOB = `query Job($id: ID!) { job(id: $id) { ${JOB_FIELDS}
  preferences { site { id name } os architecture licenses cpusPerTask memoryMbPerTask } scheduler { id name }
  outputs { path keep dataset } files { task path bytes sha256 receivedBytes keptAt keptUntil rateMbPerS }
  runs { epoch site { id name } allocations { machine { id name } tasks } licenses { id kind } policyVersion
    assignedAt plannedS startedAt endedAt exitCode signal cause message cpuS cpuMethod peakMemoryMb peakMemoryMethod
    readMb writtenMb bytesMethod ioWaitS ioWaitMethod
    staging { beganAt endedAt totalMb movedMb predictedS measuredS error } }
  whyWaiting { code message numbers { name value } startsAt earliestStart wouldChange } } }`;
export const JOB_OUTPUT = `query JobOutput($id: ID!, $stream: OutputStream!, $epoch: Int, $task: Int!) {
  job(id: $id) { id state cause message epoch output(stream: $stream, epoch: $epoch, task: $task) { text(maxBytes: 1048576) bytes truncated } } }`;
export const JOB_OUTPUT_FOLLOWED = `subscription JobOutputFollowed($id: ID!, $stream: OutputStream!, $epoch: Int, $task: Int!, $after: String) {
  jobOutput(job: $id, stream: $stream, epoch: $epoch, task: $task, after: $after) { cursor epoch start base64 length last } }`;
export const JOB_TASKS = `query JobTasks($id: ID!, $from: Int!, $first: Int!) { job(id: $id) { runs { tasks(from: $from, first: $first) {
  index machine { id name } state startedAt endedAt exitCode signal cause message cpuS peakMemoryMb } } } }`;
export const JOB_FILES = `query JobFiles($id: ID!, $epoch: Int) {
  job(id: $id) { id epoch files(epoch: $epoch) { task path bytes sha256 keptAt } } }`;
export const WHY_WAITING = 'query WhyWaiting($id: ID!) { job(id: $id) { whyWaiting { code message } } }';
export const NEVER_FITS = `query NeverFits($ids: [ID!]!) { jobs(filter: { ids: $ids, states: [QUEUED] }, first: 20) {
  nodes { id whyWaiting { code message } } } }`;
export const WHY = `query Why($id: ID!) { job(id: $id) { id state cause message site { id name }
  whyWaiting { code message numbers { name value } startsAt earliestStart wouldChange }
  scheduler { name } path { at scheduler { name } site { name } reason message }
  foreign { peer { name } job user } peers { peer { name } state reason path }
  decisions(first: 100) { nodes { id at kind reason message policyVersion cycle from { name } site { name } jobTerms { name value }
    level queued order orderValue respected { job { id } at }
    candidates { site { id name } eligible reason rank terms { name value } } } ${PAGE} } } }`;
export const CANCEL = `mutation Cancel($selection: JobSelection!) { cancelJobs(selection: $selection) { jobIds ${UNCHANGED} } }`;
export const HOLD = `mutation Hold($selection: JobSelection!) { holdJobs(selection: $selection) { jobIds ${UNCHANGED} } }`;
export const RELEASE = `mutation Release($selection: JobSelection!) { releaseJobs(selection: $selection) { jobIds ${UNCHANGED} } }`;
export const REPRIORITIZE = `mutation Reprioritize($selection: JobSelection!, $boost: Int!) {
  reprioritizeJobs(selection: $selection, boost: $boost) { jobIds ${UNCHANGED} } }`;
export const PLACEMENT = `query Placement($job: ID, $spec: JobInput) { placement(job: $job, spec: $spec) {
  policyVersion priority startsAt earliestStart reason message jobTerms { name value } site { id name } allocations { machine { id name } tasks }
  candidates { site { id name } eligible reason rank terms { name value } } } }`;
export const JOB_UPDATED = `subscription JobUpdated($filter: JobFilter, $after: String) {
  jobUpdated(filter: $filter, after: $after) { cursor resyncRequired
    event { at kind sequence fromState toState epoch cause } job { ${JOB_LINE} } } }`;
export const JOB_UPDATED_FULL = `subscription JobUpdatedFull($filter: JobFilter, $after: String) {
  jobUpdated(filter: $filter, after: $after) { cursor resyncRequired
    event { id at kind objectId sequence fromState toState epoch cause } job { ${JOB_FIELDS} } } }`;

// Grid
export const SITES = `query Sites($first: Int, $after: String) { sites(first: $first, after: $after) { nodes { ${SITE_FIELDS} } ${PAGE} } }`;
export const AGENTS = `query Agents($first: Int, $after: String) {
  sites(first: $first, after: $after) { nodes { name agents { ${AGENT_FIELDS} } } ${PAGE} } }`;
export const MACHINES = `query Machines($site: ID, $first: Int, $after: String) {
  machines(site: $site, first: $first, after: $after) { nodes { ${MACHINE_FIELDS} } ${PAGE} } }`;
export const LICENSES = `query Licenses($first: Int, $after: String) {
  licenses(first: $first, after: $after) { nodes { ${LICENSE_FIELDS} } ${PAGE} } }`;
export const REGISTER_SITE = `mutation RegisterSite($input: RegisterSiteInput!) { registerSite(input: $input) { ${SITE_FIELDS} } }`;
export const UPDATE_SITE = `mutation UpdateSite($input: UpdateSiteInput!) { updateSite(input: $input) { ${SITE_FIELDS} } }`;
export const DRAIN_SITE = `mutation DrainSite($site: ID!) { drainSite(site: $site) { ${SITE_FIELDS} } }`;
export const REMOVE_SITE = `mutation RemoveSite($site: ID!) { removeSite(site: $site) { ${SITE_FIELDS} } }`;
export const REGISTER_MACHINES = `mutation RegisterMachines($inputs: [RegisterMachineInput!]!) {
  registerMachines(inputs: $inputs) { ${MACHINE_FIELDS} } }`;
export const UPDATE_MACHINE = `mutation UpdateMachine($input: UpdateMachineInput!) { updateMachine(input: $input) { ${MACHINE_FIELDS} } }`;
export const DRAIN_MACHINE = `mutation DrainMachine($machine: ID!) { drainMachine(machine: $machine) { ${MACHINE_FIELDS} } }`;
export const REMOVE_MACHINE = `mutation RemoveMachine($machine: ID!) { removeMachine(machine: $machine) { ${MACHINE_FIELDS} } }`;
export const REGISTER_LICENSE = `mutation RegisterLicense($input: RegisterLicenseInput!) {
  registerLicense(input: $input) { ${LICENSE_FIELDS} } }`;
export const UPDATE_LICENSE = `mutation UpdateLicense($input: UpdateLicenseInput!) {
  updateLicense(input: $input) { ${LICENSE_FIELDS} } }`;
export const REMOVE_LICENSE = `mutation RemoveLicense($license: ID!) { removeLicense(license: $license) { ${LICENSE_FIELDS} } }`;

// Tree
const STANDING_FIELDS = `holds waiting channels { power } children { id }
  sites { id name state metaQueuedJobs queuedJobs runningJobs }`;
const SCHEDULER_FIELDS = 'id name parent { id name }';
const CHANNEL_FIELDS = `port power classes { os architecture licenses tasks cpusPerTask memoryMbPerTask jobs }
  branches { scheduler { id name } site { id name } port power jobs }`;
export const TREE = `query Tree { tree { ${STANDING_FIELDS} } schedulers { ${SCHEDULER_FIELDS} ${STANDING_FIELDS} } }`;
export const SCHEDULERS = `query Schedulers { schedulers { ${SCHEDULER_FIELDS} } }`;
export const TREE_CHANNELS = `query TreeChannels($id: ID!, $root: Boolean!) {
  tree @include(if: $root) { channels { ${CHANNEL_FIELDS} } } scheduler(id: $id) @skip(if: $root) { channels { ${CHANNEL_FIELDS} } } }`;
export const CREATE_SCHEDULER = `mutation CreateScheduler($input: CreateSchedulerInput!) {
  createScheduler(input: $input) { ${SCHEDULER_FIELDS} } }`;
export const UPDATE_SCHEDULER = `mutation UpdateScheduler($input: UpdateSchedulerInput!) {
  updateScheduler(input: $input) { ${SCHEDULER_FIELDS} } }`;
export const REMOVE_SCHEDULER = `mutation RemoveScheduler($scheduler: ID!) {
  removeScheduler(scheduler: $scheduler) { ${SCHEDULER_FIELDS} } }`;

// Data
const DATASET_FIELDS =
  'id name sizeMb sha256 createdAt replicas { id name } locations { site { id name } location }';
const LINK_FIELDS = 'from { id name } to { id name } bandwidthMbPerS rttS loss measuredAt source';
export const DATASETS = `query Datasets($name: String, $first: Int, $after: String) {
  datasets(name: $name, first: $first, after: $after) { nodes { ${DATASET_FIELDS} } ${PAGE} } }`;
export const CREATE_DATASET = `mutation CreateDataset($input: DatasetInput!) { createDataset(input: $input) { ${DATASET_FIELDS} } }`;
export const UPDATE_DATASET = `mutation UpdateDataset($input: UpdateDatasetInput!) { updateDataset(input: $input) { ${DATASET_FIELDS} } }`;
export const REMOVE_DATASET = `mutation RemoveDataset($dataset: ID!) { removeDataset(dataset: $dataset) { ${DATASET_FIELDS} } }`;
export const SET_REPLICAS = `mutation SetReplicas($dataset: ID!, $add: [ID!]!, $locations: [DatasetLocationInput!]!, $remove: [ID!]!) {
  setReplicas(dataset: $dataset, add: $add, locations: $locations, remove: $remove) { ${DATASET_FIELDS} } }`;
export const IMPORT_DATASETS = `mutation ImportDatasets($datasets: [DatasetInput!]!) {
  importDatasets(datasets: $datasets) { created updated errors { index field message } } }`;
export const LINKS = `query Links($from: ID, $to: ID, $first: Int, $after: String) {
  links(from: $from, to: $to, first: $first, after: $after) { nodes { ${LINK_FIELDS} } ${PAGE} } }`;
export const LINK_HISTORY = `query LinkHistory($from: ID!, $to: ID!) { links(from: $from, to: $to, first: 1) {
  nodes { ${LINK_FIELDS} history(first: 100) { measuredAt bandwidthMbPerS rttS loss } } } }`;
export const SET_LINKS = `mutation SetLinks($links: [LinkInput!]!) { setLinks(links: $links) { ${LINK_FIELDS} } }`;
export const REMOVE_LINK = `mutation RemoveLink($from: ID!, $to: ID!) { removeLink(from: $from, to: $to) { ${LINK_FIELDS} } }`;

// Job ratio
const POINT_FIELDS =
  'cursor application at job { id } site { id name } turnaroundS ioS ioMethod runs computation dataIntensive';
export const RATIO = `query Ratio($application: String!, $last: Int!) { jobRatio(application: $application) {
  application computation dataIntensive source runs cursor averages { turnaroundS executionS ioS }
  history(last: $last) { nodes { ${POINT_FIELDS} } } } }`;
export const RATIO_UPDATED = `subscription RatioUpdated($application: String, $after: String) {
  jobRatioUpdated(application: $application, after: $after) { cursor resyncRequired point { ${POINT_FIELDS} } } }`;

// Bulk groups
const GROUP_FIELDS = 'id name size state counts { state jobs } progress submittedAt user { id name }';
export const SUBMIT_GROUP = `mutation SubmitGroup($input: SubmitJobGroupInput!) {
  submitJobGroup(input: $input) { jobGroup { ${GROUP_FIELDS} } repeated errors { index field code message } } }`;
export const GROUPS = `query Groups($first: Int, $after: String) { jobGroups(first: $first, after: $after) { nodes { ${GROUP_FIELDS} } ${PAGE} } }`;
export const GROUP = `query Group($id: ID!) { jobGroup(id: $id) { ${GROUP_FIELDS} template } }`;
export const CANCEL_GROUP = `mutation CancelGroup($jobGroup: ID!) { cancelJobGroup(jobGroup: $jobGroup) { cancelled jobGroup { ${GROUP_FIELDS} } } }`;

// Fair shares
export const PEERS = `query Peers { peers(first: 1000) { site { id name } alive lastHeardAt queued metaQueued arrivalRate serviceRate congested powerTotal } }`;
export const STANDINGS = `query Standings { userStandings(first: 500) {
  user { id name } site { id name } quotaShare queuedJobs groups(first: 50) { processors jobs threshold priority queue } } }`;

// People
export const USERS = `query Users($first: Int, $after: String) { users(first: $first, after: $after) { nodes { ${USER_FIELDS} } ${PAGE} } }`;
export const REGISTER_USER = `mutation RegisterUser($input: RegisterUserInput!) { registerUser(input: $input) { ${USER_FIELDS} } }`;
export const UPDATE_USER = `mutation UpdateUser($input: UpdateUserInput!) { updateUser(input: $input) { ${USER_FIELDS} } }`;
export const SET_QUOTA = `mutation SetQuota($input: SetQuotaInput!) { setQuota(input: $input) { ${USER_FIELDS} } }`;
export const OWN_KEYS = `query OwnKeys { viewer { id name apiKeys { ${KEY_FIELDS} } } }`;
export const USER_KEYS = `query UserKeys($id: ID!) { node(id: $id) { ... on User { id name apiKeys { ${KEY_FIELDS} } } } }`;
export const CREATE_KEY = `mutation CreateKey($input: CreateApiKeyInput!) { createApiKey(input: $input) { secret apiKey { ${KEY_FIELDS} } } }`;
export const REVOKE_KEY = `mutation RevokeKey($apiKey: ID!) { revokeApiKey(apiKey: $apiKey) { ${KEY_FIELDS} } }`;

// Policy
export const POLICY = `query Policy($version: Int) { policy(version: $version) { ${POLICY_FIELDS} } }`;
export const POLICY_HISTORY = `query PolicyHistory($first: Int, $after: String) {
  policyHistory(first: $first, after: $after) { nodes { ${POLICY_FIELDS} } ${PAGE} } }`;
export const SET_WEIGHTS = `mutation SetWeights($input: SetWeightsInput!) { setWeights(input: $input) { ${POLICY_FIELDS} } }`;
export const UPDATE_POLICY = `mutation UpdatePolicy($input: UpdatePolicyInput!) { updatePolicy(input: $input) { ${POLICY_FIELDS} } }`;
export const REVERT_POLICY = `mutation RevertPolicy($version: Int!, $expectedVersion: Int!, $reason: String!) {
  revertPolicy(version: $version, expectedVersion: $expectedVersion, reason: $reason) { ${POLICY_FIELDS} } }`;

// What-if
export const SIMULATE = `mutation Simulate($input: SimulateInput!) { simulate(input: $input) { ${SIMULATION_FIELDS} } }`;
export const SIMULATION = `query Simulation($id: ID!) { simulation(id: $id) { ${SIMULATION_FIELDS} } }`;
export const SIMULATION_UPDATED = `subscription SimulationUpdated($simulation: ID, $after: String) {
  simulationUpdated(simulation: $simulation, after: $after) { cursor resyncRequired simulation { ${SIMULATION_FIELDS} } } }`;

const PEER =
  'site { id } name url isolated forward neededAfterS hops lostAfterS foreignMax foreignBoost user { name } users { name user { name } } seenAt reachedAt failure foreignJobs offeredJobs claimedJobs';
export const FEDERATION_PEERS = `query FederationPeers { federationPeers { ${PEER} } }`;
export const FEDERATE = `mutation Federate($input: FederationPeerInput!) { federate(input: $input) { peer { ${PEER} } secret } }`;
export const ISOLATE_PEER = `mutation IsolatePeer($peer: ID!) { isolatePeer(peer: $peer) { ${PEER} } }`;
export const REJOIN_PEER = `mutation RejoinPeer($peer: ID!) { rejoinPeer(peer: $peer) { ${PEER} } }`;
export const REMOVE_PEER = `mutation RemovePeer($peer: ID!) { removePeer(peer: $peer) { ${PEER} } }`;
