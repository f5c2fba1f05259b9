// Ends what a test run leaves behind, however the run itself has ended: `node leftovers.mjs FOLDER`, with a pipe from the run as its input. When
// the pipe closes, every process that belongs to the run's folder for temporary files, by its arguments, environment or directory, is killed
// with all its descendants, and the folder is removed. Processes are found on Linux.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const [folder] = process.argv.slice(2);
const ROUNDS = 100;
const PAUSE_MS = 100;
/** In the first rounds PostgreSQL is told to end at once, not killed: it then gives back its shared memory. */
const ASKED_ROUNDS = 50;

/** What reading this gives; nothing where the process is gone or another user's. */
function attempt(read) {
  try {
    return read();
  } catch {
    return '';
  }
}

/** All processes: number, parent, name, when it began (ticks since the machine started), and whether it has ended. */
function processes() {
  const numbers = attempt(() => readdirSync('/proc')) || [];
  return numbers
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      // The name, in parentheses, may contain anything.
      const [, name, rest] =
        /\((.*)\) (.*)/s.exec(attempt(() => readFileSync(join('/proc', pid, 'stat'), 'utf8'))) ?? [];
      if (rest === undefined) return [];
      const fields = rest.split(' ');
      return [
        {
          pid: Number(pid),
          name,
          parent: Number(fields[1]),
          began: Number(fields[19]),
          ended: fields[0] === 'Z',
        },
      ];
    });
}

const belongs = ({ pid }) =>
  ['cmdline', 'environ'].some((file) =>
    attempt(() => readFileSync(join('/proc', String(pid), file), 'utf8')).includes(folder),
  ) || attempt(() => readlinkSync(join('/proc', String(pid), 'cwd'))).startsWith(folder);

/** The processes of the run that live. Whoever began before the run is somebody who looks into its folder. */
function left() {
  const all = processes();
  const { began } = all.find(({ pid }) => pid === process.pid) ?? { began: 0 };
  const ours = new Set();
  const add = (one) => {
    if (one.pid === process.pid || ours.has(one)) return;
    ours.add(one);
    for (const child of all) if (child.parent === one.pid) add(child);
  };
  for (const one of all) if (one.began >= began && belongs(one)) add(one);
  return [...ours].filter(({ ended }) => !ended);
}

function unmount() {
  const mounts = attempt(() => readFileSync('/proc/mounts', 'utf8')).split('\n');
  for (const mount of mounts) {
    const [, at] = mount.split(' ');
    if (at?.startsWith(`${folder}/`)) spawnSync('umount', ['-l', at], { stdio: 'ignore' });
  }
}

// The run tells nothing: it ends.
await once(process.stdin.resume(), 'close');
for (let round = 0; round < ROUNDS; round++) {
  const remaining = left();
  if (remaining.length === 0) break;
  for (const { pid, name } of remaining) {
    const signal = name === 'postgres' && round < ASKED_ROUNDS ? 'SIGQUIT' : 'SIGKILL';
    attempt(() => process.kill(pid, signal));
  }
  await sleep(PAUSE_MS);
}
unmount();
if (existsSync(folder)) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
