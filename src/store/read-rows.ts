/** Rows for people, by the thousand: as JSON arrays from the server, as objects from here. */
import { recordOf } from '../platform/records.js';
import type { Prisma } from './generated/client.js';
import type { Plain } from './rows.js';
import { raw, type Sql, sql } from './sql.js';
import { type Connection, value } from './statement.js';

/** What SQL reads of each field of a row. */
export type Reading<T> = Readonly<Record<keyof T & string, string>>;

/** A time as epoch seconds. */
export const seconds = (column: string): string => `date_part('epoch', ${column})`;

/** The rows of a query, in its order. */
export async function readRows<T>(connection: Connection, reading: Reading<T>, query: Sql): Promise<T[]> {
  const found = await value<unknown[][]>(
    connection,
    sql`SELECT coalesce(json_agg(json_build_array(${raw(Object.values(reading).join(', '))})), '[]') AS v FROM (${query}) v`,
  );
  return rowsOf(reading, found);
}

export function rowsOf<T>(reading: Reading<T>, values: readonly (readonly unknown[])[]): T[] {
  const make = (makers.get(reading) as Make<T> | undefined) ?? recordOf<T>(Object.keys(reading));
  makers.set(reading, make);
  return values.map(make);
}

type Make<T> = (values: readonly unknown[]) => T;
const makers = new WeakMap<object, Make<unknown>>();

/** A record of Prisma's as it is handed out. */
export function plain<T extends object>(record: T): Plain<T> {
  const row: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(record)) {
    if (value instanceof Date) row[name] = value.getTime() / 1000;
    else row[name] = typeof value === 'bigint' ? Number(value) : value;
  }
  return row as Plain<T>;
}

/** A time for Prisma, to the millisecond, which is what is stored. */
export const instant = (atS: number): Date => new Date(Math.round(atS * 1000));

/** JSON for Prisma. */
export const json = (value: unknown): Prisma.InputJsonValue => value as Prisma.InputJsonValue;
