/** Why jobs were moved, started and taken back: written with what was decided, in the same transaction. */

import type { Transaction } from '../pool.js';
import { copy } from '../statement.js';
import type { PlanContext } from '../store.js';

export interface Decision {
  jobId: number;
  fromSiteId: number | null;
  siteId: number | null;
  /** A reason code. */
  reason: string;
  /** The core's explanation. */
  explanation: unknown;
}

/** They have neither triggers nor foreign keys: cheap, and no lock is waited for. */
export function insertDecisions(
  tx: Transaction,
  kind: 'DISPATCH' | 'START' | 'TAKE_BACK' | 'PREEMPT',
  { now, policyVersion, cycle }: PlanContext,
  decisions: readonly Decision[],
): Promise<void> {
  return copy(
    tx,
    'decisions',
    {
      job_id: ['bigint', (decision: Decision) => decision.jobId],
      at: ['timestamptz', () => now],
      kind: ['text', () => kind],
      policy_version: ['integer', () => policyVersion],
      from_site_id: ['integer', (decision) => decision.fromSiteId],
      site_id: ['integer', (decision) => decision.siteId],
      reason: ['text', (decision) => decision.reason],
      cycle: ['text', () => cycle],
      detail: ['text', (decision) => JSON.stringify(decision.explanation)],
    },
    decisions,
  );
}
