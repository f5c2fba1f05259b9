/**
 * A job that means harm, in every isolation that this machine offers: it fails, and everybody else goes on. What cannot be tried here is
 * said by the names of the tests that are left out (`describe.runIf`): an ordinary account cannot give runs accounts, a host without
 * bubblewrap has no sandbox, one without control groups of version 2 has no group for each run.
 */
import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import type { HostDevice } from '../../src/agent/devices.js';
import { findFiles, openInside } from '../../src/agent/files/find.js';
import type { EndedRun } from '../../src/agent/files/handover.js';
import { claimedIds } from '../../src/agent/process/ids.js';
import { Isolation, type IsolationMode, type IsolationOptions } from '../../src/agent/process/isolation.js';
import { processesWithIds } from '../../src/agent/process/processes.js';
import type { ProcessRunner, ProcessRunnerOptions } from '../../src/agent/process/runner.js';
import { StagingRunner } from '../../src/agent/staging/index.js';
import {
  assignment,
  complete,
  endOf,
  lives,
  openRunner,
  SIGNALLED,
  script,
  temporaryDirectory,
  until,
  withWords,
} from './support.js';

const isRoot = process.getuid?.() === 0;

interface Kind {
  mode: IsolationMode;
  cgroups: boolean;
}

/** Those that this machine has. */
const kinds: Kind[] = (['none', 'user', 'sandbox'] as const).flatMap((mode) =>
  [false, true].flatMap((cgroups): Kind[] => {
    try {
      const { cgroups: groups } = Isolation.open({ mode, cgroups }, reachable(), 'test-probe');
      return cgroups && groups === null ? [] : [{ mode, cgroups }];
    } catch {
      return [];
    }
  }),
);

/** A directory that other accounts may enter. */
function reachable(): string {
  return tmpdir();
}

/** Whether groups of runs bound this here. */
function hasController(name: 'cpu' | 'memory'): boolean {
  return Isolation.open({ mode: 'none' }, reachable(), 'test-probe').cgroups?.controllers.has(name) ?? false;
}

/** Why groups of runs do not bound this here; null: they do. */
function unbounded(name: 'cpu' | 'memory' | 'pids'): string | null {
  const groups = Isolation.open({ mode: 'none' }, reachable(), 'test-probe').cgroups;
  if (groups === null) return 'there are no groups of version 2';
  if (groups.controllers.has(name)) return null;
  // Name, number of the hierarchy (0: version 2), number of groups, whether it is on (cgroups(7)).
  const [, hierarchy] =
    new RegExp(`^${name}\\t(\\d+)`, 'm').exec(readFileSync('/proc/cgroups', 'utf8')) ?? [];
  return Number(hierarchy) > 0
    ? 'the controller is bound to a hierarchy of version 1 until that is unmounted in every mount namespace, the one of init among them'
    : 'the controller was not delegated';
}
for (const name of ['cpu', 'memory', 'pids'] as const) {
  const why = unbounded(name);
  if (why !== null) it.skip(`limits by a control group, ${name}: ${why}`);
}

const nameOf = ({ mode, cgroups }: Kind): string => `${mode}${cgroups ? ' with control groups' : ''}`;

async function open(
  kind: Kind,
  more: Partial<IsolationOptions> = {},
  options: Partial<ProcessRunnerOptions> = {},
): Promise<{ runner: ProcessRunner; stateDir: string }> {
  const stateDir = temporaryDirectory();
  chmodSync(stateDir, 0o755);
  const runner = await openRunner({
    stateDir,
    isolation: (dir, id) => Isolation.open({ ...kind, ...more }, dir, id),
    ...options,
  });
  return { runner, stateDir };
}

/** Processes that a job of a test may have left. */
const strays = new Set<number>();
afterEach(() => {
  for (const pid of strays) if (lives(pid)) process.kill(pid, 'SIGKILL');
  strays.clear();
});

describe.runIf(process.platform === 'linux').each(kinds.map((kind) => [nameOf(kind), kind] as const))(
  'isolation %s',
  (_name, kind) => {
    const throttles = kind.cgroups && hasController('cpu');
    const apart = kind.mode === 'user' || kind.mode === 'sandbox';

    it('a job gets what it needs: its directory, its output, its exit code, the environment that it asked for', async () => {
      const { runner } = await open(kind);
      const odd = { 'BASH_FUNC_cd%%': '() { echo no; }', 'with space;id': "a\nb'\n\n", UID: '12', EMPTY: '' };
      const env = await complete(runner, { ...assignment('job_0', 'env', '-0'), environment: odd });
      expect(env.stdout!.text.split('\0')).toEqual(
        expect.arrayContaining(Object.entries(odd).map(([name, value]) => `${name}=${value}`)),
      );
      const run = {
        ...script('job_1', 'echo "$GREETING"; echo on > file; cat file; pwd; exit 3'),
        environment: { GREETING: 'hi' },
      };
      const end = await complete(runner, run);
      expect(end).toMatchObject({ cause: 'EXITED_NONZERO', exitCode: 3, stderr: { text: '' } });
      expect(end.stdout!.text).toMatch(/^hi\non\n\/.*work\n$/);
      expect(await complete(runner, script('job_2', 'ls -A; exec no-such-command'))).toMatchObject({
        stdout: { text: '' },
        exitCode: 127,
      });
      expect(await complete(runner, script('job_3', 'kill -SEGV $$'))).toMatchObject({
        cause: 'SIGNALLED',
        signal: 'SIGSEGV',
      });
    });

    it.runIf(apart)(
      'cannot read keys, another job’s files or environment, or the agent’s state',
      async () => {
        const { runner, stateDir } = await open(kind);
        const key = join(stateDir, 'admin.key');
        writeFileSync(key, 'the-secret', { mode: 0o600 });
        const slot = join(stateDir, 'slots', '1');
        const work = join(slot, 'work');
        const victim = {
          ...script('job_victim', 'umask 0; echo private > secret.txt; echo ready; sleep 100'),
          environment: { TOKEN: 'their-token' },
        };
        runner.start(victim);
        await until(() => existsSync(join(work, 'secret.txt')), 'the other job');
        const attack = `
        cat ${key} ${stateDir}/id ${stateDir}/reports/* ${stateDir}/outputs/*/out ${stateDir}/slots/*/run ${work}/secret.txt
        cat /proc/[0-9]*/environ | tr '\\0' '\\n'
        ls ${work} && echo listed
        echo forged > ${work}/forged && echo wrote
        echo forged > ${slot}/end && echo wrote
        true`;
        const { stdout } = await complete(runner, script('job_attack', attack));
        expect(stdout!.text).not.toMatch(
          /the-secret|their-token|private|listed|wrote|SWITCHYARD_JOB_ID=job_victim/,
        );
        runner.cancel({ jobId: 'job_victim', epoch: 1 }, 0);
        await until(() => endOf(runner, 'job_victim') !== undefined, 'the other job to end');
      },
    );

    it.runIf(apart)(
      'reads its inputs, fetched ones and those of the site, and cannot change them',
      async () => {
        const { runner, stateDir } = await open(kind);
        const elsewhere = temporaryDirectory();
        chmodSync(elsewhere, 0o755);
        for (const name of ['far', 'own']) writeFileSync(join(elsewhere, name), name, { mode: 0o644 });
        const umask = process.umask(0o077);
        const staging = new StagingRunner(runner, join(stateDir, 'data'), {
          ...{ site: 'here', maxBytes: 1e8, command: null, rateMbPerS: null },
        });
        onTestFinished(() => {
          process.umask(umask);
        });
        const input = { dataset: 'x', sizeMb: 0, sha256: null };
        const far = { site: 'far', location: pathToFileURL(join(elsewhere, 'far')).href };
        const own = { site: 'here', location: join(elsewhere, 'own') };
        const inputs = [
          { ...input, place: 1, name: 'a far one', sources: [far] },
          { ...input, place: 2, name: 'own', sources: [own] },
        ];
        const text = `
        cat "a far one" own "$SWITCHYARD_INPUT_1" "$SWITCHYARD_INPUT_2"
        for i in "a far one" own; do
          (echo forged >"$i") 2>/dev/null && echo wrote
          at=$(readlink "$i")
          (chmod u+w "$at" || rm -f "$at" || touch "$(dirname "$at")/forged") 2>/dev/null && [ ! -e "$at" ] && echo gone
        done
        cat "a far one" own
        ls ${stateDir}/data/runs ${stateDir}/data/datasets 2>/dev/null | grep job_
        true`;
        const end = await complete(staging, { ...script('job_1', text), inputs });
        expect(end.stderr!.text).toBe('');
        expect(end).toMatchObject({ cause: 'EXITED_ZERO', stdout: { text: 'farownfarownfarown' } });
        expect(readFileSync(join(elsewhere, 'own'), 'utf8')).toBe('own');
        // The next run finds nothing of it in its directory, also where the run before could not be started.
        const bad = { ...script('job_2', 'true'), inputs, environment: { 'a=b': '' } };
        expect(await complete(staging, bad)).toMatchObject({ cause: 'LAUNCH_FAILED' });
        expect(await complete(staging, script('job_3', 'ls -A'))).toMatchObject({ stdout: { text: '' } });
      },
    );

    it.runIf(apart)('cannot kill the agent, its lane or another job, nor become somebody else', async () => {
      const { runner } = await open(kind);
      const words = `victim ${process.pid} ${nameOf(kind)}`;
      runner.start(script('job_victim', `sleep 100; true # ${words}`));
      await until(() => withWords(words).length > 0, 'the other job');
      // Named one by one: were the isolation broken, this test should not end everything on the machine.
      const attack = `
        for p in ${process.pid} $PPID ${withWords(words).join(' ')}; do [ $p = 1 ] || kill -9 $p && echo killed $p; done
        setpriv --reuid=0 id -u; timeout 0.5 su -c id root </dev/null; sudo -n id -u; chroot / id -u
        true`;
      const end = await complete(runner, script('job_attack', attack));
      expect(end.stdout!.text).not.toMatch(/killed [^1]|^0$|uid=0/m);
      expect(runner.runs().map(({ jobId }) => jobId)).toEqual(['job_victim']);
      expect(await complete(runner, script('job_next', 'echo on'))).toMatchObject({
        stdout: { text: 'on\n' },
      });
      runner.cancel({ jobId: 'job_victim', epoch: 1 }, 0);
      await until(() => endOf(runner, 'job_victim') !== undefined, 'the other job to end');
    });

    it('cannot go on as a daemon when it has ended', async () => {
      // Without anything around it what throws away session, environment and descriptors cannot be told from other processes.
      const hides = apart || kind.cgroups;
      const { runner } = await open(kind);
      const words = `daemon ${process.pid} ${nameOf(kind)}`;
      const daemon = `sh -c "sleep 1000 # ${words}; true"`;
      const flight = hides ? `env -i /usr/bin/setsid ${daemon}` : `setsid ${daemon}`;
      const close = hides ? '9>&- 8>&- <&- >&- 2>&-' : '';
      await complete(runner, script('job_1', `(${flight} ${close} &) ; sleep 0.3`));
      for (const pid of withWords(words)) strays.add(pid);
      await until(() => withWords(words).length === 0, 'the daemon to be gone');
    });

    it('cannot ignore that it is to end', async () => {
      const { runner } = await open(kind);
      const words = `stubborn ${process.pid} ${nameOf(kind)}`;
      // Its words are put together when it does not listen any more.
      const stubborn = `trap "" TERM HUP INT; w=stubborn; sh -c "while :; do sleep 0.1; done # $w ${process.pid} ${nameOf(kind)}"`;
      runner.start(script('job_1', `setsid sh -c '${stubborn}' & ${stubborn}`));
      await until(() => withWords(words).length >= 2, 'it to run');
      runner.cancel({ jobId: 'job_1', epoch: 1 }, 100);
      await until(() => endOf(runner, 'job_1') !== undefined, 'the end');
      expect(endOf(runner, 'job_1')).toMatchObject({ cause: 'CANCELLED_BY_USER', exitCode: 137 });
      await until(() => withWords(words).length === 0, 'all of it to be gone');
    });

    it('gets signals: its command, or what this has started', async () => {
      const { runner } = await open(kind);
      for (const { name, run, words, signals, exitCode } of SIGNALLED) {
        runner.start(run);
        await until(() => withWords(words).length > 0, 'it to run');
        runner.signal(name, signals);
        await until(() => endOf(runner, name.jobId) !== undefined, 'the end');
        expect(endOf(runner, name.jobId)).toMatchObject({ cause: 'EXITED_NONZERO', exitCode });
      }
    });

    it('has a terminal of its own', async () => {
      const { runner } = await open(kind, {}, { terminals: true });
      const run = {
        ...script('job_1', 'tty; stty size; read -r x; echo "<$x>"; : >/dev/tty && exit 3'),
        terminal: { rows: 30, columns: 90 },
      };
      runner.start(run);
      const piece = { jobId: 'job_1', epoch: 1, sequence: 1, body: Buffer.from('typed\n'), size: null };
      await until(() => runner.input(piece), 'it to be typed to');
      await until(() => endOf(runner, 'job_1') !== undefined, 'the end');
      const end = endOf(runner, 'job_1');
      expect(end).toMatchObject({ cause: 'EXITED_NONZERO', exitCode: 3, stderr: { text: '' } });
      expect(end?.stdout?.text).toMatch(/\/dev\/pts\/\d+\r\n.*30 90\r\n.*<typed>\r\n$/s);
    });

    it('has time to clean up when it is cancelled', async () => {
      const { runner } = await open(kind);
      const words = `tidy ${process.pid} ${nameOf(kind)}`;
      // Its words are put together when it listens.
      const loop = `w=tidy; sh -c "while :; do sleep 0.1; done # $w ${process.pid} ${nameOf(kind)}"`;
      runner.start(script('job_1', `trap 'echo tidied; exit 7' TERM; echo up; ${loop}`));
      await until(() => withWords(words).length >= 1, 'it to run');
      runner.cancel({ jobId: 'job_1', epoch: 1 }, 30_000);
      await until(() => endOf(runner, 'job_1') !== undefined, 'the end');
      expect(endOf(runner, 'job_1')).toMatchObject({
        cause: 'CANCELLED_BY_USER',
        exitCode: 7,
        stdout: { text: 'up\ntidied\n' },
      });
    });

    it('is ended for more memory, CPU time, room on disk and processes than it may have, and the next one runs', async () => {
      const limits = { cpuExcessS: 0.3, diskLimitMb: 20 };
      const { runner } = await open(kind, { processes: 30 }, limits);
      const words = `fork ${process.pid} ${nameOf(kind)}`;
      // Were there no limit, it would end with 511 of them: a bomb that does not go off.
      const bomb = `f() { sleep 0.2; [ $1 = 8 ] && sleep 60; f $(($1 + 1)) & f $(($1 + 1)) & wait; }; f 0 # ${words}`;
      const ends = [
        // Tail keeps what it reads until a line ends.
        complete(runner, {
          ...script('job_eats', '(head -c 250000000 /dev/zero; sleep 60) | tail -n 1 | wc -c'),
          memoryMbPerTask: 100,
          cpusPerTask: 8,
        }),
        // Less than one, so that also a machine which is busy gives it too much.
        ...(throttles
          ? []
          : [complete(runner, { ...script('job_spins', 'while :; do :; done'), cpusPerTask: 0.01 })]),
        complete(runner, script('job_fills', 'head -c 30000000 /dev/zero > big; sleep 600')),
        complete(runner, { ...script('job_forks', bomb), cpusPerTask: 8, runTimeLimitS: 30 }),
      ];
      const said = new Map((await Promise.all(ends)).map((end) => [end.jobId, end]));
      expect(said.get('job_eats')).toMatchObject({
        ...{ cause: 'MEMORY_LIMIT', message: expect.stringContaining('100 MB') },
      });
      if (!throttles)
        expect(said.get('job_spins')).toMatchObject({
          ...{ cause: 'CPU_LIMIT', message: expect.stringMatching(/CPU time in .* requested 0.01 CPUs/) },
        });
      expect(said.get('job_fills')).toMatchObject({
        ...{ cause: 'DISK_LIMIT', message: expect.stringContaining('allowed: 20') },
      });
      expect(['PROCESS_LIMIT', 'EXITED_NONZERO']).toContain(said.get('job_forks')!.cause);
      await until(() => withWords(words).length === 0, 'all of it to be gone');
      expect(await complete(runner, script('job_next', 'echo on'))).toMatchObject({
        stdout: { text: 'on\n' },
      });
    });
  },
);

describe.runIf(kinds.some(({ mode }) => mode === 'sandbox'))('a sandbox', () => {
  const kind: Kind = { mode: 'sandbox', cgroups: false };

  it.runIf(process.getuid?.() === 0)('lets a run open its devices and no others', async () => {
    const [own, other] = ['own', 'other'].map((name) => {
      const file = `/dev/switchyard-test-${process.pid}-${name}`;
      // As /dev/zero.
      execFileSync('mknod', ['-m', '666', file, 'c', '1', '5']);
      onTestFinished(() => rmSync(file));
      return {
        id: name,
        kind: 'gpu',
        model: null,
        memoryMb: 0,
        shares: 1,
        link: null,
        files: [file],
        environment: {},
      };
    }) as [HostDevice, HostDevice];
    const { runner } = await open(kind, {}, { devices: [own, other] });
    const look = [own, other].map(
      ({ id, files }) => `head -c 1 ${files[0]} | wc -c && echo ${id} $SWITCHYARD_DEVICES`,
    );
    const given = {
      ...script('job_1', look.join('; ')),
      machines: [{ name: 'here', tasks: 1, devices: ['own'] }],
    };
    const { stdout, stderr } = await complete(runner, given);
    expect(stdout!.text).toBe('1\nown own\n0\nother own\n');
    expect(stderr!.text).toMatch(/other.*No such file/);
  });

  it('shows the system, the run’s own directory and what the operator shows, and nothing else', async () => {
    const top = temporaryDirectory();
    const shown = join(top, 'below', 'it');
    chmodSync(top, 0o755);
    mkdirSync(shown, { recursive: true });
    writeFileSync(join(shown, 'data'), 'shown\n');
    const { runner, stateDir } = await open(kind, { shown: [{ path: shown, readOnly: true }] });
    const look = `cat ${shown}/data; touch ${shown}/x; ls /home /root /work /var ${stateDir} 2>/dev/null; ls -d /proc/[0-9]* | wc -l; touch /tmp/mine /usr/x; ls /tmp`;
    const { stdout, stderr } = await complete(runner, script('job_1', look));
    const [data, ...rest] = stdout!.text.split('\n');
    expect(data).toMatch(/^shown/);
    // Of the directories on the way to its own only these names are seen.
    const leading = [top, stateDir].flatMap((path) => path.split('/'));
    const names = rest.filter((line) => !/^\d*$|:$/.test(line) && !leading.includes(line));
    expect(names.filter((name) => !['lib', 'tmp', 'mine', 'slots'].includes(name))).toEqual([]);
    expect(stderr!.text).toMatch(/touch: .*Read-only file system|touch: .*Permission denied/);
    // Its own three or four, not those of the host.
    expect(Number(/^\d+$/m.exec(stdout!.text)![0])).toBeLessThan(10);
    const inside = {
      ...script('job_3', 'pwd; cat data; echo on >/dev/shm/x; cat /dev/shm/x'),
      workingDirectory: shown,
    };
    expect(await complete(runner, inside)).toMatchObject({ stdout: { text: `${shown}\nshown\non\n` } });
    const elsewhere = await complete(runner, { ...script('job_2', 'pwd'), workingDirectory: stateDir });
    expect(elsewhere).toMatchObject({
      cause: 'LAUNCH_FAILED',
      message: expect.stringContaining('AGENT_DIRECTORIES'),
    });
  });

  it('says that what a job leaves in its /tmp is gone, and nothing where it leaves nothing', async () => {
    const { runner } = await open(kind);
    const named = await complete(runner, script('job_1', 'printf warned >&2; echo 1 >/tmp/result.txt'));
    expect(named).toMatchObject({ cause: 'EXITED_ZERO', stdout: { text: '' } });
    expect(named.stderr!.text).toMatch(
      /^warned\nswitchyard: \/tmp was private to this job and is removed with the files left in it, such as "result.txt". .*\n$/,
    );
    const clean = 'f=$(mktemp); echo 1 >"$f"; rm "$f"; pwd';
    expect(await complete(runner, script('job_2', clean))).toMatchObject({ stderr: { text: '' } });
  });

  it('hands over what its outputs name in its /tmp, without a word of the rest', async () => {
    const kept: string[] = [];
    const keep = async (run: EndedRun) => {
      const { files } = await findFiles(run, '/tmp/out/*.csv', true);
      for (const path of files) {
        const file = await openInside(run, path);
        kept.push(`${path}: ${readFileSync(file.fd, 'utf8')}`);
        await file.close();
      }
      return null;
    };
    const { runner } = await open(kind, {}, { keep });
    const run = script('job_1', 'mkdir /tmp/out; echo 1,2 >/tmp/out/a.csv; ln -s /etc/passwd /tmp/out/b.csv');
    const named = { ...run, outputs: [{ path: '/tmp/out/*.csv', dataset: null }] };
    expect(await complete(runner, named)).toMatchObject({ cause: 'EXITED_ZERO', stderr: { text: '' } });
    expect(kept).toEqual(['/tmp/out/a.csv: 1,2\n']);
  });

  it('has no network where the site gives none, and then reaches no service of the host', async () => {
    const server = createServer((socket) => socket.end('reached'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as { port: number };
    const connect = script('job_1', `exec 3<>/dev/tcp/127.0.0.1/${port} && cat <&3`);
    const bash = { ...connect, command: '/bin/bash' };
    const { runner } = await open(kind, { network: false });
    expect((await complete(runner, bash)).stdout!.text).not.toContain('reached');
    const { runner: open2 } = await open(kind);
    expect(await complete(open2, bash)).toMatchObject({ stdout: { text: 'reached' }, stderr: { text: '' } });
  });
});

describe.runIf(!isRoot || existsSync('/usr/bin/setpriv'))('what is asked for and not to be had', () => {
  it.runIf(isRoot)('is refused with the reason, and the strongest that is there is taken by default', () => {
    const dir = temporaryDirectory();
    const uids = { first: 4_294_967_290, last: 4_294_967_299 };
    expect(() => Isolation.open({ mode: 'user', uids }, dir, 'x')).toThrow(/requested isolation/);
    const { mode, lacking } = Isolation.open({ mode: 'strongest', uids, cgroups: false }, dir, 'x');
    expect(mode).toBe('none');
    expect(lacking).toHaveLength(3);
  });

  it.runIf(!isRoot)(
    'is refused to an ordinary account, which has the sandbox where the kernel lets it',
    () => {
      const dir = temporaryDirectory();
      expect(() => Isolation.open({ mode: 'user' }, dir, 'x')).toThrow('the agent is not root');
      const { mode } = Isolation.open({ mode: 'strongest', cgroups: false }, dir, 'x');
      expect(mode).toBe(kinds.some((kind) => kind.mode === 'sandbox') ? 'sandbox' : 'none');
    },
  );
});

describe.runIf(isRoot && kinds.some(({ mode }) => mode === 'user'))('accounts', () => {
  it('are found again by the next agent, and not given to anybody else', async () => {
    const isolation = Isolation.open(
      { mode: 'user', cgroups: false, uids: { first: 70_000, last: 70_003 } },
      reachable(),
      'x',
    );
    isolation.reserveIds(new Set([70_001]));
    await isolation.sweep(0);
    const taken = [isolation.takeId(null), isolation.takeId(null), isolation.takeId(null)];
    expect(new Set(taken)).toEqual(new Set([70_000, 70_002, 70_003]));
    expect(() => isolation.takeId(null)).toThrow(/in use/);
    isolation.putBackId(70_002, true);
    expect(() => isolation.takeId(null)).toThrow(/in use/);
    await isolation.sweep(0);
    expect(isolation.takeId(null)).toBe(70_002);
  });

  it('are never those of another agent of the host, which keeps its own after a restart', () => {
    const uids = { first: 1_900_000_000, last: 1_900_000_000 + 3 * 4096 - 1 };
    const agents = ['a', 'b', 'c', 'd'].map((name) => ({ name, stateDir: temporaryDirectory() }));
    const firstOf = ({ name, stateDir }: { name: string; stateDir: string }): number => {
      chmodSync(stateDir, 0o755);
      writeFileSync(join(stateDir, 'id'), name);
      const isolation = Isolation.open({ mode: 'user', cgroups: false, uids }, stateDir, name);
      return [0, 1, 2].find((share) => isolation.isOurs(uids.first + share * 4096))!;
    };
    const shares = agents.slice(0, 3).map(firstOf);
    expect([...shares].sort()).toEqual([0, 1, 2]);
    expect(agents.slice(0, 3).map(firstOf)).toEqual(shares);
    expect(() => firstOf(agents[3]!)).toThrow('are used by other agents on this host');
    rmSync(agents[1]!.stateDir, { recursive: true });
    expect(firstOf(agents[3]!)).toBe(shares[1]);
  });

  it('leave nothing to the run that has one of them next', async () => {
    const name = `switchyard-test-${process.pid}`;
    const uids = { first: 70_010, last: 70_010 };
    const { runner } = await open({ mode: 'user', cgroups: false }, { uids });
    const hide = `mkdir -p /tmp/${name}/deep; echo secret > /tmp/${name}/deep/file; chmod 0 /tmp/${name}
      ln -s /etc/passwd /dev/shm/${name}; ipcmk -M 4096 -Q; id -u`;
    expect((await complete(runner, script('job_1', hide))).stdout!.text).toContain('70010');
    const look = `id -u; chmod 700 /tmp/${name}; cat /tmp/${name}/deep/file; ls /dev/shm/${name}; cat /proc/sysvipc/shm /proc/sysvipc/msg | grep -c ' 70010 '`;
    const next = await complete(runner, script('job_2', `${look}; true`));
    expect(next.stdout!.text).toBe('70010\n0\n');
    expect(existsSync('/etc/passwd')).toBe(true);
  });

  it('with which an agent fetches an image are not taken for those of a dead one while it lives', async () => {
    const isolation: ProcessRunnerOptions['isolation'] = (dir, id) =>
      Isolation.open({ mode: 'user', cgroups: false }, dir, id);
    const [stateDir, other] = [temporaryDirectory(), temporaryDirectory()];
    for (const dir of [stateDir, other]) chmodSync(dir, 0o755);
    const serves = (site: string) => ({ service: 'http://here', site, machines: ['node1'] });
    const first = await openRunner({ stateDir, isolation, serves: serves('one') });
    const second = await openRunner({ stateDir: other, isolation, serves: serves('two') });
    const uid = claimedIds().get(readFileSync(join(stateDir, 'id'), 'utf8'))!.last;
    const fetches = spawn('setpriv', [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', 'sleep', '1000']);
    strays.add(fetches.pid!);
    const gone = new Promise((resolve) => fetches.on('exit', (_, signal) => resolve(signal)));
    await until(() => processesWithIds((id) => id === uid).size > 0, 'the process');
    expect(await second.takeOver()).toBeNull();
    expect(processesWithIds((id) => id === uid).size).toBe(1);
    first.close();
    expect(await second.takeOver()).toBeNull();
    expect(await gone).toBe('SIGKILL');
  });

  it('of runs that are over are swept by the next agent, where the one before had no time to', async () => {
    const stateDir = temporaryDirectory();
    chmodSync(stateDir, 0o755);
    const isolation: ProcessRunnerOptions['isolation'] = (dir, id) =>
      Isolation.open({ mode: 'user', cgroups: false }, dir, id);
    const first = await openRunner({ stateDir, isolation });
    const uid = (await complete(first, script('job_1', 'id -u'))).stdout!.text.trim();
    first.close();
    const left = spawn('setpriv', [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', 'sleep', '1000']);
    strays.add(left.pid!);
    const gone = new Promise((resolve) => left.on('exit', (_, signal) => resolve(signal)));
    await openRunner({ stateDir, isolation });
    expect(await gone).toBe('SIGKILL');
  });
});
