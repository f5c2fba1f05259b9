// `node scripts/packages.mjs [FOLDER]`, with which `npm start` and `npm test` begin: what package-lock.json asks for is installed if it is not, in a
// fresh checkout and after a change of it.
// Of the CPU time that `npm ci` takes here, a third goes into asking the registry about versions that npm's cache knows (lock files with download
// addresses would spare it, and name one registry to everybody), and collecting garbage: the cache is asked first, and npm gets more room.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Gives an exit code; what is wrong has been printed. `say` is told that it takes a while. */
export function installPackages(say, folder = root) {
  if (areInstalled(folder)) return 0;
  say('installing the packages of package-lock.json');
  // A cache may be older than the lock file, and then know nothing of a version: the registry does.
  return ci(folder, '--prefer-offline', '--fetch-retries=0', '--loglevel=silent') === 0 ? 0 : ci(folder);
}

/** Whether all packages of the lock file are there in their version; optional ones may be missing, as those of other platforms. */
function areInstalled(folder) {
  const written = join(folder, 'node_modules', '.package-lock.json');
  if (!existsSync(written)) return false;
  const there = packagesOf(written);
  return Object.entries(packagesOf(join(folder, 'package-lock.json'))).every(
    ([path, { version, ...kind }]) =>
      there[path] ? there[path].version === version : path === '' || kind.optional || kind.devOptional,
  );
}

const packagesOf = (lock) => JSON.parse(readFileSync(lock, 'utf8')).packages;

function ci(folder, ...options) {
  const own = process.env.npm_execpath;
  const npm =
    own && basename(own) === 'npm-cli.js' ? [process.execPath, '--max-semi-space-size=64', own] : ['npm'];
  const [command, ...before] = npm;
  const { status, error } = spawnSync(command, [...before, 'ci', ...options], {
    cwd: folder,
    stdio: 'inherit',
  });
  if (error) console.error(error.message);
  return status ?? 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  process.exitCode = installPackages((step) => console.error(`${step} …`), process.argv[2]);
