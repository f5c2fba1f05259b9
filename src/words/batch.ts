/** A batch script as Slurm runs it: with SLURM_* in its environment, and its output in files where it runs. */
import { type Asked, shapeOf } from './asked.js';
import { quoted } from './quoted.js';
import type { Command } from './script.js';

/** Whoever submits, and from where. */
export interface Submitter {
  user: string;
  host: string;
  directory: string;
}

/** What fills in a pattern of file names, in the shell that {@link BEGIN} has prepared. */
const PATTERNS: Readonly<Record<string, string>> = {
  A: '$SLURM_ARRAY_JOB_ID',
  a: '$SLURM_ARRAY_TASK_ID',
  j: '$SLURM_JOB_ID',
  J: '$SLURM_JOB_ID',
  N: '$SLURMD_NODENAME',
  n: '0',
  s: 'batch',
  t: '0',
  u: '$SLURM_JOB_USER',
  x: '$SLURM_JOB_NAME',
};

/** `log/%x-%4j.out` as a word of the shell; a backslash anywhere in it means that nothing is replaced, as in Slurm. */
export function patternOf(pattern: string): string {
  if (pattern.includes('\\')) return quoted(pattern.replaceAll('\\', ''));
  return pattern
    .split(/(%\d*[%A-Za-z])/)
    .filter(Boolean)
    .map((part) => {
      const [, width, letter = ''] = /^%(\d*)(.)$/.exec(part) ?? [];
      if (letter === '%') return "'%'";
      const value = PATTERNS[letter];
      if (width === undefined || value === undefined) return quoted(part);
      return width === '' ? `"${value}"` : `"$(printf %0${Math.min(Number(width), 10)}d "${value}")"`;
    })
    .join('');
}

/** What only the machine knows. The first argument is the element's place in its array; what follows is run. */
const BEGIN = `SLURM_JOB_ID=\${SWITCHYARD_JOB_ID#job_}
SLURM_ARRAY_JOB_ID=$((SLURM_JOB_ID - $1)); shift
SLURM_ARRAY_TASK_ID=\${SWITCHYARD_ARRAY_INDEX-4294967294}
SLURM_JOB_NODELIST=; SLURM_JOB_NUM_NODES=0; left=$SWITCHYARD_MACHINES,
while [ -n "\${left#,}" ]; do
  one=\${left%%,*}; left=\${left#*,}
  SLURM_JOB_NODELIST=\${SLURM_JOB_NODELIST:+$SLURM_JOB_NODELIST,}\${one%:*}
  SLURM_JOB_NUM_NODES=$((SLURM_JOB_NUM_NODES + 1))
done
: "\${SLURM_JOB_NODELIST:=$(hostname)}"
SLURMD_NODENAME=\${SLURM_JOB_NODELIST%%,*} SLURM_NODELIST=$SLURM_JOB_NODELIST SLURM_NNODES=$SLURM_JOB_NUM_NODES
SLURM_JOBID=$SLURM_JOB_ID SLURM_RESTART_COUNT=$((SWITCHYARD_EPOCH - 1)) SLURM_TMPDIR=\${TMPDIR:-/tmp}
export SLURM_JOB_ID SLURM_JOBID SLURM_JOB_NODELIST SLURM_NODELIST SLURM_JOB_NUM_NODES SLURM_NNODES SLURMD_NODENAME SLURM_RESTART_COUNT SLURM_TMPDIR
[ -z "$SWITCHYARD_ARRAY_INDEX" ] || export SLURM_ARRAY_JOB_ID SLURM_ARRAY_TASK_ID
`;

/** The same of each component of a heterogeneous job. */
const BEGIN_HETEROGENEOUS = `SLURM_HET_SIZE=$SWITCHYARD_PARTS; export SLURM_HET_SIZE
part=0
while [ $part -lt $SWITCHYARD_PARTS ]; do
  eval "left=\\$SWITCHYARD_PART_MACHINES_$part,"; list=; count=0
  while [ -n "\${left#,}" ]; do
    one=\${left%%,*}; left=\${left#*,}; list=\${list:+$list,}\${one%:*}; count=$((count + 1))
  done
  eval "export SLURM_JOB_NODELIST_HET_GROUP_$part=\\$list SLURM_JOB_NUM_NODES_HET_GROUP_$part=\\$count"
  part=$((part + 1))
done
unset part list count
`;

/** Where the output goes: what is written to files is not with the service, which says so in the job's output. */
function redirections({ output, error, input, append }: Asked): string {
  const to = append ? '>>' : '>';
  const lines: string[] = [];
  if (input !== undefined) lines.push(`exec <${patternOf(input)}`);
  if (output !== undefined) {
    lines.push(`out=${patternOf(output)}`, `printf 'output: %s:%s\\n' "$SLURMD_NODENAME" "$out"`);
    lines.push(error === undefined ? `exec ${to}"$out" 2>&1` : `exec ${to}"$out"`);
  }
  if (error !== undefined) lines.push(`exec 2${to}${patternOf(error)}`);
  return lines.map((line) => `${line}\n`).join('');
}

/** The command of a job that runs `run` as Slurm would. `place` is the element's in its array, from 0. */
export const batchCommand = (asked: Asked, run: Command, place = 0): Command => ({
  command: '/bin/sh',
  arguments: [
    '-c',
    `${BEGIN}${asked.components.length > 0 ? BEGIN_HETEROGENEOUS : ''}${redirections(asked)}unset left one out\nexec "$@"`,
    'sh',
    String(place),
    run.command,
    ...run.arguments,
  ],
});

/** What is known when the job is submitted. */
export function batchEnvironment(asked: Asked, { user, host, directory }: Submitter): Record<string, string> {
  const { ntasks, nodes, cpusPerTask } = shapeOf(asked);
  const perNode = Math.ceil(ntasks / nodes);
  const indices = asked.array?.indices ?? [];
  const each = (count: number): string => (nodes > 1 ? `${count}(x${nodes})` : String(count));
  const said: Record<string, string | number | undefined> = {
    SLURM_CLUSTER_NAME: 'switchyard',
    SLURM_CPUS_ON_NODE: perNode * cpusPerTask,
    SLURM_CPUS_PER_TASK: cpusPerTask,
    SLURM_JOB_ACCOUNT: asked.project ?? 'default',
    SLURM_JOB_CPUS_PER_NODE: each(perNode * cpusPerTask),
    SLURM_JOB_NAME: asked.name,
    SLURM_JOB_PARTITION: asked.partition,
    SLURM_JOB_QOS: asked.class ?? 'normal',
    SLURM_JOB_USER: user,
    SLURM_LOCALID: 0,
    SLURM_MEM_PER_CPU: asked.memoryMbPerCpu,
    SLURM_MEM_PER_NODE: asked.memoryMb,
    SLURM_NODEID: 0,
    SLURM_NPROCS: ntasks,
    SLURM_NTASKS: ntasks,
    SLURM_NTASKS_PER_NODE: asked.ntasksPerNode,
    SLURM_PROCID: 0,
    SLURM_SUBMIT_DIR: directory,
    SLURM_SUBMIT_HOST: host,
    SLURM_TASKS_PER_NODE: each(perNode),
    ...(indices.length > 0 && {
      SLURM_ARRAY_TASK_COUNT: indices.length,
      SLURM_ARRAY_TASK_MAX: indices.at(-1),
      SLURM_ARRAY_TASK_MIN: indices[0],
      SLURM_ARRAY_TASK_STEP: indices.length > 1 ? indices[1]! - indices[0]! : 1,
    }),
  };
  return Object.fromEntries(
    Object.entries(said).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );
}

/** Of one shell, of this submission, or secret: never a job's. */
const KEPT_BACK = /^(SWITCHYARD_.*|SLURM_.*|SLURMD_.*|PWD|OLDPWD|SHLVL|_|BASH_FUNC_.*)$/;

/** The variables of `--export`: `ALL` (with others), `NONE`, `NIL`, or names and `NAME=value`. */
export function exported(
  spec: string,
  env: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const words = spec.split(',').filter(Boolean);
  const named = words.flatMap((word): [string, string | undefined][] => {
    const [, name, value] = /^([A-Za-z_]\w*)(?:=(.*))?$/s.exec(word) ?? [];
    if (name === undefined || /^(ALL|NONE|NIL)$/.test(word)) return [];
    return [[name, value ?? env[name]]];
  });
  const all = words.includes('ALL') ? Object.entries(env).filter(([name]) => !KEPT_BACK.test(name)) : [];
  return Object.fromEntries(
    [...all, ...named].filter((entry): entry is [string, string] => {
      const [name, value] = entry;
      return value !== undefined && /^[A-Za-z_]\w*$/.test(name);
    }),
  );
}

/** The array of which job `number` is the element with this index, by the name that its elements share; null: of none. */
export function arrayOf(groupName: string | null): string | null {
  return /^array (\S+) [0-9a-f]{8}$/.exec(groupName ?? '')?.[1] ?? null;
}

/** The name that the elements of an array share, unless they have one of their own. */
export const arrayName = (written: string, random: string): string =>
  `array ${written.replaceAll(/\s/g, '')} ${random}`;
