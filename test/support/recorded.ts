import type { Job } from '../../src/core/index.js';
import type { JobArray } from '../../src/store/images.js';
import { scheduledFields } from '../../src/store/job-fields.js';

/** A job as the store hands it to a simulation. */
export function recorded({ userClass, data, ...job }: Job): JobArray {
  const known: Record<string, unknown> = { ...job, groupId: null };
  const moved = data && { ...data };
  return [
    userClass,
    moved && scheduledFields('DATA').map((field) => moved[field as keyof typeof moved]),
    ...scheduledFields('JOB').map((field) => known[field]),
  ];
}
