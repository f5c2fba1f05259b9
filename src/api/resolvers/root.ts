/** Query, Mutation and Subscription: each field is one call of the service that has its name. */

import { UNBOUNDED } from '../admission/budget.js';
import type { Context } from '../context.js';
import type {
  MutationResolvers,
  QueryResolvers,
  ResolversTypes,
  SubscriptionResolvers,
} from '../generated/resolvers-types.js';
import type { OutputPart, RunInput } from '../generated/types.js';
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
  machines: (_, { siteId, ...page }, { services, viewer }) =>
    services.grid.machines(viewer, siteId ?? null, page),
  images: (_, { siteId, ...page }, { services, viewer }) =>
    services.grid.images(viewer, siteId ?? null, page),
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
  congestion: (_, page, { services, viewer, budget }) => services.shares.congestion(viewer, page, budget),
  inputTransfers: (_, which, { services, viewer, budget }) =>
    services.shares.inputTransfers(viewer, which, budget),
  federationPeers: (_, _arguments, { services, viewer }) => services.federation.federationPeers(viewer),
  userStandings: (_, { first }, { services, viewer, budget }) =>
    services.shares.userStandings(viewer, first, budget),
  loadHistory: (_, window, { services, viewer, budget }) =>
    services.history.loadHistory(viewer, window, budget),
  licenseHistory: (_, window, { services, viewer, budget }) =>
    services.history.licenseHistory(viewer, window, budget),
  resourceHistory: (_, window, { services, viewer, budget }) =>
    services.history.resourceHistory(viewer, window, budget),
  usage: (_, window, { services, viewer, budget }) => services.history.usage(viewer, window, budget),
  lostWork: (_, window, { services, viewer, budget }) => services.history.lostWork(viewer, window, budget),
  policy: (_, { version }, { services, viewer }) => services.policy.policy(viewer, version ?? null),
  jobClasses: (_, _arguments, { services, viewer }) => services.policy.jobClasses(viewer),
  policyKinds: (_, _arguments, { services, viewer }) => services.policy.policyKinds(viewer),
  policyHistory: (_, page, { services, viewer }) => services.policy.policyHistory(viewer, page),
  decisions: (_, { jobId, ...page }, { services, viewer }) =>
    services.jobs.decisions(viewer, jobId ?? null, page),
  events: (_, page, { services, viewer }) => services.events.events(viewer, page),
  latestCursor: (_, _arguments, { services, viewer }) => services.events.latestCursor(viewer),
  placement: (_, { jobId, spec }, { services, viewer, ...asker }) =>
    services.explain.placement(viewer, jobId ?? null, spec ?? null, asker),
  registryCredentials: (_, __, { services, viewer }) => services.registries.registryCredentials(viewer),
  webhooks: (_, { userId }, { services, viewer }) => services.webhooks.webhooks(viewer, userId ?? null),
  audit: (_, page, { services, viewer }) => services.people.audit(viewer, page),
  simulation: (_, { id }, { services, viewer }) => services.simulations.simulation(viewer, id),
  simulations: (_, page, { services, viewer }) => services.simulations.simulations(viewer, page),
};

export const Mutation: Required<MutationResolvers> = {
  submitJobs: (_, { input }, { services, viewer, requestId }) =>
    services.jobs.submitJobs(viewer, input, requestId),
  cancelJobs: (_, { input: { selection } }, { services, viewer, requestId }) =>
    services.jobs.cancelJobs(viewer, selection, requestId),
  updateJobs: (_, { input }, { services, viewer, requestId }) =>
    services.jobs.updateJobs(viewer, input, requestId),
  submitJobGroup: (_, { input }, { services, viewer, requestId }) =>
    services.groups.submitJobGroup(viewer, input, requestId),
  cancelJobGroup: (_, { input: { jobGroupId } }, { services, viewer, requestId }) =>
    services.groups.cancelJobGroup(viewer, jobGroupId, requestId),
  requeueJobs: (_, { input: { selection } }, { services, viewer, requestId }) =>
    services.jobs.requeueJobs(viewer, selection, requestId),
  signalJobs: (_, { input }, { services, viewer, requestId }) =>
    services.jobs.signalJobs(viewer, input, requestId),
  sendInput: (_, { input }, { services, viewer }) => services.terminals.sendInput(viewer, input),
  rerunJobs: (_, { input }, { services, viewer, requestId }) =>
    services.rerun.rerunJobs(viewer, input, requestId),
  holdJobs: (_, { input: { selection } }, { services, viewer, requestId }) =>
    services.jobs.holdJobs(viewer, selection, requestId),
  releaseJobs: (_, { input: { selection } }, { services, viewer, requestId }) =>
    services.jobs.releaseJobs(viewer, selection, requestId),
  reprioritizeJobs: (_, { input: { selection, boost } }, { services, viewer, requestId }) =>
    services.jobs.reprioritizeJobs(viewer, selection, boost, requestId),

  createSite: async (_, { input }, { services, viewer, requestId }) => ({
    site: await services.grid.createSite(viewer, input, requestId),
  }),
  updateSite: async (_, { input }, { services, viewer, requestId }) => ({
    site: await services.grid.updateSite(viewer, input, requestId),
  }),
  drainSite: async (_, { input }, { services, viewer, requestId }) => ({
    site: await services.grid.drainSite(viewer, input.siteId, requestId),
  }),
  removeSite: async (_, { input }, { services, viewer, requestId }) => ({
    site: await services.grid.removeSite(viewer, input.siteId, requestId),
  }),
  createHold: (_, { input }, { services, viewer, requestId, loaders, budget }) =>
    services.holds.createHold(viewer, input, { requestId, loaders, budget }),
  updateHold: async (_, { input }, { services, viewer, requestId }) => ({
    hold: await services.holds.updateHold(viewer, input, requestId),
  }),
  cancelHold: async (_, { input }, { services, viewer, requestId }) => ({
    hold: await services.holds.cancelHold(viewer, input.holdId, requestId),
  }),
  createScheduler: async (_, { input }, { services, viewer, requestId }) => ({
    scheduler: await services.tree.createScheduler(viewer, input, requestId),
  }),
  updateScheduler: async (_, { input }, { services, viewer, requestId }) => ({
    scheduler: await services.tree.updateScheduler(viewer, input, requestId),
  }),
  removeScheduler: async (_, { input }, { services, viewer, requestId }) => ({
    scheduler: await services.tree.removeScheduler(viewer, input.schedulerId, requestId),
  }),
  createMachine: async (_, { input }, { services, viewer, requestId }) => ({
    machine: await services.grid.createMachine(viewer, input, requestId),
  }),
  createMachines: async (_, { input }, { services, viewer, requestId }) => ({
    machines: await services.grid.createMachines(viewer, input.machines, requestId),
  }),
  updateMachine: async (_, { input }, { services, viewer, requestId }) => ({
    machine: await services.grid.updateMachine(viewer, input, requestId),
  }),
  drainMachine: async (_, { input }, { services, viewer, requestId }) => ({
    machine: await services.grid.drainMachine(viewer, input.machineId, requestId),
  }),
  removeMachine: async (_, { input }, { services, viewer, requestId }) => ({
    machine: await services.grid.removeMachine(viewer, input.machineId, requestId),
  }),
  createLicense: async (_, { input }, { services, viewer, requestId }) => ({
    license: await services.grid.createLicense(viewer, input, requestId),
  }),
  updateLicense: async (_, { input }, { services, viewer, requestId }) => ({
    license: await services.grid.updateLicense(viewer, input, requestId),
  }),
  removeLicense: async (_, { input }, { services, viewer, requestId }) => ({
    license: await services.grid.removeLicense(viewer, input.licenseId, requestId),
  }),

  createDataset: async (_, { input }, { services, viewer, requestId }) => ({
    dataset: await services.data.createDataset(viewer, input, requestId),
  }),
  updateDataset: async (_, { input }, { services, viewer, requestId }) => ({
    dataset: await services.data.updateDataset(viewer, input, requestId),
  }),
  removeDataset: async (_, { input }, { services, viewer, requestId }) => ({
    dataset: await services.data.removeDataset(viewer, input.datasetId, requestId),
  }),
  updateReplicas: async (_, { input }, { services, viewer, requestId }) => ({
    dataset: await services.data.updateReplicas(viewer, input, requestId),
  }),
  importDatasets: (_, { input }, { services, viewer, requestId }) =>
    services.data.importDatasets(viewer, input.datasets, requestId),
  setLinkValues: async (_, { input }, { services, viewer, requestId }) => ({
    links: await services.data.setLinkValues(viewer, input.links, requestId),
  }),
  removeLink: async (_, { input }, { services, viewer, requestId }) => ({
    link: await services.data.removeLink(viewer, input, requestId),
  }),

  createUser: async (_, { input }, { services, viewer, requestId }) => ({
    user: await services.people.createUser(viewer, input, requestId),
  }),
  updateUser: async (_, { input }, { services, viewer, requestId }) => ({
    user: await services.people.updateUser(viewer, input, requestId),
  }),
  createApiKey: (_, { input }, { services, viewer, requestId }) =>
    services.people.createApiKey(viewer, input, requestId),
  rotateApiKey: (_, { input }, { services, viewer, requestId }) =>
    services.people.rotateApiKey(viewer, input, requestId),
  revokeApiKey: async (_, { input }, { services, viewer, requestId }) => ({
    apiKey: await services.people.revokeApiKey(viewer, input.apiKeyId, requestId),
  }),
  inviteUser: (_, { input }, { services, viewer, requestId }) =>
    services.signIn.inviteUser(viewer, input, requestId),
  changePassword: (_, { input }, { services, viewer, requestId, budget }) =>
    services.signIn.changePassword(viewer, input, requestId, budget.signal),
  endSessions: (_, { input }, { services, viewer, requestId }) =>
    services.signIn.endSessions(viewer, input, requestId),
  setMail: async (_, { input }, { services, viewer, requestId }) => ({
    user: await services.people.setMail(viewer, input.kinds, requestId),
  }),
  setMailAddress: async (_, { input }, { services, viewer, requestId }) => ({
    user: await services.people.setMailAddress(viewer, input, requestId),
  }),
  createWebhook: (_, { input }, { services, viewer, requestId }) =>
    services.webhooks.createWebhook(viewer, input, requestId),
  updateWebhook: async (_, { input }, { services, viewer, requestId }) => ({
    webhook: await services.webhooks.updateWebhook(viewer, input, requestId),
  }),
  rotateWebhookSecret: (_, { input }, { services, viewer, requestId }) =>
    services.webhooks.rotateWebhookSecret(viewer, input, requestId),
  removeWebhook: async (_, { input }, { services, viewer, requestId }) => ({
    webhook: await services.webhooks.removeWebhook(viewer, input.webhookId, requestId),
  }),
  testWebhook: async (_, { input }, { services, viewer }) => ({
    test: await services.webhooks.testWebhook(viewer, input.webhookId),
  }),
  setRegistryCredential: async (_, { input }, { services, viewer, requestId }) => ({
    credential: await services.registries.setRegistryCredential(viewer, input, requestId),
  }),
  removeRegistryCredential: async (_, { input }, { services, viewer, requestId }) => ({
    credential: await services.registries.removeRegistryCredential(viewer, input.registry, requestId),
  }),
  updateQuota: async (_, { input }, { services, viewer, requestId }) => ({
    user: await services.people.updateQuota(viewer, input, requestId),
  }),

  updateWeights: async (_, { input }, { services, viewer, requestId }) => ({
    policy: await services.policy.updateWeights(viewer, input, requestId),
  }),
  updatePolicy: async (_, { input }, { services, viewer, requestId }) => ({
    policy: await services.policy.updatePolicy(viewer, input, requestId),
  }),
  revertPolicy: async (_, { input }, { services, viewer, requestId }) => ({
    policy: await services.policy.revertPolicy(viewer, input, requestId),
  }),

  createSimulation: async (_, { input }, { services, viewer, requestId }) => ({
    simulation: await services.simulations.createSimulation(viewer, input, requestId),
  }),
  cancelSimulation: async (_, { input }, { services, viewer, requestId }) => ({
    simulation: await services.simulations.cancelSimulation(viewer, input.simulationId, requestId),
  }),

  setPeer: (_, { input }, { services, viewer, requestId }) =>
    services.federation.setPeer(viewer, input, requestId),
  isolatePeer: async (_, { input }, { services, viewer, requestId }) => ({
    peer: await services.federation.isolatePeer(viewer, input.siteId, requestId),
  }),
  rejoinPeer: async (_, { input }, { services, viewer, requestId }) => ({
    peer: await services.federation.rejoinPeer(viewer, input.siteId, requestId),
  }),
  removePeer: async (_, { input }, { services, viewer, requestId }) => ({
    peer: await services.federation.removePeer(viewer, input.siteId, requestId),
  }),
  exchangeJobs: (_, { input }, { services, viewer }) => services.federation.exchangeJobs(viewer, input),
  claimJobs: (_, { offers }, { services, viewer }) => services.federation.claimJobs(viewer, offers),
  returnJobs: (_, { offers }, { services, viewer }) => services.federation.returnJobs(viewer, offers),

  registerAgent: (_, { input }, { services, viewer, requestId }) =>
    services.agents.registerAgent(viewer, input, requestId),
  heartbeat: (_, { site, agent, instance, checkpoints }, { services, viewer }) =>
    services.agents.heartbeat(viewer, site, agent ?? null, instance ?? null, checkpoints ?? []),
  takeRegistryCredential: (_, { input }, { services, viewer }) =>
    services.registries.takeRegistryCredential(viewer, input),
  reportUse: (_, { input }, { services, viewer }) => services.liveUse.reportUse(viewer, input),
  reportStaging: (_, { site, reports }, { services, viewer }) =>
    services.staging.reportStaging(viewer, site, reports),
  reportLinks: (_, { site, measurements }, { services, viewer }) =>
    services.data.reportLinks(viewer, site, measurements),
  reportLoad: (_, { site, agent, load }, { services, viewer }) =>
    services.agents.reportLoad(viewer, site, agent, load),
  reportImages: (_, { site, agent, images }, { services, viewer }) =>
    services.agents.reportImages(viewer, site, agent, images),
  reportRuns: async (_, { site, agent, sentAt, reports }, { services, viewer }) => ({
    results: await services.agents.reportRuns(viewer, site, agent ?? null, reports, sentAt ?? null),
  }),
  keepFiles: (_, args, { services, viewer }) => services.files.keepFiles(viewer, args),
  exportDataset: (_, args, { services, viewer }) => services.exports.exportDataset(viewer, args),
  keepDataset: (_, args, { services, viewer, requestId }) =>
    services.files.keepDataset(viewer, args, requestId),
  reportOutput: (_, { site, agent, outputs }, { services, viewer }) =>
    services.agents.reportOutput(viewer, site, agent ?? null, outputs),
  takeInput: (_, { site, taken }, { services, viewer }) => services.terminals.takeInput(viewer, site, taken),
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
    subscribe: (_, { siteId, after }, { services, viewer }) =>
      services.subscriptions.siteUpdated(viewer, siteId ?? null, after ?? null),
    resolve: answer,
  },
  simulationUpdated: {
    subscribe: (_, { simulationId, after }, { services, viewer }) =>
      services.subscriptions.simulationUpdated(viewer, simulationId ?? null, after ?? null),
    resolve: answer,
  },
  jobGroupUpdated: {
    subscribe: (_, { jobGroupId }, { services, viewer }) =>
      services.groups.jobGroupUpdated(viewer, jobGroupId),
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
  useAsked: {
    subscribe: (_, { siteId }, { services, viewer }) => services.liveUse.useAsked(viewer, siteId),
    resolve(question: ResolversTypes['UseAsked'], _: unknown, context: Context) {
      context.budget = UNBOUNDED;
      return question;
    },
  },
  runInput: {
    subscribe: (_, { site, agent }, { services, viewer }) => services.terminals.runInput(viewer, site, agent),
    // Its pieces are bounded, and what was typed must arrive.
    resolve(piece: RunInput, _: unknown, context: Context) {
      context.budget = UNBOUNDED;
      return piece;
    },
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
