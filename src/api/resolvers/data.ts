/** Datasets, links, and what jobs read. */
import { NO_DATASET } from '../../core/model.js';
import type {
  DatasetLocationResolvers,
  DatasetResolvers,
  InputDataResolvers,
  LinkMeasurementResolvers,
  LinkResolvers,
  TransferResolvers,
} from '../generated/resolvers-types.js';
import { globalId } from '../ids.js';
import { handlesAll, visibleJob } from '../services/access.js';

export const Dataset: DatasetResolvers = {
  id: (dataset) => globalId('dataset', dataset.id),
  replicas: async ({ siteIds }, _, { loaders }) => {
    const sites = await Promise.all(siteIds.map((id) => loaders.site(id)));
    return sites.sort((a, b) => (a.name < b.name ? -1 : 1));
  },
  job: ({ jobId }, _, context) => (jobId === null ? null : visibleJob(jobId, context)),
  // A URL may have a password in it.
  locations: async ({ locations }, _, { loaders, viewer }) => {
    if (!handlesAll(viewer)) return [];
    const found = await Promise.all(
      locations.map(async (one) => ({ one, name: (await loaders.site(one.siteId)).name })),
    );
    return found.sort((a, b) => (a.name < b.name ? -1 : 1)).map(({ one }) => one);
  },
};

export const DatasetLocation: DatasetLocationResolvers = {
  site: ({ siteId }, _, { loaders }) => loaders.site(siteId),
};

export const Link: LinkResolvers = {
  from: (link, _, { loaders }) => loaders.site(link.fromSiteId),
  to: (link, _, { loaders }) => loaders.site(link.toSiteId),
  history: (link, { first }, { services }) => services.data.historyOf(link, first),
};

export const LinkMeasurement: LinkMeasurementResolvers = {
  measuredAt: (measured) => ('at' in measured ? measured.at : measured.measuredAt),
};

export const InputData: InputDataResolvers = {
  dataset: (input, _, { loaders }) =>
    'datasetId' in input && input.datasetId !== NO_DATASET ? loaders.dataset(input.datasetId) : null,
  sizeMb: async (input, _, { loaders }) => {
    if ('siteId' in input) return input.sizeMb;
    return input.datasetId === NO_DATASET
      ? (input.from?.expectedMb ?? 0)
      : (await loaders.dataset(input.datasetId)).sizeMb;
  },
  site: (input, _, { loaders }) => ('siteId' in input ? loaders.site(input.siteId) : null),
  from: ({ from }, _, context) => (from ? visibleJob(from.job, context) : null),
  output: ({ from }) => from?.path ?? null,
};

export const Transfer: TransferResolvers = {
  job: ({ jobId }, _, context) => visibleJob(jobId, context),
  dataset: ({ input }, _, { loaders }) => ('datasetId' in input ? loaders.dataset(input.datasetId) : null),
  from: ({ fromSiteId }, _, { loaders }) => loaders.site(fromSiteId),
  to: ({ toSiteId }, _, { loaders }) => loaders.site(toSiteId),
  startsAt: ({ from }) => from,
  endsAt: ({ to }) => to,
};
