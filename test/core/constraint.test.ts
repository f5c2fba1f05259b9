import { describe, expect, it } from 'vitest';
import { type ConstraintError, parseConstraint, satisfies } from '../../src/core/resources/constraint.js';

const holds = (labels: Record<string, string>, text: string): boolean =>
  satisfies(labels, parseConstraint(text));

function errorOf(text: string): Pick<ConstraintError, 'code' | 'at'> | null {
  try {
    parseConstraint(text);
    return null;
  } catch (error) {
    const { code, at } = error as ConstraintError;
    return { code, at };
  }
}

describe('constraint expressions', () => {
  it.each([
    ['gen = 9', true],
    ['gen = 09.0', true],
    ['gen = "9.0"', false],
    ['gen != 10 and gen < 10 and gen >= 9', true],
    ['gen < "10"', false],
    ['cpu < 10', false],
    ['old', true],
    ['gone', false],
    ['gone != 1', true],
    ['not gone = 1', true],
    ['gone < 1 or gone in (1)', false],
    ['cpu in (EPYC, "EPYC")', true],
    ['cpu = epyc', false],
    ['cpu="EPYC"|gone&gone', true],
    ['(cpu = xeon or old) and ! gone', true],
    ['size = 12345678901234567890', true],
    ['size > 12345678901234567889', true],
    ['low < -1.4 and low > -1.6', true],
    ['zero = -0.00', true],
    ['text = "a\\"b\\\\"', true],
    ['toString', false],
  ])('%s: %s', (text, expected) => {
    const labels = { gen: '9', cpu: 'EPYC', old: '', size: '12345678901234567890', low: '-1.5' };
    expect(holds({ ...labels, zero: '0', text: 'a"b\\' }, text)).toBe(expected);
  });

  it.each([
    ['', 'SYNTAX', 0],
    ['a b', 'SYNTAX', 2],
    ['a and', 'SYNTAX', 5],
    ['1a', 'SYNTAX', 0],
    ['in = 1', 'SYNTAX', 0],
    ['a = or', 'SYNTAX', 4],
    ['a = = b', 'SYNTAX', 4],
    ['a in ()', 'SYNTAX', 6],
    ['a in (b', 'SYNTAX', 7],
    ['(a', 'SYNTAX', 2],
    // Cutting into words comes first.
    ['and and $', 'SYNTAX', 8],
    ['and "b\\c"', 'SYNTAX', 6],
    ['and "b', 'SYNTAX', 4],
    [' - ', 'SYNTAX', 1],
    [`${'x'.repeat(4096)} $`, 'TOO_LONG', 4096],
    [`${'('.repeat(65)}a`, 'TOO_DEEP', 65],
    [`${'not '.repeat(65)}a`, 'TOO_DEEP', 260],
  ])('%j is refused with %s at %i', (text, code, at) => {
    expect(errorOf(text)).toEqual({ code, at });
  });

  it('accepts 64 nested nots and parentheses, and a chain as long as may be', () => {
    expect(errorOf(`${'!('.repeat(32)}a${')'.repeat(32)}`)).toBeNull();
    expect(errorOf('a&'.repeat(2047).concat('a'))).toBeNull();
    expect(() => parseConstraint('a b')).toThrow('SYNTAX at position 2; accepted: and, or, or the end');
  });
});
