/** Steps: `srun` in jobs, on the machines that one agent serves. */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { endAll, launch, type Service, serve, until } from './service.js';
import { commandsOf } from './slurm-commands.js';

const home = mkdtempSync(join(tmpdir(), 'switchyard-slurm-steps-'));
const [here, bin] = [join(home, 'here'), join(home, 'bin')];
let service: Service;
const { shell, said: print } = commandsOf({ bin, here, home, url: () => service.url });

beforeAll(async () => {
  mkdirSync(here);
  service = await serve(home);
  execFileSync(process.execPath, [packagePath('bin', 'switchyard.js'), 'slurm', 'install', bin]);
  const { stdout } = await service.cli('sites', 'add', 'pair', '--agent');
  const [, url, key] = /SWITCHYARD_URL=(\S+) SWITCHYARD_KEY=(\S+)/.exec(stdout)!;
  launch(['agent', '--site', 'pair', '--machines', 'n1,n2'], {
    SWITCHYARD_HOME: join(home, '.pair'),
    SWITCHYARD_URL: url!,
    SWITCHYARD_KEY: key!,
  });
  await until(
    () => service.json<{ site: { name: string }; state: string }[]>('machines'),
    (machines) => machines.filter(({ site }) => site.name === 'pair').length === 2,
  );
});
afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

/** What a script writes whose job has both machines, a CPU of each. */
async function inPair(...lines: string[]): Promise<string> {
  const script = [
    '#!/bin/bash',
    '#SBATCH -N 2 --mem=100M -o out.txt -e err.txt',
    `PATH=${bin}:$PATH`,
    ...lines,
  ];
  writeFileSync(join(here, 'run.sh'), `${script.join('\n')}\n`);
  expect(await shell('sbatch -Q -W run.sh')).toEqual({ code: 0, stdout: '', stderr: '' });
  return readFileSync(join(here, 'out.txt'), 'utf8');
}
const said = (): string => readFileSync(join(here, 'err.txt'), 'utf8');

it('has tasks on all machines of the job, or on as many as it asks for', async () => {
  const told = [
    ...['$SLURM_PROCID', '$SLURM_LOCALID', '$SLURM_NODEID', '$SLURMD_NODENAME', '$SLURM_STEP_ID'],
    ...['$SLURM_NTASKS', '$SLURM_NNODES', '$SLURM_STEP_NODELIST', '$SLURM_STEP_TASKS_PER_NODE'],
  ].join(' ');
  expect(
    await inPair(
      `srun sh -c 'echo "${told}"' | sort`,
      `srun -n 3 sh -c 'echo "${told}"' | sort`,
      `srun -N 1 --ntasks-per-node=2 sh -c 'echo "${told}"' | sort`,
      `srun -n 1 sh -c 'echo "${told}"'`,
    ),
  ).toBe(
    [
      ...['0 0 0 n1 0 2 2 n1,n2 1(x2)', '1 0 1 n2 0 2 2 n1,n2 1(x2)'],
      ...['0 0 0 n1 1 3 2 n1,n2 2,1', '1 1 0 n1 1 3 2 n1,n2 2,1', '2 0 1 n2 1 3 2 n1,n2 2,1'],
      ...['0 0 0 n1 2 2 1 n1 2', '1 1 0 n1 2 2 1 n1 2'],
      '0 0 0 n1 3 1 1 n1 1\n',
    ].join('\n'),
  );
  // As Slurm says it.
  expect(said()).toBe("srun: Warning: can't run 1 processes on 2 nodes, setting nnodes to 1\n");
});

it('labels lines, and writes to one file of all tasks or to one of each', async () => {
  expect(
    await inPair(
      "srun -l sh -c 'echo a; echo b >&2' | sort",
      'srun -o all.txt echo one',
      'srun -o task-%t-%n-%N-%s-%2t.txt echo one',
    ),
  ).toBe('0: a\n1: a\n');
  expect(said().split('\n').sort()).toEqual(['', '0: b', '1: b']);
  expect(readFileSync(join(here, 'all.txt'), 'utf8')).toBe('one\none\n');
  expect(
    readdirSync(here)
      .filter((name) => name.startsWith('task-'))
      .sort(),
  ).toEqual(['task-0-0-n1-2-00.txt', 'task-1-1-n2-2-01.txt']);
});

it('has the highest exit code of its tasks, and ends them all if one fails and that is asked for', async () => {
  expect(
    await inPair(
      "srun sh -c 'exit $((2 * SLURM_PROCID + 3))'; echo $?",
      "srun -K sh -c '[ $SLURM_PROCID = 1 ] && exit 3; exec sleep 600'; echo $?",
      'srun -n 1 -N 1 nosuchprogram; echo $?',
      'srun -N 3 true; echo $?',
    ),
  ).toBe('5\n143\n2\n1\n');
  const [first, second, ...others] = said().split('\n');
  expect([first, second].sort()).toEqual([
    'srun: error: n1: task 0: Exited with exit code 3',
    'srun: error: n2: task 1: Exited with exit code 5',
  ]);
  expect(others).toEqual([
    'srun: error: n2: task 1: Exited with exit code 3',
    'srun: error: n1: task 0: Terminated',
    'slurmstepd-n1: error: execve(): nosuchprogram: No such file or directory',
    'srun: error: n1: task 0: Exited with exit code 2',
    'srun: error: Only allocated 2 nodes asked for 3',
    '',
  ]);
});

it('waits with --exclusive until other steps leave it its CPUs, in the order of their numbers', async () => {
  // Two CPUs: two at once, and one of two CPUs by itself.
  const each = (n: string): string =>
    `srun -N 1 -n 1 ${n} --exclusive sh -c 'echo + >>running; sleep 1; grep -c . running >>most; sed -i 1d running' &`;
  expect(
    await inPair('rm -f running most', ...Array(4).fill(each('')), each('-c 2'), 'wait', 'sort -u most'),
  ).toMatch(/^1\n(2\n)?$/);
  expect(said()).toMatch(
    /^srun: Job \d+ step creation temporarily disabled, retrying \(Requested nodes are busy\)$/m,
  );
});

it('says which machine it cannot reach, on another host', async () => {
  writeFileSync(join(here, 'hosts'), 'one\ntwo\n');
  const env = `SWITCHYARD_JOB_ID=job_1 SLURM_NTASKS=2 SWITCHYARD_MACHINES=a:1,b:1 SWITCHYARD_HOSTFILE=${join(here, 'hosts')}`;
  expect(await shell(`${env} srun true`)).toEqual({
    ...{ code: 1, stdout: '' },
    stderr:
      'srun: error: machine b is on another host (two), where steps cannot be started: use -N 1, launch with mpirun, or submit with `switchyard submit --tasks 2`\n',
  });
  expect(await shell(`${env} srun -N 1 echo here`)).toMatchObject({ code: 0, stdout: 'here\n' });
});

/** The ID of a job with such a script, when it has ended. */
async function ended(options: string, ...lines: string[]): Promise<string> {
  writeFileSync(join(here, 'job.sh'), `${['#!/bin/bash', `PATH=${bin}:$PATH`, ...lines].join('\n')}\n`);
  const { stdout } = await shell(`sbatch --parsable -W -o out.txt --mem=100M ${options} job.sh`);
  return stdout.trim();
}

it('leaves a record of each step, which sacct shows as Slurm does', async () => {
  const id = await ended(
    '-N 2 -J several',
    "echo 'exit $SLURM_PROCID' >one; chmod +x one",
    'srun ./one',
    "srun -n 1 -N 1 -J named sh -c 'exit 3'",
    "srun -n 1 -N 1 -c 1 sh -c 'kill -KILL $$'",
    'srun -n 1 -N 1 --exact sh -c "kill -TERM \\$\\$"',
    'srun -n 1 -N 1 nosuchprogram',
    'srun sleep 600 & sleep 1',
    'srun true',
    // The job ends, and with it the step that goes on.
    'true',
  );
  const fields = 'JobID,JobName,AllocCPUS,NTasks,NNodes,NodeList,State,ExitCode,Partition,User';
  expect(await print(`sacct -n -P -j ${id} -o ${fields}`)).toBe(
    [
      `${id}|several|2||2|n1,n2|COMPLETED|0:0|pair|admin`,
      `${id}.batch|batch|2|2|2|n1,n2|COMPLETED|0:0||`,
      `${id}.0|one|2|2|2|n1,n2|FAILED|1:0||`,
      `${id}.1|named|1|1|1|n1|FAILED|3:0||`,
      `${id}.2|sh|1|1|1|n1|CANCELLED|0:9||`,
      `${id}.3|sh|1|1|1|n1|CANCELLED|0:15||`,
      `${id}.4|nosuchprogram|1|1|1|n1|FAILED|2:0||`,
      `${id}.5|sleep|2|2|2|n1,n2|CANCELLED|0:9||`,
      `${id}.6|true|2|2|2|n1,n2|COMPLETED|0:0||`,
    ].join('\n'),
  );
  expect(await print(`sacct -n -P -X -j ${id} -o JobID,DerivedExitCode`)).toBe(`${id}|3:0`);
  expect(await print(`sacct -n -P -j ${id} -o DerivedExitCode,JobID | head -3`)).toBe(
    `3:0|${id}\n|${id}.batch\n|${id}.0`,
  );
  const rows = (await print(`sacct -j ${id}.0,${id}.2,${id}.9 -o JobID,State`)).split('\n');
  expect(rows.slice(2).map((row) => row.split(/\s+/).slice(0, 2))).toEqual([
    [`${id}.0`, 'FAILED'],
    [`${id}.2`, 'CANCELLED'],
  ]);
  expect(await print(`sacct -n -p -j ${id}.1 -o JobIDRaw,ElapsedRaw`)).toMatch(
    new RegExp(`^${id}\\.1\\|\\d+\\|$`),
  );
  const [from, to, begun, over] = (
    await print(`sacct -n -P -j ${id},${id} -o Start,End | sed -n '1p;3p' | tr '\\n' '|'`)
  ).split('|');
  expect([from! <= begun!, begun! <= over!, over! <= to!]).toEqual([true, true, true]);
  const { jobs } = JSON.parse(await print(`sacct --json -j ${id}`)) as {
    jobs: { steps: { step: object; state: string[]; tasks: object; exit_code: { return_code: object } }[] }[];
  };
  expect(jobs[0]!.steps).toHaveLength(8);
  expect(jobs[0]!.steps[2]).toMatchObject({
    step: { id: `${id}.1`, name: 'named' },
    ...{ state: ['FAILED'], tasks: { count: 1 }, nodes: { list: ['n1'] } },
    exit_code: { status: ['ERROR'], return_code: { number: 3 } },
  });
});

it('shows the first thousand steps of a job, all of them on request', async () => {
  const noted =
    '{"number":%d,"name":"a","tasks":1,"machines":1,"cpus":1,"startedAtMs":1,"endedAtMs":2,"exitCode":0,"signal":null}';
  const id = await ended(
    '',
    'srun true',
    `for i in $(seq 1 1100); do printf '${noted}\\n' $i; done >>"$SWITCHYARD_STEPS/records"`,
  );
  const shown = (await print(`sacct -n -P -j ${id} -o JobID`)).split('\n');
  expect(shown).toEqual([id, `${id}.batch`, ...Array.from({ length: 1000 }, (_, i) => `${id}.${i}`)]);
});

it('is part of the batch step until its job has ended, and of a job that is stopped it was ended with it', async () => {
  const id = (
    await print(
      'sbatch --parsable --mem=100M -o out.txt',
      `#!/bin/bash\n${bin}/srun sh -c 'touch begun; exec sleep 600'\n`,
    )
  ).trim();
  const steps = () => shell(`sacct -n -P -j ${id}.0 -o JobID,State`);
  await until(
    async () => (await shell(`squeue -h -j ${id} -o %T`)).stdout,
    (state) => state === 'RUNNING\n',
  );
  expect(await steps()).toEqual({
    ...{ code: 0, stdout: `${id}.0|RUNNING\n` },
    stderr: `sacct: warning: ${id}.0: steps are recorded when their job has ended; shown is all that the job runs\n`,
  });
  await until(
    async () => existsSync(join(here, 'begun')),
    (begun) => begun,
  );
  await print(`scancel ${id}`);
  await until(steps, ({ stdout, stderr }) => stderr === '' && stdout === `${id}.0|CANCELLED\n`);
});
