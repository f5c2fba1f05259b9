/** What `npm run docs` writes from the code into the documents is up to date. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';

const script: {
  withPart(document: string, mark: string, text: string): string;
  parts(load: (path: string) => Promise<unknown>): Promise<[document: string, mark: string, text: string][]>;
  files(load: (path: string) => Promise<unknown>): Promise<[document: string, text: string][]>;
} = await import(new URL('../../scripts/docs.mjs', import.meta.url).href);
const load = (path: string) =>
  import(/* @vite-ignore */ new URL(`../../src/${path}.js`, import.meta.url).href);
const parts = await script.parts(load);
const files = await script.files(load);

it.each(parts)('%s: %s', (name, mark, text) => {
  const document = readFileSync(packagePath('docs', name), 'utf8');
  expect(script.withPart(document, mark, text)).toBe(document);
  expect(text.split('\n').length).toBeGreaterThan(5);
});

it.each(files)('%s', (name, text) => {
  expect(readFileSync(packagePath('docs', name), 'utf8')).toBe(text);
});
