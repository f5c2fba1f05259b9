/** The commands called like Slurm's, as its clients call them: by name, in a directory of PATH, from a shell. */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { endAll, type Service, serve, until } from './service.js';
import { commandsOf } from './slurm-commands.js';
import { TUTORIALS } from './tutorials.js';

const home = mkdtempSync(join(tmpdir(), 'switchyard-slurm-commands-'));
const [here, bin] = [join(home, 'here'), join(home, 'bin')];
let service: Service;

beforeAll(async () => {
  mkdirSync(here);
  service = await serve(home);
  execFileSync(process.execPath, [packagePath('bin', 'switchyard.js'), 'slurm', 'install', bin]);
});
afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

const { shell, said } = commandsOf({ bin, here, home, url: () => service.url });
const file = (name: string): string => readFileSync(join(here, name), 'utf8');
function script(name: string, ...lines: string[]): void {
  writeFileSync(join(here, name), `${['#!/bin/bash', ...lines].join('\n')}\n`);
}

describe('sbatch', () => {
  it('submits a script, whose output is in a file where it was submitted', async () => {
    script(
      'run.sh',
      '#SBATCH -J one -t 5 --mem=20M',
      'echo "$SLURM_JOB_NAME $1 $SECRET_OF_MINE $SWITCHYARD_KEY$PWD"; exit 3',
    );
    const submitted = await shell('sbatch -W run.sh first');
    expect(submitted).toMatchObject({
      code: 3,
      stderr: '',
      stdout: expect.stringMatching(/^Submitted batch job \d+\n$/),
    });
    const id = /\d+/.exec(submitted.stdout)![0];
    expect(file(`slurm-${id}.out`)).toBe(`one first shown ${here}\n`);
    expect(await said(`sacct -n -X -P -o JobIDRaw,JobName,State,ExitCode,Timelimit -j ${id}`)).toBe(
      `${id}|one|FAILED|3:0|00:05:00`,
    );
    expect(await said(`sacct -n -P --format=jobid,state -j ${id}.batch`)).toBe(`${id}.batch|FAILED`);
    expect(await said(`sacct -n -P --format=jobid,state -j ${id}`)).toBe(`${id}|FAILED\n${id}.batch|FAILED`);
    // It has started none with srun.
    expect(await said(`sacct -j ${id}.0 --format=JobID,State --noheader -P`)).toBe('');
  });

  it('takes a script from standard input, and a command to wrap', async () => {
    const id = await said(
      'sbatch --parsable --export=A=1 -o in-%j.txt -W',
      '#!/bin/sh\necho "$A$SECRET_OF_MINE"\n',
    );
    expect(file(`in-${id}.txt`)).toBe('1\n');
    await said("sbatch -Q -W -o wrap.txt --wrap='echo wrapped; hostname >/dev/null'");
    expect(file('wrap.txt')).toBe('wrapped\n');
  });

  it('submits arrays, whose elements are known by the array and their index', async () => {
    const id = await said(
      "sbatch --parsable -W -a 2-6:2%2 -o a-%A_%a.txt --wrap 'echo $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT'",
    );
    for (const index of [2, 4, 6]) expect(file(`a-${id}_${index}.txt`)).toBe(`${index} of 3\n`);
    const first = Number(id);
    expect(await said(`sacct -X -n -P -o JobID,JobIDRaw,State -j ${id}`)).toBe(
      [2, 4, 6].map((index, place) => `${id}_${index}|${first + place}|COMPLETED`).join('\n'),
    );
    expect(await said(`squeue -h -t all -o '%i %A %F %K' -j ${id}_4`)).toBe(`${id}_4 ${first + 1} ${id} 4`);
    expect(await said(`scontrol -o show job ${id}_6`)).toMatch(
      `JobId=${first + 2} ArrayJobId=${id} ArrayTaskId=6 ArrayTaskThrottle=2 JobName=`,
    );
  });

  it('changes how many elements of an array run at once', async () => {
    const id = await said(
      "sbatch --parsable -a 1-5%1 -o /dev/null --wrap 'echo x >>on-$SLURM_ARRAY_TASK_ID; while [ ! -e lanes-go ]; do sleep 0.1; done'",
    );
    const running = () => said(`squeue -h -r -t R -o %K -j ${id}`);
    await until(running, (text) => text === '1');
    expect(await said(`squeue -h -t PD -o %i -j ${id}`)).toBe(`${id}_[2-5%1]`);
    await said(`scontrol update JobId=${id} ArrayTaskThrottle=2`);
    await until(running, (text) => text === '1\n2');
    expect(await said(`squeue -h -t PD -o '%i %r' -j ${id}`)).toBe(`${id}_[3-5%2] Dependency`);
    expect(await said(`scontrol -o show job ${id}_5`)).toContain(' ArrayTaskThrottle=2 ');
    const elements = Array.from({ length: 5 }, (_, place) => `job_${Number(id) + place}`);
    expect(await service.cli('change', ...elements, '--at-once', '1')).toMatchObject({ code: 0 });
    expect(await said(`squeue -h -t PD -o %i -j ${id}`)).toBe(`${id}_[3-5%1]`);
    expect((await service.cli('job', elements[4]!)).stdout).toMatch(/^at once +at most 1 of the jobs/m);
    // By any of its elements; 0 is no limit.
    await said(`scontrol update ArrayTaskThrottle=0 JobId=${id}_4`);
    await until(
      () => said(`squeue -h -r -t PD -o %r -j ${id}`),
      (reasons) => !reasons.includes('Dependency'),
    );
    expect(await said(`scontrol -o show job ${id}_1`)).not.toContain('ArrayTaskThrottle');
    writeFileSync(join(here, 'lanes-go'), '');
    await until(
      () => said(`squeue -h -j ${id}`),
      (text) => text === '',
    );
    for (const index of [1, 2, 3, 4, 5]) expect(file(`on-${index}`)).toBe('x\n');
    const single = await said('sbatch --parsable -H --wrap true');
    expect(await shell(`scontrol update JobId=${single} ArrayTaskThrottle=2`)).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(`job ${single} is not an array`),
    });
    expect(await shell(`scontrol update JobId=${id} ArrayTaskThrottle=1`)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`Job has already finished for job ${id}`),
    });
    expect((await shell(`scontrol update JobId=${id} ArrayTaskThrottle=many`)).stderr).toContain(
      'arraytaskthrottle: "many" is not accepted; accepted: a number, 0 for no limit',
    );
    await said(`scancel ${single}`);
  });

  it('shows pending elements of an array that are alike in one line, or each with -r', async () => {
    const id = await said('sbatch --parsable -H -a 1-3,5,7-8%2 --wrap true');
    const first = Number(id);
    expect(await said(`squeue -h -o '%i %A %K %t %r' -j ${id}`)).toBe(
      `${id}_[1-3,5,7-8%2] ${id} 1-3,5,7-8%2 PD JobHeldUser`,
    );
    expect(await said(`squeue -h -r -o '%i %A %K' -j ${id}`)).toBe(
      [1, 2, 3, 5, 7, 8].map((index, place) => `${id}_${index} ${first + place} ${index}`).join('\n'),
    );
    await said(`scontrol update JobId=${id}_5 Nice=7`);
    expect(await said(`squeue -h -o '%i %y' -j ${id}`)).toBe(`${id}_[1-3,7-8%2] 0\n${id}_5 7`);
    expect(await said(`squeue -h -o '%i' -j ${id}`)).toBe(`${id}_[1-3,5,7-8%2]`);
    await said(`scancel ${id}`);
    const odd = await said('sbatch --parsable -H -a 0-200:2 --wrap true');
    expect(await said(`squeue -h -o %i -j ${odd}`)).toMatch(
      new RegExp(`^${odd}_\\[0,2,4,.{58}\\.\\.\\.\\]$`),
    );
    await said(`scancel ${odd}`);
  });

  it('starts the components of a heterogeneous job together, and the script on the first', async () => {
    const told =
      '$SLURM_HET_SIZE $SLURM_JOB_NUM_NODES_HET_GROUP_0 $SLURM_JOB_NODELIST_HET_GROUP_1 $SWITCHYARD_TASKS';
    script('het.sh', '#SBATCH --mem=10M', '#SBATCH hetjob', '#SBATCH --mem=20M', `echo ${told}`);
    const host = (await said('sinfo -h -N -o %N')).split('\n')[0]!;
    await said('sbatch -Q -W -o het.txt het.sh');
    expect(file('het.txt')).toBe(`2 1 ${host} 2\n`);
    await said("sbatch -Q -W -o parts.txt --mem=5M : --mem=6M --wrap 'echo $SLURM_HET_SIZE'");
    expect(file('parts.txt')).toBe('2\n');
  });

  it('waits for other jobs, and is cancelled with what cannot come', async () => {
    const first = await said("sbatch --parsable -H --wrap 'exit 1'");
    const [ok, bad] = [
      await said(`sbatch --parsable -d afterok:${first} --wrap true`),
      await said(`sbatch --parsable -d afternotok:${first} --wrap true`),
    ];
    expect(await said(`squeue -h -o '%i %t %r' -j ${first},${ok}`)).toBe(
      `${first} PD JobHeldUser\n${ok} PD Dependency`,
    );
    await said(`scontrol release ${first}`);
    await until(
      () => said(`sacct -Xn -P -o state -j ${ok},${bad}`),
      (states) => states === 'CANCELLED\nCOMPLETED',
    );
  });

  it('waits for earlier jobs of its name, and runs when they are gone', async () => {
    const first = await said('sbatch --parsable -H -J alone --wrap true');
    const other = await said('sbatch --parsable -W -J another -d singleton --wrap true');
    const second = await said('sbatch --parsable -J alone -d singleton --wrap true');
    expect(await said(`squeue -h -o %T,%r -j ${second}`)).toBe('PENDING,Dependency');
    await said(`scancel ${first}`);
    await until(
      () => said(`sacct -n -X -o State -j ${second}`),
      (state) => state.trim() === 'COMPLETED',
    );
    expect((await said(`sacct -n -X -o State -j ${other}`)).trim()).toBe('COMPLETED');
  });

  it('waits for all elements of an array by its number, or each for its own', async () => {
    const array = await said("sbatch --parsable -H -a 1-2 --wrap 'test $SLURM_ARRAY_TASK_ID = 1'");
    const all = await said(`sbatch --parsable -d afterok:${array} --wrap true`);
    const each = await said(`sbatch --parsable -a 1-2 -d aftercorr:${array} --wrap true`);
    await said(`scontrol release ${array}`);
    await until(
      () => said(`sacct -Xn -P -o state -j ${all},${each}`),
      (states) => states === 'CANCELLED\nCOMPLETED\nCANCELLED',
    );
    expect((await shell('sbatch -d afterok:999999 --wrap true')).stderr).toContain('Job dependency problem');
  });

  it('says in Slurm’s words what is wrong', async () => {
    script('wrong.sh', '#SBATCH --tiem=5');
    writeFileSync(join(here, 'bare.sh'), 'echo\n');
    for (const [line, words] of [
      ['sbatch wrong.sh', 'sbatch: error: line 2: #SBATCH --tiem=5: unknown option --tiem'],
      ['sbatch bare.sh', 'sbatch: error: This does not look like a batch script.'],
      ['sbatch none.sh', 'sbatch: error: Unable to open file none.sh'],
      ['sbatch -p nowhere run.sh', 'sbatch: error: invalid partition specified: nowhere'],
      [
        'sbatch -c 90000 run.sh',
        'sbatch: error: Batch job submission failed: Requested node configuration is not available',
      ],
      ['squeue -j 999999', 'squeue: error: Invalid job id specified'],
      [
        'salloc -n 4',
        'salloc: error: an allocation with a shell requires a terminal on standard input and output: give a command (`salloc COMMAND`)',
      ],
      [
        'SWITCHYARD_URL=http://127.0.0.1:1/graphql squeue',
        'squeue: error: Unable to contact slurm controller (connect failure)',
      ],
    ] as const) {
      const { code, stdout, stderr } = await shell(line);
      expect([line, code, stdout]).toEqual([line, 1, '']);
      expect(stderr).toContain(words);
    }
    const mem = await shell('sbatch --mem=lots run.sh');
    expect([mem.code, mem.stderr]).toEqual([
      255,
      expect.stringMatching(/^sbatch: error: Invalid --mem specification: .*"lots" is not accepted/),
    ]);
    const warned = await shell('sbatch -H --profile=all --profile=none --contiguous --wrap true');
    expect(warned).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^sbatch: warning: --profile: .*\nsbatch: warning: --contiguous: .*\n$/),
    });
  });

  it('keeps others off the machine of an exclusive job, which starts where nothing runs', async () => {
    script(
      'alone.sh',
      '#SBATCH --exclusive --mem-per-cpu=20M -c 2',
      'while [ ! -e go ]; do sleep 0.05; done',
    );
    const first = await said("sbatch --parsable --wrap 'while [ ! -e first ]; do sleep 0.05; done'");
    await until(
      () => said(`squeue -h -o %T -j ${first}`),
      (state) => state === 'RUNNING',
    );
    const alone = await said('sbatch --parsable alone.sh');
    const states = `squeue -h -o '%T %h' -j ${first},${alone} | sort`;
    const shown = await said(`scontrol show job ${alone}`);
    expect(shown).toContain('OverSubscribe=NO ');
    expect(shown).toContain('MinMemoryNode=40M ');
    await until(
      () => said(`scontrol show job ${alone}`),
      (text) => text.includes('Reason=Resources'),
    );
    expect(await said(states)).toBe('PENDING NO\nRUNNING OK');
    writeFileSync(join(here, 'first'), '');
    await until(
      () => said(`squeue -h -o %T -j ${alone}`),
      (state) => state === 'RUNNING',
    );
    const last = await said('sbatch --parsable --wrap true');
    await until(
      () => said(`scontrol show job ${last}`),
      (text) => text.includes('Reason=Resources'),
    );
    expect(await said(`squeue -h -o '%T %C' -j ${last},${alone} | sort`)).toBe('PENDING 1\nRUNNING 2');
    writeFileSync(join(here, 'go'), '');
    await until(
      () => said(`sacct -Xn -P -o state -j ${alone},${last}`),
      (text) => text === 'COMPLETED\nCOMPLETED',
    );
    const own = await said('sbatch --parsable --exclusive=user --wrap true');
    expect(await said(`scontrol show job ${own}`)).toContain('OverSubscribe=USER ');
    for (const [line, words] of [
      ['sbatch --exclusive=mcs --wrap true', '--exclusive: "mcs" is not accepted; accepted: no value'],
      ['sbatch -N 2 --wrap true', 'tasksPerMachine: 2 tasks with exactly 1 on each machine can never run'],
    ] as const)
      expect((await shell(line)).stderr).toContain(words);
  });

  it('tells when and where it would start', async () => {
    const { code, stdout, stderr } = await shell('sbatch --test-only run.sh');
    expect([code, stdout]).toEqual([0, '']);
    expect(stderr).toMatch(
      /^sbatch: Job 0 to start at \S+T\S+ using 1 processors on nodes \S+ in partition local\n$/,
    );
  });
});

describe('srun', () => {
  it('outside a job waits for one, streams its output and gives its exit code', async () => {
    const ran = await shell("srun -Q sh -c 'echo out; echo trouble >&2; exit 5'");
    expect(ran).toMatchObject({ code: 5, stdout: 'out\n' });
    expect(ran.stderr).toContain('trouble\n');
  });

  it('in a job starts tasks, each with its number', async () => {
    script(
      'step.sh',
      '#SBATCH -n 2 -o step.txt',
      `PATH=${bin}:$PATH`,
      "srun -l --cpu-bind=q sh -c 'echo task $SLURM_PROCID of $SLURM_NTASKS; exit $SLURM_PROCID' 2>/dev/null",
      'echo code $?',
      'srun -n1 -o step-%t.txt echo one',
    );
    // As many CPUs as tasks, which a small machine may not have.
    const ran = await shell('sbatch -W -n 1 step.sh');
    expect(ran.code).toBe(0);
    expect(file('step.txt')).toBe('0: task 0 of 1\ncode 0\n');
    expect(file('step-0.txt')).toBe('one\n');
    const both = await shell(
      `SWITCHYARD_JOB_ID=job_1 SLURM_NTASKS=2 srun sh -c 'echo $SLURM_PROCID; exit $SLURM_PROCID'`,
    );
    expect([both.code, both.stdout.split('\n').sort()]).toEqual([1, ['', '0', '1']]);
  });
});

describe('salloc', () => {
  it('runs a command once where the allocation is, in which srun runs steps', async () => {
    const command = 'echo "$SLURM_NTASKS $SLURM_JOB_ID"; srun echo "step of $SLURM_JOB_ID"; exit 4';
    const { code, stdout, stderr } = await shell(`salloc -n 1 bash -c '${command}'`);
    const [, id] = /^salloc: Granted job allocation (\d+)$/m.exec(stderr) ?? [];
    expect([code, stdout]).toEqual([4, `1 ${id}\nstep of ${id}\n`]);
    expect(stderr).toBe(
      [
        `salloc: Pending job allocation ${id}`,
        `salloc: job ${id} queued and waiting for resources`,
        `salloc: Granted job allocation ${id}`,
        `salloc: Relinquishing job allocation ${id}\n`,
      ].join('\n'),
    );
    expect(await shell('salloc -Q true')).toMatchObject({ code: 0, stderr: '' });
  });
});

describe('control', () => {
  it('jobs are held, released, cancelled and shown', async () => {
    const id = await said("sbatch --parsable -H -J held --wrap 'sleep 600'");
    expect(await said(`scontrol -o show job ${id}`)).toMatch(
      new RegExp(`^JobId=${id} JobName=held .* JobState=PENDING Reason=JobHeldUser .* WorkDir=${here}$`),
    );
    const before = await said('sbatch --parsable --wrap true');
    await said(
      `scontrol update JobId=${id} TimeLimit=2:00:00 JobName=changed NumCPUs=1 MinMemoryNode=64 Dependency=afterany:${before} StartTime=now Nice=5 Requeue=0`,
    );
    expect(await said(`scontrol -o show job ${id}`)).toMatch(
      /JobName=changed .* Requeue=0 .*TimeLimit=02:00:00/,
    );
    expect(await said(`squeue -h -j ${id} -o '%l %m %j'`)).toBe('2:00:00 64M changed');
    await said(`scontrol update JobId=${id} CPUsPerTask=2`);
    await said(`scontrol update JobId=${id} MinMemoryCPU=16`);
    expect(await said(`squeue -h -j ${id} -o %m`)).toBe('32M');
    await said(`scontrol update JobId=${id} OverSubscribe=USER`);
    expect(await said(`scontrol show job ${id}`)).toContain('OverSubscribe=USER ');
    await said(`scontrol update JobId=${id} OverSubscribe=YES`);
    expect(await said(`scontrol show job ${id}`)).toContain('OverSubscribe=OK ');
    // It has no devices, which is no change; the machine has none, either way of asking.
    await said(`scontrol update JobId=${id} Gres=none`);
    for (const [gres, field] of [
      ['gpu:2', 'resourcesPerTask'],
      ['gpu:2:mem=40G', 'devicesPerTask[0].kind'],
    ])
      expect((await shell(`scontrol update JobId=${id} Gres=${gres}`)).stderr).toContain(
        `set.${field}: "gpu" is not accepted`,
      );
    await said(`scontrol update job ${id} timelimit=UNLIMITED name=held dependency= requeue=1`);
    expect(await said(`squeue -h -j ${id} -o '%l %j'`)).toBe('UNLIMITED held');
    const refused = await shell(`scontrol update JobId=${id} Partition=x`);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining('partition cannot be changed here'),
    ]);
    await said(`scontrol release ${id}`);
    await until(
      () => said(`squeue -h -j ${id} -o %T`),
      (state) => state === 'RUNNING',
    );
    expect(await said(`squeue -h -j ${id} -o '%T %B'`)).toMatch(/^RUNNING \S+$/);
    expect((await shell('scontrol write batch_script 99999')).stderr).toContain('Invalid job id specified');
    expect((await shell(`scontrol write script ${id}`)).stderr).toContain('accepted: batch_script');
    await said(`scontrol requeue ${id}`);
    await until(
      () => said(`scontrol -o show job ${id}`),
      (shown) => shown.includes('JobState=RUNNING') && shown.includes('Restarts=1'),
    );
    await said(`scancel --name=held -u ada`);
    await until(
      () => said(`squeue -h -t all --format='%i|%T' --name held`),
      (line) => line === `${id}|CANCELLED`,
    );
    expect(await said(`sacct -n -j ${id} --format JobIDRaw,State,ExitCode -P -S 1970-01-01 -X`)).toBe(
      `${id}|CANCELLED|0:0`,
    );
  });

  it('running jobs are sent signals: what a script has started, the script, or both', async () => {
    script(
      'signals.sh',
      '#SBATCH -o signals.txt -e /dev/null',
      'says() { trap "echo $1 USR1" USR1; trap "echo $1 HUP" HUP; : >is-$1; until [ -e signals.end ]; do sleep 0.05; done; }',
      '(says step) &',
      'says script',
      'wait',
      'echo over',
    );
    const id = await said('sbatch --parsable signals.sh');
    const waits = await said('sbatch --parsable -H --wrap true');
    await until(
      async () => ['is-step', 'is-script'].every((name) => existsSync(join(here, name))),
      (isThere) => isThere,
    );
    const lines = async () => file('signals.txt').trim().split('\n').filter(Boolean).sort();
    const sends = async (line: string, ...expected: string[]) => {
      await said(line);
      expect(await until(lines, (all) => all.length >= expected.length)).toEqual(expected);
    };
    await sends(`scancel -s USR1 ${id}`, 'step USR1');
    await sends(`scancel --batch --signal=SIGHUP ${id}`, 'script HUP', 'step USR1');
    // By what they match; those that wait are none of them.
    await sends(`scancel -f -s 1 -u ada`, 'script HUP', 'script HUP', 'step HUP', 'step USR1');
    expect(await shell(`scancel -s USR1 ${waits}`)).toEqual({
      ...{ code: 1, stdout: '' },
      stderr: expect.stringContaining(`job_${waits} is HELD: signals are sent only to jobs that run`),
    });
    expect((await shell(`scancel -s WINCH ${id}`)).stderr).toContain(
      '--signal: "WINCH" is not accepted; accepted: SIGTERM, SIGHUP, ',
    );
    expect(await said(`sacct -X -n -P -o state -j ${waits}`)).toBe('PENDING');
    expect(await service.cli('signal', 'KILL', id)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('KILL ends jobs: use `switchyard cancel`'),
    });
    expect(await service.cli('signal', 'usr1', `job_${id}`, '--to', 'command')).toMatchObject({
      ...{ code: 0, stdout: '1 job signaled\n' },
    });
    await until(lines, (all) => all.includes('script USR1'));
    writeFileSync(join(here, 'signals.end'), '');
    await until(
      () => said(`sacct -X -n -P -o state -j ${id}`),
      (state) => state === 'COMPLETED',
    );
    // A run outside of a script is what a step is; one that does not handle the signal ends.
    const step = shell('srun -Q -J signaled sleep 600');
    await until(
      () => said('squeue -h -o %T -n signaled'),
      (state) => state === 'RUNNING',
    );
    await said('scancel -s INT -n signaled');
    expect(await step).toMatchObject({ code: 130 });
    await said(`scancel ${waits}`);
  });

  it('what waits is sorted, and told by its expected start, node and QOS', async () => {
    const [slow, quick] = [
      await said("sbatch --parsable -H -t 2-0 -J slow --wrap 'sleep 1'"),
      await said("sbatch --parsable -H -t 30 -J quick --wrap 'sleep 1'"),
    ];
    const of = `-j ${slow},${quick}`;
    expect(await said(`squeue -h -o %i -S l ${of}`)).toBe(`${quick}\n${slow}`);
    expect(await said(`squeue -h -o %i --sort=-l,i ${of}`)).toBe(`${slow}\n${quick}`);
    expect(await said(`squeue -h -o %i -S j ${of}`)).toBe(`${quick}\n${slow}`);
    expect(await shell(`squeue -S ! ${of}`)).toMatchObject({ code: 0 });
    expect((await shell(`squeue -S E7 ${of}`)).stderr).toMatch(/Invalid sort specification: 7; accepted: aA/);
    expect(await said(`squeue -h -o %i -q normal ${of}`)).toBe(`${slow}\n${quick}`);
    expect(await said(`squeue -h -o %i -q other ${of}`)).toBe('');
    expect(await said(`squeue -h -o %i -w nowhere ${of}`)).toBe('');
    // Those that are held start nobody knows when.
    const starts = await said(`squeue --start ${of}`);
    expect(starts).toMatch(/^ +JOBID PARTITION .* START_TIME +NODES +SCHEDNODES NODELIST\(REASON\)\n/);
    expect(starts).toMatch(new RegExp(`^ +${slow} .* N/A +1 +N/A \\(JobHeldUser\\)$`, 'm'));
    const behind = await said("sbatch --parsable --exclusive -t 5 --wrap 'sleep 60'");
    const next = await said('sbatch --parsable --exclusive -t 5 --wrap true');
    await until(
      () => said(`squeue -h -t R -o %i -j ${behind}`),
      (running) => running === behind,
    );
    expect(await said(`squeue -h --start -o '%i %S' -j ${next}`)).toMatch(
      new RegExp(`^${next} \\d{4}-\\d\\d-\\d\\dT`),
    );
    const node = await said(`squeue -h -o %N -j ${behind}`);
    expect(await said(`squeue -h -o %i -w ${node}`)).toBe(behind);
    expect(await said(`squeue -s -h -j ${behind}`)).toMatch(new RegExp(`^ +${behind}.batch `));
    await said(`scancel -w ${node}`);
    await said(`scancel ${slow} ${quick} ${next}`);
  });

  it('sstat asks the agent what a job uses while it runs', async () => {
    const id = await said(
      'sbatch --parsable -t 5 --wrap \'x=$(head -c 30000000 /dev/zero | tr "\\0" x); while :; do :; done\'',
    );
    const used = await until(
      () => said(`sstat -n -P -j ${id} -o JobID,MaxRSS,AveRSS,AveCPU,MinCPU,AveVMSize,NTasks,NCPUS`),
      (line) => /\|\d{5,}K\|.*\|(?!00:00:00)[\d:]{8}\|/.test(line),
    );
    const [job, most, mean, cpu, least, size, ...counts] = used.split('|');
    expect([job, mean, least, size, counts]).toEqual([`${id}.batch`, most, cpu, '', ['1', '1']]);
    // The same by the command of our own.
    expect((await service.cli('job', id)).stdout).toMatch(/ \d[\d.]*s +- .* \d{2,} MB/);
    await said(`scancel ${id}`);
    await until(
      () => said(`sacct -X -n -P -j ${id} -o State`),
      (state) => state.startsWith('CANCELLED'),
    );
    // What has ended is no job of sstat's.
    expect(await shell(`sstat -n -P -j ${id} -o JobID,MaxRSS`)).toMatchObject({ code: 0, stdout: '' });
  });

  it('keeps what stands between fields, in lines and header, as Slurm does', async () => {
    const id = await said('sbatch --parsable -H -J constants --wrap true');
    const shown = (format: string) => said(`squeue -j ${id} -o '${format}'`);
    expect(await shown('job=%i state=%T.')).toBe(`job=JOBID state=STATE.\njob=${id} state=PENDING.`);
    expect(await shown('[%.12i] %5t|%.3T 100%%')).toBe(
      `[${'JOBID'.padStart(12)}] ST   |STA 100%\n[${id.padStart(12)}] PD   |PEN 100%`,
    );
    expect(await shown('a line')).toBe('a line\na line');
    expect(await said(`sprio -h -j ${id} -o '%i of %u'`)).toBe(`${id} of admin`);
    expect(await said("sinfo -h -o 'site %P has %D'")).toBe('site local* has 1');
    await said(`scancel ${id}`);
  });

  it('accounts in the unit that is asked for, between times', async () => {
    const id = await said('sbatch --parsable -W --mem=2048M --wrap true');
    const reqmem = (words: string) => said(`sacct -X -n -P -o reqmem ${words} -j ${id}`);
    expect(await reqmem('')).toBe('2048M');
    expect(await reqmem('--units=G')).toBe('2G');
    expect(await reqmem('--units K')).toBe('2097152K');
    expect(await reqmem('--units=G --noconvert')).toBe('2048M');
    expect((await shell(`sacct --units=X -j ${id}`)).stderr).toMatch(/Invalid --units: X; accepted: K, M/);
    expect(await said(`sacct -b -n -P -X -j ${id}`)).toBe(`${id}|COMPLETED|0:0`);
    expect(await said(`sacct -X -n -P -o end -T -E 2099-01-01 -j ${id}`)).not.toMatch(/2099/);
    expect(await said(`sacct -X -n -P -o start -T -S 2098-01-01 -j ${id}`)).toBe('2098-01-01T00:00:00');
    expect(await said(`sacct -n -X -o jobid -u somebody -j ${id}`)).toBe('');
    expect(await said('sacct -e')).toMatch(/\bReqMem\n/);
  });

  it('sites are partitions', async () => {
    expect(await said("sinfo -a -o '%P %G %l %p %c %m'")).toMatch(
      /^PARTITION GRES TIMELIMIT p CPUS MEMORY\nlocal\* \(null\) infinite N\/A \d+ \d+$/,
    );
    expect(await said('sinfo --version')).toMatch(/^slurm \d/);
    expect(await said('sinfo -l')).toMatch(/^PARTITION AVAIL +TIMELIMIT +JOB_SIZE ROOT OVERSUBS /);
    expect(await said('sinfo -R')).toMatch(/^REASON +USER +TIMESTAMP +NODELIST$/);
    expect(await said('sinfo -h -d')).toBe('');
    expect(await said('sinfo -aho %F/%C')).toMatch(/^\d\/\d\/0\/1\/\d+\/\d+\/0\/\d+$/);
    expect(await said('scontrol show partition -o')).toContain('PartitionName=local');
    expect(await service.cli('sites', 'set', 'local', '--max-limit', '2h')).toMatchObject({ code: 0 });
    expect(await said('sinfo -ho %l')).toBe('2:00:00');
    expect(await said('scontrol show partition -o')).toMatch(/ MaxTime=0?2:00:00 DefaultTime=0?2:00:00 /);
    expect(await service.cli('sites', 'set', 'local', '--max-limit', 'none')).toMatchObject({ code: 0 });
    expect(await said('sinfo -ho %l')).toBe('infinite');
    expect(await said('scontrol show reservation')).toBe('No reservations in the system');
    const done = async (...words: string[]) =>
      expect(await service.cli(...words)).toMatchObject({ code: 0, stderr: '' });
    await done('resources', 'add', 'matlab', '--amount', '5');
    const held = ['--shared', 'matlab=2', '--from', '+1d', '--for', '1h'];
    await done('reserve', 'add', 'local', '--tasks', '1', '--cpus', '1', '--name', 'exam', ...held);
    await done('maintenance', 'add', 'local', '--name', 'server', ...held);
    const [exam = '', server = ''] = ['exam', 'server'].map((name) => `ReservationName=${name} `);
    const shown = await said('scontrol show reservation -o');
    expect(shown.split('\n').find((line) => line.startsWith(exam))).toMatch(
      /NodeCnt=1 CoreCnt=1 .* Flags=SPEC_NODES TRES=cpu=1,license\/matlab=2 Users=\S+ Accounts=\(null\) Licenses=matlab:2 /,
    );
    expect(shown.split('\n').find((line) => line.startsWith(server))).toMatch(
      /Nodes=\(null\) NodeCnt=0 CoreCnt=0 .* Flags=MAINT,ANY_NODES TRES=license\/matlab=2 .* Licenses=matlab:2 /,
    );
    await done('maintenance', 'set', 'server', '--shared', 'matlab=3');
    expect(await said('scontrol show reservation server')).toContain(' Licenses=matlab:3 ');
    for (const [group, name] of [
      ['maintenance', 'server'],
      ['reserve', 'exam'],
    ] as const)
      await done(group, 'cancel', name);
    await done('resources', 'remove', 'matlab');
    expect(await said('scontrol show config')).toMatch(/MaxArraySize +=/);
    expect(await said("scontrol show hostnames 'n[01-03],x'")).toBe('n01\nn02\nn03\nx');
  });

  it('the one account is there', async () => {
    expect((await said('sacctmgr -n -s list user "ada" format=account%20')).trim()).toBe('default');
    expect((await said('sshare -U --format Account%256 --noheader')).trim()).toBe('default');
    expect(
      await said('sacctmgr -nP show users withassoc format=account,cluster,partition,qos where user=ada'),
    ).toBe('default|switchyard||normal');
  });

  it('QOS are the classes of jobs of the policy', async () => {
    const { document } = await service.json<{ document: object }>('policy');
    const classes = { low: { scavenger: true, charged: false, graceS: 90, onPreemption: 'CANCEL' } };
    const file = join(home, 'classes.json');
    writeFileSync(file, JSON.stringify({ ...document, classes }));
    expect(await service.cli('policy', 'set', file, '--reason', 'classes')).toMatchObject({ code: 0 });
    expect(await shell('sbatch -H --qos=high --wrap true')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('--qos: "high" is not accepted; accepted: low'),
    });
    const id = (await said('sbatch -H --parsable --qos=low --wrap true')).trim();
    expect(await said(`squeue -h -j ${id} -o '%q'`)).toBe('low');
    expect(await said(`scontrol show job ${id}`)).toContain('QOS=low');
    expect(await said(`sacct -nP -X -j ${id} -o qos`)).toBe('low');
    expect(await said('squeue -h -t PD -q low -o %i')).toBe(id);
    await said(`scontrol update JobId=${id} QOS=normal`);
    expect(await said(`squeue -h -j ${id} -o '%q'`)).toBe('normal');
    expect((await shell(`scontrol update JobId=${id} QOS=high`)).stderr).toContain(
      'class: "high" is not accepted; accepted: low',
    );
    await said(`scontrol update JobId=${id} qos=low`);
    expect(await said(`squeue -h -j ${id} -o '%q'`)).toBe('low');
    expect((await service.cli('jobs', '--class', 'low')).stdout).toMatch(
      new RegExp(`^job_${id} +HELD +.* low `, 'm'),
    );
    expect(await service.cli('change', `job_${id}`, '--clear', 'class')).toMatchObject({ code: 0 });
    expect((await service.cli('jobs', '--class', 'low')).stdout).not.toContain(`job_${id}`);
    expect(await service.cli('change', `job_${id}`, '--to-class', 'low')).toMatchObject({ code: 0 });
    const plain = (await said('sbatch -H --parsable --qos=normal --wrap true')).trim();
    expect(await said(`squeue -h -j ${plain} -o '%q'`)).toBe('normal');
    expect(await said('sacctmgr -nP show qos format=name,gracetime,preemptmode')).toBe(
      'normal||\nlow|00:01:30|cancel',
    );
    expect((await service.cli('classes')).stdout).toMatch(/^low +scavenger +yes .* CANCEL +no +1 +0$/m);
    expect((await service.cli('job', `job_${id}`)).stdout).toMatch(/class +low/);
    await said(`scancel ${id} ${plain}`);
  });
});

/** As the sources of the clients have them (docs/slurm-users.md), with what they read from the answer. */
describe('calls of clients', () => {
  let id: string;
  beforeAll(async () => {
    id = await said('sbatch --parsable -W -J client -o /dev/null --wrap true');
  });

  it.each([
    [
      'Snakemake 8',
      'sacct -X --parsable2 --clusters all --noheader --format=JobIdRaw,State --starttime now-1day --endtime now --name client',
      /^\d+\|COMPLETED$/,
    ],
    ['Nextflow', "squeue --noheader -o '%i %t' -t all -u ada", /^\d+ CD$/m],
    ['Parsl', "sacct -X --noheader --format=jobid,state%20 --job 'ID'", /^\d+ +COMPLETED $/],
    [
      'submitit',
      'sacct -o JobID,State,NodeList --parsable2 -j ID',
      /^JobID\|State\|NodeList\n\d+\|COMPLETED\|\S+\n\d+\.batch\|COMPLETED\|/,
    ],
    ['batchspawner', "squeue -h -j ID -o '%T %B'", /^$/],
    ['PSI/J', 'squeue --me -o %i -h -r -t all', /^\d+$/m],
    ['DIRAC', 'sacct -j ID -o JobID,STATE -X -n -P --delimiter=,', /^\d+,COMPLETED$/],
    ['HTCondor', "squeue -t all -o '%i %T'", /^JOBID STATE\n/],
    ['ARC', 'squeue -a -h -o %i:%T -t all -j ID', /^\d+:COMPLETED$/],
    ['ARC', 'sacct -j ID.batch -o ExitCode -P', /^ExitCode\n0:0/],
    ['Galaxy', "squeue -a -t all -o '%A %t' -j ID", /^JOBID ST\n\d+ CD$/],
    [
      'Open OnDemand',
      "squeue --all --states=all --noconvert -O 'JobID:\\x1F,State:\\x1F,tres-per-node:\\x1F' -j ID",
      /\d+\\x1FCOMPLETED\\x1FN\/A\\x1F/,
    ],
    ['Toil', "squeue -h --format '%i %t %M' -t all", /^\d+ CD 0:\d\d$/m],
    ['people', 'seff ID', /^Job ID: \d+\n[\s\S]*State: COMPLETED \(exit code 0\)/],
  ])('of %s: %s', async (_, line, answer) => {
    const { stderr, stdout, code } = await shell(line.replace(/\bID\b/, id));
    expect([code, stderr.replace(/.*: has no effect\n/g, '')]).toEqual([0, '']);
    expect(stdout.trim()).toMatch(
      answer instanceof RegExp ? new RegExp(answer.source.replace(/ \$$/, '$'), answer.flags) : answer,
    );
  });

  it('as JSON are the fields that exist, in the shapes of data_parser v0.0.40, and say the same as text', async () => {
    const json = async (line: string) => JSON.parse(await said(line));
    const success = { status: ['SUCCESS'], return_code: { set: true, infinite: false, number: 0 } };
    const [elapsed, submit, node] = (
      await said(`sacct -X -n -P -o elapsedraw,submit,nodelist -j ${id}`)
    ).split('|');
    const submitted = Math.floor(Date.parse(submit!) / 1000);
    expect(await json(`squeue --json -t all -j ${id}`)).toMatchObject({
      meta: { plugin: { data_parser: 'data_parser/v0.0.40' }, slurm: { cluster: 'switchyard' } },
      jobs: [
        {
          ...{ job_id: Number(id), job_state: ['COMPLETED'], name: 'client', exit_code: success },
          ...{ nodes: node, node_count: { set: true, number: 1 }, batch_host: node, hold: false },
          submit_time: { set: true, number: submitted },
          time_limit: { infinite: true },
        },
      ],
      ...{ errors: [], warnings: [] },
    });
    const cpu = { type: 'cpu', name: '', id: 1, count: 1 };
    expect(await json(`sacct --json -j ${id}`)).toMatchObject({
      jobs: [
        {
          ...{ job_id: Number(id), name: 'client', exit_code: success, nodes: node, allocation_nodes: 1 },
          state: { current: ['COMPLETED'], reason: 'None' },
          time: { elapsed: Number(elapsed), submission: submitted, limit: { infinite: true } },
          required: { CPUs: 1 },
          tres: { allocated: expect.arrayContaining([cpu]), requested: expect.arrayContaining([cpu]) },
          steps: [
            {
              ...{ step: { id: `${id}.batch`, name: 'batch' }, state: ['COMPLETED'], tasks: { count: 1 } },
              nodes: { count: 1, range: node, list: [node] },
            },
          ],
        },
      ],
    });
    const [used, idle, other, total] = (await said("sinfo -h -o '%C'")).split('/').map(Number);
    expect(await json('sinfo --json')).toMatchObject({
      sinfo: [
        {
          cpus: { allocated: used, idle, other, total, minimum: total, maximum: total },
          nodes: { total: 1, nodes: [node] },
          node: { state: [(await said('sinfo -h -o %T')).toUpperCase()] },
          partition: { name: 'local', partition: { state: ['UP'] } },
        },
      ],
    });
  });

  it('as JSON tell of jobs that wait, and of arrays', async () => {
    const array = Number(await said('sbatch --parsable -H -t 90 --mem 20M -a 3-4 --wrap true'));
    const { jobs } = JSON.parse(await said(`squeue --json -j ${array}_4`));
    expect(jobs).toMatchObject([
      {
        ...{ job_id: array + 1, job_state: ['PENDING'], state_reason: 'JobHeldUser', hold: true, nodes: '' },
        ...{ array_job_id: { number: array }, array_task_id: { set: true, number: 4 } },
        ...{ time_limit: { set: true, number: 90 }, memory_per_node: { set: true, number: 20 } },
        ...{ exit_code: { status: ['PENDING'] }, start_time: { number: 0 } },
      },
    ]);
    const accounted = JSON.parse(await said(`sacct --json -j ${array}_4`)).jobs;
    expect(accounted).toMatchObject([
      {
        array: { job_id: array, task_id: { number: 4 } },
        steps: [],
        tres: { allocated: [] },
        time: { start: 0 },
      },
    ]);
    await said(`scancel ${array}`);
  });
});

it('lines of tutorials are accepted, or refused with a helpful word', async () => {
  const id = await said('sbatch --parsable -H --wrap true');
  const array = await said('sbatch --parsable -H -a 1-3 --wrap true');
  const spare = await said('sbatch --parsable -H --wrap true');
  const node = await said('sinfo -h -o %n');
  const partition = (await said('sinfo -h -o %R')).split('\n')[0]!;
  // Tutorials are written for clusters that have some.
  await said(
    `"${process.execPath}" ${packagePath('bin', 'switchyard.js')} machines set ${node} --resource gpu=4`,
  );
  script('run.sh', 'true');
  const noReservation = 'is not accepted; accepted: name or id of a reservation that has not ended';
  const refused: string[] = [];
  let lines = 0;
  for (const written of Object.values(TUTORIALS).flat()) {
    lines++;
    const line = written
      .replace(/\bID\b/, id)
      .replace('ARRAY_1', `${array}_1`)
      .replace(/\bARRAY\b/, array)
      .replace('NODE', node)
      .replace('PART', partition)
      .replace('DONE', spare)
      .replace('FILE', 'run.sh')
      .replace('a.out', 'true');
    // Held: what is submitted is to be understood, not to run.
    if (line.startsWith('#')) script('line.sh', line);
    const asked = line.startsWith('#') ? 'sbatch -H line.sh' : line.replace(/^sbatch/, 'sbatch -H');
    const { code, stderr } = await shell(asked);
    // A small machine does not have 6 GB: that was understood.
    if (code === 0 || stderr.includes('Requested node configuration is not available')) continue;
    refused.push(`${written}: ${/error: .*/.exec(stderr)?.[0] ?? stderr}`);
  }
  expect(lines).toBe(206);
  expect(refused).toEqual([
    '#SBATCH --partition=intel: error: invalid partition specified: intel',
    '#SBATCH -p normal_q: error: invalid partition specified: normal_q',
    '#SBATCH --gres=min-cuda-cc:80: error: --gres: "min-cuda-cc" is not accepted; accepted: a kind that a machine in service has: gpu',
    `#SBATCH --reservation=bootcamp: error: --reservation: "bootcamp" ${noReservation}`,
    'scontrol show lic=mdcs: error: License mdcs not found',
    expect.stringContaining(
      '--pty true: error: --jobid: a running job cannot be joined from outside: run srun in its script',
    ),
    `sbatch --reservation=bootcamp1 FILE: error: --reservation: "bootcamp1" ${noReservation}`,
    '#SBATCH -p batch: error: invalid partition specified: batch',
    '#SBATCH -p gpu: error: invalid partition specified: gpu',
    `#SBATCH --reservation=hpcschool: error: --reservation: "hpcschool" ${noReservation}`,
    '#SBATCH --Nodes 1: error: line 2: #SBATCH --Nodes 1: unknown option --Nodes',
    expect.stringContaining(`error: --reservation: "hpcschool-gpu" ${noReservation}`),
  ]);
});

it('links are put where nothing else is, all or none', async () => {
  writeFileSync(join(home, 'squeue'), 'mine');
  const install = (dir: string) =>
    execFileSync(process.execPath, [packagePath('bin', 'switchyard.js'), 'slurm', 'install', dir], {
      stdio: 'pipe',
    });
  expect(() => install(home)).toThrow('already exists');
  expect(readFileSync(join(home, 'squeue'), 'utf8')).toBe('mine');
  expect(existsSync(join(home, 'sacct'))).toBe(false);
  // As earlier releases made them.
  rmSync(join(bin, 'squeue'));
  symlinkSync(packagePath('dist', 'slurm.mjs'), join(bin, 'squeue'));
  expect(await said('squeue --help')).toContain("squeue works like Slurm's");
  install(bin);
  expect(readlinkSync(join(bin, 'squeue'))).toBe(packagePath('dist', 'slurm', 'squeue.cjs'));
  const names = readdirSync(bin);
  expect(names).toHaveLength(14);
  for (const name of names) expect(await said(`${name} --help`)).toContain(`${name} works like Slurm's`);
});
