/** What an earlier agent left in the slots. */
import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { runKey } from '../runner.js';
import type { Account } from './accounts.js';
import { Cgroup } from './cgroup.js';
import type { Isolation } from './isolation.js';
import { Outputs } from './outputs.js';
import { type ProcessRun, parseRecord, runOf, upMs } from './run.js';
import type { Slot } from './slot.js';
import type { Slots } from './slots.js';

/** How long lanes have, together, to find that their agent is dead. */
const LANES_GO_MS = 2_000;
const LANE_LOOK_MS = 5;

export interface Recovered {
  /** Runs whose end has not been reported. */
  live: ProcessRun[];
  /** Accounts and groups that only one run had, which is over, with the accounts of their users: nobody may have looked at what it left. */
  left: Map<number, Account | null>;
}

/**
 * Takes up the runs that are recorded. Slots of others are put aside.
 *
 * @param started names of runs whose start was reported, and not their end
 * @param ended names of runs whose end was reported
 * @param trash told of directories that are to be removed
 */
export async function recover(
  slots: Slots,
  isolation: Isolation,
  outputLimitBytes: number,
  started: ReadonlySet<string>,
  ended: ReadonlySet<string>,
  trash: (dir: string) => void,
): Promise<Recovered> {
  const live: ProcessRun[] = [];
  const left = new Map<number, Account | null>();
  const untilMs = upMs() + LANES_GO_MS;
  const putAside = (slot: Slot): void => trash(slot.putAside(slots.aside()));
  for (const name of readdirSync(slots.dir).filter((entry) => /^\d+$/.test(entry))) {
    const slot = slots.open(name);
    const record = parseRecord(slot.recorded(), slot.dir);
    if (!record || ended.has(runKey(record))) {
      // The old lane goes by itself.
      const last = record ?? parseRecord(slot.lastRecorded(), slot.dir);
      if (last && last.ownId !== null && isolation.isOurs(last.ownId)) left.set(last.ownId, last.account);
      putAside(slot);
      continue;
    }
    const key = runKey(record);
    if (!started.has(key) && !(await begins(slot, key, untilMs))) {
      // The agent died before it told the lane: the service assigns it again.
      putAside(slot);
      continue;
    }
    const outputs = new Outputs(record.outputsDir, outputLimitBytes);
    const group = record.cgroup === null ? null : new Cgroup(record.cgroup);
    live.push(runOf(record, slot, outputs, group, false));
  }
  return { live, left };
}

/** Whether a lane was told to begin the run. One that was not finds its input closed, and goes: that is waited for. */
async function begins(slot: Slot, key: string, untilMs: number): Promise<boolean> {
  while (!slot.hasBegun(key)) {
    if (!slot.laneLives()) return slot.hasBegun(key); // Asked again: it may have begun, and ended, in between.
    if (upMs() > untilMs) return true;
    await sleep(LANE_LOOK_MS);
  }
  return true;
}
