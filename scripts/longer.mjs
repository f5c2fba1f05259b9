// Suites that `npm test` runs briefly, for longer: `npm run test:faults -- --minutes N --seed S`, the crash suite, peers, a large
// tree and the replay of a trace;
// `npm run test:abuse -- --minutes N --seed S`, attacks by users;
// `npm run test:vectors -- --seeds N --seed S`, the rules of the papers on cases of N seeds from S on. The same seed makes the same again.
// `npm run test:image` and `npm run test:package` are no part of `npm test`: what is shipped, built and used as its user does.
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const SUITES = {
  faults: {
    prefix: 'FAULT',
    long: { minutes: { type: 'string', default: '5' } },
    files: ['test/crash', 'test/cli/trace', 'test/federation/faults', 'test/engine/tree'],
  },
  abuse: { prefix: 'ABUSE', long: { minutes: { type: 'string', default: '5' } }, files: ['test/abuse'] },
  vectors: { prefix: 'VECTORS', long: { seeds: { type: 'string', default: '10' } }, files: ['test/vectors'] },
  image: { prefix: 'IMAGE', files: ['test/shipped/image'] },
  package: { prefix: 'PACKAGE', files: ['test/shipped/package'] },
};
const { prefix, long, files } = SUITES[process.argv[2]];
const { values } = parseArgs({
  args: process.argv.slice(3),
  options: { ...long, seed: { type: 'string' } },
});
for (const [name, value] of Object.entries(values)) {
  if (!(Number(value) > 0)) {
    console.error(`--${name}: ${value} is not accepted; accepted: a number above 0`);
    process.exit(2);
  }
}
const settings = Object.entries(values).map(([name, value]) => [`${prefix}_${name.toUpperCase()}`, value]);
// LONGER (vitest.config.ts): not only what `npm test` runs.
const env = { ...process.env, LONGER: '1', ...Object.fromEntries(settings) };
const vitest = join(root, 'node_modules/vitest/vitest.mjs');
const { status } = spawnSync(process.execPath, [vitest, 'run', ...files, '--reporter=verbose'], {
  cwd: root,
  env,
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
