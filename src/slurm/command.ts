/** What the commands share: options as getopt takes them, and what they say. */
import { NotAccepted, type Option, takeOptions, UnknownOption } from '../words/index.js';
import { SlurmError } from './ask.js';

/** One that runs. Gives its exit code. */
export type Run = (words: readonly string[], name: string) => Promise<number> | number;

export interface Given {
  has(name: string): boolean;
  /** The last one given. */
  get(name: string): string | undefined;
  /** Values of all, separated at commas. */
  list(name: string): string[];
  operands: string[];
}

/**
 * Options by `--name -n` with `=` behind those that take a value, and `?` behind those that are accepted and change nothing. Operands may stand
 * between options.
 */
export function given(name: string, words: readonly string[], known: string): Given {
  const table = known.split(/\s*;\s*/).map((entry): Option => {
    const [, long = '', short, kind = ''] = /^(\S+?)(?: (-\w))?([=?]{0,2})$/.exec(entry) ?? [];
    return {
      long,
      ...(short && { short }),
      value: kind.includes('=') ? 'ONE' : 'NONE',
      read: kind.includes('?') ? 'has no effect' : () => undefined,
    };
  });
  const values = new Map<string, string[]>();
  const operands: string[] = [];
  let left = [...words];
  while (left.length > 0) {
    const { options, rest } = taken(name, left, table);
    for (const { option, value } of options) {
      if (typeof option.read === 'string') warn(name, `${option.long}: ${option.read}`);
      values.set(option.long, [...(values.get(option.long) ?? []), value]);
    }
    operands.push(...rest.slice(0, 1));
    left = rest.slice(1);
  }
  return {
    has: (option) => values.has(option),
    get: (option) => values.get(option)?.at(-1),
    list: (option) => (values.get(option) ?? []).flatMap((value) => value.split(',')).filter(Boolean),
    operands,
  };
}

function taken(
  name: string,
  words: readonly string[],
  table: readonly Option[],
): ReturnType<typeof takeOptions> {
  try {
    return takeOptions(words, table);
  } catch (error) {
    if (error instanceof UnknownOption)
      throw new SlurmError(
        `unrecognized option '${error.option}'\nTry "${name} --help" for more information`,
      );
    if (error instanceof NotAccepted) throw new SlurmError(`option '${error.field}' requires an argument`);
    throw error;
  }
}

export const print = (text: string): void => void process.stdout.write(`${text}\n`);
const warned = new Set<string>();
/** Once for each text. */
export function warn(name: string, text: string): void {
  if (warned.has(text)) return;
  warned.add(text);
  process.stderr.write(`${name}: warning: ${text}\n`);
}
export const complain = (name: string, text: string): void =>
  void process.stderr.write(
    `${text
      .split('\n')
      .map((one) => `${name}: error: ${one}\n`)
      .join('')}`,
  );
export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
