// `node scripts/packages.mjs [FOLDER]`, with which `npm test` begins: what package-lock.json asks for is installed if it is not, in a fresh checkout
// and after a change of it. `npm start` does the same, without what only tests, checks and benchmarks need: the workspace development/.
// npm's cache is asked first, and npm gets more room, as it spends much of its time on collecting garbage.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

const QUICK = ['--prefer-offline', '--fetch-retries=0', '--loglevel=silent'];
const INSTALLING = 'installing the packages of package-lock.json';

/** Gives an exit code; what is wrong has been printed. `say` is told that it takes a while. */
export function installPackages(say, { folder = root } = {}) {
  if (areInstalled(folder, true)) return 0;
  say(INSTALLING);
  // What `npm start` has installed stays, which `npm ci` would first remove.
  if (areInstalled(folder, false)) {
    npm(folder, 'install', '--no-save', ...QUICK);
    if (areInstalled(folder, true)) return 0;
  }
  // A cache may be older than the lock file, and then know nothing of a version: the registry does.
  return npm(folder, 'ci', ...QUICK) === 0 ? 0 : npm(folder, 'ci');
}

/** The same for `npm start`, with only what it needs. */
export async function installToStart(say, { folder = root } = {}) {
  if (areInstalled(folder, false)) return 0;
  say(INSTALLING);
  try {
    await installShares(folder);
    return 0;
  } catch {
    // A registry with addresses of its own kind, for one: npm asks it for them, and says what is wrong.
    return npm(folder, 'ci', '--workspaces=false');
  }
}

/**
 * Two npm work side by side, each in a folder of its own: one for what the service needs, one for the rest. Their lock files have the addresses of
 * packages, which ours leaves out as it is for all registries. To find them out, npm would read what its cache knows of all versions of a package,
 * in a quarter of its time. Of addresses at npmjs.org it takes the path, at the registry that it is set to.
 */
async function installShares(folder) {
  const modules = join(folder, 'node_modules');
  const lock = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'));
  const { overrides } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const all = packagesToStart(lock.packages);
  const { devDependencies, ...service } = lock.packages[''];
  const first = new Set(packagesToStart({ ...lock.packages, '': service }));
  const folders = [[...first], all.filter((path) => !first.has(path))].map((paths, index) => {
    const packages = shareOf(lock.packages, paths);
    const share = join(modules, '.shares', String(index));
    rmSync(share, { recursive: true, force: true });
    mkdirSync(share, { recursive: true });
    writeFileSync(join(share, 'package.json'), JSON.stringify({ ...packages[''], overrides }));
    writeFileSync(join(share, 'package-lock.json'), JSON.stringify({ ...lock, packages }));
    if (existsSync(join(folder, '.npmrc'))) cpSync(join(folder, '.npmrc'), join(share, '.npmrc'));
    return share;
  });
  const [command, ...args] = npmCommand('ci', ...QUICK);
  const ends = await Promise.all(
    folders.map((cwd) => once(spawn(command, args, { cwd, stdio: 'inherit' }), 'exit')),
  );
  if (ends.some(([code]) => code !== 0)) throw new Error('npm ci has failed');
  for (const name of readdirSync(modules))
    if (name !== '.shares') rmSync(join(modules, name), { recursive: true });
  for (const share of folders) moveInto(modules, join(share, 'node_modules'));
  rmSync(join(modules, '.shares'), { recursive: true });
  const packages = Object.fromEntries(
    all.filter((path) => existsSync(join(folder, path))).map((path) => [path, lock.packages[path]]),
  );
  writeFileSync(join(modules, '.package-lock.json'), JSON.stringify({ ...lock, packages }, null, 2));
}

/** These packages of a lock file with their addresses, and with each other alone. */
function shareOf(packages, paths) {
  const share = new Set(paths);
  const { workspaces, ...start } = packages[''];
  const entries = ['', ...paths].map((path) => {
    const entry = path === '' ? start : { resolved: addressOf(path, packages[path]), ...packages[path] };
    for (const kind of ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies']) {
      const needed = Object.entries(entry[kind] ?? {});
      entry[kind] = Object.fromEntries(needed.filter(([name]) => share.has(placeOf(name, path, packages))));
    }
    return [path, entry];
  });
  return Object.fromEntries(entries);
}

function addressOf(path, { name = path.split('node_modules/').at(-1), version }) {
  return `https://registry.npmjs.org/${name}/-/${basename(name)}-${version}.tgz`;
}

/** Folders of scopes and of commands have some of each share. */
function moveInto(folder, from) {
  mkdirSync(folder, { recursive: true });
  for (const name of existsSync(from) ? readdirSync(from) : []) {
    const [to, there] = [join(folder, name), join(from, name)];
    if (name === '.bin' || name.startsWith('@')) moveInto(to, there);
    else renameSync(there, to);
  }
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

function npm(cwd, ...args) {
  const [command, ...rest] = npmCommand(...args);
  const { status, error } = spawnSync(command, rest, { cwd, stdio: 'inherit' });
  if (error) console.error(error.message);
  return status ?? 1;
}

function npmCommand(...args) {
  const own = process.env.npm_execpath;
  return own && basename(own) === 'npm-cli.js'
    ? [process.execPath, '--max-semi-space-size=64', own, ...args]
    : ['npm', ...args];
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  process.exitCode = installPackages((step) => console.error(`${step} …`), { folder: process.argv[2] });
