/** What the package @switchyard/client exports: docs/typescript.md. */
export { Client, type ClientOptions, type Document } from './client.js';
export { ServiceError } from './errors.js';
export * from './operations.gql.js';
export { asked } from './retry.js';
