import { readFileSync } from 'node:fs';
import { buildSchema, Kind, parse, validate } from 'graphql';
import { describe, expect, it } from 'vitest';
import { documents as ofAgents } from '../../src/agent/index.js';
import { createMeasure, tooComplex } from '../../src/api/admission/cost.js';
import * as ofCommands from '../../src/cli/documents.gql.js';
import { documents as ofPeers } from '../../src/federation/index.js';
import { DEFAULT_LIMITS } from '../../src/platform/limits.js';

const documents = [ofCommands, ofAgents, ofPeers].flatMap((each) => Object.entries<string>(each));

describe('the documents of the command line, agents and peers', () => {
  const schema = buildSchema(readFileSync(new URL('../../schema.graphql', import.meta.url), 'utf8'));
  const measure = createMeasure(schema, DEFAULT_LIMITS);

  it.each(documents)('%s is valid', (_, document) => {
    expect(validate(schema, parse(document)).map(String)).toEqual([]);
  });

  it.each(documents)('%s may be asked of a service with the default limits', (_, text) => {
    const document = parse(text);
    const operation = document.definitions.find((each) => each.kind === Kind.OPERATION_DEFINITION)!;
    // The longest pages that commands ask for.
    const measured = measure(document, operation, { first: 1000, last: 1000 });
    expect(measured.depth).toBeGreaterThan(0);
    expect(tooComplex(measured, DEFAULT_LIMITS)).toBeNull();
  });
});
