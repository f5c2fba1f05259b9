/** First come, first served: the first that does not fit stops everyone behind it. */
import { z } from 'zod';
import { workflows } from '../../terms/workflows.js';
import { byWorkflows, startHeads } from '../heads.js';
import { localKind } from '../policy.js';

export const fcfs = localKind({
  schema: z.strictObject({ kind: z.literal('fcfs'), workflows }),
  label: 'First come, first served',
  about: 'In the order of arrival; no job overtakes another.',
  scheduler: (rules) => ({ walk: byWorkflows(rules.workflows), decide: startHeads }),
});
