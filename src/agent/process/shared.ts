/**
 * What accounts of runs leave where everybody may write. An account is given to another run later, which would own it: so it goes first.
 *
 * It is removed as the account that it belongs to: whatever somebody else puts in its place meanwhile is no way to anything of root's.
 */
import { readFileSync } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Directories in which every account may make files. */
const DIRECTORIES = ['/tmp', '/var/tmp', '/dev/shm', '/dev/mqueue', '/run/lock'];
/** Objects of System V, with the option of ipcrm(1) for each kind; their numbers are in the second column, their owner in this one. */
const OBJECTS = [
  { file: '/proc/sysvipc/shm', option: '-m', owner: 7 },
  { file: '/proc/sysvipc/sem', option: '-s', owner: 4 },
  { file: '/proc/sysvipc/msg', option: '-q', owner: 7 },
];
/** Of one account, in one go: a command line has an end. */
const MOST = 500;

/** What accounts have left: words for `REMOVE`, by account. `isOurs`: whether it is one of those that are asked for. */
export async function leftInShared(isOurs: (uid: number) => boolean): Promise<Map<number, string[]>> {
  const found = new Map<number, string[]>();
  const add = (uid: number, ...words: string[]): void => {
    if (!isOurs(uid)) return;
    const all = found.get(uid) ?? [];
    if (all.length < MOST) found.set(uid, [...all, ...words]);
  };
  for (const dir of DIRECTORIES) {
    for (const name of await readdir(dir).catch(() => [])) {
      const path = join(dir, name);
      const stat = await lstat(path).catch(() => null);
      if (stat) add(stat.uid, path);
    }
  }
  for (const { file, option, owner } of OBJECTS) {
    for (const line of textOf(file).split('\n').slice(1)) {
      const columns = line.trim().split(/\s+/);
      if (columns.length > owner) add(Number(columns[owner]), `${option}${columns[1]}`);
    }
  }
  return found;
}

/** Shell text that removes these, for the account that they belong to. */
export const REMOVE = `
for one; do
  case $one in -*) ipcrm "$one" ;; *) chmod -R u+rwX "$one"; rm -rf "$one" ;; esac
done 2>/dev/null
true
`;

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return ''; // This kernel has none.
  }
}
