// `node scripts/build.mjs [bench]`: the Prisma client, TypeScript into dist/ (or dist-bench/), and the portal into dist/web.
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildWeb } from './build-web.mjs';
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
  if (process.exitCode === 0) await buildWeb();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
