/** Whose a state directory is. */
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { lanesHere } from './others.js';

/**
 * Tells this agent's processes from those of other agents on the machine. An agent whose reports are gone does not know what it has
 * started, and is another. Where only the file of the id is gone, the lanes of runs that are still written down here know it.
 */
export function agentId(stateDir: string): string {
  const remembers = existsSync(join(stateDir, 'reports', 'acknowledged'));
  const known = idIn(stateDir);
  if (remembers && known !== null) return known;
  const lane = lanesHere().find(({ dir }) => dir.startsWith(`${stateDir}/`) && existsSync(join(dir, 'lane')));
  const id = (remembers && lane?.agent) || randomUUID();
  writeFileSync(join(stateDir, 'id'), id, { mode: 0o600 });
  return id;
}

/** Whether the state directory is not there any more, or another agent's. What cannot be read now says nothing. */
export function isGone(stateDir: string, id: string): boolean {
  try {
    return idIn(stateDir) !== id;
  } catch {
    return false;
  }
}

/** The id that is kept there; null: none is. */
function idIn(stateDir: string): string | null {
  try {
    return readFileSync(join(stateDir, 'id'), 'utf8') || null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
