/**
 * A real Slurm with accounting (slurmdbd), QOS that preempt, and slurmrestd: what goes wrong with these, by its commands and by REST; and what
 * adapters have to do, by REST and by Grid Engine (docs/adapters/gridengine.py). Skipped where they or root are missing.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  Adapter,
  type Check,
  conformance,
  type LocalScheduler,
  Slurm,
  SlurmRest,
} from '../../src/agent/index.js';
import { Accounts } from '../../src/agent/process/accounts.js';
import { hostEnvironment } from '../../src/platform/environment.js';
import { packagePath } from '../../src/platform/paths.js';
import { PATIENCE_MS } from '../support/patience.js';
import { accountsLack, gridEngineLacks, restLacks } from '../support/slurm.js';
import { options, slurmSite } from './site.js';

const lacks = restLacks() ?? accountsLack();
if (lacks !== null) console.warn(`test/slurm/accounting is skipped: ${lacks}`);
const engineLacks = gridEngineLacks();
if (engineLacks !== null) console.warn(`test/slurm/accounting skips Grid Engine: ${engineLacks}`);

const MAX_JOBS = 60;

/** The checks that do not hold, and those that were not tried. */
async function broken(scheduler: LocalScheduler, directory: string): Promise<[Check[], string[]]> {
  const checks: Check[] = [];
  mkdirSync(directory, { recursive: true });
  await conformance(scheduler, { directory, patienceMs: PATIENCE_MS }, (check) => checks.push(check));
  const skipped = checks.filter((check) => check.skipped !== null).map(({ name }) => name);
  expect(checks.length).toBeGreaterThan(10);
  return [checks.filter(({ problem }) => problem !== null), skipped];
}

describe.skipIf(lacks !== null)('Slurm with accounting', { timeout: 6 * PATIENCE_MS }, () => {
  const { dir, cluster, environment, cli, slurm, open, run, until, reported, ...site } = slurmSite({
    SLURM_WITH: 'rest accounts',
    SLURM_EXTRA: `MaxJobCount=${MAX_JOBS}\nMinJobAge=5`,
  });
  const { end, localId, ran, block, saved, ledger, counted } = site;
  const tokenFile = join(dir, 'token');

  const rest = (more: { hasAccounts?: boolean } = {}): SlurmRest => {
    writeFileSync(tokenFile, cli('scontrol', 'token', 'username=root', 'lifespan=3600'));
    const address = `unix:${join(cluster, 'rest', 'socket')}`;
    // Named: the API of Slurm 23.11 to 24.11 does not say which is the default.
    return new SlurmRest({ address, tokenFile, partition: 'batch', account: null, ...more });
  };

  it('by REST does what adapters have to do', async () => {
    expect(await broken(rest(), join(dir, 'conformance'))).toEqual([[], []]);
  });

  it('by REST: what is refused ends in its words, nodes and arrays are said, and each run runs once', async () => {
    const runner = await open('agent', rest());
    const nodes = run('echo "$SLURM_JOB_NODELIST"', { nodes: ['n2'] });
    const refused = run('true', { resourcesPerTask: [{ kind: 'gpu', amount: 9 }] });
    const many = Array.from({ length: 20 }, (_, i) => run(`exit ${i % 3}`));
    for (const one of [nodes, refused, ...many]) runner.start(one);
    expect((await end(runner, nodes)).outputs.map(({ text }) => text).join('')).toBe('n2\n');
    const words = await end(runner, refused);
    expect(['LAUNCH_FAILED', 'MACHINE_FAILED']).toContain(words.cause);
    expect([words.message, ran(refused)]).toEqual([
      expect.stringMatching(/configuration|BadConstraints|Config/),
      0,
    ]);
    for (const [i, one] of many.entries()) {
      expect((await end(runner, one)).exitCode).toBe(i % 3);
      expect(ran(one)).toBe(1);
    }
    writeFileSync(tokenFile, 'nonsense');
    await until(runner, 'a problem', () => runner.problem);
    const later = run('true');
    runner.start(later);
    rest();
    expect((await end(runner, later)).cause).toBe('EXITED_ZERO');
    expect(ran(later)).toBe(1);
  });

  it('by REST, slurmrestd and then slurmctld are down: nothing ends, and what waits is handed over later', async () => {
    const runner = await open('agent', rest());
    const [before, later] = [run('sleep 2'), run('true')];
    runner.start(before);
    await reported(runner, 'STARTED', before);
    slurm('kill', 'slurmrestd');
    runner.start(later);
    expect((await end(runner, before)).cause).toBe('EXITED_ZERO');
    expect(await until(runner, 'a problem', () => runner.problem)).toContain('slurmrestd');
    slurm('kill');
    slurm('start');
    expect((await end(runner, later)).cause).toBe('EXITED_ZERO');
    expect([ran(before), ran(later)]).toEqual([1, 1]);
  });

  it('has lost its slurmdbd: runs begin, end, and are handed over again when slurmctld forgets them', async () => {
    const runner = await open();
    const long = await block(runner);
    const waits = run('true');
    runner.start(waits);
    await localId(runner, waits);
    slurm('kill', 'slurmdbd');
    expect(() => cli('sacct', '-n')).toThrow();
    const short = run('exit 3');
    runner.cancel(long);
    runner.start(short);
    expect(await end(runner, short)).toMatchObject({ cause: 'EXITED_NONZERO', exitCode: 3 });
    expect((await end(runner, waits)).cause).toBe('EXITED_ZERO');
    expect(runner.problem).toBe(null);
    expect([ran(long), ran(waits), ran(short)]).toEqual([1, 1, 1]);
  });

  it('has forgotten a run that its books call PENDING for ever: it is handed over again', async () => {
    const runner = await open();
    const long = await block(runner);
    const restore = await saved(runner, long);
    const waits = run('true');
    runner.start(waits);
    const id = await localId(runner, waits);
    const books = (): string => cli('sacct', '-n', '-X', '-D', '-P', '-j', id, '-o', 'state,jobname');
    const forgotten = `PENDING|${cli('squeue', '-h', '-j', id, '-o', '%j').trim()}`;
    await until(runner, 'the books to have it', () => (books().includes(forgotten) ? true : null));
    restore();
    slurm('start');
    expect(cli('squeue', '-h', '-t', 'all', '-o', '%i').split('\n')).not.toContain(id);
    expect(books()).toContain(forgotten);
    runner.cancel(long);
    expect((await end(runner, waits)).cause).toBe('EXITED_ZERO');
    expect((await end(runner, long)).cause).toBe('CANCELLED_BY_USER');
    expect([ran(long), ran(waits)]).toEqual([1, 1]);
  });

  it('preempts a run: it is LOST, in the words of Slurm, and does not begin again', async () => {
    const runner = await open();
    const long = await block(runner);
    cli(
      'sbatch',
      ...['--qos=high', '--nodes=3', '--ntasks=3', '--cpus-per-task=8', '--time=1'],
      ...['--output=/dev/null', '--wrap=sleep 3'],
    );
    expect(await end(runner, long)).toMatchObject({
      cause: 'LOST',
      message: expect.stringContaining('PREEMPTED'),
    });
    await until(runner, 'an empty queue', () => (cli('squeue', '-h', '-t', 'pd,r') === '' ? true : null));
    expect(ran(long)).toBe(1);
  });

  it('by REST runs jobs as the accounts of their users, by the token of root', async () => {
    cli('sacctmgr', '-i', 'add', 'user', 'nobody', 'account=science');
    const file = join(dir, 'accounts');
    writeFileSync(file, 'ann = nobody\n');
    for (const path of [dir, cluster]) chmodSync(path, 0o755);
    writeFileSync(ledger, '', { flag: 'a' });
    chmodSync(ledger, 0o666);
    const list = { file, launcher: null, environment: hostEnvironment(), warn: () => {} };
    const runner = await open('agent', rest({ hasAccounts: true }), new Accounts(list));
    const [own, cancelled, foreign] = [run('id -un; pwd'), run('sleep 600'), run('true', { user: 'bob' })];
    const many = Array.from({ length: 10 }, (_, i) => run(`exit ${i % 3}`));
    for (const one of [own, cancelled, foreign, ...many]) runner.start(one);
    await reported(runner, 'STARTED', cancelled);
    expect(cli('squeue', '-h', '-t', 'r', '-o', '%u')).toContain('nobody');
    runner.cancel(cancelled);
    const texts = (await end(runner, own)).outputs.map(({ text }) => text).join('');
    expect(texts).toMatch(/^nobody\n.*\/work\n$/);
    expect((await end(runner, cancelled)).cause).toBe('CANCELLED_BY_USER');
    expect((await end(runner, foreign)).message).toContain('the user bob has no account');
    for (const [i, one] of many.entries()) {
      expect((await end(runner, one)).exitCode).toBe(i % 3);
      expect(ran(one)).toBe(1);
    }
    await until(runner, 'an empty queue', () => (cli('squeue', '-h', '-t', 'pd,r') === '' ? true : null));
  });

  it.each(['commands', 'REST'])('gives runs the QOS that their terms name, by %s', async (how) => {
    const byQos = (qos: string) => {
      const scheduler = how === 'REST' ? rest() : new Slurm(options(environment()));
      const terms = () => ({ partition: null, account: 'science', qos });
      return open(qos, scheduler, null, { terms });
    };
    const runner = await byQos('high');
    const one = run('sleep 600');
    runner.start(one);
    const id = await localId(runner, one);
    expect(cli('squeue', '-h', '-j', id, '-o', '%q|%a').trim()).toBe('high|science');
    runner.cancel(one);
    await end(runner, one);
    runner.close();
    const unknown = await byQos('other');
    const refused = run('true');
    unknown.start(refused);
    expect(await end(unknown, refused)).toMatchObject({
      ...{ cause: 'LAUNCH_FAILED', message: expect.stringMatching(/Invalid qos/i) },
    });
    expect(ran(refused)).toBe(0);
  });

  it('tells what Slurm has measured of runs, of all tasks, by few questions for many', async () => {
    const calls = counted('sacct');
    const runner = await open('agent', new Slurm(options(environment())), null, { measuredFromMs: 0 });
    const burn = 'head -c 300000000 /dev/zero | md5sum';
    const memory = run('head -c 60000000 /dev/zero | tail -c 60000000 | (sleep 3; wc -c)', {
      memoryMbPerTask: 500,
    });
    const tasks = run(burn, { tasks: 2, launch: 'EVERY_TASK' });
    const many = Array.from({ length: 20 }, (_, i) => run('true', { memoryMbPerTask: 20 + i }));
    for (const one of [memory, tasks, ...many]) runner.start(one);
    const large = await end(runner, memory);
    expect(large).toMatchObject({ cpuMethod: 'PROC', peakMemoryMethod: 'SCHEDULER' });
    expect(large.peakMemoryMb).toBeGreaterThan(50);
    const both = await end(runner, tasks);
    expect(both).toMatchObject({ cause: 'EXITED_ZERO', cpuMethod: 'SCHEDULER' });
    expect(both.cpuS).toBeGreaterThan(0.2);
    for (const one of many) expect((await end(runner, one)).cause).toBe('EXITED_ZERO');
    expect(calls().length).toBeLessThan(20);
  });

  it('has a full queue: said so, and what waits is handed over when it is not', async () => {
    const runner = await open();
    const filler = ['--job-name=filler', '--hold', `--array=0-${MAX_JOBS - 6}`, '--output=/dev/null'];
    await until(runner, 'an empty queue', () => (cli('squeue', '-h', '-t', 'all') === '' ? true : null));
    cli('sbatch', ...filler, '--wrap=true');
    // Their needs differ: each is a submission of its own.
    const all = Array.from({ length: 6 }, (_, i) => run('sleep 60', { memoryMbPerTask: 10 + i }));
    for (const one of all) runner.start(one);
    expect(await until(runner, 'a problem', () => runner.problem)).toContain('Slurm does not accept jobs');
    cli('scancel', '--name=filler');
    for (const one of all) await reported(runner, 'STARTED', one);
    for (const one of all) runner.cancel(one);
    for (const one of all) {
      expect((await end(runner, one)).cause).toBe('CANCELLED_BY_USER');
      expect(ran(one)).toBe(1);
    }
  });

  it('purges runs before anybody looks: the ends that they wrote count', async () => {
    const first = await open();
    const one = run('sleep 1; exit 4');
    first.start(one);
    const id = await localId(first, one);
    await reported(first, 'STARTED', one);
    first.close();
    for (
      const deadline = Date.now() + PATIENCE_MS;
      cli('squeue', '-h', '-t', 'all', '-o', '%i').includes(id);
    )
      if (Date.now() > deadline) throw new Error('it is not purged');
      else await sleep(500);
    expect(await end(await open(), one)).toMatchObject({ cause: 'EXITED_NONZERO', exitCode: 4 });
    expect(ran(one)).toBe(1);
  });
});

describe.skipIf(engineLacks !== null)('Grid Engine', { timeout: 6 * PATIENCE_MS }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'sy-ge-'));
  const engine = (...words: string[]): void =>
    void execFileSync(packagePath('test', 'support', 'gridengine.sh'), [join(dir, 'ge'), ...words], {
      stdio: 'ignore',
    });
  beforeAll(() => {
    mkdirSync(join(dir, 'ge'));
    // Below those that the system gives to connections.
    engine('start', String(32_000 + (process.pid % 300) * 2));
  });
  afterAll(() => {
    engine('stop');
    rmSync(dir, { recursive: true, force: true });
  });

  it('by its adapter does what adapters have to do', async () => {
    const program = join(dir, 'adapter');
    const adapter = packagePath('docs', 'adapters', 'gridengine.py');
    writeFileSync(program, `#!/bin/sh\n. ${join(dir, 'ge', 'env')}\nexec python3 ${adapter} "$@"\n`, {
      mode: 0o700,
    });
    const opened = await Adapter.open({ program, environment: hostEnvironment() });
    expect(await broken(opened, dir)).toEqual([
      [],
      [
        'each task of a job is started',
        'a job of several parts runs once, and each task knows its part',
        'a job of several parts is listed as one job, and canceled as a whole',
      ],
    ]);
  });
});
