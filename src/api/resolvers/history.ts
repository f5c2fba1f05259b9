/** What was used, over time and by whom. */
import type {
  LicensePointResolvers,
  LoadPointResolvers,
  LostWorkResolvers,
  UsageResolvers,
} from '../generated/resolvers-types.js';

export const LoadPoint: LoadPointResolvers = {};

export const LicensePoint: LicensePointResolvers = {};

export const Usage: UsageResolvers = {
  user: ({ userId }, _, { loaders }) => (userId === null ? null : loaders.user(userId)),
  site: ({ siteId }, _, { loaders }) => (siteId === null ? null : loaders.site(siteId)),
  resources: ({ resources }) =>
    resources.map(({ resource, amountS }) => {
      const isLicense = resource.startsWith(LICENSE);
      const kind = isLicense ? resource.slice(LICENSE.length) : resource;
      return { kind, countedOn: isLicense ? 'LICENSES' : 'MACHINES', amountS };
    }),
};

export const LostWork: LostWorkResolvers = {
  site: ({ siteId }, _, { loaders }) => loaders.site(siteId),
};

/** No other kind has a colon in its name. */
const LICENSE = 'license:';
