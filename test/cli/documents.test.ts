import { readFileSync } from 'node:fs';
import { buildSchema, parse, validate } from 'graphql';
import { describe, expect, it } from 'vitest';
import * as documents from '../../src/cli/documents.js';

describe('the documents of the command line', () => {
  const schema = buildSchema(readFileSync(new URL('../../schema.graphql', import.meta.url), 'utf8'));

  it.each(Object.entries(documents))('%s is valid', (_, document) => {
    expect(validate(schema, parse(document)).map(String)).toEqual([]);
  });
});
