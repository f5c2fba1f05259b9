/** What an adapter has to do, as checks that are run against the scheduler that it speaks to. */
import { randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { plainJobEnvironment } from '../../platform/environment.js';
import { CALLS } from './calls.js';
import { Marks } from './marks.js';
import {
  type Capacity,
  type LocalJob,
  type LocalName,
  type LocalScheduler,
  NO_TERMS,
  RefusedError,
  type Submission,
} from './scheduler.js';
import { arrayScript, batchScript, type Command, type EndMark, lineOf, NOT_BEGUN } from './script.js';

export interface ConformanceOptions {
  /** On a file system that the nodes share with this host: the checks make a directory there, and remove it. */
  directory: string;
  /** How long a job of a second may take from submission to end, ms. */
  patienceMs: number;
  /** Checks whose name contains this; all by default. */
  only?: string;
}

export interface Check {
  /** What holds. */
  name: string;
  /** Why it does not; null: it does. */
  problem: string | null;
  /** Why it was not tried; null: it was. */
  skipped: string | null;
}

/** What the scheduler does is not what the contract says. */
class Broken extends Error {}
class Skipped extends Error {}

/** Elements of the array that is tried. */
const ELEMENTS = 5;
/** Jobs that are listed at once. */
const MANY = 20;
/** Nobody has so many CPUs. */
const TOO_MANY_CPUS = 1_000_000;
const POLL_MS = 300;

/** Runs all checks, one after another, each with jobs of its own; tells each result as it comes. */
export async function conformance(
  scheduler: LocalScheduler,
  { directory, patienceMs, only = '' }: ConformanceOptions,
  tell: (check: Check) => void,
): Promise<void> {
  const root = mkdtempSync(join(realpathSync(directory), 'conformance-'));
  const prefix = `sy-test-${randomBytes(4).toString('hex')}-`;
  try {
    for (const [i, [name, check]] of CHECKS.entries()) {
      if (!name.includes(only)) continue;
      const trial = new Trial(scheduler, join(root, String(i)), prefix, patienceMs);
      const result: Check = { name, problem: null, skipped: null };
      try {
        await check(trial);
      } catch (error) {
        result[error instanceof Skipped ? 'skipped' : 'problem'] = (error as Error).message;
      }
      await trial.end();
      tell(result);
    }
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** What a check has. */
export class Trial {
  readonly marks: Marks;
  private readonly names: LocalName[] = [];

  constructor(
    readonly scheduler: LocalScheduler,
    readonly root: string,
    readonly prefix: string,
    private readonly patienceMs: number,
  ) {
    mkdirSync(root, { recursive: true });
    this.marks = new Marks(root, root, CALLS);
  }

  /** A name that nothing has been submitted under. */
  name(): string {
    return `${this.prefix}${randomBytes(4).toString('hex')}.1`;
  }

  /** Writes down a run that carries out a shell text, and answers how it is submitted. */
  prepare(text: string, more: Partial<Command> = {}, prologue = this.scheduler.prologue) {
    const name = this.name();
    const directory = join(this.root, 'runs', name);
    for (const name of ['work', 'desk']) mkdirSync(join(directory, name), { recursive: true });
    const command = {
      ...{ command: 'sh', arguments: ['-c', text], environment: {}, tasks: 1 },
      ...{
        launch: 'EVERY_TASK' as const,
        runTimeLimitS: null,
        killGraceS: 5,
        warnS: null,
        warnSignal: 'SIGTERM' as const,
        ...more,
      },
    };
    const own = { work: join(directory, 'work'), desk: join(directory, 'desk') };
    const places = { directory, isMade: true, ...own, ...this.marks.of(name) };
    const script = join(directory, 'script');
    const { tasks, parts } = this.scheduler;
    const begin = { prologue, tasks, parts };
    writeFileSync(script, batchScript(command, plainJobEnvironment(), places, begin), { mode: 0o700 });
    return {
      ...{ name, elements: null as number | null, comment: 'switchyard:test', script, directory },
      ...{ tasks: command.tasks, cpusPerTask: 1, memoryMbPerTask: 50, timeLimitS: 60 as number | null },
      ...{
        user: null,
        resourcesPerTask: [],
        licenses: [],
        resources: [],
        pools: [],
        nodes: null,
        tasksPerMachine: null,
        exclusive: null,
        sameSwitch: null,
        parts: null as Submission['parts'],
        ...NO_TERMS,
      },
    };
  }

  async submit(submission: ReturnType<Trial['prepare']>): Promise<string[]> {
    for (let i = 0; i < (submission.elements ?? 1); i++)
      this.names.push({ name: submission.name, element: submission.elements === null ? null : i });
    return this.scheduler.submit(submission);
  }

  output(name: string, stream: 'out' | 'err' = 'out'): string {
    const path = join(this.root, 'runs', name, stream);
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  }

  /** Asks until there is an answer, or patience ends. */
  async until<T>(what: string, ask: () => T | null | Promise<T | null>): Promise<T> {
    for (const deadline = Date.now() + this.patienceMs; ; await sleep(POLL_MS)) {
      const answer = await ask();
      if (answer !== null) return answer;
      if (Date.now() > deadline) throw new Broken(`${what}: not within ${this.patienceMs / 1000} s`);
    }
  }

  ended(name: string): Promise<EndMark> {
    return this.until('the end of a job', () => this.marks.ended(name));
  }

  began(name: string): Promise<string> {
    return this.until('the start of a job', () => this.marks.where(name)?.localId ?? null);
  }

  /** What the list says of it, as soon as something is right; `accept` gets null where it is not listed. */
  listed(name: string, what: string, accept: (job: LocalJob | null) => boolean): Promise<true> {
    return this.until(what, async () => {
      const jobs = await this.scheduler.list(this.prefix);
      return accept(jobs.find((job) => job.name === name) ?? null) ? true : null;
    });
  }

  async end(): Promise<void> {
    await this.scheduler.cancel(this.names).catch(() => {});
  }
}

function must(isSo: boolean, message: string): asserts isSo {
  if (!isSo) throw new Broken(message);
}

const nowhere = (job: LocalJob | null): boolean => job === null || job.phase === 'ENDED';

const CHECKS: readonly (readonly [string, (trial: Trial) => Promise<void>])[] = [
  ['capacity reports the machines and their use', capacityIsSound],
  ['a job runs, and its script records its ID, its nodes and how it ended', runs],
  ['the exit code of a command is kept', (trial) => keepsCode(trial, 3)],
  ['quotes, line breaks and spaces reach the command', keepsWords],
  ['the environment of the agent does not reach jobs', isClean],
  ['each task of a job is started', startsTasks],
  ['jobs with and without a time limit are accepted', takesLimits],
  ['a run that is submitted twice runs once', runsOnce],
  ['a job is found by its name, as if its id had been lost', finds],
  ['unknown names are not found, and are not an error', findsNothing],
  ['one request lists all jobs, each once, and no others', lists],
  ['an ended job leaves the list, or is listed as ended', leavesList],
  ['a job that can never run is refused, or ends, or is reported as hopeless', refuses],
  ['canceling a running job ends its command too', cancelsRunning],
  ['canceling twice, or an unknown job, is not an error', cancelsTwice],
  ['only the named job is canceled', cancelsOne],
  ['each element of an array runs once', runsArray],
  ['a single array element can be found and canceled', cancelsElement],
  ['a job of several parts runs once, and each task knows its part', runsParts],
  ['a job of several parts is listed as one job, and canceled as a whole', cancelsParts],
];

async function capacityIsSound({ scheduler }: Trial): Promise<void> {
  const { nodes, waiting }: Capacity = await scheduler.capacity();
  must(nodes.length > 0, 'there are no machines');
  for (const { name, cpus, memoryMb, busyCpus, busyMemoryMb } of nodes) {
    must(cpus > 0 && memoryMb > 0, `${name}: ${cpus} CPUs and ${memoryMb} MB`);
    must(busyCpus <= cpus, `${name}: ${busyCpus} of ${cpus} CPUs are in use`);
    must(busyMemoryMb <= memoryMb, `${name}: ${busyMemoryMb} of ${memoryMb} MB are in use`);
  }
  for (const { limitS } of waiting) must(Number.isFinite(limitS), `a waiting job has the limit ${limitS} s`);
}

async function runs(trial: Trial): Promise<void> {
  const job = trial.prepare('echo hello; sleep 1');
  const [id] = await trial.submit(job);
  const { code } = await trial.ended(job.name);
  must(code === 0, `exit code ${code}: ${trial.output(job.name, 'err')}`);
  must(trial.output(job.name) === 'hello\n', `it wrote ${JSON.stringify(trial.output(job.name))}`);
  const where = trial.marks.where(job.name)!;
  must(
    where.localId === id,
    `the script has ID ${where.localId}, submit returned ${id}: the prologue must set local_id`,
  );
  const known = new Set((await trial.scheduler.capacity()).nodes.map(({ name }) => name));
  const odd = where.nodes.find((node) => !known.has(node));
  must(
    where.nodes.length > 0 && odd === undefined,
    `it ran on ${where.nodes.join(' ') || 'no node'}: the prologue must set nodes, to names reported by capacity`,
  );
}

async function keepsCode(trial: Trial, wanted: number): Promise<void> {
  const job = trial.prepare(`exit ${wanted}`);
  await trial.submit(job);
  const { code } = await trial.ended(job.name);
  must(code === wanted, `exit code ${code} instead of ${wanted}`);
}

async function keepsWords(trial: Trial): Promise<void> {
  const text = 'it\'s "a" $HOME `b`\\n\n  c';
  const job = trial.prepare('', { command: 'printf', arguments: ['%s|%s', text, ''] });
  await trial.submit(job);
  await trial.ended(job.name);
  const out = trial.output(job.name);
  must(out === `${text}|`, `${JSON.stringify(text)} became ${JSON.stringify(out)}`);
}

async function isClean(trial: Trial): Promise<void> {
  const job = trial.prepare('env');
  await trial.submit(job);
  await trial.ended(job.name);
  const names = trial
    .output(job.name)
    .split('\n')
    .map((line) => line.split('=')[0] as string);
  const told = names.filter((name) =>
    /^(SWITCHYARD_(KEY|URL|HOME)|AGENT_|DATABASE_URL|REDIS_URL)/.test(name),
  );
  must(told.length === 0, `it has ${told.join(', ')}`);
}

async function startsTasks(trial: Trial): Promise<void> {
  if (trial.scheduler.tasks === null) throw new Skipped('describe reports that tasks are not started here');
  const text =
    'echo "$SWITCHYARD_TASK_INDEX $RANK $WORLD_SIZE $NNODES $MASTER_ADDR $SWITCHYARD_MACHINES' +
    ' $(sed -n $((RANK + 1))p "$SWITCHYARD_HOSTFILE") $LOCAL_RANK $LOCAL_WORLD_SIZE $NODE_RANK"';
  const job = trial.prepare(text, { tasks: 2 });
  await trial.submit(job);
  await trial.ended(job.name);
  const said = trial.output(job.name).trim().split('\n').sort();
  const { nodes } = trial.marks.where(job.name)!;
  const [first = '', second = first] = nodes;
  const apart = nodes.length > 1;
  const all = `2 ${nodes.length} ${first} ${apart ? `${first}:1,${second}:1` : `${first}:2`}`;
  const wanted = [
    `0 0 ${all} ${first} 0 ${apart ? 1 : 2} 0`,
    `1 1 ${all} ${second} ${apart ? '0 1 1' : '1 2 0'}`,
  ];
  // A prologue need not tell where they are.
  const unplaced = said.every((line, i) => line.startsWith(`${i} ${i} 2 `)) && !said[0]?.includes(':');
  must(
    said.length === 2 && (unplaced || said.join() === wanted.join()),
    `two tasks printed ${JSON.stringify(said)}; expected: ${JSON.stringify(wanted)}: ${trial.output(job.name, 'err')}`,
  );
}

async function takesLimits(trial: Trial): Promise<void> {
  for (const timeLimitS of [null, 45]) {
    const job = { ...trial.prepare('true'), timeLimitS };
    await trial.submit(job);
    const { code } = await trial.ended(job.name);
    must(code === 0, `with the limit ${timeLimitS} it ended with ${code}`);
  }
}

async function runsOnce(trial: Trial): Promise<void> {
  const job = trial.prepare('echo ran; sleep 1');
  await trial.submit(job);
  await trial.submit(job);
  await trial.ended(job.name);
  await trial.listed(job.name, 'the end of the second', nowhere);
  must(trial.output(job.name) === 'ran\n', `it wrote ${JSON.stringify(trial.output(job.name))}`);
}

async function finds(trial: Trial): Promise<void> {
  const sinceMs = Date.now();
  const job = trial.prepare('sleep 60');
  const [id] = await trial.submit(job);
  const [found, ...more] = await trial.scheduler.find([trial.name(), job.name], sinceMs);
  must(
    found !== undefined && more.length === 0,
    `${more.length + (found ? 1 : 0)} jobs were found for one name`,
  );
  must(found.id === id, `it is ${found.id}, submit returned ${id}`);
  must(found.phase !== 'ENDED', `it is ${found.phase} (${found.words})`);
}

async function findsNothing(trial: Trial): Promise<void> {
  const found = await trial.scheduler.find([trial.name(), trial.name()], Date.now());
  must(found.length === 0, `found: ${JSON.stringify(found[0])}`);
}

async function lists(trial: Trial): Promise<void> {
  // Still there when the last is submitted, however long that takes; then they are canceled.
  const jobs = Array.from({ length: MANY }, () => ({ ...trial.prepare('sleep 600'), timeLimitS: 600 }));
  for (const job of jobs) await trial.submit(job);
  const found = (await trial.scheduler.list(trial.prefix)).filter(({ phase }) => phase !== 'ENDED');
  const names = new Set(found.map(({ name }) => name));
  const lost = jobs.filter(({ name }) => !names.has(name));
  must(lost.length === 0, `${lost.length} of ${MANY} jobs are not listed`);
  must(names.size === found.length, 'a job is listed twice');
  const others = await trial.scheduler.list(trial.name());
  must(others.length === 0, `under another prefix ${others.length} jobs are listed`);
}

async function leavesList(trial: Trial): Promise<void> {
  const job = trial.prepare('true');
  await trial.submit(job);
  await trial.ended(job.name);
  await trial.listed(job.name, 'its end in the list', nowhere);
}

async function refuses(trial: Trial): Promise<void> {
  const job = { ...trial.prepare('true'), cpusPerTask: TOO_MANY_CPUS };
  try {
    await trial.submit(job);
  } catch (error) {
    if (error instanceof RefusedError) return;
    throw new Broken(`an error instead of a refusal: ${(error as Error).message}`);
  }
  await trial.listed(
    job.name,
    'a sign that it can never run',
    (one) => nowhere(one) || one?.hopeless === true,
  );
  must(trial.marks.where(job.name) === null, 'it ran');
}

async function cancelsRunning(trial: Trial): Promise<void> {
  const job = trial.prepare('while :; do echo goes on; sleep 0.2; done');
  await trial.submit(job);
  await trial.began(job.name);
  await trial.scheduler.cancel([{ name: job.name, element: null }]);
  await trial.listed(job.name, 'its end', nowhere);
  const written = trial.output(job.name);
  await sleep(1_000);
  must(trial.output(job.name) === written, 'it has ended, but its command is still running');
  must(trial.marks.ended(job.name)?.code !== 0, 'its command ended with 0');
}

async function cancelsTwice(trial: Trial): Promise<void> {
  const job = trial.prepare('sleep 300');
  await trial.submit(job);
  const names = [
    { name: job.name, element: null },
    { name: trial.name(), element: null },
  ];
  await trial.scheduler.cancel(names);
  await trial.scheduler.cancel(names);
  await trial.listed(job.name, 'its end', nowhere);
  await trial.scheduler.cancel(names);
}

async function cancelsOne(trial: Trial): Promise<void> {
  const [one, other] = [trial.prepare('sleep 300'), trial.prepare('sleep 3; echo well')];
  await trial.submit(one);
  await trial.submit(other);
  await trial.scheduler.cancel([{ name: one.name, element: null }]);
  await trial.listed(one.name, 'its end', nowhere);
  const { code } = await trial.ended(other.name);
  must(code === 0, `the other ended with ${code}`);
}

/** An array whose elements say which they are. */
async function array(trial: Trial, text: (element: number) => string) {
  if ((await trial.scheduler.capacity()).elementsMax < ELEMENTS)
    throw new Skipped('capacity reports that there are no arrays');
  const jobs = Array.from({ length: ELEMENTS }, (_, i) => trial.prepare(`echo ${i}; ${text(i)}`, {}, ''));
  const name = trial.name();
  const directory = join(trial.root, 'arrays', name);
  mkdirSync(directory, { recursive: true });
  const script = join(directory, 'script');
  const scripts = jobs.map((job) => lineOf(readFileSync(job.script, 'utf8')));
  writeFileSync(join(directory, 'scripts.0'), scripts.join(''));
  writeFileSync(script, arrayScript(directory, 1, trial.scheduler), { mode: 0o700 });
  const ids = await trial.submit({ ...jobs[0]!, name, directory, script, elements: ELEMENTS });
  must(ids.length === ELEMENTS, `submit returned ${ids.length} IDs for ${ELEMENTS} elements`);
  return { name, jobs, ids };
}

async function runsArray(trial: Trial): Promise<void> {
  const { jobs, ids } = await array(trial, () => 'true');
  for (const [i, job] of jobs.entries()) {
    const { code } = await trial.ended(job.name);
    must(
      code === 0 && trial.output(job.name) === `${i}\n`,
      `element ${i}: ${code}, ${trial.output(job.name)}`,
    );
    const said = trial.marks.where(job.name)!.localId;
    must(said === ids[i], `element ${i} has ID ${said}, submit returned ${ids[i]}`);
  }
}

async function cancelsElement(trial: Trial): Promise<void> {
  const go = join(trial.root, 'go');
  const waits = (element: number): string =>
    `until [ -e '${go}' ]; do sleep 0.2; done; sleep ${element === 1 ? 30 : 0}`;
  const { name, jobs, ids } = await array(trial, waits);
  const find = () => trial.scheduler.find([name], Date.now() - 60_000);
  const found = await find();
  const elements = found.map(({ element }) => element).sort();
  must(elements.join() === [...ids.keys()].join(), `found: the elements ${elements.join()}`);
  const wrong = found.find(({ id, element }) => id !== ids[element as number]);
  must(
    wrong === undefined,
    `element ${wrong?.element} is found as ${wrong?.id}, submit returned ${ids[wrong?.element as number]}`,
  );
  await trial.scheduler.cancel([{ name, element: 1 }]);
  writeFileSync(go, '');
  for (const [i, job] of jobs.entries()) if (i !== 1) await keepsOn(trial, job.name, i);
  await trial.until('the end of element 1', async () => {
    const one = (await find()).find(({ element }) => element === 1);
    return nowhere(one ?? null) ? true : null;
  });
  const code = trial.marks.ended(jobs[1]!.name)?.code ?? NOT_BEGUN;
  must(code !== 0, 'element 1 kept running');
}

async function keepsOn(trial: Trial, name: string, element: number): Promise<void> {
  const { code } = await trial.ended(name);
  must(code === 0, `element ${element} ended with ${code}`);
}

/** A job of two parts: one task of two CPUs, and two tasks of one. */
async function inParts(trial: Trial, text: string) {
  if (!(await trial.scheduler.capacity()).takesParts)
    throw new Skipped('capacity or describe reports that there are no jobs of several parts');
  const any = { resourcesPerTask: [], tasksPerMachine: null, exclusive: null, sameSwitch: null };
  const parts = [
    { ...any, tasks: 1, cpusPerTask: 2, memoryMbPerTask: 50 },
    { ...any, tasks: 2, cpusPerTask: 1, memoryMbPerTask: 40 },
  ];
  const job = trial.prepare(text, { tasks: 3, jobParts: parts });
  return { ...job, cpusPerTask: 2, parts: parts.map((part) => ({ ...part, nodes: null })) };
}

const PART_SAID = [
  'TASK_INDEX',
  'PART',
  'PART_TASKS',
  'PART_TASK_INDEX',
  'CPUS_PER_TASK',
  'MEMORY_MB_PER_TASK',
];

async function runsParts(trial: Trial): Promise<void> {
  const variables = PART_SAID.map((name) => `$SWITCHYARD_${name}`).join(' ');
  const machines = 'a=$SWITCHYARD_PART_MACHINES_0 b=$SWITCHYARD_PART_MACHINES_1';
  const job = await inParts(trial, `echo "${variables} ${machines}"`);
  const ids = [...(await trial.submit(job)), ...(await trial.submit(job))];
  const { code } = await trial.ended(job.name);
  must(code === 0, `exit code ${code}: ${trial.output(job.name, 'err')}`);
  await trial.listed(job.name, 'the end of the second', nowhere);
  const where = trial.marks.where(job.name)!;
  must(
    ids.includes(where.localId),
    `the script has ID ${where.localId}, submit returned ${ids.join(' and ')}`,
  );
  const lines = trial.output(job.name).trim().split('\n').sort();
  const said = lines.map((line) => line.replace(/ a=.*/, ''));
  const wanted = ['0 0 1 0 2 50', '1 1 2 0 1 40', '2 1 2 1 1 40'];
  must(
    said.join() === wanted.join(),
    `the tasks have ${JSON.stringify(said)} of ${PART_SAID.join(', ')}; expected: ${JSON.stringify(wanted)}: ${trial.output(job.name, 'err')}`,
  );
  // Where each part is, task by task, and all of it together.
  const places = lines.map((line) => / a=(.*) b=(.*)$/.exec(line)?.slice(1) ?? []);
  const [first = '', second = ''] = places[0] ?? [];
  const counted = (list: string): number =>
    list.split(',').reduce((sum, one) => sum + Number(one.split(':')[1]), 0);
  const named = [first, second].flatMap((list) => list.split(',').map((one) => one.split(':')[0]));
  must(
    counted(first) === 1 && counted(second) === 2 && named.join() === where.nodes.join(),
    `the parts are at ${JSON.stringify(places[0])}, the job on ${where.nodes.join(' ')}: the prologue of parts must set nodes, and SWITCHYARD_PART_MACHINES_0 and _1 to node:tasks,…`,
  );
}

async function cancelsParts(trial: Trial): Promise<void> {
  const job = await inParts(trial, 'sleep 300');
  const [id] = await trial.submit(job);
  const found = await trial.scheduler.find([job.name], Date.now() - 60_000);
  must(
    found.length === 1 && found[0]?.id === id,
    `found: ${found.map((one) => one.id).join() || 'nothing'}, submit returned ${id}`,
  );
  await trial.began(job.name);
  const listed = (await trial.scheduler.list(trial.prefix)).filter(({ name }) => name === job.name);
  must(listed.length === 1, `it is listed ${listed.length} times`);
  must(listed[0]?.phase === 'RUNNING', `it has begun, and is ${listed[0]?.phase} (${listed[0]?.words})`);
  await trial.scheduler.cancel([{ name: job.name, element: null }]);
  await trial.listed(job.name, 'its end', nowhere);
  must(trial.marks.ended(job.name)?.code !== 0, 'its command ended with 0');
}
