import * as fs from 'node:fs';
import { join } from 'node:path';
import type { Assignment } from '../runner.js';

/** The longest name of a file. */
const NAME_BYTES = 255;

/**
 * Puts links to a run's inputs into its own directory, under the names of the datasets; into a directory that was given for it, nothing is
 * put. Answers the variables that say where they are: SWITCHYARD_INPUT_1 and so on, by place among the job's inputs; likewise SWITCHYARD_DOWNLOAD_1; and SWITCHYARD_CHECKPOINT,
 * which lies where the run does not write its own. SWITCHYARD_UPLOADS tells a run that its uploads will be seen to, and how many they are:
 * agents of earlier releases do not know them.
 */
export function placeInputs(
  { staged = [], outputs = [], workingDirectory }: Assignment,
  directory: string,
  { symlinkSync }: { symlinkSync(target: string, path: string): void } = fs,
): Record<string, string> {
  const taken = new Set<string>();
  const uploads = outputs.filter(({ url }) => url !== undefined).length;
  const places = staged.map(({ place, name, path, downloaded }) => {
    if (place === 0) return ['SWITCHYARD_CHECKPOINT', path];
    const kind = downloaded ? 'download' : 'input';
    const variable = `SWITCHYARD_${kind.toUpperCase()}_${place}`;
    if (workingDirectory !== null) return [variable, path];
    const file = fileName(name, `${kind}-${place}`, taken);
    taken.add(file);
    symlinkSync(path, join(directory, file));
    return [variable, join(directory, file)];
  });
  return {
    ...Object.fromEntries(places),
    ...(uploads > 0 && { SWITCHYARD_UPLOADS: String(uploads) }),
  };
}

/** A dataset may have a name that no file can have. `otherwise`: which it then has. */
function fileName(name: string, otherwise: string, taken: ReadonlySet<string>): string {
  const plain = name.replace(/[/\0]/g, '_');
  const fits =
    plain !== '' &&
    plain !== '.' &&
    plain !== '..' &&
    Buffer.byteLength(plain) <= NAME_BYTES &&
    !taken.has(plain);
  return fits ? plain : otherwise;
}
