/** The fields of a job are the same everywhere: in the database, in the schema, for the schedulers, in what is done to jobs. */
import { readFileSync } from 'node:fs';
import { buildSchema, type GraphQLInputObjectType, type GraphQLObjectType, parse, visit } from 'graphql';
import { expect, it } from 'vitest';
import { jobActions, jobData, plainJob } from '../../src/core/index.js';
import { packagePath } from '../../src/platform/paths.js';
import {
  assignedFields,
  givenFields,
  grantedFields,
  type JobField,
  jobColumn,
  jobFields,
  offeredFields,
  scheduledFields,
  shownFields,
} from '../../src/store/job-fields.js';
import { withDatabase } from '../support/database.js';

const test = withDatabase();
const fields = Object.keys(jobFields) as JobField[];
/** As PostgreSQL calls them. */
const typeNames: Record<string, string> = {
  bigint: 'int8',
  integer: 'int4',
  boolean: 'bool',
  'text[]': '_text',
};

const schema = buildSchema(readFileSync(packagePath('schema.graphql'), 'utf8'));
const namesOf = (type: string) =>
  Object.keys((schema.getType(type) as GraphQLObjectType | GraphQLInputObjectType).getFields());
/** What is an id here is an object there. */
const asObject = (field: string) => field.replace(/(.)Id$/, '$1');
/** What people see. */
const shown = Object.keys(shownFields)
  .filter((field) => !field.startsWith('simulated'))
  .map(asObject);
/** Made of fields of the same name, for the machines of a run or for somebody who does not know our datasets and sites. */
const derived = new Set([
  ...['Assignment.simulatedIoS', 'Assignment.inputs', 'Assignment.outputs'],
  ...['OfferedJob.outputs', 'ClaimResult.inputs'],
  // Of its tasks on machines; what is meant here is `jobParts`.
  'Assignment.parts',
]);

it('are the columns of the table, with their types', async () => {
  const { rows } = await test.pool.query(
    `SELECT column_name AS name, udt_name AS type, is_nullable = 'YES' AS nullable FROM information_schema.columns
      WHERE table_schema = 'public' AND table_name = 'jobs'`,
  );
  const wanted = fields.map((field) => {
    const { type, nullable, sparse } = jobFields[field];
    return { name: jobColumn[field], type: typeNames[type] ?? type, nullable: nullable || sparse };
  });
  const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
  expect(rows.sort(byName)).toEqual(wanted.sort(byName));
});

/** What a new job waits for is kept apart (src/store/needs.ts). */
const waits = ['needs', 'notBefore', 'onUnmet', 'ref'];
/** It becomes memory per task. */
const other = ['memoryMbPerCpu'];
/** Follows from the class. */
const isDerived = (name: string) => name === 'charged';

it('have the same names in the schema', () => {
  expect(namesOf('Job')).toEqual(expect.arrayContaining(shown));
  expect(namesOf('JobInput').sort()).toEqual(
    [
      ...Object.keys(givenFields)
        .filter((name) => !isDerived(name))
        .map(asObject),
      'held',
      ...waits,
      ...other,
    ].sort(),
  );
});

it('are what agents and peers are told, as far as they are marked', () => {
  const told = { Assignment: assignedFields, OfferedJob: offeredFields, ClaimResult: grantedFields };
  for (const [type, marked] of Object.entries(told)) {
    const given = namesOf(type).filter((name) => name in givenFields && !derived.has(`${type}.${name}`));
    expect([type, given.sort()]).toEqual([type, [...marked].sort()]);
  }
});

it('are asked for by the command line', () => {
  const { definitions } = parse(readFileSync(packagePath('src', 'cli', 'documents.graphql'), 'utf8'));
  const asked = new Set<string>();
  for (const definition of definitions) {
    if (!('name' in definition) || !['JobFields', 'Job'].includes(definition.name?.value ?? '')) continue;
    visit(definition, { Field: ({ name }) => void asked.add(name.value) });
  }
  expect([...asked]).toEqual(expect.arrayContaining(shown));
});

it('that schedulers know are those of their jobs', () => {
  const job = plainJob({ id: 1, submittedAt: 0, estimateS: 1 });
  expect([...scheduledFields('JOB'), 'userClass', 'data'].sort()).toEqual(Object.keys(job).sort());
  expect(scheduledFields('DATA').sort()).toEqual(Object.keys(jobData({})).sort());
});

it('are written by whoever submits the job, or by what is done to it', () => {
  const written = Object.values(jobActions).flatMap((action) => [
    ...('sets' in action ? action.sets : []),
    ...('clears' in action ? action.clears : []),
  ]);
  expect(fields).toEqual(expect.arrayContaining(written));
  // The id is given; seq, state and changedAt change with each action.
  const all = [...Object.keys(givenFields), ...written, 'id', 'seq', 'state', 'changedAt'];
  expect([...new Set(all)].sort()).toEqual([...fields].sort());
});
