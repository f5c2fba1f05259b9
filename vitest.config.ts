import { defineConfig } from 'vitest/config';

export default defineConfig({
  // graphql 16 comes twice, and vite takes the other copy than Node does for Apollo: they would not know each other's types.
  resolve: { alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }] },
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/globalSetup.ts'],
    // Real processes, databases and sockets: forks isolate them, and two fit a small machine.
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    teardownTimeout: 30_000,
  },
});
