/** The agent: `new Agent({ runner, … }).start()` with a runner of real processes or of simulated ones. */
export { Agent, type AgentLog, type AgentMachine, type AgentOptions } from './agent.js';
export { type AskLogin, RegistryCredentials } from './credentials.js';
export { findDevices, type HostDevice } from './devices.js';
export * as documents from './documents.gql.js';
export { Adapter } from './external/adapter.js';
export { checkSite, type Finding } from './external/check.js';
export { type Check, conformance } from './external/conformance.js';
export { TermsRules } from './external/rules.js';
export { ExternalRunner } from './external/runner.js';
export type { LocalNode, LocalScheduler } from './external/scheduler.js';
export { Slurm } from './external/slurm.js';
export { SlurmRest } from './external/slurm-rest.js';
export { DataExporter } from './files/exporter.js';
export { OutputKeeper } from './files/keeper.js';
export { HealthCheck } from './health.js';
export type { LinkProbe } from './links.js';
export { hostShape, labelsOf, type Measurement, measureHost, Power } from './measure.js';
export { Accounts } from './process/accounts.js';
export type { FetchOptions } from './process/fetched.js';
export { runtimesOf } from './process/image-runtimes.js';
export { findImageTool, IMAGE_TOOLS, type ImageToolName } from './process/image-tools.js';
export { Isolation, type IsolationMode } from './process/isolation.js';
export { ProcessRunner, type ProcessRunnerOptions } from './process/runner.js';
export type { Assignment, EndCause, LiveRun, Runner, RunReport } from './runner.js';
export { SimulatedRunner, type SimulatedRunnerOptions } from './simulated.js';
export {
  type StageableRunner,
  type StagingReport,
  StagingRunner,
  type StagingSource,
} from './staging/index.js';
export { CLOSED } from './staging/roots.js';
export type { UrlOptions } from './staging/urls.js';
