/**
 * SQL as values: sql`SELECT … WHERE id = ${id}` is a text with $1 and its parameters, and can be part of another one. So each value is
 * written where it is used, and nobody counts parameters.
 */
import { Prisma } from './generated/client.js';

export type Sql = Prisma.Sql;
/** `raw`: text as it is; never use it for input. `join`: several with a separator between them. */
export const { sql, raw, join, empty } = Prisma;

/** All of these; true where there are none. */
export const and = (conditions: readonly Sql[]): Sql =>
  conditions.length === 0 ? sql`true` : join([...conditions], ' AND ');

/** Labels of enums, or other words of ours, as a list: `state IN ${labels(liveStates)}`. */
export const labels = (words: readonly string[]): Sql => raw(`('${words.join("', '")}')`);
