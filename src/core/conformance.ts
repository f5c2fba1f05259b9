/**
 * Runs cases `{rule, input, expected}` like those of the specification's vectors through the core's own functions. Numbers
 * must agree to a relative 1e-9; identifiers and orders exactly.
 */
import { dianaRules } from './conformance/diana.js';
import { gridTreeRules } from './conformance/grid-tree.js';
import { jobRatioRules } from './conformance/job-ratio.js';
import { needsRules } from './conformance/needs.js';
import { resourceRules } from './conformance/resources.js';
import type { Rules } from './conformance/rule.js';
import { runRules } from './conformance/runs.js';
import { twoLevelRules } from './conformance/two-level.js';

export interface ConformanceResult {
  /** A line for each rule, under it one for each failure. */
  lines: string[];
  passed: number;
  failed: number;
  /** Cases of rules that this version does not have. */
  notBuilt: number;
}

interface Case {
  rule: string;
  input: unknown;
  expected: unknown;
}

const TOLERANCE = 1e-9;

/** Runs a parsed file of vectors: an object with a list `cases`, or the list. Throws when it is neither. */
export function runVectors(parsed: unknown): ConformanceResult {
  const result: ConformanceResult = {
    lines: [],
    passed: 0,
    failed: 0,
    notBuilt: 0,
  };
  for (const [rule, cases] of byRule(casesOf(parsed))) {
    const run = Object.hasOwn(rules, rule) ? (rules[rule] as (input: never) => unknown) : null;
    if (run === null) {
      result.notBuilt += cases.length;
      result.lines.push(`${rule}: ${cases.length} not built`);
      continue;
    }
    const failures = cases.flatMap(({ index, input, expected }) => {
      const failure = failureOf(() => run(input as never), expected);
      return failure === null ? [] : [`  case ${index}: ${failure}`];
    });
    result.passed += cases.length - failures.length;
    result.failed += failures.length;
    result.lines.push(
      `${rule}: ${cases.length - failures.length} passed, ${failures.length} failed`,
      ...failures,
    );
  }
  return result;
}

const rules: Rules = {
  ...twoLevelRules,
  ...dianaRules,
  ...jobRatioRules,
  ...gridTreeRules,
  ...resourceRules,
  ...needsRules,
  ...runRules,
};

function casesOf(parsed: unknown): Case[] {
  const cases = Array.isArray(parsed) ? parsed : (parsed as { cases?: unknown } | null)?.cases;
  const accepted = 'accepted: {"cases": [{"rule", "input", "expected"}, …]}';
  if (!Array.isArray(cases)) throw new Error(`the file has no list of cases; ${accepted}`);
  cases.forEach((entry: Partial<Case> | null, i) => {
    if (typeof entry?.rule !== 'string' || entry.input === undefined || entry.expected === undefined) {
      throw new Error(`cases.${i} is ${JSON.stringify(entry)?.slice(0, 200)}; ${accepted}`);
    }
  });
  return cases as Case[];
}

function byRule(cases: readonly Case[]): Map<string, (Case & { index: number })[]> {
  const grouped = new Map<string, (Case & { index: number })[]>();
  cases.forEach((entry, index) => {
    const group = grouped.get(entry.rule);
    if (group === undefined) grouped.set(entry.rule, [{ ...entry, index }]);
    else group.push({ ...entry, index });
  });
  return grouped;
}

function failureOf(run: () => unknown, expected: unknown): string | null {
  try {
    const got = run();
    return agrees(got, expected) ? null : `expected ${JSON.stringify(expected)}, got ${JSON.stringify(got)}`;
  } catch (error) {
    return `expected ${JSON.stringify(expected)}, got an error: ${(error as Error).message}`;
  }
}

function agrees(got: unknown, expected: unknown): boolean {
  if (typeof got === 'number' && typeof expected === 'number') {
    return (
      got === expected || Math.abs(got - expected) <= TOLERANCE * Math.max(Math.abs(got), Math.abs(expected))
    );
  }
  if (typeof got !== 'object' || typeof expected !== 'object' || got === null || expected === null)
    return got === expected;
  if (Array.isArray(got) !== Array.isArray(expected)) return false;
  const names = new Set([...Object.keys(got), ...Object.keys(expected)]);
  return [...names].every(
    (name) =>
      Object.hasOwn(got, name) &&
      Object.hasOwn(expected, name) &&
      agrees((got as Record<string, unknown>)[name], (expected as Record<string, unknown>)[name]),
  );
}
