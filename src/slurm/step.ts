/**
 * Steps: srun in a job. Its tasks are processes of the job on the host where its script runs, as on each of the job's machines that this host's
 * agent serves; on other hosts an agent starts nothing for a job but its tasks.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, readdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { programEnvironment } from '../platform/connection.js';
import { MAX } from '../platform/limits.js';
import { type NotedStep, STEP_RECORDS } from '../platform/steps.js';
import { type Asked, patternOf } from '../words/index.js';
import { SlurmError } from './ask.js';
import { complain, pause } from './command.js';

interface Task {
  task: number;
  node: number;
  /** Among those of its node. */
  local: number;
}

interface Machine {
  name: string;
  host: string;
  /** Of the job. */
  tasks: number;
}

/** The machines of the job, in order. */
function machinesOf(env: Readonly<Record<string, string | undefined>>): Machine[] {
  const machines = (env.SWITCHYARD_MACHINES || 'localhost:1').split(',').map((one) => {
    const [, name = '', tasks] = /^(.*):(\d+)$/.exec(one) ?? [];
    return { name, tasks: Number(tasks) };
  });
  // A line for each task of the job.
  const hosts = env.SWITCHYARD_HOSTFILE ? readFileSync(env.SWITCHYARD_HOSTFILE, 'utf8').split('\n') : [];
  let first = 0;
  return machines.map(({ name, tasks }) => {
    const host = hosts[first] ?? '';
    first += tasks;
    return { name, host, tasks };
  });
}

/** How many tasks there are, and on how many machines: as Slurm says it, with what the job was submitted with where nothing is said. */
function sizeOf(
  { ntasks, nodes, ntasksPerNode }: Asked,
  jobTasks: number,
  all: number,
): { count: number; used: number } {
  const perNode = ntasksPerNode ?? Math.ceil(jobTasks / all);
  const count = ntasks ?? ((nodes ?? ntasksPerNode) ? (nodes ?? all) * perNode : jobTasks);
  const wanted = nodes ?? all;
  const used = Math.min(wanted, count);
  if (used < wanted)
    process.stderr.write(
      `srun: Warning: can't run ${count} processes on ${wanted} nodes, setting nnodes to ${used}\n`,
    );
  if (used > all) throw new SlurmError(`Only allocated ${all} nodes asked for ${used}`);
  return { count, used };
}

/** Neighbors are on one machine, and each machine has as many, or one more. */
function layOut(count: number, nodes: number): Task[] {
  const tasks: Task[] = [];
  for (let node = 0; node < nodes; node++) {
    const here = Math.floor(count / nodes) + (node < count % nodes ? 1 : 0);
    for (let local = 0; local < here; local++) tasks.push({ task: tasks.length, node, local });
  }
  return tasks;
}

/** Runs a step of this job. Gives the largest exit code of a task. */
export async function runStep(asked: Asked, command: string, args: readonly string[]): Promise<number> {
  const env = programEnvironment();
  const all = machinesOf(env);
  const { count, used } = sizeOf(asked, Number(env.SLURM_NTASKS ?? 1), all.length);
  const machines = all.slice(0, used);
  const elsewhere = machines.find(({ host }) => host !== machines[0]!.host);
  if (elsewhere)
    throw new SlurmError(
      `machine ${elsewhere.name} is on another host (${elsewhere.host}), where steps cannot be started: use -N ${machines.indexOf(elsewhere)}, launch with mpirun, or submit with \`switchyard submit --tasks ${all.length}\``,
    );
  // By this name the agent knows what hands on signals.
  process.title = 'srun';
  const cpus = count * (asked.cpusPerTask ?? 1);
  const entry = new Entry(env.SWITCHYARD_STEPS, cpus);
  if (asked.stepExclusive) await entry.untilFree(cpusOf(env), env.SLURM_JOB_ID);
  const tasks = layOut(count, used);
  const perNode = machines.map((_, node) => tasks.filter((one) => one.node === node).length);
  const variables = {
    ...env,
    ...asked.environment,
    SLURM_STEP_ID: String(entry.number),
    SLURM_STEPID: String(entry.number),
    SLURM_NTASKS: String(count),
    SLURM_NPROCS: String(count),
    SLURM_NNODES: String(used),
    SLURM_STEP_NUM_TASKS: String(count),
    SLURM_STEP_NUM_NODES: String(used),
    SLURM_STEP_NODELIST: machines.map(({ name }) => name).join(','),
    SLURM_STEP_TASKS_PER_NODE: counted(perNode),
    SLURM_TASKS_PER_NODE: counted(perNode),
    ...(asked.cpusPerTask !== undefined && { SLURM_CPUS_PER_TASK: String(asked.cpusPerTask) }),
  };
  const step = new Step(asked, [command, ...args], variables, machines, entry.number);
  const name = (asked.name ?? basename(command)).slice(0, MAX.nameChars);
  const noteEnd = entry.note({
    name,
    tasks: count,
    machines: used,
    cpus: allocated(asked, cpus, machines, env),
  });
  let end: TaskEnd = { code: 1, signal: null };
  try {
    end = await step.run(tasks);
    return end.code;
  } finally {
    noteEnd(end);
    entry.end();
  }
}

/** `code`: as a shell tells it, 128 + n after signal n. */
interface TaskEnd {
  code: number;
  signal: NodeJS.Signals | null;
}

/** `2(x3),1`, as Slurm writes the tasks of each node. */
function counted(perNode: readonly number[]): string {
  const runs: [number, number][] = [];
  for (const tasks of perNode) {
    const last = runs.at(-1);
    if (last?.[0] === tasks) last[1]++;
    else runs.push([tasks, 1]);
  }
  return runs.map(([tasks, times]) => (times > 1 ? `${tasks}(x${times})` : String(tasks))).join(',');
}

/** As Slurm counts it: a step has all CPUs that the job has on its machines, unless it says that it takes no more than it asks for. */
function allocated(
  { stepExclusive, cpusPerTask }: Asked,
  askedFor: number,
  machines: readonly Machine[],
  env: Readonly<Record<string, string | undefined>>,
): number {
  if (stepExclusive || cpusPerTask !== undefined) return askedFor;
  return machines.reduce((sum, { tasks }) => sum + tasks, 0) * Number(env.SWITCHYARD_CPUS_PER_TASK ?? 1);
}

const cpusOf = (env: Readonly<Record<string, string | undefined>>): number =>
  Number(env.SWITCHYARD_TASKS ?? 1) * Number(env.SWITCHYARD_CPUS_PER_TASK ?? 1);

const RETRY_MS = 200;

/**
 * A step in the directory of the job's steps: a file by its number, with its process and its CPUs. Those that have ended are removed by the next,
 * except the last, which keeps the count: as many are there as run at once, and one.
 */
class Entry {
  readonly number: number = 0;

  /** `directory`: of an agent that has none, every step is number 0. */
  constructor(
    private readonly directory: string | undefined,
    private readonly cpus: number,
  ) {
    if (directory === undefined) return;
    // The agent looks into it, as the group of the job's directory where it is not root.
    mkdirSync(directory, { recursive: true, mode: 0o770 });
    for (this.number = this.next(); !this.isMine(); this.number = this.next());
    for (const { number } of this.before().filter(({ lives }) => !lives)) this.remove(number);
  }

  private next(): number {
    return Math.max(-1, ...this.numbers()) + 1;
  }

  private numbers(): number[] {
    return readdirSync(this.directory!).map(Number).filter(Number.isInteger);
  }

  private isMine(): boolean {
    try {
      writeFileSync(join(this.directory!, String(this.number)), `${process.pid} ${this.cpus}\n`, {
        flag: 'wx',
      });
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
      throw error;
    }
  }

  /** Steps that were begun before; one that is just about to write its file has as many CPUs as there are. */
  private before(): { number: number; cpus: number; lives: boolean }[] {
    return this.numbers()
      .filter((number) => number < this.number)
      .map((number) => {
        const [pid, cpus] = textOf(join(this.directory!, String(number))).split(' ');
        return cpus === undefined
          ? { number, cpus: Number.POSITIVE_INFINITY, lives: true }
          : { number, cpus: Number(cpus), lives: pid !== undefined && isAlive(Number(pid)) };
      });
  }

  /** In the order of their numbers; a step that asks for more than the job has gets all of it for itself. */
  async untilFree(cpus: number, job: string | undefined): Promise<void> {
    if (this.directory === undefined) return;
    for (;;) {
      const taken = this.before().reduce((sum, one) => sum + (one.lives ? one.cpus : 0), 0);
      if (taken + Math.min(this.cpus, cpus) <= cpus) return;
      warnBusy(job);
      await pause(RETRY_MS);
    }
  }

  /** Notes for the agent that the step begins, and by the function that it answers with that it has ended. */
  note(of: Pick<NotedStep, 'name' | 'tasks' | 'machines' | 'cpus'>): (end: TaskEnd) => void {
    const begun = { number: this.number, ...of, startedAtMs: Date.now() };
    this.write({ ...begun, endedAtMs: null, exitCode: null, signal: null });
    return ({ code, signal }) =>
      this.write({ ...begun, endedAtMs: Date.now(), exitCode: code & 255, signal });
  }

  /** Of a later step nothing is kept. */
  private write(record: NotedStep): void {
    if (this.directory === undefined || this.number >= MAX.runSteps) return;
    try {
      appendFileSync(join(this.directory, STEP_RECORDS), `${JSON.stringify(record)}\n`, { mode: 0o660 });
    } catch {
      // No room on the disk: the step matters more.
    }
  }

  end(): void {
    if (this.directory !== undefined && Math.max(...this.numbers()) > this.number) this.remove(this.number);
  }

  private remove(number: number): void {
    try {
      unlinkSync(join(this.directory!, String(number)));
    } catch {
      // Another step has.
    }
  }
}

let saidBusy = false;
function warnBusy(job: string | undefined): void {
  if (!saidBusy)
    process.stderr.write(
      `srun: Job ${job} step creation temporarily disabled, retrying (Requested nodes are busy)\n`,
    );
  saidBusy = true;
}

/** Of one that was removed: of a process that there is not. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '0 0';
  }
}

function isAlive(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0);
  } catch {
    return false;
  }
}

const FORWARDED = ['SIGTERM', 'SIGINT', 'SIGUSR1', 'SIGUSR2', 'SIGHUP'] as const;

class Step {
  private readonly children = new Set<ChildProcess>();
  private killed = false;

  constructor(
    private readonly asked: Asked,
    private readonly command: readonly string[],
    private readonly env: Readonly<Record<string, string | undefined>>,
    private readonly machines: readonly Machine[],
    private readonly number: number,
  ) {}

  /** How the task ended that has the largest exit code. */
  async run(tasks: readonly Task[]): Promise<TaskEnd> {
    this.emptyFiles(tasks);
    for (const signal of FORWARDED) process.on(signal, () => this.signal(signal));
    const ends = await Promise.all(tasks.map((one) => this.start(one, String(tasks.length - 1).length)));
    return ends.reduce((most, end) => (end.code > most.code ? end : most), { code: 0, signal: null });
  }

  private signal(name: NodeJS.Signals): void {
    for (const child of this.children) child.kill(name);
  }

  private envOf({ task, node, local }: Task): NodeJS.ProcessEnv {
    return {
      ...this.env,
      SLURM_PROCID: String(task),
      SLURM_LOCALID: String(local),
      SLURM_NODEID: String(node),
      SLURMD_NODENAME: this.machines[node]!.name,
    };
  }

  private start(one: Task, width: number): Promise<TaskEnd> {
    const [command = '', ...args] = this.command;
    const redirected = this.redirection(one);
    const { label, output, error } = this.asked;
    const [out, err] = [label && output === undefined, label && output === undefined && error === undefined];
    const words =
      redirected === ''
        ? [command, ...args]
        : ['/bin/sh', '-c', `${redirected}\nexec "$@"`, 'sh', command, ...args];
    const child = spawn(words[0]!, words.slice(1), {
      env: this.envOf(one),
      stdio: ['inherit', out ? 'pipe' : 'inherit', err ? 'pipe' : 'inherit'],
    });
    this.children.add(child);
    for (const stream of ['stdout', 'stderr'] as const)
      if (child[stream])
        createInterface({ input: child[stream] }).on('line', (line) =>
          process[stream].write(`${String(one.task).padStart(width)}: ${line}\n`),
        );
    return new Promise((done) => {
      child.on('error', (error: NodeJS.ErrnoException) => {
        const code = constants.errno[error.code as keyof typeof constants.errno] ?? 1;
        const why = UNSTARTED[error.code ?? ''] ?? error.message;
        process.stderr.write(
          `slurmstepd-${this.machines[one.node]!.name}: error: execve(): ${command}: ${why}\n`,
        );
        this.ended(child, one, code, null);
        done({ code, signal: null });
      });
      // Not before all that it has written was read.
      child.on('close', (code, signal) => {
        if (code !== null && code < 0) return;
        this.ended(child, one, code, signal);
        done({ code: code ?? 128 + constants.signals[signal!], signal });
      });
    });
  }

  /** Tells of a task that failed, in Slurm's words, and ends the others if that was asked for. */
  private ended(child: ChildProcess, { task, node }: Task, code: number | null, signal: string | null): void {
    this.children.delete(child);
    if (code === 0) return;
    const how = code === null ? (SIGNALLED[signal!] ?? signal) : `Exited with exit code ${code}`;
    complain('srun', `${this.machines[node]!.name}: task ${task}: ${how}`);
    if (!this.asked.killOnBadExit || this.killed) return;
    this.killed = true;
    this.signal('SIGTERM');
    this.signal('SIGCONT');
    setTimeout(() => this.signal('SIGKILL'), KILL_AFTER_MS).unref();
  }

  /** What its tasks write together is emptied once, before the first of them. */
  private emptyFiles(tasks: readonly Task[]): void {
    const { append, directory, output, error } = this.asked;
    if (append) return;
    const emptied = new Set<string>();
    for (const one of tasks)
      for (const pattern of [output, error])
        if (pattern !== undefined && pattern !== 'none') emptied.add(`: >${this.named(pattern, one)}`);
    if (emptied.size === 0) return;
    const inside = directory === undefined ? [] : [`cd ${patternOf(directory)} || exit 1`];
    const { status } = spawnSync('/bin/sh', ['-c', [...inside, ...emptied].join('\n')], {
      env: this.envOf(tasks[0]!),
      stdio: 'inherit',
    });
    if (status !== 0) throw new SlurmError('Could not open the output file of the step');
  }

  /** A pattern of file names in a step: its tasks and machines are told apart. */
  private named(pattern: string, { task, node }: Task): string {
    const values: Readonly<Record<string, string>> = {
      t: String(task),
      n: String(node),
      s: String(this.number),
      N: this.machines[node]!.name,
      J: `${this.env.SLURM_JOB_ID}.${this.number}`,
    };
    return patternOf(
      pattern.replaceAll(/%(\d*)([%tnsNJ])/g, (written, width: string, letter: string) =>
        letter === '%' ? written : values[letter]!.padStart(Math.min(Number(width), 10), '0'),
      ),
    );
  }

  /** Every task adds to its files, which several may share. */
  private redirection(one: Task): string {
    const { output, error, input, directory } = this.asked;
    const file = (pattern: string): string => (pattern === 'none' ? '/dev/null' : this.named(pattern, one));
    return [
      directory !== undefined && `cd ${patternOf(directory)} || exit 1`,
      input !== undefined && input !== 'none' && `exec <${this.named(input, one)}`,
      output !== undefined && `exec >>${file(output)}${error === undefined ? ' 2>&1' : ''}`,
      error !== undefined && `exec 2>>${file(error)}`,
    ]
      .filter(Boolean)
      .join('\n');
  }
}

/** Between the signal that asks the other tasks to end and the one that ends them: Slurm's KillWait. */
const KILL_AFTER_MS = 30_000;

/** What Slurm says of a program that cannot be started; the exit code of its task is the number of the error. */
const UNSTARTED: Readonly<Record<string, string>> = {
  EACCES: 'Permission denied',
  ENOENT: 'No such file or directory',
};

/** What Slurm says of a task that a signal has ended. */
const SIGNALLED: Readonly<Record<string, string>> = {
  SIGABRT: 'Aborted',
  SIGHUP: 'Hangup',
  SIGINT: 'Interrupt',
  SIGKILL: 'Killed',
  SIGSEGV: 'Segmentation fault',
  SIGTERM: 'Terminated',
};
