// `node scripts/build.mjs [bench|experiments]`: what is generated, TypeScript into dist/
// (dist-bench/, dist-experiments/), and the portal into dist/web. `npm start` leaves out what only developers and
// those who ship it need: types and their checks, declarations, the best compression.
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build as bundle } from 'esbuild';
import { buildWeb } from './build-web.mjs';
import { compile } from './compile.mjs';
import { generateGraphql, generatePrisma } from './generate.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Builds `part` of the repository; `say` is told of each step. Gives an exit code; what is wrong has been printed. */
export async function build(part = 'build', { checked = true, say = () => {} } = {}) {
  try {
    say('generating the database client and types');
    const client = generatePrisma();
    const documents = generateGraphql(checked).then(() => say('compiling the service and the portal'));
    const [status] = await Promise.all([
      Promise.all([client, documents]).then(() =>
        checked ? compile(join(root, `tsconfig.${part}.json`)) : transpile(),
      ),
      part === 'experiments' ? undefined : documents.then(() => buildWeb(checked)),
    ]);
    if (status === 0 && part === 'build') {
      removeStale();
      bundleDocs();
    }
    if (status === 0 && part !== 'experiments') await bundleSlurm(part === 'build' ? 'dist' : 'dist-bench');
    return status;
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    return 1;
  }
}

/** All of src/, file by file, with no look at types. */
async function transpile() {
  const src = join(root, 'src');
  const files = readdirSync(src, { recursive: true }).filter(
    (name) => name.endsWith('.ts') && !name.endsWith('.d.ts'),
  );
  await bundle({
    entryPoints: files.map((name) => join(src, name)),
    ...{ outdir: join(root, 'dist'), outbase: src, sourcemap: true, logLevel: 'error' },
    ...{ platform: 'node', target: 'es2022', format: 'esm' },
  });
  // The compiler would take what is there now for what it wrote itself.
  rmSync(join(root, 'dist', '.tsbuildinfo'), { force: true });
  return 0;
}

/** The commands called like Slurm's by the module of src/slurm that has them. */
const SLURM = {
  control: ['sacctmgr', 'scancel', 'scontrol', 'sreport', 'sshare'],
  queue: ['sacct', 'seff', 'sprio', 'squeue', 'sstat'],
  sinfo: ['sinfo'],
  submit: ['salloc', 'sbatch', 'srun'],
};

/** Each as one file of CommonJS: they are started often, and to find many files, or to load modules, takes longer than what they do. */
async function bundleSlurm(folder) {
  const names = Object.values(SLURM).flat();
  const outdir = join(root, folder, 'slurm');
  await bundle({
    entryPoints: names.map((name) => ({ in: `command:${name}`, out: name })),
    ...{ outdir, outExtension: { '.js': '.cjs' }, bundle: true, minify: true, logLevel: 'error' },
    ...{ platform: 'node', target: 'node20', format: 'cjs', banner: { js: '#!/usr/bin/env node' } },
    plugins: [slurmCommand, loadedLater, leftOut],
  });
  for (const name of names) chmodSync(join(outdir, `${name}.cjs`), 0o755);
  // Where links of earlier releases lead.
  const stub = `#!/usr/bin/env node\nconst name = process.argv[1].split('/').at(-1);\nawait import(\`./slurm/\${name}.cjs\`);\n`;
  writeFileSync(join(root, folder, 'slurm.mjs'), stub, { mode: 0o755 });
}

const slurmCommand = {
  name: 'slurm-command',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^command:/ }, ({ path }) => ({ path: path.slice(8), namespace: 'command' }));
    onLoad({ filter: /./, namespace: 'command' }, ({ path: name }) => {
      const [module] = Object.entries(SLURM).find(([, names]) => names.includes(name));
      const contents = `import { start } from './main.js'; import { ${name} } from './${module}.js'; start('${name}', ${name});`;
      return { contents, loader: 'ts', resolveDir: join(root, 'src', 'slurm') };
    });
  },
};

/** What only commands with a terminal need stays in its own file, beside the bundle. */
const loadedLater = {
  name: 'loaded-later',
  setup: ({ onResolve }) =>
    onResolve({ filter: /\/client\/terminal\.js$/ }, () => ({
      path: '../client/terminal.js',
      external: true,
    })),
};

/** What a command has no use for: the tables of others' options take as long to make as all its own work. */
const leftOut = {
  name: 'left-out',
  setup: ({ onResolve }) =>
    onResolve({ filter: /^\..*\.js$/ }, ({ path, resolveDir }) => {
      const file = join(resolveDir, path).replace(/js$/, 'ts');
      return dirname(file) === join(root, 'src', 'words') ? { path: file, sideEffects: false } : undefined;
    }),
};

/** The sections of what users and operators read, for the MCP server to search. */
function bundleDocs() {
  const others = ['ARCHITECTURE.md', 'attacks.md', 'performance.md', 'sample-portal.md'];
  const pages = ['docs', 'docs/operations'].flatMap((folder) =>
    readdirSync(join(root, folder))
      .filter((name) => name.endsWith('.md') && !others.includes(name))
      .sort()
      .map((name) => `${folder}/${name}`),
  );
  const sections = pages.flatMap((page) =>
    readFileSync(join(root, page), 'utf8')
      .split(/^(?=#{1,3} )/m)
      .map((text) => ({ page, heading: /^#+ (.*)/.exec(text)?.[1] ?? '', text: text.trim() })),
  );
  writeFileSync(join(root, 'dist', 'docs.json'), JSON.stringify(sections));
}

/** Takes away what was compiled from sources that are gone: it would be shipped. */
function removeStale() {
  const dist = join(root, 'dist');
  for (const name of readdirSync(dist, { recursive: true })) {
    const [, stem] = /^(.*?)\.(?:js|js\.map|d\.ts)$/.exec(name) ?? [];
    if (stem && !name.startsWith('web/') && !existsSync(join(root, 'src', `${stem}.ts`)))
      rmSync(join(dist, name));
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = await build(process.argv[2]);
