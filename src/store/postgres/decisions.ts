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

/**
 * They have neither triggers nor foreign keys: cheap, and no lock is waited for.
 *
 * @param contextOf the cycle that made one, which may be another for each
 */
export function insertDecisions<D extends Decision>(
  tx: Transaction,
  kind: 'DISPATCH' | 'START' | 'TAKE_BACK' | 'PREEMPT',
  contextOf: (decision: D) => PlanContext,
  decisions: readonly D[],
): Promise<void> {
  return copy(
    tx,
    'decisions',
    {
      job_id: ['bigint', (decision: D) => decision.jobId],
      at: ['timestamptz', (decision) => contextOf(decision).now],
      kind: ['text', () => kind],
      policy_version: ['integer', (decision) => contextOf(decision).policyVersion],
      from_site_id: ['integer', (decision) => decision.fromSiteId],
      site_id: ['integer', (decision) => decision.siteId],
      reason: ['text', (decision) => decision.reason],
      cycle: ['text', (decision) => contextOf(decision).cycle],
      detail: ['text', (decision) => JSON.stringify(decision.explanation)],
    },
    decisions,
  );
}
