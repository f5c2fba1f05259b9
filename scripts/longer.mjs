// Suites with commands of their own, since they take longer than `npm test` may: `npm run test:NAME -- --seed S …`. The same seed makes the same
// cases again; without it they are new ones, and the seed is printed.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const seed = { type: 'string' };
const minutes = { type: 'string', default: '5' };
/** What each runs (the folders and files that `npm test` leaves to them are listed in vitest.config.ts), and the variables that it is told by. */
const SUITES = {
  // All cases of all random tests, and statistics, which take many.
  properties: { prefix: 'PROPERTIES', options: { seed }, files: withRandomCases() },
  // The portal in a real browser.
  portal: { options: {}, files: ['test/web/portal', 'test/web/sign-in'], together: true },
  // Whole services, agents and hosts: how they start, work together under accounts and limits, are upgraded and end.
  services: {
    options: {},
    files: [
      ...['accounts', 'agents', 'isolation', 'whole'].map((name) => `test/agent/${name}.test.ts`),
      ...['data', 'demo', 'experiment', 'processes', 'production', 'start', 'upgrade', 'whatif'].map(
        (name) => `test/cli/${name}.test.ts`,
      ),
    ],
    together: true,
  },
  // Whole processes are killed, frozen, cut off and left without a disk.
  faults: {
    prefix: 'FAULT',
    options: { minutes, seed },
    files: [
      'test/crash',
      'test/agent/takeover',
      'test/cli/trace',
      'test/engine/tree',
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
    options: { minutes: { type: 'string', default: '1' }, seed },
    files: ['test/slurm'],
  },
  // Unmodified clients of Slurm, by the commands that are called like Slurm's.
  clients: { options: {}, files: ['test/clients'] },
  // The rules of the papers on cases of so many seeds from S on.
  vectors: {
    prefix: 'VECTORS',
    options: { seeds: { type: 'string', default: '10' }, seed },
    files: ['test/vectors'],
    together: true,
  },
  // What is shipped, built and used as its user does.
  image: { prefix: 'IMAGE', options: {}, files: ['test/shipped/image'] },
  package: { prefix: 'PACKAGE', options: {}, files: ['test/shipped/package'] },
};

/** The test files that draw cases (test/support/seed.ts). */
function withRandomCases() {
  const tests = readdirSync(join(root, 'test'), { recursive: true }).filter((name) =>
    name.endsWith('.test.ts'),
  );
  const draws = (name) =>
    /'fast-check'|(cases|seeds|IN_FULL)\b.*seed\.js'/.test(readFileSync(join(root, 'test', name), 'utf8'));
  return tests.filter(draws).map((name) => join('test', name));
}

const { prefix, options, files, together = false } = SUITES[process.argv[2]];
const { values } = parseArgs({ args: process.argv.slice(3), options });
for (const [name, value] of Object.entries(values)) {
  if (!(Number(value) > 0)) {
    console.error(`--${name}: ${value} is not accepted; accepted: a number above 0`);
    process.exit(2);
  }
}
const settings = Object.entries(values).map(([name, value]) => [`${prefix}_${name.toUpperCase()}`, value]);
const env = {
  ...process.env,
  ...(prefix && { [prefix]: '1' }),
  ...Object.fromEntries(settings),
  ...(values.seed && { TEST_SEED: values.seed }),
};
const vitest = join(root, 'node_modules/vitest/vitest.mjs');
// One file after the other where they are not said to go together: suites that measure how soon work goes on would measure one another.
const alone = together ? [] : ['--no-file-parallelism'];
const { status } = spawnSync(process.execPath, [vitest, 'run', ...files, ...alone, '--reporter=verbose'], {
  cwd: root,
  env,
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
