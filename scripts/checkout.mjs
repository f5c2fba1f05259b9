// `node scripts/checkout.mjs COMMIT FOLDER [PATH…]`: the files of that commit, or those of its paths, into an existing folder, with the packages of this one.
import { execFileSync } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Throws what git says. */
export function checkOut(commit, folder, paths = []) {
  const files = execFileSync('git', ['archive', commit, '--', ...paths], {
    cwd: root,
    maxBuffer: 2 ** 30,
    stdio: 'pipe',
  });
  execFileSync('tar', ['x', '-C', folder], { input: files });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [commit, folder, ...paths] = process.argv.slice(2);
  checkOut(commit, folder, paths);
}
