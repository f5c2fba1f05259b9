/** A run that has been launched: what is on disk of it, and what it has on this machine. */
import { uptime } from 'node:os';
import {
  type RunName,
  type RunStep,
  runKey,
  type SentSignal,
  type Stream,
  type WantedOutput,
  type WarnSignal,
} from '../runner.js';
import type { Account } from './accounts.js';
import type { Cgroup } from './cgroup.js';
import { accountsIoWait, Meter } from './measure.js';
import type { Outputs } from './outputs.js';
import type { Slot } from './slot.js';

/** What has to be known of a run to end it properly, also by the next agent: line 1 of the slot's `run`. */
export interface RunRecord extends RunName {
  startedAtMs: number;
  /** The same on the clock of durations. */
  startedUpMs: number;
  runTimeLimitS: number | null;
  /** How long before its limit it gets the signal; null: never. */
  warnS: number | null;
  warnSignal: WarnSignal;
  /** From SIGTERM at its limit to SIGKILL. */
  killGraceS: number;
  privateDirectory: boolean;
  /** There is a list of hosts in its slot's directory. */
  hasHosts: boolean;
  /** CPU time of the lane's children before this run. */
  cpuBeforeS: number;
  /** Where its output goes: the directory of `out` and `err`. */
  outputsDir: string;
  /** Its account; null: the agent's. */
  uid: number | null;
  /** The account of its user, who may have other processes here; null: they have none, and `uid` is the run's own. */
  account: Account | null;
  /** `uid` where that is the run's own, or a group that all its processes have besides those of `account`; null: neither. */
  ownId: number | null;
  /** The directory of its control group; null: it has none. */
  cgroup: string | null;
  /** What its image is; left out: it runs in none. */
  image?: {
    digest: string | null;
    root?: string;
    /** Its command. */
    program?: string;
    /** What it has as its `/tmp`, below its directory for temporary files; left out: `tmp`. */
    tmp?: string;
  };
  /** It has a terminal; left out: it has none. */
  terminal?: true;
  /** null: no limit. */
  memoryMb: number | null;
  cpus: number;
  /** Number of the last signal that was sent before it began; left out: 0. */
  signalledBefore?: number;
  /** How long it has waited for its inputs before it began. */
  stagedS?: number;
  /** Ids of the devices whose use is measured for it. */
  devices?: readonly string[];
  /** What is to be kept of the files in this directory, and in what it has as its `/tmp`. */
  wanted?: {
    directory: string;
    tmp?: string;
    outputs: readonly WantedOutput[];
    checkpoint?: string;
    /** Where it reports checkpoints. */
    reports?: string;
  };
}

export interface ProcessRun extends RunRecord {
  slot: Slot;
  outputs: Outputs;
  group: Cgroup | null;
  meter: Meter;
  /** Its lane is a child of this agent; false: of an earlier one, which is why it is polled. */
  ours: boolean;
  /** Bytes that its lane and what that waited for had read and written before. */
  bytesBefore: { read: number; written: number } | null;
  /** It has been warned of its limit, perhaps by an earlier agent. */
  warned: boolean;
  /** Number of the last signal that it was sent, and those that it is to be sent. */
  signalled: number;
  unsent: readonly SentSignal[];
  /** When its client was last heard of, on the clock of durations: of a run in a terminal. */
  heardUpMs: number;
  /** What the service has of its output. */
  told: Told;
  /** When it wrote the checkpoint that the service knows of, ms since 1970; and when it is looked for one again, on the clock of durations. */
  checkpointed: { atMs: number; nextUpMs: number };
  /** What `srun` in it has noted, once it is over; left out: nothing. */
  steps?: readonly RunStep[];
}

export interface Told {
  /** Bytes of each stream. */
  bytes: Record<Stream, number>;
  atMs: number;
  /** An earlier agent may have sent some: the service is asked first. */
  asks: boolean;
}

const DELAY_ACCOUNTING = accountsIoWait();

/** A run with what is known of it besides its record. `whole`: from its beginning. */
export function runOf(
  record: RunRecord,
  slot: Slot,
  outputs: Outputs,
  group: Cgroup | null,
  whole: boolean,
): ProcessRun {
  const meter = new Meter(record.startedUpMs, whole, DELAY_ACCOUNTING);
  const warned = !whole && slot.wasWarned(runKey(record));
  const signalled = Math.max(record.signalledBefore ?? 0, whole ? 0 : slot.signalledUpTo(runKey(record)));
  const told = { bytes: { STDOUT: 0, STDERR: 0 }, atMs: 0, asks: !whole };
  const checkpointed = { atMs: 0, nextUpMs: 0 };
  const of = {
    slot,
    outputs,
    group,
    meter,
    ours: whole,
    bytesBefore: null,
    warned,
    signalled,
    unsent: [],
    heardUpMs: upMs(),
    told,
    checkpointed,
  };
  return { ...record, ...of };
}

export function parseRecord(line: string | null, slotDir: string): RunRecord | null {
  if (line === null) return null;
  try {
    const record = JSON.parse(line) as RunRecord;
    // Of an earlier release.
    const startedUpMs = record.startedUpMs ?? upMs() - Math.max(0, Date.now() - record.startedAtMs);
    const unlimited = {
      ...{ uid: null, account: null, cgroup: null, memoryMb: null, cpus: 1, hasHosts: false },
      ...({ warnS: null, warnSignal: 'SIGTERM', killGraceS: 30 } as const),
    };
    const ownId = record.ownId ?? (record.account ? null : (record.uid ?? null));
    return { ...unlimited, ...record, ownId, startedUpMs, outputsDir: record.outputsDir ?? slotDir };
  } catch {
    return null; // Cut short: the agent died before it told the lane.
  }
}

/**
 * Durations are measured on the time since the machine was booted, in ms: it is the same for the next agent, and nobody sets it. Only what
 * is told to others are times of day.
 */
export const upMs = (): number => BOOTED_AT_MS + performance.now();
const BOOTED_AT_MS = uptime() * 1000 - performance.now();

/** When to look again after one that began then, and is over now: never busy with that for more than a twentieth of the time. */
export function nextLookMs(begunMs: number, leastMs: number): number {
  const now = upMs();
  return now + Math.max(leastMs, 20 * (now - begunMs));
}
