/** Workflow files: what they say, and where they are wrong. */
import { expect, it } from 'vitest';
import { CliError } from '../../src/cli/errors.js';
import { jobsOf, planOf, readWorkflow, tasksOf } from '../../src/cli/workflow.js';

const read = (text: string, given = {}) => readWorkflow('flow.yaml', text, { given, client: null });
const jobs = async (text: string, given = {}) => jobsOf(await read(text, given)).jobs;
async function faults(...lines: string[]): Promise<string[]> {
  const error = await read(`${lines.join('\n')}\n`).then(
    () => new CliError(''),
    (thrown: CliError) => thrown,
  );
  return error.message.split('\n');
}

it('fields are options, and what a job does not say is in the defaults, then on the command line', async () => {
  const [first, second] = await jobs(
    `name: flow
defaults: {cpus: 2, estimate: 15m, env: [A=1]}
jobs:
  first:
    run: echo "$A"
    mem: 1.5 GB
    gpus: a100:2
    restart: false
    retries: 3
    retry-rule: [exit=75, 'cause=MEMORY_LIMIT,memory=2']
    keep: out.txt
    env: {VERSION: 1.10, FLAG: on}
    mail: [end, fail]
  second:
    command: [python3, x.py, 7]
    cpus: 1
    group: other
    launch-once: true
    on-unmet: hold`,
    { boost: -1, estimateS: 7 },
  );
  expect(first).toEqual({
    ...{ name: 'first', ref: 'first', groupName: 'flow', application: 'first', boost: -1 },
    ...{ command: '/bin/sh', arguments: ['-c', 'echo "$A"', 'first'] },
    ...{ cpusPerTask: 2, estimateS: 900, memoryMbPerTask: 1500, restartable: false },
    ...{ resourcesPerTask: [{ kind: 'gpu', amount: 2 }], machineConstraint: 'gpu = "a100"' },
    retry: {
      maxRetries: 3,
      rules: [
        { action: 'RETRY', exitCodes: [{ from: 75, to: 75 }] },
        { action: 'RETRY', causes: ['MEMORY_LIMIT'], memoryFactor: 2 },
      ],
    },
    outputs: [{ path: 'out.txt' }],
    environment: [
      { name: 'VERSION', value: '1.10' },
      { name: 'FLAG', value: 'on' },
    ],
    mail: ['END', 'FAIL'],
  });
  expect(second).toMatchObject({
    ...{ groupName: 'other', command: 'python3', arguments: ['x.py', '7'], cpusPerTask: 1 },
    ...{ environment: [{ name: 'A', value: '1' }], launch: 'ONCE', onUnmet: 'HOLD' },
  });
});

it('needs are clauses, and arrays stand for their elements', async () => {
  const all = await jobs(`jobs:
  a: {run: x}
  b: {run: x, array: '1-3%2', needs: a}
  c: {run: x, array: 1-3:2, needs: [{ref: b, condition: CORRESPONDING}]}
  d: {run: x, needs: [a, {ref: b, condition: NOT_OK, delay: 1m}, {any: [a, {job: job_6, condition: ANY}]}]}
  e: {run: x, needs: [{group: g}, {job-group: group_3}]}`);
  const needs = Object.fromEntries(all.map(({ ref, needs: asked }) => [ref, asked]));
  const b = [1, 2, 3].map((index) => ({ ref: `b[${index}]`, minDelayS: 60 }));
  expect(needs).toEqual({
    a: undefined,
    'b[1]': [{ expression: 'ALL', of: [{ ref: 'a' }] }],
    'b[2]': [{ expression: 'ALL', of: [{ ref: 'a' }] }],
    'b[3]': [{ expression: 'ALL', of: [{ ref: 'a' }] }, { of: [{ ref: 'b[1]', condition: 'ANY' }] }],
    'c[1]': [{ expression: 'ALL', of: [{ ref: 'b[1]', condition: 'OK' }] }],
    'c[3]': [{ expression: 'ALL', of: [{ ref: 'b[3]', condition: 'OK' }] }],
    d: [
      { expression: 'ANY', of: b.map((one) => ({ ...one, condition: 'NOT_OK' })) },
      { expression: 'ALL', of: [{ ref: 'a' }, ...b.map((one) => ({ ...one, condition: 'ANY' }))] },
      { expression: 'ANY', of: [{ ref: 'a' }, { job: 'job_6', condition: 'ANY' }] },
    ],
    e: [{ expression: 'ALL', of: [{ group: 'g' }, { jobGroup: 'group_3' }] }],
  });
  expect(all.map(({ arrayIndex }) => arrayIndex)).toEqual([undefined, 1, 2, 3, 1, 3, undefined, undefined]);
});

it('each mistake is told with its line and column, the value and what is accepted', async () => {
  expect(
    await faults(
      'nam: x',
      'defaults: {estimate: soon}',
      'jobs:',
      '  a: {run: x, cpus: two, gpu: 1, time: 5m}',
      '  2b: {run: x}',
      '  c: {run: [x]}',
      '  d: {run: x, hold: maybe, needs: [{ref: a, condition: DONE}]}',
      '  e: {run: x, needs: [{any: []}, true]}',
    ),
  ).toEqual([
    'flow.yaml:1:1: nam: unknown field; did you mean name?; accepted: name, defaults, jobs',
    expect.stringMatching(
      /^flow\.yaml:4:26: jobs\.a\.gpu: unknown field; did you mean gpus\?; accepted: run, command, needs, array, .*gpus/,
    ),
    expect.stringMatching(/^flow\.yaml:4:34: jobs\.a\.time: unknown field; did you mean limit\?/),
    'flow.yaml:5:3: jobs.2b: invalid name; accepted: a letter, then letters, digits, ".", "_" and "-", at most 100',
    'flow.yaml:6:12: jobs.c.run: ["x"] is not accepted; accepted: a script',
    'flow.yaml:7:21: jobs.d.hold: "maybe" is not accepted; accepted: true or false',
    'flow.yaml:7:56: jobs.d.needs[0].condition: "DONE" is not accepted; accepted: START, OK, NOT_OK, ANY, CORRESPONDING',
    'flow.yaml:8:29: jobs.e.needs[0].any: [] is not accepted; accepted: at least one',
    expect.stringMatching(
      /^flow\.yaml:8:34: jobs\.e\.needs\[1\]: true is not accepted; accepted: names of jobs, or /,
    ),
  ]);
  expect(
    await faults(
      'defaults: {estimate: soon}',
      'jobs:',
      '  a: {run: x, cpus: two, begin: someday}',
      '  b: {run: x, command: [x], array: 3-1}',
      '  c: {needs: [{ref: a, job: job_1}, {ref: a, delay: long}]}',
    ),
  ).toEqual([
    expect.stringMatching(
      /^flow\.yaml:1:22: defaults\.estimate: "soon" is not accepted; accepted: seconds or /,
    ),
    expect.stringMatching(
      /^flow\.yaml:3:21: jobs\.a\.cpus: "two" is not accepted; accepted: a whole number from 1/,
    ),
    expect.stringMatching(
      /^flow\.yaml:3:33: jobs\.a\.begin: "someday" is not accepted; accepted: a time such as/,
    ),
    'flow.yaml:4:3: jobs.b: give either run, a script, or command, a list of words',
    expect.stringMatching(
      /^flow\.yaml:4:36: jobs\.b\.array: "3-1" is not accepted; accepted: indices and ranges/,
    ),
    'flow.yaml:5:3: jobs.c: give either run, a script, or command, a list of words',
    expect.stringMatching(
      /^flow\.yaml:5:15: jobs\.c\.needs\[0\]: .* is not accepted; accepted: exactly one of ref, job, /,
    ),
    expect.stringMatching(
      /^flow\.yaml:5:53: jobs\.c\.needs\[1\]\.delay: "long" is not accepted; accepted: seconds or /,
    ),
  ]);
  expect(
    await faults(
      'jobs:',
      '  a: {run: x, needs: [b, nobody]}',
      '  b: {run: x, needs: a}',
      '  c: {run: x, array: 1-2}',
      '  d: {run: x, array: "1,3", needs: [{ref: c, condition: CORRESPONDING}, {any: [c, a]}]}',
    ),
  ).toEqual([
    expect.stringMatching(/^flow\.yaml:2:22: jobs\.a\.needs: a, b depend on one another in a cycle/),
    expect.stringMatching(/^flow\.yaml:2:26: jobs\.a\.needs\[1\]: names ref nobody, which is not a ref/),
    expect.stringMatching(/^flow\.yaml:5:37: jobs\.d\.needs\[0\]: CORRESPONDING: c does not have index 3/),
    expect.stringMatching(
      /^flow\.yaml:5:80: jobs\.d\.needs\[1\]\.any\[0\]: c is an array, which `any` does not support/,
    ),
  ]);
  expect(await faults('jobs:', '  a: {run: x', '  b: y')).toEqual([
    expect.stringMatching(/^flow\.yaml:\d+:\d+: /),
  ]);
  expect(await faults('jobs:', '  a: {run: x}', '  a: {run: y}')).toEqual([
    'flow.yaml:3:3: Map keys must be unique',
  ]);
  expect(await faults('jobs: {}')).toEqual([
    'flow.yaml:1:7: jobs: {} is not accepted; accepted: at least one job',
  ]);
});

it('what is read of an array: the element with the same index, or all of them', async () => {
  const text = `jobs:
  part: {run: x, array: 3-5, keep: out.txt, estimate: 10m}
  each: {run: x, array: 4-5, input-from: 'part:out.txt', keep: out.txt, estimate: 10m}
  all: {run: x, input-from: ['each:out.txt', 'job_7:more.txt'], estimate: 10m}`;
  const client = { all: async () => [] };
  const submitted = jobsOf(await readWorkflow('flow.yaml', text, { given: {}, client })).jobs;
  expect(submitted.map(({ ref, inputs = null }) => [ref, inputs])).toEqual([
    ...[3, 4, 5].map((i) => [`part[${i}]`, null]),
    ...[4, 5].map((i) => [`each[${i}]`, [{ from: `part[${i}]`, output: 'out.txt' }]]),
    [
      'all',
      [
        { from: 'each[4]', output: 'out.txt' },
        { from: 'each[5]', output: 'out.txt' },
        { from: 'job_7', output: 'more.txt' },
      ],
    ],
  ]);
  // They wait for it: in the plan, in a simulation, and for circles.
  expect(
    planOf(await read(text))
      .split('\n')
      .slice(1),
  ).toEqual([
    '    1  part     3     1  10m00s    -',
    '    2  each     2     1  10m00s    part CORRESPONDING',
    '    3  all      1     1  10m00s    each',
    '6 jobs; by the estimates at least 30m00s: part → each → all',
  ]);
  expect(
    tasksOf(submitted).map(({ needs }) => needs.flatMap(({ of }) => of.flatMap(({ members }) => members))),
  ).toEqual([...[[], [], []], ...[[1], [2], [3, 4]]]);
  expect(
    await faults(
      'jobs:',
      '  a: {run: x, input-from: "b:out", keep: out}',
      '  b: {run: x, needs: a, keep: out}',
    ),
  ).toEqual([expect.stringMatching(/^flow\.yaml:2:\d+: jobs\.a.*(cycle|one another)/)]);
  expect(
    await faults(
      'jobs:',
      '  a: {run: x, array: 1-2, keep: o}',
      '  b: {run: x, array: 2-3, input-from: "a:o"}',
    ),
  ).toEqual([
    "flow.yaml:3:39: jobs.b.input-from: CORRESPONDING: a does not have index 3; accepted: an array with every index of the job's own",
  ]);
});

it('the plan has levels and the longest way', async () => {
  const workflow = await read(`jobs:
  last: {run: x, estimate: 1h, needs: [left, {any: [right, {job: job_2}]}]}
  first: {run: x, estimate: 10m}
  left: {run: x, estimate: 20m, needs: first, array: 1-4}
  right: {run: x, estimate: 2h, needs: first, cpus: 2, tasks: 3}`);
  expect(planOf(workflow).split('\n')).toEqual([
    'LEVEL  JOB    JOBS  CPUS  ESTIMATE  NEEDS',
    '    1  first     1     1  10m00s    -',
    '    2  left      4     1  20m00s    first',
    '    2  right     1     6  2h00m     first',
    '    3  last      1     1  1h00m     left, any of (right, job_2)',
    '7 jobs; by the estimates at least 3h10m: first → right → last',
  ]);
});
