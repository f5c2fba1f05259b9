/** Federation on Postgres. */
import type { Copies, Offers, Reach } from '../federation.js';
import type { Database } from '../pool.js';
import * as copies from './copies.js';
import * as copiedData from './exports.js';
import * as offers from './offers.js';

type Rest<F> = F extends (database: never, ...rest: infer R) => infer A ? (...rest: R) => A : never;

/** Each operation with the database that it is for. */
function bound<T extends Record<string, (database: never, ...rest: never[]) => unknown>>(
  operations: T,
  database: object,
): { [K in keyof T]: Rest<T[K]> } {
  const entries = Object.entries(operations).map(([name, operation]) => [
    name,
    (...rest: never[]) => operation(database as never, ...rest),
  ]);
  return Object.fromEntries(entries);
}

export const openOffers = (database: Pick<Database, 'pool'> & Reach): Offers => {
  const { tellAgain, exchange, claim, giveBack, standings, unfetchable } = offers;
  return bound({ tellAgain, exchange, claim, giveBack, standings, unfetchable }, database);
};

export const openCopies = (database: Pick<Database, 'pool'>): Copies => bound({ ...copies }, database);

/** Copies of our datasets for peers. */
export type Exports = ReturnType<typeof openExports>;
export const openExports = (database: Pick<Database, 'pool'>) => {
  const { wantedExports, announceExport, exportFailed, exportFailures, userOfExport, exported } = copiedData;
  return bound(
    { wantedExports, announceExport, exportFailed, exportFailures, userOfExport, exported },
    database,
  );
};
