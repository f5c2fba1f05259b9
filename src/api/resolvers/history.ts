/** What was used, over time and by whom. */
import type {
  LicensePointResolvers,
  LoadPointResolvers,
  LostWorkResolvers,
  ResourcePointResolvers,
  UsageResolvers,
} from '../generated/resolvers-types.js';

export const LoadPoint: LoadPointResolvers = {};

export const LicensePoint: LicensePointResolvers = {};

export const ResourcePoint: ResourcePointResolvers = {};

export const Usage: UsageResolvers = {
  user: ({ userId }, _, { loaders }) => (userId === null ? null : loaders.user(userId)),
  site: ({ siteId }, _, { loaders }) => (siteId === null ? null : loaders.site(siteId)),
  resources: async ({ resources }, _, { loaders }) => {
    const ofGrid = resources.some(({ resource }) => resource.startsWith(POOL))
      ? await loaders.gridKinds()
      : NONE;
    return resources.map(({ resource, amountS }) => {
      if (!resource.startsWith(POOL)) return { kind: resource, countedOn: 'MACHINE' as const, amountS };
      const kind = resource.slice(POOL.length);
      return { kind, countedOn: ofGrid.has(kind) ? ('GRID' as const) : ('SITE' as const), amountS };
    });
  },
};

export const LostWork: LostWorkResolvers = {
  site: ({ siteId }, _, { loaders }) => loaders.site(siteId),
};

const NONE: ReadonlySet<string> = new Set();
/** Before the names of kinds that are counted in pools. */
const POOL = 'license:';
