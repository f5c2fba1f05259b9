/** A scientist who comes from Slurm: the README, then docs/slurm-users.md and docs/run-and-map.md, with a script of their own. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../cli/service.js';
import { commandsOf, mentionedIn } from '../docs/markdown.js';
import { newcomerWithService, type Seen } from './newcomer.js';

let ada: Awaited<ReturnType<typeof newcomerWithService>>;
beforeAll(async () => {
  ada = await newcomerWithService('scientist');
});
afterAll(() => ada?.leaves());

/** The last job of which there is news. */
const latest = async (): Promise<string> => (await ada.service.json<{ id: string }[]>('jobs'))[0]!.id;

it('the first job, as the README has it', async () => {
  await ada.follows(commandsOf({ page: 'README.md', under: 'Two commands' }).slice(2), [
    ['switchyard submit --output', /^job_1\nhello\n$/],
  ]);
});

it('more to try: jobs, arrays, files, data', async () => {
  const shown = commandsOf({ page: 'README.md', under: 'More to try' });
  const completed: Seen = { err: /COMPLETED EXITED_ZERO/ };
  const operators = shown.findIndex(({ text }) => text.includes('placement'));
  await ada.follows(shown.slice(0, operators), [
    // In the page: prints job_2.
    ['switchyard submit --', /^job_2\n$/],
    ['switchyard watch', { until: /job_2 +COMPLETED EXITED_ZERO/ }],
    ['switchyard job --output', /^hello\n$/],
    ['switchyard job --follow', /^hello\n$/],
    ['switchyard why job_2', /Dispatched to local: .*\n[\s\S]*Started: /],
    ['switchyard report job_2', /NEXT TIME\ntime .*--estimate /],
    ['switchyard run --', { code: 3, out: /^begun\n$/ }],
    ['switchyard map', /^(\d: [abc]\n){3}$/],
    ['switchyard submit --wait --cpus 2', completed],
    ['switchyard submit --array 1-100', /\(100 jobs\)/],
    ['switchyard jobs --group sweep', { out: /^ID +STATE/ }],
    ['switchyard cancel --group sweep', /\d+ jobs? changed/],
    ['switchyard submit --wait --keep', completed],
    [
      'switchyard job JOB --fetch',
      { first: async () => Object.assign(ada.names, { JOB: await latest() }), out: /a\.csv/ },
    ],
    ['switchyard data add events', /events +10000 +local/],
    ['switchyard submit --input events', /^job_\d+\n$/],
    ['switchyard ratio scan', /of its run time/],
    ['switchyard sites', /local +UP/],
  ]);
  expect(readFileSync(join(ada.here, ada.names.JOB!, 'a.csv'), 'utf8')).toBe('1,2\n');
});

it('a script of Slurm, and the commands that it is known by', async () => {
  ada.writes('run.sh', '#!/bin/bash\n#SBATCH --job-name=mine --time=5\necho "job $SLURM_JOB_ID"\n', 0o755);
  const page = 'docs/slurm-users.md';
  await ada.follows(commandsOf({ page, under: 'From Slurm to Switchyard' }), [
    ['switchyard submit run.sh', /^job_\d+\n$/],
    ['switchyard slurm install ~/slurm', /\d+ commands are in /],
    ['PATH=~/slurm:$PATH sbatch run.sh', /^Submitted batch job \d+\n$/],
  ]);

  /** A job in a state in which what the table shows makes sense. */
  const job =
    (options: string, state: string, command = 'sleep 60') =>
    async () => {
      const { stdout, stderr } = await ada.types(`switchyard submit ${options} -- ${command}`);
      const id = /^job_\d+/.exec(stdout)?.[0];
      if (!id) throw new Error(stderr);
      await until(
        () => ada.service.json<{ state: string }>('job', id),
        (now) => now.state === state,
      );
      ada.names['12'] = id.replace('job_', '');
    };
  const waiting = job('--begin +1h', 'BLOCKED');
  const held = job('--hold', 'HELD');
  const ended = job('', 'FAILED', 'false');
  // A signal ends it.
  const running = job('', 'RUNNING', `sh -c 'trap : USR1; sleep 60 & wait'`);
  const says = (out: RegExp, first?: () => Promise<unknown>): Seen => ({ out, ...(first && { first }) });
  // `srun command` runs a command.
  ada.names.command = 'echo srun';
  let scripted = '';
  const table: [string, Seen][] = [
    ['sbatch run.sh', /^Submitted batch job \d+\n$/],
    ['switchyard submit run.sh', /^job_\d+\n$/],
    ['srun command', /srun/],
    ['switchyard run -- command', /srun/],
    ['squeue', says(/JOBID PARTITION/, waiting)],
    ['squeue -j 12', / PD /],
    ['switchyard jobs', /BLOCKED/],
    ['switchyard job 12', /^state +BLOCKED/m],
    ['switchyard why 12', /waiting: /],
    ['scancel 12', /^$/],
    ['scontrol hold 12', says(/^$/, waiting)],
    ['scontrol release 12', /^$/],
    ['scontrol requeue 12', says(/^$/, ended)],
    ['switchyard cancel 12', says(/1 job changed/, waiting)],
    ['switchyard hold 12', says(/1 job changed/, waiting)],
    ['switchyard release 12', says(/1 job changed/)],
    ['switchyard requeue 12', says(/1 job changed/, ended)],
    ['scancel -s USR1 12', says(/^$/, running)],
    ['switchyard signal USR1 12 --to others', says(/1 job signaled/, running)],
    [
      'seff 12',
      says(/State: COMPLETED/, async () => {
        await ada.types('switchyard submit --wait run.sh');
        scripted = (await latest()).replace('job_', '');
        ada.names['12'] = scripted;
      }),
    ],
    ['scontrol write batch_script 12', /^batch script for job \d+ written to "slurm-\d+\.sh"\n$/],
    ['switchyard report 12', /NEXT TIME/],
    ['switchyard job 12 --script', /^#!\/bin\/bash\n#SBATCH --job-name=mine/],
    ['scontrol update JobId=12 TimeLimit=2:00:00', says(/^$/, held)],
    ['switchyard change 12 --time 2h', /1 job changed/],
    ['sinfo', /local\* +up/],
    ['switchyard sites', /local +UP/],
    ['switchyard machines', /local .* UP/],
  ];
  const under = 'From Slurm to Switchyard';
  const typed = (at: string, text: string) => ({ at, text: `PATH=~/slurm:$PATH; ${text}` });
  await ada.follows(
    mentionedIn({ page, under }, /^s[a-z]/).map(({ at, text }) => typed(at, text)),
    table.map(([begins, seen]) => [typed('', begins).text, seen]),
  );
  const script = readFileSync(join(ada.here, `slurm-${scripted}.sh`), 'utf8');
  expect(script).toBe(readFileSync(join(ada.here, 'run.sh'), 'utf8'));

  // Where the table compares options, each is one of a submission.
  const options: [string, Seen][] = [
    ['sbatch -d afterok:12', /^Submitted batch job \d+\n$/],
    ['switchyard submit --after-ok 12', /^job_\d+\n$/],
    ['switchyard submit --after-ok group:sweep', /^job_\d+\n$/],
    ...['-a 1-100%4', '-t 1-12:00', '--mem 2G', '-b 20:00'].map((option): [string, Seen] => [
      `sbatch ${option}`,
      /^Submitted batch job \d+\n$/,
    ]),
    ['switchyard submit --array 1-100%4', /\(100 jobs\)/],
    ['switchyard submit --time 1-12:00', /^job_\d+\n$/],
    ['switchyard submit --mem 2G', /^job_\d+\n$/],
    ['switchyard submit --begin 20:00', { out: /^job_\d+\n$/, err: /20:00 is taken as local time/ }],
  ];
  await ada.follows(
    mentionedIn({ page, under }, /^-/).map(({ at, text }, i) =>
      typed(at, `${/^(sbatch|switchyard submit)/.exec(options[i]?.[0] ?? '')?.[0]} ${text} run.sh`),
    ),
    options.map(([begins, seen]) => [typed('', begins).text, seen]),
  );
});
