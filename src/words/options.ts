/**
 * Options of Slurm's sbatch, srun and salloc, and those of `switchyard submit` that a script may contain, as tables: one set of readers for `#SBATCH` and
 * `#SWITCHYARD` lines in the command line and the portal, and for the commands called like Slurm's. Source: sbatch(1) of Slurm 22.05 to 24.11.
 */
import {
  type Asked,
  type AskedPart,
  MAIL_KINDS,
  type MailKind,
  type Need,
  nothing,
  ON_UNMET,
  partOf,
  RUN_SIGNALS,
  type RunSignal,
  type SiteTerms,
  WARN_SIGNALS,
  type WarnSignal,
} from './asked.js';
import { termsOf } from './dependency.js';
import type { Circumstances, Option, Reader, Taken } from './getopt.js';
import { retryRuleOf, type WrittenRetry } from './retry.js';
import {
  NotAccepted,
  parseAmount,
  parseArray,
  parseDelay,
  parseDevices,
  parseDuration,
  parseExclusive,
  parseLabelNames,
  parseLicenses,
  parseMemory,
  parseNumber,
  parseRequest,
  parseRequests,
  parseSameSwitch,
  parseSwitches,
  parseTasksPerMachine,
  parseTerminal,
  parseTime,
  parseVariable,
  parseWord,
  saysMore,
} from './values.js';

const whole = (field: string, value: string, min = 1): number =>
  parseNumber(field, value, { min, integer: true });
const option = (names: string, value: Option['value'], read: Reader | string): Option => {
  const [long, short] = names.split(' ') as [string, string?];
  return { long, ...(short && { short }), value, read };
};
const one = (names: string, read: Reader | string): Option => option(names, 'ONE', read);
const may = (names: string, read: Reader | string): Option => option(names, 'MAY', read);
const flag = (names: string, read: Reader | string): Option => option(names, 'NONE', read);

/** A reader that fills in one field. */
const into =
  <K extends keyof Asked>(
    key: K,
    parse: (value: string, field: string, at: Circumstances) => Asked[K],
  ): Reader =>
  (asked, value, field, at) => {
    asked[key] = parse(value, field, at);
  };
const text = (
  key:
    | 'name'
    | 'image'
    | 'project'
    | 'directory'
    | 'output'
    | 'error'
    | 'input'
    | 'jobid'
    | 'exports'
    | 'partition'
    | 'wrap'
    | 'os'
    | 'architecture'
    | 'constraint'
    | 'reservation'
    | 'clusters'
    | 'group'
    | 'application',
): Reader => into(key, (value) => value);
const yes = (
  key:
    | 'launchOnce'
    | 'continueOnFailure'
    | 'hold'
    | 'parsable'
    | 'wait'
    | 'testOnly'
    | 'quiet'
    | 'help'
    | 'version'
    | 'pty'
    | 'label'
    | 'stepExclusive',
): Reader => into(key, () => true);
const count = (key: 'ntasks' | 'ntasksPerNode' | 'cpusPerTask' | 'tasks'): Reader =>
  into(key, (value, field) => whole(field, value));
const time = (key: 'deadline' | 'begin'): Reader =>
  into(key, (value, field, { nowMs, note }) => parseTime(field, slurmsTime(value), nowMs, note));
const array: Reader = into('array', (value, field) => ({ ...parseArray(field, value), written: value }));

/** `now+2hours` is what `+2h` is; a number alone counts seconds. */
const slurmsTime = (value: string): string => value.replace(/^now\s*\+\s*/i, '+');

/** `gpu`, `gpu:2`, `gpu:a100:2`, `gres/gpu:2`, several with commas; as requests where they say more: `gpu:a100:2:mem=40G:share=1/4`. */
const gres: Reader = (asked, value, field) => {
  if (/^none$/i.test(value)) return;
  for (const one of value.split(',')) {
    const written = one.replace(/^gres[/:]/, '');
    if (saysMore(written)) {
      asked.devices.push(parseRequest(field, written));
      continue;
    }
    const { kind, model, amount } = parseDevices(field, written);
    asked.resources[kind] = amount;
    if (model !== null) asked.models[kind] = model;
  }
};

/** `2`, `a100:2`, or more of what they have to be: `a100:2:mem=40G:share=1/4`. */
const gpus = (asked: Asked, field: string, value: string): number => {
  delete asked.gpuTerms;
  if (saysMore(`:${value}`)) {
    const { kind: _, count = 1, ...terms } = parseRequest(field, `gpu:${value}`);
    asked.gpuTerms = terms;
    delete asked.models.gpu;
    return count;
  }
  const { model, amount } = parseDevices(field, `gpu:${value}`);
  if (model !== null) asked.models.gpu = model;
  return amount;
};

/** `-N 2`, `-N 2-4`: the least. */
const nodes: Reader = into('nodes', (value, field) => {
  const [, least] = /^(\d+)(?:-\d+)?$/.exec(value) ?? [];
  return whole(field, least ?? value);
});

/** `--mem=0` is all that a node has: its amount is not known here. */
const memory: Reader = (asked, value, field, { note }) => {
  asked.memoryMb = parseMemory(field, value);
  if (asked.memoryMb === 0)
    note(`${field}=0: no memory is reserved; requesting all memory of a machine is not supported`);
};

const memoryPerCpu: Reader = into('memoryMbPerCpu', (value, field) => parseMemory(field, value));

const exclusive: Reader = into('exclusive', (value, field) => parseExclusive(field, value));

const SIGNAL_NUMBERS: Readonly<Record<string, WarnSignal>> = {
  ...{
    '1': 'SIGHUP',
    '2': 'SIGINT',
    '3': 'SIGQUIT',
    '10': 'SIGUSR1',
    '12': 'SIGUSR2',
    '14': 'SIGALRM',
    '15': 'SIGTERM',
  },
};

const RUN_NUMBERS: Readonly<Record<string, RunSignal | 'SIGKILL'>> = {
  ...SIGNAL_NUMBERS,
  ...{ '9': 'SIGKILL', '18': 'SIGCONT', '19': 'SIGSTOP' },
};

/** `end,fail`; `none` stands for no kind. */
export const mailKinds = (value: string, field: string): MailKind[] =>
  value.toLowerCase() === 'none'
    ? []
    : value.split(',').map((kind) => parseWord(field, kind.toUpperCase(), MAIL_KINDS));

/** sbatch(1), `--mail-type`, as far as there is a kind of mail for it. */
const SLURM_MAIL: Readonly<Record<string, readonly MailKind[]>> = {
  NONE: [],
  BEGIN: ['BEGIN'],
  END: ['END'],
  FAIL: ['FAIL'],
  ALL: ['BEGIN', 'END', 'FAIL'],
  INVALID_DEPEND: ['END'],
  TIME_LIMIT: ['FAIL'],
  TIME_LIMIT_90: ['LIMIT_80'],
  TIME_LIMIT_80: ['LIMIT_80'],
  TIME_LIMIT_50: ['LIMIT_80'],
  REQUEUE: [],
  STAGE_OUT: [],
  ARRAY_TASKS: [],
};
const slurmMail = (value: string, field: string): MailKind[] => [
  ...new Set(
    value
      .split(',')
      .flatMap((kind) => SLURM_MAIL[parseWord(field, kind.toUpperCase(), Object.keys(SLURM_MAIL))] ?? []),
  ),
];

const signalNamed = (name: string): WarnSignal | undefined =>
  WARN_SIGNALS.find((one) => one === `SIG${name.replace(/^SIG/i, '').toUpperCase()}`);

/** Of a run that goes on: `USR1`, `sigusr1`, `10`; null: KILL, which is more than a signal to a job. */
export function parseRunSignal(field: string, value: string): RunSignal | null {
  const named = RUN_NUMBERS[value] ?? `SIG${value.toUpperCase().replace(/^SIG/, '')}`;
  const signal = [...RUN_SIGNALS, 'SIGKILL' as const].find((one) => one === named);
  if (signal === undefined)
    throw new NotAccepted(field, value, `${[...RUN_SIGNALS, 'SIGKILL'].join(', ')}, or the number of one`);
  return signal === 'SIGKILL' ? null : signal;
}

/** `USR1`, `sigusr1`, `SIGUSR1`. */
export function parseSignal(field: string, value: string): WarnSignal {
  const named = signalNamed(value);
  if (named === undefined) throw new NotAccepted(field, value, WARN_SIGNALS.join(', '));
  return named;
}

/** `B:USR2@30`, `TERM@120`, `10`: Slurm sends it 60 s before the limit if it is not said when. */
const signal: Reader = (asked, value, field) => {
  const [, name = '', seconds = '60'] = /^(?:[RB]+:)?(\w+)(?:@(\d+))?$/.exec(value) ?? [];
  const named = SIGNAL_NUMBERS[name] ?? signalNamed(name);
  if (!named)
    throw new NotAccepted(field, value, `[B:]SIGNAL[@SECONDS] with one of ${WARN_SIGNALS.join(', ')}`);
  asked.warnSignal = named;
  asked.warnS = Number(seconds);
};

/** `afterok:12:13,afterany:14`, `after:12+5` (minutes), `afterok:12?afterany:13`, `singleton`. */
const dependency: Reader = (asked, value, field) => {
  const accepted =
    'after, afterok, afternotok, afterany or aftercorr with jobs, such as afterok:12:13,afterany:14, or singleton';
  asked.needsAny = value.includes('?');
  asked.singleton = false;
  asked.needs = value.split(/[,?]/).flatMap((written): Need[] => {
    if (/^singleton$/i.test(written) && !asked.needsAny) {
      asked.singleton = true;
      return [];
    }
    return termsOf(field, written, accepted);
  });
};

const ELSEWHERE = 'placement within a machine cannot be chosen';
const OPERATORS = 'set by operators';

/** Of sbatch, srun and salloc. */
export const SLURM: readonly Option[] = [
  one('--account -A', text('project')),
  one('--array -a', array),
  one('--begin -b', time('begin')),
  one('--chdir -D', text('directory')),
  one('--clusters -M', text('clusters')),
  one('--comment', (asked, value) => {
    asked.environment.SLURM_JOB_COMMENT = value;
  }),
  one('--constraint -C', text('constraint')),
  one('--container', text('image')),
  one('--cpus-per-task -c', count('cpusPerTask')),
  one('--deadline', time('deadline')),
  one('--dependency -d', dependency),
  one('--error -e', text('error')),
  may('--exclusive', exclusive),
  one('--export', text('exports')),
  one('--gpus -G', (asked, value, field) => {
    asked.gpus = gpus(asked, field, value);
  }),
  one('--gpus-per-node', (asked, value, field) => {
    asked.resources.gpu = gpus(asked, field, value);
  }),
  one('--gpus-per-task', (asked, value, field) => {
    asked.gpusPerTask = gpus(asked, field, value);
  }),
  one('--gres', gres),
  flag('--help -h', yes('help')),
  flag('--hold -H', yes('hold')),
  one('--input -i', text('input')),
  one('--jobid', text('jobid')),
  one('--job-name -J', text('name')),
  one('--licenses -L', (asked, value, field) => {
    asked.licenses = parseLicenses(field, value);
  }),
  one('--mem', memory),
  one('--mem-per-cpu', memoryPerCpu),
  may('--nice', (asked, value, field) => {
    asked.boost = -Math.min(1000, whole(field, value || '100', 0));
  }),
  one('--nodes -N', nodes),
  one('--ntasks -n', count('ntasks')),
  one('--ntasks-per-node', count('ntasksPerNode')),
  // Older names of the same.
  one('--tasks', count('ntasks')),
  one('--tasks-per-node', count('ntasksPerNode')),
  flag(
    '--no-requeue',
    into('restartable', () => false),
  ),
  one(
    '--open-mode',
    into('append', (value) => value.startsWith('a')),
  ),
  one('--output -o', text('output')),
  flag('--parsable', yes('parsable')),
  one('--partition -p', text('partition')),
  flag('--pty', yes('pty')),
  flag('--quiet -Q', yes('quiet')),
  flag(
    '--requeue',
    into('restartable', () => true),
  ),
  one('--qos -q', (asked, value) => {
    // What jobs without a class are called.
    if (value === 'normal') delete asked.class;
    else asked.class = value;
  }),
  one('--reservation', text('reservation')),
  one('--signal', signal),
  one('--mail-type', into('mail', slurmMail)),
  one(
    '--switches',
    into('sameSwitch', (value, field) => parseSwitches(field, value)),
  ),
  flag('--test-only', yes('testOnly')),
  one(
    '--time -t',
    into('limitS', (value, field) =>
      /^(0|-1|unlimited|infinite)$/i.test(value) ? undefined : parseDuration(field, value, 'm'),
    ),
  ),
  flag('--version -V', yes('version')),
  flag('--wait -W', yes('wait')),
  one('--wrap', text('wrap')),

  // Known, and not honored.
  one('--acctg-freq', 'the site’s agent determines how usage is measured'),
  one('--bb', 'there are no burst buffers'),
  one('--bbf', 'there are no burst buffers'),
  one('--cluster-constraint', 'the service chooses from all its sites'),
  flag('--contiguous', ELSEWHERE),
  one('--core-spec -S', ELSEWHERE),
  one('--cores-per-socket', ELSEWHERE),
  one('--cpu-bind', ELSEWHERE),
  one('--cpu_bind', ELSEWHERE),
  one('--cpu-freq', ELSEWHERE),
  one('--cpus-per-gpu', 'use --cpus-per-task'),
  one('--delay-boot', 'machines are not booted for jobs'),
  one('--distribution -m', ELSEWHERE),
  one('--exclude -x', 'machines cannot be excluded'),
  one('--export-file', 'use --export'),
  one('--extra-node-info -B', ELSEWHERE),
  may('--get-user-env', 'a job starts with the environment that --export names'),
  one('--gid', 'jobs run under the account of their submitter'),
  one('--gpu-bind', ELSEWHERE),
  one('--gpu-freq', ELSEWHERE),
  one('--gres-flags', ELSEWHERE),
  one('--hint', ELSEWHERE),
  flag('--ignore-pbs', '#PBS lines are never read'),
  flag('--label -l', 'output is not labeled with the numbers of tasks'),
  may('--kill-on-bad-exit', 'a job ends when one of its tasks fails'),
  one('--kill-on-invalid-dep', 'a job whose dependency can no longer be satisfied is canceled'),
  one('--mail-user', 'an administrator sets the address'),
  one('--mcs-label', OPERATORS),
  one('--mem-bind', ELSEWHERE),
  one('--mem_bind', ELSEWHERE),
  one('--mem-per-gpu', 'use --mem'),
  one('--mincpus', 'use --cpus-per-task'),
  one('--mpi', 'launch with mpirun or mpiexec in the script'),
  one('--network', ELSEWHERE),
  may('--no-kill -k', 'a lost machine ends the run'),
  one('--nodefile -F', 'machines cannot be chosen by name'),
  one('--nodelist -w', 'machines cannot be chosen by name'),
  one('--ntasks-per-core', ELSEWHERE),
  one('--ntasks-per-gpu', 'use --ntasks'),
  one('--ntasks-per-socket', ELSEWHERE),
  flag('--overcommit -O', ELSEWHERE),
  flag('--overlap', ELSEWHERE),
  flag('--exact', ELSEWHERE),
  flag('--oversubscribe -s', ELSEWHERE),
  one('--power', OPERATORS),
  one('--prefer', 'features cannot be preferred; use --constraint'),
  one('--priority', OPERATORS),
  one('--profile', 'the site’s agent determines how usage is measured'),
  may('--propagate', 'the limits of the site apply'),
  flag('--reboot', 'machines are not booted for jobs'),
  one('--sockets-per-node', ELSEWHERE),
  flag('--spread-job', ELSEWHERE),
  one('--thread-spec', ELSEWHERE),
  one('--threads-per-core', ELSEWHERE),
  one('--time-min', 'use --time'),
  one('--tmp', 'the site limits disk space'),
  one('--tres-per-task', 'use --cpus-per-task and --gpus-per-task'),
  one('--uid', 'jobs run under the account of their submitter'),
  flag('--unbuffered -u', 'output is never buffered'),
  flag('--use-min-nodes', ELSEWHERE),
  flag('--verbose -v', 'there is no further output'),
  one('--wait-all-nodes', 'a job always starts when all its machines are ready'),
  one('--wckey', 'not supported; use --comment'),
  may('--x11', 'X11 forwarding is not supported'),
];

const IN_STEP: readonly Option[] = [
  flag('--exact', yes('stepExclusive')),
  may('--exclusive', yes('stepExclusive')),
  may(
    '--kill-on-bad-exit -K',
    into('killOnBadExit', (value) => value !== '0'),
  ),
  flag('--label -l', yes('label')),
  flag('--overcommit -O', () => undefined),
  flag(
    '--overlap',
    into('stepExclusive', () => false),
  ),
  flag('--oversubscribe -s', () => undefined),
  flag('--unbuffered -u', () => undefined),
];

/** Of srun in a job. */
export const SLURM_STEP: readonly Option[] = [
  ...IN_STEP,
  ...SLURM.filter(({ long }) => !IN_STEP.some((one) => one.long === long)),
];

/** `job_3`, `group_3`, `group:NAME`; several with commas. */
const needs =
  (condition: Need['condition']): Reader =>
  (asked, value, field) => {
    for (const written of value.split(',').filter(Boolean))
      asked.needs.push({ ...neededBy(field, written), condition });
  };

/** What one of `--after …` names. */
export function neededBy(field: string, written: string): Omit<Need, 'condition'> {
  const [, name] = /^group:(.+)$/.exec(written) ?? [];
  if (name !== undefined) return { group: name };
  if (/^group_\d+$/.test(written)) return { jobGroup: written };
  const [, number] = /^(?:job_)?(\d+)$/.exec(written) ?? [];
  if (number !== undefined) return { job: `job_${number}` };
  throw new NotAccepted(field, written, 'a job (job_3), a bulk group (group_3), or group:NAME');
}

const term =
  (name: keyof SiteTerms): Reader =>
  (asked, value) => {
    asked.siteTerms = { ...asked.siteTerms, [name]: value };
  };

/** Whose file (a job, a ref, `group:NAME`), and which. */
const READ_FROM = /^((?:group:)?[^:]+):(.+)$/;

/** `job_1:out.dat`; of a group by name, `group:sweep:out.dat`. */
export function parseReadFrom(field: string, value: string): { from: string; output: string } {
  const read = readFrom(value);
  if (read === null)
    throw new NotAccepted(field, value, 'JOB:PATH, a job or group and the path of a file that it keeps');
  return read;
}

/** The same; null: it says something else. */
export function readFrom(value: string): { from: string; output: string } | null {
  const [, from, output] = READ_FROM.exec(value) ?? [];
  return from === undefined || output === undefined ? null : { from, output };
}

/** `name=path` */
export function parseKeepDataset(
  field: string,
  value: string,
): { path: string; keep: 'DATASET'; dataset: string } {
  const [, dataset, path] = /^([^=]+)=(.+)$/.exec(value) ?? [];
  if (dataset === undefined || path === undefined)
    throw new NotAccepted(field, value, 'NAME=PATH, the name of the dataset and a path');
  return { path, keep: 'DATASET', dataset };
}

/** `path=url` */
export function parseUpload(field: string, value: string): { path: string; url: string } {
  const [, path, url] = /^([^=]+)=(.+)$/.exec(value) ?? [];
  if (path === undefined || url === undefined)
    throw new NotAccepted(field, value, 'PATH=URL, a path in the directory of the job and a URL');
  return { path, url };
}

/** A number from 0, and at most `max`. */
const amount = (
  key: 'benchmark' | 'computationShare' | 'sandboxMb' | 'outputMb',
  max = Number.POSITIVE_INFINITY,
): Reader => into(key, (value, field) => parseNumber(field, value, { min: 0, max }));
const lasting = (key: 'estimateS' | 'warnS' | 'simulatedRunS' | 'simulatedIoS' | 'limitS'): Reader =>
  into(key, (value, field) => parseDuration(field, value));
const retry =
  <K extends keyof WrittenRetry<never>>(
    key: K,
    parse: (value: string, field: string, before: WrittenRetry<never>[K]) => WrittenRetry<never>[K],
  ): Reader =>
  (asked, value, field) => {
    asked.retry[key] = parse(value, field, asked.retry[key]);
  };

/**
 * Of `switchyard submit`, as far as they may stand in a script: all that describe a job, but those that name sites and datasets, which the
 * service would have to be asked for, and `--ref`. Numbers alone count seconds. `--output` and `--error` are Slurm's.
 */
export const SWITCHYARD: readonly Option[] = [
  one('--account', term('account')),
  one('--all-alike', into('allAlike', parseLabelNames)),
  one('--after', needs('ANY')),
  one('--after-not-ok', needs('NOT_OK')),
  one('--after-ok', needs('OK')),
  one('--after-same', needs('CORRESPONDING')),
  one('--after-start', needs('START')),
  one('--application', text('application')),
  one('--arch', text('architecture')),
  one('--array', array),
  one('--begin', time('begin')),
  one('--benchmark', amount('benchmark')),
  one(
    '--boost',
    into('boost', (value, field) => parseNumber(field, value, { min: -1000, max: 1000, integer: true })),
  ),
  one('--constraint', text('constraint')),
  one('--cpus', count('cpusPerTask')),
  one('--deadline', time('deadline')),
  one('--dir', text('directory')),
  one('--env', (asked, value, field) => {
    const { name, value: said } = parseVariable(field, value);
    asked.environment[name] = said;
  }),
  one('--checkpoint', (asked, value) => {
    asked.checkpoint = { ...asked.checkpoint, path: value };
  }),
  one('--checkpoint-signal', (asked, value, field) => {
    asked.checkpoint = { path: '', ...asked.checkpoint, signal: parseSignal(field, value) };
  }),
  one('--class', (asked, value, field) => {
    // A number is the rank of a job without a class; names begin otherwise.
    if (/^[0-9]/.test(value))
      asked.preemptionClass = parseNumber(field, value, { min: 0, max: 9, integer: true });
    else asked.class = value;
  }),
  one('--computation-share', amount('computationShare', 1)),
  flag('--continue-on-failure', yes('continueOnFailure')),
  one('--devices', (asked, value, field) => {
    asked.devices.push(...parseRequests(field, value));
  }),
  one('--error', text('error')),
  one('--estimate', lasting('estimateS')),
  may('--exclusive', exclusive),
  one('--gpus', (asked, value, field) => {
    asked.resources.gpu = gpus(asked, field, value);
  }),
  one('--gres', gres),
  one('--group', text('group')),
  one(
    '--same-switch',
    into('sameSwitch', (value, field) => parseSameSwitch(field, value)),
  ),
  flag('--hold', yes('hold')),
  one('--image', text('image')),
  one('--input-from', (asked, value, field) => {
    asked.reads.push(parseReadFrom(field, value));
  }),
  one('--keep', (asked, value) => {
    asked.keep.push({ path: value });
  }),
  one('--keep-dataset', (asked, value, field) => {
    asked.keep.push(parseKeepDataset(field, value));
  }),
  one('--download', (asked, value) => {
    asked.downloads.push({ url: value });
  }),
  one('--upload', (asked, value, field) => {
    asked.uploads.push(parseUpload(field, value));
  }),
  one(
    '--kill-grace',
    into('killGraceS', (value, field) => parseDelay(field, value)),
  ),
  flag('--launch-once', yes('launchOnce')),
  one('--license', (asked, value, field) => {
    asked.licenses.push(...parseLicenses(field, value));
  }),
  one('--limit', lasting('limitS')),
  one('--mail', into('mail', mailKinds)),
  one('--mem', memory),
  one('--mem-per-cpu', memoryPerCpu),
  one('--memory-mb', memory),
  one('--name', text('name')),
  flag(
    '--no-restart',
    into('restartable', () => false),
  ),
  one(
    '--on-unmet',
    into('onUnmet', (value, field) => parseWord(field, value, ON_UNMET)),
  ),
  one('--os', text('os')),
  one('--output', text('output')),
  one('--output-mb', amount('outputMb')),
  one('--partition', term('partition')),
  one('--part', (asked, value, field) => {
    asked.parts.push(parsePart(field, value));
  }),
  one('--project', text('project')),
  one('--qos', term('qos')),
  one('--reservation', text('reservation')),
  one('--resource', (asked, value, field) => {
    for (const written of value.split(',')) {
      const { kind, amount } = parseAmount(field, written);
      asked.resources[kind] = amount;
    }
  }),
  one(
    '--retries',
    retry('maxRetries', (value, field) => whole(field, value, 0)),
  ),
  one(
    '--retry-backoff',
    retry('backoffS', (value, field) => parseDelay(field, value)),
  ),
  one(
    '--retry-factor',
    retry('factor', (value, field) => parseNumber(field, value, { min: 1 })),
  ),
  one(
    '--retry-max-backoff',
    retry('maxBackoffS', (value, field) => parseDelay(field, value)),
  ),
  one(
    '--retry-rule',
    retry('rules', (value, field, before = []) => [...before, retryRuleOf<never>(field, value, null)]),
  ),
  one('--sandbox-mb', amount('sandboxMb')),
  one(
    '--terminal',
    into('terminal', (value, field) => parseTerminal(field, value)),
  ),
  one('--simulated-io', lasting('simulatedIoS')),
  one('--simulated-run', lasting('simulatedRunS')),
  one('--tasks', count('tasks')),
  one(
    '--tasks-per-machine',
    into('tasksPerMachine', (value, field) => parseTasksPerMachine(field, value)),
  ),
  one('--time', lasting('limitS')),
  one('--warn', lasting('warnS')),
  one('--warn-signal', (asked, value, field) =>
    signal(asked, `${value}@${asked.warnS ?? 60}`, field, NOBODY),
  ),
];

const NOBODY: Circumstances = { nowMs: 0, note: () => undefined };

/** Options of a job that `--part` takes, without their hyphens. */
const OF_PARTS = [
  ...['tasks', 'cpus', 'mem', 'memory-mb', 'mem-per-cpu', 'tasks-per-machine', 'exclusive', 'all-alike'],
  ...['same-switch', 'gpus', 'gres', 'devices', 'resource', 'constraint'],
];
const PARTS = `${OF_PARTS.map((name) => (name === 'exclusive' ? name : `${name}=`)).join(', ')}, separated by commas; constraint= last`;

/** `tasks=4,cpus=2,gpus=1,constraint=gen >= 3`: a constraint may have commas of its own. */
export function parsePart(field: string, written: string): AskedPart {
  const asked = nothing();
  const [, said = '', constraint] = /^(.*?)(?:(?:^|,)\s*constraint=(.*))?$/s.exec(written) ?? [];
  if (constraint !== undefined) asked.constraint = constraint;
  for (const one of said === '' ? [] : said.split(',')) {
    const [, name = '', value = ''] = /^([^=]*)=?(.*)$/s.exec(one.trim()) ?? [];
    const known = SWITCHYARD.find(({ long }) => OF_PARTS.includes(name) && long === `--${name}`);
    if (known === undefined || typeof known.read === 'string' || (value === '' && known.value === 'ONE'))
      throw new NotAccepted(field, one, PARTS);
    known.read(asked, value, known.long, TIMELESS);
  }
  return partOf(asked);
}
const TIMELESS: Circumstances = { nowMs: 0, note: () => undefined };

/** Options of Slurm that each component of a heterogeneous job has of its own; all others are of the job. */
const OF_COMPONENTS = [
  ...['--ntasks', '--nodes', '--ntasks-per-node', '--cpus-per-task', '--mem', '--mem-per-cpu'],
  ...['--gres', '--gpus', '--gpus-per-node', '--gpus-per-task', '--constraint', '--exclusive'],
  '--switches',
];

/** The same of a component behind the first. */
export function readComponent(
  asked: Asked,
  component: Asked,
  options: Taken['options'],
  at: Circumstances,
): string[] {
  const isOwn = ({ option }: Taken['options'][number]): boolean => OF_COMPONENTS.includes(option.long);
  return [
    ...readOptions(component, options.filter(isOwn), at),
    ...readOptions(
      asked,
      options.filter((one) => !isOwn(one)),
      at,
    ),
  ];
}

/** Fills in what the options ask for. Gives those that are not honored, each once, as `--name: why`. */
export function readOptions(asked: Asked, options: Taken['options'], at: Circumstances): string[] {
  const unheeded = new Set<string>();
  for (const { option, value } of options) {
    if (typeof option.read === 'string') unheeded.add(`${option.long}: ${option.read}`);
    else option.read(asked, value, option.long, at);
  }
  return [...unheeded];
}
