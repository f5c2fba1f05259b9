/** Jobs that go to peers and come from them, as the API (owner) and the room `federation` (guest) need them. */
import * as copies from './federation/copies.js';
import * as copiedData from './federation/exports.js';
import * as offers from './federation/offers.js';
import type { Database } from './pool.js';

export type { QueueLoad } from '../core/grid-tree/index.js';
export type { Lender, NewCopy, Told } from './federation/copies.js';
export type {
  Asked,
  ClaimResult,
  GrantedJob,
  MachineKind,
  OfferedJob,
  OfferedPreference,
  OfferNews,
  OfferState,
  ToldLoad,
} from './federation/offers.js';
export { charsOfInputs, LOAD_KEPT_S, OFFERS_PAGE } from './federation/offers.js';

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

export type Offers = ReturnType<typeof openOffers>;
export const openOffers = (database: offers.OffersDatabase) => {
  const { tellAgain, exchange, claim, giveBack, unfetchable } = offers;
  const { wantedExports, announceExport, exportFailed, exportFailures, userOfExport, exported } = copiedData;
  const ofData = { wantedExports, announceExport, exportFailed, exportFailures, userOfExport, exported };
  return bound({ tellAgain, exchange, claim, giveBack, unfetchable, ...ofData }, database);
};

export type Copies = ReturnType<typeof openCopies>;
export const openCopies = (database: Pick<Database, 'pool'>) => bound({ ...copies }, database);
