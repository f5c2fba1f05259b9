/** Query, Mutation and Subscription: each field is one call of the service that has its name. */

import { UNBOUNDED } from '../admission/budget.js';
import type { Context } from '../context.js';
import type {
  MutationResolvers,
  QueryResolvers,
  ResolversTypes,
  SubscriptionResolvers,
} from '../generated/resolvers-types.js';
import type { OutputPart } from '../generated/types.js';
import type { Loaders } from '../loaders.js';
import type { JobGroupUpdateModel } from '../models.js';
import { jobsPage } from './jobs-page.js';

export const Query: Required<QueryResolvers> = {
  viewer: (_, _arguments, { services, viewer }) => services.people.viewer(viewer),
  node: async (_, { id }, { services, viewer }) =>
    (await services.nodes.node(viewer, id)) as Awaited<ResolversTypes['Node']> | null,
  sites: (_, page, { services, viewer }) => services.grid.sites(viewer, page),
  schedulers: (_, _arguments, { services, viewer }) => services.tree.schedulers(viewer),
  scheduler: (_, { id }, { services, viewer }) => services.tree.scheduler(viewer, id),
  tree: (_, _arguments, { services, viewer }) => services.tree.tree(viewer),
  machines: (_, { site, ...page }, { services, viewer }) =>
    services.grid.machines(viewer, site ?? null, page),
  licenses: (_, page, { services, viewer }) => services.grid.licenses(viewer, page),
  resourceKinds: (_, _arguments, { services, viewer }) => services.grid.resourceKinds(viewer),
  holds: (_, page, { services, viewer }) => services.holds.holds(viewer, page),
  users: (_, page, { services, viewer }) => services.people.users(viewer, page),
  jobs: (_, options, context, info) => jobsPage(options, context, info),
  jobCounts: (_, args, { services, viewer }) => services.jobs.jobCounts(viewer, args),
  jobCount: (_, { filter }, { services, viewer }) => services.jobs.jobCount(viewer, filter ?? null),
  job: (_, { id }, { services, viewer }) => services.jobs.job(viewer, id),
  jobGraph: (_, asked, { services, viewer }) => services.graph.jobGraph(viewer, asked),
  jobGroup: (_, { id }, { services, viewer }) => services.groups.jobGroup(viewer, id),
  jobGroups: (_, page, { services, viewer }) => services.groups.jobGroups(viewer, page),
  dataset: (_, { id }, { services, viewer }) => services.data.dataset(viewer, id),
  datasets: (_, page, { services, viewer }) => services.data.datasets(viewer, page),
  removedOutputs: (_, { site, jobs }, { services, viewer }) =>
    services.files.removedOutputs(viewer, site, jobs),
  wantedExports: (_, { site }, { services, viewer }) => services.exports.wantedExports(viewer, site),
  links: (_, page, { services, viewer }) => services.data.links(viewer, page),
  jobRatio: (_, { application }, { services, viewer }) => services.ratios.jobRatio(viewer, application),
  congestion: (_, { first }, { services, viewer, budget }) =>
    services.shares.congestion(viewer, first, budget),
  transfers: (_, which, { services, viewer, budget }) => services.shares.transfers(viewer, which, budget),
  federationPeers: (_, _arguments, { services, viewer }) => services.federation.federationPeers(viewer),
  userStandings: (_, { first }, { services, viewer, budget }) =>
    services.shares.userStandings(viewer, first, budget),
  loadHistory: (_, window, { services, viewer, budget }) =>
    services.history.loadHistory(viewer, window, budget),
  licenseHistory: (_, window, { services, viewer, budget }) =>
    services.history.licenseHistory(viewer, window, budget),
  usage: (_, window, { services, viewer, budget }) => services.history.usage(viewer, window, budget),
  lostWork: (_, window, { services, viewer, budget }) => services.history.lostWork(viewer, window, budget),
  policy: (_, { version }, { services, viewer }) => services.policy.policy(viewer, version ?? null),
  jobClasses: (_, _arguments, { services, viewer }) => services.policy.jobClasses(viewer),
  policyKinds: (_, _arguments, { services, viewer }) => services.policy.policyKinds(viewer),
  policyHistory: (_, page, { services, viewer }) => services.policy.policyHistory(viewer, page),
  decisions: (_, { job, ...page }, { services, viewer }) =>
    services.jobs.decisions(viewer, job ?? null, page),
  events: (_, page, { services, viewer }) => services.events.events(viewer, page),
  latestCursor: (_, _arguments, { services, viewer }) => services.events.latestCursor(viewer),
  placement: (_, { job, spec }, { services, viewer, ...asker }) =>
    services.explain.placement(viewer, job ?? null, spec ?? null, asker),
  webhooks: (_, { user }, { services, viewer }) => services.webhooks.webhooks(viewer, user ?? null),
  audit: (_, page, { services, viewer }) => services.people.audit(viewer, page),
  simulation: (_, { id }, { services, viewer }) => services.simulations.simulation(viewer, id),
  simulations: (_, page, { services, viewer }) => services.simulations.simulations(viewer, page),
};

export const Mutation: Required<MutationResolvers> = {
  submitJobs: (_, { input }, { services, viewer, requestId }) =>
    services.jobs.submitJobs(viewer, input, requestId),
  cancelJobs: (_, { input: { selection } }, { services, viewer, requestId }) =>
    services.jobs.cancelJobs(viewer, selection, requestId),
  changeJobs: (_, { input }, { services, viewer, requestId }) =>
    services.jobs.changeJobs(viewer, input, requestId),
  submitJobGroup: (_, { input }, { services, viewer, requestId }) =>
    services.groups.submitJobGroup(viewer, input, requestId),
  cancelJobGroup: (_, { input: { jobGroupId } }, { services, viewer, requestId }) =>
    services.groups.cancelJobGroup(viewer, jobGroupId, requestId),
  requeueJobs: (_, { input: { selection } }, { services, viewer, requestId }) =>
    services.jobs.requeueJobs(viewer, selection, requestId),
  rerunJobs: (_, { input }, { services, viewer, requestId }) =>
    services.rerun.rerunJobs(viewer, input, requestId),
  holdJobs: (_, { input: { selection } }, { services, viewer, requestId }) =>
    services.jobs.holdJobs(viewer, selection, requestId),
  releaseJobs: (_, { input: { selection } }, { services, viewer, requestId }) =>
    services.jobs.releaseJobs(viewer, selection, requestId),
  reprioritizeJobs: (_, { input: { selection, boost } }, { services, viewer, requestId }) =>
    services.jobs.reprioritizeJobs(viewer, selection, boost, requestId),

  registerSite: (_, { input }, { services, viewer, requestId }) =>
    services.grid.registerSite(viewer, input, requestId),
  updateSite: (_, { input }, { services, viewer, requestId }) =>
    services.grid.updateSite(viewer, input, requestId),
  drainSite: (_, { site }, { services, viewer, requestId }) =>
    services.grid.drainSite(viewer, site, requestId),
  removeSite: (_, { site }, { services, viewer, requestId }) =>
    services.grid.removeSite(viewer, site, requestId),
  reserve: (_, { input, dryRun }, { services, viewer, requestId, loaders, budget }) =>
    services.holds.reserve(viewer, input, dryRun, { requestId, loaders, budget }),
  updateHold: (_, { input }, { services, viewer, requestId }) =>
    services.holds.updateHold(viewer, input, requestId),
  cancelHold: (_, { hold }, { services, viewer, requestId }) =>
    services.holds.cancelHold(viewer, hold, requestId),
  createScheduler: (_, { input }, { services, viewer, requestId }) =>
    services.tree.createScheduler(viewer, input, requestId),
  updateScheduler: (_, { input }, { services, viewer, requestId }) =>
    services.tree.updateScheduler(viewer, input, requestId),
  removeScheduler: (_, { scheduler }, { services, viewer, requestId }) =>
    services.tree.removeScheduler(viewer, scheduler, requestId),
  registerMachine: (_, { input }, { services, viewer, requestId }) =>
    services.grid.registerMachine(viewer, input, requestId),
  registerMachines: (_, { inputs }, { services, viewer, requestId }) =>
    services.grid.registerMachines(viewer, inputs, requestId),
  updateMachine: (_, { input }, { services, viewer, requestId }) =>
    services.grid.updateMachine(viewer, input, requestId),
  drainMachine: (_, { machine }, { services, viewer, requestId }) =>
    services.grid.drainMachine(viewer, machine, requestId),
  removeMachine: (_, { machine }, { services, viewer, requestId }) =>
    services.grid.removeMachine(viewer, machine, requestId),
  registerLicense: (_, { input }, { services, viewer, requestId }) =>
    services.grid.registerLicense(viewer, input, requestId),
  updateLicense: (_, { input }, { services, viewer, requestId }) =>
    services.grid.updateLicense(viewer, input, requestId),
  removeLicense: (_, { license }, { services, viewer, requestId }) =>
    services.grid.removeLicense(viewer, license, requestId),

  createDataset: (_, { input }, { services, viewer, requestId }) =>
    services.data.createDataset(viewer, input, requestId),
  updateDataset: (_, { input }, { services, viewer, requestId }) =>
    services.data.updateDataset(viewer, input, requestId),
  removeDataset: (_, { dataset }, { services, viewer, requestId }) =>
    services.data.removeDataset(viewer, dataset, requestId),
  setReplicas: (_, change, { services, viewer, requestId }) =>
    services.data.setReplicas(viewer, change, requestId),
  importDatasets: (_, { datasets }, { services, viewer, requestId }) =>
    services.data.importDatasets(viewer, datasets, requestId),
  setLinks: (_, { links }, { services, viewer, requestId }) =>
    services.data.setLinks(viewer, links, requestId),
  removeLink: (_, { from, to }, { services, viewer, requestId }) =>
    services.data.removeLink(viewer, from, to, requestId),

  registerUser: (_, { input }, { services, viewer, requestId }) =>
    services.people.registerUser(viewer, input, requestId),
  updateUser: (_, { input }, { services, viewer, requestId }) =>
    services.people.updateUser(viewer, input, requestId),
  createApiKey: (_, { input }, { services, viewer, requestId }) =>
    services.people.createApiKey(viewer, input, requestId),
  rotateApiKey: (_, { apiKey, name }, { services, viewer, requestId }) =>
    services.people.rotateApiKey(viewer, apiKey, name, requestId),
  revokeApiKey: (_, { apiKey }, { services, viewer, requestId }) =>
    services.people.revokeApiKey(viewer, apiKey, requestId),
  inviteUser: (_, { input }, { services, viewer, requestId }) =>
    services.signIn.inviteUser(viewer, input, requestId),
  changePassword: (_, { input }, { services, viewer, requestId, budget }) =>
    services.signIn.changePassword(viewer, input, requestId, budget.signal),
  endSessions: (_, { input }, { services, viewer, requestId }) =>
    services.signIn.endSessions(viewer, input, requestId),
  setMail: (_, { kinds }, { services, viewer, requestId }) =>
    services.people.setMail(viewer, kinds, requestId),
  setMailAddress: (_, { user, address }, { services, viewer, requestId }) =>
    services.people.setMailAddress(viewer, user, address ?? null, requestId),
  createWebhook: (_, { input }, { services, viewer, requestId }) =>
    services.webhooks.createWebhook(viewer, input, requestId),
  updateWebhook: (_, { input }, { services, viewer, requestId }) =>
    services.webhooks.updateWebhook(viewer, input, requestId),
  rotateWebhookSecret: (_, { webhook, keepFormerS }, { services, viewer, requestId }) =>
    services.webhooks.rotateWebhookSecret(viewer, webhook, keepFormerS, requestId),
  deleteWebhook: (_, { webhook }, { services, viewer, requestId }) =>
    services.webhooks.deleteWebhook(viewer, webhook, requestId),
  testWebhook: (_, { webhook }, { services, viewer }) => services.webhooks.testWebhook(viewer, webhook),
  setQuota: (_, { input }, { services, viewer, requestId }) =>
    services.people.setQuota(viewer, input, requestId),

  setWeights: (_, { input }, { services, viewer, requestId }) =>
    services.policy.setWeights(viewer, input, requestId),
  updatePolicy: (_, { input }, { services, viewer, requestId }) =>
    services.policy.updatePolicy(viewer, input, requestId),
  revertPolicy: (_, input, { services, viewer, requestId }) =>
    services.policy.revertPolicy(viewer, input, requestId),

  simulate: (_, { input }, { services, viewer, requestId }) =>
    services.simulations.simulate(viewer, input, requestId),
  cancelSimulation: (_, { simulation }, { services, viewer, requestId }) =>
    services.simulations.cancelSimulation(viewer, simulation, requestId),

  federate: (_, { input }, { services, viewer, requestId }) =>
    services.federation.federate(viewer, input, requestId),
  isolatePeer: (_, { peer }, { services, viewer, requestId }) =>
    services.federation.isolatePeer(viewer, peer, requestId),
  rejoinPeer: (_, { peer }, { services, viewer, requestId }) =>
    services.federation.rejoinPeer(viewer, peer, requestId),
  removePeer: (_, { peer }, { services, viewer, requestId }) =>
    services.federation.removePeer(viewer, peer, requestId),
  exchangeJobs: (_, { input }, { services, viewer }) => services.federation.exchangeJobs(viewer, input),
  claimJobs: (_, { offers }, { services, viewer }) => services.federation.claimJobs(viewer, offers),
  returnJobs: (_, { offers }, { services, viewer }) => services.federation.returnJobs(viewer, offers),

  registerAgent: (_, { input }, { services, viewer, requestId }) =>
    services.agents.registerAgent(viewer, input, requestId),
  heartbeat: (_, { site, agent, instance, checkpoints }, { services, viewer }) =>
    services.agents.heartbeat(viewer, site, agent ?? null, instance ?? null, checkpoints ?? []),
  reportStaging: (_, { site, reports }, { services, viewer }) =>
    services.staging.reportStaging(viewer, site, reports),
  reportLinks: (_, { site, measurements }, { services, viewer }) =>
    services.data.reportLinks(viewer, site, measurements),
  reportLoad: (_, { site, agent, load }, { services, viewer }) =>
    services.agents.reportLoad(viewer, site, agent, load),
  reportRuns: async (_, { site, agent, sentAt, reports }, { services, viewer }) => ({
    results: await services.agents.reportRuns(viewer, site, agent ?? null, reports, sentAt ?? null),
  }),
  keepFiles: (_, args, { services, viewer }) => services.files.keepFiles(viewer, args),
  exportDataset: (_, args, { services, viewer }) => services.exports.exportDataset(viewer, args),
  keepDataset: (_, args, { services, viewer, requestId }) =>
    services.files.keepDataset(viewer, args, requestId),
  reportOutput: (_, { site, agent, outputs }, { services, viewer }) =>
    services.agents.reportOutput(viewer, site, agent ?? null, outputs),
};

/** An update is already what its field answers. What it refers to is looked up with the others who hear the same news. */
function answer<T extends { loaders: Loaders | null }>(update: T, _: unknown, context: Context): T {
  context.loaders = update.loaders ?? context.loaders;
  context.budget = context.budget.another();
  return update;
}

export const Subscription: Required<SubscriptionResolvers> = {
  jobUpdated: {
    subscribe: (_, { filter, after }, { services, viewer }) =>
      services.subscriptions.jobUpdated(viewer, filter ?? null, after ?? null),
    resolve: answer,
  },
  siteUpdated: {
    subscribe: (_, { site, after }, { services, viewer }) =>
      services.subscriptions.siteUpdated(viewer, site ?? null, after ?? null),
    resolve: answer,
  },
  simulationUpdated: {
    subscribe: (_, { simulation, after }, { services, viewer }) =>
      services.subscriptions.simulationUpdated(viewer, simulation ?? null, after ?? null),
    resolve: answer,
  },
  jobGroupUpdated: {
    subscribe: (_, { jobGroup }, { services, viewer }) => services.groups.jobGroupUpdated(viewer, jobGroup),
    resolve: (update: JobGroupUpdateModel, _: unknown, context: Context) => answer(update, _, context).group,
  },
  jobOutput: {
    subscribe: (_, args, { services, viewer }) => services.output.jobOutput(viewer, args),
    resolve(part: OutputPart, _: unknown, context: Context) {
      context.budget = context.budget.another();
      return part;
    },
  },
  jobRatioUpdated: {
    subscribe: (_, { application, after }, { services, viewer }) =>
      services.ratios.jobRatioUpdated(viewer, application ?? null, after ?? null),
    resolve: answer,
  },
  assignments: {
    subscribe: (_, { site, agent, after }, { services, viewer }) =>
      services.subscriptions.assignments(viewer, site, agent ?? null, after ?? null),
    // What an agent has to do is bounded by the service itself, and must arrive.
    resolve(batch: ResolversTypes['AssignmentBatch'], _: unknown, context: Context) {
      context.budget = UNBOUNDED;
      return batch;
    },
  },
};
