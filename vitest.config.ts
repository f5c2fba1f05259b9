import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { PATIENCE_MS, TEST_MS } from './test/support/patience.js';

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
  ...inFolders('core', 'docs', 'experiments', 'platform', 'plots', 'sim', 'simulator', 'vectors', 'words'),
  'web/test/**/*.test.ts',
];
/** The same, with databases. */
const SHARED = inFolders('api', 'store');

/** What commands of its own run (scripts/longer.mjs), and `npm test` does not; by its path it can be run like any other. */
const LONGER = [
  'test/abuse',
  'test/agent/accounts.test.ts',
  'test/agent/agents.test.ts',
  'test/agent/hostile.test.ts',
  'test/agent/isolation.test.ts',
  'test/agent/takeover.test.ts',
  'test/agent/whole.test.ts',
  'test/cli/data.test.ts',
  'test/cli/demo.test.ts',
  'test/cli/experiment.test.ts',
  'test/cli/processes.test.ts',
  'test/cli/production.test.ts',
  'test/cli/start.test.ts',
  'test/cli/trace.test.ts',
  'test/cli/upgrade.test.ts',
  'test/cli/whatif.test.ts',
  'test/clients',
  'test/crash',
  'test/federation/faults.test.ts',
  'test/interrupted',
  'test/shipped',
  'test/slurm',
  'test/web',
];
const left = LONGER.filter(
  (path) => !process.argv.some((argument) => argument.includes(path.replace('.test.ts', ''))),
);

/** What all kinds have in common. */
const common = {
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
      kind('shared', { include: SHARED, isolate: false }),
      kind('real', {
        include: ['test/**/*.test.ts'],
        exclude: [...PURE, ...SHARED, ...left.map((path) => (path.endsWith('.ts') ? path : `${path}/**`))],
      }),
    ],
  },
});
