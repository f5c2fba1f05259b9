/** Bulk groups. */
import { isTerminal, type JobState, jobStates } from '../../core/states.js';
import type {
  CancelJobGroupPayloadResolvers,
  JobGroupResolvers,
  SubmitJobGroupPayloadResolvers,
} from '../generated/resolvers-types.js';
import { globalId } from '../ids.js';
import { jobsPage } from './jobs-page.js';

/** Jobs that have not ended, of those counted. */
const live = (counts: Readonly<Partial<Record<JobState, number>>>): number =>
  Object.entries(counts).reduce(
    (sum, [state, jobs]) => (isTerminal(state as JobState) ? sum : sum + jobs),
    0,
  );

export const JobGroup: JobGroupResolvers = {
  id: (group) => globalId('group', group.id),
  user: (group, _, { loaders }) => loaders.user(group.userId),
  state: async (group, _, { loaders }) => (live(await loaders.groupCounts(group.id)) > 0 ? 'OPEN' : 'DONE'),
  counts: async (group, _, { loaders }) => {
    const counts = await loaders.groupCounts(group.id);
    return jobStates.flatMap((state) => (counts[state] ? [{ state, jobs: counts[state] }] : []));
  },
  progress: async (group, _, { loaders }) => 1 - live(await loaders.groupCounts(group.id)) / group.size,
  jobs: (group, page, context, info) =>
    jobsPage({ ...page, filter: { jobGroupId: globalId('group', group.id) } }, context, info),
  submittedAt: (group) => group.createdAt,
};

export const SubmitJobGroupPayload: SubmitJobGroupPayloadResolvers = {
  jobGroup: ({ groupId }, _, { loaders }) => (groupId === null ? null : loaders.findGroup(groupId)),
  jobIds: ({ ids }) => ids.map((id) => globalId('job', id)),
};

export const CancelJobGroupPayload: CancelJobGroupPayloadResolvers = {
  jobGroup: async ({ groupId }, _, { loaders }) => loaders.group(groupId),
};
