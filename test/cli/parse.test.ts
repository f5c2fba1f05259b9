import { Command } from 'commander';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { weightChanges } from '../../src/cli/commands/policy.js';
import { ExitCode } from '../../src/cli/errors.js';
import {
  duration,
  printable,
  printableJson,
  printableLines,
  printableOutput,
  table,
} from '../../src/cli/format.js';
import {
  addJobOptions,
  expandArray,
  type GivenJob,
  type JobOptions,
  jobFromOptions,
} from '../../src/cli/job-options.js';
import { DEFAULT_LIMITS } from '../../src/platform/limits.js';
import {
  ARRAY_MAX,
  NotAccepted,
  parseArray,
  parseDuration,
  parseId,
  parseMemory,
  parseNumber,
  parseSince,
  parseTime,
  parseVariable,
  parseWord,
  requestWritten,
} from '../../src/words/values.js';

/** The usage error of a call. */
function refusal(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    if (!(error instanceof NotAccepted))
      expect(error).toMatchObject({ name: 'CliError', exitCode: ExitCode.USAGE });
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
    ['10 min', 600],
    ['2 hours', 7200],
    ['00:05:00', 300],
    ['10:30', 630],
    ['1-12', 129_600],
    ['1-12:00', 129_600],
    ['1-12:00:01', 129_601],
    ['1w', 604_800],
  ])('the duration %s is %d s', (text, seconds) => {
    expect(parseDuration('--estimate', text)).toBe(seconds);
  });

  it.each(['', ' ', '0', '-5', 'x', '5y', '1h-2m', 'Infinity', '1e999', 'm', '00:00', '1:2:3:4'])(
    'the duration "%s" is refused',
    (text) => {
      expect(refusal(() => parseDuration('--estimate', text))).toContain(
        `--estimate: "${text}" is not accepted; accepted: seconds or a duration`,
      );
    },
  );

  it('times are ISO, or from now; without a zone they are local, which is said', () => {
    const said: string[] = [];
    const parse = (text: string, nowMs = 0) =>
      parseTime('--deadline', text, nowMs, (line) => void said.push(line));
    expect(parse('2026-03-01T12:00:00Z')).toBe('2026-03-01T12:00:00.000Z');
    expect(parse('2026-03-01 12:00+0230')).toBe('2026-03-01T09:30:00.000Z');
    expect(parse('2024-02-29T00:00:00.25+01:00')).toBe('2024-02-28T23:00:00.250Z');
    expect(parse('+2h', 1000)).toBe('1970-01-01T02:00:01.000Z');
    expect(said).toEqual([]);
    const local = new Date(2026, 2, 1, 12, 30).toISOString();
    expect(parse('2026-03-01 12:30')).toBe(local);
    expect(parse('2026-03-01')).toBe(new Date(2026, 2, 1).toISOString());
    expect(said[0]).toBe(`--deadline: 2026-03-01 12:30 is taken as local time, which is ${local}`);
    expect(said).toHaveLength(2);
    for (const text of [
      ...[
        'yesterday',
        '25:00',
        '12',
        '2026-13-01',
        '2026-02-30',
        '2026-02-30T00:00:00Z',
        '2025-02-29',
        '2026-04-31 10:00',
      ],
      ...[
        '2026-03-01T24:30:00Z',
        '2026-03-01T10:60',
        '2026-03-01T10:00:00+99:00',
        '2026-03-01x',
        '+x',
        '',
        '2026-00-10',
      ],
    ])
      refusal(() => parse(text));
  });

  it('a time of day is the next one; an age is in the past', () => {
    const noon = new Date(2026, 2, 1, 12).getTime();
    const parse = (text: string) => parseTime('--begin', text, noon, () => undefined);
    expect(parse('20:00')).toBe(new Date(2026, 2, 1, 20).toISOString());
    expect(parse('08:30:01')).toBe(new Date(2026, 2, 2, 8, 30, 1).toISOString());
    expect(parse('midnight')).toBe(new Date(2026, 2, 2).toISOString());
    expect(parse('tomorrow')).toBe(new Date(2026, 2, 2).toISOString());
    expect(parse('now+1hour')).toBe(new Date(noon + 3_600_000).toISOString());
    expect(parseSince('--since', '7d', noon, () => undefined)).toBe(
      new Date(noon - 7 * 86_400_000).toISOString(),
    );
  });

  it('durations are read back as they are written', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 99 * 86_400 }), (seconds) => {
        const two = (value: number) => String(Math.floor(value)).padStart(2, '0');
        const clock = `${two((seconds / 3600) % 24)}:${two((seconds / 60) % 60)}:${two(seconds % 60)}`;
        expect(parseDuration('--time', `${Math.floor(seconds / 86_400)}-${clock}`)).toBe(seconds);
        expect(parseDuration('--time', String(seconds), 'm')).toBe(seconds * 60);
      }),
    );
  });

  it.each([
    ['512', 512],
    ['512M', 512],
    ['2G', 2000],
    ['1.5 GB', 1500],
    ['1T', 1_000_000],
    ['1500k', 2],
    ['4GiB', 4295],
    ['0', 0],
  ])('memory of %s is %d MB', (text, mb) => {
    expect(parseMemory('--mem', text)).toBe(mb);
  });

  it.each(['', '2X', '-1', 'G', '1iB', '1.5.2G'])('memory of "%s" is refused', (text) => {
    expect(refusal(() => parseMemory('--mem', text))).toContain('512M, 2G, 1.5 GB');
  });

  it('numbers have bounds', () => {
    expect(parseNumber('--cpus', '4', { min: 1, integer: true })).toBe(4);
    expect(refusal(() => parseNumber('--cpus', '0', { min: 1, integer: true }))).toBe(
      '--cpus: "0" is not accepted; accepted: a whole number from 1',
    );
    for (const text of ['', 'NaN', '1.5', '2000'])
      refusal(() => parseNumber('boost', text, { min: -1000, max: 1000, integer: true }));
  });

  it('a rule that starts a job again says how often', () => {
    const of = (...rules: string[]) => jobFromOptions({ retryRule: rules, restart: true }, ['x']).retry;
    expect(refusal(() => of('exit=2,do=HOLD', 'exit=75'))).toBe(
      '--retry-rule: "exit=75" is not accepted; accepted: --retries as well, the number of retries',
    );
    expect(of('exit=2,do=HOLD', 'cause=PREEMPTED')?.rules).toHaveLength(2);
  });

  it('parts are options without hyphens, the constraint last', () => {
    const of = (...part: string[]) => jobFromOptions({ part, restart: true }, ['x']).parts;
    expect(
      of(
        'tasks=16,cpus=4,tasks-per-machine=2-4',
        'mem=64G,gpus=a100:2,resource=tape=1,resource=disk=3,exclusive,constraint=gen >= 3 and rack in (a, b)',
        'exclusive=user,mem-per-cpu=2G,all-alike=rack',
        'constraint=fast',
      ),
    ).toEqual([
      { tasks: 16, cpusPerTask: 4, tasksPerMachine: { min: 2, max: 4 } },
      {
        memoryMbPerTask: 64_000,
        resourcesPerTask: [
          { kind: 'gpu', amount: 2 },
          { kind: 'tape', amount: 1 },
          { kind: 'disk', amount: 3 },
        ],
        exclusive: 'MACHINE',
        machineConstraint: jobFromOptions(
          { gpus: 'a100:2', constraint: 'gen >= 3 and rack in (a, b)', restart: true },
          ['x'],
        ).machineConstraint,
      },
      { exclusive: 'USER', memoryMbPerTask: 2000, allAlike: ['rack'] },
      { machineConstraint: 'fast' },
    ]);
    for (const wrong of ['cpu=1', 'cpus', 'constraint', 'name=x', ','])
      expect(refusal(() => of(wrong))).toMatch(
        /^--part: .* is not accepted; accepted: tasks=, cpus=, mem=, .*; constraint= last$/s,
      );
    expect(refusal(() => of('cpus=0'))).toMatch(/^--cpus: .*0/);
    expect(refusal(() => of('exclusive=yes'))).toMatch(/^--exclusive: .*yes/);
  });

  it('devices are a kind, and what they have to be', () => {
    const of = (...devices: string[]) => jobFromOptions({ devices, restart: true }, ['x']).devicesPerTask;
    const asked = [
      { kind: 'gpu', model: 'a100', count: 2, minMemoryMb: 40_000, share: { parts: 1, of: 4 } },
      { kind: 'fpga' },
      { kind: 'gpu', count: 3 },
    ];
    expect(of('gpu:a100:2:mem=40G:share=1/4', 'fpga,gpu:3')).toEqual(asked);
    expect(
      jobFromOptions({ part: ['devices=gpu:share=1/4:a100', 'tasks=2'], restart: true }, ['x']).parts,
    ).toEqual([
      { devicesPerTask: [{ kind: 'gpu', model: 'a100', share: { parts: 1, of: 4 } }] },
      { tasks: 2 },
    ]);
    const one = { kind: 'gpu', count: 2, model: 'a100', minMemoryMb: 40_000, share: { parts: 1, of: 4 } };
    expect(requestWritten(one)).toBe('gpu:a100:2:mem=40000:share=1/4');
    for (const wrong of ['', ':2', 'gpu:a100:b', 'gpu:share=1', 'gpu:memory=3', '2'])
      expect(refusal(() => of(wrong))).toMatch(
        /^--devices: .* is not accepted; accepted: a kind, then a model/s,
      );
  });

  it('arrays are ranges with a bound', () => {
    const indices = (text: string) => parseArray('--array', text).indices;
    expect(indices('1-4')).toEqual([1, 2, 3, 4]);
    expect(indices('0-10:5')).toEqual([0, 5, 10]);
    expect(indices('7')).toEqual([7]);
    expect(parseArray('--array', '1,3,5-9:2%4')).toEqual({ indices: [1, 3, 5, 7, 9], atOnce: 4 });
    expect(indices('9,1-3,2')).toEqual([1, 2, 3, 9]);
    expect(ARRAY_MAX).toBe(DEFAULT_LIMITS.jobsMax);
    for (const text of ['4-1', '', '1-', 'a-b', '1-5:0', `0-${ARRAY_MAX}`, '1%0', '1-3%', '1,,2'])
      refusal(() => parseArray('--array', text));
    fc.assert(
      fc.property(
        fc.nat(1e6),
        fc.nat(DEFAULT_LIMITS.jobsMax - 1),
        fc.integer({ min: 1, max: 100 }),
        (from, length, step) => {
          const { indices } = parseArray('--array', `${from}-${from + length}:${step}`);
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
      '--name n --application a --project p --group g --tasks 2 --cpus 3 --memory-mb 4 --license x --license y,z --os linux --arch arm64 ' +
      '--estimate 10m --benchmark 200 --deadline 2026-03-01T12:00:00Z --limit 1h --warn 2m --warn-signal sigusr1 --checkpoint state --checkpoint-signal USR2 --kill-grace 0 --sandbox-mb 5 --output-mb 6 --env A=b,c --env B= ' +
      '--dir /tmp --boost -7 --simulated-run 30 --no-restart --hold run --hold';
    expect(parse(...words.split(' ')).job).toEqual({
      command: 'run',
      arguments: ['--hold'],
      name: 'n',
      application: 'a',
      project: 'p',
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
      warnS: 120,
      warnSignal: 'SIGUSR1',
      checkpoint: { path: 'state', signal: 'SIGUSR2' },
      killGraceS: 0,
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
    expect(refusal(() => parse('--warn-signal', 'SIGKILL', 'run'))).toContain('SIGTERM, SIGHUP');
    expect(refusal(() => parse('--checkpoint-signal', 'USR1', 'run'))).toContain('with --checkpoint');
  });

  it('are repeated for each index of an array', () => {
    expect(expandArray({ command: 'x' }, parseArray('--array', '3-4'))).toEqual([
      { command: 'x', arrayIndex: 3 },
      { command: 'x', arrayIndex: 4 },
    ]);
    // Each waits for the one that is two before it: never more than two run.
    const bounded = expandArray<GivenJob>({ command: 'x' }, parseArray('--array', '1-4%2'));
    expect(bounded.map(({ ref }) => ref)).toEqual(['element 1', 'element 2', 'element 3', 'element 4']);
    expect(bounded.map(({ needs }) => needs)).toEqual([
      ...[undefined, undefined],
      [{ of: [{ ref: 'element 1', condition: 'ANY' }] }],
      [{ of: [{ ref: 'element 2', condition: 'ANY' }] }],
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
    // Columns are as wide as a terminal shows them.
    expect(
      table(
        ['NAME', 'B'],
        [
          ['日本', 'x'],
          ['e\u0301', 'y'],
        ],
      ),
    ).toBe('NAME  B\n日本  x\ne\u0301     y');
    expect(table(['A'], [['\u001b]0;x\u0007']])).not.toContain('\u001b');
    // C1, and what turns the direction of a line.
    expect(printable('a\u009b2Jb\u202ec\u2028d')).toBe('a\\x9b2Jb\\u202ec\\u2028d');
    expect(printableLines('two\nlines\r')).toBe('two\nlines\\x0d');
    expect(printableOutput('\u001b[1;31mred\u001b[0m\ttab\r\n\u001b[2J\u001b]52;c;x\u0007')).toBe(
      '\u001b[1;31mred\u001b[0m\ttab\r\n\\x1b[2J\\x1b]52;c;x\\x07',
    );
  });

  it('JSON says the same without them', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 2 }), (value) => {
        const json = printableJson(JSON.stringify(value, null, 2));
        expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(value)));
        expect(json.replaceAll('\n', '')).not.toMatch(/\p{Cc}|[\u2028-\u202e\u2066-\u2069]/u);
      }),
    );
    expect(printableJson('"\u009b\u202e"')).toBe('"\\u009b\\u202e"');
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
