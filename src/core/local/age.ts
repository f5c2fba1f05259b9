/** The age bound of policies under which large jobs could starve. */
import { z } from 'zod';
import type { JobQueue } from '../grid/queue.js';

export const ageBoundS = z
  .number()
  .min(1)
  .max(86_400 * 365)
  .nullable()
  .default(86_400)
  .meta({
    title: 'Longest overtaking',
    description:
      'A job that has waited this long is no longer overtaken; other jobs wait for it. Without this bound, wide and long jobs can starve.',
    unit: 's',
  });

/** Scavengers never are: they keep nobody waiting. */
export const isAged = (queue: JobQueue, slot: number, now: number, boundS: number | null): boolean =>
  boundS !== null && now - (queue.submits[slot] as number) > boundS && !queue.yields(slot);
