/**
 * Runs cases `{rule, input, expected}` like those of the specification's vectors through the core's own functions. Numbers
 * must agree to a relative 1e-9; identifiers and orders exactly.
 */

import { PriorityLoad } from './dispatch/load.js';
import { leastLoaded } from './dispatch/two-level.js';
import { JobQueue } from './local/queue.js';
import { OwnPriorityWalk } from './local/walk.js';
import type { Job, UserClass } from './model.js';
import type { LocalWeights } from './policy.js';
import { meanOf, msPriority } from './priority/ms-priority.js';
import { Requirements } from './resources/requirements.js';

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

/** By the name of a rule: the expected form of the answer, from the input. */
const rules: Record<string, (input: never) => unknown> = {
  ms_priority: (input: MsInput) => {
    const { deadline, estimate, submit, userClass, licenses } = input.job;
    const job = { deadline, estimate, submit, userClass, licences: licenses };
    const policy = {
      maxDelta: input.max,
      weights: input.weights,
      userClassDelta: null,
    };
    return msPriority(job, meanOf(input.window), input.licenseKinds, policy);
  },

  dispatch: (input: DispatchInput) => {
    const sites = input.sites.map(({ id, eligible, queued }) => {
      const load = new PriorityLoad();
      for (const job of queued) load.add(job.priority, job.estimate * job.benchmark);
      return {
        id,
        eligible,
        load: load.loadFrom(input.priority),
        count: load.countFrom(input.priority),
      };
    });
    const eligible = sites.filter((site) => site.eligible);
    const { left } = leastLoaded(
      eligible.map((site) => site.load),
      eligible.map((site) => site.count),
    );
    return {
      load: Object.fromEntries(sites.map((site) => [site.id, site.load])),
      count: Object.fromEntries(sites.map((site) => [site.id, site.count])),
      candidates: left.map((i) => eligible[i]?.id),
    };
  },

  ls_priorities: (input: LsInput) => {
    const requirements = new Requirements();
    const queue = new JobQueue();
    const requests = new Map<string, number>();
    const slots = input.queue.map(({ licenses, ...given }, id) => {
      const job: Job = {
        ...anyJob,
        ...given,
        id,
        licences: [...licenses].sort(),
      };
      for (const kind of licenses) requests.set(kind, (requests.get(kind) ?? 0) + 1);
      return queue.add(job, requirements.enter(job), 0);
    });
    const walk = new OwnPriorityWalk(queue, {
      now: input.now,
      weights: input.weights,
      bestBenchmark: Math.max(...input.machines.map((machine) => machine.benchmark)),
      requests,
      copiesOf: (kind) => input.licenseTotals[kind] ?? 0,
    });
    return slots.map((slot, i) => ({
      id: input.queue[i]?.id,
      ...walk.termsOf(slot),
      priority: walk.valueOf(slot),
    }));
  },
};

interface MsInput {
  max: number;
  licenseKinds: number;
  weights: { deadline: number; licenses: number; user: number };
  window: number[];
  job: {
    submit: number;
    estimate: number;
    userClass: UserClass;
    deadline: number | null;
    licenses: string[];
  };
}

interface DispatchInput {
  priority: number;
  sites: {
    id: string;
    eligible: boolean;
    queued: { priority: number; estimate: number; benchmark: number }[];
  }[];
}

interface LsInput {
  now: number;
  licenseTotals: Record<string, number>;
  machines: { id: string; benchmark: number }[];
  weights: LocalWeights;
  queue: {
    id: string;
    submit: number;
    estimate: number;
    benchmark: number;
    deadline: number | null;
    licenses: string[];
  }[];
}

/** What the vectors leave out because the rule does not look at it. */
const anyJob = {
  userId: 0,
  userClass: 'REGULAR',
  tasks: 1,
  cpusPerTask: 1,
  memoryMbPerTask: 0,
  os: null,
  arch: null,
  boost: 0,
  priority: null,
  runTimeLimit: null,
  application: '',
  groupId: 0,
  migratedAt: null,
  data: null,
} as const;

function casesOf(parsed: unknown): Case[] {
  const cases = Array.isArray(parsed) ? parsed : (parsed as { cases?: unknown } | null)?.cases;
  const accepted = 'accepted is {"cases": [{"rule", "input", "expected"}, …]}';
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
