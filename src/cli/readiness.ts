/**
 * Whether a process can do its work, from what it has lately seen. Whoever asks costs the database nothing, and a database that is slow,
 * but answers, takes nobody out of service.
 */
import type { Lifeline } from '../store/lifeline.js';
import { CliError } from './errors.js';

export interface ReadinessParts {
  lifeline: Pick<Lifeline, 'reach'>;
  /** What this release needs and the database has not; null: nothing. */
  unmigrated(): Promise<string | null>;
  /** Whether the first policy is there, which is written when the installation is set up. */
  isSetUp(): Promise<boolean>;
}

const LOOK_MS = 1_000;

export class Readiness {
  private setUp = false;
  private timer: NodeJS.Timeout | null = null;

  constructor(private readonly parts: ReadinessParts) {}

  /** Throws when the database lacks what this release needs. Whether it is set up is looked at until it is. */
  async start(): Promise<void> {
    const lacking = await this.parts.unmigrated();
    if (lacking !== null) throw new CliError(lacking);
    await this.look();
  }

  private async look(): Promise<void> {
    this.setUp = await this.parts.isSetUp().catch(() => false);
    if (!this.setUp) this.timer = setTimeout(() => void this.look(), LOOK_MS);
  }

  stop(): void {
    if (this.timer) clearTimeout(this.timer);
  }

  /** What stands in the way of the work; null: nothing. */
  missing(): string | null {
    const { reach } = this.parts.lifeline;
    if (reach.is === 'unknown') return 'the database has not responded yet';
    if (reach.is === 'away') return `the database cannot be reached: ${reach.why}`;
    return this.setUp ? null : 'not set up';
  }
}
