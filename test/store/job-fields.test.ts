/** The fields of a job are the same everywhere: in the database, in the schema, for the schedulers, in what is done to jobs. */
import { readFileSync } from 'node:fs';
import { buildSchema, type GraphQLInputObjectType, type GraphQLObjectType } from 'graphql';
import { expect, it } from 'vitest';
import { jobActions, jobData, plainJob } from '../../src/core/index.js';
import { packagePath } from '../../src/platform/paths.js';
import {
  givenFields,
  type JobField,
  jobColumn,
  jobFields,
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

it('have the same names in the schema', () => {
  const schema = buildSchema(readFileSync(packagePath('schema.graphql'), 'utf8'));
  const namesOf = (type: string) =>
    Object.keys((schema.getType(type) as GraphQLObjectType | GraphQLInputObjectType).getFields());
  /** What is an id here is an object there. */
  const asObject = (field: string) => field.replace(/(.)Id$/, '$1');
  const { simulatedRunS: _, simulatedIoS: __, ...shown } = shownFields;
  expect(namesOf('Job')).toEqual(expect.arrayContaining(Object.keys(shown).map(asObject)));
  expect(namesOf('JobInput').sort()).toEqual([...Object.keys(givenFields).map(asObject), 'held'].sort());
});

it('that schedulers know are those of their jobs', () => {
  const job = plainJob({ id: 1, submittedAt: 0, estimateS: 1 });
  // Simulations alone know kinds of resources besides CPUs and memory.
  expect([...scheduledFields('JOB'), 'userClass', 'data', 'resourcesPerTask'].sort()).toEqual(
    Object.keys(job).sort(),
  );
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
