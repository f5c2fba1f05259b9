import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { End } from '../process/reports.js';
import { upMs } from '../process/run.js';
import { type EndMark, endOf, type Where, whereOf } from './script.js';

/** In the mark of a run that never begins: how it ended. */
const NEVER = 'never';
/** Nothing of a run is with the scheduler so long after its end. */
const SPENT_MS = 86_400_000;

/**
 * What runs and the agent write down for each other, in two directories that the nodes share: `began/KEY` is made whole by whoever is first, the
 * run (who it is) or the agent (that it never begins, and how it ended); `ended/KEY` by the run.
 */
export class Marks {
  /** Of runs that are over, by age. */
  private readonly spent: { key: string; atMs: number }[] = [];
  private readonly beganDir: string;
  private readonly endedDir: string;

  constructor(private readonly stateDir: string) {
    this.beganDir = join(stateDir, 'began');
    this.endedDir = join(stateDir, 'ended');
    for (const dir of [this.beganDir, this.endedDir]) mkdirSync(dir, { recursive: true, mode: 0o700 });
  }

  /** Paths that the script of a run is told. */
  of(key: string): { began: string; ended: string } {
    return { began: join(this.beganDir, key), ended: join(this.endedDir, key) };
  }

  /** The runs that have begun, or never will, and those that have ended: two questions, however many there are. */
  look(): { began: ReadonlySet<string>; ended: ReadonlySet<string> } {
    return { began: new Set(readdirSync(this.beganDir)), ended: new Set(readdirSync(this.endedDir)) };
  }

  /** Takes the run's turn, so that it can never begin, and notes how it ended. False: it has begun. */
  claim(key: string, end: End): boolean {
    const turn = join(this.stateDir, `turn.${key}`);
    mkdirSync(turn, { recursive: true });
    writeFileSync(join(turn, NEVER), JSON.stringify(end));
    try {
      renameSync(turn, join(this.beganDir, key));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'EEXIST' && code !== 'ENOTEMPTY') throw error;
      rmSync(turn, { recursive: true, force: true });
      return this.never(key) !== null;
    }
    return true;
  }

  /** How a run ended that never begins; null: nobody has claimed that. */
  never(key: string): End | null {
    const text = textIn(join(this.beganDir, key, NEVER));
    return text === null ? null : (JSON.parse(text) as End);
  }

  where(key: string): Where | null {
    return whereOf(textIn(join(this.beganDir, key, 'where')) ?? '');
  }

  ended(key: string): EndMark | null {
    return endOf(textIn(join(this.endedDir, key)) ?? '');
  }

  /** The run is over. That it has begun is kept: it may still be with the scheduler. */
  spend(key: string): void {
    rmSync(join(this.endedDir, key), { force: true });
    this.spent.push({ key, atMs: upMs() });
  }

  /** After a start: those that are not live are spent. */
  recover(live: ReadonlySet<string>): void {
    for (const key of readdirSync(this.beganDir)) if (!live.has(key)) this.spend(key);
  }

  forgetSpent(): void {
    const before = upMs() - SPENT_MS;
    while (this.spent[0] !== undefined && this.spent[0].atMs < before)
      rmSync(join(this.beganDir, this.spent.shift()!.key), { recursive: true, force: true });
  }
}

function textIn(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
