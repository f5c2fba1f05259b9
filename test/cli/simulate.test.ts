import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildProgram } from '../../src/cli/program.js';
import { marks, texts } from '../plots/svg.js';
import { run } from './service.js';

let folder: string;
let trace: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cli-simulate-'));
  trace = join(folder, 'a.swf');
  writeFileSync(
    trace,
    '; MaxProcs: 2\n1 0 -1 10 2 -1 -1 2 10 -1 1 1 1 1 1 1 -1 -1\n2 0 -1 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n',
  );
});
afterAll(() => rmSync(folder, { recursive: true }));

async function switchyard(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(args, {});
  if (code !== 0) throw new Error(stderr);
  return stdout;
}

/** For what is refused before anything is simulated. */
const refused = async (...args: string[]): Promise<unknown> =>
  (await buildProgram('simulate')).parseAsync(['simulate', ...args], { from: 'user' });

describe('switchyard simulate', () => {
  it('prints the summary, as text or JSON', async () => {
    expect(JSON.parse(await switchyard('simulate', '--json', '--trace', trace))).toMatchObject({
      jobs: 2,
      makespan: 20,
      utilization: 0.75,
      wait: { mean: 5, max: 10 },
    });
    const text = await switchyard('simulate', '--trace', trace, '--processors', '1', '--policy', 'fcfs');
    expect(text).toContain('1 job of a.swf on 1 processor at 1 site, policy fcfs');
    expect(text).toContain('skipped: 1 tooWide');
  });

  it('runs workflows, ours and those of WfCommons, and says how long they take at least', async () => {
    const [ours, theirs] = [join(folder, 'flow.yaml'), join(folder, 'run.json')];
    writeFileSync(
      ours,
      'jobs:\n  a: { run: exit 0, estimate: 10m }\n  b: { run: exit 0, needs: a, estimate: 5m, array: 1-2, cpus: 2 }\n',
    );
    const specification = {
      tasks: [
        { id: 'a', name: 'a', children: ['b'] },
        { id: 'b', name: 'b', parents: ['a'] },
      ],
    };
    const tasks = ['a', 'b'].map((id) => ({ id, runtimeInSeconds: 60 }));
    writeFileSync(theirs, JSON.stringify({ workflow: { specification, execution: { tasks } } }));
    const json = async (file: string) =>
      JSON.parse(await switchyard('simulate', '--json', '--workflow', file, '--processors', '2'));
    expect(await json(ours)).toMatchObject({
      jobs: 3,
      makespan: 1200,
      criticalPath: 900,
      trace: 'flow.yaml',
    });
    expect(await json(theirs)).toMatchObject({ jobs: 2, makespan: 120, criticalPath: 120 });
    const text = await switchyard('simulate', '--workflow', ours, '--processors', '2');
    expect(text).toContain('makespan 20m00s, critical path 15m00s');
    const waits = await switchyard('simulate', '--trace', trace, '--dependencies');
    expect(waits).toContain('0 jobs submitted after the job before');
  });

  it('takes a policy file, or part of one; under a policy of the root jobs enter there', async () => {
    const file = join(folder, 'policy.json');
    writeFileSync(
      file,
      '{"dispatch": {"kind": "queues", "order": "SJF", "queueLimit": 0}, "local": {"kind": "fcfs"}}',
    );
    const json = async (...args: string[]) =>
      JSON.parse(await switchyard('simulate', '--json', '--trace', trace, ...args));
    expect(await json('--policy', file)).toMatchObject({
      dispatch: { kind: 'queues', order: 'SJF', ageBoundS: 86_400 },
      local: { kind: 'fcfs' },
      jobs: 2,
    });
    expect(await json('--policy', 'most-flops+easy')).toMatchObject({ dispatch: { kind: 'most-flops' } });
    expect(await json('--policy', file, '--enter', 'partition')).toMatchObject({ dispatch: null });
    expect(await switchyard('simulate', '--trace', trace, '--policy', file)).toContain('policy queues+fcfs');
    writeFileSync(file, '{"dispatch": {"kind": "queues", "order": "LIFO", "queueLimit": 0}}');
    await expect(refused('--trace', trace, '--policy', file)).rejects.toThrow('dispatch.order: "LIFO"');
  });

  it('takes sites that are leaves of a tree of schedulers', async () => {
    const sites = join(folder, 'tree.csv');
    writeFileSync(sites, 'site,capacity,scheduler\n1,1,west/north\n2,1,west/south\n3,1,east\n4,1,\n');
    const four = join(folder, 'four.swf');
    const lines = Array.from({ length: 6 }, (_, i) => `${i + 1} 0 -1 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n`);
    writeFileSync(four, `; MaxProcs: 1\n${lines.join('')}`);
    const out = join(folder, 'tree-jobs.csv');
    const args = ['--trace', four, '--sites', sites, '--policy', 'grid-tree+fcfs'];
    const told = JSON.parse(await switchyard('simulate', '--json', ...args, '--out', out));
    // Each site runs one of the first four at once; the other two wait for it.
    expect(told).toMatchObject({ dispatch: { kind: 'grid-tree' }, jobs: 6, makespan: 20, wait: { max: 10 } });
    const [head = '', ...rows] = readFileSync(out, 'utf8').trim().split('\n');
    const column = (name: string) => {
      const at = head.split(',').indexOf(name);
      return rows.map((row) => row.split(',')[at]);
    };
    const starts = column('starting_time');
    const first = column('site').filter((_, i) => starts[i] === '0');
    expect(first.sort()).toEqual(['site-1', 'site-2', 'site-3', 'site-4']);
    writeFileSync(sites, 'site,capacity,scheduler\n1,1,west//north\n');
    await expect(switchyard('simulate', ...args)).rejects.toThrow(
      'line 2: scheduler: "west//north" is not accepted; accepted: 1 to 16 names',
    );
  });

  it('names option, value and what is accepted', async () => {
    const wrong = (...args: string[]) => expect(refused('--trace', trace, ...args)).rejects;
    await wrong('--policy', 'best').toThrow('--policy: "best" is not accepted; accepted: fcfs, ');
    await wrong('--estimate', 'x').toThrow(
      '--estimate: "x" is not accepted; accepted: requested, actual, predicted, regression',
    );
    await wrong('--event-order', 'x').toThrow('accepted: batch, per-event, terminations-first');
    await wrong('--seeds', '5-1').toThrow('--seeds: "5-1" is not accepted; accepted: FROM-TO');
    await wrong('--warm-up', '100%').toThrow(
      '--warm-up: "100%" is not accepted; accepted: a percentage below 100, such as 5%',
    );
    await wrong('--tau', '0').toThrow('--tau: "0" is not accepted');
    await wrong('--jobs', '5').toThrow(
      '--jobs: "5" is not accepted; accepted: only together with --generate',
    );
    await wrong('--generate', 'lublin').toThrow('not together with --generate');
    await wrong('--trace', trace, '--out', 'x').toThrow('accepted: files with different names');
    await expect(refused('--generate', 'lublin')).rejects.toThrow(
      'only together with --processors or --sites',
    );
    await expect(refused('--generate', 'x', '--processors', '2')).rejects.toThrow(
      'accepted: lublin, lublin-tsafrir, poisson',
    );
    await expect(refused()).rejects.toThrow('--trace, --workflow or --generate is missing');
    await wrong('--workflow', 'f').toThrow('not together with --trace or --generate');
    await wrong('--resample', '0').toThrow(
      '--resample: "0" is not accepted; accepted: a whole number from 1',
    );
    await wrong('--resample', '--dependencies').toThrow('not with --dependencies');
    await expect(refused('--generate', 'lublin', '--processors', '2', '--resample')).rejects.toThrow(
      'only together with --trace',
    );
    await wrong('--enter', 'x').toThrow('--enter: "x" is not accepted; accepted: partition, root');
    await wrong('--processors', '0').toThrow(
      '--processors: "0" is not accepted; accepted: a whole number from 1',
    );
    await wrong('--processors', '2', '--sites', 'f').toThrow(
      '--processors: "2" is not accepted; accepted: not together',
    );
  });
});

describe('switchyard simulate, again and again', () => {
  it('runs several traces and seeds, with intervals, and a file for each', async () => {
    const other = join(folder, 'b.swf');
    writeFileSync(
      other,
      readFileSync(trace, 'utf8').replace('1 0 -1 10', '1 0 -1 30').replace('2 10 -1', '2 30 -1'),
    );
    const summary = join(folder, 'several.json');
    const args = ['--trace', trace, '--trace', other, '--seeds', '1-2', '--summary', summary];
    const { runs, means } = JSON.parse(await switchyard('simulate', '--json', ...args));
    expect(runs.map(({ trace, seed }: { trace: string; seed: number }) => [trace, seed])).toEqual([
      ['a.swf', 1],
      ['a.swf', 2],
      ['b.swf', 1],
      ['b.swf', 2],
    ]);
    expect(means.turnaround.half).toBeGreaterThan(0);
    const files = readdirSync(folder).filter((name) => name.startsWith('several'));
    expect(files.sort()).toEqual([
      'several-a-1.json',
      'several-a-2.json',
      'several-b-1.json',
      'several-b-2.json',
    ]);
    expect(await switchyard('simulate', ...args)).toMatch(/mean ± 95 %.* ± /);
  });

  it('generates what it simulates; with other seeds, other jobs', async () => {
    const args = [
      '--generate',
      'lublin',
      '--jobs',
      '200',
      '--processors',
      '32',
      '--seeds',
      '1-3',
      '--load',
      '0.8',
    ];
    const { runs } = JSON.parse(await switchyard('simulate', '--json', ...args));
    expect(new Set(runs.map(({ wait }: { wait: { mean: number } }) => wait.mean)).size).toBe(3);
  });

  it('draws the users of a trace again, others with each seed', async () => {
    const file = join(folder, 'users.swf');
    // Twelve users, each busy for two weeks of twelve.
    const line = (user: number, week: number) =>
      `${user * 2 + week} ${(user + week) * 604_800 + user * 60} -1 ${(user + 1) * 500_000} 1 -1 -1 1 9000000 -1 1 ${user} ${'-1 '.repeat(6)}`;
    const lines = Array.from({ length: 12 }, (_, user) => [line(user, 0), line(user, 1)]).flat();
    writeFileSync(file, `; MaxProcs: 2\n${lines.join('\n')}\n`);
    const args = ['--trace', file, '--resample', '8', '--seeds', '1-3'];
    const { runs } = JSON.parse(await switchyard('simulate', '--json', ...args));
    expect(runs.map(({ seed }: { seed: number }) => seed)).toEqual([1, 2, 3]);
    expect(new Set(runs.map(({ wait }: { wait: { mean: number } }) => wait.mean)).size).toBe(3);
  });

  it('reads standard input, also for several policies', async () => {
    const env = {};
    const { code, stdout } = await run(['simulate', '--trace', '-'], env, readFileSync(trace, 'utf8'));
    expect({ code, stdout }).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('2 jobs of standard input'),
    });
    const compared = await run(
      ['compare', '--trace', '-', '--policy', 'fcfs,easy', '--json'],
      env,
      readFileSync(trace, 'utf8'),
    );
    expect(
      JSON.parse(compared.stdout).map(({ trace, jobs }: { trace: string; jobs: number }) => [trace, jobs]),
    ).toEqual([
      ['standard input', 2],
      ['standard input', 2],
    ]);
    const nothing = await run(['simulate', '--trace', '-'], env, '');
    expect(nothing.stderr).toBe('error: standard input: no jobs: the file is empty\n');
  });
});

describe('switchyard simulate --plots', () => {
  it('writes a file for each picture, the same bytes again', async () => {
    const [a, b] = [join(folder, 'plots', 'a'), join(folder, 'plots', 'b')];
    for (const plots of [a, b]) await switchyard('simulate', '--trace', trace, '--plots', plots);
    const files = readdirSync(a).sort();
    expect(files).toEqual(['gantt.svg', 'queued-cpus.svg', 'queued-jobs.svg', 'utilization.svg', 'wait.svg']);
    for (const file of files) expect(readFileSync(join(a, file))).toEqual(readFileSync(join(b, file)));
    const gantt = readFileSync(join(a, 'gantt.svg'), 'utf8');
    expect(marks(gantt, 'rect')).toHaveLength(2);
    expect(texts(gantt)).toContain('2 jobs of a.swf on 2 processors at 1 site, policy easy');
  });

  it('draws the window that is asked for', async () => {
    const plots = join(folder, 'window');
    await switchyard(
      'simulate',
      '--trace',
      trace,
      '--plots',
      plots,
      '--gantt-from',
      '0',
      '--gantt-to',
      '10s',
    );
    expect(marks(readFileSync(join(plots, 'gantt.svg'), 'utf8'), 'rect')).toHaveLength(1);
  });

  it('writes one page that needs nothing else', async () => {
    const plots = join(folder, 'page');
    await switchyard('simulate', '--trace', trace, '--plots', plots, '--plot-format', 'html');
    expect(readdirSync(plots)).toEqual(['plots.html']);
    const page = readFileSync(join(plots, 'plots.html'), 'utf8');
    const svgs = page.match(/<svg[\s\S]*?<\/svg>/g) ?? [];
    expect(svgs.map((svg) => marks(svg, 'line').length + marks(svg, 'rect').length)).toEqual([1, 1, 1, 1, 2]);
    expect(page).not.toMatch(/<script|<link|<img|@import|(src|href)=/);
  });

  it('names option, value and what is accepted, before it simulates', async () => {
    const plots = join(folder, 'refused');
    const wrong = (...args: string[]) => expect(refused('--trace', join(folder, 'absent'), ...args)).rejects;
    await wrong('--plots', plots, '--plot-format', 'png').toThrow(
      '--plot-format: "png" is not accepted; accepted: svg, html',
    );
    await wrong('--plots', plots, '--gantt-from', 'noon').toThrow(
      '--gantt-from: "noon" is not accepted; accepted: seconds',
    );
    await wrong('--plots', plots, '--gantt-from', '2h', '--gantt-to', '1h').toThrow(
      '--gantt-to: "1h" is not accepted; accepted: later than --gantt-from, which is 2h',
    );
    await wrong('--gantt-from', '1h').toThrow(
      '--gantt-from: "1h" is not accepted; accepted: only together with --plots',
    );
    await wrong('--gantt-to', '1h').toThrow(
      '--gantt-to: "1h" is not accepted; accepted: only together with --plots',
    );
    expect(existsSync(plots)).toBe(false);
    await wrong('--plots', join(trace, 'below-a-file')).toThrow(
      /--plots: ".*" is not accepted; accepted: a folder that can be/,
    );
  });
});

describe('switchyard trace', () => {
  it('looks through a trace', async () => {
    expect(JSON.parse(await switchyard('trace', 'info', '--json', trace))).toMatchObject({
      jobs: 2,
      users: 1,
    });
    expect(await switchyard('trace', 'info', trace)).toContain('MaxProcs: 2');
    await expect(switchyard('trace', 'info', join(folder, 'absent'))).rejects.toThrow('ENOENT');
  });

  it('generates one', async () => {
    const out = join(folder, 'generated.swf');
    const args = ['--jobs', '50', '--processors', '16', '--load', '0.5', '--out', out];
    expect(await switchyard('trace', 'generate', 'lublin', ...args)).toBe(`50 jobs in ${out}\n`);
    const info = JSON.parse(await switchyard('trace', 'info', '--json', out));
    expect(info).toMatchObject({ jobs: 50, header: { MaxProcs: '16' } });
    expect(info.load).toBeCloseTo(0.5, 1);
  });
});

describe('switchyard schema', () => {
  it('shows what files may contain', async () => {
    expect(JSON.parse(await switchyard('schema', 'sites')).properties.sites.items.properties).toMatchObject({
      capacity: { type: 'integer', maximum: 10_000_000 },
      speed: { description: expect.any(String) },
    });
    expect(JSON.parse(await switchyard('schema', 'policy')).properties).toMatchObject({
      dispatch: {},
      local: {},
    });
    await expect(switchyard('schema', 'jobs')).rejects.toThrow('accepted: policy, sites');
  });
});
