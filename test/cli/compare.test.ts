import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { box, marks } from '../plots/svg.js';
import { run } from './service.js';

let folder: string;
let trace: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cli-compare-'));
  trace = join(folder, 'a.swf');
  const job = (id: number, processors: number, seconds: number) =>
    `${id} ${id} -1 ${seconds} ${processors} -1 -1 ${processors} ${seconds} -1 1 1 1 1 1 1 -1 -1`;
  // The third fits beside the first, but not without backfilling.
  writeFileSync(trace, `; MaxProcs: 4\n${job(1, 3, 100)}\n${job(2, 4, 10)}\n${job(3, 1, 20)}\n`);
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('switchyard compare', () => {
  it('runs the policies in threads and puts them side by side', async () => {
    const args = ['compare', '--trace', trace, '--policy', 'fcfs,easy', '--policy', 'conservative'];
    const { code, stdout, stderr } = await run(args, {});
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const lines = stdout.trimEnd().split('\n');
    expect(lines.map((line) => line.split(/\s+/)[0])).toEqual(['policy', 'fcfs', 'easy', 'conservative']);
    const json = JSON.parse((await run([...args, '--json'], {})).stdout);
    expect(json.map((one: { policy: string; wait: { max: number } }) => [one.policy, one.wait.max])).toEqual([
      ['fcfs', 108],
      ['easy', 99],
      ['conservative', 99],
    ]);
  });

  it('compares over seeds, job by job the same, and writes a file for each', async () => {
    const swf = join(folder, 'schedule.swf');
    const args = [
      '--generate',
      'lublin',
      '--jobs',
      '300',
      '--processors',
      '16',
      '--load',
      '0.9',
      '--seeds',
      '1-4',
    ];
    const policies = ['--policy', 'fcfs,easy', '--swf', swf];
    const { code, stdout, stderr } = await run(['compare', ...args, ...policies, '--json'], {});
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [fcfs, easy] = JSON.parse(stdout);
    expect(fcfs.runs).toHaveLength(4);
    expect(fcfs.toFirst.wait).toEqual({ mean: 0, half: 0 });
    expect(easy.toFirst.wait.mean).toBeCloseTo(easy.means.wait.mean - fcfs.means.wait.mean, 6);
    expect(easy.toFirst.wait.mean + easy.toFirst.wait.half).toBeLessThan(0);
    expect(readdirSync(folder).filter((name) => name.startsWith('schedule-'))).toHaveLength(8);
    expect((await run(['compare', ...args, '--policy', 'fcfs,easy'], {})).stdout).toMatch(/easy +4 .* ± /);
  });

  it('draws them side by side', async () => {
    const plots = join(folder, 'plots');
    const args = ['compare', '--trace', trace, '--policy', 'fcfs,easy', '--plots', plots];
    const { code, stderr } = await run(args, {});
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(readdirSync(plots).sort()).toEqual([
      'gantt-easy.svg',
      'gantt-fcfs.svg',
      'queued-cpus.svg',
      'queued-jobs.svg',
      'utilization.svg',
      'wait.svg',
    ]);
    const read = (file: string) => readFileSync(join(plots, file), 'utf8');
    for (const file of ['wait.svg', 'utilization.svg', 'queued-jobs.svg', 'queued-cpus.svg'])
      expect(marks(read(file), 'line')).toHaveLength(2);
    // Under EASY the third starts beside the first, above it; under FCFS it waits for the second.
    const third = (policy: string) => box(marks(read(`gantt-${policy}.svg`), 'rect').at(-1)!);
    expect(third('fcfs').x).toBeGreaterThan(700);
    const easy = marks(read('gantt-easy.svg'), 'rect').map(box);
    expect(easy.filter(({ x }) => x < 100)).toHaveLength(2);
  });

  it('refuses to draw a policy twice', async () => {
    const args = ['compare', '--trace', trace, '--policy', 'easy,easy', '--plots', join(folder, 'twice')];
    const { code, stderr } = await run(args, {});
    expect(code).toBe(2);
    expect(stderr).toBe('error: --policy: "easy" is not accepted; accepted: each policy once with --plots\n');
  });

  it('says in one line what went wrong in a thread', async () => {
    const { code, stdout, stderr } = await run(['compare', '--trace', join(folder, 'absent')], {});
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^error: ENOENT.*\n$/);
  });
});
