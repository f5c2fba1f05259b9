/** Command lines with places for an input, such as `gzip {}`: as GNU parallel writes them. */
import { posix } from 'node:path';
import type { Command } from '../words/index.js';

/** What each place stands for: the input, or a part of it taken as a path, or its number. */
const PLACES: Readonly<Record<string, (input: string, number: number) => string>> = {
  '{}': (input) => input,
  '{.}': (input) => withoutExtension(input),
  '{/}': (input) => posix.basename(input),
  '{//}': (input) => posix.dirname(input),
  '{/.}': (input) => withoutExtension(posix.basename(input)),
  '{#}': (_input, number) => String(number),
};
const NAMES = Object.keys(PLACES);
const PLACE = /\{(?:\.|\/\/|\/\.|\/|#)?\}/g;
const PIECE = new RegExp(`(?<place>${PLACE.source})|(?<escaped>\\\\[^])|[^]`, 'g');

const withoutExtension = (path: string): string => path.replace(/(?<=[^/])\.[^./]*$/, '');

/**
 * What makes the command of an input. Several words are the program and its arguments, and run without a shell. One word is a line
 * for `sh`, in which each place becomes a parameter (`"${1}"`): whatever is in an input, the shell never takes it for a part of the line. Without any
 * place the input is the last argument.
 */
export function commandTemplate(words: readonly string[]): (input: string, number: number) => Command {
  const [line = ''] = words;
  const places = (text: string): boolean => text.search(PLACE) >= 0;
  if (words.length > 1) {
    const [command = '', ...args] = words.some(places) ? words : [...words, '{}'];
    return (input, number) => {
      const filled = (text: string): string => text.replace(PLACE, (place) => PLACES[place]!(input, number));
      return { command: filled(command), arguments: args.map(filled) };
    };
  }
  const script = shellLine(places(line) ? line : `${line} {}`);
  return (input, number) => ({
    command: '/bin/sh',
    arguments: ['-c', script, 'map', ...NAMES.map((place) => PLACES[place]!(input, number))],
  });
}

/** The line with parameters in its places, quoted as the place asks for; `\{}` stays as it is. */
function shellLine(line: string): string {
  const pieces = line.matchAll(PIECE);
  let quote = '';
  let script = '';
  for (const { 0: text, groups } of pieces) {
    if (groups?.place !== undefined) {
      const parameter = `\${${NAMES.indexOf(text) + 1}}`;
      script += { '': `"${parameter}"`, '"': parameter, "'": `'"${parameter}"'` }[quote];
      continue;
    }
    script += text;
    if (groups?.escaped !== undefined) {
      // Between single quotes a backslash is one like any other, and may stand before the closing quote.
      if (quote === "'" && text.endsWith("'")) quote = '';
    } else if (quote === '' && (text === "'" || text === '"')) quote = text;
    else if (quote === text) quote = '';
  }
  return script;
}
