import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packagePath } from '../../src/platform/paths.js';

const PROGRAM = packagePath('test', 'support', 'hang.py');

/** Why no file system can be made to hang here; null: one can. */
export function hangLacks(): string | null {
  const dir = mkdtempSync(join(tmpdir(), 'sy-hang-'));
  const { status, stderr } = spawnSync('python3', [PROGRAM, dir], { input: '', encoding: 'utf8' });
  rmdirSync(dir);
  return status === 0 ? null : `no file system can be mounted: ${stderr ?? 'no python3'}`;
}

/** From now on whoever asks for something in the directory waits. What is returned ends that: what waited fails, and all is as it was before. */
export async function hang(directory: string): Promise<() => Promise<void>> {
  const child = spawn('python3', [PROGRAM, directory], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  await Promise.race([
    once(child.stdout, 'data'),
    ended.then(([code]) => Promise.reject(new Error(`hang.py: ${code}`))),
  ]);
  return async () => {
    child.stdin.end();
    await ended;
  };
}
