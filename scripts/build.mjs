// `node scripts/build.mjs [bench|experiments]`: the Prisma client, then TypeScript into dist/ (dist-bench/, dist-experiments/).
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { generate } from './generate.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Builds `part` of the repository. Gives an exit code; what is wrong has been printed. */
export function build(part = 'build') {
  try {
    generate();
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const project = join(root, `tsconfig.${part}.json`);
    return spawnSync(process.execPath, [tsc, '-p', project], { cwd: root, stdio: 'inherit' }).status ?? 1;
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    return 1;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = build(process.argv[2]);
