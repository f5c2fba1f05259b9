/** Slurm (20.11 and later) by its commands. */
import { execFile } from 'node:child_process';
import { userInfo } from 'node:os';
import { type Account, type Environment, LoginEnvironment } from './login.js';
import {
  type AskedTasks,
  type Capacity,
  type LocalJob,
  type LocalLicense,
  type LocalName,
  type LocalNode,
  type LocalPartition,
  type LocalScheduler,
  type LocalUse,
  nameKey,
  RefusedError,
  type Submission,
  type WaitingJob,
} from './scheduler.js';
import {
  devicesByNode,
  devicesIn,
  finite,
  gresOf,
  isRefusal,
  jobOf,
  labelsIn,
  licensesOf,
  OWN,
  PARTITIONS_MS,
  PARTS,
  PROLOGUE,
  partitionsIn,
  problemOf,
  spreadOf,
  switchesOf,
  TASKS,
  tasksOnNode,
  wholeJobs,
} from './slurm-words.js';

export interface SlurmOptions {
  /** Partitions, separated by commas; null: the default one. */
  partition: string | null;
  account: string | null;
  /** Further words for each sbatch. */
  options: readonly string[];
  /** Jobs are those of other accounts, too: the words before a command that make it one of an account's. */
  become?: ((account: string) => readonly string[]) | null;
  /** Whose login the environment of jobs is, where they are of the agent's account: this one, unless said otherwise. */
  login?: Account;
  /** Where its programs and its configuration are found; others do not get in. */
  environment: Readonly<Record<string, string>>;
}

/** Longer than Slurm's own patience (MessageTimeout, 10 s). */
const CALL_MS = 30_000;
const OUTPUT_BYTES = 256 << 20;
/** Names in one question: a command line has an end. */
const NAMES_MAX = 500;
/** The configuration is asked for so often. */
const CONFIG_MS = 3_600_000;
/** What waits of anybody is listed with our jobs so often; it counts as capacity for so long. */
const QUEUE_MS = 7_500;
const QUEUE_AGE_MS = 15_000;

export class Slurm implements LocalScheduler {
  readonly label = 'Slurm';
  readonly prologue = PROLOGUE;
  readonly tasks = TASKS;
  readonly parts = PARTS;
  /** By partition: the longest time limit, minutes; Infinity: none. */
  private longest = new Map<string, number>();
  private byDefault: string | null = null;
  private partitions: readonly LocalPartition[] = [];
  private partitionsUntilMs = Number.NEGATIVE_INFINITY;
  /** As it was listed last. */
  private queue: { waiting: WaitingJob[]; atMs: number } | null = null;
  private config: {
    elementsMax: number;
    takesParts: boolean;
    measures: boolean;
    untilMs: number;
  } | null = null;
  /** What Slurm counts. */
  private licenses: readonly LocalLicense[] = [];
  private licensesUntilMs = 0;
  /** Of the site, by name. */
  private nodeNames: readonly string[] = [];

  private readonly login: LoginEnvironment;

  readonly hasAccounts: boolean;

  constructor(private readonly options: SlurmOptions) {
    this.login = new LoginEnvironment(options.login ?? userInfo());
    this.hasAccounts = options.become != null;
  }

  async submit(job: Submission): Promise<string[]> {
    // Of other accounts each job's node finds it.
    const login = job.user === null ? await this.login.get() : null;
    const components = job.parts ?? [job];
    const words = components.flatMap((tasks, at) =>
      (at === 0 ? [] : [':']).concat(this.words(job, tasks, at), `--export=${login ? 'ALL' : 'NONE'}`),
    );
    words.unshift('--parsable');
    words.push(job.script);
    let answer: string;
    try {
      answer = login
        ? await this.call('sbatch', words, 'sbatch', this.passing(login))
        : await this.callAs(job.user, 'sbatch', words);
    } catch (error) {
      const { message } = error as Error;
      if (error instanceof CallError && error.exitCode === 1 && isRefusal(message))
        throw new RefusedError(message);
      throw error;
    }
    const id = /^(\d+)(;|$)/m.exec(answer)?.[1];
    if (id === undefined) throw new Error(`sbatch: unexpected output: ${answer.slice(0, 200)}`);
    return job.elements === null ? [id] : Array.from({ length: job.elements }, (_, i) => `${id}_${i}`);
  }

  /** Of one component, the leader if `at` is 0: Slurm passes none of them on to the others. */
  private words(job: Submission, tasks: AskedTasks, at: number): string[] {
    const { options } = this.options;
    const partition = job.partition ?? this.options.partition;
    const account = job.account ?? this.options.account;
    const minutes = job.timeLimitS === null ? this.longestIn(partition) : Math.ceil(job.timeLimitS / 60);
    return [
      `--job-name=${job.name}`,
      `--comment=${job.comment}`,
      ...(job.elements === null ? [] : [`--array=0-${job.elements - 1}`]),
      // A second start under the same id would be another run.
      ...['--no-requeue', '--open-mode=append'],
      `--chdir=${job.directory}`,
      ...[`--output=${job.directory}/scheduler`, `--error=${job.directory}/scheduler`],
      ...[`--ntasks=${tasks.tasks}`, `--cpus-per-task=${tasks.cpusPerTask}`],
      ...(tasks.memoryMbPerTask > 0
        ? [`--mem-per-cpu=${Math.ceil(tasks.memoryMbPerTask / tasks.cpusPerTask)}`]
        : []),
      ...spreadWords(tasks),
      ...(tasks.exclusive === null ? [] : [tasks.exclusive === 'USER' ? '--exclusive=user' : '--exclusive']),
      ...(tasks.sameSwitch === null ? [] : [`--switches=${switchesOf(tasks.sameSwitch)}`]),
      ...devicesOf(tasks),
      ...(at === 0 ? this.licensesOf(job) : []),
      ...this.excluded(tasks),
      ...(minutes === null ? [] : [`--time=${minutes}`]),
      ...(partition === null ? [] : [`--partition=${partition}`]),
      ...(account === null ? [] : [`--account=${account}`]),
      ...(job.qos === null ? [] : [`--qos=${job.qos}`]),
      ...options,
    ];
  }

  async find(names: readonly string[], sinceMs: number): Promise<LocalJob[]> {
    const found: LocalJob[] = [];
    for (let at = 0; at < names.length; at += NAMES_MAX) {
      const some = names.slice(at, at + NAMES_MAX).join(',');
      const queued = jobsOf(await this.call('squeue', [...QUEUE, `--name=${some}`]));
      found.push(...queued);
      const known = new Set(queued.map(({ name }) => name));
      const gone = names.slice(at, at + NAMES_MAX).filter((name) => !known.has(name));
      if (gone.length > 0) found.push(...(await this.books(gone, sinceMs)));
    }
    return found;
  }

  /** What accounting has of jobs that have left the queue. It is late by seconds, may be away, and keeps what is forgotten as PENDING for ever. */
  private async books(names: readonly string[], sinceMs: number): Promise<LocalJob[]> {
    try {
      const text = await this.call('sacct', [
        ...['-n', '-X', '-P', '-D', `--name=${names.join(',')}`, '-S', startOf(sinceMs)],
        ...['-o', 'jobid,state,reason,user,submit,start,reqcpus,timelimit,jobname,workdir'],
      ]);
      return jobsOf(text).filter(({ phase }) => phase === 'ENDED');
    } catch {
      return [];
    }
  }

  get measures(): boolean {
    return this.config?.measures ?? false;
  }

  async use(names: readonly string[], sinceMs: number): Promise<Map<string, LocalUse>> {
    const found = new Map<string, LocalUse>();
    for (let at = 0; at < names.length; at += NAMES_MAX) {
      const some = names.slice(at, at + NAMES_MAX).join(',');
      const text = await this.call('sacct', [
        ...['-n', '-P', '-D', `--name=${some}`, '-S', startOf(sinceMs)],
        ...['-o', 'jobid,jobname,state,totalcpu,tresusageintot'],
      ]);
      for (const [key, use] of usesOf(text)) found.set(key, use);
    }
    return found;
  }

  async list(prefix: string): Promise<LocalJob[]> {
    const atMs = performance.now();
    // Of others only what waits, where it will be asked for soon: one question for both.
    const ofAll = this.hasAccounts || atMs - (this.queue?.atMs ?? Number.NEGATIVE_INFINITY) >= QUEUE_MS;
    const text = await this.call('squeue', [...QUEUE, ...(ofAll ? BY_PRIORITY : ['-u', OWN])]);
    if (ofAll) this.queue = { waiting: waitingIn(text), atMs };
    return jobsOf(text).filter(
      ({ name, user }) => name.startsWith(prefix) && (this.hasAccounts || user === null),
    );
  }

  /** By ids that were just looked up by name: a call for many, and for a whole array one message. */
  async cancel(jobs: readonly LocalName[]): Promise<void> {
    const asked = new Set(jobs.map(nameKey));
    const names = [...new Set(jobs.map(({ name }) => name))];
    for (let at = 0; at < names.length; at += NAMES_MAX) {
      const some = names.slice(at, at + NAMES_MAX).join(',');
      const live = jobsOf(await this.call('squeue', [...QUEUE, `--name=${some}`])).filter(
        ({ phase }) => phase !== 'ENDED',
      );
      const spared = new Set(live.filter((job) => !asked.has(nameKey(job))).map(({ name }) => name));
      const unwanted = live.filter((job) => asked.has(nameKey(job)));
      // Root ends jobs of everybody.
      const whose = (user: string | null): string | null => (process.getuid?.() === 0 ? null : user);
      for (const owner of new Set(unwanted.map(({ user }) => whose(user)))) {
        const ids = unwanted
          .filter(({ user }) => whose(user) === owner)
          .map(({ id, name }) => (spared.has(name) ? id : id.replace(/_\d+$/, '')));
        const all = [...new Set(ids)];
        for (let first = 0; first < all.length; first += NAMES_MAX)
          await this.callAs(owner, 'scancel', ['--quiet', ...all.slice(first, first + NAMES_MAX)]);
      }
    }
  }

  async capacity(): Promise<Capacity> {
    await this.readPartitions();
    const names = partitionsIn(this.options.partition ?? this.byDefault, [...this.longest.keys()]);
    const width = ':256';
    const fields = [
      ...['nodelist', 'partitionname', 'cpusstate', 'memory', 'allocmem'],
      ...['statelong', 'reason', 'gres', 'features'],
    ];
    const text = fields.map((field) => field + width).join(',');
    const all = nodesOf(await this.call('sinfo', ['-h', '-a', '-N', '-O', text]));
    const nodes = [
      ...new Map(
        all.flatMap((one) => (names.has(one.partition) ? [[one.node.name, one.node]] : [])),
      ).values(),
    ];
    this.nodeNames = nodes.map(({ name }) => name);
    const busy = new Map<string, number>();
    for (const { partition, node } of all) busy.set(partition, (busy.get(partition) ?? 0) + node.busyCpus);
    const { elementsMax, takesParts } = await this.configuration();
    const licenses = await this.counted();
    // The next job does not wait for it.
    if (!this.hasAccounts) void this.login.get();
    return {
      ...{ elementsMax, takesParts, takesDevices: true, nodes, licenses },
      waiting: await this.waiting(),
      partitions: this.partitions.map((one) => ({
        ...one,
        busyCpus: busy.get(one.name) ?? 0,
        isUsed: names.has(one.name),
      })),
    };
  }

  private async readPartitions(): Promise<void> {
    const now = performance.now();
    if (now < this.partitionsUntilMs) return;
    const found = await this.call('sinfo', ['-h', '-a', '-o', '%P|%a|%l|%D|%C|%N']);
    this.partitions = lines(found).map(partitionOf);
    this.longest = new Map(this.partitions.map(({ name, longestS }) => [name, (longestS ?? Infinity) / 60]));
    this.byDefault = this.partitions.find(({ isDefault }) => isDefault)?.name ?? null;
    this.partitionsUntilMs = now + PARTITIONS_MS;
  }

  /** Where our jobs are not listed, there is a question for it. */
  private async waiting(): Promise<WaitingJob[]> {
    if (this.queue !== null && performance.now() - this.queue.atMs < QUEUE_AGE_MS) return this.queue.waiting;
    return waitingIn(await this.call('squeue', ['-h', '-r', '-t', 'pd', '-o', FIELDS, ...BY_PRIORITY]));
  }

  async survey() {
    const found: { name: string; found: string; problem: string | null; partition?: string }[] = [];
    const version = (await this.call('sinfo', ['--version'])).trim();
    const config = await this.call('scontrol', ['show', 'config']);
    const configured = (name: string): string =>
      new RegExp(`^${name}\\s*=\\s*(.*)$`, 'm').exec(config)?.[1] ?? '?';
    const limits = ['MaxJobCount', 'MaxArraySize', 'MinJobAge', 'MessageTimeout'];
    const said = limits.map((name) => `${name} ${configured(name)}`).join(', ');
    found.push({ name: 'Slurm', found: `${version}; ${said}`, problem: null });
    const used = this.options.partition?.split(',');
    // Without -a: those that the account may use.
    for (const line of lines(await this.call('sinfo', ['-h', '-o', '%R|%a|%l|%D|%C']))) {
      const [partition = '', state = '', limit = '', nodes = '', cpus = ''] = line.split('|');
      found.push({
        name: `partition ${partition}`,
        found: `${state}, ${nodes} nodes, ${cpus.split('/').at(-1)} CPUs, limit ${limit}`,
        problem: null,
        ...((used?.includes(partition) ?? true) && { partition }),
      });
    }
    found.push(
      await this.associations(configured('AccountingStorageType'), configured('AccountingStorageEnforce')),
    );
    return found;
  }

  private async associations(storage: string, enforced: string) {
    const name = `associations of ${OWN}`;
    if (!storage.includes('slurmdbd')) return { name, found: 'Slurm has no accounting', problem: null };
    const fields = 'format=account,partition,qos,maxjobs,maxsubmit';
    try {
      const text = await this.call('sacctmgr', ['-nP', 'show', 'assoc', `user=${OWN}`, fields]);
      const all = lines(text).map((line) => {
        const [account, partition, qos, jobs, submitted] = line.split('|');
        const bounds = [
          partition && `partition ${partition}`,
          qos && `QOS ${qos}`,
          jobs && `${jobs} jobs run`,
        ];
        const told = [...bounds, submitted && `${submitted} jobs queued`].filter(Boolean).join(', ');
        return told === '' ? account : `${account} (${told})`;
      });
      const missing = all.length === 0 && enforced.includes('associations');
      const problem = missing
        ? `none, and Slurm rejects jobs without one (AccountingStorageEnforce=${enforced})`
        : null;
      return { name, found: all.join('; ') || 'none', problem };
    } catch (error) {
      return { name, found: '', problem: (error as Error).message };
    }
  }

  /** Minutes; null: not known, or as long as they like. */
  private longestIn(partitions: string | null): number | null {
    const names = (partitions ?? this.byDefault ?? '').split(',');
    const longest = Math.max(...names.map((name) => this.longest.get(name) ?? Infinity));
    return longest === Infinity ? null : longest;
  }

  private licensesOf(job: Submission): string[] {
    const asked = licensesOf(job, new Set(this.licenses.map(({ name }) => name)));
    return asked === '' ? [] : [`--licenses=${asked}`];
  }

  /** By name: whatever is asked of machines can be said so. */
  private excluded({ nodes }: AskedTasks): string[] {
    if (nodes === null) return [];
    const fit = new Set(nodes);
    const excluded = this.nodeNames.filter((name) => !fit.has(name));
    return excluded.length === 0 ? [] : [`--exclude=${excluded.join(',')}`];
  }

  private async configuration() {
    const now = performance.now();
    if (this.config === null || this.config.untilMs < now) {
      const text = await this.call('scontrol', ['show', 'config']);
      // MaxArraySize is one more than the largest index.
      const elementsMax = Number(/^MaxArraySize\s*=\s*(\d+)/m.exec(text)?.[1] ?? 1);
      // No other plugin starts heterogeneous jobs.
      const takesParts = /^SchedulerType\s*=\s*sched\/backfill\s*$/m.test(text);
      const measures =
        /^AccountingStorageType\s*=\s*accounting_storage\/slurmdbd/m.test(text) &&
        !/^JobAcctGatherType\s*=\s*jobacct_gather\/none/m.test(text);
      this.config = {
        ...{ elementsMax: Math.max(1, elementsMax), takesParts, measures },
        untilMs: now + CONFIG_MS,
      };
    }
    return this.config;
  }

  private async counted(): Promise<readonly LocalLicense[]> {
    const now = performance.now();
    if (this.licensesUntilMs < now) {
      const text = await this.call('scontrol', ['show', 'lic', '-o']);
      this.licenses = [...text.matchAll(/^LicenseName=(\S+).*?\bTotal=(\d+)/gm)].map(([, name, total]) => ({
        name: name as string,
        total: Number(total),
      }));
      this.licensesUntilMs = now + PARTITIONS_MS;
    }
    return this.licenses;
  }

  /** Launchers like sudo pass no environment on. */
  private callAs(user: string | null, program: string, words: readonly string[]): Promise<string> {
    if (user === null) return this.call(program, words);
    const { environment, become } = this.options;
    const passed = ['PATH', 'SLURM_CONF'].flatMap((name) =>
      environment[name] === undefined ? [] : [`${name}=${environment[name]}`],
    );
    const all = [...(become?.(user) ?? []), '/usr/bin/env', ...passed, program, ...words];
    return this.call(all[0] as string, all.slice(1), program);
  }

  /** For sbatch, to pass on; its own programs are found here and on the nodes by the same path, and jobs have a path of theirs. */
  private passing(login: Environment): Environment {
    const { environment } = this.options;
    const own = Object.entries(environment).filter(([name]) => ['PATH', 'SLURM_CONF'].includes(name));
    return { ...login, ...Object.fromEntries(own) };
  }

  private call(
    program: string,
    words: readonly string[],
    label = program,
    environment = this.options.environment,
  ): Promise<string> {
    return new Promise((resolve, reject) => {
      const options = { env: environment, timeout: CALL_MS, maxBuffer: OUTPUT_BYTES, cwd: '/' };
      execFile(program, words, options, (error, out, err) => {
        if (error === null) return resolve(out);
        const code = typeof error.code === 'number' ? error.code : null;
        const said = err.trim() || (error.killed ? `no response for ${CALL_MS / 1000} s` : error.message);
        reject(new CallError(`${label}: ${said.slice(0, 500)}`, code));
      });
    });
  }
}

/** A program of Slurm's that failed. */
class CallError extends Error {
  constructor(
    message: string,
    /** null: it gave none. */
    readonly exitCode: number | null,
  ) {
    super(message);
  }
}

const FIELDS = '%i|%T|%r|%u|%V|%S|%C|%l|%j|%Z';
/** Each element of an array on a line of its own. */
const QUEUE = ['-h', '-r', '-t', 'all', '-o', FIELDS];
/** In the order in which Slurm looks at them. */
const BY_PRIORITY = ['-S', '-p,i'];
/** Of a partition, where the default one is marked. */
const nameIn = (written: string): string => written.replace(/\*$/, '');

/** Of sinfo: `batch*|up|7-00:00:00|4|16/48/0/64|n[1-4]`. */
function partitionOf(line: string): LocalPartition {
  const [name = '', state = '', limit = '', nodes = '', cpus = '', ...list] = line.split('|');
  const [allocated = 0, , , total = 0] = cpus.split('/').map(Number);
  const longestS = secondsOf(limit);
  return {
    ...{ name: nameIn(name), isDefault: name.endsWith('*'), isUsed: false, state },
    ...{ nodes: Number(nodes), nodeList: list.join('|'), cpus: total, busyCpus: allocated },
    longestS: longestS === Infinity ? null : longestS,
  };
}

const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '');

/** A line of FIELDS. */
function fieldsOf(line: string) {
  const [id = '', state = '', reason = '', user = '', submitted, started, cpus, limit = '', ...rest] =
    line.split('|');
  const written = rest.join('|');
  // Both may have bars in them.
  const [, name = written, directory = null] = /^(.*?)\|(\/.*)?$/.exec(written) ?? [];
  return { id, state, reason, user, submitted, started, cpus: Number(cpus), limit, name, directory };
}

const jobsOf = (text: string): LocalJob[] =>
  wholeJobs(
    lines(text).map((line) => {
      const { id, name, state, reason, user, submitted, started, directory } = fieldsOf(line);
      const element = /_(\d+)$/.exec(id)?.[1];
      return jobOf({
        ...{ id, name, element: element === undefined ? null : Number(element), directory, user },
        ...{ state, reason },
        // Of its own clock and time zone, `N/A` or `Unknown` where there is none.
        startedAfterS: (Date.parse(`${started}Z`) - Date.parse(`${submitted}Z`)) / 1000,
      });
    }),
  );

const waitingIn = (text: string): WaitingJob[] =>
  lines(text).flatMap((line) => {
    const { id, state, reason, cpus, limit, name } = fieldsOf(line);
    return state === 'PENDING' ? [{ id, reason, name, cpus, limitS: finite(secondsOf(limit)) }] : [];
  });

/** Of `sacct`: a day earlier, since by the site's clock, whose difference from ours nobody knows. */
function startOf(sinceMs: number): string {
  const since = new Date(sinceMs - 86_400_000);
  const two = (value: number): string => String(value).padStart(2, '0');
  return `${since.getFullYear()}-${two(since.getMonth() + 1)}-${two(since.getDate())}T${two(since.getHours())}:${two(since.getMinutes())}:00`;
}

/** A line of each job, and behind it those of its steps, which have its memory: their largest, each that of all tasks of the step. */
function usesOf(text: string): Map<string, LocalUse> {
  const uses = new Map<string, LocalUse>();
  let use: LocalUse | null = null;
  for (const line of lines(text)) {
    const [id = '', name = '', state = '', cpu = '', usage = ''] = line.split('|');
    if (!id.includes('.')) {
      const [job] = jobsOf(`${id}|${state}|||||||${name}|`);
      use = job?.phase === 'ENDED' ? { cpuS: cpuSecondsOf(cpu), peakMemoryMb: null } : null;
      if (use !== null && job !== undefined) uses.set(nameKey(job), use);
      continue;
    }
    const peak = megabytesOf(/(?:^|,)mem=([^,]+)/.exec(usage)?.[1] ?? '');
    if (use !== null && peak !== null) use.peakMemoryMb = Math.max(use.peakMemoryMb ?? 0, peak);
  }
  return uses;
}

/** `[days-][hours:]minutes:seconds[.fraction]`. */
function cpuSecondsOf(text: string): number | null {
  const [, days = '0', hours = '0', minutes, seconds] =
    /^(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)$/.exec(text) ?? [];
  if (minutes === undefined) return null;
  return Number(days) * 86_400 + Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
}

/** Slurm counts in 1024s: `5724K`, `1.5G`. */
function megabytesOf(text: string): number | null {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)([KMGTP]?)$/.exec(text) ?? [];
  return amount === undefined ? null : (Number(amount) * 1024 ** ' KMGTP'.indexOf(unit || ' ')) / 1e6;
}

/** A line for each node in each of its partitions. */
const nodesOf = (text: string): { partition: string; node: LocalNode }[] =>
  lines(text).map((line) => {
    const [name = '', partition = '', cpus = '', memory, taken, state = '', reason = '', gres, features] =
      columns(line);
    const [allocated = 0, , , total = 0] = cpus.split('/').map(Number);
    const node = {
      name,
      ...{ cpus: total, memoryMb: Number(memory), busyCpus: allocated, busyMemoryMb: Number(taken) },
      devices: devicesIn(gres ?? ''),
      labels: labelsIn(features ?? ''),
      problem: problemOf(state, reason),
    };
    return { partition: nameIn(partition), node };
  });

function spreadWords(job: AskedTasks): string[] {
  const { nodes, tasksPerNode } = spreadOf(job);
  return [
    ...(nodes === null ? [] : [`--nodes=${nodes[0] === nodes[1] ? nodes[0] : nodes.join('-')}`]),
    ...(tasksPerNode === null ? [] : [`--ntasks-per-node=${tasksPerNode}`]),
  ];
}

function devicesOf(job: AskedTasks): string[] {
  const gres = gresOf(job);
  if (gres.length === 0) return [];
  // By kinds of GPUs, of which Slurm has the models alone there.
  if (job.tasks > 1 && !devicesByNode(job))
    return [`--gpus-per-task=${gres.map(({ model, amount }) => [...model, amount].join(':')).join(',')}`];
  const onNode = gres.map(({ kind, model, amount }) => [kind, ...model, amount * tasksOnNode(job)].join(':'));
  return [`--gres=${onNode.join(',')}`];
}

/** Fields of sinfo -O, each 256 characters wide. */
const columns = (line: string): string[] => {
  const found: string[] = [];
  for (let at = 0; at < line.length; at += 256) found.push(line.slice(at, at + 256).trim());
  return found;
};

/** Slurm's [days-]hours:minutes:seconds, as seconds. */
function secondsOf(limit: string): number {
  const [days, rest] = limit.includes('-') ? (limit.split('-') as [string, string]) : ['0', limit];
  if (!/^\d+(:\d+){0,2}$/.test(rest)) return Infinity;
  const parts = rest.split(':').map(Number);
  // With days: hours first; alone: minutes.
  const [h, m, s] =
    days !== '0' || limit.includes('-')
      ? [parts[0], parts[1], parts[2]]
      : parts.length === 3
        ? parts
        : parts.length === 2
          ? [0, parts[0], parts[1]]
          : [0, parts[0], 0];
  return Number(days) * 86_400 + (h ?? 0) * 3600 + (m ?? 0) * 60 + (s ?? 0);
}
