/** Control groups (version 2): what bounds, counts and ends the processes of one run as a whole. */
import {
  accessSync,
  constants,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { mountPoints } from './mounts.js';

/** What a run may take; null: no limit. */
export interface Limits {
  memoryMb: number | null;
  cpus: number;
  processes: number;
}

const WANTED = ['memory', 'cpu', 'pids', 'io'] as const;
type Controller = (typeof WANTED)[number];
/** Of `cpu.max`. */
const PERIOD_US = 100_000;

/** The place below which this agent makes a group for each run. */
export class Cgroups {
  private constructor(
    private readonly dir: string,
    /** Those that count and bound here; without any a group still holds processes together, counts CPU time and kills. */
    readonly controllers: ReadonlySet<Controller>,
  ) {}

  /**
   * @param name told apart from other agents of the host
   * @returns null, or a text that says why there are none
   */
  static open(name: string): Cgroups | string {
    if (process.platform !== 'linux') return 'only Linux has control groups';
    try {
      const mount = mountOfVersion2();
      if (mount === null) return 'no cgroup file system of version 2 is mounted';
      const own = ownGroup();
      // This agent may be in the leaf that an earlier one of the same service made for itself.
      const base = join(mount, own.replace(/\/switchyard-agent$/, ''));
      const dir = join(base, `switchyard-${name}`);
      mkdirSync(dir, { recursive: true });
      enable(base);
      const enabled = enable(dir);
      const groups = new Cgroups(dir, new Set(WANTED.filter((controller) => enabled.has(controller))));
      // A group that nobody can be put into, or that does not kill as a whole, is of no use.
      const probe = groups.make('probe', { memoryMb: null, cpus: 1, processes: 1 });
      try {
        if (read(join(probe.dir, 'cgroup.events')) === null) return 'its files cannot be read';
        writeFileSync(join(probe.dir, 'cgroup.kill'), '1');
        writeFileSync(join(base, 'cgroup.procs'), '', { flag: 'a' });
      } finally {
        probe.remove();
      }
      return groups;
    } catch (error) {
      return `no control group can be created here (${(error as NodeJS.ErrnoException).code ?? (error as Error).message})`;
    }
  }

  /** An empty group with these limits. */
  make(name: string, { memoryMb, cpus, processes }: Limits): Cgroup {
    const dir = join(this.dir, name);
    mkdirSync(dir, { recursive: true });
    const set = (controller: Controller, file: string, value: string): void => {
      if (this.controllers.has(controller)) writeFileSync(join(dir, file), value);
    };
    set('memory', 'memory.max', memoryMb === null ? 'max' : String(memoryMb * 1_000_000));
    if (memoryMb !== null) {
      trySet(join(dir, 'memory.swap.max'), '0');
      // A run of which the kernel has killed one process is no run any more.
      if (this.controllers.has('memory')) trySet(join(dir, 'memory.oom.group'), '1');
    }
    set('cpu', 'cpu.max', `${Math.max(1000, Math.round(cpus * PERIOD_US))} ${PERIOD_US}`);
    set('pids', 'pids.max', String(processes));
    return new Cgroup(dir);
  }

  /** Removes the place, unless runs are left in it. */
  close(): void {
    try {
      rmdirSync(this.dir);
    } catch {
      // Some go on.
    }
  }

  /** The places of other agents here, by their names. */
  others(): Map<string, string> {
    const base = dirname(this.dir);
    return new Map(
      subgroups(base).flatMap((name) => {
        const dir = join(base, name);
        const agent = /^switchyard-(?!agent$)(.+)$/.exec(name)?.[1];
        return agent !== undefined && dir !== this.dir ? [[agent, dir] as const] : [];
      }),
    );
  }

  /** Removes groups of runs that are not among these: an earlier agent left them. */
  clean(inUse: ReadonlySet<string>): void {
    for (const name of subgroups(this.dir)) {
      const dir = join(this.dir, name);
      if (inUse.has(dir)) continue;
      const group = new Cgroup(dir);
      group.kill();
      group.remove();
    }
  }
}

/** What a group has counted; null: not here. */
export interface CgroupUsage {
  cpuS: number | null;
  peakMemoryBytes: number | null;
  readBytes: number | null;
  writtenBytes: number | null;
  /** Time in which at least one process was stalled on block devices. */
  stalledS: number | null;
  /** The kernel has ended it for its memory. */
  outOfMemory: boolean;
}

/** The group of one run. */
export class Cgroup {
  constructor(readonly dir: string) {}

  /** Shell text that puts the shell into it. */
  get enter(): string {
    return `echo 0 >${this.dir}/cgroup.procs`;
  }

  processes(): number[] {
    return (read(join(this.dir, 'cgroup.procs')) ?? '').split('\n').filter(Boolean).map(Number);
  }

  usage(): CgroupUsage {
    const stat = read(join(this.dir, 'cpu.stat'));
    const peak = read(join(this.dir, 'memory.peak'));
    const io = read(join(this.dir, 'io.stat'));
    const pressure = read(join(this.dir, 'io.pressure'));
    const sum = (name: string): number | null =>
      io === null
        ? null
        : [...io.matchAll(new RegExp(`\\b${name}=(\\d+)`, 'g'))].reduce((all, [, n]) => all + Number(n), 0);
    const cpu = /^usage_usec (\d+)/m.exec(stat ?? '')?.[1];
    const stalled = /^some .*total=(\d+)/m.exec(pressure ?? '')?.[1];
    const events = read(join(this.dir, 'memory.events')) ?? '';
    return {
      cpuS: cpu === undefined ? null : Number(cpu) / 1e6,
      peakMemoryBytes: peak === null ? null : Number(peak),
      readBytes: sum('rbytes'),
      writtenBytes: sum('wbytes'),
      stalledS: stalled === undefined ? null : Number(stalled) / 1e6,
      outOfMemory: /^oom_kill [1-9]/m.test(events),
    };
  }

  /** Ends all that is in it at once: nothing forks away under it. */
  kill(): void {
    trySet(join(this.dir, 'cgroup.kill'), '1');
  }

  /** False: a process is still in it. */
  remove(): boolean {
    try {
      for (const name of subgroups(this.dir)) new Cgroup(join(this.dir, name)).remove();
      rmdirSync(this.dir);
      return true;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'ENOENT';
    }
  }
}

/** Whether this account, other than root, can make groups beside or below its own. */
export function canMakeCgroups(): boolean {
  const mount = mountOfVersion2();
  if (mount === null || process.getuid?.() === 0) return false;
  const own = join(mount, ownGroup());
  return [own, dirname(own)].some((dir) => {
    try {
      accessSync(dir, constants.W_OK);
      return true;
    } catch {
      return false;
    }
  });
}

const ownGroup = (): string => /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1] ?? '/';

const mountOfVersion2 = (): string | null =>
  mountPoints().find(({ type }) => type === 'cgroup2')?.path ?? null;

/**
 * Passes controllers on to the groups below. A group with processes of its own cannot (but the root of all can): where this agent
 * is alone in it, as the service that it was started as, it moves into a leaf.
 */
function enable(dir: string): ReadonlySet<string> {
  const control = join(dir, 'cgroup.subtree_control');
  const there = (read(join(dir, 'cgroup.controllers')) ?? '').split(/\s/);
  const add = (controller: string): void => writeFileSync(control, `+${controller}`);
  for (const controller of WANTED.filter((one) => there.includes(one))) {
    try {
      add(controller);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EBUSY') continue;
      const processes = new Cgroup(dir).processes();
      if (processes.some((pid) => pid !== process.pid)) continue;
      mkdirSync(join(dir, 'switchyard-agent'), { recursive: true });
      writeFileSync(join(dir, 'switchyard-agent', 'cgroup.procs'), String(process.pid));
      trySet(control, `+${controller}`);
    }
  }
  return new Set((read(control) ?? '').split(/\s/));
}

function subgroups(dir: string): string[] {
  try {
    return readdirSync(dir, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? [entry.name] : [],
    );
  } catch {
    return [];
  }
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

function trySet(path: string, value: string): void {
  try {
    writeFileSync(path, value);
  } catch {
    // Not in this kernel, or not delegated.
  }
}
