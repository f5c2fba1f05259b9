/** No option that the commands called like Slurm's accept is ignored in silence. */
import { readFileSync } from 'node:fs';
import { afterEach, expect, it, vi } from 'vitest';
import { given, Told } from '../../src/slurm/command.js';
import { entriesOf, OPTIONS } from '../../src/slurm/options.js';
import { nothing, readOptions, SLURM, takeOptions } from '../../src/words/index.js';

const textOf = (...files: string[]): string =>
  files.map((file) => readFileSync(new URL(`../../src/${file}`, import.meta.url), 'utf8')).join('\n');
/** Where each command looks at its options. */
const LOOKS: Readonly<Record<keyof typeof OPTIONS, string[]>> = {
  ...{ scancel: ['control'], scontrol: ['control'], accounts: ['control', 'queue'], sinfo: ['sinfo'] },
  ...{ squeue: ['queue'], sacct: ['queue'], sstat: ['queue'], sprio: ['queue'], seff: ['queue'] },
};
const commands = Object.entries(OPTIONS).flatMap(([command, table]) =>
  entriesOf(table).map((entry) => ({ command, table, ...entry })),
);
const said: string[] = [];
afterEach(() => {
  vi.restoreAllMocks();
  said.length = 0;
});
const listen = () =>
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    said.push(String(text));
    return true;
  });

it.each(commands.filter(({ kind }) => kind === 'HONORED'))(
  '$command $long is honored',
  ({ command, long }) => {
    // Some command of the file looks at it by this name.
    const files = LOOKS[command as keyof typeof OPTIONS].map((file) => `slurm/${file}.ts`);
    expect(textOf('slurm/command.ts', ...files)).toContain(`'${long}'`);
  },
);

it.each(commands.filter(({ kind }) => kind === 'NOT'))(
  '$command $long is warned about by name, once',
  ({ command, table, long, short, takesValue }) => {
    listen();
    const words = [long, ...(takesValue ? ['x'] : [])];
    // Another name than that of the command: a warning is given once for each text.
    const name = `${command} ${long}`;
    given(name, [...words, ...(short ? [short, ...(takesValue ? ['x'] : [])] : [])], table);
    expect(said).toEqual([`${name}: warning: ${long}: has no effect\n`]);
  },
);

it.each(Object.entries(OPTIONS))('%s tells its version and that there is help', (command, table) => {
  for (const { long } of entriesOf(table))
    if (long === '--help' || long === '--version') expect(() => given(command, [long], table)).toThrow(Told);
});

it('so that an option is not there twice, and none has the letter of another', () => {
  for (const table of Object.values(OPTIONS)) {
    const entries = entriesOf(table);
    const names = entries.flatMap(({ long, short }) => [long, ...(short ? [short] : [])]);
    expect(names.filter((one, at) => names.indexOf(one) !== at)).toEqual([]);
    expect(entries.every(({ long }) => /^--[\w-]+$/i.test(long))).toBe(true);
  }
});

/** What is read of an option is used where jobs are made, or in a command. */
const USED = textOf('slurm/submit.ts', 'words/batch.ts', 'words/script.ts').concat(
  textOf('words/asked.ts').slice(textOf('words/asked.ts').indexOf('const AS_ASKED')),
);
const SAMPLES = [
  '1',
  '2024-01-01',
  'x',
  'gpu:1',
  'afterok:1',
  'END',
  'TERM@30',
  '1@5',
  'user',
  'A=1',
  '1-2',
  'append',
];

it.each(SLURM)('sbatch $long is honored, or warned about by name', ({ long, value, read }) => {
  const word = (sample: string): string => (value === 'NONE' ? long : `${long}=${sample}`);
  if (typeof read === 'string') {
    const { options } = takeOptions([word('1')], SLURM);
    expect(readOptions(nothing(), options, { nowMs: 0, note: () => undefined })).toEqual([
      `${long}: ${read}`,
    ]);
    return;
  }
  const changed = new Set<string>();
  for (const sample of SAMPLES) {
    const asked = nothing();
    try {
      readOptions(asked, takeOptions([word(sample)], SLURM).options, { nowMs: 0, note: () => undefined });
    } catch {
      continue;
    }
    for (const [field, now] of Object.entries(asked))
      if (JSON.stringify(now) !== JSON.stringify(nothing()[field as keyof ReturnType<typeof nothing>]))
        changed.add(field);
  }
  expect(changed.size).toBeGreaterThan(0);
  for (const field of changed) expect(USED).toMatch(new RegExp(`\\b${field}\\b`));
});
