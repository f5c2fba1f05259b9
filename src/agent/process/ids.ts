/** User and group ids that agents of a host give to their runs: no two agents the same. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { LEAST_UID } from './accounts.js';

export interface IdRange {
  first: number;
  last: number;
}

/** Ids that one agent takes of a range that is large enough for several. */
const SHARE = 4096;
/** Where agents of a host say which part of a range is whose. As runs do, it outlives an agent, and not the system. */
const CLAIMS = '/run/switchyard';

/** A part of a range that no other agent of this host has: what has its ids is ended. */
export function shareOf({ first, last }: IdRange, name: string, stateDir: string): IdRange {
  const shares = Math.floor((last - first + 1) / SHARE);
  if (shares < 2) return { first, last };
  const preferred = crc32(name) % shares;
  for (let i = 0; i < shares; i++) {
    const own = first + SHARE * ((preferred + i) % shares);
    if (isClaimed(join(CLAIMS, `ids-${own}`), name, stateDir)) return { first: own, last: own + SHARE - 1 };
  }
  throw new Error(`AGENT_UIDS: all IDs from ${first} to ${last} are used by other agents on this host`);
}

/** Ids that agents of this host have taken, by the names of the agents. */
export function claimedIds(): Map<string, IdRange> {
  const found = new Map<string, IdRange>();
  try {
    for (const file of readdirSync(CLAIMS)) {
      const first = Number(/^ids-(\d+)$/.exec(file)?.[1]);
      if (!(first >= LEAST_UID)) continue;
      const { name } = JSON.parse(readFileSync(join(CLAIMS, file), 'utf8')) as { name: string };
      found.set(name, { first, last: first + SHARE - 1 });
    }
  } catch {
    // Nobody has claimed any, or somebody is about to.
  }
  return found;
}

function isClaimed(path: string, name: string, stateDir: string): boolean {
  const own = JSON.stringify({ name, stateDir });
  for (;;) {
    try {
      mkdirSync(CLAIMS, { recursive: true, mode: 0o755 });
      writeFileSync(path, own, { flag: 'wx' });
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return true; // Nobody can claim anything here.
    }
    try {
      const claimed = readFileSync(path, 'utf8');
      if (claimed === own) return true;
      const claim = JSON.parse(claimed) as { name: string; stateDir: string };
      // One of the same name: its directory has been moved.
      if (claim.name !== name && readFileSync(join(claim.stateDir, 'id'), 'utf8') === claim.name)
        return false;
    } catch {
      // Its agent is no more, or died while it wrote this.
    }
    rmSync(path, { force: true });
  }
}
