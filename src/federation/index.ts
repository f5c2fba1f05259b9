/** Jobs that peers have run here: `new Federation({ copies, … }).start()`. Its contract is PROTOCOL.md. */
export * as documents from './documents.gql.js';
export { Federation, type FederationOptions } from './federation.js';
