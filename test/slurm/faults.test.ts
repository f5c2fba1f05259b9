/**
 * What goes wrong at a site with Slurm, one fault a test, by a real Slurm (test/support/slurm.sh) and the agent's runner: each run begins at most
 * once, none is lost, and its end says what happened. Skipped where Slurm or root is missing.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  constants,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type ExternalRunner, Slurm } from '../../src/agent/index.js';
import { Accounts } from '../../src/agent/process/accounts.js';
import type { Assignment } from '../../src/agent/runner.js';
import { hostEnvironment } from '../../src/platform/environment.js';
import { hang, hangLacks } from '../support/hang.js';
import { PATIENCE_MS } from '../support/patience.js';
import { slurmLacks } from '../support/slurm.js';
import { options, slurmSite } from './site.js';

const lacks = slurmLacks();
if (lacks !== null) console.warn(`test/slurm/faults is skipped: ${lacks}`);
const cannotHang = hangLacks();
if (cannotHang !== null) console.warn(`test/slurm/faults lacks a file system that hangs: ${cannotHang}`);

/** Slurm whose nodes have a clock of their own. */
class OtherClock extends Slurm {
  override readonly prologue: string;

  constructor(environment: Record<string, string>, shift: string) {
    super(options(environment));
    this.prologue = `date() { command date -d '${shift}' "$@"; }\n${new Slurm(options({})).prologue}`;
  }
}

describe.skipIf(lacks !== null)('Slurm', { timeout: 4 * PATIENCE_MS }, () => {
  const site = slurmSite();
  const {
    dir,
    cluster,
    conf,
    ledger,
    bin,
    environment,
    cli,
    slurm,
    forget,
    saved,
    resume,
    instead,
    counted,
    open,
    run,
    until,
    reported,
    end,
    written,
    localId,
    ran,
    block,
    reports,
  } = site;

  it('is down: nothing ends, what ran meanwhile is reported, and what waits is handed over later', async () => {
    const runner = await open();
    const [before, later] = [run('sleep 2'), run('true')];
    runner.start(before);
    await reported(runner, 'STARTED', before);
    slurm('kill');
    runner.start(later);
    expect((await end(runner, before)).cause).toBe('EXITED_ZERO');
    expect(await until(runner, 'a problem', () => runner.problem)).toContain('Slurm does not');
    slurm('start');
    expect((await end(runner, later)).cause).toBe('EXITED_ZERO');
    await until(runner, 'no problem', () => (runner.problem === null ? true : null));
    expect([ran(before), ran(later)]).toEqual([1, 1]);
  });

  it('is killed when it has acknowledged: each run runs once', async () => {
    const runner = await open();
    const all = Array.from({ length: 10 }, () => run('true'));
    for (const one of all) runner.start(one);
    await localId(runner, all[0]!);
    slurm('kill');
    slurm('start');
    for (const one of all) {
      const looks = setInterval(resume, 1_000);
      expect((await end(runner, one)).cause).toBe('EXITED_ZERO');
      clearInterval(looks);
      expect(ran(one)).toBe(1);
    }
  });

  it('is restored without its state: what waited is handed over again, what ran is lost, what ended has ended', async () => {
    const runner = await open();
    const over = run('sleep 1; exit 3');
    runner.start(over);
    await reported(runner, 'STARTED', over);
    const long = await block(runner);
    const waits = run('true');
    runner.start(waits);
    await localId(runner, waits);
    forget();
    const looks = setInterval(resume, 1_000);
    expect(await end(runner, over)).toMatchObject({ cause: 'EXITED_NONZERO', exitCode: 3 });
    expect((await end(runner, waits)).cause).toBe('EXITED_ZERO');
    // Its job is killed as an orphan: its script may still say that it was, but not why.
    expect((await end(runner, long)).cause).toBe('LOST');
    clearInterval(looks);
    expect([ran(over), ran(long), ran(waits)]).toEqual([1, 1, 1]);
  });

  it('is restored from before a run began, and kills it when it starts it again: lost, whatever is said of that start', async () => {
    const runner = await open();
    const long = await block(runner);
    const one = run('sleep 600');
    runner.start(one);
    await localId(runner, one);
    const restore = await saved(runner, one);
    runner.cancel(long);
    await reported(runner, 'STARTED', one);
    // Times of Slurm are to the second.
    await sleep(3_000);
    restore();
    // As where an element of an array cannot start on its node, for which Slurm cancels the others.
    instead('squeue', '"$real" "$@" | sed "s/|FAILED|/|CANCELLED|/"');
    slurm('start');
    const looks = setInterval(resume, 1_000);
    expect((await end(runner, one)).cause).toBe('LOST');
    clearInterval(looks);
    expect(ran(one)).toBe(1);
  });

  it('prints an error though it accepted: found by name, and submitted once', async () => {
    instead(
      'sbatch',
      `echo x >>${dir}/calls; "$real" "$@" >/dev/null; echo "Socket timed out on send/recv operation" >&2; exit 1`,
    );
    const runner = await open();
    const one = run('sleep 1');
    runner.start(one);
    expect((await end(runner, one)).cause).toBe('EXITED_ZERO');
    expect(ran(one)).toBe(1);
    expect(readFileSync(join(dir, 'calls'), 'utf8')).toBe('x\n');
  });

  it('takes no jobs while its queue is full: said so, and handed over later', async () => {
    const full = join(dir, 'full');
    writeFileSync(full, '');
    instead(
      'sbatch',
      `[ ! -e ${full} ] || { echo "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying" >&2; exit 1; }; exec "$real" "$@"`,
    );
    const runner = await open();
    const one = run('true');
    runner.start(one);
    expect(await until(runner, 'a problem', () => runner.problem)).toContain('Slurm does not accept jobs');
    rmSync(full);
    expect((await end(runner, one)).cause).toBe('EXITED_ZERO');
    await until(runner, 'no problem', () => (runner.problem === null ? true : null));
  });

  it('refuses a run for what it asks for: ended in the words of Slurm, and not tried again', async () => {
    const runner = await open();
    const one = run('true', { resourcesPerTask: [{ kind: 'gpu', amount: 9 }] });
    runner.start(one);
    expect(await end(runner, one)).toMatchObject({
      cause: 'LAUNCH_FAILED',
      message: expect.stringContaining('Requested node configuration is not available'),
    });
    // As Slurm 22.05 says it where a QOS has DenyOnLimit: for each limit the same, but for the first line.
    const limit = (name: string): void =>
      instead(
        'sbatch',
        `echo "sbatch: error: ${name}" >&2; echo "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)" >&2; exit 1`,
      );
    limit('QOSMaxWallDurationPerJobLimit');
    const long = run('true');
    runner.start(long);
    expect(await end(runner, long)).toMatchObject({
      cause: 'LAUNCH_FAILED',
      message: expect.stringContaining('QOSMaxWallDurationPerJobLimit'),
    });
    expect(runner.problem).toBe(null);
    limit('QOSMaxSubmitJobPerUserLimit');
    const waits = run('true');
    runner.start(waits);
    expect(await until(runner, 'a problem', () => runner.problem)).toContain('QOSMaxSubmitJobPerUserLimit');
    rmSync(join(bin, 'sbatch'));
    expect((await end(runner, waits)).cause).toBe('EXITED_ZERO');
    expect([ran(one), ran(long), ran(waits)]).toEqual([0, 0, 1]);
  });

  it.each(['its administrator says so', 'its slurmd is killed'])(
    'loses a node, as %s: its run is LOST, and a node that stays away says so',
    async (how) => {
      const runner = await open();
      const one = run('sleep 600');
      runner.start(one);
      const { local } = (await reported(runner, 'STARTED', one)) as {
        local?: { nodes: readonly string[] | null };
      };
      const node = local?.nodes?.[0] as string;
      if (how.includes('killed')) slurm('kill', node);
      else cli('scontrol', 'update', `nodename=${node}`, 'state=down', 'reason=gone');
      expect(await end(runner, one)).toMatchObject({
        ...{ cause: 'LOST', message: expect.stringContaining('NODE_FAIL') },
      });
      expect(ran(one)).toBe(1);
      // It comes back by itself where its slurmd lives.
      if (!how.includes('killed')) return;
      const of = () => runner.capacity.nodes.find(({ name }) => name === node)?.problem;
      expect(await until(runner, 'the problem of the node', of)).toMatch(/^Slurm: down/i);
    },
  );

  it('gives ids a second time: what others have under these is neither taken for ours nor ended', async () => {
    const first = await open();
    const over = run('sleep 1; exit 4');
    first.start(over);
    await reported(first, 'STARTED', over);
    const long = await block(first);
    const [waits, unwanted] = [run('true'), run('true')];
    for (const one of [waits, unwanted]) first.start(one);
    const ours = [over, long, waits, unwanted];
    const ids: string[] = [];
    for (const one of ours) ids.push(await localId(first, one));
    first.close();
    forget(Math.min(...ids.map(Number)));
    const foreign: string[] = [];
    while (!ids.every((id) => foreign.includes(id))) {
      const id = cli('sbatch', '--parsable', '--hold', '--job-name=theirs', '-o', '/dev/null', '--wrap=true');
      foreign.push(id.trim());
    }
    const second = await open();
    second.cancel(unwanted);
    expect((await end(second, unwanted)).cause).toBe('CANCELLED_BY_USER');
    expect(await end(second, over)).toMatchObject({ cause: 'EXITED_NONZERO', exitCode: 4 });
    const looks = setInterval(resume, 1_000);
    expect((await end(second, long)).cause).toBe('LOST');
    expect((await end(second, waits)).cause).toBe('EXITED_ZERO');
    clearInterval(looks);
    expect(ours.map(ran)).toEqual([1, 1, 1, 0]);
    const theirs = cli('squeue', '-h', '--name=theirs', '-o', '%i %T').trim().split('\n').sort();
    expect(theirs).toEqual(foreign.map((id) => `${id} PENDING`).sort());
  });

  it('is told to requeue a run: it does not begin again', async () => {
    const runner = await open();
    const one = run('sleep 600');
    runner.start(one);
    await reported(runner, 'STARTED', one);
    const id = await localId(runner, one);
    cli('scontrol', 'update', `jobid=${id}`, 'requeue=1');
    cli('scontrol', 'requeue', id);
    // It waits two minutes by itself.
    await until(runner, 'its second start', () => {
      spawnSync('scontrol', ['update', `jobid=${id}`, 'starttime=now'], {
        env: { ...process.env, SLURM_CONF: conf },
      });
      return reports.find(({ phase }) => phase === 'ENDED');
    });
    expect(['LOST', 'SIGNALLED']).toContain((await end(runner, one)).cause);
    expect(ran(one)).toBe(1);
  });

  it('holds a waiting run: it says so, and the run goes on when it is released', async () => {
    const runner = await open();
    const long = await block(runner);
    const one = run('true');
    runner.start(one);
    const id = await localId(runner, one);
    cli('scontrol', 'hold', id);
    const said = await until(runner, 'its words', () =>
      reports.findLast((report) => report.phase === 'ACCEPTED' && report.local?.state?.includes('JobHeld')),
    );
    expect(said).toMatchObject({ jobId: one.jobId, local: { id, state: 'PENDING (JobHeldAdmin)' } });
    runner.cancel(long);
    await end(runner, long);
    expect(ran(one)).toBe(0);
    cli('scontrol', 'release', id);
    expect((await end(runner, one)).cause).toBe('EXITED_ZERO');
  });

  it('is told to cancel a run that waits: tried again by the service; and one that runs: it has failed', async () => {
    const runner = await open();
    const long = await block(runner);
    const waits = run('true');
    runner.start(waits);
    cli('scancel', await localId(runner, waits));
    expect(await end(runner, waits)).toMatchObject({
      cause: 'MACHINE_FAILED',
      message: expect.stringContaining('CANCELLED'),
    });
    cli('scancel', await localId(runner, long));
    expect((await end(runner, long)).cause).toBe('SIGNALLED');
    expect([ran(waits), ran(long)]).toEqual([0, 1]);
  });

  it('is asked for runs back: what waits never begins, also if the agent dies then, and what runs goes on', async () => {
    const first = await open();
    const long = await block(first);
    const [waits, also] = [run('true'), run('true')];
    for (const one of [waits, also]) first.start(one);
    for (const one of [waits, also]) await localId(first, one);
    first.recall(long);
    first.recall(waits);
    expect((await end(first, waits)).cause).toBe('REQUEUED');
    first.recall(also);
    first.close();
    const second = await open();
    expect((await end(second, also)).cause).toBe('REQUEUED');
    await until(second, 'an empty queue', () => (cli('squeue', '-h', '-t', 'pd') === '' ? true : null));
    expect(reports.filter(({ phase, jobId }) => phase === 'ENDED' && jobId === long.jobId)).toEqual([]);
    second.cancel(long);
    expect((await end(second, long)).cause).toBe('CANCELLED_BY_USER');
    expect([ran(long), ran(waits), ran(also)]).toEqual([1, 0, 0]);
  });

  it('has purged a run before anybody looked: the end that the run wrote counts', async () => {
    const first = await open();
    const one = run('sleep 1; exit 4');
    first.start(one);
    await reported(first, 'STARTED', one);
    first.close();
    await sleep(2_000);
    forget();
    const second = await open();
    expect(await end(second, one)).toMatchObject({ cause: 'EXITED_NONZERO', exitCode: 4 });
    expect(ran(one)).toBe(1);
  });

  it.each(['+1 hour', '-1 hour'])(
    'has nodes whose clock is away by %s: limits and times are right',
    async (shift) => {
      const begunMs = Date.now();
      const runner = await open('agent', new OtherClock(environment(), shift));
      const [one, limited] = [run('sleep 1'), run('sleep 100', { runTimeLimitS: 1 })];
      runner.start(one);
      runner.start(limited);
      expect((await end(runner, limited)).cause).toBe('RUN_TIME_LIMIT');
      expect((await end(runner, one)).cause).toBe('EXITED_ZERO');
      const times = reports.map(({ atMs }) => atMs).sort((a, b) => a - b);
      expect(times[0]).toBeGreaterThanOrEqual(begunMs);
      expect(times.at(-1)).toBeLessThanOrEqual(Date.now());
    },
  );

  it('runs a command that ignores SIGTERM: it is killed at its limit, and for that', async () => {
    const runner = await open();
    const one = run('trap "" TERM; while :; do sleep 1; done', { runTimeLimitS: 1, killGraceS: 1 });
    runner.start(one);
    expect((await end(runner, one)).cause).toBe('RUN_TIME_LIMIT');
  });

  it('is asked for all runs at once, no more often than it is told, as it counts itself', async () => {
    const rpcs = (): number =>
      Number(/REQUEST_JOB_INFO\s*\(\s*\d+\)\s*count:(\d+)/.exec(cli('sdiag'))?.[1] ?? 0);
    const programs = ['squeue', 'sinfo', 'sacct', 'scontrol', 'sbatch', 'scancel'];
    const runner = await open();
    await block(runner);
    const waits = Array.from({ length: 30 }, (_, i) => run('true', { memoryMbPerTask: 20 + i }));
    for (const one of waits) runner.start(one);
    for (const one of waits) await localId(runner, one);
    const calls = counted(...programs);
    const [before, beganMs] = [rpcs(), performance.now()];
    await sleep(12_000);
    const [after, elapsedS] = [rpcs(), (performance.now() - beganMs) / 1000];
    const made = calls().map(({ words }) => words);
    const lists = made.filter((call) => call.startsWith('squeue -h -r -t all'));
    // One each second here, with what waits of anybody in some.
    expect(lists.length).toBeGreaterThan(1);
    expect(lists.length).toBeLessThanOrEqual(elapsedS + 1);
    expect(made.filter((call) => call.startsWith('squeue') && !lists.includes(call))).toEqual([]);
    expect(made.filter((call) => call.startsWith('sinfo')).length).toBeLessThanOrEqual(elapsedS / 10 + 2);
    expect(made.filter((call) => !/^(squeue|sinfo|scontrol show)/.test(call))).toEqual([]);
    // What slurmctld counts is what was asked.
    expect(after - before).toBeLessThanOrEqual(lists.length + 1);
    for (const one of waits) runner.cancel(one);
    for (const one of waits) await end(runner, one);
  });

  it('counts less than a call of the agent each second, however many runs wait', async () => {
    // Of everybody: nobody else asks it here but this test.
    const counted = (): number =>
      [...cli('sdiag').matchAll(/^\s*REQUEST_\w+\s*\(\s*\d+\)\s*count:(\d+)/gm)].reduce(
        (sum, [, times]) => sum + Number(times),
        0,
      );
    cli('scontrol', 'update', 'nodename=n[1-3]', 'state=drain', 'reason=test');
    const asOften = { pollMs: 1_000, listMs: 5_000 };
    const runner = await open('agent', new Slurm(options(environment())), null, asOften);
    const all = Array.from({ length: 2_000 }, () => run('true'));
    for (const one of all) runner.start(one);
    await until(runner, 'all to be accepted', () =>
      reports.filter(({ phase }) => phase === 'ACCEPTED').length === all.length ? true : null,
    );
    await until(runner, 'all to be known as waiting', () =>
      runner.capacity.waiting.length === all.length ? true : null,
    );
    const [before, beganMs] = [counted(), performance.now()];
    await sleep(60_000);
    const [after, elapsedS] = [counted(), (performance.now() - beganMs) / 1000];
    expect(after - before).toBeLessThanOrEqual(elapsedS);
    expect(runner.capacity.waiting).toHaveLength(all.length);
    runner.close();
  });

  it('is slow: asked so seldom that it has four fifths of its time for others', async () => {
    const runner = await open();
    const long = await block(runner);
    const calls = join(dir, 'slow');
    instead('squeue', `case "$*" in *all*) echo x >>${calls}; sleep 1 ;; esac; exec "$real" "$@"`);
    const beganMs = performance.now();
    await sleep(16_000);
    const asked = readFileSync(calls, 'utf8').split('\n').length - 1;
    expect(asked).toBeGreaterThan(0);
    expect(asked).toBeLessThanOrEqual((performance.now() - beganMs) / 5_000 + 1);
    rmSync(join(bin, 'squeue'));
    runner.cancel(long);
    await end(runner, long);
  });

  it('gets no more submissions in a second than it is told', async () => {
    const calls = counted('sbatch');
    const runner = await open('agent', new Slurm(options(environment())), null, { submissionsPerS: 2 });
    const all = Array.from({ length: 8 }, (_, i) => run('true', { memoryMbPerTask: 20 + i }));
    for (const one of all) runner.start(one);
    for (const one of all) await end(runner, one);
    const times = calls().map(({ atMs }) => atMs);
    expect(times).toHaveLength(8);
    // The last begins 3.5 s after the first; how long a shell takes to start is another matter.
    expect(Math.max(...times) - Math.min(...times)).toBeGreaterThan(2_500);
  });

  it('counts licenses that runs ask for: the second waits until the first has ended', async () => {
    const runner = await open();
    const [first, second] = [
      run('sleep 600', { pools: [{ kind: 'matlab', amount: 1 }] }),
      run('true', { pools: [{ kind: 'matlab', amount: 1 }] }),
    ];
    runner.start(first);
    await reported(runner, 'STARTED', first);
    runner.start(second);
    const id = await localId(runner, second);
    expect(cli('squeue', '-h', '-t', 'r', '-o', '%W').trim()).toBe('matlab:1');
    await until(runner, 'its reason', () =>
      cli('squeue', '-h', '-j', id, '-o', '%r').trim() === 'Licenses' ? true : null,
    );
    runner.cancel(first);
    expect((await end(runner, second)).cause).toBe('EXITED_ZERO');
    expect([ran(first), ran(second)]).toEqual([1, 1]);
  });

  it('gives runs what a login of its account has, or else has the node find it', async () => {
    writeFileSync(join(dir, '.profile'), 'export OF_A_LOGIN="one, two"');
    const said = async (shell: string): Promise<string> => {
      const login = { username: 'root', homedir: dir, shell };
      const runner = await open(`agent${shell}`, new Slurm({ ...options(environment()), login }));
      const one = run('echo "$OF_A_LOGIN:$USER"');
      runner.start(one);
      const { cause, outputs } = await end(runner, one);
      expect(cause).toBe('EXITED_ZERO');
      return outputs.map(({ text }) => text).join('');
    };
    expect(await said('/bin/sh')).toBe('one, two:root\n');
    expect(await said('/bin/false')).toBe(':root\n');
  });

  it('keeps what a run leaves, as it left it', async () => {
    const kept: string[] = [];
    const runner = await open('agent', undefined, null, {
      keep: async ({ directory, outputs, well }) => {
        for (const { path } of outputs) kept.push(`${well} ${readFileSync(join(directory, path), 'utf8')}`);
        return null;
      },
    });
    const one = run('seq 1 10000 >result', { outputs: [{ path: 'result', dataset: null }] });
    runner.start(one);
    expect((await end(runner, one)).cause).toBe('EXITED_ZERO');
    expect(kept).toEqual([`true ${Array.from({ length: 10_000 }, (_, i) => `${i + 1}\n`).join('')}`]);
  });

  it('names the hosts of all tasks to a command that starts these itself, as mpirun does', async () => {
    const runner = await open();
    const one = run(
      'rank=0; for host in $(cat "$SWITCHYARD_HOSTFILE"); do' +
        ' srun --overlap --export=ALL -N1 -n1 -w "$host" sh -c \'echo "$0 $SLURMD_NODENAME"\' $rank & rank=$((rank + 1)); done; wait',
      { tasks: 3, cpusPerTask: 6, launch: 'ONCE' },
    );
    runner.start(one);
    const { cause, outputs } = await end(runner, one);
    const said = outputs.flatMap(({ stream, text }) => (stream === 'STDOUT' ? [text] : [])).join('');
    expect([cause, said.trim().split('\n').sort()]).toEqual(['EXITED_ZERO', ['0 n1', '1 n2', '2 n3']]);
  });

  it('gets many runs that need the same as one array, and each runs once', async () => {
    instead('sbatch', `echo x >>${dir}/arrays; exec "$real" "$@"`);
    const runner = await open();
    const all = Array.from({ length: 40 }, (_, i) => run(`exit ${i % 3}`));
    const cancelled = run('true');
    for (const one of [...all, cancelled]) runner.start(one);
    runner.cancel(cancelled);
    for (const [i, one] of all.entries()) {
      expect(await end(runner, one)).toMatchObject({ exitCode: i % 3 });
      expect(ran(one)).toBe(1);
    }
    expect((await end(runner, cancelled)).cause).toBe('CANCELLED_BY_USER');
    expect(ran(cancelled)).toBe(0);
    expect(readFileSync(join(dir, 'arrays'), 'utf8')).toBe('x\n');
  });

  describe('of a job of several parts', () => {
    const any = { resourcesPerTask: [], tasksPerMachine: null, exclusive: null, sameSwitch: null };
    const parts = (second: number) => ({
      ...{ tasks: 3, cpusPerTask: Math.max(2, second), launch: 'EVERY_TASK' as const },
      jobParts: [
        { ...any, tasks: 1, cpusPerTask: 2, memoryMbPerTask: 10 },
        { ...any, tasks: 2, cpusPerTask: second, memoryMbPerTask: 10 },
      ].map((part) => ({ ...part, allAlike: null, machineConstraint: null })),
      partNodes: [null, ['n2', 'n3']],
    });
    const file = join(dir, 'said');
    const said = `echo "$SWITCHYARD_PART.$SWITCHYARD_TASK_INDEX" >>${file}`;

    it('loses the answer, and the agent dies: found by its name as one job, each task runs once, where its part may', async () => {
      instead('sbatch', `"$real" "$@" >/dev/null; sleep 600`);
      const first = await open();
      const one = run(said, parts(1));
      first.start(one);
      await until(first, 'its components', () =>
        cli('squeue', '-h').trim().split('\n').length === 2 ? true : null,
      );
      first.close();
      instead('sbatch', 'exec "$real" "$@"');
      const second = await open();
      const { cause } = await end(second, one);
      expect(cause).toBe('EXITED_ZERO');
      expect(ran(one)).toBe(3);
      const started = reports.find(({ phase }) => phase === 'STARTED') as {
        local?: { id: string; nodes: string[] };
      };
      expect(started.local?.id).toMatch(/^\d+$/);
      // Each part has nodes of its own.
      expect(started.local?.nodes[1]).toMatch(/^n[23]$/);
      expect(new Set(started.local?.nodes).size).toBe(2);
      expect(readFileSync(file, 'utf8').trim().split('\n').sort()).toEqual(['0.0', '1.1', '1.2']);
    });

    it('is told to cancel it as a whole while it waits, by the service and by others', async () => {
      const runner = await open();
      await block(runner);
      const [mine, theirs] = [run(said, parts(1)), run(said, parts(1))];
      for (const one of [mine, theirs]) runner.start(one);
      for (const one of [mine, theirs]) await localId(runner, one);
      runner.cancel(mine);
      expect((await end(runner, mine)).cause).toBe('CANCELLED_BY_USER');
      cli('scancel', await localId(runner, theirs));
      expect(await end(runner, theirs)).toMatchObject({
        cause: 'MACHINE_FAILED',
        message: expect.stringContaining('CANCELLED'),
      });
      await until(runner, 'an empty queue', () => (cli('squeue', '-h', '-t', 'pd') === '' ? true : null));
      expect([ran(mine), ran(theirs)]).toEqual([0, 0]);
    });

    it('says of a part that is too large what Slurm says, and it never begins', async () => {
      const runner = await open();
      const large = run(said, parts(999));
      runner.start(large);
      const { cause, message } = await end(runner, large);
      expect(['MACHINE_FAILED', 'LAUNCH_FAILED']).toContain(cause);
      expect(message).toMatch(/PartitionConfig|BadConstraints|node configuration is not available/);
      await until(runner, 'an empty queue', () => (cli('squeue', '-h') === '' ? true : null));
      expect(ran(large)).toBe(0);
    });

    it('ends all of it when one task fails', async () => {
      const runner = await open();
      const one = run('[ "$SWITCHYARD_PART" = 0 ] || exit 3; sleep 600', parts(1));
      runner.start(one);
      expect(['EXITED_NONZERO', 'SIGNALLED']).toContain((await end(runner, one)).cause);
    });
  });

  it('has jobs of an agent with another state directory: ended before the leases, unless it lives', async () => {
    const former = await open();
    const long = await block(former);
    const waits = run('true');
    former.start(waits);
    await localId(former, waits);
    const other = await open('other');
    expect(await other.takeOver()).toContain(`another agent (state directory ${join(dir, 'agent')})`);
    expect(cli('squeue', '-h').trim().split('\n')).toHaveLength(2);
    former.close();
    const past = new Date(Date.now() - 3_600_000);
    utimesSync(join(dir, 'agent', 'alive'), past, past);
    for (const deadline = Date.now() + PATIENCE_MS; (await other.takeOver()) !== null; await sleep(500))
      expect(Date.now()).toBeLessThan(deadline);
    expect(cli('squeue', '-h', '-t', 'pd,r')).toBe('');
    expect([ran(long), ran(waits)]).toEqual([1, 0]);
  });

  it('warns a run before its limit, as often as it was asked to, and nothing of the warning is left', async () => {
    const runner = await open();
    const limits = { runTimeLimitS: 8, warnS: 6, warnSignal: 'SIGUSR1' } as const;
    const warned = run('trap "exit 7" USR1; while :; do sleep 0.1; done', limits);
    const child = run(`sh -c 'trap "exit 9" USR1; while :; do sleep 0.1; done'; exit $?`, {
      ...limits,
      warnS: 100,
    });
    const plain = run('true', { ...limits, runTimeLimitS: 50, warnS: 1 });
    // The first to end has the others ended: they take the time to handle the warning.
    const tasks = run('trap "" TERM; trap "exit 4" USR1; while :; do sleep 0.1; done', {
      ...{ ...limits, tasks: 2, launch: 'EVERY_TASK' },
    });
    for (const one of [warned, child, plain, tasks]) runner.start(one);
    expect(await end(runner, warned)).toMatchObject({ cause: 'EXITED_NONZERO', exitCode: 7 });
    // The shell around it has no trap.
    expect(await end(runner, child)).toMatchObject({ cause: 'SIGNALLED', signal: 'SIGUSR1' });
    expect((await end(runner, plain)).cause).toBe('EXITED_ZERO');
    expect(await end(runner, tasks)).toMatchObject({ cause: 'EXITED_NONZERO', exitCode: 4 });
    expect(cli('sh', '-c', 'pgrep -fx "sleep 49" || true')).toBe('');
  });

  it('shares a file system that hangs: the agent says so, serves on, and nothing is lost', async () => {
    const runner = await open();
    const [before, cancelled, later] = [run('sleep 5'), run('sleep 600'), run('true')];
    for (const one of [before, cancelled]) runner.start(one);
    for (const one of [before, cancelled]) await reported(runner, 'STARTED', one);
    // Whoever opens a pipe waits until somebody reads it.
    const alive = join(dir, 'agent', 'alive');
    execFileSync('mkfifo', [`${alive}.pipe`]);
    renameSync(`${alive}.pipe`, alive);
    expect(await until(runner, 'a problem', () => runner.problem)).toContain('does not respond');
    const endedBefore = reports.filter(({ phase }) => phase === 'ENDED');
    runner.start(later);
    runner.cancel(cancelled);
    expect(runner.freshOutput()).toEqual([]);
    await sleep(2_000);
    expect(reports.filter(({ phase }) => phase === 'ENDED')).toEqual(endedBefore);
    const reader = openSync(alive, constants.O_RDONLY | constants.O_NONBLOCK);
    rmSync(alive);
    expect((await end(runner, before)).cause).toBe('EXITED_ZERO');
    expect((await end(runner, later)).cause).toBe('EXITED_ZERO');
    expect((await end(runner, cancelled)).cause).toBe('CANCELLED_BY_USER');
    closeSync(reader);
    expect(runner.problem).toBe(null);
    expect([ran(before), ran(later)]).toEqual([1, 1]);
  });

  it.skipIf(cannotHang !== null).each(['began', 'ended', 'runs', 'arrays', '.'])(
    'shares a file system of which %s hangs, though it answered a moment before: said so, others go on, nothing is lost',
    async (part) => {
      const runner = await open();
      const [before, cancelled] = [run('sleep 1; echo whole'), run('sleep 600')];
      for (const one of [before, cancelled]) runner.start(one);
      for (const one of [before, cancelled]) await reported(runner, 'STARTED', one);
      const answers = await hang(join(dir, 'agent', part));
      // One by itself, and an array.
      const later = [run('exit 3', { memoryMbPerTask: 20 }), ...Array.from({ length: 9 }, () => run('true'))];
      const handOver = (): void => {
        for (const one of later) runner.start(one);
      };
      // Where nobody would look otherwise.
      const isFound = ['runs', 'arrays'].includes(part);
      if (isFound) handOver();
      runner.cancel(cancelled);
      try {
        expect(await until(runner, 'a problem', () => runner.problem)).toContain('does not respond');
        if (!isFound) handOver();
        const endedBefore = reports.filter(({ phase }) => phase === 'ENDED').length;
        // The agent goes on: it has answers at once, and nothing ends.
        for (let looks = 0; looks < 20; looks++) {
          expect(runner.problem).toContain('does not respond');
          expect(runner.freshOutput()).toEqual([]);
          expect(runner.reports(1_000).filter(({ phase }) => phase === 'ENDED')).toEqual([]);
          await sleep(100);
        }
        expect(reports.filter(({ phase }) => phase === 'ENDED')).toHaveLength(endedBefore);
      } finally {
        await answers();
      }
      expect((await end(runner, before)).cause).toBe('EXITED_ZERO');
      expect(await written(runner, before)).toBe('whole\n');
      expect((await end(runner, cancelled)).cause).toBe('CANCELLED_BY_USER');
      const alone = await end(runner, later[0] as Assignment);
      expect([alone.cause, alone.message, alone.exitCode]).toEqual(['EXITED_NONZERO', null, 3]);
      for (const one of later.slice(1)) expect((await end(runner, one)).cause).toBe('EXITED_ZERO');
      expect([before, cancelled, ...later].map(ran)).toEqual(Array(12).fill(1));
      await until(runner, 'no problem', () => (runner.problem === null ? true : null));
    },
  );

  it('runs jobs as the accounts of their users, who reach nothing of the agent', async () => {
    const file = join(dir, 'accounts');
    writeFileSync(file, 'ann = nobody\n');
    for (const [path, mode] of [
      [dir, 0o755],
      [cluster, 0o755],
      [ledger, 0o666],
    ] as const)
      chmodSync(path, mode);
    const openAs = (): Promise<ExternalRunner> => {
      const list = { file, launcher: null, environment: hostEnvironment(), warn: () => {} };
      const accounts = new Accounts(list);
      const become = (name: string): string[] => accounts.become({ name });
      return open('agent', new Slurm({ ...options(environment()), become }), accounts);
    };
    const runner = await openAs();
    const own = run('id -un; pwd; umask');
    const state = join(dir, 'agent');
    const others = run(
      `rmdir ../desk && exit 3; mv ../work ../other && exit 4; ls ../.. && exit 5; cat ../run && exit 6; echo >../never && exit 7; cat ${state}/reports/* && exit 8;
      array=$(scontrol show job "$SLURM_JOB_ID" | sed -n 's/ *WorkDir=//p'); [ -e "$array/over" ] || exit 9;
      cat "$array/runs.0" && exit 10; echo >>"$array/over" && exit 11; exit 0`,
    );
    // What the agent would follow, or wait for.
    const forged = run(
      `ln -s /etc ${state}/as/nobody/ended/x; mkfifo ${state}/as/nobody/began/y; kill -9 $PPID`,
    );
    const foreign = run('true', { user: 'bob' });
    const many = Array.from({ length: 10 }, () => run('true'));
    for (const one of [own, others, forged, foreign, ...many]) runner.start(one);
    const texts = (await end(runner, own)).outputs.map(({ text }) => text);
    expect(texts.join('')).toMatch(/^nobody\n.*\/work\n0022\n$/);
    expect(await end(runner, others)).toMatchObject({ cause: 'EXITED_ZERO' });
    await end(runner, forged);
    expect(await end(runner, foreign)).toMatchObject({
      ...{ cause: 'MACHINE_FAILED', message: expect.stringContaining('the user bob has no account') },
    });
    for (const one of many) {
      expect((await end(runner, one)).cause).toBe('EXITED_ZERO');
      expect(ran(one)).toBe(1);
    }
    const [goesOn, cancelled] = [run('sleep 3'), run('sleep 600')];
    for (const one of [goesOn, cancelled]) runner.start(one);
    for (const one of [goesOn, cancelled]) await reported(runner, 'STARTED', one);
    runner.close();
    const next = await openAs();
    next.cancel(cancelled);
    expect((await end(next, goesOn)).cause).toBe('EXITED_ZERO');
    expect((await end(next, cancelled)).cause).toBe('CANCELLED_BY_USER');
    await until(next, 'an empty directory', () =>
      readdirSync(join(state, 'runs')).length === 0 ? true : null,
    );
  });
});
