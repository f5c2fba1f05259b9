import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { packagePath } from '../../src/platform/paths.js';

const lacks = (programs: readonly string[], packages: string): string | null => {
  const missing = programs.filter((program) => spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0);
  if (missing.length > 0) return `no ${missing.join(', ')} (apt-get install ${packages})`;
  return process.getuid?.() === 0 ? null : 'not root';
};

/** Why a real Slurm (slurm.sh) cannot be started here; null: it can. */
export const slurmLacks = (): string | null =>
  lacks(['slurmctld', 'slurmd', 'sbatch', 'munged'], 'slurmctld slurmd slurm-client munge');

/** The same, with what `SLURM_WITH` of slurm.sh names. */
export const restLacks = (): string | null =>
  slurmLacks() ?? lacks(['slurmrestd'], 'slurmrestd slurm-wlm-jwt-plugin');
export const accountsLack = (): string | null =>
  slurmLacks() ?? lacks(['slurmdbd', 'mariadbd'], 'slurmdbd slurm-wlm-mysql-plugin mariadb-server');

/** Why a real Grid Engine (gridengine.sh) cannot be started here; null: it can. */
export const gridEngineLacks = (): string | null =>
  lacks(['sge_qmaster', 'sge_execd', 'qsub'], 'gridengine-master gridengine-exec gridengine-client');

/** The verbs of a Slurm of slurm.sh below `directory`, whose parent exists; `variables`: of slurm.sh; `words`: before its command. */
export function slurmCluster(
  directory: string,
  variables: Record<string, string> = {},
  words: readonly string[] = [],
): (verb: 'start' | 'stop' | 'kill', ...words: string[]) => void {
  const [program = '', ...before] = [...words, packagePath('test', 'support', 'slurm.sh'), directory];
  return (verb, ...more) => {
    // Into a file: a pipe would be held open by the daemons.
    const said = `${directory}.out`;
    const file = openSync(said, 'w');
    try {
      execFileSync(program, [...before, verb, ...more], {
        ...{ stdio: ['ignore', file, file], env: { ...process.env, ...variables } },
      });
    } catch (error) {
      throw new Error(`slurm.sh ${verb}: ${readFileSync(said, 'utf8')}`, { cause: error });
    } finally {
      closeSync(file);
    }
  };
}
