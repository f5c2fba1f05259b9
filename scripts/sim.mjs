// The whole system in a seeded simulation (test/sim/): `npm run test:sim -- --seeds N --seed S` plays N histories; the first that breaks a
// promise is shown as the shortest that still does. `npm run test:mutants -- --seeds N --only TEXT` shows that every promise is looked at:
// it plays them over each breakage of test/sim/mutants.mjs, all of which have to be found.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { mutants } from '../test/sim/mutants.mjs';
import { generate } from './generate.mjs';

/** How many histories are enough to find any of the breakages: they are the same each time. */
const ENOUGH = 600;

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const broken = process.argv[2] === 'mutants';
const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    seeds: { type: 'string', default: String(broken ? ENOUGH : 10_000) },
    seed: { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
  },
});
for (const name of ['seeds', 'seed']) {
  if (Number.isInteger(Number(values[name])) && Number(values[name]) > 0) continue;
  console.error(`--${name}: ${values[name]} is not accepted; accepted: a whole number above 0`);
  process.exit(2);
}

await generate();
// Below node_modules, so that packages are found.
const dir = join(root, 'node_modules/.cache/sim');
mkdirSync(dir, { recursive: true });

/** Bundles what plays histories, over the code as these changes make it. */
async function bundle(name, changes, shrink) {
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
  const outfile = join(dir, `${process.pid}-${name}.mjs`);
  const { seed, seeds } = values;
  const options = { seed: Number(seed), seeds: Number(seeds), shrink };
  const contents = `import { Broken, play, playTwice } from './test/sim/play.ts';
    try {
      await playTwice(${seed}, 10);
      await play(${JSON.stringify(options)});
    } catch (error) {
      console.error(error);
      if (!(error instanceof Broken)) process.exit(2);
      console.log('broken: ' + JSON.stringify({ what: error.what, history: error.history }));
      process.exit(1);
    }
    process.exit(0);`;
  await build({
    ...{ bundle: true, platform: 'node', format: 'esm', packages: 'external', logLevel: 'error', outfile },
    ...{ stdin: { contents, resolveDir: root }, sourcemap: 'inline', plugins: [breakage] },
  });
  if (left.size > 0) throw new Error(`the simulation does without ${[...left].map(({ file }) => file)}`);
  return outfile;
}

/** Runs it. */
async function run(outfile, stdio) {
  const child = spawn(process.execPath, ['--enable-source-maps', outfile], { cwd: root, stdio });
  const [said = '', errors = ''] = await Promise.all(
    [child.stdout, child.stderr].map((stream) => (stream ? text(stream) : undefined)),
  );
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  rmSync(outfile);
  return { status: child.exitCode, said, errors };
}

/** Whether the histories find a breakage. */
async function isFound(mutant, i) {
  const changes = mutant.also ? [mutant, mutant.also] : [mutant];
  const { status, said, errors } = await run(await bundle(i, changes, false), ['ignore', 'pipe', 'pipe']);
  // Only what a history has shown is found: a breakage that cannot be made is a mistake here.
  const found = /^broken: (.*)$/m.exec(said)?.[1];
  if (found === undefined) {
    console.log(`SURVIVED  ${mutant.what}`);
    if (status !== 0) console.log(errors.slice(-2_000));
    return false;
  }
  const { what, history } = JSON.parse(found);
  console.log(`found     ${mutant.what}: by history ${history}: ${what.split('\n')[0]}`);
  return true;
}

if (broken) {
  const left = [...mutants.entries()].filter(([, { what }]) => new RegExp(values.only).test(what));
  let survived = 0;
  const work = async () => {
    for (let next = left.shift(); next; next = left.shift())
      if (!(await isFound(next[1], next[0]))) survived++;
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  console.log(`${survived} survived ${values.seeds} histories from seed ${values.seed}`);
  process.exitCode = survived === 0 ? 0 : 1;
} else {
  const started = performance.now();
  const { status } = await run(await bundle('whole', [], true), 'inherit');
  if (status === 0)
    console.log(
      `${values.seeds} histories from seed ${values.seed}: no promise is broken, and all ended; ${Math.round((performance.now() - started) / 1000)} s`,
    );
  process.exitCode = status ?? 1;
}
