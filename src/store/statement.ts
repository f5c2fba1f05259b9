/** Running the statements of `sql/` through Prisma's raw interface, in or out of a transaction. */
import type { Prisma, PrismaClient } from './generated/client.js';
import type { Sql } from './sql.js';

export type Connection = PrismaClient | Prisma.TransactionClient;

/**
 * Runs a statement that answers one row with one text column `v` of JSON. One value, because Prisma decodes columns value by value;
 * text, because a json column would be parsed and checked twice. null when there is no row or no value.
 */
export async function read<T>(
  connection: Connection,
  statement: string,
  ...parameters: unknown[]
): Promise<T> {
  const rows = await connection.$queryRawUnsafe<{ v: string | null }[]>(statement, ...parameters);
  const text = rows[0]?.v ?? null;
  return (text === null ? null : JSON.parse(text)) as T;
}

/** The same of a statement with its parameters. */
export const readSql = <T>(connection: Connection, { text, values }: Sql): Promise<T> =>
  read(connection, text, ...values);

/** Runs a statement that answers nothing; tells how many rows it touched. */
export function write(connection: Connection, statement: string, ...parameters: unknown[]): Promise<number> {
  return connection.$executeRawUnsafe(statement, ...parameters);
}
