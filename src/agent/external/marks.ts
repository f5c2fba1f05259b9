import { join } from 'node:path';
import type { End } from '../process/reports.js';
import { upMs } from '../process/run.js';
import type { Calls } from './calls.js';
import { type EndMark, endOf, type Where, whereOf } from './script.js';

/** In the mark of a run that never begins: how it ended. */
const NEVER = 'never';
/** Nothing of a run is with the scheduler so long after its end. */
const SPENT_MS = 86_400_000;
/** How runs end that never begin. */
const NEVERS: readonly string[] = [
  'CANCELLED_BY_USER',
  'LAUNCH_FAILED',
  'MACHINE_FAILED',
  'REQUEUED',
] satisfies End['cause'][];

/**
 * What runs and the agent write down for each other, in two directories that the nodes share: `began/KEY` is made whole by whoever is first, the
 * run (who it is) or the agent (that it never begins, and how it ended); `ended/KEY` by the run. Runs of an account have directories of that
 * account: what is there is read with care.
 */
export class Marks {
  /** Of runs that are over, by age. */
  private readonly spent: { key: string; atMs: number }[] = [];
  private readonly beganDir: string;
  private readonly endedDir: string;

  constructor(
    private readonly stateDir: string,
    dir: string,
    private readonly files: Calls,
  ) {
    this.beganDir = join(dir, 'began');
    this.endedDir = join(dir, 'ended');
    for (const one of this.directories) files.mkdirSync(one, { recursive: true, mode: 0o700 });
  }

  get directories(): string[] {
    return [this.beganDir, this.endedDir];
  }

  /** Paths that the script of a run is told. */
  of(key: string): { began: string; ended: string } {
    return { began: join(this.beganDir, key), ended: join(this.endedDir, key) };
  }

  /** The runs that have begun, or never will, and those that have ended: two questions, however many there are. */
  look(): { began: ReadonlySet<string>; ended: ReadonlySet<string> } {
    const { files, beganDir, endedDir } = this;
    return { began: new Set(files.readdirSync(beganDir)), ended: new Set(files.readdirSync(endedDir)) };
  }

  /** Takes the run's turn, so that it can never begin, and notes how it ended. False: it has begun. */
  claim(key: string, end: End): boolean {
    const turn = join(this.stateDir, `turn.${key}`);
    return (
      this.files.take(turn, NEVER, JSON.stringify(end), join(this.beganDir, key)) || this.never(key) !== null
    );
  }

  /** How a run ended that never begins; null: nobody has claimed that. */
  never(key: string): End | null {
    const text = this.files.textIn(join(this.beganDir, key), NEVER);
    if (text === null) return null;
    try {
      const { cause, message } = JSON.parse(text) as End;
      if (NEVERS.includes(cause)) return { cause, message: message ? String(message).slice(0, 1000) : null };
    } catch {
      // Below.
    }
    return { cause: 'MACHINE_FAILED', message: 'it never started' };
  }

  where(key: string): Where | null {
    return whereOf(this.files.textIn(join(this.beganDir, key), 'where') ?? '');
  }

  ended(key: string): EndMark | null {
    return endOf(this.files.textIn(this.endedDir, key) ?? '');
  }

  /** The run is over. That it has begun is kept: it may still be with the scheduler. */
  spend(key: string): void {
    try {
      this.files.rmSync(join(this.endedDir, key), { force: true });
    } catch {
      // A directory, which no run of ours makes; or it hangs: then the next agent does it.
    }
    this.spent.push({ key, atMs: upMs() });
  }

  /** After a start: those that are not live are spent. */
  recover(live: ReadonlySet<string>): void {
    for (const key of this.files.readdirSync(this.beganDir)) if (!live.has(key)) this.spend(key);
  }

  /** Those that are not needed any more, for whoever may remove them. */
  forgetSpent(): string[] {
    const before = upMs() - SPENT_MS;
    const old = this.spent.findIndex(({ atMs }) => atMs >= before);
    return this.spent
      .splice(0, old === -1 ? this.spent.length : old)
      .map(({ key }) => join(this.beganDir, key));
  }
}
