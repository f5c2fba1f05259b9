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
