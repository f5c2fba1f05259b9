import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Tests of whole processes go first: at the end one of them alone would keep the others waiting. */
class ProcessesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const slowestLast = ['/test/store/', '/test/engine/', '/test/cli/', '/test/crash/', '/test/web/'];
    const rank = ({ moduleId }: TestSpecification): number =>
      slowestLast.findIndex((folder) => moduleId.includes(folder));
    const sorted = await super.sort(files);
    return sorted.sort((a, b) => rank(b) - rank(a));
  }
}

const inFolders = (...folders: string[]): string[] => folders.map((folder) => `test/${folder}/**/*.test.ts`);

/** Folders whose tests leave nothing behind in their process: the files share it, and load what they test once. */
const PURE = [
  ...inFolders('core', 'docs', 'experiments', 'platform', 'plots', 'sim', 'simulator', 'vectors'),
  'web/test/**/*.test.ts',
];
/** The same, with databases. */
const SHARED = inFolders('api', 'store');

/** Suites that only commands of their own run (scripts/longer.mjs). */
const LONGER = process.env.LONGER ? [] : inFolders('shipped');

export default defineConfig({
  // graphql 16 comes twice, and vite takes the other copy than Node does for Apollo: they would not know each other's types.
  resolve: { alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }] },
  test: {
    // Real processes, databases and sockets: forks isolate them. Three fill two cores, since each waits for others now and then.
    pool: 'forks',
    maxWorkers: 3,
    sequence: { sequencer: ProcessesFirst },
    testTimeout: 60_000,
    hookTimeout: 120_000,
    teardownTimeout: 30_000,
    // A second, as it is by default, is soon over on a machine that is busy.
    expect: { poll: { timeout: 20_000 } },
    setupFiles: ['test/support/seed.ts'],
    globalSetup: ['test/support/globalSetup.ts'],
    projects: [
      { extends: true, test: { name: 'pure', include: PURE, isolate: false } },
      { extends: true, test: { name: 'shared', include: SHARED, isolate: false } },
      {
        extends: true,
        test: { name: 'real', include: ['test/**/*.test.ts'], exclude: [...PURE, ...SHARED, ...LONGER] },
      },
    ],
  },
});
