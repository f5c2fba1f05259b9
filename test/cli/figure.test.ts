/** docs/figure.md: its commands print what it shows and draw its picture. */
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { blocksOf } from '../docs/markdown.js';
import { run } from './service.js';

const trace = packagePath('..', 'shared', 'data', 'traces', 'KTH-SP2.swf.gz');
const folder = mkdtempSync(join(tmpdir(), 'switchyard-figure-'));
afterAll(() => rmSync(folder, { recursive: true }));

const page = readFileSync(packagePath('docs', 'figure.md'), 'utf8');
const blocks = (language: string): string[] =>
  blocksOf({ page: 'docs/figure.md' }, language).map(({ text }) => text);

it.skipIf(!existsSync(trace))('the figure is drawn by the commands of its page', async () => {
  copyFileSync(trace, join(folder, 'KTH-SP2.swf.gz'));
  const [fetching, comparing] = blocks('sh').map((text) => text.trim().split('\n'));
  const commands = [fetching!.at(-1)!, comparing![0]!];
  const printed: string[] = [];
  for (const command of commands) {
    const [, program, ...words] = command.split(' ');
    expect(program).toBe('switchyard');
    const there = words.map((word) =>
      /^(KTH-SP2\.swf\.gz|runs\.csv|figures)$/.test(word) ? join(folder, word) : word,
    );
    const { code, stdout, stderr } = await run(there, {});
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
    printed.push(stdout);
  }
  const [jobs = 'none'] = /\d[\d ]+(?= jobs of\neleven months)/.exec(page) ?? [];
  expect(printed[0]).toContain(`jobs: ${jobs.replaceAll(' ', '')}\n`);
  const [table, rows] = blocks('text');
  expect(printed[1]).toBe(table);
  expect(readFileSync(join(folder, 'runs.csv'), 'utf8').startsWith(rows!)).toBe(true);
  const [, drawn = ''] = /`(figures\/[\w-]+\.svg)`:/.exec(page) ?? [];
  const [, shown = ''] = /\((images\/[\w-]+\.svg)\)/.exec(page) ?? [];
  expect(readFileSync(join(folder, drawn), 'utf8')).toBe(readFileSync(packagePath('docs', shown), 'utf8'));
});
