// TypeScript's compiler, beside which something else can be done.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Compiles a project, a file or folder. Gives the exit code; what is wrong has been printed. */
export async function compile(project) {
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const [code] = await once(
    spawn(process.execPath, [tsc, '-p', project], { cwd: root, stdio: 'inherit' }),
    'exit',
  );
  return code ?? 1;
}
