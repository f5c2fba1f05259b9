/** Packages that portals are written with and that nothing here is: installed beside the dependencies, in these versions, and kept for the next time. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packagePath } from '../../src/platform/paths.js';

const dependencies = {
  '@apollo/client': '4.3.8',
  '@graphql-codegen/core': '6.0.0',
  '@graphql-codegen/typed-document-node': '7.1.1',
  '@graphql-codegen/typescript-operations': '6.1.9',
  '@urql/core': '6.0.3',
  graphql: '16.15.0',
  'graphql-ws': '6.4.2',
  'relay-compiler': '21.0.1',
  rxjs: '7.8.2',
  ws: '8.23.0',
};

const folder = packagePath('node_modules', '.cache', 'switchyard-stock');

/** The folder with the packages; null: no registry has them. */
export function stockPackages(): string | null {
  const manifest = join(folder, 'package.json');
  const text = `${JSON.stringify({ private: true, type: 'module', dependencies }, null, 2)}\n`;
  const done = join(folder, 'node_modules', '.package-lock.json');
  if (existsSync(done) && readFileSync(manifest, 'utf8') === text) return folder;
  mkdirSync(folder, { recursive: true });
  writeFileSync(manifest, text);
  const { status, stderr } = spawnSync('npm', ['install', '--no-audit', '--no-fund', '--no-package-lock'], {
    cwd: folder,
    encoding: 'utf8',
  });
  if (status === 0) return folder;
  console.warn(`skipped: npm cannot install what portals are written with\n${stderr}`);
  // Else the next time would take half of it for all.
  writeFileSync(manifest, '');
  return null;
}
