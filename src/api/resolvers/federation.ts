/** Peers, and what of theirs is here. */
import type {
  FederationPeerResolvers,
  ForeignJobResolvers,
  ForeignUserResolvers,
  JobAtPeerResolvers,
} from '../generated/resolvers-types.js';
import { globalId } from '../ids.js';

export const FederationPeer: FederationPeerResolvers = {
  site: ({ siteId }, _, { loaders }) => loaders.site(siteId),
  user: ({ userId }, _, { loaders }) => loaders.user(userId),
  kinds: ({ kinds }) => [...kinds] as never,
  classes: ({ classes }) => [...classes],
  notOffered: (peer, _, { services, loaders }) => services.federation.notOffered(peer, loaders),
  load: ({ load, loadAt }) => load && { ...load, at: loadAt as number },
  users: ({ users }) => [...users],
  foreignJobs: async ({ siteId }, _, { services }) => (await services.federation.counts(siteId)).foreign,
  offeredJobs: async ({ siteId }, _, { services }) => (await services.federation.counts(siteId)).offered,
  claimedJobs: async ({ siteId }, _, { services }) => (await services.federation.counts(siteId)).claimed,
};

export const ForeignJob: ForeignJobResolvers = {
  peer: async ({ siteId }, _, { services }) => (await services.federation.peers([siteId]))[0] as never,
  job: ({ ownerJobId }) => globalId('job', ownerJobId),
  user: ({ ownerUser }) => ownerUser,
};

export const ForeignUser: ForeignUserResolvers = {
  user: ({ userId }, _, { loaders }) => loaders.user(userId),
};

export const JobAtPeer: JobAtPeerResolvers = {
  peer: ({ siteId }, _, { loaders }) => loaders.site(siteId),
};
