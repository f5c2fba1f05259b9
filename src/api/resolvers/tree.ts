/** Schedulers between the root and sites, and steps of jobs through them. */
import { reasonSentence } from '../../core/index.js';
import type {
  ChannelBranchResolvers,
  JobPreferenceResolvers,
  PathStepResolvers,
  SchedulerResolvers,
  TreeResolvers,
} from '../generated/resolvers-types.js';
import { globalId } from '../ids.js';
import type { Loaders } from '../loaders.js';
import { reasonOf } from '../reasons.js';

export const Scheduler: SchedulerResolvers = {
  id: (scheduler) => globalId('scheduler', scheduler.id),
  parent: ({ parentId }, _, { loaders }) => (parentId === null ? null : loaders.scheduler(parentId)),
  children: (scheduler, _, { loaders }) => loaders.schedulersBelow(scheduler.id),
  sites: (scheduler, _, { loaders }) => loaders.sitesBelow(scheduler.id),
  holds: async ({ id }, _, context) => (await context.services.tree.standing(id, context)).holds,
  waiting: async ({ id }, _, context) => (await context.services.tree.standing(id, context)).waiting,
  channels: async ({ id }, _, context) => (await context.services.tree.standing(id, context)).channels,
};

export const Tree: TreeResolvers = {
  children: (_root, _, { loaders }) => loaders.schedulersBelow(null),
  sites: (_root, _, { loaders }) => loaders.sitesBelow(null),
  holds: async (_root, _, context) => (await context.services.tree.standing(null, context)).holds,
  waiting: async (_root, _, context) => (await context.services.tree.standing(null, context)).waiting,
  channels: async (_root, _, context) => (await context.services.tree.standing(null, context)).channels,
};

const schedulerOf = ({ schedulerId }: { schedulerId?: number | null }, loaders: Loaders) =>
  schedulerId === null || schedulerId === undefined ? null : loaders.scheduler(schedulerId);
const siteOf = ({ siteId }: { siteId?: number | null }, loaders: Loaders) =>
  siteId === null || siteId === undefined ? null : loaders.site(siteId);

export const ChannelBranch: ChannelBranchResolvers = {
  scheduler: (branch, _, { loaders }) => schedulerOf(branch, loaders),
  site: (branch, _, { loaders }) => siteOf(branch, loaders),
};

export const PathStep: PathStepResolvers = {
  scheduler: (step, _, { loaders }) => schedulerOf(step, loaders),
  site: (step, _, { loaders }) => siteOf(step, loaders),
  reason: ({ reason }) => reasonOf(reason),
  message: ({ reason }) => reasonSentence(reason),
};

export const JobPreference: JobPreferenceResolvers = {
  site: (preference, _, { loaders }) => siteOf(preference, loaders),
  os: ({ os }) => os ?? null,
  architecture: ({ architecture }) => architecture ?? null,
  licenses: ({ licenses }) => [...(licenses ?? [])],
  cpusPerTask: ({ cpusPerTask }) => cpusPerTask ?? null,
  memoryMbPerTask: ({ memoryMbPerTask }) => memoryMbPerTask ?? null,
};
