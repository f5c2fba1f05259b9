import * as fs from 'node:fs';
import { mkdirSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { OutputFile, type OutputFiles } from './output.js';

/** Scans without anybody at them, after which files are given out again. Two, for one may miss a process that forks away under it. */
const QUIET_SCANS = 2;
/** A scan reads all of /proc, and gives out again what has come to rest since the last one: the fewer, the less a run costs. */
const SCAN_EVERY_MS = 500;
/** What is known of processes is forgotten when it is older: meanwhile a pid may have gone to another. */
const KNOWN_FOR_MS = 2 * SCAN_EVERY_MS;

/** The two streams of one run. */
export class Outputs {
  readonly out: OutputFile;
  readonly err: OutputFile;
  /** Scans since its run ended in which nobody had them open. */
  quiet = 0;

  constructor(
    /** Where `out` and `err` are. */
    readonly dir: string,
    keepBytes: number,
    files: OutputFiles & {
      mkdirSync(path: string, options: { recursive: true; mode: number }): unknown;
    } = fs,
  ) {
    files.mkdirSync(dir, { recursive: true, mode: 0o700 });
    this.out = new OutputFile(join(dir, 'out'), keepBytes, files);
    try {
      this.err = new OutputFile(join(dir, 'err'), keepBytes, files);
    } catch (error) {
      this.out.close();
      throw error;
    }
  }

  trim(): void {
    this.out.trim();
    this.err.trim();
  }

  clear(): void {
    this.out.clear();
    this.err.clear();
  }

  close(): void {
    this.out.close();
    this.err.close();
  }

  remove(): void {
    this.close();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/**
 * Files for the output of runs. A run gets empty ones, and nobody else has them open: what an earlier run wrote, or a process that it left
 * behind still writes, never becomes part of a later one's output. They are used again rather than made anew, which would cost more than all
 * the rest of a run (see Slot); in between they rest until nobody holds them.
 */
export class OutputPool {
  private readonly free: Outputs[] = [];
  private resting: Outputs[] = [];
  private next = 1;
  /** By pid: the directories of the pool in which the process has a file open. It can lose them, and never gets others. */
  private readonly known = new Map<string, string[]>();
  private scannedAtMs = Number.NEGATIVE_INFINITY;

  /**
   * @param dir where the files are
   * @param keep how many pairs are kept when they are not needed
   * @param stray told of processes that still write for a run that is over
   */
  constructor(
    private readonly dir: string,
    private readonly keepBytes: number,
    private readonly keep: number,
    private readonly stray: (pid: number) => void,
  ) {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
  }

  /** Those that an earlier agent left, except those that runs of its still use. */
  recover(inUse: ReadonlySet<string>): void {
    for (const name of readdirSync(this.dir)) {
      this.next = Math.max(this.next, Number(name) + 1);
      const dir = join(this.dir, name);
      if (!inUse.has(dir)) this.resting.push(new Outputs(dir, this.keepBytes));
    }
  }

  take(): Outputs {
    return this.free.pop() ?? new Outputs(join(this.dir, String(this.next++)), this.keepBytes);
  }

  /** Files of a run that was never begun. */
  putBack(outputs: Outputs): void {
    this.free.push(outputs);
  }

  /** Its run is over. */
  rest(outputs: Outputs): void {
    outputs.quiet = 0;
    // An earlier release kept them in the run's slot.
    if (dirname(outputs.dir) === this.dir) this.resting.push(outputs);
    else outputs.close();
  }

  /**
   * Looks whether resting files can be given out again.
   *
   * @param lanes this agent's, which have closed the files of a run before they say that it is over
   */
  scan(nowMs: number, lanes: () => readonly number[]): void {
    if (this.resting.length === 0 || nowMs - this.scannedAtMs < SCAN_EVERY_MS) return;
    if (nowMs - this.scannedAtMs > KNOWN_FOR_MS) this.known.clear();
    this.scannedAtMs = nowMs;
    const held = process.platform === 'linux' ? this.held(lanes()) : new Map<string, number>();
    this.resting = this.resting.filter((outputs) => {
      const pid = held.get(outputs.dir);
      if (pid !== undefined) {
        outputs.quiet = 0;
        this.stray(pid);
        return true;
      }
      if (++outputs.quiet < QUIET_SCANS) return true;
      if (this.free.length >= this.keep) outputs.remove();
      else {
        outputs.clear();
        this.free.push(outputs);
      }
      return false;
    });
  }

  close(): void {
    for (const outputs of [...this.free, ...this.resting]) outputs.close();
  }

  /** By directory: a process that has one of its resting files open. */
  private held(lanes: readonly number[]): Map<string, number> {
    const present = new Set(readdirSync('/proc').filter((name) => /^\d+$/.test(name)));
    for (const pid of [process.pid, ...lanes]) present.delete(String(pid));
    for (const pid of this.known.keys()) if (!present.has(pid)) this.known.delete(pid);
    const resting = new Set(this.resting.map(({ dir }) => dir));
    const held = new Map<string, number>();
    for (const pid of present) {
      let dirs = this.known.get(pid);
      if (dirs === undefined || dirs.some((dir) => resting.has(dir))) {
        dirs = this.openBy(pid);
        this.known.set(pid, dirs);
      }
      for (const dir of dirs) if (resting.has(dir)) held.set(dir, Number(pid));
    }
    return held;
  }

  private openBy(pid: string): string[] {
    const dirs = new Set<string>();
    try {
      const fds = `/proc/${pid}/fd`;
      for (const fd of readdirSync(fds)) {
        const path = link(`${fds}/${fd}`);
        if (path?.startsWith(`${this.dir}/`)) dirs.add(path.slice(0, path.lastIndexOf('/')));
      }
    } catch {
      // It has gone, or is another user's.
    }
    return [...dirs];
  }
}

function link(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}
