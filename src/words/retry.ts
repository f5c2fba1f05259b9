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

/** `exit=75,exit=100-110,do=ELSEWHERE,memory=2`. `known`: all causes of an end. */
export function retryRuleOf<Cause extends string>(
  field: string,
  written: string,
  known: readonly Cause[],
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
    else if (name === 'cause') rule.causes = [...(rule.causes ?? []), parseWord(field, value, known)];
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
