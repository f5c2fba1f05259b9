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
  for (const [name, language] of [
    ['workflow.json', 'json'],
    ['flow.yaml', 'yaml'],
  ] as const)
    writeFileSync(
      join(home, name),
      new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``).exec(page)?.[1] as string,
    );
  const commands = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].flatMap(([, text]) =>
    (text as string).trim().split('\n'),
  );
  const service = await serve(home);
  const ends: (number | null)[] = [];
  for (const command of commands) {
    const words = [
      ...command.replace(/workflow\.json|flow\.yaml/, (name) => join(home, name)).matchAll(/'([^']*)'|\S+/g),
    ]
      .map(([word, quoted]) => quoted ?? word)
      .slice(1);
    const { code, stderr } = await service.cli(...words);
    ends.push(code);
    expect(stderr).not.toContain('error:');
  }
  // One of the first five failed, and so did what is run again.
  expect(ends).toEqual([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]);
  type Line = {
    id: string;
    name: string;
    state: string;
    cause: string | null;
    runTimeLimitS: number | null;
    memoryMbPerTask: number;
  };
  const jobs = await service.json<Line[]>('jobs');
  const found = Object.fromEntries(jobs.map(({ name, state, cause }) => [name, `${state} ${cause}`]));
  expect(found).toMatchObject({
    prepare: 'COMPLETED EXITED_ZERO',
    left: 'COMPLETED EXITED_ZERO',
    right: 'FAILED EXITED_NONZERO',
    both: 'CANCELLED DEPENDENCY_FAILED',
    report: 'COMPLETED EXITED_ZERO',
    last: 'COMPLETED EXITED_ZERO',
    read: 'COMPLETED EXITED_ZERO',
    flaky: 'COMPLETED EXITED_ZERO',
    picky: 'COMPLETED EXITED_ZERO',
  });
  const { stdout } = await service.cli('job', 'job_4');
  expect(stdout).toMatch(/message +job_3 \(right\), on which it depends, did not end or start as required/);
  expect(stdout).toMatch(/after +job_2 OK, job_3 OK \(else CANCEL\)/);
  const flaky = (await service.cli('job', 'job_11')).stdout;
  expect(flaky).toMatch(/retries +2 of 2, 1 rule/);
  expect(flaky).toMatch(/run 1: retry 1 at once, by retry rule 1\nrun 2: retry 2 at once, by retry rule 1\n/);
  const [changed] = jobs.filter(({ name }) => name === 'final');
  expect(changed).toMatchObject({ state: 'HELD', runTimeLimitS: 7200, memoryMbPerTask: 64 });
  expect((await service.cli('job', 'job_1')).stdout).toMatch(/needed by +job_2 job_3/);
  const [copy, broken] = jobs.filter(({ name }) => name === 'fragile').map(({ id }) => id);
  expect((await service.cli('job', broken as string)).stdout).toMatch(new RegExp(`rerun as +${copy}\n`));
  expect((await service.cli('job', copy as string)).stdout).toMatch(new RegExp(`rerun of +${broken}\n`));
  expect(found).toMatchObject({ smooth: 'COMPLETED EXITED_ZERO', join: 'COMPLETED EXITED_ZERO' });
  type Graph = { nodes: { name: string; level: number; needs: number[] }[]; criticalPath: number[] };
  const { nodes, criticalPath } = await service.json<Graph>('graph', 'pictures');
  expect(nodes.map(({ name, level, needs }) => `${name} ${level} ${needs.length}`)).toEqual([
    'prepare 0 0',
    // Two at a time.
    ...['tile 1 1', 'tile 1 1', 'tile 2 2', 'tile 2 2'],
    ...['smooth 2 1', 'smooth 2 1', 'smooth 3 1', 'smooth 3 1', 'join 4 5'],
  ]);
  expect(nodes[criticalPath.at(-1) as number]?.name).toBe('join');
  const { stdout: drawn } = await service.cli('graph', 'pictures', '--dot');
  expect(drawn).toContain('label="tile[3]\nCOMPLETED"');
  expect(drawn).toMatch(/\n {2}job_\d+ -> job_\d+ \[label=ANY, style=dashed\];\n/);
  const missing = await service.cli('graph', 'nowhere');
  expect(missing).toMatchObject({ code: 5, stderr: expect.stringContaining('no jobs of a group "nowhere"') });
  writeFileSync(
    join(home, 'wrong.yaml'),
    'jobs:\n  a: {run: x, tasks: 2000000}\n  b: {run: x, input: nothing}\n',
  );
  const wrong = await service.cli('submit', '--workflow', join(home, 'wrong.yaml'));
  expect(wrong.stderr).toContain(`wrong.yaml:3:22: jobs.b.input: there is no dataset "nothing"`);
  writeFileSync(join(home, 'wrong.yaml'), 'jobs:\n  a: {run: x}\n  b: {run: x, tasks: 2000000}\n');
  const refused = await service.cli('submit', '--workflow', join(home, 'wrong.yaml'));
  expect(refused.stderr).toMatch(/wrong\.yaml:3:3: jobs\.b: tasks: .* is not accepted; accepted: /);
});
