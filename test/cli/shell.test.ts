/** Terminals on machines, as a user has them: `switchyard shell`, `srun --pty` and `salloc`, typed to through a terminal of this machine. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { PATIENCE_MS } from '../support/patience.js';
import { endAll, run, type Service, serve, until } from './service.js';

const PROGRAM = packagePath('bin', 'switchyard.js');
const PYTHON = '/usr/bin/python3';
const home = mkdtempSync(join(tmpdir(), 'switchyard-shell-'));
const bin = join(home, 'bin');
let service: Service;
const started: ChildProcess[] = [];

beforeAll(async () => {
  service = await serve(home, [], '0', { AGENT_DETACHED_S: '3' });
  execFileSync(process.execPath, [PROGRAM, 'slurm', 'install', bin]);
});
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
});
afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

const env = () => ({
  ...{
    PATH: `${bin}:${process.env.PATH}`,
    HOME: home,
    USER: 'ada',
    TERM: 'dumb',
    SHELL: '/bin/bash',
    PS1: 'ready> ',
  },
  ...{ SWITCHYARD_HOME: home, SWITCHYARD_URL: service.url },
});

/** A command in a terminal of this machine. */
function terminal(...command: string[]) {
  const script = packagePath('test', 'support', 'terminal.py');
  const child = spawn(PYTHON, [script, '91', '31', ...command], { env: env(), stdio: 'pipe' });
  started.push(child);
  let shown = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      shown += text.replaceAll('\r', '');
    });
  const tell = (...what: unknown[]) => void child.stdin.write(`${JSON.stringify(what)}\n`);
  return {
    type: (text: string) => tell('type', text),
    size: (rows: number, columns: number) => tell('size', rows, columns),
    kill: () => tell('kill'),
    /** Waits until it shows this; what follows is looked for behind it. */
    async shows(pattern: RegExp): Promise<string> {
      for (const since = Date.now(); !pattern.test(shown); ) {
        if (child.exitCode !== null || Date.now() - since > PATIENCE_MS)
          throw new Error(`waited in vain for ${pattern} in ${shown}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      const [found] = pattern.exec(shown)!;
      shown = shown.slice(shown.indexOf(found) + found.length);
      return found;
    },
    async ended(): Promise<string> {
      if (child.exitCode === null) await once(child, 'close');
      return shown;
    },
  };
}
const shell = (...args: string[]) => terminal(process.execPath, PROGRAM, 'shell', ...args);

it.runIf(existsSync(PYTHON))(
  'a shell at a site: its terminal, sizes, Ctrl-C, what is typed, its exit code',
  async () => {
    const at = shell('--site', 'local', '--env', 'PS1=ready> ', '--', 'bash', '--norc');
    const [id] = /job_\d+/.exec(await at.shows(/job_\d+ submitted/))!;
    await at.shows(/ready> $/);
    at.type('tty; stty size\n');
    await at.shows(/\/dev\/pts\/\d+\n31 91\n/);
    at.size(40, 100);
    at.type('sleep 0.3; stty size\n');
    await at.shows(/\n40 100\n/);
    at.type('echo go$((1 + 1)); sleep 1000\n');
    await at.shows(/go2\n/);
    at.type('\x03');
    await at.shows(/\^C/);
    at.type('echo code $?; read -rs word; echo "<$word>" | tr a-z A-Z\n');
    await at.shows(/code 130\n/);
    at.type('secret\n');
    await at.shows(/<SECRET>/);
    at.type('exit 3\n');
    expect(await at.ended()).toMatch(/ended 3 restored\n$/);
    // What is typed unseen is nowhere in what is kept.
    const kept = await service.cli('job', id!, '--output');
    expect(kept.stdout).toContain('<SECRET>');
    expect(kept.stdout).not.toContain('secret');
    expect(await service.json('job', id!)).toMatchObject({
      terminal: { rows: 31, columns: 91 },
      exitCode: 3,
    });
  },
);

it.runIf(existsSync(PYTHON))('whoever is gone leaves no shell behind', async () => {
  const at = shell('--env', 'PS1=ready> ', '--', 'bash', '--norc');
  const [id] = /job_\d+/.exec(await at.shows(/job_\d+ submitted/))!;
  await at.shows(/ready> $/);
  at.kill();
  await at.ended();
  type Ended = { state: string; cause: string; message: string };
  const job = await until(
    () => service.json<Ended>('job', id!),
    ({ state }) => state === 'FAILED',
  );
  expect(job).toMatchObject({ cause: 'SIGNALLED', message: 'nobody was at its terminal for 3 s' });
});

it.runIf(existsSync(PYTHON))(
  'srun --pty and salloc, as Slurm’s; without a terminal they say what to use',
  async () => {
    const pty = terminal('srun', '--pty', 'bash', '--norc');
    await pty.shows(/srun: job \d+ has been allocated resources\n/);
    await pty.shows(/ready> $/);
    pty.type('echo "job $SLURM_JOB_ID"; stty size; exit 4\n');
    await pty.shows(/job \d+\n31 91\n/);
    expect(await pty.ended()).toMatch(/ended 4 restored\n$/);

    const allocation = terminal('salloc', '-n', '2');
    const [number] = /\d+/.exec(await allocation.shows(/salloc: Granted job allocation \d+\n/))!;
    allocation.type(
      'echo "in $SLURM_JOB_ID of $SLURM_NTASKS"; srun -n 2 sh -c \'echo task $SLURM_PROCID\'; exit 5\n',
    );
    await allocation.shows(new RegExp(`in ${number} of 2\n`));
    await allocation.shows(/task [01]\n.*task [01]\n/s);
    await allocation.shows(new RegExp(`salloc: Relinquishing job allocation ${number}\n`));
    expect(await allocation.ended()).toMatch(/ended 5 restored\n$/);

    expect(await service.cli('submit', '--terminal', '80', 'true')).toMatchObject({
      ...{ code: 2, stderr: expect.stringContaining('columns and rows of a terminal, such as 80x24') },
    });
    expect(await run(['shell'], env())).toMatchObject({
      ...{ code: 2, stdout: '' },
      stderr: expect.stringMatching(/must be a terminal; without one, use `switchyard run COMMAND`/),
    });
  },
);
