/** Entries of the audit log for what is done to jobs, in the transaction that does it. */
import { table } from '../columns.js';
import type { Transaction } from '../pool.js';
import { sql } from '../sql.js';
import { run } from '../statement.js';
import type { AuditEntry } from '../store.js';

export const insertAudit = (tx: Transaction, entry: AuditEntry): Promise<void> => insertAudits(tx, [entry]);

export async function insertAudits(tx: Transaction, entries: readonly AuditEntry[]): Promise<void> {
  if (entries.length === 0) return;
  const items = table('t', entries, {
    user_id: ['integer', ({ userId }) => userId],
    request_id: ['text', ({ requestId }) => requestId],
    action: ['text', ({ action }) => action],
    target: ['text', ({ target }) => target],
    reason: ['text', ({ reason }) => reason],
    after: ['text', ({ after }) => JSON.stringify(after)],
  });
  await run(
    tx,
    sql`
INSERT INTO audits (user_id, request_id, action, target, reason, after)
SELECT user_id, request_id, action, target, reason, after::jsonb FROM ${items} ORDER BY place`,
  );
}
