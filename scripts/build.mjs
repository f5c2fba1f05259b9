// `node scripts/build.mjs [bench]`: the Prisma client, then TypeScript into dist/ (or dist-bench/).
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { generate } from './generate.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const project = process.argv[2] === 'bench' ? 'tsconfig.bench.json' : 'tsconfig.build.json';
try {
  generate();
  const tsc = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', project], {
    cwd: root,
    stdio: 'inherit',
  });
  process.exitCode = tsc.status ?? 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
