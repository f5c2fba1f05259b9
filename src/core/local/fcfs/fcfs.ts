/** First come, first served: the first that does not fit stops everyone behind it. */
import { z } from 'zod';
import { byArrival, startHeads } from '../heads.js';
import { localKind } from '../policy.js';

export const fcfs = localKind({
  schema: z.strictObject({ kind: z.literal('fcfs') }),
  documentation: { starts: 'in order of arrival, without exception', fields: '' },
  scheduler: () => ({ walk: byArrival, decide: startHeads }),
});
