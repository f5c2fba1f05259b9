/** Makes a run of an assignment: all that it needs on this machine, up to the record that its lane will be told to begin. */
import { realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { devicesOf, type HostDevice } from '../devices.js';
import { REPORT_FILE } from '../files/checkpoint.js';
import { STEPS } from '../files/steps.js';
import { type Assignment, nameOf, runKey, type TerminalSize } from '../runner.js';
import type { Account } from './accounts.js';
import type { Cgroup } from './cgroup.js';
import { measuredDevices } from './device-use.js';
import { placeInputs } from './inputs.js';
import type { Isolation, Place } from './isolation.js';
import { limitsOf } from './limits.js';
import { bytesOf } from './measure.js';
import type { OutputPool, Outputs } from './outputs.js';
import { MARKER } from './processes.js';
import type { Remains } from './remains.js';
import { type ProcessRun, type RunRecord, runOf, upMs } from './run.js';
import {
  checkStrings,
  LaunchError,
  ProgramFinder,
  type RunCommand,
  runScript,
  startInput,
} from './script.js';
import type { Slot } from './slot.js';
import type { Slots } from './slots.js';
import { placeTask } from './tasks.js';

export interface LauncherOptions {
  /** Id of the agent. */
  agent: string;
  /** The environment that every run begins with. */
  baseEnvironment: Readonly<Record<string, string>>;
  isolation: Isolation;
  /** Of the host, as the run of this name sees them. */
  devices: (run: string) => readonly HostDevice[];
  slots: Slots;
  outputs: OutputPool;
  remains: Remains;
  /** Whether runs may have terminals. */
  terminals: boolean;
  /** Starts a slot's lane, unless there is one. */
  ensureLane: (slot: Slot) => void;
}

/** Linux takes no longer variable than 128 KiB. */
const VARIABLE_CHARS = 65_536;

/** What a run has been given so far. */
interface Given {
  slot: Slot | null;
  outputs: Outputs | null;
  /** The account of its user. */
  account: Account | null;
  ownId: number | null;
  group: Cgroup | null;
}

export class Launcher {
  private readonly programs = new ProgramFinder();
  private readonly baseEnvironment: readonly (readonly [string, string])[];

  constructor(private readonly options: LauncherOptions) {
    this.baseEnvironment = Object.entries(options.baseEnvironment);
  }

  /**
   * Records a run. Its lane is not told.
   *
   * @throws LaunchError where the job cannot be started; another error where the machine cannot. Then nothing of it is left.
   */
  launch(assignment: Assignment): ProcessRun {
    const given: Given = { slot: null, outputs: null, account: null, ownId: null, group: null };
    try {
      return this.record(assignment, given);
    } catch (error) {
      const { slot, outputs, group } = given;
      // A part of it may have been recorded.
      const trash = slot ? this.options.slots.putBack(slot) : [];
      if (outputs) this.options.outputs.putBack(outputs);
      group?.remove();
      this.options.remains.cleared({ ...given, trash });
      throw error;
    }
  }

  private record(assignment: Assignment, given: Given): ProcessRun {
    const { isolation } = this.options;
    const { jobId, user } = assignment;
    const key = runKey(assignment);
    if (!/^[\w.:=+-]+$/.test(jobId))
      throw new LaunchError(`job id "${jobId}": letters, digits and _.:=+- are accepted`);
    checkStrings(assignment);
    const account = isolation.accountOf(user);
    given.account = account;
    const slot = this.options.slots.take();
    given.slot = slot;
    this.options.ensureLane(slot);
    const outputs = this.options.outputs.take();
    given.outputs = outputs;
    const ownId = isolation.takeId(account);
    given.ownId = ownId;
    const uid = account?.uid ?? ownId;
    const image = isolation.imageOf(assignment);
    const host = this.options.devices(key);
    const command = this.command(assignment, slot, { account, uid, ownId, image }, host);
    const limits = limitsOf(assignment);
    const group = isolation.cgroups?.make(key, { ...limits, processes: isolation.processes }) ?? null;
    given.group = group;
    if (group) command.prologue.push(group.enter);
    // Written out: objects put together of others cost a run more than they save here.
    const record: RunRecord = {
      ...nameOf(assignment),
      startedAtMs: Date.now(),
      startedUpMs: upMs(),
      runTimeLimitS: assignment.runTimeLimitS,
      warnS: assignment.warnS,
      warnSignal: assignment.warnSignal,
      killGraceS: assignment.killGraceS,
      privateDirectory: assignment.workingDirectory === null,
      hasHosts: assignment.tasks > 1,
      cpuBeforeS: slot.childrenCpuS,
      outputsDir: outputs.dir,
      uid,
      account,
      ownId,
      cgroup: group?.dir ?? null,
      memoryMb: limits.memoryMb,
      cpus: limits.cpus,
    };
    if (image !== null)
      record.image = { ...image, program: command.program, tmp: join(isolation.runtime!.root, 'tmp') };
    if (command.terminal !== null) record.terminal = true;
    const { outputs: wanted = [], checkpoint, stagedS } = assignment;
    if (stagedS !== undefined) record.stagedS = stagedS;
    const before = assignment.signals?.at(-1);
    if (before !== undefined) record.signalledBefore = before.number;
    const devices = measuredDevices(assignment, host);
    if (devices.length > 0) record.devices = devices;
    if (wanted.length > 0 || checkpoint !== undefined) {
      record.wanted = {
        directory: realOf(command.directory),
        tmp: tmpOf(isolation.mode === 'sandbox', record.image?.tmp, slot),
        outputs: wanted,
      };
      if (checkpoint !== undefined) {
        record.wanted.checkpoint = checkpoint;
        record.wanted.reports = realOf(slot.workDirectory);
      }
    }
    const run = runOf(record, slot, outputs, group, true);
    run.bytesBefore = slot.bytes ?? bytesOf(slot.lanePid);
    const input = startInput(command);
    const start = input === null ? null : command.terminal ? slot.openInput(input) : slot.writeStart(input);
    slot.record(runScript(JSON.stringify(record), key, slot.dir, outputs.dir, start, command));
    return run;
  }

  /** What a run executes; puts into its directories what it finds there, and hands them to its account. */
  private command(
    assignment: Assignment,
    slot: Slot,
    who: Pick<Required<Place>, 'account' | 'uid' | 'ownId' | 'image'>,
    host: readonly HostDevice[],
  ): RunCommand & { prologue: string[] } {
    const { account, uid, image } = who;
    const { isolation } = this.options;
    const directory = assignment.workingDirectory ?? slot.workDirectory;
    const byGroup = account !== null && isolation.launcher !== null;
    const devices = devicesOf(assignment, host);
    const environment = this.environment(assignment, who, slot, directory);
    add(environment, devices.environment);
    // Not before what the agent puts there is there: from then on its owner may make links of it.
    const owner = uid === null ? null : { uid, gid: account?.gid ?? uid, byGroup };
    slot.give(owner, isolation.mode === 'sandbox' || image !== null);
    const place = {
      ...{ ...who, directory, work: slot.workDirectory, tmp: slot.tmpDirectory },
      inputs: (assignment.staged ?? []).map((input) => input.path),
      devices: devices.files,
    };
    const launchers = isolation.launchers(place);
    const inside = image && isolation.inside(place, image);
    // What the agent may see is no business of a job that may not: then it is the job's account that finds its program.
    const program =
      launchers.length > 0 || inside
        ? assignment.command
        : this.find(assignment.command, environment, directory);
    return {
      ...{ program, arguments: assignment.arguments, environment, directory, launchers, inside },
      terminal: this.terminal(assignment),
      // The agent looks at what a launcher's account makes by the group of both.
      umask: byGroup ? '007' : null,
      prologue: isolation.prologue(account),
    };
  }

  /** @throws LaunchError where the operator does not allow terminals */
  private terminal({ terminal = null }: Assignment): TerminalSize | null {
    if (terminal !== null && !this.options.terminals)
      throw new LaunchError('this machine does not allow terminals (AGENT_TERMINALS of its agent)');
    return terminal;
  }

  /** @throws LaunchError where the agent cannot start this for a job that has its rights */
  private find(command: string, environment: ReadonlyMap<string, string>, directory: string): string {
    if (!isDirectory(directory)) throw new LaunchError(`${directory}: no such directory`);
    return this.programs.find(command, environment.get('PATH') ?? '', directory);
  }

  /** All that a run finds in its environment; puts into its directory what that speaks of. */
  private environment(
    assignment: Assignment,
    who: Pick<Required<Place>, 'account' | 'uid' | 'image'>,
    slot: Slot,
    directory: string,
  ): Map<string, string> {
    const environment = new Map(this.baseEnvironment);
    environment.set('PWD', directory);
    add(environment, this.placeEnvironment(who, slot));
    add(environment, placeTask(assignment, slot.workDirectory));
    add(environment, assignment.environment);
    this.addRunEnvironment(environment, assignment);
    environment.set('SWITCHYARD_STEPS', join(slot.workDirectory, STEPS));
    if (assignment.checkpoint !== undefined)
      environment.set('SWITCHYARD_CHECKPOINT_REPORT', join(slot.workDirectory, REPORT_FILE));
    add(environment, placeInputs(assignment, slot.workDirectory));
    return environment;
  }

  /** What an account that is nobody's finds as its home. */
  private placeEnvironment(
    { uid, account, image }: Pick<Required<Place>, 'account' | 'uid' | 'image'>,
    slot: Slot,
  ): Record<string, string> {
    const { isolation } = this.options;
    const ownTmp = isolation.mode === 'sandbox' || image !== null;
    if (uid === null && !ownTmp) return {};
    const tmp = ownTmp ? '/tmp' : slot.tmpDirectory;
    if (account !== null) {
      const HOME = isolation.shows(account.home, image !== null) ? account.home : slot.workDirectory;
      return { HOME, TMPDIR: tmp, USER: account.name, LOGNAME: account.name };
    }
    const name = uid === null ? undefined : `job-${uid}`;
    return { HOME: slot.workDirectory, TMPDIR: tmp, ...(name && { USER: name, LOGNAME: name }) };
  }

  /** What every run finds in its environment. */
  private addRunEnvironment(environment: Map<string, string>, assignment: Assignment): void {
    const { jobId, epoch, tasks, cpusPerTask, memoryMbPerTask, arrayIndex, machines } = assignment;
    const names = machines.map((machine) => `${machine.name}:${machine.tasks}`).join(',');
    environment.set('SWITCHYARD_JOB_ID', jobId);
    environment.set('SWITCHYARD_EPOCH', String(epoch));
    environment.set('SWITCHYARD_TASKS', String(tasks));
    environment.set('SWITCHYARD_TASK_INDEX', String(assignment.task ?? 0));
    environment.set('SWITCHYARD_CPUS_PER_TASK', String(cpusPerTask));
    environment.set('SWITCHYARD_MEMORY_MB_PER_TASK', String(memoryMbPerTask));
    for (const [name, amounts] of [
      ['SWITCHYARD_RESOURCES_PER_TASK', assignment.resourcesPerTask],
      ['SWITCHYARD_RESOURCES', assignment.resources],
    ] as const)
      if (amounts.length > 0)
        environment.set(name, amounts.map(({ kind, amount }) => `${kind}=${amount}`).join(','));
    if (names.length <= VARIABLE_CHARS) environment.set('SWITCHYARD_MACHINES', names);
    add(environment, partEnvironment(assignment));
    if (arrayIndex !== null) environment.set('SWITCHYARD_ARRAY_INDEX', String(arrayIndex));
    environment.set(MARKER, `${this.options.agent}/${runKey(assignment)}`);
  }
}

/** A map, because objects put together of others cost a run more than all of its variables. */
function add(environment: Map<string, string>, variables: Readonly<Record<string, string>>): void {
  for (const name in variables) environment.set(name, variables[name] as string);
}

/** What a task of a job of several parts finds of its part and of the others; of one command for all tasks, of all parts. */
function partEnvironment({ jobParts = [], part, task, machines }: Assignment): Record<string, string> {
  if (jobParts.length === 0) return {};
  const environment: Record<string, string> = { SWITCHYARD_PARTS: String(jobParts.length) };
  let first = 0;
  let entry = 0;
  for (const [i, { tasks }] of jobParts.entries()) {
    if (i === part && task !== undefined) {
      environment.SWITCHYARD_PART = String(part);
      environment.SWITCHYARD_PART_TASKS = String(tasks);
      environment.SWITCHYARD_PART_TASK_INDEX = String(task - first);
    }
    first += tasks;
    const names: string[] = [];
    for (let left = tasks; left > 0 && entry < machines.length; entry++) {
      const machine = machines[entry] as (typeof machines)[number];
      names.push(`${machine.name}:${machine.tasks}`);
      left -= machine.tasks;
    }
    const written = names.join(',');
    if (written.length <= VARIABLE_CHARS) environment[`SWITCHYARD_PART_MACHINES_${i}`] = written;
  }
  return environment;
}

/** What a run has as its `/tmp`. `inImage`: that of an image, in what is new there, and not made yet. */
function tmpOf(inSandbox: boolean, inImage: string | undefined, slot: Slot): string {
  if (inImage !== undefined) return join(realOf(slot.tmpDirectory), inImage);
  return realOf(inSandbox ? slot.tmpDirectory : '/tmp');
}

function realOf(directory: string): string {
  try {
    return realpathSync(directory);
  } catch (error) {
    throw new LaunchError(`the agent cannot find outputs in ${directory}: ${(error as Error).message}`);
  }
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
