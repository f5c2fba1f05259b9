/**
 * Runs that go on and have written their checkpoints: those that they report, else when the file was written that was named at submission. (Of a
 * directory nobody can say when all of it is there.)
 */
import { reportedCheckpoint } from '../files/checkpoint.js';
import { openInside } from '../files/find.js';
import { nameOf, type WrittenCheckpoint } from '../runner.js';
import { type ProcessRun, upMs } from './run.js';

/** From when one was told until that run is looked at again. */
const TOLD_PAUSE_MS = 60_000;

/** Files have the time of the last tick of the kernel's clock. */
const TICK_MS = 20;

/** Those that have since it was told, and were not told of a minute ago. */
export async function writtenCheckpoints(runs: readonly ProcessRun[]): Promise<WrittenCheckpoint[]> {
  const now = upMs();
  const written: WrittenCheckpoint[] = [];
  for (const run of runs) {
    const { checkpointed, startedAtMs } = run;
    if (run.wanted?.checkpoint === undefined || now < checkpointed.nextUpMs) continue;
    const reported = await reportedCheckpoint({ ...run.wanted, uid: run.uid }, run.wanted.reports);
    const atMs = reported?.atMs ?? (await writtenAt(run, run.wanted.checkpoint));
    // What was there before is of another run.
    if (atMs !== null && atMs !== checkpointed.atMs && atMs > startedAtMs - TICK_MS)
      written.push({ ...nameOf(run), atMs });
  }
  return written;
}

export function told(run: ProcessRun, atMs: number): void {
  run.checkpointed = { atMs, nextUpMs: upMs() + TOLD_PAUSE_MS };
}

/** null: it has not, or the file is not one that would be kept. */
async function writtenAt({ wanted, uid }: ProcessRun, path: string): Promise<number | null> {
  try {
    const file = await openInside({ ...(wanted as NonNullable<typeof wanted>), uid }, path);
    try {
      return Math.floor((await file.stat()).mtimeMs);
    } finally {
      await file.close();
    }
  } catch {
    return null;
  }
}
