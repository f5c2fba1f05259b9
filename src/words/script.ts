/** Batch scripts: what their `#SBATCH` and `#SWITCHYARD` lines ask for, and how they are run. */
import { split } from 'shlex';
import { type Asked, nothing } from './asked.js';
import { type Circumstances, takeOptions } from './getopt.js';
import { readComponent, readOptions, SLURM, SWITCHYARD } from './options.js';
import { quoted } from './quoted.js';

/** A line of a script that is not understood. */
export interface Misread {
  /** From 1. */
  line: number;
  text: string;
  why: string;
}

export interface Directives {
  asked: Asked;
  /** Whether it speaks to Slurm, or names files for its output as for Slurm, and may expect what Slurm gives to jobs. */
  isSlurms: boolean;
  /** What is not understood: a mistake, unless the user says otherwise. */
  misread: Misread[];
  /** What is understood and not honored, as `--name: why`. */
  unheeded: string[];
}

/** Words of a line as a shell splits them; quotes and backslashes only. Null: a quote is left open. */
export function wordsOf(line: string): string[] | null {
  try {
    return split(line);
  } catch {
    return null;
  }
}

/** Up to a `#` that begins a comment. */
const UNCOMMENTED = /^(?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|[^\s"'\\]+|\s+(?!#)|["'])*/s;

/** The lines of a script that ask for something: `#SBATCH` and `#SWITCHYARD` before its first command. Later lines win. */
export function directivesOf(script: string, at: Circumstances): Directives {
  const asked = nothing();
  const misread: Misread[] = [];
  const unheeded = new Set<string>();
  let isSlurms = false;
  /** The component of the job that lines are about; null: the first. */
  let component: Asked | null = null;
  for (const [index, line] of script.split(/\r?\n/).entries()) {
    if (line.trim() !== '' && !line.startsWith('#')) break;
    const [, dialect, text = ''] = /^#(SBATCH|SWITCHYARD)(?:\s+(.*))?$/.exec(line) ?? [];
    if (dialect === undefined) continue;
    isSlurms ||= dialect === 'SBATCH';
    const wrong = (why: string): void => void misread.push({ line: index + 1, text: line, why });
    const words = wordsOf(UNCOMMENTED.exec(text)?.[0] ?? '');
    if (words === null) {
      wrong('a quote is left open');
      continue;
    }
    try {
      if (dialect === 'SBATCH' && words.length === 1 && words[0] === 'hetjob') {
        component = nothing();
        asked.components.push(component);
        continue;
      }
      const { options, rest } = takeOptions(words, dialect === 'SBATCH' ? SLURM : SWITCHYARD);
      const of = dialect === 'SBATCH' ? component : null;
      const ignored = of === null ? readOptions(asked, options, at) : readComponent(asked, of, options, at);
      for (const name of ignored) unheeded.add(name);
      if (rest.length > 0) wrong(`${rest[0]} is not an option`);
    } catch (error) {
      wrong((error as Error).message);
    }
  }
  isSlurms ||= (asked.output ?? asked.error) !== undefined;
  return { asked, isSlurms, misread, unheeded: [...unheeded] };
}

/** `run.sh, line 3: #SBATCH --foo: unknown option --foo` */
export const misreadAs = (name: string, { line, text, why }: Misread): string =>
  `${name}, line ${line}: ${text}: ${why}`;

/** Of one argument of a program: what Linux gives (MAX_ARG_STRLEN, with its end). */
export const SCRIPT_BYTES_MAX = 131_071;

/** Interpreters that take a program as an argument, and how; what follows it are the program's arguments. */
const INLINE: Readonly<Record<string, string>> = {
  ...{
    sh: '-c',
    bash: '-c',
    dash: '-c',
    ksh: '-c',
    zsh: '-c',
    ash: '-c',
    python: '-c',
    perl: '-e',
    ruby: '-e',
    node: '-e',
  },
};
const isShell = (program: string): boolean => /^(ba|da|k|z|a)?sh$/.test(program);

/** Gives what it is handed to a program that wants a file. */
const AS_FILE = 'script=$1; shift; exec "$@" 3<<END_OF_SCRIPT\n$script\nEND_OF_SCRIPT';
/** The same as standard input. */
const AS_INPUT = 'input=$1; shift; exec "$@" <<END_OF_INPUT\n$input\nEND_OF_INPUT';

export interface Command {
  command: string;
  arguments: string[];
}

/**
 * What runs this copy of a script: the interpreter of its first line, or `sh`.
 *
 * @param name what the script takes for its own name
 */
export function commandOfScript(script: string, name?: string, args: readonly string[] = []): Command {
  const shebang = /^#!\s*(\S+)(?:[ \t]+(\S.*?))?[ \t]*\r?\n/.exec(script);
  const [interpreter = '/bin/sh', ...more] = shebang
    ? [shebang[1]!, ...(shebang[2]?.split(/\s+/) ?? [])]
    : ['/bin/sh'];
  const program =
    (/\/env$/.test(interpreter) ? more.find((word) => !word.startsWith('-')) : interpreter)
      ?.split('/')
      .at(-1) ?? 'sh';
  const plain = program.replace(/[\d.]+$/, '');
  const inline = INLINE[plain];
  if (inline === undefined)
    return {
      command: '/bin/sh',
      arguments: ['-c', AS_FILE, 'sh', script, interpreter, ...more, '/dev/fd/3', ...args],
    };
  const named = name !== undefined && isShell(plain) ? [name] : [];
  return { command: interpreter, arguments: [...more, inline, script, ...named, ...args] };
}

/**
 * A command as one line for people. An argument of several lines is a text of its own, and stands there as `…`; the last one is the
 * script, which those before it run.
 */
export function commandLine({
  command,
  arguments: args,
}: Readonly<{ command: string; arguments: readonly string[] }>): {
  line: string;
  script: string | null;
} {
  const isText = (argument: string): boolean => argument.includes('\n');
  const word = (argument: string): string =>
    /^[\w@%+=:,./-]+$/.test(argument) ? argument : quoted(argument);
  return {
    line: [command, ...args].map((one) => (isText(one) ? '…' : word(one))).join(' '),
    script: args.findLast(isText) ?? null,
  };
}

/** A command that finds this text on its standard input. */
export const withInput = (input: string, { command, arguments: args }: Command): Command => ({
  command: '/bin/sh',
  arguments: ['-c', AS_INPUT, 'sh', input.replace(/\n$/, ''), command, ...args],
});
