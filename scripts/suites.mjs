// Suites with commands of their own, and their test files or folders: longer.mjs runs them, and vitest.config.ts leaves them out of `npm test`.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
const seed = { type: 'string' };
const minutes = { type: 'string', default: '5' };
/**
 * `files`: what only it runs; `shared`: what `npm test` runs too, with fewer cases. `prefix`: of the variables by which its tests are told options.
 * `together`: as many files at a time as `npm test` runs, else `atOnce`, by default one.
 */
export const SUITES = {
  // All cases of all random tests, and statistics, which take many.
  properties: { prefix: 'PROPERTIES', options: { seed }, shared: withRandomCases() },
  // The portal in a real browser.
  portal: { options: {}, files: ['test/web/portal', 'test/web/shown', 'test/web/sign-in'], together: true },
  // Whole services, agents, databases and hosts: how they start, work together under accounts and limits, are measured, upgraded and end.
  services: {
    options: {},
    files: [
      'test/agent/accounts',
      'test/agent/adapter',
      'test/agent/agents',
      'test/agent/external',
      'test/agent/isolation',
      'test/agent/measure',
      'test/agent/mig',
      'test/agent/whole',
      'test/callbacks',
      'test/cli/data',
      'test/cli/demo',
      'test/cli/devices',
      'test/cli/graph',
      'test/cli/mail',
      'test/cli/people',
      'test/cli/pools',
      'test/cli/processes',
      'test/cli/preemption',
      'test/cli/production',
      'test/cli/python',
      'test/cli/restart',
      'test/cli/run',
      'test/cli/script',
      'test/cli/serve',
      'test/cli/shell',
      'test/cli/start',
      'test/cli/upgrade',
      'test/cli/webhooks',
      'test/cli/whatif',
      'test/cli/workflows',
      'test/federation/hostile',
      'test/federation/peers',
      'test/federation/restored',
      'test/mcp/mcp',
      'test/store/debian',
      'test/store/embedded',
      'test/tes',
      'test/walks',
      'test/web/sample',
    ],
    together: true,
  },
  // Jobs in images: run by whatever runtime there is, fetched from registries, and counted as data.
  containers: {
    options: {},
    files: ['test/agent/fetched', 'test/agent/images', 'test/agent/images-near', 'test/cli/registries'],
    together: true,
  },
  // Commands that need no service: simulations, sweeps, experiments, and the guides to them.
  research: {
    options: {},
    files: [
      'test/cli/compare',
      'test/cli/experiment',
      'test/cli/figure',
      'test/cli/policy-module',
      'test/cli/simulate',
      'test/cli/sweep',
      'test/cli/tutorial',
    ],
  },
  // Whole processes are killed, frozen, cut off and left without a disk.
  faults: {
    prefix: 'FAULT',
    options: { minutes, seed },
    shared: ['test/engine/tree'],
    files: [
      'test/crash',
      'test/agent/takeover',
      'test/cli/trace',
      'test/federation/faults',
      'test/interrupted',
      'test/web/faults',
    ],
  },
  // Attacks by users and by their jobs.
  abuse: { prefix: 'ABUSE', options: { minutes, seed }, files: ['test/abuse', 'test/agent/hostile'] },
  // A site with a real Slurm, whose processes and ours are killed.
  slurm: {
    prefix: 'SLURM',
    options: { minutes: { type: 'string', default: '1' }, jobs: { type: 'string' }, seed },
    files: ['test/slurm'],
    // Each file has clusters of its own, which wait most of the time.
    atOnce: 2,
  },
  // Dispatch policies over two real clusters, compared.
  clusters: {
    prefix: 'CLUSTERS',
    options: { jobs: { type: 'string', default: '160' }, seed },
    files: ['test/clusters'],
  },
  // Unmodified clients of Slurm, by the commands that are called like Slurm's, and of GA4GH TES.
  clients: {
    options: {},
    files: [
      'test/clients',
      'test/cli/slurm',
      'test/cli/slurm-options',
      'test/cli/slurm-sites',
      'test/cli/slurm-steps',
    ],
    // They mostly wait.
    atOnce: 2,
  },
  // What portals are written with, as published.
  stock: { options: {}, files: ['test/stock'] },
  // The rules of the papers on cases of so many seeds from S on.
  vectors: {
    prefix: 'VECTORS',
    options: { seeds: { type: 'string', default: '10' }, seed },
    shared: ['test/vectors'],
    together: true,
  },
  // What is shipped, built and used as its user does.
  image: { prefix: 'IMAGE', options: {}, files: ['test/shipped/image'] },
  package: {
    prefix: 'PACKAGE',
    options: {},
    files: ['test/platform/packages', 'test/shipped/package'],
  },
};

/** The path of a suite's file, or of its folder with a slash: its name alone may be the beginning of others. */
export function pathOf(name) {
  if (existsSync(join(root, `${name}.test.ts`))) return `${name}.test.ts`;
  if (!existsSync(join(root, name)))
    throw new Error(`scripts/suites.mjs names ${name}, which is neither a test file nor a folder`);
  return name.endsWith('.ts') ? name : `${name}/`;
}

/** The test files that draw cases (test/support/seed.ts). */
function withRandomCases() {
  const tests = readdirSync(join(root, 'test'), { recursive: true }).filter((name) =>
    name.endsWith('.test.ts'),
  );
  const draws = (name) =>
    /'fast-check'|(cases|seeds|part|IN_FULL)\b.*seed\.js'/.test(
      readFileSync(join(root, 'test', name), 'utf8'),
    );
  return tests.filter(draws).map((name) => join('test', name));
}
