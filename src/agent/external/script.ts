/**
 * The batch script of a run, with its guard: a directory that says who runs it is moved to `began/RUN`, which succeeds once. So whoever
 * submits, requeues or restarts the script how often ever, the run begins once; and no more if the agent was first. How it ended is in
 * `ended/RUN`, written beside and moved there.
 */

import { dirname } from 'node:path';
import { quote } from '../process/script.js';
import type { Assignment } from '../runner.js';
import type { LocalScheduler } from './scheduler.js';

/** Of a script that was not let begin: not 0, which would count as a run that went well. */
export const NOT_BEGUN = 75;
/** Of `timeout`, where it had to end the command. */
export const TIMED_OUT = 124;
/** Where SIGTERM at the end of the time was not enough. */
export const KILLED = 137;

export interface ScriptPlaces {
  /** Of the run: `out` and `err` are there. */
  directory: string;
  /** Where the script writes what it then moves away. */
  desk: string;
  /** Where the command begins. */
  work: string;
  /** The directory is there before the run begins; false: the script makes it. */
  isMade: boolean;
  /** Who has begun it is there, and how it ended: made by the script. */
  began: string;
  ended: string;
}

export type Command = Pick<
  Assignment,
  | 'command'
  | 'arguments'
  | 'environment'
  | 'tasks'
  | 'jobParts'
  | 'launch'
  | 'runTimeLimitS'
  | 'warnS'
  | 'warnSignal'
  | 'killGraceS'
>;

export function batchScript(
  given: Command,
  variables: Readonly<Record<string, string>>,
  { directory, desk, work, isMade, began, ended }: ScriptPlaces,
  scheduler: Pick<LocalScheduler, 'prologue' | 'tasks' | 'parts'>,
): string {
  const { command, arguments: words, environment, tasks, launch, runTimeLimitS, killGraceS } = given;
  const { jobParts: parts = [] } = given;
  const each = tasks > 1 && launch === 'EVERY_TASK' ? scheduler.tasks : null;
  const launcher = (parts.length > 0 ? scheduler.parts?.launcher : each?.launcher) ?? [];
  const numbers = [...parts.keys()].join(',');
  // Each task is told its own index below.
  const all = Object.entries({
    ...variables,
    ...(each ? {} : { SWITCHYARD_TASK_INDEX: '0' }),
    ...environment,
  });
  const assignments = all.map(([name, value]) => quote(`${name}=${value}`));
  const program = ['env', ...assignments, quote(command), ...words.map(quote)];
  const started = each
    ? [
        ...launcher.map((word) =>
          quote(word.replaceAll('{tasks}', String(tasks)).replaceAll('{parts}', numbers)),
        ),
        ...['sh', '-c', quote(`${rankText(tasks, each.index)}${partText(parts, each.index)}exec "$@"`), 'sh'],
        ...program,
      ]
    : program;
  const limit =
    runTimeLimitS === null
      ? []
      : ['timeout', '-k', String(killGraceS), String(Math.max(0.001, runTimeLimitS))];
  const warning = warningOf(given);
  // A directory that the job names has to be there.
  const isOwn = dirname(work) === directory;
  const makesWork = isOwn ? `[ -d ${quote(work)} ] || mkdir ${quote(work)}\n` : '';
  const mark = quote(began);
  // Whoever comes later leaves nothing behind.
  const makesAll = isMade
    ? ''
    : `[ ! -e ${mark} ] || exit ${NOT_BEGUN}\nmkdir -m 700 ${quote(directory)} 2>/dev/null\n`;
  return `#!/bin/sh
# A run of Switchyard. It begins once, whoever starts this script how often.
# It outlives the signals that its command gets, to write down how that ended: caught, not ignored, which would be inherited.
trap : HUP INT TERM
${makesAll}cd ${quote(desk)} || exit ${NOT_BEGUN}
tasks=${tasks}
${scheduler.prologue}
${prologueOf(parts, scheduler)}me="$local_id $(date +%s%3N) $nodes"
turn=turn.$local_id.$$
(umask 022 && mkdir "$turn" && echo "$me" >"$turn/where") && mv -T "$turn" ${mark} 2>/dev/null
# Asked of the file system, since the answer to the move may be wrong where it is a network's.
[ "$(cat ${mark}/where 2>/dev/null)" = "$me" ] || exit ${NOT_BEGUN}
${hostsText(tasks, `${directory}/hosts`)}before=$(cat "/proc/$$/io" 2>/dev/null)
${warning.begin}${makesWork}cd ${quote(work)} && {
  ${[...limit, ...warning.words, ...started].join(' ')} </dev/null >>${quote(`${directory}/out`)} 2>>${quote(`${directory}/err`)}
}
code=$?
${warning.end}cd ${quote(desk)}
umask 022
{ echo "$code $(date +%s%3N)"; times; echo "$before"; cat "/proc/$$/io" 2>/dev/null; } >end.tmp
until mv end.tmp ${quote(ended)} || [ ! -d ${quote(desk)} ]; do sleep 1; done
exit $code
`;
}

const prologueOf = (
  parts: NonNullable<Command['jobParts']>,
  scheduler: Pick<LocalScheduler, 'parts'>,
): string =>
  parts.length === 0
    ? ''
    : `tasks_by_part='${parts.map(({ tasks }) => tasks).join(' ')}'\n${scheduler.parts?.prologue}\n`;

/** Where the tasks are, if the scheduler tells: in a variable, and one host on each line of a file, as PBS has it, which every launcher reads. */
const hostsText = (tasks: number, file: string): string => `[ -z "$machines" ] || {
  set -- $machines
  IFS=,
  export SWITCHYARD_MACHINES="$*"
  unset IFS
${
  tasks === 1
    ? ''
    : `  for one; do
    left=\${one##*:}
    while [ "$left" -gt 0 ]; do echo "\${one%:*}"; left=$((left - 1)); done
  done >${quote(file)}
  export SWITCHYARD_HOSTFILE=${quote(file)}
`
}}
`;

/** Finds the rank of a task, by its index in the job, in all and on its node: in the variables of torch.distributed. */
const rankText = (
  tasks: number,
  index: string,
): string => `export SWITCHYARD_TASK_INDEX="$${index}" RANK="$${index}" WORLD_SIZE=${tasks}
[ -z "$SWITCHYARD_MACHINES" ] || {
  export LOCAL_RANK="$${index}" LOCAL_WORLD_SIZE= NODE_RANK=0 NNODES=0 MASTER_ADDR="\${SWITCHYARD_MACHINES%%:*}"
  IFS=,
  for one in $SWITCHYARD_MACHINES; do
    NNODES=$((NNODES + 1)) count=\${one##*:}
    [ -z "$LOCAL_WORLD_SIZE" ] || continue
    if [ "$LOCAL_RANK" -lt "$count" ]; then LOCAL_WORLD_SIZE=$count
    else LOCAL_RANK=$((LOCAL_RANK - count)) NODE_RANK=$((NODE_RANK + 1)); fi
  done
  unset IFS
}
`;

/** Finds the part of a task, by its index in the job: what it is told of it. */
function partText(parts: NonNullable<Command['jobParts']>, index: string): string {
  if (parts.length === 0) return '';
  const each = parts.map((part) => [part.tasks, part.cpusPerTask, part.memoryMbPerTask].join(':'));
  return `at=$${index} part=0
for one in ${each.join(' ')}; do
  tasks=\${one%%:*}
  [ "$at" -ge "$tasks" ] || break
  at=$((at - tasks)) part=$((part + 1))
done
asked=\${one#*:}
export SWITCHYARD_PART="$part" SWITCHYARD_PART_TASKS="$tasks" SWITCHYARD_PART_TASK_INDEX="$at"
export SWITCHYARD_CPUS_PER_TASK="\${asked%:*}" SWITCHYARD_MEMORY_MB_PER_TASK="\${asked#*:}"
`;
}

/**
 * Before the limit the run's processes get a signal: those of the group that `timeout` leads, but for `timeout`, which it would end. Slurm's own
 * warning would come to the minute.
 */
function warningOf({ runTimeLimitS, warnS, warnSignal }: Command) {
  if (runTimeLimitS === null || !warnS) return { begin: '', words: [], end: '' };
  const afterS = Math.max(0, runTimeLimitS - warnS);
  return {
    begin: `group=$PWD/group
(
  trap 'kill "$nap"; exit' TERM
  sleep ${afterS} & nap=$!
  wait "$nap"
  until [ -s "$group" ]; do sleep 0.1; done
  read -r leader <"$group"
  for one in /proc/[0-9]*; do
    read -r stat <"$one/stat" || continue
    set -- \${stat##*) }
    [ "$3" = "$leader" ] && [ "\${one#/proc/}" != "$leader" ] && kill -s ${warnSignal.slice(3)} "\${one#/proc/}"
  done
) 2>/dev/null &
warns=$!
`,
    // What is started leads no group of its own: its parent does.
    words: ['sh', '-c', quote('echo "$PPID" >"$0"; exec "$@"'), '"$group"'],
    end: 'kill "$warns" 2>/dev/null\n',
  };
}

/** Elements of an array whose scripts are in one file. */
export const ELEMENTS_IN_FILE = 100;

/**
 * The script of an array, in whose directory are the scripts of its elements (arrays.ts): each element carries out its own, which needs no
 * prologue. They have as many tasks each.
 */
export const arrayScript = (
  directory: string,
  tasks: number,
  { prologue }: Pick<LocalScheduler, 'prologue'>,
): string => `#!/bin/sh
# An array of runs of Switchyard.
tasks=${tasks}
${prologue}
cd ${quote(directory)} || exit ${NOT_BEGUN}
grep -qsxF "$element." over && exit ${NOT_BEGUN}
line=$((element % ${ELEMENTS_IN_FILE}))
script=$(sed -n "$((line + 1)){p;q}" "scripts.$((element - line))") && [ -n "$script" ] || exit ${NOT_BEGUN}
eval "$(printf %b "$script")"
`;

/** A script as one line, as `printf %b` reads it. */
export const lineOf = (script: string): string =>
  `${script.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n`;

/** What the script has written when the command began. */
export interface Where {
  localId: string;
  atMs: number;
  nodes: string[];
}

/** Runs may write what they like there: it is accepted only as what a service takes. */
export function whereOf(text: string): Where | null {
  const [localId = '', at = '', ...nodes] = text.trim().split(/\s+/);
  const isNode = (name: string): boolean => /^[\w.-]{1,63}$/.test(name);
  if (!/^[\w.[\]:-]{1,100}$/.test(localId) || !/^\d{1,15}$/.test(at)) return null;
  return { localId, atMs: Number(at), nodes: nodes.filter(isNode) };
}

/** And when it ended. */
export interface EndMark {
  /** As a shell tells it. */
  code: number;
  atMs: number;
  /** Of the processes that the script has waited for; null: not told. */
  cpuS: number | null;
  /** What they read and wrote, caches and pipes included; null: not told. */
  readMb: number | null;
  writtenMb: number | null;
}

export function endOf(text: string): EndMark | null {
  const [first = '', , children = ''] = text.split('\n');
  const [, code, at] = /^(\d{1,3}) (\d{1,15})$/.exec(first) ?? [];
  if (code === undefined || Number(code) > 255) return null;
  const parts = [...children.matchAll(/(\d{1,9})m(\d{1,2}(?:\.\d{1,9})?)s/g)];
  const cpuS =
    parts.length === 2 ? parts.reduce((sum, [, m, s]) => sum + Number(m) * 60 + Number(s), 0) : null;
  return {
    ...{ code: Number(code), atMs: Number(at), cpuS },
    readMb: moreOf(text, 'rchar'),
    writtenMb: moreOf(text, 'wchar'),
  };
}

/** MB: a count of bytes is in the text before the command, and behind it. */
function moreOf(text: string, count: 'rchar' | 'wchar'): number | null {
  const [before, after, ...more] = [...text.matchAll(new RegExp(`^${count}: (\\d{1,15})$`, 'gm'))].map(
    ([, bytes]) => Number(bytes),
  );
  if (before === undefined || after === undefined || more.length > 0) return null;
  return Math.max(0, after - before) / 1e6;
}
