/** What a lane is told to do, as shell text: everything that comes from a job is quoted. */
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, resolve } from 'node:path';
import type { Assignment } from '../runner.js';

/** Why a run cannot be started; the message is for its owner. */
export class LaunchError extends Error {
  override readonly name = 'LaunchError';
}

/** The shell's errors about a run carry this name: no program of the run's does. */
export const LANE_NAME = 'switchyard-launch';

/**
 * A lane: a shell in a session and process group of its own that runs one command after another in the slot `$1`.
 *
 * For each line on its input, the name of a run, it notes in `begun` that it has been told, reads the file `run` (see `runScript`),
 * which runs one command in the foreground, writes how that ended and the times so far to `end`, and answers with an empty line. When the agent dies, the lane finishes
 * its run, finds its input closed and goes. It shares the group with the run's processes, so it must outlive the signals that they
 * get: they are caught, not ignored, because ignoring would be inherited. An end that cannot be written down, because the disk is full, is
 * written when it can be.
 */
export const LANE_SCRIPT = `
trap 'hit=1' HUP INT QUIT TERM PIPE ALRM USR1 USR2
cd "$1" || exit
[ -p alive ] || mkfifo -m 600 alive || exit
while :; do
  hit=
  read -r go || { [ "$hit" ] && continue; exit; }
  until echo "$go" 1<>"$1/begun"; do sleep 1; done
  . "$1/run"
  code=$?
  cd "$1"
  until { times && echo "$run $code"; } 1<>"$1/end"; do sleep 1; done
  echo
done
`;

/** Variables that a shell does not let anybody assign, or that change how it reads its text. */
const SHELL_VARIABLES = new Set([
  'BASHOPTS', 'BASH_VERSINFO', 'EUID', 'GROUPS', 'IFS', 'OPTIND', 'POSIXLY_CORRECT', 'PPID', 'SHELLOPTS', 'UID',
]); // biome-ignore format: a list

/** Quotes a string for a POSIX shell. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * The file `run` of a slot: line 1, to the shell a comment, is the record of the run for the agent that finds it later, the
 * rest is for the lane. It ends with `return`, because older text may follow.
 *
 * Descriptor 9 is the read end of a pipe that nobody writes to: as long as the agent can open it for writing, a process of
 * the run is still there.
 *
 * @param record JSON
 * @param outputs where the run's output goes: the directory of `out` and `err`
 * @param program absolute path of the program
 * @throws LaunchError for an environment that cannot be passed
 */
export function runScript(
  record: string,
  key: string,
  slot: string,
  outputs: string,
  program: string,
  run: RunCommand,
): string {
  const { prologue = [] } = run;
  const { assignments, words } = commandOf(program, run);
  const command = [...assignments, ...words].join(' ');
  // A shell of its own where something has to be said before the program: it becomes the program.
  const body =
    prologue.length === 0
      ? `{ cd ${quote(run.directory)} && ${command}; }`
      : `( ${prologue.join(' && ')} && cd ${quote(run.directory)} && ${command} )`;
  return (
    `${record}\nrun=${quote(key)}\n${body} ` +
    `</dev/null >${quote(`${outputs}/out`)} 2>${quote(`${outputs}/err`)} 9<>${quote(`${slot}/alive`)}\nreturn\n`
  );
}

/** The shell text that an account executes which a launcher has become: environments are not for command lines, which everybody reads. */
export function startScript(program: string, run: RunCommand): string {
  const { assignments, words } = commandOf(program, run);
  const command = ['export', ...assignments, '&&', 'exec', ...words].join(' ');
  return `umask 007\ncd ${quote(run.directory)} && ${command}\n`;
}

/** The words of a command, and the assignments that are its environment. */
function commandOf(program: string, run: RunCommand): { assignments: string[]; words: string[] } {
  const plain: string[] = [];
  const odd: string[] = [];
  for (const [name, value] of Object.entries(run.environment)) {
    if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !SHELL_VARIABLES.has(name))
      plain.push(`${name}=${quote(value)}`);
    else odd.push(quote(`${name}=${value}`));
  }
  const words = [quote(program), ...run.arguments.map(quote)];
  if (odd.length > 0) {
    // Names that a shell cannot assign go through env(1), which takes a word with "=" for an assignment.
    if (program.includes('=')) {
      throw new LaunchError(
        `${program}: a path with "=" cannot be used together with variable names other than [A-Za-z0-9_]`,
      );
    }
    words.unshift('env', ...odd);
  }
  words.unshift(...(run.words ?? []).map(quote));
  return { assignments: plain, words };
}

export interface RunCommand {
  arguments: readonly string[];
  environment: Readonly<Record<string, string>>;
  directory: string;
  /** Shell text before the program. */
  prologue?: readonly string[];
  /** Words before the program: a program that launches it. */
  words?: readonly string[];
}

/** @throws LaunchError where a string cannot be passed to a process */
export function checkStrings(assignment: Assignment): void {
  const texts = [assignment.command, assignment.workingDirectory ?? '', ...assignment.arguments];
  for (const [name, value] of Object.entries(assignment.environment)) {
    if (name === '' || name.includes('='))
      throw new LaunchError(`environment: "${name}" is not a valid variable name`);
    texts.push(name, value);
  }
  if (texts.some((text) => text.includes('\0'))) {
    throw new LaunchError('command, arguments and environment may not contain a NUL character');
  }
}

const MAX_CACHED_PROGRAMS = 1000;

/** Finds programs as execvp would, and remembers where: at a thousand starts per second the search is worth it. */
export class ProgramFinder {
  private readonly found = new Map<string, string>();

  /** @throws LaunchError when there is no such program, or it may not be executed */
  find(command: string, path: string, directory: string): string {
    if (command === '') throw new LaunchError('the command is empty');
    if (command.includes('/')) {
      const program = resolve(directory, command);
      if (!isFile(program)) throw new LaunchError(`${command}: no such file`);
      if (!isExecutable(program)) throw new LaunchError(`${command}: not executable`);
      return program;
    }
    const key = `${path}\n${command}`;
    const known = this.found.get(key);
    if (known !== undefined && isFile(known)) return known;
    for (const folder of path.split(delimiter)) {
      if (!isAbsolute(folder)) continue;
      const program = `${folder}/${command}`;
      if (!isFile(program) || !isExecutable(program)) continue;
      if (this.found.size >= MAX_CACHED_PROGRAMS) this.found.clear();
      this.found.set(key, program);
      return program;
    }
    throw new LaunchError(`${command}: no such command in PATH (${path})`);
  }
}

function isFile(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
  } catch {
    return false;
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
