/** Job ratios, their history, and the updates that carry its points. */
import type {
  JobRatioPointResolvers,
  JobRatioResolvers,
  JobRatioUpdateResolvers,
  RunAveragesResolvers,
} from '../generated/resolvers-types.js';
import { visibleJob } from '../services/access.js';

export const JobRatio: JobRatioResolvers = {
  history: ({ application }, page, { services, viewer }) =>
    services.ratios.historyOf(viewer, application, page),
};

export const RunAverages: RunAveragesResolvers = {};

export const JobRatioPoint: JobRatioPointResolvers = {
  cursor: (point) => String(point.id),
  job: ({ jobId }, _, context) => visibleJob(jobId, context),
  site: (point, _, { loaders }) => loaders.site(point.siteId),
  dataIntensive: ({ computation }) => (computation === null ? null : 1 - computation),
};

export const JobRatioUpdate: JobRatioUpdateResolvers = {
  resyncRequired: ({ point }) => point === null,
};
