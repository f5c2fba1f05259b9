/** Text for people: tables, times, durations. */

/** Rows under headings, columns as wide as their widest cell, numbers to the right. */
export function table(headings: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const cells = rows.map((row) =>
    row.map((value) => (value === null || value === undefined ? '-' : printable(String(value)))),
  );
  const widths = headings.map((heading, i) =>
    cells.reduce((widest, row) => Math.max(widest, row[i]!.length), heading.length),
  );
  const right = headings.map((_, i) => rows.length > 0 && rows.every((row) => typeof row[i] === 'number'));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, i) => (right[i] ? cell.padStart(widths[i]!) : cell.padEnd(widths[i]!)))
      .join('  ')
      .trimEnd();
  return [line(headings), ...cells.map(line)].join('\n');
}

/** Control characters escaped: a name of somebody's job may not move the reader's cursor. */
export function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

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

/** A number without a long tail. */
export function short(value: unknown): string {
  return typeof value === 'number' && !Number.isInteger(value)
    ? String(Number(value.toPrecision(6)))
    : String(value);
}
