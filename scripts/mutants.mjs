// Shows that the simulation looks at every promise: plays it over each breakage of test/sim/mutants.mjs, all of which it has to find.
// `npm run test:mutants -- --seeds N --only TEXT`
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { mutants } from '../test/sim/mutants.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { values } = parseArgs({
  options: { seeds: { type: 'string', default: '300' }, only: { type: 'string', default: '' } },
});
const vitest = join(root, 'node_modules/vitest/vitest.mjs');
/** A breakage may make the simulation go on for ever. */
const LATE_MS = 300_000;
let survived = 0;
for (const [i, { what }] of mutants.entries()) {
  if (!what.includes(values.only)) continue;
  const env = {
    ...process.env,
    NO_COLOR: '1',
    SIM_MUTANT: String(i),
    SIM_SEEDS: values.seeds,
    SIM_SHRINK: 'no',
  };
  const args = [vitest, 'run', '--config', 'test/sim/mutant.config.mjs'];
  const { status, error, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: root,
    env,
    timeout: LATE_MS,
  });
  const output = `${stdout}${stderr}`;
  const found =
    /Received:\s+"([^"]*)/.exec(output)?.[1] ?? /^(?:Caused by: |AssertionError: ).*$/m.exec(output)?.[0];
  // Only a test that failed has found something: a breakage that cannot be made is a mistake here.
  const caught = error?.code === 'ETIMEDOUT' || (status === 1 && found !== undefined);
  if (!caught) survived++;
  console.log(
    `${caught ? 'found   ' : 'SURVIVED'}  ${what}${caught ? `: ${found ?? 'it goes on for ever'}` : ''}`,
  );
  if (!caught && status !== 0) console.log(output.slice(-2_000));
}
process.exitCode = survived === 0 ? 0 : 1;
