/** Asks the processes of runs to end, and ends them. */
import { type RunName, type RunSignal, runKey, type SentSignal, type WarnSignal } from '../runner.js';
import { OPEN, SIGNAL } from './accounts.js';
import { INIT_NAMES } from './image-runtimes.js';
import type { Isolation } from './isolation.js';
import {
  commandLine,
  freeze,
  isNamed,
  isOfAccount,
  MARKER,
  type ProcessRow,
  processesOfRun,
} from './processes.js';
import type { ProcessRun } from './run.js';
import { BECOMES_COMMAND, TERMINAL_NAME } from './script.js';

/** After so many rounds of killing one by one, the lane is killed with its group. */
const MAX_KILL_ROUNDS = 50;

export class Signals {
  /** Runs that are being signalled by the account of their user. */
  private readonly signalled = new Set<ProcessRun>();

  constructor(
    private readonly agent: string,
    private readonly isolation: Isolation,
    private readonly warn: (fields: object, message: string) => void,
  ) {}

  /** The environment entry that only this run has. */
  marker(run: RunName): string {
    return `${MARKER}=${this.agent}/${runKey(run)}`;
  }

  /** Asks all processes of a run to end. Once each: to many programs a second SIGTERM means something else. */
  terminate(run: ProcessRun, name: WarnSignal): void {
    const processes = this.ask(run, name);
    for (const { pid } of processes) signal(pid, 'SIGCONT');
  }

  /** Sends a signal to all processes of a run, which may go on after it; answers which they are. */
  ask(run: ProcessRun, name: WarnSignal): readonly ProcessRow[] {
    const lane = run.slot.lanePid;
    const lives = run.slot.laneLives();
    const all = this.processes(run, lives);
    const inside = this.inside(run, all);
    const processes = inside.length > 0 ? inside : all;
    // The group at one stroke, so that a fork in between is met too; then those that have left it.
    const asGroup = lives && inside.length === 0;
    if (asGroup) signal(-lane, name);
    for (const { pid, group } of processes) if (!asGroup || group !== lane) signal(pid, name);
    this.signalAs(run, name);
    return processes;
  }

  /**
   * Which processes of a run get a signal; null: its command is not there yet. An `srun` of ours hands it on to its tasks, which get it anyway.
   */
  receivers(run: ProcessRun, to: SentSignal['to']): readonly ProcessRow[] | null {
    const all = this.processes(run, run.slot.laneLives());
    const inside = this.inside(run, all);
    const { account } = run;
    // Forked and not yet the command: a signal would end it, or be lost on it.
    const lane = commandLine(run.slot.lanePid);
    const becomesCommand = (pid: number): boolean => {
      const line = commandLine(pid);
      return (lane !== '' && line === lane) || BECOMES_COMMAND.some((words) => line.startsWith(`${words}\0`));
    };
    // What changes to the account of its user stays before the command.
    const [command, ...others] = (this.isInside(run) ? inside : all)
      .filter(
        ({ pid }) =>
          (account === null || isOfAccount(pid, account.uid)) &&
          !(run.terminal && isNamed(pid, TERMINAL_NAME)) &&
          !becomesCommand(pid),
      )
      .sort((a, b) => a.startTicks - b.startTicks || a.pid - b.pid);
    if (command === undefined) return null;
    if (to === 'COMMAND') return [command];
    const plain = others.filter(({ pid }) => !isNamed(pid, STEP));
    return to === 'ALL' ? [command, ...plain] : plain;
  }

  /** Each by itself: a lane that is stopped with its group could not tell how its command ends. */
  send(run: ProcessRun, name: RunSignal, processes: readonly ProcessRow[]): void {
    for (const { pid } of processes) signal(pid, name);
    if (run.account === null || this.isolation.launcher === null || processes.length === 0) return;
    const pids = processes.map(({ pid }) => String(pid));
    void this.doAs(run, SIGNAL, name.slice('SIG'.length), '0', '', ...pids);
  }

  /**
   * Kills the processes of a run one by one and spares its lane, which then tells exit code and times. What forks faster
   * than it is found is met again by the next round, and in the end by a signal to the whole group.
   */
  kill(run: ProcessRun, round: number): void {
    const lives = run.slot.laneLives();
    run.group?.kill();
    if (round > 2 && run.ownId !== null) {
      if (run.account === null) this.isolation.killAll(run.ownId);
      else freeze(run.ownId);
    }
    // Stopped at one stroke, so that nothing forks away under what is killed one by one.
    const frozen = lives && run.group === null;
    if (frozen) signal(-run.slot.lanePid, 'SIGSTOP');
    this.killEach(run, lives);
    if (frozen) signal(run.slot.lanePid, 'SIGCONT');
    if (round > MAX_KILL_ROUNDS && lives) signal(-run.slot.lanePid, 'SIGKILL');
  }

  /** Kills what a run whose command is over has left: it would use CPUs that are given to the next. Answers whether its slot was still held. */
  killLeft(run: ProcessRun): boolean {
    const held = run.slot.isHeld();
    if (held) this.killEach(run, run.slot.laneLives());
    if (run.group?.processes().length) run.group.kill();
    return held;
  }

  /** Kills the processes of a run whose lane is dead; answers how many there were. */
  killLost(run: ProcessRun): number {
    run.group?.kill();
    return this.killEach(run, false);
  }

  /**
   * Has the account of a run's user end what the run has left, and open what is to be kept, neither of which the agent may do. null: it may,
   * or there is nobody to ask.
   */
  clearAs(run: ProcessRun): Promise<void> | null {
    const { account, wanted, privateDirectory, slot } = run;
    if (account === null || this.isolation.launcher === null) return null;
    const clear = async (): Promise<void> => {
      for (let rounds = 0; rounds < MAX_KILL_ROUNDS; rounds++) {
        await this.doAs(run, SIGNAL, ...this.words(run, 'SIGKILL'));
        if (this.processes(run, slot.laneLives()).length === 0) break;
      }
      if (!wanted) return;
      if (privateDirectory) await this.doAs(run, OPEN, slot.workDirectory);
      if (wanted.tmp?.startsWith(slot.tmpDirectory)) await this.doAs(run, OPEN, wanted.tmp);
    };
    return clear();
  }

  private killEach(run: ProcessRun, laneLives: boolean): number {
    const found = this.processes(run, laneLives);
    for (const { pid } of found) signal(pid, 'SIGKILL');
    if (found.length > 0) this.signalAs(run, 'SIGKILL');
    return found.length;
  }

  private processes(run: ProcessRun, laneLives: boolean): ProcessRow[] {
    const { slot, ownId, group } = run;
    return processesOfRun(slot.lanePid, laneLives, this.marker(run), ownId, group?.processes());
  }

  /** Those of a sandbox or image: what holds it together would end it without grace. */
  private inside(run: ProcessRun, all: readonly ProcessRow[]): ProcessRow[] {
    return this.isInside(run) ? insideSandbox(all, run.slot.lanePid) : [];
  }

  private isInside({ image }: ProcessRun): boolean {
    return this.isolation.mode === 'sandbox' || image !== undefined;
  }

  /** Arguments of SIGNAL for a run. */
  private words(run: ProcessRun, signal: WarnSignal | 'SIGKILL'): string[] {
    const name = signal.slice('SIG'.length);
    const lane = run.slot.lanePid;
    const lives = run.slot.laneLives();
    const all = this.processes(run, lives);
    const inside = signal === 'SIGKILL' ? [] : this.inside(run, all);
    if (inside.length > 0) return [name, '0', '', ...inside.map(({ pid }) => String(pid))];
    const others = all.filter(({ group }) => group !== lane);
    return [name, lives ? String(lane) : '0', this.marker(run), ...others.map(({ pid }) => String(pid))];
  }

  /** Has the account of its user signal a run: only it may. */
  private signalAs(run: ProcessRun, name: WarnSignal | 'SIGKILL'): void {
    if (run.account === null || this.isolation.launcher === null) return;
    // It is killed again and again, but asked once.
    if (name === 'SIGKILL' && this.signalled.has(run)) return;
    this.signalled.add(run);
    void this.doAs(run, SIGNAL, ...this.words(run, name)).finally(() => this.signalled.delete(run));
  }

  private async doAs({ account, jobId, epoch }: ProcessRun, text: string, ...args: string[]): Promise<void> {
    const problem = await this.isolation.accounts!.do(account!, text, ...args);
    if (problem !== null)
      this.warn({ job: jobId, epoch, account: account!.name, problem }, 'the launcher failed');
  }
}

/** What `srun` in a job is called (slurm/submit.ts). */
const STEP = 'srun';

/** Those that a sandbox or container runs: behind the two of bubblewrap, or the init of a container, and what has launched these. */
function insideSandbox(all: readonly ProcessRow[], lane: number): ProcessRow[] {
  const below = (parents: ReadonlySet<number>): Set<number> =>
    new Set(all.filter(({ parent }) => parents.has(parent)).map(({ pid }) => pid));
  const passed = new Set<number>();
  let outer = below(new Set([lane]));
  const has = (name: string): boolean => [...outer].some((pid) => isNamed(pid, name));
  while (outer.size > 0 && !has('bwrap') && !INIT_NAMES.some(has)) {
    for (const pid of outer) passed.add(pid);
    outer = below(outer);
  }
  const holders = has('bwrap') ? [...outer, ...below(outer)] : outer;
  for (const pid of holders) passed.add(pid);
  // What an init starts has its name until it is the program.
  return all.filter(({ pid }) => !passed.has(pid) && !INIT_NAMES.some((name) => isNamed(pid, name)));
}

export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has gone by itself.
  }
}
