import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  opendirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { hostEnvironment } from '../../platform/environment.js';
import { isOfThisBoot, processIdentity } from '../../platform/lockfile.js';
import { LANE_NAME, LANE_SCRIPT, LaunchError } from './script.js';

/** How a run ended, as its lane wrote it down. */
export interface EndRecord {
  key: string;
  /** As a shell tells it: 128 + n after signal n. */
  code: number;
  /** User and system time of all that the lane has waited for up to now. */
  childrenCpuS: number;
  /** When it was written. */
  atMs: number;
}

interface Lane {
  pid: number;
  identity: string;
}

/** Whose the directories of a run are. */
interface Owner {
  uid: number;
  gid: number;
  /** They stay ours, and are the account's by its group: only root can give things away. */
  byGroup: boolean;
}

/** How `run` begins: comments to the shell. */
const HELD = '# ';
const FREE = '#-';
/** More than any record of an end takes. */
const END_BYTES = 1024;
/** Names in a directory of a run that are looked at, so that its owner is told of some. */
const LOOKED_AT = 100;
/** What a pipe of Linux holds. */
const PIPE_BYTES = 65_536;
/** More than the name of any run takes. */
const NAME_BYTES = 512;

/**
 * A directory in which one run at a time takes place, and the lane (see script.ts) that carries it out.
 *
 * Slots are used again and again, and so are their files: with ext4, creating files while thousands have just been deleted
 * takes 0.5 ms each (it looks for an inode that was not freed in the last seconds), more than all the rest of a run; and
 * truncating a file that is not empty makes it wait for the disk. So `run` and `end` are written over, not truncated: what
 * is left of longer ones lies behind what is read.
 *
 *   run    what the lane is to do; line 1 is the record of the run, or says that the slot is free. Written before the lane
 *          is told
 *   begun  the run that the lane was last told to begin, written before it does
 *   end    how the last run ended
 *   work   the directory of runs that ask for none
 *   start  what the last step of a run reads (script.ts): program, directory, environment
 *   input  a pipe from which the last step of a run in a terminal reads what is typed, behind what `start` has
 *   alive  a pipe that the run's processes hold open
 *   lane   the lane's pid and identity
 */
export class Slot {
  /** Time used by the children of the lane that has just been started or read from. */
  childrenCpuS = 0;
  /** Bytes that the lane and its children had read and written at the end of its last run; null: it has had none. */
  bytes: { read: number; written: number } | null = null;
  idleSinceMs = 0;
  private readonly runFd: number;
  private readonly endFd: number;
  private startFd: number | null = null;
  private inputFd: number | null = null;
  private child: ChildProcess | null = null;
  /** Whose the directories of runs are; null: nobody was told. */
  private uid: number | null = null;
  private lane: Lane | null = null;

  constructor(readonly dir: string) {
    mkdirSync(join(dir, 'work'), { recursive: true, mode: 0o700 });
    this.runFd = openSync(join(dir, 'run'), constants.O_RDWR | constants.O_CREAT, 0o600);
    try {
      this.endFd = openSync(join(dir, 'end'), constants.O_RDWR | constants.O_CREAT, 0o600);
    } catch (error) {
      closeSync(this.runFd);
      throw error;
    }
    try {
      // Its room is taken now: how a run ended can be written down also when the disk is full. Behind what a lane of an earlier
      // release has written, or is about to.
      if (fstatSync(this.endFd).size < END_BYTES)
        writeWhole(this.endFd, ' '.repeat(END_BYTES / 2), END_BYTES / 2);
      // Nor may a run wait for room for the word that it begins.
      if (!existsSync(this.begunPath)) writeFileSync(this.begunPath, ' '.repeat(NAME_BYTES), { mode: 0o600 });
    } catch (error) {
      this.close();
      throw error;
    }
    this.lane = readLane(dir);
  }

  private get begunPath(): string {
    return join(this.dir, 'begun');
  }

  get workDirectory(): string {
    return join(this.dir, 'work');
  }

  get tmpDirectory(): string {
    return join(this.dir, 'tmp');
  }

  /** Some of what a run has left in a /tmp of its own, by name; what it hides, and the way to a directory of the host's, does not count. `below` its directory for temporary files. */
  leftInTmp(most: number, below: string): string[] {
    const names = firstNames(join(this.tmpDirectory, below), LOOKED_AT) ?? [];
    return names.filter((name) => !name.startsWith('.') && !existsSync(join('/tmp', name))).slice(0, most);
  }

  /** Hands the directories of runs to an account (null: ours). `tmp`: also one for temporary files. */
  give(owner: Owner | null, tmp: boolean): void {
    if (tmp || owner !== null) mkdirSync(this.tmpDirectory, { recursive: true, mode: 0o700 });
    if (owner === null || owner.uid === this.uid) return;
    for (const dir of [this.workDirectory, this.tmpDirectory]) {
      chownSync(dir, owner.byGroup ? -1 : owner.uid, owner.gid);
      // What is made in them is the group's too.
      if (owner.byGroup) chmodSync(dir, 0o2770);
    }
    chmodSync(this.dir, 0o711);
    this.uid = owner.uid;
  }

  /** Writes what the last step of a run reads, which only the agent can open; answers where. */
  writeStart(text: string): string {
    const path = join(this.dir, 'start');
    if (this.startFd === null) {
      // What an earlier agent left may be open to somebody.
      rmSync(path, { force: true });
      this.startFd = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL, 0o600);
    }
    const bytes = Buffer.byteLength(text);
    writeWhole(this.startFd, text);
    // Nothing of an earlier run is left behind it.
    if (fstatSync(this.startFd).size > bytes) ftruncateSync(this.startFd, bytes);
    return path;
  }

  /**
   * Makes the pipe that the last step of a run in a terminal reads, with what it reads first, and answers where it is.
   *
   * @throws LaunchError where that is more than a pipe holds
   */
  openInput(text: string): string {
    this.closeInput();
    const path = this.inputPath;
    // A new one: what was typed in an earlier run is gone with its own.
    rmSync(path, { force: true });
    execFileSync('mkfifo', ['-m', '600', path], { env: hostEnvironment() });
    const body = Buffer.from(text);
    const head = Buffer.alloc(4);
    head.writeUInt32BE(body.length);
    // Held open for reading too, until the lane has opened it.
    const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
    this.inputFd = fd;
    if (
      head.length + body.length > PIPE_BYTES ||
      writeSync(fd, Buffer.concat([head, body])) < 4 + body.length
    )
      throw new LaunchError(
        `arguments and environment have ${body.length} bytes; accepted: with a terminal, at most ${PIPE_BYTES - 4}`,
      );
    return path;
  }

  /** Writes a piece of input for the run in a terminal, whole or not at all; false: it takes no more now, or is over. */
  writeInput(piece: Buffer): boolean {
    try {
      this.inputFd ??= openSync(this.inputPath, constants.O_WRONLY | constants.O_NONBLOCK);
      return writeSync(this.inputFd, piece) === piece.length;
    } catch {
      return false; // EAGAIN: nobody reads. ENXIO, ENOENT: nobody is there.
    }
  }

  private closeInput(): void {
    if (this.inputFd !== null) closeSync(this.inputFd);
    this.inputFd = null;
  }

  private get inputPath(): string {
    return join(this.dir, 'input');
  }

  /** Pid of the lane; also its process group and session. */
  get lanePid(): number {
    return this.lane?.pid ?? 0;
  }

  /** Pid of the lane, if it is this agent's. */
  get ownLanePid(): number | undefined {
    return this.child?.pid;
  }

  /** Whether the lane of the run lives, be it this agent's or an earlier one's. */
  laneLives(): boolean {
    return this.lane !== null && processIdentity(this.lane.pid) === this.lane.identity;
  }

  /** Notes that the run of this name is warned of its limit, so that the next agent does not warn it again. */
  noteWarned(key: string): void {
    writeFileSync(join(this.dir, 'warned'), key, { mode: 0o600 });
  }

  wasWarned(key: string): boolean {
    const path = join(this.dir, 'warned');
    return existsSync(path) && readFileSync(path, 'utf8') === key;
  }

  /** Notes that the run of this name has been sent the signals up to this number, so that the next agent does not send them again. */
  noteSignalled(key: string, number: number): void {
    writeFileSync(join(this.dir, 'signalled'), `${number} ${key}`, { mode: 0o600 });
  }

  /** 0: none. */
  signalledUpTo(key: string): number {
    const path = join(this.dir, 'signalled');
    const [, number, of] = /^(\d+) (.*)$/s.exec(existsSync(path) ? readFileSync(path, 'utf8') : '') ?? [];
    return of === key ? Number(number) : 0;
  }

  /** The record of the run that the slot holds. */
  recorded(): string | null {
    const text = readFileSync(join(this.dir, 'run'), 'utf8');
    return text.startsWith(HELD) ? text.slice(HELD.length, text.indexOf('\n')) : null;
  }

  /** The record of the run that the slot holds, or held last; null: it has not had any. */
  lastRecorded(): string | null {
    const text = readFileSync(join(this.dir, 'run'), 'utf8');
    const end = text.indexOf('\n');
    return end < 0 ? null : text.slice(HELD.length, end);
  }

  /** Writes down what is to be run. From here on, the run counts as launched. Throws when there is no room for it; then `free` the slot. */
  record(script: string): void {
    writeWhole(this.runFd, `${HELD}${script}`);
  }

  /** Makes the lane begin what `record` wrote down: the run of this name. */
  launch(key: string): void {
    this.child!.stdin!.write(`${key}\n`);
  }

  /** Whether a lane has been told to begin the run of this name. A power cut may have taken the word of it: then it counts as begun. */
  hasBegun(key: string): boolean {
    const told = readFileSync(this.begunPath, 'utf8');
    return told.startsWith(`${key}\n`) || this.readEnd(key) !== null || !isOfThisBoot(this.lane?.identity);
  }

  /**
   * Starts a lane unless there is one.
   *
   * @param mark words on its command line, which tell other agents of the host whose it is
   * @param ended called when the lane says that its run has ended
   * @param gone called when the lane is no more
   * @throws when it cannot be started
   */
  ensureLane(mark: readonly string[], ended: () => void, gone: () => void): void {
    if (this.child) return;
    const child = spawn('/bin/sh', ['-c', LANE_SCRIPT, LANE_NAME, this.dir, ...mark], {
      // A session of its own: the lane survives the agent, and a signal to its group reaches exactly the run.
      detached: true,
      stdio: ['pipe', 'pipe', 'ignore'],
      cwd: this.dir,
      // Launchers begin with it. What a run begins with is set behind them.
      env: hostEnvironment(),
    });
    this.child = child;
    this.childrenCpuS = 0;
    this.bytes = null;
    child.on('error', () => {}); // No pid, or it cannot be killed any more.
    child.stdin!.on('error', () => {}); // The lane has died: `close` follows.
    child.stdout!.on('data', ended);
    child.on('close', () => {
      if (this.child !== child) return; // It was let go.
      this.child = null;
      gone();
    });
    // No process could be made: mostly the machine has too many for now. What it was is told by the event; nobody waits for it.
    if (child.pid === undefined) {
      this.child = null;
      throw Object.assign(new Error('no process could be started'), { code: 'EAGAIN' });
    }
    this.lane = { pid: child.pid, identity: processIdentity(child.pid) ?? '' };
    try {
      writeFileSync(join(this.dir, 'lane'), JSON.stringify(this.lane), { mode: 0o600 });
    } catch (error) {
      this.releaseLane();
      throw error;
    }
  }

  /** Lets the lane go when its run, if there is one, has ended. */
  releaseLane(): void {
    this.child?.stdin?.end();
    // It may still say that its run has ended, to nobody: the files are closed.
    this.child?.stdout?.removeAllListeners('data').resume();
    this.child?.unref();
    this.child = null;
  }

  /** How the run of this name ended; null: it has not. */
  readEnd(key: string): EndRecord | null {
    const buffer = Buffer.allocUnsafe(END_BYTES);
    const text = buffer.toString('latin1', 0, readSync(this.endFd, buffer, 0, buffer.length, 0));
    // Two lines of times (the shell's, its children's), then the name: that line is written last, and makes the rest valid.
    const [, children, last, rest] = text.split('\n', 4);
    const [name, code] = last?.split(' ') ?? [];
    if (name !== key || rest === undefined) return null;
    return { key, code: Number(code), childrenCpuS: seconds(children!), atMs: fstatSync(this.endFd).mtimeMs };
  }

  /** Whether any process still holds what the run's processes inherited. */
  isHeld(): boolean {
    try {
      closeSync(openSync(join(this.dir, 'alive'), constants.O_WRONLY | constants.O_NONBLOCK));
      return true;
    } catch {
      return false; // ENXIO: nobody
    }
  }

  /** The run is over and its report is on disk: the slot may be used again. */
  free(nowMs: number): void {
    writeSync(this.runFd, FREE, 0);
    this.closeInput();
    this.idleSinceMs = nowMs;
  }

  /** Empties the directories of runs: what is in them is put aside. `trash` names a place for it. */
  clean(trash: () => string): string[] {
    const asides: string[] = [];
    for (const dir of [this.workDirectory, this.tmpDirectory]) {
      // Most runs have none for temporary files: an error for each of them would cost more than the look.
      const names = existsSync(dir) ? firstNames(dir, 1) : null;
      // An empty one that was somebody else's is theirs as long as a process of theirs is in it.
      if ((names?.length === 0 && this.uid === null) || (!names && dir === this.tmpDirectory)) continue;
      if (names) {
        const aside = trash();
        renameSync(dir, aside);
        asides.push(aside);
      }
      mkdirSync(dir, { recursive: true, mode: 0o700 });
    }
    this.uid = null;
    return asides;
  }

  /** Gives up the files. */
  close(): void {
    this.releaseLane();
    closeSync(this.runFd);
    closeSync(this.endFd);
    if (this.startFd !== null) closeSync(this.startFd);
    this.closeInput();
  }

  /** Gives up the slot for good, and leaves its removal to others. */
  putAside(aside: string): string {
    this.close();
    renameSync(this.dir, aside);
    return aside;
  }

  /** Gives up the slot for good. */
  remove(): void {
    this.close();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** Throws when the disk takes only a part of it. */
function writeWhole(fd: number, text: string, at = 0): void {
  const bytes = Buffer.from(text);
  if (writeSync(fd, bytes, 0, bytes.length, at) < bytes.length)
    throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
}

function readLane(dir: string): Lane | null {
  try {
    return JSON.parse(readFileSync(join(dir, 'lane'), 'utf8')) as Lane;
  } catch {
    return null;
  }
}

/** A run may have made a million of them. null: it has removed the directory. */
function firstNames(dir: string, most: number): string[] | null {
  try {
    const open = opendirSync(dir);
    try {
      const names: string[] = [];
      for (let entry = open.readSync(); entry && names.length < most; entry = open.readSync())
        names.push(entry.name);
      return names;
    } finally {
      open.closeSync();
    }
  } catch {
    return null;
  }
}

/** `1m2.5s 0m0.25s` as seconds in all. */
function seconds(times: string): number {
  return times.split(' ').reduce((sum, time) => {
    const [minutes, rest] = time.split('m');
    return sum + Number(minutes) * 60 + Number.parseFloat(rest ?? '0');
  }, 0);
}
