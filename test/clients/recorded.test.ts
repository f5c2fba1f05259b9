/**
 * Calls that clients make, as their sources have them (docs/slurm-users.md), against a real Slurm and against the commands called like Slurm's: the same
 * jobs on both, and what both print compared line by line. What differs is listed with its reason, and must differ.
 */
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hostEnvironment } from '../../src/platform/environment.js';
import { packagePath } from '../../src/platform/paths.js';
import { endAll, type Service, serve } from '../cli/service.js';
import { PATIENCE_MS } from '../support/patience.js';
import { accountsLack, slurmCluster } from '../support/slurm.js';

const lacks = accountsLack();
if (lacks !== null) process.stderr.write(`calls of clients are not compared with Slurm: ${lacks}\n`);

/** Jobs by their names in the calls below, in the order in which both get them. */
const JOBS = {
  done: "-W -J done -t 10 --mem=50 --wrap 'true'",
  failed: "-W -J failed -t 10 --mem=50 --wrap 'exit 3'",
  steps:
    '-W -J steps -n 2 -t 10 --mem=50 --wrap \'srun true; srun -n 1 -J named sh -c "exit 3"; srun -n 1 -c 1 sh -c "kill -9 \\$\\$"; true\'',
  held: "-H -J held -t 1:00:00 --mem=100 --wrap 'true'",
  array: "-H -J array -t 5 --mem=50 -a 1-3,5%2 --wrap 'true'",
  stopped: "-J stopped -t 60 --mem=50 --wrap 'sleep 3600; true'",
  running: "-J running -t 60 --mem=50 --wrap 'sleep 3600'",
  gone: "-H -J gone -t 10 --mem=50 --wrap 'true'",
} as const;
const NAMES = Object.keys(JOBS) as (keyof typeof JOBS)[];

/** In order: what they change, later ones see. `unlike`: why they do not say the same. */
const CALLS: [call: string, unlike?: string][] = [
  ["squeue -h -t all -o '%i|%t|%T|%j|%F|%K|%l|%C|%D|%m' -j {done},{failed},{held},{running},{gone}"],
  ["squeue -h -o '%t %j' -t PD,R -n held,running,array | sort"],
  ["squeue -h -r -t all -o '%i|%F|%K|%t' -j {array}"],
  ["squeue -h -j {running} -o '%T %B %N %R'"],
  ["squeue -h -j {done} -o '%T %B'"],
  ["squeue -h -t F -j {failed} -o '%i %R %r'"],
  ['squeue -a -h -o %i:%T -t all -j {done},{running}'],
  ["squeue -a -t all -o '%A %t' -j {done}"],
  ["squeue -a -t all -O 'JobID:8,State:12,tres-per-node:14,NumTasks:6,MinMemory:11,TimeLimit:12' -j {held}"],
  ["squeue --all --states=all --noconvert -O 'JobID:\\x1F,State:\\x1F' -j {done}"],
  ["squeue -h -t PD -n held -o '%i %r'"],
  ['squeue -h -t nonsense'],
  ['squeue --nonsense'],
  ['squeue -j 99999999 -h', 'Slurm prints the name of its function, slurm_load_jobs, instead of the command'],
  ['sacct -P -n --format=JobIdRaw,State -j {done}'],
  [
    'sacct -X --parsable2 --noheader --format=JobIdRaw,State --starttime now-1day --endtime now --name failed',
  ],
  ['sacct -o JobID,State,NodeList --parsable2 -j {done}'],
  ["sacct -X --noheader --format=jobid,state%20 --job '{failed}'"],
  [
    'sacct -j {failed} -o JobID,JobName,State,ExitCode,AllocCPUS,ReqMem,Timelimit,NTasks,ReqTRES,AllocTRES -n -P',
  ],
  ['sacct -j {done},{failed} -o JobID,STATE -X -n -P --delimiter=,'],
  ['sacct -j {failed}.batch -o ExitCode -P'],
  [
    'sacct -j {steps} -o JobID,JobName,State,ExitCode,DerivedExitCode,AllocCPUS,NTasks,NNodes,NodeList,ReqMem,Timelimit -n -P',
  ],
  ['sacct -j {steps}.0,{steps}.2,{steps}.9 -o JobID,State,ExitCode -n -P'],
  ['sacct -X -j {steps} -o JobID,State,DerivedExitCode -P'],
  ['sacct -n -P -j {stopped} -o JobID,ExitCode'],
  ['sacct -n -P -j {stopped}.batch -o JobID,State,ExitCode'],
  ['sacct -n -P -j {done} -o JobID,WorkDir'],
  ["sbatch -W --parsable -o /dev/null -t 10 --mem=50 --wrap 'kill -9 $$' >killed"],
  ['sacct -X -n -P -j {gone} -o JobID,ExitCode'],
  ['sacct -X -n -P -j {gone} -o State', 'Slurm adds the numeric ID of the user who canceled it'],
  ['sacct -X -n -P -j {array} -o JobID,State'],
  ['sacct -X -n -P -j {held} -o JobID,State,ReqCPUS,ReqMem,JobName,Start,End'],
  ['sacct -n -P -j {running} -o JobID,State,End,ExitCode'],
  ['sacct -j 99999999 -n -P'],
  ['scontrol show hostnames n[01-03],x'],
  ['scontrol hold 99999999', 'Slurm adds a second line, slurm_suspend error'],
  ['scancel 99999999'],
  ['scancel -v 99999999', 'Slurm first prints that it begins'],
  ['scancel --signal=USR1 99999999'],
  ['sbatch --nonsense --wrap true'],
  ['sbatch --time=abc --wrap true', 'both end with 255; what is accepted is added'],
  ['sbatch nofile.sh'],
  ['scontrol update JobId={array} TimeLimit=7'],
  ["squeue -h -o '%i %l' -j {array}"],
  ['scancel {array}_3'],
  ['squeue -h -o %i -j {array}'],
  ['scontrol release {held}'],
  ['scancel {array} {running}'],
  ['squeue -h -t R,PD -j {array},{running} -o %i'],
];

/** The last line of what was said. */
const codeOf = (said: string): string => said.slice(said.lastIndexOf('['));

describe.skipIf(lacks !== null)('calls of clients', () => {
  const dir = mkdtempSync(join(tmpdir(), 'sy-recorded-'));
  const slurm = slurmCluster(join(dir, 'c'), { SLURM_WITH: 'accounts' });
  const sides: Record<'Slurm' | 'ours', { env: Record<string, string>; ids: Map<string, string> }> = {
    Slurm: { env: {}, ids: new Map() },
    ours: { env: {}, ids: new Map() },
  };
  let service: Service;

  async function said(side: keyof typeof sides, call: string): Promise<string> {
    const { env, ids } = sides[side];
    const line = call.replaceAll(/\{(\w+)\}/g, (_, name) => ids.get(name)!);
    const { code, output } = await new Promise<{ code: number; output: string }>((resolve) => {
      execFile('bash', ['-c', `${line} 2>&1`], { cwd: dir, env }, (error, output) =>
        resolve({ code: typeof error?.code === 'number' ? error.code : 0, output }),
      );
    });
    // The same words for what is each side's own: ids, nodes.
    let text = output.trimEnd();
    for (const [name, id] of ids)
      text = text.replaceAll(new RegExp(`(?<![\\d:.-])${id}(?=$|[\\s|_:.,]|\\x1f|\\\\x1F)`, 'gm'), name);
    return `${text.replaceAll(/\bn[123]\b/g, 'NODE').replaceAll(env.NODE!, 'NODE')}\n[${code}]`;
  }

  async function until(side: keyof typeof sides, call: string, isSo: RegExp): Promise<void> {
    for (const giveUp = Date.now() + PATIENCE_MS; ; await sleep(200)) {
      const answer = await said(side, call);
      if (isSo.test(answer)) return;
      if (Date.now() > giveUp) throw new Error(`${side}: ${call}: ${answer}`);
    }
  }

  beforeAll(async () => {
    const home = join(dir, 'home');
    mkdirSync(home);
    service = await serve(home, [], '0', { AGENT_DIRECTORIES: dir });
    // Ids that are no counts: whatever looks like one is one.
    slurm('start', '1000');
    const host = hostEnvironment();
    const bin = join(dir, 'bin');
    execFileSync(process.execPath, [packagePath('bin', 'switchyard.js'), 'slurm', 'install', bin]);
    sides.Slurm.env = { ...host, SLURM_CONF: join(dir, 'c', 'slurm.conf'), NODE: 'n1' };
    sides.ours.env = {
      ...{ ...host, PATH: `${bin}:${host.PATH}`, SWITCHYARD_HOME: home, SWITCHYARD_URL: service.url },
      NODE: 'none',
    };
    await said('ours', 'sbatch --parsable -H -a 1-1000 --wrap true >first && scancel $(cat first)');
    for (const side of ['Slurm', 'ours'] as const)
      for (const name of NAMES) {
        const answer = await said(side, `sbatch --parsable -o /dev/null ${JOBS[name]} 2>/dev/null`);
        const [, id] = /^(\d+)\n\[/.exec(answer) ?? [];
        if (id === undefined) throw new Error(`${side}: ${name}: ${answer}`);
        sides[side].ids.set(name, id);
      }
    for (const side of ['Slurm', 'ours'] as const) {
      await said(side, 'scancel {gone}');
      await until(side, 'squeue -h -j {stopped} -o %T', /RUNNING/);
      await said(side, 'scancel {stopped}');
      await until(side, 'squeue -h -j {running} -o %T', /RUNNING/);
      // What slurmctld tells slurmdbd takes a moment.
      for (const state of [/gone\|CANCELLED/, /held\|PENDING/, /running\|RUNNING/])
        await until(side, 'sacct -X -n -P -j {gone},{held},{running} -o JobName,State', state);
      await until(side, 'sacct -n -P -j {stopped}.batch -o State', /CANCELLED/);
    }
    sides.ours.env.NODE = (await said('ours', 'squeue -h -j {running} -o %N')).split('\n')[0]!;
  });
  afterAll(async () => {
    await endAll();
    slurm('stop');
    rmSync(dir, { recursive: true, force: true });
  });

  it.each(CALLS)('%s', async (call, unlike) => {
    const [theirs, ours] = [await said('Slurm', call), await said('ours', call)];
    if (unlike === undefined) expect(ours).toBe(theirs);
    else {
      expect(codeOf(ours), `${theirs}\n${ours}`).toBe(codeOf(theirs));
      expect(ours, 'it is listed as different, and is not').not.toBe(theirs);
    }
  });
});
