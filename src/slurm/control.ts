/** scancel, scontrol, and the commands of accounts. */
import { writeFileSync } from 'node:fs';
import { ACTIVE_STATES } from '../client/states.gql.js';
import { programEnvironment } from '../platform/connection.js';
import { DEFAULT_LIMITS } from '../platform/limits.js';
import {
  commandLine,
  jobOf,
  nothing,
  parseRunSignal,
  readOptions,
  SLURM,
  takeOptions,
} from '../words/index.js';
import { ask, SlurmError } from './ask.js';
import { allClusters, clustersAsked, OWN } from './clusters.js';
import { complain, given, print, type Run } from './command.js';
import {
  type JobChangesInput,
  type RunSignal,
  type SignalJobsInput,
  type SignalReceivers,
  SlurmCancelDocument,
  SlurmChangeDocument,
  SlurmCommandsDocument,
  SlurmHoldDocument,
  SlurmHoldsDocument,
  type SlurmHoldsQuery,
  SlurmLicensesDocument,
  SlurmReleaseDocument,
  SlurmRequeueDocument,
  SlurmSignalDocument,
  SlurmViewerDocument,
  type UpdateJobsInput,
} from './documents.gql.js';
import type { Column } from './fields.js';
import {
  clock,
  findJobs,
  hasEnded,
  type Job,
  localTime,
  namedJobs,
  nodesOf,
  numberOf,
  placeOf,
  slurmState,
  stateOf,
} from './jobs.js';
import { OPTIONS } from './options.js';
import {
  allSites,
  cpusTaken,
  expanded,
  isCalled,
  isInOne,
  type Machine,
  memoryTaken,
  type Partition,
  partitionsOf,
  SITES_PAGE,
} from './partitions.js';
import { described, printAccounts } from './queue.js';
import { gresOf, gresUsedOf, maxTime, nodeState, upOrDown } from './sinfo.js';

type Hold = SlurmHoldsQuery['holds']['nodes'][number];

/** What one action changes at most. */
const BATCH = 10_000;
/** With their scripts: as many in a page as one request may cost, and as are answered soon. */
const COMMANDS_PAGE = 300;

async function change(
  document:
    | typeof SlurmCancelDocument
    | typeof SlurmHoldDocument
    | typeof SlurmReleaseDocument
    | typeof SlurmRequeueDocument
    | typeof SlurmSignalDocument
    | typeof SlurmChangeDocument,
  jobs: readonly Job[],
  name: string,
  input?: Omit<UpdateJobsInput | SignalJobsInput, 'selection'>,
): Promise<number> {
  let code = 0;
  for (let at = 0; at < jobs.length; at += BATCH) {
    const ids = jobs.slice(at, at + BATCH).map(({ id }) => id);
    const selection = { ids };
    const variables = input ? { input: { ...input, selection } } : { selection };
    const answer = Object.values(await ask<object, object>(document as never, variables))[0] as {
      unchanged: { id: string; code: string; message: string }[];
    };
    for (const { id, code: why, message } of answer.unchanged) {
      // It has ended since it was looked up.
      if (document === SlurmCancelDocument && why === 'CONFLICT') continue;
      complain(name, `${message} for job ${id.replace('job_', '')}`);
      code ||= 1;
    }
  }
  return code;
}

export const scancel: Run = async (words, name) => {
  const options = given(name, words, OPTIONS.scancel);
  const asked = options.get('--signal');
  const signal = asked === undefined ? null : parseRunSignal('--signal', asked);
  const named = options.operands.length > 0;
  const filters = [
    ...[
      '--account',
      '--jobname',
      '--me',
      '--name',
      '--nodelist',
      '--partition',
      '--qos',
      '--state',
      '--user',
    ],
  ].filter((option) => options.has(option));
  if (!named && filters.length === 0) throw new SlurmError('No job identification provided');
  const { jobs, user, unknown } = named
    ? await namedJobs(options.operands, { full: options.has('--nodelist') })
    : { ...(await findJobs({ states: ACTIVE_STATES }, { full: options.has('--nodelist') })), unknown: [] };
  const users = options.has('--me')
    ? [user]
    : options.list('--user').map((one) => (one === programEnvironment().USER ? user : one));
  const names = [...options.list('--name'), ...options.list('--jobname')];
  const states = options.list('--state').map((text) => stateOf(text));
  const [partitions, accounts] = [options.list('--partition'), options.list('--account')];
  const clusters = await clustersAsked(options.list('--clusters'));
  const [classes, nodes] = [options.list('--qos'), options.list('--nodelist').flatMap(expanded)];
  const wanted = jobs.filter(
    (job) =>
      !hasEnded(job) &&
      (users.length === 0 || users.includes(job.user.name)) &&
      (names.length === 0 || names.includes(job.name ?? job.application)) &&
      (states.length === 0 || states.includes(slurmState(job))) &&
      (accounts.length === 0 || accounts.includes(job.project ?? 'default')) &&
      (partitions.length === 0 || isInOne(job, partitions)) &&
      (clusters === null || clusters.names.includes(clusters.of(job))) &&
      (classes.length === 0 || classes.includes(job.class ?? 'normal')) &&
      (nodes.length === 0 || nodesOf(job).some((node) => nodes.includes(node))),
  );
  // What is not there needs no cancel: Slurm's says so only with -v, and ends with 0.
  const isFault = signal !== null && unknown.length > 0 && !options.has('--quiet');
  if (isFault || options.has('--verbose'))
    for (const text of unknown) complain(name, `Kill job error on job id ${text}: Invalid job id specified`);
  // Of those that only match, the ones that do not run are no fault.
  const code =
    signal === null
      ? await change(SlurmCancelDocument, wanted, name)
      : await send(
          signal,
          named ? wanted : wanted.filter(({ state }) => state === 'RUNNING'),
          options.has('--full') ? 'ALL' : options.has('--batch') ? 'COMMAND' : null,
          name,
        );
  return isFault ? 1 : code;
};

/**
 * Sends a signal. `to` null: as Slurm does, to the steps of jobs that are batch scripts, not to these; to all processes of others, which are steps
 * themselves.
 */
async function send(
  signal: RunSignal,
  jobs: readonly Job[],
  to: SignalReceivers | null,
  name: string,
): Promise<number> {
  if (to !== null) return change(SlurmSignalDocument, jobs, name, { signal, to });
  const scripts = new Set<string>();
  for (let at = 0; at < jobs.length; at += COMMANDS_PAGE) {
    const ids = jobs.slice(at, at + COMMANDS_PAGE).map(({ id }) => id);
    const { jobs: found } = await ask(SlurmCommandsDocument, { ids, first: ids.length });
    for (const { id, arguments: words } of found.nodes)
      if (words.some((word) => word.startsWith('#!'))) scripts.add(id);
  }
  const [batch, steps] = [true, false].map((is) => jobs.filter(({ id }) => scripts.has(id) === is));
  return Math.max(
    await change(SlurmSignalDocument, batch!, name, { signal, to: 'OTHERS' }),
    await change(SlurmSignalDocument, steps!, name, { signal, to: 'ALL' }),
  );
}

async function allHolds(): Promise<Hold[]> {
  const all: Hold[] = [];
  for (let after: string | null = null; ; ) {
    const { holds }: SlurmHoldsQuery = await ask(SlurmHoldsDocument, { first: SITES_PAGE, after });
    all.push(...holds.nodes);
    if (!holds.pageInfo.hasNextPage) return all;
    after = holds.pageInfo.endCursor;
  }
}

/** Maintenance windows and reservations, as Slurm shows its reservations: each with its next time. */
function holdLines({ id, name, kind, site, wholeSite, user, machines, shared, times }: Hold): string[] {
  const [next] = times;
  const held = wholeSite
    ? site.machines.map((machine) => ({ machine, cpus: machine.cpus }))
    : machines.map(({ machine, cpus }) => ({ machine, cpus: cpus ?? machine.cpus }));
  const flags = [
    ...(kind === 'MAINTENANCE' ? ['MAINT'] : []),
    // Of licenses alone, as Slurm has it.
    wholeSite ? 'ALL_NODES' : machines.length > 0 ? 'SPEC_NODES' : 'ANY_NODES',
  ];
  const active = next !== undefined && Date.parse(next.from) <= Date.now();
  const lasts = next?.to ? (Date.parse(next.to) - Date.parse(next.from)) / 1000 : null;
  const cores = held.reduce((all, { cpus }) => all + cpus, 0);
  // Slurm counts no devices of whole nodes here either.
  const counts = new Map([['cpu', cores]]);
  const add = (tres: string, amount: number) => counts.set(tres, (counts.get(tres) ?? 0) + amount);
  for (const { kind, amount } of machines.flatMap(({ resources }) => resources)) add(`gres/${kind}`, amount);
  for (const { kind, amount } of shared) add(`license/${kind}`, amount);
  const licenses = shared.map(({ kind, amount }) => `${kind}:${amount}`);
  const tres = [...counts].filter(([, amount]) => amount > 0).map(([of, amount]) => `${of}=${amount}`);
  return [
    `ReservationName=${name ?? id} StartTime=${localTime(next?.from ?? null, 'N/A')} EndTime=${localTime(next?.to ?? null, 'N/A')} Duration=${lasts === null ? 'UNLIMITED' : clock(lasts)}`,
    `Nodes=${held.map(({ machine }) => machine.name).join(',') || '(null)'} NodeCnt=${held.length} CoreCnt=${cores} Features=(null) PartitionName=${site.name} Flags=${flags.join(',')}`,
    `TRES=${tres.join(',') || '(null)'}`,
    `Users=${user?.name ?? '(null)'} Accounts=(null) Licenses=${licenses.join(',') || '(null)'} State=${active ? 'ACTIVE' : 'INACTIVE'}`,
  ];
}

const CONFIG: Readonly<Record<string, string | number>> = {
  ClusterName: OWN,
  MaxArraySize: DEFAULT_LIMITS.jobsMax,
  MaxJobCount: 250_000,
  MessageTimeout: '10 sec',
  MinJobAge: '300 sec',
  SelectType: 'select/cons_tres',
  SlurmctldHost: OWN,
  SLURM_VERSION: '23.11.0',
};

export const scontrol: Run = async (words, name) => {
  const options = given(name, words, OPTIONS.scontrol);
  const [verb = '', what = '', ...rest] = options.operands;
  if ('show'.startsWith(verb) && verb.length > 1) return show(what, rest, options.has('--oneliner'), name);
  const targets = [what, ...rest]
    .flatMap((one) => one.replace(/^(jobid|job)=/i, '').split(/\s+/))
    .filter((one) => !/^job$/i.test(one));
  if (['hold', 'uhold', 'release', 'requeue'].includes(verb)) {
    const { jobs, unknown } = await namedJobs(targets);
    for (const text of unknown) complain(name, `Invalid job id specified for job ${text}`);
    if (verb === 'requeue')
      return (await change(SlurmRequeueDocument, jobs, name)) || Math.min(1, unknown.length);
    // A job that is as it is to be is no fault.
    const code = await change(
      verb === 'release' ? SlurmReleaseDocument : SlurmHoldDocument,
      jobs.filter((job) => !hasEnded(job) && (job.state === 'HELD') === (verb === 'release')),
      name,
    );
    return unknown.length > 0 ? 1 : code;
  }
  if (verb === 'ping') {
    await ask(SlurmViewerDocument, {});
    print('Slurmctld(primary) at switchyard is UP');
    return 0;
  }
  if (verb === 'update') return update([what, ...rest], name);
  if (verb === 'write') return write(what, rest, name);
  throw new SlurmError(
    `invalid keyword: ${verb}; accepted: show, hold, release, requeue, update, write, ping`,
  );
};

/** `write batch_script JOB [FILE]`: a job's script as submitted, by default into slurm-JOB.sh; `-`: printed. Source: scontrol(1). */
async function write(what: string, [target = '', file]: readonly string[], name: string): Promise<number> {
  if (what !== 'batch_script')
    throw new SlurmError(`invalid entity: ${what} for keyword: write; accepted: batch_script`);
  const [job] = (await namedJobs([target])).jobs;
  const { jobs: found } = job
    ? await ask(SlurmCommandsDocument, { ids: [job.id], first: 1 })
    : { jobs: { nodes: [] } };
  const script = found.nodes[0] && commandLine(found.nodes[0]).script;
  if (!job || !script) {
    complain(
      name,
      `job script retrieval failed: ${job ? 'it has no batch script' : 'Invalid job id specified'}`,
    );
    return 1;
  }
  if (file === '-') {
    print(script.replace(/\n$/, ''));
    return 0;
  }
  const path = file ?? `slurm-${job.id.replace('job_', '')}.sh`;
  writeFileSync(path, script.endsWith('\n') ? script : `${script}\n`);
  print(`batch script for job ${job.id.replace('job_', '')} written to "${path}"`);
  return 0;
}

/** Fields of `scontrol update job`, each with the option of sbatch that says the same. Source: scontrol(1). */
const UPDATED: Readonly<Record<string, string>> = {
  ...{
    account: '--account',
    cpuspertask: '--cpus-per-task',
    deadline: '--deadline',
    dependency: '--dependency',
  },
  ...{ features: '--constraint', gres: '--gres', jobname: '--job-name', licenses: '--licenses' },
  ...{ mailtype: '--mail-type', mincpusnode: '--cpus-per-task', minmemorycpu: '--mem-per-cpu' },
  ...{ minmemorynode: '--mem', name: '--job-name', nice: '--nice', numcpus: '--ntasks', numnodes: '--nodes' },
  ...{ numtasks: '--ntasks', starttime: '--begin', switches: '--switches', timelimit: '--time' },
  qos: '--qos',
  trespernode: '--gres',
};

/** `JobId=12 TimeLimit=2:00:00 Name=x`, `job 12 Nice=100`. */
async function update(words: readonly string[], name: string): Promise<number> {
  const fields = words.map((word): [field: string, value: string] => {
    const [, field, value = ''] = /^([^=]+?)(?:=(.*))?$/s.exec(word) ?? [];
    return [field?.toLowerCase() ?? '', value];
  });
  const isTarget = ([field]: readonly [string, string]): boolean => /^(job(id)?|\d[\d,_[\]-]*)$/.test(field);
  const targets = fields
    .filter(isTarget)
    .flatMap(([field, value]) => (value === '' ? [field] : value.split(',')));
  const { jobs, unknown } = await namedJobs(targets.filter((one) => /\d/.test(one)));
  const asked = fields.filter((one) => !isTarget(one));
  if (targets.length === 0) throw new SlurmError('update: no job specified; accepted: JobId=12');
  if (asked.length === 0) throw new SlurmError('update: nothing to change');
  for (const text of unknown) complain(name, `Invalid job id specified for job ${text}`);
  const throttles = asked.filter(([field]) => field === THROTTLE);
  const others = asked.filter(([field]) => field !== THROTTLE);
  const changes = others.length > 0 && changesOf(others);
  let code = unknown.length > 0 ? 1 : 0;
  for (const [, value] of throttles) code = Math.max(code, await throttle(jobs, value, name));
  if (changes) code = Math.max(code, await change(SlurmChangeDocument, jobs, name, { set: changes }));
  return code;
}

const THROTTLE = 'arraytaskthrottle';

/** How many elements of an array run at once; an element stands for its array. */
async function throttle(jobs: readonly Job[], value: string, name: string): Promise<number> {
  if (!/^\d{1,9}$/.test(value))
    throw new SlurmError(
      `update: ${THROTTLE}: "${value}" is not accepted; accepted: a number, 0 for no limit`,
    );
  const arrays = new Map<string, number>();
  for (const job of jobs) {
    const place = placeOf(job);
    if (place) arrays.set(place.groupName, place.first);
    // Slurm's takes no notice.
    else complain(name, `warning: job ${numberOf(job.id)} is not an array: it has no ${THROTTLE}`);
  }
  let code = 0;
  for (const [groupName, number] of arrays) {
    const { jobs: elements } = await findJobs({ groupName, states: ACTIVE_STATES });
    if (elements.length > 0) {
      const set = { atOnce: Number(value) };
      code = Math.max(code, await change(SlurmChangeDocument, elements, name, { set }));
    } else {
      complain(name, `Job has already finished for job ${number}`);
      code ||= 1;
    }
  }
  return code;
}

/** Whether its nodes are shared with others, as Slurm writes it. */
function exclusiveOf(value: string): JobChangesInput['exclusive'] {
  const known = { ok: null, yes: null, no: 'MACHINE', user: 'USER' } as const;
  const exclusive = known[value.toLowerCase() as keyof typeof known];
  if (exclusive === undefined)
    throw new SlurmError(`update: oversubscribe: "${value}" is not accepted; accepted: yes, no, user`);
  return exclusive;
}

const isGres = (field: string): boolean => UPDATED[field] === '--gres';

function changesOf(fields: readonly (readonly [field: string, value: string])[]): JobChangesInput {
  const cleared: { -readonly [K in keyof JobChangesInput]: JobChangesInput[K] } = {};
  const options = fields.flatMap(([field, value]) => {
    if (field === 'dependency' && value === '') cleared.needs = [];
    // What jobs without a class are called.
    else if (field === 'qos' && /^(normal)?$/i.test(value)) cleared.class = null;
    else if (isGres(field) && /^(none)?$/i.test(value)) cleared.resourcesPerTask = [];
    else if (field === 'timelimit' && /^(0|-1|unlimited|infinite)$/i.test(value))
      cleared.runTimeLimitS = null;
    else if (field === 'requeue') cleared.restartable = value !== '0';
    else if (field === 'oversubscribe' || field === 'shared') cleared.exclusive = exclusiveOf(value);
    else {
      const option = UPDATED[field];
      if (option === undefined)
        throw new SlurmError(
          `update: ${field} cannot be changed here; accepted: ${[...Object.keys(UPDATED), THROTTLE, 'oversubscribe', 'requeue'].sort().join(', ')}`,
        );
      return [`${option}=${value}`];
    }
    return [];
  });
  const asked = nothing();
  readOptions(asked, takeOptions(options, SLURM).options, { nowMs: Date.now(), note: () => undefined });
  // The service knows how many CPUs each job has.
  const { memoryMbPerCpu, ...others } = asked;
  // Where its processes are launched was decided when it was submitted.
  const { launch: _, ...changes } = jobOf(others);
  return {
    // All generic resources of a job are in one field, whether they are amounts or devices.
    ...(fields.some(([field]) => isGres(field)) && { resourcesPerTask: [], devicesPerTask: [] }),
    ...changes,
    ...(memoryMbPerCpu !== undefined && { memoryMbPerCpu }),
    ...cleared,
  };
}

async function show(
  what: string,
  rest: readonly string[],
  isOneLine: boolean,
  name: string,
): Promise<number> {
  const [kind = '', written] = what.split('=');
  const names = [...(written === undefined ? [] : [written]), ...rest];
  const isA = (word: string): boolean =>
    kind !== '' && word.startsWith(kind.toLowerCase().replace(/(id|name|s)$/, ''));
  if (kind.startsWith('hostn')) {
    print(expanded(names.join(',') || (programEnvironment().SLURM_JOB_NODELIST ?? '')).join('\n'));
    return 0;
  }
  if (isA('job')) return showJobs(names, isOneLine, name);
  if (kind.startsWith('conf')) {
    print(
      `Configuration data as of ${new Date().toISOString().slice(0, 19)}\n${Object.entries(CONFIG)
        .map(([key, value]) => `${key.padEnd(24)}= ${value}`)
        .join('\n')}`,
    );
    return 0;
  }
  const among = <T extends { name: string }>(all: readonly T[], noun: string): T[] => {
    const found =
      names.length === 0
        ? [...all]
        : all.filter((one) => names.some((text) => text.split(',').includes(one.name)));
    if (found.length === 0 && names.length > 0) throw new SlurmError(`${noun} ${names.join(',')} not found`);
    return found;
  };
  const join = (lines: readonly string[]): string =>
    isOneLine ? lines.join(' ') : `${lines.join('\n   ')}\n`;
  if (isA('reservation')) {
    const holds = (await allHolds()).map((hold) => ({ ...hold, name: hold.name ?? hold.id }));
    if (holds.length === 0) print('No reservations in the system');
    for (const hold of among(holds, 'Reservation')) print(join(holdLines(hold)));
    return 0;
  }
  if (isA('license')) {
    const pools = (await ask(SlurmLicensesDocument, {})).licenses.nodes.map((pool) => ({
      ...pool,
      name: pool.kind,
    }));
    if (pools.length === 0) print('No licenses configured in Slurm.');
    for (const { name, copies, inUse } of among(pools, 'License'))
      print(
        join([
          `LicenseName=${name}`,
          `Total=${copies} Used=${inUse} Free=${Math.max(0, copies - inUse)} Reserved=0 Remote=no`,
        ]),
      );
    return 0;
  }
  if (isA('partition')) {
    // By its own name, too, where it has one.
    const all = partitionsOf(await allSites()).map((one) => {
      const called = names.flatMap((text) => text.split(',')).find((text) => isCalled(one, text));
      return { ...one, partition: one, name: called ?? one.name };
    });
    for (const { partition } of among(all, 'Partition')) print(join(partitionLines(partition)));
    return 0;
  }
  if (isA('node')) {
    const machines = (await allSites()).flatMap((site) => site.machines);
    for (const machine of among(machines, 'Node')) print(join(nodeLines(machine)));
    return 0;
  }
  throw new SlurmError(
    `invalid entity: ${what} for keyword: show; accepted: job, node, partition, reservation, license, config, hostnames`,
  );
}

const partitionLines = (partition: Partition): string[] => [
  `PartitionName=${partition.name}`,
  `AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL`,
  `Default=${partition.isDefault ? 'YES' : 'NO'} QoS=N/A MaxTime=${maxTime(partition, 'UNLIMITED')} DefaultTime=${partition.defaultS === null ? 'NONE' : clock(partition.defaultS, true)} MaxNodes=UNLIMITED`,
  `Nodes=${partition.machines.map((machine) => machine.name).join(',')}`,
  `State=${upOrDown(partition)} TotalCPUs=${partition.machines.reduce((sum, { cpus }) => sum + cpus, 0)} TotalNodes=${partition.machines.length} SelectTypeParameters=NONE`,
];
const nodeLines = (machine: Machine): string[] => [
  `NodeName=${machine.name} Arch=${machine.architecture}`,
  `CPUAlloc=${cpusTaken(machine)} CPUTot=${machine.cpus} CPULoad=N/A`,
  `Gres=${gresOf([machine])}`,
  `GresUsed=${gresUsedOf([machine])}`,
  `NodeAddr=${machine.name} NodeHostName=${machine.name} OS=${machine.os}`,
  `RealMemory=${machine.memoryMb} AllocMem=${memoryTaken(machine)} FreeMem=N/A Sockets=1 Boards=1`,
  `State=${nodeState(machine).toUpperCase()} ThreadsPerCore=1`,
  ...(machine.reason === null && machine.problem === null
    ? []
    : [`Reason=${(machine.reason ?? machine.problem ?? '').replaceAll(/\s+/g, ' ')}`]),
];

async function showJobs(names: readonly string[], isOneLine: boolean, name: string): Promise<number> {
  const { jobs, unknown } =
    names.length > 0
      ? await namedJobs(names, { full: true })
      : { ...(await findJobs({ states: ACTIVE_STATES }, { full: true })), unknown: [] };
  if (jobs.length === 0 && unknown.length === 0) print('No jobs in the system');
  for (const job of jobs) print(described(job, Date.now(), isOneLine));
  if (unknown.length > 0) complain(name, 'Invalid job id specified');
  return unknown.length > 0 ? 1 : 0;
}

/** The one account that there is, and whoever asks in it. */
const accounts: Run = async (words, name) => {
  // sshare writes -h for --noheader.
  const options = given(
    name,
    words.map((word) => (name === 'sshare' && word === '-h' ? '-n' : word)),
    OPTIONS.accounts,
  );
  const [verb = '', what = '', ...conditions] = options.operands;
  if (name === 'sacctmgr' && !/^(show|list)$/.test(verb))
    throw new SlurmError(`${verb}: accounts cannot be changed here; accepted: show, list`);
  const { viewer, jobClasses } = await ask(SlurmViewerDocument, {});
  const format =
    options.get('--format') ??
    options.get('--Format') ??
    conditions.find((one) => /^format=/i.test(one))?.slice(7);
  const byDefault: Readonly<Record<string, string>> = {
    sshare: 'account,user,rawshares,normshares,rawusage,effectvusage,fairshare',
    sreport: 'cluster,account,login,used',
  };
  const fallback =
    byDefault[name] ??
    (/^qos$/i.test(what)
      ? 'name,priority,gracetime,preemptmode'
      : /^(cluster|account)s?$/i.test(what)
        ? 'name'
        : 'cluster,account,user,partition,qos');
  const columns = (format || fallback).split(',').map((part): Column => {
    const [, field = part, width] = /^(\w+)(?:%-?(\d+))?$/.exec(part) ?? [];
    return { field: field.toLowerCase(), title: field, width: Number(width ?? 10), right: true, after: ' ' };
  });
  const user = programEnvironment().USER ?? viewer.name;
  const values: Readonly<Record<string, string | number>> = {
    ...{
      account: 'default',
      cluster: OWN,
      user,
      login: user,
      qos: 'normal',
      defaultaccount: 'default',
      defaultqos: 'normal',
      partition: '',
      adminlevel: 'None',
    },
    ...{
      name: 'default',
      rawshares: viewer.quotaShare,
      share: viewer.quotaShare,
    },
  };
  // QOS are the classes of jobs, and that of jobs without one.
  const classes = jobClasses.map(({ name: of, rank, graceS, exemptS, onPreemption }) => ({
    ...{ name: of, priority: Math.max(0, rank), gracetime: clock(graceS) },
    ...{ preemptexempttime: clock(exemptS), preemptmode: onPreemption.toLowerCase() },
  }));
  const rows = /^qos/i.test(what)
    ? [{ name: 'normal', priority: 0 }, ...classes]
    : /^cluster/i.test(what)
      ? (await allClusters()).map((of) => ({ name: of, cluster: of }))
      : [{}];
  const asked = [options.list('--user'), options.list('--accounts')] as const;
  const isAsked =
    (asked[0].length === 0 || asked[0].some((one) => [user, viewer.name].includes(one))) &&
    (asked[1].length === 0 || asked[1].includes('default'));
  printAccounts(
    options,
    columns,
    (isAsked ? rows : []).map((row) => {
      const known: Readonly<Record<string, string | number>> = { ...values, ...row };
      return ({ field }: Column) => String(known[field] ?? (/^(sacctmgr)$/.test(name) ? '' : 'N/A'));
    }),
  );
  return 0;
};

export { accounts as sacctmgr, accounts as sreport, accounts as sshare };
