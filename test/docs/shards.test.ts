import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { tableUnder } from './markdown.js';

const page = readFileSync(packagePath('docs', 'shards.md'), 'utf8');
const schema = readFileSync(packagePath('prisma', 'schema.prisma'), 'utf8');

it('says of each table in which shards it lies', () => {
  const models = schema.split(/^model /m).slice(1);
  const tables = models.map((model) => /@@map\("(\w+)"\)/.exec(model)?.[1]);
  const placed = tableUnder(page, 'What lies where').flatMap(([names]) => names!.match(/\w+/g)!);
  expect(placed.sort()).toEqual(tables.sort());
});
