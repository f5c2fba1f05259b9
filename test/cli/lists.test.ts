import { Command } from 'commander';
import { afterEach, expect, it, vi } from 'vitest';
import { csv, table } from '../../src/cli/format.js';
import { addListOptions, type Columns, showList } from '../../src/cli/lists.js';
import { buildProgram } from '../../src/cli/program.js';

interface Row {
  name: string;
  cpus: number | null;
}

const COLUMNS: Columns<Row> = { NAME: ({ name }) => name, 'CPUS FREE (NOW)': ({ cpus }) => cpus };
const ROWS: readonly Row[] = [
  { name: 'node10', cpus: 4 },
  { name: 'node9', cpus: null },
  { name: 'a "b", c', cpus: 16 },
];

/** What a list command prints with these options. */
async function listed(...options: string[]): Promise<string> {
  let printed = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    printed += text;
    return true;
  });
  const command = addListOptions(new Command('rows').option('--json'), COLUMNS);
  await command
    .action(() => showList(command, COLUMNS, async () => ROWS))
    .parseAsync(options, { from: 'user' });
  return printed;
}

afterEach(() => vi.restoreAllMocks());

it('columns are chosen by the names of their headings, in the order asked for', async () => {
  expect(await listed('--columns', 'cpus-free,name')).toMatch(/^CPUS FREE \(NOW\) {2}NAME\n/);
  await expect(listed('--columns', 'name,memory')).rejects.toThrow(
    '--columns: "memory" is not accepted; accepted: name, cpus-free',
  );
});

it.each([
  ['name', ['a "b", c', 'node9', 'node10']],
  ['cpus-free', ['node10', 'a "b", c', 'node9']],
  ['-cpus-free', ['a "b", c', 'node10', 'node9']],
])('sorted by %s, numbers by their value and what there is not at the end', async (column, names) => {
  const rows = JSON.parse(await listed('--json', '--sort', column)) as Row[];
  expect(rows.map(({ name }) => name)).toEqual(names);
});

it('as CSV, texts with commas and quotes stay one value each', async () => {
  expect(await listed('--csv')).toBe('name,cpus-free\nnode10,4\nnode9,\n"a ""b"", c",16\n');
  expect(csv(['a'], [['line\nfeed']])).toBe('a\nline\\x0afeed');
});

it('each command that lists can be asked for columns, order and CSV', async () => {
  const without = (await buildProgram()).commands.filter(
    (command) =>
      command.description().startsWith('list ') && !command.options.some(({ long }) => long === '--columns'),
  );
  expect(without.map((command) => command.name())).toEqual([]);
});

it('the widest texts of a table are cut until it fits the terminal', () => {
  const rows = [['job_1', 'x'.repeat(80), '漢'.repeat(30)]];
  const [heading, line] = table(['ID', 'WHAT', 'WHY'], rows, 60).split('\n');
  expect([heading, line]).toEqual([
    `ID     WHAT${' '.repeat(23)}WHY`,
    `job_1  ${'x'.repeat(24)}…  ${'漢'.repeat(12)}…`,
  ]);
  expect(table(['ID', 'WHAT'], [['job_1', 'x'.repeat(80)]], 10).split('\n')[1]).toBe(
    `job_1  ${'x'.repeat(11)}…`,
  );
  expect(table(['ID', 'WHAT', 'WHY'], rows).split('\n')[1]).toContain('x'.repeat(80));
});
