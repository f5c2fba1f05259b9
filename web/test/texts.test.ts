/** What the portal makes of what people write, and how it writes numbers. */

import { describe, expect, test } from 'vitest';
import { ConstraintError } from '../../src/core/resources/constraint';
import { filterOf, instantOf } from '../src/pages/jobs/filters';
import { changesOf, draftOf } from '../src/pages/sites/hold-form';
import type { HoldPartsFragment, SitePartsFragment } from '../src/pages/sites/sites.gql';
import { arrayInputs, EMPTY, fieldsOf, inputOf, Wrong } from '../src/pages/submit/draft';
import { declaredOf } from '../src/parts/kinds';
import { constraintFault, sameSwitchOf, sameSwitchWritten } from '../src/parts/placement';
import { csvLine } from '../src/ui/csv';
import { differences, withValue } from '../src/ui/document';
import { bytes, count, duration, figure, megabytes, named, words } from '../src/ui/format';

test.each([
  ['RUN_TIME_LIMIT', 'Run time limit'],
  ['CANCELLED', 'Canceled'],
  ['CANCELLING', 'Canceling'],
])('%s is said as %s', (constant, said) => {
  expect(words(constant)).toBe(said);
});

describe('a job that is written', () => {
  test('lines of a script fill in fields; what is not honored and not understood is named', () => {
    const script = [
      '#!/bin/sh',
      '#SBATCH --nodes=1 --ntasks=4 ',
      '#SBATCH -c8 # a comment',
      '#SBATCH --mem 16G',
      '#SBATCH -t 90',
      '#SBATCH --job-name="big one"',
      '#SBATCH -L matlab:2',
      '#SBATCH --gres=gpu:a100:2,tape:1',
      '#SBATCH --array=1,3,5-9:2%2',
      '#SBATCH --exclusive',
      '#SBATCH --overcommit',
      '#SWITCHYARD --project physics --nonsense',
      'echo',
      '#SBATCH --mem=1',
    ].join('\n');
    const { fields, directives } = fieldsOf(script);
    expect(fields).toEqual({
      tasks: '1',
      cpusPerTask: '32',
      memoryMbPerTask: '16000',
      estimate: '5400',
      runTimeLimit: '5400',
      name: 'big one',
      licenses: 'matlab:2',
      resources: 'gpu=2,tape=1',
      constraint: 'gpu = "a100"',
      exclusive: 'MACHINE',
    });
    expect(directives.asked.array).toMatchObject({ indices: [1, 3, 5, 7, 9], atOnce: 2 });
    expect(directives.misread).toEqual([
      { line: 12, text: '#SWITCHYARD --project physics --nonsense', why: 'unknown option --nonsense' },
    ]);
    expect(directives.unheeded).toEqual([expect.stringMatching(/^--overcommit: /)]);
  });

  test('an array is a job for each index', () => {
    const input = inputOf({ ...EMPTY, script: '#!/bin/sh\n#SBATCH -n 1\ntrue\n' }, 'script');
    const jobs = arrayInputs(input, '1,3,5-9:2%4');
    expect(jobs.map(({ arrayIndex }) => arrayIndex)).toEqual([1, 3, 5, 7, 9]);
    expect(jobs.map((job) => job.arguments?.[3])).toEqual(['0', '1', '2', '3', '4']);
    expect(jobs[4]!.needs).toEqual([{ of: [{ ref: 'element 1', condition: 'ANY' }] }]);
  });

  test('a field that says nothing acceptable is named', () => {
    const wrong = (change: Partial<typeof EMPTY>): string => {
      try {
        inputOf({ ...EMPTY, command: 'true', ...change }, 'form');
      } catch (error) {
        if (error instanceof Wrong) return error.field;
        throw error;
      }
      return 'none';
    };
    expect(wrong({})).toBe('none');
    expect(wrong({ command: ' ' })).toBe('command');
    expect(wrong({ tasks: '0' })).toBe('tasks');
    expect(wrong({ cpusPerTask: '1.5' })).toBe('cpusPerTask');
    expect(wrong({ memoryMbPerTask: '' })).toBe('memoryMbPerTask');
    expect(wrong({ estimate: 'long' })).toBe('estimate');
    expect(wrong({ shell: false, command: "echo 'x" })).toBe('command');
    expect(wrong({ environment: 'NAME' })).toBe('environment');
    expect(wrong({ deviceModel: 'a100' })).toBe('deviceKind');
    expect(wrong({ deviceKind: '2x' })).toBe('deviceKind');
    expect(wrong({ deviceKind: 'gpu', devices: '0' })).toBe('devices');
    expect(wrong({ deviceKind: 'gpu', deviceModel: 'a"' })).toBe('deviceModel');
    expect(wrong({ deviceKind: 'gpu', deviceMemory: 'much' })).toBe('deviceMemory');
    expect(wrong({ deviceKind: 'gpu', resources: 'gpu=1' })).toBe('deviceKind');
    expect(wrong({ sameSwitch: 'within soon' })).toBe('sameSwitch');
    expect(wrong({ tasks: '2', tasksPerMachine: '4-2' })).toBe('tasksPerMachine');
  });

  test('says what its machines have to be', () => {
    const placed = (change: Partial<typeof EMPTY>) => {
      const { command: _, arguments: __, ...job } = inputOf({ ...EMPTY, command: 'true', ...change }, 'form');
      return job;
    };
    const plain = placed({});
    expect(
      placed({
        ...{ deviceKind: 'gpu', devices: '2', deviceModel: 'a100', deviceMemory: '40G', resources: 'tape' },
        ...{ constraint: 'fast or new', exclusive: 'USER', allAlike: 'rack, gen', sameSwitch: 'within 10m' },
      }),
    ).toEqual({
      ...plain,
      resourcesPerTask: [
        { kind: 'tape', amount: 1 },
        { kind: 'gpu', amount: 2 },
      ],
      machineConstraint: '(fast or new) and gpu = "a100" and gpu.memory-mb >= 40000',
      ...{ exclusive: 'USER', allAlike: ['rack', 'gen'], sameSwitch: { maxWaitS: 600 } },
    });
    expect(placed({ deviceKind: 'gpu' })).toEqual({
      ...plain,
      resourcesPerTask: [{ kind: 'gpu', amount: 1 }],
    });
    expect(placed({ sameSwitch: 'require' })).toEqual({ ...plain, sameSwitch: {} });
    const { fields } = fieldsOf('#!/bin/sh\n#SBATCH --switches=1@20\n#SWITCHYARD --all-alike rack,gen\n');
    expect(fields).toMatchObject({ sameSwitch: 'within 1200', allAlike: 'rack, gen' });
    expect([null, {}, { maxWaitS: 5 }].map(sameSwitchWritten).map(sameSwitchOf)).toEqual([
      null,
      {},
      { maxWaitS: 5 },
    ]);
  });

  test('is offered what operators have declared of machines', () => {
    const kind = (name: string, countedOn: 'MACHINE' | 'SITE' = 'MACHINE', models: string[] = []) => ({
      ...{ name, countedOn, models },
    });
    const kinds = ['cpus', 'gpu', 'memoryMb', 'places', 'tape'].map((name) => kind(name));
    expect(declaredOf([...kinds, kind('gpu', 'SITE')]).map(({ name }) => name)).toEqual(['gpu', 'tape']);
  });

  test('where a constraint is wrong is found in what the service says of it', () => {
    const { message } = new ConstraintError('SYNTAX', 6, 'a label, not, or (');
    const said = (text: string): string =>
      `Spec.machineConstraint: "${text}" is not accepted; accepted: an expression over labels: ${message}.`;
    for (const text of ['gen or', 'a labels: SYNTAX at position 3; accepted: x'])
      expect(constraintFault(said(text))).toEqual({ at: 6, accepted: 'a label, not, or (' });
    expect(constraintFault('Gpu = "x": can never run.')).toBeNull();
  });
});

test('of a hold only what was written differently is changed', () => {
  const from = '2030-01-01T10:00:00.000Z';
  const to = '2030-01-01T12:00:00.000Z';
  const machine = (id: string, name: string) => ({ id, name }) as SitePartsFragment['machines'][number];
  const site = { name: 'alps', machines: [machine('machine_1', 'a'), machine('machine_2', 'b')] };
  const hold: HoldPartsFragment = {
    ...{ id: 'hold_1', kind: 'MAINTENANCE', name: null, reason: 'disks', onConflict: 'REFUSE' },
    ...{ recurrence: null, lacking: [], wholeSite: true, createdAt: from, user: null, machines: [] },
    ...{ users: [], releaseIdleS: null, shared: [] },
    times: [{ from, to }],
  };
  const changed = (change: Partial<ReturnType<typeof draftOf>>, of = hold) =>
    changesOf(of, { ...draftOf(of), ...change }, site);
  expect(changed({})).toEqual({});
  expect(changed({ hours: '3.5' })).toEqual({ to: '2030-01-01T13:30:00.000Z' });
  expect(changed({ hours: '' })).toEqual({ to: null });
  const later = draftOf({ ...hold, times: [{ from: to, to: null }] }).from;
  expect(changed({ from: later })).toEqual({ from: to, to: '2030-01-01T14:00:00.000Z' });
  expect(changed({ reason: ' ', name: 'x', machines: 'b, a' })).toEqual({
    ...{ reason: null, name: 'x', machineIds: ['machine_2', 'machine_1'] },
  });
  expect(changed({ machines: 'c' })).toBe('Machines: alps has no machine c.');
  expect(changed({ shared: 'matlab=2, scratch-gb=100' })).toEqual({
    shared: [
      { kind: 'matlab', amount: 2 },
      { kind: 'scratch-gb', amount: 100 },
    ],
  });
  const closed = { ...hold, wholeSite: false, shared: [{ kind: 'matlab', amount: 2 }] };
  expect(draftOf(closed).shared).toBe('matlab=2');
  expect(changed({ shared: '' }, closed)).toEqual({ shared: [] });
  expect(changed({ shared: 'matlab' }, closed)).toMatch(
    /^Licenses and shared resources: "matlab" is not accepted/,
  );
  expect(changed({ hours: '0' })).toBe('Lasts: hours, more than 0.');
  // Of a reservation all amounts are given together: what is left out is not held any more.
  const held = (name: string, cpus: number | null) => ({
    machine: { id: name === 'a' ? 'machine_1' : 'machine_2', name },
    ...{ whole: cpus === null, cpus, memoryMb: 0, resources: cpus ? [{ kind: 'gpu', amount: 1 }] : [] },
  });
  const reserved: HoldPartsFragment = {
    ...hold,
    ...{ kind: 'USER', wholeSite: false, releaseIdleS: 600, users: [{ name: 'ann' }, { name: 'bob' }] },
    machines: [held('a', 4), held('b', 4)],
  };
  expect(draftOf(reserved)).toMatchObject({
    ...{ machines: 'a, b', tasks: '', cpus: '4', memoryMb: '', resources: 'gpu=1' },
    ...{ users: 'ann, bob', releaseMin: '10' },
  });
  expect(draftOf({ ...reserved, machines: [held('a', 4), held('b', 8)] })).toMatchObject({ cpus: '' });
  expect(changed({}, reserved)).toEqual({});
  expect(changed({ cpus: '8', machines: 'a' }, reserved)).toEqual({
    ...{ machineIds: ['machine_1'], cpus: 8, memoryMb: undefined, resources: [{ kind: 'gpu', amount: 1 }] },
  });
  expect(changed({ tasks: '3', resources: '' }, reserved)).toEqual({
    ...{ tasks: 3, cpus: 4, memoryMb: undefined },
  });
  expect(changed({ users: 'cyd', releaseMin: '' }, reserved)).toEqual({ users: ['cyd'], releaseIdleS: null });
  expect(changed({ releaseMin: '1.5' }, reserved)).toEqual({ releaseIdleS: 90 });
  expect(changed({ cpus: 'x' }, reserved)).toMatch(/^CPUs: "x" is not accepted/);
  expect(changed({ resources: 'gpu' }, reserved)).toMatch(/^Other resources: "gpu" is not accepted/);
  // Of one that recurs it is the length of each time, from the first.
  const recurrence = {
    rrule: 'FREQ=DAILY',
    timeZone: 'UTC',
    from: '2029-01-01T10:00:00.000Z',
    lengthS: 7200,
  };
  expect(changed({ hours: '1', rrule: 'FREQ=WEEKLY' }, { ...hold, recurrence })).toEqual({
    ...{ to: '2029-01-01T11:00:00.000Z', rrule: 'FREQ=WEEKLY' },
  });
});

describe('addresses of lists', () => {
  test('times are ages or dates', () => {
    const now = Date.parse('2026-03-01T12:34:56Z');
    expect(instantOf('90m', now)).toBe('2026-03-01T11:04:00.000Z');
    expect(instantOf('2d', now)).toBe('2026-02-27T12:34:00.000Z');
    expect(instantOf('2026-03-01T10:00:00Z')).toBe('2026-03-01T10:00:00.000Z');
    expect(instantOf('yesterday')).toBeNull();
  });

  test('what is not a filter is left out', () => {
    expect(
      filterOf({ states: 'RUNNING,DANCING', site: 'site_1', endedAfter: 'never', columns: 'x' }),
    ).toEqual({
      states: ['RUNNING'],
      siteId: 'site_1',
    });
  });
});

test('a cell of a CSV file is never a formula', () => {
  expect(csvLine(['=1+1', '@x', '-2', -2, 'a,"b"', null])).toBe(`'=1+1,'@x,'-2,-2,"a,""b""",\r\n`);
});

test('documents are compared leaf by leaf', () => {
  const before = { dispatch: { kind: 'diana', weights: { a: 1, b: 2 } }, seed: 1 };
  const after = withValue(withValue(before, 'dispatch.weights.a', 5), 'seed', undefined);
  expect(before.dispatch.weights.a).toBe(1);
  expect(differences(before, after)).toEqual([
    { path: 'dispatch.weights.a', before: 1, after: 5 },
    { path: 'seed', before: 1, after: undefined },
  ]);
});

test('numbers are written with their units', () => {
  expect([0, 0.01, 4.26, 59.7, 60, 754, 3600, 90_061].map(duration)).toEqual([
    '0 s',
    '< 0.1 s',
    '4.3 s',
    '60 s',
    '1 min',
    '12 min 34 s',
    '1 h',
    '1 d 1 h',
  ]);
  expect([950, 1500, 2_000_000, 3.2e9].map(megabytes)).toEqual(['950 MB', '1.5 GB', '2 TB', '3.2 PB']);
  expect([12, 2_500, 3_000_000].map(bytes)).toEqual(['12 B', '2.5 kB', '3 MB']);
  expect(count(1234567)).toBe('1\u202f234\u202f567');
  expect([0, 0.1234, 12.345, 1234.5].map(figure)).toEqual(['0', '0.123', '12.3', '1\u202f235']);
  expect(named('loadPenaltyS')).toEqual({ label: 'Load penalty', unit: 's' });
});
