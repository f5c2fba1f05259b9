import * as fs from 'node:fs';
import { join } from 'node:path';
import type { Assignment } from '../runner.js';

/** The longest name of a file. */
const NAME_BYTES = 255;

/**
 * Puts links to a run's inputs into its own directory, under the names of the datasets; into a directory that was given for it, nothing is
 * put. Answers the variables that say where they are: SWITCHYARD_INPUT_1 and so on, by place among the job's inputs; and SWITCHYARD_CHECKPOINT,
 * which lies where the run does not write its own.
 */
export function placeInputs(
  { staged = [], workingDirectory }: Assignment,
  directory: string,
  { symlinkSync }: { symlinkSync(target: string, path: string): void } = fs,
): Record<string, string> {
  const taken = new Set<string>();
  return Object.fromEntries(
    staged.map(({ place, name, path }) => {
      if (place === 0) return ['SWITCHYARD_CHECKPOINT', path];
      const variable = `SWITCHYARD_INPUT_${place}`;
      if (workingDirectory !== null) return [variable, path];
      const file = fileName(name, place, taken);
      taken.add(file);
      symlinkSync(path, join(directory, file));
      return [variable, join(directory, file)];
    }),
  );
}

/** A dataset may have a name that no file can have. */
function fileName(name: string, place: number, taken: ReadonlySet<string>): string {
  const plain = name.replace(/[/\0]/g, '_');
  const fits = plain !== '.' && plain !== '..' && Buffer.byteLength(plain) <= NAME_BYTES && !taken.has(plain);
  return fits ? plain : `input-${place}`;
}
