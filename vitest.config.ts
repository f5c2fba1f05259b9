import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/globalSetup.ts'],
    // Real processes, databases and sockets: forks isolate them, and two fit a small machine.
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    teardownTimeout: 30_000,
    // The numbers for the last line of .ci/run.
    reporters: ['default', ['json', { outputFile: '.test-results/results.json' }]],
  },
});
