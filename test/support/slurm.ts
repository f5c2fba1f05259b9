import { spawnSync } from 'node:child_process';

/** Why a real Slurm (slurm.sh) cannot be started here; null: it can. */
export function slurmLacks(): string | null {
  const missing = ['slurmctld', 'slurmd', 'sbatch', 'munged'].filter(
    (program) => spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0,
  );
  if (missing.length > 0)
    return `no ${missing.join(', ')} (apt-get install slurmctld slurmd slurm-client munge)`;
  return process.getuid?.() === 0 ? null : 'not root';
}
