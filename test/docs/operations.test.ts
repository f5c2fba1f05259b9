import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { DEFAULT_POLICY, dispatchPolicySchema, localPolicySchema } from '../../src/core/policy.js';
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

  it('has every field of the default policy, with its value', () => {
    expect(tableUnder(operations, 'Policy').map(([field, value]) => [field, value])).toEqual(
      leaves(DEFAULT_POLICY),
    );
  });

  it.each([
    ['Dispatch policies', dispatchPolicySchema],
    ['Local policies', localPolicySchema],
  ])('has every one of the %s', (heading, { options }) => {
    const kinds = options.map((option) => option.shape.kind.value);
    expect(
      tableUnder(operations, heading)
        .map(([kind]) => kind)
        .sort(),
    ).toEqual([...kinds].sort());
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
