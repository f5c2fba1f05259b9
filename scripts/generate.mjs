// `npm run codegen`: what builds, tests and editors need and git ignores: the Prisma client (src/store/generated), the types of schema.graphql and its
// resolvers (src/api/generated), and of each NAME.graphql its NAME.gql.ts. Each is made again only when what it follows from has changed.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

export const generate = () => Promise.all([generatePrisma(), generateGraphql()]);

/**
 * Does what `prisma generate` does if the schema or the version of Prisma changed since the last time. Its command is not installed: it brings
 * a studio, a development server and a database of its own, which nobody here uses. For the same reason package.json overrides `@prisma/config`, which
 * @prisma/internals names and never loads, by a small package: it brings a tenth of all files.
 */
export async function generatePrisma() {
  const schema = join(root, 'prisma', 'schema.prisma');
  const output = join(root, 'src', 'store', 'generated');
  const stamp = join(output, '.stamp');
  if (!existsSync(schema)) throw new Error('prisma/schema.prisma is missing');
  const require = createRequire(import.meta.url);
  const { version } = require('@prisma/client/package.json');
  const wanted = createHash('sha256').update(version).update(readFileSync(schema)).digest('hex');
  if (isCurrent(stamp, wanted)) return;
  rmSync(output, { recursive: true, force: true });
  // As modules they do not load: their imports lack extensions.
  const { getGenerator, loadSchemaContext } = require('@prisma/internals');
  const { PrismaClientTsGenerator } = require('@prisma/client-generator-ts');
  const generator = await getGenerator({
    schemaContext: await loadSchemaContext({
      schemaPath: { cliProvidedPath: schema },
      printLoadMessage: false,
    }),
    registry: { 'prisma-client': { type: 'in-process', generator: new PrismaClientTsGenerator() } },
    skipDownload: true,
    cliCommand: 'generate',
  });
  await generator.generate();
  generator.stop();
  mkdirSync(output, { recursive: true });
  writeFileSync(stamp, wanted);
}

/**
 * Clients' operations; and their types and those of the API if they are `typed`, which nothing needs to run. Loads the generators only if there is
 * something to do: that takes a second.
 */
export async function generateGraphql(typed = true) {
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
  const wanted = `${hash.digest('hex')}${typed ? ' typed' : ''}`;
  const types = ['types.ts', 'resolvers-types.ts'].map((name) => join('src/api/generated', name));
  const made = [
    ...(typed ? types : []),
    ...['web/src/api', 'src/client'].map((folder) => join(folder, 'states.gql.ts')),
    ...documents.map((name) => name.replace(/\.graphql$/, '.gql.ts')),
  ];
  // Checking out an older commit, which had them in git, takes them away.
  if (isCurrent(stamp, wanted) && made.every((name) => existsSync(join(root, name)))) return;
  const texts = await Promise.all([
    typed ? import('./codegen-types.mjs').then(({ generateTypes }) => generateTypes(root)) : [],
    import('./codegen-documents.mjs').then(({ generateDocuments }) => generateDocuments(root, typed)),
  ]);
  mkdirSync(output, { recursive: true });
  for (const { path, text } of texts.flat())
    if (!existsSync(path) || readFileSync(path, 'utf8') !== text) writeFileSync(path, text);
  // Of operations that are gone.
  for (const name of all) if (name.endsWith('.gql.ts') && !made.includes(name)) rmSync(join(root, name));
  writeFileSync(stamp, wanted);
}

/** What is made with types will do without them. */
const isCurrent = (stamp, wanted) => existsSync(stamp) && readFileSync(stamp, 'utf8').startsWith(wanted);

if (process.argv[1] === fileURLToPath(import.meta.url)) await generate();
