/**
 * How fast the agent hands runs over to a real Slurm, whose nodes take none meanwhile, against bare `sbatch`; what it asks of slurmctld when many
 * are queued; and how soon a command begins on idle nodes. Nothing without Slurm, or root.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { ExternalRunner, Slurm } from '../src/agent/index.js';
import { hostEnvironment } from '../src/platform/environment.js';
import { slurmCluster, slurmLacks } from '../test/support/slurm.js';
import { job } from './isolation.js';
import { type Bench, type Measured, seconds, sideBySide, sized } from './measure.js';

const GROUP = sized(10_000, 100);
const SINGLE = sized(100, 10);
/** The agent lists its runs every 5 s, and asks for nodes and the queue every 10 s. */
const WATCHED_S = sized(60, 15);
const call = promisify(execFile);

export const handOverBench: Bench = {
  names: ['hand-over', 'hand-over-single', 'hand-over-queued', 'hand-over-first'],
  async run(only) {
    const lacks = slurmLacks();
    if (lacks !== null) {
      process.stderr.write(`hand-over is skipped: ${lacks}\n`);
      return [];
    }
    const dir = mkdtempSync(join(tmpdir(), 'sy-bench-'));
    const environment = { ...hostEnvironment(), SLURM_CONF: join(dir, 'c', 'slurm.conf') };
    const slurm = slurmCluster(join(dir, 'c'));
    slurm('start');
    try {
      await call('scontrol', ['update', 'nodename=n[1-3]', 'state=drain', 'reason=bench'], {
        env: environment,
      });
      let states = 0;
      const open = (): Promise<ExternalRunner> =>
        ExternalRunner.open({
          stateDir: join(dir, `agent${++states}`),
          scheduler: new Slurm({ partition: null, account: null, options: [], environment }),
          serves: { service: 'bench', site: 'bench' },
          submissionsPerS: 1_000,
        });
      const handOver = async (
        runner: ExternalRunner,
        runs: number,
        memory: (i: number) => number,
      ): Promise<void> => {
        for (let i = 0; i < runs; i++) runner.start({ ...job(i), memoryMbPerTask: memory(i) });
        for (let accepted = 0; accepted < runs; await sleep(5)) {
          const reports = runner.reports(10_000);
          accepted += reports.filter(({ phase }) => phase === 'ACCEPTED').length;
          const last = reports.at(-1);
          if (last) runner.acknowledge(last.seq);
        }
      };
      const ours = async (runs: number, memory: (i: number) => number): Promise<number> => {
        const runner = await open();
        const elapsed = await seconds(() => handOver(runner, runs, memory));
        runner.close();
        await call('scancel', ['--user=root'], { env: environment });
        return runs / elapsed;
      };
      const bare = async (): Promise<number> => {
        const words = [
          '--parsable',
          '--job-name=bare',
          '--mem-per-cpu=10',
          '--output=/dev/null',
          '--wrap=true',
        ];
        const elapsed = await seconds(async () => {
          for (let i = 0; i < SINGLE; i++) await call('sbatch', words, { env: environment });
        });
        await call('scancel', ['--user=root'], { env: environment });
        return SINGLE / elapsed;
      };
      const results: Measured[] = [];
      if (only('hand-over'))
        results.push(
          await sideBySide(
            {
              ...{ name: 'hand-over', unit: 'jobs/s', aim: { value: 5_000 } },
              what: `${GROUP} runs that need the same handed over to Slurm, each written down; against one \`sbatch\` after another`,
            },
            3,
            () => ours(GROUP, () => 10),
            bare,
          ),
        );
      if (only('hand-over-single'))
        results.push(
          await sideBySide(
            {
              ...{ name: 'hand-over-single', unit: 'jobs/s', aim: { ratio: 0.8 } },
              what: `${SINGLE} runs that need different memory handed over to Slurm; against one \`sbatch\` after another`,
            },
            3,
            () => ours(SINGLE, (i) => 10 + i),
            bare,
          ),
        );
      if (only('hand-over-queued')) {
        // What slurmctld counts of all users: nobody else asks it here.
        const counted = async (): Promise<number> => {
          const { stdout } = await call('sdiag', [], { env: environment });
          const types = /by message type\n([\s\S]*?)\n\n/.exec(stdout)?.[1] ?? '';
          const asked = [...types.matchAll(/^\s*REQUEST_\w+\s*\(\s*\d+\) count:(\d+)/gm)];
          return asked.reduce((sum, [, times]) => sum + Number(times), 0);
        };
        const calls = async (runs: number): Promise<number> => {
          const runner = await open();
          if (runs > 0) await handOver(runner, runs, () => 10);
          const before = await counted();
          await sleep(WATCHED_S * 1000);
          const after = await counted();
          runner.close();
          await call('scancel', ['--user=root'], { env: environment });
          return ((after - before) * 60) / WATCHED_S;
        };
        results.push(
          await sideBySide(
            {
              ...{ name: 'hand-over-queued', unit: 'calls', aim: { value: 60 } },
              what: `calls that slurmctld counts in a minute (sdiag) with ${GROUP} runs queued; against none`,
            },
            1,
            () => calls(GROUP),
            () => calls(0),
          ),
        );
      }
      if (only('hand-over-first')) {
        await call('scontrol', ['update', 'nodename=n[1-3]', 'state=resume'], { env: environment });
        const stamp = join(dir, 'stamp');
        const text = `date +%s%N >${stamp}.new; mv ${stamp}.new ${stamp}`;
        /** From the request to the command's first line, s. */
        const begins = async (submit: () => unknown): Promise<number> => {
          rmSync(stamp, { force: true });
          const beganMs = Date.now();
          await submit();
          while (!existsSync(stamp)) await sleep(5);
          return Number(readFileSync(stamp, 'utf8')) / 1e9 - beganMs / 1000;
        };
        const bareS: number[] = [];
        results.push(
          await sideBySide(
            {
              ...{ name: 'hand-over-first', unit: 's', aim: { value: 1 } },
              what: 'how much later a command begins on idle nodes when its run is handed over; against bare `sbatch`, from the call to the command',
            },
            5,
            async (round) => {
              const runner = await open();
              const run = { ...job(0), command: 'sh', arguments: ['-c', text], memoryMbPerTask: 10 };
              const took = await begins(() => runner.start(run));
              runner.close();
              return took - (bareS[round] as number);
            },
            async () => {
              const words = ['--mem-per-cpu=10', '--output=/dev/null', `--wrap=${text}`];
              const took = await begins(() => call('sbatch', words, { env: environment }));
              bareS.push(took);
              return took;
            },
          ),
        );
      }
      return results;
    } finally {
      slurm('stop');
      rmSync(dir, { recursive: true, force: true });
    }
  },
};
