/** What a real Slurm tells of its partitions and of jobs that wait there, and how often it was asked. Skipped where Slurm or root is missing. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { counted } from '../../src/agent/external/counted.js';
import { Slurm } from '../../src/agent/index.js';
import { PATIENCE_MS } from '../support/patience.js';
import { slurmCluster, slurmLacks } from '../support/slurm.js';

describe.skipIf(slurmLacks() !== null)('Slurm as it is', () => {
  const dir = mkdtempSync(join(tmpdir(), 'sy-capacity-'));
  const cluster = slurmCluster(join(dir, 'cluster'));
  const environment = { PATH: process.env.PATH as string, SLURM_CONF: join(dir, 'cluster', 'slurm.conf') };
  const calls = { made: 0, failed: 0 };
  const options = { partition: null, account: null, options: [], environment };
  const slurm = counted(new Slurm(options), calls);

  beforeAll(() => cluster('start'), 5 * PATIENCE_MS);
  afterAll(() => {
    try {
      cluster('stop');
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  }, 5 * PATIENCE_MS);

  it(
    'tells its partitions, with nodes and limits, and others’ jobs in its order',
    async () => {
      const sbatch = (...words: string[]): string =>
        execFileSync('sbatch', ['--parsable', '--hold', ...words, '--wrap', 'true'], {
          env: environment,
          cwd: dir,
        })
          .toString()
          .trim();
      const id = sbatch('--ntasks=2', '--time=30', '--job-name=a|b');
      const { partitions = [], licenses = [], nodes, waiting } = await slurm.capacity();
      const known = execFileSync('sinfo', ['-h', '-o', '%R %D'], { env: environment })
        .toString()
        .trim()
        .split('\n');
      expect(partitions.map((one) => `${one.name} ${one.nodes}`).sort()).toEqual(known.sort());
      const [used, ...more] = partitions.filter(({ isUsed }) => isUsed);
      expect(more).toEqual([]);
      expect(used).toMatchObject({ isDefault: true, state: 'up', nodes: nodes.length, busyCpus: 0 });
      expect(used!.cpus).toBe(nodes.reduce((sum, { cpus }) => sum + cpus, 0));
      expect(used!.nodeList).not.toBe('');
      expect(partitions.some(({ longestS }) => longestS !== null)).toBe(true);
      const licensed = execFileSync('scontrol', ['show', 'lic', '-o'], { env: environment }).toString();
      expect(licenses.map(({ name, total }) => `${name} ${total}`)).toEqual(
        [...licensed.matchAll(/^LicenseName=(\S+) Total=(\d+)/gm)].map(
          ([, name, total]) => `${name} ${total}`,
        ),
      );
      expect(licenses.length).toBeGreaterThan(0);
      expect(waiting).toEqual([{ id, reason: 'JobHeldUser', name: 'a|b', cpus: 2, limitS: 1_800 }]);
      expect(calls).toEqual({ made: 1, failed: 0 });
      await expect(
        counted(new Slurm({ ...options, environment: { PATH: '/nowhere' } }), calls).capacity(),
      ).rejects.toThrow();
      expect(calls).toEqual({ made: 2, failed: 1 });
    },
    5 * PATIENCE_MS,
  );
});
