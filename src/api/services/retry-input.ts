/** The retries of a job, as they are given. */
import { NEVER_RETRIED, type Retry, type RetryRule, SIGNAL_NUMBERS } from '../../core/runs/retry.js';
import { endCauses } from '../../core/states.js';
import { MAX } from '../../platform/limits.js';
import type { RetryInput, RetryRuleInput } from '../generated/types.js';

/** What a rule may name. */
const CAUSES = endCauses.filter(
  (cause) => !NEVER_RETRIED.has(cause) && cause !== 'OTHER_TASK_FAILED' && cause !== 'REQUEUED',
);

type Refuse = (field: string, value: unknown, accepted: string) => void;

export function retryGiven(input: RetryInput | null | undefined, refuse: Refuse): Retry | null {
  if (input === null || input === undefined) return null;
  const { maxRetries, backoffS, factor, maxBackoffS, rules } = input;
  const between = inRange(refuse);
  between('retry.maxRetries', maxRetries, 0, MAX.retries);
  between('retry.backoffS', backoffS, 0, MAX.seconds);
  between('retry.factor', factor, 1, MAX.retryFactor);
  between('retry.maxBackoffS', maxBackoffS, 0, MAX.seconds);
  if (rules.length > MAX.retryRules) refuse('retry.rules', rules.length, `up to ${MAX.retryRules} rules`);
  return {
    ...{ maxRetries, backoffS, factor, maxBackoffS },
    rules: rules.slice(0, MAX.retryRules).map((rule, i) => ruleGiven(`retry.rules[${i}]`, rule, refuse)),
  };
}

function ruleGiven(field: string, rule: RetryRuleInput, refuse: Refuse): RetryRule {
  const { action, memoryFactor } = rule;
  const between = inRange(refuse);
  const several = <T>(name: string, given: readonly T[] | null | undefined, most: number): T[] | null => {
    if (given === null || given === undefined) return null;
    if (given.length === 0 || given.length > most)
      refuse(`${field}.${name}`, given.length, `1 to ${most} entries, or nothing`);
    return given.slice(0, most);
  };
  const causes = several('causes', rule.causes, CAUSES.length);
  const wrong = causes?.find((cause) => !CAUSES.includes(cause));
  if (wrong !== undefined) refuse(`${field}.causes`, wrong, CAUSES.join(', '));
  const exitCodes = several('exitCodes', rule.exitCodes, MAX.retryExitCodes);
  for (const [i, { from, to }] of (exitCodes ?? []).entries()) {
    between(`${field}.exitCodes[${i}].from`, from, 0, MAX.integer);
    between(`${field}.exitCodes[${i}].to`, to, from, MAX.integer);
  }
  const signals = several('signals', rule.signals, Object.keys(SIGNAL_NUMBERS).length);
  const unknown = signals?.find((signal) => !(signal in SIGNAL_NUMBERS));
  if (unknown !== undefined) refuse(`${field}.signals`, unknown, Object.keys(SIGNAL_NUMBERS).join(', '));
  between(`${field}.memoryFactor`, memoryFactor, 1, MAX.memoryFactor);
  const memoryMaxMb = rule.memoryMaxMb ?? null;
  if (memoryMaxMb !== null) between(`${field}.memoryMaxMb`, memoryMaxMb, 0, MAX.integer);
  return { causes, exitCodes, signals, action, memoryFactor, memoryMaxMb };
}

const inRange =
  (refuse: Refuse) =>
  (field: string, value: number, min: number, max: number): void => {
    if (!(value >= min && value <= max)) refuse(field, value, `${min} to ${max}`);
  };
