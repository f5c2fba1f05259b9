/** Results of runs in a folder, so that a sweep which was interrupted goes on with those that are missing. */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { VERSION } from '../platform/version.js';
import type { RunOptions } from './compare.js';
import type { PolicyModule } from './policy-module.js';
import type { Simulated } from './simulate.js';

/** A file that has changed is another one. */
function stateOf(path: string | null | undefined): string | null {
  if (typeof path !== 'string') return null;
  const { size, mtimeMs } = statSync(path);
  return `${path} ${size} ${mtimeMs}`;
}

export class KeptRuns {
  /** @throws Error when the folder cannot be made */
  constructor(
    private readonly folder: string,
    private readonly modules: readonly PolicyModule[],
  ) {
    mkdirSync(folder, { recursive: true });
  }

  /** What is known of a run with the same options, files, policies and version; null: nothing. */
  read(run: RunOptions): Simulated | null {
    try {
      return JSON.parse(readFileSync(this.pathOf(run), 'utf8')) as Simulated;
    } catch (error) {
      // One that was cut short by a crash is none.
      if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  }

  keep(run: RunOptions, result: Simulated): void {
    const path = this.pathOf(run);
    writeFileSync(`${path}.part`, `${JSON.stringify(result)}\n`);
    renameSync(`${path}.part`, path);
  }

  private pathOf(run: RunOptions): string {
    const { trace, sites, outages } = run;
    const files = [typeof trace === 'string' ? trace : null, sites, outages].map(stateOf);
    const told = JSON.stringify([VERSION, run, files, this.modules]);
    return join(this.folder, `${createHash('sha256').update(told).digest('hex').slice(0, 32)}.json`);
  }
}
