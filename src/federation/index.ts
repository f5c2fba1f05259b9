/** Jobs that peers have run here: `new Federation({ copies, … }).start()`. Its contract is PROTOCOL.md. */
export { DOCUMENTS } from './documents.js';
export { Federation, type FederationOptions } from './federation.js';
