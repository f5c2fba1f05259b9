/** Telling others what happens to jobs: webhooks and mail. */
export { mailFollowing } from './mail.js';
export { readToken } from './mail-text.js';
export { type Attempt, Sender } from './sender.js';
export { webhookFollowing, webhookTester } from './webhooks.js';
