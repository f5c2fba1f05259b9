import { execFileSync, spawn } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Assignment, EndedReport, RunSignal, SentSignal } from '../../src/agent/runner.js';
import {
  assignment,
  complete,
  endOf,
  ends,
  lives,
  openRunner,
  script,
  temporaryDirectory,
  until,
} from './support.js';

describe('how a run ends', () => {
  it.each([
    ['exit 0', 'EXITED_ZERO', 0, null],
    ['exit 3', 'EXITED_NONZERO', 3, null],
    ['exit 127', 'EXITED_NONZERO', 127, null],
    ['kill -TERM $$', 'SIGNALLED', 143, 'SIGTERM'],
    ['kill -KILL $$', 'SIGNALLED', 137, 'SIGKILL'],
    ['kill -INT $$', 'SIGNALLED', 130, 'SIGINT'],
    ['kill -SEGV $$', 'SIGNALLED', 139, 'SIGSEGV'],
    // The whole group, which is what scripts do to clean up after themselves: the lane outlives it.
    ['sleep 100 & kill 0', 'SIGNALLED', 143, 'SIGTERM'],
  ])('%s', async (text, cause, exitCode, signal) => {
    const runner = await openRunner();
    expect(await complete(runner, script('job_1', text))).toMatchObject({
      cause,
      exitCode,
      signal,
      message: null,
    });
    expect(await complete(runner, script('job_2', 'echo next'))).toMatchObject({
      cause: 'EXITED_ZERO',
      stdout: { text: 'next\n', bytes: 5, truncated: false },
    });
  });

  it('reports a start before each end, numbered without gaps', async () => {
    const runner = await openRunner();
    await complete(runner, script('job_1', ''));
    await complete(runner, script('job_2', ''));
    expect(runner.reports(10).map(({ seq, jobId, phase }) => `${seq} ${jobId} ${phase}`)).toEqual([
      '1 job_1 STARTED',
      '2 job_1 ENDED',
      '3 job_2 STARTED',
      '4 job_2 ENDED',
    ]);
  });

  it('tells the CPU time of all processes that were waited for', async () => {
    const runner = await openRunner();
    const loop = 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done';
    await complete(runner, script('job_0', loop));
    const one = await complete(runner, script('job_1', loop));
    const two = await complete(runner, script('job_2', `sh -c '${loop}' & sh -c '${loop}'; wait`));
    const none = await complete(runner, assignment('job_3', 'sleep', '1'));
    expect(one.cpuS).toBeGreaterThan(0.02);
    // Two children at once: their time, not the wall's, and not that of the runs before.
    expect(two.cpuS! / one.cpuS!).toBeGreaterThan(1.3);
    expect(two.cpuS! / one.cpuS!).toBeLessThan(5);
    expect(none.cpuS).toBeLessThan(one.cpuS! / 2 + 0.02);
  });

  it('tells with each measurement how it was made, and nothing that was not measured', async () => {
    const runner = await openRunner();
    let runs = 0;
    /** The first run that is measured so: on a busy machine short ones are seen, too, and one that sleeps may first wait for its program. */
    const first = async (run: (id: string) => Assignment, isSo: (end: EndedReport) => boolean) => {
      for (;;) {
        const end = await complete(runner, run(`job_${++runs}`));
        expect(end.ioWaitS === null).toBe(end.ioWaitMethod === null);
        if (isSo(end)) return end;
      }
    };
    const short = await first(
      (id) => script(id, 'head -c 3000000 /dev/zero > f; cat f > /dev/null'),
      ({ ioWaitMethod }) => ioWaitMethod === null,
    );
    expect(short).toMatchObject({ cpuMethod: 'PROC', bytesMethod: 'PROC' });
    expect(short.writtenMb).toBeGreaterThan(5.9);
    expect(short.writtenMb).toBeLessThan(6.1);
    expect(short.readMb).toBeGreaterThan(5.9);
    const { ioWaitMethod, peakMemoryMethod } = await first(
      (id) => assignment(id, 'sleep', '1'),
      ({ ioWaitS }) => ioWaitS === 0,
    );
    expect(['SAMPLES', 'DELAY_ACCOUNTING']).toContain(ioWaitMethod);
    expect(peakMemoryMethod).toBe('SAMPLES');
  });
});

describe('what a run finds', () => {
  it('has its environment and not the agent’s', async () => {
    process.env.SWITCHYARD_KEY_OF_THE_TEST = 'secret';
    const runner = await openRunner({ baseEnvironment: { PATH: '/usr/bin:/bin', LANG: 'C' } });
    const odd = `a'b"c $HOME \\ \n\t ; é`;
    const run = {
      ...assignment('job_7', 'env'),
      environment: { ODD: odd, 'with.dot': 'x y', UID: '12', SWITCHYARD_EPOCH: 'mine' },
      epoch: 4,
      tasks: 3,
      arrayIndex: 5,
      machines: [
        { name: 'a', tasks: 1 },
        { name: 'b', tasks: 2 },
      ],
    };
    const { stdout } = await complete(runner, run);
    delete process.env.SWITCHYARD_KEY_OF_THE_TEST;
    const lines = stdout!.text.split('\n');
    expect(stdout!.text).toContain(`ODD=${odd}\n`);
    expect(lines).toContain('with.dot=x y');
    expect(lines).toContain('UID=12');
    expect(lines).toContain('LANG=C');
    expect(lines).toContain('SWITCHYARD_JOB_ID=job_7');
    expect(lines).toContain('SWITCHYARD_EPOCH=4');
    expect(lines).toContain('SWITCHYARD_TASKS=3');
    expect(lines).toContain('SWITCHYARD_ARRAY_INDEX=5');
    expect(lines).toContain('SWITCHYARD_MACHINES=a:1,b:2');
    expect(stdout!.text).not.toContain('secret');
    // Nothing of one run reaches the next one in the same lane.
    const next = await complete(runner, assignment('job_8', 'env'));
    expect(next.stdout!.text).not.toContain('ODD');
    expect(next.stdout!.text).not.toContain('with.dot');
  });

  it('gets its arguments as they are', async () => {
    const runner = await openRunner();
    const args = [`it's`, '', '$(id)', '`id`', 'a\nb', '--', '*', '\\', 'ü'];
    const { stdout } = await complete(runner, assignment('job_1', 'printf', '[%s]', ...args));
    expect(stdout!.text).toBe(args.map((arg) => `[${arg}]`).join(''));
  });

  it('runs in the directory asked for, or in an empty one of its own', async () => {
    const runner = await openRunner();
    const dir = temporaryDirectory();
    const there = await complete(runner, { ...script('job_1', 'pwd; touch mark'), workingDirectory: dir });
    expect(there.stdout!.text.trim()).toBe(realpathSync(dir));
    expect(readdirSync(dir)).toEqual(['mark']);
    const own = await complete(runner, script('job_2', 'ls -A; mkdir -p d/e; touch d/e/f; pwd'));
    const next = await complete(runner, script('job_3', 'ls -A; pwd'));
    expect(own.stdout!.text.trim()).toMatch(/^\/.*work$/);
    expect(next.stdout!.text).toBe(own.stdout!.text);
    await complete(runner, script('job_4', 'rmdir "$PWD"'));
    expect(await complete(runner, script('job_5', 'pwd'))).toMatchObject({ cause: 'EXITED_ZERO' });
  });

  it('reads nothing, has the usual reactions to signals and no agent’s descriptors', async () => {
    const runner = await openRunner();
    expect((await complete(runner, assignment('job_1', 'cat'))).cause).toBe('EXITED_ZERO');
    // SIGPIPE ends `yes`; a shell that ignores it would let it complain.
    expect(await complete(runner, script('job_2', 'yes | head -n 1'))).toMatchObject({
      stdout: { text: 'y\n' },
      stderr: { text: '' },
    });
    if (process.platform !== 'linux') return;
    const { stdout } = await complete(runner, assignment('job_3', 'ls', '/proc/self/fd'));
    // What any child of this process has, and the pipe by which the agent sees whether a run left something behind.
    const usual = execFileSync('ls', ['/proc/self/fd'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    expect(stdout!.text.split('\n').toSorted()).toEqual([...usual.split('\n'), '9'].toSorted());
  });
});

describe('a run that cannot be started', () => {
  it('is reported with the reason', async () => {
    const runner = await openRunner();
    const dir = temporaryDirectory();
    writeFileSync(join(dir, 'plain'), 'no program', { mode: 0o644 });
    writeFileSync(join(dir, 'orphan'), '#!/no/such/interpreter\n', { mode: 0o755 });
    const cases: [string, Parameters<typeof runner.start>[0], RegExp][] = [
      ['no such command', assignment('job_1', 'no-such-command'), /no-such-command: no such command in PATH/],
      ['no such path', assignment('job_2', '/no/such/path'), /\/no\/such\/path: no such file/],
      [
        'no such directory',
        { ...script('job_3', ''), workingDirectory: '/no/such' },
        /\/no\/such: no such directory/,
      ],
      ['not executable', assignment('job_4', join(dir, 'plain')), /plain: not executable/],
      ['a directory', assignment('job_5', dir), /no such file/],
      [
        'no interpreter',
        assignment('job_6', join(dir, 'orphan')),
        /orphan.*(not found|bad interpreter|no such file)/i,
      ],
      ['NUL', assignment('job_7', 'echo', 'a\0b'), /NUL/],
      [
        'bad name',
        { ...script('job_8', ''), environment: { 'A=B': 'c' } },
        /"A=B" is not a valid variable name/,
      ],
      ['empty', assignment('job_9', ''), /empty/],
      ['too long', assignment('job_10', 'echo', 'x'.repeat(3_000_000)), /too long/i],
    ];
    for (const [name, run, message] of cases) {
      const end = await complete(runner, run);
      expect(end, name).toMatchObject({
        cause: 'LAUNCH_FAILED',
        exitCode: null,
        message: expect.stringMatching(message),
      });
    }
    expect(runner.runs()).toEqual([]);
  });
});

/** Takes a lease on a file, says when somebody asks for it, and gives it back when it is told to. */
const LEASE = `
$| = 1;
open my $file, "<", $ARGV[0] or die $!;
$SIG{IO} = sub { print "asked\\n" };
fcntl $file, 1024, 1 or die $!;
print "held\\n";
1 until defined sysread STDIN, my $word, 1;
fcntl $file, 1024, 2;
`;

describe('a host that can start nothing', () => {
  it('is no fault of the job, and is said to be unfit', async () => {
    const stateDir = temporaryDirectory();
    const runner = await openRunner({ stateDir });
    expect(runner.problem).toBeNull();
    rmSync(join(stateDir, 'slots'), { recursive: true });
    writeFileSync(join(stateDir, 'slots'), '');
    const end = await complete(runner, script('job_1', 'true'));
    expect(end).toMatchObject({ cause: 'MACHINE_FAILED', exitCode: null });
    expect(runner.problem).toBe(`the last launch failed: ${end.message}`);
    // What fails for its own sake says nothing of the host.
    const other = await openRunner();
    await complete(other, assignment('job_2', 'no-such-command'));
    expect(other.problem).toBeNull();
  });
});

describe('a task of a job', () => {
  const wide = (task: number) => ({
    ...script(
      'job_1',
      'echo $SWITCHYARD_TASK_INDEX $RANK $LOCAL_RANK $NODE_RANK $MASTER_ADDR; cat $SWITCHYARD_HOSTFILE',
    ),
    task,
    tasks: 4,
    machines: [
      { name: 'a', host: 'host-a', tasks: 1 },
      { name: 'b', host: 'host-b', tasks: 3 },
    ],
  });

  it('is a run of its own: started once, ended and reported by itself', async () => {
    const runner = await openRunner();
    for (const task of [1, 3, 1]) runner.start(wide(task));
    await until(() => ends(runner).length === 2, 'both tasks');
    const said = new Map(ends(runner).map((end) => [end.task, end.stdout?.text]));
    const hosts = 'host-a\nhost-b\nhost-b\nhost-b\n';
    expect([...said].sort()).toEqual([
      [1, `1 1 0 1 host-a\n${hosts}`],
      [3, `3 3 2 1 host-a\n${hosts}`],
    ]);
    // Another one of the same run is none of those.
    runner.cancel({ jobId: 'job_1', epoch: 1, task: 2 });
    runner.start(wide(2));
    expect(ends(runner).map(({ task, cause }) => `${task} ${cause}`)).toContain('2 CANCELLED_BY_USER');
    expect(runner.runs()).toEqual([]);
  });

  it('leaves the choice of names to the job, and a launcher finds the hosts where the job is launched once', async () => {
    const runner = await openRunner();
    const own = { ...wide(0), environment: { RANK: 'mine', SWITCHYARD_TASK_INDEX: 'no' } };
    expect((await complete(runner, own)).stdout?.text).toContain('0 mine 0 0 host-a\n');
    const { task: _, ...once } = {
      ...wide(0),
      ...script('job_2', 'cat $HYDRA_HOST_FILE $OMPI_MCA_orte_default_hostfile; echo "$RANK"'),
    };
    const four = { ...once, tasks: 4, machines: wide(0).machines };
    expect((await complete(runner, four)).stdout?.text).toBe(
      'host-a\nhost-b\nhost-b\nhost-b\nhost-a slots=1\nhost-b slots=3\n\n',
    );
    // Nothing of it is left for the next.
    const next = await complete(runner, script('job_3', 'ls -A; echo "$SWITCHYARD_HOSTFILE"'));
    expect(next.stdout?.text).toBe('\n');
  });
});

describe('output', () => {
  it('keeps both ends of what is too long, and counts it all', async () => {
    const runner = await openRunner({ outputLimitBytes: 1000 });
    const end = await complete(runner, script('job_1', 'seq 1 100000; echo oops >&2'));
    const bytes = Array.from({ length: 100_000 }, (_, i) => String(i + 1).length + 1).reduce((a, b) => a + b);
    expect(end.stdout).toMatchObject({ bytes, truncated: true });
    expect(end.stdout!.text).toMatch(/^1\n2\n3\n/);
    expect(end.stdout!.text).toMatch(/99999\n100000\n$/);
    expect(end.stdout!.text).toMatch(/\[\d+ bytes left out\]/);
    expect(end.stdout!.text.length).toBeLessThan(1100);
    expect(end.stderr).toEqual({ text: 'oops\n', bytes: 5, truncated: false });
  });

  it('takes little disk for a run that writes without end', async () => {
    const stateDir = temporaryDirectory();
    const runner = await openRunner({ stateDir, outputLimitBytes: 4096 });
    // 600 MB in pieces, so that the agent can look in between.
    runner.start(
      script(
        'job_1',
        'i=0; while [ $i -lt 30 ]; do head -c 20000000 /dev/zero; sleep 0.1; i=$((i+1)); done; echo end',
      ),
    );
    const out = join(stateDir, 'outputs', '1', 'out');
    let most = 0;
    await until(() => {
      most = Math.max(most, statSync(out).blocks * 512);
      return endOf(runner, 'job_1') !== undefined;
    }, 'the end');
    const { stdout } = endOf(runner, 'job_1')!;
    expect(stdout!.bytes).toBe(600_000_004);
    expect(stdout!.text.endsWith('end\n')).toBe(true);
    // Half of it would be there if nothing were cut.
    expect(most).toBeLessThan(300_000_000);
  });

  it('keeps bytes as they are', async () => {
    const runner = await openRunner({ outputLimitBytes: 1001 });
    const { stdout } = await complete(
      runner,
      script('job_1', `i=0; while [ $i -lt 999 ]; do printf 'a€'; i=$((i+1)); done`),
    );
    expect(stdout).toMatchObject({ bytes: 3996, truncated: true });
    const binary = await complete(runner, script('job_2', `printf 'a\\000b\\377'`));
    expect(binary.outputs).toEqual([
      { stream: 'STDOUT', start: 0, base64: 'YQBi/w==', bytes: 4 },
      { stream: 'STDERR', start: 0, text: '', bytes: 0 },
    ]);
  });
});

describe('stopping', () => {
  it('ends a whole tree with SIGTERM', async () => {
    const dir = temporaryDirectory();
    const runner = await openRunner();
    const tree = `sh -c 'echo $$ > ${dir}/a; sleep 1000' & sh -c 'echo $$ > ${dir}/b; sleep 1000 & wait' & wait`;
    runner.start(script('job_1', tree));
    await until(() => ['a', 'b'].every((name) => existsSync(join(dir, name))), 'the processes');
    runner.cancel({ jobId: 'job_1', epoch: 1 });
    await until(() => endOf(runner, 'job_1') !== undefined, 'the end');
    expect(endOf(runner, 'job_1')).toMatchObject({ cause: 'CANCELLED_BY_USER', signal: 'SIGTERM' });
    await until(() => pids(dir).every((pid) => !lives(pid)), 'the processes to go');
  });

  it('kills what does not go, also what has left the session, and still knows the CPU time', async () => {
    const dir = temporaryDirectory();
    const runner = await openRunner();
    const stubborn = (name: string): string =>
      `trap "" TERM HUP; echo $$ > ${dir}/${name}; while :; do sleep 0.1; done`;
    const fugitive =
      process.platform === 'linux' ? `setsid sh -c '${stubborn('c')}' &` : `echo 0 > ${dir}/c;`;
    runner.start(script('job_1', `${fugitive} sh -c '${stubborn('a')}' & ${stubborn('b')}`));
    await until(() => pids(dir).length === 3, 'the processes');
    runner.cancel({ jobId: 'job_1', epoch: 1 }, 100);
    await until(() => endOf(runner, 'job_1') !== undefined, 'the end');
    expect(endOf(runner, 'job_1')).toMatchObject({
      cause: 'CANCELLED_BY_USER',
      signal: 'SIGKILL',
      exitCode: 137,
    });
    expect(endOf(runner, 'job_1')!.cpuS).not.toBeNull();
    await until(() => pids(dir).every((pid) => pid === 0 || !lives(pid)), 'the processes to go');
    expect(await complete(runner, script('job_2', 'echo on'))).toMatchObject({ stdout: { text: 'on\n' } });
  });

  it('a command that answers SIGTERM with exit code 0 was cancelled all the same', async () => {
    const dir = temporaryDirectory();
    const runner = await openRunner();
    runner.start(script('job_1', `trap 'exit 0' TERM; touch ${dir}/ready; while :; do sleep 0.05; done`));
    await until(() => existsSync(join(dir, 'ready')), 'the trap');
    runner.cancel({ jobId: 'job_1', epoch: 1 });
    await until(() => endOf(runner, 'job_1') !== undefined, 'the end');
    expect(endOf(runner, 'job_1')).toMatchObject({ cause: 'CANCELLED_BY_USER', exitCode: 0 });
  });

  it('stops a run at its limit', async () => {
    const runner = await openRunner();
    const end = await complete(runner, { ...assignment('job_1', 'sleep', '1000'), runTimeLimitS: 0.2 });
    expect(end).toMatchObject({ cause: 'RUN_TIME_LIMIT', signal: 'SIGTERM' });
    expect((await complete(runner, { ...script('job_2', ''), runTimeLimitS: 1000 })).cause).toBe(
      'EXITED_ZERO',
    );
  });

  it('warns a run once before its limit, asks it to end there, and kills it after the grace', async () => {
    const runner = await openRunner();
    const stubborn = `trap 'echo warned' USR1; trap 'echo asked' TERM; while :; do sleep 0.02; done`;
    const limited = { runTimeLimitS: 3, warnS: 1, warnSignal: 'SIGUSR1', killGraceS: 0.5 } as const;
    expect(await complete(runner, { ...script('job_1', stubborn), ...limited })).toMatchObject({
      ...{ cause: 'RUN_TIME_LIMIT', signal: 'SIGKILL', stdout: { text: 'warned\nasked\n' } },
    });
    const killed = { ...script('job_2', stubborn), ...limited, warnS: 0, killGraceS: 0 };
    expect(await complete(runner, killed)).toMatchObject({
      cause: 'RUN_TIME_LIMIT',
      signal: 'SIGKILL',
      stdout: { text: '' },
    });
  });

  it('a run that ends after the warning has ended by itself; one that ends after SIGTERM has not', async () => {
    const runner = await openRunner();
    const limited = { runTimeLimitS: 3, warnS: 1, warnSignal: 'SIGTERM', killGraceS: 30 } as const;
    const first = script('job_1', `trap 'exit 0' TERM; while :; do sleep 0.02; done`);
    expect(await complete(runner, { ...first, ...limited })).toMatchObject({ cause: 'EXITED_ZERO' });
    const second = script('job_2', `trap 'n=1$n; [ $n = 11 ] && exit 0' TERM; while :; do sleep 0.02; done`);
    expect(await complete(runner, { ...second, ...limited })).toMatchObject({
      cause: 'RUN_TIME_LIMIT',
      exitCode: 0,
    });
    const unwarned = { ...assignment('job_3', 'sleep', '1000'), ...limited, warnSignal: 'SIGUSR2' } as const;
    expect(await complete(runner, unwarned)).toMatchObject({ cause: 'SIGNALLED', signal: 'SIGUSR2' });
  });

  describe('signals that are sent to a run', () => {
    /** Says which signals it and what it has started get, until the file is there. */
    const talkative = (dir: string) => `
      says() { trap "echo $1 USR1 >>${dir}/said" USR1; trap "echo $1 HUP >>${dir}/said" HUP; : >${dir}/$1; until [ -e ${dir}/end ]; do sleep 0.02; done; }
      (says started) &
      says command; wait`;
    const begun = (dir: string) => () => ['command', 'started'].every((name) => existsSync(join(dir, name)));
    const sent = (number: number, signal: RunSignal, to: SentSignal['to']): SentSignal => ({
      ...{ number, signal, to },
    });
    const saidIn = (dir: string): string[] =>
      existsSync(join(dir, 'said')) ? readFileSync(join(dir, 'said'), 'utf8').trim().split('\n').sort() : [];
    const name = { jobId: 'job_1', epoch: 1 };

    it('get to its command, to what this has started, or to all, each once, also from the next agent', async () => {
      const [dir, stateDir] = [temporaryDirectory(), temporaryDirectory()];
      const first = await openRunner({ stateDir });
      first.start(script('job_1', talkative(dir)));
      await until(begun(dir), 'both to be there');
      const signals: SentSignal[] = [];
      for (const [signal, to, said] of [
        ['SIGUSR1', 'COMMAND', ['command USR1']],
        ['SIGHUP', 'OTHERS', ['command USR1', 'started HUP']],
        ['SIGUSR1', 'ALL', ['command USR1', 'command USR1', 'started HUP', 'started USR1']],
      ] as const) {
        signals.push(sent(signals.length + 1, signal, to));
        // Told again with the list, as agents are.
        for (let told = 0; told < 2; told++) first.signal(name, signals);
        await until(() => saidIn(dir).length >= said.length, said.join());
        expect(saidIn(dir)).toEqual(said);
      }
      first.close();
      const next = await openRunner({ stateDir });
      next.signal(name, signals);
      // Only the new one: what comes after it would come after the others.
      next.signal(name, [...signals, sent(4, 'SIGHUP', 'COMMAND')]);
      await until(() => saidIn(dir).includes('command HUP'), 'the new signal');
      writeFileSync(join(dir, 'end'), '');
      await until(() => endOf(next, 'job_1') !== undefined, 'its end');
      expect(endOf(next, 'job_1')).toMatchObject({ cause: 'EXITED_ZERO' });
      expect(saidIn(dir)).toEqual([
        ...['command HUP', 'command USR1', 'command USR1', 'started HUP', 'started USR1'],
      ]);
    });

    it.each([
      ['', {}],
      [', started by the last step', { 'odd.name': '1' }],
    ])('wait until its command is there%s', async (_, environment) => {
      const [runner, dir] = [await openRunner(), temporaryDirectory()];
      const program = join(dir, 'program');
      copyFileSync('/bin/sh', program);
      // Under a lease of somebody else nobody else can execute it: what is forked waits in exec.
      const lease = spawn('perl', ['-e', LEASE, program], { stdio: ['pipe', 'pipe', 'inherit'] });
      onTestFinished(() => void lease.kill('SIGKILL'));
      let said = '';
      lease.stdout.on('data', (text) => {
        said += text;
      });
      await until(() => said.includes('held'), 'the lease');
      runner.start({ ...assignment('job_1', program, '-c', talkative(dir)), environment });
      await until(() => said.includes('asked'), 'the program to be executed');
      const looks = [sent(1, 'SIGUSR1', 'ALL')];
      for (let look = 0; look < 20; look++) {
        runner.signal(name, looks);
        await sleep(50);
      }
      expect(endOf(runner, 'job_1')).toBeUndefined();
      lease.stdin.write('x');
      // It gets the signal then: before it handles it, or after.
      const ended = () => endOf(runner, 'job_1') !== undefined;
      await until(() => saidIn(dir).includes('command USR1') || ended(), 'the signal');
      writeFileSync(join(dir, 'end'), '');
      await until(ended, 'its end');
      expect(endOf(runner, 'job_1')).toMatchObject(
        saidIn(dir).length > 0 ? { cause: 'EXITED_ZERO' } : { cause: 'SIGNALLED', signal: 'SIGUSR1' },
      );
    });

    it('stop its processes and continue them; one that is stopped can be cancelled', async () => {
      const dir = temporaryDirectory();
      const runner = await openRunner();
      runner.start(script('job_1', `echo $$ >${dir}/pid; while :; do sleep 0.02; done`));
      const file = join(dir, 'pid');
      // The shell makes it before it writes.
      await until(() => existsSync(file) && readFileSync(file, 'utf8').endsWith('\n'), 'the run');
      const pid = readFileSync(file, 'utf8').trim();
      const isStopped = () => execFileSync('ps', ['-o', 'stat=', '-p', pid]).toString().startsWith('T');
      runner.signal(name, [sent(1, 'SIGSTOP', 'ALL')]);
      await until(isStopped, 'it to stop');
      runner.signal(name, [sent(1, 'SIGSTOP', 'ALL'), sent(2, 'SIGCONT', 'ALL')]);
      await until(() => !isStopped(), 'it to go on');
      runner.signal(name, [sent(3, 'SIGSTOP', 'ALL')]);
      await until(isStopped, 'it to stop again');
      runner.cancel(name);
      await until(() => endOf(runner, 'job_1') !== undefined, 'its end');
      expect(endOf(runner, 'job_1')).toMatchObject({ cause: 'CANCELLED_BY_USER', signal: 'SIGTERM' });
    });

    it('end it if it does not handle them, and never get to one that begins later', async () => {
      const [runner, dir] = [await openRunner(), temporaryDirectory()];
      runner.start(script('job_1', `: >${dir}/begun; exec sleep 1000`));
      await until(() => existsSync(join(dir, 'begun')), 'the run');
      runner.signal(name, [sent(1, 'SIGINT', 'ALL')]);
      await until(() => endOf(runner, 'job_1') !== undefined, 'its end');
      expect(endOf(runner, 'job_1')).toMatchObject({ cause: 'SIGNALLED', signal: 'SIGINT', exitCode: 130 });
      runner.signal({ jobId: 'job_2', epoch: 1 }, [sent(1, 'SIGINT', 'ALL')]);
      const late = { ...script('job_2', talkative(dir)), signals: [sent(1, 'SIGINT', 'ALL')] };
      runner.start(late);
      await until(begun(dir), 'both to be there');
      runner.signal({ jobId: 'job_2', epoch: 1 }, late.signals);
      writeFileSync(join(dir, 'end'), '');
      await until(() => endOf(runner, 'job_2') !== undefined, 'its end');
      expect(endOf(runner, 'job_2')).toMatchObject({ cause: 'EXITED_ZERO' });
      expect(saidIn(dir)).toEqual([]);
    });
  });

  it('never starts what was cancelled before', async () => {
    const dir = temporaryDirectory();
    const runner = await openRunner();
    runner.cancel({ jobId: 'job_1', epoch: 2 });
    runner.start({ ...script('job_1', `touch ${dir}/ran`), epoch: 2 });
    runner.start({ ...script('job_1', `touch ${dir}/ran`), epoch: 1 });
    expect(endOf(runner, 'job_1')).toMatchObject({ cause: 'CANCELLED_BY_USER', epoch: 2, exitCode: null });
    await complete(runner, script('job_2', ''));
    expect(existsSync(join(dir, 'ran'))).toBe(false);
  });

  it('ends what a run leaves behind, and its output does not reach the next run', async () => {
    const dir = temporaryDirectory();
    const runner = await openRunner();
    const daemon = `trap '' TERM HUP; echo $$ > ${dir}/d; while :; do echo noise; sleep 0.01; done`;
    const end = await complete(
      runner,
      script(
        'job_1',
        `sh -c "${daemon.replaceAll('$', '\\$')}" & while [ ! -s ${dir}/d ]; do sleep 0.01; done; echo done`,
      ),
    );
    expect(end.cause).toBe('EXITED_ZERO');
    await until(() => pids(dir).every((pid) => !lives(pid)), 'the process to go');
    expect((await complete(runner, script('job_2', 'sleep 0.1; echo clean'))).stdout!.text).toBe('clean\n');
  });

  it('leaves nothing to later runs, also when it goes on writing without the descriptor by which it is known', async () => {
    const dir = temporaryDirectory();
    const runner = await openRunner();
    // As a program does that closes everything above 2 for its children.
    const noise = `exec 9>&-; echo $$ > ${dir}/d; while :; do echo noise; sleep 0.005; done`;
    await complete(
      runner,
      script('job_1', `setsid sh -c '${noise}' & while [ ! -s ${dir}/d ]; do sleep 0.01; done`),
    );
    for (let i = 2; i < 12; i++) {
      const { stdout } = await complete(runner, script(`job_${i}`, 'sleep 0.05; echo clean'));
      expect(stdout!.text).toBe('clean\n');
    }
    await until(() => pids(dir).every((pid) => !lives(pid)), 'the process to go');
  });

  it('is lost when its lane is killed, and nothing of it goes on', async () => {
    const dir = temporaryDirectory();
    const runner = await openRunner();
    runner.start(script('job_1', `echo $$ > ${dir}/a; echo $PPID > ${dir}/lane; sleep 1000`));
    await until(() => pids(dir).length === 2, 'the process');
    process.kill(Number(readFileSync(join(dir, 'lane'), 'utf8')), 'SIGKILL');
    await until(() => endOf(runner, 'job_1') !== undefined, 'the end');
    expect(endOf(runner, 'job_1')).toMatchObject({ cause: 'LOST', exitCode: null });
    expect(pids(dir).some(lives)).toBe(false);
    expect((await complete(runner, script('job_2', 'echo on'))).stdout!.text).toBe('on\n');
  });
});

describe('asked twice', () => {
  it('starts once', async () => {
    const dir = temporaryDirectory();
    const runner = await openRunner();
    const run = script('job_1', `echo x >> ${dir}/runs; sleep 0.1`);
    runner.start(run);
    runner.start(run);
    await complete(runner, run);
    runner.start(run);
    await complete(runner, { ...script('job_1', `echo x >> ${dir}/runs`), epoch: 1 });
    runner.resume(run);
    expect(readFileSync(join(dir, 'runs'), 'utf8')).toBe('x\n');
    expect(ends(runner)).toHaveLength(1);
    runner.start({ ...run, epoch: 2 });
    await until(() => ends(runner).length === 2, 'the second run');
  });

  it('tells a service that has forgotten an end, as one restored from a copy would, and runs nothing again', async () => {
    const stateDir = temporaryDirectory();
    const dir = temporaryDirectory();
    const run = script('job_1', `echo x >> ${dir}/runs`);
    const first = await openRunner({ stateDir });
    first.acknowledge((await complete(first, run)).seq);
    first.start(run);
    expect(endOf(first, 'job_1')).toMatchObject({
      cause: 'LOST',
      message: expect.stringContaining('ended earlier'),
    });
    first.acknowledge(3);
    first.close();
    const second = await openRunner({ stateDir });
    second.start(run);
    expect(endOf(second, 'job_1')).toMatchObject({ cause: 'LOST' });
    await complete(second, script('job_2', ''));
    expect(readFileSync(join(dir, 'runs'), 'utf8')).toBe('x\n');
  });

  it('reports a run that the service believes to go on, and it has never seen, as lost', async () => {
    const runner = await openRunner();
    runner.resume(script('job_1', ''));
    expect(endOf(runner, 'job_1')).toMatchObject({ cause: 'LOST' });
  });
});

function pids(dir: string): number[] {
  return readdirSync(dir)
    .map((name) => readFileSync(join(dir, name), 'utf8').trim())
    .filter((text) => text !== '')
    .map(Number);
}
