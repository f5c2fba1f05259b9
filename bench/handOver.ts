/** How fast the agent hands runs over to a real Slurm, whose nodes take none meanwhile: against bare `sbatch`. Nothing without Slurm, or root. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
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
const call = promisify(execFile);

export const handOverBench: Bench = {
  names: ['hand-over', 'hand-over-single'],
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
      const ours = async (runs: number, memory: (i: number) => number): Promise<number> => {
        const runner = await ExternalRunner.open({
          stateDir: join(dir, `agent${++states}`),
          scheduler: new Slurm({ partition: null, account: null, options: [], environment }),
          serves: { service: 'bench', site: 'bench' },
          submissionsPerS: 1_000,
        });
        const elapsed = await seconds(async () => {
          for (let i = 0; i < runs; i++) runner.start({ ...job(i), memoryMbPerTask: memory(i) });
          for (let accepted = 0; accepted < runs; await sleep(5)) {
            const reports = runner.reports(10_000);
            accepted += reports.filter(({ phase }) => phase === 'ACCEPTED').length;
            const last = reports.at(-1);
            if (last) runner.acknowledge(last.seq);
          }
        });
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
      return results;
    } finally {
      slurm('stop');
      rmSync(dir, { recursive: true, force: true });
    }
  },
};
