import { execFileSync } from 'node:child_process';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * A string that tells this process from any other that had or will have its number, or null when there is no such process.
 * Linux: the boot and the start time in clock ticks; elsewhere what `ps` prints as the start.
 */
export function processIdentity(pid: number): string | null {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it lives, and belongs to somebody else.
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return null;
  }
  try {
    if (process.platform === 'linux') {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      // The name, in parentheses, may hold anything; the fields count from behind it: state is the first, start the twentieth.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return fields[0] === 'Z' ? null : `${bootId()}/${fields[19]}`;
    }
    return (
      execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], {
        encoding: 'utf8',
      }).trim() || null
    );
  } catch {
    return null;
  }
}

/** Whether a process of this identity was one since the machine was started last. Elsewhere than on Linux nobody knows: false. */
export function isOfThisBoot(identity: string | undefined): boolean {
  return process.platform === 'linux' && (identity?.startsWith(`${bootId()}/`) ?? false);
}

const bootId = (): string => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();

/** Somebody else holds the lock. */
export class LockHeldError extends Error {
  override readonly name = 'LockHeldError';
  constructor(
    readonly path: string,
    /** The process that holds it. */
    readonly pid: number,
    what: string,
  ) {
    super(`${what} is in use by the running process ${pid} (${path}): stop that process first`);
  }
}

export interface LockFile {
  /** Gives the lock up. Doing it twice does no harm. */
  release(): void;
}

interface Holder {
  pid: number;
  identity: string;
}

function readHolder(path: string): Holder | null {
  try {
    const holder = JSON.parse(readFileSync(path, 'utf8')) as Partial<Holder>;
    return typeof holder.pid === 'number' && typeof holder.identity === 'string' ? (holder as Holder) : null;
  } catch {
    return null;
  }
}

/**
 * Makes this process the only one that uses what `path` stands for. A lock whose holder is dead (also after kill -9, and
 * when its pid went to another process) is taken over.
 *
 * @param what names the locked thing in the error
 * @throws LockHeldError naming the running process
 */
export async function acquireLock(path: string, what: string): Promise<LockFile> {
  const mine = JSON.stringify({
    pid: process.pid,
    identity: processIdentity(process.pid) ?? '',
  });
  for (let attempt = 0; ; attempt++) {
    try {
      writeFileSync(path, mine, { flag: 'wx', mode: 0o644 });
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const holder = readHolder(path);
    if (holder && processIdentity(holder.pid) === holder.identity)
      throw new LockHeldError(path, holder.pid, what);
    if (attempt > 20) throw new Error(`${what}: cannot take over the stale lock ${path}: remove that file`);
    // Created but not yet written: give its maker a moment before calling it stale.
    if (!holder && attempt < 5) await sleep(20);
    else takeAway(path, holder);
  }
  let held = true;
  const isMine = (): boolean => {
    try {
      return readFileSync(path, 'utf8') === mine;
    } catch {
      return false; // Somebody has removed it.
    }
  };
  return {
    release() {
      if (held && isMine()) rmSync(path, { force: true });
      held = false;
    },
  };
}

/** Removes the stale lock, and only that: of two processes that see it, one may be faster and hold a good one by now. */
function takeAway(path: string, stale: Holder | null): void {
  const aside = `${path}.stale-${process.pid}`;
  try {
    renameSync(path, aside);
  } catch {
    return;
  }
  const taken = readHolder(aside);
  if (taken && (taken.pid !== stale?.pid || taken.identity !== stale.identity)) renameSync(aside, path);
  else rmSync(aside, { force: true });
}
