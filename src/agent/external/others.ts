/**
 * What former agents of the site left with its scheduler. An agent whose state directory is another one knows nothing of those runs, and once it
 * has the leases they are lost and may begin elsewhere: so they are ended first.
 */
import { createHash } from 'node:crypto';
import { dirname, join } from 'node:path';
import type { Calls } from './calls.js';
import type { LocalJob, LocalScheduler } from './scheduler.js';

/** Whom the agent hands runs over for. */
export interface Serves {
  /** The address of its service: others may have a site of the same name there. */
  service: string;
  site: string;
}

const short = (text: string, length: number): string =>
  createHash('sha256').update(text).digest('hex').slice(0, length);

/** What the names of all agents of a site begin with, and those of one of them. */
export const sitePrefix = ({ service, site }: Serves): string => `sy-${short(`${service} ${site}`, 8)}-`;
export const prefixOf = (serves: Serves, agent: string): string => `${sitePrefix(serves)}${short(agent, 6)}-`;

/** In a state directory: touched as long as its agent lives. */
export const ALIVE = 'alive';
/** Longer than an agent may be busy. */
const ALIVE_MS = 60_000;

export class Others {
  constructor(
    private readonly stateDir: string,
    private readonly prefix: string,
    private readonly scheduler: LocalScheduler,
    private readonly files: Calls,
  ) {}

  /**
   * Has the runs of former agents ended, whose jobs are among these.
   *
   * @returns why the leases may not be asked for, or not yet; null: nothing is left
   */
  async end(jobs: readonly LocalJob[]): Promise<string | null> {
    const left = jobs.filter(({ name, phase }) => phase !== 'ENDED' && !name.startsWith(this.prefix));
    if (left.length === 0) return null;
    const { label } = this.scheduler;
    const alive = left.find(({ directory }) => directory !== null && this.isAlive(stateOf(directory)));
    if (alive?.directory)
      return `another agent (state directory ${stateOf(alive.directory)}) submits runs for this site: stop that agent first`;
    await this.scheduler.cancel(left);
    const some = left.slice(0, 5).map(({ id }) => id);
    return `${left.length} jobs of an earlier agent are being ended by ${label}: ${some.join(', ')}${left.length > 5 ? ', …' : ''}`;
  }

  /** Both times are those of the file system: clocks of hosts may differ. */
  private isAlive(stateDir: string): boolean {
    const touched = (dir: string): number | undefined =>
      this.files.statSync(join(dir, ALIVE), { throwIfNoEntry: false })?.mtimeMs;
    const [theirs, ours] = [touched(stateDir), touched(this.stateDir)];
    return theirs !== undefined && ours !== undefined && ours - theirs < ALIVE_MS;
  }
}

/** Where the directory of a run, or of an array, is: two below its agent's. */
const stateOf = (directory: string): string => dirname(dirname(directory));
