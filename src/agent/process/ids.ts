/** User and group ids that agents of a host give to their runs: no two agents the same. */
import {
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
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

/** What an agent has of a range. Other agents see that it lives for as long as this is not closed. */
export interface Share extends IdRange {
  close(): void;
}

/** A range that is one agent's, because its operator says so. */
export const allOf = ({ first, last }: IdRange): Share => ({ first, last, close: () => {} });

/** A part of a range that no other agent of this host has: what has its ids is ended. */
export function shareOf({ first, last }: IdRange, name: string, stateDir: string): Share {
  const shares = Math.floor((last - first + 1) / SHARE);
  if (shares < 2) return allOf({ first, last });
  const preferred = crc32(name) % shares;
  for (let i = 0; i < shares; i++) {
    const own = first + SHARE * ((preferred + i) % shares);
    const path = join(CLAIMS, `ids-${own}`);
    if (isClaimed(path, name, stateDir)) return { first: own, last: own + SHARE - 1, close: held(path) };
  }
  throw new Error(`AGENT_UIDS: all IDs from ${first} to ${last} are used by other agents on this host`);
}

/** Ids that an agent of this host has taken. */
export interface ClaimedIds extends IdRange {
  /** A file that only root may open: the agent has it open while it lives. Those of earlier releases have not. */
  claim: string;
}

/** By the names of the agents. */
export function claimedIds(): Map<string, ClaimedIds> {
  const found = new Map<string, ClaimedIds>();
  try {
    for (const file of readdirSync(CLAIMS)) {
      const first = Number(/^ids-(\d+)$/.exec(file)?.[1]);
      if (!(first >= LEAST_UID)) continue;
      const claim = join(CLAIMS, file);
      const { name } = JSON.parse(readFileSync(claim, 'utf8')) as { name: string };
      found.set(name, { first, last: first + SHARE - 1, claim });
    }
  } catch {
    // Nobody has claimed any, or somebody is about to.
  }
  return found;
}

/** Opens a claim; the answer closes it. */
function held(path: string): () => void {
  let claim: number | null = null;
  try {
    // A job that could open it would pass for a living agent.
    chmodSync(path, 0o600);
    claim = openSync(path, 'r');
  } catch {
    // Nobody can claim anything here.
  }
  return () => {
    if (claim !== null) closeSync(claim);
    claim = null;
  };
}

function isClaimed(path: string, name: string, stateDir: string): boolean {
  const own = JSON.stringify({ name, stateDir });
  for (;;) {
    try {
      mkdirSync(CLAIMS, { recursive: true, mode: 0o755 });
      writeFileSync(path, own, { flag: 'wx', mode: 0o600 });
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
