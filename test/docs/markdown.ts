import { readFileSync } from 'node:fs';
import { packagePath } from '../../src/platform/paths.js';

/** Rows of the first table under a heading, without its head; cells without the backquotes around them. */
export function tableUnder(markdown: string, heading: string): string[][] {
  const section = markdown.split(new RegExp(`^#+ ${heading}$`, 'm'))[1];
  if (section === undefined) throw new Error(`there is no heading "${heading}"`);
  const table = /(?:^\|.*\|\n?)+/m.exec(section)?.[0] ?? '';
  return table
    .trim()
    .split('\n')
    .slice(2)
    .map((row) =>
      row
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim().replace(/^`([^`]*)`$/, '$1')),
    );
}

/** A command that a page shows. */
export interface Shown {
  text: string;
  /** `README.md:52` */
  at: string;
}

/** A part of a page: all of it, or what is under a heading, up to the next heading of any level. */
export interface Part {
  page: string;
  under?: string;
}

/** The lines of a part, with their numbers. */
function linesOf({ page, under }: Part): [line: string, number: number][] {
  const lines = readFileSync(packagePath(page), 'utf8')
    .split('\n')
    .map((line, i): [string, number] => [line, i + 1]);
  if (under === undefined) return lines;
  const from = lines.findIndex(([line]) => /^#+ /.test(line) && line.replace(/^#+ /, '') === under);
  if (from < 0) throw new Error(`${page} has no heading "${under}"`);
  let inBlock = false;
  const to = lines.findIndex(([line], i) => {
    if (line.startsWith('```')) inBlock = !inBlock;
    return i > from && !inBlock && /^#+ /.test(line);
  });
  return lines.slice(from + 1, to < 0 ? undefined : to);
}

/** The blocks of a part in a language, each with what stands behind the language, and where it begins. */
export function blocksOf(part: Part, language: string): { name: string; text: string; line: number }[] {
  const found: { name: string; text: string; line: number }[] = [];
  let open: { fence: string; name: string; text: string; line: number } | null = null;
  for (const [line, number] of linesOf(part)) {
    if (open === null) {
      const [, fence, name = ''] = /^```(\S+) ?(.*)$/.exec(line) ?? [];
      if (fence) open = { fence, name, text: '', line: number + 1 };
    } else if (line === '```') {
      if (open.fence === language) found.push(open);
      open = null;
    } else open.text += `${line}\n`;
  }
  return found;
}

/** The commands of a part's shell blocks, without the comments behind them. */
export function commandsOf(part: Part): Shown[] {
  return blocksOf(part, 'sh').flatMap(({ text, line }) =>
    text
      .trimEnd()
      .split('\n')
      .map((one, i) => ({ text: one.replace(/(^|\s+)# .*$/, ''), at: `${part.page}:${line + i}` }))
      .filter(({ text }) => text !== ''),
  );
}

/** The commands in a part's sentences and tables: what is quoted there and begins with one of these words. */
export function mentionedIn(part: Part, words: RegExp): Shown[] {
  let inBlock = false;
  const prose = linesOf(part).map(([line, number]): [string, number] => {
    const fence = line.startsWith('```');
    if (fence) inBlock = !inBlock;
    return [fence || inBlock ? '' : line, number];
  });
  const text = prose.map(([line]) => line).join('\n');
  const first = prose[0]?.[1] ?? 1;
  return [...text.matchAll(/`([^`]+)`/g)]
    .map(({ 1: quoted, index }) => ({
      text: quoted!.replace(/\s+/g, ' '),
      at: `${part.page}:${first + text.slice(0, index).split('\n').length - 1}`,
    }))
    .filter((quoted) => words.test(quoted.text));
}
