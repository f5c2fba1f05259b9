/** Commands of the operator's, which are ended together with all that they have started. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { hostEnvironment } from '../platform/environment.js';

/** Starts a program as the leader of a process group of its own, in the agent's own environment. `end` kills the group, as often as it is called. */
export function spawnGroup(
  program: string,
  words: readonly string[],
  stdio: NonNullable<SpawnOptions['stdio']>,
): { child: ChildProcess; end: () => void } {
  const child = spawn(program, words, { detached: true, stdio, env: hostEnvironment() });
  const end = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It has gone by itself.
    }
  };
  return { child, end };
}
