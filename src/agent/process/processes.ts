/** Which processes belong to a run, and what the system knows of them. Linux through /proc, elsewhere through ps. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

export interface ProcessRow {
  pid: number;
  parent: number;
  group: number;
  session: number;
  /** Ticks of 10 ms waited for block I/O. */
  ioWaitTicks: number;
}

const TICKS_PER_S = 100;

function readStat(pid: number): ProcessRow | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name, in parentheses, may hold anything. Behind it: state, parent, group, session, … (proc_pid_stat(5)).
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return null;
    return {
      pid,
      parent: Number(fields[1]),
      group: Number(fields[2]),
      session: Number(fields[3]),
      ioWaitTicks: Number(fields[39] ?? 0),
    };
  } catch {
    return null;
  }
}

function processTable(): ProcessRow[] {
  if (process.platform === 'linux') {
    return readdirSync('/proc').flatMap((name) => {
      const row = /^\d+$/.test(name) ? readStat(Number(name)) : null;
      return row ? [row] : [];
    });
  }
  return execFileSync('ps', ['-A', '-o', 'pid=,ppid=,pgid=,stat='], { encoding: 'utf8' })
    .split('\n')
    .flatMap((line) => {
      const [pid, parent, group, state] = line.trim().split(/\s+/);
      if (!pid || state?.startsWith('Z')) return [];
      return [
        { pid: Number(pid), parent: Number(parent), group: Number(group), session: -1, ioWaitTicks: 0 },
      ];
    });
}

function carriesMarker(pid: number, marker: string): boolean {
  if (process.platform !== 'linux') return false;
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(marker);
  } catch {
    return false;
  }
}

/**
 * The processes of a run beside its lane: those in the lane's group or session, all their descendants, and (Linux) those
 * that inherited the run's environment, so that a process which made itself a session of its own is found too.
 *
 * @param lane pid of the run's lane; 0: it is not known
 * @param laneLives false: the lane is known to be dead. Then a process with its pid is somebody else's, and so are that
 *   one's group and session: a pid is not given out again while a group or session is named by it.
 * @param marker the environment entry that only this run has, `NAME=value`
 */
export function processesOfRun(lane: number, laneLives: boolean, marker: string): ProcessRow[] {
  const table = processTable().filter((row) => row.pid !== process.pid);
  const reused = !laneLives && table.some((row) => row.pid === lane);
  const members = new Set<number>();
  for (const row of table) {
    // 0 is the group and session of the system's own processes, and of everything that came from outside a container.
    const inGroup = lane > 0 && !reused && (row.group === lane || row.session === lane);
    if (inGroup || carriesMarker(row.pid, marker)) members.add(row.pid);
  }
  for (let before = -1; before !== members.size; ) {
    before = members.size;
    for (const row of table) if (members.has(row.parent)) members.add(row.pid);
  }
  return table.filter((row) => members.has(row.pid) && !(row.pid === lane && (laneLives || reused)));
}

/** Seconds that the processes of a run which live now have waited for block I/O. By pid, because each only ever grows. */
export function ioWaitOfRun(lane: number, marker: string): Map<number, number> {
  return new Map(processesOfRun(lane, true, marker).map((row) => [row.pid, row.ioWaitTicks / TICKS_PER_S]));
}

/** Whether this system accounts for I/O wait: Linux with delay accounting on (`sysctl kernel.task_delayacct`). */
export function accountsIoWait(): boolean {
  try {
    return readFileSync('/proc/sys/kernel/task_delayacct', 'utf8').trim() === '1';
  } catch {
    return false;
  }
}
