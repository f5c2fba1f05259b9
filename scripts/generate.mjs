// `npm run codegen`: what builds, tests and editors need and git ignores: the Prisma client (src/store/generated), the types of schema.graphql and its
// resolvers (src/api/generated), and of each NAME.graphql its NAME.gql.ts. Each is made again only when what it follows from has changed.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

export const generate = () => Promise.all([generatePrisma(), generateGraphql()]);

/** Runs `prisma generate` if the schema or the version of Prisma changed since the last time. */
export async function generatePrisma() {
  const schema = join(root, 'prisma', 'schema.prisma');
  const output = join(root, 'src', 'store', 'generated');
  const stamp = join(output, '.stamp');
  if (!existsSync(schema)) throw new Error('prisma/schema.prisma is missing');
  const version = JSON.parse(readFileSync(join(root, 'node_modules/prisma/package.json'), 'utf8')).version;
  const wanted = createHash('sha256').update(version).update(readFileSync(schema)).digest('hex');
  if (isCurrent(stamp, wanted)) return;
  rmSync(output, { recursive: true, force: true });
  // The CLI would download its schema engine, which generating does not use: any executable in its
  // place keeps the build off the network. Migrations need none (src/store/migrate.ts).
  await promisify(execFile)(
    process.execPath,
    [join(root, 'node_modules/prisma/build/index.js'), 'generate', '--schema', schema, '--no-hints'],
    {
      cwd: root,
      env: {
        ...process.env,
        PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true',
        CHECKPOINT_DISABLE: '1',
      },
    },
  ).catch(({ stdout, stderr }) => {
    throw new Error(`prisma generate failed:\n${stdout}\n${stderr}`);
  });
  mkdirSync(output, { recursive: true });
  writeFileSync(stamp, wanted);
}

/** Types of the API and its clients' operations. Loads the generators only if there is something to do: that takes a second. */
export async function generateGraphql() {
  const output = join(root, 'src', 'api', 'generated');
  const stamp = join(output, '.stamp');
  const all = ['src', 'web/src'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  );
  const documents = all.filter((name) => name.endsWith('.graphql')).sort();
  const scripts = ['generate', 'codegen-types', 'codegen-documents'].map((name) => `scripts/${name}.mjs`);
  const sources = [
    'schema.graphql',
    'package-lock.json',
    'src/api/models.ts',
    'src/core/states.ts',
    ...scripts,
  ];
  const hash = createHash('sha256');
  for (const name of [...sources, ...documents])
    hash.update(`${name}\0`).update(readFileSync(join(root, name)));
  const wanted = hash.digest('hex');
  const made = [
    ...['types.ts', 'resolvers-types.ts'].map((name) => join('src/api/generated', name)),
    ...['web/src/api', 'src/client'].map((folder) => join(folder, 'states.gql.ts')),
    ...documents.map((name) => name.replace(/\.graphql$/, '.gql.ts')),
  ];
  // Checking out an older commit, which had them in git, takes them away.
  if (isCurrent(stamp, wanted) && made.every((name) => existsSync(join(root, name)))) return;
  const [{ generateTypes }, { generateDocuments }] = await Promise.all([
    import('./codegen-types.mjs'),
    import('./codegen-documents.mjs'),
  ]);
  mkdirSync(output, { recursive: true });
  for (const { path, text } of [...(await generateTypes(root)), ...(await generateDocuments(root))])
    if (!existsSync(path) || readFileSync(path, 'utf8') !== text) writeFileSync(path, text);
  // Of operations that are gone.
  for (const name of all) if (name.endsWith('.gql.ts') && !made.includes(name)) rmSync(join(root, name));
  writeFileSync(stamp, wanted);
}

const isCurrent = (stamp, wanted) => existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted;

if (process.argv[1] === fileURLToPath(import.meta.url)) await generate();
