/**
 * The operations of this repository beside what is generated: of benchmarks, scripts, clients, documents and tests. All are of the schema as it
 * is written, so none uses a name of the release before, which the next one no longer has. Tests also send what is wrong, and what is put together
 * while they run; that old names still work is tested in one place.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DocumentNode, Kind, parse, validate } from 'graphql';
import { expect, test } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { formerIn, writtenSchema } from '../support/former-names.js';

const FOLDERS = ['bench', 'scripts', 'clients', 'docs'];

const filesIn = (folder: string): string[] =>
  readdirSync(packagePath(folder), { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((name) => /\.(ts|mjs|py|md|html)$/.test(name));

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
  const all = FOLDERS.flatMap(filesIn).flatMap((file) =>
    operationsOf(readFileSync(packagePath(file), 'utf8')).map((one) => ({ file, ...one })),
  );
  for (const folder of FOLDERS)
    expect(
      all.some(({ file }) => file.startsWith(folder)),
      folder,
    ).toBe(true);
  const wrong = all.flatMap(({ file, written, document }) =>
    validate(writtenSchema, document).map(
      ({ message }) => `${file}: ${message} In: ${written.slice(0, 100)}`,
    ),
  );
  expect(wrong).toEqual([]);
});

/** Where old names are tested. */
const FORMER = 'test/api/former.test.ts';

test('those of tests use no name of the release before', () => {
  // What is put into a template is not known here: in a text it may be anything, elsewhere a field that all objects have.
  const isFilled = (written: string): string => written.replace(/\$\{[^}`]*\}/g, '__typename');
  const old = (file: string): string[] =>
    operationsOf(isFilled(readFileSync(packagePath(file), 'utf8'))).flatMap(({ written, document }) => {
      const fault = formerIn(document);
      return fault === null ? [] : [`${file}: ${fault} In: ${written.slice(0, 100)}`];
    });
  expect(old(FORMER).length).toBeGreaterThan(10);
  expect(
    filesIn('test')
      .filter((file) => file !== FORMER)
      .flatMap(old),
  ).toEqual([]);
});
