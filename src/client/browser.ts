/** What the portal has of the client. */
export { errorOf, ServiceError } from './errors.js';
export { asked } from './retry.js';
export { type Document, WebClient } from './web-client.js';
