/** squeue, sacct, sstat, sprio, seff: jobs as tables. */
import { ACTIVE_STATES } from '../client/states.gql.js';
import { programEnvironment } from '../platform/config.js';
import { parseSince, switchesWritten } from '../words/index.js';
import { SlurmError } from './ask.js';
import { complain, type Given, given, print, type Run } from './command.js';
import { type Column, columnsOf, isDear, line, type Row, textOf } from './fields.js';
import {
  clock,
  elapsedS,
  exitOf,
  findJobs,
  hasEnded,
  type Job,
  localTime,
  namedJobs,
  nodesOf,
  numberOf,
  placeOf,
  reasonOf,
  STATES,
  slurmState,
  stateOf,
} from './jobs.js';
import { accountedJob, jobInfo, jsonOf } from './json.js';

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
const SHORT = '%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R';
const LONG = '%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R';
/** How long squeue shows a job that has ended: Slurm's MinJobAge. */
const SHOWN_S = 300;

/** `Field:30`, `Field:.20`, `Field:\x1f`: as wide, then what follows. */
function longColumns(format: string): Column[] {
  return format.split(',').map((part): Column => {
    const [, field = '', dot, width, after = ''] =
      /^([\w-]+)(?::(\.?)(\d*)(.*))?$/s.exec(part.trimStart()) ?? [];
    return { field, title: field.toUpperCase(), width: Number(width || 20), right: dot === '.', after };
  });
}

/** States that are asked for; null: all. */
function statesOf(texts: readonly string[]): Set<string> | null {
  if (texts.some((text) => text.toLowerCase() === 'all')) return null;
  return new Set(
    texts.map((text) => {
      const state = stateOf(text);
      // States that no job of ours is ever in.
      if (state === null && !/^[A-Za-z_]{1,20}$/.test(text))
        throw new SlurmError(`Invalid job state specified: ${text}`);
      return state ?? text.toUpperCase();
    }),
  );
}
const ACTIVE = ['PENDING', 'CONFIGURING', 'RUNNING', 'COMPLETING'];

/** The jobs that an option each selects. */
function selected(jobs: readonly Job[], options: Given, user: string): Job[] {
  const users = [
    ...options.list('--user'),
    ...options.list('--users'),
    ...(options.has('--me') ? [user] : []),
  ];
  const names = [...options.list('--name')];
  const accounts = [...options.list('--account'), ...options.list('--accounts')];
  const partitions = [...options.list('--partition'), ...options.list('--partitions')];
  const classes = options.list('--qos');
  const own = [process.getuid?.(), ownName()].map(String);
  const isOf = (name: string): boolean =>
    users.includes(name) || (name === user && users.some((one) => own.includes(one)));
  return jobs.filter(
    (job) =>
      (users.length === 0 || isOf(job.user.name)) &&
      (names.length === 0 || names.includes(job.name ?? job.application)) &&
      (accounts.length === 0 || accounts.includes(job.project ?? 'default')) &&
      (partitions.length === 0 || partitions.includes(job.site?.name ?? 'any')) &&
      (classes.length === 0 || classes.includes(job.class ?? 'normal')),
  );
}

/** The account of this machine, for which scripts ask: it stands for the user of the key. */
const ownName = (): string => {
  const { USER, LOGNAME } = programEnvironment();
  return USER ?? LOGNAME ?? '';
};

const SQUEUE =
  '--all -a;--array -r;--array-unique;--account -A=;--clusters -M=?;--format -o=;--Format -O=;--help;--hide;--iterate -i=?;--jobs -j=;--json;--licenses -L=?;--local;--long -l;--me;--name -n=;--noconvert;--noheader -h;--nodelist -w=;--only-job-state;--partition -p=;--priority -P;--qos -q=;--reservation -R=?;--sibling;--sort -S=;--start;--states -t=;--step -s;--user -u=;--users=;--verbose -v;--version -V';

export const squeue: Run = async (words, name) => {
  const options = given(name, words, SQUEUE);
  const nowMs = Date.now();
  const format =
    options.get('--format') ?? programEnvironment().SQUEUE_FORMAT ?? (options.has('--long') ? LONG : SHORT);
  const isLong = options.has('--Format');
  const { before, columns } = isLong
    ? { before: '', columns: longColumns(options.get('--Format')!) }
    : columnsOf(format, LETTERS);
  const ids = options.list('--jobs');
  const wanted = options.has('--states')
    ? statesOf(options.list('--states'))
    : new Set(ids.length > 0 ? [...STATES] : ACTIVE);
  const how = { full: options.has('--json') || isDear(columns.map(({ field }) => field)) };
  const found = ids.length > 0 ? await namedJobs([ids.join(',')], how) : await listed(wanted, how);
  if (ids.length > 0 && found.jobs.length === 0) throw new SlurmError('Invalid job id specified');
  const isOver = (job: Job): boolean => hasEnded(job) && Date.parse(job.endedAt!) < nowMs - SHOWN_S * 1000;
  const jobs = selected(found.jobs, options, found.user)
    .filter((job) => !isOver(job) && (wanted === null || wanted.has(slurmState(job))))
    .filter((job) => !options.has('--start') || slurmState(job) === 'PENDING')
    .sort(
      (a, b) =>
        Number(a.startedAt !== null) - Number(b.startedAt !== null) || numberOf(a.id) - numberOf(b.id),
    );
  if (options.has('--json')) {
    print(jsonOf('slurmctld', name, { jobs: jobs.map((job) => jobInfo({ job, nowMs })) }));
    return 0;
  }
  const lines = jobs.map((job) => before + line(columns, ({ field }) => textOf(field, { job, nowMs })));
  if (!options.has('--noheader')) lines.unshift(before + line(columns, ({ title }) => title));
  if (lines.length > 0) print(lines.join('\n'));
  return 0;
};

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

const SACCT =
  '--accounts -A=;--allclusters -L?;--allocations -X;--allusers -a;--brief -b;--clusters -M=?;--completion -c?;--constraints -C=?;--delimiter=;--duplicates -D;--endtime -E=;--federation?;--file -f=?;--format -o=;--group -g=?;--help -h;--helpformat -e;--json;--jobs -j=;--job=;--long -l;--name=;--nnodes -i=?;--noconvert;--nodelist -N=?;--noheader -n;--parsable -p;--parsable2 -P;--partition -r=;--qos -q=;--reason -R=?;--starttime -S=;--state -s=;--timelimit-max=?;--timelimit-min -k=?;--truncate -T;--uid=;--units=;--use-local-uid;--user -u=;--verbose -v;--version -V;--wckeys -W=?;--whole-hetjob=?';
const SACCT_FORMAT = 'jobid,jobname,partition,account,alloccpus,state,exitcode';
/** Names of fields as sacct writes them, however people do. */
const TITLES =
  'JobID JobIDRaw JobName Partition Account AllocCPUS AllocTRES CPUTime CPUTimeRAW Cluster Elapsed ElapsedRaw Eligible End ExitCode MaxRSS NCPUS NNodes NodeList NTasks QOS Reason ReqCPUS ReqMem ReqNodes ReqTRES Start State Submit Timelimit TimelimitRaw TotalCPU User WorkDir'.split(
    ' ',
  );
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
        title: TITLES.find((title) => title.toLowerCase() === field) ?? written,
        width: Number(width ?? WIDTHS[field] ?? 10),
        right: left !== '-' && (width !== undefined || field !== 'jobid'),
        after: ' ',
      };
    });
}

export const sacct: Run = async (words, name) => {
  const options = given(name, words, SACCT);
  const nowMs = Date.now();
  const columns = accountColumns(options.list('--format').join(',') || SACCT_FORMAT);
  const how = { full: options.has('--json') || isDear(columns.map(({ field }) => field)) };
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
  const jobs = selected(found.jobs, options, found.user)
    .filter((job) => mine || job.user.name === found.user)
    .filter((job) => to === undefined || Date.parse(job.submittedAt) < Date.parse(to))
    .filter((job) => states === null || states.has(accountedState(job)))
    .sort((a, b) => numberOf(a.id) - numberOf(b.id));
  if (options.has('--json')) {
    const accounted = jobs.map((job) => accountedJob({ job, nowMs }, accountedState(job)));
    print(jsonOf('slurmdbd', name, { jobs: accounted }));
    return 0;
  }
  const rows = jobs.flatMap((job): Row[] => [
    { job, nowMs, step: null },
    ...(options.has('--allocations') || job.startedAt === null
      ? []
      : [{ job, nowMs, step: 'batch' as const }]),
  ]);
  const value =
    (row: Row) =>
    (column: Column): string =>
      column.field === 'state' ? accountedState(row.job) : textOf(column.field, row);
  printAccounts(
    options,
    columns,
    rows.map((row) => value(row)),
  );
  return 0;
};

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
async function accounted(from: string, how: { full: boolean }): Promise<{ jobs: Job[]; user: string }> {
  const { jobs, user } = await findJobs({ submittedAfter: from }, how);
  const older = await findJobs({ submittedBefore: from, states: ACTIVE_STATES }, how);
  return { jobs: [...older.jobs, ...jobs], user };
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

const STAT =
  '--allsteps -a;--format -o=;--helpformat -e;--jobs -j=;--noheader -n;--noconvert;--parsable -p;--parsable2 -P;--delimiter=;--verbose -v';

/** What a run has used so far is known when it has ended: so far, only that it runs. */
export const sstat: Run = async (words, name) => {
  const options = given(name, words, STAT);
  const columns = accountColumns(
    options.list('--format').join(',') || 'jobid,nodelist,ntasks,maxrss,totalcpu',
  );
  const { jobs } = await namedJobs([...options.list('--jobs'), ...options.operands], { full: true });
  const nowMs = Date.now();
  printAccounts(
    options,
    columns,
    jobs
      .filter((job) => job.state === 'RUNNING')
      .map(
        (job) =>
          ({ field }) =>
            textOf(field, { job, nowMs, step: 'batch' }),
      ),
  );
  return 0;
};

export const sprio: Run = async (words, name) => {
  const options = given(
    name,
    words,
    '--noheader -h;--jobs -j=;--format -o=;--long -l;--user -u=;--partition -p=;--norm -n;--weights -w;--sort -S=',
  );
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
  const lines = selected(jobs, options, user).map(
    (job) => before + line(columns, ({ field }) => textOf(field, { job, nowMs })),
  );
  if (!options.has('--noheader')) lines.unshift(before + line(columns, ({ title }) => title));
  print(lines.join('\n'));
  return 0;
};

export const seff: Run = async (words, name) => {
  const { operands } = given(name, words, '--help -h;--debug -d');
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
    [`RunTime=${of('elapsed')}`, `TimeLimit=${of('timelimit')}`, 'TimeMin=N/A'],
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
