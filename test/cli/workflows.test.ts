/** What docs/workflows.md shows, command by command. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { endAll, serve } from './service.js';

const home = mkdtempSync(join(tmpdir(), 'switchyard-workflows-'));
afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

it('the commands of the page do what it says', async () => {
  const page = readFileSync(packagePath('docs', 'workflows.md'), 'utf8');
  const file = join(home, 'workflow.json');
  writeFileSync(file, /```json\n([\s\S]*?)```/.exec(page)?.[1] as string);
  const commands = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].flatMap(([, text]) =>
    (text as string).trim().split('\n'),
  );
  const service = await serve(home);
  const ends: (number | null)[] = [];
  for (const command of commands) {
    const words = [...command.replace('workflow.json', file).matchAll(/'([^']*)'|\S+/g)]
      .map(([word, quoted]) => quoted ?? word)
      .slice(1);
    const { code, stderr } = await service.cli(...words);
    ends.push(code);
    expect(stderr).not.toContain('error:');
  }
  // One of the first five failed.
  expect(ends).toEqual([1, 0, 0, 0, 0, 0, 0]);
  type Line = { name: string; state: string; cause: string | null };
  const jobs = await service.json<Line[]>('jobs');
  const found = Object.fromEntries(jobs.map(({ name, state, cause }) => [name, `${state} ${cause}`]));
  expect(found).toMatchObject({
    prepare: 'COMPLETED EXITED_ZERO',
    left: 'COMPLETED EXITED_ZERO',
    right: 'FAILED EXITED_NONZERO',
    both: 'CANCELLED DEPENDENCY_FAILED',
    report: 'COMPLETED EXITED_ZERO',
    last: 'COMPLETED EXITED_ZERO',
    flaky: 'COMPLETED EXITED_ZERO',
    picky: 'COMPLETED EXITED_ZERO',
  });
  const { stdout } = await service.cli('job', 'job_4');
  expect(stdout).toMatch(/message +job_3 \(right\), which it needed, did not end or start as needed/);
  expect(stdout).toMatch(/after +job_2 OK, job_3 OK \(else CANCEL\)/);
  const flaky = (await service.cli('job', 'job_9')).stdout;
  expect(flaky).toMatch(/retries +2 of 2, 1 rule/);
  expect(flaky).toMatch(/run 1: retry 1 at once, by retry rule 1\nrun 2: retry 2 at once, by retry rule 1\n/);
  expect((await service.cli('job', 'job_1')).stdout).toMatch(/needed by +job_2 job_3/);
});
