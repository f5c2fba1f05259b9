/** Unmodified clients of Slurm run whole workflows, with a failure and a retry: Snakemake and Toil, as Debian has them. Those that are not installed are skipped. */
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { endAll, type Service, serve } from '../cli/service.js';
import { PYTHON, SUMS } from './toil.js';

const home = mkdtempSync(join(tmpdir(), 'switchyard-clients-'));
const bin = join(home, 'bin');
let service: Service;

const has = (program: string, ...args: string[]): boolean =>
  spawnSync(program, args, { stdio: 'ignore' }).status === 0;
const MINUTES = 60_000;

beforeAll(async () => {
  service = await serve(home);
  execFileSync(process.execPath, [packagePath('bin', 'switchyard.js'), 'slurm', 'install', bin]);
  symlinkSync(packagePath('bin', 'switchyard.js'), join(bin, 'switchyard'));
});
afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

function shell(cwd: string, line: string): Promise<{ code: number; output: string }> {
  const env = {
    PATH: `${bin}:/usr/local/bin:/usr/bin:/bin:${process.env.PATH}`,
    HOME: home,
    USER: 'ada',
    SWITCHYARD_HOME: home,
    SWITCHYARD_URL: service.url,
  };
  return new Promise((resolve) => {
    execFile('bash', ['-c', `${line} 2>&1`], { cwd, env, maxBuffer: 1e8 }, (error, output) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, output }),
    );
  });
}
function folder(name: string, file: string, text: string): string {
  const path = join(home, name);
  mkdirSync(path);
  writeFileSync(join(path, file), text);
  return path;
}
/** Its jobs by what became of them, in order of submission. */
async function ends(dir: string): Promise<string[]> {
  const { output } = await shell(dir, `squeue -h -t all -o '%T %Z'`);
  return output.split('\n').flatMap((line) => (line.endsWith(` ${dir}`) ? [line.split(' ')[0]!] : []));
}

describe('Snakemake', () => {
  it.skipIf(!has('snakemake', '--version'))(
    'runs rules as jobs; one that has failed is tried again',
    async () => {
      const dir = folder(
        'snakemake',
        'Snakefile',
        `rule all:
    input: "sum.txt"
rule part:
    output: "part{i}.txt"
    resources: mem_mb=600, runtime=5
    shell: "if [ {wildcards.i} = 2 ] && [ ! -e tried ]; then touch tried; exit 3; fi; echo {wildcards.i} > {output}"
rule sum:
    input: expand("part{i}.txt", i=[1, 2, 3])
    output: "sum.txt"
    resources: mem_mb=600
    shell: "cat {input} > {output}"
`,
      );
      const { code, output } = await shell(
        dir,
        'snakemake --slurm --jobs 4 --retries 1 --default-resources slurm_account=default slurm_partition=local mem_mb=600 disk_mb=10',
      );
      expect(code, output).toBe(0);
      expect(readFileSync(join(dir, 'sum.txt'), 'utf8')).toBe('1\n2\n3\n');
      expect((await ends(dir)).sort()).toEqual([...Array(4).fill('COMPLETED'), 'FAILED']);
    },
    9 * MINUTES,
  );

  it.skipIf(!has('snakemake', '--version'))(
    'submits with the commands of the documentation; a rule that fails is told',
    async () => {
      const dir = folder(
        'generic',
        'Snakefile',
        `rule all:
    input: "a.txt", "b.txt"
rule good:
    output: "a.txt"
    shell: "echo made > {output}"
rule bad:
    output: "b.txt"
    shell: "exit 3"
`,
      );
      const guide = readFileSync(packagePath('docs', 'slurm-users.md'), 'utf8');
      const [status = '', snakemake = ''] = [
        ...guide.split("## Snakemake without Slurm's commands")[1]!.matchAll(/^```sh\n(.*?)^```/gms),
      ].map(([, block]) => block);
      writeFileSync(join(dir, 'status.sh'), status, { mode: 0o755 });
      const line = snakemake.trim().replaceAll('mem_mb=1000', 'mem_mb=600');
      const { code, output } = await shell(dir, `${line} --keep-going --max-status-checks-per-second 2`);
      expect(code, output).toBe(1);
      expect(readFileSync(join(dir, 'a.txt'), 'utf8')).toBe('made\n');
      expect(output).toContain('Error in rule bad');
      expect((await ends(dir)).sort()).toEqual(['COMPLETED', 'FAILED']);
    },
    9 * MINUTES,
  );
});

describe('Toil', () => {
  it.skipIf(!has(PYTHON, '-c', 'import toil.batchSystems.slurm'))(
    'runs jobs that hand results on; one that has failed is tried again',
    async () => {
      const dir = folder('toil', 'workflow.py', SUMS);
      const { code, output } = await shell(
        dir,
        `MARK=${dir}/mark ${PYTHON} workflow.py file:${dir}/store --batchSystem slurm --retryCount 1 --disableCaching --statePollingWait 1`,
      );
      expect(code, output).toBe(0);
      expect(output).toMatch(/^sum 60$/m);
    },
    9 * MINUTES,
  );
});

it('an array with a bound ends with what each element made', async () => {
  const dir = folder(
    'array',
    'run.sh',
    '#!/bin/sh\n#SBATCH -a 1-20%3 -o out-%a\necho $((SLURM_ARRAY_TASK_ID * 2))\n',
  );
  const { code } = await shell(dir, 'sbatch -W run.sh');
  expect(code).toBe(0);
  for (let index = 1; index <= 20; index++)
    expect(readFileSync(join(dir, `out-${index}`), 'utf8')).toBe(`${2 * index}\n`);
});
