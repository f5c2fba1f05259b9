import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { runVectors } from '../../src/core/index.js';

const vectors = new URL('../../../shared/spec/vectors.json', import.meta.url);
const batch = new URL('../../../shared/spec/vectors-batch.json', import.meta.url);

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

  it.runIf(existsSync(batch))('passes all of jobs and resources, and every rule is built', () => {
    const { lines, passed, failed, notBuilt } = runVectors(JSON.parse(readFileSync(batch, 'utf8')));
    expect(lines.filter((line) => line.startsWith('  '))).toEqual([]);
    expect({ passed, failed, notBuilt }).toEqual({ passed: 225, failed: 0, notBuilt: 0 });
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

  it('tells what is left of a share of nearly 1 to all its digits', () => {
    const site = (id: string, sizeMb: number) => ({
      id,
      processPower: 1,
      queued: 1,
      transfers: [{ sizeMb, bandwidthMbPerS: 1 }],
    });
    const rank = { ppr: 0.5, qr: 0.5 };
    // 1 − 1e9/(1e9 + 1) = 1/(1e9 + 1)
    const left = 1 / (1e9 + 1);
    const result = runVectors([
      {
        rule: 'jr_rank',
        input: { computation: 0, dataIntensive: 1, sites: [site('far', 1e9), site('near', 1)] },
        expected: {
          sites: [
            { id: 'far', ...rank, dpr: left, dataAccessCost: 1e9, rank: 0.5 + left },
            { id: 'near', ...rank, dpr: 1 - left, dataAccessCost: 1, rank: 1.5 - left },
          ],
          order: ['near', 'far'],
        },
      },
    ]);
    expect(result.lines).toEqual(['jr_rank: 1 passed, 0 failed']);
  });

  it('says what a file must look like', () => {
    expect(() => runVectors({})).toThrow(/no list of cases/);
    expect(() => runVectors([{ rule: 'x' }])).toThrow(/cases\.0 is \{"rule":"x"\}/);
  });
});
