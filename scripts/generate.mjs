// Generates the Prisma client into src/store/generated (git-ignored).
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const schema = join(root, 'prisma', 'schema.prisma');
const output = join(root, 'src', 'store', 'generated');
const stamp = join(output, '.stamp');

/** Runs `prisma generate` if the schema or the version of Prisma changed since the last time. */
export function generate() {
  if (!existsSync(schema)) throw new Error('prisma/schema.prisma is missing');
  const version = JSON.parse(readFileSync(join(root, 'node_modules/prisma/package.json'), 'utf8')).version;
  const wanted = createHash('sha256').update(version).update(readFileSync(schema)).digest('hex');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  rmSync(output, { recursive: true, force: true });
  // The CLI would download its schema engine, which generating does not use: any executable in its
  // place keeps the build off the network. Migrations need none (src/store/migrate.ts).
  const result = spawnSync(
    process.execPath,
    [join(root, 'node_modules/prisma/build/index.js'), 'generate', '--schema', schema, '--no-hints'],
    {
      cwd: root,
      encoding: 'utf8',
      env: {
        ...process.env,
        PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true',
        CHECKPOINT_DISABLE: '1',
      },
    },
  );
  if (result.status !== 0) throw new Error(`prisma generate failed:\n${result.stdout}\n${result.stderr}`);
  mkdirSync(output, { recursive: true });
  writeFileSync(stamp, wanted);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) generate();
