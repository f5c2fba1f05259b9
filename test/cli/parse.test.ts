import { Command } from 'commander';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { weightChanges } from '../../src/cli/commands/policy.js';
import { CliError, ExitCode } from '../../src/cli/errors.js';
import { duration, printable, table } from '../../src/cli/format.js';
import { addJobOptions, expandArray, type JobOptions, jobFromOptions } from '../../src/cli/job-options.js';
import {
  parseArray,
  parseDuration,
  parseId,
  parseNumber,
  parseTime,
  parseVariable,
  parseWord,
} from '../../src/cli/parse.js';
import { DEFAULT_LIMITS } from '../../src/platform/limits.js';

/** The usage error of a call. */
function refusal(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(CliError);
    expect((error as CliError).exitCode).toBe(ExitCode.USAGE);
    return (error as Error).message;
  }
  throw new Error('accepted');
}

describe('values on the command line', () => {
  it.each([
    ['90', 90],
    ['0.5', 0.5],
    ['90s', 90],
    ['15m', 900],
    ['1h30m', 5400],
    ['1.5h', 5400],
    ['2d', 172_800],
  ])('the duration %s is %d s', (text, seconds) => {
    expect(parseDuration('--estimate', text)).toBe(seconds);
  });

  it.each(['', ' ', '0', '-5', 'x', '5w', '1h-2m', 'Infinity', '1e999', 'm'])(
    'the duration "%s" is refused',
    (text) => {
      expect(refusal(() => parseDuration('--estimate', text))).toContain(
        `--estimate: "${text}" is not accepted; accepted: seconds or a duration`,
      );
    },
  );

  it('times are ISO, or from now', () => {
    expect(parseTime('--deadline', '2026-03-01T12:00:00Z', 0)).toBe('2026-03-01T12:00:00.000Z');
    expect(parseTime('--deadline', '+2h', 1000)).toBe('1970-01-01T02:00:01.000Z');
    for (const text of ['tomorrow', '12', '2026-13-01', '+x'])
      refusal(() => parseTime('--deadline', text, 0));
  });

  it('numbers have bounds', () => {
    expect(parseNumber('--cpus', '4', { min: 1, integer: true })).toBe(4);
    expect(refusal(() => parseNumber('--cpus', '0', { min: 1, integer: true }))).toBe(
      '--cpus: "0" is not accepted; accepted: a whole number from 1',
    );
    for (const text of ['', 'NaN', '1.5', '2000'])
      refusal(() => parseNumber('boost', text, { min: -1000, max: 1000, integer: true }));
  });

  it('arrays are ranges with a bound', () => {
    expect(parseArray('--array', '1-4')).toEqual([1, 2, 3, 4]);
    expect(parseArray('--array', '0-10:5')).toEqual([0, 5, 10]);
    for (const text of ['4-1', '1', '1-', 'a-b', '1-5:0', `0-${DEFAULT_LIMITS.jobsMax}`])
      refusal(() => parseArray('--array', text));
    fc.assert(
      fc.property(
        fc.nat(1e6),
        fc.nat(DEFAULT_LIMITS.jobsMax - 1),
        fc.integer({ min: 1, max: 100 }),
        (from, length, step) => {
          const indices = parseArray('--array', `${from}-${from + length}:${step}`);
          expect(indices).toHaveLength(Math.floor(length / step) + 1);
          expect(indices[0]).toBe(from);
          expect(indices.at(-1)).toBeLessThanOrEqual(from + length);
        },
      ),
    );
  });

  it('variables, ids and words', () => {
    expect(parseVariable('--env', 'A_1=x=y\nz')).toEqual({ name: 'A_1', value: 'x=y\nz' });
    expect(parseVariable('--env', 'A=')).toEqual({ name: 'A', value: '' });
    for (const text of ['A', '=x', '1A=x', 'a-b=c']) refusal(() => parseVariable('--env', text));
    expect(parseId('job', '17')).toBe('job_17');
    expect(parseId('job', 'job_17')).toBe('job_17');
    for (const text of ['site_17', 'job_', 'x', '-1']) refusal(() => parseId('job', text));
    expect(parseWord('--class', 'gold', ['GOLD', 'SILVER'])).toBe('GOLD');
    refusal(() => parseWord('--class', 'lead', ['GOLD', 'SILVER']));
  });

  it('weights, by their level where both have the name', () => {
    const known = { dispatch: { deadline: 1, licenses: 1 }, local: { aging: 1, licenses: 1 } };
    expect(weightChanges(['deadline=2', 'local.licenses=0.5', 'aging=0'], known)).toEqual({
      dispatch: { deadline: 2 },
      local: { licenses: 0.5, aging: 0 },
    });
    for (const text of ['licenses=1', 'nothing=1', 'deadline', 'deadline=-1', 'local.deadline=1']) {
      refusal(() => weightChanges([text], known));
    }
  });
});

describe('job options', () => {
  const parse = (...args: string[]): { job: object; options: JobOptions } => {
    const command = addJobOptions(
      new Command('submit').argument('[command]').argument('[args...]'),
    ).passThroughOptions();
    command.parse(args, { from: 'user' });
    return {
      job: jobFromOptions(command.opts<JobOptions>(), command.args),
      options: command.opts<JobOptions>(),
    };
  };

  it('say nothing of what is not given: the defaults are the service’s', () => {
    expect(parse('--', 'sh', '-c', 'echo --cpus 3').job).toEqual({
      command: 'sh',
      arguments: ['-c', 'echo --cpus 3'],
    });
  });

  it('give every field', () => {
    const words =
      '--name n --application a --group g --tasks 2 --cpus 3 --memory-mb 4 --license x --license y,z --os linux --arch arm64 ' +
      '--estimate 10m --benchmark 200 --deadline 2026-03-01T12:00:00Z --limit 1h --sandbox-mb 5 --output-mb 6 --env A=b,c --env B= ' +
      '--dir /tmp --boost -7 --simulated-run 30 --no-restart --hold run --hold';
    expect(parse(...words.split(' ')).job).toEqual({
      command: 'run',
      arguments: ['--hold'],
      name: 'n',
      application: 'a',
      groupName: 'g',
      tasks: 2,
      cpusPerTask: 3,
      memoryMbPerTask: 4,
      licenses: ['x', 'y', 'z'],
      os: 'linux',
      architecture: 'arm64',
      estimateS: 600,
      benchmark: 200,
      deadline: '2026-03-01T12:00:00.000Z',
      runTimeLimitS: 3600,
      sandboxMb: 5,
      outputMb: 6,
      environment: [
        { name: 'A', value: 'b,c' },
        { name: 'B', value: '' },
      ],
      workingDirectory: '/tmp',
      boost: -7,
      simulatedRunS: 30,
      restartable: false,
      held: true,
    });
  });

  it('are repeated for each index of an array', () => {
    expect(expandArray({ command: 'x' }, '3-4')).toEqual([
      { command: 'x', arrayIndex: 3 },
      { command: 'x', arrayIndex: 4 },
    ]);
  });
});

describe('text for people', () => {
  it('tables align, numbers to the right', () => {
    expect(
      table(
        ['A', 'NUMBER'],
        [
          ['x', 1],
          ['longer', 100],
        ],
      ),
    ).toBe('A       NUMBER\nx            1\nlonger     100');
  });

  it('control characters do not reach the terminal', () => {
    expect(printable('a\u001b[2Jb\n')).toBe('a\\x1b[2Jb\\x0a');
    expect(table(['A'], [['\u001b]0;x\u0007']])).not.toContain('\u001b');
  });

  it.each([
    [0.123, '0.12s'],
    [42.9, '42s'],
    [185, '3m05s'],
    [7800, '2h10m'],
    [356_400, '4d03h'],
    [-90, '-1m30s'],
    [null, '-'],
  ])('%s seconds are %s', (seconds, text) => {
    expect(duration(seconds)).toBe(text);
  });
});
