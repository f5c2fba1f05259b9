/** Long variables, which are coerced in pieces: to what graphql-js makes of them, and with its words where they are wrong. */
import fc from 'fast-check';
import { parse } from 'graphql';
import { getVariableValues } from 'graphql/execution/values.js';
import { describe, expect, test } from 'vitest';
import { resolvers } from '../../src/api/resolvers/index.js';
import { createSchema } from '../../src/api/schema.js';
import { coerceVariables } from '../../src/api/variables.js';
import { withApi } from './support/api.js';

const schema = createSchema(resolvers);
const document =
  parse(`mutation ($jobs: [JobInput!]!, $input: SubmitJobsInput, $filter: JobFilter, $ids: [[ID!]], $group: SubmitJobGroupInput) {
  submitJobs(input: { jobs: $jobs }) { __typename } }`);
const operation = document.definitions[0] as Parameters<typeof coerceVariables>[2];

/** What is made of variables, by us and by graphql-js. */
async function both(variables: Record<string, unknown>) {
  let pauses = 0;
  const ours = await coerceVariables(schema, document, operation, variables, async () => void pauses++);
  const told = (errors: readonly Error[]) => ({ errors: errors.map(({ message }) => message) });
  const coerced = (given: Record<string, unknown>, of = operation) => {
    const result = getVariableValues(schema, of.variableDefinitions!, given, { maxErrors: 50 });
    return result.errors ? told(result.errors) : result.coerced;
  };
  const theirs = coerced(variables);
  const made =
    ours === null
      ? theirs
      : 'variables' in ours
        ? coerced(ours.variables, ours.document.definitions[0] as typeof operation)
        : told(ours);
  return { made, theirs, isLong: ours !== null, pauses };
}

test('are coerced as short ones are, good or not', async () => {
  const job = fc.oneof(
    { weight: 20, arbitrary: fc.record({ command: fc.constant('x') }) },
    fc.record({
      command: fc.constantFrom('x', 1, null),
      arguments: fc.oneof(fc.constant('one'), fc.array(fc.constant('a'), { maxLength: 40, minLength: 30 })),
      tasks: fc.constantFrom(1, 1.5, 'x'),
      environment: fc.array(fc.record({ name: fc.constant('a'), value: fc.constantFrom('b', 2) }), {
        maxLength: 40,
      }),
      deadline: fc.constantFrom('2030-01-01T00:00:00Z', 'soon'),
      launch: fc.constantFrom('ONCE', 'NEVER'),
      needs: fc.constantFrom(null, [], { of: { ref: 'a' } }, [
        { of: [{ condition: 'OK' }, { minDelayS: null }] },
      ]),
    }),
    fc.constantFrom(null, 1, [], {}, { command: 'x', nothing: 1 }),
  );
  const jobs = fc.array(job, { minLength: 20, maxLength: 80 });
  const filter = fc.record({ ids: fc.array(fc.constantFrom('a', 1, true), { maxLength: 80 }) });
  await fc.assert(
    fc.asyncProperty(jobs, fc.option(filter), fc.boolean(), async (jobs, filter, isGiven) => {
      const ids = [Array(50).fill('a'), ...Array(40).fill(['b'])];
      const group = { count: 1, template: { command: 'x' }, parameters: Array(100).fill('p') };
      const { made, theirs } = await both({ jobs, filter, ids, group, ...(isGiven && { input: { jobs } }) });
      // Of several variables that are wrong we tell of the first one.
      if ('errors' in (theirs as object)) {
        const [first, ...more] = (made as { errors: string[] }).errors;
        expect((theirs as { errors: string[] }).errors).toEqual(expect.arrayContaining([first, ...more]));
      } else expect(made).toEqual(theirs);
    }),
    { numRuns: 200 },
  );
});

describe('a submission', () => {
  const api = withApi();
  const SUBMIT = 'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs }) { jobIds } }';
  const ask = (jobs: unknown) => api.ask(SUBMIT, { jobs });

  test('of many jobs takes many turns, and its defaults are those of the schema', async () => {
    const needs = [{ of: Array(100).fill({ ref: 'a' }) }];
    const jobs = Array.from({ length: 2_000 }, () => ({ command: 'true', needs }));
    const { made, theirs, isLong, pauses } = await both({ jobs });
    expect(made).toEqual(theirs);
    expect([isLong, pauses > 5]).toEqual([true, true]);
    const { data } = await ask(Array(100).fill({ command: 'true' }));
    expect(data).toMatchObject({ submitJobs: { jobIds: { length: 100 } } });
  });

  test('is told what is wrong with it, over HTTP and WebSocket', async () => {
    const jobs: unknown[] = Array.from({ length: 100 }, () => ({ command: 'true' }));
    jobs[70] = { command: 'true', tasks: 'many' };
    const message = expect.stringContaining('"many" at "jobs[70].tasks"');
    const wrong = [{ message, extensions: { code: 'BAD_USER_INPUT' } }];
    expect(await ask(jobs)).toMatchObject({ status: 400, errors: wrong });
    const told = await new Promise((resolve, reject) =>
      api
        .subscriber()
        .subscribe(
          { query: SUBMIT, variables: { jobs } },
          { next: reject, error: resolve, complete: () => {} },
        ),
    );
    expect(told).toMatchObject(wrong);
  });

  test('nobody else can have variables of that type', async () => {
    const { errors } = await api.ask('query ($x: __Coerced) { job(id: $x) { id } }', { x: [1] });
    expect(errors).toMatchObject([{ extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } }]);
    expect(JSON.stringify(await api.ask('{ __schema { types { name } } }'))).not.toContain('__Coerced');
  });
});
