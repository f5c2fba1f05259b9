/** The age bound of policies under which large jobs could starve. */
import { z } from 'zod';
import type { JobQueue } from '../grid/queue.js';

/** Seconds after which a waiting job is overtaken no more; null: never, and large jobs may starve. */
export const ageBoundS = z
  .number()
  .min(1)
  .max(86_400 * 365)
  .nullable()
  .default(86_400);

export const isAged = ({ submits }: JobQueue, slot: number, now: number, boundS: number | null): boolean =>
  boundS !== null && now - (submits[slot] as number) > boundS;
