// `npm run client [DIR]`: the package @switchyard/client in DIR (by default dist-client/), made of what `npm run build` has compiled: the entry and all that it
// imports of ours, with their types.
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const ENTRY = 'client/library';
const PACKAGES = ['graphql', 'graphql-ws', 'ws'];

/** Writes the package; answers the modules in it. */
export function writeClient(directory) {
  rmSync(directory, { recursive: true, force: true });
  const modules = new Set();
  const take = (module) => {
    if (modules.has(module)) return;
    modules.add(module);
    for (const end of ['.js', '.d.ts']) {
      const to = join(directory, module + end);
      mkdirSync(dirname(to), { recursive: true });
      const text = readFileSync(join(root, 'dist', module + end), 'utf8').replace(
        /\n?\/\/# sourceMappingURL=.*\n?$/,
        '\n',
      );
      writeFileSync(to, text);
      for (const [, path] of text.matchAll(/(?:from|import)\s*\(?\s*['"](\.[^'"]+)\.js['"]/g))
        take(join(dirname(module), path));
    }
  };
  take(ENTRY);
  const { version, license, engines, dependencies } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  );
  const entry = { types: `./${ENTRY}.d.ts`, default: `./${ENTRY}.js` };
  const manifest = {
    ...{ name: '@switchyard/client', version, license, engines, type: 'module' },
    description: 'Client of Switchyard: typed operations, subscriptions that resume, retries',
    exports: { '.': entry, './package.json': './package.json' },
    dependencies: Object.fromEntries(PACKAGES.map((name) => [name, dependencies[name]])),
  };
  writeFileSync(join(directory, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  copyFileSync(join(root, 'LICENSE'), join(directory, 'LICENSE'));
  copyFileSync(join(root, 'docs', 'typescript.md'), join(directory, 'README.md'));
  return [...modules];
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeClient(resolve(process.argv[2] ?? join(root, 'dist-client')));
