import { readFileSync } from 'node:fs';
import { buildSchema, Kind, parse, validate } from 'graphql';
import { describe, expect, it } from 'vitest';
import { documents as ofAgents } from '../../src/agent/index.js';
import { createMeasure, tooComplex } from '../../src/api/admission/cost.js';
import * as ofCommands from '../../src/cli/documents.gql.js';
import { documents as ofPeers } from '../../src/federation/index.js';
import * as ofMcp from '../../src/mcp/documents.gql.js';
import { DEFAULT_LIMITS } from '../../src/platform/limits.js';
import * as ofSlurm from '../../src/slurm/documents.gql.js';
import { STARTS_PAGE } from '../../src/slurm/jobs.js';
import { SITES_PAGE } from '../../src/slurm/partitions.js';
import { STEPS_PAGES } from '../../src/slurm/steps.js';

const documents = [ofCommands, ofAgents, ofMcp, ofPeers, ofSlurm].flatMap((each) =>
  Object.entries<string>(each),
);

describe('the documents of the command line, Slurm’s commands, agents, peers and the MCP server', () => {
  const schema = buildSchema(readFileSync(new URL('../../schema.graphql', import.meta.url), 'utf8'));
  const measure = createMeasure(schema, DEFAULT_LIMITS);

  it.each(documents)('%s is valid', (_, document) => {
    expect(validate(schema, parse(document)).map(String)).toEqual([]);
  });

  it.each(documents)('%s may be asked of a service with the default limits', (name, text) => {
    const document = parse(text);
    const operation = document.definitions.find((each) => each.kind === Kind.OPERATION_DEFINITION)!;
    // The longest pages that commands ask for.
    const pages: Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>> = {
      SlurmSitesDocument: [{ first: SITES_PAGE }],
      SlurmStartsDocument: [{ first: STARTS_PAGE }],
      SlurmStepsDocument: STEPS_PAGES,
    };
    for (const page of pages[name] ?? [{ first: 1000, last: 1000 }]) {
      const measured = measure(document, operation, page);
      expect(measured.depth).toBeGreaterThan(0);
      expect(tooComplex(measured, DEFAULT_LIMITS)).toBeNull();
    }
  });
});
