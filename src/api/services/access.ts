/**
 * Who may do what. The table below is complete: a field of Query, Mutation or Subscription without an entry does not
 * compile, is refused when it is asked for, and fails a test. Whose objects are meant (a USER's own jobs, an AGENT's own
 * site) is each service's matter; the helpers for it are here.
 */
import type { JobRow } from '../../store/rows.js';
import type { Viewer } from '../auth.js';
import { ApiError } from '../errors.js';
import type { Mutation, Query, Subscription, UserRole } from '../generated/types.js';
import type { Asker } from './parts.js';

export type RootField = Exclude<keyof Query | keyof Mutation | keyof Subscription, '__typename'>;

const admins: readonly UserRole[] = ['ADMIN'];
const operators: readonly UserRole[] = ['ADMIN', 'OPERATOR'];
const people: readonly UserRole[] = ['ADMIN', 'OPERATOR', 'USER'];
const everybody: readonly UserRole[] = ['ADMIN', 'OPERATOR', 'USER', 'AGENT'];
const agents: readonly UserRole[] = ['AGENT'];
const peers: readonly UserRole[] = ['PEER'];

export const rules: Readonly<Record<RootField, readonly UserRole[]>> = {
  // Queries
  viewer: everybody,
  node: everybody,
  sites: everybody,
  schedulers: people,
  scheduler: people,
  tree: people,
  machines: everybody,
  images: everybody,
  licenses: people,
  resourceKinds: people,
  holds: people,
  users: operators,
  jobs: people,
  jobCount: people,
  jobCounts: people,
  job: people,
  jobGraph: people,
  jobGroup: people,
  jobGroups: people,
  dataset: people,
  datasets: people,
  removedOutputs: agents,
  wantedExports: agents,
  links: people,
  jobRatio: people,
  congestion: people,
  inputTransfers: people,
  federationPeers: operators,
  userStandings: people,
  loadHistory: people,
  licenseHistory: people,
  resourceHistory: people,
  usage: people,
  lostWork: people,
  policy: people,
  jobClasses: people,
  policyKinds: people,
  policyHistory: people,
  decisions: people,
  events: people,
  webhooks: people,
  registryCredentials: people,
  latestCursor: everybody,
  placement: people,
  audit: admins,
  simulation: operators,
  simulations: operators,
  // Mutations
  submitJobs: people,
  submitJobGroup: people,
  cancelJobGroup: people,
  cancelJobs: people,
  updateJobs: people,
  requeueJobs: people,
  signalJobs: people,
  sendInput: people,
  rerunJobs: people,
  holdJobs: people,
  releaseJobs: people,
  reprioritizeJobs: people,
  createSite: operators,
  updateSite: operators,
  drainSite: operators,
  removeSite: operators,
  createHold: people,
  updateHold: people,
  cancelHold: people,
  createScheduler: admins,
  updateScheduler: admins,
  removeScheduler: admins,
  createMachine: operators,
  createMachines: operators,
  updateMachine: operators,
  drainMachine: operators,
  removeMachine: operators,
  createLicense: operators,
  updateLicense: operators,
  removeLicense: operators,
  createDataset: operators,
  updateDataset: operators,
  removeDataset: operators,
  updateReplicas: operators,
  importDatasets: operators,
  setLinkValues: operators,
  removeLink: operators,
  createUser: admins,
  updateUser: admins,
  createApiKey: people,
  rotateApiKey: people,
  revokeApiKey: people,
  inviteUser: admins,
  changePassword: people,
  endSessions: people,
  setMail: people,
  setMailAddress: admins,
  createWebhook: people,
  updateWebhook: people,
  rotateWebhookSecret: people,
  removeWebhook: people,
  testWebhook: people,
  setRegistryCredential: people,
  removeRegistryCredential: people,
  updateQuota: admins,
  updateWeights: admins,
  updatePolicy: admins,
  revertPolicy: admins,
  createSimulation: operators,
  cancelSimulation: operators,
  registerAgent: agents,
  heartbeat: agents,
  reportLinks: agents,
  reportLoad: agents,
  reportImages: agents,
  reportStaging: agents,
  reportOutput: agents,
  reportUse: agents,
  takeInput: agents,
  takeRegistryCredential: agents,
  keepFiles: ['AGENT', 'PEER'],
  keepDataset: agents,
  exportDataset: agents,
  reportRuns: ['AGENT', 'PEER'],
  setPeer: admins,
  isolatePeer: admins,
  rejoinPeer: admins,
  removePeer: admins,
  exchangeJobs: peers,
  claimJobs: peers,
  returnJobs: peers,
  // Subscriptions
  jobUpdated: people,
  siteUpdated: everybody,
  jobGroupUpdated: people,
  jobOutput: people,
  jobRatioUpdated: people,
  simulationUpdated: operators,
  assignments: agents,
  useAsked: agents,
  runInput: agents,
};

/** Throws FORBIDDEN unless the viewer's role may use the field. What has no rule is nobody's. */
export function authorize(viewer: Viewer, field: RootField): void {
  const allowed: readonly UserRole[] | undefined = rules[field];
  if (allowed?.includes(viewer.role)) return;
  throw new ApiError(
    'FORBIDDEN',
    `${field} requires the role ${allowed?.join(' or ') || '(none)'}; this key has the role ${viewer.role}`,
  );
}

type Operation = (viewer: Viewer, ...rest: never[]) => unknown;

/**
 * Puts the rule of its name in front of each operation of a service. Everything that the resolvers of Query, Mutation and
 * Subscription call has gone through here.
 */
export function guarded<T extends { [K in keyof T]: K extends RootField ? Operation : never }>(
  operations: T,
): T {
  const entries = Object.entries(operations as Record<string, Operation>).map(([field, operation]) => [
    field,
    (viewer: Viewer, ...rest: never[]) => {
      authorize(viewer, field as RootField);
      return operation(viewer, ...rest);
    },
  ]);
  return Object.fromEntries(entries) as T;
}

/** Throws FORBIDDEN for a portal that asks for a user: what it gets is its own key's, and no other secret. */
export function noPortal(viewer: Viewer, field: string, secrets: string): void {
  if (viewer.onBehalfBy !== null)
    throw new ApiError('FORBIDDEN', `${field}: a portal cannot get ${secrets} of the users for whom it acts`);
}

/** ADMIN or OPERATOR: sees and handles everybody's jobs. */
export const handlesAll = (viewer: Viewer): boolean => operators.includes(viewer.role);

/** What of the viewer decides on what a job may say. */
export const submitterOf = (viewer: Viewer): { mayRaise: boolean; userId: number } => ({
  mayRaise: handlesAll(viewer),
  userId: viewer.userId,
});

/** Null: everybody's jobs are the viewer's to see; otherwise only this user's. */
export const ownerOnly = (viewer: Viewer): number | null => (handlesAll(viewer) ? null : viewer.userId);

/** Whether the viewer may see this job. An AGENT sees none: it gets assignments. */
export const maySeeJob = (viewer: Viewer, job: { userId: number }): boolean =>
  handlesAll(viewer) || (viewer.role === 'USER' && job.userId === viewer.userId);

/** Whether the viewer may see this site. */
export const maySeeSite = (viewer: Viewer, siteId: number): boolean =>
  viewer.role === 'AGENT' || viewer.role === 'PEER' ? viewer.siteId === siteId : true;

/** Whether the viewer may see this user. */
export const maySeeUser = (viewer: Viewer, userId: number): boolean =>
  handlesAll(viewer) || userId === viewer.userId;

/** Throws FORBIDDEN unless the viewer is the agent, or the peer, of this site. */
export function ownSite(viewer: Viewer, siteId: number): void {
  if (viewer.siteId === siteId) return;
  throw new ApiError('FORBIDDEN', 'this key is for another site');
}

/** A job that something names; null: the key may not see it, or it has been removed. */
export async function visibleJob(
  id: number,
  { loaders, viewer }: Pick<Asker, 'loaders' | 'viewer'>,
): Promise<JobRow | null> {
  const job = await loaders.findJob(id);
  return job && maySeeJob(viewer, job) ? job : null;
}
