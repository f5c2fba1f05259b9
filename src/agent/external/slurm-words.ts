/** How Slurm speaks, whoever asks it: by its commands (slurm.ts) or by slurmrestd (slurm-rest.ts). */
import { userInfo } from 'node:os';
import type { AskedTasks, LocalJob, LocalNode, LocalScheduler, Submission } from './scheduler.js';

/** Slurm has not looked at the job, or cannot be reached: nothing follows for the job. */
const UNREACHED =
  /unable to contact|connect|timed out|socket|temporarily unable|slurm backup controller|zero bytes|munge|authentication|Protocol/i;
/** One text for all limits of accounts and QOS; of those that Slurm names with it only that of waiting jobs passes. */
const OVER_LIMIT = /violates accounting/i;
const LASTING_LIMIT = /\b(QOS|Assoc)(?!\w*MaxSubmit)\w*(Max|Min|Grp)\w+/;
/** Reasons that no waiting helps against. */
const HOPELESS =
  /^(DependencyNeverSatisfied|PartitionTimeLimit|PartitionNodeLimit|PartitionConfig|AccountNotAllowed|QOSNotAllowed|InvalidAccount|InvalidQOS|BadConstraints|QOSMaxWallDurationPerJobLimit|AssocMaxWallDurationPerJobLimit)$/;
const WAITS = /^(PENDING|CONFIGURING|REQUEUED|REQUEUE_HOLD|REQUEUE_FED|RESV_DEL_HOLD|SPECIAL_EXIT)/;
const RUNS = /^(RUNNING|COMPLETING|RESIZING|SIGNALING|STAGE_OUT|SUSPENDED|STOPPED)/;
/** States that no program can start in. */
const UNFIT = /DOWN|DRAIN|FAIL|MAINT|UNKNOWN|NO_RESPOND|NOT_RESPONDING|POWER(ED|ING)_DOWN|REBOOT|\*$/i;

export const PROLOGUE =
  'element=$SLURM_ARRAY_TASK_ID\n' +
  'local_id=$SLURM_JOB_ID\n[ -z "$element" ] || local_id="$SLURM_ARRAY_JOB_ID"_$element\n' +
  // Counts are as `2(x3),1`: two tasks on each of three nodes, one on the next.
  `placed() {
  left=$2 counts=$1 machines= IFS=',()'
  shift 2
  for count in $counts; do
    case $count in
      '') continue ;;
      x*) times=$((\${count#x} - 1)) ;;
      *) each=$count times=1 ;;
    esac
    while [ "$times" -gt 0 ] && [ "$left" -gt 0 ] && [ $# -gt 0 ]; do
      [ "$each" -le "$left" ] || each=$left
      machines="$machines $1:$each" times=$((times - 1)) left=$((left - each))
      shift
    done
  done
  unset IFS
}
nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST" 2>/dev/null | tr "\\n" " ")
[ -z "$tasks" ] || placed "$SLURM_TASKS_PER_NODE" "$tasks" $nodes
` +
  // Steps get the script's environment: set by --export=NONE, it would keep it from them.
  'unset SLURM_EXPORT_ENV';
export const TASKS: LocalScheduler['tasks'] = {
  launcher: ['srun', '--ntasks={tasks}', '--kill-on-bad-exit=1', '--export=ALL'],
  index: 'SLURM_PROCID',
};

/** A job of several parts is a heterogeneous job of Slurm, whose components have nodes of their own each. */
export const PARTS: LocalScheduler['parts'] = {
  launcher: ['srun', '--het-group={parts}', '--kill-on-bad-exit=1', '--export=ALL'],
  // slurmrestd sets no numbers of tasks for srun.
  prologue: `nodes= all= part=0
for one in $tasks_by_part; do
  export "SLURM_NTASKS_HET_GROUP_$part=$one"
  eval "list=\\$SLURM_JOB_NODELIST_HET_GROUP_$part counts=\\$SLURM_TASKS_PER_NODE_HET_GROUP_$part"
  set -- $(scontrol show hostnames "$list" 2>/dev/null)
  nodes="$nodes$* "
  placed "$counts" "$one" "$@"
  all="$all$machines"
  set -- $machines
  IFS=,
  export "SWITCHYARD_PART_MACHINES_$part=$*"
  unset IFS
  part=$((part + 1))
done
machines=$all`,
};

/**
 * Components of a heterogeneous job (`12+0`, `12+1`) as the one job that they are: it runs when all of them do, and until then stands as
 * the one that is furthest from it.
 */
export function wholeJobs(listed: readonly LocalJob[]): LocalJob[] {
  const jobs: LocalJob[] = [];
  const places = new Map<string, number>();
  for (const job of listed) {
    const id = /^(\d+)\+\d+$/.exec(job.id)?.[1];
    if (id === undefined) {
      jobs.push(job);
      continue;
    }
    const key = `${id} ${job.name}`;
    const place = places.get(key);
    const component = { ...job, id };
    if (place === undefined) places.set(key, jobs.push(component) - 1);
    else jobs[place] = further(jobs[place] as LocalJob, component);
  }
  return jobs;
}

function further(one: LocalJob, other: LocalJob): LocalJob {
  const starts = [one, other].flatMap(({ startedAfterS }) => startedAfterS ?? []);
  const startedAfterS = starts.length < 2 ? null : Math.max(...starts);
  return { ...(distanceOf(other) > distanceOf(one) ? other : one), startedAfterS };
}

const PHASES: readonly LocalJob['phase'][] = ['ENDED', 'RUNNING', 'WAITING'];
const distanceOf = ({ phase, hopeless, ended }: LocalJob): number =>
  4 * PHASES.indexOf(phase) + (hopeless ? 2 : 0) + (ended === null ? 0 : 1);

/** On how many nodes the tasks of a job are, the fewest and the most, and how many at most on each; null: Slurm decides. */
export interface SlurmSpread {
  nodes: readonly [number, number] | null;
  tasksPerNode: number | null;
}

/**
 * Slurm has no option for the fewest tasks on a node: on no more nodes than have so many each, every node can have them. Devices but GPUs,
 * which can be asked for by task, are counted by node: where it is not said how many tasks are on one, each has a node of its own.
 */
export function spreadOf(job: AskedTasks): SlurmSpread {
  const { tasks, tasksPerMachine } = job;
  const byNode = tasks > 1 && devicesByNode(job);
  const { min, max } = byNode && !isExact(tasksPerMachine) ? ONE : (tasksPerMachine ?? ANY);
  const [fewest, most] = [max === null ? 1 : Math.ceil(tasks / max), Math.floor(tasks / min)];
  return { nodes: min === 1 && !byNode ? null : [Math.min(fewest, most), most], tasksPerNode: max };
}

/** One switch and, if it is not to be waited for for ever, how long: minutes and seconds. */
export function switchesOf({ maxWaitS }: NonNullable<Submission['sameSwitch']>): string {
  if (maxWaitS === null) return '1';
  const seconds = Math.ceil(maxWaitS);
  return `1@${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

/** What a node has to have of devices that are counted by node, as amounts of each kind for the tasks there. */
export const tasksOnNode = ({ tasks, tasksPerMachine }: AskedTasks): number =>
  tasks > 1 && isExact(tasksPerMachine) ? (tasksPerMachine?.max as number) : 1;

/** Generic resources of each task, in Slurm's words: a kind, its model if one is asked for, and how many. What is asked for twice is added up. */
export function gresOf({
  resourcesPerTask,
  devicesPerTask = [],
}: Pick<AskedTasks, 'resourcesPerTask' | 'devicesPerTask'>): {
  kind: string;
  model: [] | [string];
  amount: number;
}[] {
  const asked = new Map<string, ReturnType<typeof gresOf>[number]>();
  for (const { kind, model, amount } of [
    ...resourcesPerTask.map((one) => ({ ...one, model: null })),
    ...devicesPerTask.map(({ count, ...one }) => ({ ...one, amount: count })),
  ]) {
    const key = `${kind}:${model ?? ''}`;
    const known = asked.get(key)?.amount ?? 0;
    asked.set(key, { kind, model: model === null ? [] : [model], amount: known + amount });
  }
  return [...asked.values()];
}

/** GPUs can be asked for by task: those of any model, or each of one. */
export const devicesByNode = (job: Pick<AskedTasks, 'resourcesPerTask' | 'devicesPerTask'>): boolean => {
  const gres = gresOf(job);
  return (
    gres.some(({ kind }) => kind !== 'gpu') ||
    (gres.length > 1 && gres.some(({ model }) => model.length === 0))
  );
};

const isExact = (bounds: Submission['tasksPerMachine']): boolean =>
  bounds !== null && bounds.min === bounds.max;
const ANY = { min: 1, max: null };
const ONE = { min: 1, max: 1 };

/** Partitions and what of the site does not change otherwise either are asked for so often: slurmctld counts each call. */
export const PARTITIONS_MS = 60_000;

/** The agent's account. */
export const OWN = userInfo().username;

/** Whether the job will never be taken, by the words of sbatch. */
export const isRefusal = (message: string): boolean =>
  !UNREACHED.test(message) && (!OVER_LIMIT.test(message) || LASTING_LIMIT.test(message));

/** A job as Slurm tells it; reason: `None`, or nothing, where it gives none. */
export function jobOf({
  state,
  reason,
  user,
  startedAfterS,
  ...job
}: Pick<LocalJob, 'id' | 'name' | 'element' | 'directory'> & {
  state: string;
  reason: string;
  user: string;
  /** NaN: it is not told. */
  startedAfterS: number;
}): LocalJob {
  const phase = WAITS.test(state) ? 'WAITING' : RUNS.test(state) ? 'RUNNING' : 'ENDED';
  const words = reason === '' || reason === 'None' || reason === state ? state : `${state} (${reason})`;
  return {
    ...{ ...job, phase, words },
    hopeless: phase === 'WAITING' && HOPELESS.test(reason),
    ended: phase === 'ENDED' ? endOf(state) : null,
    user: user === OWN ? null : user,
    startedAfterS: Number.isFinite(startedAfterS) ? startedAfterS : null,
  };
}

function endOf(state: string): LocalJob['ended'] {
  if (/^(TIMEOUT|DEADLINE)/.test(state)) return 'RUN_TIME_LIMIT';
  if (/^OUT_OF_MEMORY/.test(state)) return 'MEMORY_LIMIT';
  if (/^CANCELLED/.test(state)) return 'CANCELLED';
  return /^(NODE_FAIL|PREEMPTED|BOOT_FAIL|REVOKED)/.test(state) ? 'LOST' : null;
}

/** Why no program can start on a node, by its state; null: one can. */
export const problemOf = (state: string, reason: string): string | null =>
  UNFIT.test(state) ? `Slurm: ${state}${reason === '' || reason === 'none' ? '' : `: ${reason}`}` : null;

/** Features that can be labels. */
export const labelsIn = (features: string): string[] =>
  features.split(',').filter((feature) => /^[A-Za-z_][\w./-]*$/.test(feature));

/** `gpu:a100:2(S:0-1),tape:1`; `(null)`: none. */
export const devicesIn = (gres: string): LocalNode['devices'] =>
  [...gres.matchAll(/(?:^|,)([A-Za-z_][\w./-]*)(?::([A-Za-z_][\w./-]*))?(?::(\d+))?(?=[(,]|$)/g)].map(
    ([, kind = '', model = null, amount = '1']) => ({ kind, model, amount: Number(amount) }),
  );

/** A job without a limit counts as one of a year. */
export const finite = (seconds: number): number => Math.min(seconds, 31_536_000);

/**
 * The partitions that are used, by name.
 *
 * @throws Error where there is none, or Slurm does not have one of them
 */
export function partitionsIn(used: string | null, there: readonly string[]): ReadonlySet<string> {
  if (used === null) throw new Error('Slurm reports no default partition: name one (AGENT_SLURM_PARTITION)');
  const names = used.split(',');
  const missing = names.find((name) => !there.includes(name));
  if (missing !== undefined)
    throw new Error(
      `AGENT_SLURM_PARTITION: ${missing}: Slurm does not have this partition; it has ${there.join(', ')}`,
    );
  return new Set(names);
}

/** Of amounts for the whole job what Slurm counts itself: `matlab:2,cad:1`. */
export const licensesOf = (
  { pools }: Pick<Submission, 'pools'>,
  counted: ReadonlySet<string> | undefined,
): string =>
  pools
    .filter(({ kind }) => counted?.has(kind))
    .map(({ kind, amount }) => `${kind}:${amount}`)
    .join(',');
