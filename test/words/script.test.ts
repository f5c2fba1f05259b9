/** Batch scripts: what their lines ask for, and how they are run. Scripts are run by real interpreters. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command as Parser } from 'commander';
import fc from 'fast-check';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { addJobOptions, type JobOptions, jobFromOptions } from '../../src/cli/job-options.js';
import {
  arrayName,
  arrayOf,
  batchCommand,
  batchEnvironment,
  type Command,
  commandOfScript,
  directivesOf,
  exported,
  jobOf,
  needsWritten,
  nothing,
  parseNeeds,
  patternOf,
  SLURM,
  SWITCHYARD,
  takeOptions,
  withInput,
  wordsOf,
} from '../../src/words/index.js';

const dir = mkdtempSync(join(tmpdir(), 'switchyard-words-'));
afterAll(() => rmSync(dir, { recursive: true }));

const noon = new Date(2026, 2, 1, 12).getTime();
const read = (...lines: string[]) =>
  directivesOf(['#!/bin/sh', ...lines, 'true'].join('\n'), { nowMs: noon, note: () => undefined });
const job = (...lines: string[]) => {
  const { asked, misread } = read(...lines);
  expect(misread).toEqual([]);
  return jobOf(asked);
};
const run = ({ command, arguments: args }: Command, env: Record<string, string> = {}) =>
  execFileSync(command, args, { cwd: dir, env: { PATH: process.env.PATH!, ...env }, encoding: 'utf8' });

describe('lines of a script', () => {
  it('of Slurm are fields of a job', () => {
    expect(
      job(
        '#SBATCH -J sim -A physics -t 1-12:00 --mem=1.5GB -N1 -n4 -c 2',
        '#SBATCH --gres=gpu:2 --licenses=matlab@db:2,stata --signal=B:USR2@90',
        '#SBATCH -H --no-requeue --nice=50 -D /scratch -b 20:00 --constraint="gen3&ssd"',
      ),
    ).toEqual({
      name: 'sim',
      project: 'physics',
      runTimeLimitS: 129_600,
      estimateS: 129_600,
      memoryMbPerTask: 1500,
      tasks: 1,
      cpusPerTask: 8,
      resourcesPerTask: [{ kind: 'gpu', amount: 2 }],
      licenses: ['matlab@db', 'matlab@db', 'stata'],
      warnSignal: 'SIGUSR2',
      warnS: 90,
      held: true,
      restartable: false,
      boost: -50,
      workingDirectory: '/scratch',
      notBefore: new Date(2026, 2, 1, 20).toISOString(),
      machineConstraint: 'gen3&ssd',
    });
  });

  it('tell what mail is about, as far as there is a kind of it', () => {
    expect(job('#SBATCH --mail-type=ALL,TIME_LIMIT_90,ARRAY_TASKS')).toEqual({
      mail: ['BEGIN', 'END', 'FAIL', 'LIMIT_80'],
    });
    expect(job('#SBATCH --mail-type=none')).toEqual({ mail: [] });
    expect(job('#SWITCHYARD --mail end,group_done')).toEqual({ mail: ['END', 'GROUP_DONE'] });
    expect(JSON.stringify(read('#SBATCH --mail-type=SOON').misread)).toMatch(
      /"line":2.*--mail-type: .*SOON.* is not accepted; accepted: NONE, BEGIN, END, FAIL, ALL/,
    );
  });

  it('of components of a heterogeneous job ask for its parts; those of Switchyard name each', () => {
    const lines = [
      '#SBATCH -J het -n 4 -c 2 -t 10 --switches=1@5',
      '#SBATCH hetjob',
      '#SBATCH -N 2 --ntasks-per-node=1 --gres=gpu:2 --mem=2G',
      '#SBATCH hetjob',
      '#SBATCH --constraint=fast --exclusive=user --switches=1',
    ];
    expect(job(...lines)).toEqual({
      ...{ name: 'het', estimateS: 600, runTimeLimitS: 600 },
      parts: [
        { tasks: 1, cpusPerTask: 8, sameSwitch: { maxWaitS: 300 } },
        {
          ...{ tasks: 2, cpusPerTask: 1, memoryMbPerTask: 2000, tasksPerMachine: { min: 1, max: 1 } },
          resourcesPerTask: [{ kind: 'gpu', amount: 2 }],
        },
        { machineConstraint: 'fast', exclusive: 'USER', sameSwitch: {} },
      ],
    });
    expect(
      job(
        '#SWITCHYARD --part tasks=4,cpus=2,same-switch=10m,exclusive=user',
        '#SWITCHYARD --part "gpus=1,constraint=a or b"',
      ),
    ).toEqual({
      parts: [
        { tasks: 4, cpusPerTask: 2, sameSwitch: { maxWaitS: 600 }, exclusive: 'USER' },
        { resourcesPerTask: [{ kind: 'gpu', amount: 1 }], machineConstraint: 'a or b' },
      ],
    });
  });

  it('tell how many CPUs a node needs', () => {
    expect(job('#SBATCH -n 4')).toMatchObject({ tasks: 1, cpusPerTask: 4 });
    expect(job('#SBATCH -n 5 -N 2 -c 3')).toMatchObject({ tasks: 2, cpusPerTask: 9, launch: 'ONCE' });
    // A node is a machine.
    const tasksPerMachine = { min: 1, max: 1 };
    expect(job('#SBATCH -N 3 --ntasks-per-node=4')).toMatchObject({
      ...{ tasks: 3, cpusPerTask: 4, tasksPerMachine },
    });
    expect(job('#SBATCH -n 16 --ntasks-per-node=4')).toMatchObject({
      ...{ tasks: 4, cpusPerTask: 4, tasksPerMachine },
    });
    expect(job('#SBATCH -N 1 -n 4').tasksPerMachine).toBeUndefined();
    expect(job('#SBATCH --exclusive -c 2 --mem=1G --mem-per-cpu=700M')).toEqual({
      ...{ exclusive: 'MACHINE', cpusPerTask: 2, memoryMbPerTask: 1400 },
    });
    expect(job('#SWITCHYARD --tasks 8 --tasks-per-machine 2-4 --exclusive --mem-per-cpu 1G')).toEqual({
      ...{ tasks: 8, tasksPerMachine: { min: 2, max: 4 }, exclusive: 'MACHINE', memoryMbPerTask: 1000 },
    });
    expect(job('#SWITCHYARD --tasks 8 --tasks-per-machine=4-').tasksPerMachine).toEqual({
      min: 4,
      max: null,
    });
    expect(job('#SBATCH --switches=1@10').sameSwitch).toEqual({ maxWaitS: 600 });
    expect(job('#SBATCH --switches=1').sameSwitch).toEqual({});
    expect(job('#SWITCHYARD --same-switch require --all-alike rack')).toEqual({
      ...{ sameSwitch: {}, allAlike: ['rack'] },
    });
    expect(JSON.stringify(read('#SBATCH --switches=2').misread)).toMatch(/--switches: .*2.*1 \(one switch\)/);
    for (const line of ['#SBATCH --exclusive=user', '#SWITCHYARD --exclusive=user'])
      expect(job(line)).toEqual({ exclusive: 'USER' });
    expect(JSON.stringify(read('#SBATCH --exclusive=mcs').misread)).toMatch(/--exclusive: .*mcs.* or user/);
    for (const wrong of ['0', '4-2', '-4', 'a', '1-2-3'])
      expect(JSON.stringify(read(`#SWITCHYARD --tasks-per-machine=${wrong}`).misread)).toMatch(
        /--tasks-per-machine: .*is not accepted; accepted: tasks per machine: exactly/,
      );
    expect(job('#SBATCH -c 4 --mem-per-cpu=500M')).toEqual({ cpusPerTask: 4, memoryMbPerTask: 2000 });
    expect(job('#SBATCH -n 4 --gpus=2 -N 2').resourcesPerTask).toEqual([{ kind: 'gpu', amount: 1 }]);
    // A model is a label of machines.
    expect(job('#SBATCH --reservation=course')).toEqual({ reservation: 'course' });
    expect(job('#SBATCH --gres=gpu:a100:2,tape -C fast|new')).toMatchObject({
      resourcesPerTask: [
        { kind: 'gpu', amount: 2 },
        { kind: 'tape', amount: 1 },
      ],
      machineConstraint: '(fast|new) and gpu = "a100"',
    });
    // What amounts cannot say are requests.
    const a100 = { kind: 'gpu', model: 'a100', minMemoryMb: 40_000 };
    expect(job('#SBATCH --gres=gpu:a100:2:mem=40G,gres/gpu:share=1/4,tape')).toEqual({
      devicesPerTask: [
        { ...a100, count: 2 },
        { kind: 'gpu', share: { parts: 1, of: 4 } },
      ],
      resourcesPerTask: [{ kind: 'tape', amount: 1 }],
    });
    expect(job('#SBATCH -n 4 -N 2 --gpus-per-task=a100:mem=40G')).toMatchObject({
      devicesPerTask: [{ ...a100, count: 2 }],
    });
    expect(job('#SBATCH -N 2 --gpus=a100:4:mem=40G').devicesPerTask).toEqual([{ ...a100, count: 2 }]);
    for (const line of ['#SBATCH --gpus-per-node=mem=40G', '#SWITCHYARD --gpus mem=40G'])
      expect(job(line)).toEqual({ devicesPerTask: [{ kind: 'gpu', minMemoryMb: 40_000, count: 1 }] });
    // The last one given counts, as it does of amounts.
    expect(job('#SBATCH --gpus=mem=40G', '#SBATCH --gpus=3')).toEqual({
      resourcesPerTask: [{ kind: 'gpu', amount: 3 }],
    });
    expect(JSON.stringify(read('#SBATCH --gres=gpu:share=1').misread)).toMatch(
      /--gres: .*gpu:share=1.* is not accepted/,
    );
  });

  it('of Slurm name what a job waits for', () => {
    expect(job('#SBATCH -d afterok:12:13,after:job_14+5').needs).toEqual([
      {
        of: [
          { job: 'job_12', condition: 'OK' },
          { job: 'job_13', condition: 'OK' },
          { job: 'job_14', condition: 'START', minDelayS: 300 },
        ],
      },
    ]);
    expect(job('#SBATCH --dependency=afterok:1?afternotok:2').needs).toMatchObject([{ expression: 'ANY' }]);
    expect(read('#SBATCH -d singleton').asked.singleton).toBe(true);
    expect(read('#SBATCH -d singleton?afterok:1').misread[0]!.why).toContain('afterok');
  });

  it('of a form name it the same way, groups too, and are written as they are read', () => {
    const read = (written: string) => parseNeeds('needs', written);
    expect(read('afterok:12:group:prep+2, afterany:group_3?after:job_4')).toEqual([
      {
        expression: 'ALL',
        of: [
          { job: 'job_12', condition: 'OK' },
          { group: 'prep', condition: 'OK', minDelayS: 120 },
        ],
      },
      {
        expression: 'ANY',
        of: [
          { jobGroup: 'group_3', condition: 'ANY' },
          { job: 'job_4', condition: 'START' },
        ],
      },
    ]);
    for (const wrong of [
      '',
      'afterok',
      'afterok:',
      'whenever:1',
      'afterok:x',
      'afterok:1,',
      'after:1+x',
      'afterok:group:',
    ])
      expect(() => read(wrong), wrong).toThrow(/afterok:12:13/);
    for (const written of ['afterok:12', 'afternotok:1+5?afterany:group:a b', 'after:group_3,aftercorr:9'])
      expect(needsWritten(read(written))).toBe(written);
    const odd = {
      expression: 'ALL' as const,
      of: [{ job: 'job_1', condition: 'OK' as const, minDelayS: 30 }],
    };
    expect(needsWritten([odd])).toBeNull();
    expect(needsWritten([{ ...odd, of: [{ group: 'a,b', condition: 'OK' }] }])).toBeNull();
  });

  it('of Switchyard are those of submit', () => {
    expect(
      job(
        '#SWITCHYARD --cpus 2 --mem 2G --time 00:05:00 --after-ok group:sweep',
        '#SWITCHYARD --env A="b c" --keep out/*',
      ),
    ).toEqual({
      cpusPerTask: 2,
      memoryMbPerTask: 2000,
      runTimeLimitS: 300,
      estimateS: 300,
      needs: [{ of: [{ group: 'sweep', condition: 'OK' }] }],
      outputs: [{ path: 'out/*' }],
    });
    expect(read('#SWITCHYARD --env A="b c"').asked.environment).toEqual({ A: 'b c' });
  });

  it('of Switchyard take each option of submit that describes a job and names no site or dataset, as it does', () => {
    const command = addJobOptions(new Parser());
    const known = command.options.flatMap(({ long }) => long ?? []);
    const asked = ['--exclusive=user', '--input', '--ref', '--from-site', '--prefer'];
    expect(known.filter((long) => !SWITCHYARD.some((one) => one.long === long))).toEqual(asked);
    const line =
      '--resource tape=1 --gpus a100:2 --gres fpga:1 --license cad --os linux --arch x64 --sandbox-mb 1.5 --terminal 80x24 --output-mb 2 --keep out --keep-dataset d=x --checkpoint c --checkpoint-signal USR1 --partition a,b --account c --qos d --boost -3 --class 0 --after-same group:g --after 1 --after-ok group_2 --after-not-ok job_3 --after-start 4 --on-unmet HOLD --begin +1h --deadline +2h --limit 10m --warn 60 --warn-signal USR2 --kill-grace 0 --retries 3 --retry-rule exit=75,cause=LOST,do=ELSEWHERE --retry-rule signal=KILL,memory=2 --retry-backoff 0 --retry-factor 3 --retry-max-backoff 5m --mail end,fail --name n --application p --project q --group r --tasks 2 --cpus 3 --mem 1G --reservation s --estimate 5m --benchmark 90 --computation-share 0.5 --env A=b --image i --dir /t --simulated-run 4 --simulated-io 1 --no-restart --launch-once --continue-on-failure --hold --constraint fast --all-alike rack,gen --same-switch 5m --part tasks=2,cpus=3,gpus=a100:1,constraint=x --part mem=2G,exclusive=user';
    vi.useFakeTimers({ now: noon });
    const options = jobFromOptions(command.parse(line.split(' '), { from: 'user' }).opts<JobOptions>(), []);
    vi.useRealTimers();
    const { environment, ...others } = options;
    expect(environment).toEqual([{ name: 'A', value: 'b' }]);
    const { asked: said } = read(`#SWITCHYARD ${line}`);
    expect(said.environment).toEqual({ A: 'b' });
    const { needs, resources, ...rest } = job(`#SWITCHYARD ${line}`);
    const { needs: needed, resources: given, ...same } = others;
    expect(rest).toEqual(same);
    const inOrder = (list: unknown) => (list as object[]).map((one) => JSON.stringify(one)).sort();
    expect(inOrder(resources)).toEqual(inOrder(given));
    const terms = (clauses: unknown) => inOrder((clauses as { of: object[] }[])[0]?.of);
    expect(terms(needs)).toEqual(terms(needed));
    expect(job('#SWITCHYARD --input-from job_1:x --input-from group:g:y').inputs).toEqual([
      { from: 'job_1', output: 'x' },
      { from: 'group:g', output: 'y' },
    ]);
  });

  it('of Switchyard may send output to files as those of Slurm do', () => {
    const { asked, isSlurms } = read('#SWITCHYARD --output o-%j.txt --error e-%x.txt');
    expect([asked.output, asked.error, isSlurms]).toEqual(['o-%j.txt', 'e-%x.txt', true]);
  });

  it('are named by number when they are not understood', () => {
    const { misread, unheeded } = read(
      '#SBATCH --tiem=5',
      '#SBATCH --time=soon',
      '# SBATCH --nothing',
      '##SBATCH --nothing',
      '#SBATCH --profile=all --profile=none',
      "#SBATCH -J 'open",
      '#SBATCH --mem=4G 17',
    );
    expect(misread.map(({ line, why }) => `${line} ${why.slice(0, 30)}`)).toEqual([
      '2 unknown option --tiem',
      '3 --time: "soon" is not accepted',
      '7 a quote is left open',
      '8 17 is not an option',
    ]);
    expect(unheeded).toEqual(['--profile: the site’s agent determines how usage is measured']);
  });

  it('end with the first command, and at a comment', () => {
    const { asked } = directivesOf('#!/bin/sh\n\n#SBATCH -c 2 # -c 3\n\necho\n#SBATCH -c 4\n', {
      nowMs: 0,
      note: () => undefined,
    });
    expect(asked.cpusPerTask).toBe(2);
  });

  it('never throw, whatever is in them', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary-ascii' })), (texts) => {
        const { misread } = read(...texts.map((text) => `#SBATCH ${text}`));
        for (const { line } of misread) expect(line).toBeGreaterThan(1);
      }),
    );
  });

  it('are taken apart as getopt does', () => {
    const taken = (text: string) => {
      const { options, rest } = takeOptions(wordsOf(text)!, SLURM);
      return [...options.map(({ option, value }) => `${option.long}=${value}`), ...rest];
    };
    expect(taken('-Hn4 --job-n x --nice -c=2 --exclusive=user a -n 1')).toEqual([
      ...[
        '--hold=',
        '--ntasks=4',
        '--job-name=x',
        '--nice=',
        '--cpus-per-task=2',
        '--exclusive=user',
        'a',
        '-n',
        '1',
      ],
    ]);
    expect(() => taken('--n 1')).toThrow('unknown option --n');
    expect(() => taken('-n')).toThrow('--ntasks: "" is not accepted; accepted: a value');
    for (const table of [SLURM, SWITCHYARD])
      for (const key of ['long', 'short'] as const) {
        const names = table.flatMap((option) => option[key] ?? []);
        expect(new Set(names).size).toBe(names.length);
      }
  });

  it.each<[string, string[] | null]>([
    ['make -j 4', ['make', '-j', '4']],
    [`echo 'a b' "c \\"d\\"" e\\ f ''`, ['echo', 'a b', 'c "d"', 'e f', '']],
    ['echo "open', null],
    ['   ', []],
  ])('%s is split as a shell would', (line, words) => {
    expect(wordsOf(line)).toEqual(words);
  });
});

describe('a script', () => {
  it('runs with the interpreter that it names', () => {
    expect(commandOfScript('echo hi\n')).toEqual({ command: '/bin/sh', arguments: ['-c', 'echo hi\n'] });
    const python = '#!/usr/bin/env python3\nprint(1)\n';
    expect(commandOfScript(python)).toEqual({
      command: '/usr/bin/env',
      arguments: ['python3', '-c', python],
    });
    const perl = '#!/usr/bin/perl -w\nprint 1;\n';
    expect(commandOfScript(perl)).toEqual({ command: '/usr/bin/perl', arguments: ['-w', '-e', perl] });
  });

  it('finds its arguments and its name', () => {
    expect(run(commandOfScript('#!/bin/bash -e\necho "$0 $1 $#"\n', 'run.sh', ['a b', 'c']))).toBe(
      'run.sh a b 2\n',
    );
    expect(run(commandOfScript('#!/usr/bin/perl\nprint "@ARGV\\n";\n', 'x.pl', ['a', 'b']))).toBe('a b\n');
    // An interpreter that wants a file.
    const sed = '#!/bin/sed -nf\ns/a/$HOME `id`/p\n';
    expect(run(withInput('banana\n', commandOfScript(sed)))).toBe('b$HOME `id`nana\n');
  });

  it('finds on its standard input what is shipped, as it is', () => {
    for (const text of ['$HOME `x` \\n "quoted"\n\n', 'one\n', "a'b\nEND_OF_INPUT\nc\n"])
      expect(run(withInput(text, { command: 'cat', arguments: [] }))).toBe(text);
    const failing = withInput('exit 3\n', { command: 'bash', arguments: ['-s'] });
    expect(spawnSync(failing.command, failing.arguments).status).toBe(3);
  });

  it('has the environment of Slurm, and its output in files named by patterns', () => {
    const { asked } = read('#SBATCH -J sim -N 2 -n 4 -a 4-8:2 -o %x-%A_%a-%3j-%N%%.out -e "it\'s %j.err"');
    const script = '#!/bin/sh\nenv | grep ^SLURM | sort; echo trouble >&2\n';
    const said = run(batchCommand(asked, commandOfScript(script), 1), {
      SWITCHYARD_JOB_ID: 'job_18',
      SWITCHYARD_EPOCH: '2',
      SWITCHYARD_ARRAY_INDEX: '6',
      SWITCHYARD_MACHINES: 'n1:1,n2:1',
      ...batchEnvironment(asked, { user: 'ada', host: 'login', directory: '/home/ada' }),
    });
    expect(said).toBe('output: n1:sim-17_6-018-n1%.out\n');
    expect(readdirSync(dir).sort()).toEqual(["it's 18.err", 'sim-17_6-018-n1%.out']);
    expect(readFileSync(join(dir, "it's 18.err"), 'utf8')).toBe('trouble\n');
    const lines = readFileSync(join(dir, 'sim-17_6-018-n1%.out'), 'utf8').split('\n');
    for (const line of [
      'JOB_ID=18',
      'JOBID=18',
      'ARRAY_JOB_ID=17',
      'ARRAY_TASK_ID=6',
      'ARRAY_TASK_COUNT=3',
      'ARRAY_TASK_STEP=2',
      'JOB_NODELIST=n1,n2',
      'JOB_NUM_NODES=2',
      'NTASKS=4',
      'CPUS_ON_NODE=2',
      'RESTART_COUNT=1',
      'SUBMIT_DIR=/home/ada',
      'JOB_NAME=sim',
    ])
      expect(lines).toContain(`SLURM_${line}`);
  });

  it('appends where it is to', () => {
    writeFileSync(join(dir, 'log'), 'before\n');
    const { asked } = read('#SBATCH -o log --open-mode=append');
    run(batchCommand(asked, commandOfScript('echo after; echo both >&2')), { SWITCHYARD_JOB_ID: 'job_1' });
    expect(readFileSync(join(dir, 'log'), 'utf8')).toBe('before\nafter\nboth\n');
  });

  it('has file names that no character of a pattern can leave', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'%ajx$`"\' \n*;&09-') }), (pattern) => {
        const { stdout, status } = spawnSync('sh', ['-c', `printf %s ${patternOf(pattern) || "''"}`], {
          env: { SLURM_JOB_ID: '7', SLURM_ARRAY_TASK_ID: '8', SLURM_JOB_NAME: 'n' },
          encoding: 'utf8',
        });
        const plain = pattern.replaceAll(/%(\d*)([ajx%])/g, (_, width: string, letter: string) =>
          letter === '%'
            ? '%'
            : letter === 'x'
              ? 'n'
              : (letter === 'j' ? '7' : '8').padStart(Math.min(10, Number(width)), '0'),
        );
        if (!/%\d+x/.test(pattern)) expect([status, stdout]).toEqual([0, plain]);
      }),
      { numRuns: 40 },
    );
  });
});

it('exports what is named, and nothing secret', () => {
  const env = { A: '1', SWITCHYARD_KEY: 'secret', SLURM_JOB_ID: '3', PWD: '/', 'BASH_FUNC_f%%': '() {}' };
  expect(exported('ALL', env)).toEqual({ A: '1' });
  expect(exported('ALL,B=2', env)).toEqual({ A: '1', B: '2' });
  expect(exported('NONE', env)).toEqual({});
  expect(exported('A,C,B=x=y', env)).toEqual({ A: '1', B: 'x=y' });
});

it('an array is known by the name that its elements share', () => {
  expect(arrayOf(arrayName('1, 3-5%2', '0123abcd'))).toBe('1,3-5%2');
  for (const name of [null, 'sweep', 'array x', 'array 1-3 0123']) expect(arrayOf(name)).toBeNull();
  expect(jobOf(nothing())).toEqual({});
});
