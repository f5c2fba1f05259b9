/** Which processes belong to a run, and what the system knows of them. Linux through /proc, elsewhere through ps. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

export interface ProcessRow {
  pid: number;
  parent: number;
  group: number;
  session: number;
  /** When it began, ticks since the machine was booted: tells it from another one of its pid. 0: not known. */
  startTicks: number;
}

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
      startTicks: Number(fields[19]),
    };
  } catch {
    return null;
  }
}

/** Looks that `freeze` takes, at most. */
const MAX_LOOKS = 50;

/** Stops all processes that have an id, until none is new: what is stopped cannot fork away from who is about to kill it. Answers which. */
export function freeze(id: number): number[] {
  const stopped = new Set<number>();
  for (let look = 0; look < MAX_LOOKS; look++) {
    const fresh = (processesWithIds((one) => one === id).get(id) ?? []).filter((pid) => !stopped.has(pid));
    if (fresh.length === 0) break;
    for (const pid of fresh) {
      stopped.add(pid);
      try {
        process.kill(pid, 'SIGSTOP');
      } catch {
        // It has gone.
      }
    }
  }
  return [...stopped];
}

export function processTable(): ProcessRow[] {
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
      return [{ pid: Number(pid), parent: Number(parent), group: Number(group), session: -1, startTicks: 0 }];
    });
}

/** Whether a process has this name, which it may have given itself. */
export function isNamed(pid: number, name: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'latin1') === `${name}\n`;
  } catch {
    return false;
  }
}

/** The words of a process's command line, each ended by NUL; empty: it has gone, or has none. */
export function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

function carriesMarker(pid: number, marker: string): boolean {
  if (process.platform !== 'linux') return false;
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(marker);
  } catch {
    return false;
  }
}

/** Account and supplementary groups of a process, which it cannot change without privilege; none: it has gone. */
function idsOf(pid: number): number[] {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1');
    const uid = /^Uid:\s+(\d+)/m.exec(status)![1];
    const groups = /^Groups:(.*)$/m.exec(status)?.[1] ?? '';
    return [uid, ...groups.trim().split(/\s+/)].filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** Whether a process is of this account. */
export const isOfAccount = (pid: number, uid: number): boolean => idsOf(pid)[0] === uid;

/** By id of those asked for: processes that have it as their account or as one of their groups. */
export function processesWithIds(asked: (id: number) => boolean): Map<number, number[]> {
  const found = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    for (const id of new Set(idsOf(Number(name)))) {
      if (!asked(id)) continue;
      const pids = found.get(id);
      if (pids) pids.push(Number(name));
      else found.set(id, [Number(name)]);
    }
  }
  return found;
}

/**
 * The processes of a run beside its lane: those in the lane's group or session, all their descendants, and (Linux) those
 * that inherited the run's environment, so that a process which made itself a session of its own is found too.
 *
 * @param lane pid of the run's lane; 0: it is not known
 * @param laneLives false: the lane is known to be dead. Then a process with its pid is somebody else's, and so are that
 *   one's group and session: a pid is not given out again while a group or session is named by it.
 * @param marker the environment entry that only this run has, `NAME=value`
 * @param ownId the account or group that only this run has; null: it has none
 * @param grouped those in the control group of the run
 */
export function processesOfRun(
  lane: number,
  laneLives: boolean,
  marker: string,
  ownId: number | null = null,
  grouped: readonly number[] = [],
): ProcessRow[] {
  const table = processTable().filter((row) => row.pid !== process.pid);
  const reused = !laneLives && table.some((row) => row.pid === lane);
  const members = new Set<number>(grouped);
  for (const row of table) {
    if (ownId !== null && idsOf(row.pid).includes(ownId)) members.add(row.pid);
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

/** When a process that belongs to no run is looked at once more: it may have been seen between fork and exec. */
const NO_MARKER_MS = 1_000;

/**
 * Which processes belong to which run: one look at all processes for all runs, and one at the environment and the ids of each process.
 * Slower to find what hides than `processesOfRun`; it is for measuring.
 */
export class Members {
  /** By what each process carries of a run; `untilMs`: until when it is believed. */
  private readonly carried = new Map<string, { marks: readonly (string | number)[]; untilMs: number }>();

  /** @param haveIds false: no run has an account or group of its own */
  constructor(private readonly haveIds: boolean) {}

  /**
   * @param runs lanes, markers, and accounts or groups that are one run's
   * @returns pids by lane, without the lanes themselves
   */
  of(
    runs: readonly { lane: number; marker: string; ownId: number | null }[],
    nowMs: number,
  ): Map<number, number[]> {
    const table = processTable();
    const byPid = new Map(table.map((row) => [row.pid, row]));
    const lanes = new Set(runs.map(({ lane }) => lane));
    const laneOf = new Map<string | number, number>();
    for (const { lane, marker, ownId } of runs) {
      laneOf.set(marker, lane);
      if (ownId !== null) laneOf.set(ownId, lane);
    }
    const known = new Map<number, number | null>();
    const find = (row: ProcessRow, depth: number): number | null => {
      const found = known.get(row.pid);
      if (found !== undefined || depth > MAX_DEPTH) return found ?? null;
      const parent = byPid.get(row.parent);
      const mark = (): number | undefined => {
        for (const one of this.marksOf(row, nowMs)) if (laneOf.has(one)) return laneOf.get(one);
        return undefined;
      };
      const lane = lanes.has(row.session)
        ? row.session
        : lanes.has(row.group)
          ? row.group
          : (mark() ?? (parent ? find(parent, depth + 1) : null));
      known.set(row.pid, lane);
      return lane;
    };
    const members = new Map<number, number[]>();
    for (const row of table) {
      const lane = row.pid === process.pid ? null : find(row, 0);
      if (lane === null || lane === row.pid) continue;
      const pids = members.get(lane);
      if (pids) pids.push(row.pid);
      else members.set(lane, [row.pid]);
    }
    if (this.carried.size > 2 * table.length + 1000) this.carried.clear();
    return members;
  }

  private marksOf({ pid, startTicks }: ProcessRow, nowMs: number): readonly (string | number)[] {
    const key = `${pid}/${startTicks}`;
    const known = this.carried.get(key);
    if (known && nowMs < known.untilMs) return known.marks;
    const marker = markerOf(pid);
    const marks = [...(marker === null ? [] : [marker]), ...(this.haveIds ? idsOf(pid) : [])];
    this.carried.set(key, { marks, untilMs: marker !== null || known ? Infinity : nowMs + NO_MARKER_MS });
    return marks;
  }
}

function markerOf(pid: number): string | null {
  try {
    const environment = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
    return environment.find((entry) => entry.startsWith(`${MARKER}=`)) ?? null;
  } catch {
    return null; // It has gone, or is another's.
  }
}

/** Of parents that are looked at: a process tree is rarely deeper. */
const MAX_DEPTH = 100;
/** The variable by which the agent recognizes processes of its runs. */
export const MARKER = 'SWITCHYARD_RUN';
