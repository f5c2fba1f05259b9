/**
 * Unmodified clients of Slurm run whole workflows, with failures, retries and arrays: Snakemake and Toil, as Debian has them, and `sbatch` itself. Each
 * workflow is run on Switchyard and on a real Slurm, and what became of it is compared. What differs is listed with its reason, and must differ.
 * Clients that are not installed are skipped; without a real Slurm, the comparison is.
 */
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hostEnvironment } from '../../src/platform/environment.js';
import { packagePath } from '../../src/platform/paths.js';
import { endAll, type Service, serve } from '../cli/service.js';
import { PATIENCE_MS } from '../support/patience.js';
import { accountsLack, slurmCluster } from '../support/slurm.js';
import { PYTHON, SUMS } from './toil.js';

const has = (program: string, ...args: string[]): boolean =>
  spawnSync(program, args, { stdio: 'ignore' }).status === 0;
const hasSnakemake = has('snakemake', '--version');
const hasToil = has(PYTHON, '-c', 'import toil.batchSystems.slurm');
const slurmLacks = accountsLack();
if (slurmLacks !== null) process.stderr.write(`workflows are not compared with Slurm: ${slurmLacks}\n`);
const MINUTES = 60_000;

/**
 * The exit code of the client, each file of the workflow by its path, how many logs of jobs there are, what the client said, and each job by its name: how
 * its attempts ended, the first one first, and their steps.
 */
type Result = Record<string, string>;

interface Workflow {
  title: string;
  missing?: boolean;
  /** By their paths. */
  files: Record<string, string>;
  /** The command that runs it; `$ACCOUNT` and `$PARTITION` are the side's own. */
  line: string;
  /** What is compared of what the client says. */
  says: RegExp;
  becomes: Result;
  /** What is another one on Slurm, and why. */
  onSlurm?: { why: string; becomes: Result };
  /** It mostly waits: it is begun first, and goes on beside the others. */
  isLong?: boolean;
}

/** An attempt of which the job and all steps ended alike. */
const alike = (end: string, ...steps: string[]): string =>
  `${end} (${['batch', ...steps].map((step) => `${step} ${end}`).join(', ')})`;
const [DONE, FAILED] = ['COMPLETED 0:0', 'FAILED 1:0'];
/** Snakemake runs itself by `srun` in its jobs. */
const [RULE_DONE, RULE_FAILED] = [alike(DONE, 'python3'), alike(FAILED, 'python3')];
const lines = (...text: string[]): string => text.sort().join('\n');
const steps = (all: number, done = all): string[] =>
  Array.from({ length: done }, (_, i) => `${i + 1} of ${all} steps`);
const each = (indices: readonly number[], entry: (index: number) => [path: string, text: string]): Result =>
  Object.fromEntries(indices.map(entry));
const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i + 1);

const SNAKEMAKE =
  'snakemake --slurm --jobs 6 --retries 1 --max-status-checks-per-second 1 --default-resources slurm_account=$ACCOUNT slurm_partition=$PARTITION mem_mb=600 disk_mb=10 runtime=5';
const SNAKEMAKE_SAYS =
  /^Error in rule .*:|SLURM status is.*|^Trying to restart.*|^\d+ of \d+ steps|^Exiting because.*/gm;
const TOIL = `${PYTHON} workflow.py file:$PWD/store --batchSystem slurm --retryCount 1 --disableCaching --statePollingWait 1 --clean always`;
const TOIL_SAYS =
  /Job failed with exit value \d+: '\w+' \w+|reducing the remaining try count of job '\w+' \w+|^Exit reason: .*|^\tRuntimeError: .*|is completely failed|Finished toil run .*|^sum .*/gm;
/** What it says of an attempt. */
const toilFailed = (kind: string, name: string, error: string): string[] => [
  `Job failed with exit value 1: '${kind}' ${name}`,
  'Exit reason: None',
  `\tRuntimeError: ${error}`,
  `reducing the remaining try count of job '${kind}' ${name}`,
];
/** What Snakemake says of the workflow with limits. `large`: the state of the job that has exceeded its memory. */
const limitsSaid = (large: string): string =>
  lines(
    ...['Error in rule long:', "SLURM status is: 'TIMEOUT'", 'Trying to restart job 1.'],
    ...['Error in rule large:', `SLURM status is: '${large}'`, 'Trying to restart job 2.'],
    ...['Error in rule bad:', "SLURM status is: 'FAILED'", 'Trying to restart job 4.'],
    ...['Error in rule bad:', "SLURM status is: 'FAILED'"],
    'Exiting because a job execution failed. Look above for error message',
    ...steps(5, 2),
  );

const WORKFLOWS: Workflow[] = [
  {
    title: 'Snakemake runs rules as jobs; one that has failed is tried again',
    missing: !hasSnakemake,
    files: {
      Snakefile: `rule all:
    input: "sum.txt"
rule part:
    output: "part{i}.txt"
    shell: "if [ {wildcards.i} = 2 ] && [ ! -e tried ]; then touch tried; exit 3; fi; echo {wildcards.i} > {output}"
rule sum:
    input: expand("part{i}.txt", i=[1, 2, 3])
    output: "sum.txt"
    shell: "cat {input} > {output}"
`,
    },
    line: SNAKEMAKE,
    says: SNAKEMAKE_SAYS,
    becomes: {
      'exit code': '0',
      said: lines(
        'Error in rule part:',
        "SLURM status is: 'FAILED'",
        'Trying to restart job 3.',
        ...steps(5),
      ),
      'job snakejob_sum_1': RULE_DONE,
      'job snakejob_part_2': RULE_DONE,
      'job snakejob_part_3': `${RULE_FAILED}, ${RULE_DONE}`,
      'job snakejob_part_4': RULE_DONE,
      'logs of rule_part': '4',
      'logs of rule_sum': '1',
      tried: '',
      ...each(upTo(3), (i) => [`part${i}.txt`, `${i}\n`]),
      'sum.txt': '1\n2\n3\n',
    },
  },
  {
    title: 'a rule of Snakemake submits an array, of which an element fails the first time',
    missing: !hasSnakemake,
    files: {
      Snakefile: `localrules: elements
rule sum:
    input: "elements.txt"
    output: "sum.txt"
    shell: "awk '{{ sum += $1 }} END {{ print sum }}' {input} > {output}"
rule elements:
    output: "elements.txt"
    shell: "sbatch --wait -A $ACCOUNT -p $PARTITION -a 1-6%2 element.sh && cat element-*.txt > {output}"
`,
      'element.sh': `#!/bin/sh
#SBATCH -J element --mem=50 -t 5 -o element-%a.txt
if [ "$SLURM_ARRAY_TASK_ID" = 4 ] && [ ! -e tried ]; then touch tried; exit 3; fi
echo $((10 * SLURM_ARRAY_TASK_ID))
`,
    },
    line: SNAKEMAKE,
    says: SNAKEMAKE_SAYS,
    becomes: {
      'exit code': '0',
      said: lines('Error in rule elements:', 'Trying to restart job 1.', ...steps(2)),
      ...each(upTo(6), (i) => [
        `job element_${i}`,
        `${alike(i === 4 ? 'FAILED 3:0' : DONE)}, ${alike(DONE)}`,
      ]),
      'job snakejob_sum_0': RULE_DONE,
      'logs of rule_sum': '1',
      tried: '',
      ...each(upTo(6), (i) => [`element-${i}.txt`, `${10 * i}\n`]),
      'elements.txt': '10\n20\n30\n40\n50\n60\n',
      'sum.txt': '210\n',
    },
  },
  {
    title: 'Toil runs jobs that hand results on; one that has failed is tried again',
    missing: !hasToil,
    files: { 'workflow.py': SUMS },
    line: `MARK=$PWD/mark ${TOIL}`,
    says: TOIL_SAYS,
    becomes: {
      'exit code': '0',
      said: lines(
        ...toilFailed('part', 'part2', 'the first time it fails'),
        'Finished toil run successfully.',
        'sum 60',
      ),
      'job root': alike(DONE),
      'job part1': alike(DONE),
      'job part2': `${alike(FAILED)}, ${alike(DONE)}`,
      'job part3': alike(DONE),
      'job total': alike(DONE),
      mark: '',
    },
  },
  {
    title: 'Toil gives up a job that fails each time',
    missing: !hasToil,
    files: {
      'workflow.py': `from toil.common import Toil
from toil.job import Job
SMALL = dict(memory='600M', cores=1, disk='10M')
def fail(job):
    raise RuntimeError('each time it fails')
if __name__ == '__main__':
    options = Job.Runner.getDefaultArgumentParser().parse_args()
    with Toil(options) as toil:
        toil.start(Job.wrapJobFn(fail, name='fail', **SMALL))
`,
    },
    line: TOIL,
    says: TOIL_SAYS,
    becomes: {
      'exit code': '1',
      said: lines(
        ...[1, 2].flatMap(() => toilFailed('fail', 'fail', 'each time it fails')),
        // At the end once more.
        '\tRuntimeError: each time it fails',
        'is completely failed',
        'Finished toil run with 1 failed jobs.',
      ),
      'job fail': `${alike(FAILED)}, ${alike(FAILED)}`,
    },
  },
  {
    title: 'an array with a bound ends with what each element made, and with the highest exit code',
    files: {
      'run.sh': `#!/bin/sh
#SBATCH -J doubled -a 1-20%3 -t 5 --mem=50 -o out-%a
case $SLURM_ARRAY_TASK_ID in
  7) exit 3 ;;
  11) kill -9 $$ ;;
esac
echo $((SLURM_ARRAY_TASK_ID * 2))
`,
    },
    line: 'sbatch -W -A $ACCOUNT -p $PARTITION run.sh',
    says: /error.*/g,
    becomes: {
      'exit code': '3',
      said: '',
      ...each(upTo(20), (i) => [
        `job doubled_${i}`,
        i === 11 ? 'FAILED 0:9 (batch CANCELLED 0:9)' : alike(i === 7 ? 'FAILED 3:0' : DONE),
      ]),
      ...each(upTo(20), (i) => [`out-${i}`, i === 7 || i === 11 ? '' : `${2 * i}\n`]),
    },
  },
  {
    title:
      'Snakemake tries jobs again that met a limit, with a higher one, and gives up one that fails each time',
    missing: !hasSnakemake,
    isLong: true,
    files: {
      Snakefile: `rule all:
    input: "long.txt", "large.txt", "after.txt"
rule long:
    output: "long.txt"
    resources: runtime=lambda wildcards, attempt: [1, 5][attempt - 1]
    shell: "if [ {resources.runtime} = 1 ]; then sleep 600; fi; echo made > {output}"
rule large:
    output: "large.txt"
    resources: mem_mb=lambda wildcards, attempt: 700 * attempt
    shell: "python3 -c 'import time; held = bytearray(900_000_000); time.sleep(10)' && echo made > {output}"
rule bad:
    output: "bad.txt"
    shell: "echo half > {output}; exit 3"
rule after:
    input: "bad.txt"
    output: "after.txt"
    shell: "touch {output}"
`,
    },
    line: `${SNAKEMAKE} --keep-going`,
    says: SNAKEMAKE_SAYS,
    becomes: {
      'exit code': '1',
      said: limitsSaid('OUT_OF_MEMORY'),
      'job snakejob_long_1': `TIMEOUT 0:0 (batch CANCELLED 0:15, python3 CANCELLED 0:15), ${RULE_DONE}`,
      'job snakejob_large_2': `OUT_OF_MEMORY 0:125 (batch OUT_OF_MEMORY 0:125, python3 CANCELLED 0:9), ${RULE_DONE}`,
      'job snakejob_bad_4': `${RULE_FAILED}, ${RULE_FAILED}`,
      'logs of rule_long': '2',
      'logs of rule_large': '2',
      'logs of rule_bad': '2',
      'long.txt': 'made\n',
      'large.txt': 'made\n',
    },
    onSlurm: {
      why: 'without control groups, it kills the step that takes too much memory and does not say of the job that it was for this',
      becomes: {
        said: limitsSaid('FAILED'),
        'job snakejob_large_2': `FAILED 1:0 (batch FAILED 1:0, python3 CANCELLED 0:9), ${RULE_DONE}`,
      },
    },
  },
];

const home = mkdtempSync(join(tmpdir(), 'switchyard-clients-'));
const bin = join(home, 'bin');
const slurm = slurmCluster(join(home, 'slurm'), {
  SLURM_WITH: 'accounts',
  // What a Slurm has that holds jobs to their memory without control groups.
  SLURM_EXTRA: 'JobAcctGatherParams=OverMemoryKill',
});
type Side = 'Switchyard' | 'Slurm';
const environments = {} as Record<Side, Record<string, string>>;
const results = new Map<string, Promise<Result>>();
let service: Service;

/** Begun when it is first asked for. */
function result(side: Side, workflow: Workflow): Promise<Result> {
  const key = `${side} ${workflow.title}`;
  const running = results.get(key) ?? runs(side, workflow);
  // Who asks is told.
  running.catch(() => {});
  results.set(key, running);
  return running;
}
function both(workflow: Workflow): Promise<Result>[] {
  return [result('Switchyard', workflow), ...(slurmLacks === null ? [result('Slurm', workflow)] : [])];
}

beforeAll(async () => {
  service = await serve(home);
  execFileSync(process.execPath, [packagePath('bin', 'switchyard.js'), 'slurm', 'install', bin]);
  symlinkSync(packagePath('bin', 'switchyard.js'), join(bin, 'switchyard'));
  const host = hostEnvironment();
  const path = `/usr/local/bin:/usr/bin:/bin:${process.env.PATH}`;
  environments.Switchyard = {
    ...{ ...host, PATH: `${bin}:${path}`, HOME: home, ACCOUNT: 'default', PARTITION: 'local' },
    ...{ SWITCHYARD_HOME: home, SWITCHYARD_URL: service.url },
  };
  if (slurmLacks === null) {
    slurm('start');
    environments.Slurm = {
      ...{ ...host, PATH: path, HOME: home, ACCOUNT: 'science', PARTITION: 'batch' },
      SLURM_CONF: join(home, 'slurm', 'slurm.conf'),
    };
  }
  for (const workflow of WORKFLOWS) if (workflow.isLong && !workflow.missing) both(workflow);
});
afterAll(async () => {
  await endAll();
  if (slurmLacks === null) slurm('stop');
  rmSync(home, { recursive: true, force: true });
});

function shell(side: Side, cwd: string, line: string): Promise<{ code: number; output: string }> {
  const options = { cwd, env: environments[side], maxBuffer: 1e8 };
  return new Promise((resolve) => {
    execFile('bash', ['-c', `${line} 2>&1`], options, (error, output) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, output }),
    );
  });
}
function folder(name: string, files: Record<string, string>): string {
  const path = join(home, name);
  mkdirSync(path, { recursive: true });
  for (const [file, text] of Object.entries(files)) writeFileSync(join(path, file), text);
  return path;
}

async function runs(side: Side, workflow: Workflow): Promise<Result> {
  const dir = folder(join(side, String(WORKFLOWS.indexOf(workflow))), workflow.files);
  const { code, output } = await shell(side, dir, workflow.line);
  const made: Result = {};
  for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name).slice(dir.length + 1);
    const [, rule] = /^\.snakemake\/slurm_logs\/(\w+)\/\d+\.log$/.exec(path) ?? [];
    if (rule !== undefined) made[`logs of ${rule}`] = String(Number(made[`logs of ${rule}`] ?? 0) + 1);
    else if (entry.isFile() && !/^(\.snakemake|__pycache__)\//.test(path) && !(path in workflow.files))
      made[path] = readFileSync(join(dir, path), 'utf8');
  }
  const said = lines(...(output.match(workflow.says) ?? []));
  const awaited = expected(side, workflow);
  const isAll = (found: Result): boolean =>
    Object.keys(awaited).every((part) => !part.startsWith('job ') || found[part] === awaited[part]);
  return { 'exit code': String(code), said, ...made, ...(await jobsIn(side, dir, isAll)) };
}

const expected = (side: Side, { becomes, onSlurm }: Workflow): Result => ({
  ...becomes,
  ...(side === 'Slurm' && onSlurm?.becomes),
});

/** The jobs that were submitted in a directory, when sacct knows all of them: a real one may be late. In the end, what it knows. */
async function jobsIn(side: Side, dir: string, isAll: (found: Result) => boolean): Promise<Result> {
  const ask = 'sacct -n -P -S now-1day -o JobID,JobName,State,ExitCode,WorkDir';
  for (const giveUp = Date.now() + PATIENCE_MS; ; await sleep(500)) {
    const { output } = await shell(side, dir, ask);
    const attempts: { name: string; end: string; steps: string[] }[] = [];
    for (const line of output.trim().split('\n')) {
      const [id = '', name = '', state = '', exit, cwd] = line.split('|');
      // Slurm adds who has canceled it.
      const end = `${state.replace(/ by \d+$/, '')} ${exit}`;
      const last = attempts.at(-1);
      // At a time limit by SIGTERM, or by SIGKILL if it takes longer than Slurm waits; a real one may notice first how Snakemake ends at SIGTERM.
      const others = ['CANCELLED 0:9', ...(side === 'Slurm' ? ['FAILED 1:0'] : [])];
      const isRaced = last?.end.startsWith('TIMEOUT') && others.includes(end);
      if (id.includes('.')) last?.steps.push(`${name} ${isRaced ? 'CANCELLED 0:15' : end}`);
      else attempts.push({ name: cwd === dir ? nameOf(id, name) : '', end, steps: [] });
    }
    const found: Result = {};
    for (const { name, end, steps } of attempts.filter(({ name }) => name !== '')) {
      const attempt = `${end} (${steps.join(', ')})`;
      found[name] = name in found ? `${found[name]}, ${attempt}` : attempt;
    }
    if (isAll(found) || Date.now() > giveUp) return found;
  }
}
/** The same for all attempts: Toil counts them, and elements of an array have indices. */
const nameOf = (id: string, name: string): string =>
  `job ${name.replace(/^toil_job_\d+_/, '')}${/_.*$/.exec(id)?.[0] ?? ''}`;

describe.each(WORKFLOWS)('$title', (workflow) => {
  const { missing = false, becomes, onSlurm } = workflow;
  it.skipIf(missing)(
    'on Switchyard',
    async () => {
      const [ours] = both(workflow);
      expect(await ours).toEqual(becomes);
    },
    9 * MINUTES,
  );

  it.skipIf(missing || slurmLacks !== null)(
    'the same on a real Slurm',
    async () => {
      expect(await result('Slurm', workflow)).toEqual(expected('Slurm', workflow));
      for (const [part, text] of Object.entries(onSlurm?.becomes ?? {}))
        expect(text, `${part} is listed as different, and is not: ${onSlurm?.why}`).not.toBe(becomes[part]);
    },
    9 * MINUTES,
  );
});

it.skipIf(!hasSnakemake)(
  'Snakemake submits with the commands of the documentation; a rule that fails is told',
  async () => {
    const dir = folder('generic', {
      Snakefile: `rule all:
    input: "a.txt", "b.txt"
rule good:
    output: "a.txt"
    shell: "echo made > {output}"
rule bad:
    output: "b.txt"
    shell: "exit 3"
`,
    });
    const guide = readFileSync(packagePath('docs', 'slurm-users.md'), 'utf8');
    const [status = '', snakemake = ''] = [
      ...guide.split("## Snakemake without Slurm's commands")[1]!.matchAll(/^```sh\n(.*?)^```/gms),
    ].map(([, block]) => block);
    writeFileSync(join(dir, 'status.sh'), status, { mode: 0o755 });
    const line = snakemake.trim().replaceAll('mem_mb=1000', 'mem_mb=600');
    const { code, output } = await shell(
      'Switchyard',
      dir,
      `${line} --keep-going --max-status-checks-per-second 2`,
    );
    expect(code, output).toBe(1);
    expect(readFileSync(join(dir, 'a.txt'), 'utf8')).toBe('made\n');
    expect(output).toContain('Error in rule bad');
    const endsOf = (found: Result) =>
      Object.values(found)
        .map((end) => end.split(' ')[0])
        .sort();
    const ends = ['COMPLETED', 'FAILED'];
    const isAll = (found: Result): boolean => endsOf(found).join() === ends.join();
    expect(endsOf(await jobsIn('Switchyard', dir, isAll))).toEqual(ends);
  },
  9 * MINUTES,
);
