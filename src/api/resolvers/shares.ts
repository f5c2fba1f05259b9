/** Congestion of sites, and what users have in meta-queues. */
import type { SiteCongestionResolvers, UserStandingResolvers } from '../generated/resolvers-types.js';

export const SiteCongestion: SiteCongestionResolvers = {
  site: ({ siteId }, _, { loaders }) => loaders.site(siteId),
  powerTotal: (site) => site.power,
};

export const UserStanding: UserStandingResolvers = {
  user: ({ userId }, _, { loaders }) => loaders.user(userId),
  site: ({ siteId }, _, { loaders }) => (siteId === null ? null : loaders.site(siteId)),
  quotaShare: (standing) => standing.quota,
  queuedJobs: (standing) => standing.jobs,
  groups: ({ groups }, { first }, { services }) => groups.slice(0, services.shares.groupsShown(first)),
};
