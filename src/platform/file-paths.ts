/** Paths of files below a directory, as they go between programs that do not trust each other. */

/** Control characters, halves of surrogate pairs, what changes the direction of text, and what separates names on other systems. */
const UNSAFE = /[\p{Cc}\p{Surrogate}\u2028-\u202e\u2066-\u2069\\]/u;
/** The longest name of a file. */
const NAME_BYTES = 255;

/** What is accepted instead of a path that could lead elsewhere, or that nobody could read; null: it can be used as it is. */
export function filePathFault(path: string, charsMax: number): string | null {
  if (path.length < 1 || path.length > charsMax) return `1 to ${charsMax} characters`;
  if (path.startsWith('/') || /^[A-Za-z]:/.test(path)) return 'a path below the directory of the run';
  if (UNSAFE.test(path)) return 'a path without control characters and without \\';
  const names = path.split('/');
  if (names.some((name) => name === '' || name === '.' || name === '..'))
    return 'a path without empty names, `.` and `..`';
  return names.some((name) => Buffer.byteLength(name) > NAME_BYTES)
    ? `a path with names of up to ${NAME_BYTES} bytes`
    : null;
}

/** Of outputs: what a run has left in its `/tmp`, which may be its own. */
const TMP = '/tmp/';

/** The path below `/tmp` of an output that is there; null: it is below the directory of the run. */
export const pathInTmp = (path: string): string | null =>
  path.startsWith(TMP) ? path.slice(TMP.length) : null;

/** Under which path a file of a run is kept: one of `/tmp` as if that were a directory of the run's. */
export const keptPath = (path: string): string => (pathInTmp(path) === null ? path : path.slice(1));

/** What is accepted instead of the path of an output, or of a file of one; null: it can be used as it is. */
export function outputPathFault(path: string, charsMax: number): string | null {
  const fault = filePathFault(keptPath(path), charsMax);
  return fault === null || !path.startsWith('/') ? fault : `${fault}, or below /tmp`;
}

/** Whether a name fits a pattern of `*` and `?`; in a time that grows with the product of their lengths at the most. */
export function fits(name: string, pattern: string): boolean {
  let [n, p] = [0, 0];
  let star = -1;
  let from = 0;
  while (n < name.length) {
    if (pattern[p] === '*') {
      star = p++;
      from = n;
    } else if (pattern[p] === '?' || pattern[p] === name[n]) {
      n++;
      p++;
    } else if (star >= 0) {
      p = star + 1;
      n = ++from;
    } else return false;
  }
  while (pattern[p] === '*') p++;
  return p === pattern.length;
}
