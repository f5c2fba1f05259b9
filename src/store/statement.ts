/** Running statements on connections of the pool, in or out of a transaction. */
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { type CopyColumns, CopyReader, type CopyType, copyOutText, copyText, encoded } from './copy.js';
import type { Sql } from './sql.js';

export type Connection = pg.Pool | pg.ClientBase;

/** Ids and sums are exact as numbers up to 2^53. JSON is parsed; times are asked for as epoch seconds. */
const types = {
  getTypeParser: ((oid: number, format?: 'text') =>
    oid === pg.types.builtins.INT8 || oid === pg.types.builtins.NUMERIC
      ? Number
      : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
};

interface Statement extends Pick<Sql, 'text' | 'values'> {
  /** Under which it is prepared. */
  name?: string;
}

/** Texts that are prepared at most: each costs every connection some 100 kB of the server's memory. */
const PREPARED_MAX = 100;
const names = new Map<string, string>();

/**
 * A statement that is parsed once for each connection, and planned no more once PostgreSQL finds that its values make no difference: of
 * one of 5 kB that takes 2 ms, where its run on a single event takes 0.2 ms. What values make a difference that is not wanted is hidden from the
 * planner: `(SELECT ${after}::bigint)` rather than a cursor that it finds to be behind nearly all rows.
 */
export function prepared({ text, values }: Sql): Statement {
  let name = names.get(text);
  if (name === undefined) {
    if (names.size >= PREPARED_MAX) return { text, values };
    name = `switchyard_${names.size + 1}`;
    names.set(text, name);
  }
  return { text, values, name };
}

/** The rows that a statement answers. */
export async function rows<T>(connection: Connection, { text, values, name }: Statement): Promise<T[]> {
  return (await (connection as pg.Pool).query({ text, values, name, types })).rows as T[];
}

/** The only row; null when there is none. */
export async function row<T>(connection: Connection, statement: Statement): Promise<T | null> {
  return (await rows<T>(connection, statement))[0] ?? null;
}

/**
 * The only column `v` of the only row; null when there is none. Large answers are read as one JSON value of arrays. For 2 000 rows of
 * 12 columns that takes 4.0 ms of CPU in the server and 1.4 ms here; as rows 1.7 and 3.6 ms; as JSON objects 7.6 and 2.4 ms.
 */
export async function value<T>(connection: Connection, statement: Statement): Promise<T> {
  return ((await row<{ v: T }>(connection, statement))?.v ?? null) as T;
}

/** How many rows a statement touches. */
export async function run(connection: Connection, { text, values, name }: Statement): Promise<number> {
  return (await (connection as pg.Pool).query({ text, values, name })).rowCount ?? 0;
}

/** While it is set, statements are sent without waiting for the answers to those before. */
export type Pipelined = pg.ClientBase & { pipeline: boolean };

/** For statements that are more than a question and an answer: nothing else may be under way on their connection. */
async function alone<T>(tx: pg.ClientBase, work: () => Promise<T>): Promise<T> {
  const client = tx as Pipelined;
  const { pipeline } = client;
  client.pipeline = false;
  try {
    return await work();
  } finally {
    client.pipeline = pipeline;
  }
}

/** Copies items into a table as rows, in their order. 10 000 decisions with 1 kB of JSON each: 60 ms; as INSERT from arrays 140 ms. `followedBy`: a statement after it, in the same message. */
export function copy<T>(
  tx: pg.ClientBase,
  table: string,
  columns: CopyColumns<T>,
  items: Iterable<T>,
  followedBy = '',
): Promise<void> {
  return alone(tx, () =>
    pipeline(encoded(columns, items), tx.query(copyFrom(copyText(table, columns) + followedBy))),
  );
}

/**
 * The rows of a query, given to `take` as they come, one array for all of them: for very many. A million jobs of 29 columns take 3 s of CPU
 * here, and the server a quarter of the time that it needs for JSON. `select` is SQL without parameters.
 */
export function copyOut(
  tx: pg.ClientBase,
  select: string,
  types: readonly CopyType[],
  take: (row: readonly unknown[]) => void,
  own?: number,
): Promise<void> {
  const reader = new CopyReader(types, own);
  return alone(tx, async () => {
    try {
      for await (const piece of tx.query(copyTo(copyOutText(select))))
        for (const row of reader.rows(piece as Buffer)) take(row);
    } catch (error) {
      // The server may be sending still: nothing else can be asked on this connection.
      void (tx as pg.Client).end();
      throw error;
    }
  });
}
