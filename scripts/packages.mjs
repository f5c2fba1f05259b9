// `node scripts/packages.mjs [FOLDER]`, with which `npm test` begins: what package-lock.json asks for is installed if it is not, in a fresh checkout
// and after a change of it. `npm start` does the same, without what only tests, checks and benchmarks need: the workspace development/.
// Of the CPU time that `npm ci` takes here, a third goes into asking the registry about versions that npm's cache knows (lock files with download
// addresses would spare it, and name one registry to everybody), and collecting garbage: the cache is asked first, and npm gets more room.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

const QUICK = ['--prefer-offline', '--fetch-retries=0', '--loglevel=silent'];

/** Gives an exit code; what is wrong has been printed. `say` is told that it takes a while. */
export function installPackages(say, { folder = root, all = true } = {}) {
  if (areInstalled(folder, all)) return 0;
  say('installing the packages of package-lock.json');
  // What `npm start` has installed stays, which `npm ci` would first remove.
  if (all && areInstalled(folder, false)) {
    npm(folder, 'install', '--no-save', ...QUICK);
    if (areInstalled(folder, all)) return 0;
  }
  const ci = ['ci', ...(all ? [] : ['--workspaces=false'])];
  // A cache may be older than the lock file, and then know nothing of a version: the registry does.
  return npm(folder, ...ci, ...QUICK) === 0 ? 0 : npm(folder, ...ci);
}

/** Whether the packages of the lock file are there in their version; optional ones may be missing, as those of other platforms. */
function areInstalled(folder, all) {
  const written = join(folder, 'node_modules', '.package-lock.json');
  if (!existsSync(written)) return false;
  const there = packagesOf(written);
  const packages = packagesOf(join(folder, 'package-lock.json'));
  return (all ? Object.keys(packages) : packagesToStart(packages)).every((path) => {
    const { version, ...kind } = packages[path];
    return there[path] ? there[path].version === version : path === '' || kind.optional || kind.devOptional;
  });
}

const packagesOf = (lock) => JSON.parse(readFileSync(lock, 'utf8')).packages;

/** Where a lock file has the packages that package.json itself asks for, and what these need. */
export function packagesToStart(packages) {
  const found = new Set();
  const visit = (path) => {
    const { dependencies, devDependencies, optionalDependencies, ...peers } = packages[path];
    const { peerDependencies, peerDependenciesMeta = {} } = peers;
    const all = { ...dependencies, ...devDependencies, ...optionalDependencies, ...peerDependencies };
    for (const name of Object.keys(all)) {
      const there = placeOf(name, path, packages);
      if (there === undefined || found.has(there) || peerDependenciesMeta[name]?.optional) continue;
      found.add(there);
      visit(there);
    }
  };
  visit('');
  return [...found];
}

/** Where Node finds a package from another. */
function placeOf(name, from, packages) {
  for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
    const there = `${at && `${at}/`}node_modules/${name}`;
    if (packages[there]) return there;
    if (at === '') return undefined;
  }
}

function npm(folder, ...args) {
  const own = process.env.npm_execpath;
  const [command, ...before] =
    own && basename(own) === 'npm-cli.js' ? [process.execPath, '--max-semi-space-size=64', own] : ['npm'];
  const { status, error } = spawnSync(command, [...before, ...args], { cwd: folder, stdio: 'inherit' });
  if (error) console.error(error.message);
  return status ?? 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  process.exitCode = installPackages((step) => console.error(`${step} …`), { folder: process.argv[2] });
