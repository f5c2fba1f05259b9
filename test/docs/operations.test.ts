import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { FIELD_COST, LIST_SIZE } from '../../src/api/admission/cost.js';
import { DEFAULT_POLICY, dispatchKinds, localKinds } from '../../src/core/index.js';
import { VARIABLES } from '../../src/platform/config.js';
import { FIXED_LIMITS, LIMIT_VARIABLES, shownLimit } from '../../src/platform/limits.js';
import { createMetrics } from '../../src/platform/metrics.js';
import { tableUnder } from './markdown.js';

const operations = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');

describe('docs/operations.md', () => {
  it.each([
    ['Variables', VARIABLES],
    ['Limits', LIMIT_VARIABLES],
  ])('%s: the table of the code', (heading, variables) => {
    const expected = Object.values(variables).map((one) => [one.name, one.default ?? '', one.meaning]);
    expect(tableUnder(operations, heading)).toEqual(expected);
  });

  it('has the limits that cannot be set', () => {
    const expected = Object.values(FIXED_LIMITS).map(({ max, meaning }) => [shownLimit(max), meaning]);
    expect(tableUnder(operations, 'Fixed limits')).toEqual(expected);
  });

  it.each([
    ['Cost of fields', FIELD_COST],
    ['Length of lists', LIST_SIZE],
  ])('%s: the table of the code', (heading, costs) => {
    const expected = Object.entries(costs).map(([field, cost]) => [field, String(cost)]);
    expect(tableUnder(operations, heading)).toEqual(expected);
  });

  it('has every field of the default policy, with its value', () => {
    expect(tableUnder(operations, 'Policy').map(([field, value]) => [field, value])).toEqual(
      leaves(DEFAULT_POLICY),
    );
  });

  it('has every dispatch and local policy, as it describes itself', () => {
    const byKind = (rows: string[][]) => rows.sort(([a = ''], [b = '']) => a.localeCompare(b));
    const dispatch = dispatchKinds.map(({ schema, documentation: { jobsGo, fields } }) => [
      schema.shape.kind.value,
      jobsGo,
      fields,
    ]);
    const local = localKinds.map(({ schema, documentation: { starts, fields } }) => [
      schema.shape.kind.value,
      starts,
      fields,
    ]);
    expect(byKind(tableUnder(operations, 'Dispatch policies'))).toEqual(byKind(dispatch));
    expect(byKind(tableUnder(operations, 'Local policies'))).toEqual(byKind(local));
  });

  it('has every metric', async () => {
    const { body } = await createMetrics().expose();
    const names = [...body.matchAll(/^# TYPE (switchyard_\w+)/gm)].map(([, name]) => name);
    expect(
      tableUnder(operations, 'What to watch')
        .map(([name]) => name)
        .sort(),
    ).toEqual(names.sort());
  });
});

/** Fields and values as the table writes them: `local.kind`, `flexible`. */
function leaves(value: object, path = ''): [string, string][] {
  return Object.entries(value).flatMap(([key, field]): [string, string][] =>
    typeof field === 'object' && field !== null
      ? leaves(field, `${path}${key}.`)
      : [[path + key, String(field)]],
  );
}
