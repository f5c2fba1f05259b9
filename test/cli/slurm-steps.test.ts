/** Steps: `srun` in jobs, on the machines that one agent serves. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { endAll, launch, type Service, serve, until } from './service.js';
import { commandsOf } from './slurm-commands.js';

const home = mkdtempSync(join(tmpdir(), 'switchyard-slurm-steps-'));
const [here, bin] = [join(home, 'here'), join(home, 'bin')];
let service: Service;
const { shell } = commandsOf({ bin, here, home, url: () => service.url });

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
