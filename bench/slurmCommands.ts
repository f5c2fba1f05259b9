/**
 * The commands called like Slurm's against Slurm's own, each as a process of its own, as a script calls them: on a real service and a real
 * slurmctld where nothing starts. Nothing without Slurm, or root.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { hostEnvironment } from '../src/platform/environment.js';
import { slurmCluster, slurmLacks } from '../test/support/slurm.js';
import { type Bench, type Measured, seconds, sideBySide, sized } from './measure.js';
import { Service } from './service.js';

const ours = (name: string): string => fileURLToPath(new URL(`../slurm/${name}.cjs`, import.meta.url));
const SUBMITTED = sized(1_000, 5);
const CALLS = sized(20, 2);
/** Before anything is measured: the service compiles what it is asked for often, and one that serves has been asked. */
const WARM = sized(200, 1);
const LISTED = sized(10_000, 100);
const ROUNDS = 3;
/** Largest array of a slurmctld as it is delivered. */
const ARRAY = sized(1_000, 100);

export const slurmCommandsBench: Bench = {
  names: ['squeue', 'sbatch', 'squeue-10000'],
  async run(only) {
    const lacks = slurmLacks();
    if (lacks !== null) {
      process.stderr.write(`the commands called like Slurm's are skipped: ${lacks}\n`);
      return [];
    }
    const dir = mkdtempSync(join(tmpdir(), 'sy-bench-'));
    const slurm = slurmCluster(join(dir, 'c'), { SLURM_EXTRA: 'MaxJobCount=50000' });
    slurm('start');
    const service = await Service.start();
    try {
      for (const name of ['squeue', 'sbatch', 'scancel']) symlinkSync(ours(name), join(dir, name));
      const host = hostEnvironment();
      const environments = {
        bare: { ...host, SLURM_CONF: join(dir, 'c', 'slurm.conf') },
        ours: {
          ...{ ...host, PATH: `${dir}:${host.PATH}`, SWITCHYARD_URL: service.url },
          SWITCHYARD_KEY: service.authorization.replace('Bearer ', ''),
        },
      };
      /** Seconds a call, of so many in a loop of one shell. */
      const looped = async (whose: 'ours' | 'bare', command: string, times: number): Promise<number> => {
        const loop = `i=0; while [ $i -lt ${times} ]; do ${command} >/dev/null || exit 1; i=$((i+1)); done`;
        const elapsed = await seconds(() => {
          const { status, stderr } = spawnSync('sh', ['-c', loop], {
            ...{ env: environments[whose], cwd: dir, encoding: 'utf8' },
          });
          if (status !== 0) throw new Error(`${command}: ${stderr}`);
        });
        return elapsed / times;
      };
      const measured = (name: string, aimS: number | null, what: string, command: string, times: number) =>
        sideBySide(
          { name, unit: 's', aim: aimS === null ? null : { value: aimS }, what },
          ROUNDS,
          () => looped('ours', command, times),
          () => looped('bare', command, times),
        );
      // Held: neither may start one meanwhile.
      const submit = 'sbatch --hold --output=/dev/null --time=10 --wrap=true';
      const results: Measured[] = [];
      await looped('ours', 'squeue', WARM);
      if (only('squeue'))
        results.push(
          await measured('squeue', 0.1, "one `squeue` of nothing; against Slurm's", 'squeue', CALLS),
        );
      if (only('sbatch'))
        results.push(
          await measured(
            ...(['sbatch', 0.12, `each of ${SUBMITTED} \`sbatch\` in a loop; against Slurm's`] as const),
            ...([submit, SUBMITTED] as const),
          ),
        );
      if (only('squeue-10000')) {
        for (const whose of ['ours', 'bare'] as const)
          for (let had = 0; had < LISTED; had += ARRAY)
            await looped(whose, `${submit} --array=1-${ARRAY}`, 1);
        results.push(
          await measured(
            ...([
              'squeue-10000',
              null,
              `\`squeue --array\` of ${LISTED} jobs and more; against Slurm's`,
            ] as const),
            ...(['squeue --array', sized(3, 1)] as const),
          ),
        );
      }
      return results;
    } finally {
      await service.stop();
      slurm('stop');
      rmSync(dir, { recursive: true, force: true });
    }
  },
};
