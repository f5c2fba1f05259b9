/**
 * The operations of this repository beside its tests and what is generated: of benchmarks, scripts, clients and documents. All are of the schema as it
 * is written, so none uses a name of the release before, which the next one no longer has.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildSchema, type DocumentNode, Kind, parse, validate } from 'graphql';
import { expect, test } from 'vitest';
import { SCHEMA_FILE } from '../../src/api/schema.js';
import { packagePath } from '../../src/platform/paths.js';

const FOLDERS = ['bench', 'scripts', 'clients', 'docs'];
const schema = buildSchema(readFileSync(SCHEMA_FILE, 'utf8'));

const files = FOLDERS.flatMap((folder) =>
  readdirSync(packagePath(folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
).filter((name) => /\.(ts|mjs|py|md|html)$/.test(name));

/** What is between quotes of any kind, or a fence of a document, and is an operation. */
function operationsOf(text: string): { written: string; document: DocumentNode }[] {
  const quoted = text.matchAll(/"""(.*?)"""|```graphql\n(.*?)```|'([^'\n]*)'|"([^"\n]*)"|`([^`]*)`/gs);
  return [...quoted].flatMap((found) => {
    const written = (found.slice(1).find((one) => one !== undefined) ?? '').trim();
    if (!/^(mutation|query|subscription|fragment)\b|^\{(?!\w+\}$)/.test(written)) return [];
    try {
      const document = parse(written);
      const isOperation = document.definitions.some(({ kind }) => kind === Kind.OPERATION_DEFINITION);
      return isOperation ? [{ written, document }] : [];
    } catch {
      return [];
    }
  });
}

test('each is valid as the schema is written', () => {
  const all = files.flatMap((file) =>
    operationsOf(readFileSync(packagePath(file), 'utf8')).map((one) => ({ file, ...one })),
  );
  for (const folder of FOLDERS)
    expect(
      all.some(({ file }) => file.startsWith(folder)),
      folder,
    ).toBe(true);
  const wrong = all.flatMap(({ file, written, document }) =>
    validate(schema, document).map(({ message }) => `${file}: ${message} In: ${written.slice(0, 100)}`),
  );
  expect(wrong).toEqual([]);
});
