// `node scripts/prune.mjs FOLDER` removes the packages from FOLDER/node_modules from which nothing in FOLDER/dist loads a file, and prints how many
// stay: packages depend on others for what only their other users do. For the image, which runs nothing else.
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';

/** What files name that are loaded here, but never load: by the file that names it, and what it names there. */
const NEVER = [
  // Reports to Apollo, traces for its gateway, and its pages; http.ts turns all of them off.
  [
    /@apollo[/]server/,
    /^[.][/]plugin[/](usageReporting|schemaReporting|inlineTrace|landingPage[/]default|cacheControl)[/]/,
  ],
  // Hashes where there is no Node.
  [/@apollo[/]utils.createhash/, /^sha[.]js$/],
];

const folder = resolve(process.argv[2] ?? '.');
const modules = join(folder, 'node_modules');
const dist = join(folder, 'dist');

/** What is not installed, or never loaded, is left out: a file that needed it would not load with it either. */
const leaveOut = {
  name: 'leave-out',
  setup(bundle) {
    bundle.onResolve({ filter: /./ }, async ({ path, importer, kind, resolveDir, pluginData }) => {
      if (pluginData === leaveOut || kind === 'entry-point') return;
      const never = NEVER.some(([from, what]) => from.test(importer) && what.test(path));
      if (!never) {
        const found = await bundle.resolve(path, { importer, kind, resolveDir, pluginData: leaveOut });
        if (found.errors.length === 0) return found;
      }
      return { path, external: true };
    });
  },
};

const { metafile } = await build({
  entryPoints: readdirSync(dist, { recursive: true })
    .filter((name) => name.endsWith('.js') && !name.startsWith('web/'))
    .map((name) => join(dist, name)),
  plugins: [leaveOut],
  ...{
    bundle: true,
    metafile: true,
    write: false,
    outdir: join(folder, 'never-written'),
    absWorkingDir: folder,
  },
  ...{ platform: 'node', format: 'esm', loader: { '.node': 'empty' }, logLevel: 'error' },
});

/** Of a file, or of what it is in: the folder of its package. */
const packageOf = (file) => /^.*node_modules[/](?:@[^/]+[/])?[^/]+/.exec(file)?.[0];
const needed = new Set(Object.keys(metafile.inputs).map(packageOf).filter(Boolean));
const manifestOf = (name) => JSON.parse(readFileSync(join(folder, name, 'package.json'), 'utf8'));
/** Where Node finds what `name` depends on. */
const foundFrom = (name, other) => {
  for (let at = `${name}/`; ; at = at.slice(0, at.lastIndexOf('node_modules/'))) {
    const there = `${at}node_modules/${other}`;
    if (existsSync(join(folder, there))) return there;
    if (at === '') return undefined;
  }
};
// Native code and programs are optional, of one platform each, and loaded by names that are put together: they stay with all that they need.
const optional = [...needed].flatMap((name) =>
  Object.keys(manifestOf(name).optionalDependencies ?? {}).flatMap((other) => foundFrom(name, other) ?? []),
);
for (let name = optional.pop(); name !== undefined; name = optional.pop()) {
  needed.add(name);
  const { dependencies, optionalDependencies } = manifestOf(name);
  for (const other of Object.keys({ ...dependencies, ...optionalDependencies })) {
    const there = foundFrom(name, other);
    if (there !== undefined && !needed.has(there)) optional.push(there);
  }
}

/** All packages that are installed, those inside others first. */
const installed = readdirSync(modules, { recursive: true })
  .map((name) => `node_modules/${name}`)
  .filter((name) => packageOf(name) === name && existsSync(join(folder, name, 'package.json')))
  .sort((a, b) => b.length - a.length);
for (const name of installed) {
  const holds = [...needed].some((one) => one.startsWith(`${name}/`));
  if (!needed.has(name) && !holds) rmSync(join(folder, name), { recursive: true });
}
// What npm notes of them is no longer true.
for (const name of ['.bin', '.package-lock.json'])
  rmSync(join(modules, name), { recursive: true, force: true });
for (const name of readdirSync(modules).filter((scope) => scope.startsWith('@')))
  if (readdirSync(join(modules, name)).length === 0) rmdirSync(join(modules, name));
console.log(`${needed.size} of ${installed.length} packages stay`);
