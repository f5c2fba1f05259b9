/** Entries of the audit log for what is done to jobs, in the transaction that does it. */
import type { Transaction } from '../pool.js';
import { sql } from '../sql.js';
import { run } from '../statement.js';
import type { AuditEntry } from '../store.js';

export function insertAudit(tx: Transaction, entry: AuditEntry): Promise<number> {
  const { userId, requestId, action, target, reason, after } = entry;
  return run(
    tx,
    sql`
INSERT INTO audits (user_id, request_id, action, target, reason, after)
  VALUES (${userId}, ${requestId}, ${action}, ${target}, ${reason}, ${JSON.stringify(after)}::jsonb)`,
  );
}
