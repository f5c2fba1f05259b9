/** `switchyard run` and `switchyard map`, as processes against a service. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { endAll, launch, type Outcome, run, type Service, serve, until } from './service.js';

const home = mkdtempSync(join(tmpdir(), 'switchyard-run-'));
let service: Service;
beforeAll(async () => {
  service = await serve(home);
});
afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

const env = () => ({ SWITCHYARD_HOME: home, SWITCHYARD_URL: service.url });
const cli = (args: string[], stdin = ''): Promise<Outcome> => run(args, env(), stdin);

type Line = { id: string; name: string | null; state: string; arrayIndex: number };
const jobsOf = (group: string): Promise<Line[]> =>
  service.json<Line[]>('jobs', '--group', group, '--oldest-first');

it('does what docs/run-and-map.md shows', async () => {
  const page = readFileSync(packagePath('docs', 'run-and-map.md'), 'utf8');
  const lines = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].flatMap(([, text]) => text!.trim().split('\n'));
  const program = `switchyard() { '${process.execPath}' '${packagePath('bin', 'switchyard.js')}' "$@"; }\n`;
  const printed = lines.map((line) => {
    const { status, stdout, stderr } = spawnSync('sh', ['-c', program + line], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH, ...env() },
    });
    return [status, stdout.split('\n').sort().join('\n'), stderr];
  });
  expect(printed).toEqual([
    [3, '\nhello', ''],
    [0, '\n1: one of one.txt\n2: two words of two words.txt', ''],
    [0, '\n<a>\n<b>\n<c>', ''],
  ]);
});

describe('run', () => {
  it('prints what the job writes, each stream on its own, and exits as it does', async () => {
    const job = ['sh', '-c', 'echo out; echo err >&2; exit 3'];
    expect(await cli(['run', '--', ...job])).toEqual({ code: 3, stdout: 'out\n', stderr: 'err\n' });
    expect(await cli(['run', 'sh', '-c', 'kill -9 $$'])).toMatchObject({ code: 137, stdout: '' });
    expect(await cli(['run', '--limit', '1', '--kill-grace', '0', 'sleep', '60'])).toMatchObject({
      code: expect.not.toSatisfy((code) => code === 0),
      stderr: expect.stringMatching(/^job_\d+ FAILED RUN_TIME_LIMIT/),
    });
  });

  it('ships a script and standard input', async () => {
    const script = join(home, 'script.sh');
    writeFileSync(script, '#!/bin/sh\n#SBATCH -J shipped\necho "$1 $SLURM_JOB_NAME"; cat\n');
    expect(await cli(['run', '--stdin', script, 'one'], 'two\n')).toMatchObject({
      code: 0,
      stdout: 'one shipped\ntwo\n',
    });
    expect(await cli(['run', '--tasks', '9', 'true'])).toMatchObject({ code: 2, stdout: '' });
  });

  it.skipIf(cpus().length < 2)('prints what each task writes', async () => {
    const { code, stdout } = await cli([
      'run',
      '--tasks',
      '2',
      'sh',
      '-c',
      'echo task $SWITCHYARD_TASK_INDEX',
    ]);
    expect([code, stdout.split('\n').sort()]).toEqual([0, ['', 'task 0', 'task 1']]);
  });

  it('prints it while it runs; a signal cancels the job, whose last words are printed', async () => {
    for (const [signal, code] of [
      ['SIGINT', 130],
      ['SIGTERM', 143],
    ] as const) {
      const job = "trap 'echo last; exit 0' TERM; echo begun; sleep 60 & wait";
      const waiting = launch(['run', '--group', signal, '--', 'sh', '-c', job], env());
      await waiting.printed(/begun\n/);
      expect(await waiting.end(signal)).toEqual({ code, stdout: 'begun\nlast\n', stderr: '' });
      expect(await jobsOf(signal)).toMatchObject([{ state: 'CANCELLED' }]);
    }
  });
});

describe('map', () => {
  it('runs a command for each line, whose text is an argument and nothing else', async () => {
    const lines = ['a b', '$(touch made)', "it's; exit 9", '*', '"', '-n'];
    const { code, stdout, stderr } = await cli(
      ['map', '-k', '--dir', home, `printf '%s|%s|' {#} {}; echo "<{}>"`],
      `${lines.join('\n')}\n`,
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toBe(lines.map((line, at) => `${at + 1}|${line}|<${line}>\n`).join(''));
    expect(() => readFileSync(join(home, 'made'))).toThrow();
  });

  it('takes a file, inputs with new lines, and words behind :::', async () => {
    const file = join(home, 'list');
    writeFileSync(file, 'a\nb\0c\0');
    expect((await cli(['map', '-k', '-0', '-a', file, '--', 'printf', '<%s>\n'])).stdout).toBe(
      '<a\nb>\n<c>\n',
    );
    expect((await cli(['map', '-k', 'echo', 'x', ':::', '1', '2'])).stdout).toBe('x 1\nx 2\n');
    expect((await cli(['map', '--dry-run', 'echo', 'x', ':::', '1'])).stdout).toBe('["echo","x","1"]\n');
    expect(await cli(['map', 'echo'], '')).toEqual({ code: 0, stdout: '', stderr: '' });
    const many = 'x\n'.repeat(10_001);
    expect(await cli(['map', 'echo'], many)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('10000'),
    });
  });

  it('prints as jobs end, or in the order of the list', async () => {
    const mapped = (group: string, ...options: string[]) => {
      // The first goes on when it is told to.
      const command = `[ {#} = 2 ] || until [ -e ${group} ]; do sleep 0.1; done; echo {#}`;
      return launch(['map', '--group', group, '--dir', home, ...options, command, ':::', 'a', 'b'], env());
    };
    const goOn = (group: string): void => writeFileSync(join(home, group), '');
    const asTheyEnd = mapped('ends');
    await asTheyEnd.printed(/^2\n$/);
    goOn('ends');
    await asTheyEnd.printed(/^2\n1\n$/);
    const inOrder = mapped('order', '--keep-order');
    await until(
      () => jobsOf('order'),
      (jobs) => jobs[1]?.state === 'COMPLETED',
    );
    goOn('order');
    await inOrder.printed(/^1\n2\n$/);
  });

  it('runs so many at the same time, and exits with how many have failed', async () => {
    const alone = 'mkdir alone && sleep 0.1 && rmdir alone && test {} != bad';
    const outcome = await cli(['map', '-j', '1', '--dir', home, alone], 'good\nbad\nbad\n');
    expect(outcome).toMatchObject({ code: 2, stdout: '' });
    expect(outcome.stderr).toMatch(
      /^bad \(job_\d+\): FAILED EXITED_NONZERO 1\nbad \(job_\d+\): FAILED EXITED_NONZERO 1\n2 of 3 jobs failed\n$/,
    );
    const many = await cli(['map', 'false'], 'x\n'.repeat(102));
    expect([many.code, many.stderr.split('\n').length]).toEqual([101, 12]);
  });

  it('goes on with the same jobs by its key, and leaves them when it is interrupted', async () => {
    const args = ['map', '--idempotency-key', 'once', '--dir', home];
    const command = 'echo begun {}; until [ -e go ]; do sleep 0.1; done; test {} = a';
    const list = join(home, 'ab');
    writeFileSync(list, 'a\nb\n');
    const first = launch([...args, '-a', list, command], env());
    await until(
      () => jobsOf('map once'),
      (jobs) => jobs.length === 2 && jobs.every(({ state }) => state === 'RUNNING'),
    );
    const { code, stderr } = await first.end('SIGINT');
    expect([code, stderr]).toEqual([130, expect.stringContaining('--idempotency-key once')]);
    writeFileSync(join(home, 'go'), '');
    const again = await cli([...args, '-a', list, '-k', command]);
    expect(again).toMatchObject({ code: 1, stdout: 'begun a\nbegun b\n' });
    const jobs = await jobsOf('map once');
    expect(jobs.map(({ name, state, arrayIndex }) => [name, state, arrayIndex])).toEqual([
      ['a', 'COMPLETED', 1],
      ['b', 'FAILED', 2],
    ]);
    const json = await cli([...args, '--json', '-a', list, command]);
    expect(JSON.parse(json.stdout)).toEqual(
      jobs.map(({ id, name, state }) => ({
        ...{ input: name, id, state },
        ...(state === 'FAILED'
          ? { cause: 'EXITED_NONZERO', exitCode: 1 }
          : { cause: 'EXITED_ZERO', exitCode: 0 }),
      })),
    );
    expect((await cli([...args, 'other'], 'a\n')).code).toBe(1);
  });

  it('cancels its jobs when it is interrupted, unless it has a key', async () => {
    const mapped = launch(['map', '--group', 'long', 'sleep', ':::', '60', '61'], env());
    await until(
      () => jobsOf('long'),
      (jobs) => jobs.length === 2,
    );
    expect((await mapped.end('SIGTERM')).code).toBe(143);
    expect((await jobsOf('long')).map(({ state }) => state)).toEqual(['CANCELLED', 'CANCELLED']);
  });
});
