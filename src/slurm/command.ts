/** What the commands share: options as getopt takes them, and what they say. */
import { NotAccepted, type Option, takeOptions, UnknownOption } from '../words/index.js';
import { SlurmError } from './ask.js';
import { entriesOf } from './options.js';

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

/** What is asked for with --help or --version: it is said, and nothing else is done. */
export class Told extends Error {
  override readonly name = 'Told';
}

const VERSION = 'slurm 23.11.0 (Switchyard)';
export const versionTold = (): Told => new Told(VERSION);
export const helpTold = (name: string): Told =>
  new Told(`${name} works like Slurm's; Switchyard's docs/slurm-users.md lists the differences.`);

/**
 * Options of a table (options.ts). Operands may stand between options.
 *
 * @throws Told for --help and --version
 */
export function given(name: string, words: readonly string[], known: string): Given {
  const table = entriesOf(known).map(
    ({ long, short, takesValue, kind }): Option => ({
      long,
      ...(short && { short }),
      value: takesValue ? 'ONE' : 'NONE',
      read: kind === 'NOT' ? 'has no effect' : () => undefined,
    }),
  );
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
  if (values.has('--help')) throw helpTold(name);
  if (values.has('--version')) throw versionTold();
  return {
    has: (option) => values.has(option),
    get: (option) => values.get(option)?.at(-1),
    list: (option) => (values.get(option) ?? []).flatMap((value) => value.split(',')).filter(Boolean),
    operands,
  };
}

export const unrecognized = (name: string, { option }: UnknownOption): SlurmError =>
  new SlurmError(`unrecognized option '${option}'\nTry "${name} --help" for more information`, 'OPTION');

function taken(
  name: string,
  words: readonly string[],
  table: readonly Option[],
): ReturnType<typeof takeOptions> {
  try {
    return takeOptions(words, table);
  } catch (error) {
    if (error instanceof UnknownOption) throw unrecognized(name, error);
    if (error instanceof NotAccepted)
      throw new SlurmError(`option '${error.field}' requires an argument`, 'OPTION');
    throw error;
  }
}

export const print = (text: string): void => void process.stdout.write(`${text}\n`);
const warned = new Set<string>();
/** Once for each text. */
export function warn(name: string, text: string): void {
  const said = `${name}: warning: ${text}\n`;
  if (warned.has(said)) return;
  warned.add(said);
  process.stderr.write(said);
}
export const complain = (name: string, text: string): void =>
  void process.stderr.write(
    `${text
      .split('\n')
      .map((one) => `${name}: error: ${one}\n`)
      .join('')}`,
  );
export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
