import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { pathOf, SUITES } from './scripts/suites.mjs';
import { PATIENCE_MS, TEST_MS } from './test/support/patience.js';
import { lucide } from './web/lucide.mjs';

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
  ...inFolders(
    'bench',
    'core',
    'docs',
    'experiments',
    'platform',
    'plots',
    'sim',
    'simulator',
    'vectors',
    'words',
  ),
  'web/test/**/*.test.ts',
];
/** The same, with databases. */
const SHARED = inFolders('api', 'client', 'store');

/** What suites of their own run: by its path it can be run like any other. */
const left = Object.values(SUITES)
  .flatMap(({ files = [] }) => files)
  .filter((path) => !process.argv.some((argument) => argument.includes(path)))
  .map((name) => pathOf(name).replace(/\/$/, '/**'));

/** What all kinds have in common. */
const common = {
  plugins: [lucide],
  // graphql 16 comes twice, and vite takes the other copy than Node does for Apollo: they would not know each other's types.
  resolve: { alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }] },
  test: {
    testTimeout: TEST_MS,
    hookTimeout: TEST_MS,
    teardownTimeout: 30_000,
    expect: { poll: { timeout: PATIENCE_MS } },
    setupFiles: ['test/support/seed.ts'],
  },
};
const kind = (name: string, test: object) => ({ ...common, test: { ...common.test, name, ...test } });

export default defineConfig({
  test: {
    // Real processes, databases and sockets: forks isolate them. Three fill two cores, since each waits for others now and then.
    pool: 'forks',
    maxWorkers: 3,
    sequence: { sequencer: ProcessesFirst },
    // Once for all kinds, which would each inherit it if they extended this.
    globalSetup: ['test/support/globalSetup.ts'],
    projects: [
      kind('pure', { include: PURE, isolate: false }),
      kind('shared', { include: SHARED, exclude: left, isolate: false }),
      kind('real', {
        include: ['test/**/*.test.ts'],
        exclude: [...PURE, ...SHARED, ...left],
      }),
    ],
  },
});
