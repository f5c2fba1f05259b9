/** squeue, sacct, sstat, sprio, seff: jobs as tables. */
import { ACTIVE_STATES } from '../client/states.gql.js';
import { programEnvironment } from '../platform/connection.js';
import { parseSince, switchesWritten } from '../words/index.js';
import { ask, SlurmError } from './ask.js';
import { byCluster, type Clusters, clustersAsked } from './clusters.js';
import { complain, type Given, given, print, type Run, warn } from './command.js';
import { SlurmUsesDocument, type SlurmUsesQuery } from './documents.gql.js';
import {
  type Column,
  columnsOf,
  FIELDS,
  isDear,
  kilobytes,
  line,
  type Row,
  sortedBy,
  textOf,
  together,
} from './fields.js';
import {
  clock,
  elapsedS,
  exitOf,
  findJobs,
  hasEnded,
  type Job,
  letters,
  localTime,
  namedJobs,
  nodesOf,
  numberOf,
  placeOf,
  reasonOf,
  STATES,
  shownId,
  slurmState,
  stateOf,
  withStarts,
} from './jobs.js';
import { accountedJob, jobInfo, jsonOf } from './json.js';
import { OPTIONS } from './options.js';
import { expanded, isInOne } from './partitions.js';
import { derivedExit, rowOfBatch, rowOfStep, type Step, stepsOf } from './steps.js';

const LETTERS = {
  a: ['account', 'ACCOUNT'],
  A: ['jobidraw', 'JOBID'],
  b: ['tres-per-node', 'TRES_PER_NODE'],
  B: ['batchhost', 'EXEC_HOST'],
  c: ['mincpus', 'MIN_CPUS'],
  C: ['numcpus', 'CPUS'],
  d: ['mintmpdisk', 'MIN_TMP_DISK'],
  D: ['numnodes', 'NODES'],
  e: ['endtime', 'END_TIME'],
  E: ['dependency', 'DEPENDENCY'],
  f: ['feature', 'FEATURES'],
  F: ['arrayjobid', 'ARRAY_JOB_ID'],
  g: ['groupname', 'GROUP'],
  h: ['oversubscribe', 'OVER_SUBSCRIBE'],
  i: ['jobid', 'JOBID'],
  I: ['corespernode', 'CORES_PER_SOCKET'],
  j: ['name', 'NAME'],
  k: ['comment', 'COMMENT'],
  K: ['arraytaskid', 'ARRAY_TASK_ID'],
  l: ['timelimit', 'TIME_LIMIT'],
  L: ['timeleft', 'TIME_LEFT'],
  m: ['minmemory', 'MIN_MEMORY'],
  M: ['timeused', 'TIME'],
  n: ['reqnodelist', 'REQ_NODES'],
  N: ['nodelist', 'NODELIST'],
  o: ['command', 'COMMAND'],
  p: ['priority', 'PRIORITY'],
  P: ['partition', 'PARTITION'],
  q: ['qos', 'QOS'],
  Q: ['prioritylong', 'PRIORITY'],
  r: ['reason', 'REASON'],
  R: ['reasonlist', 'NODELIST(REASON)'],
  S: ['starttime', 'START_TIME'],
  t: ['statecompact', 'ST'],
  T: ['state', 'STATE'],
  u: ['username', 'USER'],
  U: ['userid', 'UID'],
  v: ['reservation', 'RESERVATION'],
  V: ['submittime', 'SUBMIT_TIME'],
  W: ['licenses', 'LICENSES'],
  w: ['wckey', 'WCKEY'],
  x: ['excnodes', 'EXC_NODES'],
  y: ['nice', 'NICE'],
  Y: ['schednodes', 'SCHEDNODES'],
  Z: ['workdir', 'WORK_DIR'],
} as const;
/** Of those that wait, with their expected starts. */
const STARTS = '%.18i %.9P %.8j %.8u %.2t %.19S %.6D %.20Y %R';
/** Of steps. */
const STEPS = '%.18s %.8j %.9P %.8u %.9M %N';
const SHORT = '%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R';
const LONG = '%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R';
/** How long squeue shows a job that has ended: Slurm's MinJobAge. */
const SHOWN_S = 300;

const LONG_TITLES: ReadonlyMap<string, string> = new Map<string, string>([
  ...Object.values(LETTERS).map(([field, title]) => [field, title] as const),
  ...([
    ['jobarrayid', 'JOBID'],
    ['numtasks', 'TASKS'],
    ['tres-alloc', 'TRES_ALLOC'],
  ] as const),
]);

/** `Field:30`, `Field:.20`, `Field:\x1f`: as wide, then what follows; 20 wide without a colon. */
function longColumns(format: string): Column[] {
  return format.split(',').map((part): Column => {
    const [, field = '', dot, width = '20', after = ''] =
      /^([\w-]+)(?::(\.?)(\d*)(.*))?$/s.exec(part.trimStart()) ?? [];
    const title = LONG_TITLES.get(field.toLowerCase()) ?? field.toUpperCase();
    return { field, title, width: width === '' ? null : Number(width), right: dot === '.', after };
  });
}

/** Some that no job of ours is ever in. */
const SLURM_STATES: readonly string[] =
  'PENDING RUNNING SUSPENDED COMPLETED CANCELLED FAILED TIMEOUT NODE_FAIL PREEMPTED BOOT_FAIL DEADLINE OUT_OF_MEMORY COMPLETING CONFIGURING RESIZING RESV_DEL_HOLD REQUEUED REQUEUE_FED REQUEUE_HOLD REVOKED SIGNALING SPECIAL_EXIT STAGE_OUT STOPPED'.split(
    ' ',
  );

/** States that are asked for; null: all. */
function statesOf(texts: readonly string[]): Set<string> | null {
  if (texts.some((text) => text.toLowerCase() === 'all')) return null;
  return new Set(
    texts.map((text) => {
      const state = stateOf(text) ?? text.toUpperCase();
      if (!SLURM_STATES.includes(state) && stateOf(state) === null)
        throw new SlurmError(
          `Invalid job state specified: ${text}\nValid job states include: ${SLURM_STATES.join(',')}`,
        );
      return state;
    }),
  );
}
const ACTIVE = ['PENDING', 'CONFIGURING', 'RUNNING', 'COMPLETING'];

/** The jobs that an option each selects. */
function selected(jobs: readonly Job[], options: Given, user: string): Job[] {
  const users = [
    ...options.list('--user'),
    ...options.list('--users'),
    ...options.list('--uid'),
    ...(options.has('--me') ? [user] : []),
  ];
  const names = [...options.list('--name')];
  const accounts = [...options.list('--account'), ...options.list('--accounts')];
  const partitions = options.list('--partition');
  const classes = options.list('--qos');
  const licenses = options.list('--licenses').map((one) => one.replace(/[:=].*$/, ''));
  const nodes = options.list('--nodelist').flatMap(expanded);
  const own = [process.getuid?.(), ownName()].map(String);
  const isOf = (name: string): boolean =>
    users.includes(name) || (name === user && users.some((one) => own.includes(one)));
  return jobs.filter(
    (job) =>
      (users.length === 0 || isOf(job.user.name)) &&
      (names.length === 0 || names.includes(job.name ?? job.application)) &&
      (accounts.length === 0 || accounts.includes(job.project ?? 'default')) &&
      (partitions.length === 0 || isInOne(job, partitions)) &&
      (classes.length === 0 || classes.includes(job.class ?? 'normal')) &&
      (licenses.length === 0 || licenses.some((one) => licensesOf(job).includes(one))) &&
      (nodes.length === 0 || nodesOf(job).some((node) => nodes.includes(node))),
  );
}

/** Names without amounts. */
const licensesOf = ({ licenses, resources }: Job): string[] => [
  ...licenses,
  ...(resources ?? []).map(({ kind }) => kind),
];

/** The account of this machine, for which scripts ask: it stands for the user of the key. */
const ownName = (): string => {
  const { USER, LOGNAME } = programEnvironment();
  return USER ?? LOGNAME ?? '';
};

/** What `--sort` compares where that is not what is shown. */
const ORDERS: Readonly<Record<string, (row: Row) => number>> = {
  jobid: ({ job }) => numberOf(job.id),
  statecompact: ({ job }) => STATES.indexOf(slurmState(job)),
  state: ({ job }) => STATES.indexOf(slurmState(job)),
  timelimit: ({ job }) => job.runTimeLimitS ?? Infinity,
  timeleft: ({ job, nowMs }) => (job.runTimeLimitS ?? Infinity) - elapsedS(job, nowMs),
  timeused: ({ job, nowMs }) => elapsedS(job, nowMs),
  minmemory: ({ job }) => job.memoryMbPerTask,
};

function formatOf(options: Given): { before: string; columns: Column[] } {
  if (options.has('--Format')) return { before: '', columns: longColumns(options.get('--Format')!) };
  const format =
    options.get('--format') ??
    (options.has('--steps') ? STEPS : undefined) ??
    (options.has('--start') ? STARTS : undefined) ??
    programEnvironment().SQUEUE_FORMAT ??
    (options.has('--long') ? LONG : SHORT);
  return columnsOf(
    format,
    options.has('--steps') ? { ...LETTERS, i: ['jobstep', 'STEPID'], s: ['jobstep', 'STEPID'] } : LETTERS,
  );
}

export const squeue: Run = async (words, name) => {
  const options = given(name, words, OPTIONS.squeue);
  const nowMs = Date.now();
  const { before, columns } = formatOf(options);
  const ids = options.list('--jobs');
  const wanted = options.has('--states') ? statesOf(options.list('--states')) : new Set(ACTIVE);
  const isFull = ['--json', '--nodelist', '--licenses'].some(options.has);
  const how = { full: isFull || isDear(columns.map(({ field }) => field)) };
  const found = ids.length > 0 ? await namedJobs([ids.join(',')], how) : await listed(wanted, how);
  if (ids.length > 0 && found.jobs.length === 0) throw new SlurmError('Invalid job id specified');
  const isOver = (job: Job): boolean => hasEnded(job) && Date.parse(job.endedAt!) < nowMs - SHOWN_S * 1000;
  const jobs = selected(found.jobs, options, found.user)
    .filter((job) => !isOver(job) && (wanted === null || wanted.has(slurmState(job))))
    .filter((job) => !options.has('--start') || slurmState(job) === 'PENDING')
    .filter((job) => !options.has('--steps') || job.state === 'RUNNING')
    .sort(
      (a, b) => ordered(letters(slurmState(a)), letters(slurmState(b))) || numberOf(a.id) - numberOf(b.id),
    );
  const known = options.has('--start') ? await withStarts(jobs) : jobs;
  const clusters = await clustersAsked(options.list('--clusters'));
  const rows = sortedBy(
    inClusters(known, clusters).map((job): Row => ({ job, nowMs })),
    options.get('--sort') ?? (options.has('--start') ? 'S' : ''),
    LETTERS,
    (row, field) => ORDERS[field]?.(row) ?? textOf(field, row),
  );
  if (options.has('--json')) {
    print(jsonOf('slurmctld', name, { jobs: rows.map(jobInfo) }));
    return 0;
  }
  const isHeaded = !options.has('--noheader');
  const shown = options.has('--array') ? rows : together(rows, columns);
  const lines = byCluster(clusters, isHeaded, (cluster) => [
    ...(isHeaded ? [before + line(columns, ({ title }) => title)] : []),
    ...shown
      .filter(({ job }) => cluster === null || clusters?.of(job) === cluster)
      .map((row) => before + line(columns, ({ field }) => textOf(field, row))),
  ]);
  if (lines.length > 0) print(lines.join('\n'));
  return 0;
};

const ordered = (a: string, b: string): number => (a < b ? -1 : a === b ? 0 : 1);

const inClusters = (jobs: readonly Job[], clusters: Clusters | null): readonly Job[] =>
  clusters === null ? jobs : jobs.filter((job) => clusters.names.includes(clusters.of(job)));

/** Jobs that have not ended, and if they are wanted, those that have ended lately. */
async function listed(
  wanted: Set<string> | null,
  how: { full: boolean },
): Promise<{ jobs: Job[]; user: string }> {
  const active = await findJobs({ states: ACTIVE_STATES }, how);
  if (wanted !== null && [...wanted].every((state) => ACTIVE.includes(state))) return active;
  const ended = await findJobs({ endedAfter: new Date(Date.now() - SHOWN_S * 1000).toISOString() }, how);
  const known = new Set(active.jobs.map(({ id }) => id));
  return { jobs: [...active.jobs, ...ended.jobs.filter(({ id }) => !known.has(id))], user: active.user };
}

const SACCT_FORMAT = 'jobid,jobname,partition,account,alloccpus,state,exitcode';
const SACCT_BRIEF = 'jobid,state,exitcode';
const SACCT_LONG =
  'jobid,jobidraw,jobname,partition,maxrss,alloccpus,elapsed,state,exitcode,reqmem,alloctres,submit,start,end,nodelist';
/** Names of fields as sacct writes them, however people do. */
const TITLES =
  'JobID JobIDRaw JobName Partition Account AllocCPUS AllocTRES CPUTime CPUTimeRAW Cluster Elapsed ElapsedRaw Eligible End ExitCode MaxRSS NCPUS NNodes NodeList NTasks QOS Reason ReqCPUS ReqMem ReqNodes ReqTRES Start State Submit Timelimit TimelimitRaw TotalCPU User WorkDir'.split(
    ' ',
  );
const titleOf = (field: string, otherwise = field): string =>
  TITLES.find((title) => title.toLowerCase() === field) ?? otherwise;
/** Where it is not 10. */
const WIDTHS: Readonly<Record<string, number>> = {
  jobid: 12,
  nodelist: 15,
  state: 10,
  exitcode: 8,
  submit: 19,
  start: 19,
  end: 19,
  eligible: 19,
};

/** `state%20`, `nodelist%-256`. */
function accountColumns(format: string): Column[] {
  return format
    .split(',')
    .filter(Boolean)
    .map((part): Column => {
      const [, written = part, left, width] = /^(\w+)(?:%(-?)(\d+))?$/.exec(part) ?? [];
      const field = written.toLowerCase();
      return {
        field,
        title: titleOf(field, written),
        width: Number(width ?? WIDTHS[field] ?? 10),
        right: left !== '-' && (width !== undefined || field !== 'jobid'),
        after: ' ',
      };
    });
}

/** Of a job, or those of its steps that were asked for. `recorded`: its other steps. */
function rowsOf(
  job: Job,
  nowMs: number,
  asked: ReadonlySet<string> | undefined,
  isWhole: boolean,
  recorded: readonly Row[] = [],
): Row[] {
  const own: Row = { job, nowMs, step: null };
  if (isWhole || job.startedAt === null) return isWhole || asked === undefined ? [own] : [];
  if (asked === undefined) return [own, rowOfBatch(own), ...recorded];
  return [...asked].flatMap((step) => {
    if (step === 'batch') return [rowOfBatch(own)];
    return hasEnded(job) ? recorded.filter((one) => one.step === step) : [{ ...own, step }];
  });
}

/** Between two times: what was before counts from the first, what was later to the last. */
function truncated(job: Job, from: string, to: string | undefined): Job {
  const { startedAt, endedAt } = job;
  return {
    ...job,
    startedAt: startedAt !== null && startedAt < from ? from : startedAt,
    endedAt: endedAt !== null && to !== undefined && endedAt > to ? to : endedAt,
  };
}

/** Until a job has ended, what srun starts in it is part of its step `batch` here. */
function warnOfSteps(
  jobs: readonly Job[],
  steps: ReadonlyMap<number, ReadonlySet<string>>,
  name: string,
): void {
  for (const job of jobs)
    for (const step of hasEnded(job) ? [] : (steps.get(numberOf(job.id)) ?? []))
      if (step !== 'batch')
        warn(
          name,
          `${shownId(job)}.${step}: steps are recorded when their job has ended; shown is all that the job runs`,
        );
}

function accountFormat(options: Given): Column[] {
  const asked = options.list('--format').join(',');
  if (asked) return accountColumns(asked);
  if (options.has('--brief')) return accountColumns(SACCT_BRIEF);
  return accountColumns(options.has('--long') ? SACCT_LONG : SACCT_FORMAT);
}

export const sacct: Run = async (words, name) => {
  const options = given(name, words, OPTIONS.sacct);
  if (options.has('--helpformat')) return printFields();
  const nowMs = Date.now();
  const columns = accountFormat(options);
  const isFull = ['--json', '--nodelist'].some(options.has);
  const how = { full: isFull || isDear(columns.map(({ field }) => field)) };
  const ids = [...options.list('--jobs'), ...options.list('--job')];
  const time = (option: string): string | undefined => {
    const value = options.get(option);
    return value === undefined ? undefined : parseSince(option, sinceOf(value), nowMs, () => undefined);
  };
  const today = new Date(nowMs);
  const midnight = new Date(today.getFullYear(), today.getMonth(), today.getDate()).toISOString();
  const [from, to] = [time('--starttime') ?? midnight, time('--endtime')];
  const found = ids.length > 0 ? await namedJobs([ids.join(',')], how) : await accounted(from, how);
  const states = options.has('--state') ? statesOf(options.list('--state')) : null;
  const mine = ids.length > 0 || options.has('--allusers') || options.has('--user') || options.has('--uid');
  const cut = (job: Job): Job => (options.has('--truncate') ? truncated(job, from, to) : job);
  const jobs = selected(
    inClusters(found.jobs, await clustersAsked(options.list('--clusters'))),
    options,
    found.user,
  )
    .filter((job) => mine || job.user.name === found.user)
    .filter((job) => to === undefined || Date.parse(job.submittedAt) < Date.parse(to))
    .filter((job) => states === null || states.has(accountedState(job)))
    .map(cut)
    .sort((a, b) => numberOf(a.id) - numberOf(b.id));
  const isWhole = options.has('--allocations');
  const isDerived = columns.some(({ field }) => field === 'derivedexitcode');
  const steps = isWhole && !isDerived ? new Map<string, Step[]>() : await stepsOf(jobs);
  const recorded = (job: Job): Row[] =>
    (steps.get(job.id) ?? []).map((step) => {
      const row = rowOfStep(job, step, nowMs);
      return { ...row, job: cut(row.job) };
    });
  if (options.has('--json')) {
    const shown = jobs.map((job) => accountedJob({ job, nowMs }, accountedState(job), recorded(job)));
    print(jsonOf('slurmdbd', name, { jobs: shown }));
    return 0;
  }
  warnOfSteps(jobs, found.steps, name);
  const each = jobs.flatMap((job) => {
    const own = steps.get(job.id) ?? [];
    const rows = rowsOf(job, nowMs, found.steps.get(numberOf(job.id)), isWhole, recorded(job));
    return own.length > 0 ? rows.map((row) => ({ ...row, derived: derivedExit(job, own) })) : rows;
  });
  const rows = options.has('--array') ? each : together(each, columns);
  const inUnits = unitsOf(options);
  const value =
    (row: Row) =>
    (column: Column): string =>
      column.field === 'state' ? accountedState(row.job) : inUnits(column.field, textOf(column.field, row));
  printAccounts(
    options,
    columns,
    rows.map((row) => value(row)),
  );
  return 0;
};

/** The names that --format takes. */
function printFields(): number {
  const names = Object.keys(FIELDS).map((field) => titleOf(field));
  print(names.sort((a, b) => a.localeCompare(b)).join('\n'));
  return 0;
}

const UNITS = ['K', 'M', 'G', 'T', 'P'] as const;
/** Fields that are amounts of memory, with their unit behind them. */
const AMOUNTS = /^(reqmem|maxrss|averss|alloctres|reqtres)$/;

/**
 * Memory in the unit that `--units` names, as Slurm converts it, by 1024.
 *
 * @throws SlurmError for another unit
 */
function unitsOf(options: Given): (field: string, text: string) => string {
  const unit = options.has('--noconvert') ? undefined : options.get('--units')?.toUpperCase();
  if (unit === undefined) return (_, text) => text;
  const to = UNITS.indexOf(unit as (typeof UNITS)[number]);
  if (to === -1) throw new SlurmError(`Invalid --units: ${unit}; accepted: ${UNITS.join(', ')}`);
  const converted = (amount: string, from: string): string =>
    `${Number((Number(amount) * 1024 ** (UNITS.indexOf(from as (typeof UNITS)[number]) - to)).toFixed(2))}${unit}`;
  return (field, text) =>
    AMOUNTS.test(field)
      ? text.replaceAll(
          /(^|=)(\d+(?:\.\d+)?)([KMGTP])(?=$|,)/g,
          (_, before, amount, from) => before + converted(amount, from),
        )
      : text;
}

/** sacct knows no state between waiting and running. */
function accountedState(job: Job): string {
  const state = slurmState(job);
  return state === 'CONFIGURING' ? 'PENDING' : state === 'COMPLETING' ? 'RUNNING' : state;
}

/** `now-1day` is `1day` ago; `1970-01-01`; `0101`, a day of this year; `today`. */
function sinceOf(value: string): string {
  const [, ago] = /^now-(.+)$/.exec(value) ?? [];
  if (ago !== undefined) return /^\d+$/.test(ago) ? `${ago}s` : ago;
  if (value === 'today') return 'midnight';
  const [, month, day, year] = /^(\d\d)\/(\d\d)\/(\d\d)$/.exec(value) ?? [];
  return month === undefined ? value : `20${year}-${month}-${day}`;
}

/** Jobs that were submitted since, and older ones that had not ended. */
async function accounted(from: string, how: { full: boolean }) {
  const { jobs, user } = await findJobs({ submittedAfter: from }, how);
  const older = await findJobs({ submittedBefore: from, states: ACTIVE_STATES }, how);
  return { jobs: [...older.jobs, ...jobs], user, steps: new Map<number, Set<string>>() };
}

/** Tables of sacct and its relatives: for people, or with separators. */
export function printAccounts(
  options: Given,
  columns: readonly Column[],
  rows: readonly ((column: Column) => string)[],
): void {
  const isOpen = options.has('--parsable2');
  const between = options.get('--delimiter') ?? '|';
  const separated = (value: (column: Column) => string): string =>
    columns.map(value).join(between) + (isOpen ? '' : between);
  const plain = (value: (column: Column) => string): string => line(columns, value);
  const written = isOpen || options.has('--parsable') ? separated : plain;
  const lines = rows.map(written);
  if (!options.has('--noheader')) {
    lines.unshift(written(({ title }) => title));
    if (written === plain)
      lines.splice(
        1,
        0,
        plain(({ width }) => '-'.repeat(width ?? 0)),
      );
  }
  if (lines.length > 0) print(lines.join('\n'));
}

const MEASURED = /rss|(ave|min|total|system|user)cpu|vm|disk|pages|tresusage/;

type Use = NonNullable<SlurmUsesQuery['jobs']['nodes'][number]['runs'][number]['liveUse']>;
/** What sstat shows of the use of a job with so many tasks; of several tasks there is only the sum of CPU time, and the most memory of one. */
const USES: Readonly<Record<string, (use: Use, tasks: number) => string>> = {
  avecpu: ({ cpuS }, tasks) => (cpuS === null ? '' : clock(cpuS / tasks)),
  mincpu: ({ cpuS }, tasks) => (cpuS === null || tasks > 1 ? '' : clock(cpuS)),
  totalcpu: ({ cpuS }) => (cpuS === null ? '' : clock(cpuS)),
  maxrss: ({ peakMemoryMb }) => (peakMemoryMb === null ? '' : kilobytes(peakMemoryMb)),
  averss: ({ peakMemoryMb }, tasks) => (peakMemoryMb === null || tasks > 1 ? '' : kilobytes(peakMemoryMb)),
};

/** Jobs in one question: as many as the service asks agents about at once. */
const USES_PAGE = 100;

async function usesOf(jobs: readonly Job[]): Promise<ReadonlyMap<string, Use>> {
  const uses = new Map<string, Use>();
  for (let from = 0; from < jobs.length; from += USES_PAGE) {
    const ids = jobs.slice(from, from + USES_PAGE).map(({ id }) => id);
    const { jobs: found } = await ask(SlurmUsesDocument, { ids, first: USES_PAGE });
    for (const { id, runs } of found.nodes) {
      const use = runs.at(-1)?.liveUse;
      if (use) uses.set(id, use);
    }
  }
  return uses;
}

/** What is not known of the use of a job is empty, as in Slurm without accounting. */
export const sstat: Run = async (words, name) => {
  const options = given(name, words, OPTIONS.sstat);
  if (options.has('--helpformat')) return printFields();
  const columns = accountColumns(options.list('--format').join(',') || 'jobid,nodelist,ntasks,maxrss,avecpu');
  const { jobs, steps } = await namedJobs([...options.list('--jobs'), ...options.operands], { full: true });
  const running = jobs.filter((job) => job.state === 'RUNNING');
  const measured = columns.filter(({ field }) => MEASURED.test(field));
  const uses = measured.length > 0 ? await usesOf(running) : new Map<string, Use>();
  const unknown = running.filter(({ id }) => !uses.has(id)).map(({ id }) => numberOf(id));
  if (measured.length > 0 && unknown.length > 0)
    warn(
      name,
      `what these jobs use is not known while they run: ${unknown.join(', ')}. When they have ended: see sacct`,
    );
  warnOfSteps(running, steps, name);
  const nowMs = Date.now();
  const cell = (row: Row, field: string): string => {
    const use = uses.get(row.job.id);
    if (!measured.some((one) => one.field === field)) return textOf(field, row);
    return (use && USES[field]?.(use, row.job.tasks)) ?? '';
  };
  const rows = running.flatMap((job) =>
    rowsOf(job, nowMs, steps.get(numberOf(job.id)) ?? new Set(['batch']), false),
  );
  printAccounts(
    options,
    columns,
    rows.map(
      (row) =>
        ({ field }) =>
          cell(row, field),
    ),
  );
  return 0;
};

export const sprio: Run = async (words, name) => {
  const options = given(name, words, OPTIONS.sprio);
  const { jobs, user } = options.has('--jobs')
    ? await namedJobs(options.list('--jobs'))
    : await findJobs({ states: ['QUEUED', 'BLOCKED', 'HELD', 'DISPATCHED'] });
  const letters = {
    i: ['jobidraw', 'JOBID'],
    r: ['partition', 'PARTITION'],
    u: ['username', 'USER'],
    Y: ['priority', 'PRIORITY'],
    y: ['priority', 'PRIORITY'],
  } as const;
  const { before, columns } = columnsOf(options.get('--format') ?? '%.15i %9r %.8u %.10Y', letters);
  const nowMs = Date.now();
  const rows = sortedBy(
    selected(jobs, options, user).map((job): Row => ({ job, nowMs })),
    options.get('--sort') ?? '',
    letters,
    (row, field) => textOf(field, row),
  );
  const lines = rows.map((row) => before + line(columns, ({ field }) => textOf(field, row)));
  if (!options.has('--noheader')) lines.unshift(before + line(columns, ({ title }) => title));
  print(lines.join('\n'));
  return 0;
};

export const seff: Run = async (words, name) => {
  const { operands } = given(name, words, OPTIONS.seff);
  const { jobs, unknown } = await namedJobs(operands, { full: true });
  const nowMs = Date.now();
  for (const text of unknown) complain(name, `Job not found: ${text}`);
  for (const job of jobs) {
    const run = job.runs?.at(-1);
    const [cores, wall] = [job.cpus, elapsedS(job, nowMs)];
    const share = (part: number, of: number): string =>
      `${of > 0 ? ((100 * part) / of).toFixed(2) : '0.00'}%`;
    const cpuS = run?.cpuS ?? null;
    const peak = run?.peakMemoryMb ?? null;
    const asked = job.memoryMb;
    print(
      [
        `Job ID: ${numberOf(job.id)}`,
        'Cluster: switchyard',
        `User/Group: ${job.user.name}/${job.user.name}`,
        `State: ${slurmState(job)} (exit code ${job.exitCode ?? 0})`,
        `Nodes: ${Math.max(1, nodesOf(job).length)}`,
        `Cores per node: ${job.cpusPerTask}`,
        `CPU Utilized: ${cpuS === null ? 'N/A' : clock(cpuS)}`,
        `CPU Efficiency: ${cpuS === null ? 'N/A' : share(cpuS, wall * cores)} of ${clock(wall * cores)} core-walltime`,
        `Job Wall-clock time: ${clock(wall)}`,
        `Memory Utilized: ${peak === null ? 'N/A' : `${peak.toFixed(2)} MB`}`,
        `Memory Efficiency: ${peak === null || asked === 0 ? 'N/A' : share(peak, asked)} of ${asked} MB`,
      ].join('\n'),
    );
  }
  return unknown.length > 0 ? 1 : 0;
};

/** All that `scontrol show job` tells, on lines or on one. */
export function described(job: Job, nowMs: number, isOneLine: boolean): string {
  const row: Row = { job, nowMs };
  const place = placeOf(job);
  const of = (field: string): string => textOf(field, row);
  const lines = [
    [
      `JobId=${numberOf(job.id)}`,
      ...(place ? [`ArrayJobId=${place.first}`, `ArrayTaskId=${job.arrayIndex}`] : []),
      ...(place?.atOnce ? [`ArrayTaskThrottle=${place.atOnce}`] : []),
      `JobName=${of('name')}`,
    ],
    [`UserId=${job.user.name}(${process.getuid?.() ?? 0})`, 'GroupId=N/A', 'MCS_label=N/A'],
    [`Priority=${of('priority')}`, `Nice=${of('nice')}`, `Account=${of('account')}`, `QOS=${of('qos')}`],
    [`JobState=${slurmState(job)}`, `Reason=${reasonOf(job, nowMs)}`, `Dependency=${of('dependency')}`],
    [
      `Requeue=${job.restartable ? 1 : 0}`,
      `Restarts=${Math.max(0, job.epoch - 1)}`,
      'BatchFlag=1',
      'Reboot=0',
      `ExitCode=${exitOf(job)}`,
    ],
    [`RunTime=${of('elapsed')}`, `TimeLimit=${textOf('timelimit', { ...row, step: null })}`, 'TimeMin=N/A'],
    [`SubmitTime=${of('submit')}`, `EligibleTime=${of('eligible')}`],
    [
      `StartTime=${localTime(job.startedAt, 'Unknown')}`,
      `EndTime=${of('end')}`,
      `Deadline=${of('deadline')}`,
    ],
    [`Partition=${of('partition')}`, 'AllocNode:Sid=N/A:N/A'],
    [
      `NodeList=${nodesOf(job).join(',') || '(null)'}`,
      ...(nodesOf(job)[0] ? [`BatchHost=${nodesOf(job)[0]}`] : []),
    ],
    [
      `NumNodes=${of('numnodes')}`,
      `NumCPUs=${of('numcpus')}`,
      `NumTasks=${job.tasks}`,
      `CPUs/Task=${job.cpusPerTask}`,
    ],
    [`TRES=${of('reqtres')}`],
    ['Socks/Node=*', `NtasksPerN:B:S:C=${job.tasksPerMachine?.max ?? 0}:0:*:*`, 'CoreSpec=*'],
    [`MinCPUsNode=${job.cpusPerTask}`, `MinMemoryNode=${of('minmemory')}`, 'MinTmpDiskNode=0'],
    [`Features=${of('feature')}`, 'DelayBoot=00:00:00'],
    ...(job.sameSwitch === null ? [] : [[`Switches=${switchesWritten(job.sameSwitch)}`]]),
    [`OverSubscribe=${of('oversubscribe')}`, 'Contiguous=0', `Licenses=${of('licenses')}`],
    [`Command=${job.command}`],
    [`WorkDir=${job.workingDirectory ?? ''}`],
    ...(job.message === null ? [] : [[`Comment=${job.message.replaceAll(/\s+/g, ' ')}`]]),
  ].map((parts) => parts.join(' '));
  return isOneLine ? lines.join(' ') : `${lines.join('\n   ')}\n`;
}
