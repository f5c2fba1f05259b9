import { mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { removeTree } from './disk.js';

/** How often it is looked at what is old. */
const LOOK_MS = 60_000;

/**
 * Directories of runs whose outputs could not be kept: they stay for a while, so that nothing is lost that somebody named as worth keeping.
 * Nobody but the agent's account gets there.
 */
export class LeftBehind {
  private lookedAtMs = Number.NEGATIVE_INFINITY;

  /** @param dir where they are; it need not be there */
  constructor(
    private readonly dir: string,
    private readonly keepMs: number,
    private readonly warn: (fields: object, message: string) => void,
  ) {}

  /** Takes over the directory of a run; answers where it is now. */
  take(directory: string, run: string): string {
    mkdirSync(this.dir, { recursive: true, mode: 0o700 });
    const path = join(this.dir, run);
    rmSync(path, { recursive: true, force: true });
    renameSync(directory, path);
    return path;
  }

  /** Removes what is old, or when the disk is almost full the oldest. */
  clean(nowMs: number, isLow: boolean): void {
    if (nowMs - this.lookedAtMs < LOOK_MS) return;
    this.lookedAtMs = nowMs;
    const all = this.list().sort((a, b) => a.sinceMs - b.sinceMs);
    const old = all.filter(({ sinceMs }) => Date.now() - sinceMs > this.keepMs);
    for (const { path } of isLow && old.length === 0 ? all.slice(0, 1) : old) {
      removeTree(path).then(
        () => this.warn({ path }, 'files of a run that could not be saved have been removed'),
        (err) => this.warn({ path, err }, 'files of a run cannot be removed'),
      );
    }
  }

  private list(): { path: string; sinceMs: number }[] {
    try {
      return readdirSync(this.dir).map((name) => {
        const path = join(this.dir, name);
        // Since its name changed: a rename is a change of it.
        return { path, sinceMs: statSync(path).ctimeMs };
      });
    } catch {
      return []; // Nothing has been left behind yet.
    }
  }
}
