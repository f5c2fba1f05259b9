/** Which of its files a run has said is its checkpoint: the job is not trusted with it, as with all that it names (find.ts). */
import { filePathFault } from '../../platform/file-paths.js';
import { MAX } from '../../platform/limits.js';
import { openInside, type Place } from './find.js';

/** In a directory of the agent's for the run: to it the job appends the paths of its checkpoints, each as a line. */
export const REPORT_FILE = '.switchyard-checkpoints';

/** Of the file, from its end: one line has its place in it. */
const READ_BYTES = 2 * 4 * MAX.outputPathChars;

export interface Reported {
  /** Below the directory of the run. */
  path: string;
  /** When it was said, ms since 1970. */
  atMs: number;
}

/**
 * The last checkpoint that was reported; null: none was. A line that is not complete yet does not count, nor does one that is no path below
 * the directory of the run.
 *
 * @param reports where the file is; left out: a run of an earlier release has none
 */
export async function reportedCheckpoint(
  { directory, uid }: Place,
  reports: string | undefined,
): Promise<Reported | null> {
  if (reports === undefined) return null;
  try {
    const file = await openInside({ directory: reports, uid }, REPORT_FILE);
    try {
      const { size, mtimeMs } = await file.stat();
      const buffer = Buffer.alloc(Math.min(size, READ_BYTES));
      const { bytesRead } = await file.read(buffer, 0, buffer.length, size - buffer.length);
      const lines = buffer.toString('utf8', 0, bytesRead).split('\n');
      // Behind the last end of a line nothing is complete; what the buffer begins with may have begun before.
      const complete = lines.slice(size > READ_BYTES ? 1 : 0, -1);
      const path = complete.map((line) => pathOf(line, directory)).findLast((one) => one !== null);
      return path === undefined || path === null ? null : { path, atMs: Math.floor(mtimeMs) };
    } finally {
      await file.close();
    }
  } catch {
    return null;
  }
}

function pathOf(line: string, directory: string): string | null {
  const below = line.startsWith(`${directory}/`) ? line.slice(directory.length + 1) : line;
  const path = below.replace(/^(\.\/)+/, '').replace(/\/+$/, '');
  return filePathFault(path, MAX.outputPathChars) === null && !/[*?]/.test(path) ? path : null;
}
