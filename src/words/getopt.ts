/** Options of a command line, taken apart by a table of them. */
import type { Asked } from './asked.js';
import { NotAccepted } from './values.js';

/** What readers of values may have to know and to say. */
export interface Circumstances {
  nowMs: number;
  note: (text: string) => void;
}

export type Reader = (asked: Asked, value: string, field: string, at: Circumstances) => void;

export interface Option {
  readonly long: string;
  readonly short?: string;
  /** Whether a value follows. MAY: only behind `=`. */
  readonly value: 'NONE' | 'ONE' | 'MAY';
  /** What it asks for; or, of what cannot be honored, why, in words that follow `--name: `. */
  readonly read: Reader | string;
}

/** An option that no table has. */
export class UnknownOption extends Error {
  override readonly name = 'UnknownOption';
  constructor(readonly option: string) {
    super(`unknown option ${option}`);
  }
}

/** What a list of words contains: options with their values, until the first word that is none. */
export interface Taken {
  options: { option: Option; value: string }[];
  rest: string[];
}

/**
 * Takes options apart as getopt does: `--name=x`, `--name x`, unambiguous beginnings of long names, `-n x`, `-nx`, `-Hn4`.
 *
 * @throws UnknownOption, and NotAccepted for a missing value
 */
export function takeOptions(words: readonly string[], table: readonly Option[]): Taken {
  const options: Taken['options'] = [];
  let at = 0;
  const takeValue = ({ long }: Option, behind: string | null): string => {
    const value = behind ?? words[++at];
    if (value === undefined) throw new NotAccepted(long, '', 'a value');
    return value;
  };
  for (; at < words.length; at++) {
    const word = words[at]!;
    if (word === '--') return { options, rest: words.slice(at + 1) };
    if (!/^-./.test(word)) break;
    if (word.startsWith('--')) {
      const [, name = word, behind = null] = /^(--[^=]+)=(.*)$/s.exec(word) ?? [];
      const found = longOption(name, table);
      const value = found.value === 'ONE' ? takeValue(found, behind) : (behind ?? '');
      options.push({ option: found, value });
      continue;
    }
    for (let letters = word.slice(1); letters !== ''; letters = letters.slice(1)) {
      const found = table.find(({ short }) => short === `-${letters[0]}`);
      if (!found) throw new UnknownOption(`-${letters[0]}`);
      const isLast = found.value === 'ONE';
      const behind = letters.slice(1).replace(/^=/, '');
      options.push({ option: found, value: isLast ? takeValue(found, behind || null) : '' });
      if (isLast) break;
    }
  }
  return { options, rest: words.slice(at) };
}

function longOption(name: string, table: readonly Option[]): Option {
  const exact = table.find(({ long }) => long === name);
  if (exact) return exact;
  const [first, ...others] = table.filter(({ long }) => long.startsWith(name));
  if (!first || others.length > 0) throw new UnknownOption(name);
  return first;
}
