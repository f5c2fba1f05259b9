/** What is mounted where, as the agent sees it (proc_pid_mountinfo(5)). */
import { readFileSync } from 'node:fs';

/** In the order in which they were mounted. */
export function mountPoints(): { path: string; type: string }[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => {
      // id parent major:minor root mount-point … - type
      const [before = '', behind = ''] = line.split(' - ');
      const [, , , , path = ''] = before.split(' ');
      return { path: unescaped(path), type: behind.split(' ')[0]! };
    });
}

const unescaped = (path: string): string =>
  path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
