/** The steps that `srun` in a run has noted. They are in a file of the job's, which is not trusted with it (find.ts): anything may stand there. */
import { join } from 'node:path';
import { z } from 'zod';
import { MAX } from '../../platform/limits.js';
import { type NotedStep, STEP_RECORDS } from '../../platform/steps.js';
import { openInside, type Place } from './find.js';

/** Where steps of a run count themselves, in the directory of its slot: the first makes it. */
export const STEPS = '.switchyard-steps';

/** Of the file, from its beginning: several times what so many steps with usual names take. */
const READ_BYTES = 1 << 20;
/** Of a start and of an end each. */
const LINES_MAX = 2 * MAX.runSteps;

const count = (least: number) => z.number().int().min(least).max(MAX.integer);
const timeMs = z.number().int().min(0);
const noted = z.object({
  number: count(0),
  // It is shown in tables.
  name: z.string().transform((name) => name.slice(0, MAX.nameChars).replaceAll(/\p{Cc}/gu, '?')),
  tasks: count(1),
  machines: count(1),
  cpus: count(1),
  startedAtMs: timeMs,
  endedAtMs: timeMs.nullable(),
  exitCode: z.number().int().min(0).max(255).nullable(),
  signal: z
    .string()
    .regex(/^SIG[A-Z0-9+]{1,12}$/)
    .nullable(),
}) satisfies z.ZodType<NotedStep>;

/** The first MAX.runSteps of them, by number; none where there is no such file of the run's own. What is no whole record does not count. */
export async function notedSteps(place: Place): Promise<NotedStep[]> {
  const steps = new Map<number, NotedStep>();
  for (const line of await linesOf(place)) {
    const step = stepOf(line);
    if (step === null || (steps.size === MAX.runSteps && !steps.has(step.number))) continue;
    if (steps.get(step.number)?.endedAtMs == null) steps.set(step.number, step);
  }
  return [...steps.values()].sort((a, b) => a.number - b.number);
}

async function linesOf(place: Place): Promise<string[]> {
  try {
    const file = await openInside(place, join(STEPS, STEP_RECORDS));
    try {
      const buffer = Buffer.alloc(Math.min((await file.stat()).size, READ_BYTES));
      const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
      // Behind the last end of a line nothing is complete.
      return buffer
        .toString('utf8', 0, bytesRead)
        .split('\n', LINES_MAX + 1)
        .slice(0, -1);
    } finally {
      await file.close();
    }
  } catch {
    return [];
  }
}

function stepOf(line: string): NotedStep | null {
  try {
    return noted.parse(JSON.parse(line));
  } catch {
    return null;
  }
}
