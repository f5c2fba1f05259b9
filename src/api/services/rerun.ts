/** What has failed of a group is run again. */
import { ROOT } from '../../core/scheduler.js';
import { MAX } from '../../platform/limits.js';
import type { Rerun } from '../../store/store.js';
import type { Viewer } from '../auth.js';
import { text } from '../check.js';
import { ApiError, badInput, notFound } from '../errors.js';
import type { RerunJobsInput } from '../generated/types.js';
import { globalId, localId } from '../ids.js';
import type { RerunPayloadModel } from '../models.js';
import { guarded, handlesAll, maySeeJob } from './access.js';
import type { ServiceParts } from './parts.js';
import { acceptedOf } from './submissions.js';

/** Has copies of jobs submitted. Throws what that was refused with. */
export async function runAgain(
  { store, limits, now, wake }: ServiceParts,
  viewer: Viewer,
  requestId: string,
  { action, of, ...asked }: Pick<Rerun, 'userId' | 'target' | 'only'> & { action: string; of: string },
): Promise<{ jobIds: readonly number[]; repointed: readonly number[] }> {
  const audit = (jobIds: readonly number[]) => ({
    ...{ userId: viewer.onBehalfBy ?? viewer.userId, requestId, action, reason: null },
    target: of,
    after: {
      ...{ jobs: jobIds.length, first: globalId('job', jobIds[0] as number), only: asked.only },
      ...('jobs' in asked.target ? {} : asked.target),
    },
  });
  const isAudited = viewer.onBehalfBy !== null || handlesAll(viewer);
  const outcome = await store.rerun({
    ...{ ...asked, limit: limits.jobsMax, now: now() },
    share: { jobs: limits.userJobs, bytes: limits.userJobBytes },
    ...(isAudited && { audit }),
  });
  if (outcome.kind === 'too-many')
    throw new ApiError(
      'LIMIT_EXCEEDED',
      `more than ${outcome.limit} jobs would be rerun, or wait for these; accepted: up to ${outcome.limit}; nothing was submitted`,
    );
  const { jobIds, repointed } = acceptedOf(outcome);
  if (jobIds.length > 0) wake([ROOT]);
  return { jobIds, repointed };
}

export function createRerunService(parts: ServiceParts) {
  const { queries } = parts;

  /** The group, and whose jobs are run again. */
  async function targetOf(
    viewer: Viewer,
    { groupName, jobGroupId }: RerunJobsInput,
  ): Promise<{ userId: number; target: { jobGroup: number } | { group: string } }> {
    if (((groupName ?? null) === null) === ((jobGroupId ?? null) === null))
      throw badInput(
        'groupName',
        groupName ? 'groupName and jobGroupId' : 'neither groupName nor jobGroupId',
        'exactly one of the two',
      );
    if (typeof groupName === 'string')
      return { userId: viewer.userId, target: { group: text('groupName', groupName, MAX.nameChars, 1) } };
    const id = jobGroupId as string;
    const [found] = await queries.groupsByIds([localId('group', id, 'jobGroupId')]);
    if (!found || !maySeeJob(viewer, found)) throw notFound('jobGroupId', id);
    return { userId: found.userId, target: { jobGroup: found.id } };
  }

  return guarded({
    async rerunJobs(viewer: Viewer, input: RerunJobsInput, requestId: string): Promise<RerunPayloadModel> {
      const { userId, target } = await targetOf(viewer, input);
      const of = 'jobGroup' in target ? globalId('group', target.jobGroup) : globalId('user', userId);
      const asked = { userId, target, only: input.only, action: 'rerunJobs', of };
      const { jobIds, repointed } = await runAgain(parts, viewer, requestId, asked);
      return { ids: jobIds, repointed };
    },
  });
}
