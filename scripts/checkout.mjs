// `node scripts/checkout.mjs COMMIT FOLDER [PATH…]`: the files of that commit, or those of its paths, into an existing folder; with the packages of this
// one, or with its own if its lock file asks for others.
import { execFileSync } from 'node:child_process';
import { readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installPackages } from './packages.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Throws what git says, and if its packages cannot be installed. */
export function checkOut(commit, folder, paths = []) {
  const files = execFileSync('git', ['archive', commit, '--', ...paths], {
    cwd: root,
    maxBuffer: 2 ** 30,
    stdio: 'pipe',
  });
  execFileSync('tar', ['x', '-C', folder], { input: files });
  const locked = (checkout) => readFileSync(join(checkout, 'package-lock.json'), 'utf8');
  if (paths.length > 0 || locked(folder) === locked(root))
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  else if (installPackages(() => {}, { folder }) !== 0)
    throw new Error(`the packages of ${commit} cannot be installed`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [commit, folder, ...paths] = process.argv.slice(2);
  checkOut(commit, folder, paths);
}
