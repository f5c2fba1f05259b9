import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A new empty directory, removed when the test is finished. */
export function temporaryDirectory(): string {
  const dir = mkdtempSync(join(tmpdir(), 'switchyard-tmp-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
