/**
 * A scheduler by a program of others (docs/operations/adapters.md): it is called with a verb, gets JSON on standard input and answers JSON on
 * standard output. What it answers is checked: a mistake there is an error that says what is accepted, and ends no run.
 */
import { execFile } from 'node:child_process';
import { basename } from 'node:path';
import {
  type Capacity,
  LICENSES_MAX,
  type LocalJob,
  type LocalLicense,
  type LocalName,
  type LocalScheduler,
  RefusedError,
  type Submission,
} from './scheduler.js';

/** The version of the contract. */
const CONTRACT = 1;
const CALL_MS = 60_000;
const ANSWER_BYTES = 256 << 20;
const NODES_MAX = 100_000;
const ELEMENTS_MAX = 100_000;

export interface AdapterOptions {
  /** An absolute path. */
  program: string;
  environment: Readonly<Record<string, string>>;
  /** How long a call may take, ms. */
  callMs?: number;
}

type Verb = 'describe' | 'submit' | 'find' | 'list' | 'cancel' | 'capacity';

export class Adapter implements LocalScheduler {
  readonly hasAccounts = false;

  private constructor(
    private readonly options: AdapterOptions,
    readonly label: string,
    readonly prologue: string,
    readonly tasks: LocalScheduler['tasks'],
    readonly parts: LocalScheduler['parts'],
  ) {}

  /** @throws Error where the program cannot be called, or speaks another contract */
  static async open(options: AdapterOptions): Promise<Adapter> {
    const answer = new Answer('describe', await call(options, 'describe', {}));
    answer.of('contract', `${CONTRACT}, the contract version`, (value) => value === CONTRACT);
    const tasks = answer.of<{ launcher: string[]; index: string } | null>(
      'tasks',
      '{"launcher": words, "index": the name of a variable}, or null',
      (value) =>
        value === null ||
        (isObject(value) &&
          isList(value.launcher, isText) &&
          isText(value.index) &&
          /^[A-Za-z_]\w*$/.test(value.index)),
    );
    const label = answer.of<string>(
      'label',
      'a text of 1 to 60 characters',
      (v) => isText(v) && /^.{1,60}$/.test(v),
    );
    const parts = answer.of<LocalScheduler['parts'] | undefined>(
      'parts',
      '{"launcher": words, "prologue": a text}, null, or nothing; with tasks null, null or nothing',
      (value) =>
        value === null ||
        value === undefined ||
        (tasks !== null &&
          isObject(value) &&
          isList(value.launcher, isText) &&
          value.launcher.length > 0 &&
          isText(value.prologue)),
    );
    const prologue = answer.of<string>('prologue', 'a text', isText);
    return new Adapter(options, label, prologue, tasks, parts ?? null);
  }

  async submit(submission: Submission): Promise<string[]> {
    const answer = new Answer('submit', await call(this.options, 'submit', submission));
    if (isText(answer.value.refused)) throw new RefusedError(answer.value.refused.slice(0, 500));
    const wanted = submission.elements ?? 1;
    const accepted = `${wanted} texts, one for each job`;
    return answer.of('ids', accepted, (value) => isList(value, isText) && value.length === wanted);
  }

  async find(names: readonly string[], sinceMs: number): Promise<LocalJob[]> {
    const wanted = new Set(names);
    const jobs = jobsOf(new Answer('find', await call(this.options, 'find', { names, sinceMs })));
    return jobs.filter(({ name }) => wanted.has(name));
  }

  async list(prefix: string): Promise<LocalJob[]> {
    const jobs = jobsOf(new Answer('list', await call(this.options, 'list', { prefix })));
    return jobs.filter(({ name }) => name.startsWith(prefix));
  }

  async cancel(jobs: readonly LocalName[]): Promise<void> {
    const names = jobs.map(({ name, element }) => ({ name, element }));
    await call(this.options, 'cancel', { jobs: names });
  }

  async capacity(): Promise<Capacity> {
    const answer = new Answer('capacity', await call(this.options, 'capacity', {}));
    const nodes = answer.of<Capacity['nodes']>(
      'nodes',
      '1 to 100 000 of {"name", "cpus", "memoryMb", "busyCpus", "busyMemoryMb", "problem"}, each name once',
      (value) => isList(value, isNode) && value.length > 0 && areUnlike(value, NODES_MAX),
    );
    const waiting = answer.of<Capacity['waiting']>(
      'waiting',
      'a list of {"name", "cpus", "limitS"}',
      (value) =>
        isList(value, (one): one is Capacity['waiting'][number] => {
          return isObject(one) && isText(one.name) && isAmount(one.cpus) && isAmount(one.limitS);
        }),
    );
    const elementsMax = answer.of<number>(
      'elementsMax',
      `1 to ${ELEMENTS_MAX}; 1: there are no arrays`,
      (value) => Number.isInteger(value) && (value as number) >= 1 && (value as number) <= ELEMENTS_MAX,
    );
    const licenses = answer.of<readonly LocalLicense[] | undefined>(
      'licenses',
      `nothing, or up to ${LICENSES_MAX} of {"name", "total"}, each name once, of whole numbers`,
      (value) => value === undefined || (isList(value, isLicense) && areUnlike(value, LICENSES_MAX)),
    );
    // Of later contracts.
    const plain = nodes.map((node) => ({ ...node, devices: [], labels: [] }));
    return {
      ...{ nodes: plain, waiting, elementsMax, takesParts: this.parts !== null, takesDevices: false },
      ...(licenses && { licenses }),
    };
  }
}

/** Runs the program. Whatever it does but answer with exit code 0 is an error, after which nobody knows whether it did what was asked. */
function call(
  { program, environment, callMs = CALL_MS }: AdapterOptions,
  verb: Verb,
  asked: object,
): Promise<unknown> {
  const name = `${basename(program)} ${verb}`;
  return new Promise((resolve, reject) => {
    const options = { env: environment, timeout: callMs, maxBuffer: ANSWER_BYTES, cwd: '/' };
    const child = execFile(program, [verb], options, (error, out, err) => {
      if (error === null) {
        try {
          resolve(JSON.parse(out));
        } catch {
          reject(new Error(`${name}: the output is not JSON: ${out.slice(0, 200)}`));
        }
        return;
      }
      const said = err.trim() || (error.killed ? `no response for ${callMs / 1000} s` : error.message);
      reject(new Error(`${name}: ${said.slice(-500)}`));
    });
    // It need not read what it does not need.
    child.stdin?.on('error', () => {});
    child.stdin?.end(`${JSON.stringify(asked)}\n`);
  });
}

/** What a program has answered. */
class Answer {
  readonly value: Readonly<Record<string, unknown>>;

  constructor(
    private readonly verb: Verb,
    value: unknown,
  ) {
    if (!isObject(value)) throw new Error(`${verb}: the output is ${shown(value)}; accepted: an object`);
    this.value = value;
  }

  /** @throws Error that names the field, its value and what is accepted */
  of<T>(field: string, accepted: string, isRight: (value: unknown) => boolean): T {
    const value = this.value[field];
    if (isRight(value)) return value as T;
    throw new Error(`${this.verb}: ${field}: the output has ${shown(value)}; accepted: ${accepted}`);
  }
}

const shown = (value: unknown): string => (JSON.stringify(value) ?? 'nothing').slice(0, 200);

const isText = (value: unknown): value is string => typeof value === 'string';
const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isAmount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0;
const isList = <T>(value: unknown, isOne: (one: unknown) => one is T): value is T[] =>
  Array.isArray(value) && value.every(isOne);

const isNode = (one: unknown): one is Capacity['nodes'][number] =>
  isObject(one) &&
  isText(one.name) &&
  /^[\w.-]{1,63}$/.test(one.name) &&
  [one.cpus, one.memoryMb, one.busyCpus, one.busyMemoryMb].every(isAmount) &&
  (one.problem === null || isText(one.problem));

const isLicense = (one: unknown): one is LocalLicense =>
  isObject(one) && isText(one.name) && isAmount(one.total) && Number.isInteger(one.total);
const areUnlike = (named: readonly { name: string }[], most: number): boolean =>
  named.length <= most && new Set(named.map(({ name }) => name)).size === named.length;

const PHASES: readonly unknown[] = ['WAITING', 'RUNNING', 'ENDED'];
const ENDS: readonly unknown[] = [null, 'RUN_TIME_LIMIT', 'MEMORY_LIMIT', 'CANCELLED', 'LOST'];

const isJob = (one: unknown): one is LocalJob =>
  isObject(one) &&
  isText(one.name) &&
  (one.element === null || isAmount(one.element)) &&
  isText(one.id) &&
  PHASES.includes(one.phase) &&
  isText(one.words) &&
  typeof one.hopeless === 'boolean' &&
  ENDS.includes(one.ended) &&
  (one.directory === null || isText(one.directory)) &&
  (one.startedAfterS == null || isAmount(one.startedAfterS));

const jobsOf = (answer: Answer): LocalJob[] =>
  answer
    .of<LocalJob[]>(
      'jobs',
      'a list of {"name", "element", "id", "phase", "words", "hopeless", "ended", "directory"}',
      (value) => isList(value, isJob),
    )
    .map((job) => ({ ...job, user: null }));
