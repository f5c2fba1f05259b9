/** Fields of jobs by Slurm's names, and the tables that its commands print of them. */
import { licensesWritten, requestWritten } from '../words/index.js';
import { SlurmError } from './ask.js';
import {
  clock,
  elapsedS,
  exitOf,
  hasEnded,
  type Job,
  letters,
  localTime,
  nodesOf,
  numberOf,
  placeOf,
  reasonOf,
  shownId,
  slurmState,
} from './jobs.js';
import { partitionOfJob } from './partitions.js';

/** What fields are of; `step` is null for the job itself. */
export interface Row {
  job: Job;
  nowMs: number;
  /** `batch`, or the number of one that `srun` started. */
  step?: string | null;
  /** Of a step that is recorded, which the job stands for here (`rowOfStep`). */
  ended?: { name: string; exit: string };
  /** Of a job: its highest exit code of a step; left out: it had none. */
  derived?: string;
  /** Of elements of an array that are shown as one (`together`): their indices; the job is one of them. */
  elements?: readonly number[];
}
type Field = (row: Row) => string | number;

const startOf = ({ job }: Row): string => localTime(job.startedAt ?? job.expectedStart ?? null, 'N/A');
/** squeue leaves out hours that are none; sacct says it of the job only. */
const limitOf = ({ job: { runTimeLimitS }, step }: Row): string =>
  step ? '' : runTimeLimitS === null ? 'UNLIMITED' : clock(runTimeLimitS, step === undefined);
export const cpusOf = ({ cpus }: Job): number => cpus;
const memoryOf = ({ memoryMbPerTask }: Job): string => `${memoryMbPerTask}M`;
/** Before it starts: as many as it needs at least. */
export const nodeCount = (job: Job): number =>
  nodesOf(job).length || Math.ceil(job.tasks / (job.tasksPerMachine?.max ?? job.tasks));
/** What a job asks for, by Slurm's names; memory in MB. */
export const tresCounts = (job: Job): [name: string, count: number][] => [
  ['cpu', cpusOf(job)],
  ['mem', job.memoryMb],
  ['node', nodeCount(job)],
  ['billing', cpusOf(job)],
  ...(job.resourcesPerTask ?? []).map(({ kind, amount }): [string, number] => [
    `gres/${kind}`,
    amount * job.tasks,
  ]),
  ...(job.devicesPerTask ?? []).map(({ kind, model, count }): [string, number] => [
    `gres/${kind}${model === null ? '' : `:${model}`}`,
    count * job.tasks,
  ]),
];
export const tresOf = (job: Job): string =>
  tresCounts(job)
    .map(([tres, count]) => `${tres}=${count}${tres === 'mem' ? 'M' : ''}`)
    .join(',');
export const gresOf = ({ resourcesPerTask = [], devicesPerTask = [] }: Job): string =>
  [...resourcesPerTask.map(({ kind, amount }) => `${kind}:${amount}`), ...devicesPerTask.map(requestWritten)]
    .map((one) => `gres:${one}`)
    .join(',') || 'N/A';
const nodeList = ({ job }: Row): string => nodesOf(job).join(',');
/** Why it waits, or why it has failed; else its nodes. */
const listOrReason = (row: Row): string =>
  row.job.state === 'FAILED' || (!hasEnded(row.job) && row.job.startedAt === null && nodeList(row) === '')
    ? `(${reasonOf(row.job, row.nowMs)})`
    : nodeList(row);
/** As sacct sorts and parts them: a step is not billed. */
const accountedTres = ({ job, step }: Row): string =>
  tresOf(job)
    .split(',')
    .filter((one) => !(step && one.startsWith('billing=')))
    .sort()
    .join(',');
/** `1-3,7%2`, at most as long as Slurm writes it. */
function indicesOf({ job, elements: unsorted = [] }: Row): string {
  const elements = [...unsorted].sort((a, b) => a - b);
  const ranges: string[] = [];
  for (let from = 0, to = 0; from < elements.length; from = ++to) {
    while (elements[to + 1] === (elements[to] as number) + 1) to++;
    ranges.push(from === to ? `${elements[from]}` : `${elements[from]}-${elements[to]}`);
  }
  const text = ranges.join(',');
  const atOnce = placeOf(job)?.atOnce ?? null;
  return `${text.length > INDICES_LENGTH ? `${text.slice(0, INDICES_LENGTH)}...` : text}${atOnce === null ? '' : `%${atOnce}`}`;
}
/** SLURM_BITSTR_LEN. */
const INDICES_LENGTH = 64;
const isSeveral = ({ elements = [] }: Row): boolean => elements.length > 1;
const arrayId = ({ job }: Row): number => placeOf(job)?.first ?? numberOf(job.id);
const name = ({ job, step, ended }: Row): string => ended?.name ?? step ?? job.name ?? job.application;
export const exitOfRow = ({ job, ended }: Row): string => ended?.exit ?? exitOf(job);

/** As Slurm writes sizes of memory in tables of use. */
export const kilobytes = (mb: number): string => `${Math.round((mb * 1e6) / 1024)}K`;

/** By the names of squeue -O and sacct --format, in small letters. What is not here is N/A. */
export const FIELDS: Readonly<Record<string, Field>> = {
  account: ({ job }) => job.project ?? 'default',
  allocnodes: ({ job }) => nodesOf(job).length,
  arrayjobid: arrayId,
  arraytaskid: (row) => (isSeveral(row) ? indicesOf(row) : (row.job.arrayIndex ?? 'N/A')),
  batchhost: ({ job }) => nodesOf(job)[0] ?? 'n/a',
  cluster: () => 'switchyard',
  command: ({ job }) => job.command,
  comment: () => '(null)',
  deadline: ({ job }) => localTime(job.deadline, 'N/A'),
  dependency: ({ job }) => (job.state === 'BLOCKED' && job.notBefore === null ? '(unfulfilled)' : '(null)'),
  derivedexitcode: ({ job, step, derived }) => (step ? '' : (derived ?? exitOf(job))),
  elapsed: ({ job, nowMs }) => clock(elapsedS(job, nowMs)),
  elapsedraw: ({ job, nowMs }) => elapsedS(job, nowMs),
  eligible: ({ job }) => localTime(job.eligibleAt ?? job.submittedAt, 'Unknown'),
  end: ({ job }) => localTime(job.endedAt, 'Unknown'),
  exitcode: exitOfRow,
  feature: ({ job }) => job.machineConstraint ?? '(null)',
  jobid: (row) =>
    isSeveral(row)
      ? `${arrayId(row)}_[${indicesOf(row)}]`
      : `${shownId(row.job)}${row.step ? `.${row.step}` : ''}`,
  jobidraw: ({ job, step }) => `${numberOf(job.id)}${step ? `.${step}` : ''}`,
  jobname: name,
  jobstep: (row) => `${shownId(row.job)}.${row.step ?? 'batch'}`,
  licenses: ({ job }) => licensesWritten(job.licenses, job.resources) || '(null)',
  maxrss: ({ job, step }) => {
    const peak = job.runs?.at(-1)?.peakMemoryMb;
    return step && peak != null ? kilobytes(peak) : '';
  },
  minmemory: ({ job }) => memoryOf(job),
  name,
  ncpus: ({ job }) => cpusOf(job),
  nice: ({ job }) => -job.boost,
  nnodes: ({ job }) => nodeCount(job),
  nodelist: (row) => nodeList(row) || (row.step === undefined ? '' : 'None assigned'),
  ntasks: ({ job, step }) => (step ? job.tasks : ''),
  numcpus: ({ job }) => cpusOf(job),
  numnodes: ({ job }) => nodeCount(job),
  numtasks: ({ job }) => job.tasks,
  oversubscribe: ({ job }) => (job.exclusive === null ? 'OK' : job.exclusive === 'USER' ? 'USER' : 'NO'),
  partition: ({ job, step }) => (step ? '' : partitionOfJob(job)),
  priority: ({ job }) => Math.max(0, (job.priority ?? 0) + job.boost),
  prioritylong: ({ job }) => Math.max(0, (job.priority ?? 0) + job.boost),
  qos: ({ job }) => job.class ?? 'normal',
  reason: ({ job, nowMs }) => reasonOf(job, nowMs),
  reasonlist: listOrReason,
  reqcpus: ({ job }) => cpusOf(job),
  reqmem: ({ job, step }) => (step ? '' : memoryOf(job)),
  reqnodes: ({ job }) => nodeCount(job),
  restartcnt: ({ job }) => Math.max(0, job.epoch - 1),
  start: ({ job }) => localTime(job.startedAt, 'Unknown'),
  starttime: startOf,
  endtime: ({ job }) => localTime(job.endedAt, 'N/A'),
  state: ({ job }) => slurmState(job),
  statecompact: ({ job }) => letters(slurmState(job)),
  submit: ({ job }) => localTime(job.submittedAt, 'Unknown'),
  submittime: ({ job }) => localTime(job.submittedAt, 'N/A'),
  systemcpu: () => '',
  timelimit: limitOf,
  timelimitraw: ({ job }) => (job.runTimeLimitS === null ? '' : Math.ceil(job.runTimeLimitS / 60)),
  timeleft: ({ job, nowMs }) =>
    job.runTimeLimitS === null
      ? 'UNLIMITED'
      : clock(Math.max(0, job.runTimeLimitS - elapsedS(job, nowMs)), true),
  timeused: ({ job, nowMs }) => clock(elapsedS(job, nowMs), true),
  totalcpu: ({ job }) => clock(job.runs?.at(-1)?.cpuS ?? 0),
  alloccpus: ({ job }) => cpusOf(job),
  allottres: ({ job }) => tresOf(job),
  alloctres: (row) => (row.job.startedAt === null ? '' : accountedTres(row)),
  reqtres: (row) => (row.step ? '' : accountedTres(row)),
  'tres-alloc': ({ job }) => (job.startedAt === null ? 'N/A' : tresOf(job)),
  'tres-per-node': ({ job }) => gresOf(job),
  cputime: ({ job, nowMs }) => clock(elapsedS(job, nowMs) * cpusOf(job)),
  cputimeraw: ({ job, nowMs }) => elapsedS(job, nowMs) * cpusOf(job),
  user: ({ job, step }) => (step ? '' : job.user.name),
  username: ({ job }) => job.user.name,
  workdir: ({ job, step }) => (step ? '' : (job.workingDirectory ?? '')),
};

/** Those that need what only the dearer query asks for. */
const DEAR = /^(allocnodes|batchhost|maxrss|nnodes|nodelist|numnodes|reasonlist|reqnodes|totalcpu|.*tres.*)$/;
export const isDear = (fields: readonly string[]): boolean =>
  fields.some((field) => DEAR.test(field.toLowerCase()));

export const textOf = (field: string, row: Row): string =>
  String(FIELDS[field.toLowerCase()]?.(row) ?? 'N/A');

const IDS = ['jobid', 'jobidraw', 'arraytaskid'];

/** Pending elements of an array that only their ids tell apart as one row each, as Slurm keeps them until they start. */
export function together(rows: readonly Row[], columns: readonly Column[]): Row[] {
  const others = columns.filter(({ field }) => !IDS.includes(field.toLowerCase()));
  const found = new Map<string, Row & { elements: number[] }>();
  return rows.flatMap((row) => {
    const place = slurmState(row.job) === 'PENDING' ? placeOf(row.job) : null;
    if (place === null) return [row];
    const key = [place.first, ...others.map(({ field }) => textOf(field, row))].join('\n');
    const index = row.job.arrayIndex!;
    const known = found.get(key);
    if (known) {
      known.elements.push(index);
      return [];
    }
    const first = { ...row, elements: [index] };
    found.set(key, first);
    return [first];
  });
}

/** A column: what it shows, how wide, and what follows it. */
export interface Column {
  field: string;
  title: string;
  /** null: as wide as it is. */
  width: number | null;
  right: boolean;
  after: string;
}

/** One line, as its columns say. */
export const line = (columns: readonly Column[], value: (column: Column) => string): string =>
  columns
    .map((column) => {
      const { width, right, after } = column;
      const text = value(column);
      if (width === null) return text + after;
      const cut = text.slice(0, width);
      return (right ? cut.padStart(width) : cut.padEnd(width)) + after;
    })
    .join('');

/**
 * As `--sort` says: letters of the table, or its fields, separated by commas, with `-` before one for the other way round. `#` before one keeps
 * the order as it is. Numbers are compared as numbers. Equal ones stay in order.
 *
 * @throws SlurmError for a field that there is not
 */
export function sortedBy<T>(
  all: readonly T[],
  sort: string,
  letters: Readonly<Record<string, readonly [field: string, title: string]>>,
  shown: (one: T, field: string) => string | number,
): T[] {
  const fields = Object.values(letters).map(([field]) => field);
  const keys = [...sort.matchAll(/([+-]?)(#?)(\w[\w-]*)/g)].flatMap(([, sign, hash, word = '']) =>
    (fields.includes(word.toLowerCase()) ? [word.toLowerCase()] : [...word]).map((key) => {
      const field = letters[key]?.[0] ?? (fields.includes(key) ? key : undefined);
      if (field === undefined)
        throw new SlurmError(
          `Invalid sort specification: ${key}; accepted: ${Object.keys(letters).join('')}, separated by commas`,
        );
      return { field, sign: hash ? 0 : sign === '-' ? -1 : 1 };
    }),
  );
  if (keys.length === 0) return [...all];
  const rows = all.map((one) => ({ one, values: keys.map(({ field }) => shown(one, field)) }));
  rows.sort((a, b) => {
    for (const [i, { sign }] of keys.entries()) {
      const difference = sign * compared(a.values[i]!, b.values[i]!);
      if (difference !== 0) return difference;
    }
    return 0;
  });
  return rows.map(({ one }) => one);
}

function compared(a: string | number, b: string | number): number {
  const [x, y] = [a, b].map((value) => (value === '' ? Number.NaN : Number(value)));
  if (!Number.isNaN(x) && !Number.isNaN(y)) return x === y ? 0 : x! - y!;
  return String(a) < String(b) ? -1 : a === b ? 0 : 1;
}

/** Letters of `-o`: `%.18i %j|%T`, each with its field and title. What is between them stays; `%%` counts as `%`, as in Slurm. */
export function columnsOf(
  format: string,
  letters: Readonly<Record<string, readonly [field: string, title: string]>>,
): { before: string; columns: Column[] } {
  const [before = '', ...parts] = format.replaceAll(/%+/g, '%').split(/(?=%\.?\d*[A-Za-z])/);
  const all = before.startsWith('%') ? [before, ...parts] : parts;
  const columns = all.map((part): Column => {
    const [, dot, width, letter = '', after = ''] = /^%(\.?)(\d*)([A-Za-z])(.*)$/s.exec(part) ?? [];
    const [field, title] = letters[letter] ?? ['', letter];
    return { field, title, width: width ? Number(width) : null, right: dot === '.', after };
  });
  return { before: before.startsWith('%') ? '' : before, columns };
}
