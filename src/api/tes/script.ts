/** The shell script by which a job runs a task: its inputs, its executors one after another, its outputs. */
import { posix } from 'node:path';
import { isHttp, shownUrl } from '../../platform/urls.js';
import { badInput } from '../errors.js';
import { pathOfUrl, type TesExecutor, type TesTask } from './document.js';

/** Of everything that is wrong but an executor: as container engines do. */
export const SYSTEM_ERROR_CODE = 125;

/** A text as one word of the shell, whatever is in it. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Where what is to be uploaded is put, in the directory of the job: what each output has is under its number, from 1. */
const UPLOADS = 'task-outputs';
/** The path of an output there, for the agent that uploads it. */
export const uploadPath = (output: number): string => `${UPLOADS}/${output + 1}`;

/**
 * `place`: makes the directory of a path. `copy` and `store`: from, to. What is the same file is where it should be. `upload`: from, the number of
 * the output, and the path below its URL with a / before it.
 */
const FUNCTIONS = `fail() { printf 'task: %s\\n' "$1" >&2; exit ${SYSTEM_ERROR_CODE}; }
place() { case $1 in (*/*) mkdir -p -- "\${1%/*}/" || fail "the directory of $1 cannot be created" ;; esac; }
copy() {
  [ -e "$1" ] || fail "$1 does not exist"
  [ "$1" -ef "$2" ] && return
  place "$2"
  if [ -d "$1" ]; then mkdir -p -- "$2" && cp -RL -- "$1/." "$2"; else cp -L -- "$1" "$2"; fi || fail "$1 cannot be copied to $2"
}
tell() {
  find -L "$2" -type f -exec sh -c 'from=$1 at=$2 word=$3 to=$4; shift 4
    for file do printf "task: %s\\t%s\\t%s\\t%s\\n" "$word" "$(wc -c <"$file")" "$from\${file#"$at"}" "$to\${file#"$at"}"; done >&2' sh "$@" {} +
}
store() { copy "$1" "$2"; tell "$1" "\${2%/}" output "\${2%/}"; }
`;

/** Where a task has inputs or outputs by HTTP, which its agent fetches and sends. */
const TRANSFERS = `directory=$PWD
outdated() { fail "$1: the agent of this machine is of an earlier release, which does not transfer files by http(s)"; }
download() {
  [ -n "$1" ] || outdated "$3"
  copy "$1" "$2"
  chmod u+w -- "$2"
}
upload() {
  [ -n "\${SWITCHYARD_UPLOADS-}" ] || outdated "$1"
  copy "$1" "$directory/${UPLOADS}/$2$3"
  tell "$1" "$directory/${UPLOADS}/$2$3" upload "$2$3"
}
`;

/** A line of the log that tells how an executor ended, or of an output. Only the task itself can deceive by it, and only its owner. */
const EXECUTOR = /^task: executor (\d+) of \d+: exit code (\d+)$/gm;
const OUTPUT = /^task: output\t *(\d+)\t(.*)\t(.*)$/gm;
const UPLOAD = /^task: upload\t *(\d+)\t(.*)\t(\d+)(?:\/(.*))?$/gm;
/** What it says of its own failures. */
const FAULT = /^task: (?!executor \d|output\t|upload\t)(.+)$/gm;

/**
 * What the script has told on standard error: exit codes of executors, by their number from 0, files that were stored, those that are to be
 * uploaded, and what failed besides executors.
 */
export function toldBy(stderr: string): {
  codes: Map<number, number>;
  stored: Stored[];
  uploads: Uploaded[];
  faults: string[];
} {
  return {
    codes: new Map(
      [...stderr.matchAll(EXECUTOR)].map(([, number, code]) => [Number(number) - 1, Number(code)]),
    ),
    stored: [...stderr.matchAll(OUTPUT)].map(([, bytes = '', path = '', to = '']) => ({ bytes, path, to })),
    uploads: [...stderr.matchAll(UPLOAD)].map(([, bytes = '', path = '', number, below = '']) => ({
      ...{ bytes, path, below },
      output: Number(number) - 1,
    })),
    faults: [...stderr.matchAll(FAULT)].map(([, fault = '']) => fault),
  };
}

/** A file that was copied from a path to another. */
interface Stored {
  bytes: string;
  path: string;
  to: string;
}

/** A file of an output, by its number from 0, that goes to the path below the output's URL; empty: to the URL. */
interface Uploaded {
  bytes: string;
  path: string;
  output: number;
  below: string;
}

/**
 * The script of a task. Throws BAD_USER_INPUT for what it cannot do.
 *
 * @param contentAt at which parameters (`${2}` …) the content of the input is, in order; null: it has none
 */
export function scriptOf(task: TesTask, contentAt: (input: number) => readonly number[] | null): string {
  let downloads = 0;
  const inputs = (task.inputs ?? []).map(({ url, path, type }, i) => {
    const parts = contentAt(i);
    if (parts !== null) {
      if (type === 'DIRECTORY') throw badInput(`inputs[${i}].type`, type, 'FILE with `content`');
      const words = parts.map((at) => `"\${${at}}"`).join(' ');
      return `place ${quoted(path)}\nprintf %s ${words || "''"} >${quoted(path)} || fail ${quoted(`${path} cannot be written`)}\n`;
    }
    if (url === undefined) throw badInput(`inputs[${i}].url`, url, 'a URL, unless `content` is given');
    const local = pathOfUrl(`inputs[${i}].url`, url);
    if (local !== null) return `copy ${quoted(local)} ${quoted(path)}\n`;
    if (type === 'DIRECTORY')
      throw badInput(`inputs[${i}].type`, type, 'FILE with a URL of http(s), which knows no directories');
    return `download "\${SWITCHYARD_DOWNLOAD_${++downloads}-}" ${quoted(path)} ${quoted(shownUrl(url))}\n`;
  });
  const volumes = (task.volumes ?? []).map(
    (path) => `mkdir -p -- ${quoted(path)} || fail ${quoted(`${path} cannot be created`)}\n`,
  );
  const told = task.executors.length > 1 || (task.outputs ?? []).length > 0;
  const executors = task.executors.map((executor, i) =>
    executorLines(executor, told ? `executor ${i + 1} of ${task.executors.length}` : null),
  );
  const outputs = (task.outputs ?? []).map(outputLines);
  const transfers = downloads > 0 || (task.outputs ?? []).some(({ url }) => isHttp(url)) ? TRANSFERS : '';
  return [FUNCTIONS, transfers, ...inputs, ...volumes, ...executors, ...outputs].join('');
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
  if (!WILDCARD.test(path))
    return to === null ? `upload ${quoted(path)} ${i + 1} ''\n` : `store ${quoted(path)} ${quoted(to)}\n`;
  if (path_prefix === undefined)
    throw badInput(
      `outputs[${i}].path_prefix`,
      undefined,
      'a prefix to remove from paths that match the wildcards',
    );
  // Only what is a wildcard is left to the shell.
  const pattern = path.replace(/[^\w./*?[\]!-]+/gu, quoted);
  const begin = to === null ? `mkdir -p -- "$directory/${uploadPath(i)}"\n` : '';
  const keep =
    to === null
      ? `upload "$file" ${i + 1} "/\${rest#/}"`
      : `store "$file" ${quoted(posix.join(to, '/'))}"\${rest#/}"`;
  return `${begin}prefix=${quoted(path_prefix)}
for file in ${pattern}; do [ -e "$file" ] || continue; rest=\${file#"$prefix"}; ${keep}; done\n`;
}
