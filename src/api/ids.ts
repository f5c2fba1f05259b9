/** Global ids: the type and the number of the row, `job_17`. People can type them; clients treat them as opaque. */
import { badInput } from './errors.js';

export const idTypes = [
  'job',
  'site',
  'scheduler',
  'machine',
  'agent',
  'license',
  'user',
  'policy',
  'decision',
  'event',
  'apikey',
  'session',
  'simulation',
  'dataset',
  'group',
  'webhook',
  'hold',
] as const;
export type IdType = (typeof idTypes)[number];

/** Numbers up to 2^53 − 1, without sign or leading zero: one spelling for each object. */
const PATTERN = /^([a-z]+)_([1-9][0-9]{0,15})$/;

/** Rows of these types count in 64 bits, the others in 32: a number beyond that is no object's. */
const WIDE: ReadonlySet<IdType> = new Set(['job', 'decision', 'event', 'group']);
const fits = (type: IdType, id: number): boolean =>
  Number.isInteger(id) && id > 0 && id <= (WIDE.has(type) ? Number.MAX_SAFE_INTEGER : 0x7fffffff);

export const globalId = (type: IdType, id: number): string => `${type}_${id}`;

/** The type and number of a global id; null when it is not one. */
export function parseGlobalId(id: string): { type: IdType; id: number } | null {
  const match = PATTERN.exec(id);
  if (!match) return null;
  const type = match[1] as IdType;
  const number = Number(match[2]);
  return idTypes.includes(type) && fits(type, number) ? { type, id: number } : null;
}

/** The number of a global id of this type. Throws BAD_USER_INPUT naming the field. */
export function localId(type: IdType, id: string, field: string): number {
  const prefix = `${type}_`;
  if (id.startsWith(prefix)) {
    // The common case by hand: reports and selections carry thousands.
    const number = Number(id.slice(prefix.length));
    if (fits(type, number) && String(number).length === id.length - prefix.length) return number;
  }
  throw badInput(field, id, `an id such as ${type}_17`);
}
