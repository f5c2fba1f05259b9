/** Scripts and standard input that travel with a job, by the command as a user types it. */
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { endAll, type Service, serve } from './service.js';

const home = mkdtempSync(join(tmpdir(), 'switchyard-script-'));
const here = join(home, 'here');
const PROGRAM = packagePath('bin', 'switchyard.js');
let service: Service;

beforeAll(async () => {
  mkdirSync(here);
  service = await serve(home);
});
afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

/** A line of a shell, in a directory that no job runs in; `sy` is the command. */
function shell(line: string): Promise<{ code: number; stdout: string; stderr: string }> {
  const env = { PATH: process.env.PATH!, HOME: home, SWITCHYARD_HOME: home, SWITCHYARD_URL: service.url };
  const script = `sy() { '${process.execPath}' '${PROGRAM}' "$@"; }\n${line}`;
  return new Promise((resolve) => {
    execFile('bash', ['-c', script], { cwd: here, env }, (error, stdout, stderr) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr }),
    );
  });
}

function write(name: string, ...lines: string[]): void {
  writeFileSync(join(here, name), `${lines.join('\n')}\n`);
  chmodSync(join(here, name), 0o755);
}

/** Without the id. */
const output = ({ stdout }: { stdout: string }): string => stdout.replace(/^(job_\d+\n)+/, '');

describe('a script', () => {
  it('travels with the job, as it was when it was submitted', async () => {
    write(
      'run.sh',
      '#!/bin/bash',
      '#SWITCHYARD --cpus 1 --mem 10M --time 00:05:00',
      'echo "$0 $1 $SWITCHYARD_CPUS_PER_TASK"; exit 4',
    );
    const held = await shell('sy submit --hold run.sh first');
    expect(held.stderr).toBe('run.sh asks for 1 CPU, 10 MB, a limit of 5m00s\n');
    write('run.sh', 'echo another');
    const id = held.stdout.trim();
    const ended = await shell(`sy release ${id} >&2; sy watch ${id} >&2; sy job --output ${id}`);
    expect(ended.stdout).toBe('run.sh first 1\n');
    // As it was kept, and not what is in the file by now.
    expect((await shell(`sy job --script ${id}`)).stdout).toMatch(
      /^#!\/bin\/bash\n#SWITCHYARD .*\necho "\$0 .*exit 4\n$/,
    );
    expect((await shell(`sy job ${id}`)).stdout).toMatch(/^command +\/bin\/bash -c … run\.sh first$/m);
    const job = await service.json<Record<string, unknown>>('job', id);
    expect(job).toMatchObject({
      exitCode: 4,
      name: 'run.sh',
      application: 'run.sh',
      runTimeLimitS: 300,
      memoryMbPerTask: 10,
    });
  });

  it('is overruled by options, and says what it does not understand', async () => {
    write(
      'wrong.sh',
      '#!/bin/sh',
      '#SBATCH --mem=1 --time=5',
      '#SBATCH --tiem=5',
      '#SBATCH --profile=all',
      'echo done',
    );
    const refused = await shell('sy submit wrong.sh');
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain('wrong.sh, line 3: #SBATCH --tiem=5: unknown option --tiem');
    const lenient = await shell('sy submit --lenient --mem 2M --output wrong.sh');
    expect(output(lenient)).toBe('done\n');
    expect(lenient.stderr).toContain('skipped: wrong.sh, line 3');
    expect(lenient.stderr).toContain(
      'wrong.sh: ignored: --profile: the site’s agent determines how usage is measured',
    );
    const [job] = await service.json<Record<string, unknown>[]>('jobs', '--first', '1');
    expect(job).toMatchObject({ memoryMbPerTask: 2, runTimeLimitS: 300 });
  });

  it('of Slurm is an array with a bound, and writes its output to files', async () => {
    const [log, ledger] = [join(here, 'out'), join(here, 'ledger')];
    write(
      'sweep.sh',
      '#!/bin/bash',
      `#SBATCH -J sweep --array=1,3,5-9:2%1 -o ${log}-%A_%a.txt`,
      `echo "begin $SLURM_ARRAY_TASK_ID" >>${ledger}; sleep 0.2; echo end >>${ledger}`,
      'echo "$SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_COUNT $SLURM_JOB_NAME"',
    );
    const swept = await shell('sy submit --wait sweep.sh');
    expect(swept.code).toBe(0);
    const first = /job_(\d+)/.exec(swept.stdout)![1];
    for (const index of [1, 3, 5, 7, 9])
      expect(readFileSync(`${log}-${first}_${index}.txt`, 'utf8')).toBe(`${first} ${index} 5 sweep\n`);
    expect(readFileSync(ledger, 'utf8')).toMatch(/^(begin \d\nend\n){5}$/);
  });

  it('of Switchyard may do the same, keep files and be retried', async () => {
    const log = join(here, 'own');
    write(
      'own.sh',
      '#!/bin/sh',
      `#SWITCHYARD --name own --output ${log}-%x.txt --retries 1 --retry-backoff 0 --keep a`,
      'echo "run $SWITCHYARD_EPOCH" | tee a b; exit $((SWITCHYARD_EPOCH < 2))',
    );
    const { code, stdout } = await shell(
      'sy submit --keep b --wait own.sh; sy job --fetch got $(sy jobs --first 1 --json | grep -o "job_[0-9]*" | head -1) >&2; cat got/a got/b',
    );
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/run 2\nrun 2\n$/) });
    expect(readFileSync(`${log}-own.txt`, 'utf8')).toBe('run 2\n');
  });

  it('is the site’s where it is asked for, and refused where it is too long', async () => {
    const there = await shell('sy submit --wait --no-ship ./run.sh');
    expect(there.code).not.toBe(0);
    writeFileSync(join(here, 'long.sh'), `#!/bin/sh\n# ${'x'.repeat(140_000)}\n`);
    const long = await shell('sy submit long.sh');
    expect(long).toMatchObject({ code: 2, stdout: '' });
    expect(long.stderr).toMatch(/long\.sh has 140013 bytes; accepted: up to 131071; copy the large part/);
  });
});

describe('standard input', () => {
  it('is shipped from a file, and from a pipe where that is said', async () => {
    writeFileSync(join(here, 'in.sh'), 'echo "from $0 $1"\nexit 5\n');
    const file = await shell('sy submit --output -- bash -s one <in.sh');
    expect([file.code, output(file)]).toEqual([5, 'from bash one\n']);
    const pipe = await shell('(sleep 0.5; echo "a \'b\'") | sy submit --stdin --output -- cat');
    expect(output(pipe)).toBe("a 'b'\n");
    const left = await shell('echo lost | sy submit --output -- cat');
    expect([left.code, output(left)]).toEqual([0, '']);
    expect(left.stderr).toContain(
      'standard input is a pipe and is not sent with the job; --stdin sends it\n',
    );
  });

  it('is left alone where somebody else reads it, and refused where it is too long', async () => {
    writeFileSync(join(here, 'list'), 'one\ntwo\nthree\n');
    const loop = await shell('while read -r word; do sy submit --hold -- echo "$word"; done <list');
    expect(loop.stdout.trim().split('\n')).toHaveLength(3);
    const long = await shell('head -c 140000 /dev/zero | tr "\\0" x | sy submit --stdin -- cat');
    expect(long).toMatchObject({ code: 2, stdout: '' });
    expect(long.stderr).toContain('standard input has more than 131071 bytes; provide it as a dataset');
  });
});
