/** Text for people: tables, times, durations. */
import stringWidth from 'string-width';
import { csvCell } from '../words/index.js';

/**
 * Rows under headings, columns as wide as their widest cell, numbers to the right.
 *
 * @param width of the terminal: the widest texts are cut until a line fits, or none is longer than 12
 */
export function table(
  headings: readonly string[],
  rows: readonly (readonly unknown[])[],
  width = Number.POSITIVE_INFINITY,
): string {
  const whole = rows.map((row) =>
    row.map((value) => (value === null || value === undefined ? '-' : printable(String(value)))),
  );
  const widths = headings.map((heading, i) =>
    whole.reduce((widest, row) => Math.max(widest, stringWidth(row[i]!)), heading.length),
  );
  for (let over = widths.reduce((sum, one) => sum + one + 2, -2) - width; over > 0; ) {
    const widest = widths.indexOf(Math.max(...widths));
    const least = Math.max(SHORTEST, headings[widest]!.length);
    if (widths[widest]! <= least) break;
    widths[widest]!--;
    over--;
  }
  const cells = whole.map((row) => row.map((cell, i) => cut(cell, widths[i]!)));
  const right = headings.map((_, i) => rows.length > 0 && rows.every((row) => typeof row[i] === 'number'));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, i) => {
        const space = ' '.repeat(widths[i]! - stringWidth(cell));
        return right[i] ? space + cell : cell + space;
      })
      .join('  ')
      .trimEnd();
  return [line(headings), ...cells.map(line)].join('\n');
}

const SHORTEST = 12;

function cut(text: string, width: number): string {
  if (stringWidth(text) <= width) return text;
  let kept = '';
  for (const c of text) {
    if (stringWidth(kept + c) > width - 1) break;
    kept += c;
  }
  return `${kept}…`;
}

/** Comma-separated values (RFC 4180), without the last line's end. What there is not is empty. */
export const csv = (headings: readonly string[], rows: readonly (readonly unknown[])[]): string =>
  [headings, ...rows]
    .map((row) => row.map((value) => csvCell(printable(String(value ?? '')))).join(','))
    .join('\n');

/**
 * What moves the cursor, changes the terminal, or turns the direction of what follows: whoever names a job must not write on the screen
 * of who lists it. Control characters (C0, C1), bidirectional controls, separators of lines.
 */
const UNSEEN = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

const escaped = (c: string): string => {
  const code = c.charCodeAt(0);
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16)}`;
};

/** A text from somebody else in a line of ours. */
export const printable = (text: string): string => text.replace(UNSEEN, escaped);

/** Lines of ours, whatever is in them: line feeds stay. */
export const printableLines = (text: string): string =>
  text.replace(UNSEEN, (c) => (c === '\n' ? c : escaped(c)));

/** What a job wrote, for a terminal: it keeps its lines, tabs and colors. */
export const printableOutput = (text: string): string =>
  text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that of colors is what is looked for
    /\x1b\[[\d;]*m|[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu,
    (c) => (c.length > 1 || c === '\n' || c === '\t' || c === '\r' ? c : escaped(c)),
  );

/** JSON whose strings have none of these either. */
export const printableJson = (json: string): string =>
  json.replace(UNSEEN, (c) => (c === '\n' ? c : `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`));

/** An ISO time to the second, in UTC; `-` where there is none. */
export function time(iso: string | null | undefined): string {
  return iso ? `${iso.slice(0, 10)} ${iso.slice(11, 19)}` : '-';
}

/** Seconds in two units at the most: `0.25s`, `42s`, `3m05s`, `2h10m`, `4d03h`. */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return '-';
  const sign = seconds < 0 ? '-' : '';
  const s = Math.abs(seconds);
  const two = (value: number): string => String(Math.floor(value)).padStart(2, '0');
  if (s < 10) return `${sign}${Number(s.toFixed(2))}s`;
  if (s < 60) return `${sign}${Math.floor(s)}s`;
  if (s < 3600) return `${sign}${Math.floor(s / 60)}m${two(s % 60)}s`;
  if (s < 86_400) return `${sign}${Math.floor(s / 3600)}h${two((s % 3600) / 60)}m`;
  return `${sign}${Math.floor(s / 86_400)}d${two((s % 86_400) / 3600)}h`;
}

/** `3 jobs`, `1 job`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

/** Where a job stands in its workflow. */
export const workflowPlace = ({ place, rankS }: { place: number; rankS: number }): string =>
  `number ${place} by rank, ${duration(rankS)} to the end of the longest path`;

/** A number without a long tail. */
export function short(value: unknown): string {
  return typeof value === 'number' && !Number.isInteger(value)
    ? String(Number(value.toPrecision(6)))
    : String(value);
}
