// `npm run test:NAME -- --seed S … [FILE…]` runs a suite that takes longer than `npm test` may, or only some of its files. The same seed makes the
// same cases again; without it they are new ones, and the seed is printed.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { pathOf, root, SUITES } from './suites.mjs';

const { prefix, options, files = [], shared = [], together = false, atOnce = 1 } = SUITES[process.argv[2]];
const { values, positionals } = parseArgs({ args: process.argv.slice(3), options, allowPositionals: true });
for (const [name, value] of Object.entries(values)) {
  if (!(Number(value) > 0)) {
    console.error(`--${name}: ${value} is not accepted; accepted: a number above 0`);
    process.exit(2);
  }
}
const all = [...files, ...shared];
const isOf = (file) => all.some((one) => one.startsWith(file) || file.startsWith(one));
const other = positionals.find((file) => !isOf(file));
if (other !== undefined) {
  console.error(`${other} is not accepted; accepted: files of this suite, such as ${all[0]}`);
  process.exit(2);
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
const workers = together ? [] : [atOnce === 1 ? '--no-file-parallelism' : `--maxWorkers=${atOnce}`];
const { status } = spawnSync(
  process.execPath,
  [
    vitest,
    'run',
    ...(positionals.length > 0 ? positionals : all.map(pathOf)),
    ...workers,
    '--reporter=verbose',
  ],
  {
    cwd: root,
    env,
    stdio: 'inherit',
  },
);
process.exitCode = status ?? 1;
