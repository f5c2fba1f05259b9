// The whole system in a seeded simulation (test/sim/): `npm run test:sim -- --seeds N --seed S` plays N histories; the first that breaks a
// promise is shown as the shortest that still does. `npm run test:mutants -- --seeds N --only TEXT` shows that every promise is looked at:
// it plays them over each breakage of test/sim/mutants.mjs, all of which have to be found.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { mutants } from '../test/sim/mutants.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const broken = process.argv[2] === 'mutants';
const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    seeds: { type: 'string', default: broken ? '1000' : '10000' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
  },
});
for (const name of ['seeds', 'seed']) {
  if (Number.isInteger(Number(values[name])) && Number(values[name]) > 0) continue;
  console.error(`--${name}: ${values[name]} is not accepted; accepted: a whole number above 0`);
  process.exit(2);
}

/** A breakage may make the simulation go on for ever. */
const LATE_MS = 300_000;
// Below node_modules, so that packages are found.
const dir = join(root, 'node_modules/.cache/sim');
mkdirSync(dir, { recursive: true });

/** Plays histories over the code as these changes make it. */
async function play(changes, { shrink, ...spawning }) {
  const left = new Set(changes);
  const breakage = {
    name: 'breakage',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const own = changes.filter(({ file }) => path === join(root, file));
        if (own.length === 0) return undefined;
        let contents = readFileSync(path, 'utf8');
        for (const change of own) {
          const { file, find, replace } = change;
          if (!contents.includes(find)) throw new Error(`${file}: there is nothing like ${find}`);
          contents = contents.replace(find, () => replace);
          left.delete(change);
        }
        return { contents, loader: 'ts' };
      });
    },
  };
  const outfile = join(dir, `${process.pid}.mjs`);
  const { seed, seeds } = values;
  const options = { seed: Number(seed), seeds: Number(seeds), shrink };
  const contents = `import { play, playTwice } from './test/sim/play.ts';
    try {
      await playTwice(${seed});
      await play(${JSON.stringify(options)});
    } catch (error) {
      console.error('broken: ' + (error.cause ?? error).message);
      throw error;
    }
    process.exit(0);`;
  await build({
    ...{ bundle: true, platform: 'node', format: 'esm', packages: 'external', logLevel: 'error', outfile },
    ...{ stdin: { contents, resolveDir: root }, sourcemap: 'inline', plugins: [breakage] },
  });
  if (left.size > 0) throw new Error(`the simulation does without ${[...left].map(({ file }) => file)}`);
  try {
    return spawnSync(process.execPath, ['--enable-source-maps', outfile], { cwd: root, ...spawning });
  } finally {
    rmSync(outfile);
  }
}

if (broken) {
  let survived = 0;
  for (const mutant of mutants.filter(({ what }) => what.includes(values.only))) {
    const changes = mutant.also ? [mutant, mutant.also] : [mutant];
    const { status, error, stderr } = await play(changes, {
      shrink: false,
      timeout: LATE_MS,
      encoding: 'utf8',
    });
    const late = error?.code === 'ETIMEDOUT';
    // Only what a history has shown is found: a breakage that cannot be made is a mistake here.
    const found = /^broken: (.*)$/m.exec(stderr)?.[1];
    const caught = late || (status === 1 && found !== undefined);
    if (!caught) survived++;
    console.log(
      `${caught ? 'found   ' : 'SURVIVED'}  ${mutant.what}${caught ? `: ${found ?? 'it goes on for ever'}` : ''}`,
    );
    if (!caught && status !== 0) console.log(stderr.slice(-2_000));
  }
  console.log(`${survived} survived`);
  process.exitCode = survived === 0 ? 0 : 1;
} else {
  const started = performance.now();
  const { status } = await play([], { shrink: true, stdio: 'inherit' });
  if (status === 0)
    console.log(
      `${values.seeds} histories from seed ${values.seed}: no promise is broken, and all ended; ${Math.round((performance.now() - started) / 1000)} s`,
    );
  process.exitCode = status ?? 1;
}
