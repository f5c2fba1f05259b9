/** Rows in the binary format of PostgreSQL's COPY, a length and a value for each column: nothing to quote here, or to parse there. */
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

export const copyText = (table: string, columns: CopyColumns<never>): string =>
  `COPY ${table} (${Object.keys(columns).join(', ')}) FROM STDIN WITH (FORMAT binary)`;

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
