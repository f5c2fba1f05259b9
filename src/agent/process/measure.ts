/** What a run uses, measured while it runs: samples of its processes, and what its control group has counted. */
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, readSync } from 'node:fs';
import type { DeviceUse } from '../devices.js';
import type { Measured } from '../runner.js';
import type { CgroupUsage } from './cgroup.js';

/** One process as `/proc` shows it (proc_pid_stat(5), proc_pid_status(5)). */
export interface Sample {
  pid: number;
  threads: number;
  /** State of its main thread: R runs, D waits for a device, S sleeps, … */
  state: string;
  cpuTicks: number;
  /** How long its main thread waited for block devices, ticks; 0 unless the kernel accounts for it. */
  ioWaitTicks: number;
  /** Memory that only it has, and memory that it shares with others on purpose. */
  anonymousBytes: number;
  sharedBytes: number;
}

const TICKS_PER_S = 100;
/** Threads of a process that are looked at, and processes of a run: more say nothing new. */
const MAX_THREADS = 32;
const MAX_PROCESSES = 256;

/** null: it has gone, or is another's. */
export function sampleOf(pid: number): Sample | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The name, in parentheses, may hold anything. Field 3 is the first behind it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const state = fields[0]!;
    if (state === 'Z' || state === 'X') return null;
    const status = readFileSync(`/proc/${pid}/status`, 'latin1');
    const kb = (name: string): number => {
      const at = status.indexOf(`\n${name}:`);
      return at < 0 ? 0 : Number.parseInt(status.slice(at + name.length + 2), 10) * 1024;
    };
    return {
      pid,
      state,
      threads: Number(fields[17]),
      cpuTicks: Number(fields[11]) + Number(fields[12]),
      ioWaitTicks: Number(fields[39] ?? 0),
      anonymousBytes: kb('RssAnon') + kb('VmSwap'),
      sharedBytes: kb('RssShmem'),
    };
  } catch {
    return null;
  }
}

/** Whether this system accounts for I/O wait: Linux with delay accounting on (`sysctl kernel.task_delayacct`). */
export function accountsIoWait(): boolean {
  try {
    return readFileSync('/proc/sys/kernel/task_delayacct', 'utf8').trim() === '1';
  } catch {
    return false;
  }
}

/** Bytes that a process, and all that it has waited for, asked the system to read and to write. */
export function bytesOf(pid: number): { read: number; written: number } | null {
  try {
    const io = readFileSync(`/proc/${pid}/io`, 'latin1');
    return { read: Number(/^rchar: (\d+)/m.exec(io)![1]), written: Number(/^wchar: (\d+)/m.exec(io)![1]) };
  } catch {
    return null;
  }
}

/** What the kernel's account of a thread says, ticks, and how long the thread has been seen in one wait that is not in it yet, seconds. */
interface Account {
  ticks: number;
  heldS: number;
}

/** A tick, the time between two looks at a thread and at its neighbors, and what else an honest account may be off. */
const SLACK_S = 0.05;

/**
 * The meter of one run.
 *
 * What it waits for input and output has two parts. *Block devices*: the control group's pressure, else the kernel's delay accounting,
 * else samples that find a process in state D. The pressure of a group is put together of its CPUs in windows of two seconds, and says
 * too little of a process that computes on one and waits on another, so what samples have seen counts if it is more. Delay accounting is
 * believed as long as it can be true: since Linux 6.12 it sometimes adds all the time since the machine was booted. *Pipes and sockets* from outside the run, of which no kernel keeps an account: samples that
 * find a process blocked in a system call on one. A sample counts by the share of its processes that wait among those that wait or
 * compute; a process that sleeps, or waits for another of the run, is neither. Idle time is never taken for input and output.
 */
export class Meter {
  private sampledAtMs: number | null = null;
  private streamS = 0;
  private deviceS = 0;
  private peakBytes = 0;
  private readonly accounts = new Map<number, Account>();
  private accountedS = 0;
  private readonly cpuTicks = new Map<number, number>();
  private devicesAtMs: number | null = null;
  private devicesBusy = 0;
  private devicesBusyS = 0;
  private devicesPeakMb = 0;

  /**
   * @param startedUpMs when the run began, on the clock of durations
   * @param complete false: an earlier agent has not measured its beginning, or nobody has
   */
  constructor(
    private readonly startedUpMs: number,
    private readonly complete: boolean,
    private delayAccounting: boolean,
  ) {}

  /** CPU time of the processes that were seen, seconds. */
  get cpuS(): number {
    return sum(this.cpuTicks.values()) / TICKS_PER_S;
  }

  /** Takes the processes of the run as they are now, and answers with the memory that they have, bytes. */
  take(samples: readonly Sample[], nowMs: number): number {
    const looked = samples.slice(0, MAX_PROCESSES);
    const spanS = (nowMs - (this.sampledAtMs ?? this.startedUpMs)) / 1000;
    this.sampledAtMs = nowMs;
    let computing = 0;
    let device = 0;
    let stream = 0;
    let pipes: Pipes | null = null;
    for (const sample of looked) {
      this.cpuTicks.set(sample.pid, sample.cpuTicks);
      for (const { id, state, of, ioWaitTicks } of threadsOf(sample)) {
        if (this.delayAccounting) this.account(id, ioWaitTicks, state === 'D', spanS);
        if (state === 'R') computing++;
        else if (state === 'D') device++;
        else if (state === 'S') {
          pipes ??= new Pipes(looked);
          if (waitsForStream(of, sample.pid, pipes)) stream++;
        }
      }
    }
    const active = computing + device + stream;
    if (active > 0) {
      this.deviceS += (spanS * device) / active;
      this.streamS += (spanS * stream) / active;
    }
    const bytes = memoryOf(looked, this.peakBytes);
    this.peakBytes = Math.max(this.peakBytes, bytes);
    return bytes;
  }

  /** Takes what is used of its devices now; null: one tells nothing, and so nothing is known of all. */
  takeDevices(used: readonly (DeviceUse | null)[], nowMs: number): void {
    const told = used.filter((one) => one !== null);
    if (told.length < used.length) return;
    this.devicesBusy = sum(told.map(({ busy }) => busy));
    this.devicesBusyS = this.devicesS(nowMs);
    this.devicesAtMs = nowMs;
    this.devicesPeakMb = Math.max(this.devicesPeakMb, sum(told.map(({ memoryMb }) => memoryMb)));
  }

  /** How long its devices were busy until now, if they have gone on as last seen since then. */
  private devicesS(nowMs: number): number {
    return this.devicesBusyS + (this.devicesBusy * (nowMs - (this.devicesAtMs ?? this.startedUpMs))) / 1000;
  }

  /** Adds what the kernel says that a thread has waited since the last look. */
  private account(thread: number, ticks: number, isWaiting: boolean, spanS: number): void {
    const { ticks: before, heldS } = this.accounts.get(thread) ?? { ticks: 0, heldS: 0 };
    const waitedS = (ticks - before) / TICKS_PER_S;
    if (waitedS > heldS + spanS + SLACK_S) {
      this.delayAccounting = false;
      return;
    }
    this.accountedS += waitedS;
    // A wait is accounted for when it is over.
    const held = !isWaiting ? 0 : waitedS > 0 ? spanS : heldS + spanS;
    if (ticks > 0 || held > 0) this.accounts.set(thread, { ticks, heldS: held });
  }

  /** Time in which the run waited for devices as delay accounting has it: threads that wait at the same time are one wait. */
  private get delayedS(): number {
    const { accountedS, cpuS, sampledAtMs, startedUpMs } = this;
    const lookedS = ((sampledAtMs ?? startedUpMs) - startedUpMs) / 1000;
    return accountedS * Math.min(1, lookedS / (accountedS + cpuS || 1));
  }

  /**
   * What is known at the end.
   *
   * @param waited CPU time and bytes of all processes that the lane has waited for
   */
  result(
    group: CgroupUsage | null,
    waited: { cpuS: number | null; bytes: { read: number; written: number } | null },
    nowMs: number,
  ): Measured {
    const sampled = this.sampledAtMs !== null;
    const grouped = <T>(value: T | null | undefined): value is T => value !== null && value !== undefined;
    const cpu = grouped(group?.cpuS)
      ? ([group.cpuS, 'CGROUP'] as const)
      : ([waited.cpuS, waited.cpuS === null ? null : 'PROC'] as const);
    const memory = grouped(group?.peakMemoryBytes)
      ? ([group.peakMemoryBytes, 'CGROUP'] as const)
      : this.peakBytes > 0 && this.complete
        ? ([this.peakBytes, 'SAMPLES'] as const)
        : ([null, null] as const);
    // The group counts devices only; what was read through the cache and from pipes is in the processes' own account.
    const bytes = waited.bytes
      ? ([waited.bytes, 'PROC'] as const)
      : grouped(group?.readBytes) && grouped(group?.writtenBytes)
        ? ([{ read: group.readBytes, written: group.writtenBytes }, 'CGROUP'] as const)
        : ([null, null] as const);
    const ioWait = ((): readonly [number | null, Measured['ioWaitMethod']] => {
      if (!this.complete) return [null, null];
      if (grouped(group?.stalledS)) return [Math.max(group.stalledS, this.deviceS) + this.streamS, 'CGROUP'];
      if (!sampled) return [null, null];
      if (this.delayAccounting) return [this.delayedS + this.streamS, 'DELAY_ACCOUNTING'];
      return [this.deviceS + this.streamS, 'SAMPLES'];
    })();
    const hasDevices = this.complete && this.devicesAtMs !== null;
    return {
      cpuS: cpu[0],
      cpuMethod: cpu[1],
      peakMemoryMb: memory[0] === null ? null : memory[0] / 1e6,
      peakMemoryMethod: memory[1],
      readMb: bytes[0] && bytes[0].read / 1e6,
      writtenMb: bytes[0] && bytes[0].written / 1e6,
      bytesMethod: bytes[1],
      ioWaitS: ioWait[0],
      ioWaitMethod: ioWait[1],
      deviceS: hasDevices ? this.devicesS(nowMs) : null,
      deviceMemoryMb: hasDevices ? this.devicesPeakMb : null,
    };
  }
}

const sum = (values: Iterable<number>): number => {
  let all = 0;
  for (const value of values) all += value;
  return all;
};

/**
 * Memory of processes together. What forked processes still share would count for each: where that could say too much, the kernel is
 * asked for each one's part, which takes longer.
 *
 * @param known less than this is of no interest
 */
export function memoryOf(samples: readonly Sample[], known: number): number {
  const shared = Math.max(0, ...samples.map(({ sharedBytes }) => sharedBytes));
  const counted = sum(samples.map(({ anonymousBytes }) => anonymousBytes)) + shared;
  if (counted <= known || samples.length < 2) return counted;
  return Math.min(counted, sum(samples.map((sample) => proportionalOf(sample))));
}

function proportionalOf({ pid, anonymousBytes, sharedBytes }: Sample): number {
  try {
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1');
    const kb = (name: string): number =>
      Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(rollup)?.[1] ?? 0) * 1024;
    return kb('Pss_Anon') + kb('Pss_Shmem') + kb('Swap');
  } catch {
    return anonymousBytes + sharedBytes;
  }
}

interface Thread {
  id: number;
  state: string;
  ioWaitTicks: number;
  /** Where to ask what it waits for. */
  of: string;
}

function threadsOf({ pid, threads, state, ioWaitTicks }: Sample): Thread[] {
  const main = { id: pid, state, ioWaitTicks, of: `/proc/${pid}` };
  if (threads < 2) return [main];
  try {
    return readdirSync(`/proc/${pid}/task`)
      .slice(0, MAX_THREADS)
      .map((thread) => {
        const of = `/proc/${pid}/task/${thread}`;
        const stat = readFileSync(`${of}/stat`, 'latin1');
        const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        return { id: Number(thread), of, state: fields[0]!, ioWaitTicks: Number(fields[39] ?? 0) };
      });
  } catch {
    return [main];
  }
}

/** System calls that wait for a file, by what names it: their first argument, or a list of several. */
const CALLS: Readonly<Record<string, Readonly<Record<number, 'file' | 'poll' | 'epoll'>>>> = {
  x64: {
    // read, write, pread64, pwrite64, readv, writev, sendfile, connect, sendto, recvfrom, sendmsg, recvmsg, fsync, fdatasync, splice,
    // recvmmsg, sendmmsg
    ...calls('file', 0, 1, 17, 18, 19, 20, 40, 42, 44, 45, 46, 47, 74, 75, 275, 299, 307),
    ...calls('poll', 7, 271),
    ...calls('epoll', 232, 281, 441),
  },
  arm64: {
    ...calls('file', 63, 64, 65, 66, 67, 68, 71, 76, 82, 83, 203, 206, 207, 211, 212, 243, 269),
    ...calls('poll', 73),
    ...calls('epoll', 22, 441),
  },
};

function calls<K extends string>(kind: K, ...numbers: number[]): Record<number, K> {
  return Object.fromEntries(numbers.map((number) => [number, kind]));
}

/** Whether a sleeping thread waits for a pipe or socket whose other end is not in the run. */
function waitsForStream(thread: string, pid: number, pipes: Pipes): boolean {
  try {
    // Number and six arguments, then stack and instruction pointer; or `running`.
    const [number, ...args] = readFileSync(`${thread}/syscall`, 'latin1').split(' ');
    const kind = CALLS[process.arch]?.[Number(number)];
    if (kind === undefined) return false;
    if (kind === 'file') return pipes.isFromOutside(pid, Number(args[0]));
    const waitedFor =
      kind === 'poll' ? polled(pid, Number(args[0]), Number(args[1])) : epolled(pid, Number(args[0]));
    return waitedFor.some((fd) => pipes.isFromOutside(pid, fd));
  } catch {
    return false; // It has gone on, or this account may not look.
  }
}

const MAX_POLLED = 64;

/** The descriptors that poll(2) was given: an array of {int fd; short events, revents} in the memory of the process. */
function polled(pid: number, address: number, count: number): number[] {
  const fd = openSync(`/proc/${pid}/mem`, 'r');
  try {
    const buffer = Buffer.alloc(8 * Math.min(count, MAX_POLLED));
    const got = readSync(fd, buffer, 0, buffer.length, address);
    return Array.from({ length: got >> 3 }, (_, i) => buffer.readInt32LE(8 * i));
  } finally {
    closeSync(fd);
  }
}

/** The descriptors that an epoll instance watches. */
function epolled(pid: number, fd: number): number[] {
  const info = readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'latin1');
  return [...info.matchAll(/^tfd:\s+(\d+)/gm)].slice(0, MAX_POLLED).map(([, number]) => Number(number));
}

/** Which pipes lead out of the run. */
class Pipes {
  /** By pipe: the ends that processes of the run hold, as `pid/fd` of readers and of writers. */
  private ends: Map<string, { readers: number; writers: number }> | null = null;

  constructor(private readonly samples: readonly Sample[]) {}

  isFromOutside(pid: number, fd: number): boolean {
    const target = readlinkSync(`/proc/${pid}/fd/${fd}`);
    if (target.startsWith('socket:')) return true;
    const isPipe = target.startsWith('pipe:') || target.startsWith('/');
    if (!isPipe) return false;
    const mode = accessMode(pid, fd);
    if (mode === null) return false;
    // Somebody of the run holds the other end: what it waits for is the run itself.
    this.ends ??= this.find();
    const { readers = 0, writers = 0 } = this.ends.get(target) ?? {};
    return mode === WRITE ? readers === 0 : writers === 0;
  }

  private find(): Map<string, { readers: number; writers: number }> {
    const ends = new Map<string, { readers: number; writers: number }>();
    for (const { pid } of this.samples) {
      try {
        for (const fd of readdirSync(`/proc/${pid}/fd`)) {
          const target = readlinkSync(`/proc/${pid}/fd/${fd}`);
          if (!target.startsWith('pipe:') && !target.startsWith('/')) continue;
          const mode = accessMode(pid, Number(fd));
          const known = ends.get(target) ?? { readers: 0, writers: 0 };
          if (mode !== WRITE) known.readers++;
          if (mode !== READ) known.writers++;
          ends.set(target, known);
        }
      } catch {
        // It has gone.
      }
    }
    return ends;
  }
}

const READ = 0;
const WRITE = 1;

/** O_RDONLY, O_WRONLY or O_RDWR. */
function accessMode(pid: number, fd: number): number | null {
  const flags = /^flags:\s+([0-7]+)/m.exec(readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'latin1'))?.[1];
  return flags === undefined ? null : Number.parseInt(flags, 8) & 3;
}
