/** What composes the API from outside. */
export type { ApiConfig } from './config.js';
export { sha256 } from './documents.js';
export type { ApiMetrics } from './metrics.js';
export { type Api, type ApiParts, createApi, GRAPHQL_PATH } from './server.js';
