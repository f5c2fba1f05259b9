/** Pages in the Relay style. A cursor is opaque to clients; inside it is what the order compares, in base64url JSON. */
import { type Limits, MAX } from '../platform/limits.js';
import { ApiError, badInput } from './errors.js';
import type { PageInfo } from './generated/types.js';
import { LATEST_MS } from './scalars.js';

export interface Edge<T> {
  cursor: string;
  node: T;
}

export interface Connection<T> {
  edges: Edge<T>[];
  nodes: T[];
  pageInfo: PageInfo;
}

export interface ForwardArguments {
  first?: number | null | undefined;
  after?: string | null | undefined;
}

export const PAGE_DEFAULT = 100;

/** How many objects a page is to have. Throws BAD_USER_INPUT, or LIMIT_EXCEEDED beyond the cap. */
export function pageSize(field: 'first' | 'last', value: number | null | undefined, limits: Limits): number {
  const size = value ?? PAGE_DEFAULT;
  if (size < 0) throw badInput(field, size, `0 to ${limits.pageMax}`);
  if (size > limits.pageMax) {
    throw new ApiError(
      'LIMIT_EXCEEDED',
      `${field}: ${size} objects are too many for a page; accepted: up to ${limits.pageMax}`,
      { field },
    );
  }
  return size;
}

/**
 * A page from rows that were read one beyond its size, in the order of the list. `cursorOf` says where a row stands.
 * `backward`: the page was read from its end, so that the row beyond is the first one.
 */
export function connection<T>(
  rows: readonly T[],
  size: number,
  cursorOf: (row: T) => string,
  { backward = false, continued = false }: { backward?: boolean; continued?: boolean } = {},
): Connection<T> {
  const beyond = rows.length > size;
  const nodes = !beyond ? [...rows] : backward ? rows.slice(rows.length - size) : rows.slice(0, size);
  // Cursors are made when somebody reads them: a page of thousands is mostly asked for its nodes.
  const edges = nodes.map((node) => new LazyEdge(node, cursorOf));
  return {
    edges,
    nodes,
    pageInfo: {
      hasNextPage: backward ? continued : beyond,
      hasPreviousPage: backward ? beyond : continued,
      startCursor: edges[0]?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
    },
  };
}

class LazyEdge<T> implements Edge<T> {
  constructor(
    readonly node: T,
    private readonly cursorOf: (row: T) => string,
  ) {}
  get cursor(): string {
    return this.cursorOf(this.node);
  }
}

/** A cursor from the values that the order compares. `kind` keeps cursors of different lists apart. */
export function encodeCursor(kind: string, values: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify([kind, ...values])).toString('base64url');
}

const CURSOR_CHARS_MAX = 500;

/** What the columns can be compared with that a list is ordered by. Anybody can write a cursor. */
const PARTS = {
  number: (value: unknown): value is number =>
    Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX.integer,
  bigNumber: (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0,
  /** Seconds since 1970. */
  time: (value: unknown): value is number =>
    typeof value === 'number' && value >= 0 && value <= LATEST_MS / 1000,
  text: (value: unknown): value is string => typeof value === 'string' && !/[\0\p{Surrogate}]/u.test(value),
} as const;
type Part = keyof typeof PARTS;
type PartValue<P extends Part> = P extends 'text' ? string : number;

/** The values of a cursor of this kind, as `parts` says. Throws BAD_USER_INPUT. */
export function decodeCursor<const P extends readonly Part[]>(
  field: string,
  cursor: string,
  kind: string,
  parts: P,
): { [I in keyof P]: PartValue<P[I]> } {
  const refused = badInput(field, cursor, 'a cursor from the same list in the same order');
  if (cursor.length > CURSOR_CHARS_MAX) throw refused;
  let values: unknown;
  try {
    values = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
  } catch {
    throw refused;
  }
  if (!Array.isArray(values) || values.length !== parts.length + 1 || values[0] !== kind) throw refused;
  const [, ...found] = values as unknown[];
  if (!parts.every((part, i) => PARTS[part](found[i]))) throw refused;
  return found as { [I in keyof P]: PartValue<P[I]> };
}

/** The cursor of an event or of a position in the feed: a decimal number. Throws BAD_USER_INPUT. */
export function eventCursor(field: string, cursor: string | null | undefined): string | null {
  if (cursor === null || cursor === undefined) return null;
  if (!/^(0|[1-9][0-9]{0,17})$/.test(cursor))
    throw badInput(field, cursor, 'a cursor from an event, an update or `latestCursor`');
  return cursor;
}
