/** Rules of retries as people write them. */
import { NotAccepted, parseNumber, parseWord } from './values.js';

export interface WrittenRule<Cause> {
  action: 'RETRY' | 'RETRY_ELSEWHERE' | 'FAIL' | 'HOLD';
  causes?: Cause[];
  exitCodes?: { from: number; to: number }[];
  signals?: string[];
  memoryFactor?: number;
  memoryMaxMb?: number;
}

/** As `RetryInput` of the schema. */
export interface WrittenRetry<Cause> {
  maxRetries?: number;
  backoffS?: number;
  factor?: number;
  maxBackoffS?: number;
  rules?: WrittenRule<Cause>[];
}

/** Without a rule, `--retries` starts the job again whatever has failed. */
export const withRule = <Cause>(retry: WrittenRetry<Cause>): WrittenRetry<Cause> => ({
  ...retry,
  ...(retry.maxRetries !== undefined && { rules: retry.rules ?? [{ action: 'RETRY' }] }),
});

/** `exit=75,exit=100-110,do=ELSEWHERE,memory=2`. `known`: all causes of an end; null: the service checks them. */
export function retryRuleOf<Cause extends string>(
  field: string,
  written: string,
  known: readonly Cause[] | null,
): WrittenRule<Cause> {
  const rule: WrittenRule<Cause> = { action: 'RETRY' };
  const whole = (text: string) => parseNumber(field, text, { min: 0, integer: true });
  for (const part of written.split(',')) {
    const [, name = '', value = ''] = /^([^=]*)=(.+)$/.exec(part.trim()) ?? [];
    if (name === 'exit') {
      const [from = '', to = from] = value.split('-');
      rule.exitCodes = [...(rule.exitCodes ?? []), { from: whole(from), to: whole(to) }];
    } else if (name === 'signal')
      rule.signals = [...(rule.signals ?? []), value.startsWith('SIG') ? value : `SIG${value}`];
    else if (name === 'cause')
      rule.causes = [
        ...(rule.causes ?? []),
        known === null ? (value as Cause) : parseWord(field, value, known),
      ];
    else if (name === 'do') {
      const word = parseWord(field, value, ['RETRY', 'ELSEWHERE', 'FAIL', 'HOLD'] as const);
      rule.action = word === 'ELSEWHERE' ? 'RETRY_ELSEWHERE' : word;
    } else if (name === 'memory') rule.memoryFactor = parseNumber(field, value, { min: 1 });
    else if (name === 'memory-max-mb') rule.memoryMaxMb = whole(value);
    else
      throw new NotAccepted(
        field,
        part,
        'exit=, signal=, cause=, do=, memory= or memory-max-mb= with a value',
      );
  }
  return rule;
}

/** Whether it starts a job again only as often as `maxRetries` says; what is taken back, or makes room, does not count. */
export const countsRetries = ({ action, causes, exitCodes, signals }: WrittenRule<string>): boolean =>
  (action === 'RETRY' || action === 'RETRY_ELSEWHERE') &&
  !(exitCodes === undefined && signals === undefined && causes?.every((cause) => cause === 'PREEMPTED'));
