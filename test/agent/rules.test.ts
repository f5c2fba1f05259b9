/** Rules of a site's operator for the terms of jobs (docs/operations/slurm.md). */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type Termed, TermsRules } from '../../src/agent/external/rules.js';
import { NO_TERMS } from '../../src/agent/external/scheduler.js';

const dir = mkdtempSync(join(tmpdir(), 'sy-rules-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const file = join(dir, 'rules.json');
const warnings: string[] = [];
const open = (rules: unknown, otherwise = NO_TERMS): TermsRules => {
  writeFileSync(file, typeof rules === 'string' ? rules : JSON.stringify(rules));
  return new TermsRules({
    ...{ file, otherwise },
    warn: ({ error }: { error?: string }) => warnings.push(String(error)),
  });
};
const run = (more: Partial<Termed> = {}): Termed => ({
  ...{ user: 'ann', project: null, siteTerms: null, tasks: 1, cpusPerTask: 1, memoryMbPerTask: 0 },
  ...{ resourcesPerTask: [], runTimeLimitS: null },
  ...more,
});
const asks = (siteTerms: Partial<typeof NO_TERMS>) => ({ siteTerms: { ...NO_TERMS, ...siteTerms } });

describe('rules for the terms of jobs', () => {
  it('go by user, project, size, devices and limit; of each term the first that says it', () => {
    const rules = open([
      { users: ['bob'], qos: 'high' },
      { projects: ['atlas'], account: 'physics' },
      { resources: ['gpu'], partition: 'gpu' },
      { cpusMin: 64, partition: 'large' },
      { memoryMbMin: 100_000, partition: 'fat' },
      { limitSMax: 1800, partition: 'debug' },
      { limitSMin: 86_400, partition: 'long' },
      { partition: 'batch', account: 'others', qos: 'normal' },
    ]);
    const terms = (more: Partial<Termed>) => Object.values(rules.of(run(more))).join(' ');
    expect(terms({ runTimeLimitS: 3600 })).toBe('batch others normal');
    expect(terms({ user: 'bob', runTimeLimitS: 3600 })).toBe('batch others high');
    expect(terms({ project: 'atlas', runTimeLimitS: 1800 })).toBe('debug physics normal');
    expect(terms({ resourcesPerTask: [{ kind: 'gpu', amount: 1 }], cpusPerTask: 64 })).toBe(
      'gpu others normal',
    );
    expect(terms({ tasks: 8, cpusPerTask: 8 })).toBe('large others normal');
    expect(terms({ tasks: 2, memoryMbPerTask: 50_000 })).toBe('fat others normal');
    // Without a limit it is longer than any.
    expect(terms({})).toBe('long others normal');
  });

  it('let a job choose among what they list, and what they do not mention', () => {
    const rules = open([
      { users: ['bob'], choices: { qos: ['high'] } },
      { partition: 'batch,short', qos: 'normal' },
    ]);
    const terms = (more: Partial<Termed>) => Object.values(rules.of(run(more)));
    expect(terms({ ...asks({ partition: 'short', account: 'any' }) })).toEqual(['short', 'any', 'normal']);
    expect(terms({ user: 'bob', ...asks({ qos: 'high' }) })).toEqual(['batch,short', null, 'high']);
    expect(() => terms(asks({ qos: 'high' }))).toThrow(
      'qos: "high" was requested; accepted at this site: normal',
    );
    expect(() => terms(asks({ partition: 'short,gpu' }))).toThrow(
      'partition: "gpu" was requested; accepted at this site: batch, short',
    );
    const bound = open([], { ...NO_TERMS, account: 'science' });
    expect(bound.of(run()).account).toBe('science');
    expect(() => bound.of(run(asks({ account: 'other' })))).toThrow('accepted at this site: science');
  });

  it.each([
    ['{', 'accepted: a JSON list of rules'],
    ['{}', 'rules: {} is not accepted; accepted: a list of rules'],
    [[{ partition: 'a b' }], 'rules[0].partition: "a b" is not accepted; accepted: letters'],
    [[{}, { cpusMin: '3' }], 'rules[1].cpusMin: "3" is not accepted; accepted: a number of at least 0'],
    [[{ user: 'ann' }], 'rules[0].user: "ann" is not accepted; accepted: a rule: users, projects, '],
    [[{ choices: { qos: ['--x'] } }], 'rules[0].choices.qos[0]: "--x" is not accepted; accepted: letters'],
  ])('are refused in words: %j', (rules, message) => {
    expect(() => open(rules)).toThrow(message);
  });

  it('are read again when they change; what is not accepted changes nothing, and is said once', () => {
    const rules = open([{ partition: 'one' }]);
    writeFileSync(file, JSON.stringify([{ partition: 'another' }]));
    expect(rules.of(run()).partition).toBe('another');
    warnings.length = 0;
    writeFileSync(file, '[{"partition": 3}]');
    expect([rules.of(run()).partition, rules.of(run()).partition]).toEqual(['another', 'another']);
    expect(warnings).toEqual([
      expect.stringContaining('rules[0].partition: 3 is not accepted; accepted: letters'),
    ]);
  });
});
