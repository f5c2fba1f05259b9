/** The shell script by which a job runs a task: its inputs, its executors one after another, its outputs. */
import { posix } from 'node:path';
import { badInput } from '../errors.js';
import { pathOfUrl, type TesExecutor, type TesTask } from './document.js';

/** Of everything that is wrong but an executor: as container engines do. */
export const SYSTEM_ERROR_CODE = 125;

/** A text as one word of the shell, whatever is in it. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** `place`: makes the directory of a path. `fetch` and `store`: from, to. What is the same file is where it should be. */
const FUNCTIONS = `fail() { printf 'task: %s\\n' "$1" >&2; exit ${SYSTEM_ERROR_CODE}; }
place() { case $1 in (*/*) mkdir -p -- "\${1%/*}/" || fail "the directory of $1 cannot be created" ;; esac; }
copy() {
  [ -e "$1" ] || fail "$1 does not exist"
  [ "$1" = "$2" ] && return
  place "$2"
  if [ -d "$1" ]; then mkdir -p -- "$2" && cp -RL -- "$1/." "$2"; else cp -L -- "$1" "$2"; fi || fail "$1 cannot be copied to $2"
}
store() {
  copy "$1" "$2"
  find -L "$2" -type f -exec sh -c 'from=$1 to=$2; shift 2
    for file do printf "task: output\\t%s\\t%s\\t%s\\n" "$(wc -c <"$file")" "$from\${file#"$to"}" "$file"; done >&2' sh "$1" "$2" {} +
}
`;

/** A line of the log that tells how an executor ended, or of an output. Only the task itself can deceive by it, and only its owner. */
const EXECUTOR = /^task: executor (\d+) of \d+: exit code (\d+)$/gm;
const OUTPUT = /^task: output\t *(\d+)\t(.*)\t(.*)$/gm;

/** What the script has told on standard error: exit codes of executors, by their number from 0, and files that were stored. */
export function toldBy(stderr: string): { codes: Map<number, number>; stored: Stored[] } {
  return {
    codes: new Map(
      [...stderr.matchAll(EXECUTOR)].map(([, number, code]) => [Number(number) - 1, Number(code)]),
    ),
    stored: [...stderr.matchAll(OUTPUT)].map(([, bytes = '', path = '', to = '']) => ({ bytes, path, to })),
  };
}

/** A file that was copied from a path to another. */
interface Stored {
  bytes: string;
  path: string;
  to: string;
}

/**
 * The script of a task. Throws BAD_USER_INPUT for what it cannot do.
 *
 * @param contentAt at which parameters (`${2}` …) the content of the input is, in order; null: it has none
 */
export function scriptOf(task: TesTask, contentAt: (input: number) => readonly number[] | null): string {
  const inputs = (task.inputs ?? []).map(({ url, path, type }, i) => {
    const parts = contentAt(i);
    if (parts !== null) {
      if (type === 'DIRECTORY') throw badInput(`inputs[${i}].type`, type, 'FILE with `content`');
      const words = parts.map((at) => `"\${${at}}"`).join(' ');
      return `place ${quoted(path)}\nprintf %s ${words || "''"} >${quoted(path)} || fail ${quoted(`${path} cannot be written`)}\n`;
    }
    if (url === undefined) throw badInput(`inputs[${i}].url`, url, 'a URL, unless `content` is given');
    return `copy ${quoted(pathOfUrl(`inputs[${i}].url`, url))} ${quoted(path)}\n`;
  });
  const volumes = (task.volumes ?? []).map(
    (path) => `mkdir -p -- ${quoted(path)} || fail ${quoted(`${path} cannot be created`)}\n`,
  );
  const told = task.executors.length > 1 || (task.outputs ?? []).length > 0;
  const executors = task.executors.map((executor, i) =>
    executorLines(executor, told ? `executor ${i + 1} of ${task.executors.length}` : null),
  );
  const outputs = (task.outputs ?? []).map(outputLines);
  return [FUNCTIONS, ...inputs, ...volumes, ...executors, ...outputs].join('');
}

/** `told`: by what name its end is told; null: it is the job's. */
function executorLines(executor: TesExecutor, told: string | null): string {
  const { command, workdir, stdin, stdout, stderr, env = {}, ignore_error } = executor;
  const files = [stdout, stderr].filter((file) => file !== undefined);
  return [
    ...files.map((file) => `place ${quoted(file)}\n`),
    '(\n',
    ...(workdir === undefined
      ? []
      : [`mkdir -p -- ${quoted(workdir)} && cd ${quoted(workdir)} || exit ${SYSTEM_ERROR_CODE}\n`]),
    ...Object.entries(env).map(([name, value]) => `export ${name}=${quoted(value)}\n`),
    `exec ${command.map(quoted).join(' ')}\n)`,
    stdin === undefined ? '' : ` <${quoted(stdin)}`,
    stdout === undefined ? '' : ` >${quoted(stdout)}`,
    stderr === undefined ? '' : ` 2>${quoted(stderr)}`,
    '\ncode=$?\n',
    told === null ? '' : `printf 'task: ${told}: exit code %s\\n' "$code" >&2\n`,
    ignore_error ? '' : '[ "$code" = 0 ] || exit "$code"\n',
  ].join('');
}

const WILDCARD = /[*?[]/;

function outputLines({ url, path, path_prefix }: NonNullable<TesTask['outputs']>[number], i: number): string {
  const to = pathOfUrl(`outputs[${i}].url`, url);
  if (!WILDCARD.test(path)) return `store ${quoted(path)} ${quoted(to)}\n`;
  if (path_prefix === undefined)
    throw badInput(
      `outputs[${i}].path_prefix`,
      undefined,
      'a prefix to remove from paths that match the wildcards',
    );
  // Only what is a wildcard is left to the shell.
  const pattern = path.replace(/[^\w./*?[\]!-]+/gu, quoted);
  const directory = quoted(posix.join(to, '/'));
  return `prefix=${quoted(path_prefix)}
for file in ${pattern}; do [ -e "$file" ] || continue; rest=\${file#"$prefix"}; store "$file" ${directory}"\${rest#/}"; done\n`;
}
