import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { runVectors } from '../../src/core/index.js';

const vectors = new URL('../../../shared/spec/vectors.json', import.meta.url);

describe('runVectors', () => {
  it.runIf(existsSync(vectors))('passes all vectors, and every rule is built', () => {
    const { lines, passed, failed, notBuilt } = runVectors(JSON.parse(readFileSync(vectors, 'utf8')));
    expect(lines.filter((line) => line.startsWith('  '))).toEqual([]);
    expect({ passed, failed, notBuilt }).toEqual({
      passed: 300,
      failed: 0,
      notBuilt: 0,
    });
  });

  it('counts failures and rules that are not built apart, and shows expected and got', () => {
    const input = {
      max: 3,
      licenseKinds: 0,
      weights: { deadline: 1, licenses: 1, user: 2 },
      window: [],
      job: {
        submit: 0,
        estimate: 10,
        userClass: 'GOLD',
        deadline: null,
        licenses: [],
      },
    };
    const result = runVectors({
      cases: [
        {
          rule: 'ms_priority',
          input,
          expected: { deadline: 0, licenses: 0, user: 3, priority: 6 },
        },
        {
          rule: 'ms_priority',
          input,
          expected: { deadline: 0, licenses: 0, user: 3, priority: 7 },
        },
        { rule: 'ms_priority', input: null, expected: {} },
        { rule: 'something_else', input, expected: {} },
      ],
    });
    expect(result).toMatchObject({ passed: 1, failed: 2, notBuilt: 1 });
    expect(result.lines).toHaveLength(4);
    expect(result.lines[0]).toBe('ms_priority: 1 passed, 2 failed');
    expect(result.lines[1]).toBe(
      '  case 1: expected {"deadline":0,"licenses":0,"user":3,"priority":7}, got {"deadline":0,"licenses":0,"user":3,"priority":6}',
    );
    expect(result.lines[3]).toBe('something_else: 1 not built');
  });

  it('says what a file must look like', () => {
    expect(() => runVectors({})).toThrow(/no list of cases/);
    expect(() => runVectors([{ rule: 'x' }])).toThrow(/cases\.0 is \{"rule":"x"\}/);
  });
});
