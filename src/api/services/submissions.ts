/** What submissions have in common, be it of jobs one by one or of a bulk group. */
import { ROOT } from '../../core/scheduler.js';
import { MAX } from '../../platform/limits.js';
import type { Submission, SubmitResult } from '../../store/store.js';
import type { Viewer } from '../auth.js';
import { text } from '../check.js';
import { ApiError } from '../errors.js';
import { globalId } from '../ids.js';
import type { ServiceParts } from './parts.js';

/** An idempotency key as a client gave it. Throws BAD_USER_INPUT. */
export function checkedKey(key: string | null | undefined): string | null {
  return key === null || key === undefined ? null : text('idempotencyKey', key, MAX.nameChars, 1);
}

/** Whether a submission with this key was accepted before: this one is a retry, or refused for what it differs in. */
export async function isKnown(
  { queries }: Pick<ServiceParts, 'queries'>,
  userId: number,
  key: string | null,
): Promise<boolean> {
  return key !== null && (await queries.idempotencyKeyKnown(userId, key));
}

/** Hands a submission to the store and wakes the root. Throws what it was refused with. */
export async function submitted(
  { store, wake, limits }: Pick<ServiceParts, 'store' | 'wake' | 'limits'>,
  viewer: Viewer,
  requestId: string,
  submission: Omit<Submission, 'share' | 'audit'>,
): Promise<Extract<SubmitResult, { kind: 'accepted' }>> {
  const share = { jobs: limits.userJobs, bytes: limits.userJobBytes };
  const audit = (jobIds: readonly number[]) => ({
    ...{ userId: viewer.onBehalfBy, requestId, action: 'submitOnBehalf', reason: null },
    target: globalId('user', viewer.userId),
    after: { jobs: jobIds.length, first: globalId('job', jobIds[0] as number) },
  });
  const result = await store.submit({ ...submission, share, ...(viewer.onBehalfBy !== null && { audit }) });
  if (result.kind === 'key-reused')
    throw new ApiError(
      'IDEMPOTENCY_KEY_REUSED',
      `idempotencyKey ${JSON.stringify(submission.idempotencyKey)} has been used with other jobs`,
    );
  const accepted = acceptedOf(result);
  // What is held waits for its release, which wakes the root.
  if (!accepted.repeated && submission.jobs.some(({ held }) => !held)) wake([ROOT]);
  return accepted;
}

type Refused = Extract<SubmitResult, { kind: 'gone' | 'share' | 'full' | 'quota' }>;

/** Throws what jobs were refused with. */
export function acceptedOf<A extends { kind: 'accepted' }>(result: A | Refused): A {
  switch (result.kind) {
    case 'accepted':
      return result;
    case 'gone':
      throw new ApiError(
        'NOT_FOUND',
        `${result.jobs.map((id) => globalId('job', id)).join(', ')}, on which the submission depends, has just been deleted`,
      );
    case 'share': {
      const { of, limit, used, asked } = result;
      const what = of === 'jobs' ? 'jobs' : 'bytes of jobs';
      throw new ApiError(
        'LIMIT_EXCEEDED',
        `${asked} ${what} submitted, and this user already has ${used} that have not ended; accepted: up to ${limit} together (viewer.limits)`,
        { limit, used, asked },
      );
    }
    case 'full':
      throw new ApiError(
        'LIMIT_EXCEEDED',
        `the service already has ${result.live} jobs that have not ended; accepted: up to ${result.limit}`,
      );
    case 'quota': {
      const { limit, periodS, used, asked, freesAt } = result;
      const when = freesAt === null ? null : new Date(freesAt * 1000).toISOString();
      throw new ApiError(
        'QUOTA_EXCEEDED',
        `submission quota exceeded: ${asked} jobs submitted, ${used} of ${limit} already used within ${periodS} s; ${when ? `they will be accepted from ${when}` : 'split them into smaller submissions'}`,
        { limit, periodS: periodS, used, asked, freesAt: when },
      );
    }
  }
}
