/** What an experiment leaves: a page for readers and the numbers for programs. */

export interface Report {
  name: string;
  /** Markdown. */
  text: string;
  /** Plain values, for JSON. */
  data: unknown;
  /** One line that says how it came out; the last that the command prints. */
  verdict: string;
}

/** A Markdown table. */
export function markdownTable(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(headings), line(headings.map(() => '---')), ...rows.map(line)].join('\n');
}
