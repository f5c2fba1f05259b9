/** First come, first served: the first that does not fit stops everyone behind it. */
import { z } from 'zod';
import { byArrival, startHeads } from '../heads.js';
import { localKind } from '../policy.js';

export const fcfs = localKind({
  schema: z.strictObject({ kind: z.literal('fcfs') }),
  label: 'First come, first served',
  about: 'In order of arrival; no job overtakes another.',
  scheduler: () => ({ walk: byArrival, decide: startHeads }),
});
