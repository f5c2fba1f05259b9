/** `switchyard experiment` in the repository: it builds the experiments, lists them, and repeats what is published. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { temporaryDirectory } from '../support/home.js';
import { run } from './service.js';

const published = packagePath('docs', 'experiments');

it('lists the experiments, those with a page', async () => {
  const { code, stdout } = await run(['experiment', '--json'], {});
  expect(code).toBe(0);
  const names = (JSON.parse(stdout) as { name: string; about: string }[]).map(({ name }) => name);
  const pages = readdirSync(published).flatMap((file) => /^(.+)\.json$/.exec(file)?.[1] ?? []);
  expect(names.sort()).toEqual(pages.sort());
});

it('gives the published page, numbers and plots, byte by byte', async () => {
  const out = temporaryDirectory();
  const { code, stdout } = await run(['experiment', 'job-ratio', '--out', out], {});
  expect(code).toBe(0);
  const read = (folder: string, file: string): string => readFileSync(join(folder, file), 'utf8');
  expect(stdout).toBe(read(published, 'job-ratio.md'));
  const files = readdirSync(published).filter((file) => file.startsWith('job-ratio'));
  expect(readdirSync(out).sort()).toEqual(files.sort());
  for (const file of files) expect(read(out, file) === read(published, file), file).toBe(true);
});

it('refuses a name that is not one of them', async () => {
  expect(await run(['experiment', 'nonsense'], {})).toEqual({
    code: 2,
    stdout: '',
    stderr: expect.stringMatching(
      /^error: experiment: "nonsense" is not accepted; accepted: one of .*queues/,
    ),
  });
});
