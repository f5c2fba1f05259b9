/** Rows in the binary format of PostgreSQL's COPY, in and out, a length and a value for each column: nothing to quote, or to parse. */
import { storable } from './columns.js';

/** Types of columns, as SQL names them; those with labels (enums) and json as text. */
export type CopyType =
  | 'bigint'
  | 'integer'
  | 'float8'
  | 'boolean'
  | 'text'
  | 'jsonb'
  | 'timestamptz'
  | 'text[]'
  | 'integer[]';

/** By column: its type, and its value of an item. Times are epoch seconds; jsonb is what becomes JSON. */
export type CopyColumns<T> = Readonly<Record<string, readonly [type: CopyType, value: (item: T) => unknown]>>;

/** Without the columns for which no item has a value, where a table is wide and most of it seldom used: they are to have no default. */
export const withValues = <T>(columns: CopyColumns<T>, items: readonly T[]): CopyColumns<T> =>
  Object.fromEntries(
    Object.entries(columns).filter(
      ([, [, value]]) => items.length === 0 || items.some((item) => (value(item) ?? null) !== null),
    ),
  );

export const copyText = (table: string, columns: CopyColumns<never>): string =>
  `COPY ${table} (${Object.keys(columns).join(', ')}) FROM STDIN WITH (FORMAT binary)`;

/** `select`: SQL of what is to be copied out. */
export const copyOutText = (select: string): string => `COPY (${select}) TO STDOUT WITH (FORMAT binary)`;

const CHUNK_BYTES = 256 * 1024;
/** "PGCOPY\n\xff\r\n\0", no flags, no extension. */
const HEADER = Buffer.from('5047434f50590aff0d0a000000000000000000', 'hex');
/** Instead of a number of columns. */
const END = -1;
const NULL = -1;
/** PostgreSQL counts microseconds from the year 2000. */
const EPOCH_2000_S = 946_684_800;
const OID_OF_ELEMENT = { 'text[]': 25, 'integer[]': 23 } as const;

/** The items as chunks of bytes; between two chunks the process can do other work. */
export function* encoded<T>(columns: CopyColumns<T>, items: Iterable<T>): Generator<Buffer> {
  const writer = new Writer();
  writer.raw(HEADER);
  const fields = Object.values(columns);
  for (const item of items) {
    writer.int16(fields.length);
    for (const [type, value] of fields) writer.value(type, value(item));
    if (writer.length >= CHUNK_BYTES) yield writer.take();
  }
  writer.int16(END);
  yield writer.take();
}

/** Values that are there, each with its length before it. */
const write: { readonly [T in CopyType]: (to: Writer, value: never) => void } = {
  text: (to, value: string) => to.text(value),
  jsonb: (to, value: object) => to.text(JSON.stringify(value), 1),
  integer(to, value: number) {
    to.int32(4);
    to.int32(value);
  },
  bigint(to, value: number) {
    to.int32(8);
    to.int64(value);
  },
  timestamptz(to, value: number) {
    to.int32(8);
    to.int64(Math.round((value - EPOCH_2000_S) * 1e6));
  },
  float8(to, value: number) {
    to.int32(8);
    to.float64(value);
  },
  boolean(to, value: boolean) {
    to.int32(1);
    to.byte(value ? 1 : 0);
  },
  'text[]': (to, value: readonly string[]) => to.list('text[]', value),
  'integer[]': (to, value: readonly number[]) => to.list('integer[]', value),
};

class Writer {
  private bytes = Buffer.allocUnsafe(2 * CHUNK_BYTES);
  length = 0;

  /** What was written; what follows goes into a new buffer, for the stream keeps this one until it is sent. */
  take(): Buffer {
    const taken = this.bytes.subarray(0, this.length);
    this.bytes = Buffer.allocUnsafe(2 * CHUNK_BYTES);
    this.length = 0;
    return taken;
  }

  raw(bytes: Buffer): void {
    this.room(bytes.length);
    this.length += bytes.copy(this.bytes, this.length);
  }

  int16(value: number): void {
    this.room(2);
    this.length = this.bytes.writeInt16BE(value, this.length);
  }

  value(type: CopyType, value: unknown): void {
    if (value === null || value === undefined) this.int32(NULL);
    else write[type](this, value as never);
  }

  int32(value: number): void {
    this.room(4);
    this.length = this.bytes.writeInt32BE(value, this.length);
  }

  int64(value: number): void {
    const high = Math.floor(value / 2 ** 32);
    this.int32(high);
    this.room(4);
    this.length = this.bytes.writeUInt32BE(value - high * 2 ** 32, this.length);
  }

  float64(value: number): void {
    this.room(8);
    this.length = this.bytes.writeDoubleBE(value, this.length);
  }

  byte(value: number): void {
    this.room(1);
    this.length = this.bytes.writeInt8(value, this.length);
  }

  /** With its length. `version`: the byte that goes before it, where its type wants one. */
  text(value: string, version?: number): void {
    const text = storable(value);
    const before = version === undefined ? 4 : 5;
    // UTF-8 takes three bytes at most for what is one unit of a string in JavaScript.
    this.room(before + 3 * text.length);
    const size = this.bytes.write(text, this.length + before, 'utf8') + before - 4;
    this.bytes.writeInt32BE(size, this.length);
    if (version !== undefined) this.bytes.writeInt8(version, this.length + 4);
    this.length += 4 + size;
  }

  /** With its length; of one dimension, without nulls. */
  list(type: 'text[]' | 'integer[]', values: readonly unknown[]): void {
    const start = this.length;
    this.int32(0);
    this.int32(values.length > 0 ? 1 : 0);
    this.int32(0);
    this.int32(OID_OF_ELEMENT[type]);
    if (values.length > 0) {
      this.int32(values.length);
      this.int32(1);
    }
    const element = type === 'text[]' ? 'text' : 'integer';
    for (const value of values) this.value(element, value);
    this.bytes.writeInt32BE(this.length - start - 4, start);
  }

  private room(bytes: number): void {
    if (this.length + bytes <= this.bytes.length) return;
    const larger = Buffer.allocUnsafe(2 * (this.length + bytes));
    this.bytes.copy(larger, 0, 0, this.length);
    this.bytes = larger;
  }
}

// Out -----------------------------------------------------------------------------------------------------------------

/** Different texts, lists, documents and ends of rows that are kept of each kind, so that equal ones are one object; longer ones are not. */
const KEPT_MAX = 10_000;
const KEPT_BYTES = 4_096;

type Values = readonly unknown[];

/** Reads rows that are copied out. Values are as `CopyColumns` gives them; those that are not numbers are shared between rows, and not to be changed. */
export class CopyReader {
  private bytes: Buffer = Buffer.alloc(0);
  private view: DataView = new DataView(new ArrayBuffer(0));
  private begun = false;
  /** By column, and in the end of the columns that are read as one, by bytes. */
  private readonly kept: Map<string, unknown>[];
  private readonly row: unknown[];

  /**
   * `own`: columns from here on, which most rows have in common, are the last value of a row, an array: the same one for rows in which they
   * are equal, so it costs little to read them.
   */
  constructor(
    private readonly types: readonly CopyType[],
    private readonly own = types.length,
  ) {
    this.kept = [...types, null].map(() => new Map());
    this.row = new Array(Math.min(own + 1, types.length)).fill(null);
  }

  /** The rows that are whole with the next piece of the stream: one array, valid until the next row. */
  *rows(piece: Buffer): Generator<Values> {
    const bytes = this.bytes.length > 0 ? Buffer.concat([this.bytes, piece]) : piece;
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    let at = 0;
    if (!this.begun) {
      if (bytes.length < HEADER.length) return;
      this.begun = true;
      at = HEADER.length;
    }
    for (let end = this.readRow(at); end > 0; end = this.readRow(at)) {
      yield this.row;
      at = end;
    }
    this.bytes = bytes.subarray(at);
  }

  /** Where the row ends that begins there; 0: it is not all there, or there is none. */
  private readRow(start: number): number {
    const { view, types, own, row } = this;
    const { byteLength } = view;
    if (start + 2 > byteLength || view.getInt16(start) === END) return 0;
    let at = start + 2;
    let alike = at;
    for (let i = 0; i < types.length; i++) {
      if (i === own) alike = at;
      if (at + 4 > byteLength) return 0;
      const size = view.getInt32(at);
      const end = at + 4 + Math.max(size, 0);
      if (end > byteLength) return 0;
      if (i < own) row[i] = this.value(i, at);
      at = end;
    }
    if (own < types.length) row[own] = this.shared(types.length, alike, at);
    return at;
  }

  /** Of the length that is there, and what follows it. */
  private value(column: number, start: number): unknown {
    const { view } = this;
    const size = view.getInt32(start);
    if (size === NULL) return null;
    const at = start + 4;
    switch (this.types[column]) {
      case 'integer':
        return view.getInt32(at);
      case 'float8':
        return view.getFloat64(at);
      case 'bigint':
        return view.getInt32(at) * 2 ** 32 + view.getUint32(at + 4);
      case 'timestamptz':
        // Rounded once, as the server does.
        return ((view.getInt32(at) + EPOCH_HIGH) * 2 ** 32 + (view.getUint32(at + 4) + EPOCH_LOW)) / 1e6;
      case 'boolean':
        return view.getInt8(at) !== 0;
      default:
        return this.shared(column, at, at + size);
    }
  }

  /** `column`: behind the last one, all from `own` on. */
  private shared(column: number, start: number, end: number): unknown {
    if (end - start > KEPT_BYTES) return this.decode(column, start, end);
    const kept = this.kept[column] as Map<string, unknown>;
    const key = this.bytes.toString('latin1', start, end);
    let value = kept.get(key);
    if (value === undefined) {
      value = this.decode(column, start, end);
      if (kept.size >= KEPT_MAX) kept.clear();
      kept.set(key, value);
    }
    return value;
  }

  private decode(column: number, start: number, end: number): unknown {
    const { bytes, own, types } = this;
    if (column < types.length) return decoded(types[column] as CopyType, bytes.subarray(start, end));
    const values: unknown[] = [];
    let at = start;
    for (let i = own; i < types.length; i++) {
      values.push(this.value(i, at));
      at += 4 + Math.max(this.view.getInt32(at), 0);
    }
    return values;
  }
}

const EPOCH_HIGH = Math.floor((EPOCH_2000_S * 1e6) / 2 ** 32);
const EPOCH_LOW = (EPOCH_2000_S * 1e6) % 2 ** 32;

function decoded(type: CopyType, bytes: Buffer): unknown {
  if (type === 'text') return bytes.toString();
  if (type === 'jsonb') return JSON.parse(bytes.toString('utf8', 1));
  const values: unknown[] = [];
  // Dimensions, flags, the type of the elements; how many they are, and from what number they are counted.
  for (let at = bytes.readInt32BE(0) === 0 ? bytes.length : 20; at < bytes.length; ) {
    const size = bytes.readInt32BE(at);
    at += 4;
    values.push(type === 'text[]' ? bytes.toString('utf8', at, at + size) : bytes.readInt32BE(at));
    at += size;
  }
  return values;
}
