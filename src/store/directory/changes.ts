/**
 * How the directory changes: one transaction with its entry in the audit log, and its event (a trigger's). What would break a promise
 * is refused with a reason, not with an error.
 */

import { list } from '../columns.js';
import { Prisma } from '../generated/client.js';
import { type Database, prismaTransaction } from '../pool.js';
import { json } from '../read-rows.js';
import { sql } from '../sql.js';

/** On whose behalf a change is made, for the audit log. */
export interface Actor {
  /** null: the service itself. */
  userId: number | null;
  requestId: string | null;
  /** The mutation's name where it is not the method's. */
  action?: string;
  reason?: string | null;
}

/** What became of a change. `message` names what stands in its way. */
export type Change<T> = { kind: 'done'; value: T } | { kind: 'refused'; code: RefusalCode; message: string };
type RefusalCode = 'NOT_FOUND' | 'CONFLICT' | 'VERSION_CONFLICT' | 'LIMIT_EXCEEDED';

export type Transaction = Prisma.TransactionClient;

/** Thrown inside a transaction to undo it; the change answers with it. */
export class Refusal extends Error {
  constructor(
    readonly code: RefusalCode,
    message: string,
  ) {
    super(message);
  }
}

export const conflict = (message: string): Refusal => new Refusal('CONFLICT', message);
const notFound = (message: string): Refusal => new Refusal('NOT_FOUND', message);

/** Writes what was and what is: rows, or null. */
export type Note = (target: string, before: unknown, after: unknown) => Promise<void>;
export type Changes = <T>(
  actor: Actor,
  action: string,
  work: (tx: Transaction, note: Note) => Promise<T>,
) => Promise<Change<T>>;

export const changesOf =
  (database: Pick<Database, 'prisma'>): Changes =>
  async (actor, action, work) => {
    try {
      const value = await prismaTransaction(database, (tx) =>
        work(tx, (target, before, after) => audit(tx, actor, actor.action ?? action, target, before, after)),
      );
      return { kind: 'done', value };
    } catch (error) {
      if (error instanceof Refusal) return { kind: 'refused', code: error.code, message: error.message };
      throw error;
    }
  };

async function audit(
  tx: Transaction,
  { userId, reason = null, requestId }: Actor,
  action: string,
  target: string,
  before: unknown,
  after: unknown,
): Promise<void> {
  const value = (of: unknown) => (of === null || of === undefined ? Prisma.DbNull : json(of));
  const data = { userId, action, target, reason, requestId, before: value(before), after: value(after) };
  await tx.audit.create({ data, select: { id: true } });
}

// What a change needs to find -------------------------------------------------------------------------------------------------

export function found<T>(kind: string, id: number, row: T | null): T {
  if (row === null) throw notFound(`there is no ${kind} ${id}`);
  return row;
}

export function inService<T extends { removedAt: unknown }>(kind: string, id: number, row: T | null): T {
  const there = found(kind, id, row);
  if (there.removedAt !== null) throw notFound(`${kind} ${id} is no longer in service`);
  return there;
}

/** All must be in service, and stay it meanwhile. Locks them, shared, in the order of ids. */
export async function shareSites(tx: Transaction, siteIds: readonly number[]): Promise<void> {
  const good = await tx.$queryRaw<{ id: number }[]>(
    sql`SELECT id FROM sites WHERE id = ANY (${list('integer', siteIds)}) AND removed_at IS NULL ORDER BY id FOR SHARE`,
  );
  const known = new Set(good.map(({ id }) => id));
  const bad = siteIds.find((id) => !known.has(id));
  if (bad !== undefined) throw notFound(`there is no site ${bad} in service`);
}

/** Turns a violated unique index into a refusal. */
export async function unique<T>(message: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isUniqueViolation(error)) throw conflict(message);
    throw error;
  }
}

export const isUniqueViolation = (error: unknown): boolean =>
  error instanceof Prisma.PrismaClientKnownRequestError && error.code === 'P2002';

export function firstRepeated(names: readonly string[]): string | null {
  const seen = new Set<string>();
  for (const name of names) {
    if (seen.has(name)) return name;
    seen.add(name);
  }
  return null;
}
