// `npm run test:faults -- --minutes N --seed S`: the crash suite and the replay of a trace for longer, and the same faults
// again for the same seed.
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '5' }, seed: { type: 'string' } },
});
for (const [name, value] of Object.entries(values)) {
  if (!(Number(value) > 0)) {
    console.error(`--${name}: ${value} is not accepted; accepted: a number above 0`);
    process.exit(2);
  }
}
const env = {
  ...process.env,
  FAULT_MINUTES: values.minutes,
  ...(values.seed && { FAULT_SEED: values.seed }),
};
const vitest = join(root, 'node_modules/vitest/vitest.mjs');
const { status } = spawnSync(
  process.execPath,
  [vitest, 'run', 'test/crash', 'test/cli/trace', '--reporter=verbose'],
  {
    cwd: root,
    env,
    stdio: 'inherit',
  },
);
process.exitCode = status ?? 1;
