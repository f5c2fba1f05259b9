/** What somebody may have meant by a word that is none of those accepted. */

/** How many letters are to be changed, left out, added, or exchanged with their neighbor (optimal string alignment). */
function distance(a: string, b: string): number {
  let [before, last]: [number[], number[]] = [[], Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const changed = last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      const exchanged =
        a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? before[j - 2]! + 1 : Number.POSITIVE_INFINITY;
      row.push(Math.min(changed, exchanged, last[j]! + 1, row[j - 1]! + 1));
    }
    [before, last] = [last, row];
  }
  return last[b.length]!;
}

/** Longer words are not compared: whoever writes them meant something else. */
const LONGEST = 100;

/** The word that differs least, in up to a third of its letters, upper and lower case alike; null: none is that near. */
export function nearest(written: string, words: Iterable<string>): string | null {
  if (written.length > LONGEST) return null;
  let [found, least]: [string | null, number] = [null, Number.POSITIVE_INFINITY];
  for (const word of words) {
    if (word.length > LONGEST) continue;
    const differs = distance(written.toLowerCase(), word.toLowerCase());
    if (differs < least && differs <= Math.max(1, word.length / 3)) [found, least] = [word, differs];
  }
  return found;
}

/** `; did you mean alps?` behind an error, or nothing. */
export function meant(written: string, words: Iterable<string>): string {
  const word = nearest(written, words);
  return word === null ? '' : `; did you mean ${word}?`;
}
