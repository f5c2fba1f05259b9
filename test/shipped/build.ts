/** What is shipped, made from a fresh copy of the last commit: nothing that only lies in this working tree gets in. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packagePath } from '../../src/platform/paths.js';

/** A new directory that other users may pass through. */
export const openDirectory = (name: string): string => {
  const dir = mkdtempSync(join(tmpdir(), `switchyard-${name}-`));
  execFileSync('chmod', ['755', dir]);
  return dir;
};

/** The last commit's files in a new directory. */
export function checkout(): string {
  const dir = openDirectory('checkout');
  const files = execFileSync('git', ['archive', 'HEAD'], { cwd: packagePath(), maxBuffer: 2 ** 30 });
  execFileSync('tar', ['x', '-C', dir], { input: files });
  return dir;
}

/** Runs a command to its end and gives what it printed. Throws with what it said when it fails. */
export function must(command: string, args: readonly string[], options: object = {}): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    ...options,
  });
  if (status === 0) return stdout;
  throw new Error(
    `${command} ${args.join(' ')} ended with ${status}: ${error?.message ?? (stdout + stderr).slice(-4000)}`,
  );
}
