/** Tables of docs/operations/ that are written by hand have all rows of the code (`npm run docs` writes the others). */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { DEFAULT_POLICY } from '../../src/core/index.js';
import { createMetrics } from '../../src/platform/metrics.js';
import { packagePath } from '../../src/platform/paths.js';
import { tableUnder } from './markdown.js';

const rows = (page: string, heading: string): string[][] =>
  tableUnder(readFileSync(packagePath('docs', 'operations', page), 'utf8'), heading);

it('has every field of the default policy, with its value', () => {
  expect(rows('policies.md', 'Fields of the document').map(([field, value]) => [field, value])).toEqual(
    leaves(DEFAULT_POLICY),
  );
});

it('has every metric', async () => {
  const { body } = await createMetrics().expose();
  const names = [...body.matchAll(/^# TYPE (switchyard_\w+)/gm)].map(([, name]) => name);
  expect(
    rows('monitor.md', 'Metrics')
      .map(([name]) => name)
      .sort(),
  ).toEqual(names.sort());
});

/** Fields and values as the table writes them: `local.kind`, `flexible`. */
function leaves(value: object, path = ''): [string, string][] {
  return Object.entries(value).flatMap(([key, field]): [string, string][] =>
    typeof field === 'object' && field !== null && Object.keys(field).length > 0
      ? leaves(field, `${path}${key}.`)
      : [[path + key, typeof field === 'object' ? JSON.stringify(field) : String(field)]],
  );
}
