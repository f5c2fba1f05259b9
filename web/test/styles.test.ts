/** Styles of a page come with it: what another page uses must be among those that all have. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

const src = join(import.meta.dirname, '../src');
const files = readdirSync(src, { recursive: true, encoding: 'utf8' });
const ofPage = (file: string): string | null => (file.startsWith('pages/') ? dirname(file) : null);

test('no page looks right only after another has been visited', () => {
  const definedBy = new Map<string, Set<string | null>>();
  for (const file of files.filter((one) => one.endsWith('.css')))
    for (const [, name] of readFileSync(join(src, file), 'utf8').matchAll(/\.([a-z][a-z0-9-]*)/g))
      definedBy.set(name!, (definedBy.get(name!) ?? new Set()).add(ofPage(file)));
  const missing = new Set<string>();
  for (const file of files.filter((one) => ofPage(one) !== null && one.endsWith('.tsx')))
    for (const [written] of readFileSync(join(src, file), 'utf8').matchAll(/className=(?:"[^"]+"|\{.*)/g))
      for (const [, names = ''] of written.matchAll(/["'`]([^"'`$]*)/g))
        for (const name of names.split(' ')) {
          const by = definedBy.get(name);
          if (by && !by.has(null) && !by.has(ofPage(file)))
            missing.add(`${file}: ${name} of ${[...by].join()}`);
        }
  expect([...missing]).toEqual([]);
});
