// `npm run test:plans -- --against COMMIT --grids N --seed S`: the simulators of that commit and of the files here (or of `--of COMMIT`) plan N
// random grids (test/plans/), and every move, reservation, start and end is compared. The first difference is shown for the smallest grid that
// has one.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { checkOut } from './checkout.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { values } = parseArgs({
  options: {
    against: { type: 'string', default: 'HEAD^' },
    of: { type: 'string' },
    grids: { type: 'string', default: '500' },
    seed: { type: 'string', default: String(1 + Math.floor(Math.random() * 2 ** 31)) },
  },
});
for (const name of ['grids', 'seed']) {
  if (Number.isInteger(Number(values[name])) && Number(values[name]) > 0) continue;
  console.error(`--${name}: ${values[name]} is not accepted; accepted: a whole number above 0`);
  process.exit(2);
}

// Below node_modules, so that packages are found.
const cache = join(root, 'node_modules/.cache/plans');
mkdirSync(cache, { recursive: true });
const folder = mkdtempSync(join(cache, 'run-'));

/** What `contents` exports, its modules being those of `from`. */
async function load(name, from, contents) {
  const outfile = join(folder, `${name}.mjs`);
  await build({
    ...{ bundle: true, platform: 'node', format: 'esm', packages: 'external', logLevel: 'error', outfile },
    ...{ stdin: { contents, resolveDir: from }, sourcemap: 'inline' },
  });
  return import(pathToFileURL(outfile).href);
}

/** What is asked of a commit, or of the files here. */
async function door(name, commit) {
  let from = root;
  if (commit !== undefined) {
    from = join(folder, name);
    mkdirSync(from);
    checkOut(commit, from, ['src']);
  }
  return load(name, from, DOOR);
}
const DOOR = `export { runSimulation } from './src/simulator/engine.ts';
  export { DEFAULT_POLICY, parsePolicy, plainJob } from './src/core/index.ts';
  export { dispatchKinds } from './src/core/dispatch/registry.ts';
  export { localKinds } from './src/core/local/registry.ts';`;

process.setSourceMapsEnabled(true);
try {
  const { compare } = await load('compare', root, `export { compare } from './test/plans/play.ts';`);
  const theirs = await door('theirs', values.against);
  const ours = await door('ours', values.of);
  const { grids, lines, kinds, broken } = compare(theirs, ours, Number(values.grids), Number(values.seed));
  const about = `${grids} grids from seed ${values.seed}, ${lines} lines of ${values.against}`;
  const planned = [...kinds].map(([kind, times]) => `${kind} ${times}`).join(', ');
  const never = [...kinds].filter(([, times]) => times === 0).map(([kind]) => kind);
  if (broken === null && never.length === 0) console.log(`${about}: the same plans (${planned})`);
  else process.exitCode = 1;
  if (broken === null && never.length > 0)
    console.log(
      `broken: ${about}: nothing was planned under ${never.join(', ')}: ask for more grids, or add them to test/plans/draw.ts`,
    );
  if (broken !== null) {
    console.log(`broken: ${about}: another plan (- there, + ${values.of ?? 'here'}):\n${broken.difference}`);
    const { world, jobs, ...asked } = broken.question;
    for (const [what, list] of Object.entries({ ...world, jobs, asked: [asked] }))
      for (const one of list) console.log(`${what}: ${JSON.stringify(one)}`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
