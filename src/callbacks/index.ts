/** Telling others what happens to jobs: webhooks. */
export { type Attempt, Sender } from './sender.js';
export { webhookFollowing, webhookTester } from './webhooks.js';
