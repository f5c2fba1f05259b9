/**
 * Slurm by slurmrestd, for agents on hosts without its commands. Which versions of the API there are is asked; the newest that is spoken here is
 * used. Nodes have the commands: the script of a job calls them there.
 */
import { readFileSync } from 'node:fs';
import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import {
  type AskedTasks,
  type Capacity,
  type LocalJob,
  type LocalLicense,
  type LocalName,
  type LocalPartition,
  type LocalScheduler,
  nameKey,
  RefusedError,
  type Submission,
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
  TASKS,
  tasksOnNode,
  wholeJobs,
} from './slurm-words.js';

export interface SlurmRestOptions {
  /** `http://HOST:PORT`, `https://…`, or `unix:PATH`. */
  address: string;
  /** A file with a token of the agent's account, or of root, which acts for others; read again for each question, as tokens end. */
  tokenFile: string;
  /** Partitions, separated by commas; null: the default one. */
  partition: string | null;
  account: string | null;
  /** Jobs are those of other accounts, too. */
  hasAccounts?: boolean;
}

/** Versions of the API that are spoken here, the newest first. */
const SPOKEN = [43, 42, 41, 40, 39, 38];
/** From this one on an environment is a list, and Slurm 22.05's names of options are gone. */
const LISTS = 39;
const CALL_MS = 30_000;
/** slurmrestd writes each job with all its fields: slow where there are tens of thousands. */
const JOBS_MS = 120_000;
const ANSWER_BYTES = 512 << 20;
/** Errors of slurmctld about what was asked, and of slurmrestd, which has not passed it on. */
const ABOUT_JOBS = (code: number): boolean => code === 9001 || (code >= 2000 && code < 3000);
/** Where there is nothing that was asked for. */
const NOTHING_FOUND = 9003;
const NO_SUCH_JOB = [2017, 2021];
/** Slurm's own default for MaxArraySize less one: slurmrestd does not tell it. An array that is refused goes one by one. */
const ELEMENTS_MAX = 1_000;

type Json = Readonly<Record<string, unknown>>;

interface Answer {
  status: number;
  body: Json;
  errors: { code: number; words: string }[];
}

interface Queued {
  jobs: LocalJob[];
  waiting: Capacity['waiting'];
}

export class SlurmRest implements LocalScheduler {
  readonly label = 'Slurm';
  readonly prologue = PROLOGUE;
  readonly tasks = TASKS;
  readonly parts = PARTS;
  readonly hasAccounts: boolean;
  private readonly agent: HttpAgent;
  private version: number | null = null;
  /** Of this version: it takes several jobs as one. */
  private takesParts = false;
  /** By partition, minutes; Infinity: none. */
  private longest = new Map<string, number>();
  private byDefault: string | null = null;
  private partitions: readonly Json[] = [];
  private partitionsUntilMs = Number.NEGATIVE_INFINITY;
  private licenses: readonly LocalLicense[] = [];
  private nodeNames: readonly string[] = [];
  private queue: (Queued & { atMs: number }) | null = null;

  constructor(private readonly options: SlurmRestOptions) {
    this.hasAccounts = options.hasAccounts ?? false;
    const kept = { keepAlive: true, maxSockets: 4 };
    this.agent = options.address.startsWith('https:') ? new HttpsAgent(kept) : new HttpAgent(kept);
  }

  async submit(job: Submission): Promise<string[]> {
    const version = await this.speak();
    const script = `#!/bin/sh\nexec ${quoted(job.script)}\n`;
    const body =
      job.parts === null
        ? { script, job: this.described(job, job, version) }
        : { script, jobs: job.parts.map((part, i) => this.described(job, part, version, i)) };
    const { status, body: answer, errors } = await this.ask('POST', 'slurm', 'job/submit', body, job.user);
    const id = number(answer.job_id);
    // One that was accepted may have errors beside its id, such as that it is held.
    if (id === null || id === 0) {
      const words = wordsOf(errors) || `HTTP ${status}`;
      if (errors.some(({ code }) => ABOUT_JOBS(code)) && isRefusal(words)) throw new RefusedError(words);
      throw new Error(`slurmrestd: ${words}`);
    }
    return job.elements === null
      ? [String(id)]
      : Array.from({ length: job.elements }, (_, i) => `${id}_${i}`);
  }

  /** `tasks`: of the job, or of a component, which leads if `at` is 0. */
  private described(job: Submission, tasks: AskedTasks, version: number, at = 0): Json {
    const partition = job.partition ?? this.options.partition;
    const account = job.account ?? this.options.account;
    const minutes = job.timeLimitS === null ? this.longestIn(partition) : Math.ceil(job.timeLimitS / 60);
    const environment = { PATH: '/usr/local/bin:/usr/bin:/bin' };
    const isOld = version < LISTS;
    const { nodes } = tasks;
    const excluded = nodes === null ? [] : this.nodeNames.filter((name) => !nodes.includes(name));
    const licenses = at === 0 ? licensesOf(job, new Set(this.licenses.map(({ name }) => name))) : '';
    return {
      ...{ name: job.name, comment: job.comment, current_working_directory: job.directory },
      ...{ standard_output: `${job.directory}/scheduler`, standard_error: `${job.directory}/scheduler` },
      ...{ open_mode: 'append', tasks: tasks.tasks, cpus_per_task: tasks.cpusPerTask },
      environment: isOld ? environment : Object.entries(environment).map((pair) => pair.join('=')),
      // A second start under the same id would be another run. Slurm 22.05 takes `requeue`, and does nothing.
      ...(isOld ? { no_requeue: true } : { requeue: false }),
      ...(job.elements !== null && { array: `0-${job.elements - 1}` }),
      ...(tasks.memoryMbPerTask > 0 && {
        memory_per_cpu: Math.ceil(tasks.memoryMbPerTask / tasks.cpusPerTask),
      }),
      ...spreadWords(tasks, isOld),
      ...(tasks.exclusive === 'MACHINE' && (isOld ? { exclusive: 'true' } : { shared: ['none'] })),
      ...(tasks.exclusive === 'USER' && (isOld ? { exclusive: 'user' } : { shared: ['user'] })),
      ...(tasks.sameSwitch !== null && { required_switches: 1 }),
      ...(tasks.sameSwitch?.maxWaitS != null && { wait_for_switch: Math.ceil(tasks.sameSwitch.maxWaitS) }),
      ...devicesOf(tasks, isOld),
      ...(licenses !== '' && { licenses }),
      ...(excluded.length > 0 &&
        (isOld ? { exclude_nodes: excluded.join(',') } : { excluded_nodes: excluded })),
      ...(minutes !== null && { time_limit: minutes }),
      ...(partition !== null && { partition }),
      ...(account !== null && { account }),
      ...(job.qos !== null && { qos: job.qos }),
    };
  }

  async find(names: readonly string[], sinceMs: number): Promise<LocalJob[]> {
    const wanted = new Set(names);
    const found = (await this.queued(0)).jobs.filter(({ name }) => wanted.has(name));
    const known = new Set(found.map(({ name }) => name));
    const gone = names.filter((name) => !known.has(name));
    for (let at = 0; at < gone.length; at += NAMES_MAX)
      found.push(...(await this.books(gone.slice(at, at + NAMES_MAX), sinceMs)));
    return found;
  }

  /** What accounting has of jobs that have left the queue: late, perhaps away, and what is forgotten stays PENDING there for ever. */
  private async books(names: readonly string[], sinceMs: number): Promise<LocalJob[]> {
    // By the site's clock, whose difference from ours nobody knows.
    const since = Math.floor(sinceMs / 1000) - 86_400;
    const query = `jobs?job_name=${names.map(encodeURIComponent).join(',')}&start_time=uts${since}`;
    try {
      const { body } = must(await this.ask('GET', 'slurmdb', query));
      const found = list(body.jobs).map((job) => {
        const state = object(job.state);
        const { job_id: array, task_id: task } = object(job.array);
        const { job_id: leader, job_offset: offset } = object(job.het);
        return jobOf({
          ...nameOf(job, number(array), number(task), number(leader), number(offset)),
          ...{ state: stateOf(state.current), reason: text(state.reason), user: text(job.user) },
          directory: text(job.working_directory) || null,
          startedAfterS: startedAfter(object(job.time).submission, object(job.time).start),
        });
      });
      return wholeJobs(found).filter(({ phase }) => phase === 'ENDED');
    } catch {
      return [];
    }
  }

  async list(prefix: string): Promise<LocalJob[]> {
    const { jobs } = await this.queued(0);
    return jobs.filter(({ name, user }) => name.startsWith(prefix) && (this.hasAccounts || user === null));
  }

  async cancel(jobs: readonly LocalName[]): Promise<void> {
    const asked = new Set(jobs.map(nameKey));
    const names = new Set(jobs.map(({ name }) => name));
    const live = (await this.queued(0)).jobs.filter(
      ({ name, phase }) => phase !== 'ENDED' && names.has(name),
    );
    const spared = new Set(live.filter((job) => !asked.has(nameKey(job))).map(({ name }) => name));
    const ids = live
      .filter((job) => asked.has(nameKey(job)))
      .map(({ id, name }) => (spared.has(name) ? id : id.replace(/_\d+$/, '')));
    for (const id of new Set(ids)) {
      const answer = await this.ask('DELETE', 'slurm', `job/${id}`);
      if (!answer.errors.some(({ code }) => NO_SUCH_JOB.includes(code))) must(answer);
    }
  }

  async capacity(): Promise<Capacity> {
    await this.readPartitions();
    const used = this.options.partition ?? this.byDefault;
    const names = partitionsIn(used, [...this.longest.keys()]);
    const all = list(must(await this.ask('GET', 'slurm', 'nodes')).body.nodes);
    const nodes = all
      .filter((node) => texts(node.partitions).some((partition) => names.has(partition)))
      .map((node) => ({
        ...{ name: text(node.name), cpus: number(node.cpus) ?? 0, memoryMb: number(node.real_memory) ?? 0 },
        ...{ busyCpus: number(node.alloc_cpus) ?? 0, busyMemoryMb: number(node.alloc_memory) ?? 0 },
        ...{ devices: devicesIn(text(node.gres)), labels: labelsIn(texts(node.features).join(',')) },
        problem: problemOf(
          [...texts(node.state), ...texts(node.state_flags)].join('+').toUpperCase(),
          text(node.reason),
        ),
      }));
    this.nodeNames = nodes.map(({ name }) => name);
    const { takesParts, licenses } = this;
    const partitions = this.partitions.map((one) => ({
      ...partitionOf(one, all),
      isUsed: names.has(text(one.name)),
    }));
    return {
      ...{ elementsMax: ELEMENTS_MAX, takesParts, takesDevices: true, nodes, partitions, licenses },
      waiting: (await this.queued(CAPACITY_AGE_MS)).waiting,
    };
  }

  private async readPartitions(): Promise<void> {
    const now = performance.now();
    if (now < this.partitionsUntilMs) return;
    this.partitions = list(must(await this.ask('GET', 'slurm', 'partitions')).body.partitions);
    this.longest = new Map(this.partitions.map((one) => [text(one.name), longestOf(one)]));
    // The API of Slurm 23.11 to 24.11 (v0.0.40 to 42) does not say which one is the default.
    const only = this.partitions.length === 1 ? this.partitions[0] : undefined;
    this.byDefault = text((this.partitions.find(isDefault) ?? only)?.name) || null;
    const counted = list((await this.ask('GET', 'slurm', 'licenses')).body.licenses);
    this.licenses = counted.map((one) => ({ name: text(one.LicenseName), total: number(one.Total) ?? 0 }));
    this.partitionsUntilMs = now + PARTITIONS_MS;
  }

  async survey() {
    const version = await this.speak();
    const found: { name: string; found: string; problem: string | null; partition?: string }[] = [
      { name: 'slurmrestd', found: `${this.options.address}, API v0.0.${version}`, problem: null },
    ];
    const used = this.options.partition?.split(',');
    for (const one of list(must(await this.ask('GET', 'slurm', 'partitions')).body.partitions)) {
      const partition = text(one.name);
      const longest = longestOf(one);
      const limit = longest === Infinity ? 'no limit' : `limit ${longest} min`;
      found.push({
        ...{ name: `partition ${partition}`, found: limit, problem: null },
        ...((used?.includes(partition) ?? true) && { partition }),
      });
    }
    return found;
  }

  private longestIn(partitions: string | null): number | null {
    const names = (partitions ?? this.byDefault ?? '').split(',');
    const longest = Math.max(...names.map((name) => this.longest.get(name) ?? Infinity));
    return longest === Infinity ? null : longest;
  }

  /** All jobs of anybody, at most so old. */
  private async queued(ageMs: number): Promise<Queued> {
    if (this.queue !== null && performance.now() - this.queue.atMs < ageMs) return this.queue;
    const atMs = performance.now();
    const { body } = must(await this.ask('GET', 'slurm', 'jobs'));
    const jobs: LocalJob[] = [];
    const waiting: Capacity['waiting'] = [];
    for (const job of list(body.jobs)) {
      const told = jobsIn(job);
      jobs.push(...told);
      if (stateOf(job.job_state) !== 'PENDING') continue;
      const [cpus, limit] = [number(job.cpus) ?? 1, number(job.time_limit)];
      const limitS = finite(limit === null ? Infinity : limit * 60);
      for (const { id, name } of told)
        waiting.push({ id, name, cpus, limitS, reason: text(job.state_reason) });
    }
    this.queue = { jobs: wholeJobs(jobs), waiting, atMs };
    return this.queue;
  }

  /** The version of the API; asked again after slurmrestd may have been another one. */
  private async speak(): Promise<number> {
    if (this.version !== null) return this.version;
    const { status, body } = await this.send('GET', '/openapi/v3', null, null);
    const paths = Object.keys(object(body.paths));
    const has = new Set(paths.map((path) => Number(/^\/slurm\/v0\.0\.(\d+)\//.exec(path)?.[1])));
    const version = SPOKEN.find((one) => has.has(one));
    if (version === undefined) {
      const there = [...has].filter((one) => one > 0).map((one) => `v0.0.${one}`);
      const accepted = SPOKEN.map((one) => `v0.0.${one}`).join(', ');
      throw new Error(
        `slurmrestd: it has ${there.join(', ') || `no API (HTTP ${status})`}; supported: ${accepted}`,
      );
    }
    this.takesParts = submitsSeveral(body, version);
    this.version = version;
    return version;
  }

  private async ask(
    method: string,
    plugin: 'slurm' | 'slurmdb',
    path: string,
    body: Json | null = null,
    user: string | null = null,
  ): Promise<Answer> {
    const answer = await this.send(
      method,
      `/${plugin}/v0.0.${await this.speak()}/${path}`,
      body === null ? null : JSON.stringify(body),
      user,
    );
    // After an upgrade of the site this version may be gone.
    if (answer.status === 404 && answer.errors.length === 0) this.version = null;
    return answer;
  }

  private send(method: string, path: string, body: string | null, user: string | null): Promise<Answer> {
    const { address, tokenFile } = this.options;
    const socketPath = /^unix:(.+)$/.exec(address)?.[1];
    const url = new URL(path, socketPath === undefined ? address : 'http://localhost');
    return new Promise((resolve, reject) => {
      const fail = (error: Error): void => reject(new Error(`slurmrestd: ${error.message}`));
      const headers = {
        'X-SLURM-USER-NAME': user ?? OWN,
        'X-SLURM-USER-TOKEN': readFileSync(tokenFile, 'utf8')
          .trim()
          .replace(/^SLURM_JWT=/, ''),
        ...(body !== null && {
          ...{ 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) },
        }),
      };
      const timeout = path.endsWith('/jobs') ? JOBS_MS : CALL_MS;
      const signal = AbortSignal.timeout(timeout);
      const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
      const options = { method, headers, signal, agent: this.agent, ...(socketPath && { socketPath }) };
      const request = send(url, options, (response) => {
        const pieces: Buffer[] = [];
        let bytes = 0;
        response.on('data', (piece: Buffer) => {
          bytes += piece.length;
          if (bytes > ANSWER_BYTES)
            response.destroy(new Error(`the response has more than ${ANSWER_BYTES} bytes`));
          else pieces.push(piece);
        });
        response.on('error', fail);
        response.on('end', () => {
          try {
            resolve(answerOf(response.statusCode ?? 0, Buffer.concat(pieces).toString()));
          } catch (error) {
            fail(error as Error);
          }
        });
      });
      request.on('error', (error) =>
        fail(signal.aborted ? new Error(`no response for ${timeout / 1000} s`) : error),
      );
      request.end(body);
    });
  }
}

/** Names in one question: an address has an end. */
const NAMES_MAX = 100;
/** What waits there is told to dispatch policies so old, at most: the whole queue is not asked for again. */
const CAPACITY_AGE_MS = 10_000;

function answerOf(status: number, written: string): Answer {
  let body: Json;
  try {
    body = object(JSON.parse(written));
  } catch {
    throw new Error(`HTTP ${status}: ${written.trim().slice(0, 200) || 'an empty response'}`);
  }
  const errors = list(body.errors).map((one) => ({
    code: number(one.error_number) ?? number(one.error_code) ?? -1,
    words: [text(one.error), text(one.description)].filter(Boolean).join(': '),
  }));
  return { status, body, errors };
}

/** @throws Error where it was not answered; that nothing was found is an answer */
function must(answer: Answer): Answer {
  const { status, errors } = answer;
  const wrong = errors.filter(({ code }) => code !== NOTHING_FOUND);
  if (wrong.length > 0 || (status >= 400 && errors.length === 0))
    throw new Error(`slurmrestd: HTTP ${status}: ${wordsOf(wrong)}`);
  return answer;
}

const wordsOf = (errors: Answer['errors']): string =>
  errors
    .map(({ words }) => words)
    .filter((words, i, all) => all.indexOf(words) === i)
    .join('; ')
    .slice(0, 500);

/** Seconds since 1970; NaN: it has not started. */
const startedAfter = (submitted: unknown, started: unknown): number =>
  (number(started) || Number.NaN) - (number(submitted) || Number.NaN);

/** Whether a submission may have several jobs, which are one heterogeneous job: versions of the API differ in where they say it. */
function submitsSeveral(api: Json, version: number): boolean {
  const { post } = object(object(api.paths)[`/slurm/v0.0.${version}/job/submit`]);
  const { schema } = object(object(object(object(post).requestBody).content)['application/json']);
  const name = text(object(schema).$ref).split('/').at(-1) ?? '';
  const known = object(object(object(api.components).schemas)[name]);
  return 'jobs' in object((name === '' ? object(schema) : known).properties);
}

/** A job of the queue; of an array, one record stands for all elements that wait. */
function jobsIn(job: Json): LocalJob[] {
  const array = number(job.array_job_id);
  const common = {
    ...{ state: stateOf(job.job_state), reason: text(job.state_reason), user: text(job.user_name) },
    directory: text(job.current_working_directory) || null,
    startedAfterS: startedAfter(job.submit_time, job.start_time),
  };
  const some = text(job.array_task_string);
  if (some === '') {
    const [leader, offset] = [number(job.het_job_id), number(job.het_job_offset)];
    return [jobOf({ ...nameOf(job, array, number(job.array_task_id), leader, offset), ...common })];
  }
  return elementsIn(some).map((element) => jobOf({ ...nameOf(job, array, element), ...common }));
}

function nameOf(
  job: Json,
  array: number | null,
  element: number | null,
  leader: number | null = null,
  offset: number | null = null,
) {
  const name = text(job.name);
  if (array !== null && array !== 0 && element !== null) return { id: `${array}_${element}`, name, element };
  // As squeue has it of a component.
  const id = leader === null || leader === 0 ? String(job.job_id) : `${leader}+${offset ?? 0}`;
  return { id, name, element: null };
}

/** `0-3,7%2`, cut off with `…` where it is long: whatever may be behind it counts as waiting, since the guard says what has begun. */
function elementsIn(written: string): number[] {
  const found: number[] = [];
  const isCut = written.includes('...');
  for (const part of written.replace(/%.*/, '').replaceAll('.', '').split(',')) {
    const [, first, last = first] = /^(\d+)(?:-(\d+))?$/.exec(part) ?? [];
    if (first === undefined) continue;
    const end = Math.min(Number(last), ELEMENTS_MAX);
    for (let element = Number(first); element <= end; element++) found.push(element);
  }
  if (isCut) for (let next = (found.at(-1) ?? -1) + 1; next < ELEMENTS_MAX; next++) found.push(next);
  return found;
}

function spreadWords(job: AskedTasks, isOld: boolean): Json {
  const { nodes, tasksPerNode } = spreadOf(job);
  return {
    ...(nodes !== null && {
      nodes: isOld ? nodes : nodes[0] === nodes[1] ? String(nodes[0]) : nodes.join('-'),
    }),
    ...(tasksPerNode !== null && { tasks_per_node: tasksPerNode }),
  };
}

function devicesOf(job: AskedTasks, isOld: boolean): Json {
  const gres = gresOf(job);
  if (gres.length === 0) return {};
  const words = (times: number): string =>
    gres
      .map(({ kind, model, amount }) =>
        [`${isOld ? '' : 'gres/'}${kind}`, ...model, amount * times].join(':'),
      )
      .join(',');
  if (job.tasks > 1 && !devicesByNode(job))
    return isOld
      ? { gpus_per_task: gres.map(({ model, amount }) => [...model, amount].join(':')).join(',') }
      : { tres_per_task: words(1) };
  const onNode = words(tasksOnNode(job));
  return isOld ? { gres: onNode } : { tres_per_node: onNode };
}

const isDefault = (one: Json): boolean =>
  [...texts(one.flags), ...texts(object(one.partition).flags), ...texts(one.node_sets)]
    .map((flag) => flag.toLowerCase())
    .includes('default');

/** Minutes. */
const longestOf = (one: Json): number =>
  number(one.max_time_limit) ?? number(object(one.maximums).time) ?? Infinity;

/** `nodes`: of the whole site. */
function partitionOf(one: Json, nodes: readonly Json[]): Omit<LocalPartition, 'isUsed'> {
  const name = text(one.name);
  const longest = longestOf(one);
  const own = nodes.filter((node) => texts(node.partitions).includes(name));
  return {
    ...{ name, isDefault: isDefault(one) },
    state: (stateOf(one.state) || stateOf(object(one.partition).state)).toLowerCase(),
    nodes: own.length,
    nodeList: text(one.nodes) || text(object(one.nodes).configured),
    cpus: own.reduce((sum, { cpus }) => sum + (number(cpus) ?? 0), 0),
    busyCpus: own.reduce((sum, node) => sum + (number(node.alloc_cpus) ?? 0), 0),
    longestS: longest === Infinity ? null : longest * 60,
  };
}

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;
const object = (value: unknown): Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {};
const list = (value: unknown): Json[] => (Array.isArray(value) ? value.map(object) : []);
const text = (value: unknown): string => (typeof value === 'string' ? value : '');
/** A text, or a list of texts, as newer versions have it. */
const texts = (value: unknown): string[] =>
  typeof value === 'string' ? value.split(',').filter(Boolean) : Array.isArray(value) ? value.map(text) : [];
const stateOf = (value: unknown): string => texts(value)[0] ?? '';

/** A number, or as newer versions have it `{"set": true, "infinite": false, "number": 3}`; null: none, or no bound. */
function number(value: unknown): number | null {
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  const { set, infinite, number: inner } = object(value);
  return set === true && infinite !== true && typeof inner === 'number' ? inner : null;
}
